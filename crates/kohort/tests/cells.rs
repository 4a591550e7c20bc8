//! Tables in cells: verified like tables in memory, the same bytes where one cell holds everything, and nothing left behind.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use kohort::{Error, Existing, Format, Job, Memory, Progress, Silent, Verdict, WriteOptions, verify, verify_against};
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

fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<(PathBuf, Vec<u8>)> = paths
        .filter(|path| !path.ends_with("manifest.json"))
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
        if dice.below(3) == 0 && !illness.contains("t = ") && !illness.contains("beta") {
            settings += "max_suppressed = 0.1\nleftovers = \"suppress\"\n";
        }
        let (folder, job) = job(&rows, &spec(&settings, illness));
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
    let release = job.anonymize().unwrap();
    for format in Format::ALL {
        let options = WriteOptions { format: Some(format), existing: Existing::Refuse };
        let place = |name: &str| folder.path().join(format!("{name}-{}", format.extension()));
        release.write_with(place("memory"), options, &Silent).unwrap();
        let memory = Memory::bytes(1 << 30);
        let written = job.write_in_cells(place("cells"), options, memory, &Silent).unwrap();
        assert!(files(&place("memory")) == files(&place("cells")), "{}", format.extension());
        assert_eq!(written.manifest.loss, release.manifest().loss);
        assert_eq!(written.manifest.achieved, release.manifest().achieved);
        assert_eq!(written.manifest.risk, release.manifest().risk);
    }
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
    let text = spec("k = 3\norder = \"input\"\nmax_suppressed = 0.1", "{ role = \"sensitive\", t = 0.5 }")
        .replace("file = \"people.csv\"", "file = \"people.csv\"\nperson = \"ward\"")
        .replace("ward = \"plain\"", "ward = \"key\"");
    let (folder, job) = job(&table(&mut Dice(1), 30), &text);
    let Err(Error::Input(reports)) = in_cells(&job, &folder.path().join("out"), 10) else { panic!("not refused") };
    let messages: Vec<&str> = reports.iter().map(|report| report.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "a person column can't be anonymized in cells in this version",
            "order = \"input\" can't be anonymized in cells in this version",
            "t or beta together with max_suppressed can't be anonymized in cells in this version",
        ]
    );
    assert!(!folder.path().join("out").exists());
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

#[test]
fn a_table_that_changes_between_two_readings_is_refused() {
    let rows = table(&mut Dice(5), 100);
    let mut longer = rows.clone();
    longer.push(rows[0].clone());
    let mut other = rows.clone();
    other[3] = "99,1.5,10000,f,flu,north\n".to_owned();
    for changed in [&longer, &other] {
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
