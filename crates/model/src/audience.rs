//! [`Audiences`]: who receives a release, what each of them may know, and what each must not be able to do with it,
//! alone or together with others.

use crate::Requirement;

/// The recipients of one released table. All receive the same rows; each may know other columns about a person.
#[derive(Clone, Debug, PartialEq)]
pub struct Audiences {
    /// In the order of their names.
    pub each: Vec<Audience>,
    /// Audiences that may put together what they know: all of them first, where that is asked, then by name.
    pub coalitions: Vec<Coalition>,
    /// Which columns may decide how rows are grouped.
    pub steer: Steer,
}

/// One recipient.
///
/// The library's `kohort::Audience` builds the section of a spec that describes one.
#[derive(Clone, Debug, PartialEq)]
pub struct Audience {
    /// Its name in the spec.
    pub name: String,
    /// The quasi columns it may know, by name.
    pub quasi: Vec<String>,
    /// What every class of rows that look the same in these columns must satisfy. Holds exactly one
    /// [`Requirement::K`], the audience's own. A requirement on a quasi column that the audience does not know speaks
    /// of the cells that the release shows in it, see [`Requirement`].
    pub requirements: Vec<Requirement>,
}

/// Audiences that may put together what they know.
///
/// The library's `kohort::Coalition` builds the section of a spec that describes one.
#[derive(Clone, Debug, PartialEq)]
pub struct Coalition {
    /// Its name in the spec; none for all audiences together.
    pub name: Option<String>,
    /// The names of its members.
    pub members: Vec<String>,
    /// What every class of rows that look the same in the columns of all members must satisfy.
    pub requirements: Vec<Requirement>,
}

/// Which columns may decide how rows are grouped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Steer {
    /// All columns: the least loss. Who knows the algorithm may learn something about columns that only others know.
    #[default]
    All,
    /// For each group the columns that every audience concerned knows. Whoever knows the algorithm learns nothing
    /// from it, as long as k is all that is asked.
    Common,
}

impl Audiences {
    /// Audiences that nobody fears to collude.
    pub fn new(each: Vec<Audience>) -> Self {
        Audiences { each, coalitions: Vec::new(), steer: Steer::All }
    }

    /// The same, with a k of all audiences together where one is given.
    #[must_use]
    pub fn with_collusion_k(mut self, k: Option<u32>) -> Self {
        if let Some(k) = k {
            let members = self.each.iter().map(|audience| audience.name.clone()).collect();
            self.coalitions.insert(0, Coalition { name: None, members, requirements: vec![Requirement::K(k)] });
        }
        self
    }

    /// Every column any audience may know, each once, in the order of their first mention.
    pub fn union(&self) -> Vec<&str> {
        columns_of(self.each.iter())
    }

    /// Every column that some member of a coalition knows, each once.
    pub fn known_to(&self, coalition: &Coalition) -> Vec<&str> {
        columns_of(self.each.iter().filter(|audience| coalition.members.contains(&audience.name)))
    }
}

fn columns_of<'a>(audiences: impl Iterator<Item = &'a Audience>) -> Vec<&'a str> {
    let mut union: Vec<&str> = Vec::new();
    for column in audiences.flat_map(|audience| &audience.quasi) {
        if !union.contains(&column.as_str()) {
            union.push(column);
        }
    }
    union
}

impl Audience {
    /// Persons in its smallest class.
    pub fn k(&self) -> u32 {
        k_of(&self.requirements).unwrap_or(1)
    }
}

impl Coalition {
    /// What all audiences together are called where a coalition needs a name. No coalition of a spec has it.
    pub const ALL: &'static str = "all";

    /// Persons in its smallest class, where that is asked.
    pub fn k(&self) -> Option<u32> {
        k_of(&self.requirements)
    }

    /// Its name, or the word for all audiences together.
    pub fn word(&self) -> &str {
        self.name.as_deref().unwrap_or(Coalition::ALL)
    }
}

/// The k among some requirements.
fn k_of(requirements: &[Requirement]) -> Option<u32> {
    requirements.iter().find_map(Requirement::k)
}
