//! [`Audiences`]: who receives a release, what each of them may know, and what each must not be able to do with it.

use crate::Requirement;

/// The recipients of one released table. All receive the same rows; each may know other columns about a person.
#[derive(Clone, Debug, PartialEq)]
pub struct Audiences {
    /// In the order of their names.
    pub each: Vec<Audience>,
    /// What persons must number who look the same even to all audiences together, where that is asked.
    pub collusion_k: Option<u32>,
}

/// One recipient.
#[derive(Clone, Debug, PartialEq)]
pub struct Audience {
    /// Its name in the spec.
    pub name: String,
    /// The quasi columns it may know, by name.
    pub quasi: Vec<String>,
    /// What every class of rows that look the same in these columns must satisfy. Holds exactly one
    /// [`Requirement::K`], the audience's own.
    pub requirements: Vec<Requirement>,
}

impl Audiences {
    /// Every column any audience may know, each once, in the order of their first mention.
    pub fn union(&self) -> Vec<&str> {
        let mut union: Vec<&str> = Vec::new();
        for column in self.each.iter().flat_map(|audience| &audience.quasi) {
            if !union.contains(&column.as_str()) {
                union.push(column);
            }
        }
        union
    }
}

impl Audience {
    /// Persons in its smallest class.
    pub fn k(&self) -> u32 {
        let k = |requirement: &Requirement| match requirement {
            Requirement::K(k) => Some(*k),
            _ => None,
        };
        self.requirements.iter().find_map(k).unwrap_or(1)
    }
}
