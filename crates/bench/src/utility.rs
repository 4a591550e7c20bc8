//! How useful releases of Adult still are: range counts estimated from them, rows found in them, and how much larger
//! than necessary their classes are.

pub(crate) mod answers;
pub(crate) mod ranges;
mod scale;
#[cfg(test)]
mod tests;
pub(crate) mod workload;

use std::error::Error;
use std::path::Path;

use kohort_core::encode::{Encoded, Rows};
use kohort_core::loss;
use kohort_core::partition::{KeepTree, LeastLoss, Mondrian, Partitioner, Task, TopDown};
use kohort_core::recode::{Recoding, Shown};
use kohort_core::requirement::Rules;
use kohort_model::spec::MondrianSpec;
use kohort_model::{Persons, Role, Silent, Table};

use crate::adult::{self, Age, KS};
use crate::plot::{Axis, Figure, Kind, Line, Lines};
use crate::report::{Grid, Section};
use answers::{Utility, ask, sanity_bound};
use workload::{Workload, WorkloadSpec};

const NAMES: [&str; 3] = ["auto", "top-down", "Mondrian"];
const N_QUERIES: usize = 2_000;
/// How many columns a query ranges over. Figures show the results for the second of these numbers.
const N_COLUMNS: [usize; 3] = [2, 4, 8];
const DRAWN: usize = 1;
const SHARE: f64 = 0.1;

const EXPLANATION: &str = "\
Adult as in `adult`. A workload is 2,000 random range queries over some of the quasi columns. Each query spans a tenth
of the space of its columns: ages between two values, categories in a run of leaves. *Error* is the average relative
error of counts that are estimated from the release, with rows spread evenly in their boxes. An actual count below a
thousandth of the rows is replaced by that number where it divides. The median is in brackets.
";

const RETURNED: &str = "\
Rows that the 4-column workload returns, as means over queries. *Could be* returns every class whose box meets the
query, so it misses nobody, and its precision is below 1. *Matching* returns only classes that hold a matching row.
*Must be* returns only classes whose box lies within the query, so it returns nobody who does not match, and its recall
is below 1.
";

const DEVIATION: &str = "\
k-deviation per person: by how many persons the class of a person is larger than k, on average.
";

/// How useful a partitioner's release is at one k.
struct Outcome {
    name: &'static str,
    k: u32,
    /// One entry per number of columns.
    utilities: [Utility; N_COLUMNS.len()],
    deviation: f64,
}

/// Runs the benchmark.
pub(crate) fn run(data: &Path) -> Result<Section, Box<dyn Error>> {
    let original = adult::read(data, Age::Number)?;
    let table = &original.table;
    let encoded = Encoded::new(table, &table.with_role(Role::Quasi))?;
    let all: Vec<u32> = (0..table.n_rows as u32).collect();
    let rows = encoded.fold(&all);
    let workload = |n_columns: usize| {
        let spec = WorkloadSpec { n_queries: N_QUERIES, n_columns, share: SHARE, seed: 1 };
        Workload::random(&encoded.domains, &spec)
    };
    let workloads = [workload(N_COLUMNS[0])?, workload(N_COLUMNS[1])?, workload(N_COLUMNS[2])?];
    let mondrian = Mondrian { spec: MondrianSpec::default(), keep_tree: KeepTree::No };
    let partitioners: [&dyn Partitioner; NAMES.len()] = [&LeastLoss { repacks: 1 }, &TopDown, &mondrian];
    let mut outcomes = Vec::new();
    for k in KS {
        for (name, partitioner) in NAMES.into_iter().zip(partitioners) {
            eprintln!("utility: k = {k}, {name}");
            outcomes.push(measure(table, &encoded, &rows, &workloads, (name, partitioner), k)?);
        }
    }
    let figures = vec![error_figure(&outcomes), precision_figure(&outcomes)];
    let body = format!(
        "{EXPLANATION}\n{}\n{}\n{RETURNED}\n{}\n{}\n{DEVIATION}\n{}",
        errors(&outcomes),
        figures[0].link(),
        returned(&outcomes),
        figures[1].link(),
        deviations(&outcomes),
    );
    Ok(Section { name: "utility", body, figures })
}

fn measure(
    table: &Table,
    encoded: &Encoded<'_>,
    rows: &Rows,
    workloads: &[Workload; N_COLUMNS.len()],
    (name, partitioner): (&'static str, &dyn Partitioner),
    k: u32,
) -> Result<Outcome, Box<dyn Error>> {
    let rules = Rules::k_only(k);
    let task = Task::of_everybody(rows, &encoded.domains, &rules, &Silent);
    let classes = partitioner.partition(&task)?;
    let shown = Shown::new(&classes, encoded, rows);
    let recoding = Recoding { table, encoded, rows, classes: &classes, shown: &shown };
    let nobody = encoded.fold(&[]);
    let n_persons = table.n_rows as u64;
    let utility = |workload: &Workload| {
        let answers = ask(workload, &recoding, &nobody);
        Utility::of(&answers, sanity_bound(n_persons)).expect("a workload has queries")
    };
    let everybody = Persons { n_in: n_persons, n_out: n_persons, suppressed: 0 };
    let loss = loss::measure(&recoding, &rules, everybody);
    let utilities = std::array::from_fn(|position| utility(&workloads[position]));
    Ok(Outcome { name, k, utilities, deviation: loss.k_deviation / n_persons as f64 })
}

fn of_k(outcomes: &[Outcome], k: u32) -> [&Outcome; NAMES.len()] {
    NAMES.map(|name| {
        let found = outcomes.iter().find(|outcome| outcome.k == k && outcome.name == name);
        found.expect("every partitioner was measured at every k")
    })
}

fn errors(outcomes: &[Outcome]) -> String {
    let [auto, top_down, mondrian] = NAMES;
    let mut grid = Grid::new(["error", "columns per query", auto, top_down, mondrian]);
    for k in KS {
        for (position, n_columns) in N_COLUMNS.into_iter().enumerate() {
            let cells = of_k(outcomes, k).map(|outcome| {
                let Utility { mean_error, median_error, .. } = outcome.utilities[position];
                format!("{mean_error:.3} ({median_error:.3})")
            });
            let [auto, top_down, mondrian] = cells;
            grid.push([format!("k = {k}"), n_columns.to_string(), auto, top_down, mondrian]);
        }
    }
    grid.render()
}

fn returned(outcomes: &[Outcome]) -> String {
    let mut grid = Grid::new(["k", "", "could be: precision", "matching: precision", "must be: recall"]);
    for k in KS {
        for outcome in of_k(outcomes, k) {
            let Utility { could_be, matching, must_be, .. } = outcome.utilities[DRAWN];
            let cells = [could_be.precision, matching.precision, must_be.recall].map(|share| format!("{share:.3}"));
            let [could_be, matching, must_be] = cells;
            grid.push([format!("k = {k}"), outcome.name.to_owned(), could_be, matching, must_be]);
        }
    }
    grid.render()
}

fn deviations(outcomes: &[Outcome]) -> String {
    let mut grid = Grid::new(["k-deviation", "k = 2", "k = 5", "k = 10", "k = 50", "k = 100"]);
    for (position, name) in NAMES.into_iter().enumerate() {
        let [k2, k5, k10, k50, k100] = KS.map(|k| format!("{:.2}", of_k(outcomes, k)[position].deviation));
        grid.push([name.to_owned(), k2, k5, k10, k50, k100]);
    }
    grid.render()
}

fn lines(outcomes: &[Outcome], of: impl Fn(&Utility) -> f64) -> Vec<Line> {
    let line = |(position, name): (usize, &str)| Line {
        name: name.to_owned(),
        kind: if position == 0 { Kind::Highlighted } else { Kind::Ours },
        points: KS.map(|k| (f64::from(k), of(&of_k(outcomes, k)[position].utilities[DRAWN]))).to_vec(),
    };
    NAMES.into_iter().enumerate().map(line).collect()
}

fn error_figure(outcomes: &[Outcome]) -> Figure {
    Lines {
        file: "utility-error",
        title: "Range counts on Adult: average relative error, queries over 4 columns".to_owned(),
        x: ("k", KS.map(f64::from).to_vec()),
        y: ("average relative error, less is better", Axis::Log),
        lines: lines(outcomes, |utility| utility.mean_error),
    }
    .draw()
}

fn precision_figure(outcomes: &[Outcome]) -> Figure {
    Lines {
        file: "utility-precision",
        title: "Rows that could match on Adult: precision, queries over 4 columns".to_owned(),
        x: ("k", KS.map(f64::from).to_vec()),
        y: ("precision, more is better", Axis::Linear),
        lines: lines(outcomes, |utility| utility.could_be.precision),
    }
    .draw()
}
