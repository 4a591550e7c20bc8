//! [`Job`]: from a spec to a verified release in memory, of one table or of several that hang together.

use std::borrow::Cow;
use std::io::Write;
use std::path::Path;

use kohort_core::audiences::{AnonymizedForAudiences, Savings, anonymize_audiences};
use kohort_core::register::{AnonymizedWithRegister, anonymize_with_register};
use kohort_core::relational::anonymize_tables;
use kohort_core::{AnonymizeError, Anonymized, anonymize};
use kohort_io::{
    CellForm, ColumnManifests, LoadedRegister, LoadedRegisters, LoadedTable, LoadedTables, TablesManifest,
    WriteOptions, WrittenFile, load, load_registers, load_tables, write_csv_to, write_joined, write_release,
    write_tables,
};
use kohort_model::{
    Audiences, Column, InRegister, JoinedRegister, NULL, PreviousRelease, Progress, RegisterManifest, Release,
    ReleasedTable, Requirement, Role, Schema, Spec, Table,
};
use kohort_verify::{
    Asked, AskedOfJoin, BlatantRisk, Findings, ReleasedLink, SuppressionLimit, ToldApart, Verified, Violations,
    find_diversity_risks, find_risks, measure, measure_tables, verify_joined, verify_release, verify_tables,
};

use crate::described::own_values_listed;
use crate::failure::{Failure, Report, Status, violation_reports};
use crate::manifest::{Facts, RegisterFacts, TableFacts, link_manifests};
use crate::previous::Previous;

/// A verified release, ready to be written.
pub(crate) struct Job<'a> {
    facts: Facts<'a>,
    release: Verified<Release>,
    originals: Originals,
    /// Rows of the private table, from 1, that no class can take beside earlier releases. For the publisher alone: the
    /// release and its manifest must not tell who was left out.
    pub(crate) rows_left_out: Vec<u64>,
}

/// How a job is done.
#[derive(Clone, Copy)]
pub(crate) struct JobOptions {
    /// How generalized cells are written.
    pub(crate) cells: CellForm,
    /// What becomes of a release with a blatant risk.
    pub(crate) risks: Risks,
}

/// What becomes of a release with a blatant risk.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Risks {
    /// There is none.
    Refused,
    /// The publisher knows, and the manifest says so.
    Accepted,
}

impl JobOptions {
    /// Risks that were accepted, or a failure that names them all.
    fn judge(self, risks: Vec<BlatantRisk>) -> Result<Vec<BlatantRisk>, Failure> {
        if risks.is_empty() || self.risks == Risks::Accepted {
            return Ok(risks);
        }
        let mut reports: Vec<Report> =
            risks.iter().map(|risk| Report::new(risk.to_string()).hint(risk.hint())).collect();
        reports.push(
            Report::new("the requirement holds, but these risks make it worth little, so nothing was written")
                .hint("change the spec, or give --accept-risks if none of them matters for your data; the manifest then lists them"),
        );
        Err(Failure::new(Status::Input, reports))
    }
}

/// The private tables a release was made from, and what was asked of them.
enum Originals {
    /// One that stands alone.
    One(Box<LoadedTable>, AskedOfOne),
    /// Several.
    Many(LoadedTables, Vec<Vec<Requirement>>),
    /// One beside registers.
    Joined(Box<LoadedTable>, JoinedRegister, Vec<Requirement>, Vec<PreviousRelease>),
}

/// What is asked of one table.
pub(crate) enum AskedOfOne {
    /// For everybody alike.
    OfAll(Vec<Requirement>),
    /// Audience by audience.
    OfAudiences(Audiences),
}

impl AskedOfOne {
    pub(crate) fn new(spec: &Spec) -> Self {
        let table = &spec.tables[0];
        match spec.audiences_of(table) {
            Some(audiences) => AskedOfOne::OfAudiences(audiences),
            None => AskedOfOne::OfAll(spec.requirements(table)),
        }
    }

    /// All that is asked, of whomever.
    fn requirements(&self) -> Vec<Requirement> {
        match self {
            AskedOfOne::OfAll(requirements) => requirements.clone(),
            AskedOfOne::OfAudiences(audiences) => {
                audiences.each.iter().flat_map(|audience| audience.requirements.iter().cloned()).collect()
            }
        }
    }

    fn anonymize(
        &self,
        table: &Table,
        spec: &Spec,
        progress: &dyn Progress,
    ) -> Result<(Anonymized, Option<Savings>), AnonymizeError> {
        match self {
            AskedOfOne::OfAll(requirements) => Ok((anonymize(table, spec, requirements, progress)?, None)),
            AskedOfOne::OfAudiences(audiences) => {
                let done = anonymize_audiences(table, spec, audiences, progress)?;
                let AnonymizedForAudiences { anonymized, saved } = done;
                Ok((anonymized, Some(saved)))
            }
        }
    }

    /// Says which audience asks for more persons than there are.
    fn check_persons(&self, n_persons: u64) -> Result<(), Failure> {
        let AskedOfOne::OfAudiences(audiences) = self else { return Ok(()) };
        let of_each = audiences.each.iter().map(|audience| (format!("audience '{}'", audience.name), audience.k()));
        let together = audiences.coalitions.iter().filter_map(|coalition| {
            let who = match &coalition.name {
                None => "all audiences together".to_owned(),
                Some(name) => format!("coalition '{name}'"),
            };
            Some((who, coalition.k()?))
        });
        let too_many = of_each.chain(together).filter(|&(_, k)| u64::from(k) > n_persons);
        let reports: Vec<Report> = too_many
            .map(|(who, k)| {
                Report::new(format!("{who}: k = {k} can't be reached, there are only {n_persons} persons"))
                    .hint("ask for a smaller k, or release more persons")
            })
            .collect();
        if reports.is_empty() { Ok(()) } else { Err(Failure::new(Status::NotMet, reports)) }
    }
}

impl<'a> From<&'a AskedOfOne> for Asked<'a> {
    fn from(asked: &'a AskedOfOne) -> Self {
        match asked {
            AskedOfOne::OfAll(requirements) => Asked::OfAll(requirements),
            AskedOfOne::OfAudiences(audiences) => Asked::OfAudiences(audiences),
        }
    }
}

impl<'a> Job<'a> {
    /// Reads, anonymizes and verifies what a spec asks for. `folder` is where the spec's paths start.
    pub(crate) fn run(
        spec: &'a Spec,
        folder: &Path,
        options: JobOptions,
        progress: &dyn Progress,
    ) -> Result<Self, Failure> {
        match spec.tables.as_slice() {
            [_] if !spec.registers.is_empty() => Job::of_joined(spec, folder, options, progress),
            [_] if !spec.links_rows() => Job::of_one(spec, folder, options, progress),
            _ => Job::of_many(spec, folder, options, progress),
        }
    }

    fn of_one(spec: &'a Spec, folder: &Path, options: JobOptions, progress: &dyn Progress) -> Result<Self, Failure> {
        let original = load(folder, spec, &spec.tables[0], progress)?.released_as(options.cells)?;
        let asked = AskedOfOne::new(spec);
        let quasi = original.table.with_role(Role::Quasi);
        let before = measure(&original.table, &quasi, &[], &asked).map_err(|violations| fault(&violations))?;
        asked.check_persons(before.persons)?;
        let (done, saved) = asked.anonymize(&original.table, spec, progress)?;
        progress.begin("verifying", 0);
        let release = verify_release(done.release, &original.table, &asked, limit_of(spec))
            .map_err(|violations| fault(&violations))?;
        let released = &release.get().tables[0];
        let accepted_risks = options.judge(find_risks(&original.table, &asked.requirements(), Some(released)))?;
        let table = TableFacts { name: original.table.name.clone(), rows_in: original.table.n_rows as u64, loss: None };
        let facts = Facts {
            spec,
            algorithm: done.algorithm,
            notes: done.notes,
            accepted_risks,
            loss: done.loss,
            tables: vec![table],
            links: Vec::new(),
            saved,
            registers: None,
            previous: Vec::new(),
            before,
        };
        Ok(Job { facts, release, originals: Originals::One(Box::new(original), asked), rows_left_out: Vec::new() })
    }

    fn of_many(spec: &'a Spec, folder: &Path, options: JobOptions, progress: &dyn Progress) -> Result<Self, Failure> {
        let originals = load_tables(folder, spec, progress)?.released_as(options.cells)?;
        let (tables, schema) = (originals.tables.as_slice(), &originals.schema);
        let requirements: Vec<Vec<Requirement>> = spec.tables.iter().map(|table| spec.requirements(table)).collect();
        let done = anonymize_tables(tables, schema, spec, progress)?;
        progress.begin("verifying", 0);
        let links = ReleasedLink::of(schema, tables);
        let before =
            measure_tables(&without_orphans(tables, schema), &links).map_err(|violations| fault(&violations))?;
        let release = verify_tables(done.release, tables, schema, &requirements, limit_of(spec))
            .map_err(|violations| fault(&violations))?;
        let risks = tables.iter().zip(&requirements).flat_map(|(table, asked)| find_diversity_risks(table, asked));
        let accepted_risks = options.judge(risks.collect())?;
        let of_tables = tables.iter().zip(done.loss_of_tables).map(|(table, loss)| TableFacts {
            name: table.name.clone(),
            rows_in: table.n_rows as u64,
            loss: Some(loss),
        });
        let facts = Facts {
            spec,
            algorithm: done.algorithm,
            notes: done.notes,
            accepted_risks,
            loss: done.loss,
            tables: of_tables.collect(),
            links: link_manifests(&links),
            saved: None,
            registers: None,
            previous: Vec::new(),
            before,
        };
        Ok(Job { facts, release, originals: Originals::Many(originals, requirements), rows_left_out: Vec::new() })
    }

    fn of_joined(spec: &'a Spec, folder: &Path, options: JobOptions, progress: &dyn Progress) -> Result<Self, Failure> {
        let mut original = load(folder, spec, &spec.tables[0], progress)?.released_as(options.cells)?;
        let LoadedRegisters { joined, registers, by, contradicting, earlier } =
            load_registers(folder, spec, &mut original, progress)?;
        let requirements = spec.requirements(&spec.tables[0]);
        let quasi = original.table.with_role(Role::Quasi);
        let before = measure(&original.table, &quasi, &[], &requirements).map_err(|violations| fault(&violations))?;
        let previous = Previous::read(spec, folder, &original.table, &joined, (&registers, &earlier), progress)?;
        let done =
            anonymize_with_register(&original.table, &joined, &previous.releases, spec, &requirements, progress)?;
        let used: Vec<u64> = registers.iter().map(|register| n_used(&done, register)).collect();
        let AnonymizedWithRegister { anonymized: done, method, partitioners, left_out, .. } = done;
        progress.begin("verifying", 0);
        let asked = asked_of_join(spec, &requirements, &previous.releases);
        let release =
            verify_joined(done.release, &original.table, &joined, asked).map_err(|violations| fault(&violations))?;
        let accepted_risks = options.judge(find_risks(&original.table, &requirements, None))?;
        let released = &release.get().tables;
        let of_tables = released.iter().map(|table| TableFacts {
            name: table.name.clone(),
            rows_in: original.table.n_rows as u64,
            loss: None,
        });
        let entry = |(register, rows_used): (LoadedRegister, u64)| RegisterManifest {
            name: register.name,
            date: register.date,
            sha256: register.sha256,
            rows: register.rows,
            rows_incomplete: register.incomplete,
            rows_used,
        };
        let registers = registers.into_iter().zip(used).map(entry).collect();
        let found = joined.persons.iter().filter(|person| **person != InRegister::Absent).count() as u64;
        let facts = Facts {
            spec,
            algorithm: done.algorithm,
            notes: done.notes,
            accepted_risks,
            loss: done.loss,
            tables: of_tables.collect(),
            links: Vec::new(),
            saved: None,
            registers: Some(RegisterFacts { registers, method, partitioners, by, found, contradicting }),
            previous: previous.manifests,
            before,
        };
        Ok(Job {
            facts,
            release,
            originals: Originals::Joined(Box::new(original), joined, requirements, previous.releases),
            rows_left_out: left_out.into_iter().map(|row| u64::from(row) + 1).collect(),
        })
    }

    /// Writes the release to a folder.
    pub(crate) fn write(
        &self,
        folder: &Path,
        options: WriteOptions,
        progress: &dyn Progress,
    ) -> Result<TablesManifest, Failure> {
        let manifest = |files: &[WrittenFile], found: &Findings| self.facts.manifest(files, found);
        match &self.originals {
            Originals::One(original, asked) => {
                let manifest =
                    |file: &WrittenFile, found: &Findings| manifest(std::slice::from_ref(file), found).manifest;
                let written = write_release(&self.release, original, asked, manifest, folder, options, progress)?;
                Ok(written.into())
            }
            Originals::Many(originals, requirements) => {
                Ok(write_tables(&self.release, originals, requirements, manifest, folder, options, progress)?)
            }
            Originals::Joined(original, joined, requirements, previous) => {
                let asked = asked_of_join(self.facts.spec, requirements, previous);
                Ok(write_joined(&self.release, original, joined, asked, manifest, folder, options, progress)?)
            }
        }
    }

    /// Prints the only table of the release as CSV.
    pub(crate) fn print(&self, target: &mut dyn Write) -> Result<TablesManifest, Failure> {
        match &self.originals {
            Originals::One(original, asked) => {
                let found = write_csv_to(target, &self.release, original, asked)?;
                Ok(self.facts.manifest(&self.unwritten(), &found))
            }
            Originals::Many(..) | Originals::Joined(..) => Err(cannot_print_several()),
        }
    }

    /// Columns of which the released part of a hierarchy may tell which values the private table holds.
    pub(crate) fn own_values_listed(&self) -> Vec<String> {
        let private: Vec<&Table> = match &self.originals {
            Originals::One(original, _) | Originals::Joined(original, ..) => vec![&original.table],
            Originals::Many(originals, _) => originals.tables.iter().collect(),
        };
        own_values_listed(self.facts.spec, &self.release.get().tables, &private)
    }

    /// What the manifest would say if the release were written.
    pub(crate) fn manifest(&self) -> TablesManifest {
        self.facts.manifest(&self.unwritten(), self.release.findings())
    }

    fn unwritten(&self) -> Vec<WrittenFile> {
        let released = &self.release.get().tables;
        let columns = match &self.originals {
            Originals::One(original, _) => vec![original.column_manifests(&released[0])],
            Originals::Many(originals, _) => originals.column_manifests(released),
            Originals::Joined(original, joined, ..) => original.joined_column_manifests(joined, released),
        };
        let unnamed = |(table, columns): (&ReleasedTable, ColumnManifests)| WrittenFile {
            name: String::new(),
            sha256: String::new(),
            n_rows: table.rows.len() as u64,
            csv: None,
            columns,
        };
        released.iter().zip(columns).map(unnamed).collect()
    }
}

/// What is asked of a release beside a register.
pub(crate) fn asked_of_join<'a>(
    spec: &Spec,
    requirements: &'a [Requirement],
    previous: &'a [PreviousRelease],
) -> AskedOfJoin<'a> {
    AskedOfJoin {
        requirements,
        delta_presence: spec.delta_presence,
        rows: spec.register.release,
        told_apart: told_apart(spec),
        previous,
        limit: limit_of(spec),
    }
}

/// How many persons a spec allows to be left out.
pub(crate) fn limit_of(spec: &Spec) -> SuppressionLimit {
    SuppressionLimit::share(spec.max_suppressed)
}

/// How private persons and register persons are told apart.
fn told_apart(spec: &Spec) -> ToldApart {
    let by_key = spec.registers.values().any(|register| register.key.is_some());
    if by_key { ToldApart::ByKey } else { ToldApart::ByValues(spec.unmatched()) }
}

/// How many persons of a register are in the classes.
fn n_used(done: &AnonymizedWithRegister, register: &LoadedRegister) -> u64 {
    let rows = done.classes.iter().flat_map(|class| &class.register);
    rows.filter(|row| register.joined.contains(row)).count() as u64
}

/// Only one table fits into a stream.
pub(crate) fn cannot_print_several() -> Failure {
    Failure::input("several tables can't be printed", "name a folder, for example -o out/")
}

/// Our own release did not pass: nothing the user did.
fn fault(violations: &Violations) -> Failure {
    let mut reports = vec![
        Report::new("the release did not pass its verification, so nothing was written")
            .hint("this is a fault of kohort: please report it"),
    ];
    reports.extend(violation_reports(&violations.0));
    Failure::new(Status::Fault, reports)
}

/// The tables less the rows that lead to no person.
pub(crate) fn without_orphans<'t>(tables: &'t [Table], schema: &Schema) -> Cow<'t, [Table]> {
    let parents: Vec<Option<Vec<u32>>> = (0..tables.len()).map(|table| schema.parent_rows(tables, table)).collect();
    let mut stays: Vec<Option<Vec<bool>>> = vec![None; tables.len()];
    let mut next = schema.roots();
    while let Some(table) = next.pop() {
        let of_parent = schema.tables[table].parent.and_then(|parent| stays[parent.table].as_deref());
        let of_table = match &parents[table] {
            None => vec![true; tables[table].n_rows],
            Some(parents) => {
                let stays = |&row: &u32| row != NULL && of_parent.is_none_or(|stays| stays[row as usize]);
                parents.iter().map(stays).collect()
            }
        };
        stays[table] = Some(of_table);
        next.extend(schema.children(table));
    }
    if stays.iter().flatten().flatten().all(|&stays| stays) {
        return Cow::Borrowed(tables);
    }
    let kept = |(table, stays): (&Table, &Option<Vec<bool>>)| {
        let stays = |row: usize| stays.as_ref().is_none_or(|stays| stays[row]);
        let column = |column: &Column| {
            let ids = (0..table.n_rows).filter(|&row| stays(row)).map(|row| column.ids[row]).collect();
            Column { ids, ..column.clone() }
        };
        let columns = table.columns.iter().map(column).collect();
        let n_rows = (0..table.n_rows).filter(|&row| stays(row)).count();
        Table { name: table.name.clone(), columns, n_rows, person: table.person }
    };
    Cow::Owned(tables.iter().zip(&stays).map(kept).collect())
}
