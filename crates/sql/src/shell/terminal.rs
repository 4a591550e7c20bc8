//! Messages on stderr, with coloured labels such as `error:`.

use std::io::Write;

use anstyle::{AnsiColor, Style};

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const HINT: Style = AnsiColor::Cyan.on_default().bold();

/// Prints a message as it is.
pub(super) fn say(text: &str) {
    // If stderr can't be written, there is no place left to report that.
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// `error: ...`
pub(super) fn error(message: &str) {
    label(ERROR, "error:", message);
}

/// `warning: ...`
pub(super) fn warn(message: &str) {
    label(WARNING, "warning:", message);
}

/// `hint: ...`
pub(super) fn hint(message: &str) {
    label(HINT, "hint:", message);
}

/// The stream drops the colours unless stderr is a terminal, and obeys `NO_COLOR` and `TERM`.
fn label(style: Style, label: &str, message: &str) {
    let _ = writeln!(anstream::stderr().lock(), "{style}{label}{style:#} {message}");
}
