//! [`Outcome`]: what rows show in the end, mended if an audience is not satisfied.
//!
//! Rows of several bodies may look the same to an audience. Their classes are then one larger class, which satisfies
//! what each of them satisfies, except if persons have several rows: a person in two of them counts once in the
//! larger class, and shares of sensitive values change.

use std::collections::BTreeMap;

use super::atoms::Atoms;
use super::butterfly::Piece;
use super::hidden::HiddenDemand;
use super::plan::{Ask, Compile};
use super::shown::ShownBoxes;
use crate::requirement::{Rules, UnfitColumn};

/// Differences of losses below this come from rounding.
const ROUNDING: f64 = 1e-10;

/// The demands that the final cells must meet.
pub(super) struct Demands<'d> {
    /// The demands of every audience, redundant or not, and of every coalition.
    pub(super) visible: Vec<Demand>,
    /// The demands on what columns tell audiences that don't know them.
    pub(super) hidden: &'d [HiddenDemand],
}

impl Demands<'_> {
    /// Whether rows satisfy all as they are.
    pub(super) fn are_met_by(&self, rows: &Atoms<'_>) -> bool {
        if !self.visible.iter().all(|demand| demand.is_met_by(rows)) {
            return false;
        }
        let unchanged = || ShownBoxes::unchanged(rows);
        self.hidden.is_empty() || self.hidden.iter().all(|demand| demand.unmet(rows, &unchanged()).is_empty())
    }
}

/// The requirements of an audience on the columns it knows.
pub(super) struct Demand {
    /// The columns it knows.
    pub(super) columns: Vec<usize>,
    /// The requirements of the audience's classes.
    pub(super) rules: Rules,
}

impl Demand {
    pub(super) fn new(ask: &Ask, compile: Compile<'_>) -> Result<Demand, UnfitColumn> {
        Ok(Demand { columns: ask.columns.iter().copied().collect(), rules: compile(&ask.requirements)? })
    }

    /// Whether the rows satisfy the demand without any generalization.
    pub(super) fn is_met_by(&self, rows: &Atoms<'_>) -> bool {
        // Few tables do. A quick test is whether a single row has fewer than k rows like it.
        let alike = |one: &[u32], other: &[u32]| self.columns.iter().all(|&column| one[column] == other[column]);
        let n_alike = |atom: u32| -> u64 {
            let cells = rows.rows.cells(atom);
            let like_it = (0..rows.len() as u32).filter(|&other| alike(cells, rows.rows.cells(other)));
            like_it.map(|other| u64::from(rows.rows.weight(other))).sum()
        };
        let last = rows.len().saturating_sub(1) as u32;
        if !rows.rows.is_empty() && [0, last / 2, last].iter().any(|&atom| n_alike(atom) < u64::from(self.rules.k())) {
            return false;
        }
        rows.project(&rows.all(), &self.columns).all_stand(rows, &self.rules)
    }
}

/// The cells that rows show in the end.
pub(super) struct Outcome<'a> {
    pub(super) atoms: Atoms<'a>,
    pub(super) shown: ShownBoxes,
    /// The atoms of each body; empty if the table is released unchanged.
    pub(super) bodies: Vec<Vec<u32>>,
}

impl<'a> Outcome<'a> {
    /// Every row as it is.
    pub(super) fn unchanged(atoms: Atoms<'a>) -> Outcome<'a> {
        let shown = ShownBoxes::unchanged(&atoms);
        Outcome { atoms, shown, bodies: Vec::new() }
    }

    /// All rows are one class.
    pub(super) fn one_class(atoms: &Atoms<'a>) -> Outcome<'a> {
        let (all, columns) = (atoms.all(), (0..atoms.domains.len()).collect::<Vec<usize>>());
        let shown = ShownBoxes::new(atoms, std::iter::once(Piece::new(atoms, &all, &columns)));
        Outcome { atoms: atoms.clone(), shown, bodies: vec![all] }
    }

    /// Atoms that show something. Those that look the same to somebody are in the same body.
    pub(super) fn of_shown(atoms: Atoms<'a>, shown: ShownBoxes, demands: &Demands<'_>) -> Outcome<'a> {
        let mut first: Vec<u32> = atoms.all();
        for demand in &demands.visible {
            let groups = shown.groups(&demand.columns);
            for group in 0..groups.len() as u32 {
                let members = groups.members(group);
                members.iter().for_each(|&atom| unite(&mut first, members[0], atom));
            }
        }
        let mut bodies: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for atom in atoms.all() {
            bodies.entry(first_of(&mut first, atom)).or_default().push(atom);
        }
        Outcome { atoms, shown, bodies: bodies.into_values().collect() }
    }

    /// Mends what is shown until every demand is met.
    pub(super) fn settle(&mut self, demands: &Demands<'_>) {
        loop {
            self.join_unmet(&demands.visible);
            if !self.hide_unmet(demands.hidden) {
                return;
            }
        }
    }

    /// Joins each body with rows that don't satisfy a demand to the nearest body, and makes the two one class. Repeats
    /// until all demands are met, at the latest when there is only one class.
    fn join_unmet(&mut self, demands: &[Demand]) {
        let columns: Vec<usize> = (0..self.atoms.domains.len()).collect();
        loop {
            let mut is_unmet = vec![false; self.atoms.len()];
            for demand in demands {
                let unmet = self.shown.unmet(&self.atoms, &demand.columns, &demand.rules);
                unmet.iter().for_each(|&atom| is_unmet[atom as usize] = true);
            }
            let (unmet, mut met): (Vec<Vec<u32>>, Vec<Vec<u32>>) = std::mem::take(&mut self.bodies)
                .into_iter()
                .partition(|body| body.iter().any(|&atom| is_unmet[atom as usize]));
            let is_last = unmet.len() + met.len() == 1;
            if unmet.is_empty() {
                self.bodies = met;
                return;
            }
            for body in unmet {
                let joined = match self.nearest(&met, &body, &columns) {
                    Some(nearest) => {
                        met[nearest].extend(body);
                        nearest
                    }
                    None => {
                        met.push(body);
                        0
                    }
                };
                self.shown.show(&self.atoms, &Piece::new(&self.atoms, &met[joined], &columns));
            }
            self.bodies = met;
            // Everybody is in one class now. It satisfies the rules: otherwise there would be no table to release.
            if is_last {
                return;
            }
        }
    }

    /// The body whose loss grows least when another joins it, the first of equals.
    fn nearest(&self, bodies: &[Vec<u32>], joining: &[u32], columns: &[usize]) -> Option<usize> {
        let loss = |members: &[u32]| {
            let width = self.atoms.perimeter(&self.atoms.bounds(members, columns), columns);
            width * self.atoms.rows.weight_of(members) as f64
        };
        let growths: Vec<f64> =
            bodies.iter().map(|body| loss(&[body.as_slice(), joining].concat()) - loss(body)).collect();
        (0..bodies.len()).min_by(|&a, &b| growths[a].total_cmp(&growths[b]))
    }

    /// For each row of the table up to the last one that takes part, the atom that holds it.
    pub(super) fn atom_of_rows(&self) -> Vec<u32> {
        let rows = &self.atoms.rows;
        let last = (0..self.atoms.len() as u32).flat_map(|atom| rows.members(atom)).max();
        let mut atoms = vec![0; last.map_or(0, |&row| row as usize + 1)];
        for atom in 0..self.atoms.len() as u32 {
            rows.members(atom).iter().for_each(|&row| atoms[row as usize] = atom);
        }
        atoms
    }

    pub(super) fn loss(&self) -> f64 {
        self.shown.loss_of_columns(&self.atoms).iter().sum()
    }

    /// Whether this loses less than another, by more than rounding.
    pub(super) fn loses_less_than(&self, other: &Outcome<'_>) -> bool {
        self.loss() < other.loss() - ROUNDING
    }

    /// The word for the shape in the manifest.
    pub(super) fn shape(&self) -> &'static str {
        match self.bodies.is_empty() {
            true => "unchanged",
            false if self.share_in_butterflies() > 0.0 => "butterflies",
            false => "union",
        }
    }

    /// The share of rows in bodies whose rows do not all look the same.
    pub(super) fn share_in_butterflies(&self) -> f64 {
        let all_columns = 0..self.atoms.domains.len();
        let is_butterfly =
            |body: &&Vec<u32>| body.iter().any(|&atom| !self.shown.alike(atom, body[0], all_columns.clone()));
        let n_rows: u64 = self.bodies.iter().filter(is_butterfly).map(|body| self.atoms.rows.weight_of(body)).sum();
        n_rows as f64 / (self.atoms.rows.n_members() as f64).max(1.0)
    }
}

/// The first atom of the body of an atom.
fn first_of(first: &mut [u32], mut atom: u32) -> u32 {
    while first[atom as usize] != atom {
        first[atom as usize] = first[first[atom as usize] as usize];
        atom = first[atom as usize];
    }
    atom
}

fn unite(first: &mut [u32], one: u32, other: u32) {
    let (one, other) = (first_of(first, one), first_of(first, other));
    first[one.max(other) as usize] = one.min(other);
}
