//! Attacks on one release for several audiences: by one of them, and by all together.

use kohort_core::audiences::anonymize_audiences;
use kohort_model::{Audience, Audiences, Coalition, Column, Requirement, Role, Silent, Spec, Table, ValueType};
use kohort_verify::{SuppressionLimit, verify_release};

use super::published::Published;
use super::{Attack, Count, Promise, Side, System};
use crate::random::Random;

pub(super) const ATTACKS: &[Attack] = &[
    Attack {
        name: "join by one audience",
        system: System::Audiences,
        knows: "age and car of everybody: the columns of the insurer",
        does: "looks for the rows that fit each person",
        success: "persons whom fewer than 4 rows fit",
        run: one_audience,
    },
    Attack {
        name: "collusion: who it is",
        system: System::Audiences,
        knows: "age, car and job of everybody: the columns of both audiences",
        does: "looks for the rows that fit each person",
        success: "persons whom fewer than 3 rows fit",
        run: collusion_of_identity,
    },
    Attack {
        name: "collusion: what they have",
        system: System::Audiences,
        knows: "age, car and job of everybody: the columns of both audiences",
        does: "reads the illnesses of the rows that fit each person",
        success: "persons whose illness is the only one",
        run: collusion_of_values,
    },
    Attack {
        name: "columns of others",
        system: System::Audiences,
        knows: "age and car of everybody: the columns of the insurer",
        does: "reads the jobs of the rows that fit each person, which only the office knows",
        success: "persons whose job is the only one, and no range",
        run: columns_of_others,
    },
];

const N_PERSONS: usize = 300;
const INSURER: [&str; 2] = ["age", "car"];
const OFFICE: [&str; 2] = ["job", "age"];
const BOTH: [&str; 3] = ["job", "age", "car"];

/// People with numbers for jobs and cars. The largest cars are driven by chauffeurs, and one illness is frequent.
fn people() -> Table {
    let mut random = Random::new(17);
    let mut numbers = |n: usize| -> Vec<usize> { (0..N_PERSONS).map(|_| random.below(n)).collect() };
    let (jobs, ages, cars, illnesses) = (numbers(20), numbers(50), numbers(20), numbers(10));
    let jobs = jobs.iter().zip(&cars).map(|(&job, &car)| if car < 17 { job } else { 7 }).collect();
    let illnesses = illnesses.iter().map(|&illness| if illness < 5 { illness } else { 0 }).collect();
    let column = |name: &str, role: Role, numbers: Vec<usize>| {
        let value_type = if role == Role::Quasi { ValueType::Integer } else { ValueType::Text };
        let texts: Vec<String> = numbers.iter().map(usize::to_string).collect();
        Column::from_cells(name, role, texts.iter().map(|text| Some(text.as_str()))).typed(value_type)
    };
    let columns = vec![
        column("job", Role::Quasi, jobs),
        column("age", Role::Quasi, ages),
        column("car", Role::Quasi, cars),
        column("illness", Role::Sensitive, illnesses),
    ];
    Table { name: "t".to_owned(), columns, n_rows: N_PERSONS, person: None }
}

fn distinct(column: &str, l: u32) -> Requirement {
    Requirement::DistinctL { column: column.to_owned(), l }
}

fn audience(name: &str, columns: &[&str], requirements: Vec<Requirement>) -> Audience {
    Audience { name: name.to_owned(), quasi: columns.iter().map(|&column| column.to_owned()).collect(), requirements }
}

/// The insurer and the office, each with these requirements.
fn both(requirements: &[Requirement]) -> Audiences {
    let of = |name, columns| audience(name, columns, requirements.to_vec());
    Audiences::new(vec![of("insurer", &INSURER), of("office", &OFFICE)])
}

/// The insurer and the office, with requirements for each and for both together.
fn colluding(requirements: &[Requirement], together: Vec<Requirement>) -> Audiences {
    let mut audiences = both(requirements);
    let members = vec!["insurer".to_owned(), "office".to_owned()];
    audiences.coalitions.push(Coalition { name: None, members, requirements: together });
    audiences
}

/// The verified release that the audiences receive.
fn published<'a>(table: &'a Table, asked: &Audiences) -> Published<'a> {
    let done = anonymize_audiences(table, &Spec::new(1), asked, &Silent).unwrap_or_else(|error| panic!("{error}"));
    let verified = verify_release(done.anonymized.release, table, asked, SuppressionLimit::NOBODY)
        .unwrap_or_else(|violations| panic!("{violations}"));
    Published::released(table, verified.get())
}

/// Persons whom fewer than k rows fit.
fn found(published: &Published<'_>, known: &[&str], k: usize) -> Count {
    let seen = published.seen_with(known);
    Count::of((0..N_PERSONS).map(|person| seen.rows_of(person).len() < k))
}

const K: Requirement = Requirement::K(4);

fn one_audience() -> Vec<Side> {
    let table = people();
    // The release for the office shows cars as they are, because the office does not know them.
    let mut for_office = table.clone();
    for_office.columns[2].role = Role::Plain;
    let office = Audiences::new(vec![audience("office", &OFFICE, vec![K])]);
    vec![
        Side::naive("a release made for the office", found(&published(&for_office, &office), &INSURER, 4)),
        Side::kohort("`k = 4` for each audience", Promise::Nobody, found(&published(&table, &both(&[K])), &INSURER, 4)),
    ]
}

fn collusion_of_identity() -> Vec<Side> {
    let table = people();
    let together = colluding(&[K], vec![Requirement::K(3)]);
    vec![
        Side::kohort(
            "`k = 4` for each audience",
            Promise::Nothing("`[collusion]`"),
            found(&published(&table, &both(&[K])), &BOTH, 3),
        ),
        Side::kohort("`[collusion]` with `k = 3`", Promise::Nobody, found(&published(&table, &together), &BOTH, 3)),
    ]
}

fn collusion_of_values() -> Vec<Side> {
    let table = people();
    let each = [Requirement::K(10), distinct("illness", 4)];
    let by_k = colluding(&each, vec![Requirement::K(2)]);
    let by_l = colluding(&each, vec![Requirement::K(2), distinct("illness", 2)]);
    let certain = |asked: &Audiences| {
        let published = published(&table, asked);
        let seen = published.seen_with(&BOTH);
        Count::of((0..N_PERSONS).map(|person| published.values(&seen.rows_of(person), "illness").len() == 1))
    };
    let helps = Promise::Nothing("`[collusion]` with `l`");
    vec![
        Side::kohort("`k = 10`, `l = 4` for each audience", helps, certain(&both(&each))),
        Side::kohort("the same, `[collusion]` with `k = 2`", helps, certain(&by_k)),
        Side::kohort("the same, `[collusion]` with `k = 2`, `l = 2`", Promise::Nobody, certain(&by_l)),
    ]
}

fn columns_of_others() -> Vec<Side> {
    let table = people();
    let mut hidden = both(&[K]);
    hidden.each[0].requirements.push(distinct("job", 2));
    let certain = |asked: &Audiences| {
        let published = published(&table, asked);
        let seen = published.seen_with(&INSURER);
        let is_certain = |person: usize| {
            let jobs = published.values(&seen.rows_of(person), "job");
            // A range leaves the job open.
            jobs.len() == 1 && jobs.iter().all(|job| job.parse::<u32>().is_ok())
        };
        Count::of((0..N_PERSONS).map(is_certain))
    };
    vec![
        Side::kohort("`k = 4` for each audience", Promise::Nothing("`sensitive_to`"), certain(&both(&[K]))),
        Side::kohort("`sensitive_to` with `l = 2`", Promise::Nobody, certain(&hidden)),
    ]
}
