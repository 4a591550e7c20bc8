//! Properties of the readers of this crate, for arbitrary bytes. The targets in `fuzz/` call these functions with bytes
//! that a fuzzer makes up, and the tests call them with the files in `fuzz/corpus`.
//!
//! Every function panics if a property does not hold.

use std::collections::HashSet;

use crate::hierarchy::{HierarchyError, HierarchyErrors, Rule};
use crate::spec::{HierarchySource, SpecError, SpecErrors};
use crate::{Hierarchy, Notation, Note, Spec, Texts, Value, ValueType};

/// Labels contain this text in place of `~`, and no message may show it.
const CANARY: &str = "Canary7c1";

/// Reads a spec. The result must not depend on where in the file the spec begins, every fault must have a place, and a
/// spec that is returned must be consistent in itself.
pub fn spec(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let read = Spec::parse(text);
    if !text.starts_with('\u{feff}') {
        let moved = Spec::parse(&format!("\n# moved\n{text}")).map_err(moved_up);
        assert_eq!(moved, read, "two lines before a spec change only the lines of problems");
    }
    match read {
        Ok(spec) => is_consistent(&spec),
        Err(SpecErrors(problems)) => {
            assert!(!problems.is_empty());
            let n_lines = text.bytes().filter(|&byte| byte == b'\n').count() + 1;
            for problem in &problems {
                assert!(problem.line.is_none_or(|line| (1..=n_lines).contains(&line)), "{problem:?}");
                assert!(!problem.to_string().is_empty() && problem.hint() != Some(String::new()));
            }
            assert!(problems.is_sorted_by_key(|problem| problem.line.unwrap_or(usize::MAX)));
        }
    }
}

/// The faults of a text after two added lines, with their lines counted without these two.
fn moved_up(SpecErrors(problems): SpecErrors) -> SpecErrors {
    let up = |problem: SpecError| SpecError { line: problem.line.map(|line| line - 2), ..problem };
    SpecErrors(problems.into_iter().map(up).collect())
}

fn is_consistent(spec: &Spec) {
    assert!(spec.k >= 1 && !spec.tables.is_empty());
    assert!((0.0..=1.0).contains(&spec.max_suppressed));
    assert!(spec.delta_presence.is_none_or(|(least, most)| 0.0 <= least && least <= most && most <= 1.0));
    let is_once = |names: Vec<&str>| names.iter().collect::<HashSet<_>>().len() == names.len();
    assert!(is_once(spec.tables.iter().map(|table| table.name.as_str()).collect()));
    for table in &spec.tables {
        assert!(is_once(table.columns.iter().map(|column| column.name.as_str()).collect()));
        let has = |name: &String| table.columns.iter().any(|column| column.name == *name);
        assert!(table.person.iter().chain(&table.key).all(has));
        assert!(table.parent.as_ref().is_none_or(|parent| {
            has(&parent.foreign_key) && spec.tables.iter().any(|other| other.name == parent.table)
        }));
        let notation = Notation {
            decimal_comma: table.csv.decimal == Some(','),
            date_format: table.csv.date_format.clone(),
            ..Notation::default()
        };
        for column in &table.columns {
            if let Some(HierarchySource::Rule(rule)) = &column.hierarchy {
                makes_trees(rule, &notation);
            }
            assert!(column.sensitive_to.iter().all(|name| spec.audiences.contains_key(name)));
        }
        can_be_spelled(&notation);
        assert!(!spec.requirements(table).is_empty());
        assert_eq!(spec.audiences_of(table).is_some(), !spec.audiences.is_empty());
    }
    for coalition in &spec.coalitions {
        assert!(coalition.audiences.iter().all(|name| spec.audiences.contains_key(name)));
    }
    for note in Note::unused(spec) {
        assert!(!note.to_string().is_empty());
    }
}

/// A rule from a spec makes a tree or returns an error, whatever the values are.
fn makes_trees(rule: &Rule, notation: &Notation) {
    assert_eq!(rule.check(), Ok(()));
    let spellings =
        ["0", "-7", "23", "1.5", "1,5", "9223372036854775807", "1999-12-31", "2024-02-29T23:59:59Z", "", "**"];
    for value_type in ValueType::ALL {
        let of_type = |text: &&str| Value::parse(text, value_type, notation).is_some();
        for texts in [Texts::from_iter(spellings), spellings.into_iter().filter(of_type).collect()] {
            if let Ok(tree) = rule.make(&texts, value_type, notation) {
                is_tree(&tree);
                assert_eq!(tree.leaves().len(), texts.len());
            }
        }
    }
}

/// A date format from a spec spells dates without a panic.
fn can_be_spelled(notation: &Notation) {
    for value in [Value::Date(0), Value::Date(i32::MAX), Value::Timestamp(1), Value::Timestamp(i128::MAX)] {
        if let Some(text) = value.spell(notation) {
            for value_type in [ValueType::Date, ValueType::Timestamp] {
                let _ = Value::parse(&text, value_type, notation);
            }
        }
    }
}

/// Reads paths and edges of a hierarchy. A tree must be well-formed and stay the same when it is written and read
/// again. A fault must name lines of the text and no label.
pub fn hierarchy(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let text = text.replace('~', CANARY);
    for read in [Hierarchy::from_paths(&text), Hierarchy::from_edges(&text)] {
        match read {
            Ok(tree) => {
                is_tree(&tree);
                assert_eq!(Hierarchy::from_nodes(tree.nodes()), Some(tree.clone()));
                assert_eq!(Hierarchy::from_paths(&paths(&tree)), Ok(tree));
            }
            Err(problems) => {
                assert!(!format!("{problems} {problems:?}").contains(CANARY), "a label in a message");
                have_places(&problems, text.lines().count());
            }
        }
    }
}

/// Every node is reached from the root and only once, labels are found, and leaves are the nodes without children.
fn is_tree(tree: &Hierarchy) {
    let n_nodes = tree.n_nodes() as u32;
    let labels: HashSet<&str> = (0..n_nodes).map(|node| tree.label(node)).collect();
    assert_eq!(labels.len(), tree.n_nodes());
    assert_eq!(tree.parent(tree.root()), None);
    let (mut seen, mut leaves, mut height) = (1, Vec::new(), 0);
    for node in 0..n_nodes {
        assert_eq!(tree.node(tree.label(node)), Some(node));
        seen += tree.children(node).len();
        assert!(tree.children(node).iter().all(|&child| tree.parent(child) == Some(node)));
        let path: Vec<u32> = tree.path(node).take(tree.n_nodes() + 1).collect();
        assert_eq!(path.last(), Some(&tree.root()));
        assert_eq!(path.len() - 1, tree.depth(node));
        height = height.max(path.len() - 1);
        if node != tree.root() && tree.children(node).is_empty() {
            leaves.push(node);
        }
    }
    assert_eq!((seen, height), (tree.n_nodes(), tree.height()));
    let mut found = tree.leaves();
    found.sort_unstable();
    assert_eq!(found, leaves);
}

/// A tree as a file of paths, every label in quotes.
fn paths(tree: &Hierarchy) -> String {
    let quoted = |node: u32| format!("\"{}\"", tree.label(node).replace('"', "\"\""));
    let line = |leaf: u32| tree.path(leaf).map(quoted).collect::<Vec<_>>().join(";") + "\n";
    tree.leaves().into_iter().map(line).collect()
}

fn have_places(HierarchyErrors(problems): &HierarchyErrors, n_lines: usize) {
    assert!(!problems.is_empty());
    for problem in problems {
        assert!(!problem.hint().is_empty());
        let lines = match problem {
            HierarchyError::NoRows => Vec::new(),
            HierarchyError::UnclosedQuote { line }
            | HierarchyError::TextAfterQuote { line }
            | HierarchyError::EmptyLabel { line, .. }
            | HierarchyError::NoParent { line }
            | HierarchyError::NotAnEdge { line, .. }
            | HierarchyError::RootTaken { line, .. } => vec![*line],
            HierarchyError::SecondPath { line, earlier } | HierarchyError::SecondParent { line, earlier, .. } => {
                vec![*line, *earlier]
            }
            HierarchyError::ValueIsInner { line, inner } => vec![*line, *inner],
            HierarchyError::Cycle { lines } => {
                assert!(!lines.is_empty());
                lines.clone()
            }
        };
        assert!(lines.iter().all(|line| (1..=n_lines).contains(line)), "{problem:?}");
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// Runs a check on every file of its corpus. The name of the file that fails is the last one that is printed.
    fn replay(target: &str, check: fn(&[u8])) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
        let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        assert!(!files.is_empty());
        for file in files {
            println!("{}", file.display());
            check(&std::fs::read(file).unwrap());
        }
    }

    #[test]
    fn the_corpus_of_specs_is_read_as_specs_should_be() {
        replay("spec", super::spec);
    }

    #[test]
    fn the_corpus_of_hierarchies_is_read_as_hierarchies_should_be() {
        replay("hierarchy", super::hierarchy);
    }
}
