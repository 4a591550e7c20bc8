//! The paper's students, and the release in its table III. Tests spoil copies of them.

use kohort_model::{
    Cells, Column, Hierarchy, NULL, Release, ReleasedColumn, ReleasedTable, Requirement, Role, Schema, SchemaParent,
    SchemaTable, Table, Texts,
};

use crate::SuppressionLimit;

/// How many of the students may be left out.
pub(crate) const LIMIT: SuppressionLimit = SuppressionLimit::share(0.75);

pub(crate) const STUDENT: usize = 0;
pub(crate) const TAKES: usize = 1;
pub(crate) const BOOKS: usize = 2;

const COURSES: &str = "Math;Science;*\nPhysics;Science;*\nCS;Science;*\nHistory;Social;*\nReligion;Social;*";
const TITLES: &str = "Discrete;Math Book;*\nCalculus;Math Book;*\nDynamics;Math Book;*\nRelg. H.;Relg Book;*\n\
                      Yodaism;Relg Book;*\nAm. Hist;Hist Book;*\nOttomans;Hist Book;*";

fn table(name: &str, columns: &[(&str, Role)], rows: &[&[&str]], person: Option<usize>) -> Table {
    let column = |(position, &(name, role)): (usize, &(&str, Role))| {
        Column::from_cells(name, role, rows.iter().map(|row| Some(row[position]).filter(|cell| !cell.is_empty())))
    };
    let columns = columns.iter().enumerate().map(column).collect();
    Table { name: name.to_owned(), columns, n_rows: rows.len(), person }
}

/// Students with their grades and own k, courses and books.
pub(crate) fn students() -> Vec<Table> {
    let student = table(
        "student",
        &[("sid", Role::Key), ("gpa", Role::Sensitive), ("wish", Role::PersonK)],
        &[&["S1", "3.72", "2"], &["S2", "2.34", ""], &["S3", "3.12", "1"], &["S4", "4.00", "2"]],
        Some(0),
    );
    let mut takes = table(
        "takes",
        &[("scid", Role::Key), ("sid", Role::Key), ("course", Role::Quasi), ("grade", Role::Sensitive)],
        &[
            &["SC1", "S1", "Math", "93"],
            &["SC2", "S1", "Physics", "91"],
            &["SC3", "S1", "History", "85"],
            &["SC4", "S2", "CS", "78"],
            &["SC5", "S2", "Physics", "62"],
            &["SC6", "S2", "Religion", "42"],
            &["SC7", "S3", "History", "85"],
            &["SC8", "S3", "Religion", "75"],
            &["SC9", "S3", "Physics", "77"],
            &["SC10", "S4", "History", "98"],
            &["SC11", "S4", "Religion", "96"],
        ],
        None,
    );
    let mut books = table(
        "books",
        &[("scid", Role::Key), ("book", Role::Quasi), ("price", Role::Sensitive)],
        &[
            &["SC1", "Discrete", "63"],
            &["SC2", "Calculus", "89"],
            &["SC2", "Dynamics", "42"],
            &["SC3", "Relg. H.", "33"],
            &["SC4", "Discrete", "65"],
            &["SC5", "Dynamics", "51"],
            &["SC6", "Yodaism", "38"],
            &["SC7", "Ottomans", "49"],
            &["SC8", "Yodaism", "39"],
            &["SC9", "Calculus", "84"],
            &["SC10", "Am. Hist", "54"],
        ],
        None,
    );
    with_tree(&mut takes, 2, COURSES);
    with_tree(&mut books, 1, TITLES);
    vec![student, takes, books]
}

fn with_tree(table: &mut Table, column: usize, paths: &str) {
    let hierarchy = Hierarchy::from_paths(paths).unwrap();
    table.columns[column] = table.columns[column].clone().with_hierarchy(hierarchy);
}

pub(crate) fn schema() -> Schema {
    let table = |name: &str, key, parent| SchemaTable {
        name: name.to_owned(),
        key,
        parent,
        references: Vec::new(),
        max_rows_left_out: None,
    };
    let hangs = |table, foreign_key| Some(SchemaParent { table, foreign_key });
    Schema {
        tables: vec![
            table("student", Some(0), None),
            table("takes", Some(0), hangs(STUDENT, 1)),
            table("books", None, hangs(TAKES, 0)),
        ],
    }
}

/// Requirements that the release satisfies.
pub(crate) fn requirements() -> Vec<Vec<Requirement>> {
    let l = |column: &str| Requirement::DistinctL { column: column.to_owned(), l: 2 };
    vec![
        vec![Requirement::K(2), Requirement::PersonK { column: "wish".to_owned() }, l("gpa")],
        vec![Requirement::K(2), l("grade")],
        vec![Requirement::K(2), l("price")],
    ]
}

/// Table III with keys renumbered.
pub(crate) fn release() -> Release {
    let student = ReleasedTable {
        name: "student".to_owned(),
        rows: vec![0, 1, 2, 3],
        columns: vec![surrogate("sid", 0, vec![1, 2, 3, 4]), copied("gpa", 1)],
    };
    let courses = ["Science", "Physics", "Social", "Science", "Physics", "Social"];
    let courses = [&courses[..], &["History", "Religion", "History", "Religion"]].concat();
    let takes = ReleasedTable {
        name: "takes".to_owned(),
        rows: vec![0, 1, 2, 3, 4, 5, 6, 7, 9, 10],
        columns: vec![
            surrogate("scid", 0, (1..=10).collect()),
            surrogate("sid", 1, vec![1, 1, 1, 2, 2, 2, 3, 3, 4, 4]),
            labels("course", 2, &courses),
            copied("grade", 3),
        ],
    };
    let titles = ["Discrete", "Dynamics", "Relg Book", "Discrete", "Dynamics", "Relg Book", "Hist Book", "Hist Book"];
    let books = ReleasedTable {
        name: "books".to_owned(),
        rows: vec![0, 2, 3, 4, 5, 6, 7, 10],
        columns: vec![
            surrogate("scid", 0, vec![1, 2, 3, 4, 5, 6, 7, 9]),
            labels("book", 1, &titles),
            copied("price", 2),
        ],
    };
    Release { tables: vec![student, takes, books] }
}

pub(crate) fn surrogate(name: &str, source: usize, ids: Vec<u32>) -> ReleasedColumn {
    ReleasedColumn { name: name.to_owned(), source, cells: Cells::Surrogate { ids } }
}

pub(crate) fn copied(name: &str, source: usize) -> ReleasedColumn {
    ReleasedColumn { name: name.to_owned(), source, cells: Cells::Copied }
}

/// A generalized column with one label per cell.
pub(crate) fn labels(name: &str, source: usize, cells: &[&str]) -> ReleasedColumn {
    let labels: Texts = cells.iter().collect();
    let ids = (0..cells.len() as u32).collect();
    ReleasedColumn { name: name.to_owned(), source, cells: Cells::Recoded { labels, ids } }
}

/// The release as it would be read back from files: columns of texts.
pub(crate) fn written(release: &Release, originals: &[Table]) -> Vec<Table> {
    let read = |(table, original): (&ReleasedTable, &Table)| {
        let columns = table.columns.iter().map(|column| {
            let source = &original.columns[column.source];
            let cell = |row: usize| match &column.cells {
                Cells::Copied => source.cell(table.rows[row] as usize).map(str::to_owned),
                Cells::Surrogate { ids } => (ids[row] != NULL).then(|| ids[row].to_string()),
                Cells::Recoded { labels, ids } => (ids[row] != NULL).then(|| labels.get(ids[row]).to_owned()),
            };
            let cells: Vec<Option<String>> = (0..table.rows.len()).map(cell).collect();
            Column::from_cells(&column.name, source.role, cells.iter().map(Option::as_deref))
        });
        Table { name: table.name.clone(), columns: columns.collect(), n_rows: table.rows.len(), person: None }
    };
    release.tables.iter().zip(originals).map(read).collect()
}
