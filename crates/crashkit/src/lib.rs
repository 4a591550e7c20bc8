//! Crashes, for tests of code that keeps data in SQLite.
//!
//! - [`Disk`]: a disk in memory that SQLite uses instead of the real one. Power can be cut at any of its calls; then
//!   changes that were not flushed are lost, or survive in part. A [`Recording`] gives every possible cut of a history
//!   that ran once.
//! - [`work_until_killed`]: a process that is killed while it works, and what it acknowledged before.
//! - [`History`]: random changes of two tables, and the [`Model`] of what they lead to.
//!
//! No crate that is shipped uses this one.

mod chance;
mod disk;
mod history;
mod kill;
mod locks;
mod recording;
mod vfs;

pub use chance::Chance;
pub use disk::{Disk, Fault, Image, Survivors};
pub use history::{History, Model, Operation};
pub use kill::{acknowledge, work_until_killed};
pub use recording::Recording;
