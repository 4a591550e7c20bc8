//! Every partitioner runs every case of the corpus.

use std::collections::BTreeSet;

use kohort_model::spec::Algorithm;
use kohort_testkit::corpus::{PARTITIONERS, cases};

#[test]
fn every_partitioner_does_what_the_corpus_says() {
    let mut failures = Vec::new();
    for case in cases() {
        for partitioner in PARTITIONERS {
            if let Err(difference) = case.run(partitioner) {
                failures.push(format!("{} [{}]\n{difference}\n", case.name, partitioner.name));
            }
        }
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

#[test]
fn auto_never_loses_more_than_a_partitioner_that_leaves_no_more_persons_out() {
    let auto = PARTITIONERS.iter().find(|partitioner| partitioner.algorithm == Algorithm::Auto).unwrap();
    let (mut failures, mut n_compared) = (Vec::new(), 0);
    for case in cases() {
        let Ok(done) = case.release(auto) else { continue };
        for other in PARTITIONERS.iter().filter(|other| other.algorithm != Algorithm::Auto) {
            let Ok(others) = case.release(other) else { continue };
            if others.persons.suppressed > done.persons.suppressed {
                continue;
            }
            n_compared += 1;
            if done.loss.lm > others.loss.lm + 1e-9 {
                let (lm, others) = (done.loss.lm, others.loss.lm);
                failures.push(format!("{}: auto loses {lm:.4}, {} {others:.4}", case.name, other.name));
            }
        }
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
    assert!(n_compared >= 150, "only {n_compared} releases could be compared");
}

#[test]
fn cases_have_names_of_their_own_and_speak_of_known_partitioners() {
    let cases = cases();
    let names: BTreeSet<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(names.len(), cases.len());
    assert!(cases.len() >= 25, "the corpus was not found whole");
    for case in &cases {
        assert_eq!(case.unknown_partitioners(), Vec::<&str>::new(), "{}", case.name);
    }
}
