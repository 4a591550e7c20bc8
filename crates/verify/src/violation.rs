//! [`Violation`]: what a table or release does wrong, by column and row number, never by cell.
//!
//! Rows are numbered from 1 without the header. `n` is how often it happens, `first_row` where first.

use std::fmt;

use kohort_model::{Distance, Requirement, Role};

/// Everything that is wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct Violations(pub Vec<Violation>);

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, violation) in self.0.iter().enumerate() {
            if position > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{violation}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Violations {}

impl From<Violation> for Violations {
    fn from(violation: Violation) -> Self {
        Violations(vec![violation])
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum Violation {
    /// An empty table satisfies nothing.
    #[error("table '{table}' has no rows, so nothing can be said of it")]
    NoRows { table: String },
    /// Row numbers are 32 bits wide.
    #[error("table '{table}' has {n_rows} rows; at most 4294967294 can be verified")]
    TooManyRows { table: String, n_rows: u64 },
    /// A release of several tables, or of none.
    #[error("the release holds {} where exactly one table is meant", count(*n, "table"))]
    NotOneTable { n: u64 },
    /// A column of another length than its table.
    #[error("column '{column}' has {} where the table has {}", count(*n_cells, "cell"), count(*n_rows, "row"))]
    ColumnLength { column: String, n_cells: u64, n_rows: u64 },
    /// A cell that points behind its dictionary.
    #[error("column '{column}': {} no text, first in row {first_row}", does(*n, "cell", "points to", "point to"))]
    CellWithoutText { column: String, n: u64, first_row: u64 },
    /// A requirement on a column that is not there.
    #[error("a requirement names column '{column}', which the table does not have")]
    UnknownColumn { column: String },
    /// Persons that can't be told apart.
    #[error("person column '{column}' is null in {}, first in row {first_row}", count(*n, "row"))]
    PersonMissing { column: String, n: u64, first_row: u64 },
    /// An own k that is no whole number.
    #[error("column '{column}': the own k of {} is not a whole number, first in row {first_row}", count(*n, "person"))]
    OwnKUnreadable { column: String, n: u64, first_row: u64 },
    /// A distance by hierarchy without one.
    #[error("column '{column}' has no hierarchy, so its hierarchical distance is not defined")]
    NoHierarchy { column: String },
    /// Values that the hierarchy does not know.
    #[error("column '{column}': {} not in its hierarchy", does(*n, "distinct value", "is", "are"))]
    NotInHierarchy { column: String, n: u64 },

    /// A released row that comes from nowhere.
    #[error("{} a source row that does not exist, first in released row {first_row}", does(*n, "released row", "names", "name"))]
    SourceRowOutOfRange { n: u64, first_row: u64 },
    /// A row of the private table that was released twice.
    #[error("{} a source row, first in released row {first_row}", does(*n, "released row", "repeats", "repeat"))]
    SourceRowTwice { n: u64, first_row: u64 },
    /// A person of whom some rows are released and some not.
    #[error("{} released only in part, first seen in row {first_row} of the original", does(*n, "person", "is", "are"))]
    PersonSplit { n: u64, first_row: u64 },
    /// More persons left out than is asked.
    #[error("{} of {n_persons} {} left out, more than a share of {limit}", count(*n, "person"), if *n == 1 { "is" } else { "are" })]
    TooManySuppressed { n: u64, n_persons: u64, limit: f64 },
    /// A released column that has no source.
    #[error("released column '{column}' comes from no column of the original")]
    ColumnWithoutSource { column: String },
    /// A released column under another name.
    #[error("released column '{released}' comes from column '{column}' and must keep its name")]
    ColumnRenamed { column: String, released: String },
    /// A column twice, or not in the order of the file.
    #[error("released column '{column}' is out of order or released twice")]
    ColumnOrder { column: String },
    /// A column whose role keeps it out of any release.
    #[error("column '{column}' is released although its role is {role}")]
    ColumnForbidden { column: String, role: Role },
    /// The person column in a table that stands alone.
    #[error("column '{column}' names the person and is released; in a table that stands alone it must not be")]
    PersonReleased { column: String },
    /// A key that no released table is joined by: equal numbers in it tell people apart, and nothing counts them.
    #[error("column '{column}' is a released key that joins no tables")]
    KeyJoinsNothing { column: String },
    /// A column that has to be released and is not.
    #[error("column '{column}' of role {role} is not released")]
    ColumnMissing { column: String, role: Role },
    /// A released column that is said to have another role than its private column, so that readers would count otherwise.
    #[error("column '{column}' is of role {role}, and manifest.json says {said}")]
    ColumnRole { column: String, role: Role, said: Role },
    /// Cells of another kind than the role asks for.
    #[error("column '{column}' of role {role} must be released {expected}")]
    WrongCells { column: String, role: Role, expected: &'static str },
    /// Released cells that do not cover what they stand for.
    #[error(
        "column '{column}': {} not cover the original, first in released row {first_row}",
        does(*n, "released cell", "does", "do")
    )]
    NotCovered { column: String, n: u64, first_row: u64 },
    /// Keys whose renumbering is no renumbering.
    #[error(
        "key column '{column}': {} not numbered from 1 in the released order with equal keys kept equal, \
         first in released row {first_row}", does(*n, "row", "is", "are")
    )]
    KeyRenumbering { column: String, n: u64, first_row: u64 },

    /// The file has other columns than the release.
    #[error("the written file's columns are not those of the release, first at column {position}")]
    WrittenColumns { position: u64 },
    /// The file has another number of rows than the release.
    #[error("the written file has {} where the release has {released}", count(*written, "row"))]
    WrittenRows { released: u64, written: u64 },
    /// The file has other cells than the release.
    #[error(
        "column '{column}': the written file differs from the release in {}, first in row {first_row}",
        count(*n, "cell")
    )]
    WrittenCells { column: String, n: u64, first_row: u64 },

    /// Released rows that no assignment can trace back to a row of the original.
    #[error("{} can't have come from the original, such as released row {first_row}", count(*n, "released row"))]
    WithoutOrigin { n: u64, first_row: u64 },
    /// More rows left out than admitted, or fewer.
    #[error("suppressed {what}: {counted} counted, {admitted} admitted")]
    SuppressedMiscounted { what: &'static str, admitted: u64, counted: u64 },
    /// Rows left out that are not all rows of as many persons.
    #[error("the rows left out are not all rows of {}, however rows are traced back", count(*admitted, "person"))]
    SuppressedPersons { admitted: u64 },
    /// Something fails in every way to trace rows back to persons, in this way this.
    #[error("whichever persons rows are traced back to, a requirement fails, in the nearest way {violation}")]
    InEveryWay { violation: Box<Violation> },
    /// Something that fails in the ways to trace rows back that were tried; others may do.
    #[error("can't tell: of the ways to trace rows back to persons that were tried, in the nearest {violation}")]
    Undecided { violation: Box<Violation> },
    /// Too many ways to trace rows back.
    #[error("the released boxes overlap so much that more than {limit} origins would have to be weighed")]
    TooManyOrigins { limit: u64 },

    /// Something wrong in one of several releases.
    #[error("{release}: {violation}")]
    InRelease { release: String, violation: Box<Violation> },
    /// Releases whose rows can't be matched by their order.
    #[error("{release} has {}, and {first} {n_first}: they can't be matched by their order", count(*n_rows, "row"))]
    RowsUnmatched { release: String, n_rows: u64, first: String, n_first: u64 },
    /// A release whose rows are not in the order of its input, where rows are to be matched by their order.
    #[error(
        "the rows of {release} are sorted by what they show, so row by row it is not of the same persons as another"
    )]
    RowsSorted { release: String },
    /// A release without the column that names persons in the others.
    #[error("{release} has no column that names the person")]
    PersonsUnnamed { release: String },
    /// A person with several rows where each has one.
    #[error("person column '{column}': {} a person, first in row {first_row}", does(*n, "row", "repeats", "repeat"))]
    PersonTwice { column: String, n: u64, first_row: u64 },
    /// Releases of different persons, or of persons that are called differently.
    #[error("no person in column '{column}' is in two of the releases, so there is nothing to read together")]
    NobodyInCommon { column: String },
    /// Releases that can't both be true of the same persons.
    #[error(
        "column '{column}': the releases contradict each other about {}, first in row {first_row} of {release}",
        count(*n, "person")
    )]
    ReleasesContradict { column: String, n: u64, release: String, first_row: u64 },

    /// Something wrong in what one audience sees.
    #[error("audience '{audience}': {violation}")]
    ForAudience { audience: String, violation: Box<Violation> },
    /// Something wrong in what all audiences see together.
    #[error("all audiences together: {violation}")]
    Together { violation: Box<Violation> },
    /// Something wrong in what some audiences see together.
    #[error("coalition '{coalition}': {violation}")]
    ForCoalition { coalition: String, violation: Box<Violation> },
    /// A coalition with an audience that there is not.
    #[error("'{audience}' is none of the audiences")]
    MemberUnknown { audience: String },
    /// A requirement keeps a column from somebody who knows it.
    #[error("column '{column}' is known, so nothing can be asked of what is learned about it")]
    KnownAlready { column: String },
    /// A requirement that is not defined for generalized cells.
    #[error("a requirement on quasi column '{column}' is not defined, for its cells may be generalized")]
    NotOfLabels { column: String },
    /// Audiences are asked for, and there are none.
    #[error("no audience is named, so nothing would be counted")]
    NoAudience,
    /// A column that an audience may know, and that is not generalized.
    #[error("it may know column '{column}', which is no quasi column of the release")]
    KnownColumnMissing { column: String },
    /// A quasi column that would be counted for nobody.
    #[error("quasi column '{column}' is known to no audience, so nothing would protect it")]
    KnownToNobody { column: String },

    /// Something wrong in one of many tables.
    #[error("table '{table}': {violation}")]
    InTable { table: String, violation: Box<Violation> },
    /// Lists of tables that do not belong together.
    #[error("there are {} of {what} where {expected} are meant", count(*n, "table"))]
    TableCount { what: &'static str, n: u64, expected: u64 },
    /// A table in another's place.
    #[error("table '{released}' stands where '{table}' is meant")]
    TableName { table: String, released: String },
    /// A link that leads nowhere, or in a circle.
    #[error("it hangs off no table by columns that both have, or off itself")]
    BrokenLink,
    /// Private rows that can't be told apart by their key.
    #[error(
        "key column '{column}' of the original: {} null or another row's, first in row {first_row}",
        does(*n, "key", "is", "are")
    )]
    OriginalKeys { column: String, n: u64, first_row: u64 },
    /// Released rows that can't be told apart by their key.
    #[error(
        "key column '{column}': {} null or another row's, first in released row {first_row}",
        does(*n, "released key", "is", "are")
    )]
    ReleasedKeys { column: String, n: u64, first_row: u64 },
    /// Released rows that join with nothing.
    #[error(
        "foreign key '{column}': {} no released row of '{parent}', first in released row {first_row}",
        does(*n, "released row", "meets", "meet")
    )]
    WithoutParent { column: String, parent: String, n: u64, first_row: u64 },
    /// Released rows that join with what is not theirs.
    #[error(
        "foreign key '{column}': {} a row of '{parent}' that is not the parent, first in released row {first_row}",
        does(*n, "released row", "meets", "meet")
    )]
    FalseParent { column: String, parent: String, n: u64, first_row: u64 },
    /// Released references to another row than before.
    #[error(
        "reference '{column}': {} a row of '{target}' that the private row does not reference, first in released row \
         {first_row}",
        does(*n, "released row", "names", "name")
    )]
    FalseReference { column: String, target: String, n: u64, first_row: u64 },
    /// Released references to rows that are not there.
    #[error(
        "reference '{column}': {} no released row of '{target}', first in released row {first_row}",
        does(*n, "released row", "names", "name")
    )]
    WithoutTarget { column: String, target: String, n: u64, first_row: u64 },
    /// References that lead back to where they start, so that who looks the same can't be told.
    #[error(
        "reference '{column}': {} in a circle, so nobody can say who looks the same, first in released row {first_row}",
        does(*n, "released row", "is", "are")
    )]
    ReferencesInCircle { column: String, n: u64, first_row: u64 },
    /// Released rows of which the parent is left out.
    #[error(
        "{} off a row of '{parent}' that is left out, first in released row {first_row}",
        does(*n, "released row", "hangs", "hang")
    )]
    ParentSuppressed { parent: String, n: u64, first_row: u64 },
    /// Released rows that had no parent to begin with.
    #[error(
        "{} off no row of '{parent}' in the original, first in released row {first_row}",
        does(*n, "released row", "hangs", "hang")
    )]
    OrphanReleased { parent: String, n: u64, first_row: u64 },
    /// Released persons that no assignment can trace back to a person of the original.
    #[error(
        "{} can't have come from the original with all their rows, such as the one in released row {first_row}",
        count(*n, "released person")
    )]
    PersonWithoutOrigin { n: u64, first_row: u64 },

    /// A join that is not of this private table.
    #[error("the join with the register is not of this private table")]
    JoinOfAnother,
    /// Private persons who count beside a register person they are the same as.
    #[error(
        "{} in the register too but {} found there, first in private row {first_row}",
        does(*n, "private person", "is", "are"),
        if *n == 1 { "was not" } else { "were not" }
    )]
    NotMatched { n: u64, first_row: u64 },
    /// Private persons of whom the register says something else than the join.
    #[error("the register says something else of {} than the join, first in private row {first_row}", count(*n, "private person"))]
    RegisterMisread { n: u64, first_row: u64 },
    /// Register persons who count several times.
    #[error("{} of the register counted twice", does(*n, "person", "is", "are"))]
    RegisterPersonTwice { n: u64 },
    /// Register texts that stand in the join as texts of another value.
    #[error("column '{column}': {} of the register as another value", does(*n, "text", "was read", "were read"))]
    OtherValue { column: String, n: u64 },
    /// Classes of register persons only.
    #[error("{} nobody of the private table, first in released row {first_row}", does(*n, "class", "holds", "hold"))]
    ClassWithoutPrivate { n: u64, first_row: u64 },
    /// Values in another group than the person's row.
    #[error(
        "{} of the sensitive table not in the group of the person's row, first in row {first_row}",
        does(*n, "row", "is", "are")
    )]
    OtherGroup { n: u64, first_row: u64 },
    /// Persons without values, or values without a person.
    #[error("{} of the private table released, and {} of the sensitive table", does(*persons, "person", "is", "are"), count(*rows, "row"))]
    ValuesMiscounted { persons: u64, rows: u64 },
    /// Groups whose numbers say something.
    #[error("sensitive groups are not numbered from 1 in the released order, first in row {first_row}")]
    GroupNumber { first_row: u64 },
    /// An order that could tell whose values they are.
    #[error("the sensitive table is not in the order of its cells, first in row {first_row}")]
    SensitiveOrder { first_row: u64 },
    /// Groups of the two tables that don't fit together.
    #[error("sensitive group {group}: {rows} rows in {classes} classes, and {values} of values, can't be")]
    GroupMismatch { group: u32, classes: u64, rows: u64, values: u64 },
    /// Sensitive groups that are no numbers.
    #[error("column 'sensitive_group' of table '{table}' is missing or holds something else than numbers")]
    GroupsUnreadable { table: String },
    /// Presence that is too sure, either way.
    #[error(
        "presence from {least} to {most}: {} beyond, first in released row {first_row}, and {} known to be absent",
        does(*n_classes, "class", "is", "are"), does(*absent, "register person", "is", "are")
    )]
    Presence { least: f64, most: f64, n_classes: u64, absent: u64, first_row: u64 },
    /// Values of which no person can have come from where they stand.
    #[error("{} of the sensitive table can't be of anybody in their group, such as row {first_row}", count(*n, "row"))]
    ValuesWithoutOrigin { n: u64, first_row: u64 },

    /// What is known of persons' wishes speaks of another table.
    #[error("there are {} of persons' wishes for {}", count(*n_wishes, "row"), count(*n_rows, "private row"))]
    ConsentLength { n_wishes: u64, n_rows: u64 },
    /// Persons shown without the class they ask for, or with one that they must not fill.
    #[error(
        "{} of a person who asks for a class and is in none, or for none and is in one, first in row {first_row}",
        does(*n, "row", "is", "are")
    )]
    OutsideClass { n: u64, first_row: u64 },
    /// Identifiers of persons who asked for more than nothing.
    #[error("identifier '{column}' is shown in {}, first in row {first_row}", count(*n, "row"))]
    IdentifierShown { column: String, n: u64, first_row: u64 },
    /// Cells that their persons, or others in the class, refuse.
    #[error("column '{column}': {} shown although it is refused, first in row {first_row}", does(*n, "cell", "is", "are"))]
    RefusedShown { column: String, n: u64, first_row: u64 },
    /// Sensitive cells below the level their persons ask for.
    #[error("column '{column}': {} not raised as far as asked, first in row {first_row}", does(*n, "cell", "is", "are"))]
    NotRaised { column: String, n: u64, first_row: u64 },
    /// Rows of one class that can be told apart.
    #[error("column '{column}': {} from others of the class, first in row {first_row}", does(*n, "row", "differs", "differ"))]
    ClassDiffers { column: String, n: u64, first_row: u64 },
    /// Persons for whom there are not enough classes as large as they ask.
    #[error("column '{column}': {} for more persons than any class and group that can be theirs has", does(*n, "person", "asks", "ask"))]
    OwnKUnmet { column: String, n: u64 },
    /// An earlier release that can't be understood here.
    #[error("{release}: column '{column}' is no quasi column here, or its labels mean nothing here")]
    PreviousColumn { release: String, column: String },
    /// People who hide among few from readers of all releases.
    #[error("read together with earlier releases: {} among fewer than k, the worst among {fewest}", does(*n, "person", "hides", "hide"))]
    PreviousCrowd { n: u64, fewest: u64 },
    /// Values that are known to readers of all releases.
    #[error("read together with earlier releases: {} too few values of '{column}' with one of before", does(*n, "group", "shares", "share"))]
    PreviousCommon { column: String, n: u64 },
    /// Values that came or went, and are few.
    #[error("read together with earlier releases: the few values of '{column}' that came or went in {} tell whose they are", count(*n, "group"))]
    PreviousChanges { column: String, n: u64 },

    /// A requirement that some class does not satisfy.
    #[error(
        "{}: {}, the worst reaching {}; the first stands in row {first_row} and has {}",
        InWords(requirement), does(*n_classes, "class", "fails", "fail"), Reached(*reached), count(*class_size, "person")
    )]
    Unmet { requirement: Requirement, n_classes: u64, reached: f64, first_row: u64, class_size: u64 },
}

impl Violation {
    /// The same, said of one of many tables.
    pub(crate) fn in_table(self, table: &str) -> Self {
        match self {
            Violation::NoRows { .. } | Violation::TooManyRows { .. } => self,
            _ => Violation::InTable { table: table.to_owned(), violation: Box::new(self) },
        }
    }

    /// The same, said to be so in every way to trace rows back.
    pub(crate) fn in_every_way(self) -> Self {
        Violation::InEveryWay { violation: Box::new(self) }
    }

    /// The same, said of ways to trace rows back where others may be better.
    pub(crate) fn undecided(self) -> Self {
        Violation::Undecided { violation: Box::new(self) }
    }

    /// Whether this says that something could not be decided, rather than that it is wrong.
    pub fn is_undecided(&self) -> bool {
        match self {
            Violation::Undecided { .. } | Violation::TooManyOrigins { .. } => true,
            Violation::InTable { violation, .. }
            | Violation::InRelease { violation, .. }
            | Violation::ForAudience { violation, .. }
            | Violation::ForCoalition { violation, .. }
            | Violation::Together { violation } => violation.is_undecided(),
            _ => false,
        }
    }

    /// The same, said of one of several releases.
    pub(crate) fn in_release(self, release: &str) -> Self {
        Violation::InRelease { release: release.to_owned(), violation: Box::new(self) }
    }

    /// The same, said of what some audiences see together.
    pub(crate) fn for_coalition(self, coalition: &str) -> Self {
        Violation::ForCoalition { coalition: coalition.to_owned(), violation: Box::new(self) }
    }

    /// The same, said of what one audience sees.
    pub(crate) fn for_audience(self, audience: &str) -> Self {
        Violation::ForAudience { audience: audience.to_owned(), violation: Box::new(self) }
    }

    /// What to do about it, where that does not follow from what is wrong.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Violation::PersonMissing { .. } => {
                Some("give each person an id, or leave the person column out so that each row is one")
            }
            Violation::RowsUnmatched { .. } => {
                Some("name the column that names the person in every release, for example --person id")
            }
            Violation::RowsSorted { .. } => Some(
                "name a column that names the person in every release (--person), or audit copies made with --order input, which stay private",
            ),
            Violation::PersonTwice { .. } => Some("each person may have one row in each release"),
            Violation::ReleasesContradict { .. } => Some(
                "they are not of the same persons, or their rows are not in the same order: --person matches them by name",
            ),
            Violation::NobodyInCommon { .. } => {
                Some("check that the column names persons in the same way in every release")
            }
            Violation::NoHierarchy { .. } => Some("give it one, or another distance"),
            Violation::TooManyOrigins { .. } | Violation::Undecided { .. } => {
                Some("nothing is shown to be wrong; verify without --against counts what the files show by themselves")
            }
            Violation::InTable { violation, .. }
            | Violation::ForAudience { violation, .. }
            | Violation::ForCoalition { violation, .. }
            | Violation::Together { violation }
            | Violation::InRelease { violation, .. } => violation.hint(),
            Violation::OriginalKeys { .. } => Some("give each row a key of its own"),
            _ => None,
        }
    }
}

/// `1 row`, `2 rows`.
fn count(n: u64, noun: &str) -> String {
    let ending = match noun {
        _ if n == 1 => "",
        noun if noun.ends_with('s') => "es",
        _ => "s",
    };
    format!("{n} {noun}{ending}")
}

/// `1 row is`, `2 rows are`.
fn does(n: u64, noun: &str, one: &str, many: &str) -> String {
    format!("{} {}", count(n, noun), if n == 1 { one } else { many })
}

/// A requirement in words.
pub(crate) struct InWords<'a>(pub(crate) &'a Requirement);

impl fmt::Display for InWords<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Requirement::K(k) => write!(f, "at least {} in each class", count(u64::from(*k), "person")),
            Requirement::PersonK { column } => {
                write!(f, "at least as many persons as each member asks for in '{column}'")
            }
            Requirement::DistinctL { column, l } => {
                write!(f, "column '{column}': at least {}", count(u64::from(*l), "distinct value"))
            }
            Requirement::EntropyL { column, l } => write!(f, "column '{column}': entropy_l of at least {l}"),
            Requirement::RecursiveCL { column, c, l } => {
                write!(f, "column '{column}': recursive ({c}, {l})-diversity")
            }
            Requirement::TCloseness { column, t, distance } => {
                let distance = match distance {
                    Distance::Equal => "equal",
                    Distance::Ordered => "ordered",
                    Distance::Hierarchical => "hierarchical",
                };
                write!(f, "column '{column}': t of at most {t} ({distance} distance)")
            }
            Requirement::Alpha { column, alpha } => {
                write!(f, "column '{column}': no value held by more than {alpha} of the persons")
            }
            Requirement::Beta { column, beta } => {
                write!(f, "column '{column}': no value's share gains more than {beta}")
            }
            Requirement::EnhancedBeta { column, beta } => {
                write!(f, "column '{column}': no value's share gains more than {beta} or its surprise")
            }
        }
    }
}

/// A count as it is, a share to four places.
struct Reached(f64);

impl fmt::Display for Reached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.fract() == 0.0 { write!(f, "{}", self.0) } else { write!(f, "{:.4}", self.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_the_place_and_what_was_reached() {
        let unmet =
            |requirement| Violation::Unmet { requirement, n_classes: 2, reached: 0.25, first_row: 7, class_size: 4 };
        let column = "disease".to_owned();
        let t = Requirement::TCloseness { column, t: 0.2, distance: Distance::Ordered };
        assert_eq!(
            Violations(vec![Violation::NoRows { table: "visit".to_owned() }, unmet(t)]).to_string(),
            "table 'visit' has no rows, so nothing can be said of it\n\
             column 'disease': t of at most 0.2 (ordered distance): 2 classes fail, the worst reaching 0.2500; \
             the first stands in row 7 and has 4 persons"
        );
        assert!(unmet(Requirement::K(5)).to_string().starts_with("at least 5 persons in each class: 2 classes fail"));
    }

    #[test]
    fn numbers_agree_with_their_nouns() {
        let unmet = |n| Violation::Unmet {
            requirement: Requirement::K(n as u32),
            n_classes: n,
            reached: 1.0,
            first_row: 7,
            class_size: n,
        };
        assert_eq!(
            unmet(1).to_string(),
            "at least 1 person in each class: 1 class fails, the worst reaching 1; the first stands in row 7 and has \
             1 person"
        );
        assert!(unmet(2).to_string().starts_with("at least 2 persons in each class: 2 classes fail, "));
        let orphan = |n| Violation::ParentSuppressed { parent: "takes".to_owned(), n, first_row: 3 };
        assert_eq!(
            orphan(1).in_table("books").to_string(),
            "table 'books': 1 released row hangs off a row of 'takes' that is left out, first in released row 3"
        );
        assert!(orphan(2).to_string().starts_with("2 released rows hang off"));
        let split = |n| Violation::PersonSplit { n, first_row: 3 }.to_string();
        assert_eq!(split(1), "1 person is released only in part, first seen in row 3 of the original");
        assert_eq!(split(2), "2 persons are released only in part, first seen in row 3 of the original");
        let suppressed = Violation::TooManySuppressed { n: 3, n_persons: 100, limit: 0.02 };
        assert_eq!(suppressed.to_string(), "3 persons of 100 are left out, more than a share of 0.02");
    }
}
