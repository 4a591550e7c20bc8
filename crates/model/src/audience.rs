//! [`Audiences`]: who receives a release, which columns each recipient may know, and which requirements hold for each
//! of them, alone or together with others.

use crate::Requirement;

/// The recipients of one released table. All receive the same rows, but each may know other columns about a person.
#[derive(Clone, Debug, PartialEq)]
pub struct Audiences {
    /// The audiences, in the order of their names.
    pub each: Vec<Audience>,
    /// Audiences that may combine what they know: all of them first, if the spec has requirements for that, then by
    /// name.
    pub coalitions: Vec<Coalition>,
    /// Which columns may decide how rows are grouped.
    pub steer: Steer,
}

/// One recipient.
///
/// The library's `kohort::Audience` builds the section of a spec that describes one.
#[derive(Clone, Debug, PartialEq)]
pub struct Audience {
    /// The name in the spec.
    pub name: String,
    /// The names of the quasi columns that the audience may know.
    pub quasi: Vec<String>,
    /// What every class of rows that look the same in these columns must satisfy. Contains exactly one
    /// [`Requirement::K`], that of the audience. A requirement on a quasi column that the audience does not know
    /// applies to the cells that the release shows in the column, see [`Requirement`].
    pub requirements: Vec<Requirement>,
}

/// Audiences that may combine what they know.
///
/// The library's `kohort::Coalition` builds the section of a spec that describes one.
#[derive(Clone, Debug, PartialEq)]
pub struct Coalition {
    /// The name in the spec; `None` for all audiences together.
    pub name: Option<String>,
    /// The names of the members.
    pub members: Vec<String>,
    /// What every class of rows that look the same in the columns of all members must satisfy.
    pub requirements: Vec<Requirement>,
}

/// Which columns may decide how rows are grouped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Steer {
    /// All columns, which gives the least loss. A reader who knows the algorithm may learn something about columns that
    /// only others know.
    #[default]
    All,
    /// Only columns that every audience concerned knows. A reader who knows the algorithm learns nothing from it, as
    /// long as k is the only requirement.
    Common,
}

impl Audiences {
    /// Audiences without coalitions.
    pub fn new(each: Vec<Audience>) -> Self {
        Audiences { each, coalitions: Vec::new(), steer: Steer::All }
    }

    /// Adds a k for all audiences together, if one is given.
    #[must_use]
    pub fn with_collusion_k(mut self, k: Option<u32>) -> Self {
        if let Some(k) = k {
            let members = self.each.iter().map(|audience| audience.name.clone()).collect();
            self.coalitions.insert(0, Coalition { name: None, members, requirements: vec![Requirement::K(k)] });
        }
        self
    }

    /// Every column that some audience may know, each once, in the order of their first mention.
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
    /// The k of the audience.
    pub fn k(&self) -> u32 {
        k_of(&self.requirements).unwrap_or(1)
    }
}

impl Coalition {
    /// The name of the coalition of all audiences. No coalition in a spec may have this name.
    pub const ALL: &'static str = "all";

    /// The k of the coalition, if it has one.
    pub fn k(&self) -> Option<u32> {
        k_of(&self.requirements)
    }

    /// The name of the coalition, or [`Coalition::ALL`].
    pub fn word(&self) -> &str {
        self.name.as_deref().unwrap_or(Coalition::ALL)
    }
}

/// The k among some requirements.
fn k_of(requirements: &[Requirement]) -> Option<u32> {
    requirements.iter().find_map(Requirement::k)
}
