//! Finds out how a file is read: its encoding, header, decimal sign, nulls and dates. The suggested spec gives a reason
//! for each of these settings.

use std::path::Path;

use kohort_io::{CheckOptions, FileColumns, InputFormat, ReadError, ReadErrors, infer_type, read_for_check};
use kohort_model::spec::CsvSpec;
use kohort_model::{Column, NULL, Notation, Progress, Table, Texts, ValueType};

/// Words that often stand for a missing value.
const NULL_WORDS: &[&str] =
    &["NA", "N/A", "n/a", "na", "NULL", "null", "None", "NaN", "nan", "-", "--", "?", ".", "k.A.", "k. A.", "missing"];

/// Formats of dates other than ISO 8601. Those with the day first come before those with the month first.
const DATE_FORMATS: &[&str] = &[
    "%d.%m.%Y",
    "%d/%m/%Y",
    "%d-%m-%Y",
    "%m/%d/%Y",
    "%m-%d-%Y",
    "%Y/%m/%d",
    "%Y.%m.%d",
    "%d.%m.%y",
    "%d/%m/%y",
    "%m/%d/%y",
    "%d %b %Y",
    "%d %B %Y",
    "%d-%b-%Y",
    "%b %d, %Y",
    "%B %d, %Y",
    "%d.%m.%Y %H:%M",
    "%d.%m.%Y %H:%M:%S",
    "%d/%m/%Y %H:%M",
    "%d/%m/%Y %H:%M:%S",
    "%m/%d/%Y %H:%M",
    "%m/%d/%Y %H:%M:%S",
];

/// A line of a spec that says how a file is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The key.
    pub key: &'static str,
    /// The value of the key, as TOML.
    pub value: String,
    /// The reason for the setting.
    pub reason: String,
}

/// A table, the notation of its cells, and the settings that a spec needs to read it like this.
pub(crate) struct FileReading {
    pub(crate) table: Table,
    pub(crate) notation: Notation,
    pub(crate) settings: Vec<Setting>,
}

impl FileReading {
    /// Reads a table, and finds out how.
    ///
    /// # Errors
    /// If no way to read it is found.
    pub(crate) fn new(path: &Path, progress: &dyn Progress) -> Result<FileReading, ReadErrors> {
        let mut settings = Vec::new();
        let table = read(path, &mut settings, progress)?;
        let mut reading = FileReading { table, notation: Notation::default(), settings };
        if is_csv(path) {
            reading.find_nulls();
            reading.find_decimal_sign();
            reading.find_date_format();
        }
        Ok(reading)
    }

    /// Takes a word such as `NA` for null if a column otherwise holds only numbers or dates.
    fn find_nulls(&mut self) {
        let mut found: Vec<&str> = Vec::new();
        for column in &self.table.columns {
            let words: Vec<&str> =
                NULL_WORDS.iter().copied().filter(|word| column.texts.iter().any(|t| t == *word)).collect();
            if words.is_empty() || words.len() == column.texts.len() {
                continue;
            }
            let rest: Texts = column.texts.iter().filter(|text| !words.contains(text)).collect();
            if value_type(&rest, &Notation::default()) != ValueType::Text {
                found.extend(words.into_iter().filter(|word| !found.contains(word)).collect::<Vec<_>>());
            }
        }
        if found.is_empty() {
            return;
        }
        self.table.columns.iter_mut().for_each(|column| leave_out(column, &found));
        let words: Vec<String> = std::iter::once("").chain(found).map(|word| format!("\"{word}\"")).collect();
        let why = "columns of numbers or dates hold these words, and otherwise only numbers or dates";
        self.settings.push(Setting { key: "null", value: format!("[{}]", words.join(", ")), reason: why.to_owned() });
    }

    fn find_decimal_sign(&mut self) {
        let comma = Notation { decimal_comma: true, date_format: None, ..Notation::default() };
        let types = |notation: &Notation| -> Vec<ValueType> {
            self.table.columns.iter().map(|column| infer_type(&column.texts, notation)).collect()
        };
        let is_fraction = |&value_type: &ValueType| matches!(value_type, ValueType::Decimal | ValueType::Float);
        let n_of = |notation: &Notation| types(notation).iter().filter(|value_type| is_fraction(value_type)).count();
        let (with_point, with_comma) = (n_of(&Notation::default()), n_of(&comma));
        if with_comma > 0 && with_point == 0 {
            let columns =
                if with_comma == 1 { "1 column holds".to_owned() } else { format!("{with_comma} columns hold") };
            self.notation.decimal_comma = true;
            self.settings.push(Setting {
                key: "decimal",
                value: "\",\"".to_owned(),
                reason: format!("{columns} numbers with a decimal comma"),
            });
        }
    }

    fn find_date_format(&mut self) {
        let is_text = |column: &&Column| infer_type(&column.texts, &self.notation) == ValueType::Text;
        let texts: Vec<&Texts> = self.table.columns.iter().filter(is_text).map(|column| &column.texts).collect();
        let fits = |format: &str| {
            let notation = Notation { date_format: Some(format.to_owned()), ..self.notation.clone() };
            let is_date = |texts: &&&Texts| {
                could_be_dates(texts) && matches!(infer_type(texts, &notation), ValueType::Date | ValueType::Timestamp)
            };
            texts.iter().filter(is_date).count()
        };
        let counted: Vec<(usize, &str)> = DATE_FORMATS.iter().map(|&format| (fits(format), format)).collect();
        let most = counted.iter().map(|&(n, _)| n).max().unwrap_or(0);
        let best: Vec<&str> = counted.iter().filter(|&&(n, _)| n == most).map(|&(_, format)| format).collect();
        let Some((&format, others)) = best.split_first().filter(|_| most > 0) else { return };
        let columns = if most == 1 { "1 column holds".to_owned() } else { format!("{most} columns hold") };
        let mut why = format!("{columns} dates like this");
        if !others.is_empty() {
            why += &format!("; {} fits as well: CHECK which one it is", others.join(", "));
        }
        self.notation.date_format = Some(format.to_owned());
        self.settings.push(Setting { key: "date_format", value: format!("\"{format}\""), reason: why });
    }
}

/// Reads a table as UTF-8 with a header, or else in the way that seems to fit. A byte order mark needs no setting.
fn read(path: &Path, settings: &mut Vec<Setting>, progress: &dyn Progress) -> Result<Table, ReadErrors> {
    let mut csv = CsvSpec::default();
    let with = |csv: &CsvSpec| read_for_check(path, &CheckOptions { format: None, csv: csv.clone() }, progress);
    let can_be_read_again = is_csv(path) && path != Path::new("-");
    let mut table = with(&csv);
    let is_other_text = |problem: &ReadError| matches!(problem, ReadError::InvalidText { .. });
    let is_other_encoding = match &table {
        Ok(table) => table.columns.iter().any(|column| column.name.contains('\0')),
        Err(problems) => problems.problems.iter().any(is_other_text),
    };
    if is_other_encoding && can_be_read_again {
        let bytes_alternate = table.is_ok();
        let encodings: &[&str] =
            if bytes_alternate { &["utf-16le", "utf-16be"] } else { &["utf-16le", "windows-1252"] };
        for &encoding in encodings {
            csv.encoding = Some(encoding.to_owned());
            let again = with(&csv);
            let is_it =
                again.as_ref().is_ok_and(|table| table.columns.iter().all(|c| !c.name.contains(['\0', '\u{fffd}'])));
            // Nearly any even number of bytes can be read as UTF-16, but wrong text would mix characters of all alphabets.
            let is_ascii_mostly = again.as_ref().is_ok_and(|table| table.columns.iter().all(|c| mostly_latin(&c.name)));
            if is_it && (encoding == "windows-1252" || is_ascii_mostly) {
                let why = match encoding {
                    "windows-1252" => "the file is not UTF-8; CHECK that umlauts and accents are right",
                    _ => "every second byte is 0",
                };
                settings.push(Setting { key: "encoding", value: format!("\"{encoding}\""), reason: why.to_owned() });
                table = again;
                break;
            }
            csv.encoding = None;
        }
    }
    let names = |table: &Table| -> Vec<String> { table.columns.iter().map(|column| column.name.clone()).collect() };
    let has_header = table.as_ref().map_or(true, |table| FileColumns::of_file(&names(table), []).are_named());
    if is_csv(path) && !has_header {
        csv.header = Some(false);
        settings.push(Setting {
            key: "header",
            value: "false".to_owned(),
            reason: "the first row holds values, not names".to_owned(),
        });
        table = match table {
            Ok(table) if !can_be_read_again => Ok(without_header(table)),
            _ => with(&csv),
        };
    }
    table
}

/// The table of a file whose first row was wrongly taken for names. That row stays missing.
fn without_header(mut table: Table) -> Table {
    for (position, column) in table.columns.iter_mut().enumerate() {
        column.name = format!("column_{}", position + 1);
    }
    table
}

fn is_csv(path: &Path) -> bool {
    matches!(InputFormat::of_path(path), None | Some(InputFormat::Csv(_)))
}

fn mostly_latin(name: &str) -> bool {
    name.chars().all(|c| (c as u32) < 0x250)
}

/// The type of texts, with any decimal sign and any known format of dates.
fn value_type(texts: &Texts, notation: &Notation) -> ValueType {
    let numbers = [notation.clone(), Notation { decimal_comma: true, ..notation.clone() }];
    let of = |notation: &Notation| Some(infer_type(texts, notation)).filter(|&found| found != ValueType::Text);
    let as_date = |format: &&str| of(&Notation { date_format: Some((*format).to_owned()), ..notation.clone() });
    numbers
        .iter()
        .find_map(of)
        .or_else(|| DATE_FORMATS.iter().filter(|_| could_be_dates(texts)).find_map(as_date))
        .unwrap_or(ValueType::Text)
}

/// Whether the first text is short and has digits. Most columns of text fail this test, which saves trying all formats.
fn could_be_dates(texts: &Texts) -> bool {
    texts.iter().next().is_some_and(|text| text.len() <= 30 && text.contains(|c: char| c.is_ascii_digit()))
}

/// Turns cells with these words into nulls.
fn leave_out(column: &mut Column, words: &[&str]) {
    if !column.texts.iter().any(|text| words.contains(&text)) {
        return;
    }
    let mut texts = Texts::new();
    let ids: Vec<u32> =
        column.texts.iter().map(|text| if words.contains(&text) { NULL } else { texts.push(text) }).collect();
    column.texts = texts;
    for id in column.ids.iter_mut().filter(|id| **id != NULL) {
        *id = ids[*id as usize];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_text_is_read_as_csv() {
        for name in ["a.csv", "a.tsv.gz", "a.dat", "-"] {
            assert!(is_csv(Path::new(name)), "{name}");
        }
        for name in ["a.parquet", "a.pq", "a.arrow", "a.feather", "a.ipc", "a.ARROWS"] {
            assert!(!is_csv(Path::new(name)), "{name}");
        }
    }
}
