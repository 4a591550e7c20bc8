//! Curves: points joined by straight lines, several series on the same axes.

use std::fmt::Write as _;

use super::{BOTTOM, CHARACTER, FIRST, Frame, SECOND, TOP, escaped, line, number, open, text, ticks};

/// The height of the plot itself.
const HEIGHT: f64 = 260.0;
/// The space of the numbers left of the plot.
const LEFT: f64 = 56.0;
/// The height of a line of the legend.
const LEGEND: f64 = 18.0;

/// Colours of Okabe and Ito. Further series begin again with the first, in dashes.
const COLOURS: [&str; 6] = [FIRST, SECOND, "#009e73", "#d55e00", "#cc79a7", "#56b4e9"];

/// Points that belong together, in the order in which they are joined.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// The name in the legend.
    pub name: String,
    /// The points.
    pub points: Vec<Point>,
}

/// A point of a curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// How far right, in units of the axis below.
    pub x: f64,
    /// How far up, in units of the axis on the left.
    pub y: f64,
    /// The text beside the point.
    pub label: String,
    /// Whether the point stands out.
    pub mark: Mark,
}

/// Whether a point stands out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A point like any other.
    Plain,
    /// A ring around the point, and its label in bold.
    Ringed,
}

/// Curves on axes that begin at 0. Points that are not finite are left out.
pub fn curves(title: &str, x_unit: &str, y_unit: &str, curves: &[Curve]) -> String {
    let finite = |point: &&Point| point.x.is_finite() && point.y.is_finite();
    let most = |of: fn(&Point) -> f64| {
        let values = curves.iter().flat_map(|curve| &curve.points).filter(finite).map(of);
        values.fold(0.0, f64::max)
    };
    let axis = |most: f64| ticks(if most > 0.0 { most } else { 1.0 });
    let (x_axis, y_axis) = (axis(most(|point| point.x)), axis(most(|point| point.y)));
    let last = |axis: &[f64]| axis.last().copied().unwrap_or(1.0);
    let begin = TOP + LEGEND * curves.len() as f64 + 12.0;
    let width = Frame::Wide.width();
    let (right, end) = (width - 40.0, begin + HEIGHT);
    let x = |value: f64| LEFT + (right - LEFT) * value.max(0.0) / last(&x_axis);
    let y = |value: f64| end - HEIGHT * value.max(0.0) / last(&y_axis);
    let mut svg = open(title, (width, end + BOTTOM));
    for (position, curve) in curves.iter().enumerate() {
        let at = TOP + LEGEND * position as f64;
        stroke(&mut svg, &[(0.0, at), (22.0, at)], position);
        let most_characters = ((width - 30.0) / CHARACTER) as usize;
        text(&mut svg, (28.0, at + 4.0), "start", &curve.name.chars().take(most_characters).collect::<String>());
    }
    for tick in &y_axis {
        line(&mut svg, (LEFT, y(*tick)), (right, y(*tick)), 0.2);
        text(&mut svg, (LEFT - 6.0, y(*tick) + 4.0), "end", &number(*tick));
    }
    for tick in &x_axis {
        line(&mut svg, (x(*tick), begin), (x(*tick), end), 0.2);
        text(&mut svg, (x(*tick), end + 15.0), "middle", &number(*tick));
    }
    line(&mut svg, (LEFT, end), (right, end), 1.0);
    line(&mut svg, (LEFT, begin), (LEFT, end), 1.0);
    text(&mut svg, (right, end + 31.0), "end", x_unit);
    text(&mut svg, (4.0, begin - 8.0), "start", y_unit);
    for (position, curve) in curves.iter().enumerate() {
        let places: Vec<(f64, f64)> =
            curve.points.iter().filter(finite).map(|point| (x(point.x), y(point.y))).collect();
        stroke(&mut svg, &places, position);
        for (point, &(x, y)) in curve.points.iter().filter(finite).zip(&places) {
            let colour = COLOURS[position % COLOURS.len()];
            circle(&mut svg, (x, y), 3.0, colour, colour);
            let weight = match point.mark {
                Mark::Plain => "400",
                Mark::Ringed => {
                    circle(&mut svg, (x, y), 7.0, "none", "currentColor");
                    "700"
                }
            };
            let label = escaped(&point.label);
            write!(svg, "<text x=\"{:.1}\" y=\"{:.1}\" font-weight=\"{weight}\">{label}</text>", x + 8.0, y - 6.0)
                .expect("writing to a string can't fail");
        }
    }
    svg + "</svg>"
}

fn stroke(svg: &mut String, places: &[(f64, f64)], position: usize) {
    let points: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let colour = COLOURS[position % COLOURS.len()];
    let dashes = match position / COLOURS.len() {
        0 => String::new(),
        round => format!(" stroke-dasharray=\"{} 3\"", 3 * round),
    };
    write!(
        svg,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{dashes}/>",
        points.join(" ")
    )
    .expect("writing to a string can't fail");
}

fn circle(svg: &mut String, (x, y): (f64, f64), radius: f64, fill: &str, colour: &str) {
    write!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"{fill}\" stroke=\"{colour}\"/>")
        .expect("writing to a string can't fail");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(x: f64, y: f64) -> Point {
        Point { x, y, label: format!("<{x}>"), mark: Mark::Plain }
    }

    fn curve(points: Vec<Point>) -> Curve {
        Curve { name: "a & b".to_owned(), points }
    }

    /// The centres of the circles.
    fn centres(svg: &str) -> Vec<(f64, f64)> {
        let number = |part: &str, key: &str| part.split(key).nth(1)?.split('"').next()?.parse::<f64>().ok();
        let of = |part: &str| Some((number(part, "cx=\"")?, number(part, "cy=\"")?));
        svg.split("<circle ").skip(1).filter_map(of).collect()
    }

    #[test]
    fn places_are_proportional_to_values_from_zero_on() {
        let svg = curves("t", "x", "y", &[curve(vec![point(0.0, 0.0), point(0.2, 0.5), point(0.4, 1.0)])]);
        let [zero, half, whole] = centres(&svg)[..] else { panic!("{svg}") };
        assert!((half.0 - (zero.0 + whole.0) / 2.0).abs() < 0.11 && (half.1 - (zero.1 + whole.1) / 2.0).abs() < 0.11);
        assert!(whole.0 > zero.0 && whole.1 < zero.1, "x grows to the right and y upwards");
    }

    #[test]
    fn a_ringed_point_has_a_second_circle_and_names_can_not_become_markup() {
        let ringed = Point { mark: Mark::Ringed, ..point(1.0, 1.0) };
        let svg = curves("t", "x", "y", &[curve(vec![point(0.5, 0.5), ringed])]);
        assert_eq!(centres(&svg).len(), 3);
        assert!(svg.contains("a &amp; b") && svg.contains("&lt;1&gt;") && !svg.contains("<1>"));
    }

    #[test]
    fn curves_without_points_are_still_a_chart() {
        for some in [vec![], vec![curve(vec![])], vec![curve(vec![point(f64::NAN, 1.0), point(1.0, f64::INFINITY)])]] {
            let svg = curves("t", "x", "y", &some);
            assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>"), "{svg}");
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
            assert!(centres(&svg).is_empty());
        }
    }

    #[test]
    fn more_series_than_colours_differ_by_dashes() {
        let svg = curves("t", "x", "y", &vec![curve(vec![point(1.0, 1.0)]); 7]);
        // The line in the legend and the curve itself.
        assert_eq!(svg.matches("stroke-dasharray").count(), 2);
    }
}
