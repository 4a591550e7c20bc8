//! Attack on a join by values: the private table and the register spell the same values differently, so a join of
//! spellings counts people twice. The oracle knows to whom every row belongs, and counts distinct people by brute
//! force.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, Date32Array, Float64Array, Int64Array, RecordBatch, StringArray, TimestampMillisecondArray,
};
use kohort_core::register::anonymize_with_register;
use kohort_io::{LoadedRegisters, LoadedTable, load, load_registers};
use kohort_model::spec::{RegisterRows, Unmatched};
use kohort_model::{InRegister, JoinedRegister, Release, Requirement, Silent, Spec, Value, ValueType};
use kohort_testkit::data;
use kohort_testkit::random::Random;
use kohort_verify::{AskedOfJoin, SuppressionLimit, ToldApart, Violation, verify_joined};
use parquet::arrow::ArrowWriter;

const K: u32 = 5;

/// A person with values that nobody else has.
#[derive(Clone, Copy)]
struct Somebody {
    /// The pay in cents.
    pay: i64,
    /// The day of birth, in days since 1970.
    born: i32,
    town: usize,
    /// The time at which the person was seen, in minutes since 1970.
    seen: i64,
}

/// Each name in composed and decomposed letters.
const TOWNS: [[&str; 2]; 3] =
    [["Z\u{fc}rich", "Zu\u{308}rich"], ["Orl\u{e9}ans", "Orle\u{301}ans"], ["M\u{e9}xico", "Me\u{301}xico"]];

fn everybody(n: usize, seed: u64) -> Vec<Somebody> {
    let mut random = Random::new(seed);
    let somebody = |row: usize| Somebody {
        pay: 1000 * (random.below(300) as i64) + 50 * (row as i64 % 2),
        born: random.below(20_000) as i32 - 5000,
        town: random.below(TOWNS.len()),
        seen: row as i64,
    };
    (0..n).map(somebody).collect()
}

/// The private table as German offices write it.
fn private_csv(persons: &[Somebody]) -> String {
    let mut text = "pay;born;town;seen\n".to_owned();
    for &Somebody { pay, born, town, seen } in persons {
        let date = Value::Date(born).spell(&german()).unwrap();
        let (hour, minute) = (seen / 60, seen % 60);
        // The private table's times are an hour ahead of UTC.
        writeln!(
            text,
            "{},{:02};{date};{};1970-01-01 {:02}:{minute:02}+01",
            pay / 100,
            pay % 100,
            TOWNS[town][0],
            hour + 1
        )
        .unwrap();
    }
    text
}

fn german() -> kohort_model::Notation {
    kohort_model::Notation {
        decimal_comma: true,
        date_format: Some("%d.%m.%Y".to_owned()),
        ..kohort_model::Notation::default()
    }
}

/// The register as a data frame keeps it: doubles, days, decomposed text and instants.
fn write_register(path: &Path, persons: &[Somebody]) {
    let pay = Float64Array::from_iter_values(persons.iter().map(|person| person.pay as f64 / 100.0));
    let born = Date32Array::from_iter_values(persons.iter().map(|person| person.born));
    let town = StringArray::from_iter_values(persons.iter().map(|person| TOWNS[person.town][1]));
    let seen = TimestampMillisecondArray::from_iter_values(persons.iter().map(|person| person.seen * 60_000));
    let columns: [(&str, ArrayRef); 4] = [
        ("pay", Arc::new(pay)),
        ("born", Arc::new(born)),
        ("town", Arc::new(town)),
        ("seen", Arc::new(seen.with_timezone("UTC"))),
    ];
    write_parquet(path, &RecordBatch::try_from_iter(columns).unwrap());
}

fn write_parquet(path: &Path, batch: &RecordBatch) {
    let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), None).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

const SPEC: &str = "\
k = 5
algorithm = \"mondrian\"
[tables.t]
file = \"t.csv\"
decimal = \",\"
date_format = \"%d.%m.%Y\"
[tables.t.columns]
pay = { role = \"quasi\", type = \"decimal\" }
born = { role = \"quasi\", type = \"date\" }
town = \"quasi\"
seen = { role = \"quasi\", type = \"text\" }
[registers.r]
file = \"r.parquet\"
";

/// The private table, its join with the register and the spec.
fn loaded(private: &str, write: impl FnOnce(&Path), spec: &str) -> (LoadedTable, LoadedRegisters, Spec) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.csv"), private).unwrap();
    write(&folder.path().join("r.parquet"));
    let spec = Spec::parse(spec).unwrap_or_else(|problems| panic!("{problems}"));
    let mut original =
        load(folder.path(), &spec, &spec.tables[0], &Silent).unwrap_or_else(|problems| panic!("{problems}"));
    let registers =
        load_registers(folder.path(), &spec, &mut original, &Silent).unwrap_or_else(|problem| panic!("{problem}"));
    (original, registers, spec)
}

fn asked(unmatched: Unmatched) -> AskedOfJoin<'static> {
    AskedOfJoin {
        requirements: &[Requirement::K(K)],
        delta_presence: None,
        rows: RegisterRows::All,
        told_apart: ToldApart::ByValues(unmatched),
        previous: &[],
        limit: SuppressionLimit::NOBODY,
    }
}

/// How many distinct people the smallest class has; `who` names the person of a joined row.
fn fewest_people(release: &Release, who: impl Fn(u32) -> usize) -> usize {
    let table = &release.tables[0];
    let mut classes = std::collections::BTreeMap::<Vec<u32>, BTreeSet<usize>>::new();
    for (row, &source) in table.rows.iter().enumerate() {
        let cells = table.columns.iter().filter_map(|column| match &column.cells {
            kohort_model::Cells::Recoded { ids, .. } | kohort_model::Cells::Surrogate { ids } => Some(ids[row]),
            kohort_model::Cells::Copied => None,
        });
        classes.entry(cells.collect()).or_default().insert(who(source));
    }
    classes.values().map(BTreeSet::len).min().unwrap()
}

/// The join without any matching: every register row counts as another person.
fn unjoined(joined: &JoinedRegister) -> JoinedRegister {
    let mut joined = joined.clone();
    joined.n_register = joined.rows.n_rows - joined.n_microdata;
    joined.persons.fill(InRegister::Absent);
    joined
}

/// The minutes of a joined row, which identify the person.
fn minutes(joined: &JoinedRegister, row: u32) -> usize {
    let text = joined.rows.column("seen").unwrap().cell(row as usize).unwrap();
    match Value::parse(text, ValueType::Timestamp, &kohort_model::Notation::default()) {
        Some(Value::Timestamp(nanoseconds)) => (nanoseconds / 60_000_000_000) as usize,
        _ => panic!("no timestamp"),
    }
}

#[test]
fn people_spelled_differently_in_csv_and_parquet_are_found_and_count_once() {
    let persons = everybody(400, 3);
    let spec = SPEC.replace("date_format = \"%d.%m.%Y\"\n", "").replace("type = \"text\"", "type = \"timestamp\"");
    let iso = private_csv(&persons[..60]);
    let iso = iso.lines().map(|line| {
        let mut cells: Vec<String> = line.split(';').map(str::to_owned).collect();
        if let Some((day, rest)) = cells[1].split_once('.') {
            let (month, year) = rest.split_once('.').unwrap();
            cells[1] = format!("{year}-{month}-{day}");
        }
        cells.join(";") + "\n"
    });
    let (original, registers, spec) = loaded(&iso.collect::<String>(), |path| write_register(path, &persons), &spec);
    let joined = &registers.joined;
    assert!(joined.persons.iter().all(|person| matches!(person, InRegister::Same(_))));
    assert_eq!((joined.n_microdata, joined.n_register), (60, 340));
    let requirements = [Requirement::K(K)];
    let release = |joined: &JoinedRegister| {
        anonymize_with_register(&original.table, joined, &[], &spec, &requirements, &Silent).unwrap().anonymized.release
    };
    let done = release(joined);
    assert!(fewest_people(&done, |row| minutes(joined, row)) >= K as usize);
    verify_joined(done, &original.table, joined, asked(Unmatched::Doubt)).unwrap();

    // A join of spellings makes classes with fewer people, and the verifier notices.
    let mut spec = spec.clone();
    spec.register.unmatched = Unmatched::Count;
    let unjoined = unjoined(joined);
    let done = anonymize_with_register(&original.table, &unjoined, &[], &spec, &requirements, &Silent).unwrap();
    let done = done.anonymized.release;
    assert!(fewest_people(&done, |row| minutes(joined, row)) < K as usize);
    for unmatched in [Unmatched::Count, Unmatched::Doubt] {
        let found = verify_joined(done.clone(), &original.table, &unjoined, asked(unmatched)).unwrap_err().0;
        assert!(found.contains(&Violation::NotMatched { n: 60, first_row: 1 }), "{found:?}");
    }
}

#[test]
fn dates_of_a_german_table_are_found_in_a_register_of_days() {
    let persons = everybody(90, 5);
    // Drop the column with time zones, which another test covers.
    let spec = SPEC.replace("seen = { role = \"quasi\", type = \"text\" }", "seen = \"drop\"");
    let (_, registers, _) = loaded(&private_csv(&persons[..30]), |path| write_register(path, &persons), &spec);
    assert!(registers.joined.persons.iter().all(|person| matches!(person, InRegister::Same(_))));
    assert_eq!(registers.joined.n_register, 60);
}

#[test]
fn classes_hold_k_people_even_where_many_were_described_otherwise() {
    // Half of the private persons have moved, so a join by values finds nobody. Only the oracle knows who they are.
    let persons = everybody(400, 9);
    let mut moved = persons[..60].to_vec();
    moved.iter_mut().step_by(2).for_each(|person| person.pay += 1);
    let spec = SPEC
        .replace("date_format = \"%d.%m.%Y\"\n", "")
        .replace("born = { role = \"quasi\", type = \"date\" }", "born = \"drop\"");
    let spec = spec.replace("type = \"text\"", "type = \"timestamp\"");
    let (original, registers, mut spec) = loaded(&private_csv(&moved), |path| write_register(path, &persons), &spec);
    let joined = &registers.joined;
    let n_absent = joined.persons.iter().filter(|person| **person == InRegister::Absent).count();
    assert_eq!(n_absent, 30);
    let mut fewest = |unmatched| {
        spec.register.unmatched = unmatched;
        let requirements = [Requirement::K(K)];
        let done = anonymize_with_register(&original.table, joined, &[], &spec, &requirements, &Silent).unwrap();
        let release = done.anonymized.release;
        let people = fewest_people(&release, |row| minutes(joined, row));
        let verified = verify_joined(release, &original.table, joined, asked(unmatched)).unwrap();
        assert!(unmatched == Unmatched::Count || verified.findings().k as usize <= people);
        people
    };
    assert!(fewest(Unmatched::Doubt) >= K as usize);
    assert!(fewest(Unmatched::Count) < K as usize);
}

/// A spec of two columns beside a register with a key, where presence is public.
const PUBLIC: &str = "\
k = 3
[tables.t]
file = \"t.csv\"
person = \"id\"
columns = { id = \"identifier\", x = { role = \"quasi\", type = \"integer\" } }
[registers.r]
file = \"r.parquet\"
key = \"id\"
[register]
release = \"microdata\"
";

/// A register of persons by name, each at a place.
fn write_places(path: &Path, people: &[(&str, i64)]) {
    let id = StringArray::from_iter_values(people.iter().map(|(name, _)| *name));
    let x = Int64Array::from_iter_values(people.iter().map(|(_, x)| *x));
    let columns: [(&str, ArrayRef); 2] = [("id", Arc::new(id)), ("x", Arc::new(x))];
    write_parquet(path, &RecordBatch::try_from_iter(columns).unwrap());
}

/// Releases by both methods, verifies, and returns the cells of each released row.
fn released_cells(private: &str, people: &[(&str, i64)], spec: &str) -> Vec<Vec<String>> {
    let release = |method: &str| {
        let spec = format!("{spec}method = \"{method}\"\n");
        let (original, registers, spec) = loaded(private, |path| write_places(path, people), &spec);
        let requirements = spec.requirements(&spec.tables[0]);
        let joined = &registers.joined;
        let done = anonymize_with_register(&original.table, joined, &[], &spec, &requirements, &Silent).unwrap();
        let asked = AskedOfJoin {
            requirements: &requirements,
            rows: RegisterRows::Microdata,
            told_apart: ToldApart::ByKey,
            ..asked(Unmatched::Doubt)
        };
        let verified = verify_joined(done.anonymized.release, &original.table, joined, asked).unwrap();
        let table = &verified.get().tables[0];
        let cells = table.columns.iter().filter_map(|column| match &column.cells {
            kohort_model::Cells::Recoded { labels, ids } => Some((labels, ids)),
            kohort_model::Cells::Copied | kohort_model::Cells::Surrogate { .. } => None,
        });
        cells.map(|(labels, ids)| ids.iter().map(|&id| labels.get(id).to_owned()).collect()).collect::<Vec<Vec<_>>>()
    };
    let [refined, direct] = ["refine", "direct"].map(release);
    assert_eq!(refined, direct);
    refined
}

#[test]
fn a_table_smaller_than_k_is_released_where_the_register_fills_its_class() {
    // There is one private person, and no sensitive column that would need a group of k.
    let people = [("a", 1), ("b", 2), ("c", 3), ("d", 90)];
    assert_eq!(released_cells("id,x\na,1\n", &people, PUBLIC), [["[1,3]"]]);
}

#[test]
fn private_persons_are_enough_for_one_class_where_the_register_is_small() {
    // The register has three persons, two of whom are found by their values. Each of the three other private persons
    // may be the third one under other values, but the five persons of the table are five different ones.
    let spec = PUBLIC.replace("k = 3", "k = 4").replace("key = \"id\"\n", "").replace("release = \"microdata\"\n", "");
    let (original, registers, spec) =
        loaded("id,x\na,3\nb,0\nc,0\nd,3\ne,7\n", |path| write_places(path, &[("a", 0), ("b", 0), ("c", 0)]), &spec);
    let requirements = spec.requirements(&spec.tables[0]);
    let joined = &registers.joined;
    let done = anonymize_with_register(&original.table, joined, &[], &spec, &requirements, &Silent).unwrap();
    let asked = AskedOfJoin { requirements: &requirements, ..asked(Unmatched::Doubt) };
    let verified = verify_joined(done.anonymized.release, &original.table, joined, asked).unwrap();
    assert_eq!((verified.findings().k, verified.findings().classes), (5, 1));
}

#[test]
fn persons_whom_the_register_has_elsewhere_count_where_their_class_reaches_that_place() {
    // All three have moved away from 0, no private row shows 0, and nobody else is there to fill the class.
    let people = [("a", 0), ("b", 0), ("c", 0)];
    assert_eq!(released_cells("id,x\na,4\nb,5\nc,6\n", &people, PUBLIC), [["[0,6]"; 3]]);
}

#[test]
fn the_people_of_a_survey_are_found_in_a_census_however_they_are_written() {
    let (Some(survey), Some(census)) =
        (data::real("register/survey.parquet"), data::real("register/census2020.parquet"))
    else {
        return;
    };
    let (survey, census) = (data::read(&survey), data::read(&census));
    let names = ["simulant_id", "date_of_birth", "sex", "race_ethnicity", "state"];
    let cells = |table: &kohort_model::Table, row: usize| -> Option<Vec<String>> {
        names.iter().map(|name| Some(table.column(name)?.cell(row)?.to_owned())).collect()
    };
    let rows = |table: &kohort_model::Table| -> Vec<Vec<String>> {
        (0..table.n_rows).filter_map(|row| cells(table, row)).collect()
    };
    let (survey, census) = (rows(&survey), rows(&census));
    // The private table writes days as in Germany, and the register as Parquet keeps them.
    let day = |text: &str| text[..10].to_owned();
    let mut private = "born,sex,race,state\n".to_owned();
    for person in &survey {
        let born = day(&person[1]);
        writeln!(private, "{}.{}.{},{},{},{}", &born[8..], &born[5..7], &born[..4], person[2], person[3], person[4])
            .unwrap();
    }
    let days = |text: &str| match Value::parse(&day(text), ValueType::Date, &kohort_model::Notation::default()) {
        Some(Value::Date(days)) => i64::from(days),
        _ => panic!("no date"),
    };
    let born = Date32Array::from_iter_values(census.iter().map(|person| days(&person[1]) as i32));
    let text = |at: usize| Arc::new(StringArray::from_iter_values(census.iter().map(|person| person[at].as_str())));
    let number = Int64Array::from_iter_values(0..census.len() as i64);
    let columns: [(&str, ArrayRef); 5] = [
        ("number", Arc::new(number)),
        ("born", Arc::new(born)),
        ("sex", text(2)),
        ("race", text(3)),
        ("state", text(4)),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let spec = "k = 5\n[tables.t]\nfile = \"t.csv\"\ndate_format = \"%d.%m.%Y\"\n\
                columns = { born = \"quasi\", sex = \"quasi\", race = \"quasi\", state = \"quasi\" }\n\
                [registers.r]\nfile = \"r.parquet\"\n";
    let (original, registers, spec) = loaded(&private, |path| write_parquet(path, &batch), spec);
    let joined = &registers.joined;
    // Brute force: for each combination of values, as many persons are found as both files have.
    let count = |rows: &[Vec<String>]| {
        let mut counts = std::collections::BTreeMap::<Vec<String>, usize>::new();
        for row in rows {
            let key = std::iter::once(day(&row[1])).chain(row[2..].iter().cloned()).collect();
            *counts.entry(key).or_default() += 1;
        }
        counts
    };
    let in_census = count(&census);
    let expected: usize = count(&survey).iter().map(|(key, &n)| n.min(in_census.get(key).copied().unwrap_or(0))).sum();
    let found = joined.persons.iter().filter(|person| **person != InRegister::Absent).count();
    assert_eq!(found, expected);
    assert!(found * 2 > survey.len(), "{found} of {}", survey.len());
    let done = anonymize_with_register(&original.table, joined, &[], &spec, &[Requirement::K(K)], &Silent).unwrap();
    let verified = verify_joined(done.anonymized.release, &original.table, joined, asked(Unmatched::Doubt)).unwrap();
    assert!(verified.findings().k >= u64::from(K));
}
