//! Every answer is compared with the values that a label can stand for, listed one by one.

use std::sync::Arc;

use kohort_model::{Hierarchy, Value, ValueType};
use proptest::prelude::*;

use super::*;

mod rules;

const COMPARISONS: [Comparison; 6] = [
    Comparison::Equal,
    Comparison::Differ,
    Comparison::Less,
    Comparison::LessOrEqual,
    Comparison::Greater,
    Comparison::GreaterOrEqual,
];

fn hierarchy(csv: &str) -> Arc<Hierarchy> {
    Arc::new(Hierarchy::from_paths(csv).unwrap())
}

fn births(may_be_null: bool) -> Meaning {
    let tree = hierarchy("1988;1980-1990;*\n1975;1970-1980;*\n1984;1980-1990;*\n1979;1970-1980;*\n");
    Meaning::new("patients", "birth", ValueType::Integer, Some(tree), may_be_null).unwrap()
}

fn numbers(may_be_null: bool) -> Meaning {
    Meaning::new("patients", "age", ValueType::Integer, None, may_be_null).unwrap()
}

fn zips() -> Meaning {
    let tree = hierarchy("88512;885**;88***;*****\n88540;885**;88***;*****\n89321;893**;89***;*****\n");
    Meaning::new("patients", "zipcode", ValueType::Text, Some(tree), false).unwrap()
}

fn could(meaning: &Meaning, label: &str, condition: Condition) -> bool {
    let by_set = meaning.possible(label).unwrap().could(&condition);
    let function = CouldBe::new(Arc::new(copy(meaning)), condition);
    assert_eq!(function.matches(Some(label)).unwrap(), by_set, "the function and the set agree");
    by_set
}

fn copy(meaning: &Meaning) -> Meaning {
    Meaning::new(&meaning.view, &meaning.column, meaning.value_type, meaning.hierarchy(), meaning.may_be_null).unwrap()
}

fn compare(meaning: &Meaning, label: &str, comparison: Comparison, literal: &str) -> bool {
    could(meaning, label, Condition::Compare(comparison, meaning.point(literal).unwrap()))
}

#[test]
fn a_node_could_be_each_of_its_leaves_and_nothing_else() {
    let zips = zips();
    for (label, literal, expected) in [
        ("88***", "88512", true),
        ("885**", "89321", false),
        ("*****", "89321", true),
        ("*", "89321", true),
        ("88512", "88512", true),
        ("88512", "88540", false),
        ("*****", "99999", false),
        ("885**", "885**", false),
    ] {
        assert_eq!(compare(&zips, label, Comparison::Equal, literal), expected, "{label} = {literal}");
    }
}

#[test]
fn equal_and_different_can_both_be_true() {
    assert!(compare(&births(false), "1980-1990", Comparison::Equal, "1984"));
    assert!(compare(&births(false), "1980-1990", Comparison::Differ, "1984"));
    assert!(!compare(&births(false), "1984", Comparison::Differ, "1984"));
}

#[test]
fn between_is_one_question_and_not_two() {
    let births = births(false);
    let between = |low: &str, high: &str| Condition::Between(births.point(low).unwrap(), births.point(high).unwrap());
    assert!(compare(&births, "1970-1980", Comparison::Greater, "1976"));
    assert!(compare(&births, "1970-1980", Comparison::Less, "1978"));
    assert!(!could(&births, "1970-1980", between("1976", "1978")));
    assert!(could(&births, "1970-1980", between("1976", "1979")));
    assert!(!could(&births, "*", between("1979", "1976")));
}

#[test]
fn numbers_are_compared_by_value_whatever_their_spelling() {
    let prices = Meaning::new("v", "price", ValueType::Decimal, None, false).unwrap();
    assert!(compare(&prices, "[9.50,10]", Comparison::Equal, "9.5"));
    assert!(!compare(&prices, "[9.50,10]", Comparison::Less, "9.5"));
    assert!(compare(&prices, "[9.50,10]", Comparison::Greater, "9.99"));
    let none = vec![prices.point("9.5").unwrap(), prices.point("10").unwrap()];
    assert!(could(&prices, "[9.50,10]", Condition::NotIn(none)), "decimals lie between the bounds");
}

#[test]
fn a_range_of_whole_numbers_has_no_more_values_than_it_counts() {
    let ages = numbers(false);
    let list = |from: i64, to: i64| (from..=to).map(|age| ages.point(&age.to_string()).unwrap()).collect::<Vec<_>>();
    assert!(!could(&ages, "[20,24]", Condition::NotIn(list(20, 24))));
    assert!(could(&ages, "[20,24]", Condition::NotIn(list(21, 30))));
    assert!(!compare(&ages, "*", Comparison::Less, &i64::MIN.to_string()));
}

#[test]
fn dates_have_ranges_and_truth_values_have_two_values() {
    let days = Meaning::new("v", "born", ValueType::Date, None, false).unwrap();
    assert!(compare(&days, "[1969-12-30,1970-01-02]", Comparison::Equal, "1970-01-01"));
    assert!(!compare(&days, "[1969-12-30,1970-01-02]", Comparison::Equal, "1970-01-03"));
    let flags = Meaning::new("v", "smokes", ValueType::Boolean, None, false).unwrap();
    let both = vec![flags.point("true").unwrap(), flags.point("false").unwrap()];
    assert!(compare(&flags, "*", Comparison::Equal, "true"));
    assert!(!could(&flags, "*", Condition::NotIn(both)));
}

#[test]
fn a_masked_cell_is_null_and_nothing_else() {
    for condition in [
        Condition::NotNull,
        Condition::Compare(Comparison::Differ, numbers(true).point("5").unwrap()),
        Condition::NotIn(vec![numbers(true).point("5").unwrap()]),
    ] {
        assert!(!CouldBe::new(Arc::new(numbers(true)), condition).matches(None).unwrap());
    }
    assert!(CouldBe::new(Arc::new(numbers(false)), Condition::Null).matches(None).unwrap());
    let side = Side::Protected(Arc::new(numbers(true)));
    let differ = CouldMatch::new(side.clone(), Comparison::Differ, side);
    assert!(!differ.matches(None, Some("5")).unwrap() && !differ.matches(None, None).unwrap());
}

#[test]
fn everything_can_be_null_where_nulls_occur() {
    for (meaning, label, expected) in [
        (numbers(true), "*", true),
        (numbers(true), "[1,5]", false),
        (numbers(false), "*", false),
        (births(true), "*", true),
        (births(true), "1970-1980", false),
    ] {
        assert_eq!(could(&meaning, label, Condition::Null), expected, "{label}");
        assert!(could(&meaning, label, Condition::NotNull));
    }
}

#[test]
fn like_asks_the_texts_of_values() {
    let like = |pattern: &str| Condition::Like(Pattern::new(pattern, None, LetterCase::Matters));
    let not_like = |pattern: &str| Condition::NotLike(Pattern::new(pattern, None, LetterCase::Matters));
    assert!(could(&zips(), "88***", like("%12")));
    assert!(could(&zips(), "88***", not_like("%12")));
    assert!(!could(&zips(), "88***", like("89%")));
    assert!(!could(&zips(), "88***", not_like("88%")));
    assert!(could(&births(false), "1980-1990", like("%8")));
    let names = Meaning::new("v", "name", ValueType::Text, None, false).unwrap();
    assert!(could(&names, "*", like("a_c")) && could(&names, "*", not_like("a_c")));
    assert!(!could(&names, "*", not_like("%")));
    assert!(could(&names, "abc", like("a_c")) && !could(&names, "abc", not_like("a_c")));
    assert!(!compare(&names, "*", Comparison::Less, ""), "no text is before the empty one");
    assert!(compare(&names, "[a,b]", Comparison::Equal, "[a,b]"), "texts have no ranges");
}

#[test]
fn messages_name_the_column_and_never_a_cell() {
    let problem = numbers(false).point("tall").unwrap_err();
    insta::assert_snapshot!(problem, @"column 'age' of 'patients' is compared with a value that is not of type integer");
    let problem = numbers(false).possible("tall").err().unwrap();
    insta::assert_snapshot!(
        problem,
        @"column 'age' of 'patients' shows a label that is not a value, range or node of its hierarchy"
    );
    let problem = Meaning::new("v", "age", ValueType::Integer, Some(hierarchy("1;*\ntwo;*\n")), false).err().unwrap();
    insta::assert_snapshot!(problem, @"column 'age' of 'v': 1 leaves of its hierarchy are not values of type integer");
}

#[test]
fn functions_are_equal_by_content() {
    let equal = |text: &str| Condition::Compare(Comparison::Equal, zips().point(text).unwrap());
    let function = |condition| CouldBe::new(Arc::new(zips()), condition);
    assert_eq!(function(equal("88512")), function(equal("88512")));
    assert_ne!(function(equal("88512")), function(equal("88540")));
    assert_ne!(function(Condition::Null), function(Condition::NotNull));
    insta::assert_snapshot!(equal("88'512"), @"AVLIKE '88''512'");
}

/// Labels over the whole numbers 0 to 11: as ranges, and as nodes of a tree whose leaves are out of order.
fn small(with_tree: bool, may_be_null: bool) -> (Meaning, Vec<(String, Vec<i64>, bool)>) {
    let leaf = |number: i64| number * 5 % 12;
    let mut labels: Vec<(String, Vec<i64>, bool)> = Vec::new();
    let tree = with_tree.then(|| {
        let rows: Vec<String> = (0..12).map(|n| format!("{};three {};six {};*", leaf(n), n / 3, n / 6)).collect();
        for width in [3, 6] {
            let name = if width == 3 { "three" } else { "six" };
            for group in 0..12 / width {
                let leaves = (group * width..(group + 1) * width).map(leaf).collect();
                labels.push((format!("{name} {group}"), leaves, false));
            }
        }
        labels.push(("*".to_owned(), (0..12).collect(), may_be_null));
        hierarchy(&(rows.join("\n") + "\n"))
    });
    if !with_tree {
        for low in 0..12 {
            for high in low + 1..12 {
                labels.push((format!("[{low},{high}]"), (low..=high).collect(), false));
            }
        }
    }
    labels.extend((0..12).map(|n| (n.to_string(), vec![n], false)));
    let view = if with_tree { "tree" } else { "ranges" };
    (Meaning::new(view, "n", ValueType::Integer, tree, may_be_null).unwrap(), labels)
}

fn condition(meaning: &Meaning, kind: usize, literals: &[i64]) -> (Condition, Box<dyn Fn(i64) -> bool>) {
    let point = |number: i64| meaning.point(&number.to_string()).unwrap();
    let list = literals.to_vec();
    let (a, b) = (list[0], list[1]);
    match kind {
        0..6 => {
            let comparison = COMPARISONS[kind];
            (Condition::Compare(comparison, point(a)), Box::new(move |n| comparison.holds(&n, &a)))
        }
        6 => (Condition::In(list.iter().map(|&n| point(n)).collect()), Box::new(move |n| list.contains(&n))),
        7 => (Condition::NotIn(list.iter().map(|&n| point(n)).collect()), Box::new(move |n| !list.contains(&n))),
        8 => (Condition::Between(point(a), point(b)), Box::new(move |n| a <= n && n <= b)),
        _ => (Condition::NotBetween(point(a), point(b)), Box::new(move |n| !(a <= n && n <= b))),
    }
}

proptest! {
    #[test]
    fn a_label_could_exactly_if_one_of_its_values_does(
        with_tree: bool,
        may_be_null: bool,
        kind in 0..10usize,
        literals in proptest::collection::vec(-1..13i64, 2..6),
    ) {
        let (meaning, labels) = small(with_tree, may_be_null);
        let (condition, holds) = condition(&meaning, kind, &literals);
        for (label, values, null) in &labels {
            let expected = values.iter().any(|&value| holds(value));
            prop_assert_eq!(could(&meaning, label, condition.clone()), expected, "{} {}", label, condition);
            prop_assert_eq!(could(&meaning, label, Condition::Null), *null);
        }
    }

    #[test]
    fn two_labels_could_exactly_if_two_of_their_values_do(
        left_tree: bool,
        right_tree: bool,
        picks in proptest::collection::vec((0..1000usize, 0..1000usize), 40),
        kind in 0..6usize,
    ) {
        let ((left, left_labels), (right, right_labels)) = (small(left_tree, false), small(right_tree, false));
        let comparison = COMPARISONS[kind];
        let function = CouldMatch::new(
            Side::Protected(Arc::new(copy(&left))), comparison, Side::Protected(Arc::new(copy(&right))));
        for (x, y) in picks {
            let (a, of_a, _) = &left_labels[x % left_labels.len()];
            let (b, of_b, _) = &right_labels[y % right_labels.len()];
            let expected = of_a.iter().any(|a| of_b.iter().any(|b| comparison.holds(a, b)));
            prop_assert_eq!(function.matches(Some(a), Some(b)).unwrap(), expected, "{} {} {}", a, comparison, b);
            for value in 0..12 {
                let known = Possible::known(Value::Integer(value));
                let expected = of_a.iter().any(|a| comparison.holds(a, &value));
                prop_assert_eq!(left.possible(a).unwrap().could_compare(comparison, &known), expected);
            }
        }
    }
}
