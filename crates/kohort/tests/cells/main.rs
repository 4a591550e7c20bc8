//! Tables in cells: verified like tables in memory, the same bytes where one cell holds everything, and nothing left behind.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod persons;
mod transforms;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use kohort::model::Distance;
use kohort::{
    CellForm, Check, Error, Existing, Format, Job, Memory, Pass, Progress, Requirement, Silent, Verdict, WriteOptions,
    verify, verify_against, verify_against_within, verify_within,
};
use kohort_io::DOCUMENTS;
use kohort_testkit::corpus;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) % n
    }

    fn one_of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.below(words.len() as u64) as usize]
    }
}

const ILLNESSES: [&str; 5] = ["flu", "gout", "asthma", "\"a, b\"", "measles"];

/// A table of persons in any order, with nulls, and values that are spelled in two ways.
fn table(dice: &mut Dice, n_rows: u64) -> Vec<String> {
    let row = |dice: &mut Dice| {
        let age = if dice.below(12) == 0 { String::new() } else { (18 + dice.below(60)).to_string() };
        let height = format!("{}.{}", 1 + dice.below(2), ["5", "50", "7"][dice.below(3) as usize]);
        let zip = format!("{:05}", 10_000 + dice.below(7) * 1000 + dice.below(5));
        let sex = dice.one_of(&["f", "m", ""]);
        let illness = ILLNESSES[(dice.below(5) * dice.below(5) / 4) as usize];
        format!("{age},{height},{zip},{sex},{illness},{}\n", dice.one_of(&["north", "south"]))
    };
    (0..n_rows).map(|_| row(dice)).collect()
}

fn csv(rows: &[String]) -> String {
    format!("age,height,zip,sex,illness,ward\n{}", rows.concat())
}

fn spec(settings: &str, illness: &str) -> String {
    format!(
        "{settings}\n[tables.people]\nfile = \"people.csv\"\n[tables.people.columns]\nage = \"quasi\"\nheight = \"quasi\"\n\
         zip = {{ role = \"quasi\", type = \"text\", hierarchy = {{ mask = \"right\" }} }}\n\
         sex = {{ role = \"quasi\", hierarchy = \"flat\" }}\nillness = {illness}\nward = \"plain\"\n"
    )
}

/// A folder with a table and a spec.
fn job(rows: &[String], spec: &str) -> (TempDir, Job) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("people.csv"), csv(rows)).unwrap();
    fs::write(folder.path().join("release.toml"), spec).unwrap();
    let job = Job::read(folder.path().join("release.toml")).unwrap().accept_risks();
    (folder, job)
}

fn in_cells(job: &Job, out: &Path, most_rows: u64) -> Result<kohort::WrittenInCells, Error> {
    job.write_in_cells(out, WriteOptions::default(), Memory::bytes(1 << 30).rows_per_cell(most_rows), &Silent)
}

/// Names of everything in a folder but what the test put there.
fn left_behind(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(".kohort")).collect()
}

/// The files of a release but its manifest and its documents.
fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<(PathBuf, Vec<u8>)> = paths
        .filter(|path| ![&["manifest.json"], &DOCUMENTS[..]].concat().iter().any(|name| path.ends_with(name)))
        .map(|path| (path.file_name().unwrap().into(), fs::read(&path).unwrap()))
        .collect();
    files.sort();
    files
}

#[test]
fn random_tables_in_random_cells_are_verified_or_can_not_be_released_at_all() {
    let mut n_released = 0;
    for number in 0..120 {
        let mut dice = Dice(number);
        let n_rows = 5 + dice.below(150);
        let rows = table(&mut dice, n_rows);
        let mut settings = format!("k = {}\n", 2 + dice.below(6));
        let algorithm = dice.one_of(&["auto", "mondrian", "top-down", "datafly", "cluster", "full-domain"]);
        writeln!(settings, "algorithm = \"{algorithm}\"").unwrap();
        let illness = dice.one_of(&[
            "\"sensitive\"",
            "{ role = \"sensitive\", l = 2 }",
            "{ role = \"sensitive\", entropy_l = 1.5, alpha = 0.8 }",
            "{ role = \"sensitive\", t = 0.4 }",
            "{ role = \"sensitive\", beta = 3.0, recursive_cl = [4, 2] }",
        ]);
        if dice.below(3) == 0 {
            settings += "max_suppressed = 0.1\nleftovers = \"suppress\"\n";
        }
        let text = spec(&settings, illness);
        let (folder, job) = job(&rows, &text);
        let out = folder.path().join("out");
        let most_rows = 1 + dice.below(n_rows);
        match in_cells(&job, &out, most_rows) {
            Ok(written) => {
                n_released += 1;
                let found = verify_against(&out, &job).unwrap();
                assert_ne!(found.verdict, Verdict::NotMet, "job {number}");
                assert_eq!(found.manifest, written.manifest, "job {number}");
                assert_ne!(verify(&out).unwrap().verdict, Verdict::NotMet, "job {number}");
            }
            // Nobody is left out in cells where t or beta is asked, so in memory more may be reached.
            Err(Error::Input(reports)) if reports[0].message.contains("allow nobody to be left out") => {
                let text = text.replace("max_suppressed = 0.1", "max_suppressed = 0.0");
                fs::write(folder.path().join("release.toml"), text).unwrap();
                let strict = Job::read(folder.path().join("release.toml")).unwrap().accept_risks();
                assert!(
                    matches!(strict.anonymize(), Err(Error::Unreachable(_))),
                    "job {number} is refused without need"
                );
            }
            Err(Error::Unreachable(_)) => {
                assert!(matches!(job.anonymize(), Err(Error::Unreachable(_))), "job {number} is refused without need");
            }
            Err(error) => panic!("job {number}: {error}"),
        }
        assert!(left_behind(folder.path()).is_empty(), "job {number}");
    }
    assert!(n_released > 80, "{n_released}");
}

#[test]
fn one_cell_gives_the_bytes_of_the_job_in_memory_in_every_format() {
    let rows = table(&mut Dice(7), 300);
    let settings = "k = 4\nmax_suppressed = 0.05\nleftovers = \"suppress\"";
    let (folder, job) = job(&rows, &spec(settings, "{ role = \"sensitive\", l = 2 }"));
    let bounds = Job::read(folder.path().join("release.toml")).unwrap().accept_risks().cells(CellForm::Bounds);
    let kinds = [("labels", job), ("bounds", bounds)];
    for ((form, job), format) in kinds.iter().flat_map(|kind| Format::ALL.map(|format| (kind, format))) {
        let release = job.anonymize().unwrap();
        let options = WriteOptions { format: Some(format), existing: Existing::Refuse };
        let place = |name: &str| folder.path().join(format!("{name}-{form}-{}", format.extension()));
        release.write_with(place("memory"), options, &Silent).unwrap();
        let memory = Memory::bytes(1 << 30);
        let written = job.write_in_cells(place("cells"), options, memory, &Silent).unwrap();
        assert!(files(&place("memory")) == files(&place("cells")), "{form} {}", format.extension());
        let has_documents = DOCUMENTS.map(|name| place("cells").join(name).exists());
        assert_eq!(has_documents, [*form == "labels"; 4]);
        let why = written.without_documents.unwrap_or_default();
        let cannot = "cells as bounds can't be counted in parts in this version";
        assert_eq!(why, if *form == "labels" { vec![] } else { vec![cannot] });
        if *form == "labels" {
            let document = |folder: &str, name: &str| fs::read(place(folder).join(name)).unwrap();
            assert!(
                DOCUMENTS.iter().all(|name| document("memory", name) == document("cells", name)),
                "{}",
                format.extension()
            );
        }
        assert_eq!(written.manifest.loss, release.manifest().loss);
        assert_eq!(written.manifest.achieved, release.manifest().achieved);
        assert_eq!(written.manifest.risk, release.manifest().risk);
    }
}

#[test]
fn rows_of_many_cells_are_in_the_order_of_a_release() {
    let rows = table(&mut Dice(21), 600);
    let (folder, job) = job(&rows, &spec("k = 3", "\"sensitive\""));
    in_cells(&job, &folder.path().join("out"), 30).unwrap();
    let file = fs::read_to_string(folder.path().join("out/people.csv")).unwrap();
    let released: Vec<Vec<String>> = file.lines().skip(1).map(cells_of).collect();
    assert_eq!(released.len(), 600);
    // Each class is in one place, and within it rows are in the order of their copied texts, which begin with null.
    let mut seen = std::collections::BTreeSet::new();
    for class in released.chunk_by(|a, b| a[..4] == b[..4]) {
        assert!(seen.insert(class[0][..4].to_vec()), "a class is in two places");
        assert!(class.is_sorted_by_key(|row| row[4..].to_vec()));
    }
    // Classes are in the order of the smallest age that they show, nulls last.
    let age = |row: &Vec<String>| match row[0].trim_matches(['[', ']', '"']) {
        "" => i64::MAX,
        "*" => 18,
        label => label.split(',').next().unwrap().parse().unwrap(),
    };
    assert!(released.is_sorted_by_key(age));
}

/// The cells of a line, some of which are quoted.
fn cells_of(line: &str) -> Vec<String> {
    let (mut cells, mut is_quoted) = (vec![String::new()], false);
    for letter in line.chars() {
        match letter {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => cells.push(String::new()),
            letter => cells.last_mut().unwrap().push(letter),
        }
    }
    cells
}

/// A table whose rows belong to persons, named by a column that the spec takes for an ordinary one.
fn with_persons(n_persons: u64) -> String {
    let mut dice = Dice(4);
    let mut text = "age,height,zip,sex,illness,ward\n".to_owned();
    for person in 0..n_persons {
        let same = format!(
            "{},1.{},{:05},{}",
            18 + dice.below(60),
            5 + dice.below(4),
            dice.below(90),
            dice.one_of(&["f", "m"])
        );
        for _ in 0..4 {
            writeln!(text, "{same},{},p{person}", ILLNESSES[dice.below(3) as usize]).unwrap();
        }
    }
    text
}

#[test]
fn risks_are_found_in_cells_as_in_memory() {
    let codes = |refused: Error| {
        let Error::Risks(risks) = refused else { panic!("{refused}") };
        risks.iter().map(kohort::verifier::BlatantRisk::code).collect::<Vec<_>>()
    };
    let one_per_row: Vec<String> = table(&mut Dice(6), 400)
        .into_iter()
        .zip(0..)
        .map(|(row, number)| format!("{},w{number}\n", row.rsplit_once(',').unwrap().0))
        .collect();
    let mostly_flu: Vec<String> = table(&mut Dice(8), 400)
        .into_iter()
        .zip(0..)
        .map(|(row, number)| {
            let illness = ILLNESSES.iter().find(|illness| row.contains(&format!(",{illness},"))).unwrap();
            row.replace(illness, if number % 25 == 0 { "gout" } else { "flu" })
        })
        .collect();
    let diverse = "{ role = \"sensitive\", l = 2 }";
    let cases = [
        (with_persons(150), spec("k = 3", "\"sensitive\""), "rows_are_not_persons"),
        (csv(&one_per_row), spec("k = 3", "\"sensitive\""), "plain_tells_apart"),
        (csv(&mostly_flu), spec("k = 3", diverse), "diversity_of_one_value"),
    ];
    for (table, spec, risk) in cases {
        let (folder, _) = job(&[], &spec);
        fs::write(folder.path().join("people.csv"), table).unwrap();
        let job = Job::read(folder.path().join("release.toml")).unwrap();
        let in_memory = codes(job.anonymize().unwrap_err());
        assert!(in_memory.contains(&risk), "{in_memory:?}");
        let out = folder.path().join("out");
        // Small cells hold only one sex, or one place, so a cell alone would show less.
        for most_rows in [1000, 60, 12] {
            let found = codes(in_cells(&job, &out, most_rows).unwrap_err());
            assert!(found.contains(&risk), "{most_rows}: {found:?}");
            assert!(!out.exists() && left_behind(folder.path()).is_empty());
        }
        let accepted = in_cells(&job.accept_risks(), &out, 60).unwrap().manifest.accepted_risks;
        assert_eq!(accepted.iter().map(|risk| risk.code.as_str()).collect::<Vec<_>>(), in_memory);
    }
}

#[test]
fn every_note_of_a_job_in_memory_is_one_of_the_job_in_cells() {
    let settings =
        "k = 3\nseed = 7\nalgorithm = \"top-down\"\n[mondrian]\ncuts = \"relaxed\"\n[clustering]\nthreshold = 0.3";
    let (folder, job) = job(&table(&mut Dice(9), 200), &spec(settings, "\"sensitive\""));
    let messages = |manifest: &kohort::Manifest| {
        let notes = manifest.notes.iter().filter(|note| note.code != "in_cells");
        notes.map(|note| note.message.clone()).collect::<std::collections::BTreeSet<String>>()
    };
    let in_memory = messages(job.anonymize().unwrap().manifest());
    assert!(in_memory.len() >= 3, "{in_memory:?}");
    let written = in_cells(&job, &folder.path().join("out"), 40).unwrap();
    assert_eq!(messages(&written.manifest), in_memory);
}

#[test]
fn memory_for_the_largest_own_k_is_asked_for_before_any_work() {
    let rows: Vec<String> =
        table(&mut Dice(2), 3000).into_iter().map(|row| row.replace("north", "2900").replace("south", "3")).collect();
    let text = spec("k = 3", "\"sensitive\"").replace("ward = \"plain\"", "ward = \"person_k\"");
    let (folder, job) = job(&rows, &text);
    let out = folder.path().join("out");
    let refused = job.write_in_cells(&out, WriteOptions::default(), Memory::bytes(300_000), &Silent);
    let reports = refused.unwrap_err().reports();
    assert!(reports[0].message.contains("the largest own k"), "{}", reports[0].message);
    assert_eq!(reports[0].hint.as_deref(), Some("give at least memory = \"1MB\""));
    assert!(left_behind(folder.path()).is_empty());
    job.write_in_cells(&out, WriteOptions::default(), Memory::bytes(1 << 20), &Silent).unwrap();
    assert_eq!(verify_against(&out, &job).unwrap().verdict, Verdict::Verified);
}

#[test]
fn the_order_of_rows_changes_nothing() {
    let mut rows = table(&mut Dice(11), 400);
    let text = spec("k = 3", "{ role = \"sensitive\", t = 0.5 }");
    let (folder, first) = job(&rows, &text);
    in_cells(&first, &folder.path().join("out"), 40).unwrap();
    rows.reverse();
    rows.rotate_left(123);
    let (other_folder, second) = job(&rows, &text);
    let written = in_cells(&second, &other_folder.path().join("out"), 40).unwrap();
    assert!(files(&folder.path().join("out")) == files(&other_folder.path().join("out")));
    let note = written.manifest.notes.iter().find(|note| note.code == "in_cells").unwrap();
    assert!(note.message.contains("cells that share no class"), "{}", note.message);
}

#[test]
fn everything_that_can_not_be_cut_into_cells_is_named_at_once() {
    let text = spec("k = 3\norder = \"input\"", "\"sensitive\"")
        .replace("ward = \"plain\"", "ward = { role = \"pseudonym\", key_file = \"ward.key\" }");
    let (folder, job) = job(&table(&mut Dice(1), 30), &text);
    let Err(Error::Input(reports)) = in_cells(&job, &folder.path().join("out"), 10) else { panic!("not refused") };
    let messages: Vec<&str> = reports.iter().map(|report| report.message.as_str()).collect();
    let named = ["order = \"input\"", "pseudonyms"];
    assert_eq!(messages, named.map(|what| format!("{what} can't be anonymized in cells in this version")));
    assert!(!folder.path().join("out").exists());
}

#[test]
fn nobody_is_left_out_in_cells_where_t_is_asked_and_the_manifest_says_so() {
    let settings = "k = 3\nmax_suppressed = 0.3\nleftovers = \"suppress\"";
    let (folder, job) = job(&table(&mut Dice(31), 300), &spec(settings, "{ role = \"sensitive\", t = 0.5 }"));
    let out = folder.path().join("out");
    let manifest = in_cells(&job, &out, 60).unwrap().manifest;
    assert_eq!((manifest.persons.n_out, manifest.persons.suppressed), (300, 0));
    assert!(manifest.notes.iter().any(|note| note.code == "nobody_left_out"), "{:?}", manifest.notes);
    assert_ne!(verify_against(&out, &job).unwrap().verdict, Verdict::NotMet);
}

#[test]
fn a_plan_says_what_the_work_will_take_and_writes_nothing() {
    let (folder, job) = job(&table(&mut Dice(32), 300), &spec("k = 3", "\"sensitive\""));
    let planned = job.plan_in_cells(Memory::bytes(1 << 30).rows_per_cell(50), &Silent).unwrap();
    assert_eq!(planned.n_rows, 300);
    assert!(planned.n_cells > 5 && planned.rows_of_largest_cell <= 50, "{planned:?}");
    assert!(planned.n_bytes_on_disk > 300 * 4 * 6, "{planned:?}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    let one = job.plan_in_cells(Memory::bytes(1 << 30), &Silent).unwrap();
    assert_eq!((one.n_cells, one.rows_of_largest_cell), (1, 300));
}

#[test]
fn problems_of_the_table_are_the_same_as_in_memory_but_for_their_rows() {
    let text = spec("k = 3", "\"sensitive\"").replace("age = \"quasi\"", "age = { role = \"quasi\", type = \"date\" }");
    let (folder, job) = job(&table(&mut Dice(1), 30), &text);
    let Err(Error::Input(reports)) = in_cells(&job, &folder.path().join("out"), 10) else { panic!("not refused") };
    assert_eq!(reports.len(), 1);
    assert!(reports[0].message.ends_with("no date, in rows that were not counted"), "{}", reports[0].message);
}

#[test]
fn values_that_do_not_fit_into_memory_are_refused_by_the_name_of_their_column() {
    let (folder, job) = job(&table(&mut Dice(1), 500), &spec("k = 3", "\"sensitive\""));
    let refused = job.write_in_cells(folder.path().join("out"), WriteOptions::default(), Memory::bytes(9000), &Silent);
    let Err(Error::Input(reports)) = refused else { panic!("not refused") };
    assert!(reports[0].message.contains("column 'age' alone has more than"), "{}", reports[0].message);
    assert!(left_behind(folder.path()).is_empty());
}

/// Does something when a stage begins.
struct AtStage<F: Fn() -> bool + Sync> {
    stage: &'static str,
    act: F,
    is_cancelled: Mutex<bool>,
}

impl<F: Fn() -> bool + Sync> Progress for AtStage<F> {
    fn begin(&self, stage: &str, _total: u64) {
        if stage == self.stage {
            *self.is_cancelled.lock().unwrap() |= (self.act)();
        }
    }
    fn advance(&self, _steps: u64) {}
    fn is_cancelled(&self) -> bool {
        *self.is_cancelled.lock().unwrap()
    }
}

#[test]
fn cancelled_work_leaves_nothing_behind_whenever_it_is_cancelled() {
    let (folder, job) = job(&table(&mut Dice(3), 400), &spec("k = 3", "{ role = \"sensitive\", l = 2 }"));
    let stages =
        ["checking cells", "anonymizing cells", "writing", "reading what was written", "verifying what was written"];
    for stage in stages {
        let out = folder.path().join("out");
        // While the work is going on, its rows are beside the folder, and only for their owner.
        let spilled = || left_behind(folder.path()).iter().any(|name| name.starts_with(".kohort-cells-"));
        let progress = AtStage { stage, act: spilled, is_cancelled: Mutex::new(false) };
        let memory = Memory::bytes(1 << 30).rows_per_cell(50);
        let cancelled = job.write_in_cells(&out, WriteOptions::default(), memory, &progress);
        assert!(matches!(cancelled, Err(Error::Cancelled)), "{stage}");
        assert!(!out.exists() && left_behind(folder.path()).is_empty(), "{stage}");
    }
}

/// Keeps what it is told of passes.
#[derive(Default)]
struct Told {
    passes: Mutex<Vec<Pass>>,
    /// The steps of each stage, and how many were done.
    steps: Mutex<Vec<(String, u64, u64)>>,
}

impl Progress for Told {
    fn pass(&self, pass: Pass) {
        self.passes.lock().unwrap().push(pass);
    }
    fn begin(&self, stage: &str, total: u64) {
        self.steps.lock().unwrap().push((stage.to_owned(), total, 0));
    }
    fn advance(&self, steps: u64) {
        if let Some((.., done)) = self.steps.lock().unwrap().last_mut() {
            *done += steps;
        }
    }
}

#[test]
fn every_pass_is_told_and_together_they_are_the_whole_work() {
    let (folder, job) = job(&table(&mut Dice(3), 400), &spec("k = 3", "\"sensitive\""));
    let told = Told::default();
    let memory = Memory::bytes(1 << 30).rows_per_cell(50);
    job.write_in_cells(folder.path().join("out"), WriteOptions::default(), memory, &told).unwrap();
    let (passes, steps) = (told.passes.into_inner().unwrap(), told.steps.into_inner().unwrap());
    let n_passes = job.plan_in_cells(memory, &Silent).unwrap().n_passes;
    assert_eq!(passes.len() as u64, n_passes);
    let mut before = 0.0;
    for (number, pass) in (1..).zip(&passes) {
        assert_eq!((pass.number, pass.of), (number, n_passes));
        assert!((pass.before - before).abs() < 1e-9 && pass.share > 0.0);
        before += pass.share;
    }
    assert!((before - 1.0).abs() < 1e-9, "{before}");
    // No stage of a pass is left without a total, and each is done to the end.
    for (stage, total, done) in steps.iter().filter(|(stage, ..)| stage != "checking cells") {
        assert!(*total > 0 && done == total, "{stage}: {done} of {total}");
    }
}

#[test]
fn a_table_that_changes_between_two_readings_is_refused() {
    let rows = table(&mut Dice(5), 100);
    let mut longer = rows.clone();
    longer.push(rows[0].clone());
    let mut other = rows.clone();
    other[3] = "99,1.5,10000,f,flu,north\n".to_owned();
    // The same texts in each column as before, as often as before, but two rows have exchanged one.
    let mut exchanged = rows.clone();
    let place = (1..100).find(|&row| !rows[row].ends_with(rows[0].rsplit(',').next().unwrap())).unwrap();
    let ending = |row: &String| row.rsplit_once(',').map(|(begin, end)| (begin.to_owned(), end.to_owned())).unwrap();
    let ((first, first_ward), (second, second_ward)) = (ending(&rows[0]), ending(&rows[place]));
    exchanged[0] = format!("{first},{second_ward}");
    exchanged[place] = format!("{second},{first_ward}");
    for changed in [&longer, &other, &exchanged] {
        let (folder, job) = job(&rows, &spec("k = 3", "\"sensitive\""));
        let file = folder.path().join("people.csv");
        let n_readings = Mutex::new(0);
        let change = || {
            *n_readings.lock().unwrap() += 1;
            if *n_readings.lock().unwrap() == 2 {
                fs::write(&file, csv(changed)).unwrap();
            }
            false
        };
        // The file is opened when its second reading begins, so it is changed just before, at the end of the first.
        let progress = AtStage { stage: "reading", act: change, is_cancelled: Mutex::new(false) };
        let memory = Memory::bytes(1 << 30).rows_per_cell(20);
        let out = folder.path().join("out");
        let refused = job.write_in_cells(&out, WriteOptions::default(), memory, &progress);
        let Err(Error::Input(reports)) = refused else { panic!("not refused: {refused:?}") };
        assert!(reports[0].message.contains("has changed"), "{}", reports[0].message);
        assert!(!out.exists() && left_behind(folder.path()).is_empty());
    }
}

/// Every kind of requirement on illnesses, some of which random tables don't meet.
fn requirements(dice: &mut Dice) -> Vec<Requirement> {
    let column = || "illness".to_owned();
    let all = [
        Requirement::K(1 + dice.below(4) as u32),
        Requirement::DistinctL { column: column(), l: 1 + dice.below(3) as u32 },
        Requirement::EntropyL { column: column(), l: 1.5 },
        Requirement::RecursiveCL { column: column(), c: 3.0, l: 2 },
        Requirement::TCloseness { column: column(), t: 0.3, distance: Distance::Equal },
        Requirement::TCloseness { column: column(), t: 0.2, distance: Distance::Ordered },
        Requirement::Alpha { column: column(), alpha: 0.7 },
        Requirement::Beta { column: column(), beta: 2.0 },
        Requirement::EnhancedBeta { column: column(), beta: 2.0 },
    ];
    all.into_iter().filter(|_| dice.below(2) == 0).collect()
}

#[test]
fn a_table_that_is_counted_in_parts_has_the_findings_of_one_in_memory() {
    let mut n_unmet = 0;
    for number in 0..60 {
        let mut dice = Dice(1000 + number);
        let n_rows = 1 + dice.below(200);
        let rows = table(&mut dice, n_rows);
        let (folder, _) = job(&rows, &spec("k = 2", "\"sensitive\""));
        let quasi: Vec<String> =
            ["sex", "ward", "height"][..1 + dice.below(3) as usize].iter().map(|name| (*name).to_owned()).collect();
        let check =
            Check { quasi, sensitive: vec!["illness".to_owned()], person: None, requirements: requirements(&mut dice) };
        let path = folder.path().join("people.csv");
        let in_memory = check.file(&path, &Silent).unwrap();
        let memory = Memory::bytes(1 << 30).rows_per_cell(1 + dice.below(n_rows));
        let in_parts = check.file_within(&path, memory, &Silent).unwrap();
        assert_eq!(in_parts.findings, in_memory.findings, "table {number}");
        assert_eq!(in_parts.unmet, in_memory.unmet, "table {number}");
        n_unmet += usize::from(!in_memory.unmet.is_empty());
    }
    assert!((10..50).contains(&n_unmet), "{n_unmet}");
}

#[test]
fn a_release_that_is_verified_in_parts_has_the_findings_of_one_in_memory() {
    for number in 0..40 {
        let mut dice = Dice(2000 + number);
        let n_rows = 20 + dice.below(200);
        let rows = table(&mut dice, n_rows);
        let illness = dice.one_of(&[
            "\"sensitive\"",
            "{ role = \"sensitive\", l = 2, t = 0.5 }",
            "{ role = \"sensitive\", beta = 3.0 }",
        ]);
        let (folder, job) = job(&rows, &spec("k = 3", illness));
        let out = folder.path().join("out");
        let format = Format::ALL[dice.below(Format::ALL.len() as u64) as usize];
        let options = WriteOptions { format: Some(format), existing: Existing::Refuse };
        job.anonymize().unwrap().write_with(&out, options, &Silent).unwrap();
        let in_memory = verify(&out).unwrap();
        let memory = Memory::bytes(1 << 30).rows_per_cell(1 + dice.below(n_rows));
        let in_parts = verify_within(&out, memory, &Silent).unwrap();
        assert_eq!(in_parts.findings, in_memory.findings, "release {number}");
        assert_eq!((in_parts.verdict, &in_parts.claims), (in_memory.verdict, &in_memory.claims), "release {number}");
        assert_eq!(in_parts.not_counted, in_memory.not_counted);
        // What the documents say is counted in parts, too.
        let report = out.join("report.json");
        let text = fs::read_to_string(&report).unwrap();
        let place = text.find("\"nulls\": ").unwrap() + 9;
        fs::write(&report, format!("{}1{}", &text[..place], &text[place..])).unwrap();
        let changed = verify_within(&out, memory, &Silent).unwrap();
        assert_eq!(
            (changed.verdict, changed.wrong),
            (Verdict::NotMet, verify(&out).unwrap().wrong),
            "release {number}"
        );
    }
}

#[test]
fn a_release_that_is_compared_with_its_table_in_parts_has_the_findings_of_one_in_memory() {
    for number in 0..60 {
        let mut dice = Dice(3000 + number);
        let n_rows = 20 + dice.below(200);
        let rows = table(&mut dice, n_rows);
        let algorithm = dice.one_of(&["auto", "mondrian", "datafly", "cluster"]);
        let suppressed = if dice.below(2) == 0 { "max_suppressed = 0.1\nleftovers = \"suppress\"" } else { "" };
        let illness = dice.one_of(&["\"sensitive\"", "{ role = \"sensitive\", l = 2, t = 0.7 }"]);
        let mut text = spec(&format!("k = 3\nalgorithm = \"{algorithm}\"\n{suppressed}"), illness);
        let mut rows = rows;
        if dice.below(3) == 0 {
            text = text.replace("ward = \"plain\"", "ward = \"person_k\"");
            rows.iter_mut().for_each(|row| *row = row.replace("north", "6").replace("south", "0"));
        }
        let (folder, job) = job(&rows, &text);
        let out = folder.path().join("out");
        let Ok(release) = job.anonymize() else { continue };
        release.write(&out).unwrap();
        let in_memory = verify_against(&out, &job).unwrap();
        let memory = Memory::bytes(1 << 30).rows_per_cell(1 + dice.below(n_rows));
        let in_parts = verify_against_within(&out, &job, memory, &Silent).unwrap();
        assert_eq!(in_parts.findings, in_memory.findings, "release {number}");
        assert_eq!((in_parts.verdict, &in_parts.claims), (in_memory.verdict, &in_memory.claims), "release {number}");
    }
}

#[test]
fn labels_that_overlap_everywhere_need_memory_for_all_rows() {
    // Two labels reach over each other, and nothing else tells rows apart.
    let ages: Vec<String> = (0..4000).map(|row| format!("{}\n", 20 + row % 40)).collect();
    let text = "k = 2\n[tables.people]\nfile = \"people.csv\"\n[tables.people.columns]\nage = \"quasi\"\n";
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("people.csv"), format!("age\n{}", ages.concat())).unwrap();
    fs::write(folder.path().join("release.toml"), text).unwrap();
    let job = Job::read(folder.path().join("release.toml")).unwrap().accept_risks();
    let out = folder.path().join("out");
    job.anonymize().unwrap().write(&out).unwrap();
    let file = out.join("people.csv");
    let label = |row: usize| if row.is_multiple_of(2) { "\"[20,50]\"\n" } else { "\"[30,59]\"\n" };
    fs::write(&file, format!("age\n{}", (0..4000).map(label).collect::<String>())).unwrap();
    let mut manifest: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(out.join("manifest.json")).unwrap()).unwrap();
    let digest: String = Sha256::digest(fs::read(&file).unwrap()).iter().map(|byte| format!("{byte:02x}")).collect();
    manifest["tables"][0]["sha256"] = digest.into();
    fs::write(out.join("manifest.json"), manifest.to_string()).unwrap();
    let refused = verify_against_within(&out, &job, Memory::bytes(400_000), &Silent).unwrap_err().reports();
    assert!(refused[0].message.contains("the rows of labels that overlap must be in memory"), "{}", refused[0].message);
    // There is a way to give origins, so only the claims are wrong.
    let judged = |found: Result<kohort::Verification, Error>| match found {
        Ok(found) => found.wrong,
        Err(error) => error.reports(),
    };
    let in_parts = judged(verify_against_within(&out, &job, Memory::bytes(1 << 22), &Silent));
    let in_memory = judged(verify_against(&out, &job));
    assert_eq!(in_parts, in_memory);
}

#[test]
fn what_can_not_be_counted_in_parts_is_named_before_anything_is_counted() {
    let (folder, job) = job(&table(&mut Dice(1), 60), &spec("k = 3", "\"sensitive\""));
    let check = Check { quasi: vec!["age".to_owned()], person: Some("ward".to_owned()), ..Check::default() };
    let path = folder.path().join("people.csv");
    let memory = Memory::bytes(1 << 30);
    let refused = check.file_within(&path, memory, &Silent).unwrap_err();
    assert!(refused.reports()[0].message.contains("persons with several rows"), "{refused}");
    let unknown = Check { quasi: vec!["agee".to_owned()], ..Check::default() };
    let messages = |error: Error| error.reports();
    assert_eq!(
        messages(unknown.file_within(&path, memory, &Silent).unwrap_err()),
        messages(unknown.file(&path, &Silent).unwrap_err())
    );
    let out = folder.path().join("out");
    job.cells(CellForm::Bounds).anonymize().unwrap().write(&out).unwrap();
    let refused = verify_within(&out, memory, &Silent).unwrap_err();
    assert_eq!(refused.reports()[0].message, "cells as bounds can't be counted in parts in this version");
}

#[test]
fn every_case_of_the_corpus_is_verified_in_cells_of_few_rows() {
    let (mut n_released, mut n_unreachable, mut n_refused) = (0, 0, 0);
    for case in corpus::cases() {
        for partitioner in corpus::PARTITIONERS {
            let folder = tempfile::tempdir().unwrap();
            let job = Job::new(case.write(folder.path(), partitioner), folder.path()).accept_risks();
            for most_rows in [1, 3] {
                let out = folder.path().join(format!("out-{most_rows}"));
                match in_cells(&job, &out, most_rows) {
                    Ok(_) => {
                        n_released += 1;
                        let verdict = verify_against(&out, &job).unwrap().verdict;
                        assert_ne!(verdict, Verdict::NotMet, "{} by {}", case.name, partitioner.name);
                    }
                    Err(Error::Unreachable(_)) => {
                        n_unreachable += 1;
                        assert!(job.anonymize().is_err(), "{} by {}", case.name, partitioner.name);
                    }
                    // The documents name the cases that cells don't support.
                    Err(Error::Input(_)) => n_refused += 1,
                    Err(error) => panic!("{} by {}: {error}", case.name, partitioner.name),
                }
            }
        }
    }
    assert!(n_released > 2 * n_refused && n_unreachable > 0, "{n_released} {n_unreachable} {n_refused}");
}
