//! Figures as SVG: lines over k, and dots on a line per system.
//!
//! A figure has its own white background, so that it reads the same on light and dark pages, and a title for people who
//! can't see it. Lines are named at their right end, and the names are pushed apart where lines end close to each
//! other. `kohort-plots` draws other kinds of charts, bars and histograms in the colours of the page around them, so
//! the two have only the format in common.

use std::fmt::Write as _;

const WIDTH: f64 = 880.0;
const MARGIN: f64 = 24.0;
const TITLE_HEIGHT: f64 = 40.0;
const AXIS_HEIGHT: f64 = 48.0;
const PLOT_HEIGHT: f64 = 380.0;
const LINE_HEIGHT: f64 = 16.0;
const DOT_HEIGHT: f64 = 24.0;
/// An upper bound for the average width of the font's letters.
const LETTER_WIDTH: f64 = 6.3;

const INK: &str = "#1f2328";
const GRID: &str = "#e4e7eb";
const HIGHLIGHT: &str = "#0550ae";
/// Colours that people with colour blindness can tell apart, dark enough for words on white.
const COLOURS: [&str; 6] = ["#b35900", "#00795a", "#a8327d", "#6a5a00", "#0a7ea4", "#6b4fbb"];
const QUOTED_COLOURS: [&str; 6] = ["#8b1a1a", "#6e7781", "#3f6212", "#9a6700", "#4338ca", "#7c3f58"];

/// A drawn figure.
pub(crate) struct Figure {
    /// The figure's file below `bench/plots`, without extension.
    pub(crate) file: &'static str,
    pub(crate) svg: String,
    title: String,
}

impl Figure {
    /// The figure as a Markdown link from the results.
    pub(crate) fn link(&self) -> String {
        format!("![{}](plots/{}.svg)\n", self.title, self.file)
    }
}

/// Where the values come from, which decides how they look.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The subject of the figure.
    Highlighted,
    /// Measured in the same run.
    Ours,
    /// Measured earlier.
    Quoted,
    /// A bound that no system can reach.
    Bound,
}

/// How values become lengths.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Axis {
    /// The axis starts at zero, and the length is proportional to the value.
    Linear,
    /// The length is proportional to the logarithm of the value.
    Log,
}

/// Lines over the same few positions, which are spaced by their logarithm.
pub(crate) struct Lines {
    pub(crate) file: &'static str,
    pub(crate) title: String,
    /// The meaning of the positions, and the positions.
    pub(crate) x: (&'static str, Vec<f64>),
    /// The meaning of the values.
    pub(crate) y: (&'static str, Axis),
    pub(crate) lines: Vec<Line>,
}

/// A line of a figure.
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// Position and value, from left to right.
    pub(crate) points: Vec<(f64, f64)>,
}

/// A value per system, on an axis of logarithms.
pub(crate) struct Dots {
    pub(crate) file: &'static str,
    pub(crate) title: String,
    /// The meaning of the values.
    pub(crate) x: String,
    pub(crate) dots: Vec<Dot>,
}

/// A value of a figure.
pub(crate) struct Dot {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) value: f64,
    /// The value in words.
    pub(crate) label: String,
}

impl Lines {
    /// Draws the lines.
    pub(crate) fn draw(&self) -> Figure {
        let names_width = width_of_longest(self.lines.iter().map(|line| line.name.as_str())) + 40.0;
        let height = TITLE_HEIGHT + PLOT_HEIGHT + AXIS_HEIGHT;
        let (left, right) = (MARGIN + 50.0, WIDTH - MARGIN - names_width);
        let (top, bottom) = (TITLE_HEIGHT, TITLE_HEIGHT + PLOT_HEIGHT);
        let values = || self.lines.iter().flat_map(|line| &line.points).map(|&(_, value)| value);
        let x = Scale::new(Axis::Log, self.x.1.iter().copied(), (left, right));
        let y = Scale::new(self.y.1, values(), (bottom, top));

        let mut canvas = Canvas::new(&self.title, height);
        for tick in y.ticks() {
            canvas.line((left, y.at(tick)), (right, y.at(tick)), GRID);
            canvas.text((left - 8.0, y.at(tick) + 4.0), "end", INK, &plain(tick));
        }
        for &tick in &self.x.1 {
            canvas.line((x.at(tick), bottom), (x.at(tick), bottom + 5.0), INK);
            canvas.text((x.at(tick), bottom + 20.0), "middle", INK, &plain(tick));
        }
        canvas.line((left, bottom), (right, bottom), INK);
        canvas.text((f64::midpoint(left, right), bottom + 40.0), "middle", INK, self.x.0);
        canvas.upright_text((MARGIN, f64::midpoint(top, bottom)), self.y.0);

        let ends: Vec<f64> =
            self.lines.iter().map(|line| line.points.last().map_or(bottom, |&(_, value)| y.at(value))).collect();
        let names = push_apart(&ends, (top, bottom));
        let mut lines: Vec<_> = self.lines.iter().zip(self.colours()).zip(ends.iter().zip(&names)).collect();
        // The subject of the figure is drawn last, so that no other line hides it.
        lines.sort_by_key(|((line, _), _)| line.kind == Kind::Highlighted);
        for ((line, colour), (&end, &name)) in lines {
            let points: Vec<(f64, f64)> = line.points.iter().map(|&(at, value)| (x.at(at), y.at(value))).collect();
            canvas.path(&points, line.kind, colour);
            let last = points.last().map_or(right, |&(last, _)| last);
            canvas.leader((last + 5.0, end), (right + 22.0, name), colour);
            canvas.name((right + 26.0, name + 4.0), line.kind, colour, &line.name);
        }
        Figure { file: self.file, svg: canvas.finish(), title: self.title.clone() }
    }

    fn colours(&self) -> Vec<&'static str> {
        colours(self.lines.iter().map(|line| line.kind))
    }
}

impl Dots {
    /// The same dots with the smallest value on top.
    pub(crate) fn sorted(mut self) -> Dots {
        self.dots.sort_by(|one, other| one.value.total_cmp(&other.value));
        self
    }

    /// Draws the dots.
    pub(crate) fn draw(self) -> Figure {
        let left = MARGIN + width_of_longest(self.dots.iter().map(|dot| dot.name.as_str())) + 8.0;
        let right = WIDTH - MARGIN - 60.0;
        let (top, bottom) = (TITLE_HEIGHT, TITLE_HEIGHT + DOT_HEIGHT * self.dots.len() as f64);
        let x = Scale::new(Axis::Log, self.dots.iter().map(|dot| dot.value), (left, right));

        let mut canvas = Canvas::new(&self.title, bottom + AXIS_HEIGHT);
        for tick in x.ticks() {
            canvas.line((x.at(tick), top), (x.at(tick), bottom), GRID);
            canvas.text((x.at(tick), bottom + 18.0), "middle", INK, &plain(tick));
        }
        canvas.text((f64::midpoint(left, right), bottom + 38.0), "middle", INK, &self.x);
        for (row, dot) in self.dots.iter().enumerate() {
            let middle = top + DOT_HEIGHT * (row as f64 + 0.5);
            let colour = match dot.kind {
                Kind::Highlighted => HIGHLIGHT,
                Kind::Ours => COLOURS[1],
                Kind::Quoted | Kind::Bound => QUOTED_COLOURS[1],
            };
            canvas.line((left, middle), (x.at(dot.value), middle), GRID);
            canvas.dot((x.at(dot.value), middle), 5.0, dot.kind, colour);
            canvas.right_name((left - 8.0, middle + 4.0), dot.kind, colour, &dot.name);
            canvas.text((x.at(dot.value) + 10.0, middle + 4.0), "start", INK, &dot.label);
        }
        Figure { file: self.file, svg: canvas.finish(), title: self.title }
    }
}

/// Values to pixels.
struct Scale {
    axis: Axis,
    values: (f64, f64),
    pixels: (f64, f64),
}

impl Scale {
    /// A scale that spans all values: from zero or, with logarithms, a little more than the values do.
    fn new(axis: Axis, values: impl Iterator<Item = f64>, pixels: (f64, f64)) -> Scale {
        let (least, most) =
            values.fold((f64::MAX, f64::MIN), |(least, most), value| (least.min(value), most.max(value)));
        let values = match axis {
            Axis::Linear => (0.0, most * 1.05),
            Axis::Log => (least / 1.15, most * 1.15),
        };
        Scale { axis, values, pixels }
    }

    fn at(&self, value: f64) -> f64 {
        let place = |value: f64| if self.axis == Axis::Log { value.ln() } else { value };
        let (least, most) = (place(self.values.0), place(self.values.1));
        self.pixels.0 + (place(value) - least) / (most - least) * (self.pixels.1 - self.pixels.0)
    }

    /// Round values within the scale: on a scale of logarithms 1, 2 and 5 times powers of ten, on a linear one 4 to 8
    /// multiples of such a number.
    fn ticks(&self) -> Vec<f64> {
        let (least, most) = self.values;
        match self.axis {
            Axis::Log => round_values(least, most),
            Axis::Linear => {
                let step = round_values(most / 10.0, most).into_iter().find(|step| most / step <= 8.0).unwrap_or(most);
                (0..=(most / step) as usize).map(|multiple| multiple as f64 * step).collect()
            }
        }
    }
}

fn round_values(least: f64, most: f64) -> Vec<f64> {
    let powers = least.log10().floor() as i32..=most.log10().ceil() as i32;
    let candidates = powers.flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10f64.powi(power)));
    candidates.filter(|value| (least..=most).contains(value)).collect()
}

/// Heights at least one line apart, as close to the wanted ones as possible, and within the bounds if there is room. A
/// run of names that would overlap is centred on the mean of their wanted heights.
fn push_apart(wanted: &[f64], (top, bottom): (f64, f64)) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|&one, &other| wanted[one].total_cmp(&wanted[other]));
    // Subtract from each height the lines of the names above it. Then names don't overlap if these heights never
    // decrease.
    let mut runs: Vec<(f64, usize)> = Vec::new();
    for (n_above, &position) in order.iter().enumerate() {
        let mut run = (wanted[position] - n_above as f64 * LINE_HEIGHT, 1);
        while let Some(&(height, length)) = runs.last()
            && height > run.0
        {
            runs.pop();
            let sum = height * length as f64 + run.0 * run.1 as f64;
            run = (sum / (length + run.1) as f64, length + run.1);
        }
        runs.push(run);
    }
    let last_top = (bottom - wanted.len().saturating_sub(1) as f64 * LINE_HEIGHT).max(top);
    let tops = runs.into_iter().flat_map(|(height, length)| std::iter::repeat_n(height.clamp(top, last_top), length));
    let mut heights = vec![0.0; wanted.len()];
    for (n_above, (position, height)) in order.into_iter().zip(tops).enumerate() {
        heights[position] = height + n_above as f64 * LINE_HEIGHT;
    }
    heights
}

fn colours(kinds: impl Iterator<Item = Kind>) -> Vec<&'static str> {
    let (mut ours, mut quoted) = (COLOURS.iter().cycle(), QUOTED_COLOURS.iter().cycle());
    let colour = |kind| match kind {
        Kind::Highlighted => HIGHLIGHT,
        Kind::Ours => ours.next().expect("a cycle does not end"),
        Kind::Quoted => quoted.next().expect("a cycle does not end"),
        Kind::Bound => INK,
    };
    kinds.map(colour).collect()
}

fn width_of_longest<'a>(names: impl Iterator<Item = &'a str>) -> f64 {
    names.map(|name| name.chars().count()).max().unwrap_or(0) as f64 * LETTER_WIDTH
}

/// A number without needless digits.
fn plain(value: f64) -> String {
    format!("{value:.4}").trim_end_matches('0').trim_end_matches('.').to_owned()
}

struct Canvas {
    svg: String,
}

impl Canvas {
    fn new(title: &str, height: f64) -> Canvas {
        let title = escaped(title);
        let svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
             aria-labelledby=\"title\" font-family=\"system-ui, Helvetica, Arial, sans-serif\" font-size=\"12\">\n\
             <title id=\"title\">{title}</title>\n\
             <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n\
             <text x=\"{MARGIN}\" y=\"25\" font-size=\"15\" font-weight=\"600\" fill=\"{INK}\">{title}</text>\n",
        );
        Canvas { svg }
    }

    fn finish(mut self) -> String {
        self.svg.push_str("</svg>\n");
        self.svg
    }

    fn push(&mut self, element: std::fmt::Arguments<'_>) {
        writeln!(self.svg, "{element}").expect("writing to a string does not fail");
    }

    fn line(&mut self, from: (f64, f64), to: (f64, f64), colour: &str) {
        let ((x1, y1), (x2, y2)) = (from, to);
        self.push(format_args!("<path d=\"M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}\" stroke=\"{colour}\" fill=\"none\"/>"));
    }

    /// Draws a line from the end of a curve to its name.
    fn leader(&mut self, from: (f64, f64), to: (f64, f64), colour: &str) {
        let ((x1, y1), (x2, y2)) = (from, to);
        self.push(format_args!(
            "<path d=\"M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}\" stroke=\"{colour}\" stroke-width=\"0.6\" fill=\"none\"/>"
        ));
    }

    fn path(&mut self, points: &[(f64, f64)], kind: Kind, colour: &str) {
        let corners: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
        let (width, dashes) = match kind {
            Kind::Highlighted => (3.0, "none"),
            Kind::Ours => (1.8, "none"),
            Kind::Quoted => (1.4, "5 4"),
            Kind::Bound => (1.4, "1 4"),
        };
        self.push(format_args!(
            "<path d=\"M{}\" stroke=\"{colour}\" stroke-width=\"{width}\" stroke-dasharray=\"{dashes}\" fill=\"none\"/>",
            corners.join("L")
        ));
        for &point in points {
            self.dot(point, width + 1.2, kind, colour);
        }
    }

    /// Draws a dot, hollow if the value was not measured in this run.
    fn dot(&mut self, (x, y): (f64, f64), radius: f64, kind: Kind, colour: &str) {
        let fill = if matches!(kind, Kind::Quoted | Kind::Bound) { "#ffffff" } else { colour };
        self.push(format_args!(
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"{fill}\" stroke=\"{colour}\"/>"
        ));
    }

    fn text(&mut self, (x, y): (f64, f64), anchor: &str, colour: &str, text: &str) {
        let text = escaped(text);
        self.push(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{colour}\">{text}</text>"
        ));
    }

    fn name(&mut self, place: (f64, f64), kind: Kind, colour: &str, name: &str) {
        self.anchored_name(place, "start", kind, colour, name);
    }

    fn right_name(&mut self, place: (f64, f64), kind: Kind, colour: &str, name: &str) {
        self.anchored_name(place, "end", kind, colour, name);
    }

    fn anchored_name(&mut self, (x, y): (f64, f64), anchor: &str, kind: Kind, colour: &str, name: &str) {
        let weight = if kind == Kind::Highlighted { "700" } else { "400" };
        let name = escaped(name);
        self.push(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" font-weight=\"{weight}\" fill=\"{colour}\">{name}</text>"
        ));
    }

    fn upright_text(&mut self, (x, y): (f64, f64), text: &str) {
        let text = escaped(text);
        self.push(format_args!(
            "<text transform=\"translate({x:.1} {y:.1}) rotate(-90)\" text-anchor=\"middle\" fill=\"{INK}\">{text}</text>"
        ));
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_a_line_apart_and_in_the_order_of_their_lines() {
        let heights = push_apart(&[50.0, 52.0, 10.0, 51.0], (0.0, 60.0));
        let mut sorted = heights.clone();
        sorted.sort_by(f64::total_cmp);
        assert!(sorted.windows(2).all(|pair| pair[1] - pair[0] >= LINE_HEIGHT - 1e-9));
        assert!(sorted[3] <= 60.0);
        assert_eq!([sorted[0], sorted[1], sorted[2], sorted[3]], [heights[2], heights[0], heights[3], heights[1]]);
    }

    #[test]
    fn a_logarithm_spaces_equal_ratios_equally() {
        let scale = Scale { axis: Axis::Log, values: (1.0, 100.0), pixels: (0.0, 200.0) };
        assert!((scale.at(10.0) - 100.0).abs() < 1e-9);
        assert_eq!(scale.ticks(), [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]);
    }

    #[test]
    fn a_linear_scale_has_a_few_round_ticks_from_zero() {
        let scale = Scale { axis: Axis::Linear, values: (0.0, 0.37), pixels: (0.0, 1.0) };
        assert_eq!(
            scale.ticks().iter().map(|&tick| plain(tick)).collect::<Vec<_>>(),
            ["0", "0.05", "0.1", "0.15", "0.2", "0.25", "0.3", "0.35"]
        );
    }

    #[test]
    fn signs_of_markup_are_words_in_a_figure() {
        let dots = vec![Dot { name: "a < b & c".to_owned(), kind: Kind::Ours, value: 1.0, label: String::new() }];
        let figure = Dots { file: "f", title: "t".to_owned(), x: "s".to_owned(), dots }.draw();
        assert!(figure.svg.contains("a &lt; b &amp; c"));
    }
}
