//! The command `kohort-sql`.
fn main() {}
