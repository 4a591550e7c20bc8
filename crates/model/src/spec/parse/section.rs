//! Reads TOML key by key. The reader knows the place of every value, and collects all faults instead of stopping at the
//! first.
//!
//! Getters return `None` if a key is absent, and also if its value is wrong. In the second case the fault has been
//! noted, so callers can go on with a default, and no spec is returned in the end.

use std::ops::RangeInclusive;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::super::keys::nearest;
use super::super::{SpecError, SpecErrorKind};

/// Collects faults, and knows the line of every place.
pub(super) struct Reader<'t> {
    text: &'t str,
    problems: Vec<SpecError>,
}

/// The line and the key of a value.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) line: Option<usize>,
    pub(super) key: String,
}

/// A table of the TOML and its place.
pub(super) struct Section<'s> {
    pub(super) place: Place,
    entries: Vec<Entry<'s>>,
}

/// A key with its value.
#[derive(Clone, Copy)]
pub(super) struct Entry<'s> {
    pub(super) name: &'s str,
    key_start: usize,
    pub(super) value: &'s Spanned<DeValue<'s>>,
}

/// The numbers a setting may have.
#[derive(Clone, Copy)]
pub(super) enum Bounds {
    ZeroToOne,
    AboveZeroToOne,
    AboveZero,
    AtLeastOne,
}

impl Bounds {
    fn contains(self, number: f64) -> bool {
        number.is_finite()
            && match self {
                Bounds::ZeroToOne => (0.0..=1.0).contains(&number),
                Bounds::AboveZeroToOne => number > 0.0 && number <= 1.0,
                Bounds::AboveZero => number > 0.0,
                Bounds::AtLeastOne => number >= 1.0,
            }
    }

    fn expected(self) -> &'static str {
        match self {
            Bounds::ZeroToOne => "a number from 0 to 1",
            Bounds::AboveZeroToOne => "a number above 0 and up to 1",
            Bounds::AboveZero => "a number above 0",
            Bounds::AtLeastOne => "a number of at least 1",
        }
    }
}

impl<'t> Reader<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Reader { text, problems: Vec::new() }
    }

    pub(super) fn note(&mut self, place: &Place, fault: SpecErrorKind) {
        self.problems.push(SpecError { line: place.line, key: place.key.clone(), fault });
    }

    /// The faults in the order of their lines, those of the whole spec last.
    pub(super) fn into_problems(mut self) -> Vec<SpecError> {
        self.problems.sort_by_key(|problem| problem.line.unwrap_or(usize::MAX));
        self.problems
    }

    pub(super) fn line(&self, offset: usize) -> usize {
        self.text.as_bytes()[..offset.min(self.text.len())].iter().filter(|&&byte| byte == b'\n').count() + 1
    }

    pub(super) fn whole_spec<'s>(&mut self, table: &'s DeTable<'s>, known: &'static [&'static str]) -> Section<'s> {
        let section = Section::new(table, Place { line: None, key: String::new() });
        self.check_keys(&section, known);
        section
    }

    /// The table under a key. Notes a fault for each key that is not known.
    pub(super) fn section<'s>(
        &mut self,
        parent: &Section<'s>,
        key: &str,
        known: &'static [&'static str],
    ) -> Option<Section<'s>> {
        let section = self.names(parent, key)?;
        self.check_keys(&section, known);
        Some(section)
    }

    /// The table under a key whose own keys are names that the user chooses.
    pub(super) fn names<'s>(&mut self, parent: &Section<'s>, key: &str) -> Option<Section<'s>> {
        let entry = parent.entry(key)?;
        self.table(entry, self.place(parent, entry))
    }

    /// The table that an entry holds. Notes a fault if it holds something else.
    pub(super) fn table<'s>(&mut self, entry: Entry<'s>, place: Place) -> Option<Section<'s>> {
        match entry.value.get_ref() {
            DeValue::Table(table) => Some(Section::new(table, place)),
            other => {
                self.note(&place, wrong_kind("a table", other));
                None
            }
        }
    }

    pub(super) fn check_keys(&mut self, section: &Section<'_>, known: &'static [&'static str]) {
        for &entry in &section.entries {
            if !known.contains(&entry.name) {
                let nearest = nearest(entry.name, known.iter().copied());
                self.note(&self.place(section, entry), SpecErrorKind::UnknownKey { nearest, known });
            }
        }
    }

    pub(super) fn place(&self, section: &Section<'_>, entry: Entry<'_>) -> Place {
        Place { line: Some(self.line(entry.key_start)), key: join_key(&section.place.key, entry.name) }
    }

    /// The place of a key, or of the section if the key is missing.
    pub(super) fn place_of(&self, section: &Section<'_>, key: &str) -> Place {
        section.entry(key).map_or_else(|| section.place.clone(), |entry| self.place(section, entry))
    }

    /// The value of a key, read by `understand`. Notes a fault at its place if it can't be read.
    fn read<'s, T>(
        &mut self,
        section: &Section<'s>,
        key: &str,
        understand: impl FnOnce(&'s DeValue<'s>) -> Result<T, SpecErrorKind>,
    ) -> Option<T> {
        let entry = section.entry(key)?;
        match understand(entry.value.get_ref()) {
            Ok(value) => Some(value),
            Err(fault) => {
                self.note(&self.place(section, entry), fault);
                None
            }
        }
    }

    pub(super) fn text<'s>(&mut self, section: &Section<'s>, key: &str) -> Option<&'s str> {
        self.read(section, key, understand_text)
    }

    /// The text of a key that must be present.
    pub(super) fn required_text<'s>(
        &mut self,
        section: &Section<'s>,
        key: &'static str,
        example: &'static str,
    ) -> Option<&'s str> {
        if !section.has(key) {
            self.note(&section.place, SpecErrorKind::Missing { key, example });
        }
        self.text(section, key)
    }

    pub(super) fn flag(&mut self, section: &Section<'_>, key: &str) -> Option<bool> {
        self.read(section, key, |value| match value {
            DeValue::Boolean(flag) => Ok(*flag),
            other => Err(wrong_kind("true or false", other)),
        })
    }

    pub(super) fn whole(
        &mut self,
        section: &Section<'_>,
        key: &str,
        range: RangeInclusive<i128>,
        expected: &'static str,
    ) -> Option<u64> {
        self.read(section, key, |value| {
            let number = understand_whole(value).ok_or_else(|| wrong_kind(expected, value))?;
            let allowed = u64::try_from(number).ok().filter(|_| range.contains(&number));
            allowed.ok_or_else(|| SpecErrorKind::NotAllowed { expected, found: number.to_string() })
        })
    }

    /// A whole number of at least 1 that fits 32 bits, such as a k, an l or a count.
    pub(super) fn count(&mut self, section: &Section<'_>, key: &str) -> Option<u32> {
        self.whole(section, key, 1..=i128::from(u32::MAX), "a whole number of at least 1").map(|count| count as u32)
    }

    pub(super) fn number(&mut self, section: &Section<'_>, key: &str, bounds: Bounds) -> Option<f64> {
        self.read(section, key, |value| {
            let number = understand_number(value).ok_or_else(|| wrong_kind(bounds.expected(), value))?;
            if bounds.contains(number) { Ok(number) } else { Err(out_of_bounds(bounds.expected(), number)) }
        })
    }

    /// A list of numbers. The caller checks which numbers are allowed.
    pub(super) fn numbers(&mut self, section: &Section<'_>, key: &str, expected: &'static str) -> Option<Vec<f64>> {
        self.read(section, key, |value| {
            let DeValue::Array(items) = value else { return Err(wrong_kind(expected, value)) };
            let number = |item: &Spanned<DeValue<'_>>| {
                understand_number(item.get_ref()).ok_or_else(|| wrong_kind(expected, item.get_ref()))
            };
            items.iter().map(number).collect()
        })
    }

    /// One of a few words.
    pub(super) fn word<T: Copy>(&mut self, section: &Section<'_>, key: &str, words: &[(&'static str, T)]) -> Option<T> {
        self.read(section, key, |value| understand_word(understand_text(value)?, words))
    }

    /// A list of words.
    pub(super) fn words<T: Copy>(
        &mut self,
        section: &Section<'_>,
        key: &str,
        words: &[(&'static str, T)],
    ) -> Option<Vec<T>> {
        let texts = self.texts(section, key)?;
        self.read(section, key, |_| texts.iter().map(|text| understand_word(text, words)).collect())
    }

    /// A list of texts.
    pub(super) fn texts(&mut self, section: &Section<'_>, key: &str) -> Option<Vec<String>> {
        self.read(section, key, |value| {
            let DeValue::Array(items) = value else { return Err(wrong_kind("a list of texts", value)) };
            items.iter().map(|item| understand_text(item.get_ref()).map(str::to_owned)).collect()
        })
    }
}

impl<'s> Section<'s> {
    fn new(table: &'s DeTable<'s>, place: Place) -> Self {
        let mut entries: Vec<Entry<'s>> = table
            .iter()
            .map(|(key, value)| Entry { name: key.get_ref(), key_start: key.span().start, value })
            .collect();
        entries.sort_by_key(|entry| entry.key_start);
        Section { place, entries }
    }

    /// All entries, in the order of the text.
    pub(super) fn entries(&self) -> &[Entry<'s>] {
        &self.entries
    }

    pub(super) fn entry(&self, key: &str) -> Option<Entry<'s>> {
        self.entries.iter().find(|entry| entry.name == key).copied()
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.entry(key).is_some()
    }
}

/// The value that `words` has for a word of the spec.
///
/// # Errors
/// If the word is not known.
pub(super) fn understand_word<T: Copy>(word: &str, words: &[(&'static str, T)]) -> Result<T, SpecErrorKind> {
    words.iter().find(|(known, _)| *known == word).map(|&(_, value)| value).ok_or_else(|| {
        let known: Vec<&'static str> = words.iter().map(|&(known, _)| known).collect();
        SpecErrorKind::UnknownWord { word: word.to_owned(), nearest: nearest(word, known.iter().copied()), known }
    })
}

pub(super) fn wrong_kind(expected: &'static str, value: &DeValue<'_>) -> SpecErrorKind {
    let found = match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a decimal number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(time) if time.date.is_none() => "a time",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    };
    SpecErrorKind::WrongKind { expected, found }
}

pub(super) fn out_of_bounds(expected: &'static str, number: f64) -> SpecErrorKind {
    SpecErrorKind::NotAllowed { expected, found: number.to_string() }
}

fn understand_text<'s>(value: &'s DeValue<'s>) -> Result<&'s str, SpecErrorKind> {
    match value {
        DeValue::String(text) => Ok(text),
        other => Err(wrong_kind("a text in quotes", other)),
    }
}

fn understand_whole(value: &DeValue<'_>) -> Option<i128> {
    match value {
        DeValue::Integer(digits) => i128::from_str_radix(digits.as_str(), digits.radix()).ok(),
        _ => None,
    }
}

pub(super) fn understand_number(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Integer(_) => understand_whole(value).map(|number| number as f64),
        DeValue::Float(digits) => digits.as_str().parse().ok(),
        _ => None,
    }
}

/// `tables.patient.columns."date of birth"`.
fn join_key(parent: &str, name: &str) -> String {
    let is_bare = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    let name = if is_bare { name.to_owned() } else { format!("{name:?}") };
    if parent.is_empty() { name } else { format!("{parent}.{name}") }
}
