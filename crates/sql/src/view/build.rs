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

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use datafusion::arrow::array::{Array, RecordBatch};
use kohort_core::anonymize;
use kohort_io::{check_labels, read_rows};
use kohort_model::{Cells, Column, NULL, Notation, Progress, Release, Requirement, Role, Table, Texts, ValueType};
use kohort_verify::verify_release;

use super::consent::Wishes;
use super::directory::{Assigned, Directory, Found, PolicyKey, Seed};
use super::{Definition, Fingerprint, Summary, Version, ViewProblem};
use crate::hierarchies::Hierarchies;
use crate::meaning::Meaning;
use crate::parser::Purposes;
use crate::policy::{PairId, Policies};
use crate::rewrite::Meanings;

/// The name of the column with each person's own k, in tables that leave this module only to be verified.
const OWN_K: &str = "k of the person";

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
    /// The version's number.
    pub number: u64,
}

/// Partitions the rows of a view's query and verifies what came of it.
///
/// # Errors
/// Where the columns can't have their roles or the requirement can't be reached.
pub fn build(sources: Sources<'_>, rows: &RecordBatch, progress: &dyn Progress) -> Result<Version, ViewProblem> {
    let Sources { definition, policies, trees, fingerprint, number } = sources;
    let identifier = rows.column(definition.identifier);
    if identifier.null_count() > 0 {
        let column = definition.columns[definition.identifier].name.clone();
        return Err(ViewProblem::NullIdentifiers { column, n_rows: identifier.null_count() as u64 });
    }
    let mut table = read_rows(rows, &definition.name, &definition.roles(), Some(definition.identifier))
        .map_err(ViewProblem::Columns)?;
    attach(&mut table, definition, &trees)?;
    let wishes = Wishes::of(definition, policies.map(Arc::as_ref), rows);
    check_one_policy_each(definition, &table, &wishes)?;
    let pairs: Vec<Option<PairId>> = match (definition.purposes, policies) {
        (Purposes::Apart, Some(policies)) => pair_ids(policies).map(Some).collect(),
        _ => vec![None],
    };
    let mut directories = Vec::with_capacity(pairs.len());
    let mut summary = Summary::default();
    for pair in pairs {
        let k = wishes.k(definition, policies.map(Arc::as_ref), pair, table.n_rows);
        let raised = raised_columns(definition, policies.map(Arc::as_ref), &wishes, &table, pair);
        let partition =
            Partition { definition, table: &table, wishes: &wishes, k: &k, raised: &raised, seed: trees.seed() };
        let (directory, of_pair) = partition.directory(progress)?;
        directories.push(directory);
        summary = summary.worse(of_pair);
    }
    Ok(Version {
        number,
        definition: Arc::clone(definition),
        fingerprint,
        policies: policies.cloned(),
        hierarchies: table.columns.iter().map(|column| column.hierarchy.clone()).collect(),
        value_types: table.columns.iter().map(|column| column.value_type).collect(),
        meanings: meanings(definition, &table, &trees)?,
        directories,
        refusals: Mutex::default(),
        summary,
    })
}

/// Whether all rows of a person are under one policy. Where policies are found by the identifier, they are.
fn check_one_policy_each(definition: &Definition, table: &Table, wishes: &Wishes) -> Result<(), ViewProblem> {
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
            Err(ViewProblem::SeveralPolicies { column, identifier, n_persons })
        }
        _ => Ok(()),
    }
}

fn pair_ids(policies: &Policies) -> impl Iterator<Item = PairId> {
    (0..policies.pairs().len()).map(PairId)
}

/// What the labels of columns can stand for.
fn meanings(definition: &Definition, table: &Table, trees: &Trees<'_>) -> Result<Meanings, ViewProblem> {
    let catalog = match trees {
        Trees::Of(version) => return Ok(version.meanings()),
        Trees::Catalog(catalog) => catalog,
    };
    let meaning = |position: usize| {
        let (view, said) = (definition.name.as_str(), &definition.columns[position]);
        let (column, may_be_null) = (&table.columns[position], table.columns[position].has_nulls());
        let rule = said.hierarchy.as_ref().and_then(|name| catalog.rule(name));
        definition.is_labelled(position).then(|| match rule.zip(column.hierarchy.as_deref()) {
            Some(made) => Ok(Arc::new(Meaning::by_rule(view, &said.name, column.value_type, made, may_be_null))),
            None => {
                Meaning::new(view, &said.name, column.value_type, column.hierarchy.clone(), may_be_null).map(Arc::new)
            }
        })
    };
    let meanings: Result<Vec<_>, _> = (0..table.columns.len()).map(|position| meaning(position).transpose()).collect();
    Ok(meanings.map_err(ViewProblem::Meaning)?.into())
}

/// Gives columns their trees.
fn attach(table: &mut Table, definition: &Definition, trees: &Trees<'_>) -> Result<(), ViewProblem> {
    let catalog = match trees {
        Trees::Of(version) => return version.attach(table),
        Trees::Catalog(catalog) => catalog,
    };
    for (column, said) in table.columns.iter_mut().zip(&definition.columns) {
        match &said.hierarchy {
            Some(name) => {
                // Rules see the values in their own order, so that no tree depends on the order of rows.
                let values = texts_by_value(column);
                let tree = catalog.tree_for(name, &values, column.value_type, &column.notation);
                let fault = |fault| ViewProblem::Hierarchy { column: said.name.clone(), fault };
                column.hierarchy = Some(tree.map_err(fault)?);
            }
            None if said.role == Role::Quasi => {
                if let Some(problem) = check_labels(column) {
                    return Err(ViewProblem::Columns(vec![problem]));
                }
            }
            None => {}
        }
    }
    Ok(())
}

fn texts_by_value(column: &Column) -> Texts {
    let mut ids: Vec<u32> = (0..column.texts.len() as u32).collect();
    ids.sort_by_cached_key(|&id| (column.value(id), column.texts.get(id)));
    ids.iter().map(|&id| column.texts.get(id)).collect()
}

/// Sensitive columns as readers see them: for each pair of purpose and recipient one, where it differs from the
/// column as it is and something is asked of it.
fn raised_columns(
    definition: &Definition,
    policies: Option<&Policies>,
    wishes: &Wishes,
    table: &Table,
    pair: Option<PairId>,
) -> Vec<(Column, Vec<Requirement>)> {
    let mut raised = Vec::new();
    let Some(policies) = policies.filter(|_| definition.l.is_some() || definition.t.is_some()) else { return raised };
    let pairs = pair_ids(policies).filter(|&of| pair.is_none_or(|pair| pair == of));
    for (number, of) in pairs.enumerate() {
        let levels = wishes.levels(policies, of);
        if levels.iter().all(|&level| level == 0) {
            continue;
        }
        for column in table.columns.iter().filter(|column| column.role == Role::Sensitive) {
            let name = format!("{} for reader {}", column.name, number + 1);
            let requirements = definition.sensitive_requirements(&name);
            raised.push((raise(column, &levels, name), requirements));
        }
    }
    raised
}

/// A sensitive column with every cell raised by its row's level.
fn raise(column: &Column, levels: &[u8], name: String) -> Column {
    let mut texts = Texts::new();
    let mut known: HashMap<(u32, u8), u32> = HashMap::new();
    let mut by_label: HashMap<String, u32> = HashMap::new();
    let mut id_of = |id: u32, level: u8| {
        *known.entry((id, level)).or_insert_with(|| match raised_label(column, id, level) {
            None => NULL,
            Some(label) => match by_label.get(label) {
                Some(&id) => id,
                None => {
                    let id = texts.push(label);
                    by_label.insert(label.to_owned(), id);
                    id
                }
            },
        })
    };
    let ids = column.ids.iter().zip(levels).map(|(&id, &level)| id_of(id, level)).collect();
    let (value_type, notation) = (ValueType::Text, Notation::default());
    Column { name, role: Role::Sensitive, value_type, notation, hierarchy: None, texts, ids }
}

/// What a sensitive cell shows at a level, `None` where it is hidden: it is null, or there is no tree to raise it in.
pub(super) fn raised_label(column: &Column, id: u32, level: u8) -> Option<&str> {
    if id == NULL {
        return None;
    }
    let text = column.texts.get(id);
    match column.hierarchy.as_deref() {
        _ if level == 0 => Some(text),
        None => None,
        Some(hierarchy) => {
            let leaf = hierarchy.leaf(text)?;
            let node = hierarchy.path(leaf).nth(usize::from(level)).unwrap_or(hierarchy.root());
            Some(hierarchy.label(node))
        }
    }
}

/// One partition of the rows of a view.
struct Partition<'a> {
    definition: &'a Definition,
    table: &'a Table,
    wishes: &'a Wishes,
    /// Per row its person's k, `None` where nobody allowed anything.
    k: &'a [Option<u32>],
    raised: &'a [(Column, Vec<Requirement>)],
    seed: Seed,
}

impl Partition<'_> {
    fn directory(&self, progress: &dyn Progress) -> Result<(Directory, Summary), ViewProblem> {
        let quasi = self.definition.with_role(Role::Quasi);
        let sensitive = self.definition.with_role(Role::Sensitive);
        let in_classes: Vec<u32> =
            (0..).zip(self.k).filter(|(_, k)| k.is_some_and(|k| k >= 2)).map(|(row, _)| row).collect();
        let mut assigned = Assigner::new(self.table, &quasi);
        let mut summary = Summary::default();
        if !in_classes.is_empty() {
            let part = self.part(&in_classes, &quasi, &sensitive);
            let mut requirements = self.definition.requirements();
            requirements.push(Requirement::PersonK { column: OWN_K.to_owned() });
            requirements.extend(self.raised.iter().flat_map(|(_, requirements)| requirements.clone()));
            let spec = self.definition.spec();
            let made = anonymize(&part, &spec, &requirements, progress).map_err(ViewProblem::Unreachable)?;
            let loss = made.loss.ncp;
            let release = verify_release(made.release, &part, &requirements).map_err(ViewProblem::Unverified)?;
            let findings = release.findings();
            (summary.k, summary.n_classes, summary.ncp) = (findings.k, findings.classes, loss);
            assigned.classes(release.get(), &in_classes);
            summary.n_left_over = (part.n_rows - release.get().tables[0].rows.len()) as u64;
        }
        for (row, k) in (0..).zip(self.k) {
            match k {
                None => summary.n_denied += 1,
                Some(0 | 1) => {
                    assigned.alone(row);
                    summary.n_alone += 1;
                }
                Some(_) => {}
            }
        }
        let policy_key = match self.definition.policy_key {
            Some(position) if position == self.definition.identifier => PolicyKey::Identifier,
            _ => PolicyKey::Other,
        };
        let directory = Directory::new(
            self.table,
            quasi.clone(),
            &sensitive,
            assigned.finish(self.wishes, policy_key),
            self.seed.clone(),
        );
        summary.n_rows = directory.n_rows();
        summary.k_deviation = self.k_deviation(&directory);
        Ok((directory, summary))
    }

    /// The rows that are in classes, with what a partitioner looks at.
    fn part(&self, rows: &[u32], quasi: &[usize], sensitive: &[usize]) -> Table {
        let mut columns = Vec::new();
        let identifier = self.table.person.expect("a view has an identifier");
        let mut person = chosen(&self.table.columns[identifier], rows);
        person.role = Role::Key;
        columns.push(person);
        columns.extend(quasi.iter().chain(sensitive).map(|&position| chosen(&self.table.columns[position], rows)));
        columns.extend(self.raised.iter().map(|(column, _)| chosen(column, rows)));
        let mut texts = Texts::new();
        let mut known: HashMap<u32, u32> = HashMap::new();
        let ids = rows.iter().map(|&row| {
            let k = self.k[row as usize].unwrap_or(0);
            *known.entry(k).or_insert_with(|| texts.push(&k.to_string()))
        });
        let ids = ids.collect();
        let (name, value_type, notation) = (OWN_K.to_owned(), ValueType::Integer, Notation::default());
        columns.push(Column { name, role: Role::PersonK, value_type, notation, hierarchy: None, texts, ids });
        Table { name: self.definition.name.clone(), columns, n_rows: rows.len(), person: Some(0) }
    }

    fn k_deviation(&self, directory: &Directory) -> u64 {
        let Ok(Found { class_of_row: classes, .. }) = directory.find(self.table) else { return 0 };
        let mut n_persons: HashMap<u32, u64> = HashMap::new();
        for &class in classes.iter().filter(|&&class| class != Assigned::NONE) {
            n_persons.entry(class).or_insert_with(|| directory.members(&[class]).len() as u64);
        }
        let in_class = classes.iter().zip(self.k).filter(|&(&class, _)| class != Assigned::NONE);
        in_class
            .filter_map(|(class, k)| k.filter(|&k| k >= 2).map(|k| n_persons[class].saturating_sub(u64::from(k))))
            .sum()
    }
}

/// Some rows of a column, its dictionary without texts that no longer occur.
fn chosen(column: &Column, rows: &[u32]) -> Column {
    let mut new_id = vec![NULL; column.texts.len()];
    let mut texts = Texts::new();
    let ids = rows.iter().map(|&row| match column.ids[row as usize] {
        NULL => NULL,
        id => {
            let new_id = &mut new_id[id as usize];
            if *new_id == NULL {
                *new_id = texts.push(column.texts.get(id));
            }
            *new_id
        }
    });
    let ids = ids.collect();
    Column { texts, ids, ..column.without_cells() }
}

/// Numbers classes by what they show.
struct Assigner<'a> {
    table: &'a Table,
    quasi: &'a [usize],
    labels: Vec<LabelIds>,
    by_labels: HashMap<(bool, Vec<u32>), u32>,
    label_of_class: Vec<Vec<u32>>,
    is_alone: Vec<bool>,
    class_of_row: Vec<u32>,
}

#[derive(Default)]
struct LabelIds {
    texts: Texts,
    by_text: HashMap<String, u32>,
}

impl LabelIds {
    fn id(&mut self, label: &str) -> u32 {
        if let Some(&id) = self.by_text.get(label) {
            return id;
        }
        let id = self.texts.push(label);
        self.by_text.insert(label.to_owned(), id);
        id
    }
}

impl<'a> Assigner<'a> {
    fn new(table: &'a Table, quasi: &'a [usize]) -> Self {
        Assigner {
            table,
            quasi,
            labels: quasi.iter().map(|_| LabelIds::default()).collect(),
            by_labels: HashMap::new(),
            label_of_class: vec![Vec::new(); quasi.len()],
            is_alone: Vec::new(),
            class_of_row: vec![Assigned::NONE; table.n_rows],
        }
    }

    /// Notes the classes of a release of these rows.
    fn classes(&mut self, release: &Release, rows: &[u32]) {
        let released = &release.tables[0];
        let mut recoded = Vec::with_capacity(self.quasi.len());
        for (labels, column) in
            self.labels.iter_mut().zip(released.columns.iter().filter_map(|column| match &column.cells {
                Cells::Recoded { labels, ids } => Some((labels, ids)),
                Cells::Copied | Cells::Surrogate { .. } => None,
            }))
        {
            let (texts, ids) = column;
            let of_label: Vec<u32> = texts.iter().map(|label| labels.id(label)).collect();
            recoded.push((of_label, ids));
        }
        for (place, &source) in released.rows.iter().enumerate() {
            let key: Vec<u32> = recoded
                .iter()
                .map(|(of_label, ids)| if ids[place] == NULL { NULL } else { of_label[ids[place] as usize] })
                .collect();
            let class = self.class(false, key);
            self.class_of_row[rows[source as usize] as usize] = class;
        }
    }

    /// Notes a row that is shown as it is.
    fn alone(&mut self, row: u32) {
        let key: Vec<u32> = self
            .quasi
            .iter()
            .zip(&mut self.labels)
            .map(|(&position, labels)| match self.table.columns[position].cell(row as usize) {
                None => NULL,
                Some(text) => labels.id(text),
            })
            .collect();
        self.class_of_row[row as usize] = self.class(true, key);
    }

    fn class(&mut self, is_alone: bool, key: Vec<u32>) -> u32 {
        let (n_classes, label_of_class) = (self.is_alone.len() as u32, &mut self.label_of_class);
        let class = *self.by_labels.entry((is_alone, key)).or_insert_with_key(|(_, key)| {
            label_of_class.iter_mut().zip(key).for_each(|(labels, &label)| labels.push(label));
            n_classes
        });
        if class == n_classes {
            self.is_alone.push(is_alone);
        }
        class
    }

    fn finish(self, wishes: &Wishes, policy_key: PolicyKey) -> Assigned {
        Assigned {
            labels: self.labels.into_iter().map(|labels| labels.texts).collect(),
            label_of_class: self.label_of_class,
            is_alone: self.is_alone,
            class_of_row: self.class_of_row,
            policy_of_row: wishes.policy_of_row.clone(),
            policy_key,
        }
    }
}
