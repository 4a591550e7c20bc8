//! Where words go: data to stdout, everything else to stderr, colour only on a terminal.

use std::io::{ErrorKind, IsTerminal, Write};

use crate::failure::{Failure, Report, Status};

/// Prints data.
///
/// # Errors
/// Where stdout can't be written to. A reader that has seen enough, as in `kohort check ... | head`, is no error.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::new(Status::Fault, vec![Report::new(format!("stdout: can't be written: {error}"))]))
        }
        _ => Ok(()),
    }
}

/// Says something to whoever watches.
pub(crate) fn say(text: &str) {
    // Nobody is left to be told that stderr is gone.
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// `error: ...`
pub(crate) fn error(message: &str) {
    label("error:", "\x1b[1;31m", message);
}

/// `hint: ...`
pub(crate) fn hint(message: &str) {
    label("hint:", "\x1b[1;36m", message);
}

/// `warning: ...`
pub(crate) fn warning(message: &str) {
    label("warning:", "\x1b[1;33m", message);
}

/// `note: ...`
pub(crate) fn note(message: &str) {
    label("note:", "\x1b[1m", message);
}

fn label(label: &str, colour: &str, message: &str) {
    if is_colourful() {
        say(&format!("{colour}{label}\x1b[0m {message}\n"));
    } else {
        say(&format!("{label} {message}\n"));
    }
}

fn is_colourful() -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    std::io::stderr().is_terminal() && !is_set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}
