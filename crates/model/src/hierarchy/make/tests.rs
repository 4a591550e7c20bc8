//! Compares the trees that rules make with trees written by hand, and checks properties for arbitrary values.

use proptest::prelude::*;

use super::*;

fn make(rule: &Rule, value_type: ValueType, values: &[&str]) -> Result<Hierarchy, MakeError> {
    rule.make(&values.iter().collect(), value_type, &Notation::default())
}

/// The labels from each value up to the root, in the order of the leaves.
fn paths(hierarchy: &Hierarchy) -> Vec<String> {
    let path = |leaf| hierarchy.path(leaf).map(|node| hierarchy.label(node)).collect::<Vec<_>>().join(" ");
    hierarchy.leaves().into_iter().map(path).collect()
}

fn made(rule: &Rule, value_type: ValueType, values: &[&str]) -> Vec<String> {
    paths(&make(rule, value_type, values).unwrap())
}

fn message(rule: &Rule, value_type: ValueType, values: &[&str]) -> String {
    make(rule, value_type, values).unwrap_err().to_string()
}

#[test]
fn integers_step_into_closed_ranges() {
    assert_eq!(
        made(&Rule::Steps(vec![5.0, 10.0]), ValueType::Integer, &["23", "-1", "20", "-10"]),
        ["-10 [-10,-6] [-10,-1] *", "-1 [-5,-1] [-10,-1] *", "20 [20,24] [20,29] *", "23 [20,24] [20,29] *"]
    );
}

#[test]
fn integers_at_the_ends_of_64_bits_have_ranges() {
    assert_eq!(
        made(&Rule::Steps(vec![10.0]), ValueType::Integer, &["9223372036854775807", "-9223372036854775808"]),
        [
            "-9223372036854775808 [-9223372036854775810,-9223372036854775801] *",
            "9223372036854775807 [9223372036854775800,9223372036854775809] *"
        ]
    );
}

#[test]
fn fractions_step_into_half_open_ranges() {
    assert_eq!(
        made(&Rule::Steps(vec![0.1, 2.5]), ValueType::Decimal, &["0.3", "0.30", "-0.05", "2.49"]),
        [
            "-0.05 [-0.1,0) [-2.5,0) *",
            "0.3 [0.3,0.4) [0,2.5) *",
            "0.30 [0.3,0.4) [0,2.5) *",
            "2.49 [2.4,2.5) [0,2.5) *"
        ]
    );
    assert_eq!(
        made(&Rule::Steps(vec![0.1]), ValueType::Float, &["0.3", "-0.0", "1e2"]),
        ["-0.0 [0,0.1) *", "0.3 [0.3,0.4) *", "1e2 [100,100.1) *"]
    );
}

#[test]
fn a_decimal_comma_moves_the_bounds_apart_by_a_semicolon() {
    let notation = Notation { decimal_comma: true, date_format: None, ..Notation::default() };
    let hierarchy = Rule::Steps(vec![2.5]).make(&["3,14"].iter().collect(), ValueType::Decimal, &notation).unwrap();
    assert_eq!(paths(&hierarchy), ["3,14 [2,5;5) *"]);
}

#[test]
fn steps_that_do_not_nest_are_refused() {
    let steps = |steps: &[f64]| message(&Rule::Steps(steps.to_vec()), ValueType::Integer, &["1"]);
    assert_eq!(steps(&[]), "the steps are empty");
    assert_eq!(steps(&[5.0, 12.0]), "step 2 is not a multiple of the step before it");
    assert_eq!(steps(&[5.0, 5.0]), "step 2 is not a multiple of the step before it");
    assert_eq!(steps(&[0.0]), "step 1 is not a number above 0");
    assert_eq!(steps(&[5.0, -10.0]), "step 2 is not a number above 0");
    assert_eq!(steps(&[f64::NAN]), "step 1 is not a number above 0");
    assert_eq!(steps(&[f64::INFINITY]), "step 1 is not a number above 0");
    assert_eq!(steps(&[2.5, 5.0]), "step 1 is not a whole number, but the column's values are");
}

#[test]
fn steps_need_numbers() {
    assert_eq!(
        message(&Rule::Steps(vec![5.0]), ValueType::Date, &["1984-03-17"]),
        "steps need numbers, but the column's values are of type date"
    );
    assert_eq!(
        message(&Rule::Steps(vec![5.0]), ValueType::Integer, &["1", "x", "y"]),
        "values that are not of the column's type integer: 2 distinct"
    );
    assert_eq!(
        message(&Rule::Steps(vec![5.0]), ValueType::Float, &["1", "1e300", "inf"]),
        "values with too many digits for steps: 2 distinct"
    );
}

#[test]
fn masks_keep_prefixes_or_suffixes() {
    assert_eq!(
        made(&Rule::Mask(MaskSide::Right), ValueType::Text, &["88540", "88512"]),
        ["88512 8851* 885** 88*** 8**** *****", "88540 8854* 885** 88*** 8**** *****"]
    );
    assert_eq!(
        made(&Rule::Mask(MaskSide::Left), ValueType::Text, &["ab", "cb", "a"]),
        ["a **", "ab *b **", "cb *b **"]
    );
}

#[test]
fn masked_values_of_different_length_share_their_prefixes() {
    assert_eq!(
        made(&Rule::Mask(MaskSide::Right), ValueType::Text, &["abc", "ab", "", "å"]),
        [" ***", "ab a** ***", "abc ab* a** ***", "å ***"]
    );
    assert_eq!(made(&Rule::Mask(MaskSide::Right), ValueType::Text, &[""]), [" *"]);
}

#[test]
fn below_a_known_root_masks_are_as_long_as_it() {
    let below = |side, root: &str, values: &[&str]| {
        let values = values.iter().collect();
        paths(&Rule::Mask(side).make_below(root, &values, ValueType::Text, &Notation::default()).unwrap())
    };
    assert_eq!(
        below(MaskSide::Right, "**", &["a1x", "a2", "b", "bc3d"]),
        ["a1x a* **", "a2 a* **", "b **", "bc3d b* **"]
    );
    assert_eq!(below(MaskSide::Left, "***", &["1", "4321"]), ["1 ***", "4321 *21 **1 ***"]);
    assert_eq!(below(MaskSide::Right, "*", &["", "abc"]), [" *", "abc *"]);
}

#[test]
fn values_that_hold_masks_already_are_refused() {
    let mask = Rule::Mask(MaskSide::Right);
    assert_eq!(
        message(&mask, ValueType::Text, &["88512", "885**", "*****"]),
        "values that are spelled like a label the rule makes: 2 distinct"
    );
    assert_eq!(
        message(&mask, ValueType::Text, &["a*c"]),
        "labels that would stand for two groups, because values already contain '*': 1"
    );
}

#[test]
fn dates_rise_from_month_to_decade() {
    let levels = vec![DateLevel::Day, DateLevel::Month, DateLevel::Quarter, DateLevel::Year, DateLevel::Decade];
    assert_eq!(
        made(&Rule::Dates(levels.clone()), ValueType::Date, &["1984-03-17", "1969-12-31"]),
        ["1969-12-31 1969-12 1969-Q4 1969 1960s *", "1984-03-17 1984-03 1984-Q1 1984 1980s *"]
    );
    assert_eq!(
        made(&Rule::Dates(levels), ValueType::Timestamp, &["1984-03-17T23:00:00-05:00"]),
        ["1984-03-17T23:00:00-05:00 1984-03-18 1984-03 1984-Q1 1984 1980s *"]
    );
    assert_eq!(made(&Rule::Dates(vec![DateLevel::Year]), ValueType::Date, &["0005-01-01"]), ["0005-01-01 0005 *"]);
}

#[test]
fn dates_are_read_in_the_columns_notation() {
    let notation = Notation { decimal_comma: false, date_format: Some("%d.%m.%Y".to_owned()), ..Notation::default() };
    let rule = Rule::Dates(vec![DateLevel::Month, DateLevel::Decade]);
    let hierarchy = rule.make(&["17.03.1984"].iter().collect(), ValueType::Date, &notation).unwrap();
    assert_eq!(paths(&hierarchy), ["17.03.1984 1984-03 1980s *"]);
    let far = Rule::Dates(vec![DateLevel::Year]).make(&["01.01.-0044"].iter().collect(), ValueType::Date, &notation);
    assert_eq!(far.unwrap_err().to_string(), "values outside the years 0000 to 9999: 1 distinct");
}

#[test]
fn date_levels_that_do_not_nest_are_refused() {
    assert_eq!(message(&Rule::Dates(vec![]), ValueType::Date, &["1984-03-17"]), "the date levels are empty");
    assert_eq!(
        message(&Rule::Dates(vec![DateLevel::Year, DateLevel::Month]), ValueType::Date, &["1984-03-17"]),
        "the date levels are not in the order day, month, quarter, year, decade"
    );
    assert_eq!(
        message(&Rule::Dates(vec![DateLevel::Year]), ValueType::Text, &["1984"]),
        "date levels need dates, but the column's values are of type text"
    );
    assert_eq!(
        message(&Rule::Dates(vec![DateLevel::Day]), ValueType::Timestamp, &["1984-03-17", "1984-03-17T10:00"]),
        "values that are spelled like a label the rule makes: 1 distinct"
    );
}

#[test]
fn flat_is_a_root_over_the_values() {
    assert_eq!(made(&Rule::Flat, ValueType::Integer, &["10", "9"]), ["9 *", "10 *"]);
    assert_eq!(
        message(&Rule::Flat, ValueType::Text, &["*", "a"]),
        "values that are spelled like a label the rule makes: 1 distinct"
    );
}

proptest! {
    #[test]
    fn every_rule_makes_a_tree_over_all_values_or_refuses(
        values in prop::collection::btree_set("[-0-9.a*é]{0,4}", 0..12),
        step in -1.0_f64..20.0,
        value_type in prop::sample::select(ValueType::ALL.to_vec()),
    ) {
        let texts: Texts = values.iter().collect();
        let rules = [
            Rule::Steps(vec![step.round(), 4.0 * step.round()]),
            Rule::Steps(vec![step]),
            Rule::Mask(MaskSide::Right),
            Rule::Mask(MaskSide::Left),
            Rule::Dates(vec![DateLevel::Day, DateLevel::Quarter]),
            Rule::Flat,
        ];
        for rule in rules {
            if let Ok(hierarchy) = rule.make(&texts, value_type, &Notation::default()) {
                prop_assert_eq!(hierarchy.leaves().len(), values.len());
                prop_assert!(values.iter().all(|value| hierarchy.leaf(value).is_some()));
            }
        }
    }

    #[test]
    fn a_value_rises_alike_whatever_others_there_are(
        values in prop::collection::btree_set("[ab]{0,5}", 1..20), width in 1_usize..5, right in any::<bool>()
    ) {
        let rule = Rule::Mask(if right { MaskSide::Right } else { MaskSide::Left });
        let below = |values: Texts| {
            paths(&rule.make_below(&"*".repeat(width), &values, ValueType::Text, &Notation::default()).unwrap())
        };
        let mut alone: Vec<String> = values.iter().flat_map(|value| below([value].into_iter().collect())).collect();
        let mut together = below(values.iter().collect());
        alone.sort();
        together.sort();
        prop_assert_eq!(alone, together);
    }

    #[test]
    fn a_range_holds_the_integers_below_it(values in prop::collection::btree_set(-1000_i64..1000, 1..20), width in 1_u32..50) {
        let texts: Texts = values.iter().map(ToString::to_string).collect();
        let hierarchy = Rule::Steps(vec![f64::from(width)])
            .make(&texts, ValueType::Integer, &Notation::default())
            .unwrap();
        for value in values {
            let leaf = hierarchy.leaf(&value.to_string()).unwrap();
            let range = hierarchy.label(hierarchy.parent(leaf).unwrap());
            let (low, high) = range[1..range.len() - 1].split_once(',').unwrap();
            let (low, high): (i64, i64) = (low.parse().unwrap(), high.parse().unwrap());
            prop_assert!(low <= value && value <= high);
            prop_assert_eq!(high - low + 1, i64::from(width));
        }
    }
}
