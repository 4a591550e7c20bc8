//! Every partitioner runs every case of the corpus.

use std::collections::BTreeSet;

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
fn cases_have_names_of_their_own_and_speak_of_known_partitioners() {
    let cases = cases();
    let names: BTreeSet<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(names.len(), cases.len());
    assert!(cases.len() >= 25, "the corpus was not found whole");
    for case in &cases {
        assert_eq!(case.unknown_partitioners(), Vec::<&str>::new(), "{}", case.name);
    }
}
