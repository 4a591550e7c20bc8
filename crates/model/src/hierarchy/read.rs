//! Hierarchies from text: ARX's paths and (child, parent) edges.
//!
//! # Guarantee
//! The result is a tree whose leaves are exactly the values. A file that is not a tree is refused with all of its
//! faults, not only the first.
//! # Deviations
//! ARX requires rows of equal length; here they may differ. A label that is repeated along a path (`Other;Other;*`,
//! which ARX uses to keep the length) is one node. If the paths have no common root, `*` becomes the root.
//! # Cost
//! Linear in the text.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use super::rows::{Row, read_rows};
use super::{Hierarchy, HierarchyError, HierarchyErrors};
use crate::Texts;

const ADDED_ROOT: &str = "*";

impl Hierarchy {
    /// Reads `leaf;parent;...;root` lines, separated by `;` or `,`, without a header.
    ///
    /// # Errors
    /// Every problem found, by line.
    pub fn from_paths(text: &str) -> Result<Hierarchy, HierarchyErrors> {
        let mut draft = Draft::default();
        let rows = read_rows(text, &mut draft.problems);
        for row in rows {
            draft.add_path(row);
        }
        draft.finish()
    }

    /// Reads `child;parent` lines, separated by `;` or `,`, without a header.
    ///
    /// # Errors
    /// Every problem found, by line.
    pub fn from_edges(text: &str) -> Result<Hierarchy, HierarchyErrors> {
        let mut draft = Draft::default();
        let rows = read_rows(text, &mut draft.problems);
        for row in rows {
            draft.add_edge_row(row);
        }
        draft.finish()
    }
}

/// Labels in the order of their first appearance, each with the first parent it was given.
#[derive(Default)]
struct Draft<'t> {
    by_label: HashMap<Cow<'t, str>, u32>,
    nodes: Vec<DraftNode<'t>>,
    /// Second parents that were reported already, by label and parent, because a file may repeat the same mistake in
    /// many rows.
    reported: HashSet<(u32, u32)>,
    problems: Vec<HierarchyError>,
}

struct DraftNode<'t> {
    label: Cow<'t, str>,
    parent: Option<Edge>,
    /// The first lines in which the label occurs at all, begins a path, and is an ancestor.
    first_line: usize,
    value_line: Option<usize>,
    inner_line: Option<usize>,
}

#[derive(Clone, Copy)]
struct Edge {
    parent: u32,
    line: usize,
    kind: EdgeKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum EdgeKind {
    /// The label is the value that begins a path.
    Value,
    /// The label is an ancestor, or the child of an edge.
    Other,
}

impl<'t> Draft<'t> {
    fn add_path(&mut self, row: Row<'t>) {
        let Row { line, mut labels } = row;
        labels.dedup();
        if labels.len() < 2 {
            self.problems.push(HierarchyError::NoParent { line });
            return;
        }
        let nodes: Vec<u32> = labels.into_iter().map(|label| self.node(label, line)).collect();
        self.nodes[nodes[0] as usize].value_line.get_or_insert(line);
        for &node in &nodes[1..] {
            self.nodes[node as usize].inner_line.get_or_insert(line);
        }
        for (index, pair) in nodes.windows(2).enumerate() {
            let kind = if index == 0 { EdgeKind::Value } else { EdgeKind::Other };
            self.add_edge(pair[0], Edge { parent: pair[1], line, kind }, index + 1);
        }
    }

    fn add_edge_row(&mut self, row: Row<'t>) {
        let Row { line, labels } = row;
        match <[Cow<'t, str>; 2]>::try_from(labels) {
            Ok([child, parent]) => {
                let child = self.node(child, line);
                let parent = self.node(parent, line);
                self.add_edge(child, Edge { parent, line, kind: EdgeKind::Other }, 1);
            }
            Err(labels) if labels.len() == 1 => self.problems.push(HierarchyError::NoParent { line }),
            Err(labels) => self.problems.push(HierarchyError::NotAnEdge { line, n_labels: labels.len() }),
        }
    }

    fn node(&mut self, label: Cow<'t, str>, line: usize) -> u32 {
        if let Some(&node) = self.by_label.get(&label) {
            return node;
        }
        let node = self.nodes.len() as u32;
        self.by_label.insert(label.clone(), node);
        self.nodes.push(DraftNode { label, parent: None, first_line: line, value_line: None, inner_line: None });
        node
    }

    fn add_edge(&mut self, child: u32, edge: Edge, position: usize) {
        match self.nodes[child as usize].parent {
            None => self.nodes[child as usize].parent = Some(edge),
            Some(first) if first.parent == edge.parent => {}
            Some(first) => {
                if self.reported.insert((child, edge.parent)) {
                    let (line, earlier) = (edge.line, first.line);
                    self.problems.push(if first.kind == EdgeKind::Value && edge.kind == EdgeKind::Value {
                        HierarchyError::SecondPath { line, earlier }
                    } else {
                        HierarchyError::SecondParent { line, position, earlier }
                    });
                }
            }
        }
    }

    fn finish(mut self) -> Result<Hierarchy, HierarchyErrors> {
        let all_rows_are_in = self.problems.is_empty();
        let on_cycle = self.find_cycles();
        for (node, on_cycle) in self.nodes.iter().zip(&on_cycle) {
            if let (Some(line), Some(inner), false) = (node.value_line, node.inner_line, on_cycle) {
                self.problems.push(HierarchyError::ValueIsInner { line, inner });
            }
        }
        let tops: Vec<u32> =
            (0..self.nodes.len() as u32).filter(|&node| self.nodes[node as usize].parent.is_none()).collect();
        // A row that could not be read may have joined two topmost labels, so these are checked only if all rows were
        // read.
        if tops.len() > 1
            && all_rows_are_in
            && let Some(&taken) = self.by_label.get(ADDED_ROOT)
        {
            let line = self.nodes[taken as usize].first_line;
            self.problems.push(HierarchyError::RootTaken { n_tops: tops.len(), line });
        }
        if self.problems.is_empty() {
            Ok(self.into_hierarchy(&tops))
        } else {
            self.problems.sort_by_key(first_line);
            Err(HierarchyErrors(self.problems))
        }
    }

    /// Reports each cycle once, and returns for every label whether it is on a cycle.
    fn find_cycles(&mut self) -> Vec<bool> {
        const UNSEEN: u32 = u32::MAX;
        let n_nodes = self.nodes.len();
        let mut on_cycle = vec![false; n_nodes];
        let mut seen_from = vec![UNSEEN; n_nodes];
        for start in 0..n_nodes as u32 {
            let mut node = start;
            while seen_from[node as usize] == UNSEEN {
                seen_from[node as usize] = start;
                match self.nodes[node as usize].parent {
                    Some(edge) => node = edge.parent,
                    None => break,
                }
            }
            let came_back = seen_from[node as usize] == start && self.nodes[node as usize].parent.is_some();
            if !came_back {
                continue;
            }
            let mut lines = Vec::new();
            while let (Some(edge), false) = (self.nodes[node as usize].parent, on_cycle[node as usize]) {
                on_cycle[node as usize] = true;
                lines.push(edge.line);
                node = edge.parent;
            }
            lines.sort_unstable();
            lines.dedup();
            self.problems.push(HierarchyError::Cycle { lines });
        }
        on_cycle
    }

    /// Numbers the nodes level by level, siblings by first appearance.
    fn into_hierarchy(self, tops: &[u32]) -> Hierarchy {
        let mut children: Vec<Vec<u32>> = vec![Vec::new(); self.nodes.len()];
        for (node, draft) in self.nodes.iter().enumerate() {
            if let Some(edge) = draft.parent {
                children[edge.parent as usize].push(node as u32);
            }
        }
        let mut labels = Texts::new();
        let mut parents = Vec::with_capacity(self.nodes.len() + 1);
        let mut drafts = Vec::with_capacity(self.nodes.len() + 1);
        if tops.len() > 1 {
            labels.push(ADDED_ROOT);
            drafts.push(None);
            parents.push(0);
        }
        for &top in tops {
            labels.push(&self.nodes[top as usize].label);
            drafts.push(Some(top));
            parents.push(0);
        }
        let mut next = 0;
        while next < drafts.len() {
            if let Some(draft) = drafts[next] {
                for &child in &children[draft as usize] {
                    labels.push(&self.nodes[child as usize].label);
                    drafts.push(Some(child));
                    parents.push(next as u32);
                }
            }
            next += 1;
        }
        Hierarchy::from_parents(labels, parents)
    }
}

fn first_line(problem: &HierarchyError) -> usize {
    match problem {
        HierarchyError::NoRows => 0,
        HierarchyError::UnclosedQuote { line }
        | HierarchyError::TextAfterQuote { line }
        | HierarchyError::EmptyLabel { line, .. }
        | HierarchyError::NoParent { line }
        | HierarchyError::NotAnEdge { line, .. }
        | HierarchyError::SecondPath { line, .. }
        | HierarchyError::SecondParent { line, .. }
        | HierarchyError::ValueIsInner { line, .. } => *line,
        HierarchyError::Cycle { lines } => lines.first().copied().unwrap_or(0),
        HierarchyError::RootTaken { .. } => usize::MAX,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// `label(child child)`, depth first.
    fn render(hierarchy: &Hierarchy, node: u32) -> String {
        let children: Vec<String> = hierarchy.children(node).iter().map(|&child| render(hierarchy, child)).collect();
        let label = hierarchy.label(node);
        if children.is_empty() { label.to_owned() } else { format!("{label}({})", children.join(" ")) }
    }

    fn paths(text: &str) -> String {
        let hierarchy = Hierarchy::from_paths(text).unwrap();
        render(&hierarchy, hierarchy.root())
    }

    fn path_problems(text: &str) -> String {
        Hierarchy::from_paths(text).unwrap_err().to_string()
    }

    fn edge_problems(text: &str) -> String {
        Hierarchy::from_edges(text).unwrap_err().to_string()
    }

    #[test]
    fn paths_become_a_tree_in_the_order_of_the_file() {
        assert_eq!(
            paths("89344;893**;89***;*****\n88512;885**;88***;*****\n89321;893**;89***;*****\n"),
            "*****(89***(893**(89344 89321)) 88***(885**(88512)))"
        );
    }

    #[test]
    fn rows_of_different_length_are_fine() {
        assert_eq!(paths("a;b;c;*\nd;*\ne;c;*"), "*(c(b(a) e) d)");
    }

    #[test]
    fn a_label_repeated_along_a_path_is_one_node() {
        assert_eq!(paths("Other;Other;*;*\nMale;Known;*;*"), "*(Other Known(Male))");
    }

    #[test]
    fn a_row_that_is_repeated_changes_nothing() {
        assert_eq!(paths("a;b;*\na;b;*"), "*(b(a))");
    }

    #[test]
    fn a_root_is_added_where_there_is_none() {
        assert_eq!(paths("a;b\nc;d"), "*(b(a) d(c))");
        let hierarchy = Hierarchy::from_edges("a;b\nc;d").unwrap();
        assert_eq!(render(&hierarchy, 0), "*(b(a) d(c))");
    }

    #[test]
    fn edges_become_a_tree() {
        let hierarchy = Hierarchy::from_edges("a,x\nb,x\nx,top\nc,top\na,x").unwrap();
        assert_eq!(render(&hierarchy, 0), "top(x(a b) c)");
        assert_eq!(hierarchy.leaves().len(), 3);
    }

    #[test]
    fn every_problem_is_reported_at_once() {
        assert_eq!(
            path_problems("a;b;*\nb;c;*\n;x\nlonely\na;c;*\nd;b;c;*\n\"open;*\n"),
            "line 2: label 1 has another parent than in line 1\n\
             line 2: the value of this row is an ancestor of another value in line 1\n\
             line 3: label 1 is empty\n\
             line 4: the row has a value but no parent\n\
             line 5: the value is the same as in line 1, but its path differs\n\
             line 7: a quoted label is not closed"
        );
    }

    #[test]
    fn a_second_parent_is_reported_once_however_often_it_is_repeated() {
        assert_eq!(path_problems("a;b;c;*\nd;b;e;*\nf;b;e;*"), "line 2: label 2 has another parent than in line 1");
    }

    #[test]
    fn a_repeated_label_that_has_children_is_no_value() {
        assert_eq!(
            path_problems("Other;Other;*\nCook;Other;*"),
            "line 1: the value of this row is an ancestor of another value in line 2"
        );
    }

    #[test]
    fn cycles_are_reported_with_all_their_lines() {
        assert_eq!(path_problems("a;b;a"), "line 1: the parents form a circle");
        assert_eq!(
            edge_problems("a;b\nb;c\nx;y\nc;a\nd;a\ny;y"),
            "lines 1, 2 and 4: the parents form a circle\n\
             line 6: the parents form a circle"
        );
    }

    #[test]
    fn an_edge_has_two_labels_and_one_parent() {
        assert_eq!(
            edge_problems("a;b;c\nd\ne;f\ne;g"),
            "line 1: an edge is a child and its parent, but this row has 3 labels\n\
             line 2: the row has a value but no parent\n\
             line 4: label 1 has another parent than in line 3"
        );
    }

    #[test]
    fn a_root_that_is_taken_is_not_added() {
        assert_eq!(
            path_problems("a;b;*\nc;d"),
            "there are 2 topmost labels, but the root '*' can't be added above them, because line 1 uses '*'"
        );
    }

    #[test]
    fn nothing_is_no_hierarchy() {
        for text in ["", "\n \r\n", "\u{feff}"] {
            assert_eq!(path_problems(text), "the hierarchy has no rows");
            assert_eq!(edge_problems(text), "the hierarchy has no rows");
        }
    }

    #[test]
    fn a_path_of_one_label_has_no_parent() {
        assert_eq!(path_problems("*;*;*\na;*"), "line 1: the row has a value but no parent");
    }

    proptest! {
        #[test]
        fn no_text_makes_the_readers_panic(text in "\\PC*") {
            let _ = Hierarchy::from_paths(&text);
            let _ = Hierarchy::from_edges(&text);
        }

        #[test]
        fn what_is_read_is_a_tree_over_the_first_labels(text in "([abc*\"]{0,2}[;\n,]){0,12}") {
            if let Ok(hierarchy) = Hierarchy::from_paths(&text) {
                let mut problems = Vec::new();
                let rows = read_rows(&text, &mut problems);
                for row in rows {
                    let leaf = hierarchy.leaf(&row.labels[0]).expect("every row begins with a leaf");
                    let mut labels = row.labels;
                    labels.dedup();
                    let path: Vec<&str> = hierarchy.path(leaf).map(|node| hierarchy.label(node)).collect();
                    prop_assert!(labels.iter().zip(&path).all(|(given, found)| given == found));
                    prop_assert!(labels.len() <= path.len());
                }
            }
            if let Ok(hierarchy) = Hierarchy::from_edges(&text) {
                prop_assert!(hierarchy.n_nodes() > 1);
            }
        }
    }
}
