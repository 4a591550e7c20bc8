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
//! | [`parser`] | parses statements, ours and DataFusion's |
//! | `hierarchies` | DGHs by name |
//! | [`store`] | tables of a data folder |
//! | [`postgres`] | tables of a PostgreSQL server |
//! | [`policy`] | the choices of persons, and the compliance log |
//! | [`view`] | A-views: definitions, versions, the operator |
//! | [`access`] | users and grants |
//! | [`engine`] | sessions that run statements |
//! | `exact` | arithmetic of whole numbers that fails rather than wraps around |
//! | [`worker`] | processes that execute analysts' plans |
//! | `role`, `readers` | owners and analysts; how many queries read views at once |
//! | `leaf`, `scan`, `filter` | code that all kinds of tables share |
//! | `names` | numbers for texts |
//! | [`shell`] | the command `kohort-sql` |

pub mod access;
pub mod engine;
pub mod error;
mod exact;
mod filter;
#[cfg(any(fuzzing, test))]
pub mod fuzzed;
mod hierarchies;
mod leaf;
mod names;
mod options;
pub mod parser;
pub mod policy;
pub mod postgres;
mod readers;
mod role;
mod scan;
pub mod shell;
pub mod store;
pub mod view;
pub mod worker;

pub use engine::{Clock, Engine, Lost, Outcome, Session, check_format};
pub use error::SqlError;
pub use role::Role;
