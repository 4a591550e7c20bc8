//! [`Job::too_large_for`]: whether a job would fit into memory, by an estimate.
//!
//! The estimate counts rows and columns, and distinct texts, because these are what large tables take memory for.

use std::path::{Path, PathBuf};

use kohort_io::EstimatedTable;
use kohort_model::Role;

use crate::Job;
use crate::memory::Memory;

/// A job that an estimate says would not fit into memory.
#[derive(Clone, Copy, Debug)]
pub struct TooLarge {
    /// About what the job would need if the table were in memory.
    pub n_bytes_needed: u64,
    /// What it may use in cells instead.
    pub memory: Memory,
}

impl Job {
    /// Whether the job in memory would need more than three quarters of this much, by an estimate from the size of the file. Such a
    /// job gets half of it to work in cells. `None` also if the size can't be estimated, or the job can't be cut into cells.
    pub fn too_large_for(&self, n_bytes: u64) -> Option<TooLarge> {
        self.refuse_in_cells().ok()?;
        let [table] = self.spec.tables.as_slice() else { return None };
        let is_kept = |role: Role| match role {
            Role::Quasi | Role::Sensitive | Role::Plain | Role::Key | Role::PersonK => true,
            Role::Identifier | Role::Drop => false,
        };
        let kept = || {
            table.columns.iter().filter(|column| is_kept(column.role) || table.person.as_ref() == Some(&column.name))
        };
        let estimated = EstimatedTable::of(self.sources(), table, |name| kept().any(|column| column.name == name))?;
        let n_bytes_needed = Memory::needed(estimated, kept().count());
        let memory = Memory::bytes(n_bytes / 2).chosen();
        (n_bytes_needed > n_bytes / 4 * 3).then_some(TooLarge { n_bytes_needed, memory })
    }
}

/// The memory of this machine, or of the container in which the process runs, if the system tells.
pub fn machine_memory() -> Option<u64> {
    let of_machine = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| total_of(&text));
    let of_containers = container_limits().into_iter().filter_map(|file| std::fs::read_to_string(file).ok());
    of_containers.filter_map(|text| text.trim().parse().ok()).chain(of_machine).min()
}

/// `MemTotal` of `/proc/meminfo`.
fn total_of(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Files that may hold a limit: of the process's control group and those above it, or of version 1 of control groups.
fn container_limits() -> Vec<PathBuf> {
    let root = Path::new("/sys/fs/cgroup");
    let mut files = vec![root.join("memory/memory.limit_in_bytes"), root.join("memory.max")];
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    files.extend(Path::new(own).ancestors().map(|group| root.join(group).join("memory.max")));
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_s_memory_is_read_in_kilobytes() {
        assert_eq!(total_of("MemTotal:       24613116 kB\nMemFree:  20 kB\n"), Some(24_613_116 * 1024));
        assert_eq!(total_of("MemFree:  20 kB\n"), None);
    }
}
