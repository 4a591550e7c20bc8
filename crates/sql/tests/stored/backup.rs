//! Backups, by the command and by the statement, and `kohort-sql check`.

use std::path::Path;
use std::process::{Command, Output};

use kohort_sql::Engine;

use crate::crashes::{Act, Running, World, check, short_history};
use crate::folder::{open, sorted};
use crate::histories::steps::{Change, Patient};
use crate::session::{owner, rows, try_rows};

fn kohort_sql(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kohort-sql")).args(arguments).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A folder with two materialized views, and the model of what it holds.
async fn people(folder: &Path) -> (Running, World) {
    let (mut running, mut world) = (Running::open(folder).await.unwrap(), World::empty());
    for act in short_history() {
        running = running.take(&act).await.unwrap();
        world.apply(&act);
    }
    (running, world)
}

/// The people who are inserted one by one while a backup is made.
pub(crate) fn newcomers() -> Vec<Act> {
    let patient = |number: u8| Patient {
        age: Some(21),
        zip: Some("0851"),
        disease: Some(["flu", "cold", "gout"][usize::from(number) % 3]),
        ward: Some("north"),
    };
    (100..=250).map(|number| Act::Change(Change::Insert(vec![(number, patient(number))]))).collect()
}

/// Opens a copy, whose contents must be those after some number of acts. Returns that number.
async fn restored(backup: &Path, world: &World, acts: &[Act]) -> usize {
    let mut worlds = vec![world.clone()];
    for act in acts {
        let mut next = worlds.last().unwrap().clone();
        next.apply(act);
        worlds.push(next);
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(backup, folder.path().join("kohort.db")).unwrap();
    let engine = open(folder.path()).await;
    check(&engine, &worlds, "a backup").await.0
}

#[tokio::test]
async fn a_backup_by_another_process_while_rows_are_written_opens_with_views_that_agree() {
    let place = tempfile::tempdir().unwrap();
    let (data, target) = (place.path().join("data"), place.path().join("monday.db"));
    let (mut running, world) = people(&data).await;
    let names = [data.to_str().unwrap().to_owned(), target.to_str().unwrap().to_owned()];
    let copying = std::thread::spawn(move || kohort_sql(&["backup", &names[0], &names[1]]));
    let acts = newcomers();
    for act in &acts {
        running = running.take(act).await.unwrap();
    }
    let output = copying.join().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    restored(&target, &world, &acts).await;
    let checked = kohort_sql(&["check", target.to_str().unwrap()]);
    assert_eq!(stderr(&checked), format!("{} is sound\n", target.display()));
    assert_eq!(checked.status.code(), Some(0));
    assert!(kohort_sql(&["check", data.to_str().unwrap()]).status.success(), "also while it is held");
}

async fn back_up(engine: &Engine, target: &Path) {
    rows(&mut owner(engine), &format!("BACKUP TO '{}'", target.display())).await;
}

#[tokio::test]
async fn a_backup_by_another_session_while_rows_are_written_opens_with_views_that_agree() {
    let place = tempfile::tempdir().unwrap();
    let (mut running, world) = people(&place.path().join("data")).await;
    let acts = newcomers();
    let targets: Vec<_> = (0..4).map(|number| place.path().join(format!("{number}.db"))).collect();
    let engine = running.engine.clone();
    let copying = async {
        for target in &targets {
            back_up(&engine, target).await;
        }
    };
    let writing = async {
        for act in &acts {
            running = running.take(act).await.unwrap();
        }
        running
    };
    let (_, running) = tokio::join!(copying, writing);
    let mut earlier = 0;
    for target in &targets {
        let n_acts = restored(target, &world, &acts).await;
        assert!(n_acts >= earlier, "a later backup has what an earlier one has");
        earlier = n_acts;
    }
    let last = place.path().join("last.db");
    back_up(&running.engine, &last).await;
    assert_eq!(restored(&last, &world, &acts).await, acts.len());
}

#[tokio::test]
async fn a_backup_overwrites_nothing_and_says_so() {
    let place = tempfile::tempdir().unwrap();
    let (data, target) = (place.path().join("data"), place.path().join("monday.db"));
    let engine = open(&data).await;
    let mut session = owner(&engine);
    rows(&mut session, "CREATE TABLE t (a INT); INSERT INTO t VALUES (1)").await;
    std::fs::write(&target, "precious").unwrap();
    let output = kohort_sql(&["backup", data.to_str().unwrap(), target.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    let said = format!("'{}' exists already", target.display());
    assert!(stderr(&output).starts_with(&format!("error: {said}\nhint: ")), "{}", stderr(&output));
    let refused = try_rows(&mut session, &format!("BACKUP TO '{}'", target.display())).await.unwrap_err();
    assert_eq!(refused.to_string(), said);
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "precious");
    assert_eq!(sorted(&mut session, "SELECT * FROM t").await, [["1"]]);
}

#[test]
fn a_folder_that_is_not_there_is_wrong_input_for_backup_and_check() {
    let place = tempfile::tempdir().unwrap();
    let (data, target) = (place.path().join("nowhere"), place.path().join("monday.db"));
    let said = format!("error: there is no store in '{}'\n", data.display());
    for arguments in
        [&["check", data.to_str().unwrap()][..], &["backup", data.to_str().unwrap(), target.to_str().unwrap()]]
    {
        let output = kohort_sql(arguments);
        assert!(stderr(&output).starts_with(&said), "{}", stderr(&output));
        assert_eq!(output.status.code(), Some(2));
    }
    assert!(!data.exists() && !target.exists(), "nothing is made");
    assert_eq!(kohort_sql(&["check"]).status.code(), Some(2));
}

#[tokio::test]
async fn a_damaged_folder_is_named_by_the_command() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    drop(people(&data).await);
    let file = data.join("kohort.db");
    let whole = std::fs::read(&file).unwrap();
    assert_eq!(kohort_sql(&["check", data.to_str().unwrap()]).status.code(), Some(0));
    let n_pages = whole.len() / 4_096;
    for page in [0, 1, n_pages / 2, n_pages - 1] {
        let mut damaged = whole.clone();
        damaged[page * 4_096..][..32].fill(0xa5);
        std::fs::write(&file, damaged).unwrap();
        let output = kohort_sql(&["check", data.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(1), "page {page}: {}", stderr(&output));
        let name = format!("error: '{}' is ", file.canonicalize().unwrap().display());
        assert!(stderr(&output).starts_with(&name), "page {page}: {}", stderr(&output));
    }
}
