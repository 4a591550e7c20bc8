//! [`History`]: random changes of two tables; [`Model`]: the content of the tables after them.
//!
//! People belong to groups. Visits belong to people and are deleted with them. If a test keeps the number of people per
//! group in the same transactions, the number must always agree with [`Model::group_sizes`].

use std::collections::BTreeMap;

use crate::Chance;

/// One change of one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// A person comes, into a group.
    Arrive {
        /// A number that is used only once.
        person: i64,
        /// The group.
        group: i64,
    },
    /// A person goes to another group.
    Move {
        /// A person who arrived and has not left.
        person: i64,
        /// The new group.
        group: i64,
    },
    /// A person leaves, with all their visits.
    Leave {
        /// A person who arrived and has not left.
        person: i64,
    },
    /// A person makes a visit.
    Visit {
        /// A number that is used only once.
        visit: i64,
        /// A person who arrived and has not left.
        person: i64,
    },
}

/// Transactions from a seed, each with one operation or more.
#[derive(Debug, Clone)]
pub struct History {
    chance: Chance,
    model: Model,
    next: i64,
}

impl History {
    /// The history of a seed, from its beginning.
    pub fn new(seed: u64) -> Self {
        Self { chance: Chance::new(seed), model: Model::default(), next: 1 }
    }

    /// The next transaction.
    pub fn next_transaction(&mut self) -> Vec<Operation> {
        (0..=self.chance.below(8)).map(|_| self.next_operation()).collect()
    }

    /// The content of the tables after this many transactions of a seed.
    pub fn model_after(seed: u64, n_transactions: u64) -> Model {
        let mut history = Self::new(seed);
        for _ in 0..n_transactions {
            history.next_transaction();
        }
        history.model
    }

    fn next_operation(&mut self) -> Operation {
        let n_people = self.model.people.len() as u64;
        let kind = if n_people == 0 { 0 } else { self.chance.below(6) };
        let group = i64::try_from(self.chance.below(5)).expect("below 5");
        let operation = match kind {
            0 | 1 => Operation::Arrive { person: self.take_number(), group },
            2 => Operation::Move { person: self.someone(), group },
            3 => Operation::Leave { person: self.someone() },
            _ => Operation::Visit { visit: self.take_number(), person: self.someone() },
        };
        self.model.apply(operation);
        operation
    }

    fn take_number(&mut self) -> i64 {
        self.next += 1;
        self.next - 1
    }

    fn someone(&mut self) -> i64 {
        let position = self.chance.below(self.model.people.len() as u64);
        let position = usize::try_from(position).expect("people are in memory");
        *self.model.people.keys().nth(position).expect("somebody is there")
    }
}

/// The content of the tables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Model {
    /// The group of each person.
    pub people: BTreeMap<i64, i64>,
    /// The person of each visit.
    pub visits: BTreeMap<i64, i64>,
}

impl Model {
    /// How many people each group has; empty groups are left out.
    pub fn group_sizes(&self) -> BTreeMap<i64, i64> {
        let mut sizes = BTreeMap::new();
        for group in self.people.values() {
            *sizes.entry(*group).or_default() += 1;
        }
        sizes
    }

    fn apply(&mut self, operation: Operation) {
        match operation {
            Operation::Arrive { person, group } | Operation::Move { person, group } => {
                self.people.insert(person, group);
            }
            Operation::Leave { person } => {
                self.people.remove(&person);
                self.visits.retain(|_, visitor| *visitor != person);
            }
            Operation::Visit { visit, person } => {
                self.visits.insert(visit, person);
            }
        }
    }
}
