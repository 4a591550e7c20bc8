//! Cursors: their memory is limited, and freed when they are idle.

use std::path::Path;

use crate::client::connect;
use crate::fixture::{ANALYST, OWNER, PEOPLE, serve_as, serve_folder, wait_until};

const NUMBERS: &str = "SELECT x FROM generate_series(1, 100000) AS a (x)";

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_cursors_count_towards_the_memory_of_queries() {
    let served = serve_as(PEOPLE, |configuration| configuration.query_memory = 16).await;
    let mut ann = connect(&served, ANALYST).await;
    // Each cursor has some megabytes of rows, of which one row is fetched.
    let wide = "SELECT concat(repeat('a', 500), x) FROM generate_series(1, 100000) AS a (x)";
    ann.rows(&format!("DECLARE first CURSOR FOR {wide}; FETCH 1 FROM first")).await.unwrap();
    let mut n_open = 1;
    let refused = loop {
        match ann.rows(&format!("DECLARE c{n_open} CURSOR FOR {wide}")).await {
            Ok(_) => n_open += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(refused.code().unwrap().code(), "53200");
    assert!(n_open < 16, "{n_open}");
    ann.rows(&format!("CLOSE ALL; DECLARE again CURSOR FOR {wide}")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_has_few_cursors_and_leaves_some_to_others() {
    let served = serve_as(PEOPLE, |_| {}).await;
    let mut connected = Vec::new();
    for _ in 0..3 {
        connected.push(connect(&served, ANALYST).await);
    }
    for ann in &mut connected[..2] {
        for number in 0..16 {
            ann.rows(&format!("DECLARE c{number} CURSOR FOR {NUMBERS}")).await.unwrap();
        }
        assert_eq!(ann.failure(&format!("DECLARE more CURSOR FOR {NUMBERS}")).await.0, "53400");
    }
    let more = format!("DECLARE more CURSOR FOR {NUMBERS}");
    assert_eq!(connected[2].failure(&more).await.1, "this login has too many open cursors");
    connected[0].rows("CLOSE c7").await.unwrap();
    connected[2].rows(&more).await.unwrap();
    connect(&served, OWNER).await.rows(&more).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_that_nobody_fetches_from_is_closed() {
    let served = serve_as(PEOPLE, |configuration| configuration.cursor_timeout = 1).await;
    let mut ann = connect(&served, ANALYST).await;
    ann.rows(&format!("DECLARE c CURSOR FOR {NUMBERS}; FETCH 1 FROM c")).await.unwrap();
    wait_until("it is closed", || served.server.metrics().cursors.get() == 0).await;
    let (state, message) = ann.failure("FETCH 1 FROM c").await;
    assert_eq!(state, "34000");
    assert!(message.contains("was closed because it was idle"), "{message}");
    ann.rows(&format!("CLOSE c; DECLARE c CURSOR FOR {NUMBERS}")).await.unwrap();
}

/// The number of files of a folder that this process has open.
#[cfg(target_os = "linux")]
fn n_open_files(folder: &Path) -> usize {
    let open = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    open.filter(|file| std::fs::read_link(file.path()).is_ok_and(|path| path.starts_with(folder))).count()
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_that_reads_no_stored_table_holds_no_file_of_the_data_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    let served = serve_folder(&path, |_| {}).await;
    let mut owner = connect(&served, OWNER).await;
    owner.rows("CREATE TABLE t (n INT); INSERT INTO t VALUES (1), (2), (3)").await.unwrap();
    owner.rows(NUMBERS).await.unwrap();
    let n_before = n_open_files(&path);
    for number in 0..20 {
        owner.rows(&format!("DECLARE c{number} CURSOR FOR {NUMBERS}; FETCH 1 FROM c{number}")).await.unwrap();
    }
    assert_eq!(n_open_files(&path), n_before);
    // A cursor that has read all rows has no open file either.
    for number in 0..20 {
        owner.rows(&format!("DECLARE t{number} CURSOR FOR SELECT n FROM t; FETCH ALL FROM t{number}")).await.unwrap();
    }
    assert!(n_open_files(&path) < n_before + 20);
}
