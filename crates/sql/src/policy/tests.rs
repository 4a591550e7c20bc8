//! Tables of choices: what they allow, and which tables are refused.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Float64Array, Int64Array, RecordBatch, StringArray,
};
use datafusion::common::TableReference;

use super::*;
use crate::parser::PolicyReference;

fn reference() -> PolicyReference {
    PolicyReference {
        person_column: "name".to_owned(),
        table: TableReference::bare("choices"),
        k_column: "k".to_owned(),
        level_column: Some("sa_level".to_owned()),
    }
}

fn stated(purpose: Option<&str>, recipient: Option<&str>) -> Pair {
    Pair { purpose: purpose.map(str::to_owned), recipient: recipient.map(str::to_owned) }
}

fn view_columns() -> Vec<String> {
    ["name", "birth", "zipcode", "disease"].map(str::to_owned).to_vec()
}

fn texts(cells: &[&str]) -> ArrayRef {
    let cells = cells.iter().map(|cell| (*cell != "NULL").then_some(*cell));
    Arc::new(cells.collect::<StringArray>())
}

fn numbers(cells: &[i64]) -> ArrayRef {
    Arc::new(Int64Array::from(cells.to_vec()))
}

fn batch(columns: &[(&str, ArrayRef)]) -> RecordBatch {
    RecordBatch::try_from_iter(columns.iter().map(|(name, array)| (*name, array.clone()))).unwrap()
}

/// Figure 8 of the paper.
fn patients() -> RecordBatch {
    let treatment = texts(&["Treatment"; 5]);
    let nurse = texts(&["Nurse"; 5]);
    batch(&[
        ("name", texts(&["P1", "P2", "P3", "P4", "P5"])),
        ("name_op", texts(&["F", "T", "F", "T", "T"])),
        ("birth_op", texts(&["F", "T", "F", "T", "T"])),
        ("zipcode_op", texts(&["T"; 5])),
        ("k", numbers(&[2, 2, 3, 2, 2])),
        ("sa_level", numbers(&[1, 0, 1, 1, 0])),
        ("purpose", treatment),
        ("recipient", nurse),
    ])
}

fn read(batches: &[RecordBatch]) -> Result<Policies, PolicyError> {
    Policies::read(batches, &reference(), &view_columns())
}

fn day(text: &str) -> NaiveDate {
    text.parse().unwrap()
}

fn shown(policies: &Policies, pair: PairId, person: u32, today: &str) -> Vec<bool> {
    let choice = policies.choice(pair, person).unwrap();
    (0..4).map(|column| choice.shows(column, day(today))).collect()
}

#[test]
fn the_choices_of_the_paper_are_read() {
    let policies = read(&[patients()]).unwrap();
    let pair = policies.pair(&stated(Some("treatment"), Some("NURSE"))).unwrap();
    let p3 = policies.person("P3").unwrap();
    assert_eq!((policies.n_persons(), policies.pairs().len(), policies.k(p3)), (5, 1, 3));
    let choice = policies.choice(pair, p3).unwrap();
    assert_eq!((choice.k, choice.level), (3, 1));
    assert_eq!(shown(&policies, pair, p3, "2026-01-01"), [false, false, true, true]);
    assert_eq!(policies.person("P6"), None);
}

#[test]
fn batches_of_a_table_are_one_table() {
    let whole = patients();
    let policies = read(&[whole.slice(0, 2), whole.slice(2, 3)]).unwrap();
    assert_eq!(policies.n_persons(), 5);
    assert_eq!(policies.k(policies.person("P3").unwrap()), 3);
}

#[test]
fn k_is_the_largest_over_all_pairs_and_each_pairs_own() {
    let policies = read(&[batch(&[
        ("name", texts(&["a", "a", "b"])),
        ("purpose", texts(&["x", "y", "x"])),
        ("k", numbers(&[2, 7, 0])),
        ("sa_level", numbers(&[0, 0, 0])),
    ])])
    .unwrap();
    let (a, b) = (policies.person("a").unwrap(), policies.person("b").unwrap());
    let (x, y) =
        (policies.pair(&stated(Some("x"), None)).unwrap(), policies.pair(&stated(Some("Y"), Some("anybody"))).unwrap());
    assert_eq!((policies.k(a), policies.k(b)), (7, 0));
    assert_eq!((policies.k_for(x, a), policies.k_for(y, a)), (Some(2), Some(7)));
    assert_eq!((policies.k_for(x, b), policies.k_for(y, b)), (Some(0), None));
    assert!(policies.choice(y, b).is_none(), "no row for a pair refuses everything");
}

#[test]
fn everybody_else_has_the_choice_of_the_star() {
    let policies = read(&[batch(&[
        ("name", texts(&["*", "a", "*"])),
        ("purpose", texts(&["x", "x", "y"])),
        ("k", numbers(&[5, 2, 9])),
        ("sa_level", numbers(&[1, 0, 0])),
    ])])
    .unwrap();
    let (a, other) = (policies.person("a").unwrap(), policies.person("nobody knows").unwrap());
    let (x, y) = (policies.pair(&stated(Some("x"), None)).unwrap(), policies.pair(&stated(Some("y"), None)).unwrap());
    assert_eq!((policies.k_for(x, a), policies.k_for(x, other)), (Some(2), Some(5)));
    assert_eq!((policies.k_for(y, a), policies.k_for(y, other)), (Some(9), Some(9)));
    assert_eq!((policies.k(a), policies.k(other)), (9, 9));
}

#[test]
fn a_cell_is_shown_up_to_its_last_day() {
    let until = [Some(day("2026-06-30").to_epoch_days()), None];
    let policies = read(&[batch(&[
        ("name", texts(&["a", "b"])),
        ("k", numbers(&[2, 2])),
        ("sa_level", numbers(&[0, 0])),
        ("birth_until", Arc::new(Date32Array::from(until.to_vec()))),
        ("zipcode_until", texts(&["2026-06-30", "9999-12-31"])),
        ("zipcode_op", Arc::new(BooleanArray::from(vec![Some(false), Some(true)]))),
    ])])
    .unwrap();
    let pair = policies.pair(&stated(None, None)).unwrap();
    let (a, b) = (policies.person("a").unwrap(), policies.person("b").unwrap());
    assert_eq!(shown(&policies, pair, a, "2026-06-30"), [true, true, false, true]);
    assert_eq!(shown(&policies, pair, a, "2026-07-01"), [true, false, false, true]);
    assert_eq!(shown(&policies, pair, b, "2026-06-30"), [true, false, true, true], "a NULL refuses");
    assert_eq!(policies.unused_columns(day("2026-06-30")), Vec::<usize>::new());
    assert_eq!(policies.unused_columns(day("2026-07-01")), [1]);
}

#[test]
fn numbers_and_words_say_yes_and_no() {
    let policies = read(&[batch(&[
        ("name", texts(&["a", "b", "c"])),
        ("k", Arc::new(Float64Array::from(vec![2.0, 3.0, 4.0]))),
        ("sa_level", texts(&["0", "1", "2"])),
        ("birth_op", numbers(&[0, 1, 1])),
        ("zipcode_op", texts(&["No", "YES", "NULL"])),
    ])])
    .unwrap();
    let pair = policies.pair(&stated(None, None)).unwrap();
    assert_eq!(shown(&policies, pair, 0, "2026-01-01"), [true, false, false, true]);
    assert_eq!(shown(&policies, pair, 1, "2026-01-01"), [true, true, true, true]);
    assert_eq!(shown(&policies, pair, 2, "2026-01-01"), [true, true, false, true]);
    assert_eq!(policies.choice(pair, 2).map(|choice| (choice.k, choice.level)), Some((4, 2)));
}

/// The message for the paper's table with this column replaced or added.
fn problem_with(column: &str, array: ArrayRef) -> String {
    let table = patients();
    let schema = table.schema();
    let mut columns: Vec<(&str, ArrayRef)> = schema
        .fields()
        .iter()
        .map(|field| field.name().as_str())
        .zip(table.columns().iter().cloned())
        .filter(|(name, _)| *name != column)
        .collect();
    columns.push((column, array));
    let problem = read(&[batch(&columns)]).unwrap_err();
    format!("{problem}\n{}", problem.hint().unwrap_or_default())
}

#[test]
fn rows_that_cannot_be_understood_are_counted_and_never_shown() {
    insta::assert_snapshot!(problem_with("name", texts(&["P1", "NULL", "P3", "NULL", "P5"])), @r"
    table 'choices', column 'name': NULL in 2 rows, first in row 2
    write * as the person to mean everybody else, and leave out a column of purposes or recipients to mean all
    ");
    insta::assert_snapshot!(problem_with("name", texts(&["P1", "P2", "P1", "P4", "P1"])), @r"
    table 'choices', column 'name': a second choice of the same person, purpose and recipient in 2 rows, first in row 3
    keep one row per person, purpose and recipient
    ");
    insta::assert_snapshot!(problem_with("k", numbers(&[2, -1, 3, 2, 2])), @r"
    table 'choices', column 'k': not a whole number from 0 in row 2
    write 0 if the person may be named, 1 if they may be shown alone without a name, or else k
    ");
    insta::assert_snapshot!(problem_with("k", texts(&["2", "2", "2.5", "NULL", "secret"])), @r"
    table 'choices', column 'k': not a whole number from 0 in 3 rows, first in row 3
    write 0 if the person may be named, 1 if they may be shown alone without a name, or else k
    ");
    insta::assert_snapshot!(problem_with("k", Arc::new(BooleanArray::from(vec![true; 5]))), @r"
    table 'choices', column 'k': expected whole numbers, found the type Boolean
    cast the column to whole numbers
    ");
    insta::assert_snapshot!(problem_with("sa_level", numbers(&[1, 0, 1, 256, 0])), @r"
    table 'choices', column 'sa_level': not a level from 0 to 255 in row 4
    write 0 to show sensitive values as they are
    ");
    insta::assert_snapshot!(problem_with("purpose", texts(&["x", "x", "x", "x", "NULL"])), @r"
    table 'choices', column 'purpose': NULL in row 5
    write * as the person to mean everybody else, and leave out a column of purposes or recipients to mean all
    ");
    insta::assert_snapshot!(problem_with("birth_op", texts(&["T", "secret", "T", "T", "T"])), @r"
    table 'choices', column 'birth_op': neither true nor false in row 2
    write T or F, true or false, yes or no, 1 or 0; NULL refuses
    ");
    insta::assert_snapshot!(problem_with("birth_until", texts(&["2030-01-01", "secret", "NULL", "NULL", "NULL"])), @r"
    table 'choices', column 'birth_until': not a date in row 2
    write dates as 2030-12-31
    ");
    insta::assert_snapshot!(problem_with("birth_until", numbers(&[1; 5])), @r"
    table 'choices', column 'birth_until': expected dates, found the type Int64
    cast the column to dates
    ");
    insta::assert_snapshot!(problem_with("K", numbers(&[1; 5])), @r"
    table 'choices' has several columns 'k'
    rename all but one of them
    ");
}

#[test]
fn a_column_that_is_named_must_be_there() {
    let table = patients();
    let without = |name: &str| {
        let kept: Vec<usize> =
            (0..table.num_columns()).filter(|&column| table.schema().field(column).name() != name).collect();
        read(&[table.project(&kept).unwrap()]).unwrap_err().to_string()
    };
    assert_eq!(without("name"), "table 'choices' has no column 'name'");
    assert_eq!(without("k"), "table 'choices' has no column 'k'");
    assert_eq!(without("sa_level"), "table 'choices' has no column 'sa_level'");
}

#[test]
fn purposes_and_recipients_are_asked_for_by_name() {
    let policies = read(&[batch(&[
        ("name", texts(&["a", "a", "b"])),
        ("purpose", texts(&["Treatment", "Research", "treatment"])),
        ("recipient", texts(&["Nurse", "Lab", "NURSE"])),
        ("k", numbers(&[2, 2, 2])),
        ("sa_level", numbers(&[0, 0, 0])),
    ])])
    .unwrap();
    assert_eq!(policies.pairs().len(), 2);
    let problem = |purpose, recipient| {
        let problem = policies.pair(&stated(purpose, recipient)).unwrap_err();
        format!("{problem}\n{}", problem.hint().unwrap_or_default())
    };
    insta::assert_snapshot!(problem(None, Some("nurse")), @r"
    a purpose is needed
    end the query with PURPOSE and one of: Treatment, Research
    ");
    insta::assert_snapshot!(problem(Some("research"), None), @r"
    a recipient is needed
    end the query with RECIPIENT and one of: Nurse, Lab
    ");
    insta::assert_snapshot!(problem(Some("marketing"), Some("nurse")), @r"
    nobody allows anything for the purpose 'marketing'
    use one of the purposes: Treatment, Research
    ");
    insta::assert_snapshot!(problem(Some("research"), Some("public")), @r"
    nobody allows anything to the recipient 'public'
    use one of the recipients: Nurse, Lab
    ");
    insta::assert_snapshot!(problem(Some("research"), Some("nurse")), @"nobody allows anything for the purpose 'research' to the recipient 'nurse'");
}

#[test]
fn debugging_policies_shows_no_person() {
    let policies = read(&[patients()]).unwrap();
    assert!(!format!("{policies:?}").contains("P1"));
}
