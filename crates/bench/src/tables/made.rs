//! Made databases whose shapes are hard: few policies with claims, very many rows per person, many child tables.

use std::error::Error;

use kohort_model::{Column, Role, Schema, Spec, Table, ValueType};
use kohort_testkit::random::Random;

/// Tables, how they are released, and how they are linked.
pub(super) type Private = (Vec<Table>, Spec, Schema);

const N_POLICIES: usize = 100_000;
const N_CLAIMS: usize = 14_243;

/// 100,000 policies of six columns, of which few have claims of two.
pub(super) fn policies() -> Result<Private, Box<dyn Error>> {
    let mut random = Random::new(14_243);
    let columns = ["age", "sex", "region", "vehicle_age", "power", "bonus"];
    let widths = [63, 2, 20, 21, 12, 30];
    let mut tables = vec![persons("policy", N_POLICIES)];
    for (name, width) in columns.into_iter().zip(widths) {
        // The smaller of two draws, so that some values are much more frequent than others.
        let cells = (0..N_POLICIES).map(|_| random.below(width).min(random.below(width)));
        tables[0].columns.push(numbers(name, cells));
    }
    let mut of_policy = Vec::with_capacity(N_CLAIMS);
    while of_policy.len() < N_CLAIMS {
        let policy = random.below(N_POLICIES);
        let n_claims = if random.below(10) == 0 { 2 } else { 1 };
        of_policy.extend(std::iter::repeat_n(policy, n_claims.min(N_CLAIMS - of_policy.len())));
    }
    tables.push(child("claim", "policy", &of_policy, &[("kind", 8), ("month", 12)], &mut random));
    linked(tables, &[("claim", "policy")])
}

/// 30 persons with 5,000 rows each.
pub(super) fn long() -> Result<Private, Box<dyn Error>> {
    let mut random = Random::new(5000);
    let of_person: Vec<usize> = (0..30 * 5000).map(|row| row / 5000).collect();
    let mut tables = vec![persons("person", 30)];
    tables[0].columns.push(numbers("age", (0..30).map(|_| random.below(50))));
    tables.push(child("reading", "person", &of_person, &[("minute", 100_000)], &mut random));
    linked(tables, &[("reading", "person")])
}

/// 200 persons with rows in twelve tables, some of which hang off others.
pub(super) fn wide() -> Result<Private, Box<dyn Error>> {
    const PARENTS: [&str; 12] = ["person", "person", "person", "t0", "t0", "t1", "t1", "t2", "t2", "t3", "t5", "t7"];
    const NAMES: [&str; 12] = ["t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "t9", "t10", "t11"];
    let mut random = Random::new(12);
    let mut tables = vec![persons("person", 200)];
    tables[0].columns.push(numbers("age", (0..200).map(|_| random.below(50))));
    let links: Vec<(&str, &str)> = NAMES.into_iter().zip(PARENTS).collect();
    for &(name, parent) in &links {
        let n_parents = tables.iter().find(|table| table.name == parent).map_or(0, |table| table.n_rows);
        let rows = (0..n_parents).flat_map(|row| std::iter::repeat_n(row, 1 + random.below(4))).collect::<Vec<_>>();
        tables.push(child(name, parent, &rows, &[("q", 50)], &mut random));
    }
    linked(tables, &links)
}

fn persons(name: &str, n: usize) -> Table {
    let key = Column::from_cells(
        "id",
        Role::Key,
        (0..n).map(|row| row.to_string()).collect::<Vec<_>>().iter().map(|cell| Some(cell.as_str())),
    );
    Table { name: name.to_owned(), columns: vec![key], n_rows: n, person: Some(0) }
}

/// A table below another: for each row the row above it, and quasi columns with this many values.
fn child(name: &str, parent: &str, parents: &[usize], columns: &[(&str, usize)], random: &mut Random) -> Table {
    let text = |name: &str, cells: Vec<String>| {
        Column::from_cells(name, Role::Key, cells.iter().map(|cell| Some(cell.as_str())))
    };
    let key = text("id", (0..parents.len()).map(|row| row.to_string()).collect());
    let foreign_key = text(&format!("of_{parent}"), parents.iter().map(usize::to_string).collect());
    let mut table =
        Table { name: name.to_owned(), columns: vec![key, foreign_key], n_rows: parents.len(), person: None };
    for &(name, width) in columns {
        table.columns.push(numbers(name, (0..parents.len()).map(|_| random.below(width))));
    }
    table
}

fn numbers(name: &str, cells: impl Iterator<Item = usize>) -> Column {
    let cells: Vec<String> = cells.map(|cell| cell.to_string()).collect();
    let mut column = Column::from_cells(name, Role::Quasi, cells.iter().map(|cell| Some(cell.as_str())));
    column.value_type = ValueType::Integer;
    column
}

/// The spec of tables, the first of which is the table of persons.
fn linked(tables: Vec<Table>, links: &[(&str, &str)]) -> Result<Private, Box<dyn Error>> {
    let mut text = "k = 5\n".to_owned();
    for table in &tables {
        let name = &table.name;
        text += &format!("[tables.{name}]\nfile = \"{name}.csv\"\n");
        text += &match links.iter().find(|(child, _)| child == name) {
            None => "person = \"id\"\nchildless = \"keep\"\n".to_owned(),
            Some((_, parent)) => {
                format!("key = \"id\"\nparent = {{ table = \"{parent}\", foreign_key = \"of_{parent}\" }}\n")
            }
        };
        let quasi = table.columns.iter().filter(|column| column.role == Role::Quasi);
        let quasi: Vec<String> = quasi.map(|column| format!("{} = \"quasi\"", column.name)).collect();
        text += &format!("columns = {{ {} }}\n", quasi.join(", "));
    }
    let spec = Spec::parse(&text)?;
    let schema = Schema::of(&spec, &tables)?;
    Ok((tables, spec, schema))
}
