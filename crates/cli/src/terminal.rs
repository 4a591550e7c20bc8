//! Where output goes: data to stdout, words for people to stderr. Labels such as `error:` are coloured if stderr is a
//! terminal.

use std::io::{ErrorKind, Write};

use anstyle::{AnsiColor, Style};

use crate::failure::{Failure, Report, Status};

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const NOTE: Style = Style::new().bold();
const HINT: Style = AnsiColor::Cyan.on_default().bold();

/// Prints data.
///
/// # Errors
/// If stdout can't be written to. A reader that has seen enough, as in `kohort check ... | head`, is no error.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::new(Status::Fault, vec![Report::new(format!("stdout: can't be written: {error}"))]))
        }
        _ => Ok(()),
    }
}

/// Prints words for people.
pub(crate) fn say(text: &str) {
    // If stderr can't be written to, there is no place left to say so.
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// `error: ...`
pub(crate) fn error(message: &str) {
    label("error:", ERROR, message);
}

/// `hint: ...`
pub(crate) fn hint(message: &str) {
    label("hint:", HINT, message);
}

/// `warning: ...`
pub(crate) fn warning(message: &str) {
    label("warning:", WARNING, message);
}

/// `note: ...`
pub(crate) fn note(message: &str) {
    label("note:", NOTE, message);
}

/// The stream drops colours if stderr is no terminal, or `NO_COLOR` or `TERM=dumb` asks for none.
fn label(label: &str, style: Style, message: &str) {
    let _ = writeln!(anstream::stderr().lock(), "{style}{label}{style:#} {message}");
}
