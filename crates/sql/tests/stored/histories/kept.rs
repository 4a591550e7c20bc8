//! What a materialized view keeps in its hidden tables.

use std::collections::BTreeMap;

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use kohort_sql::Engine;
use kohort_store::{ScanRequest, State};

use super::Asked;
use super::steps::{Choice, Model};

/// Where a row is, as the hidden table has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Waiting,
    Crowd,
    Alone,
    Hidden,
}

#[derive(Clone, Debug)]
pub(crate) struct KeptRow {
    /// The number of the row in the table.
    pub(crate) key: i64,
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) class: String,
    pub(crate) atom: String,
    pub(crate) leaves: bool,
    pub(crate) k: u32,
    pub(crate) level: u8,
    /// The person's choice as cells of the table of choices; empty if there is none.
    chosen: Vec<String>,
    /// Age, zip and disease, and ward if the view shows it.
    pub(crate) cells: Vec<String>,
}

impl KeptRow {
    pub(crate) fn is_shown(&self) -> bool {
        matches!(self.place, Place::Crowd | Place::Alone)
    }

    pub(crate) fn disease(&self) -> &str {
        &self.cells[2]
    }

    /// Whether the person hides age, disease and ward on a day.
    fn hides(&self, today: u32) -> [bool; 3] {
        let [_, _, age, disease, until] = self.chosen.as_slice() else { return [false; 3] };
        let last: u32 = until.strip_prefix("2026-01-").unwrap().parse().unwrap();
        [age == "no", disease == "no", last < today + 1]
    }

    /// The disease as readers see it.
    pub(crate) fn raised(&self) -> String {
        let path: &[&str] = match self.disease() {
            "flu" => &["flu", "virus", "any"],
            "cold" => &["cold", "virus", "any"],
            "gout" => &["gout", "any"],
            _ => &["NULL"],
        };
        path[usize::from(self.level).min(path.len() - 1)].to_owned()
    }
}

pub(crate) struct Kept {
    pub(crate) rows: Vec<KeptRow>,
    labels: BTreeMap<String, Vec<String>>,
}

fn table(state: &State, view: &str, name: &str) -> Vec<Vec<String>> {
    let request = ScanRequest { with_rowid: true, ..ScanRequest::default() };
    let mut found = Vec::new();
    for batch in state.scan(&format!("view {view}\u{1f}{name}"), &request).unwrap() {
        found.extend(texts(&batch.unwrap()));
    }
    found
}

fn texts(batch: &RecordBatch) -> Vec<Vec<String>> {
    let columns: Vec<_> = batch.columns().iter().map(|column| cast(column, &DataType::Utf8).unwrap()).collect();
    let cell = |column: &std::sync::Arc<dyn Array>, row: usize| match column.is_null(row) {
        true => "NULL".to_owned(),
        false => column.as_string::<i32>().value(row).to_owned(),
    };
    (0..batch.num_rows()).map(|row| columns.iter().map(|column| cell(column, row)).collect()).collect()
}

impl Kept {
    pub(crate) fn read(engine: &Engine, view: &str, asked: Asked) -> Kept {
        let state = engine.store().unwrap().read().unwrap();
        // Number, choice, restricted, name, then the other columns of the table of choices.
        let choices: BTreeMap<String, Vec<String>> = match asked.has_choices {
            false => BTreeMap::new(),
            true => table(&state, view, "choices").into_iter().map(|row| (row[1].clone(), row[4..].to_vec())).collect(),
        };
        let row = |row: Vec<String>| KeptRow {
            key: row[0].parse().unwrap(),
            name: row[1].clone(),
            place: match row[2].as_str() {
                "0" => Place::Waiting,
                "1" => Place::Crowd,
                "2" => Place::Alone,
                "3" => Place::Hidden,
                other => panic!("no row is at {other}"),
            },
            class: row[3].clone(),
            atom: row[4].clone(),
            leaves: row[5] == "true",
            k: row[7].parse().unwrap(),
            level: choices.get(&row[10]).map_or(0, |chosen| chosen[1].parse().unwrap()),
            chosen: choices.get(&row[10]).cloned().unwrap_or_default(),
            cells: row[12..].to_vec(),
        };
        let rows = table(&state, view, "rows").into_iter().map(row).collect();
        let labels =
            table(&state, view, "classes").into_iter().map(|row| (row[1].clone(), row[4..].to_vec())).collect();
        Kept { rows, labels }
    }

    pub(crate) fn labels(&self, row: &KeptRow) -> &[String] {
        &self.labels[&row.class]
    }

    /// What a reader should see on a day, sorted. A column that one person of a class hides is hidden for the whole class.
    pub(crate) fn shown(&self, today: u32) -> Vec<Vec<String>> {
        let mut hidden: BTreeMap<&str, [bool; 3]> = BTreeMap::new();
        for row in self.rows.iter().filter(|row| row.place == Place::Crowd) {
            let known = hidden.entry(&row.class).or_default();
            known.iter_mut().zip(row.hides(today)).for_each(|(known, hides)| *known |= hides);
        }
        let row = |row: &KeptRow| {
            let is_alone = row.place == Place::Alone;
            let [no_age, no_disease, no_ward] = if is_alone { row.hides(today) } else { hidden[row.class.as_str()] };
            let name = if is_alone && row.k == 0 { row.name.clone() } else { "NULL".to_owned() };
            let [age, zip] = self.labels(row) else { panic!("{row:?} has other labels") };
            let age = if no_age { "*" } else { age };
            let disease = if no_disease { "any".to_owned() } else { row.raised() };
            let ward = row.cells[3..].iter().map(|ward| if no_ward { "NULL".to_owned() } else { ward.clone() });
            [name, age.to_owned(), zip.clone(), disease].into_iter().chain(ward).collect()
        };
        let mut rows: Vec<Vec<String>> = self.rows.iter().filter(|row| row.is_shown()).map(row).collect();
        rows.sort();
        rows
    }

    /// Checks that the view keeps everybody in the table once, with the same cells, except those who allow nothing; and nobody
    /// else except persons who are leaving.
    pub(crate) fn accounts_for(&self, model: &Model, asked: Asked) -> Result<(), String> {
        let mut current: BTreeMap<&str, &KeptRow> = BTreeMap::new();
        for row in &self.rows {
            if row.leaves {
                if row.place != Place::Crowd || asked.withdraws {
                    return Err(format!("{row:?} leaves"));
                }
            } else if current.insert(&row.name, row).is_some() {
                return Err(format!("{} has two rows", row.name));
            }
            if row.place == Place::Alone && row.k > 1 || row.place == Place::Crowd && row.k < 2 {
                return Err(format!("{row:?} is shown as they did not ask for"));
            }
            if row.is_shown() && !covers(self.labels(row), &row.cells) {
                return Err(format!("{row:?} is shown under {:?}", self.labels(row)));
            }
        }
        for (name, patient) in &model.patients {
            let choice = match asked.has_choices {
                true => model.choice(name),
                false => Some(Choice::open(asked.k as u32, 0)),
            };
            let row = current.remove(name.as_str());
            match (choice, row) {
                (None, None) => {}
                (None, Some(row)) => return Err(format!("{row:?} allowed nothing")),
                (Some(_), None) => return Err(format!("{name} is not accounted for")),
                (Some(choice), Some(row)) => {
                    let cells = &patient.cells()[..row.cells.len()];
                    let k = choice.k.max(asked.least_k);
                    let is_chosen = !asked.has_choices || row.chosen == choice.cells();
                    if row.cells != cells || !is_chosen || row.k != k {
                        return Err(format!("{row:?} is not {cells:?} of {choice:?}"));
                    }
                }
            }
        }
        match current.into_values().next() {
            Some(row) => Err(format!("{row:?} is of nobody in the table")),
            None => Ok(()),
        }
    }
}

/// Whether labels could stand for an age and a zip code.
fn covers(labels: &[String], cells: &[String]) -> bool {
    let zip = match labels[1].as_str() {
        "*" => true,
        label => label == cells[1] || label.strip_suffix('*').is_some_and(|start| cells[1].starts_with(start)),
    };
    let age = match labels[0].as_str() {
        "*" => true,
        label if label == cells[0] => true,
        label => {
            let range = label.trim_matches(['[', ']']).split_once(',');
            range.zip(cells[0].parse::<i64>().ok()).is_some_and(|((low, high), age)| {
                low.parse::<i64>().unwrap() <= age && age <= high.parse::<i64>().unwrap()
            })
        }
    };
    zip && age
}
