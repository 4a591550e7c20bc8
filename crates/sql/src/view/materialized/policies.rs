//! [`PolicyRows`]: rows of a table of choices, and which of them apply to a person.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt32Array};
use datafusion::arrow::compute::{cast, concat_batches, take};
use datafusion::arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::row::Rows;

use super::layout::{IS_RESTRICTED, NUMBER, batch, integers, texts, truths};
use crate::parser::PolicyReference;
use crate::policy::{EVERYBODY, Policies, PolicyError};
use crate::view::version::digest::row_bytes;
use crate::view::{Definition, ViewError};

/// Rows of a table of choices.
pub(crate) struct PolicyRows {
    /// The rows as policies.
    pub policies: Policies,
    rows: RecordBatch,
    person: usize,
    of_person: HashMap<String, Vec<u32>>,
    /// For each row, its purpose and recipient.
    pairs: Vec<(Option<String>, Option<String>)>,
    converted: Rows,
}

impl PolicyRows {
    /// Reads the rows of a query.
    pub(crate) fn read(
        schema: &SchemaRef,
        batches: &[RecordBatch],
        definition: &Definition,
    ) -> Result<PolicyRows, ViewError> {
        let Some(reference) = &definition.clauses.policy else { return Err(ViewError::Stale) };
        let failed = |error: ArrowError| definition.failed(error);
        let rows = concat_batches(schema, batches).map_err(failed)?;
        let policies = Policies::read(std::slice::from_ref(&rows), reference, &definition.names())?;
        let person = position(schema, &reference.person_column).ok_or_else(|| {
            let (table, column) = (reference.table.to_string(), reference.person_column.clone());
            ViewError::Policy(PolicyError::NoColumn { table, column })
        })?;
        let texts = |position: usize| cast(rows.column(position), &DataType::Utf8).map_err(failed);
        let names = texts(person)?;
        let mut of_person: HashMap<String, Vec<u32>> = HashMap::new();
        for (row, name) in (0..).zip(names.as_string::<i32>().iter()) {
            of_person.entry(name.unwrap_or_default().to_owned()).or_default().push(row);
        }
        let word = |name: &str| position(schema, name).map(texts).transpose();
        let (purposes, recipients) = (word("purpose")?, word("recipient")?);
        let text = |column: &Option<ArrayRef>, row: usize| {
            let column = column.as_ref()?.as_string::<i32>();
            column.is_valid(row).then(|| column.value(row).to_lowercase())
        };
        let pairs = (0..rows.num_rows()).map(|row| (text(&purposes, row), text(&recipients, row))).collect();
        let converted = converted(rows.columns(), Some(person)).map_err(failed)?;
        Ok(PolicyRows { policies, rows, person, of_person, pairs, converted })
    }

    /// The rows that apply to a person: the person's own, and for all other pairs those of everybody.
    fn of(&self, name: &str) -> Vec<u32> {
        let own = self.of_person.get(name).cloned().unwrap_or_default();
        let spoken: Vec<_> = own.iter().map(|&row| &self.pairs[row as usize]).collect();
        let everybody = self.of_person.get(EVERYBODY).filter(|_| name != EVERYBODY).into_iter().flatten();
        let rest = everybody.filter(|&&row| !spoken.contains(&&self.pairs[row as usize])).copied();
        own.iter().copied().chain(rest).collect()
    }

    /// The content of a person's rows, as bytes without the identifier.
    pub(super) fn content(&self, name: &str) -> Vec<u8> {
        content(self.of(name).iter().map(|&row| self.converted.row(row as usize).data().to_vec()).collect())
    }

    /// The rows of a person under a number instead of a name, as the hidden table has them.
    pub(super) fn numbered(&self, name: &str, number: i64, is_restricted: bool) -> RecordBatch {
        let of = UInt32Array::from(self.of(name));
        let n_rows = of.len();
        let numbers = integers(std::iter::repeat_n(number, n_rows));
        let restricted = truths(std::iter::repeat_n(is_restricted, n_rows));
        let names: Vec<String> = (0..self.rows.num_columns()).map(|column| format!("p{column}")).collect();
        let columns = names.iter().enumerate().map(|(position, name)| {
            let column = match position == self.person {
                true => texts(std::iter::repeat_n(Some(number.to_string()), n_rows)),
                false => take(self.rows.column(position), &of, None).expect("rows are of the batch"),
            };
            (name.as_str(), column)
        });
        batch([(NUMBER, numbers), (IS_RESTRICTED, restricted)].into_iter().chain(columns))
    }

    /// The place of the column that identifies persons.
    pub(super) fn person_column(&self) -> usize {
        self.person
    }

    /// The columns of the table. Identifiers are text.
    pub(super) fn schema(&self) -> Schema {
        let field = |(position, field): (usize, &Arc<Field>)| match position == self.person {
            true => field.as_ref().clone().with_data_type(DataType::Utf8),
            false => field.as_ref().clone(),
        };
        Schema::new(self.rows.schema_ref().fields().iter().enumerate().map(field).collect::<Vec<_>>())
    }
}

fn position(schema: &Schema, name: &str) -> Option<usize> {
    schema.fields().iter().position(|field| field.name().eq_ignore_ascii_case(name))
}

/// The policies in the hidden table, in which the numbers of choices are the identifiers.
pub(super) fn kept_policies(
    batches: &[RecordBatch],
    names: &[String],
    reference: &PolicyReference,
    columns: &[String],
) -> Result<Policies, PolicyError> {
    let renamed: Vec<RecordBatch> = batches
        .iter()
        .map(|kept| {
            let columns = names.iter().zip(kept.columns().iter().skip(2));
            batch(columns.map(|(name, column)| (name.as_str(), Arc::clone(column))).collect::<Vec<_>>())
        })
        .collect();
    Policies::read(&renamed, reference, columns)
}

/// The choices in the hidden table: number, whether they refuse anything, and content as in [`PolicyRows::content`].
pub(super) fn kept_content(batches: &[RecordBatch], person: Option<usize>) -> Vec<(i64, bool, Vec<u8>)> {
    let mut found: BTreeMap<i64, (bool, Vec<Vec<u8>>)> = BTreeMap::new();
    for kept in batches {
        let numbers = kept.column(0).as_primitive::<Int64Type>();
        let restricted = kept.column(1).as_boolean();
        let Ok(converted) = converted(&kept.columns()[2..], person) else { continue };
        for row in 0..kept.num_rows() {
            let (is_restricted, rows) = found.entry(numbers.value(row)).or_default();
            *is_restricted |= restricted.value(row);
            rows.push(converted.row(row).data().to_vec());
        }
    }
    found.into_iter().map(|(number, (is_restricted, rows))| (number, is_restricted, content(rows))).collect()
}

/// The rows of all columns but the one that identifies persons, as bytes.
fn converted(columns: &[ArrayRef], person: Option<usize>) -> Result<Rows, ArrowError> {
    let others = columns.iter().enumerate().filter(|(position, _)| Some(*position) != person);
    row_bytes(&others.map(|(_, column)| Arc::clone(column)).collect::<Vec<ArrayRef>>())
}

/// Rows as bytes that do not depend on their order.
fn content(mut rows: Vec<Vec<u8>>) -> Vec<u8> {
    rows.sort_unstable();
    rows.into_iter().flat_map(|row| (row.len() as u64).to_le_bytes().into_iter().chain(row)).collect()
}
