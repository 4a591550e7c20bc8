//! Reading a table of choices.

use std::collections::HashMap;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Date32Array, Int64Array, RecordBatch, StringArray,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Date32Type, Float64Type, Int64Type};

use super::error::{PolicyError, PolicyRowError};
use super::{Choice, EVERYBODY, NO_CHOICE, Pair, PairId, Policies, is_same};
use crate::names::Names;
use crate::parser::PolicyReference;

impl Policies {
    /// Reads the table of choices of a view with these columns. Persons' ids are cast to text by Arrow.
    ///
    /// # Errors
    /// If a column is missing or has a wrong type, or rows can't be understood. The error counts such rows.
    pub(crate) fn read(
        batches: &[RecordBatch],
        reference: &PolicyReference,
        view_columns: &[String],
    ) -> Result<Policies, PolicyError> {
        let mut reader = PolicyReader::new(reference, view_columns);
        for batch in batches {
            let columns = ChoiceColumns::find(batch, reference, view_columns)?;
            reader.add(&columns, batch.num_rows());
        }
        reader.finish()
    }
}

/// The last day of a refused column.
const NEVER: i32 = i32::MIN;
/// The last day of a column that may always be shown.
const FOREVER: i32 = i32::MAX;

/// The opt-in for all columns without an opt-in of their own.
const OTHERS_OPT_IN: &str = "others_op";

/// Columns named `<column>_op` or `<column>_until` for a column that the view does not have.
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

/// The columns of one batch by their meaning.
struct ChoiceColumns {
    person: StringArray,
    purpose: Option<StringArray>,
    recipient: Option<StringArray>,
    /// Null if the cell is not a whole number.
    k: Int64Array,
    level: Option<Int64Array>,
    opt_in: Vec<Option<Understood<BooleanArray>>>,
    until: Vec<Option<Understood<Date32Array>>>,
}

/// The cells of a column in the type that they must have. A null among them is a mistake in the table, unless the
/// table's cell is null as well.
struct Understood<A> {
    cells: A,
    given: ArrayRef,
}

impl<A: Array> Understood<A> {
    fn is_mistake(&self, row: usize) -> bool {
        self.cells.is_null(row) && !self.given.is_null(row)
    }
}

impl ChoiceColumns {
    fn find(batch: &RecordBatch, reference: &PolicyReference, view_columns: &[String]) -> Result<Self, PolicyError> {
        let table = ChoiceTable { batch, name: reference.table.to_string() };
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
        Ok(ChoiceColumns {
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

struct ChoiceTable<'b> {
    batch: &'b RecordBatch,
    name: String,
}

impl ChoiceTable<'_> {
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

    /// Whole numbers from 0. Other values become null.
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

    fn opt_in(&self, column: &str) -> Result<Option<Understood<BooleanArray>>, PolicyError> {
        let Some(given) = self.column(column)? else { return Ok(None) };
        let cells = match given.data_type() {
            DataType::Boolean => given.as_boolean().clone(),
            DataType::Null => BooleanArray::new_null(given.len()),
            kind if kind.is_integer() || is_text(kind) => {
                self.as_texts(column, &given)?.iter().map(|text| text.and_then(truth)).collect()
            }
            _ => return Err(self.wrong_type(column, "true or false", &given)),
        };
        Ok(Some(Understood { cells, given }))
    }

    fn until(&self, column: &str) -> Result<Option<Understood<Date32Array>>, PolicyError> {
        let Some(given) = self.column(column)? else { return Ok(None) };
        let is_date =
            matches!(given.data_type(), DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) | DataType::Null);
        let wrong = || self.wrong_type(column, "dates", &given);
        if !is_date && !is_text(given.data_type()) {
            return Err(wrong());
        }
        let cells = cast(&given, &DataType::Date32).map_err(|_| wrong())?.as_primitive::<Date32Type>().clone();
        Ok(Some(Understood { cells, given }))
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

/// Purposes or recipients in all their spellings.
#[derive(Default)]
struct Spellings {
    names: Names,
    /// For each spelling, the number of the first spelling that differs only in case.
    same_as: Vec<u32>,
}

impl Spellings {
    fn number(&mut self, text: &str) -> u32 {
        let number = self.names.number(text);
        if number as usize == self.same_as.len() {
            let first = (0..number).find(|&known| is_same(self.names.texts().get(known), text));
            self.same_as.push(first.unwrap_or(number));
        }
        self.same_as[number as usize]
    }
}

/// Rows with the same mistake in the same column.
struct WrongRows {
    column: String,
    fault: PolicyRowError,
    n_rows: usize,
    first_row: usize,
}

/// The choices read so far.
struct PolicyReader<'r> {
    reference: &'r PolicyReference,
    view_columns: &'r [String],
    policies: Policies,
    purposes: Spellings,
    recipients: Spellings,
    pair_numbers: HashMap<(Option<u32>, Option<u32>), usize>,
    n_rows: usize,
    /// The first kind of mistake.
    wrong: Option<WrongRows>,
    /// The choice in the row that is being read.
    choice: Choice,
}

impl<'r> PolicyReader<'r> {
    fn new(reference: &'r PolicyReference, view_columns: &'r [String]) -> Self {
        let n_columns = view_columns.len();
        PolicyReader {
            reference,
            view_columns,
            policies: Policies { n_columns, ..Policies::default() },
            purposes: Spellings::default(),
            recipients: Spellings::default(),
            pair_numbers: HashMap::new(),
            n_rows: 0,
            wrong: None,
            choice: Choice { until: vec![FOREVER; n_columns].into(), ..Choice::default() },
        }
    }

    fn add(&mut self, columns: &ChoiceColumns, n_rows: usize) {
        self.policies.has_purposes |= columns.purpose.is_some();
        self.policies.has_recipients |= columns.recipient.is_some();
        for row in 0..n_rows {
            self.n_rows += 1;
            self.add_row(columns, row);
        }
    }

    /// Adds one row. If it has mistakes, counts them and ignores the row.
    fn add_row(&mut self, columns: &ChoiceColumns, row: usize) {
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
            self.choice.until[column] = self.last_day(columns, column, row);
        }
        let (Some(person), Some(k), Some(level)) = (person, k, level) else { return };
        if purpose == Some(None) || recipient == Some(None) {
            return;
        }
        (self.choice.k, self.choice.level) = (k, level);
        let pair = self.pair(purpose.flatten(), recipient.flatten());
        let Policies { persons, choices, choice_of, .. } = &mut self.policies;
        let person = persons.number(person) as usize;
        let known = choices.get_index_of(&self.choice);
        let choice = known.unwrap_or_else(|| choices.insert_full(self.choice.clone()).0);
        let of_pair = &mut choice_of[pair];
        if of_pair.len() <= person {
            of_pair.resize(person + 1, NO_CHOICE);
        }
        if of_pair[person] == NO_CHOICE {
            of_pair[person] = choice as u32;
        } else {
            self.count(&reference.person_column, PolicyRowError::SecondChoice);
        }
    }

    /// The last day on which a column may be shown.
    fn last_day(&mut self, columns: &ChoiceColumns, column: usize, row: usize) -> i32 {
        let (opt_in, until) = (columns.opt_in[column].as_ref(), columns.until[column].as_ref());
        if opt_in.is_some_and(|opt_in| opt_in.is_mistake(row)) {
            self.count(&format!("{}_op", self.view_columns[column]), PolicyRowError::NoTruth);
        }
        if until.is_some_and(|until| until.is_mistake(row)) {
            self.count(&format!("{}_until", self.view_columns[column]), PolicyRowError::NoDate);
        }
        let is_allowed = opt_in.is_none_or(|opt_in| opt_in.cells.is_valid(row) && opt_in.cells.value(row));
        match until {
            _ if !is_allowed => NEVER,
            None => FOREVER,
            Some(until) if until.cells.is_null(row) => NEVER,
            Some(until) => until.cells.value(row),
        }
    }

    fn pair(&mut self, purpose: Option<&str>, recipient: Option<&str>) -> usize {
        let purpose_number = purpose.map(|purpose| self.purposes.number(purpose));
        let recipient_number = recipient.map(|recipient| self.recipients.number(recipient));
        *self.pair_numbers.entry((purpose_number, recipient_number)).or_insert_with(|| {
            let (purpose, recipient) = (purpose.map(str::to_owned), recipient.map(str::to_owned));
            self.policies.pairs.push(Pair { purpose, recipient });
            self.policies.choice_of.push(Vec::new());
            self.policies.pairs.len() - 1
        })
    }

    fn count(&mut self, column: &str, fault: PolicyRowError) {
        let first = || WrongRows { column: column.to_owned(), fault, n_rows: 0, first_row: self.n_rows };
        let wrong = self.wrong.get_or_insert_with(first);
        wrong.n_rows += usize::from(wrong.column == column && wrong.fault == fault);
    }

    fn finish(self) -> Result<Policies, PolicyError> {
        if let Some(WrongRows { column, fault, n_rows, first_row }) = self.wrong {
            let table = self.reference.table.to_string();
            return Err(PolicyError::Rows { table, column, fault, n_rows, first_row });
        }
        let mut policies = self.policies;
        if policies.pairs.is_empty() && !policies.has_purposes && !policies.has_recipients {
            policies.pairs.push(Pair { purpose: None, recipient: None });
            policies.choice_of.push(Vec::new());
        }
        for of_pair in &mut policies.choice_of {
            of_pair.resize(policies.persons.len(), NO_CHOICE);
            of_pair.shrink_to_fit();
        }
        policies.everybody = policies.persons.find(EVERYBODY);
        let largest_k = |person: u32| {
            let pairs = (0..policies.pairs.len()).map(PairId);
            // Everybody has a row here, so there is a largest k. Otherwise use the largest number, so that nothing is
            // shown.
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
