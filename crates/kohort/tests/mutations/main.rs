//! Changes releases. Every harmful change must be rejected, and every harmless one accepted.
//!
//! Releases of every kind are made like `kohort anonymize` makes them, changed in every way that
//! [`kohort_testkit::mutations`] lists, and judged like `kohort verify` judges them. The oracle there says which changes are
//! harmful. Run with `--nocapture` to see the counts.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod releases;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use kohort::{Error, Job, Manifest, Memory, Silent, Verification};
use kohort_io::DOCUMENTS;
use kohort_model::Role;
use kohort_testkit::mutations::cells::changed_cells;
use kohort_testkit::mutations::claims::{changed_claims, is_below};
use kohort_testkit::mutations::judges::{Judgement, false_claims, with_figures};
use kohort_testkit::mutations::rows::changed_rows;
use kohort_testkit::mutations::{Cell, Sheet};
use serde_json::Value;
use sha2::{Digest, Sha256};

use releases::{Kind, Released};

/// The answer of `kohort verify`.
#[derive(Clone, Debug, PartialEq)]
enum Outcome {
    /// Verified, except these keys of the manifest.
    Accepted(Vec<String>),
    Rejected(Vec<String>),
    CannotTell,
}

/// What the verifier has in addition to the released files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    FilesAlone,
    Against,
}

fn verify(folder: &Path, mode: Mode) -> Outcome {
    let against = (mode == Mode::Against).then(|| folder.join("release.toml"));
    let release = folder.join("out");
    outcome(match against {
        None => kohort::verify(release),
        Some(spec) => Job::read(spec).and_then(|job| kohort::verify_against(release, &job)),
    })
}

/// The answer of a verifier that has memory for a few rows only. `None` if it refuses this kind of release by name.
fn verify_in_parts(folder: &Path) -> Option<Outcome> {
    let memory = Memory::bytes(1 << 24).rows_per_cell(2);
    let job = Job::read(folder.join("release.toml")).unwrap();
    let found = kohort::verify_against_within(folder.join("out"), &job, memory, &Silent);
    if let Err(Error::Input(reports)) = &found
        && reports.iter().all(|report| report.message.ends_with("can't be counted in parts in this version"))
    {
        return None;
    }
    Some(outcome(found))
}

fn outcome(found: Result<Verification, Error>) -> Outcome {
    match found {
        Ok(found) if found.wrong.is_empty() => {
            Outcome::Accepted([found.claims.unconfirmed, found.claims.taken].concat())
        }
        Err(Error::CannotTell(_)) => Outcome::CannotTell,
        Ok(found) => Outcome::Rejected(messages(&found.wrong)),
        Err(error) => Outcome::Rejected(messages(&error.reports())),
    }
}

fn messages(reports: &[kohort::Report]) -> Vec<String> {
    reports.iter().map(|report| report.message.clone()).collect()
}

/// The results for changes of one name.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    harmful: u64,
    rejected_alone: u64,
    rejected_against: u64,
    /// Accepted, and the key named as not confirmed.
    named_against: u64,
    harmless: u64,
    accepted: u64,
    cannot_tell: u64,
    /// Judged against the private table in parts, too, with the same answer.
    in_parts: u64,
}

/// All results, by kind of release or by name of change.
#[derive(Default)]
struct Report {
    counts: BTreeMap<String, Counts>,
    failures: Vec<String>,
}

/// The judgement of the oracle.
enum Truth<'a> {
    Harmless,
    /// The change makes these keys of the manifest false; none if it makes the release itself untrue.
    Harmful(&'a [String]),
}

impl Report {
    /// Judges a change, and returns the answer of `verify` against the private tables.
    fn add(&mut self, folder: &Path, kind: &str, name: &str, truth: &Truth<'_>) -> Outcome {
        let [alone, against] = [Mode::FilesAlone, Mode::Against].map(|mode| verify(folder, mode));
        let counts = self.counts.entry(kind.to_owned()).or_default();
        counts.cannot_tell += u64::from(alone == Outcome::CannotTell) + u64::from(against == Outcome::CannotTell);
        let mut fail = |why: &str| self.failures.push(format!("{kind}: {name}: {why}"));
        if let Some(in_parts) = verify_in_parts(folder) {
            counts.in_parts += 1;
            // A file that can't be read may be refused for another reason first.
            let are_rejected = matches!((&in_parts, &against), (Outcome::Rejected(_), Outcome::Rejected(_)));
            if in_parts != against && !are_rejected {
                fail(&format!("against the private table {against:?}, and in parts {in_parts:?}"));
            }
        }
        match truth {
            Truth::Harmless => {
                counts.harmless += 1;
                match (&alone, &against) {
                    (Outcome::Accepted(_), Outcome::Accepted(_)) => counts.accepted += 1,
                    (Outcome::Accepted(_), _) => {
                        fail(&format!("harmless, and rejected against the private tables: {against:?}"));
                    }
                    _ => fail(&format!("harmless, and rejected from files alone: {alone:?}")),
                }
            }
            Truth::Harmful(keys) => {
                counts.harmful += 1;
                counts.rejected_alone += u64::from(matches!(alone, Outcome::Rejected(_)));
                let are_named =
                    |unconfirmed: &[String]| !keys.is_empty() && keys.iter().all(|key| is_below(key, unconfirmed));
                match &against {
                    Outcome::Rejected(_) => counts.rejected_against += 1,
                    Outcome::Accepted(unconfirmed) if are_named(unconfirmed) => counts.named_against += 1,
                    _ => fail(&format!("harmful ({keys:?}), and accepted against the private tables: {against:?}")),
                }
            }
        }
        against
    }

    /// A false claim must also be rejected, or named as not confirmed, from the files alone.
    fn add_claim(&mut self, folder: &Path, kind: &str, name: &str, key: &str) -> Outcome {
        if let Outcome::Accepted(unconfirmed) = verify(folder, Mode::FilesAlone)
            && !is_below(key, &unconfirmed)
        {
            self.failures.push(format!("{kind}: {name}: accepted from files alone, and not named"));
        }
        self.add(folder, kind, name, &Truth::Harmful(&[key.to_owned()]))
    }

    fn print(&self, title: &str) {
        println!("\n{title}\n");
        println!(
            "| release | harmful | rejected with --against | named as not confirmed | rejected from files alone | harmless | accepted | can't tell | the same in parts |"
        );
        println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
        for (name, counts) in &self.counts {
            let Counts {
                harmful,
                rejected_alone,
                rejected_against,
                named_against,
                harmless,
                accepted,
                cannot_tell,
                in_parts,
            } = counts;
            println!(
                "| {name} | {harmful} | {rejected_against} | {named_against} | {rejected_alone} | {harmless} | {accepted} | {cannot_tell} | {in_parts} |"
            );
        }
    }

    fn assert_all_right(&self) {
        let n = self.failures.len();
        let some: Vec<&String> = self.failures.iter().take(12).collect();
        assert!(n == 0, "{n} changes are judged wrongly, among them:\n{some:#?}");
        assert!(self.counts.values().any(|counts| counts.in_parts > 0), "nothing was judged in parts");
        let undecided: u64 = self.counts.values().map(|counts| counts.cannot_tell).sum();
        assert_eq!(undecided, 0, "a small release is not decided");
    }
}

fn write_manifest(folder: &Path, manifest: &Value) {
    fs::write(folder.join("out/manifest.json"), format!("{manifest:#}\n")).unwrap();
}

/// Writes sheets, and makes digests and numbers of rows fit. The manifest does not say how labels are read, like releases of
/// earlier versions, because a label that its rule can't make would be rejected before anything is counted.
fn write_sheets(released: &Released, sheets: &[Sheet]) -> Value {
    let mut manifest = released.manifest.clone();
    for (position, sheet) in sheets.iter().enumerate() {
        let table = &mut manifest["tables"][position];
        let file = released.folder().join("out").join(table["file"].as_str().unwrap());
        released.write(sheet, &file);
        table["sha256"] = digest(&file).into();
        table["rows_out"] = sheet.rows.len().into();
        for column in table["columns"].as_object_mut().unwrap().values_mut() {
            // A released hierarchy file belongs to the folder, and has to be named.
            if column["labels"]["file"].is_null() {
                column.as_object_mut().unwrap().remove("labels");
            }
        }
    }
    manifest
}

/// The SHA-256 of a file, as manifests write it.
fn digest(file: &Path) -> String {
    Sha256::digest(fs::read(file).unwrap()).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn every_claim_of_a_manifest_is_compared_or_named_and_none_is_named_that_is_compared() {
    let mut report = Report::default();
    for kind in Kind::all().into_iter().chain([Kind::beside_an_earlier_one()]) {
        let released = Released::make(&kind);
        let folder = released.folder();
        let original: Manifest = serde_json::from_value(released.manifest.clone()).unwrap();
        let Outcome::Accepted(named) = verify(folder, Mode::Against) else { panic!("{}", kind.name) };
        // For each named key whether another value was tried, and whether it was accepted.
        let mut of_named: BTreeMap<String, bool> = BTreeMap::new();
        for change in changed_claims(&released.manifest) {
            write_manifest(folder, &change.manifest);
            let name = format!("{}: {}", change.key, change.name);
            let is_same = serde_json::from_value::<Manifest>(change.manifest.clone()).is_ok_and(|read| {
                read == original && change.name != "a key too much" && change.name != "a key renamed"
            });
            if is_same {
                report.add(folder, kind.name, &name, &Truth::Harmless);
                continue;
            }
            // A manifest that does not mention earlier releases claims nothing, but the spec says that there are some.
            let outcome = match (change.key.as_str(), change.name) {
                ("previous", "a key less") => report.add(folder, kind.name, &name, &Truth::Harmful(&[])),
                (key, _) => report.add_claim(folder, kind.name, &name, key),
            };
            for key in named.iter().filter(|key| is_below(&change.key, std::slice::from_ref(*key))) {
                *of_named.entry(key.clone()).or_default() |= matches!(outcome, Outcome::Accepted(_));
            }
        }
        // Some claims must agree with each other: a smaller k is accepted if the claimed risk is higher by as much.
        if let Some(k) = released.manifest["achieved"]["k"].as_u64().filter(|_| of_named.contains_key("achieved.k")) {
            let mut smaller = released.manifest.clone();
            smaller["achieved"]["k"] = (k - 1).into();
            smaller["risk"]["highest"]["after"] = (1.0 / (k - 1) as f64).into();
            write_manifest(folder, &smaller);
            let is_accepted = matches!(verify(folder, Mode::Against), Outcome::Accepted(_));
            of_named.insert("achieved.k".to_owned(), is_accepted);
        }
        for (key, _) in of_named.into_iter().filter(|(_, is_accepted)| !is_accepted) {
            report.failures.push(format!("{}: {key}: named as not confirmed, and nothing else is accepted", kind.name));
        }
    }
    report.print("Changes to one key of the manifest");
    report.assert_all_right();
}

#[test]
fn every_change_of_a_file_is_judged_as_the_oracle_does() {
    let mut report = Report::default();
    for kind in Kind::all() {
        let released = Released::make(&kind);
        let folder = released.folder();
        let sheets = released.sheets();
        let mut seen = BTreeSet::from([sheets.clone()]);
        let mut n_of_name: BTreeMap<String, usize> = BTreeMap::new();
        for position in 0..sheets.len() {
            let (roles, private) = released.columns_of(position, &sheets[position]);
            let cells = changed_cells(&sheets[position], &roles, &private);
            for (name, sheet) in cells.into_iter().chain(changed_rows(&sheets[position])) {
                let mut changed = sheets.clone();
                changed[position] = sheet;
                let n = n_of_name.entry(name.clone()).or_default();
                if *n == released.most_of_a_name() || !seen.insert(changed.clone()) {
                    continue;
                }
                *n += 1;
                let manifest = write_sheets(&released, &changed);
                write_manifest(folder, &manifest);
                let name = format!("{name}: {}", differences(&sheets[position], &changed[position]));
                let (figures, is_met) = match released.judge(&changed) {
                    Judgement::Untrue(_) => {
                        report.add(folder, kind.name, &name, &Truth::Harmful(&[]));
                        continue;
                    }
                    Judgement::Unmet(figures) => (figures, false),
                    Judgement::True(figures) => (figures, true),
                };
                let wrong: Vec<String> =
                    false_claims(&manifest, &figures).iter().map(|path| path.replace('/', ".")).collect();
                // The tests of registers cover what earlier releases forbid.
                if released.has_earlier() && is_met && wrong.is_empty() {
                    continue;
                }
                let truth =
                    |wrong| if is_met && wrong == [] as [String; 0] { Truth::Harmless } else { Truth::Harmful(wrong) };
                report.add(folder, kind.name, &name, &truth(if is_met { &wrong } else { &[] }));
                let is_left_alone = released.has_earlier() && is_met;
                if !wrong.is_empty() && !is_left_alone {
                    // The same change, with a manifest that admits it.
                    write_manifest(folder, &with_figures(&manifest, &figures));
                    report.add(folder, kind.name, &format!("{name}, admitted"), &truth(&[]));
                }
            }
        }
    }
    report.print("Changes to one cell, row or column of a file");
    report.assert_all_right();
}

/// Labels with their values, each pair as often as it occurs, in any order.
fn pairs(sheet: &Sheet) -> (&[String], Vec<&Vec<Cell>>) {
    let mut rows: Vec<&Vec<Cell>> = sheet.rows.iter().collect();
    rows.sort();
    (&sheet.columns, rows)
}

#[test]
fn every_change_of_a_hierarchy_file_is_found() {
    let mut report = Report::default();
    for kind in Kind::all() {
        let released = Released::make(&kind);
        for listed in released.hierarchy_files() {
            let roles = vec![Role::Plain; listed.sheet.columns.len()];
            let cells = changed_cells(&listed.sheet, &roles, &vec![None; roles.len()]);
            for (name, changed) in cells.into_iter().chain(changed_rows(&listed.sheet)) {
                let path = released.folder().join("out").join(&listed.file);
                fs::write(&path, changed.to_csv()).unwrap();
                let mut manifest = released.manifest.clone();
                manifest["tables"][listed.table]["columns"][&listed.column]["labels"]["sha256"] = digest(&path).into();
                write_manifest(released.folder(), &manifest);
                let is_same = pairs(&changed) == pairs(&listed.sheet);
                let truth = if is_same { Truth::Harmless } else { Truth::Harmful(&[]) };
                report.add(released.folder(), kind.name, &format!("{}: {name}", listed.file), &truth);
            }
            fs::write(released.folder().join("out").join(&listed.file), listed.sheet.to_csv()).unwrap();
        }
    }
    report.print("Changes to one cell, row or column of a hierarchy file");
    assert!(!report.counts.is_empty(), "some kind releases its hierarchies");
    report.assert_all_right();
}

/// The differences of two sheets, for somebody who looks for the reason of a failure. Nobody in these sheets is real.
fn differences(before: &Sheet, after: &Sheet) -> String {
    let lines = before.rows.iter().zip(&after.rows).enumerate().filter(|(_, (before, after))| before != after);
    let lines: Vec<String> =
        lines.map(|(row, (before, after))| format!("{row} {before:?} -> {after:?}")).take(3).collect();
    format!("{} rows, {}", after.rows.len(), lines.join("; "))
}

#[test]
fn the_release_itself_is_accepted_and_the_oracle_agrees_with_its_manifest() {
    for kind in Kind::all() {
        let released = Released::make(&kind);
        for mode in [Mode::FilesAlone, Mode::Against] {
            let outcome = verify(released.folder(), mode);
            assert!(matches!(outcome, Outcome::Accepted(_)), "{} {mode:?}", kind.name);
        }
        match released.judge(&released.sheets()) {
            Judgement::Untrue(reason) => panic!("{}: {reason}", kind.name),
            Judgement::Unmet(_) => panic!("{} is not as asked", kind.name),
            Judgement::True(figures) => {
                let wrong = false_claims(&released.manifest, &figures);
                let show = |path: &String| format!("{path}: the oracle says {:?}", figures[path]);
                let wrong: Vec<String> = wrong.iter().map(show).collect();
                assert!(wrong.is_empty(), "{}: {wrong:#?}\n{:#}", kind.name, released.manifest);
            }
        }
    }
}

#[test]
fn every_change_of_a_document_is_found() {
    for kind in Kind::all().into_iter().chain([Kind::beside_an_earlier_one()]) {
        let released = Released::with_documents(&kind);
        let out = released.folder().join("out");
        for mode in [Mode::FilesAlone, Mode::Against] {
            let outcome = verify(released.folder(), mode);
            assert!(matches!(outcome, Outcome::Accepted(_)), "{} {mode:?}: {outcome:?}", kind.name);
        }
        let path = out.join("report.json");
        let original = fs::read(&path).unwrap();
        let report: Value = serde_json::from_slice(&original).unwrap();
        let mut n_changes = 0;
        for change in changed_claims(&report) {
            // A report of another version is not compared, and the verifier says so.
            if change.key == "kohort" {
                continue;
            }
            fs::write(&path, change.manifest.to_string()).unwrap();
            let outcome = verify(released.folder(), Mode::FilesAlone);
            let Outcome::Rejected(messages) = outcome else {
                panic!("{}: {}: {}: {outcome:?}", kind.name, change.key, change.name)
            };
            assert!(messages.iter().any(|message| message.contains("report.json")), "{messages:?}");
            n_changes += 1;
        }
        assert!(n_changes > 300, "{}: {n_changes}", kind.name);
        fs::write(&path, &original).unwrap();
        for name in DOCUMENTS {
            let path = out.join(name);
            let original = fs::read(&path).unwrap();
            for changed in [original[..original.len() / 2].to_vec(), [&original[..], b"."].concat(), Vec::new()] {
                fs::write(&path, changed).unwrap();
                for mode in [Mode::FilesAlone, Mode::Against] {
                    let outcome = verify(released.folder(), mode);
                    assert!(matches!(outcome, Outcome::Rejected(_)), "{}: {name}: {outcome:?}", kind.name);
                }
            }
            // A release without a document is as true as with it.
            fs::remove_file(&path).unwrap();
            let outcome = verify(released.folder(), Mode::FilesAlone);
            assert!(matches!(outcome, Outcome::Accepted(_)), "{}: without {name}: {outcome:?}", kind.name);
            fs::write(&path, &original).unwrap();
        }
    }
}

/// A change of the folder itself, and whether it is harmful.
type FolderChange = (&'static str, bool, fn(&Path));

const FOLDER_CHANGES: &[FolderChange] = &[
    ("a file added", true, |out| fs::write(out.join("notes.txt"), "who is who").unwrap()),
    ("a hidden file added", true, |out| fs::write(out.join(".cache"), "who is who").unwrap()),
    ("a folder added", true, |out| fs::create_dir(out.join("old")).unwrap()),
    ("a file missing", true, |out| fs::remove_file(first_file(out)).unwrap()),
    ("a file renamed", true, |out| fs::rename(first_file(out), out.join("renamed.csv")).unwrap()),
    ("a file with one byte more", true, |out| {
        let file = first_file(out);
        let bytes = [fs::read(&file).unwrap(), b"\n".to_vec()].concat();
        fs::write(file, bytes).unwrap();
    }),
    ("no manifest", true, |out| fs::remove_file(out.join("manifest.json")).unwrap()),
    ("a manifest that ends early", true, |out| edit_manifest(out, |json| json[..json.len() / 2].to_owned())),
    ("a key twice", true, |out| {
        edit_manifest(out, |json| json.replacen("\"classes\":", "\"classes\": 1, \"classes\":", 1));
    }),
    ("a column twice", true, |out| {
        edit_manifest(out, |json| json.replacen("\"columns\": {", "\"columns\": {\"x\": {}, \"x\": {},", 1));
    }),
    ("a file outside of the folder", true, |out| {
        edit_manifest(out, |json| json.replacen("\"file\": \"", "\"file\": \"../csv/", 1));
    }),
    ("a manifest in one line", false, |out| edit_manifest(out, |json| json.replace('\n', " "))),
    ("a digest in capitals", false, |out| {
        let digest = |json: &str| json.split("\"sha256\": \"").nth(1).unwrap()[..64].to_owned();
        edit_manifest(out, |json| json.replace(&digest(json), &digest(json).to_uppercase()));
    }),
];

fn first_file(out: &Path) -> std::path::PathBuf {
    let mut files: Vec<_> = fs::read_dir(out).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.into_iter().find(|file| !file.ends_with("manifest.json")).unwrap()
}

fn edit_manifest(out: &Path, edit: impl Fn(&str) -> String) {
    let path = out.join("manifest.json");
    let json = fs::read_to_string(&path).unwrap();
    let edited = edit(&json);
    assert_ne!(json, edited);
    fs::write(path, edited).unwrap();
}

#[test]
fn every_change_of_a_folder_is_found() {
    let mut report = Report::default();
    for kind in Kind::all() {
        for (name, is_harmful, change) in FOLDER_CHANGES {
            let released = Released::make(&kind);
            change(&released.folder().join("out"));
            let truth = if *is_harmful { Truth::Harmful(&[]) } else { Truth::Harmless };
            report.add(released.folder(), kind.name, name, &truth);
            if *is_harmful {
                let alone = verify(released.folder(), Mode::FilesAlone);
                assert!(matches!(alone, Outcome::Rejected(_)), "{}: {name}: {alone:?}", kind.name);
            }
        }
    }
    report.print("Changes to the folder");
    report.assert_all_right();
}
