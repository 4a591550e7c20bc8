//! Labels of every rule, read according to the manifest and compared with the hierarchies that made them.

use kohort_model::hierarchy::Rule;
use kohort_model::{NULL, Role};
use proptest::prelude::*;

use super::*;

fn column(value_type: ValueType, notation: Notation) -> Column {
    Column { notation, ..Column::from_cells("x", Role::Quasi, []).typed(value_type) }
}

fn german() -> Notation {
    Notation { decimal_comma: true, date_format: Some("%d.%m.%Y".to_owned()), ..Notation::default() }
}

/// Asserts which texts are labels, and which values each of them covers.
fn assert_covers(column: &Column, labels: &LabelsManifest, cases: &[(&str, &[&str], &[&str])], no_labels: &[&str]) {
    let reading = Reading::new(column, labels, None);
    for (label, inside, outside) in cases {
        assert!(reading.read(label).is_some(), "{label} is a label");
        inside.iter().for_each(|value| assert!(reading.covers(label, value), "{label} covers {value}"));
        outside.iter().for_each(|value| assert!(!reading.covers(label, value), "{label} covers no {value}"));
    }
    no_labels.iter().for_each(|text| assert_eq!(reading.read(text), None, "{text} is no label"));
}

#[test]
fn steps_are_ranges_of_the_widths_that_the_rule_has() {
    let whole = column(ValueType::Integer, Notation::default());
    let steps = LabelsManifest::Steps { steps: vec![5.0, 10.0] };
    assert_covers(
        &whole,
        &steps,
        &[
            ("[20,24]", &["20", "24"], &["19", "25"]),
            ("[-10,-1]", &["-10", "-1"], &["0"]),
            ("23", &["23"], &["24"]),
            ("*", &["23"], &[]),
            ("[9223372036854775800,9223372036854775809]", &["9223372036854775807"], &["0"]),
        ],
        &["[21,25]", "[20,26]", "[20,25)", "[20,24", "[20;24]", "[0,49]", "x", ""],
    );
    let fractions = column(ValueType::Decimal, german());
    let steps = LabelsManifest::Steps { steps: vec![0.5] };
    assert_covers(
        &fractions,
        &steps,
        &[("[1,5;2)", &["1,5", "1,99"], &["2", "1,49"])],
        &["[1,5;2]", "[1.5,2)", "[1,5;2,5)"],
    );
}

#[test]
fn periods_are_those_of_the_levels_that_the_rule_has() {
    let dates = column(ValueType::Date, german());
    let all = [DateLevel::Day, DateLevel::Month, DateLevel::Quarter, DateLevel::Year, DateLevel::Decade];
    assert_covers(
        &dates,
        &LabelsManifest::Dates { levels: all.to_vec() },
        &[
            ("1990-Q2", &["01.04.1990", "30.06.1990"], &["31.03.1990", "01.07.1990"]),
            ("1992-02", &["29.02.1992"], &["01.03.1992"]),
            ("1970s", &["01.01.1970", "31.12.1979"], &["01.01.1980"]),
            ("1984", &["31.12.1984"], &["01.01.1985"]),
            ("17.03.1984", &["17.03.1984"], &["18.03.1984"]),
        ],
        &["1984-03-17", "1984-Q5", "1984-13", "1984-3", "1985s", "84", "x"],
    );
    let months = LabelsManifest::Dates { levels: vec![DateLevel::Month] };
    assert_covers(&dates, &months, &[("1984-03", &["17.03.1984"], &[])], &["1984", "1980s", "1984-Q1"]);
    let instants = column(ValueType::Timestamp, Notation::default());
    assert_covers(
        &instants,
        &LabelsManifest::Dates { levels: all.to_vec() },
        &[("1984-03-17", &["1984-03-17T23:59:59.5Z", "1984-03-18T00:30:00+01:00"], &["1984-03-18T00:00:00Z"])],
        &[],
    );
}

#[test]
fn masks_are_as_wide_as_the_rule_says_and_all_else_is_a_value() {
    let text = column(ValueType::Text, Notation::default());
    let right = LabelsManifest::Mask { side: MaskSide::Right, width: Some(5) };
    assert_covers(
        &text,
        &right,
        &[
            ("885**", &["88512", "8851"], &["885", "88612", "885123"]),
            ("*****", &["1", ""], &[]),
            ("8*", &["8*"], &["81"]),
            ("88512", &["88512"], &["88513"]),
        ],
        &[],
    );
    let left = LabelsManifest::Mask { side: MaskSide::Left, width: Some(3) };
    assert_covers(&text, &left, &[("**é", &["aé", "xyé"], &["é", "éa"])], &[]);
    let unseen = LabelsManifest::Mask { side: MaskSide::Right, width: None };
    assert_covers(&text, &unseen, &[("8*", &["8*"], &["81"])], &[]);
}

#[test]
fn ranges_and_values_are_read_in_the_column_s_notation() {
    let fractions = column(ValueType::Decimal, german());
    assert_covers(
        &fractions,
        &LabelsManifest::Ranges,
        &[("[1,5;2,25]", &["1,50", "2,25"], &["2,26"]), ("1,5", &["1,50"], &["1,51"]), ("*", &["7"], &[])],
        &["[1.5;2.25]", "[1,5,2]", "x", "1.5"],
    );
    let text = column(ValueType::Text, Notation::default());
    assert_covers(&text, &LabelsManifest::Flat, &[("[1,2]", &["[1,2]"], &["1"]), ("*", &["a"], &[])], &[]);
}

#[test]
fn the_tree_of_shown_labels_has_each_below_what_it_is_inside_of() {
    let text = column(ValueType::Text, Notation::default());
    let right = LabelsManifest::Mask { side: MaskSide::Right, width: Some(5) };
    let shown: Texts = ["885**", "88512", "885", "88***", "9****", "88513"].into_iter().collect();
    let tree = Reading::new(&text, &right, None).tree(&shown).unwrap().unwrap();
    let above = |label: &str| tree.label(tree.parent(tree.node(label).unwrap()).unwrap()).to_owned();
    let found: Vec<String> = shown.iter().map(above).collect();
    assert_eq!(found, ["88***", "885**", "88***", "*", "*", "885**"]);
    assert!(tree.is_leaf(tree.node("885").unwrap()) && !tree.is_leaf(tree.node("9****").unwrap()));
    assert_eq!(Reading::new(&text, &LabelsManifest::Ranges, None).tree(&shown), Ok(None));
    let whole = column(ValueType::Integer, Notation::default());
    assert_eq!(Reading::new(&whole, &LabelsManifest::Ranges, None).tree(&shown), Err(0));
}

/// Any rule, with values that it fits.
fn any_column() -> impl Strategy<Value = (Rule, LabelsManifest, ValueType, Notation, Vec<String>)> {
    let steps = prop::sample::select(vec![vec![1.0], vec![2.0, 10.0], vec![5.0, 10.0, 50.0]]);
    let numbers = (steps, prop::collection::btree_set(-120i64..120, 1..12)).prop_map(|(steps, numbers)| {
        let texts = numbers.iter().map(ToString::to_string).collect();
        let labels = LabelsManifest::Steps { steps: steps.clone() };
        (Rule::Steps(steps), labels, ValueType::Integer, Notation::default(), texts)
    });
    let steps = prop::sample::select(vec![vec![0.1], vec![0.25, 1.0], vec![0.5, 5.0]]);
    let fractions = (steps, prop::collection::btree_set((-999i64..999, 0u32..3), 1..12), any::<bool>()).prop_map(
        |(steps, numbers, decimal_comma)| {
            let notation = Notation { decimal_comma, date_format: None, ..Notation::default() };
            let text = |&(mantissa, scale): &(i64, u32)| {
                Value::Decimal(Decimal { mantissa: mantissa.into(), scale }).spell(&notation).unwrap()
            };
            let texts: std::collections::BTreeSet<String> = numbers.iter().map(text).collect();
            let labels = LabelsManifest::Steps { steps: steps.clone() };
            (Rule::Steps(steps), labels, ValueType::Decimal, notation, texts.into_iter().collect())
        },
    );
    let sides = prop::sample::select(vec![MaskSide::Left, MaskSide::Right]);
    let masks = (sides, prop::collection::btree_set("[ab]{0,4}é?", 1..12)).prop_map(|(side, texts)| {
        let width = texts.iter().map(|text| text.chars().count()).max().unwrap_or(0).max(1) as u32;
        let labels = LabelsManifest::Mask { side, width: Some(width) };
        (Rule::Mask(side), labels, ValueType::Text, Notation::default(), texts.into_iter().collect())
    });
    let all = vec![DateLevel::Day, DateLevel::Month, DateLevel::Quarter, DateLevel::Year, DateLevel::Decade];
    let levels = prop::sample::subsequence(all, 1..=5);
    let days = prop::collection::btree_set(-40_000i32..40_000, 1..12);
    let formats = prop::sample::select(vec![None, Some("%d.%m.%Y"), Some("%m/%d/%Y")]);
    let dates = (levels, days, formats).prop_map(|(levels, days, format)| {
        let notation = Notation { decimal_comma: false, date_format: format.map(str::to_owned), ..Notation::default() };
        let texts = days.iter().map(|&days| Value::Date(days).spell(&notation).unwrap()).collect();
        (Rule::Dates(levels.clone()), LabelsManifest::Dates { levels }, ValueType::Date, notation, texts)
    });
    prop_oneof![numbers, fractions, masks, dates]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_label_is_read_as_the_values_that_the_rule_put_below_it((rule, labels, value_type, notation, texts) in any_column()) {
        let values: Texts = texts.iter().collect();
        let made = rule.make(&values, value_type, &notation).unwrap();
        let column = column(value_type, notation);
        let reading = Reading::new(&column, &labels, None);
        for node in 0..made.n_nodes() as u32 {
            for text in &texts {
                let leaf = made.leaf(text).unwrap_or(NULL);
                let below = made.path(leaf).any(|above| above == node);
                prop_assert_eq!(reading.covers(made.label(node), text), below, "{} {}", made.label(node), text);
            }
        }
        let shown: Texts = (0..made.n_nodes() as u32).map(|node| made.label(node)).collect();
        let tree = reading.tree(&shown).unwrap().unwrap();
        for node in 0..made.n_nodes() as u32 {
            for other in 0..made.n_nodes() as u32 {
                let is_above = made.path(other).any(|above| above == node);
                let [read, read_other] = [node, other].map(|node| tree.node(made.label(node)).unwrap());
                let reads_above = tree.path(read_other).any(|above| above == read);
                // Two labels with the same values may be swapped, such as `[0,0]` of step 1 and the value 0.
                prop_assert!(!is_above || reads_above || made.children(node).len() == 1, "{} {}", made.label(node), made.label(other));
            }
        }
    }
}
