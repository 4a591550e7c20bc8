//! [`verify_against`]: whether released rows can have come from a private table, if nothing says which row came from
//! which.
//!
//! # Guarantee
//! Every released row can be given an origin: a private row of its own whose quasi cells it covers and whose sensitive
//! and plain cells it equals. The origins include all rows of a person or none. As many rows and persons are left over
//! as the release states, and no more persons than the limit allows. If each class is counted in the persons of its
//! origins, every requirement holds, own k included.
//!
//! If origins can be given in several ways, the release looks the same in each, so one way that satisfies everything is
//! enough. If persons have several rows, the search can end without finding a way and without showing that there is
//! none. Then the result is "can't tell", not a failure. Keys are not compared, because they may be renumbered.
//!
//! # Cost
//! Rows with equal cells are folded. Rows with equal copied cells are assigned apart from all others. A greedy pass is
//! enough for classes that do not overlap. For persons with several rows, see `persons`.

mod exhaustive;
mod gather;
mod leaving;
mod origins;
mod persons;
mod trial;

use std::collections::HashMap;

use kohort_model::{Column, NULL, Role, Table, Texts};
use rayon::prelude::*;

use crate::asked::Perspectives;
use crate::count::cells::CellIds;
use crate::count::grouping::Classes;
use crate::count::learned::Source;
use crate::count::loss::{LossSums, PersonSums};
use crate::count::roll::{Roll, Sensitive, Shares, own_ks, persons_of};
use crate::reading::coverage::{Coverage, Runs};
use crate::single::recoding::{ColumnCheck, KeyColumns};
use crate::structure::{check_table, no_rows, other_name};
use crate::{Asked, Counted, Findings, Skipped, Suppressed, SuppressionLimit, Violation, Violations};
pub(crate) use origins::{Origins, Sides};
use persons::{Answer, Puzzle, Tracing, trace};

/// How many possible origins are kept in memory at once, for rows with the same copied cells.
pub(crate) const MAX_CANDIDATES: u64 = 1 << 29;

/// Verifies a released table against the private table it is said to come from. `suppressed` is what the release states
/// to have left out.
///
/// # Errors
/// Everything that is wrong with the released table.
pub fn verify_against<'a>(
    released: &Table,
    original: &Table,
    asked: impl Into<Asked<'a>>,
    suppressed: Suppressed,
    limit: SuppressionLimit,
) -> Result<Findings, Violations> {
    let mut violations = check_table(released);
    violations.extend(check_table(original));
    violations.extend(other_name(&released.name, &original.name));
    violations.extend(no_rows(released));
    let keys = KeyColumns { never: original.person, ..KeyColumns::default() };
    let pairs = Pairs::new(released, original, &keys, &mut violations);
    if !violations.is_empty() {
        return Err(Violations(violations));
    }
    let persons = persons_of(original, None)?;
    let several_rows = persons.as_ref().filter(|persons| has_repeats(persons, original.n_rows));
    let names: Vec<&str> = pairs.quasi.iter().map(|(public, _)| public.name.as_str()).collect();
    let asked = asked.into();
    let perspectives = Perspectives::new(asked, &names, &mut violations);
    let requirements = perspectives.requirements();
    let own_k = own_ks(original, None, several_rows, &requirements, &mut violations);
    let quasi: Vec<CellIds<'_>> =
        pairs.quasi.iter().map(|(public, _)| CellIds::by_id(public.ids.as_slice(), public.texts.len())).collect();
    let sensitive = Sensitive::measured(&pairs.copied, None, &requirements, &mut violations);
    if !violations.is_empty() {
        return Err(Violations(violations));
    }
    let mut sizes_for_own_k = perspectives.sizes_for_own_k(&quasi, released.n_rows);
    if let Some(persons) = several_rows {
        // No class has more persons than the whole release.
        let n_persons = n_distinct(persons, original.n_rows).saturating_sub(suppressed.persons);
        let most = u32::try_from(n_persons).unwrap_or(u32::MAX);
        sizes_for_own_k.iter_mut().for_each(|size| *size = (*size).min(most));
    }
    let runs = pairs.runs();
    let sides = Sides {
        pairs: &pairs,
        runs: &runs,
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
    let shown: Vec<_> = pairs.quasi.iter().map(|&(public, private)| (&public.texts, private)).collect();
    let left_over = original.n_rows.saturating_sub(released.n_rows) as u64;
    let admitted = [("rows", suppressed.rows), ("persons", suppressed.persons)];
    let admitted = if several_rows.is_some() { &admitted[..1] } else { &admitted };
    violations.extend(miscounted(left_over, admitted));
    // If persons have several rows, the search below leaves out exactly as many persons as stated.
    let (left_out, n_persons) = match several_rows {
        None => (left_over, original.n_rows as u64),
        Some(persons) => (suppressed.persons, n_distinct(persons, original.n_rows)),
    };
    violations.extend(limit.exceeded(left_out, n_persons));
    let mut by_rows = Perspectives::new(asked, &names, &mut Vec::new());
    by_rows.leave_out(|requirement| requirement.own_k_column().is_some());
    let of_persons;
    let mut findings = match several_rows {
        None => {
            let mut findings = by_rows.count(&roll, &shown, Source::Private)?;
            violations.append(&mut findings.unmet);
            violations.extend(without_origin(&origins));
            findings.counted = Counted::Persons;
            // Anybody may be the one who is left out, so the k that the others need is known only if nobody is left
            // out.
            let everybody = (0..original.n_rows).map(|row| perspectives.needed(&own_k, row)).sum();
            let needed = match own_k.is_empty() {
                true => Some(released.n_rows as u64 * perspectives.needed(&[], 0)),
                false => (left_over == 0).then_some(everybody),
            };
            let classes = Classes::group(&quasi.iter().collect::<Vec<_>>(), released.n_rows);
            let sizes = (0..classes.len()).map(|class| classes.rows(class).len() as u64);
            of_persons = Some(PersonSums::of(sizes, left_out, n_persons, needed));
            findings
        }
        Some(persons) => {
            // A requirement that fails whichever rows belong to the same person fails for certain, without any search.
            by_rows.take_hidden(|requirement| Skipped::of_persons(requirement).is_some());
            violations.extend(by_rows.count(&roll, &shown, Source::Private)?.unmet);
            if !violations.is_empty() {
                violations.extend(without_origin(&origins));
                return Err(Violations(violations));
            }
            let roll = Roll { shares: Shares::Pairs, own_k: own_k.clone(), ..roll };
            let quasi = pairs.quasi.iter().map(|(_, column)| CellIds::by_id(column.ids.as_slice(), column.texts.len()));
            let puzzle = Puzzle {
                origins: &origins,
                roll: &roll,
                perspectives: &perspectives,
                persons,
                quasi: quasi.collect(),
                n_original: original.n_rows,
                n_left_out: suppressed.persons,
            };
            let (findings, sizes_and_needs) = count_traced(&puzzle, &shown)?;
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

/// The number of persons in a class, and the sum of the k that they need.
type SizeAndNeed = (u64, u64);

/// Traces released rows back to persons, and counts these. Also returns the size of each class if there is only one way
/// to trace rows back.
///
/// # Errors
/// Requirements that fail in every way, or that could not be decided.
fn count_traced(
    puzzle: &Puzzle<'_>,
    shown: &[(&Texts, &Column)],
) -> Result<(Findings, Option<Vec<SizeAndNeed>>), Violations> {
    let Tracing { persons, answer } = trace(puzzle)?;
    let persons = Some(CellIds::by_id(persons, puzzle.persons.n_numbers()));
    let roll = Roll { persons, ..puzzle.roll.clone() };
    let mut findings = puzzle.perspectives.count(&roll, shown, Source::Private)?;
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
    let classes = Classes::group(&roll.quasi.iter().collect::<Vec<_>>(), roll.n_rows);
    let of_class = |class: usize| {
        let persons = roll.persons.as_ref().expect("rows were traced back to persons");
        let mut members: Vec<u32> = classes.rows(class).iter().map(|&row| persons.get(row as usize)).collect();
        members.sort_unstable();
        members.dedup();
        let needs = members.iter().map(|&person| puzzle.perspectives.needed(&roll.own_k, person as usize));
        (members.len() as u64, needs.sum())
    };
    Ok((findings, Some((0..classes.len()).map(of_class).collect())))
}

/// Pairs of a released column and the private column it comes from.
pub(crate) struct Pairs<'a> {
    /// Generalized columns.
    pub(crate) quasi: Vec<(&'a Column, &'a Column)>,
    /// Unchanged columns.
    pub(crate) copied: Vec<(&'a Column, &'a Column)>,
    /// Key columns, which are unchanged unless they are renumbered.
    pub(crate) keys: Vec<(&'a Column, &'a Column)>,
}

impl<'a> Pairs<'a> {
    /// Pairs columns by their names. Adds a violation for each column that is missing, superfluous or out of order.
    pub(crate) fn new(
        released: &'a Table,
        original: &'a Table,
        keys: &KeyColumns,
        violations: &mut Vec<Violation>,
    ) -> Self {
        let mut pairs = Pairs { quasi: Vec::new(), copied: Vec::new(), keys: Vec::new() };
        let mut check = ColumnCheck::new(original, keys);
        for public in &released.columns {
            let name = || public.name.clone();
            let Some(source) = original.position(&public.name) else {
                violations.push(Violation::ColumnWithoutSource { column: name() });
                continue;
            };
            violations.extend(check.next(source));
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
        violations.extend(check.missing());
        pairs
    }

    /// For each quasi column the private values that each label covers.
    pub(crate) fn runs(&self) -> Vec<Runs> {
        self.quasi.par_iter().map(|(public, private)| Runs::new(&Coverage::new(private, &public.texts))).collect()
    }
}

/// Whether a person has two rows.
fn has_repeats(persons: &CellIds<'_>, n_rows: usize) -> bool {
    let mut met = vec![false; persons.n_numbers()];
    (0..n_rows).any(|row| std::mem::replace(&mut met[persons.get(row) as usize], true))
}

/// The number of persons who have a row.
fn n_distinct(persons: &CellIds<'_>, n_rows: usize) -> u64 {
    let mut met = vec![false; persons.n_numbers()];
    (0..n_rows).for_each(|row| met[persons.get(row) as usize] = true);
    met.into_iter().filter(|&met| met).count() as u64
}

/// Violations if the number left over differs from what the release states.
pub(crate) fn miscounted(counted: u64, admitted: &[(&'static str, u64)]) -> Vec<Violation> {
    let wrong = admitted.iter().filter(|&&(_, admitted)| admitted != counted);
    wrong.map(|&(what, admitted)| Violation::SuppressedMiscounted { what, admitted, counted }).collect()
}

/// Released rows that lack an origin, however origins are assigned. A private row can be the origin only of rows whose
/// class is as large as the own k of its person.
fn without_origin(origins: &Origins<'_>) -> Option<Violation> {
    match lacking(origins, MAX_CANDIDATES) {
        Err(violation) => Some(violation),
        Ok(lacking) => origins.lacking(lacking.into_iter()),
    }
}

/// Boxes that lack origins, however these are assigned, each with how many.
///
/// # Errors
/// If a box of some bucket has more than `most` candidates.
pub(crate) fn lacking(origins: &Origins<'_>, most: u64) -> Result<Vec<(usize, u32)>, Violation> {
    let of_bucket = |bucket: &origins::Bucket| -> Result<Vec<(usize, u32)>, Violation> {
        let lacking = origins.network(bucket, most)?.assign();
        Ok((bucket.boxes.0..).zip(lacking).filter(|&(_, lacking)| lacking > 0).collect())
    };
    let of_buckets: Result<Vec<Vec<(usize, u32)>>, Violation> = origins.buckets.par_iter().map(of_bucket).collect();
    Ok(of_buckets?.concat())
}

/// An own k as a coordinate of a point. No class is as large as the largest coordinate, so capping loses nothing.
pub(crate) fn narrow(own_k: u64) -> u32 {
    own_k.min(u64::from(u32::MAX - 1)) as u32
}

/// The released cells followed by the private ones, equal if their texts are.
pub(crate) fn concatenated<'a>(public: &'a Column, private: &'a Column) -> CellIds<'a> {
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
    // A text that the released dictionary holds twice gets one number.
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

    /// The clinic's release as a file, and the clinic as a table in which each row is a person.
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

    /// How many boxes can't be given points of their own, found by trying every assignment.
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
