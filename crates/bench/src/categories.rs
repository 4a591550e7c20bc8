//! `census_like` with its categories as texts or as numbers.

use std::error::Error;
use std::path::Path;

use kohort_io::load;
use kohort_model::{Column, Silent, Spec, Table, ValueType};

use crate::excerpt;

/// How the partitioner sees categories.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Categories {
    /// As numbers, as in the paper: the rank of each category, 0 for a missing one.
    Ranked,
    /// As texts without a hierarchy, which are shown or not.
    Flat,
}

/// Some columns of the first rows, all of them quasi.
pub(crate) fn census(
    data: &Path,
    columns: &[&str],
    n_rows: usize,
    categories: Categories,
) -> Result<Table, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("persons.parquet");
    excerpt::write(&data.join("census_like/persons.parquet"), columns, n_rows, &file)?;
    let mut text = "k = 2\n[tables.persons]\nfile = \"persons.parquet\"\n[tables.persons.columns]\n".to_owned();
    columns.iter().for_each(|column| text += &format!("{column} = \"quasi\"\n"));
    let spec = Spec::parse(&text)?;
    let mut table = load(folder.path(), &spec, &spec.tables[0], &Silent)?.table;
    if categories == Categories::Ranked {
        table.columns = table.columns.iter().map(ranked).collect();
    }
    Ok(table)
}

/// A column of words as one of numbers.
fn ranked(column: &Column) -> Column {
    if column.value_type == ValueType::Integer {
        return column.clone();
    }
    let mut sorted: Vec<&str> = column.texts.iter().collect();
    sorted.sort_unstable();
    let rank = |text: &str| sorted.partition_point(|&other| other < text) + 1;
    let ranks: Vec<String> = (0..column.ids.len()).map(|row| column.cell(row).map_or(0, rank).to_string()).collect();
    Column::from_cells(&column.name, column.role, ranks.iter().map(|rank| Some(rank.as_str())))
        .typed(ValueType::Integer)
}
