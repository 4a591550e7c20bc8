//! Runs each statement of an analyst in a process of its own, whose memory the operating system limits.
//!
//! ```text
//! server process                                          worker process, one per statement
//! parse, authorize, rewrite, plan      -- plan -->        decode, execute
//! stores, views, verification          <- next rows? --   RemoteExec, a leaf of the plan
//!                                      -- labels -->
//! rows to the client                   <- rows --
//! ```
//!
//! Some operators, such as a cross join, do not use the memory pool and can take any amount of memory, and a function
//! that computes one value can't be interrupted. A process can be limited and killed: the worker limits its own memory
//! before it reads the plan, and is killed when nobody waits for its statement any more.
//!
//! # Guarantee
//! A worker gets verified rows of views, rows of PostgreSQL's catalog, and the statement itself. It opens no file and
//! never sees a private table. A worker that needs more than its share of `query_memory`, beyond what it needs to
//! start, ends. A worker also ends with its statement and with the server.

mod codec;
mod frames;
mod leaves;
mod pool;
mod process;
mod remote;
mod run;

pub use pool::Workers;
pub use process::{Asker, Functions, run};

/// The argument that starts our programs as a worker.
pub const WORKER: &str = "--worker";
