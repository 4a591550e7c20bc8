//! A release with a public register: the example of the paper from end to end, and wrong input.

use std::collections::BTreeMap;

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::runner::{Folder, Ran, digest};

const MICRODATA: &str = include_str!("../../../testkit/golden/register/microdata.csv");
const PUBLIC: &str = include_str!("../../../testkit/golden/register/public.csv");

const TABLE: &str = "\
k = 3
algorithm = \"mondrian\"
[tables.microdata]
file = \"microdata.csv\"
person = \"id\"
[tables.microdata.columns]
id = \"identifier\"
qi1 = \"quasi\"
qi2 = \"quasi\"
sa = { role = \"sensitive\", l = 2 }
";
const REGISTER: &str = "[registers.public]\nfile = \"public.csv\"\nkey = \"id\"\ndate = 2026-01-01\n";
const RUN: &[&str] = &["anonymize", "release.toml", "-o", "out"];
const QUERY: &str = "qi1 between 0 and 4 and qi2 > 2 and qi2 <= 4";

const ROWS: &str = "\
qi1,qi2,sensitive_group
\"[1,2]\",\"[1,2]\",1
\"[1,2]\",\"[1,2]\",1
\"[1,2]\",\"[1,2]\",1
\"[1,2]\",\"[3,4]\",1
\"[1,2]\",\"[3,4]\",1
\"[1,2]\",\"[3,4]\",1
\"[3,5]\",2,2
\"[3,5]\",2,2
\"[3,5]\",2,2
\"[6,9]\",\"[4,9]\",2
\"[6,9]\",\"[4,9]\",2
\"[6,9]\",\"[4,9]\",2
\"[6,9]\",\"[4,9]\",2
";
const ROWS_OF_PAPER: &str = "\
qi1,qi2,sensitive_group
\"[1,2]\",\"[1,2]\",1
\"[1,2]\",\"[1,2]\",1
\"[1,2]\",\"[3,4]\",1
\"[1,2]\",\"[3,4]\",1
\"[3,5]\",2,2
\"[3,5]\",2,2
6,4,2
";
const SENSITIVE: &str = "sensitive_group,sa\n1,v1\n1,v1\n1,v2\n1,v2\n2,v1\n2,v2\n2,v3\n";

fn with(spec: &str) -> Folder {
    Folder::with(&[("release.toml", spec), ("microdata.csv", MICRODATA), ("public.csv", PUBLIC)])
}

fn golden() -> Folder {
    with(&format!("{TABLE}{REGISTER}"))
}

pub(crate) fn released() -> Folder {
    let folder = golden();
    let ran = folder.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    folder
}

/// The sum of the perimeters of the boxes of all private rows, which is the NCP of the paper, from the loss per column.
/// `ranges` are the widths of the columns.
fn perimeters(manifest: &Value, ranges: [f64; 2]) -> f64 {
    let loss = |column: &str| manifest["loss"]["columns"][column].as_f64().unwrap();
    let sum = 2.0 * 7.0 * (loss("qi1") * ranges[0] + loss("qi2") * ranges[1]);
    (sum * 1e9).round() / 1e9
}

fn refused(folder: &Folder, arguments: &[&str], code: i32) -> Ran {
    let ran = folder.run_in_vain(arguments);
    assert_eq!(ran.code, code, "{ran}");
    ran
}

fn estimate(folder: &Folder, query: &str, more: &[&str]) -> Value {
    let ran = folder.run_in_vain(&[&["estimate", "out", query, "--json"], more].concat());
    assert_eq!(ran.code, 0, "{ran}");
    serde_json::from_str(&ran.stdout).unwrap()
}

/// The estimated count, and the count of each value, rounded to four places.
fn figures(found: &Value) -> (f64, Vec<f64>) {
    let round = |value: &Value| (value.as_f64().unwrap() * 1e4).round() / 1e4;
    let values = found["sensitive"]["sa"].as_array().unwrap().iter().map(|entry| round(&entry["count"]));
    (round(&found["count"]), values.collect())
}

#[test]
fn the_register_of_the_paper_comes_out_to_the_digit() {
    // The paper drops register rows that are not needed. That is safe only where presence is public.
    for method in ["refine", "direct"] {
        let used = format!("[register]\nmethod = \"{method}\"\nrelease = \"microdata\"\n");
        let folder = with(&format!("{TABLE}{REGISTER}{used}"));
        let ran = folder.run(RUN);
        assert_eq!(ran.code, 0, "{ran}");
        assert_eq!(folder.read("out/microdata.csv"), ROWS_OF_PAPER);
        assert_eq!(folder.read("out/sensitive.csv"), SENSITIVE);
        let manifest = folder.manifest();
        assert_eq!(manifest["register"]["method"], method);
        assert_eq!(manifest["loss"]["dm"], 13.0);
        assert_eq!(perimeters(&manifest, [5.0, 3.0]), 24.0);
        for arguments in [&["verify", "out"][..], &["verify", "out", "--against", "release.toml"]] {
            let ran = folder.run_in_vain(arguments);
            assert_eq!(ran.code, 0, "{ran}");
        }
        assert_eq!(figures(&estimate(&folder, QUERY, &["--continuous"])), (2.0, vec![1.0, 1.0, 0.0]));
    }
}

#[test]
fn without_the_register_the_same_question_is_answered_worse() {
    let folder = with(TABLE);
    assert_eq!(folder.run(RUN).code, 0);
    assert_eq!(folder.manifest()["loss"]["dm"], 25.0);
    assert_eq!(perimeters(&folder.manifest(), [5.0, 3.0]), 62.0);
    let found = estimate(&folder, QUERY, &["--continuous"]);
    assert_eq!(figures(&found), (3.6667, vec![1.6667, 1.6667, 0.3333]));
    assert_eq!(found["of"], 7.0);
    assert_eq!(figures(&estimate(&folder, QUERY, &[])).0, 3.0);
}

#[test]
fn people_read_what_became_of_the_register() {
    let folder = golden();
    assert_snapshot!("register", folder.run(RUN));
    assert_snapshot!("register_verify", folder.run(&["verify", "out"]));
    assert_snapshot!("register_against", folder.run(&["verify", "out", "--against", "release.toml"]));
    assert_snapshot!("register_estimate", folder.run(&["estimate", "out", QUERY]));
}

#[test]
fn the_manifest_says_which_register_it_was_and_how_sure_presence_is() {
    let manifest = released().manifest();
    let digest = digest(PUBLIC.as_bytes());
    let register = json!({
        "name": "public", "date": "2026-01-01", "sha256": digest, "rows": 12, "rows_incomplete": 0, "rows_used": 6
    });
    assert_eq!(manifest["registers"], json!([register]));
    let join = &manifest["register"];
    assert_eq!((&join["joined_by"], &join["release"]), (&json!("key"), &json!("all")));
    assert_eq!((&join["sensitive_groups"], &join["group_k"]), (&json!(2), &json!(3)));
    // Of 4 private persons in two classes of 3, one class may have 3.
    assert_eq!(
        join["presence"],
        json!({ "highest": 1.0, "average": (3.0 * 4.0 / 3.0 + 1.0 / 4.0) / 7.0, "certain": 0 })
    );
    assert_eq!(join["partitioners"], json!(["mondrian"]));
    assert_eq!(manifest["persons"], json!({ "in": 7, "out": 7, "suppressed": 0 }));
    assert!(!manifest.to_string().contains("v1"), "no value is in the manifest");
}

#[test]
fn a_class_of_nobody_but_private_persons_is_warned_of() {
    let folder = golden();
    folder.write("public.csv", b"id,qi1,qi2\nX,9,9\n");
    let ran = folder.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    assert_snapshot!("register_presence", ran);
    assert_eq!(folder.manifest()["register"]["presence"]["highest"], 1.0);
}

#[test]
fn persons_hidden_among_fakes_are_found_with_the_true_register() {
    // An attacker made up G1 and G2, and can now rule them out.
    let folder = released();
    folder.write("public.csv", PUBLIC.replace("G1,6,4\nG2,6,4\n", "").as_bytes());
    assert_snapshot!("register_fakes", refused(&folder, &["verify", "out", "--against", "release.toml"], 1));
}

#[test]
fn an_empty_register_leaves_the_plain_classes() {
    let folder = golden();
    folder.write("public.csv", b"id,qi1,qi2\n");
    assert_eq!(folder.run(RUN).code, 0);
    let joined: Vec<String> = folder.read("out/microdata.csv").lines().skip(1).map(cells_of_two).collect();
    let plain = with(TABLE);
    assert_eq!(plain.run(RUN).code, 0);
    let expected: Vec<String> = plain.read("out/microdata.csv").lines().skip(1).map(cells_of_two).collect();
    assert_eq!(joined, expected);
}

/// A row without its last cell.
fn cells_of_two(line: &str) -> String {
    line.rsplit_once(',').unwrap().0.to_owned()
}

#[test]
fn private_rows_alone_are_released_where_presence_is_public() {
    let folder = with(&format!("{TABLE}{REGISTER}[register]\nrelease = \"microdata\"\n"));
    let ran = folder.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    assert_snapshot!("register_microdata", ran);
    assert_eq!(folder.read("out/microdata.csv").lines().count(), 8);
    assert_eq!(folder.manifest()["register"]["release"], "microdata");
    let alone = folder.run(&["verify", "out"]);
    assert_eq!(alone.code, 0, "{alone}");
    assert!(
        alone.stdout.contains(
            "class sizes can't be counted without the register; verify against the private tables to count them"
        ),
        "{alone}"
    );
    assert_eq!(folder.run(&["verify", "out", "--against", "release.toml"]).code, 0);
    assert_eq!(figures(&estimate(&folder, QUERY, &["--continuous"])), (2.0, vec![1.0, 1.0, 0.0]));
}

#[test]
fn registers_of_every_format_give_the_same_release() {
    for format in ["csv.gz", "csv.zst", "parquet", "arrow", "arrows"] {
        let spec = format!("{TABLE}{REGISTER}").replace("public.csv", &format!("made/public.{format}"));
        let folder = with(&spec);
        let flags = ["--k", "1", "--quasi", "qi1,qi2", "--plain", "id", "-o", "made", "--format", format];
        let made = folder.run(&[&["anonymize", "public.csv"][..], &flags].concat());
        assert_eq!(made.code, 0, "{made}");
        let ran = folder.run(RUN);
        assert_eq!(ran.code, 0, "{ran}");
        assert_eq!(folder.read("out/microdata.csv"), ROWS, "{format}");
    }
}

#[test]
fn releases_beside_a_register_have_every_form() {
    let folder = golden();
    let parquet = folder.run(&["anonymize", "release.toml", "-o", "parquet", "--format", "parquet"]);
    assert_eq!(parquet.code, 0, "{parquet}");
    assert_eq!(folder.run(&["verify", "parquet", "--against", "release.toml"]).code, 0);
    let bounds = folder.run(&["anonymize", "release.toml", "-o", "bounds", "--cells", "bounds"]);
    assert_eq!(bounds.code, 0, "{bounds}");
    assert!(folder.read("bounds/microdata.csv").starts_with("qi1_lo,qi1_hi,qi2_lo,qi2_hi,sensitive_group\n"));
    assert_eq!(folder.run(&["verify", "bounds", "--against", "release.toml"]).code, 0);
}

#[test]
fn without_a_key_rows_are_joined_by_their_values() {
    let count = "[registers.public]\nfile = \"public.csv\"\n[register]\nunmatched = \"count\"\n";
    let folder = with(&format!("{TABLE}{count}"));
    let ran = folder.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stderr.contains("by quasi values, one to one"), "{ran}");
    assert_eq!(folder.read("out/microdata.csv"), ROWS);
    let register = &folder.manifest()["register"];
    assert_eq!((&register["joined_by"], &register["unmatched"]), (&json!("values"), &json!("count")));
    assert_eq!(folder.run(&["verify", "out", "--against", "release.toml"]).code, 0);
}

#[test]
fn without_a_key_somebody_unmatched_may_be_somebody_of_the_register() {
    let folder = with(&format!("{TABLE}[registers.public]\nfile = \"public.csv\"\n"));
    let ran = folder.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stderr.contains("in registers     6 of 7 persons\n"), "{ran}");
    assert!(ran.stderr.contains("unmatched        1, each may be a person of the register"), "{ran}");
    assert!(ran.stderr.contains("no register row matches 14.3 % of the persons"), "{ran}");
    let register = &folder.manifest()["register"];
    assert_eq!((&register["found"], &register["unmatched"]), (&json!(6), &json!("doubt")));
    // No register row has D's values, so D may be anybody of the register, and every class has three other persons.
    let rows = folder.read("out/microdata.csv");
    assert_eq!(rows.lines().filter(|row| row.starts_with("1,\"[1,3]\"")).count(), 3);
    assert_eq!(rows.lines().filter(|row| row.starts_with("\"[2,3]\",\"[2,4]\"")).count(), 4);
    assert_eq!(rows.lines().filter(|row| row.starts_with("\"[4,9]\",\"[2,9]\"")).count(), 6);
    assert_eq!(folder.run(&["verify", "out", "--against", "release.toml"]).code, 0);

    // A release that counts both D, who is in no register, and V, who may be D, does not fit this spec.
    folder
        .write("count.toml", format!("{}[register]\nunmatched = \"count\"\n", folder.read("release.toml")).as_bytes());
    assert_eq!(folder.run(&["anonymize", "count.toml", "-o", "counted"]).code, 0);
    let other = folder.run(&["verify", "counted", "--against", "release.toml"]);
    assert_eq!(other.code, 1, "{other}");
    assert!(other.stderr.contains("uses registers in another way than manifest.json says"), "{other}");
}

#[test]
fn keys_and_values_are_compared_by_what_they_mean() {
    let microdata = MICRODATA.lines().map(|line| match line.split_once(',') {
        Some((name, rest)) if name.len() == 1 => format!("{},{rest}\n", name.as_bytes()[0]),
        _ => format!("{line}\n"),
    });
    let public = PUBLIC.lines().map(|line| {
        let cells: Vec<&str> = line.split(',').collect();
        match cells[0].as_bytes() {
            [letter] => format!("{letter}.0,{}.0,{}.00\n", cells[1], cells[2]),
            _ if cells[0] == "id" => format!("{line}\n"),
            _ => format!("0{line}\n"),
        }
    });
    let spec = format!("{TABLE}{REGISTER}");
    let folder = with(&spec);
    folder.write("microdata.csv", microdata.collect::<String>().as_bytes());
    folder.write("public.csv", public.collect::<String>().as_bytes());
    let ran = folder.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(folder.read("out/microdata.csv"), ROWS);
    assert_eq!(folder.manifest()["register"]["found"], 6);
    assert_eq!(folder.run(&["verify", "out", "--against", "release.toml"]).code, 0);
}

#[test]
fn several_registers_are_united() {
    let more = "[registers.tax]\nfile = \"tax.csv\"\nkey = \"no\"\ncolumns = { qi1 = \"X\", qi2 = \"Y\" }\n";
    let folder = with(&format!("{TABLE}{REGISTER}{more}"));
    folder.write("tax.csv", b"no,X,Y\nU,1,2\nV,9,3\nW,2,3\nZ,,3\n");
    let ran = folder.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(folder.read("out/microdata.csv"), ROWS);
    assert_snapshot!("register_several", ran);
    let manifest = folder.manifest();
    assert_eq!(manifest["register"]["contradicting"], 1);
    let counts = |position: usize| {
        let register = &manifest["registers"][position];
        (register["rows_used"].as_u64().unwrap(), register["rows_incomplete"].as_u64().unwrap())
    };
    assert_eq!((counts(0), counts(1)), ((5, 0), (1, 1)));
}

#[test]
fn forged_releases_fail() {
    let folder = released();
    folder.forge("out/microdata.csv", |text| text.replacen("\"[3,5]\",2,2\n", "\"[1,2]\",\"[1,2]\",1\n", 1));
    assert_snapshot!("register_changed_rows", refused(&folder, &["verify", "out"], 1));

    let folder = released();
    folder.forge("out/microdata.csv", |text| text.replace("\"[3,5]\"", "\"[3,4]\""));
    assert_eq!(folder.run_in_vain(&["verify", "out"]).code, 0, "nothing in the files tells");
    let against = refused(&folder, &["verify", "out", "--against", "release.toml"], 1);
    assert_snapshot!("register_untruthful", against);

    let folder = released();
    folder.forge("out/sensitive.csv", |text| text.replace("2,v3", "2,v2"));
    assert_snapshot!("register_other_values", refused(&folder, &["verify", "out", "--against", "release.toml"], 1));

    let folder = released();
    folder.forge("out/sensitive.csv", |text| text.replace("2,v3", "1,v3"));
    assert_snapshot!("register_other_group", refused(&folder, &["verify", "out"], 1));

    let folder = released();
    folder.write("public.csv", PUBLIC.replace("X,9,9", "X,8,9").as_bytes());
    let other = refused(&folder, &["verify", "out", "--against", "release.toml"], 1);
    assert_snapshot!("register_other_register", other);
}

#[test]
fn faults_of_a_register_are_reported() {
    let wrong = |register: &str, public: &str| {
        let folder = with(&format!("{TABLE}{register}"));
        folder.write("public.csv", public.as_bytes());
        let ran = refused(&folder, RUN, 2);
        assert!(!ran.stderr.contains("secret"), "a cell is shown: {ran}");
        ran
    };
    let pinned = format!("{REGISTER}sha256 = \"{}\"\n", "0".repeat(64));
    assert_snapshot!("register_other_digest", wrong(&pinned, PUBLIC));
    assert_snapshot!("register_bad_values", wrong(REGISTER, "id,qi1,qi2\nA,1,1\nB,secret,2\n"));
    assert_snapshot!("register_no_columns", wrong(REGISTER, "no,qi1\nA,1\n"));
    let refuse = format!("{REGISTER}[register]\nmissing = \"refuse\"\n");
    assert_snapshot!("register_missing", wrong(&refuse, "id,qi1,qi2\nA,1,\n,1,2\n"));
    let nowhere = REGISTER.replace("public.csv", "nowhere.csv");
    assert_snapshot!("register_nowhere", wrong(&nowhere, PUBLIC));
    let twice = format!("{REGISTER}columns = {{ qi2 = \"qi1\" }}\n");
    assert_snapshot!("register_column_twice", wrong(&twice, PUBLIC));
    let public = "delta_presence = [0.0, 0.5]\n";
    let folder = with(&format!("{public}{TABLE}{REGISTER}[register]\nrelease = \"microdata\"\n"));
    assert_snapshot!("register_presence_public", refused(&folder, RUN, 2));
}

#[test]
fn jobs_that_a_register_does_not_allow_are_refused() {
    let folder = golden();
    folder.write("microdata.csv", MICRODATA.replace("B,2,2", "A,2,2").as_bytes());
    assert_snapshot!("register_person_twice", refused(&folder, RUN, 2));
    assert_snapshot!("register_to_stdout", refused(&golden(), &["anonymize", "release.toml", "-o", "-"], 2));
    let full_domain = format!("{}{REGISTER}", TABLE.replace("mondrian", "full-domain"));
    assert_snapshot!("register_full_domain", refused(&with(&full_domain), RUN, 2));
    let bounded = format!("delta_presence = [0.0, 0.1]\n{TABLE}{REGISTER}");
    assert_snapshot!("register_too_present", refused(&with(&bounded), RUN, 1));
    let large = format!("{}{REGISTER}", TABLE.replace("k = 3", "k = 50"));
    assert_snapshot!("register_k_too_large", refused(&with(&large), RUN, 1));
}

#[test]
fn presence_is_bounded_where_the_register_is_large_enough() {
    let folder = with(&format!("delta_presence = [0.0, 0.7]\n{TABLE}{REGISTER}"));
    let ran = folder.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(folder.manifest()["requirement"]["delta_presence"], json!([0.0, 0.7]));
    assert!(folder.manifest()["register"]["presence"]["highest"].as_f64().unwrap() <= 0.7);
    assert_eq!(folder.run(&["verify", "out", "--against", "release.toml"]).code, 0);
}

#[test]
fn a_register_of_fakes_makes_presence_certain_to_whoever_knows_them() {
    // Everybody is hidden by two persons who do not exist. The publisher sees that they are a third of each class, and is
    // warned that nobody is in the register. The attacker knows that they are invented.
    let fakes: String = MICRODATA
        .lines()
        .skip(1)
        .flat_map(|row| {
            let place: Vec<&str> = row.split(',').collect();
            [1, 2].map(|fake| format!("fake{fake}{},{},{}\n", place[0], place[1], place[2]))
        })
        .collect();
    let folder = golden();
    folder.write("public.csv", format!("id,qi1,qi2\n{fakes}").as_bytes());
    let ran = folder.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    assert_snapshot!("register_of_fakes", ran);
    let join = &folder.manifest()["register"];
    assert_eq!((&join["found"], &join["presence"]["certain"]), (&json!(0), &json!(0)));
    // With the true register, in which nobody is near the private persons, verifying and anonymizing tell the publisher.
    folder.write("public.csv", b"id,qi1,qi2\nX,9,9\n");
    let other = refused(&folder, &["verify", "out", "--against", "release.toml"], 1);
    assert!(other.stderr.contains("at least 3 persons in each class"), "{other}");
    let warned = folder.run(&["anonymize", "release.toml", "-o", "true"]);
    assert!(warned.stderr.contains("so a reader is sure that everybody there is in the private table"), "{warned}");
    folder.write("release.toml", format!("delta_presence = [0.0, 0.5]\n{TABLE}{REGISTER}").as_bytes());
    let bounded = refused(&folder, &["anonymize", "release.toml", "-o", "bounded"], 1);
    assert!(bounded.stderr.contains("the presence of persons can't be kept between 0 and 0.5"), "{bounded}");
}

#[test]
fn closeness_holds_in_sensitive_groups() {
    let spec = format!("{TABLE}{REGISTER}").replace("l = 2", "t = 0.3");
    for method in ["refine", "direct"] {
        let folder = with(&format!("{spec}[register]\nmethod = \"{method}\"\n"));
        let ran = folder.run(RUN);
        assert_eq!(ran.code, 0, "{ran}");
        let t = folder.manifest()["achieved"]["sensitive"]["sa"]["t"].as_f64().unwrap();
        assert!(t <= 0.3, "{t}");
        assert_eq!(folder.run_in_vain(&["verify", "out", "--against", "release.toml"]).code, 0);
    }
    let folder = with(&spec.replace("0.3", "0.01"));
    let ran = folder.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(folder.manifest()["register"]["sensitive_groups"], 1);
}

/// The example, in which some persons have a k of their own.
fn with_own_k(asks: &[(&str, u32)], settings: &str) -> Folder {
    let spec = format!("{settings}{TABLE}own = \"person_k\"\n{REGISTER}");
    let folder = with(&spec);
    let mut rows = MICRODATA.lines();
    let mut text = format!("{},own\n", rows.next().unwrap());
    for row in rows {
        let own = asks.iter().find(|(name, _)| row.starts_with(name)).map_or(1, |&(_, own)| own);
        text += &format!("{row},{own}\n");
    }
    folder.write("microdata.csv", text.as_bytes());
    folder
}

#[test]
fn persons_own_k_holds_beside_a_register_and_is_verified() {
    let folder = with_own_k(&[("G", 5)], "");
    let ran = folder.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    let rows = folder.read("out/microdata.csv");
    // A larger class for G alone would show where a private person is, so all classes are equally large.
    let mut sizes: BTreeMap<&str, u32> = BTreeMap::new();
    rows.lines().skip(1).for_each(|row| *sizes.entry(row).or_default() += 1);
    assert!(sizes.values().all(|&size| size >= 5), "{rows}");
    let against = folder.run_in_vain(&["verify", "out", "--against", "release.toml"]);
    assert_eq!(against.code, 0, "{against}");
    assert!(!against.stdout.contains("own k"), "{against}");

    // This release was made before G asked for a k.
    let folder = released();
    let asks = with_own_k(&[("G", 5)], "");
    for file in ["release.toml", "microdata.csv"] {
        folder.write(file, asks.read(file).as_bytes());
    }
    let manifest = folder.read("out/manifest.json").replacen("\"k\": 3,", "\"k\": 3, \"person_k\": true,", 1);
    folder.write("out/manifest.json", manifest.as_bytes());
    let ran = refused(&folder, &["verify", "out", "--against", "release.toml"], 1);
    assert_snapshot!("register_own_k", ran);
}

#[test]
fn persons_who_ask_for_too_much_are_left_out_as_far_as_allowed() {
    assert_eq!(with_own_k(&[("A", 50)], "").run_in_vain(RUN).code, 1);
    let folder = with_own_k(&[("A", 50)], "max_suppressed = 0.2\n");
    let ran = folder.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(folder.manifest()["persons"], json!({ "in": 7, "out": 6, "suppressed": 1 }));
    let against = folder.run_in_vain(&["verify", "out", "--against", "release.toml"]);
    assert_eq!(against.code, 0, "{against}");
}
