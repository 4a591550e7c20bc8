//! [`joined_findings`]: the findings of a table from those of its parts, none of which shares a class with another.

use std::collections::BTreeMap;

use crate::count::requirement::Worst;
use crate::{Findings, SensitiveFindings, Violation};

/// The findings of all parts of a table together. `None` if there is no part.
///
/// Classes must not be spread over parts, and each row must be a person. Then counts add up, and the worst of all parts is the
/// worst of the whole.
pub fn joined_findings(parts: Vec<Findings>) -> Option<Findings> {
    let mut parts = parts.into_iter();
    let mut joined = parts.next()?;
    for part in parts {
        joined.rows += part.rows;
        joined.persons += part.persons;
        joined.classes += part.classes;
        joined.k = joined.k.min(part.k);
        joined.unique_persons += part.unique_persons;
        joined.class_sizes = sizes_of_both(&joined.class_sizes, &part.class_sizes);
        joined.highest_risk = joined.highest_risk.max(part.highest_risk);
        joined.sensitive = joined.sensitive.into_iter().zip(part.sensitive).map(worst).collect();
        part.unmet.into_iter().for_each(|violation| add_unmet(&mut joined.unmet, violation));
    }
    joined.average_risk = joined.classes as f64 / joined.persons.max(1) as f64;
    Some(joined)
}

/// Adds what is unmet in a part, to the same requirement of other parts where it is unmet there, too.
fn add_unmet(all: &mut Vec<Violation>, violation: Violation) {
    let Violation::Unmet { requirement, n_classes, reached, first_row, class_size } = &violation else {
        all.push(violation);
        return;
    };
    for known in all.iter_mut() {
        let Violation::Unmet {
            requirement: same,
            n_classes: n_known,
            reached: worst,
            first_row: first,
            class_size: size_of_first,
        } = known
        else {
            continue;
        };
        if same == requirement {
            *n_known += n_classes;
            *worst = Worst::of(requirement).pick(*worst, *reached);
            if first_row < first {
                (*first, *size_of_first) = (*first_row, *class_size);
            }
            return;
        }
    }
    all.push(violation);
}

fn sizes_of_both(some: &[(u64, u64)], others: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut n_classes: BTreeMap<u64, u64> = BTreeMap::new();
    for (size, n) in some.iter().chain(others) {
        *n_classes.entry(*size).or_default() += n;
    }
    n_classes.into_iter().collect()
}

/// The worse of two in each measure.
fn worst((some, other): (SensitiveFindings, SensitiveFindings)) -> SensitiveFindings {
    let larger = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a.max(b));
    SensitiveFindings {
        column: some.column,
        l: some.l.min(other.l),
        entropy_l: some.entropy_l.min(other.entropy_l),
        recursive_c: larger(some.recursive_c, other.recursive_c),
        t: some.t.max(other.t),
        t_ordered: larger(some.t_ordered, other.t_ordered),
        t_hierarchical: larger(some.t_hierarchical, other.t_hierarchical),
        alpha: some.alpha.max(other.alpha),
        beta: some.beta.max(other.beta),
        enhanced_beta: larger(some.enhanced_beta, other.enhanced_beta),
    }
}
