//! Releases of Adult by kohort and by Python packages, all judged by one script.
//!
//! `peers/loss.py` knows nothing of kohort. It reads the released rows and ARX's hierarchies, and must find the loss
//! and the smallest class that our manifest claims. pycanon, which only measures, counts the smallest class once more.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kohort_model::Manifest;
use serde::Deserialize;
use serde_json::Value;

use crate::adult::{self, ARX_GLOBAL, Age, BOUND, K_OF_TIMES, KS, QUASI, QUOTED, Quoted, Way};
use crate::child::{self, path};
use crate::measure::Cost;
use crate::plot::{Axis, Dot, Dots, Figure, Kind, Line, Lines};
use crate::python::Python;
use crate::report::{Grid, Section, count, number};

const N_RUNS: usize = 3;
/// The CPU time that a package gets per release.
const LIMIT: Duration = Duration::from_secs(60);

const WAYS: [Way; 7] = [
    adult::AUTO,
    adult::AUTO_BY_LEVELS,
    adult::TOP_DOWN,
    adult::MONDRIAN,
    adult::CLUSTER,
    adult::DATAFLY,
    adult::FULL_DOMAIN_BY_LEVELS,
];

/// Each peer's name, its package, and the percentage of rows that it may leave out.
const PEERS: [(&str, &str, &str); 3] =
    [("anonypy", "anonypy", "0"), ("anjana", "anjana", "0"), ("anjana, 5 % suppressed", "anjana", "5")];

const EXPLANATION: &str = "\
Adult as in `adult`. Every system writes its released rows as CSV, and one script (`crates/bench/peers/loss.py`, plain
Python without any code of kohort) measures all of them. LM of a cell is (leaves - 1) / (all leaves - 1), that of an age
(hi - lo) / 73, cut to the ages that occur; rows that are missing from the release count 1. The script must find what
our manifests claim, or the benchmark fails. anonypy knows no hierarchies and releases sets of categories. A set is
raised to its common ancestor, because that is what all others release. *Plain sets* is what the sets themselves lose,
(members - 1) / (all leaves - 1). This is another measure, because a set may be smaller than any node that contains it.
anjana knows no ranges, so it gets ARX's hierarchy of ages. pycanon only checks: it counts the smallest class at k = 10
once more, and must agree. A class smaller than k is in bold. Quoted rows were not run, and some are NCP. ARX at its
best was measured over all 100 leaves of its ages instead of the 73 years that occur, so it is compared in `adult` and
not here.
";

const TIMES: &str = "\
CPU seconds. Ours is the time of the whole command from its start to its end, with reading, verifying twice and writing,
median of 3. A package's is the time of its own call, once, on a DataFrame in memory, without starting, importing,
reading and writing. The last column is the time at k = 10 divided by that of auto. A package is stopped after 60 s of
CPU. Quoted times are from another day.
";

/// A released file; none if the package took too long.
struct Release {
    file: PathBuf,
    cpu: Duration,
}

/// What the script found in a file.
#[derive(Deserialize)]
struct Loss {
    lm: f64,
    lm_sets: f64,
    k: u64,
    rows: usize,
}

/// What a package says about itself.
#[derive(Deserialize)]
struct Account {
    python: String,
    versions: String,
    cpu: f64,
}

/// A system and its releases by k.
struct System {
    name: String,
    kind: Kind,
    found: [Option<(Loss, Duration)>; KS.len()],
}

impl System {
    fn points(&self, of: fn(&Loss) -> f64) -> Vec<(f64, f64)> {
        let known =
            KS.into_iter().zip(&self.found).filter_map(|(k, found)| Some((f64::from(k), of(&found.as_ref()?.0))));
        known.collect()
    }

    fn cells(&self, of: impl Fn(u32, &Loss, Duration) -> String) -> [String; KS.len()] {
        let cell = |position: usize| match &self.found[position] {
            Some((loss, cpu)) => of(KS[position], loss, *cpu),
            None => format!("over {} s", LIMIT.as_secs()),
        };
        std::array::from_fn(cell)
    }

    /// Whether the system released sets of values that no hierarchy has.
    fn has_sets(&self) -> bool {
        self.found.iter().flatten().any(|(loss, _)| loss.lm != loss.lm_sets)
    }

    fn at_k_of_times(&self) -> Option<&(Loss, Duration)> {
        let position = KS.iter().position(|&k| k == K_OF_TIMES).expect("it is one of them");
        self.found[position].as_ref()
    }
}

/// Runs the benchmark.
pub(crate) fn run(data: &Path) -> Result<Section, Box<dyn Error>> {
    let kohort = child::kohort()?;
    let python = Python::with("peers", &["anonypy", "anjana", "pycanon", "pyarrow"])?;
    let folder = tempfile::tempdir()?;
    let mut versions = Vec::new();
    let mut systems = Vec::new();
    for way in WAYS {
        eprintln!("peers: kohort, {}", way.name);
        let kind = if way.name == adult::AUTO.name { Kind::Highlighted } else { Kind::Ours };
        let mut system = System { name: format!("kohort, {}", way.name), kind, found: [const { None }; KS.len()] };
        for (k, found) in KS.into_iter().zip(&mut system.found) {
            let (release, manifest) = release(&kohort, data, folder.path(), way, k)?;
            let loss = measure(&python, data, &release.file)?;
            if loss.k != manifest.achieved.k || way.age == Age::Number && (loss.lm - manifest.loss.lm).abs() > 1e-9 {
                return Err(
                    format!("{} at k = {k}: peers/loss.py does not find what the manifest claims", way.name).into()
                );
            }
            agrees_with_pycanon(&python, k, &release.file, &loss)?;
            *found = Some((loss, release.cpu));
        }
        systems.push(system);
    }
    for (name, package, suppressed) in PEERS {
        let mut system = System { name: name.to_owned(), kind: Kind::Quoted, found: [const { None }; KS.len()] };
        for (k, found) in KS.into_iter().zip(&mut system.found) {
            eprintln!("peers: {name}, k = {k}");
            let file = folder.path().join("peer.csv");
            let adult = data.join("adult");
            let (k_text, limit) = (k.to_string(), LIMIT.as_secs().to_string());
            let arguments = [package, path(&adult)?, &k_text, suppressed, path(&file)?, &limit];
            let Some(account) = python.run::<Account>("anonymize.py", &arguments)? else { continue };
            let loss = measure(&python, data, &file)?;
            agrees_with_pycanon(&python, k, &file, &loss)?;
            *found = Some((loss, Duration::from_secs_f64(account.cpu)));
            let version = format!("{} on Python {}", account.versions, account.python);
            if !versions.contains(&version) {
                versions.push(version);
            }
        }
        systems.push(system);
    }
    let figures = vec![lm_figure(&systems), cpu_figure(&systems)];
    let body = format!(
        "{EXPLANATION}\n{}.\n\n{}\n{}\n{}\n{TIMES}\n{}\n{}",
        versions.join("; "),
        losses(&systems),
        figures[0].link(),
        smallest_classes(&systems),
        times(&systems),
        figures[1].link(),
    );
    Ok(Section { name: "peers", body, figures })
}

/// Releases Adult with the `kohort` command.
fn release(kohort: &Path, data: &Path, folder: &Path, way: Way, k: u32) -> Result<(Release, Manifest), Box<dyn Error>> {
    let spec = folder.join("release.toml");
    fs::write(&spec, adult::spec_text(data, way, k)?)?;
    let target = folder.join("release");
    let arguments = ["anonymize", path(&spec)?, "-o", path(&target)?, "--json", "--force"];
    let mut runs = Vec::new();
    for _ in 0..N_RUNS {
        runs.push(child::run(kohort, &arguments)?);
    }
    let manifest = serde_json::from_str(&runs[0].stdout)?;
    let costs: Vec<Cost> = runs.iter().map(|run| run.cost).collect();
    Ok((Release { file: target.join("adult.csv"), cpu: Cost::median(&costs).cpu }, manifest))
}

fn measure(python: &Python, data: &Path, file: &Path) -> Result<Loss, Box<dyn Error>> {
    let adult = data.join("adult");
    let losses: Option<Vec<Loss>> = python.run("loss.py", &[path(&adult)?, path(file)?])?;
    let loss = losses.and_then(|losses| losses.into_iter().next());
    loss.ok_or_else(|| "peers/loss.py measured nothing".into())
}

/// Fails if pycanon counts another smallest class. pycanon starts slowly, so only one k is counted.
fn agrees_with_pycanon(python: &Python, k: u32, file: &Path, loss: &Loss) -> Result<(), Box<dyn Error>> {
    if k != K_OF_TIMES {
        return Ok(());
    }
    let quasi = QUASI.join(",");
    let found: Option<Value> = python.run("pycanon_check.py", &[path(file)?, &quasi, "-", "k", "1", "60"])?;
    let counted = found.and_then(|found| found["checks"]["k"]["value"].as_f64());
    if counted == Some(loss.k as f64) {
        return Ok(());
    }
    Err(format!("{}: pycanon does not count the same smallest class", file.display()).into())
}

fn losses(systems: &[System]) -> String {
    let mut grid = Grid::new(["LM", "k = 2", "k = 5", "k = 10", "k = 50", "k = 100"]);
    let mut push = |name: String, [k2, k5, k10, k50, k100]: [String; KS.len()]| {
        grid.push([name, k2, k5, k10, k50, k100]);
    };
    for system in systems {
        push(system.name.clone(), system.cells(|_, loss, _| format!("{:.4}", loss.lm)));
        if system.has_sets() {
            push(format!("{}, plain sets", system.name), system.cells(|_, loss, _| format!("{:.4}", loss.lm_sets)));
        }
    }
    for quoted in QUOTED[1..].iter().chain([&BOUND]) {
        push(quoted.title(), quoted.cells());
    }
    let full_domain = &systems[WAYS.len() - 1];
    for (system, quoted) in [(full_domain, ARX_GLOBAL), (&systems[0], BOUND)] {
        let ratios = system.cells(|k, loss, _| number(loss.lm / quoted.at(k)));
        push(format!("({}) over ({})", system.name, quoted.name), ratios);
    }
    grid.render()
}

fn smallest_classes(systems: &[System]) -> String {
    let mut grid = Grid::new(["smallest class", "k = 2", "k = 5", "k = 10", "k = 50", "k = 100", "rows at k = 10"]);
    for system in systems {
        let size = |k: u32, loss: &Loss, _| {
            if loss.k < u64::from(k) { format!("**{}**", loss.k) } else { count(loss.k as usize) }
        };
        let [k2, k5, k10, k50, k100] = system.cells(size);
        let rows = system.at_k_of_times().map_or_else(String::new, |(loss, _)| count(loss.rows));
        grid.push([system.name.clone(), k2, k5, k10, k50, k100, rows]);
    }
    grid.render()
}

fn times(systems: &[System]) -> String {
    let mut grid = Grid::new(["CPU s", "k = 2", "k = 5", "k = 10", "k = 50", "k = 100", "over auto"]);
    let auto = systems[0].at_k_of_times().map_or(f64::NAN, |(_, cpu)| cpu.as_secs_f64());
    for system in systems {
        let [k2, k5, k10, k50, k100] = system.cells(|_, _, cpu| format!("{:.3}", cpu.as_secs_f64()));
        let over = system.at_k_of_times().map_or_else(String::new, |(_, cpu)| number(cpu.as_secs_f64() / auto));
        grid.push([system.name.clone(), k2, k5, k10, k50, k100, over]);
    }
    for quoted in QUOTED {
        let [k2, k5, k50, k100] = [const { String::new() }; 4];
        grid.push([format!("quoted: {}", quoted.name), k2, k5, quoted.cpu.to_owned(), k50, k100, String::new()]);
    }
    grid.render()
}

fn lm_figure(systems: &[System]) -> Figure {
    let mut lines = Vec::new();
    for system in systems {
        let points = system.points(|loss| loss.lm);
        lines.push(Line { name: system.name.clone(), kind: system.kind, points });
        if system.has_sets() {
            let points = system.points(|loss| loss.lm_sets);
            lines.push(Line { name: format!("{}, plain sets", system.name), kind: system.kind, points });
        }
    }
    lines.push(ARX_GLOBAL.line(Kind::Quoted));
    lines.push(BOUND.line(Kind::Bound));
    Lines {
        file: "peers-lm",
        title: "Loss on Adult, releases measured by one neutral script; dashed: others, ARX quoted".to_owned(),
        x: ("k", KS.map(f64::from).to_vec()),
        y: ("LM, less is better", Axis::Log),
        lines,
    }
    .draw()
}

fn cpu_figure(systems: &[System]) -> Figure {
    let run = systems.iter().filter_map(|system| {
        let value = system.at_k_of_times()?.1.as_secs_f64();
        Some(Dot { name: system.name.clone(), kind: system.kind, value, label: format!("{value:.2}") })
    });
    Dots {
        file: "peers-cpu",
        title: "CPU time on Adult at k = 10: our whole command, others' call alone".to_owned(),
        x: "seconds, less is better".to_owned(),
        dots: run.chain(QUOTED.iter().filter_map(Quoted::dot)).collect(),
    }
    .sorted()
    .draw()
}
