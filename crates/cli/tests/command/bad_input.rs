//! Wrong input of every kind: the message says where and what to do, the exit code is right, nothing is written, and no cell
//! is shown.

use insta::assert_snapshot;

use crate::runner::{Folder, PATIENTS, Ran, SPEC};

/// Values of the small clinic that no message may show.
const CELLS: &[&str] = &["Ada", "88512", "asthma", "north", "secret"];

/// Runs the spec of the small clinic on these files, and expects that nothing is written.
fn refused(files: &[(&str, &str)]) -> Ran {
    let folder = Folder::with(&[("patients.csv", PATIENTS), ("release.toml", SPEC)]);
    for (name, text) in files {
        folder.write(name, text.as_bytes());
    }
    refused_in(&folder, &["anonymize", "release.toml", "-o", "out"])
}

fn refused_in(folder: &Folder, arguments: &[&str]) -> Ran {
    let ran = folder.run_in_vain(arguments);
    assert_ne!(ran.code, 0);
    assert_eq!(ran.stdout, "");
    for cell in CELLS {
        assert!(!ran.stderr.contains(cell), "a cell is shown: {}", ran.stderr);
    }
    ran
}

/// Runs the spec of the small clinic on another table.
fn refused_table(text: &str) -> Ran {
    refused(&[("patients.csv", text)])
}

/// Runs the table of the small clinic with one line of its spec changed.
fn refused_spec(line: &str, instead: &str) -> Ran {
    assert!(SPEC.contains(line));
    refused(&[("release.toml", &SPEC.replace(line, instead))])
}

#[test]
fn a_column_without_a_role() {
    assert_snapshot!(refused_spec("ward = \"plain\"\n", ""));
}

#[test]
fn a_column_that_is_not_there() {
    assert_snapshot!(refused_spec("ward = \"plain\"", "ward = \"plain\"\nheight = \"drop\"\nwards = \"plain\""));
}

#[test]
fn blocks_of_persons_without_a_name() {
    assert_snapshot!(refused_spec("k = 2\n", "k = 2\nalgorithm = \"datafly\"\ndatafly = { block = 4 }\n"));
}

#[test]
fn a_column_that_is_there_twice() {
    assert_snapshot!(refused_table("name,age,zip,sex,age,disease\nsecret,1,2,3,4,5\n"));
}

#[test]
fn values_missing_from_a_hierarchy() {
    let spec = SPEC.replace("{ mask = \"right\" }", "\"zip.csv\"");
    assert_snapshot!(refused(&[("release.toml", &spec), ("zip.csv", "88514;885**;*\n88540;885**;*\n")]));
}

#[test]
fn a_cyclic_hierarchy() {
    let spec = SPEC.replace("{ mask = \"right\" }", "{ edges = \"zip.csv\" }");
    assert_snapshot!(refused(&[("release.toml", &spec), ("zip.csv", "secret;b\nb;c\nc;secret\n")]));
}

#[test]
fn a_hierarchy_with_two_parents() {
    let spec = SPEC.replace("{ mask = \"right\" }", "\"zip.csv\"");
    assert_snapshot!(refused(&[("release.toml", &spec), ("zip.csv", "88512;885**;*\n88514;885**;88***;*\n")]));
}

#[test]
fn a_hierarchy_that_is_not_there() {
    let spec = SPEC.replace("{ mask = \"right\" }", "\"zip.csv\"");
    assert_snapshot!(refused(&[("release.toml", &spec)]));
}

#[test]
fn a_ragged_row() {
    assert_snapshot!(refused_table(&format!("{PATIENTS}secret,1,2\nIda,39,88542,f,south,flu,secret\n")));
}

#[test]
fn a_quote_that_is_never_closed() {
    assert_snapshot!(refused_table(&format!("{PATIENTS}\"secret,39,88542,f,south,flu\n")));
}

#[test]
fn text_after_a_closing_quote() {
    assert_snapshot!(refused_table(&format!("{PATIENTS}\"secret\"x,39,88542,f,south,flu\n")));
}

#[test]
fn bytes_that_are_no_utf_8() {
    let folder = Folder::with(&[("release.toml", SPEC)]);
    folder.write("patients.csv", b"name,age,zip,sex,ward,disease\nsecret,1,2,f,\xff,flu\n");
    assert_snapshot!(refused_in(&folder, &["anonymize", "release.toml", "-o", "out"]));
}

#[test]
fn an_empty_file() {
    assert_snapshot!(refused_table(""));
}

#[test]
fn a_header_without_rows() {
    assert_snapshot!(refused_table("name,age,zip,sex,ward,disease\n"));
}

#[test]
fn text_where_numbers_are_meant() {
    let spec = SPEC.replace("age = \"quasi\"", "age = { role = \"quasi\", type = \"integer\" }");
    let table = PATIENTS.replace("34,", "secret,");
    assert_snapshot!(refused(&[("release.toml", &spec), ("patients.csv", &table)]));
}

#[test]
fn steps_over_text() {
    let spec = SPEC.replace("age = \"quasi\"", "age = { role = \"quasi\", hierarchy = { steps = [5, 10] } }");
    let table = PATIENTS.replace("34,", "secret,");
    assert_snapshot!(refused(&[("release.toml", &spec), ("patients.csv", &table)]));
}

#[test]
fn a_k_below_one() {
    assert_snapshot!(refused_spec("k = 2", "k = 0"));
}

#[test]
fn a_k_that_is_missing() {
    assert_snapshot!(refused_spec("k = 2\n", ""));
}

#[test]
fn a_k_above_the_number_of_persons() {
    let ran = refused_spec("k = 2", "k = 9");
    assert_eq!(ran.code, 1);
    assert_snapshot!(ran);
}

#[test]
fn a_diversity_that_the_table_does_not_have() {
    let ran = refused_spec("l = 2", "l = 4");
    assert_eq!(ran.code, 1);
    assert_snapshot!(ran);
}

#[test]
fn a_person_who_is_null() {
    let spec = SPEC.replace("file = \"patients.csv\"", "file = \"patients.csv\"\nperson = \"name\"");
    assert_snapshot!(refused(&[("release.toml", &spec), ("patients.csv", &PATIENTS.replace("Ada,", ","))]));
}

#[test]
fn leftovers_without_a_limit() {
    assert_snapshot!(refused_spec("k = 2", "k = 2\nleftovers = \"suppress\""));
}

#[test]
fn a_column_that_holds_ranges_already() {
    assert_snapshot!(refused_table(&PATIENTS.replace("34,", "\"[30,39]\",").replace("36,", "*,")));
}

#[test]
fn a_masked_column_that_holds_masks_already() {
    assert_snapshot!(refused_table(&PATIENTS.replace("88514", "885**")));
}

#[test]
fn dates_that_no_calendar_has() {
    let spec = SPEC.replace("age = \"quasi\"", "age = { role = \"quasi\", hierarchy = \"date\" }");
    let mut table = PATIENTS.to_owned();
    for age in ["36,", "35,", "38,", "61,", "63,", "65,", "68,"] {
        table = table.replace(age, "1984-03-17,");
    }
    assert_snapshot!(refused(&[("release.toml", &spec), ("patients.csv", &table.replace("34,", "1984-02-30,"))]));
}

#[test]
fn a_table_that_is_not_there() {
    let folder = Folder::with(&[("release.toml", SPEC)]);
    assert_snapshot!(refused_in(&folder, &["anonymize", "release.toml", "-o", "out"]));
}

#[test]
fn a_spec_that_is_not_there() {
    assert_snapshot!(refused_in(&Folder::new(), &["anonymize", "release.toml", "-o", "out"]));
}

#[test]
fn a_spec_with_many_problems() {
    assert_snapshot!(refused(&[(
        "release.toml",
        "k = 2.5\nalgoritm = \"mondrian\"\n[tables.patients]\nfile = \"patients.csv\"\nperson = \"age\"\n\
         [tables.patients.columns]\nage = \"quasi\"\nzip = { role = \"qasi\", l = 2 }\n",
    )]));
}

#[test]
fn a_spec_that_is_no_toml() {
    assert_snapshot!(refused_spec("k = 2", "k = 2\nk = 3"));
}

#[test]
fn an_algorithm_for_several_tables() {
    assert_snapshot!(refused_spec("k = 2", "k = 2\nalgorithm = \"miracle\""));
}

#[test]
fn flags_that_do_not_fit() {
    let folder = Folder::with(&[("patients.csv", PATIENTS), ("release.toml", SPEC)]);
    let run = |arguments: &[&str]| refused_in(&folder, &[&["anonymize"], arguments, &["-o", "out"]].concat());
    assert_snapshot!("flags_with_a_spec", run(&["release.toml", "--k", "5", "--quasi", "age"]));
    assert_snapshot!("flags_without_k", run(&["patients.csv", "--identifier", "name"]));
    assert_snapshot!("flags_without_roles", run(&["patients.csv", "--k", "2", "--quasi", "age,zip"]));
    let mut flags = vec!["patients.csv", "--k", "0", "--quasi", "age,zip", "--plain", "age", "--person", "zip"];
    flags.extend(["--sensitive", "disease:l=0,tt=3", "--hierarchy", "ward=flat", "--leftovers", "suppress"]);
    assert_snapshot!("flags_with_many_problems", run(&flags));
    assert_snapshot!("flags_with_memory", run(&["release.toml", "--memory", "plenty"]));
    let ran = refused_in(&folder, &["anonymize", "release.toml", "-o", "-", "--memory", "2GB"]);
    assert_snapshot!("flags_with_memory_and_stdout", ran);
    assert_snapshot!("flags_with_an_unknown_format", run(&["release.toml", "--format", "xlsx"]));
    assert_snapshot!("flags_with_no_threads", run(&["release.toml", "--threads", "0"]));
    let ran = refused_in(&folder, &["anonymize", "release.toml", "-o", "-", "--format", "parquet"]);
    assert_snapshot!("flags_that_print_parquet", ran);
}

#[test]
fn an_output_folder_without_a_parent() {
    let folder = Folder::with(&[("patients.csv", PATIENTS), ("release.toml", SPEC)]);
    assert_snapshot!(refused_in(&folder, &["anonymize", "release.toml", "-o", "no/where/out"]));
}

#[test]
fn an_output_folder_that_is_a_file() {
    let folder = Folder::with(&[("patients.csv", PATIENTS), ("release.toml", SPEC)]);
    assert_snapshot!(refused_in(&folder, &["anonymize", "release.toml", "-o", "patients.csv"]));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk() {
    use std::process::{Command, Stdio};
    let folder = Folder::with(&[("patients.csv", PATIENTS), ("release.toml", SPEC)]);
    let before = folder.contents();
    let output = Command::new(env!("CARGO_BIN_EXE_kohort"))
        .args(["anonymize", "release.toml", "-o", "-"])
        .current_dir(folder.path(""))
        .stdout(std::fs::File::options().write(true).open("/dev/full").unwrap())
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(before, folder.contents());
    assert_snapshot!(String::from_utf8(output.stderr).unwrap());
}

#[cfg(target_os = "linux")]
#[test]
fn a_target_that_nobody_can_write_to() {
    let folder = Folder::with(&[("patients.csv", PATIENTS), ("release.toml", SPEC)]);
    let ran = refused_in(&folder, &["anonymize", "release.toml", "-o", "/proc/kohort-release"]);
    assert_eq!(ran.code, 3);
    assert!(ran.stderr.starts_with("error: /proc: can't be written: "), "{ran}");
    assert!(ran.stderr.contains("\nhint: check that there is space left and that you may write there"), "{ran}");
}
