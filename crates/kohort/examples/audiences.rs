//! One release for two recipients who know different columns. It is also safe if they put together what they know.
//!
//!     cargo run --package kohort --example audiences

use std::error::Error;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use kohort::{Audience, Coalition, Hierarchy, LDiversity, Table};

fn main() -> Result<(), Box<dyn Error>> {
    let age: ArrayRef = Arc::new(Int64Array::from(vec![31, 33, 35, 36, 52, 54, 55, 58]));
    let car: ArrayRef = Arc::new(StringArray::from(vec!["vw", "vw", "bmw", "bmw", "vw", "bmw", "vw", "bmw"]));
    let job: ArrayRef =
        Arc::new(StringArray::from(vec!["nurse", "cook", "nurse", "cook", "nurse", "nurse", "cook", "cook"]));
    let harm: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "a", "b", "a", "b", "a", "b"]));
    let accidents = RecordBatch::try_from_iter([("age", age), ("car", car), ("job", job), ("harm", harm)])?;

    let release = Table::from_batches([accidents])?
        .quasi("age", Hierarchy::none())
        .quasi("car", Hierarchy::flat())
        .quasi("job", Hierarchy::flat())
        .sensitive("harm", [LDiversity::distinct(2)])
        .k(2)
        .audience("insurer", Audience::knows(["age", "car"]))
        .audience("employer", Audience::knows(["age", "job"]).k(3))
        .collusion(Coalition::default().k(2))
        .anonymize()?;

    for (audience, k) in &release.manifest().achieved.audiences {
        println!("to the {audience} everybody hides among {k}");
    }
    Ok(())
}
