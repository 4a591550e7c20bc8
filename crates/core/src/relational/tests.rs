use kohort_model::{Cells, Column, Hierarchy, Silent};

use super::*;

const COURSES: &str = "Math;Science;*\nPhysics;Science;*\nCS;Science;*\nHistory;Social;*\nReligion;Social;*\n";
const BOOKS: &str = "Discrete;Math Book;*\nCalculus;Math Book;*\nDynamics;Math Book;*\nRelg. H.;Relg Book;*\n\
                     Yodaism;Relg Book;*\nAm. Hist;Hist Book;*\nOttomans;Hist Book;*\n";

pub(super) fn table(name: &str, person: Option<usize>, columns: Vec<Column>) -> Table {
    Table { name: name.to_owned(), n_rows: columns[0].ids.len(), columns, person }
}

pub(super) fn column<const C: usize>(name: &str, role: Role, rows: &[[&str; C]], position: usize) -> Column {
    Column::from_cells(name, role, rows.iter().map(|row| Some(row[position])))
}

pub(super) fn students() -> (Spec, Vec<Table>) {
    let student = [["S1", "3.72"], ["S2", "2.34"], ["S3", "3.12"], ["S4", "4.00"]];
    let takes = [
        ["SC1", "S1", "Math", "93"],
        ["SC2", "S1", "Physics", "91"],
        ["SC3", "S1", "History", "85"],
        ["SC4", "S2", "CS", "78"],
        ["SC5", "S2", "Physics", "62"],
        ["SC6", "S2", "Religion", "42"],
        ["SC7", "S3", "History", "85"],
        ["SC8", "S3", "Religion", "75"],
        ["SC9", "S3", "Physics", "77"],
        ["SC10", "S4", "History", "98"],
        ["SC11", "S4", "Religion", "96"],
    ];
    let books = [
        ["SC1", "Discrete", "63"],
        ["SC2", "Calculus", "89"],
        ["SC2", "Dynamics", "42"],
        ["SC3", "Relg. H.", "33"],
        ["SC4", "Discrete", "65"],
        ["SC5", "Dynamics", "51"],
        ["SC6", "Yodaism", "38"],
        ["SC7", "Ottomans", "49"],
        ["SC8", "Yodaism", "39"],
        ["SC9", "Calculus", "84"],
        ["SC10", "Am. Hist", "54"],
    ];
    let course = column("course", Role::Quasi, &takes, 2).with_hierarchy(Hierarchy::from_paths(COURSES).unwrap());
    let book = column("book", Role::Quasi, &books, 1).with_hierarchy(Hierarchy::from_paths(BOOKS).unwrap());
    let tables = vec![
        table(
            "student",
            Some(0),
            vec![column("sid", Role::Key, &student, 0), column("gpa", Role::Sensitive, &student, 1)],
        ),
        table(
            "takes",
            None,
            vec![
                column("scid", Role::Key, &takes, 0),
                column("sid", Role::Key, &takes, 1),
                course,
                column("grade", Role::Sensitive, &takes, 3),
            ],
        ),
        table(
            "books",
            None,
            vec![column("scid", Role::Key, &books, 0), book, column("price", Role::Sensitive, &books, 2)],
        ),
    ];
    let spec = Spec::parse(
        r#"
        k = 2
        algorithm = "miracle"
        [tables.student]
        file = "student.csv"
        person = "sid"
        columns = { gpa = "sensitive" }
        [tables.takes]
        file = "takes.csv"
        key = "scid"
        parent = { table = "student", foreign_key = "sid" }
        columns = { course = "quasi", grade = "sensitive" }
        [tables.books]
        file = "books.csv"
        parent = { table = "takes", foreign_key = "scid" }
        columns = { book = "quasi", price = "sensitive" }
        "#,
    );
    (spec.unwrap(), tables)
}

/// The released rows of a table, sorted, every cell as text; keys by their originals.
fn rows(released: &ReleasedTable, original: &Table) -> Vec<Vec<String>> {
    let cell = |column: &kohort_model::ReleasedColumn, place: usize| match &column.cells {
        Cells::Recoded { labels, ids } => labels.get(ids[place]).to_owned(),
        Cells::Copied | Cells::Surrogate { .. } => {
            original.columns[column.source].cell(released.rows[place] as usize).unwrap().to_owned()
        }
    };
    let mut rows: Vec<Vec<String>> = (0..released.rows.len())
        .map(|place| released.columns.iter().map(|column| cell(column, place)).collect())
        .collect();
    rows.sort();
    rows
}

#[test]
fn the_students_of_the_paper_lose_what_the_paper_says() {
    for algorithm in [Algorithm::Miracle, Algorithm::MiracleX] {
        let (mut spec, tables) = students();
        spec.algorithm = algorithm;
        let schema = Schema::of(&spec, &tables).unwrap();
        let anonymized = anonymize_tables(&tables, &schema, &spec, &Silent).unwrap();
        assert_eq!(
            rows(&anonymized.release.tables[1], &tables[1]),
            [
                ["SC1", "S1", "Science", "93"],
                ["SC10", "S4", "History", "98"],
                ["SC11", "S4", "Religion", "96"],
                ["SC2", "S1", "Physics", "91"],
                ["SC3", "S1", "Social", "85"],
                ["SC4", "S2", "Science", "78"],
                ["SC5", "S2", "Physics", "62"],
                ["SC6", "S2", "Social", "42"],
                ["SC7", "S3", "History", "85"],
                ["SC8", "S3", "Religion", "75"],
            ]
        );
        assert_eq!(
            rows(&anonymized.release.tables[2], &tables[2]),
            [
                ["SC1", "Discrete", "63"],
                ["SC10", "Hist Book", "54"],
                ["SC2", "Dynamics", "42"],
                ["SC3", "Relg Book", "33"],
                ["SC4", "Discrete", "65"],
                ["SC5", "Dynamics", "51"],
                ["SC6", "Relg Book", "38"],
                ["SC7", "Hist Book", "49"],
            ]
        );
        assert!((anonymized.loss.lm - (37.0 / 6.0) / 22.0).abs() < 1e-12, "{}", anonymized.loss.lm);
        assert_eq!(anonymized.loss.dm, 8.0);
    }
}
