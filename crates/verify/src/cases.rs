//! A small clinic and a true release of it. Tests spoil copies of them.

use kohort_model::{
    Cells, Column, Hierarchy, Release, ReleasedColumn, ReleasedTable, Requirement, Role, Table, Texts, ValueType,
};

use crate::SuppressionLimit;

/// How many of the clinic's persons may be left out.
pub(crate) const LIMIT: SuppressionLimit = SuppressionLimit::share(0.5);

/// Positions of the clinic's columns.
pub(crate) const ID: usize = 0;
pub(crate) const NAME: usize = 1;
pub(crate) const AGE: usize = 2;
pub(crate) const ZIP: usize = 3;
pub(crate) const DISEASE: usize = 4;
pub(crate) const WARD: usize = 5;
pub(crate) const WISH: usize = 6;

/// Six persons, the fifth with two rows.
pub(crate) fn clinic() -> Table {
    let tree = "88512;885**;*****\n88513;885**;*****\n90210;902**;*****\n90211;902**;*****";
    let cells = |column: usize| {
        let rows = [
            ["1", "Ann", "21", "88512", "flu", "A", "2"],
            ["2", "Bob", "24", "88513", "cold", "A", ""],
            ["3", "Cyd", "29", "88512", "flu", "B", "3"],
            ["4", "Dan", "41", "90210", "cold", "B", "2"],
            ["5", "Eve", "45", "90211", "flu", "A", "2"],
            ["5", "Eve", "45", "90210", "angina", "", "2"],
            ["6", "Fay", "", "90210", "angina", "B", ""],
        ];
        rows.map(|row| Some(row[column]).filter(|cell| !cell.is_empty()))
    };
    let columns = vec![
        Column::from_cells("id", Role::Key, cells(ID)),
        Column::from_cells("name", Role::Identifier, cells(NAME)),
        Column::from_cells("age", Role::Quasi, cells(AGE)).typed(ValueType::Integer),
        Column::from_cells("zip", Role::Quasi, cells(ZIP)).with_hierarchy(Hierarchy::from_paths(tree).unwrap()),
        Column::from_cells("disease", Role::Sensitive, cells(DISEASE)),
        Column::from_cells("ward", Role::Plain, cells(WARD)),
        Column::from_cells("wish", Role::PersonK, cells(WISH)),
    ];
    Table { name: "clinic".to_owned(), columns, n_rows: 7, person: Some(ID) }
}

/// Two classes of three and two persons; the sixth person, in the last row, is left out.
pub(crate) fn clinic_release() -> Release {
    let ids = vec![0, 0, 0, 1, 1, 1];
    let columns = vec![
        recoded("age", AGE, &["[21,29]", "[41,45]"], ids.clone()),
        recoded("zip", ZIP, &["885**", "902**"], ids),
        ReleasedColumn { name: "disease".to_owned(), source: DISEASE, cells: Cells::Copied },
        ReleasedColumn { name: "ward".to_owned(), source: WARD, cells: Cells::Copied },
    ];
    let table = ReleasedTable { name: "clinic".to_owned(), rows: vec![2, 0, 1, 4, 3, 5], columns };
    Release { tables: vec![table] }
}

/// Requirements that the release satisfies.
pub(crate) fn clinic_requirements() -> Vec<Requirement> {
    vec![
        Requirement::K(2),
        Requirement::PersonK { column: "wish".to_owned() },
        Requirement::DistinctL { column: "disease".to_owned(), l: 2 },
    ]
}

/// A generalized column with these labels.
pub(crate) fn recoded(name: &str, source: usize, labels: &[&str], ids: Vec<u32>) -> ReleasedColumn {
    let labels: Texts = labels.iter().collect();
    ReleasedColumn { name: name.to_owned(), source, cells: Cells::Recoded { labels, ids } }
}

/// The release as it would be read back from a file: columns of texts.
pub(crate) fn written(release: &Release, original: &Table) -> Table {
    let table = &release.tables[0];
    let columns = table.columns.iter().map(|column| {
        let source = &original.columns[column.source];
        let cells: Vec<Option<String>> = (0..table.rows.len())
            .map(|row| match &column.cells {
                Cells::Copied => source.cell(table.rows[row] as usize).map(str::to_owned),
                Cells::Surrogate { ids } => Some(ids[row].to_string()),
                Cells::Recoded { labels, ids } => {
                    (ids[row] != kohort_model::NULL).then(|| labels.get(ids[row]).to_owned())
                }
            })
            .collect();
        Column::from_cells(&column.name, source.role, cells.iter().map(Option::as_deref))
    });
    Table { name: table.name.clone(), columns: columns.collect(), n_rows: table.rows.len(), person: None }
}
