//! Where words go: to stderr, in colour only on a terminal.

use std::io::{IsTerminal, Write};

/// Says something to whoever watches.
pub(super) fn say(text: &str) {
    // Nobody is left to be told that stderr is gone.
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// `error: ...`
pub(super) fn error(message: &str) {
    label("error:", "\x1b[1;31m", message);
}

/// `warning: ...`
pub(super) fn warn(message: &str) {
    label("warning:", "\x1b[1;33m", message);
}

/// `hint: ...`
pub(super) fn hint(message: &str) {
    label("hint:", "\x1b[1;36m", message);
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
