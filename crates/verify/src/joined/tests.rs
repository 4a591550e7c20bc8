//! Tests with the register of the paper: releases that are spoiled in every way, and an attacker who looks everybody
//! up.

use kohort_model::register::{SENSITIVE_GROUP, SENSITIVE_TABLE};
use kohort_model::{Column, NULL, Notation, ReleasedColumn, ReleasedTable, Respelled, Role, ValueType};

use super::*;
use crate::{Findings, Skipped, Violation};

/// The share of private persons who may be left out.
const LIMIT: SuppressionLimit = SuppressionLimit::share(0.5);

/// The private rows A to G, then the register rows G1, G2, U, V, X, Y.
const PLACES: [(i32, i32); 13] =
    [(1, 1), (2, 2), (1, 3), (2, 4), (3, 2), (5, 2), (6, 4), (6, 4), (6, 4), (1, 2), (2, 3), (9, 9), (4, 2)];
const VALUES: [&str; 7] = ["v1", "v2", "v1", "v2", "v1", "v2", "v3"];
/// The rows of the join, the cells and the group of each class.
const CLASSES: [([u32; 3], [&str; 2], u32); 4] = [
    ([0, 1, 9], ["[1,2]", "[1,2]"], 1),
    ([2, 3, 10], ["[1,2]", "[3,4]"], 1),
    ([4, 5, 12], ["[3,5]", "2"], 2),
    ([6, 7, 8], ["6", "4"], 2),
];

fn quasi(places: &[(i32, i32)]) -> Vec<Column> {
    let column = |name: &str, texts: Vec<String>| {
        Column::from_cells(name, Role::Quasi, texts.iter().map(|text| Some(text.as_str()))).typed(ValueType::Integer)
    };
    vec![
        column("qi1", places.iter().map(|place| place.0.to_string()).collect()),
        column("qi2", places.iter().map(|place| place.1.to_string()).collect()),
    ]
}

fn original() -> Table {
    let mut columns = vec![Column::from_cells("id", Role::Key, ["A", "B", "C", "D", "E", "F", "G"].map(Some))];
    columns.extend(quasi(&PLACES[..7]));
    columns.push(Column::from_cells("sa", Role::Sensitive, VALUES.map(Some)));
    Table { name: "t".to_owned(), columns, n_rows: 7, person: Some(0) }
}

/// The join. `said` are the values that the register gives to E, if they differ.
fn join(said: Option<(i32, i32)>) -> JoinedRegister {
    // The values that the register gives to A to G come after the register persons.
    let mut places = [&PLACES[..], &PLACES[..7]].concat();
    let mut persons: Vec<InRegister> = (13..20).map(InRegister::Same).collect();
    persons[3] = InRegister::Absent;
    if let Some(place) = said {
        places[17] = place;
        persons[4] = InRegister::Differs(17);
    }
    let names = ["G1", "G2", "U", "V", "X", "Y", "A", "B", "C", "D", "E", "F", "G"];
    let rows = Table { name: "t".to_owned(), columns: quasi(&places), n_rows: places.len(), person: None };
    let key_prints = names.into_iter().map(crate::key_print).collect();
    JoinedRegister { rows, n_microdata: 7, n_register: 6, persons, key_prints, respelled: Vec::new() }
}

fn recoded(name: &str, source: usize, cells: &[&str]) -> ReleasedColumn {
    let column = Column::from_cells(name, Role::Quasi, cells.iter().map(|&cell| Some(cell)));
    ReleasedColumn { name: name.to_owned(), source, cells: Cells::Recoded { labels: column.texts, ids: column.ids } }
}

fn numbers(source: usize, ids: Vec<u32>) -> ReleasedColumn {
    ReleasedColumn { name: SENSITIVE_GROUP.to_owned(), source, cells: Cells::Surrogate { ids } }
}

fn release() -> Release {
    let rows: Vec<u32> = CLASSES.iter().flat_map(|(rows, ..)| *rows).collect();
    let cells = |column: usize| CLASSES.iter().flat_map(|(_, cells, _)| [cells[column]; 3]).collect::<Vec<_>>();
    let groups = CLASSES.iter().flat_map(|&(_, _, group)| [group; 3]).collect();
    let columns = vec![recoded("qi1", 0, &cells(0)), recoded("qi2", 1, &cells(1)), numbers(2, groups)];
    let values = ReleasedColumn { name: "sa".to_owned(), source: 3, cells: Cells::Copied };
    let sensitive = ReleasedTable {
        name: SENSITIVE_TABLE.to_owned(),
        rows: vec![0, 2, 1, 3, 4, 5, 6],
        columns: vec![numbers(4, vec![1, 1, 1, 1, 2, 2, 2]), values],
    };
    Release { tables: vec![ReleasedTable { name: "t".to_owned(), rows, columns }, sensitive] }
}

const K: [Requirement; 1] = [Requirement::K(3)];

fn asked(requirements: &[Requirement]) -> AskedOfJoin<'_> {
    AskedOfJoin {
        requirements,
        delta_presence: None,
        rows: RegisterRows::All,
        told_apart: ToldApart::ByKey,
        previous: &[],
        limit: LIMIT,
    }
}

fn spoiled(spoil: impl FnOnce(&mut Release)) -> Vec<Violation> {
    let mut release = release();
    spoil(&mut release);
    verify_joined(release, &original(), &join(None), asked(&K)).unwrap_err().0
}

/// The release as files.
fn written(release: &Release) -> Vec<Table> {
    let original = original();
    let table = |table: &ReleasedTable| {
        let column = |column: &ReleasedColumn| {
            let texts: Vec<String> = (0..table.rows.len())
                .map(|row| match &column.cells {
                    Cells::Recoded { labels, ids } => labels.get(ids[row]).to_owned(),
                    Cells::Surrogate { ids } => ids[row].to_string(),
                    Cells::Copied => original.columns[column.source].cell(table.rows[row] as usize).unwrap().to_owned(),
                })
                .collect();
            let role = match &column.cells {
                Cells::Recoded { .. } => Role::Quasi,
                Cells::Surrogate { .. } => Role::Key,
                Cells::Copied => Role::Sensitive,
            };
            Column::from_cells(&column.name, role, texts.iter().map(|text| Some(text.as_str())))
        };
        let columns = table.columns.iter().map(column).collect();
        Table { name: table.name.clone(), columns, n_rows: table.rows.len(), person: None }
    };
    release.tables.iter().map(table).collect()
}

fn set(table: &mut Table, column: usize, row: usize, text: &str) {
    let column = &mut table.columns[column];
    let known = column.texts.iter().position(|known| known == text);
    column.ids[row] = known.map_or_else(|| column.texts.push(text), |id| id as u32);
}

const NOBODY: Suppressed = Suppressed { rows: 0, persons: 0 };

#[test]
fn a_release_that_leaves_out_more_private_persons_than_asked_is_never_verified() {
    let mut release = release();
    // Removes the last class, with G of the private table and two persons of the register.
    for (table, n) in [(0, 9), (1, 6)] {
        release.tables[table].rows.truncate(n);
        for column in &mut release.tables[table].columns {
            match &mut column.cells {
                Cells::Recoded { ids, .. } | Cells::Surrogate { ids } => ids.truncate(n),
                Cells::Copied => {}
            }
        }
    }
    let requirements = [Requirement::K(2)];
    let verify = |limit| {
        let asked = AskedOfJoin { limit, ..asked(&requirements) };
        verify_joined(release.clone(), &original(), &join(None), asked)
    };
    let verified = verify(SuppressionLimit::share(0.15)).unwrap();
    assert_eq!(verified.findings().suppressed, Some(Suppressed { rows: 1, persons: 1 }));
    let exceeded = Violation::TooManySuppressed { n: 1, n_persons: 7, limit: 0.14 };
    assert_eq!(verify(SuppressionLimit::share(0.14)).unwrap_err().0, std::slice::from_ref(&exceeded));
    let asked = AskedOfJoin { limit: SuppressionLimit::share(0.14), ..asked(&requirements) };
    let admitted = Suppressed { rows: 1, persons: 1 };
    let against = verify_joined_against(&written(&release), &original(), &join(None), asked, admitted);
    assert_eq!(against.unwrap_err().0, [exceeded]);
}

#[test]
fn the_release_of_the_paper_is_verified_in_memory_and_as_files() {
    let l = [Requirement::K(3), Requirement::DistinctL { column: "sa".to_owned(), l: 2 }];
    let verified = verify_joined(release(), &original(), &join(None), asked(&l)).unwrap();
    let check = |found: &Findings| {
        assert_eq!((found.k, found.classes, found.persons, found.rows), (3, 4, 7, 12));
        let joined = found.joined.as_ref().unwrap();
        assert_eq!((joined.groups, joined.group_k), (2, Some(3)));
        assert_eq!(found.sensitive[0].l, 2);
    };
    check(verified.findings());
    let presence = verified.findings().joined.as_ref().unwrap().presence.unwrap();
    // To a reader, all of a class of 3 may be private, because its group of 4 has only one other class.
    assert_eq!((presence.highest, presence.certain), (1.0, 0));
    let files = written(&release());
    check(&verify_joined_written(&files, &verified, &original(), &join(None), asked(&l)).unwrap());
    let alone = verify_joined_alone(&files, asked(&l)).unwrap();
    check(&alone);
    assert_eq!(alone.skipped, [Skipped::Presence]);
    check(&verify_joined_against(&files, &original(), &join(None), asked(&l), NOBODY).unwrap());
}

#[test]
fn every_register_person_an_attacker_looks_up_has_k_candidates() {
    let files = written(&release());
    let holds = |cell: &str, value: i32| match cell.strip_prefix('[').and_then(|cell| cell.strip_suffix(']')) {
        Some(range) => {
            let (low, high) = range.split_once(',').unwrap();
            (low.parse().unwrap()..=high.parse().unwrap()).contains(&value)
        }
        None => cell.parse::<i32>().unwrap() == value,
    };
    for (person, (qi1, qi2)) in PLACES.into_iter().enumerate() {
        let candidates = (0..files[0].n_rows)
            .filter(|&row| {
                holds(files[0].columns[0].cell(row).unwrap(), qi1) && holds(files[0].columns[1].cell(row).unwrap(), qi2)
            })
            .count();
        assert!(candidates >= 3 || (person == 11 && candidates == 0), "person {person}: {candidates}");
    }
}

#[test]
fn a_person_the_register_describes_otherwise_counts_only_where_the_cells_hold_both() {
    let verify = |said| verify_joined(release(), &original(), &join(Some(said)), asked(&K));
    assert!(verify((4, 2)).is_ok());
    let violations = verify((7, 2)).unwrap_err().0;
    assert!(matches!(violations[..], [Violation::Unmet { n_classes: 1, class_size: 2, first_row: 7, .. }]));
    let against = verify_joined_against(&written(&release()), &original(), &join(Some((7, 2))), asked(&K), NOBODY);
    assert!(matches!(against.unwrap_err().0[..], [Violation::Unmet { n_classes: 1, .. }]));
}

#[test]
fn joined_rows_are_used_once_and_none_is_made_up() {
    assert!(matches!(spoiled(|release| release.tables[0].rows[11] = 7)[..], [Violation::SourceRowTwice { .. }]));
    let out = spoiled(|release| release.tables[0].rows[11] = 13);
    assert!(matches!(out[0], Violation::SourceRowOutOfRange { n: 1, first_row: 12 }), "{out:?}");
    let away = spoiled(|release| release.tables[0].rows[11] = 11);
    assert!(matches!(away[..], [Violation::NotCovered { .. }, Violation::NotCovered { .. }]), "{away:?}");
}

#[test]
fn a_class_needs_somebody_of_the_private_table_and_k_of_everybody() {
    let violations = spoiled(|release| {
        let table = &mut release.tables[0];
        table.rows.truncate(11);
        table.columns.iter_mut().for_each(|column| match &mut column.cells {
            Cells::Recoded { ids, .. } | Cells::Surrogate { ids } => ids.truncate(11),
            Cells::Copied => {}
        });
    });
    assert!(matches!(violations[..], [Violation::Unmet { n_classes: 1, class_size: 2, .. }]), "{violations:?}");
    let without = spoiled(|release| {
        release.tables[0].rows[9] = 11;
        release.tables[0].columns[0] = recoded("qi1", 0, &["*"; 12]);
        release.tables[0].columns[1] = recoded(
            "qi2",
            1,
            &["[1,2]", "[1,2]", "[1,2]", "[3,4]", "[3,4]", "[3,4]", "2", "2", "2", "[4,9]", "[4,9]", "[4,9]"],
        );
    });
    assert!(without.contains(&Violation::ClassWithoutPrivate { n: 1, first_row: 10 }), "{without:?}");
    assert!(without.contains(&Violation::ValuesMiscounted { persons: 6, rows: 7 }), "{without:?}");
}

#[test]
fn the_sensitive_table_fits_the_groups_and_tells_nothing_by_its_order() {
    let moved = spoiled(|release| release.tables[1].columns[0] = numbers(4, vec![1, 1, 1, 2, 2, 2, 2]));
    assert!(moved.contains(&Violation::OtherGroup { n: 1, first_row: 4 }), "{moved:?}");
    let order = spoiled(|release| release.tables[1].rows.swap(0, 2));
    assert_eq!(order, [Violation::SensitiveOrder { first_row: 2 }]);
    let unnumbered = spoiled(|release| {
        release.tables[0].columns[2] = numbers(2, [[3; 6], [5; 6]].concat());
        release.tables[1].columns[0] = numbers(4, vec![3, 3, 3, 3, 5, 5, 5]);
    });
    assert_eq!(unnumbered, [Violation::GroupNumber { first_row: 1 }]);
    let missing = spoiled(|release| drop(release.tables.pop()));
    assert_eq!(missing, [Violation::TableCount { what: "the release", n: 1, expected: 2 }]);
    let identified = spoiled(|release| release.tables[1].columns[1].source = 0);
    assert_eq!(identified, [Violation::ColumnOrder { column: "sensitive".to_owned() }]);
}

#[test]
fn requirements_hold_in_every_sensitive_group() {
    let l = [Requirement::K(3), Requirement::DistinctL { column: "sa".to_owned(), l: 3 }];
    let violations = verify_joined(release(), &original(), &join(None), asked(&l)).unwrap_err().0;
    assert!(matches!(&violations[..], [Violation::InTable { table, .. }] if table == "sensitive"), "{violations:?}");
    assert!(verify_joined_alone(&written(&release()), asked(&l)).is_err());
}

#[test]
fn presence_is_bounded_where_that_is_asked() {
    let presence = |bounds| {
        let asked = AskedOfJoin { delta_presence: Some(bounds), ..asked(&K) };
        verify_joined(release(), &original(), &join(None), asked).map(drop).map_err(|violations| violations.0)
    };
    assert_eq!(presence((0.0, 0.7)), Ok(()));
    assert!(matches!(presence((0.0, 0.5)).unwrap_err()[..], [Violation::Presence { n_classes: 3, absent: 0, .. }]));
    assert!(matches!(presence((0.1, 0.7)).unwrap_err()[..], [Violation::Presence { n_classes: 0, absent: 1, .. }]));
}

#[test]
fn private_rows_alone_hide_among_those_their_cells_hold() {
    let mut release = release();
    let kept: Vec<usize> = (0..12).filter(|&row| release.tables[0].rows[row] < 7).collect();
    let table = &mut release.tables[0];
    table.rows = kept.iter().map(|&row| table.rows[row]).collect();
    for column in &mut table.columns {
        if let Cells::Recoded { ids, .. } | Cells::Surrogate { ids } = &mut column.cells {
            *ids = kept.iter().map(|&row| ids[row]).collect();
        }
    }
    let asked = AskedOfJoin { rows: RegisterRows::Microdata, ..asked(&K) };
    let files = written(&release);
    let verified = verify_joined(release, &original(), &join(None), asked).unwrap();
    assert_eq!((verified.findings().k, verified.findings().rows), (3, 7));
    let alone = verify_joined_alone(&files, asked).unwrap();
    assert_eq!(alone.skipped, [Skipped::Crowd]);
    assert_eq!(verify_joined_against(&files, &original(), &join(None), asked, NOBODY).unwrap().skipped, []);
    let mut fewer = join(None);
    fewer.n_register = 1;
    fewer.rows.n_rows = 15;
    fewer.rows.columns.iter_mut().for_each(|column| drop(column.ids.drain(8..13)));
    fewer.key_prints.drain(1..6);
    for person in &mut fewer.persons {
        *person = person.row().map_or(InRegister::Absent, |row| InRegister::Same(row - 5));
    }
    let against = verify_joined_against(&files, &original(), &fewer, asked, NOBODY).unwrap_err().0;
    assert!(matches!(against[..], [Violation::Unmet { n_classes: 4, .. }]), "{against:?}");
}

#[test]
fn files_that_changed_are_found_against_the_private_table() {
    let against = |spoil: &dyn Fn(&mut Vec<Table>)| {
        let mut files = written(&release());
        spoil(&mut files);
        verify_joined_against(&files, &original(), &join(None), asked(&K), NOBODY).unwrap_err().0
    };
    let narrowed = against(&|files| (0..3).for_each(|row| set(&mut files[0], 0, row, "1")));
    assert!(matches!(narrowed[..], [Violation::Unmet { .. }, ..]), "{narrowed:?}");
    let swapped = against(&|files| {
        set(&mut files[1], 1, 6, "v1");
        set(&mut files[1], 1, 0, "v3");
    });
    assert!(matches!(swapped[..], [Violation::ValuesWithoutOrigin { .. }]), "{swapped:?}");
    let repeated = against(&|files| {
        files[0].n_rows += 1;
        files[0].columns.iter_mut().for_each(|column| column.ids.push(column.ids[11]));
    });
    assert_eq!(repeated, [Violation::WithoutOrigin { n: 1, first_row: 10 }]);
    let renamed = against(&|files| files[1].columns[1].name = "x".to_owned());
    assert!(matches!(renamed[..], [Violation::InTable { .. }]), "{renamed:?}");
    let suppressed = Suppressed { rows: 1, persons: 1 };
    let miscounted = verify_joined_against(&written(&release()), &original(), &join(None), asked(&K), suppressed);
    assert!(matches!(miscounted.unwrap_err().0[..], [Violation::SuppressedMiscounted { admitted: 1, counted: 0, .. }]));
}

#[test]
fn files_alone_must_fit_together() {
    let alone = |spoil: &dyn Fn(&mut Vec<Table>)| {
        let mut files = written(&release());
        spoil(&mut files);
        verify_joined_alone(&files, asked(&K)).unwrap_err().0
    };
    let small = alone(&|files| {
        files[0].n_rows -= 1;
        files[0].columns.iter_mut().for_each(|column| column.ids.truncate(11));
    });
    assert!(matches!(small[..], [Violation::Unmet { n_classes: 1, class_size: 2, .. }]));
    let unknown = alone(&|files| set(&mut files[1], 0, 6, "9"));
    assert!(unknown.contains(&Violation::GroupMismatch { group: 9, classes: 0, rows: 0, values: 1 }), "{unknown:?}");
    let words = alone(&|files| set(&mut files[0], 2, 0, "first"));
    assert_eq!(words, [Violation::GroupsUnreadable { table: "t".to_owned() }]);
}

#[test]
fn a_join_of_another_table_is_refused() {
    let mut other = join(None);
    other.rows.columns[0].ids.swap(0, 4);
    let found = verify_joined(release(), &original(), &other, asked(&K)).unwrap_err().0;
    assert_eq!(found, [Violation::JoinOfAnother]);
    let mut shared = join(Some((4, 2)));
    shared.persons[5] = InRegister::Differs(17);
    assert_eq!(verify_joined(release(), &original(), &shared, asked(&K)).unwrap_err().0, [Violation::JoinOfAnother]);
}

/// The same join by values, without keys. D is in no register.
fn by_values(unmatched: Unmatched) -> (JoinedRegister, ToldApart) {
    let joined = JoinedRegister { key_prints: Vec::new(), ..join(None) };
    (joined, ToldApart::ByValues(unmatched))
}

#[test]
fn persons_who_may_be_the_same_count_once_unless_the_publisher_vouches_for_them() {
    // In the class of C, D and V, D may be V under other values, because no register row matches D.
    let verify = |unmatched| {
        let (joined, told_apart) = by_values(unmatched);
        let asked = AskedOfJoin { told_apart, ..asked(&K) };
        let in_memory = verify_joined(release(), &original(), &joined, asked).map(|found| found.findings().k);
        let files = written(&release());
        let against = verify_joined_against(&files, &original(), &joined, asked, NOBODY).map(|found| found.k);
        [in_memory, against].map(|found| found.map_err(|violations| violations.0))
    };
    for found in verify(Unmatched::Count) {
        assert_eq!(found, Ok(3));
    }
    for found in verify(Unmatched::Doubt) {
        let violations = found.unwrap_err();
        assert!(
            matches!(violations[..], [Violation::Unmet { n_classes: 1, reached: 2.0, first_row: 4, .. }]),
            "{violations:?}"
        );
    }
}

/// A join that compares spellings: a private table of one column, and register rows that all count as other persons.
fn join_of_spellings(private: &[&str], register: &[&str], value_type: ValueType) -> (Table, JoinedRegister) {
    let column =
        |texts: &[&str]| Column::from_cells("x", Role::Quasi, texts.iter().map(|&text| Some(text))).typed(value_type);
    let table = |columns: Vec<Column>, n_rows| Table { name: "t".to_owned(), columns, n_rows, person: None };
    let all = [private, register].concat();
    let rows = table(vec![column(&all)], all.len());
    let persons = vec![InRegister::Absent; private.len()];
    let (n_microdata, n_register) = (private.len(), register.len());
    let joined =
        JoinedRegister { rows, n_microdata, n_register, persons, key_prints: Vec::new(), respelled: Vec::new() };
    (table(vec![column(private)], private.len()), joined)
}

#[test]
fn a_join_of_spellings_is_refused_whatever_their_type() {
    let cases = [
        (ValueType::Decimal, "12.50", "12.5", "12.51"),
        (ValueType::Float, "1e1", "10.0", "10.5"),
        (ValueType::Integer, "7", "7", "8"),
        (ValueType::Timestamp, "2020-01-01T01:00:00+01:00", "2020-01-01 00:00", "2020-01-01 01:00"),
        (ValueType::Boolean, "true", "TRUE", "false"),
        (ValueType::Text, "Jose\u{301}", "Jos\u{e9}", "Jose"),
        (ValueType::Text, "7", "7", "07"),
    ];
    for (value_type, private, same, other) in cases {
        for unmatched in [Unmatched::Count, Unmatched::Doubt] {
            let found = |register: &str| {
                let (original, joined) = join_of_spellings(&["a", private], &["b", register], value_type);
                join::check_join(&original, &joined, ToldApart::ByValues(unmatched))
            };
            assert_eq!(found(same), [Violation::NotMatched { n: 1, first_row: 2 }], "{value_type}");
            assert_eq!(found(other), [], "{value_type}");
        }
    }
}

#[test]
fn a_join_that_counts_a_person_of_one_key_twice_is_refused() {
    let names = |private: [&str; 2], register: [&str; 2]| {
        let (mut original, mut joined) = join_of_spellings(&["1", "2"], &["3", "4"], ValueType::Integer);
        original.columns.push(Column::from_cells("id", Role::Key, private.map(Some)));
        original.person = Some(1);
        joined.key_prints = register.into_iter().map(crate::key_print).collect();
        join::check_join(&original, &joined, ToldApart::ByKey)
    };
    assert_eq!(names(["7", "8"], ["9", "10"]), []);
    assert_eq!(names(["7", "8"], ["7.0", "10"]), [Violation::NotMatched { n: 1, first_row: 1 }]);
    assert_eq!(names(["7", "8"], ["9.0", "9"]), [Violation::RegisterPersonTwice { n: 1 }]);
    assert_eq!(names(["7", "8"], ["07", "007"]), []);
    let twice = Violation::PersonTwice { column: "id".to_owned(), n: 1, first_row: 2 };
    assert_eq!(names(["e\u{301}", "\u{e9}"], ["9", "10"]), [twice]);
}

#[test]
fn the_join_must_hold_what_the_register_says() {
    let by_key = |spoil: &dyn Fn(&mut JoinedRegister)| {
        let mut joined = join(Some((4, 2)));
        spoil(&mut joined);
        join::check_join(&original(), &joined, ToldApart::ByKey)
    };
    assert_eq!(by_key(&|_| ()), []);
    let misread = |row| [Violation::RegisterMisread { n: 1, first_row: row }];
    assert_eq!(by_key(&|joined| joined.persons[4] = InRegister::Same(17)), misread(5));
    assert_eq!(by_key(&|joined| joined.persons[0] = InRegister::Differs(13)), misread(1));
    assert_eq!(by_key(&|joined| joined.key_prints.swap(6, 7)), [Violation::RegisterMisread { n: 2, first_row: 1 }]);
    // A reader that mistakes the text 4 for the value 5 would make this join.
    let respelled = |as_read: &str| {
        by_key(&|joined| {
            let text = joined.rows.columns[0].ids[12];
            let as_read = [as_read].into_iter().collect();
            let respelled = Respelled { column: 0, notation: Notation::default(), as_read, texts: vec![text] };
            joined.respelled.push(respelled);
        })
    };
    assert_eq!(respelled("4.0"), []);
    assert_eq!(respelled("5"), [Violation::OtherValue { column: "qi1".to_owned(), n: 1 }]);
}

/// An earlier release with one class, which has these cells and values.
fn earlier(cells: [&str; 2], values: &[&str]) -> PreviousRelease {
    let n_rows = values.len();
    let column =
        |name: &str, role, cells: &[&str]| Column::from_cells(name, role, cells.iter().map(|&cell| Some(cell)));
    let group = || column(SENSITIVE_GROUP, Role::Key, &vec!["1"; n_rows]);
    let mut quasi = ["qi1", "qi2"].iter().zip(cells).map(|(name, cell)| column(name, Role::Quasi, &vec![cell; n_rows]));
    let rows = vec![quasi.next().unwrap(), quasi.next().unwrap(), group()];
    let values = vec![group(), column("sa", Role::Sensitive, values)];
    let table = |name: &str, columns| Table { name: name.to_owned(), columns, n_rows, person: None };
    let tables = vec![table("t", rows), table(SENSITIVE_TABLE, values)];
    PreviousRelease { name: "old".to_owned(), tables, places: (0..13).collect(), beside: None }
}

fn beside(previous: &[PreviousRelease], l: u32) -> Result<Option<crate::TogetherFindings>, Vec<Violation>> {
    let requirements = [Requirement::K(3), Requirement::DistinctL { column: "sa".to_owned(), l }];
    let asked = AskedOfJoin { previous, ..asked(&requirements) };
    let mut joined = join(None);
    // A person who is in no register hides nobody else, so D is put into the register.
    joined.persons[3] = InRegister::Same(16);
    let verified = verify_joined(release(), &original(), &joined, asked).map_err(|violations| violations.0)?;
    Ok(verified.findings().joined.as_ref().and_then(|found| found.together.clone()))
}

#[test]
fn an_earlier_class_must_hold_k_persons_of_every_class_it_meets() {
    // The earlier class covers A and U of the first class, and no other private person.
    let violations = beside(&[earlier(["1", "[1,2]"], &["v4", "v5", "v6"])], 1).unwrap_err();
    assert_eq!(violations, [Violation::PreviousCrowd { n: 1, fewest: 2 }]);
    // Each of these covers the first two classes, but both together cover only one person of the first class.
    let safe = [earlier(["[1,2]", "[1,4]"], &["v4", "v5", "v6"])];
    assert_eq!(beside(&safe, 1).unwrap().unwrap().k, 3);
    let [wide] = safe;
    let chain = [wide, earlier(["[1,9]", "1"], &["v4", "v5", "v6"])];
    assert_eq!(beside(&chain, 1).unwrap_err(), [Violation::PreviousCrowd { n: 1, fewest: 1 }]);
    // A person whom no register listed at that time hides nobody else.
    let mut unknown = earlier(["[1,2]", "[1,4]"], &["v4", "v5", "v6"]);
    unknown.places.fill(NULL);
    assert_eq!(beside(&[unknown], 1).unwrap_err(), [Violation::PreviousCrowd { n: 4, fewest: 1 }]);
}

#[test]
fn groups_that_give_values_away_beside_earlier_ones_are_found() {
    let column = || "sa".to_owned();
    let of_values = |values: &[&str], l| beside(&[earlier(["[1,2]", "[1,4]"], values)], l);
    let common = of_values(&["v1", "v8", "v9"], 2).unwrap_err();
    assert_eq!(common, [Violation::PreviousCommon { column: column(), n: 1 }]);
    // The first group has v1 and v2 twice each, the second v1 to v3.
    let came = of_values(&["v1", "v2", "v2"], 2).unwrap_err();
    assert_eq!(came, [Violation::PreviousChanges { column: column(), n: 1 }]);
    let went = of_values(&["v1", "v1", "v1", "v2", "v2"], 2).unwrap_err();
    assert_eq!(went, [Violation::PreviousChanges { column: column(), n: 1 }]);
    assert_eq!(of_values(&["v1", "v1", "v2", "v2"], 2).unwrap().unwrap().l, [(column(), 2)]);
}

#[test]
fn an_earlier_release_that_says_something_unknown_is_refused() {
    let mut other = earlier(["[1,2]", "[1,4]"], &["v1"]);
    other.tables[0].columns[1].name = "qi3".to_owned();
    let unknown = |column: &str| Violation::PreviousColumn { release: "old".to_owned(), column: column.to_owned() };
    assert_eq!(beside(&[other], 1).unwrap_err(), [unknown("qi3")]);
    assert_eq!(beside(&[earlier(["tall", "1"], &["v1"])], 1).unwrap_err(), [unknown("qi1")]);
}
