//! The paper's own experiment: 1000 students, k from 2 to 100, thresholds, and the results of single-table methods.

use std::error::Error;

use kohort_core::relational::{anonymize_tables, anonymize_tables_with_counts};
use kohort_model::spec::{Algorithm, Pairing};
use kohort_model::{Requirement, Silent};
use kohort_testkit::students::Books;
use kohort_verify::{SuppressionLimit, verify_tables};

use super::bitmap::{Bitmap, BitmapLoss, Data, Order, Settings};
use super::single_table::{Exposure, JoinKeys, local, universal};
use super::students::Students;
use crate::measure::{Cost, timed};

pub(super) const N_STUDENTS: usize = 1000;
/// The limit on open clusters in the paper.
pub(super) const CLUSTER_LIMIT: u32 = 150;
pub(super) const KS: [u32; 6] = [2, 5, 10, 20, 50, 100];
pub(super) const THRESHOLDS: [f64; 7] = [0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0];
/// The k at which thresholds are varied: a small one, and the paper's.
pub(super) const KS_OF_THRESHOLDS: [u32; 2] = [5, 50];
/// The k for which exposed persons of single-table methods are counted.
pub(super) const KS_OF_EXPOSURE: [u32; 3] = [2, 5, 10];

/// A way of ours to anonymize the students.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Method {
    pub(super) name: &'static str,
    algorithm: Algorithm,
    pairing: Option<Pairing>,
}

pub(super) const MIRACLE: Method =
    Method { name: "MiRaCle", algorithm: Algorithm::Miracle, pairing: Some(Pairing::Greedy) };
pub(super) const MIRACLE_X: Method =
    Method { name: "MiRaCleX", algorithm: Algorithm::MiracleX, pairing: Some(Pairing::Greedy) };
pub(super) const AUTO: Method = Method { name: "auto", algorithm: Algorithm::Auto, pairing: None };
pub(super) const METHODS: [Method; 6] = [
    AUTO,
    Method { name: "auto, greedy pairing", pairing: Some(Pairing::Greedy), ..AUTO },
    MIRACLE,
    Method { name: "MiRaCle, optimal pairing", pairing: Some(Pairing::Optimal), ..MIRACLE },
    MIRACLE_X,
    Method { name: "MiRaCleX, optimal pairing", pairing: Some(Pairing::Optimal), ..MIRACLE_X },
];

impl Method {
    fn is_single_pass(self) -> bool {
        self.algorithm != Algorithm::Auto
    }
}

/// The loss and cost of a verified release of ours.
#[derive(Clone, Copy)]
pub(super) struct Found {
    pub(super) lm: f64,
    pub(super) dm: f64,
    pub(super) cost: Cost,
    /// How many pairs of nodes had their cells joined, without a cache; for single passes only.
    pub(super) evaluations: Option<u64>,
}

/// The loss and cost of the bitmap.
#[derive(Clone, Copy)]
pub(super) struct FoundBitmap {
    pub(super) loss: BitmapLoss,
    pub(super) cost: Cost,
}

/// All results, by k in the order of [`KS`].
pub(super) struct Experiment {
    pub(super) n_rows: usize,
    pub(super) n_bits: u32,
    /// The results of each method, in the order of [`METHODS`].
    pub(super) methods: Vec<Vec<Found>>,
    /// Evaluations of MiRaCle and of MiRaCleX where students buy every book of their courses.
    pub(super) of_all_books: Vec<[u64; 2]>,
    pub(super) incomplete: Vec<FoundBitmap>,
    pub(super) complete: Vec<FoundBitmap>,
    /// The results by threshold for each k, in the order of [`KS_OF_THRESHOLDS`].
    pub(super) thresholds: Vec<ByThreshold>,
    /// The exposed persons for each k, in the order of [`KS_OF_EXPOSURE`].
    pub(super) exposures: Vec<Exposures>,
}

/// LM by threshold, in the order of [`THRESHOLDS`].
pub(super) struct ByThreshold {
    /// Each method that has a threshold.
    pub(super) methods: Vec<(Method, Vec<f64>)>,
    pub(super) bitmap: Vec<f64>,
}

/// The persons whom single-table methods expose.
pub(super) struct Exposures {
    pub(super) k: u32,
    pub(super) found: Vec<(&'static str, Exposure)>,
}

impl Experiment {
    /// Runs the experiment.
    pub(super) fn run() -> Result<Experiment, Box<dyn Error>> {
        let students = Students::generate(N_STUDENTS, Books::Some)?;
        let bitmap = Bitmap::of(&students);
        let mut methods = Vec::new();
        for method in METHODS {
            eprintln!("tables: {}", method.name);
            let found = KS.into_iter().map(|k| release(&students, method, k, None));
            methods.push(found.collect::<Result<_, _>>()?);
        }
        eprintln!("tables: all books of each course");
        let of_all_books = KS.into_iter().map(evaluations_of_all_books).collect::<Result<_, _>>()?;
        let best = |data| KS.into_iter().map(|k| best_bitmap(&bitmap, data, k)).collect();
        eprintln!("tables: bitmap");
        let (incomplete, complete) = (best(Data::Incomplete), best(Data::Complete));
        let mut thresholds = Vec::new();
        for k in KS_OF_THRESHOLDS {
            eprintln!("tables: thresholds at k = {k}");
            thresholds.push(by_threshold(&students, &bitmap, k)?);
        }
        let mut exposures = Vec::new();
        for k in KS_OF_EXPOSURE {
            eprintln!("tables: single tables at k = {k}");
            let found = vec![
                ("universal relation", universal(&students, k, JoinKeys::Kept)?),
                ("universal relation, generalized keys", universal(&students, k, JoinKeys::Generalized)?),
                ("each table by itself", local(&students, k, JoinKeys::Kept)?),
                ("each table by itself, generalized keys", local(&students, k, JoinKeys::Generalized)?),
            ];
            exposures.push(Exposures { k, found });
        }
        let (n_rows, n_bits) = (students.n_rows(), bitmap.n_bits());
        Ok(Experiment { n_rows, n_bits, methods, of_all_books, incomplete, complete, thresholds, exposures })
    }

    /// The result of a method at a k, which is given by its position in [`KS`].
    pub(super) fn at(&self, method: Method, k: usize) -> Found {
        let position = METHODS.iter().position(|&known| known == method).expect("every method was run");
        self.methods[position][k]
    }
}

/// Makes a release of ours. There are figures only if it passes verification.
fn release(students: &Students, method: Method, k: u32, threshold: Option<f64>) -> Result<Found, Box<dyn Error>> {
    let mut spec = students.spec.clone();
    spec.k = k;
    spec.algorithm = method.algorithm;
    spec.clustering.pairing = method.pairing;
    spec.clustering.cluster_limit = Some(CLUSTER_LIMIT);
    spec.clustering.threshold = threshold;
    let Students { tables, schema, .. } = students;
    let (anonymized, cost) = timed(|| anonymize_tables(tables, schema, &spec, &Silent));
    let anonymized = anonymized?;
    let requirements: Vec<Vec<Requirement>> = spec.tables.iter().map(|table| spec.requirements(table)).collect();
    verify_tables(anonymized.release, tables, schema, &requirements, SuppressionLimit::share(spec.max_suppressed))?;
    let evaluations = match method.is_single_pass() {
        true => Some(anonymize_tables_with_counts(tables, schema, &spec, &Silent)?.1),
        false => None,
    };
    Ok(Found { lm: anonymized.loss.lm, dm: anonymized.loss.dm, cost, evaluations })
}

fn evaluations_of_all_books(k: u32) -> Result<[u64; 2], Box<dyn Error>> {
    let students = Students::generate(N_STUDENTS, Books::All)?;
    let mut evaluations = [0; 2];
    for (method, evaluations) in [MIRACLE, MIRACLE_X].into_iter().zip(&mut evaluations) {
        *evaluations = release(&students, method, k, None)?.evaluations.unwrap_or_default();
    }
    Ok(evaluations)
}

/// The bitmap with the threshold and order that keep most.
fn best_bitmap(bitmap: &Bitmap, data: Data, k: u32) -> FoundBitmap {
    let runs = THRESHOLDS.into_iter().flat_map(|threshold| bitmap_runs(bitmap, data, k, threshold));
    let least = runs.min_by(|one, other| one.loss.lm.total_cmp(&other.loss.lm));
    least.expect("there are thresholds")
}

/// The results of the bitmap in both orders of persons.
fn bitmap_runs(bitmap: &Bitmap, data: Data, k: u32, threshold: f64) -> [FoundBitmap; 2] {
    [Order::Table, Order::Bits].map(|order| {
        let settings = Settings { data, order, k: k as usize, threshold, limit: CLUSTER_LIMIT as usize };
        let (loss, cost) = timed(|| bitmap.anonymize(settings));
        FoundBitmap { loss, cost }
    })
}

fn by_threshold(students: &Students, bitmap: &Bitmap, k: u32) -> Result<ByThreshold, Box<dyn Error>> {
    let mut methods = Vec::new();
    for method in [MIRACLE, MIRACLE_X] {
        let losses = THRESHOLDS.into_iter().map(|threshold| Ok(release(students, method, k, Some(threshold))?.lm));
        methods.push((method, losses.collect::<Result<_, Box<dyn Error>>>()?));
    }
    let of_bitmap = THRESHOLDS.map(|threshold| {
        let [one, other] = bitmap_runs(bitmap, Data::Incomplete, k, threshold).map(|found| found.loss.lm);
        one.min(other)
    });
    Ok(ByThreshold { methods, bitmap: of_bitmap.to_vec() })
}
