//! [`Violation`]: what a table or release does wrong, by column and row number, never by cell.
//!
//! Rows are numbered from 1, without the header. `n` says how often the fault occurs, and `first_row` where it occurs
//! first.

use std::fmt;

use kohort_model::{Distance, Requirement, Role};

/// Everything that is wrong with a table or a release.
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
    #[error("table '{table}' has no rows, so nothing can be counted")]
    NoRows { table: String },
    /// A table with more rows than row numbers of 32 bits can count.
    #[error("table '{table}' has {n_rows} rows; at most 4294967294 can be verified")]
    TooManyRows { table: String, n_rows: u64 },
    /// A release that should have exactly one table has several, or none.
    #[error("the release holds {}, not exactly one", count(*n, "table"))]
    NotOneTable { n: u64 },
    /// A column that has more or fewer cells than its table has rows.
    #[error("column '{column}' has {}, but the table has {}", count(*n_cells, "cell"), count(*n_rows, "row"))]
    ColumnLength { column: String, n_cells: u64, n_rows: u64 },
    /// A cell that points beyond its dictionary.
    #[error("column '{column}': {} no text, first in row {first_row}", does(*n, "cell", "points to", "point to"))]
    CellWithoutText { column: String, n: u64, first_row: u64 },
    /// Cells that are not what the spec makes of the private ones.
    #[error("column '{column}': {} not what the spec makes of the private {}, first in row {first_row}", does(*n, "changed cell", "is", "are"), if *n == 1 { "one" } else { "ones" })]
    WrongTransform { column: String, n: u64, first_row: u64 },
    /// Cells that can't be pseudonyms, or that several rows share.
    #[error("column '{column}': {} no pseudonym of its own, first in row {first_row}", does(*n, "row", "has", "have"))]
    NoPseudonym { column: String, n: u64, first_row: u64 },
    /// Cells that the spec's changes are not defined for.
    #[error("column '{column}': the spec's changes of cells are not defined for its values")]
    NoTransform { column: String },
    /// Values are coded from a bound that is neither the one in the spec nor the one found by its quantile.
    #[error("column '{column}': its values are coded from another bound than the spec asks for")]
    WrongBound { column: String },
    /// A quasi column that the earlier release does not have, or that is read in another way.
    #[error("column '{column}' is not read in the same way as in the earlier release")]
    OtherThanEarlier { column: String },
    /// Rows with quasi cells that no row of the earlier release has.
    #[error("{} no class of the earlier release, first in released row {first_row}", does(*n, "released row", "shows", "show"))]
    ClassNotOfEarlier { n: u64, first_row: u64 },
    /// Something that is wrong with the persons of both releases together.
    #[error("read together with the earlier release, {violation}")]
    WithEarlier { violation: Box<Violation> },
    /// A requirement on a column that is not there.
    #[error("a requirement names column '{column}', which the table does not have")]
    UnknownColumn { column: String },
    /// Rows that do not say to whom they belong.
    #[error("person column '{column}' is null in {}, first in row {first_row}", count(*n, "row"))]
    PersonMissing { column: String, n: u64, first_row: u64 },
    /// An own k that is not a whole number.
    #[error("column '{column}': the own k of {} is not a whole number, first in row {first_row}", count(*n, "person"))]
    OwnKUnreadable { column: String, n: u64, first_row: u64 },
    /// A hierarchical distance on a column without a hierarchy.
    #[error("column '{column}' has no hierarchy, so its hierarchical distance is not defined")]
    NoHierarchy { column: String },
    /// Values that the hierarchy does not contain.
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
    /// More persons left out than the limit allows.
    #[error("{n} of {} {} left out, more than a share of {limit}", count(*n_persons, "person"), if *n == 1 { "is" } else { "are" })]
    TooManySuppressed { n: u64, n_persons: u64, limit: f64 },
    /// More rows of a child table left out than the limit allows.
    #[error("{n} of {} {} left out, more than a share of {limit}", count(*n_rows, "row"), if *n == 1 { "is" } else { "are" })]
    TooManyRowsLeftOut { n: u64, n_rows: u64, limit: f64 },
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
    /// A released person column, which a release of one table must not have.
    #[error("column '{column}' names the person, so a release of one table must not contain it")]
    PersonReleased { column: String },
    /// A key that joins no released tables. Equal numbers in it would tell people apart, and no class would count that.
    #[error("column '{column}' is a released key that joins no tables")]
    KeyJoinsNothing { column: String },
    /// A column that must be released and is not.
    #[error("column '{column}' of role {role} is not released")]
    ColumnMissing { column: String, role: Role },
    /// A released column with another role than its private column, because of which readers would count other classes.
    #[error("column '{column}' has the role {role}, but manifest.json says {said}")]
    ColumnRole { column: String, role: Role, said: Role },
    /// Cells of another kind than the role allows.
    #[error("column '{column}' of role {role} must be released {expected}")]
    WrongCells { column: String, role: Role, expected: &'static str },
    /// Released cells that do not cover the private values they stand for.
    #[error(
        "column '{column}': {} not cover the original, first in released row {first_row}",
        does(*n, "released cell", "does", "do")
    )]
    NotCovered { column: String, n: u64, first_row: u64 },
    /// Keys that are not numbered anew as they must be.
    #[error(
        "key column '{column}': keys must be numbered from 1 in the order of the released rows, and equal keys must have \
         equal numbers; {} wrong, first in released row {first_row}", does(*n, "number", "is", "are")
    )]
    KeyRenumbering { column: String, n: u64, first_row: u64 },

    /// The file has other columns than the release.
    #[error("the written file's columns are not those of the release, first at column {position}")]
    WrittenColumns { position: u64 },
    /// The file has another number of rows than the release.
    #[error("the written file has {}, but the release has {released}", count(*written, "row"))]
    WrittenRows { released: u64, written: u64 },
    /// The file has other cells than the release.
    #[error(
        "column '{column}': the written file differs from the release in {}, first in row {first_row}",
        count(*n, "cell")
    )]
    WrittenCells { column: String, n: u64, first_row: u64 },
    /// The cells of a table don't hold the rows that were read.
    #[error(
        "the cells hold other rows than were read: {} were read, and the cells hold {in_cells}",
        count(*read, "row")
    )]
    OtherRowsInCells { read: u64, in_cells: u64 },
    /// Rows of a person are in several cells, where nobody would count them together.
    #[error("{} rows in several cells", does(*n, "person", "has", "have"))]
    PersonInTwoCells { n: u64 },
    /// The file has other rows than the verified cells.
    #[error("the written file has other rows than the release")]
    OtherRowsWritten,

    /// Released rows that no assignment can trace back to a row of the original.
    #[error("{} can't have come from the original, such as released row {first_row}", count(*n, "released row"))]
    WithoutOrigin { n: u64, first_row: u64 },
    /// The manifest states another number of suppressed rows or persons than was counted.
    #[error("suppressed {what}: {counted} counted, but the release states {admitted}")]
    SuppressedMiscounted { what: &'static str, admitted: u64, counted: u64 },
    /// The rows left out can't be all rows of as many persons as stated.
    #[error("in every way to trace rows back to persons, the rows left out are not exactly all rows of {}", count(*admitted, "person"))]
    SuppressedPersons { admitted: u64 },
    /// A requirement fails in every way to trace rows back to persons. The violation is the one in the best way.
    #[error("a requirement fails in every way to trace rows back to persons; in the best way, {violation}")]
    InEveryWay { violation: Box<Violation> },
    /// A requirement fails in all ways that were tried to trace rows back to persons, but other ways may satisfy it.
    #[error(
        "can't tell: a requirement fails in each way that was tried to trace rows back to persons; in the best way, {violation}"
    )]
    Undecided { violation: Box<Violation> },
    /// Too many ways to trace rows back.
    #[error(
        "can't tell: the released classes overlap so much that more than {limit} possible origins would have to be compared"
    )]
    TooManyOrigins { limit: u64 },

    /// A violation in one of several releases.
    #[error("{release}: {violation}")]
    InRelease { release: String, violation: Box<Violation> },
    /// Releases whose rows can't be matched by their order, because they have different numbers of rows.
    #[error("{release} has {} but {first} has {n_first}, so rows can't be matched by their order", count(*n_rows, "row"))]
    RowsUnmatched { release: String, n_rows: u64, first: String, n_first: u64 },
    /// A release whose rows are not in the order of its input, so that they can't be matched by their order.
    #[error(
        "the rows of {release} are sorted by what they show, so they can't be matched with other rows by their order"
    )]
    RowsSorted { release: String },
    /// A release without the column that names persons in the others.
    #[error("{release} has no column that names the person")]
    PersonsUnnamed { release: String },
    /// A person with several rows, where every person must have one.
    #[error("person column '{column}': {} a person, first in row {first_row}", does(*n, "row", "repeats", "repeat"))]
    PersonTwice { column: String, n: u64, first_row: u64 },
    /// Releases of different persons, or releases that name the same persons differently.
    #[error("no person in column '{column}' is in two of the releases, so there is nothing to read together")]
    NobodyInCommon { column: String },
    /// Releases that can't both be true of the same persons.
    #[error(
        "column '{column}': the releases contradict each other about {}, first in row {first_row} of {release}",
        count(*n, "person")
    )]
    ReleasesContradict { column: String, n: u64, release: String, first_row: u64 },

    /// A violation in what one audience sees.
    #[error("audience '{audience}': {violation}")]
    ForAudience { audience: String, violation: Box<Violation> },
    /// A violation in what all audiences see together.
    #[error("all audiences together: {violation}")]
    Together { violation: Box<Violation> },
    /// A violation in what a coalition of audiences sees.
    #[error("coalition '{coalition}': {violation}")]
    ForCoalition { coalition: String, violation: Box<Violation> },
    /// A coalition names an audience that does not exist.
    #[error("no audience is named '{audience}'")]
    MemberUnknown { audience: String },
    /// A requirement limits what an audience learns about a column that the audience knows.
    #[error("column '{column}' is known already, so a requirement can't limit what is learned about it")]
    KnownAlready { column: String },
    /// A requirement that is not defined for generalized cells.
    #[error("a requirement on quasi column '{column}' is not defined, because its cells may be generalized")]
    NotOfLabels { column: String },
    /// A release for audiences without any audience.
    #[error("no audience is named, so nothing would be counted")]
    NoAudience,
    /// An audience knows a column that the release does not generalize.
    #[error("it knows column '{column}', but the release has no quasi column of this name")]
    KnownColumnMissing { column: String },
    /// A quasi column that no audience knows, so that no class would count it.
    #[error("quasi column '{column}' is known to no audience, so nothing would protect it")]
    KnownToNobody { column: String },

    /// A violation in one of many tables.
    #[error("table '{table}': {violation}")]
    InTable { table: String, violation: Box<Violation> },
    /// A list of tables that has too many or too few.
    #[error("{what}: {} found, {expected} expected", count(*n, "table"))]
    TableCount { what: &'static str, n: u64, expected: u64 },
    /// A table in the place of another.
    #[error("table '{released}' found, '{table}' expected")]
    TableName { table: String, released: String },
    /// A link to no table, to a missing column, or to itself through other tables.
    #[error("its links lead to no table, to a column that a table does not have, or in a circle")]
    BrokenLink,
    /// Private rows that can't be told apart by their key.
    #[error(
        "key column '{column}' of the original: {} null or equal to another row's, first in row {first_row}",
        does(*n, "key", "is", "are")
    )]
    OriginalKeys { column: String, n: u64, first_row: u64 },
    /// Released rows that can't be told apart by their key.
    #[error(
        "key column '{column}': {} null or equal to another row's, first in released row {first_row}",
        does(*n, "released key", "is", "are")
    )]
    ReleasedKeys { column: String, n: u64, first_row: u64 },
    /// Released rows whose foreign key names no released row.
    #[error(
        "foreign key '{column}': {} no released row of '{parent}', first in released row {first_row}",
        does(*n, "released row", "names", "name")
    )]
    WithoutParent { column: String, parent: String, n: u64, first_row: u64 },
    /// Released rows whose foreign key names another row than their private row does.
    #[error(
        "foreign key '{column}': {} a row of '{parent}' that is not the parent, first in released row {first_row}",
        does(*n, "released row", "names", "name")
    )]
    FalseParent { column: String, parent: String, n: u64, first_row: u64 },
    /// Released references to a row that the private row does not reference.
    #[error(
        "reference '{column}': {} a row of '{target}' that the private row does not reference, first in released row \
         {first_row}",
        does(*n, "released row", "names", "name")
    )]
    FalseReference { column: String, target: String, n: u64, first_row: u64 },
    /// Released references to rows that are not released.
    #[error(
        "reference '{column}': {} no released row of '{target}', first in released row {first_row}",
        does(*n, "released row", "names", "name")
    )]
    WithoutTarget { column: String, target: String, n: u64, first_row: u64 },
    /// References that form a circle, for which the verifier can't decide who looks the same.
    #[error(
        "reference '{column}': {} in a circle of references, so it can't be decided who looks the same, first in released row \
         {first_row}",
        does(*n, "released row", "is", "are")
    )]
    ReferencesInCircle { column: String, n: u64, first_row: u64 },
    /// Released rows whose parent is left out.
    #[error(
        "{} to a row of '{parent}' that is left out, first in released row {first_row}",
        does(*n, "released row", "belongs", "belong")
    )]
    ParentSuppressed { parent: String, n: u64, first_row: u64 },
    /// Released rows that have no parent in the original.
    #[error(
        "{} to no row of '{parent}' in the original, first in released row {first_row}",
        does(*n, "released row", "belongs", "belong")
    )]
    OrphanReleased { parent: String, n: u64, first_row: u64 },
    /// Released persons whom no assignment can trace back to a person of the original.
    #[error(
        "{} can't have come from the original with all their rows, such as the one in released row {first_row}",
        count(*n, "released person")
    )]
    PersonWithoutOrigin { n: u64, first_row: u64 },

    /// A join that was made from another private table.
    #[error("the join with the register was made from another private table")]
    JoinOfAnother,
    /// Private persons who are counted beside a register person although the two are the same.
    #[error(
        "{} also in the register but {} found there, first in private row {first_row}",
        does(*n, "private person", "is", "are"),
        if *n == 1 { "was not" } else { "were not" }
    )]
    NotMatched { n: u64, first_row: u64 },
    /// Private persons for whom the join holds other values than the register.
    #[error("the join holds other values than the register for {}, first in private row {first_row}", count(*n, "private person"))]
    RegisterMisread { n: u64, first_row: u64 },
    /// Register persons who are counted several times.
    #[error("{} counted twice", does(*n, "register person", "is", "are"))]
    RegisterPersonTwice { n: u64 },
    /// Register texts that the join holds as texts of another value.
    #[error("column '{column}': {} of the register {} read as another value", count(*n, "text"), if *n == 1 { "was" } else { "were" })]
    OtherValue { column: String, n: u64 },
    /// Classes of register persons only.
    #[error("{} nobody of the private table, first in released row {first_row}", does(*n, "class", "holds", "hold"))]
    ClassWithoutPrivate { n: u64, first_row: u64 },
    /// Sensitive values in another group than the person's row.
    #[error(
        "sensitive table: {} not in the group of the person's row, first in row {first_row}",
        does(*n, "row", "is", "are")
    )]
    OtherGroup { n: u64, first_row: u64 },
    /// Persons without sensitive values, or sensitive values without a person.
    #[error(
        "{} released, but the sensitive table has {}",
        does(*persons, "private person", "is", "are"), count(*rows, "row")
    )]
    ValuesMiscounted { persons: u64, rows: u64 },
    /// Group numbers that could carry information.
    #[error("sensitive groups are not numbered from 1 in the released order, first in row {first_row}")]
    GroupNumber { first_row: u64 },
    /// An order of rows that could tell whose values they are.
    #[error("the sensitive table is not sorted by its cells, first in row {first_row}")]
    SensitiveOrder { first_row: u64 },
    /// A sensitive group that does not match between the two released tables.
    #[error(
        "the tables disagree about sensitive group {group}: {} in the sensitive table, but {} in {} of the other table",
        count(*values, "row"), count(*rows, "row"), count(*classes, "class")
    )]
    GroupMismatch { group: u32, classes: u64, rows: u64, values: u64 },
    /// Sensitive groups that are not numbers.
    #[error("column 'sensitive_group' of table '{table}' is missing or holds something other than numbers")]
    GroupsUnreadable { table: String },
    /// Readers can be too sure that somebody is, or is not, in the private table.
    #[error(
        "presence must be from {least} to {most}: {} outside, first in released row {first_row}; {} known to be absent",
        does(*n_classes, "class", "is", "are"), does(*absent, "register person", "is", "are")
    )]
    Presence { least: f64, most: f64, n_classes: u64, absent: u64, first_row: u64 },
    /// Sensitive values that can belong to no person of their group.
    #[error("{} of the sensitive table can't belong to anybody in their group, such as row {first_row}", count(*n, "row"))]
    ValuesWithoutOrigin { n: u64, first_row: u64 },

    /// Persons' choices that were made for another table.
    #[error("there are choices for {}, but {}", count(*n_wishes, "row"), count(*n_rows, "private row"))]
    ConsentLength { n_wishes: u64, n_rows: u64 },
    /// Persons shown without the class they ask for, or in a class although they ask for none.
    #[error(
        "in {}, the person asks for a class and is in none, or asks for none and is in one, first in row {first_row}",
        count(*n, "row")
    )]
    OutsideClass { n: u64, first_row: u64 },
    /// Identifiers of persons with a k above 0.
    #[error("identifier '{column}' is shown in {}, first in row {first_row}", count(*n, "row"))]
    IdentifierShown { column: String, n: u64, first_row: u64 },
    /// Cells that their person, or another person of the class, refuses to show.
    #[error("column '{column}': {} shown against a refusal, first in row {first_row}", does(*n, "cell", "is", "are"))]
    RefusedShown { column: String, n: u64, first_row: u64 },
    /// Sensitive cells below the level their persons ask for.
    #[error("column '{column}': {} not generalized as far as asked, first in row {first_row}", does(*n, "cell", "is", "are"))]
    NotRaised { column: String, n: u64, first_row: u64 },
    /// Rows of one class that can be told apart.
    #[error("column '{column}': {} from others of the class, first in row {first_row}", does(*n, "row", "differs", "differ"))]
    ClassDiffers { column: String, n: u64, first_row: u64 },
    /// Persons who ask for more persons than any class and group that can hold them has.
    #[error("column '{column}': {} for more persons than there are in any class and group that they can be in", does(*n, "person", "asks", "ask"))]
    OwnKUnmet { column: String, n: u64 },
    /// A column of an earlier release that can't be read in this one.
    #[error(
        "{release}: column '{column}' is not a quasi column of this release, or this release can't read its labels"
    )]
    PreviousColumn { release: String, column: String },
    /// Persons who hide among too few from readers of all releases.
    #[error("read together with earlier releases: {} among fewer than k, the worst among {fewest}", does(*n, "person", "hides", "hide"))]
    PreviousCrowd { n: u64, fewest: u64 },
    /// Groups of this and an earlier release that have so few values in common that these tell whose they are.
    #[error("read together with earlier releases: {} too few values of '{column}' with an earlier group", does(*n, "group", "shares", "share"))]
    PreviousCommon { column: String, n: u64 },
    /// Groups of this and an earlier release that differ in so few values that these tell whose they are.
    #[error("read together with earlier releases: the few values of '{column}' that came or went in {} tell whose they are", count(*n, "group"))]
    PreviousChanges { column: String, n: u64 },

    /// A requirement that some class does not satisfy.
    #[error(
        "{}: {}, the worst reaching {}; the first is in row {first_row} and has {}",
        InWords(requirement), does(*n_classes, "class", "fails", "fail"), Reached(*reached), count(*class_size, "person")
    )]
    Unmet { requirement: Requirement, n_classes: u64, reached: f64, first_row: u64, class_size: u64 },
}

impl Violation {
    /// This violation, with the name of the table that has it.
    pub fn in_table(self, table: &str) -> Self {
        match self {
            Violation::NoRows { .. } | Violation::TooManyRows { .. } => self,
            _ => Violation::InTable { table: table.to_owned(), violation: Box::new(self) },
        }
    }

    /// This violation, marked as one that remains even in the best of all ways to trace rows back.
    pub(crate) fn in_every_way(self) -> Self {
        Violation::InEveryWay { violation: Box::new(self) }
    }

    /// This violation, marked as one that remains in the best way that was tried to trace rows back; others may be better.
    pub(crate) fn undecided(self) -> Self {
        Violation::Undecided { violation: Box::new(self) }
    }

    /// Whether the verifier could not decide, rather than found something wrong.
    pub fn is_undecided(&self) -> bool {
        match self {
            Violation::Undecided { .. } | Violation::TooManyOrigins { .. } => true,
            Violation::InTable { violation, .. }
            | Violation::InRelease { violation, .. }
            | Violation::ForAudience { violation, .. }
            | Violation::ForCoalition { violation, .. }
            | Violation::Together { violation }
            | Violation::WithEarlier { violation } => violation.is_undecided(),
            _ => false,
        }
    }

    /// This violation, with the name of the release that has it.
    pub(crate) fn in_release(self, release: &str) -> Self {
        Violation::InRelease { release: release.to_owned(), violation: Box::new(self) }
    }

    /// This violation, with the name of the coalition that sees it.
    pub(crate) fn for_coalition(self, coalition: &str) -> Self {
        Violation::ForCoalition { coalition: coalition.to_owned(), violation: Box::new(self) }
    }

    /// This violation, with the name of the audience that sees it.
    pub(crate) fn for_audience(self, audience: &str) -> Self {
        Violation::ForAudience { audience: audience.to_owned(), violation: Box::new(self) }
    }

    /// What to do about the violation, if the message does not make that obvious.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Violation::PersonMissing { .. } => {
                Some("give each person an id, or leave the person column out so that each row counts as a person")
            }
            Violation::RowsUnmatched { .. } => {
                Some("say which column names the person in every release, for example {person=id}")
            }
            Violation::RowsSorted { .. } => Some(
                "say which column names the person in every release ({person}), or audit copies made with {order=input}, which must stay private",
            ),
            Violation::PersonTwice { .. } => Some("audit releases in which each person has one row"),
            Violation::ReleasesContradict { .. } => Some(
                "check that the releases are of the same persons in the same order, or match persons by a column with {person}",
            ),
            Violation::NobodyInCommon { .. } => {
                Some("check that the column names persons in the same way in every release")
            }
            Violation::NoHierarchy { .. } => Some("give the column a hierarchy, or choose another distance"),
            Violation::TooManyOrigins { .. } | Violation::Undecided { .. } => Some(
                "this does not show that anything is wrong; verify the files without the private tables to count what they show",
            ),
            Violation::InTable { violation, .. }
            | Violation::ForAudience { violation, .. }
            | Violation::ForCoalition { violation, .. }
            | Violation::Together { violation }
            | Violation::InRelease { violation, .. } => violation.hint(),
            Violation::WithEarlier { .. } => Some(
                "wait until there are more new persons, or release everybody anew with `kohort anonymize` and withdraw the earlier release",
            ),
            Violation::OriginalKeys { .. } => Some("give each row a key of its own"),
            Violation::OwnKUnmet { .. } => Some(
                "anonymize the table again if persons ask for a larger k than when the release was made; otherwise don't publish the release",
            ),
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
                write!(f, "column '{column}': beta of at most {beta} (the relative gain of a value's share)")
            }
            Requirement::EnhancedBeta { column, beta } => {
                write!(
                    f,
                    "column '{column}': enhanced_beta of at most {beta} (the relative gain of a value's share, also at \
                     most -ln of its share in the whole table)"
                )
            }
        }
    }
}

/// Shows a count as it is, and a share with four decimal places.
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
            "table 'visit' has no rows, so nothing can be counted\n\
             column 'disease': t of at most 0.2 (ordered distance): 2 classes fail, the worst reaching 0.2500; \
             the first is in row 7 and has 4 persons"
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
            "at least 1 person in each class: 1 class fails, the worst reaching 1; the first is in row 7 and has 1 person"
        );
        assert!(unmet(2).to_string().starts_with("at least 2 persons in each class: 2 classes fail, "));
        let orphan = |n| Violation::ParentSuppressed { parent: "takes".to_owned(), n, first_row: 3 };
        assert_eq!(
            orphan(1).in_table("books").to_string(),
            "table 'books': 1 released row belongs to a row of 'takes' that is left out, first in released row 3"
        );
        assert!(orphan(2).to_string().starts_with("2 released rows belong to"));
        let split = |n| Violation::PersonSplit { n, first_row: 3 }.to_string();
        assert_eq!(split(1), "1 person is released only in part, first seen in row 3 of the original");
        assert_eq!(split(2), "2 persons are released only in part, first seen in row 3 of the original");
        let suppressed = Violation::TooManySuppressed { n: 3, n_persons: 100, limit: 0.02 };
        assert_eq!(suppressed.to_string(), "3 of 100 persons are left out, more than a share of 0.02");
    }
}
