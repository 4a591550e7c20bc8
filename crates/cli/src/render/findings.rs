//! Renders the counts of a table.

use kohort::model::Coalition;
use kohort::sensitive_columns;
use kohort::verifier::{
    AudienceFindings, Counted, Findings, JoinedFindings, LearnedFindings, SensitiveFindings, Skipped, TableFindings,
    TogetherWithin,
};
use serde_json::{Map, Value, json};

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
        text += &histogram(&findings.smallest_classes, if hides_persons(findings) { "rows" } else { "persons" });
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

/// Whether rows of the same person can't be told apart from others. Then sizes are only bounds, and shares are not known.
fn hides_persons(findings: &Findings) -> bool {
    findings.skipped.iter().any(|skipped| matches!(skipped, Skipped::OfPersons { .. }))
}

/// Only distinct values, because shares are not known.
fn distinct(columns: &[(String, &SensitiveFindings)]) -> String {
    let width = columns.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0).max(16);
    let mut text = format!("\n{:<width$} {:>8}\n", "worst class of", "l");
    columns.iter().for_each(|(name, column)| text += &format!("{name:<width$} {:>8}\n", column.l));
    text
}

/// Whether the number of persons that look the same is known. If only private rows are released, only the register tells.
fn has_sizes(findings: &Findings) -> bool {
    !findings.skipped.contains(&Skipped::Crowd)
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

/// The counts as JSON, for programs. `asked` tells whether there was a requirement.
pub(crate) fn json(findings: &Findings, asked: bool) -> String {
    let mut object = object(findings);
    if asked {
        let unmet: Vec<String> = findings.unmet.iter().map(ToString::to_string).collect();
        object.insert("met".to_owned(), unmet.is_empty().into());
        object.insert("unmet".to_owned(), unmet.into());
    }
    format!("{:#}\n", Value::Object(object))
}

/// The counts as a JSON object.
pub(crate) fn object(findings: &Findings) -> Map<String, Value> {
    let counted = match findings.counted {
        Counted::Persons => "persons",
        Counted::Rows => "rows",
    };
    let smallest: Vec<Value> = findings
        .smallest_classes
        .iter()
        .map(|&(persons, classes)| json!({ "persons": persons, "classes": classes }))
        .collect();
    let sensitive: Map<String, Value> =
        sensitive_columns(findings).into_iter().map(|(name, column)| (name, sensitive_object(column))).collect();
    let object = json!({
        "counted": counted,
        "rows": findings.rows,
        "persons": findings.persons,
        "classes": findings.classes,
        "k": findings.k,
        "unique_persons": findings.unique_persons,
        "smallest_classes": smallest,
        "risk": { "highest": findings.highest_risk, "average": findings.average_risk },
        "sensitive": sensitive,
    });
    let mut object = match object {
        Value::Object(object) => object,
        _ => Map::new(),
    };
    if !findings.audiences.is_empty() {
        let entry = |audience: &AudienceFindings| {
            let sensitive = audience.sensitive.iter().map(|column| (column.column.clone(), sensitive_object(column)));
            let figures = json!({
                "classes": audience.classes,
                "k": audience.k,
                "unique_persons": audience.unique_persons,
                "average_risk": audience.average_risk,
                "sensitive": sensitive.collect::<Map<String, Value>>(),
                "learned": audience.learned.iter().map(learned_entry).collect::<Map<String, Value>>(),
            });
            (audience.audience.clone(), figures)
        };
        let audiences: Map<String, Value> = findings.audiences.iter().map(entry).collect();
        let coalitions: Map<String, Value> = findings.coalitions.iter().map(entry).collect();
        object.insert("audiences".to_owned(), audiences.into());
        object.insert("coalitions".to_owned(), coalitions.into());
        object.insert("collusion_k".to_owned(), findings.collusion_k.into());
    }
    if !has_sizes(findings) {
        for unknown in ["k", "unique_persons", "smallest_classes", "risk"] {
            object.insert(unknown.to_owned(), Value::Null);
        }
    }
    if hides_persons(findings) {
        object.insert("k".to_owned(), Value::Null);
        object.insert("k_at_most".to_owned(), findings.k.into());
        for unknown in ["persons", "unique_persons", "smallest_classes", "risk"] {
            object.insert(unknown.to_owned(), Value::Null);
        }
        let distinct = |(name, column): (String, &SensitiveFindings)| (name, json!({ "l": column.l }));
        let sensitive: Map<String, Value> = sensitive_columns(findings).into_iter().map(distinct).collect();
        object.insert("sensitive".to_owned(), sensitive.into());
    }
    if let Some(joined) = &findings.joined {
        object.insert("sensitive_groups".to_owned(), joined.groups.into());
        object.insert("group_k".to_owned(), joined.group_k.into());
        if let Some(TogetherWithin { k, l }) = &joined.together_within {
            let within = |least: Value, most: Value| json!({ "least": least, "most": most });
            let l: Map<String, Value> = l
                .iter()
                .map(|(column, (least, most))| (column.clone(), within((*least).into(), (*most).into())))
                .collect();
            object.insert("read_together".to_owned(), json!({ "k": within(k.0.into(), k.1.into()), "l": l }));
        }
    }
    if !findings.tables.is_empty() {
        let table = |table: &TableFindings| json!({ "name": table.table, "rows": table.rows, "classes": table.classes, "k": table.k });
        object.insert("tables".to_owned(), findings.tables.iter().map(table).collect());
    }
    object
}

fn learned_entry(learned: &LearnedFindings) -> (String, Value) {
    let LearnedFindings { column, l, t, certain } = learned;
    (column.clone(), json!({ "l": l, "t": t, "certain": certain }))
}

fn sensitive_object(column: &SensitiveFindings) -> Value {
    json!({
        "l": column.l,
        "entropy_l": column.entropy_l,
        "recursive_c": column.recursive_c,
        "t": column.t,
        "t_ordered": column.t_ordered,
        "t_hierarchical": column.t_hierarchical,
        "alpha": column.alpha,
        "beta": column.beta,
        "enhanced_beta": column.enhanced_beta,
    })
}
