//! Tells what the texts of a column look like: clinical codes, telephone numbers, names of people, prose.
//!
//! A format must fit nearly all distinct texts, so that one odd cell does not decide.

use kohort_model::Texts;

/// The share of distinct texts that must have a format.
const NEARLY_ALL: f64 = 0.95;
/// Fewer distinct texts than this may have a format by chance.
const FEWEST: usize = 5;
/// In a column with names of people, this share of the distinct texts contains a common given name.
const WITH_A_NAME: f64 = 0.3;

/// What the texts of a column look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contents {
    /// Codes of diagnoses, drugs or measurements, by the name of their system.
    Clinical(&'static str),
    /// Telephone numbers.
    Telephone,
    /// Names of people.
    Names,
    /// Sentences.
    Prose,
    /// Nothing in particular.
    Other,
}

/// The name of a system of codes, and whether a text is one of them.
type System = (&'static str, fn(&str) -> bool);

const CLINICAL: [System; 4] = [
    ("ATC codes of drugs", is_atc),
    ("LOINC codes", is_loinc),
    ("OPS codes of procedures", is_ops),
    ("ICD codes", is_icd),
];

/// Given names that are common in many countries. Any long column of names contains some of them.
const GIVEN: &[&str] = &[
    "adam",
    "ahmed",
    "alex",
    "alexander",
    "ali",
    "alice",
    "amelia",
    "amy",
    "ana",
    "andrea",
    "andreas",
    "andrew",
    "angela",
    "anita",
    "ann",
    "anna",
    "anne",
    "anthony",
    "antonio",
    "barbara",
    "ben",
    "benjamin",
    "brian",
    "carl",
    "carlos",
    "carol",
    "charles",
    "charlotte",
    "chris",
    "christian",
    "christine",
    "christopher",
    "claire",
    "claudia",
    "daniel",
    "david",
    "deborah",
    "dennis",
    "diana",
    "donald",
    "dorothy",
    "edward",
    "elena",
    "elizabeth",
    "emily",
    "emma",
    "eric",
    "erik",
    "eva",
    "fatima",
    "felix",
    "francesco",
    "frank",
    "gary",
    "george",
    "giovanni",
    "grace",
    "hannah",
    "hans",
    "helen",
    "henry",
    "ian",
    "ines",
    "ivan",
    "jack",
    "jacob",
    "james",
    "jan",
    "jane",
    "jason",
    "jean",
    "jennifer",
    "jessica",
    "joan",
    "johan",
    "johannes",
    "john",
    "jonas",
    "jose",
    "joseph",
    "juan",
    "julia",
    "julie",
    "karen",
    "karl",
    "katarina",
    "katherine",
    "kevin",
    "klaus",
    "kumar",
    "lars",
    "laura",
    "lena",
    "leon",
    "linda",
    "lisa",
    "louis",
    "lucas",
    "lucia",
    "luis",
    "lukas",
    "maria",
    "marie",
    "mark",
    "markus",
    "martin",
    "mary",
    "matthew",
    "max",
    "michael",
    "michel",
    "michelle",
    "mohamed",
    "mohammed",
    "nancy",
    "natalia",
    "nicolas",
    "nina",
    "olga",
    "oliver",
    "olivia",
    "omar",
    "oscar",
    "patricia",
    "patrick",
    "paul",
    "paula",
    "pedro",
    "peter",
    "petra",
    "philip",
    "pierre",
    "rachel",
    "raj",
    "richard",
    "robert",
    "rosa",
    "ruth",
    "ryan",
    "sabine",
    "samuel",
    "sandra",
    "sara",
    "sarah",
    "sofia",
    "sophie",
    "stefan",
    "stephen",
    "steven",
    "susan",
    "susanne",
    "sven",
    "thomas",
    "tim",
    "tom",
    "ursula",
    "victor",
    "wei",
    "william",
    "wolfgang",
    "yusuf",
];

impl Contents {
    /// What distinct texts look like. `distinct_share` is their number divided by the number of rows.
    pub(super) fn of(texts: &Texts, distinct_share: f64) -> Contents {
        let share = |is_one: &dyn Fn(&str) -> bool| {
            texts.iter().filter(|text| is_one(text)).count() as f64 / texts.len().max(1) as f64
        };
        if texts.len() >= FEWEST {
            if let Some((name, _)) = CLINICAL.iter().find(|(_, is_one)| share(is_one) >= NEARLY_ALL) {
                return Contents::Clinical(name);
            }
            if share(&is_telephone) >= NEARLY_ALL {
                return Contents::Telephone;
            }
        }
        let n_words = texts.iter().map(|text| text.split_whitespace().count()).sum::<usize>();
        let n_characters = texts.iter().map(|text| text.chars().count()).sum::<usize>();
        let average = |n: usize| n as f64 / texts.len().max(1) as f64;
        if average(n_words) >= 3.0 && distinct_share > 0.2 || average(n_characters) > 40.0 && distinct_share > 0.5 {
            return Contents::Prose;
        }
        if texts.len() >= 2 * FEWEST && share(&holds_a_given_name) >= WITH_A_NAME {
            return Contents::Names;
        }
        Contents::Other
    }
}

/// Whether a text has a shape, in which `A` is a letter, `0` a digit, `x` either, and any other character itself.
fn has_shape(text: &str, shape: &str) -> bool {
    text.len() == shape.len()
        && text.bytes().zip(shape.bytes()).all(|(byte, shape)| match shape {
            b'A' => byte.is_ascii_uppercase(),
            b'0' => byte.is_ascii_digit(),
            b'x' => byte.is_ascii_alphanumeric(),
            other => byte == other,
        })
}

fn is_icd(text: &str) -> bool {
    let text = text.trim_end_matches(['+', '*', '!', '-']);
    ["A0x", "A0x.x", "A0x.xx", "A0x.xxx", "A0x.xxxx", "A0xx", "A0xxx"].iter().any(|shape| has_shape(text, shape))
}

fn is_atc(text: &str) -> bool {
    ["A00AA00", "A00AA"].iter().any(|shape| has_shape(text, shape))
}

/// Digits, a dash and a Luhn check digit.
fn is_loinc(text: &str) -> bool {
    let Some((number, check)) = text.split_once('-') else { return false };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(number) || !is_number(check) || check.len() != 1 || number.len() > 7 {
        return false;
    }
    let digits = number.bytes().chain(check.bytes()).rev().map(|byte| u32::from(byte - b'0'));
    let of = |(place, digit): (usize, u32)| match place % 2 {
        0 => digit,
        _ => 2 * digit / 10 + 2 * digit % 10,
    };
    digits.enumerate().map(of).sum::<u32>() % 10 == 0
}

fn is_ops(text: &str) -> bool {
    ["0-00x", "0-00x.x", "0-00x.xx"].iter().any(|shape| has_shape(text, shape))
}

fn is_telephone(text: &str) -> bool {
    let n_digits = text.bytes().filter(u8::is_ascii_digit).count();
    let n_signs = text.bytes().filter(|byte| b" -/().".contains(byte)).count();
    let is_international = text.starts_with('+') || text.starts_with("00");
    let n_bytes = n_digits + n_signs + usize::from(text.starts_with('+'));
    (7..=15).contains(&n_digits)
        && n_bytes == text.len()
        && (is_international || text.starts_with('0') && n_signs > 0 || text.starts_with('('))
}

fn holds_a_given_name(text: &str) -> bool {
    let words: Vec<String> =
        text.split([' ', ',', '-', '.']).filter(|w| !w.is_empty()).map(str::to_lowercase).collect();
    words.len() <= 4 && words.iter().any(|word| GIVEN.binary_search(&word.as_str()).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(texts: &[&str]) -> Contents {
        Contents::of(&texts.iter().collect::<Texts>(), 1.0)
    }

    #[test]
    fn given_names_are_in_order() {
        assert!(GIVEN.is_sorted());
    }

    #[test]
    fn clinical_codes_are_known_by_their_format() {
        assert_eq!(of(&["E11.9", "I10", "J45.0", "F32.1", "M54.5"]), Contents::Clinical("ICD codes"));
        assert_eq!(
            of(&["A10BA02", "N02BE01", "C09AA05", "B01AC06", "R03AC02"]),
            Contents::Clinical("ATC codes of drugs")
        );
        assert_eq!(of(&["2345-7", "718-7", "2160-0", "4548-4", "2951-2"]), Contents::Clinical("LOINC codes"));
        assert_eq!(
            of(&["5-470", "8-980.0", "1-632.0", "5-820.00", "9-984"]),
            Contents::Clinical("OPS codes of procedures")
        );
        assert_eq!(of(&["88512", "88513", "88514", "88515", "88516"]), Contents::Other);
    }

    #[test]
    fn prose_names_and_numbers_to_call_are_told_apart() {
        assert_eq!(of(&["seen again on monday", "better, advised to rest"]), Contents::Prose);
        let names = [
            "Ada Lee",
            "Max Muster",
            "Eva Roth",
            "Tom Ode",
            "Olga Pan",
            "Ivy Rue",
            "Jan Vok",
            "Lea Moor",
            "Sue Orr",
            "Ben Ash",
        ];
        assert_eq!(of(&names), Contents::Names);
        assert_eq!(
            of(&["+49 711 12345", "+49 711 54321", "0711-99999", "(0711) 12121", "0049 711 1"]),
            Contents::Telephone
        );
    }
}
