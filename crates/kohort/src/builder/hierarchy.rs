//! [`Hierarchy`]: how the values of a quasi column are generalized.

use std::path::{Path, PathBuf};

use toml::Value;

use super::{Beside, texts};

/// How the values of a quasi column are generalized.
///
/// This is what a spec says about a hierarchy. [`kohort_model::Hierarchy`] is the tree itself, once values are known.
#[derive(Clone, Debug, PartialEq)]
pub struct Hierarchy(Kind);

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    None,
    Setting(Value),
    File(PathBuf),
    Paths(String),
    Edges(String),
}

impl Hierarchy {
    /// No hierarchy: numbers and dates become ranges such as `[20,29]`, a text is shown as it is or as `*`.
    pub fn none() -> Self {
        Hierarchy(Kind::None)
    }

    /// Ranges of numbers of these widths, the narrowest first: `steps([5, 10, 50])`.
    pub fn steps<N: Into<Value>>(widths: impl IntoIterator<Item = N>) -> Self {
        Hierarchy::rule("steps", Value::Array(widths.into_iter().map(Into::into).collect()))
    }

    /// Hides characters from the right: `88512` becomes `8851*`, `885**` and so on.
    pub fn mask_right() -> Self {
        Hierarchy::rule("mask", "right".into())
    }

    /// Hides characters from the left.
    pub fn mask_left() -> Self {
        Hierarchy::rule("mask", "left".into())
    }

    /// Days, months, quarters, years, decades.
    pub fn date() -> Self {
        Hierarchy(Kind::Setting("date".into()))
    }

    /// Only these levels of dates: `dates(["month", "year"])`.
    pub fn dates<'l>(levels: impl IntoIterator<Item = &'l str>) -> Self {
        Hierarchy::rule("dates", texts(levels))
    }

    /// One level: a cell shows its value, or the root that stands for all values.
    pub fn flat() -> Self {
        Hierarchy(Kind::Setting("flat".into()))
    }

    /// A file with a row per value, `value;parent;...;root`, which is ARX's format.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Hierarchy(Kind::File(path.into()))
    }

    /// The rows of such a file, each from a value to the root.
    ///
    /// ```
    /// use kohort::Hierarchy;
    ///
    /// let jobs = Hierarchy::paths([["nurse", "health", "*"], ["teacher", "education", "*"]]);
    /// ```
    pub fn paths<Row, Label>(rows: impl IntoIterator<Item = Row>) -> Self
    where
        Row: IntoIterator<Item = Label>,
        Label: AsRef<str>,
    {
        Hierarchy(Kind::Paths(rows.into_iter().map(line).collect()))
    }

    /// Pairs of a label and its parent's label.
    pub fn edges<Label: AsRef<str>>(pairs: impl IntoIterator<Item = (Label, Label)>) -> Self {
        Hierarchy(Kind::Edges(pairs.into_iter().map(|(child, parent)| line([child, parent])).collect()))
    }

    fn rule(key: &str, value: Value) -> Self {
        Hierarchy(Kind::Setting(Value::Table(toml::Table::from_iter([(key.to_owned(), value)]))))
    }

    /// The value of `hierarchy` in a spec. Rows in memory stand in for a file of this name.
    pub(super) fn setting(self, file: &Path, beside: &mut Beside) -> Option<Value> {
        match self.0 {
            Kind::None => None,
            Kind::Setting(value) => Some(value),
            Kind::File(path) => Some(beside.name_path(&path)),
            Kind::Paths(text) => {
                beside.in_memory.add_text(file, text);
                Some(beside.name_path(file))
            }
            Kind::Edges(text) => {
                beside.in_memory.add_text(file, text);
                let name = beside.name_path(file);
                Some(Value::Table(toml::Table::from_iter([("edges".to_owned(), name)])))
            }
        }
    }
}

/// A row of a hierarchy file, every label in quotes.
fn line<Label: AsRef<str>>(labels: impl IntoIterator<Item = Label>) -> String {
    let quoted = labels.into_iter().map(|label| format!("\"{}\"", label.as_ref().replace('"', "\"\"")));
    quoted.collect::<Vec<_>>().join(";") + "\n"
}
