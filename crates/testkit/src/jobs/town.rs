//! Judges releases of a town that changes: what does a reader find who has all releases and the register of each year?
//!
//! # Oracle
//! [`Readers`] looks for people by name in released texts. It knows nothing of joins, codes or boxes. If a release was
//! verified beside earlier ones, `Readers` believes its verified k to rule out classes that somebody can't have been in
//! together. That the classes somebody *was* in hide them is counted without this belief.

mod refused;

use std::collections::{BTreeMap, BTreeSet};

use kohort_core::AnonymizeError;
use kohort_core::register::{AnonymizedWithRegister, anonymize_with_register};
use kohort_io::{LoadedRegisters, load, load_registers};
use kohort_model::spec::RegisterRows;
use kohort_model::{JoinedRegister, NULL, PreviousRelease, ReadBeside, Requirement, Role, Silent, Spec, Table};
use kohort_verify::{
    AskedOfJoin, Findings, Suppressed, SuppressionLimit, ToldApart, verify_joined, verify_joined_against,
    verify_joined_alone, verify_joined_written,
};

use super::register::{as_read, look};
use super::{FaultKind, Judged};
use crate::generate::town::{Spot, Town};

/// Judges every release of a town. The outcome is that of the last one.
pub(super) fn judge(town: &Town) -> Judged {
    let mut earlier: Vec<Released> = Vec::new();
    let (mut faults, mut classes) = (Vec::new(), 0);
    let mut last = Judged::released();
    for year in (0..town.n_years()).filter(|&year| !town.surveyed(year).is_empty()) {
        let (judged, released) = judge_year(town, year, &earlier);
        earlier.extend(released);
        faults.extend(judged.faults.iter().cloned());
        classes += judged.classes;
        last = judged;
    }
    Judged { faults, classes, ..last }
}

/// A release as its reader has it, and to whom its rows belong.
struct Released {
    year: usize,
    /// The files of the release.
    tables: Vec<Table>,
    /// The cells of each class, and its sensitive group.
    classes: Vec<(Vec<String>, u32)>,
    /// The person and the class of each row.
    rows: Vec<(usize, usize)>,
    /// The values of each group; empty if no column is sensitive.
    values: BTreeMap<u32, Vec<String>>,
    /// The verified k of this release and all earlier ones together.
    k_together: Option<u64>,
}

fn judge_year(town: &Town, year: usize, earlier: &[Released]) -> (Judged, Option<Released>) {
    read_year(town, year, earlier, |read| match read.run(&read.previous) {
        Ok(done) => read.judge_release(&done),
        Err(error) => (read.refused(&error), None),
    })
}

/// Does something with a year whose files were read.
fn read_year<T>(town: &Town, year: usize, earlier: &[Released], judge: impl FnOnce(&Read<'_>) -> T) -> T {
    let folder = tempfile::tempdir().expect("there is a temporary folder");
    for (name, text) in town.files() {
        std::fs::write(folder.path().join(name), text).expect("it is writable");
    }
    let years: Vec<usize> = earlier.iter().map(|release| release.year).collect();
    let spec = Spec::parse(&town.spec_text(year, &years)).unwrap_or_else(|problems| panic!("{problems}"));
    let mut original =
        load(folder.path(), &spec, &spec.tables[0], &Silent).unwrap_or_else(|problems| panic!("{problems}"));
    let registers =
        load_registers(folder.path(), &spec, &mut original, &Silent).unwrap_or_else(|problem| panic!("{problem}"));
    let surveyed = town.surveyed(year);
    let others = town.registered(year).into_iter().filter(|person| !surveyed.contains(person));
    judge(&Read {
        town,
        year,
        earlier,
        previous: previous(town, year, earlier, &registers),
        spec: &spec,
        requirements: &spec.requirements(&spec.tables[0]),
        table: &original.table,
        joined: &registers.joined,
        persons: surveyed.iter().copied().chain(others).collect(),
    })
}

/// Earlier releases as the publisher hands them in: their files, and the places of everybody in the registers of their
/// time.
fn previous(town: &Town, year: usize, earlier: &[Released], registers: &LoadedRegisters) -> Vec<PreviousRelease> {
    let LoadedRegisters { joined, earlier: then, .. } = registers;
    let n_persons = (joined.n_microdata + joined.n_register) as u32;
    // The spec names a file for each register that differs from the earlier ones.
    let mut files: Vec<Vec<Option<&Spot>>> = Vec::new();
    let described =
        |year: usize| -> Vec<Option<&Spot>> { (0..town.n_people()).map(|person| town.place(person, year)).collect() };
    let now = described(year);
    let mut previous = Vec::new();
    for (at, release) in earlier.iter().enumerate() {
        let said = described(release.year);
        let places = if said == now {
            (0..n_persons).map(|person| joined.public_place(person).unwrap_or(NULL)).collect()
        } else {
            let file = files.iter().position(|other| *other == said).unwrap_or_else(|| {
                files.push(said);
                files.len() - 1
            });
            then[file].places.clone()
        };
        let beside = release.k_together.map(|k| ReadBeside { releases: (0..at).collect(), k });
        let name = format!("out-{}", release.year);
        previous.push(PreviousRelease { name, tables: release.tables.clone(), places, beside });
    }
    previous
}

/// A year whose files were read.
struct Read<'a> {
    town: &'a Town,
    year: usize,
    earlier: &'a [Released],
    previous: Vec<PreviousRelease>,
    spec: &'a Spec,
    requirements: &'a [Requirement],
    table: &'a Table,
    joined: &'a JoinedRegister,
    /// The persons of the first joined rows: those who take part, then the others of the register.
    persons: Vec<usize>,
}

impl<'a> Read<'a> {
    fn readers(&self) -> Readers<'a> {
        Readers { town: self.town, year: self.year, earlier: self.earlier, requirements: self.requirements.to_vec() }
    }

    /// Anonymizes the survey so that it can be read beside these releases.
    fn run(&self, previous: &[PreviousRelease]) -> Result<AnonymizedWithRegister, AnonymizeError> {
        anonymize_with_register(self.table, self.joined, previous, self.spec, self.requirements, &Silent)
    }

    fn is_private(&self, person: usize) -> bool {
        self.town.told(person, self.year).is_some()
    }

    fn judge_release(&self, done: &AnonymizedWithRegister) -> (Judged, Option<Released>) {
        let mut judged = Judged::released();
        let mut released = self.released(&mut judged, done);
        let readers = self.readers();
        let mut found = Found::default();
        for (class, (cells, _)) in released.classes.iter().enumerate() {
            judged.classes += 1;
            for &(person, _) in released.rows.iter().filter(|&&(_, of)| of == class) {
                readers.look_for(person, cells, self.is_private(person), &mut found);
                readers.look_in_own_classes(person, cells, &mut found);
            }
        }
        readers.compare_values(&released, &mut found);
        for fault in found.faults {
            judged.fault(FaultKind::UnderRequirement, fault);
        }
        let counted = self.verify_every_way(&mut judged, done, &released.tables);
        let together = counted.and_then(|counted| counted.joined?.together);
        if let (false, Some(together)) = (self.earlier.is_empty(), &together) {
            // If no earlier class holds anybody, this is the size of the smallest class, which is counted elsewhere.
            let fewest = found.fewest.unwrap_or(together.k);
            judged.holds(together.k == fewest, || {
                format!("verified k = {} beside earlier releases, but readers find {fewest}", together.k)
            });
            let l = together.l.first().map(|(_, l)| *l);
            judged.holds(l == found.in_common, || {
                format!("verified l = {l:?} beside earlier releases, but readers find {:?}", found.in_common)
            });
        }
        released.k_together = together.map(|together| together.k);
        let is_clean = judged.faults.is_empty();
        (judged, is_clean.then_some(released))
    }

    /// The release as a reader has it.
    fn released(&self, judged: &mut Judged, done: &AnonymizedWithRegister) -> Released {
        let release = &done.anonymized.release;
        let table = &release.tables[0];
        let mut classes: Vec<(Vec<String>, u32)> = Vec::new();
        let mut rows = Vec::new();
        for (row, &source) in table.rows.iter().enumerate() {
            let (cells, group) = look(table, row);
            let cells: Vec<String> = cells.into_iter().map(|cell| cell.expect("nothing is null")).collect();
            let person = self.persons[source as usize];
            let place = self.town.told(person, self.year).or_else(|| self.town.place(person, self.year));
            let is_true = place.is_some_and(|place| self.town.holds(&cells, place));
            judged.holds(is_true, || format!("person {person} is shown as {cells:?}, which is not true"));
            let class = (cells, group);
            let at = classes.iter().position(|other| *other == class).unwrap_or_else(|| {
                classes.push(class);
                classes.len() - 1
            });
            rows.push((person, at));
        }
        let mut values: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        if self.table.columns.iter().any(|column| column.role == Role::Sensitive) {
            for &(person, class) in rows.iter().filter(|(person, _)| self.is_private(*person)) {
                values.entry(classes[class].1).or_default().push(self.town.answer(person, self.year));
            }
        }
        let originals = [&self.joined.rows, self.table];
        let tables = release.tables.iter().zip(originals).map(|(table, from)| as_read(table, from)).collect();
        Released { year: self.year, tables, classes, rows, values, k_together: None }
    }

    /// Verifies the release in memory, its files read back, the files alone, and the files against table and registers.
    fn verify_every_way(
        &self,
        judged: &mut Judged,
        done: &AnonymizedWithRegister,
        files: &[Table],
    ) -> Option<Findings> {
        let asked = AskedOfJoin {
            requirements: self.requirements,
            delta_presence: None,
            rows: self.spec.register.release,
            told_apart: ToldApart::ByKey,
            previous: &self.previous,
            limit: SuppressionLimit::share(self.spec.max_suppressed),
        };
        let release = done.anonymized.release.clone();
        let verified = judged.verified("release", verify_joined(release, self.table, self.joined, asked))?;
        judged.verified("written", verify_joined_written(files, &verified, self.table, self.joined, asked));
        judged.verified("alone", verify_joined_alone(files, asked));
        let persons = done.anonymized.persons.suppressed;
        let suppressed = Suppressed { rows: persons, persons };
        let against = verify_joined_against(files, self.table, self.joined, asked, suppressed);
        let against = judged.verified("against", against).and_then(|found| found.joined?.together_within);
        let found = verified.findings().clone();
        if let (Some(within), Some(together)) = (against, found.joined.as_ref()?.together.as_ref()) {
            let is_within = (within.k.0..=within.k.1).contains(&together.k);
            judged.holds(is_within, || {
                format!("k = {} is not within {:?}, the bounds found against the input", together.k, within.k)
            });
            for (column, (least, most)) in within.l {
                let l = together.l.iter().find(|(of, _)| *of == column).map_or(u64::MAX, |(_, l)| *l);
                let is_within = (least.unwrap_or(u64::MAX)..=most.unwrap_or(u64::MAX)).contains(&l);
                judged.holds(is_within, || {
                    format!("l = {l} is not between {least:?} and {most:?}, as found against the input")
                });
            }
        }
        Some(found)
    }

    fn refused(&self, error: &AnonymizeError) -> Judged {
        let is_reason = matches!(
            error,
            AnonymizeError::TooFewPersons { .. }
                | AnonymizeError::OwnKTooLarge { .. }
                | AnonymizeError::TooFrequent { .. }
                | AnonymizeError::TooFewJoined { .. }
                | AnonymizeError::PreviousCrowd { .. }
                // The earlier survey had a value that no register of any year has.
                | AnonymizeError::PreviousLabels { .. }
                | AnonymizeError::PreviousValues { .. }
        );
        let is_unread = matches!(error, AnonymizeError::PreviousLabels { .. });
        let mut judged = Judged::refused(error, if is_unread { None } else { self.can_be_released() });
        if !is_reason {
            judged.fault(FaultKind::RefusedWithoutNeed, error.to_string());
        }
        judged
    }
}

/// One class of each earlier release, or none.
type Way = Vec<Option<usize>>;

/// How often each value occurs.
type Counts = BTreeMap<String, usize>;

/// Readers of all releases, and of the register of each year.
struct Readers<'a> {
    town: &'a Town,
    year: usize,
    earlier: &'a [Released],
    requirements: Vec<Requirement>,
}

/// What readers find.
#[derive(Default)]
struct Found {
    faults: Vec<String>,
    /// The smallest set of persons among whom a private person hides; `None` if no earlier class holds anybody.
    fewest: Option<u64>,
    /// The smallest number of values that groups have in common.
    in_common: Option<u64>,
}

impl Readers<'_> {
    /// The ways that somebody can have taken. Their place can come from three sources: the register of each year, the
    /// survey, the newest register.
    fn ways(&self, person: usize) -> BTreeSet<Way> {
        let now = self.town.place(person, self.year);
        let own = self.town.told(person, self.year).or(now);
        let now = now.or(own);
        let mut ways = BTreeSet::new();
        for life in 0..3 {
            let mut open: Vec<Way> = vec![Vec::new()];
            for release in self.earlier {
                let place = [self.town.place(person, release.year).or(now), own, now][life];
                let holds =
                    |class: &usize| place.is_some_and(|place| self.town.holds(&release.classes[*class].0, place));
                let holding: Vec<usize> = (0..release.classes.len()).filter(holds).collect();
                let choices = || std::iter::once(None).chain(holding.iter().copied().map(Some));
                open =
                    open.iter().flat_map(|way| choices().map(|choice| [way.as_slice(), &[choice]].concat())).collect();
            }
            ways.extend(open);
        }
        ways.retain(|way| way.iter().any(Option::is_some) && self.can_be(way, person));
        ways
    }

    /// Whether the registers of each year described somebody inside all classes of a way.
    fn went(&self, person: usize, way: &Way) -> bool {
        way.iter().zip(self.earlier).all(|(class, release)| {
            let Some(class) = class else { return true };
            let place = self.town.place(person, release.year);
            place.is_some_and(|place| self.town.holds(&release.classes[*class].0, place))
        })
    }

    /// Whether a way contradicts nothing that was verified. Each release was verified together with all earlier ones.
    fn can_be(&self, way: &Way, person: usize) -> bool {
        self.earlier.iter().enumerate().filter(|(at, _)| way[*at].is_some()).all(|(at, release)| {
            let Some(k) = release.k_together else { return true };
            if way[..at].iter().all(Option::is_none) {
                return true;
            }
            let part = way[..=at].to_vec();
            let n = (0..self.town.n_people()).filter(|&other| other == person || self.went(other, &part)).count();
            n as u64 >= k
        })
    }

    /// How many persons took a way and are in a class of the newest release, if this person is one of them.
    fn n_among(&self, way: &Way, cells: &[String], person: usize) -> usize {
        let is_there =
            |other: usize| self.town.place(other, self.year).is_some_and(|place| self.town.holds(cells, place));
        (0..self.town.n_people()).filter(|&other| other == person || (is_there(other) && self.went(other, way))).count()
    }

    /// Looks for a person of a class in all earlier releases.
    fn look_for(&self, person: usize, cells: &[String], is_private: bool, found: &mut Found) {
        let needed = if is_private { self.town.needed(person, self.year) } else { self.k() };
        for way in self.ways(person) {
            let n = self.n_among(&way, cells, person);
            if is_private {
                found.fewest = Some(found.fewest.map_or(n as u64, |fewest| fewest.min(n as u64)));
            }
            if n < needed {
                found.faults.push(format!(
                    "person {person} is one of {n} persons and needs {needed}, in {cells:?} and {way:?}"
                ));
            }
        }
    }

    /// Looks for a person in the earlier classes that the person was really in, without relying on what was verified.
    /// If the earlier survey described the person differently from every register, no reader of releases and registers
    /// could look there, so this is skipped.
    fn look_in_own_classes(&self, person: usize, cells: &[String], found: &mut Found) {
        let class = |release: &Released| {
            self.town.told(person, release.year)?;
            let place = self.town.place(person, release.year)?;
            let of_person = |row: &&(usize, usize)| row.0 == person;
            let class = release.rows.iter().find(of_person)?.1;
            self.town.holds(&release.classes[class].0, place).then_some(class)
        };
        let own: Way = self.earlier.iter().map(class).collect();
        let (n, k) = (self.n_among(&own, cells, person), self.k());
        if n < k && own.iter().any(Option::is_some) {
            found.faults.push(format!(
                "person {person} is one of {n} persons and needs {k}, in {cells:?} and their own classes {own:?}"
            ));
        }
    }

    fn k(&self) -> usize {
        self.requirements.iter().find_map(Requirement::k).map_or(1, |k| k as usize)
    }

    /// Compares the values of each group with those of earlier groups that somebody of its classes can have been in.
    fn compare_values(&self, released: &Released, found: &mut Found) {
        let group_of = |&(_, class): &(usize, usize)| released.classes[class].1;
        for (&group, values) in &released.values {
            let now = counts(values);
            let of_group = released.rows.iter().filter(|row| group_of(row) == group);
            let ways: BTreeSet<Way> = of_group.flat_map(|&(person, _)| self.ways(person)).collect();
            for way in &ways {
                let before: Vec<Counts> = self.groups_of(way).into_iter().flatten().collect();
                let is_common = |value: &&String| before.iter().all(|before| before.contains_key(*value));
                let n = now.keys().filter(is_common).count();
                if before.is_empty() || n == 0 {
                    continue;
                }
                found.in_common = Some(found.in_common.map_or(n as u64, |fewest| fewest.min(n as u64)));
                if !self.suffice(n) {
                    found.faults.push(format!("group {group} has only {n} values in common with {way:?}"));
                }
            }
            for at in 0..self.earlier.len() {
                let classes = ways.iter().filter_map(|way| way[at]);
                let groups: BTreeSet<u32> = classes.map(|class| self.earlier[at].classes[class].1).collect();
                let before: Vec<&Vec<String>> =
                    groups.iter().filter_map(|group| self.earlier[at].values.get(group)).collect();
                let all: Vec<String> = before.iter().copied().flatten().cloned().collect();
                for before in before.into_iter().chain([&all]) {
                    if self.tells(&counts(before), &now) {
                        found.faults.push(format!("group {group} tells who came or went since release {at}"));
                    }
                }
            }
        }
        let all = |release: &Released| counts(&release.values.values().flatten().cloned().collect::<Vec<_>>());
        for (at, release) in self.earlier.iter().enumerate() {
            if self.tells(&all(release), &all(released)) {
                found.faults.push(format!("all values tell who came or went since release {at}"));
            }
        }
    }

    /// For each earlier release, the values of the group that a way goes through; `None` if the way goes through no
    /// class of the release, or the release has no values.
    fn groups_of(&self, way: &Way) -> Vec<Option<Counts>> {
        let group = |(class, release): (&Option<usize>, &Released)| {
            Some(counts(release.values.get(&release.classes[(*class)?].1)?))
        };
        way.iter().zip(self.earlier).map(group).collect()
    }

    /// Whether this many distinct values are enough, if all of them are equally frequent.
    fn suffice(&self, n: usize) -> bool {
        self.requirements.iter().all(|requirement| match requirement {
            Requirement::DistinctL { l, .. } | Requirement::RecursiveCL { l, .. } => n >= *l as usize,
            Requirement::EntropyL { l, .. } => n as f64 >= l - 1e-9,
            Requirement::Alpha { alpha, .. } => 1.0 / n as f64 <= alpha + 1e-9,
            Requirement::K(_)
            | Requirement::PersonK { .. }
            | Requirement::TCloseness { .. }
            | Requirement::Beta { .. }
            | Requirement::EnhancedBeta { .. } => true,
        })
    }

    /// Whether values only came or only went, and are too few to hide whose they are.
    fn tells(&self, before: &Counts, now: &Counts) -> bool {
        if before.is_empty() || now.is_empty() {
            return false;
        }
        let more = |these: &Counts, those: &Counts| -> Vec<usize> {
            let left = these.iter().map(|(value, n)| n.saturating_sub(those.get(value).copied().unwrap_or(0)));
            left.filter(|&n| n > 0).collect()
        };
        let (came, went) = (more(now, before), more(before, now));
        let changed = match (came.is_empty(), went.is_empty()) {
            (false, true) => came,
            (true, false) => went,
            _ => return false,
        };
        changed.iter().sum::<usize>() < self.k() || !self.suffice(changed.len())
    }
}

fn counts(values: &[String]) -> Counts {
    let mut counts = Counts::new();
    values.iter().for_each(|value| *counts.entry(value.clone()).or_default() += 1);
    counts
}

/// Whether a spec also releases rows of the register.
fn shows_register(spec: &Spec) -> bool {
    match spec.register.release {
        RegisterRows::All => true,
        RegisterRows::Microdata => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::strategy::ValueTree;

    use super::*;
    use crate::generate::town::{TownSize, town};
    use crate::jobs::{System, tree};

    #[test]
    fn releases_that_were_made_without_a_look_at_earlier_ones_are_found() {
        let (mut n_found, mut n_rejected) = (0, 0);
        for number in 0..80 {
            let town = tree(town(TownSize::SMALL), System::Town, number).current();
            if (0..2).any(|year| town.surveyed(year).is_empty()) {
                continue;
            }
            let (_, Some(first)) = judge_year(&town, 0, &[]) else { continue };
            let earlier = [first];
            let judged = read_year(&town, 1, &earlier, |read| {
                let is_fitted = !shows_register(read.spec);
                Some((is_fitted, read.judge_release(&read.run(&[]).ok()?).0))
            });
            let Some((is_fitted, judged)) = judged else { continue };
            let has = |kind: FaultKind| judged.faults.iter().any(|fault| fault.kind == kind);
            let (is_found, is_rejected) = (has(FaultKind::UnderRequirement), has(FaultKind::Rejected));
            // If presence is hidden, the oracle also looks for people who don't take part.
            assert!(is_found || !is_rejected, "{town:?}");
            assert!(is_rejected || !(is_found && is_fitted), "{town:?}");
            n_found += usize::from(is_found);
            n_rejected += usize::from(is_rejected);
        }
        assert!(n_found > 10 && n_rejected > 10, "{n_found} found, {n_rejected} rejected");
    }
}
