//! The catalogue of attacks: what an attacker knows, does and gets, on kohort's releases and on naive ones.
//!
//! An [`Attack`] plays somebody who holds a release and knows things from outside. It runs against several [releases of
//! the same people](Side): some made naively or by an older rule, some by kohort. On at least one of them it has to
//! succeed, because an attack that never does shows nothing about the releases it fails on.
//!
//! | system | what is released | where the attacks are |
//! | --- | --- | --- |
//! | [`System::Tables`] | one table, or many that are joined by keys | `linkage`, `values`, `order`, `connections`, `composition`, `identifiers`, [`minimality`], `unpaired` |
//! | [`System::Audiences`] | one table for several audiences | `collusion`, [`steering`] |
//! | [`System::Register`] | a table beside a public register | `spelling`, [`presence`] |
//! | [`System::Views`] | A-views, and materialized ones that change | [`snapshots`]; those that need SQL: [`statements`] |
//!
//! # Independence
//! Attackers read released cells as texts and count by themselves. They use `kohort-core` only as anybody could run the
//! published program, and `kohort-verify` only where the verifier itself is the target.
//! # Deviations
//! All people are made up from fixed seeds, so every run counts the same.

mod collusion;
mod composition;
pub mod connections;
mod identifiers;
mod linkage;
pub mod minimality;
mod order;
mod people;
pub mod presence;
mod published;
pub mod snapshots;
mod spelling;
pub mod statements;
pub mod steering;
mod table;
mod unpaired;
mod values;

pub use table::{BEGIN, END, page_with, table};

/// The kinds of releases that kohort makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum System {
    /// One table, or many joined tables.
    Tables,
    /// One table for several audiences.
    Audiences,
    /// A table beside a public register.
    Register,
    /// Views that are anonymized when they are read.
    Views,
}

impl System {
    /// The name of the system in the table of attacks.
    pub fn word(self) -> &'static str {
        match self {
            System::Tables => "tables",
            System::Audiences => "audiences",
            System::Register => "register",
            System::Views => "A-views",
        }
    }
}

/// Somebody who tries to learn what a release should not tell.
#[derive(Clone, Copy)]
pub struct Attack {
    /// A short name.
    pub name: &'static str,
    /// What kind of release is attacked.
    pub system: System,
    /// What the attacker has beside the release.
    pub knows: &'static str,
    /// What the attacker does.
    pub does: &'static str,
    /// What counts as an attempt, and when it succeeds: a phrase that reads well after "3 of 10".
    pub success: &'static str,
    /// Runs the attack on each release.
    pub run: fn() -> Vec<Side>,
}

/// What an attack got from one release.
#[derive(Clone, Debug)]
pub struct Side {
    /// How the release was made.
    pub made: &'static str,
    /// What the maker of the release promises.
    pub promised: Promise,
    /// What the attack got.
    pub count: Count,
}

/// What is promised about an attack.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Promise {
    /// This is not a release as kohort makes it; the attack has to succeed.
    Naive,
    /// No attempt succeeds.
    Nobody,
    /// No more attempts succeed than if the attacker had guessed.
    Chance,
    /// At most this share of the attempts succeeds.
    Share(f64),
    /// kohort makes such releases and promises nothing about this attack; the text says what helps. The attack has to
    /// succeed: if it failed, kohort could promise something.
    Nothing(&'static str),
}

/// How often an attack was tried and succeeded.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Count {
    /// Attempts.
    pub tried: u64,
    /// Attempts that succeeded.
    pub succeeded: u64,
    /// Attempts that a guess would have won; 0 if a success is a certain conclusion.
    pub by_chance: f64,
}

impl Count {
    /// Counts attempts that end in a certain conclusion: one `bool` per attempt, whether it succeeded.
    pub fn of(attempts: impl IntoIterator<Item = bool>) -> Count {
        let mut count = Count::default();
        attempts.into_iter().for_each(|succeeded| count.add(succeeded, 0.0));
        count
    }

    /// Adds an attempt that a guess would have won with this probability.
    pub fn add(&mut self, succeeded: bool, by_chance: f64) {
        self.tried += 1;
        self.succeeded += u64::from(succeeded);
        self.by_chance += by_chance;
    }

    /// Whether more attempts succeeded than chance explains: more than four standard deviations of a Poisson
    /// distribution above what is expected, which chance exceeds less than once in ten thousand counts. If nothing is
    /// expected, one success is too many.
    pub fn is_beyond(&self, expected: f64) -> bool {
        let margin = if expected == 0.0 { 0.0 } else { 4.0 * (expected + 1.0).sqrt() };
        self.succeeded as f64 > expected + margin
    }
}

impl Side {
    /// What the attack got from a naive release.
    pub fn naive(made: &'static str, count: Count) -> Side {
        Side { made, promised: Promise::Naive, count }
    }

    /// What the attack got from a release of kohort, and what kohort promises.
    pub fn kohort(made: &'static str, promised: Promise, count: Count) -> Side {
        Side { made, promised, count }
    }

    /// Checks that the attack got as much as it must, and no more than is promised.
    ///
    /// # Errors
    /// A sentence that says which promise was not kept.
    pub fn check(&self) -> Result<(), String> {
        let Side { made, promised, count } = self;
        let works = count.is_beyond(count.by_chance);
        let complaint = match promised {
            _ if count.tried == 0 => Some("nothing was tried"),
            Promise::Naive => (!works).then_some("the attack should succeed on a naive release"),
            Promise::Nobody => (count.succeeded > 0).then_some("nobody should be found"),
            Promise::Chance => works.then_some("the attack should be no better than a guess"),
            Promise::Share(share) => {
                count.is_beyond(share * count.tried as f64).then_some("the attack should be right less often")
            }
            Promise::Nothing(_) => (!works).then_some("the attack fails, so promise that it does"),
        };
        complaint.map_or(Ok(()), |complaint| Err(format!("{made}: {complaint}: {count:?}")))
    }
}

/// All attacks that run without SQL, in the order of the table. The others are in [`statements`].
pub fn catalogue() -> Vec<Attack> {
    [
        linkage::ATTACKS,
        values::ATTACKS,
        order::ATTACKS,
        identifiers::ATTACKS,
        connections::ATTACKS,
        composition::ATTACKS,
        minimality::ATTACKS,
        unpaired::ATTACKS,
        collusion::ATTACKS,
        steering::ATTACKS,
        spelling::ATTACKS,
        presence::ATTACKS,
        snapshots::ATTACKS,
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(promised: Promise, tried: u64, succeeded: u64, by_chance: f64) -> bool {
        Side { made: "so", promised, count: Count { tried, succeeded, by_chance } }.check().is_ok()
    }

    #[test]
    fn a_promise_is_kept_or_not() {
        assert!(check(Promise::Nobody, 9, 0, 0.0) && !check(Promise::Nobody, 9, 1, 0.0));
        assert!(check(Promise::Naive, 9, 1, 0.0) && !check(Promise::Naive, 9, 0, 0.0));
        assert!(check(Promise::Nothing("ask for l"), 9, 1, 0.0) && !check(Promise::Nothing("ask for l"), 9, 0, 0.0));
        // Chance explains 100 successes, and at the very most 140.
        assert!(check(Promise::Chance, 900, 130, 100.0) && !check(Promise::Chance, 900, 150, 100.0));
        assert!(!check(Promise::Naive, 900, 130, 100.0) && check(Promise::Naive, 900, 150, 100.0));
        assert!(check(Promise::Share(0.3), 100, 45, 10.0) && !check(Promise::Share(0.3), 100, 60, 10.0));
    }

    #[test]
    fn an_attack_that_tried_nothing_shows_nothing() {
        for promised in [Promise::Naive, Promise::Nobody, Promise::Chance, Promise::Share(1.0), Promise::Nothing("")] {
            assert!(!check(promised, 0, 0, 0.0), "{promised:?}");
        }
    }
}
