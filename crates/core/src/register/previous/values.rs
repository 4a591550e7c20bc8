//! Unites sensitive groups if a group together with one of an earlier release would give values away.
//!
//! Values are given away in two ways. Either the two groups have few values in common, and everybody who is in both has one
//! of these; or one group has all values of the other and a few more, which belong to those who came or left. Uniting
//! groups only adds common values, and if all groups are united, only the whole can be compared with earlier groups.
//! But groups that have nothing in common with earlier ones may have a little in common after they are united. So if
//! uniting the nearest groups fails, and there are few groups, every way to unite them is tried.
//!
//! If presence is hidden, everybody of a group's classes is taken to be private, so that groups don't tell who is.

use std::collections::{BTreeMap, BTreeSet};

use kohort_model::{NULL, Requirement, Role, Table, Value};

use super::past::Past;
use super::{ClassPersons, Earlier, ValueCounts, value_of};
use crate::AnonymizeError;
use crate::encode::bounds::{self, Bounds};
use crate::register::crowd::{Crowd, Draft};

/// Unites groups of classes with these persons.
///
/// # Errors
/// If even one group of everybody gives values away.
pub(in crate::register) fn merge_groups(
    crowd: &Crowd<'_>,
    past: &Past<'_>,
    table: &Table,
    requirements: &[Requirement],
    drafts: &mut [Draft],
    persons: &[ClassPersons],
) -> Result<(), AnonymizeError> {
    let earlier = past.earlier();
    let sensitive = table.with_role(Role::Sensitive);
    let l = |&column: &usize| least_values(requirements, &table.columns[column].name);
    let values = Values { earlier, k: u64::from(crowd.k()), l: sensitive.iter().map(l).collect() };
    let mut groups: BTreeMap<u32, Group<'_>> = BTreeMap::new();
    for (draft, persons) in drafts.iter().zip(persons) {
        let group = groups.entry(draft.group).or_insert_with(|| Group::new(sensitive.len()));
        group.include(&crowd.bounds(draft));
        for &row in &draft.microdata {
            for (counts, &column) in group.values.iter_mut().zip(&sensitive) {
                let column = &table.columns[column];
                *counts.entry(value_of(column, column.cell(row as usize))).or_default() += 1;
            }
        }
        let group_of = |(release, &class): (&Earlier<'_>, &u32)| match class {
            NULL => NULL,
            class => release.groups[class as usize],
        };
        let ways_of = |persons: &[u32]| -> BTreeSet<Vec<u32>> {
            let ways = persons.iter().flat_map(|&person| past.ways_of(person));
            ways.map(|way| earlier.iter().zip(&way.classes).map(group_of).collect()).collect()
        };
        group.ways.append(&mut ways_of(&persons.members));
        group.ways_of_rows.append(&mut ways_of(&persons.released));
    }
    let unreadable =
        |column: usize| AnonymizeError::PreviousValues { column: table.columns[sensitive[column]].name.clone() };
    if let Some(column) = values.given_away_in_all(&groups) {
        return Err(unreadable(column));
    }
    let now_in = match values.unite_nearest(crowd, groups.clone()) {
        Ok(now_in) => now_in,
        Err(column) => values.unite_any(crowd, &groups).ok_or_else(|| unreadable(column))?,
    };
    drafts.iter_mut().for_each(|draft| draft.group = now_in[&draft.group]);
    Ok(())
}

/// The smallest number of distinct values that the requirements on a column ask for.
fn least_values(requirements: &[Requirement], name: &str) -> u64 {
    let asked = requirements.iter().filter(|requirement| requirement.column() == Some(name));
    let l = asked.map(|requirement| match requirement {
        Requirement::DistinctL { l, .. } | Requirement::RecursiveCL { l, .. } => u64::from(*l),
        Requirement::EntropyL { l, .. } => l.ceil() as u64,
        Requirement::Alpha { alpha, .. } => (1.0 / alpha - 1e-9).ceil() as u64,
        Requirement::K(_)
        | Requirement::PersonK { .. }
        | Requirement::TCloseness { .. }
        | Requirement::Beta { .. }
        | Requirement::EnhancedBeta { .. } => 1,
    });
    l.max().unwrap_or(1)
}

/// With at most this many groups, every way to unite them is tried.
const FEW_GROUPS: usize = 7;

/// A sensitive group in the making.
#[derive(Clone)]
struct Group<'a> {
    bounds: Bounds,
    /// Per sensitive column.
    values: Vec<ValueCounts<'a>>,
    /// Groups of earlier releases that one of its persons can have been in, one of each, [`NULL`] for none.
    ways: BTreeSet<Vec<u32>>,
    /// The same for persons whose rows are shown. These are fewer if somebody is left out.
    ways_of_rows: BTreeSet<Vec<u32>>,
}

impl Group<'_> {
    fn new(n_columns: usize) -> Self {
        Group {
            bounds: Vec::new(),
            values: vec![ValueCounts::new(); n_columns],
            ways: BTreeSet::new(),
            ways_of_rows: BTreeSet::new(),
        }
    }

    fn include(&mut self, bounds: &[(u32, u32)]) {
        if self.bounds.is_empty() {
            self.bounds = bounds.to_vec();
        }
        bounds::unite(&mut self.bounds, bounds);
    }

    fn unite(&mut self, other: Self) {
        self.include(&other.bounds);
        self.ways.extend(other.ways);
        self.ways_of_rows.extend(other.ways_of_rows);
        for (counts, more) in self.values.iter_mut().zip(other.values) {
            more.into_iter().for_each(|(value, n)| *counts.entry(value).or_default() += n);
        }
    }
}

/// The requirements on values that are read together.
struct Values<'a> {
    earlier: &'a [Earlier<'a>],
    k: u64,
    /// Per sensitive column.
    l: Vec<u64>,
}

impl Values<'_> {
    /// Unites groups that give values away with the nearest, as long as there is one. Tells for each group which one it is
    /// in then.
    ///
    /// # Errors
    /// The column whose values even one group of everybody gives away.
    fn unite_nearest(
        &self,
        crowd: &Crowd<'_>,
        mut groups: BTreeMap<u32, Group<'_>>,
    ) -> Result<BTreeMap<u32, u32>, usize> {
        let mut now_in: BTreeMap<u32, u32> = groups.keys().map(|&group| (group, group)).collect();
        let mut open: Vec<u32> = groups.keys().copied().collect();
        while let Some(number) = open.pop() {
            let Some(column) = groups.get(&number).and_then(|group| self.given_away(group)) else { continue };
            let group = groups.remove(&number).expect("it was looked up above");
            let nearest = groups.iter().min_by(|a, b| {
                let width = |other: &Group<'_>| bounds::width_of_both(crowd.domains(), &group.bounds, &other.bounds);
                width(a.1).total_cmp(&width(b.1))
            });
            let into = nearest.map(|(&into, _)| into).ok_or(column)?;
            groups.get_mut(&into).expect("it was found above").unite(group);
            now_in.values_mut().filter(|group| **group == number).for_each(|group| *group = into);
            open.push(into);
        }
        Ok(now_in)
    }

    /// The same by trying every way to unite few groups, because two groups may have nothing in common with earlier
    /// ones, and all groups together a single value. Of the ways that give nothing away, the one with most groups is
    /// taken, and of these the narrowest.
    fn unite_any(&self, crowd: &Crowd<'_>, groups: &BTreeMap<u32, Group<'_>>) -> Option<BTreeMap<u32, u32>> {
        if groups.len() > FEW_GROUPS {
            return None;
        }
        let mut ways: Vec<Vec<u32>> = vec![Vec::new()];
        for _ in groups {
            let longer = |way: &Vec<u32>| {
                let next = way.iter().max().map_or(0, |most| most + 1);
                (0..=next).map(|into| [way.as_slice(), &[into]].concat()).collect::<Vec<_>>()
            };
            ways = ways.iter().flat_map(longer).collect();
        }
        let of_way = |way: Vec<u32>| {
            let mut united: BTreeMap<u32, Group<'_>> = BTreeMap::new();
            for (group, into) in groups.values().zip(&way) {
                match united.get_mut(into) {
                    Some(first) => first.unite(group.clone()),
                    None => drop(united.insert(*into, group.clone())),
                }
            }
            let tells_nothing = united.values().all(|group| self.given_away(group).is_none());
            let width: f64 = united.values().map(|group| crowd.width(&group.bounds)).sum();
            tells_nothing.then_some((united.len(), width, way))
        };
        let found = ways.into_iter().filter_map(of_way);
        let best = found.min_by(|a, b| b.0.cmp(&a.0).then(a.1.total_cmp(&b.1)).then_with(|| a.2.cmp(&b.2)))?;
        Some(groups.keys().copied().zip(best.2).collect())
    }

    /// The first column whose values a group gives away beside earlier ones.
    fn given_away(&self, group: &Group<'_>) -> Option<usize> {
        (0..self.l.len()).find(|&column| self.common_are_few(group, column) || self.changes_are_few(group, column))
    }

    /// Whether somebody who took part in some of these releases has one of few values. Each choice of releases is looked
    /// at: groups of all of them may have nothing in common, and those of two a single value.
    fn common_are_few(&self, group: &Group<'_>, column: usize) -> bool {
        group.ways.iter().any(|way| {
            let before: Vec<&ValueCounts<'_>> =
                self.earlier.iter().zip(way).filter_map(|(release, &group)| of_group(release, column, group)).collect();
            (1..1_u64 << before.len()).any(|chosen| {
                let of_chosen = before.iter().enumerate().filter(|(at, _)| chosen >> at & 1 == 1);
                let is_common =
                    |value: &&Option<Value<'_>>| of_chosen.clone().all(|(_, counts)| counts.contains_key(*value));
                let n_common = group.values[column].keys().filter(is_common).count() as u64;
                (1..self.l[column]).contains(&n_common)
            })
        })
    }

    fn changes_are_few(&self, group: &Group<'_>, column: usize) -> bool {
        let now = &group.values[column];
        let all_ways = [&group.ways, &group.ways_of_rows];
        let are_few = |(position, release): (usize, &Earlier<'_>)| {
            all_ways.iter().any(|ways| {
                let numbers: BTreeSet<u32> = ways.iter().map(|way| way[position]).collect();
                let before: Vec<&ValueCounts<'_>> =
                    numbers.into_iter().filter_map(|number| of_group(release, column, number)).collect();
                before.iter().any(|before| self.are_few(before, now, column))
                    || (before.len() > 1 && self.are_few(&sum(&before), now, column))
            })
        };
        self.earlier.iter().enumerate().any(are_few)
    }

    /// The first column whose values all groups together give away.
    fn given_away_in_all(&self, groups: &BTreeMap<u32, Group<'_>>) -> Option<usize> {
        (0..self.l.len()).find(|&column| {
            let now = sum(&groups.values().map(|group| &group.values[column]).collect::<Vec<_>>());
            let before = self.earlier.iter().filter_map(|release| release.values[column].as_ref());
            let mut before = before.map(|groups| sum(&groups.iter().collect::<Vec<_>>()));
            before.any(|before| self.are_few(&before, &now, column))
        })
    }

    /// Whether values were only added or only removed, and so few that they can be attributed to persons.
    fn are_few(&self, before: &ValueCounts<'_>, now: &ValueCounts<'_>, column: usize) -> bool {
        let (came, went) = (more(now, before), more(before, now));
        let is_few = |(n, distinct): (u64, u64)| n > 0 && (n < self.k || distinct < self.l[column]);
        (went.0 == 0 && is_few(came)) || (came.0 == 0 && is_few(went))
    }
}

fn of_group<'e>(release: &'e Earlier<'_>, column: usize, group: u32) -> Option<&'e ValueCounts<'e>> {
    release.values[column].as_ref().filter(|_| group != NULL).map(|groups| &groups[group as usize])
}

/// How many values were added, and how many of them are distinct.
fn more(these: &ValueCounts<'_>, those: &ValueCounts<'_>) -> (u64, u64) {
    let more = these.iter().map(|(value, &n)| n.saturating_sub(those.get(value).copied().unwrap_or(0)));
    more.filter(|&n| n > 0).fold((0, 0), |(total, distinct), n| (total + n, distinct + 1))
}

fn sum<'v>(counts: &[&ValueCounts<'v>]) -> ValueCounts<'v> {
    let mut sum = ValueCounts::new();
    for (&value, &n) in counts.iter().flat_map(|counts| counts.iter()) {
        *sum.entry(value).or_default() += n;
    }
    sum
}
