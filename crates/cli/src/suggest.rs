//! Roles and hierarchies suggested from names, uniqueness and entropy, for `kohort init`.
//!
//! A suggestion is a starting point with its reason; where nothing speaks for another role, it is `quasi`, the
//! careful one. Reasons hold counts, never values.

mod names;
mod profile;

use kohort_model::{Role, Table, ValueType};

use self::names::Sounds;
use self::profile::Profile;

/// One column's suggestion.
pub(crate) struct Suggestion {
    /// The column.
    pub(crate) name: String,
    /// What it is for.
    pub(crate) role: Role,
    /// The rest of its settings, as a spec writes them.
    pub(crate) settings: &'static [(&'static str, &'static str)],
    /// Why.
    pub(crate) reason: String,
}

/// Suggestions for a whole table.
pub(crate) struct Suggestions {
    /// The column that names the person, and why.
    pub(crate) person: Option<(String, String)>,
    /// Per column, in the table's order.
    pub(crate) columns: Vec<Suggestion>,
}

const NONE: &[(&str, &str)] = &[];
const DATE: &[(&str, &str)] = &[("hierarchy", "\"date\"")];
const FLAT: &[(&str, &str)] = &[("hierarchy", "\"flat\"")];
const MASK: &[(&str, &str)] = &[("type", "\"text\""), ("hierarchy", "{ mask = \"right\" }")];

/// How much longer than a code a text is on average when it is taken for prose.
const PROSE: f64 = 40.0;

/// Suggests what each column of a table is for.
pub(crate) fn suggest(table: &Table) -> Suggestions {
    let profiles: Vec<Profile> = table.columns.iter().map(Profile::new).collect();
    let sounds: Vec<Sounds> = table.columns.iter().map(|column| Sounds::of(&column.name)).collect();
    let person = find_person(&profiles, &sounds);
    let columns = table.columns.iter().enumerate().map(|(position, column)| {
        let (role, settings, why) = if person == Some(position) {
            (Role::Key, NONE, "names the person".to_owned())
        } else {
            role_of(&profiles[position], sounds[position])
        };
        Suggestion {
            name: column.name.clone(),
            role,
            settings,
            reason: format!("{}: {why}", profiles[position].describe()),
        }
    });
    let columns = columns.collect();
    let person = person.map(|position| {
        let profile = &profiles[position];
        let why = if profile.is_unique() {
            "different in every row".to_owned()
        } else {
            format!("{} persons in {} rows; each counts once", profile.n_distinct, profile.n_rows)
        };
        (table.columns[position].name.clone(), why)
    });
    Suggestions { person, columns }
}

/// The first key that sounds like a person's, else the first that is different in every row.
fn find_person(profiles: &[Profile], sounds: &[Sounds]) -> Option<usize> {
    let keys = || (0..profiles.len()).filter(|&position| sounds[position].is_key && profiles[position].n_null == 0);
    keys()
        .find(|&position| sounds[position].is_person)
        .or_else(|| keys().find(|&position| profiles[position].is_unique()))
}

fn role_of(profile: &Profile, sounds: Sounds) -> (Role, &'static [(&'static str, &'static str)], String) {
    let say = |role: Role, why: &str| (role, NONE, why.to_owned());
    if profile.n_distinct == 0 {
        return say(Role::Drop, "holds nothing");
    }
    if sounds.is_identifier {
        return say(Role::Identifier, "sounds like it names a person outright");
    }
    if sounds.is_key && profile.is_unique() {
        return say(Role::Identifier, "a number that is different in every row");
    }
    if sounds.is_sensitive {
        let l = profile.n_distinct.min(3);
        let ask = if l < 2 { String::new() } else { format!("; give it a requirement too, such as l = {l}") };
        return (Role::Sensitive, NONE, format!("sounds like what nobody should learn{ask}"));
    }
    if !sounds.is_quasi {
        if profile.value_type == ValueType::Text && profile.average_length > PROSE && profile.distinct_share() > 0.5 {
            return say(Role::Drop, "free text, which may say anything about anybody");
        }
        if profile.n_distinct == 1 && profile.n_null == 0 {
            return say(Role::Plain, "the same in every row");
        }
        if profile.value_type == ValueType::Text && profile.n_rows >= 20 && profile.distinct_share() > 0.95 {
            return say(Role::Identifier, "a text that is different in nearly every row");
        }
    }
    let why = if sounds.is_quasi {
        "sounds like what others could know about a person"
    } else {
        "might be known to others; plain, if it helps nobody to find a person"
    };
    let (settings, how) = generalization(profile, sounds);
    (Role::Quasi, settings, format!("{why}; {how}"))
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
        suggest(table).columns.into_iter().map(|column| (column.name, column.role)).collect()
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
        let suggestions = suggest(&table);
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
        let settings: Vec<_> = suggest(&table).columns.iter().map(|column| column.settings).collect();
        assert_eq!(settings, [MASK, DATE, NONE]);
    }
}
