//! Random jobs of one table for several audiences: who knows which columns, which of them may collude, and which
//! columns an audience must not learn.

use std::fmt;

use kohort_core::AnonymizeError;
use kohort_core::audiences::{AnonymizedForAudiences, anonymize_audiences};
use kohort_model::spec::{Algorithm, Leftovers, LossObjective};
use kohort_model::{Audience, Audiences, Coalition, Distance, Requirement, Role, Silent, Steer};
use proptest::prelude::*;

use super::{Job, Size, job};

/// A table, and what is asked of its release for each audience.
#[derive(Clone)]
pub struct AudiencesJob {
    /// The table and how its release is made. The audiences say what is required.
    pub job: Job,
    /// Who receives the release.
    pub audiences: Audiences,
}

/// Somebody who sees a release: an audience or a coalition.
#[derive(Clone, Debug)]
pub struct Onlooker {
    /// The name of the audience or coalition.
    pub name: String,
    /// The quasi columns it may know.
    pub known: Vec<String>,
    /// What every class of rows that look the same in these columns must satisfy.
    pub requirements: Vec<Requirement>,
}

/// The columns that an audience knows, as bits, and by how much its k exceeds the release's.
type AudienceDraft = (u8, u32);
/// The members as bits, a k, and whether the coalition also has the job's requirements on sensitive columns.
type CoalitionDraft = (u8, u32, bool);
/// An audience, a column that it must not learn unless it knows it, how many disjoint labels each of its classes must
/// show, and how close their shares must be to those of the release.
type HiddenDraft = (usize, usize, u32, Option<f64>);

/// Random jobs for one to four audiences.
pub fn audiences_job(size: Size) -> impl Strategy<Value = AudiencesJob> {
    let drafts = prop::collection::vec((any::<u8>(), 0u32..3), 1..5);
    let coalitions = prop::collection::vec((any::<u8>(), 1u32..5, any::<bool>()), 0..3);
    let hidden = prop::collection::vec((0usize..5, 0usize..9, 1u32..4, prop::option::of(0.2f64..1.0)), 0..3);
    let steer = prop::sample::select(vec![Steer::All, Steer::Common]);
    (job(size), drafts, prop::option::of(2u32..4), coalitions, hidden, steer).prop_map(
        |(job, drafts, collusion_k, coalition_drafts, hidden, steer)| {
            let job = for_audiences(job);
            let mut audiences = audiences(&job, &drafts, collusion_k);
            audiences.coalitions.extend(coalitions_of(&job, &audiences, &coalition_drafts));
            hide(&job, &mut audiences, &hidden);
            audiences.steer = steer;
            AudiencesJob { job, audiences }
        },
    )
}

/// A job that audiences can have: full-domain recoding, leaving out leftovers and objectives are refused for them.
fn for_audiences(mut job: Job) -> Job {
    if job.spec.algorithm == Algorithm::FullDomain {
        job.spec.algorithm = Algorithm::Mondrian;
    }
    job.spec.leftovers = Leftovers::Merge;
    job.spec.objective = LossObjective::Lm;
    job
}

/// Audiences that together know every quasi column.
fn audiences(job: &Job, drafts: &[AudienceDraft], collusion_k: Option<u32>) -> Audiences {
    let quasi = job.table.with_role(Role::Quasi);
    let mut each: Vec<Audience> = Vec::new();
    for (number, &(bits, more)) in drafts.iter().enumerate() {
        let is_last = number + 1 == drafts.len();
        let knows = |place: usize, name: &String| {
            let is_known = each.iter().any(|audience| audience.quasi.contains(name));
            bits >> (place % 8) & 1 == 1 || (is_last && !is_known)
        };
        let names = quasi.iter().map(|&column| job.table.columns[column].name.clone());
        let mut columns: Vec<String> =
            names.enumerate().filter(|(place, name)| knows(*place, name)).map(|(_, name)| name).collect();
        if columns.is_empty() {
            columns.push(job.table.columns[quasi[number % quasi.len()]].name.clone());
        }
        // The first requirement is always k.
        let mut requirements = job.requirements.clone();
        requirements[0] = Requirement::K(job.spec.k + more);
        each.push(Audience { name: format!("audience {number}"), quasi: columns, requirements });
    }
    Audiences::new(each).with_collusion_k(collusion_k)
}

/// Coalitions of some of the audiences.
fn coalitions_of(job: &Job, audiences: &Audiences, drafts: &[CoalitionDraft]) -> Vec<Coalition> {
    let coalition = |(number, &(bits, k, all)): (usize, &CoalitionDraft)| {
        let names = audiences.each.iter().map(|audience| audience.name.clone()).enumerate();
        let members: Vec<String> =
            names.filter(|(place, _)| bits >> (place % 8) & 1 == 1).map(|(_, name)| name).collect();
        let asked = job.requirements.iter().filter(|asked| all && asked.k().is_none()).cloned();
        let requirements = std::iter::once(Requirement::K(k)).chain(asked).collect();
        (members.len() > 1).then(|| Coalition { name: Some(format!("coalition {number}")), members, requirements })
    };
    drafts.iter().enumerate().filter_map(coalition).collect()
}

fn hide(job: &Job, audiences: &mut Audiences, drafts: &[HiddenDraft]) {
    let quasi = job.table.with_role(Role::Quasi);
    let n_audiences = audiences.each.len();
    for &(audience, column, l, t) in drafts {
        let audience = &mut audiences.each[audience % n_audiences];
        let name = &job.table.columns[quasi[column % quasi.len()]].name;
        if !audience.quasi.contains(name) {
            audience.requirements.push(Requirement::DistinctL { column: name.clone(), l });
            let t = t.map(|t| Requirement::TCloseness { column: name.clone(), t, distance: Distance::Equal });
            audience.requirements.extend(t);
        }
    }
}

impl AudiencesJob {
    /// The release, or why there is none.
    ///
    /// # Errors
    /// The errors of [`anonymize_audiences`].
    pub fn run(&self) -> Result<AnonymizedForAudiences, AnonymizeError> {
        anonymize_audiences(&self.job.table, &self.job.spec, &self.audiences, &Silent)
    }

    /// Coalitions that have a name.
    pub fn named_coalitions(&self) -> Vec<&Coalition> {
        self.audiences.coalitions.iter().filter(|coalition| coalition.name.is_some()).collect()
    }

    /// Audiences and coalitions with a name.
    pub fn named(&self) -> Vec<Onlooker> {
        let each = self.audiences.each.iter().map(|audience| Onlooker {
            name: audience.name.clone(),
            known: audience.quasi.clone(),
            requirements: audience.requirements.clone(),
        });
        each.chain(self.named_coalitions().into_iter().map(|coalition| self.together(coalition))).collect()
    }

    /// Audiences and coalitions with a name, and all audiences together if something is required of them.
    pub fn onlookers(&self) -> Vec<Onlooker> {
        let of_all = self.audiences.coalitions.iter().filter(|coalition| coalition.name.is_none());
        self.named().into_iter().chain(of_all.map(|coalition| self.together(coalition))).collect()
    }

    fn together(&self, coalition: &Coalition) -> Onlooker {
        let known = self.audiences.known_to(coalition).into_iter().map(str::to_owned).collect();
        Onlooker { name: coalition.word().to_owned(), known, requirements: coalition.requirements.clone() }
    }
}

impl fmt::Debug for AudiencesJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:?}", self.audiences.steer)?;
        for Onlooker { name, known, requirements } in self.onlookers() {
            writeln!(f, "{name} knows {}: {requirements:?}", known.join(", "))?;
        }
        self.job.fmt(f)
    }
}
