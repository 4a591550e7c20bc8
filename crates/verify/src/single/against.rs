//! [`verify_against`]: whether released rows can have come from a private table, when nothing links the two.
//!
//! # Guarantee
//! There is a way to give every released row a private row of its own whose quasi cells it covers and whose sensitive
//! and plain cells it equals; it uses all rows of a person or none, and the persons and rows left over are as many as the
//! release admits, and no more persons than the limit allows. Counted in the persons whom that way gives to each class,
//! every requirement holds, own k included.
//!
//! A release shows the same whichever of several such ways it was made in, so one is enough. Where persons have several
//! rows, looking for one can fail without showing that there is none; then the result is undecided, not a failure.
//! Keys are not compared, for they may be renumbered.
//!
//! # Cost
//! Rows fold to groups with equal cells, groups with equal copied cells are assigned by themselves. Boxes that do not
//! overlap are assigned by the greedy pass. Where persons have several rows, see `persons`.

mod exhaustive;
mod gather;
mod leaving;
mod origins;
mod persons;
mod trial;

use std::collections::HashMap;

use kohort_model::{Column, NULL, Role, Table, Texts};
use rayon::prelude::*;

use crate::asked::Views;
use crate::count::cells::CellIds;
use crate::count::grouping::Classes;
use crate::count::learned::{QuasiLabels, Source};
use crate::count::loss::{LossSums, PersonSums};
use crate::count::roll::{Roll, Sensitive, Shares, own_ks, persons_of};
use crate::single::recoding::KeyColumns;
use crate::structure::check_table;
use crate::{Asked, Counted, Findings, Skipped, Suppressed, SuppressionLimit, Violation, Violations};
use origins::{Origins, Sides};
use persons::{Answer, Puzzle, Tracing, trace};

/// How many candidates of origins are kept in memory at once, for rows with the same copied cells.
const MAX_CANDIDATES: u64 = 1 << 29;

/// Verifies a released table against the private table it is said to come from, with as many rows and persons
/// suppressed as it admits, and no more persons than the limit allows.
///
/// # Errors
/// Everything that is wrong with it.
pub fn verify_against<'a>(
    released: &Table,
    original: &Table,
    asked: impl Into<Asked<'a>>,
    suppressed: Suppressed,
    limit: SuppressionLimit,
) -> Result<Findings, Violations> {
    let mut violations = check_table(released);
    violations.extend(check_table(original));
    if released.name != original.name {
        let (table, released) = (original.name.clone(), released.name.clone());
        violations.push(Violation::TableName { table, released });
    }
    if released.n_rows == 0 {
        violations.push(Violation::NoRows { table: released.name.clone() });
    }
    let keys = KeyColumns { never: original.person, ..KeyColumns::default() };
    let pairs = Pairs::new(released, original, &keys, &mut violations);
    if !violations.is_empty() {
        return Err(Violations(violations));
    }
    let persons = persons_of(original, None)?;
    let several_rows = persons.as_ref().filter(|persons| has_repeats(persons, original.n_rows));
    let names: Vec<&str> = pairs.quasi.iter().map(|(public, _)| public.name.as_str()).collect();
    let asked = asked.into();
    let views = Views::new(asked, &names, &mut violations);
    let requirements = views.requirements();
    let own_k = own_ks(original, None, several_rows, &requirements, &mut violations);
    let quasi: Vec<CellIds<'_>> =
        pairs.quasi.iter().map(|(public, _)| CellIds::by_id(public.ids.as_slice(), public.texts.len())).collect();
    let sensitive = Sensitive::measured(&pairs.copied, None, &requirements, &mut violations);
    if !violations.is_empty() {
        return Err(Violations(violations));
    }
    let mut sizes_for_own_k = views.sizes_for_own_k(&quasi, released.n_rows);
    if let Some(persons) = several_rows {
        // No class has more persons than the release.
        let n_persons = n_distinct(persons, original.n_rows).saturating_sub(suppressed.persons);
        let most = u32::try_from(n_persons).unwrap_or(u32::MAX);
        sizes_for_own_k.iter_mut().for_each(|size| *size = (*size).min(most));
    }
    let sides = Sides {
        pairs: &pairs,
        n_released: released.n_rows,
        n_original: original.n_rows,
        quasi: &quasi,
        own_k: &own_k,
        persons: several_rows,
        sizes_for_own_k: &sizes_for_own_k,
    };
    let origins = Origins::new(&sides);
    let shares = if several_rows.is_some() { Shares::Hidden } else { Shares::Pairs };
    let roll =
        Roll { n_rows: released.n_rows, quasi: quasi.clone(), persons: None, shares, sensitive, own_k: Vec::new() };
    let labels = pairs.quasi.iter().zip(&quasi).map(|((public, private), cells)| {
        QuasiLabels::new(cells, released.n_rows, &public.texts, private, Source::Private)
    });
    let labels: Vec<QuasiLabels> = if views.coalitions.is_empty() { Vec::new() } else { labels.collect() };
    let left_over = original.n_rows.saturating_sub(released.n_rows) as u64;
    let admitted = [("rows", suppressed.rows), ("persons", suppressed.persons)];
    let admitted = if several_rows.is_some() { &admitted[..1] } else { &admitted };
    violations.extend(miscounted(left_over, admitted));
    // Where persons have several rows, exactly the admitted number of them is left out below.
    let (left_out, n_persons) = match several_rows {
        None => (left_over, original.n_rows as u64),
        Some(persons) => (suppressed.persons, n_distinct(persons, original.n_rows)),
    };
    violations.extend(limit.exceeded(left_out, n_persons));
    let mut by_rows = Views::new(asked, &names, &mut Vec::new());
    by_rows.leave_out(|requirement| requirement.own_k_column().is_some());
    let of_persons;
    let mut findings = match several_rows {
        None => {
            let mut findings = by_rows.count(&roll, &labels)?;
            violations.append(&mut findings.unmet);
            violations.extend(without_origin(&origins));
            findings.counted = Counted::Persons;
            // Somebody who is left out may be anybody, so what the others need is known only where nobody is.
            let everybody = (0..original.n_rows).map(|row| views.needed(&own_k, row)).sum();
            let needed = match own_k.is_empty() {
                true => Some(released.n_rows as u64 * views.needed(&[], 0)),
                false => (left_over == 0).then_some(everybody),
            };
            let classes = Classes::group(&quasi.iter().collect::<Vec<_>>(), released.n_rows);
            let sizes = (0..classes.len()).map(|class| classes.rows(class).len() as u64);
            of_persons = Some(PersonSums::of(sizes, left_out, n_persons, needed));
            findings
        }
        Some(persons) => {
            // What fails whichever rows share a person fails for certain, and nothing needs to be traced.
            by_rows.take_hidden(|requirement| Skipped::of_persons(requirement).is_some());
            violations.extend(by_rows.count(&roll, &labels)?.unmet);
            if !violations.is_empty() {
                violations.extend(without_origin(&origins));
                return Err(Violations(violations));
            }
            let roll = Roll { shares: Shares::Pairs, own_k: own_k.clone(), ..roll };
            let quasi = pairs.quasi.iter().map(|(_, column)| CellIds::by_id(column.ids.as_slice(), column.texts.len()));
            let puzzle = Puzzle {
                origins: &origins,
                roll: &roll,
                views: &views,
                persons,
                quasi: quasi.collect(),
                n_original: original.n_rows,
                n_left_out: suppressed.persons,
            };
            let (findings, sizes_and_needs) = count_traced(&puzzle, &labels)?;
            of_persons = sizes_and_needs.map(|classes| {
                let needed = classes.iter().map(|&(_, needed)| needed).sum();
                PersonSums::of(classes.iter().map(|&(size, _)| size), left_out, n_persons, Some(needed))
            });
            findings
        }
    };
    if !violations.is_empty() {
        return Err(Violations(violations));
    }
    findings.suppressed = Some(suppressed);
    let of_persons = of_persons.map(|sums| PersonSums::together(&[sums]));
    findings.loss = Some(LossSums::of(&pairs.quasi, released.n_rows, original.n_rows).alone(of_persons));
    Ok(findings)
}

/// How many persons a class has, and the sum of the k they need.
type SizeAndNeed = (u64, u64);

/// Counts the persons of one way to trace released rows back; and class by class, where there is no other way.
///
/// # Errors
/// What fails in every way, or what is left undecided.
fn count_traced(
    puzzle: &Puzzle<'_>,
    labels: &[QuasiLabels],
) -> Result<(Findings, Option<Vec<SizeAndNeed>>), Violations> {
    let Tracing { persons, answer } = trace(puzzle)?;
    let Roll { n_rows, shares, .. } = *puzzle.roll;
    let roll = Roll {
        n_rows,
        quasi: puzzle.roll.quasi.clone(),
        persons: Some(CellIds::by_id(persons, puzzle.persons.n_numbers())),
        shares,
        sensitive: puzzle.roll.sensitive.clone(),
        own_k: puzzle.roll.own_k.clone(),
    };
    let mut findings = puzzle.views.count(&roll, labels)?;
    let unmet = std::mem::take(&mut findings.unmet);
    let failing: Vec<Violation> = match answer {
        Answer::Only | Answer::Fails => unmet,
        Answer::AllFail => unmet.into_iter().map(Violation::in_every_way).collect(),
        Answer::Shown | Answer::Open => unmet.into_iter().map(Violation::undecided).collect(),
    };
    if !failing.is_empty() {
        return Err(Violations(failing));
    }
    if answer != Answer::Only {
        findings.skipped.push(Skipped::Figures);
        return Ok((findings, None));
    }
    let classes = Classes::group(&roll.quasi.iter().collect::<Vec<_>>(), n_rows);
    let of_class = |class: usize| {
        let persons = roll.persons.as_ref().expect("rows were traced back to persons");
        let mut members: Vec<u32> = classes.rows(class).iter().map(|&row| persons.get(row as usize)).collect();
        members.sort_unstable();
        members.dedup();
        let needs = members.iter().map(|&person| puzzle.views.needed(&roll.own_k, person as usize));
        (members.len() as u64, needs.sum())
    };
    Ok((findings, Some((0..classes.len()).map(of_class).collect())))
}

/// Columns of the released and of the private table that belong together.
pub(crate) struct Pairs<'a> {
    /// Generalized ones.
    pub(crate) quasi: Vec<(&'a Column, &'a Column)>,
    /// Unchanged ones.
    pub(crate) copied: Vec<(&'a Column, &'a Column)>,
    /// Keys, which are unchanged where they are kept.
    pub(crate) keys: Vec<(&'a Column, &'a Column)>,
}

impl<'a> Pairs<'a> {
    /// By their names. What is missing, too much or out of order is added to the violations.
    pub(crate) fn new(
        released: &'a Table,
        original: &'a Table,
        keys: &KeyColumns,
        violations: &mut Vec<Violation>,
    ) -> Self {
        let mut pairs = Pairs { quasi: Vec::new(), copied: Vec::new(), keys: Vec::new() };
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
            } else if original.columns[source].role == Role::Key && !keys.joins(source) {
                violations.push(Violation::KeyJoinsNothing { column: name() });
            }
            let private = &original.columns[source];
            if public.role != private.role {
                let (role, said) = (private.role, public.role);
                violations.push(Violation::ColumnRole { column: name(), role, said });
            }
            match private.role {
                Role::Quasi => pairs.quasi.push((public, private)),
                Role::Sensitive | Role::Plain => pairs.copied.push((public, private)),
                Role::Key => pairs.keys.push((public, private)),
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

/// How many numbers stand in some row.
fn n_distinct(persons: &CellIds<'_>, n_rows: usize) -> u64 {
    let mut met = vec![false; persons.n_numbers()];
    (0..n_rows).for_each(|row| met[persons.get(row) as usize] = true);
    met.into_iter().filter(|&met| met).count() as u64
}

/// Rows or persons left over that are not as many as admitted.
fn miscounted(counted: u64, admitted: &[(&'static str, u64)]) -> Vec<Violation> {
    let wrong = admitted.iter().filter(|&&(_, admitted)| admitted != counted);
    wrong.map(|&(what, admitted)| Violation::SuppressedMiscounted { what, admitted, counted }).collect()
}

/// Released rows that get no origin, however origins are handed out, so that nobody's own k is above the size of the
/// row's class.
fn without_origin(origins: &Origins<'_>) -> Option<Violation> {
    let lacking = |bucket: &origins::Bucket| -> Result<Vec<(usize, u32)>, Violation> {
        let lacking = origins.network(bucket, MAX_CANDIDATES)?.assign();
        Ok((bucket.boxes.0..).zip(lacking).filter(|&(_, lacking)| lacking > 0).collect())
    };
    let lacking: Result<Vec<Vec<(usize, u32)>>, Violation> = origins.buckets.par_iter().map(lacking).collect();
    match lacking {
        Err(violation) => Some(violation),
        Ok(lacking) => origins.lacking(lacking.into_iter().flatten()),
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
mod tests;

#[cfg(test)]
mod rows_tests {
    use kohort_model::{Requirement, ValueType};
    use proptest::prelude::*;

    use super::*;
    use crate::cases::{ID, LIMIT, NAME, WISH, clinic, clinic_release, clinic_requirements, written};

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
        verify_against(&table, &original, &clinic_requirements(), ADMITTED, LIMIT).unwrap_err().0
    }

    fn cell(table: &mut Table, column: usize, row: usize, text: &str) {
        let known = table.columns[column].texts.iter().position(|known| known == text);
        let id = known.map_or_else(|| table.columns[column].texts.push(text), |id| id as u32);
        table.columns[column].ids[row] = id;
    }

    #[test]
    fn a_true_release_has_an_origin_for_each_row() {
        let (table, original) = released();
        let findings = verify_against(&table, &original, &clinic_requirements(), ADMITTED, LIMIT).unwrap();
        assert_eq!((findings.k, findings.counted), (3, Counted::Persons));
        assert_eq!(findings.suppressed, Some(ADMITTED));
        assert!(findings.skipped.is_empty());
    }

    #[test]
    fn no_more_persons_are_left_out_than_the_limit_allows() {
        let (table, original) = released();
        let exceeded = |n, n_persons| Violation::TooManySuppressed { n, n_persons, limit: 0.1 };
        let limit = SuppressionLimit::share(0.1);
        let by_rows = verify_against(&table, &original, &clinic_requirements(), ADMITTED, limit).unwrap_err().0;
        assert_eq!(by_rows, [exceeded(1, 7)]);
        let by_persons = verify_against(&table, &clinic(), &clinic_requirements(), ADMITTED, limit).unwrap_err().0;
        assert_eq!(by_persons, [exceeded(1, 6)]);
    }

    #[test]
    fn a_column_that_is_said_to_have_another_role_is_found() {
        let violations = spoiled(|table| table.columns[0].role = Role::Plain);
        let column = "age".to_owned();
        assert_eq!(violations, [Violation::ColumnRole { column, role: Role::Quasi, said: Role::Plain }]);
    }

    #[test]
    fn persons_of_several_rows_are_counted() {
        let (table, _) = released();
        let findings = verify_against(&table, &clinic(), &clinic_requirements(), ADMITTED, LIMIT).unwrap();
        assert_eq!((findings.counted, findings.k, findings.persons), (Counted::Persons, 2, 5));
        assert!(findings.skipped.is_empty());
        let violations = verify_against(&table, &clinic(), &[Requirement::K(3)], ADMITTED, LIMIT).unwrap_err().0;
        assert!(matches!(violations[..], [Violation::Unmet { n_classes: 1, class_size: 2, .. }]), "{violations:?}");
        let mut original = clinic();
        original.columns[WISH].ids[3] = original.columns[WISH].texts.push("3");
        let own_k = [Requirement::PersonK { column: "wish".to_owned() }];
        let violations = verify_against(&table, &original, &own_k, ADMITTED, LIMIT).unwrap_err().0;
        assert!(matches!(violations[..], [Violation::Unmet { n_classes: 1, class_size: 2, .. }]), "{violations:?}");
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
        let violations = verify_against(&table, &original, &clinic_requirements(), ADMITTED, LIMIT).unwrap_err().0;
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
        let violations = verify_against(&table, &original, &[], ADMITTED, LIMIT).unwrap_err().0;
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
        let violations = verify_against(&table, &original, &[Requirement::K(4)], ADMITTED, LIMIT).unwrap_err().0;
        assert!(matches!(violations[..], [Violation::Unmet { n_classes: 2, .. }]));
        let not_copied = [Requirement::Alpha { column: "age".to_owned(), alpha: 1.0 }];
        let violations = verify_against(&table, &original, &not_copied, ADMITTED, LIMIT).unwrap_err().0;
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
            let found = verify_against(&released, &original, &[], Suppressed { rows: left, persons: left }, SuppressionLimit::share(1.0));
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
