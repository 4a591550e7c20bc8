//! [`accuracy`]: how well a column can be predicted by somebody who has a release instead of the private table.
//!
//! # Method
//! Two thirds of the persons train, the others test. The spec makes a release of the persons who train, because a release of all
//! would already show those who test. A naive Bayes classifier learns from the release, with the rows of a label spread evenly over
//! its values, and another one from the private rows of the same persons. Both predict the private rows of the persons who test.
//! # Limits
//! Naive Bayes takes columns for independent once the answer is known, so better classifiers exist. It is the same one before and
//! after, so the difference is what the release costs. Values are counted in bins of at least k persons. The figure is that of a
//! release of two thirds of the persons, which loses a little more than one of all.

use kohort_io::{LoadedTable, load, read_release_of};
use kohort_model::report::TargetReport;
use kohort_model::{Column, Progress, Quiet, Role, Table};

use super::bins::{Bin, bins};
use super::spread::Spread;
use crate::Job;
use crate::error::{Error, Report};

/// Predicts a column.
pub(super) fn accuracy(job: &Job, target: &str, progress: &dyn Progress) -> Result<TargetReport, Error> {
    let spec = job.spec();
    let [table] = spec.tables.as_slice() else {
        return Err(refused("several tables"));
    };
    if spec.links_rows() || !spec.registers.is_empty() {
        return Err(refused("references and registers"));
    }
    let original = load(job.sources(), spec, table, &Quiet(progress))?.released_as(job.form())?;
    let k = u64::from(spec.largest_k());
    let (target, features) = columns(&original.table, target, k)?;
    let (train, test) = parted(&original.table);
    let before = Classifier::of(&target.spread().of_rows(&train), &spreads(&features, &train));
    let tested = Tested { target: target.spread().of_rows(&test), features: spreads(&features, &test) };
    let mut report = TargetReport {
        column: target.name.clone(),
        from: features.iter().map(|feature| feature.name.clone()).collect(),
        answers: target.bins.len() as u64,
        trained: train.len() as u64,
        tested: test.len() as u64,
        most_frequent: tested.accuracy(|_| before.most_frequent()),
        before: tested.accuracy(|row| before.answer(row, &tested.features)),
        after: None,
        without: None,
    };
    progress.begin("releasing two thirds", 0);
    match released(job, original, &train, (&target, features.as_slice()), progress) {
        Ok(Some(after)) => report.after = Some(tested.accuracy(|row| after.answer(row, &tested.features))),
        Ok(None) => report.without = Some("readers can't estimate one of the columns".to_owned()),
        Err(Error::Unreachable(why)) => report.without = Some(format!("two thirds of the persons are too few: {why}")),
        Err(error) => return Err(error),
    }
    Ok(report)
}

fn refused(what: &str) -> Error {
    let message = format!("the accuracy of a prediction is not available for {what} in this version");
    Error::input(message, "ask for no target column")
}

/// A column with its bins.
struct Binned {
    name: String,
    column: Column,
    bins: Vec<Bin>,
}

impl Binned {
    fn new(column: &Column, table: &Table, k: u64) -> Binned {
        Binned { name: column.name.clone(), column: column.clone(), bins: bins(column, table, k) }
    }

    fn spread(&self) -> Spread {
        Spread::of_private(&self.bins, self.column.ids.len())
    }
}

fn spreads(features: &[Binned], rows: &[u32]) -> Vec<Spread> {
    features.iter().map(|feature| feature.spread().of_rows(rows)).collect()
}

/// The column that is predicted, and those from which it is.
fn columns(table: &Table, target: &str, k: u64) -> Result<(Binned, Vec<Binned>), Error> {
    let is_released = |column: &&Column| matches!(column.role, Role::Quasi | Role::Sensitive | Role::Plain);
    let Some(predicted) = table.columns.iter().filter(is_released).find(|column| column.name == target) else {
        let known: Vec<&str> = table.columns.iter().filter(is_released).map(|column| column.name.as_str()).collect();
        let message = format!("column '{target}' can't be predicted: the release has no such column");
        return Err(Error::input(message, format!("name one of {}", known.join(", "))));
    };
    let predicted = Binned::new(predicted, table, k);
    if predicted.bins.len() < 2 {
        let message =
            format!("column '{target}' can't be predicted: fewer than two answers are held by {k} persons each");
        return Err(Error::input(message, "name another column"));
    }
    let is_feature = |column: &&Column| matches!(column.role, Role::Quasi | Role::Plain) && column.name != target;
    let features = table.columns.iter().filter(is_feature).map(|column| Binned::new(column, table, k));
    Ok((predicted, features.filter(|feature| feature.bins.len() > 1).collect()))
}

/// The rows of two thirds of the persons, and those of the others. Whose rows are which depends on the order of the table alone.
fn parted(table: &Table) -> (Vec<u32>, Vec<u32>) {
    let person_of = |row: &u32| table.person_column().map_or(*row, |persons| persons.ids[*row as usize]);
    // Multiplying spreads neighbours, so that tables with a rhythm are parted evenly.
    let trains = |row: &u32| (u64::from(person_of(row)) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32 < 0xaaaa_aaab;
    (0..table.n_rows as u32).partition(trains)
}

/// A classifier that learned from a release of some of the rows. `None` if readers can't estimate a column.
fn released(
    job: &Job,
    original: LoadedTable,
    train: &[u32],
    (target, features): (&Binned, &[Binned]),
    progress: &dyn Progress,
) -> Result<Option<Classifier>, Error> {
    let part =
        |column: &Column| Column { ids: train.iter().map(|&row| column.ids[row as usize]).collect(), ..column.clone() };
    let columns = original.table.columns.iter().map(part).collect();
    let (name, person) = (original.table.name.clone(), original.table.person);
    let table = Table { name, columns, n_rows: train.len(), person };
    let originals = [table.clone()];
    // Nothing of this release is kept, so a blatant risk in it harms nobody.
    let release = job.clone().accept_risks().of_loaded(LoadedTable { table, ..original }, &Quiet(progress))?;
    let fault = |error: &std::io::Error| Error::Io(vec![Report::new(format!("a folder for temporary files: {error}"))]);
    let folder = tempfile::Builder::new().prefix("kohort-target-").tempdir().map_err(|error| fault(&error))?;
    let place = folder.path().join("release");
    release.write(&place)?;
    let (manifest, tables) = read_release_of(&originals, &place, &Quiet(progress))?;
    let Some(rows) = tables.first() else { return Ok(None) };
    let spread = |of: &Binned| {
        let column = rows.column(&of.name)?;
        Spread::of_released(column, &of.bins, &of.column, (&manifest, &tables))
    };
    let features: Option<Vec<Spread>> = features.iter().map(spread).collect();
    Ok(spread(target).zip(features).map(|(target, features)| Classifier::of(&target, &features)))
}

/// A naive Bayes classifier.
struct Classifier {
    /// For each answer, the logarithm of its share.
    shares: Vec<f64>,
    /// For each column, bin and answer, the logarithm of the share of the bin among the rows with the answer.
    given: Vec<Vec<Vec<f64>>>,
}

impl Classifier {
    /// Learns from the rows of a column of answers and of other columns. One row is added to each count, so that nothing is
    /// impossible.
    fn of(target: &Spread, features: &[Spread]) -> Classifier {
        let n_answers = target.n_bins();
        let mut counts = vec![0.0; n_answers];
        (0..target.n_rows()).flat_map(|row| target.row(row)).for_each(|&(answer, share)| counts[answer] += share);
        let total = counts.iter().sum::<f64>() + n_answers as f64;
        let of_feature = |feature: &Spread| {
            let joint = feature.joint(target);
            let of_answer = |answer: usize| joint.iter().map(|bin| bin[answer]).sum::<f64>() + joint.len() as f64;
            let of_answers: Vec<f64> = (0..n_answers).map(of_answer).collect();
            let bin = |bin: &Vec<f64>| bin.iter().zip(&of_answers).map(|(n, of)| ((n + 1.0) / of).ln()).collect();
            joint.iter().map(bin).collect()
        };
        Classifier {
            shares: counts.iter().map(|count| ((count + 1.0) / total).ln()).collect(),
            given: features.iter().map(of_feature).collect(),
        }
    }

    fn most_frequent(&self) -> usize {
        largest(&self.shares)
    }

    fn answer(&self, row: usize, features: &[Spread]) -> usize {
        let mut scores = self.shares.clone();
        for (given, feature) in self.given.iter().zip(features) {
            for &(bin, _) in feature.row(row) {
                scores.iter_mut().zip(&given[bin]).for_each(|(score, more)| *score += more);
            }
        }
        largest(&scores)
    }
}

/// The first position of the largest number.
fn largest(numbers: &[f64]) -> usize {
    (0..numbers.len()).fold(0, |best, next| if numbers[next] > numbers[best] { next } else { best })
}

/// Private rows whose answers are known.
struct Tested {
    target: Spread,
    features: Vec<Spread>,
}

impl Tested {
    /// The share of right answers among the rows whose value has a bin.
    fn accuracy(&self, answer: impl Fn(usize) -> usize) -> f64 {
        let rows = (0..self.target.n_rows()).filter_map(|row| Some((row, self.target.row(row).first()?.0)));
        let (n_right, n) =
            rows.fold((0u64, 0u64), |(n_right, n), (row, right)| (n_right + u64::from(answer(row) == right), n + 1));
        n_right as f64 / n.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(column: &Column) -> Spread {
        let rows_of =
            |id: usize| (0u32..).zip(&column.ids).filter(|(_, of)| **of as usize == id).map(|(row, _)| row).collect();
        let bin = |id| Bin { label: column.texts.get(id as u32).to_owned(), test: None, rows: rows_of(id) };
        Spread::of_private(&(0..column.texts.len()).map(bin).collect::<Vec<_>>(), column.ids.len())
    }

    #[test]
    fn naive_bayes_by_hand() {
        let answers = Column::from_cells("a", Role::Sensitive, ["x", "x", "x", "y", "y"].map(Some));
        let feature = Column::from_cells("f", Role::Quasi, ["p", "p", "q", "q", "q"].map(Some));
        let (answers, features) = (spread(&answers), [spread(&feature)]);
        let classifier = Classifier::of(&answers, &features);
        let is_near = |found: f64, wanted: f64| assert!((found - wanted.ln()).abs() < 1e-12, "{found} {wanted}");
        is_near(classifier.shares[0], 4.0 / 7.0);
        is_near(classifier.given[0][0][0], 3.0 / 5.0);
        is_near(classifier.given[0][1][1], 3.0 / 4.0);
        // p: x 4/7 3/5 over y 3/7 1/4. q: x 4/7 2/5 = 8/35 under y 3/7 3/4 = 9/28.
        let answers_of: Vec<usize> = (0..5).map(|row| classifier.answer(row, &features)).collect();
        assert_eq!(answers_of, [0, 0, 1, 1, 1]);
        let tested = Tested { target: answers, features: features.to_vec() };
        assert_eq!(tested.accuracy(|row| classifier.answer(row, &tested.features)), 0.8);
        assert_eq!(tested.accuracy(|_| classifier.most_frequent()), 0.6);
    }
}
