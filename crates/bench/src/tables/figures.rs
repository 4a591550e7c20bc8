//! The figures of the paper's section V, drawn from the experiment: its figures 4 to 8.

use super::experiment::{AUTO, Experiment, Found, FoundBitmap, KS, KS_OF_THRESHOLDS, METHODS, Method, THRESHOLDS};
use super::least_dm;
use crate::plot::{Axis, Figure, Kind, Line, Lines};

/// LM, DM, time and evaluations by k, then LM by threshold.
pub(super) fn draw(experiment: &Experiment) -> Vec<Figure> {
    let ks = || ("k", KS.map(f64::from).to_vec());
    let mut figures = vec![
        Lines {
            file: "tables-lm",
            title: "Loss by k, incomplete data, 1000 students".to_owned(),
            x: ks(),
            y: ("LM, less is better", Axis::Linear),
            lines: lines(experiment, &[Data::Incomplete], |_, found| Some(found.lm), |_, bitmap| bitmap.loss.lm),
        }
        .draw(),
        Lines {
            file: "tables-dm",
            title: "Discernibility by k over the least there is, 1000 students".to_owned(),
            x: ks(),
            y: ("DM over persons x k, less is better", Axis::Linear),
            lines: lines(
                experiment,
                &[Data::Incomplete, Data::Complete],
                |k, found| Some(found.dm / least_dm(k)),
                |k, bitmap| bitmap.loss.dm / least_dm(k),
            ),
        }
        .draw(),
        Lines {
            file: "tables-cpu",
            title: "CPU time by k, 1000 students".to_owned(),
            x: ks(),
            y: ("seconds, less is better", Axis::Log),
            lines: lines(
                experiment,
                &[Data::Incomplete, Data::Complete],
                |_, found| Some(found.cost.cpu.as_secs_f64()),
                |_, bitmap| bitmap.cost.cpu.as_secs_f64(),
            ),
        }
        .draw(),
        Lines {
            file: "tables-evaluations",
            title: "Cost evaluations by k, nothing remembered, 1000 students".to_owned(),
            x: ks(),
            y: ("thousands, less is better", Axis::Log),
            lines: lines(experiment, &[], |_, found| Some(found.evaluations? as f64 / 1e3), |_, _| 0.0),
        }
        .draw(),
    ];
    let files = ["tables-thresholds-5", "tables-thresholds-50"];
    for ((file, k), found) in files.into_iter().zip(KS_OF_THRESHOLDS).zip(&experiment.thresholds) {
        let points = |losses: &[f64]| THRESHOLDS.into_iter().zip(losses.iter().copied()).collect();
        let line = |(method, losses): &(Method, Vec<f64>)| Line {
            name: method.name.to_owned(),
            kind: Kind::Ours,
            points: points(losses),
        };
        let mut lines: Vec<Line> = found.methods.iter().map(line).collect();
        lines.push(Line { name: "bitmap".to_owned(), kind: Kind::Quoted, points: points(&found.bitmap) });
        let figure = Lines {
            file,
            title: format!("Loss by threshold at k = {k}, incomplete data, 1000 students"),
            x: ("threshold", THRESHOLDS.to_vec()),
            y: ("LM, less is better", Axis::Linear),
            lines,
        };
        figures.push(figure.draw());
    }
    figures
}

/// Which bitmaps a figure shows.
#[derive(Clone, Copy)]
enum Data {
    Incomplete,
    Complete,
}

/// A line per method and bitmap; values by position of k.
fn lines(
    experiment: &Experiment,
    bitmaps: &[Data],
    ours: impl Fn(usize, &Found) -> Option<f64>,
    theirs: impl Fn(usize, &FoundBitmap) -> f64,
) -> Vec<Line> {
    let k_of = |position: usize| f64::from(KS[position]);
    let mut lines = Vec::new();
    for (method, found) in METHODS.into_iter().zip(&experiment.methods) {
        let points = found.iter().enumerate().filter_map(|(k, found)| Some((k_of(k), ours(k, found)?)));
        let kind = if method == AUTO { Kind::Highlighted } else { Kind::Ours };
        let line = Line { name: method.name.to_owned(), kind, points: points.collect() };
        lines.extend((!line.points.is_empty()).then_some(line));
    }
    for bitmap in bitmaps {
        let (name, found) = match bitmap {
            Data::Incomplete => ("bitmap, incomplete data", &experiment.incomplete),
            Data::Complete => ("bitmap, complete data", &experiment.complete),
        };
        let points = found.iter().enumerate().map(|(k, found)| (k_of(k), theirs(k, found)));
        lines.push(Line { name: name.to_owned(), kind: Kind::Quoted, points: points.collect() });
    }
    lines
}
