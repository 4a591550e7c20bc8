//! [`Judged`]: the outcome of a random job, and [`Tally`]: the outcomes of many.

use std::fmt;

use kohort_verify::{Violation, Violations};

use crate::oracle::Verdict;

/// The outcome of a job.
#[derive(Clone, Debug)]
pub struct Judged {
    /// Whether there was a release.
    pub ending: Ending,
    /// Classes that were recounted, over all onlookers and tables.
    pub classes: u64,
    /// Whether a way to verify the release said that it can't tell.
    pub cannot_tell: bool,
    /// Everything that is wrong; empty if kohort keeps its promises.
    pub faults: Vec<Fault>,
}

/// Whether there was a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// There was a release.
    Released,
    /// There was no release, and brute force found none either.
    RefusedRightly,
    /// There was no release, and there are too many possible releases to try all of them.
    RefusedUntried,
    /// The program panicked.
    Panicked,
}

/// Something that is wrong.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The kind of fault.
    pub kind: FaultKind,
    /// Where the fault is, and what is wrong.
    pub what: String,
}

/// What can be wrong with a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// A class does not satisfy its requirement.
    UnderRequirement,
    /// A released cell, row or count is not true.
    Untrue,
    /// A way to verify refused the release.
    Rejected,
    /// There was no release although brute force finds one, or the reason given is wrong.
    RefusedWithoutNeed,
    /// The program panicked.
    Panicked,
}

impl FaultKind {
    const ALL: [FaultKind; 5] = [
        FaultKind::UnderRequirement,
        FaultKind::Untrue,
        FaultKind::Rejected,
        FaultKind::RefusedWithoutNeed,
        FaultKind::Panicked,
    ];

    fn word(self) -> &'static str {
        match self {
            FaultKind::UnderRequirement => "classes under the requirement",
            FaultKind::Untrue => "untrue",
            FaultKind::Rejected => "valid releases rejected",
            FaultKind::RefusedWithoutNeed => "refused without need",
            FaultKind::Panicked => "panics",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.word(), self.what)
    }
}

impl Judged {
    /// A job with a release, and no fault so far.
    pub fn released() -> Judged {
        Judged { ending: Ending::Released, classes: 0, cannot_tell: false, faults: Vec::new() }
    }

    /// A job without a release. `found` says whether brute force finds one, if everything can be tried.
    pub fn refused(reason: &impl fmt::Display, found: Option<Verdict>) -> Judged {
        let ending = match found {
            None => Ending::RefusedUntried,
            Some(_) => Ending::RefusedRightly,
        };
        let mut judged = Judged { ending, ..Judged::released() };
        if found == Some(Verdict::Holds) {
            judged.fault(FaultKind::RefusedWithoutNeed, format!("{reason}, but brute force finds a release"));
        }
        judged
    }

    pub(super) fn panicked(text: String) -> Judged {
        let mut judged = Judged { ending: Ending::Panicked, ..Judged::released() };
        judged.fault(FaultKind::Panicked, text);
        judged
    }

    /// Records a fault.
    pub fn fault(&mut self, kind: FaultKind, what: impl Into<String>) {
        self.faults.push(Fault { kind, what: what.into() });
    }

    /// Records a fault unless something holds.
    pub(super) fn holds(&mut self, is_so: bool, what: impl FnOnce() -> String) {
        if !is_so {
            self.fault(FaultKind::Untrue, what());
        }
    }

    /// Records what the oracle says about a class and a requirement.
    pub(super) fn class(&mut self, verdict: Verdict, what: impl FnOnce() -> String) {
        if verdict == Verdict::Fails {
            self.fault(FaultKind::UnderRequirement, what());
        }
    }

    /// Records what one way to verify says.
    pub(super) fn verified<T>(&mut self, way: &str, outcome: Result<T, Violations>) -> Option<T> {
        match outcome {
            Ok(found) => Some(found),
            Err(violations) if violations.0.iter().all(Violation::is_undecided) => {
                self.cannot_tell = true;
                None
            }
            Err(violations) => {
                self.fault(FaultKind::Rejected, format!("{way}: {violations}"));
                None
            }
        }
    }
}

/// The outcomes of many jobs.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// All jobs.
    pub jobs: u64,
    /// Jobs with a release.
    pub released: u64,
    /// Jobs without a release, for which brute force finds none either.
    pub refused_rightly: u64,
    /// Jobs without a release that have too many possible releases to try all of them.
    pub refused_untried: u64,
    /// Jobs with a release for which one way to verify can't tell.
    pub cannot_tell: u64,
    /// Classes that were recounted.
    pub classes: u64,
    /// For each kind of fault, how many jobs have it.
    faults: [u64; FaultKind::ALL.len()],
}

impl Tally {
    /// Adds a job.
    pub fn add(&mut self, judged: &Judged) {
        self.jobs += 1;
        self.classes += judged.classes;
        self.cannot_tell += u64::from(judged.cannot_tell);
        match judged.ending {
            Ending::Released => self.released += 1,
            Ending::RefusedRightly => self.refused_rightly += 1,
            Ending::RefusedUntried => self.refused_untried += 1,
            Ending::Panicked => {}
        }
        for (count, kind) in self.faults.iter_mut().zip(FaultKind::ALL) {
            *count += u64::from(judged.faults.iter().any(|fault| fault.kind == kind));
        }
    }

    /// Jobs with a fault of this kind.
    pub fn with_fault(&self, kind: FaultKind) -> u64 {
        FaultKind::ALL.iter().zip(self.faults).filter(|(other, _)| **other == kind).map(|(_, n)| n).sum()
    }

    /// Whether nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.faults.iter().all(|&n| n == 0)
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { jobs, released, refused_rightly, refused_untried, cannot_tell, classes, .. } = self;
        write!(
            f,
            "{jobs} jobs, {released} released with {classes} classes, {cannot_tell} can't tell, \
             {} refused ({refused_rightly} by brute force, too)",
            refused_rightly + refused_untried
        )?;
        FaultKind::ALL.iter().zip(self.faults).try_for_each(|(kind, n)| write!(f, ", {n} {}", kind.word()))
    }
}
