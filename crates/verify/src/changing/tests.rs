//! Steps and refreshes that are right are accepted, and each way to be wrong is refused by name.

use std::collections::BTreeMap;

use kohort_model::Requirement;

use super::*;

fn member(person: u64, age: &str, disease: &str) -> StepMember {
    let paths = vec![[age.to_owned(), format!("{}0s", &age[..1]), "*".to_owned()].into()];
    StepMember { row: person, person, k: 2, paths, values: vec![Some(disease.into())], seen: Seen::Never }
}

fn requirements() -> [Requirement; 2] {
    [Requirement::K(2), Requirement::DistinctL { column: "disease".to_owned(), l: 2 }]
}

fn columns() -> [StepColumn; 1] {
    [StepColumn { name: "disease".to_owned(), reference: BTreeMap::new() }]
}

fn errors(label: &str, before: &[StepMember], after: &[StepMember]) -> Vec<StepError> {
    let labels_before = (!before.is_empty()).then(|| vec!["20s".to_owned()]);
    let (before, after) = (before.to_vec(), after.to_vec());
    let labels = vec![label.to_owned()];
    let step = Step { atoms: vec![AtomStep { class: 1, atom: 1, labels_before, labels, before, after }] };
    verify_step(step, &columns(), &requirements()).err().map_or_else(Vec::new, |StepErrors(errors)| errors)
}

#[test]
fn each_rule_is_held() {
    let crowd = [member(1, "20", "flu"), member(2, "21", "gout")];
    let four = [crowd.to_vec(), vec![member(3, "20", "flu"), member(4, "20", "gout")]].concat();
    assert_eq!(errors("20s", &[], &crowd), []);
    assert_eq!(errors("20s", &four, &crowd), []);
    assert_eq!(errors("*", &crowd, &crowd), [StepError::Relabelled { atom: 1 }]);
    assert_eq!(errors("20s", &crowd, &[]), []);

    let alike = [member(1, "20", "flu"), member(2, "21", "flu")];
    assert!(matches!(errors("20s", &[], &alike)[..], [StepError::Unmet { part: Part::Shown, .. }]));
    let one_goes = errors("20s", &four, &four[..3]);
    assert!(matches!(one_goes[0], StepError::Unmet { part: Part::Removed, n_persons: 1, .. }));
    assert!(matches!(errors("20s", &crowd, &four)[..], [StepError::Gained { n: 2, .. }]));
    assert!(matches!(errors("30s", &[], &crowd)[..], [StepError::NotCovered { n: 2, .. }]));
    let lowered = errors("20", &crowd, &crowd);
    assert!(lowered.contains(&StepError::Relabelled { atom: 1 }));
    let twice = [crowd.to_vec(), vec![crowd[0].clone()]].concat();
    assert!(matches!(errors("20s", &[], &twice)[..], [StepError::PersonTwice { n: 1, .. }]));
    let mut demanding = crowd.clone();
    demanding[0].k = 3;
    let unmet = errors("20s", &[], &demanding);
    assert!(matches!(unmet[..], [StepError::Unmet { requirement: Requirement::PersonK { .. }, .. }]));
}

#[test]
fn nobody_is_new_who_was_seen_before() {
    let mut crowd = vec![member(1, "20", "flu"), member(2, "21", "gout"), member(3, "20", "gout")];
    crowd[2].seen = Seen::Elsewhere;
    assert!(matches!(errors("20s", &[], &crowd)[..], [StepError::SeenBefore { n: 1, .. }]));
    assert_eq!(errors("20s", &crowd, &crowd), [], "members who stay were seen only in their own atom");
}

#[test]
fn every_atom_person_and_row_is_named_once() {
    let atom = |number: u64, class: u64, label: &str, members: &[StepMember]| AtomStep {
        class,
        atom: number,
        labels_before: None,
        labels: vec![label.to_owned()],
        before: Vec::new(),
        after: members.to_vec(),
    };
    let errors = |atoms: Vec<AtomStep>| {
        let verified = verify_step(Step { atoms }, &columns(), &requirements());
        verified.err().map_or_else(Vec::new, |StepErrors(errors)| errors)
    };
    let crowd = [member(1, "20", "flu"), member(2, "21", "gout")];
    let others = [member(3, "20", "flu"), member(4, "21", "gout")];
    assert_eq!(errors(vec![atom(1, 1, "20s", &crowd), atom(2, 1, "20s", &others)]), []);
    let twice = errors(vec![atom(1, 1, "20s", &crowd), atom(1, 1, "20s", &others)]);
    assert_eq!(twice, [StepError::NumberTwice { atom: 2 }]);
    let differ = errors(vec![atom(1, 1, "20s", &crowd), atom(2, 1, "*", &others)]);
    assert_eq!(differ, [StepError::OtherLabels { atom: 2 }]);
    let again = [StepMember { row: 9, ..crowd[0].clone() }, others[1].clone()];
    let in_two = errors(vec![atom(1, 1, "20s", &crowd), atom(2, 1, "20s", &again)]);
    assert_eq!(in_two, [StepError::InTwoAtoms { atom: 2, n: 1 }], "the same person in another row");
    let borrowed = [StepMember { row: 1, ..others[0].clone() }, others[1].clone()];
    let in_two = errors(vec![atom(1, 1, "20s", &crowd), atom(2, 1, "20s", &borrowed)]);
    assert_eq!(in_two, [StepError::RowOfTwo { atom: 2, n: 1 }], "the same row for another person");
    let shared = [crowd[0].clone(), StepMember { row: 1, ..crowd[1].clone() }];
    let shared = errors(vec![atom(1, 1, "20s", &shared)]);
    assert_eq!(shared, [StepError::RowOfTwo { atom: 1, n: 1 }], "one row for two persons of an atom");
}

#[test]
fn a_step_does_not_contradict_itself() {
    let atom = |number: u64, before: &[StepMember], after: &[StepMember]| AtomStep {
        class: 1,
        atom: number,
        labels_before: Some(vec!["20s".to_owned()]),
        labels: vec!["20s".to_owned()],
        before: before.to_vec(),
        after: after.to_vec(),
    };
    let errors = |atoms: Vec<AtomStep>| {
        let verified = verify_step(Step { atoms }, &columns(), &requirements());
        verified.err().map_or_else(Vec::new, |StepErrors(errors)| errors)
    };
    let crowd = [member(1, "20", "flu"), member(2, "21", "gout")];
    let others = [member(3, "20", "flu"), member(4, "21", "gout")];
    let both = [crowd.to_vec(), others.to_vec()].concat();
    assert_eq!(errors(vec![atom(1, &both, &crowd), atom(2, &others, &others)]).len(), 1, "in two atoms before");
    let moved = errors(vec![atom(1, &both, &crowd), atom(2, &[], &others)]);
    assert_eq!(moved, [StepError::SeenBefore { atom: 2, n: 2 }], "a member who leaves one atom is not new in another");
    let new = errors(vec![AtomStep { labels_before: None, ..atom(1, &crowd, &crowd) }]);
    assert_eq!(new, [StepError::ClassIsNew { atom: 1 }]);
    let other = AtomStep { labels_before: None, ..atom(2, &[], &others) };
    let looks = errors(vec![atom(1, &crowd, &crowd), other]);
    assert_eq!(
        looks,
        [StepError::OtherLabels { atom: 2 }],
        "one atom says that its class is old, the other that it is new"
    );
}

#[test]
fn the_counts_are_those_of_the_atoms_after_the_step() {
    let members = vec![member(1, "20", "flu"), member(2, "21", "gout"), member(3, "20", "flu")];
    let labels = vec!["20s".to_owned()];
    let (shown, gone) = (members.clone(), Vec::new());
    let new = AtomStep {
        class: 1,
        atom: 1,
        labels_before: Some(labels.clone()),
        labels: labels.clone(),
        before: gone,
        after: shown,
    };
    let before = vec![member(4, "20", "flu"), member(5, "21", "gout")];
    let labels_before = Some(labels.clone());
    let old = AtomStep { class: 1, atom: 2, labels_before, labels, before, after: Vec::new() };
    let verified = verify_step(Step { atoms: vec![new, old] }, &columns(), &requirements()).unwrap();
    assert_eq!(*verified.findings(), StepFindings { atoms: 1, persons: 3, k: 3 });
}

fn refreshed(before: &[&[StepMember]], after: &[&[StepMember]]) -> Vec<StepError> {
    // The atoms before have other numbers than those after, so no atom keeps its number.
    let before = (101..).zip(before).map(|(atom, members)| (atom, members.to_vec())).collect();
    let atom = |(atom, members): (u64, &&[StepMember])| RefreshedAtom {
        class: atom,
        atom,
        labels: vec!["*".to_owned()],
        members: members.to_vec(),
    };
    let after = (1..).zip(after).map(atom).collect();
    let verified = verify_refresh(Refresh { before, after }, &columns(), &requirements());
    verified.err().map_or_else(Vec::new, |StepErrors(errors)| errors)
}

#[test]
fn a_refresh_parts_atoms_into_crowds_and_mixes_none() {
    let four = [member(1, "20", "flu"), member(2, "21", "gout"), member(3, "20", "flu"), member(4, "20", "gout")];
    let others = [member(5, "30", "flu"), member(6, "31", "gout")];
    assert_eq!(refreshed(&[&four], &[&four[..2], &four[2..]]), []);
    assert_eq!(refreshed(&[&four], &[&four[..2]]), [], "two members who go satisfy every requirement");
    assert_eq!(refreshed(&[&four], &[&others]), [], "all may go");
    assert_eq!(refreshed(&[&four, &others], &[&others, &four]), []);

    let mixed = [four[0].clone(), four[1].clone(), others[0].clone(), others[1].clone()];
    assert!(matches!(refreshed(&[&four[..2], &others], &[&mixed])[..], [StepError::Mixed { n: 2, .. }]));
    assert!(matches!(refreshed(&[&four[..2]], &[&mixed])[..], [StepError::Mixed { n: 2, .. }]));
    let one_goes = refreshed(&[&four], &[&four[..3]]);
    assert!(one_goes.iter().any(|error| matches!(error, StepError::Unmet { part: Part::Removed, n_persons: 1, .. })));
    let alike = refreshed(&[&four], &[&[four[0].clone(), four[2].clone()], &[four[1].clone(), four[3].clone()]]);
    assert_eq!(alike.len(), 2);
    let mut moved = four[..2].to_vec();
    moved[0].paths = member(1, "29", "flu").paths;
    let moved = refreshed(&[&four[..2]], &[&[moved[0].clone(), member(7, "20", "gout")]]);
    assert!(matches!(moved[..], [StepError::SeenBefore { n: 1, .. }]), "another row of the same person");
    let twice = refreshed(&[&four], &[&four, &four]);
    assert!(twice.contains(&StepError::PersonTwice { atom: 2, n: 1 }));
}
