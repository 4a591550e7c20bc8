//! What can be wrong with a spec: where, what, and what to do about it.
//!
//! A spec holds no private data, so problems may quote it.

use std::fmt;

use crate::hierarchy::MakeError;
use crate::{Role, ValueType};

/// One problem of a spec.
#[derive(Clone, Debug, PartialEq)]
pub struct SpecError {
    /// The line it stands in, from 1; none where something is missing altogether.
    pub line: Option<usize>,
    /// The key it concerns, such as `tables.patient.columns.zip`; empty for the whole spec.
    pub key: String,
    /// What is wrong there.
    pub fault: SpecErrorKind,
}

/// All problems of a spec, in the order of their lines.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct SpecErrors(pub Vec<SpecError>);

/// What is wrong with a key of a spec.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecErrorKind {
    /// The text is no TOML.
    #[error("not valid TOML: {message}")]
    Syntax {
        /// What the TOML reader says.
        message: String,
    },
    /// A key that means nothing here.
    #[error("unknown key")]
    UnknownKey {
        /// The known key it resembles most.
        nearest: Option<&'static str>,
        /// All keys known here.
        known: &'static [&'static str],
    },
    /// A word that is not one of those that mean something here.
    #[error("must be {}, not '{word}'", either(.known))]
    UnknownWord {
        /// The word.
        word: String,
        /// The known word it resembles most.
        nearest: Option<&'static str>,
        /// All words known here.
        known: Vec<&'static str>,
    },
    /// A value of another kind.
    #[error("must be {expected}, found {found}")]
    WrongKind {
        /// The kind that is meant.
        expected: &'static str,
        /// The kind that is there.
        found: &'static str,
    },
    /// A number or text that is not allowed here.
    #[error("must be {expected}, not {found}")]
    NotAllowed {
        /// What is allowed.
        expected: &'static str,
        /// What is there.
        found: String,
    },
    /// A key that must be there.
    #[error("'{key}' is missing")]
    Missing {
        /// The key.
        key: &'static str,
        /// How it might be written.
        example: &'static str,
    },
    /// Neither k nor a preset.
    #[error("there is no k")]
    NoK,
    /// k and a preset.
    #[error("k and preset are both given")]
    KAndPreset,
    /// Two names of one requirement.
    #[error("l and p are two names of the same requirement")]
    LAndP,
    /// Nobody may be suppressed, and leftovers shall be.
    #[error("\"suppress\" needs a max_suppressed above 0")]
    SuppressWithoutLimit,
    /// Blocks of persons, and no person to order them by.
    #[error("blocks follow the order of persons, and no table names its persons")]
    BlockWithoutPerson,
    /// No table at all.
    #[error("there is no table")]
    NoTable,
    /// No quasi column at all.
    #[error("no column is quasi, so nothing would be protected")]
    NoQuasi,
    /// A table name that can't be a file's.
    #[error("the name cannot be that of a released file")]
    BadTableName,
    /// A format that no date can have.
    #[error("'{format}' is not a date format")]
    BadDateFormat {
        /// The format.
        format: String,
    },
    /// A requirement on a column that is not sensitive.
    #[error("a requirement needs a sensitive column, and this one is {role}")]
    RequirementOnRole {
        /// The column's role.
        role: Role,
    },
    /// A type or hierarchy on a column that is neither quasi nor sensitive.
    #[error("a column that is {role} is not generalized and takes none")]
    NotGeneralized {
        /// The column's role.
        role: Role,
    },
    /// A distance with nothing to measure.
    #[error("a distance is given without t")]
    DistanceWithoutT,
    /// A distance along a hierarchy the column does not have.
    #[error("the hierarchical distance needs a hierarchy")]
    DistanceWithoutHierarchy,
    /// A rule by its name alone.
    #[error("'{rule}' alone says too little")]
    RuleWithoutSetting {
        /// The rule.
        rule: String,
    },
    /// None of the forms of a hierarchy, or several.
    #[error("must have exactly one of steps, mask, dates and edges, found {found}")]
    NotOneRule {
        /// How many it has.
        found: usize,
    },
    /// A rule that contradicts itself.
    #[error("{0}")]
    Rule(MakeError),
    /// A rule for another type.
    #[error("'{rule}' does not fit a column of type {value_type}")]
    RuleOnType {
        /// The rule.
        rule: &'static str,
        /// The column's type.
        value_type: ValueType,
    },
    /// A key column with a role that would release or generalize it.
    #[error("the table's {used_as} cannot be {role}")]
    KeyWithRole {
        /// Which key.
        used_as: &'static str,
        /// The role it was given.
        role: Role,
    },
    /// A key by its role alone: no table is joined by it.
    #[error("the column is a key, but it joins no tables and names nobody")]
    KeyLinksNothing,
    /// A reference in a column that is no key.
    #[error("only a key references a table, and this column is {role}")]
    ReferencesOnRole {
        /// The column's role.
        role: Role,
    },
    /// A reference in a column that joins tables in another way, too.
    #[error("the column is the table's person, key or foreign key already")]
    ReferencesTwice,
    /// References with something that counts rows of one table only.
    #[error("references can't be combined with {with}")]
    ReferencesWith {
        /// What it can't be combined with.
        with: &'static str,
    },
    /// References that would show private keys.
    #[error("a reference is released renumbered or not at all, so \"keep\" can't be combined with references")]
    ReferencesKept,
    /// More than one column of persons' own k.
    #[error("a second person_k column: '{first}' is one already")]
    SecondPersonK {
        /// The first one's name.
        first: String,
    },
    /// A person's own k in a table whose rows are not persons.
    #[error("person_k stands in the table of persons, not in one that hangs off it")]
    PersonKOfChild,
    /// A table that is not in the spec.
    #[error("there is no table '{name}'")]
    UnknownTable {
        /// The name.
        name: String,
        /// The table it resembles most.
        nearest: Option<String>,
    },
    /// A parent without a column to point to.
    #[error("table '{parent}' has neither a key nor a person to point to")]
    ParentWithoutKey {
        /// The parent.
        parent: String,
    },
    /// Tables that hang off each other in a circle.
    #[error("following the parents leads back to this table")]
    ParentCycle,
    /// A table of which nothing would be released: a key is released only where another table points to it.
    #[error("nothing of this table would be released")]
    NothingReleased,
    /// A second table without a parent that does not say it is one of persons.
    #[error("'{first}' is the persons' table already, and this one hangs off nothing")]
    SecondPersonTable {
        /// The first table without a parent.
        first: String,
    },
    /// Persons in a child table: they would be part of other persons.
    #[error("only a table without a parent names persons")]
    PersonInChild,
    /// Rows that are persons, and no key that names them.
    #[error("each row is a person, and the table has no key that names it")]
    PersonsWithoutKey,
    /// Orphans of a table that hangs off nothing.
    #[error("the table has no parent, so none of its rows is an orphan")]
    OrphansWithoutParent,
    /// Childless persons of a table that is not one of persons with children.
    #[error("{reason}, so none of its rows is a person without children")]
    ChildlessElsewhere {
        /// Why not.
        reason: &'static str,
    },
    /// An algorithm for another number of tables.
    #[error("'{algorithm}' is for {needed}")]
    AlgorithmForOther {
        /// The algorithm.
        algorithm: &'static str,
        /// What it is for.
        needed: &'static str,
    },
    /// A column of an audience that is not quasi.
    #[error("column '{column}' is {role}, not quasi")]
    AudienceNotQuasi {
        /// The column.
        column: String,
        /// Its role.
        role: Role,
    },
    /// A column that no table has.
    #[error("no table gives column '{column}' a role")]
    UnknownColumn {
        /// The column.
        column: String,
        /// The column it resembles most.
        nearest: Option<String>,
    },
    /// A name that is listed twice.
    #[error("'{name}' is listed twice")]
    Twice {
        /// The name.
        name: String,
    },
    /// An audience without columns.
    #[error("names no column, so there is nothing to protect from this audience")]
    AudienceKnowsNothing,
    /// A quasi column that no audience has.
    #[error("quasi, but no audience has it")]
    QuasiWithoutAudience,
    /// An audience that the spec does not name.
    #[error("there is no audience '{name}'")]
    UnknownAudience {
        /// The name.
        name: String,
        /// The audience it resembles most.
        nearest: Option<String>,
    },
    /// A column that is to be kept from an audience that knows it.
    #[error("audience '{audience}' knows column '{column}', so it can't be kept from it")]
    KnownAlready {
        /// The audience.
        audience: String,
        /// The column.
        column: String,
    },
    /// A column that is sensitive to some audiences and not quasi for others.
    #[error("only a quasi column is sensitive to some audiences and not to others, and this one is {role}")]
    SensitiveToOnRole {
        /// The column's role.
        role: Role,
    },
    /// A requirement that is not defined where cells are generalized.
    #[error("{what} is not defined for a quasi column, whose cells may be generalized")]
    NotOfLabels {
        /// The requirement or distance.
        what: &'static str,
    },
    /// A setting that asks for nothing.
    #[error("asks for nothing")]
    AsksNothing {
        /// How a requirement might be written.
        example: &'static str,
    },
    /// A coalition's requirement on a column that is neither sensitive nor known to others alone.
    #[error("column '{column}' is {role}, not sensitive")]
    NotSensitive {
        /// The column.
        column: String,
        /// Its role.
        role: Role,
    },
    /// A coalition of one audience or none.
    #[error("a coalition has at least two audiences")]
    CoalitionOfOne,
    /// A coalition that is called as all audiences together are.
    #[error("'all' is the name of all audiences together")]
    CoalitionNamedAll,
    /// Each person's own k, and no column of it.
    #[error("no column is person_k, so nobody has a k of their own")]
    NoPersonK,
    /// Rows shall be left out to make classes smaller, and audiences' classes can't do without them.
    #[error("\"suppress\" is not available with audiences")]
    SuppressWithAudiences,
    /// A setting for audiences without any.
    #[error("there are no audiences it could apply to")]
    WithoutAudiences,
    /// A setting for registers without any.
    #[error("there are no registers it could apply to")]
    WithoutRegisters,
    /// A register with a key, and no person to find by it.
    #[error("a register with a key needs a table that names its persons")]
    RegisterWithoutPerson,
    /// Registers that can't be united.
    #[error("some registers have a key and some have none, so nobody can tell who is in both")]
    RegistersWithAndWithoutKey,
    /// Presence bounded, and given away.
    #[error("release = \"microdata\" says that presence is public, so it can't be bounded")]
    PresenceIsPublic,
    /// A setting for registers without a key, and registers that have one.
    #[error("registers with a key say who is in them, so nobody is in doubt")]
    UnmatchedWithKey,
    /// The order that gives register rows away.
    #[error("\"input\" would tell register rows from the others")]
    OrderWithRegister,
}

impl SpecError {
    /// What to do about it, where there is a remedy to name.
    pub fn hint(&self) -> Option<String> {
        self.fault.hint()
    }
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        self.fault.fmt(f)
    }
}

impl SpecErrorKind {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            SpecErrorKind::Syntax { .. } | SpecErrorKind::WrongKind { .. } | SpecErrorKind::NotAllowed { .. } => {
                return None;
            }
            SpecErrorKind::UnknownKey { nearest: Some(word), .. }
            | SpecErrorKind::UnknownWord { nearest: Some(word), .. } => {
                return Some(did_you_mean(word));
            }
            SpecErrorKind::UnknownWord { nearest: None, .. } => return None,
            SpecErrorKind::UnknownKey { nearest: None, known } => {
                return Some(format!("known here: {}", known.join(", ")));
            }
            SpecErrorKind::UnknownTable { nearest, .. }
            | SpecErrorKind::UnknownColumn { nearest, .. }
            | SpecErrorKind::UnknownAudience { nearest, .. } => {
                return nearest.as_deref().map(did_you_mean);
            }
            SpecErrorKind::Missing { example, .. } => return Some(format!("for example {example}")),
            SpecErrorKind::NoK => {
                "say how many persons must look alike, for example k = 5, or preset = \"ema\" (12) or \"cms\" (11); \
                 there is no default"
            }
            SpecErrorKind::LAndP => "keep one of them",
            SpecErrorKind::KAndPreset => "keep one: preset = \"ema\" means k = 12, \"cms\" means k = 11",
            SpecErrorKind::SuppressWithoutLimit => {
                "say which share of the persons may be left out, for example max_suppressed = 0.02"
            }
            SpecErrorKind::BlockWithoutPerson => {
                "add for example person = \"patient_id\" to the table, which is not released, or take block out"
            }
            SpecErrorKind::NoTable => "name one: [tables.patient] with file = \"patient.csv\" and its columns",
            SpecErrorKind::NoQuasi => {
                "give role \"quasi\" to every column that others could know about a person, such as age or postcode"
            }
            SpecErrorKind::BadTableName => "use letters, digits, '-' and '_'",
            SpecErrorKind::BadDateFormat { .. } => "write it as in strftime, for example \"%d.%m.%Y\"",
            SpecErrorKind::RequirementOnRole { .. } => {
                "give the column role \"sensitive\", or take the requirement out"
            }
            SpecErrorKind::NotGeneralized { .. } => "give the column role \"quasi\" or \"sensitive\", or take it out",
            SpecErrorKind::DistanceWithoutT => "add for example t = 0.2, or take the distance out",
            SpecErrorKind::DistanceWithoutHierarchy => {
                "add for example hierarchy = \"disease.csv\", or use distance \"equal\" or \"ordered\""
            }
            SpecErrorKind::RuleWithoutSetting { rule } => match rule.as_str() {
                "steps" => "for example hierarchy = { steps = [5, 10, 50] }",
                "mask" => "for example hierarchy = { mask = \"right\" }",
                "dates" => "for example hierarchy = { dates = [\"month\", \"year\"] }, or \"date\" for every level",
                _ => "for example hierarchy = { edges = \"edges.csv\" }",
            },
            SpecErrorKind::NotOneRule { .. } => "for example { steps = [5, 10, 50] } or { mask = \"right\" }",
            SpecErrorKind::Rule(problem) => problem.hint(),
            SpecErrorKind::RuleOnType { .. } => {
                "steps are for numbers, dates for dates and timestamps, masks and flat for any"
            }
            SpecErrorKind::KeyWithRole { .. } => "give it role \"key\", or \"identifier\" if it must never be released",
            SpecErrorKind::KeyLinksNothing => {
                "equal numbers in such a column tell people apart: give it role \"drop\", or \"quasi\" if others could \
                 know it, or say whose key it holds, for example { role = \"key\", references = \"doctor\" }"
            }
            SpecErrorKind::ReferencesOnRole { .. } => "give it role \"key\", or take references out",
            SpecErrorKind::ReferencesTwice => "take references out, or copy the column under another name",
            SpecErrorKind::ReferencesWith { .. } => "drop the column, or release without it",
            SpecErrorKind::ReferencesKept => "take keys = \"keep\" out, or drop the columns with references",
            SpecErrorKind::PersonKOfChild => "move the column to the table of persons, or give it another role",
            SpecErrorKind::SecondPersonK { .. } => "keep one, and give the other another role",
            SpecErrorKind::ParentWithoutKey { .. } => "give that table its key, for example key = \"visit_id\"",
            SpecErrorKind::ParentCycle => "let every table lead to the persons' table",
            SpecErrorKind::NothingReleased => {
                "take the table out, or give a column that is to be released the role quasi, sensitive or plain"
            }
            SpecErrorKind::SecondPersonTable { .. } => {
                "say where it hangs, for example parent = { table = \"patient\", foreign_key = \"patient_id\" }, or \
                 person = true if its rows are persons too"
            }
            SpecErrorKind::PersonInChild => {
                "take person out: parent leads to the person; or take parent out, if the two are persons apart"
            }
            SpecErrorKind::PersonsWithoutKey => "add for example key = \"doctor_id\"",
            SpecErrorKind::OrphansWithoutParent => "take orphans out, or say where the table hangs with parent",
            SpecErrorKind::ChildlessElsewhere { .. } => "take childless out; a row of a child table needs no children",
            SpecErrorKind::AlgorithmForOther { .. } => "algorithm = \"auto\" picks one that fits",
            SpecErrorKind::AudienceNotQuasi { .. } => "give it role \"quasi\", or take it out of the audience",
            SpecErrorKind::Twice { .. } => "keep one of the two",
            SpecErrorKind::AudienceKnowsNothing => "name the columns it could know, or leave the audience out",
            SpecErrorKind::QuasiWithoutAudience => {
                "add it to the audiences that could know it, or give it another role"
            }
            SpecErrorKind::KnownAlready { .. } => "take the audience out, or the column out of what the audience knows",
            SpecErrorKind::SensitiveToOnRole { .. } => {
                "take sensitive_to out: a sensitive column is sensitive to every audience, and others are not shown to \
                 be anybody's"
            }
            SpecErrorKind::NotOfLabels { .. } => "ask for l, or for t with distance \"equal\"",
            SpecErrorKind::AsksNothing { example } => return Some(format!("for example {example}")),
            SpecErrorKind::NotSensitive { .. } => {
                "name a sensitive column, or a quasi column that no audience of the coalition knows"
            }
            SpecErrorKind::CoalitionOfOne => {
                "name two audiences or more, for example audiences = [\"insurer\", \"hr\"]"
            }
            SpecErrorKind::CoalitionNamedAll => {
                "say what all must not learn in [collusion] itself, or choose another name"
            }
            SpecErrorKind::NoPersonK => "take person_k out",
            SpecErrorKind::SuppressWithAudiences => {
                "take leftovers out: with max_suppressed only persons who fit into no class are left out"
            }
            SpecErrorKind::WithoutAudiences => "add for example [audiences.insurer] with quasi = [\"age\"]",
            SpecErrorKind::WithoutRegisters => "add for example [registers.voters] with file and key",
            SpecErrorKind::RegisterWithoutPerson => {
                "add for example person = \"patient_id\" to the table; or take key out, and rows are joined by their quasi values"
            }
            SpecErrorKind::RegistersWithAndWithoutKey => "give each of them a key, or none",
            SpecErrorKind::PresenceIsPublic => "take delta_presence out, or release = \"microdata\"",
            SpecErrorKind::UnmatchedWithKey => "take unmatched out",
            SpecErrorKind::OrderWithRegister => "take order out, or set order = \"sorted\"",
        };
        Some(hint.to_owned())
    }
}

fn did_you_mean(word: &str) -> String {
    format!("did you mean '{word}'?")
}

fn either(words: &[&str]) -> String {
    match words {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        _ => words.concat(),
    }
}
