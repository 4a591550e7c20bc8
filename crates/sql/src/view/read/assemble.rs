//! [`Version::block`]: from private rows that were fetched for a reader to a verified block of the view.
//!
//! # Guarantee
//! Classes leave whole and as they were verified, or not at all ([`ViewError::Stale`]). Rows are sorted by what they show,
//! so their order tells nothing about identifiers or about the order in which they were read.
//! # Deviations
//! With `DISCLOSURE CLASS` one refusal hides the column for the whole class: a column of labels then shows the label of
//! everything, another column null. A person whose policy does not name the reader's purpose and recipient refuses
//! everything.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, BooleanArray, RecordBatch, UInt32Array};
use datafusion::arrow::compute::{nullif, take};
use datafusion::arrow::row::Rows;
use kohort_io::{PrivateRows, VerifiedRows};
use kohort_model::{ALONE, Block, BlockCells, Consent, Disclosure, NULL, Requirement, Role, Table, Texts};
use kohort_verify::verify_block;
use rayon::prelude::*;

use super::choose::{LabelComparison, Labels};
use crate::view::consent::Wishes;
use crate::view::materialized::StoredRead;
use crate::view::version::build::read_private;
use crate::view::version::digest::row_bytes;
use crate::view::version::directory::{Assigned, Directory, Located};
use crate::view::version::raise::raised_label;
use crate::view::{Reader, Version, ViewError};

/// Fewer rows than this are not handed to other threads, because that would take longer than showing them.
const FEW_ROWS: usize = 1 << 12;

/// The classes a query reads.
#[derive(Clone, Debug)]
pub(crate) enum Chosen {
    /// All.
    All,
    /// The classes of these numbers, ascending.
    Classes(Vec<u32>),
}

impl Version {
    /// The rows of the chosen classes as a reader sees them, verified; `None` if there is none. `rows` has all rows of those
    /// classes, and perhaps others.
    ///
    /// # Errors
    /// [`ViewError::Stale`] if the rows are not those that were verified.
    pub(in crate::view) fn block(
        &self,
        directory: &Directory,
        rows: &RecordBatch,
        reader: Reader,
        chosen: &Chosen,
        matching: Option<&LabelComparison>,
    ) -> Result<Option<VerifiedRows>, ViewError> {
        let definition = &self.definition;
        let mut private = read_private(definition, rows, &self.fingerprint)?;
        self.attach(&mut private)?;
        let table = private.table();
        let Located { class_of_row, person_of_row, hashes } = directory.find(table)?;
        let is_chosen: Vec<bool> = match chosen {
            Chosen::All => vec![true; directory.n_classes()],
            Chosen::Classes(classes) => {
                let mut is_chosen = vec![false; directory.n_classes()];
                classes.iter().for_each(|&class| is_chosen[class as usize] = true);
                is_chosen
            }
        };
        directory.check_unchanged(&class_of_row, &hashes, &is_chosen)?;
        let is_shown = |&row: &u32| {
            let class = class_of_row[row as usize];
            class != Assigned::NONE && is_chosen[class as usize]
        };
        let places = (0..table.n_rows as u32).into_par_iter().filter(is_shown).collect();
        let wishes = Wishes { policy_of_row: directory.policies_of(&person_of_row) };
        let placed = PlacedRows { private: Arc::new(private), wishes, class_of_row: &class_of_row, places };
        self.verified(directory, placed, reader, matching)
    }

    /// The rows of classes that a store keeps, as a reader sees them; `None` if there is no row.
    ///
    /// # Errors
    /// If the rows can't be verified.
    pub(in crate::view) fn stored_block(
        &self,
        stored: &StoredRead,
        reader: Reader,
    ) -> Result<Option<VerifiedRows>, ViewError> {
        let StoredRead { private, class_of_row, policy_of_row, .. } = stored;
        let wishes = Wishes { policy_of_row: policy_of_row.clone() };
        let places = (0..private.table().n_rows as u32).collect();
        let placed = PlacedRows { private: Arc::clone(private), wishes, class_of_row, places };
        self.verified(self.directory(reader.pair), placed, reader, None)
    }

    /// Some rows as a reader sees them, verified; `None` if there is none.
    fn verified(
        &self,
        directory: &Directory,
        placed: PlacedRows<'_>,
        reader: Reader,
        matching: Option<&LabelComparison>,
    ) -> Result<Option<VerifiedRows>, ViewError> {
        let PlacedRows { private, wishes, class_of_row, mut places } = placed;
        let (definition, policies, table) = (&self.definition, self.policies.as_deref(), private.table());
        let pair = match definition.clauses.purposes {
            crate::parser::Purposes::Apart => reader.pair,
            crate::parser::Purposes::Together => None,
        };
        let k = wishes.k(definition, policies, pair, table.n_rows);
        let consent = wishes.consent(definition, policies, reader, k.into_iter().map(|k| k.unwrap_or(0)).collect());
        if let Some(matching) = matching {
            places = self.matching_rows(matching, table, &consent, class_of_row, places)?;
        }
        if places.is_empty() {
            return Ok(None);
        }
        let shown = Showing { version: self, directory, table, consent: &consent, class_of_row };
        let block = shown.block(private.batch(), &places)?;
        let requirements = self.requirements_of_block();
        let verified = verify_block(block, private, &consent, definition.clauses.disclosure, &requirements);
        verified.map(Some).map_err(ViewError::Unverified)
    }

    /// The rows of the classes that answer with ANSWERS MATCHING: a row in them satisfies the comparison by its own values
    /// and refuses no compared column, or the class hides a compared column.
    fn matching_rows(
        &self,
        comparison: &LabelComparison,
        table: &Table,
        consent: &Consent,
        class_of_row: &[u32],
        places: Vec<u32>,
    ) -> Result<Vec<u32>, ViewError> {
        let definition = &self.definition;
        let own = |position: usize| {
            let column = &table.columns[position];
            (&column.texts, places.iter().map(|&row| column.ids[row as usize]).collect())
        };
        let values = Labels(definition.with_role(Role::Quasi).into_iter().map(own).collect());
        let found = values.satisfying(definition, comparison);
        let found = found.map_err(|error| definition.failed(error))?;
        let found = found.ok_or_else(|| ViewError::fault(&definition.name))?;
        let mut answers: HashMap<u32, bool> = HashMap::new();
        for (&row, found) in places.iter().zip(found) {
            let is_refused = consent.refused[row as usize] & comparison.columns != 0;
            // A class that hides the column answers by its label, whatever the values of its members are.
            let answer = if is_refused { definition.clauses.disclosure == Disclosure::Class } else { found };
            *answers.entry(class_of_row[row as usize]).or_default() |= answer;
        }
        Ok(places.into_iter().filter(|&row| answers[&class_of_row[row as usize]]).collect())
    }

    /// The requirements on a block. Requirements that compare a class with the whole view were verified when the version
    /// was built, and the class is still the same.
    fn requirements_of_block(&self) -> Vec<Requirement> {
        let mut requirements = self.definition.requirements();
        requirements.retain(|requirement| !requirement.compares_with_release());
        requirements
    }
}

/// Private rows and their classes.
struct PlacedRows<'a> {
    private: Arc<PrivateRows>,
    /// The policies of the rows.
    wishes: Wishes,
    class_of_row: &'a [u32],
    /// The rows to show.
    places: Vec<u32>,
}

/// Computes what rows show.
struct Showing<'a> {
    version: &'a Version,
    directory: &'a Directory,
    table: &'a Table,
    consent: &'a Consent,
    class_of_row: &'a [u32],
}

impl Showing<'_> {
    /// The block of these rows.
    fn block(&self, rows: &RecordBatch, places: &[u32]) -> Result<Block, ViewError> {
        let silent = self.silent(places);
        let n_columns = self.table.columns.len();
        let together = columns_together(places.len(), n_columns);
        let positions = (0..n_columns).into_par_iter().with_min_len(together);
        let cells: Vec<BlockCells> = positions.map(|position| self.cells(position, places, &silent)).collect();
        let order = self.order(rows, places, &cells)?;
        let in_order = |ids: &[u32]| order.iter().map(|&place| ids[place as usize]).collect::<Vec<u32>>();
        let columns = cells.into_par_iter().with_min_len(together).map(|cells| match cells {
            BlockCells::Labels { labels, ids } => BlockCells::Labels { labels, ids: in_order(&ids) },
            BlockCells::Own { hidden } => {
                BlockCells::Own { hidden: order.iter().map(|&place| hidden[place as usize]).collect() }
            }
        });
        let columns = columns.collect();
        let rows = in_order(places);
        let class = |&row: &u32| {
            let class = self.class_of_row[row as usize];
            if self.directory.class(class).is_alone { ALONE } else { class }
        };
        let classes = rows.iter().map(class).collect();
        Ok(Block { rows, classes, columns })
    }

    /// For each row, the hidden columns: those that its person refuses, or with DISCLOSURE CLASS anybody in its class.
    fn silent(&self, places: &[u32]) -> Vec<u64> {
        let refused = &self.consent.refused;
        if self.version.definition.clauses.disclosure == Disclosure::Row
            || places.iter().all(|&row| refused[row as usize] == 0)
        {
            return places.iter().map(|&row| refused[row as usize]).collect();
        }
        let mut of_class = vec![0u64; self.directory.n_classes()];
        for &row in places {
            of_class[self.class_of_row[row as usize] as usize] |= refused[row as usize];
        }
        let silent = |&row: &u32| {
            let class = self.class_of_row[row as usize];
            if self.directory.class(class).is_alone { refused[row as usize] } else { of_class[class as usize] }
        };
        places.iter().map(silent).collect()
    }

    fn cells(&self, position: usize, places: &[u32], silent: &[u64]) -> BlockCells {
        let column = &self.table.columns[position];
        let is_silent = |place: usize| silent[place] >> position & 1 == 1;
        let k = |place: usize| self.consent.k[places[place] as usize];
        let level = |place: usize| self.consent.level[places[place] as usize];
        let n_rows = places.len();
        match column.role {
            Role::Quasi => self.quasi_cells(position, places, &is_silent),
            Role::Sensitive if column.hierarchy.is_some() => self.sensitive_cells(position, places, &is_silent),
            Role::Identifier => {
                BlockCells::Own { hidden: (0..n_rows).map(|place| k(place) != 0 || is_silent(place)).collect() }
            }
            // Without a tree a value can't be raised, only hidden.
            Role::Sensitive => {
                BlockCells::Own { hidden: (0..n_rows).map(|place| level(place) > 0 || is_silent(place)).collect() }
            }
            Role::Plain | Role::Key | Role::PersonK | Role::Drop => {
                BlockCells::Own { hidden: (0..n_rows).map(is_silent).collect() }
            }
        }
    }

    /// Labels of rows. A hidden cell shows the label of everything, or null with DISCLOSURE ROW.
    fn label_cells(
        &self,
        position: usize,
        places: &[u32],
        is_silent: &dyn Fn(usize) -> bool,
        mut label_of: impl FnMut(usize, &mut Texts) -> u32,
    ) -> BlockCells {
        let mut labels = Texts::new();
        let everything = labels.push(self.version.everything(position));
        let by_row = self.version.definition.clauses.disclosure == Disclosure::Row;
        let id = |(place, &row): (usize, &u32)| match is_silent(place) {
            false => label_of(row as usize, &mut labels),
            true if by_row => NULL,
            true => everything,
        };
        let ids = places.iter().enumerate().map(id).collect();
        BlockCells::Labels { ids, labels }
    }

    fn quasi_cells(&self, position: usize, places: &[u32], is_silent: &dyn Fn(usize) -> bool) -> BlockCells {
        let of_classes = self.directory.labels();
        let quasi = of_classes.quasi().iter().position(|&quasi| quasi == position).expect("it is a quasi column");
        let (all_labels, ids_of_classes) = (of_classes.labels(quasi), of_classes.ids(quasi));
        // Only the labels that are shown are copied, because few rows show few of a view's labels.
        let mut shown_as = vec![NULL; all_labels.len()];
        self.label_cells(position, places, is_silent, |row, labels| {
            let id = ids_of_classes[self.class_of_row[row] as usize];
            if id != NULL && shown_as[id as usize] == NULL {
                shown_as[id as usize] = labels.push(all_labels.get(id));
            }
            if id == NULL { NULL } else { shown_as[id as usize] }
        })
    }

    fn sensitive_cells(&self, position: usize, places: &[u32], is_silent: &dyn Fn(usize) -> bool) -> BlockCells {
        let column = &self.table.columns[position];
        let mut known: HashMap<(u32, u8), u32> = HashMap::new();
        self.label_cells(position, places, is_silent, |row, labels| {
            let (id, level) = (column.ids[row], self.consent.level[row]);
            let raised = || raised_label(column, id, level).map_or(NULL, |label| labels.push(label));
            *known.entry((id, level)).or_insert_with(raised)
        })
    }

    /// Places by what they show: by their labels, then by their other cells. Rows that show the same are
    /// interchangeable.
    fn order(&self, rows: &RecordBatch, places: &[u32], cells: &[BlockCells]) -> Result<Vec<u32>, ViewError> {
        let ranks: Vec<Vec<u32>> = cells
            .par_iter()
            .with_min_len(columns_together(places.len(), cells.len()))
            .filter_map(|cells| match cells {
                BlockCells::Labels { labels, ids } => Some(label_ranks(labels, ids)),
                BlockCells::Own { .. } => None,
            })
            .collect();
        let mut by_labels: Vec<(u32, u32)> = (0..places.len() as u32).map(|place| (0, place)).collect();
        for ranks in &ranks {
            split_groups(&mut by_labels, ranks);
        }
        if let Some(own) = self.own_cells(rows, places, cells)? {
            let is_of_group = |a: &(u32, u32), b: &(u32, u32)| a.0 == b.0;
            let sort = |group: &mut [(u32, u32)]| {
                group.sort_unstable_by(|a, b| own.row(a.1 as usize).cmp(&own.row(b.1 as usize)));
            };
            match places.len() {
                0..FEW_ROWS => by_labels.chunk_by_mut(is_of_group).for_each(sort),
                _ => by_labels.par_chunk_by_mut(is_of_group).for_each(sort),
            }
        }
        Ok(by_labels.into_iter().map(|(_, place)| place).collect())
    }

    /// The cells that are shown unchanged, in a form that can be compared.
    fn own_cells(&self, rows: &RecordBatch, places: &[u32], cells: &[BlockCells]) -> Result<Option<Rows>, ViewError> {
        let failed = |_| ViewError::Query {
            view: self.version.definition.name.clone(),
            kind: "a column is of a type whose values have no order",
        };
        let indices = UInt32Array::from(places.to_vec());
        let mut arrays: Vec<ArrayRef> = Vec::new();
        for (position, cells) in cells.iter().enumerate() {
            let BlockCells::Own { hidden } = cells else { continue };
            if hidden.iter().all(|&hidden| hidden) {
                continue;
            }
            let own = take(rows.column(position), &indices, None).map_err(failed)?;
            arrays.push(nullif(&own, &BooleanArray::from(hidden.clone())).map_err(failed)?);
        }
        if arrays.is_empty() {
            return Ok(None);
        }
        row_bytes(&arrays).map(Some).map_err(failed)
    }
}

/// The least number of columns for one thread.
fn columns_together(n_rows: usize, n_columns: usize) -> usize {
    if n_rows < FEW_ROWS { n_columns.max(1) } else { 1 }
}

/// Splits groups of places by the ranks of another column. The result is sorted by group and rank, with new group numbers.
fn split_groups(groups: &mut [(u32, u32)], ranks: &[u32]) {
    let mut keyed: Vec<(u64, u32)> = groups
        .par_iter()
        .with_min_len(FEW_ROWS)
        .map(|&(group, place)| (u64::from(group) << 32 | u64::from(ranks[place as usize]), place))
        .collect();
    keyed.par_sort_unstable();
    let (mut number, mut before) = (0, None);
    for ((group, place), (key, sorted)) in groups.iter_mut().zip(keyed) {
        number += u32::from(before.is_some_and(|before| before != key));
        before = Some(key);
        (*group, *place) = (number, sorted);
    }
}

/// For each cell, the rank of its label among all labels; equal labels have the same rank.
fn label_ranks(labels: &Texts, ids: &[u32]) -> Vec<u32> {
    let mut by_text: Vec<u32> = (0..labels.len() as u32).collect();
    by_text.sort_unstable_by_key(|&id| labels.get(id));
    let mut ranks = vec![0; labels.len()];
    let mut rank = 0;
    for (place, &id) in by_text.iter().enumerate() {
        rank += u32::from(place > 0 && labels.get(by_text[place - 1]) != labels.get(id));
        ranks[id as usize] = rank;
    }
    ids.iter().map(|&id| if id == NULL { u32::MAX } else { ranks[id as usize] }).collect()
}
