//! [`make_classified`]: a hierarchy of codes that are structured by rule: ICD-10, ISCO-08, NUTS, and countries.
//!
//! # Guarantee
//! Every value of the column is a leaf, spelled as in the table. Inner labels are never codes, so a code that is itself a group, such
//! as `E11` beside `E11.9`, is a leaf of its own group.
//! # Deviations
//! Names of diseases, occupations and regions are not included; only major groups of ISCO and regions of countries have some.

mod tables;

use std::collections::BTreeMap;

use kohort_io::RowNumbers;
use kohort_model::{Hierarchy, NULL, Progress, Texts};

use crate::error::Error;
use crate::make::ColumnOfFile;
use tables::{COUNTRIES, ICD_10, ISCO_MAJOR};

/// A classification whose codes say where they belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Classification {
    /// Diseases: `E11.9 -> E11.- -> E10-E14 -> IV E00-E90 -> *`.
    Icd10,
    /// Occupations: `2211 -> 221* -> 22** -> 2 Professionals -> *`.
    Isco,
    /// Regions of Europe: `DE212 -> DE21* -> DE2* -> DE* -> *`.
    Nuts,
    /// Countries by two or three letters: `DE -> Western Europe -> Europe -> *`. All countries are listed, not only those of the table.
    Countries,
}

impl Classification {
    /// All of them.
    pub const ALL: [Classification; 4] =
        [Classification::Icd10, Classification::Isco, Classification::Nuts, Classification::Countries];

    /// The word for it on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Classification::Icd10 => "icd10",
            Classification::Isco => "isco",
            Classification::Nuts => "nuts",
            Classification::Countries => "countries",
        }
    }

    /// The classification with this word.
    pub fn from_word(word: &str) -> Option<Self> {
        Classification::ALL.into_iter().find(|kind| kind.word() == word)
    }

    /// What a code looks like.
    fn example(self) -> &'static str {
        match self {
            Classification::Icd10 => "a letter, two digits or letters and what follows, such as E11 or E11.9",
            Classification::Isco => "one to four digits, such as 2211; with the zero of 0110",
            Classification::Nuts => "two letters and up to three digits or letters, such as DE212",
            Classification::Countries => "two or three letters of ISO 3166-1, such as DE or DEU",
        }
    }

    /// The labels above a code, the nearest first and without the root; `None` if it is no code.
    fn labels(self, text: &str) -> Option<Vec<String>> {
        let code = text.trim().to_ascii_uppercase();
        match self {
            Classification::Icd10 => icd_10(&code),
            Classification::Isco => isco(&code),
            Classification::Nuts => nuts(&code),
            Classification::Countries => countries().get(code.as_str()).map(|(labels, _)| labels.clone()),
        }
    }
}

fn icd_10(code: &str) -> Option<Vec<String>> {
    let category = code.get(..3)?;
    let mut letters = category.bytes();
    let is_category = letters.next()?.is_ascii_uppercase()
        && letters.next()?.is_ascii_digit()
        && letters.next()?.is_ascii_alphanumeric();
    let rest = &code[3..];
    let rest = rest.strip_prefix('.').unwrap_or(rest);
    let is_rest = rest.len() <= 4 && rest.bytes().all(|letter| letter.is_ascii_alphanumeric() || letter == b'-');
    if !is_category || !is_rest {
        return None;
    }
    let holds = |range: &str| range.split_once('-').is_some_and(|(first, last)| first <= category && category <= last);
    // Editions of countries have codes before and behind the WHO's ranges, such as V00, D49 and Y99.
    let first = |chapter: &str| -> Option<String> {
        let (_, range) = chapter.split_once(' ')?;
        Some(range.get(..3)?.replace("01", "00"))
    };
    let begins_before = ICD_10.iter().filter(|(chapter, _)| first(chapter).is_some_and(|first| *first <= *category));
    let (chapter, blocks) = begins_before.max_by_key(|(chapter, _)| first(chapter))?;
    let block = blocks.split(' ').find(|block| holds(block));
    Some(
        [Some(format!("{category}.-")), block.map(str::to_owned), Some((*chapter).to_owned())]
            .into_iter()
            .flatten()
            .collect(),
    )
}

fn isco(code: &str) -> Option<Vec<String>> {
    if !(1..=4).contains(&code.len()) || !code.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let group = |n_digits: usize| match n_digits {
        1 => ISCO_MAJOR[usize::from(code.as_bytes()[0] - b'0')].to_owned(),
        n => format!("{}{}", &code[..n], "*".repeat(4 - n)),
    };
    Some((1..=code.len().min(3)).rev().map(group).collect())
}

fn nuts(code: &str) -> Option<Vec<String>> {
    let is_code = (2..=5).contains(&code.len())
        && code.bytes().take(2).all(|letter| letter.is_ascii_uppercase())
        && code.bytes().all(|letter| letter.is_ascii_alphanumeric());
    is_code.then(|| (2..=code.len().min(4)).rev().map(|n| format!("{}*", &code[..n])).collect())
}

/// For each code of a country the labels above it, and the number of its letters.
fn countries() -> BTreeMap<&'static str, (Vec<String>, usize)> {
    let mut known = BTreeMap::new();
    for &(continent, region, codes) in COUNTRIES {
        let labels: Vec<String> = if region == continent {
            vec![continent.to_owned()]
        } else {
            vec![region.to_owned(), continent.to_owned()]
        };
        for country in codes.split(' ') {
            let (two, three) = country.split_at(2);
            known.insert(two, (labels.clone(), 2));
            known.insert(three, (labels.clone(), 3));
        }
    }
    known
}

/// The leaves of a hierarchy: the values, and for countries also those that the table does not have.
fn leaves(kind: Classification, values: &Texts) -> Vec<String> {
    let mut leaves: Vec<String> = values.iter().map(str::to_owned).collect();
    if kind == Classification::Countries {
        let known = countries();
        for n_letters in [2, 3] {
            if values.iter().any(|value| value.trim().len() == n_letters) {
                let others = known.iter().filter(|(_, (_, n))| *n == n_letters).map(|(code, _)| (*code).to_owned());
                leaves.extend(others);
            }
        }
    }
    leaves.sort_unstable();
    leaves.dedup();
    leaves
}

/// The tree of some codes; `None` if some are none.
fn tree(kind: Classification, values: &Texts) -> Option<Hierarchy> {
    let mut paths: Vec<(Vec<String>, String)> = Vec::new();
    for leaf in leaves(kind, values) {
        let mut above = kind.labels(&leaf)?;
        above.reverse();
        paths.push((above, leaf));
    }
    paths.sort_unstable();
    let mut nodes: Vec<(&str, u32)> = vec![("*", 0)];
    let mut known: BTreeMap<&str, u32> = BTreeMap::new();
    for (above, leaf) in &paths {
        let mut parent = 0;
        for label in above {
            parent = *known.entry(label).or_insert_with(|| {
                nodes.push((label, parent));
                nodes.len() as u32 - 1
            });
        }
        nodes.push((leaf, parent));
    }
    Hierarchy::from_nodes(nodes)
}

/// Makes the hierarchy of the codes in a column of a file.
///
/// # Errors
/// [`Error::Input`] if the file can't be read, has no such column, or holds values that are no codes.
pub fn make_classified(of: &ColumnOfFile, kind: Classification, progress: &dyn Progress) -> Result<Hierarchy, Error> {
    let values = of.read(progress)?;
    if let Some(tree) = tree(kind, &values.texts) {
        return Ok(tree);
    }
    let is_bad: Vec<bool> = values.texts.iter().map(|text| kind.labels(text).is_none()).collect();
    let rows = RowNumbers::with_ids(&values.ids, |id| id != NULL && is_bad[id as usize]);
    let (file, column) = (of.file.display(), &of.column);
    let message = format!("{file}: column '{column}' holds values that are no codes of {}, in {rows}", kind.word());
    Err(Error::input(message, format!("correct them; a code is {}", kind.example())))
}

/// Makes the hierarchy of codes in memory.
///
/// # Errors
/// [`Error::Input`] if some of the values are no codes.
pub fn classified<'a>(values: impl IntoIterator<Item = &'a str>, kind: Classification) -> Result<Hierarchy, Error> {
    let values: Texts = values.into_iter().collect();
    tree(kind, &values).ok_or_else(|| {
        let n_bad = values.iter().filter(|text| kind.labels(text).is_none()).count();
        let message = format!("{n_bad} of {} values are no codes of {}", values.len(), kind.word());
        Error::input(message, format!("correct them; a code is {}", kind.example()))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn path(kind: Classification, values: &[&str], value: &str) -> Vec<String> {
        let tree = tree(kind, &values.iter().collect()).unwrap();
        let leaf = tree.leaf(value).unwrap();
        tree.path(leaf).map(|node| tree.label(node).to_owned()).collect()
    }

    #[test]
    fn codes_of_diseases_are_below_category_block_and_chapter() {
        let values = ["E11", "e11.9", "E119", "C50.1", "T98", "A99", "D49", "V00", "U07.1"];
        let of = |value| path(Classification::Icd10, &values, value);
        assert_eq!(of("E11"), ["E11", "E11.-", "E10-E14", "IV E00-E90", "*"]);
        assert_eq!(of("e11.9"), ["e11.9", "E11.-", "E10-E14", "IV E00-E90", "*"]);
        assert_eq!(of("C50.1"), ["C50.1", "C50.-", "C50-C50", "II C00-D48", "*"]);
        assert_eq!(of("D49"), ["D49", "D49.-", "II C00-D48", "*"]);
        assert_eq!(of("V00"), ["V00", "V00.-", "XX V01-Y98", "*"]);
        assert_eq!(of("T98"), ["T98", "T98.-", "T90-T98", "XIX S00-T98", "*"]);
        assert_eq!(of("U07.1"), ["U07.1", "U07.-", "U00-U49", "XXII U00-U99", "*"]);
    }

    #[test]
    fn values_in_memory_that_are_no_codes_are_counted_and_not_shown() {
        let tree = classified(["2211", "0110"], Classification::Isco).unwrap();
        assert_eq!(tree.leaves().len(), 2);
        let error = classified(["2211", "CANARY", "22 11"], Classification::Isco).unwrap_err();
        assert!(
            error.to_string().contains("2 of 3 values are no codes of isco") && !error.to_string().contains("CANARY")
        );
    }

    #[test]
    fn chapters_and_blocks_are_ascending_and_each_block_is_inside_of_its_chapter() {
        for (chapter, blocks) in ICD_10 {
            let (first, last) = chapter.split_once(' ').unwrap().1.split_once('-').unwrap();
            let blocks: Vec<(&str, &str)> = blocks.split(' ').map(|block| block.split_once('-').unwrap()).collect();
            assert!(blocks.iter().all(|(from, to)| first <= *from && from <= to && *to <= last), "{chapter}");
            assert!(blocks.windows(2).all(|pair| pair[0].1 < pair[1].0), "{chapter}");
        }
    }

    #[test]
    fn codes_of_occupations_and_regions_are_below_their_beginnings() {
        let isco = ["2211", "221", "2", "0110"];
        let of = |value| path(Classification::Isco, &isco, value);
        assert_eq!(of("2211"), ["2211", "221*", "22**", "2 Professionals", "*"]);
        assert_eq!(of("221"), ["221", "221*", "22**", "2 Professionals", "*"]);
        assert_eq!(of("2"), ["2", "2 Professionals", "*"]);
        assert_eq!(of("0110"), ["0110", "011*", "01**", "0 Armed forces occupations", "*"]);
        let nuts = ["DE212", "DE21", "DE", "AT130"];
        let of = |value| path(Classification::Nuts, &nuts, value);
        assert_eq!(of("DE212"), ["DE212", "DE21*", "DE2*", "DE*", "*"]);
        assert_eq!(of("DE21"), ["DE21", "DE21*", "DE2*", "DE*", "*"]);
        assert_eq!(of("DE"), ["DE", "DE*", "*"]);
    }

    #[test]
    fn every_country_is_listed_once_whoever_is_in_the_table() {
        let known = countries();
        assert_eq!(known.len(), 2 * 249);
        assert_eq!(path(Classification::Countries, &["DE", "AQ"], "AQ"), ["AQ", "Antarctica", "*"]);
        assert_eq!(path(Classification::Countries, &["DE"], "FR"), ["FR", "Western Europe", "Europe", "*"]);
        assert_eq!(path(Classification::Countries, &["deu"], "USA"), ["USA", "Northern America", "Americas", "*"]);
        let shown = |values: &[&str]| {
            let tree = tree(Classification::Countries, &values.iter().collect()).unwrap();
            tree.leaves().iter().map(|&leaf| tree.label(leaf).to_owned()).collect::<BTreeSet<_>>()
        };
        assert_eq!(shown(&["DE"]), shown(&["FR", "US"]));
    }

    #[test]
    fn what_is_no_code_has_no_labels() {
        for (kind, texts) in [
            (Classification::Icd10, &["", "E", "11E", "E1", "E11.12345", "E11 9", "\u{e4}11", "W\u{20ac}1"][..]),
            (Classification::Isco, &["", "22111", "2a", "-1"]),
            (Classification::Nuts, &["", "D", "1E2", "DE2123", "DE-2"]),
            (Classification::Countries, &["", "XX", "Germany", "D"]),
        ] {
            for text in texts {
                assert_eq!(kind.labels(text), None, "{kind:?} {text}");
            }
        }
    }
}
