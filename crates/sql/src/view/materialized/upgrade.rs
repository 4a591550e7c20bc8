//! Bringing hidden tables to the layout of now.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, StringArray};
use datafusion::arrow::datatypes::Int64Type;
use kohort_core::changing::Past;
use kohort_store::{Change, ScanRequest, TableDescription, TableKind};

use super::layout::{PAST, ROWS, TEXT, is_hidden_table};
use super::ledger::past_text;
use super::problem::MaterializedProblem;
use super::write::batch;

/// From format 1 to 2: rows said what they were to their atom, and of persons it was kept which tuples could be theirs.
/// Both were for showing somebody in a second crowd, which nobody is any more.
///
/// # Errors
/// Where the store refuses.
pub fn forget_standings(change: &Change) -> Result<(), MaterializedProblem> {
    let tables = change.tables()?;
    for table in tables.iter().filter(|table| table.kind == TableKind::Hidden) {
        if is_hidden_table(&table.name, ROWS) {
            drop_column(change, table, "standing")?;
        } else if is_hidden_table(&table.name, PAST) {
            say_pasts_in_a_word(change, &table.name)?;
        }
    }
    Ok(())
}

/// Writes a table anew, without a column. Rows get other numbers, in the order they had.
fn drop_column(change: &Change, table: &TableDescription, column: &str) -> Result<(), MaterializedProblem> {
    let without = |table: &TableDescription| {
        let columns = table.columns.iter().filter(|known| known.name != column).cloned().collect();
        TableDescription { columns, ..table.clone() }
    };
    let description = without(table);
    let columns = Some(description.columns.iter().map(|column| column.name.clone()).collect());
    let request = ScanRequest { columns, ..ScanRequest::default() };
    let rows = change.scan(&table.name, &request)?.collect::<Result<Vec<_>, _>>()?;
    change.drop_table(&table.name)?;
    change.create_table(&description)?;
    for batch in &rows {
        change.insert(&table.name, batch)?;
    }
    Ok(())
}

fn say_pasts_in_a_word(change: &Change, table: &str) -> Result<(), MaterializedProblem> {
    let request = ScanRequest { columns: Some(vec![TEXT.to_owned()]), with_rowid: true, ..ScanRequest::default() };
    let pasts = change.scan(table, &request)?.collect::<Result<Vec<_>, _>>()?;
    for rows in &pasts {
        let numbers = rows.column(0).as_primitive::<Int64Type>().values().to_vec();
        let word = |text: Option<&str>| match text {
            Some("\"Alone\"") => past_text(Past::Alone),
            _ => past_text(Past::InCrowd),
        };
        let words: StringArray = rows.column(1).as_string::<i32>().iter().map(word).collect();
        change.update(table, &numbers, &batch([(TEXT, Arc::new(words) as ArrayRef)]))?;
    }
    Ok(())
}
