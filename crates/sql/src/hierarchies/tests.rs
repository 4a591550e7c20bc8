//! DGHs by name. Refused changes have no effect, and messages count values but never contain them.

use kohort_model::hierarchy::MaskSide;

use super::*;

fn pair(child: &str, parent: &str) -> (String, String) {
    (child.to_owned(), parent.to_owned())
}

fn texts(values: &[&str]) -> Texts {
    values.iter().collect()
}

fn tree(hierarchies: &Hierarchies, name: &str, values: &[&str]) -> Result<Arc<Hierarchy>, DghError> {
    hierarchies.tree_for(name, None, &texts(values), ValueType::Text, &Notation::default())
}

fn with_pairs(pairs: &[(String, String)]) -> Hierarchies {
    let mut hierarchies = Hierarchies::default();
    hierarchies.create("zip", false, None).unwrap();
    hierarchies.insert("zip", pairs).unwrap();
    hierarchies
}

#[test]
fn pairs_become_a_tree_when_a_view_needs_one() {
    let hierarchies = with_pairs(&[pair("88512", "885**"), pair("a;\"b", "885**"), pair("885**", "*"), pair("", "*")]);
    let tree = tree(&hierarchies, "ZIP", &["88512", "", "a;\"b"]).unwrap();
    assert_eq!(tree.height(), 2);
    let labels: Vec<&str> = tree.path(tree.leaf("a;\"b").unwrap()).map(|node| tree.label(node)).collect();
    assert_eq!(labels, ["a;\"b", "885**", "*"]);
}

#[test]
fn an_insert_that_fails_leaves_the_dgh_as_it_was() {
    let mut hierarchies = with_pairs(&[pair("a", "b"), pair("b", "*")]);
    let before = tree(&hierarchies, "zip", &["a"]).unwrap();
    let attempts = [
        (pair("*", "a"), "pair 2: '*' would be its own ancestor"),
        (pair("x", "x"), "pair 2: 'x' would be its own ancestor"),
        (pair("a", "b"), "pair 2: 'a' already has the parent 'b'"),
        (pair("a", "*"), "pair 2: 'a' has another parent, 'b'"),
        (pair("new", "b"), "pair 2: 'new' has another parent, '*'"),
        (pair("y", ""), "pair 2: the parent is empty"),
        (pair("y\n", "b"), "pair 2: a label contains a line break"),
    ];
    for (bad, message) in attempts {
        let fault = hierarchies.insert("zip", &[pair("new", "*"), bad]).unwrap_err();
        assert_eq!(fault.to_string(), message);
        assert!(fault.hint().unwrap().starts_with("nothing was inserted"));
        assert_eq!(tree(&hierarchies, "zip", &["a"]).unwrap(), before);
    }
}

#[test]
fn a_circle_of_several_new_pairs_is_found() {
    let mut hierarchies = with_pairs(&[pair("z", "*")]);
    let fault = hierarchies.insert("zip", &[pair("a", "b"), pair("b", "c"), pair("c", "a")]).unwrap_err();
    assert_eq!(fault.to_string(), "pair 3: 'c' would be its own ancestor");
}

#[test]
fn several_roots_are_named_when_the_dgh_is_used() {
    let pairs: Vec<_> = (0..7).map(|number| pair(&format!("leaf {number}"), &format!("root {number}"))).collect();
    let hierarchies = with_pairs(&pairs);
    let fault = tree(&hierarchies, "zip", &[]).unwrap_err();
    assert_eq!(fault.to_string(), "DGH 'zip' has 7 roots: 'root 0', 'root 1', 'root 2', 'root 3', 'root 4' and 2 more");
    assert_eq!(hierarchies.summaries()[0].n_values, Some(7));
    assert_eq!(hierarchies.summaries()[0].height, None);
}

#[test]
fn values_without_a_leaf_are_counted_and_never_named() {
    let hierarchies = with_pairs(&[pair("a", "b"), pair("b", "*")]);
    let fault = tree(&hierarchies, "zip", &["a", "b", "secret"]).unwrap_err();
    assert_eq!(fault.to_string(), "DGH 'zip' has no leaf for 2 distinct values of the column");
    assert!(!format!("{fault:?} {}", fault.hint().unwrap()).contains("secret"));
}

#[test]
fn a_rule_makes_its_tree_from_the_values() {
    let mut hierarchies = Hierarchies::default();
    let rule = HierarchySource::Rule(Rule::Mask(MaskSide::Right));
    hierarchies.create("Zip", false, Some(&rule)).unwrap();
    let tree = tree(&hierarchies, "zip", &["88512", "88540"]).unwrap();
    assert!(tree.node("885**").is_some());
    assert_eq!(
        hierarchies.insert("zip", &[]).unwrap_err().to_string(),
        "DGH 'zip' was created from a file or a rule, so pairs can't be inserted"
    );
    assert_eq!(hierarchies.summaries()[0].kind, "rule");
}

#[test]
fn a_rule_that_is_none_is_refused_at_once() {
    let rule = HierarchySource::Rule(Rule::Steps(vec![5.0, 12.0]));
    let fault = Hierarchies::default().create("age", false, Some(&rule)).unwrap_err();
    assert_eq!(fault.to_string(), "DGH 'age': step 2 is not a multiple of the step before it");
}

#[test]
fn a_file_is_read_when_the_dgh_is_created() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("zip.csv");
    let mut hierarchies = Hierarchies::default();
    let source = HierarchySource::Paths(path.clone());
    assert!(matches!(hierarchies.create("zip", false, Some(&source)), Err(DghError::File { .. })));
    std::fs::write(&path, "a;b;a").unwrap();
    assert!(matches!(hierarchies.create("zip", false, Some(&source)), Err(DghError::Content { .. })));
    std::fs::write(&path, "88512;885**;*\n").unwrap();
    hierarchies.create("zip", false, Some(&source)).unwrap();
    assert!(tree(&hierarchies, "zip", &["88512"]).is_ok());
    assert_eq!(hierarchies.summaries()[0].height, Some(2));
}

#[test]
fn a_name_is_found_in_any_case_and_taken_once() {
    let mut hierarchies = with_pairs(&[]);
    assert_eq!(hierarchies.create("ZIP", false, None).unwrap_err().to_string(), "DGH 'ZIP' exists already");
    hierarchies.create("Zip", true, None).unwrap();
    assert_eq!(tree(&hierarchies, "zip", &[]).unwrap_err().to_string(), "DGH 'zip' has no pairs yet");
    let fault = hierarchies.insert("zap", &[]).unwrap_err();
    assert_eq!(fault.hint().unwrap(), "use one of: zip");
    hierarchies.remove("ZIP", false).unwrap();
    assert_eq!(hierarchies.remove("zip", false).unwrap_err().to_string(), "there is no DGH 'zip'");
    hierarchies.remove("zip", true).unwrap();
}
