//! Compares the reader with cases by hand and with a naive reader, in blocks of any size.

use proptest::prelude::*;

use super::*;
use crate::read::OpenTable;

/// Rows of cells, `None` for null.
type Cells = Vec<Vec<Option<String>>>;

fn read_in_blocks(bytes: &[u8], spec: &CsvSpec, block_size: usize) -> Result<(Vec<String>, Cells), Vec<String>> {
    let messages = |problems: Vec<ReadError>| problems.iter().map(ToString::to_string).collect::<Vec<_>>();
    let file = CsvFile::open_in_blocks(Box::new(bytes), spec, block_size).map_err(|problem| messages(vec![problem]))?;
    let names = file.names().to_vec();
    let wanted: Vec<usize> = (0..names.len()).collect();
    let columns = OpenTable::Csv(file).read(&wanted).map_err(messages)?;
    let cell = |column: &RawColumn, row: usize| match column.ids[row] {
        NULL => None,
        id => Some(column.texts.get(id).to_owned()),
    };
    let rows = (0..columns[0].ids.len()).map(|row| columns.iter().map(|column| cell(column, row)).collect());
    Ok((names, rows.collect()))
}

fn read(text: &str) -> Result<(Vec<String>, Cells), Vec<String>> {
    read_in_blocks(text.as_bytes(), &CsvSpec::default(), BLOCK_SIZE)
}

fn shown(cells: &Cells) -> Vec<String> {
    let cell = |cell: &Option<String>| cell.as_ref().map_or("-".to_owned(), |text| format!("<{text}>"));
    cells.iter().map(|row| row.iter().map(cell).collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn a_null_is_not_an_empty_text() {
    let (names, cells) = read("\u{feff}a;b\r\n;\"\"\r\n1;\"x;\"\"y\"\r\n").unwrap();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(shown(&cells), ["- <>", "<1> <x;\"y>"]);
}

#[test]
fn words_for_null_match_bare_cells_only() {
    let spec = CsvSpec { null: Some(vec!["NA".to_owned()]), ..CsvSpec::default() };
    let (_, cells) = read_in_blocks(b"a,b\nNA,\"NA\"\n,\"\"\n", &spec, 100).unwrap();
    assert_eq!(shown(&cells), ["- <NA>", "<> <>"]);
}

#[test]
fn a_file_without_a_header_has_numbered_columns() {
    let spec = CsvSpec { header: Some(false), ..CsvSpec::default() };
    let (names, cells) = read_in_blocks(b"1,2\n3,4", &spec, 100).unwrap();
    assert_eq!(names, ["column_1", "column_2"]);
    assert_eq!(shown(&cells), ["<1> <2>", "<3> <4>"]);
}

#[test]
fn a_file_of_one_column_has_a_null_per_empty_line() {
    let (_, cells) = read("age\n23\n\n\"\"\n\n").unwrap();
    assert_eq!(shown(&cells), ["<23>", "-", "<>", "-"]);
}

#[test]
fn empty_lines_are_rows_unless_the_file_ends_with_them() {
    let (_, cells) = read("a,b\n1,2\n\n\r\n").unwrap();
    assert_eq!(shown(&cells), ["<1> <2>"]);
    assert_eq!(read("a,b\n1,2\n\n3,4\n").unwrap_err(), ["row 2: expected 2 cells, found 1"]);
}

#[test]
fn ragged_rows_are_counted_together() {
    let text = "a,b\n1\n1,2\n1,2,3\n1\n1\n1\n1\n";
    let expected = "rows 1, 3, 4, 5, 6 and 1 more: expected 2 cells, found 1 in the first";
    assert_eq!(read(text).unwrap_err(), [expected]);
}

#[test]
fn bad_quotes_are_placed() {
    assert_eq!(read("a,b\n1,2\n\"x\"y,2\n").unwrap_err(), ["row 2: text after a closing quote"]);
    assert_eq!(read("a,b\n1,\"2\n3,4\n5,6\n").unwrap_err(), ["row 1: a quote opens and is never closed"]);
    assert_eq!(read("a,\"b\n1,2\n").unwrap_err(), ["header: a quote opens and is never closed"]);
}

#[test]
fn files_without_rows_are_refused() {
    assert_eq!(read("").unwrap_err(), ["the file is empty"]);
    assert_eq!(read("\u{feff}").unwrap_err(), ["the file is empty"]);
    assert_eq!(read("a,b\n").unwrap_err(), ["the file has columns but no rows"]);
    assert_eq!(read("a,b").unwrap_err(), ["the file has columns but no rows"]);
    assert_eq!(read("a,b\n\n\n").unwrap_err(), ["the file has columns but no rows"]);
}

#[test]
fn invalid_bytes_are_placed_and_never_replaced() {
    for block_size in [1, 7, 100] {
        let read = |bytes: &[u8]| read_in_blocks(bytes, &CsvSpec::default(), block_size).unwrap_err();
        assert_eq!(read(b"a,b\n1,2\n3,\xff\n5,6\n"), ["row 2: bytes that are not UTF-8"]);
        assert_eq!(read(b"a,\xff\n1,2\n"), ["header: bytes that are not UTF-8"]);
        assert_eq!(read(b"a,b\n1,2\n\xe4\xb8"), ["row 2: bytes that are not UTF-8"]);
    }
}

#[test]
fn other_encodings_and_nul_bytes_are_text() {
    let spec = CsvSpec { encoding: Some("latin1".to_owned()), ..CsvSpec::default() };
    let (_, cells) = read_in_blocks(b"a,b\nZ\xfcrich,\0\n", &spec, 5).unwrap();
    assert_eq!(shown(&cells), ["<Z\u{fc}rich> <\0>"]);
    let spec = CsvSpec { encoding: Some("klingon".to_owned()), ..CsvSpec::default() };
    assert_eq!(read_in_blocks(b"a\n1\n", &spec, 5).unwrap_err(), ["unknown encoding 'klingon'"]);
    let spec = CsvSpec { separator: Some('\u{fc}'), ..CsvSpec::default() };
    assert_eq!(read_in_blocks(b"a\n1\n", &spec, 5).unwrap_err(), ["'\u{fc}' can't separate cells"]);
}

#[test]
fn columns_that_are_not_wanted_are_not_kept() {
    let file = CsvFile::open(Box::new(&b"a,b,c\n1,2,3\n4,5,6\n"[..]), &CsvSpec::default()).unwrap();
    let columns = OpenTable::Csv(file).read(&[2]).unwrap();
    assert_eq!(columns.len(), 1);
    assert_eq!(columns[0].texts.iter().collect::<Vec<_>>(), ["3", "6"]);
}

/// A cell of the naive reader.
#[derive(Clone, Debug, Default)]
struct NaiveCell {
    text: String,
    quoted: bool,
}

/// Reads comma-separated text one character at a time, up to the first record that can't be read.
fn naive_records(text: &str) -> (Vec<Vec<NaiveCell>>, Option<&'static str>) {
    let mut records = Vec::new();
    let mut record = Vec::new();
    let mut cell = NaiveCell::default();
    let mut letters = text.chars().peekable();
    loop {
        if letters.peek() == Some(&'"') {
            letters.next();
            cell.quoted = true;
            loop {
                match letters.next() {
                    None => return (records, Some("a quote opens and is never closed")),
                    Some('"') if letters.peek() == Some(&'"') => {
                        letters.next();
                        cell.text.push('"');
                    }
                    Some('"') => break,
                    Some(letter) => cell.text.push(letter),
                }
            }
            let rest: String = letters.clone().take(2).collect();
            let is_end = rest.is_empty() || rest.starts_with([',', '\n']) || rest == "\r\n" || rest == "\r";
            if !is_end {
                return (records, Some("text after a closing quote"));
            }
            if rest.starts_with('\r') {
                letters.next();
            }
        } else {
            while let Some(letter) = letters.next_if(|letter| !matches!(letter, ',' | '\n')) {
                cell.text.push(letter);
            }
            if letters.peek() != Some(&',') && cell.text.ends_with('\r') {
                cell.text.pop();
            }
        }
        record.push(std::mem::take(&mut cell));
        if letters.next() != Some(',') {
            records.push(std::mem::take(&mut record));
            if letters.peek().is_none() {
                return (records, None);
            }
        }
    }
}

fn naive(text: &str) -> Result<(Vec<String>, Cells), Vec<String>> {
    if text.is_empty() {
        return Err(vec!["the file is empty".to_owned()]);
    }
    let (mut records, bad_quote) = naive_records(text);
    let n_records = records.len();
    if n_records == 0 {
        return Err(vec![format!("header: {}", bad_quote.unwrap())]);
    }
    let header = records.remove(0);
    let is_blank = |row: &Vec<NaiveCell>| row.len() == 1 && row[0].text.is_empty() && !row[0].quoted;
    while header.len() > 1 && records.last().is_some_and(is_blank) {
        records.pop();
    }
    let mut problems = Vec::new();
    if let Some(bad_quote) = bad_quote {
        problems.push(format!("row {n_records}: {bad_quote}"));
    } else if records.is_empty() {
        problems.push("the file has columns but no rows".to_owned());
    }
    let is_ragged = |row: &&Vec<NaiveCell>| row.len() != header.len();
    if let Some(first) = records.iter().find(is_ragged) {
        let mut rows = RowNumbers::default();
        let numbered = (1..).zip(&records).filter(|(_, row)| is_ragged(row));
        numbered.for_each(|(row, _)| rows.add(row));
        let problem = ReadError::RaggedRows { expected: header.len(), found: first.len(), rows };
        problems.push(problem.to_string());
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let names = header.into_iter().map(|cell| cell.text).collect();
    let cell = |cell: NaiveCell| (cell.quoted || !cell.text.is_empty()).then_some(cell.text);
    Ok((names, records.into_iter().map(|row| row.into_iter().map(cell).collect()).collect()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn any_text_is_read_as_a_naive_reader_reads_it(
        text in "([ab\u{e4}],|\"a\"\"b\"|\"[a,\n\r]*\"|[ab,\"\n\r\u{e4}]|,|\n|\r\n){0,30}",
        block_size in 1usize..40,
    ) {
        let comma = CsvSpec { separator: Some(','), ..CsvSpec::default() };
        prop_assert_eq!(read_in_blocks(text.as_bytes(), &comma, block_size), naive(&text));
    }

    #[test]
    fn tables_of_equal_rows_are_read_as_a_naive_reader_reads_them(
        rows in prop::collection::vec(("[ab\u{e4} ]{0,3}", "(\"([a,\n\r]|\"\")*\")?", "[ab']{0,2}"), 2..9),
        end in prop_oneof![Just("\n"), Just("\r\n")],
        block_size in 1usize..40,
    ) {
        let text: String = rows.iter().map(|(a, b, c)| format!("{a},{b},{c}{end}")).collect();
        let comma = CsvSpec { separator: Some(','), ..CsvSpec::default() };
        let found = read_in_blocks(text.as_bytes(), &comma, block_size);
        prop_assert!(found.is_ok());
        prop_assert_eq!(found, naive(&text));
    }

    #[test]
    fn any_bytes_are_read_alike_in_blocks_of_any_size(
        bytes in prop::collection::vec(prop_oneof![any::<u8>(), prop::sample::select(b",;\t|\"\n\r a".to_vec())], 0..80),
        encoding in prop::option::of(prop::sample::select(vec!["utf-8", "utf-16le", "shift_jis", "windows-1252"])),
        header in prop::option::of(any::<bool>()),
        block_size in 1usize..40,
    ) {
        let spec = CsvSpec { encoding: encoding.map(str::to_owned), header, ..CsvSpec::default() };
        let whole = read_in_blocks(&bytes, &spec, BLOCK_SIZE);
        prop_assert_eq!(read_in_blocks(&bytes, &spec, block_size), whole);
    }
}
