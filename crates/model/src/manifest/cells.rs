//! How the cells of a release are read: the keys of `manifest.json` about the file of a table and about each column.
//! With them, readers understand the cells without the spec. `docs/read-a-release.md` explains every key to readers.
//!
//! # Guarantee
//! Nothing here depends on a private value, except through the released cells, and through the type of a column that is
//! generalized or whose order matters. [`LabelsManifest`] says why for each rule.

use serde::{Deserialize, Serialize};

use crate::hierarchy::{DateLevel, MaskSide};
use crate::{Codes, Notation, ValueType};

/// How a CSV file is read. The first line names the columns, lines end with LF, and cells are quoted as in RFC 4180.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CsvManifest {
    /// The character between cells.
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ColumnManifest {
    /// The role, as in the spec; for a quasi column that is written as two columns, [`ColumnManifest::LOWER_BOUND`] or
    /// [`ColumnManifest::UPPER_BOUND`].
    pub role: String,
    /// The type of the values, or [`ColumnManifest::OTHER_TYPE`].
    #[serde(rename = "type")]
    pub value_type: String,
    /// `text` if the verifier compared the cells of a sensitive column by their texts although they have a type, so
    /// that `1.5` and `1.50` count as two values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared_as: Option<String>,
    /// The decimal sign, if it is not a point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decimal: Option<char>,
    /// The `strftime` format of dates and timestamps, if they are not written as in ISO 8601.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date_format: Option<String>,
    /// The bound from which values are coded as `>= bound`, as the cells spell it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top: Option<String>,
    /// The bound up to which values are coded as `<= bound`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bottom: Option<String>,
    /// The number to whose multiples values were rounded before classes were made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounded: Option<String>,
    /// The period to whose first day dates were moved before classes were made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated: Option<DateLevel>,
    /// How the pseudonyms of the column were made: [`ColumnManifest::PSEUDONYM`]. The key is never named, and neither is a digest
    /// of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pseudonym: Option<String>,
    /// What the labels of a generalized column stand for. Absent in releases of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<LabelsManifest>,
}

impl ColumnManifest {
    /// The role of the column with the lowest value that each quasi cell may stand for. Its name is that of the quasi
    /// column with `_lo` appended, and the column of upper bounds follows it.
    pub const LOWER_BOUND: &'static str = "quasi_lo";
    /// The role of the column with the highest value, named with `_hi` appended.
    pub const UPPER_BOUND: &'static str = "quasi_hi";
    /// The type of columns whose Arrow type no [`ValueType`] describes, such as lists.
    pub const OTHER_TYPE: &'static str = "other";
    /// The word in [`ColumnManifest::pseudonym`].
    pub const PSEUDONYM: &'static str = "hmac-sha-256";
    /// The word in [`ColumnManifest::compared_as`].
    pub const AS_TEXT: &'static str = "text";

    /// A column of this role and type, with all other keys absent.
    pub fn new(role: impl Into<String>, value_type: impl Into<String>) -> Self {
        ColumnManifest {
            role: role.into(),
            value_type: value_type.into(),
            compared_as: None,
            decimal: None,
            date_format: None,
            top: None,
            bottom: None,
            rounded: None,
            truncated: None,
            pseudonym: None,
            labels: None,
        }
    }

    /// Adds how numbers and dates are spelled, as far as it matters for the type of the column.
    #[must_use]
    pub fn spelled(mut self, value_type: ValueType, notation: &Notation) -> Self {
        match value_type {
            ValueType::Decimal | ValueType::Float => self.decimal = notation.decimal_comma.then_some(','),
            ValueType::Date | ValueType::Timestamp => self.date_format.clone_from(&notation.date_format),
            ValueType::Integer | ValueType::Text | ValueType::Boolean => {}
        }
        self.top.clone_from(&notation.codes.top);
        self.bottom.clone_from(&notation.codes.bottom);
        self
    }

    /// How numbers and dates are spelled, and the ends of the column are coded.
    pub fn notation(&self) -> Notation {
        Notation {
            decimal_comma: self.decimal == Some(','),
            date_format: self.date_format.clone(),
            codes: Codes { top: self.top.clone(), bottom: self.bottom.clone() },
        }
    }
}

/// The rule that made the labels of a generalized column.
///
/// A rule is part of the spec, so it tells nothing about the data. Its parameters are limited to what the labels
/// themselves show: the width of masks is present only if a mask is shown, the root of a hierarchy only if the root is
/// shown, and the released part of a hierarchy file contains only the shown labels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
    /// A value, or a mask: a text that shows some characters of a value and `*` in place of the others.
    Mask {
        /// Which characters are hidden first.
        side: MaskSide,
        /// The number of characters of a mask; absent if no mask is shown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        width: Option<u32>,
    },
    /// A value, a period of one of these lengths, or `*`.
    Dates {
        /// The periods, shortest first.
        levels: Vec<DateLevel>,
    },
    /// A value, or `*`: a hierarchy without levels in between.
    Flat,
    /// A label of a hierarchy file.
    Hierarchy {
        /// The label that stands for everything, null included; absent if no cell shows it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        root: Option<String>,
        /// The file in the release folder that lists which values each shown label stands for; absent if the publisher
        /// withholds it.
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
        let german = Notation { decimal_comma: true, date_format: Some("%d.%m.%Y".to_owned()), ..Notation::default() };
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
