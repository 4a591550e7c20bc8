//! `cargo xtask attack`: runs the catalogue of attacks and prints its tables; with `--write` they go to
//! `docs/attacks.md`.
//!
//! Fails if a release does not keep what is promised, or an attack does not succeed although it should.

use std::path::Path;
use std::process::ExitCode;

use kohort_testkit::attacks::statements::statements;
use kohort_testkit::attacks::{Attack, Side, catalogue, page_with, table};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let writes = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => false,
        ["--write"] => true,
        _ => {
            eprintln!("attack: the only argument is --write");
            return ExitCode::FAILURE;
        }
    };
    let ran: Vec<(Attack, Vec<Side>)> = catalogue().into_iter().map(|attack| (attack, (attack.run)())).collect();
    let tables = table(&ran, &statements());
    let mut is_kept = true;
    for (attack, sides) in &ran {
        for complaint in sides.iter().filter_map(|side| side.check().err()) {
            eprintln!("attack: {}: {complaint}", attack.name);
            is_kept = false;
        }
    }
    if !writes {
        print!("{tables}");
    } else if let Err(problem) = write(&tables) {
        eprintln!("attack: {problem}");
        is_kept = false;
    }
    if is_kept { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn write(tables: &str) -> Result<(), String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/attacks.md");
    let page = std::fs::read_to_string(&path).map_err(|error| format!("docs/attacks.md: {error}"))?;
    let page = page_with(&page, tables).ok_or("docs/attacks.md has no marks between which the tables belong")?;
    std::fs::write(&path, page).map_err(|error| format!("docs/attacks.md: {error}"))
}
