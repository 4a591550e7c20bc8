//! The command `kohort-sql`.

use std::process::ExitCode;

fn main() -> ExitCode {
    kohort_sql::shell::run()
}
