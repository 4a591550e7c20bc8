//! Materialized A-views over data that changes: who is shown when, so that whoever kept every answer makes out nobody.
//!
//! Pure: what is kept is read through [`Ledger`], and a change comes out as [`Effect`]s for the caller to write in the
//! transaction of the change. Nothing here knows a table, a clock or a reader.
//!
//! | word | meaning |
//! | --- | --- |
//! | atom | members who were first shown together; a class is a union of atoms |
//! | tuple | everything a row shows beside its quasi labels, sensitive and plain columns alike |
//!
//! # Guarantee
//! By [`Epochs`], for a reader who kept every snapshot, knows this rule, everybody's quasi values, who was in which class
//! when, and who came, changed and was deleted when, but nobody's tuple:
//!
//! 1. *Every set of rows that unions, intersections and differences of classes give satisfies the requirement.* Atoms
//!    gain nobody. They lose members only if those who go and those who stay both satisfy the requirement, or as a whole.
//!    So at any two times a row's atom is the same set, or one a part of the other, and two atoms share no row: the sets
//!    are laminar. A class is a union of them at every time, hence so is whatever classes are combined to, and each
//!    requirement holds for a union of disjoint sets for which it holds. Shares of t and beta are measured against the
//!    view as it was built, so that they hold for good.
//! 2. *Nobody is in two atoms.* Whoever was in one is hidden for good once they left it or their row was replaced, until
//!    a refresh is forced. So nothing that two atoms have in common can be anybody's, and exchanging the tuples of two
//!    members of the smallest set they are in gives a world with the same snapshots: who comes, waits and goes is decided by
//!    numbers, persons and their k, and by values only for whole crowds, once, see below.
//!
//! The paper and m-invariance `[XT07]` show survivors again, among newcomers with the same values. That is not safe, as far
//! as it could be made: of {p: flu, q: gout, x: flu} erase x and show p and q again, with the same two values, and x had
//! flu. Nor is it safe to show them beside newcomers who have all values that could be theirs: {p: flu, q: gout}, p moves,
//! m: flu and n: gout come, {p, m, n} show flu, flu, gout; whoever knows that m and n had to have both knows p by the third.
//! Whatever the rule, it has to refuse crowds that lack one of the values, and whom it accepts tells what others had. With
//! counterfeits, as there, a table would hold rows of nobody.
//!
//! # What else a reader could use
//! - *When.* Where values decide whether a crowd suffices, its last member is who made it suffice: of four who waited
//!   with flu nobody was shown, the fifth came, and they are. [`Closing::BySize`] lets numbers alone decide when, and
//!   hides whom values fail; [`Closing::Earliest`] does not protect against readers who know who came when.
//! - *That a crowd is not shown.* By size, it tells that its values are too much alike. Its members are then no newcomers
//!   any more, also with another row: in another crowd, values that are there once would tell the others'.
//! - *Whether a new tuple is shown.* It is not, whichever it is. Whoever misses somebody learns that their row changed.
//! - *Who stops asking for a class.* A person shown alone fills no class, also not in old snapshots: who was in a class
//!   is not shown alone before a refresh, and who was shown alone is in no class.
//! - *Labels.* A class that newcomers do not fit into is not raised: they found one of their own. Labels are the least
//!   that cover an atom, as they are in every release: they tell quasi values, which the reader is taken to know.
//! - *Who has another name.* Persons are told by their identifiers: the caller says who was renamed.
//! - *A base with several rows per person* is the caller's to refuse: members are persons.
//! - *Refusals.* A column that a member's refusal hides for the class, or that has expired for one, may appear when the
//!   member's row is gone. It then shows what the others allow, of a set that stands by itself by (1); of whoever refused
//!   it shows what it showed before the refusal, or nothing. Hiding it for good would protect nobody: that somebody
//!   refused, the class told while it was hidden. A row keeps the choice it was shown with; who changes it has a new row,
//!   and the old one leaves like any other. That days do not go back is the caller's part.
//! - *Own k.* A larger wish counts for the new row; the old one leaves like any other.
//!
//! # Paper
//! `[EPS+12]` section 7
//! # Deviations
//! The paper's own rule shows whoever comes at once, in the nearest class. It gives newcomers away by difference, which
//! no verifier of a step can allow, so it is not here; `kohort-testkit` has it as the naive side of an attack.
//! # Cost
//! A newcomer: one search in the index and one waiting list. A batch: each waiting list and each atom once.

mod epochs;
mod index;
mod ledger;
mod memory;
mod refresh;
mod standard;
#[cfg(test)]
mod tests;
mod tree;

pub use epochs::{Closing, Departures, Epochs};
pub use index::{Change, ClassIndex};
pub use ledger::{
    AtomId, AtomMember, ClassId, Edit, Effect, Ledger, Member, MemberKey, Past, PersonKey, Place, Shown, Tuple,
};
pub use memory::MemoryLedger;
pub use refresh::{Combined, NewClass, OldAtom, Refreshed, refresh};
pub use standard::{ReferenceColumn, Standard, UnfitStandard};
pub use tree::{GrowingTree, PathError};
