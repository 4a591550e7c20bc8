//! Cells that the spec changes before classes are made, in tables that are cut into cells.

use std::fs;

use kohort::{
    Error, Existing, Format, Job, Memory, Silent, Verdict, WriteOptions, verify_against, verify_against_within,
};
use tempfile::TempDir;

use super::{Dice, files, in_cells, left_behind};

const COLUMNS: &str = "age = { role = \"quasi\", AGE }\nborn = { role = \"quasi\", BORN }\n\
                       pay = { role = \"sensitive\", l = 2, PAY }\nward = \"plain\"\n";

fn job(dice: &mut Dice, n_rows: u64, columns: &str, table: &str) -> (TempDir, Job) {
    let folder = tempfile::tempdir().unwrap();
    let row = |row: u64, dice: &mut Dice| {
        let age = if dice.below(20) == 0 { String::new() } else { (1 + dice.below(100)).to_string() };
        let born = format!("19{:02}-{:02}-{:02}", 20 + dice.below(70), 1 + dice.below(12), 1 + dice.below(28));
        let pay = format!("{}.{}", 1000 + dice.below(40) * 100, ["0", "00", "5"][dice.below(3) as usize]);
        format!("p{},{age},{born},{pay},{}\n", row / 2, dice.one_of(&["a", "b"]))
    };
    let rows: String = (0..n_rows).map(|number| row(number, dice)).collect();
    fs::write(folder.path().join("people.csv"), format!("id,age,born,pay,ward\n{rows}")).unwrap();
    let text = format!(
        "k = 3\n[tables.people]\nfile = \"people.csv\"\n{table}\n[tables.people.columns]\nid = \"identifier\"\n{columns}"
    );
    fs::write(folder.path().join("release.toml"), text).unwrap();
    let job = Job::read(folder.path().join("release.toml")).unwrap().accept_risks();
    (folder, job)
}

fn columns(age: &str, born: &str, pay: &str) -> String {
    COLUMNS.replace("AGE", age).replace("BORN", born).replace("PAY", pay)
}

/// Changes of each kind, with bounds by value and by quantile.
fn changes() -> Vec<String> {
    vec![
        columns("round = 5", "truncate = \"month\"", "round = 500"),
        columns("top = 90, bottom = 10", "truncate = \"quarter\"", "top = { quantile = 0.9 }"),
        columns("top = { quantile = 0.8 }, bottom = { quantile = 0.1 }", "truncate = \"year\"", "round = 250"),
        columns("round = 10, top = { quantile = 0.95 }", "bottom = \"1930-01-01\"", "bottom = { quantile = 0.2 }"),
    ]
}

#[test]
fn one_cell_of_changed_cells_gives_the_bytes_of_the_job_in_memory() {
    for (number, columns) in (0..).zip(changes()) {
        let (folder, job) = job(&mut Dice(number), 300, &columns, "");
        let format = Format::ALL[number as usize % Format::ALL.len()];
        let options = WriteOptions { format: Some(format), existing: Existing::Refuse };
        let release = job.anonymize().unwrap();
        let in_memory = release.write_with(folder.path().join("memory"), options, &Silent).unwrap();
        let out = folder.path().join("cells");
        let written = job.write_in_cells(&out, options, Memory::bytes(1 << 30), &Silent).unwrap();
        assert!(files(&folder.path().join("memory")) == files(&out), "{columns}");
        assert_eq!(written.manifest.tables, in_memory.tables, "{columns}");
        assert_eq!(written.manifest.loss, in_memory.loss, "{columns}");
    }
}

#[test]
fn changed_cells_in_many_cells_are_verified_against_the_table() {
    for (number, columns) in (0..).zip(changes()) {
        let (folder, job) = job(&mut Dice(100 + number), 300, &columns, "");
        let out = folder.path().join("out");
        in_cells(&job, &out, 40).unwrap();
        let in_memory = verify_against(&out, &job).unwrap();
        assert_eq!(in_memory.verdict, Verdict::Verified, "{columns}: {:?}", in_memory.wrong);
        let memory = Memory::bytes(1 << 30).rows_per_cell(50);
        let in_parts = verify_against_within(&out, &job, memory, &Silent).unwrap();
        assert_eq!((in_parts.verdict, &in_parts.wrong), (Verdict::Verified, &Vec::new()), "{columns}");
        assert_eq!(in_parts.findings, verify_against(&out, &job).unwrap().findings, "{columns}");
    }
}

#[test]
fn bounds_by_quantiles_of_persons_with_several_rows_are_refused_by_name() {
    let columns = columns("top = { quantile = 0.8 }", "truncate = \"year\"", "bottom = { quantile = 0.1 }");
    let (folder, job) = job(&mut Dice(5), 200, &columns, "person = \"id\"");
    let Err(Error::Input(reports)) = in_cells(&job, &folder.path().join("out"), 50) else { panic!("not refused") };
    let messages: Vec<&str> = reports.iter().map(|report| report.message.as_str()).collect();
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert!(messages[0].contains("'age': top by a quantile") && messages[1].contains("'pay': bottom by a quantile"));
    assert!(!folder.path().join("out").exists() && left_behind(folder.path()).is_empty());
}

#[test]
fn changed_cells_of_persons_with_several_rows_are_those_of_the_job_in_memory() {
    let columns = columns("round = 10", "truncate = \"decade\"", "top = 4000, bottom = 1500");
    let (folder, job) = job(&mut Dice(6), 300, &columns, "person = \"id\"");
    let release = job.anonymize().unwrap();
    release.write(folder.path().join("memory")).unwrap();
    in_cells(&job, &folder.path().join("one"), 1000).unwrap();
    assert!(files(&folder.path().join("memory")) == files(&folder.path().join("one")));
    in_cells(&job, &folder.path().join("many"), 50).unwrap();
    assert_eq!(verify_against(folder.path().join("many"), &job).unwrap().verdict, Verdict::Verified);
}
