//! [`verify_against`]: whether released rows can have come from a private table, when nothing links the two.
//!
//! # Guarantee
//! There is a way to give every released row a private row of its own whose quasi cells it covers and whose sensitive
//! and plain cells it equals; the private rows left over are as many as the release admits. Every requirement holds.
//! Where each person has one row, that way also puts everyone into a class of at least the person's own k.
//!
//! Keys are not compared, for they may be renumbered. Where persons have several rows nothing tells which released
//! rows are theirs: rows are counted then, and the findings say so.
//!
//! # Cost
//! Rows fold to groups with equal cells, groups with equal copied cells are assigned by themselves. Boxes that do not
//! overlap are assigned by the greedy pass.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use kohort_model::{Column, NULL, Requirement, Role, Table, Texts};
use rayon::prelude::*;

use crate::asked::Views;
use crate::assignment::Network;
use crate::candidates::PointTree;
use crate::cells::CellIds;
use crate::coverage::{Coverage, Runs};
use crate::grouping::Classes;
use crate::recoding::KeyColumns;
use crate::roll::{OwnK, Roll, Sensitive, Shares, own_ks, persons_of};
use crate::structure::check_table;
use crate::{Asked, Counted, Findings, Skipped, Suppressed, Violation, Violations};

/// How many candidates of origins are kept in memory at once, for rows with the same copied cells.
const MAX_CANDIDATES: u64 = 1 << 29;

/// Verifies a released table against the private table it is said to come from, with as many rows and persons
/// suppressed as it admits.
///
/// # Errors
/// Everything that is wrong with it.
pub fn verify_against<'a>(
    released: &Table,
    original: &Table,
    asked: impl Into<Asked<'a>>,
    suppressed: Suppressed,
) -> Result<Findings, Violations> {
    let mut violations = check_table(released);
    violations.extend(check_table(original));
    if released.n_rows == 0 {
        violations.push(Violation::NoRows { table: released.name.clone() });
    }
    let keys = KeyColumns { never: original.person, ..KeyColumns::default() };
    let pairs = Pairs::new(released, original, &keys, &mut violations);
    if !violations.is_empty() {
        return Err(Violations(violations));
    }
    let persons = persons_of(original, None)?;
    let several_rows = persons.as_ref().is_some_and(|persons| has_repeats(persons, original.n_rows));
    let mut skipped = if several_rows { vec![Skipped::Persons] } else { Vec::new() };
    let names: Vec<&str> = pairs.quasi.iter().map(|(public, _)| public.name.as_str()).collect();
    let mut views = Views::new(asked.into(), &names, &mut violations);
    let requirements = views.requirements();
    let own_k = if several_rows {
        skipped.extend(requirements.iter().filter_map(Skipped::own_k));
        Vec::new()
    } else {
        own_ks(original, None, None, &requirements, &mut violations)
    };
    let quasi: Vec<CellIds<'_>> =
        pairs.quasi.iter().map(|(public, _)| CellIds::by_id(public.ids.as_slice(), public.texts.len())).collect();
    let sizes_for_own_k = views.sizes_for_own_k(&quasi, released.n_rows);
    views.leave_out(|requirement| matches!(requirement, Requirement::PersonK { .. }));
    let sensitive = Sensitive::measured(&pairs.copied, None, &views.requirements(), &mut violations);
    if !violations.is_empty() {
        return Err(Violations(violations));
    }
    let roll =
        Roll { n_rows: released.n_rows, quasi, persons: None, shares: Shares::Pairs, sensitive, own_k: Vec::new() };
    let mut findings = views.count(&roll)?;
    violations.append(&mut findings.unmet);
    let left_over = original.n_rows.saturating_sub(released.n_rows) as u64;
    let admitted = [("rows", suppressed.rows), ("persons", suppressed.persons)];
    violations.extend(miscounted(left_over, if several_rows { &admitted[..1] } else { &admitted }));
    violations.extend(without_origin(&pairs, released.n_rows, original.n_rows, &roll.quasi, &own_k, &sizes_for_own_k));
    if !violations.is_empty() {
        return Err(Violations(violations));
    }
    if !several_rows {
        findings.counted = Counted::Persons;
    }
    findings.skipped = skipped;
    findings.suppressed = Some(suppressed);
    Ok(findings)
}

/// Columns of the released and of the private table that belong together.
pub(crate) struct Pairs<'a> {
    /// Generalized ones.
    pub(crate) quasi: Vec<(&'a Column, &'a Column)>,
    /// Unchanged ones.
    pub(crate) copied: Vec<(&'a Column, &'a Column)>,
}

impl<'a> Pairs<'a> {
    /// By their names. What is missing, too much or out of order is added to the violations.
    pub(crate) fn new(
        released: &'a Table,
        original: &'a Table,
        keys: &KeyColumns,
        violations: &mut Vec<Violation>,
    ) -> Self {
        let mut pairs = Pairs { quasi: Vec::new(), copied: Vec::new() };
        let mut next_source = 0;
        let mut found = vec![false; original.columns.len()];
        for public in &released.columns {
            let name = || public.name.clone();
            let Some(source) = original.position(&public.name) else {
                violations.push(Violation::ColumnWithoutSource { column: name() });
                continue;
            };
            if source < next_source {
                violations.push(Violation::ColumnOrder { column: name() });
            }
            next_source = next_source.max(source + 1);
            found[source] = true;
            if keys.never == Some(source) {
                violations.push(Violation::PersonReleased { column: name() });
            }
            let private = &original.columns[source];
            match private.role {
                Role::Quasi => pairs.quasi.push((public, private)),
                Role::Sensitive | Role::Plain => pairs.copied.push((public, private)),
                Role::Key => {}
                Role::Identifier | Role::PersonK | Role::Drop => {
                    violations.push(Violation::ColumnForbidden { column: name(), role: private.role });
                }
            }
        }
        for (position, (private, found)) in original.columns.iter().zip(found).enumerate() {
            let must = matches!(private.role, Role::Quasi | Role::Sensitive | Role::Plain) || keys.joins(position);
            if must && !found {
                violations.push(Violation::ColumnMissing { column: private.name.clone(), role: private.role });
            }
        }
        pairs
    }
}

/// Whether some number stands in two rows.
fn has_repeats(persons: &CellIds<'_>, n_rows: usize) -> bool {
    let mut met = vec![false; persons.n_numbers()];
    (0..n_rows).any(|row| std::mem::replace(&mut met[persons.get(row) as usize], true))
}

/// Rows or persons left over that are not as many as admitted.
fn miscounted(counted: u64, admitted: &[(&'static str, u64)]) -> Vec<Violation> {
    let wrong = admitted.iter().filter(|&&(_, admitted)| admitted != counted);
    wrong.map(|&(what, admitted)| Violation::SuppressedMiscounted { what, admitted, counted }).collect()
}

/// Released rows that get no origin, however origins are handed out, so that nobody's own k is above the size of the
/// row's class.
fn without_origin(
    pairs: &Pairs<'_>,
    n_released: usize,
    n_original: usize,
    quasi: &[CellIds<'_>],
    own_k: &[OwnK],
    sizes_for_own_k: &[u32],
) -> Option<Violation> {
    let runs: Vec<Runs> =
        pairs.quasi.par_iter().map(|(public, private)| Runs::new(&Coverage::new(private, &public.texts))).collect();
    let groups = Groups::new(pairs, n_released, n_original, quasi, own_k);
    let n_columns = runs.len() + own_k.len();
    let lacking = |bucket: &Bucket| -> Result<(u64, u64), Violation> {
        let mut coordinates = Vec::with_capacity((bucket.points.1 - bucket.points.0) * n_columns);
        for point in bucket.points.0..bucket.points.1 {
            let row = groups.points.rows(point)[0] as usize;
            let values = runs.iter().zip(&pairs.quasi);
            coordinates.extend(values.map(|(runs, (_, private))| runs.position(private.ids[row])));
            coordinates.extend(own_k.iter().map(|own_k| narrow(own_k.get(row, None))));
        }
        let n_points = bucket.points.1 - bucket.points.0;
        let tree = PointTree::new(n_columns, coordinates, n_points);
        let n_candidates = AtomicU64::new(0);
        let candidates: Option<Vec<Vec<u32>>> = (bucket.boxes.0..bucket.boxes.1)
            .into_par_iter()
            .map(|released| {
                let row = groups.boxes.rows(released)[0] as usize;
                let labels = runs.iter().zip(&pairs.quasi);
                let mut sides: Vec<(u32, u32)> = labels.map(|(runs, (public, _))| runs.run(public.ids[row])).collect();
                sides.extend(own_k.iter().map(|_| (0, sizes_for_own_k[row].saturating_add(1))));
                let points = tree.within(&sides);
                let n = points.len() as u64;
                (n_candidates.fetch_add(n, Ordering::Relaxed) + n <= MAX_CANDIDATES).then_some(points)
            })
            .collect();
        let candidates = candidates.ok_or(Violation::TooManyOrigins { limit: MAX_CANDIDATES })?;
        let mut starts = vec![0];
        starts.extend(candidates.iter().scan(0, |end, points| {
            *end += points.len();
            Some(*end)
        }));
        let sizes = |classes: &Classes, (from, to): (usize, usize)| -> Vec<u32> {
            (from..to).map(|group| classes.rows(group).len() as u32).collect()
        };
        let network = Network {
            starts,
            points: candidates.concat(),
            needs: sizes(&groups.boxes, bucket.boxes),
            supplies: sizes(&groups.points, bucket.points),
        };
        drop(candidates);
        let (mut n, mut first_row) = (0, u64::MAX);
        for (released, lacking) in (bucket.boxes.0..).zip(network.assign()) {
            if lacking > 0 {
                n += u64::from(lacking);
                first_row = first_row.min(u64::from(groups.boxes.rows(released)[0]) + 1);
            }
        }
        Ok((n, first_row))
    };
    let total =
        groups.buckets.par_iter().map(lacking).try_reduce(|| (0, u64::MAX), |a, b| Ok((a.0 + b.0, a.1.min(b.1))));
    match total {
        Err(violation) => Some(violation),
        Ok((0, _)) => None,
        Ok((n, first_row)) => Some(Violation::WithoutOrigin { n, first_row }),
    }
}

/// Groups of rows with equal cells, those with equal copied cells side by side.
struct Groups {
    /// Released rows by copied and quasi cells.
    boxes: Classes,
    /// Private rows by copied and quasi cells and own k.
    points: Classes,
    /// Runs of boxes and points with equal copied cells.
    buckets: Vec<Bucket>,
}

/// Boxes and points with equal copied cells, each from the first to before the second.
struct Bucket {
    boxes: (usize, usize),
    points: (usize, usize),
}

impl Groups {
    fn new(pairs: &Pairs<'_>, n_released: usize, n_original: usize, quasi: &[CellIds<'_>], own_k: &[OwnK]) -> Self {
        let copied: Vec<CellIds<'_>> =
            pairs.copied.par_iter().map(|(public, private)| joined(public, private)).collect();
        let both = Classes::group(&copied.iter().collect::<Vec<_>>(), n_released + n_original);
        let (bucket_of_rows, n_buckets) = (both.class_of_rows(), both.len());
        drop((both, copied));
        let (of_released, of_original) = bucket_of_rows.split_at(n_released);

        let bucket = CellIds::by_id(of_released, n_buckets);
        let boxes = Classes::group(&std::iter::once(&bucket).chain(quasi).collect::<Vec<_>>(), n_released);

        let bucket = CellIds::by_id(of_original, n_buckets);
        let mut columns = vec![bucket];
        columns
            .extend(pairs.quasi.iter().map(|(_, private)| CellIds::by_id(private.ids.as_slice(), private.texts.len())));
        for own_k in own_k {
            let wishes: Vec<u32> = (0..n_original).map(|row| narrow(own_k.get(row, None))).collect();
            columns.push(CellIds::by_id(wishes, u32::MAX as usize));
        }
        let points = Classes::group(&columns.iter().collect::<Vec<_>>(), n_original);

        // Groups come in the order of their bucket, the first thing they are grouped by.
        let bucket_of = |classes: &Classes, buckets: &[u32], group: usize| buckets[classes.rows(group)[0] as usize];
        let mut buckets = Vec::new();
        let (mut next_box, mut next_point) = (0, 0);
        while next_box < boxes.len() {
            let bucket = bucket_of(&boxes, of_released, next_box);
            let first_box = next_box;
            while next_box < boxes.len() && bucket_of(&boxes, of_released, next_box) == bucket {
                next_box += 1;
            }
            while next_point < points.len() && bucket_of(&points, of_original, next_point) < bucket {
                next_point += 1;
            }
            let first_point = next_point;
            while next_point < points.len() && bucket_of(&points, of_original, next_point) == bucket {
                next_point += 1;
            }
            buckets.push(Bucket { boxes: (first_box, next_box), points: (first_point, next_point) });
        }
        Groups { boxes, points, buckets }
    }
}

/// An own k as a coordinate; no class is as large as the largest.
pub(crate) fn narrow(own_k: u64) -> u32 {
    own_k.min(u64::from(u32::MAX - 1)) as u32
}

/// The released cells followed by the private ones, told apart by text.
pub(crate) fn joined<'a>(public: &'a Column, private: &'a Column) -> CellIds<'a> {
    let known: HashMap<&str, u32> = (0..).zip(public.texts.iter()).map(|(id, text)| (text, id)).collect();
    let mut n_texts = public.texts.len() as u32;
    let mut number = |texts: &Texts, id: u32| {
        known.get(texts.get(id)).copied().unwrap_or_else(|| {
            n_texts += 1;
            n_texts - 1
        })
    };
    let numbers: Vec<u32> = (0..private.texts.len() as u32).map(|id| number(&private.texts, id)).collect();
    let mut ids = Vec::with_capacity(public.ids.len() + private.ids.len());
    // A text that stands twice in the released dictionary counts as the one that is known.
    ids.extend(public.ids.iter().map(|&id| if id == NULL { NULL } else { known[public.texts.get(id)] }));
    ids.extend(private.ids.iter().map(|&id| if id == NULL { NULL } else { numbers[id as usize] }));
    CellIds::by_id(ids, n_texts as usize)
}

#[cfg(test)]
mod tests {
    use kohort_model::ValueType;
    use proptest::prelude::*;

    use super::*;
    use crate::cases::{ID, NAME, WISH, clinic, clinic_release, clinic_requirements, written};

    const ADMITTED: Suppressed = Suppressed { rows: 1, persons: 1 };

    /// The clinic's release as a file, and the clinic with each row a person.
    fn released() -> (Table, Table) {
        let mut original = clinic();
        original.person = None;
        (written(&clinic_release(), &clinic()), original)
    }

    fn spoiled(spoil: impl FnOnce(&mut Table)) -> Vec<Violation> {
        let (mut table, original) = released();
        spoil(&mut table);
        verify_against(&table, &original, &clinic_requirements(), ADMITTED).unwrap_err().0
    }

    fn cell(table: &mut Table, column: usize, row: usize, text: &str) {
        let known = table.columns[column].texts.iter().position(|known| known == text);
        let id = known.map_or_else(|| table.columns[column].texts.push(text), |id| id as u32);
        table.columns[column].ids[row] = id;
    }

    #[test]
    fn a_true_release_has_an_origin_for_each_row() {
        let (table, original) = released();
        let findings = verify_against(&table, &original, &clinic_requirements(), ADMITTED).unwrap();
        assert_eq!((findings.k, findings.counted), (3, Counted::Persons));
        assert_eq!(findings.suppressed, Some(ADMITTED));
        assert!(findings.skipped.is_empty());
    }

    #[test]
    fn persons_of_several_rows_are_not_recounted_and_that_is_said() {
        let (table, _) = released();
        let findings = verify_against(&table, &clinic(), &clinic_requirements(), ADMITTED).unwrap();
        assert_eq!(findings.counted, Counted::Rows);
        assert_eq!(findings.skipped, [Skipped::Persons, Skipped::PersonK { column: "wish".to_owned() }]);
    }

    #[test]
    fn a_narrowed_repeated_or_changed_row_has_no_origin() {
        let narrowed = spoiled(|table| (0..3).for_each(|row| cell(table, 0, row, "[24,29]")));
        assert_eq!(narrowed, [Violation::WithoutOrigin { n: 1, first_row: 2 }]);
        let changed = spoiled(|table| cell(table, 2, 3, "cold"));
        assert_eq!(changed.len(), 1);
        assert!(matches!(changed[0], Violation::WithoutOrigin { n: 1, .. }));
        let repeated = spoiled(|table| {
            table.n_rows += 1;
            table.columns.iter_mut().for_each(|column| column.ids.push(column.ids[2]));
        });
        let miscounted = |what| Violation::SuppressedMiscounted { what, admitted: 1, counted: 0 };
        let without_origin = Violation::WithoutOrigin { n: 1, first_row: 3 };
        assert_eq!(repeated, [miscounted("rows"), miscounted("persons"), without_origin]);
    }

    #[test]
    fn a_class_too_small_for_someone_s_own_k_has_no_origin_for_one() {
        let (table, mut original) = released();
        original.columns[WISH].ids[3] = original.columns[WISH].texts.push("4");
        let violations = verify_against(&table, &original, &clinic_requirements(), ADMITTED).unwrap_err().0;
        assert!(matches!(violations[..], [Violation::WithoutOrigin { n: 1, .. }]), "{violations:?}");
    }

    #[test]
    fn columns_are_those_of_the_original() {
        let renamed = spoiled(|table| table.columns[3].name = "station".to_owned());
        let missing = Violation::ColumnMissing { column: "ward".to_owned(), role: Role::Plain };
        assert_eq!(renamed, [Violation::ColumnWithoutSource { column: "station".to_owned() }, missing]);
        let swapped = spoiled(|table| table.columns.swap(0, 1));
        assert_eq!(swapped, [Violation::ColumnOrder { column: "age".to_owned() }]);
        let (mut table, original) = released();
        table.columns.insert(0, Column { ids: vec![0; 6], ..original.columns[NAME].clone() });
        table.columns.insert(0, Column { ids: vec![0; 6], ..original.columns[ID].clone() });
        let original = Table { person: Some(ID), ..original };
        let violations = verify_against(&table, &original, &[], ADMITTED).unwrap_err().0;
        let forbidden = Violation::ColumnForbidden { column: "name".to_owned(), role: Role::Identifier };
        assert_eq!(violations, [Violation::PersonReleased { column: "id".to_owned() }, forbidden]);
    }

    #[test]
    fn an_empty_release_satisfies_nothing() {
        let empty = spoiled(|table| {
            table.n_rows = 0;
            table.columns.iter_mut().for_each(|column| column.ids.clear());
        });
        assert_eq!(empty, [Violation::NoRows { table: "clinic".to_owned() }]);
    }

    #[test]
    fn every_requirement_is_recounted() {
        let (table, original) = released();
        let violations = verify_against(&table, &original, &[Requirement::K(4)], ADMITTED).unwrap_err().0;
        assert!(matches!(violations[..], [Violation::Unmet { n_classes: 2, .. }]));
        let not_copied = [Requirement::Alpha { column: "age".to_owned(), alpha: 1.0 }];
        let violations = verify_against(&table, &original, &not_copied, ADMITTED).unwrap_err().0;
        assert_eq!(violations, [Violation::UnknownColumn { column: "age".to_owned() }]);
    }

    /// How many boxes can't be given points of their own, by trying everything.
    fn lacking(boxes: &[(u8, u8, u8)], points: &[(u8, u8)], used: u32) -> usize {
        let Some(((low, high, copied), rest)) = boxes.split_first().map(|(first, rest)| (*first, rest)) else {
            return 0;
        };
        let mut best = 1 + lacking(rest, points, used);
        for (point, &(value, other)) in points.iter().enumerate() {
            if used & (1 << point) == 0 && low <= value && value <= high && copied == other {
                best = best.min(lacking(rest, points, used | (1 << point)));
            }
        }
        best
    }

    proptest! {
        #[test]
        fn as_many_rows_lack_an_origin_as_by_trying_every_assignment(
            points in proptest::collection::vec((0u8..6, 0u8..2), 1..8),
            boxes in proptest::collection::vec((0u8..6, 0u8..4, 0u8..2), 1..6),
        ) {
            let boxes: Vec<(u8, u8, u8)> = boxes.into_iter().map(|(low, width, copied)| (low, low + width, copied)).collect();
            let column = |name: &str, role, cells: Vec<String>| {
                Column::from_cells(name, role, cells.iter().map(|cell| Some(cell.as_str())))
            };
            let ages = column("age", Role::Quasi, points.iter().map(|(age, _)| age.to_string()).collect());
            let wards = column("ward", Role::Plain, points.iter().map(|(_, ward)| ward.to_string()).collect());
            let columns = vec![ages.typed(ValueType::Integer), wards];
            let original = Table { name: "t".to_owned(), columns, n_rows: points.len(), person: None };
            let ages = column("age", Role::Quasi, boxes.iter().map(|(low, high, _)| format!("[{low},{high}]")).collect());
            let wards = column("ward", Role::Plain, boxes.iter().map(|(_, _, ward)| ward.to_string()).collect());
            let columns = vec![ages, wards];
            let released = Table { name: "t".to_owned(), columns, n_rows: boxes.len(), person: None };
            let left = points.len().saturating_sub(boxes.len()) as u64;
            let found = verify_against(&released, &original, &[], Suppressed { rows: left, persons: left });
            let n_lacking = lacking(&boxes, &points, 0);
            match found {
                Ok(_) => prop_assert_eq!(n_lacking, 0),
                Err(Violations(violations)) => {
                    let [Violation::WithoutOrigin { n, .. }] = violations[..] else {
                        return Err(TestCaseError::fail(format!("{violations:?}")));
                    };
                    prop_assert_eq!(n as usize, n_lacking);
                }
            }
        }
    }
}
