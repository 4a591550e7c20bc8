//! What a piece of work costs: wall time, CPU time of all threads, and memory.
//!
//! Ratios are ratios of medians. On a machine with other work wall time says little, so CPU time is shown too.

use std::fs;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use nix::time::{ClockId, clock_gettime};

/// The time a piece of work took.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    /// Elapsed time.
    pub(crate) wall: Duration,
    /// The CPU time of all threads.
    pub(crate) cpu: Duration,
}

impl Cost {
    /// The cost of both, one after the other.
    pub(crate) fn plus(self, other: Cost) -> Cost {
        Cost { wall: self.wall + other.wall, cpu: self.cpu + other.cpu }
    }

    /// The medians of wall time and of CPU time, each taken separately.
    pub(crate) fn median(costs: &[Cost]) -> Cost {
        Cost {
            wall: median(costs.iter().map(|cost| cost.wall).collect()),
            cpu: median(costs.iter().map(|cost| cost.cpu).collect()),
        }
    }
}

/// Does the work in this process, and returns its result and cost.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, Cost) {
    let (wall, cpu) = (Instant::now(), own_cpu());
    let result = work();
    (result, Cost { wall: wall.elapsed(), cpu: own_cpu() - cpu })
}

fn own_cpu() -> Duration {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).expect("the process has a clock").into()
}

/// The CPU time of all children that have ended, and the most memory that one of them held.
pub(crate) fn of_children() -> (Duration, u64) {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("the process has an account of its children");
    (duration(usage.user_time()) + duration(usage.system_time()), usage.max_rss() as u64 * 1024)
}

fn duration(time: TimeVal) -> Duration {
    Duration::from_micros(time.tv_sec() as u64 * 1_000_000 + time.tv_usec() as u64)
}

/// The most memory that this process held since its start, or since the peak was last reset.
pub(crate) fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux tells a process its status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("every status has a peak");
    let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().expect("it is a number of kB");
    kilobytes * 1024
}

/// Resets the peak, so that the next one belongs to the work that follows.
pub(crate) fn forget_peak_memory() {
    fs::write("/proc/self/clear_refs", "5").expect("a process may forget its own peak");
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_not_moved_by_one_slow_run() {
        let seconds = [3, 1, 900, 2, 2].map(Duration::from_secs);
        assert_eq!(median(seconds.to_vec()), Duration::from_secs(2));
    }

    #[test]
    fn memory_that_was_touched_counts_in_the_peak() {
        forget_peak_memory();
        let before = peak_memory();
        let touched = std::hint::black_box(vec![1u8; 64 << 20]);
        drop(touched);
        assert!(peak_memory() >= before + (60 << 20));
    }
}
