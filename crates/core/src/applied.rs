//! [`apply_classes`]: gives the rows of a new table the cells of the classes of an earlier release.
//!
//! # Guarantee
//! Each released row shows exactly the cells of a class of the earlier release, and these cover its own values. Each class that
//! is shown satisfies the requirements with the new persons alone, so nothing depends on who is in the earlier release. A person
//! leaves with all rows. The order of rows changes nothing.
//! # Method
//! Each row goes to the class of least loss around it. While some class does not satisfy the requirements, the half of such classes
//! that lose least is given up: their rows go to the next class around them that is still open, and persons of whom some row finds
//! none are left out. Classes of more loss stay open longer, because they can take in the rows of others.
//! # Deviations
//! Intervals of a tree count the leaves of the new table, ranges are as wide as their labels say.
//! # Cost
//! For each different row the classes around it, found among those that fit in one column; then one pass over all rows per round,
//! of which there are about as many as the number of classes has digits in base 2.

use std::collections::{BTreeMap, BTreeSet};

use kohort_model::{
    Cells, Column, NULL, Persons, Progress, Release, ReleasedColumn, ReleasedTable, Requirement, Role, Table, Texts,
    Value,
};
use rayon::prelude::*;

use crate::encode::{Domain, Encoded, Rows};
use crate::loss::{PersonLoss, TableLoss};
use crate::ranks::text_ranks;
use crate::recode::is_copied;
use crate::requirement::{Rules, Tally, UnfitColumn};
use crate::suppress::n_persons;
use crate::{AnonymizeError, Anonymized, stop_if_cancelled};

/// Gives rows of `table` the cells of the classes that `earlier` shows, a table as it was read from a release. Quasi columns are
/// found by their names.
///
/// # Errors
/// If no class satisfies the requirements with the new persons.
pub fn apply_classes(
    table: &Table,
    earlier: &Table,
    requirements: &[Requirement],
    progress: &dyn Progress,
) -> Result<Anonymized, AnonymizeError> {
    let quasi = table.with_role(Role::Quasi);
    if quasi.is_empty() {
        return Err(AnonymizeError::NoQuasiColumn);
    }
    progress.begin("encode", 0);
    let shown = |&position: &usize| {
        let name = &table.columns[position].name;
        earlier.column(name).ok_or_else(|| UnfitColumn { column: name.clone() })
    };
    let shown: Vec<&Column> = quasi.iter().map(shown).collect::<Result<_, _>>()?;
    let pairs = quasi.iter().map(|&position| &table.columns[position]).zip(&shown);
    let columns: Vec<Column> = pairs.map(|(column, labels)| with_bounds(column, &labels.texts)).collect();
    let widened = Table { name: table.name.clone(), columns, n_rows: table.n_rows, person: None };
    let encoded = Encoded::new(&widened, &(0..quasi.len()).collect::<Vec<_>>())?;
    let earlier = EarlierClasses::read(&encoded, &widened.columns, &shown, earlier.n_rows);
    let all: Vec<u32> = (0..table.n_rows as u32).collect();
    let rows = encoded.fold(&all);
    let losses = earlier.losses(&encoded.domains);
    let around = earlier.around(&rows, &encoded.domains, &losses);
    stop_if_cancelled(progress)?;

    let everybody = Rules::compile(table, requirements, &all)?;
    let n_in = n_persons(&everybody, &all);
    progress.begin("apply", 0);
    let members = assign(table, requirements, (&rows, &around), &losses, progress)?;
    let kept: Vec<u32> = members.iter().flatten().copied().collect();
    if kept.is_empty() {
        return Err(AnonymizeError::NobodyFits { persons: n_in });
    }
    let n_out = n_persons(&everybody, &kept);
    let persons = Persons { n_in, n_out, suppressed: n_in - n_out };
    let applied = Applied { table, quasi: &quasi, shown: &shown, earlier: &earlier, members: &members };
    let loss = applied.loss(&encoded.domains, &everybody, persons).alone();
    Ok(Anonymized { release: applied.release(), loss, persons, algorithm: "apply", notes: Vec::new() })
}

/// The column with the bounds of these labels in its dictionary, so that a range is as wide as its label. Columns with a tree
/// stay as they are.
fn with_bounds(column: &Column, labels: &Texts) -> Column {
    let mut column = column.clone();
    if column.hierarchy.is_some() || !column.value_type.is_ordered() {
        return column;
    }
    let bounds: Vec<(&str, &str)> = labels.iter().filter_map(|label| bounds(&column, label)).collect();
    let mut texts = column.texts.clone();
    let mut known: BTreeSet<&str> = column.texts.iter().collect();
    for bound in bounds.into_iter().flat_map(|(low, high)| [low, high]) {
        if known.insert(bound) {
            texts.push(bound);
        }
    }
    drop(known);
    column.texts = texts;
    column
}

fn value<'t>(column: &Column, text: &'t str) -> Option<Value<'t>> {
    Value::parse(text, column.value_type, &column.notation)
}

/// The bounds of a range, or a value twice; `None` if the label is neither, or can be read in two ways.
fn bounds<'t>(column: &Column, label: &'t str) -> Option<(&'t str, &'t str)> {
    let is_value = |text: &str| value(column, text).is_some();
    if is_value(label) {
        return Some((label, label));
    }
    let inside = label.strip_prefix('[')?.strip_suffix(']')?;
    let separator = column.notation.range_separator(column.value_type);
    let ranges = inside.match_indices(separator).map(|(at, found)| (&inside[..at], &inside[at + found.len()..]));
    let mut ranges = ranges.filter(|(low, high)| is_value(low) && is_value(high));
    let range = ranges.next()?;
    ranges.next().is_none().then_some(range)
}

/// The classes of an earlier release, in the order in which it shows them.
struct EarlierClasses {
    n_columns: usize,
    /// For each class and column the id of the label in the earlier column.
    labels: Vec<u32>,
    /// For each class and column the codes that the label covers; `None` if it covers no value of the new table.
    intervals: Vec<Option<(u32, u32)>>,
}

impl EarlierClasses {
    fn read(encoded: &Encoded<'_>, columns: &[Column], shown: &[&Column], n_rows: usize) -> Self {
        let covered: Vec<Vec<Option<(u32, u32)>>> = (0..columns.len())
            .map(|column| intervals(&columns[column], &encoded.domains[column], &shown[column].texts))
            .collect();
        let mut known: BTreeSet<Vec<u32>> = BTreeSet::new();
        let mut earlier = EarlierClasses { n_columns: columns.len(), labels: Vec::new(), intervals: Vec::new() };
        for row in 0..n_rows {
            let labels: Vec<u32> = shown.iter().map(|column| column.ids[row]).collect();
            if known.contains(&labels) {
                continue;
            }
            for (column, &label) in labels.iter().enumerate() {
                earlier.labels.push(label);
                earlier.intervals.push(match label {
                    NULL => encoded.domains[column].null().map(|null| (null, null)),
                    label => covered[column][label as usize],
                });
            }
            known.insert(labels);
        }
        earlier
    }

    fn len(&self) -> usize {
        self.labels.len() / self.n_columns
    }

    fn labels(&self, class: usize) -> &[u32] {
        &self.labels[class * self.n_columns..][..self.n_columns]
    }

    fn intervals(&self, class: usize) -> &[Option<(u32, u32)>] {
        &self.intervals[class * self.n_columns..][..self.n_columns]
    }

    /// What a row loses in each class.
    fn losses(&self, domains: &[Domain]) -> Vec<f64> {
        let loss = |class: usize| {
            let width = |(domain, interval): (&Domain, &Option<(u32, u32)>)| {
                interval.map_or(1.0, |(lo, hi)| domain.width(lo, hi))
            };
            domains.iter().zip(self.intervals(class)).map(width).sum()
        };
        (0..self.len()).map(loss).collect()
    }

    /// For each folded row the classes that cover it, the one of least loss first.
    fn around(&self, rows: &Rows, domains: &[Domain], losses: &[f64]) -> Vec<Vec<u32>> {
        let usable: Vec<u32> = (0..self.len() as u32)
            .filter(|&class| self.intervals(class as usize).iter().all(Option::is_some))
            .collect();
        let interval = |class: u32, column: usize| self.intervals(class as usize)[column].unwrap_or((1, 0));
        let n_listed = |&column: &usize| -> u64 {
            usable.iter().map(|&class| interval(class, column)).map(|(lo, hi)| u64::from(hi - lo) + 1).sum()
        };
        let Some(first) = (0..self.n_columns).min_by_key(n_listed) else { return vec![Vec::new(); rows.len()] };
        let mut by_code: Vec<Vec<u32>> = vec![Vec::new(); domains[first].n_codes() as usize];
        for &class in &usable {
            let (lo, hi) = interval(class, first);
            by_code[lo as usize..=hi as usize].iter_mut().for_each(|classes| classes.push(class));
        }
        let of_row = |row: usize| {
            let cells = rows.cells(row as u32);
            let covers = |&&class: &&u32| {
                cells.iter().enumerate().all(|(column, code)| {
                    let (lo, hi) = interval(class, column);
                    (lo..=hi).contains(code)
                })
            };
            let mut classes: Vec<u32> = by_code[cells[first] as usize].iter().filter(covers).copied().collect();
            classes.sort_by(|&a, &b| losses[a as usize].total_cmp(&losses[b as usize]).then(a.cmp(&b)));
            classes
        };
        (0..rows.len()).into_par_iter().map(of_row).collect()
    }
}

/// The codes that each label covers; `None` if it covers no value of the column.
fn intervals(column: &Column, domain: &Domain, labels: &Texts) -> Vec<Option<(u32, u32)>> {
    let everything = (0, domain.n_codes() - 1);
    if let (Some(hierarchy), Some(tree)) = (&column.hierarchy, domain.tree()) {
        let interval = |label: &str| match hierarchy.node(label) {
            Some(node) => Some(tree.interval(node)).filter(|(lo, hi)| lo <= hi),
            None => (label == "*").then_some(everything),
        };
        return labels.iter().map(interval).collect();
    }
    if column.value_type.is_ordered() {
        let values: Vec<Value<'_>> = domain.texts().filter_map(|text| value(column, text)).collect();
        let interval = |label: &str| {
            if label == "*" {
                return Some(everything);
            }
            let (low, high) = bounds(column, label)?;
            let (low, high) = (value(column, low)?, value(column, high)?);
            let from = values.partition_point(|value| *value < low) as u32;
            let to = values.partition_point(|value| *value <= high) as u32;
            (from < to).then(|| (from, to - 1))
        };
        return labels.iter().map(interval).collect();
    }
    let codes: BTreeMap<&str, u32> = domain.texts().zip(0..).collect();
    let interval = |label: &str| match codes.get(label) {
        Some(&code) => Some((code, code)),
        None => (label == "*").then_some(everything),
    };
    labels.iter().map(interval).collect()
}

/// Puts each new row into a class of the earlier release. For each class, returns its rows in ascending order; the list is empty if the
/// class is given up.
fn assign(
    table: &Table,
    requirements: &[Requirement],
    (rows, around): (&Rows, &[Vec<u32>]),
    losses: &[f64],
    progress: &dyn Progress,
) -> Result<Vec<Vec<u32>>, AnonymizeError> {
    let n_classes = losses.len();
    let mut fold_of_row = vec![0u32; table.n_rows];
    for fold in 0..rows.len() as u32 {
        rows.members(fold).iter().for_each(|&row| fold_of_row[row as usize] = fold);
    }
    let mut is_open = vec![true; n_classes];
    let mut is_kept = vec![true; table.n_rows];
    loop {
        stop_if_cancelled(progress)?;
        let first_open: Vec<Option<u32>> =
            around.iter().map(|classes| classes.iter().copied().find(|&class| is_open[class as usize])).collect();
        leave_out(table, &mut is_kept, |row| first_open[fold_of_row[row] as usize].is_some());
        let mut members: Vec<Vec<u32>> = vec![Vec::new(); n_classes];
        let mut kept = Vec::new();
        for row in (0..table.n_rows).filter(|&row| is_kept[row]) {
            if let Some(class) = first_open[fold_of_row[row] as usize] {
                members[class as usize].push(row as u32);
                kept.push(row as u32);
            }
        }
        // Shares are those of the persons who are still there.
        let rules = Rules::compile(table, requirements, &kept)?;
        let mut tally = Tally::new(&rules);
        let mut failing: Vec<u32> = Vec::new();
        for (class, members) in (0..).zip(&members).filter(|(_, members)| !members.is_empty()) {
            tally.recount(members.iter().copied());
            if !tally.stands() {
                failing.push(class);
            }
        }
        if failing.is_empty() {
            return Ok(members);
        }
        failing.sort_by(|&a, &b| losses[a as usize].total_cmp(&losses[b as usize]).then(a.cmp(&b)));
        let n_given_up = failing.len().div_ceil(2);
        failing.iter().take(n_given_up).for_each(|&class| is_open[class as usize] = false);
    }
}

/// Leaves out persons of whom some row has no class, with all their rows.
fn leave_out(table: &Table, is_kept: &mut [bool], has_class: impl Fn(usize) -> bool) {
    match table.person_column() {
        None => (0..table.n_rows).for_each(|row| is_kept[row] &= has_class(row)),
        Some(person) => {
            let mut leaves = vec![false; person.texts.len()];
            (0..table.n_rows).filter(|&row| !has_class(row)).for_each(|row| leaves[person.ids[row] as usize] = true);
            (0..table.n_rows).for_each(|row| is_kept[row] &= !leaves[person.ids[row] as usize]);
        }
    }
}

/// A new table and its rows in classes of an earlier release.
struct Applied<'a> {
    table: &'a Table,
    quasi: &'a [usize],
    /// The quasi columns of the earlier release.
    shown: &'a [&'a Column],
    earlier: &'a EarlierClasses,
    /// The rows of each class.
    members: &'a [Vec<u32>],
}

impl Applied<'_> {
    /// Classes have the order of the earlier release, and rows of a class that of their copied cells, so the order tells nothing
    /// more than the cells.
    fn release(&self) -> Release {
        let copied: Vec<Vec<u32>> =
            self.table.columns.iter().filter(|column| is_copied(column)).map(text_ranks).collect();
        let cells = |row: u32| copied.iter().map(move |ranks| ranks[row as usize]);
        let mut sequence: Vec<(u32, u32)> = Vec::new();
        for (class, members) in (0..).zip(self.members) {
            let first = sequence.len();
            sequence.extend(members.iter().map(|&row| (row, class)));
            sequence[first..].sort_unstable_by(|&(a, _), &(b, _)| cells(a).cmp(cells(b)).then(a.cmp(&b)));
        }
        let column = |source: usize| {
            let column = &self.table.columns[source];
            let cells = match column.role {
                Role::Quasi => self.cells(self.quasi.iter().position(|&quasi| quasi == source)?, &sequence),
                Role::Sensitive | Role::Plain => Cells::Copied,
                Role::Key | Role::Identifier | Role::PersonK | Role::Drop => return None,
            };
            Some(ReleasedColumn { name: column.name.clone(), source, cells })
        };
        let columns = (0..self.table.columns.len()).filter_map(column).collect();
        let rows = sequence.iter().map(|&(row, _)| row).collect();
        Release { tables: vec![ReleasedTable { name: self.table.name.clone(), rows, columns }] }
    }

    /// The cells of a quasi column, as the earlier release spells them.
    fn cells(&self, quasi: usize, sequence: &[(u32, u32)]) -> Cells {
        let texts = &self.shown[quasi].texts;
        let mut numbers = vec![NULL; texts.len()];
        let mut labels = Texts::new();
        let mut number = |label: u32| {
            if label == NULL {
                return NULL;
            }
            let number = &mut numbers[label as usize];
            if *number == NULL {
                *number = labels.push(texts.get(label));
            }
            *number
        };
        let ids = sequence.iter().map(|&(_, class)| number(self.earlier.labels(class as usize)[quasi])).collect();
        Cells::Recoded { labels, ids }
    }

    fn loss(&self, domains: &[Domain], rules: &Rules, persons: Persons) -> TableLoss {
        let mut lm = vec![0.0; domains.len()];
        let (mut shares, mut n_released_rows) = (0.0, 0);
        let mut of_persons = PersonLoss::default();
        for (class, members) in self.members.iter().enumerate().filter(|(_, members)| !members.is_empty()) {
            let n_rows = members.len() as f64;
            for (column, domain) in domains.iter().enumerate() {
                let (lo, hi) = self.earlier.intervals(class)[column].unwrap_or((0, domain.n_codes() - 1));
                lm[column] += domain.width(lo, hi) * n_rows;
                shares += domain.leaf_share(lo, hi) * n_rows;
            }
            n_released_rows += members.len();
            let size = n_persons(rules, members) as f64;
            of_persons.dm += size * size;
            of_persons.deviation += size * size - size * f64::from(rules.k());
            of_persons.n_released += size;
            of_persons.n_classes += 1.0;
        }
        let suppressed = (self.table.n_rows - n_released_rows) as f64;
        of_persons.dm += persons.suppressed as f64 * persons.n_in as f64;
        let name = |column: usize| self.table.columns[self.quasi[column]].name.clone();
        TableLoss {
            n_rows: self.table.n_rows as f64,
            columns: (0..domains.len()).map(|column| (name(column), lm[column] + suppressed)).collect(),
            shares: shares + suppressed * domains.len() as f64,
            persons: of_persons,
        }
    }
}

#[cfg(test)]
mod tests {
    use kohort_model::{Silent, ValueType};

    use super::*;

    fn new_table(ages: &[&str], values: &[&str], persons: Option<&[&str]>) -> Table {
        let column =
            |name: &str, role, cells: &[&str]| Column::from_cells(name, role, cells.iter().map(|&cell| Some(cell)));
        let mut columns =
            vec![column("age", Role::Quasi, ages).typed(ValueType::Integer), column("x", Role::Sensitive, values)];
        columns.extend(persons.map(|persons| column("id", Role::Identifier, persons)));
        Table { name: "t".to_owned(), columns, n_rows: ages.len(), person: persons.map(|_| 2) }
    }

    fn earlier(labels: &[&str]) -> Table {
        let age = Column::from_cells("age", Role::Quasi, labels.iter().map(|&label| Some(label)));
        Table { name: "t".to_owned(), columns: vec![age.typed(ValueType::Integer)], n_rows: labels.len(), person: None }
    }

    /// The label of each row of the new table, empty if the row is left out.
    fn applied(table: &Table, earlier: &Table, requirements: &[Requirement]) -> Result<Vec<String>, AnonymizeError> {
        let done = apply_classes(table, earlier, requirements, &Silent)?;
        let released = &done.release.tables[0];
        let Cells::Recoded { labels, ids } = &released.columns[0].cells else { panic!("age is generalized") };
        let mut of_row = vec![String::new(); table.n_rows];
        for (&row, &id) in released.rows.iter().zip(ids) {
            of_row[row as usize] = labels.get(id).to_owned();
        }
        Ok(of_row)
    }

    #[test]
    fn new_rows_show_the_labels_of_the_earlier_release() {
        let table = new_table(&["22", "25", "41", "44", "70"], &["a"; 5], None);
        let found = applied(&table, &earlier(&["[20,29]", "[20,29]", "[40,49]", "[50,69]"]), &[Requirement::K(2)]);
        assert_eq!(found.unwrap(), ["[20,29]", "[20,29]", "[40,49]", "[40,49]", ""]);
    }

    #[test]
    fn a_class_that_too_few_new_persons_are_in_is_given_up() {
        let table = new_table(&["22", "41", "44"], &["a"; 3], None);
        let found = applied(&table, &earlier(&["[20,29]", "[40,49]"]), &[Requirement::K(2)]);
        assert_eq!(found.unwrap(), ["", "[40,49]", "[40,49]"]);
        // Another class around the person takes her in.
        let found = applied(&table, &earlier(&["[20,29]", "[20,49]", "[40,42]"]), &[Requirement::K(2)]);
        assert_eq!(found.unwrap(), ["[20,49]"; 3]);
    }

    #[test]
    fn sensitive_requirements_hold_among_the_new_persons_alone() {
        let table = new_table(&["22", "25", "41", "44"], &["a", "a", "a", "b"], None);
        let l = Requirement::DistinctL { column: "x".to_owned(), l: 2 };
        let found = applied(&table, &earlier(&["[20,29]", "[40,49]"]), &[Requirement::K(2), l]);
        assert_eq!(found.unwrap(), ["", "", "[40,49]", "[40,49]"]);
    }

    #[test]
    fn a_person_leaves_with_all_rows_and_counts_once() {
        let table = new_table(&["22", "41", "44", "41", "45"], &["a"; 5], Some(&["1", "1", "2", "3", "3"]));
        let found = applied(&table, &earlier(&["[20,29]", "[40,49]"]), &[Requirement::K(2)]);
        assert_eq!(found.unwrap(), ["", "", "[40,49]", "[40,49]", "[40,49]"]);
        let alone = new_table(&["41", "44"], &["a"; 2], Some(&["1", "1"]));
        let found = applied(&alone, &earlier(&["[40,49]"]), &[Requirement::K(2)]);
        assert_eq!(found, Err(AnonymizeError::NobodyFits { persons: 1 }));
    }

    #[test]
    fn ranges_are_as_wide_as_their_labels() {
        let table = new_table(&["24", "25"], &["a"; 2], None);
        let done = apply_classes(&table, &earlier(&["[20,30]", "[60,120]"]), &[Requirement::K(2)], &Silent).unwrap();
        assert!((done.loss.lm - 0.1).abs() < 1e-12, "{}", done.loss.lm);
    }
}
