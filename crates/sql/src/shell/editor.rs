//! [`Editor`]: reads statements from a terminal, with history, completion and statements over several lines.

use std::ffi::OsString;
use std::path::PathBuf;

use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Helper};

use super::CommandError;
use crate::parser::is_complete;

pub(super) const HELP: &str = "\
\\d   list tables, anonymization views and DGHs
\\q   leave, like Ctrl-D
\\?   show this help
End statements with ; They may span several lines. Ctrl-C cancels a statement, Tab completes words.
  CREATE EXTERNAL TABLE patient STORED AS CSV LOCATION 'patient.csv';
  CREATE DGH zip FROM MASK RIGHT;
  CREATE ANONYMIZATION_VIEW patients ON SELECT name, zip, disease FROM patient WITH ANONYMIZATION_ID name
    ANONYMIZATION_QUASI_ID (zip DGH_NAME zip) ANONYMIZATION_SENSITIVE_ATTR (disease) K 5;
  SELECT zip, count(*) FROM patients GROUP BY zip PURPOSE research RECIPIENT lab;
";

/// Keywords that are completed in addition to names.
const KEYWORDS: &str = "\
    ALL AND ANONYMIZATION_ID ANONYMIZATION_OTHER ANONYMIZATION_QUASI_ID ANONYMIZATION_SENSITIVE_ATTR \
    ANONYMIZATION_VIEW ANONYMIZATION_VIEWS ANSWERS ASC BETWEEN BLOCK CASE CLASS COLLECTION COMPLIANCE COUNT CREATE \
    DATES DESC DGH DGHS DGH_NAME DISCLOSURE DISTINCT DRIFT DROP EDGES EXISTS EXPLAIN EXTERNAL FLAT FROM GROUP \
    HAVING IMPORT INSERT INTO JOIN LEFTOVERS LIKE LIMIT LOCATION LOG L_DIVERSITY MASK MATCHING MATERIALIZED MERGE NOT \
    NULL ORDER PER PERSON POLICY PURPOSE RECIPIENT REFERENCES REFRESH REPLACE ROW SELECT SHOW STEPS STORED SUPPRESS \
    TABLE T_CLOSENESS UNION USING UTILITY VALUES VIEW WHERE WITH";

/// The meaning of a typed line.
pub(super) enum Input {
    Nothing,
    Leave,
    Help,
    Describe,
    Unknown(String),
    Statements(String),
}

/// The line editor.
pub(super) struct Editor {
    lines: rustyline::Editor<Words, FileHistory>,
    history: Option<PathBuf>,
}

impl Editor {
    /// Starts the editor with the history of this file.
    pub(super) fn start(history: Option<PathBuf>) -> Result<Self, CommandError> {
        let failed = |error: ReadlineError| CommandError::fault(format!("the terminal can't be used: {error}"));
        let mut lines = rustyline::Editor::<Words, FileHistory>::new().map_err(failed)?;
        lines.set_helper(Some(Words { names: Vec::new() }));
        if let Some(path) = &history {
            // The file does not exist the first time.
            let _ = lines.load_history(path);
        }
        Ok(Editor { lines, history })
    }

    /// Reads the next input. These names are completed.
    pub(super) fn read(&mut self, names: Vec<String>) -> Result<Input, CommandError> {
        if let Some(words) = self.lines.helper_mut() {
            words.names = names;
        }
        match self.lines.readline("kohort> ") {
            Ok(text) => {
                self.remember(&text);
                Ok(understand(&text))
            }
            Err(ReadlineError::Interrupted) => Ok(Input::Nothing),
            Err(ReadlineError::Eof) => Ok(Input::Leave),
            Err(error) => Err(CommandError::fault(format!("the terminal can't be read: {error}"))),
        }
    }

    fn remember(&mut self, text: &str) {
        let is_new = self.lines.add_history_entry(text).unwrap_or(false);
        if let (Some(path), true) = (&self.history, is_new) {
            // The shell works without a history, so ignore failures.
            let _ = path.parent().map(std::fs::create_dir_all);
            let _ = self.lines.append_history(path);
        }
    }
}

/// The history file, in the user's folder for the state of programs.
pub(super) fn history_file(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let folder = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let state = if cfg!(windows) {
        folder("LOCALAPPDATA")
    } else {
        folder("XDG_STATE_HOME").or_else(|| folder("HOME").map(|home| home.join(".local/state")))
    };
    state.map(|state| state.join("kohort").join("sql_history"))
}

fn understand(text: &str) -> Input {
    match text.trim().trim_end_matches(';').trim_end() {
        "" => Input::Nothing,
        "\\q" | "exit" | "quit" => Input::Leave,
        "\\?" | "help" => Input::Help,
        "\\d" => Input::Describe,
        command if command.starts_with('\\') => Input::Unknown(command.to_owned()),
        _ => Input::Statements(text.to_owned()),
    }
}

/// Whether Enter ends the input.
fn is_whole(text: &str) -> bool {
    !matches!(understand(text), Input::Statements(_)) || is_complete(text)
}

/// The completion of words.
struct Words {
    names: Vec<String>,
}

impl Words {
    /// The start of the word before the cursor, and its possible completions.
    fn completions(&self, line: &str, cursor: usize) -> (usize, Vec<String>) {
        let before = &line[..cursor];
        let is_of_word = |character: char| character.is_alphanumeric() || character == '_';
        let start = before.trim_end_matches(is_of_word).len();
        let begun = before[start..].to_lowercase();
        if begun.is_empty() {
            return (start, Vec::new());
        }
        let is_upper = before[start..].chars().all(|character| !character.is_lowercase());
        let keywords = KEYWORDS.split(' ').map(|word| if is_upper { word.to_owned() } else { word.to_lowercase() });
        let mut found: Vec<String> =
            keywords.chain(self.names.iter().cloned()).filter(|word| word.to_lowercase().starts_with(&begun)).collect();
        found.sort_unstable();
        found.dedup();
        (start, found)
    }
}

impl Completer for Words {
    type Candidate = String;

    fn complete(&self, line: &str, cursor: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(self.completions(line, cursor))
    }
}

impl Validator for Words {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(if is_whole(context.input()) { ValidationResult::Valid(None) } else { ValidationResult::Incomplete })
    }
}

impl Hinter for Words {
    type Hint = String;
}

impl Highlighter for Words {}

impl Helper for Words {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_completed_in_the_case_they_were_begun() {
        let words = Words { names: vec!["disease".to_owned(), "DGH_zip".to_owned()] };
        let completed = |line: &str| words.completions(line, line.len()).1.join(" ");
        assert_eq!(completed("SELECT dis"), "disclosure disease distinct");
        assert_eq!(completed("CREATE DGH"), "DGH DGHS DGH_NAME DGH_zip");
        assert_eq!(words.completions("SELECT ", 7), (7, Vec::new()));
        assert_eq!(completed("SELECT größe"), "");
    }

    #[cfg(unix)]
    #[test]
    fn the_history_is_in_the_users_folder_for_state() {
        let file = |state: &'static str, home: &'static str| {
            let found = history_file(move |name| match name {
                "XDG_STATE_HOME" => Some(state.into()),
                "HOME" => Some(home.into()),
                _ => None,
            });
            found.map(|file| file.to_string_lossy().into_owned())
        };
        assert_eq!(file("/state", "/home/ann").unwrap(), "/state/kohort/sql_history");
        assert_eq!(file("", "/home/ann").unwrap(), "/home/ann/.local/state/kohort/sql_history");
        assert_eq!(file("", ""), None);
    }

    #[test]
    fn a_statement_goes_on_until_its_semicolon() {
        assert!(!is_whole("SELECT 1"));
        assert!(!is_whole("SELECT ';"));
        assert!(!is_whole("SELECT 1 -- ;"));
        assert!(is_whole("SELECT ';';"));
        assert!(is_whole("SELECT 1; -- so\n"));
        for whole in ["", "  ", "\\q", "\\d", "\\x", "quit"] {
            assert!(is_whole(whole), "{whole}");
        }
    }

    #[test]
    fn a_statement_that_can_never_be_read_ends_with_a_blank_line() {
        assert!(!is_whole("SELECT 'a\n"));
        assert!(is_whole("SELECT 'a\n\n"));
    }
}
