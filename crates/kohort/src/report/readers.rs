//! [`readers`]: how well everybody, or each audience and coalition, finds persons in a release.
//!
//! # Paper
//! The prosecutor and the journalist: `[ED08]`. The marketer: `[DE10]`. The chance to pick the right one of a class is one over
//! its size. A prosecutor knows that the person is in the private table, so only its persons hide each other. A journalist does
//! not, so all persons of the population do; without a register nobody knows how many these are, and the prosecutor's figure is
//! the most that the journalist's can be. A marketer links everybody at once, and finds on average the mean of these chances.

use std::collections::BTreeSet;

use kohort_model::report::{
    AboveReport, AttackerReport, Basis, ClassSizeReport, CountedIn, PresetReport, ReaderKind, ReaderReport,
    ReleaseKind, ShareReport,
};
use kohort_model::spec::RegisterRows;
use kohort_model::{Coalition, Manifest, Role, Table};
use kohort_verify::{AudienceFindings, Findings};

use crate::counts::hides_persons;

/// The thresholds that shares of persons are counted for: classes of 2, 3, 5 and 10 persons, the limit of the European
/// Medicines Agency, and classes of 20.
const THRESHOLDS: [f64; 6] = [0.5, 1.0 / 3.0, 0.2, 0.1, 0.09, 0.05];

/// Published limits as presets of a spec, with the persons that the smallest class must have.
pub(super) const PRESETS: [(&str, u32); 2] = [("ema", 12), ("cms", 11)];

pub(super) fn readers(
    manifest: &Manifest,
    findings: &Findings,
    kind: ReleaseKind,
    tables: &[Table],
) -> Vec<ReaderReport> {
    let quasi = |table: &Table| -> Vec<String> {
        let names = table.with_role(Role::Quasi).into_iter().map(|column| table.columns[column].name.clone());
        match kind {
            ReleaseKind::ManyTables => names.map(|name| format!("{}.{name}", table.name)).collect(),
            ReleaseKind::OneTable | ReleaseKind::Audiences | ReleaseKind::Register => names.collect(),
        }
    };
    let all: Vec<String> = tables.iter().flat_map(quasi).collect();
    if kind == ReleaseKind::Audiences {
        return of_audiences(manifest, findings, &all);
    }
    let sizes = &findings.class_sizes;
    let claimed = AttackerReport {
        basis: Basis::Claimed,
        highest: manifest.risk.highest.after,
        average: manifest.risk.average.after,
        above: Vec::new(),
    };
    let (counted, class_sizes, prosecutor, journalist, marketer) = if kind == ReleaseKind::Register {
        // The sizes are those of the released rows. Only the publisher and the owner of the register know the crowd.
        let average = ShareReport { basis: Basis::Claimed, share: claimed.average };
        let is_microdata =
            manifest.register.as_ref().is_some_and(|join| join.release == RegisterRows::Microdata.word());
        match is_microdata {
            true => (CountedIn::Persons, sizes.as_slice(), Some(counted(sizes)), claimed, average),
            false => {
                let journalist = AttackerReport { above: above(sizes), ..claimed };
                (CountedIn::PersonsAndRegister, sizes.as_slice(), None, journalist, average)
            }
        }
    } else if hides_persons(findings) {
        let marketer = ShareReport { basis: Basis::Claimed, share: claimed.average };
        let journalist = AttackerReport { basis: Basis::AtMost, ..claimed.clone() };
        (CountedIn::Unknown, &[][..], Some(claimed), journalist, marketer)
    } else {
        let found = counted(sizes);
        let marketer = ShareReport { basis: Basis::Counted, share: found.average };
        let journalist = AttackerReport { basis: Basis::AtMost, ..found.clone() };
        (CountedIn::Persons, sizes.as_slice(), Some(found), journalist, marketer)
    };
    vec![ReaderReport {
        kind: ReaderKind::Everybody,
        name: None,
        knows: all,
        k_asked: Some(manifest.requirement.k),
        k: manifest.achieved.k,
        counted,
        class_sizes: sizes_report(class_sizes),
        prosecutor,
        journalist,
        marketer,
        presets: presets(manifest.achieved.k),
    }]
}

fn of_audiences(manifest: &Manifest, findings: &Findings, all: &[String]) -> Vec<ReaderReport> {
    let is_hidden = hides_persons(findings);
    let reader = |kind: ReaderKind, found: &AudienceFindings, k: u64, k_asked: Option<u32>, knows: Vec<String>| {
        let figures = match is_hidden {
            false => counted(&found.class_sizes),
            // The manifest has no mean for each audience. The mean is at most the risk of the smallest class.
            true => AttackerReport {
                basis: Basis::AtMost,
                highest: 1.0 / k.max(1) as f64,
                average: 1.0 / k.max(1) as f64,
                above: Vec::new(),
            },
        };
        ReaderReport {
            kind,
            name: Some(found.audience.clone()),
            knows,
            k_asked,
            k,
            counted: if is_hidden { CountedIn::Unknown } else { CountedIn::Persons },
            class_sizes: if is_hidden { Vec::new() } else { sizes_report(&found.class_sizes) },
            journalist: AttackerReport { basis: Basis::AtMost, ..figures.clone() },
            marketer: ShareReport { basis: figures.basis, share: figures.average },
            prosecutor: Some(figures),
            presets: presets(k),
        }
    };
    let audiences = findings.audiences.iter().map(|found| {
        let asked = manifest.audiences.get(&found.audience);
        let knows = asked.map_or_else(Vec::new, |asked| asked.quasi.clone());
        let k = manifest.achieved.audiences.get(&found.audience).copied().unwrap_or(found.k);
        reader(ReaderKind::Audience, found, k, asked.map(|asked| asked.k), knows)
    });
    let coalitions = findings.coalitions.iter().map(|found| {
        let asked = manifest.requirement.coalitions.get(&found.audience);
        let of_all = || manifest.requirement.collusion_k.filter(|_| found.audience == Coalition::ALL);
        let members = asked.map_or(&[][..], |asked| asked.audiences.as_slice());
        let known: BTreeSet<&String> =
            members.iter().filter_map(|member| manifest.audiences.get(member)).flat_map(|each| &each.quasi).collect();
        let knows = match found.audience == Coalition::ALL {
            true => all.to_vec(),
            false => all.iter().filter(|column| known.contains(column)).cloned().collect(),
        };
        let k = manifest.achieved.coalitions.get(&found.audience).map_or(found.k, |reached| reached.k);
        reader(ReaderKind::Coalition, found, k, asked.and_then(|asked| asked.k).or_else(of_all), knows)
    });
    audiences.chain(coalitions).collect()
}

fn sizes_report(sizes: &[(u64, u64)]) -> Vec<ClassSizeReport> {
    sizes.iter().map(|&(size, classes)| ClassSizeReport { size, classes }).collect()
}

/// What somebody finds who knows that the person is in one of these classes.
fn counted(sizes: &[(u64, u64)]) -> AttackerReport {
    let n_persons: u64 = sizes.iter().map(|(size, classes)| size * classes).sum();
    let n_classes: u64 = sizes.iter().map(|(_, classes)| classes).sum();
    let smallest = sizes.first().map_or(1, |&(size, _)| size.max(1));
    AttackerReport {
        basis: Basis::Counted,
        highest: 1.0 / smallest as f64,
        average: n_classes as f64 / n_persons.max(1) as f64,
        above: above(sizes),
    }
}

pub(super) fn above(sizes: &[(u64, u64)]) -> Vec<AboveReport> {
    let n_persons: u64 = sizes.iter().map(|(size, classes)| size * classes).sum();
    let entry = |risk: f64| {
        let is_above = |(size, _): &&(u64, u64)| 1.0 / (*size).max(1) as f64 > risk;
        let persons: u64 = sizes.iter().filter(is_above).map(|(size, classes)| size * classes).sum();
        AboveReport { risk, persons, share: persons as f64 / n_persons.max(1) as f64 }
    };
    THRESHOLDS.into_iter().map(entry).collect()
}

fn presets(k: u64) -> Vec<PresetReport> {
    let preset = |(name, asked): (&str, u32)| PresetReport { name: name.to_owned(), k: asked, met: k >= asked.into() };
    PRESETS.into_iter().map(preset).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chances_are_those_of_the_definitions() {
        // Two classes of 2 persons, one of 6 and one of 12: 22 persons.
        let found = counted(&[(2, 2), (6, 1), (12, 1)]);
        assert_eq!((found.highest, found.average), (0.5, 4.0 / 22.0));
        let persons: Vec<u64> = found.above.iter().map(|above| above.persons).collect();
        // Above 1/2 is nobody in a class of 2. Above 0.1 are classes of up to 9.
        assert_eq!(persons, [0, 4, 4, 10, 10, 22]);
        assert_eq!(found.above[5].share, 1.0);
    }

    #[test]
    fn a_class_of_three_is_not_above_a_third() {
        assert_eq!(above(&[(3, 1)])[1].persons, 0);
        assert_eq!(above(&[(11, 1)])[4].persons, 11, "1/11 is more than 0.09");
        assert_eq!(above(&[(12, 1)])[4].persons, 0);
    }

    #[test]
    fn presets_are_judged_by_the_smallest_class() {
        let met = |k| presets(k).iter().map(|preset| preset.met).collect::<Vec<_>>();
        assert_eq!(met(10), [false, false]);
        assert_eq!(met(11), [false, true]);
        assert_eq!(met(12), [true, true]);
    }
}
