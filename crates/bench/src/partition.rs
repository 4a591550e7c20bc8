//! Mondrian's time compared with the time to sort the same encoded rows.
//!
//! Both sorting and partitioning touch every cell about log n times. So the ratio of their times says, on any machine,
//! how much more a partition costs.

use std::error::Error;
use std::path::Path;

use kohort_core::encode::{Encoded, Rows};
use kohort_core::loss;
use kohort_core::partition::{Classes, KeepTree, Mondrian, Partitioner, Task};
use kohort_core::recode::{Recoding, Shown};
use kohort_core::requirement::Rules;
use kohort_model::spec::MondrianSpec;
use kohort_model::{Persons, Silent, Table};
use rayon::prelude::*;

use crate::census::{Census, QUASI};
use crate::measure::{Cost, forget_peak_memory, peak_memory, timed};
use crate::report::{Grid, Section, count, megabytes, number, ratio, seconds};

const SIZES: [usize; 4] = [100_000, 1_000_000, 2_500_000, 10_000_000];
const K: u32 = 10;
const N_RUNS: usize = 5;

const EXPLANATION: &str = "\
Mondrian (strict, widest, k = 10) on `census_like`: sex, age, race, zip, marital, edu; age and zip are numbers, the
others text without a hierarchy. *Sort* is rayon's `par_sort_unstable` on `Vec<[u32; 6]>` of the same codes with the
same threads. Runs alternate, and the figures are medians of 5. *Fold* finds equal rows, *partition* cuts the folded
rows. Memory is the peak of the process during both, including the table, but not the rows kept for the sort. Beyond 2.5
M rows the table repeats with noise (each age is moved by up to 2, each zip by up to 300), so that folding hardly
shrinks it.
";

struct Outcome {
    n_rows: usize,
    n_folded: usize,
    sort: Cost,
    fold: Cost,
    partition: Cost,
    n_classes: usize,
    lm: f64,
    memory: u64,
}

/// Runs the benchmark.
pub(crate) fn run(data: &Path) -> Result<Section, Box<dyn Error>> {
    let mut outcomes = Vec::new();
    for n_rows in SIZES {
        eprintln!("partition: {} rows", count(n_rows));
        outcomes.push(measure(&Census::read(data, n_rows)?.table())?);
    }
    let body = format!("{EXPLANATION}\n{}\n{}\n{}", times(&outcomes), ratios(&outcomes), growth(&outcomes));
    Ok(Section { name: "partition", body, figures: Vec::new() })
}

fn measure(table: &Table) -> Result<Outcome, Box<dyn Error>> {
    let positions: Vec<usize> = (0..QUASI.len()).collect();
    let encoded = Encoded::new(table, &positions)?;
    let all: Vec<u32> = (0..table.n_rows as u32).collect();
    let unsorted: Vec<[u32; QUASI.len()]> =
        all.par_iter().map(|&row| std::array::from_fn(|column| encoded.code(column, row))).collect();
    let rules = Rules::k_only(K);

    let (mut sorts, mut folds, mut partitions) = (Vec::new(), Vec::new(), Vec::new());
    let mut last: Option<(Rows, Classes)> = None;
    let mut most_memory = 0;
    for _ in 0..N_RUNS {
        drop(last.take());
        let mut sorted = unsorted.clone();
        sorts.push(timed(|| sorted.par_sort_unstable()).1);
        drop(sorted);

        forget_peak_memory();
        let (rows, fold) = timed(|| encoded.fold(&all));
        let task = Task::of_everybody(&rows, &encoded.domains, &rules, &Silent);
        let mondrian = Mondrian { spec: MondrianSpec::default(), keep_tree: KeepTree::No };
        let (classes, partition) = timed(|| mondrian.partition(&task));
        most_memory = most_memory.max(peak_memory() - size_of_val(unsorted.as_slice()) as u64);
        folds.push(fold);
        partitions.push(partition);
        last = Some((rows, classes?));
    }
    let (rows, classes) = last.expect("there was a run");
    let shown = Shown::new(&classes, &encoded, &rows);
    let recoding = Recoding { table, encoded: &encoded, rows: &rows, classes: &classes, shown: &shown };
    let n_persons = table.n_rows as u64;
    let everybody = Persons { n_in: n_persons, n_out: n_persons, suppressed: 0 };
    Ok(Outcome {
        n_rows: table.n_rows,
        n_folded: rows.len(),
        sort: Cost::median(&sorts),
        fold: Cost::median(&folds),
        partition: Cost::median(&partitions),
        n_classes: shown.len(),
        lm: loss::measure(&recoding, &rules, everybody).lm,
        memory: most_memory,
    })
}

fn times(outcomes: &[Outcome]) -> String {
    let mut grid = Grid::new(["rows", "distinct", "sort", "fold", "partition", "classes", "LM", "memory"]);
    for outcome in outcomes {
        grid.push([
            count(outcome.n_rows),
            count(outcome.n_folded),
            seconds(outcome.sort.wall),
            seconds(outcome.fold.wall),
            seconds(outcome.partition.wall),
            count(outcome.n_classes),
            format!("{:.4}", outcome.lm),
            megabytes(outcome.memory),
        ]);
    }
    grid.render()
}

fn ratios(outcomes: &[Outcome]) -> String {
    let mut grid = Grid::new([
        "over the sort",
        "partition, wall",
        "partition, CPU",
        "fold + partition, wall",
        "fold + partition, CPU",
        "to reach",
    ]);
    for outcome in outcomes {
        let both = outcome.fold.plus(outcome.partition);
        let is_largest = outcome.n_rows == SIZES[SIZES.len() - 1];
        grid.push([
            count(outcome.n_rows),
            ratio(outcome.partition.wall, outcome.sort.wall),
            ratio(outcome.partition.cpu, outcome.sort.cpu),
            ratio(both.wall, outcome.sort.wall),
            ratio(both.cpu, outcome.sort.cpu),
            if is_largest { "partition <= 3".to_owned() } else { String::new() },
        ]);
    }
    grid.render()
}

/// How much more time ten times the rows take.
fn growth(outcomes: &[Outcome]) -> String {
    let of_size = |n_rows| outcomes.iter().find(|outcome| outcome.n_rows == n_rows);
    let (Some(small), Some(large)) = (of_size(1_000_000), of_size(10_000_000)) else { return String::new() };
    let mut grid = Grid::new(["t(10 M) / t(1 M)", "sort", "partition", "partition over sort", "to reach"]);
    for (kind, of) in [("wall", (|cost| cost.wall) as fn(Cost) -> std::time::Duration), ("CPU", |cost| cost.cpu)] {
        let growth_of = |cost: fn(&Outcome) -> Cost| of(cost(large)).as_secs_f64() / of(cost(small)).as_secs_f64();
        let (sort, partition) = (growth_of(|outcome| outcome.sort), growth_of(|outcome| outcome.partition));
        grid.push([kind.to_owned(), number(sort), number(partition), number(partition / sort), "<= 1.25".to_owned()]);
    }
    grid.render()
}
