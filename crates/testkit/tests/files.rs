//! From file to file: values survive exactly, in every format, with one thread and with eight.

use std::path::Path;

use kohort_io::{Compression, Format};
use kohort_model::{Silent, Table};
use kohort_testkit::data;
use kohort_testkit::generate::{Job, Size, config, plain_job};
use kohort_testkit::oracle;
use kohort_testkit::scenario::Scenario;
use proptest::prelude::*;
use rayon::ThreadPoolBuilder;

/// Each row is there twice, so with k = 2 every class has one value and shows it unchanged.
const HARD_VALUES: &str = "\
code,large,small,amount,born,seen,note,word,flag
00000,9007199254740993,-9223372036854775808,1.50,0001-01-01,1969-12-31T23:59:59.999999999Z,\"\",\"a,b\",true
00000,9007199254740993,-9223372036854775808,1.50,0001-01-01,1969-12-31T23:59:59.999999999Z,\"\",\"a,b\",true
00123,9007199254740992,9223372036854775807,-0.10,1582-10-15,1970-01-01 00:00:00,,\"say \"\"no\"\"\",false
00123,9007199254740992,9223372036854775807,-0.10,1582-10-15,1970-01-01 00:00:00,,\"say \"\"no\"\"\",false
0123,-1,0,99999999999999999999.000000000001,1969-12-31,9999-12-31,NULL,\" padded \",true
0123,-1,0,99999999999999999999.000000000001,1969-12-31,9999-12-31,NULL,\" padded \",true
7,,1,0.0,9999-12-31,1906-04-18T05:12:00-08:00,NA,ünïcödé,
7,,1,0.0,9999-12-31,1906-04-18T05:12:00-08:00,NA,ünïcödé,
,0,,,,,-,\"line\nbreak\",false
,0,,,,,-,\"line\nbreak\",false
";

const HARD_SPEC: &str = r#"
k = 2
[tables.hard]
file = "hard.csv"
[tables.hard.columns]
code = "quasi"
large = "quasi"
small = "quasi"
amount = "quasi"
born = "quasi"
seen = "quasi"
note = "quasi"
word = "quasi"
flag = "quasi"
"#;

const FORMATS: [Format; 6] = Format::ALL;

/// All cells of a table, sorted by row.
fn rows(table: &Table) -> Vec<Vec<Option<String>>> {
    let row = |row: usize| table.columns.iter().map(|column| column.cell(row).map(str::to_owned)).collect();
    let mut rows: Vec<Vec<Option<String>>> = (0..table.n_rows).map(row).collect();
    rows.sort_unstable();
    rows
}

#[test]
fn hard_values_survive_exactly_in_every_format() {
    let scenario = Scenario::new(HARD_VALUES, HARD_SPEC);
    for format in FORMATS {
        let written = scenario.write(format);
        assert_eq!(rows(&data::read(&written)), rows(&scenario.loaded.table), "{}", written.display());
    }
}

#[test]
fn copied_columns_survive_exactly_in_every_format() {
    let spec = HARD_SPEC.replace("= \"quasi\"", "= \"plain\"").replace("flag = \"plain\"", "flag = \"quasi\"");
    let scenario = Scenario::new(HARD_VALUES, &spec);
    for format in FORMATS {
        assert_eq!(rows(&data::read(&scenario.write(format))), rows(&scenario.loaded.table), "{}", format.extension());
    }
}

#[test]
fn types_are_found_and_leading_zeros_make_text() {
    let scenario = Scenario::new(HARD_VALUES, HARD_SPEC);
    let types: Vec<&str> = scenario.loaded.table.columns.iter().map(|column| column.value_type.word()).collect();
    assert_eq!(types, ["text", "integer", "integer", "decimal", "date", "timestamp", "text", "text", "boolean"]);
}

#[test]
fn a_released_parquet_file_can_be_released_again() {
    let first = Scenario::new(HARD_VALUES, HARD_SPEC);
    let written = first.write(Format::Parquet);
    let mut spec = first.spec.clone();
    spec.tables[0].file = written.file_name().unwrap().into();
    let loaded = kohort_io::load(written.parent().unwrap(), &spec, &spec.tables[0], &Silent).unwrap();
    let requirements = spec.requirements(&spec.tables[0]);
    let done = kohort_core::anonymize(&loaded.table, &spec, &requirements, &Silent).unwrap();
    let mut cells = oracle::released_cells(&loaded.table, &done.release);
    cells.sort_unstable();
    assert_eq!(cells, rows(&first.loaded.table));
}

/// The bytes of every file of the scenario's releases.
fn written_bytes<const N: usize>(csv: &str, spec: &str, formats: [Format; N], n_threads: usize) -> Vec<Vec<u8>> {
    let pool = ThreadPoolBuilder::new().num_threads(n_threads).build().expect("threads can be started");
    pool.install(|| {
        let scenario = Scenario::new(csv, spec);
        formats.map(|format| std::fs::read(scenario.write(format)).expect("it was just written")).to_vec()
    })
}

#[test]
fn one_thread_and_eight_write_the_same_bytes() {
    let csv_format = Format::Csv(Compression::None);
    let hard = |n_threads| written_bytes(HARD_VALUES, HARD_SPEC, [csv_format, Format::Parquet], n_threads);
    assert_eq!(hard(1), hard(8));
    // The table is large enough that several threads cut at once: their nodes have more than 2^14 rows.
    let mut csv = String::from("age,zip,income,disease\n");
    let mut state = 1u64;
    for _ in 0..40_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (age, zip, income) = ((state >> 33) % 90, (state >> 40) % 700, (state >> 20) % 100_000);
        csv += &format!("{age},0{zip},{income},d{}\n", (state >> 50) % 9);
    }
    let spec = r#"
k = 5
[tables.t]
file = "t.csv"
[tables.t.columns]
age = "quasi"
zip = { role = "quasi", type = "text", hierarchy = { mask = "right" } }
income = "quasi"
disease = { role = "sensitive", l = 2 }
"#;
    for spec in [spec.to_owned(), format!("mondrian = {{ cuts = \"relaxed\" }}\n{}", spec.replace(", l = 2", ""))] {
        assert_eq!(written_bytes(&csv, &spec, [csv_format], 1), written_bytes(&csv, &spec, [csv_format], 8));
    }
}

/// Cells as CSV.
fn csv_of(job: &Job, cells: &[Vec<Option<String>>], names: &[&str]) -> String {
    let quoted = |cell: &Option<String>| match cell.as_deref() {
        Some(text) if text.contains(',') => format!("\"{text}\""),
        text => text.unwrap_or_default().to_owned(),
    };
    let line = |row: &Vec<Option<String>>| row.iter().map(quoted).collect::<Vec<_>>().join(",");
    assert!(cells.len() <= job.table.n_rows);
    let lines: Vec<String> = cells.iter().map(line).collect();
    format!("{}\n{}\n", names.join(","), lines.join("\n"))
}

proptest! {
    #![proptest_config(config(60))]

    #[test]
    fn a_job_in_files_gives_the_release_of_the_job_in_memory(job in plain_job(Size::SMALL)) {
        if let Ok(done) = job.run() {
            let scenario = Scenario::with_files(&job.csv(), &job.spec_text(), &job.hierarchy_files());
            let names: Vec<&str> = done.release.tables[0].columns.iter().map(|column| column.name.as_str()).collect();
            let expected = csv_of(&job, &oracle::released_cells(&job.table, &done.release), &names);
            prop_assert_eq!(scenario.released_csv(), expected);
        }
    }

    #[test]
    fn a_job_in_files_survives_parquet(job in plain_job(Size::SMALL)) {
        if job.run().is_ok() {
            let scenario = Scenario::with_files(&job.csv(), &job.spec_text(), &job.hierarchy_files());
            let csv = data::read(Path::new(&scenario.write(Format::Csv(Compression::None))));
            prop_assert_eq!(rows(&csv), rows(&data::read(&scenario.write(Format::Parquet))));
        }
    }
}
