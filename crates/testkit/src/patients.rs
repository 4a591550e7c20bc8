//! The synthetic PATIENT of the query-processing paper's experiments, in any number.
//!
//! # Paper
//! `[EPS+12]`, section 8.2: up to 100,000 patients with name, birthdate, area and disease; name identifies them,
//! birthdate and area are quasi, disease is sensitive; DGHs of depth 4 at most; k from 0 to 9 and the level of the
//! disease at random.
//! # Deviations
//! The paper leaves the following open, and here it is so: births are spread over 90 years; 5,000 areas in 100
//! districts in 10 regions, a few of which have most of the patients; 400 diseases in 40 groups in 8 organs. Years have
//! 12 months of 28 days.

use std::fmt::Write;

use crate::random::Random;

const N_AREAS: usize = 5_000;
const AREAS_PER_DISTRICT: usize = 50;
const DISTRICTS_PER_REGION: usize = 10;
const N_DISEASES: usize = 400;
const DISEASES_PER_GROUP: usize = 10;
const GROUPS_PER_ORGAN: usize = 5;
/// Levels of a disease above itself.
const N_LEVELS: usize = 3;

/// Files as texts.
pub struct Patients {
    /// `name,birthdate,area,disease`
    pub patient: String,
    /// `name,k,sa_level`
    pub choices: String,
    /// The paths of all areas.
    pub area_paths: String,
    /// The paths of all diseases.
    pub disease_paths: String,
}

/// Generates this many patients, always the same ones for one seed.
pub fn generate(n_patients: usize, seed: u64) -> Patients {
    let mut random = Random::new(seed);
    let mut patient = "name,birthdate,area,disease\n".to_owned();
    let mut choices = "name,k,sa_level\n".to_owned();
    for number in 0..n_patients {
        let (year, month, day) = (1920 + random.below(90), 1 + random.below(12), 1 + random.below(28));
        // The first areas are cities, so they are drawn more often.
        let bound = 1 + random.below(N_AREAS);
        let (area, disease) = (area(random.below(bound)), disease(random.below(N_DISEASES)));
        line(&mut patient, format_args!("P{number:06},{year}-{month:02}-{day:02},{area},{disease}"));
        let (k, level) = (random.below(10), random.below(N_LEVELS));
        line(&mut choices, format_args!("P{number:06},{k},{level}"));
    }
    let mut area_paths = String::new();
    for number in 0..N_AREAS {
        let district = number / AREAS_PER_DISTRICT;
        let region = district / DISTRICTS_PER_REGION;
        line(&mut area_paths, format_args!("{};district {district:02};region {region};*", area(number)));
    }
    let mut disease_paths = String::new();
    for number in 0..N_DISEASES {
        let group = number / DISEASES_PER_GROUP;
        let organ = group / GROUPS_PER_ORGAN;
        line(&mut disease_paths, format_args!("{};group {group:02};organ {organ};*", disease(number)));
    }
    Patients { patient, choices, area_paths, disease_paths }
}

fn area(number: usize) -> String {
    format!("A{number:04}")
}

fn disease(number: usize) -> String {
    format!("D{number:03}")
}

fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(text, "{line}").expect("texts in memory take everything");
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use kohort_model::Hierarchy;

    use super::*;

    #[test]
    fn every_patient_has_a_choice_and_every_value_a_path() {
        let made = generate(2_000, 1);
        let column = |text: &str, position: usize| -> Vec<String> {
            text.lines().skip(1).filter_map(|line| line.split(',').nth(position)).map(str::to_owned).collect()
        };
        let names = column(&made.patient, 0);
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), 2_000);
        assert_eq!(names, column(&made.choices, 0));
        for (position, paths) in [(2, &made.area_paths), (3, &made.disease_paths)] {
            let hierarchy = Hierarchy::from_paths(paths).unwrap();
            assert!(column(&made.patient, position).iter().all(|text| hierarchy.leaf(text).is_some()));
        }
        assert_eq!(generate(2_000, 1).patient, made.patient);
        assert_ne!(generate(2_000, 2).patient, made.patient);
    }
}
