//! Several tables: keys, references, and tables of persons.

use super::*;

#[test]
fn a_key_that_links_nothing_is_named_with_all_other_problems() {
    let text = "[tables.patient]\nfile = \"p.csv\"\nperson = \"id\"\ncolumns = { q = \"quasi\", house = \"key\" }\n\
                [tables.visit]\nfile = \"v.csv\"\nkey = \"no\"\nparent = { table = \"patient\", foreign_key = \"id\" }\n\
                columns = { no = \"key\", doctor = \"key\" }\n";
    let SpecErrors(found) = Spec::parse(text).unwrap_err();
    let found: Vec<(&str, Option<usize>, &SpecErrorKind)> =
        found.iter().map(|problem| (problem.key.as_str(), problem.line, &problem.fault)).collect();
    assert_eq!(
        found,
        [
            ("tables.patient.columns.house", Some(4), &SpecErrorKind::KeyLinksNothing),
            ("tables.visit.columns.doctor", Some(9), &SpecErrorKind::KeyLinksNothing),
            ("", None, &SpecErrorKind::NoK),
        ]
    );
}

#[test]
fn references_lead_to_a_key_and_stand_alone() {
    let text = "k = 2\nkeys = \"keep\"\nalgorithm = \"mondrian\"\n[tables.a]\nfile = \"a.csv\"\nperson = \"id\"\n[tables.a.columns]\n\
                q = { role = \"quasi\", references = \"a\" }\nid = { role = \"key\", references = \"a\" }\n\
                to = { role = \"key\", references = \"b\" }\n[audiences.hr]\nquasi = [\"q\"]\n";
    let SpecErrors(found) = Spec::parse(text).unwrap_err();
    let found: Vec<(&str, &SpecErrorKind)> =
        found.iter().map(|problem| (problem.key.as_str(), &problem.fault)).collect();
    let column = |name: &str| format!("tables.a.columns.{name}.references");
    let with = || SpecErrorKind::ReferencesWith { with: "audiences" };
    let algorithm = SpecErrorKind::AlgorithmForOther { algorithm: "mondrian", needed: "a table without references" };
    for (key, fault) in [
        ("keys".to_owned(), SpecErrorKind::ReferencesKept),
        ("algorithm".to_owned(), algorithm),
        (column("q"), SpecErrorKind::ReferencesOnRole { role: Role::Quasi }),
        (column("id"), SpecErrorKind::ReferencesTwice),
        (column("to"), SpecErrorKind::UnknownTable { name: "b".to_owned(), nearest: None }),
        (column("to"), with()),
    ] {
        assert!(found.contains(&(key.as_str(), &fault)), "{key}: {fault:?} is not in {found:?}");
    }
    let alone = "k = 2\n[tables.a]\nfile = \"a.csv\"\nkey = \"id\"\n\
                 columns = { q = \"quasi\", to = { role = \"key\", references = \"a\" } }\n";
    let spec = Spec::parse(alone).unwrap();
    assert!(spec.links_rows() && spec.tables[0].columns[1].references.as_deref() == Some("a"));
}

#[test]
fn tables_hang_off_one_persons_table() {
    let table = |name: &str, more: &str| format!("[tables.{name}]\nfile = \"a.csv\"\ncolumns.q = \"quasi\"\n{more}\n");
    let parent = |of: &str| format!("parent = {{ table = \"{of}\", foreign_key = \"id\" }}");
    let text = [
        "k = 5\nalgorithm = \"mondrian\"\n".to_owned(),
        table("patient", ""),
        table("visit", &parent("patint")),
        table("drug", &parent("patient")),
        table("lone", ""),
        table("a", &parent("b")),
        table("b", &parent("a")),
        table("c", "parent = { tabel = \"a\" }\nperson = \"p\""),
    ]
    .concat();
    assert_eq!(
        problems(&text),
        "line 2: algorithm: 'mondrian' is for a single table\n  \
         algorithm = \"auto\" picks one that fits\n\
         line 10: tables.visit.parent: there is no table 'patint'\n  \
         did you mean 'patient'?\n\
         line 14: tables.drug.parent: table 'patient' has neither a key nor a person to point to\n  \
         give that table its key, for example key = \"visit_id\"\n\
         line 15: tables.lone: the table has no parent, but 'patient' is already the table of persons\n  \
         name its parent, for example parent = { table = \"patient\", foreign_key = \"patient_id\" }, or say \
         person = true if its rows are persons, too\n\
         line 22: tables.a.parent: following the parents leads back to this table\n  \
         let the parents of every table lead to the table of persons\n\
         line 26: tables.b.parent: following the parents leads back to this table\n  \
         let the parents of every table lead to the table of persons\n\
         line 30: tables.c.parent.tabel: unknown key\n  \
         did you mean 'table'?\n\
         line 30: tables.c.parent: 'table' is missing\n  \
         for example table = \"patient\"\n\
         line 30: tables.c.parent: 'foreign_key' is missing\n  \
         for example foreign_key = \"patient_id\"\n\
         line 31: tables.c.person: only a table without a parent names persons\n  \
         take person out, because parent leads to the person; or take parent out, if its rows are other persons\n"
    );
}

#[test]
fn a_table_of_which_nothing_would_be_released_is_refused() {
    let text = |columns: &str, rest: &str| {
        format!(
            "k = 2\n[tables.patient]\nfile = \"p.csv\"\nperson = \"id\"\ncolumns = {{ age = \"quasi\"{rest} }}\n\
             [tables.doctor]\nfile = \"d.csv\"\nperson = \"id\"\ncolumns = {{ {columns} }}\n"
        )
    };
    for nothing in ["id = \"key\"", "id = \"identifier\"", "id = \"key\", name = \"drop\""] {
        let SpecErrors(found) = Spec::parse(&text(nothing, "")).unwrap_err();
        let found: Vec<(&str, &SpecErrorKind)> = found.iter().map(|found| (found.key.as_str(), &found.fault)).collect();
        assert_eq!(found, [("tables.doctor", &SpecErrorKind::NothingReleased)]);
    }
    Spec::parse(&text("id = \"key\", school = \"plain\"", "")).unwrap();
    // The key is released because another table points to it.
    Spec::parse(&text("id = \"key\"", ", doctor = { role = \"key\", references = \"doctor\" }")).unwrap();
}

#[test]
fn a_second_table_of_persons_says_so() {
    let table = |name: &str, more: &str| format!("[tables.{name}]\nfile = \"a.csv\"\ncolumns.q = \"quasi\"\n{more}\n");
    let visits =
        "parent = { table = \"patient\", foreign_key = \"pid\" }\norphans = \"drop\"\nmax_rows_left_out = 0.25";
    let text = [
        "k = 5\n".to_owned(),
        table("patient", "person = \"pid\"\nchildless = \"keep\""),
        table("visit", visits),
        table("doctor", "key = \"did\"\nperson = true"),
    ]
    .concat();
    let spec = Spec::parse(&text).unwrap();
    assert_eq!(spec.tables[0].childless, Childless::Keep);
    assert_eq!(spec.tables[1].orphans, Orphans::Drop);
    assert_eq!((spec.tables[0].max_rows_left_out, spec.tables[1].max_rows_left_out), (None, Some(0.25)));
    assert_eq!(spec.tables[2].person.as_deref(), Some("did"));
    assert_eq!((spec.tables[2].orphans, spec.tables[2].childless), (Orphans::Refuse, Childless::Refuse));

    let text = [
        "k = 5\n".to_owned(),
        table("patient", "key = \"pid\"\norphans = \"drop\"\nmax_rows_left_out = 0.1"),
        table("visit", "parent = { table = \"patient\", foreign_key = \"pid\" }\nchildless = \"keep\""),
        table("doctor", "person = true\nchildless = \"refuse\""),
        table("nurse", "person = false"),
    ]
    .concat();
    assert_eq!(
        problems(&text),
        "line 6: tables.patient.orphans: the table has no parent, so none of its rows is an orphan\n  \
         take orphans out, or name the table's parent\n\
         line 7: tables.patient.max_rows_left_out: the table has no parent, so its rows are persons and not rows that \
         find no partner\n  take max_rows_left_out out; max_suppressed limits how many persons may be left out\n\
         line 12: tables.visit.childless: the table is a child table, so none of its rows is a person without \
         children\n  take childless out; a row of a child table needs no children\n\
         line 16: tables.doctor.person: each row is a person, but the table has no key that names it\n  \
         add for example key = \"doctor_id\"\n\
         line 17: tables.doctor.childless: the table has no child table, so none of its rows is a person without \
         children\n  take childless out; a row of a child table needs no children\n\
         line 21: tables.nurse.person: must be a column's name in quotes, or true, found true or false\n"
    );
}
