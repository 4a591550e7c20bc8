//! [`class_size_of_rows`]: for each row, how many persons look the same.

use kohort_model::Table;

use crate::count::cells::CellIds;
use crate::count::class_sizes;
use crate::count::grouping::Classes;
use crate::count::roll::persons_of;
use crate::structure::{check_table, no_rows};
use crate::{Violation, Violations};

/// For each row, the number of persons who have its cells in the `quasi` columns, or of rows if the table names no persons.
///
/// # Errors
/// If the table can't be counted: it has no rows, or a row without a person.
///
/// # Panics
/// If a position is beyond the table's columns.
pub fn class_size_of_rows(table: &Table, quasi: &[usize]) -> Result<Vec<u32>, Violations> {
    let violations: Vec<Violation> = check_table(table).into_iter().chain(no_rows(table)).collect();
    if !violations.is_empty() {
        return Err(Violations(violations));
    }
    let persons = persons_of(table, None)?;
    let columns = quasi.iter().map(|&position| &table.columns[position]);
    let cells: Vec<CellIds<'_>> =
        columns.map(|column| CellIds::by_id(column.ids.as_slice(), column.texts.len())).collect();
    let classes = Classes::group(&cells.iter().collect::<Vec<_>>(), table.n_rows);
    let sizes = class_sizes(&classes, persons.as_ref());
    Ok(classes.class_of_rows().into_iter().map(|class| sizes[class as usize]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::{AGE, WARD, clinic};

    #[test]
    fn rows_count_the_persons_who_look_the_same() {
        // Wards: A has persons 1, 2, 5; B has 3, 4, 6; null has 5.
        assert_eq!(class_size_of_rows(&clinic(), &[WARD]).unwrap(), [3, 3, 3, 3, 3, 1, 3]);
        // Both rows of the fifth person show the same age.
        assert_eq!(class_size_of_rows(&clinic(), &[AGE]).unwrap(), [1; 7]);
        let rows = Table { person: None, ..clinic() };
        assert_eq!(class_size_of_rows(&rows, &[AGE]).unwrap(), [1, 1, 1, 1, 2, 2, 1]);
    }
}
