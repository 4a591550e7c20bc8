//! Random tables, policies, changes and queries: an answer without a plan is the same, row for row, as with a plan.
//!
//! A query whose table has an alias is always planned. Both ways choose classes by their labels, so a third query reads all
//! classes, below a LIMIT. It would show a class that was not chosen although it shows some readers another label.

use std::fmt::Write;
use std::sync::Arc;

use chrono::{TimeZone, Utc};
use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::compute::concat_batches;
use futures::TryStreamExt;
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::TestCaseError;

use crate::parser::{Parsed, Statement, parse};
use crate::policy::ComplianceLog;
use crate::{Engine, Outcome, Role, Session, SqlError};

const AGES: [&str; 8] = ["21", "24", "36", "38", "52", "57", "NULL", "NULL"];
const ZIPS: [&str; 6] = ["'0851'", "'0852'", "'0911'", "'0912'", "'0911'", "NULL"];
const CODES: [&str; 7] = ["'a1x'", "'a1y'", "'a2'", "'b'", "'b11'", "''", "NULL"];
const BIRTHS: [&str; 5] = ["'1984-02-01'", "'1984-02-29'", "'1984-11-05'", "'1990-01-31'", "NULL"];
const DISEASES: [&str; 4] = ["'flu'", "'cold'", "'gout'", "NULL"];

/// A row without its name.
fn patient() -> impl Strategy<Value = String> {
    let cell = |cells: &'static [&'static str]| select(cells);
    (cell(&AGES), cell(&ZIPS), cell(&CODES), cell(&BIRTHS), cell(&DISEASES)).prop_map(
        |(age, zip, code, born, disease)| {
            let born = if born == "NULL" { born.to_owned() } else { format!("DATE {born}") };
            format!("{age}, {zip}, {code}, {born}, {disease}, 'north'")
        },
    )
}

/// What a person allows for a purpose, without name and purpose.
fn choice() -> impl Strategy<Value = String> {
    let shown = || prop::bool::weighted(0.85);
    let until = select(&["2025-12-31", "2026-01-02", "2030-01-01"][..]);
    let k = prop_oneof![1 => Just(0u32), 1 => Just(1), 5 => Just(2), 2 => Just(3)];
    (k, 0..2u8, [shown(), shown(), shown()], until).prop_map(|(k, level, [age, zip, disease], until)| {
        format!("{k}, {level}, {age}, {zip}, {disease}, DATE '{until}'")
    })
}

#[derive(Clone, Debug)]
struct World {
    patients: Vec<String>,
    /// Per person the choice for care and the choice for the study.
    choices: Option<Vec<[Option<String>; 2]>>,
    /// Whether diseases are raised to masks.
    masks: bool,
    options: String,
}

impl World {
    fn statements(&self) -> String {
        let mut sql = "
            CREATE TABLE patient (name TEXT PRIMARY KEY, age INT, zip TEXT, code TEXT, born DATE, disease TEXT, ward TEXT);
            CREATE TABLE choices (name TEXT, purpose TEXT, k INT, level INT, age_op BOOLEAN, zip_op BOOLEAN,
              disease_op BOOLEAN, code_until DATE);
            CREATE DGH age FROM STEPS (10, 50); CREATE DGH code FROM MASK RIGHT; CREATE DGH born FROM DATES (month, year);
            CREATE DGH zip; INSERT INTO DGH zip VALUES ('0851', '085*'), ('0852', '085*'), ('0911', '091*'),
              ('0912', '091*'), ('085*', '0***'), ('091*', '0***');
            CREATE DGH disease; INSERT INTO DGH disease VALUES ('flu', 'infection'), ('cold', 'infection'),
              ('infection', 'any'), ('gout', 'any');"
            .to_owned();
        for (number, patient) in self.patients.iter().enumerate() {
            write!(sql, "INSERT INTO patient VALUES ('p{number}', {patient});").unwrap();
        }
        for (number, of_person) in self.choices.iter().flatten().enumerate() {
            for (purpose, choice) in ["care", "study"].iter().zip(of_person) {
                let Some(choice) = choice else { continue };
                write!(sql, "INSERT INTO choices VALUES ('p{number}', '{purpose}', {choice});").unwrap();
            }
        }
        let disease = if self.masks { "code" } else { "disease" };
        let policies = self.choices.as_ref().map_or("", |_| "name REFERENCES choices (k, level)");
        write!(
            sql,
            "CREATE MATERIALIZED ANONYMIZATION_VIEW v ON SELECT name, age, zip, code, born, disease, ward FROM patient
             WITH ANONYMIZATION_ID name
             ANONYMIZATION_QUASI_ID (age DGH_NAME age, zip DGH_NAME zip, code DGH_NAME code, born DGH_NAME born)
             ANONYMIZATION_SENSITIVE_ATTR (disease DGH_NAME {disease}) ANONYMIZATION_OTHER (ward)
             {policies} {}",
            self.options
        )
        .unwrap();
        sql
    }

    fn purposes(&self) -> &'static [&'static str] {
        // Both ways refuse a purpose that no policy names.
        if self.choices.is_some() { &["PURPOSE care", "PURPOSE study", "PURPOSE audit", ""] } else { &[""] }
    }
}

fn world() -> impl Strategy<Value = World> {
    let of_person = [weighted(0.9, choice()), weighted(0.6, choice())];
    let changes = select(&["", "", "DEPARTURES WITHDRAW"][..]);
    let options = (select(&["CLASS", "ROW"][..]), 2..4u32, weighted(0.2, Just("L_DIVERSITY 2")), changes);
    (vec(patient(), 6..20), weighted(0.7, vec(of_person, 24)), prop::bool::weighted(0.3), options).prop_map(
        |(patients, choices, masks, (disclosure, k, l, changes))| {
            let options = format!("DISCLOSURE {disclosure} K {k} {} {changes}", l.unwrap_or_default());
            World { patients, choices, masks, options }
        },
    )
}

/// A statement that changes the tables before a query.
fn change() -> impl Strategy<Value = String> {
    let name = || 0..24u32;
    prop_oneof![
        3 => (vec(patient(), 1..5), 0..1000u32).prop_map(|(patients, first)| {
            let rows = patients.iter().enumerate().map(|(number, row)| format!("('n{first}_{number}', {row})"));
            format!("INSERT INTO patient VALUES {}", rows.collect::<Vec<_>>().join(", "))
        }),
        2 => name().prop_map(|number| format!("DELETE FROM patient WHERE name = 'p{number}'")),
        1 => (name(), select(&AGES[..])).prop_map(|(number, age)| {
            format!("UPDATE patient SET age = {age} WHERE name = 'p{number}'")
        }),
        1 => name().prop_map(|number| format!("UPDATE choices SET zip_op = false WHERE name = 'p{number}'")),
        // A purpose that no policy named when the view was made.
        1 => (name(), choice()).prop_map(|(number, choice)| {
            format!("INSERT INTO choices VALUES ('p{number}', 'audit', {choice})")
        }),
        1 => Just("BEGIN".to_owned()),
        1 => Just("COMMIT".to_owned()),
    ]
}

/// A part of a condition.
fn comparison() -> impl Strategy<Value = String> {
    let comparison = || select(&["=", "=", "=", "=", "<>", "<", "<=", ">", ">="][..]);
    let columns: [(&'static str, &'static [&'static str]); 4] =
        [("age", &AGES), ("zip", &ZIPS), ("code", &CODES), ("born", &BIRTHS)];
    let of_column = move |(column, cells): (&'static str, &'static [&'static str])| {
        let cell = || select(cells);
        prop_oneof![
            6 => (comparison(), cell()).prop_map(move |(comparison, cell)| format!("{column} {comparison} {cell}")),
            1 => (comparison(), cell()).prop_map(move |(comparison, cell)| format!("{cell} {comparison} {column}")),
            1 => vec(cell(), 1..4).prop_map(move |cells| format!("{column} IN ({})", cells.join(", "))),
            1 => vec(cell(), 1..4).prop_map(move |cells| format!("{column} NOT IN ({})", cells.join(", "))),
            1 => (cell(), cell()).prop_map(move |(low, high)| format!("{column} BETWEEN {low} AND {high}")),
            1 => Just(format!("{column} IS NULL")),
            1 => Just(format!("{column} IS NOT NULL")),
        ]
    };
    prop_oneof![
        20 => select(columns.to_vec()).prop_flat_map(of_column),
        1 => select(&["disease = 'flu'", "name = 'p1'", "ward = 'north'", "zip LIKE '08%'", "age = 21 OR zip = '0851'",
            "NOT (age = 21 OR zip = '0851')", "age = 20 + 1", "age = '21'", "age = 'old'", "1 = 1", "nowhere = 1",
            "v.age = 21", "zip = (SELECT min(zip) FROM v)"][..]).prop_map(str::to_owned),
    ]
}

fn query() -> impl Strategy<Value = (String, &'static str)> {
    let columns = select(&["*", "*", "zip", "disease, age", "name, ward, zip, born", "zip, zip", "nothing"][..]);
    (vec(comparison(), 1..4), columns).prop_map(|(comparisons, columns)| (comparisons.join(" AND "), columns))
}

async fn run(session: &mut Session, sql: &str) -> Result<Option<RecordBatch>, SqlError> {
    let mut answer = None;
    for parsed in parse(sql)? {
        answer = rows(session.run(parsed).await?).await?;
    }
    Ok(answer)
}

async fn rows(outcome: Outcome) -> Result<Option<RecordBatch>, SqlError> {
    let Outcome::Rows(stream) = outcome else { return Ok(None) };
    let schema = stream.schema();
    let batches: Vec<RecordBatch> = stream.try_collect().await?;
    Ok(Some(concat_batches(&schema, &batches).unwrap()))
}

/// The answer without a plan; `None` if the query must be planned.
async fn point(session: &Session, sql: &str) -> Option<RecordBatch> {
    let Parsed { statement: Statement::Sql(statement), pair, .. } = parse(sql).unwrap().pop().unwrap() else {
        return None;
    };
    let mut views = Vec::new();
    let outcome = super::point(session, &statement, &pair, &mut views).await?;
    assert_eq!(views.len(), 1);
    rows(outcome).await.unwrap()
}

async fn open(folder: &std::path::Path) -> Engine {
    let clock = Arc::new(|| Utc.with_ymd_and_hms(2026, 1, 2, 3, 4, 5).unwrap());
    Engine::open(folder, clock, ComplianceLog::new()).await.unwrap()
}

/// How many queries were answered without a plan, and how many of them found rows; `None` if the view can't be made.
async fn compare(
    world: World,
    steps: Vec<(Vec<String>, (String, &'static str))>,
) -> Result<Option<(usize, usize)>, TestCaseError> {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let mut owner = engine.session(Role::Owner);
    match run(&mut owner, &world.statements()).await {
        Ok(_) => {}
        Err(SqlError::View(_)) => return Ok(None),
        Err(error) => return Err(TestCaseError::fail(error.to_string())),
    }
    let (mut n_past, mut n_found) = (0, 0);
    for (changes, (condition, columns)) in steps {
        for change in changes {
            // Some statements fail: a name that is taken, a COMMIT without a BEGIN.
            let _ = run(&mut owner, &change).await;
        }
        for session in [&mut owner, &mut engine.session(Role::Analyst)] {
            for purpose in world.purposes() {
                let query = format!("SELECT {columns} FROM v WHERE {condition} {purpose}");
                let past = point(session, &query).await;
                let planned = format!("SELECT {columns} FROM v AS v WHERE {condition} {purpose}");
                let planned = match run(session, &planned).await {
                    Ok(planned) => planned.unwrap(),
                    // Some queries have no meaning. But a query that can be planned must not fail while it runs.
                    Err(error) if past.is_none() && !error.to_string().contains("failed while it ran") => continue,
                    Err(error) => return Err(TestCaseError::fail(format!("{query}: the planner says {error}"))),
                };
                let whole =
                    format!("SELECT {columns} FROM (SELECT * FROM v LIMIT 1000) AS v WHERE {condition} {purpose}");
                let whole = run(session, &whole).await.map_err(|error| TestCaseError::fail(error.to_string()))?;
                prop_assert_eq!(&planned, &whole.unwrap(), "{}", query);
                let Some(past) = past else { continue };
                n_past += 1;
                n_found += usize::from(past.num_rows() > 0);
                prop_assert_eq!(past.schema(), planned.schema(), "{}", query);
                prop_assert_eq!(past, planned, "{}", query);
            }
        }
    }
    Ok(Some((n_past, n_found)))
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn steps() -> impl Strategy<Value = Vec<(Vec<String>, (String, &'static str))>> {
    vec((vec(change(), 0..3), query()), 4..12)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn what_goes_past_the_planner_is_what_the_planner_gives(world in world(), steps in steps()) {
        block_on(compare(world, steps))?;
    }
}

#[test]
fn most_random_questions_go_past_the_planner() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut n_past, mut n_found) = (0, 0);
    for _ in 0..6 {
        let (world, steps) = (world(), steps()).new_tree(&mut runner).unwrap().current();
        let counted = block_on(compare(world, steps)).unwrap();
        n_past += counted.unwrap_or_default().0;
        n_found += counted.unwrap_or_default().1;
    }
    assert!(n_past >= 40 && n_found >= 20, "{n_past}, {n_found}: the property would hold of nothing");
}

/// Two patients and a view of them.
const TWO: &str = "
    CREATE TABLE patient (name TEXT PRIMARY KEY, age INT, disease TEXT); CREATE DGH age FROM STEPS (10, 50);
    INSERT INTO patient VALUES ('a', 21, 'flu'), ('b', 22, 'gout');
    CREATE MATERIALIZED ANONYMIZATION_VIEW v ON SELECT name, age, disease FROM patient WITH ANONYMIZATION_ID name
      ANONYMIZATION_QUASI_ID (age DGH_NAME age) ANONYMIZATION_SENSITIVE_ATTR (disease) K 2;";

#[test]
fn other_queries_are_planned() {
    let folder = tempfile::tempdir().unwrap();
    let computed = "
        CREATE ANONYMIZATION_VIEW logical ON SELECT name, age, disease FROM patient WITH ANONYMIZATION_ID name
          ANONYMIZATION_QUASI_ID (age DGH_NAME age) ANONYMIZATION_SENSITIVE_ATTR (disease) K 2";
    block_on(async {
        let engine = open(folder.path()).await;
        let mut owner = engine.session(Role::Owner);
        run(&mut owner, &format!("{TWO} {computed}")).await.unwrap();
        assert_eq!(point(&owner, "SELECT * FROM v WHERE age = 21").await.unwrap().num_rows(), 2);
        assert_eq!(point(&owner, "SELECT DISEASE FROM V WHERE (21 = Age)").await.unwrap().num_rows(), 2);
        let planned = [
            "SELECT * FROM v",
            "SELECT * FROM v WHERE age = 21 LIMIT 1",
            "SELECT * FROM v WHERE age = 21 ORDER BY disease",
            "SELECT DISTINCT disease FROM v WHERE age = 21",
            "SELECT count(*) FROM v WHERE age = 21",
            "SELECT disease FROM v WHERE age = 21 GROUP BY disease",
            "SELECT disease AS d FROM v WHERE age = 21",
            "SELECT * FROM v AS w WHERE age = 21",
            "SELECT * FROM public.v WHERE age = 21",
            "SELECT * FROM v, v AS w WHERE v.age = 21",
            "SELECT * FROM v WHERE age = 21 UNION ALL SELECT * FROM v",
            "SELECT * INTO w FROM v WHERE age = 21",
            "WITH v AS (SELECT * FROM patient) SELECT * FROM v WHERE age = 21",
            "SELECT * FROM v WHERE age = 21 AND disease = 'flu'",
            "SELECT * FROM patient WHERE age = 21",
            "SELECT * FROM logical WHERE age = 21",
            "SELECT * FROM \"V\" WHERE age = 21",
            "EXPLAIN SELECT * FROM v WHERE age = 21",
        ];
        for query in planned {
            assert!(point(&owner, query).await.is_none(), "{query}");
        }
    });
}

#[test]
fn persons_who_came_later_are_found_with_earlier_ones() {
    let folder = tempfile::tempdir().unwrap();
    let n_found = async |engine: &Engine| {
        point(&engine.session(Role::Analyst), "SELECT * FROM v WHERE age = 21").await.unwrap().num_rows()
    };
    block_on(async {
        let engine = open(folder.path()).await;
        let mut owner = engine.session(Role::Owner);
        run(&mut owner, TWO).await.unwrap();
        assert_eq!(n_found(&engine).await, 2);
        run(&mut owner, "INSERT INTO patient VALUES ('c', 23, 'flu'), ('d', 24, 'gout')").await.unwrap();
        assert_eq!(n_found(&engine).await, 4);
        drop((owner, engine));
        let engine = open(folder.path()).await;
        assert_eq!(n_found(&engine).await, 4);
        run(&mut engine.session(Role::Owner), "INSERT INTO patient VALUES ('e', 25, 'flu'), ('f', 26, 'cold')")
            .await
            .unwrap();
        assert_eq!(n_found(&engine).await, 6);
    });
}

#[test]
fn persons_who_left_are_not_found_any_more() {
    for (changes, n_left) in [("DEPARTURES BATCH", 4), ("DEPARTURES WITHDRAW", 0)] {
        let folder = tempfile::tempdir().unwrap();
        let tables = format!(
            "CREATE TABLE patient (name TEXT PRIMARY KEY, age INT, disease TEXT); CREATE DGH age FROM STEPS (10, 50);
             INSERT INTO patient VALUES ('a', 21, 'flu'), ('b', 21, 'gout'), ('c', 21, 'cold'), ('d', 21, 'ague');
             CREATE MATERIALIZED ANONYMIZATION_VIEW v ON SELECT name, age, disease FROM patient WITH ANONYMIZATION_ID name
               ANONYMIZATION_QUASI_ID (age DGH_NAME age) ANONYMIZATION_SENSITIVE_ATTR (disease) K 2 {changes};"
        );
        block_on(async {
            let engine = open(folder.path()).await;
            let mut owner = engine.session(Role::Owner);
            run(&mut owner, &tables).await.unwrap();
            let query = "SELECT disease FROM v WHERE age = 21";
            assert_eq!(point(&owner, query).await.unwrap().num_rows(), 4);
            run(&mut owner, "DELETE FROM patient WHERE name = 'd'").await.unwrap();
            let found = point(&owner, query).await.unwrap();
            assert_eq!(found.num_rows(), n_left, "{changes}");
            // Below a LIMIT everything is read from the store.
            let whole = "SELECT disease FROM (SELECT * FROM v LIMIT 1000) AS v WHERE age = 21";
            assert_eq!(found, run(&mut owner, whole).await.unwrap().unwrap(), "{changes}");
        });
    }
}

#[test]
fn values_that_are_longer_than_all_masks_are_found_and_shown() {
    let folder = tempfile::tempdir().unwrap();
    let tables = "
        CREATE TABLE patient (name TEXT PRIMARY KEY, code TEXT, disease TEXT); CREATE DGH code FROM MASK RIGHT;
        INSERT INTO patient VALUES ('a', 'b1', 'flu'), ('b', 'b1', 'gout');
        CREATE MATERIALIZED ANONYMIZATION_VIEW v ON SELECT name, code, disease FROM patient WITH ANONYMIZATION_ID name
          ANONYMIZATION_QUASI_ID (code DGH_NAME code) ANONYMIZATION_SENSITIVE_ATTR (disease) K 2;
        INSERT INTO patient VALUES ('c', 'a1x', 'flu'), ('d', 'a2345', 'cold');
        INSERT INTO patient VALUES ('e', 'c777', 'flu'), ('f', 'd', 'cold')";
    let shown = async |engine: &Engine, condition: &str| {
        let query = format!("SELECT code FROM v AS v WHERE {condition}");
        let planned = run(&mut engine.session(Role::Analyst), &query).await.unwrap().unwrap();
        let query = format!("SELECT code FROM v WHERE {condition}");
        assert_eq!(point(&engine.session(Role::Analyst), &query).await.unwrap(), planned);
        let mut codes: Vec<_> =
            planned.column(0).as_string::<i32>().iter().map(|code| code.unwrap().to_owned()).collect();
        codes.sort();
        codes
    };
    block_on(async {
        let engine = open(folder.path()).await;
        run(&mut engine.session(Role::Owner), tables).await.unwrap();
        let asked = [
            ("code = 'a1x'", ["**", "**", "a*", "a*"].as_slice()),
            ("code = 'a2345'", &["**", "**", "a*", "a*"]),
            ("code = 'b1'", &["**", "**", "b1", "b1"]),
            ("code = 'b11'", &["**", "**"]),
            ("code < 'b'", &["**", "**", "a*", "a*"]),
            ("code > 'b' AND code <> 'b1'", &["**", "**"]),
        ];
        for (condition, expected) in asked {
            assert_eq!(shown(&engine, condition).await, expected, "{condition}");
        }
        drop(engine);
        let engine = open(folder.path()).await;
        for (condition, expected) in asked {
            assert_eq!(shown(&engine, condition).await, expected, "{condition}");
        }
    });
}

#[test]
fn for_a_new_purpose_no_class_is_overlooked() {
    let folder = tempfile::tempdir().unwrap();
    let tables = "
        CREATE TABLE patient (name TEXT PRIMARY KEY, age INT, disease TEXT); CREATE DGH age FROM STEPS (10, 50);
        CREATE TABLE choices (name TEXT, purpose TEXT, k INT, level INT, age_op BOOLEAN);
        INSERT INTO patient VALUES ('a', 21, 'flu'), ('b', 22, 'gout'), ('c', 55, 'flu'), ('d', 56, 'cold');
        INSERT INTO choices VALUES ('a', 'care', 2, 0, true), ('b', 'care', 2, 0, true), ('c', 'care', 2, 0, true),
          ('d', 'care', 2, 0, true);
        CREATE MATERIALIZED ANONYMIZATION_VIEW v ON SELECT name, age, disease FROM patient WITH ANONYMIZATION_ID name
          ANONYMIZATION_QUASI_ID (age DGH_NAME age) ANONYMIZATION_SENSITIVE_ATTR (disease)
          name REFERENCES choices (k, level) K 2;
        INSERT INTO choices VALUES ('d', 'research', 2, 0, true)";
    block_on(async {
        let engine = open(folder.path()).await;
        run(&mut engine.session(Role::Owner), tables).await.unwrap();
        let mut ann = engine.session(Role::Analyst);
        for (purpose, n_rows) in [("care", 2), ("research", 4)] {
            let narrow = format!("SELECT * FROM v WHERE age = 55 PURPOSE {purpose}");
            let whole = format!("SELECT * FROM (SELECT * FROM v LIMIT 1000) AS v WHERE age = 55 PURPOSE {purpose}");
            let narrow = run(&mut ann, &narrow).await.unwrap().unwrap();
            assert_eq!(narrow.num_rows(), n_rows, "{purpose}");
            assert_eq!(narrow, run(&mut ann, &whole).await.unwrap().unwrap());
        }
    });
}
