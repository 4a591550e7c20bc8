//! README and `docs` show what the examples print.

use std::path::Path;

use crate::runner::Folder;

fn document(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)).unwrap()
}

/// Asserts that a document quotes each line that the command printed, as a code block: indented by four spaces.
fn assert_shown(name: &str, printed: &str) {
    let document = document(name);
    let lines: Vec<&str> = document.lines().collect();
    for line in printed.lines().filter(|line| !line.trim().is_empty()) {
        let shown = format!("    {}", line.trim_end());
        assert!(lines.contains(&shown.as_str()), "{name} does not show '{line}'");
    }
}

/// Asserts that the lines that a document shows as output, which are indented and outside of fences, were printed.
fn assert_was_printed(name: &str, printed: &str) {
    let document = document(name);
    let outside = document.split("```").step_by(2);
    let indented = outside.flat_map(str::lines).filter_map(|line| line.strip_prefix("    "));
    let shown: Vec<&str> = indented.filter(|line| !line.starts_with("cargo ")).collect();
    assert!(!shown.is_empty(), "{name} shows no output");
    for line in shown {
        assert!(printed.lines().any(|printed| printed.trim_end() == line), "'{line}' of {name} was not printed");
    }
}

#[test]
fn documents_show_what_the_clinic_prints() {
    let folder = Folder::new();
    let spec = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/clinic/release.toml");
    let anonymized = folder.run(&["anonymize", spec, "-o", "clinic-release"]);
    assert_eq!(anonymized.code, 0, "{anonymized}");
    assert_was_printed("README.md", &anonymized.stderr);
    assert_shown("docs/anonymize-a-table.md", &anonymized.stderr);

    let verified = folder.run(&["verify", "clinic-release"]);
    assert_eq!(verified.code, 0, "{verified}");
    assert_shown("docs/verify-a-release.md", &verified.stdout);

    let quasi = "birth,postcode,sex,occupation";
    let released = "clinic-release/patients.csv";
    let checked = folder.run(&["check", released, "--quasi", quasi, "--sensitive", "diagnosis", "--k", "5"]);
    assert_eq!(checked.code, 0, "{checked}");
    assert_shown("docs/check-a-table.md", &checked.stdout);
    let patients = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/clinic/patients.csv");
    let risks = ["--by-column", "--suda", "2", "--population", "80000"];
    let checked = folder.run(&[&["check", patients, "--quasi", "postcode,sex,occupation"], &risks[..]].concat());
    assert_eq!(checked.code, 0, "{checked}");
    assert_shown("docs/check-a-table.md", &checked.stdout);

    let asked = folder.run(&["estimate", "clinic-release", "birth >= 1990-01-01 and sex = 'female'"]);
    let first: Vec<&str> = asked.stdout.lines().take(2).collect();
    assert_shown("docs/estimate-counts.md", &first.join("\n"));
    let grouped = folder.run(&["estimate", "clinic-release", "--by", "birth:decade"]);
    assert_shown("docs/estimate-counts.md", &grouped.stdout);
}

#[test]
fn documents_show_what_the_accidents_print() {
    let folder = Folder::new();
    let spec = |name: &str| format!("{}/../../examples/accidents/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let anonymized = folder.run(&["anonymize", &spec("release"), "-o", "accidents-release"]);
    assert_eq!(anonymized.code, 0, "{anonymized}");
    assert_shown("docs/several-audiences.md", &anonymized.stderr);

    for audience in ["insurer", "personnel"] {
        let ran = folder.run(&["anonymize", &spec(&format!("separate/{audience}")), "-o", audience]);
        assert_eq!(ran.code, 0, "{ran}");
    }
    let audiences = ["--audience", "insurer=age,vehicle,postcode", "--audience", "personnel=occupation,age,postcode"];
    let separate = ["audit", "insurer/accidents.csv", "personnel/accidents.csv", "--k", "4"];
    let audited = folder.run(&[&separate[..], &audiences].concat());
    assert_eq!(audited.code, 1, "{audited}");
    assert_shown("docs/audit-releases.md", &audited.stdout);
    assert_shown("docs/audit-releases.md", &audited.stderr);

    let one = folder.run(&[&["audit", "accidents-release/accidents.csv", "--k", "4"][..], &audiences].concat());
    assert_eq!(one.code, 0, "{one}");
}

#[test]
fn documents_show_what_the_survey_prints() {
    let folder = Folder::new();
    let spec = |name: &str| format!("{}/../../examples/register/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let anonymized = folder.run(&["anonymize", &spec("release"), "-o", "survey-release"]);
    assert_eq!(anonymized.code, 0, "{anonymized}");
    assert_shown("docs/with-a-register.md", &anonymized.stderr);
    for arguments in [&["verify", "survey-release"][..], &["verify", "survey-release", "--against", &spec("release")]] {
        let ran = folder.run_in_vain(arguments);
        assert_eq!(ran.code, 0, "{ran}");
    }
    let plain = folder.run(&["anonymize", &spec("plain"), "-o", "plain-release"]);
    let loss = plain.stderr.lines().find(|line| line.starts_with("loss")).unwrap();
    let loss = loss.split_whitespace().nth(1).unwrap();
    assert!(document("docs/with-a-register.md").contains(&format!("costs a loss of {loss}.")), "{plain}");
    let asked = "born between 1950 and 1969 and sex = 'f'";
    let estimated = folder.run(&["estimate", "survey-release", asked]);
    assert_eq!(estimated.code, 0, "{estimated}");
}

#[test]
fn documents_show_what_the_university_prints() {
    let folder = Folder::new();
    let spec = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/university/release.toml");
    let anonymized = folder.run(&["anonymize", spec, "-o", "release"]);
    assert_eq!(anonymized.code, 0, "{anonymized}");
    let document = document("docs/many-tables.md");
    let (_, shown) = document.split_once("among the rest,\n\n").unwrap();
    let shown: Vec<&str> = shown.lines().take_while(|line| line.starts_with("    ")).map(str::trim).collect();
    assert!(shown.len() > 5, "the document shows what is printed");
    for line in shown {
        assert!(anonymized.stderr.lines().any(|printed| printed.trim() == line), "'{line}' is not printed");
    }
}
