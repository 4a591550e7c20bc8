//! [`Asked`]: what a released table must satisfy, for everybody alike or audience by audience.

use kohort_model::{Audiences, Requirement};

use crate::Violation;

/// What is asked of one table.
#[derive(Clone, Copy, Debug)]
pub enum Asked<'a> {
    /// Of persons that look the same in every quasi column.
    OfAll(&'a [Requirement]),
    /// Of persons that look the same to an audience, audience by audience, and of those that do to all together.
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
    /// What is asked of classes on all quasi columns beside, where there are audiences.
    pub(crate) together: Option<Vec<Requirement>>,
}

/// Quasi columns that somebody may know, and what must hold of persons that look the same in them.
pub(crate) struct View {
    /// Whose they are; nobody's in particular without audiences.
    pub(crate) audience: Option<String>,
    /// Positions among the quasi columns.
    pub(crate) quasi: Vec<usize>,
    pub(crate) requirements: Vec<Requirement>,
}

impl Views {
    /// The views of a table with these quasi columns. Whatever would leave a column uncounted is added to the
    /// violations.
    pub(crate) fn new(asked: Asked<'_>, quasi: &[&str], violations: &mut Vec<Violation>) -> Self {
        let audiences = match asked {
            Asked::OfAll(requirements) => {
                let requirements = requirements.to_vec();
                let all = View { audience: None, quasi: (0..quasi.len()).collect(), requirements };
                return Views { each: vec![all], together: None };
            }
            Asked::OfAudiences(audiences) => audiences,
        };
        if audiences.each.is_empty() {
            violations.push(Violation::NoAudience);
        }
        let mut each = Vec::with_capacity(audiences.each.len());
        for audience in &audiences.each {
            let mut known = Vec::with_capacity(audience.quasi.len());
            for name in &audience.quasi {
                match quasi.iter().position(|column| column == name) {
                    Some(position) => known.push(position),
                    None => {
                        let violation = Violation::KnownColumnMissing { column: name.clone() };
                        violations.push(violation.for_audience(&audience.name));
                    }
                }
            }
            let requirements = audience.requirements.clone();
            each.push(View { audience: Some(audience.name.clone()), quasi: known, requirements });
        }
        for (position, column) in quasi.iter().enumerate() {
            if !each.iter().any(|view| view.quasi.contains(&position)) {
                violations.push(Violation::KnownToNobody { column: (*column).to_owned() });
            }
        }
        Views { each, together: Some(audiences.collusion_k.map(Requirement::K).into_iter().collect()) }
    }

    /// Takes away requirements that can't be counted.
    pub(crate) fn leave_out(&mut self, is_left_out: impl Fn(&Requirement) -> bool) {
        for view in &mut self.each {
            view.requirements.retain(|requirement| !is_left_out(requirement));
        }
    }

    /// The requirements of all views, each once.
    pub(crate) fn requirements(&self) -> Vec<Requirement> {
        let mut requirements: Vec<Requirement> = Vec::new();
        for requirement in self.each.iter().flat_map(|view| &view.requirements) {
            if !requirements.contains(requirement) {
                requirements.push(requirement.clone());
            }
        }
        requirements
    }
}
