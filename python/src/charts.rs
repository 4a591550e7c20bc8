//! Charts as SVG.

use kohort_plots::{Bar, Curve, Frame, Mark, Pair, Point};
use pyo3::prelude::*;

/// A chart of bars as SVG.
#[pyfunction]
pub(crate) fn bar_chart(title: &str, unit: &str, bars: Vec<(String, f64, String)>) -> String {
    let bars = bars.into_iter().map(|(label, value, shown)| Bar { label, value, shown });
    kohort_plots::bars(Frame::Wide, title, unit, &bars.collect::<Vec<_>>())
}

/// A label and two bars, each with its value in words.
type LabelledPair = (String, (f64, String), (f64, String));

/// A chart of pairs of bars as SVG.
#[pyfunction]
pub(crate) fn pair_chart(title: &str, unit: &str, series: (String, String), pairs: Vec<LabelledPair>) -> String {
    let pair = |(label, first, second): LabelledPair| Pair { label, first, second };
    let pairs: Vec<Pair> = pairs.into_iter().map(pair).collect();
    kohort_plots::pairs(Frame::Wide, title, unit, [&series.0, &series.1], &pairs)
}

/// A histogram as SVG: how many there are of each size.
#[pyfunction]
pub(crate) fn histogram(title: &str, x_unit: &str, y_unit: &str, counts: Vec<(u64, u64)>) -> String {
    kohort_plots::histogram(Frame::Wide, title, x_unit, y_unit, &counts)
}

/// A name, and points with a label each. A point whose last part is true stands out.
type NamedCurve = (String, Vec<(f64, f64, String, bool)>);

/// Curves as SVG.
#[pyfunction]
pub(crate) fn curve_chart(title: &str, x_unit: &str, y_unit: &str, curves: Vec<NamedCurve>) -> String {
    let point =
        |(x, y, label, stands_out)| Point { x, y, label, mark: if stands_out { Mark::Ringed } else { Mark::Plain } };
    let curve = |(name, points): NamedCurve| Curve { name, points: points.into_iter().map(point).collect() };
    kohort_plots::curves(title, x_unit, y_unit, &curves.into_iter().map(curve).collect::<Vec<_>>())
}
