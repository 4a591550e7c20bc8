//! Releases that can have come from their input are accepted, and all others are refused.

use kohort_model::{Column, Role, Schema, SchemaParent, SchemaTable, ValueType};
use proptest::prelude::*;

use super::super::cases::{BOOKS, LIMIT, STUDENT, TAKES, copied, release, requirements, schema, students, written};
use super::*;

const ADMITTED: [Suppressed; 3] =
    [Suppressed { rows: 0, persons: 0 }, Suppressed { rows: 1, persons: 0 }, Suppressed { rows: 3, persons: 0 }];

/// Verifies files that are said to come from the students.
fn verify(files: &[Table], originals: &[Table], suppressed: &[Suppressed], keys: Keys) -> Result<Findings, Violations> {
    let (schema, requirements) = (&schema(), &requirements());
    verify_tables_against(files, &TablesAgainst { originals, schema, requirements, suppressed, limit: LIMIT, keys })
}

/// The violations after a change to the files.
fn spoiled(spoil: impl FnOnce(&mut [Table])) -> Vec<Violation> {
    let mut files = written(&release(), &students());
    spoil(&mut files);
    verify(&files, &students(), &ADMITTED, Keys::Surrogate).unwrap_err().0
}

fn cell(table: &mut Table, column: usize, row: usize, text: &str) {
    let known = table.columns[column].texts.iter().position(|known| known == text);
    let id = known.map_or_else(|| table.columns[column].texts.push(text), |id| id as u32);
    table.columns[column].ids[row] = id;
}

fn without_origin(n: u64, first_row: u64) -> Violation {
    Violation::PersonWithoutOrigin { n, first_row }.in_table("student")
}

#[test]
fn the_paper_s_release_has_an_origin_for_each_person() {
    let files = written(&release(), &students());
    let findings = verify(&files, &students(), &ADMITTED, Keys::Surrogate).unwrap();
    assert_eq!((findings.k, findings.persons), (2, 4));
    assert_eq!(findings.suppressed, Some(Suppressed { rows: 4, persons: 0 }));
    assert_eq!(findings.tables[BOOKS].suppressed, Some(ADMITTED[BOOKS]));
    assert!(findings.skipped.is_empty());
}

#[test]
fn a_changed_value_or_a_label_that_does_not_cover_has_no_origin() {
    assert_eq!(spoiled(|files| cell(&mut files[TAKES], 3, 0, "94")), [without_origin(1, 1)]);
    assert_eq!(spoiled(|files| cell(&mut files[STUDENT], 1, 2, "3.13")), [without_origin(1, 3)]);
    let narrowed = spoiled(|files| [0, 3].into_iter().for_each(|row| cell(&mut files[BOOKS], 1, row, "Calculus")));
    assert_eq!(narrowed, [without_origin(2, 1)]);
}

#[test]
fn a_row_that_moved_to_another_parent_has_no_origin_there() {
    // Two courses of science are swapped: all grades and labels exist, but belong to other students.
    let violations = spoiled(|files| {
        let takes = &mut files[TAKES];
        (takes.columns[1].ids[0], takes.columns[1].ids[3]) = (takes.columns[1].ids[3], takes.columns[1].ids[0]);
    });
    assert_eq!(violations, [without_origin(2, 1)]);
    // Two books of one student are swapped between courses.
    let violations = spoiled(|files| {
        for students in [[0, 1], [3, 4]] {
            let keys = &mut files[BOOKS].columns[0].ids;
            keys.swap(students[0], students[1]);
        }
    });
    assert_eq!(violations, [without_origin(2, 1)]);
}

#[test]
fn rows_left_out_are_as_many_as_admitted() {
    let files = written(&release(), &students());
    let mut admitted = ADMITTED;
    admitted[BOOKS].rows = 2;
    admitted[STUDENT].persons = 1;
    let violations = verify(&files, &students(), &admitted, Keys::Surrogate).unwrap_err().0;
    let miscounted = |what, admitted, counted| Violation::SuppressedMiscounted { what, admitted, counted };
    let expected = [miscounted("persons", 1, 0).in_table("student"), miscounted("rows", 2, 3).in_table("books")];
    assert_eq!(violations, expected);
}

#[test]
fn rows_left_out_are_counted_against_the_limit_of_their_table() {
    let (files, originals, requirements) = (written(&release(), &students()), students(), requirements());
    let verify = |limit: f64| {
        let mut schema = schema();
        schema.tables[BOOKS].max_rows_left_out = Some(limit);
        let against = TablesAgainst {
            originals: &originals,
            schema: &schema,
            requirements: &requirements,
            suppressed: &ADMITTED,
            limit: LIMIT,
            keys: Keys::Surrogate,
        };
        verify_tables_against(&files, &against).map(drop).map_err(|violations| violations.0)
    };
    assert_eq!(verify(0.3), Ok(()));
    let exceeded = Violation::TooManyRowsLeftOut { n: 3, n_rows: 11, limit: 0.25 };
    assert_eq!(verify(0.25), Err(vec![exceeded.in_table("books")]));
}

#[test]
fn a_class_too_small_for_someone_s_own_k_has_no_origin_for_one() {
    let mut originals = students();
    originals[STUDENT].columns[2].ids[1] = originals[STUDENT].columns[2].texts.push("3");
    let files = written(&release(), &students());
    let violations = verify(&files, &originals, &ADMITTED, Keys::Surrogate).unwrap_err().0;
    assert_eq!(violations, [without_origin(1, 2)]);
}

#[test]
fn requirements_and_joins_are_counted_too() {
    let unmet = spoiled(|files| cell(&mut files[BOOKS], 1, 0, "*"));
    assert!(matches!(&unmet[..], [Violation::InTable { table, .. }, ..] if table == "student"), "{unmet:?}");
    let lost = spoiled(|files| cell(&mut files[BOOKS], 0, 7, "77"));
    let (column, parent) = ("scid".to_owned(), "takes".to_owned());
    assert_eq!(lost, [Violation::WithoutParent { column, parent, n: 1, first_row: 8 }.in_table("books")]);
    let renamed = spoiled(|files| files[TAKES].columns[2].name = "lesson".to_owned());
    let missing = Violation::ColumnMissing { column: "course".to_owned(), role: Role::Quasi };
    let nowhere = Violation::ColumnWithoutSource { column: "lesson".to_owned() };
    assert_eq!(renamed, [nowhere.in_table("takes"), missing.in_table("takes")]);
}

/// A person's own value and the children, each with a value and leaves.
type Person = (u8, Vec<(u8, Vec<u8>)>);

fn number_column(name: &str, role: Role, cells: impl IntoIterator<Item = String>) -> Column {
    let cells: Vec<String> = cells.into_iter().collect();
    Column::from_cells(name, role, cells.iter().map(|cell| Some(cell.as_str()))).typed(ValueType::Integer)
}

/// Three tables: persons, their children, and the children of these. `cell` spells a value.
fn tables(persons: &[Person], cell: impl Fn(u8) -> String, role: Role) -> Vec<Table> {
    let children: Vec<(usize, &(u8, Vec<u8>))> =
        persons.iter().enumerate().flat_map(|(of, person)| person.1.iter().map(move |child| (of, child))).collect();
    let leaves: Vec<(usize, u8)> =
        children.iter().enumerate().flat_map(|(of, (_, child))| child.1.iter().map(move |&leaf| (of, leaf))).collect();
    let numbers = |name: &str, n: usize| number_column(name, Role::Key, (0..n).map(|number| number.to_string()));
    let table = |name: &str, columns: Vec<Column>, person| Table {
        name: name.to_owned(),
        n_rows: columns[0].ids.len(),
        columns,
        person,
    };
    vec![
        table(
            "person",
            vec![numbers("id", persons.len()), number_column("own", role, persons.iter().map(|person| cell(person.0)))],
            Some(0),
        ),
        table(
            "child",
            vec![
                numbers("child", children.len()),
                number_column("id", Role::Key, children.iter().map(|(of, _)| of.to_string())),
                number_column("value", role, children.iter().map(|(_, child)| cell(child.0))),
            ],
            None,
        ),
        table(
            "leaf",
            vec![
                number_column("child", Role::Key, leaves.iter().map(|(of, _)| of.to_string())),
                number_column("leaf", Role::Sensitive, leaves.iter().map(|(_, leaf)| leaf.to_string())),
            ],
            None,
        ),
    ]
}

/// Whether each released person can be given a private one, found by trying every way. See `within` for which values
/// fit.
fn laid(released: &[Person], private: &[Person], used: u32) -> bool {
    let Some((first, rest)) = released.split_first() else { return true };
    private.iter().enumerate().any(|(at, other)| {
        used & (1 << at) == 0
            && within(first.0, other.0)
            && children_laid(&first.1, &other.1, 0)
            && laid(rest, private, used | (1 << at))
    })
}

fn children_laid(released: &[(u8, Vec<u8>)], private: &[(u8, Vec<u8>)], used: u32) -> bool {
    let Some((first, rest)) = released.split_first() else { return true };
    private.iter().enumerate().any(|(at, other)| {
        used & (1 << at) == 0
            && within(first.0, other.0)
            && leaves_laid(&first.1, &other.1, 0)
            && children_laid(rest, private, used | (1 << at))
    })
}

fn leaves_laid(released: &[u8], private: &[u8], used: u32) -> bool {
    let Some((first, rest)) = released.split_first() else { return true };
    private
        .iter()
        .enumerate()
        .any(|(at, other)| used & (1 << at) == 0 && first == other && leaves_laid(rest, private, used | (1 << at)))
}

fn within(released: u8, private: u8) -> bool {
    (released..=released + 1).contains(&private)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_origin_is_found_exactly_where_trying_every_assignment_finds_one(
        private in prop::collection::vec(person(), 1..5),
        released in prop::collection::vec(person(), 1..5),
        derived in any::<bool>(),
    ) {
        // Half of the time the released persons are made from the private ones, so that many have an origin.
        let released: Vec<Person> = if derived {
            private.iter().zip(&released).map(|(own, noise)| {
                let children = own.1.iter().rev().take(noise.1.len() + 1);
                let children = children.map(|(value, leaves)| (value.saturating_sub(1), leaves.iter().rev().take(1).copied().collect()));
                (own.0.saturating_sub(u8::from(noise.0 > 1)), children.collect())
            }).rev().collect()
        } else {
            released
        };
        let originals = tables(&private, |value| value.to_string(), Role::Quasi);
        let files = tables(&released, |value| format!("[{value},{}]", value + 1), Role::Quasi);
        let hangs = |table, foreign_key| Some(SchemaParent { table, foreign_key });
        let table = |name: &str, key, parent| SchemaTable { name: name.to_owned(), key, parent, references: Vec::new(), max_rows_left_out: None };
        let schema = Schema { tables: vec![
            table("person", Some(0), None),
            table("child", Some(0), hangs(0, 1)),
            table("leaf", None, hangs(1, 0)),
        ] };
        let suppressed: Vec<Suppressed> = originals.iter().zip(&files).map(|(original, file)| {
            let rows = original.n_rows.saturating_sub(file.n_rows) as u64;
            Suppressed { rows, persons: rows }
        }).collect();
        let against = TablesAgainst {
            originals: &originals,
            schema: &schema,
            requirements: &[vec![], vec![], vec![]],
            suppressed: &suppressed,
            limit: SuppressionLimit::share(1.0),
            keys: Keys::Surrogate,
        };
        let found = verify_tables_against(&files, &against);
        prop_assert_eq!(found.is_ok(), laid(&released, &private, 0), "{:?}", found.err());
    }
}

fn person() -> impl Strategy<Value = Person> {
    (0u8..3, prop::collection::vec((0u8..3, prop::collection::vec(0u8..2, 0..3)), 0..4))
}

/// `n` persons with two rows of a quasi column each and no copied column, and a release with classes of five persons,
/// who are near each other if `sorted`.
fn many_persons(n: usize, sorted: bool) -> (Vec<Table>, Vec<Table>, Schema) {
    let text = |name: &str, role, cells: Vec<String>| {
        Column::from_cells(name, role, cells.iter().map(|cell| Some(cell.as_str())))
    };
    let mut numbers: Vec<[usize; 2]> = (0..n)
        .map(|person| {
            let (a, b) = (person.wrapping_mul(7919) % 1009, person.wrapping_mul(104_729) % 997);
            [a.min(b), a.max(b)]
        })
        .collect();
    let tables = |cells: Vec<[String; 2]>, typed: bool| {
        let ids = (0..n).map(|person| person.to_string());
        let persons = vec![text("id", Role::Key, ids.clone().collect())];
        let code = text("code", Role::Quasi, cells.into_iter().flatten().collect());
        let code = if typed { code.typed(ValueType::Integer) } else { code };
        let visits = vec![text("person", Role::Key, ids.flat_map(|id| [id.clone(), id]).collect()), code];
        vec![
            Table { name: "person".to_owned(), columns: persons, n_rows: n, person: typed.then_some(0) },
            Table { name: "visit".to_owned(), columns: visits, n_rows: 2 * n, person: None },
        ]
    };
    if sorted {
        numbers.sort_unstable();
    }
    let private = tables(numbers.iter().map(|codes| codes.map(|code| code.to_string())).collect(), true);
    let label = |class: &[[usize; 2]], of: usize| {
        let codes = class.iter().map(|codes| codes[of]);
        format!("[{},{}]", codes.clone().min().unwrap(), codes.max().unwrap())
    };
    let labels = numbers.chunks(5).flat_map(|class| {
        let labels = [label(class, 0), label(class, 1)];
        class.iter().map(move |_| labels.clone())
    });
    let released = tables(labels.collect(), false);
    let parent = Some(SchemaParent { table: 0, foreign_key: 0 });
    let schema = Schema {
        tables: vec![
            SchemaTable {
                name: "person".to_owned(),
                key: Some(0),
                parent: None,
                references: Vec::new(),
                max_rows_left_out: None,
            },
            SchemaTable {
                name: "visit".to_owned(),
                key: None,
                parent,
                references: Vec::new(),
                max_rows_left_out: None,
            },
        ],
    };
    (released, private, schema)
}

#[test]
fn forty_five_thousand_persons_without_copied_columns_are_traced() {
    let asked = [vec![Requirement::K(5)], Vec::new()];
    for sorted in [true, false] {
        let (mut released, private, schema) = many_persons(45_000, sorted);
        let against = TablesAgainst {
            originals: &private,
            schema: &schema,
            requirements: &asked,
            suppressed: &[Suppressed::default(); 2],
            limit: LIMIT,
            keys: Keys::Surrogate,
        };
        let findings = verify_tables_against(&released, &against).unwrap();
        assert_eq!(findings.persons, 45_000, "{sorted}");
        assert!(findings.k >= 5, "{sorted}");
        if !sorted {
            continue;
        }
        // The labels of one class cover nobody.
        let codes = &mut released[1].columns[1];
        let nowhere = codes.texts.push("[2000,2001]");
        let class = codes.ids[0];
        codes.ids.iter_mut().filter(|id| **id == class).for_each(|id| *id = nowhere);
        let violations = verify_tables_against(&released, &against).unwrap_err().0;
        assert!(!violations.iter().any(Violation::is_undecided), "{violations:?}");
    }
}

#[test]
fn keys_that_are_kept_are_those_of_the_private_tables() {
    let mut kept = release();
    for (table, column, name) in [(STUDENT, 0, "sid"), (TAKES, 0, "scid"), (TAKES, 1, "sid"), (BOOKS, 0, "scid")] {
        kept.tables[table].columns[column] = copied(name, column);
    }
    let is_accepted = |release: &kohort_model::Release, keys: Keys| {
        verify(&written(release, &students()), &students(), &ADMITTED, keys).is_ok()
    };
    assert!(is_accepted(&kept, Keys::Keep));
    assert!(is_accepted(&kept, Keys::Surrogate), "keys that may be renumbered may also be kept");
    assert!(is_accepted(&release(), Keys::Surrogate));
    assert!(!is_accepted(&release(), Keys::Keep), "other keys lead to other persons");
}
