//! An attacker reads a release beside earlier ones. The attacker has all of them, the register, and everybody's values
//! except the sensitive ones.

use std::collections::{BTreeMap, BTreeSet};

use kohort_model::register::{SENSITIVE_GROUP, SENSITIVE_TABLE};
use kohort_model::spec::{Algorithm, RegisterMethod, RegisterRows};
use kohort_model::{Column, NULL, PreviousRelease, ReadBeside, Role, Silent, Spec, Table, ValueType};
use proptest::prelude::*;

use super::METHODS;
use super::oracle::{
    Case, N_VALUES, Private, Registered, asked, can_be_released, case, check, holds, released, run, spec,
};
use crate::AnonymizeError;
use crate::register::{AnonymizedWithRegister, anonymize_with_register};

/// A release as it is read back from its files.
fn read_again(case: &Case, found: &AnonymizedWithRegister, places: Vec<u32>) -> PreviousRelease {
    let table = |position: usize, name: &str| {
        let rows = released(case, &found.anonymized.release, position);
        let columns = found.anonymized.release.tables[position].columns.iter().enumerate().map(|(at, column)| {
            let role = match column.name.as_str() {
                SENSITIVE_GROUP => Role::Key,
                "sa" => Role::Sensitive,
                _ => Role::Quasi,
            };
            let cells = rows.iter().map(|cells| Some(cells[at].as_str()));
            let typed = if role == Role::Quasi && at < 2 { ValueType::Integer } else { ValueType::Text };
            Column::from_cells(&column.name, role, cells).typed(typed)
        });
        Table { name: name.to_owned(), columns: columns.collect(), n_rows: rows.len(), person: None }
    };
    PreviousRelease {
        name: "old".to_owned(),
        tables: vec![table(0, "t"), table(1, SENSITIVE_TABLE)],
        places,
        beside: None,
    }
}

fn beside(
    case: &Case,
    previous: &[PreviousRelease],
    spec: &Spec,
    l: u32,
) -> Result<AnonymizedWithRegister, AnonymizeError> {
    anonymize_with_register(&case.table, &case.joined, previous, spec, &asked(spec.k, l), &Silent)
}

/// For each person the place that the register gives. It is the same at all times.
fn places(case: &Case) -> Vec<u32> {
    let n_persons = (case.joined.n_microdata + case.joined.n_register) as u32;
    (0..n_persons).map(|person| case.joined.public_place(person).unwrap_or(NULL)).collect()
}

/// Looks up every private person of the last release. The attacker combines the person's class in the last release with
/// every class of one earlier release that covers the person, and with all earlier classes that the person was really in.
/// Fails if fewer than k persons remain, or too few values.
fn attack(
    case: &Case,
    found: &AnonymizedWithRegister,
    earlier: &[(&Case, &AnonymizedWithRegister)],
    k: usize,
    l: usize,
) -> Result<(), TestCaseError> {
    let earlier: Vec<Earlier<'_>> = earlier.iter().map(|&(case, found)| (files(case, found), case, found)).collect();
    let (last, sources) = (&files(case, found), &found.anonymized.release.tables[0].rows);
    let values = |(_, values): &Files, class: &[String]| -> BTreeSet<String> {
        let of_group = values.iter().filter(|cells| Some(&cells[0]) == class.last());
        of_group.map(|cells| cells[1].clone()).collect()
    };
    for (class, source) in last.0.iter().zip(sources) {
        let Some((name, numbers, _)) = case.private.get(*source as usize) else { continue };
        let mut ways: Vec<Vec<(usize, &Vec<String>)>> = Vec::new();
        let mut truth = Vec::new();
        for (at, (files, then, found)) in earlier.iter().enumerate() {
            let classes: BTreeSet<&Vec<String>> =
                files.0.iter().filter(|cells| holds(&cells[..cells.len() - 1], numbers)).collect();
            ways.extend(classes.into_iter().map(|class| vec![(at, class)]));
            let sources = &found.anonymized.release.tables[0].rows;
            let is_person = |source: &u32| then.private.get(*source as usize).is_some_and(|person| person.0 == *name);
            truth.extend(sources.iter().position(is_person).map(|row| (at, &files.0[row])));
        }
        ways.push(truth);
        for way in ways.iter().filter(|way| !way.is_empty()) {
            let holds_person = |class: &[String], numbers: &[i32]| holds(&class[..class.len() - 1], numbers);
            let is_candidate = |person: &&Registered| {
                holds_person(class, &person.1) && way.iter().all(|(_, class)| holds_person(class, &person.1))
            };
            let mut candidates: BTreeSet<&str> =
                case.register.iter().filter(is_candidate).map(|person| person.0.as_str()).collect();
            candidates.insert(name);
            prop_assert!(candidates.len() >= k, "{} candidates", candidates.len());
            let mut common = values(last, class);
            for (at, class) in way {
                common = &common & &values(&earlier[*at].0, class);
            }
            prop_assert!(common.is_empty() || common.len() >= l, "{} values", common.len());
        }
    }
    Ok(())
}

/// The rows of a release, and its sensitive values.
type Files = (Vec<Vec<String>>, Vec<Vec<String>>);

/// The files of an earlier release, the case it was made from, and the release in memory.
type Earlier<'a> = (Files, &'a Case, &'a AnonymizedWithRegister);

fn files(case: &Case, found: &AnonymizedWithRegister) -> Files {
    let release = &found.anonymized.release;
    (released(case, release, 0), released(case, release, 1))
}

/// Whether a release that shows nothing about places, and all values as one group, could be read beside earlier ones. The
/// engine only unites groups, so this is the last release that it tries.
fn can_be_read_together(case: &Case, earlier: &[Earlier<'_>], k: usize, l: usize) -> bool {
    let values: Vec<Vec<String>> = case.private.iter().map(|person| vec!["1".to_owned(), person.2.clone()]).collect();
    let n_distinct = values.iter().map(|cells| &cells[1]).collect::<BTreeSet<_>>().len();
    let last: Files = (Vec::new(), values);
    last.1.len() >= k
        && n_distinct >= l
        && nobody_is_made_out(case, &last, earlier, k, l)
        && earlier.iter().all(|(earlier, ..)| differences_tell_nothing(&last, earlier, k, l))
}

/// Whether nobody of the register is found among fewer than k persons, or with fewer than l values, by a reader who looks
/// in any group of a release that shows no places, and in any choice of the earlier classes that may have contained the
/// person. No release needs more than that, not even if it must not depend on who is private.
fn nobody_is_made_out(case: &Case, last: &Files, earlier: &[Earlier<'_>], k: usize, l: usize) -> bool {
    let holds_place = |class: &[String], place: &[i32]| holds(&class[..class.len() - 1], place);
    let groups: Vec<BTreeSet<String>> =
        of_groups(last).into_values().map(|values| values.into_iter().collect()).collect();
    case.register.iter().all(|(_, place)| {
        let mut ways: Vec<Vec<(usize, &Vec<String>)>> = vec![Vec::new()];
        for (at, (files, ..)) in earlier.iter().enumerate() {
            let classes: BTreeSet<&Vec<String>> = files.0.iter().filter(|class| holds_place(class, place)).collect();
            let mut longer = Vec::new();
            for way in &ways {
                longer.extend(classes.iter().map(|&class| [way.as_slice(), &[(at, class)]].concat()));
            }
            ways.extend(longer);
        }
        ways.iter().filter(|way| !way.is_empty()).all(|way| {
            let is_candidate = |person: &&Registered| way.iter().all(|(_, class)| holds_place(class, &person.1));
            let values = |&(at, class): &(usize, &Vec<String>)| -> BTreeSet<String> {
                let of_group = of_groups(&earlier[at].0).remove(&class[class.len() - 1]).unwrap_or_default();
                of_group.into_iter().collect()
            };
            case.register.iter().filter(is_candidate).count() >= k
                && groups.iter().all(|group| {
                    let common = way.iter().fold(group.clone(), |common, class| &common & &values(class));
                    common.is_empty() || common.len() >= l
                })
        })
    })
}

/// The values of each sensitive group.
fn of_groups((_, values): &Files) -> BTreeMap<String, Vec<String>> {
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    values.iter().for_each(|cells| groups.entry(cells[0].clone()).or_default().push(cells[1].clone()));
    groups
}

/// If an earlier release has at most this many groups, every choice of them is compared. Otherwise the oracle claims
/// nothing.
const FEW_GROUPS: usize = 10;

/// Takes the values of any choice of groups of the earlier release away from all values now, and the other way round.
/// Returns whether each time nothing remains, or at least k values of which l are distinct.
fn differences_tell_nothing(last: &Files, earlier: &Files, k: usize, l: usize) -> bool {
    let now: Vec<String> = last.1.iter().map(|cells| cells[1].clone()).collect();
    let then: Vec<Vec<String>> = of_groups(earlier).into_values().collect();
    let tells_nothing = |from: &[String], less: &[String]| {
        let mut left = from.to_vec();
        for value in less {
            if let Some(at) = left.iter().position(|other| other == value) {
                left.swap_remove(at);
            }
        }
        left.is_empty() || left.len() >= k && left.iter().collect::<BTreeSet<_>>().len() >= l
    };
    then.len() <= FEW_GROUPS
        && (1..1_u32 << then.len()).all(|chosen| {
            let of_chosen = then.iter().enumerate().filter(|(at, _)| chosen >> at & 1 == 1);
            let then: Vec<String> = of_chosen.flat_map(|(_, values)| values.iter().cloned()).collect();
            tells_nothing(&now, &then) && tells_nothing(&then, &now)
        })
}

/// For each person of a town, whether the person takes part in a survey, and the answer.
type Wave = (Vec<bool>, Vec<u8>);

/// A town of random people, and several surveys in each of which some of them take part.
fn random_town() -> impl Strategy<Value = (Vec<Registered>, Vec<Wave>)> {
    (1usize..4, 8usize..60).prop_flat_map(|(n_columns, n_people)| {
        let people = prop::collection::vec(prop::collection::vec(0..N_VALUES, n_columns), n_people);
        let wave = || (prop::collection::vec(any::<bool>(), n_people), prop::collection::vec(0u8..4, n_people));
        (people, prop::collection::vec(wave(), 2..4)).prop_map(|(people, waves)| {
            let named = people.into_iter().enumerate().map(|(at, numbers)| (format!("p{at}"), numbers));
            (named.collect(), waves)
        })
    })
}

proptest! {
    #![proptest_config(crate::random_cases(200))]

    #[test]
    fn a_reader_of_all_releases_finds_k_persons_and_l_values(
        (town, waves) in random_town(),
        k in 2u32..5,
        l in 1u32..3,
        method in prop::sample::select(METHODS.to_vec()),
        algorithm in prop::sample::select(vec![Algorithm::Mondrian, Algorithm::TopDown, Algorithm::Auto]),
    ) {
        let spec = spec(k, algorithm, method);
        let mut earlier: Vec<(Case, AnonymizedWithRegister)> = Vec::new();
        for (takes_part, values) in waves {
            let part = town.iter().zip(takes_part).zip(values).filter(|((_, takes_part), _)| *takes_part);
            let private: Vec<Private> =
                part.map(|((person, _), value)| (person.0.clone(), person.1.clone(), format!("v{value}"))).collect();
            if private.is_empty() {
                continue;
            }
            let now = case(private, town.clone());
            let mut previous: Vec<PreviousRelease> =
                earlier.iter().map(|(case, found)| read_again(case, found, places(&now))).collect();
            for (at, release) in previous.iter_mut().enumerate() {
                release.beside = Some(ReadBeside { releases: (0..at).collect(), k: k.into() });
            }
            let found = match beside(&now, &previous, &spec, l) {
                Ok(found) => found,
                Err(error) => {
                    let releases: Vec<Earlier<'_>> =
                        earlier.iter().map(|(case, found)| (files(case, found), case, found)).collect();
                    let is_reachable = can_be_released(&now, k, l)
                        && can_be_read_together(&now, &releases, k as usize, l as usize);
                    prop_assert!(!is_reachable, "refused without need: {}", error);
                    continue;
                }
            };
            check(&now, &found, k as usize, l as usize)?;
            let releases: Vec<_> = earlier.iter().map(|(case, found)| (case, found)).collect();
            attack(&now, &found, &releases, k as usize, l as usize)?;
            earlier.push((now, found));
        }
    }
}

fn person(name: &str, number: i32, value: &str) -> Private {
    (name.to_owned(), vec![number], value.to_owned())
}

/// A town of eight people, at the places 1 to 8.
fn town() -> Vec<Registered> {
    (1..=8).map(|number| (format!("p{number}"), vec![number])).collect()
}

#[test]
fn a_release_that_would_single_people_out_beside_an_earlier_one_is_made_differently() {
    // In the first survey all take part, in the classes 1 to 4 and 5 to 8. In the second one only 4 to 6 do. As a class of
    // their own they give 4 away, who is the only one in both this class and the first of the earlier ones.
    let private =
        |numbers: &[i32]| numbers.iter().map(|&n| person(&format!("p{n}"), n, &format!("v{n}"))).collect::<Vec<_>>();
    let mut spec = spec(3, Algorithm::Mondrian, RegisterMethod::Refine);
    // Presence must be public, because otherwise classes don't depend on who takes part.
    spec.register.release = RegisterRows::Microdata;
    let old = case(private(&[1, 2, 3, 4, 5, 6, 7, 8]), town());
    let new = case(private(&[4, 5, 6]), town());
    let first = run(&old, &spec, 1).unwrap();
    let alone = run(&new, &spec, 1).unwrap();
    let previous = [read_again(&old, &first, places(&new))];
    let together = |second: &AnonymizedWithRegister| attack(&new, second, &[(&old, &first)], 3, 1);
    assert!(together(&alone).is_err(), "{:?} and {:?}", files(&old, &first).0, files(&new, &alone).0);
    together(&beside(&new, &previous, &spec, 1).unwrap()).unwrap();
}

#[test]
fn a_single_person_who_came_or_left_keeps_the_release_from_being_made() {
    let values = ["v1", "v2", "v1", "v2", "v1", "v2", "v3", "v4"];
    let private = |n: usize| {
        let numbers = (1..=n as i32).zip(values);
        numbers.map(|(number, value)| person(&format!("p{number}"), number, value)).collect::<Vec<_>>()
    };
    let spec = spec(2, Algorithm::Mondrian, RegisterMethod::Refine);
    for (before, now) in [(7, 8), (8, 7)] {
        let (old, new) = (case(private(before), town()), case(private(now), town()));
        let previous = [read_again(&old, &run(&old, &spec, 1).unwrap(), places(&new))];
        assert_eq!(
            beside(&new, &previous, &spec, 1).err(),
            Some(AnonymizeError::PreviousValues { column: "sa".to_owned() })
        );
    }
    // If the same persons take part again, the release tells nothing new.
    let same = case(private(8), town());
    let first = run(&same, &spec, 1).unwrap();
    let again = beside(&same, &[read_again(&same, &first, places(&same))], &spec, 1).unwrap();
    assert_eq!(files(&same, &first), files(&same, &again));
}

#[test]
fn people_whom_the_earlier_register_lacks_hide_nobody() {
    let private: Vec<Private> = (1..=8).map(|n| person(&format!("p{n}"), n, &format!("v{n}"))).collect();
    let spec = spec(3, Algorithm::Mondrian, RegisterMethod::Refine);
    let all = case(private, town());
    let first = run(&all, &spec, 1).unwrap();
    let previous = [read_again(&all, &first, vec![NULL; 8])];
    let error = beside(&all, &previous, &spec, 1).err();
    assert_eq!(error, Some(AnonymizeError::PreviousCrowd { rows: (1..=8).collect(), k: 3 }));
}

#[test]
fn no_class_is_fitted_to_the_private_place_of_a_person_who_is_left_out() {
    // Persons 10 to 12 were a class and have left the town. The new survey says that person 1 is at place 11, where nobody
    // remains who could hide them.
    let people = |numbers: std::ops::RangeInclusive<i32>| -> Vec<Registered> {
        numbers.map(|number| (format!("p{number}"), vec![number])).collect()
    };
    let answers = |people: &[Registered]| -> Vec<Private> {
        people.iter().map(|(name, place)| (name.clone(), place.clone(), format!("v{name}"))).collect()
    };
    let then = people(1..=12);
    let old = case(answers(&then), then);
    let mut now = answers(&people(1..=6));
    now[0].1 = vec![11];
    now.iter_mut().for_each(|person| person.2.push_str(" again"));
    let new = case(now, people(1..=9));
    for method in METHODS {
        let mut spec = spec(3, Algorithm::Mondrian, method);
        let first = run(&old, &spec, 1).unwrap();
        let previous = [read_again(&old, &first, places(&new))];
        let error = beside(&new, &previous, &spec, 1).err();
        assert_eq!(error, Some(AnonymizeError::PreviousCrowd { rows: vec![1], k: 3 }));
        spec.max_suppressed = 0.2;
        let second = beside(&new, &previous, &spec, 1).unwrap();
        assert_eq!(second.left_out, [0]);
        let narrow = files(&new, &second).0.into_iter().all(|cells| !holds(&cells[..1], &[11]));
        assert!(narrow, "{:?}", files(&new, &second).0);
    }
}

#[test]
fn an_earlier_release_that_can_t_be_read_is_refused() {
    let private: Vec<Private> = (1..=8).map(|n| person(&format!("p{n}"), n, &format!("v{n}"))).collect();
    let spec = spec(3, Algorithm::Mondrian, RegisterMethod::Refine);
    let all = case(private, town());
    let mut previous = [read_again(&all, &run(&all, &spec, 1).unwrap(), places(&all))];
    previous[0].tables[0].columns[0].name = "height".to_owned();
    let error = beside(&all, &previous, &spec, 1).err();
    assert_eq!(error, Some(AnonymizeError::PreviousColumn { column: "height".to_owned() }));
    let labels = Column::from_cells("qi1", Role::Quasi, ["tall", "[1,2]", "small"].map(Some));
    previous[0].tables[0] = Table { name: "t".to_owned(), columns: vec![labels], n_rows: 3, person: None };
    let error = beside(&all, &previous, &spec, 1).err();
    assert_eq!(error, Some(AnonymizeError::PreviousLabels { column: "qi1".to_owned(), n: 2 }));
}
