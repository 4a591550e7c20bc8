//! Changes of cells: rounding, truncating, top and bottom coding.

use super::*;
use crate::Bound;
use crate::hierarchy::DateLevel;

#[test]
fn changes_of_cells_are_read_as_they_were_meant() {
    let spec = Spec::parse(
        "k = 3\n[tables.t]\nfile = \"t.csv\"\n[tables.t.columns]\nage = { role = \"quasi\", top = 90, bottom = -0.5 }\n\
         pay = { role = \"sensitive\", round = 0.5, top = { quantile = 0.99 } }\n\
         day = { role = \"plain\", type = \"date\", truncate = \"month\", bottom = 2000-01-01 }\n",
    )
    .unwrap();
    let named = Spec::parse(
        "k = 3\n[tables.t]\nfile = \"t.csv\"\nperson = \"id\"\n[tables.t.columns]\nq = \"quasi\"\n\
         id = { role = \"pseudonym\", key_file = \"keys/p.key\" }\n",
    );
    let id = named.unwrap().tables[0].columns[1].clone();
    assert_eq!((id.role, id.transform.pseudonym_key), (Role::Plain, Some("keys/p.key".into())));
    let at = |bound: &str| Some(Bound::At(bound.to_owned()));
    let expected = [
        Transform { top: at("90"), bottom: at("-0.5"), ..Transform::default() },
        Transform { round: Some("0.5".to_owned()), top: Some(Bound::Quantile(0.99)), ..Transform::default() },
        Transform { truncate: Some(DateLevel::Month), bottom: at("2000-01-01"), ..Transform::default() },
    ];
    assert_eq!(spec.transformed().map(|column| column.transform.clone()).collect::<Vec<_>>(), expected);
}

#[test]
fn changes_of_cells_that_mean_nothing_are_all_reported() {
    let columns = [
        "a = { role = \"quasi\", round = 0 }",
        "b = { role = \"quasi\", round = 1e3 }",
        "c = { role = \"quasi\", truncate = \"week\" }",
        "d = { role = \"quasi\", top = { quantile = 1 } }",
        "e = { role = \"quasi\", top = { quantil = 0.5 } }",
        "f = { role = \"quasi\", top = true }",
        "g = { role = \"identifier\", top = 5 }",
        "h = { role = \"quasi\", top = 5, hierarchy = { steps = [5] } }",
        "i = { role = \"quasi\", round = 5, truncate = \"year\" }",
        "j = { role = \"quasi\", type = \"timestamp\", truncate = \"year\" }",
        "k = { role = \"plain\", type = \"integer\" }",
        "l = \"pseudonym\"",
        "m = { role = \"pseudonym\" }",
        "n = { role = \"pseudonym\", key_file = \"\" }",
        "o = { role = \"pseudonym\", key_file = \"k\", round = 5 }",
        "p = { role = \"pseudonym\", key_file = \"k\", type = \"text\" }",
        "r = { role = \"plain\", key_file = \"k\" }",
    ];
    for column in columns {
        let text = format!("k = 3\n[tables.t]\nfile = \"t.csv\"\n[tables.t.columns]\nq = \"quasi\"\n{column}\n");
        let problems = Spec::parse(&text).unwrap_err();
        assert!(problems.0.iter().all(|problem| problem.line == Some(6)), "{column}: {problems}");
    }
    let child = "k = 3\n[tables.p]\nfile = \"p.csv\"\nperson = \"id\"\n[tables.p.columns]\nq = \"quasi\"\n[tables.c]\nfile = \"c.csv\"\n\
         parent = { table = \"p\", foreign_key = \"p\" }\n[tables.c.columns]\n\
         v = { role = \"pseudonym\", key_file = \"k\" }\n";
    let problems = Spec::parse(child).unwrap_err();
    assert!(matches!(problems.0[..], [SpecError { fault: SpecErrorKind::PseudonymInTables, .. }]), "{problems}");
    let quantile = "v = { role = \"sensitive\", top = { quantile = 0.5 } }";
    let child = format!(
        "k = 3\n[tables.p]\nfile = \"p.csv\"\nperson = \"id\"\n[tables.p.columns]\nq = \"quasi\"\n[tables.c]\nfile = \"c.csv\"\n\
         parent = {{ table = \"p\", foreign_key = \"p\" }}\n[tables.c.columns]\n{quantile}\n"
    );
    let problems = Spec::parse(&child).unwrap_err();
    assert!(matches!(problems.0[..], [SpecError { fault: SpecErrorKind::QuantileInChild, .. }]), "{problems}");
}
