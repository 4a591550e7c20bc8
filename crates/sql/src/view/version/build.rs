//! [`build`]: from the rows of a view's query to a verified version.
//!
//! # Guarantee
//! The partition covers every person with a k of 2 or more, and was verified whole: k, each person's own k, and l and
//! t on sensitive values as they are and as each purpose and recipient sees them raised.
//! # Paper
//! `[EPS+12]` section 5.1
//! # Deviations
//! One partition serves all purposes, with each person's largest k, because two of the same persons can be
//! intersected. Rows with a k of 0 or 1 never fill a class. Persons whom no policy speaks of are left out.

use std::sync::{Arc, Mutex};

use datafusion::arrow::array::{Array, RecordBatch};
use datafusion::arrow::datatypes::Schema;
use kohort_io::{PlainCells, PrivateRows, check_labels, read_rows, texts_by_value};
use kohort_labels::meaning::Meaning;
use kohort_labels::rewrite::Meanings;
use kohort_model::{Progress, Role, Table};

use super::directory::Seed;
use super::kept::KeptRows;
use super::partition::Partition;
use super::raise::raised_columns;
use super::shown::ShownCells;
use crate::hierarchies::Hierarchies;
use crate::parser::Purposes;
use crate::policy::{PairId, Policies};
use crate::view::consent::Wishes;
use crate::view::{Definition, Fingerprint, Summary, Version, ViewError};

/// Where the trees of columns come from.
pub enum Trees<'a> {
    /// The catalog, for a new version.
    Catalog(&'a Hierarchies),
    /// A version that is built once more.
    Of(&'a Version),
}

impl Trees<'_> {
    /// A version that is built once more can be compared with what it was.
    fn seed(&self) -> Seed {
        match self {
            Trees::Catalog(_) => Seed::default(),
            Trees::Of(version) => version.directories[0].seed(),
        }
    }
}

/// What a version is made from beside its rows.
pub struct Sources<'a> {
    /// What the view says.
    pub definition: &'a Arc<Definition>,
    /// What persons allow.
    pub policies: Option<&'a Arc<Policies>>,
    /// The trees of its columns.
    pub trees: Trees<'a>,
    /// What the rows and policies were read from.
    pub fingerprint: Fingerprint,
    /// How many bytes of rows may be kept in memory.
    pub most_kept_bytes: usize,
    /// The version's number.
    pub number: u64,
}

/// Partitions the rows of a view's query and verifies what came of it.
///
/// # Errors
/// Where the columns can't have their roles or the requirement can't be reached.
pub fn build(sources: Sources<'_>, rows: &RecordBatch, progress: &dyn Progress) -> Result<Version, ViewError> {
    let Sources { definition, policies, trees, fingerprint, most_kept_bytes, number } = sources;
    let identifier = rows.column(definition.identifier);
    if identifier.null_count() > 0 {
        let column = definition.columns[definition.identifier].name.clone();
        return Err(ViewError::NullIdentifiers { column, n_rows: identifier.null_count() as u64 });
    }
    let mut private = read_private(definition, rows, &fingerprint)?;
    attach(&mut private, definition, &trees)?;
    let table = private.into_table();
    let wishes = Wishes::of(definition, policies.map(Arc::as_ref), rows);
    check_one_policy_each(definition, &table, &wishes)?;
    let pairs: Vec<Option<PairId>> = match (definition.clauses.purposes, policies) {
        (Purposes::Apart, Some(policies)) => pair_ids(policies).map(Some).collect(),
        _ => vec![None],
    };
    let mut directories = Vec::with_capacity(pairs.len());
    let mut summary = Summary::default();
    // One for all, so that what is built anew can be compared with each.
    let seed = trees.seed();
    for pair in pairs {
        let k = wishes.k(definition, policies.map(Arc::as_ref), pair, table.n_rows);
        let raised = raised_columns(definition, policies.map(Arc::as_ref), &wishes, &table, pair);
        let partition =
            Partition { definition, table: &table, wishes: &wishes, k: &k, raised: &raised, seed: seed.clone() };
        let (directory, of_pair) = partition.directory(progress)?;
        directories.push(directory);
        summary = summary.worse(of_pair);
    }
    // A view that is built once more is not shown to anybody anew, and a materialized one keeps what it showed.
    let is_new = matches!(trees, Trees::Catalog(_)) && !definition.clauses.is_materialized;
    let of_persons = || ShownCells::of(definition, policies.map(Arc::as_ref), &wishes, &table, rows);
    let shown = is_new.then(of_persons).flatten();
    let kept = fingerprint.tells_all_changes().then(|| KeptRows::pack(rows, most_kept_bytes)).flatten();
    Ok(Version {
        number,
        definition: Arc::clone(definition),
        fingerprint,
        policies: policies.cloned(),
        hierarchies: table.columns.iter().map(|column| column.hierarchy.clone()).collect(),
        value_types: table.columns.iter().map(|column| column.value_type).collect(),
        meanings: meanings(definition, &table, &rows.schema(), &trees)?,
        directories,
        shown,
        kept,
        refusals: Mutex::default(),
        summary,
    })
}

/// The rows of a view's query. Plain cells leave as they are and need not be read, but where nothing else tells that they
/// changed.
pub(in crate::view) fn read_private(
    definition: &Definition,
    rows: &RecordBatch,
    fingerprint: &Fingerprint,
) -> Result<PrivateRows, ViewError> {
    let plain = if fingerprint.tells_all_changes() { PlainCells::Skipped } else { PlainCells::Read };
    let private = read_rows(rows, &definition.name, &definition.roles(), Some(definition.identifier), plain);
    private.map_err(ViewError::Columns)
}

/// Whether all rows of a person are under one policy. Where policies are found by the identifier, they are.
fn check_one_policy_each(definition: &Definition, table: &Table, wishes: &Wishes) -> Result<(), ViewError> {
    let identifier = &table.columns[definition.identifier];
    let mut policy_of: Vec<Option<Option<u32>>> = vec![None; identifier.texts.len()];
    let mut has_several = vec![false; identifier.texts.len()];
    for (&id, &policy) in identifier.ids.iter().zip(&wishes.policy_of_row) {
        has_several[id as usize] |= *policy_of[id as usize].get_or_insert(policy) != policy;
    }
    let n_persons = has_several.into_iter().filter(|&several| several).count();
    match (n_persons, definition.policy_key) {
        (1.., Some(key)) => {
            let (column, identifier) = (definition.columns[key].name.clone(), identifier.name.clone());
            Err(ViewError::SeveralPolicies { column, identifier, n_persons })
        }
        _ => Ok(()),
    }
}

/// All pairs of purpose and recipient.
pub(in crate::view) fn pair_ids(policies: &Policies) -> impl Iterator<Item = PairId> {
    (0..policies.pairs().len()).map(PairId)
}

/// What the labels of columns can stand for. Whether that may be null, the type of a column tells and never its rows:
/// else asking for nulls would tell whether there is one.
fn meanings(definition: &Definition, table: &Table, schema: &Schema, trees: &Trees<'_>) -> Result<Meanings, ViewError> {
    let catalog = match trees {
        Trees::Of(version) => return Ok(version.meanings()),
        Trees::Catalog(catalog) => catalog,
    };
    let meaning = |position: usize| {
        let (view, said) = (definition.name.as_str(), &definition.columns[position]);
        let (column, may_be_null) = (&table.columns[position], schema.field(position).is_nullable());
        let rule = said.hierarchy.as_ref().and_then(|name| catalog.rule(name));
        definition.is_labelled(position).then(|| match rule.zip(column.hierarchy.as_deref()) {
            Some(made) => Ok(Arc::new(Meaning::by_rule(view, &said.name, column.value_type, made, may_be_null))),
            None => {
                Meaning::new(view, &said.name, column.value_type, column.hierarchy.clone(), may_be_null).map(Arc::new)
            }
        })
    };
    let meanings: Result<Vec<_>, _> = (0..table.columns.len()).map(|position| meaning(position).transpose()).collect();
    Ok(meanings.map_err(ViewError::Meaning)?.into())
}

/// Gives columns their trees.
pub(in crate::view) fn attach(
    private: &mut PrivateRows,
    definition: &Definition,
    trees: &Trees<'_>,
) -> Result<(), ViewError> {
    let catalog = match trees {
        Trees::Of(version) => return version.attach(private),
        Trees::Catalog(catalog) => catalog,
    };
    for (position, said) in definition.columns.iter().enumerate() {
        let column = &private.table().columns[position];
        match &said.hierarchy {
            Some(name) => {
                // Rules see the values in their own order, so that no tree depends on the order of rows.
                let values = texts_by_value(column);
                let tree = catalog.tree_for(name, None, &values, column.value_type, &column.notation);
                let fault = |fault| ViewError::Hierarchy { column: said.name.clone(), fault };
                private.set_hierarchy(position, tree.map_err(fault)?);
            }
            None if said.role == Role::Quasi => {
                if let Some(problem) = check_labels(column) {
                    return Err(ViewError::Columns(vec![problem]));
                }
            }
            None => {}
        }
    }
    Ok(())
}
