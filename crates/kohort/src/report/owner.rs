//! [`report_against`]: figures of a release that need its private tables, for their owner alone.
//!
//! # Guarantee
//! The release is verified against the private tables first. A bin of private values holds at least k persons. The figures are
//! never written into the release, because readers could subtract what it shows.
//! # Limits
//! What readers expect after the release is what `kohort estimate` expects, so columns that it can't estimate have no figure
//! after. Only columns of the table of persons have marginals. Pairs are counted in at most [`MOST_PAIRS`] combinations of bins.

use std::collections::HashSet;
use std::path::Path;

use kohort_io::{load, load_tables, read_release_of};
use kohort_model::report::{
    AboveBeforeAfter, AssociationReport, BinReport, MarginalReport, ModelledPersons, OwnerReport, PairCounts,
    PopulationBeforeAfter, PopulationReport, SumReport, SumsReport,
};
use kohort_model::{Column, Manifest, Progress, Requirement, Role, Spec, Table, Value, ValueType};
use kohort_verify::{PopulationModel, PopulationRisk, ReleasedLink, measure_tables};

use super::associations::{BeforeAfterSpread, associations};
use super::bins::{Bin, bins};
use super::costs::costs;
use super::figures::fewest_named;
use super::readers::above;
use super::spread::Spread;
use super::target::accuracy;
use crate::Job;
use crate::error::{Error, violation_reports};
use crate::estimate::{EstimateOptions, estimate_from};
use crate::expression::Condition;
use crate::job::without_orphans;
use crate::verification::{Verdict, measure_before, verify_against_with};

/// The class sizes that occur, each with the number of classes.
type Sizes = Vec<(u64, u64)>;

/// So many combinations of two bins are estimated.
const MOST_PAIRS: usize = 120;

/// Figures of a release that need the private tables of its job: how risky these were, how marginals, pairs of columns, sums and means
/// changed. They are for the owner of the tables alone.
///
/// # Errors
/// As [`crate::verify_against`], and [`Error::NotMet`] if the release does not verify.
///
/// ```no_run
/// # fn main() -> Result<(), kohort::Error> {
/// let job = kohort::Job::read("release.toml")?;
/// let report = kohort::report_against("out", &job, &kohort::Silent)?;
/// println!("{} persons were alone in a class", report.unique.0);
/// # Ok(())
/// # }
/// ```
pub fn report_against(release: impl AsRef<Path>, job: &Job, progress: &dyn Progress) -> Result<OwnerReport, Error> {
    report_against_with(release, job, &OwnerOptions::default(), progress)
}

/// Figures of an owner's report that are made only if the owner asks for them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnerOptions {
    /// The number of persons in the population that the private table is a sample of, for the risk in it.
    pub population: Option<u64>,
    /// A column: how well it can be predicted from such a release.
    pub target: Option<String>,
    /// What each column and each requirement costs.
    pub costs: Costs,
}

/// Whether it is measured what each column and each requirement costs, which takes a run for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Costs {
    /// It is not.
    #[default]
    Unmeasured,
    /// It is.
    Measured,
}

/// Like [`report_against`], with figures that only some owners want.
///
/// # Errors
/// As [`report_against`], and [`Error::Input`] if a figure can't be had of such a release.
pub fn report_against_with(
    release: impl AsRef<Path>,
    job: &Job,
    options: &OwnerOptions,
    progress: &dyn Progress,
) -> Result<OwnerReport, Error> {
    let release = release.as_ref();
    let verification = verify_against_with(release, job, progress)?;
    if verification.verdict == Verdict::NotMet {
        return Err(Error::NotMet(verification.wrong));
    }
    let spec = job.spec();
    let (originals, sizes) = originals(job, spec, progress)?;
    let (manifest, tables) = read_release_of(&originals, release, progress)?;
    let k = fewest_named(&manifest);
    let private = Private { originals: &originals, manifest: &manifest, tables: &tables, k };
    let (marginals, pairs, associations) = private.marginals();
    // Audiences count persons each for itself, so take those who know all columns, as before.
    let found = &verification.findings;
    let after = found.coalitions.first().map_or(&found.class_sizes, |together| &together.class_sizes);
    let pair = |(before, after)| AboveBeforeAfter { before, after };
    let population = options.population.map(|n_persons| {
        // The classes beside a register have persons of the population already.
        let after = manifest.register.is_none().then_some(after.as_slice());
        population(&sizes, after, n_persons)
    });
    Ok(OwnerReport {
        kohort: env!("CARGO_PKG_VERSION").to_owned(),
        warning: "for the owner of the private table alone: these figures come from it, and must not be given away with the release"
            .to_owned(),
        k,
        above: above(&sizes).into_iter().zip(above(after)).map(pair).collect(),
        unique: (alone(&sizes), alone(after)),
        marginals,
        pairs,
        associations,
        sums: private.sums(),
        population: population.transpose()?,
        target: options.target.as_ref().map(|column| accuracy(job, column, progress)).transpose()?,
        costs: match options.costs {
            Costs::Unmeasured => None,
            Costs::Measured => Some(costs(job, progress)?),
        },
    })
}

/// The risk in a population of so many persons.
fn population(
    before: &[(u64, u64)],
    after: Option<&[(u64, u64)]>,
    n_persons: u64,
) -> Result<PopulationBeforeAfter, Error> {
    let report = |sizes: &[(u64, u64)]| -> Result<(f64, PopulationReport), Error> {
        let risk = PopulationRisk::of(sizes, n_persons).ok_or_else(|| {
            let message =
                format!("a population of {n_persons} persons is smaller than the table that is a sample of it");
            Error::input(message, "give the number of all persons who could be in the table")
        })?;
        let modelled =
            |&(model, persons): &(PopulationModel, f64)| ModelledPersons { model: model.word().to_owned(), persons };
        let of_table = PopulationReport {
            alone_in_table: risk.alone_in_sample,
            alone: risk.alone.iter().map(modelled).collect(),
            highest_risk: risk.highest_risk,
            average_risk: risk.average_risk,
        };
        Ok((risk.share, of_table))
    };
    let (share, before) = report(before)?;
    let after = after.map(|sizes| report(sizes).map(|(_, of_release)| of_release)).transpose()?;
    Ok(PopulationBeforeAfter { persons: n_persons, share, before, after })
}

/// Persons who are alone in a class.
fn alone(sizes: &[(u64, u64)]) -> u64 {
    sizes.iter().find(|(size, _)| *size == 1).map_or(0, |(_, classes)| *classes)
}

/// The private tables, and the class sizes that a release with unchanged quasi columns would have.
fn originals(job: &Job, spec: &Spec, progress: &dyn Progress) -> Result<(Vec<Table>, Sizes), Error> {
    match spec.tables.as_slice() {
        [table] if !spec.links_rows() => {
            let original = load(job.sources(), spec, table, progress)?.table;
            // Nothing but k persons is asked here, and everybody is counted in all quasi columns.
            let before = measure_before(&original, &[Requirement::K(1)])?;
            Ok((vec![original], before.class_sizes))
        }
        _ => {
            let loaded = load_tables(job.sources(), spec, progress)?;
            let links = ReleasedLink::of(&loaded.schema, &loaded.tables);
            let before = measure_tables(&without_orphans(&loaded.tables, &loaded.schema), &links)
                .map_err(|violations| Error::NotMet(violation_reports(&violations.0)))?;
            Ok((loaded.tables, before.class_sizes))
        }
    }
}

/// The private tables beside their release.
struct Private<'a> {
    originals: &'a [Table],
    manifest: &'a Manifest,
    tables: &'a [Table],
    k: u64,
}

impl Private<'_> {
    /// The marginals of the quasi columns of the table of persons, how far pairs of bins are off, and how strongly pairs of columns
    /// go together.
    fn marginals(&self) -> (Vec<MarginalReport>, PairCounts, Vec<AssociationReport>) {
        let is_child = |table: &Table| self.manifest.links.iter().any(|link| link.table == table.name);
        let Some(released) = self.tables.iter().find(|table| !is_child(table)) else {
            return (Vec::new(), PairCounts::default(), Vec::new());
        };
        let Some(original) = self.originals.iter().find(|table| table.name == released.name) else {
            return (Vec::new(), PairCounts::default(), Vec::new());
        };
        let with_role = |is_role: fn(Role) -> bool| -> Vec<(&Column, &Column, Vec<Bin>)> {
            let columns = released.columns.iter().filter(|column| is_role(column.role));
            columns
                .filter_map(|shown| Some((original.column(&shown.name)?, shown)))
                .map(|(column, shown)| (column, shown, bins(column, original, self.k)))
                .collect()
        };
        let quasi = with_role(|role| role == Role::Quasi);
        let marginals = quasi.iter().map(|(column, _, bins)| self.marginal(column, bins)).collect();
        let associations = match self.manifest.register {
            // Rows of the register are no private rows.
            Some(_) => Vec::new(),
            None => {
                let copied = with_role(|role| matches!(role, Role::Sensitive | Role::Plain));
                let spread = |(column, shown, bins): &(&Column, &Column, Vec<Bin>)| BeforeAfterSpread {
                    name: column.name.clone(),
                    is_ordered: column.value_type.is_ordered(),
                    before: Spread::of_private(bins, original.n_rows),
                    after: Spread::of_released(shown, bins, column, (self.manifest, self.tables)),
                };
                associations(&quasi.iter().chain(&copied).map(spread).collect::<Vec<_>>())
            }
        };
        let binned: Vec<(&Column, Vec<Bin>)> = quasi.into_iter().map(|(column, _, bins)| (column, bins)).collect();
        (marginals, self.pairs(&binned), associations)
    }

    /// The rows that a reader expects in bins of different columns at once, and of how many; `None` if a column can't be
    /// estimated.
    fn expected(&self, bins: &[(&Column, &Bin)]) -> Option<(f64, f64)> {
        let condition =
            |(column, bin): &(&Column, &Bin)| Some(Condition { column: column.name.clone(), test: bin.test.clone()? });
        let conditions: Vec<Condition> = bins.iter().map(condition).collect::<Option<_>>()?;
        let found = estimate_from(self.manifest, self.tables, &conditions, &EstimateOptions::default());
        found.ok().map(|estimate| (estimate.count, estimate.of))
    }

    fn marginal(&self, column: &Column, bins: &[Bin]) -> MarginalReport {
        let expected: Vec<Option<(f64, f64)>> = bins.iter().map(|bin| self.expected(&[(column, bin)])).collect();
        let named: f64 = expected.iter().flatten().map(|(count, _)| count).sum();
        let of_all = expected.iter().flatten().map(|(_, of)| *of).next();
        let bin = |(bin, expected): (&Bin, Option<(f64, f64)>)| BinReport {
            label: bin.label.clone(),
            before: bin.rows.len() as u64,
            after: match bin.test {
                Some(_) => expected.map(|(count, _)| count),
                None => of_all.map(|of| (of - named).max(0.0)),
            },
        };
        let bins: Vec<BinReport> = bins.iter().zip(expected).map(bin).collect();
        let before: f64 = bins.iter().map(|bin| bin.before as f64).sum();
        let after: Option<f64> = bins.iter().map(|bin| bin.after).sum();
        let distance = after.filter(|after| *after > 0.0 && before > 0.0).map(|after_all| {
            let share = |bin: &BinReport| (bin.before as f64 / before - bin.after.unwrap_or(0.0) / after_all).abs();
            bins.iter().map(share).sum::<f64>() / 2.0
        });
        MarginalReport { column: column.name.clone(), bins, distance }
    }

    /// Counts of two bins of different columns at once.
    fn pairs(&self, binned: &[(&Column, Vec<Bin>)]) -> PairCounts {
        let mut pairs = Vec::new();
        for (position, (column, bins)) in binned.iter().enumerate() {
            for (other, other_bins) in &binned[position + 1..] {
                let named = |bin: &&Bin| bin.test.is_some();
                for bin in bins.iter().filter(named) {
                    pairs.extend(other_bins.iter().filter(named).map(|other_bin| (*column, bin, *other, other_bin)));
                }
            }
        }
        // An even choice over all pairs of columns, always the same.
        let step = pairs.len().div_ceil(MOST_PAIRS).max(1);
        let mut errors = Vec::new();
        for (column, bin, other, other_bin) in pairs.into_iter().step_by(step) {
            let rows: HashSet<u32> = bin.rows.iter().copied().collect();
            let n_both = other_bin.rows.iter().filter(|row| rows.contains(row)).count() as u64;
            if n_both < self.k {
                continue;
            }
            if let Some((expected, _)) = self.expected(&[(column, bin), (other, other_bin)]) {
                errors.push((expected - n_both as f64).abs() / n_both as f64);
            }
        }
        errors.sort_unstable_by(f64::total_cmp);
        PairCounts {
            n: errors.len() as u64,
            median_error: errors.get(errors.len() / 2).copied(),
            largest_error: errors.last().copied(),
        }
    }

    /// Sums and means of the numbers that are released as they are.
    fn sums(&self) -> Vec<SumsReport> {
        let mut sums = Vec::new();
        for table in self.tables {
            // The sensitive values beside a register are a table of their own, of the only private one.
            let original =
                self.originals.iter().find(|original| original.name == table.name).or(self.originals.first());
            for column in table.columns.iter().filter(|column| matches!(column.role, Role::Sensitive | Role::Plain)) {
                let is_number = matches!(column.value_type, ValueType::Integer | ValueType::Decimal | ValueType::Float);
                let private = original.and_then(|original| original.column(&column.name)).filter(|_| is_number);
                let Some(private) = private else { continue };
                sums.push(SumsReport {
                    table: table.name.clone(),
                    column: column.name.clone(),
                    before: sum(private, column),
                    after: sum(column, column),
                });
            }
        }
        sums
    }
}

/// The sum of the cells that are numbers. `typed` says how they are spelled.
fn sum(column: &Column, typed: &Column) -> SumReport {
    let number = |text: &str| match Value::parse(text, typed.value_type, &typed.notation)? {
        Value::Integer(value) => Some(value as f64),
        Value::Float(value) => Some(value),
        Value::Decimal(value) => Some(value.mantissa as f64 / 10f64.powi(value.scale as i32)),
        _ => None,
    };
    let numbers: Vec<Option<f64>> = column.texts.iter().map(number).collect();
    let cells = column.ids.iter().filter_map(|&id| *numbers.get(id as usize)?);
    let (n, sum) = cells.fold((0u64, 0.0), |(n, sum), value| (n + 1, sum + value));
    SumReport { n, sum, mean: (n > 0).then(|| sum / n as f64) }
}
