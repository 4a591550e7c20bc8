//! Real tables for two, three and five audiences, with and without a k for all of them together.

use std::error::Error;
use std::path::Path;

use kohort_io::load;
use kohort_model::spec::Algorithm;
use kohort_model::{Silent, Spec, Table};

use super::setting::{Found, measure, of_columns};
use super::{BODIES, COLUMNS, OURS};
use crate::categories::{Categories, census};
use crate::excerpt;
use crate::report::{Grid, Section, number};

const EXPLANATION: &str = "\
Two, three and five audiences of real tables, k = 10 for each of them, with and without k' = 2 for all together; 50,000
rows. `acs_ma` has AGEP and SCHL as numbers and other columns as texts without a hierarchy, `census_like` has categories
by rank. *Bodies alone* is what was released before rows were also placed one by one. *Least* is the printed lower
bound. To reach: at most 0.7 of the loss of bodies alone wherever that is above 1.3 times that of separate releases, and
at most 5 times the CPU time of the union method.
";

const N_ROWS: usize = 50_000;
const K: u32 = 10;
const TEXT: &str = "{ role = \"quasi\", type = \"text\" }";

const ACS: [(&str, &str); 11] = [
    ("AGEP", "\"quasi\""),
    ("SCHL", "{ role = \"quasi\", type = \"integer\" }"),
    ("SEX", TEXT),
    ("RAC1P", TEXT),
    ("MAR", TEXT),
    ("CIT", TEXT),
    ("RELP", TEXT),
    ("MIG", TEXT),
    ("ANC", TEXT),
    ("DIS", TEXT),
    ("ESP", TEXT),
];

type Columns = &'static [&'static [&'static str]];

const OF_ACS: [Columns; 3] = [
    &[&["AGEP", "SEX", "MAR", "RELP", "RAC1P"], &["AGEP", "SEX", "SCHL", "CIT", "MIG"]],
    &[&["AGEP", "SEX", "MAR", "RELP"], &["AGEP", "SEX", "SCHL", "CIT"], &["AGEP", "RAC1P", "ANC", "MIG"]],
    &[
        &["SEX", "AGEP", "MAR"],
        &["SEX", "SCHL", "RELP"],
        &["AGEP", "RAC1P", "CIT"],
        &["AGEP", "SEX", "MIG"],
        &["SCHL", "ANC", "DIS"],
    ],
];
const OF_CENSUS: [Columns; 3] = [
    &[
        &["edu", "marital", "sex", "age", "occup_code", "state"],
        &["edu", "marital", "sex", "famincome", "work_class", "race"],
    ],
    &[&["edu", "marital", "sex", "age"], &["edu", "marital", "sex", "state"], &["edu", "race", "famincome"]],
    &[
        &["sex", "age"],
        &["sex", "edu", "state"],
        &["sex", "race", "famincome"],
        &["sex", "race", "work_class"],
        &["sex", "marital", "hh_size"],
    ],
];

/// Runs the benchmark.
pub(crate) fn run(data: &Path) -> Result<Section, Box<dyn Error>> {
    let mut grid = Grid::new([
        "audiences",
        "k'",
        "by",
        "least over union",
        "separate over union",
        "bodies alone over union",
        "ours over union",
        "ours over bodies alone",
        "CPU over union",
    ]);
    let acs = acs(data)?;
    let census = census(data, &COLUMNS, N_ROWS, Categories::Ranked)?;
    for (name, table, columns) in [("acs_ma", &acs, OF_ACS), ("census_like", &census, OF_CENSUS)] {
        for columns in columns {
            for collusion_k in [None, Some(2)] {
                for (by, algorithm) in [("auto", Algorithm::Auto), ("Mondrian", Algorithm::Mondrian)] {
                    eprintln!("audiences: {} of {name}, k' = {collusion_k:?}, {by}", columns.len());
                    let audiences = of_columns(columns, K, collusion_k);
                    let bodies = measure(table, &audiences, algorithm, BODIES)?;
                    let ours = measure(table, &audiences, algorithm, OURS)?;
                    let union = ours.saved.union.uncertainty_penalty();
                    let loss = |found: &Found| found.saved.release.uncertainty_penalty();
                    grid.push([
                        format!("{} of {name}", columns.len()),
                        collusion_k.map_or("none".to_owned(), |k| k.to_string()),
                        by.to_owned(),
                        number(ours.saved.least / union),
                        number(ours.saved.separate.uncertainty_penalty() / union),
                        number(bodies.over_union()),
                        number(ours.over_union()),
                        number(loss(&ours) / loss(&bodies)),
                        number(ours.times_union()),
                    ]);
                }
            }
        }
    }
    Ok(Section { name: "audiences-real", body: format!("{EXPLANATION}\n{}", grid.render()), figures: Vec::new() })
}

fn acs(data: &Path) -> Result<Table, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("persons.parquet");
    excerpt::write(&data.join("acs_ma/acs_ma.parquet"), &ACS.map(|(name, _)| name), N_ROWS, &file)?;
    let mut text = "k = 2\n[tables.persons]\nfile = \"persons.parquet\"\n[tables.persons.columns]\n".to_owned();
    ACS.iter().for_each(|(name, column)| text += &format!("{name} = {column}\n"));
    let spec = Spec::parse(&text)?;
    Ok(load(folder.path(), &spec, &spec.tables[0], &Silent)?.table)
}
