//! Cells can be read without the spec: by `verify`, by `estimate`, and by anybody who has the manifest.

use serde_json::{Value, json};

use crate::runner::{Folder, Ran, digest};
use crate::stranger::Dice;

/// People with decimals, dates, codes and jobs, as a German office writes them.
const OFFICE: &str = "\
born;weight;plz;job;height;pay
17.03.1984;61,5;88512;nurse;1,71;1200,50
18.03.1984;62,0;88514;dentist;1,71;900,25
02.05.1984;63,5;88540;nurse;1,80;3100,00
30.06.1984;64,9;88541;surgeon;1,80;2500,75
01.01.1991;81,0;10115;farmer;1,65;1500,10
12.12.1991;84,5;10117;farmer;1,66;NA
09.09.1992;88,0;10119;farmer;1,67;4100,00
28.02.1999;89,5;10178;fisher;1,68;2750,40
";

const JOBS: &str = "\
nurse;care;services;any job
dentist;care;services;any job
surgeon;care;services;any job
midwife;care;services;any job
waiter;hospitality;services;any job
farmer;land;primary;any job
fisher;land;primary;any job
miner;mining;primary;any job
";

fn office_spec(columns: &str) -> String {
    format!(
        "k = 2\n[tables.office]\nfile = \"office.csv\"\nseparator = \";\"\ndecimal = \",\"\ndate_format = \"%d.%m.%Y\"\n\
         null = [\"NA\"]\n[tables.office.columns]\n{columns}"
    )
}

const COLUMNS: &str = "\
born = { role = \"quasi\", hierarchy = \"date\" }
weight = { role = \"quasi\", hierarchy = { steps = [2.5, 10] } }
plz = { role = \"quasi\", type = \"text\", hierarchy = { mask = \"right\" } }
job = { role = \"quasi\", hierarchy = \"jobs.csv\" }
height = \"quasi\"
pay = { role = \"sensitive\", t = 0.6, distance = \"ordered\" }
";

fn office(spec: &str, more: &[&str]) -> Folder {
    let folder = Folder::with(&[("release.toml", spec), ("office.csv", OFFICE), ("jobs.csv", JOBS)]);
    let ran = folder.run(&[&["anonymize", "release.toml", "-o", "out"], more].concat());
    assert_eq!(ran.code, 0, "{ran}");
    folder
}

fn column(folder: &Folder, name: &str) -> Value {
    folder.manifest()["tables"][0]["columns"][name].clone()
}

fn assert_verified(folder: &Folder) {
    for arguments in [&["verify", "out"][..], &["verify", "out", "--against", "release.toml"]] {
        let ran = folder.run_in_vain(arguments);
        assert_eq!(ran.code, 0, "{ran}");
        assert!(ran.stdout.contains("verified         yes"), "{ran}");
    }
}

fn estimated(folder: &Folder, conditions: &str) -> f64 {
    let ran = folder.run_in_vain(&["estimate", "out", conditions, "--json"]);
    assert_eq!(ran.code, 0, "{ran}");
    let found: Value = serde_json::from_str(&ran.stdout).unwrap();
    (found["count"].as_f64().unwrap() * 1e6).round() / 1e6
}

#[test]
fn a_decimal_comma_is_no_reason_to_reject_an_ordered_t() {
    // By value t is 0.18 in every class. If pay were ordered as text, with 1000,5 before 9,5, t would be 0.43.
    let table = "weight;pay\n61;10,5\n62;100,5\n71;30,5\n72;300,5\n81;200,5\n82;9,5\n91;1000,5\n92;20,5\n";
    let spec = "k = 2\n[tables.t]\nfile = \"t.csv\"\nseparator = \";\"\ndecimal = \",\"\n[tables.t.columns]\n\
                weight = \"quasi\"\npay = { role = \"sensitive\", t = 0.2, distance = \"ordered\" }\n";
    let folder = Folder::with(&[("release.toml", spec), ("t.csv", table)]);
    ran_well(&folder.run(&["anonymize", "release.toml", "-o", "out"]));
    assert_verified(&folder);
}

#[test]
fn german_dates_decimals_and_nulls_are_verified_and_said() {
    for more in [&[][..], &["--format", "parquet"], &["--format", "csv.gz"], &["--cells", "bounds"]] {
        let folder = office(&office_spec(COLUMNS), more);
        assert_verified(&folder);
        let born = column(&folder, "born");
        assert_eq!((&born["type"], &born["date_format"]), (&json!("date"), &json!("%d.%m.%Y")));
        assert_eq!(born["labels"]["levels"], json!(["day", "month", "quarter", "year", "decade"]));
        let weight = json!({
            "role": "quasi", "type": "decimal", "decimal": ",", "labels": { "rule": "steps", "steps": [2.5, 10.0] },
        });
        assert_eq!(column(&folder, "weight"), weight);
        assert_eq!(column(&folder, "pay"), json!({ "role": "sensitive", "type": "decimal", "decimal": "," }));
    }
    let folder = office(&office_spec(COLUMNS), &[]);
    assert_eq!(folder.manifest()["tables"][0]["csv"], json!({ "separator": ";", "encoding": "utf-8", "null": "" }));
}

#[test]
fn copied_columns_have_the_type_of_what_is_released() {
    let table = "age,a,b,c,d,e\n20,1.5,true,2020-01-01,007,7\n21,1.50,false,2021-01-01,8,8\n";
    let spec = "k = 2\n[tables.t]\nfile = \"t.csv\"\n[tables.t.columns]\nage = \"quasi\"\na = { role = \"sensitive\", l = 2 }\n\
                b = \"plain\"\nc = \"plain\"\nd = \"plain\"\ne = { role = \"sensitive\", type = \"text\", l = 2 }\n";
    let folder = Folder::with(&[("release.toml", spec), ("t.csv", table)]);
    let ran = folder.run(&["anonymize", "release.toml", "-o", "out", "--accept-risks"]);
    assert_eq!(ran.code, 0, "{ran}");
    // Cells were counted as texts, so `1.5` and `1.50` are two values for everybody who counts again.
    assert_verified(&folder);
    assert_eq!(column(&folder, "a"), json!({ "role": "sensitive", "type": "decimal", "compared_as": "text" }));
    let types: Vec<Value> = ["b", "c", "d", "e"].iter().map(|name| column(&folder, name)["type"].clone()).collect();
    assert_eq!(types, ["boolean", "date", "text", "text"]);
}

#[test]
fn labels_of_every_rule_are_estimated_from_the_release_alone() {
    let folder = office(&office_spec(COLUMNS), &[]);
    let whole = |conditions: &[&str]| conditions.iter().map(|asked| estimated(&folder, asked)).sum::<f64>();
    assert_eq!(whole(&["born < 01.01.1990", "born >= 01.01.1990"]), 8.0);
    assert_eq!(estimated(&folder, "born between 01.01.1984 and 31.12.1984"), 4.0);
    assert!((whole(&["weight < 75", "weight >= 75"]) - 8.0).abs() < 1e-5);
    assert_eq!(estimated(&folder, "weight >= 90"), 0.0);
    assert_eq!(estimated(&folder, "plz in ('88***', '10***')"), 8.0);
    assert_eq!(estimated(&folder, "plz = '88***'"), 4.0);
    assert_eq!(estimated(&folder, "job in ('nurse', 'dentist', 'surgeon', 'midwife')"), 4.0);
    assert_eq!(estimated(&folder, "job = 'waiter'"), 0.0);
    assert!((whole(&["height <= '1,70'", "height > '1,70'"]) - 8.0).abs() < 1e-5);
}

#[test]
fn the_released_hierarchy_has_what_shown_labels_stand_for_and_nothing_else() {
    let folder = office(&office_spec(COLUMNS), &[]);
    let labels = column(&folder, "job")["labels"].clone();
    assert_eq!(labels["file"], "office.job.hierarchy.csv");
    let listing = folder.read("out/office.job.hierarchy.csv");
    assert_eq!(labels["sha256"], digest(listing.as_bytes()));
    let released = folder.read("out/office.csv");
    for line in listing.lines().skip(1) {
        let (label, _) = line.split_once(',').unwrap();
        assert!(released.lines().any(|row| row.split(';').any(|cell| cell == label)), "{label} is not shown");
    }
    // Nobody in the table is a midwife, but the value is listed, because the list must not tell who is there.
    assert!(listing.contains("care,midwife\n"), "{listing}");
    for unshown in ["hospitality", "waiter", "mining", "miner", "services", "any job"] {
        assert!(!listing.contains(unshown), "{unshown}: {listing}");
    }
}

#[test]
fn private_tables_with_the_same_release_have_the_same_released_hierarchy() {
    let spec = "k = 3\n[tables.t]\nfile = \"t.csv\"\n[tables.t.columns]\njob = { role = \"quasi\", hierarchy = \"jobs.csv\" }\n";
    let release = |jobs: &[&str]| {
        let table = format!("job\n{}\n", jobs.join("\n"));
        let folder = Folder::with(&[("release.toml", spec), ("t.csv", &table), ("jobs.csv", JOBS)]);
        let ran = folder.run(&["anonymize", "release.toml", "-o", "out"]);
        assert_eq!(ran.code, 0, "{ran}");
        let labels = column(&folder, "job");
        (folder.read("out/t.csv"), folder.read("out/t.job.hierarchy.csv"), labels)
    };
    let one = release(&["nurse", "nurse", "dentist", "farmer", "fisher", "fisher"]);
    let other = release(&["midwife", "surgeon", "dentist", "farmer", "farmer", "fisher"]);
    assert_eq!(one.0, "job\ncare\ncare\ncare\nland\nland\nland\n");
    assert_eq!(one, other);
}

#[test]
fn a_publisher_whose_hierarchy_may_come_from_the_table_is_told_and_can_withhold_it() {
    let spec = "k = 3\n[tables.t]\nfile = \"t.csv\"\n[tables.t.columns]\njob = { role = \"quasi\", hierarchy = \"jobs.csv\" }\n";
    let table = "job\nnurse\nnurse\ndentist\n";
    let own = "nurse;care;any\ndentist;care;any\npoet;any\n";
    let folder = Folder::with(&[("release.toml", spec), ("t.csv", table), ("jobs.csv", own)]);
    let ran = folder.run(&["anonymize", "release.toml", "-o", "out"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(
        ran.stderr.contains("note: the released hierarchy of 'job' lists only values that the table holds"),
        "{ran}"
    );
    assert!(!folder.read("out/manifest.json").contains("lacks"), "readers would learn that the table holds all values");

    folder.write("release.toml", format!("hierarchies = \"withhold\"\n{spec}").as_bytes());
    let ran = folder.run(&["anonymize", "release.toml", "-o", "out", "--force"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(!ran.stderr.contains("note:"), "{ran}");
    assert_eq!(column(&folder, "job")["labels"], json!({ "rule": "hierarchy" }));
    let names = std::fs::read_dir(folder.path("out")).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(names.filter(|name| name.to_string_lossy().ends_with(".hierarchy.csv")).count() == 0);
    assert_verified(&folder);
    let ran = folder.run_in_vain(&["estimate", "out", "job = 'nurse'"]);
    assert_eq!(ran.code, 2, "{ran}");
    assert!(ran.stderr.contains("nothing says which values they stand for"), "{ran}");
}

/// Replaces the released hierarchy, and its digest in the manifest.
fn relist(folder: &Folder, listing: &str) {
    folder.write("out/office.job.hierarchy.csv", listing.as_bytes());
    let sha256 = digest(listing.as_bytes());
    folder.claim(|manifest| manifest["tables"][0]["columns"]["job"]["labels"]["sha256"] = sha256.into());
}

#[test]
fn a_released_hierarchy_that_was_changed_is_found_out() {
    let verify = |folder: &Folder, more: &[&str]| folder.run(&[&["verify", "out"], more].concat());
    let folder = office(&office_spec(COLUMNS), &[]);
    let listing = folder.read("out/office.job.hierarchy.csv");

    folder.write("out/office.job.hierarchy.csv", listing.replace("midwife", "poet").as_bytes());
    let ran = verify(&folder, &[]);
    assert!(ran.code == 1 && ran.stderr.contains("its digest is not the one in manifest.json"), "{ran}");

    relist(&folder, &format!("{listing}mining,miner\n"));
    let ran = verify(&folder, &[]);
    assert!(ran.code == 1 && ran.stderr.contains("has labels that no cell shows"), "{ran}");

    relist(&folder, &listing.replace("land,fisher", "land,nurse"));
    let ran = verify(&folder, &[]);
    assert!(ran.code == 1 && ran.stderr.contains("has labels that do not form a tree"), "{ran}");

    // The files alone don't show that a value is missing. The spec does.
    relist(&folder, &listing.replace("care,midwife\n", ""));
    assert_eq!(verify(&folder, &[]).code, 0);
    let ran = verify(&folder, &["--against", "release.toml"]);
    assert!(ran.code == 1 && ran.stderr.contains("describes the cells of 'job' wrongly"), "{ran}");

    folder.claim(|manifest| {
        let labels = manifest["tables"][0]["columns"]["job"]["labels"].as_object_mut().unwrap();
        labels.remove("file");
        labels.remove("sha256");
    });
    assert_eq!(verify(&folder, &["--against", "release.toml"]).code, 1);
}

#[test]
fn a_manifest_that_says_how_to_misread_cells_is_found_out() {
    let cases: [(&str, &str, Value); 7] = [
        ("weight", "labels", json!({ "rule": "steps", "steps": [7.0] })),
        ("born", "labels", json!({ "rule": "dates", "levels": ["decade"] })),
        ("plz", "labels", json!({ "rule": "values" })),
        ("weight", "decimal", json!(".")),
        ("born", "date_format", json!("%m.%d.%Y")),
        ("pay", "type", json!("text")),
        ("pay", "compared_as", json!("text")),
    ];
    for (name, key, value) in cases {
        let folder = office(&office_spec(COLUMNS), &[]);
        folder.claim(|manifest| manifest["tables"][0]["columns"][name][key] = value.clone());
        let ran = folder.run(&["verify", "out", "--against", "release.toml"]);
        assert_ne!(ran.code, 0, "{name} {key}: {ran}");
    }
    // A label that the rule can't make is found without the spec.
    let folder = office(&office_spec(COLUMNS), &[]);
    folder.claim(|manifest| {
        manifest["tables"][0]["columns"]["weight"]["labels"]["steps"] = json!([7.0]);
    });
    let ran = folder.run(&["verify", "out"]);
    assert!(ran.code == 1 && ran.stderr.contains("has labels that its rule in manifest.json does not make"), "{ran}");
}

#[test]
fn releases_of_earlier_versions_are_verified_as_they_were() {
    let columns = "born = { role = \"quasi\", hierarchy = \"date\" }\nweight = \"drop\"\n\
                   plz = { role = \"quasi\", type = \"text\", hierarchy = { mask = \"right\" } }\n\
                   job = { role = \"quasi\", hierarchy = \"jobs.csv\" }\nheight = \"drop\"\n\
                   pay = { role = \"sensitive\", l = 2 }\n";
    let folder = office(&office_spec(columns), &[]);
    std::fs::remove_file(folder.path("out/office.job.hierarchy.csv")).unwrap();
    folder.claim(|manifest| {
        let table = manifest["tables"][0].as_object_mut().unwrap();
        table.remove("csv");
        for column in table["columns"].as_object_mut().unwrap().values_mut() {
            let column = column.as_object_mut().unwrap();
            column.retain(|key, _| key == "role" || key == "type");
        }
        table["columns"]["pay"]["type"] = json!("text");
    });
    assert_verified(&folder);
    let ran = folder.run_in_vain(&["estimate", "out", "plz = '88512'"]);
    assert!(ran.code == 2 && ran.stderr.contains("nothing says which values they stand for"), "{ran}");
}

fn ran_well(ran: &Ran) {
    assert_eq!(ran.code, 0, "{ran}");
}

#[test]
fn hierarchies_are_released_beside_many_tables_and_beside_registers() {
    let spec = "k = 2\n[tables.person]\nfile = \"person.csv\"\nperson = \"id\"\n[tables.person.columns]\n\
                job = { role = \"quasi\", hierarchy = \"jobs.csv\" }\n[tables.visit]\nfile = \"visit.csv\"\n\
                parent = { table = \"person\", foreign_key = \"id\" }\n[tables.visit.columns]\n\
                job = { role = \"quasi\", hierarchy = \"jobs.csv\" }\ncost = \"plain\"\n";
    let folder = Folder::with(&[
        ("release.toml", spec),
        ("jobs.csv", JOBS),
        ("person.csv", "id,job\n1,nurse\n2,dentist\n3,farmer\n4,fisher\n"),
        ("visit.csv", "id,job,cost\n1,miner,1.5\n2,miner,2\n3,nurse,3\n4,surgeon,4\n"),
    ]);
    ran_well(&folder.run(&["anonymize", "release.toml", "-o", "out"]));
    assert_verified(&folder);
    assert!(folder.read("out/person.job.hierarchy.csv").contains("care,midwife"));
    assert!(folder.read("out/visit.job.hierarchy.csv").contains("miner,miner"));
    let keys = folder.manifest()["tables"][0]["columns"]["id"].clone();
    assert_eq!(keys, json!({ "role": "key", "type": "integer" }));

    let spec = "k = 2\n[tables.t]\nfile = \"t.csv\"\nperson = \"id\"\n[tables.t.columns]\nid = \"identifier\"\n\
                job = { role = \"quasi\", hierarchy = \"jobs.csv\" }\nborn = { role = \"quasi\", hierarchy = \"date\" }\n\
                pay = { role = \"sensitive\", l = 2 }\n[registers.town]\nfile = \"town.csv\"\nkey = \"id\"\n";
    let mut town = "id,job,born\n".to_owned();
    for id in 0..24 {
        let job = ["nurse", "dentist", "farmer", "fisher"][id / 6];
        town += &format!("{id},{job},19{}-03-{:02}\n", 70 + id / 6, id + 1);
    }
    let folder = Folder::with(&[
        ("release.toml", spec),
        ("jobs.csv", JOBS),
        ("town.csv", &town),
        (
            "t.csv",
            "id,job,born,pay\n1,nurse,1970-03-02,10\n2,nurse,1970-03-03,20\n8,dentist,1971-03-09,30\n19,fisher,1973-03-20,40\n",
        ),
    ]);
    ran_well(&folder.run(&["anonymize", "release.toml", "-o", "out"]));
    for arguments in [&["verify", "out"][..], &["verify", "out", "--against", "release.toml"]] {
        ran_well(&folder.run_in_vain(arguments));
    }
    assert!(folder.path("out/t.job.hierarchy.csv").exists());
    assert_eq!(folder.manifest()["tables"][0]["columns"]["born"]["labels"]["rule"], "dates");
}

#[test]
fn the_count_of_what_labels_tell_audiences_does_not_need_the_spec() {
    let spec = "k = 2\n[tables.t]\nfile = \"t.csv\"\n[tables.t.columns]\n\
                age = { role = \"quasi\", hierarchy = { steps = [5, 20] } }\nborn = { role = \"quasi\", hierarchy = \"date\" }\n\
                plz = { role = \"quasi\", type = \"text\", hierarchy = { mask = \"right\" } }\n\
                job = { role = \"quasi\", hierarchy = \"jobs.csv\" }\nsex = { role = \"quasi\", hierarchy = \"flat\" }\n\
                word = \"quasi\"\nweight = \"quasi\"\n[audiences.one]\nquasi = [\"age\", \"plz\", \"sex\"]\n\
                [audiences.two]\nquasi = [\"born\", \"job\", \"age\"]\n\
                [audiences.three]\nquasi = [\"word\", \"weight\", \"plz\"]\n";
    let (mut n_whole, mut n_in_part) = (0, 0);
    for seed in 0..24 {
        let mut dice = Dice(seed);
        // Some tables have few ages and places, so that one label may hold everybody.
        let (ages, places) = (1 + dice.roll(30), 1 + dice.roll(40));
        let mut table = "age,born,plz,job,sex,word,weight\n".to_owned();
        for _ in 0..8 + dice.roll(20) {
            let job = ["nurse", "dentist", "farmer", "fisher", "miner", "waiter"][dice.roll(6) as usize];
            let (sex, word) = (["f", "m", ""][dice.roll(3) as usize], ["x", "y", "z"][dice.roll(3) as usize]);
            let (age, plz) = (20 + dice.roll(ages), 100 + dice.roll(places));
            let (year, month) = (1970 + dice.roll(25), 1 + dice.roll(12));
            table += &format!("{age},{year}-{month:02}-15,{plz},{job},{sex},{word},{}.5\n", 50 + dice.roll(20));
        }
        let folder = Folder::with(&[("release.toml", spec), ("t.csv", &table), ("jobs.csv", JOBS)]);
        ran_well(&folder.run(&["anonymize", "release.toml", "-o", "out", "--accept-risks"]));
        let alone = folder.run_in_vain(&["verify", "out"]);
        ran_well(&alone);
        ran_well(&folder.run_in_vain(&["verify", "out", "--against", "release.toml"]));
        let is_whole = alone.stdout.contains("verified         yes");
        n_whole += usize::from(is_whole);
        n_in_part += usize::from(!is_whole);
    }
    assert!(n_whole > 0, "everything is counted in {n_whole} releases, and not in {n_in_part}");
}
