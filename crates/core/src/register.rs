//! A release in the presence of a public register: what attackers know of the population, the publisher knows too, and
//! blurs less at the same risk.
//!
//! Every class holds at least k persons of the join of private table and register, and at least one private row. With
//! sensitive columns a release is two tables: rows of everybody with their sensitive group, and the values per group.
//!
//! Where presence in the private table is to be hidden, classes are those of the whole population, chosen without
//! looking at who is private (see `blind`). Where it is public, classes are made for the private rows, and register rows
//! that these don't need are dropped: then what a class shows tells who is private.
//!
//! # Guarantee
//! every joined row is in at most one class, and every private row that is not left out in exactly one; k persons of
//! each class count in what it shows (see `crowd`); the private rows of a class are in one sensitive group, and every
//! group satisfies by itself what is asked of the private table, k included. Each person has one row in the private table
//! # Paper
//! `[SMP10]`
//! # Deviations
//! An empty register leaves the plain classes as they are. Requirements on sensitive values hold for groups (see
//! `groups`), persons' own k for classes and groups. Whoever can be in no group is left out; where
//! presence is hidden a class then lacks a row, which tells that somebody of it is private, so shares count those left
//! out in every class. Where presence is public, direct gives way to refinement if the plain release loses less, so that
//! no more is lost than without the register, and refinement to direct if there is no plain release
//! # Cost
//! that of the partitioner on the joined rows; where presence is public, for refinement on the private rows and again on
//! what lies in each of their classes. Nothing per register person but their codes

mod base;
mod blind;
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

use kohort_model::spec::{Algorithm, Leftovers, RegisterMethod, RegisterRows};
use kohort_model::{JoinedRegister, Note, Persons, PreviousRelease, Progress, Requirement, Spec, Table};
use rayon::prelude::*;

use crate::encode::Encoded;
use crate::requirement::Rules;
use crate::{AnonymizeError, Anonymized, Classified, classify, partitioner, suppress};
use base::Base;
use blind::Population;
use crowd::{Crowd, Draft};
use index::Index;
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
    /// The partitioners that made its classes, which need not be the one that the spec names.
    pub partitioners: Vec<&'static str>,
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
    match (spec.register.release, spec.register.method) {
        _ if joined.n_register == 0 && spec.delta_presence.is_none() => job.refine(),
        (RegisterRows::All, method) => job.blind(method),
        (RegisterRows::Microdata, RegisterMethod::Refine) => job.refine(),
        (RegisterRows::Microdata, RegisterMethod::Direct) => job.direct(),
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
    /// Classes of the whole population, chosen without looking at who is private.
    fn blind(&self, method: RegisterMethod) -> Result<AnonymizedWithRegister, AnonymizeError> {
        if self.spec.leftovers == Leftovers::Suppress {
            return Err(AnonymizeError::LeftoversWithRegister);
        }
        let has_groups = !release::copied_columns(self.table).is_empty();
        let (kept, persons) = self.kept(has_groups)?;
        let rules = Rules::compile(self.table, self.requirements, &kept)?;
        let crowd = Crowd::new(self.joined, self.encoded, &rules, &kept, self.spec.unmatched());
        let population = Population::new(&crowd, self.joined, self.encoded);
        let size = population.class_size(self.spec.delta_presence);
        let too_few = AnonymizeError::TooFewJoined { persons: population.n_counted(), k: size };
        let classes = population.classes(&self.base, method, size, self.progress).map_err(|_| too_few)?;
        if let Some(bounds) = self.spec.delta_presence {
            let (least, most) = bounds;
            let shares = classes.par_iter().map(|class| population.share(class));
            let classes = shares.filter(|share| !share.is_within(bounds, persons.suppressed)).count() as u64;
            if classes > 0 {
                return Err(AnonymizeError::Presence { least, most, classes });
            }
        }
        let released: Vec<(usize, Draft)> = classes
            .par_iter()
            .enumerate()
            .filter_map(|(number, class)| {
                let region = if method == RegisterMethod::Refine { class.region } else { number };
                Some((region, population.draft(class)?))
            })
            .collect();
        let (regions, mut drafts): (Vec<usize>, Vec<Draft>) = released.into_iter().unzip();
        if has_groups {
            groups::group(&crowd, &mut drafts, &regions, &rules, self.base.partitioner)?;
        }
        self.finish(&crowd, drafts, persons, method)
    }

    /// The private rows that take part: all, unless some can be in no sensitive group.
    fn kept(&self, has_groups: bool) -> Result<(Vec<u32>, Persons), AnonymizeError> {
        let kept = if has_groups {
            suppress::rows_that_can_stand(self.table, self.encoded, self.requirements, self.spec.max_suppressed)?
        } else {
            (0..self.table.n_rows as u32).collect()
        };
        let (n_in, n_out) = (self.table.n_rows as u64, kept.len() as u64);
        Ok((kept, Persons { n_in, n_out, suppressed: n_in - n_out }))
    }

    /// Refines the classes of the plain release. Where the private table alone has none, because it is too small for k,
    /// there is nothing to refine, and everybody is partitioned at once.
    fn refine(&self) -> Result<AnonymizedWithRegister, AnonymizeError> {
        match classify(self.table, self.encoded, self.spec, self.requirements, self.progress) {
            Ok(plain) => self.refine_plain(&plain),
            Err(_) if self.joined.n_register > 0 => self.direct(),
            Err(error) => Err(error),
        }
    }

    fn refine_plain(&self, plain: &Classified) -> Result<AnonymizedWithRegister, AnonymizeError> {
        let Classified { rows, rules, classes, shown, persons, .. } = plain;
        let groups: Vec<Vec<u32>> =
            (0..shown.len()).map(|class| shown.members(class, classes, rows).collect()).collect();
        let crowd = Crowd::new(self.joined, self.encoded, rules, &groups.concat(), self.spec.unmatched());
        let mut free = Index::new(&crowd);
        let mut drafts = if self.joined.n_register == 0 {
            let draft = |(microdata, group)| Draft { microdata, group, ..Draft::default() };
            groups.into_iter().zip(0..).map(draft).collect()
        } else {
            refine::refine(&crowd, &groups, &mut free, &self.base, self.progress)
        };
        mend::mend(&crowd, &mut drafts, |_| free);
        self.finish(&crowd, drafts, *persons, RegisterMethod::Refine)
    }

    fn direct(&self) -> Result<AnonymizedWithRegister, AnonymizeError> {
        let has_groups = !release::copied_columns(self.table).is_empty();
        let (kept, persons) = self.kept(has_groups)?;
        let rules = Rules::compile(self.table, self.requirements, &kept)?;
        let crowd = Crowd::new(self.joined, self.encoded, &rules, &kept, self.spec.unmatched());
        let too_few = AnonymizeError::TooFewJoined { persons: crowd.rows.n_members() as u64, k: rules.k() };
        let mut drafts = direct::direct(&crowd, &self.base, self.progress).map_err(|_| too_few)?;
        mend::mend(&crowd, &mut drafts, |drafts| Index::beside(&crowd, drafts));
        // Private rows alone may be too few for a plain release, or for one that satisfies everything.
        if let Ok(plain) = classify(self.table, self.encoded, self.spec, self.requirements, self.progress)
            && loss_of_plain(&crowd, &plain) < crowd.loss(&drafts)
        {
            return self.refine_plain(&plain);
        }
        if has_groups {
            let each: Vec<usize> = (0..drafts.len()).collect();
            groups::group(&crowd, &mut drafts, &each, &rules, self.base.partitioner)?;
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
        if n_short > 0 {
            return Err(AnonymizeError::TooFewJoined { persons: crowd.rows.n_members() as u64, k: crowd.k() });
        }
        release::put_in_order(self.table, &mut classes);
        let loss = measure::measure(crowd, self.table, &classes, persons);
        let release =
            release::render(self.table, &self.joined.rows, self.encoded, &classes, self.spec.register.release);
        let algorithm = self.base.partitioner.name();
        let anonymized = Anonymized { release, loss, persons, algorithm, notes: Note::unused(self.spec) };
        let partitioners = self.base.ran();
        Ok(AnonymizedWithRegister { anonymized, method, classes, partitioners, n_register_used })
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
