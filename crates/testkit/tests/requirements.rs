//! Three independent implementations of every requirement agree: the partitioner's tally, the verifier and the oracle.

use kohort_core::requirement::{Rules, Tally};
use kohort_model::{Column, Distance, Hierarchy, Requirement, Role, Table, ValueType};
use kohort_testkit::generate::{Job, Size, config, job};
use kohort_testkit::oracle::{Verdict, judge, stands};
use kohort_verify::{Violation, measure};
use proptest::prelude::*;

/// The rows of each class, by a random assignment of rows to up to five classes.
fn classes(job: &Job, assigned: &[u8]) -> Vec<Vec<u32>> {
    let mut classes = vec![Vec::new(); 5];
    for row in 0..job.table.n_rows {
        classes[assigned[row % assigned.len()] as usize % 5].push(row as u32);
    }
    classes.retain(|class| !class.is_empty());
    classes
}

/// The table with its classes as its only quasi column, and that column's position.
fn with_classes(table: &Table, classes: &[Vec<u32>]) -> (Table, usize) {
    let mut name_of_row = vec![String::new(); table.n_rows];
    for (number, class) in classes.iter().enumerate() {
        class.iter().for_each(|&row| name_of_row[row as usize] = format!("class {number}"));
    }
    let mut table = table.clone();
    let cells = name_of_row.iter().map(|name| Some(name.as_str()));
    table.columns.push(Column::from_cells("class", Role::Quasi, cells));
    let position = table.columns.len() - 1;
    (table, position)
}

fn unmet(violations: &[Violation], requirement: &Requirement) -> bool {
    let is_about = |violation: &Violation| matches!(violation, Violation::Unmet { requirement: other, .. } if other == requirement);
    violations.iter().any(is_about)
}

#[test]
fn two_spellings_under_a_hierarchy_are_ordered_alike_by_all() {
    // The hierarchy tells 2.5 from 2.50, and the order of values does not. Either may decide, but it must be the same
    // for all three.
    let doses = ["2.50", "2.50", "2.50", "2.50", "2.50", "2.5"].map(Some);
    let dose = Column::from_cells("dose", Role::Sensitive, doses)
        .typed(ValueType::Decimal)
        .with_hierarchy(Hierarchy::flat("*", ["2.5", "2.50"]));
    let table = Table { name: "t".to_owned(), columns: vec![dose], n_rows: 6, person: None };
    let close = Requirement::TCloseness { column: "dose".to_owned(), t: 0.05, distance: Distance::Ordered };
    let rules = Rules::compile(&table, std::slice::from_ref(&close), &[0, 1, 2, 3, 4, 5]).unwrap();
    let mut tally = Tally::new(&rules);
    [0, 1, 2, 3].into_iter().for_each(|row| tally.add(row));
    let first_stands = tally.stands();
    tally.clear();
    [4, 5].into_iter().for_each(|row| tally.add(row));
    let both_stand = first_stands && tally.stands();
    let (with_classes, position) = with_classes(&table, &[vec![0, 1, 2, 3], vec![4, 5]]);
    let findings = measure(&with_classes, &[position], &[], std::slice::from_ref(&close)).unwrap();
    assert_eq!(both_stand, findings.unmet.is_empty());
}

proptest! {
    #![proptest_config(config(800))]

    #[test]
    fn the_partitioner_counts_a_class_as_the_definition_does(
        job in job(Size::SMALL), assigned in prop::collection::vec(any::<u8>(), 1..60)
    ) {
        let release: Vec<u32> = (0..job.table.n_rows as u32).collect();
        let rules = Rules::compile(&job.table, &job.requirements, &release).unwrap();
        let mut tally = Tally::new(&rules);
        for class in classes(&job, &assigned) {
            tally.clear();
            class.iter().for_each(|&row| tally.add(row));
            match stands(&job.table, &job.requirements, &class, &release) {
                Verdict::Holds => prop_assert!(tally.stands(), "the tally refuses {:?}, a valid class", class),
                Verdict::Fails => prop_assert!(!tally.stands(), "the tally accepts {:?}, an invalid class", class),
                Verdict::TooClose => {}
            }
        }
    }

    #[test]
    fn the_verifier_counts_a_class_as_the_definition_does(
        job in job(Size::SMALL), assigned in prop::collection::vec(any::<u8>(), 1..60)
    ) {
        let release: Vec<u32> = (0..job.table.n_rows as u32).collect();
        let classes = classes(&job, &assigned);
        let (table, position) = with_classes(&job.table, &classes);
        let findings = measure(&table, &[position], &[], &job.requirements).unwrap();
        prop_assert_eq!(findings.classes, classes.len() as u64);
        for requirement in &job.requirements {
            let verdicts: Vec<Verdict> =
                classes.iter().map(|class| judge(&job.table, requirement, class, &release)).collect();
            if verdicts.contains(&Verdict::Fails) {
                prop_assert!(unmet(&findings.unmet, requirement), "the verifier misses that {:?} fails", requirement);
            } else if !verdicts.contains(&Verdict::TooClose) {
                prop_assert!(!unmet(&findings.unmet, requirement), "the verifier rejects {:?}, which holds", requirement);
            }
        }
    }
}
