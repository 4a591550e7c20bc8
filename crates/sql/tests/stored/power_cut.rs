//! The power is cut at every call that writes, while an engine makes, changes and drops tables, DGHs and views, and while it is
//! closed and opened.
//!
//! Nothing after a cut reaches the disk, so one recorded run of the history is enough. There are several kinds of what
//! could survive a cut. Two of them are tried at each call, in turn. With `KOHORT_CRASHES` (any number) all kinds are tried at
//! every call, and an engine really runs into every cut.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use kohort_crashkit::{Disk, Fault, Survivors};
use tempfile::TempDir;

use crate::crashes::{Act, Running, Shown, World, check, find, short_history};

const CHILD: &str = "KOHORT_POWER_CUT";

fn is_thorough() -> bool {
    std::env::var_os("KOHORT_CRASHES").is_some()
}

/// Runs in a process of its own, because a process has only one simulated disk.
fn in_a_process(test: &str, work: impl AsyncFnOnce()) {
    if std::env::var_os(CHILD).is_some() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        return runtime.block_on(work());
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("power_cut::{test}"), "--nocapture"]).env(CHILD, "");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A folder for the data folder and for files beside it.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Place {
        let place = Place { folder: tempfile::tempdir().unwrap() };
        std::fs::create_dir(place.data()).unwrap();
        place
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }
}

/// A history that ran without a power cut: the model after each act, and how many calls had written by then.
struct Reference {
    worlds: Vec<World>,
    shown: Vec<Shown>,
    calls: Vec<u64>,
}

impl Reference {
    async fn run(folder: &Path, disk: &Disk, acts: &[Act]) -> Reference {
        let mut running = Running::open(folder).await.unwrap();
        let mut world = World::empty();
        let mut reference = Reference { worlds: vec![world.clone()], shown: vec![Shown::new()], calls: Vec::new() };
        for act in acts {
            running = running.take(act).await.unwrap_or_else(|error| panic!("{act:?}: {error}"));
            reference.calls.push(disk.n_calls());
            world.apply(act);
            let (found, shown) = find(&running.engine).await;
            assert_eq!(found, world.expected(), "{act:?}");
            if matches!(act, Act::Refresh(_)) {
                assert_ne!(reference.shown.last(), Some(&shown), "{act:?} shows it");
            }
            reference.worlds.push(world.clone());
            reference.shown.push(shown);
        }
        reference
    }

    /// How many acts were acknowledged when the call of this number was made.
    fn n_acknowledged(&self, call: u64) -> usize {
        self.calls.iter().filter(|&&calls| calls <= call).count()
    }

    /// Opens what a cut left, and compares it with the acknowledged acts.
    async fn check(&self, folder: &Path, n_acknowledged: usize, place: &str) {
        let running = Running::open(folder).await.unwrap_or_else(|error| panic!("{place}: {error}"));
        let end = (n_acknowledged + 2).min(self.worlds.len());
        let (which, shown) = check(&running.engine, &self.worlds[n_acknowledged..end], place).await;
        let is_after = |n_acts: usize| self.worlds[n_acts].expected() == self.worlds[n_acknowledged + which].expected();
        // An act that changes no table may have been done or not.
        let possible: Vec<&Shown> =
            (n_acknowledged..end).filter(|&n_acts| is_after(n_acts)).map(|n_acts| &self.shown[n_acts]).collect();
        assert!(possible.contains(&&shown), "{place}: shows {shown:#?}, which is none of {possible:#?}");
    }
}

#[test]
fn power_that_is_cut_at_any_write_leaves_tables_and_views_as_they_were_acknowledged() {
    in_a_process("power_that_is_cut_at_any_write_leaves_tables_and_views_as_they_were_acknowledged", async || {
        let place = Place::new();
        let disk = Disk::at(&place.data());
        disk.record();
        let reference = Reference::run(&place.data(), &disk, &short_history()).await;
        let recording = disk.recording();
        let mut known = BTreeSet::new();
        let mut n_cuts = 0;
        for (call, image) in (0..).zip(recording.cuts()) {
            let kinds = [Survivors::None, Survivors::Some(call), Survivors::All, Survivors::Some(call + 1_000_000)];
            let tried = if is_thorough() { &kinds[..] } else { &kinds[call as usize % 2 * 2..][..2] };
            for &survivors in tried {
                disk.restart(&image, survivors);
                let n_acknowledged = reference.n_acknowledged(call);
                // Many cuts between two flushes leave the same bytes.
                let left = disk.image();
                let files = ["kohort.db", "kohort.db-wal"].map(|name| left.file(name).map(<[u8]>::to_vec));
                if known.insert((n_acknowledged, files)) {
                    let place_said = format!("call {call}, {survivors:?}, {n_acknowledged} acknowledged");
                    reference.check(&place.data(), n_acknowledged, &place_said).await;
                    n_cuts += 1;
                }
            }
        }
        assert!(n_cuts > 200, "the history writes: {n_cuts}");
    });
}

#[test]
fn an_engine_that_runs_into_a_power_cut_acknowledges_nothing_that_is_lost() {
    in_a_process("an_engine_that_runs_into_a_power_cut_acknowledges_nothing_that_is_lost", async || {
        let acts = short_history();
        let place = Place::new();
        let disk = Disk::at(&place.data());
        let reference = Reference::run(&place.data(), &disk, &acts).await;
        let n_calls = disk.n_calls();
        let step = if is_thorough() { 1 } else { n_calls / 16 + 1 };
        for call in (step / 2..n_calls).step_by(step as usize) {
            let place = Place::new();
            let disk = Disk::at(&place.data());
            disk.fail_at(call, Fault::PowerCut);
            let n_acknowledged = acknowledged(&place.data(), &acts).await;
            let image = disk.image();
            disk.restart(&image, Survivors::Some(call));
            reference.check(&place.data(), n_acknowledged, &format!("call {call}")).await;
        }
    });
}

/// Does acts until one fails. Returns how many succeeded.
async fn acknowledged(folder: &Path, acts: &[Act]) -> usize {
    let Ok(mut running) = Running::open(folder).await else { return 0 };
    for (n_acts, act) in acts.iter().enumerate() {
        match running.take(act).await {
            Ok(next) => running = next,
            Err(_) => return n_acts,
        }
    }
    acts.len()
}
