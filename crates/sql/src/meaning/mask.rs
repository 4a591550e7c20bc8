//! [`Mask`]: a text of which some characters are hidden, at its end or at its start.

use kohort_model::hierarchy::MaskSide;
use kohort_model::{Value, ValueType};

use super::{ANYTHING, Pattern};

const STAR: char = '*';

/// The texts that a masked label can stand for: those that keep its shown characters and have between one and all of
/// the hidden ones. A shorter value is padded with stars too, so nobody sees how many it has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mask<'a> {
    shown: &'a str,
    n_hidden: usize,
    side: MaskSide,
    value_type: ValueType,
}

impl<'a> Mask<'a> {
    /// The mask a label shows, `None` where it hides nothing. Labels have as many characters as the longest value.
    pub(super) fn read(label: &'a str, side: MaskSide, longest: usize, value_type: ValueType) -> Option<Mask<'a>> {
        let n_characters = label.chars().count();
        if n_characters != longest {
            return (label == ANYTHING).then_some(Mask { shown: "", n_hidden: longest.max(1), side, value_type });
        }
        let shown = match side {
            MaskSide::Right => label.trim_end_matches(STAR),
            MaskSide::Left => label.trim_start_matches(STAR),
        };
        let n_hidden = n_characters - shown.chars().count();
        (n_hidden > 0).then_some(Mask { shown, n_hidden, side, value_type })
    }

    /// Whether it shows no character.
    pub(super) fn is_everything(&self) -> bool {
        self.shown.is_empty()
    }

    /// Whether a value is among its texts. Of values that are spelled in several ways nothing is excluded.
    pub(super) fn holds(&self, value: &Value<'_>) -> bool {
        match value {
            Value::Text(text) => self.holds_text(text),
            Value::Integer(number) => self.holds_text(&number.to_string()),
            Value::Decimal(_) | Value::Float(_) | Value::Date(_) | Value::Timestamp(_) | Value::Boolean(_) => true,
        }
    }

    fn holds_text(&self, text: &str) -> bool {
        let rest = match self.side {
            MaskSide::Right => text.strip_prefix(self.shown),
            MaskSide::Left => text.strip_suffix(self.shown),
        };
        rest.is_some_and(|rest| self.n_hidden_of_one().contains(&rest.chars().count()))
    }

    /// Whether a text of both masks exists.
    pub(super) fn intersects(&self, other: &Mask<'_>) -> bool {
        let n_shown = other.shown.chars().count();
        self.forms().any(|form| {
            let n_hidden =
                form.len().checked_sub(n_shown).filter(|n_hidden| other.n_hidden_of_one().contains(n_hidden));
            n_hidden.is_some_and(|n_hidden| {
                form.iter().zip(other.form(n_hidden)).all(|(a, b)| a.is_none() || b.is_none() || *a == b)
            })
        })
    }

    /// Whether one of its texts matches.
    pub(super) fn could_match(&self, pattern: &Pattern) -> bool {
        self.forms().any(|form| pattern.could_match(form.into_iter()))
    }

    /// Whether one of its texts does not match. A character that the pattern does not name matches least.
    pub(super) fn could_miss(&self, pattern: &Pattern) -> bool {
        let unnamed = ('\u{e000}'..).find(|&character| !pattern.text().contains(character)).unwrap_or(char::MAX);
        self.forms().any(|form| {
            let text: String = form.into_iter().map(|character| character.unwrap_or(unnamed)).collect();
            !pattern.matches(&text)
        })
    }

    /// The least and the greatest text, `None` where values are not in the order of their texts.
    pub(super) fn bounds(&self) -> Option<(String, String)> {
        if self.value_type != ValueType::Text {
            return None;
        }
        let filled = |character: char, n: usize| {
            let hidden: String = std::iter::repeat_n(character, n).collect();
            match self.side {
                MaskSide::Right => format!("{}{hidden}", self.shown),
                MaskSide::Left => format!("{hidden}{}", self.shown),
            }
        };
        let n_least = match self.side {
            _ if self.is_everything() => 0,
            MaskSide::Right => 1,
            MaskSide::Left => self.n_hidden,
        };
        Some((filled('\0', n_least), filled(char::MAX, self.n_hidden)))
    }

    /// Whether its texts reach between two bounds.
    pub(super) fn reaches(&self, low: Option<&Value<'_>>, high: Option<&Value<'_>>) -> bool {
        let Some((least, greatest)) = self.bounds() else { return true };
        let is_above = |low: &Value<'_>| !matches!(low, Value::Text(low) if *low > greatest.as_str());
        let is_below = |high: &Value<'_>| !matches!(high, Value::Text(high) if *high < least.as_str());
        low.is_none_or(is_above) && high.is_none_or(is_below)
    }

    /// Its texts by length.
    fn forms(&self) -> impl Iterator<Item = Vec<Option<char>>> + '_ {
        self.n_hidden_of_one().map(|n_hidden| self.form(n_hidden))
    }

    /// Its texts with so many hidden characters, which are `None`.
    fn form(&self, n_hidden: usize) -> Vec<Option<char>> {
        let (shown, hidden) = (self.shown.chars().map(Some), std::iter::repeat_n(None, n_hidden));
        match self.side {
            MaskSide::Right => shown.chain(hidden).collect(),
            MaskSide::Left => hidden.chain(shown).collect(),
        }
    }

    /// How many hidden characters a text can have. A value of one character is hidden by the root alone, and so is the
    /// empty text.
    fn n_hidden_of_one(&self) -> std::ops::RangeInclusive<usize> {
        usize::from(!self.is_everything())..=self.n_hidden
    }
}
