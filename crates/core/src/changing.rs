//! Materialized A-views over data that changes. (header to come)

mod epochs;
mod index;
mod ledger;
mod memory;
mod paper;
mod refresh;
mod standard;
mod tree;

pub use epochs::{Closing, Departures, Epochs};
pub use index::{Change, ClassIndex};
pub use ledger::{
    AtomId, AtomMember, ClassId, Edit, Effect, Ledger, Member, MemberKey, Past, PersonKey, Place, Shown, Standing,
    Survivors, Tuple,
};
pub use memory::MemoryLedger;
pub use paper::{Paper, UNSAFE};
pub use refresh::{Combined, Refreshed, refresh};
pub use standard::{ReferenceColumn, Standard, UnfitStandard};
pub use tree::{GrowingTree, PathProblem};
