//! Faults of kohort: a panic ends the command with exit code 3 and a message that names the place in the code. The message
//! of the panic itself is not shown, because it might hold a cell.

use std::panic::{self, Location, UnwindSafe};
use std::process::ExitCode;

use crate::failure::Status;
use crate::terminal;

/// Runs a command; a panic in it becomes an exit code.
pub(crate) fn guard(command: impl FnOnce() -> ExitCode + UnwindSafe) -> ExitCode {
    panic::set_hook(Box::new(|panic| {
        terminal::error(&describe(panic.location()));
        terminal::hint("this is a fault of kohort, and nothing was released: please report it with the place above");
    }));
    // Unwinding removes a half-written release, which exiting at once would not.
    panic::catch_unwind(command).unwrap_or(ExitCode::from(Status::Fault as u8))
}

fn describe(location: Option<&Location<'_>>) -> String {
    match location {
        Some(location) => format!("kohort failed at {}:{}", location.file(), location.line()),
        None => "kohort failed".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_described_by_its_place_alone() {
        let here = Location::caller();
        assert_eq!(describe(Some(here)), format!("kohort failed at {}:{}", file!(), here.line()));
        assert_eq!(describe(None), "kohort failed");
    }

    #[test]
    fn a_panic_ends_in_exit_code_3() {
        let status = guard(|| panic!("a secret"));
        drop(panic::take_hook());
        assert_eq!(status, ExitCode::from(3));
    }
}
