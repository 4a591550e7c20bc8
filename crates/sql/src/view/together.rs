//! [`fewer_together`]: how many persons look alike to a reader of several views. [`fewer_by_changes`]: and to a reader who
//! kept an earlier version of a view and sees whose values changed.
//!
//! # Guarantee
//! The functions assume a reader who reads all the views and knows which persons are in which view. Persons look alike to
//! this reader if they are in the same class of each view, and missing from the same views. `None` means that every person
//! looks like at least as many persons as the person asks for in any view that has the person in a class. All views are
//! compared at once, because three views can leave fewer persons than any two of them. A person who asks a view for no
//! class is identified by it, and so gives no cover to others.
//! # Deviations
//! Only persons are counted. L-diversity and t-closeness are verified for each view by itself. Two persons are the same if
//! their identifiers are equal.
//! # Cost
//! A pass over the persons of each view, with some words of memory for every combination of classes they are in.

use std::collections::{HashMap, HashSet};

use foldhash::quality::RandomState;

use super::Version;
use super::version::directory::Directory;

/// With more combinations of classes than this, the search ends and the answer is 0 persons.
const MOST_COMBINATIONS: usize = 1 << 26;

/// What one view tells about its persons.
struct ViewCrowds<'a> {
    /// The identifiers of all its persons.
    persons: Vec<&'a str>,
    /// Persons with the classes they are in.
    members: Vec<(u32, Cell)>,
    /// For each person, the k that the person asks for.
    k: &'a [u32],
}

/// Where a person is in a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Cell {
    Nowhere,
    Class(u32),
    /// In no class, and so identified as this person.
    Alone(u32),
}

/// The size of the smallest set of persons who look alike to a reader of all these versions, among the sets that are
/// smaller than one of their persons asks for; `None` if there is no such set.
pub(crate) fn fewer_together(versions: &[&Version]) -> Option<u64> {
    let mut combinations: Vec<Vec<&Directory>> = vec![Vec::new()];
    for version in versions {
        let mut longer = Vec::with_capacity(combinations.len() * version.directories.len());
        for chosen in &combinations {
            longer.extend(version.directories.iter().map(|directory| [chosen.as_slice(), &[directory]].concat()));
        }
        combinations = longer;
    }
    let fewer = |directories: &Vec<&Directory>| {
        let crowds: Vec<ViewCrowds<'_>> = directories.iter().map(|directory| ViewCrowds::of(directory)).collect();
        smallest_crowd(&crowds)
    };
    combinations.iter().filter_map(fewer).min()
}

/// What a reader who kept the values of an earlier version learns from those of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FromChanges {
    /// Nothing more than the classes tell.
    Nothing,
    /// A person looks like only this many persons, fewer than the person asks for.
    Fewer(u64),
    /// The values can't be compared, and may have changed.
    Unknown,
}

/// Compares two versions as their reader can, who sees which rows are new. Such a reader can tell apart persons whose
/// values changed and persons whose values did not.
pub(crate) fn fewer_by_changes(earlier: &Version, version: &Version) -> FromChanges {
    if earlier.fingerprint == version.fingerprint && version.fingerprint.counts_all_changes() {
        return FromChanges::Nothing;
    }
    let (Some(before), Some(after)) = (&earlier.shown, &version.shown) else { return FromChanges::Unknown };
    if !before.is_comparable(after) {
        return FromChanges::Unknown;
    }
    let known: HashMap<&str, usize, RandomState> = earlier.directories[0].identifiers().zip(0..).collect();
    let persons: Vec<&str> = version.directories[0].identifiers().collect();
    let change = |(number, person): (usize, &&str)| {
        let is_changed = before.of_person(*known.get(*person)?) != after.of_person(number);
        Some((number as u32, Cell::Class(u32::from(is_changed))))
    };
    let members: Vec<(u32, Cell)> = persons.iter().enumerate().filter_map(change).collect();
    // The set of changed persons is not a class, so nobody asks for a k in it.
    let nobody_asks = vec![0; persons.len()];
    let changes = || ViewCrowds { persons: persons.clone(), members: members.clone(), k: &nobody_asks };
    let pairs = earlier.directories.iter().flat_map(|one| version.directories.iter().map(move |other| (one, other)));
    let fewer =
        pairs.filter_map(|(one, other)| smallest_crowd(&[ViewCrowds::of(one), ViewCrowds::of(other), changes()])).min();
    fewer.map_or(FromChanges::Nothing, FromChanges::Fewer)
}

/// Whether two versions have no identifier in common.
pub(crate) fn share_nobody(one: &Version, other: &Version) -> bool {
    let persons = |version: &'_ Version| -> HashSet<String, RandomState> {
        version.directories.iter().flat_map(Directory::identifiers).map(str::to_owned).collect()
    };
    persons(one).is_disjoint(&persons(other))
}

/// In words, what a reader can do if a person looks like this many persons to them.
pub(crate) fn told_together(n_persons: u64) -> String {
    match n_persons {
        0 | 1 => "can single out some persons".to_owned(),
        2 => "can tell some persons apart from all but 1 other".to_owned(),
        n_persons => format!("can tell some persons apart from all but {} others", n_persons - 1),
    }
}

impl<'a> ViewCrowds<'a> {
    fn of(directory: &'a Directory) -> ViewCrowds<'a> {
        let cell = |(class, person): (u32, u32)| match directory.class(class).is_alone {
            true => (person, Cell::Alone(person)),
            false => (person, Cell::Class(class)),
        };
        ViewCrowds {
            persons: directory.identifiers().collect(),
            members: directory.memberships().map(cell).collect(),
            k: directory.asked_k(),
        }
    }
}

/// The size of the smallest set of persons who look alike in all views, among the sets that are smaller than one of their
/// persons asks for.
fn smallest_crowd(views: &[ViewCrowds<'_>]) -> Option<u64> {
    let mut numbers: HashMap<&str, u32, RandomState> = HashMap::default();
    let mut number_of = |person| {
        let next = numbers.len() as u32;
        *numbers.entry(person).or_insert(next)
    };
    let of_views: Vec<Vec<u32>> =
        views.iter().map(|view| view.persons.iter().map(|&person| number_of(person)).collect()).collect();
    let mut asked = vec![0; numbers.len()];
    // Every person with the crowd that the person is in so far. A person in several classes is in several crowds.
    let mut crowd_of: Vec<(u32, u32)> = (0..numbers.len() as u32).map(|person| (person, 0)).collect();
    for (view, numbers) in views.iter().zip(of_views) {
        let mut cells = Vec::with_capacity(view.members.len());
        for &(person, cell) in &view.members {
            let (number, k) = (numbers[person as usize], view.k[person as usize]);
            if matches!(cell, Cell::Class(_)) {
                asked[number as usize] = k.max(asked[number as usize]);
            }
            cells.push((number, cell));
        }
        cells.sort_unstable();
        cells.dedup();
        crowd_of = refined(&crowd_of, &cells);
        if crowd_of.len() > MOST_COMBINATIONS {
            return Some(0);
        }
    }
    let mut n_persons = vec![0u64; crowd_of.len()];
    crowd_of.iter().for_each(|&(_, crowd)| n_persons[crowd as usize] += 1);
    let sizes = crowd_of.iter().map(|&(person, crowd)| (n_persons[crowd as usize], asked[person as usize]));
    sizes.filter(|&(n_persons, k)| n_persons < u64::from(k)).map(|(n_persons, _)| n_persons).min()
}

/// Splits crowds by where their persons are in one more view. Both lists are in the order of persons, and so is the result,
/// which ends early if there are too many combinations.
fn refined(crowd_of: &[(u32, u32)], cells: &[(u32, Cell)]) -> Vec<(u32, u32)> {
    let mut finer: HashMap<(u32, Cell), u32, RandomState> = HashMap::default();
    let mut refined = Vec::with_capacity(crowd_of.len());
    let mut from = 0;
    for &(person, crowd) in crowd_of {
        from += cells[from..].iter().take_while(|&&(other, _)| other < person).count();
        let own = cells[from..].iter().take_while(|&&(other, _)| other == person).map(|&(_, cell)| cell);
        let nowhere = cells.get(from).is_none_or(|&(other, _)| other != person).then_some(Cell::Nowhere);
        for cell in own.chain(nowhere) {
            let next = finer.len() as u32;
            refined.push((person, *finer.entry((crowd, cell)).or_insert(next)));
        }
        if refined.len() > MOST_COMBINATIONS {
            break;
        }
    }
    refined
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    /// Per view and person: the classes they are in, and their k. Nobody is asked for where the list is empty.
    type Said = Vec<BTreeMap<String, (BTreeSet<u32>, u32)>>;

    fn smallest(said: &Said) -> Option<u64> {
        let k: Vec<Vec<u32>> = said.iter().map(|view| view.values().map(|(_, k)| *k).collect()).collect();
        let views: Vec<ViewCrowds<'_>> = said
            .iter()
            .zip(&k)
            .map(|(view, k)| ViewCrowds {
                persons: view.keys().map(String::as_str).collect(),
                members: (0..)
                    .zip(view.values())
                    .flat_map(|(person, (classes, k))| {
                        classes.iter().map(move |&class| (person, cell(person, class, *k)))
                    })
                    .collect(),
                k,
            })
            .collect();
        smallest_crowd(&views)
    }

    fn cell(person: u32, class: u32, k: u32) -> Cell {
        if k < 2 { Cell::Alone(person) } else { Cell::Class(class) }
    }

    /// The guarantee, word by word: for every way to choose one class per view of a person, count the persons who fit.
    fn smallest_by_looking(said: &Said) -> Option<u64> {
        let persons: BTreeSet<&String> = said.iter().flat_map(BTreeMap::keys).collect();
        let cells = |view: &BTreeMap<String, (BTreeSet<u32>, u32)>, person: &String| -> Vec<String> {
            match view.get(person) {
                Some((classes, _)) if classes.is_empty() => vec!["nowhere".to_owned()],
                Some((_, 0 | 1)) => vec![format!("this is {person}")],
                Some((classes, _)) => classes.iter().map(|class| format!("class {class}")).collect(),
                None => vec!["nowhere".to_owned()],
            }
        };
        let mut smallest = None;
        for &person in &persons {
            let asked = said.iter().filter_map(|view| view.get(person)).filter(|(classes, _)| !classes.is_empty());
            let asked = u64::from(asked.map(|(_, k)| *k).filter(|&k| k >= 2).max().unwrap_or(0));
            let mut ways: Vec<Vec<String>> = vec![Vec::new()];
            for view in said {
                let longer = |way: &Vec<String>, cell| [way.as_slice(), &[cell]].concat();
                ways = ways
                    .iter()
                    .flat_map(|way| cells(view, person).into_iter().map(move |cell| longer(way, cell)))
                    .collect();
            }
            for way in ways {
                let fits =
                    |other: &&&String| said.iter().zip(&way).all(|(view, cell)| cells(view, other).contains(cell));
                let n_alike = persons.iter().filter(fits).count() as u64;
                if n_alike < asked {
                    smallest = Some(smallest.map_or(n_alike, |known: u64| known.min(n_alike)));
                }
            }
        }
        smallest
    }

    fn views() -> impl Strategy<Value = Said> {
        let person = (prop::collection::btree_set(0..3u32, 0..3), 0..5u32);
        let view = prop::collection::btree_map("[a-i]", person, 0..9);
        prop::collection::vec(view, 1..4)
    }

    proptest! {
        #[test]
        fn looking_at_all_persons_finds_the_same_crowds(said in views()) {
            prop_assert_eq!(smallest(&said), smallest_by_looking(&said));
        }
    }

    fn view(said: &[(&str, u32, u32)]) -> BTreeMap<String, (BTreeSet<u32>, u32)> {
        said.iter().map(|&(person, class, k)| (person.to_owned(), (BTreeSet::from([class]), k))).collect()
    }

    #[test]
    fn three_views_leave_fewer_than_two() {
        let by_bit = |bit: u32| {
            let person = |number: u32| (number.to_string(), (BTreeSet::from([number >> bit & 1]), 2));
            (0..8).map(person).collect::<BTreeMap<_, _>>()
        };
        assert_eq!(smallest(&vec![by_bit(0), by_bit(1)]), None);
        assert_eq!(smallest(&vec![by_bit(0), by_bit(1), by_bit(2)]), Some(1));
    }

    #[test]
    fn everybody_is_counted_by_what_they_ask_for() {
        let one = view(&[("a", 0, 4), ("b", 0, 2), ("c", 0, 2), ("d", 0, 2)]);
        let two = view(&[("a", 0, 2), ("b", 0, 2), ("c", 1, 2), ("d", 1, 2)]);
        assert_eq!(smallest(&vec![one.clone(), one.clone()]), None);
        assert_eq!(smallest(&vec![one, two]), Some(2));
    }

    #[test]
    fn a_person_missing_from_a_view_is_told_apart_by_that() {
        let all = view(&[("a", 0, 2), ("b", 0, 2), ("c", 0, 2)]);
        let most = view(&[("a", 0, 2), ("b", 0, 2)]);
        assert_eq!(smallest(&vec![all, most]), Some(1));
    }

    #[test]
    fn changed_persons_are_told_apart_from_unchanged_ones() {
        let classes = view(&[("a", 0, 2), ("b", 0, 2), ("c", 1, 2), ("d", 1, 2), ("e", 1, 2), ("f", 1, 2)]);
        let changed = |names: &[&str]| {
            let change = |person: &String| (BTreeSet::from([u32::from(names.contains(&person.as_str()))]), 2);
            let of_all = classes.keys().map(|person| (person.clone(), change(person)));
            smallest(&vec![classes.clone(), classes.clone(), of_all.collect()])
        };
        assert_eq!(changed(&[]), None);
        assert_eq!(changed(&["b"]), Some(1));
        assert_eq!(changed(&["a", "b"]), None);
        assert_eq!(changed(&["c", "d"]), None, "two of four changed, and two did not");
        assert_eq!(changed(&["c", "d", "e"]), Some(1), "the one who did not change");
    }

    #[test]
    fn a_person_who_asks_for_no_class_hides_nobody() {
        let in_class = view(&[("a", 0, 2), ("b", 0, 2)]);
        let alone = view(&[("a", 0, 0), ("b", 1, 2), ("c", 1, 2)]);
        assert_eq!(smallest(&vec![alone.clone()]), None);
        assert_eq!(smallest(&vec![in_class, alone]), Some(1));
    }
}
