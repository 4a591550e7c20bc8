//! The manifest of a release of one table, from the spec, the verifier's counts and the file that was written; and
//! back from a manifest to what was asked.

use std::collections::BTreeMap;

use kohort_core::Anonymized;
use kohort_io::{LoadedTable, WrittenFile};
use kohort_model::spec::TableSpec;
use kohort_model::{
    Achieved, AchievedSensitive, BeforeAfter, Distance, Loss, Manifest, Persons, Release, Requirement,
    RequirementManifest, Risk, Setting, Spec, TableManifest,
};
use kohort_verify::{Findings, SensitiveFindings};

/// What a manifest is made from, once a file is written and counted.
pub(crate) struct Facts<'a> {
    pub(crate) spec: &'a Spec,
    pub(crate) original: &'a LoadedTable,
    pub(crate) algorithm: &'static str,
    pub(crate) persons: Persons,
    pub(crate) loss: Loss,
    /// The private table, if its quasi columns were released as they are.
    pub(crate) before: Findings,
}

impl<'a> Facts<'a> {
    /// What is known before anything is written, and the release.
    pub(crate) fn new(
        spec: &'a Spec,
        original: &'a LoadedTable,
        anonymized: Anonymized,
        before: Findings,
    ) -> (Self, Release) {
        let Anonymized { release, loss, persons, algorithm, .. } = anonymized;
        (Facts { spec, original, algorithm, persons, loss, before }, release)
    }

    /// The manifest of a release whose file was counted by the verifier.
    pub(crate) fn manifest(&self, release: &Release, written: &WrittenFile, found: &Findings) -> Manifest {
        let table = &self.original.table;
        let released = &release.tables[0];
        Manifest {
            kohort: env!("CARGO_PKG_VERSION").to_owned(),
            algorithm: self.algorithm.to_owned(),
            requirement: requirement(self.spec, &self.spec.tables[0]),
            achieved: achieved(found),
            persons: self.persons,
            classes: found.classes,
            loss: self.loss.clone(),
            risk: Risk {
                highest: BeforeAfter { before: self.before.highest_risk, after: found.highest_risk },
                average: BeforeAfter { before: self.before.average_risk, after: found.average_risk },
            },
            tables: vec![TableManifest {
                name: released.name.clone(),
                file: written.name.clone(),
                rows_in: table.n_rows as u64,
                rows_out: written.n_rows,
                rows_suppressed: table.n_rows as u64 - written.n_rows,
                sha256: written.sha256.clone(),
                columns: self.original.column_manifests(released),
            }],
            verified: true,
        }
    }
}

/// What a spec asks for.
pub(crate) fn requirement(spec: &Spec, table: &TableSpec) -> RequirementManifest {
    let mut sensitive: BTreeMap<String, BTreeMap<String, Setting>> = BTreeMap::new();
    let mut person_k = false;
    for requirement in spec.requirements(table) {
        let settings = match requirement.column() {
            Some(column) if !matches!(requirement, Requirement::PersonK { .. }) => {
                sensitive.entry(column.to_owned()).or_default()
            }
            _ => &mut BTreeMap::new(),
        };
        let mut set = |key: &str, setting| settings.insert(key.to_owned(), setting);
        match requirement {
            Requirement::K(_) => {}
            Requirement::PersonK { .. } => person_k = true,
            Requirement::DistinctL { l, .. } => {
                set("l", Setting::Whole(l.into()));
            }
            Requirement::EntropyL { l, .. } => {
                set("entropy_l", Setting::Number(l));
            }
            Requirement::RecursiveCL { c, l, .. } => {
                set("recursive_cl", Setting::Numbers(vec![c, f64::from(l)]));
            }
            Requirement::TCloseness { t, distance, .. } => {
                set("t", Setting::Number(t));
                set("distance", Setting::Word(distance_word(distance).to_owned()));
            }
            Requirement::Alpha { alpha, .. } => {
                set("alpha", Setting::Number(alpha));
            }
            Requirement::Beta { beta, .. } => {
                set("beta", Setting::Number(beta));
            }
            Requirement::EnhancedBeta { beta, .. } => {
                set("enhanced_beta", Setting::Number(beta));
            }
        }
    }
    RequirementManifest { k: spec.k, person_k, max_suppressed: spec.max_suppressed, sensitive }
}

/// What a manifest says was asked, `None` where it says something no spec can. A person's own k is not among it: the
/// column is not released, nor named.
pub(crate) fn requirements(asked: &RequirementManifest) -> Option<Vec<Requirement>> {
    let mut requirements = vec![Requirement::K(asked.k)];
    for (column, settings) in &asked.sensitive {
        let column = || column.clone();
        let distance = match settings.get("distance") {
            None => Distance::Equal,
            Some(Setting::Word(word)) => *[Distance::Equal, Distance::Ordered, Distance::Hierarchical]
                .iter()
                .find(|&&distance| distance_word(distance) == word)?,
            Some(_) => return None,
        };
        for (key, setting) in settings {
            let requirement = match (key.as_str(), setting) {
                ("distance", _) => continue,
                ("l", Setting::Whole(l)) => Requirement::DistinctL { column: column(), l: u32::try_from(*l).ok()? },
                ("recursive_cl", Setting::Numbers(numbers)) => match numbers.as_slice() {
                    &[c, l] => Requirement::RecursiveCL { column: column(), c, l: l as u32 },
                    _ => return None,
                },
                (key, setting) => {
                    let number = match setting {
                        Setting::Whole(number) => *number as f64,
                        Setting::Number(number) => *number,
                        Setting::Word(_) | Setting::Numbers(_) => return None,
                    };
                    match key {
                        "entropy_l" => Requirement::EntropyL { column: column(), l: number },
                        "t" => Requirement::TCloseness { column: column(), t: number, distance },
                        "alpha" => Requirement::Alpha { column: column(), alpha: number },
                        "beta" => Requirement::Beta { column: column(), beta: number },
                        "enhanced_beta" => Requirement::EnhancedBeta { column: column(), beta: number },
                        _ => return None,
                    }
                }
            };
            requirements.push(requirement);
        }
    }
    Some(requirements)
}

/// What the verifier counted, as a manifest shows it.
pub(crate) fn achieved(found: &Findings) -> Achieved {
    let entry = |column: &SensitiveFindings| AchievedSensitive {
        l: column.l,
        entropy_l: column.entropy_l,
        t: column.t,
        t_by_distance: column.t_by_distance(),
        alpha: column.alpha,
        beta: column.beta,
    };
    let sensitive = found.sensitive.iter().map(|column| (column.column.clone(), entry(column))).collect();
    Achieved { k: found.k, sensitive }
}

/// Whether so many persons may be left out.
pub(crate) fn is_within_limit(persons: Persons, max_suppressed: f64) -> bool {
    persons.suppressed as f64 <= max_suppressed * persons.n_in as f64 + 1e-9
}

fn distance_word(distance: Distance) -> &'static str {
    match distance {
        Distance::Equal => "equal",
        Distance::Ordered => "ordered",
        Distance::Hierarchical => "hierarchical",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_is_read_back_from_its_manifest() {
        let spec = Spec::parse(
            "k = 5\nmax_suppressed = 0.1\n[tables.a]\nfile = \"a.csv\"\n[tables.a.columns]\nage = \"quasi\"\n\
             x = { role = \"sensitive\", l = 3, entropy_l = 2, recursive_cl = [3, 2], t = 0.2, distance = \"ordered\" }\n\
             y = { role = \"sensitive\", alpha = 0.5, beta = 1, enhanced_beta = 1.5 }\n",
        )
        .unwrap();
        let asked = requirement(&spec, &spec.tables[0]);
        let json = serde_json::to_string(&asked).unwrap();
        let again: RequirementManifest = serde_json::from_str(&json).unwrap();
        assert_eq!(again, asked);
        let mut expected: Vec<String> =
            spec.requirements(&spec.tables[0]).iter().map(|requirement| format!("{requirement:?}")).collect();
        let mut found: Vec<String> =
            requirements(&again).unwrap().iter().map(|requirement| format!("{requirement:?}")).collect();
        expected.sort();
        found.sort();
        assert_eq!(found, expected);
    }

    #[test]
    fn nothing_is_read_from_a_setting_that_no_spec_has() {
        let asked = |key: &str, setting| RequirementManifest {
            k: 2,
            person_k: false,
            max_suppressed: 0.0,
            sensitive: BTreeMap::from([("x".to_owned(), BTreeMap::from([(key.to_owned(), setting)]))]),
        };
        assert!(requirements(&asked("l", Setting::Word("two".to_owned()))).is_none());
        assert!(requirements(&asked("m", Setting::Number(1.0))).is_none());
        assert!(requirements(&asked("distance", Setting::Word("far".to_owned()))).is_none());
    }
}
