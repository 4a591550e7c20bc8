//! A released table as Parquet or Arrow IPC.
//!
//! Generalized columns are text, dictionary-encoded; renumbered keys are unsigned integers; copied columns have the type
//! they were read with, or text if they came from CSV; bounds have a type of their own. Metadata of the private file is not
//! copied, except names of extension types.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::types::{
    ArrowDictionaryKeyType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, LargeStringArray, PrimitiveArray, RecordBatch, StringArray,
    StringViewArray, make_array, new_null_array,
};
use arrow_buffer::{ArrowNativeType, Buffer, NullBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_row::{RowConverter, SortField};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use kohort_model::{NULL, Texts};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use rayon::prelude::*;

use super::cells::{CellIds, FileColumn, Kind, is_value};
use super::error::WriteError;
use crate::arrow_text::{Fixed, TextForm};
use crate::bounds::bound_type;
use crate::read::Original;

const ROWS_PER_BATCH: usize = 1 << 15;

/// A released table that can be asked for its rows as Arrow batches.
pub(super) struct ArrowTable<'a> {
    schema: SchemaRef,
    columns: Vec<(&'a CellIds<'a>, ToArray<'a>)>,
    n_rows: usize,
}

/// Makes an array of the cells with these ids.
type ToArray<'a> = Box<dyn Fn(&[u32]) -> Result<ArrayRef, ArrowError> + Sync + 'a>;

impl<'a> ArrowTable<'a> {
    pub(super) fn new(
        file_columns: &'a [FileColumn<'a>],
        n_rows: usize,
        original: Original<'_>,
    ) -> Result<Self, WriteError> {
        let mut fields = Vec::new();
        let mut columns = Vec::new();
        for column in file_columns {
            let field = field_of(column, original);
            let to_array = match column.texts.as_deref() {
                Some(texts) => text_to_array(&column.name, field.data_type(), texts)?,
                None => Box::new(|ids: &[u32]| fixed_array(&DataType::UInt32, ids.to_vec(), ids)),
            };
            fields.push(field);
            columns.push((&column.ids, to_array));
        }
        Ok(ArrowTable { schema: Arc::new(Schema::new(fields)), columns, n_rows })
    }

    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// All rows, batch by batch.
    pub(super) fn batches(&self) -> impl Iterator<Item = Result<RecordBatch, ArrowError>> + '_ {
        (0..self.n_rows).step_by(ROWS_PER_BATCH).map(|start| {
            let rows = start..(start + ROWS_PER_BATCH).min(self.n_rows);
            let arrays: Result<Vec<ArrayRef>, ArrowError> =
                self.columns.par_iter().map(|(ids, to_array)| to_array(&ids.of_rows(rows.clone()))).collect();
            RecordBatch::try_new(Arc::clone(&self.schema), arrays?)
        })
    }
}

/// How Parquet files are written.
pub(super) fn parquet_properties() -> WriterProperties {
    WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_created_by(concat!("kohort ", env!("CARGO_PKG_VERSION")).to_owned())
        .build()
}

fn field_of(column: &FileColumn<'_>, original: Original<'_>) -> Field {
    let labels = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let field = original.origin.fields[column.source].as_ref();
    match (column.kind, field) {
        (Kind::Labels, _) => Field::new(&*column.name, labels, true),
        (Kind::Bounds, field) => {
            Field::new(&*column.name, bound_type(&original.table.columns[column.source], field), true)
        }
        (Kind::Numbers, _) => Field::new(&*column.name, DataType::UInt32, true),
        (Kind::Copied, None) => Field::new(&*column.name, DataType::Utf8, true),
        (Kind::Copied, Some(field)) => {
            let is_extension = |key: &str| key.starts_with("ARROW:extension:");
            let metadata: HashMap<String, String> = field
                .metadata()
                .iter()
                .filter(|(key, _)| is_extension(key))
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect();
            field.clone().with_name(&*column.name).with_metadata(metadata)
        }
    }
}

/// A function that turns ids of these texts into arrays of a type. The texts of typed columns were made by reading values of
/// that type, so they can be turned back.
fn text_to_array<'a>(column: &str, data_type: &DataType, texts: &'a Texts) -> Result<ToArray<'a>, WriteError> {
    let data_type = data_type.clone();
    Ok(match TextForm::of(&data_type) {
        TextForm::Null => Box::new(move |ids| Ok(new_null_array(&data_type, ids.len()))),
        TextForm::Text => Box::new(move |ids| string_array(&data_type, texts, ids)),
        TextForm::Boolean => {
            let values: Vec<bool> = texts.iter().map(|text| text == "true").collect();
            Box::new(move |ids| {
                let cells = ids.iter().map(|id| is_value(id).then(|| values[*id as usize]));
                Ok(Arc::new(cells.collect::<BooleanArray>()))
            })
        }
        TextForm::Fixed(fixed) => match fixed.width() {
            1 => fixed_to_array(data_type, fixed, texts, |bits| bits as u8),
            2 => fixed_to_array(data_type, fixed, texts, |bits| bits as u16),
            4 => fixed_to_array(data_type, fixed, texts, |bits| bits as u32),
            8 => fixed_to_array(data_type, fixed, texts, |bits| bits as u64),
            _ => fixed_to_array(data_type, fixed, texts, |bits| bits),
        },
        TextForm::Dictionary(_) => match &data_type {
            DataType::Dictionary(keys, values) => dictionary_to_array(column, &data_type, keys, values, texts)?,
            _ => unreachable!("only dictionaries have this form"),
        },
        TextForm::RowEncoding => rows_to_array(&data_type, texts),
    })
}

fn nulls_of(ids: &[u32]) -> Option<NullBuffer> {
    ids.contains(&NULL).then(|| NullBuffer::from_iter(ids.iter().map(is_value)))
}

fn string_array(data_type: &DataType, texts: &Texts, ids: &[u32]) -> Result<ArrayRef, ArrowError> {
    let cells = ids.iter().map(|id| is_value(id).then(|| texts.get(*id)));
    Ok(match data_type {
        DataType::LargeUtf8 => Arc::new(cells.collect::<LargeStringArray>()),
        DataType::Utf8View => Arc::new(cells.collect::<StringViewArray>()),
        _ => {
            let n_bytes: usize = cells.clone().flatten().map(str::len).sum();
            if i32::try_from(n_bytes).is_err() {
                return Err(ArrowError::OffsetOverflowError(n_bytes));
            }
            Arc::new(cells.collect::<StringArray>())
        }
    })
}

fn fixed_array<T: ArrowNativeType>(data_type: &DataType, cells: Vec<T>, ids: &[u32]) -> Result<ArrayRef, ArrowError> {
    let data = ArrayData::builder(data_type.clone())
        .len(cells.len())
        .add_buffer(Buffer::from_vec(cells))
        .nulls(nulls_of(ids))
        .build()?;
    Ok(make_array(data))
}

fn fixed_to_array<T: ArrowNativeType + Sync>(
    data_type: DataType,
    fixed: Fixed,
    texts: &Texts,
    narrow: fn(i128) -> T,
) -> ToArray<'static> {
    let value = |text| narrow(fixed.bits(text).expect("the text was made from a value of this type"));
    let values: Vec<T> = texts.iter().map(value).collect();
    Box::new(move |ids| {
        let cells = ids.iter().map(|id| if is_value(id) { values[*id as usize] } else { T::default() });
        fixed_array(&data_type, cells.collect(), ids)
    })
}

fn dictionary_to_array(
    column: &str,
    data_type: &DataType,
    key_type: &DataType,
    value_type: &DataType,
    texts: &Texts,
) -> Result<ToArray<'static>, WriteError> {
    let too_many = || WriteError::TooManyLabels { column: column.to_owned(), data_type: data_type.to_string() };
    let every_id: Vec<u32> = (0..texts.len() as u32).collect();
    let values = text_to_array(column, value_type, texts)?(&every_id).map_err(|_| too_many())?;
    let last_id = texts.len().saturating_sub(1);
    let numbered = match key_type {
        DataType::Int8 => numbered_by::<Int8Type>(values, last_id),
        DataType::Int16 => numbered_by::<Int16Type>(values, last_id),
        DataType::Int64 => numbered_by::<Int64Type>(values, last_id),
        DataType::UInt8 => numbered_by::<UInt8Type>(values, last_id),
        DataType::UInt16 => numbered_by::<UInt16Type>(values, last_id),
        DataType::UInt32 => numbered_by::<UInt32Type>(values, last_id),
        DataType::UInt64 => numbered_by::<UInt64Type>(values, last_id),
        _ => numbered_by::<Int32Type>(values, last_id),
    };
    numbered.ok_or_else(too_many)
}

/// A dictionary array with keys of this type; `None` if the last id does not fit the type.
fn numbered_by<K: ArrowDictionaryKeyType>(values: ArrayRef, last_id: usize) -> Option<ToArray<'static>> {
    K::Native::from_usize(last_id)?;
    Some(Box::new(move |ids| {
        let key = |id: &u32| if is_value(id) { K::Native::usize_as(*id as usize) } else { K::Native::default() };
        let keys = ScalarBuffer::from_iter(ids.iter().map(key));
        let keys = PrimitiveArray::<K>::try_new(keys, nulls_of(ids))?;
        Ok(Arc::new(DictionaryArray::try_new(keys, Arc::clone(&values))?))
    }))
}

fn rows_to_array<'a>(data_type: &DataType, texts: &'a Texts) -> ToArray<'a> {
    let converter = RowConverter::new(vec![SortField::new(data_type.clone())]).expect("it was read with one like it");
    let null = converter.convert_columns(&[new_null_array(data_type, 1)]).expect("nulls are of every type");
    let null = null.row(0).as_ref().to_vec();
    Box::new(move |ids| {
        let parser = converter.parser();
        let encoded: Vec<Vec<u8>> =
            ids.iter().map(|id| if is_value(id) { bytes_of_hex(texts.get(*id)) } else { null.clone() }).collect();
        let mut arrays = converter.convert_rows(encoded.iter().map(|row| parser.parse(row)))?;
        Ok(arrays.swap_remove(0))
    })
}

fn bytes_of_hex(digits: &str) -> Vec<u8> {
    let digit = |digit: u8| (digit as char).to_digit(16).expect("the text was made of hexadecimal digits") as u8;
    digits.as_bytes().chunks_exact(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}
