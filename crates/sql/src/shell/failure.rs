//! [`CommandError`]: why `kohort-sql` or `kohort-serve` ends, or one of its statements fails.

use super::terminal;
use crate::SqlError;
use crate::access::AccessError;

/// A failure with its exit code.
#[derive(Debug)]
pub struct CommandError {
    /// The exit code of a command that ends with this failure.
    pub exit_code: u8,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl CommandError {
    /// A checked folder is damaged.
    pub(super) const UNSOUND: u8 = 1;
    /// The arguments or the input are wrong.
    pub const INPUT: u8 = 2;
    /// I/O failed, or there is a bug.
    pub const FAULT: u8 = 3;
    /// The user cancelled it.
    pub(super) const CANCELLED: u8 = 130;

    /// A failure with this exit code.
    pub fn new(exit_code: u8, message: impl Into<String>) -> Self {
        CommandError { exit_code, message: message.into(), hint: None }
    }

    /// A failure of I/O, or a bug.
    pub fn fault(message: impl Into<String>) -> Self {
        CommandError::new(CommandError::FAULT, message)
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        CommandError { hint: Some(hint.into()), ..self }
    }

    /// Prints the message and the hint to stderr.
    pub fn report(&self) {
        terminal::error(&self.message);
        if let Some(hint) = &self.hint {
            terminal::hint(hint);
        }
    }
}

impl From<SqlError> for CommandError {
    fn from(error: SqlError) -> Self {
        CommandError { exit_code: error.exit_code(), message: error.to_string(), hint: error.hint() }
    }
}

impl From<AccessError> for CommandError {
    fn from(problem: AccessError) -> Self {
        SqlError::from(problem).into()
    }
}

/// Prints the place of a panic, but not its message, which might contain a cell.
pub fn report_panics(program: &'static str) {
    std::panic::set_hook(Box::new(move |panic| {
        let place = panic.location().map(|location| format!(" at {}:{}", location.file(), location.line()));
        CommandError::fault(format!("{program} failed{}", place.unwrap_or_default()))
            .hint("this is a bug in kohort: please report this place in the code")
            .report();
    }));
}
