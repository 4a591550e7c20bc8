//! [`verify_joined_alone`]: what the files of a release beside a register show by themselves.
//!
//! # Guarantee
//! If register rows are released, too, each class has at least k rows. The groups of the two tables fit together, and
//! every requirement on sensitive values holds for each group. On purpose, nothing in the files tells whose rows they
//! are.

use std::collections::BTreeMap;

use kohort_model::register::{SENSITIVE_GROUP, SENSITIVE_TABLE};
use kohort_model::spec::RegisterRows;
use kohort_model::{Column, NULL, Requirement, Role, Table};

use super::count::unmet;
use super::{AskedOfJoin, classes_of};
use crate::count::cells::CellIds;
use crate::count::grouping::Classes;
use crate::count::roll::{Roll, Sensitive, Shares};
use crate::count::{all_sizes, count};
use crate::single::written::plain_number;
use crate::structure::{check_table, no_rows};
use crate::{Counted, Findings, JoinedFindings, Skipped, Violation, Violations};

/// Verifies the released tables: the rows, and the sensitive table if there is one.
///
/// # Errors
/// Everything that is wrong with the tables.
pub fn verify_joined_alone(released: &[Table], asked: AskedOfJoin<'_>) -> Result<Findings, Violations> {
    let read = ReadTables::new(released)?;
    let copied = match released.get(1) {
        None => Vec::new(),
        Some(values) => values.columns.iter().filter(is_copied).map(|column| (column, column)).collect(),
    };
    read.count(&copied, asked)
}

/// Released tables and their sensitive groups.
pub(super) struct ReadTables<'a> {
    pub(super) rows: &'a Table,
    pub(super) quasi: Vec<&'a Column>,
    /// The group of each row; 1 if there is none.
    pub(super) groups: Vec<u32>,
    pub(super) classes: Classes,
    /// The sensitive table, and the group of each of its rows.
    pub(super) values: Option<(&'a Table, Vec<u32>)>,
}

fn is_copied(column: &&Column) -> bool {
    matches!(column.role, Role::Sensitive | Role::Plain)
}

impl<'a> ReadTables<'a> {
    pub(super) fn new(released: &'a [Table]) -> Result<Self, Violations> {
        let mut violations: Vec<Violation> = released.iter().flat_map(check_table).collect();
        violations.extend(released.iter().filter_map(no_rows));
        if !matches!(released.len(), 1 | 2) {
            let n = released.len() as u64;
            violations.push(Violation::TableCount { what: "the release", n, expected: 2 });
        }
        if !violations.is_empty() {
            return Err(Violations(violations));
        }
        let rows = &released[0];
        let (groups, values) = match released.get(1) {
            None => (vec![1; rows.n_rows], None),
            Some(values) => (group_numbers(rows)?, Some((values, group_numbers(values)?))),
        };
        let quasi: Vec<&Column> = rows.columns.iter().filter(|column| column.role == Role::Quasi).collect();
        let cells = quasi.iter().map(|column| CellIds::by_text(&column.ids, &column.texts));
        let classes = classes_of(cells, &groups);
        Ok(ReadTables { rows, quasi, groups, classes, values })
    }

    /// Counts what the files show. `copied` are pairs of a released column and the column that gives its texts their
    /// meaning.
    pub(super) fn count(&self, copied: &[(&Column, &Column)], asked: AskedOfJoin<'_>) -> Result<Findings, Violations> {
        let mut violations = Vec::new();
        let sizes: Vec<u32> = (0..self.classes.len()).map(|class| self.classes.rows(class).len() as u32).collect();
        let mut skipped: Vec<Skipped> = asked.requirements.iter().filter_map(Skipped::own_k).collect();
        match asked.rows {
            RegisterRows::Microdata => skipped.push(Skipped::Crowd),
            RegisterRows::All => {
                skipped.push(Skipped::Presence);
                let sizes: Vec<u64> = sizes.iter().map(|&size| u64::from(size)).collect();
                for requirement in asked.requirements {
                    if let Some(k) = requirement.k() {
                        let needed = vec![u64::from(k); sizes.len()];
                        violations.extend(unmet(requirement, &self.classes, &sizes, &needed));
                    }
                }
            }
        }
        let mut of_groups = None;
        if let Some((values, groups)) = &self.values {
            violations.extend(self.mismatch(groups, asked.rows));
            let visible: Vec<Requirement> =
                asked.requirements.iter().filter(|requirement| requirement.own_k_column().is_none()).cloned().collect();
            let sensitive = Sensitive::measured(copied, None, &visible, &mut violations);
            let most = groups.iter().copied().max().unwrap_or(0);
            let quasi = vec![CellIds::by_id(groups.as_slice(), most as usize + 1)];
            let n_rows = values.n_rows;
            let roll = Roll { n_rows, quasi, persons: None, shares: Shares::Pairs, sensitive, own_k: Vec::new() };
            if violations.is_empty() {
                let mut found = count(&roll, &visible)?;
                violations.extend(found.unmet.drain(..).map(|violation| violation.in_table(SENSITIVE_TABLE)));
                of_groups = Some(found);
            }
        }
        if !violations.is_empty() {
            return Err(Violations(violations));
        }
        let n_rows = self.rows.n_rows as u64;
        let k = sizes.iter().copied().min().map_or(0, u64::from);
        let (group_k, groups) = of_groups.as_ref().map_or((None, 0), |found| (Some(found.k), found.classes));
        Ok(Findings {
            counted: Counted::Rows,
            persons: of_groups.as_ref().map_or(n_rows, |found| found.rows),
            classes: sizes.len() as u64,
            k,
            unique_persons: sizes.iter().filter(|&&size| size == 1).count() as u64,
            class_sizes: all_sizes(&sizes),
            highest_risk: 1.0 / k as f64,
            average_risk: sizes.len() as f64 / n_rows as f64,
            sensitive: of_groups.map_or_else(Vec::new, |found| found.sensitive),
            skipped,
            joined: Some(JoinedFindings { groups, group_k, presence: None, together: None, together_within: None }),
            ..Findings::uncounted(n_rows)
        })
    }

    /// Groups whose sensitive rows can't belong to the rows of the group. Each class must hold a private person.
    fn mismatch(&self, values: &[u32], rows: RegisterRows) -> Vec<Violation> {
        // For each group, the number of its classes, rows and sensitive rows.
        let mut counts: BTreeMap<u32, (u64, u64, u64)> = BTreeMap::new();
        for class in 0..self.classes.len() {
            let members = self.classes.rows(class);
            let count = counts.entry(self.groups[members[0] as usize]).or_default();
            *count = (count.0 + 1, count.1 + members.len() as u64, 0);
        }
        values.iter().for_each(|&group| counts.entry(group).or_default().2 += 1);
        let fits = |&(classes, n_rows, values): &(u64, u64, u64)| match rows {
            RegisterRows::All => 0 < classes && classes <= values && values <= n_rows,
            RegisterRows::Microdata => values == n_rows,
        };
        let wrong = counts.into_iter().filter(|(_, count)| !fits(count));
        wrong
            .map(|(group, (classes, rows, values))| Violation::GroupMismatch { group, classes, rows, values })
            .collect()
    }
}

/// The sensitive group of each row.
fn group_numbers(table: &Table) -> Result<Vec<u32>, Violation> {
    let unreadable = || Violation::GroupsUnreadable { table: table.name.clone() };
    let column = table.column(SENSITIVE_GROUP).ok_or_else(unreadable)?;
    let numbers: Vec<Option<u32>> = column.texts.iter().map(plain_number).collect();
    let number = |&id: &u32| if id == NULL { None } else { numbers[id as usize].filter(|&number| number < NULL - 1) };
    column.ids.iter().map(number).collect::<Option<Vec<u32>>>().ok_or_else(unreadable)
}
