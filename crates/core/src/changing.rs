//! Materialized A-views over data that changes: who is shown when, so that a reader who kept every answer identifies
//! nobody.
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
//! 2. *Nobody is in two atoms.* A person who was in one is hidden for good after leaving it or getting another row, until
//!    a refresh is forced. So nothing that two atoms have in common can be anybody's, and exchanging the tuples of two
//!    members of the smallest set they are in gives a world with the same snapshots: who comes, waits and goes is decided by
//!    numbers, persons and their k, and by values only for whole crowds, once, see below.
//!
//! The paper and m-invariance `[XT07]` show survivors again, among newcomers with the same values. That is not safe. Of
//! {p: flu, q: gout, x: flu} erase x and show p and q again, with the same two values: x had flu. Nor is it safe to
//! show them beside newcomers who have all values that could be theirs: {p: flu, q: gout}, p moves, m: flu and n: gout
//! come, {p, m, n} show flu, flu, gout. A reader who knows that m and n had to have both values knows p by the third.
//! Any rule has to refuse crowds that lack one of the values, and the crowds it accepts tell what others had. With
//! counterfeits, as in m-invariance, a table would hold rows of nobody.
//!
//! # What else a reader could use
//! - *When.* Where values decide whether a crowd suffices, its last member made it suffice: of four who waited with flu
//!   nobody was shown, the fifth came, and all five are. [`Closing::BySize`] lets numbers alone decide when, and hides the
//!   crowds whose values fail. [`Closing::Earliest`] does not protect against readers who know who came when.
//! - *That a crowd is not shown.* Where numbers decide when, that tells that its values are too much alike. Its members are then no newcomers
//!   any more, also with another row, because a value that is unique in another crowd would tell those of the others.
//! - *Whether a new tuple is shown.* A new tuple of somebody who was shown stays hidden, whatever it holds. A reader who misses
//!   somebody learns only that their row changed.
//! - *Who stops asking for a class.* A person shown alone fills no class, also not in old snapshots. So a person who was in
//!   a class is not shown alone before a refresh, and one who was shown alone joins no class.
//! - *Labels.* A class that newcomers do not fit into is not raised: they found one of their own. Labels are the least that
//!   cover an atom, as in every release. They tell quasi values, which the reader is taken to know.
//! - *Who has another name.* Persons are told by their identifiers: the caller says who was renamed.
//! - *A base with several rows per person.* The caller must refuse it, because members are persons.
//! - *Refusals.* A column that is hidden for the class, because a member refused it or it has expired for one, may appear
//!   when that member's row is gone. The column then shows what the others allow, of a set that stands by itself by (1), and
//!   nothing of the member who refused but what it showed before the refusal. Hiding the column for good would protect
//!   nobody, because the class told that somebody refused while the column was hidden. A row keeps the choice it was shown
//!   with. A person who changes it has a new row, and the old one leaves like any other. The caller makes sure that days
//!   do not go back.
//! - *Own k.* A larger wish counts for the new row; the old one leaves like any other.
//!
//! # Paper
//! `[EPS+12]` section 7
//! # Deviations
//! The paper's own rule shows newcomers at once, in the nearest class. The difference of two snapshots then gives them
//! away, which no verifier of a step can allow, so that rule is not here; `kohort-testkit` has it as the naive side of
//! an attack.
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
