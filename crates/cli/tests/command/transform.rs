//! Cells that are changed before classes are made: `round`, `truncate`, `top` and `bottom`.

use crate::runner::{Folder, PATIENTS};

/// Pay and birth are changed like the quasi column.
const STAFF: &str = "\
age,birth,pay,job
34,1991-03-17,1210.50,nurse
36,1989-12-31,1385.00,porter
35,1990-01-01,1240.00,nurse
38,1987-06-30,1260.00,porter
61,1964-02-29,1275.00,nurse
63,1962-11-05,9800.00,porter
65,1960-08-09,1990.00,nurse
68,1957-04-01,8700.25,porter
";

const SPEC: &str = "\
k = 2
[tables.staff]
file = \"staff.csv\"
[tables.staff.columns]
age = { role = \"quasi\", top = 65, bottom = 35 }
birth = { role = \"plain\", truncate = \"decade\" }
pay = { role = \"sensitive\", round = 100, top = 8000 }
job = \"plain\"
";

fn staff() -> Folder {
    Folder::with(&[("staff.csv", STAFF), ("release.toml", SPEC)])
}

fn released() -> Folder {
    let folder = staff();
    let ran = folder.run(&["anonymize", "release.toml", "-o", "out", "--accept-risks"]);
    assert_eq!(ran.code, 0, "{ran}");
    folder
}

#[test]
fn changed_cells_are_released_and_verified_in_every_way() {
    let folder = released();
    let csv = folder.read("out/staff.csv");
    let mut rows: Vec<&str> = csv.lines().collect();
    rows[1..].sort_unstable();
    assert_eq!(
        rows,
        [
            "age,birth,pay,job",
            "\"[36,38]\",1980-01-01,1300,porter",
            "\"[36,38]\",1980-01-01,1400,porter",
            "\"[61,63]\",1960-01-01,1300,nurse",
            "\"[61,63]\",1960-01-01,>= 8000,porter",
            "<= 35,1990-01-01,1200,nurse",
            "<= 35,1990-01-01,1200,nurse",
            ">= 65,1950-01-01,>= 8000,porter",
            ">= 65,1960-01-01,2000,nurse",
        ]
    );
    let against = ["verify", "out", "--against", "release.toml"];
    for arguments in [&["verify", "out"][..], &["verify", "out", "--memory", "1GB"], &against] {
        let ran = folder.run_in_vain(arguments);
        assert_eq!(ran.code, 0, "{ran}");
    }
    let columns = &folder.manifest()["tables"][0]["columns"];
    assert_eq!((columns["age"]["top"].as_str(), columns["age"]["bottom"].as_str()), (Some("65"), Some("35")));
    assert_eq!((columns["pay"]["rounded"].as_str(), columns["pay"]["top"].as_str()), (Some("100"), Some("8000")));
    assert_eq!(columns["birth"]["truncated"], "decade");
}

#[test]
fn a_class_that_reaches_a_code_shows_a_range_up_to_the_code() {
    let folder = staff();
    let ran = folder.run(&["anonymize", "release.toml", "--k", "4", "-o", "out", "--accept-risks"]);
    assert_eq!(ran.code, 0, "{ran}");
    let csv = folder.read("out/staff.csv");
    assert_eq!(csv.matches("\"[<= 35,38]\"").count(), 4, "{csv}");
    assert_eq!(csv.matches("\"[61,>= 65]\"").count(), 4, "{csv}");
    assert_eq!(folder.run_in_vain(&["verify", "out", "--against", "release.toml", "--k", "4"]).code, 0);
}

#[test]
fn every_cell_that_is_not_what_the_spec_makes_of_it_is_rejected() {
    let forgeries = [
        // The exact value behind a code, and ranges that claim to know more or something else.
        (">= 65,1950", "68,1950"),
        (">= 65,1950", "65,1950"),
        (">= 65,1950", ">= 60,1950"),
        (">= 65,1950", "<= 35,1950"),
        ("<= 35,1990-01-01,1200", "35,1990-01-01,1200"),
        ("\"[61,63]\",1960-01-01,1300", "\"[61,65]\",1960-01-01,1300"),
        // A sensitive value that is not coded or not rounded.
        ("1960-01-01,>= 8000", "1960-01-01,9800"),
        ("1960-01-01,>= 8000", "1960-01-01,9800.00"),
        ("1980-01-01,1400", "1980-01-01,1385.00"),
        ("1980-01-01,1400", "1980-01-01,1300"),
        ("1960-01-01,2000", "1960-01-01,>= 8000"),
        // A day that is not truncated, or to another decade.
        ("1950-01-01", "1957-04-01"),
        ("1950-01-01", "1960-01-01"),
    ];
    for (cell, forged) in forgeries {
        let folder = released();
        folder.forge("out/staff.csv", |csv| csv.replacen(cell, forged, 1));
        let ran = folder.run_in_vain(&["verify", "out", "--against", "release.toml"]);
        assert_eq!(ran.code, 1, "{cell} -> {forged}: {ran}");
    }
}

#[test]
fn a_value_that_should_be_coded_is_rejected_by_the_files_alone() {
    for (cell, forged) in [
        (">= 65,1950", "68,1950"),
        ("\"[61,63]\",1960-01-01,1300", "\"[61,70]\",1960-01-01,1300"),
        ("<= 35,1990-01-01,1200", "<= 36,1990-01-01,1200"),
        ("1960-01-01,>= 8000", "1960-01-01,9800"),
    ] {
        let folder = released();
        folder.forge("out/staff.csv", |csv| csv.replacen(cell, forged, 1));
        let ran = folder.run_in_vain(&["verify", "out"]);
        assert_eq!(ran.code, 1, "{cell} -> {forged}: {ran}");
    }
}

#[test]
fn a_manifest_that_says_something_else_of_the_changes_is_rejected() {
    for (column, key, said) in [
        ("age", "top", "66"),
        ("age", "bottom", "30"),
        ("pay", "rounded", "50"),
        ("pay", "top", "9000"),
        ("birth", "truncated", "year"),
    ] {
        let folder = released();
        folder.claim(|manifest| manifest["tables"][0]["columns"][column][key] = said.into());
        let ran = folder.run_in_vain(&["verify", "out", "--against", "release.toml"]);
        assert_eq!(ran.code, 1, "{column}.{key}: {ran}");
    }
}

#[test]
fn a_release_is_not_verified_against_a_spec_with_other_changes() {
    let folder = released();
    for (said, other) in [
        ("top = 65, ", ""),
        ("top = 65", "top = 68"),
        ("bottom = 35", "bottom = 36"),
        ("round = 100", "round = 50"),
        ("truncate = \"decade\"", "truncate = \"year\""),
    ] {
        folder.write("other.toml", SPEC.replace(said, other).as_bytes());
        let ran = folder.run_in_vain(&["verify", "out", "--against", "other.toml"]);
        assert_eq!(ran.code, 1, "{said}: {ran}");
    }
}

#[test]
fn a_bound_by_quantile_is_never_the_value_of_fewer_than_k_persons() {
    let ages = [20, 20, 30, 30, 40, 40, 50, 60, 70, 80];
    let rows: String = ages.iter().map(|age| format!("{age}\n")).collect();
    let spec = |bound: &str| {
        format!("k = 2\n[tables.a]\nfile = \"a.csv\"\n[tables.a.columns]\nage = {{ role = \"quasi\", {bound} }}\n")
    };
    let folder = Folder::with(&[("a.csv", &format!("age\n{rows}"))]);
    // The quantiles are 80 and 50, which one person has each, and 20.
    for (bound, top, bottom) in [
        ("top = { quantile = 0.99 }", Some("40"), None),
        ("top = { quantile = 0.65 }", Some("40"), None),
        ("bottom = { quantile = 0.25 }", None, Some("30")),
    ] {
        folder.write("release.toml", spec(bound).as_bytes());
        let ran = folder.run(&["anonymize", "release.toml", "-o", "out", "--force"]);
        assert_eq!(ran.code, 0, "{bound}: {ran}");
        let column = &folder.manifest()["tables"][0]["columns"]["age"];
        assert_eq!((column["top"].as_str(), column["bottom"].as_str()), (top, bottom), "{bound}");
        assert_eq!(folder.run_in_vain(&["verify", "out", "--against", "release.toml"]).code, 0);
    }
    folder.write("release.toml", spec("bottom = { quantile = 0.7 }").as_bytes());
    let ran = folder.run_in_vain(&["anonymize", "release.toml", "-o", "out3"]);
    assert_eq!(ran.code, 2, "{ran}");
    assert!(ran.stderr.contains("held by 2 persons"), "{ran}");
}

#[test]
fn bounds_outside_of_the_data_and_wrong_types_are_refused_together_without_a_cell() {
    let folder = staff();
    let columns = "age = { role = \"quasi\", top = 69 }\nbirth = { role = \"quasi\", round = 5 }\n\
                   pay = { role = \"sensitive\", bottom = 100 }\njob = { role = \"plain\", truncate = \"year\" }\n";
    let spec = format!("{}{columns}", SPEC.split_inclusive("[tables.staff.columns]\n").next().unwrap());
    folder.write("release.toml", spec.as_bytes());
    let ran = folder.run_in_vain(&["anonymize", "release.toml", "-o", "out"]);
    assert_eq!(ran.code, 2, "{ran}");
    for message in [
        "column 'age': the bound of top lies outside of the data",
        "column 'birth': round needs numbers, but the column is of type date",
        "column 'pay': the bound of bottom lies outside of the data",
        "column 'job': truncate needs dates, but the column is of type text",
    ] {
        assert!(ran.stderr.contains(message), "{message}: {ran}");
    }
    for cell in ["68", "1210", "nurse", "1991"] {
        assert!(!ran.stderr.contains(cell), "{ran}");
    }
}

#[test]
fn changes_that_contradict_the_spec_are_refused_together() {
    let folder = staff();
    let columns = "age = { role = \"quasi\", top = 65, hierarchy = { steps = [5] } }\n\
                   birth = { role = \"drop\", truncate = \"year\" }\n\
                   pay = { role = \"sensitive\", round = 0, top = { quantile = 1.5 } }\n\
                   job = { role = \"quasi\", type = \"text\", bottom = 5 }\n";
    let spec = format!("{}{columns}", SPEC.split_inclusive("[tables.staff.columns]\n").next().unwrap());
    folder.write("release.toml", spec.as_bytes());
    let ran = folder.run_in_vain(&["anonymize", "release.toml", "-o", "out"]);
    assert_eq!(ran.code, 2, "{ran}");
    assert_eq!(ran.stderr.matches("error: ").count(), 5, "{ran}");
}

#[test]
fn a_table_with_a_limit_on_memory_is_released_with_the_same_changes() {
    let folder = released();
    let ran = folder.run(&["anonymize", "release.toml", "--memory", "1GB", "-o", "limited", "--accept-risks"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(folder.read("limited/staff.csv"), folder.read("out/staff.csv"));
    assert_eq!(folder.read("limited/report.json"), folder.read("out/report.json"));
    let ran = folder.run(&["verify", "limited", "--against", "release.toml", "--memory", "1GB"]);
    assert_eq!(ran.code, 0, "{ran}");
}

#[test]
fn registers_are_refused_by_name() {
    let folder = staff();
    let spec = format!("{SPEC}[registers.voters]\nfile = \"voters.csv\"\n");
    folder.write("register.toml", spec.as_bytes());
    let ran = folder.run_in_vain(&["anonymize", "register.toml", "-o", "out"]);
    assert_eq!(ran.code, 2, "{ran}");
    assert!(ran.stderr.contains("changes of cells are not available with registers"), "{ran}");
}

#[test]
fn a_hierarchy_file_can_have_the_codes_as_leaves() {
    let folder = Folder::with(&[
        ("patients.csv", PATIENTS),
        ("age.csv", "36;30s;*\n38;30s;*\n<= 35;30s;*\n61;60s;*\n63;60s;*\n>= 65;60s;*\n"),
        (
            "release.toml",
            "k = 4\n[tables.patients]\nfile = \"patients.csv\"\n[tables.patients.columns]\nname = \"identifier\"\n\
             age = { role = \"quasi\", top = 65, bottom = 35, hierarchy = \"age.csv\" }\nzip = \"drop\"\nsex = \"drop\"\n\
             ward = \"plain\"\ndisease = \"sensitive\"\n",
        ),
    ]);
    let ran = folder.run(&["anonymize", "release.toml", "-o", "out"]);
    assert_eq!(ran.code, 0, "{ran}");
    let csv = folder.read("out/patients.csv");
    assert_eq!((csv.matches("30s").count(), csv.matches("60s").count()), (4, 4), "{csv}");
    for arguments in [&["verify", "out"][..], &["verify", "out", "--against", "release.toml"]] {
        let ran = folder.run_in_vain(arguments);
        assert_eq!(ran.code, 0, "{ran}");
    }
}

#[test]
fn every_file_format_keeps_changed_cells() {
    for format in ["parquet", "arrow", "csv.gz"] {
        let folder = staff();
        let written = ["--format", format, "--cells", "bounds", "--accept-risks"];
        let ran = folder.run(&[&["anonymize", "release.toml", "-o", "out"][..], &written].concat());
        assert_eq!(ran.code, 0, "{ran}");
        let ran = folder.run_in_vain(&["verify", "out", "--against", "release.toml"]);
        assert_eq!(ran.code, 0, "{ran}");
        // A released file, whose numbers have types of their own now, is changed like a CSV file.
        let spec = "k = 2\n[tables.staff]\nfile = \"out/staff.FORMAT\"\n[tables.staff.columns]\nage = \"drop\"\n\
                    birth = { role = \"plain\" }\npay = \"plain\"\njob = \"quasi\"\n";
        folder.write("again.toml", spec.replace("FORMAT", format).as_bytes());
        let ran = folder.run(&["anonymize", "again.toml", "-o", "again", "--accept-risks"]);
        assert_eq!(ran.code, 0, "{ran}");
    }
}

#[test]
fn estimates_ask_for_all_coded_values_or_none() {
    let folder = released();
    let expected = |conditions: &str| {
        let ran = folder.run_in_vain(&["estimate", "out", conditions, "--json"]);
        assert_eq!(ran.code, 0, "{conditions}: {ran}");
        serde_json::from_str::<serde_json::Value>(&ran.stdout).unwrap()["count"].as_f64().unwrap()
    };
    assert_eq!(expected("age >= 65"), 2.0);
    assert_eq!(expected("age < 65"), 6.0);
    assert_eq!(expected("age <= 35"), 2.0);
    assert_eq!(expected("age > 35"), 6.0);
    assert_eq!(expected("age between 36 and 64"), 4.0);
    for beyond in ["age >= 66", "age > 65", "age = 65", "age between 60 and 70", "age < 35"] {
        let ran = folder.run_in_vain(&["estimate", "out", beyond]);
        assert_eq!(ran.code, 2, "{beyond}: {ran}");
        assert!(ran.stderr.contains("does not tell values of 65 and more or of 35 and less apart"), "{ran}");
    }
}
