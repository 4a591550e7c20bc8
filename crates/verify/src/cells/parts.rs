//! [`PartsCounter`]: counts a table whose rows come in parts, so that it is never in memory as a whole.
//!
//! # Guarantee
//! The findings are those of [`crate::measure`] and [`crate::verify_alone`] for all rows together, if no class has rows in two
//! parts. Each row is counted as one person, or, in a release, as a part of one. If the table names persons, classes and risks are
//! counted in persons; shares of sensitive values can't be, because rows of one person are in several parts.

use kohort_model::{Requirement, Table};

use super::joined::joined_findings;
use super::persons::SmallestClasses;
use crate::asked::Perspectives;
use crate::count::learned::Source;
use crate::count::roll::Shares;
use crate::looks::{LargestLooks, Look};
use crate::single::measure::{Alone, measure_from, names};
use crate::{Asked, Findings, RowsOf, Skipped, Violation, Violations};

/// Counts a table part by part.
pub struct PartsCounter {
    perspectives: Perspectives,
    source: Source,
    shares: Shares,
    quasi: Vec<usize>,
    sensitive: Vec<usize>,
    skipped: Vec<Skipped>,
    smallest: Option<SmallestClasses>,
    looks: Option<LargestLooks>,
    parts: Vec<Findings>,
}

impl PartsCounter {
    /// For any table, like [`crate::measure`]. `table` has the columns of the parts.
    ///
    /// # Errors
    /// If the requirements don't fit the columns.
    pub fn of_table(
        table: &Table,
        quasi: &[usize],
        sensitive: &[usize],
        asked: &[Requirement],
    ) -> Result<Self, Violations> {
        let mut violations = Vec::new();
        let perspectives = Perspectives::new(Asked::OfAll(asked), &names(table, quasi), &mut violations);
        let counter = PartsCounter {
            perspectives,
            source: Source::Private,
            shares: Shares::Pairs,
            quasi: quasi.to_vec(),
            sensitive: sensitive.to_vec(),
            skipped: Vec::new(),
            smallest: None,
            looks: None,
            parts: Vec::new(),
        };
        if violations.is_empty() { Ok(counter) } else { Err(Violations(violations)) }
    }

    /// For a released table by itself, like [`crate::verify_alone`].
    ///
    /// # Errors
    /// If the requirements don't fit the columns.
    pub fn of_release(released: &Table, asked: &[Requirement], rows_of: RowsOf) -> Result<Self, Violations> {
        let quasi = released.with_role(kohort_model::Role::Quasi);
        let Alone { perspectives, shares, skipped, violations } =
            Alone::new(released, &quasi, Asked::OfAll(asked), rows_of);
        let counter = PartsCounter {
            perspectives,
            source: Source::Released,
            shares,
            quasi,
            sensitive: released.with_role(kohort_model::Role::Sensitive),
            skipped,
            smallest: None,
            looks: None,
            parts: Vec::new(),
        };
        if violations.is_empty() { Ok(counter) } else { Err(Violations(violations)) }
    }

    /// The same, which also keeps the largest classes, at most so many.
    #[must_use]
    pub fn with_looks(self, most: usize) -> Self {
        PartsCounter { looks: Some(LargestLooks::new(most)), ..self }
    }

    /// The largest classes, as [`crate::common_looks`] orders them, if they were asked for.
    pub fn take_looks(&mut self) -> Vec<Look> {
        self.looks.as_mut().map(LargestLooks::take).unwrap_or_default()
    }

    /// Counts a part. `row_numbers` has the place of each of its rows in the table, ascending from 0. `counts` has for each column
    /// the number of nulls of the whole table, and then of rows that hold each text.
    ///
    /// # Errors
    /// If the rows can't be counted.
    pub fn count(&mut self, part: &Table, row_numbers: &[u32], counts: &[Vec<u64>]) -> Result<(), Violations> {
        if let Some(persons) = part.person_column() {
            let smallest = self.smallest.get_or_insert_with(|| SmallestClasses::new(persons.texts.len()));
            smallest.add(&self.quasi.iter().map(|&position| &part.columns[position]).collect::<Vec<_>>(), &persons.ids);
        }
        if let Some(looks) = &mut self.looks {
            looks.add(part, &self.quasi, row_numbers);
        }
        let how = (&self.perspectives, self.source, self.shares);
        let mut found = measure_from(part, &self.quasi, &self.sensitive, how, Some(counts), Vec::new())?;
        for violation in &mut found.unmet {
            if let Violation::Unmet { first_row, .. } = violation {
                *first_row = u64::from(row_numbers[*first_row as usize - 1]) + 1;
            }
        }
        self.parts.push(found);
        Ok(())
    }

    /// The findings of the table; `None` if there was no part.
    pub fn finish(self) -> Option<Findings> {
        let mut found = joined_findings(self.parts)?;
        found.skipped.extend(self.skipped);
        if let Some(smallest) = &self.smallest {
            smallest.count_in(&mut found);
        }
        // A requirement may hold in the first parts. All are listed in the order asked.
        let asked = self.perspectives.requirements();
        found.unmet.sort_by_key(|violation| match violation {
            Violation::Unmet { requirement, .. } => asked.iter().position(|asked| asked == requirement),
            _ => None,
        });
        Some(found)
    }
}
