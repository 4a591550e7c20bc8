//! [`FileColumns`]: the columns of a file, as messages may name them.
//!
//! The first row of a CSV file may be a row of data, because nothing in the format tells. So a message repeats texts of that
//! row only if something shows that they are names. Otherwise columns are numbered.

use std::fmt;

use super::nearest::nearest;

/// Texts longer than this are no names.
const LONGEST_NAME: usize = 64;

/// Columns of one file: their names if these are known to be names, else their positions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileColumns(Shown);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Shown {
    Names(Vec<String>),
    /// Counted from 1.
    Positions(Vec<usize>),
}

impl FileColumns {
    /// All columns of a file, of which the caller asked for some by name. The names in the file are shown if one of them is
    /// a name that was asked for, or differs from it only by a slip. If no name was asked for, they are shown unless one
    /// looks like a value.
    pub fn of_file<'a>(names: &[String], asked: impl IntoIterator<Item = &'a str>) -> Self {
        let mut asked = asked.into_iter().peekable();
        let are_names = match asked.peek() {
            Some(_) => asked.any(|asked| nearest(asked, names.iter().map(String::as_str)).is_some()),
            None => !names.iter().any(|name| looks_like_a_value(name)),
        };
        FileColumns(if are_names {
            Shown::Names(names.to_vec())
        } else {
            Shown::Positions((1..=names.len()).collect())
        })
    }

    /// Columns whose names come from a schema, so they are not a row of data.
    pub fn of_schema(names: impl IntoIterator<Item = String>) -> Self {
        FileColumns(Shown::Names(names.into_iter().collect()))
    }

    /// Columns by their positions, counted from 0. Used if columns share a text in the first row, which is then probably no
    /// name.
    pub fn by_position(positions: impl IntoIterator<Item = usize>) -> Self {
        FileColumns(Shown::Positions(positions.into_iter().map(|position| position + 1).collect()))
    }

    /// The columns whose position, counted from 0, is wanted.
    #[must_use]
    pub fn only(&self, is_wanted: impl Fn(usize) -> bool) -> Self {
        let wanted = |(position, _): &(usize, &_)| is_wanted(*position);
        FileColumns(match &self.0 {
            Shown::Names(names) => {
                let wanted = names.iter().enumerate().filter(|&(position, _)| is_wanted(position));
                Shown::Names(wanted.map(|(_, name)| name.clone()).collect())
            }
            Shown::Positions(positions) => {
                Shown::Positions(positions.iter().enumerate().filter(wanted).map(|(_, &position)| position).collect())
            }
        })
    }

    /// Whether the columns are shown by their names.
    pub fn are_named(&self) -> bool {
        matches!(self.0, Shown::Names(_))
    }

    /// The number of columns.
    pub fn len(&self) -> usize {
        match &self.0 {
            Shown::Names(names) => names.len(),
            Shown::Positions(positions) => positions.len(),
        }
    }

    /// Whether there are no columns.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The names, if they may be shown.
    pub(crate) fn names(&self) -> Option<&[String]> {
        match &self.0 {
            Shown::Names(names) => Some(names),
            Shown::Positions(_) => None,
        }
    }
}

impl fmt::Display for FileColumns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: Vec<String> = match &self.0 {
            Shown::Names(names) => names.iter().map(|name| format!("'{name}'")).collect(),
            Shown::Positions(positions) => positions.iter().map(|position| format!("column {position}")).collect(),
        };
        f.write_str(&shown.join(", "))
    }
}

/// Whether a name looks like a number, a date, an address or a text.
pub(super) fn looks_like_a_value(name: &str) -> bool {
    let begins_with_a_digit = name.trim_start_matches(['-', '+', '.']).starts_with(|c: char| c.is_ascii_digit());
    begins_with_a_digit || name.contains(['@', '\0']) || name.chars().count() > LONGEST_NAME
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(of: &[&str]) -> Vec<String> {
        of.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn names_are_shown_where_one_of_them_is_asked_for() {
        let file = names(&["age", "2019", "ward"]);
        assert_eq!(FileColumns::of_file(&file, ["ward"]).to_string(), "'age', '2019', 'ward'");
        assert_eq!(FileColumns::of_file(&file, ["Age"]).only(|position| position > 1).to_string(), "'ward'");
        assert_eq!(FileColumns::of_file(&file, ["height"]).to_string(), "column 1, column 2, column 3");
    }

    #[test]
    fn a_first_row_of_data_is_not_shown() {
        let row = names(&["Ada", "34", "flu"]);
        assert_eq!(FileColumns::of_file(&row, []).only(|position| position != 1).to_string(), "column 1, column 3");
        let row = names(&["Ada", "f", "flu"]);
        assert_eq!(FileColumns::of_file(&row, ["name", "sex"]).to_string(), "column 1, column 2, column 3");
    }
}
