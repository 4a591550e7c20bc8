//! The part of a hierarchy file that readers of a release need, in a file beside the tables.
//!
//! The file is CSV with two columns, `label` and `value`: for each label that some cell shows, every value of the hierarchy
//! below it. Labels and values have the order of the publisher's file.
//!
//! # Guarantee
//! The file depends only on the shown labels and on the hierarchy. Values are listed whether or not the private table holds
//! them, because a choice would tell readers which values it holds.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use kohort_model::{Hierarchy, Texts};

use super::csv::push_cell;

/// The names of the columns.
pub(crate) const COLUMNS: [&str; 2] = ["label", "value"];

/// Writes the part of a hierarchy that these labels need.
pub(super) fn write_listing(path: &Path, hierarchy: &Hierarchy, shown: &Texts) -> io::Result<()> {
    let mut is_shown = vec![false; hierarchy.n_nodes()];
    shown.iter().filter_map(|label| hierarchy.node(label)).for_each(|node| is_shown[node as usize] = true);
    let mut target = BufWriter::new(File::create_new(path)?);
    let mut write_row = |label: &str, value: &str| {
        let mut row = Vec::new();
        push_cell(label, b',', &mut row);
        row.push(b',');
        push_cell(value, b',', &mut row);
        row.push(b'\n');
        target.write_all(&row)
    };
    write_row(COLUMNS[0], COLUMNS[1])?;
    for node in below(hierarchy, hierarchy.root()).filter(|&node| is_shown[node as usize]) {
        for leaf in below(hierarchy, node).filter(|&leaf| hierarchy.is_leaf(leaf)) {
            write_row(hierarchy.label(node), hierarchy.label(leaf))?;
        }
    }
    target.flush()
}

/// A node and all below it, depth first.
fn below(hierarchy: &Hierarchy, node: u32) -> impl Iterator<Item = u32> + '_ {
    let mut open = vec![node];
    std::iter::from_fn(move || {
        let node = open.pop()?;
        open.extend(hierarchy.children(node).iter().rev());
        Some(node)
    })
}

/// A name for the hierarchy of a column that no other file of the release has, whatever the case of letters.
pub(super) fn listing_name(table: &str, column: &str, taken: &[String]) -> String {
    let plain = |letter: char| if letter.is_alphanumeric() || "-_ ".contains(letter) { letter } else { '_' };
    let column: String = column.chars().map(plain).take(64).collect();
    let numbered = |n: usize| if n == 1 { String::new() } else { format!("-{n}") };
    let name = |n: usize| format!("{table}.{column}{}.hierarchy.csv", numbered(n));
    let is_taken = |name: &String| taken.iter().any(|other| other.to_lowercase() == name.to_lowercase());
    (1..).map(name).find(|name| !is_taken(name)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_plain_and_differ() {
        assert_eq!(listing_name("t", "job/../x", &[]), "t.job____x.hierarchy.csv");
        let taken = ["T.JOB.hierarchy.csv".to_owned()];
        assert_eq!(listing_name("t", "job", &taken), "t.job-2.hierarchy.csv");
    }

    #[test]
    fn labels_that_no_cell_shows_are_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let jobs = Hierarchy::from_paths("nurse;care;any\n\"a, b\";care;any\nfisher;land;any\npoet;any").unwrap();
        let written = |shown: &[&str]| {
            let path = folder.path().join(format!("of-{}", shown.concat()));
            write_listing(&path, &jobs, &shown.iter().collect()).unwrap();
            std::fs::read_to_string(path).unwrap()
        };
        assert_eq!(written(&["poet", "care"]), "label,value\ncare,nurse\ncare,\"a, b\"\npoet,poet\n");
        assert_eq!(written(&["nurse", "care"]), "label,value\ncare,nurse\ncare,\"a, b\"\nnurse,nurse\n");
        assert_eq!(written(&[]), "label,value\n");
    }
}
