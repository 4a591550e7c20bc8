//! [`Attacker`]: somebody who kept every snapshot, knows who was in which class when, and knows the rule.

use std::collections::{BTreeMap, BTreeSet};

use kohort_model::Requirement;

/// What a row shows beside its quasi labels.
pub type Tuple = Vec<u32>;

/// A row as it really is. The attacker knows to whom it belongs, but not what it shows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    /// Which appearance of the row this is: a row that vanished and came back counts anew.
    pub showing: (u64, u64),
    /// The person to whom the row belongs.
    pub person: u64,
    /// The k that the person asks for.
    pub k: u32,
    /// What the row shows beside its quasi labels.
    pub tuple: Tuple,
}

/// Every snapshot so far: which rows each class showed.
#[derive(Default)]
pub struct Attacker {
    n_snapshots: usize,
    /// For each row, in which class it was in which snapshot.
    signatures: BTreeMap<Row, Vec<(usize, u64)>>,
}

/// Rows that no combination of snapshots tells apart.
pub struct Block {
    /// The rows.
    pub rows: Vec<Row>,
}

impl Attacker {
    /// One more snapshot: the rows that are shown, each with its class.
    pub fn see<'a>(&mut self, classes: impl IntoIterator<Item = (u64, &'a Row)>) {
        for (class, row) in classes {
            self.signatures.entry(row.clone()).or_default().push((self.n_snapshots, class));
        }
        self.n_snapshots += 1;
    }

    /// The smallest sets that can be made from the classes of all snapshots by union, intersection and difference.
    pub fn blocks(&self) -> Vec<Block> {
        let mut blocks: BTreeMap<&[(usize, u64)], Vec<Row>> = BTreeMap::new();
        for (row, signature) in &self.signatures {
            blocks.entry(signature).or_default().push(row.clone());
        }
        blocks.into_values().map(|rows| Block { rows }).collect()
    }
}

impl Block {
    /// The persons to whom the rows belong.
    pub fn persons(&self) -> BTreeSet<u64> {
        self.rows.iter().map(|row| row.person).collect()
    }

    fn n_rows_by_tuple(&self) -> BTreeMap<&Tuple, usize> {
        let mut counts = BTreeMap::new();
        for row in &self.rows {
            *counts.entry(&row.tuple).or_default() += 1;
        }
        counts
    }
}

/// The tuples that a person can have. A tuple is possible if everybody can be given one tuple for good so that every
/// block shows what it shows. Persons in a single block take what is left, so only persons in several blocks need a
/// search.
///
/// # Panics
/// If the person is in no block.
pub fn candidates(blocks: &[Block], person: u64) -> BTreeSet<Tuple> {
    let mut blocks_of: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (number, block) in blocks.iter().enumerate() {
        for other in block.persons() {
            blocks_of.entry(other).or_default().push(number);
        }
    }
    let truth: BTreeMap<u64, &Tuple> =
        blocks.iter().flat_map(|block| &block.rows).map(|row| (row.person, &row.tuple)).collect();
    let mut others: Vec<u64> =
        blocks_of.iter().filter(|(_, blocks)| blocks.len() > 1).map(|(&other, _)| other).collect();
    others.retain(|&other| other != person);
    let mut left: Vec<BTreeMap<&Tuple, usize>> = blocks.iter().map(Block::n_rows_by_tuple).collect();
    let mine = &blocks_of[&person];
    let possible: Vec<&Tuple> = left[mine[0]].keys().copied().collect();
    let mut found = BTreeSet::new();
    for tuple in possible {
        if take(&mut left, mine, tuple) {
            if others_fit(&mut left, &others, &blocks_of, &truth) {
                found.insert(tuple.clone());
            }
            give_back(&mut left, mine, tuple);
        }
    }
    found
}

fn others_fit<'a>(
    left: &mut [BTreeMap<&'a Tuple, usize>],
    others: &[u64],
    blocks_of: &BTreeMap<u64, Vec<usize>>,
    truth: &BTreeMap<u64, &'a Tuple>,
) -> bool {
    let Some((first, rest)) = others.split_first() else { return true };
    let mine = &blocks_of[first];
    // The search starts with the true assignment, because most of it can stay.
    let others_of_block: Vec<&Tuple> = left[mine[0]].keys().copied().filter(|tuple| *tuple != truth[first]).collect();
    for tuple in std::iter::once(truth[first]).chain(others_of_block) {
        if take(left, mine, tuple) {
            let fit = others_fit(left, rest, blocks_of, truth);
            give_back(left, mine, tuple);
            if fit {
                return true;
            }
        }
    }
    false
}

fn take(left: &mut [BTreeMap<&Tuple, usize>], blocks: &[usize], tuple: &Tuple) -> bool {
    if blocks.iter().any(|&block| left[block].get(tuple).is_none_or(|&n| n == 0)) {
        return false;
    }
    for &block in blocks {
        *left[block].get_mut(tuple).expect("looked for above") -= 1;
    }
    true
}

fn give_back(left: &mut [BTreeMap<&Tuple, usize>], blocks: &[usize], tuple: &Tuple) {
    for &block in blocks {
        *left[block].get_mut(tuple).expect("taken before") += 1;
    }
}

/// Whether rows satisfy requirements on columns `c0`, `c1`, ..., computed from the definitions. In the whole table each
/// of `n_values` values is taken to be equally frequent.
///
/// # Panics
/// If a requirement names another column.
pub fn stands(rows: &[Row], requirements: &[Requirement], n_values: u32) -> bool {
    let n = rows.len() as f64;
    let counts = |column: &str| {
        let position: usize = column[1..].parse().expect("columns are numbered");
        let mut counts: BTreeMap<u32, f64> = BTreeMap::new();
        for row in rows {
            *counts.entry(row.tuple[position]).or_default() += 1.0;
        }
        counts
    };
    let before = 1.0 / f64::from(n_values);
    let own_k = rows.iter().all(|row| row.k as usize <= rows.len());
    own_k
        && requirements.iter().all(|requirement| match requirement {
            Requirement::K(k) => rows.len() >= *k as usize,
            Requirement::PersonK { .. } => own_k,
            Requirement::DistinctL { column, l } => counts(column).len() >= *l as usize,
            Requirement::EntropyL { column, l } => {
                let entropy: f64 = counts(column).values().map(|count| -(count / n) * (count / n).ln()).sum();
                entropy >= l.ln() - 1e-9
            }
            Requirement::RecursiveCL { column, c, l } => {
                let mut counts: Vec<f64> = counts(column).into_values().collect();
                counts.sort_by(|a, b| b.total_cmp(a));
                counts[0] < c * counts.iter().skip(*l as usize - 1).sum::<f64>()
            }
            Requirement::TCloseness { column, t, .. } => {
                let counts = counts(column);
                let moved = |value| (counts.get(&value).unwrap_or(&0.0) / n - before).abs();
                (0..n_values).map(moved).sum::<f64>() / 2.0 <= t + 1e-9
            }
            Requirement::Alpha { column, alpha } => counts(column).values().all(|count| count / n <= alpha + 1e-9),
            Requirement::Beta { column, beta } => {
                counts(column).values().all(|count| (count / n - before) / before <= beta + 1e-9)
            }
            Requirement::EnhancedBeta { column, beta } => {
                counts(column).values().all(|count| (count / n - before) / before <= beta.min(-before.ln()) + 1e-9)
            }
        })
}
