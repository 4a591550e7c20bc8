//! Materialized A-views over data that changes: which rows are shown when, so that a reader who kept every answer
//! identifies nobody.
//!
//! This module is pure. It reads what a view keeps through [`Ledger`], and returns each change as [`Effect`]s, which the
//! caller writes in the transaction of the change. Nothing here knows a table, a clock or a reader.
//!
//! | word | meaning |
//! | --- | --- |
//! | atom | members who were first shown together; a class is a union of atoms |
//! | tuple | everything a row shows beside its quasi labels, sensitive and plain columns alike |
//!
//! # Guarantee
//! The reader kept every snapshot. The reader also knows this rule, everybody's quasi values, who was in which class when,
//! and who came, changed or was deleted when, but nobody's tuple. Against this reader, [`Epochs`] guarantees:
//!
//! 1. *Every set of rows that is a union, an intersection or a difference of classes satisfies the requirement.* An atom
//!    never gains a member. It loses members only if those who leave and those who stay both satisfy the requirement, or
//!    if all of them leave together. So the atoms of a row at two times are the same set, or one is a part of the other;
//!    and two atoms have no row in common. That means that the sets are laminar. A class is always a union of such sets,
//!    and so is everything that classes can be combined to. A requirement that holds for disjoint sets holds for their
//!    union. Shares for t and beta are compared with those of the time when the view was built, so a set that satisfies
//!    the requirement once always does.
//! 2. *Nobody is in two atoms.* A person who leaves an atom, or gets another row, is hidden until a forced refresh. So a
//!    value that two atoms have in common is never that of one person in both. If two members of the smallest set that
//!    contains both exchange their tuples, all snapshots stay the same: only numbers, persons and their k decide who
//!    comes, waits and leaves. Values decide once, and only about a whole crowd, see below.
//!
//! The paper and m-invariance `[XT07]` show the survivors of a class again, among newcomers with the same values. That is
//! not safe:
//!
//! - Take the class {p: flu, q: gout, x: flu}. If x is erased, and p and q are shown again with the same two values, then
//!   x had the flu.
//! - Take {p: flu, q: gout}, and let p move. If m: flu and n: gout come, {p, m, n} shows flu, flu, gout, which are all
//!   values that could be p's. A reader who knows that m and n were needed to have both values knows that p has the third.
//!
//! Any such rule must refuse crowds that lack one of the values, so the crowds that it accepts tell what others had. With
//! counterfeits, as in m-invariance, a table would hold rows of nobody.
//!
//! # What else a reader could use
//! - *When a crowd is shown.* If values decide whether a crowd suffices, its last member made it suffice: four persons with
//!   the flu waited, and nobody was shown; a fifth came, and all five are shown, so the fifth has another value.
//!   [`Closing::BySize`] lets numbers alone decide when, and hides crowds whose values don't satisfy the requirement.
//!   [`Closing::Earliest`] does not protect against readers who know who came when.
//! - *That a crowd is not shown.* If numbers decide when, a hidden crowd tells that its values are too much alike. So its
//!   members are no newcomers any more, not even with another row: if one of their values were the only one of its kind
//!   in another crowd, it would tell the values of the others.
//! - *Whether a new tuple is shown.* A new tuple of a person who was shown stays hidden, whatever it holds. A reader who
//!   misses somebody learns only that their row changed.
//! - *Who stops asking for a class.* A person shown alone gives no cover to a class, not even in old snapshots. So a person
//!   who was in a class is not shown alone before a refresh, and a person who was shown alone joins no class.
//! - *Labels.* If newcomers don't fit into the labels of a class, these are not raised: the newcomers found a class of
//!   their own. Labels are the lowest that cover an atom, as in every release. They tell quasi values, which the reader is
//!   assumed to know.
//! - *Who has another name.* Persons are told apart by their identifiers. The caller says who was renamed.
//! - *Several rows per person.* The caller must refuse such a table, because members are persons.
//! - *Refusals.* A column is hidden for a whole class if one member refused it, or if it has expired for one. It may appear
//!   again once the row of that member is gone. It then shows what the others allow. They satisfy the requirement by
//!   themselves, because of (1). So about the member who refused, readers learn nothing beyond what the column showed
//!   before the refusal. Hiding the column for good would protect nobody, because while it was hidden, the class told that
//!   somebody refused. A row keeps the choice with which it was shown. A person who changes the choice gets a new row, and
//!   the old one leaves like any other. The caller makes sure that days do not go back.
//! - *Own k.* A larger k counts for the person's new row; the old one leaves like any other.
//!
//! # Paper
//! `[EPS+12]` section 7
//! # Deviations
//! The paper's own rule shows newcomers at once, in the nearest class. The difference of two snapshots then shows their
//! values. No verifier of a step can allow that, so the rule is not here; `kohort-testkit` has it as the naive side of an
//! attack.
//! # Cost
//! For a newcomer, one search in the index and one waiting list; for a batch, each waiting list and each atom once.

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
