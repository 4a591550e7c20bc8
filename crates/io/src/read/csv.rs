//! [`CsvFile`]: a strict, streaming reader of separated text into dictionaries.
//!
//! # Guarantee
//! A bare empty cell (or a configured word) is null, a quoted one is text. Nothing is trimmed, guessed or replaced. Every
//! row has as many cells as the header; empty lines at the very end are no rows. In a file of one column every line is a
//! row, and an empty line is a null. A bad quote or invalid bytes end the reading; rows of the wrong length are all counted.
//!
//! # Cost
//! One pass: one thread cuts blocks into cells, and all threads number the cells, each column by itself.

mod batches;
mod blocks;
mod decode;
mod record;
mod separator;

use std::io::Read;

use encoding_rs::Encoding;
use kohort_model::NULL;
use kohort_model::spec::CsvSpec;
use rayon::prelude::*;

use super::dictionary::TextDictionary;
use super::error::{ReadError, RowNumber, RowNumbers};
use super::persons::{KnownPersons, NOBODY, NamedPerson};
use super::{Keep, Kept, RawColumn};
pub(crate) use batches::CsvBatches;
use blocks::{BlockEnd, TextBlocks};
use decode::decoded;
use record::{AtEnd, BadQuote, Cell, Span, cut_record};
use separator::find_separator;

const BLOCK_SIZE: usize = 1 << 20;
const LARGEST_ROW: usize = 1 << 28;
const SEPARATOR_SAMPLE: usize = 1 << 16;
const MOST_ROWS: u64 = u32::MAX as u64 - 1;

/// A CSV file whose header was read.
pub(crate) struct CsvFile<'a> {
    blocks: TextBlocks<Box<dyn Read + 'a>>,
    /// The bytes of the current block that are before the first row.
    consumed: usize,
    separator: u8,
    null_words: Vec<String>,
    encoding: &'static Encoding,
    names: Vec<String>,
}

impl<'a> CsvFile<'a> {
    /// Finds out how the file is written, and reads the names of its columns.
    pub(crate) fn open(reader: Box<dyn Read + 'a>, spec: &CsvSpec) -> Result<Self, ReadError> {
        Self::open_in_blocks(reader, spec, BLOCK_SIZE)
    }

    /// Does the same as [`CsvFile::open`], but reads at least this many bytes at once. The size of blocks does not change the
    /// cells.
    pub(crate) fn open_in_blocks(
        reader: Box<dyn Read + 'a>,
        spec: &CsvSpec,
        block_size: usize,
    ) -> Result<Self, ReadError> {
        let (reader, encoding) = decoded(reader, spec.encoding.as_deref())?;
        let mut file = CsvFile {
            blocks: TextBlocks::new(reader, block_size),
            consumed: 0,
            separator: b',',
            null_words: spec.null.clone().unwrap_or_else(|| vec![String::new()]),
            encoding,
            names: Vec::new(),
        };
        file.read_header(spec)?;
        Ok(file)
    }

    /// The names of the columns.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// What separates cells.
    pub(crate) fn separator(&self) -> u8 {
        self.separator
    }

    fn read_header(&mut self, spec: &CsvSpec) -> Result<(), ReadError> {
        let given_separator = spec.separator.map(separator_byte).transpose()?;
        let first_row = if spec.header == Some(false) { RowNumber::Data(1) } else { RowNumber::Header };
        loop {
            let block = self.blocks.next(0).map_err(|source| ReadError::Io { source })?;
            let at_end = if block.end == BlockEnd::File { AtEnd::Yes } else { AtEnd::No };
            let more_may_come = block.end == BlockEnd::More;
            if block.text.is_empty() && block.end == BlockEnd::File {
                return Err(ReadError::Empty);
            }
            let separator = match given_separator {
                Some(separator) => separator,
                None if more_may_come && block.text.len() < SEPARATOR_SAMPLE => continue,
                None if block.text.len() > SEPARATOR_SAMPLE => {
                    find_separator(&block.text[..block.text.floor_char_boundary(SEPARATOR_SAMPLE)], AtEnd::No)
                }
                None => find_separator(block.text, at_end),
            };
            let mut spans = Vec::new();
            match cut_record(block.text.as_bytes(), 0, separator, at_end, &mut spans) {
                Ok(Some(next)) => {
                    let mut scratch = String::new();
                    self.separator = separator;
                    if first_row == RowNumber::Header {
                        self.names = spans.iter().map(|span| span.name(block.text, &mut scratch)).collect();
                        self.consumed = next;
                    } else {
                        self.names = (1..=spans.len()).map(|position| format!("column_{position}")).collect();
                    }
                    return Ok(());
                }
                Ok(None) if more_may_come && block.text.len() > LARGEST_ROW => {
                    return Err(ReadError::RowTooLong { row: first_row });
                }
                Ok(None) if more_may_come => {}
                Ok(None) => return Err(self.invalid_text(first_row)),
                Err(bad_quote) => return Err(bad_quote.problem(first_row)),
            }
        }
    }

    /// Reads the columns at these positions, in this order.
    ///
    /// # Errors
    /// Every problem that can be found.
    pub(crate) fn read(mut self, wanted: &[(usize, Keep<'_>)]) -> Result<Vec<Kept>, Vec<ReadError>> {
        let mut columns: Vec<ColumnBuilder<'_>> =
            wanted.iter().map(|&(position, keep)| ColumnBuilder::new(position, keep)).collect();
        let mut rows = RowCounter::new(self.names.len());
        let mut problems = Vec::new();
        let mut spans: Vec<Span> = Vec::new();
        loop {
            spans.clear();
            let block = match self.blocks.next(self.consumed) {
                Ok(block) => block,
                Err(source) => {
                    problems.push(ReadError::Io { source });
                    break;
                }
            };
            let (next, stop) = rows.cut_block(block.text, block.end, self.separator, &mut spans);
            if let Some(stop) = stop {
                problems.push(stop.problem(rows.next_row()));
                break;
            }
            if rows.ragged.is_none() {
                let (null_words, n_columns) = (&self.null_words, rows.n_columns);
                columns.par_iter_mut().for_each(|column| column.add_cells(block.text, &spans, n_columns, null_words));
            }
            if block.end == BlockEnd::Invalid {
                problems.push(self.invalid_text(rows.next_row()));
                break;
            }
            if block.end == BlockEnd::File {
                break;
            }
            self.consumed = next;
        }
        if problems.is_empty() && rows.n_rows == 0 {
            problems.push(ReadError::NoRows);
        }
        problems.extend(rows.ragged);
        if problems.is_empty() { Ok(columns.into_iter().map(ColumnBuilder::finish).collect()) } else { Err(problems) }
    }

    fn invalid_text(&self, row: RowNumber) -> ReadError {
        ReadError::InvalidText { row, encoding: self.encoding.name().to_owned() }
    }
}

fn separator_byte(separator: char) -> Result<u8, ReadError> {
    match u8::try_from(separator) {
        Ok(byte) if byte.is_ascii() && !matches!(byte, b'"' | b'\n' | b'\r') => Ok(byte),
        _ => Err(ReadError::BadSeparator { separator }),
    }
}

impl Span {
    fn name(self, text: &str, scratch: &mut String) -> String {
        match self.cell(text, scratch) {
            Cell::Bare(name) | Cell::Quoted(name) => name.to_owned(),
        }
    }
}

impl BadQuote {
    fn problem(self, row: RowNumber) -> ReadError {
        match self {
            BadQuote::TextAfter => ReadError::TextAfterQuote { row },
            BadQuote::Unclosed => ReadError::UnclosedQuote { row },
        }
    }
}

/// Why no more rows can be read.
enum Stop {
    BadQuote(BadQuote),
    RowTooLong,
    TooManyRows,
}

impl Stop {
    fn problem(self, row: RowNumber) -> ReadError {
        match self {
            Stop::BadQuote(bad_quote) => bad_quote.problem(row),
            Stop::RowTooLong => ReadError::RowTooLong { row },
            Stop::TooManyRows => ReadError::TooManyRows,
        }
    }
}

/// Counts rows, and checks their length.
struct RowCounter {
    n_columns: usize,
    /// The rows so far, including those of the wrong length, but without empty lines at the end.
    n_rows: u64,
    /// Empty lines after these rows. They are rows of the wrong length if another row follows.
    n_blank: u64,
    ragged: Option<ReadError>,
}

impl RowCounter {
    fn new(n_columns: usize) -> Self {
        RowCounter { n_columns, n_rows: 0, n_blank: 0, ragged: None }
    }

    /// The row after those that were read.
    fn next_row(&self) -> RowNumber {
        RowNumber::Data(self.n_rows + self.n_blank + 1)
    }

    /// Cuts all whole records of a block into cells. Returns where the next record begins, and why it stopped early, if it
    /// did.
    fn cut_block(&mut self, text: &str, end: BlockEnd, separator: u8, spans: &mut Vec<Span>) -> (usize, Option<Stop>) {
        let at_end = if end == BlockEnd::File { AtEnd::Yes } else { AtEnd::No };
        let mut at = 0;
        while at < text.len() {
            let n_before = spans.len();
            match cut_record(text.as_bytes(), at, separator, at_end, spans) {
                Ok(Some(next)) => {
                    at = next;
                    let cells = &spans[n_before..];
                    if self.n_columns > 1 && cells.len() == 1 && cells[0].is_bare_and_empty() {
                        self.n_blank += 1;
                        spans.truncate(n_before);
                        continue;
                    }
                    for _ in 0..std::mem::take(&mut self.n_blank) {
                        self.n_rows += 1;
                        self.add_ragged(1);
                    }
                    self.n_rows += 1;
                    if cells.len() != self.n_columns {
                        self.add_ragged(cells.len());
                        spans.truncate(n_before);
                    }
                    if self.n_rows > MOST_ROWS {
                        return (at, Some(Stop::TooManyRows));
                    }
                }
                Ok(None) if end == BlockEnd::More && text.len() - at > LARGEST_ROW => {
                    return (at, Some(Stop::RowTooLong));
                }
                Ok(None) => break,
                Err(bad_quote) => return (at, Some(Stop::BadQuote(bad_quote))),
            }
        }
        (at, None)
    }

    fn add_ragged(&mut self, n_cells: usize) {
        let first = ReadError::RaggedRows { expected: self.n_columns, found: n_cells, rows: RowNumbers::default() };
        if let ReadError::RaggedRows { rows, .. } = self.ragged.get_or_insert(first) {
            rows.add(self.n_rows);
        }
    }
}

/// A column under construction.
struct ColumnBuilder<'p> {
    position: usize,
    cells: Cells<'p>,
    scratch: String,
}

/// What is kept of the cells so far.
enum Cells<'p> {
    Texts { dictionary: TextDictionary, ids: Vec<u32> },
    Persons { known: &'p KnownPersons<'p>, named: Vec<NamedPerson> },
}

impl<'p> ColumnBuilder<'p> {
    fn new(position: usize, keep: Keep<'p>) -> Self {
        let cells = match keep {
            Keep::Texts => Cells::Texts { dictionary: TextDictionary::default(), ids: Vec::new() },
            Keep::Persons(known) => Cells::Persons { known, named: Vec::new() },
        };
        ColumnBuilder { position, cells, scratch: String::new() }
    }

    /// Takes the cells of this column out of the cells of whole rows.
    fn add_cells(&mut self, text: &str, spans: &[Span], n_columns: usize, null_words: &[String]) {
        let spans = spans.iter().skip(self.position).step_by(n_columns);
        let is_null = |bare: &str| null_words.iter().any(|word| word == bare);
        let scratch = &mut self.scratch;
        match &mut self.cells {
            Cells::Texts { dictionary, ids } => {
                ids.reserve(spans.len());
                ids.extend(spans.map(|span| match span.cell(text, scratch) {
                    Cell::Bare(bare) if is_null(bare) => NULL,
                    Cell::Bare(text) | Cell::Quoted(text) => dictionary.id(text),
                }));
            }
            Cells::Persons { known, named } => {
                named.reserve(spans.len());
                named.extend(spans.map(|span| match span.cell(text, scratch) {
                    Cell::Bare(bare) if is_null(bare) => NOBODY,
                    Cell::Bare(key) | Cell::Quoted(key) => known.named(key),
                }));
            }
        }
    }

    fn finish(self) -> Kept {
        match self.cells {
            Cells::Texts { dictionary, mut ids } => {
                ids.shrink_to_fit();
                Kept::Texts(RawColumn { texts: dictionary.into_texts(), ids, field: None })
            }
            Cells::Persons { named, .. } => Kept::Persons(named),
        }
    }
}

#[cfg(test)]
mod tests;
