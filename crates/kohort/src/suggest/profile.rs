//! Counts the values of a column, and how evenly they are spread.

use kohort_io::infer_type;
use kohort_model::{Column, NULL, Notation, ValueType};

/// Counts of one column.
pub(super) struct Profile {
    pub(super) n_rows: usize,
    pub(super) n_null: usize,
    pub(super) n_distinct: usize,
    /// The entropy of the values in bits; null counts as a value.
    pub(super) bits: f64,
    pub(super) value_type: ValueType,
    /// Characters of a distinct value, on average.
    pub(super) average_length: f64,
    /// Whether all distinct values have the same number of characters, and some contain digits.
    has_codes: bool,
}

impl Profile {
    pub(super) fn new(column: &Column, notation: &Notation) -> Self {
        let n_rows = column.ids.len();
        let n_distinct = column.texts.len();
        let mut counts = vec![0usize; n_distinct];
        let mut n_null = 0;
        for &id in &column.ids {
            match id {
                NULL => n_null += 1,
                id => counts[id as usize] += 1,
            }
        }
        let share = |count: usize| count as f64 / n_rows as f64;
        let occurring = counts.iter().chain(std::iter::once(&n_null)).filter(|&&count| count > 0);
        let bits: f64 = occurring.map(|&count| -share(count) * share(count).log2()).sum();
        let lengths: Vec<usize> = column.texts.iter().map(|text| text.chars().count()).collect();
        let has_digits = column.texts.iter().any(|text| text.contains(|c: char| c.is_ascii_digit()));
        Profile {
            n_rows,
            n_null,
            n_distinct,
            bits: bits.max(0.0),
            value_type: infer_type(&column.texts, notation),
            average_length: lengths.iter().sum::<usize>() as f64 / n_distinct.max(1) as f64,
            has_codes: has_digits && lengths.windows(2).all(|pair| pair[0] == pair[1]),
        }
    }

    pub(super) fn distinct_share(&self) -> f64 {
        self.n_distinct as f64 / self.n_rows as f64
    }

    /// Whether all values are long, have the same number of characters, and some contain digits.
    pub(super) fn has_long_codes(&self) -> bool {
        self.has_codes && self.average_length >= 6.0
    }

    /// Whether no two rows share a value.
    pub(super) fn is_unique(&self) -> bool {
        self.n_distinct == self.n_rows
    }

    /// Whether the column holds many short texts of one length with digits.
    pub(super) fn looks_like_codes(&self) -> bool {
        self.has_codes && self.n_distinct > 10 && self.average_length <= 12.0
    }

    /// `1240 distinct values (9.8 bits), 3 nulls`.
    pub(super) fn describe(&self) -> String {
        let values = match self.n_distinct {
            0 => return "no values".to_owned(),
            1 => "1 value".to_owned(),
            n => format!("{n} distinct values ({:.1} bits)", self.bits),
        };
        match self.n_null {
            0 => values,
            1 => format!("{values}, 1 null"),
            n => format!("{values}, {n} nulls"),
        }
    }
}

#[cfg(test)]
mod tests {
    use kohort_model::Role;

    use super::*;

    #[test]
    fn values_are_counted_and_their_entropy_measured() {
        let column = Column::from_cells("x", Role::Plain, [Some("01"), Some("02"), Some("01"), None]);
        let profile = Profile::new(&column, &Notation::default());
        assert_eq!((profile.n_distinct, profile.n_null), (2, 1));
        assert_eq!(profile.bits, 1.5);
        assert_eq!(profile.value_type, ValueType::Text);
        assert_eq!(profile.describe(), "2 distinct values (1.5 bits), 1 null");
    }
}
