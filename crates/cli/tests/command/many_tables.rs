//! Several tables that refer to each other: the students of the paper, and wrong input.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::runner::{Folder, Ran};

const STUDENT: &str = include_str!("../../../testkit/golden/students/student.csv");
const TAKES: &str = include_str!("../../../testkit/golden/students/takes.csv");
const BOOKS: &str = include_str!("../../../testkit/golden/students/books.csv");
const COURSES: &str = include_str!("../../../testkit/golden/students/course.dgh.csv");
const BOOK_KINDS: &str = include_str!("../../../testkit/golden/students/book.dgh.csv");

const SPEC: &str = "\
k = 2
[tables.student]
file = \"student.csv\"
person = \"sid\"
columns = { sid = \"key\", gpa = \"sensitive\" }
[tables.takes]
file = \"takes.csv\"
key = \"scid\"
parent = { table = \"student\", foreign_key = \"sid\" }
[tables.takes.columns]
course = { role = \"quasi\", hierarchy = \"course.csv\" }
grade = \"sensitive\"
[tables.books]
file = \"books.csv\"
parent = { table = \"takes\", foreign_key = \"scid\" }
[tables.books.columns]
book = { role = \"quasi\", hierarchy = \"book.csv\" }
price = \"sensitive\"
";

const RUN: &[&str] = &["anonymize", "release.toml", "-o", "out"];

fn students() -> Folder {
    Folder::with(&[
        ("release.toml", SPEC),
        ("student.csv", STUDENT),
        ("takes.csv", TAKES),
        ("books.csv", BOOKS),
        ("course.csv", COURSES),
        ("book.csv", BOOK_KINDS),
    ])
}

pub(crate) fn released() -> Folder {
    let folder = students();
    let ran = folder.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    folder
}

/// The students with one line of their spec changed.
fn with_spec(line: &str, instead: &str) -> Folder {
    assert!(SPEC.contains(line));
    let folder = students();
    folder.write("release.toml", SPEC.replace(line, instead).as_bytes());
    folder
}

/// Runs, expects a failure, and checks that no message shows a cell.
fn refused(folder: &Folder, arguments: &[&str]) -> Ran {
    let ran = folder.run_in_vain(arguments);
    assert_ne!(ran.code, 0);
    for cell in ["SC1", "S1", "Yodaism", "Physics", "3.72"] {
        assert!(!ran.stderr.contains(cell), "a cell is shown: {ran}");
    }
    ran
}

fn verified(folder: &Folder) {
    for arguments in [&["verify", "out"][..], &["verify", "out", "--against", "release.toml"]] {
        let ran = folder.run_in_vain(arguments);
        assert_eq!(ran.code, 0, "{ran}");
    }
}

/// The lines of a table without its header, each without the cells at these positions, sorted.
fn rows(text: &str, without: &[usize]) -> Vec<String> {
    let row = |line: &str| {
        let cells = line.split(',').enumerate().filter(|(position, _)| !without.contains(position));
        cells.map(|(_, cell)| cell).collect::<Vec<_>>().join(",")
    };
    let mut rows: Vec<String> = text.lines().skip(1).map(row).collect();
    rows.sort_unstable();
    rows
}

fn sorted(rows: &[&str]) -> Vec<String> {
    let mut rows: Vec<String> = rows.iter().map(|&row| row.to_owned()).collect();
    rows.sort_unstable();
    rows
}

#[test]
fn the_students_of_the_paper_are_released() {
    for algorithm in ["auto", "miracle", "miraclex"] {
        let folder = with_spec("k = 2\n", &format!("k = 2\nalgorithm = \"{algorithm}\"\n"));
        let ran = folder.run(RUN);
        assert_eq!(ran.code, 0, "{ran}");
        verified(&folder);
        let manifest = folder.manifest();
        let lm = manifest["loss"]["lm"].as_f64().unwrap();
        assert!((lm - 0.2803).abs() < 5e-5, "{algorithm}: {lm}");
        assert_eq!(manifest["algorithm"], algorithm);
        assert_eq!(rows(&folder.read("out/student.csv"), &[0]), sorted(&["3.72", "2.34", "3.12", "4.00"]));
        let takes = [
            "Science,93",
            "Physics,91",
            "Social,85",
            "Science,78",
            "Physics,62",
            "Social,42",
            "History,85",
            "Religion,75",
            "History,98",
            "Religion,96",
        ];
        assert_eq!(rows(&folder.read("out/takes.csv"), &[0, 1]), sorted(&takes));
        let books = [
            "Discrete,63",
            "Dynamics,42",
            "Relg Book,33",
            "Discrete,65",
            "Dynamics,51",
            "Relg Book,38",
            "Hist Book,49",
            "Hist Book,54",
        ];
        assert_eq!(rows(&folder.read("out/books.csv"), &[0]), sorted(&books));
    }
}

#[test]
fn a_release_of_several_tables_says_what_became_of_each() {
    let folder = students();
    assert_snapshot!("tables", folder.run(RUN));
    assert_snapshot!("tables_manifest", folder.read("out/manifest.json"));
    assert_snapshot!("tables_verify", folder.run_in_vain(&["verify", "out"]));
    assert_snapshot!("tables_verify_json", folder.run_in_vain(&["verify", "out", "--json"]));
    assert_snapshot!("tables_against", folder.run_in_vain(&["verify", "out", "--against", "release.toml"]));
    let takes = folder.read("out/takes.csv");
    assert!(takes.starts_with("scid,sid,course,grade\n1,1,"), "{takes}");
}

#[test]
fn programs_get_the_manifest_of_several_tables() {
    let folder = students();
    let ran = folder.run(&["anonymize", "release.toml", "-o", "out", "--json"]);
    let printed: Value = serde_json::from_str(&ran.stdout).unwrap();
    let mut written = folder.manifest();
    written["release"] = "out".into();
    // Only the publisher is told how totals changed.
    written["total_changes"] = json!({
        "books.price": { "mean": -0.105, "total": -0.349 },
        "takes.grade": { "mean": 0.004, "total": -0.087 },
    });
    assert_eq!(printed, written);
    let ran = students().run_in_vain(&["anonymize", "release.toml", "--dry-run", "--json"]);
    let printed: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(printed["tables"][1].get("sha256"), None);
    assert_eq!(printed["loss"], written["loss"]);
}

#[test]
fn the_order_of_rows_and_the_number_of_threads_do_not_show() {
    let folder = released();
    let mut lines: Vec<&str> = TAKES.lines().collect();
    lines[1..].reverse();
    folder.write("takes.csv", format!("{}\n", lines.join("\n")).as_bytes());
    for threads in ["1", "8"] {
        assert_eq!(folder.run(&["anonymize", "release.toml", "-o", threads, "--threads", threads]).code, 0);
        for file in ["student.csv", "takes.csv", "books.csv"] {
            assert_eq!(folder.read(&format!("out/{file}")), folder.read(&format!("{threads}/{file}")), "{file}");
        }
    }
}

#[test]
fn a_child_file_that_was_changed_is_found_out() {
    let folder = released();
    let takes = folder.read("out/takes.csv").replace("Physics", "Math");
    folder.write("out/takes.csv", takes.as_bytes());
    let ran = folder.run(&["verify", "out"]);
    assert_eq!(ran.code, 1);
    assert_snapshot!("tables_changed_file", ran);
}

#[test]
fn a_forged_child_file_is_found_out() {
    // One of two persons who looked the same now looks different.
    let folder = with_spec("k = 2\n", "k = 2\nhierarchies = \"withhold\"\n");
    assert_eq!(folder.run(RUN).code, 0);
    folder.forge("out/takes.csv", |text| text.replacen("Physics", "Math", 1));
    let ran = folder.run(&["verify", "out"]);
    assert_eq!(ran.code, 1);
    assert_snapshot!("tables_forged", ran);
    // A grade that nobody had.
    let folder = released();
    folder.forge("out/takes.csv", |text| text.replacen(",93", ",39", 1));
    let ran = folder.run(&["verify", "out", "--against", "release.toml"]);
    assert_eq!(ran.code, 1);
    assert_snapshot!("tables_untruthful", ran);
    // A row that joins with nothing.
    let folder = released();
    folder.forge("out/books.csv", |text| text.replacen("\n1,", "\n77,", 1));
    let ran = folder.run(&["verify", "out"]);
    assert_eq!(ran.code, 1);
    assert_snapshot!("tables_without_parent", ran);
}

#[test]
fn a_manifest_that_joins_tables_otherwise_is_found_out() {
    let folder = released();
    let mut manifest = folder.manifest();
    manifest["links"] = serde_json::json!([]);
    folder.write("out/manifest.json", manifest.to_string().as_bytes());
    assert_ne!(folder.run(&["verify", "out"]).code, 0);
    let ran = folder.run(&["verify", "out", "--against", "release.toml"]);
    assert_eq!(ran.code, 1);
    assert_snapshot!("tables_links", ran);
}

#[test]
fn a_spec_of_other_tables_is_not_the_release_s() {
    let folder = released();
    let one = "k = 2\n[tables.takes]\nfile = \"takes.csv\"\n\
               columns = { scid = \"drop\", sid = \"drop\", course = \"quasi\", grade = \"plain\" }\n";
    folder.write("other.toml", one.as_bytes());
    let ran = folder.run(&["verify", "out", "--against", "other.toml"]);
    assert_eq!(ran.code, 2);
    assert_snapshot!("tables_other_spec", ran);
}

#[test]
fn rows_that_do_not_hang_together_are_listed() {
    let folder = students();
    folder.write("student.csv", format!("{STUDENT}S2,1.11\n,2.22\nS9,3.33\n").as_bytes());
    folder.write("takes.csv", format!("{TAKES}SC12,S7,CS,50\nSC13,,CS,51\nSC11,S4,CS,52\n").as_bytes());
    folder.write("books.csv", format!("{BOOKS}SC99,Yodaism,1\n").as_bytes());
    let ran = refused(&folder, RUN);
    assert_eq!(ran.code, 2);
    assert_snapshot!("tables_do_not_join", ran);
}

#[test]
fn the_problems_of_all_files_come_together() {
    let folder = students();
    folder.write("takes.csv", TAKES.replace("SC2,S1,Physics", "SC2,S1,Biology").as_bytes());
    folder.write("books.csv", BOOKS.replace("price", "cost").as_bytes());
    let ran = refused(&folder, RUN);
    assert_eq!(ran.code, 2);
    assert_snapshot!("tables_bad_files", ran);
}

#[test]
fn a_limit_on_rows_left_out_is_kept_or_the_job_is_refused() {
    let books = "[tables.books]\nfile = \"books.csv\"\n";
    let limit = |share: &str| with_spec(books, &format!("{books}max_rows_left_out = {share}\n"));
    // Somebody has a single book, and others four.
    let ran = refused(&limit("0.05"), RUN);
    assert_eq!(ran.code, 1, "{ran}");
    assert!(ran.stderr.contains("table 'books'") && ran.stderr.contains("more than max_rows_left_out = 0.05"), "{ran}");
    assert!(ran.stderr.contains("hint: allow a larger share"), "{ran}");
    let folder = limit("0.5");
    let ran = folder.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    verified(&folder);
    let manifest = folder.manifest();
    assert_eq!(manifest["requirement"]["max_rows_left_out"], serde_json::json!({ "books": 0.5 }));
    let codes = manifest["notes"].as_array().map_or(0, Vec::len);
    assert_eq!(codes, usize::from(manifest["tables"][1]["rows_suppressed"] != 0), "{}", manifest["notes"]);
    // A manifest that claims a smaller share contradicts its own counts.
    let claim = folder.read("out/manifest.json").replace("\"books\": 0.5", "\"books\": 0.01");
    folder.write("out/manifest.json", claim.as_bytes());
    let ran = refused(&folder, &["verify", "out"]);
    assert_eq!(ran.code, 1, "{ran}");
    assert!(ran.to_string().contains("more than a share of 0.01"), "{ran}");
    let ran = refused(&folder, &["verify", "out", "--against", "release.toml"]);
    assert_eq!(ran.code, 1, "{ran}");
}

#[test]
fn the_publisher_alone_is_told_how_totals_change() {
    let folder = students();
    let ran = folder.run(&["anonymize", "release.toml", "-o", "out", "--json"]);
    let printed: Value = serde_json::from_str(&ran.stdout).unwrap();
    let lacks = |position: usize| printed["tables"][position]["rows_suppressed"] != 0;
    assert!(lacks(2), "{ran}");
    let sum = |text: &str, column: usize| -> f64 {
        text.lines().skip(1).map(|line| line.split(',').nth(column).unwrap().parse::<f64>().unwrap()).sum()
    };
    let change = sum(&folder.read("out/books.csv"), 2) / sum(BOOKS, 2) - 1.0;
    let told = printed["total_changes"]["books.price"]["total"].as_f64().unwrap();
    assert!((told - change).abs() <= 0.0005 + 1e-9, "{told} {change}");
    assert_eq!(printed["total_changes"]["takes.grade"].is_null(), !lacks(1));
    assert!(ran.stderr.contains("only you are told"), "{ran}");
    assert!(!folder.read("out/manifest.json").contains("total_changes"));
}

#[test]
fn orphans_are_left_out_where_the_spec_says_so() {
    let drop = "parent = { table = \"student\", foreign_key = \"sid\" }\norphans = \"drop\"";
    let folder = with_spec("parent = { table = \"student\", foreign_key = \"sid\" }", drop);
    folder.write("takes.csv", format!("{TAKES}SC12,S7,CS,50\nSC13,,CS,51\n").as_bytes());
    // Rows that belong to an orphan are left out with it.
    folder.write("books.csv", format!("{BOOKS}SC12,Yodaism,1\n").as_bytes());
    let ran = folder.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    verified(&folder);
    let manifest = folder.manifest();
    assert_eq!(manifest["tables"][1]["rows_in"], 13);
    assert_eq!(manifest["tables"][1]["rows_suppressed"], 3);
    assert_eq!(manifest["tables"][2]["rows_suppressed"], 4);
    assert_eq!(manifest["persons"]["suppressed"], 0);
}

#[test]
fn persons_without_children_stay_where_the_spec_says_so() {
    let alone = format!("{STUDENT}S5,1.11\nS6,2.22\n");
    let folder = students();
    folder.write("student.csv", alone.as_bytes());
    assert_snapshot!("tables_childless", refused(&folder, RUN));
    let folder = with_spec("person = \"sid\"", "person = \"sid\"\nchildless = \"keep\"");
    folder.write("student.csv", alone.as_bytes());
    let ran = folder.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    verified(&folder);
    assert_eq!(folder.manifest()["persons"]["out"], 6);
    assert_eq!(folder.manifest()["classes"], 3);
}

#[test]
fn keys_are_kept_where_the_spec_says_so() {
    let folder = with_spec("k = 2\n", "k = 2\nkeys = \"keep\"\n");
    let ran = folder.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    verified(&folder);
    assert_eq!(rows(&folder.read("out/student.csv"), &[]), sorted(&["S1,3.72", "S2,2.34", "S3,3.12", "S4,4.00"]));
    assert!(folder.read("out/takes.csv").contains("SC1,S1,Science,93\n"));
}

#[test]
fn an_identifier_joins_tables_without_being_released() {
    let folder = with_spec("sid = \"key\"", "sid = \"identifier\"");
    let ran = folder.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    verified(&folder);
    assert!(!folder.read("out/student.csv").contains('S'));
    let spec = SPEC.replace("sid = \"key\"", "sid = \"identifier\"").replace("k = 2\n", "k = 2\nkeys = \"keep\"\n");
    let folder = students();
    folder.write("release.toml", spec.as_bytes());
    assert_snapshot!("tables_identifier_kept", refused(&folder, RUN));
}

#[test]
fn parquet_tables_become_parquet_tables() {
    let folder = students();
    for (table, quasi, plain) in
        [("student", "gpa", "sid"), ("takes", "course", "scid,sid,grade"), ("books", "book", "scid,price")]
    {
        let file = format!("{table}.csv");
        let mut flags = vec!["anonymize", &file, "--k", "1", "--quasi", quasi, "--plain", plain];
        flags.extend(["--format", "parquet", "-o", table]);
        let ran = folder.run(&flags);
        assert_eq!(ran.code, 0, "{ran}");
    }
    let mut spec = SPEC.to_owned();
    for table in ["student", "takes", "books"] {
        spec = spec.replace(&format!("\"{table}.csv\""), &format!("\"{table}/{table}.parquet\""));
    }
    folder.write("release.toml", spec.as_bytes());
    let ran = folder.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    verified(&folder);
    assert_eq!(folder.manifest()["tables"][2]["file"], "books.parquet");
    let lm = folder.manifest()["loss"]["lm"].as_f64().unwrap();
    assert!((lm - 0.2803).abs() < 5e-5, "{lm}");
}

#[test]
fn a_table_whose_rows_are_all_left_out_is_released_empty() {
    // Only one student has books, so nobody's books can be shown.
    let books = "scid,book,price\nSC1,Discrete,63\n";
    for format in ["csv", "csv.gz", "parquet", "arrow", "arrows"] {
        let folder = students();
        folder.write("books.csv", books.as_bytes());
        let ran = folder.run(&["anonymize", "release.toml", "-o", "out", "--format", format]);
        assert_eq!(ran.code, 0, "{ran}");
        assert_eq!(folder.manifest()["tables"][2]["rows_out"], 0);
        verified(&folder);
    }
}

#[test]
fn two_kinds_of_persons_are_each_k() {
    let folder = students();
    let spec = format!(
        "{SPEC}[tables.teacher]\nfile = \"teacher.csv\"\nkey = \"tid\"\nperson = true\n\
         columns = {{ tid = \"key\", age = \"quasi\" }}\n"
    );
    folder.write("release.toml", spec.as_bytes());
    folder.write("teacher.csv", b"tid,age\n1,40\n2,44\n3,60\n4,61\n5,62\n");
    let ran = folder.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    verified(&folder);
    assert_snapshot!("tables_two_kinds", folder.run_in_vain(&["verify", "out"]));
    assert_eq!(folder.manifest()["persons"]["in"], 9);
    assert_eq!(folder.read("out/teacher.csv").lines().next(), Some("age"));
}

#[test]
fn sensitive_columns_of_each_table_can_ask_for_more() {
    let folder = with_spec("grade = \"sensitive\"", "grade = { role = \"sensitive\", l = 2, t = 0.9 }");
    let ran = folder.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    verified(&folder);
    let manifest = folder.manifest();
    assert_eq!(manifest["requirement"]["sensitive"]["takes.grade"]["l"], 2);
    assert!(manifest["achieved"]["sensitive"]["takes.grade"]["l"].as_u64() >= Some(2));
}

#[test]
fn bounds_are_written_in_every_table() {
    let folder = with_spec("grade = \"sensitive\"", "grade = \"quasi\"");
    let ran = folder.run(&["anonymize", "release.toml", "-o", "out", "--cells", "bounds"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(folder.read("out/takes.csv").starts_with("scid,sid,course,grade_lo,grade_hi\n"));
    verified(&folder);
}

#[test]
fn a_k_larger_than_the_number_of_persons_is_not_reached() {
    let ran = refused(&with_spec("k = 2\n", "k = 5\n"), RUN);
    assert_eq!(ran.code, 1);
    assert_snapshot!("tables_k_too_large", ran);
}

#[test]
fn settings_that_several_tables_can_t_have() {
    let run = |spec: String| {
        let folder = students();
        folder.write("release.toml", spec.as_bytes());
        let ran = refused(&folder, RUN);
        assert_eq!(ran.code, 2);
        ran
    };
    assert_snapshot!("tables_one_table_algorithm", run(format!("algorithm = \"mondrian\"\n{SPEC}")));
    assert_snapshot!("tables_with_audiences", run(format!("{SPEC}[audiences.hr]\nquasi = [\"course\", \"book\"]\n")));
    let register = "[registers.voters]\nfile = \"voters.csv\"\nkey = \"sid\"\n";
    assert_snapshot!("tables_with_a_register", run(format!("{SPEC}{register}")));
    let ran = refused(&students(), &["anonymize", "release.toml", "-o", "-"]);
    assert_eq!(ran.code, 2);
    assert_snapshot!("tables_to_stdout", ran);
}

#[test]
fn the_university_of_the_examples_is_released() {
    let folder = Folder::new();
    let spec = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/university/release.toml");
    let ran = folder.run(&["anonymize", spec, "-o", "out", "--json"]);
    assert_eq!(ran.code, 0, "{ran}");
    let manifest: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(manifest["tables"].as_array().unwrap().len(), 5);
    assert_eq!(manifest["links"].as_array().unwrap().len(), 4);
    assert!(manifest["achieved"]["k"].as_u64() >= manifest["requirement"]["k"].as_u64());
    for arguments in [&["verify", "out"][..], &["verify", "out", "--against", spec]] {
        let ran = folder.run(arguments);
        assert_eq!(ran.code, 0, "{ran}");
    }
}

const TRANSFERS: &str = "\
k = 2
[tables.account]
file = \"account.csv\"
key = \"id\"
columns = { town = \"quasi\", sum = \"sensitive\", receiver = { role = \"key\", references = \"account\" } }
";

/// Accounts that send to each other.
fn transfers(accounts: &str) -> Folder {
    Folder::with(&[("release.toml", TRANSFERS), ("account.csv", accounts)])
}

#[test]
fn references_within_one_table_are_renumbered_counted_and_verified() {
    let folder = transfers("id,town,sum,receiver\nz9,a,1,m4\nz3,a,2,m1\nm4,b,3,\nm1,b,4,\n");
    let ran = folder.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stderr.contains("2 kept, 0 set to null"), "{ran}");
    verified(&folder);
    assert_eq!(folder.read("out/account.csv"), "id,town,sum,receiver\n1,a,1,3\n2,a,2,4\n3,b,3,\n4,b,4,\n");
    let manifest = folder.manifest();
    assert_eq!(manifest["links"][0]["kind"], "reference");
    assert_eq!(manifest["references"][0]["kept"], 2);
    // An account that receives twice stands out, although every row still has its receiver.
    folder.forge("out/account.csv", |table| table.replace("2,a,2,4", "2,a,2,3"));
    for arguments in [&["verify", "out"][..], &["verify", "out", "--against", "release.toml"]] {
        let ran = folder.run_in_vain(arguments);
        assert_eq!(ran.code, 1, "{ran}");
    }
}

#[test]
fn references_that_lead_nowhere_are_listed_by_row() {
    let folder = transfers("id,town,sum,receiver\nz9,a,1,m4\nz3,a,2,gone\nm4,b,3,\nm1,b,4,lost\n");
    let ran = folder.run_in_vain(RUN);
    assert_eq!(ran.code, 2, "{ran}");
    assert!(ran.stderr.contains("rows 2 and 4 with a reference in 'receiver' to no row of 'account'"), "{ran}");
    assert!(!ran.stderr.contains("gone") && !ran.stderr.contains("lost"), "{ran}");
}
