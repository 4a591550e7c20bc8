//! Finds the character that separates cells from the first records of a file.
//!
//! A candidate wins if it cuts all first records into the same number of cells, and more than one; among several the one
//! with most cells wins. If there is none, the candidate that cuts the header into most cells is taken, so that the reader
//! can name the rows that don't fit. A header without any candidate makes a file of one column.

use super::record::{AtEnd, cut_record};

/// The separators that are considered, in the order of preference.
const CANDIDATES: [u8; 4] = [b',', b';', b'\t', b'|'];

/// How many records are looked at to choose a separator.
const N_RECORDS: usize = 100;

/// The separator of a file that begins with this text.
pub(super) fn find_separator(text: &str, at_end: AtEnd) -> u8 {
    let counted = CANDIDATES.map(|separator| (separator, cells_per_record(text, separator, at_end)));
    let consistent = counted.iter().filter(|(_, counts)| counts.iter().all(|n_cells| n_cells == &counts[0]));
    most_header_cells(consistent).or_else(|| most_header_cells(counted.iter())).unwrap_or(CANDIDATES[0])
}

/// The candidate that cuts the header into most cells, the first of several; `None` if no candidate cuts it.
fn most_header_cells<'a>(candidates: impl Iterator<Item = &'a (u8, Vec<usize>)>) -> Option<u8> {
    let mut best = (1, None);
    for (separator, counts) in candidates {
        let n_cells = counts.first().copied().unwrap_or(0);
        if n_cells > best.0 {
            best = (n_cells, Some(*separator));
        }
    }
    best.1
}

fn cells_per_record(text: &str, separator: u8, at_end: AtEnd) -> Vec<usize> {
    let mut counts = Vec::new();
    let mut at = 0;
    let mut spans = Vec::new();
    while at < text.len() && counts.len() < N_RECORDS {
        spans.clear();
        match cut_record(text.as_bytes(), at, separator, at_end, &mut spans) {
            Ok(Some(next)) => {
                let is_blank_line = spans.len() == 1 && spans[0].is_bare_and_empty();
                if !is_blank_line {
                    counts.push(spans.len());
                }
                at = next;
            }
            Ok(None) => break,
            // A bad quote counts as a record that does not fit, because with another separator the quotes may be fine.
            Err(_) => {
                counts.push(0);
                break;
            }
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(text: &str) -> char {
        find_separator(text, AtEnd::Yes) as char
    }

    #[test]
    fn the_separator_that_fits_all_records_wins() {
        assert_eq!(find("a,b\n1,2\n"), ',');
        assert_eq!(find("a;b\n1,5;2,5\n1;2\n"), ';');
        assert_eq!(find("a\tb\n1,5\t2\n"), '\t');
        assert_eq!(find("a|b\n\"x|y,z\"|2\n\n"), '|');
        assert_eq!(find("\"a,b\";c;d\n1;2;3\n"), ';');
    }

    #[test]
    fn a_file_with_ragged_rows_is_read_by_its_header() {
        assert_eq!(find("a;b;c\n1;2\n1;2;3\n"), ';');
    }

    #[test]
    fn a_header_without_a_separator_is_one_column() {
        assert_eq!(find("age\n23\n42\n"), ',');
        assert_eq!(find(""), ',');
    }
}
