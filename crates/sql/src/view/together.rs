//! [`fewer_together`]: how alone persons are to somebody who reads several views of them. [`fewer_by_changes`]: and to somebody
//! who kept an earlier version of one, and sees whose values changed.
//!
//! # Guarantee
//! Somebody who reads all the views, and knows who is in which, tells nobody apart from fewer persons than they ask for in
//! any view that has them in a class: those left are in the same class of each view, and missing where they are missing.
//! Views are looked at all at once, since three can leave fewer together than any two of them do. Whoever asks a view for
//! no class is known by it, and hides nobody.
//! # Deviations
//! Persons are counted, and nothing else: what l-diversity and t-closeness ask is verified for each view by itself.
//! Persons are the same where their identifiers are.
//! # Cost
//! a pass over the persons of each view, with some words of memory for every combination of classes they are in

use std::collections::{HashMap, HashSet};

use foldhash::quality::RandomState;

use super::Version;
use super::version::directory::Directory;

/// More combinations of classes than these are not looked at.
const MOST_COMBINATIONS: usize = 1 << 26;

/// What one view tells of its persons.
struct Crowds<'a> {
    /// Everybody it knows, by identifier.
    persons: Vec<&'a str>,
    /// Persons with the classes they are in.
    members: Vec<(u32, Cell)>,
    /// Per person how many they ask to hide among.
    k: &'a [u32],
}

/// Where somebody is in a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Cell {
    Nowhere,
    Class(u32),
    /// By themselves, as this person.
    Alone(u32),
}

/// Among how few persons somebody hides from whoever reads all these versions together, where that is fewer than they ask
/// for.
pub fn fewer_together(versions: &[&Version]) -> Option<u64> {
    let mut combinations: Vec<Vec<&Directory>> = vec![Vec::new()];
    for version in versions {
        let mut longer = Vec::with_capacity(combinations.len() * version.directories.len());
        for chosen in &combinations {
            longer.extend(version.directories.iter().map(|directory| [chosen.as_slice(), &[directory]].concat()));
        }
        combinations = longer;
    }
    let fewer = |directories: &Vec<&Directory>| {
        let crowds: Vec<Crowds<'_>> = directories.iter().map(|directory| Crowds::of(directory)).collect();
        smallest_crowd(&crowds)
    };
    combinations.iter().filter_map(fewer).min()
}

/// What somebody can tell by the values of a version who kept those of an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// Nothing that the classes do not tell.
    Nothing,
    /// They leave somebody among so many persons, fewer than those ask for.
    Fewer(u64),
    /// Values can't be compared, and may have changed.
    Unknown,
}

/// Among how few persons somebody hides from whoever reads both versions and sees which rows are new: persons whose values
/// changed, and those whose values did not, are told apart.
pub fn fewer_by_changes(earlier: &Version, version: &Version) -> Comparison {
    if earlier.fingerprint == version.fingerprint && version.fingerprint.counts_all_changes() {
        return Comparison::Nothing;
    }
    let (Some(before), Some(after)) = (&earlier.shown, &version.shown) else { return Comparison::Unknown };
    if !before.is_comparable(after) {
        return Comparison::Unknown;
    }
    let known: HashMap<&str, usize, RandomState> = earlier.directories[0].identifiers().zip(0..).collect();
    let persons: Vec<&str> = version.directories[0].identifiers().collect();
    let change = |(number, person): (usize, &&str)| {
        let is_changed = before.of_person(*known.get(*person)?) != after.of_person(number);
        Some((number as u32, Cell::Class(u32::from(is_changed))))
    };
    let members: Vec<(u32, Cell)> = persons.iter().enumerate().filter_map(change).collect();
    // Whether somebody changed is no class that anybody asks for.
    let nobody_asks = vec![0; persons.len()];
    let changes = || Crowds { persons: persons.clone(), members: members.clone(), k: &nobody_asks };
    let pairs = earlier.directories.iter().flat_map(|one| version.directories.iter().map(move |other| (one, other)));
    let fewer = pairs.filter_map(|(one, other)| smallest_crowd(&[Crowds::of(one), Crowds::of(other), changes()])).min();
    fewer.map_or(Comparison::Nothing, Comparison::Fewer)
}

/// Whether two versions name nobody alike.
pub fn share_nobody(one: &Version, other: &Version) -> bool {
    let persons = |version: &'_ Version| -> HashSet<String, RandomState> {
        version.directories.iter().flat_map(Directory::identifiers).map(str::to_owned).collect()
    };
    persons(one).is_disjoint(&persons(other))
}

/// What somebody can do who leaves persons among so many, in words.
pub fn told_together(n_persons: u64) -> String {
    match n_persons {
        0 | 1 => "can single out some persons".to_owned(),
        2 => "can tell some persons apart from all but 1 other".to_owned(),
        n_persons => format!("can tell some persons apart from all but {} others", n_persons - 1),
    }
}

impl<'a> Crowds<'a> {
    fn of(directory: &'a Directory) -> Crowds<'a> {
        let cell = |(class, person): (u32, u32)| match directory.class(class).is_alone {
            true => (person, Cell::Alone(person)),
            false => (person, Cell::Class(class)),
        };
        Crowds {
            persons: directory.identifiers().collect(),
            members: directory.memberships().map(cell).collect(),
            k: directory.asked_k(),
        }
    }
}

/// The smallest set of persons whom all views leave alike, among those that are smaller than somebody in them asks for.
fn smallest_crowd(views: &[Crowds<'_>]) -> Option<u64> {
    let mut numbers: HashMap<&str, u32, RandomState> = HashMap::default();
    let mut number_of = |person| {
        let next = numbers.len() as u32;
        *numbers.entry(person).or_insert(next)
    };
    let of_views: Vec<Vec<u32>> =
        views.iter().map(|view| view.persons.iter().map(|&person| number_of(person)).collect()).collect();
    let mut asked = vec![0; numbers.len()];
    // Everybody with the crowd they are in so far; who is in several classes is in several crowds.
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

/// Crowds, told apart further by where their persons are in one more view. Both are in the order of persons, and so is what
/// comes of it; it ends where there are too many combinations.
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
        let views: Vec<Crowds<'_>> = said
            .iter()
            .zip(&k)
            .map(|(view, k)| Crowds {
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

    /// By the words of the guarantee: for every way to choose one class of each view that somebody is in, all persons who
    /// could be meant are looked for anew.
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
        fn whoever_looks_at_all_persons_finds_the_same_crowds(said in views()) {
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
    fn who_is_missing_is_told_apart_by_it() {
        let all = view(&[("a", 0, 2), ("b", 0, 2), ("c", 0, 2)]);
        let most = view(&[("a", 0, 2), ("b", 0, 2)]);
        assert_eq!(smallest(&vec![all, most]), Some(1));
    }

    #[test]
    fn who_changed_is_told_apart_from_who_did_not() {
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
    fn who_asks_for_no_class_hides_nobody() {
        let in_class = view(&[("a", 0, 2), ("b", 0, 2)]);
        let alone = view(&[("a", 0, 0), ("b", 1, 2), ("c", 1, 2)]);
        assert_eq!(smallest(&vec![alone.clone()]), None);
        assert_eq!(smallest(&vec![in_class, alone]), Some(1));
    }
}
