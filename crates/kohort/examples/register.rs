//! A public register makes the crowd larger: the people of the private table hide among those of the register, so less is
//! lost.
//!
//!     cargo run --package kohort --example register

use std::error::Error;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use kohort::{Batches, Hierarchy, Register, Table};

fn main() -> Result<(), Box<dyn Error>> {
    let id: ArrayRef = Arc::new(Int64Array::from(vec![3, 8, 14, 19]));
    let age: ArrayRef = Arc::new(Int64Array::from(vec![23, 28, 34, 39]));
    let disease: ArrayRef = Arc::new(StringArray::from(vec!["flu", "gout", "flu", "asthma"]));
    let patients = RecordBatch::try_from_iter([("id", id), ("age", age), ("disease", disease)])?;
    let number: ArrayRef = Arc::new(Int64Array::from_iter_values(0..40));
    let years: ArrayRef = Arc::new(Int64Array::from_iter_values(20..60));
    let town = RecordBatch::try_from_iter([("no", number), ("years", years)])?;
    let town =
        Batches::new(town.schema(), vec![town]).map_err(|batch| format!("batch {batch} is of another schema"))?;

    let table = Table::from_batches([patients])?.person("id").quasi("age", Hierarchy::none()).sensitive("disease", []);
    let alone = table.clone().k(2).anonymize()?;
    let register = Register::of(town).key("no").column("age", "years").date("2026-01-01");
    let beside = table.k(2).register("town", register).anonymize()?;

    println!("loss {:.3} alone, {:.3} beside the register", alone.manifest().loss.lm, beside.manifest().loss.lm);
    assert!(beside.manifest().loss.lm < alone.manifest().loss.lm);
    Ok(())
}
