//! A released table as CSV.
//!
//! Lines end with LF, nulls are bare empty cells, and only cells that would otherwise be read as something else are quoted:
//! empty texts, texts that hold a separator, a quote or a line break, and words for null. All cores spell blocks of rows,
//! which are then written in order.

use std::io::{self, Write};
use std::ops::Range;

use kohort_model::{NULL, Texts};
use memchr::memchr3;
use rayon::prelude::*;

use super::cells::{CellIds, FileColumn};

const ROWS_PER_BLOCK: usize = 1 << 14;
const BLOCKS_AT_ONCE: usize = 16;

/// Writes the names of the columns.
pub(super) fn write_header(
    file_columns: &[FileColumn<'_>],
    separator: u8,
    null_words: &[String],
    target: &mut dyn Write,
) -> io::Result<()> {
    let mut header = Vec::new();
    for (position, column) in file_columns.iter().enumerate() {
        let before = if position == 0 { None } else { Some(separator) };
        header.extend(before);
        push_text(&column.name, needs_quotes(&column.name, separator, null_words), &mut header);
    }
    header.push(b'\n');
    target.write_all(&header)
}

/// Writes the rows of these columns. Texts like the words for null are quoted.
pub(super) fn write_records(
    file_columns: &[FileColumn<'_>],
    n_rows: usize,
    separator: u8,
    null_words: &[String],
    target: &mut dyn Write,
) -> io::Result<()> {
    let columns: Vec<CsvColumn<'_>> =
        file_columns.iter().map(|column| CsvColumn::new(column, separator, null_words)).collect();
    for first in (0..n_rows).step_by(ROWS_PER_BLOCK * BLOCKS_AT_ONCE) {
        let blocks: Vec<Vec<u8>> = (0..BLOCKS_AT_ONCE)
            .into_par_iter()
            .map(|block| {
                let start = (first + block * ROWS_PER_BLOCK).min(n_rows);
                spell_rows(&columns, start..(start + ROWS_PER_BLOCK).min(n_rows), separator)
            })
            .collect();
        for block in blocks {
            target.write_all(&block)?;
        }
    }
    Ok(())
}

/// Writes columns of texts, for tests that read them again.
#[cfg(any(fuzzing, test))]
pub(crate) fn write_texts(
    columns: &[(&str, &Texts, &[u32])],
    n_rows: usize,
    separator: u8,
    null_words: &[String],
) -> Vec<u8> {
    use std::borrow::Cow;
    let file_column = |&(name, texts, ids)| FileColumn {
        name: Cow::Borrowed(name),
        source: 0,
        kind: super::cells::Kind::Copied,
        ids: CellIds::Plain(super::cells::CellsOf::Released(ids)),
        texts: Some(Cow::Borrowed(texts)),
    };
    let file_columns: Vec<FileColumn<'_>> = columns.iter().map(file_column).collect();
    let mut written = Vec::new();
    write_header(&file_columns, separator, null_words, &mut written).expect("a Vec takes every byte");
    write_records(&file_columns, n_rows, separator, null_words, &mut written).expect("a Vec takes every byte");
    written
}

fn spell_rows(columns: &[CsvColumn<'_>], rows: Range<usize>, separator: u8) -> Vec<u8> {
    let mut block = Vec::new();
    for row in rows {
        for (position, column) in columns.iter().enumerate() {
            if position > 0 {
                block.push(separator);
            }
            column.push_cell(row, &mut block);
        }
        block.push(b'\n');
    }
    block
}

/// A column to be spelled: its texts and which of them are quoted, or numbers.
struct CsvColumn<'a> {
    ids: &'a CellIds<'a>,
    texts: Option<(&'a Texts, Vec<bool>)>,
}

impl<'a> CsvColumn<'a> {
    fn new(column: &'a FileColumn<'a>, separator: u8, null_words: &[String]) -> Self {
        let quoted = |texts: &Texts| texts.iter().map(|text| needs_quotes(text, separator, null_words)).collect();
        CsvColumn { ids: &column.ids, texts: column.texts.as_deref().map(|texts| (texts, quoted(texts))) }
    }

    fn push_cell(&self, row: usize, block: &mut Vec<u8>) {
        match (self.ids.id(row), &self.texts) {
            (NULL, _) => {}
            (id, Some((texts, quoted))) => push_text(texts.get(id), quoted[id as usize], block),
            (number, None) => write!(block, "{number}").expect("a Vec takes every byte"),
        }
    }
}

fn needs_quotes(text: &str, separator: u8, null_words: &[String]) -> bool {
    let bytes = text.as_bytes();
    bytes.is_empty()
        || memchr3(separator, b'"', b'\n', bytes).is_some()
        || bytes.contains(&b'\r')
        // At the start of a file this character would be taken for a byte order mark.
        || text.starts_with('\u{feff}')
        || null_words.iter().any(|word| word == text)
}

/// Appends a cell, quoted if it would be read as something else.
pub(super) fn push_cell(text: &str, separator: u8, block: &mut Vec<u8>) {
    push_text(text, needs_quotes(text, separator, &[]), block);
}

fn push_text(text: &str, quoted: bool, block: &mut Vec<u8>) {
    if !quoted {
        block.extend_from_slice(text.as_bytes());
        return;
    }
    block.push(b'"');
    for byte in text.bytes() {
        if byte == b'"' {
            block.push(b'"');
        }
        block.push(byte);
    }
    block.push(b'"');
}
