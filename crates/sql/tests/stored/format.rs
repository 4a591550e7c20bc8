//! A newer kohort opens folders of every earlier format, reads them, and changes them.
//!
//! `folders/format-N` holds a folder of format N and what its views showed. When the format changes, add a folder of the new
//! format: `KOHORT_NEW_FOLDER=folder cargo test -p kohort-sql --test stored -- format` writes both.

use std::path::{Path, PathBuf};

use kohort_sql::access::{Accounts, Granted, UNASKED};
use kohort_sql::store::StoreRecords;
use kohort_sql::{Engine, Role, SqlError, check_format};
use kohort_store::Store;

use crate::crashes::{Act, Running, World, check, short_history};
use crate::folder::{analyst, open, sorted, try_open};
use crate::histories::steps::{Change, Choice, Patient};
use crate::session::{owner, rows};

const COMPUTED: &str = "CREATE ANONYMIZATION_VIEW c ON SELECT name, age, zip, disease FROM patient
    WITH ANONYMIZATION_ID name ANONYMIZATION_QUASI_ID (age DGH_NAME age, zip DGH_NAME zip)
    ANONYMIZATION_SENSITIVE_ATTR (disease DGH_NAME disease) K 2";

/// Statements after which one person waits, and some who moved are hidden.
fn acts() -> Vec<Act> {
    let moved = Patient { age: Some(52), zip: Some("9911"), disease: Some("gout"), ward: None };
    let changes = [
        Change::Insert(vec![(99, moved.clone())]),
        Change::Update(80, moved.clone()),
        Change::Update(81, moved),
        Change::Choose(Some(82), Choice::open(3, 1)),
    ];
    [short_history(), changes.map(Act::Change).to_vec()].concat()
}

fn world() -> World {
    let mut world = World::empty();
    acts().iter().for_each(|act| world.apply(act));
    world
}

fn accounts(engine: &Engine) -> Accounts {
    Accounts::open(Box::new(StoreRecords::new(engine.store().unwrap().clone()))).unwrap()
}

/// Makes a folder with tables, DGHs, two materialized views, a computed view, and users. Returns what the views show.
async fn make(folder: &Path) -> String {
    let mut running = Running::open(folder).await.unwrap();
    for act in acts() {
        running = running.take(&act).await.unwrap();
    }
    let engine = running.engine.clone();
    rows(&mut owner(&engine), COMPUTED).await;
    let accounts = accounts(&engine);
    accounts.create_user("olga", Role::Owner, "correct horse", UNASKED).unwrap();
    accounts.create_user("ann", Role::Analyst, "battery staple", UNASKED).unwrap();
    accounts.grant("ann", &Granted::View("v".to_owned()), UNASKED).unwrap();
    shown(&engine).await
}

/// What the views show.
async fn shown(engine: &Engine) -> String {
    let mut text = String::new();
    for view in ["c", "v", "w"] {
        for row in sorted(&mut analyst(engine), &format!("SELECT * FROM {view}")).await {
            text += &format!("{view}: {}\n", row.join(" | "));
        }
    }
    text
}

/// Opens a folder that [`make`] made, and changes it.
async fn read(folder: &Path, expected: &str) {
    let engine = open(folder).await;
    assert!(engine.take_lost().is_empty());
    let mut session = owner(&engine);
    let states: Vec<String> =
        sorted(&mut session, "SHOW ANONYMIZATION_VIEWS").await.iter().map(|row| row[1].clone()).collect();
    assert_eq!(states[1..], ["usable", "usable"]);
    // If a newer kohort makes other classes, the computed view is stale. Otherwise it shows what it showed.
    if states[0] != "usable" {
        assert!(states[0].starts_with("stale: "), "{states:?}");
        rows(&mut session, "REFRESH ANONYMIZATION_VIEW c").await;
    } else {
        assert_eq!(shown(&engine).await, expected);
    }
    let of_materialized = |text: &str| -> Vec<String> {
        text.lines().filter(|line| !line.starts_with("c: ")).map(str::to_owned).collect()
    };
    assert_eq!(of_materialized(&shown(&engine).await), of_materialized(expected));

    let accounts = accounts(&engine);
    assert_eq!(accounts.users(), [("ann".to_owned(), Role::Analyst), ("olga".to_owned(), Role::Owner)]);
    let ann = accounts.verifier("ann").1.unwrap();
    assert!(accounts.may_read(&ann, "v") && !accounts.may_read(&ann, "w"));

    rows(&mut session, "DROP ANONYMIZATION_VIEW c").await;
    let mut world = world();
    check(&engine, &[world.clone()], "an earlier folder").await;
    drop((session, accounts, engine));
    let mut running = Running::open(folder).await.unwrap();
    for act in crate::backup::newcomers().into_iter().take(12) {
        running = running.take(&act).await.unwrap();
        world.apply(&act);
        check(&running.engine, &[world.clone()], "an earlier folder that goes on").await;
    }
}

fn folders() -> Vec<PathBuf> {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stored/folders");
    let mut folders: Vec<PathBuf> = std::fs::read_dir(all).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    folders
}

#[tokio::test]
async fn a_folder_that_was_kept_of_every_format_is_opened_and_read() {
    let folders = folders();
    assert!(!folders.is_empty());
    for kept in folders {
        let folder = tempfile::tempdir().unwrap();
        std::fs::copy(kept.join("kohort.db"), folder.path().join("kohort.db")).unwrap();
        read(folder.path(), &std::fs::read_to_string(kept.join("shown.txt")).unwrap()).await;
    }
}

#[tokio::test]
async fn a_folder_of_this_format_is_opened_and_read() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("data");
    let expected = make(&folder).await;
    if let Some(target) = std::env::var_os("KOHORT_NEW_FOLDER") {
        std::fs::copy(folder.join("kohort.db"), Path::new(&target).join("kohort.db")).unwrap();
        std::fs::write(Path::new(&target).join("shown.txt"), &expected).unwrap();
    }
    read(&folder, &expected).await;
}

#[tokio::test]
async fn a_folder_of_a_newer_format_is_refused_by_its_number_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path()).await);
    let put = |number: &str| {
        let store = Store::open(folder.path()).unwrap();
        let before = store.read().unwrap().records("format").unwrap();
        let change = store.write().unwrap();
        change.put_record("format", &before[0].0, number).unwrap();
        change.commit().unwrap();
        before[0].1.clone()
    };
    let known = put("99");
    let refused = try_open(folder.path()).await.err().unwrap();
    assert!(matches!(refused, SqlError::NewerFormat { found: 99, .. }), "{refused}");
    assert!(refused.to_string().contains("99") && refused.hint().is_some());
    assert!(matches!(check_format(folder.path()), Err(SqlError::NewerFormat { found: 99, .. })));
    assert_eq!(put(&known), "99");
    check_format(folder.path()).unwrap();
    open(folder.path()).await;
}
