//! [`verify_joined_against`]: whether released rows can have come from a private table and its registers.
//!
//! # Guarantee
//! Everything that [`verify_joined_alone`](super::verify_joined_alone) shows, and in addition:
//! - Every released row can be given a row of the join of its own that its cells cover, and every private row, except
//!   those left out, can be given a released row. By the theorem of Mendelsohn and Dulmage, both are possible at once.
//! - Each row of the sensitive table can be given a private row with the same values that a class of its group covers.
//! - The cells of every class cover at least k persons of the private table and the register, one of them private.
//! - If persons have a k of their own, every private row can be given a class and a group of that size.
//! - If there are earlier releases, every private row can be given a class in which readers of all releases find k
//!   persons, or as many as its person asks for (see `together`).
//!
//! The last four are shown independently of each other, because nothing released links the two tables row by row.

use std::collections::HashMap;

use kohort_model::register::{SENSITIVE_GROUP, SENSITIVE_TABLE};
use kohort_model::spec::RegisterRows;
use kohort_model::{Column, JoinedRegister, Requirement, Role, Table, Texts};
use rayon::prelude::*;

use super::AskedOfJoin;
use super::alone::ReadTables;
use super::count::{classes_where, unmet};
use super::crowd::{Boxes, Crowd};
use super::join::check_join;
use super::shape::copied_columns;
use super::together::count_together_against;
use crate::count::all_sizes;
use crate::count::cells::CellIds;
use crate::count::grouping::Classes;
use crate::count::roll::own_ks;
use crate::origins::assignment::Network;
use crate::origins::candidates::PointTree;
use crate::single::against::concatenated;
use crate::structure::{check_table, other_name};
use crate::{Findings, Skipped, Suppressed, Violation, Violations};

/// How many possible origins are kept in memory at once.
const MAX_CANDIDATES: usize = 1 << 28;

/// Verifies released tables against the private table and the registers they are said to come from. `suppressed` is
/// what the release states to have left out.
///
/// # Errors
/// Everything that is wrong with the released tables.
pub fn verify_joined_against(
    released: &[Table],
    original: &Table,
    joined: &JoinedRegister,
    asked: AskedOfJoin<'_>,
    suppressed: Suppressed,
) -> Result<Findings, Violations> {
    let mut violations = check_table(original);
    violations.extend(check_table(&joined.rows));
    violations.extend(check_join(original, joined, asked.told_apart));
    if violations.is_empty() {
        violations.extend(other_columns(released, original, joined));
    }
    if !violations.is_empty() {
        return Err(Violations(violations));
    }
    let read = ReadTables::new(released)?;
    let private: Vec<&Column> = copied_columns(original).into_iter().map(|column| &original.columns[column]).collect();
    let copied: Vec<(&Column, &Column)> = match released.get(1) {
        None => Vec::new(),
        Some(values) => values.columns.iter().skip(1).zip(private).collect(),
    };
    let mut findings = read.count(&copied, asked)?;
    let origins = JoinedOrigins::new(&read, joined, asked);
    violations.extend(origins.too_few(asked.requirements));
    violations.extend(origins.without_private());
    violations.extend(origins.rows_without_origin());
    violations.extend(origins.private_without_row(suppressed));
    if violations.is_empty() {
        violations.extend(origins.own_k_unmet(original, asked, suppressed));
    }
    if let Some((values, groups)) = &read.values {
        let left = original.n_rows.saturating_sub(values.n_rows) as u64;
        if left != suppressed.rows {
            let (admitted, counted) = (suppressed.rows, left);
            violations.push(Violation::SuppressedMiscounted { what: "persons", admitted, counted });
        }
        violations.extend(origins.values_without_origin(&copied, groups));
    }
    violations.extend(asked.limit.exceeded(suppressed.persons, original.n_rows as u64));
    if !violations.is_empty() {
        return Err(Violations(violations));
    }
    if !asked.previous.is_empty() {
        let (within, open) = count_together_against((&read, &origins), original, joined, asked, suppressed)?;
        findings.skipped.extend(open);
        if let Some(joined) = &mut findings.joined {
            joined.together_within = Some(within);
        }
    }
    findings.suppressed = Some(suppressed);
    findings.skipped.retain(|skipped| !matches!(skipped, Skipped::PersonK { .. }));
    let held = origins.fewest_held();
    match asked.rows {
        RegisterRows::All => findings.k = findings.k.min(held),
        RegisterRows::Microdata => {
            findings.skipped.retain(|skipped| *skipped != Skipped::Crowd);
            findings.k = held;
            findings.unique_persons = origins.held.iter().filter(|&&held| held == 1).count() as u64;
            let sizes: Vec<u32> = origins.held.iter().map(|&held| held.min(u64::from(u32::MAX)) as u32).collect();
            findings.class_sizes = all_sizes(&sizes);
            let risk = |class: usize| read.classes.rows(class).len() as f64 / origins.held[class] as f64;
            findings.average_risk = (0..origins.n_classes()).map(risk).sum::<f64>() / findings.rows as f64;
        }
    }
    findings.highest_risk = 1.0 / findings.k as f64;
    Ok(findings)
}

/// Released columns that differ from those of the private table in name, order or role.
fn other_columns(released: &[Table], original: &Table, joined: &JoinedRegister) -> Vec<Violation> {
    let mut violations = Vec::new();
    let copied: Vec<&str> =
        copied_columns(original).into_iter().map(|column| original.columns[column].name.as_str()).collect();
    let group = (!copied.is_empty()).then_some(SENSITIVE_GROUP);
    let rows: Vec<&str> = joined.rows.columns.iter().map(|column| column.name.as_str()).chain(group).collect();
    let mut expected = vec![rows];
    if !copied.is_empty() {
        expected.push(std::iter::once(SENSITIVE_GROUP).chain(copied).collect());
    }
    if released.len() != expected.len() {
        let (n, expected) = (released.len() as u64, expected.len() as u64);
        return vec![Violation::TableCount { what: "the release", n, expected }];
    }
    for (table, expected) in released.iter().zip([original.name.as_str(), SENSITIVE_TABLE]) {
        violations.extend(other_name(&table.name, expected));
    }
    for (table, expected) in released.iter().zip(expected) {
        let names: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
        if names != expected {
            let position = (0..).find(|&at| names.get(at) != expected.get(at)).unwrap_or(0) as u64 + 1;
            violations.push(Violation::WrittenColumns { position }.in_table(&table.name));
        }
    }
    for public in released.iter().flat_map(|table| &table.columns) {
        let role = match public.name.as_str() {
            SENSITIVE_GROUP => Some(Role::Key),
            name => original.column(name).map(|private| private.role),
        };
        let (column, said) = (public.name.clone(), public.role);
        let wrong = role.filter(|&role| role != said).map(|role| Violation::ColumnRole { column, role, said });
        violations.extend(wrong);
    }
    violations
}

/// The rows of the join that the rows of each class can have come from.
pub(super) struct JoinedOrigins<'a> {
    read: &'a ReadTables<'a>,
    pub(super) joined: &'a JoinedRegister,
    pub(super) boxes: Boxes<'a>,
    /// Only the first `n_origins` rows of the join can be origins of released rows.
    pub(super) n_origins: usize,
    crowd: Crowd,
    /// The size of the crowd of each class: the persons whom its cells cover.
    held: Vec<u64>,
    /// The private rows that the cells of each class cover.
    pub(super) private: Vec<Vec<u32>>,
}

impl<'a> JoinedOrigins<'a> {
    fn new(read: &'a ReadTables<'a>, joined: &'a JoinedRegister, asked: AskedOfJoin<'_>) -> Self {
        let AskedOfJoin { told_apart, rows: released, .. } = asked;
        let labels: Vec<&Texts> = read.quasi.iter().map(|column| &column.texts).collect();
        let labels_of = |class: usize| -> Vec<u32> {
            let row = read.classes.rows(class)[0] as usize;
            read.quasi.iter().map(|column| column.ids[row]).collect()
        };
        let cells: Vec<Vec<u32>> = (0..read.classes.len()).map(labels_of).collect();
        let boxes = Boxes::new(joined, &labels, &cells);
        let n_origins = match released {
            RegisterRows::All => joined.n_microdata + joined.n_register,
            RegisterRows::Microdata => joined.n_microdata,
        };
        let crowd = boxes.count(n_origins);
        let held = crowd.heads.iter().map(|heads| heads.count(told_apart)).collect();
        let coordinates = (0..joined.n_microdata).flat_map(|row| boxes.place(row)).collect();
        let tree = PointTree::new(joined.rows.columns.len(), coordinates, joined.n_microdata);
        let private = (0..read.classes.len()).into_par_iter().map(|class| tree.within(boxes.sides(class))).collect();
        JoinedOrigins { read, joined, boxes, n_origins, crowd, held, private }
    }

    pub(super) fn n_classes(&self) -> usize {
        self.read.classes.len()
    }

    /// The size of the smallest crowd.
    pub(super) fn fewest_held(&self) -> u64 {
        self.held.iter().copied().min().unwrap_or(0)
    }

    /// The number of rows of the smallest class.
    pub(super) fn fewest_rows(&self) -> u64 {
        self.sizes().into_iter().min().map_or(0, u64::from)
    }

    fn sizes(&self) -> Vec<u32> {
        (0..self.n_classes()).map(|class| self.read.classes.rows(class).len() as u32).collect()
    }

    /// Classes with too small a crowd.
    fn too_few(&self, requirements: &[Requirement]) -> Vec<Violation> {
        let of_k = |requirement: &Requirement| {
            let needed = vec![u64::from(requirement.k()?); self.n_classes()];
            unmet(requirement, &self.read.classes, &self.held, &needed)
        };
        requirements.iter().filter_map(of_k).collect()
    }

    /// Classes whose cells cover nobody of the private table.
    fn without_private(&self) -> Option<Violation> {
        let (n, first_row) = classes_where(&self.read.classes, |class| self.private[class].is_empty())?;
        Some(Violation::ClassWithoutPrivate { n, first_row })
    }

    /// Released rows that lack a row of the join, however these are assigned.
    fn rows_without_origin(&self) -> Option<Violation> {
        let mut lacking = self.boxes.lacking_by_turns(&self.crowd, &self.sizes(), &self.held);
        if lacking.iter().any(|&n| n > 0) {
            // The quick assignment may have failed only because it gave rows to the wrong classes.
            let candidates = self.boxes.held_rows(self.n_origins);
            lacking = match assign(&candidates, self.sizes(), vec![1; self.n_origins]) {
                Ok(lacking) => lacking,
                Err(violation) => return Some(violation),
            };
        }
        let n: u64 = lacking.iter().map(|&n| u64::from(n)).sum();
        let first = lacking.iter().position(|&n| n > 0)?;
        Some(Violation::WithoutOrigin { n, first_row: u64::from(self.read.classes.rows(first)[0]) + 1 })
    }

    /// Private rows that lack a released row, beyond those that the release states to have left out.
    fn private_without_row(&self, suppressed: Suppressed) -> Option<Violation> {
        let counted = match self.without_class(|_, _| true) {
            Ok(without) => without.len() as u64,
            Err(violation) => return Some(violation),
        };
        let admitted = suppressed.rows;
        (counted > admitted).then_some(Violation::SuppressedMiscounted { what: "persons", admitted, counted })
    }

    /// Private rows that lack a released row in a class that is `fit` for them, however these are assigned.
    pub(super) fn without_class(&self, fit: impl Fn(u32, usize) -> bool) -> Result<Vec<u32>, Violation> {
        let mut candidates = vec![Vec::new(); self.joined.n_microdata];
        for (class, rows) in self.private.iter().enumerate() {
            rows.iter().filter(|&&row| fit(row, class)).for_each(|&row| candidates[row as usize].push(class as u32));
        }
        let lacking = assign(&candidates, vec![1; self.joined.n_microdata], self.sizes())?;
        Ok((0..).zip(lacking).filter(|&(_, n)| n > 0).map(|(row, _)| row).collect())
    }

    /// Persons who can't all be in classes and sensitive groups as large as they ask for.
    fn own_k_unmet(&self, original: &Table, asked: AskedOfJoin<'_>, suppressed: Suppressed) -> Vec<Violation> {
        let mut violations = Vec::new();
        let own_ks = own_ks(original, None, None, asked.requirements, &mut violations);
        let mut in_group: HashMap<u32, u64> = HashMap::new();
        for &group in self.read.values.iter().flat_map(|(_, groups)| groups) {
            *in_group.entry(group).or_default() += 1;
        }
        let size = |class: usize| {
            let rows = self.read.classes.rows(class);
            let shown = match asked.rows {
                RegisterRows::All => self.held[class].min(rows.len() as u64),
                RegisterRows::Microdata => self.held[class],
            };
            in_group.get(&self.read.groups[rows[0] as usize]).map_or(shown, |&n| shown.min(n))
        };
        let sizes: Vec<u64> = (0..self.n_classes()).map(size).collect();
        for own_k in own_ks {
            let asks = |row: u32| own_k.get(row as usize, None);
            match self.without_class(|row, class| sizes[class] >= asks(row)) {
                Err(violation) => violations.push(violation),
                Ok(without) if without.len() as u64 > suppressed.rows => {
                    let column = own_k.column.clone();
                    let n = without.len() as u64 - suppressed.rows;
                    violations.push(Violation::OwnKUnmet { column, n });
                }
                Ok(_) => {}
            }
        }
        violations
    }

    /// Rows of the sensitive table that lack a private row, however these are assigned.
    fn values_without_origin(&self, copied: &[(&Column, &Column)], groups: &[u32]) -> Option<Violation> {
        let n_values = groups.len();
        let n_private = self.joined.n_microdata;
        let both: Vec<CellIds<'_>> = copied.iter().map(|(public, private)| concatenated(public, private)).collect();
        let alike = Classes::group(&both.iter().collect::<Vec<_>>(), n_values + n_private).class_of_rows();
        let (of_values, of_private) = alike.split_at(n_values);
        // A box is a set of sensitive rows with equal values in one group. Its candidates are the private rows with
        // these values that a class of the group covers.
        let mut boxes: HashMap<(u32, u32), usize> = HashMap::new();
        let (mut needs, mut first_rows): (Vec<u32>, Vec<u64>) = (Vec::new(), Vec::new());
        for (row, (&group, &values)) in (1..).zip(groups.iter().zip(of_values)) {
            let found = *boxes.entry((group, values)).or_insert_with(|| {
                needs.push(0);
                first_rows.push(row);
                needs.len() - 1
            });
            needs[found] += 1;
        }
        let mut candidates: Vec<Vec<u32>> = vec![Vec::new(); needs.len()];
        for (class, rows) in self.private.iter().enumerate() {
            let group = self.read.groups[self.read.classes.rows(class)[0] as usize];
            for &row in rows {
                if let Some(&found) = boxes.get(&(group, of_private[row as usize])) {
                    candidates[found].push(row);
                }
            }
        }
        for rows in &mut candidates {
            rows.sort_unstable();
            rows.dedup();
        }
        let lacking = match assign(&candidates, needs, vec![1; n_private]) {
            Ok(lacking) => lacking,
            Err(violation) => return Some(violation),
        };
        let n: u64 = lacking.iter().map(|&n| u64::from(n)).sum();
        let first = lacking.iter().position(|&n| n > 0)?;
        Some(Violation::ValuesWithoutOrigin { n, first_row: first_rows[first] })
    }
}

/// Assigns candidates, and returns how many each box still lacks.
fn assign(candidates: &[Vec<u32>], needs: Vec<u32>, supplies: Vec<u32>) -> Result<Vec<u32>, Violation> {
    if candidates.iter().map(Vec::len).sum::<usize>() > MAX_CANDIDATES {
        return Err(Violation::TooManyOrigins { limit: MAX_CANDIDATES as u64 });
    }
    Ok(Network::new(candidates, needs, supplies).assign())
}
