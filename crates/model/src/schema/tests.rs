//! Tests of links between tables: which are accepted, and how all others are refused.

use super::*;
use crate::Role;

const SPEC: &str = r#"
k = 2
[tables.takes]
file = "takes.csv"
key = "scid"
parent = { table = "student", foreign_key = "sid" }
columns = { course = "quasi" }
[tables.student]
file = "student.csv"
person = "sid"
columns = { gpa = "sensitive" }
[tables.books]
file = "books.csv"
parent = { table = "takes", foreign_key = "scid" }
columns = { book = "quasi" }
"#;

fn table(name: &str, person: Option<usize>, columns: &[(&str, &[Option<&str>])]) -> Table {
    let n_rows = columns[0].1.len();
    let columns = columns.iter().map(|(name, cells)| Column::from_cells(name, Role::Key, cells.iter().copied()));
    Table { name: name.to_owned(), columns: columns.collect(), n_rows, person }
}

fn some<const N: usize>(cells: [&str; N]) -> [Option<&str>; N] {
    cells.map(Some)
}

/// Students a, b, c; c takes nothing.
fn tables(scid: &[Option<&str>], sid: &[Option<&str>], of_books: &[Option<&str>]) -> Vec<Table> {
    vec![
        table("takes", None, &[("course", scid), ("scid", scid), ("sid", sid)]),
        table("student", Some(0), &[("sid", &some(["a", "b", "c"]))]),
        table("books", None, &[("scid", of_books)]),
    ]
}

#[test]
fn a_table_finds_its_parent_and_each_row_its_parents_row() {
    let mut spec = Spec::parse(SPEC).unwrap();
    spec.tables[1].childless = Childless::Keep;
    let tables = tables(&some(["1", "2", "3"]), &some(["b", "a", "b"]), &some(["3", "3", "1"]));
    let schema = Schema::of(&spec, &tables).unwrap();
    assert_eq!(schema.roots(), [1]);
    assert_eq!(schema.children(1), [0]);
    assert_eq!(schema.children(0), [2]);
    assert_eq!(schema.tables[1].key, Some(0));
    assert_eq!(schema.tables[0].parent, Some(SchemaParent { table: 1, foreign_key: 2 }));
    assert_eq!(schema.parent_rows(&tables, 0), Some(vec![1, 0, 1]));
    assert_eq!(schema.parent_rows(&tables, 2), Some(vec![2, 2, 0]));
    assert_eq!(schema.parent_rows(&tables, 1), None);
}

#[test]
fn every_violation_is_listed_by_table_and_row_and_no_cell_is_shown() {
    let spec = Spec::parse(SPEC).unwrap();
    let scid = [Some("1"), None, Some("1"), Some("secret")];
    let tables = tables(&scid, &[Some("a"), Some("b"), Some("x"), None], &some(["2", "1"]));
    let SchemaErrors(problems) = Schema::of(&spec, &tables).unwrap_err();
    let shown: Vec<String> = problems.iter().map(|problem| format!("{problem}; {}", problem.hint())).collect();
    assert_eq!(
        shown,
        [
            "table 'takes': row 2 without a key in 'scid'; give each row a key of its own",
            "table 'takes': row 3 has the key of row 1 in 'scid'; give each row a key of its own",
            "table 'takes': rows 3 and 4 without a row of 'student' to belong to; correct the foreign key, or leave \
             such rows out with orphans = \"drop\" in this table",
            "table 'student': row 3 without a row in any child table; allow such persons \
             with childless = \"keep\" in this table",
            "table 'books': row 1 without a row of 'takes' to belong to; correct the foreign key, or leave such rows \
             out with orphans = \"drop\" in this table",
        ]
    );
}

#[test]
fn orphans_and_childless_persons_are_legal_where_the_spec_says_so() {
    let mut spec = Spec::parse(SPEC).unwrap();
    spec.tables[0].orphans = Orphans::Drop;
    spec.tables[1].childless = Childless::Keep;
    let tables = tables(&some(["1", "2"]), &[Some("x"), None], &some(["1"]));
    let schema = Schema::of(&spec, &tables).unwrap();
    assert_eq!(schema.parent_rows(&tables, 0), Some(vec![NULL, NULL]));
}

#[test]
fn a_long_list_of_rows_is_cut_in_the_message_and_whole_in_the_problem() {
    let spec = Spec::parse(SPEC).unwrap();
    let names: Vec<String> = (0..13).map(|row| row.to_string()).collect();
    let scid: Vec<Option<&str>> = names.iter().map(|name| Some(name.as_str())).collect();
    let mut sid = vec![Some("nobody"); 13];
    (sid[0], sid[1], sid[2]) = (Some("a"), Some("b"), Some("c"));
    let mut sid_long = sid.clone();
    sid_long.push(Some("nobody"));
    let mut scid_long = scid.clone();
    scid_long.push(Some("13"));
    let SchemaErrors(short) = Schema::of(&spec, &tables(&scid, &sid, &[])).unwrap_err();
    assert_eq!(
        short[0].to_string(),
        "table 'takes': rows 4, 5, 6, 7, 8, 9, 10, 11, 12 and 13 without a row of 'student' to belong to"
    );
    let SchemaErrors(long) = Schema::of(&spec, &tables(&scid_long, &sid_long, &[])).unwrap_err();
    assert_eq!(
        long[0].to_string(),
        "table 'takes': rows 4, 5, 6, 7, 8, 9, 10, 11, 12, 13 and 1 more without a row of 'student' to belong to"
    );
    let SchemaErrorKind::Orphans { rows, .. } = &long[0].fault else { panic!("orphans") };
    assert_eq!(rows.len(), 11);
}
