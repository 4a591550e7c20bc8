//! Judges jobs beside a register. The join is judged by who people really are, classes by how many different people
//! their cells fit, and sensitive groups by their private persons.

use std::collections::{BTreeMap, BTreeSet};

use kohort_core::AnonymizeError;
use kohort_core::register::{AnonymizedWithRegister, anonymize_with_register};
use kohort_io::{load, load_registers};
use kohort_model::register::SENSITIVE_GROUP;
use kohort_model::spec::{RegisterRows, Unmatched};
use kohort_model::{
    Cells, Column, InRegister, JoinedRegister, NULL, ReleasedTable, Requirement, Role, Silent, Spec, Table, ValueType,
};
use kohort_verify::{
    AskedOfJoin, Suppressed, SuppressionLimit, ToldApart, verify_joined, verify_joined_against, verify_joined_alone,
    verify_joined_written,
};

use super::{FaultKind, Judged};
use crate::generate::register::{FoundBy, Known, Place, RegisterJob};
use crate::oracle::{self, Verdict};

/// For up to this many persons, every way to leave some of them out is tried.
const FEW_PERSONS: usize = 10;

pub(super) fn judge(job: &RegisterJob) -> Judged {
    #[expect(clippy::redundant_closure_for_method_calls, reason = "the method is of one lifetime, the closure of any")]
    judge_with(job, |read| read.judge())
}

/// Does something with a job whose files were read.
fn judge_with<T>(job: &RegisterJob, judge: impl FnOnce(&Read<'_>) -> T) -> T {
    let folder = tempfile::tempdir().expect("there is a temporary folder");
    let files = job.files();
    for (name, text) in &files {
        std::fs::write(folder.path().join(name), text).expect("it is writable");
    }
    let spec = Spec::parse(&files["release.toml"]).unwrap_or_else(|problems| panic!("{problems}"));
    let mut original =
        load(folder.path(), &spec, &spec.tables[0], &Silent).unwrap_or_else(|problems| panic!("{problems}"));
    let registers =
        load_registers(folder.path(), &spec, &mut original, &Silent).unwrap_or_else(|problem| panic!("{problem}"));
    let requirements = spec.requirements(&spec.tables[0]);
    let known = job.known();
    judge(&Read {
        job,
        spec: &spec,
        requirements: &requirements,
        known,
        table: &original.table,
        joined: &registers.joined,
    })
}

/// A job whose files were read.
struct Read<'a> {
    job: &'a RegisterJob,
    spec: &'a Spec,
    requirements: &'a [Requirement],
    known: Known,
    table: &'a Table,
    joined: &'a JoinedRegister,
}

/// A released row: its quasi cells and its sensitive group.
pub(super) type Look = (Vec<Option<String>>, u32);

impl Read<'_> {
    fn judge(&self) -> Judged {
        let mut judged = match self.run() {
            Ok(done) => self.judge_release(&done),
            Err(error) => self.refused(&error),
        };
        self.recount_join(&mut judged);
        judged
    }

    fn run(&self) -> Result<AnonymizedWithRegister, AnonymizeError> {
        anonymize_with_register(self.table, self.joined, &[], self.spec, self.requirements, &Silent)
    }

    fn judge_release(&self, done: &AnonymizedWithRegister) -> Judged {
        let mut judged = Judged::released();
        self.recount(&mut judged, done);
        self.verify_every_way(&mut judged, done);
        judged
    }

    /// Checks that the join finds every person it must find.
    fn recount_join(&self, judged: &mut Judged) {
        let Known { private, others } = &self.known;
        let n_register = self.joined.n_register;
        judged.holds(n_register == others.len(), || {
            format!("the join has {n_register} register persons, and should have {}", others.len())
        });
        let mut found: BTreeMap<Place, (usize, usize)> = BTreeMap::new();
        for (row, said) in private.iter().enumerate() {
            let place = self.job.place(row);
            let expected = match said {
                None => "absent",
                Some(said) if *said == place => "same",
                Some(_) => "other",
            };
            let is = match self.joined.persons[row] {
                InRegister::Absent => "absent",
                InRegister::Same(_) => "same",
                InRegister::Differs(_) => "other",
            };
            match self.job.found_by() {
                FoundBy::Key => judged.holds(is == expected, || {
                    format!("the join takes row {row} for {is}, and should take it for {expected}")
                }),
                // Persons with the same values are interchangeable, so it does not matter which of them is found.
                FoundBy::Values => {
                    let (n_found, n_expected) = found.entry(place).or_default();
                    *n_found += usize::from(is != "absent");
                    *n_expected += usize::from(said.is_some());
                }
            }
        }
        for (place, (n_found, n_expected)) in found {
            judged.holds(n_found == n_expected, || {
                format!("the join finds {n_found} persons at {place:?}, and should find {n_expected}")
            });
        }
    }

    fn recount(&self, judged: &mut Judged, done: &AnonymizedWithRegister) {
        let release = &done.anonymized.release;
        let released = &release.tables[0];
        let n_private = self.joined.n_microdata;
        let distinct: BTreeSet<u32> = released.rows.iter().copied().collect();
        judged.holds(distinct.len() == released.rows.len(), || "a joined row is released twice".to_owned());
        let mut classes: BTreeMap<Look, Vec<u32>> = BTreeMap::new();
        for (row, &source) in released.rows.iter().enumerate() {
            let look = look(released, row);
            let is_true = self.holds(&look.0, source);
            judged.holds(is_true, || format!("joined row {source} is shown as {:?}, which is not true", look.0));
            classes.entry(look).or_default().push(source);
        }
        let own_k = self.table.columns.iter().find(|column| column.role == Role::PersonK);
        for ((cells, _), rows) in &classes {
            judged.classes += 1;
            let private: Vec<u32> = rows.iter().copied().filter(|&row| (row as usize) < n_private).collect();
            judged.holds(!private.is_empty(), || format!("a class has no private person: rows {rows:?}"));
            let persons = match self.spec.register.release {
                RegisterRows::All => self.count(cells, rows.iter().copied()),
                RegisterRows::Microdata => self.count(cells, 0..(n_private + self.joined.n_register) as u32),
            };
            let own = |&row: &u32| {
                own_k
                    .and_then(|column| column.cell(row as usize))
                    .map_or(0, |text| text.parse().expect("an own k is a number"))
            };
            let needed = private.iter().map(own).max().unwrap_or(0).max(self.spec.k as usize);
            let verdict = |n: usize| if n >= needed { Verdict::Holds } else { Verdict::Fails };
            judged.class(verdict(persons), || {
                format!("the class of rows {rows:?} has {persons} persons and needs {needed}")
            });
            if self.job.found_by() == FoundBy::Key {
                let candidates = self.candidates(cells, &private);
                judged.class(verdict(candidates), || {
                    format!("readers find {candidates} candidates in {cells:?}, which needs {needed}")
                });
            }
            if let Some((least, most)) = self.spec.delta_presence {
                let share = private.len() as f64 / rows.len() as f64;
                let is_within = least - 1e-9 <= share && share <= most + 1e-9;
                judged.class(if is_within { Verdict::Holds } else { Verdict::Fails }, || {
                    format!("a share of {share} private persons in the class of rows {rows:?} is out of bounds")
                });
            }
        }
        let here: Vec<u32> = released.rows.iter().copied().filter(|&row| (row as usize) < n_private).collect();
        self.recount_groups(judged, done, &here);
        let persons = (done.anonymized.persons.n_in, done.anonymized.persons.n_out, done.anonymized.persons.suppressed);
        let counted = (n_private as u64, here.len() as u64, (n_private - here.len()) as u64);
        judged.holds(persons == counted, || {
            format!("the engine says {persons:?} persons (in, out, suppressed), but {counted:?} were counted")
        });
        let most = (self.spec.max_suppressed * n_private as f64 + 1e-9).floor() as u64;
        judged.holds(counted.2 <= most, || format!("{} persons are left out, but at most {most} may be", counted.2));
    }

    /// Checks that every requirement holds for the private persons of each group, and that the sensitive table lists
    /// exactly their values.
    fn recount_groups(&self, judged: &mut Judged, done: &AnonymizedWithRegister, here: &[u32]) {
        let tables = &done.anonymized.release.tables;
        let Some(values) = tables.get(1) else { return };
        let mut groups: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (row, &source) in tables[0].rows.iter().enumerate().filter(|(_, row)| here.contains(row)) {
            groups.entry(look(&tables[0], row).1).or_default().push(source);
        }
        let mut listed: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (row, &source) in values.rows.iter().enumerate() {
            listed.entry(look(values, row).1).or_default().push(source);
        }
        groups.values_mut().chain(listed.values_mut()).for_each(|rows| rows.sort_unstable());
        judged.holds(groups == listed, || "the sensitive table lists other values than the groups have".to_owned());
        for rows in groups.values() {
            for requirement in self.requirements {
                let verdict = oracle::judge(self.table, requirement, rows, here);
                judged.class(verdict, || format!("{requirement:?} in the sensitive group of rows {rows:?}"));
            }
        }
    }

    /// Whether cells are true of a joined row.
    fn holds(&self, cells: &[Option<String>], row: u32) -> bool {
        let columns = self.joined.rows.columns.iter().zip(cells);
        columns.into_iter().all(|(column, cell)| oracle::covers(column, cell.as_deref(), column.cell(row as usize)))
    }

    /// The least number of different persons to whom these joined rows can belong. A person counts only if every
    /// description of them, in the private table and in the registers, lies in the cells.
    fn count(&self, cells: &[Option<String>], rows: impl Iterator<Item = u32>) -> usize {
        let (mut matched, mut unmatched, mut others) = (0, 0, 0);
        for row in rows.filter(|&row| self.holds(cells, row)) {
            match self.joined.persons.get(row as usize) {
                None => others += 1,
                Some(InRegister::Absent) => unmatched += 1,
                Some(InRegister::Same(said) | InRegister::Differs(said)) => {
                    matched += usize::from(self.holds(cells, *said));
                }
            }
        }
        match told_apart(self.spec) {
            ToldApart::ByKey | ToldApart::ByValues(Unmatched::Count) => matched + unmatched + others,
            ToldApart::ByValues(Unmatched::Doubt) => matched + unmatched.max(others),
        }
    }

    /// How many people a reader finds who looks a row up in the registers, and who also knows the persons of the class
    /// that are in no register.
    fn candidates(&self, cells: &[Option<String>], private: &[u32]) -> usize {
        let is_there = |place: &Place| {
            place.iter().enumerate().all(|(column, value)| {
                let text = value.map(|value| self.job.text(column, value));
                oracle::covers(&self.joined.rows.columns[column], cells[column].as_deref(), text.as_deref())
            })
        };
        let in_registers =
            self.known.private.iter().flatten().chain(&self.known.others).filter(|place| is_there(place));
        let absent = private.iter().filter(|&&row| self.known.private[row as usize].is_none());
        in_registers.count() + absent.count()
    }

    /// Verifies the release in memory, its files read back, the files alone, and the files against table and registers.
    fn verify_every_way(&self, judged: &mut Judged, done: &AnonymizedWithRegister) {
        let release = &done.anonymized.release;
        let asked = AskedOfJoin {
            requirements: self.requirements,
            delta_presence: self.spec.delta_presence,
            rows: self.spec.register.release,
            told_apart: told_apart(self.spec),
            previous: &[],
            limit: SuppressionLimit::share(self.spec.max_suppressed),
        };
        let verified = verify_joined(release.clone(), self.table, self.joined, asked);
        let Some(verified) = judged.verified("release", verified) else { return };
        let originals = [&self.joined.rows, self.table];
        let files: Vec<Table> =
            release.tables.iter().zip(originals).map(|(table, from)| as_read(table, from)).collect();
        judged.verified("written", verify_joined_written(&files, &verified, self.table, self.joined, asked));
        judged.verified("alone", verify_joined_alone(&files, asked));
        let persons = done.anonymized.persons.suppressed;
        let suppressed = Suppressed { rows: persons, persons };
        judged.verified("against", verify_joined_against(&files, self.table, self.joined, asked, suppressed));
    }

    fn refused(&self, error: &AnonymizeError) -> Judged {
        let is_reason = matches!(
            error,
            AnonymizeError::TooFewPersons { .. }
                | AnonymizeError::OwnKTooLarge { .. }
                | AnonymizeError::TooFrequent { .. }
                | AnonymizeError::TooFewJoined { .. }
                | AnonymizeError::Presence { .. }
        );
        let mut judged = Judged::refused(error, self.can_be_released());
        if !is_reason {
            judged.fault(FaultKind::RefusedWithoutNeed, error.to_string());
        }
        judged
    }

    /// Whether one class and one group of everybody is a release; `None` if there are too many ways to leave persons
    /// out. The engine predicts the class size that `delta_presence` needs instead of trying sizes, so with
    /// `delta_presence` this returns `None` too.
    fn can_be_released(&self) -> Option<Verdict> {
        let n_private = self.table.n_rows;
        let nobody_may_leave = self.spec.max_suppressed * (n_private as f64) < 1.0 - 1e-9;
        if self.spec.delta_presence.is_some() || (!nobody_may_leave && n_private > FEW_PERSONS) {
            return None;
        }
        let everybody: Vec<u32> = (0..n_private as u32).collect();
        let has_groups = self.table.columns.iter().any(|column| matches!(column.role, Role::Sensitive | Role::Plain));
        let mut best = Verdict::Fails;
        let most =
            if nobody_may_leave { 0 } else { (self.spec.max_suppressed * n_private as f64 + 1e-9).floor() as u32 };
        for left_out in (0u32..1 << if most == 0 { 0 } else { n_private }).filter(|set| set.count_ones() <= most) {
            let kept: Vec<u32> =
                everybody.iter().copied().filter(|row| most == 0 || left_out >> row & 1 == 0).collect();
            if kept.is_empty() {
                continue;
            }
            let asked: Vec<&Requirement> = self.requirements.iter().filter(|_| has_groups).collect();
            let asked: Vec<Requirement> = asked.into_iter().cloned().collect();
            let of_group = oracle::stands(self.table, &asked, &kept, &kept);
            let own_k = self.table.columns.iter().find(|column| column.role == Role::PersonK);
            let own =
                |&row: &u32| own_k.and_then(|column| column.cell(row as usize)?.parse::<usize>().ok()).unwrap_or(0);
            let needed = kept.iter().map(own).max().unwrap_or(0).max(self.spec.k as usize);
            let root: Vec<Option<String>> = self.joined.rows.columns.iter().map(everything).collect();
            let others = n_private as u32..(n_private + self.joined.n_register) as u32;
            let is_large = self.count(&root, kept.iter().copied().chain(others)) >= needed;
            match of_group {
                Verdict::Holds if is_large => return Some(Verdict::Holds),
                Verdict::TooClose if is_large => best = Verdict::TooClose,
                _ => {}
            }
        }
        Some(best)
    }
}

/// A label that covers every value of a column and null.
fn everything(column: &Column) -> Option<String> {
    Some(column.hierarchy.as_ref().map_or("*".to_owned(), |hierarchy| hierarchy.label(hierarchy.root()).to_owned()))
}

fn told_apart(spec: &Spec) -> ToldApart {
    let by_key = spec.registers.values().any(|register| register.key.is_some());
    if by_key { ToldApart::ByKey } else { ToldApart::ByValues(spec.unmatched()) }
}

/// The generalized cells of a released row, and its sensitive group; 1 if there are no groups.
pub(super) fn look(table: &ReleasedTable, row: usize) -> Look {
    let mut cells = Vec::new();
    let mut group = 1;
    for column in &table.columns {
        match &column.cells {
            Cells::Recoded { labels, ids } => {
                cells.push((ids[row] != NULL).then(|| labels.get(ids[row]).to_owned()));
            }
            Cells::Surrogate { ids } => group = ids[row],
            Cells::Copied => {}
        }
    }
    (cells, group)
}

/// A released table as its file is read back; `from` is the table that its columns come from.
pub(super) fn as_read(table: &ReleasedTable, from: &Table) -> Table {
    let column = |column: &kohort_model::ReleasedColumn| {
        let cell = |row: usize| match &column.cells {
            Cells::Copied => from.columns[column.source].cell(table.rows[row] as usize).map(str::to_owned),
            Cells::Surrogate { ids } => (ids[row] != NULL).then(|| ids[row].to_string()),
            Cells::Recoded { labels, ids } => (ids[row] != NULL).then(|| labels.get(ids[row]).to_owned()),
        };
        let cells: Vec<Option<String>> = (0..table.rows.len()).map(cell).collect();
        let cells = cells.iter().map(Option::as_deref);
        if column.name == SENSITIVE_GROUP {
            return Column::from_cells(SENSITIVE_GROUP, Role::Key, cells).typed(ValueType::Integer);
        }
        let source = &from.columns[column.source];
        let read = Column::from_cells(&column.name, source.role, cells);
        Column { texts: read.texts, ids: read.ids, ..source.clone() }
    };
    let columns = table.columns.iter().map(column).collect();
    Table { name: table.name.clone(), columns, n_rows: table.rows.len(), person: None }
}

#[cfg(test)]
mod tests {
    use proptest::strategy::ValueTree;

    use super::*;
    use crate::generate::register::{RegisterSize, register_job};
    use crate::jobs::{System, tree};

    #[test]
    fn classes_of_too_few_people_and_a_join_that_misses_people_are_found() {
        let mut n_judged = 0;
        for number in 0..60 {
            let job = tree(register_job(RegisterSize::SMALL), System::Register, number).current();
            n_judged += usize::from(judge_with(&job, |read| {
                let Ok(done) = read.run() else { return false };
                let (spec, requirements) = (Spec { k: 1000, ..read.spec.clone() }, [Requirement::K(1000)]);
                let more = Read { spec: &spec, requirements: &requirements, known: read.known.clone(), ..*read };
                let judged = more.judge_release(&done);
                for kind in [FaultKind::UnderRequirement, FaultKind::Rejected] {
                    assert!(judged.faults.iter().any(|fault| fault.kind == kind), "{job:?}");
                }
                let mut joined = read.joined.clone();
                joined.persons.fill(InRegister::Absent);
                let mut judged = Judged::released();
                Read { joined: &joined, known: read.known.clone(), ..*read }.recount_join(&mut judged);
                let n_found = read.known.private.iter().flatten().count();
                assert_eq!(judged.faults.is_empty(), n_found == 0, "{job:?}");
                true
            }));
        }
        assert!(n_judged > 20, "{n_judged}");
    }
}
