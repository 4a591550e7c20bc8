//! Microdata and registers drawn from one population, and the loss of a release beside them.

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use kohort_core::encode::Encoded;
use kohort_core::register::{AnonymizedWithRegister, anonymize_with_register};
use kohort_model::spec::{Algorithm, RegisterMethod, RegisterRows, Unmatched};
use kohort_model::{Column, InRegister, JoinedRegister, Requirement, Role, Silent, Spec, Table, Texts, ValueType};
use kohort_testkit::random::Random;
use kohort_verify::{AskedOfJoin, SuppressionLimit, ToldApart, verify_joined};

use crate::categories::{Categories, census};
use crate::measure::timed;
use crate::utility::answers::sanity_bound;
use crate::utility::ranges::{Places, mean_relative_error, range_counts};
use crate::utility::workload::{Workload, WorkloadSpec};

/// The quasi columns, in the order of the paper's table 2.
const CENSUS: [&str; 6] = ["age", "famincome", "hh_size", "edu", "state", "sex"];
/// How many values a uniform column has.
const N_UNIFORM: usize = 1000;
/// How many values each column of a large register has.
pub(super) const N_LARGE: [usize; 4] = [100, 1000, 10, 17];

/// All persons from whom microdata and registers are drawn.
pub(super) struct Population {
    table: Table,
}

/// What is drawn from a population.
#[derive(Clone, Copy)]
pub(super) struct Draw {
    pub(super) n_microdata: usize,
    /// How many times larger the register is; it contains everybody of the microdata.
    pub(super) ratio: usize,
    pub(super) n_columns: usize,
    pub(super) k: u32,
    pub(super) seed: u64,
}

/// Microdata, with and without a register.
pub(super) struct Drawn {
    microdata: Table,
    joined: JoinedRegister,
    alone: JoinedRegister,
}

/// How a release is made.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Plain,
    Direct,
    Refine,
}

impl Method {
    pub(super) const ALL: [Method; 3] = [Method::Plain, Method::Direct, Method::Refine];
}

/// The loss and cost of a release.
#[derive(Clone, Copy, Default)]
pub(super) struct Measured {
    pub(super) ncp: f64,
    pub(super) dm: f64,
    pub(super) are: f64,
    pub(super) cpu: Duration,
}

impl Measured {
    pub(super) fn plus(self, other: Measured) -> Measured {
        Measured {
            ncp: self.ncp + other.ncp,
            dm: self.dm + other.dm,
            are: self.are + other.are,
            cpu: self.cpu + other.cpu,
        }
    }

    pub(super) fn over(self, n: f64) -> Measured {
        Measured { ncp: self.ncp / n, dm: self.dm / n, are: self.are / n, cpu: self.cpu.div_f64(n) }
    }
}

impl Population {
    pub(super) fn census(data: &Path, n_rows: usize) -> Result<Population, Box<dyn Error>> {
        Ok(Population { table: census(data, &CENSUS, n_rows, Categories::Ranked)? })
    }

    pub(super) fn uniform(n_rows: usize, n_columns: usize) -> Population {
        let mut random = Random::new(7);
        Population { table: table(n_rows, &vec![N_UNIFORM; n_columns], &mut random) }
    }

    pub(super) fn draw(&self, draw: Draw) -> Drawn {
        let mut order: Vec<u32> = (0..self.table.n_rows as u32).collect();
        let mut random = Random::new(draw.seed + 1);
        let n_joined = draw.n_microdata * draw.ratio;
        for place in 0..n_joined {
            let other = place + random.below(order.len() - place);
            order.swap(place, other);
        }
        let rows = |n_rows: usize| {
            let columns = self.table.columns[..draw.n_columns].iter().map(|column| Column {
                ids: order[..n_rows].iter().map(|&row| column.ids[row as usize]).collect(),
                ..column.clone()
            });
            Table { name: "persons".to_owned(), columns: columns.collect(), n_rows, person: None }
        };
        Drawn::new(rows(draw.n_microdata), rows(n_joined))
    }
}

impl Drawn {
    fn new(microdata: Table, rows: Table) -> Drawn {
        // The register contains everybody, so it says the same about each private person as the private table.
        let joined = |mut rows: Table| {
            let n_persons = rows.n_rows;
            for (column, private) in rows.columns.iter_mut().zip(&microdata.columns) {
                column.ids.extend_from_slice(&private.ids);
            }
            rows.n_rows += microdata.n_rows;
            JoinedRegister {
                n_microdata: microdata.n_rows,
                n_register: n_persons - microdata.n_rows,
                persons: (n_persons as u32..rows.n_rows as u32).map(InRegister::Same).collect(),
                rows,
                key_prints: Vec::new(),
                respelled: Vec::new(),
            }
        };
        Drawn { joined: joined(rows), alone: joined(microdata.clone()), microdata }
    }

    pub(super) fn anonymize(
        &self,
        algorithm: Algorithm,
        method: Method,
        k: u32,
    ) -> Result<AnonymizedWithRegister, Box<dyn Error>> {
        let mut spec = Spec::parse("k = 2\n[tables.persons]\nfile = \"persons.csv\"\ncolumns = { age = \"quasi\" }\n")?;
        spec.k = k;
        spec.algorithm = algorithm;
        spec.register.method = if method == Method::Direct { RegisterMethod::Direct } else { RegisterMethod::Refine };
        let joined = if method == Method::Plain { &self.alone } else { &self.joined };
        Ok(anonymize_with_register(&self.microdata, joined, &[], &spec, &[Requirement::K(k)], &Silent)?)
    }
}

/// Makes one release. There are figures only if it passes verification.
pub(super) fn measure(
    drawn: &Drawn,
    algorithm: Algorithm,
    method: Method,
    k: u32,
    workload: WorkloadSpec,
) -> Result<Measured, Box<dyn Error>> {
    let (done, cost) = timed(|| drawn.anonymize(algorithm, method, k));
    let done = done?;
    let columns: Vec<usize> = (0..drawn.joined.rows.columns.len()).collect();
    let encoded = Encoded::new(&drawn.joined.rows, &columns)?;
    let places = Places::new(&encoded.domains);
    let estimator = places.estimator(&done.classes, |_| 0);
    let private = encoded.fold(&(0..drawn.microdata.n_rows as u32).collect::<Vec<_>>());
    let counts = range_counts(&Workload::random(&encoded.domains, &workload)?, &places, &estimator, &private);
    let are = mean_relative_error(&counts, sanity_bound(drawn.microdata.n_rows as u64))
        .ok_or("the workload has no queries")?;
    let loss = done.anonymized.loss;
    let joined = if method == Method::Plain { &drawn.alone } else { &drawn.joined };
    let asked = AskedOfJoin {
        requirements: &[Requirement::K(k)],
        delta_presence: None,
        rows: RegisterRows::All,
        told_apart: ToldApart::ByValues(Unmatched::Count),
        previous: &[],
        limit: SuppressionLimit::NOBODY,
    };
    verify_joined(done.anonymized.release, &drawn.microdata, joined, asked)?;
    Ok(Measured { ncp: loss.ncp, dm: loss.dm, are, cpu: cost.cpu })
}

/// Uniform microdata, and a large register of other people.
pub(super) fn large(n_microdata: usize, n_register: usize) -> Drawn {
    let mut random = Random::new(11);
    let rows = table(n_microdata + n_register, &N_LARGE, &mut random);
    let first = |column: &Column| Column { ids: column.ids[..n_microdata].to_vec(), ..column.clone() };
    let microdata = Table {
        name: rows.name.clone(),
        columns: rows.columns.iter().map(first).collect(),
        n_rows: n_microdata,
        person: None,
    };
    Drawn::new(microdata, rows)
}

/// Columns of whole numbers whose values are equally likely.
fn table(n_rows: usize, n_values: &[usize], random: &mut Random) -> Table {
    let column = |(number, &n_values): (usize, &usize)| {
        let mut texts = Texts::new();
        for value in 0..n_values {
            texts.push(&value.to_string());
        }
        let mut column = Column::from_cells(&format!("x{number}"), Role::Quasi, []).typed(ValueType::Integer);
        column.texts = texts;
        column.ids = (0..n_rows).map(|_| random.below(n_values) as u32).collect();
        column
    };
    let columns = n_values.iter().enumerate().map(column).collect();
    Table { name: "persons".to_owned(), columns, n_rows, person: None }
}
