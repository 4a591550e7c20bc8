//! Makes the manifest of a release from the spec, the counts of the verifier and the written files; and reads from a
//! manifest what was asked.
//!
//! In a release of several tables sensitive columns are named `table.column`, because two tables may have columns of the
//! same name.

use std::collections::BTreeMap;

use kohort_core::audiences::{Losses, Savings};
use kohort_io::{JoinedBy, WrittenFile};
use kohort_model::spec::{Algorithm, ColumnSpec, LossObjective, RegisterMethod};
use kohort_model::{
    Achieved, AchievedCoalition, AchievedLearned, AchievedSensitive, AppliedManifest, Audience, AudienceManifest,
    Audiences, BeforeAfter, BoundManifest, Coalition, CoalitionManifest, Distance, JoinManifest, LinkManifest,
    LinkMeaning, Loss, Manifest, MethodLoss, Note, NoteManifest, Persons, PreviousManifest, ReferenceManifest,
    RegisterManifest, Requirement, RequirementManifest, Risk, SavingsManifest, Setting, Settings, Spec, Steer,
    TableManifest,
};
use kohort_verify::{
    AudienceFindings, BlatantRisk, Findings, LearnedFindings, LinkKind, ReleasedLink, SensitiveFindings, Suppressed,
};

/// The facts that a manifest is made from, besides the written files and their counts.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) algorithm: &'static str,
    /// Notes about work that differs from what a reader of the spec would expect.
    pub(crate) notes: Vec<Note>,
    /// Blatant risks that the publisher accepted.
    pub(crate) accepted_risks: Vec<BlatantRisk>,
    /// The loss in all tables together.
    pub(crate) loss: Loss,
    pub(crate) tables: Vec<TableFacts>,
    pub(crate) links: Vec<LinkManifest>,
    /// What one release for all audiences saved, if there are audiences.
    pub(crate) saved: Option<Savings>,
    /// What was done with registers, if there are any.
    pub(crate) registers: Option<RegisterFacts>,
    /// The earlier release whose classes were applied, if any.
    pub(crate) applied: Option<AppliedManifest>,
    /// Digests of the manifests of earlier releases, whose readers may also read this one.
    pub(crate) previous: Vec<String>,
    /// The counts of the private tables, as if their quasi columns were released unchanged.
    pub(crate) before: Findings,
}

/// The facts about registers.
#[derive(Debug)]
pub(crate) struct RegisterFacts {
    pub(crate) registers: Vec<RegisterManifest>,
    pub(crate) method: RegisterMethod,
    pub(crate) partitioners: Vec<&'static str>,
    pub(crate) by: JoinedBy,
    /// Persons of the private table who are in the registers.
    pub(crate) found: u64,
    pub(crate) contradicting: u64,
}

/// The facts about one table.
#[derive(Debug)]
pub(crate) struct TableFacts {
    pub(crate) name: String,
    pub(crate) rows_in: u64,
    /// The loss in this table, if there are several.
    pub(crate) loss: Option<Loss>,
}

impl Facts {
    /// The manifest of a release. `written` are its files in the order of its tables, and `found` is what the verifier
    /// counted in them.
    pub(crate) fn manifest(&self, spec: &Spec, written: &[WrittenFile], found: &Findings) -> Manifest {
        let suppressed = found.suppressed.expect("the verifier compared the release with the private tables");
        let of_tables: Vec<Option<Suppressed>> = found.tables.iter().map(|table| table.suppressed).collect();
        let entry = |(position, (table, written)): (usize, (&TableFacts, &WrittenFile))| TableManifest {
            name: table.name.clone(),
            file: written.name.clone(),
            rows_in: table.rows_in,
            rows_out: written.n_rows,
            // With one private table, the rows that were left out of it are missing in every file.
            rows_suppressed: of_tables.get(position).copied().flatten().unwrap_or(suppressed).rows,
            sha256: written.sha256.clone(),
            csv: written.csv.clone(),
            columns: written.columns.clone(),
        };
        let table_loss = self.tables.iter().filter_map(|table| Some((table.name.clone(), table.loss.clone()?)));
        let references = found.tables.iter().flat_map(|table| {
            table.references.iter().map(|reference| ReferenceManifest {
                table: table.table.clone(),
                column: reference.column.clone(),
                kept: reference.kept,
                removed: reference.removed.unwrap_or(0),
            })
        });
        // Cells of a table and some algorithms minimize what they always do, which a note says.
        let follows_objective = !matches!(spec.algorithm, Algorithm::Datafly | Algorithm::FullDomain)
            && !self.notes.contains(&Note::ObjectiveInCells);
        Manifest {
            kohort: env!("CARGO_PKG_VERSION").to_owned(),
            algorithm: self.algorithm.to_owned(),
            effort: Some(spec.effort).filter(|&effort| effort != 1),
            objective: Some(&spec.objective)
                .filter(|objective| follows_objective && **objective != LossObjective::Lm)
                .map(|objective| objective.word().into_owned()),
            weights: spec
                .weights()
                .filter(|_| follows_objective)
                .map(|(_, column)| (column.name.clone(), column.weight))
                .collect(),
            order: spec.order,
            requirement: requirement(spec),
            achieved: achieved(found),
            persons: Persons {
                n_in: found.persons + suppressed.persons,
                n_out: found.persons,
                suppressed: suppressed.persons,
            },
            classes: found.classes,
            loss: self.loss.clone(),
            risk: Risk {
                highest: risk(spec, self.before.highest_risk, found.highest_risk),
                average: risk(spec, self.before.average_risk, found.average_risk),
            },
            tables: self.tables.iter().zip(written).enumerate().map(entry).collect(),
            audiences: audiences(spec),
            savings: self.saved.as_ref().map(|saved| savings(saved, spec.steer)),
            registers: self.registers.as_ref().map_or_else(Vec::new, |facts| facts.registers.clone()),
            register: self.registers.as_ref().map(|facts| join(facts, spec, found)),
            previous: found.joined.as_ref().and_then(|found| found.together.as_ref()).map(|found| PreviousManifest {
                manifests: self.previous.clone(),
                k: found.k,
                l: found.l.iter().cloned().collect(),
            }),
            applied: self.applied.clone(),
            notes: self.notes.iter().map(NoteManifest::from).collect(),
            accepted_risks: self.accepted_risks.iter().map(NoteManifest::from).collect(),
            verified: true,
            links: self.links.clone(),
            references: references.collect(),
            table_loss: table_loss.collect(),
        }
    }
}

/// A risk before and after. If only common columns may steer, the risk before is left out, because it depends on the
/// columns of all audiences.
fn risk(spec: &Spec, before: f64, after: f64) -> BeforeAfter {
    let before = match spec.steer {
        Steer::All => Some(before),
        Steer::Common => None,
    };
    BeforeAfter { before, after }
}

fn join(facts: &RegisterFacts, spec: &Spec, found: &Findings) -> JoinManifest {
    let found = found.joined.as_ref();
    JoinManifest {
        method: facts.method.word().to_owned(),
        partitioners: facts.partitioners.iter().map(|&name| name.to_owned()).collect(),
        release: spec.register.release.word().to_owned(),
        joined_by: joined_by_word(facts.by).to_owned(),
        found: facts.found,
        unmatched: match facts.by {
            JoinedBy::Key => None,
            JoinedBy::Values => Some(spec.unmatched().word().to_owned()),
        },
        contradicting: facts.contradicting,
        sensitive_groups: found.map_or(0, |found| found.groups),
        group_k: found.and_then(|found| found.group_k),
        presence: found.and_then(|found| found.presence).unwrap_or_default(),
    }
}

/// The word for how persons of the private table were found in registers.
pub(crate) fn joined_by_word(by: JoinedBy) -> &'static str {
    match by {
        JoinedBy::Key => "key",
        JoinedBy::Values => "values",
    }
}

/// The links between released tables as a manifest writes them.
pub(crate) fn link_manifests(links: &[ReleasedLink]) -> Vec<LinkManifest> {
    let entry = |link: &ReleasedLink| LinkManifest {
        kind: match link.kind {
            LinkKind::Parent => LinkMeaning::Parent,
            LinkKind::Reference => LinkMeaning::Reference,
        },
        table: link.child.clone(),
        foreign_key: link.foreign_key.clone(),
        parent: link.parent.clone(),
        key: link.key.clone(),
    };
    links.iter().map(entry).collect()
}

/// The links between released tables that a manifest names.
pub(crate) fn released_links(links: &[LinkManifest]) -> Vec<ReleasedLink> {
    let link = |entry: &LinkManifest| ReleasedLink {
        kind: match entry.kind {
            LinkMeaning::Parent => LinkKind::Parent,
            LinkMeaning::Reference => LinkKind::Reference,
        },
        child: entry.table.clone(),
        foreign_key: entry.foreign_key.clone(),
        parent: entry.parent.clone(),
        key: entry.key.clone(),
    };
    links.iter().map(link).collect()
}

/// The requirement of a spec.
pub(crate) fn requirement(spec: &Spec) -> RequirementManifest {
    let mut sensitive = Settings::new();
    let mut person_k = false;
    for table in &spec.tables {
        let name = (spec.tables.len() > 1).then_some(table.name.as_str());
        let asked = spec.requirements(table);
        person_k |= asks_own_k(&asked);
        sensitive.extend(settings(name, &asked));
    }
    let audiences = spec.tables.first().and_then(|table| spec.audiences_of(table));
    let coalitions = audiences.as_ref().map_or(&[][..], |audiences| &audiences.coalitions);
    let of_all = coalitions.iter().find(|coalition| coalition.name.is_none());
    let entry = |coalition: &Coalition| {
        let asked = CoalitionManifest {
            audiences: coalition.members.clone(),
            k: coalition.k(),
            person_k: asks_own_k(&coalition.requirements),
            sensitive: settings(None, &coalition.requirements),
        };
        (coalition.word().to_owned(), asked)
    };
    RequirementManifest {
        k: spec.k,
        person_k,
        collusion_k: of_all.and_then(Coalition::k),
        coalitions: coalitions.iter().map(entry).collect(),
        steer: match spec.steer {
            Steer::All => None,
            Steer::Common => Some("common".to_owned()),
        },
        delta_presence: spec.delta_presence,
        max_suppressed: spec.max_suppressed,
        max_rows_left_out: spec
            .tables
            .iter()
            .filter_map(|table| Some((table.name.clone(), table.max_rows_left_out?)))
            .collect(),
        sensitive,
    }
}

/// Whether each person's own k is asked for.
fn asks_own_k(requirements: &[Requirement]) -> bool {
    requirements.iter().any(|requirement| requirement.own_k_column().is_some())
}

/// Requirements on columns as a spec writes them. `table` is given if there are several.
pub(crate) fn settings(table: Option<&str>, requirements: &[Requirement]) -> Settings {
    let mut settings = Settings::new();
    for requirement in requirements {
        let mut set = |column: &str, entries: Vec<(&str, Setting)>| {
            let of_column = settings.entry(column_name(table, column)).or_default();
            of_column.extend(entries.into_iter().map(|(key, setting)| (key.to_owned(), setting)));
        };
        match requirement {
            Requirement::K(_) | Requirement::PersonK { .. } => {}
            Requirement::DistinctL { column, l } => set(column, vec![("l", Setting::Whole((*l).into()))]),
            Requirement::EntropyL { column, l } => set(column, vec![("entropy_l", Setting::Number(*l))]),
            Requirement::RecursiveCL { column, c, l } => {
                set(column, vec![("recursive_cl", Setting::Numbers(vec![*c, f64::from(*l)]))]);
            }
            Requirement::TCloseness { column, t, distance } => {
                let distance = Setting::Word(distance_word(*distance).to_owned());
                set(column, vec![("t", Setting::Number(*t)), ("distance", distance)]);
            }
            Requirement::Alpha { column, alpha } => set(column, vec![("alpha", Setting::Number(*alpha))]),
            Requirement::Beta { column, beta } => set(column, vec![("beta", Setting::Number(*beta))]),
            Requirement::EnhancedBeta { column, beta } => set(column, vec![("enhanced_beta", Setting::Number(*beta))]),
        }
    }
    settings
}

/// The audiences of a spec.
pub(crate) fn audiences(spec: &Spec) -> BTreeMap<String, AudienceManifest> {
    let Some(table) = spec.tables.first() else { return BTreeMap::new() };
    let entry = |audience: Audience| {
        let k = audience.k();
        let is_hidden = |column: &&ColumnSpec| column.sensitive_to.contains(&audience.name);
        let hidden = table.columns.iter().filter(is_hidden);
        let sensitive = hidden.flat_map(|column| settings(None, &column.requirements)).collect();
        (audience.name, AudienceManifest { k, quasi: audience.quasi, sensitive })
    };
    let audiences = spec.audiences_of(table);
    audiences.into_iter().flat_map(|audiences| audiences.each).map(entry).collect()
}

/// What was asked for each audience according to a manifest, given what was asked of the table; `None` if the manifest
/// names no audience.
///
/// # Errors
/// If the manifest asks for something that no spec can ask for.
pub(crate) fn asked_for_audiences(
    audiences: &BTreeMap<String, AudienceManifest>,
    asked: &RequirementManifest,
    of_table: &[Requirement],
) -> Result<Option<Audiences>, UnknownSetting> {
    let audience = |(name, entry): (&String, &AudienceManifest)| {
        let others = of_table.iter().filter(|requirement| requirement.k().is_none()).cloned();
        let mut requirements: Vec<Requirement> = std::iter::once(Requirement::K(entry.k)).chain(others).collect();
        requirements.extend(of_columns(&entry.sensitive)?);
        Ok(Audience { name: name.clone(), quasi: entry.quasi.clone(), requirements })
    };
    let each: Vec<Audience> = audiences.iter().map(audience).collect::<Result<_, _>>()?;
    if each.is_empty() {
        return Ok(None);
    }
    // Newer manifests also name the k of all audiences together among the coalitions.
    let collusion_k = asked.collusion_k.filter(|_| !asked.coalitions.contains_key(Coalition::ALL));
    let mut audiences = Audiences::new(each).with_collusion_k(collusion_k);
    for (name, entry) in &asked.coalitions {
        let mut requirements: Vec<Requirement> = entry.k.map(Requirement::K).into_iter().collect();
        requirements.extend(of_columns(&entry.sensitive)?);
        let name = (name != Coalition::ALL).then(|| name.clone());
        audiences.coalitions.push(Coalition { name, members: entry.audiences.clone(), requirements });
    }
    Ok(Some(audiences))
}

/// The requirements of some columns.
fn of_columns(settings: &Settings) -> Result<Vec<Requirement>, UnknownSetting> {
    let read = |(column, settings): (&String, &BTreeMap<String, Setting>)| read_settings(column, settings);
    let read: Option<Vec<Vec<Requirement>>> = settings.iter().map(read).collect();
    Ok(read.ok_or(UnknownSetting)?.concat())
}

/// A manifest asks for something that no spec can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnknownSetting;

fn savings(saved: &Savings, steer: Steer) -> SavingsManifest {
    let method = |losses: &Losses| MethodLoss { common_penalty: losses.common, own_penalty: losses.own, lm: losses.lm };
    let bound = BoundManifest { asked: saved.asked, let_through: saved.let_through, taken: saved.taken };
    let if_free = |loss: MethodLoss| (steer == Steer::All).then_some(loss);
    SavingsManifest {
        shape: saved.shape.to_owned(),
        in_butterflies: saved.in_butterflies,
        bound: (steer == Steer::All).then_some(bound),
        release: method(&saved.release),
        union: if_free(method(&saved.union)),
        separate: if_free(method(&saved.separate)),
        least_penalty: (steer == Steer::All).then_some(saved.least),
        steer_cost: saved.steer_cost.map(|cost| if cost.free > 0.0 { cost.steered / cost.free } else { 1.0 }),
    }
}

/// What was asked of each table according to a manifest; `None` if no spec can ask for it. A person's own k is missing,
/// because its column is neither released nor named.
pub(crate) fn requirements(asked: &RequirementManifest, tables: &[TableManifest]) -> Option<Vec<Vec<Requirement>>> {
    let mut requirements = vec![vec![Requirement::K(asked.k)]; tables.len()];
    for (name, settings) in &asked.sensitive {
        let (table, column) = place_of(name, tables)?;
        requirements[table].extend(read_settings(column, settings)?);
    }
    Some(requirements)
}

/// The requirements that settings ask of a column; `None` if no spec can ask for them.
fn read_settings(column: &str, settings: &BTreeMap<String, Setting>) -> Option<Vec<Requirement>> {
    let mut requirements = Vec::new();
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
        requirements.push(requirement);
    }
    Some(requirements)
}

/// The counts of the verifier as a manifest writes them.
pub(crate) fn achieved(found: &Findings) -> Achieved {
    let sensitive = sensitive_columns(found).into_iter().map(|(name, column)| (name, achieved_sensitive(column)));
    let learned = found.audiences.iter().filter(|audience| !audience.learned.is_empty());
    Achieved {
        k: found.k,
        audiences: found.audiences.iter().map(|audience| (audience.audience.clone(), audience.k)).collect(),
        collusion_k: found.collusion_k,
        coalitions: found.coalitions.iter().map(achieved_coalition).collect(),
        learned: learned.map(|audience| (audience.audience.clone(), achieved_learned(&audience.learned))).collect(),
        sensitive: sensitive.collect(),
    }
}

fn achieved_sensitive(column: &SensitiveFindings) -> AchievedSensitive {
    AchievedSensitive {
        l: column.l,
        entropy_l: column.entropy_l,
        t: column.t,
        t_by_distance: column.t_by_distance(),
        alpha: column.alpha,
        beta: column.beta,
    }
}

fn achieved_coalition(found: &AudienceFindings) -> (String, AchievedCoalition) {
    let sensitive = found.sensitive.iter().map(|column| (column.column.clone(), achieved_sensitive(column)));
    let learned = achieved_learned(&found.learned);
    (found.audience.clone(), AchievedCoalition { k: found.k, sensitive: sensitive.collect(), learned })
}

fn achieved_learned(found: &[LearnedFindings]) -> BTreeMap<String, AchievedLearned> {
    let entry = |column: &LearnedFindings| {
        let LearnedFindings { column, l, t, certain } = column;
        (column.clone(), AchievedLearned { l: *l, t: *t, certain: *certain })
    };
    found.iter().map(entry).collect()
}

/// Every sensitive column that was counted, under its name in a manifest.
pub fn sensitive_columns(found: &Findings) -> Vec<(String, &SensitiveFindings)> {
    let of_one = found.sensitive.iter().map(|column| (column.column.clone(), column));
    let of_many = found.tables.iter().flat_map(|table| {
        let table_name = (found.tables.len() > 1).then_some(table.table.as_str());
        table.sensitive.iter().map(move |column| (column_name(table_name, &column.column), column))
    });
    of_one.chain(of_many).collect()
}

/// The name of a column in a manifest. `table` is given if there are several.
fn column_name(table: Option<&str>, column: &str) -> String {
    match table {
        Some(table) => format!("{table}.{column}"),
        None => column.to_owned(),
    }
}

/// The released column with this name in a manifest, and the position of its table.
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
        let known = || kohort_model::ColumnManifest::new("sensitive", "text");
        TableManifest {
            name: name.to_owned(),
            file: format!("{name}.csv"),
            rows_in: 2,
            rows_out: 2,
            rows_suppressed: 0,
            sha256: String::new(),
            csv: None,
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
    fn requirements_are_read_back_from_the_manifest() {
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
    fn requirements_of_audiences_are_read_back_from_the_manifest() {
        let spec = Spec::parse(
            "k = 5\n[tables.a]\nfile = \"a.csv\"\ncolumns = { x = { role = \"sensitive\", l = 3 } }\n\
             [audiences.hr]\nquasi = [\"age\", \"job\"]\nk = 3\n[audiences.insurer]\nquasi = [\"car\", \"age\"]\n\
             [collusion]\nk = 2\n",
        )
        .unwrap();
        let asked = requirement(&spec);
        let of_table = requirements(&asked, &[released("a", &["x"])]).unwrap().remove(0);
        let again = asked_for_audiences(&audiences(&spec), &asked, &of_table);
        assert_eq!(again, Ok(spec.audiences_of(&spec.tables[0])));
        assert_eq!(asked_for_audiences(&BTreeMap::new(), &asked, &of_table), Ok(None));
    }

    #[test]
    fn nothing_is_read_from_a_setting_that_no_spec_has() {
        let asked = |key: &str, setting| RequirementManifest {
            k: 2,
            person_k: false,
            collusion_k: None,
            coalitions: BTreeMap::new(),
            steer: None,
            delta_presence: None,
            max_suppressed: 0.0,
            max_rows_left_out: BTreeMap::new(),
            sensitive: BTreeMap::from([("x".to_owned(), BTreeMap::from([(key.to_owned(), setting)]))]),
        };
        let tables = [released("a", &["x"])];
        assert!(requirements(&asked("l", Setting::Whole(2)), &tables).is_some());
        assert!(requirements(&asked("l", Setting::Word("two".to_owned())), &tables).is_none());
        assert!(requirements(&asked("m", Setting::Number(1.0)), &tables).is_none());
        assert!(requirements(&asked("distance", Setting::Word("far".to_owned())), &tables).is_none());
    }
}
