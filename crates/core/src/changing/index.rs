//! [`ClassIndex`]: the class nearest to a row, without looking at every class.
//!
//! # Paper
//! `[EPS+12]` section 7: the total change is that of the newcomer and of all rows already in the class, each column's
//! in steps of its DGH over the DGH's diameter.
//! # Deviations
//! Among classes that are equally near, the one with the lowest number wins. Changes are counted in millionths of a
//! column, so that ties are ties whatever the order of adding.
//! # Cost
//! The index is a tree of cells: each inner cell divides one column by the children of one DGH node. Every cell has a
//! lower bound of the change that its classes need, and a query opens the cell with the lowest bound first. Cells that
//! the row is not below share one bound, and are opened only if no other cell has a lower one. Adding and removing a
//! class go down one path. Bounds are not tightened when a class is removed, so the tree is made anew after as many
//! removals as there are classes. A query opens few cells if some class contains the row already. It opens many if every
//! class is far away, as in sparse data of many columns, because all bounds are then alike.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use super::ledger::{ClassId, Effect};
use super::tree::GrowingTree;

/// A bucket with more classes than this is divided.
const BUCKET: usize = 24;
/// The change of a column that goes from a value to the root.
const WHOLE_COLUMN: u64 = 1_000_000;

/// A total change, in millionths of a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change(pub u64);

/// Classes by their labels, in memory.
#[derive(Clone, Debug)]
pub struct ClassIndex {
    n_columns: usize,
    classes: BTreeMap<ClassId, Arc<Indexed>>,
    cells: Vec<Cell>,
    n_removed: usize,
}

/// What a bucket keeps of each of its classes.
#[derive(Debug)]
struct Indexed {
    class: ClassId,
    n_members: u64,
    nodes: Box<[u32]>,
}

/// The classes whose label in each column is `nodes[column]` or below.
#[derive(Clone, Debug)]
struct Cell {
    nodes: Box<[u32]>,
    /// Whether the label is the cell's node itself.
    exact: Box<[bool]>,
    /// The depth of the deepest label in each column. This and the next two bound what is in the cell.
    deepest: Box<[u32]>,
    fewest_members: u64,
    lowest_class: ClassId,
    content: Content,
}

#[derive(Clone, Debug)]
enum Content {
    Bucket(Vec<Arc<Indexed>>),
    /// Divided by one column: a cell for each child of the cell's node, and one for the classes at the node itself.
    Divided {
        column: usize,
        at_node: Option<u32>,
        below: BTreeMap<u32, u32>,
    },
}

/// A row that looks for its class.
struct Query<'a> {
    trees: &'a [GrowingTree],
    /// For each column, the row's nodes from the root down.
    paths: Vec<Vec<u32>>,
    /// For each column, the change that one step up the DGH costs.
    steps: Vec<u64>,
}

/// A cell, or several cells, that a query has not looked at yet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Open {
    Cell(u32),
    /// The children of a divided cell, except the child that contains the row.
    Siblings(u32),
}

impl ClassIndex {
    /// An index without classes, over this many quasi columns.
    pub fn new(n_columns: usize) -> ClassIndex {
        ClassIndex { n_columns, classes: BTreeMap::new(), cells: vec![Cell::whole(n_columns)], n_removed: 0 }
    }

    /// How many classes there are.
    pub fn len(&self) -> usize {
        self.classes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.classes.is_empty()
    }

    /// A class's labels and how many members it shows.
    pub fn get(&self, class: ClassId) -> Option<(&[u32], u64)> {
        let known = self.classes.get(&class)?;
        Some((&known.nodes, known.n_members))
    }

    /// Adds a class. A class that is there already moves to the place of its new labels and members.
    ///
    /// # Panics
    /// If labels are not one per quasi column.
    pub fn put(&mut self, trees: &[GrowingTree], class: ClassId, nodes: &[u32], n_members: u64) {
        assert_eq!(nodes.len(), self.n_columns, "a class has a label in every quasi column");
        self.remove(trees, class);
        let new = Arc::new(Indexed { class, n_members, nodes: nodes.into() });
        self.classes.insert(class, Arc::clone(&new));
        self.insert(trees, 0, new);
        if self.n_removed > self.len() + BUCKET {
            self.cells = vec![Cell::whole(self.n_columns)];
            self.n_removed = 0;
            let all: Vec<Arc<Indexed>> = self.classes.values().cloned().collect();
            all.into_iter().for_each(|class| self.insert(trees, 0, class));
        }
    }

    /// Takes a class out, if it is there.
    pub fn remove(&mut self, trees: &[GrowingTree], class: ClassId) {
        let Some(removed) = self.classes.remove(&class) else { return };
        let mut cell = 0u32;
        loop {
            let Cell { nodes: cell_nodes, content, .. } = &mut self.cells[cell as usize];
            match content {
                Content::Bucket(classes) => {
                    classes.retain(|other| other.class != class);
                    break;
                }
                Content::Divided { column, at_node, below } => {
                    let next = match trees[*column].child_towards(cell_nodes[*column], removed.nodes[*column]) {
                        None => *at_node,
                        Some(child) => below.get(&child).copied(),
                    };
                    cell = next.expect("a class is where its labels lead");
                }
            }
        }
        self.n_removed += 1;
    }

    /// Updates the index with effects that were written. Call it after the transaction is committed.
    pub fn follow(&mut self, trees: &[GrowingTree], effects: &[Effect]) {
        let mut classes: BTreeMap<ClassId, (Vec<u32>, u64)> = BTreeMap::new();
        for effect in effects {
            let (class, came, went) = match effect {
                Effect::Dissolve { class } => {
                    classes.remove(class);
                    self.remove(trees, *class);
                    continue;
                }
                Effect::Found { class, .. } => (*class, 0, 0),
                Effect::Admit { class, members, .. } => (*class, members.len() as u64, 0),
                Effect::Remove { class, members, .. } => (*class, 0, members.len() as u64),
                Effect::Withdraw { class, gone, survivors, .. } => (*class, 0, (gone.len() + survivors.len()) as u64),
                Effect::Wait { .. }
                | Effect::Hide { .. }
                | Effect::ShowAlone { .. }
                | Effect::Seal { .. }
                | Effect::Leave { .. }
                | Effect::Forget { .. }
                | Effect::Remember { .. } => continue,
            };
            let known = classes.entry(class).or_insert_with(|| {
                self.get(class).map_or_else(Default::default, |(nodes, n_members)| (nodes.to_vec(), n_members))
            });
            if let Effect::Found { nodes, .. } = effect {
                known.0.clone_from(nodes);
            }
            known.1 = (known.1 + came).saturating_sub(went);
        }
        for (class, (nodes, n_members)) in classes {
            self.put(trees, class, &nodes, n_members);
        }
    }

    /// The class whose total change would be least if a row with these nodes joined it.
    pub fn nearest(&self, trees: &[GrowingTree], nodes: &[u32]) -> Option<(ClassId, Change)> {
        let query = Query::new(trees, nodes);
        let mut open = BinaryHeap::from([Reverse((query.bound(&self.cells[0]), Open::Cell(0)))]);
        let mut best: Option<(u64, ClassId)> = None;
        while let Some(Reverse((bound, item))) = open.pop() {
            if best.is_some_and(|best| bound >= best) {
                break;
            }
            let (Open::Cell(number) | Open::Siblings(number)) = item;
            let cell = &self.cells[number as usize];
            match &cell.content {
                Content::Bucket(classes) => {
                    for known in classes {
                        let reached = (query.change(&known.nodes, known.n_members), known.class);
                        best = Some(best.map_or(reached, |best| best.min(reached)));
                    }
                }
                Content::Divided { column, at_node, below } => {
                    let is_open = |bound: &(u64, ClassId)| best.is_none_or(|best| *bound < best);
                    let mut push = |cell: u32| {
                        let bound = query.bound(&self.cells[cell as usize]);
                        if is_open(&bound) {
                            open.push(Reverse((bound, Open::Cell(cell))));
                        }
                    };
                    let towards = query.child(*column, cell.nodes[*column]);
                    if item == Open::Siblings(number) {
                        let others = below.iter().filter(|&(&child, _)| Some(child) != towards);
                        others.for_each(|(_, &cell)| push(cell));
                        continue;
                    }
                    at_node.iter().for_each(|&cell| push(cell));
                    match towards {
                        None => below.values().for_each(|&cell| push(cell)),
                        Some(towards) => {
                            below.get(&towards).into_iter().for_each(|&cell| push(cell));
                            let bound = query.bound_beside(cell, *column);
                            if is_open(&bound) {
                                open.push(Reverse((bound, Open::Siblings(number))));
                            }
                        }
                    }
                }
            }
        }
        best.map(|(change, class)| (class, Change(change)))
    }

    /// Puts a class into a cell, or into one inside it.
    fn insert(&mut self, trees: &[GrowingTree], mut cell: u32, class: Arc<Indexed>) {
        loop {
            let n_cells = self.cells.len() as u32;
            self.cells[cell as usize].widen(trees, &class);
            let Cell { nodes, exact, content, .. } = &mut self.cells[cell as usize];
            match content {
                Content::Bucket(classes) => {
                    classes.push(class);
                    if classes.len() > BUCKET {
                        self.divide(trees, cell);
                    }
                    return;
                }
                Content::Divided { column, at_node, below } => {
                    let column = *column;
                    let child = trees[column].child_towards(nodes[column], class.nodes[column]);
                    let known = match child {
                        None => *at_node,
                        Some(child) => below.get(&child).copied(),
                    };
                    if let Some(next) = known {
                        cell = next;
                        continue;
                    }
                    let mut inner = Cell::inside(nodes, exact);
                    match child {
                        None => {
                            *at_node = Some(n_cells);
                            inner.exact[column] = true;
                        }
                        Some(child) => {
                            below.insert(child, n_cells);
                            inner.nodes[column] = child;
                        }
                    }
                    self.cells.push(inner);
                    cell = n_cells;
                }
            }
        }
    }

    /// Divides a bucket by the column in which the largest part is smallest.
    fn divide(&mut self, trees: &[GrowingTree], number: u32) {
        let cell = &mut self.cells[number as usize];
        let Content::Bucket(classes) = &cell.content else { return };
        let largest_part = |column: usize| {
            let mut sizes: BTreeMap<Option<u32>, usize> = BTreeMap::new();
            for class in classes {
                *sizes.entry(trees[column].child_towards(cell.nodes[column], class.nodes[column])).or_default() += 1;
            }
            sizes.into_values().max()
        };
        let divisible = (0..self.n_columns).filter(|&column| !cell.exact[column]);
        let Some(column) = divisible.min_by_key(|&column| largest_part(column)) else { return };
        let divided = Content::Divided { column, at_node: None, below: BTreeMap::new() };
        let Content::Bucket(classes) = std::mem::replace(&mut cell.content, divided) else { return };
        for class in classes {
            self.insert(trees, number, class);
        }
    }
}

impl Cell {
    /// A cell that could hold every class, still empty.
    fn whole(n_columns: usize) -> Cell {
        Cell::inside(&vec![0; n_columns], &vec![false; n_columns])
    }

    /// An empty cell over the same nodes as another cell. The caller narrows it to a part of that cell.
    fn inside(nodes: &[u32], exact: &[bool]) -> Cell {
        Cell {
            nodes: nodes.into(),
            exact: exact.into(),
            deepest: vec![0; nodes.len()].into(),
            fewest_members: u64::MAX,
            lowest_class: ClassId(u64::MAX),
            content: Content::Bucket(Vec::new()),
        }
    }

    fn widen(&mut self, trees: &[GrowingTree], class: &Indexed) {
        self.fewest_members = self.fewest_members.min(class.n_members);
        self.lowest_class = self.lowest_class.min(class.class);
        for ((deepest, tree), &node) in self.deepest.iter_mut().zip(trees).zip(&class.nodes) {
            *deepest = tree.depth(node).max(*deepest);
        }
    }
}

impl<'a> Query<'a> {
    fn new(trees: &'a [GrowingTree], nodes: &[u32]) -> Query<'a> {
        let path = |(tree, &node): (&GrowingTree, &u32)| {
            let mut path: Vec<u32> = std::iter::successors(Some(node), |&node| tree.parent(node)).collect();
            path.reverse();
            path
        };
        let paths = trees.iter().zip(nodes).map(path).collect();
        let steps = trees.iter().map(|tree| WHOLE_COLUMN / u64::from(tree.diameter().max(1))).collect();
        Query { trees, paths, steps }
    }

    fn depth(&self, column: usize) -> u32 {
        self.paths[column].len() as u32 - 1
    }

    /// The depth at which the row and a node meet.
    fn meeting(&self, column: usize, mut node: u32) -> u32 {
        let (tree, path) = (&self.trees[column], &self.paths[column]);
        loop {
            let depth = tree.depth(node);
            if path.get(depth as usize) == Some(&node) {
                return depth;
            }
            node = tree.parent(node).unwrap_or(0);
        }
    }

    /// The child of a node that contains the row; `None` if no child does.
    fn child(&self, column: usize, node: u32) -> Option<u32> {
        let depth = self.trees[column].depth(node) as usize;
        let path = &self.paths[column];
        (path.get(depth) == Some(&node)).then(|| path.get(depth + 1).copied()).flatten()
    }

    /// The total change if the row joins a class.
    fn change(&self, nodes: &[u32], n_members: u64) -> u64 {
        let of_column = |(column, &node): (usize, &u32)| {
            let met = self.meeting(column, node);
            let raised = u64::from(self.trees[column].depth(node) - met);
            self.steps[column] * (u64::from(self.depth(column) - met) + n_members * raised)
        };
        nodes.iter().enumerate().map(of_column).sum()
    }

    /// A lower bound of the change of every class in a cell, with the lowest class number there.
    fn bound(&self, cell: &Cell) -> (u64, ClassId) {
        ((0..self.paths.len()).map(|column| self.bound_of_column(cell, column)).sum(), cell.lowest_class)
    }

    fn bound_of_column(&self, cell: &Cell, column: usize) -> u64 {
        let (node, depth) = (cell.nodes[column], self.depth(column));
        let met = self.meeting(column, node);
        let node_depth = self.trees[column].depth(node);
        let steps = if met == node_depth && !cell.exact[column] {
            // The row is below the node, and some class in the cell may contain it with a label as deep as the deepest
            // one there.
            u64::from(depth.saturating_sub(cell.deepest[column]))
        } else {
            u64::from(depth - met) + cell.fewest_members.saturating_mul(u64::from(node_depth - met))
        };
        self.steps[column].saturating_mul(steps)
    }

    /// The same for the children of a divided cell, except the child that contains the row.
    fn bound_beside(&self, cell: &Cell, column: usize) -> (u64, ClassId) {
        let others = (0..self.paths.len()).filter(|&other| other != column);
        let bound: u64 = others.map(|other| self.bound_of_column(cell, other)).sum();
        let met = self.trees[column].depth(cell.nodes[column]);
        let steps = u64::from(self.depth(column) - met) + cell.fewest_members;
        (bound + self.steps[column].saturating_mul(steps), cell.lowest_class)
    }
}
