//! One table in memory: Arrow in, Arrow out.
//!
//!     cargo run --package kohort --example one_table

use std::error::Error;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use kohort::{Hierarchy, LDiversity, Table};

fn main() -> Result<(), Box<dyn Error>> {
    let name: ArrayRef = Arc::new(StringArray::from(vec!["Ann", "Bob", "Cat", "Dan", "Eve", "Fay"]));
    let age: ArrayRef = Arc::new(Int64Array::from(vec![23, 27, 29, 41, 44, 48]));
    let zip: ArrayRef = Arc::new(StringArray::from(vec!["88512", "88513", "88590", "10115", "10117", "10119"]));
    let disease: ArrayRef = Arc::new(StringArray::from(vec!["flu", "gout", "flu", "flu", "gout", "asthma"]));
    let patients = RecordBatch::try_from_iter([("name", name), ("age", age), ("zip", zip), ("disease", disease)])?;

    let release = Table::from_batches([patients])?
        .identifier("name")
        .quasi("age", Hierarchy::steps([10, 50]))
        .quasi("zip", Hierarchy::mask_right())
        .sensitive("disease", [LDiversity::distinct(2)])
        .k(3)
        .anonymize()?;

    let manifest = release.manifest();
    println!("k {} asked, {} reached, loss {:.3}", manifest.requirement.k, manifest.achieved.k, manifest.loss.lm);
    let tables = release.to_batches()?;
    println!("{} rows of {}", tables[0].rows.batches()[0].num_rows(), tables[0].rows.schema());
    Ok(())
}
