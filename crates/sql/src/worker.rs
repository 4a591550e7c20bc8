//! Statements of analysts run in processes of their own, which the operating system bounds.
//!
//! ```text
//! server process                                          worker process, one per statement
//! parse, authorize, rewrite, plan      -- plan -->        decode, execute
//! stores, views, verification          <- next rows? --   RemoteExec, a leaf of the plan
//!                                      -- labels -->
//! rows to the client                   <- rows --
//! ```
//!
//! An operator that asks no memory pool, such as a cross join, can take any amount of memory, and a function that computes
//! one value can't be stopped. In a process of its own both can: the worker limits its own memory before it looks at the
//! plan, and is killed where nobody waits for its statement any more.
//!
//! # Guarantee
//! A worker gets rows that left a view as a `Verified<Block>`, rows of PostgreSQL's catalog, and what the statement itself
//! says. It opens no file and never sees a private table. A worker takes its share of `query_memory` and what it needs to
//! start, or it ends. It ends with its statement, and with the server.

mod codec;
mod frames;
mod leaves;
mod pool;
mod process;
mod remote;
mod run;

pub use pool::Workers;
pub use process::{Asker, Functions, run};

/// The argument that makes a program of ours a worker.
pub const WORKER: &str = "--worker";
