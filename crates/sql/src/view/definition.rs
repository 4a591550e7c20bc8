//! [`Definition`]: a CREATE ANONYMIZATION_VIEW, resolved against the columns of its query.

use std::collections::BTreeSet;

use datafusion::arrow::array::{Array, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::error::DataFusionError;
use kohort_io::{PlainCells, PrivateRows, read_rows};
use kohort_model::spec::{Algorithm, Leftovers};
use kohort_model::{Disclosure, Distance, Requirement, Role, Spec};

use super::ViewError;
use crate::parser::{Answers, BlockSize, Changes, Clauses, Purposes, ViewStatement};

/// The least k of a class, if no policy and no clause asks for more. One person alone is not a class.
const SMALLEST_CLASS: u32 = 2;
/// Each column is one bit of a 64-bit word in which refusals are kept.
const MOST_COLUMNS: usize = 64;

/// What a view shows, and whom.
#[derive(Clone, Debug)]
pub(crate) struct Definition {
    /// The view's name.
    pub name: String,
    /// The query, as it was written.
    pub query: String,
    /// The columns of the query, in order.
    pub columns: Vec<ViewColumn>,
    /// Position of the identifier.
    pub identifier: usize,
    /// Position of the column by which policies are found.
    pub policy_key: Option<usize>,
    /// All clauses but the columns.
    pub clauses: Clauses,
}

/// One column of a view.
#[derive(Clone, Debug)]
pub(crate) struct ViewColumn {
    pub name: String,
    /// What the column is for.
    pub role: Role,
    /// The DGH by which it is generalized.
    pub hierarchy: Option<String>,
    /// The type of the query's column.
    pub data_type: DataType,
}

/// A fault of a definition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DefinitionError {
    #[error("columns of the query that no clause names: {}", .columns.join(", "))]
    WithoutClause { columns: Vec<String> },
    #[error("the query has no column {}", .columns.join(", "))]
    UnknownColumns { columns: Vec<String> },
    #[error("columns in more than one clause: {}", .columns.join(", "))]
    TwoClauses { columns: Vec<String> },
    #[error("the query has several columns named {}", .columns.join(", "))]
    SameName { columns: Vec<String> },
    #[error("there is neither a K nor a REFERENCES clause: nothing says how many persons must look alike")]
    NoK,
    #[error("L_DIVERSITY and T_CLOSENESS need a column in ANONYMIZATION_SENSITIVE_ATTR")]
    NothingSensitive,
    #[error("BLOCK is for datafly; {algorithm} takes all rows together")]
    BlockOfAnother { algorithm: &'static str },
    /// More columns than refusals have bits.
    #[error("a view has at most {MOST_COLUMNS} columns, and this query has {n_columns}")]
    TooManyColumns { n_columns: usize },
    #[error("CHANGES and DEPARTURES are for MATERIALIZED anonymization views")]
    NotMaterialized,
    /// A rule whose steps can't be verified.
    #[error(
        "CHANGES PAPER is not supported any more: a reader who kept an earlier answer learned the values of newcomers"
    )]
    PaperRule,
    #[error("PER PURPOSE needs a REFERENCES clause")]
    NoPurposes,
    /// A person who asks for a k of 0 or 1 would be a total.
    #[error("ANSWERS AGGREGATES needs a K of 2 or more, which nobody's own k is below")]
    AggregatesWithoutK,
    #[error("ANSWERS AGGREGATES and DISCLOSURE ROW: the total of a class would belong to those who refuse nothing")]
    AggregatesByRow,
    #[error("ANSWERS AGGREGATES and PER PURPOSE: totals of two partitions could be subtracted from each other")]
    AggregatesPerPurpose,
}

impl DefinitionError {
    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            DefinitionError::WithoutClause { .. } => Some(
                "name each in ANONYMIZATION_QUASI_ID, ANONYMIZATION_SENSITIVE_ATTR or ANONYMIZATION_OTHER, or leave it out of the query",
            ),
            DefinitionError::NoK => Some("write K 5, or: name REFERENCES choices (k)"),
            DefinitionError::AggregatesWithoutK => Some("write K 5, also beside a REFERENCES clause"),
            DefinitionError::AggregatesByRow => {
                Some("leave DISCLOSURE out: a refusal then hides the column of the class")
            }
            DefinitionError::AggregatesPerPurpose => Some("leave PER PURPOSE out"),
            DefinitionError::NotMaterialized => Some("leave them out; the view then follows REFRESH"),
            DefinitionError::PaperRule => {
                Some("leave CHANGES out; DROP a view that was made with it and CREATE it again")
            }
            DefinitionError::SameName { .. } => Some("give one of them another name: ... AS other_name"),
            DefinitionError::BlockOfAnother { .. } => Some("write USING datafly, or leave BLOCK out"),
            _ => None,
        }
    }
}

impl Definition {
    /// Resolves a statement against the columns of its query.
    ///
    /// # Errors
    /// All faults.
    pub(crate) fn resolve(statement: &ViewStatement, schema: &Schema) -> Result<Definition, Vec<DefinitionError>> {
        let clauses = &statement.clauses;
        let mut problems = Vec::new();
        let mut roles: Vec<(String, Role, Option<String>)> =
            vec![(statement.identifier.clone(), Role::Identifier, None)];
        let quasi = statement.quasi.iter().map(|column| (column, Role::Quasi));
        let sensitive = statement.sensitive.iter().map(|column| (column, Role::Sensitive));
        roles
            .extend(quasi.chain(sensitive).map(|(column, role)| (column.name.clone(), role, column.hierarchy.clone())));
        roles.extend(statement.other.iter().map(|name| (name.clone(), Role::Plain, None)));

        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        let twice = |name: &str| names.iter().filter(|&&other| other == name).count() > 1;
        let same: BTreeSet<&str> = names.iter().copied().filter(|&name| twice(name)).collect();
        push_names(&mut problems, same, |columns| DefinitionError::SameName { columns });
        let referred = clauses.policy.iter().map(|policy| policy.person_column.as_str());
        let unknown = roles.iter().map(|(name, ..)| name.as_str()).chain(referred).filter(|name| !names.contains(name));
        push_names(&mut problems, unknown, |columns| DefinitionError::UnknownColumns { columns });
        let n_clauses = |name: &str| roles.iter().filter(|(other, ..)| other == name).count();
        let repeated: BTreeSet<&str> = names.iter().copied().filter(|&name| n_clauses(name) > 1).collect();
        push_names(&mut problems, repeated, |columns| DefinitionError::TwoClauses { columns });
        let without = names.iter().copied().filter(|&name| n_clauses(name) == 0);
        push_names(&mut problems, without, |columns| DefinitionError::WithoutClause { columns });
        problems.extend(inconsistencies(statement, names.len()));
        if !problems.is_empty() {
            return Err(problems);
        }

        let column = |field: &Field| {
            let (name, role, hierarchy) =
                roles.iter().find(|(name, ..)| name == field.name()).expect("every column has a clause").clone();
            ViewColumn { name, role, hierarchy, data_type: field.data_type().clone() }
        };
        let columns: Vec<ViewColumn> = schema.fields().iter().map(|field| column(field)).collect();
        let identifier =
            columns.iter().position(|column| column.role == Role::Identifier).expect("the identifier is a column");
        let position = |name: &str| columns.iter().position(|column| column.name == name);
        Ok(Definition {
            policy_key: clauses.policy.as_ref().and_then(|policy| position(&policy.person_column)),
            name: statement.name.clone(),
            query: statement.query_text.clone(),
            columns,
            identifier,
            clauses: clauses.clone(),
        })
    }

    /// The names of the columns, in order.
    pub(crate) fn names(&self) -> Vec<String> {
        self.columns.iter().map(|column| column.name.clone()).collect()
    }

    /// The columns of the view's query.
    pub(super) fn private_schema(&self) -> SchemaRef {
        let field = |column: &ViewColumn| Field::new(&column.name, column.data_type.clone(), true);
        Schema::new(self.columns.iter().map(field).collect::<Vec<_>>()).into()
    }

    /// Rows of the view's query as a table.
    pub(super) fn private_rows(&self, rows: &RecordBatch, plain: PlainCells) -> Result<PrivateRows, ViewError> {
        let roles: Vec<Role> = self.columns.iter().map(|column| column.role).collect();
        read_rows(rows, &self.name, &roles, Some(self.identifier), plain).map_err(ViewError::Columns)
    }

    /// Checks that every row of the view's query has an identifier.
    pub(super) fn check_identifiers(&self, rows: &RecordBatch) -> Result<(), ViewError> {
        match rows.column(self.identifier).null_count() {
            0 => Ok(()),
            n_rows => {
                let column = self.columns[self.identifier].name.clone();
                Err(ViewError::NullIdentifiers { column, n_rows: n_rows as u64 })
            }
        }
    }

    /// The error for a failure of the view's query, without its message, which may contain cells.
    pub(super) fn failed(&self, error: impl Into<DataFusionError>) -> ViewError {
        ViewError::of_query(&self.name, &error.into())
    }

    /// Positions of the columns with this role.
    pub(crate) fn with_role(&self, role: Role) -> Vec<usize> {
        (0..self.columns.len()).filter(|&position| self.columns[position].role == role).collect()
    }

    /// Whether a column is shown as labels.
    pub(crate) fn is_labelled(&self, position: usize) -> bool {
        let column = &self.columns[position];
        column.role == Role::Quasi || column.role == Role::Sensitive && column.hierarchy.is_some()
    }

    /// The columns a reader sees.
    pub(crate) fn schema(&self) -> SchemaRef {
        let field = |position: usize| {
            let column = &self.columns[position];
            let data_type = if self.is_labelled(position) { DataType::Utf8 } else { column.data_type.clone() };
            Field::new(&column.name, data_type, true)
        };
        Schema::new((0..self.columns.len()).map(field).collect::<Vec<_>>()).into()
    }

    /// The k of a person whose policy asks for this k; of everybody if the view refers to no policies.
    pub(crate) fn k_of(&self, own: Option<u32>) -> u32 {
        own.unwrap_or(0).max(self.clauses.k.unwrap_or(0))
    }

    /// What every class must satisfy, except each person's own k.
    pub(crate) fn requirements(&self) -> Vec<Requirement> {
        let mut requirements = vec![Requirement::K(self.clauses.k.unwrap_or(0).max(SMALLEST_CLASS))];
        for column in self.columns.iter().filter(|column| column.role == Role::Sensitive) {
            requirements.extend(self.sensitive_requirements(&column.name));
        }
        requirements
    }

    /// The requirements on a sensitive column.
    pub(crate) fn sensitive_requirements(&self, name: &str) -> Vec<Requirement> {
        let column = || name.to_owned();
        let l = self.clauses.l.map(|l| Requirement::DistinctL { column: column(), l });
        let t = self.clauses.t.map(|t| Requirement::TCloseness { column: column(), t, distance: Distance::Equal });
        l.into_iter().chain(t).collect()
    }

    /// The job for the partitioner.
    pub(crate) fn spec(&self) -> Spec {
        let mut spec = Spec::new(SMALLEST_CLASS);
        spec.algorithm = self.clauses.algorithm;
        spec.leftovers = self.clauses.leftovers;
        if self.clauses.leftovers == Leftovers::Suppress {
            spec.max_suppressed = 1.0;
        }
        if let BlockSize::Rows(n_rows) = self.clauses.block {
            spec.datafly.block = u32::try_from(n_rows.get()).ok();
        }
        spec
    }
}

fn push_names<'a>(
    problems: &mut Vec<DefinitionError>,
    names: impl IntoIterator<Item = &'a str>,
    problem: impl FnOnce(Vec<String>) -> DefinitionError,
) {
    let names: Vec<String> = names.into_iter().map(|name| format!("'{name}'")).collect();
    if !names.is_empty() {
        problems.push(problem(names));
    }
}

/// The faults that do not depend on the names of columns.
fn inconsistencies(statement: &ViewStatement, n_columns: usize) -> Vec<DefinitionError> {
    let clauses = &statement.clauses;
    let mut problems = Vec::new();
    if n_columns > MOST_COLUMNS {
        problems.push(DefinitionError::TooManyColumns { n_columns });
    }
    if clauses.k.is_none() && clauses.policy.is_none() {
        problems.push(DefinitionError::NoK);
    }
    if clauses.asks_of_values() && statement.sensitive.is_empty() {
        problems.push(DefinitionError::NothingSensitive);
    }
    if clauses.block != BlockSize::All && clauses.algorithm != Algorithm::Datafly {
        problems.push(DefinitionError::BlockOfAnother { algorithm: clauses.algorithm.word() });
    }
    if clauses.changes == Some(Changes::Paper) {
        problems.push(DefinitionError::PaperRule);
    }
    if !clauses.is_materialized && (clauses.changes.is_some() || clauses.departures.is_some()) {
        problems.push(DefinitionError::NotMaterialized);
    }
    if clauses.purposes == Purposes::Apart && clauses.policy.is_none() {
        problems.push(DefinitionError::NoPurposes);
    }
    if clauses.answers == Answers::Aggregates {
        let faults = [
            (clauses.k.unwrap_or(0) < SMALLEST_CLASS, DefinitionError::AggregatesWithoutK),
            (clauses.disclosure == Disclosure::Row, DefinitionError::AggregatesByRow),
            (clauses.purposes == Purposes::Apart, DefinitionError::AggregatesPerPurpose),
        ];
        problems.extend(faults.into_iter().filter_map(|(is_wrong, fault)| is_wrong.then_some(fault)));
    }
    problems
}
