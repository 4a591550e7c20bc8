//! A release of two cells, verified as it is and after something went wrong on the way to a cell or to the file.

use kohort_model::{Distance, ReleasedColumn, ReleasedTable, Texts, ValueType};

use super::*;
use crate::measure;

const AGES: [&str; 4] = ["20", "25", "60", "65"];
const ILLS: [&str; 3] = ["flu", "gout", "asthma"];

/// A row of the file.
type Shown = (&'static str, &'static str);

/// Rows of an age and an illness, as numbers of [`AGES`] and [`ILLS`].
type Row = (u32, u32);

const YOUNG: [Row; 4] = [(0, 0), (1, 1), (0, 2), (1, 0)];
const OLD: [Row; 4] = [(2, 1), (3, 0), (3, 2), (2, 2)];

fn column(name: &str, role: Role, texts: &[&str], ids: Vec<u32>) -> Column {
    Column { texts: texts.iter().collect(), ids, ..Column::from_cells(name, role, []) }
}

fn private(rows: &[Row]) -> Table {
    let age = column("age", Role::Quasi, &AGES, rows.iter().map(|row| row.0).collect()).typed(ValueType::Integer);
    let ill = column("ill", Role::Sensitive, &ILLS, rows.iter().map(|row| row.1).collect());
    Table { name: "t".to_owned(), columns: vec![age, ill], n_rows: rows.len(), person: None }
}

/// A release that shows the same label for all rows.
fn released(rows: &[Row], label: &str) -> Release {
    let n_rows = rows.len() as u32;
    let age = Cells::Recoded { labels: [label].into_iter().collect::<Texts>(), ids: vec![0; rows.len()] };
    let columns = vec![
        ReleasedColumn { name: "age".to_owned(), source: 0, cells: age },
        ReleasedColumn { name: "ill".to_owned(), source: 1, cells: Cells::Copied },
    ];
    Release { tables: vec![ReleasedTable { name: "t".to_owned(), rows: (0..n_rows).collect(), columns }] }
}

fn written(cells: &[(&str, &str)]) -> Table {
    let column = |name: &str, role, cells: Vec<&str>| Column::from_cells(name, role, cells.into_iter().map(Some));
    let ages = column("age", Role::Plain, cells.iter().map(|cell| cell.0).collect());
    let ills = column("ill", Role::Plain, cells.iter().map(|cell| cell.1).collect());
    Table { name: "t".to_owned(), columns: vec![ages, ills], n_rows: cells.len(), person: None }
}

/// The file of both cells, in another order than the cells have.
fn file() -> Vec<Shown> {
    let young = YOUNG.iter().rev().map(|row| ("[20,25]", ILLS[row.1 as usize]));
    let old = OLD.iter().map(|row| ("[60,65]", ILLS[row.1 as usize]));
    young.chain(old).collect()
}

fn verify(
    asked: &[Requirement],
    read: &[&[Row]],
    cells: [&[Row]; 2],
    file: &[(&str, &str)],
) -> Result<Findings, Violations> {
    let mut verifier = CellsVerifier::new(asked, SuppressionLimit::NOBODY);
    read.iter().for_each(|rows| verifier.note_read(&private(rows)));
    for (rows, label) in cells.into_iter().zip(["[20,25]", "[60,65]"]) {
        verifier.verify_cell(released(rows, label), &private(rows))?;
    }
    let mut verifier = verifier.into_file()?;
    let file = written(file);
    verifier.count_values(&file, None)?;
    verifier.count_classes(&file, None)?;
    verifier.finish()
}

const ALL: [&[Row]; 2] = [&YOUNG, &OLD];

#[test]
fn a_release_in_cells_has_the_findings_of_its_file() {
    let asked = [Requirement::K(4), Requirement::DistinctL { column: "ill".to_owned(), l: 3 }];
    let found = verify(&asked, &ALL, ALL, &file()).unwrap();
    let mut table = written(&file());
    (table.columns[0].role, table.columns[1].role) = (Role::Quasi, Role::Sensitive);
    let expected = measure(&table, &[0], &[1], &asked).unwrap();
    assert_eq!(found, Findings { suppressed: Some(Suppressed::default()), ..expected });
    assert_eq!((found.k, found.classes, found.rows), (4, 2, 8));
}

#[test]
fn classes_may_come_in_pieces_of_the_file() {
    let asked =
        [Requirement::K(4), Requirement::TCloseness { column: "ill".to_owned(), t: 0.2, distance: Distance::Equal }];
    let whole = verify(&asked, &ALL, ALL, &file()).unwrap();
    let mut verifier = CellsVerifier::new(&asked, SuppressionLimit::NOBODY);
    verifier.note_read(&private(&[YOUNG, OLD].concat()));
    verifier.verify_cell(released(&YOUNG, "[20,25]"), &private(&YOUNG)).unwrap();
    verifier.verify_cell(released(&OLD, "[60,65]"), &private(&OLD)).unwrap();
    let mut verifier = verifier.into_file().unwrap();
    // Both readings number texts in the same way, as a reader does that keeps its dictionaries.
    let file = written(&file());
    let part = |rows: std::ops::Range<usize>| {
        let cells = |column: &Column| Column { ids: column.ids[rows.clone()].to_vec(), ..column.clone() };
        Table { columns: file.columns.iter().map(cells).collect(), n_rows: rows.len(), ..file.clone() }
    };
    (0..8).for_each(|row| verifier.count_values(&part(row..row + 1), None).unwrap());
    verifier.count_classes(&part(0..4), None).unwrap();
    verifier.count_classes(&part(4..8), None).unwrap();
    assert_eq!(verifier.finish().unwrap(), whole);
}

#[test]
fn a_row_that_is_lost_or_doubled_on_the_way_to_its_cell_is_noticed() {
    let asked = [Requirement::K(2)];
    let lost = verify(&asked, &ALL, [&YOUNG[1..], &OLD], &file()[1..]).unwrap_err().0;
    assert_eq!(lost, [Violation::OtherRowsInCells { read: 8, in_cells: 7 }]);
    let mut doubled = YOUNG;
    doubled[1] = doubled[0];
    let doubled = verify(&asked, &ALL, [&doubled, &OLD], &file()).unwrap_err().0;
    assert_eq!(doubled, [Violation::OtherRowsInCells { read: 8, in_cells: 8 }]);
}

#[test]
fn a_file_with_other_rows_is_noticed() {
    let asked = [Requirement::K(2)];
    let spoiled = |spoil: fn(&mut Vec<Shown>)| {
        let mut file = file();
        spoil(&mut file);
        verify(&asked, &ALL, ALL, &file).unwrap_err().0
    };
    assert_eq!(spoiled(|file| file.truncate(7)), [Violation::WrittenRows { released: 8, written: 7 }]);
    assert_eq!(spoiled(|file| file[0].1 = "cough"), [Violation::OtherRowsWritten]);
    assert_eq!(spoiled(|file| file[0].0 = "[60,65]"), [Violation::OtherRowsWritten]);
    assert_eq!(spoiled(|file| file[0] = file[1]), [Violation::OtherRowsWritten]);
    // Exchanging the illnesses of two classes leaves each column as it was.
    assert_eq!(spoiled(|file| (file[1].1, file[4].1) = (file[4].1, file[1].1)), [Violation::OtherRowsWritten]);
}

#[test]
fn what_a_cell_or_the_file_does_not_satisfy_is_never_verified() {
    let too_few = verify(&[Requirement::K(5)], &ALL, ALL, &file()).unwrap_err().0;
    assert!(matches!(too_few[..], [Violation::Unmet { class_size: 4, .. }]));
    // Shares are those of the whole file: each class alone has a distance of 0 to itself.
    let t = Requirement::TCloseness { column: "ill".to_owned(), t: 0.1, distance: Distance::Equal };
    let too_far = verify(&[Requirement::K(4), t], &ALL, ALL, &file()).unwrap_err().0;
    assert!(matches!(too_far[..], [Violation::Unmet { .. }, ..]));
}

#[test]
fn too_many_persons_left_out_of_all_cells_are_refused() {
    let mut verifier = CellsVerifier::new(&[Requirement::K(2)], SuppressionLimit::share(0.2));
    verifier.note_read(&private(&[YOUNG, OLD].concat()));
    let mut some = released(&YOUNG, "[20,25]");
    let table = &mut some.tables[0];
    table.rows.truncate(2);
    if let Cells::Recoded { ids, .. } = &mut table.columns[0].cells {
        ids.truncate(2);
    }
    verifier.verify_cell(some, &private(&YOUNG)).unwrap();
    verifier.verify_cell(released(&OLD, "[60,65]"), &private(&OLD)).unwrap();
    let refused = verifier.into_file().unwrap_err().0;
    assert_eq!(refused, [Violation::TooManySuppressed { n: 2, n_persons: 8, limit: 0.2 }]);
}

/// Rows with the person of each.
fn of_persons(rows: &[Row], persons: &[&str]) -> Table {
    let mut table = private(rows);
    table.columns.push(Column::from_cells("id", Role::Key, persons.iter().copied().map(Some)));
    table.person = Some(2);
    table
}

/// Verifies two cells of persons, whose rows of the file belong to `of_file`.
fn verify_persons(k: u32, young: [&str; 4], old: [&str; 4], of_file: [u32; 8]) -> Result<Findings, Violations> {
    let asked = [Requirement::K(k), Requirement::DistinctL { column: "ill".to_owned(), l: 3 }];
    let mut verifier = CellsVerifier::new(&asked, SuppressionLimit::NOBODY);
    for (rows, persons, label) in [(&YOUNG, young, "[20,25]"), (&OLD, old, "[60,65]")] {
        let cell = of_persons(rows, &persons);
        verifier.note_read(&cell);
        verifier.verify_cell(released(rows, label), &cell)?;
    }
    let mut verifier = verifier.into_file()?;
    let file = written(&file());
    verifier.count_values(&file, Some(&of_file))?;
    verifier.count_classes(&file, Some(&of_file))?;
    verifier.finish()
}

/// The file has the rows of the first cell in reverse.
const OF_FILE: [u32; 8] = [2, 1, 0, 0, 3, 3, 4, 5];

#[test]
fn persons_with_several_rows_are_counted_once_where_the_file_does_not_name_them() {
    let (young, old) = (["a", "a", "b", "c"], ["d", "d", "e", "f"]);
    let found = verify_persons(3, young, old, OF_FILE).unwrap();
    let mut table = written(&file());
    (table.columns[0].role, table.columns[1].role) = (Role::Quasi, Role::Sensitive);
    let names = ["c", "b", "a", "a", "d", "d", "e", "f"];
    table.columns.push(Column::from_cells("id", Role::Key, names.map(Some)));
    table.person = Some(2);
    let asked = [Requirement::K(3), Requirement::DistinctL { column: "ill".to_owned(), l: 3 }];
    let expected = measure(&table, &[0], &[1], &asked).unwrap();
    assert_eq!(found, Findings { suppressed: Some(Suppressed::default()), ..expected });
    assert_eq!((found.k, found.persons, found.rows), (3, 6, 8));
    let too_few = verify_persons(4, young, old, OF_FILE).unwrap_err().0;
    assert!(matches!(too_few[..], [Violation::Unmet { class_size: 3, .. }]));
}

#[test]
fn a_person_in_two_cells_or_with_rows_of_another_is_noticed() {
    let young = ["a", "a", "b", "c"];
    let twice = verify_persons(2, young, ["d", "d", "e", "a"], OF_FILE).unwrap_err().0;
    assert_eq!(twice, [Violation::PersonInTwoCells { n: 1 }]);
    // As if the two rows of one person belonged to two.
    let exchanged = verify_persons(2, young, ["d", "d", "e", "f"], [2, 1, 0, 1, 3, 3, 4, 5]).unwrap_err().0;
    assert_eq!(exchanged, [Violation::OtherRowsWritten]);
    let unknown = verify_persons(2, young, ["d", "d", "e", "f"], [2, 1, 0, 0, 3, 3, 4, 6]).unwrap_err().0;
    assert_eq!(unknown, [Violation::OtherRowsWritten]);
}
