//! A-views as a user runs them: statements in, rows out.

mod golden;
mod properties;
mod session;
mod slt;
