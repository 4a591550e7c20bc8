//! Cuts text into records and cells.
//!
//! A cell that starts with a quote is quoted: two quotes inside it stand for one, and after the closing quote only a
//! separator or the end of the record may follow. Any other cell is bare and ends at the next separator or line break;
//! quotes inside it are text. Records end with LF or CRLF, the last one also with the end of the file.

use memchr::{memchr, memchr2};

/// The place of a cell in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    start: u32,
    end: u32,
    form: Form,
}

/// How a cell is spelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Bare,
    Quoted,
    /// Quoted, with doubled quotes inside.
    Escaped,
}

/// The content of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cell<'a> {
    /// Without quotes; may be a word for null.
    Bare(&'a str),
    /// In quotes; always text.
    Quoted(&'a str),
}

/// Whether the text is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AtEnd {
    /// The text ends where the file ends.
    Yes,
    /// The text may end in the middle of a record.
    No,
}

/// What is wrong with the quotes of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BadQuote {
    /// Text between a closing quote and the next separator.
    TextAfter,
    /// No closing quote up to the end of the file.
    Unclosed,
}

/// Appends the cells of the record that starts at `start`, which is within the text, and returns where the next record
/// starts. Where the text ends before the record does, the result is `None` and no cells are appended.
pub(super) fn cut_record(
    bytes: &[u8],
    start: usize,
    separator: u8,
    at_end: AtEnd,
    spans: &mut Vec<Span>,
) -> Result<Option<usize>, BadQuote> {
    let n_before = spans.len();
    let next = cut_cells(bytes, start, separator, at_end, spans)?;
    if next.is_none() {
        spans.truncate(n_before);
    }
    Ok(next)
}

fn cut_cells(
    bytes: &[u8],
    start: usize,
    separator: u8,
    at_end: AtEnd,
    spans: &mut Vec<Span>,
) -> Result<Option<usize>, BadQuote> {
    let mut at = start;
    loop {
        if bytes.get(at) == Some(&b'"') {
            let Some((close, form)) = closing_quote(bytes, at + 1, at_end)? else { return Ok(None) };
            spans.push(Span::new(at + 1, close, form));
            at = close + 1;
            match (bytes.get(at), bytes.get(at + 1)) {
                (Some(&byte), _) if byte == separator => at += 1,
                (Some(b'\n'), _) => return Ok(Some(at + 1)),
                (Some(b'\r'), Some(b'\n')) => return Ok(Some(at + 2)),
                (Some(b'\r'), None) | (None, _) => {
                    return Ok(if at_end == AtEnd::Yes { Some(bytes.len()) } else { None });
                }
                (Some(_), _) => return Err(BadQuote::TextAfter),
            }
        } else {
            let found = memchr2(separator, b'\n', &bytes[at..]).map(|offset| at + offset);
            let end = match (found, at_end) {
                (Some(end), _) => end,
                (None, AtEnd::Yes) => bytes.len(),
                (None, AtEnd::No) => return Ok(None),
            };
            if found.is_some() && bytes[end] == separator {
                spans.push(Span::new(at, end, Form::Bare));
                at = end + 1;
            } else {
                let with_return = end > at && bytes[end - 1] == b'\r';
                spans.push(Span::new(at, end - usize::from(with_return), Form::Bare));
                return Ok(Some((end + 1).min(bytes.len())));
            }
        }
    }
}

/// The quote that ends the cell; `None` if the text ends before that can be known.
fn closing_quote(bytes: &[u8], start: usize, at_end: AtEnd) -> Result<Option<(usize, Form)>, BadQuote> {
    let mut form = Form::Quoted;
    let mut from = start;
    loop {
        match (memchr(b'"', &bytes[from..]), at_end) {
            (None, AtEnd::Yes) => return Err(BadQuote::Unclosed),
            (None, AtEnd::No) => return Ok(None),
            (Some(offset), _) => {
                let quote = from + offset;
                match bytes.get(quote + 1) {
                    Some(b'"') => {
                        form = Form::Escaped;
                        from = quote + 2;
                    }
                    None if at_end == AtEnd::No => return Ok(None),
                    _ => return Ok(Some((quote, form))),
                }
            }
        }
    }
}

impl Span {
    fn new(start: usize, end: usize, form: Form) -> Self {
        // Blocks are kept far below 4 GiB.
        Span { start: start as u32, end: end as u32, form }
    }

    /// Whether the cell is bare and has no characters.
    pub(super) fn is_bare_and_empty(self) -> bool {
        self.form == Form::Bare && self.start == self.end
    }

    /// The cell in the text that it was cut from. `scratch` holds the cell if it is not a part of the text.
    pub(super) fn cell<'a>(self, text: &'a str, scratch: &'a mut String) -> Cell<'a> {
        let inner = &text[self.start as usize..self.end as usize];
        match self.form {
            Form::Bare => Cell::Bare(inner),
            Form::Quoted => Cell::Quoted(inner),
            Form::Escaped => {
                scratch.clear();
                let mut halves = inner.split("\"\"");
                scratch.push_str(halves.next().unwrap_or(""));
                for half in halves {
                    scratch.push('"');
                    scratch.push_str(half);
                }
                Cell::Quoted(scratch)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(text: &str) -> Result<Vec<Vec<String>>, BadQuote> {
        let mut records = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let mut spans = Vec::new();
            let next = cut_record(text.as_bytes(), at, b',', AtEnd::Yes, &mut spans)?;
            at = next.expect("a record is whole at the end of the file");
            let mut scratch = String::new();
            let shown = spans.iter().map(|span| match span.cell(text, &mut scratch) {
                Cell::Bare(text) => format!("b:{text}"),
                Cell::Quoted(text) => format!("q:{text}"),
            });
            records.push(shown.collect());
        }
        Ok(records)
    }

    #[test]
    fn bare_and_quoted_cells_are_told_apart() {
        assert_eq!(cells("a,\"a\",,\"\"\n").unwrap(), [["b:a", "q:a", "b:", "q:"]]);
        assert_eq!(cells("\"a\"\"b\",5\" pipe").unwrap(), [["q:a\"b", "b:5\" pipe"]]);
        assert_eq!(cells("\"\"\"\"\"\",x").unwrap(), [["q:\"\"", "b:x"]]);
    }

    #[test]
    fn records_end_with_either_line_break_or_the_file() {
        let expected = [["b:a", "b:b"], ["b:c", "q:d"]];
        for text in ["a,b\nc,\"d\"\n", "a,b\r\nc,\"d\"\r\n", "a,b\nc,\"d\"", "a,b\r\nc,\"d\"\r"] {
            assert_eq!(cells(text).unwrap(), expected, "{text:?}");
        }
        assert_eq!(cells("a,\n").unwrap(), [["b:a", "b:"]]);
        assert_eq!(cells("a,").unwrap(), [["b:a", "b:"]]);
        assert_eq!(cells("\n\r\n").unwrap(), [["b:"], ["b:"]]);
        assert_eq!(cells("\"a\nb\r\nc\",d\n").unwrap(), [["q:a\nb\r\nc", "b:d"]]);
    }

    #[test]
    fn bad_quotes_are_found() {
        assert_eq!(cells("\"a\"b,c\n"), Err(BadQuote::TextAfter));
        assert_eq!(cells("\"a\"\rb\n"), Err(BadQuote::TextAfter));
        assert_eq!(cells("a,\"b\n\n"), Err(BadQuote::Unclosed));
        assert_eq!(cells("a,\"b\"\""), Err(BadQuote::Unclosed));
    }

    #[test]
    fn a_cut_record_leaves_no_cells_behind() {
        let text = "a,\"b\"\"c\"\r\nnext";
        for end in 0..text.len() - 4 {
            let mut spans = Vec::new();
            assert_eq!(cut_record(&text.as_bytes()[..end], 0, b',', AtEnd::No, &mut spans), Ok(None), "{end}");
            assert!(spans.is_empty());
        }
        let mut spans = Vec::new();
        assert_eq!(cut_record(text.as_bytes(), 0, b',', AtEnd::No, &mut spans), Ok(Some(10)));
        assert_eq!(spans.len(), 2);
    }
}
