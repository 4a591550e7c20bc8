//! [`Population`]: classes that are chosen without looking at who is private.
//!
//! Everybody has a public place: where the register says they are or, for private persons whom no register has, where
//! the private table says. The public places are partitioned. A class with at least one private person is released,
//! with all its rows and the box of all its rows.
//!
//! # Guarantee
//! Exchange two register persons of one class, with everything that the private table says about them, and the release
//! stays the same. So a reader who knows the algorithm, the register and k can learn how many persons of a class are
//! private at most, but not which ones. Private values that differ from the register's widen the class of the
//! register's place. That shows that somebody in the class is described differently, but not who. A person whom no
//! register has shows as one row more, which tells nothing about anybody else.
//! # Paper
//! the direct method of `[SMP10]` section 4
//! # Deviations
//! No row is dropped to shrink a box. Refinement partitions twice: first into regions that hold k private persons if
//! these are spread evenly, then each region again. The largest k that anybody asks for counts for everybody, because a
//! larger class in one place would show where that person is. With earlier releases, people of one earlier class stay
//! together, so that as many of them as possible are in one class again. People whom no class can take, whatever is
//! released, are not part of the population, private or not.
//! # Cost
//! that of the partitioner on everybody

use std::borrow::Cow;
use std::collections::BTreeMap;

use kohort_model::spec::{RegisterMethod, Unmatched};
use kohort_model::{InRegister, JoinedRegister, Progress, Quiet};
use rayon::prelude::*;

use super::base::Base;
use super::crowd::{Crowd, Draft};
use super::index::RowTree;
use super::previous::Past;
use crate::encode::Rows;
use crate::encode::bounds::{self, Bounds, include};
use crate::partition::Unreachable;
use crate::ranks::first_that;

/// How many classes beyond the bounds of `delta_presence` are to be expected at most if private persons are spread by
/// chance.
const EXPECTED_BEYOND: f64 = 0.05;

/// Everybody at their public place.
pub(super) struct Population<'a> {
    crowd: &'a Crowd<'a>,
    /// Persons who count, folded; members are the joined rows of their public places.
    rows: Cow<'a, Rows>,
    /// Persons who don't count, listed under the folded row that they are put with.
    guests: BTreeMap<u32, Vec<u32>>,
    /// The private row of each person whom a register describes, by the joined row of that description.
    owners: BTreeMap<u32, u32>,
    /// The number of private persons of the population who are left out of the release. They stay in the population, so
    /// that classes don't depend on them.
    n_left_out: u32,
}

/// Folded rows that stay together.
struct Units<'a> {
    /// One row per unit, in the middle of the unit's rows.
    rows: Cow<'a, Rows>,
    /// The folded rows of each unit; `None` if each folded row is a unit.
    of_units: Option<Vec<Vec<u32>>>,
}

impl Units<'_> {
    /// The folded rows of some units, ascending.
    fn folded(&self, units: Vec<u32>) -> Vec<u32> {
        let Some(of_units) = &self.of_units else { return units };
        let mut rows: Vec<u32> = units.into_iter().flat_map(|unit| &of_units[unit as usize]).copied().collect();
        rows.sort_unstable();
        rows
    }
}

/// A class of the population.
pub(super) struct PublicClass {
    /// Folded rows.
    rows: Vec<u32>,
    /// The region it was cut from.
    pub(super) region: usize,
}

impl<'a> Population<'a> {
    /// `is_part` tells which persons belong to the population, without regard to who is private.
    pub(super) fn new(crowd: &'a Crowd<'a>, is_part: impl Fn(u32) -> bool) -> Population<'a> {
        let joined = crowd.joined;
        let mut owners = BTreeMap::new();
        let (mut known, mut absent): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
        for (row, person) in (0..).zip(&joined.persons).filter(|&(row, _)| is_part(row)) {
            match person {
                InRegister::Same(_) => known.push(row),
                InRegister::Absent => absent.push(row),
                InRegister::Differs(place) => {
                    known.push(*place);
                    owners.insert(*place, row);
                }
            }
        }
        known.extend(joined.register_rows().filter(|&row| is_part(row)));
        let (counted, others) = match crowd.unmatched {
            Unmatched::Count => ([known, absent].concat(), Vec::new()),
            // Unmatched persons may be some of the register under another spelling, so the two don't add up.
            Unmatched::Doubt if absent.len() > known.len() => (absent, known),
            Unmatched::Doubt => (known, absent),
        };
        let n_left_out =
            (0..joined.n_microdata as u32).filter(|&row| is_part(row) && !crowd.takes_part(row)).count() as u32;
        let rows = match others.is_empty() && owners.is_empty() && n_left_out == 0 {
            true => Cow::Borrowed(&crowd.rows),
            false => Cow::Owned(crowd.encoded.fold(&counted)),
        };
        let guests = if others.is_empty() { BTreeMap::new() } else { guests(crowd, &rows, &others) };
        Population { crowd, rows, guests, owners, n_left_out }
    }

    pub(super) fn n_counted(&self) -> u64 {
        self.rows.n_members() as u64
    }

    /// The size that classes need: k or the largest own k, more by the number of those left out, and enough that the
    /// share of private persons is within `bounds` in all classes if these are spread by chance. It depends on how many
    /// are private, not on who.
    pub(super) fn class_size(&self, bounds: Option<(f64, f64)>) -> u32 {
        let JoinedRegister { n_microdata, n_register, .. } = *self.crowd.joined;
        let private = (0..n_microdata as u32).filter(|&row| self.crowd.takes_part(row));
        let asked = private.map(|row| self.crowd.rules.k_of_row(row));
        let k = asked.max().unwrap_or(0).max(self.crowd.k()).saturating_add(self.n_left_out);
        let Some((least, most)) = bounds else { return k };
        let n_persons = (n_microdata + n_register) as f64;
        let share = n_microdata as f64 / n_persons;
        let holds = |size: u32| {
            let above = chance_of(size, share, (most * f64::from(size) + 1e-9).floor() as u32 + 1);
            let below = chance_of(size, 1.0 - share, ((1.0 - least) * f64::from(size) + 1e-9).floor() as u32 + 1);
            (above + below) * n_persons / f64::from(size) <= EXPECTED_BEYOND
        };
        first_that(k..k.max(self.n_counted().min(u64::from(u32::MAX)) as u32), holds)
    }

    /// Classes of the population of at least this size; those that show the same are one.
    pub(super) fn classes(
        &self,
        base: &Base<'_>,
        past: Option<&Past<'_>>,
        (method, size): (RegisterMethod, u32),
        progress: &dyn Progress,
    ) -> Result<Vec<PublicClass>, Unreachable> {
        let domains = self.crowd.domains();
        if self.n_counted() < u64::from(size) {
            return self.one_class(size);
        }
        let units = self.units(past);
        let cut: Vec<Vec<Vec<u32>>> = match method {
            RegisterMethod::Direct => vec![base.partition(&units.rows, domains, size, progress)?],
            RegisterMethod::Refine | RegisterMethod::Auto => {
                let JoinedRegister { n_microdata, n_register, .. } = *self.crowd.joined;
                let n_persons = (n_microdata + n_register) as u64;
                let spread = u64::from(self.crowd.k()) * n_persons / (n_microdata as u64).max(1);
                let region = u64::from(size).max(spread).min(self.n_counted()) as u32;
                let regions = base.partition(&units.rows, domains, region.max(size), progress)?;
                let refine = |region: &Vec<u32>| {
                    let lists = base.partition(&units.rows.part(region), domains, size, &Quiet(progress))?;
                    let whole = |list: Vec<u32>| list.into_iter().map(|row| region[row as usize]).collect();
                    Ok(lists.into_iter().map(whole).collect())
                };
                regions.par_iter().map(refine).collect::<Result<_, Unreachable>>()?
            }
        };
        let classes: Vec<PublicClass> = (0..)
            .zip(cut)
            .flat_map(|(region, lists)| lists.into_iter().map(move |list| (region, list)))
            .map(|(region, list)| PublicClass { rows: units.folded(list), region })
            .collect();
        Ok(self.united(classes))
    }

    /// What everybody who counts loses in these classes, private or not.
    pub(super) fn loss(&self, classes: &[PublicClass]) -> f64 {
        let losses: Vec<f64> = classes
            .par_iter()
            .map(|class| self.crowd.width(&self.rows.bounds(&class.rows)) * self.rows.weight_of(&class.rows) as f64)
            .collect();
        // Added in one order, because threads must not decide which of two sums is smaller.
        losses.iter().sum()
    }

    /// Folded rows in one earlier class are a unit. Only the positions of rows decide.
    fn units(&self, past: Option<&Past<'_>>) -> Units<'_> {
        let Some(past) = past else { return Units { rows: Cow::Borrowed(&self.rows), of_units: None } };
        let mut of_classes: BTreeMap<(usize, u32), Vec<u32>> = BTreeMap::new();
        let mut of_units: Vec<Vec<u32>> = Vec::new();
        for row in 0..self.rows.len() as u32 {
            match past.unit(self.rows.members(row)[0], |bounds| self.crowd.width(bounds)) {
                Some(class) => of_classes.entry(class).or_default().push(row),
                None => of_units.push(vec![row]),
            }
        }
        of_units.extend(of_classes.into_values());
        let middle = |rows: &[u32]| bounds::middle(&self.rows.bounds(rows));
        let mut order: Vec<(Vec<u32>, Vec<u32>)> = of_units.into_iter().map(|rows| (middle(&rows), rows)).collect();
        order.sort_unstable();
        let units =
            order.iter().map(|(middle, rows)| (middle, rows.iter().flat_map(|&row| self.rows.members(row)).copied()));
        let rows = Rows::given(self.rows.n_columns(), units);
        Units { rows: Cow::Owned(rows), of_units: Some(order.into_iter().map(|(_, rows)| rows).collect()) }
    }

    /// Everybody in a class: private rows, and register persons as joined rows.
    pub(super) fn persons(&self, class: &PublicClass) -> Vec<u32> {
        self.places(class).map(|place| self.private_row(place).unwrap_or(place)).collect()
    }

    /// Everybody as one class, for when too few persons count. Private persons are different persons, whether or not
    /// the register has them, so they are enough for a class that contains them all. No smaller class may rely on that,
    /// because it would depend on who of the register is private.
    fn one_class(&self, size: u32) -> Result<Vec<PublicClass>, Unreachable> {
        if (self.crowd.joined.n_microdata as u64) < u64::from(size) {
            return Err(Unreachable);
        }
        Ok(vec![PublicClass { rows: (0..self.rows.len() as u32).collect(), region: 0 }])
    }

    /// Unites classes that show the same, without regard to who is private.
    fn united(&self, classes: Vec<PublicClass>) -> Vec<PublicClass> {
        let shown: Vec<Bounds> = classes.par_iter().map(|class| self.crowd.hull(&self.bounds(class))).collect();
        let mut united: BTreeMap<Bounds, PublicClass> = BTreeMap::new();
        for (shown, mut class) in shown.into_iter().zip(classes) {
            match united.get_mut(&shown) {
                Some(first) => first.rows.append(&mut class.rows),
                None => drop(united.insert(shown, class)),
            }
        }
        united.into_values().collect()
    }

    /// The box of everybody in a class.
    fn bounds(&self, class: &PublicClass) -> Bounds {
        let mut bounds = self.rows.bounds(&class.rows);
        for guest in self.guests_of(class) {
            include(&mut bounds, &self.crowd.codes(guest));
        }
        bounds
    }

    fn guests_of(&self, class: &PublicClass) -> impl Iterator<Item = u32> {
        let guests = class.rows.iter().filter(|_| !self.guests.is_empty());
        guests.filter_map(|row| self.guests.get(row)).flatten().copied()
    }

    /// The public places of everybody in a class.
    fn places(&self, class: &PublicClass) -> impl Iterator<Item = u32> {
        class.rows.iter().flat_map(|&row| self.rows.members(row)).copied().chain(self.guests_of(class))
    }

    /// The private row of the person at a place.
    fn private_row(&self, place: u32) -> Option<u32> {
        match (place as usize) < self.crowd.joined.n_microdata {
            true => Some(place),
            false => self.owners.get(&place).copied(),
        }
    }

    /// Whether a reader's certainty that somebody of a class is private stays within bounds. Those whom no register has
    /// are known to be private, so the others are at most as sure as the whole class, and may be less sure. Those who are
    /// left out may be missing in any class.
    pub(super) fn is_within(&self, class: &PublicClass, (least, most): (f64, f64), n_left_out: u64) -> bool {
        let (mut n_persons, mut n_private, mut n_absent) = (0, 0, 0);
        for place in self.places(class) {
            match self.private_row(place) {
                None => n_persons += 1,
                Some(row) if self.crowd.takes_part(row) => {
                    n_persons += 1;
                    n_private += 1;
                    n_absent += u64::from(self.crowd.in_register(row) == InRegister::Absent);
                }
                Some(_) => {}
            }
        }
        let surest = (n_private + n_left_out) as f64 / (n_persons + n_left_out).max(1) as f64;
        let n_known = n_persons - n_absent;
        let least_sure = if n_known == 0 { 1.0 } else { (n_private - n_absent) as f64 / n_known as f64 };
        least_sure >= least - 1e-9 && surest <= most + 1e-9
    }

    /// The class as it is released, `None` if nobody in it is private.
    pub(super) fn draft(&self, class: &PublicClass) -> Option<Draft> {
        let private = self.places(class).filter_map(|place| self.private_row(place));
        let microdata: Vec<u32> = private.filter(|&row| self.crowd.takes_part(row)).collect();
        if microdata.is_empty() {
            return None;
        }
        let of_crowd = |&row: &u32| match &self.rows {
            Cow::Borrowed(_) => Some(row),
            Cow::Owned(rows) => self.crowd.find(rows.cells(row)),
        };
        let guests = self.guests_of(class).filter_map(|guest| self.crowd.find(&self.crowd.codes(guest)));
        let mut register: Vec<u32> = class.rows.iter().filter_map(of_crowd).chain(guests).collect();
        register.retain(|&row| self.crowd.n_register(row) > 0);
        register.sort_unstable();
        register.dedup();
        Some(Draft { microdata, register, reach: self.bounds(class), ..Draft::default() })
    }
}

/// Persons who don't count, by the row of those who do that is nearest to them.
fn guests(crowd: &Crowd<'_>, rows: &Rows, others: &[u32]) -> BTreeMap<u32, Vec<u32>> {
    let index = RowTree::over(rows, crowd.domains(), (0..rows.len() as u32).collect());
    let nearest = |&guest: &u32| {
        let place: Bounds = crowd.codes(guest).into_iter().map(|code| (code, code)).collect();
        index.nearest(&place).map(|row| (row, guest))
    };
    let found: Vec<(u32, u32)> = others.par_iter().filter_map(nearest).collect();
    let mut guests: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    found.into_iter().for_each(|(row, guest)| guests.entry(row).or_default().push(guest));
    guests
}

/// The chance that of this many persons at least `n` are drawn, each with the same chance.
fn chance_of(n_persons: u32, chance: f64, n: u32) -> f64 {
    if n > n_persons {
        return 0.0;
    }
    if f64::from(n) <= chance * f64::from(n_persons) {
        return 1.0;
    }
    // Exactly n, from the logarithm; then one more at a time, each seldomer than the one before.
    let ways: f64 = (0..n).map(|drawn| (f64::from(n_persons - drawn) / f64::from(drawn + 1)).ln()).sum();
    let mut exactly = (ways + f64::from(n) * chance.ln() + f64::from(n_persons - n) * (1.0 - chance).ln()).exp();
    let mut sum = 0.0;
    for drawn in n..=n_persons {
        sum += exactly;
        exactly *= f64::from(n_persons - drawn) / f64::from(drawn + 1) * chance / (1.0 - chance);
        if exactly < sum * 1e-12 {
            break;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::chance_of;

    #[test]
    fn chances_are_those_of_a_coin() {
        // Three coins: all heads in one of eight, two at least in four.
        for (n, expected) in [(3, 0.125), (2, 0.5), (4, 0.0), (0, 1.0), (1, 1.0)] {
            assert!((chance_of(3, 0.5, n) - expected).abs() < 1e-12, "{n}");
        }
        let chance = chance_of(1_000, 0.1, 131);
        assert!((0.0005..0.002).contains(&chance), "three deviations and more: {chance}");
    }
}
