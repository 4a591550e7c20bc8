//! How a manifest describes the columns of a released table: how their cells are read.
//!
//! # Guarantee
//! The type of a copied column is found in the released cells alone, so rows that were left out don't influence it. The type
//! of a generalized column is the one that its labels were made with.

use std::collections::BTreeMap;

use kohort_model::{
    Cells, Column, ColumnManifest, JoinedRegister, LabelsManifest, NULL, Notation, ReleasedColumn, ReleasedTable, Role,
    Table, Texts, Transform, ValueType,
};

use crate::arrow_text::{ArrowOrder, Fixed, TextForm};
use crate::bounds::bound_names;
use crate::read::{Original, infer};
use crate::write::FileForms;
use crate::{LoadedTable, LoadedTables};

/// The entries of a manifest for the columns of a released file, by name.
pub type ColumnManifests = BTreeMap<String, ColumnManifest>;

impl LoadedTable {
    /// The entries that a manifest should have for the columns of a table that was read from a release.
    pub fn columns_of_read(&self, read: &Table) -> ColumnManifests {
        self.original().columns_of_read(read)
    }

    /// The same entries for the tables of a release that was made with a register.
    pub fn joined_columns_of_read(&self, joined: &JoinedRegister, read: &[Table]) -> Vec<ColumnManifests> {
        let forms = FileForms::new(self, joined);
        forms.originals().iter().zip(read).map(|(original, table)| original.columns_of_read(table)).collect()
    }
}

impl LoadedTables {
    /// The entries that a manifest should have for the columns of tables that were read from a release.
    pub fn columns_of_read(&self, read: &[Table]) -> Vec<ColumnManifests> {
        self.originals().zip(read).map(|(original, read)| original.columns_of_read(read)).collect()
    }
}

/// The cells of a released column.
#[derive(Clone, Copy)]
enum Shown<'a> {
    /// The distinct labels.
    Labels(&'a Texts),
    /// The distinct texts of private cells, which are released unchanged.
    Copied(&'a Texts),
    /// Keys that were renumbered.
    Numbers,
}

impl Original<'_> {
    pub(crate) fn column_manifests(&self, released: &ReleasedTable) -> ColumnManifests {
        let mut columns = ColumnManifests::new();
        for column in &released.columns {
            let texts = self.shown_texts(released, column);
            let shown = match column.cells {
                Cells::Recoded { .. } => Shown::Labels(&texts),
                Cells::Copied => Shown::Copied(&texts),
                Cells::Surrogate { .. } => Shown::Numbers,
            };
            let known = self.describe(column.source, shown);
            if self.shows_bounds(column) {
                let [low, high] = bound_names(&column.name);
                let as_bound = |role: &str| ColumnManifest { role: role.to_owned(), ..known.clone() };
                columns.insert(low, as_bound(ColumnManifest::LOWER_BOUND));
                columns.insert(high, as_bound(ColumnManifest::UPPER_BOUND));
            } else {
                columns.insert(column.name.clone(), known);
            }
        }
        columns
    }

    /// The distinct texts that the cells of a released column show.
    pub(crate) fn shown_texts(&self, released: &ReleasedTable, column: &ReleasedColumn) -> Texts {
        let source = &self.table.columns[column.source];
        match &column.cells {
            Cells::Recoded { labels, ids } => used(labels, ids.iter().copied()),
            Cells::Copied => used(&source.texts, released.rows.iter().map(|&row| source.ids[row as usize])),
            Cells::Surrogate { .. } => Texts::new(),
        }
    }

    fn columns_of_read(&self, read: &Table) -> ColumnManifests {
        let mut columns = ColumnManifests::new();
        for column in &read.columns {
            let Some(source) = self.table.position(&column.name) else { continue };
            let shown = match self.table.columns[source].role {
                Role::Quasi => Shown::Labels(&column.texts),
                // This function can't know whether the keys were kept or renumbered.
                Role::Key => continue,
                Role::Sensitive | Role::Plain | Role::Identifier | Role::PersonK | Role::Drop => {
                    Shown::Copied(&column.texts)
                }
            };
            columns.insert(column.name.clone(), self.describe(source, shown));
        }
        columns
    }

    fn describe(&self, source: usize, shown: Shown<'_>) -> ColumnManifest {
        let column = &self.table.columns[source];
        let role = column.role.word();
        match shown {
            Shown::Numbers => ColumnManifest::new(role, ValueType::Integer.word()),
            Shown::Labels(labels) => {
                let mut known = typed(role, column.value_type, &column.notation);
                known.labels = Some(with_shown(&self.origin.readings[source].labels, column, labels));
                self.with_changes(known, source)
            }
            Shown::Copied(_) if self.origin.readings[source].is_typed => {
                let mut known = typed(role, column.value_type, &column.notation);
                // With a hierarchy cells are compared as texts, because each text has its own place in the tree.
                let by_text = column.hierarchy.is_some() && column.value_type != ValueType::Text;
                known.compared_as = by_text.then(|| ColumnManifest::AS_TEXT.to_owned());
                self.with_changes(known, source)
            }
            Shown::Copied(_) if self.origin.readings[source].transform.pseudonym_key.is_some() => {
                let mut known = ColumnManifest::new(role, ValueType::Text.word());
                known.pseudonym = Some(ColumnManifest::PSEUDONYM.to_owned());
                known
            }
            Shown::Copied(texts) => {
                let field = self.origin.fields[source].as_ref();
                let mut known = match field.map(|field| TextForm::of(field.data_type())) {
                    Some(form) => self.of_arrow(role, &form, texts),
                    None => self.inferred(role, texts),
                };
                let counts = column.role == Role::Sensitive && known.value_type != ValueType::Text.word();
                known.compared_as = counts.then(|| ColumnManifest::AS_TEXT.to_owned());
                known
            }
        }
    }

    /// Adds what was done to the cells before classes were made. The codes are part of the notation.
    fn with_changes(&self, mut known: ColumnManifest, source: usize) -> ColumnManifest {
        let Transform { round, truncate, .. } = &self.origin.readings[source].transform;
        known.rounded.clone_from(round);
        known.truncated = *truncate;
        known
    }

    fn of_arrow(&self, role: &str, form: &TextForm, texts: &Texts) -> ColumnManifest {
        match (form, form.order()) {
            (TextForm::Dictionary(values), _) => self.of_arrow(role, values, texts),
            (TextForm::Fixed(Fixed::Signed(_) | Fixed::Unsigned(_)), _) => {
                ColumnManifest::new(role, ValueType::Integer.word())
            }
            (_, ArrowOrder::Typed(value_type)) => ColumnManifest::new(role, value_type.word()),
            (_, ArrowOrder::ByText) => self.inferred(role, texts),
            (_, ArrowOrder::Unordered) => ColumnManifest::new(role, ColumnManifest::OTHER_TYPE),
        }
    }

    /// The type that texts have by themselves; text if no other type fits all of them.
    fn inferred(&self, role: &str, texts: &Texts) -> ColumnManifest {
        let found = infer(texts, &self.origin.notation);
        let (value_type, notation) = found.unwrap_or((ValueType::Text, Notation::default()));
        typed(role, value_type, &notation)
    }
}

fn typed(role: &str, value_type: ValueType, notation: &Notation) -> ColumnManifest {
    ColumnManifest::new(role, value_type.word()).spelled(value_type, notation)
}

/// The texts that occur among the ids, in the order in which they are met.
fn used(texts: &Texts, ids: impl Iterator<Item = u32>) -> Texts {
    let mut is_met = vec![false; texts.len()];
    let first = |id: &u32| *id != NULL && !std::mem::replace(&mut is_met[*id as usize], true);
    ids.filter(first).map(|id| texts.get(id)).collect()
}

/// A rule, completed by the parts of it that readers can see in the shown labels anyway.
fn with_shown(labels: &LabelsManifest, column: &Column, shown: &Texts) -> LabelsManifest {
    let Some(hierarchy) = column.hierarchy.as_deref() else { return labels.clone() };
    let root = hierarchy.label(hierarchy.root());
    match labels {
        LabelsManifest::Mask { side, .. } => {
            let is_mask = |label: &str| hierarchy.node(label).is_some_and(|node| !hierarchy.is_leaf(node));
            let width = shown.iter().any(is_mask).then(|| root.chars().count() as u32);
            LabelsManifest::Mask { side: *side, width }
        }
        LabelsManifest::Hierarchy { .. } => {
            let is_shown = shown.iter().any(|label| label == root);
            LabelsManifest::Hierarchy { root: is_shown.then(|| root.to_owned()), file: None, sha256: None }
        }
        LabelsManifest::Values
        | LabelsManifest::Ranges
        | LabelsManifest::Steps { .. }
        | LabelsManifest::Dates { .. }
        | LabelsManifest::Flat => labels.clone(),
    }
}
