//! [`Job`]: from a spec and private tables to a verified release in memory.

use std::borrow::Cow;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use kohort_core::audiences::{Savings, anonymize_audiences};
use kohort_core::register::{AnonymizedWithRegister, anonymize_with_register};
use kohort_core::relational::anonymize_tables;
use kohort_core::{Anonymized, anonymize};
use kohort_io::{
    AskedOfOne, Batches, CellForm, InMemory, LazyColumns, LoadedRegister, LoadedRegisters, LoadedTable, MissingText,
    Private, PrivateTables, Sources, asked_of_join, load, load_registers, load_tables, missing_values,
};
use kohort_model::{
    Column, InRegister, Loss, NULL, Note, Progress, RegisterManifest, Requirement, Role, Schema, Silent, Spec, Table,
};
use kohort_verify::{
    BlatantRisk, ReleasedLink, SuppressionLimit, Verified, find_diversity_risks, find_risks, measure, measure_tables,
    verify_joined, verify_release, verify_tables,
};

use crate::error::{Error, Report};
use crate::manifest::{Facts, RegisterFacts, TableFacts, link_manifests};
use crate::pool::on_pool;
use crate::previous::Previous;
use crate::release::Release;
use crate::verification::n_persons;

/// The tables to be released, and how.
///
/// A job comes from a spec file or from a builder: [`crate::Table`] for one table, [`crate::JobBuilder`] for everything that
/// a spec can say.
///
/// ```no_run
/// # fn main() -> Result<(), kohort::Error> {
/// let release = kohort::Job::read("release.toml")?.anonymize()?;
/// release.write("out")?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Job {
    pub(crate) spec: Spec,
    pub(crate) folder: PathBuf,
    pub(crate) in_memory: InMemory,
    /// The file of the spec, if there is one. Messages name it.
    pub(crate) file: Option<PathBuf>,
    cells: CellForm,
    risks: Risks,
}

/// What to do with a release that has a blatant risk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Risks {
    /// Refuse the release.
    Refused,
    /// Allow the release, because the publisher accepts the risk. The manifest names it.
    Accepted,
}

impl Job {
    /// Reads a spec file. Paths in it start from its folder.
    ///
    /// # Errors
    /// [`Error::Input`] with every problem of the spec, each with its line.
    pub fn read(spec: impl AsRef<Path>) -> Result<Self, Error> {
        let path = spec.as_ref();
        let text = std::fs::read_to_string(path).map_err(|error| Error::file(path, "read", &error))?;
        Job::from_text(&text, path)
    }

    /// A job for the text of a spec file. Messages name the file, and paths in the spec start from its folder.
    ///
    /// # Errors
    /// [`Error::Input`] with every problem of the spec, each with its line.
    pub fn from_text(spec: &str, file: impl AsRef<Path>) -> Result<Self, Error> {
        let file = file.as_ref();
        let spec = Spec::parse(spec).map_err(|problems| Error::spec(file, &problems))?;
        let folder = file.parent().unwrap_or(Path::new(""));
        Ok(Job { file: Some(file.to_owned()), ..Job::new(spec, folder) })
    }

    /// A job for a spec whose paths start from a folder.
    pub fn new(spec: Spec, folder: impl Into<PathBuf>) -> Self {
        Job {
            spec,
            folder: folder.into(),
            in_memory: InMemory::default(),
            file: None,
            cells: CellForm::Labels,
            risks: Risks::Refused,
        }
    }

    /// The spec of the job.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Takes the rows of a table or a register from memory instead of the file that the spec names.
    #[must_use]
    pub fn instead_of(mut self, file: impl Into<PathBuf>, batches: Batches) -> Self {
        self.in_memory.add_table(file, batches);
        self
    }

    /// The same for columns that are handed over one at a time, each when it is read. For programs that must convert their
    /// columns: the converted table is then never in memory as a whole.
    #[must_use]
    pub fn instead_of_columns(mut self, file: impl Into<PathBuf>, columns: LazyColumns) -> Self {
        self.in_memory.add_columns(file, columns);
        self
    }

    /// Takes the text of a hierarchy from memory instead of the file that the spec names.
    #[must_use]
    pub fn instead_of_text(mut self, file: impl Into<PathBuf>, text: impl Into<String>) -> Self {
        self.in_memory.add_text(file, text.into());
        self
    }

    pub(crate) fn with_memory(mut self, in_memory: InMemory) -> Self {
        self.in_memory = in_memory;
        self
    }

    /// Sets how much work `auto` spends on classes of less loss, from 1, which is usual, to 1000. A number outside is taken for
    /// the nearest of these.
    #[must_use]
    pub fn effort(mut self, effort: u32) -> Self {
        self.spec.effort = effort.clamp(1, 1000);
        self
    }

    /// Sets the seed of algorithms that use chance. It never appears in the release.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.spec.seed = seed;
        self
    }

    /// Asks for another k than the spec does. Audiences with a k of their own keep it.
    #[must_use]
    pub fn k(mut self, k: NonZeroU32) -> Self {
        self.spec.k = k.get();
        self
    }

    /// Shows quasi cells as labels such as `[20,29]`, which is the default, or as two columns of bounds.
    #[must_use]
    pub fn cells(mut self, cells: CellForm) -> Self {
        self.cells = cells;
        self
    }

    /// Allows a release although a blatant risk is found. The manifest then names the risk.
    #[must_use]
    pub fn accept_risks(mut self) -> Self {
        self.risks = Risks::Accepted;
        self
    }

    /// Reads, anonymizes and verifies. Nothing is written yet.
    ///
    /// # Errors
    /// If the input does not fit the spec, the requirement can't be reached, or a blatant risk was found.
    pub fn anonymize(&self) -> Result<Release, Error> {
        self.anonymize_with(&Silent)
    }

    /// Does the same as [`Job::anonymize`]. `progress` is told how far the work is, and can cancel it.
    ///
    /// # Errors
    /// As [`Job::anonymize`], and [`Error::Cancelled`].
    pub fn anonymize_with(&self, progress: &dyn Progress) -> Result<Release, Error> {
        self.refuse_combinations()?;
        let release = on_pool(|| match self.spec.tables.as_slice() {
            [] => Err(Error::input("the spec names no table", "add a section [tables.NAME]")),
            [_] if !self.spec.registers.is_empty() => self.of_joined(progress),
            [_] if !self.spec.links_rows() => self.of_one(progress),
            _ => self.of_many(progress),
        });
        // Cancelled work may end with any result or error, so the result is ignored.
        if progress.is_cancelled() { Err(Error::Cancelled) } else { release }
    }

    /// The values of the job's tables that their hierarchy files lack. They are cells of private tables, so only the publisher may see
    /// them.
    ///
    /// # Errors
    /// [`Error::Input`] if a table or a hierarchy can't be read.
    pub fn missing_values(&self, progress: &dyn Progress) -> Result<Vec<MissingText>, Error> {
        Ok(missing_values(self.sources(), &self.spec, progress)?)
    }

    /// Whether quasi cells are released as labels or as bounds.
    pub(crate) fn form(&self) -> CellForm {
        self.cells
    }

    /// The name that messages use for the spec.
    pub(crate) fn place(&self) -> String {
        self.file.as_ref().map_or_else(|| "the job".to_owned(), |file| file.display().to_string())
    }

    pub(crate) fn sources(&self) -> Sources<'_> {
        Sources::new(&self.folder, &self.in_memory)
    }

    /// Refuses combinations that this version does not support, and names all of them.
    pub(crate) fn refuse_combinations(&self) -> Result<(), Error> {
        let (are_several, has_audiences) = (self.spec.tables.len() > 1, !self.spec.audiences.is_empty());
        let has_registers = !self.spec.registers.is_empty();
        let mut to_come = Vec::new();
        if are_several && has_audiences {
            to_come.push((
                "several tables with audiences",
                "release one table to several audiences, or several tables to everybody alike",
            ));
        }
        if has_audiences && has_registers {
            to_come.push(("audiences with registers", "release to several audiences without a register"));
        } else if are_several && has_registers {
            to_come.push(("several tables with registers", "release one table with a register, or several without"));
        }
        let place = self.file.as_ref().map_or_else(String::new, |file| format!("{}: ", file.display()));
        let report = |(what, hint): (&str, &str)| {
            Report::new(format!("{place}{what} are not available in this version")).hint(hint)
        };
        let reports: Vec<Report> = to_come.into_iter().map(report).collect();
        if reports.is_empty() { Ok(()) } else { Err(Error::Input(reports)) }
    }

    /// The risks if the job accepts them, or else an error that names them all.
    pub(crate) fn judge(&self, risks: Vec<BlatantRisk>) -> Result<Vec<BlatantRisk>, Error> {
        if risks.is_empty() || self.risks == Risks::Accepted { Ok(risks) } else { Err(Error::Risks(risks)) }
    }

    fn of_one(&self, progress: &dyn Progress) -> Result<Release, Error> {
        let spec = &self.spec;
        let original = load(self.sources(), spec, &spec.tables[0], progress)?.released_as(self.cells)?;
        self.of_loaded(original, progress)
    }

    /// Anonymizes and verifies one table, with audiences or without.
    pub(crate) fn of_loaded(&self, original: LoadedTable, progress: &dyn Progress) -> Result<Release, Error> {
        let spec = &self.spec;
        let asked = AskedOfOne::new(spec);
        let quasi = original.table.with_role(Role::Quasi);
        let before =
            measure(&original.table, &quasi, &[], &asked).map_err(|violations| Error::unverified(&violations))?;
        let made = Made::of_one(spec, &original.table, progress)?;
        let accepted_risks = self.judge(made.risks)?;
        let table = TableFacts { name: original.table.name.clone(), rows_in: original.table.n_rows as u64, loss: None };
        let notes = made.notes.into_iter().chain(Note::of_pseudonyms(spec)).collect();
        let facts = Facts {
            algorithm: made.algorithm,
            notes,
            accepted_risks,
            loss: made.loss,
            tables: vec![table],
            links: Vec::new(),
            saved: made.saved,
            registers: None,
            applied: None,
            previous: Vec::new(),
            before,
        };
        Ok(Release::new(facts, made.release, Private::one(spec.clone(), original), Vec::new()))
    }

    fn of_many(&self, progress: &dyn Progress) -> Result<Release, Error> {
        let spec = &self.spec;
        let originals = load_tables(self.sources(), spec, progress)?.released_as(self.cells)?;
        let (tables, schema) = (originals.tables.as_slice(), &originals.schema);
        let made = Made::of_many(spec, tables, schema, progress)?;
        let links = ReleasedLink::of(schema, tables);
        let before = measure_tables(&without_orphans(tables, schema), &links)
            .map_err(|violations| Error::unverified(&violations))?;
        let accepted_risks = self.judge(made.risks)?;
        let of_tables = tables.iter().zip(made.loss_of_tables).map(|(table, loss)| TableFacts {
            name: table.name.clone(),
            rows_in: table.n_rows as u64,
            loss: Some(loss),
        });
        let facts = Facts {
            algorithm: made.algorithm,
            notes: made.notes,
            accepted_risks,
            loss: made.loss,
            tables: of_tables.collect(),
            links: link_manifests(&links),
            saved: None,
            registers: None,
            applied: None,
            previous: Vec::new(),
            before,
        };
        let private = Private { spec: spec.clone(), tables: PrivateTables::Many(originals) };
        Ok(Release::new(facts, made.release, private, Vec::new()))
    }

    fn of_joined(&self, progress: &dyn Progress) -> Result<Release, Error> {
        let spec = &self.spec;
        let mut original = load(self.sources(), spec, &spec.tables[0], progress)?.released_as(self.cells)?;
        let LoadedRegisters { joined, registers, by, contradicting, earlier } =
            load_registers(self.sources(), spec, &mut original, progress)?;
        let requirements = spec.requirements(&spec.tables[0]);
        let quasi = original.table.with_role(Role::Quasi);
        let before = measure(&original.table, &quasi, &[], &requirements)
            .map_err(|violations| Error::unverified(&violations))?;
        let previous = Previous::read(spec, &self.folder, &original.table, &joined, (&registers, &earlier), progress)?;
        let done =
            anonymize_with_register(&original.table, &joined, &previous.releases, spec, &requirements, progress)?;
        let used: Vec<u64> = registers.iter().map(|register| n_used(&done, register)).collect();
        let AnonymizedWithRegister { anonymized: done, method, partitioners, left_out, .. } = done;
        progress.begin("verifying", 0);
        let asked = asked_of_join(spec, &requirements, &previous.releases);
        let release = verify_joined(done.release, &original.table, &joined, asked)
            .map_err(|violations| Error::unverified(&violations))?;
        let accepted_risks = self.judge(find_risks(&original.table, &requirements, None))?;
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
            algorithm: done.algorithm,
            notes: done.notes,
            accepted_risks,
            loss: done.loss,
            tables: of_tables.collect(),
            links: Vec::new(),
            saved: None,
            registers: Some(RegisterFacts { registers, method, partitioners, by, found, contradicting }),
            applied: None,
            previous: previous.manifests,
            before,
        };
        let tables = PrivateTables::Joined { table: Box::new(original), register: joined, previous: previous.releases };
        let rows_left_out = left_out.into_iter().map(|row| u64::from(row) + 1).collect();
        Ok(Release::new(facts, release, Private { spec: spec.clone(), tables }, rows_left_out))
    }
}

/// A verified release of tables that were read before, with its facts and the risks that were found.
pub(crate) struct Made {
    pub(crate) release: Verified<kohort_model::Release>,
    pub(crate) algorithm: &'static str,
    pub(crate) notes: Vec<Note>,
    pub(crate) loss: Loss,
    /// One entry per table of many.
    pub(crate) loss_of_tables: Vec<Loss>,
    saved: Option<Savings>,
    pub(crate) risks: Vec<BlatantRisk>,
}

impl Made {
    /// Anonymizes one table, with audiences or without, and verifies the release.
    pub(crate) fn of_one(spec: &Spec, original: &Table, progress: &dyn Progress) -> Result<Self, Error> {
        let asked = AskedOfOne::new(spec);
        check_persons(&asked, n_persons(original))?;
        let (done, saved) = match &asked {
            AskedOfOne::OfAll(requirements) => (anonymize(original, spec, requirements, progress)?, None),
            AskedOfOne::OfAudiences(audiences) => {
                let done = anonymize_audiences(original, spec, audiences, progress)?;
                (done.anonymized, Some(done.saved))
            }
        };
        progress.begin("verifying", 0);
        let Anonymized { release, loss, persons: _, algorithm, notes } = done;
        let release = verify_release(release, original, &asked, limit_of(spec))
            .map_err(|violations| Error::unverified(&violations))?;
        let risks = find_risks(original, &asked.requirements(), Some(&release.get().tables[0]));
        Ok(Made { release, algorithm, notes, loss, loss_of_tables: Vec::new(), saved, risks })
    }

    /// Anonymizes several tables, and verifies the release.
    pub(crate) fn of_many(
        spec: &Spec,
        originals: &[Table],
        schema: &Schema,
        progress: &dyn Progress,
    ) -> Result<Self, Error> {
        let requirements: Vec<Vec<Requirement>> = spec.tables.iter().map(|table| spec.requirements(table)).collect();
        let done = anonymize_tables(originals, schema, spec, progress)?;
        progress.begin("verifying", 0);
        let release = verify_tables(done.release, originals, schema, &requirements, limit_of(spec))
            .map_err(|violations| Error::unverified(&violations))?;
        let risks = originals.iter().zip(&requirements).flat_map(|(table, asked)| find_diversity_risks(table, asked));
        Ok(Made {
            release,
            algorithm: done.algorithm,
            notes: done.notes,
            loss: done.loss,
            loss_of_tables: done.loss_of_tables,
            saved: None,
            risks: risks.collect(),
        })
    }
}

/// Refuses audiences that ask for more persons than there are.
fn check_persons(asked: &AskedOfOne, n_persons: u64) -> Result<(), Error> {
    let AskedOfOne::OfAudiences(audiences) = asked else { return Ok(()) };
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
    if reports.is_empty() { Ok(()) } else { Err(Error::TooFewForAudiences(reports)) }
}

/// The limit on persons that may be left out.
pub(crate) fn limit_of(spec: &Spec) -> SuppressionLimit {
    SuppressionLimit::share(spec.max_suppressed)
}

/// The number of persons of a register that are in the classes.
fn n_used(done: &AnonymizedWithRegister, register: &LoadedRegister) -> u64 {
    let rows = done.classes.iter().flat_map(|class| &class.register);
    rows.filter(|row| register.joined.contains(row)).count() as u64
}

/// The tables without rows that belong to no person.
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
