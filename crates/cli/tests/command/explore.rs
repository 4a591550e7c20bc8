//! `kohort explore`.

use serde_json::Value;

use crate::runner::{Folder, PATIENTS, SPEC};

fn clinic() -> Folder {
    Folder::with(&[("patients.csv", PATIENTS), ("release.toml", SPEC)])
}

fn explored(folder: &Folder, arguments: &[&str]) -> Value {
    let ran = folder.run_in_vain(&[&["explore", "release.toml", "--json"], arguments].concat());
    assert_eq!(ran.code, 0, "{ran}");
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn every_run_has_the_figures_of_a_release_with_that_k() {
    let folder = clinic();
    let found = explored(&folder, &["--k", "2..4,8"]);
    let runs = found["series"][0]["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 4);
    for run in runs {
        let k = run["k"].to_string();
        let alone = folder.run_in_vain(&["anonymize", "release.toml", "--k", &k, "--dry-run", "--json"]);
        assert_eq!(alone.code, 0, "{alone}");
        let alone: Value = serde_json::from_str(&alone.stdout).unwrap();
        let reached = &run["achieved"];
        assert_eq!(alone["requirement"]["k"], run["k"]);
        for (key, expected) in [
            ("k", &alone["achieved"]["k"]),
            ("loss", &alone["loss"]["lm"]),
            ("highest_risk", &alone["risk"]["highest"]["after"]),
            ("average_risk", &alone["risk"]["average"]["after"]),
            ("classes", &alone["classes"]),
            ("suppressed", &alone["persons"]["suppressed"]),
            ("algorithm", &alone["algorithm"]),
        ] {
            assert_eq!(&reached[key], expected, "{key} at k = {k}");
        }
    }
}

#[test]
fn each_share_algorithm_and_dropped_column_is_a_series() {
    let folder = clinic();
    let found = explored(
        &folder,
        &["--k", "2,4", "--max-suppressed", "0,0.25", "--algorithm", "auto,mondrian", "--drop-column", "zip"],
    );
    let series = found["series"].as_array().unwrap();
    assert_eq!(series.len(), 8);
    let loss = |series: &Value, run: usize| series["runs"][run]["achieved"]["loss"].as_f64().unwrap();
    for series in series.iter().filter(|series| !series["dropped"].is_null()) {
        // One of the three quasi columns is lost wholly.
        assert!((0..2).all(|run| (1.0 / 3.0..=1.0).contains(&loss(series, run))), "{series}");
    }
    // The same release is made from a spec that drops the column.
    let dropped =
        SPEC.replace("zip = { role = \"quasi\", type = \"text\", hierarchy = { mask = \"right\" } }", "zip = \"drop\"");
    assert_ne!(dropped, SPEC);
    folder.write("dropped.toml", dropped.as_bytes());
    let alone = folder.run_in_vain(&["anonymize", "dropped.toml", "--dry-run", "--json"]);
    let alone: Value = serde_json::from_str(&alone.stdout).unwrap();
    let without = series
        .iter()
        .find(|series| series["dropped"] == "zip" && series["algorithm"] == "auto" && series["max_suppressed"] == 0.0);
    let lm = alone["loss"]["lm"].as_f64().unwrap();
    assert!((loss(without.unwrap(), 0) - (2.0 * lm + 1.0) / 3.0).abs() < 1e-12);
}

#[test]
fn a_k_that_can_not_be_reached_is_said_beside_the_others() {
    let folder = clinic();
    let ran = folder.run_in_vain(&["explore", "release.toml", "--k", "2,9"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stdout.contains("     9 k = 9 can't be reached with 8 persons\n"), "{ran}");
    assert!(ran.stdout.contains("no knee"), "{ran}");
    let ran = folder.run_in_vain(&["explore", "release.toml", "--k", "9..12", "--json"]);
    assert_eq!(ran.code, 1, "{ran}");
    assert!(ran.stderr.contains("no release can be reached"), "{ran}");
}

#[test]
fn the_plot_is_a_file_or_text() {
    let folder = clinic();
    let text = folder.run_in_vain(&["explore", "release.toml", "--k", "2..4"]);
    assert!(text.stdout.contains("highest risk\na  algorithm auto"), "{text}");
    let ran = folder.run(&["explore", "release.toml", "--k", "2..4", "--plot", "risk.svg"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(!ran.stdout.contains("a capital letter"), "{ran}");
    let svg = folder.read("risk.svg");
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>"));
    assert!(svg.matches("<circle ").count() >= 3);
    let ran = folder.run_in_vain(&["explore", "release.toml", "--k", "2", "--plot", "release.toml"]);
    assert_eq!(ran.code, 2, "{ran}");
}

#[test]
fn a_blatant_risk_is_a_warning_because_nothing_is_released() {
    let rows: String = (0..40).map(|row| format!("{},p{row}\n", row % 4)).collect();
    let folder = Folder::with(&[
        ("a.csv", &format!("age,badge\n{rows}")),
        (
            "release.toml",
            "k = 5\n[tables.a]\nfile = \"a.csv\"\n[tables.a.columns]\nage = \"quasi\"\nbadge = \"plain\"\n",
        ),
    ]);
    let ran = folder.run_in_vain(&["explore", "release.toml", "--k", "5,10"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(ran.stderr.matches("warning: a release would be refused: ").count(), 1, "{ran}");
    assert!(!ran.stdout.contains("p7"), "{ran}");
}

#[test]
fn options_that_do_not_fit_are_refused_together() {
    let folder = clinic();
    let ran = folder.run_in_vain(&[
        "explore",
        "release.toml",
        "--k",
        "2",
        "--max-suppressed",
        "1.5",
        "--algorithm",
        "miracle",
        "--drop-column",
        "ward,nothing",
    ]);
    assert_eq!(ran.code, 2, "{ran}");
    assert_eq!(ran.stderr.matches("error: ").count(), 4, "{ran}");
    for arguments in [&["--k", "0"][..], &["--k", "5..2"], &["--k", "2", "--algorithm", "magic"], &[]] {
        assert_eq!(folder.run_in_vain(&[&["explore", "release.toml"], arguments].concat()).code, 2);
    }
    let register = format!("{SPEC}[registers.voters]\nfile = \"voters.csv\"\n");
    folder.write("register.toml", register.as_bytes());
    let ran = folder.run_in_vain(&["explore", "register.toml", "--k", "2"]);
    assert!(ran.code == 2 && ran.stderr.contains("exploring with registers is not available"), "{ran}");
}

#[test]
fn many_tables_and_audiences_are_explored_like_one_table() {
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    for (example, k) in [("university", "2,3"), ("accidents", "2,3")] {
        let spec = format!("{examples}/{example}/release.toml");
        let folder = Folder::new();
        let ran = folder.run_in_vain(&["explore", &spec, "--k", k, "--json"]);
        assert_eq!(ran.code, 0, "{ran}");
        let found: Value = serde_json::from_str(&ran.stdout).unwrap();
        for run in found["series"][0]["runs"].as_array().unwrap() {
            let alone = folder.run_in_vain(&["anonymize", &spec, "--k", &run["k"].to_string(), "--dry-run", "--json"]);
            let alone: Value = serde_json::from_str(&alone.stdout).unwrap();
            assert_eq!(run["achieved"]["loss"], alone["loss"]["lm"], "{example}");
            assert_eq!(run["achieved"]["highest_risk"], alone["risk"]["highest"]["after"], "{example}");
        }
        let refused = folder.run_in_vain(&["explore", &spec, "--k", k, "--drop-column", "age"]);
        assert_eq!(refused.code, 2, "{refused}");
    }
}

#[test]
fn a_release_with_another_k_is_verified_against_the_spec_and_that_k() {
    let folder = clinic();
    let ran = folder.run(&["anonymize", "release.toml", "--k", "4", "-o", "out"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(folder.manifest()["requirement"]["k"], 4);
    let against = ["verify", "out", "--against", "release.toml"];
    assert_eq!(folder.run_in_vain(&against).code, 1);
    assert_eq!(folder.run_in_vain(&[&against[..], &["--k", "4"]].concat()).code, 0);
    let ran = folder.run_in_vain(&["anonymize", "release.toml", "--k", "0", "-o", "out2"]);
    assert_eq!(ran.code, 2, "{ran}");
}
