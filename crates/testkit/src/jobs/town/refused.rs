//! Compares refusals with every release that could exist.
//!
//! A class that shows nothing hides everybody at least as well as any other class, and what its group tells does not
//! depend on its cells. So if any release exists, one exists whose cells show nothing, and it is enough to try every
//! choice of persons to leave out and every way to put the others into sensitive groups.

use kohort_model::{Requirement, Role};

use super::{Found, Read, Released, shows_register};
use crate::oracle::{self, Verdict};

/// For up to this many people, everything is tried.
const FEW_PEOPLE: usize = 7;

impl Read<'_> {
    /// Whether a release exists that the engine always tries: one class and one group of everybody whom a class can
    /// take. `None` if there are too many releases to try all of them, or if only other releases exist. The engine may
    /// miss those, because they leave out persons whom a class could take, use groups that no partitioner makes, or
    /// depend on who takes part.
    pub(super) fn can_be_released(&self) -> Option<Verdict> {
        let n_private = self.table.n_rows;
        let n_shown = if shows_register(self.spec) { self.persons.len() } else { n_private };
        if n_shown > FEW_PEOPLE || self.town.has_own_k() {
            return None;
        }
        let most = (self.spec.max_suppressed * n_private as f64 + 1e-9).floor() as u32;
        let choices = (0u32..1 << n_private).filter(|left_out| left_out.count_ones() <= most);
        let mut is_any = false;
        for left_out in choices {
            let kept: Vec<usize> = (0..n_private).filter(|row| left_out >> row & 1 == 0).collect();
            is_any |= !kept.is_empty() && self.any_grouping(&kept);
        }
        if !is_any {
            return Some(Verdict::Fails);
        }
        // One class and one group of everybody whom a class can take is always tried.
        let shown: Vec<usize> = (0..n_shown).filter(|&row| self.is_placeable(self.persons[row])).collect();
        let n_left_out = (0..n_private).filter(|row| !shown.contains(row)).count();
        let is_tried = n_left_out == 0 || (!shows_register(self.spec) && n_left_out <= most as usize);
        (is_tried && self.is_release(&shown, &vec![0; shown.len()], true)).then_some(Verdict::Holds)
    }

    /// Whether a class that shows nothing hides somebody.
    fn is_placeable(&self, person: usize) -> bool {
        let mut found = Found::default();
        self.readers().look_for(person, &self.town.everywhere(), self.is_private(person), &mut found);
        found.faults.is_empty()
    }

    /// Whether these private rows, and register persons beside them, can be put into groups.
    fn any_grouping(&self, kept: &[usize]) -> bool {
        let others = if shows_register(self.spec) { self.persons.len() - self.table.n_rows } else { 0 };
        let others = self.table.n_rows..self.table.n_rows + others;
        let rows: Vec<usize> = kept.iter().copied().chain(others).collect();
        let mut groups = Vec::new();
        self.any_grouping_from(&rows, kept.len(), &mut groups)
    }

    /// Tries every group for the next row. A group without a private row is not released, so a register person who is
    /// put into it is left out.
    fn any_grouping_from(&self, rows: &[usize], n_private: usize, groups: &mut Vec<usize>) -> bool {
        if groups.len() == rows.len() {
            return self.is_release(rows, groups, false);
        }
        let n_groups = groups.iter().take(n_private).map(|group| group + 1).max().unwrap_or(0);
        for group in 0..=n_groups {
            groups.push(group);
            let is_found = self.any_grouping_from(rows, n_private, groups);
            groups.pop();
            if is_found {
                return true;
            }
        }
        false
    }

    /// Whether these joined rows are a release if they are put into these groups and their cells show nothing. With
    /// `of_everybody`, readers also look for the register persons among them, and not only for private ones.
    fn is_release(&self, rows: &[usize], groups: &[usize], of_everybody: bool) -> bool {
        let (town, year, n_private) = (self.town, self.year, self.table.n_rows);
        let has_values = self.table.columns.iter().any(|column| column.role == Role::Sensitive);
        let is_shown = |group: usize| rows.iter().zip(groups).any(|(&row, &other)| other == group && row < n_private);
        let shown: Vec<(usize, usize)> =
            rows.iter().copied().zip(groups.iter().copied()).filter(|&(_, group)| is_shown(group)).collect();
        let n_groups = groups.iter().max().map_or(0, |most| most + 1);
        if n_groups > 1 && !has_values {
            // Without values there is nothing to put into groups.
            return false;
        }
        let all: Vec<u32> = shown.iter().filter(|(row, _)| *row < n_private).map(|&(row, _)| row as u32).collect();
        let cells = town.everywhere();
        let mut released = Released {
            year,
            tables: Vec::new(),
            classes: (0..n_groups).map(|group| (cells.clone(), group as u32)).collect(),
            rows: shown.iter().map(|&(row, group)| (self.persons[row], group)).collect(),
            values: std::collections::BTreeMap::new(),
            k_together: None,
        };
        for group in (0..n_groups).filter(|&group| is_shown(group)) {
            let members: Vec<usize> = shown.iter().filter(|&&(_, of)| of == group).map(|&(row, _)| row).collect();
            let n_persons = if shows_register(self.spec) { members.len() } else { self.persons.len() };
            let private: Vec<u32> = members.iter().filter(|&&row| row < n_private).map(|&row| row as u32).collect();
            let asked: Vec<Requirement> = self.requirements.iter().filter(|_| has_values).cloned().collect();
            if n_persons < self.spec.k as usize || oracle::stands(self.table, &asked, &private, &all) != Verdict::Holds
            {
                return false;
            }
            if has_values {
                let answers = private.iter().map(|&row| town.answer(self.persons[row as usize], year));
                released.values.insert(group as u32, answers.collect());
            }
        }
        let readers = self.readers();
        let mut found = Found::default();
        for &(row, _) in shown.iter().filter(|(row, _)| of_everybody || *row < n_private) {
            readers.look_for(self.persons[row], &cells, row < n_private, &mut found);
        }
        readers.compare_values(&released, &mut found);
        found.faults.is_empty()
    }
}
