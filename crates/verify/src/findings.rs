//! [`Findings`]: the counts of a table or a release.

use std::fmt;

use kohort_model::{Presence, Requirement};

use crate::count::N_SMALLEST;
use crate::violation::InWords;
use crate::{LossFindings, Violation};

/// The counts of a table or a release.
#[derive(Clone, Debug, PartialEq)]
pub struct Findings {
    /// Whether classes were counted in persons or in rows.
    pub counted: Counted,
    /// Rows of the table, or of all tables.
    pub rows: u64,
    /// Persons of the table; as many as rows if rows were counted.
    pub persons: u64,
    /// Groups of rows with the same cells in all quasi columns.
    pub classes: u64,
    /// Persons in the smallest class. With audiences, this and each measure below is the worst over all audiences.
    pub k: u64,
    /// Persons who are alone in a class.
    pub unique_persons: u64,
    /// The class sizes that occur, ascending, each with the number of classes of that size, over all audiences.
    pub class_sizes: Vec<(u64, u64)>,
    /// One over the size of the smallest class.
    pub highest_risk: f64,
    /// Mean over persons of one over the size of their class; a person in several classes counts with the smallest.
    pub average_risk: f64,
    /// One entry per sensitive column, in the order asked. For many tables, see `tables` instead.
    pub sensitive: Vec<SensitiveFindings>,
    /// Requirements that some class does not satisfy. Empty if a verification succeeded.
    pub unmet: Vec<Violation>,
    /// Requirements and facts that the given tables are not enough to recount.
    pub skipped: Vec<Skipped>,
    /// Rows and persons left out of the release, if the original was given.
    pub suppressed: Option<Suppressed>,
    /// One entry per table of a release of many tables, in their order; empty for a single table.
    pub tables: Vec<TableFindings>,
    /// One entry per audience; empty if there are none.
    pub audiences: Vec<AudienceFindings>,
    /// All audiences together first, under the name `all`, then coalitions by name; empty if there are no audiences.
    pub coalitions: Vec<AudienceFindings>,
    /// The number of persons in the smallest class, where classes are those of a reader who knows the columns of all
    /// audiences; `None` without audiences.
    pub collusion_k: Option<u64>,
    /// Counts beside a register, if there is one. Classes then consist of private and register persons, while `persons`
    /// counts the private ones.
    pub joined: Option<JoinedFindings>,
    /// The loss of all tables together, if files were compared with the private tables.
    pub loss: Option<LossFindings>,
}

impl Findings {
    /// The ten smallest class sizes that occur, each with the number of classes of that size.
    pub fn smallest_classes(&self) -> &[(u64, u64)] {
        &self.class_sizes[..self.class_sizes.len().min(N_SMALLEST)]
    }

    /// The findings before anything but rows is counted.
    pub(crate) fn uncounted(rows: u64) -> Findings {
        Findings {
            counted: Counted::Persons,
            rows,
            persons: 0,
            classes: 0,
            k: 0,
            unique_persons: 0,
            class_sizes: Vec::new(),
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

/// The counts of a release beside a register.
#[derive(Clone, Debug, PartialEq)]
pub struct JoinedFindings {
    /// Sensitive groups; 0 if no column is sensitive.
    pub groups: u64,
    /// Private persons in the smallest sensitive group.
    pub group_k: Option<u64>,
    /// How sure a reader can be that somebody is in the private table, if the private table was given.
    pub presence: Option<Presence>,
    /// What readers of this and of earlier releases learn, if there are earlier ones and it is known whose rows are
    /// whose.
    pub together: Option<TogetherFindings>,
    /// Bounds of `together`, if the private table was given but it is not known whose rows are whose.
    pub together_within: Option<TogetherWithin>,
}

/// The counts of a release and earlier ones that are read together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TogetherFindings {
    /// For each private person, a reader of all releases still has to consider everybody who, by the register of each
    /// time, can have been in the person's classes, the current one and the earlier ones, the person included. This is
    /// the smallest number of them over all private persons, or the size of the smallest class if no earlier class
    /// covers anybody.
    pub k: u64,
    /// For each sensitive column, the fewest distinct values that a group has in common with the earlier groups that
    /// somebody of it can have been in.
    pub l: Vec<(String, u64)>,
}

/// The least and the most that [`TogetherFindings`] can be, because they depend on whose rows are whose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TogetherWithin {
    /// Persons, as in [`TogetherFindings::k`].
    pub k: (u64, u64),
    /// For each sensitive column, the distinct values as in [`TogetherFindings::l`]. `None` means that no groups have a
    /// value in common, and counts as more than any number.
    pub l: Vec<(String, LeastAndMost)>,
}

/// The least and the most that a number can be.
pub type LeastAndMost = (Option<u64>, Option<u64>);

/// The counts of classes as one audience, or a coalition of audiences, sees them.
#[derive(Clone, Debug, PartialEq)]
pub struct AudienceFindings {
    /// The name of the audience or coalition.
    pub audience: String,
    /// Groups of rows with the same cells in the quasi columns that the audience or coalition knows.
    pub classes: u64,
    /// Persons in the smallest class.
    pub k: u64,
    /// Persons who are alone in a class.
    pub unique_persons: u64,
    /// Mean over persons of one over the size of their class.
    pub average_risk: f64,
    /// The class sizes that occur, ascending, each with the number of classes of that size.
    pub class_sizes: Vec<(u64, u64)>,
    /// One entry per sensitive column, in the order asked.
    pub sensitive: Vec<SensitiveFindings>,
    /// One entry per quasi column that only others know, in the order of columns, without those in `Findings::skipped`.
    pub learned: Vec<LearnedFindings>,
}

/// What the cells of a quasi column tell an audience that does not know the column. [`kohort_model::Requirement`]
/// defines the measures.
#[derive(Clone, Debug, PartialEq)]
pub struct LearnedFindings {
    /// The column's name.
    pub column: String,
    /// Fewest pairwise disjoint labels in a class whose cells tell something; `None` if no cell does.
    pub l: Option<u64>,
    /// Largest distance of a class's labels to those of the whole release.
    pub t: f64,
    /// Persons of whom the audience learns the label for certain, because all cells of their class show the same one.
    pub certain: u64,
}

/// The counts of one of many tables.
#[derive(Clone, Debug, PartialEq)]
pub struct TableFindings {
    /// The name of the table.
    pub table: String,
    /// The rows of the table.
    pub rows: u64,
    /// Groups of rows that look the same, their ancestors and descendants included; in a person table, these are
    /// classes.
    pub classes: u64,
    /// Persons in the smallest class, for a person table.
    pub k: Option<u64>,
    /// One entry per sensitive column, over the groups that `classes` counts.
    pub sensitive: Vec<SensitiveFindings>,
    /// One entry per reference, by column.
    pub references: Vec<ReferenceFindings>,
    /// Rows, and in a person table persons, that were left out, if the original was given.
    pub suppressed: Option<Suppressed>,
    /// The loss in this table, if files were compared with the private tables.
    pub loss: Option<LossFindings>,
}

/// The counts of a second foreign key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferenceFindings {
    /// The column.
    pub column: String,
    /// Released rows that reference a row.
    pub kept: u64,
    /// Released rows that reference nothing although their private row references a row, if that is known.
    pub removed: Option<u64>,
}

/// Whether classes are counted in persons or in rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Distinct persons.
    Persons,
    /// Rows, each of which is taken for a person.
    Rows,
}

/// For one sensitive column, the worst that any class reaches in each measure.
#[derive(Clone, Debug, PartialEq)]
pub struct SensitiveFindings {
    /// The column's name.
    pub column: String,
    /// Fewest distinct values in a class. For many tables, the largest `l` such that every group of rows that look the
    /// same has `l` distinct values, none of them held by more than a share of `1/l` of the persons.
    pub l: u64,
    /// Smallest effective number of values, `exp` of the entropy.
    pub entropy_l: f64,
    /// Largest ratio of the most frequent value's count to the counts from rank `l` on, for the `l` of the first
    /// recursive requirement on this column; infinite if a class has fewer than `l` values.
    pub recursive_c: Option<f64>,
    /// Largest distance to the whole table's distribution, if any two values are 1 apart.
    pub t: f64,
    /// Largest distance by the order of the values, if a requirement asks for it.
    pub t_ordered: Option<f64>,
    /// Largest distance by the column's hierarchy, if a requirement asks for it.
    pub t_hierarchical: Option<f64>,
    /// Largest share of a class's persons that hold one value.
    pub alpha: f64,
    /// Largest relative gain of a value's share over the whole table's.
    pub beta: f64,
    /// The smallest beta for which enhanced beta-likeness holds; `None` if it holds for none.
    pub enhanced_beta: Option<f64>,
}

impl SensitiveFindings {
    /// The largest distance by order or by hierarchy, whichever a requirement asks for.
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

/// Whether a person may have several rows in a released table that names no persons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowsOf {
    /// Each row belongs to a person of its own.
    PersonsEach,
    /// Several rows may belong to the same person, and nothing tells which.
    PersonsUnnamed,
}

/// A requirement or fact that the given tables are not enough to recount.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Skipped {
    /// Each person's own k is not counted, because it is never released, or because nobody knows who is in which class.
    PersonK {
        /// The column that holds own k.
        column: String,
    },
    /// Class sizes are not counted, because only private rows are released, and only the register says who else their
    /// cells could mean.
    Crowd,
    /// Presence is not counted, because nothing released tells private rows from register rows.
    Presence,
    /// What a generalized column tells audiences that do not know it is not counted, because nothing released says which
    /// labels overlap.
    Labels {
        /// The quasi column.
        column: String,
    },
    /// It is not checked whether references name the right rows, because released and private rows are matched person by
    /// person, while references lead from one person to another.
    References,
    /// A requirement that can't be confirmed, because persons may have several rows and nothing released tells which
    /// rows belong to the same person. No class refutes it.
    OfPersons {
        /// The requirement.
        requirement: Requirement,
    },
    /// The exact figures are not known, because rows can be traced back to persons in several ways. All requirements
    /// hold in the way that was counted, but the release may have been made in another way with other figures.
    Figures,
    /// It is not decided whether groups give values away to readers of earlier releases, because that depends on whose
    /// rows are whose.
    TogetherValues {
        /// The sensitive column.
        column: String,
    },
}

impl Skipped {
    /// The entry for a requirement on persons' own k; `None` for other requirements.
    pub(crate) fn own_k(requirement: &Requirement) -> Option<Self> {
        requirement.own_k_column().map(|column| Skipped::PersonK { column: column.to_owned() })
    }

    /// The entry for a requirement that can't be confirmed without knowing which rows belong to the same person. `None`
    /// for distinct values, because these can be counted whoever holds them.
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
            Skipped::Crowd => f.write_str(
                "class sizes can't be counted without the register; verify against the private tables to count them",
            ),
            Skipped::Presence => f.write_str(
                "presence can't be counted: on purpose, nothing released tells which rows come from the private table",
            ),
            Skipped::Labels { column } => write!(
                f,
                "what '{column}' tells those who don't know it can't be counted without its hierarchy; verify against \
                 the private tables to count it"
            ),
            Skipped::OfPersons { requirement } => write!(
                f,
                "{}: no released column tells which rows belong to the same person; verify against the private tables \
                 to count it",
                InWords(requirement)
            ),
            Skipped::References => f.write_str(
                "whether references name the right rows can't be seen in files; it was checked when the release was made",
            ),
            Skipped::Figures => f.write_str(
                "rows can be traced back to persons in several ways; all requirements hold in the way that was counted",
            ),
            Skipped::TogetherValues { column } => write!(
                f,
                "whether groups give values of '{column}' away beside earlier releases depends on whose rows are whose; \
                 it was counted when the release was made"
            ),
        }
    }
}
