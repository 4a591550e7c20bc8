//! [`verify_block`]: whether rows of an A-view may leave it.
//!
//! # Guarantee
//! - Every private row is shown at most once, and every label covers the value under it.
//! - A person with a k of 2 or more is in a class. The rows of a class show the same labels in every quasi column, the
//!   class has as many persons as each of its members asks for, and it satisfies every requirement, counted in the
//!   private sensitive values and also in the values as they are shown. A person with a k of 0 or 1 is in no class.
//! - Identifiers are shown only for persons with a k of 0. Sensitive values are generalized as far as their person
//!   asks.
//! - If a person refuses a column, its cell says nothing: in the person's row, or in all rows of the class (see
//!   [`Disclosure`]). Readers take a hidden cell for "any value". So with [`Disclosure::Row`], all rows of a class
//!   count as one class although some of their cells are hidden. That holds only as long as nobody knows who refused.
//!
//! The caller requires closeness to the whole view only if the block is the whole view.

use std::collections::HashMap;
use std::sync::Arc;

use kohort_model::{ALONE, Block, BlockCells, Column, Consent, Disclosure, NULL, Requirement, Role, Table, Texts};

use crate::count::cells::CellIds;
use crate::count::count_classes;
use crate::count::grouping::Classes;
use crate::count::roll::{OwnK, Roll, Sensitive, Shares, persons_of, sensitive_names};
use crate::reading::coverage::Coverage;
use crate::single::recoding::source_rows;
use crate::structure::{Places, cells_without_text, check_table, column_length, place};
use crate::{Findings, Verifiable, Verified, Violation, Violations};

/// The column name under which each person's own k is required.
const OWN_K: &str = "k of the person";

/// Private rows that can be read as a table.
pub trait ReadAsTable {
    /// The table.
    fn table(&self) -> &Table;
}

impl ReadAsTable for Table {
    fn table(&self) -> &Table {
        self
    }
}

impl<P: ReadAsTable> ReadAsTable for Arc<P> {
    fn table(&self) -> &Table {
        P::table(self)
    }
}

/// A block together with the private rows that it shows, so that unchanged cells can be copied only from the rows that
/// were verified.
pub struct BlockOf<P> {
    block: Block,
    private: P,
}

impl<P> BlockOf<P> {
    /// The shown rows.
    pub fn block(&self) -> &Block {
        &self.block
    }

    /// The private rows that are shown.
    pub fn private(&self) -> &P {
        &self.private
    }
}

impl<P> Verifiable for BlockOf<P> {
    type Findings = Findings;
}

/// Verifies rows of an A-view against the private rows they come from, and binds the two together. Every person's own k
/// is required, whether or not `requirements` say so.
///
/// # Errors
/// Everything that is wrong with the rows.
pub fn verify_block<P: ReadAsTable>(
    block: Block,
    private: P,
    consent: &Consent,
    disclosure: Disclosure,
    requirements: &[Requirement],
) -> Result<Verified<BlockOf<P>>, Violations> {
    let findings = count_block(&block, private.table(), consent, disclosure, requirements)?;
    Ok(Verified::attest(BlockOf { block, private }, findings))
}

fn count_block(
    block: &Block,
    original: &Table,
    consent: &Consent,
    disclosure: Disclosure,
    requirements: &[Requirement],
) -> Result<Findings, Violations> {
    let mut violations = check_table(original);
    violations.extend(structure(block, original, consent));
    // The checks below look cells up by position, so no cell may be missing.
    if !violations.is_empty() {
        return Err(Violations(violations));
    }
    let shown = Shown::new(block, original, consent, disclosure);
    violations.extend(shown.outside_class());
    for position in 0..original.columns.len() {
        violations.extend(shown.column_violations(position));
    }
    match shown.count(requirements) {
        Err(Violations(more)) => violations.extend(more),
        Ok(findings) if violations.is_empty() => return Ok(findings),
        Ok(_) => {}
    }
    Err(Violations(violations))
}

/// The faults that make it impossible to look cells up.
fn structure(block: &Block, original: &Table, consent: &Consent) -> Vec<Violation> {
    let mut violations = source_rows(&block.rows, original);
    for n_wishes in [consent.k.len(), consent.level.len(), consent.refused.len()] {
        if n_wishes != original.n_rows {
            let (n_wishes, n_rows) = (n_wishes as u64, original.n_rows as u64);
            violations.push(Violation::ConsentLength { n_wishes, n_rows });
        }
    }
    violations.extend(column_length("class", block.classes.len(), block.rows.len()));
    let n_columns = original.columns.len();
    for column in &original.columns[block.columns.len().min(n_columns)..] {
        violations.push(Violation::ColumnMissing { column: column.name.clone(), role: column.role });
    }
    for position in n_columns..block.columns.len() {
        violations.push(Violation::ColumnWithoutSource { column: format!("column {}", position + 1) });
    }
    for (column, cells) in original.columns.iter().zip(&block.columns) {
        let name = &column.name;
        match cells {
            BlockCells::Labels { labels, ids } => {
                violations.extend(column_length(name, ids.len(), block.rows.len()));
                violations.extend(cells_without_text(name, ids, labels.len()));
            }
            BlockCells::Own { hidden } => violations.extend(column_length(name, hidden.len(), block.rows.len())),
        }
        let expected = match (column.role, cells) {
            (Role::Quasi, BlockCells::Own { .. }) => "generalized",
            (Role::Identifier | Role::Plain, BlockCells::Labels { .. }) => "unchanged",
            (Role::Key | Role::PersonK | Role::Drop, _) => {
                violations.push(Violation::ColumnForbidden { column: name.clone(), role: column.role });
                continue;
            }
            (Role::Quasi | Role::Identifier | Role::Plain | Role::Sensitive, _) => continue,
        };
        violations.push(Violation::WrongCells { column: name.clone(), role: column.role, expected });
    }
    violations
}

/// A well-formed block.
struct Shown<'a> {
    block: &'a Block,
    original: &'a Table,
    consent: &'a Consent,
    disclosure: Disclosure,
    /// The class of each row, or [`ALONE`]. Classes are numbered anew without gaps, because a block may use any
    /// numbers, and lists here have one entry per class.
    classes: Vec<u32>,
    n_classes: usize,
}

impl<'a> Shown<'a> {
    fn new(block: &'a Block, original: &'a Table, consent: &'a Consent, disclosure: Disclosure) -> Self {
        let mut numbers: HashMap<u32, u32> = HashMap::new();
        let mut classes = Vec::with_capacity(block.classes.len());
        for &class in &block.classes {
            let next = numbers.len() as u32;
            classes.push(if class == ALONE { ALONE } else { *numbers.entry(class).or_insert(next) });
        }
        Shown { block, original, consent, disclosure, classes, n_classes: numbers.len() }
    }

    fn n_rows(&self) -> usize {
        self.block.rows.len()
    }

    fn k(&self, row: usize) -> u32 {
        self.consent.k[self.block.rows[row] as usize]
    }

    fn refuses(&self, row: usize, position: usize) -> bool {
        // A refusal is a bit of a 64-bit word, so columns beyond the 64th count as refused.
        position >= 64 || self.consent.refused[self.block.rows[row] as usize] >> position & 1 == 1
    }

    fn outside_class(&self) -> Option<Violation> {
        let wrong = |row: usize| (self.k(row) >= 2) == (self.classes[row] == ALONE);
        let (n, first_row) = place(self.n_rows(), wrong)?;
        Some(Violation::OutsideClass { n, first_row })
    }

    fn column_violations(&self, position: usize) -> Vec<Violation> {
        let column = &self.original.columns[position];
        let name = || column.name.clone();
        let mut violations = Vec::new();
        let silent = Silent::new(column, &self.block.columns[position]);
        if column.role == Role::Identifier
            && let Some((n, first_row)) = place(self.n_rows(), |row| self.k(row) != 0 && !silent.at(row))
        {
            violations.push(Violation::IdentifierShown { column: name(), n, first_row });
        }
        if let Some((n, first_row)) = self.refused_shown(position, &silent) {
            violations.push(Violation::RefusedShown { column: name(), n, first_row });
        }
        if column.role == Role::Sensitive
            && let Some((n, first_row)) = self.not_raised(position, &silent)
        {
            violations.push(Violation::NotRaised { column: name(), n, first_row });
        }
        if let BlockCells::Labels { labels, ids } = &self.block.columns[position] {
            let coverage = Coverage::new(column, labels);
            let uncovered =
                |row: usize| ids[row] != NULL && !coverage.covers(ids[row], column.ids[self.block.rows[row] as usize]);
            if let Some((n, first_row)) = place(self.n_rows(), uncovered) {
                violations.push(Violation::NotCovered { column: name(), n, first_row });
            }
            if column.role == Role::Quasi
                && let Some((n, first_row)) = self.differing(&CellIds::by_text(ids, labels))
            {
                violations.push(Violation::ClassDiffers { column: name(), n, first_row });
            }
        }
        violations
    }

    /// Cells that say something although they are refused: how many, and the first row.
    fn refused_shown(&self, position: usize, silent: &Silent<'_>) -> Option<(u64, u64)> {
        let mut class_refuses = vec![false; self.n_classes];
        if self.disclosure == Disclosure::Class {
            for (row, &class) in self.classes.iter().enumerate() {
                if class != ALONE && self.refuses(row, position) {
                    class_refuses[class as usize] = true;
                }
            }
        }
        let must_be_silent = |row: usize| {
            let class = self.classes[row];
            self.refuses(row, position) || class != ALONE && class_refuses[class as usize]
        };
        place(self.n_rows(), |row| must_be_silent(row) && !silent.at(row))
    }

    /// Sensitive cells below the level that their person asks for: how many, and the first row.
    fn not_raised(&self, position: usize, silent: &Silent<'_>) -> Option<(u64, u64)> {
        let column = &self.original.columns[position];
        let hierarchy = column.hierarchy.as_deref();
        let (labels, ids) = match &self.block.columns[position] {
            BlockCells::Labels { labels, ids } => (Some(labels), ids.as_slice()),
            BlockCells::Own { .. } => (None, [].as_slice()),
        };
        let nodes: Vec<Option<u32>> = labels.map_or_else(Vec::new, |labels| {
            labels.iter().map(|label| hierarchy.and_then(|hierarchy| hierarchy.node(label))).collect()
        });
        let leaves: Vec<Option<u32>> =
            column.texts.iter().map(|text| hierarchy.and_then(|hierarchy| hierarchy.leaf(text))).collect();
        let raised = |row: usize| {
            let source = self.block.rows[row] as usize;
            let level = usize::from(self.consent.level[source]);
            if level == 0 || silent.at(row) || column.ids[source] == NULL {
                return true;
            }
            let (Some(hierarchy), Some(leaf)) = (hierarchy, leaves[column.ids[source] as usize]) else { return false };
            labels.is_some() && hierarchy.path(leaf).skip(level).any(|above| nodes[ids[row] as usize] == Some(above))
        };
        place(self.n_rows(), |row| !raised(row))
    }

    /// Rows whose label differs from that of the first row of their class: how many, and the first row. With
    /// [`Disclosure::Row`], a hidden cell differs from no label.
    fn differing(&self, cells: &CellIds<'_>) -> Option<(u64, u64)> {
        let mut first = vec![None; self.n_classes];
        let mut differing = Places::default();
        for (row, &class) in self.classes.iter().enumerate().filter(|&(_, &class)| class != ALONE) {
            let cell = cells.get(row);
            if self.disclosure == Disclosure::Row && cell == cells.null() {
                continue;
            }
            if *first[class as usize].get_or_insert(cell) != cell {
                differing.add(row + 1);
            }
        }
        differing.found()
    }

    /// Counts the classes twice: by the private sensitive values, and by the values as they are shown.
    fn count(&self, requirements: &[Requirement]) -> Result<Findings, Violations> {
        let places: Vec<u32> = (0..self.n_rows() as u32).filter(|&row| self.classes[row as usize] != ALONE).collect();
        let mut requirements = requirements.to_vec();
        requirements.push(Requirement::PersonK { column: OWN_K.to_owned() });
        let mut findings = self.counted(&places, &requirements, SensitiveCells::Private)?;
        let mut unmet = std::mem::take(&mut findings.unmet);
        for name in sensitive_names(&requirements) {
            let of_column: Vec<Requirement> =
                requirements.iter().filter(|requirement| requirement.column() == Some(name)).cloned().collect();
            let telling = self.in_telling_classes(&places, name);
            unmet.extend(self.counted(&telling, &of_column, SensitiveCells::Shown)?.unmet);
        }
        if unmet.is_empty() { Ok(findings) } else { Err(Violations(unmet)) }
    }

    /// The rows of classes in which at least one cell of the column says something.
    fn in_telling_classes(&self, places: &[u32], name: &str) -> Vec<u32> {
        let Some(position) = self.original.position(name) else { return places.to_vec() };
        let silent = Silent::new(&self.original.columns[position], &self.block.columns[position]);
        let mut tells = vec![false; self.n_classes];
        for &row in places {
            tells[self.classes[row as usize] as usize] |= !silent.at(row as usize);
        }
        places.iter().copied().filter(|&row| tells[self.classes[row as usize] as usize]).collect()
    }

    fn counted(
        &self,
        places: &[u32],
        requirements: &[Requirement],
        sensitive_cells: SensitiveCells,
    ) -> Result<Findings, Violations> {
        if places.is_empty() {
            return Ok(Findings::uncounted(self.n_rows() as u64));
        }
        let sources: Vec<u32> = places.iter().map(|&row| self.block.rows[row as usize]).collect();
        let persons = persons_of(self.original, Some(&sources))?;
        let n_persons = persons.as_ref().map_or(sources.len(), CellIds::n_numbers);
        let mut own_k = vec![0u64; n_persons];
        for (place, &source) in sources.iter().enumerate() {
            let person = persons.as_ref().map_or(place, |persons| persons.get(place) as usize);
            own_k[person] = own_k[person].max(u64::from(self.consent.k[source as usize]));
        }
        let shown_columns: Vec<Column> = match sensitive_cells {
            SensitiveCells::Private => Vec::new(),
            SensitiveCells::Shown => self.shown_sensitive(places),
        };
        let names = sensitive_names(requirements);
        let named = |column: &&Column| names.contains(&column.name.as_str());
        let sensitive: Vec<Sensitive<'_>> = match sensitive_cells {
            SensitiveCells::Private => {
                let columns = self.original.columns.iter().filter(named);
                columns.map(|column| Sensitive::new(column, column, Some(&sources))).collect()
            }
            SensitiveCells::Shown => {
                shown_columns.iter().filter(named).map(|column| Sensitive::new(column, column, None)).collect()
            }
        };
        let own_k = vec![OwnK::new(OWN_K.to_owned(), own_k)];
        let n_rows = places.len();
        let roll = Roll { n_rows, quasi: Vec::new(), persons, shares: Shares::Pairs, sensitive, own_k };
        count_classes(&roll, requirements, &self.classes_as_read(places))
    }

    /// The classes that a reader sees: rows with the same released cells. With [`Disclosure::Row`], where cells may be
    /// hidden in single rows, the classes of the block.
    fn classes_as_read(&self, places: &[u32]) -> Classes {
        let n_rows = places.len();
        if self.disclosure == Disclosure::Row {
            let classes: Vec<u32> = places.iter().map(|&row| self.classes[row as usize]).collect();
            return Classes::group(&[&CellIds::by_id(classes, self.n_classes)], n_rows);
        }
        let quasi: Vec<CellIds<'_>> = self
            .original
            .columns
            .iter()
            .zip(&self.block.columns)
            .filter(|(column, _)| column.role == Role::Quasi)
            .filter_map(|(_, cells)| match cells {
                BlockCells::Labels { labels, ids } => Some(CellIds::by_text(ids, labels).of_rows(Some(places))),
                BlockCells::Own { .. } => None,
            })
            .collect();
        Classes::group(&quasi.iter().collect::<Vec<_>>(), n_rows)
    }

    /// The sensitive columns as these rows show them.
    fn shown_sensitive(&self, places: &[u32]) -> Vec<Column> {
        let columns = self.original.columns.iter().zip(&self.block.columns);
        let sensitive = columns.filter(|(column, _)| column.role == Role::Sensitive);
        sensitive
            .map(|(column, cells)| match cells {
                BlockCells::Labels { labels, ids } => Column {
                    texts: labels.clone(),
                    ids: places.iter().map(|&row| ids[row as usize]).collect(),
                    hierarchy: None,
                    value_type: kohort_model::ValueType::Text,
                    ..column.without_cells()
                },
                BlockCells::Own { hidden } => {
                    let id = |row: usize| column.ids[self.block.rows[row] as usize];
                    Column {
                        texts: column.texts.clone(),
                        ids: places
                            .iter()
                            .map(|&row| row as usize)
                            .map(|row| if hidden[row] { NULL } else { id(row) })
                            .collect(),
                        ..column.without_cells()
                    }
                }
            })
            .collect()
    }
}

/// Which cells of sensitive columns are counted.
#[derive(Clone, Copy)]
enum SensitiveCells {
    Private,
    Shown,
}

/// Which cells of a column say nothing: hidden ones, and the label that stands for everything.
struct Silent<'a> {
    cells: &'a BlockCells,
    /// For each label, whether it stands for everything.
    of_everything: Vec<bool>,
}

impl<'a> Silent<'a> {
    fn new(column: &Column, cells: &'a BlockCells) -> Self {
        let of_everything = match cells {
            BlockCells::Labels { labels, .. } => everything(labels, column),
            BlockCells::Own { .. } => Vec::new(),
        };
        Silent { cells, of_everything }
    }

    fn at(&self, row: usize) -> bool {
        match self.cells {
            BlockCells::Labels { ids, .. } => ids[row] == NULL || self.of_everything[ids[row] as usize],
            BlockCells::Own { hidden } => hidden[row],
        }
    }
}

fn everything(labels: &Texts, column: &Column) -> Vec<bool> {
    let of_everything = |label: &str| {
        let hierarchy = column.hierarchy.as_deref();
        let is_root = hierarchy.and_then(|hierarchy| Some(hierarchy.node(label)? == hierarchy.root()));
        is_root.unwrap_or(label == "*")
    };
    labels.iter().map(of_everything).collect()
}

#[cfg(test)]
mod tests;
