//! Materialized A-views over data that changes: who is shown when, so that whoever kept every answer makes out nobody.
//!
//! Pure: what is kept is read through [`Ledger`], and a change comes out as [`Effect`]s for the caller to write in the
//! transaction of the change. Nothing here knows a table, a clock or a reader.
//!
//! | word | meaning |
//! | --- | --- |
//! | atom | members who were first shown together; a class is a union of atoms |
//! | tuple | everything a row shows beside its quasi labels, sensitive and plain columns alike |
//! | core | the members of an atom who were never shown in another one |
//! | rider | a member who was: a survivor of a withdrawn atom, or somebody whose row was replaced |
//! | past | of somebody who may become a rider: the tuples of the core in which they were first shown |
//!
//! # Guarantee
//! By [`Epochs`], for a reader who kept every snapshot, knows everybody's quasi values, who was in which class when, and
//! who was deleted when, but nobody's tuple:
//!
//! 1. *Every set of rows that unions, intersections and differences of classes give satisfies the requirement.* Atoms
//!    gain nobody. They lose members only if those who go and those who stay both satisfy the requirement, or as a whole.
//!    So at any two times a row's atom is the same set, or one a part of the other, and two atoms share no row: the sets
//!    are laminar. A class is a union of them at every time, hence so is whatever classes are combined to, and each
//!    requirement holds for a union of disjoint sets for which it holds. Shares of t and beta are measured against the
//!    view as it was built, so that they hold for good.
//! 2. *Whoever is shown in several atoms can still have had every tuple of the core they first came with, and hides
//!    among as many rows of each atom as they ask for.* Take such a core, two of its members with tuples u and v, and
//!    exchange the two. Go through all later atoms in the order in which they were first shown. The riders among their
//!    members may have changed from u to v or back, which moves the atom's counts of u and v by at most the number of
//!    its riders. The core has both at least that often, for u and v are of each such rider's past; so as many of its
//!    members change the other way, and the atom shows what it showed before. Members of a core are shown nowhere
//!    earlier, so nothing that was settled is touched, and the result is a world that gives the same snapshots. Parts of
//!    an atom that go or stay keep the same rule for themselves. Nothing is used of who rides where, how often, or with
//!    whom. This is m-invariance `[XT07]` with less than equal sets and no counterfeits.
//!
//! That an atom's values include those of the past is not enough: of {p: flu, q: gout, x: flu} erase x and show p and q
//! again, with the same two values, and x had flu. Nor are values column by column: a tuple that comes back whole tells
//! whose it is, by a plain column too. Requirements on shares promise more than that a tuple is possible, so under
//! these nobody rides.
//!
//! # What else a reader could use
//! - *When.* Where values decide whether a crowd suffices, its last member is who made it suffice: of four who waited
//!   with flu nobody was shown, the fifth came, and they are. [`Closing::BySize`] lets numbers alone decide when, and
//!   hides whom values fail; [`Closing::Earliest`] does not protect against readers who know who came when.
//! - *Whether a new tuple is shown.* It must not depend on which one it is, so somebody with a tuple outside their past
//!   stays hidden. Whoever misses them learns that it changed.
//! - *Who stops asking for a class.* A person shown alone fills no class, also not in old snapshots: who was in a class
//!   is not shown alone before a refresh, and who was shown alone is in no class.
//! - *Labels.* A class that newcomers do not fit into is not raised: they found one of their own. Labels are the least
//!   that cover an atom, as they are in every release: they tell quasi values, which the reader is taken to know.
//! - *A person shown twice.* An old row stays while it leaves, and the new one may be shown by then: as a rider.
//! - *A base with several rows per person* is the caller's to refuse: members are persons.
//! - *Refusals.* A column that a member's refusal hides for the class, or that has expired for one, may appear when the
//!   member's row is gone. It then shows what the others allow, of a set that stands by itself by (1); of whoever refused
//!   it shows what it showed before the refusal, or nothing. Hiding it for good would protect nobody: that somebody
//!   refused, the class told while it was hidden. A row keeps the choice it was shown with; who changes it has a new row,
//!   and the old one leaves like any other. That days do not go back is the caller's part.
//! - *Own k.* A larger wish counts for the new row; the old one leaves like any other.
//!
//! # Paper
//! `[EPS+12]` section 7, whose own rule is kept in `paper`; it gives newcomers away by difference.
//! # Cost
//! A newcomer: one search in the index and one waiting list. A batch: each waiting list and each atom once.

mod epochs;
mod index;
mod ledger;
mod memory;
mod paper;
mod refresh;
mod standard;
#[cfg(test)]
mod tests;
mod tree;

pub use epochs::{Closing, Departures, Epochs};
pub use index::{Change, ClassIndex};
pub use ledger::{
    AtomId, AtomMember, ClassId, Edit, Effect, Ledger, Member, MemberKey, Past, PersonKey, Place, Shown, Standing,
    Survivors, Tuple,
};
pub use memory::MemoryLedger;
pub use paper::{Paper, UNSAFE};
pub use refresh::{Combined, Refreshed, refresh};
pub use standard::{ReferenceColumn, Standard, UnfitStandard};
pub use tree::{GrowingTree, PathProblem};
