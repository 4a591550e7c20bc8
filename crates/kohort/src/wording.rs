//! [`Parameter`]: what hints tell people to set, in the words of each program.
//!
//! The command says `--force` where Python says `force=True`. The library knows neither, so hints name a parameter in braces,
//! as `{force}` or `{person=id}`, and every program puts its own words there.

/// Something that a hint tells people to set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Parameter {
    /// A release may have blatant risks.
    AcceptRisks,
    /// Whether quasi cells are released as labels or as bounds.
    Cells,
    /// The folder that a release is written to.
    Folder,
    /// A release may be replaced by another.
    Force,
    /// The format of released tables.
    Format,
    /// The hierarchy of a column.
    Hierarchy,
    /// How much memory a job may use.
    Memory,
    /// The order of released rows.
    Order,
    /// The column that names the person.
    Person,
    /// Columns that others could know.
    Quasi,
}

impl Parameter {
    /// All of them.
    pub const ALL: [Parameter; 10] = [
        Parameter::AcceptRisks,
        Parameter::Cells,
        Parameter::Folder,
        Parameter::Force,
        Parameter::Format,
        Parameter::Hierarchy,
        Parameter::Memory,
        Parameter::Order,
        Parameter::Person,
        Parameter::Quasi,
    ];

    /// Its name in hints.
    pub fn key(self) -> &'static str {
        match self {
            Parameter::AcceptRisks => "accept_risks",
            Parameter::Cells => "cells",
            Parameter::Folder => "folder",
            Parameter::Force => "force",
            Parameter::Format => "format",
            Parameter::Hierarchy => "hierarchy",
            Parameter::Memory => "memory",
            Parameter::Order => "order",
            Parameter::Person => "person",
            Parameter::Quasi => "quasi",
        }
    }
}

/// What a program calls a parameter, with the value that a hint proposes, if it proposes one.
pub type Words = dyn Fn(Parameter, Option<&str>) -> String;

/// The words of Rust.
pub(crate) fn in_rust(parameter: Parameter, value: Option<&str>) -> String {
    match (parameter, value) {
        (Parameter::AcceptRisks, _) => "Job::accept_risks".to_owned(),
        (Parameter::Cells, _) => "CellForm::Labels".to_owned(),
        (Parameter::Force, _) => "Existing::Replace".to_owned(),
        (Parameter::Format, _) => "WriteOptions::format".to_owned(),
        (parameter, Some(value)) => format!("{} = \"{value}\"", parameter.key()),
        (parameter, None) => parameter.key().to_owned(),
    }
}

/// A hint in the words of a program. Braces around anything else than a parameter stay.
pub(crate) fn worded(hint: &str, words: &Words) -> String {
    let mut text = String::with_capacity(hint.len());
    let mut rest = hint;
    while let Some(start) = rest.find('{') {
        let (before, from_brace) = rest.split_at(start);
        text.push_str(before);
        match parameter_in(from_brace) {
            Some((parameter, value, after)) => {
                text.push_str(&words(parameter, value));
                rest = after;
            }
            None => {
                text.push('{');
                rest = &from_brace[1..];
            }
        }
    }
    text + rest
}

/// The parameter that a text begins with, its value, and what follows.
fn parameter_in(text: &str) -> Option<(Parameter, Option<&str>, &str)> {
    let (named, after) = text.strip_prefix('{')?.split_once('}')?;
    let (key, value) = named.split_once('=').map_or((named, None), |(key, value)| (key, Some(value)));
    let parameter = Parameter::ALL.into_iter().find(|parameter| parameter.key() == key)?;
    Some((parameter, value, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_puts_its_own_words_into_a_hint() {
        let flags = |parameter: Parameter, value: Option<&str>| match value {
            Some(value) => format!("--{} {value}", parameter.key()),
            None => format!("--{}", parameter.key()),
        };
        let hint = "rename '{a}', say {person=id} ({order=input}), or replace it with {force}";
        assert_eq!(worded(hint, &flags), "rename '{a}', say --person id (--order input), or replace it with --force");
        assert_eq!(
            worded(hint, &in_rust),
            "rename '{a}', say person = \"id\" (order = \"input\"), or replace it with Existing::Replace"
        );
        for unchanged in ["", "{", "}", "a {b", "{force", "{=}", "no braces"] {
            assert_eq!(worded(unchanged, &flags), unchanged);
        }
        for parameter in Parameter::ALL {
            assert_eq!(worded(&format!("{{{}}}", parameter.key()), &flags), format!("--{}", parameter.key()));
        }
    }
}
