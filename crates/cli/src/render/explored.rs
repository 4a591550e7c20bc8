//! Renders an exploration: a table, a plot as text or SVG, and JSON.

use kohort::{Explored, Figures, Outcome, Series};
use kohort_plots::{Curve, Mark, Point, curves};
use serde_json::{Value, json};

use super::{count_of, number};

/// Columns and lines of the plot as text.
const PLOT: (usize, usize) = (60, 16);
/// The marks of series in the plot as text. Further series begin again with the first.
const MARKS: &[u8] = b"abcdefghijklmnopqrstuvwxyz";

/// The runs, one per line, each series under its name.
pub(crate) fn table(found: &Explored) -> String {
    let mut text = String::new();
    for (position, series) in found.series.iter().enumerate() {
        if position > 0 {
            text.push('\n');
        }
        text += &format!("{}\n", name(series, found));
        text += &format!(
            "{:>6} {:>8} {:>13} {:>13} {:>9} {:>16} {:>8}\n",
            "k", "reached", "highest risk", "average risk", "classes", "left out", "loss"
        );
        for (position, run) in series.runs.iter().enumerate() {
            let is_knee = series.knee == Some(position);
            match &run.outcome {
                Outcome::Reached(figures) => {
                    let Figures { k, highest_risk, average_risk, classes, persons, suppressed, loss, .. } = figures;
                    text += &format!(
                        "{:>6} {k:>8} {:>13} {:>13} {classes:>9} {:>16} {:>8}{}\n",
                        run.k,
                        number(*highest_risk),
                        number(*average_risk),
                        count_of(*suppressed, *persons),
                        number(*loss),
                        if is_knee { "  knee" } else { "" }
                    );
                }
                Outcome::Unreachable(why) => text += &format!("{:>6} {why}\n", run.k),
            }
        }
        if series.knee.is_none() {
            text += "no knee: no run lies below the straight line from the highest risk to the highest loss\n";
        }
    }
    text
}

/// Every run in a plot of risk against loss, for a terminal.
pub(crate) fn text_plot(found: &Explored) -> String {
    let (n_columns, n_lines) = PLOT;
    let runs = || found.series.iter().flat_map(|series| &series.runs).filter_map(|run| run.outcome.figures());
    let most_risk = runs().map(|figures| figures.highest_risk).fold(0.0, f64::max);
    let most_loss = runs().map(|figures| figures.loss).fold(0.0, f64::max);
    if most_risk <= 0.0 {
        return String::new();
    }
    let mut grid = vec![vec![' '; n_columns + 1]; n_lines + 1];
    let place =
        |value: f64, most: f64, n: usize| if most > 0.0 { (value / most * n as f64).round() as usize } else { 0 };
    for (position, series) in found.series.iter().enumerate() {
        for (at, run) in series.runs.iter().enumerate() {
            let Some(figures) = run.outcome.figures() else { continue };
            let line = n_lines - place(figures.loss, most_loss, n_lines);
            let column = place(figures.highest_risk, most_risk, n_columns);
            let letter = char::from(MARKS[position % MARKS.len()]);
            let is_knee = series.knee == Some(at);
            let cell = &mut grid[line][column];
            // A knee is never hidden behind another run.
            if !cell.is_ascii_uppercase() {
                *cell = if is_knee { letter.to_ascii_uppercase() } else { letter };
            }
        }
    }
    let mut text = "\nloss\n".to_owned();
    for (line, cells) in grid.iter().enumerate() {
        let loss = most_loss * (n_lines - line) as f64 / n_lines as f64;
        let label = if line % 4 == 0 { number(loss) } else { String::new() };
        let cells: String = cells.iter().collect();
        text += format!("{label:>8} |{cells}").trim_end();
        text.push('\n');
    }
    text += &format!("{:>8} +{}\n", "", "-".repeat(n_columns + 1));
    text += &format!("{:>8}  0{:>width$}  highest risk\n", "", number(most_risk), width = n_columns);
    for (position, series) in found.series.iter().enumerate() {
        text += &format!("{}  {}\n", char::from(MARKS[position % MARKS.len()]), name(series, found));
    }
    text + "a capital letter is the knee of its series\n"
}

/// The plot of risk against loss.
pub(crate) fn svg(found: &Explored) -> String {
    let curve = |series: &Series| {
        let point = |(position, run): (usize, &kohort::Run)| {
            let figures = run.outcome.figures()?;
            let is_knee = series.knee == Some(position);
            Some(Point {
                x: figures.highest_risk,
                y: figures.loss,
                label: if is_knee { format!("k = {}, knee", run.k) } else { run.k.to_string() },
                mark: if is_knee { Mark::Ringed } else { Mark::Plain },
            })
        };
        Curve { name: name(series, found), points: series.runs.iter().enumerate().filter_map(point).collect() }
    };
    let all: Vec<Curve> = found.series.iter().map(curve).collect();
    curves("Risk against loss, one point per k", "highest risk", "loss", &all)
}

/// For programs.
pub(crate) fn json(found: &Explored) -> String {
    let series = |series: &Series| {
        let run = |(position, run): (usize, &kohort::Run)| match &run.outcome {
            Outcome::Reached(figures) => json!({
                "k": run.k,
                "achieved": {
                    "k": figures.k,
                    "algorithm": figures.algorithm,
                    "highest_risk": figures.highest_risk,
                    "average_risk": figures.average_risk,
                    "classes": figures.classes,
                    "persons": figures.persons,
                    "suppressed": figures.suppressed,
                    "loss": figures.loss,
                    "notes": figures.notes,
                },
                "knee": series.knee == Some(position),
            }),
            Outcome::Unreachable(why) => {
                json!({ "k": run.k, "achieved": null, "unreachable": why, "knee": false })
            }
        };
        let runs: Vec<Value> = series.runs.iter().enumerate().map(run).collect();
        json!({
            "algorithm": series.algorithm.word(),
            "max_suppressed": series.max_suppressed,
            "dropped": series.dropped,
            "knee": series.knee.map(|position| series.runs[position].k),
            "runs": runs,
        })
    };
    let all: Vec<Value> = found.series.iter().map(series).collect();
    let risks: Vec<Value> =
        found.risks.iter().map(|risk| json!({ "message": risk.message, "hint": risk.hint })).collect();
    format!("{:#}\n", json!({ "series": all, "risks": risks }))
}

/// What makes a series differ from the others.
fn name(series: &Series, found: &Explored) -> String {
    let mut name = format!("algorithm {}", series.algorithm.word());
    if let Some(column) = &series.dropped {
        name += &format!(", without {column}");
    } else if found.series.iter().any(|other| other.dropped.is_some()) {
        name += ", all columns";
    }
    name + &format!(", max_suppressed {}", number(series.max_suppressed))
}
