//! [`Asked`]: what a released table must satisfy, for everybody alike, or audience by audience and coalition by
//! coalition.

use kohort_model::{Audiences, Coalition, Distance, Requirement};

use crate::Violation;

/// What is asked of one table.
#[derive(Clone, Copy, Debug)]
pub enum Asked<'a> {
    /// Of persons that look the same in every quasi column.
    OfAll(&'a [Requirement]),
    /// Of persons that look the same to an audience, audience by audience, and of those that do to a coalition.
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

/// What is asked, view by view. A release without audiences has one view, of all quasi columns.
pub(crate) struct Views {
    /// Each to be counted by itself.
    pub(crate) each: Vec<View>,
    /// All audiences together first, whatever is asked of them, then coalitions by name; none without audiences.
    pub(crate) coalitions: Vec<View>,
}

/// Quasi columns that somebody may know, and what must hold of persons that look the same in them.
pub(crate) struct View {
    pub(crate) whose: Whose,
    /// Positions among the quasi columns.
    pub(crate) quasi: Vec<usize>,
    /// What is asked of persons and of sensitive columns.
    pub(crate) requirements: Vec<Requirement>,
    /// What is asked of quasi columns that only others know.
    pub(crate) hidden: Vec<HiddenRequirement>,
}

/// Who sees the classes of a view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// Nobody in particular, without audiences.
    Anybody,
    /// One audience.
    Audience(String),
    /// Some audiences that put together what they know.
    Coalition(String),
    /// All audiences.
    All,
}

/// A requirement on the released cells of a quasi column.
pub(crate) struct HiddenRequirement {
    /// Its position among the quasi columns.
    pub(crate) column: usize,
    pub(crate) requirement: Requirement,
}

impl Whose {
    /// Its name in findings.
    pub(crate) fn name(&self) -> &str {
        match self {
            Whose::Anybody => "",
            Whose::Audience(name) | Whose::Coalition(name) => name,
            Whose::All => Coalition::ALL,
        }
    }

    /// A violation, said of what they see.
    pub(crate) fn blame(&self, violation: Violation) -> Violation {
        match self {
            Whose::Anybody => violation,
            Whose::Audience(name) => violation.for_audience(name),
            Whose::Coalition(name) => violation.for_coalition(name),
            Whose::All => Violation::Together { violation: Box::new(violation) },
        }
    }
}

impl View {
    /// A view of some of these quasi columns. What can't be counted is added to the violations.
    fn new(
        whose: Whose,
        known: &[&str],
        requirements: &[Requirement],
        quasi: &[&str],
        violations: &mut Vec<Violation>,
    ) -> Self {
        let mut view =
            View { whose, quasi: Vec::with_capacity(known.len()), requirements: Vec::new(), hidden: Vec::new() };
        for name in known {
            match quasi.iter().position(|column| column == name) {
                Some(position) => view.quasi.push(position),
                None => {
                    let missing = Violation::KnownColumnMissing { column: (*name).to_owned() };
                    violations.push(view.whose.blame(missing));
                }
            }
        }
        for requirement in requirements {
            let of_quasi = requirement.column().and_then(|name| quasi.iter().position(|column| *column == name));
            match of_quasi {
                None => view.requirements.push(requirement.clone()),
                Some(column) if view.quasi.contains(&column) => {
                    let known = Violation::KnownAlready { column: quasi[column].to_owned() };
                    violations.push(view.whose.blame(known));
                }
                Some(column) if is_defined_for_labels(requirement) => {
                    view.hidden.push(HiddenRequirement { column, requirement: requirement.clone() });
                }
                Some(column) => {
                    let undefined = Violation::NotOfLabels { column: quasi[column].to_owned() };
                    violations.push(view.whose.blame(undefined));
                }
            }
        }
        view
    }
}

/// Whether a requirement is defined for cells that may be generalized.
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

impl Views {
    /// The views of a table with these quasi columns. Whatever would leave a column uncounted is added to the
    /// violations.
    pub(crate) fn new(asked: Asked<'_>, quasi: &[&str], violations: &mut Vec<Violation>) -> Self {
        let audiences = match asked {
            Asked::OfAll(requirements) => {
                let (requirements, hidden) = (requirements.to_vec(), Vec::new());
                let all = View { whose: Whose::Anybody, quasi: (0..quasi.len()).collect(), requirements, hidden };
                return Views { each: vec![all], coalitions: Vec::new() };
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
            each.push(View::new(whose, &known, &audience.requirements, quasi, violations));
        }
        for (position, column) in quasi.iter().enumerate() {
            if !each.iter().any(|view| view.quasi.contains(&position)) {
                violations.push(Violation::KnownToNobody { column: (*column).to_owned() });
            }
        }
        let of_all = audiences.coalitions.iter().filter(|coalition| coalition.name.is_none());
        let of_all: Vec<Requirement> = of_all.flat_map(|coalition| coalition.requirements.iter().cloned()).collect();
        let mut coalitions = vec![View::new(Whose::All, quasi, &of_all, quasi, violations)];
        for coalition in &audiences.coalitions {
            let Some(name) = &coalition.name else { continue };
            let whose = Whose::Coalition(name.clone());
            for member in &coalition.members {
                if audiences.each.iter().all(|audience| audience.name != *member) {
                    violations.push(whose.blame(Violation::MemberUnknown { audience: member.clone() }));
                }
            }
            let known = audiences.known_to(coalition);
            coalitions.push(View::new(whose, &known, &coalition.requirements, quasi, violations));
        }
        Views { each, coalitions }
    }

    /// Of audiences and coalitions alike.
    pub(crate) fn all(&self) -> impl Iterator<Item = &View> {
        self.each.iter().chain(&self.coalitions)
    }

    /// Takes away requirements that can't be counted.
    pub(crate) fn leave_out(&mut self, is_left_out: impl Fn(&Requirement) -> bool) {
        for view in self.each.iter_mut().chain(&mut self.coalitions) {
            view.requirements.retain(|requirement| !is_left_out(requirement));
        }
    }

    /// Takes away requirements on quasi columns that only others know, and returns them, each once.
    pub(crate) fn take_hidden(&mut self, is_taken: impl Fn(&Requirement) -> bool) -> Vec<Requirement> {
        let mut taken: Vec<Requirement> = Vec::new();
        for view in self.each.iter_mut().chain(&mut self.coalitions) {
            for hidden in view.hidden.extract_if(.., |hidden| is_taken(&hidden.requirement)) {
                if !taken.contains(&hidden.requirement) {
                    taken.push(hidden.requirement);
                }
            }
        }
        taken
    }

    /// The requirements of all views, each once, but for those on quasi columns that only others know.
    pub(crate) fn requirements(&self) -> Vec<Requirement> {
        let mut requirements: Vec<Requirement> = Vec::new();
        for requirement in self.all().flat_map(|view| &view.requirements) {
            if !requirements.contains(requirement) {
                requirements.push(requirement.clone());
            }
        }
        requirements
    }
}
