//! `kohort init`.

use insta::assert_snapshot;

use crate::runner::{Folder, PATIENTS};

#[test]
fn a_spec_is_suggested_with_reasons() {
    let folder = Folder::with(&[(
        "visits 2024.csv",
        "visit_no,patient id,birth,postcode,note,cost,country\n\
         1,7,1984-03-17,88512,seen,10,x\n2,7,1984-03-17,88512,seen,20,x\n3,8,1990-01-01,89321,,15,x\n",
    )]);
    assert_snapshot!("init", folder.run(&["init", "visits 2024.csv"]));
}

#[test]
fn a_suggested_spec_runs_once_k_is_set() {
    let folder = Folder::with(&[("patients.csv", PATIENTS)]);
    let spec = folder.run(&["init", "patients.csv"]).stdout;
    folder.write("release.toml", spec.as_bytes());
    let ran = folder.run_in_vain(&["anonymize", "release.toml", "-o", "out"]);
    assert_snapshot!("init_without_k", ran);
    folder.write("release.toml", spec.replace("# k =", "k = 2").as_bytes());
    let ran = folder.run(&["anonymize", "release.toml", "-o", "out"]);
    assert_eq!(ran.code, 0, "{ran}");
}

#[test]
fn no_value_of_the_table_is_shown() {
    let folder = Folder::with(&[("patients.csv", PATIENTS)]);
    let shown = folder.run(&["init", "patients.csv"]).stdout;
    for value in ["Ada", "88512", "asthma", "north"] {
        assert!(!shown.contains(value), "{value}");
    }
}
