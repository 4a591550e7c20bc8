//! Properties of the readers of this crate, for arbitrary bytes. The targets in `fuzz/` call these functions with bytes
//! that a fuzzer makes up, and the tests call them with the files in `fuzz/corpus`.
//!
//! Every function panics if a property does not hold.

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use chrono::NaiveDate;
use kohort_model::{Notation, Texts, ValueType};

use crate::access::{Accounts, MemoryRecords, Records, Verifier};
use crate::hierarchies::Hierarchies;
use crate::parser::{ParseErrorKind, STACK, StatementText, Statements, is_complete, parse};
use crate::policy::{ImportDefaults, import_policy};
use crate::role::Role;

/// Replaces `~` in values. Nothing that is shown or logged may hold this text.
const CANARY: &str = "Canary7c1";

/// Bytes of the longest text that is made by repeating a short one.
const LONGEST: usize = 200_000;

/// Parses SQL. The first two bytes are a number. Parts of the text between bytes of value 1 are repeated that often, so a few
/// bytes can make a deep or long text.
///
/// A text within the limits must be parsed without running out of stack. Parsing the text of a statement must give the same
/// statement, because data folders keep that text. The log's text of a statement must hold none of its values.
pub fn sql(data: &[u8]) {
    let [high, low, text @ ..] = data else { return };
    let Some(text) = repeated(text, u16::from_be_bytes([*high, *low])) else { return };
    // The same stack as in the programs.
    let parsing = std::thread::Builder::new().stack_size(STACK).spawn(move || parses(&text.replace('~', CANARY)));
    parsing.expect("there is a thread").join().expect("parsing does not panic");
}

fn repeated(text: &[u8], n: u16) -> Option<String> {
    let mut long = String::new();
    for (position, part) in text.split(|&byte| byte == 1).enumerate() {
        let part = std::str::from_utf8(part).ok()?;
        let times = if position % 2 == 0 { 1 } else { usize::from(n) };
        if long.len() + part.len() * times > LONGEST {
            return None;
        }
        long.push_str(&part.repeat(times));
    }
    Some(long)
}

fn parses(text: &str) {
    is_complete(text);
    let unread = StatementText::of_unread(text);
    assert!(unread.written.is_empty() && !unread.structure.contains(CANARY), "a value of a text that was not parsed");
    let statements = match Statements::sent_by(Role::Analyst, text) {
        Ok(statements) => statements,
        Err(problem) => return is_placed(&problem, text),
    };
    let parsed = match statements.parse() {
        Ok(parsed) => parsed,
        Err(problem) => return is_placed(&problem, text),
    };
    assert_eq!(parsed.len(), statements.n_statements());
    for one in &parsed {
        let again = parse(&one.text.written).expect("a statement is read from its own text");
        let [again] = again.as_slice() else { panic!("a statement's own text holds {} statements", again.len()) };
        assert!(again.statement == one.statement && again.pair == one.pair, "another statement");
        let structure = &one.text.structure;
        assert_eq!(&StatementText::of(structure).structure, structure, "a literal is left in the structure");
        let unknown = StatementText::with_known_names(structure, |_| false);
        assert!(!unknown.contains(CANARY), "a name that nobody knows is in the log");
    }
}

fn is_placed(problem: &crate::parser::ParseError, text: &str) {
    let n_lines = text.matches('\n').count() as u64 + 1;
    assert!((1..=n_lines).contains(&problem.line) && problem.column >= 1, "{problem:?}");
    assert!(!problem.to_string().is_empty() && problem.hint() != Some(String::new()));
    assert_ne!(problem.fault, ParseErrorKind::Sql(String::new()));
}

/// A folder with a P3P policy that TOML files may name.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("kohort-policies-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("there is a folder for temporary files");
    let policy = "<POLICY><STATEMENT><PURPOSE><current/></PURPOSE><RECIPIENT><ours/></RECIPIENT><RETENTION>\
                  <stated-purpose/></RETENTION><DATA-GROUP><DATA ref=\"#user.bdate\"/></DATA-GROUP></STATEMENT></POLICY>";
    fs::write(folder.join("policy.xml"), policy).expect("the folder can be written");
    folder
});

/// Imports a policy: P3P if it begins with `<`, else TOML. Persons are named `~`.
///
/// A policy must become a table of choices with distinct column names and a k in every row. No error may name a person.
pub fn p3p(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let is_xml = text.trim_start_matches('\u{feff}').starts_with('<');
    // Import only the file in this folder, no others of the machine.
    if !is_xml && text.contains('/') {
        return;
    }
    let text = text.replace("person = \"~\"", &format!("person = \"{CANARY}\""));
    let path = FOLDER.join(if is_xml { "fuzzed.xml" } else { "fuzzed.toml" });
    fs::write(&path, &text).expect("the folder can be written");
    let today = NaiveDate::from_ymd_opt(2026, 1, 2).expect("a day of the calendar");
    for k in [None, Some(5)] {
        match import_policy(&path, &ImportDefaults { person: None, k }, today) {
            Ok(batch) => {
                assert!(batch.num_rows() > 0);
                let names: HashSet<&String> = batch.schema_ref().fields().iter().map(|field| field.name()).collect();
                assert_eq!(names.len(), batch.num_columns(), "two columns have one name");
                let k = batch.column_by_name("k").expect("there is a column of k");
                assert_eq!(k.null_count(), 0);
            }
            Err(problem) => {
                let shown = format!("{problem} {problem:?} {:?}", problem.hint());
                assert!(!shown.contains(CANARY), "a person in a message");
            }
        }
    }
}

/// Reads records of a data folder. A text that begins with `{` or `"` is a DGH. Other texts are users and grants, one per line,
/// with kind, name and text separated by tabs.
///
/// A record that is accepted must be written again as the same record, and no error may show what a record says.
pub fn records(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let text = text.replace('~', CANARY);
    if text.starts_with(['{', '"']) {
        hierarchy_record(&text);
    } else {
        account_records(&text);
    }
}

fn hierarchy_record(text: &str) {
    const NAME: &str = "zip";
    let mut hierarchies = Hierarchies::default();
    if hierarchies.restore(NAME, text).is_none() {
        return;
    }
    let rule = hierarchies.rule(NAME);
    assert!(rule.is_none_or(|rule| rule.check().is_ok()), "a rule that nobody could have made");
    let finished = hierarchies.finished_record(NAME);
    for record in [hierarchies.record(NAME), finished.ok().flatten()].into_iter().flatten() {
        let mut again = Hierarchies::default();
        again.restore(NAME, &record).expect("a record that was written can be read");
        assert_eq!(again.record(NAME).as_ref(), Some(&record), "a record changes when it is written again");
    }
    let values = Texts::from_iter(["", "8", "88512", "-1.5", "2024-02-29"]);
    for value_type in ValueType::ALL {
        let _ = hierarchies.tree_for(NAME, Some("*****"), &values, value_type, &Notation::default());
    }
}

fn account_records(text: &str) {
    let records = MemoryRecords::default();
    for line in text.lines() {
        let mut parts = line.splitn(3, '\t');
        let mut next = || parts.next().unwrap_or_default();
        let (kind, name, text) = (next(), next(), next());
        records.put(kind, name, text).expect("memory can be written");
        if let Ok(verifier) = text.parse::<Verifier>() {
            assert_eq!(verifier.to_string().parse().as_ref(), Ok(&verifier));
        }
    }
    if let Err(problem) = Accounts::open(Box::new(records)) {
        assert!(!format!("{problem} {problem:?}").contains(CANARY), "a record in a message");
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// Runs a check on every file of its corpus. The name of the file that fails is the last one that is printed.
    fn replay(target: &str, check: fn(&[u8])) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
        let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        assert!(!files.is_empty());
        for file in files {
            println!("{}", file.display());
            check(&std::fs::read(file).unwrap());
        }
    }

    #[test]
    fn the_corpus_of_sql_is_parsed_as_sql_should_be() {
        replay("sql", super::sql);
    }

    #[test]
    fn the_corpus_of_policies_is_imported_as_policies_should_be() {
        replay("p3p", super::p3p);
    }

    #[test]
    fn the_corpus_of_records_is_read_as_records_should_be() {
        replay("records", super::records);
    }
}
