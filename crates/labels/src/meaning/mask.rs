//! [`Mask`]: a text whose last or first characters are hidden.

use kohort_model::hierarchy::MaskSide;
use kohort_model::{Value, ValueType};
use serde::{Deserialize, Serialize};

use super::possible::End;
use super::{ANYTHING, Pattern};

const STAR: char = '*';

/// The texts that a masked label can stand for: those with its shown characters and at least one hidden one. All masked
/// labels of a column have the same length, so a reader can't tell how long the value is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mask<'a> {
    shown: &'a str,
    n_stars: usize,
    hides: Hides,
    side: MaskSide,
    value_type: ValueType,
}

/// Bounds of the texts of a mask.
pub(super) struct TextBounds {
    pub(super) low: String,
    /// `None` if there is no upper bound.
    pub(super) high: Option<String>,
    pub(super) end: End,
}

/// How many characters the stars can stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Hides {
    /// At most as many as there are stars, because no value is longer than the mask.
    AsManyAsStars,
    /// Any number, because longer values may come.
    AnyNumber,
}

impl<'a> Mask<'a> {
    /// The mask that a label shows; `None` if it hides nothing. All labels that hide something have the same width.
    pub(super) fn read(
        label: &'a str,
        side: MaskSide,
        width: usize,
        hides: Hides,
        value_type: ValueType,
    ) -> Option<Mask<'a>> {
        let n_characters = label.chars().count();
        if n_characters != width {
            return (label == ANYTHING).then_some(Mask { shown: "", n_stars: width.max(1), hides, side, value_type });
        }
        let shown = match side {
            MaskSide::Right => label.trim_end_matches(STAR),
            MaskSide::Left => label.trim_start_matches(STAR),
        };
        let n_stars = n_characters - shown.chars().count();
        (n_stars > 0).then_some(Mask { shown, n_stars, hides, side, value_type })
    }

    /// Whether the mask shows no character.
    pub(super) fn is_everything(&self) -> bool {
        self.shown.is_empty()
    }

    /// Whether a value is among the texts. Values that can be spelled in several ways always are.
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
        rest.is_some_and(|rest| self.could_hide(rest.chars().count()))
    }

    /// Whether the two masks have a text in common.
    pub(super) fn intersects(&self, other: &Mask<'_>) -> bool {
        let n_shown = other.shown.chars().count();
        // Longer common texts have characters that neither mask shows. Without those they are common texts, too.
        self.forms(n_shown + other.n_stars).any(|form| {
            let n_hidden = form.len().checked_sub(n_shown).filter(|&n_hidden| other.could_hide(n_hidden));
            n_hidden.is_some_and(|n_hidden| {
                form.iter().zip(other.form(n_hidden)).all(|(a, b)| a.is_none() || b.is_none() || *a == b)
            })
        })
    }

    /// Whether one of the texts matches.
    pub(super) fn could_match(&self, pattern: &Pattern) -> bool {
        self.forms(n_that_patterns_tell_apart(pattern)).any(|form| pattern.could_match(form.into_iter()))
    }

    /// Whether one of the texts does not match. It suffices to hide characters that the pattern does not name.
    pub(super) fn could_miss(&self, pattern: &Pattern) -> bool {
        let unnamed = ('\u{e000}'..).find(|&character| !pattern.text().contains(character)).unwrap_or(char::MAX);
        self.forms(n_that_patterns_tell_apart(pattern)).any(|form| {
            let text: String = form.into_iter().map(|character| character.unwrap_or(unnamed)).collect();
            !pattern.matches(&text)
        })
    }

    /// The bounds of the texts; `None` if values are not ordered as their texts are.
    pub(super) fn bounds(&self) -> Option<TextBounds> {
        if self.value_type != ValueType::Text {
            return None;
        }
        let filled = |with: char, n_hidden: usize| -> String {
            self.form(n_hidden).into_iter().map(|character| character.unwrap_or(with)).collect()
        };
        let low = match (self.side, self.hides) {
            _ if self.is_everything() => String::new(),
            (MaskSide::Right, _) => filled('\0', 1),
            (MaskSide::Left, Hides::AsManyAsStars) => filled('\0', self.n_stars),
            (MaskSide::Left, Hides::AnyNumber) => "\0".to_owned(),
        };
        let (high, end) = match (self.side, self.hides) {
            (_, Hides::AsManyAsStars) => (Some(filled(char::MAX, self.n_stars)), End::Included),
            (MaskSide::Right, Hides::AnyNumber) => (above_all_that_begin_with(self.shown), End::Excluded),
            (MaskSide::Left, Hides::AnyNumber) => (None, End::Excluded),
        };
        Some(TextBounds { low, high, end })
    }

    /// Whether a text may lie between two bounds.
    pub(super) fn reaches(&self, low: Option<&Value<'_>>, high: Option<&Value<'_>>) -> bool {
        let Some(own) = self.bounds() else { return true };
        let is_below = |high: &Value<'_>| !matches!(high, Value::Text(high) if *high < own.low.as_str());
        let is_above = |low: &Value<'_>| match (low, &own.high) {
            (Value::Text(low), Some(high)) => *low < high.as_str() || own.end == End::Included && low == high,
            _ => true,
        };
        low.is_none_or(is_above) && high.is_none_or(is_below)
    }

    /// Whether this many characters can be hidden. Only the root hides the empty text.
    fn could_hide(&self, n_hidden: usize) -> bool {
        let is_enough = n_hidden > 0 || self.is_everything();
        is_enough && (self.hides == Hides::AnyNumber || n_hidden <= self.n_stars)
    }

    /// The texts by length. If any number of characters can be hidden, the longest form hides `n_most` characters, or as
    /// many as there are stars.
    fn forms(&self, n_most: usize) -> impl Iterator<Item = Vec<Option<char>>> + '_ {
        (0..=n_most.max(self.n_stars)).filter(|&n_hidden| self.could_hide(n_hidden)).map(|n_hidden| self.form(n_hidden))
    }

    /// The texts with this many hidden characters, which are `None`.
    fn form(&self, n_hidden: usize) -> Vec<Option<char>> {
        let (shown, hidden) = (self.shown.chars().map(Some), std::iter::repeat_n(None, n_hidden));
        match self.side {
            MaskSide::Right => shown.chain(hidden).collect(),
            MaskSide::Left => hidden.chain(shown).collect(),
        }
    }
}

/// The first text after all texts that begin with a text; `None` if there is none.
fn above_all_that_begin_with(text: &str) -> Option<String> {
    let (last, character) = text.char_indices().rev().find(|&(_, character)| character != char::MAX)?;
    let mut above = text[..last].to_owned();
    above.extend((character..=char::MAX).nth(1));
    Some(above)
}

/// How many hidden characters a pattern can tell apart. With more, one of them falls to a `%`, which takes any number.
fn n_that_patterns_tell_apart(pattern: &Pattern) -> usize {
    pattern.text().chars().count() + 1
}
