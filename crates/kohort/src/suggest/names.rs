//! Tells what the name of a column sounds like.

/// What the name of a column sounds like. Several fields may be true.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sounds {
    /// A number that tells rows or persons apart.
    pub(super) is_key: bool,
    /// Something about a person.
    pub(super) is_person: bool,
    /// Something that names a person outright.
    pub(super) is_identifier: bool,
    /// Something that others could know.
    pub(super) is_quasi: bool,
    /// A code of a place, whose last characters say least.
    pub(super) is_place_code: bool,
    /// Something that nobody should learn.
    pub(super) is_sensitive: bool,
}

const KEYS: &[&str] = &["id", "ids", "no", "nr", "num", "number", "key", "uuid", "guid", "pk"];
const PERSONS: &[&str] = &[
    "person",
    "patient",
    "customer",
    "client",
    "member",
    "user",
    "subject",
    "student",
    "pupil",
    "employee",
    "citizen",
    "participant",
    "respondent",
    "resident",
];
const IDENTIFIERS: &[&str] = &[
    "name",
    "firstname",
    "lastname",
    "surname",
    "forename",
    "fullname",
    "username",
    "login",
    "email",
    "mail",
    "phone",
    "telephone",
    "tel",
    "mobile",
    "fax",
    "ssn",
    "passport",
    "iban",
    "account",
    "address",
    "street",
    "ip",
    "url",
    "licence",
    "license",
    "plate",
    "photo",
    "signature",
];
const QUASI: &[&str] = &[
    "birth",
    "birthdate",
    "birthday",
    "dob",
    "born",
    "age",
    "sex",
    "gender",
    "city",
    "town",
    "village",
    "county",
    "district",
    "state",
    "region",
    "province",
    "country",
    "nationality",
    "citizenship",
    "native",
    "race",
    "ethnic",
    "ethnicity",
    "marital",
    "married",
    "occupation",
    "job",
    "profession",
    "employer",
    "workclass",
    "education",
    "school",
    "degree",
    "language",
    "height",
    "weight",
    "admission",
    "admitted",
    "discharge",
    "discharged",
    "death",
    "died",
    "vehicle",
    "car",
    "household",
    "children",
    "relationship",
];
const PLACE_CODES: &[&str] = &["zip", "zipcode", "postcode", "postal", "postalcode", "plz"];
const SENSITIVE: &[&str] = &[
    "diagnosis",
    "diagnoses",
    "disease",
    "illness",
    "icd",
    "condition",
    "symptom",
    "drug",
    "medication",
    "medicine",
    "treatment",
    "therapy",
    "procedure",
    "allergy",
    "disability",
    "pregnant",
    "hiv",
    "salary",
    "income",
    "wage",
    "credit",
    "debt",
    "balance",
    "religion",
    "party",
    "vote",
    "crime",
    "offence",
    "offense",
    "conviction",
    "result",
    "grade",
    "score",
    "cost",
];

impl Sounds {
    pub(super) fn of(name: &str) -> Self {
        let words = words_of(name);
        let any = |known: &[&str]| words.iter().any(|word| known.contains(&word.as_str()));
        Sounds {
            is_key: any(KEYS),
            is_person: any(PERSONS),
            is_identifier: any(IDENTIFIERS),
            is_quasi: any(QUASI) || any(PLACE_CODES),
            is_place_code: any(PLACE_CODES),
            is_sensitive: any(SENSITIVE),
        }
    }
}

/// `dateOfBirth`, `date_of_birth` and `Date of birth` are the same three words.
fn words_of(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before_was_lower = false;
    for character in name.chars() {
        let starts_word = character.is_uppercase() && before_was_lower;
        before_was_lower = character.is_lowercase();
        if starts_word || !character.is_alphanumeric() {
            words.push(String::new());
        }
        if character.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(character.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_told_apart_by_marks_and_capitals() {
        for name in ["dateOfBirth", "date_of_birth", "Date of birth", "DATE-OF-BIRTH"] {
            assert_eq!(words_of(name), ["date", "of", "birth"], "{name}");
        }
        assert_eq!(words_of("ÄrzteNr"), ["ärzte", "nr"]);
        assert!(words_of("__").is_empty());
    }

    #[test]
    fn a_name_sounds_like_its_words_only() {
        assert!(Sounds::of("patientId").is_key);
        assert!(Sounds::of("patientId").is_person);
        assert!(!Sounds::of("stage").is_quasi);
        assert!(Sounds::of("zip").is_place_code);
    }
}
