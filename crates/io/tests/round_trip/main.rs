//! What is read, released unchanged and written comes back as it was, in every format. Only public functions are used.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod arrow;
mod bounds;
mod csv;
mod folder;
mod job;
