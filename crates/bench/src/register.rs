//! A public register that makes the crowd larger: the experiments of the k-join-anonymity paper.

mod files;
mod setting;

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use kohort_core::register::AnonymizedWithRegister;
use kohort_model::spec::Algorithm;
use serde::{Deserialize, Serialize};

use crate::child;
use crate::measure::timed;
use crate::plot::{Axis, Figure, Kind, Line, Lines};
use crate::report::{Grid, Section, count, megabytes, number, seconds};
use crate::utility::workload::WorkloadSpec;
use setting::{Draw, Measured, Method, Population, measure};

/// The hidden argument that makes this program anonymize beside a large register.
pub(crate) const RELEASE: &str = "register-release";
/// The hidden argument for the same, but with table and register read from files in a folder.
pub(crate) const RELEASE_OF_FILES: &str = "register-release-of-files";

const N_MICRODATA: usize = 10_000;
const RATIOS: [usize; 7] = [1, 2, 5, 10, 20, 50, 100];
const RATIO: usize = 100;
const KS: [u32; 7] = [5, 10, 20, 50, 100, 200, 500];
const K: u32 = 50;
const DIMENSIONS: [usize; 5] = [2, 3, 4, 5, 6];
const DIMENSION: usize = 4;
/// The percentage of the space that a query spans.
const SHARES: [u32; 5] = [2, 5, 10, 20, 50];
const SHARE: u32 = 10;
const N_QUERIES: usize = 100;
/// How many draws of microdata and register are averaged.
const N_DRAWS: u64 = 5;
/// The number of draws for partitioners that take longer.
const N_DRAWS_OF_SLOW: u64 = 1;

const LARGE_REGISTER: usize = 10_000_000;
const MOST_TIME: Duration = Duration::from_secs(20);
const MOST_MEMORY: u64 = 2_000_000_000;

const BASES: [(&str, Algorithm, u64); 3] = [
    ("Mondrian", Algorithm::Mondrian, N_DRAWS),
    ("top-down", Algorithm::TopDown, N_DRAWS_OF_SLOW),
    ("auto", Algorithm::Auto, N_DRAWS_OF_SLOW),
];

const EXPLANATION: &str = "\
The microdata are 10,000 persons of `census_like`. The register has all of them and others, 100 times as many persons in
all. Quasi columns are age, famincome, hh_size and edu, then state and sex; k = 50. Categories are numbers by rank.
Uniform data have values from 0 to 999 in each column. *Plain* is the same partitioner without the register. With and
without the register, NCP is measured on the ranges of the microdata. Classes with a register are classes of everybody
in it. They are chosen without looking at who is in the microdata, and are released with all their rows. NCP, DM and the
average relative error (ARE) are those of the microdata rows alone. ARE is that of 100 queries over all columns that
span 10 % of the space; a count below 0.1 % of the microdata is replaced by that number where it divides. Figures of
Mondrian are means of five draws, those of other partitioners come from one draw. Every one of these releases passed the
verifier. What the paper found on its own data is in brackets.
";

const LARGE: &str = "\
10,000 persons and a register of 10,000,000 uniform rows with 4 columns (100, 1,000, 10 and 17 values), `direct` with
Mondrian, k = 50, each run in a process of its own. *In memory* makes the rows, encodes, partitions and recodes them.
*Parquet* reads the rows from a file and joins them by their key, and also verifies the release. To reach: 20 s and
2,000 MB.
";

/// Runs the benchmark.
pub(crate) fn run(data: &Path) -> Result<Section, Box<dyn Error>> {
    let census = Population::census(data, N_MICRODATA * RATIO)?;
    let uniform = Population::uniform(N_MICRODATA * RATIO, DIMENSIONS[DIMENSIONS.len() - 1]);
    let by_base = by_base(&census, &uniform)?;
    let (by_ratio, ratio_figures) = by_ratio(&census, &uniform)?;
    let (by_k, k_figure) = by_k(&census)?;
    let (by_dimension, dimension_figure) = by_dimension(&census)?;
    let (by_share, share_figure) = by_share(&census)?;
    let large = large()?;
    let body = format!("{EXPLANATION}\n{by_base}\n{by_ratio}\n{by_k}\n{by_dimension}\n{by_share}\n{LARGE}\n{large}");
    let figures = ratio_figures.into_iter().chain([k_figure, dimension_figure, share_figure]).collect();
    Ok(Section { name: "register", body, figures })
}

/// The results of three methods (plain, direct, refinement), averaged over draws.
fn averaged(
    population: &Population,
    at: Draw,
    n_draws: u64,
    algorithm: Algorithm,
) -> Result<[Measured; 3], Box<dyn Error>> {
    let workload =
        WorkloadSpec { n_queries: N_QUERIES, n_columns: at.n_columns, share: f64::from(SHARE) / 100.0, seed: 1 };
    averaged_by(population, at, n_draws, algorithm, workload)
}

fn averaged_by(
    population: &Population,
    at: Draw,
    n_draws: u64,
    algorithm: Algorithm,
    workload: WorkloadSpec,
) -> Result<[Measured; 3], Box<dyn Error>> {
    let mut sums = [Measured::default(); 3];
    for seed in 0..n_draws {
        let drawn = population.draw(Draw { seed, ..at });
        for (sum, method) in sums.iter_mut().zip(Method::ALL) {
            *sum = sum.plus(measure(&drawn, algorithm, method, at.k, workload)?);
        }
    }
    Ok(sums.map(|sum| sum.over(n_draws as f64)))
}

const DEFAULT: Draw = Draw { n_microdata: N_MICRODATA, ratio: RATIO, n_columns: DIMENSION, k: K, seed: 0 };

fn by_base(census: &Population, uniform: &Population) -> Result<String, Box<dyn Error>> {
    let mut grid = Grid::new([
        "plain over the better with register",
        "NCP",
        "to reach",
        "DM",
        "to reach",
        "ARE, refinement",
        "to reach",
        "NCP plain",
        "direct",
        "refinement",
        "CPU plain",
        "direct",
        "refinement",
    ]);
    let cases = [
        ("census_like", census, ["5.00", "5.00", "5.00"], ["3.04, 2.15", "2.10, 3.51", ""]),
        ("uniform", uniform, ["3.00", "3.00", "3.00"], ["", "", ""]),
    ];
    for (name, population, to_reach, of_paper) in cases {
        for (((base, algorithm, n_draws), to_reach), of_paper) in BASES.into_iter().zip(to_reach).zip(of_paper) {
            eprintln!("register: {name}, {base}");
            let [plain, direct, refined] = averaged(population, DEFAULT, n_draws, algorithm)?;
            let (better, cpu) = (direct.ncp.min(refined.ncp), direct.cpu + refined.cpu);
            eprintln!("register: NCP {:.4} plain, {better:.4} with it, {} of CPU", plain.ncp, seconds(cpu));
            let quoted = if of_paper.is_empty() { String::new() } else { format!(" ({of_paper})") };
            grid.push([
                format!("{name}, {base}"),
                number(plain.ncp / direct.ncp.min(refined.ncp)) + &quoted,
                format!(">= {to_reach}"),
                number(plain.dm / direct.dm.min(refined.dm)),
                if base == "Mondrian" { ">= 10.00".to_owned() } else { String::new() },
                number(plain.are / refined.are),
                if name == "census_like" { ">= 2.00".to_owned() } else { String::new() },
                format!("{:.4}", plain.ncp),
                format!("{:.4}", direct.ncp),
                format!("{:.4}", refined.ncp),
                seconds(plain.cpu),
                seconds(direct.cpu),
                seconds(refined.cpu),
            ]);
        }
    }
    Ok(grid.render())
}

/// A measure, such as NCP.
type Measure = fn(&Measured) -> f64;

fn lines(positions: &[f64], found: &[[Measured; 3]], value: Measure) -> Vec<Line> {
    let names = [("plain", Kind::Ours), ("direct", Kind::Ours), ("refinement", Kind::Highlighted)];
    let line = |(place, (name, kind)): (usize, (&str, Kind))| Line {
        name: name.to_owned(),
        kind,
        points: positions.iter().copied().zip(found.iter().map(|found| value(&found[place]))).collect(),
    };
    names.into_iter().enumerate().map(line).collect()
}

/// A table of NCP and DM, a row per position.
fn grid_of(name: &str, positions: &[String], found: &[[Measured; 3]]) -> String {
    let mut grid = Grid::new([
        name,
        "NCP plain",
        "direct",
        "refinement",
        "DM plain",
        "direct",
        "refinement",
        "ARE plain",
        "refinement",
        "CPU plain",
        "direct",
        "refinement",
    ]);
    for (position, [plain, direct, refined]) in positions.iter().zip(found) {
        let ncp = |found: &Measured| format!("{:.4}", found.ncp);
        let dm = |found: &Measured| count(found.dm as usize);
        grid.push([
            position.clone(),
            ncp(plain),
            ncp(direct),
            ncp(refined),
            dm(plain),
            dm(direct),
            dm(refined),
            format!("{:.3}", plain.are),
            format!("{:.3}", refined.are),
            seconds(plain.cpu),
            seconds(direct.cpu),
            seconds(refined.cpu),
        ]);
    }
    grid.render()
}

fn by_ratio(census: &Population, uniform: &Population) -> Result<(String, Vec<Figure>), Box<dyn Error>> {
    let positions = RATIOS.map(|ratio| ratio as f64);
    let names = RATIOS.map(|ratio| ratio.to_string());
    let mut text = String::new();
    let mut figures = Vec::new();
    let files = [
        ("census_like", census, ["register-ratio", "register-ratio-dm", "register-ratio-cpu"]),
        ("uniform data", uniform, ["register-uniform", "register-uniform-dm", "register-uniform-cpu"]),
    ];
    for (name, population, files) in files {
        let mut found = Vec::new();
        for ratio in RATIOS {
            eprintln!("register: {name}, ratio {ratio}");
            found.push(averaged(population, Draw { ratio, ..DEFAULT }, N_DRAWS, Algorithm::Mondrian)?);
        }
        text += &format!("{name}, Mondrian, by the size of the register in multiples of the microdata.\n\n");
        text += &grid_of("ratio", &names, &found);
        let measures: [(&str, Measure); 3] =
            [("NCP", |found| found.ncp), ("DM", |found| found.dm), ("CPU seconds", |found| found.cpu.as_secs_f64())];
        for (file, (name_of_measure, value)) in files.into_iter().zip(measures) {
            let figure = Lines {
                file,
                title: format!("{name_of_measure} by size of the register, {name}, Mondrian, k = {K}"),
                x: ("register over microdata", positions.to_vec()),
                y: ("less is better", Axis::Linear),
                lines: lines(&positions, &found, value),
            }
            .draw();
            text += &format!("\n{}", figure.link());
            figures.push(figure);
        }
        text.push('\n');
    }
    Ok((text, figures))
}

fn by_k(census: &Population) -> Result<(String, Figure), Box<dyn Error>> {
    let mut found = Vec::new();
    for k in KS {
        eprintln!("register: k = {k}");
        found.push(averaged(census, Draw { k, ..DEFAULT }, N_DRAWS, Algorithm::Mondrian)?);
    }
    let positions = KS.map(f64::from);
    let figure = Lines {
        file: "register-k",
        title: format!("NCP by k, census_like, Mondrian, register {RATIO} times the microdata"),
        x: ("k", positions.to_vec()),
        y: ("NCP, less is better", Axis::Linear),
        lines: lines(&positions, &found, |found| found.ncp),
    }
    .draw();
    let grid = grid_of("k", &KS.map(|k| k.to_string()), &found);
    Ok((format!("census_like, Mondrian, by k.\n\n{grid}\n{}", figure.link()), figure))
}

fn by_dimension(census: &Population) -> Result<(String, Figure), Box<dyn Error>> {
    let mut found = Vec::new();
    for n_columns in DIMENSIONS {
        eprintln!("register: {n_columns} columns");
        found.push(averaged(census, Draw { n_columns, ..DEFAULT }, N_DRAWS, Algorithm::Mondrian)?);
    }
    let positions = DIMENSIONS.map(|n_columns| n_columns as f64);
    let figure = Lines {
        file: "register-columns",
        title: format!("NCP by quasi columns, census_like, Mondrian, k = {K}"),
        x: ("quasi columns", positions.to_vec()),
        y: ("NCP, less is better", Axis::Linear),
        lines: lines(&positions, &found, |found| found.ncp),
    }
    .draw();
    let grid = grid_of("columns", &DIMENSIONS.map(|n_columns| n_columns.to_string()), &found);
    Ok((format!("census_like, Mondrian, by the number of quasi columns.\n\n{grid}\n{}", figure.link()), figure))
}

fn by_share(census: &Population) -> Result<(String, Figure), Box<dyn Error>> {
    let mut grid = Grid::new(["query spans", "ARE plain", "refinement", "plain over refinement"]);
    let mut found = Vec::new();
    for share in SHARES {
        eprintln!("register: queries of {share} %");
        let workload =
            WorkloadSpec { n_queries: N_QUERIES, n_columns: DIMENSION, share: f64::from(share) / 100.0, seed: 1 };
        let [plain, direct, refined] = averaged_by(census, DEFAULT, N_DRAWS, Algorithm::Mondrian, workload)?;
        grid.push([
            format!("{share} %"),
            format!("{:.3}", plain.are),
            format!("{:.3}", refined.are),
            number(plain.are / refined.are),
        ]);
        found.push([plain, direct, refined]);
    }
    let positions = SHARES.map(f64::from);
    let figure = Lines {
        file: "register-queries",
        title: format!("Error of range counts by their size, census_like, Mondrian, k = {K}"),
        x: ("% of the space", positions.to_vec()),
        y: ("average relative error, less is better", Axis::Linear),
        lines: lines(&positions, &found, |found| found.are),
    }
    .draw();
    Ok((format!("Range counts by how much of the space they span.\n\n{}\n{}", grid.render(), figure.link()), figure))
}

/// What a process reports about its release.
#[derive(Serialize, Deserialize)]
struct Account {
    anonymize: Duration,
    ncp: f64,
    rows_used: u64,
}

fn large() -> Result<String, Box<dyn Error>> {
    eprintln!("register: {LARGE_REGISTER} rows");
    let program = std::env::current_exe()?;
    let mut grid =
        Grid::new(["register", "rows", "wall", "CPU", "peak memory", "reached", "anonymize alone", "rows used", "NCP"]);
    let mut push = |source: &str, run: child::Run| -> Result<(), Box<dyn Error>> {
        let account: Account = serde_json::from_str(&run.stdout)?;
        let is_reached = run.cost.wall <= MOST_TIME && run.peak_memory <= MOST_MEMORY;
        grid.push([
            source.to_owned(),
            count(LARGE_REGISTER),
            seconds(run.cost.wall),
            seconds(run.cost.cpu),
            megabytes(run.peak_memory),
            if is_reached { "yes" } else { "no" }.to_owned(),
            seconds(account.anonymize),
            count(account.rows_used as usize),
            format!("{:.4}", account.ncp),
        ]);
        Ok(())
    };
    push("in memory", child::run(&program, &[RELEASE])?)?;
    let folder = tempfile::tempdir()?;
    files::write(folder.path(), N_MICRODATA, LARGE_REGISTER)?;
    push("Parquet", child::run(&program, &[RELEASE_OF_FILES, child::path(folder.path())?])?)?;
    Ok(grid.render())
}

/// Anonymizes beside a large register and prints a report.
pub(crate) fn release() -> Result<(), Box<dyn Error>> {
    let drawn = setting::large(N_MICRODATA, LARGE_REGISTER);
    let (done, cost) = timed(|| drawn.anonymize(Algorithm::Mondrian, Method::Direct, K));
    print(&done?, cost.wall)
}

/// Anonymizes beside a large register, both read from files in a folder, verifies, and prints a report.
pub(crate) fn release_of_files(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let [folder] = arguments else { return Err("the argument must be a folder".into()) };
    let files = files::read(Path::new(folder), K)?;
    let (done, cost) = timed(|| files.anonymize());
    let done = done?;
    print(&done, cost.wall)?;
    files.verify(done)
}

fn print(done: &AnonymizedWithRegister, anonymize: Duration) -> Result<(), Box<dyn Error>> {
    let account = Account { anonymize, ncp: done.anonymized.loss.ncp, rows_used: done.n_register_used };
    println!("{}", serde_json::to_string(&account)?);
    Ok(())
}
