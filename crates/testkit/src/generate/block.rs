//! [`block`]: small random blocks of A-views that satisfy all requirements.
//!
//! Classes are drawn first, and then everybody's wishes are reduced to what their class satisfies. So the engine does
//! not decide what blocks look like, and there are odd ones that no partitioner makes.

use std::collections::BTreeSet;

use kohort_model::{
    ALONE, Block, BlockCells, Column, Consent, Disclosure, Distance, Hierarchy, Requirement, Role, Table, ValueType,
};

use crate::mutations::Cell;
use crate::mutations::blocks::{ShownBlock, labelled};
use crate::mutations::judges::Harm;
use crate::random::Random;

/// The positions of some columns; all others are quasi columns.
const NAME: usize = 0;
const DISEASE: usize = 3;
const WARD: usize = 4;
const N_COLUMNS: usize = 5;

const ZIPS: &str = "88512;885**;*****\n88591;885**;*****\n89321;893**;*****\n";
const DISEASES: &str = "flu;viral;any\nfever;viral;any\nulcer;stomach;any\ngout;joint;any\n";

/// The block of a seed: the first valid one of those drawn with this seed and the next ones.
pub fn block(seed: u64) -> ShownBlock {
    let mut random = Random::new(seed);
    loop {
        let drawn = draw(&mut random);
        if drawn.harm() == Harm::Harmless {
            return drawn;
        }
    }
}

fn draw(random: &mut Random) -> ShownBlock {
    let n_rows = 2 + random.below(6);
    let private = private(random, n_rows);
    let all: Vec<u32> = (0..n_rows as u32).collect();
    let n_shown = if random.once_in(3) { 1 + random.below(n_rows) } else { n_rows };
    let rows = random.choose(&all, n_shown);
    let n_classes = 1 + random.below(3);
    // Classes are drawn per row, so a class has all rows of a person only by chance.
    let drawn: Vec<u32> = rows.iter().map(|_| random.below(n_classes) as u32).collect();
    let name = |row: usize| private.columns[NAME].cell(rows[row] as usize);
    let disclosure = if random.once_in(3) { Disclosure::Row } else { Disclosure::Class };
    let mut consent = Consent { k: vec![2; n_rows], level: vec![0; n_rows], refused: vec![0; n_rows] };
    let mut classes = vec![ALONE; rows.len()];
    for row in 0..rows.len() {
        let crowd: BTreeSet<_> = (0..rows.len()).filter(|&other| drawn[other] == drawn[row]).map(name).collect();
        let wish = random.below(4).min(crowd.len()) as u32;
        consent.k[rows[row] as usize] = wish;
        if wish >= 2 {
            classes[row] = drawn[row];
        }
    }
    for source in 0..n_rows {
        consent.level[source] = *random.pick(&[0, 0, 0, 1, 2]);
        if random.once_in(6) {
            consent.refused[source] = 1 << random.below(N_COLUMNS);
        }
    }
    let requirements = requirements(random);
    let mut shown =
        ShownBlock { block: Block { rows, classes, columns: Vec::new() }, private, consent, disclosure, requirements };
    for position in 0..N_COLUMNS {
        let cells = shown.cells_of(position, random);
        shown.block.columns.push(cells);
    }
    shown
}

fn private(random: &mut Random, n_rows: usize) -> Table {
    let mut draw = |values: &[&'static str], nulls: usize| -> Vec<Option<&'static str>> {
        (0..n_rows).map(|_| Some(*random.pick(values)).filter(|_| nulls == 0 || !random.once_in(nulls))).collect()
    };
    let ages = draw(&["20", "25", "29", "29", "50"], 12);
    let zips = draw(&["88512", "88591", "89321"], 12);
    let diseases = draw(&["flu", "fever", "ulcer", "gout"], 12);
    let wards = draw(&["a", "b"], 6);
    let names = ["Ann", "Bob", "Cid", "Dan", "Eve", "Fay", "Gil", "Hal"];
    let several = random.once_in(4);
    let mut name = |row: usize| Some(if several && random.once_in(2) { names[row / 2] } else { names[row] });
    let names: Vec<Option<&str>> = (0..n_rows).map(&mut name).collect();
    let tree = |paths: &str| Hierarchy::from_paths(paths).expect("the paths are of a tree");
    let columns = vec![
        Column::from_cells("name", Role::Identifier, names),
        Column::from_cells("age", Role::Quasi, ages).typed(ValueType::Integer),
        Column::from_cells("zip", Role::Quasi, zips).with_hierarchy(tree(ZIPS)),
        Column::from_cells("disease", Role::Sensitive, diseases).with_hierarchy(tree(DISEASES)),
        Column::from_cells("ward", Role::Plain, wards),
    ];
    Table { name: "patients".to_owned(), columns, n_rows, person: Some(NAME) }
}

/// Random requirements. No threshold equals a share that small classes can have, so rounding never decides.
fn requirements(random: &mut Random) -> Vec<Requirement> {
    let column = || "disease".to_owned();
    let more = [
        None,
        Some(Requirement::DistinctL { column: column(), l: 2 }),
        Some(Requirement::EntropyL { column: column(), l: 1.71 }),
        Some(Requirement::RecursiveCL { column: column(), c: 1.37, l: 2 }),
        Some(Requirement::TCloseness { column: column(), t: 0.437, distance: Distance::Equal }),
        Some(Requirement::Alpha { column: column(), alpha: 0.71 }),
        Some(Requirement::Beta { column: column(), beta: 1.53 }),
        Some(Requirement::EnhancedBeta { column: column(), beta: 1.53 }),
    ];
    let k = Requirement::K(1 + random.below(2) as u32);
    [k].into_iter().chain(random.pick(&more).clone()).collect()
}

impl ShownBlock {
    /// The cells of a column, as precise as everybody allows.
    fn cells_of(&self, position: usize, random: &mut Random) -> BlockCells {
        let (rows, classes) = (&self.block.rows, &self.block.classes);
        let refuses = |row: usize| self.consent.refused[rows[row] as usize] >> position & 1 == 1;
        let together = |row: usize| -> Vec<usize> {
            let is_with = |other: &usize| *other == row || classes[row] != ALONE && classes[*other] == classes[row];
            (0..rows.len()).filter(is_with).collect()
        };
        let is_refused = |row: usize| match self.disclosure {
            Disclosure::Class => together(row).into_iter().any(refuses),
            Disclosure::Row => refuses(row),
        };
        let column = &self.private.columns[position];
        let value = |row: usize| column.cell(rows[row] as usize);
        match position {
            NAME => {
                let hidden = (0..rows.len()).map(|row| self.consent.k[rows[row] as usize] != 0 || is_refused(row));
                BlockCells::Own { hidden: hidden.collect() }
            }
            WARD => BlockCells::Own { hidden: (0..rows.len()).map(is_refused).collect() },
            DISEASE if self.consent.level.iter().all(|&level| level == 0) && random.once_in(2) => {
                BlockCells::Own { hidden: (0..rows.len()).map(is_refused).collect() }
            }
            _ => {
                let cell = |row: usize| -> Cell {
                    if is_refused(row) {
                        let root = column.hierarchy.as_ref().map_or("*", |tree| tree.label(tree.root()));
                        return Some(root.to_owned()).filter(|_| self.disclosure == Disclosure::Class);
                    }
                    match position {
                        DISEASE => {
                            let level = usize::from(self.consent.level[rows[row] as usize]);
                            covering(column, &[value(row)], level)
                        }
                        _ => covering(column, &together(row).into_iter().map(value).collect::<Vec<_>>(), 0),
                    }
                };
                labelled(&(0..rows.len()).map(cell).collect::<Vec<_>>())
            }
        }
    }
}

/// The lowest label that covers some values, at least this many levels up.
fn covering(column: &Column, values: &[Option<&str>], level: usize) -> Cell {
    let Some(tree) = &column.hierarchy else {
        let numbers: Option<Vec<i64>> = values.iter().map(|value| value.and_then(|text| text.parse().ok())).collect();
        return match numbers {
            Some(numbers) => {
                let (low, high) = (numbers.iter().min()?, numbers.iter().max()?);
                Some(if low == high { low.to_string() } else { format!("[{low},{high}]") })
            }
            None => Some("*".to_owned()).filter(|_| values.iter().any(Option::is_some)),
        };
    };
    if values.iter().all(Option::is_none) {
        return None;
    }
    let path = |value: &Option<&str>| -> Vec<u32> {
        let leaf = value.and_then(|text| tree.leaf(text));
        leaf.map_or_else(|| vec![tree.root()], |leaf| tree.path(leaf).collect())
    };
    let first = path(&values[0]);
    let start = if first.len() == 1 { 0 } else { level.min(first.len() - 1) };
    let common = first[start..].iter().find(|node| values.iter().all(|value| path(value).contains(node)));
    common.map(|&node| tree.label(node).to_owned())
}
