//! A-views: anonymization as a relational operator behind SQL, on Apache DataFusion.
//!
//! ```text
//! text -> parser -> engine -> plan -> kohort_labels: comparisons with labels become "could be"
//!                                       |
//!                     view: directory -> AnonymizeExec -> VerifiedRows -> rows
//! ```
//!
//! | module | its job |
//! | --- | --- |
//! | [`parser`] | statements, ours and DataFusion's |
//! | [`hierarchies`] | DGHs by name |
//! | [`store`] | tables of a data folder |
//! | [`postgres`] | tables of a PostgreSQL server |
//! | [`policy`] | what persons allow, and who asked for what |
//! | [`view`] | definitions, versions, the operator |
//! | [`access`] | users and grants |
//! | [`engine`] | sessions that run statements |
//! | `exact` | whole numbers that do not wrap around |
//! | [`worker`] | processes that execute analysts' plans |
//! | `role`, `readers` | who runs statements, and how many read views at once |
//! | `leaf`, `filter` | what tables of all kinds share |
//! | [`shell`] | the command `kohort-sql` |

pub mod access;
pub mod engine;
pub mod error;
mod exact;
mod filter;
#[cfg(any(fuzzing, test))]
pub mod fuzzed;
pub mod hierarchies;
mod leaf;
pub mod options;
pub mod parser;
pub mod policy;
pub mod postgres;
mod readers;
mod role;
pub mod shell;
pub mod store;
pub mod view;
pub mod worker;

pub use engine::{Clock, Engine, Lost, Outcome, Session, check_format};
pub use error::SqlError;
pub use role::Role;
