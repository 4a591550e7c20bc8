//! The manifest of a release, from the spec, the verifier's counts and the files that were written; and back from a
//! manifest to what was asked.
//!
//! In a release of several tables sensitive columns are named `table.column`, for two tables may have one of the same
//! name.

use std::collections::BTreeMap;

use kohort_core::audiences::{Losses, Savings};
use kohort_io::{JoinedBy, LinkManifest, TablesManifest, WrittenFile};
use kohort_model::spec::{RegisterMethod, TableSpec};
use kohort_model::{
    Achieved, AchievedSensitive, Audience, AudienceManifest, Audiences, BeforeAfter, BoundManifest, ColumnManifest,
    Distance, JoinManifest, Loss, Manifest, MethodLoss, Persons, PreviousManifest, RegisterManifest, Requirement,
    RequirementManifest, Risk, SavingsManifest, Setting, Spec, TableManifest,
};
use kohort_verify::{Findings, ReleasedLink, SensitiveFindings};

/// What a manifest is made from, once files are written and counted.
pub(crate) struct Facts<'a> {
    pub(crate) spec: &'a Spec,
    pub(crate) algorithm: &'static str,
    pub(crate) persons: Persons,
    /// Of all tables together.
    pub(crate) loss: Loss,
    pub(crate) tables: Vec<TableFacts>,
    pub(crate) links: Vec<LinkManifest>,
    /// What one release for all audiences saved, where there are audiences.
    pub(crate) saved: Option<Savings>,
    /// What became of registers, where there are any.
    pub(crate) registers: Option<RegisterFacts>,
    /// Digests of the manifests of earlier releases it may be read beside.
    pub(crate) previous: Vec<String>,
    /// The private tables, if their quasi columns were released as they are.
    pub(crate) before: Findings,
}

/// What a manifest says of registers.
pub(crate) struct RegisterFacts {
    pub(crate) registers: Vec<RegisterManifest>,
    pub(crate) method: RegisterMethod,
    pub(crate) by: JoinedBy,
    /// Persons of the private table that the registers have.
    pub(crate) found: u64,
    pub(crate) contradicting: u64,
}

/// What a manifest is made from, table by table.
pub(crate) struct TableFacts {
    pub(crate) name: String,
    pub(crate) rows_in: u64,
    pub(crate) columns: BTreeMap<String, ColumnManifest>,
    /// Where there are several tables.
    pub(crate) loss: Option<Loss>,
}

impl Facts<'_> {
    /// The manifest of a release whose files, in the order of its tables, were counted by the verifier.
    pub(crate) fn manifest(&self, written: &[WrittenFile], found: &Findings) -> TablesManifest {
        let entry = |(table, written): (&TableFacts, &WrittenFile)| TableManifest {
            name: table.name.clone(),
            file: written.name.clone(),
            rows_in: table.rows_in,
            rows_out: written.n_rows,
            // Beside a register more rows may come out than went in.
            rows_suppressed: match &self.registers {
                None => table.rows_in - written.n_rows,
                Some(_) => self.persons.suppressed,
            },
            sha256: written.sha256.clone(),
            columns: table.columns.clone(),
        };
        let manifest = Manifest {
            kohort: env!("CARGO_PKG_VERSION").to_owned(),
            algorithm: self.algorithm.to_owned(),
            requirement: requirement(self.spec),
            achieved: achieved(found),
            persons: self.persons,
            classes: found.classes,
            loss: self.loss.clone(),
            risk: Risk {
                highest: BeforeAfter { before: self.before.highest_risk, after: found.highest_risk },
                average: BeforeAfter { before: self.before.average_risk, after: found.average_risk },
            },
            tables: self.tables.iter().zip(written).map(entry).collect(),
            audiences: audiences(self.spec),
            savings: self.saved.as_ref().map(savings),
            registers: self.registers.as_ref().map_or_else(Vec::new, |facts| facts.registers.clone()),
            register: self.registers.as_ref().map(|facts| join(facts, self.spec, found)),
            previous: found.joined.as_ref().and_then(|found| found.together.as_ref()).map(|found| PreviousManifest {
                manifests: self.previous.clone(),
                k: found.k,
                l: found.l.iter().cloned().collect(),
            }),
            verified: true,
        };
        let table_loss = self.tables.iter().filter_map(|table| Some((table.name.clone(), table.loss.clone()?)));
        TablesManifest { manifest, links: self.links.clone(), table_loss: table_loss.collect() }
    }
}

fn join(facts: &RegisterFacts, spec: &Spec, found: &Findings) -> JoinManifest {
    let found = found.joined.as_ref();
    JoinManifest {
        method: facts.method.word().to_owned(),
        release: spec.register.release.word().to_owned(),
        joined_by: joined_by_word(facts.by).to_owned(),
        found: facts.found,
        contradicting: facts.contradicting,
        sensitive_groups: found.map_or(0, |found| found.groups),
        group_k: found.and_then(|found| found.group_k),
        presence: found.and_then(|found| found.presence).unwrap_or_default(),
    }
}

/// How persons were found in private table and registers, as a manifest says it.
pub(crate) fn joined_by_word(by: JoinedBy) -> &'static str {
    match by {
        JoinedBy::Key => "key",
        JoinedBy::Values => "values",
    }
}

/// How released tables join, as a manifest shows it.
pub(crate) fn link_manifests(links: &[ReleasedLink]) -> Vec<LinkManifest> {
    let entry = |link: &ReleasedLink| LinkManifest {
        table: link.child.clone(),
        foreign_key: link.foreign_key.clone(),
        parent: link.parent.clone(),
        key: link.key.clone(),
    };
    links.iter().map(entry).collect()
}

/// How released tables join, as a manifest says.
pub(crate) fn released_links(links: &[LinkManifest]) -> Vec<ReleasedLink> {
    let link = |entry: &LinkManifest| ReleasedLink {
        child: entry.table.clone(),
        foreign_key: entry.foreign_key.clone(),
        parent: entry.parent.clone(),
        key: entry.key.clone(),
    };
    links.iter().map(link).collect()
}

/// What a spec asks for.
pub(crate) fn requirement(spec: &Spec) -> RequirementManifest {
    let mut sensitive: BTreeMap<String, BTreeMap<String, Setting>> = BTreeMap::new();
    let mut person_k = false;
    let asked_of = |table: &TableSpec| {
        let name = (spec.tables.len() > 1).then(|| table.name.clone());
        spec.requirements(table).into_iter().map(move |requirement| (name.clone(), requirement))
    };
    for (table, requirement) in spec.tables.iter().flat_map(asked_of) {
        let settings = match requirement.column() {
            Some(column) if !matches!(requirement, Requirement::PersonK { .. }) => {
                sensitive.entry(column_name(table.as_deref(), column)).or_default()
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
    RequirementManifest {
        k: spec.k,
        person_k,
        collusion_k: spec.collusion_k,
        delta_presence: spec.delta_presence,
        max_suppressed: spec.max_suppressed,
        sensitive,
    }
}

/// Who receives a release, as a spec says.
pub(crate) fn audiences(spec: &Spec) -> BTreeMap<String, AudienceManifest> {
    let entry = |audience: Audience| {
        let k = audience.k();
        (audience.name, AudienceManifest { k, quasi: audience.quasi })
    };
    let audiences = spec.tables.first().and_then(|table| spec.audiences_of(table));
    audiences.into_iter().flat_map(|audiences| audiences.each).map(entry).collect()
}

/// What a manifest says was asked for each audience, from what it says was asked of the table; `None` where it names no
/// audience.
pub(crate) fn asked_for_audiences(
    audiences: &BTreeMap<String, AudienceManifest>,
    asked: &RequirementManifest,
    of_table: &[Requirement],
) -> Option<Audiences> {
    let audience = |(name, entry): (&String, &AudienceManifest)| {
        let others = of_table.iter().filter(|requirement| !matches!(requirement, Requirement::K(_))).cloned();
        let requirements = std::iter::once(Requirement::K(entry.k)).chain(others).collect();
        Audience { name: name.clone(), quasi: entry.quasi.clone(), requirements }
    };
    let each: Vec<Audience> = audiences.iter().map(audience).collect();
    (!each.is_empty()).then_some(Audiences { each, collusion_k: asked.collusion_k })
}

fn savings(saved: &Savings) -> SavingsManifest {
    let method = |losses: &Losses| MethodLoss { common_penalty: losses.common, own_penalty: losses.own, lm: losses.lm };
    SavingsManifest {
        shape: saved.shape.to_owned(),
        in_butterflies: saved.in_butterflies,
        bound: BoundManifest { asked: saved.asked, let_through: saved.let_through, taken: saved.taken },
        release: method(&saved.release),
        union: method(&saved.union),
        separate: method(&saved.separate),
    }
}

/// What a manifest says was asked of each table, `None` where it says something no spec can. A person's own k is not
/// among it: the column is not released, nor named.
pub(crate) fn requirements(asked: &RequirementManifest, tables: &[TableManifest]) -> Option<Vec<Vec<Requirement>>> {
    let mut requirements = vec![vec![Requirement::K(asked.k)]; tables.len()];
    for (name, settings) in &asked.sensitive {
        let (table, column) = place_of(name, tables)?;
        let column = || column.to_owned();
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
            requirements[table].push(requirement);
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
    let sensitive = sensitive_columns(found).into_iter().map(|(name, column)| (name, entry(column))).collect();
    let audiences = found.audiences.iter().map(|audience| (audience.audience.clone(), audience.k)).collect();
    Achieved { k: found.k, audiences, collusion_k: found.collusion_k, sensitive }
}

/// Every sensitive column that was counted, under its name in a manifest.
pub(crate) fn sensitive_columns(found: &Findings) -> Vec<(String, &SensitiveFindings)> {
    let of_one = found.sensitive.iter().map(|column| (column.column.clone(), column));
    let of_many = found.tables.iter().flat_map(|table| {
        table.sensitive.iter().map(|column| (column_name(Some(&table.table), &column.column), column))
    });
    of_one.chain(of_many).collect()
}

/// What a manifest calls a column; `table` where there are several.
fn column_name(table: Option<&str>, column: &str) -> String {
    match table {
        Some(table) => format!("{table}.{column}"),
        None => column.to_owned(),
    }
}

/// The released column that a manifest calls so, and the position of its table.
fn place_of<'m>(name: &'m str, tables: &'m [TableManifest]) -> Option<(usize, &'m str)> {
    if let [_] = tables {
        return Some((0, name));
    }
    let mut columns = tables.iter().enumerate().flat_map(|(position, table)| {
        table.columns.keys().map(move |column| (position, table.name.as_str(), column.as_str()))
    });
    let (position, _, column) = columns.find(|&(_, table, column)| column_name(Some(table), column) == name)?;
    Some((position, column))
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

    fn released(name: &str, columns: &[&str]) -> TableManifest {
        let known = || ColumnManifest { role: "sensitive".to_owned(), value_type: "text".to_owned() };
        TableManifest {
            name: name.to_owned(),
            file: format!("{name}.csv"),
            rows_in: 2,
            rows_out: 2,
            rows_suppressed: 0,
            sha256: String::new(),
            columns: columns.iter().map(|&column| (column.to_owned(), known())).collect(),
        }
    }

    #[test]
    fn columns_of_the_same_name_are_told_apart_by_their_tables() {
        let spec = Spec::parse(
            "k = 2\n[tables.a]\nfile = \"a.csv\"\nperson = \"id\"\ncolumns = { x = { role = \"sensitive\", l = 2 } }\n\
             [tables.b]\nfile = \"b.csv\"\nparent = { table = \"a\", foreign_key = \"id\" }\n\
             columns = { x = { role = \"sensitive\", l = 3 }, y = \"quasi\" }\n",
        )
        .unwrap();
        let asked = requirement(&spec);
        assert_eq!(asked.sensitive.keys().collect::<Vec<_>>(), ["a.x", "b.x"]);
        let l = |l| Requirement::DistinctL { column: "x".to_owned(), l };
        let found = requirements(&asked, &[released("a", &["id", "x"]), released("b", &["id", "x", "y"])]);
        assert_eq!(found.unwrap(), [[Requirement::K(2), l(2)], [Requirement::K(2), l(3)]]);
        assert!(requirements(&asked, &[released("a", &["id", "x"]), released("b", &["id", "y"])]).is_none());
    }

    #[test]
    fn what_was_asked_is_read_back_from_its_manifest() {
        let spec = Spec::parse(
            "k = 5\nmax_suppressed = 0.1\n[tables.a]\nfile = \"a.csv\"\n[tables.a.columns]\nage = \"quasi\"\n\
             x = { role = \"sensitive\", l = 3, entropy_l = 2, recursive_cl = [3, 2], t = 0.2, distance = \"ordered\" }\n\
             y = { role = \"sensitive\", alpha = 0.5, beta = 1, enhanced_beta = 1.5 }\n",
        )
        .unwrap();
        let asked = requirement(&spec);
        let json = serde_json::to_string(&asked).unwrap();
        let again: RequirementManifest = serde_json::from_str(&json).unwrap();
        assert_eq!(again, asked);
        let mut expected: Vec<String> =
            spec.requirements(&spec.tables[0]).iter().map(|requirement| format!("{requirement:?}")).collect();
        let mut found: Vec<String> =
            requirements(&again, &[released("a", &["x", "y"])]).unwrap()[0].iter().map(|r| format!("{r:?}")).collect();
        expected.sort();
        found.sort();
        assert_eq!(found, expected);
    }

    #[test]
    fn what_was_asked_for_audiences_is_read_back_from_its_manifest() {
        let spec = Spec::parse(
            "k = 5\n[tables.a]\nfile = \"a.csv\"\ncolumns = { x = { role = \"sensitive\", l = 3 } }\n\
             [audiences.hr]\nquasi = [\"age\", \"job\"]\nk = 3\n[audiences.insurer]\nquasi = [\"car\", \"age\"]\n\
             [collusion]\nk = 2\n",
        )
        .unwrap();
        let asked = requirement(&spec);
        let of_table = requirements(&asked, &[released("a", &["x"])]).unwrap().remove(0);
        let again = asked_for_audiences(&audiences(&spec), &asked, &of_table);
        assert_eq!(again, spec.audiences_of(&spec.tables[0]));
        assert_eq!(asked_for_audiences(&BTreeMap::new(), &asked, &of_table), None);
    }

    #[test]
    fn nothing_is_read_from_a_setting_that_no_spec_has() {
        let asked = |key: &str, setting| RequirementManifest {
            k: 2,
            person_k: false,
            collusion_k: None,
            delta_presence: None,
            max_suppressed: 0.0,
            sensitive: BTreeMap::from([("x".to_owned(), BTreeMap::from([(key.to_owned(), setting)]))]),
        };
        let tables = [released("a", &["x"])];
        assert!(requirements(&asked("l", Setting::Whole(2)), &tables).is_some());
        assert!(requirements(&asked("l", Setting::Word("two".to_owned())), &tables).is_none());
        assert!(requirements(&asked("m", Setting::Number(1.0)), &tables).is_none());
        assert!(requirements(&asked("distance", Setting::Word("far".to_owned())), &tables).is_none());
    }
}
