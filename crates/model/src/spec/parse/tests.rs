//! Right and wrong specs as users write them, and the exact messages.

mod changes;
mod columns;
mod links;
mod objectives;
mod random;
mod readers;

use std::fmt::Write as _;
use std::path::PathBuf;

use super::super::*;
use super::*;
use crate::{Distance, Requirement};

const CLINIC: &str = r#"
k = 5
max_suppressed = 0.02
leftovers = "suppress"
seed = 7

[tables.patient]
file = "patient.csv"
separator = ";"
null = ["", "NA"]
person = "patient_id"
[tables.patient.columns]
birth   = { role = "quasi", hierarchy = "date" }
zip     = { role = "quasi", type = "text", hierarchy = "hierarchies/zip.csv" }
age     = { role = "quasi", hierarchy = { steps = [5, 10, 50] } }
city    = { role = "quasi", hierarchy = { mask = "right" } }
k_wish  = "person_k"
disease = { role = "sensitive", l = 3, t = 0.2 }
ward    = "plain"
note    = "drop"
"#;

/// Every fault with its hint, as a user sees them.
fn problems(text: &str) -> String {
    let SpecErrors(problems) = Spec::parse(text).unwrap_err();
    let mut shown = String::new();
    for problem in problems {
        writeln!(shown, "{problem}").unwrap();
        if let Some(hint) = problem.hint() {
            writeln!(shown, "  {hint}").unwrap();
        }
    }
    shown
}

/// A spec around one table's columns.
fn problems_of_columns(columns: &str) -> String {
    problems(&format!("k = 5\n[tables.a]\nfile = \"a.csv\"\n[tables.a.columns]\nq = \"quasi\"\n{columns}"))
}

#[test]
fn the_clinic_of_the_documentation_is_read() {
    let spec = Spec::parse(CLINIC).unwrap();
    assert_eq!((spec.k, spec.max_suppressed, spec.leftovers, spec.seed), (5, 0.02, Leftovers::Suppress, 7));
    let table = &spec.tables[0];
    assert_eq!(table.csv.separator, Some(';'));
    assert_eq!(table.csv.null, Some(vec![String::new(), "NA".to_owned()]));
    let names: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["birth", "zip", "age", "city", "k_wish", "disease", "ward", "note", "patient_id"]);
    assert_eq!(table.columns[8].role, Role::Key);
    assert_eq!(table.columns[1].hierarchy, Some(HierarchySource::Paths(PathBuf::from("hierarchies/zip.csv"))));
    let disease = || "disease".to_owned();
    assert_eq!(
        spec.requirements(table),
        [
            Requirement::K(5),
            Requirement::PersonK { column: "k_wish".to_owned() },
            Requirement::DistinctL { column: disease(), l: 3 },
            Requirement::TCloseness { column: disease(), t: 0.2, distance: Distance::Equal },
        ]
    );
}

#[test]
fn hierarchies_are_released_as_far_as_labels_need_them_unless_they_are_withheld() {
    let spec = |line: &str| format!("k = 2\n{line}\n[tables.a]\nfile = \"a.csv\"\ncolumns = {{ q = \"quasi\" }}");
    assert_eq!(Spec::parse(&spec("")).unwrap().hierarchies, ReleasedHierarchies::Shown);
    let withheld = Spec::parse(&spec("hierarchies = \"withhold\"")).unwrap();
    assert_eq!(withheld.hierarchies, ReleasedHierarchies::Withhold);
    assert!(problems(&spec("hierarchies = \"all\"")).contains("hierarchies"));
}

#[test]
fn a_preset_is_a_k() {
    let text = "preset = \"ema\"\n[tables.a]\nfile = \"a.csv\"\ncolumns = { q = \"quasi\" }";
    assert_eq!(Spec::parse(text).unwrap().k, 12);
    assert_eq!(Spec::parse(&text.replace("ema", "cms")).unwrap().k, 11);
    assert_eq!(
        problems(&format!("k = 5\n{text}")),
        "line 2: preset: k and preset are both given\n  keep one: preset = \"ema\" means k = 12, \"cms\" means k = 11\n"
    );
}

#[test]
fn an_empty_spec_lacks_a_k_and_a_table() {
    assert_eq!(
        problems(""),
        "there is no k\n  \
         say how many persons must look alike, for example k = 5, or preset = \"ema\" (12) or \"cms\" (11); \
         there is no default\n\
         there is no table\n  \
         name one: [tables.patient] with file = \"patient.csv\" and its columns\n"
    );
}

#[test]
fn algorithms_have_sections_of_their_own() {
    let text = CLINIC
        .replace("[tables.patient]", "[datafly]\nblock = 1000\n[full_domain]\nobjective = \"dm\"\n[tables.patient]");
    let spec = Spec::parse(&text).unwrap();
    assert_eq!((spec.datafly.block, spec.full_domain.objective), (Some(1000), Objective::Dm));
    let spec = Spec::parse(CLINIC).unwrap();
    assert_eq!((spec.datafly.block, spec.full_domain.objective), (None, Objective::Lm));
}

#[test]
fn blocks_need_persons_to_be_ordered_by() {
    assert_eq!(
        problems(
            "k = 5\n\
             [datafly]\n\
             block = 0\n\
             [full_domain]\n\
             objective = \"ncp\"\n\
             [tables.a]\n\
             file = \"a.csv\"\n\
             columns = { q = \"quasi\" }\n"
        ),
        "line 3: datafly.block: blocks follow the order of persons, but no table names its persons\n  \
         add for example person = \"patient_id\" to the table (that column is not released), or take block out\n\
         line 3: datafly.block: must be a whole number of at least 1, not 0\n\
         line 5: full_domain.objective: must be lm or dm, not 'ncp'\n"
    );
}

#[test]
fn all_problems_are_reported_together() {
    assert_eq!(
        problems(
            "k = 0\n\
             algoritm = \"mondrian\"\n\
             max_suppressed = 2\n\
             leftovers = \"supress\"\n\
             [mondrian]\n\
             cuts = \"strickt\"\n\
             [tables.patient]\n\
             fil = \"a.csv\"\n\
             header = \"yes\"\n\
             [tables.patient.columns]\n\
             age = \"quasy\"\n\
             zip = { hierarchy = 5 }\n"
        ),
        "line 1: k: must be a whole number of at least 1, not 0\n\
         line 2: algoritm: unknown key\n  \
         did you mean 'algorithm'?\n\
         line 3: max_suppressed: must be a number from 0 to 1, not 2\n\
         line 4: leftovers: must be merge or suppress, not 'supress'\n  \
         did you mean 'suppress'?\n\
         line 6: mondrian.cuts: must be strict or relaxed, not 'strickt'\n  \
         did you mean 'strict'?\n\
         line 7: tables.patient: 'file' is missing\n  \
         for example file = \"patient.csv\"\n\
         line 8: tables.patient.fil: unknown key\n  \
         did you mean 'file'?\n\
         line 9: tables.patient.header: must be true or false, found a text\n\
         line 11: tables.patient.columns.age: must be identifier, quasi, sensitive, key, plain, person_k, drop or pseudonym, not 'quasy'\n  \
         did you mean 'quasi'?\n\
         line 12: tables.patient.columns.zip: 'role' is missing\n  \
         for example role = \"quasi\"\n\
         line 12: tables.patient.columns.zip.hierarchy: must be a file, \"date\", \"flat\", or a table with a rule, found a whole number\n"
    );
}

#[test]
fn suppressing_needs_a_limit() {
    let expected = "line 2: leftovers: \"suppress\" needs a max_suppressed above 0\n  \
                    say which share of the persons may be left out, for example max_suppressed = 0.02\n";
    let table = "[tables.a]\nfile = \"a.csv\"\ncolumns = { q = \"quasi\" }";
    assert_eq!(problems(&format!("k = 5\nleftovers = \"suppress\"\n{table}")), expected);
    assert_eq!(problems(&format!("k = 5\nleftovers = \"suppress\"\nmax_suppressed = 0\n{table}")), expected);
}

#[test]
fn files_and_their_notation_are_checked() {
    assert_eq!(
        problems(
            "k = 5\n[tables.\"../x\"]\nfile = \"a.csv\"\nseparator = \"||\"\ndecimal = \";\"\ndate_format = \"%Q\"\n\
             null = 5\ncolumns = { a = \"person_k\", b = \"person_k\", q = \"quasi\" }\n"
        ),
        "line 2: tables.\"../x\": the name can't be the name of a released file\n  \
         use letters, digits, '-' and '_'\n\
         line 4: tables.\"../x\".separator: must be one character, such as \";\" or \"\\t\", not \"||\"\n\
         line 5: tables.\"../x\".decimal: must be '.' or ',', not ';'\n\
         line 6: tables.\"../x\".date_format: '%Q' is not a date format\n  \
         write it as in strftime, for example \"%d.%m.%Y\"\n\
         line 7: tables.\"../x\".null: must be a list of texts, found a whole number\n\
         line 8: tables.\"../x\".columns.b: a second person_k column: 'a' is one already\n  \
         keep one, and give the other another role\n"
    );
}

#[test]
fn a_text_that_is_no_toml_is_refused_by_line() {
    assert_eq!(problems("k = 5\nk = 6\n"), "line 2: not valid TOML: duplicate key\n");
    assert!(problems("k = 5\n[tables\n").starts_with("line 2: not valid TOML: "));
}
