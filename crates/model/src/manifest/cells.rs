//! How the cells of a release are read: what `manifest.json` says about the file of a table and about each column, so
//! that nobody needs the spec to understand them. `docs/read-a-release.md` explains every key to readers.
//!
//! # Guarantee
//! Nothing here depends on a private value, except through what the released cells show and through the type of a
//! column that is generalized or whose order counts. [`LabelsManifest`] says why for each rule.

use serde::{Deserialize, Serialize};

use crate::hierarchy::{DateLevel, MaskSide};
use crate::{Notation, ValueType};

/// How a CSV file is read. The first line names the columns, lines end with LF, and cells are quoted as in RFC 4180.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CsvManifest {
    /// Between cells.
    pub separator: char,
    /// The encoding of the file.
    pub encoding: String,
    /// The unquoted cell that means null. A quoted cell never does.
    pub null: String,
}

impl CsvManifest {
    /// How kohort writes CSV, with this separator.
    pub fn new(separator: char) -> Self {
        CsvManifest { separator, encoding: "utf-8".to_owned(), null: String::new() }
    }
}

/// One released column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ColumnManifest {
    /// Its role, in the spec's words; of a quasi column written as two, [`ColumnManifest::LOWER_BOUND`] or
    /// [`ColumnManifest::UPPER_BOUND`].
    pub role: String,
    /// The type of its values, or [`ColumnManifest::OTHER_TYPE`].
    #[serde(rename = "type")]
    pub value_type: String,
    /// `text` where the verifier told the cells of a sensitive column apart by their texts although they have a type:
    /// `1.5` and `1.50` then count as two values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared_as: Option<String>,
    /// The decimal sign, where it is not a point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decimal: Option<char>,
    /// The `strftime` format of dates and timestamps, where they are not written as in ISO 8601.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date_format: Option<String>,
    /// What the labels of a generalized column stand for. Releases of earlier versions don't say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<LabelsManifest>,
}

impl ColumnManifest {
    /// The role of the column that holds the lowest value each quasi cell may stand for. It is named after the quasi
    /// column with `_lo` behind, and the column of upper bounds stands next to it.
    pub const LOWER_BOUND: &'static str = "quasi_lo";
    /// The role of the column that holds the highest one, named with `_hi` behind.
    pub const UPPER_BOUND: &'static str = "quasi_hi";
    /// The type of columns whose Arrow type no [`ValueType`] describes, such as lists.
    pub const OTHER_TYPE: &'static str = "other";
    /// What [`ColumnManifest::compared_as`] says.
    pub const AS_TEXT: &'static str = "text";

    /// A column of this role and type, of which nothing else is said.
    pub fn new(role: impl Into<String>, value_type: impl Into<String>) -> Self {
        ColumnManifest {
            role: role.into(),
            value_type: value_type.into(),
            compared_as: None,
            decimal: None,
            date_format: None,
            labels: None,
        }
    }

    /// The same column, whose numbers and dates are spelled like this. Only what matters for its type is said.
    #[must_use]
    pub fn spelled(mut self, value_type: ValueType, notation: &Notation) -> Self {
        match value_type {
            ValueType::Decimal | ValueType::Float => self.decimal = notation.decimal_comma.then_some(','),
            ValueType::Date | ValueType::Timestamp => self.date_format.clone_from(&notation.date_format),
            ValueType::Integer | ValueType::Text | ValueType::Boolean => {}
        }
        self
    }

    /// How its numbers and dates are spelled.
    pub fn notation(&self) -> Notation {
        Notation { decimal_comma: self.decimal == Some(','), date_format: self.date_format.clone() }
    }
}

/// The rule that made the labels of a generalized column.
///
/// A rule is part of the spec, so it says nothing about the data. What a rule needs beside it is limited to what the
/// labels themselves show: the width of masks stands here only where a mask is shown, the root of a hierarchy only where
/// the root is shown, and the released part of a hierarchy file has the shown labels and no others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "rule", rename_all = "lowercase")]
pub enum LabelsManifest {
    /// A value, or `*` for everything.
    Values,
    /// A value, a closed range such as `[20,29]`, or `*`.
    Ranges,
    /// A value, a range of one of these widths that begins at a multiple of it, or `*`.
    Steps {
        /// The widths, smallest first.
        steps: Vec<f64>,
    },
    /// A value, or a text whose other characters are hidden by `*`.
    Mask {
        /// Which characters are hidden first.
        side: MaskSide,
        /// How many characters masks have; absent where no mask is shown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        width: Option<u32>,
    },
    /// A value, a period of one of these lengths, or `*`.
    Dates {
        /// The periods, shortest first.
        levels: Vec<DateLevel>,
    },
    /// A value, or `*`, by a hierarchy that has nothing between.
    Flat,
    /// A label of a hierarchy file.
    Hierarchy {
        /// The label that stands for everything, null too; absent where no cell shows it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        root: Option<String>,
        /// The file in the release folder that lists which values each shown label stands for; absent where the
        /// publisher withholds it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file: Option<String>,
        /// Digest of that file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sha256: Option<String>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_read_back_as_it_was_written_and_defaults_are_not_said() {
        let german = Notation { decimal_comma: true, date_format: Some("%d.%m.%Y".to_owned()) };
        let mut column = ColumnManifest::new("quasi", "date").spelled(ValueType::Date, &german);
        column.labels = Some(LabelsManifest::Dates { levels: vec![DateLevel::Month, DateLevel::Decade] });
        let json = serde_json::to_string(&column).unwrap();
        assert_eq!(
            json,
            r#"{"role":"quasi","type":"date","date_format":"%d.%m.%Y","labels":{"rule":"dates","levels":["month","decade"]}}"#
        );
        assert_eq!(serde_json::from_str::<ColumnManifest>(&json).unwrap(), column);
        let plain = ColumnManifest::new("plain", "text").spelled(ValueType::Text, &german);
        assert_eq!(serde_json::to_string(&plain).unwrap(), r#"{"role":"plain","type":"text"}"#);
        assert_eq!(plain.notation(), Notation::default());
    }
}
