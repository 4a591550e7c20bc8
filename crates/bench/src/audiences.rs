//! One release for several audiences, compared with anonymizing all their columns at once: the experiments of the
//! butterfly paper.

pub(crate) mod real;
mod setting;

use std::error::Error;
use std::path::Path;

use kohort_core::audiences::{Method, Narrow, Shape, Start};
use kohort_model::Table;
use kohort_model::spec::Algorithm;

use crate::categories::{Categories, census};
use crate::plot::{Axis, Figure, Kind, Line, Lines};
use crate::report::{Grid, Section, count, number, seconds};
use setting::{Found, Knowledge, adult, measure, of_columns};

const KS: [u32; 5] = [20, 40, 60, 80, 100];
const N_ROWS: [usize; 5] = [100_000, 200_000, 300_000, 400_000, 500_000];
const N_ROWS_OF_KS: usize = 300_000;
const K_OF_ROWS: u32 = 60;
/// How many rows `auto` is measured on.
const N_ROWS_OF_AUTO: usize = 100_000;
/// The k that all audiences together ask for, beside a k of 100 each; 1 asks for nothing.
const COLLUSION_KS: [u32; 7] = [1, 10, 20, 40, 60, 80, 90];
const K_OF_COLLUSION: u32 = 100;

/// Columns of `census_like`; age and hh_size are numbers.
const COLUMNS: [&str; 11] =
    ["edu", "marital", "sex", "age", "occup_code", "state", "famincome", "work_class", "race", "hh_size", "hispanic"];

const COMMON: [&str; 3] = ["edu", "marital", "sex"];
const OWN: [[&str; 4]; 2] =
    [["age", "occup_code", "state", "hh_size"], ["famincome", "work_class", "race", "hispanic"]];
const KNOWLEDGE: Knowledge<'_> = knowledge(&COMMON, 3);
/// The paper's setting of its figures 13 and 14: one column in common.
const WITH_COLLUSION: Knowledge<'_> = Knowledge {
    common: &["edu"],
    own: [&["age", "occup_code", "state", "marital"], &["sex", "famincome", "work_class", "race"]],
};
const ADULT: Knowledge<'_> = Knowledge {
    common: &["education", "sex", "marital-status"],
    own: [&["age", "race", "native-country"], &["workclass", "occupation"]],
};

/// Three to five audiences with different overlaps.
const MORE_AUDIENCES: [(&str, &[&[&str]]); 4] = [
    (
        "3, two share most",
        &[&["edu", "marital", "sex", "age"], &["edu", "marital", "sex", "state"], &["edu", "race", "famincome"]],
    ),
    ("3, a chain", &[&["age", "edu"], &["edu", "sex", "state"], &["sex", "race", "famincome"]]),
    (
        "4, two pairs",
        &[
            &["edu", "marital", "age"],
            &["edu", "marital", "occup_code"],
            &["edu", "sex", "race", "state"],
            &["edu", "sex", "race", "famincome"],
        ],
    ),
    (
        "5, a star and a pair",
        &[
            &["sex", "age"],
            &["sex", "edu", "state"],
            &["sex", "race", "famincome"],
            &["sex", "race", "work_class"],
            &["sex", "marital", "hh_size"],
        ],
    ),
];

/// The method of the paper: bodies are sought among the classes in all columns.
const PAPER: Method = Method { start: Start::Union, shape: Shape::Super, narrow: Narrow::No };
const SUPER: Method = Method { start: Start::UnionAndBody, shape: Shape::Super, narrow: Narrow::No };
/// Without rows that are placed one by one.
const BODIES: Method = Method { start: Start::UnionAndBody, shape: Shape::Nested, narrow: Narrow::No };
const OURS: Method = Method { start: Start::UnionAndBody, shape: Shape::Nested, narrow: Narrow::Yes };

const EXPLANATION: &str = "\
Two audiences of `census_like`: both know edu, marital and sex, the first alone knows age, occup_code and state, and the
second alone knows famincome, work_class and race. As in the paper, categories are numbers (here by rank, 0 for a
missing one), and Mondrian makes all cuts. The *union* method anonymizes all columns at once. *As in the paper* makes
butterflies only of the classes of the union method; *ours* also makes them of bodies that cut common columns first, and
places rows one by one. The measure is the uncertainty penalty (definition 1) divided by that of the union method in the same run: below 1,
butterflies lose less. Every release passed the verifier, which counts each audience by itself.
";

const BY_AUTO: &str = "\
The same with `auto` instead of Mondrian, for the union method and for wings, and with categories that are shown or not,
as in a spec without hierarchies; 100,000 rows. Adult has its hierarchies: education, sex and marital-status are common,
the first audience alone knows age, race and native-country, and the second alone workclass and occupation.
";

const BY_ROWS: &str = "\
By the number of rows at k = 60. CPU seconds count everything from the encoded table to the release. The time of ours
includes the union method and separate releases, which are made to report what was saved. To reach: at most 5 times the
time of the union method, and a time that is nearly linear in the number of rows.
";

const BY_COLUMNS: &str = "\
By the number of own columns per audience, k = 60, 100,000 rows: the first audience knows the first ones of age,
occup_code, state and hh_size, the second those of famincome, work_class, race and hispanic; edu, marital and sex are
common. The second table is by the number of common columns, the first ones of edu, marital and sex, with 3 own columns
each.
";

const BY_COLLUSION: &str = "\
Two levels: k = 100 for each audience, and all audiences together must not tell fewer than k' persons apart; edu is
common, 100,000 rows. To reach: still a gain at k' = 60, and at least 60 % of the rows in real butterflies at k' = 90.
The second is not reached: cutting in halves leaves classes of up to twice k' persons, so near k most of them have k
persons already and need no butterfly.
";

const BY_AUDIENCES: &str = "\
More than two audiences, k = 20, 100,000 rows. *Super* butterflies are those of the paper: their body has every column
that any two audiences share. The bodies of *nested* butterflies have the columns that two groups of audiences share.
Nested ones never lose more. *Ours* also places rows one by one.
";

/// Runs the benchmark.
pub(crate) fn run(data: &Path) -> Result<Section, Box<dyn Error>> {
    let ranked = census(data, &COLUMNS, N_ROWS_OF_KS, Categories::Ranked)?;
    let small = census(data, &COLUMNS, N_ROWS_OF_AUTO, Categories::Ranked)?;
    let (by_k, figures_by_k) = by_k(&ranked)?;
    let by_auto = by_auto(data)?;
    let (by_rows, figures_by_rows) = by_rows(data)?;
    let (by_columns, figure_by_columns) = by_columns(&small)?;
    let (by_collusion, figures_by_collusion) = by_collusion(&small)?;
    let by_audiences = by_audiences(&small)?;
    let body = format!(
        "{EXPLANATION}\n{by_k}\n{BY_AUTO}\n{by_auto}\n{BY_ROWS}\n{by_rows}\n{BY_COLUMNS}\n{by_columns}\n{BY_COLLUSION}\n\
         {by_collusion}\n{BY_AUDIENCES}\n{by_audiences}"
    );
    let figures =
        figures_by_k.into_iter().chain(figures_by_rows).chain([figure_by_columns]).chain(figures_by_collusion);
    Ok(Section { name: "audiences", body, figures: figures.collect() })
}

const fn knowledge(common: &'static [&'static str], n_own: usize) -> Knowledge<'static> {
    Knowledge { common, own: [OWN[0].split_at(n_own).0, OWN[1].split_at(n_own).0] }
}

fn line(name: &str, kind: Kind, points: impl Iterator<Item = (f64, f64)>) -> Line {
    Line { name: name.to_owned(), kind, points: points.collect() }
}

fn penalty_per_row(found: &Found, table: &Table, of_union: bool) -> f64 {
    let losses = if of_union { found.saved.union } else { found.saved.release };
    losses.uncertainty_penalty() / table.n_rows as f64
}

fn by_k(table: &Table) -> Result<(String, Vec<Figure>), Box<dyn Error>> {
    let mut grid = Grid::new([
        "k",
        "union, penalty per row",
        "common",
        "own",
        "separate releases over union",
        "as in the paper over union",
        "ours over union",
        "common",
        "own",
        "in butterflies",
        "bound let through",
        "of these taken",
        "CPU over union",
    ]);
    let mut paper = Vec::new();
    let mut ours = Vec::new();
    for k in KS {
        eprintln!("audiences: k = {k}");
        let audiences = KNOWLEDGE.audiences(k, None);
        let of_paper = measure(table, &audiences, Algorithm::Mondrian, PAPER)?;
        let found = measure(table, &audiences, Algorithm::Mondrian, OURS)?;
        let (union, release) = (found.saved.union, found.saved.release);
        let share = |part: u64, of: u64| format!("{:.0} %", 100.0 * part as f64 / of.max(1) as f64);
        grid.push([
            k.to_string(),
            format!("{:.4}", penalty_per_row(&found, table, true)),
            format!("{:.4}", union.common / table.n_rows as f64),
            format!("{:.4}", union.own / table.n_rows as f64),
            number(found.saved.separate.uncertainty_penalty() / union.uncertainty_penalty()),
            number(of_paper.over_union()),
            number(found.over_union()),
            format!("{:.4}", release.common / table.n_rows as f64),
            format!("{:.4}", release.own / table.n_rows as f64),
            format!("{:.0} %", 100.0 * found.saved.in_butterflies),
            share(found.saved.let_through, found.saved.asked),
            share(found.saved.taken, found.saved.let_through),
            number(found.times_union()),
        ]);
        paper.push(of_paper);
        ours.push(found);
    }
    let ks = || KS.map(f64::from);
    let points = |found: &[Found], value: &dyn Fn(&Found) -> f64| {
        ks().into_iter().zip(found.iter().map(value)).collect::<Vec<_>>()
    };
    let loss = Lines {
        file: "audiences-k",
        title: format!("Loss for two audiences by k, {} rows", count(table.n_rows)),
        x: ("k", ks().to_vec()),
        y: ("uncertainty penalty per row, less is better", Axis::Linear),
        lines: vec![
            line("union", Kind::Ours, points(&ours, &|found| penalty_per_row(found, table, true)).into_iter()),
            line(
                "as in the paper",
                Kind::Ours,
                points(&paper, &|found| penalty_per_row(found, table, false)).into_iter(),
            ),
            line("ours", Kind::Highlighted, points(&ours, &|found| penalty_per_row(found, table, false)).into_iter()),
        ],
    }
    .draw();
    let time = Lines {
        file: "audiences-k-cpu",
        title: format!("CPU time for two audiences by k, {} rows", count(table.n_rows)),
        x: ("k", ks().to_vec()),
        y: ("seconds, less is better", Axis::Linear),
        lines: vec![
            line("union", Kind::Ours, points(&ours, &|found| found.union_cost.cpu.as_secs_f64()).into_iter()),
            line("as in the paper", Kind::Ours, points(&paper, &|found| found.cost.cpu.as_secs_f64()).into_iter()),
            line("ours", Kind::Highlighted, points(&ours, &|found| found.cost.cpu.as_secs_f64()).into_iter()),
        ],
    }
    .draw();
    Ok((
        format!("{} rows.\n\n{}\n{}\n{}", count(table.n_rows), grid.render(), loss.link(), time.link()),
        vec![loss, time],
    ))
}

fn by_auto(data: &Path) -> Result<String, Box<dyn Error>> {
    let mut grid =
        Grid::new(["ours over union", "rows", "k = 20", "k = 40", "k = 60", "k = 80", "k = 100", "CPU over union"]);
    let ranked = census(data, &COLUMNS, N_ROWS_OF_AUTO, Categories::Ranked)?;
    let flat = census(data, &COLUMNS, N_ROWS_OF_AUTO, Categories::Flat)?;
    let adult = adult(data)?;
    for (name, table, knowledge) in [
        ("census_like, ranked", &ranked, KNOWLEDGE),
        ("census_like, shown or not", &flat, KNOWLEDGE),
        ("Adult", &adult, ADULT),
    ] {
        for (by, algorithm) in [("Mondrian", Algorithm::Mondrian), ("auto", Algorithm::Auto)] {
            let mut over_union = Vec::new();
            let mut times: f64 = 0.0;
            for k in KS {
                eprintln!("audiences: {name}, {by}, k = {k}");
                let found = measure(table, &knowledge.audiences(k, None), algorithm, OURS)?;
                over_union.push(number(found.over_union()));
                times = times.max(found.times_union());
            }
            let [k20, k40, k60, k80, k100] = over_union.try_into().map_err(|_| "there is not one figure per k")?;
            let times = format!("up to {}", number(times));
            grid.push([format!("{name}, {by}"), count(table.n_rows), k20, k40, k60, k80, k100, times]);
        }
    }
    Ok(grid.render())
}

fn by_rows(data: &Path) -> Result<(String, Vec<Figure>), Box<dyn Error>> {
    let mut grid = Grid::new([
        "rows",
        "union, penalty per row",
        "ours over union",
        "union CPU",
        "ours CPU",
        "CPU over union",
        "CPU per 100,000 rows",
    ]);
    let mut losses = [Vec::new(), Vec::new()];
    let mut times = [Vec::new(), Vec::new()];
    for n_rows in N_ROWS {
        eprintln!("audiences: {n_rows} rows");
        let table = census(data, &COLUMNS, n_rows, Categories::Ranked)?;
        let found = measure(&table, &KNOWLEDGE.audiences(K_OF_ROWS, None), Algorithm::Mondrian, OURS)?;
        let per_row = [true, false].map(|of_union| penalty_per_row(&found, &table, of_union));
        grid.push([
            count(n_rows),
            format!("{:.4}", per_row[0]),
            number(found.over_union()),
            seconds(found.union_cost.cpu),
            seconds(found.cost.cpu),
            number(found.times_union()),
            seconds(found.cost.cpu / (n_rows / 100_000) as u32),
        ]);
        for (points, value) in losses.iter_mut().zip(per_row) {
            points.push((n_rows as f64, value));
        }
        for (points, cost) in times.iter_mut().zip([found.union_cost, found.cost]) {
            points.push((n_rows as f64, cost.cpu.as_secs_f64()));
        }
    }
    let figure = |file, title: &str, y, [union, ours]: [Vec<(f64, f64)>; 2]| {
        Lines {
            file,
            title: format!("{title} for two audiences by rows, k = {K_OF_ROWS}"),
            x: ("rows", N_ROWS.map(|n_rows| n_rows as f64).to_vec()),
            y: (y, Axis::Linear),
            lines: vec![
                line("union", Kind::Ours, union.into_iter()),
                line("ours", Kind::Highlighted, ours.into_iter()),
            ],
        }
        .draw()
    };
    let loss = figure("audiences-rows", "Loss", "uncertainty penalty per row, less is better", losses);
    let time = figure("audiences-rows-cpu", "CPU time", "seconds, less is better", times);
    Ok((format!("{}\n{}\n{}", grid.render(), loss.link(), time.link()), vec![loss, time]))
}

fn by_columns(table: &Table) -> Result<(String, Figure), Box<dyn Error>> {
    let mut grid = Grid::new(["own columns", "1", "2", "3", "4"]);
    let mut over_union = Vec::new();
    let mut points = [Vec::new(), Vec::new()];
    for n_own in 1..=4 {
        eprintln!("audiences: {n_own} own columns");
        let found = measure(table, &knowledge(&COMMON, n_own).audiences(K_OF_ROWS, None), Algorithm::Mondrian, OURS)?;
        over_union.push(number(found.over_union()));
        for (points, of_union) in points.iter_mut().zip([true, false]) {
            points.push((n_own as f64, penalty_per_row(&found, table, of_union)));
        }
    }
    let [one, two, three, four] = over_union.try_into().map_err(|_| "there is not one figure per number of columns")?;
    grid.push(["ours over union".to_owned(), one, two, three, four]);
    let mut common_grid = Grid::new(["common columns", "0", "1", "2", "3"]);
    let mut over_union = Vec::new();
    for n_common in 0..=3 {
        eprintln!("audiences: {n_common} common columns");
        let knows = knowledge(&COMMON[..n_common], 3);
        over_union
            .push(number(measure(table, &knows.audiences(K_OF_ROWS, None), Algorithm::Mondrian, OURS)?.over_union()));
    }
    let [none, one, two, three] = over_union.try_into().map_err(|_| "there is not one figure per number of columns")?;
    common_grid.push(["ours over union".to_owned(), none, one, two, three]);
    let [union, ours] = points;
    let figure = Lines {
        file: "audiences-columns",
        title: format!("Loss by own columns per audience, k = {K_OF_ROWS}"),
        x: ("own columns per audience", vec![1.0, 2.0, 3.0, 4.0]),
        y: ("uncertainty penalty per row, less is better", Axis::Linear),
        lines: vec![line("union", Kind::Ours, union.into_iter()), line("ours", Kind::Highlighted, ours.into_iter())],
    }
    .draw();
    Ok((format!("{}\n{}\n{}", grid.render(), common_grid.render(), figure.link()), figure))
}

fn by_collusion(table: &Table) -> Result<(String, Vec<Figure>), Box<dyn Error>> {
    let mut grid =
        Grid::new(["k'", "ours over union", "in butterflies", "as in the paper over union", "in butterflies"]);
    let mut losses = [Vec::new(), Vec::new(), Vec::new()];
    let mut shares = [Vec::new(), Vec::new()];
    for k in COLLUSION_KS {
        eprintln!("audiences: collusion, k' = {k}");
        let audiences = WITH_COLLUSION.audiences(K_OF_COLLUSION, (k > 1).then_some(k));
        let paper = measure(table, &audiences, Algorithm::Mondrian, PAPER)?;
        let ours = measure(table, &audiences, Algorithm::Mondrian, OURS)?;
        let percent = |found: &Found| format!("{:.0} %", 100.0 * found.saved.in_butterflies);
        let name = if k > 1 { k.to_string() } else { "none".to_owned() };
        grid.push([name, number(ours.over_union()), percent(&ours), number(paper.over_union()), percent(&paper)]);
        let at = f64::from(k);
        losses[0].push((at, penalty_per_row(&ours, table, true)));
        losses[1].push((at, penalty_per_row(&paper, table, false)));
        losses[2].push((at, penalty_per_row(&ours, table, false)));
        shares[0].push((at, 100.0 * paper.saved.in_butterflies));
        shares[1].push((at, 100.0 * ours.saved.in_butterflies));
    }
    let x = || ("k' (1: nothing asked of all audiences together)", COLLUSION_KS.map(f64::from).to_vec());
    let [union, of_paper, of_ours] = losses;
    let [share_of_paper, share_of_ours] = shares;
    let loss = Lines {
        file: "audiences-collusion",
        title: format!("Loss of two levels, k = {K_OF_COLLUSION}"),
        x: x(),
        y: ("uncertainty penalty per row, less is better", Axis::Linear),
        lines: vec![
            line("union", Kind::Ours, union.into_iter()),
            line("as in the paper", Kind::Ours, of_paper.into_iter()),
            line("ours", Kind::Highlighted, of_ours.into_iter()),
        ],
    }
    .draw();
    let share = Lines {
        file: "audiences-collusion-share",
        title: format!("Rows in real butterflies, two levels, k = {K_OF_COLLUSION}"),
        x: x(),
        y: ("% of rows", Axis::Linear),
        lines: vec![
            line("as in the paper", Kind::Ours, share_of_paper.into_iter()),
            line("ours", Kind::Highlighted, share_of_ours.into_iter()),
        ],
    }
    .draw();
    Ok((format!("{}\n{}\n{}", grid.render(), loss.link(), share.link()), vec![loss, share]))
}

fn by_audiences(table: &Table) -> Result<String, Box<dyn Error>> {
    let mut grid = Grid::new([
        "audiences",
        "super over union",
        "nested over union",
        "nested over super",
        "ours over union",
        "CPU over union",
    ]);
    for (name, columns) in MORE_AUDIENCES {
        eprintln!("audiences: {name}");
        let audiences = of_columns(columns, KS[0], None);
        let flat = measure(table, &audiences, Algorithm::Mondrian, SUPER)?;
        let nested = measure(table, &audiences, Algorithm::Mondrian, BODIES)?;
        let ours = measure(table, &audiences, Algorithm::Mondrian, OURS)?;
        grid.push([
            name.to_owned(),
            number(flat.over_union()),
            number(nested.over_union()),
            number(nested.over_union() / flat.over_union()),
            number(ours.over_union()),
            number(ours.times_union()),
        ]);
    }
    Ok(grid.render())
}
