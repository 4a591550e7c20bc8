//! Reading a table of choices.

use std::collections::HashMap;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Date32Array, Int64Array, RecordBatch, StringArray,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Date32Type, Float64Type, Int64Type};

use super::error::{PolicyError, PolicyRowError};
use super::intern::Names;
use super::terms::{FOREVER, NEVER, Terms};
use super::{EVERYBODY, NO_TERMS, Pair, PairId, Policies, is_same};
use crate::parser::PolicyReference;

impl Policies {
    /// Reads the table of choices of a view with these columns. Persons are texts as Arrow casts them.
    ///
    /// # Errors
    /// The first of: a column that is missing or of the wrong type, or rows that can't be understood, counted.
    pub fn read(
        batches: &[RecordBatch],
        reference: &PolicyReference,
        view_columns: &[String],
    ) -> Result<Policies, PolicyError> {
        let mut reader = PolicyReader::new(reference, view_columns);
        for batch in batches {
            let columns = Columns::find(batch, reference, view_columns)?;
            reader.add(&columns, batch.num_rows());
        }
        reader.finish()
    }
}

/// The column that speaks of columns without an opt-in of their own.
const OTHERS_OPT_IN: &str = "others_op";

/// Columns of a table of choices that would say whether a column is shown, and until when, but of none that the view has.
pub(crate) fn unused_choices<'a>(names: impl Iterator<Item = &'a str>, view_columns: &[&str]) -> Vec<&'a str> {
    let about = |name: &str| {
        let lower = name.to_lowercase();
        lower.strip_suffix("_op").or_else(|| lower.strip_suffix("_until")).map(str::to_owned)
    };
    let is_unused = |name: &&str| {
        let known = |about: &String| view_columns.iter().any(|column| column.eq_ignore_ascii_case(about));
        !name.eq_ignore_ascii_case(OTHERS_OPT_IN) && about(name).is_some_and(|about| !known(&about))
    };
    names.filter(is_unused).collect()
}

/// The columns of one batch, as what they mean.
struct Columns {
    person: StringArray,
    purpose: Option<StringArray>,
    recipient: Option<StringArray>,
    /// Null where it is no whole number.
    k: Int64Array,
    level: Option<Int64Array>,
    opt_in: Vec<Option<OptIn>>,
    until: Vec<Option<Until>>,
}

/// Null is a refusal; where it was not null in the table, it is a mistake.
struct OptIn {
    truths: BooleanArray,
    given: ArrayRef,
}

struct Until {
    dates: Date32Array,
    given: ArrayRef,
}

impl Columns {
    fn find(batch: &RecordBatch, reference: &PolicyReference, view_columns: &[String]) -> Result<Self, PolicyError> {
        let table = Table { batch, name: reference.table.to_string() };
        let level = match &reference.level_column {
            Some(column) => Some(table.whole_numbers(column)?),
            None => None,
        };
        let mut opt_in = Vec::with_capacity(view_columns.len());
        let mut until = Vec::with_capacity(view_columns.len());
        for column in view_columns {
            let own = table.opt_in(&format!("{column}_op"))?;
            opt_in.push(match own {
                Some(own) => Some(own),
                None => table.opt_in(OTHERS_OPT_IN)?,
            });
            until.push(table.until(&format!("{column}_until"))?);
        }
        Ok(Columns {
            person: table.texts(&reference.person_column)?,
            purpose: table.optional_texts("purpose")?,
            recipient: table.optional_texts("recipient")?,
            k: table.whole_numbers(&reference.k_column)?,
            level,
            opt_in,
            until,
        })
    }
}

struct Table<'b> {
    batch: &'b RecordBatch,
    name: String,
}

impl Table<'_> {
    fn column(&self, column: &str) -> Result<Option<ArrayRef>, PolicyError> {
        let schema = self.batch.schema();
        let is_it = |position: &usize| schema.field(*position).name().eq_ignore_ascii_case(column);
        let found: Vec<usize> = (0..schema.fields().len()).filter(is_it).collect();
        match found.as_slice() {
            [] => Ok(None),
            [position] => {
                let array = self.batch.column(*position);
                Ok(Some(match array.data_type() {
                    DataType::Dictionary(_, values) => cast(array, values).unwrap_or_else(|_| array.clone()),
                    _ => array.clone(),
                }))
            }
            _ => Err(PolicyError::SeveralColumns { table: self.name.clone(), column: column.to_owned() }),
        }
    }

    fn needed(&self, column: &str) -> Result<ArrayRef, PolicyError> {
        let missing = || PolicyError::NoColumn { table: self.name.clone(), column: column.to_owned() };
        self.column(column)?.ok_or_else(missing)
    }

    fn wrong_type(&self, column: &str, expected: &'static str, array: &ArrayRef) -> PolicyError {
        PolicyError::WrongType {
            table: self.name.clone(),
            column: column.to_owned(),
            expected,
            found: array.data_type().to_string(),
        }
    }

    fn as_texts(&self, column: &str, array: &ArrayRef) -> Result<StringArray, PolicyError> {
        let texts = cast(array, &DataType::Utf8).map_err(|_| self.wrong_type(column, "text", array))?;
        Ok(texts.as_string().clone())
    }

    fn texts(&self, column: &str) -> Result<StringArray, PolicyError> {
        self.as_texts(column, &self.needed(column)?)
    }

    fn optional_texts(&self, column: &str) -> Result<Option<StringArray>, PolicyError> {
        self.column(column)?.map(|array| self.as_texts(column, &array)).transpose()
    }

    /// Whole numbers from 0; everything else is null.
    fn whole_numbers(&self, column: &str) -> Result<Int64Array, PolicyError> {
        let array = self.needed(column)?;
        let wrong = || self.wrong_type(column, "whole numbers", &array);
        match array.data_type() {
            kind if kind.is_integer() => {
                let numbers = cast(&array, &DataType::Int64).map_err(|_| wrong())?;
                Ok(numbers.as_primitive::<Int64Type>().clone())
            }
            kind if kind.is_numeric() || is_text(kind) => {
                let numbers = cast(&array, &DataType::Float64).map_err(|_| wrong())?;
                let whole = numbers.as_primitive::<Float64Type>().iter().map(|number| {
                    number.filter(|number| number.fract() == 0.0 && number.abs() < 1e15).map(|number| number as i64)
                });
                Ok(whole.collect())
            }
            _ => Err(wrong()),
        }
    }

    fn opt_in(&self, column: &str) -> Result<Option<OptIn>, PolicyError> {
        let Some(given) = self.column(column)? else { return Ok(None) };
        let truths = match given.data_type() {
            DataType::Boolean => given.as_boolean().clone(),
            DataType::Null => BooleanArray::new_null(given.len()),
            kind if kind.is_integer() || is_text(kind) => {
                self.as_texts(column, &given)?.iter().map(|text| text.and_then(truth)).collect()
            }
            _ => return Err(self.wrong_type(column, "true or false", &given)),
        };
        Ok(Some(OptIn { truths, given }))
    }

    fn until(&self, column: &str) -> Result<Option<Until>, PolicyError> {
        let Some(given) = self.column(column)? else { return Ok(None) };
        let is_date =
            matches!(given.data_type(), DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) | DataType::Null);
        let wrong = || self.wrong_type(column, "dates", &given);
        if !is_date && !is_text(given.data_type()) {
            return Err(wrong());
        }
        let dates = cast(&given, &DataType::Date32).map_err(|_| wrong())?.as_primitive::<Date32Type>().clone();
        Ok(Some(Until { dates, given }))
    }
}

fn is_text(kind: &DataType) -> bool {
    matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

fn truth(text: &str) -> Option<bool> {
    let is_any = |words: [&str; 5]| words.iter().any(|word| text.trim().eq_ignore_ascii_case(word));
    if is_any(["t", "true", "1", "y", "yes"]) {
        Some(true)
    } else if is_any(["f", "false", "0", "n", "no"]) {
        Some(false)
    } else {
        None
    }
}

/// Purposes or recipients, by every way they are spelled.
#[derive(Default)]
struct Spellings {
    names: Names,
    /// Per spelling the number of the first one that is the same in another case.
    same_as: Vec<u32>,
}

impl Spellings {
    fn number(&mut self, text: &str) -> u32 {
        let number = self.names.number(text);
        if number as usize == self.same_as.len() {
            let first = (0..number).find(|&known| is_same(Some(self.names.get(known)), text));
            self.same_as.push(first.unwrap_or(number));
        }
        self.same_as[number as usize]
    }
}

/// Rows of one column that are wrong in the same way.
struct WrongRows {
    column: String,
    fault: PolicyRowError,
    n_rows: usize,
    first_row: usize,
}

/// Who chose what, as far as read.
struct PolicyReader<'r> {
    reference: &'r PolicyReference,
    view_columns: &'r [String],
    persons: Names,
    terms: Terms,
    purposes: Spellings,
    recipients: Spellings,
    pair_numbers: HashMap<(Option<u32>, Option<u32>), usize>,
    terms_of: Vec<Vec<u32>>,
    pairs: Vec<Pair>,
    n_rows: usize,
    has_purposes: bool,
    has_recipients: bool,
    wrong: Vec<WrongRows>,
    /// The last day per column in the row that is being read.
    until: Vec<i32>,
}

impl<'r> PolicyReader<'r> {
    fn new(reference: &'r PolicyReference, view_columns: &'r [String]) -> Self {
        PolicyReader {
            reference,
            view_columns,
            persons: Names::default(),
            terms: Terms::new(view_columns.len()),
            purposes: Spellings::default(),
            recipients: Spellings::default(),
            pair_numbers: HashMap::new(),
            terms_of: Vec::new(),
            pairs: Vec::new(),
            n_rows: 0,
            has_purposes: false,
            has_recipients: false,
            wrong: Vec::new(),
            until: vec![FOREVER; view_columns.len()],
        }
    }

    fn add(&mut self, columns: &Columns, n_rows: usize) {
        self.has_purposes |= columns.purpose.is_some();
        self.has_recipients |= columns.recipient.is_some();
        for row in 0..n_rows {
            self.n_rows += 1;
            self.add_row(columns, row);
        }
    }

    /// Adds one row; everything that is wrong in it is counted, and then the row is nothing.
    fn add_row(&mut self, columns: &Columns, row: usize) {
        let reference = self.reference;
        let person = cell(&columns.person, row);
        let purpose = columns.purpose.as_ref().map(|column| cell(column, row));
        let recipient = columns.recipient.as_ref().map(|column| cell(column, row));
        let k = number(&columns.k, row).and_then(|k| u32::try_from(k).ok());
        let level = match &columns.level {
            Some(column) => number(column, row).and_then(|level| u8::try_from(level).ok()),
            None => Some(0),
        };
        if person.is_none() {
            self.count(&reference.person_column, PolicyRowError::Null);
        }
        if purpose == Some(None) {
            self.count("purpose", PolicyRowError::Null);
        }
        if recipient == Some(None) {
            self.count("recipient", PolicyRowError::Null);
        }
        if k.is_none() {
            self.count(&reference.k_column, PolicyRowError::NoWholeNumber);
        }
        if level.is_none() {
            self.count(reference.level_column.as_deref().unwrap_or_default(), PolicyRowError::NoLevel);
        }
        for column in 0..self.view_columns.len() {
            self.until[column] = self.last_day(columns, column, row);
        }
        let (Some(person), Some(k), Some(level)) = (person, k, level) else { return };
        if purpose == Some(None) || recipient == Some(None) {
            return;
        }
        let pair = self.pair(purpose.flatten(), recipient.flatten());
        let person = self.persons.number(person) as usize;
        let terms = self.terms.number(k, level, &self.until);
        let of_pair = &mut self.terms_of[pair];
        if of_pair.len() <= person {
            of_pair.resize(person + 1, NO_TERMS);
        }
        if of_pair[person] == NO_TERMS {
            of_pair[person] = terms;
        } else {
            self.count(&reference.person_column, PolicyRowError::SecondChoice);
        }
    }

    /// The last day on which a column may be shown.
    fn last_day(&mut self, columns: &Columns, column: usize, row: usize) -> i32 {
        let view_columns = self.view_columns;
        let is_allowed = match &columns.opt_in[column] {
            None => true,
            Some(opt_in) if opt_in.truths.is_null(row) => {
                if !opt_in.given.is_null(row) {
                    self.count(&format!("{}_op", view_columns[column]), PolicyRowError::NoTruth);
                }
                false
            }
            Some(opt_in) => opt_in.truths.value(row),
        };
        let last_day = match &columns.until[column] {
            None => FOREVER,
            Some(until) if until.dates.is_null(row) => {
                if !until.given.is_null(row) {
                    self.count(&format!("{}_until", view_columns[column]), PolicyRowError::NoDate);
                }
                NEVER
            }
            Some(until) => until.dates.value(row),
        };
        if is_allowed { last_day } else { NEVER }
    }

    fn pair(&mut self, purpose: Option<&str>, recipient: Option<&str>) -> usize {
        let purpose_number = purpose.map(|purpose| self.purposes.number(purpose));
        let recipient_number = recipient.map(|recipient| self.recipients.number(recipient));
        *self.pair_numbers.entry((purpose_number, recipient_number)).or_insert_with(|| {
            let (purpose, recipient) = (purpose.map(str::to_owned), recipient.map(str::to_owned));
            self.pairs.push(Pair { purpose, recipient });
            self.terms_of.push(Vec::new());
            self.pairs.len() - 1
        })
    }

    fn count(&mut self, column: &str, fault: PolicyRowError) {
        match self.wrong.iter_mut().find(|wrong| wrong.column == column && wrong.fault == fault) {
            Some(wrong) => wrong.n_rows += 1,
            None => {
                self.wrong.push(WrongRows { column: column.to_owned(), fault, n_rows: 1, first_row: self.n_rows });
            }
        }
    }

    fn finish(mut self) -> Result<Policies, PolicyError> {
        if let Some(WrongRows { column, fault, n_rows, first_row }) = self.wrong.into_iter().next() {
            let table = self.reference.table.to_string();
            return Err(PolicyError::Rows { table, column, fault, n_rows, first_row });
        }
        if self.pairs.is_empty() && !self.has_purposes && !self.has_recipients {
            self.pairs.push(Pair { purpose: None, recipient: None });
            self.terms_of.push(Vec::new());
        }
        for of_pair in &mut self.terms_of {
            of_pair.resize(self.persons.len(), NO_TERMS);
            of_pair.shrink_to_fit();
        }
        let mut policies = Policies {
            everybody: self.persons.find(EVERYBODY),
            persons: self.persons,
            terms: self.terms,
            pairs: self.pairs,
            terms_of: self.terms_of,
            largest_k: Vec::new(),
            has_purposes: self.has_purposes,
            has_recipients: self.has_recipients,
        };
        let largest_k = |person: u32| {
            let pairs = (0..policies.pairs.len()).map(PairId);
            // Nobody is without a row here, so there is a largest; and above every k nobody is shown.
            pairs.filter_map(|pair| policies.k_for(pair, person)).max().unwrap_or(u32::MAX)
        };
        policies.largest_k = (0..policies.n_persons() as u32).map(largest_k).collect();
        Ok(policies)
    }
}

fn cell(column: &StringArray, row: usize) -> Option<&str> {
    (!column.is_null(row)).then(|| column.value(row))
}

fn number(column: &Int64Array, row: usize) -> Option<i64> {
    (!column.is_null(row)).then(|| column.value(row))
}
