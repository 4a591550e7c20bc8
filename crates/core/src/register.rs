//! A release in the presence of a public register: what attackers know of the population, the publisher knows too, and
//! blurs less at the same risk.
//!
//! Every class holds at least k persons of the join of private table and register, and at least one private row. With
//! sensitive columns a release is two tables: rows of everybody with their sensitive group, and the values per group.
//!
//! If presence in the private table is to be hidden, classes are those of the whole population, chosen without
//! looking at who is private (see `blind`). If it is public, classes are made for the private rows, and register rows
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
//! `groups`), persons' own k for classes and groups. Persons who can be in no group are left out. If presence is
//! hidden, a class then lacks a row, which tells that somebody in it is private; so shares count those who were left
//! out in every class. If presence is public, two more rules apply. Refinement replaces the direct method if the plain
//! release has a lower reported NCP, so that no more is lost than without the register. The direct method replaces
//! refinement if there is no plain release. The method `auto` runs both and takes what loses less: private rows, by reported
//! NCP, or everybody if presence is hidden, because a choice by private rows would tell something about them.
//! # Cost
//! that of the partitioner on the joined rows; if presence is public, for refinement on the private rows and again on
//! what lies in each of their classes. Nothing per register person but their codes

mod base;
mod blind;
mod crowd;
pub mod estimate;
mod groups;
mod index;
mod measure;
mod mend;
mod previous;
mod refine;
mod release;
mod scale;
mod trim;

use kohort_model::spec::{Algorithm, Leftovers, RegisterMethod, RegisterRows, RegisterUse};
use kohort_model::{JoinedRegister, Note, Persons, PreviousRelease, Progress, Requirement, Spec, Table};
use rayon::prelude::*;

use crate::encode::Encoded;
use crate::partition::{LeastLoss, Partitioner};
use crate::requirement::Rules;
use crate::{AnonymizeError, Anonymized, Classified, classify, partitioner, suppress};
use base::Base;
use blind::{Population, PublicClass};
use crowd::{Crowd, Draft};
use index::RowTree;
use previous::{ClassPersons, Earlier, LookedAt, Past};

/// A release with a register and what it costs, not yet verified.
#[derive(Debug)]
pub struct AnonymizedWithRegister {
    /// The release.
    pub anonymized: Anonymized,
    /// How its classes were found.
    pub method: RegisterMethod,
    /// The classes in the released order.
    pub classes: Vec<JoinedClass>,
    /// The partitioners that made its classes, which need not be the one that the spec names.
    pub partitioners: Vec<&'static str>,
    /// Register persons in the classes.
    pub n_register_used: u64,
    /// Private rows that are left out because no class can take them beside earlier releases, ascending.
    pub left_out: Vec<u32>,
    /// What everybody loses in the classes of the whole population, if these were made without looking at who is private.
    loss_of_everybody: Option<f64>,
}

/// Joined rows that look the same and share a sensitive group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinedClass {
    /// The intervals its cells show: one of codes per quasi column.
    pub cells: Vec<(u32, u32)>,
    /// Its private rows.
    pub microdata: Vec<u32>,
    /// The register persons of the class, as joined rows.
    pub register: Vec<u32>,
    /// The sensitive group, from 1.
    pub group: u32,
}

impl JoinedClass {
    /// How many persons it has.
    pub fn n_persons(&self) -> u64 {
        (self.microdata.len() + self.register.len()) as u64
    }
}

/// Anonymizes one table in the presence of a register, as the spec asks, to be read beside `previous` releases.
///
/// # Errors
/// If the requirement can't be reached. There is then no release at all.
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
    if spec.register.method == RegisterMethod::Auto {
        let by = |method: RegisterMethod| {
            let register = RegisterUse { method, ..spec.register };
            let spec = Spec { register, ..spec.clone() };
            anonymize_with_register(table, joined, previous, &spec, requirements, progress)
        };
        return better(by(RegisterMethod::Refine), by(RegisterMethod::Direct));
    }
    // Full-domain recoding shows a whole column at one level, but a register makes some classes finer.
    if spec.algorithm == Algorithm::FullDomain {
        return Err(AnonymizeError::Unavailable { algorithm: spec.algorithm, kind: "with a register" });
    }
    progress.begin("encode", 0);
    let columns: Vec<usize> = (0..joined.rows.columns.len()).collect();
    let encoded = Encoded::new(&joined.rows, &columns)?;
    let read = |release| Earlier::read(release, &joined.rows, &encoded.domains, table);
    let earlier = previous.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    // If presence is hidden, classes must not depend on who is private.
    let (looked_at, method) = match (spec.register.release, spec.register.method) {
        _ if joined.n_register == 0 && spec.delta_presence.is_none() => (LookedAt::Private, RegisterMethod::Refine),
        (RegisterRows::All, method) => (LookedAt::Everybody, method),
        (RegisterRows::Microdata, method) => (LookedAt::Private, method),
    };
    let encoded = match looked_at {
        LookedAt::Private => {
            let shares = scale::private_shares(joined, &encoded);
            encoded.relative_to(&shares)
        }
        LookedAt::Everybody => encoded,
    };
    let partitioner: Box<dyn Partitioner> = match (spec.algorithm, looked_at, method) {
        // Repacking lowers the loss of everybody, and so may raise that of the few who are private.
        (Algorithm::Auto, LookedAt::Everybody, RegisterMethod::Refine) => Box::new(LeastLoss { repacks: 0 }),
        _ => partitioner(spec, Vec::new())?,
    };
    let base = Base::new(partitioner.as_ref(), spec);
    let past = (!earlier.is_empty()).then(|| Past::new(earlier, joined, &encoded, looked_at));
    let mut job = RegisterJob {
        table,
        joined,
        past,
        spec,
        requirements,
        encoded: &encoded,
        base,
        has_groups: !release::copied_columns(table).is_empty(),
        left_out: Vec::new(),
        progress,
    };
    job.left_out = job.left_out(looked_at)?;
    if let Some(past) = &mut job.past {
        past.leave_out(&job.left_out);
    }
    match (looked_at, method) {
        (LookedAt::Everybody, method) => job.blind(method),
        (LookedAt::Private, RegisterMethod::Direct) => job.direct(),
        // `Auto` became one of the others above.
        (LookedAt::Private, RegisterMethod::Refine | RegisterMethod::Auto) => job.refine(),
    }
}

/// Of two releases, the one that loses less; the first of equals. If presence is hidden, both must be possible, because what is
/// impossible may depend on who is private.
fn better(
    refined: Result<AnonymizedWithRegister, AnonymizeError>,
    direct: Result<AnonymizedWithRegister, AnonymizeError>,
) -> Result<AnonymizedWithRegister, AnonymizeError> {
    match (refined, direct) {
        (Ok(refined), Ok(direct)) => {
            let loses_less = match (refined.loss_of_everybody, direct.loss_of_everybody) {
                (Some(refined), Some(direct)) => direct < refined,
                _ => direct.anonymized.loss.ncp < refined.anonymized.loss.ncp,
            };
            Ok(if loses_less { direct } else { refined })
        }
        (Ok(one), Err(_)) | (Err(_), Ok(one)) if one.loss_of_everybody.is_none() => Ok(one),
        (Err(error), _) | (_, Err(error)) => Err(error),
    }
}

/// One release with a register in the making.
struct RegisterJob<'a> {
    table: &'a Table,
    joined: &'a JoinedRegister,
    /// The earlier classes in which people can have been; `None` without earlier releases.
    past: Option<Past<'a>>,
    spec: &'a Spec,
    requirements: &'a [Requirement],
    encoded: &'a Encoded<'a>,
    base: Base<'a>,
    /// Whether anything is released as it is, so that private rows are in sensitive groups.
    has_groups: bool,
    /// Private rows that no class can take beside earlier releases.
    left_out: Vec<u32>,
    progress: &'a dyn Progress,
}

impl RegisterJob<'_> {
    /// Classes of the whole population, chosen without looking at who is private.
    fn blind(&self, method: RegisterMethod) -> Result<AnonymizedWithRegister, AnonymizeError> {
        if self.spec.leftovers == Leftovers::Suppress {
            return Err(AnonymizeError::LeftoversWithRegister);
        }
        let (kept, persons) = self.kept()?;
        let rules = Rules::compile(self.table, self.requirements, &kept)?;
        let largest_k = if self.past.is_some() { self.largest_k()? } else { rules.k() };
        let is_part = |person| self.past.as_ref().is_none_or(|past| !past.is_publicly_unplaceable(person, largest_k));
        let crowd = Crowd::new(self.joined, self.encoded, &rules, (&kept, is_part), self.spec.unmatched());
        let population = Population::new(&crowd, is_part);
        let size = population.class_size(self.spec.delta_presence);
        let too_few = AnonymizeError::TooFewJoined { persons: population.n_counted(), k: size };
        let classes =
            population.classes(&self.base, self.past.as_ref(), (method, size), self.progress).map_err(|_| too_few)?;
        if let Some(bounds) = self.spec.delta_presence {
            let is_outside = |class: &&PublicClass| !population.is_within(class, bounds, persons.suppressed);
            let classes = classes.par_iter().filter(is_outside).count() as u64;
            if classes > 0 {
                return Err(AnonymizeError::Presence { least: bounds.0, most: bounds.1, classes });
            }
        }
        let released: Vec<((usize, &PublicClass), Draft)> = classes
            .par_iter()
            .enumerate()
            .filter_map(|(number, class)| {
                let region = if method == RegisterMethod::Refine { class.region } else { number };
                Some(((region, class), population.draft(class)?))
            })
            .collect();
        let (public, mut drafts): (Vec<(usize, &PublicClass)>, Vec<Draft>) = released.into_iter().unzip();
        if self.has_groups {
            let regions: Vec<usize> = public.iter().map(|&(region, _)| region).collect();
            groups::group(&crowd, &mut drafts, &regions, self.base.partitioner)?;
        }
        if let Some(past) = &self.past {
            let persons = |((_, class), draft): (&(usize, &PublicClass), &Draft)| ClassPersons {
                members: population.persons(class),
                released: crowd.persons(draft),
            };
            let persons: Vec<ClassPersons> = public.par_iter().zip(&drafts).map(persons).collect();
            self.make_readable_together(&crowd, past, &mut drafts, &persons, |_| largest_k)?;
        }
        let loss_of_everybody = Some(population.loss(&classes));
        Ok(AnonymizedWithRegister { loss_of_everybody, ..self.finish(&crowd, drafts, persons, method)? })
    }

    /// The largest k that anybody asks for, among those who can be in a class at all.
    fn largest_k(&self) -> Result<u32, AnonymizeError> {
        let kept = self.kept_without(&[])?;
        let rules = Rules::compile(self.table, self.requirements, &kept)?;
        Ok(kept.iter().map(|&row| rules.k_of_row(row)).max().unwrap_or(0).max(rules.k()))
    }

    /// The private rows that no class can take beside earlier releases.
    fn left_out(&self, looked_at: LookedAt) -> Result<Vec<u32>, AnonymizeError> {
        let Some(past) = &self.past else { return Ok(Vec::new()) };
        let largest_k = self.largest_k()?;
        let everybody: Vec<u32> = (0..self.table.n_rows as u32).collect();
        let rules = Rules::compile(self.table, self.requirements, &everybody)?;
        let needed = |row: u32| match looked_at {
            LookedAt::Everybody => largest_k,
            LookedAt::Private => rules.k_of_row(row).min(largest_k),
        };
        let left_out: Vec<u32> = everybody.into_iter().filter(|&row| past.is_unplaceable(row, needed(row))).collect();
        if left_out.len() as u64 > suppress::allowance(self.spec.max_suppressed, self.table.n_rows as u64) {
            let rows = left_out.iter().map(|&row| u64::from(row) + 1).collect();
            return Err(AnonymizeError::PreviousCrowd { rows, k: rules.k() });
        }
        Ok(left_out)
    }

    /// Makes cells wide enough, and groups large enough, for the release to be read beside earlier ones.
    fn make_readable_together(
        &self,
        crowd: &Crowd<'_>,
        past: &Past<'_>,
        drafts: &mut [Draft],
        persons: &[ClassPersons],
        needed: impl Fn(u32) -> u32 + Sync,
    ) -> Result<(), AnonymizeError> {
        self.progress.begin("read together", 0);
        let n_narrow = previous::widen(crowd, past, drafts, persons, needed);
        debug_assert_eq!(n_narrow, 0, "whom no class can take was left out before");
        previous::merge_groups(crowd, past, self.table, self.requirements, drafts, persons)
    }

    /// The private rows that take part: all, unless some can be in no class or no sensitive group.
    fn kept(&self) -> Result<(Vec<u32>, Persons), AnonymizeError> {
        let kept = self.kept_without(&self.left_out)?;
        let (n_in, n_out) = (self.table.n_rows as u64, kept.len() as u64);
        Ok((kept, Persons { n_in, n_out, suppressed: n_in - n_out }))
    }

    fn kept_without(&self, left_out: &[u32]) -> Result<Vec<u32>, AnonymizeError> {
        if self.has_groups {
            let RegisterJob { table, encoded, requirements, spec, .. } = *self;
            return suppress::rows_that_can_stand(table, encoded, requirements, spec.max_suppressed, left_out);
        }
        let is_kept = |row: &u32| left_out.binary_search(row).is_err();
        Ok((0..self.table.n_rows as u32).filter(is_kept).collect())
    }

    fn classify(&self) -> Result<Classified, AnonymizeError> {
        classify(self.table, self.encoded, self.spec, self.requirements, &self.left_out, self.progress)
    }

    /// Refines the classes of the plain release. If the private table is too small for k, there is no plain release to
    /// refine, and everybody is partitioned at once.
    fn refine(&self) -> Result<AnonymizedWithRegister, AnonymizeError> {
        match self.classify() {
            Ok(plain) => self.refine_plain(&plain),
            Err(_) if self.joined.n_register > 0 => self.direct(),
            Err(error) => Err(error),
        }
    }

    fn refine_plain(&self, plain: &Classified) -> Result<AnonymizedWithRegister, AnonymizeError> {
        let groups = groups_of(plain);
        let crowd = self.crowd_of(&plain.rules, &groups.concat());
        let mut free = RowTree::new(&crowd);
        let mut drafts = if self.joined.n_register == 0 {
            plain_drafts(groups)
        } else {
            refine::refine(&crowd, &groups, &mut free, &self.base, self.progress)
        };
        mend::mend(&crowd, &mut drafts, |_| free);
        self.make_fitted_readable(&crowd, &mut drafts)?;
        self.finish(&crowd, drafts, plain.persons, RegisterMethod::Refine)
    }

    /// Partitions everybody at once, unless the plain release loses less, or there is nothing else. The loss that
    /// decides is the one that is reported, of finished releases.
    fn direct(&self) -> Result<AnonymizedWithRegister, AnonymizeError> {
        let direct = self.partition_joined();
        // Private rows alone may be too few for a plain release, or for one that satisfies everything.
        let Ok(plain) = self.classify() else { return direct };
        let Ok(direct) = direct else { return self.refine_plain(&plain) };
        let ncp = direct.anonymized.loss.ncp;
        if self.ncp_of_plain(&plain).is_none_or(|of_plain| ncp <= of_plain) {
            return Ok(direct);
        }
        // Refined classes can lose more than plain ones, which need not hold what the register says of somebody.
        Ok(self.refine_plain(&plain).ok().filter(|refined| refined.anonymized.loss.ncp < ncp).unwrap_or(direct))
    }

    fn partition_joined(&self) -> Result<AnonymizedWithRegister, AnonymizeError> {
        let (kept, persons) = self.kept()?;
        let rules = Rules::compile(self.table, self.requirements, &kept)?;
        let crowd = self.crowd_of(&rules, &kept);
        let too_few = AnonymizeError::TooFewJoined { persons: crowd.rows.n_members() as u64, k: rules.k() };
        let mut drafts =
            self.base.drafts(&crowd, &crowd.rows, self.progress, |rows| crowd.draft(rows)).map_err(|_| too_few)?;
        mend::mend(&crowd, &mut drafts, |drafts| RowTree::beside(&crowd, drafts));
        if self.has_groups {
            let each: Vec<usize> = (0..drafts.len()).collect();
            groups::group(&crowd, &mut drafts, &each, self.base.partitioner)?;
        }
        self.make_fitted_readable(&crowd, &mut drafts)?;
        self.finish(&crowd, drafts, persons, RegisterMethod::Direct)
    }

    /// The NCP that the plain release would report, read beside earlier ones; `None` if the earlier releases make a
    /// plain release impossible.
    fn ncp_of_plain(&self, plain: &Classified) -> Option<f64> {
        let groups = groups_of(plain);
        let crowd = self.crowd_of(&plain.rules, &groups.concat());
        let mut drafts = plain_drafts(groups);
        self.make_fitted_readable(&crowd, &mut drafts).ok()?;
        Some(measure::measure(&crowd, self.table, &crowd.classes(drafts), plain.persons).ncp)
    }

    /// Everybody of the register, and these private rows.
    fn crowd_of<'c>(&'c self, rules: &'c Rules, kept: &[u32]) -> Crowd<'c> {
        Crowd::new(self.joined, self.encoded, rules, (kept, |_| true), self.spec.unmatched())
    }

    /// The same for classes that are made for their private rows.
    fn make_fitted_readable(&self, crowd: &Crowd<'_>, drafts: &mut [Draft]) -> Result<(), AnonymizeError> {
        let Some(past) = &self.past else { return Ok(()) };
        let private = |draft: &Draft| match self.spec.register.release {
            RegisterRows::All => ClassPersons { members: draft.microdata.clone(), released: crowd.persons(draft) },
            RegisterRows::Microdata => {
                ClassPersons { members: draft.microdata.clone(), released: draft.microdata.clone() }
            }
        };
        let persons: Vec<ClassPersons> = drafts.iter().map(private).collect();
        self.make_readable_together(crowd, past, drafts, &persons, |row| crowd.rules.k_of_row(row))
    }

    fn finish(
        &self,
        crowd: &Crowd<'_>,
        drafts: Vec<Draft>,
        persons: Persons,
        method: RegisterMethod,
    ) -> Result<AnonymizedWithRegister, AnonymizeError> {
        crate::stop_if_cancelled(self.progress)?;
        self.progress.begin("recode", 0);
        if !drafts.iter().all(|draft| crowd.stands(draft)) {
            return Err(AnonymizeError::TooFewJoined { persons: crowd.rows.n_members() as u64, k: crowd.k() });
        }
        let mut classes = crowd.classes(drafts);
        let n_register_used: u64 = classes.iter().map(|class| class.register.len() as u64).sum();
        release::put_in_order(self.table, &mut classes);
        let loss = measure::measure(crowd, self.table, &classes, persons);
        let release =
            release::render(self.table, &self.joined.rows, self.encoded, &classes, self.spec.register.release);
        let algorithm = self.base.partitioner.name();
        let anonymized = Anonymized { release, loss, persons, algorithm, notes: Note::unused(self.spec) };
        let partitioners = self.base.ran();
        let left_out = self.left_out.clone();
        let loss_of_everybody = None;
        Ok(AnonymizedWithRegister {
            anonymized,
            method,
            classes,
            partitioners,
            n_register_used,
            left_out,
            loss_of_everybody,
        })
    }
}

/// The private rows of each class of the plain release.
fn groups_of(plain: &Classified) -> Vec<Vec<u32>> {
    let Classified { rows, classes, shown, .. } = plain;
    (0..shown.len()).map(|class| shown.members(class, classes, rows).collect()).collect()
}

/// The classes of the plain release, each a sensitive group.
fn plain_drafts(groups: Vec<Vec<u32>>) -> Vec<Draft> {
    let draft = |(microdata, group)| Draft { microdata, group, ..Draft::default() };
    groups.into_iter().zip(0..).map(draft).collect()
}

#[cfg(test)]
mod tests;
