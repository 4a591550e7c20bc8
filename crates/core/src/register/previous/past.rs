//! [`Past`]: the earlier classes in which people can have been, and the persons who were there with them.
//!
//! A person is looked up at the place where the registers described them at the time of each release, and also at their
//! present place, because the private table may have known better. In each release they can have been in one class that
//! contains the place, or in none. A *way* is one such choice for all releases. The persons of a way are those whom the
//! registers of each time described inside its classes.
//!
//! If a release was verified to be read beside others, then it shows nobody whose way through these releases has fewer
//! persons than its k. So nobody went such a way, and only parts of it are considered. People who have left since then
//! count here too, because they did hide others then.
//!
//! # Cost
//! a range query per earlier class; ways are made once for all people whom the same classes hold

use std::collections::BTreeMap;

use kohort_model::{InRegister, JoinedRegister, NULL};

use super::{Earlier, Way};
use crate::encode::Encoded;
use crate::register::index::RowTree;

/// The persons that are looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::register) enum LookedAt {
    /// Everybody, because nothing may depend on who is private.
    Everybody,
    /// Private persons.
    Private,
}

/// In which earlier classes people can have been.
pub(in crate::register) struct Past<'a> {
    joined: &'a JoinedRegister,
    earlier: Vec<Earlier<'a>>,
    /// For each joined row, the number of its place; rows with the same cells have the same.
    place_of: Vec<u32>,
    /// For each release and place, the classes that hold it.
    holding: Vec<Vec<Vec<u32>>>,
    /// For each release and class, the persons of any time who stood in it, ascending.
    stood: Vec<Vec<Vec<u32>>>,
    ways: Vec<WayTogether>,
    /// Lists of ways that somebody has, each once.
    records: Vec<Vec<u32>>,
    /// The list of ways of each person of the join; [`NULL`] for a person who is not looked up.
    record_of: Vec<u32>,
    /// Further ways of private persons whom the private table and the register describe differently.
    otherwise: BTreeMap<u32, Vec<u32>>,
}

/// A way, and who went it as far as registers tell.
pub(in crate::register) struct WayTogether {
    /// One class per release, [`NULL`] for none.
    pub(in crate::register) classes: Way,
    /// Persons of the join, who are in a register now, ascending.
    pub(in crate::register) persons: Vec<u32>,
}

impl WayTogether {
    /// An upper bound, for any new release, of the persons among whom somebody who went this way can hide.
    fn n_with(&self, person: u32) -> u64 {
        self.persons.len() as u64 + self.n_own(person)
    }

    /// 1 for a person whom the registers don't count among those who went this way, otherwise 0.
    pub(super) fn n_own(&self, person: u32) -> u64 {
        u64::from(self.persons.binary_search(&person).is_err())
    }
}

impl<'a> Past<'a> {
    pub(in crate::register) fn new(
        earlier: Vec<Earlier<'a>>,
        joined: &'a JoinedRegister,
        encoded: &Encoded<'_>,
        looked_at: LookedAt,
    ) -> Past<'a> {
        let all: Vec<u32> = (0..joined.rows.n_rows as u32).collect();
        let rows = encoded.fold(&all);
        let mut place_of = vec![0; all.len()];
        for place in 0..rows.len() as u32 {
            rows.members(place).iter().for_each(|&row| place_of[row as usize] = place);
        }
        let index = RowTree::over(&rows, &encoded.domains, (0..rows.len() as u32).collect());
        let (mut holding, mut stood) = (Vec::new(), Vec::new());
        for release in &earlier {
            let mut classes_of_place = vec![Vec::new(); rows.len()];
            for (class, bounds) in (0..).zip(&release.boxes) {
                index.within(bounds).into_iter().for_each(|place| classes_of_place[place as usize].push(class));
            }
            let mut persons = vec![Vec::new(); release.boxes.len()];
            for (person, &row) in (0..).zip(release.places).filter(|(_, row)| **row != NULL) {
                let classes: &Vec<u32> = &classes_of_place[place_of[row as usize] as usize];
                classes.iter().for_each(|&class| persons[class as usize].push(person));
            }
            holding.push(classes_of_place);
            stood.push(persons);
        }
        let (ways, records, record_of, otherwise) = Default::default();
        let mut past = Past { joined, earlier, place_of, holding, stood, ways, records, record_of, otherwise };
        past.look_up(looked_at);
        past
    }

    pub(super) fn earlier(&self) -> &[Earlier<'a>] {
        &self.earlier
    }

    pub(in crate::register) fn ways_of(&self, person: u32) -> impl Iterator<Item = &WayTogether> {
        let more = self.otherwise.get(&person).into_iter().flatten();
        self.record(person).iter().chain(more).map(|&way| &self.ways[way as usize])
    }

    /// Forgets the places that the private table gives for persons who are left out. None of their rows is shown, and a
    /// class must not be fitted to something that nobody sees.
    pub(in crate::register) fn leave_out(&mut self, rows: &[u32]) {
        rows.iter().for_each(|row| drop(self.otherwise.remove(row)));
    }

    fn record(&self, person: u32) -> &[u32] {
        match self.record_of[person as usize] {
            NULL => &[],
            record => &self.records[record as usize],
        }
    }

    /// Whether no class can take a person who needs this many persons, because too few went one of the person's ways.
    pub(in crate::register) fn is_unplaceable(&self, person: u32, needed: u32) -> bool {
        self.ways_of(person).any(|way| way.n_with(person) < u64::from(needed))
    }

    /// The same, by the registers alone.
    pub(in crate::register) fn is_publicly_unplaceable(&self, person: u32, needed: u32) -> bool {
        let mut ways = self.record(person).iter().map(|&way| &self.ways[way as usize]);
        ways.any(|way| way.n_with(person) < u64::from(needed))
    }

    /// The earlier class whose people should stay together with those of a joined row. It is the narrowest one that
    /// contains the row and shows about as many rows as it contains persons. Classes that were widened contain many
    /// more persons than they show.
    pub(in crate::register) fn unit(&self, row: u32, width: impl Fn(&[(u32, u32)]) -> f64) -> Option<(usize, u32)> {
        let place = self.place_of[row as usize] as usize;
        let mut least: Option<(f64, (usize, u32))> = None;
        for (at, release) in self.earlier.iter().enumerate() {
            for &class in &self.holding[at][place] {
                let n_stood = self.stood[at][class as usize].len() as u64;
                let of_class = width(&release.boxes[class as usize]);
                let is_tight = 4 * n_stood <= 5 * release.n_rows[class as usize];
                if is_tight && least.is_none_or(|(width, _)| of_class < width) {
                    least = Some((of_class, (at, class)));
                }
            }
        }
        least.map(|(_, unit)| unit)
    }

    fn look_up(&mut self, looked_at: LookedAt) {
        let n_persons = (self.joined.n_microdata + self.joined.n_register) as u32;
        let n_looked_at = match looked_at {
            LookedAt::Everybody => n_persons,
            LookedAt::Private => self.joined.n_microdata as u32,
        };
        let mut numbers = Numbers::default();
        let mut records: BTreeMap<Vec<u32>, u32> = BTreeMap::new();
        let mut known: BTreeMap<([Life; 2], Vec<Option<u32>>), u32> = BTreeMap::new();
        self.record_of = vec![NULL; n_persons as usize];
        for person in 0..n_looked_at {
            let now = self.joined.public_place(person).unwrap_or(person);
            let place_now = self.place_of[now as usize];
            let places = self.described(person);
            let then: Life = places.iter().map(|place| place.unwrap_or(place_now)).collect();
            let lives = [then, vec![place_now; self.earlier.len()]];
            // People who stood at the same places all the time have the same ways.
            let key = (lives, places);
            if let Some(&record) = known.get(&key) {
                self.record_of[person as usize] = record;
                continue;
            }
            let (lives, places) = &key;
            let mut found = self.ways_of_life(&lives[0], places, &mut numbers);
            found.extend(self.ways_of_life(&lives[1], places, &mut numbers));
            let ways = self.numbered(found, &mut numbers);
            let next = self.records.len() as u32;
            let record = *records.entry(ways).or_insert_with_key(|ways| {
                self.records.push(ways.clone());
                next
            });
            self.record_of[person as usize] = record;
            known.insert(key, record);
        }
        for person in 0..self.joined.n_microdata as u32 {
            if let InRegister::Differs(_) = self.joined.persons[person as usize] {
                let life = vec![self.place_of[person as usize]; self.earlier.len()];
                let found = self.ways_of_life(&life, &self.described(person), &mut numbers);
                let ways = self.numbered(found, &mut numbers);
                self.otherwise.insert(person, ways);
            }
        }
    }

    /// For each release, the place where its registers described a person.
    fn described(&self, person: u32) -> Vec<Option<u32>> {
        let row = |release: &Earlier<'_>| release.places.get(person as usize).copied().filter(|&row| row != NULL);
        self.earlier.iter().map(|release| row(release).map(|row| self.place_of[row as usize])).collect()
    }

    /// The numbers of ways that are not part of another way, in the order of their classes.
    fn numbered(&mut self, mut found: Vec<Way>, numbers: &mut Numbers) -> Vec<u32> {
        found.sort_unstable();
        found.dedup();
        let is_part = |way: &Way, whole: &Way| way != whole && way.iter().zip(whole).all(|(a, b)| *a == NULL || a == b);
        let whole = found.iter().filter(|way| !found.iter().any(|other| is_part(way, other)));
        let whole: Vec<Way> = whole.filter(|way| way.iter().any(|&class| class != NULL)).cloned().collect();
        let mut list = Vec::with_capacity(whole.len());
        for way in whole {
            let next = self.ways.len() as u32;
            let number = *numbers.ways.entry(way).or_insert_with_key(|way| {
                let n_persons = (self.joined.n_microdata + self.joined.n_register) as u32;
                let everybody = persons_of(&self.stood, way).into_iter();
                let is_here = |person: &u32| *person < n_persons && self.joined.public_place(*person).is_some();
                self.ways.push(WayTogether { classes: way.clone(), persons: everybody.filter(is_here).collect() });
                next
            });
            list.push(number);
        }
        list
    }

    /// All ways of somebody who is looked up in these places; `described` is where registers described them.
    fn ways_of_life(&self, life: &[u32], described: &[Option<u32>], numbers: &mut Numbers) -> Vec<Way> {
        let mut open: Vec<Way> = vec![vec![NULL; self.earlier.len()]];
        for (at, &place) in life.iter().enumerate() {
            for shorter in 0..open.len() {
                for &class in &self.holding[at][place as usize] {
                    let mut way = open[shorter].clone();
                    way[at] = class;
                    if self.can_be(&way, described, numbers) {
                        open.push(way);
                    }
                }
            }
        }
        open
    }

    /// Whether somebody can have gone a way, by what was verified of each release and those before it.
    fn can_be(&self, way: &Way, described: &[Option<u32>], numbers: &mut Numbers) -> bool {
        self.earlier.iter().enumerate().filter(|(at, _)| way[*at] != NULL).all(|(at, release)| {
            let Some(beside) = release.beside else { return true };
            let mut part = vec![NULL; way.len()];
            beside.releases.iter().for_each(|&other| part[other] = way[other]);
            if part.iter().all(|&class| class == NULL) {
                return true;
            }
            part[at] = way[at];
            let counts = part.iter().zip(described).zip(&self.holding).all(|((class, place), holding)| {
                *class == NULL || place.is_some_and(|place| holding[place as usize].contains(class))
            });
            let n = *numbers.n_stood.entry(part).or_insert_with_key(|part| persons_of(&self.stood, part).len() as u64);
            n + u64::from(!counts) >= beside.k
        })
    }
}

/// Where somebody is looked up: a place per release.
type Life = Vec<u32>;

/// The ways and numbers of persons found so far.
#[derive(Default)]
struct Numbers {
    ways: BTreeMap<Way, u32>,
    /// How many persons of any time went a way.
    n_stood: BTreeMap<Way, u64>,
}

/// The persons of any time who stood in all classes of a way, ascending.
fn persons_of(stood: &[Vec<Vec<u32>>], way: &Way) -> Vec<u32> {
    let in_way = stood.iter().zip(way).filter(|(_, class)| **class != NULL);
    let mut lists: Vec<&Vec<u32>> = in_way.map(|(classes, &class)| &classes[class as usize]).collect();
    lists.sort_by_key(|persons| persons.len());
    let Some((fewest, others)) = lists.split_first() else { return Vec::new() };
    fewest.iter().filter(|person| others.iter().all(|list| list.binary_search(person).is_ok())).copied().collect()
}
