//! The patients of `examples/clinic`: made up, the same on every machine.
//!
//! No patient exists. The hierarchies are written from the same lists as the patients, so every value has a leaf.

mod population;
mod random;

use std::fmt::Write as _;

use population::{
    AGES, DIAGNOSES, Diagnosis, FIRST_SYLLABLES, LAST_SYLLABLES, OCCUPATIONS, TOWNS, WARDS, WITHOUT_WORK, stage,
};
use random::Random;

use crate::command::root;

const FOLDER: &str = "examples/clinic";
const SEED: u64 = 2025;
const N_PATIENTS: u32 = 5_000;
/// Ages count back from the end of this year.
const YEAR: u32 = 2025;

/// Writes every generated file of the example.
pub(crate) fn rewrite() -> Result<(), String> {
    for (name, text) in files() {
        let path = root().join(FOLDER).join(name);
        let folder = path.parent().expect("the files lie below the project's root");
        std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        println!("{FOLDER}/{name}");
    }
    Ok(())
}

fn files() -> [(&'static str, String); 3] {
    [
        ("patients.csv", patients()),
        ("hierarchies/occupation.csv", occupation_hierarchy()),
        ("hierarchies/diagnosis.csv", diagnosis_hierarchy()),
    ]
}

#[derive(Clone, Copy)]
enum Sex {
    Female,
    Male,
}

fn patients() -> String {
    let mut random = Random::new(SEED);
    let mut csv = String::from("patient_id,name,birth,postcode,sex,occupation,ward,diagnosis\n");
    for number in 1..=N_PATIENTS {
        let sex = if random.below(100) < 52 { Sex::Female } else { Sex::Male };
        let (age, birth) = birth(&mut random);
        writeln!(
            csv,
            "V{number:05},{name},{birth},{postcode},{sex},{occupation},{ward},{diagnosis}",
            name = name(&mut random),
            postcode = postcode(&mut random),
            sex = match sex {
                Sex::Female => "female",
                Sex::Male => "male",
            },
            occupation = occupation(&mut random, age, sex),
            ward = random.pick(&WARDS),
            diagnosis = diagnosis(&mut random, age, sex),
        )
        .expect("writing to a string does not fail");
    }
    csv
}

/// The age at the end of the year and the day of birth.
fn birth(random: &mut Random) -> (u32, String) {
    const DAYS: [u32; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let bands: Vec<(u32, u32)> = (0..).step_by(5).zip(AGES).collect();
    let &(first_age, _) = random.weighted(&bands, |&(_, weight)| weight);
    let age = first_age + random.below(5);
    let month = random.below(12);
    let day = random.below(DAYS[month as usize]);
    (age, format!("{}-{:02}-{:02}", YEAR - age, month + 1, day + 1))
}

fn name(random: &mut Random) -> String {
    let first = format!("{}{}", random.pick(&FIRST_SYLLABLES), random.pick(&LAST_SYLLABLES));
    let family =
        format!("{}{}{}", random.pick(&FIRST_SYLLABLES), random.pick(&FIRST_SYLLABLES), random.pick(&LAST_SYLLABLES));
    format!("{} {}", capitalized(&first), capitalized(&family))
}

fn capitalized(word: &str) -> String {
    let (first, rest) = word.split_at(1);
    first.to_uppercase() + rest
}

/// Draws a postcode. Within a town the first delivery areas are drawn more often, as if more people lived there.
fn postcode(random: &mut Random) -> String {
    let town = random.weighted(&TOWNS, |town| town.weight);
    let area = random.below(town.n_areas).min(random.below(town.n_areas));
    format!("{}{:02}", town.prefix, area)
}

fn occupation(random: &mut Random, age: u32, sex: Sex) -> &'static str {
    let percent = random.below(100);
    match age {
        0..=5 => "infant",
        6..=17 => "pupil",
        18..=24 if percent < 50 => "student",
        25..=30 if percent < 12 => "student",
        18..=66 if percent >= 94 => "looking for work",
        18..=66 if percent >= 89 && matches!(sex, Sex::Female) => "homemaker",
        60..=66 if percent < 35 => "retired",
        67.. if percent < 95 => "retired",
        _ => random.weighted(&OCCUPATIONS, |job| job.weights[sex as usize]).name,
    }
}

fn diagnosis(random: &mut Random, age: u32, sex: Sex) -> &'static str {
    let weight = |illness: &Diagnosis| illness.by_stage[stage(age)] * illness.by_sex[sex as usize];
    random.weighted(&DIAGNOSES, weight).name
}

fn occupation_hierarchy() -> String {
    let jobs = OCCUPATIONS.iter().map(|job| format!("{};{};{};any occupation\n", job.name, job.group, job.sector));
    let others = WITHOUT_WORK.iter().map(|(name, group)| format!("{name};{group};outside work;any occupation\n"));
    jobs.chain(others).collect()
}

fn diagnosis_hierarchy() -> String {
    DIAGNOSES.iter().map(|illness| format!("{};{};any diagnosis\n", illness.name, illness.chapter)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_committed_files_are_the_generated_ones() {
        for (name, text) in files() {
            let committed = std::fs::read_to_string(root().join(FOLDER).join(name)).unwrap();
            assert!(committed == text, "{name} differs: run `cargo xtask clinic`");
        }
    }

    #[test]
    fn every_value_has_its_leaf() {
        let column = |position: usize| -> BTreeSet<String> {
            patients().lines().skip(1).map(|row| row.split(',').nth(position).unwrap().to_owned()).collect()
        };
        let leaves = |text: &str| -> BTreeSet<String> {
            text.lines().map(|path| path.split(';').next().unwrap().to_owned()).collect()
        };
        assert!(column(5).is_subset(&leaves(&occupation_hierarchy())));
        assert!(column(7).is_subset(&leaves(&diagnosis_hierarchy())));
    }
}
