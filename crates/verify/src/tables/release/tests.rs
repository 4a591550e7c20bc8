//! A true release of many tables is verified; each way to spoil it is found and named.

use kohort_model::{Distance, Role, SchemaParent};
use proptest::prelude::*;

use super::super::cases::{
    BOOKS, LIMIT, STUDENT, TAKES, copied, labels, release, requirements, schema, students, surrogate,
};
use super::*;
use crate::Counted;

fn verify(release: Release, requirements: &[Vec<Requirement>]) -> Result<Verified<Release>, Vec<Violation>> {
    verify_tables(release, &students(), &schema(), requirements, LIMIT).map_err(|violations| violations.0)
}

/// The violations after a change to the release.
fn spoiled(spoil: impl FnOnce(&mut [ReleasedTable])) -> Vec<Violation> {
    let mut release = release();
    spoil(&mut release.tables);
    verify(release, &requirements()).unwrap_err()
}

fn asked(table: usize, requirement: Requirement) -> Vec<Vec<Requirement>> {
    let mut asked = vec![vec![Requirement::K(2)], Vec::new(), Vec::new()];
    asked[table].push(requirement);
    asked
}

fn name(text: &str) -> String {
    text.to_owned()
}

/// Leaves one released row out.
fn leave_out(table: &mut ReleasedTable, row: usize) {
    table.rows.remove(row);
    for column in &mut table.columns {
        match &mut column.cells {
            Cells::Recoded { ids, .. } | Cells::Surrogate { ids } => drop(ids.remove(row)),
            Cells::Copied => {}
        }
    }
}

/// Changes a label.
fn relabel(table: &mut ReleasedTable, column: usize, row: usize, label: &str) {
    let Cells::Recoded { labels, ids } = &mut table.columns[column].cells else { panic!("not a quasi column") };
    ids[row] = labels.push(label);
}

fn k_unmet(reached: f64, n_classes: u64, first_row: u64) -> Violation {
    Violation::Unmet { requirement: Requirement::K(2), n_classes, reached, first_row, class_size: reached as u64 }
        .in_table("student")
}

#[test]
fn the_paper_s_release_is_verified() {
    let verified = verify(release(), &requirements()).unwrap();
    let findings = verified.findings();
    assert_eq!((findings.rows, findings.persons, findings.classes, findings.k), (22, 4, 2, 2));
    assert_eq!(findings.counted, Counted::Persons);
    assert_eq!(findings.class_sizes, [(2, 2)]);
    assert_eq!((findings.highest_risk, findings.average_risk), (0.5, 0.5));
    assert_eq!(findings.suppressed, Some(Suppressed { rows: 4, persons: 0 }));
    let found: Vec<_> = findings.tables.iter().map(|table| (table.rows, table.classes, table.k)).collect();
    assert_eq!(found, [(4, 2, Some(2)), (10, 5, None), (8, 4, None)]);
    let left_out: Vec<_> = findings.tables.iter().map(|table| table.suppressed.unwrap().rows).collect();
    assert_eq!(left_out, [0, 1, 3]);
    assert_eq!(findings.tables[BOOKS].sensitive[0].l, 2);
}

#[test]
fn the_private_tables_as_they_are_single_everyone_out() {
    let originals = students();
    let column = |table: usize, column: usize| originals[table].columns[column].name.clone();
    let texts = |table: usize, at: usize| {
        let cells: Vec<&str> =
            (0..originals[table].n_rows).map(|row| originals[table].columns[at].cell(row).unwrap()).collect();
        labels(&column(table, at), at, &cells)
    };
    let whole = |table: usize, columns| ReleasedTable {
        name: originals[table].name.clone(),
        rows: (0..originals[table].n_rows as u32).collect(),
        columns,
    };
    let tables = vec![
        whole(STUDENT, vec![copied("sid", 0), copied("gpa", 1)]),
        whole(TAKES, vec![copied("scid", 0), copied("sid", 1), texts(TAKES, 2), copied("grade", 3)]),
        whole(BOOKS, vec![copied("scid", 0), texts(BOOKS, 1), copied("price", 2)]),
    ];
    let k = |k| vec![vec![Requirement::K(k)], Vec::new(), Vec::new()];
    let verified = verify(Release { tables: tables.clone() }, &k(1)).unwrap();
    assert_eq!((verified.findings().classes, verified.findings().unique_persons), (4, 4));
    assert_eq!(verify(Release { tables }, &k(2)).unwrap_err(), [k_unmet(1.0, 4, 1)]);
}

#[test]
fn the_order_of_children_does_not_tell_persons_apart() {
    let mut shuffled = release();
    let takes = &mut shuffled.tables[TAKES];
    takes.rows.swap(3, 5);
    for column in &mut takes.columns[1..] {
        match &mut column.cells {
            Cells::Recoded { ids, .. } | Cells::Surrogate { ids } => ids.swap(3, 5),
            Cells::Copied => {}
        }
    }
    // Keys are numbered in the released order, and books follow them.
    shuffled.tables[BOOKS].columns[0] = surrogate("scid", 0, vec![1, 2, 3, 6, 5, 4, 7, 9]);
    assert_eq!(verify(shuffled, &requirements()).unwrap().findings().k, 2);
}

#[test]
fn a_changed_cell_tells_its_person_from_the_others() {
    let violations = spoiled(|tables| relabel(&mut tables[TAKES], 2, 0, "Math"));
    assert!(violations.contains(&k_unmet(1.0, 2, 1)), "{violations:?}");
    let violations = spoiled(|tables| relabel(&mut tables[BOOKS], 1, 7, "*"));
    assert!(violations.contains(&k_unmet(1.0, 2, 3)), "{violations:?}");
}

#[test]
fn a_cell_that_does_not_cover_is_found() {
    let violations = spoiled(|tables| relabel(&mut tables[TAKES], 2, 0, "Social"));
    let uncovered = Violation::NotCovered { column: name("course"), n: 1, first_row: 1 }.in_table("takes");
    assert_eq!(violations[0], uncovered);
    let violations = spoiled(|tables| {
        let Cells::Recoded { ids, .. } = &mut tables[BOOKS].columns[1].cells else { unreachable!() };
        ids[2] = NULL;
    });
    let uncovered = Violation::NotCovered { column: name("book"), n: 1, first_row: 3 }.in_table("books");
    assert_eq!(violations[0], uncovered);
}

#[test]
fn a_row_that_only_one_member_shows_tells_it_from_the_others() {
    let violations = spoiled(|tables| leave_out(&mut tables[BOOKS], 0));
    assert!(violations.contains(&k_unmet(1.0, 2, 1)), "{violations:?}");
    assert!(violations.iter().all(|violation| matches!(violation, Violation::InTable { violation, .. }
        if matches!(**violation, Violation::Unmet { .. }))));
    // The book of SC8 is true, but SC11, which must look the same, has none.
    let violations = spoiled(|tables| {
        let books = &mut tables[BOOKS];
        books.rows.push(8);
        *books = ReleasedTable {
            columns: vec![
                surrogate("scid", 0, vec![1, 2, 3, 4, 5, 6, 7, 9, 8]),
                labels("book", 1, &["*"; 9]),
                copied("price", 2),
            ],
            ..books.clone()
        };
    });
    assert!(violations.contains(&k_unmet(1.0, 2, 3)), "{violations:?}");
}

#[test]
fn a_shrunken_class_is_found() {
    let violations = spoiled(|tables| {
        leave_out(&mut tables[STUDENT], 3);
        leave_out(&mut tables[TAKES], 9);
        leave_out(&mut tables[TAKES], 8);
        leave_out(&mut tables[BOOKS], 7);
    });
    assert!(violations.contains(&k_unmet(1.0, 1, 3)), "{violations:?}");
}

#[test]
fn a_swapped_foreign_key_is_a_false_join() {
    let violations = spoiled(|tables| {
        tables[TAKES].columns[1] = surrogate("sid", 1, vec![1, 1, 2, 2, 2, 1, 3, 3, 4, 4]);
    });
    let (column, parent) = (name("sid"), name("student"));
    assert_eq!(violations, [Violation::FalseParent { column, parent, n: 2, first_row: 3 }.in_table("takes")]);
}

#[test]
fn a_foreign_key_that_nobody_has_joins_with_nothing() {
    let wrong = |n, first_row| {
        let (column, parent) = (name("scid"), name("takes"));
        vec![Violation::WithoutParent { column, parent, n, first_row }.in_table("books")]
    };
    let with_keys = |ids| spoiled(|tables| tables[BOOKS].columns[0] = surrogate("scid", 0, ids));
    assert_eq!(with_keys(vec![1, 2, 3, 4, 5, 6, 7, 11]), wrong(1, 8));
    assert_eq!(with_keys(vec![NULL, 2, 3, 4, 0, 6, 7, 9]), wrong(2, 1));
    // If the key is kept in the child but renumbered in the parent, no row joins.
    assert_eq!(spoiled(|tables| tables[BOOKS].columns[0] = copied("scid", 0)), wrong(8, 1));
}

#[test]
fn kept_keys_join_as_renumbered_ones_do() {
    let mut kept = release();
    kept.tables[STUDENT].columns[0] = copied("sid", 0);
    kept.tables[TAKES].columns[0] = copied("scid", 0);
    kept.tables[TAKES].columns[1] = copied("sid", 1);
    kept.tables[BOOKS].columns[0] = copied("scid", 0);
    assert_eq!(
        verify(kept, &requirements()).unwrap().findings(),
        verify(release(), &requirements()).unwrap().findings()
    );
}

#[test]
fn keys_are_numbered_in_the_released_order_and_tell_rows_apart() {
    let violations = spoiled(|tables| tables[STUDENT].columns[0] = surrogate("sid", 0, vec![1, 3, 2, 4]));
    let renumbered = Violation::KeyRenumbering { column: name("sid"), n: 2, first_row: 2 }.in_table("student");
    assert_eq!(violations[0], renumbered);
    let violations =
        spoiled(|tables| tables[TAKES].columns[0] = surrogate("scid", 0, vec![1, 2, 3, 4, 5, 6, 7, 8, 9, 9]));
    let repeated = Violation::ReleasedKeys { column: name("scid"), n: 1, first_row: 10 }.in_table("takes");
    assert!(violations.contains(&repeated), "{violations:?}");
}

#[test]
fn nothing_hangs_off_what_is_left_out() {
    let violations = spoiled(|tables| {
        leave_out(&mut tables[TAKES], 8);
        tables[TAKES].columns[0] = surrogate("scid", 0, (1..=9).collect());
    });
    let suppressed = Violation::ParentSuppressed { parent: name("takes"), n: 1, first_row: 8 }.in_table("books");
    assert_eq!(violations, [suppressed]);
}

#[test]
fn an_orphan_of_the_original_is_not_released() {
    let mut originals = students();
    originals[BOOKS].columns[0].ids[10] = originals[BOOKS].columns[0].texts.push("SC99");
    let violations = verify_tables(release(), &originals, &schema(), &requirements(), LIMIT).unwrap_err().0;
    let orphan = Violation::OrphanReleased { parent: name("takes"), n: 1, first_row: 8 }.in_table("books");
    assert_eq!(violations, [orphan]);
    // If its counterpart is left out, too, the release is true.
    let mut release = release();
    leave_out(&mut release.tables[BOOKS], 7);
    leave_out(&mut release.tables[BOOKS], 6);
    let verified = verify_tables(release, &originals, &schema(), &requirements(), LIMIT).unwrap();
    assert_eq!(verified.findings().tables[BOOKS].suppressed, Some(Suppressed { rows: 5, persons: 0 }));
}

#[test]
fn a_row_is_released_once_and_exists() {
    let violations = spoiled(|tables| tables[BOOKS].rows[1] = 0);
    assert_eq!(violations, [Violation::SourceRowTwice { n: 1, first_row: 2 }.in_table("books")]);
    let violations = spoiled(|tables| tables[TAKES].rows[1] = 11);
    assert_eq!(violations, [Violation::SourceRowOutOfRange { n: 1, first_row: 2 }.in_table("takes")]);
}

#[test]
fn a_child_table_may_be_left_out_row_by_row_but_persons_may_not() {
    let mut without_books = release();
    (0..8).rev().for_each(|row| leave_out(&mut without_books.tables[BOOKS], row));
    let findings = verify(without_books, &requirements()).unwrap().findings().clone();
    assert_eq!((findings.k, findings.tables[BOOKS].rows, findings.tables[BOOKS].classes), (2, 0, 0));
    let violations = spoiled(|tables| (0..4).rev().for_each(|row| leave_out(&mut tables[STUDENT], row)));
    assert_eq!(violations, [Violation::NoRows { table: name("student") }]);
}

#[test]
fn a_release_that_leaves_out_more_persons_of_a_table_than_asked_is_never_verified() {
    let mut release = release();
    // Two of four students go, with all rows below them.
    let gone = [2, 3];
    let of_gone = |table: &Table, column: usize, keys: &[&str]| -> Vec<u32> {
        (0..table.n_rows as u32)
            .filter(|&row| keys.contains(&table.columns[column].cell(row as usize).unwrap()))
            .collect()
    };
    let originals = students();
    let takes = of_gone(&originals[TAKES], 1, &["S3", "S4"]);
    let courses: Vec<&str> = takes.iter().map(|&row| originals[TAKES].columns[0].cell(row as usize).unwrap()).collect();
    let books = of_gone(&originals[BOOKS], 0, &courses);
    for (table, rows) in [(STUDENT, gone.to_vec()), (TAKES, takes), (BOOKS, books)] {
        for place in (0..release.tables[table].rows.len()).rev() {
            if rows.contains(&release.tables[table].rows[place]) {
                leave_out(&mut release.tables[table], place);
            }
        }
    }
    let verify = |limit| verify_tables(release.clone(), &students(), &schema(), &requirements(), limit);
    let verified = verify(SuppressionLimit::share(0.5)).unwrap();
    assert_eq!(verified.findings().tables[STUDENT].suppressed, Some(Suppressed { rows: 2, persons: 2 }));
    let exceeded = Violation::TooManySuppressed { n: 2, n_persons: 4, limit: 0.49 };
    assert_eq!(verify(SuppressionLimit::share(0.49)).unwrap_err().0, [exceeded.in_table("student")]);
}

#[test]
fn no_more_rows_of_a_child_table_are_left_out_than_its_limit_allows() {
    // The release lacks 1 of 11 courses and 3 of 11 books.
    let verify = |takes: Option<f64>, books: Option<f64>| {
        let mut schema = schema();
        (schema.tables[TAKES].max_rows_left_out, schema.tables[BOOKS].max_rows_left_out) = (takes, books);
        verify_tables(release(), &students(), &schema, &requirements(), LIMIT).map_err(|violations| violations.0)
    };
    assert!(verify(Some(0.091), Some(0.273)).is_ok());
    let exceeded = |n, limit| Violation::TooManyRowsLeftOut { n, n_rows: 11, limit };
    assert_eq!(verify(Some(0.0909), None).unwrap_err(), [exceeded(1, 0.0909).in_table("takes")]);
    assert_eq!(verify(Some(0.2), Some(0.272)).unwrap_err(), [exceeded(3, 0.272).in_table("books")]);
}

#[test]
fn sensitive_cells_are_unchanged_and_roles_respected() {
    let violations = spoiled(|tables| tables[TAKES].columns[3] = labels("grade", 3, &["90"; 10]));
    let (column, expected) = (name("grade"), "unchanged");
    assert_eq!(violations, [Violation::WrongCells { column, role: Role::Sensitive, expected }.in_table("takes")]);
    let violations = spoiled(|tables| tables[STUDENT].columns.push(copied("wish", 2)));
    let forbidden = Violation::ColumnForbidden { column: name("wish"), role: Role::PersonK };
    assert_eq!(violations, [forbidden.in_table("student")]);
    for (table, of_table) in [(STUDENT, "student"), (TAKES, "takes"), (BOOKS, "books")] {
        let violations = spoiled(|tables| drop(tables[table].columns.remove(0)));
        let column = if table == STUDENT { name("sid") } else { name("scid") };
        let missing = Violation::ColumnMissing { column, role: Role::Key };
        assert_eq!(violations, [missing.in_table(of_table)], "keys that join are released");
    }
}

#[test]
fn the_person_s_key_is_released_only_where_a_table_points_to_it() {
    let originals = &students()[..1];
    let schema = Schema { tables: vec![schema().tables.remove(0)] };
    let alone = |columns| {
        let table = ReleasedTable { name: name("student"), rows: vec![0, 1, 2, 3], columns };
        verify_tables(Release { tables: vec![table] }, originals, &schema, &[vec![Requirement::K(4)]], LIMIT)
    };
    assert_eq!(alone(vec![copied("gpa", 1)]).unwrap().findings().k, 4);
    let violations = alone(vec![surrogate("sid", 0, vec![1, 2, 3, 4]), copied("gpa", 1)]).unwrap_err().0;
    assert_eq!(violations, [Violation::PersonReleased { column: name("sid") }.in_table("student")]);
}

#[test]
fn each_member_s_own_k_counts_wherever_it_stands() {
    let mut originals = students();
    originals[STUDENT].columns[2].ids[3] = originals[STUDENT].columns[2].texts.push("3");
    let violations = verify_tables(release(), &originals, &schema(), &requirements(), LIMIT).unwrap_err().0;
    let own_k = |column: &str, first_row| {
        let requirement = Requirement::PersonK { column: name(column) };
        Violation::Unmet { requirement, n_classes: 1, reached: 2.0, first_row, class_size: 2 }.in_table("student")
    };
    assert_eq!(violations, [own_k("wish", 3)]);
    // A person's own k may also be in a row of a child table that is left out.
    let mut originals = students();
    originals[BOOKS].columns[2].role = Role::PersonK;
    let release = || {
        let mut release = release();
        release.tables[BOOKS].columns.pop();
        release
    };
    let asks = asked(BOOKS, Requirement::PersonK { column: name("price") });
    let violations = verify_tables(release(), &originals, &schema(), &asks, LIMIT).unwrap_err().0;
    let both = Violation::Unmet {
        requirement: Requirement::PersonK { column: name("books.price") },
        n_classes: 2,
        reached: 2.0,
        first_row: 1,
        class_size: 2,
    };
    assert_eq!(violations, [both.in_table("student")]);
    for id in 0..originals[BOOKS].columns[2].texts.len() {
        originals[BOOKS].columns[2].ids[id] = 0;
    }
    originals[BOOKS].columns[2].texts = ["2"].into_iter().collect();
    assert!(verify_tables(release(), &originals, &schema(), &asks, LIMIT).is_ok());
}

#[test]
fn values_are_counted_among_rows_that_look_the_same() {
    let mut originals = students();
    let l = asked(TAKES, Requirement::DistinctL { column: name("grade"), l: 2 });
    // Both members of the first class have the same grade in the course of science.
    originals[TAKES].columns[3].ids[3] = originals[TAKES].columns[3].ids[0];
    let violations = verify_tables(release(), &originals, &schema(), &l, LIMIT).unwrap_err().0;
    let requirement = Requirement::DistinctL { column: name("grade"), l: 2 };
    let unmet = Violation::Unmet { requirement, n_classes: 1, reached: 1.0, first_row: 1, class_size: 2 };
    assert_eq!(violations, [unmet.in_table("takes")]);
}

/// Two persons, each with the given values in two rows that look the same.
fn two_persons(values: [[&str; 2]; 2]) -> (Vec<Table>, Schema, Release) {
    let cells = values.concat();
    let person = kohort_model::Column::from_cells("id", Role::Key, [Some("a"), Some("b")]);
    let of = kohort_model::Column::from_cells("of", Role::Key, [Some("a"), Some("a"), Some("b"), Some("b")]);
    let value = kohort_model::Column::from_cells("value", Role::Sensitive, cells.into_iter().map(Some));
    let originals = vec![
        Table { name: name("person"), columns: vec![person], n_rows: 2, person: Some(0) },
        Table { name: name("row"), columns: vec![of, value], n_rows: 4, person: None },
    ];
    let hangs = SchemaParent { table: 0, foreign_key: 0 };
    let schema = Schema {
        tables: vec![
            kohort_model::SchemaTable {
                name: name("person"),
                key: Some(0),
                parent: None,
                references: Vec::new(),
                max_rows_left_out: None,
            },
            kohort_model::SchemaTable {
                name: name("row"),
                key: None,
                parent: Some(hangs),
                references: Vec::new(),
                max_rows_left_out: None,
            },
        ],
    };
    let person =
        ReleasedTable { name: name("person"), rows: vec![0, 1], columns: vec![surrogate("id", 0, vec![1, 2])] };
    let columns = vec![surrogate("of", 0, vec![1, 1, 2, 2]), copied("value", 1)];
    let row = ReleasedTable { name: name("row"), rows: vec![0, 1, 2, 3], columns };
    (originals, schema, Release { tables: vec![person, row] })
}

#[test]
fn a_value_that_every_person_holds_somewhere_among_look_alike_rows_is_given_away() {
    let holds = |values, requirement: Requirement| {
        let (originals, schema, release) = two_persons(values);
        verify_tables(release, &originals, &schema, &[vec![Requirement::K(2)], vec![requirement]], LIMIT).is_ok()
    };
    let l = || Requirement::DistinctL { column: name("value"), l: 2 };
    let alpha = || Requirement::Alpha { column: name("value"), alpha: 0.5 };
    let entropy = || Requirement::EntropyL { column: name("value"), l: 2.0 };
    let t = || Requirement::TCloseness { column: name("value"), t: 0.0, distance: Distance::Equal };
    let everyone_holds_both = [["x", "y"], ["y", "x"]];
    assert!(!holds(everyone_holds_both, l()) && !holds(everyone_holds_both, alpha()));
    assert!(holds(everyone_holds_both, entropy()), "over rows both values have half of the shares");
    let one_each = [["x", "x"], ["y", "y"]];
    assert!(holds(one_each, l()) && holds(one_each, alpha()) && holds(one_each, t()));
    let one_shared = [["x", "y"], ["x", "z"]];
    assert!(!holds(one_shared, l()), "three values, but both persons hold the first");
}

#[test]
fn shares_are_measured_against_all_released_rows_of_the_table() {
    let t = |t| asked(TAKES, Requirement::TCloseness { column: name("grade"), t, distance: Distance::Equal });
    // Nine grades in ten rows, 85 twice; of an orbit's two grades at most one is 85.
    assert!(verify(release(), &t(0.8)).is_ok());
    assert!(verify(release(), &t(0.79)).is_err());
    let gpa = Requirement::TCloseness { column: name("gpa"), t: 0.5, distance: Distance::Equal };
    assert!(verify(release(), &asked(STUDENT, gpa)).is_ok());
}

#[test]
fn lists_that_do_not_belong_together_are_refused() {
    let mut short = release();
    short.tables.pop();
    let count = |what, n| vec![Violation::TableCount { what, n, expected: 3 }];
    assert_eq!(verify(short, &requirements()).unwrap_err(), count("the release", 2));
    assert_eq!(verify(release(), &[]).unwrap_err(), count("the requirements", 0));
    let violations = spoiled(|tables| tables[0].name = name("pupil"));
    assert_eq!(violations, [Violation::TableName { table: name("student"), released: name("pupil") }]);
}

#[test]
fn a_schema_that_makes_no_trees_is_refused() {
    let broken = |spoil: &dyn Fn(&mut Schema)| {
        let mut schema = schema();
        spoil(&mut schema);
        verify_tables(release(), &students(), &schema, &requirements(), LIMIT).unwrap_err().0
    };
    let link = |table: &str| Violation::BrokenLink.in_table(table);
    let circle =
        |schema: &mut Schema| schema.tables[TAKES].parent = Some(SchemaParent { table: TAKES, foreign_key: 1 });
    assert_eq!(broken(&circle), [link("takes"), link("books")]);
    let nowhere = |schema: &mut Schema| schema.tables[BOOKS].parent = Some(SchemaParent { table: 9, foreign_key: 0 });
    assert_eq!(broken(&nowhere), [link("books")]);
    assert_eq!(broken(&|schema: &mut Schema| schema.tables[TAKES].key = None), [link("books")]);
    let no_such_column = |schema: &mut Schema| schema.tables[STUDENT].key = Some(7);
    assert_eq!(broken(&no_such_column), [link("takes"), link("books")]);
}

#[test]
fn private_keys_tell_rows_apart() {
    let mut originals = students();
    originals[TAKES].columns[0].ids[1] = 0;
    originals[STUDENT].columns[0].ids[3] = NULL;
    let violations = verify_tables(release(), &originals, &schema(), &requirements(), LIMIT).unwrap_err().0;
    let wrong = |table: &str, column: &str, first_row| {
        Violation::OriginalKeys { column: name(column), n: 1, first_row }.in_table(table)
    };
    let expected = [wrong("student", "sid", 4), wrong("takes", "scid", 2)];
    assert!(violations.ends_with(&expected), "{violations:?}");
}

#[test]
fn requirements_speak_of_columns_of_their_own_table() {
    let l = Requirement::DistinctL { column: name("gpa"), l: 1 };
    let unknown = Violation::UnknownColumn { column: name("gpa") };
    assert_eq!(verify(release(), &asked(BOOKS, l)).unwrap_err(), [unknown.in_table("books")]);
}

#[test]
fn no_violation_shows_a_cell() {
    let violations = spoiled(|tables| {
        relabel(&mut tables[TAKES], 2, 0, "Social");
        tables[BOOKS].columns[0] = surrogate("scid", 0, vec![1, 1, 3, 4, 5, 6, 7, 9]);
    });
    let message = Violations(violations).to_string();
    assert!(message.lines().all(|line| line.starts_with("table '")), "{message}");
    for cell in ["SC1", "Math", "Social", "Discrete", "93", "63"] {
        assert!(!message.contains(cell), "{message}");
    }
}

proptest! {
    #[test]
    fn two_persons_share_a_class_exactly_where_their_trees_can_be_laid_on_each_other(
        persons in prop::collection::vec(prop::collection::vec((0u8..2, prop::collection::vec(0u8..2, 0..3)), 0..3), 1..6),
    ) {
        let shape = Shape::of_schema(&schema(), &students()).unwrap();
        let (mut middle, mut leaves) = (Vec::new(), Vec::new());
        let (mut of_middle, mut of_leaves) = (Vec::new(), Vec::new());
        for (person, children) in (0..).zip(&persons) {
            for (own, below) in children {
                for leaf in below {
                    leaves.push(u32::from(*leaf));
                    of_leaves.push(middle.len() as u32);
                }
                middle.push(u32::from(*own));
                of_middle.push(person);
            }
        }
        let forest = Forest {
            n_rows: vec![persons.len(), middle.len(), leaves.len()],
            parents: vec![Vec::new(), of_middle, of_leaves],
            targets: vec![Vec::new(); 3],
        };
        let (middle, leaves) = (CellIds::by_id(middle, 2), CellIds::by_id(leaves, 2));
        let looks = forest.looks(&shape, &[vec![], vec![&middle], vec![&leaves]]);
        let classes = forest.orbits(&shape, looks)[0].class_of_rows();
        for (a, first) in persons.iter().enumerate() {
            for (b, second) in persons.iter().enumerate() {
                prop_assert_eq!(classes[a] == classes[b], same_trees(first, second));
            }
        }
    }
}

type Node = (u8, Vec<u8>);

/// Whether some order of one person's rows makes it look like the other, by trying all.
fn same_trees(a: &[Node], b: &[Node]) -> bool {
    let Some((first, rest)) = a.split_first() else { return b.is_empty() };
    (0..b.len()).any(|at| {
        let mut others = b.to_vec();
        let other = others.remove(at);
        first.0 == other.0 && same_leaves(&first.1, &other.1) && same_trees(rest, &others)
    })
}

fn same_leaves(a: &[u8], b: &[u8]) -> bool {
    let Some((first, rest)) = a.split_first() else { return b.is_empty() };
    (0..b.len()).any(|at| {
        let mut others = b.to_vec();
        others.remove(at) == *first && same_leaves(rest, &others)
    })
}
