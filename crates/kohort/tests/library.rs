//! The library as a program uses it: it gives the same bytes as files do, errors have kinds, and work can be cancelled.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use kohort::{
    Batches, Check, Compression, Error, Existing, Format, Hierarchy, Job, JobBuilder, LDiversity, Progress, Register,
    Requirement, Silent, Table, Verdict, WriteOptions,
};

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

fn people() -> RecordBatch {
    let id: ArrayRef = Arc::new(Int64Array::from_iter_values(0..40));
    let age: ArrayRef = Arc::new(Int64Array::from_iter_values((0..40).map(|row| 20 + row * 7 % 50)));
    let job: ArrayRef = Arc::new(StringArray::from_iter_values((0..40).map(|row| ["nurse", "cook", "clerk"][row % 3])));
    let disease: ArrayRef = Arc::new(StringArray::from_iter_values((0..40).map(|row| ["flu", "gout"][row % 2])));
    RecordBatch::try_from_iter([("id", id), ("age", age), ("job", job), ("disease", disease)]).unwrap()
}

fn jobs() -> Hierarchy {
    Hierarchy::paths([["nurse", "health", "*"], ["cook", "kitchen", "*"], ["clerk", "office", "*"]])
}

fn table() -> Table {
    Table::from_batches([people()])
        .unwrap()
        .person("id")
        .quasi("age", Hierarchy::none())
        .quasi("job", jobs())
        .sensitive("disease", [LDiversity::distinct(2)])
}

/// The files of a release except its manifest, by name.
fn files(folder: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let entries = entries.filter(|path| !path.ends_with("manifest.json"));
    entries
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read_to_string(&path).unwrap()))
        .collect()
}

#[test]
fn a_builder_changes_cells_like_a_spec() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.csv");
    std::fs::write(&file, "age,pay,day\n20,101,2024-03-17\n30,149,2024-03-01\n80,151,2023-02-28\n90,998,2023-02-01\n")
        .unwrap();
    let table = kohort::Table::from_file(&file)
        .quasi("age", kohort::Hierarchy::none())
        .top("age", 80.0)
        .bottom("age", 30)
        .sensitive("pay", [])
        .round("pay", 50.0)
        .plain("day")
        .truncate("day", "month");
    let release = table.k(2).build().unwrap().anonymize().unwrap();
    let mut csv = Vec::new();
    release.write_csv(&mut csv).unwrap();
    let mut rows: Vec<&str> = std::str::from_utf8(&csv).unwrap().lines().collect();
    rows[1..].sort_unstable();
    let expected = [
        "age,pay,day",
        "<= 30,100,2024-03-01",
        "<= 30,150,2024-03-01",
        ">= 80,1000,2023-02-01",
        ">= 80,150,2023-02-01",
    ];
    assert_eq!(rows, expected);
}

#[test]
fn a_hierarchy_in_memory_stands_in_for_a_file() {
    let from_file = Table::from_batches([people()])
        .unwrap()
        .person("id")
        .quasi("age", Hierarchy::none())
        .quasi("job", Hierarchy::file("nowhere.csv"))
        .sensitive("disease", [LDiversity::distinct(2)])
        .k(4);
    let job = from_file.build().unwrap();
    assert!(matches!(job.anonymize(), Err(Error::Input(_))));
    let job = job.instead_of_text("nowhere.csv", "nurse;health;*\ncook;kitchen;*\nclerk;office;*\n");
    let release = job.anonymize().unwrap();
    let expected = table().k(4).anonymize().unwrap();
    let csv = |release: &kohort::Release| {
        let mut bytes = Vec::new();
        release.write_csv(&mut bytes).unwrap();
        bytes
    };
    assert_eq!(csv(&release), csv(&expected));
    assert_eq!(release.findings().k, release.manifest().achieved.k);
    assert_eq!(release.findings().class_sizes[0].0, release.manifest().achieved.k);
}

#[test]
fn suggestions_for_rows_in_memory_are_those_for_their_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("people.csv");
    let mut text = "id,age,job,disease\n".to_owned();
    for row in 0..40 {
        let (job, disease) = (["nurse", "cook", "clerk"][row % 3], ["flu", "gout"][row % 2]);
        text += &format!("{row},{},{job},{disease}\n", 20 + row * 7 % 50);
    }
    fs::write(&file, text).unwrap();
    let batches = Batches::new(people().schema(), vec![people()]).unwrap();
    let of_memory = kohort::suggest_batches("people", &batches, &Silent).unwrap();
    assert_eq!(of_memory, kohort::suggest(&file, &Silent).unwrap());
}

#[test]
fn batches_in_memory_are_released_like_the_same_rows_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let csv = WriteOptions { format: Some(Format::Csv(Compression::None)), existing: Existing::Refuse };
    let release = table().k(4).anonymize().unwrap();
    release.write_with(at("memory"), csv, &Silent).unwrap();

    let mut text = "id,age,job,disease\n".to_owned();
    for row in 0..40 {
        text += &format!(
            "{row},{},{},{}\n",
            20 + row * 7 % 50,
            ["nurse", "cook", "clerk"][row % 3],
            ["flu", "gout"][row % 2]
        );
    }
    fs::write(at("table.csv"), text).unwrap();
    fs::write(at("job.csv"), "nurse;health;*\ncook;kitchen;*\nclerk;office;*\n").unwrap();
    let from_file = Table::from_file(at("table.csv"))
        .person("id")
        .quasi("age", Hierarchy::none())
        .quasi("job", Hierarchy::file(at("job.csv")))
        .sensitive("disease", [LDiversity::distinct(2)])
        .k(4);
    from_file.anonymize().unwrap().write_with(at("file"), csv, &Silent).unwrap();
    assert_eq!(files(&at("memory")), files(&at("file")));

    let job = table().k(4).build().unwrap();
    assert_eq!(kohort::verify(at("memory")).unwrap().verdict, Verdict::Verified);
    assert_eq!(kohort::verify_against(at("memory"), &job).unwrap().verdict, Verdict::Verified);
    let other = table().k(3).build().unwrap();
    assert_eq!(kohort::verify_against(at("memory"), &other).unwrap().verdict, Verdict::NotMet);
}

#[test]
fn released_batches_have_the_rows_that_were_verified() {
    let release = table().k(4).anonymize().unwrap();
    let tables = release.to_batches().unwrap();
    let [released] = tables.as_slice() else { panic!("one table was released") };
    let names: Vec<&str> = released.rows.schema().fields().iter().map(|field| field.name().as_str()).collect();
    assert_eq!(names, ["age", "job", "disease"]);
    let check = Check {
        quasi: vec!["age".to_owned(), "job".to_owned()],
        sensitive: vec!["disease".to_owned()],
        requirements: vec![Requirement::K(4), Requirement::DistinctL { column: "disease".to_owned(), l: 2 }],
        ..Check::default()
    };
    let checked = check.batches(&released.rows, &Silent).unwrap();
    assert!(checked.unmet.is_empty(), "{:?}", checked.unmet);
    assert_eq!(checked.findings.k, release.manifest().achieved.k);
}

#[test]
fn a_register_in_memory_hides_people_like_one_in_a_file() {
    let number: ArrayRef = Arc::new(Int64Array::from_iter_values(0..400));
    let years: ArrayRef = Arc::new(Int64Array::from_iter_values((0..400).map(|row| 20 + row * 7 % 50)));
    let town = RecordBatch::try_from_iter([("no", number), ("age", years)]).unwrap();
    let batches = Batches::new(town.schema(), vec![town.slice(0, 100), town.slice(100, 300)]).unwrap();
    let persons = Table::from_batches([people()])
        .unwrap()
        .person("id")
        .quasi("age", Hierarchy::none())
        .drop("job")
        .sensitive("disease", []);
    let beside = persons.clone().k(4).register("town", Register::of(batches).key("no")).anonymize().unwrap();
    let alone = persons.k(4).anonymize().unwrap();
    assert!(beside.manifest().loss.lm < alone.manifest().loss.lm);
    assert_eq!(beside.manifest().registers[0].rows, 400);
    assert_eq!(beside.manifest().registers[0].sha256.len(), 64);
}

#[test]
fn columns_of_one_name_in_two_tables_keep_their_own_hierarchies() {
    let visits = || {
        let id: ArrayRef = Arc::new(Int64Array::from_iter_values(0..40));
        let job: ArrayRef = Arc::new(StringArray::from_iter_values((0..40).map(|row| ["a", "b"][row % 2])));
        RecordBatch::try_from_iter([("id", id), ("job", job)]).unwrap()
    };
    let wards = Hierarchy::paths([["a", "ward", "*"], ["b", "ward", "*"]]);
    // Each hierarchy lacks the values of the other table, so mixing them up would be an error.
    let release = JobBuilder::new(2)
        .table("person", table())
        .table("visit", Table::from_batches([visits()]).unwrap().parent("person", "id").quasi("job", wards))
        .anonymize();
    assert!(release.is_ok(), "{}", release.unwrap_err());
}

#[test]
fn hard_values_are_read_from_a_release_of_every_format() {
    // Each row occurs twice, so with k = 2 every class has one value and shows it unchanged.
    let rows = [
        "00000,9007199254740993,1.50,0001-01-01,1969-12-31T23:59:59.999999999Z,\"a,b\",true",
        "00123,-9223372036854775808,-0.10,1582-10-15,1970-01-01 00:00:00,\"say \"\"no\"\"\",false",
        "7,,99999999999999999999.000000000001,9999-12-31,1906-04-18T05:12:00-08:00,\" padded \",",
    ];
    let lines = rows.iter().flat_map(|row| [*row, *row]).collect::<Vec<_>>().join("\n");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("hard.csv");
    fs::write(&file, format!("code,large,amount,born,seen,word,flag\n{lines}\n")).unwrap();
    let names = ["code", "large", "amount", "born", "seen", "word", "flag"];
    let table = names.iter().fold(Table::from_file(&file), |table, name| table.quasi(name, Hierarchy::none()));
    let release = table.k(2).anonymize().unwrap();
    let cells = |table: &kohort_model::Table| {
        let row = |row: usize| -> Vec<Option<String>> {
            table.columns.iter().map(|column| column.cell(row).map(str::to_owned)).collect()
        };
        let mut rows: Vec<Vec<Option<String>>> = (0..table.n_rows).map(row).collect();
        rows.sort_unstable();
        rows
    };
    let private = kohort_io::read_for_check(&file, &kohort_io::CheckOptions::default(), &Silent).unwrap();
    for format in Format::ALL {
        let out = folder.path().join(format.extension());
        let options = WriteOptions { format: Some(format), existing: Existing::Refuse };
        release.write_with(&out, options, &Silent).unwrap();
        let (_, tables) = kohort_io::read_release(&out, &Silent).unwrap();
        assert_eq!(cells(&tables[0]), cells(&private), "{}", format.extension());
        assert_eq!(kohort::verify(&out).unwrap().verdict, Verdict::Verified, "{}", format.extension());
    }
}

#[test]
fn errors_are_told_apart_by_their_kind() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(table().k(50).anonymize(), Err(Error::Unreachable(_))));
    assert!(matches!(table().quasi("shoe", Hierarchy::none()).k(2).anonymize(), Err(Error::Input(_))));
    assert!(matches!(table().k(2).algorithm("magic").anonymize(), Err(Error::Input(_))));
    assert!(matches!(Table::from_batches([]), Err(Error::Input(_))));
    assert!(matches!(Job::read(folder.path().join("nowhere.toml")), Err(Error::Input(_))));
    assert!(matches!(kohort::verify(folder.path()), Err(Error::Input(_))));
    let release = table().k(4).anonymize().unwrap();
    release.write(folder.path().join("out")).unwrap();
    assert!(matches!(release.write(folder.path().join("out")), Err(Error::Input(_))));
    fs::write(folder.path().join("out/table.parquet"), "other bytes").unwrap();
    assert!(matches!(kohort::verify(folder.path().join("out")), Err(Error::NotMet(_))));
    // Rows are counted as persons although every age has its own id, so k would mean little.
    let rows = Table::from_batches([people()])
        .unwrap()
        .quasi("id", Hierarchy::none())
        .quasi("age", Hierarchy::none())
        .drop("job")
        .sensitive("disease", [])
        .k(1);
    match rows.anonymize() {
        Err(Error::Risks(risks)) => assert!(!risks.is_empty()),
        other => panic!("{other:?}"),
    }
    let accepted = rows.accept_risks().anonymize().unwrap();
    assert!(!accepted.manifest().accepted_risks.is_empty());
}

/// Cancels the work once it was asked a number of times whether to go on.
struct Impatient {
    asked: AtomicU64,
    patience: u64,
}

impl Impatient {
    fn new(patience: u64) -> Self {
        Impatient { asked: AtomicU64::new(0), patience }
    }
}

impl Progress for Impatient {
    fn begin(&self, _stage: &str, _total: u64) {}
    fn advance(&self, _steps: u64) {}
    fn is_cancelled(&self) -> bool {
        self.asked.fetch_add(1, Ordering::Relaxed) >= self.patience
    }
}

#[test]
fn work_of_every_kind_can_be_cancelled_at_any_time() {
    let mut all: Vec<(String, Job)> = Vec::new();
    for name in ["accidents", "register", "university"] {
        all.push((name.to_owned(), Job::read(example(name).join("release.toml")).unwrap()));
    }
    for algorithm in ["auto", "mondrian", "top-down", "datafly", "cluster", "full-domain"] {
        all.push((algorithm.to_owned(), table().k(4).algorithm(algorithm).build().unwrap()));
    }
    for (name, job) in &all {
        let mut n_cancelled = 0;
        for patience in [0, 1, 2, 3, 5, 8, 13, 34, 144, 987, 10_000] {
            let progress = Impatient::new(patience);
            match job.anonymize_with(&progress) {
                Err(Error::Cancelled) => n_cancelled += 1,
                Ok(_) => assert!(progress.asked.load(Ordering::Relaxed) <= patience, "{name}: {patience}"),
                Err(other) => panic!("{name}: {patience}: {other}"),
            }
        }
        assert!(n_cancelled >= 3, "{name}: cancelled {n_cancelled} times only");
    }
}

/// Counts how often each stage asks whether it is cancelled.
#[derive(Default)]
struct Asked {
    stage: Mutex<String>,
    n_asked: Mutex<BTreeMap<String, u64>>,
}

impl Progress for Asked {
    fn begin(&self, stage: &str, _total: u64) {
        stage.clone_into(&mut self.stage.lock().unwrap());
    }
    fn advance(&self, _steps: u64) {}
    fn is_cancelled(&self) -> bool {
        let stage = self.stage.lock().unwrap().clone();
        *self.n_asked.lock().unwrap().entry(stage).or_default() += 1;
        false
    }
}

#[test]
fn the_search_for_several_audiences_notices_cancelling_on_its_way() {
    let progress = Asked::default();
    Job::read(example("accidents").join("release.toml")).unwrap().anonymize_with(&progress).unwrap();
    let n_asked = progress.n_asked.lock().unwrap();
    assert!(n_asked.get("butterflies").is_some_and(|n| *n > 100), "{n_asked:?}");
}

#[test]
fn writing_that_is_cancelled_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let release = table().k(4).anonymize().unwrap();
    let cancelled = release.write_with(folder.path().join("out"), WriteOptions::default(), &Impatient::new(0));
    assert!(matches!(cancelled, Err(Error::Cancelled)));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_built_job_can_be_kept_as_a_spec_file() {
    let built = JobBuilder::new(4).table("people", Table::from_file("people.csv").quasi("age", Hierarchy::steps([5])));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("release.toml");
    fs::write(&file, built.to_toml()).unwrap();
    assert_eq!(Job::read(&file).unwrap().spec(), built.build().unwrap().spec());
}
