//! Right and wrong specs as users write them, and the exact messages.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use proptest::prelude::*;

use super::super::*;
use super::*;
use crate::hierarchy::{DateLevel, MaskSide, Rule};
use crate::{Distance, Requirement, ValueType};

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
fn p_is_another_name_of_l() {
    let spec = |settings: &str| {
        let columns = format!("q = \"quasi\", d = {{ role = \"sensitive\", {settings} }}");
        format!("k = 2\n[tables.a]\nfile = \"a.csv\"\ncolumns = {{ {columns} }}")
    };
    assert_eq!(Spec::parse(&spec("p = 3")).unwrap(), Spec::parse(&spec("l = 3")).unwrap());
    let problems = Spec::parse(&spec("l = 3, p = 3")).unwrap_err();
    assert_eq!(problems.to_string(), "line 4: tables.a.columns.d.p: l and p are two names of the same requirement");
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
         line 11: tables.patient.columns.age: must be identifier, quasi, sensitive, key, plain, person_k or drop, not 'quasy'\n  \
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
fn settings_of_sensitive_columns_have_ranges() {
    assert_eq!(
        problems_of_columns(
            "a = { role = \"sensitive\", l = 0, entropy_l = 0.5, recursive_cl = [0, 2], t = 1.5, alpha = 0, beta = 0.0, enhanced_beta = nan }\n\
             b = { role = \"sensitive\", l = 2.5, recursive_cl = [3], distance = \"equal\" }\n\
             c = { role = \"sensitive\", recursive_cl = [3, 1.5], t = 0.1, distance = \"hierarchical\" }\n\
             d = { role = \"plain\", l = 2, type = \"text\" }\n"
        ),
        "line 6: tables.a.columns.a.l: must be a whole number of at least 1, not 0\n\
         line 6: tables.a.columns.a.entropy_l: must be a number of at least 1, not 0.5\n\
         line 6: tables.a.columns.a.recursive_cl: must be [c, l] with c above 0 and a whole l of at least 1, not 0\n\
         line 6: tables.a.columns.a.t: must be a number from 0 to 1, not 1.5\n\
         line 6: tables.a.columns.a.alpha: must be a number above 0 and up to 1, not 0\n\
         line 6: tables.a.columns.a.beta: must be a number above 0, not 0\n\
         line 6: tables.a.columns.a.enhanced_beta: must be a number above 0, not NaN\n\
         line 7: tables.a.columns.b.l: must be a whole number of at least 1, found a decimal number\n\
         line 7: tables.a.columns.b.recursive_cl: must be [c, l] with c above 0 and a whole l of at least 1, not a list of 1\n\
         line 7: tables.a.columns.b.distance: a distance is given without t\n  \
         add for example t = 0.2, or take the distance out\n\
         line 8: tables.a.columns.c.recursive_cl: must be [c, l] with c above 0 and a whole l of at least 1, not 1.5\n\
         line 8: tables.a.columns.c.distance: the hierarchical distance needs a hierarchy\n  \
         add for example hierarchy = \"disease.csv\", or use distance \"equal\" or \"ordered\"\n\
         line 9: tables.a.columns.d.type: a column that is plain is not generalized, so it takes neither a type nor a hierarchy\n  \
         give the column role \"quasi\" or \"sensitive\", or take type and hierarchy out\n\
         line 9: tables.a.columns.d.l: a requirement needs a sensitive column, but this one is plain\n  \
         give the column role \"sensitive\", or take the requirement out\n"
    );
}

#[test]
fn hierarchies_have_few_forms() {
    assert_eq!(
        problems_of_columns(
            "a = { role = \"quasi\", hierarchy = \"mask\" }\n\
             b = { role = \"quasi\", hierarchy = { steps = [5], mask = \"right\" } }\n\
             c = { role = \"quasi\", hierarchy = { steps = [5, 12] } }\n\
             d = { role = \"quasi\", hierarchy = { dates = [\"year\", \"month\"] } }\n\
             e = { role = \"quasi\", hierarchy = { dates = [\"weak\"] } }\n\
             f = { role = \"quasi\", type = \"text\", hierarchy = { steps = [5] } }\n\
             \"g h\" = { role = \"quasi\", hierarchy = {} }\n"
        ),
        "line 6: tables.a.columns.a.hierarchy: 'mask' needs a setting\n  \
         for example hierarchy = { mask = \"right\" }\n\
         line 7: tables.a.columns.b.hierarchy: must have exactly one of steps, mask, dates and edges, found 2\n  \
         for example { steps = [5, 10, 50] } or { mask = \"right\" }\n\
         line 8: tables.a.columns.c.hierarchy: step 2 is not a multiple of the step before it\n  \
         give widths that nest, the smallest first, such as 5, 10, 50\n\
         line 9: tables.a.columns.d.hierarchy: the date levels are not in the order day, month, quarter, year, decade\n  \
         name levels from fine to coarse, such as \"month\", \"year\"\n\
         line 10: tables.a.columns.e.hierarchy.dates: must be day, month, quarter, year or decade, not 'weak'\n\
         line 11: tables.a.columns.f.hierarchy: 'steps' does not fit a column of type text\n  \
         steps are for numbers, dates for dates and timestamps, masks and flat for any type\n\
         line 12: tables.a.columns.\"g h\".hierarchy: must have exactly one of steps, mask, dates and edges, found 0\n  \
         for example { steps = [5, 10, 50] } or { mask = \"right\" }\n"
    );
}

#[test]
fn keys_are_keys_or_identifiers() {
    let text = |role: &str| {
        format!(
            "k = 5\n[tables.a]\nfile = \"a.csv\"\nperson = \"id\"\n[tables.a.columns]\nid = \"{role}\"\nq = \"quasi\""
        )
    };
    for role in ["key", "identifier"] {
        assert!(Spec::parse(&text(role)).is_ok());
    }
    assert_eq!(
        problems(&text("quasi")),
        "line 6: tables.a.columns.id: the table's person can't be quasi\n  \
         give it role \"key\", or \"identifier\" if it must never be released\n"
    );
}

#[test]
fn a_key_that_links_nothing_is_named_with_all_other_problems() {
    let text = "[tables.patient]\nfile = \"p.csv\"\nperson = \"id\"\ncolumns = { q = \"quasi\", house = \"key\" }\n\
                [tables.visit]\nfile = \"v.csv\"\nkey = \"no\"\nparent = { table = \"patient\", foreign_key = \"id\" }\n\
                columns = { no = \"key\", doctor = \"key\" }\n";
    let SpecErrors(found) = Spec::parse(text).unwrap_err();
    let found: Vec<(&str, Option<usize>, &SpecErrorKind)> =
        found.iter().map(|problem| (problem.key.as_str(), problem.line, &problem.fault)).collect();
    assert_eq!(
        found,
        [
            ("tables.patient.columns.house", Some(4), &SpecErrorKind::KeyLinksNothing),
            ("tables.visit.columns.doctor", Some(9), &SpecErrorKind::KeyLinksNothing),
            ("", None, &SpecErrorKind::NoK),
        ]
    );
}

#[test]
fn references_lead_to_a_key_and_stand_alone() {
    let text = "k = 2\nkeys = \"keep\"\nalgorithm = \"mondrian\"\n[tables.a]\nfile = \"a.csv\"\nperson = \"id\"\n[tables.a.columns]\n\
                q = { role = \"quasi\", references = \"a\" }\nid = { role = \"key\", references = \"a\" }\n\
                to = { role = \"key\", references = \"b\" }\n[audiences.hr]\nquasi = [\"q\"]\n";
    let SpecErrors(found) = Spec::parse(text).unwrap_err();
    let found: Vec<(&str, &SpecErrorKind)> =
        found.iter().map(|problem| (problem.key.as_str(), &problem.fault)).collect();
    let column = |name: &str| format!("tables.a.columns.{name}.references");
    let with = || SpecErrorKind::ReferencesWith { with: "audiences" };
    let algorithm = SpecErrorKind::AlgorithmForOther { algorithm: "mondrian", needed: "a table without references" };
    for (key, fault) in [
        ("keys".to_owned(), SpecErrorKind::ReferencesKept),
        ("algorithm".to_owned(), algorithm),
        (column("q"), SpecErrorKind::ReferencesOnRole { role: Role::Quasi }),
        (column("id"), SpecErrorKind::ReferencesTwice),
        (column("to"), SpecErrorKind::UnknownTable { name: "b".to_owned(), nearest: None }),
        (column("to"), with()),
    ] {
        assert!(found.contains(&(key.as_str(), &fault)), "{key}: {fault:?} is not in {found:?}");
    }
    let alone = "k = 2\n[tables.a]\nfile = \"a.csv\"\nkey = \"id\"\n\
                 columns = { q = \"quasi\", to = { role = \"key\", references = \"a\" } }\n";
    let spec = Spec::parse(alone).unwrap();
    assert!(spec.links_rows() && spec.tables[0].columns[1].references.as_deref() == Some("a"));
}

#[test]
fn tables_hang_off_one_persons_table() {
    let table = |name: &str, more: &str| format!("[tables.{name}]\nfile = \"a.csv\"\ncolumns.q = \"quasi\"\n{more}\n");
    let parent = |of: &str| format!("parent = {{ table = \"{of}\", foreign_key = \"id\" }}");
    let text = [
        "k = 5\nalgorithm = \"mondrian\"\n".to_owned(),
        table("patient", ""),
        table("visit", &parent("patint")),
        table("drug", &parent("patient")),
        table("lone", ""),
        table("a", &parent("b")),
        table("b", &parent("a")),
        table("c", "parent = { tabel = \"a\" }\nperson = \"p\""),
    ]
    .concat();
    assert_eq!(
        problems(&text),
        "line 2: algorithm: 'mondrian' is for a single table\n  \
         algorithm = \"auto\" picks one that fits\n\
         line 10: tables.visit.parent: there is no table 'patint'\n  \
         did you mean 'patient'?\n\
         line 14: tables.drug.parent: table 'patient' has neither a key nor a person to point to\n  \
         give that table its key, for example key = \"visit_id\"\n\
         line 15: tables.lone: the table has no parent, but 'patient' is already the table of persons\n  \
         name its parent, for example parent = { table = \"patient\", foreign_key = \"patient_id\" }, or say \
         person = true if its rows are persons, too\n\
         line 22: tables.a.parent: following the parents leads back to this table\n  \
         let the parents of every table lead to the table of persons\n\
         line 26: tables.b.parent: following the parents leads back to this table\n  \
         let the parents of every table lead to the table of persons\n\
         line 30: tables.c.parent.tabel: unknown key\n  \
         did you mean 'table'?\n\
         line 30: tables.c.parent: 'table' is missing\n  \
         for example table = \"patient\"\n\
         line 30: tables.c.parent: 'foreign_key' is missing\n  \
         for example foreign_key = \"patient_id\"\n\
         line 31: tables.c.person: only a table without a parent names persons\n  \
         take person out, because parent leads to the person; or take parent out, if its rows are other persons\n"
    );
}

#[test]
fn a_table_of_which_nothing_would_be_released_is_refused() {
    let text = |columns: &str, rest: &str| {
        format!(
            "k = 2\n[tables.patient]\nfile = \"p.csv\"\nperson = \"id\"\ncolumns = {{ age = \"quasi\"{rest} }}\n\
             [tables.doctor]\nfile = \"d.csv\"\nperson = \"id\"\ncolumns = {{ {columns} }}\n"
        )
    };
    for nothing in ["id = \"key\"", "id = \"identifier\"", "id = \"key\", name = \"drop\""] {
        let SpecErrors(found) = Spec::parse(&text(nothing, "")).unwrap_err();
        let found: Vec<(&str, &SpecErrorKind)> = found.iter().map(|found| (found.key.as_str(), &found.fault)).collect();
        assert_eq!(found, [("tables.doctor", &SpecErrorKind::NothingReleased)]);
    }
    Spec::parse(&text("id = \"key\", school = \"plain\"", "")).unwrap();
    // The key is released because another table points to it.
    Spec::parse(&text("id = \"key\"", ", doctor = { role = \"key\", references = \"doctor\" }")).unwrap();
}

#[test]
fn a_second_table_of_persons_says_so() {
    let table = |name: &str, more: &str| format!("[tables.{name}]\nfile = \"a.csv\"\ncolumns.q = \"quasi\"\n{more}\n");
    let visits =
        "parent = { table = \"patient\", foreign_key = \"pid\" }\norphans = \"drop\"\nmax_rows_left_out = 0.25";
    let text = [
        "k = 5\n".to_owned(),
        table("patient", "person = \"pid\"\nchildless = \"keep\""),
        table("visit", visits),
        table("doctor", "key = \"did\"\nperson = true"),
    ]
    .concat();
    let spec = Spec::parse(&text).unwrap();
    assert_eq!(spec.tables[0].childless, Childless::Keep);
    assert_eq!(spec.tables[1].orphans, Orphans::Drop);
    assert_eq!((spec.tables[0].max_rows_left_out, spec.tables[1].max_rows_left_out), (None, Some(0.25)));
    assert_eq!(spec.tables[2].person.as_deref(), Some("did"));
    assert_eq!((spec.tables[2].orphans, spec.tables[2].childless), (Orphans::Refuse, Childless::Refuse));

    let text = [
        "k = 5\n".to_owned(),
        table("patient", "key = \"pid\"\norphans = \"drop\"\nmax_rows_left_out = 0.1"),
        table("visit", "parent = { table = \"patient\", foreign_key = \"pid\" }\nchildless = \"keep\""),
        table("doctor", "person = true\nchildless = \"refuse\""),
        table("nurse", "person = false"),
    ]
    .concat();
    assert_eq!(
        problems(&text),
        "line 6: tables.patient.orphans: the table has no parent, so none of its rows is an orphan\n  \
         take orphans out, or name the table's parent\n\
         line 7: tables.patient.max_rows_left_out: the table has no parent, so its rows are persons and not rows that \
         find no partner\n  take max_rows_left_out out; max_suppressed limits how many persons may be left out\n\
         line 12: tables.visit.childless: the table is a child table, so none of its rows is a person without \
         children\n  take childless out; a row of a child table needs no children\n\
         line 16: tables.doctor.person: each row is a person, but the table has no key that names it\n  \
         add for example key = \"doctor_id\"\n\
         line 17: tables.doctor.childless: the table has no child table, so none of its rows is a person without \
         children\n  take childless out; a row of a child table needs no children\n\
         line 21: tables.nurse.person: must be a column's name in quotes, or true, found true or false\n"
    );
}

#[test]
fn audiences_make_their_columns_quasi() {
    let text = "k = 5\n\
                [tables.a]\nfile = \"a.csv\"\ncolumns = { job = \"quasi\", ward = \"plain\", rest = \"quasi\" }\n\
                [audiences.hr]\nquasi = [\"job\", \"age\", \"ward\", \"age\"]\nk = 0\n\
                [audiences.none]\n[audiences.nobody]\nquasi = []\n";
    assert_eq!(
        problems(text),
        "line 4: tables.a.columns.rest: the column is quasi, but no audience knows it\n  \
         add it to the audiences that could know it, or give it another role\n\
         line 6: audiences.hr.quasi: column 'ward' is plain, not quasi\n  \
         give it role \"quasi\", or take it out of the audience\n\
         line 6: audiences.hr.quasi: 'age' is listed twice\n  \
         keep one of the two\n\
         line 7: audiences.hr.k: must be a whole number of at least 1, not 0\n\
         line 8: audiences.none: 'quasi' is missing\n  \
         for example quasi = [\"age\", \"postcode\"]\n\
         line 10: audiences.nobody.quasi: the audience knows no column, so there is nothing to protect from it\n  \
         name the columns it could know, or leave the audience out\n"
    );
    let spec = Spec::parse(
        "k = 5\n[tables.a]\nfile = \"a.csv\"\ncolumns = { ward = \"plain\" }\n[audiences.hr]\nquasi = [\"age\"]",
    )
    .unwrap();
    assert_eq!(spec.tables[0].columns[1].role, Role::Quasi);
}

#[test]
fn unmatched_persons_are_doubted_unless_the_spec_or_a_key_says_otherwise() {
    let text = |register: &str, of_voters: &str| {
        format!(
            "k = 5\n[tables.a]\nfile = \"a.csv\"\nperson = \"id\"\ncolumns = {{ id = \"key\", x = \"quasi\" }}\n\
             [registers.voters]\nfile = \"voters.csv\"\n{of_voters}\n[register]\n{register}\n"
        )
    };
    let spec = |register: &str, of_voters: &str| Spec::parse(&text(register, of_voters)).unwrap();
    assert_eq!(spec("", "").unmatched(), Unmatched::Doubt);
    assert_eq!(spec("unmatched = \"doubt\"", "").unmatched(), Unmatched::Doubt);
    assert_eq!(spec("unmatched = \"count\"", "").unmatched(), Unmatched::Count);
    assert_eq!(spec("", "key = \"no\"").unmatched(), Unmatched::Count);
    assert_eq!(
        problems(&text("unmatched = \"count\"", "key = \"no\"")),
        "line 10: register.unmatched: applies to registers without a key only, because a key tells who is in the register\n  \
         take unmatched out\n"
    );
}

#[test]
fn registers_with_a_key_need_persons() {
    let text = "k = 5\norder = \"input\"\n\
                [tables.a]\nfile = \"a.csv\"\ncolumns = { age = \"quasi\" }\n\
                [registers.voters]\nfile = \"v.csv\"\nkey = \"no\"\ncolumns = { agee = \"AGE\" }\ndate = 12:00:00\nsha256 = \"12\"\n\
                [registers.taxes]\n\
                [register]\nmethod = \"refined\"\n";
    assert_eq!(
        problems(text),
        "line 2: order: \"input\" would show which rows come from the register\n  \
         take order out, or set order = \"sorted\"\n\
         line 6: registers: a register with a key needs a table that names its persons\n  \
         add for example person = \"patient_id\" to the table; or take key out, so that rows are joined by their quasi values\n\
         line 6: registers: some registers have a key and some have none, so nobody can tell who is in both\n  \
         give each of them a key, or none\n\
         line 9: registers.voters.columns.agee: no table gives column 'agee' a role\n  \
         did you mean 'age'?\n\
         line 10: registers.voters.date: must be a date such as 2026-01-01, found a time\n\
         line 11: registers.voters.sha256: must be 64 hexadecimal digits, not 2 characters\n\
         line 12: registers.taxes: 'file' is missing\n  \
         for example file = \"voters.csv\"\n\
         line 14: register.method: must be refine or direct, not 'refined'\n  \
         did you mean 'refine'?\n"
    );
}

#[test]
fn earlier_releases_are_one_folder_or_several() {
    let spec = |previous: &str, registers: &str| {
        format!(
            "k = 5\nprevious = {previous}\n[tables.a]\nfile = \"a.csv\"\ncolumns = {{ x = \"quasi\" }}\n{registers}"
        )
    };
    let voters = "[registers.voters]\nfile = \"voters.csv\"\n";
    let read = |previous: &str| Spec::parse(&spec(previous, voters)).unwrap().previous;
    assert_eq!(read("\"old\""), [PathBuf::from("old")]);
    assert_eq!(read("[\"older\", \"old\"]"), [PathBuf::from("older"), PathBuf::from("old")]);
    assert_eq!(
        problems(&spec("\"old\"", "")),
        "line 2: previous: applies to registers, but there are none\n  \
         add for example [registers.voters] with file and key\n"
    );
    assert_eq!(problems(&spec("5", voters)), "line 2: previous: must be a list of texts, found a whole number\n");
}

/// A spec of two audiences, with `more` after the columns and `tail` at the end.
fn for_two(more: &str, tail: &str) -> String {
    format!(
        "k = 5\n[tables.a]\nfile = \"a.csv\"\n[tables.a.columns]\nage = \"quasi\"\nill = \"sensitive\"\n{more}\
         [audiences.hr]\nquasi = [\"age\", \"job\"]\n[audiences.insurer]\nquasi = [\"age\", \"car\"]\n{tail}"
    )
}

#[test]
fn coalitions_ask_whatever_audiences_ask() {
    let spec = Spec::parse(&for_two(
        "wish = \"person_k\"\ncar = { role = \"quasi\", sensitive_to = [\"hr\"], l = 2, t = 0.5 }\n",
        "[collusion]\nk = 2\nperson_k = true\nsensitive = { ill = { l = 3, beta = 1 } }\n\
         [collusion.both]\naudiences = [\"hr\", \"insurer\"]\nsensitive.ill = { t = 0.3, distance = \"ordered\" }\n",
    ))
    .unwrap();
    let audiences = spec.audiences_of(&spec.tables[0]).unwrap();
    let column = |name: &str| name.to_owned();
    let hidden = [
        Requirement::DistinctL { column: column("car"), l: 2 },
        Requirement::TCloseness { column: column("car"), t: 0.5, distance: Distance::Equal },
    ];
    let own_k = Requirement::PersonK { column: column("wish") };
    assert_eq!(audiences.each[0].requirements, [&[Requirement::K(5), own_k.clone()][..], &hidden].concat());
    assert_eq!(audiences.each[1].requirements, [Requirement::K(5), own_k.clone()]);
    let of_all = [
        Requirement::K(2),
        own_k,
        Requirement::DistinctL { column: column("ill"), l: 3 },
        Requirement::Beta { column: column("ill"), beta: 1.0 },
    ];
    let of_both = [Requirement::TCloseness { column: column("ill"), t: 0.3, distance: Distance::Ordered }];
    let names: Vec<&str> = audiences.coalitions.iter().map(Coalition::word).collect();
    assert_eq!(names, ["all", "both"]);
    assert_eq!(
        (audiences.coalitions[0].requirements.as_slice(), audiences.coalitions[1].requirements.as_slice()),
        (&of_all[..], &of_both[..])
    );
    assert_eq!(audiences.coalitions[0].members, audiences.coalitions[1].members);
}

#[test]
fn settings_of_what_audiences_must_not_learn_are_checked() {
    let more = "car = { role = \"quasi\", sensitive_to = [\"insurer\", \"hrr\"], alpha = 0.5 }\n";
    let tail = "[collusion.all]\naudiences = [\"hr\"]\n[collusion.x]\naudiences = [\"hr\", \"insurer\"]\n\
                person_k = true\nsensitive = { car = { l = 2 }, ill = {}, il = { l = 2 } }\n";
    assert_eq!(
        problems(&for_two(more, tail)),
        "line 7: tables.a.columns.car.alpha: alpha is not defined for a quasi column, whose cells may be generalized\n  \
         ask for l, or for t with distance \"equal\"\n\
         line 7: tables.a.columns.car.sensitive_to: there is no requirement\n  for example l = 2\n\
         line 7: tables.a.columns.car.sensitive_to: there is no audience 'hrr'\n  did you mean 'hr'?\n\
         line 7: tables.a.columns.car.sensitive_to: audience 'insurer' knows column 'car', so the column can't be kept from the audience\n  \
         take the audience out, or the column out of what the audience knows\n\
         line 12: collusion.all: 'all' is the name of all audiences together\n  \
         say what all must not learn in [collusion] itself, or choose another name\n\
         line 12: collusion.all: there is no requirement\n  for example k = 2\n\
         line 13: collusion.all.audiences: a coalition has at least two audiences\n  \
         name two audiences or more, for example audiences = [\"insurer\", \"hr\"]\n\
         line 16: collusion.x.person_k: no column is person_k, so nobody has a k of their own\n  take person_k out\n\
         line 17: collusion.x.sensitive.car: audience 'insurer' knows column 'car', so the column can't be kept from the audience\n  \
         take the audience out, or the column out of what the audience knows\n\
         line 17: collusion.x.sensitive.ill: there is no requirement\n  for example l = 2\n\
         line 17: collusion.x.sensitive.il: no table gives column 'il' a role\n  did you mean 'ill'?\n"
    );
}

#[test]
fn rows_are_not_left_out_to_make_classes_of_audiences_smaller() {
    let text = for_two("", "").replace("k = 5\n", "k = 5\nmax_suppressed = 0.1\nleftovers = \"suppress\"\n");
    assert_eq!(
        problems(&text),
        "line 3: leftovers: \"suppress\" is not available with audiences\n  \
         take leftovers out; with max_suppressed alone, only persons who fit into no class are left out\n"
    );
}

#[test]
fn settings_without_what_they_apply_to_are_refused() {
    assert_eq!(
        problems(
            "k = 5\ndelta_presence = [0.5, 0.1]\n[tables.a]\nfile = \"a.csv\"\ncolumns = { x = \"plain\" }\n\
             [register]\n[audiences]\n[collusion]\n"
        ),
        "line 2: delta_presence: applies to registers, but there are none\n  \
         add for example [registers.voters] with file and key\n\
         line 2: delta_presence: must be [least, most] with 0 <= least <= most <= 1, not 0.1\n\
         line 6: register: applies to registers, but there are none\n  \
         add for example [registers.voters] with file and key\n\
         line 8: collusion: applies to audiences, but there are none\n  \
         add for example [audiences.insurer] with quasi = [\"age\"]\n\
         no column is quasi, so nothing would be protected\n  \
         give role \"quasi\" to every column that others could know about a person, such as age or postcode\n"
    );
}

#[test]
fn only_persons_have_a_k_of_their_own() {
    assert_eq!(
        problems(
            "k = 5\n[tables.a]\nfile = \"a.csv\"\nperson = \"id\"\ncolumns = { q = \"quasi\" }\n[tables.b]\n\
             file = \"b.csv\"\nparent = { table = \"a\", foreign_key = \"id\" }\ncolumns = { w = \"person_k\" }\n"
        ),
        "line 9: tables.b.columns.w: person_k belongs in the table of persons, not in a child table\n  \
         move the column to the table of persons, or give it another role\n"
    );
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

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC*") {
        let _ = Spec::parse(&text);
    }

    #[test]
    fn no_shuffled_spec_makes_the_parser_panic(
        lines in prop::collection::vec(prop::sample::select(CLINIC.lines().collect::<Vec<_>>()), 0..30),
        cut in 0_usize..400,
    ) {
        let text = lines.join("\n");
        let _ = Spec::parse(&text[..text.floor_char_boundary(cut.min(text.len()))]);
        let _ = Spec::parse(&text);
    }

    #[test]
    fn a_valid_spec_is_read_as_it_was_meant(spec in any_spec()) {
        prop_assert_eq!(Spec::parse(&render(&spec)), Ok(spec));
    }
}

fn any_spec() -> impl Strategy<Value = Spec> {
    let release = (1_u32.., 0.0_f64..=1.0, any::<bool>(), any::<bool>(), 0_u64..1 << 62);
    let mondrian = (prop::sample::select(keys::CUTS.to_vec()), prop::sample::select(keys::CHOOSE.to_vec()));
    let objective = prop::sample::select(keys::OBJECTIVES.to_vec());
    let columns = prop::collection::btree_map("[a-zà-ü \"\\\\.]{1,6}", any_column(), 0..6);
    (release, mondrian, objective, columns, any_csv()).prop_map(|(release, mondrian, objective, columns, csv)| {
        let (k, max_suppressed, suppress, keep, seed) = release;
        let quasi = ColumnSpec {
            name: "q".to_owned(),
            role: Role::Quasi,
            references: None,
            value_type: None,
            hierarchy: None,
            requirements: Vec::new(),
            sensitive_to: Vec::new(),
        };
        let columns = columns.into_iter().filter(|(name, _)| name != "q");
        let columns = columns.map(|(name, column)| ColumnSpec {
            requirements: column.requirements.into_iter().map(|requirement| rename(requirement, &name)).collect(),
            sensitive_to: column.sensitive_to,
            name,
            ..column
        });
        let table = TableSpec {
            name: "t".to_owned(),
            file: PathBuf::from("t.csv"),
            csv,
            person: None,
            key: None,
            parent: None,
            orphans: Orphans::Refuse,
            childless: Childless::Refuse,
            max_rows_left_out: None,
            columns: columns.chain([quasi]).collect(),
        };
        Spec {
            max_suppressed,
            leftovers: if suppress && max_suppressed > 0.0 { Leftovers::Suppress } else { Leftovers::Merge },
            keys: if keep { Keys::Keep } else { Keys::Surrogate },
            seed,
            mondrian: MondrianSpec { cuts: mondrian.0.1, choose: mondrian.1.1 },
            full_domain: FullDomainSpec { objective: objective.1 },
            tables: vec![table],
            ..Spec::new(k)
        }
    })
}

fn any_csv() -> impl Strategy<Value = CsvSpec> {
    let separator = prop::option::of(prop::sample::select(vec![',', ';', '\t', '|']));
    let null = prop::option::of(prop::collection::vec("[A-Z\"\\\\é]{0,3}", 0..3));
    (separator, null, prop::option::of(any::<bool>())).prop_map(|(separator, null, header)| CsvSpec {
        separator,
        null,
        header,
        ..CsvSpec::default()
    })
}

fn any_column() -> impl Strategy<Value = ColumnSpec> {
    let column = |role, value_type, hierarchy, requirements| ColumnSpec {
        sensitive_to: Vec::new(),
        name: String::new(),
        role,
        references: None,
        value_type,
        hierarchy,
        requirements,
    };
    let quasi = prop_oneof![
        Just((None, None)),
        Just((
            Some(ValueType::Date),
            Some(HierarchySource::Rule(Rule::Dates(vec![DateLevel::Month, DateLevel::Year])))
        )),
        Just((None, Some(HierarchySource::Rule(Rule::Mask(MaskSide::Left))))),
        Just((Some(ValueType::Text), Some(HierarchySource::Rule(Rule::Flat)))),
        Just((None, Some(HierarchySource::Paths(PathBuf::from("h/é.csv"))))),
        Just((None, Some(HierarchySource::Edges(PathBuf::from("e.csv"))))),
        (1_u32..100, 2_u32..10).prop_map(|(step, factor)| {
            let steps = vec![f64::from(step), f64::from(step * factor)];
            (Some(ValueType::Integer), Some(HierarchySource::Rule(Rule::Steps(steps))))
        }),
    ];
    let requirements = (prop::option::of(1_u32..), prop::option::of(0.0_f64..=1.0), prop::option::of(0.1_f64..9.0));
    prop_oneof![
        prop::sample::select(vec![Role::Identifier, Role::Plain, Role::Drop]).prop_map(move |role| column(
            role,
            None,
            None,
            Vec::new()
        )),
        quasi.prop_map(move |(value_type, hierarchy)| column(Role::Quasi, value_type, hierarchy, Vec::new())),
        requirements.prop_map(move |(l, t, beta)| {
            let name = String::new;
            let l = l.map(|l| Requirement::DistinctL { column: name(), l });
            let distance = Distance::Ordered;
            let t = t.map(|t| Requirement::TCloseness { column: name(), t, distance });
            let beta = beta.map(|beta| Requirement::EnhancedBeta { column: name(), beta });
            column(Role::Sensitive, None, None, [l, t, beta].into_iter().flatten().collect())
        }),
    ]
}

fn rename(requirement: Requirement, name: &str) -> Requirement {
    let column = name.to_owned();
    match requirement {
        Requirement::DistinctL { l, .. } => Requirement::DistinctL { column, l },
        Requirement::TCloseness { t, distance, .. } => Requirement::TCloseness { column, t, distance },
        Requirement::EnhancedBeta { beta, .. } => Requirement::EnhancedBeta { column, beta },
        other => other,
    }
}

/// The TOML of a spec with one table, as far as [`any_spec`] makes one.
fn render(spec: &Spec) -> String {
    let mut top = toml::Table::new();
    let mut set = |key: &str, value: toml::Value| top.insert(key.to_owned(), value);
    set("k", i64::from(spec.k).into());
    set("max_suppressed", spec.max_suppressed.into());
    set("leftovers", word(keys::LEFTOVERS, spec.leftovers));
    set("keys", word(keys::KEYS, spec.keys));
    set("seed", (spec.seed as i64).into());
    let mondrian =
        [("cuts", word(keys::CUTS, spec.mondrian.cuts)), ("choose", word(keys::CHOOSE, spec.mondrian.choose))];
    set("mondrian", table(mondrian));
    set("full_domain", table([("objective", word(keys::OBJECTIVES, spec.full_domain.objective))]));
    let given = &spec.tables[0];
    let mut rest: BTreeMap<&str, toml::Value> = BTreeMap::from([("file", "t.csv".into())]);
    if let Some(separator) = given.csv.separator {
        rest.insert("separator", separator.to_string().into());
    }
    if let Some(null) = &given.csv.null {
        rest.insert("null", null.clone().into());
    }
    if let Some(header) = given.csv.header {
        rest.insert("header", header.into());
    }
    // Written by hand, because a TOML table sorts its keys and the order of columns counts.
    let mut text = toml::to_string(&top).unwrap();
    text += &format!("\n[tables.t]\n{}\n[tables.t.columns]\n", toml::to_string(&rest).unwrap());
    for column in &given.columns {
        let name = toml::Value::from(column.name.as_str());
        writeln!(text, "{name} = {}", render_column(column)).unwrap();
    }
    text
}

fn render_column(column: &ColumnSpec) -> toml::Value {
    let mut settings = vec![("role", column.role.word().into())];
    if let Some(value_type) = column.value_type {
        settings.push(("type", value_type.word().into()));
    }
    if let Some(hierarchy) = &column.hierarchy {
        let path = |path: &PathBuf| toml::Value::from(path.to_str().unwrap());
        let hierarchy = match hierarchy {
            HierarchySource::Paths(file) => path(file),
            HierarchySource::Edges(file) => table([("edges", path(file))]),
            HierarchySource::Rule(Rule::Flat) => "flat".into(),
            HierarchySource::Rule(Rule::Steps(steps)) => table([("steps", steps.clone().into())]),
            HierarchySource::Rule(Rule::Mask(side)) => table([("mask", word(keys::MASKS, *side))]),
            HierarchySource::Rule(Rule::Dates(levels)) => {
                let levels: Vec<toml::Value> = levels.iter().map(|&level| word(keys::DATE_LEVELS, level)).collect();
                table([("dates", levels.into())])
            }
        };
        settings.push(("hierarchy", hierarchy));
    }
    for requirement in &column.requirements {
        match requirement {
            Requirement::DistinctL { l, .. } => settings.push(("l", i64::from(*l).into())),
            Requirement::TCloseness { t, distance, .. } => {
                settings.push(("t", (*t).into()));
                settings.push(("distance", word(keys::DISTANCES, *distance)));
            }
            Requirement::EnhancedBeta { beta, .. } => settings.push(("enhanced_beta", (*beta).into())),
            other => panic!("not generated: {other:?}"),
        }
    }
    table(settings)
}

fn table<'a>(settings: impl IntoIterator<Item = (&'a str, toml::Value)>) -> toml::Value {
    toml::Value::Table(settings.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

fn word<T: PartialEq + Copy>(words: &[(&'static str, T)], value: T) -> toml::Value {
    words.iter().find(|(_, known)| *known == value).expect("every setting has a word").0.into()
}
