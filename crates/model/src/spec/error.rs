//! Faults of a spec: where, what, and what to do about them.
//!
//! A spec contains no private data, so messages may quote it.

use std::fmt;

use crate::hierarchy::MakeError;
use crate::{Role, ValueType};

/// One fault of a spec.
#[derive(Clone, Debug, PartialEq)]
pub struct SpecError {
    /// The line of the fault, from 1; `None` if something is missing altogether.
    pub line: Option<usize>,
    /// The key concerned, such as `tables.patient.columns.zip`; empty for the whole spec.
    pub key: String,
    /// What is wrong there.
    pub fault: SpecErrorKind,
}

/// All faults of a spec, in the order of their lines.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct SpecErrors(pub Vec<SpecError>);

/// What is wrong with a key of a spec.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum SpecErrorKind {
    /// The text is not TOML.
    #[error("not valid TOML: {message}")]
    Syntax { message: String },
    /// A key that is not known at this place.
    #[error("unknown key")]
    UnknownKey {
        /// The known key that it resembles most, for the hint.
        nearest: Option<&'static str>,
        /// All keys known at this place, for the hint.
        known: &'static [&'static str],
    },
    /// A word that is not known at this place.
    #[error("must be {}, not '{word}'", either(.known))]
    UnknownWord {
        word: String,
        /// The known word that it resembles most, for the hint.
        nearest: Option<&'static str>,
        /// All words known at this place.
        known: Vec<&'static str>,
    },
    /// A value of another kind.
    #[error("must be {expected}, found {found}")]
    WrongKind { expected: &'static str, found: &'static str },
    /// A number or text that is not allowed here.
    #[error("must be {expected}, not {found}")]
    NotAllowed { expected: &'static str, found: String },
    /// A key that must be there.
    #[error("'{key}' is missing")]
    Missing {
        key: &'static str,
        /// The key as it might be written, for the hint.
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
    /// Persons who fit into no class are to be left out, but the spec does not allow that anybody is left out.
    #[error("\"suppress\" needs a max_suppressed above 0")]
    SuppressWithoutLimit,
    /// Blocks of persons, but no column that names the person.
    #[error("blocks follow the order of persons, but no table names its persons")]
    BlockWithoutPerson,
    /// No table at all.
    #[error("there is no table")]
    NoTable,
    /// No quasi column at all.
    #[error("no column is quasi, so nothing would be protected")]
    NoQuasi,
    /// A table name that can't be the name of a file.
    #[error("the name can't be the name of a released file")]
    BadTableName,
    /// A format that no date can have.
    #[error("'{format}' is not a date format")]
    BadDateFormat { format: String },
    /// A requirement on a column that is not sensitive.
    #[error("a requirement needs a sensitive column, but this one is {role}")]
    RequirementOnRole { role: Role },
    /// A weight on a column that is not quasi.
    #[error("a weight is for a quasi column, whose cells may lose something, but this one is {role}")]
    WeightOnRole { role: Role },
    /// A loss to minimize where it can't be followed.
    #[error("only the usual loss is minimized with {with}")]
    ObjectiveWith { with: &'static str },
    /// A target that is not read, or names rows.
    #[error("column '{column}' is {role}, so it can't be a target")]
    TargetOnRole { column: String, role: Role },
    /// A type or hierarchy on a column that is neither quasi nor sensitive.
    #[error("a column that is {role} is not generalized, so it takes neither a type nor a hierarchy")]
    NotGeneralized { role: Role },
    /// Two ways of making cells coarser.
    #[error("a column is rounded or truncated, not both")]
    RoundAndTruncate,
    /// A change of cells that are not released.
    #[error("cells of a column that is {role} can't be changed: they are not released, or join tables")]
    TransformOnRole { role: Role },
    /// A change that is not defined for the type of the column.
    #[error("'{key}' does not fit a column of type {value_type}")]
    TransformOnType { key: &'static str, value_type: ValueType },
    /// Coded values in a column whose labels are made by a rule.
    #[error("'{key}' can't be combined with a hierarchy that is made by rule")]
    CodeWithRule { key: &'static str },
    /// Changed cells in a table that is compared with a register.
    #[error("changes of cells are not available with registers, whose cells would have to be changed alike")]
    TransformWithRegisters,
    /// A bound by quantile in a table whose rows are not persons.
    #[error("a bound by quantile is not available in a child table, because its rows don't say whose they are")]
    QuantileInChild,
    /// A key for cells that are no pseudonyms.
    #[error("'key_file' is only for a column of role \"pseudonym\"")]
    KeyWithoutPseudonym,
    /// A column is released as pseudonyms, and its cells are changed in another way, too.
    #[error("cells that become pseudonyms can't be changed otherwise")]
    ChangedPseudonym,
    /// A column is released as pseudonyms in a spec of several tables.
    #[error("pseudonyms are not available with several tables in this version")]
    PseudonymInTables,
    /// A distance with nothing to measure.
    #[error("a distance is given without t")]
    DistanceWithoutT,
    /// A distance along a hierarchy the column does not have.
    #[error("the hierarchical distance needs a hierarchy")]
    DistanceWithoutHierarchy,
    /// A rule by its name alone.
    #[error("'{rule}' needs a setting")]
    RuleWithoutSetting { rule: String },
    /// None of the forms of a hierarchy, or several.
    #[error("must have exactly one of steps, mask, dates and edges, found {found}")]
    NotOneRule { found: usize },
    /// A rule that contradicts itself.
    #[error("{0}")]
    Rule(MakeError),
    /// A rule that does not fit the type of its column.
    #[error("'{rule}' does not fit a column of type {value_type}")]
    RuleOnType { rule: &'static str, value_type: ValueType },
    /// A key column with a role that would release or generalize it.
    #[error("the table's {used_as} can't be {role}")]
    KeyWithRole { used_as: &'static str, role: Role },
    /// A column of role key that joins no tables.
    #[error("the column is a key, but it joins no tables and names nobody")]
    KeyLinksNothing,
    /// A reference in a column that is not a key.
    #[error("only a key references a table, but this column is {role}")]
    ReferencesOnRole { role: Role },
    /// A reference in a column that joins tables in another way, too.
    #[error("the column is already the table's person, key or foreign key")]
    ReferencesTwice,
    /// References together with a setting that supports only tables without them.
    #[error("references can't be combined with {with}")]
    ReferencesWith { with: &'static str },
    /// References that would show private keys.
    #[error("a reference is released renumbered or not at all, so \"keep\" can't be combined with references")]
    ReferencesKept,
    /// More than one column of persons' own k.
    #[error("a second person_k column: '{first}' is one already")]
    SecondPersonK { first: String },
    /// A person's own k in a table whose rows are not persons.
    #[error("person_k belongs in the table of persons, not in a child table")]
    PersonKOfChild,
    /// A table that is not in the spec.
    #[error("there is no table '{name}'")]
    UnknownTable {
        name: String,
        /// The table that the name resembles most, for the hint.
        nearest: Option<String>,
    },
    /// A parent without a column to point to.
    #[error("table '{parent}' has neither a key nor a person to point to")]
    ParentWithoutKey { parent: String },
    /// Tables that are each other's parents, in a circle.
    #[error("following the parents leads back to this table")]
    ParentCycle,
    /// A table of which nothing would be released, because a key is released only if another table points to it.
    #[error("nothing of this table would be released")]
    NothingReleased,
    /// A second table without a parent that does not say whether its rows are persons.
    #[error("the table has no parent, but '{first}' is already the table of persons")]
    SecondPersonTable { first: String },
    /// Persons in a child table, who would be part of other persons.
    #[error("only a table without a parent names persons")]
    PersonInChild,
    /// Rows that are persons, but no key that names them.
    #[error("each row is a person, but the table has no key that names it")]
    PersonsWithoutKey,
    /// A setting for orphans in a table without a parent.
    #[error("the table has no parent, so none of its rows is an orphan")]
    OrphansWithoutParent,
    /// A limit on rows left out in a table of persons.
    #[error("the table has no parent, so its rows are persons and not rows that find no partner")]
    RowsLeftOutOfPersons,
    /// A setting for childless persons in a table that is not a table of persons with children.
    #[error("{reason}, so none of its rows is a person without children")]
    ChildlessElsewhere { reason: &'static str },
    /// An algorithm for another number of tables.
    #[error("'{algorithm}' is for {needed}")]
    AlgorithmForOther { algorithm: &'static str, needed: &'static str },
    /// A column of an audience that is not quasi.
    #[error("column '{column}' is {role}, not quasi")]
    AudienceNotQuasi { column: String, role: Role },
    /// A column that no table has.
    #[error("no table gives column '{column}' a role")]
    UnknownColumn {
        column: String,
        /// The column that the name resembles most, for the hint.
        nearest: Option<String>,
    },
    /// A name that is listed twice.
    #[error("'{name}' is listed twice")]
    Twice { name: String },
    /// An audience without columns.
    #[error("the audience knows no column, so there is nothing to protect from it")]
    AudienceKnowsNothing,
    /// A quasi column that no audience has.
    #[error("the column is quasi, but no audience knows it")]
    QuasiWithoutAudience,
    /// An audience that the spec does not name.
    #[error("there is no audience '{name}'")]
    UnknownAudience {
        name: String,
        /// The audience that the name resembles most, for the hint.
        nearest: Option<String>,
    },
    /// A column that is to be kept from an audience that knows it.
    #[error("audience '{audience}' knows column '{column}', so the column can't be kept from the audience")]
    KnownAlready { audience: String, column: String },
    /// A column with `sensitive_to` that is not quasi.
    #[error("only a quasi column can be sensitive to some audiences and not to others, but this one is {role}")]
    SensitiveToOnRole { role: Role },
    /// A requirement that is not defined for generalized cells.
    #[error("{what} is not defined for a quasi column, whose cells may be generalized")]
    NotOfLabels { what: &'static str },
    /// A section without any requirement.
    #[error("there is no requirement")]
    AsksNothing {
        /// A requirement as it might be written, for the hint.
        example: &'static str,
    },
    /// A coalition's requirement on a column that is neither sensitive nor a quasi column that only others know.
    #[error("column '{column}' is {role}, not sensitive")]
    NotSensitive { column: String, role: Role },
    /// A coalition of one audience or none.
    #[error("a coalition has at least two audiences")]
    CoalitionOfOne,
    /// A coalition with the name of all audiences together.
    #[error("'all' is the name of all audiences together")]
    CoalitionNamedAll,
    /// A requirement on each person's own k, but no column with it.
    #[error("no column is person_k, so nobody has a k of their own")]
    NoPersonK,
    /// Rows are to be left out to make classes narrower, which is not possible with audiences.
    #[error("\"suppress\" is not available with audiences")]
    SuppressWithAudiences,
    /// A setting for audiences in a spec that has none.
    #[error("applies to audiences, but there are none")]
    WithoutAudiences,
    /// A setting for registers in a spec that has none.
    #[error("applies to registers, but there are none")]
    WithoutRegisters,
    /// A register with a key, but no column that names the person.
    #[error("a register with a key needs a table that names its persons")]
    RegisterWithoutPerson,
    /// Registers whose persons can't be matched with each other.
    #[error("some registers have a key and some have none, so nobody can tell who is in both")]
    RegistersWithAndWithoutKey,
    /// Presence is bounded and at the same time public.
    #[error("release = \"microdata\" says that presence is public, so it can't be bounded")]
    PresenceIsPublic,
    /// A setting for registers without a key, but registers with a key.
    #[error("applies to registers without a key only, because a key tells who is in the register")]
    UnmatchedWithKey,
    /// An order that tells register rows from private ones.
    #[error("\"input\" would show which rows come from the register")]
    OrderWithRegister,
}

impl SpecError {
    /// What to do about the fault, if the message does not make that obvious.
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
                "add for example person = \"patient_id\" to the table (that column is not released), or take block out"
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
            SpecErrorKind::WeightOnRole { .. } => "give the column role \"quasi\", or take the weight out",
            SpecErrorKind::ObjectiveWith { .. } => "take objective and weights out, or release one table by itself",
            SpecErrorKind::TargetOnRole { .. } => "name a column with role \"sensitive\", \"plain\" or \"quasi\"",
            SpecErrorKind::NotGeneralized { .. } => {
                "give the column role \"quasi\" or \"sensitive\", or take type and hierarchy out"
            }
            SpecErrorKind::RoundAndTruncate => "keep round for numbers, truncate for dates",
            SpecErrorKind::TransformOnRole { .. } => {
                "take it out, or give the column role \"quasi\", \"sensitive\" or \"plain\""
            }
            SpecErrorKind::TransformOnType { .. } => {
                "round is for numbers, truncate for dates, top and bottom for numbers, dates and timestamps"
            }
            SpecErrorKind::CodeWithRule { .. } => {
                "take the hierarchy out, so that the column is released as ranges; or name a file with leaves such as '>= 120'"
            }
            SpecErrorKind::TransformWithRegisters => {
                "change the cells of both files beforehand, or release without a register"
            }
            SpecErrorKind::KeyWithoutPseudonym => "take it out, or say role = \"pseudonym\"",
            SpecErrorKind::ChangedPseudonym => "take round, truncate, top and bottom out",
            SpecErrorKind::PseudonymInTables => "release one table, or give the column role \"identifier\" or \"drop\"",
            SpecErrorKind::QuantileInChild => "name the bound by its value, for example top = 120",
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
                "steps are for numbers, dates for dates and timestamps, masks and flat for any type"
            }
            SpecErrorKind::KeyWithRole { .. } => "give it role \"key\", or \"identifier\" if it must never be released",
            SpecErrorKind::KeyLinksNothing => {
                "equal numbers in such a column tell people apart: give it role \"drop\", or \"quasi\" if others could \
                 know it, or say whose key it holds, for example { role = \"key\", references = \"doctor\" }"
            }
            SpecErrorKind::ReferencesOnRole { .. } => "give it role \"key\", or take references out",
            SpecErrorKind::ReferencesTwice => "take references out, or copy the column under another name",
            SpecErrorKind::ReferencesWith { .. } => "give the column role \"drop\", or take the other setting out",
            SpecErrorKind::ReferencesKept => "take keys = \"keep\" out, or drop the columns with references",
            SpecErrorKind::PersonKOfChild => "move the column to the table of persons, or give it another role",
            SpecErrorKind::SecondPersonK { .. } => "keep one, and give the other another role",
            SpecErrorKind::ParentWithoutKey { .. } => "give that table its key, for example key = \"visit_id\"",
            SpecErrorKind::ParentCycle => "let the parents of every table lead to the table of persons",
            SpecErrorKind::NothingReleased => {
                "take the table out, or give a column that is to be released the role quasi, sensitive or plain"
            }
            SpecErrorKind::SecondPersonTable { .. } => {
                "name its parent, for example parent = { table = \"patient\", foreign_key = \"patient_id\" }, or say \
                 person = true if its rows are persons, too"
            }
            SpecErrorKind::PersonInChild => {
                "take person out, because parent leads to the person; or take parent out, if its rows are other persons"
            }
            SpecErrorKind::PersonsWithoutKey => "add for example key = \"doctor_id\"",
            SpecErrorKind::OrphansWithoutParent => "take orphans out, or name the table's parent",
            SpecErrorKind::RowsLeftOutOfPersons => {
                "take max_rows_left_out out; max_suppressed limits how many persons may be left out"
            }
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
                "take sensitive_to out, because a sensitive column is sensitive to every audience; or give the column role \
                 \"quasi\""
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
                "take leftovers out; with max_suppressed alone, only persons who fit into no class are left out"
            }
            SpecErrorKind::WithoutAudiences => "add for example [audiences.insurer] with quasi = [\"age\"]",
            SpecErrorKind::WithoutRegisters => "add for example [registers.voters] with file and key",
            SpecErrorKind::RegisterWithoutPerson => {
                "add for example person = \"patient_id\" to the table; or take key out, so that rows are joined by their quasi values"
            }
            SpecErrorKind::RegistersWithAndWithoutKey => "give each of them a key, or none",
            SpecErrorKind::PresenceIsPublic => "take out delta_presence, or release = \"microdata\"",
            SpecErrorKind::UnmatchedWithKey => "take unmatched out",
            SpecErrorKind::OrderWithRegister => "take order out, or set order = \"sorted\"",
        };
        Some(hint.to_owned())
    }
}

fn did_you_mean(word: &str) -> String {
    format!("did you mean '{word}'?")
}

/// `strict or relaxed`. Words of one character are quoted, because they are punctuation: `'.' or ','`.
fn either(words: &[&str]) -> String {
    let shown = words.iter().map(|word| if word.len() == 1 { format!("'{word}'") } else { (*word).to_owned() });
    let shown: Vec<String> = shown.collect();
    match shown.as_slice() {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        _ => shown.concat(),
    }
}
