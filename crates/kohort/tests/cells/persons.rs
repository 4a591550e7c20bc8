//! Persons with several rows: each goes to one cell with all of them, and is counted once.

use std::fmt::Write as _;
use std::fs;

use kohort::{Error, Job, Memory, Silent, Verdict, WriteOptions, verify, verify_against};
use kohort_io::DOCUMENTS;
use tempfile::TempDir;

use super::{Dice, ILLNESSES, files, in_cells, left_behind};

/// Rows of persons. Some persons look the same in all their rows, others moved or grew older.
fn rows(dice: &mut Dice, n_persons: u64) -> Vec<String> {
    let mut rows = Vec::new();
    for person in 0..n_persons {
        let (mut age, mut zip) = (18 + dice.below(40), 10_000 + dice.below(5) * 1000);
        for _ in 0..1 + dice.below(4) {
            let sex = dice.one_of(&["f", "m", ""]);
            let illness = ILLNESSES[(dice.below(5) * dice.below(5) / 4) as usize];
            rows.push(format!("p{person},{age},{zip},{sex},{illness},{}\n", dice.one_of(&["north", "south"])));
            if person % 2 == 0 {
                age += dice.below(9);
                zip += dice.below(2) * 3000;
            }
        }
    }
    // In any order.
    for row in (1..rows.len()).rev() {
        rows.swap(row, dice.below(row as u64 + 1) as usize);
    }
    rows
}

fn spec(settings: &str, illness: &str) -> String {
    format!(
        "{settings}\n[tables.people]\nfile = \"people.csv\"\nperson = \"id\"\n[tables.people.columns]\nid = \"identifier\"\n\
         age = \"quasi\"\nzip = {{ role = \"quasi\", type = \"text\", hierarchy = {{ mask = \"right\" }} }}\n\
         sex = {{ role = \"quasi\", hierarchy = \"flat\" }}\nillness = {illness}\nward = \"plain\"\n"
    )
}

fn job(rows: &[String], spec: &str) -> (TempDir, Job) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("people.csv"), format!("id,age,zip,sex,illness,ward\n{}", rows.concat())).unwrap();
    fs::write(folder.path().join("release.toml"), spec).unwrap();
    let job = Job::read(folder.path().join("release.toml")).unwrap().accept_risks();
    (folder, job)
}

const REQUIREMENTS: [&str; 5] = [
    "\"sensitive\"",
    "{ role = \"sensitive\", l = 2 }",
    "{ role = \"sensitive\", entropy_l = 1.5, alpha = 0.8 }",
    "{ role = \"sensitive\", t = 0.5 }",
    "{ role = \"sensitive\", beta = 4.0, recursive_cl = [5, 2] }",
];

#[test]
fn persons_with_several_rows_are_verified_in_cells_or_can_not_be_released_at_all() {
    let mut n_released = 0;
    for number in 0..60 {
        let mut dice = Dice(7000 + number);
        let n_persons = 5 + dice.below(60);
        let rows = rows(&mut dice, n_persons);
        let mut settings = format!("k = {}\n", 2 + dice.below(4));
        let algorithm = dice.one_of(&["auto", "mondrian", "top-down", "datafly", "full-domain"]);
        writeln!(settings, "algorithm = \"{algorithm}\"").unwrap();
        if dice.below(3) == 0 {
            settings += "max_suppressed = 0.1\n";
        }
        let (folder, job) = job(&rows, &spec(&settings, dice.one_of(&REQUIREMENTS)));
        let out = folder.path().join("out");
        let most_rows = 1 + dice.below(rows.len() as u64);
        match in_cells(&job, &out, most_rows) {
            Ok(written) => {
                n_released += 1;
                let found = verify_against(&out, &job).unwrap();
                assert_ne!(found.verdict, Verdict::NotMet, "job {number}: {:?}", found.wrong);
                assert_eq!(found.manifest, written.manifest, "job {number}");
                assert_ne!(verify(&out).unwrap().verdict, Verdict::NotMet, "job {number}");
                assert_eq!(written.manifest.persons.n_in, n_persons, "job {number}");
            }
            Err(Error::Unreachable(_)) => {
                assert!(matches!(job.anonymize(), Err(Error::Unreachable(_))), "job {number} is refused without need");
            }
            Err(Error::Input(reports)) if reports[0].message.contains("allow nobody to be left out") => {}
            Err(error) => panic!("job {number}: {error}"),
        }
        assert!(left_behind(folder.path()).is_empty(), "job {number}");
    }
    assert!(n_released > 30, "{n_released}");
}

#[test]
fn one_cell_of_persons_gives_the_release_of_the_job_in_memory() {
    let mut n_released = 0;
    for (number, requirement) in (0..).zip(REQUIREMENTS) {
        let (folder, job) = job(&rows(&mut Dice(number), 120), &spec("k = 3", requirement));
        let Ok(release) = job.anonymize() else { continue };
        n_released += 1;
        release.write_with(folder.path().join("memory"), WriteOptions::default(), &Silent).unwrap();
        let out = folder.path().join("cells");
        let written = job.write_in_cells(&out, WriteOptions::default(), Memory::bytes(1 << 30), &Silent).unwrap();
        assert!(files(&folder.path().join("memory")) == files(&out), "{requirement}");
        let document = |place: &str, name: &str| fs::read(folder.path().join(place).join(name)).unwrap();
        assert!(DOCUMENTS.iter().all(|name| document("memory", name) == document("cells", name)), "{requirement}");
        assert_eq!(written.manifest.loss, release.manifest().loss, "{requirement}");
        assert_eq!(written.manifest.achieved, release.manifest().achieved, "{requirement}");
        assert_eq!(written.manifest.risk, release.manifest().risk, "{requirement}");
        assert_eq!(written.manifest.persons, release.manifest().persons, "{requirement}");
    }
    assert!(n_released >= 3, "{n_released}");
}

#[test]
fn the_order_of_the_rows_of_persons_changes_nothing() {
    let mut rows = rows(&mut Dice(11), 150);
    let text = spec("k = 3", "{ role = \"sensitive\", t = 0.6 }");
    let (folder, first) = job(&rows, &text);
    let written = in_cells(&first, &folder.path().join("out"), 40).unwrap();
    assert!(written.manifest.notes.iter().any(|note| note.code == "in_cells"), "{:?}", written.manifest.notes);
    rows.reverse();
    rows.rotate_left(77);
    let (other_folder, second) = job(&rows, &text);
    in_cells(&second, &other_folder.path().join("out"), 40).unwrap();
    assert!(files(&folder.path().join("out")) == files(&other_folder.path().join("out")));
}

#[test]
fn memory_for_a_person_with_very_many_rows_is_asked_for_before_any_row_is_written() {
    let mut rows = rows(&mut Dice(12), 100);
    rows.extend((0..6000).map(|row| format!("many,{},10000,f,flu,north\n", 20 + row % 30)));
    let (folder, job) = job(&rows, &spec("k = 3", "\"sensitive\""));
    let out = folder.path().join("out");
    let refused = job.write_in_cells(&out, WriteOptions::default(), Memory::bytes(600_000), &Silent);
    let reports = refused.unwrap_err().reports();
    assert!(reports[0].message.contains("the rows of persons of one cell"), "{}", reports[0].message);
    assert!(left_behind(folder.path()).is_empty());
    let least = reports[0].hint.as_deref().unwrap();
    assert_eq!(least, "give at least memory = \"2MB\"");
    job.write_in_cells(&out, WriteOptions::default(), Memory::bytes(2 << 20), &Silent).unwrap();
    assert_eq!(verify_against(&out, &job).unwrap().verdict, Verdict::Verified);
}

#[test]
fn one_thread_and_two_give_the_same_bytes() {
    let (folder, job) = job(&rows(&mut Dice(13), 300), &spec("k = 3", "{ role = \"sensitive\", l = 2 }"));
    let made = |n_threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
        let out = folder.path().join(format!("out-{n_threads}"));
        let manifest = pool.install(|| in_cells(&job, &out, 60)).unwrap().manifest;
        (files(&out), manifest.loss, manifest.risk)
    };
    assert!(made(1) == made(2));
}
