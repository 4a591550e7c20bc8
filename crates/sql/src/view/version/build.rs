//! [`build`]: from the rows of a view's query to a verified version.
//!
//! # Guarantee
//! The partition covers every person with a k of 2 or more. The whole partition was verified: k, each person's own k, and
//! l and t on sensitive values, both as they are and as each purpose and recipient sees them raised.
//! # Paper
//! `[EPS+12]` section 5.1
//! # Deviations
//! One partition serves all purposes, with each person's largest k, because a reader could intersect two partitions of the
//! same persons. Rows with a k of 0 or 1 never count as members of a class. Persons without a policy are left out.

use std::sync::{Arc, Mutex};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::Schema;
use kohort_io::{PlainCells, PrivateRows, check_labels, texts_by_value};
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
pub(crate) enum Trees<'a> {
    /// The catalog, for a new version.
    Catalog(&'a Hierarchies),
    /// A version that is built again, to compare the result with it.
    Of(&'a Version),
}

impl Trees<'_> {
    /// The seed of hashes. A version that is built again must have the same seed to be comparable.
    fn seed(&self) -> Seed {
        match self {
            Trees::Catalog(_) => Seed::default(),
            Trees::Of(version) => version.directories[0].seed(),
        }
    }
}

/// What a version is made from, beside its rows.
pub(crate) struct Sources<'a> {
    /// The definition of the view.
    pub definition: &'a Arc<Definition>,
    /// What persons allow.
    pub policies: Option<&'a Arc<Policies>>,
    /// The trees of its columns.
    pub trees: Trees<'a>,
    /// The state of the tables that rows and policies were read from.
    pub fingerprint: Fingerprint,
    /// How many bytes of rows may be kept in memory.
    pub most_kept_bytes: usize,
    /// The version's number.
    pub number: u64,
}

/// Partitions the rows of a view's query and verifies the partition.
///
/// # Errors
/// If a column can't have its role, or the requirements can't be reached.
pub(crate) fn build(sources: Sources<'_>, rows: &RecordBatch, progress: &dyn Progress) -> Result<Version, ViewError> {
    let Sources { definition, policies, trees, fingerprint, most_kept_bytes, number } = sources;
    definition.check_identifiers(rows)?;
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
    // All partitions have the same seed, because a version that is built again has only one.
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
    // Only new versions of computed views are compared with earlier ones. Materialized views remember what they showed.
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

/// The rows of a view's query as a table. Plain cells leave unchanged and need not be read, unless reading them is the only
/// way to notice that they changed.
pub(in crate::view) fn read_private(
    definition: &Definition,
    rows: &RecordBatch,
    fingerprint: &Fingerprint,
) -> Result<PrivateRows, ViewError> {
    let plain = if fingerprint.tells_all_changes() { PlainCells::Skipped } else { PlainCells::Read };
    definition.private_rows(rows, plain)
}

/// Checks that all rows of a person have the same policy.
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

/// The meanings of the labels. Whether a label can stand for null follows from the type of the column and never from its
/// rows, because otherwise a reader who asks for nulls would learn whether there is one.
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
                // Rules get the values in the order of the values, so no tree depends on the order of rows.
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
