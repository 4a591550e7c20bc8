//! The catalogue of attacks: promises hold, every attack works somewhere, and the documents show what was counted.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::OnceLock;

use kohort_testkit::attacks::statements::statements;
use kohort_testkit::attacks::{Attack, Promise, Side, System, catalogue, page_with, table};

/// Every attack with its results, run once for all tests.
fn ran() -> &'static [(Attack, Vec<Side>)] {
    static RAN: OnceLock<Vec<(Attack, Vec<Side>)>> = OnceLock::new();
    RAN.get_or_init(|| catalogue().into_iter().map(|attack| (attack, (attack.run)())).collect())
}

#[test]
fn releases_keep_what_is_promised_and_naive_ones_fall() {
    let complaint = |(attack, side): (&Attack, &Side)| side.check().err().map(|why| format!("{}: {why}", attack.name));
    let sides = ran().iter().flat_map(|(attack, sides)| sides.iter().map(move |side| (attack, side)));
    let complaints: Vec<String> = sides.filter_map(complaint).collect();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn every_attack_succeeds_somewhere_and_is_tried_on_a_release_that_promises_something() {
    for (attack, sides) in ran() {
        let works = |side: &&Side| matches!(side.promised, Promise::Naive | Promise::Nothing(_));
        assert!(sides.iter().any(|side| works(&side)), "{}: nothing shows that it can succeed", attack.name);
        assert!(sides.iter().any(|side| !works(&side)), "{}: nothing is promised", attack.name);
    }
}

#[test]
fn every_system_is_attacked_and_every_attack_has_a_name_of_its_own() {
    let systems: BTreeSet<System> = ran().iter().map(|(attack, _)| attack.system).collect();
    assert_eq!(systems.len(), 4);
    let names: BTreeSet<&str> = ran().iter().map(|(attack, _)| attack.name).collect();
    assert_eq!(names.len(), ran().len());
}

#[test]
fn the_documents_show_what_was_counted() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/attacks.md");
    let page = std::fs::read_to_string(path).unwrap();
    let expected = page_with(&page, &table(ran(), &statements())).expect("docs/attacks.md has marks for its tables");
    assert!(page == expected, "docs/attacks.md is not what the attacks got: run `cargo xtask attack --write`");
}
