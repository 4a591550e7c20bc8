//! [`Asked`]: what a released table must satisfy, for all readers alike or for each audience and coalition.

use kohort_model::{Audiences, Coalition, Distance, Requirement};

use crate::Violation;

/// What one table must satisfy.
#[derive(Clone, Copy, Debug)]
pub enum Asked<'a> {
    /// Requirements on classes of persons who look the same in every quasi column.
    OfAll(&'a [Requirement]),
    /// Requirements on classes of persons who look the same to one audience, or to a coalition of audiences.
    OfAudiences(&'a Audiences),
}

impl<'a> From<&'a [Requirement]> for Asked<'a> {
    fn from(requirements: &'a [Requirement]) -> Self {
        Asked::OfAll(requirements)
    }
}

impl<'a, const N: usize> From<&'a [Requirement; N]> for Asked<'a> {
    fn from(requirements: &'a [Requirement; N]) -> Self {
        Asked::OfAll(requirements)
    }
}

impl<'a> From<&'a Vec<Requirement>> for Asked<'a> {
    fn from(requirements: &'a Vec<Requirement>) -> Self {
        Asked::OfAll(requirements)
    }
}

impl<'a> From<&'a Audiences> for Asked<'a> {
    fn from(audiences: &'a Audiences) -> Self {
        Asked::OfAudiences(audiences)
    }
}

/// All perspectives from which a table is counted. Without audiences there is one, on all quasi columns.
pub(crate) struct Perspectives {
    /// One per audience, each counted by itself.
    pub(crate) each: Vec<Perspective>,
    /// All audiences together first, even if nothing is required of them, then coalitions by name. Empty without
    /// audiences.
    pub(crate) coalitions: Vec<Perspective>,
}

/// The quasi columns that somebody may know, and the requirements on persons who look the same in them.
pub(crate) struct Perspective {
    pub(crate) whose: Whose,
    /// Positions among the quasi columns.
    pub(crate) quasi: Vec<usize>,
    /// Requirements on persons and on sensitive columns.
    pub(crate) requirements: Vec<Requirement>,
    /// Requirements on quasi columns that only other audiences know.
    pub(crate) hidden: Vec<HiddenRequirement>,
}

/// Who sees the classes of a perspective.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// Any reader: there are no audiences.
    Anybody,
    /// One audience.
    Audience(String),
    /// Some audiences that combine what they know.
    Coalition(String),
    /// All audiences.
    All,
}

/// A requirement on the released cells of a quasi column.
pub(crate) struct HiddenRequirement {
    /// The position of the column among the quasi columns.
    pub(crate) column: usize,
    pub(crate) requirement: Requirement,
}

impl Whose {
    /// The name of the audience or coalition in findings.
    pub(crate) fn name(&self) -> &str {
        match self {
            Whose::Anybody => "",
            Whose::Audience(name) | Whose::Coalition(name) => name,
            Whose::All => Coalition::ALL,
        }
    }

    /// The violation together with the audience or coalition that it concerns.
    pub(crate) fn blame(&self, violation: Violation) -> Violation {
        match self {
            Whose::Anybody => violation,
            Whose::Audience(name) => violation.for_audience(name),
            Whose::Coalition(name) => violation.for_coalition(name),
            Whose::All => Violation::Together { violation: Box::new(violation) },
        }
    }
}

impl Perspective {
    /// A perspective on some of the quasi columns. Adds a violation for each requirement that can't be counted.
    fn new(
        whose: Whose,
        known: &[&str],
        requirements: &[Requirement],
        quasi: &[&str],
        violations: &mut Vec<Violation>,
    ) -> Self {
        let mut perspective =
            Perspective { whose, quasi: Vec::with_capacity(known.len()), requirements: Vec::new(), hidden: Vec::new() };
        for name in known {
            match quasi.iter().position(|column| column == name) {
                Some(position) => perspective.quasi.push(position),
                None => {
                    let missing = Violation::KnownColumnMissing { column: (*name).to_owned() };
                    violations.push(perspective.whose.blame(missing));
                }
            }
        }
        for requirement in requirements {
            let of_quasi = requirement.column().and_then(|name| quasi.iter().position(|column| *column == name));
            match of_quasi {
                None => perspective.requirements.push(requirement.clone()),
                Some(column) if perspective.quasi.contains(&column) => {
                    let known = Violation::KnownAlready { column: quasi[column].to_owned() };
                    violations.push(perspective.whose.blame(known));
                }
                Some(column) if is_defined_for_labels(requirement) => {
                    perspective.hidden.push(HiddenRequirement { column, requirement: requirement.clone() });
                }
                Some(column) => {
                    let undefined = Violation::NotOfLabels { column: quasi[column].to_owned() };
                    violations.push(perspective.whose.blame(undefined));
                }
            }
        }
        perspective
    }
}

/// Whether a requirement is defined for cells that may be generalized. See [`Requirement`].
fn is_defined_for_labels(requirement: &Requirement) -> bool {
    match requirement {
        Requirement::DistinctL { .. } => true,
        Requirement::TCloseness { distance, .. } => *distance == Distance::Equal,
        Requirement::K(_)
        | Requirement::PersonK { .. }
        | Requirement::EntropyL { .. }
        | Requirement::RecursiveCL { .. }
        | Requirement::Alpha { .. }
        | Requirement::Beta { .. }
        | Requirement::EnhancedBeta { .. } => false,
    }
}

impl Perspectives {
    /// The perspectives on a table with these quasi columns. Adds a violation for each column that no audience knows,
    /// because no class would count it.
    pub(crate) fn new(asked: Asked<'_>, quasi: &[&str], violations: &mut Vec<Violation>) -> Self {
        let audiences = match asked {
            Asked::OfAll(requirements) => {
                let (requirements, hidden) = (requirements.to_vec(), Vec::new());
                let all =
                    Perspective { whose: Whose::Anybody, quasi: (0..quasi.len()).collect(), requirements, hidden };
                return Perspectives { each: vec![all], coalitions: Vec::new() };
            }
            Asked::OfAudiences(audiences) => audiences,
        };
        if audiences.each.is_empty() {
            violations.push(Violation::NoAudience);
        }
        let mut each = Vec::with_capacity(audiences.each.len());
        for audience in &audiences.each {
            let known: Vec<&str> = audience.quasi.iter().map(String::as_str).collect();
            let whose = Whose::Audience(audience.name.clone());
            each.push(Perspective::new(whose, &known, &audience.requirements, quasi, violations));
        }
        for (position, column) in quasi.iter().enumerate() {
            if !each.iter().any(|perspective| perspective.quasi.contains(&position)) {
                violations.push(Violation::KnownToNobody { column: (*column).to_owned() });
            }
        }
        let of_all = audiences.coalitions.iter().filter(|coalition| coalition.name.is_none());
        let of_all: Vec<Requirement> = of_all.flat_map(|coalition| coalition.requirements.iter().cloned()).collect();
        let mut coalitions = vec![Perspective::new(Whose::All, quasi, &of_all, quasi, violations)];
        for coalition in &audiences.coalitions {
            let Some(name) = &coalition.name else { continue };
            let whose = Whose::Coalition(name.clone());
            for member in &coalition.members {
                if audiences.each.iter().all(|audience| audience.name != *member) {
                    violations.push(whose.blame(Violation::MemberUnknown { audience: member.clone() }));
                }
            }
            let known = audiences.known_to(coalition);
            coalitions.push(Perspective::new(whose, &known, &coalition.requirements, quasi, violations));
        }
        Perspectives { each, coalitions }
    }

    /// The perspectives of audiences, then those of coalitions.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Perspective> {
        self.each.iter().chain(&self.coalitions)
    }

    /// Removes requirements that can't be counted.
    pub(crate) fn leave_out(&mut self, is_left_out: impl Fn(&Requirement) -> bool) {
        for perspective in self.each.iter_mut().chain(&mut self.coalitions) {
            perspective.requirements.retain(|requirement| !is_left_out(requirement));
        }
    }

    /// Removes the chosen requirements on quasi columns that only other audiences know, and returns each of them once.
    pub(crate) fn take_hidden(&mut self, is_taken: impl Fn(&Requirement) -> bool) -> Vec<Requirement> {
        let mut taken: Vec<Requirement> = Vec::new();
        for perspective in self.each.iter_mut().chain(&mut self.coalitions) {
            for hidden in perspective.hidden.extract_if(.., |hidden| is_taken(&hidden.requirement)) {
                if !taken.contains(&hidden.requirement) {
                    taken.push(hidden.requirement);
                }
            }
        }
        taken
    }

    /// The requirements of all perspectives, each once, without those on quasi columns that only other audiences
    /// know.
    pub(crate) fn requirements(&self) -> Vec<Requirement> {
        let mut requirements: Vec<Requirement> = Vec::new();
        for requirement in self.all().flat_map(|perspective| &perspective.requirements) {
            if !requirements.contains(requirement) {
                requirements.push(requirement.clone());
            }
        }
        requirements
    }
}
