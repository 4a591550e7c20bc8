//! [`verify_tables_alone`]: what released files of many tables show by themselves.

use kohort_model::{NULL, Requirement, Role, Table};

use super::count::{CountedColumns, count_tables};
use super::forest::Forest;
use super::keys::KeyCells;
use super::shape::{LinkKind, ReleasedLink, Shape, same_count};
use crate::count::cells::CellIds;
use crate::structure::{check_table, no_rows, place};
use crate::{Findings, Skipped, Violation, Violations};

/// Verifies released tables by themselves: each row must join with one row of its parent table, and every orbit must
/// satisfy every requirement. The roles of columns say which are quasi and sensitive. A table without a parent is a
/// person table. Persons' own k is never released, so a requirement on it is listed in [`Findings::skipped`].
///
/// # Errors
/// Every requirement that some class does not satisfy, or the faults that make it impossible to join and count the
/// tables.
pub fn verify_tables_alone(
    released: &[Table],
    links: &[ReleasedLink],
    requirements: &[Vec<Requirement>],
) -> Result<Findings, Violations> {
    let shape = Shape::of_links(links, released).map_err(Violations)?;
    let unused = keys_that_join_nothing(released, &shape);
    if unused.is_empty() { count(released, &shape, requirements) } else { Err(Violations(unused)) }
}

/// For each row of released tables, the row of the person table to which it belongs.
///
/// # Errors
/// The faults that make it impossible to join the tables.
pub fn persons_of_rows(released: &[Table], links: &[ReleasedLink]) -> Result<Vec<Vec<u32>>, Violations> {
    let shape = Shape::of_links(links, released).map_err(Violations)?;
    let forest = join_read(released, &shape).map_err(Violations)?;
    Ok(forest.persons(&shape))
}

/// Counts tables as if they were released unchanged. References are left out, because with them hardly anybody would
/// look the same as anybody else.
///
/// # Errors
/// The faults that make it impossible to join and count the tables.
pub fn measure_tables(tables: &[Table], links: &[ReleasedLink]) -> Result<Findings, Violations> {
    let links: Vec<ReleasedLink> = links.iter().filter(|link| link.kind == LinkKind::Parent).cloned().collect();
    let shape = Shape::of_links(&links, tables).map_err(Violations)?;
    count(tables, &shape, &vec![Vec::new(); tables.len()])
}

fn count(released: &[Table], shape: &Shape, requirements: &[Vec<Requirement>]) -> Result<Findings, Violations> {
    same_count("the requirements", requirements.len(), released.len()).map_err(Violations)?;
    let mut violations = check_tables(released, shape);
    if !violations.is_empty() {
        return Err(Violations(violations));
    }
    let forest = join_read(released, shape).map_err(Violations)?;
    let mut skipped = Vec::new();
    let mut rolls = Vec::with_capacity(released.len());
    for (table, read) in released.iter().enumerate() {
        skipped.extend(requirements[table].iter().filter_map(Skipped::own_k));
        let quasi = read.with_role(Role::Quasi).into_iter().map(|position| &read.columns[position]);
        let quasi = quasi.map(|column| CellIds::by_text(&column.ids, &column.texts)).collect();
        let copied = read.columns.iter().map(|column| (column, column)).collect();
        let columns = CountedColumns { quasi, copied, rows: None };
        rolls.push(columns.roll(read, &shape.of(table), &requirements[table], &mut violations));
    }
    if !violations.is_empty() {
        return Err(Violations(violations));
    }
    let mut findings = count_tables(shape, &forest, rolls)?;
    if !findings.unmet.is_empty() {
        return Err(Violations(findings.unmet));
    }
    findings.skipped = skipped;
    Ok(findings)
}

/// The faults that make it impossible to count tables that were read.
pub(crate) fn check_tables(read: &[Table], shape: &Shape) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (position, table) in read.iter().enumerate() {
        violations.extend(check_table(table).into_iter().map(|violation| violation.in_table(&table.name)));
        violations.extend(no_rows(table).filter(|_| shape.is_of_persons(position)));
    }
    violations
}

/// Key columns that join no tables. Their values could tell persons apart, and no class would count that.
fn keys_that_join_nothing(read: &[Table], shape: &Shape) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (position, table) in read.iter().enumerate() {
        let joins = |key: &usize| {
            shape.key(position) == Some(*key)
                || shape.link(position).is_some_and(|link| link.foreign_key == *key)
                || shape.references(position).iter().any(|reference| reference.column == *key)
        };
        let unused = table.with_role(Role::Key).into_iter().filter(|key| !joins(key));
        let unused = unused.map(|key| Violation::KeyJoinsNothing { column: table.columns[key].name.clone() });
        violations.extend(unused.map(|violation| violation.in_table(&table.name)));
    }
    violations
}

/// The rows of released tables that were read, as trees.
///
/// # Errors
/// Keys that do not tell rows apart, and rows without a parent.
pub(crate) fn join_read(read: &[Table], shape: &Shape) -> Result<Forest, Vec<Violation>> {
    let mut violations = Vec::new();
    let mut parents = vec![Vec::new(); read.len()];
    for &table in &shape.top_down {
        if let Some(key) = shape.key(table) {
            let key = &read[table].columns[key];
            if let Some((n, first_row)) = KeyCells::of_column(key).unusable() {
                let violation = Violation::ReleasedKeys { column: key.name.clone(), n, first_row };
                violations.push(violation.in_table(&read[table].name));
            }
        }
        let Some(link) = shape.link(table) else { continue };
        let foreign_key = &read[table].columns[link.foreign_key];
        let key = KeyCells::of_column(&read[link.parent].columns[link.key]);
        let met = KeyCells::of_column(foreign_key).join(&key);
        if let Some((n, first_row)) = place(met.len(), |row| met[row] == NULL) {
            let (column, parent) = (foreign_key.name.clone(), read[link.parent].name.clone());
            let violation = Violation::WithoutParent { column, parent, n, first_row };
            violations.push(violation.in_table(&read[table].name));
        }
        parents[table] = met;
    }
    let mut targets = Vec::with_capacity(read.len());
    for (table, own) in read.iter().enumerate() {
        let mut of_table = Vec::new();
        for reference in shape.references(table) {
            let column = &own.columns[reference.column];
            let target = &read[reference.table];
            let named = KeyCells::of_column(column).join(&KeyCells::of_column(&target.columns[reference.key]));
            if let Some((n, first_row)) = place(named.len(), |row| named[row] == NULL && column.ids[row] != NULL) {
                let (column, target) = (column.name.clone(), target.name.clone());
                violations.push(Violation::WithoutTarget { column, target, n, first_row }.in_table(&own.name));
            }
            of_table.push(named);
        }
        targets.push(of_table);
    }
    let n_rows = read.iter().map(|table| table.n_rows).collect();
    if violations.is_empty() { Ok(Forest { n_rows, parents, targets }) } else { Err(violations) }
}

#[cfg(test)]
mod tests {
    use super::super::cases::{BOOKS, STUDENT, TAKES, release, requirements, schema, students, written};
    use super::*;

    fn links() -> Vec<ReleasedLink> {
        ReleasedLink::of(&schema(), &students())
    }

    fn spoiled(spoil: impl FnOnce(&mut [Table])) -> Vec<Violation> {
        let mut files = written(&release(), &students());
        spoil(&mut files);
        verify_tables_alone(&files, &links(), &requirements()).unwrap_err().0
    }

    #[test]
    fn files_show_by_themselves_what_the_release_satisfies() {
        let files = written(&release(), &students());
        let findings = verify_tables_alone(&files, &links(), &requirements()).unwrap();
        assert_eq!((findings.k, findings.classes, findings.persons, findings.rows), (2, 2, 4, 22));
        assert_eq!(findings.skipped, [Skipped::PersonK { column: "wish".to_owned() }]);
        assert_eq!(findings.suppressed, None);
        assert_eq!(findings.tables[TAKES].sensitive[0].column, "grade");
        assert_eq!(findings.tables[STUDENT].k, Some(2));
    }

    #[test]
    fn the_order_of_tables_and_rows_does_not_matter() {
        let mut files = written(&release(), &students());
        for column in &mut files[TAKES].columns {
            column.ids.reverse();
        }
        files.swap(STUDENT, BOOKS);
        let asked: Vec<_> = requirements().into_iter().rev().collect();
        assert_eq!(verify_tables_alone(&files, &links(), &asked).unwrap().k, 2);
    }

    #[test]
    fn rows_that_join_with_nothing_or_with_two_are_found() {
        let lost = spoiled(|files| files[TAKES].columns[1].ids[4] = NULL);
        let (column, parent) = ("sid".to_owned(), "student".to_owned());
        assert_eq!(lost, [Violation::WithoutParent { column, parent, n: 1, first_row: 5 }.in_table("takes")]);
        let twice = spoiled(|files| files[STUDENT].columns[0].ids[3] = 0);
        let repeated = Violation::ReleasedKeys { column: "sid".to_owned(), n: 1, first_row: 4 }.in_table("student");
        assert_eq!(twice[0], repeated);
    }

    #[test]
    fn a_child_that_moved_makes_its_parents_stand_out() {
        let moved = spoiled(|files| files[TAKES].columns[1].ids[9] = files[TAKES].columns[1].ids[7]);
        let k = |violation: &Violation| {
            matches!(violation, Violation::InTable { violation, .. }
            if matches!(**violation, Violation::Unmet { requirement: Requirement::K(2), n_classes: 2, .. }))
        };
        assert!(moved.iter().any(k), "{moved:?}");
    }

    #[test]
    fn a_key_that_joins_no_tables_is_found() {
        let unused = spoiled(|files| files[TAKES].columns[3].role = Role::Key);
        assert_eq!(unused, [Violation::KeyJoinsNothing { column: "grade".to_owned() }.in_table("takes")]);
    }

    #[test]
    fn links_name_tables_and_columns_that_are_there() {
        let files = written(&release(), &students());
        let broken = |spoil: &dyn Fn(&mut ReleasedLink)| {
            let mut links = links();
            spoil(&mut links[1]);
            verify_tables_alone(&files, &links, &requirements()).unwrap_err().0
        };
        let of = |table: &str| vec![Violation::BrokenLink.in_table(table)];
        assert_eq!(broken(&|link| link.key = "nothing".to_owned()), of("books"));
        assert_eq!(broken(&|link| link.foreign_key = "nothing".to_owned()), of("books"));
        assert_eq!(broken(&|link| link.parent = "nothing".to_owned()), of("books"));
        assert_eq!(broken(&|link| link.child = "nothing".to_owned()), of("nothing"));
        let second = broken(&|link| {
            link.child = "takes".to_owned();
            link.parent = "student".to_owned();
        });
        assert_eq!(second, of("takes"), "a table has one parent");
    }

    #[test]
    fn a_table_of_persons_that_is_empty_satisfies_nothing() {
        let empty = spoiled(|files| {
            for file in files {
                file.n_rows = 0;
                file.columns.iter_mut().for_each(|column| column.ids.clear());
            }
        });
        assert_eq!(empty, [Violation::NoRows { table: "student".to_owned() }]);
    }
}
