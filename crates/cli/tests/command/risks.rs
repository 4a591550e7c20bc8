//! Blatant risks: releases that satisfy every requirement and that nobody should publish.

use insta::assert_snapshot;
use serde_json::Value;

use crate::runner::{Folder, Ran};

const N_PATIENTS: usize = 120;

/// The `n`th of a sequence of numbers without a pattern.
fn mixed(n: usize, below: usize) -> usize {
    let mixed = (n as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed ^ (mixed >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33) as usize % below
}

/// Ten digits and the check digit of a PESEL.
fn national_id(patient: usize) -> String {
    let digits = format!("{:010}", 4_405_140_000_u64 + mixed(patient, 900_000_000) as u64);
    let weights = [1, 3, 7, 9, 1, 3, 7, 9, 1, 3];
    let sum: u32 = digits.chars().zip(weights).map(|(digit, weight)| digit.to_digit(10).unwrap() * weight).sum();
    format!("{digits}{}", (10 - sum % 10) % 10)
}

/// A hospital: at least six visits of each patient, with a national id, a note and codes of diagnoses.
fn hospital() -> String {
    const WORDS: [&str; 8] = ["seen", "again", "with", "strong", "mild", "pain", "since", "monday"];
    const CODES: [&str; 6] = ["E11.9", "I10", "J45.0", "F32.1", "M54.5", "K21.9"];
    let mut text = "pid;dat;g;plz;tag;code;betrag;bem\n".to_owned();
    for patient in 0..N_PATIENTS {
        let seed = 100 * patient;
        let born = format!("{:02}.{:02}.{}", 1 + mixed(seed, 28), 1 + mixed(seed + 1, 12), 1930 + mixed(seed + 2, 75));
        let n_visits = if patient.is_multiple_of(5) { 12 } else { 6 };
        for visit in 0..n_visits {
            let at = seed + 10 + visit;
            let note: Vec<&str> = (0..4 + mixed(at, 4)).map(|word| WORDS[mixed(31 * at + word, 8)]).collect();
            let sex = ["m", "f"][mixed(seed + 3, 2)];
            text += &format!(
                "{};{born};{sex};{};{:02}.{:02}.2024;{};{},{:02};{}\n",
                national_id(patient),
                88_500 + mixed(seed + 4, 60),
                1 + mixed(7 * at, 28),
                1 + mixed(7 * at + 1, 12),
                CODES[mixed(at, 6)],
                20 + mixed(at, 900),
                mixed(at + 5, 100),
                note.join(" "),
            );
        }
    }
    text
}

/// A careless spec: every column is quasi, and each row is a person.
const EVERYTHING_IS_QUASI: &str = "\
k = 5
[tables.visits]
file = \"visits.csv\"
decimal = \",\"
date_format = \"%d.%m.%Y\"
[tables.visits.columns]
pid = \"quasi\"
dat = { role = \"quasi\", hierarchy = \"date\" }
g = \"quasi\"
plz = { role = \"quasi\", type = \"text\", hierarchy = { mask = \"right\" } }
tag = { role = \"quasi\", hierarchy = \"date\" }
code = \"sensitive\"
betrag = \"drop\"
bem = \"drop\"
";

fn codes(ran: &Ran) -> Vec<String> {
    let manifest: Value = serde_json::from_str(&ran.stdout).unwrap();
    let risks = manifest["accepted_risks"].as_array().cloned().unwrap_or_default();
    risks.iter().map(|risk| risk["code"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_release_that_shows_national_ids_is_refused() {
    let table = hospital();
    let folder = Folder::with(&[("visits.csv", &table), ("release.toml", EVERYTHING_IS_QUASI)]);
    let ran = folder.run_in_vain(&["anonymize", "release.toml", "-o", "out"]);
    assert_eq!(ran.code, 2, "{ran}");
    assert_snapshot!(ran);
    let ids: Vec<String> = (0..N_PATIENTS).map(national_id).collect();
    assert!(ids.iter().all(|id| !ran.stderr.contains(id.as_str())));

    let ran = folder.run(&["anonymize", "release.toml", "-o", "out", "--accept-risks", "--json"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(codes(&ran), ["identifier_shown", "identifier_shown", "rows_are_not_persons"]);
    assert!(ran.stderr.contains("warning: quasi column 'pid' shows "), "{ran}");
    let manifest: Value = serde_json::from_str(&folder.read("out/manifest.json")).unwrap();
    assert_eq!(manifest["accepted_risks"].as_array().unwrap().len(), 3);
    // The risk is real: the verified release shows whole ids.
    let released = folder.read("out/visits.csv");
    assert!(ids.iter().any(|id| released.contains(id.as_str())));
}

#[test]
fn a_suggested_spec_of_the_hospital_has_no_blatant_risk() {
    let folder = Folder::with(&[("visits.csv", &hospital())]);
    let spec = folder.run(&["init", "visits.csv"]).stdout;
    assert_snapshot!(spec);
    folder.write("release.toml", spec.replace("# k =", "k = 5").as_bytes());
    let ran = folder.run(&["anonymize", "release.toml", "-o", "out"]);
    assert_eq!(ran.code, 0, "{ran}");
    let released = folder.read("out/visits.csv");
    assert!((0..N_PATIENTS).all(|patient| !released.contains(&national_id(patient))));
}

/// Persons with one row each: an age, a date of admission, an income and the result of a test.
fn admissions() -> String {
    let row = |person: usize| {
        let (day, result) = (1 + mixed(person, 28), if person % 60 == 7 { "positive" } else { "negative" });
        let income = 20_000 + mixed(person + 1000, 70_000);
        format!("{},2024-{:02}-{day:02},{income},{result}\n", 20 + mixed(person, 60), 1 + mixed(person + 500, 12))
    };
    "age,admitted,income,result\n".to_owned() + &(0..300).map(row).collect::<String>()
}

fn spec(columns: &str) -> String {
    format!(
        "k = 5\n[tables.admissions]\nfile = \"admissions.csv\"\n[tables.admissions.columns]\nage = \"quasi\"\n{columns}"
    )
}

fn refused(columns: &str) -> Ran {
    let folder = Folder::with(&[("admissions.csv", &admissions()), ("release.toml", &spec(columns))]);
    let ran = folder.run_in_vain(&["anonymize", "release.toml", "-o", "out"]);
    assert_eq!(ran.code, 2, "{ran}");
    ran
}

#[test]
fn plain_columns_that_tell_everybody_apart_are_refused() {
    let ran = refused("admitted = \"plain\"\nincome = \"drop\"\nresult = \"plain\"\n");
    assert!(ran.stderr.starts_with("error: plain columns 'admitted', 'result' make "), "{ran}");
}

#[test]
fn diversity_of_continuous_values_is_refused() {
    let ran = refused("admitted = \"drop\"\nincome = { role = \"sensitive\", l = 3 }\nresult = \"drop\"\n");
    assert!(ran.stderr.starts_with("error: sensitive column 'income' has "), "{ran}");
}

#[test]
fn diversity_of_one_value_is_refused() {
    let ran =
        refused("admitted = \"drop\"\nincome = \"drop\"\nresult = { role = \"sensitive\", recursive_cl = [200, 2] }\n");
    assert!(ran.stderr.starts_with("error: sensitive column 'result' holds one value in "), "{ran}");
}

#[test]
fn requirements_that_compare_shares_are_no_risk() {
    let columns = "admitted = \"drop\"\nincome = { role = \"sensitive\", type = \"integer\", l = 3, t = 0.9, distance = \"ordered\" }\n\
         result = \"sensitive\"\n";
    let folder = Folder::with(&[("admissions.csv", &admissions()), ("release.toml", &spec(columns))]);
    let ran = folder.run(&["anonymize", "release.toml", "-o", "out"]);
    assert_eq!(ran.code, 0, "{ran}");
}
