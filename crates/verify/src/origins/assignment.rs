//! [`Network`]: assigns origins to released rows by maximum flow.
//!
//! A box is a set of equal released rows, and a point is a set of equal private rows.
//!
//! # Guarantee   as many released rows as possible get an origin of their own
//! # Paper       Dinic (1970) on a bipartite graph with capacities, after a greedy assignment
//! # Cost
//! The greedy pass is linear in the number of candidates and usually leaves little to do. Each phase after it is
//! linear, too, and there are as many phases as different lengths of shortest augmenting paths. There is no recursion.

/// Boxes that need origins, points that supply them, and which points each box may take.
pub(crate) struct Network {
    /// Where the candidates of each box begin in `points`, and finally the end.
    pub(crate) starts: Vec<usize>,
    /// The candidates of all boxes, box after box.
    pub(crate) points: Vec<u32>,
    /// How many origins each box needs.
    pub(crate) needs: Vec<u32>,
    /// How many origins each point supplies.
    pub(crate) supplies: Vec<u32>,
}

/// The layer of a box or point that was not reached.
const UNREACHED: u32 = u32::MAX;

impl Network {
    /// A network in which each box may take these points.
    pub(crate) fn new(candidates: &[Vec<u32>], needs: Vec<u32>, supplies: Vec<u32>) -> Self {
        let mut starts = vec![0];
        starts.extend(candidates.iter().scan(0, |end, points| {
            *end += points.len();
            Some(*end)
        }));
        Network { starts, points: candidates.concat(), needs, supplies }
    }

    /// Assigns as many origins as possible, and returns how many each box still lacks.
    pub(crate) fn assign(self) -> Vec<u32> {
        self.solve().network.needs
    }

    /// Assigns as many origins as possible, and keeps which box took which.
    pub(crate) fn solve(self) -> Assignment {
        let n_boxes = self.needs.len();
        let mut search = Assignment {
            flows: vec![0; self.points.len()],
            holders: vec![Vec::new(); self.supplies.len()],
            box_layers: vec![UNREACHED; n_boxes],
            point_layers: vec![UNREACHED; self.supplies.len()],
            next_point: vec![0; n_boxes],
            next_holder: vec![0; self.supplies.len()],
            network: self,
        };
        search.greedy();
        search.improve();
        search
    }
}

/// Which box took how many origins of which point.
pub(crate) struct Assignment {
    /// The network, with `needs` and `supplies` reduced by what was assigned.
    network: Network,
    /// The flow through each candidate: how many origins its box took from its point.
    flows: Vec<u32>,
    /// For each point, the boxes (with their candidates) that took origins from it. Some may have given them back
    /// since.
    holders: Vec<Vec<(u32, usize)>>,
    box_layers: Vec<u32>,
    point_layers: Vec<u32>,
    /// For each box, the candidate to try next in this phase.
    next_point: Vec<usize>,
    /// For each point, the holder to try next in this phase.
    next_holder: Vec<usize>,
}

impl Assignment {
    /// How many origins each box lacks.
    pub(crate) fn lacking(&self) -> &[u32] {
        &self.network.needs
    }

    /// The points whose origins a box took, each with how many.
    pub(crate) fn handed(&self, to: usize) -> impl Iterator<Item = (u32, u32)> + '_ {
        let candidates = self.network.starts[to]..self.network.starts[to + 1];
        candidates.map(|at| (self.network.points[at], self.flows[at])).filter(|&(_, amount)| amount > 0)
    }

    /// Augments along shortest paths until there are none.
    fn improve(&mut self) {
        while self.network.needs.iter().any(|&lacking| lacking > 0) && self.layer() {
            for needy in 0..self.network.needs.len() {
                while self.network.needs[needy] > 0 && self.augment(needy) {}
            }
        }
    }

    /// Hands out origins in one pass. Boxes with few candidates choose first.
    fn greedy(&mut self) {
        let starts = &self.network.starts;
        let mut order: Vec<u32> = (0..self.network.needs.len() as u32).collect();
        order.sort_by_key(|&needy| starts[needy as usize + 1] - starts[needy as usize]);
        for needy in order {
            for candidate in self.network.starts[needy as usize]..self.network.starts[needy as usize + 1] {
                let point = self.network.points[candidate] as usize;
                let amount = self.network.needs[needy as usize].min(self.network.supplies[point]);
                if self.network.needs[needy as usize] == 0 {
                    break;
                }
                self.network.supplies[point] -= amount;
                self.hand_out(needy as usize, candidate, amount);
                self.network.needs[needy as usize] -= amount;
            }
        }
    }

    fn hand_out(&mut self, to: usize, candidate: usize, amount: u32) {
        if amount > 0 {
            if self.flows[candidate] == 0 {
                self.holders[self.network.points[candidate] as usize].push((to as u32, candidate));
            }
            self.flows[candidate] += amount;
        }
    }

    /// Numbers boxes and points by the length of the shortest path from a box that lacks origins. Returns whether such
    /// a path reaches a point with origins left.
    fn layer(&mut self) -> bool {
        self.box_layers.fill(UNREACHED);
        self.point_layers.fill(UNREACHED);
        self.next_point.copy_from_slice(&self.network.starts[..self.network.needs.len()]);
        self.next_holder.fill(0);
        let mut frontier: Vec<u32> =
            (0..self.network.needs.len() as u32).filter(|&needy| self.network.needs[needy as usize] > 0).collect();
        frontier.iter().for_each(|&needy| self.box_layers[needy as usize] = 0);
        let mut layer = 0;
        let mut ends = false;
        while !frontier.is_empty() && !ends {
            let mut next = Vec::new();
            for needy in frontier {
                for candidate in self.network.starts[needy as usize]..self.network.starts[needy as usize + 1] {
                    let point = self.network.points[candidate] as usize;
                    if self.point_layers[point] != UNREACHED {
                        continue;
                    }
                    self.point_layers[point] = layer + 1;
                    ends |= self.network.supplies[point] > 0;
                    let flows = &self.flows;
                    self.holders[point].retain(|&(_, candidate)| flows[candidate] > 0);
                    for &(holder, _) in &self.holders[point] {
                        if self.box_layers[holder as usize] == UNREACHED {
                            self.box_layers[holder as usize] = layer + 2;
                            next.push(holder);
                        }
                    }
                }
            }
            frontier = next;
            layer += 2;
        }
        ends
    }

    /// Finds an augmenting path from a box along the layers, and shifts origins along it. Returns whether there was
    /// one.
    fn augment(&mut self, needy: usize) -> bool {
        // Steps (box, take, give): the box takes from a point through the candidate `take`, and the holder of that
        // point gives back through the candidate `give`.
        let mut steps: Vec<(usize, usize, usize)> = Vec::new();
        let mut at = needy;
        loop {
            let candidate = self.next_point[at];
            if candidate == self.network.starts[at + 1] {
                // A dead end: the point before it must try its next holder.
                let Some((before, take, _)) = steps.pop() else {
                    return false;
                };
                self.next_holder[self.network.points[take] as usize] += 1;
                at = before;
                continue;
            }
            let point = self.network.points[candidate] as usize;
            if self.point_layers[point] != self.box_layers[at] + 1 {
                self.next_point[at] += 1;
                continue;
            }
            if self.network.supplies[point] > 0 {
                self.shift(needy, &steps, (at, candidate));
                return true;
            }
            match self.holders[point].get(self.next_holder[point]) {
                None => self.next_point[at] += 1,
                Some(&(holder, give)) => {
                    if self.flows[give] > 0 && self.box_layers[holder as usize] == self.point_layers[point] + 1 {
                        steps.push((at, candidate, give));
                        at = holder as usize;
                    } else {
                        self.next_holder[point] += 1;
                    }
                }
            }
        }
    }

    fn shift(&mut self, needy: usize, steps: &[(usize, usize, usize)], (last, candidate): (usize, usize)) {
        let point = self.network.points[candidate] as usize;
        let ends = self.network.needs[needy].min(self.network.supplies[point]);
        let amount = steps.iter().map(|&(_, _, give)| self.flows[give]).fold(ends, u32::min);
        for &(taker, take, give) in steps {
            self.flows[give] -= amount;
            self.hand_out(taker, take, amount);
        }
        self.hand_out(last, candidate, amount);
        self.network.supplies[point] -= amount;
        self.network.needs[needy] -= amount;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lacking(candidates: &[Vec<u32>], needs: &[u32], supplies: &[u32]) -> u32 {
        Network::new(candidates, needs.to_vec(), supplies.to_vec()).assign().iter().sum()
    }

    /// The number that Hall's theorem gives: the largest excess, over all sets of boxes, of their needs over the
    /// supplies of their candidates.
    fn lacking_by_hall(candidates: &[Vec<u32>], needs: &[u32], supplies: &[u32]) -> u32 {
        let subsets = 0u32..1 << needs.len();
        let excess = subsets.map(|subset| {
            let chosen = (0..needs.len()).filter(|&needy| subset & (1 << needy) != 0);
            let mut reached = vec![false; supplies.len()];
            let mut need = 0;
            for needy in chosen {
                need += needs[needy];
                candidates[needy].iter().for_each(|&point| reached[point as usize] = true);
            }
            let supply: u32 = supplies.iter().zip(&reached).filter(|(_, reached)| **reached).map(|(n, _)| n).sum();
            need.saturating_sub(supply)
        });
        excess.max().unwrap_or(0)
    }

    #[test]
    fn a_box_gives_way_to_one_with_fewer_choices() {
        assert_eq!(lacking(&[vec![0, 1], vec![0, 2], vec![0]], &[1, 1, 1], &[1, 1, 1]), 0);
        assert_eq!(lacking(&[vec![0, 1], vec![0, 1], vec![0, 1]], &[1, 1, 1], &[1, 1]), 1);
    }

    #[test]
    fn a_long_augmenting_path_is_found() {
        // Box i may take points i and i+1, and the last box only point 0, so all others must move by one.
        let n = 2000;
        let mut candidates: Vec<Vec<u32>> = (0..n).map(|needy| vec![needy, needy + 1]).collect();
        candidates.push(vec![0, 0]);
        assert_eq!(lacking(&candidates, &vec![1; n as usize + 1], &vec![1; n as usize + 1]), 0);
    }

    proptest! {
        #[test]
        fn no_more_is_lacking_than_hall_s_theorem_demands(
            candidates in proptest::collection::vec(proptest::collection::btree_set(0u32..7, 0..5), 7),
            needs in proptest::collection::vec(0u32..6, 7),
            supplies in proptest::collection::vec(0u32..6, 7),
        ) {
            let candidates: Vec<Vec<u32>> = candidates.into_iter().map(|points| points.into_iter().collect()).collect();
            prop_assert_eq!(
                lacking(&candidates, &needs, &supplies),
                lacking_by_hall(&candidates, &needs, &supplies)
            );
        }
    }
}
