//! [`suggest`]: suggests roles and hierarchies by the content and the names of columns.
//!
//! A suggestion is a starting point and comes with its reason. If nothing points to another role, the suggestion is
//! `quasi`, because that is the careful choice. Reasons contain counts, never values.

mod contents;
mod names;
mod profile;
mod reading;
mod render;

use std::path::Path;

use kohort_io::{Batches, read_batches_for_check};
use kohort_model::{Notation, Progress, Role, Table, ValueType};
use kohort_verify::{Followers, IdentifierKind, person_column};

use self::contents::Contents;
use self::names::Sounds;
use self::profile::Profile;
pub use self::reading::Setting;

use self::reading::FileReading;
use crate::Error;

/// The suggestion for one column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suggestion {
    /// The name of the column.
    pub name: String,
    /// The suggested role.
    pub role: Role,
    /// The other settings of the column, as a spec writes them.
    pub settings: &'static [(&'static str, &'static str)],
    /// The reason for the suggestion.
    pub reason: String,
}

/// Suggestions for a whole table. They set no k.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suggestions {
    /// The table's name.
    pub table: String,
    /// Settings that the file needs to be read.
    pub settings: Vec<Setting>,
    /// The column that names the person, and why.
    pub person: Option<(String, String)>,
    /// The suggestions for the table's columns, in their order.
    pub columns: Vec<Suggestion>,
}

/// Suggests how a file is read, and a role for each of its columns. The result is a place to begin: somebody who knows the
/// data has to go through it line by line.
///
/// ```no_run
/// # fn main() -> Result<(), kohort::Error> {
/// let suggestions = kohort::suggest("patients.csv", &kohort::Silent)?;
/// for column in &suggestions.columns {
///     println!("{}: {} ({})", column.name, column.role, column.reason);
/// }
/// std::fs::write("release.toml", suggestions.to_toml("patients.csv")).expect("the folder can be written to");
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Input`] if no way to read the file is found.
pub fn suggest(file: impl AsRef<Path>, progress: &dyn Progress) -> Result<Suggestions, Error> {
    let FileReading { table, notation, settings } = FileReading::new(file.as_ref(), progress)?;
    Ok(Suggestions { settings, ..suggest_roles(&table, &notation) })
}

/// Suggests the same for rows in memory. `name` is the name of the table.
///
/// # Errors
/// [`Error::Input`] if a column can't be read.
pub fn suggest_batches(name: &str, batches: &Batches, progress: &dyn Progress) -> Result<Suggestions, Error> {
    Ok(suggest_roles(&read_batches_for_check(name, batches, progress)?, &Notation::default()))
}

const NONE: &[(&str, &str)] = &[];
const DATE: &[(&str, &str)] = &[("hierarchy", "\"date\"")];
const FLAT: &[(&str, &str)] = &[("hierarchy", "\"flat\"")];
const MASK: &[(&str, &str)] = &[("type", "\"text\""), ("hierarchy", "{ mask = \"right\" }")];

/// A column with a different value for this share of the persons is nearly unique.
const NEARLY_EVERY: f64 = 0.95;

/// Suggests a role for each column.
fn suggest_roles(table: &Table, notation: &Notation) -> Suggestions {
    let profiles: Vec<Profile> = table.columns.iter().map(|column| Profile::new(column, notation)).collect();
    let sounds: Vec<Sounds> = table.columns.iter().map(|column| Sounds::of(&column.name)).collect();
    let person = find_person(table, &profiles, &sounds);
    let n_persons = person.as_ref().map_or(table.n_rows, |(position, _)| profiles[*position].n_distinct);
    let columns = table.columns.iter().enumerate().map(|(position, column)| {
        let profile = &profiles[position];
        let (role, settings, why) = if person.as_ref().is_some_and(|(person, _)| *person == position) {
            (Role::Key, NONE, "names the person".to_owned())
        } else {
            let evidence = Evidence {
                profile,
                sounds: sounds[position],
                kind: IdentifierKind::of(&column.texts),
                contents: Contents::of(&column.texts, profile.distinct_share()),
                n_persons,
            };
            evidence.role()
        };
        Suggestion { name: column.name.clone(), role, settings, reason: format!("{}: {why}", profile.describe()) }
    });
    let columns = columns.collect();
    let person = person.map(|(position, why)| (table.columns[position].name.clone(), why));
    Suggestions { table: table.name.clone(), settings: Vec::new(), person, columns }
}

/// The column that names the person, and why. The first of these is chosen: a key that sounds like a person and has several
/// rows per value; the column that determines most others; a key that sounds like a person; a key that is different in every
/// row.
fn find_person(table: &Table, profiles: &[Profile], sounds: &[Sounds]) -> Option<(usize, String)> {
    let keys = || (0..profiles.len()).filter(|&position| sounds[position].is_key && profiles[position].n_null == 0);
    let each_counts_once = |position: usize| {
        let Profile { n_distinct, n_rows, .. } = profiles[position];
        format!("{n_distinct} persons in {n_rows} rows; each counts once")
    };
    let named = keys().find(|&position| sounds[position].is_person);
    if let Some(position) = named.filter(|&position| !profiles[position].is_unique()) {
        return Some((position, each_counts_once(position)));
    }
    if let Some(found) = person_column(table, |_| true, Followers::MANY) {
        let why = "in the rows of one value, most other columns hardly vary";
        return Some((found.position, format!("{}; {why}", each_counts_once(found.position))));
    }
    let unique = named.or_else(|| keys().find(|&position| profiles[position].is_unique()));
    unique.map(|position| (position, "different in every row".to_owned()))
}

/// The evidence for the role of a column.
struct Evidence<'p> {
    profile: &'p Profile,
    sounds: Sounds,
    kind: Option<IdentifierKind>,
    contents: Contents,
    n_persons: usize,
}

impl Evidence<'_> {
    fn role(&self) -> (Role, &'static [(&'static str, &'static str)], String) {
        let Evidence { profile, sounds, kind, contents, .. } = *self;
        let say = |role: Role, why: &str| (role, NONE, why.to_owned());
        if profile.n_distinct == 0 {
            return say(Role::Drop, "holds nothing");
        }
        if let Some(kind) = kind {
            return (Role::Identifier, NONE, format!("nearly every value has the format of {}", kind.name));
        }
        if sounds.is_identifier {
            return say(Role::Identifier, "sounds like it names a person outright");
        }
        if sounds.is_key && profile.is_unique() {
            return say(Role::Identifier, "a number that is different in every row");
        }
        let l = profile.n_distinct.min(3);
        let ask = if l < 2 { String::new() } else { format!("; give it a requirement too, such as l = {l}") };
        if let Contents::Clinical(system) = contents {
            return (Role::Sensitive, NONE, format!("looks like {system}{ask}"));
        }
        if sounds.is_sensitive {
            return (Role::Sensitive, NONE, format!("sounds like something that nobody should learn{ask}"));
        }
        if !sounds.is_quasi
            && let Some((role, why)) = self.role_of_unknown()
        {
            return say(role, why);
        }
        let why = if sounds.is_quasi {
            "sounds like something that others could know about a person"
        } else {
            "might be known to others; use plain if it helps nobody to find a person"
        };
        let (settings, how) = generalization(profile, sounds);
        (Role::Quasi, settings, format!("{why}; {how}"))
    }

    /// The role of a column whose name says nothing, if its values suggest one.
    fn role_of_unknown(&self) -> Option<(Role, &'static str)> {
        let profile = self.profile;
        let is_text = profile.value_type == ValueType::Text;
        let is_nearly_unique =
            profile.n_rows >= 20 && profile.n_distinct as f64 >= NEARLY_EVERY * self.n_persons as f64;
        match self.contents {
            Contents::Prose if is_text => return Some((Role::Drop, "free text, which may say anything about anybody")),
            Contents::Telephone => return Some((Role::Identifier, "looks like telephone numbers")),
            Contents::Names if is_text => return Some((Role::Identifier, "looks like names of people")),
            _ => {}
        }
        if profile.n_distinct == 1 && profile.n_null == 0 {
            return Some((Role::Plain, "the same in every row"));
        }
        if is_text && is_nearly_unique {
            return Some((Role::Identifier, "a text that is different for nearly every person"));
        }
        if profile.value_type == ValueType::Integer && profile.has_long_codes() && is_nearly_unique {
            return Some((Role::Identifier, "numbers of one length, different for nearly every person"));
        }
        None
    }
}

/// How a quasi column might be generalized.
fn generalization(profile: &Profile, sounds: Sounds) -> (&'static [(&'static str, &'static str)], &'static str) {
    match profile.value_type {
        ValueType::Date | ValueType::Timestamp => (DATE, "dates become months, quarters, years, decades"),
        ValueType::Integer if sounds.is_place_code => (MASK, "codes lose their last digits first"),
        ValueType::Integer | ValueType::Decimal | ValueType::Float => (NONE, "numbers become ranges"),
        ValueType::Text if sounds.is_place_code || profile.looks_like_codes() => {
            (MASK, "codes lose their last characters first")
        }
        ValueType::Text if profile.n_distinct > 5 => (FLAT, "shown as it is or as *; a hierarchy file would lose less"),
        ValueType::Text | ValueType::Boolean => (FLAT, "shown as it is or as *"),
    }
}

#[cfg(test)]
mod tests {
    use kohort_model::Column;

    use super::*;

    fn table(columns: &[(&str, &[&str])]) -> Table {
        let n_rows = columns[0].1.len();
        let column = |&(name, cells): &(&str, &[&str])| {
            let cells = cells.iter().map(|&cell| (!cell.is_empty()).then_some(cell));
            Column::from_cells(name, Role::Plain, cells)
        };
        Table { name: "t".to_owned(), columns: columns.iter().map(column).collect(), n_rows, person: None }
    }

    fn roles(table: &Table) -> Vec<(String, Role)> {
        suggest_roles(table, &Notation::default())
            .columns
            .into_iter()
            .map(|column| (column.name, column.role))
            .collect()
    }

    #[test]
    fn names_and_uniqueness_decide_the_role() {
        let table = table(&[
            ("patient_id", &["1", "2", "3"]),
            ("Last Name", &["a", "b", "c"]),
            ("dateOfBirth", &["1984-03-17", "1990-01-01", "1990-01-01"]),
            ("zipcode", &["88512", "88540", "88541"]),
            ("diagnosis", &["flu", "flu", "asthma"]),
            ("country", &["x", "x", "x"]),
            ("ward", &["a", "a", "a"]),
            ("nothing", &["", "", ""]),
            ("shoe", &["41", "42", "43"]),
        ]);
        let expected = [
            ("patient_id", Role::Key),
            ("Last Name", Role::Identifier),
            ("dateOfBirth", Role::Quasi),
            ("zipcode", Role::Quasi),
            ("diagnosis", Role::Sensitive),
            ("country", Role::Quasi),
            ("ward", Role::Plain),
            ("nothing", Role::Drop),
            ("shoe", Role::Quasi),
        ];
        let expected: Vec<(String, Role)> = expected.iter().map(|&(name, role)| (name.to_owned(), role)).collect();
        assert_eq!(roles(&table), expected);
    }

    #[test]
    fn a_person_may_have_several_rows() {
        let table =
            table(&[("visit_id", &["1", "2", "3"]), ("patient_id", &["7", "7", "8"]), ("age", &["1", "1", "2"])]);
        let suggestions = suggest_roles(&table, &Notation::default());
        assert_eq!(
            suggestions.person,
            Some(("patient_id".to_owned(), "2 persons in 3 rows; each counts once".to_owned()))
        );
        assert_eq!(suggestions.columns[0].role, Role::Identifier);
    }

    #[test]
    fn postcodes_are_masked_and_dates_are_levelled() {
        let table =
            table(&[("plz", &["12345", "12346"]), ("birth", &["1984-03-17", "1990-01-01"]), ("age", &["1", "2"])]);
        let settings: Vec<_> =
            suggest_roles(&table, &Notation::default()).columns.iter().map(|column| column.settings).collect();
        assert_eq!(settings, [MASK, DATE, NONE]);
    }
}
