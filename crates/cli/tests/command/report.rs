//! Reports: what they say of every kind of release, that they agree with the verifier and with a count by hand, and that they hold
//! nothing that fewer than k persons share.

use std::collections::BTreeMap;

use insta::assert_snapshot;
use serde_json::Value;

use crate::runner::{Folder, PATIENTS, SPEC};
use crate::{audiences, many_tables, register};

const DOCUMENTS: [&str; 4] = ["README.txt", "datapackage.json", "report.html", "report.json"];
const RUN: &[&str] = &["anonymize", "release.toml", "-o", "out"];

fn patients() -> Folder {
    let folder = Folder::with(&[("patients.csv", PATIENTS), ("release.toml", SPEC)]);
    let ran = folder.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    folder
}

/// A release of each kind, made from the worked examples of the papers.
fn releases() -> [(&'static str, Folder); 4] {
    [
        ("one_table", patients()),
        ("many_tables", many_tables::released()),
        ("audiences", audiences::released()),
        ("register", register::released()),
    ]
}

fn report_of(folder: &Folder) -> Value {
    serde_json::from_str(&folder.read("out/report.json")).unwrap()
}

#[test]
fn the_reports_of_every_kind_of_release() {
    for (kind, folder) in releases() {
        assert_snapshot!(format!("report_{kind}"), folder.read("out/report.json"));
        assert_snapshot!(format!("report_{kind}_readme"), folder.read("out/README.txt"));
        assert_snapshot!(format!("report_{kind}_datapackage"), folder.read("out/datapackage.json"));
    }
}

#[test]
fn the_command_makes_the_documents_that_anonymize_wrote() {
    for (kind, folder) in releases() {
        let written: Vec<String> = DOCUMENTS.iter().map(|name| folder.read(&format!("out/{name}"))).collect();
        for name in DOCUMENTS {
            std::fs::remove_file(folder.path(&format!("out/{name}"))).unwrap();
        }
        let printed = folder.run(&["report", "out", "--json"]);
        assert_eq!((printed.code, printed.stdout.as_str()), (0, written[3].as_str()), "{kind}: {printed}");
        let ran = folder.run(&["report", "out"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{kind}: {ran}");
        assert!(ran.stderr.contains("report.html"), "{kind}: {ran}");
        for (name, written) in DOCUMENTS.iter().zip(written) {
            assert_eq!(folder.read(&format!("out/{name}")), written, "{kind}: {name}");
        }
        let ran = folder.run(&["verify", "out", "--against", "release.toml"]);
        assert_eq!(ran.code, 0, "{kind}: {ran}");
        let entries = std::fs::read_dir(folder.path("")).unwrap().map(|entry| entry.unwrap().file_name());
        let left = entries.filter(|name| name.to_string_lossy().starts_with(".kohort")).count();
        assert_eq!(left, 0, "{kind}");
    }
}

/// The sizes of groups of equal rows in these columns of a CSV file without quotes inside cells.
fn sizes_by_hand(csv: &str, quasi: &[&str]) -> BTreeMap<u64, u64> {
    let split = |line: &str| -> Vec<String> {
        let (mut cells, mut is_open) = (vec![String::new()], false);
        for letter in line.chars() {
            match letter {
                '"' => is_open = !is_open,
                ',' if !is_open => cells.push(String::new()),
                letter => cells.last_mut().unwrap().push(letter),
            }
        }
        cells
    };
    let mut lines = csv.lines().map(split);
    let names = lines.next().unwrap();
    let mut classes: BTreeMap<Vec<String>, u64> = BTreeMap::new();
    for row in lines {
        let shown = names.iter().zip(row).filter(|(name, _)| quasi.contains(&name.as_str()));
        *classes.entry(shown.map(|(_, cell)| cell).collect()).or_default() += 1;
    }
    let mut sizes = BTreeMap::new();
    classes.into_values().for_each(|size| *sizes.entry(size).or_default() += 1);
    sizes
}

fn sizes_in(reader: &Value) -> BTreeMap<u64, u64> {
    let entry = |entry: &Value| (entry["size"].as_u64().unwrap(), entry["classes"].as_u64().unwrap());
    reader["class_sizes"].as_array().unwrap().iter().map(entry).collect()
}

#[test]
fn figures_of_a_report_are_those_that_can_be_counted_by_hand() {
    let clinic = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/clinic");
    let folder = Folder::new();
    let ran = folder.run(&["anonymize", clinic.join("release.toml").to_str().unwrap(), "-o", "out"]);
    assert_eq!(ran.code, 0, "{ran}");
    let report = report_of(&folder);
    let reader = &report["readers"][0];
    let quasi: Vec<&str> = reader["knows"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    let sizes = sizes_by_hand(&folder.read("out/patients.csv"), &quasi);
    assert_eq!(sizes_in(reader), sizes);
    let n_persons: u64 = sizes.iter().map(|(size, classes)| size * classes).sum();
    let n_classes: u64 = sizes.values().sum();
    assert_eq!(reader["prosecutor"]["highest"].as_f64().unwrap(), 1.0 / *sizes.keys().next().unwrap() as f64);
    assert_eq!(reader["marketer"]["share"].as_f64().unwrap(), n_classes as f64 / n_persons as f64);
    for above in reader["prosecutor"]["above"].as_array().unwrap() {
        let risk = above["risk"].as_f64().unwrap();
        let persons: u64 =
            sizes.iter().filter(|(size, _)| 1.0 / **size as f64 > risk).map(|(size, classes)| size * classes).sum();
        assert_eq!(above["persons"], persons, "{risk}");
        assert_eq!(above["share"].as_f64().unwrap(), persons as f64 / n_persons as f64);
    }
    for column in report["tables"][0]["columns"].as_array().unwrap() {
        let sum = |values: &Value| values.as_array().unwrap().iter().map(|v| v["rows"].as_u64().unwrap()).sum::<u64>();
        let rows =
            sum(&column["values"]) + column["others"]["rows"].as_u64().unwrap() + column["nulls"].as_u64().unwrap();
        assert_eq!(rows, n_persons, "{column}");
    }
    // The verifier, asked by the command, counts the same.
    let verified = folder.run(&["verify", "out", "--json"]);
    let verified: Value = serde_json::from_str(&verified.stdout).unwrap();
    assert_eq!(verified["k"], reader["k"]);
    assert_eq!(verified["persons"], report["persons"]["out"]);
    assert_eq!(verified["risk"]["average"], reader["prosecutor"]["average"]);
    let smallest: BTreeMap<u64, u64> = verified["smallest_classes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (entry["persons"].as_u64().unwrap(), entry["classes"].as_u64().unwrap()))
        .collect();
    assert!(smallest.iter().all(|(size, classes)| sizes[size] == *classes));
}

#[test]
fn each_audience_has_the_class_sizes_that_it_sees() {
    let folder = audiences::released();
    let report = report_of(&folder);
    let csv = folder.read("out/accident.csv");
    let readers = report["readers"].as_array().unwrap();
    assert_eq!(readers.len(), 3, "two audiences and all together");
    for reader in readers {
        let knows: Vec<&str> = reader["knows"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
        assert_eq!(sizes_in(reader), sizes_by_hand(&csv, &knows), "{reader}");
    }
}

/// The documents of a release as one text.
fn documents(folder: &Folder) -> String {
    DOCUMENTS.map(|name| folder.read(&format!("out/{name}"))).concat()
}

#[test]
fn no_document_names_a_cell_that_fewer_than_k_persons_hold() {
    // Of 60 persons, up to 4 share a canary in a plain, a sensitive and a quasi column, and k is 5.
    let mut rows = "age,city,ward,disease\n".to_owned();
    for n in 0..60 {
        let city = if n < 4 { "canary-city".to_owned() } else { format!("city-{}", n % 2) };
        let ward = if n % 20 == 7 { format!("canary-ward-{n}") } else { format!("ward-{}", n % 3) };
        let disease = if (30..34).contains(&n) { "canary-disease".to_owned() } else { format!("disease-{}", n % 5) };
        rows += &format!("{},{city},{ward},{disease}\n", 20 + n % 30);
    }
    let flags = ["--k", "5", "--quasi", "age,city", "--plain", "ward", "--sensitive", "disease:l=2", "-o", "out"];
    let folder = Folder::with(&[("people.csv", &rows)]);
    let ran = folder.run(&[&["anonymize", "people.csv"], &flags[..]].concat());
    assert_eq!(ran.code, 0, "{ran}");
    let released = folder.read("out/people.csv");
    assert!(released.contains("canary-ward-7") && released.contains("canary-disease"));
    let shown = documents(&folder);
    assert!(!shown.contains("canary"), "{shown}");
    for common in ["ward-1", "disease-2", "city-1"] {
        assert!(folder.read("out/report.html").contains(common), "{common}");
    }
}

#[test]
fn rows_of_one_person_are_no_crowd() {
    // Person 0 has all rows with a canary, more than k of them.
    let mut rows = "id,age,note\n".to_owned();
    for person in 0..20 {
        for visit in 0..6 {
            let note = if person == 0 { "canary".to_owned() } else { format!("note-{visit}") };
            rows += &format!("p{person},{},{note}\n", 30 + person % 4);
        }
    }
    let folder = Folder::with(&[("visits.csv", &rows)]);
    let flags = ["--k", "4", "--quasi", "age", "--plain", "note", "--person", "id", "--accept-risks", "-o", "out"];
    let ran = folder.run(&[&["anonymize", "visits.csv"], &flags[..]].concat());
    assert_eq!(ran.code, 0, "{ran}");
    assert!(folder.read("out/visits.csv").contains("canary"));
    assert!(!documents(&folder).contains("canary"));
    let report = report_of(&folder);
    assert_eq!(report["readers"][0]["counted"], "unknown");
    assert_eq!(report["tables"][0]["columns"][1]["unnamed"], "persons");
    assert_eq!(report["readers"][0]["prosecutor"]["basis"], "claimed");

    // In a child table, keys tell whose the rows are.
    let persons: String = (0..20).map(|person| format!("p{person},{}\n", 30 + person % 4)).collect();
    let visits: String = (0..20)
        .flat_map(|person| (0..6).map(move |visit| (person, visit)))
        .map(|(person, visit)| {
            format!("p{person},{}\n", if person == 0 { "canary".into() } else { format!("note-{visit}") })
        })
        .collect();
    let spec = "k = 4\n[tables.person]\nfile = \"person.csv\"\nperson = \"id\"\ncolumns = { id = \"key\", age = \"quasi\" }\n\
                [tables.visit]\nfile = \"visit.csv\"\nparent = { table = \"person\", foreign_key = \"id\" }\n\
                columns = { note = \"sensitive\" }\n";
    let folder = Folder::with(&[
        ("release.toml", spec),
        ("person.csv", &format!("id,age\n{persons}")),
        ("visit.csv", &format!("id,note\n{visits}")),
    ]);
    let ran = folder.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(folder.read("out/visit.csv").contains("canary"));
    let shown = documents(&folder);
    assert!(!shown.contains("canary") && shown.contains("note-3"));
}

#[test]
fn a_report_is_made_only_from_a_release_that_verifies() {
    let refused = |change: &dyn Fn(&Folder)| {
        let folder = patients();
        change(&folder);
        folder.run_in_vain(&["report", "out"])
    };
    let missing = refused(&|folder| std::fs::remove_file(folder.path("out/manifest.json")).unwrap());
    let changed = refused(&|folder| {
        let text = folder.read("out/patients.csv").replace("flu", "flux");
        folder.write("out/patients.csv", text.as_bytes());
    });
    let added = refused(&|folder| folder.write("out/notes.txt", b"who is who"));
    let newer = refused(&|folder| folder.claim(|manifest| manifest["kohort"] = "99.0.0".into()));
    let false_claim = refused(&|folder| folder.claim(|manifest| manifest["achieved"]["k"] = 7.into()));
    let unknown_key = refused(&|folder| folder.claim(|manifest| manifest["promise"] = "safe".into()));
    assert_snapshot!(
        "report_refused",
        [missing, changed, added, newer, false_claim, unknown_key].map(|ran| ran.to_string()).join("\n")
    );
}

#[test]
fn a_document_that_says_something_else_is_refused_and_can_be_made_anew() {
    let folder = patients();
    let html = folder.read("out/report.html").replace("What was asked is reached.", "All is perfectly safe.");
    folder.write("out/report.html", html.as_bytes());
    let ran = folder.run(&["verify", "out"]);
    assert_eq!(ran.code, 1, "{ran}");
    assert!(ran.stderr.contains("report.html does not say what the release shows"), "{ran}");
    assert_eq!(folder.run(&["report", "out"]).code, 0);
    assert_eq!(folder.run(&["verify", "out"]).code, 0);

    // Another version may use other words. Nobody is told that these were compared.
    let json = folder.read("out/report.json").replacen("\"kohort\": \"0.1.0\"", "\"kohort\": \"0.0.9\"", 1);
    folder.write("out/report.json", json.as_bytes());
    let ran = folder.run(&["verify", "out"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stdout.contains("report.json can't be compared") && ran.stdout.contains("in part"), "{ran}");
}

#[test]
fn a_release_made_in_cells_has_its_report_unless_it_shows_bounds() {
    let folder = Folder::with(&[("patients.csv", PATIENTS), ("release.toml", SPEC)]);
    let ran = folder.run(&["anonymize", "release.toml", "--memory", "64MB", "-o", "out"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(!ran.stderr.contains("kohort report out") && folder.path("out/report.html").exists(), "{ran}");
    assert_eq!(folder.run(&["verify", "out"]).code, 0);
    let in_parts = folder.run(&["verify", "out", "--memory", "64MB"]);
    assert_eq!(in_parts.code, 0, "{in_parts}");
    assert!(in_parts.stdout.contains("verified         yes"), "{in_parts}");
    let html = folder.read("out/report.html").replace("What was asked is reached.", "All is perfectly safe.");
    folder.write("out/report.html", html.as_bytes());
    let ran = folder.run(&["verify", "out", "--memory", "64MB"]);
    assert!(ran.code == 1 && ran.stderr.contains("report.html does not say what the release shows"), "{ran}");

    let ran = folder.run(&["anonymize", "release.toml", "--memory", "64MB", "--cells", "bounds", "-o", "bounds"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stderr.contains("no report, because cells as bounds can't be counted in parts"), "{ran}");
    assert!(!folder.path("bounds/report.html").exists());
    assert_eq!(folder.run(&["report", "bounds"]).code, 0);
    assert_eq!(folder.run(&["verify", "bounds"]).code, 0);
}

/// The names of elements in the order of a page.
fn elements(html: &str) -> Vec<&str> {
    html.split('<').skip(1).filter_map(|part| part.split([' ', '>', '\n']).next()).collect()
}

#[test]
fn a_page_needs_nothing_else_and_its_headings_are_in_order() {
    for (kind, folder) in releases() {
        let html = folder.read("out/report.html");
        for loads in ["<script", "<link", "<img", "<iframe", "src=", "url(", "@import", "onload", "href="] {
            assert!(!html.contains(loads), "{kind}: {loads}");
        }
        let addresses = html.matches("http").count();
        let of_svg = html.matches("xmlns=\"http://www.w3.org/2000/svg\"").count() + html.matches("http-equiv").count();
        assert_eq!(addresses, of_svg, "{kind}: the page names no address but the name of SVG");
        let levels: Vec<u32> = elements(&html)
            .into_iter()
            .filter_map(|name| name.strip_prefix('h').and_then(|level| level.parse().ok()))
            .collect();
        assert_eq!(levels[0], 1, "{kind}");
        assert_eq!(levels.iter().filter(|level| **level == 1).count(), 1, "{kind}");
        assert!(levels.windows(2).all(|pair| pair[1] <= pair[0] + 1), "{kind}: {levels:?}");
        for element in ["main", "table", "figure", "div", "ul", "dl", "pre", "svg", "section"] {
            let open = elements(&html).into_iter().filter(|name| *name == element).count();
            let closed = html.matches(&format!("</{element}>")).count();
            assert_eq!(open, closed, "{kind}: {element}");
        }
    }
}

#[test]
fn the_owner_s_report_compares_with_the_private_table_and_stays_out_of_the_release() {
    let folder = Folder::new();
    let clinic = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/clinic/release.toml");
    let spec = clinic.to_str().unwrap();
    assert_eq!(folder.run(&["anonymize", spec, "-o", "out"]).code, 0);
    let before: Vec<_> = folder.contents().into_keys().collect();
    let ran = folder.run(&["report", "out", "--against", spec, "-o", "owner"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{ran}");
    assert!(ran.stderr.contains("don't give them away"), "{ran}");
    let added: Vec<_> = folder.contents().into_keys().filter(|path| !before.contains(path)).collect();
    assert!(added.iter().all(|path| path.starts_with(folder.path("owner"))), "{added:?}");
    assert_eq!(folder.run(&["verify", "out"]).code, 0);

    let report: Value = serde_json::from_str(&folder.read("owner/owner-report.json")).unwrap();
    let private = std::fs::read_to_string(clinic.with_file_name("patients.csv")).unwrap();
    let k = report["k"].as_u64().unwrap();
    let of_release = report_of(&folder);
    let quasi: Vec<&str> =
        of_release["readers"][0]["knows"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    let sizes = sizes_by_hand(&private, &quasi);
    assert_eq!(report["unique"][0].as_u64().unwrap(), sizes.get(&1).copied().unwrap_or(0));
    assert_eq!(report["unique"][1], 0);
    let n_rows = private.lines().count() as u64 - 1;
    for marginal in report["marginals"].as_array().unwrap() {
        let bins = marginal["bins"].as_array().unwrap();
        assert!(bins.iter().all(|bin| bin["before"].as_u64().unwrap() >= k), "{marginal}");
        let before: u64 = bins.iter().map(|bin| bin["before"].as_u64().unwrap()).sum();
        assert!(before <= n_rows && before > n_rows / 4, "{marginal}");
        // Nobody is left out, so a reader expects about as many rows.
        if let Some(after) = bins.iter().map(|bin| bin["after"].as_f64()).sum::<Option<f64>>() {
            assert!((after - before as f64).abs() < 0.05 * n_rows as f64, "{marginal}");
        }
    }
    assert!(report["pairs"]["n"].as_u64().unwrap() > 0, "{report}");

    for inside in ["out", "out/owner", "owner/../out/new", "nowhere/../out/new"] {
        let ran = folder.run(&["report", "out", "--against", spec, "-o", inside]);
        assert_eq!(ran.code, 2, "{inside}: {ran}");
        assert!(ran.stderr.contains("is in the release"), "{inside}: {ran}");
    }
    assert_eq!(folder.run(&["report", "out", "--against", spec]).code, 2, "the owner names a place");
}

#[test]
fn the_ends_of_private_marginals_name_no_single_person() {
    let rows: String = (0..40).map(|n| format!("{},{}\n", if n == 0 { 7 } else { 30 + n % 10 }, n % 4)).collect();
    let folder = Folder::with(&[("people.csv", &format!("age,pay\n{rows}9999,3\n"))]);
    let spec = "k = 4\n[tables.people]\nfile = \"people.csv\"\ncolumns = { age = \"quasi\", pay = \"sensitive\" }\n";
    folder.write("release.toml", spec.as_bytes());
    assert_eq!(folder.run(RUN).code, 0);
    let ran = folder.run(&["report", "out", "--against", "release.toml", "-o", "owner"]);
    assert_eq!(ran.code, 0, "{ran}");
    let report: Value = serde_json::from_str(&folder.read("owner/owner-report.json")).unwrap();
    let labels: Vec<&str> =
        report["marginals"][0]["bins"].as_array().unwrap().iter().map(|bin| bin["label"].as_str().unwrap()).collect();
    assert!(labels.len() > 2 && labels[0].starts_with("up to ") && labels[labels.len() - 1].starts_with("from "));
    assert!(labels.iter().all(|label| !label.contains("9999") && !label.ends_with(" 7")), "{labels:?}");
    let sums = &report["sums"][0];
    assert_eq!((sums["column"].as_str(), &sums["before"]), (Some("pay"), &sums["after"]), "nobody is left out");
    assert_eq!(sums["before"]["n"], 41);
}

/// A spec whose requirements and columns cost something.
const COSTLY: &str = "\
k = 5
[tables.people]
file = \"people.csv\"
[tables.people.columns]
age = \"quasi\"
sex = { role = \"quasi\", hierarchy = \"flat\" }
zip = { role = \"quasi\", type = \"text\", hierarchy = { mask = \"right\" } }
ward = \"plain\"
disease = { role = \"sensitive\", l = 3, alpha = 0.5 }
";

fn people() -> Folder {
    // A third of the people has the same disease, the ward follows from the age, and nothing follows from the sex.
    let row = |n: u64| {
        let drawn = (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
        let age = 20 + drawn % 60;
        let disease = if n.is_multiple_of(3) { "flu".to_owned() } else { format!("disease-{}", drawn / 60 % 7) };
        let (sex, ward) =
            (["f", "m"][(drawn / 7 % 2) as usize], ["young", "middle", "old"][((age - 20) / 20) as usize]);
        format!("{age},{sex},{},{ward},{disease}\n", 10_000 + drawn / 11 % 300)
    };
    let rows: String = (0..400).map(row).collect();
    Folder::with(&[("people.csv", &format!("age,sex,zip,ward,disease\n{rows}")), ("release.toml", COSTLY)])
}

fn owner_report(folder: &Folder, more: &[&str]) -> Value {
    let ran = folder.run(&[&["report", "out", "--against", "release.toml", "-o", "owner"], more].concat());
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{ran}");
    serde_json::from_str(&folder.read("owner/owner-report.json")).unwrap()
}

#[test]
fn costs_are_the_losses_of_releases_without_one_column_or_requirement() {
    let folder = people();
    assert_eq!(folder.run(RUN).code, 0);
    let loss_of =
        |manifest: &str| -> Value { serde_json::from_str::<Value>(&folder.read(manifest)).unwrap()["loss"].clone() };
    let all = loss_of("out/manifest.json");
    let report = owner_report(&folder, &["--costs"]);
    assert_eq!(report["costs"]["all"]["loss"], all["lm"]);
    let names = |of: &str| -> Vec<String> {
        let costs = report["costs"][of].as_array().unwrap();
        costs.iter().map(|cost| cost["without"].as_str().unwrap().to_owned()).collect()
    };
    let (mut columns, mut requirements) = (names("columns"), names("requirements"));
    columns.sort();
    requirements.sort();
    assert_eq!(columns, ["age", "sex", "zip"]);
    assert_eq!(requirements, ["disease: alpha = 0.5", "disease: l = 3", "k = 5"]);
    let cost = |of: &str, without: &str| {
        report["costs"][of].as_array().unwrap().iter().find(|cost| cost["without"] == without).unwrap().clone()
    };
    let without = |change: [&str; 2]| {
        folder.write("other.toml", COSTLY.replace(change[0], change[1]).as_bytes());
        let ran = folder.run(&["anonymize", "other.toml", "--accept-risks", "--force", "-o", "other"]);
        assert_eq!(ran.code, 0, "{ran}");
        loss_of("other/manifest.json")
    };
    let found = cost("columns", "zip");
    let other =
        without(["zip = { role = \"quasi\", type = \"text\", hierarchy = { mask = \"right\" } }", "zip = \"plain\""]);
    assert_eq!(found["figures"]["loss"], other["lm"]);
    let lm = |loss: &Value, column: &str| loss["columns"][column].as_f64().unwrap();
    let saved = (lm(&all, "age") + lm(&all, "sex") - lm(&other, "age") - lm(&other, "sex")) / 2.0;
    assert!((found["saved"].as_f64().unwrap() - saved).abs() < 1e-9, "{found} {saved}");
    assert!(saved > 0.0, "{saved}");
    let found = cost("requirements", "disease: l = 3");
    assert_eq!(found["figures"]["loss"], without(["l = 3, ", ""])["lm"]);
    let found = cost("requirements", "k = 5");
    assert_eq!(found["figures"]["loss"], without(["k = 5", "k = 1"])["lm"]);
    assert!(folder.read("owner/owner-report.html").contains("disease: alpha = 0.5"));
    assert_eq!(owner_report(&folder, &[]).get("costs"), None);
}

#[test]
fn costs_of_several_tables_are_measured_too() {
    let folder = many_tables::released();
    let report = owner_report(&folder, &["--costs"]);
    let costs = &report["costs"];
    assert!(costs["columns"].as_array().unwrap().iter().all(|cost| cost["without"].as_str().unwrap().contains('.')));
    assert!(costs["columns"].as_array().unwrap().iter().any(|cost| cost["saved"].is_number()), "{costs}");
    let ran = audiences::released().run(&["report", "out", "--against", "release.toml", "--costs", "-o", "owner"]);
    assert!(ran.code == 2 && ran.stderr.contains("not available with audiences"), "{ran}");
}

#[test]
fn a_column_that_follows_from_another_is_predicted_and_one_by_chance_is_not() {
    let folder = people();
    assert_eq!(folder.run(RUN).code, 0);
    let of = |column: &str| owner_report(&folder, &["--target", column])["target"].clone();
    let ward = of("ward");
    let share = |target: &Value, name: &str| target[name].as_f64().unwrap();
    // The ward follows from the age alone, so only ages in a label across two wards are in doubt.
    assert!(share(&ward, "before") > 0.85 && share(&ward, "after") > 0.6, "{ward}");
    assert!(share(&ward, "most_frequent") < 0.5, "{ward}");
    let (trained, tested) = (ward["trained"].as_u64().unwrap(), ward["tested"].as_u64().unwrap());
    assert_eq!(trained + tested, 400);
    assert!((100..170).contains(&tested), "{tested}");
    let sex = of("sex");
    assert!(share(&sex, "before") < 0.65 && share(&sex, "after") < 0.65, "{sex}");
    let ran = folder.run(&["report", "out", "--against", "release.toml", "--target", "name", "-o", "owner"]);
    assert!(ran.code == 2 && ran.stderr.contains("name one of age, sex, zip, ward, disease"), "{ran}");
}

#[test]
fn associations_are_those_of_the_bins_before_and_what_readers_expect_after() {
    let folder = people();
    assert_eq!(folder.run(RUN).code, 0);
    let report = owner_report(&folder, &["--population", "4000"]);
    let pairs = report["associations"].as_array().unwrap();
    let pair = |one: &str, other: &str| {
        pairs.iter().find(|pair| pair["columns"] == serde_json::json!([one, other])).unwrap().clone()
    };
    let ward = pair("age", "ward");
    assert!(ward["measure"] == "cramers_v" && ward["before"].as_f64().unwrap() > 0.8, "{ward}");
    assert!((0.4..=1.0).contains(&ward["after"].as_f64().unwrap()), "{ward}");
    assert!(pair("sex", "ward")["before"].as_f64().unwrap() < 0.25);
    let population = &report["population"];
    assert_eq!((&population["persons"], &population["share"]), (&4000.into(), &0.1.into()));
    assert_eq!(population["before"]["alone_in_table"], report["unique"][0]);
    for model in population["after"]["alone"].as_array().unwrap() {
        assert_eq!(model["persons"], 0.0, "nobody in a class of 5 is alone: {model}");
    }
    let ran = folder.run(&["report", "out", "--against", "release.toml", "--population", "399", "-o", "owner"]);
    assert!(ran.code == 2 && ran.stderr.contains("smaller than the table"), "{ran}");
}
