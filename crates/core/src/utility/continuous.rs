//! Range counts over continuous values: what a reader of a release estimates who knows the ranges in its cells and
//! nothing of the values in between.
//!
//! A cell's range has no width but the distance of its ends, and a query's open end matters only where a cell is a
//! single value.
//!
//! # Paper
//! `[SMP10]` section 3.3, figure 7

use std::ops::{Bound, RangeBounds};

/// The values a query asks for in one column, with open or closed ends or none.
pub type ValueRange = (Bound<f64>, Bound<f64>);

/// A class as its cells show it.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueBox {
    /// The smallest and largest value per column.
    pub ranges: Vec<(f64, f64)>,
    /// How many rows it stands for; not whole where they are themselves estimated.
    pub n_rows: f64,
}

/// How many rows match, rows being spread evenly in their boxes; one range per column.
pub fn estimate_count(boxes: &[ValueBox], query: &[ValueRange]) -> f64 {
    let matching = |shown: &ValueBox| {
        let shares = shown.ranges.iter().zip(query).map(|(&cell, range)| covered_share(cell, range));
        shown.n_rows * shares.product::<f64>()
    };
    boxes.iter().map(matching).sum()
}

/// The share of the values from `lo` to `hi` that lie in a range, 0 to 1.
pub fn covered_share((lo, hi): (f64, f64), range: &ValueRange) -> f64 {
    if lo == hi {
        return f64::from(u8::from(range.contains(&lo)));
    }
    let end = |bound: Bound<f64>, otherwise: f64| match bound {
        Bound::Included(value) | Bound::Excluded(value) => value,
        Bound::Unbounded => otherwise,
    };
    let (first, last) = (end(range.0, lo).max(lo), end(range.1, hi).min(hi));
    ((last - first) / (hi - lo)).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Bound::{Excluded, Included, Unbounded};

    const MICRODATA: &str = include_str!("../../../testkit/golden/register/microdata.csv");
    const PUBLIC: &str = include_str!("../../../testkit/golden/register/public.csv");

    /// `[0,4] x (2,4]`.
    const QUERY: [ValueRange; 2] = [(Included(0.0), Included(4.0)), (Excluded(2.0), Included(4.0))];

    struct Person {
        id: &'static str,
        place: [f64; 2],
        sensitive: Option<&'static str>,
    }

    fn persons(csv: &'static str) -> Vec<Person> {
        let person = |line: &'static str| {
            let cells: Vec<&str> = line.split(',').collect();
            Person {
                id: cells[0],
                place: [cells[1].parse().unwrap(), cells[2].parse().unwrap()],
                sensitive: cells.get(3).copied(),
            }
        };
        csv.lines().skip(1).map(person).collect()
    }

    fn shown(everyone: &[Person], ids: &[&str], n_rows: f64) -> ValueBox {
        let members = || everyone.iter().filter(|person| ids.contains(&person.id));
        let range = |column: usize| {
            let values = || members().map(|person| person.place[column]);
            (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max))
        };
        ValueBox { ranges: vec![range(0), range(1)], n_rows }
    }

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-12, "{found} is not {expected}");
    }

    /// Rows of the microdata among `ids` with a sensitive value, or all of them.
    fn n_with(microdata: &[Person], ids: &[&str], value: Option<&str>) -> f64 {
        let members = microdata.iter().filter(|person| ids.contains(&person.id));
        members.filter(|person| value.is_none() || person.sensitive == value).count() as f64
    }

    const PLAIN: [&[&str]; 2] = [&["A", "B", "C", "D"], &["E", "F", "G"]];

    #[test]
    fn the_plain_release_of_the_register_example_estimates_three_and_two_thirds() {
        let microdata = persons(MICRODATA);
        let matching = microdata
            .iter()
            .filter(|person| QUERY.iter().zip(person.place).all(|(range, value)| range.contains(&value)));
        assert_eq!(matching.count(), 2);
        let estimate = |value: Option<&str>| {
            let boxes = PLAIN.map(|ids| shown(&microdata, ids, n_with(&microdata, ids, value)));
            estimate_count(&boxes, &QUERY)
        };
        close(estimate(None), 2.0 / 3.0 * 4.0 + 1.0 / 3.0 * 3.0);
        close(estimate(Some("v1")), 5.0 / 3.0);
        close(estimate(Some("v2")), 5.0 / 3.0);
        close(estimate(Some("v3")), 1.0 / 3.0);
    }

    #[test]
    fn the_join_anonymous_release_of_the_register_example_estimates_two() {
        let microdata = persons(MICRODATA);
        let mut everyone = persons(MICRODATA);
        everyone.extend(persons(PUBLIC));
        // Each class with the plain group whose sensitive values its rows share.
        let classes: [(&[&str], usize); 4] =
            [(&["A", "B", "U"], 0), (&["C", "D", "V"], 0), (&["E", "F", "Y"], 1), (&["G", "G1", "G2"], 1)];
        let estimate = |value: Option<&str>| {
            let boxes = classes.map(|(ids, group)| {
                let n_of_group: usize =
                    classes.iter().filter(|class| class.1 == group).map(|class| class.0.len()).sum();
                let share = ids.len() as f64 / n_of_group as f64;
                shown(&everyone, ids, share * n_with(&microdata, PLAIN[group], value))
            });
            estimate_count(&boxes, &QUERY)
        };
        close(estimate(None), 2.0);
        close(estimate(Some("v1")), 1.0);
        close(estimate(Some("v2")), 1.0);
        close(estimate(Some("v3")), 0.0);
    }

    #[test]
    fn an_open_end_leaves_out_a_single_value_and_nothing_else() {
        close(covered_share((2.0, 2.0), &(Excluded(2.0), Unbounded)), 0.0);
        close(covered_share((2.0, 2.0), &(Included(2.0), Unbounded)), 1.0);
        close(covered_share((2.0, 4.0), &(Excluded(2.0), Unbounded)), 1.0);
        close(covered_share((2.0, 4.0), &(Unbounded, Excluded(3.0))), 0.5);
        close(covered_share((2.0, 4.0), &(Included(5.0), Included(7.0))), 0.0);
        close(covered_share((2.0, 4.0), &(Included(3.0), Included(1.0))), 0.0);
    }
}
