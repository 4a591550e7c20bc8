//! [`Digest`]: a few hashes of what a version shows, which outlive the engine.
//!
//! A data folder keeps the digest of a computed view beside its definition. When the folder is opened, the version is made
//! again, and if a hash differs, the view is stale. So kohort need not know how tables, files or servers change while the
//! folder is closed.
//!
//! # Guarantee
//! Two versions of one definition with the same digest answer every query alike, as far as SHA-256 tells texts apart. The
//! digest covers columns, rows, the classes of each partition with their labels, choices, and DGHs. The order of rows does
//! not count. The day does not count either, because expired choices are left out at each reading.
//! # Cost
//! Two hashes per row.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::datatypes::Field;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::row::{RowConverter, Rows, SortField};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::hierarchies::Hierarchies;
use crate::view::{Definition, Directory, Version};

/// How many rows one thread hashes at a time.
const CHUNK: usize = 8192;

/// Hashes of what a version shows.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Digest {
    rows: Hash,
    choices: Hash,
    trees: Hash,
    classes: Hash,
}

/// 32 bytes, as hexadecimal digits.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Hash(String);

impl Digest {
    /// The digest of a version that was made from these rows and choices; `None` if values of a column's type can't be
    /// written as bytes.
    pub(crate) fn of(
        version: &Version,
        rows: &RecordBatch,
        choices: &[RecordBatch],
        catalog: &Hierarchies,
    ) -> Option<Digest> {
        let of_rows = row_hashes(rows)?;
        let mut of_classes = of_rows.clone();
        for directory in &version.directories {
            with_labels(&mut of_classes, directory);
        }
        Some(Digest {
            rows: of_all(of_rows, &columns(rows)),
            choices: of_choices(choices)?,
            trees: trees(&version.definition, catalog),
            classes: of_all(of_classes, ""),
        })
    }

    /// Whether the version was made from these choices.
    pub(crate) fn has_choices(&self, choices: &[RecordBatch]) -> bool {
        of_choices(choices).is_some_and(|choices| choices == self.choices)
    }

    /// The difference from an earlier digest, in words; `None` if there is none.
    pub(crate) fn difference(&self, earlier: &Digest) -> Option<&'static str> {
        let [tables, choices, trees] =
            [self.rows != earlier.rows, self.choices != earlier.choices, self.trees != earlier.trees];
        match (tables, choices, trees) {
            (true, true, _) => Some("its tables and its choices changed"),
            (true, false, _) => Some("its tables changed"),
            (false, true, _) => Some("its choices changed"),
            (false, false, true) => Some("its DGHs changed"),
            (false, false, false) if self.classes != earlier.classes => {
                Some("this version of kohort divides its rows into other classes")
            }
            (false, false, false) => None,
        }
    }
}

fn of_choices(choices: &[RecordBatch]) -> Option<Hash> {
    let hashes = choices.iter().map(row_hashes).collect::<Option<Vec<_>>>()?.concat();
    Some(of_all(hashes, &choices.first().map(columns).unwrap_or_default()))
}

/// Names and types.
fn columns(rows: &RecordBatch) -> String {
    let schema = rows.schema();
    let column = |field: &Arc<Field>| format!("{:?} {} {}\n", field.name(), field.data_type(), field.is_nullable());
    schema.fields().iter().map(column).collect()
}

fn row_hashes(rows: &RecordBatch) -> Option<Vec<[u8; 32]>> {
    let starts: Vec<usize> = (0..rows.num_rows()).step_by(CHUNK).collect();
    let hashes = starts.into_par_iter().map(|start| {
        let chunk = rows.slice(start, CHUNK.min(rows.num_rows() - start));
        let bytes = row_bytes(chunk.columns()).ok()?;
        Some(bytes.iter().map(|row| Sha256::digest(row.as_ref()).into()).collect::<Vec<[u8; 32]>>())
    });
    Some(hashes.collect::<Option<Vec<_>>>()?.concat())
}

/// Rows as bytes, in the order of their cells.
pub(in crate::view) fn row_bytes(columns: &[ArrayRef]) -> Result<Rows, ArrowError> {
    let fields = columns.iter().map(|column| SortField::new(column.data_type().clone())).collect();
    RowConverter::new(fields)?.convert_columns(columns)
}

/// Adds the labels of its class to the hash of each row.
fn with_labels(rows: &mut [[u8; 32]], directory: &Directory) {
    let of_class: Vec<[u8; 32]> = (0..directory.n_classes() as u32).map(|class| of_labels(directory, class)).collect();
    let class_of_row = directory.class_of_rows(rows.len());
    rows.par_iter_mut().zip(class_of_row).for_each(|(row, class)| {
        let shown = class.map(|class| of_class[class as usize]).unwrap_or_default();
        *row = Sha256::new().chain_update(*row).chain_update(shown).finalize().into();
    });
}

fn of_labels(directory: &Directory, class: u32) -> [u8; 32] {
    let shown = (directory.class(class).is_alone, directory.labels().of(class));
    Sha256::digest(serde_json::to_vec(&shown).expect("texts are JSON")).into()
}

/// A hash of the DGHs of a view.
fn trees(definition: &Definition, catalog: &Hierarchies) -> Hash {
    let names = definition.columns.iter().map(|column| column.hierarchy.as_deref());
    let records: Vec<Option<String>> = names.map(|name| catalog.finished_record(name?).ok().flatten()).collect();
    of_all(Vec::new(), &serde_json::to_string(&records).expect("texts are JSON"))
}

/// A hash of hashes, in any order, and of a text.
fn of_all(mut hashes: Vec<[u8; 32]>, beside: &str) -> Hash {
    hashes.par_sort_unstable();
    let mut all = Sha256::new();
    hashes.iter().for_each(|hash| all.update(hash));
    all.update(beside);
    Hash(all.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}
