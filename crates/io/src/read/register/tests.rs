//! Small registers beside a small survey, and what can be wrong with them.

use std::collections::BTreeMap;

use kohort_model::spec::RegisterUse;
use kohort_model::{InRegister, Silent};

use super::super::load::load;
use super::super::load::tests::{column, table_spec};
use super::*;

const SURVEY: &str = "id,age,zip,sa\nA,20,x,1\nB,30,y,2\nC,40,x,3\n";

fn register(file: &str, key: Option<&str>) -> RegisterSpec {
    let key = key.map(str::to_owned);
    RegisterSpec { file: file.into(), key, columns: BTreeMap::new(), date: None, sha256: None, previous: Vec::new() }
}

fn survey_spec(registers: &[(&str, RegisterSpec)]) -> Spec {
    let mut table = table_spec("survey.csv", Vec::new());
    table.person = Some("id".to_owned());
    table.columns = vec![column("age", Role::Quasi), column("zip", Role::Quasi), column("sa", Role::Sensitive)];
    let mut spec = Spec::new(2);
    spec.tables = vec![table];
    spec.registers = registers.iter().map(|(name, register)| ((*name).to_owned(), register.clone())).collect();
    spec
}

fn load_all(files: &[(&str, &str)], spec: &Spec) -> Result<LoadedRegisters, Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let mut original = load(folder.path(), spec, &spec.tables[0], &Silent).unwrap();
    load_registers(folder.path(), spec, &mut original, &Silent).map_err(|problem| match problem {
        LoadError::Files(files) => {
            let named = |file: ReadErrors| {
                let name = file.file.file_name().unwrap().to_string_lossy().into_owned();
                file.problems.into_iter().map(move |problem| format!("{name}: {problem}"))
            };
            files.into_iter().flat_map(named).collect()
        }
        other => vec![other.to_string()],
    })
}

/// The joined rows as texts.
fn rows(joined: &JoinedRegister) -> Vec<String> {
    let cells = |row: usize| {
        let cells = joined.rows.columns.iter().map(|column| column.cell(row).unwrap_or("null").to_owned());
        cells.collect::<Vec<_>>().join(" ")
    };
    (0..joined.rows.n_rows).map(cells).collect()
}

fn with(text: &str, change: impl FnOnce(&mut Spec)) -> Result<LoadedRegisters, Vec<String>> {
    let mut spec = survey_spec(&[("town", register("town.csv", Some("no")))]);
    change(&mut spec);
    load_all(&[("survey.csv", SURVEY), ("town.csv", text)], &spec)
}

#[test]
fn the_join_is_full_and_outer() {
    let loaded = with("no,age,zip,name\nA,20,x,Ann\nB,31,y,Bob\nD,50,z,Dan\nE,20,x,Eve\n", |_| {}).unwrap();
    assert_eq!(rows(&loaded.joined), ["20 x", "30 y", "40 x", "50 z", "20 x", "20 x", "31 y"]);
    assert_eq!((loaded.joined.n_microdata, loaded.joined.n_register), (3, 2));
    assert_eq!(loaded.joined.persons, [InRegister::Same(5), InRegister::Differs(6), InRegister::Absent]);
    assert_eq!((loaded.registers[0].rows, loaded.registers[0].joined.clone()), (4, 3..5));
    assert_eq!(loaded.by, JoinedBy::Key);
}

#[test]
fn an_earlier_register_says_where_everybody_was_and_who_has_left() {
    let mut spec = survey_spec(&[("town", register("town.csv", Some("no")))]);
    spec.registers.get_mut("town").unwrap().previous = vec!["then.csv".into()];
    let town = "no,age,zip\nA,20,x\nB,30,y\nD,50,z\nE,20,x\n";
    // B and D have moved, F has left, C was there and E was not; the register contradicts itself about G.
    let then = "no,age,zip\nA,20.0,x\nB,30,z\nC,40,x\nD,50,x\nF,60,y\nG,1,x\nG,2,x\n";
    let loaded = load_all(&[("survey.csv", SURVEY), ("town.csv", town), ("then.csv", then)], &spec).unwrap();
    let places = loaded.earlier[0].places.iter();
    let rows = rows(&loaded.joined);
    let said: Vec<Option<&str>> = places.map(|&row| (row != NULL).then(|| rows[row as usize].as_str())).collect();
    assert_eq!(said, [Some("20 x"), Some("30 z"), Some("40 x"), Some("50 x"), None, Some("60 y")]);
    assert_eq!(loaded.earlier[0].places[0], 0, "a place that stayed the same has no row of its own");
}

#[test]
fn rows_that_lack_something_are_left_out_or_refused() {
    let text = "no,age,zip\nD,50,z\nE,,z\n,60,z\nF,70,\nG,80,z\n";
    let loaded = with(text, |_| {}).unwrap();
    assert_eq!(rows(&loaded.joined)[3..], ["50 z", "80 z"]);
    assert_eq!((loaded.registers[0].rows, loaded.registers[0].incomplete), (5, 3));
    let refuse = |spec: &mut Spec| spec.register = RegisterUse { missing: RegisterMissing::Refuse, ..spec.register };
    assert_eq!(
        with(text, refuse).unwrap_err(),
        [
            "town.csv: column 'age' is null in row 2, which missing = \"refuse\" does not allow",
            "town.csv: column 'zip' is null in row 4, which missing = \"refuse\" does not allow",
            "town.csv: column 'no' is null in row 3, which missing = \"refuse\" does not allow",
        ]
    );
}

#[test]
fn nobody_counts_twice_and_contradictions_are_not_used() {
    let spec = survey_spec(&[("tax", register("tax.csv", Some("no"))), ("town", register("town.csv", Some("person")))]);
    let tax = "no,age,zip\nD,50,z\nD,50,z\nA,20,x\nB,30,y\nE,60,z\nF,70,z\nF,71,z\n";
    let town = "person,age,zip\nD,50,z\nE,61,z\nB,33,y\nG,80,z\nF,70,z\n";
    let loaded = load_all(&[("survey.csv", SURVEY), ("tax.csv", tax), ("town.csv", town)], &spec).unwrap();
    assert_eq!(rows(&loaded.joined), ["20 x", "30 y", "40 x", "50 z", "80 z", "20 x"]);
    assert_eq!(loaded.contradicting, 3);
    assert_eq!(loaded.joined.persons, [InRegister::Same(5), InRegister::Absent, InRegister::Absent]);
    assert_eq!((loaded.registers[0].joined.clone(), loaded.registers[1].joined.clone()), (3..4, 4..5));
    let texts: Vec<&str> = loaded.joined.rows.columns[0].texts.iter().collect();
    assert_eq!(texts, ["20", "30", "40", "50", "80"], "texts of rows that are not used are gone");
}

#[test]
fn without_a_key_equal_rows_are_the_same_person_one_to_one() {
    let spec = survey_spec(&[("tax", register("tax.csv", None)), ("town", register("town.csv", None))]);
    let tax = "age,zip\n20,x\n20,x\n50,z\n";
    let town = "zip,age\nz,50\nz,50\nx,20\n";
    let loaded = load_all(&[("survey.csv", SURVEY), ("tax.csv", tax), ("town.csv", town)], &spec).unwrap();
    assert_eq!(rows(&loaded.joined), ["20 x", "30 y", "40 x", "20 x", "50 z", "50 z", "20 x"]);
    assert_eq!(loaded.joined.persons[0], InRegister::Same(6));
    assert_eq!(loaded.by, JoinedBy::Values);
}

#[test]
fn columns_may_have_other_names_and_a_register_nobody_in_it() {
    let loaded = with("ZIP,no,AGE\n", |spec| {
        let columns = [("age".to_owned(), "AGE".to_owned()), ("zip".to_owned(), "ZIP".to_owned())];
        spec.registers.get_mut("town").unwrap().columns = columns.into();
    })
    .unwrap();
    assert_eq!((loaded.joined.n_register, loaded.joined.rows.n_rows), (0, 3));
}

#[test]
fn values_that_have_no_place_are_found_by_row() {
    let found = with("no,age,zip\nD,old,z\nE,20,*\nF,old,z\n", |_| {}).unwrap_err();
    assert_eq!(
        found,
        [
            "town.csv: column 'age': 1 value is no integer, in rows 1 and 3",
            "town.csv: column 'zip' already holds '*' or ranges such as '[20,29]', in row 2",
        ]
    );
    let unknown = with("no,agee\nD,1\n", |_| {}).unwrap_err();
    assert_eq!(unknown, ["town.csv: no such columns: 'age', 'zip'"]);
}

#[test]
fn hierarchies_made_by_rule_cover_both_and_files_must() {
    let rule = HierarchySource::Rule(kohort_model::hierarchy::Rule::Steps(vec![10.0, 50.0]));
    let loaded = with("no,age,zip\nD,95,z\n", |spec| spec.tables[0].columns[0].hierarchy = Some(rule)).unwrap();
    let hierarchy = loaded.joined.rows.columns[0].hierarchy.as_ref().unwrap();
    assert!(hierarchy.leaf("95").is_some() && hierarchy.leaf("20").is_some());
}

#[test]
fn a_register_of_another_digest_is_refused() {
    let found = with("no,age,zip\n", |spec| {
        spec.registers.get_mut("town").unwrap().sha256 = Some("0".repeat(64));
    });
    let found = found.unwrap_err().remove(0);
    assert!(found.starts_with("town.csv: its sha256 begins with "), "{found}");
    assert!(found.ends_with(", but the spec pins one that begins with 000000000000"), "{found}");
}

#[test]
fn private_tables_that_can_t_be_joined_are_refused() {
    let mut spec = survey_spec(&[("town", register("town.csv", Some("no")))]);
    spec.tables[0].name = "sensitive".to_owned();
    spec.tables[0].columns[2].name = "sensitive_group".to_owned();
    let twice = "id,age,zip,sensitive_group\nA,20,x,1\nA,30,y,2\n";
    let files = [("survey.csv", twice), ("town.csv", "no,age,zip\nD,1,z\n")];
    assert_eq!(
        load_all(&files, &spec).unwrap_err(),
        [
            "survey.csv: person column 'id' repeats a person in row 2; with a register each person has one row",
            "survey.csv: a column is called 'sensitive_group', a name that releases with a register use themselves",
            "survey.csv: a table is called 'sensitive', a name that releases with a register use themselves",
        ]
    );
}
