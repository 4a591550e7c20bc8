//! One release for several audiences: the accidents of the paper from end to end, and wrong input.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::runner::{Folder, Ran};

pub(crate) const ACCIDENTS: &str = include_str!("../../../testkit/golden/accidents/accident.csv");
pub(crate) const JOBS: &str = include_str!("../../../testkit/golden/accidents/occupation.dgh.csv");
pub(crate) const VEHICLES: &str = include_str!("../../../testkit/golden/accidents/vehicle.dgh.csv");
const THREE_PAIRS: &str = include_str!("../../../testkit/golden/accidents/three_pairs.csv");

pub(crate) const SPEC: &str = "\
k = 2
[tables.accident]
file = \"accident.csv\"
[tables.accident.columns]
occupation = { role = \"quasi\", hierarchy = \"occupation.csv\" }
age = \"quasi\"
vehicle = { role = \"quasi\", hierarchy = \"vehicle.csv\" }
postcode = { role = \"quasi\", type = \"text\", hierarchy = { mask = \"right\" } }
faulty = \"sensitive\"
[audiences.insurer]
quasi = [\"age\", \"vehicle\", \"postcode\"]
[audiences.hr]
quasi = [\"occupation\", \"age\", \"postcode\"]
";

const RUN: &[&str] = &["anonymize", "release.toml", "-o", "out"];

pub(crate) fn accidents() -> Folder {
    Folder::with(&[
        ("release.toml", SPEC),
        ("accident.csv", ACCIDENTS),
        ("occupation.csv", JOBS),
        ("vehicle.csv", VEHICLES),
    ])
}

fn with_spec(spec: &str) -> Folder {
    let folder = accidents();
    folder.write("release.toml", spec.as_bytes());
    folder
}

pub(crate) fn released() -> Folder {
    let folder = accidents();
    let ran = folder.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    folder
}

/// A release without hierarchy files, so that a forged label is judged by its effect on the classes.
fn released_without_hierarchies() -> Folder {
    let folder = with_spec(&format!("hierarchies = \"withhold\"\n{SPEC}"));
    let ran = folder.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    folder
}

/// Runs, expects a failure, and checks that no message shows a cell.
fn refused(folder: &Folder, arguments: &[&str]) -> Ran {
    let ran = folder.run_in_vain(arguments);
    assert_ne!(ran.code, 0);
    for cell in ["Dentist", "Medical", "Truck", "31043", "Yes"] {
        assert!(!ran.stderr.contains(cell), "a cell is shown: {ran}");
    }
    ran
}

fn sorted(text: &str) -> Vec<&str> {
    let mut rows: Vec<&str> = text.lines().skip(1).collect();
    rows.sort_unstable();
    rows
}

#[test]
fn the_accidents_of_the_paper_become_a_butterfly() {
    let folder = accidents();
    let ran = folder.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    let expected = [
        "Finance,30,Sedan,31043,No",
        "Finance,30,Truck,31043,No",
        "Medical,30,Sedan,31043,Yes",
        "Medical,30,Truck,31043,No",
    ];
    assert_eq!(sorted(&folder.read("out/accident.csv")), expected);
    assert_snapshot!("audiences", ran);
    for arguments in [&["verify", "out"][..], &["verify", "out", "--against", "release.toml"]] {
        let ran = folder.run_in_vain(arguments);
        assert_eq!(ran.code, 0, "{ran}");
    }
    assert_snapshot!("audiences_verify", folder.run(&["verify", "out"]));
}

#[test]
fn the_manifest_says_what_each_audience_asked_for_and_got() {
    let folder = released();
    let manifest = folder.manifest();
    let hr = json!({ "k": 2, "quasi": ["occupation", "age", "postcode"] });
    let insurer = json!({ "k": 2, "quasi": ["age", "vehicle", "postcode"] });
    assert_eq!(manifest["audiences"], json!({ "hr": hr, "insurer": insurer }));
    assert_eq!(manifest["achieved"]["k"], 2);
    assert_eq!(manifest["achieved"]["audiences"], json!({ "hr": 2, "insurer": 2 }));
    assert_eq!(manifest["achieved"]["collusion_k"], 1);
    assert_eq!(manifest["requirement"].get("collusion_k"), None);
    let savings = &manifest["savings"];
    assert_eq!(savings["shape"], "butterflies");
    assert_eq!(savings["in_butterflies"], 1.0);
    assert_eq!(savings["release"]["common_penalty"], 0.0);
    let penalty = |method: &str| savings[method]["own_penalty"].as_f64().unwrap();
    assert!(penalty("release") < penalty("union"));
    for count in ["asked", "let_through", "taken"] {
        assert!(savings["bound"][count].is_u64(), "{count}");
    }
}

#[test]
fn verify_counts_each_audience_for_programs_too() {
    let ran = released().run(&["verify", "out", "--json"]);
    let found: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&found["verified"], &found["k"], &found["collusion_k"]), (&json!(true), &json!(2), &json!(1)));
    for audience in ["hr", "insurer"] {
        let counted = &found["audiences"][audience];
        assert_eq!((&counted["k"], &counted["classes"]), (&json!(2), &json!(2)));
        assert_eq!(counted["sensitive"]["faulty"]["l"], 1);
    }
}

#[test]
fn all_audiences_together_can_have_a_k_of_their_own() {
    let folder = with_spec(&format!("{SPEC}[collusion]\nk = 2\n"));
    let ran = folder.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    let manifest = folder.manifest();
    assert_eq!((&manifest["requirement"]["collusion_k"], &manifest["achieved"]["collusion_k"]), (&json!(2), &json!(2)));
    assert!(ran.stderr.contains("all together     k = 2 asked, 2 reached"), "{ran}");
    let ran = folder.run(&["verify", "out", "--against", "release.toml"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stdout.contains("asked            k = 2 for hr, 2 for insurer, 2 for all together\n"), "{ran}");
}

#[test]
fn a_k_above_an_audience_s_own_may_be_asked_of_all_together() {
    let folder = with_spec(&format!("{SPEC}[collusion]\nk = 4\n"));
    let ran = folder.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(folder.manifest()["achieved"]["audiences"], json!({ "hr": 4, "insurer": 4 }));
}

#[test]
fn a_table_that_satisfies_every_audience_is_left_as_it_is() {
    let spec = "k = 2\n[tables.pairs]\nfile = \"pairs.csv\"\ncolumns = { b = { role = \"quasi\", hierarchy = \"flat\" } }\n\
                [audiences.x]\nquasi = [\"a\", \"b\"]\n[audiences.y]\nquasi = [\"b\", \"c\"]\n";
    let folder = Folder::with(&[("release.toml", spec), ("pairs.csv", THREE_PAIRS)]);
    let ran = folder.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(sorted(&folder.read("out/pairs.csv")), sorted(THREE_PAIRS));
    assert_eq!(folder.manifest()["savings"]["shape"], "unchanged");
    assert!(ran.stderr.contains("the table satisfies every audience as it is"), "{ran}");
}

#[test]
fn every_form_of_release_is_verified_for_its_audiences() {
    let printed = accidents().run(&["anonymize", "release.toml", "-o", "-"]);
    assert_eq!(printed.code, 0, "{printed}");
    assert!(printed.stdout.starts_with("occupation,age,vehicle,postcode,faulty\n"));
    for flags in [&["--format", "parquet"][..], &["--cells", "bounds"]] {
        let folder = accidents();
        let ran = folder.run(&[RUN, flags].concat());
        assert_eq!(ran.code, 0, "{ran}");
        for arguments in [&["verify", "out"][..], &["verify", "out", "--against", "release.toml"]] {
            let ran = folder.run_in_vain(arguments);
            assert_eq!(ran.code, 0, "{ran}");
        }
    }
}

#[test]
fn a_forged_release_fails_for_the_audience_it_gives_people_away_to() {
    let folder = released_without_hierarchies();
    folder.forge("out/accident.csv", |table| table.replacen("Truck", "Red Truck", 1));
    assert_snapshot!("audiences_forged", refused(&folder, &["verify", "out"]));
    let against = refused(&folder, &["verify", "out", "--against", "release.toml"]);
    assert_eq!(against.code, 1);
    assert!(against.stderr.contains("audience 'insurer'"), "{against}");
}

#[test]
fn a_release_that_is_no_recoding_fails_against_the_table() {
    let folder = released_without_hierarchies();
    // After this change everybody has k others, but the table is not true.
    folder.forge("out/accident.csv", |table| table.replace("Finance", "Medical").replace("Truck", "Sedan"));
    folder.claim(|manifest| {
        manifest["classes"] = json!(1);
        manifest["achieved"]["k"] = json!(4);
        manifest["achieved"]["collusion_k"] = json!(4);
        manifest["achieved"]["audiences"] = json!({ "hr": 4, "insurer": 4 });
    });
    assert_snapshot!("audiences_untruthful", refused(&folder, &["verify", "out", "--against", "release.toml"]));
}

#[test]
fn a_manifest_that_claims_too_much_or_asks_for_too_little_is_found() {
    let folder = released();
    folder.claim(|manifest| {
        manifest["achieved"]["audiences"]["hr"] = json!(3);
        manifest["achieved"]["collusion_k"] = json!(2);
    });
    assert_snapshot!("audiences_claimed_too_much", refused(&folder, &["verify", "out"]));

    // The manifest claims that an audience knows less than it does. Then nobody knows the column.
    let folder = released();
    folder.claim(|manifest| manifest["audiences"]["insurer"]["quasi"] = json!(["age", "postcode"]));
    assert_snapshot!("audiences_column_of_nobody", refused(&folder, &["verify", "out"]));
    let against = refused(&folder, &["verify", "out", "--against", "release.toml"]);
    assert!(against.stderr.contains("asks for other requirements than manifest.json names"), "{against}");

    let folder = released();
    folder.claim(|manifest| manifest["audiences"]["hr"]["quasi"] = json!(["occupation", "age", "zip"]));
    assert_snapshot!("audiences_column_of_none", refused(&folder, &["verify", "out"]));

    let folder = released();
    folder.claim(|manifest| manifest["requirement"]["collusion_k"] = json!(2));
    assert_snapshot!("audiences_collusion", refused(&folder, &["verify", "out"]));
}

#[test]
fn a_k_above_the_number_of_persons_names_the_audience() {
    let spec = SPEC.replace("quasi = [\"age\", \"vehicle\"", "k = 5\nquasi = [\"age\", \"vehicle\"");
    let ran = refused(&with_spec(&format!("{spec}[collusion]\nk = 9\n")), RUN);
    assert_eq!(ran.code, 1);
    assert_snapshot!("audiences_k_too_large", ran);
}

#[test]
fn wrong_audiences_are_refused_together() {
    let spec = SPEC.replace("quasi = [\"age\", \"vehicle\", \"postcode\"]", "quasi = []\nkk = 3");
    let spec = format!(
        "{}[audiences.both]\nquasi = [\"age\", \"faulty\", \"age\"]\nk = 0\n",
        spec.replace("k = 2", "k = 2\nalgorithm = \"miracle\"")
    );
    let ran = refused(&with_spec(&spec), RUN);
    assert_eq!(ran.code, 2);
    assert_snapshot!("audiences_wrong", ran);
    let ran = refused(&with_spec(&SPEC.replace("k = 2", "k = 2\nalgorithm = \"full-domain\"")), RUN);
    assert_eq!(ran.code, 2);
    assert_snapshot!("audiences_full_domain", ran);
}

#[test]
fn audiences_with_registers_are_to_come() {
    let spec = SPEC.replace("file = \"accident.csv\"", "file = \"accident.csv\"\nperson = \"driver\"");
    let spec = format!("{spec}[registers.voters]\nfile = \"voters.csv\"\nkey = \"driver\"\n");
    let ran = refused(&with_spec(&spec), RUN);
    assert_eq!(ran.code, 2);
    assert_snapshot!("audiences_with_a_register", ran);
}

#[test]
fn more_than_ten_audiences_are_served() {
    let audiences: String = (0..12).map(|n| format!("[audiences.a{n}]\nquasi = [\"age\", \"postcode\"]\n")).collect();
    let folder = with_spec(&format!("{SPEC}{audiences}"));
    let ran = folder.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(folder.manifest()["achieved"]["audiences"].as_object().unwrap().len(), 14);
}

#[test]
fn coalitions_hidden_columns_and_steering_are_asked_counted_and_recorded() {
    let spec = SPEC
        .replace("vehicle = { role = \"quasi\",", "vehicle = { role = \"quasi\", sensitive_to = [\"hr\"], l = 2,")
        .replace("k = 2\n[tables", "k = 2\nsteer = \"common\"\n[tables");
    let both = "[collusion.both]\naudiences = [\"hr\", \"insurer\"]\nk = 2\nsensitive = { faulty = { alpha = 1.0 } }\n";
    let folder = with_spec(&(spec + both));
    let ran = folder.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stderr.contains("only common columns decide who is grouped"), "{ran}");
    let recorded = folder.manifest();
    let asked = json!({ "audiences": ["hr", "insurer"], "k": 2, "sensitive": { "faulty": { "alpha": 1.0 } } });
    assert_eq!(recorded["requirement"]["coalitions"], json!({ "both": asked }));
    assert_eq!(recorded["requirement"]["steer"], "common");
    assert_eq!(recorded["audiences"]["hr"]["sensitive"], json!({ "vehicle": { "l": 2 } }));
    assert!(recorded["achieved"]["coalitions"]["both"]["k"].as_u64().unwrap() >= 2);
    // Figures that depend on columns of several audiences would tell each about the columns of others.
    assert_eq!(recorded["risk"]["highest"].get("before"), None);
    for key in ["union", "separate", "bound", "steer_cost"] {
        assert_eq!(recorded["savings"].get(key), None, "{key}");
    }
    for arguments in [&["verify", "out"][..], &["verify", "out", "--against", "release.toml"]] {
        let ran = folder.run_in_vain(arguments);
        assert_eq!(ran.code, 0, "{ran}");
    }
    folder.claim(|manifest| manifest["achieved"]["coalitions"]["both"]["k"] = json!(9));
    assert_eq!(folder.run_in_vain(&["verify", "out"]).code, 1);
    folder.claim(|manifest| manifest["requirement"]["coalitions"]["both"]["k"] = json!(9));
    assert!(refused(&folder, &["verify", "out"]).stderr.contains("coalition 'both'"));
}

#[test]
fn leaving_out_rows_to_lose_less_is_refused_with_audiences() {
    let spec = SPEC.replace("k = 2\n[tables", "k = 2\nmax_suppressed = 0.5\nleftovers = \"suppress\"\n[tables");
    let ran = refused(&with_spec(&spec), RUN);
    assert_eq!(ran.code, 2, "{ran}");
    assert!(ran.stderr.contains("\"suppress\" is not available with audiences"), "{ran}");
}
