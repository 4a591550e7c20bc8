//! Changes to a valid release, or to the answer of a valid A-view. Each change is either harmful or harmless.
//!
//! A changed release is *harmless* if all claims of its manifest still hold: it is a truthful recoding of the private
//! tables, satisfies what was asked, and has the figures that the manifest names. Otherwise it is *harmful*.
//!
//! | module | what is changed |
//! | --- | --- |
//! | [`cells`] | one cell, or the same cell of a whole class or label |
//! | [`rows`] | rows and columns of a file |
//! | [`claims`] | keys of the manifest |
//! | [`blocks`] | a block of an A-view, what its persons allow, and what is asked |
//! | [`steps`] | a step or a refresh of a materialized view, and what is asked |
//! | [`judges`] | says which changes are harmful, by brute force, without code of `kohort-verify` |

pub mod blocks;
pub mod cells;
pub mod claims;
pub mod judges;
pub mod rows;
pub mod steps;

/// A released cell, `None` for null.
pub type Cell = Option<String>;

/// A released file as its texts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sheet {
    /// The names of its columns.
    pub columns: Vec<String>,
    /// The rows, each with one cell per column.
    pub rows: Vec<Vec<Cell>>,
}

impl Sheet {
    /// Reads a CSV file as kohort writes it: with commas, null as nothing, an empty text as `""`.
    ///
    /// # Panics
    /// If it has no header.
    pub fn parse(csv: &str) -> Sheet {
        let mut lines = csv.lines().map(parse_line);
        let header = lines.next().expect("a released file has a header");
        Sheet { columns: header.into_iter().map(Option::unwrap_or_default).collect(), rows: lines.collect() }
    }

    /// The file.
    pub fn to_csv(&self) -> String {
        let header: Vec<Cell> = self.columns.iter().cloned().map(Some).collect();
        let line = |cells: &Vec<Cell>| cells.iter().map(write_cell).collect::<Vec<_>>().join(",") + "\n";
        std::iter::once(&header).chain(&self.rows).map(line).collect()
    }

    /// The position of a column.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column == name)
    }

    /// The cells of a column.
    pub fn column(&self, position: usize) -> Vec<Cell> {
        self.rows.iter().map(|row| row[position].clone()).collect()
    }
}

fn parse_line(line: &str) -> Vec<Cell> {
    let mut cells = Vec::new();
    let mut rest = line;
    loop {
        let (cell, after) = match rest.strip_prefix('"') {
            None => {
                let end = rest.find(',').unwrap_or(rest.len());
                (Some(rest[..end].to_owned()).filter(|cell| !cell.is_empty()), &rest[end..])
            }
            Some(quoted) => {
                let end = closing_quote(quoted);
                (Some(quoted[..end].replace("\"\"", "\"")), &quoted[end + 1..])
            }
        };
        cells.push(cell);
        match after.strip_prefix(',') {
            None => return cells,
            Some(after) => rest = after,
        }
    }
}

/// The position of the quote that ends a quoted cell.
fn closing_quote(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match (bytes[at], bytes.get(at + 1)) {
            (b'"', Some(b'"')) => at += 2,
            (b'"', _) => return at,
            _ => at += 1,
        }
    }
    panic!("a quoted cell ends");
}

fn write_cell(cell: &Cell) -> String {
    match cell.as_deref() {
        None => String::new(),
        Some(text) if text.is_empty() || text.contains([',', '"', '\n']) => {
            format!("\"{}\"", text.replace('"', "\"\""))
        }
        Some(text) => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sheet_is_written_as_it_was_read() {
        let csv = "age,zip,note\n\"[1,2]\",,\"\"\n3,x,\"say \"\"no\"\"\"\n";
        let sheet = Sheet::parse(csv);
        assert_eq!(sheet.rows[0], [Some("[1,2]".to_owned()), None, Some(String::new())]);
        assert_eq!(sheet.rows[1][2].as_deref(), Some("say \"no\""));
        assert_eq!(sheet.to_csv(), csv);
    }
}
