//! [`Definition`]: what a CREATE ANONYMIZATION_VIEW says, resolved against the columns of its query.

use std::collections::BTreeSet;

use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use kohort_model::spec::{Algorithm, Leftovers};
use kohort_model::{Distance, Requirement, Role, Spec};

use crate::parser::{BlockSize, Changes, Clauses, Purposes, ViewStatement};

/// The k of a class that nobody's policy and no clause makes larger: below it there is no class.
const SMALLEST_CLASS: u32 = 2;
/// Refusals are kept as bits of one word.
const MOST_COLUMNS: usize = 64;

/// What a view shows, and of whom.
#[derive(Clone, Debug)]
pub struct Definition {
    /// The view's name.
    pub name: String,
    /// Its query, as it was written.
    pub query: String,
    /// The columns of the query, in order.
    pub columns: Vec<ViewColumn>,
    /// Position of the identifier.
    pub identifier: usize,
    /// Position of the column that policies are found by.
    pub policy_key: Option<usize>,
    /// What is asked of it beside its columns.
    pub clauses: Clauses,
}

/// One column of a view.
#[derive(Clone, Debug)]
pub struct ViewColumn {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub role: Role,
    /// The DGH it is generalized by.
    pub hierarchy: Option<String>,
    /// The type of the query's column.
    pub data_type: DataType,
}

/// Why a definition can't be one. Says everything that is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DefinitionError {
    /// A column of the query stands in no clause.
    #[error("columns of the query without a clause: {}", .columns.join(", "))]
    WithoutClause {
        /// Their names.
        columns: Vec<String>,
    },
    /// A clause names a column the query does not have.
    #[error("the query has no column {}", .columns.join(", "))]
    UnknownColumns {
        /// Their names.
        columns: Vec<String>,
    },
    /// A column stands in two clauses.
    #[error("columns in more than one clause: {}", .columns.join(", "))]
    TwoClauses {
        /// Their names.
        columns: Vec<String>,
    },
    /// Two columns of the query have one name.
    #[error("the query has several columns named {}", .columns.join(", "))]
    SameName {
        /// Their names.
        columns: Vec<String>,
    },
    /// There is nothing that says how large classes are.
    #[error("there is neither a K nor a REFERENCES clause: nothing says how many persons must look alike")]
    NoK,
    /// A requirement on sensitive values, and no sensitive column.
    #[error("L_DIVERSITY and T_CLOSENESS need a column in ANONYMIZATION_SENSITIVE_ATTR")]
    NothingSensitive,
    /// Blocks with a partitioner that sees all rows.
    #[error("BLOCK is for datafly; {algorithm} takes all rows together")]
    BlockOfAnother {
        /// The partitioner's name.
        algorithm: &'static str,
    },
    /// More columns than refusals can name.
    #[error("a view has at most {MOST_COLUMNS} columns, and this query has {n_columns}")]
    TooManyColumns {
        /// How many the query has.
        n_columns: usize,
    },
    /// Options of views that are kept, of one that is not.
    #[error("CHANGES and DEPARTURES are for MATERIALIZED anonymization views")]
    NotMaterialized,
    /// A rule whose steps can't be verified.
    #[error(
        "there is no CHANGES PAPER any more: whoever kept an earlier answer learned the values of newcomers from it"
    )]
    PaperRule,
    /// Partitions by purpose without purposes.
    #[error("PER PURPOSE needs a REFERENCES clause")]
    NoPurposes,
}

impl DefinitionError {
    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            DefinitionError::WithoutClause { .. } => Some(
                "name each in ANONYMIZATION_QUASI_ID, ANONYMIZATION_SENSITIVE_ATTR or ANONYMIZATION_OTHER, or leave it out of the query",
            ),
            DefinitionError::NoK => Some("write K 5, or: name REFERENCES choices (k)"),
            DefinitionError::NotMaterialized => Some("leave them out; the view then follows REFRESH"),
            DefinitionError::PaperRule => Some("leave it out, DROP a view that was made with it, and CREATE it anew"),
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
    /// Everything that is wrong with it.
    pub fn resolve(statement: &ViewStatement, schema: &Schema) -> Result<Definition, Vec<DefinitionError>> {
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

    /// The roles of the columns, in order.
    pub fn roles(&self) -> Vec<Role> {
        self.columns.iter().map(|column| column.role).collect()
    }

    /// Positions of the columns with this role.
    pub fn with_role(&self, role: Role) -> Vec<usize> {
        (0..self.columns.len()).filter(|&position| self.columns[position].role == role).collect()
    }

    /// Whether a column is shown as labels.
    pub fn is_labelled(&self, position: usize) -> bool {
        let column = &self.columns[position];
        column.role == Role::Quasi || column.role == Role::Sensitive && column.hierarchy.is_some()
    }

    /// The columns a reader sees.
    pub fn schema(&self) -> SchemaRef {
        let field = |position: usize| {
            let column = &self.columns[position];
            let data_type = if self.is_labelled(position) { DataType::Utf8 } else { column.data_type.clone() };
            Field::new(&column.name, data_type, true)
        };
        Schema::new((0..self.columns.len()).map(field).collect::<Vec<_>>()).into()
    }

    /// The k of a person who asks for so much, or of everybody where no policy is referred to.
    pub fn k_of(&self, own: Option<u32>) -> u32 {
        own.unwrap_or(0).max(self.clauses.k.unwrap_or(0))
    }

    /// What every class must satisfy beside each person's own k; sensitive columns by their names.
    pub fn requirements(&self) -> Vec<Requirement> {
        let mut requirements = vec![Requirement::K(self.clauses.k.unwrap_or(0).max(SMALLEST_CLASS))];
        for column in self.columns.iter().filter(|column| column.role == Role::Sensitive) {
            requirements.extend(self.sensitive_requirements(&column.name));
        }
        requirements
    }

    /// What is asked of a sensitive column.
    pub fn sensitive_requirements(&self, name: &str) -> Vec<Requirement> {
        let column = || name.to_owned();
        let l = self.clauses.l.map(|l| Requirement::DistinctL { column: column(), l });
        let t = self.clauses.t.map(|t| Requirement::TCloseness { column: column(), t, distance: Distance::Equal });
        l.into_iter().chain(t).collect()
    }

    /// The job a partitioner gets.
    pub fn spec(&self) -> Spec {
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

/// What is wrong whatever the columns are.
fn inconsistencies(statement: &ViewStatement, n_columns: usize) -> Vec<DefinitionError> {
    let clauses = &statement.clauses;
    let mut problems = Vec::new();
    if n_columns > MOST_COLUMNS {
        problems.push(DefinitionError::TooManyColumns { n_columns });
    }
    if clauses.k.is_none() && clauses.policy.is_none() {
        problems.push(DefinitionError::NoK);
    }
    if (clauses.l.is_some() || clauses.t.is_some()) && statement.sensitive.is_empty() {
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
    problems
}
