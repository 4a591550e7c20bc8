//! Tables for several audiences, and what one release for them costs.

use std::error::Error;
use std::path::Path;

use kohort_core::anonymize;
use kohort_core::audiences::{Method, Savings, anonymize_audiences_by};
use kohort_io::load;
use kohort_model::spec::Algorithm;
use kohort_model::{Audience, Audiences, Column, Requirement, Silent, Spec, Table};
use kohort_verify::{SuppressionLimit, verify_release};

use crate::adult;
use crate::measure::{Cost, timed};

/// Who knows which columns: those that everybody knows, and for each audience those that it alone knows.
pub(super) struct Knowledge<'k> {
    pub(super) common: &'k [&'k str],
    pub(super) own: [&'k [&'k str]; 2],
}

/// The loss and cost of a release for several audiences, and those of the union method.
pub(super) struct Found {
    pub(super) saved: Savings,
    pub(super) cost: Cost,
    /// The cost of the union method.
    pub(super) union_cost: Cost,
}

impl Found {
    /// The loss divided by that of the union method.
    pub(super) fn over_union(&self) -> f64 {
        self.saved.release.uncertainty_penalty() / self.saved.union.uncertainty_penalty()
    }

    /// The CPU time divided by that of the union method.
    pub(super) fn times_union(&self) -> f64 {
        self.cost.cpu.as_secs_f64() / self.union_cost.cpu.as_secs_f64()
    }
}

impl Knowledge<'_> {
    pub(super) fn audiences(&self, k: u32, collusion_k: Option<u32>) -> Audiences {
        let columns = self.own.map(|own| self.common.iter().chain(own).copied().collect::<Vec<_>>());
        of_columns(&columns.each_ref().map(Vec::as_slice), k, collusion_k)
    }
}

/// Audiences by the columns that each may know.
pub(super) fn of_columns(columns: &[&[&str]], k: u32, collusion_k: Option<u32>) -> Audiences {
    let audience = |(number, columns): (usize, &&[&str])| Audience {
        name: format!("audience {}", number + 1),
        quasi: columns.iter().map(|&column| column.to_owned()).collect(),
        requirements: vec![Requirement::K(k)],
    };
    Audiences::new(columns.iter().enumerate().map(audience).collect()).with_collusion_k(collusion_k)
}

/// Adult with the hierarchies that come with it.
pub(super) fn adult(data: &Path) -> Result<Table, Box<dyn Error>> {
    let spec = Spec::parse(&adult::spec_text(data, adult::AUTO, 5)?)?;
    Ok(load(data, &spec, &spec.tables[0], &Silent)?.table)
}

fn spec(columns: &[&str], algorithm: Algorithm) -> Result<Spec, Box<dyn Error>> {
    let mut text = format!("k = 2\nalgorithm = \"{}\"\n[tables.persons]\n", algorithm.word());
    text += "file = \"persons.parquet\"\n[tables.persons.columns]\n";
    for column in columns {
        text += &format!("\"{column}\" = \"quasi\"\n");
    }
    Ok(Spec::parse(&text)?)
}

/// The columns of a table that somebody knows.
fn known(table: &Table, audiences: &Audiences) -> Table {
    let union = audiences.union();
    let is_known = |column: &&Column| union.contains(&column.name.as_str());
    Table { columns: table.columns.iter().filter(is_known).cloned().collect(), ..table.clone() }
}

/// Makes one release. There are figures only if it passes verification for every audience.
pub(super) fn measure(
    table: &Table,
    audiences: &Audiences,
    algorithm: Algorithm,
    method: Method,
) -> Result<Found, Box<dyn Error>> {
    let table = known(table, audiences);
    let spec = spec(&audiences.union(), algorithm)?;
    let largest = audiences.each.iter().map(Audience::k).max().unwrap_or(1);
    let (union, union_cost) = timed(|| anonymize(&table, &spec, &[Requirement::K(largest)], &Silent));
    union?;
    let (released, cost) = timed(|| anonymize_audiences_by(&table, &spec, audiences, method, &Silent));
    let released = released?;
    verify_release(released.anonymized.release, &table, audiences, SuppressionLimit::share(spec.max_suppressed))?;
    Ok(Found { saved: released.saved, cost, union_cost })
}
