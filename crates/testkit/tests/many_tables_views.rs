//! The verifier of many tables against views: every view on tiny tables, and the paper's attacks.

use kohort_model::spec::Keys;
use kohort_model::{Column, Requirement, Role, Schema, SchemaParent, SchemaTable, Table};
use kohort_testkit::data;
use kohort_testkit::generate::config;
use kohort_testkit::oracle::views::{
    Counting, Joined, Known, KnownRows, View, attack, classes_of_trees, smallest_answer,
};
use kohort_verify::{
    ReleasedLink, Suppressed, SuppressionLimit, TablesAgainst, Violation, verify_tables_against, verify_tables_alone,
};
use proptest::prelude::*;

/// A table from lines of cells, `-` for null.
fn table(name: &str, columns: &[(&str, Role)], lines: &str) -> Table {
    let rows: Vec<Vec<&str>> = lines.trim().lines().map(|line| line.trim().split(',').collect()).collect();
    let column = |(position, &(name, role)): (usize, &(&str, Role))| {
        Column::from_cells(name, role, rows.iter().map(|row| Some(row[position]).filter(|&cell| cell != "-")))
    };
    Table {
        name: name.to_owned(),
        columns: columns.iter().enumerate().map(column).collect(),
        n_rows: rows.len(),
        person: None,
    }
}

/// A table's name, its key, and its parent with the foreign key.
type Noted<'a> = (&'a str, Option<usize>, Option<(usize, usize)>);

fn schema(tables: &[Noted<'_>]) -> Schema {
    let table = |&(name, key, parent): &Noted<'_>| SchemaTable {
        name: name.to_owned(),
        key,
        parent: parent.map(|(table, foreign_key)| SchemaParent { table, foreign_key }),
        references: Vec::new(),
        max_rows_left_out: None,
    };
    Schema { tables: tables.iter().map(table).collect() }
}

const STUDENT: &[(&str, Role)] = &[("sid", Role::Key), ("gpa", Role::Sensitive)];
const TAKES: &[(&str, Role)] =
    &[("scid", Role::Key), ("sid", Role::Key), ("course", Role::Quasi), ("grade", Role::Sensitive)];
const BOOKS: &[(&str, Role)] = &[("scid", Role::Key), ("book", Role::Quasi), ("price", Role::Sensitive)];

fn students_schema() -> Schema {
    schema(&[("student", Some(0), None), ("takes", Some(0), Some((0, 1))), ("books", None, Some((1, 0)))])
}

/// The golden tables with their roles and hierarchies.
fn students() -> Vec<Table> {
    let folder = data::golden("students");
    let read = |name: &str, columns: &[(&str, Role)], tree: Option<(&str, &str)>| {
        let mut table = data::read(&folder.join(format!("{name}.csv")));
        table.name = name.to_owned();
        for (column, &(name, role)) in table.columns.iter_mut().zip(columns) {
            assert_eq!(column.name, name);
            column.role = role;
            if let Some((_, file)) = tree.filter(|(of, _)| *of == name) {
                *column = column.clone().typed(kohort_model::ValueType::Text);
                column.hierarchy = Some(data::hierarchy(&folder.join(file)).into());
            }
        }
        table
    };
    vec![
        read("student", STUDENT, None),
        read("takes", TAKES, Some(("course", "course.dgh.csv"))),
        read("books", BOOKS, Some(("book", "book.dgh.csv"))),
    ]
}

/// Table III: the golden release.
fn golden_release() -> Vec<Table> {
    let student = table("student", STUDENT, "S1,3.72\nS2,2.34\nS3,3.12\nS4,4.00");
    let takes = table(
        "takes",
        TAKES,
        "SC1,S1,Science,93\nSC2,S1,Physics,91\nSC3,S1,Social,85\nSC4,S2,Science,78\nSC5,S2,Physics,62\n\
         SC6,S2,Social,42\nSC7,S3,History,85\nSC8,S3,Religion,75\nSC10,S4,History,98\nSC11,S4,Religion,96",
    );
    let books = table(
        "books",
        BOOKS,
        "SC1,Discrete,63\nSC2,Dynamics,42\nSC3,Relg Book,33\nSC4,Discrete,65\nSC5,Dynamics,51\nSC6,Relg Book,38\n\
         SC7,Hist Book,49\nSC10,Hist Book,54",
    );
    with_hierarchies(vec![student, takes, books])
}

/// Tables V and VI: each table is 2-anonymous by itself, with as many rows of a student as can be generalized together,
/// and keys are kept. There are no books, as in the paper.
fn naive_release() -> Vec<Table> {
    let student = table("student", STUDENT, "S1,3.72\nS2,2.34\nS3,3.12\nS4,4.00");
    let takes = table(
        "takes",
        TAKES,
        "SC1,S1,Science,93\nSC2,S1,Science,91\nSC3,S1,History,85\nSC4,S2,Science,78\nSC5,S2,Physics,62\n\
         SC6,S2,Religion,42\nSC7,S3,History,85\nSC8,S3,Religion,75\nSC9,S3,Physics,77\nSC10,S4,History,98\n\
         SC11,S4,Religion,96",
    );
    let books = Table { n_rows: 0, ..table("books", BOOKS, "") };
    let columns = BOOKS.iter().map(|&(name, role)| Column::from_cells(name, role, []));
    with_hierarchies(vec![student, takes, Table { columns: columns.collect(), ..books }])
}

/// The tables with the private hierarchies, which give their labels a meaning.
fn with_hierarchies(mut tables: Vec<Table>) -> Vec<Table> {
    for (table, private) in tables.iter_mut().zip(students()) {
        for (column, private) in table.columns.iter_mut().zip(private.columns) {
            column.hierarchy = private.hierarchy;
        }
    }
    tables
}

fn k_of(tables: &[Table], schema: &Schema) -> u64 {
    let nothing = vec![Vec::new(); tables.len()];
    verify_tables_alone(tables, &ReleasedLink::of(schema, tables), &nothing).expect("the tables join").k
}

/// The view of somebody who knows three courses of Chris, who is student S1, and that Chris takes no others.
fn chris() -> View {
    let course = |name: &str| View { cells: vec![Known::Was(Some(name.to_owned()))], rows: vec![KnownRows::default()] };
    let courses = || Some(vec![course("History"), course("Math"), course("Physics")]);
    View { cells: Vec::new(), rows: vec![KnownRows { some: courses(), all: courses(), exactly: None }] }
}

#[test]
fn chris_is_found_where_each_table_is_anonymized_by_itself() {
    let schema = students_schema();
    let naive = Joined::new(&naive_release(), &schema);
    assert_eq!(naive.answer(0, &chris()), [0], "only S1 takes two courses of science and one of history");
    // The attack in the paper's words, by labels and their counts.
    let science = View { cells: vec![Known::Shown(Some("Science".to_owned()))], rows: vec![KnownRows::default()] };
    let history = View { cells: vec![Known::Shown(Some("History".to_owned()))], rows: vec![KnownRows::default()] };
    let rows = KnownRows { some: Some(vec![history]), exactly: Some((Box::new(science), 2)), all: None };
    assert_eq!(naive.answer(0, &View { cells: Vec::new(), rows: vec![rows] }), [0]);
    // The courses alone, one row per view, single nobody out. That is why a table looks safe by itself.
    let takes = kohort_verify::measure(&naive_release()[1], &[2], &[], &[]).unwrap();
    assert_eq!(takes.k, 2);
    assert_eq!(k_of(&naive_release(), &schema), 1);
}

#[test]
fn random_views_find_chris_too_and_nobody_in_the_golden_release() {
    let schema = students_schema();
    let private = Joined::new(&students(), &schema);
    let found = attack(&Joined::new(&naive_release(), &schema), &private, 2, 500, 1);
    assert!(found.is_some(), "the naive release gives somebody away");
    let golden = Joined::new(&golden_release(), &schema);
    assert!(attack(&golden, &private, 2, 20_000, 1).is_none());
    let unchanged = Joined::new(&students(), &schema);
    assert!(attack(&unchanged, &private, 2, 100, 1).is_some());
}

#[test]
fn the_golden_release_hides_chris_and_george_among_two() {
    let schema = students_schema();
    let golden = Joined::new(&golden_release(), &schema);
    // Only a book of Chris is left out, so everything that is shown may be his.
    assert_eq!(golden.answer(0, &chris()), [0, 1]);
    assert_eq!(classes_of_trees(&golden, 0), [vec![0, 1], vec![2, 3]]);
    // The paper's query: history with the book on America.
    let book = View { cells: vec![Known::Shown(Some("Am. Hist".to_owned()))], rows: Vec::new() };
    let history = View {
        cells: vec![Known::Shown(Some("History".to_owned()))],
        rows: vec![KnownRows { some: Some(vec![book]), ..KnownRows::default() }],
    };
    let george =
        View { cells: Vec::new(), rows: vec![KnownRows { some: Some(vec![history]), ..KnownRows::default() }] };
    assert_eq!(Joined::new(&students(), &schema).answer(0, &george), [3]);
    assert!(golden.answer(0, &george).is_empty());
}

#[test]
fn the_golden_release_satisfies_the_verifier_by_itself_and_against_the_students() {
    let (schema, released) = (students_schema(), golden_release());
    assert_eq!(k_of(&released, &schema), 2);
    let mut private = students();
    private[0].person = Some(0);
    let suppressed = [0, 1, 3].map(|rows| Suppressed { rows, persons: 0 });
    let asked = [vec![Requirement::K(2)], Vec::new(), Vec::new()];
    let against = TablesAgainst {
        originals: &private,
        schema: &schema,
        requirements: &asked,
        suppressed: &suppressed,
        limit: SuppressionLimit::NOBODY,
        keys: Keys::Surrogate,
    };
    let findings = verify_tables_against(&released, &against).unwrap();
    assert_eq!((findings.k, findings.classes, findings.persons), (2, 2, 4));
}

#[test]
fn generalized_join_keys_fall_to_a_functional_dependency_and_join_with_nothing() {
    // Table V, AT2: keys are sets of students. A student has one GPA, so rows with equal GPAs belong to one student.
    let rows = [
        ("S1", "3.72"),
        ("S1", "3.72"),
        ("S1 S4", "3.72"),
        ("S1 S2 S3 S4", "2.34"),
        ("S2 S3", "2.34"),
        ("S2 S4", "2.34"),
        ("S3", "3.12"),
        ("S3", "3.12"),
        ("S2 S3", "3.12"),
        ("S1 S4", "4.00"),
        ("S2 S4", "4.00"),
    ];
    for (gpa, student) in [("3.72", "S1"), ("2.34", "S2"), ("3.12", "S3"), ("4.00", "S4")] {
        let sets = rows.iter().filter(|row| row.1 == gpa).map(|row| row.0.split(' ').collect::<Vec<_>>());
        let left = sets.reduce(|left, set| left.into_iter().filter(|student| set.contains(student)).collect());
        assert_eq!(left.unwrap(), [student], "every student is found");
    }
    // Table VI, T2: such keys match no row, or several. The verifier accepts neither.
    let mut tables = golden_release();
    tables[1] = table(
        "takes",
        TAKES,
        "SC1,S1,Science,93\nSC2,S1,Science,91\nSC3,{S1 S4},History,85\nSC4,*,*,78\nSC5,{S2 S3},Physics,62",
    );
    tables.pop();
    tables[1].columns[0].role = Role::Plain;
    let schema = schema(&[("student", Some(0), None), ("takes", None, Some((0, 1)))]);
    let links = ReleasedLink::of(&schema, &tables);
    let violations = verify_tables_alone(&tables, &links, &[Vec::new(), Vec::new()]).unwrap_err().0;
    let [Violation::InTable { table, violation }] = &violations[..] else { panic!("{violations:?}") };
    assert!(table == "takes" && matches!(**violation, Violation::WithoutParent { n: 3, first_row: 3, .. }));
    // In the golden release each student has one row and one GPA.
    let golden = golden_release();
    let gpas = golden[0].column("gpa").unwrap();
    assert_eq!((golden[0].n_rows, gpas.texts.len()), (4, 4));
}

/// Persons of a tiny release: the person's label, rows of a first child table with rows of their own, rows of a second
/// child table.
type Tiny = Vec<(u8, Vec<(u8, Vec<u8>)>, Vec<u8>)>;

fn tiny(persons: &Tiny) -> (Vec<Table>, Schema) {
    let label = |label: u8| if label == 0 { "-".to_owned() } else { format!("v{label}") };
    let (mut own, mut first, mut below, mut second) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (person, (cell, rows, others)) in persons.iter().enumerate() {
        own.push(format!("{person},{}", label(*cell)));
        for (cell, leaves) in rows {
            leaves.iter().for_each(|leaf| below.push(format!("{},{}", first.len(), label(*leaf))));
            first.push(format!("{},{person},{}", first.len(), label(*cell)));
        }
        others.iter().for_each(|cell| second.push(format!("{person},{}", label(*cell))));
    }
    let quasi = ("q", Role::Quasi);
    let (key, of) = (("id", Role::Key), ("of", Role::Key));
    let make = |name: &str, columns: &[(&str, Role)], rows: &[String]| {
        if rows.is_empty() {
            let columns = columns.iter().map(|&(name, role)| Column::from_cells(name, role, [])).collect();
            return Table { name: name.to_owned(), columns, n_rows: 0, person: None };
        }
        table(name, columns, &rows.join("\n"))
    };
    let tables = vec![
        make("person", &[key, quasi], &own),
        make("first", &[key, of, quasi], &first),
        make("below", &[of, quasi], &below),
        make("second", &[of, quasi], &second),
    ];
    let schema = schema(&[
        ("person", Some(0), None),
        ("first", Some(0), Some((0, 1))),
        ("below", None, Some((1, 0))),
        ("second", None, Some((0, 0))),
    ]);
    (tables, schema)
}

fn tiny_persons() -> impl Strategy<Value = Tiny> {
    let leaf = || prop_oneof![5 => Just(1u8), 2 => Just(2u8), 1 => Just(0u8)];
    let row = (leaf(), prop::collection::vec(leaf(), 0..2));
    let person = (leaf(), prop::collection::vec(row, 0..3), prop::collection::vec(leaf(), 0..2));
    // Persons are repeated, so that classes of several persons are frequent.
    prop::collection::vec((person, 1usize..4), 1..4).prop_map(|kinds| {
        let persons = kinds.into_iter().flat_map(|(person, n)| std::iter::repeat_n(person, n));
        persons.take(6).collect()
    })
}

proptest! {
    #![proptest_config(config(128))]

    #[test]
    fn the_smallest_class_is_the_smallest_answer_of_all_views_with_counts(persons in tiny_persons()) {
        let (tables, schema) = tiny(&persons);
        let k = k_of(&tables, &schema);
        prop_assert_eq!(k, u64::from(smallest_answer(&tables, &schema, Counting::Counts)));
        // An attacker who knows only which rows exist, but not how many or which don't, finds at least as many persons.
        prop_assert!(k <= u64::from(smallest_answer(&tables, &schema, Counting::Exists)));
    }

    #[test]
    fn no_random_view_has_an_answer_smaller_than_the_smallest_class(persons in tiny_persons(), seed in any::<u64>()) {
        let (tables, schema) = tiny(&persons);
        let joined = Joined::new(&tables, &schema);
        let k = k_of(&tables, &schema) as usize;
        let found = attack(&joined, &joined, k, 200, seed);
        prop_assert!(found.is_none(), "{found:?}");
    }
}

#[test]
fn releases_that_the_verifier_refuses_may_be_safe_from_attackers_who_know_no_counts() {
    // Two rows that look the same, and one such row: only their number tells the persons apart.
    let (tables, schema) = tiny(&vec![(1, vec![(1, vec![]), (1, vec![])], vec![]), (1, vec![(1, vec![])], vec![])]);
    assert_eq!(smallest_answer(&tables, &schema, Counting::Exists), 2);
    assert_eq!(smallest_answer(&tables, &schema, Counting::Counts), 1);
    assert_eq!(k_of(&tables, &schema), 1);
}
