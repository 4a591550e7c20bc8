//! Attacks by somebody who reads two releases of the same people together.

use kohort_model::spec::Order;
use kohort_model::{Column, Role, Table};
use kohort_verify::{AuditedRelease, Knows, audit};

use super::people::{LIST, N_PERSONS, spec, town, town_job};
use super::published::Published;
use super::{Attack, Count, Promise, Side, System};
use crate::scenario::Scenario;

pub(super) const ATTACKS: &[Attack] = &[
    Attack {
        name: "two releases",
        system: System::Tables,
        knows: "age, postcode and sex of everybody, and that they are in both releases",
        does: "looks for illnesses that occur among the rows that fit in both releases",
        success: "persons for whom only one illness remains",
        run: two_releases,
    },
    Attack {
        name: "sorted releases that pass an audit",
        system: System::Tables,
        knows: "age and postcode of everybody, and two sorted releases that passed an audit",
        does: "reads what both say about each person",
        success: "persons who are left among fewer than 5, and whom the audit called safe",
        run: sorted_releases,
    },
];

/// A job on the town that releases some of the quasi columns.
fn release_of(columns: &[&str], settings: &str, illness: &str) -> Scenario {
    let mut text = "name = \"identifier\"\n".to_owned();
    for column in LIST {
        let role = if columns.contains(&column) { "quasi" } else { "drop" };
        let more = match column {
            "postcode" => ", type = \"text\", hierarchy = { mask = \"right\" }",
            "sex" => ", hierarchy = \"flat\"",
            _ => "",
        };
        let more = if role == "drop" { "" } else { more };
        text += &format!("{column} = {{ role = \"{role}\"{more} }}\n");
    }
    Scenario::new(&town(N_PERSONS, 22), &spec(settings, &format!("{text}illness = {illness}")))
}

fn two_releases() -> Vec<Side> {
    const ASKED: &str = "{ role = \"sensitive\", l = 3 }";
    let (first, second) = (release_of(&LIST[..2], "k = 5", ASKED), release_of(&["age", "sex"], "k = 5", ASKED));
    let (first, second) = (Published::of(&first), Published::of(&second));
    let (by_first, by_second) = (first.seen_with(&LIST[..2]), second.seen_with(&["age", "sex"]));
    let remain = |person: usize| {
        let (one, other) = (by_first.rows_of(person), by_second.rows_of(person));
        first.values(&one, "illness").intersection(&second.values(&other, "illness")).count()
    };
    let both = Count::of((0..N_PERSONS).map(|person| remain(person) == 1));
    let once = town_job("k = 5", ASKED);
    let once = Published::of(&once);
    let by_once = once.seen_with(&LIST);
    let alone = Count::of((0..N_PERSONS).map(|person| once.values(&by_once.rows_of(person), "illness").len() == 1));
    vec![
        Side::kohort(
            "two releases, each with `k = 5`, `l = 3`",
            Promise::Nothing("release once, or `kohort audit`"),
            both,
        ),
        Side::kohort("one release of all columns", Promise::Nobody, alone),
    ]
}

/// The cells of a column as a table of its own, in the order of the release.
fn column_of(published: &Published<'_>, column: &Column) -> Table {
    let cells = (0..published.n_rows()).map(|row| Some(published.cell(row, &column.name)));
    let read = Column::from_cells(&column.name, Role::Quasi, cells);
    let read = Column { texts: read.texts, ids: read.ids, ..column.clone() };
    Table { name: column.name.clone(), columns: vec![read], n_rows: published.n_rows(), person: None }
}

fn sorted_releases() -> Vec<Side> {
    let jobs = ["age", "postcode"].map(|column| release_of(&[column], "k = 20", "\"drop\""));
    let published = [Published::of(&jobs[0]), Published::of(&jobs[1])];
    // A reader of both releases keeps the rows that fit a person in the one and in the other.
    let of_person = |person: usize| -> Vec<Vec<usize>> {
        let seen = published.iter().zip(["age", "postcode"]);
        seen.map(|(published, column)| published.seen_with(&[column]).rows_of(person)).collect()
    };
    let classes: Vec<Vec<Vec<usize>>> = (0..N_PERSONS).map(of_person).collect();
    let is_alone = |person: &usize| classes.iter().filter(|other| **other == classes[*person]).count() < 5;
    let n_alone = (0..N_PERSONS).filter(is_alone).count() as u64;
    let audited = |order: Option<Order>| {
        let releases: Vec<AuditedRelease> = published
            .iter()
            .zip(&jobs)
            .map(|(published, job)| {
                let column = job.loaded.table.columns.iter().find(|column| column.role == Role::Quasi);
                AuditedRelease { table: column_of(published, column.expect("one is released")), order }
            })
            .collect();
        let knows = Knows { audience: "reader".to_owned(), columns: vec!["age".to_owned(), "postcode".to_owned()] };
        let n_warned = match audit(&releases, &[knows], Some(5)) {
            Ok(found) => found.audiences[0].together.below_k.unwrap_or(0),
            // If the audit gives no verdict, nobody counts as safe.
            Err(_) => n_alone,
        };
        Count { tried: n_alone, succeeded: n_alone.saturating_sub(n_warned), by_chance: 0.0 }
    };
    vec![
        Side::naive("rows matched by their order", audited(None)),
        Side::kohort("`kohort audit` refuses to match sorted rows", Promise::Nobody, audited(Some(Order::Sorted))),
    ]
}
