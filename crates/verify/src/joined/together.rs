//! What readers of a release and of earlier ones learn together.
//!
//! # Guarantee
//! An earlier release does not say who was in it. So the verifier assumes that a person can have been in any class
//! whose cells cover them (see `histories`), in at most one class of each release. For every such choice:
//!
//! - For every private person, at least k persons (or as many as the person asks for) are possible: they are covered by
//!   the person's class with the values of the current registers, and by all chosen earlier classes with the values of
//!   the registers at those times. The person counts, too.
//! - If a sensitive group and the earlier groups that somebody of its classes can have been in have values in common,
//!   these are as many distinct values as `l`, `entropy_l` and the l of `recursive_cl` require, and at least one over
//!   `alpha`. `t` and `beta` do not limit this.
//! - A group does not have all values of such an earlier group and just a few more: fewer than k, or fewer distinct
//!   ones than above. Nor has the earlier group just a few more than the group. The same holds for all such earlier
//!   groups together, and for the whole releases.
//!
//! If only the released files are given, nothing says whose rows are whose. Then `against` counts for all origins that
//! the rows can have.
//! # Cost
//! One range query per earlier class, and one pass over the crowd of a way per class and way.

mod against;
mod histories;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use kohort_model::register::SENSITIVE_GROUP;
use kohort_model::{Column, JoinedRegister, NULL, PreviousRelease, ReadBeside, Requirement, Role, Table, Texts, Value};
use rayon::prelude::*;

use super::{AskedOfJoin, JoinedRows};
use crate::count::grouping::Classes;
use crate::count::requirement::TOLERANCE;
use crate::count::roll::own_ks;
use crate::origins::candidates::PointTree;
use crate::reading::coverage::{Coverage, Runs};
use crate::{TogetherFindings, Violation, Violations};
pub(super) use against::count_together_against;
use histories::Histories;

/// The positions that the cells of a class cover, column by column (the end excluded).
type BoxSides = Vec<(u32, u32)>;

/// How often each value occurs.
type ValueCounts<'a> = BTreeMap<Option<Value<'a>>, u64>;

impl JoinedRows<'_> {
    /// Counts what readers of this and earlier releases learn. `sizes` are the numbers of persons in each class.
    pub(super) fn count_together(
        &self,
        (classes, sizes): (&Classes, &[u64]),
        original: &Table,
        joined: &JoinedRegister,
        asked: AskedOfJoin<'_>,
    ) -> Result<TogetherFindings, Violations> {
        let mut violations = Vec::new();
        let own_k = own_ks(original, None, None, asked.requirements, &mut violations);
        let k = asked.requirements.iter().find_map(Requirement::k).map_or(1, u64::from);
        let mut persons = self.rows.to_vec();
        persons.sort_unstable();
        let beside = Beside::new(asked.previous, persons, joined, original)?;
        let needed = |row: u32| own_k.iter().map(|own_k| own_k.get(row as usize, None)).max().unwrap_or(0).max(k);
        let runs: Vec<Runs> = joined
            .rows
            .columns
            .iter()
            .zip(&self.quasi)
            .map(|(column, (labels, _))| Runs::new(&Coverage::new(column, labels)))
            .collect();
        // For each class, how many private persons hide among too few, and the fewest persons that anybody hides among.
        let of_class = |class: usize| {
            let rows = classes.rows(class);
            let sides: BoxSides =
                runs.iter().zip(&self.quasi).map(|(runs, (_, ids))| runs.run(ids[rows[0] as usize])).collect();
            let mut of_class = beside.of_class(&sides);
            let (mut n_short, mut fewest) = (0, u64::MAX);
            let private = rows.iter().map(|&row| self.rows[row as usize]);
            for person in private.filter(|&person| (person as usize) < joined.n_microdata) {
                if let Some(n) = of_class.n_among(person) {
                    n_short += u64::from(n < needed(person));
                    fewest = fewest.min(n);
                }
            }
            (n_short, fewest)
        };
        let counted: Vec<(u64, u64)> = (0..classes.len()).into_par_iter().map(of_class).collect();
        let n = counted.iter().map(|&(n, _)| n).sum();
        let fewest = counted.iter().map(|&(_, fewest)| fewest).min().unwrap_or(u64::MAX);
        if n > 0 {
            violations.push(Violation::PreviousCrowd { n, fewest });
        }
        let mut l = Vec::new();
        for found in beside.count_values(&self.groups_beside(&beside, original), original, asked.requirements, k) {
            violations.extend(found.violations());
            l.extend(found.most_in_common.map(|fewest| (found.column, fewest)));
        }
        if !violations.is_empty() {
            return Err(Violations(violations));
        }
        let smallest = || sizes.iter().copied().min().unwrap_or(0);
        Ok(TogetherFindings { k: if fewest == u64::MAX { smallest() } else { fewest }, l })
    }

    /// The sensitive groups, and the earlier groups that their persons can have been in.
    fn groups_beside<'v>(&self, beside: &Beside<'_>, original: &'v Table) -> Vec<Group<'v>> {
        let Some(values) = &self.values else { return Vec::new() };
        let mut members: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        values.rows.iter().zip(&values.groups).for_each(|(&row, &group)| members.entry(group).or_default().push(row));
        // A reader does not know who in the classes of a group is private, so everybody there could be.
        let mut ways_of_groups: BTreeMap<u32, BTreeSet<Vec<u32>>> = BTreeMap::new();
        for (&person, &group) in self.rows.iter().zip(&self.groups) {
            ways_of_groups.entry(group).or_default().extend(beside.groups_before(person));
        }
        let columns: Vec<&Column> =
            original.with_role(Role::Sensitive).into_iter().map(|column| &original.columns[column]).collect();
        let group = |(group, rows): (u32, Vec<u32>)| {
            let of_column = |column: &&'v Column| counts(column, column, rows.iter().map(|&row| row as usize));
            let values = columns.iter().map(of_column).collect();
            Group { values, certain: ways_of_groups.remove(&group).unwrap_or_default(), others: BTreeSet::new() }
        };
        members.into_iter().map(group).collect()
    }
}

/// Earlier releases, and who can have been in which of their classes.
struct Beside<'a> {
    joined: &'a JoinedRegister,
    places: RowPlaces,
    earlier: Vec<Earlier<'a>>,
    histories: Histories,
}

impl<'a> Beside<'a> {
    /// Looks up in which earlier classes `persons`, which are ascending, can have been.
    fn new(
        previous: &'a [PreviousRelease],
        persons: Vec<u32>,
        joined: &'a JoinedRegister,
        original: &Table,
    ) -> Result<Self, Violation> {
        let places = RowPlaces::new(joined);
        let mut earlier = Vec::with_capacity(previous.len());
        for release in previous {
            earlier.push(Earlier::new(release, (joined, &persons), &places, original)?);
        }
        let histories = Histories::new(&earlier, persons);
        Ok(Beside { joined, places, earlier, histories })
    }

    /// Counts persons in a class of this release whose cells cover these positions.
    fn of_class<'b>(&'b self, sides: &'b [(u32, u32)]) -> ClassBeside<'b> {
        ClassBeside { beside: self, sides, held: HashMap::new() }
    }

    /// For each way of a person, the earlier groups: one of each release, [`NULL`] for none.
    fn groups_before(&self, person: u32) -> impl Iterator<Item = Vec<u32>> {
        self.histories.ways(person).iter().map(|way| groups_of(&self.earlier, way))
    }

    /// Counts the values that groups have in common and the values that changed, column by column.
    fn count_values(
        &self,
        groups: &[Group<'_>],
        original: &Table,
        requirements: &[Requirement],
        k: u64,
    ) -> Vec<ValuesBeside> {
        if groups.is_empty() {
            return Vec::new();
        }
        let columns = original.with_role(Role::Sensitive).into_iter().enumerate();
        columns
            .map(|(position, column)| {
                let column = &original.columns[column].name;
                let asked = AskedOfValues::of(requirements, column, k);
                let mut found = ValuesBeside { column: column.clone(), ..ValuesBeside::default() };
                let mut all = ValueCounts::new();
                for group in groups {
                    group.values[position].iter().for_each(|(&value, n)| *all.entry(value).or_default() += n);
                    self.count_common(position, group, &asked, &mut found);
                    self.count_changes(position, group, &asked, &mut found);
                }
                let is_told = |release: &Earlier<'_>| {
                    let before = sum(release.values[position].iter());
                    !before.is_empty() && asked.tell(&before, &all)
                };
                if self.earlier.iter().any(is_told) {
                    found.n_changes = found.n_changes.max(1);
                }
                found
            })
            .collect()
    }

    fn count_common(&self, position: usize, group: &Group<'_>, asked: &AskedOfValues<'_>, found: &mut ValuesBeside) {
        let now = &group.values[position];
        // Whether too few values are common to all groups of some way; and the fewest that are common in any way.
        let of_ways = |ways: &BTreeSet<Vec<u32>>| {
            let (mut shares_few, mut fewest) = (false, None::<u64>);
            for way in ways.iter().flat_map(|way| parts_of(way)) {
                let before: Vec<&ValueCounts<'_>> = self
                    .earlier
                    .iter()
                    .zip(&way)
                    .filter_map(|(release, &group)| release.counts(position, group))
                    .collect();
                let common = now.keys().filter(|value| before.iter().all(|before| before.contains_key(*value)));
                let common = common.count() as u64;
                if !before.is_empty() && common > 0 {
                    shares_few |= !asked.suffice(common);
                    fewest = Some(fewest.map_or(common, |fewest| fewest.min(common)));
                }
            }
            (shares_few, fewest)
        };
        let ((is_short, certain), (may_be_short, others)) = (of_ways(&group.certain), of_ways(&group.others));
        found.n_common += u64::from(is_short);
        found.is_open |= may_be_short && !is_short;
        found.most_in_common = fewer(found.most_in_common, certain);
        found.least_in_common = fewer(found.least_in_common, fewer(certain, others));
    }

    fn count_changes(&self, position: usize, group: &Group<'_>, asked: &AskedOfValues<'_>, found: &mut ValuesBeside) {
        let now = &group.values[position];
        let (mut is_told, mut may_be_told) = (false, false);
        for (at, release) in self.earlier.iter().enumerate() {
            let of_group = |group: &u32| release.counts(position, *group);
            let certain: BTreeSet<u32> = group.certain.iter().map(|way| way[at]).collect();
            let others: BTreeSet<u32> = group.others.iter().map(|way| way[at]).collect();
            let others: Vec<&ValueCounts<'_>> = others.difference(&certain).filter_map(of_group).collect();
            let certain: Vec<&ValueCounts<'_>> = certain.iter().filter_map(of_group).collect();
            is_told |= certain.iter().any(|before| asked.tell(before, now));
            may_be_told |= others.iter().any(|before| asked.tell(before, now));
            // A reader can also compare with all earlier groups of these persons together. The certain ones are among
            // them; which of the others are is not known, so try every choice.
            if others.len() > MOST_OTHERS {
                may_be_told = true;
                continue;
            }
            for chosen in 0..1_u32 << others.len() {
                let chosen = others.iter().enumerate().filter(|(other, _)| chosen >> other & 1 == 1);
                let before = sum(certain.iter().copied().chain(chosen.map(|(_, &before)| before)));
                let tells = !before.is_empty() && asked.tell(&before, now);
                is_told |= tells && others.is_empty();
                may_be_told |= tells;
            }
        }
        found.n_changes += u64::from(is_told);
        found.is_open |= may_be_told && !is_told;
    }
}

/// The largest number of uncertain groups of which every choice is tried.
const MOST_OTHERS: usize = 8;

/// Counts the persons whom a class of this release covers.
struct ClassBeside<'b> {
    beside: &'b Beside<'b>,
    sides: &'b [(u32, u32)],
    /// For each way, how many persons of its crowd the class covers.
    held: HashMap<&'b [u32], u64>,
}

impl ClassBeside<'_> {
    /// The number of persons among whom a person of the class hides, by the way that leaves the fewest; `None` if no
    /// earlier class covers the person.
    fn n_among(&mut self, person: u32) -> Option<u64> {
        let ClassBeside { beside: Beside { joined, places, histories, .. }, sides, held } = self;
        let is_held = |person: u32| joined.public_place(person).is_some_and(|place| places.holds(sides, place));
        let among = histories.ways(person).iter().map(|way| {
            let crowd = histories.crowd(way);
            let n = *held
                .entry(way)
                .or_insert_with(|| joined_persons(crowd, joined).filter(|&person| is_held(person)).count() as u64);
            n + u64::from(crowd.binary_search(&person).is_err() || !is_held(person))
        });
        among.min()
    }
}

/// A sensitive group, and the earlier groups that its persons can have been in: for each way, one group of each
/// release, [`NULL`] for none.
struct Group<'v> {
    /// The values in each sensitive column.
    values: Vec<ValueCounts<'v>>,
    /// The ways of persons who are certainly in classes of the group.
    certain: BTreeSet<Vec<u32>>,
    /// The ways of persons who may be in classes of the group, if it is not known whose rows are whose.
    others: BTreeSet<Vec<u32>>,
}

/// The counts of one sensitive column.
#[derive(Default)]
struct ValuesBeside {
    column: String,
    /// Groups that have too few values in common with an earlier group.
    n_common: u64,
    /// Groups in which only a few values came or went.
    n_changes: u64,
    /// Whether a group may give values away, depending on whose rows are whose.
    is_open: bool,
    /// The fewest values that groups have in common is at least `least_in_common` and at most `most_in_common`. `None`
    /// if no groups have a value in common.
    least_in_common: Option<u64>,
    most_in_common: Option<u64>,
}

impl ValuesBeside {
    fn violations(&self) -> impl Iterator<Item = Violation> {
        let column = || self.column.clone();
        let common = (self.n_common > 0).then(|| Violation::PreviousCommon { column: column(), n: self.n_common });
        let changes = (self.n_changes > 0).then(|| Violation::PreviousChanges { column: column(), n: self.n_changes });
        common.into_iter().chain(changes)
    }
}

/// The smaller number. `None` counts as more than any number.
fn fewer(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    a.into_iter().chain(b).min()
}

fn sum<'c, 'v: 'c>(counts: impl Iterator<Item = &'c ValueCounts<'v>>) -> ValueCounts<'v> {
    let mut sum = ValueCounts::new();
    counts.flatten().for_each(|(&value, n)| *sum.entry(value).or_default() += n);
    sum
}

/// What the values that two groups have in common, or that one has and the other lacks, must satisfy.
struct AskedOfValues<'a> {
    /// The requirements on the column.
    requirements: Vec<&'a Requirement>,
    k: u64,
}

impl<'a> AskedOfValues<'a> {
    fn of(requirements: &'a [Requirement], column: &str, k: u64) -> Self {
        let of_column = |requirement: &&Requirement| requirement.sensitive_column() == Some(column);
        AskedOfValues { requirements: requirements.iter().filter(of_column).collect(), k }
    }

    /// Whether this number of distinct values can satisfy every requirement, in the best case: each value is held by
    /// equally many persons.
    fn suffice(&self, n_distinct: u64) -> bool {
        let n = n_distinct as f64;
        self.requirements.iter().all(|requirement| match requirement {
            Requirement::DistinctL { l, .. } | Requirement::RecursiveCL { l, .. } => n_distinct >= u64::from(*l),
            Requirement::EntropyL { l, .. } => n.ln() >= l.ln() - TOLERANCE,
            Requirement::Alpha { alpha, .. } => 1.0 / n <= alpha + TOLERANCE,
            // These do not limit the number of distinct values.
            Requirement::K(_)
            | Requirement::PersonK { .. }
            | Requirement::TCloseness { .. }
            | Requirement::Beta { .. }
            | Requirement::EnhancedBeta { .. } => true,
        })
    }

    /// Whether one group has all values of the other and so few more that these tell whose they are.
    fn tell(&self, before: &ValueCounts<'_>, now: &ValueCounts<'_>) -> bool {
        let Some(more) = beside(now, before).or_else(|| beside(before, now)) else { return false };
        let n_persons: u64 = more.values().sum();
        n_persons < self.k || !self.suffice(more.len() as u64)
    }
}

/// The values that `all` has in addition to those of `part`; `None` if `all` lacks a value of `part`, or has no others.
fn beside<'v>(all: &ValueCounts<'v>, part: &ValueCounts<'v>) -> Option<ValueCounts<'v>> {
    let mut more = all.clone();
    for (value, n) in part {
        let left = more.get_mut(value)?;
        *left = left.checked_sub(*n)?;
    }
    more.retain(|_, n| *n > 0);
    (!more.is_empty()).then_some(more)
}

/// Counts the cells of a column as values of the private column.
fn counts<'a>(column: &'a Column, private: &Column, rows: impl Iterator<Item = usize>) -> ValueCounts<'a> {
    let mut counts = ValueCounts::new();
    for row in rows {
        *counts.entry(column.cell(row).map(|text| value_of(private, text))).or_default() += 1;
    }
    counts
}

fn value_of<'t>(column: &Column, text: &'t str) -> Value<'t> {
    let parsed = || Value::parse(text, column.value_type, &column.notation);
    if column.hierarchy.is_some() { Value::Text(text) } else { parsed().unwrap_or(Value::Text(text)) }
}

/// The persons of the current join among `persons`, who may also be of earlier times.
fn joined_persons(persons: &[u32], joined: &JoinedRegister) -> impl Iterator<Item = u32> {
    let n_persons = (joined.n_microdata + joined.n_register) as u32;
    persons.iter().copied().take_while(move |&person| person < n_persons)
}

/// The positions of the cells of all rows of the join. These do not depend on labels.
struct RowPlaces {
    n_columns: usize,
    coordinates: Vec<u32>,
}

impl RowPlaces {
    fn new(joined: &JoinedRegister) -> Self {
        let no_label = Texts::new();
        let columns = &joined.rows.columns;
        let runs: Vec<Runs> = columns.iter().map(|column| Runs::new(&Coverage::new(column, &no_label))).collect();
        let place = |row: usize| runs.iter().zip(columns).map(move |(runs, column)| runs.position(column.ids[row]));
        RowPlaces { n_columns: columns.len(), coordinates: (0..joined.rows.n_rows).flat_map(place).collect() }
    }

    fn of(&self, row: u32) -> &[u32] {
        &self.coordinates[row as usize * self.n_columns..][..self.n_columns]
    }

    fn holds(&self, sides: &[(u32, u32)], row: u32) -> bool {
        self.of(row).iter().zip(sides).all(|(position, (from, to))| from <= position && position < to)
    }

    /// For each box, the positions in `rows` of the rows that lie in it, ascending.
    fn within(&self, rows: &[u32], boxes: &[BoxSides]) -> Vec<Vec<u32>> {
        let coordinates = rows.iter().flat_map(|&row| self.of(row)).copied().collect();
        let tree = PointTree::new(self.n_columns, coordinates, rows.len());
        boxes.par_iter().map(|sides| tree.within(sides)).collect()
    }
}

/// An earlier release.
struct Earlier<'a> {
    /// The group of each class.
    groups: Vec<u32>,
    /// For each sensitive column and group, its values; empty if the release does not show the column.
    values: Vec<Vec<ValueCounts<'a>>>,
    /// For each class, the persons whom it covers with the values of the registers of its time, ascending.
    persons: Vec<Vec<u32>>,
    /// For each person that is looked up and each of their lives, the classes that cover them.
    holding: Vec<Vec<u32>>,
    beside: Option<&'a ReadBeside>,
}

impl<'a> Earlier<'a> {
    fn new(
        release: &'a PreviousRelease,
        (joined, looked_up): (&JoinedRegister, &[u32]),
        places: &RowPlaces,
        original: &Table,
    ) -> Result<Self, Violation> {
        let columns = &joined.rows.columns;
        let rows = &release.tables[0];
        let refuse =
            |column: &str| Violation::PreviousColumn { release: release.name.clone(), column: column.to_owned() };
        let quasi: Vec<&Column> = rows.columns.iter().filter(|column| column.role == Role::Quasi).collect();
        for shown in &quasi {
            let private = joined.rows.column(&shown.name).ok_or_else(|| refuse(&shown.name))?;
            if shown.texts.iter().any(|label| !is_understood(private, label)) {
                return Err(refuse(&shown.name));
            }
        }
        let runs: Vec<Option<(&Column, Runs)>> = columns
            .iter()
            .map(|private| {
                let shown = *quasi.iter().find(|shown| shown.name == private.name)?;
                Some((shown, Runs::new(&Coverage::new(private, &shown.texts))))
            })
            .collect();
        let group_column = rows.column(SENSITIVE_GROUP);
        let mut numbers: HashMap<Vec<u32>, u32> = HashMap::new();
        let (mut first_rows, mut class_of_row) = (Vec::new(), Vec::with_capacity(rows.n_rows));
        for row in 0..rows.n_rows {
            let cells: Vec<u32> = quasi.iter().copied().chain(group_column).map(|column| column.ids[row]).collect();
            let next = numbers.len() as u32;
            let class = *numbers.entry(cells).or_insert(next);
            if class == next {
                first_rows.push(row);
            }
            class_of_row.push(class);
        }
        let sides: Vec<BoxSides> = first_rows
            .iter()
            .map(|&row| {
                let side = |shown: &Option<(&Column, Runs)>| match shown {
                    None => (0, u32::MAX),
                    Some((column, runs)) => runs.run(column.ids[row]),
                };
                runs.iter().map(side).collect()
            })
            .collect();
        // Groups are matched by name, because the ids of the two tables differ. Without groups, each class is a group.
        let group_name = |class: usize| match group_column {
            None => class.to_string(),
            Some(column) => column.cell(first_rows[class]).unwrap_or_default().to_owned(),
        };
        let mut group_numbers: HashMap<String, u32> = HashMap::new();
        let mut groups = Vec::with_capacity(sides.len());
        for class in 0..sides.len() {
            let next = group_numbers.len() as u32;
            groups.push(*group_numbers.entry(group_name(class)).or_insert(next));
        }
        let values = original.with_role(Role::Sensitive).into_iter().map(|column| {
            let private = &original.columns[column];
            let table = release.tables.get(1).unwrap_or(rows);
            let Some(shown) = table.column(&private.name) else { return Vec::new() };
            let mut members: Vec<Vec<usize>> = vec![Vec::new(); group_numbers.len()];
            for row in 0..table.n_rows {
                let group = match release.tables.get(1) {
                    None => Some(groups[class_of_row[row] as usize]),
                    Some(table) => {
                        let name = table.column(SENSITIVE_GROUP).and_then(|column| column.cell(row));
                        name.and_then(|name| group_numbers.get(name).copied())
                    }
                };
                if let Some(group) = group {
                    members[group as usize].push(row);
                }
            }
            members.into_iter().map(|rows| counts(shown, private, rows.into_iter())).collect()
        });
        let values = values.collect();
        let (who, stood): (Vec<u32>, Vec<u32>) =
            (0..).zip(release.places.iter().copied()).filter(|&(_, place)| place != NULL).unzip();
        let in_classes = places.within(&stood, &sides).into_iter();
        let persons = in_classes.map(|found| found.into_iter().map(|at| who[at as usize]).collect()).collect();
        let lives: Vec<u32> =
            looked_up.iter().flat_map(|&person| histories::places_then(joined, &release.places, person)).collect();
        let mut holding: Vec<Vec<u32>> = vec![Vec::new(); lives.len()];
        for (class, found) in (0..).zip(places.within(&lives, &sides)) {
            found.into_iter().for_each(|at| holding[at as usize].push(class));
        }
        Ok(Earlier { groups, values, persons, holding, beside: release.beside.as_ref() })
    }

    fn counts(&self, column: usize, group: u32) -> Option<&ValueCounts<'a>> {
        self.values[column].get(group as usize)
    }
}

/// Whether it is certain what a label of an earlier release stands for.
fn is_understood(column: &Column, label: &str) -> bool {
    if label == "*" {
        return true;
    }
    match &column.hierarchy {
        Some(hierarchy) => hierarchy.node(label).is_some(),
        None if column.value_type.is_ordered() => {
            Value::parse(label, column.value_type, &column.notation).is_some()
                || crate::reading::coverage::range_bounds(label, column).is_some()
        }
        None => true,
    }
}

/// A way, and every way that leaves out some of its releases, because a reader may have only some of them. Two releases
/// may have a single value in common although all of them have none.
fn parts_of(way: &[u32]) -> Vec<Vec<u32>> {
    let mut parts = vec![Vec::new()];
    for &group in way {
        let choices = if group == NULL { vec![NULL] } else { vec![NULL, group] };
        let longer = |part: &Vec<u32>| choices.iter().map(|&group| [part.as_slice(), &[group]].concat()).collect();
        parts = parts.iter().flat_map::<Vec<Vec<u32>>, _>(longer).collect();
    }
    parts
}

fn groups_of(earlier: &[Earlier<'_>], way: &[u32]) -> Vec<u32> {
    let group =
        |(release, &class): (&Earlier<'_>, &u32)| if class == NULL { NULL } else { release.groups[class as usize] };
    earlier.iter().zip(way).map(group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const X: &str = "x";

    fn l(l: u32) -> Requirement {
        Requirement::DistinctL { column: X.to_owned(), l }
    }

    fn entropy(l: f64) -> Requirement {
        Requirement::EntropyL { column: X.to_owned(), l }
    }

    fn alpha(alpha: f64) -> Requirement {
        Requirement::Alpha { column: X.to_owned(), alpha }
    }

    /// The fewest distinct values that satisfy the requirements.
    fn least(requirements: &[Requirement]) -> u64 {
        let asked = AskedOfValues::of(requirements, X, 2);
        (1..100).find(|&n| asked.suffice(n)).unwrap()
    }

    #[test]
    fn as_many_values_suffice_as_the_strictest_requirement_asks_for() {
        assert_eq!(least(&[]), 1);
        assert_eq!(least(&[Requirement::K(7), l(3)]), 3);
        assert_eq!(least(&[Requirement::RecursiveCL { column: X.to_owned(), c: 0.5, l: 4 }, l(3)]), 4);
        assert_eq!([2.0, 2.1, 3.0].map(|bound| least(&[entropy(bound)])), [2, 3, 3]);
        assert_eq!([1.0, 0.5, 0.4, 1.0 / 3.0, 0.3].map(|share| least(&[alpha(share)])), [1, 2, 3, 3, 4]);
        let elsewhere = Requirement::DistinctL { column: "y".to_owned(), l: 9 };
        assert_eq!(least(&[elsewhere, l(2)]), 2);
    }

    /// One text of one letter per person.
    fn group(values: &'static str) -> ValueCounts<'static> {
        let mut counts = ValueCounts::new();
        for place in 0..values.len() {
            *counts.entry(Some(Value::Text(&values[place..=place]))).or_default() += 1;
        }
        counts
    }

    #[test]
    fn few_values_beside_all_of_another_group_tell_whose_they_are() {
        let requirements = [l(2)];
        let asked = AskedOfValues::of(&requirements, X, 3);
        let tells = |one: &'static str, other: &'static str| {
            assert_eq!(asked.tell(&group(one), &group(other)), asked.tell(&group(other), &group(one)));
            asked.tell(&group(one), &group(other))
        };
        assert!(tells("aab", "aabc"), "one person came");
        assert!(tells("aab", "aabcd"), "two came, but three are required");
        assert!(tells("aab", "aabccc"), "three came, but with one value");
        assert!(!tells("aab", "aabccd"));
        assert!(!tells("aab", "aab"), "nobody came");
        assert!(!tells("aab", "abc"), "somebody came and somebody went");
        assert!(tells("aab", "aaab"), "the value was there before");
    }
}
