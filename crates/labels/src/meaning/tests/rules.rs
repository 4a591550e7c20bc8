//! Labels that a rule made: the values they can stand for do not depend on the values that the rule has seen.

use kohort_model::Texts;
use kohort_model::hierarchy::DateLevel;

use super::*;

fn made(rule: &Rule, value_type: ValueType, values: &[&str]) -> Meaning {
    let values: Texts = values.iter().copied().collect();
    let tree = rule.make(&values, value_type, &Notation::default()).unwrap();
    Meaning::by_rule("v", "c", value_type, (rule, &tree), false)
}

fn could(meaning: &Meaning, label: &str, condition: &Condition) -> bool {
    meaning.possible(label).unwrap().could(condition)
}

fn could_equal(meaning: &Meaning, label: &str, literal: &str) -> bool {
    could(meaning, label, &Condition::Compare(Comparison::Equal, meaning.point(literal).unwrap()))
}

#[test]
fn a_step_holds_its_whole_range_whatever_values_there_are() {
    let ages = made(&Rule::Steps(vec![10.0]), ValueType::Integer, &["31", "34"]);
    assert!((30..40).all(|age| could_equal(&ages, "[30,39]", &age.to_string())));
    assert!(!could_equal(&ages, "[30,39]", "40"));
    assert!(could_equal(&ages, "*", "-7") && could_equal(&ages, "34", "34") && !could_equal(&ages, "34", "35"));

    let prices = made(&Rule::Steps(vec![5.0]), ValueType::Decimal, &["21.5"]);
    let compare = |comparison, literal: &str| {
        could(&prices, "[20,25)", &Condition::Compare(comparison, prices.point(literal).unwrap()))
    };
    assert!(could_equal(&prices, "[20,25)", "24.99") && !could_equal(&prices, "[20,25)", "25"));
    assert!(compare(Comparison::GreaterOrEqual, "24.999") && !compare(Comparison::GreaterOrEqual, "25"));
    assert!(compare(Comparison::Less, "20.01") && !compare(Comparison::Less, "20"));
    let between = |low: &str, high: &str| {
        could(&prices, "[20,25)", &Condition::Between(prices.point(low).unwrap(), prices.point(high).unwrap()))
    };
    assert!(between("24", "30") && !between("25", "30"));
}

#[test]
fn a_level_of_dates_holds_all_its_days() {
    let rule = Rule::Dates(vec![DateLevel::Month, DateLevel::Quarter, DateLevel::Year, DateLevel::Decade]);
    let days = made(&rule, ValueType::Date, &["1984-02-29"]);
    for (label, first, last) in [
        ("1984-02", "1984-02-01", "1984-02-29"),
        ("1984-Q1", "1984-01-01", "1984-03-31"),
        ("1984", "1984-01-01", "1984-12-31"),
        ("1980s", "1980-01-01", "1989-12-31"),
        ("1984-02-29", "1984-02-29", "1984-02-29"),
    ] {
        let below = Condition::Compare(Comparison::Less, days.point(first).unwrap());
        let above = Condition::Compare(Comparison::Greater, days.point(last).unwrap());
        assert!(could_equal(&days, label, first) && could_equal(&days, label, last), "{label}");
        assert!(!could(&days, label, &below) && !could(&days, label, &above), "{label}");
    }
    let rule = Rule::Dates(vec![DateLevel::Day]);
    let times = made(&rule, ValueType::Timestamp, &["1984-02-29T10:00:00"]);
    assert!(could_equal(&times, "1984-02-29", "1984-02-29T23:59:59"));
    assert!(!could_equal(&times, "1984-02-29", "1984-03-01T00:00:00"));
}

#[test]
fn a_masked_number_is_compared_by_its_digits() {
    let zips = made(&Rule::Mask(MaskSide::Right), ValueType::Integer, &["88512", "88540"]);
    assert!(could_equal(&zips, "885**", "88599") && could_equal(&zips, "885**", "088599"));
    assert!(!could_equal(&zips, "885**", "88600"));
    let less = Condition::Compare(Comparison::Less, zips.point("3").unwrap());
    assert!(could(&zips, "885**", &less), "nothing is said of order");
}

/// All texts over two letters, up to a length.
fn texts(longest: usize) -> Vec<String> {
    let mut texts = vec![String::new()];
    for _ in 0..longest {
        let longer: Vec<String> =
            texts.iter().flat_map(|text| ["a", "b"].map(|letter| format!("{text}{letter}"))).collect();
        texts.extend(longer);
        texts.sort();
        texts.dedup();
    }
    texts
}

/// With at most three letters no value is longer than its mask. With more letters some values are.
const LONGEST: [usize; 2] = [3, 6];

fn masked(side: MaskSide, longest: usize) -> Meaning {
    let meaning = made(&Rule::Mask(side), ValueType::Text, &["aba", "bb"]);
    if longest > 3 { meaning.with_longer_values() } else { meaning }
}

fn stands_for(side: MaskSide, label: &str, longest: usize) -> Vec<String> {
    let shown = label.trim_matches('*');
    let keeps = |text: &String| match side {
        MaskSide::Right => text.starts_with(shown),
        MaskSide::Left => text.ends_with(shown),
    };
    let is_hidden = |text: &String| shown.is_empty() || text.len() > shown.len();
    texts(longest).into_iter().filter(|text| keeps(text) && is_hidden(text)).collect()
}

const LABELS: [(MaskSide, &str); 8] = [
    (MaskSide::Right, "a**"),
    (MaskSide::Right, "ab*"),
    (MaskSide::Right, "b**"),
    (MaskSide::Right, "***"),
    (MaskSide::Left, "**a"),
    (MaskSide::Left, "*ba"),
    (MaskSide::Left, "**b"),
    (MaskSide::Left, "***"),
];

/// Both kinds of masks.
fn masks() -> impl Iterator<Item = (MaskSide, &'static str, usize)> {
    LONGEST.into_iter().flat_map(|longest| LABELS.into_iter().map(move |(side, label)| (side, label, longest)))
}

#[test]
fn a_mask_holds_every_text_that_it_could_hide() {
    for (side, label, longest) in masks() {
        let (meaning, held) = (masked(side, longest), stands_for(side, label, longest));
        for text in texts(6) {
            assert_eq!(could_equal(&meaning, label, &text), held.contains(&text), "{label} = '{text}'");
        }
    }
}

#[test]
fn patterns_match_masks_as_they_match_texts() {
    for (side, label, longest) in masks() {
        let (meaning, held) = (masked(side, longest), stands_for(side, label, longest));
        for pattern in ["%", "a%", "%a", "_a%", "ab", "aba", "b_", "", "a_b%", "%b%", "___", "__", "%ba_a", "____%"] {
            let read = || Pattern::new(pattern, None, LetterCase::Matters);
            let expected = held.iter().any(|text| read().matches(text));
            assert_eq!(could(&meaning, label, &Condition::Like(read())), expected, "{label} LIKE '{pattern}'");
            // Values with other letters are not listed here, so they may miss a pattern that all listed values match.
            if held.iter().any(|text| !read().matches(text)) {
                assert!(could(&meaning, label, &Condition::NotLike(read())), "{label} NOT LIKE '{pattern}'");
            }
        }
        let prefix = Pattern::new("ab%", None, LetterCase::Matters);
        let misses = !(side == MaskSide::Right && label == "ab*");
        assert_eq!(could(&meaning, label, &Condition::NotLike(prefix)), misses, "{label}");
    }
}

#[test]
fn masks_meet_where_a_text_has_both() {
    for (side, label, longest) in masks() {
        for (other_side, other, other_longest) in masks() {
            let (a, b) = (masked(side, longest), masked(other_side, other_longest));
            let (held, others) = (stands_for(side, label, longest), stands_for(other_side, other, other_longest));
            let (a, b) = (a.possible(label).unwrap(), b.possible(other).unwrap());
            let meet = held.iter().any(|text| others.contains(text));
            assert_eq!(a.could_compare(Comparison::Equal, &b), meet, "{label} and {other}");
            let has_less = held.iter().any(|text| others.iter().any(|other| text < other));
            assert!(!has_less || a.could_compare(Comparison::Less, &b), "{label} < {other}");
        }
    }
}

#[test]
fn masks_lie_between_the_first_and_the_last_of_their_texts() {
    for longest in LONGEST {
        let prefixes = masked(MaskSide::Right, longest);
        let compare = |label: &str, comparison, literal: &str| {
            could(&prefixes, label, &Condition::Compare(comparison, prefixes.point(literal).unwrap()))
        };
        assert!(!compare("b**", Comparison::Less, "b") && compare("b**", Comparison::Less, "ba"));
        assert!(!compare("a**", Comparison::Greater, "b") && compare("a**", Comparison::Greater, "azz"));
        assert!(!compare("a**", Comparison::GreaterOrEqual, "b") && compare("***", Comparison::Greater, "zz"));
        let between =
            |low: &str, high: &str| Condition::Between(prefixes.point(low).unwrap(), prefixes.point(high).unwrap());
        assert!(could(&prefixes, "a**", &between("ab", "ac")) && !could(&prefixes, "a**", &between("b", "c")));
        let suffixes = masked(MaskSide::Left, longest);
        let at_most = |literal: &str| Condition::Compare(Comparison::LessOrEqual, suffixes.point(literal).unwrap());
        assert!(!could(&suffixes, "**b", &at_most("")) && could(&suffixes, "**b", &at_most("ab")));
    }
    let longer = masked(MaskSide::Left, 6);
    let above = Condition::Compare(Comparison::Greater, longer.point(&char::MAX.to_string().repeat(9)).unwrap());
    assert!(could(&longer, "**b", &above));
}
