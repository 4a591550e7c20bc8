//! Patients and their visits: a person is a tree of rows over two tables.
//!
//!     cargo run --package kohort --example many_tables

use std::error::Error;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use kohort::{Hierarchy, JobBuilder, LDiversity, Table};

fn main() -> Result<(), Box<dyn Error>> {
    let id: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3, 4]));
    let age: ArrayRef = Arc::new(Int64Array::from(vec![23, 27, 61, 68]));
    let patients = RecordBatch::try_from_iter([("id", id), ("age", age)])?;
    let of: ArrayRef = Arc::new(Int64Array::from(vec![1, 1, 2, 2, 3, 4]));
    let ward: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "a", "b", "c", "c"]));
    let code: ArrayRef = Arc::new(StringArray::from(vec!["J10", "M10", "M10", "J10", "J45", "J10"]));
    let visits = RecordBatch::try_from_iter([("id", of), ("ward", ward), ("code", code)])?;

    let release = JobBuilder::new(2)
        .table("patient", Table::from_batches([patients])?.person("id").quasi("age", Hierarchy::none()))
        .table(
            "visit",
            Table::from_batches([visits])?
                .parent("patient", "id")
                .quasi("ward", Hierarchy::flat())
                .sensitive("code", [LDiversity::distinct(2)]),
        )
        .anonymize()?;

    for table in &release.manifest().tables {
        println!("{}: {} of {} rows released", table.name, table.rows_out, table.rows_in);
    }
    Ok(())
}
