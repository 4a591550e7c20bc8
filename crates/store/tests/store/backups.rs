//! Backups are taken while the store runs, and appear whole or not at all.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use kohort_store::{Store, StoreError};

use crate::sample::{all_ids, people_rows, store_of_people};

/// Opens the store in a backup.
fn restored(backup: &Path, folder: &Path) -> Store {
    std::fs::create_dir(folder).unwrap();
    std::fs::copy(backup, folder.join("kohort.db")).unwrap();
    Store::open(folder).unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn a_backup_taken_while_rows_are_written_holds_a_state_that_was_committed() {
    let folder = tempfile::tempdir().unwrap();
    let store = store_of_people(&folder.path().join("data"), &[]);
    let backups = folder.path().join("backups");
    std::fs::create_dir(&backups).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Two rows at a time.
            for first in (0..).step_by(2) {
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                let change = store.write().unwrap();
                change.insert("people", &people_rows(&[(first, Some("x")), (first + 1, None)])).unwrap();
                change.commit().unwrap();
            }
        });
        for backup in 0..5 {
            store.backup(&backups.join(backup.to_string())).unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert_eq!(names(&backups).len(), 5, "nothing else is left behind");
    for backup in 0..5 {
        let store = restored(&backups.join(backup.to_string()), &folder.path().join(format!("restored {backup}")));
        store.check().unwrap();
        let ids = all_ids(&store.read().unwrap());
        assert_eq!(ids, (0..ids.len() as i64).collect::<Vec<_>>());
        assert_eq!(ids.len() % 2, 0);
    }
}

#[test]
fn a_backup_overwrites_nothing_and_leaves_nothing_where_it_fails() {
    let folder = tempfile::tempdir().unwrap();
    let store = store_of_people(&folder.path().join("data"), &[(1, None)]);
    let target = folder.path().join("backup");
    std::fs::write(&target, "precious").unwrap();
    assert!(matches!(store.backup(&target), Err(StoreError::BackupExists { .. })));
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "precious");
    assert!(matches!(store.backup(&folder.path().join("absent/backup")), Err(StoreError::Io { .. })));
    let mut left = names(folder.path());
    left.sort();
    assert_eq!(left, ["backup", "data"]);
}

#[cfg(unix)]
#[test]
fn a_backup_is_for_its_user_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let store = store_of_people(&folder.path().join("data"), &[(1, None)]);
    let target = folder.path().join("backup");
    store.backup(&target).unwrap();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&target), 0o600);
    assert_eq!(mode(&folder.path().join("data")), 0o700);
    for name in names(&folder.path().join("data")) {
        assert_eq!(mode(&folder.path().join("data").join(&name)), 0o600, "{name}");
    }
}
