//! New persons in the classes of an earlier release: what holds, what an attacker who has both gets, and what is refused.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use kohort::model::spec::HierarchySource;
use kohort::{Apply, Error, Job, Silent, Verdict, verify_applied};

/// Numbers that look random and are the same on every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

const JOBS: &str = "nurse;health;any\ndentist;health;any\ncook;kitchen;any\nwaiter;kitchen;any\nclerk;office;any\n";

fn spec(k: u32, more: &str) -> String {
    format!(
        "k = {k}\n[tables.people]\nfile = \"old.csv\"\nperson = \"id\"\n[tables.people.columns]\nid = \"identifier\"\n\
         age = \"quasi\"\nzip = {{ role = \"quasi\", type = \"text\", hierarchy = {{ mask = \"right\" }} }}\n\
         job = {{ role = \"quasi\", hierarchy = \"jobs.csv\" }}\n\
         pay = {{ role = \"quasi\", hierarchy = {{ steps = [100, 1000] }} }}\n\
         disease = {{ role = \"sensitive\", l = 2{more} }}\n"
    )
}

/// A table of persons, numbered from `first`.
fn people(numbers: &mut Numbers, n: u64, first: u64) -> String {
    let mut text = "id,age,zip,job,pay,disease\n".to_owned();
    for id in first..first + n {
        let job = ["nurse", "dentist", "cook", "waiter", "clerk"][numbers.below(5) as usize];
        let disease = ["flu", "gout", "asthma", "ulcer"][numbers.below(4) as usize];
        let zip = ["885", "8851", "10115"][numbers.below(3) as usize];
        let (age, pay) = (20 + numbers.below(12), 100 * numbers.below(12));
        text += &format!("{id},{age},{zip},{job},{pay},{disease}\n");
    }
    text
}

struct Folder(tempfile::TempDir);

impl Folder {
    /// A folder with an old release in `old`, made from `old.csv`, and a table `new.csv`.
    fn with(spec: &str, old: &str, new: &str) -> Self {
        let folder = Folder(tempfile::tempdir().unwrap());
        for (name, text) in [("jobs.csv", JOBS), ("old.csv", old), ("new.csv", new)] {
            fs::write(folder.path(name), text).unwrap();
        }
        Job::from_text(spec, folder.path("spec.toml")).unwrap().anonymize().unwrap().write(folder.path("old")).unwrap();
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn apply(&self) -> Apply {
        Apply::new(self.path("old"), self.path("new.csv")).person("id").not_in(self.path("old.csv"))
    }

    /// The rows of a released table as text cells, without the last, sensitive one; and that one.
    fn rows(&self, release: &str) -> Vec<(Vec<String>, String)> {
        rows(&self.path(release).join("people.csv"))
    }
}

fn rows(file: &Path) -> Vec<(Vec<String>, String)> {
    let text = fs::read_to_string(file).unwrap();
    let cells = |line: &str| -> Vec<String> {
        let (mut cells, mut quoted) = (vec![String::new()], false);
        for letter in line.chars() {
            match letter {
                '"' => quoted = !quoted,
                ',' if !quoted => cells.push(String::new()),
                letter => cells.last_mut().unwrap().push(letter),
            }
        }
        cells
    };
    let split = |line| {
        let mut cells = cells(line);
        let value = cells.pop().unwrap();
        (cells, value)
    };
    text.lines().skip(1).map(split).collect()
}

/// The values of each class.
fn classes(rows: &[(Vec<String>, String)]) -> BTreeMap<&[String], Vec<&str>> {
    let mut classes: BTreeMap<&[String], Vec<&str>> = BTreeMap::new();
    for (cells, value) in rows {
        classes.entry(cells).or_default().push(value);
    }
    classes
}

fn messages(error: &Error) -> String {
    error.reports().iter().map(|report| report.message.clone()).collect::<Vec<_>>().join("\n")
}

#[test]
fn new_persons_show_old_classes_and_satisfy_everything_alone() {
    let mut numbers = Numbers(1);
    let mut n_unreachable = 0;
    for run in 0..12 {
        let (n_old, n_new, k) = (20 + numbers.below(40), 40 + numbers.below(80), 2 + numbers.below(4) as u32);
        let old = people(&mut numbers, n_old, 0);
        let new = people(&mut numbers, n_new, 1000);
        let folder = Folder::with(&spec(k, ""), &old, &new);
        let release = match folder.apply().release() {
            Ok(release) => release,
            Err(Error::Unreachable(_)) => {
                n_unreachable += 1;
                continue;
            }
            Err(error) => panic!("run {run}: {error}"),
        };
        let manifest = release.write(folder.path("new")).unwrap();
        let (then, now) = (folder.rows("old"), folder.rows("new"));
        let (known, found) = (classes(&then), classes(&now));
        for (cells, values) in &found {
            assert!(known.contains_key(cells), "run {run}: a class that the old release does not have");
            assert!(values.len() >= k as usize, "run {run}: a class of {}", values.len());
            assert!(values.iter().collect::<BTreeSet<_>>().len() >= 2, "run {run}: a class of one value");
        }
        assert_eq!(manifest.persons.n_in, n_new);
        assert_eq!(manifest.persons.n_out, now.len() as u64);
        let together = known.iter().map(|(cells, values)| values.len() + found.get(cells).map_or(0, Vec::len)).min();
        let applied = manifest.applied.unwrap();
        assert_eq!(applied.k, together.unwrap() as u64);
        assert!(applied.persons_compared && manifest.notes.is_empty());
        let alone = kohort::verify(folder.path("new")).unwrap();
        assert_eq!(alone.verdict, Verdict::InPart, "{:?}", alone.wrong);
        let verified = verify_applied(folder.path("new"), folder.path("old"), &Silent).unwrap();
        assert_eq!(verified.verdict, Verdict::Verified, "run {run}: {:?} {:?}", verified.wrong, verified.not_counted);
        // Values that nobody in the old release has are listed nowhere.
        let listing = folder.path("new").join("people.job.hierarchy.csv");
        let listed = fs::read_to_string(&listing).unwrap();
        let then = fs::read_to_string(folder.path("old").join("people.job.hierarchy.csv")).unwrap();
        assert!(listed.lines().all(|line| then.lines().any(|other| other == line)), "{listed}");
    }
    assert!(n_unreachable < 6, "{n_unreachable} of 12 runs released nobody");
}

#[test]
fn the_order_of_new_rows_changes_nothing() {
    let mut numbers = Numbers(7);
    let (old, new) = (people(&mut numbers, 30, 0), people(&mut numbers, 120, 1000));
    let folder = Folder::with(&spec(4, ""), &old, &new);
    folder.apply().release().unwrap().write(folder.path("one")).unwrap();
    let mut lines: Vec<&str> = new.lines().collect();
    lines[1..].reverse();
    fs::write(folder.path("new.csv"), lines.join("\n")).unwrap();
    folder.apply().release().unwrap().write(folder.path("other")).unwrap();
    assert_eq!(folder.rows("one"), folder.rows("other"));
}

#[test]
fn german_decimals_and_dates_are_read_as_in_the_old_release() {
    let header = "id;gewicht;geburt;alter;krank\n";
    let row = |id: u32, weight: &str, day: &str, age: u32, ill: &str| format!("{id};{weight};{day};{age};{ill}\n");
    let old = [
        row(1, "60,5", "17.03.1984", 40, "flu"),
        row(2, "71,25", "20.04.1984", 44, "gout"),
        row(3, "90,0", "01.01.1950", 70, "flu"),
        row(4, "99,5", "31.12.1950", 79, "ulcer"),
    ];
    let new = [
        row(11, "61,0", "01.04.1984", 41, "flu"),
        row(12, "70,75", "20.04.1984", 42, "asthma"),
        row(13, "120,0", "01.01.1950", 70, "flu"),
    ];
    let spec = "k = 2\n[tables.people]\nfile = \"old.csv\"\nperson = \"id\"\nseparator = \";\"\ndecimal = \",\"\ndate_format = \"%d.%m.%Y\"\n\
                [tables.people.columns]\nid = \"identifier\"\ngewicht = \"quasi\"\ngeburt = \"quasi\"\nalter = { role = \"quasi\", top = 75 }\n\
                krank = { role = \"sensitive\", l = 2 }\n";
    let folder = Folder::with(spec, &format!("{header}{}", old.concat()), &format!("{header}{}", new.concat()));
    let manifest = folder.apply().release().unwrap().write(folder.path("new")).unwrap();
    assert_eq!((manifest.persons.n_out, manifest.persons.suppressed), (2, 1));
    assert_eq!(manifest.tables[0].columns["alter"].top.as_deref(), Some("75"));
    let text = fs::read_to_string(folder.path("new/people.csv")).unwrap();
    assert!(text.contains("[60,5;71,25]") && text.contains("[17.03.1984,20.04.1984]"), "{text}");
    let found = verify_applied(folder.path("new"), folder.path("old"), &Silent).unwrap();
    assert_eq!(found.verdict, Verdict::Verified, "{:?}", found.wrong);
}

#[test]
fn the_hierarchy_of_a_release_that_withholds_it_is_given() {
    let mut numbers = Numbers(5);
    let (old, new) = (people(&mut numbers, 30, 0), people(&mut numbers, 120, 1000));
    let spec = spec(4, "").replace("k = 4\n", "k = 4\nhierarchies = \"withhold\"\n");
    let folder = Folder::with(&spec, &old, &new);
    let refused = messages(&folder.apply().release().unwrap_err());
    assert!(refused.ends_with("the hierarchy of 'job' is withheld, so its labels can't be read"), "{refused}");
    let source = HierarchySource::Paths(folder.path("jobs.csv"));
    folder.apply().hierarchy("job", source).release().unwrap().write(folder.path("new")).unwrap();
    assert!(!folder.path("new/people.job.hierarchy.csv").exists());
    let found = verify_applied(folder.path("new"), folder.path("old"), &Silent).unwrap();
    assert_ne!(found.verdict, Verdict::NotMet, "{:?}", found.wrong);
}

/// Somebody who knows that a person is in both releases keeps the values that both of the person's classes have.
#[test]
fn a_person_in_both_releases_is_found_by_subtracting_and_therefore_refused() {
    let header = "id,age,zip,job,pay,disease\n";
    let row = |id: u32, age: u32, disease: &str| format!("{id},{age},885,nurse,100,{disease}\n");
    let old = [row(1, 30, "flu"), row(2, 31, "gout"), row(3, 50, "flu"), row(4, 51, "ulcer")].concat();
    // Person 1 comes again, this time with others.
    let new = [row(1, 30, "flu"), row(12, 30, "asthma"), row(13, 31, "ulcer")].concat();
    let folder = Folder::with(&spec(2, ""), &format!("{header}{old}"), &format!("{header}{new}"));
    let unaware = Apply::new(folder.path("old"), folder.path("new.csv")).person("id").accept_risks();
    let release = unaware.release().unwrap();
    assert_eq!(release.manifest().notes[0].code, "persons_not_compared");
    assert!(!release.manifest().applied.as_ref().unwrap().persons_compared);
    release.write(folder.path("new")).unwrap();
    let values = |release: &str| -> BTreeSet<String> {
        let rows = folder.rows(release);
        rows.into_iter().filter(|(cells, _)| cells[0] == "[30,31]").map(|(_, value)| value).collect()
    };
    let common: Vec<String> = values("old").intersection(&values("new")).cloned().collect();
    assert_eq!(common, ["flu"], "the attacker learns the value of person 1");

    let refused = folder.apply().release().unwrap_err();
    assert!(matches!(refused, Error::Input(_)));
    assert_eq!(messages(&refused), "persons of the earlier release are in the new table, too, in row 1");
}

#[test]
fn a_table_that_the_old_release_was_not_made_from_is_refused() {
    let mut numbers = Numbers(3);
    let (old, new) = (people(&mut numbers, 30, 0), people(&mut numbers, 30, 1000));
    let folder = Folder::with(&spec(2, ""), &old, &new);
    fs::write(folder.path("old.csv"), people(&mut numbers, 29, 0)).unwrap();
    let refused = messages(&folder.apply().release().unwrap_err());
    assert!(
        refused.ends_with("has 29 rows and 29 persons, but the earlier release was made from 30 rows and 30 persons")
    );
}

/// With t-closeness, shares in both releases together can differ although those in each are alike.
#[test]
fn a_release_that_fails_together_with_the_old_one_is_not_made() {
    let header = "id,age,zip,job,pay,disease\n";
    let row = |id: u32, age: u32, disease: &str| format!("{id},{age},885,nurse,100,{disease}\n");
    let diseases = |first: u32, age: u32, diseases: &[&str]| -> String {
        (first..).zip(diseases).map(|(id, disease)| row(id, age, disease)).collect()
    };
    let old = [diseases(0, 30, &["flu", "gout"]), diseases(10, 50, &["flu", "gout"])].concat();
    let new = diseases(100, 30, &["flu", "flu", "flu", "flu", "flu", "flu", "ulcer"]);
    let folder = Folder::with(&spec(2, ", t = 0.1"), &format!("{header}{old}"), &format!("{header}{new}"));
    let refused = folder.apply().accept_risks().release().unwrap_err();
    assert!(matches!(refused, Error::NotMet(_)), "{refused}");
    assert!(
        messages(&refused).starts_with("read together with the earlier release, column 'disease': t of at most 0.1")
    );
}

#[test]
fn a_forged_release_is_not_one_of_the_old_classes() {
    let mut numbers = Numbers(11);
    let (old, new) = (people(&mut numbers, 30, 0), people(&mut numbers, 120, 1000));
    let folder = Folder::with(&spec(4, ""), &old, &new);
    // A release of the new persons by themselves, which claims to have the old classes.
    folder.apply().release().unwrap().write(folder.path("new")).unwrap();
    let claimed = fs::read_to_string(folder.path("new").join("manifest.json")).unwrap();
    let claimed: serde_json::Value = serde_json::from_str(&claimed).unwrap();
    let own = spec(4, "").replace("old.csv", "new.csv");
    Job::from_text(&own, folder.path("own.toml")).unwrap().anonymize().unwrap().write(folder.path("own")).unwrap();
    for document in ["README.txt", "datapackage.json", "report.html", "report.json"] {
        fs::remove_file(folder.path("own").join(document)).unwrap();
    }
    let path = folder.path("own").join("manifest.json");
    let mut manifest: serde_json::Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    manifest["applied"] = claimed["applied"].clone();
    fs::write(&path, manifest.to_string()).unwrap();
    let found = verify_applied(folder.path("own"), folder.path("old"), &Silent).unwrap();
    assert_eq!(found.verdict, Verdict::NotMet);
    let says = |part: &str| found.wrong.iter().any(|report| report.message.contains(part));
    assert!(says("no class of the earlier release"), "{:?}", found.wrong);
    // Another figure than the counted one.
    let path = folder.path("new").join("manifest.json");
    let mut manifest = claimed.clone();
    manifest["applied"]["k"] = 4711.into();
    for document in ["README.txt", "datapackage.json", "report.html", "report.json"] {
        fs::remove_file(folder.path("new").join(document)).unwrap();
    }
    fs::write(&path, manifest.to_string()).unwrap();
    let found = verify_applied(folder.path("new"), folder.path("old"), &Silent).unwrap();
    assert!(found.wrong[0].message.starts_with("manifest.json says applied.k = 4711"), "{:?}", found.wrong);
    // Another old release.
    manifest["applied"]["manifest"] = "0".repeat(64).into();
    fs::write(&path, manifest.to_string()).unwrap();
    assert!(matches!(verify_applied(folder.path("new"), folder.path("old"), &Silent), Err(Error::NotMet(_))));
}
