//! Estimates, as a reader of a release can, how many private rows match conditions, and which sensitive values they have.
//!
//! Only released files are read. The manifest says which rule made the labels of a column, and so what each of them stands
//! for: a range of numbers or days, the values that a released hierarchy lists, or `*`, which may be anything that some cell
//! of the column shows. If the user gives a hierarchy, it is used instead. Beside what is expected if rows are spread evenly
//! stand bounds that hold however they are spread.

mod bounds;
mod groups;
mod numbers;
mod scale;
mod shown;

use std::collections::BTreeMap;
use std::path::Path;

pub use bounds::Bounds;
use bounds::Matching;
pub use groups::GroupBy;
use kohort_core::register::estimate::{AskedInterval, ShownCell};
use kohort_io::read_release_with;
use kohort_model::spec::HierarchySource;
use kohort_model::{Column, LabelsManifest, Manifest, Progress, Role, Table};
pub use numbers::{Estimated, NumberEstimate};
use scale::Scale;
use serde_json::{Map, Value, json};
use shown::ShownRows;

use crate::error::{Error, Report};
use crate::expression::{self, Condition, Test};

/// How wide a range of whole numbers or days is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Widths {
    /// The number of values: `[20,29]` is ten wide.
    #[default]
    Steps,
    /// The distance between the ends: `[20,29]` is nine wide.
    Continuous,
}

/// What the reader knows beyond the released files.
#[derive(Clone, Debug, Default)]
pub struct EstimateOptions {
    /// How wide ranges are.
    pub widths: Widths,
    /// Hierarchies by column. They tell which values labels stand for, where the release does not.
    pub hierarchies: BTreeMap<String, HierarchySource>,
}

/// An estimate.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// The number of private rows that match.
    pub count: f64,
    /// Between which numbers the count of released rows that match lies for certain.
    pub bounds: Bounds,
    /// The number of all private rows.
    pub of: f64,
    /// What is expected of the sensitive columns of rows that match.
    pub sensitive: Vec<SensitiveEstimate>,
}

impl Estimate {
    /// The figures as JSON: `count`, `least`, `most`, `of`, the values of each sensitive column, and `numbers` with mean and
    /// quartiles of each sensitive column of numbers.
    pub fn to_object(&self) -> Map<String, Value> {
        let value = |ValueEstimate { value, count, bounds }: &ValueEstimate| json!({ "value": value, "count": count, "least": bounds.least, "most": bounds.most });
        let figure = |Estimated { expected, bounds }: Estimated| json!({ "expected": expected, "least": bounds.least, "most": bounds.most });
        let (mut sensitive, mut numbers) = (Map::new(), Map::new());
        for column in &self.sensitive {
            sensitive.insert(column.column.clone(), column.values.iter().map(value).collect());
            if let Some(of_column) = &column.numbers {
                let [lower, median, upper] = of_column.quartiles.map(figure);
                let mean = figure(of_column.mean);
                let figures =
                    json!({ "mean": mean, "lower_quartile": lower, "median": median, "upper_quartile": upper });
                numbers.insert(column.column.clone(), figures);
            }
        }
        Map::from_iter([
            ("count".to_owned(), json!(self.count)),
            ("least".to_owned(), json!(self.bounds.least)),
            ("most".to_owned(), json!(self.bounds.most)),
            ("of".to_owned(), json!(self.of)),
            ("sensitive".to_owned(), Value::Object(sensitive)),
            ("numbers".to_owned(), Value::Object(numbers)),
        ])
    }
}

/// What is expected of a sensitive column.
#[derive(Clone, Debug, PartialEq)]
pub struct SensitiveEstimate {
    /// The name of the column.
    pub column: String,
    /// Its values, null last.
    pub values: Vec<ValueEstimate>,
    /// The mean and the quartiles, if all values are numbers and some row is expected to match.
    pub numbers: Option<NumberEstimate>,
}

/// How many matching rows have a value.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueEstimate {
    /// The value, `None` for null.
    pub value: Option<String>,
    /// The number that is expected.
    pub count: f64,
    /// Between which numbers it lies for certain.
    pub bounds: Bounds,
}

/// The largest number of combinations of listed values that are counted one by one.
const MOST_QUERIES: usize = 10_000;

/// Estimates how many rows of the private table match conditions, and which sensitive values they have, from the released
/// files alone.
///
/// Conditions are joined by `and`: `=`, `<`, `<=`, `>`, `>=`, `between .. and ..`, `in (.., ..)`. All rows match an empty text.
///
/// ```no_run
/// # fn main() -> Result<(), kohort::Error> {
/// let found = kohort::estimate("out", "age between 20 and 40 and zip = '88512'", &Default::default(), &kohort::Silent)?;
/// println!("{} of {}, at least {}", found.count, found.of, found.bounds.least);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Input`] if conditions can't be read or can't be asked of this release.
pub fn estimate(
    release: impl AsRef<Path>,
    conditions: &str,
    options: &EstimateOptions,
    progress: &dyn Progress,
) -> Result<Estimate, Error> {
    let conditions = parsed(conditions)?;
    let (manifest, tables) = read_release_with(release.as_ref(), &options.hierarchies, progress)?;
    estimate_from(&manifest, &tables, &conditions, options)
}

/// Estimates from the tables of a release.
pub(crate) fn estimate_from(
    manifest: &Manifest,
    tables: &[Table],
    conditions: &[Condition],
    options: &EstimateOptions,
) -> Result<Estimate, Error> {
    Asker::new(manifest, tables, options)?.estimate(conditions)
}

/// Like [`estimate()`], once for each group of rows, with the name of the group. Rows without a value in the column that makes the
/// groups are in none of them.
///
/// ```no_run
/// # fn main() -> Result<(), kohort::Error> {
/// let by = kohort::GroupBy::parse("age:10").expect("age, in ranges of ten years");
/// for (group, found) in kohort::estimate_by("out", "sex = 'f'", &by, &Default::default(), &kohort::Silent)? {
///     println!("{group}: {}", found.count);
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`estimate()`], and if the column can't be grouped in this way.
pub fn estimate_by(
    release: impl AsRef<Path>,
    conditions: &str,
    by: &GroupBy,
    options: &EstimateOptions,
    progress: &dyn Progress,
) -> Result<Vec<(String, Estimate)>, Error> {
    let conditions = parsed(conditions)?;
    let (manifest, tables) = read_release_with(release.as_ref(), &options.hierarchies, progress)?;
    let asker = Asker::new(&manifest, &tables, options)?;
    // Whether a column can be asked for is checked before its values are looked at.
    check_columns(asker.table, &tables, [by.column()], asker.is_joined())?;
    let column = asker
        .table
        .column(by.column())
        .ok_or_else(|| Error::input("the release has no such column", "name a quasi column"))?;
    let groups = by.groups(column, asker.labels(column)).map_err(|report| Error::Input(vec![report]))?;
    progress.begin("estimating", groups.len() as u64);
    let estimates = groups.into_iter().map(|group| {
        if progress.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let found = asker.estimate(&[&conditions[..], &group.conditions].concat())?;
        progress.advance(1);
        Ok((group.name, found))
    });
    estimates.collect()
}

/// For each test of a quasi column, the share of the values of each label that pass it. `None` if readers can't estimate the column.
pub(crate) fn shares_of_labels(
    manifest: &Manifest,
    tables: &[Table],
    column: &str,
    tests: &[Test],
) -> Option<Vec<Vec<f64>>> {
    let options = EstimateOptions::default();
    let asker = Asker::new(manifest, tables, &options).ok()?;
    let released = asker.table.column(column)?;
    let shares = tests.iter().map(|test| {
        let condition = Condition { column: column.to_owned(), test: test.clone() };
        let scale = Scale::new(released, asker.labels(released), &[&condition], options.widths).ok()?;
        let share = |cell: &ShownCell| scale.asked.iter().map(|asked| cell.covered_share(asked)).sum();
        Some(scale.cells.iter().map(share).collect())
    });
    shares.collect()
}

fn parsed(conditions: &str) -> Result<Vec<Condition>, Error> {
    if conditions.trim().is_empty() {
        return Ok(Vec::new());
    }
    expression::parse(conditions).map_err(|misread| {
        let message = format!("the conditions can't be read: {misread}");
        Error::input(message, "for example \"age between 20 and 40 and zip = '88512'\"")
    })
}

/// A release that is asked.
struct Asker<'a> {
    manifest: &'a Manifest,
    tables: &'a [Table],
    /// The table of persons, or of rows that count as persons.
    table: &'a Table,
    options: &'a EstimateOptions,
}

impl<'a> Asker<'a> {
    fn new(manifest: &'a Manifest, tables: &'a [Table], options: &'a EstimateOptions) -> Result<Asker<'a>, Error> {
        let hangs = |table: &Table| manifest.links.iter().any(|link| link.table == table.name);
        let asked = tables.iter().find(|table| !hangs(table));
        let table =
            asked.ok_or_else(|| Error::input("the release has no table of persons", "write the release again"))?;
        Ok(Asker { manifest, tables, table, options })
    }

    fn is_joined(&self) -> bool {
        self.manifest.register.is_some()
    }

    /// What the manifest says about the labels of a column, unless the user gave a hierarchy.
    fn labels(&self, column: &Column) -> Option<&'a LabelsManifest> {
        let told = self.manifest.tables.iter().find(|entry| entry.name == self.table.name);
        let told = told.and_then(|entry| entry.columns.get(&column.name)).and_then(|known| known.labels.as_ref());
        told.filter(|_| !self.options.hierarchies.contains_key(&column.name))
    }

    fn estimate(&self, conditions: &[Condition]) -> Result<Estimate, Error> {
        let names = conditions.iter().map(|condition| condition.column.as_str());
        check_columns(self.table, self.tables, names, self.is_joined())?;
        let quasi: Vec<&Column> = self.table.columns.iter().filter(|column| column.role == Role::Quasi).collect();
        let mut problems = Vec::new();
        let mut scales = Vec::with_capacity(quasi.len());
        for column in &quasi {
            let of_column: Vec<&Condition> =
                conditions.iter().filter(|condition| condition.column == column.name).collect();
            match Scale::new(column, self.labels(column), &of_column, self.options.widths) {
                Ok(scale) => scales.push(scale),
                Err(report) => problems.push(report),
            }
        }
        if !problems.is_empty() {
            return Err(Error::Input(problems));
        }
        let queries = queries(&scales)?;
        let shown = ShownRows::new(self.manifest, self.tables, self.table, &quasi, &scales);
        let matching = Matching::of_groups(&shown, &queries);
        let counted = shown.estimator(None);
        let count = queries.iter().map(|query| counted.count(query)).sum();
        let columns = shown.values.columns.iter().filter(|column| column.role == Role::Sensitive);
        let sensitive = columns.map(|column| sensitive(&shown, column, &queries, &matching)).collect();
        Ok(Estimate { count, bounds: Matching::sum(matching.into_iter()), of: shown.n_private, sensitive })
    }
}

/// What is expected of a sensitive column of the rows that match.
fn sensitive(
    shown: &ShownRows<'_>,
    column: &Column,
    queries: &[Vec<AskedInterval>],
    matching: &[Matching],
) -> SensitiveEstimate {
    let estimator = shown.estimator(Some(column));
    let n_texts = column.texts.len();
    let mut expected = vec![0.0; n_texts + 1];
    for query in queries {
        estimator.values(query).into_iter().zip(&mut expected).for_each(|(n, found)| *found += n);
    }
    let mut bounds = vec![Bounds::default(); n_texts + 1];
    for (group, matching) in shown.groups.iter().zip(matching) {
        for (bounds, n) in bounds.iter_mut().zip(group.counts(column)) {
            let part = matching.part(n, group.n_rows);
            (bounds.least, bounds.most) = (bounds.least + part.least as f64, bounds.most + part.most as f64);
        }
    }
    let is_held = |id: &usize| *id < n_texts || column.has_nulls();
    let value = |id: usize| ValueEstimate {
        value: (id < n_texts).then(|| column.texts.get(id as u32).to_owned()),
        count: expected[id],
        bounds: bounds[id],
    };
    let mut values: Vec<ValueEstimate> = (0..=n_texts).filter(is_held).map(value).collect();
    values.sort_by(|a, b| a.value.is_none().cmp(&b.value.is_none()).then_with(|| a.value.cmp(&b.value)));
    let numbers = NumberEstimate::of(column, &expected[..n_texts], &shown.groups, matching);
    SensitiveEstimate { column: column.name.clone(), values, numbers }
}

/// Refuses conditions on columns that can't be estimated.
fn check_columns<'c>(
    table: &Table,
    tables: &[Table],
    asked: impl IntoIterator<Item = &'c str>,
    is_joined: bool,
) -> Result<(), Error> {
    let quasi: Vec<&str> =
        table.columns.iter().filter(|column| column.role == Role::Quasi).map(|column| column.name.as_str()).collect();
    let can_ask = match quasi.as_slice() {
        [] => format!("table '{}' has no quasi column, so there is nothing to estimate", table.name),
        _ => format!("conditions can be on {}", quasi.join(", ")),
    };
    let mut problems = Vec::new();
    for name in asked {
        if quasi.contains(&name) {
            continue;
        }
        let elsewhere = tables.iter().find(|other| other.name != table.name && other.column(name).is_some());
        let message = match (table.column(name), elsewhere) {
            (Some(column), _) if column.role == Role::Sensitive => {
                format!("column '{name}' is sensitive, so it can't be in a condition: the estimate shows its values")
            }
            (Some(_), _) => {
                format!("column '{name}' is not quasi, so its cells are unchanged and can be counted in the file")
            }
            (None, Some(_)) if is_joined => {
                format!("column '{name}' is sensitive, so it can't be in a condition: the estimate shows its values")
            }
            (None, Some(other)) => {
                format!(
                    "column '{name}' is in table '{}', but only persons in '{}' are estimated",
                    other.name, table.name
                )
            }
            (None, None) => format!("the release has no column '{name}'"),
        };
        problems.push(Report::new(message).hint(can_ask.clone()));
    }
    if problems.is_empty() { Ok(()) } else { Err(Error::Input(problems)) }
}

/// One query for each combination of parts. The parts are disjoint, so the counts add up.
fn queries(scales: &[Scale]) -> Result<Vec<Vec<AskedInterval>>, Error> {
    let mut queries: Vec<Vec<AskedInterval>> = vec![Vec::new()];
    for scale in scales {
        if queries.len() * scale.asked.len() > MOST_QUERIES {
            let message = format!("more than {MOST_QUERIES} combinations of values are listed");
            return Err(Error::input(message, "ask for ranges with between"));
        }
        let longer = |query: &Vec<AskedInterval>| {
            let with = |asked: &AskedInterval| query.iter().chain([asked]).cloned().collect::<Vec<AskedInterval>>();
            scale.asked.iter().map(with).collect::<Vec<_>>()
        };
        queries = queries.iter().flat_map(longer).collect();
    }
    Ok(queries)
}
