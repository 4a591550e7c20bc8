//! Attacks by somebody with a list of names, who looks for the rows of everybody on it.

use std::fmt::Write as _;

use super::people::{COLUMNS, LIST, N_PERSONS, spec, town, town_job};
use super::published::Published;
use super::{Attack, Count, Promise, Side, System};
use crate::random::Random;
use crate::scenario::Scenario;

/// The k of the releases here.
const K: usize = 5;

pub(super) const ATTACKS: &[Attack] = &[
    Attack {
        name: "join with a list",
        system: System::Tables,
        knows: "name, age, postcode and sex of everybody",
        does: "looks for the rows that fit each person of the list",
        success: "persons whom fewer than 5 rows fit",
        run: join_with_a_list,
    },
    Attack {
        name: "many rows of one person",
        system: System::Tables,
        knows: "age and postcode of every patient, by name",
        does: "looks for classes that fit few patients",
        success: "patients who are in a class that fits fewer than 5",
        run: many_rows_of_one_person,
    },
    Attack {
        name: "who was left out",
        system: System::Tables,
        knows: "age, postcode and sex of everybody, and that they are in the table",
        does: "looks for persons whom no row fits",
        success: "persons known to be left out, and therefore to be unusual",
        run: who_was_left_out,
    },
    Attack {
        name: "classes after leaving out",
        system: System::Tables,
        knows: "name, age, postcode and sex of everybody, and that some with a frequent illness were left out",
        does: "looks for the rows that fit each person",
        success: "persons whom 1 to 4 rows fit",
        run: classes_after_leaving_out,
    },
];

/// Persons whom between 1 and k-1 rows fit.
fn found(published: &Published<'_>) -> Count {
    let seen = published.seen_with(&LIST);
    Count::of((0..N_PERSONS).map(|person| (1..K).contains(&seen.rows_of(person).len())))
}

fn join_with_a_list() -> Vec<Side> {
    let job = town_job("k = 5", "\"sensitive\"");
    vec![
        Side::naive("names removed", found(&Published::without_names(&job.loaded.table))),
        Side::kohort("`k = 5`", Promise::Nobody, found(&Published::of(&job))),
    ]
}

/// Patients with one to nine visits each, and a job on them.
fn visits(person: &str) -> Scenario {
    let mut random = Random::new(3);
    let mut text = "patient,age,postcode,illness\n".to_owned();
    for patient in 0..150 {
        let (age, postcode) = (18 + random.below(70), 88_000 + random.below(40));
        for _ in 0..=random.below(9) {
            let illness = random.pick(&["flu", "gout", "cold", "ulcer"]);
            writeln!(text, "p{patient:03},{age},{postcode},{illness}").expect("texts can be written to");
        }
    }
    let columns = "age = \"quasi\"\nillness = \"sensitive\"\n\
                   postcode = { role = \"quasi\", type = \"text\", hierarchy = { mask = \"right\" } }";
    let spec = match person {
        "" => spec("k = 5", &format!("patient = \"drop\"\n{columns}")),
        person => spec("k = 5", columns).replace("[tables.t.columns]", &format!("{person}\n[tables.t.columns]")),
    };
    Scenario::new(&text, &spec)
}

fn many_rows_of_one_person() -> Vec<Side> {
    let named = visits("person = \"patient\"");
    let patients = named.loaded.table.column("patient").expect("patients are named");
    // The row of each patient from which the attacker's list is made.
    let n_rows = named.loaded.table.n_rows;
    let is_first = |&row: &usize| (0..row).all(|other| patients.ids[other] != patients.ids[row]);
    let first_rows: Vec<usize> = (0..n_rows).filter(is_first).collect();
    let alone = |job: &Scenario| {
        let published = Published::of(job);
        let seen = published.seen_with(&LIST[..2]);
        let n_fitting: Vec<usize> = seen
            .looks
            .iter()
            .map(|look| first_rows.iter().filter(|&&patient| seen.fits(look, patient)).count())
            .collect();
        let is_alone = |&patient: &usize| {
            let looks = seen.looks.iter().zip(&n_fitting).filter(|(look, _)| seen.fits(look, patient));
            looks.into_iter().any(|(_, &n)| n < K)
        };
        Count::of(first_rows.iter().map(is_alone))
    };
    vec![
        Side::naive("`k = 5`, rows counted as persons", alone(&visits(""))),
        Side::kohort("`k = 5` with `person`", Promise::Nobody, alone(&named)),
    ]
}

fn who_was_left_out() -> Vec<Side> {
    // The town, and three old people who live far away and want to hide among more people than there are.
    let people = town(N_PERSONS, 22);
    let mut lines = people.lines();
    let mut people = format!("{},wish\n", lines.next().unwrap_or_default());
    lines.for_each(|line| people += &format!("{line},5\n"));
    for stranger in 0..3 {
        writeln!(people, "s{stranger},{},{},f,flu,1000", 95 + 4 * stranger, 99_100 + 111 * stranger)
            .expect("texts can be written to");
    }
    let gaps = |settings: &str, wish: &str| {
        let job = Scenario::new(&people, &spec(settings, &format!("{COLUMNS}illness = \"sensitive\"\nwish = {wish}")));
        let seen = Published::of(&job).seen_with(&LIST);
        Count::of((0..job.loaded.table.n_rows).map(|person| seen.rows_of(person).is_empty()))
    };
    vec![
        Side::kohort(
            "`person_k` with `max_suppressed = 0.02`",
            Promise::Nothing("leave nobody out; no cell of theirs shows"),
            gaps("k = 5\nmax_suppressed = 0.02", "\"person_k\""),
        ),
        Side::kohort("`k = 5`, nobody left out", Promise::Nobody, gaps("k = 5", "\"drop\"")),
    ]
}

fn classes_after_leaving_out() -> Vec<Side> {
    let settings = "k = 5\nalgorithm = \"mondrian\"";
    let job = town_job(settings, "\"sensitive\"");
    // The careless publisher deletes every third row with a frequent illness from the finished release.
    let mut careless = Published::of(&job);
    careless.delete(|row, published| row % 3 == 0 && ["flu", "gout"].contains(&published.cell(row, "illness")));
    let suppressing = format!("{settings}\nmax_suppressed = 0.3");
    let ours = town_job(&suppressing, "{ role = \"sensitive\", alpha = 0.2 }");
    let published = Published::of(&ours);
    assert!(published.n_rows() < N_PERSONS, "nobody was left out, so nothing is attacked");
    vec![
        Side::naive("`k = 5`, then rows deleted", found(&careless)),
        Side::kohort("`alpha = 0.2`, `max_suppressed = 0.3`", Promise::Nobody, found(&published)),
    ]
}
