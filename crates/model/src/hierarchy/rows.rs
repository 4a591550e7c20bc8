//! The rows of a hierarchy file: labels between `;` or `,`, whichever the file uses, optionally in double quotes.
//!
//! A row is one line, even if a quote is left open, so that one bad line does not hide the lines after it.

use std::borrow::Cow;

use super::HierarchyError;

/// One row and its line, counted from 1.
pub(super) struct Row<'t> {
    pub(super) line: usize,
    pub(super) labels: Vec<Cow<'t, str>>,
}

/// All rows that can be read. Adds a fault for each of the others.
pub(super) fn read_rows<'t>(text: &'t str, problems: &mut Vec<HierarchyError>) -> Vec<Row<'t>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = || text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let separator = find_separator(lines().map(|(_, line)| line));
    let mut rows = Vec::new();
    let mut any = false;
    for (index, line) in lines() {
        any = true;
        match read_row(line, index + 1, separator) {
            Ok(row) => rows.push(row),
            Err(problem) => problems.push(problem),
        }
    }
    if !any {
        problems.push(HierarchyError::NoRows);
    }
    rows
}

/// The separator that more lines contain outside of quotes. If both occur equally often it is `;`, because labels such
/// as `[20,29]` contain commas.
fn find_separator<'t>(lines: impl Iterator<Item = &'t str>) -> u8 {
    let (mut with_semicolon, mut with_comma) = (0usize, 0usize);
    for line in lines {
        let mut quoted = false;
        let (mut semicolon, mut comma) = (false, false);
        for byte in line.bytes() {
            match byte {
                b'"' => quoted = !quoted,
                b';' if !quoted => semicolon = true,
                b',' if !quoted => comma = true,
                _ => {}
            }
        }
        with_semicolon += usize::from(semicolon);
        with_comma += usize::from(comma);
    }
    if with_comma > with_semicolon { b',' } else { b';' }
}

fn read_row(text: &str, line: usize, separator: u8) -> Result<Row<'_>, HierarchyError> {
    let mut labels = Vec::new();
    let mut rest = text;
    loop {
        let (label, after) = match rest.strip_prefix('"') {
            Some(quoted) => read_quoted(quoted).ok_or(HierarchyError::UnclosedQuote { line })?,
            None => {
                let end = rest.bytes().position(|byte| byte == separator).unwrap_or(rest.len());
                (Cow::Borrowed(&rest[..end]), &rest[end..])
            }
        };
        // A quoted empty text is a value like any other, but it can't be the label of an ancestor.
        let spelled_out_value = labels.is_empty() && rest.starts_with('"');
        if label.is_empty() && !spelled_out_value {
            return Err(HierarchyError::EmptyLabel { line, position: labels.len() + 1 });
        }
        labels.push(label);
        match after.as_bytes().first() {
            None => return Ok(Row { line, labels }),
            Some(&byte) if byte == separator => rest = &after[1..],
            Some(_) => return Err(HierarchyError::TextAfterQuote { line }),
        }
    }
}

/// The label up to its closing quote, and the rest of the line.
fn read_quoted(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let mut from = 0;
    loop {
        let quote = from + text[from..].find('"')?;
        if text[quote + 1..].starts_with('"') {
            from = quote + 2;
            continue;
        }
        let label = &text[..quote];
        let label = if label.contains('"') { Cow::Owned(label.replace("\"\"", "\"")) } else { Cow::Borrowed(label) };
        return Some((label, &text[quote + 1..]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(text: &str) -> Vec<Vec<String>> {
        let mut problems = Vec::new();
        let rows = read_rows(text, &mut problems);
        assert_eq!(problems, []);
        rows.into_iter().map(|row| row.labels.into_iter().map(Cow::into_owned).collect()).collect()
    }

    #[test]
    fn the_separator_is_found_by_itself() {
        assert_eq!(labels("a;b\nc;d"), [["a", "b"], ["c", "d"]]);
        assert_eq!(labels("a,b\nc,d"), [["a", "b"], ["c", "d"]]);
        assert_eq!(labels("23;[20,29]\n31;[30,39]"), [["23", "[20,29]"], ["31", "[30,39]"]]);
        assert_eq!(labels("a,b\n\"c;d\",e\nf;g,h"), [["a", "b"], ["c;d", "e"], ["f;g", "h"]]);
    }

    #[test]
    fn a_mark_at_the_beginning_blank_lines_and_carriage_returns_are_ignored() {
        let mut problems = Vec::new();
        let rows = read_rows("\u{feff}\r\na;b\r\n\r\n  \r\nc;d\r\n", &mut problems);
        assert_eq!(problems, []);
        assert_eq!(rows.iter().map(|row| row.line).collect::<Vec<_>>(), [2, 5]);
        assert_eq!(rows[1].labels, ["c", "d"]);
    }

    #[test]
    fn quoted_labels_keep_separators_and_quotes() {
        assert_eq!(labels("\"a;b\";\"say \"\"no\"\"\";5\" pipe"), [["a;b", "say \"no\"", "5\" pipe"]]);
        assert_eq!(labels("\"\";*"), [["", "*"]]);
    }

    #[test]
    fn every_bad_line_is_reported_by_its_number() {
        let mut problems = Vec::new();
        let rows = read_rows("a;\"b\nc;d\n;x\n\"e\"f;g\nh;\"\"\ni;j;", &mut problems);
        assert_eq!(rows.len(), 1);
        assert_eq!(
            problems,
            [
                HierarchyError::UnclosedQuote { line: 1 },
                HierarchyError::EmptyLabel { line: 3, position: 1 },
                HierarchyError::TextAfterQuote { line: 4 },
                HierarchyError::EmptyLabel { line: 5, position: 2 },
                HierarchyError::EmptyLabel { line: 6, position: 3 },
            ]
        );
    }
}
