//! [`Findings`]: what was counted in a table or release.

use std::fmt;

use kohort_model::{Presence, Requirement};

use crate::violation::InWords;
use crate::{LossFindings, Violation};

/// What was counted.
#[derive(Clone, Debug, PartialEq)]
pub struct Findings {
    /// What a class is counted in.
    pub counted: Counted,
    /// Rows of the table, or of all tables.
    pub rows: u64,
    /// Persons of the table; as many as rows where rows were counted.
    pub persons: u64,
    /// Groups of rows with the same cells in all quasi columns.
    pub classes: u64,
    /// Persons in the smallest class. With audiences this and what follows is the worst of theirs, measure by measure.
    pub k: u64,
    /// Persons who are alone in a class.
    pub unique_persons: u64,
    /// The ten smallest class sizes that occur, each with the number of classes of that size, over all audiences.
    pub smallest_classes: Vec<(u64, u64)>,
    /// One over the size of the smallest class.
    pub highest_risk: f64,
    /// Mean over persons of one over the size of their class; a person in several classes counts with the smallest.
    pub average_risk: f64,
    /// Per sensitive column, in the order asked; of many tables see `tables`.
    pub sensitive: Vec<SensitiveFindings>,
    /// Requirements that some class does not satisfy. Empty wherever a verification succeeded.
    pub unmet: Vec<Violation>,
    /// What could not be recounted from what was at hand.
    pub skipped: Vec<Skipped>,
    /// What was left out of the release, where the original was at hand.
    pub suppressed: Option<Suppressed>,
    /// Of many tables each, in their order, sensitive columns included; empty where one table stands alone.
    pub tables: Vec<TableFindings>,
    /// Each audience by itself; empty where there are none.
    pub audiences: Vec<AudienceFindings>,
    /// All audiences together first, under the name `all`, then coalitions by name; empty where there are no audiences.
    pub coalitions: Vec<AudienceFindings>,
    /// Persons in the smallest class that all audiences together can make out, where there are audiences.
    pub collusion_k: Option<u64>,
    /// What was counted beside a register, where there is one. Classes then are of everybody, and persons those of the
    /// private table.
    pub joined: Option<JoinedFindings>,
    /// What recoding lost, of all tables together, where files were compared with the private tables.
    pub loss: Option<LossFindings>,
}

impl Findings {
    /// Rows of nobody who asks for a class.
    pub(crate) fn of_nobody(rows: u64) -> Findings {
        Findings {
            counted: Counted::Persons,
            rows,
            persons: 0,
            classes: 0,
            k: 0,
            unique_persons: 0,
            smallest_classes: Vec::new(),
            highest_risk: 0.0,
            average_risk: 0.0,
            sensitive: Vec::new(),
            unmet: Vec::new(),
            skipped: Vec::new(),
            suppressed: None,
            tables: Vec::new(),
            audiences: Vec::new(),
            coalitions: Vec::new(),
            collusion_k: None,
            joined: None,
            loss: None,
        }
    }
}

/// What was counted of a release beside a register.
#[derive(Clone, Debug, PartialEq)]
pub struct JoinedFindings {
    /// Sensitive groups; 0 where no column is sensitive.
    pub groups: u64,
    /// Private persons in the smallest sensitive group.
    pub group_k: Option<u64>,
    /// How sure presence in the private table is, where the private table was at hand.
    pub presence: Option<Presence>,
    /// What readers of earlier releases learn, where there are some and it is known whose rows are whose.
    pub together: Option<TogetherFindings>,
    /// The same as far as files tell of which it is not known whose rows are whose, where the private table was at hand.
    pub together_within: Option<TogetherWithin>,
}

/// What was counted of a release and earlier ones that are read together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TogetherFindings {
    /// Persons whom a class and earlier classes hold, by the registers of each time, and the person who is looked for: the
    /// fewest over all private persons, by the count that is checked. As many as in the smallest class where no earlier
    /// class holds anybody.
    pub k: u64,
    /// Per sensitive column the fewest distinct values that groups somebody can be in have in common.
    pub l: Vec<(String, u64)>,
}

/// Bounds of [`TogetherFindings`], each at least and at most: what they are depends on whose rows are whose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TogetherWithin {
    /// Persons, as in [`TogetherFindings::k`].
    pub k: (u64, u64),
    /// Per sensitive column the distinct values, as in [`TogetherFindings::l`]; `None`, which is more than any number, where
    /// no groups have a value in common.
    pub l: Vec<(String, LeastAndMost)>,
}

/// A number is at least the first and at most the second.
pub type LeastAndMost = (Option<u64>, Option<u64>);

/// What was counted of classes as one audience sees them, or several that put together what they know.
#[derive(Clone, Debug, PartialEq)]
pub struct AudienceFindings {
    /// Its name.
    pub audience: String,
    /// Groups of rows with the same cells in its quasi columns.
    pub classes: u64,
    /// Persons in the smallest class.
    pub k: u64,
    /// Persons who are alone in a class.
    pub unique_persons: u64,
    /// Mean over persons of one over the size of their class.
    pub average_risk: f64,
    /// Per sensitive column, in the order asked.
    pub sensitive: Vec<SensitiveFindings>,
    /// Per quasi column that only others know, in the order of columns, but for those in `Findings::skipped`.
    pub learned: Vec<LearnedFindings>,
}

/// What the cells of a quasi column tell an audience that does not know it. The measures are those of
/// [`kohort_model::Requirement`] for such columns.
#[derive(Clone, Debug, PartialEq)]
pub struct LearnedFindings {
    /// The column's name.
    pub column: String,
    /// Fewest pairwise disjoint labels in a class whose cells tell something; `None` where no cell does.
    pub l: Option<u64>,
    /// Largest distance of a class's labels to the release's.
    pub t: f64,
    /// Persons in a class whose cells all show one label that tells something: the audience learns it of them.
    pub certain: u64,
}

/// What was counted in one of many tables.
#[derive(Clone, Debug, PartialEq)]
pub struct TableFindings {
    /// Its name.
    pub table: String,
    /// Its rows.
    pub rows: u64,
    /// Groups of rows that look the same, their ancestors and descendants included; classes in a person table.
    pub classes: u64,
    /// Persons in the smallest class, for a person table.
    pub k: Option<u64>,
    /// Per sensitive column, over those groups of rows.
    pub sensitive: Vec<SensitiveFindings>,
    /// Its references, by column.
    pub references: Vec<ReferenceFindings>,
    /// What was left out, where the original was at hand; persons in a person table only.
    pub suppressed: Option<Suppressed>,
    /// What recoding lost in it, where files were compared with the private tables.
    pub loss: Option<LossFindings>,
}

/// What was counted of a second foreign key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferenceFindings {
    /// The column.
    pub column: String,
    /// Released rows that reference a row.
    pub kept: u64,
    /// Released rows of which the private row references one and the released row does not, where that is known.
    pub removed: Option<u64>,
}

/// What a class is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Distinct persons.
    Persons,
    /// Rows, each taken for a person.
    Rows,
}

/// The worst class of one sensitive column, measure by measure.
#[derive(Clone, Debug, PartialEq)]
pub struct SensitiveFindings {
    /// The column's name.
    pub column: String,
    /// Fewest distinct values in a class. Of many tables the largest `l` that holds in every group of rows that look
    /// the same: as many distinct values, and none held by more than a share of `1/l` of the persons.
    pub l: u64,
    /// Smallest effective number of values, `exp` of the entropy.
    pub entropy_l: f64,
    /// Largest ratio of the most frequent value's count to the counts from rank `l` on, for the `l` of the first
    /// recursive requirement on this column; infinite where a class has fewer than `l` values.
    pub recursive_c: Option<f64>,
    /// Largest distance to the whole table's distribution, any two values being 1 apart.
    pub t: f64,
    /// The same by the order of the values, where a requirement asks for it.
    pub t_ordered: Option<f64>,
    /// The same by the column's hierarchy, where a requirement asks for it.
    pub t_hierarchical: Option<f64>,
    /// Largest share of a class's persons that hold one value.
    pub alpha: f64,
    /// Largest relative gain of a value's share over the whole table's.
    pub beta: f64,
    /// The smallest beta for which enhanced beta-likeness holds; `None` where it holds for none.
    pub enhanced_beta: Option<f64>,
}

impl SensitiveFindings {
    /// The largest distance under the distance asked for, where that is not the equal one.
    pub fn t_by_distance(&self) -> Option<f64> {
        self.t_ordered.or(self.t_hierarchical)
    }
}

/// Rows and persons that are not in the release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Suppressed {
    /// Rows left out.
    pub rows: u64,
    /// Persons left out.
    pub persons: u64,
}

/// Whom the rows of a released table are of, where no released column names persons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowsOf {
    /// Each of a person of its own.
    PersonsEach,
    /// Several may be of the same person, and nothing tells which.
    PersonsUnnamed,
}

/// What could not be recounted.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Skipped {
    /// Persons' own k is never released, or nobody knows who is in which class.
    PersonK {
        /// The column that holds it.
        column: String,
    },
    /// Private rows alone are released, and nothing but the register says how many others their cells hold.
    Crowd,
    /// Nothing released tells private rows from register rows.
    Presence,
    /// What a generalized column tells audiences that do not know it: nothing released says which labels overlap.
    Labels {
        /// The quasi column.
        column: String,
    },
    /// Released rows and private rows are matched person by person, and references lead from one person to another.
    References,
    /// Persons may have several rows, and nothing released tells which rows are of the same person, so this can't be
    /// confirmed. It was refuted nowhere.
    OfPersons {
        /// What was asked.
        requirement: Requirement,
    },
    /// Rows can be traced back to persons in several ways that show the same. Everything asked holds in the one that was
    /// counted; figures of the way the release was made in may be others.
    Figures,
    /// Beside earlier releases, whether groups give values away: it depends on whose rows are whose.
    TogetherValues {
        /// The sensitive column.
        column: String,
    },
}

impl Skipped {
    /// A requirement on persons' own k, as what was skipped.
    pub(crate) fn own_k(requirement: &Requirement) -> Option<Self> {
        requirement.own_k_column().map(|column| Skipped::PersonK { column: column.to_owned() })
    }

    /// A requirement that can't be confirmed while rows of the same person can't be told, as what was skipped. Distinct
    /// values are the same whoever holds them.
    pub(crate) fn of_persons(requirement: &Requirement) -> Option<Self> {
        match requirement {
            Requirement::DistinctL { .. } | Requirement::PersonK { .. } => None,
            Requirement::K(_)
            | Requirement::EntropyL { .. }
            | Requirement::RecursiveCL { .. }
            | Requirement::TCloseness { .. }
            | Requirement::Alpha { .. }
            | Requirement::Beta { .. }
            | Requirement::EnhancedBeta { .. } => Some(Skipped::OfPersons { requirement: requirement.clone() }),
        }
    }
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Skipped::PersonK { column } => {
                write!(f, "each person's own k in '{column}' can't be recounted from what is released")
            }
            Skipped::Crowd => f.write_str("class sizes can't be recounted without the register: see --against"),
            Skipped::Presence => {
                f.write_str("which rows are of the private table can't be seen, nor is it meant to be")
            }
            Skipped::Labels { column } => {
                write!(f, "what '{column}' tells those who do not know it needs its hierarchy: see --against")
            }
            Skipped::OfPersons { requirement } => {
                write!(f, "{}: no released column tells whose rows are whose, see --against", InWords(requirement))
            }
            Skipped::References => f.write_str(
                "that references name the right rows is shown when a release is made, and can't be seen in its files",
            ),
            Skipped::Figures => f.write_str(
                "rows can be traced back to persons in several ways; what was asked holds in the one that was counted",
            ),
            Skipped::TogetherValues { column } => write!(
                f,
                "whether groups give values of '{column}' away beside earlier releases depends on whose rows are whose; it is counted when a release is made"
            ),
        }
    }
}
