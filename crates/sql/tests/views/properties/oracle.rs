//! Checks of an answer that are written by hand.

use std::collections::{BTreeMap, BTreeSet};

use kohort_testkit::jobs::{Fault, FaultKind};

use super::people::{AGE, Condition, Disclosure, ILLNESS, ILLNESSES, Leftovers, People, TAG, ZIP, ZIPS};

const NULL: &str = "NULL";

/// The rows of `SELECT *` for a purpose, and their persons.
pub(crate) struct Released<'a> {
    people: &'a People,
    purpose: &'a str,
    rows: Vec<(usize, &'a [String])>,
}

impl<'a> Released<'a> {
    pub(crate) fn new(people: &'a People, purpose: &'a str, shown: &'a [Vec<String>]) -> Self {
        Released {
            people,
            purpose,
            rows: shown.iter().map(|row| (row[TAG].parse().unwrap(), row.as_slice())).collect(),
        }
    }

    /// The first problem of an answer.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        let untrue = |what: String| Fault { kind: FaultKind::Untrue, what };
        let under = |what: String| Fault { kind: FaultKind::UnderRequirement, what };
        self.everybody_who_allows_something_is_there().map_err(untrue)?;
        for &(tag, row) in &self.rows {
            let says = |fault: &str| format!("row {tag} {row:?}: {fault}");
            self.labels_cover(tag, row).map_err(|fault| untrue(says(&fault)))?;
            self.is_hidden(tag, row).map_err(|fault| under(says(&fault)))?;
        }
        self.values_are_spread().map_err(under)
    }

    /// The rows of each class. A class is told by the labels of its quasi columns.
    pub(crate) fn classes(&self) -> BTreeMap<(&str, &str), Vec<usize>> {
        let mut classes: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
        for (place, (tag, row)) in self.rows.iter().enumerate() {
            if self.k(self.people.tagged(*tag).0) >= Some(2) {
                classes.entry((&row[AGE], &row[ZIP])).or_default().push(place);
            }
        }
        classes
    }

    /// Checks the illnesses of every class, both as they are and raised as their persons ask: there must be as many as the view
    /// asks for, and their shares must be as close to those of all classes. If a class shows any illness, readers must see as
    /// many, too. Where refusals hide single cells, labels do not tell classes apart, so nothing is checked.
    fn values_are_spread(&self) -> Result<(), String> {
        if self.people.disclosure == Disclosure::Row {
            return Ok(());
        }
        let classes = self.classes();
        let own = |row: usize| self.people.tagged(self.rows[row].0).1.illness;
        let all: Vec<&Vec<usize>> = classes.values().collect();
        self.is_spread(&all, |row| own(row).map(str::to_owned))?;
        self.is_spread(&all, |row| self.raised(row, own(row)?))?;
        let told = classes.values().filter(|rows| !rows.iter().all(|&row| self.is_silent(row)));
        for rows in told {
            let seen: BTreeSet<&str> = rows.iter().map(|&row| self.rows[row].1[ILLNESS].as_str()).collect();
            if self.people.l.is_some_and(|l| seen.len() < l) {
                return Err(format!("a class shows {} illnesses", seen.len()));
            }
        }
        Ok(())
    }

    /// The illness of a row, raised as its person asks.
    fn raised(&self, row: usize, illness: &str) -> Option<String> {
        let (person, _) = self.people.tagged(self.rows[row].0);
        let level = self.people.persons[person].choice(self.purpose).map_or(0, |choice| choice.level);
        let (leaf, [node, root]) = ILLNESSES.iter().find(|(leaf, _)| *leaf == illness)?;
        Some([leaf, node, root][level.min(2)].to_string())
    }

    fn is_silent(&self, row: usize) -> bool {
        let (tag, cells) = self.rows[row];
        let own = self.people.tagged(tag).1.illness;
        cells[ILLNESS] == ILLNESSES[0].1[1] || cells[ILLNESS] == NULL && own.is_some()
    }

    fn is_spread(&self, classes: &[&Vec<usize>], value: impl Fn(usize) -> Option<String>) -> Result<(), String> {
        // A person with the same value in two rows counts once.
        let held = |rows: &[usize]| -> BTreeMap<Option<String>, f64> {
            let pairs: BTreeSet<_> =
                rows.iter().map(|&row| (self.people.tagged(self.rows[row].0).0, value(row))).collect();
            let n_pairs = pairs.len() as f64;
            let mut shares = BTreeMap::new();
            pairs.into_iter().for_each(|(_, value)| *shares.entry(value).or_insert(0.0) += 1.0 / n_pairs);
            shares
        };
        let all = held(&classes.iter().flat_map(|rows| rows.iter().copied()).collect::<Vec<_>>());
        for rows in classes {
            let here = held(rows);
            if self.people.l.is_some_and(|l| here.len() < l) {
                return Err(format!("a class has {} illnesses", here.len()));
            }
            let distance: f64 =
                all.iter().map(|(value, p)| (here.get(value).unwrap_or(&0.0) - p).abs()).sum::<f64>() / 2.0;
            if self.people.t().is_some_and(|t| distance > t + 1e-9) {
                return Err(format!("a class is {distance} from everybody"));
            }
        }
        Ok(())
    }

    fn k(&self, person: usize) -> Option<usize> {
        self.people.k(person, self.purpose)
    }

    fn everybody_who_allows_something_is_there(&self) -> Result<(), String> {
        let shown: BTreeSet<usize> = self.rows.iter().map(|(tag, _)| *tag).collect();
        if shown.len() != self.rows.len() {
            return Err("a row is there twice".to_owned());
        }
        let mut tag = 0;
        for (person, of) in self.people.persons.iter().enumerate() {
            let k = self.k(person);
            let may_be_left = self.people.leftovers == Leftovers::Suppress && k >= Some(2);
            for _ in &of.rows {
                let is_shown = shown.contains(&tag);
                let is_right = if is_shown { k.is_some() } else { k.is_none() || may_be_left };
                if !is_right {
                    return Err(format!("row {tag} is there: {is_shown}"));
                }
                tag += 1;
            }
        }
        Ok(())
    }

    fn labels_cover(&self, tag: usize, row: &[String]) -> Result<(), String> {
        let (person, own) = self.people.tagged(tag);
        let choice = self.people.persons[person].choice(self.purpose).ok_or("who allows nothing is not there")?;
        let k = self.k(person).ok_or("who allows nothing is not there")?;
        if (row[0] == NULL) != (k > 0) {
            return Err(format!("the name of somebody with k = {k}"));
        }
        let by_row = self.people.disclosure == Disclosure::Row;
        let age = own.age.map(|age| age.to_string());
        let cells = [
            (AGE, age.as_deref(), covers_age(&row[AGE], own.age)),
            (ZIP, own.zip, covers(&ZIPS, &row[ZIP], own.zip, 0)),
            (ILLNESS, own.illness, covers(&ILLNESSES, &row[ILLNESS], own.illness, choice.level)),
        ];
        for (place, (position, value, is_covered)) in cells.into_iter().enumerate() {
            let (label, is_shown) = (row[position].as_str(), choice.shows[place]);
            let is_refused_well = if by_row { label == NULL } else { label == "*" || label == "any" };
            if !is_shown && !is_refused_well {
                return Err(format!("a refused cell shows {label}"));
            }
            // A NULL is either hidden among values, or shown as NULL.
            let is_masked = by_row && !is_shown;
            let hides_value = label == NULL && value.is_some() && !is_masked;
            if hides_value || !(is_covered || label == NULL) {
                return Err(format!("{label} does not cover its value"));
            }
            if position != ILLNESS && k < 2 && is_shown && label != value.unwrap_or(NULL) {
                return Err(format!("{label} of somebody who is not hidden"));
            }
        }
        Ok(())
    }

    /// Whether this row could be of as many persons as its own person asks for, and whether they have as many illnesses as the
    /// view asks for. NULL counts as any label.
    fn is_hidden(&self, tag: usize, row: &[String]) -> Result<(), String> {
        let (person, _) = self.people.tagged(tag);
        let k = self.k(person).unwrap_or(0);
        if k < 2 {
            return Ok(());
        }
        let same = |a: &str, b: &str| a == b || (self.people.disclosure == Disclosure::Row && (a == NULL || b == NULL));
        let mut k_of_class: BTreeMap<usize, usize> = BTreeMap::new();
        let mut illnesses = BTreeSet::new();
        for &(other_tag, other) in &self.rows {
            let (other_person, own) = self.people.tagged(other_tag);
            let other_k = self.k(other_person).unwrap_or(0);
            if other_k >= 2 && same(&row[AGE], &other[AGE]) && same(&row[ZIP], &other[ZIP]) {
                k_of_class.insert(other_person, other_k);
                illnesses.insert(own.illness);
            }
        }
        if self.people.l.is_some_and(|l| illnesses.len() < l) {
            return Err(format!("one of {} illnesses", illnesses.len()));
        }
        match k_of_class.len() >= k {
            true => Ok(()),
            false => Err(format!("one of {} persons, and asks for {k}", k_of_class.len())),
        }
    }
}

/// Whether a label of an age could be a range over it.
fn covers_age(label: &str, age: Option<i64>) -> bool {
    match (label, age) {
        ("*", _) => true,
        (NULL, age) => age.is_none(),
        (_, None) => false,
        (label, Some(age)) => bounds(label).is_some_and(|(low, high)| (low..=high).contains(&age)),
    }
}

fn bounds(label: &str) -> Option<(i64, i64)> {
    if let Ok(age) = label.parse() {
        return Some((age, age));
    }
    let (low, high) = label.strip_prefix('[')?.strip_suffix(']')?.split_once(',')?;
    Some((low.parse().ok()?, high.parse().ok()?))
}

/// Whether a label is above a value, at this level or further up.
fn covers(dgh: &[(&str, [&str; 2])], label: &str, value: Option<&str>, level: usize) -> bool {
    let Some(value) = value else { return label == NULL || label == dgh[0].1[1] };
    let Some((leaf, [node, root])) = dgh.iter().find(|(leaf, _)| *leaf == value) else { return false };
    [leaf, node, root][level.min(2)..].iter().any(|above| **above == label)
}

fn leaves(dgh: &[(&'static str, [&str; 2])], label: &str) -> Vec<&'static str> {
    let is_below =
        |(leaf, [node, root]): &&(&'static str, [&str; 2])| [leaf, node, root].iter().any(|above| **above == label);
    dgh.iter().filter(is_below).map(|(leaf, _)| *leaf).collect()
}

fn compare<T: PartialOrd>(comparison: &str, left: &T, right: &T) -> bool {
    match comparison {
        "=" => left == right,
        "<>" => left != right,
        "<" => left < right,
        "<=" => left <= right,
        ">" => left > right,
        ">=" => left >= right,
        other => panic!("{other}"),
    }
}

impl Condition {
    /// Whether a row could satisfy the condition, each comparison by itself.
    pub(crate) fn could_be(&self, row: &[String]) -> bool {
        self.could(row, true)
    }

    /// Whether the row could make the condition true, and whether it could make it false.
    fn could(&self, row: &[String], truth: bool) -> bool {
        // All ages in the table, and some below and above them.
        let ages = || -> Vec<i64> {
            let (low, high) = match row[AGE].as_str() {
                NULL => return Vec::new(),
                "*" => (-2, 60),
                label => bounds(label).unwrap(),
            };
            (low..=high).collect()
        };
        let zips = || leaves(&ZIPS, &row[ZIP]);
        match self {
            Condition::Age(comparison, age) => ages().iter().any(|own| compare(comparison, own, age) == truth),
            Condition::AgeBetween(low, high) => ages().iter().any(|own| (low..=high).contains(&own) == truth),
            Condition::Zip(comparison, zip) => zips().iter().any(|own| compare(comparison, own, zip) == truth),
            Condition::ZipIn(list) => zips().iter().any(|own| list.contains(own) == truth),
            Condition::ZipStarts(start) => zips().iter().any(|own| own.starts_with(start) == truth),
            Condition::Illness(comparison, illness) => {
                leaves(&ILLNESSES, &row[ILLNESS]).iter().any(|own| compare(comparison, own, illness) == truth)
            }
            Condition::And(a, b) if truth => a.could(row, true) && b.could(row, true),
            Condition::And(a, b) => a.could(row, false) || b.could(row, false),
            Condition::Or(a, b) if truth => a.could(row, true) || b.could(row, true),
            Condition::Or(a, b) => a.could(row, false) && b.could(row, false),
            Condition::Not(a) => a.could(row, !truth),
        }
    }
}
