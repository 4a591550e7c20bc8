//! What readers of a release and of earlier ones learn together, if it is not known whose rows are whose.
//!
//! # Guarantee
//! Every private row, except those left out, can be given a released row in a class in which its person hides among
//! enough persons. The figures that were counted when the release was made lie within the bounds found here, unless the
//! release did not come from this table. If classes don't overlap, there is only one way to give rows, and the bounds
//! are equal.
//!
//! It is certain that a person is in a sensitive group if a class of the group shows as many rows as its cells cover
//! persons, or if nobody is left out and all classes that cover the person, who is private, belong to the group. If
//! these persons show that a group gives values away, it certainly does. If the other persons can't show it, either, it
//! certainly does not. Otherwise it depends on whose rows are whose, and is reported as skipped.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use kohort_model::spec::RegisterRows;
use kohort_model::{Column, JoinedRegister, Requirement, Role, Table};
use rayon::prelude::*;

use super::{Beside, Group, counts};
use crate::count::roll::own_ks;
use crate::joined::AskedOfJoin;
use crate::joined::against::JoinedOrigins;
use crate::joined::alone::ReadTables;
use crate::{Skipped, Suppressed, TogetherWithin, Violation, Violations};

/// Counts what readers of this and earlier releases learn, for all origins that released rows can have.
pub(in crate::joined) fn count_together_against(
    (read, origins): (&ReadTables<'_>, &JoinedOrigins<'_>),
    original: &Table,
    joined: &JoinedRegister,
    asked: AskedOfJoin<'_>,
    suppressed: Suppressed,
) -> Result<(TogetherWithin, Vec<Skipped>), Violations> {
    let persons: Vec<u32> = (0..origins.n_origins as u32).collect();
    let beside = Beside::new(asked.previous, persons, joined, original)?;
    let mut violations = Vec::new();
    let own_k = own_ks(original, None, None, asked.requirements, &mut violations);
    let k = asked.requirements.iter().find_map(Requirement::k).map_or(1, u64::from);
    let needed = |row: u32| own_k.iter().map(|own_k| own_k.get(row as usize, None)).max().unwrap_or(0).max(k);

    let among = AmongPersons::new(&beside, origins);
    let short = origins.without_class(|row, class| among.of(row, class).is_none_or(|n| n >= needed(row)))?;
    let n_short = (short.len() as u64).saturating_sub(suppressed.rows);
    if n_short > 0 {
        let fewest = short.iter().filter_map(|&row| among.most(row)).min().unwrap_or(0);
        violations.push(Violation::PreviousCrowd { n: n_short, fewest });
    }
    let sizes = match asked.rows {
        RegisterRows::Microdata => (origins.fewest_held(), origins.fewest_held()),
        // The number of persons in a class depends on whose rows it shows.
        RegisterRows::All => (1, origins.fewest_held().min(origins.fewest_rows())),
    };
    let k_within = among.within(origins, suppressed, sizes)?;

    let groups = groups_beside(&beside, read, origins, original, suppressed);
    let mut within = TogetherWithin { k: k_within, l: Vec::new() };
    let mut skipped = Vec::new();
    for found in beside.count_values(&groups, original, asked.requirements, k) {
        violations.extend(found.violations());
        if found.is_open {
            skipped.push(Skipped::TogetherValues { column: found.column.clone() });
        }
        within.l.push((found.column, (found.least_in_common, found.most_in_common)));
    }
    if violations.is_empty() { Ok((within, skipped)) } else { Err(Violations(violations)) }
}

/// The number of persons among whom each private person hides, in each class that covers them.
struct AmongPersons {
    /// The number for each class and private row whose person an earlier class covers.
    n: HashMap<(usize, u32), u64>,
    /// The private rows whose person an earlier class covers.
    rows: BTreeSet<u32>,
}

impl AmongPersons {
    fn new(beside: &Beside<'_>, origins: &JoinedOrigins<'_>) -> Self {
        let of_class = |class: usize| -> Vec<((usize, u32), u64)> {
            let mut of_class = beside.of_class(origins.boxes.sides(class));
            let rows = origins.private[class].iter();
            rows.filter_map(|&row| Some(((class, row), of_class.n_among(row)?))).collect()
        };
        let n: HashMap<(usize, u32), u64> = (0..origins.n_classes()).into_par_iter().flat_map_iter(of_class).collect();
        let rows = n.keys().map(|&(_, row)| row).collect();
        AmongPersons { n, rows }
    }

    fn of(&self, row: u32, class: usize) -> Option<u64> {
        self.n.get(&(class, row)).copied()
    }

    /// The number in the class in which a person hides among the most.
    fn most(&self, row: u32) -> Option<u64> {
        self.n.iter().filter(|((_, of), _)| *of == row).map(|(_, &n)| n).max()
    }

    /// Bounds of the smallest number of persons among whom anybody hides. `sizes` are the bounds to use if no earlier
    /// class covers anybody who is released.
    fn within(
        &self,
        origins: &JoinedOrigins<'_>,
        suppressed: Suppressed,
        sizes: (u64, u64),
    ) -> Result<(u64, u64), Violation> {
        let values: BTreeSet<u64> = self.n.values().copied().collect();
        let values: Vec<u64> = values.into_iter().collect();
        let Some(&least) = values.first() else { return Ok(sizes) };
        let (mut low, mut high) = (0, values.len() - 1);
        while low < high {
            let middle = (low + high).div_ceil(2);
            let fits = |row: u32, class: usize| self.of(row, class).is_none_or(|n| n >= values[middle]);
            if origins.without_class(fits)?.len() as u64 <= suppressed.rows {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        // Everybody whom an earlier class covers may have been left out.
        let may_be_nobody = self.rows.len() as u64 <= suppressed.rows;
        let most = values[low];
        Ok(if may_be_nobody { (least.min(sizes.0), most.max(sizes.1)) } else { (least, most) })
    }
}

/// The sensitive groups of the files, and the earlier groups that their persons were in or can have been in.
fn groups_beside<'v>(
    beside: &Beside<'_>,
    read: &ReadTables<'v>,
    origins: &JoinedOrigins<'_>,
    original: &Table,
    suppressed: Suppressed,
) -> Vec<Group<'v>> {
    let Some((values, groups)) = &read.values else { return Vec::new() };
    let mut members: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    groups.iter().enumerate().for_each(|(row, &group)| members.entry(group).or_default().push(row));

    let held = origins.boxes.held_rows(origins.n_origins);
    let group_of = |class: usize| read.groups[read.classes.rows(class)[0] as usize];
    let mut of_persons: Vec<BTreeSet<u32>> = vec![BTreeSet::new(); origins.n_origins];
    let mut certain: Vec<Option<u32>> = vec![None; origins.n_origins];
    for (class, persons) in held.iter().enumerate() {
        let shows_all = read.classes.rows(class).len() == persons.len();
        for &person in persons {
            of_persons[person as usize].insert(group_of(class));
            if shows_all {
                certain[person as usize] = Some(group_of(class));
            }
        }
    }
    let is_private = |person: usize| person < origins.joined.n_microdata;
    for (person, groups) in of_persons.iter().enumerate() {
        if let (0, true, 1, Some(&group)) = (suppressed.rows, is_private(person), groups.len(), groups.first()) {
            certain[person] = Some(group);
        }
    }
    // For each group, the ways of persons who are in it, and of persons who may be.
    let mut ways: BTreeMap<u32, [BTreeSet<Vec<u32>>; 2]> = BTreeMap::new();
    for (person, groups) in of_persons.iter().enumerate() {
        let is_elsewhere = |group: u32| certain[person].is_some_and(|certain| certain != group);
        for &group in groups.iter().filter(|&&group| !is_elsewhere(group)) {
            let [certainly, possibly] = ways.entry(group).or_default();
            let of_group = if certain[person].is_some() { certainly } else { possibly };
            of_group.extend(beside.groups_before(person as u32));
        }
    }
    let columns: Vec<(&'v Column, &Column)> = original
        .with_role(Role::Sensitive)
        .into_iter()
        .filter_map(|column| Some((values.column(&original.columns[column].name)?, &original.columns[column])))
        .collect();
    let group = |(group, rows): (u32, Vec<usize>)| {
        let [certain, others] = ways.remove(&group).unwrap_or_default();
        let of_column = |&(shown, private): &(&'v Column, &Column)| counts(shown, private, rows.iter().copied());
        Group { values: columns.iter().map(of_column).collect(), others: &others - &certain, certain }
    };
    members.into_iter().map(group).collect()
}
