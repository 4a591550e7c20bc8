//! `kohort hierarchy`: checks a hierarchy file, shows it as a tree, or makes one by rule.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use kohort::model::ValueType;
use kohort::model::hierarchy::{Hierarchy as Tree, Rule};
use kohort::model::spec::HierarchySource;
use kohort::{Classification, ColumnOfFile};

use crate::failure::{Failure, Report, Status};
use crate::files::read_text;
use crate::flags::FlagSpec;
use crate::progress::Bars;
use crate::reading::{CsvFlags, NotationFlags};
use crate::terminal;

const EXAMPLES: &str = "\
Examples:
  kohort hierarchy make patients.csv --column age --rule steps:5,10,50 > age.csv
  kohort hierarchy make patients.csv --column diagnosis --kind icd10 > icd.csv
  kohort hierarchy check zip.csv
  kohort hierarchy show icd.csv --edges --depth 2";

/// Check, show or make hierarchies
#[derive(Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Hierarchy {
    Check(CheckFile),
    Show(Show),
    Make(Make),
}

/// Read a hierarchy and report every problem with its line
#[derive(Args)]
#[command(after_help = "Examples:\n  kohort hierarchy check zip.csv\n  kohort hierarchy check icd.csv --edges")]
pub(crate) struct CheckFile {
    #[command(flatten)]
    file: File,
}

/// Show a hierarchy as a tree
#[derive(Args)]
#[command(after_help = "Examples:\n  kohort hierarchy show zip.csv\n  kohort hierarchy show icd.csv --edges --depth 2")]
pub(crate) struct Show {
    #[command(flatten)]
    file: File,
    /// How many levels below the root to show
    #[arg(long, value_name = "LEVELS")]
    depth: Option<usize>,
}

/// Make a hierarchy by rule from a column's values, and print it as value;parent;...;root
#[derive(Args)]
#[command(
    after_help = "Examples:\n  kohort hierarchy make patients.csv --column age --rule steps:5,10,50 > age.csv\n  kohort hierarchy make patients.csv --column diagnosis --kind icd10 > icd.csv"
)]
pub(crate) struct Make {
    /// The table: CSV, Parquet or Arrow; - is stdin
    data: PathBuf,
    /// The column whose values the hierarchy is made of
    #[arg(long)]
    column: String,
    /// steps:5,10,50 | mask:right | mask:left | date | dates:month,year | flat
    #[arg(long, required_unless_present = "kind")]
    rule: Option<String>,
    /// The classification that the values are codes of: diseases by block and chapter (ICD-10), occupations (ISCO-08), regions of
    /// Europe (NUTS), or countries by region and continent
    #[arg(long, conflicts_with_all = ["rule", "value_type"], value_parser = kinds())]
    kind: Option<String>,
    /// The type of the values; inferred from them if absent
    #[arg(long = "type", value_name = "TYPE", value_parser = type_words())]
    value_type: Option<String>,
    #[command(flatten)]
    csv: CsvFlags,
    #[command(flatten)]
    notation: NotationFlags,
}

#[derive(Args)]
struct File {
    /// One row per value: value;parent;...;root, separated by ; or ,
    file: PathBuf,
    /// The file holds child;parent rows instead
    #[arg(long)]
    edges: bool,
}

impl Hierarchy {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        match self {
            Hierarchy::Check(command) => command.run(),
            Hierarchy::Show(command) => command.run(),
            Hierarchy::Make(command) => command.run(),
        }
    }
}

impl File {
    fn read(&self) -> Result<Tree, Failure> {
        let text = read_text(&self.file)?;
        let tree = if self.edges { Tree::from_edges(&text) } else { Tree::from_paths(&text) };
        tree.map_err(|problems| kohort::Error::hierarchy(&self.file, &problems).into())
    }
}

impl CheckFile {
    fn run(&self) -> Result<(), Failure> {
        let tree = self.file.read()?;
        let n_values = tree.leaves().len();
        let n_inner = tree.n_nodes() - n_values;
        terminal::print(&format!(
            "values      {n_values}\ninner nodes {n_inner}\nheight      {}\nroot        {}\n",
            tree.height(),
            tree.label(tree.root()),
        ))
    }
}

impl Show {
    fn run(&self) -> Result<(), Failure> {
        let tree = self.file.read()?;
        let n_leaves = leaves_below(&tree);
        let mut shown = String::new();
        let mut open = vec![(tree.root(), 0)];
        while let Some((node, depth)) = open.pop() {
            shown += &"  ".repeat(depth);
            shown += tree.label(node);
            if !tree.is_leaf(node) {
                shown += &format!("  ({})", n_leaves[node as usize]);
            }
            shown.push('\n');
            if self.depth.is_none_or(|deepest| depth < deepest) {
                open.extend(tree.children(node).iter().rev().map(|&child| (child, depth + 1)));
            }
        }
        terminal::print(&shown)
    }
}

/// The number of values below each node. Children have larger numbers than their parents.
fn leaves_below(tree: &Tree) -> Vec<usize> {
    let mut n_leaves = vec![0; tree.n_nodes()];
    for node in (0..tree.n_nodes() as u32).rev() {
        n_leaves[node as usize] += usize::from(tree.is_leaf(node));
        if let Some(parent) = tree.parent(node) {
            n_leaves[parent as usize] += n_leaves[node as usize];
        }
    }
    n_leaves
}

impl Make {
    fn run(&self) -> Result<(), Failure> {
        let bars = Bars::new();
        if let Some(kind) = self.kind.as_deref().and_then(Classification::from_word) {
            let tree = kohort::make_classified(&self.values(), kind, &bars)?;
            bars.clear();
            self.print(&tree)?;
            if kind != Classification::Countries {
                terminal::note(
                    "the hierarchy lists the codes of the table, so it tells which ones occur: add all codes that exist, or withhold it \
                     (hierarchies = \"withhold\")",
                );
            }
            return Ok(());
        }
        let rule = self.rule()?;
        let given = self.value_type.as_deref().and_then(ValueType::from_word);
        let tree = kohort::make_hierarchy(&self.values(), &rule, given, &bars).map_err(|error| {
            let mut failure = Failure::from(error);
            for hint in failure.reports.iter_mut().filter_map(|report| report.hint.as_mut()) {
                *hint = hint.replace("with type", "with --type");
            }
            failure
        })?;
        bars.clear();
        self.print(&tree)
    }

    fn values(&self) -> ColumnOfFile {
        let csv = self.notation.added_to(self.csv.csv());
        ColumnOfFile { file: self.data.clone(), column: self.column.clone(), csv }
    }

    fn print(&self, tree: &Tree) -> Result<(), Failure> {
        let lines = render_paths(tree).ok_or_else(|| {
            let message = format!("{}: values of column '{}' contain line breaks", self.data.display(), self.column);
            Failure::new(
                Status::Input,
                vec![
                    Report::new(message).hint(
                        "a label of a hierarchy can't contain a line break: replace the line breaks in the table",
                    ),
                ],
            )
        })?;
        terminal::print(&lines)
    }

    /// The rule, read like in a spec.
    fn rule(&self) -> Result<Rule, Failure> {
        let given = self.rule.as_deref().unwrap_or_default();
        let mut flags = FlagSpec::default();
        flags.set("k", 1);
        flags.data("-", None);
        flags.columns("quasi", &["column".to_owned()]);
        flags.hierarchies(&[format!("column={given}")]);
        let spec = flags.finish().map_err(|mut failure| {
            for report in &mut failure.reports {
                let message = report.message.trim_start_matches("column column.hierarchy: ");
                report.message = format!("--rule {given}: {message}");
            }
            failure
        })?;
        match spec.tables[0].columns[0].hierarchy.clone() {
            Some(HierarchySource::Rule(rule)) => Ok(rule),
            _ => Err(Failure::input(
                format!("--rule {given}: not a rule"),
                "use steps:5,10,50, mask:right, mask:left, date, dates:month,year or flat",
            )),
        }
    }
}

fn kinds() -> Vec<&'static str> {
    Classification::ALL.iter().map(|kind| kind.word()).collect()
}

fn type_words() -> Vec<&'static str> {
    ValueType::ALL.iter().map(|value_type| value_type.word()).collect()
}

/// One row per value, in the format of ARX; `None` if a label contains a line break.
fn render_paths(tree: &Tree) -> Option<String> {
    let quote = |label: &str| -> Option<String> {
        let is_plain = !label.is_empty() && !label.contains([';', '"']);
        match label {
            _ if label.contains(['\n', '\r']) => None,
            _ if is_plain => Some(label.to_owned()),
            _ => Some(format!("\"{}\"", label.replace('"', "\"\""))),
        }
    };
    let mut lines = String::new();
    for leaf in tree.leaves() {
        let labels: Option<Vec<String>> = tree.path(leaf).map(|node| quote(tree.label(node))).collect();
        lines += &labels?.join(";");
        lines.push('\n');
    }
    Some(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rendered_hierarchy_is_read_back_as_it_was() {
        let tree = Tree::from_paths("\"a;b\";\"say \"\"x\"\"\";*\n\"\";other;*\n12,5;[10,15);*\n").unwrap();
        assert_eq!(Tree::from_paths(&render_paths(&tree).unwrap()).unwrap(), tree);
    }

    #[test]
    fn values_below_a_node_are_counted() {
        let tree = Tree::from_paths("a;x;*\nb;x;*\nc;*\n").unwrap();
        let n_leaves = leaves_below(&tree);
        assert_eq!(n_leaves[tree.root() as usize], 3);
        assert_eq!(n_leaves[tree.node("x").unwrap() as usize], 2);
    }
}
