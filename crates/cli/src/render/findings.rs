//! Renders the counts of a table.

use kohort::model::Coalition;
use kohort::verifier::{
    AudienceFindings, Counted, Findings, JoinedFindings, LearnedFindings, SensitiveFindings, TableFindings,
    TogetherWithin,
};
use kohort::{counts, has_sizes, hides_persons, sensitive_columns};
use serde_json::{Map, Value};

use super::{count_of, number};

/// The widest bar of the histogram.
const WIDTH: u64 = 40;

/// The counts in words, for people.
pub(crate) fn words(findings: &Findings) -> String {
    let persons = match (findings.counted, &findings.joined) {
        (_, Some(JoinedFindings { group_k: Some(_), .. })) => format!("{} of the private table", findings.persons),
        (Counted::Persons, _) => findings.persons.to_string(),
        (Counted::Rows, _) if hides_persons(findings) => format!("at most {} (rows are counted)", findings.persons),
        (Counted::Rows, _) => format!("{} (each row counts as one)", findings.persons),
    };
    let mut text = String::new();
    let mut line = |name: &str, value: &str| text += &format!("{name:<16} {value}\n");
    line("rows", &findings.rows.to_string());
    line("persons", &persons);
    line("classes", &findings.classes.to_string());
    let has_sizes = has_sizes(findings);
    if hides_persons(findings) {
        line("k", &format!("at most {}", findings.k));
    } else if has_sizes {
        line("k", &findings.k.to_string());
        line("unique persons", &count_of(findings.unique_persons, findings.persons));
        line("highest risk", &number(findings.highest_risk));
        line("average risk", &number(findings.average_risk));
    }
    if let Some(JoinedFindings { groups, group_k: Some(group_k), .. }) = &findings.joined {
        line("sensitive groups", &format!("{groups}, of at least {group_k} persons"));
    }
    if let Some(within) = findings.joined.as_ref().and_then(|joined| joined.together_within.as_ref()) {
        line("read together", &together(within));
    }
    if has_sizes {
        text += &histogram(findings.smallest_classes(), if hides_persons(findings) { "rows" } else { "persons" });
    }
    if !findings.audiences.is_empty() {
        text += &audiences(findings);
    }
    if !findings.tables.is_empty() {
        text += &tables(&findings.tables);
    }
    let columns = sensitive_columns(findings);
    if !columns.is_empty() {
        text += &if hides_persons(findings) { distinct(&columns) } else { sensitive(&columns) };
    }
    text
}

/// What readers of earlier releases learn, as far as it can be told without knowing whose rows are whose.
fn together(within: &TogetherWithin) -> String {
    let bounds = |(least, most): (u64, u64)| match least == most {
        true => format!("= {least}"),
        false => format!("from {least} to {most}"),
    };
    let l = within.l.iter().filter_map(|(column, (least, most))| match (least, most) {
        (Some(least), Some(most)) => Some(format!(", l {} of {column}", bounds((*least, *most)))),
        (Some(least), None) => Some(format!(", l at least {least} of {column}")),
        (None, _) => None,
    });
    format!("with earlier releases: k {}{}", bounds(within.k), l.collect::<String>())
}

/// Only distinct values, because shares are not known.
fn distinct(columns: &[(String, &SensitiveFindings)]) -> String {
    let width = columns.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0).max(16);
    let mut text = format!("\n{:<width$} {:>8}\n", "worst class of", "l");
    columns.iter().for_each(|(name, column)| text += &format!("{name:<width$} {:>8}\n", column.l));
    text
}

/// Each audience by itself, and all of them together.
fn audiences(findings: &Findings) -> String {
    let names = findings.audiences.iter().map(|audience| audience.audience.chars().count());
    let width = names.max().unwrap_or(0).max(16);
    let mut text = format!("\n{:<width$} {:>8} {:>10} {:>15}\n", "audience", "k", "classes", "unique persons");
    for audience in &findings.audiences {
        let AudienceFindings { audience, k, classes, unique_persons, .. } = audience;
        text += &format!("{audience:<width$} {k:>8} {classes:>10} {unique_persons:>15}\n");
    }
    for coalition in &findings.coalitions {
        let AudienceFindings { audience, k, classes, .. } = coalition;
        let name = if audience == Coalition::ALL { "all together" } else { audience };
        text += &format!("{name:<width$} {k:>8} {classes:>10}\n");
    }
    text + &learned(findings)
}

/// What audiences learn about columns that they don't know.
fn learned(findings: &Findings) -> String {
    let all = || findings.audiences.iter().chain(&findings.coalitions);
    let line = |audience: &str, learned: &LearnedFindings| {
        let l = learned.l.map_or_else(|| "-".to_owned(), |l| l.to_string());
        let what = format!("{audience}: {}", learned.column);
        format!("{what:<32} {l:>6} {:>8} {:>16}\n", number(learned.t), learned.certain)
    };
    let lines: String =
        all().flat_map(|found| found.learned.iter().map(|learned| line(&found.audience, learned))).collect();
    if lines.is_empty() {
        return lines;
    }
    format!("\n{:<32} {:>6} {:>8} {:>16}\n{lines}", "learned about unknown columns", "l", "t", "known for sure")
}

/// Each of many tables. In a child table a class is a group of rows that look the same.
fn tables(tables: &[TableFindings]) -> String {
    let width = tables.iter().map(|table| table.table.chars().count()).max().unwrap_or(0).max(16);
    let mut text = format!("\n{:<width$} {:>8} {:>10} {:>8}\n", "table", "rows", "classes", "k");
    for table in tables {
        let k = table.k.map_or_else(String::new, |k| k.to_string());
        let line = format!("{:<width$} {:>8} {:>10} {k:>8}", table.table, table.rows, table.classes);
        text += line.trim_end();
        text.push('\n');
    }
    text
}

fn histogram(smallest: &[(u64, u64)], counted: &str) -> String {
    let most = smallest.iter().map(|&(_, n_classes)| n_classes).max().unwrap_or(1);
    let mut text = format!("\nsmallest classes\n{counted:>12}     classes\n");
    for &(size, n_classes) in smallest {
        let bar = "█".repeat((n_classes * WIDTH).div_ceil(most) as usize);
        text += &format!("{size:>12}{n_classes:>12}  {bar}\n");
    }
    text
}

fn sensitive(columns: &[(String, &SensitiveFindings)]) -> String {
    let width = columns.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0).max(16);
    let mut text = format!("\n{:<width$} {:>8} {:>10} {:>8} {:>8}\n", "worst class of", "l", "entropy l", "t", "alpha");
    for (name, column) in columns {
        let [entropy_l, t, alpha] = [column.entropy_l, column.t, column.alpha].map(number);
        text += &format!("{:<width$} {:>8} {entropy_l:>10} {t:>8} {alpha:>8}\n", name, column.l);
        let more = [
            ("t by order", column.t_ordered),
            ("t by hierarchy", column.t_hierarchical),
            ("recursive c", column.recursive_c),
        ];
        for (name, value) in more {
            if let Some(value) = value {
                text += &format!("  {name:<14} {}\n", number(value));
            }
        }
    }
    text
}

/// The counts as JSON, for programs, and figures that were counted besides. `asked` tells whether there was a requirement.
pub(crate) fn json(findings: &Findings, asked: bool, more: Option<Map<String, Value>>) -> String {
    let mut object = counts(findings);
    object.extend(more.unwrap_or_default());
    if asked {
        let unmet: Vec<String> = findings.unmet.iter().map(ToString::to_string).collect();
        object.insert("met".to_owned(), unmet.is_empty().into());
        object.insert("unmet".to_owned(), unmet.into());
    }
    format!("{:#}\n", Value::Object(object))
}
