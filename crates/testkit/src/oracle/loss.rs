//! The loss of a release, recomputed from its labels.
//!
//! If a column has nulls, null counts as a leaf of its own below the root, so the root covers one leaf more.

use std::collections::BTreeMap;

use kohort_model::{Column, Release, Requirement, Role, Table, Value};

use super::{classes, person, persons};

/// Loss by definition.
#[derive(Clone, Debug, PartialEq)]
pub struct NaiveLoss {
    /// LM: the mean over all quasi cells of all rows; suppressed cells count 1.
    pub lm: f64,
    /// NCP: like `lm`, but a node of a hierarchy costs its leaves divided by all leaves.
    pub ncp: f64,
    /// DM: the sum of squared class sizes; each suppressed person adds the number of persons in the table.
    pub dm: f64,
    /// Mean persons per class.
    pub average_class: f64,
    /// Sum, over all quasi cells of all rows, of the cell's width divided by the column's; categories are in their
    /// order.
    pub uncertainty_penalty: f64,
    /// Sum, over persons and classes, of the class size minus the k that the person needs.
    pub k_deviation: f64,
    /// LM per quasi column.
    pub columns: BTreeMap<String, f64>,
}

/// LM and NCP of a cell: `None` is null.
///
/// # Panics
/// If the label means nothing in this column.
pub fn cell_loss(column: &Column, label: Option<&str>) -> (f64, f64) {
    let Some(label) = label else { return (0.0, 0.0) };
    let n_nulls = usize::from(column.has_nulls());
    if let Some(hierarchy) = &column.hierarchy {
        let node = hierarchy.node(label).expect("a label of a hierarchical column is a node");
        if hierarchy.is_leaf(node) {
            return (0.0, 0.0);
        }
        let leaves = hierarchy.leaves();
        let below = leaves.iter().filter(|&&leaf| hierarchy.path(leaf).any(|ancestor| ancestor == node)).count();
        let below = below + if node == hierarchy.root() { n_nulls } else { 0 };
        let all = leaves.len() + n_nulls;
        // A node above a single leaf tells as much as the leaf.
        return if below == 1 { (0.0, 1.0 / all as f64) } else { shares(below, all) };
    }
    if label == "*" {
        return (1.0, 1.0);
    }
    let parse = |text| Value::parse(text, column.value_type, &column.notation);
    let range = label.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).and_then(|both| both.split_once(','));
    let Some((low, high)) = range.and_then(|(low, high)| Some((parse(low)?, parse(high)?))) else {
        parse(label).expect("what is neither '*' nor a range is a value");
        return (0.0, 0.0);
    };
    let mut values: Vec<Value<'_>> = column.texts.iter().filter_map(parse).collect();
    values.sort_unstable();
    let (first, last) = (values[0], values[values.len() - 1]);
    // A range that is wider than the column loses everything.
    let width = f64::min(high.distance_from(&low) / last.distance_from(&first), 1.0);
    (width, width)
}

fn shares(below: usize, all: usize) -> (f64, f64) {
    ((below - 1) as f64 / (all - 1) as f64, below as f64 / all as f64)
}

/// The loss of a release, computed without looking at what it claims.
pub fn naive_loss(table: &Table, release: &Release, requirements: &[Requirement]) -> NaiveLoss {
    let quasi: Vec<&Column> = table.columns.iter().filter(|column| column.role == Role::Quasi).collect();
    let all_rows: Vec<u32> = (0..table.n_rows as u32).collect();
    let released = &release.tables[0].rows;
    let classes = classes(table, release);
    let n_left_out = (table.n_rows - released.len()) as f64;
    let persons_left_out = persons(table, &all_rows).len() - persons(table, released).len();

    let (mut lm, mut ncp) = (vec![n_left_out; quasi.len()], n_left_out * quasi.len() as f64);
    let (mut squares, mut members, mut k_deviation) = (0.0, 0, 0.0);
    for class in &classes {
        for (position, (column, cell)) in quasi.iter().zip(&class.cells).enumerate() {
            let (cell_lm, cell_ncp) = cell_loss(column, cell.as_deref());
            lm[position] += cell_lm * class.rows.len() as f64;
            ncp += cell_ncp * class.rows.len() as f64;
        }
        let n_persons = persons(table, &class.rows).len();
        squares += (n_persons * n_persons) as f64;
        members += n_persons;
        let needed = needed_ks(table, requirements, &class.rows);
        k_deviation += needed.iter().map(|&needed| n_persons as f64 - needed as f64).sum::<f64>();
    }
    let n_cells = (table.n_rows * quasi.len()) as f64;
    NaiveLoss {
        lm: lm.iter().sum::<f64>() / n_cells,
        ncp: ncp / n_cells,
        dm: squares + (persons_left_out * persons(table, &all_rows).len()) as f64,
        average_class: members as f64 / classes.len() as f64,
        uncertainty_penalty: lm.iter().sum(),
        k_deviation,
        columns: quasi.iter().zip(lm).map(|(column, lm)| (column.name.clone(), lm / table.n_rows as f64)).collect(),
    }
}

/// The k that each person of a class needs.
fn needed_ks(table: &Table, requirements: &[Requirement], rows: &[u32]) -> Vec<u32> {
    let k = requirements.iter().filter_map(Requirement::k).max().unwrap_or(1);
    let own_k = requirements.iter().find_map(|requirement| table.column(requirement.own_k_column()?));
    let mut needed: BTreeMap<String, u32> = BTreeMap::new();
    for &row in rows {
        let own = own_k.and_then(|column| column.cell(row as usize)).map_or(0, |text| text.parse().expect("a number"));
        let of_person = needed.entry(person(table, row)).or_insert(k);
        *of_person = own.max(*of_person);
    }
    needed.into_values().collect()
}
