//! Charts as SVG, for notebooks, reports and the command: bars, pairs of bars, histograms, curves.
//!
//! Charts have no script, no font and no file of their own, so a page that holds them can be saved and mailed. Text has the
//! colour of the page around it, and bars have the first two colours of Okabe and Ito, which people with any kind of colour
//! blindness can tell apart. So a chart can be read on light and on dark pages. Every bar has its value beside it, so nobody
//! has to measure it against the axis.

mod curves;

use std::fmt::Write as _;

pub use curves::{Curve, Mark, Point, curves};

/// The width of a character of a label, which is set in 12 px.
const CHARACTER: f64 = 6.6;
/// The space of the title above the bars.
const TOP: f64 = 30.0;
/// The space of the axis below the bars.
const BOTTOM: f64 = 34.0;

const FIRST: &str = "#0072b2";
const SECOND: &str = "#e69f00";

/// How wide a chart is. Its text is as large as the text around it only if there is room for the whole width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame {
    /// For notebooks: 520 pixels.
    Wide,
    /// For pages that are read on telephones too: 328 pixels.
    Narrow,
}

impl Frame {
    fn width(self) -> f64 {
        match self {
            Frame::Wide => 520.0,
            Frame::Narrow => 328.0,
        }
    }

    /// The largest part of a chart that labels may take.
    fn most_label(self) -> f64 {
        match self {
            Frame::Wide => 180.0,
            Frame::Narrow => 122.0,
        }
    }

    /// The space that the value beside a bar needs.
    fn value(self) -> f64 {
        match self {
            Frame::Wide => 84.0,
            Frame::Narrow => 78.0,
        }
    }
}

/// A bar.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// The name of the thing that the bar measures.
    pub label: String,
    /// The bar's length in units of the axis.
    pub value: f64,
    /// The value in words, which is printed beside the bar.
    pub shown: String,
}

/// Two bars of the same thing.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// The name of the thing that both bars measure.
    pub label: String,
    /// The first bar, and its value in words.
    pub first: (f64, String),
    /// The second bar.
    pub second: (f64, String),
}

/// Horizontal bars with an axis in `unit`.
pub fn bars(frame: Frame, title: &str, unit: &str, bars: &[Bar]) -> String {
    let rows: Vec<Row<'_>> =
        bars.iter().map(|bar| Row { label: &bar.label, bars: vec![(bar.value, &bar.shown, FIRST)] }).collect();
    horizontal(frame, title, unit, &[], &rows)
}

/// Pairs of horizontal bars, with a legend that names the two series.
pub fn pairs(frame: Frame, title: &str, unit: &str, series: [&str; 2], pairs: &[Pair]) -> String {
    let row = |pair: &Pair| {
        (pair.label.clone(), [(pair.first.0, pair.first.1.clone()), (pair.second.0, pair.second.1.clone())])
    };
    let owned: Vec<_> = pairs.iter().map(row).collect();
    let rows: Vec<Row<'_>> = owned
        .iter()
        .map(|(label, [first, second])| Row {
            label,
            bars: vec![(first.0, first.1.as_str(), SECOND), (second.0, second.1.as_str(), FIRST)],
        })
        .collect();
    horizontal(frame, title, unit, &[(series[0], SECOND), (series[1], FIRST)], &rows)
}

/// A histogram: one upright bar per size. Bars are at equal distances even if sizes are missing between them, so read a
/// size from the label below its bar, not from the bar's position.
pub fn histogram(frame: Frame, title: &str, x_unit: &str, y_unit: &str, counts: &[(u64, u64)]) -> String {
    let width = frame.width();
    let (left, plot_height) = (56.0, 120.0);
    let height = TOP + plot_height + BOTTOM + 10.0;
    let most = counts.iter().map(|&(_, n)| n).max().unwrap_or(0).max(1) as f64;
    let axis = ticks(most);
    let top = axis.last().copied().unwrap_or(most).max(most);
    let y = |n: f64| TOP + 12.0 + plot_height * (1.0 - n / top);
    let slot = (width - left - 10.0) / counts.len().max(1) as f64;
    let bar_width = (slot * 0.7).min(48.0);
    let mut svg = open(title, (width, height));
    for tick in &axis {
        let at = y(*tick);
        line(&mut svg, (left, at), (width - 10.0, at), 0.2);
        text(&mut svg, (left - 6.0, at + 4.0), "end", &number(*tick));
    }
    for (position, &(size, n)) in counts.iter().enumerate() {
        let middle = left + slot * (position as f64 + 0.5);
        let at = y(n as f64);
        rectangle(&mut svg, (middle - bar_width / 2.0, at), (bar_width, y(0.0) - at), FIRST);
        text(&mut svg, (middle, at - 4.0), "middle", &number(n as f64));
        text(&mut svg, (middle, y(0.0) + 15.0), "middle", &size.to_string());
    }
    line(&mut svg, (left, y(0.0)), (width - 10.0, y(0.0)), 1.0);
    text(&mut svg, (width - 10.0, height - 4.0), "end", x_unit);
    text(&mut svg, (4.0, TOP + 2.0), "start", y_unit);
    svg + "</svg>"
}

/// A label and its bars.
struct Row<'a> {
    label: &'a str,
    bars: Vec<(f64, &'a str, &'static str)>,
}

fn horizontal(frame: Frame, title: &str, unit: &str, legend: &[(&str, &str)], rows: &[Row<'_>]) -> String {
    let width = frame.width();
    let longest = rows.iter().map(|row| row.label.chars().count()).max().unwrap_or(0) as f64;
    let left = (longest * CHARACTER + 12.0).min(frame.most_label());
    let of_row = |row: &Row<'_>| 8.0 + 16.0 * row.bars.len() as f64;
    let legend_height = if legend.is_empty() { 0.0 } else { 20.0 };
    let begin = TOP + legend_height;
    let end = begin + rows.iter().map(of_row).sum::<f64>();
    let most = rows.iter().flat_map(|row| &row.bars).map(|bar| bar.0).filter(|value| value.is_finite());
    let most = most.fold(0.0, f64::max);
    let axis = ticks(if most > 0.0 { most } else { 1.0 });
    let right = axis.last().copied().unwrap_or(1.0).max(most);
    let plot = width - left - frame.value();
    let x = |value: f64| left + plot * (value.max(0.0) / right).min(1.0);
    let mut svg = open(title, (width, end + BOTTOM));
    let mut at = left;
    for (name, colour) in legend {
        rectangle(&mut svg, (at, TOP - 4.0), (12.0, 12.0), colour);
        text(&mut svg, (at + 17.0, TOP + 6.0), "start", name);
        at += 34.0 + name.chars().count() as f64 * CHARACTER;
    }
    for tick in &axis {
        line(&mut svg, (x(*tick), begin), (x(*tick), end), 0.2);
        text(&mut svg, (x(*tick), end + 15.0), "middle", &number(*tick));
    }
    let mut top = begin + 4.0;
    for row in rows {
        let middle = top + 8.0 * row.bars.len() as f64;
        text(&mut svg, (left - 8.0, middle + 4.0), "end", &shortened(row.label, left));
        for (value, shown, colour) in &row.bars {
            let value = if value.is_finite() { *value } else { right };
            rectangle(&mut svg, (left, top + 2.0), (x(value) - left, 12.0), colour);
            text(&mut svg, (x(value) + 6.0, top + 12.0), "start", shown);
            top += 16.0;
        }
        top += 8.0;
    }
    line(&mut svg, (left, begin), (left, end), 1.0);
    text(&mut svg, (left + plot, end + 31.0), "end", unit);
    svg + "</svg>"
}

/// From two to six round numbers from 0 on, the last one at least as large as the largest value.
fn ticks(most: f64) -> Vec<f64> {
    let rough = most / 4.0;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].map(|factor| factor * power).into_iter().find(|&step| step >= rough);
    let step = step.unwrap_or(10.0 * power);
    let n = (most / step).ceil().max(1.0) as u32;
    (0..=n).map(|position| step * f64::from(position)).collect()
}

fn number(value: f64) -> String {
    if value >= 1e6 {
        return format!("{}M", trimmed(value / 1e6));
    }
    if value >= 1e4 {
        return format!("{}k", trimmed(value / 1e3));
    }
    trimmed(value)
}

fn trimmed(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn shortened(label: &str, space: f64) -> String {
    let most = ((space - 8.0) / CHARACTER) as usize;
    if label.chars().count() <= most {
        return label.to_owned();
    }
    label.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

fn open(title: &str, (width, height): (f64, f64)) -> String {
    let title = escaped(title);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" font-family=\"system-ui, sans-serif\" font-size=\"12\" fill=\"currentColor\" \
         style=\"max-width:100%;height:auto\"><title>{title}</title>\
         <text x=\"0\" y=\"14\" font-weight=\"600\">{title}</text>"
    )
}

fn rectangle(svg: &mut String, (x, y): (f64, f64), (width, height): (f64, f64), colour: &str) {
    let width = width.max(1.0);
    write!(
        svg,
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{:.1}\" fill=\"{colour}\"/>",
        height.max(0.0)
    )
    .expect("writing to a string can't fail");
}

fn line(svg: &mut String, (x1, y1): (f64, f64), (x2, y2): (f64, f64), opacity: f64) {
    write!(
        svg,
        "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"currentColor\" \
         stroke-opacity=\"{opacity}\"/>"
    )
    .expect("writing to a string can't fail");
}

fn text(svg: &mut String, (x, y): (f64, f64), anchor: &str, content: &str) {
    let content = escaped(content);
    write!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{content}</text>")
        .expect("writing to a string can't fail");
}

/// A text as a part of an HTML page or a chart: markup is escaped, and characters that neither can hold become spaces.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push('\n'),
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(label: &str, value: f64) -> Bar {
        Bar { label: label.to_owned(), value, shown: format!("{value}") }
    }

    /// The widths of all bars.
    fn widths(svg: &str) -> Vec<f64> {
        let of = |part: &str| part.split("width=\"").nth(1)?.split('"').next()?.parse().ok();
        svg.split("<rect ").skip(1).filter_map(of).collect()
    }

    #[test]
    fn a_bar_of_twice_the_value_is_twice_as_long() {
        let widths = widths(&bars(Frame::Wide, "loss", "share", &[bar("age", 0.4), bar("zip", 0.2)]));
        assert_eq!(widths.len(), 2);
        assert!((widths[0] - 2.0 * widths[1]).abs() < 0.2, "{widths:?}");
    }

    #[test]
    fn both_bars_of_a_pair_share_an_axis() {
        let pair = Pair { label: "risk".to_owned(), first: (1.0, "1".to_owned()), second: (0.25, "1/4".to_owned()) };
        let svg = pairs(Frame::Narrow, "risk", "share", ["before", "after"], &[pair]);
        let widths = widths(&svg);
        // Two boxes of the legend come first.
        assert!((widths[2] - 4.0 * widths[3]).abs() < 0.4, "{widths:?}");
        assert!(svg.contains(">before<") && svg.contains(">1/4<"));
    }

    #[test]
    fn the_axis_reaches_beyond_the_largest_value_in_round_steps() {
        for most in [0.013, 0.4, 1.0, 7.0, 30_162.0, 2.5e6] {
            let ticks = ticks(most);
            assert!((2..=6).contains(&ticks.len()), "{most}: {ticks:?}");
            assert!(ticks[0] == 0.0 && ticks[ticks.len() - 1] >= most, "{most}: {ticks:?}");
        }
    }

    #[test]
    fn a_label_can_not_become_markup() {
        let svg = bars(Frame::Wide, "<b>", "a & b", &[bar("<script>\"x\"\u{0}", 1.0)]);
        assert!(!svg.contains("<script>") && !svg.contains("<b>") && !svg.contains('\u{0}'));
        assert!(svg.contains("&lt;script&gt;&quot;x&quot;"));
    }

    #[test]
    fn a_chart_without_values_is_still_a_chart() {
        for svg in [
            bars(Frame::Wide, "x", "y", &[]),
            histogram(Frame::Wide, "x", "y", "z", &[]),
            bars(Frame::Wide, "x", "y", &[Bar { shown: "none".to_owned(), ..bar("a", f64::NAN) }]),
        ] {
            assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>"), "{svg}");
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }

    #[test]
    fn a_histogram_has_a_bar_and_a_label_per_size() {
        let svg = histogram(Frame::Wide, "sizes", "persons", "classes", &[(5, 10), (6, 4), (7, 1)]);
        assert_eq!(widths(&svg).len(), 3);
        assert!(svg.contains(">5<") && svg.contains(">10<"));
    }
}
