//! Renders where the risk of a table comes from.

use kohort::Risks;
use kohort::verifier::{PopulationModel, PopulationRisk, SudaFindings};
use serde_json::{Map, Value, json};

use super::{count_of, number};

/// What was asked for, in words.
pub(crate) fn words(found: &Risks, by_column: bool) -> String {
    let mut text = String::new();
    if let Some(scores) = &found.suda {
        text += &suda(scores);
    }
    if by_column || found.suda.is_some() {
        text += &columns(found);
    }
    if let Some(risk) = &found.population {
        text += &population(risk);
    }
    text
}

fn suda(SudaFindings { scores, found, .. }: &SudaFindings) -> String {
    let n_scored = scores.iter().filter(|score| **score > 0.0).count();
    let highest = scores.iter().copied().fold(0.0, f64::max);
    let mut text = String::from("\nrows that few columns make unique\n");
    let mut line = |name: &str, value: &str| text += &format!("{name:<28} {value}\n");
    line("rows with such columns", &count_of(n_scored as u64, scores.len() as u64));
    for (size, n) in (1..).zip(found) {
        let of = if size == 1 { "1 column".to_owned() } else { format!("{size} columns") };
        line(&format!("minimal sets of {of}"), &n.to_string());
    }
    line("highest score", &number(highest));
    text
}

fn columns(found: &Risks) -> String {
    let names = found.columns.iter().map(|column| column.column.chars().count());
    let width = names.max().unwrap_or(0).max(16);
    let score = |share: Option<f64>| share.map_or_else(String::new, |share| format!(" {:>11}", number(share)));
    let header = if found.suda.is_some() { format!(" {:>11}", "suda share") } else { String::new() };
    let mut text = format!(
        "\n{:<width$} {:>10} {:>10} {:>16} {:>14}{header}\n",
        "column", "adds", "k without", "unique without", "risk without"
    );
    for column in &found.columns {
        text += &format!(
            "{:<width$} {:>10} {:>10} {:>16} {:>14}{}\n",
            column.column,
            number(column.adds),
            column.k_without,
            column.unique_without,
            number(column.average_without),
            score(column.suda_share)
        );
    }
    text
}

fn population(risk: &PopulationRisk) -> String {
    let mut text = format!("\nestimated among {} persons, of whom the table has {}\n", risk.persons, share(risk.share));
    let mut line = |name: &str, value: &str| text += &format!("{name:<28} {value}\n");
    for &(model, alone) in &risk.alone {
        line(&format!("alone by {}", name(model)), &count_of(alone.round() as u64, risk.persons));
    }
    line("highest risk by Poisson", &number(risk.highest_risk));
    line("average risk by Poisson", &number(risk.average_risk));
    text
}

fn share(share: f64) -> String {
    format!("{} %", number(100.0 * share))
}

fn name(model: PopulationModel) -> &'static str {
    match model {
        PopulationModel::Poisson => "Poisson",
        PopulationModel::Zayatz => "Zayatz",
        PopulationModel::SlideNegativeBinomial => "SNB",
        PopulationModel::Pitman => "Pitman",
    }
}

/// The figures for programs.
pub(crate) fn object(found: &Risks) -> Map<String, Value> {
    let mut object = Map::new();
    let column = |column: &kohort::ColumnRisk| {
        let mut entry = json!({
            "column": column.column,
            "adds": column.adds,
            "k_without": column.k_without,
            "unique_without": column.unique_without,
            "average_risk_without": column.average_without,
        });
        if let (Some(share), Some(entry)) = (column.suda_share, entry.as_object_mut()) {
            entry.insert("suda_share".to_owned(), share.into());
        }
        entry
    };
    object.insert("columns".to_owned(), found.columns.iter().map(column).collect());
    if let Some(SudaFindings { largest, scores, found, .. }) = &found.suda {
        let n_scored = scores.iter().filter(|score| **score > 0.0).count();
        let highest = scores.iter().copied().fold(0.0, f64::max);
        let figures = json!({ "largest": largest, "rows": n_scored, "minimal_sets": found, "highest_score": highest });
        object.insert("suda".to_owned(), figures);
    }
    if let Some(risk) = &found.population {
        let alone: Map<String, Value> =
            risk.alone.iter().map(|(model, alone)| (model.word().to_owned(), json!(alone))).collect();
        let figures = json!({
            "persons": risk.persons,
            "share": risk.share,
            "alone_in_table": risk.alone_in_sample,
            "alone": alone,
            "highest_risk": risk.highest_risk,
            "average_risk": risk.average_risk,
        });
        object.insert("population".to_owned(), figures);
    }
    object
}

/// The risk of each row as comma-separated values. It has no cell of the table.
pub(crate) fn records(found: &Risks) -> String {
    let scores = found.suda.as_ref().map(|scores| &scores.scores);
    let mut text = String::from(if scores.is_some() { "row,persons,risk,suda\n" } else { "row,persons,risk\n" });
    for (row, &size) in found.class_sizes.iter().enumerate() {
        text += &format!("{},{size},{}", row + 1, 1.0 / f64::from(size));
        if let Some(scores) = scores {
            text += &format!(",{}", scores[row]);
        }
        text.push('\n');
    }
    text
}
