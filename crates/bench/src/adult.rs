//! Every partitioner on Adult, beside the losses of other systems.
//!
//! Other systems are not run here (see `peers`). Their figures were measured once, on the same rows with the same
//! hierarchies, and are quoted. Loss does not depend on the machine; times do, so they are only a hint. A quoted loss
//! is compared only with one of ours in the same measure and with the same hierarchy of ages.

mod sensitive;

use std::error::Error;
use std::path::Path;

use kohort_core::anonymize;
use kohort_io::{LoadedTable, load};
use kohort_model::{Loss, Silent, Spec};

use crate::child;
use crate::measure::{Cost, timed};
use crate::plot::{Axis, Dot, Dots, Figure, Kind, Line, Lines};
use crate::report::{Grid, Section, number};

/// The quasi columns.
pub(crate) const QUASI: [&str; 8] =
    ["sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation"];
/// The remaining column.
pub(crate) const SENSITIVE: &str = "salary-class";
/// The k that every system is measured at.
pub(crate) const KS: [u32; 5] = [2, 5, 10, 50, 100];
/// The k at which times are compared.
pub(crate) const K_OF_TIMES: u32 = 10;

const N_RUNS: usize = 3;

const EXPLANATION: &str = "\
LM on Adult (30,162 rows, 8 quasi columns, ARX's hierarchies, age as a number without a hierarchy), from 0 to 1, less is
better. A cell costs (leaves - 1) / (all leaves - 1), or its width divided by the column's range; a suppressed cell
costs 1. *Age by levels* means ARX's hierarchy of ages instead of numbers. It has 100 leaves in steps of 5, 10 and 20
years, so its LM can't be compared with that of ages as numbers. Nobody is suppressed unless the row says so. Quoted
figures were measured earlier, on the same table but not in this run. ARX has no free ranges of numbers, so it is
compared with ours by levels. It was tuned over 23 settings; the best one is `optimizeIterativeFast` with a share of 1/n
per pass and the loss metric with a generalization/suppression factor of 0. Figures marked NCP count an inner node as
leaves / all leaves, which is more: anjana's release at k = 10 has an NCP of 0.376 and an LM of 0.342, see `peers`.
Compare them with our rows that have the same mark. The bound gives each person, independently of the others, the
cheapest box that holds k persons: no release can lose less.
";

const TIMES: &str = "\
CPU seconds of encoding, partitioning and recoding, all threads together, median of 3; quoted times were measured on
another day at k = 10.
";

const TARGETS: &str = "\
To reach: no more loss than ARX has at its best, in a twentieth of its time, and no more loss than peers have with the
same methods, each in the measure of the quoted figure. ARX's global recoding is compared in `peers`.
";

/// A way to anonymize Adult.
#[derive(Clone, Copy)]
pub(crate) struct Way {
    pub(crate) name: &'static str,
    /// Lines of the spec beside k.
    settings: &'static str,
    /// A section of the spec, after the tables.
    section: &'static str,
    pub(crate) age: Age,
}

/// How ages are generalized.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Age {
    Number,
    Levels,
}

pub(crate) const AUTO: Way = way("auto", "algorithm = \"auto\"");
pub(crate) const AUTO_BY_LEVELS: Way =
    Way { name: "auto, age by levels", age: Age::Levels, ..way("", "algorithm = \"auto\"") };
pub(crate) const MONDRIAN: Way = way("Mondrian", "algorithm = \"mondrian\"");
const MONDRIAN_RELAXED: Way = Way {
    name: "Mondrian, relaxed",
    section: "[mondrian]\ncuts = \"relaxed\"\n",
    ..way("", "algorithm = \"mondrian\"")
};
pub(crate) const TOP_DOWN: Way = way("top-down", "algorithm = \"top-down\"");
pub(crate) const CLUSTER: Way = way("clustering", "algorithm = \"cluster\"");
pub(crate) const DATAFLY: Way = way("Datafly", "algorithm = \"datafly\"");
pub(crate) const FULL_DOMAIN: Way = way("full domain, 5 % suppressed", FULL_DOMAIN_SETTINGS);
pub(crate) const FULL_DOMAIN_BY_LEVELS: Way =
    Way { name: "full domain, 5 % suppressed, age by levels", age: Age::Levels, ..way("", FULL_DOMAIN_SETTINGS) };

/// Algorithms that peers have too. The quoted losses of these peers are NCP, so ours are measured in NCP as well.
const BY_NCP: [Way; 4] = [AUTO, TOP_DOWN, MONDRIAN, DATAFLY];

const FULL_DOMAIN_SETTINGS: &str = "algorithm = \"full-domain\"\nmax_suppressed = 0.05\nleftovers = \"suppress\"";

const fn way(name: &'static str, settings: &'static str) -> Way {
    Way { name, settings, section: "", age: Age::Number }
}

/// How a loss was measured.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Measure {
    /// (leaves - 1) / (all leaves - 1)
    Lm,
    /// leaves / all leaves, 0 for a value
    Ncp,
}

/// A system that is not run, and its figures.
pub(crate) struct Quoted {
    pub(crate) name: &'static str,
    measure: Measure,
    pub(crate) loss: [Option<&'static str>; KS.len()],
    /// CPU seconds at k = 10.
    pub(crate) cpu: &'static str,
}

/// ARX with its own hierarchy of ages. The hierarchy has 100 leaves, which are the denominator, as in
/// [`AUTO_BY_LEVELS`].
const ARX_AT_ITS_BEST: Quoted = Quoted {
    name: "ARX 3.9.2 at its best, age by levels",
    measure: Measure::Lm,
    loss: known(["0.0206", "0.0497", "0.0731", "0.1439", "0.1873"]),
    cpu: "48",
};
/// ARX with ages by levels and global recoding, measured like the releases in `peers`: over the 73 years that occur.
pub(crate) const ARX_GLOBAL: Quoted = Quoted {
    name: "ARX 3.9.2, global, 5 % suppressed",
    measure: Measure::Lm,
    loss: known(["0.184", "0.270", "0.340", "0.487", "0.551"]),
    cpu: "4.6",
};

/// Systems whose figures are quoted.
pub(crate) const QUOTED: [Quoted; 8] = [
    ARX_AT_ITS_BEST,
    ARX_GLOBAL,
    by_ncp("top-down greedy (Python)", [None, None, Some("0.137"), None, Some("0.462")], "51.7"),
    by_ncp("Mondrian with hierarchies (Python)", known(["0.044", "0.135", "0.215", "0.436", "0.521"]), "0.80"),
    by_ncp("Mondrian strict (Python)", known(["0.179", "0.279", "0.347", "0.502", "0.567"]), "0.34"),
    by_ncp("Mondrian in pandas", [None, Some("0.146"), Some("0.213"), Some("0.381"), Some("0.455")], "22.8"),
    by_ncp("Datafly (Python)", known(["0.676", "0.676", "0.801", "0.801", "0.801"]), "7.6"),
    by_ncp("anjana, 5 % suppressed", known(["0.229", "0.362", "0.376", "0.585", "0.593"]), "4.0"),
];

/// A lower bound on the loss of every release.
pub(crate) const BOUND: Quoted = Quoted {
    name: "bound",
    measure: Measure::Lm,
    loss: known(["0.0096", "0.0224", "0.0332", "0.0680", "0.0891"]),
    cpu: "",
};

const fn known([k2, k5, k10, k50, k100]: [&'static str; KS.len()]) -> [Option<&'static str>; KS.len()] {
    [Some(k2), Some(k5), Some(k10), Some(k50), Some(k100)]
}

const fn by_ncp(name: &'static str, loss: [Option<&'static str>; KS.len()], cpu: &'static str) -> Quoted {
    Quoted { name, measure: Measure::Ncp, loss, cpu }
}

impl Quoted {
    /// The system's name in a table of results.
    pub(crate) fn title(&self) -> String {
        match self.measure {
            Measure::Lm => format!("quoted: {}", self.name),
            Measure::Ncp => format!("quoted, NCP: {}", self.name),
        }
    }

    /// The losses in a table; empty for a k that was not measured.
    pub(crate) fn cells(&self) -> [String; KS.len()] {
        self.loss.map(|loss| loss.unwrap_or_default().to_owned())
    }

    /// The loss by k, for each k at which it is known.
    pub(crate) fn points(&self) -> Vec<(f64, f64)> {
        let known = KS.into_iter().zip(self.loss).filter_map(|(k, loss)| Some((f64::from(k), loss?.parse().ok()?)));
        known.collect()
    }

    /// The loss at a k at which it was measured.
    pub(crate) fn at(&self, k: u32) -> f64 {
        let known = self.points().into_iter().find(|&(of, _)| of == f64::from(k));
        known.expect("it was measured at this k").1
    }

    /// The CPU seconds as a dot of the figure, if they are known.
    pub(crate) fn dot(&self) -> Option<Dot> {
        let (name, label) = (format!("quoted: {}", self.name), self.cpu.to_owned());
        Some(Dot { name, kind: Kind::Quoted, value: self.cpu.parse().ok()?, label })
    }

    /// The loss by k as a line of the figure.
    pub(crate) fn line(&self, kind: Kind) -> Line {
        let name = match self.measure {
            Measure::Lm => self.name.to_owned(),
            Measure::Ncp => format!("{}, NCP", self.name),
        };
        Line { name, kind, points: self.points() }
    }
}

/// The losses and costs of a way, by k.
struct Measured {
    way: Way,
    losses: Vec<Loss>,
    costs: Vec<Cost>,
}

impl Measured {
    fn points(&self) -> Vec<(f64, f64)> {
        KS.map(|k| (f64::from(k), self.loss(Measure::Lm, k))).to_vec()
    }

    fn loss(&self, measure: Measure, k: u32) -> f64 {
        let loss = &self.losses[position(k)];
        match measure {
            Measure::Lm => loss.lm,
            Measure::Ncp => loss.ncp,
        }
    }

    fn cpu(&self, k: u32) -> f64 {
        self.costs[position(k)].cpu.as_secs_f64()
    }
}

fn position(k: u32) -> usize {
    KS.iter().position(|&of| of == k).expect("everything is measured at this k")
}

/// Runs the benchmark.
pub(crate) fn run(data: &Path) -> Result<Section, Box<dyn Error>> {
    let ways = [
        AUTO,
        AUTO_BY_LEVELS,
        TOP_DOWN,
        MONDRIAN,
        MONDRIAN_RELAXED,
        CLUSTER,
        DATAFLY,
        FULL_DOMAIN,
        FULL_DOMAIN_BY_LEVELS,
    ];
    let tables = (read(data, Age::Number)?, read(data, Age::Levels)?);
    let mut measured = Vec::new();
    for way in ways {
        eprintln!("adult: {}", way.name);
        let table = if way.age == Age::Number { &tables.0 } else { &tables.1 };
        measured.push(measure(data, way, table)?);
    }
    let figures = vec![lm_figure(&measured), cpu_figure(&measured)];
    let body = format!(
        "{EXPLANATION}\n{}\n{}\n{}\n{}\n{TIMES}\n{}\n{}\n{TARGETS}\n{}",
        losses(&measured),
        figures[0].link(),
        sensitive::EXPLANATION,
        sensitive::table(data)?,
        times(&measured),
        figures[1].link(),
        targets(&measured),
    );
    Ok(Section { name: "adult", body, figures })
}

/// Adult with its hierarchies.
pub(crate) fn read(data: &Path, age: Age) -> Result<LoadedTable, Box<dyn Error>> {
    let spec = Spec::parse(&spec_text(data, Way { age, ..AUTO }, KS[0])?)?;
    Ok(load(data, &spec, &spec.tables[0], &Silent)?)
}

/// The spec of a release of Adult.
pub(crate) fn spec_text(data: &Path, way: Way, k: u32) -> Result<String, Box<dyn Error>> {
    Ok(columns_text(data, &QUASI, way, k)? + &format!("{SENSITIVE} = \"sensitive\"\n{}", way.section))
}

/// The same, up to the quasi columns.
fn columns_text(data: &Path, quasi: &[&str], way: Way, k: u32) -> Result<String, Box<dyn Error>> {
    let folder = data.join("adult").canonicalize()?;
    let folder = child::path(&folder)?;
    let mut text = format!("k = {k}\n{}\n[tables.adult]\n", way.settings);
    text += &format!("file = \"{folder}/adult.csv\"\n[tables.adult.columns]\n");
    for &column in quasi {
        text += &match way.age {
            Age::Number if column == "age" => format!("{column} = \"quasi\"\n"),
            _ => format!("{column} = {{ role = \"quasi\", hierarchy = \"{folder}/adult_hierarchy_{column}.csv\" }}\n"),
        };
    }
    Ok(text)
}

fn measure(data: &Path, way: Way, original: &LoadedTable) -> Result<Measured, Box<dyn Error>> {
    let (mut losses, mut costs) = (Vec::new(), Vec::new());
    for k in KS {
        let spec = Spec::parse(&spec_text(data, way, k)?)?;
        let requirements = spec.requirements(&spec.tables[0]);
        let mut runs = Vec::new();
        for _ in 0..N_RUNS {
            runs.push(timed(|| anonymize(&original.table, &spec, &requirements, &Silent)));
        }
        costs.push(Cost::median(&runs.iter().map(|&(_, cost)| cost).collect::<Vec<_>>()));
        losses.push(runs.swap_remove(0).0?.loss);
    }
    Ok(Measured { way, losses, costs })
}

fn losses(measured: &[Measured]) -> String {
    let mut grid = Grid::new(["LM", "k = 2", "k = 5", "k = 10", "k = 50", "k = 100"]);
    let mut push = |name: String, [k2, k5, k10, k50, k100]: [String; KS.len()]| {
        grid.push([name, k2, k5, k10, k50, k100]);
    };
    for system in measured {
        push(system.way.name.to_owned(), KS.map(|k| format!("{:.4}", system.loss(Measure::Lm, k))));
    }
    for way in BY_NCP {
        let cells = KS.map(|k| format!("{:.4}", of(measured, way).loss(Measure::Ncp, k)));
        push(format!("NCP: {}", way.name), cells);
    }
    for quoted in QUOTED.iter().chain([&BOUND]) {
        push(quoted.title(), quoted.cells());
    }
    for (way, quoted) in [(AUTO_BY_LEVELS, ARX_AT_ITS_BEST), (AUTO, BOUND)] {
        let ratios = KS.map(|k| number(of(measured, way).loss(Measure::Lm, k) / quoted.at(k)));
        push(format!("({}) over ({})", way.name, quoted.name), ratios);
    }
    grid.render()
}

fn of(measured: &[Measured], way: Way) -> &Measured {
    measured.iter().find(|measured| measured.way.name == way.name).expect("every way was measured")
}

fn times(measured: &[Measured]) -> String {
    let mut grid = Grid::new(["CPU s", "k = 2", "k = 5", "k = 10", "k = 50", "k = 100"]);
    for system in measured {
        let [k2, k5, k10, k50, k100] = KS.map(|k| format!("{:.3}", system.cpu(k)));
        grid.push([system.way.name.to_owned(), k2, k5, k10, k50, k100]);
    }
    for quoted in QUOTED {
        let [none, also_none, nor_here, nor_there] = [const { String::new() }; 4];
        grid.push([format!("quoted: {}", quoted.name), none, also_none, quoted.cpu.to_owned(), nor_here, nor_there]);
    }
    grid.render()
}

fn targets(measured: &[Measured]) -> String {
    let mut grid = Grid::new(["", "k", "found", "to reach", "reached"]);
    let mut push = |name: String, k: u32, found: f64, most: f64| {
        let is_reached = if found <= most { "yes" } else { "no" };
        grid.push([name, k.to_string(), format!("{found:.4}"), format!("<= {most:.4}"), is_reached.to_owned()]);
    };
    let auto = of(measured, AUTO_BY_LEVELS);
    for k in KS {
        push(format!("{}, LM", auto.way.name), k, auto.loss(Measure::Lm, k), ARX_AT_ITS_BEST.at(k));
    }
    let of_arx: f64 = ARX_AT_ITS_BEST.cpu.parse().expect("it was measured");
    push(format!("{}, CPU s", auto.way.name), K_OF_TIMES, auto.cpu(K_OF_TIMES), of_arx / 20.0);
    for (way, most) in [(TOP_DOWN, 0.137), (MONDRIAN, 0.213)] {
        push(format!("{}, NCP", way.name), 10, of(measured, way).loss(Measure::Ncp, 10), most);
    }
    grid.render()
}

fn lm_figure(measured: &[Measured]) -> Figure {
    let is_drawn = |way: Way| way.name == AUTO_BY_LEVELS.name || way.age == Age::Number && way.section.is_empty();
    let ours = measured.iter().filter(|measured| is_drawn(measured.way));
    let line = |measured: &Measured| Line {
        name: measured.way.name.to_owned(),
        kind: if measured.way.name == AUTO.name { Kind::Highlighted } else { Kind::Ours },
        points: measured.points(),
    };
    let mut lines: Vec<Line> = ours.map(line).collect();
    lines.extend(
        QUOTED.iter().filter(|quoted| quoted.points().len() == KS.len()).map(|quoted| quoted.line(Kind::Quoted)),
    );
    lines.push(BOUND.line(Kind::Bound));
    Lines {
        file: "adult-lm",
        title: "Loss on Adult by k; dashed: quoted".to_owned(),
        x: ("k", KS.map(f64::from).to_vec()),
        y: ("LM, less is better", Axis::Log),
        lines,
    }
    .draw()
}

fn cpu_figure(measured: &[Measured]) -> Figure {
    let ours = measured.iter().map(|measured| {
        let kind = if measured.way.name == AUTO.name { Kind::Highlighted } else { Kind::Ours };
        let value = measured.cpu(K_OF_TIMES);
        Dot { name: measured.way.name.to_owned(), kind, value, label: format!("{value:.3}") }
    });
    let theirs = QUOTED.iter().filter_map(Quoted::dot);
    Dots {
        file: "adult-cpu",
        title: "CPU time on Adult at k = 10".to_owned(),
        x: "seconds, less is better".to_owned(),
        dots: ours.chain(theirs).collect(),
    }
    .sorted()
    .draw()
}
