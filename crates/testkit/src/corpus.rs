//! The corpus: small named cases in `corpus/*.toml` that every partitioner runs.
//!
//! A case is a table as CSV text, a spec as in `release.toml`, the files that the spec names, and the expected result:
//! under `expect` for every partitioner, and under `expect_of.<name>` for one of them, whose fields take precedence.
//! Each result is verified, counted once more by the oracles, and compared with the expected text of the released file.

use std::collections::BTreeMap;
use std::path::Path;

use kohort_core::{AnonymizeError, Anonymized};
use kohort_model::Spec;
use kohort_model::spec::{Algorithm, Choose, Cuts, MondrianSpec};
use serde::Deserialize;

use crate::oracle;
use crate::scenario::Scenario;

/// A partitioner with its settings.
#[derive(Clone, Copy, Debug)]
pub struct Partitioner {
    /// The partitioner's name in the cases.
    pub name: &'static str,
    /// The algorithm.
    pub algorithm: Algorithm,
    /// How Mondrian cuts; other algorithms ignore it.
    pub mondrian: MondrianSpec,
    /// How much of a case's expected result the partitioner must reach.
    pub bar: Bar,
}

/// How much of a case's expected result a partitioner must reach. Every partitioner must release where the case expects
/// a release and only there, and each release must pass the verifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bar {
    /// All of it. The cases are written for partitioners that cut at the median.
    Exactly,
    /// A release that loses no more than expected.
    NoMoreLoss,
    /// Classes of at least k persons.
    Sound,
}

/// Every partitioner that runs the corpus.
pub const PARTITIONERS: &[Partitioner] = &[
    mondrian("mondrian strict widest", Cuts::Strict, Choose::Widest),
    mondrian("mondrian strict round-robin", Cuts::Strict, Choose::RoundRobin),
    mondrian("mondrian relaxed widest", Cuts::Relaxed, Choose::Widest),
    mondrian("mondrian relaxed round-robin", Cuts::Relaxed, Choose::RoundRobin),
    other("auto", Algorithm::Auto, Bar::NoMoreLoss),
    other("top-down", Algorithm::TopDown, Bar::Sound),
    other("datafly", Algorithm::Datafly, Bar::Sound),
    other("cluster", Algorithm::Cluster, Bar::Sound),
    other("full-domain", Algorithm::FullDomain, Bar::Sound),
];

const fn other(name: &'static str, algorithm: Algorithm, bar: Bar) -> Partitioner {
    let mondrian = MondrianSpec { cuts: Cuts::Strict, choose: Choose::Widest };
    Partitioner { name, algorithm, mondrian, bar }
}

const fn mondrian(name: &'static str, cuts: Cuts, choose: Choose) -> Partitioner {
    Partitioner { name, algorithm: Algorithm::Mondrian, mondrian: MondrianSpec { cuts, choose }, bar: Bar::Exactly }
}

impl Partitioner {
    /// Makes a spec ask for this partitioner.
    pub fn set(&self, spec: &mut Spec) {
        (spec.algorithm, spec.mondrian) = (self.algorithm, self.mondrian);
    }
}

/// One case.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// A sentence that is true if the case passes.
    pub name: String,
    table: String,
    spec: String,
    #[serde(default)]
    files: BTreeMap<String, String>,
    expect: Expect,
    #[serde(default)]
    expect_of: BTreeMap<String, Expect>,
}

/// The expected result; a field that is absent is not compared.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expect {
    /// Whether the requirement can't be reached.
    unreachable: Option<bool>,
    /// Persons in the smallest class.
    k: Option<usize>,
    classes: Option<usize>,
    suppressed: Option<u64>,
    lm: Option<f64>,
    /// The released file.
    rows: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CorpusFile {
    case: Vec<Case>,
}

/// Every case, in the order of the files' names.
///
/// # Panics
/// If a file of the corpus can't be read.
pub fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let entries = std::fs::read_dir(folder).expect("the corpus is beside this crate");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("the corpus can be listed").path()).collect();
    paths.sort();
    let read = |path: &Path| {
        let text = std::fs::read_to_string(path).expect("the corpus can be read");
        let file: CorpusFile = toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        file.case
    };
    paths.iter().flat_map(|path| read(path)).collect()
}

impl Case {
    /// Anonymizes the table of the case with a partitioner.
    ///
    /// # Errors
    /// If the requirement can't be reached.
    pub fn release(&self, partitioner: &Partitioner) -> Result<Anonymized, AnonymizeError> {
        self.scenario(partitioner).run()
    }

    fn scenario(&self, partitioner: &Partitioner) -> Scenario {
        let mut scenario = Scenario::with_files(&self.table, &self.spec, &self.files);
        partitioner.set(&mut scenario.spec);
        scenario
    }

    /// Writes the table and the other files of the case to a folder, and returns the spec, whose paths start from there.
    ///
    /// # Panics
    /// If the files can't be written or the spec is wrong.
    pub fn write(&self, folder: &Path, partitioner: &Partitioner) -> Spec {
        let mut spec = Spec::parse(&self.spec).expect("the spec of a case is right");
        partitioner.set(&mut spec);
        let files = self.files.iter().map(|(name, text)| (Path::new(name), text));
        for (name, text) in files.chain([(spec.tables[0].file.as_path(), &self.table)]) {
            std::fs::write(folder.join(name), text).expect("the files of a case can be written");
        }
        spec
    }

    /// Runs the case and compares the result with the expected one.
    ///
    /// # Errors
    /// Everything that differs, in words.
    pub fn run(&self, partitioner: &Partitioner) -> Result<(), String> {
        let scenario = self.scenario(partitioner);
        let expected = self.expected(partitioner);
        let done = match (scenario.run(), expected.unreachable) {
            (Err(_), Some(true)) => return Ok(()),
            (Err(error), _) => return Err(format!("there is no release: {error}")),
            (Ok(_), Some(true)) => return Err("there is a release, and none was expected".to_owned()),
            (Ok(done), _) => done,
        };
        let table = &scenario.loaded.table;
        let classes = oracle::classes(table, &done.release);
        let smallest = classes.iter().map(|class| oracle::persons(table, &class.rows).len()).min();
        let mut differences = Vec::new();
        let mut compare = |what: &str, expected: Option<String>, found: String| {
            if let Some(expected) = expected.filter(|expected| *expected != found) {
                differences.push(format!("{what}: expected\n{expected}\nand found\n{found}"));
            }
        };
        if partitioner.bar != Bar::Exactly {
            let too_small = smallest.is_none_or(|smallest| (smallest as u64) < u64::from(scenario.spec.k));
            let most = expected.lm.filter(|_| partitioner.bar == Bar::NoMoreLoss);
            let loses_more = most.is_some_and(|most| done.loss.lm > most + 1e-9);
            return match (too_small, loses_more) {
                (true, _) => Err(format!("a class has {smallest:?} persons")),
                (_, true) => Err(format!("lm: expected at most {most:?} and found {}", done.loss.lm)),
                (false, false) => Ok(()),
            };
        }
        compare("k", expected.k.map(|k| k.to_string()), smallest.unwrap_or(0).to_string());
        compare("classes", expected.classes.map(|n| n.to_string()), classes.len().to_string());
        compare("suppressed", expected.suppressed.map(|n| n.to_string()), done.persons.suppressed.to_string());
        compare("lm", expected.lm.map(|lm| format!("{lm:.9}")), format!("{:.9}", done.loss.lm));
        compare("rows", expected.rows, scenario.released_csv());
        if differences.is_empty() { Ok(()) } else { Err(differences.join("\n")) }
    }

    fn expected(&self, partitioner: &Partitioner) -> Expect {
        let own = self.expect_of.get(partitioner.name).cloned().unwrap_or_default();
        let all = self.expect.clone();
        Expect {
            unreachable: own.unreachable.or(all.unreachable),
            k: own.k.or(all.k),
            classes: own.classes.or(all.classes),
            suppressed: own.suppressed.or(all.suppressed),
            lm: own.lm.or(all.lm),
            rows: own.rows.or(all.rows),
        }
    }

    /// Names under `expect_of` that no partitioner has.
    pub fn unknown_partitioners(&self) -> Vec<&str> {
        let known = |name: &str| PARTITIONERS.iter().any(|partitioner| partitioner.name == name);
        self.expect_of.keys().map(String::as_str).filter(|name| !known(name)).collect()
    }
}
