//! [`Job::explore`]: what several releases would cost, on one reading of the tables.
//!
//! # Guarantee
//! Every figure is the verifier's count of a release that it accepted, or the loss of that release. Releases are dropped as
//! soon as they are counted, and none is written.
//! # The knee
//! In a series only k changes. Its highest risks and its losses are each scaled to 0 to 1. The knee is the run that lies
//! farthest below the straight line from the run of the highest risk to the run of the highest loss: before it, a little loss
//! saves much risk, and after it, much loss saves little risk. If no run lies below the line, there is no knee.
//! # Cost
//! One reading, and one partitioning and verification per run. As many runs as there are threads go on at the same time.

use std::borrow::Cow;

use kohort_io::{LoadedTable, LoadedTables, load, load_tables};
use kohort_model::spec::Algorithm;
use kohort_model::{Progress, Quiet, Role, Spec, Table};
use rayon::prelude::*;

use crate::Job;
use crate::error::{Error, Report};
use crate::job::Made;

/// The runs of an exploration: each k with each share, algorithm and dropped column.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExploreOptions {
    /// The values of k. There is no default.
    pub k: Vec<u32>,
    /// The largest shares of persons that may be left out; that of the spec if empty.
    pub max_suppressed: Vec<f64>,
    /// The algorithms; that of the spec if empty.
    pub algorithms: Vec<Algorithm>,
    /// Quasi columns, each of which is left out of the release in runs of its own, beside the runs with all columns.
    pub drop_columns: Vec<String>,
}

/// The runs of an exploration.
#[derive(Clone, Debug, PartialEq)]
pub struct Explored {
    /// Runs that differ in k alone.
    pub series: Vec<Series>,
    /// Blatant risks that some run found. A release with such a risk is refused, unless the risk is accepted.
    pub risks: Vec<Report>,
}

/// Runs that differ in k alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The largest share of persons that may be left out.
    pub max_suppressed: f64,
    /// The algorithm that was asked for.
    pub algorithm: Algorithm,
    /// The quasi column that is left out of the release.
    pub dropped: Option<String>,
    /// The runs, by ascending k.
    pub runs: Vec<Run>,
    /// The position of the run at the knee, if the series has one.
    pub knee: Option<usize>,
}

/// One run.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The k that was asked for.
    pub k: u32,
    /// What was reached.
    pub outcome: Outcome,
}

/// What a run reached.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// A verified release.
    Reached(Figures),
    /// The requirement can't be reached, for this reason.
    Unreachable(String),
}

/// The figures of a verified release.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// The partitioner that ran.
    pub algorithm: &'static str,
    /// Persons in the smallest class.
    pub k: u64,
    /// One over the persons of the smallest class.
    pub highest_risk: f64,
    /// Mean over persons of one over the size of their class.
    pub average_risk: f64,
    /// Classes.
    pub classes: u64,
    /// Persons of the private tables.
    pub persons: u64,
    /// Persons who are left out.
    pub suppressed: u64,
    /// Mean over all quasi cells of the share of the column that a cell covers. The cells of a dropped column count as lost
    /// wholly, so that runs with and without it can be compared.
    pub loss: f64,
    /// Remarks on work that differs from what the spec asks for.
    pub notes: Vec<String>,
}

impl Outcome {
    /// The figures, if the requirement was reached.
    pub fn figures(&self) -> Option<&Figures> {
        match self {
            Outcome::Reached(figures) => Some(figures),
            Outcome::Unreachable(_) => None,
        }
    }
}

/// The private tables of an exploration.
enum Loaded {
    One(Box<LoadedTable>),
    Many(LoadedTables),
}

impl Job {
    /// Makes, verifies and measures one release for each combination of the options, and writes none. A spec with registers is
    /// refused. Audiences with a k of their own keep it.
    ///
    /// # Errors
    /// If the options or the input do not fit the spec. A requirement that can't be reached is no error, but the outcome of
    /// a run.
    pub fn explore(&self, options: &ExploreOptions, progress: &dyn Progress) -> Result<Explored, Error> {
        self.refuse_combinations()?;
        self.refuse_options(options)?;
        let spec = &self.spec;
        let loaded = if spec.links_rows() {
            Loaded::Many(load_tables(self.sources(), spec, progress)?)
        } else {
            Loaded::One(Box::new(load(self.sources(), spec, &spec.tables[0], progress)?))
        };
        let plans = plans(spec, options);
        let mut steps: Vec<(usize, u32)> = Vec::new();
        for (series, plan) in plans.iter().enumerate() {
            steps.extend(plan.k.iter().map(|&k| (series, k)));
        }
        progress.begin("exploring", steps.len() as u64);
        let mut done = Vec::with_capacity(steps.len());
        // A thread that waits inside of a run may begin another one. So that no more releases than threads are in memory, the
        // next runs begin only after all of these.
        for together in steps.chunks(rayon::current_num_threads()) {
            let run = |&(series, k): &(usize, u32)| {
                let ran = plans[series].run(spec, k, &loaded, &Quiet(progress));
                progress.advance(1);
                ran
            };
            let ran: Vec<Result<(Run, Vec<Report>), Error>> = together.par_iter().map(run).collect();
            if progress.is_cancelled() {
                return Err(Error::Cancelled);
            }
            done.extend(ran);
        }
        let mut explored = Explored { series: Vec::with_capacity(plans.len()), risks: Vec::new() };
        let mut done = done.into_iter();
        for plan in plans {
            let mut runs = Vec::with_capacity(plan.k.len());
            for ran in done.by_ref().take(plan.k.len()) {
                let (run, risks) = ran?;
                runs.push(run);
                explored.risks.extend(risks);
            }
            let knee = knee(&runs);
            let Plan { max_suppressed, algorithm, dropped, .. } = plan;
            explored.series.push(Series { max_suppressed, algorithm, dropped, runs, knee });
        }
        explored.risks.sort_by(|one, other| one.message.cmp(&other.message));
        explored.risks.dedup();
        Ok(explored)
    }

    /// Reports every option that does not fit the spec.
    fn refuse_options(&self, options: &ExploreOptions) -> Result<(), Error> {
        let spec = &self.spec;
        let mut reports = Vec::new();
        let mut refuse = |message: String, hint: &str| reports.push(Report::new(message).hint(hint));
        if spec.tables.is_empty() {
            refuse("the spec names no table".to_owned(), "add a section [tables.NAME]");
        }
        if !spec.registers.is_empty() {
            let message = "exploring with registers is not available in this version";
            refuse(message.to_owned(), "explore the table without its registers, or release with some values of k");
        }
        if options.k.is_empty() {
            refuse("there is no k to explore".to_owned(), "name values of k, for example 2..100");
        }
        if options.k.contains(&0) {
            refuse("k = 0 can't be explored".to_owned(), "k is at least 1");
        }
        if options.max_suppressed.iter().any(|share| !(0.0..=1.0).contains(share)) {
            refuse(
                "a share of persons that may be left out is below 0 or above 1".to_owned(),
                "name shares from 0 to 1",
            );
        }
        let is_of_many = |algorithm: Algorithm| matches!(algorithm, Algorithm::Miracle | Algorithm::MiracleX);
        for &algorithm in &options.algorithms {
            if algorithm != Algorithm::Auto && is_of_many(algorithm) != spec.links_rows() {
                let kind = if spec.links_rows() { "several tables" } else { "one table" };
                let message = format!("algorithm '{}' is not available for {kind}", algorithm.word());
                refuse(message, "use auto, or an algorithm that docs/spec.md lists for such releases");
            }
        }
        if !options.drop_columns.is_empty() && (spec.links_rows() || !spec.audiences.is_empty()) {
            let message = "exploring without a column is not available for several tables or audiences in this version";
            refuse(message.to_owned(), "change the role of the column in the spec to drop, and explore again");
        } else {
            let quasi: Vec<&str> = quasi_columns(spec).collect();
            for name in options.drop_columns.iter().filter(|name| !quasi.contains(&name.as_str())) {
                let message = format!("column '{name}' can't be left out: it is no quasi column of the spec");
                refuse(message, "name quasi columns, because others change neither risk nor loss");
            }
            if !options.drop_columns.is_empty() && quasi.len() == 1 {
                let message = "the only quasi column can't be left out, because nothing would be anonymized";
                refuse(message.to_owned(), "explore the release with it");
            }
        }
        if reports.is_empty() { Ok(()) } else { Err(Error::Input(reports)) }
    }
}

/// The runs of a series to come.
struct Plan {
    max_suppressed: f64,
    algorithm: Algorithm,
    dropped: Option<String>,
    /// Ascending, without repetitions.
    k: Vec<u32>,
}

/// One plan for each combination of everything but k.
fn plans(spec: &Spec, options: &ExploreOptions) -> Vec<Plan> {
    let or_spec =
        |share: f64| if options.max_suppressed.is_empty() { vec![share] } else { options.max_suppressed.clone() };
    let mut shares = or_spec(spec.max_suppressed);
    shares.sort_by(f64::total_cmp);
    shares.dedup();
    let mut algorithms = if options.algorithms.is_empty() { vec![spec.algorithm] } else { options.algorithms.clone() };
    let mut dropped = vec![None];
    dropped.extend(options.drop_columns.iter().cloned().map(Some));
    let mut k = options.k.clone();
    k.sort_unstable();
    k.dedup();
    remove_repeated(&mut algorithms);
    remove_repeated(&mut dropped);
    let mut plans = Vec::new();
    for &algorithm in &algorithms {
        for dropped in &dropped {
            for &max_suppressed in &shares {
                plans.push(Plan { max_suppressed, algorithm, dropped: dropped.clone(), k: k.clone() });
            }
        }
    }
    plans
}

/// Keeps the first of equal items.
fn remove_repeated<T: PartialEq + Clone>(items: &mut Vec<T>) {
    let all = std::mem::take(items);
    for item in all {
        if !items.contains(&item) {
            items.push(item);
        }
    }
}

impl Plan {
    /// Makes, verifies and measures one release, and reports the blatant risks in it.
    fn run(&self, spec: &Spec, k: u32, loaded: &Loaded, progress: &dyn Progress) -> Result<(Run, Vec<Report>), Error> {
        let mut spec = Spec { k, algorithm: self.algorithm, max_suppressed: self.max_suppressed, ..spec.clone() };
        let made = match loaded {
            Loaded::Many(tables) => Made::of_many(&spec, &tables.tables, &tables.schema, progress),
            Loaded::One(original) => {
                let table = without_column(&mut spec, &original.table, self.dropped.as_deref());
                Made::of_one(&spec, &table, progress)
            }
        };
        let made = match made {
            Ok(made) => made,
            Err(Error::Unreachable(why)) => {
                return Ok((Run { k, outcome: Outcome::Unreachable(why.to_string()) }, Vec::new()));
            }
            Err(Error::TooFewForAudiences(reports)) => {
                let messages: Vec<String> = reports.into_iter().map(|report| report.message).collect();
                return Ok((Run { k, outcome: Outcome::Unreachable(messages.join("; ")) }, Vec::new()));
            }
            Err(error) => return Err(error),
        };
        let found = made.release.findings();
        let suppressed = found.suppressed.expect("the verifier compared the release with the private tables").persons;
        let n_quasi = quasi_columns(&spec).count() as f64;
        let figures = Figures {
            algorithm: made.algorithm,
            k: found.k,
            highest_risk: found.highest_risk,
            average_risk: found.average_risk,
            classes: found.classes,
            persons: found.persons + suppressed,
            suppressed,
            loss: match &self.dropped {
                None => made.loss.lm,
                Some(_) => (made.loss.lm * n_quasi + 1.0) / (n_quasi + 1.0),
            },
            notes: made.notes.iter().map(ToString::to_string).collect(),
        };
        let risks = made.risks.iter().map(|risk| Report::new(risk.to_string()).hint(risk.hint())).collect();
        Ok((Run { k, outcome: Outcome::Reached(figures) }, risks))
    }
}

/// The table, and the spec, without a quasi column.
fn without_column<'t>(spec: &mut Spec, table: &'t Table, dropped: Option<&str>) -> Cow<'t, Table> {
    let Some(name) = dropped else { return Cow::Borrowed(table) };
    let mut table = table.clone();
    for column in table.columns.iter_mut().filter(|column| column.name == name) {
        column.role = Role::Drop;
    }
    for column in spec.tables[0].columns.iter_mut().filter(|column| column.name == name) {
        column.role = Role::Drop;
    }
    Cow::Owned(table)
}

/// The names of the quasi columns of the first table.
fn quasi_columns(spec: &Spec) -> impl Iterator<Item = &str> {
    let columns = spec.tables.iter().take(1).flat_map(|table| &table.columns);
    columns.filter(|column| column.role == Role::Quasi).map(|column| column.name.as_str())
}

/// The run at the knee, see the head of this file.
fn knee(runs: &[Run]) -> Option<usize> {
    let points: Vec<(usize, f64, f64)> = runs
        .iter()
        .enumerate()
        .filter_map(|(position, run)| run.outcome.figures().map(|found| (position, found.highest_risk, found.loss)))
        .collect();
    let range = |values: &mut dyn Iterator<Item = f64>| {
        let (least, most) =
            values.fold((f64::MAX, f64::MIN), |(least, most), value| (least.min(value), most.max(value)));
        (least, most - least)
    };
    let (least_risk, risks) = range(&mut points.iter().map(|point| point.1));
    let (least_loss, losses) = range(&mut points.iter().map(|point| point.2));
    if !(risks > 0.0 && losses > 0.0) {
        return None;
    }
    // The line goes through (1, 0) and (0, 1).
    let below = |&(position, risk, loss): &(usize, f64, f64)| {
        (position, 1.0 - (risk - least_risk) / risks - (loss - least_loss) / losses)
    };
    let farthest = points.iter().map(below).max_by(|one, other| one.1.total_cmp(&other.1))?;
    // Rounding must not make a knee of a point on the line.
    (farthest.1 > 1e-9).then_some(farthest.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(points: &[Option<(f64, f64)>]) -> Vec<Run> {
        let run = |(position, point): (usize, &Option<(f64, f64)>)| Run {
            k: position as u32 + 2,
            outcome: match point {
                None => Outcome::Unreachable("too few persons".to_owned()),
                &Some((highest_risk, loss)) => Outcome::Reached(Figures {
                    algorithm: "mondrian",
                    k: 2,
                    highest_risk,
                    average_risk: highest_risk,
                    classes: 1,
                    persons: 10,
                    suppressed: 0,
                    loss,
                    notes: Vec::new(),
                }),
            },
        };
        points.iter().enumerate().map(run).collect()
    }

    #[test]
    fn the_knee_is_the_run_farthest_below_the_line_of_the_outer_runs() {
        let bent = [Some((0.5, 0.1)), Some((0.2, 0.15)), Some((0.1, 0.2)), Some((0.05, 0.6))];
        assert_eq!(knee(&runs(&bent)), Some(2));
        let with_gap = [None, Some((0.5, 0.1)), None, Some((0.1, 0.15)), Some((0.05, 0.6)), None];
        assert_eq!(knee(&runs(&with_gap)), Some(3));
    }

    #[test]
    fn a_straight_line_and_too_few_runs_have_no_knee() {
        assert_eq!(knee(&runs(&[Some((0.5, 0.1)), Some((0.3, 0.3)), Some((0.1, 0.5))])), None);
        assert_eq!(knee(&runs(&[Some((0.5, 0.1)), Some((0.45, 0.45)), Some((0.1, 0.5))])), None);
        assert_eq!(knee(&runs(&[Some((0.5, 0.1)), Some((0.1, 0.5))])), None);
        assert_eq!(knee(&runs(&[Some((0.5, 0.1)), Some((0.1, 0.1)), Some((0.05, 0.1))])), None);
        assert_eq!(knee(&runs(&[None, Some((0.5, 0.1))])), None);
        assert_eq!(knee(&[]), None);
    }
}
