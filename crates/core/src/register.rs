//! A release in the presence of a public register: what attackers know of the population, the publisher knows too, and
//! blurs less at the same risk.
//!
//! Every class holds at least k persons of the join of private table and register, and at least one private row. With
//! sensitive columns a release is two tables: rows of everybody with their sensitive group, and the values per group.
//!
//! # Guarantee
//! every joined row is in at most one class, and every private row that is not left out in exactly one; k persons of
//! each class count in what it shows (see `crowd`); the private rows of a class are in one sensitive group, and every
//! group satisfies by itself what is asked of the private table, k included. No more loss than the plain release by the
//! same partitioner on the same scale
//! # Paper
//! `[SMP10]`
//! # Deviations
//! Direct has sensitive groups too (see `groups`), and gives way to refinement where the plain release loses less than
//! it. An empty register leaves the plain classes as they are. Requirements on sensitive values hold for groups,
//! persons' own k for classes and groups. Rows that only leaving out would place are left out as in the plain release;
//! direct leaves out nobody else
//! # Cost
//! that of the partitioner on the joined rows (direct), or on the private rows and again on what lies in each of their
//! classes (refinement); nothing per register person but their codes

mod base;
mod crowd;
mod direct;
pub mod estimate;
mod groups;
mod index;
mod measure;
mod mend;
mod previous;
mod refine;
mod release;
mod trim;

use kohort_model::spec::{Algorithm, RegisterMethod};
use kohort_model::{JoinedRegister, Persons, Presence, PreviousRelease, Progress, Requirement, Spec, Table};

use crate::encode::Encoded;
use crate::requirement::Rules;
use crate::{AnonymizeError, Anonymized, Classified, classify, partitioner, suppress};
use base::Base;
use crowd::{Crowd, Draft};
use index::FreeRows;
use previous::Earlier;

/// A release with a register and what it costs, not yet verified.
#[derive(Debug)]
pub struct AnonymizedWithRegister {
    /// The release.
    pub anonymized: Anonymized,
    /// How its classes were found.
    pub method: RegisterMethod,
    /// Its classes in the released order.
    pub classes: Vec<JoinedClass>,
    /// How sure a reader can be that somebody is in the private table.
    pub presence: Presence,
    /// Register persons in the classes.
    pub n_register_used: u64,
}

/// Joined rows that look the same and share a sensitive group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinedClass {
    /// What its cells show: one interval of codes per quasi column.
    pub cells: Vec<(u32, u32)>,
    /// Its private rows.
    pub microdata: Vec<u32>,
    /// Its register persons, as joined rows.
    pub register: Vec<u32>,
    /// Its sensitive group, from 1.
    pub group: u32,
    /// How many private persons it has.
    pub n_private: u64,
    /// How many persons it has.
    pub n_persons: u64,
}

impl JoinedClass {
    /// The share of private persons.
    pub fn presence(&self) -> f64 {
        self.n_private as f64 / self.n_persons.max(1) as f64
    }
}

/// Anonymizes one table in the presence of a register, as the spec asks, to be read beside `previous` releases.
///
/// # Errors
/// Where the requirement can't be reached; nothing is half done.
pub fn anonymize_with_register(
    table: &Table,
    joined: &JoinedRegister,
    previous: &[PreviousRelease],
    spec: &Spec,
    requirements: &[Requirement],
    progress: &dyn Progress,
) -> Result<AnonymizedWithRegister, AnonymizeError> {
    if joined.rows.columns.is_empty() {
        return Err(AnonymizeError::NoQuasiColumn);
    }
    if spec.algorithm == Algorithm::FullDomain {
        return Err(AnonymizeError::UnavailableWithRegister(spec.algorithm));
    }
    progress.begin("encode", 0);
    let columns: Vec<usize> = (0..joined.rows.columns.len()).collect();
    let encoded = Encoded::new(&joined.rows, &columns)?;
    let partitioner = partitioner(spec, Vec::new())?;
    let base = Base::new(partitioner.as_ref(), spec);
    let read = |release| Earlier::read(release, &joined.rows, &encoded.domains, table);
    let earlier = previous.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let job = Job { table, joined, earlier, spec, requirements, encoded: &encoded, base, progress };
    match spec.register.method {
        RegisterMethod::Direct if joined.n_register > 0 => job.direct(),
        RegisterMethod::Direct | RegisterMethod::Refine => job.refine(),
    }
}

/// What is to be done.
struct Job<'a> {
    table: &'a Table,
    joined: &'a JoinedRegister,
    earlier: Vec<Earlier<'a>>,
    spec: &'a Spec,
    requirements: &'a [Requirement],
    encoded: &'a Encoded<'a>,
    base: Base<'a>,
    progress: &'a dyn Progress,
}

impl Job<'_> {
    fn refine(&self) -> Result<AnonymizedWithRegister, AnonymizeError> {
        let plain = classify(self.table, self.encoded, self.spec, self.requirements, self.progress)?;
        self.refine_plain(&plain)
    }

    fn refine_plain(&self, plain: &Classified) -> Result<AnonymizedWithRegister, AnonymizeError> {
        let Classified { rows, rules, classes, shown, persons, .. } = plain;
        let groups: Vec<Vec<u32>> =
            (0..shown.len()).map(|class| shown.members(class, classes, rows).collect()).collect();
        let crowd = Crowd::new(self.joined, self.encoded, rules, &groups.concat(), self.spec.delta_presence);
        let mut free = FreeRows::new(&crowd);
        let mut drafts = if self.joined.n_register == 0 {
            let draft = |(microdata, group)| Draft { microdata, group, ..Draft::default() };
            groups.into_iter().zip(0..).map(draft).collect()
        } else {
            refine::refine(&crowd, &groups, &mut free, &self.base, self.progress)
        };
        mend::mend(&crowd, &mut drafts, |_| free);
        if rules.person_of_row().is_some() {
            groups::settle(&mut drafts, rules);
        }
        self.finish(&crowd, drafts, *persons, RegisterMethod::Refine)
    }

    fn direct(&self) -> Result<AnonymizedWithRegister, AnonymizeError> {
        let has_groups = !release::copied_columns(self.table).is_empty();
        let everybody: Vec<u32> = (0..self.table.n_rows as u32).collect();
        let kept = if has_groups {
            suppress::rows_that_can_stand(self.table, self.encoded, self.requirements, self.spec.max_suppressed)?
        } else {
            everybody.clone()
        };
        let rules = Rules::compile(self.table, self.requirements, &kept)?;
        let n_in = suppress::n_persons(&rules, &everybody);
        let n_out = suppress::n_persons(&rules, &kept);
        let persons = Persons { n_in, n_out, suppressed: n_in - n_out };
        let crowd = Crowd::new(self.joined, self.encoded, &rules, &kept, self.spec.delta_presence);
        let too_few = AnonymizeError::TooFewJoined { persons: crowd.rows.n_members() as u64, k: rules.k() };
        let mut drafts = direct::direct(&crowd, &self.base, self.progress).map_err(|_| too_few)?;
        mend::mend(&crowd, &mut drafts, |drafts| FreeRows::beside(&crowd, drafts));
        // Private rows alone may be too few for a plain release, or for one that satisfies everything.
        if let Ok(plain) = classify(self.table, self.encoded, self.spec, self.requirements, self.progress)
            && loss_of_plain(&crowd, &plain) < crowd.loss(&drafts)
        {
            return self.refine_plain(&plain);
        }
        if has_groups {
            groups::group(&crowd, &mut drafts, &rules, self.base.partitioner)?;
        }
        self.finish(&crowd, drafts, persons, RegisterMethod::Direct)
    }

    fn finish(
        &self,
        crowd: &Crowd<'_>,
        mut drafts: Vec<Draft>,
        persons: Persons,
        method: RegisterMethod,
    ) -> Result<AnonymizedWithRegister, AnonymizeError> {
        if !self.earlier.is_empty() {
            self.progress.begin("read together", 0);
            previous::widen(crowd, &self.earlier, &mut drafts)?;
            previous::merge_groups(crowd, &self.earlier, self.table, self.requirements, &mut drafts)?;
        }
        self.progress.begin("recode", 0);
        let n_short = drafts.iter().filter(|draft| !crowd.stands(draft)).count() as u64;
        let mut classes = crowd.classes(drafts);
        let n_register_used: u64 = classes.iter().map(|class| class.register.len() as u64).sum();
        if let Some((least, most)) = self.spec.delta_presence {
            let outside = |class: &&JoinedClass| class.presence() < least - 1e-9 || class.presence() > most + 1e-9;
            // Of register persons in no class a reader knows that they are not in the private table.
            let ruled_out = least > 0.0 && n_register_used < self.joined.n_register as u64;
            let n_outside = classes.iter().filter(outside).count() as u64 + u64::from(ruled_out);
            if n_outside > 0 {
                return Err(AnonymizeError::Presence { least, most, classes: n_outside });
            }
        }
        if n_short > 0 {
            return Err(AnonymizeError::TooFewJoined { persons: crowd.rows.n_members() as u64, k: crowd.k() });
        }
        release::put_in_order(self.table, &mut classes);
        let loss = measure::measure(crowd, self.table, &classes, persons);
        let release =
            release::render(self.table, &self.joined.rows, self.encoded, &classes, self.spec.register.release);
        let presence = measure::presence(&classes);
        let anonymized = Anonymized { release, loss, persons, algorithm: self.base.partitioner.name() };
        Ok(AnonymizedWithRegister { anonymized, method, classes, presence, n_register_used })
    }
}

/// What the plain release loses, summed over its private rows.
fn loss_of_plain(crowd: &Crowd<'_>, plain: &Classified) -> f64 {
    let loss = |class: usize| {
        let rows = plain.classes.rows(class);
        crowd.penalty(&plain.rows.bounds(rows)) * plain.rows.weight_of(rows) as f64
    };
    (0..plain.classes.len()).map(loss).sum()
}

#[cfg(test)]
mod tests;
