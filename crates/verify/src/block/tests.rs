//! A true block is verified; each way to spoil it is found and named.

use kohort_model::{Hierarchy, ValueType};

use super::*;

const NAME: usize = 0;
const AGE: usize = 1;
const DISEASE: usize = 2;
const WARD: usize = 3;

/// Ann, Bob and Cid are a class; Dan asks for nothing, Eve for hidden names.
fn patients() -> Table {
    let diseases = "flu;viral;*\nfever;viral;*\nulcer;stomach;*\n";
    let disease = Column::from_cells("disease", Role::Sensitive, ["flu", "ulcer", "fever", "flu", "ulcer"].map(Some));
    let columns = vec![
        Column::from_cells("name", Role::Identifier, ["Ann", "Bob", "Cid", "Dan", "Eve"].map(Some)),
        Column::from_cells("age", Role::Quasi, ["20", "25", "29", "50", "51"].map(Some)).typed(ValueType::Integer),
        disease.with_hierarchy(Hierarchy::from_paths(diseases).unwrap()),
        Column::from_cells("ward", Role::Plain, ["a", "b", "a", "b", "a"].map(Some)),
    ];
    Table { name: "patients".to_owned(), columns, n_rows: 5, person: Some(NAME) }
}

fn consent() -> Consent {
    Consent { k: vec![3, 2, 2, 0, 1], level: vec![1, 0, 0, 0, 0], refused: vec![0; 5] }
}

fn labels(labels: &[&str], ids: &[u32]) -> BlockCells {
    BlockCells::Labels { labels: labels.iter().collect(), ids: ids.to_vec() }
}

fn block() -> Block {
    Block {
        rows: vec![0, 1, 2, 3, 4],
        classes: vec![0, 0, 0, ALONE, ALONE],
        columns: vec![
            BlockCells::Own { hidden: vec![true, true, true, false, true] },
            labels(&["[20,29]", "50", "51"], &[0, 0, 0, 1, 2]),
            labels(&["viral", "ulcer", "fever", "flu"], &[0, 1, 2, 3, 1]),
            BlockCells::Own { hidden: vec![false; 5] },
        ],
    }
}

fn requirements() -> Vec<Requirement> {
    vec![Requirement::K(2), Requirement::DistinctL { column: "disease".to_owned(), l: 3 }]
}

fn verified(block: Block, consent: &Consent, disclosure: Disclosure) -> Result<(), Vec<Violation>> {
    let verified = verify_block(block, patients(), consent, disclosure, &requirements());
    verified.map(|_| ()).map_err(|violations| violations.0)
}

/// The violations after a change.
fn spoiled(spoil: impl FnOnce(&mut Block, &mut Consent)) -> Vec<Violation> {
    let (mut block, mut consent) = (block(), consent());
    spoil(&mut block, &mut consent);
    verified(block, &consent, Disclosure::Class).unwrap_err()
}

fn name(column: &str) -> String {
    column.to_owned()
}

#[test]
fn a_true_block_is_verified_and_only_classes_are_counted() {
    let verified = verify_block(block(), patients(), &consent(), Disclosure::Class, &requirements()).unwrap();
    let findings = verified.findings();
    assert_eq!((findings.classes, findings.k, findings.persons), (1, 3, 3));
}

#[test]
fn persons_are_in_a_class_exactly_if_they_ask_for_one() {
    let violations = spoiled(|block, _| block.classes[0] = ALONE);
    assert!(violations.contains(&Violation::OutsideClass { n: 1, first_row: 1 }), "{violations:?}");
    let violations = spoiled(|block, _| {
        block.classes[3] = 0;
        block.columns[AGE] = labels(&["[20,50]", "51"], &[0, 0, 0, 0, 1]);
    });
    assert_eq!(violations, [Violation::OutsideClass { n: 1, first_row: 4 }]);
}

#[test]
fn a_class_is_as_large_as_each_of_its_persons_asks() {
    let violations = spoiled(|_, consent| consent.k[1] = 4);
    assert!(matches!(
        violations.as_slice(),
        [Violation::Unmet { requirement: Requirement::PersonK { .. }, class_size: 3, .. }]
    ));
}

#[test]
fn identifiers_are_shown_of_those_who_ask_for_nothing_alone() {
    let violations = spoiled(|block, _| block.columns[NAME] = BlockCells::Own { hidden: vec![false; 5] });
    assert_eq!(violations, [Violation::IdentifierShown { column: name("name"), n: 4, first_row: 1 }]);
}

#[test]
fn labels_cover_what_is_under_them_and_rows_of_a_class_show_the_same() {
    let violations = spoiled(|block, _| block.columns[AGE] = labels(&["[20,25]", "50", "51"], &[0, 0, 0, 1, 2]));
    assert_eq!(violations, [Violation::NotCovered { column: name("age"), n: 1, first_row: 3 }]);
    let violations = spoiled(|block, _| block.columns[AGE] = labels(&["[20,29]", "50", "51", "*"], &[0, 0, 3, 1, 2]));
    assert!(violations.contains(&Violation::ClassDiffers { column: name("age"), n: 1, first_row: 3 }));
}

#[test]
fn sensitive_values_are_raised_as_far_as_asked() {
    let violations = spoiled(|_, consent| consent.level[1] = 1);
    assert_eq!(violations, [Violation::NotRaised { column: name("disease"), n: 1, first_row: 2 }]);
    let violations = spoiled(|_, consent| consent.level[0] = 2);
    assert_eq!(violations, [Violation::NotRaised { column: name("disease"), n: 1, first_row: 1 }]);
}

#[test]
fn diversity_holds_as_values_are_and_as_they_are_shown() {
    // Once generalized, both viral diseases look the same, so only two of three values are left.
    let violations = spoiled(|block, consent| {
        consent.level = vec![1, 0, 1, 0, 0];
        block.columns[DISEASE] = labels(&["viral", "ulcer", "flu"], &[0, 1, 0, 2, 1]);
    });
    assert!(matches!(violations.as_slice(), [Violation::Unmet { requirement: Requirement::DistinctL { .. }, .. }]));
    // A column that says nothing about the class needs no diversity.
    let mut silent = block();
    silent.columns[DISEASE] = labels(&["*", "flu", "ulcer"], &[0, 0, 0, 1, 2]);
    assert_eq!(verified(silent, &consent(), Disclosure::Class), Ok(()));
}

#[test]
fn a_refusal_silences_the_class_or_the_row() {
    let refusing = Consent { refused: vec![1 << AGE, 0, 0, 0, 0], ..consent() };
    let shown = verified(block(), &refusing, Disclosure::Class).unwrap_err();
    assert_eq!(shown, [Violation::RefusedShown { column: name("age"), n: 3, first_row: 1 }]);
    let mut by_row = block();
    by_row.columns[AGE] = labels(&["[20,29]", "50", "51"], &[NULL, 0, 0, 1, 2]);
    let shown = verified(by_row.clone(), &refusing, Disclosure::Class).unwrap_err();
    assert!(shown.contains(&Violation::RefusedShown { column: name("age"), n: 2, first_row: 2 }));
    assert_eq!(verified(by_row, &refusing, Disclosure::Row), Ok(()));
    let mut by_class = block();
    by_class.columns[AGE] = labels(&["*", "50", "51"], &[0, 0, 0, 1, 2]);
    assert_eq!(verified(by_class, &refusing, Disclosure::Class), Ok(()));
}

#[test]
fn own_cells_that_are_refused_are_hidden() {
    let refusing = Consent { refused: vec![0, 0, 0, 1 << WARD, 0], ..consent() };
    let shown = verified(block(), &refusing, Disclosure::Class).unwrap_err();
    assert_eq!(shown, [Violation::RefusedShown { column: name("ward"), n: 1, first_row: 4 }]);
}

#[test]
fn quasi_columns_are_labels_and_others_are_not() {
    let violations = spoiled(|block, _| block.columns[AGE] = BlockCells::Own { hidden: vec![false; 5] });
    let expected = "generalized";
    assert_eq!(violations, [Violation::WrongCells { column: name("age"), role: Role::Quasi, expected }]);
    let violations = spoiled(|block, _| drop(block.columns.pop()));
    assert_eq!(violations, [Violation::ColumnMissing { column: name("ward"), role: Role::Plain }]);
    let violations = spoiled(|block, _| block.columns.push(BlockCells::Own { hidden: vec![false; 5] }));
    assert_eq!(violations, [Violation::ColumnWithoutSource { column: name("column 5") }]);
}

#[test]
fn classes_are_numbered_as_the_block_likes() {
    let mut numbered = block();
    numbered.classes = vec![ALONE - 1, ALONE - 1, ALONE - 1, ALONE, ALONE];
    assert_eq!(verified(numbered, &consent(), Disclosure::Class), Ok(()));
}

#[test]
fn every_row_leaves_once() {
    let violations = spoiled(|block, _| block.rows[1] = 0);
    assert_eq!(violations, [Violation::SourceRowTwice { n: 1, first_row: 2 }]);
}
