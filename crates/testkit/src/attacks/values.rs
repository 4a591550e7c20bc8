//! Attacks that learn a sensitive value without knowing which row is a person's, because all rows that fit the person
//! say the same.

use super::people::{LIST, N_PERSONS, town_job};
use super::published::Published;
use super::{Attack, Count, Promise, Side, System};

pub(super) const ATTACKS: &[Attack] = &[
    Attack {
        name: "homogeneity",
        system: System::Tables,
        knows: "age, postcode and sex of everybody",
        does: "reads the illnesses of the rows that fit each person",
        success: "persons whose illness is the only one",
        run: homogeneity,
    },
    Attack {
        name: "skewness",
        system: System::Tables,
        knows: "age, postcode and sex of everybody",
        does: "compares how frequent the rare illness is among the rows that fit, and in the whole release",
        success: "persons among whose rows it is more frequent by more than 0.15",
        run: skewness,
    },
];

/// How far the share of an illness among the rows that fit somebody may be above its share in the release.
const T: f64 = 0.15;

fn homogeneity() -> Vec<Side> {
    let certain = |published: &Published<'_>| {
        let seen = published.seen_with(&LIST);
        Count::of((0..N_PERSONS).map(|person| published.values(&seen.rows_of(person), "illness").len() == 1))
    };
    let asked = |illness: &str| town_job("k = 5", illness);
    let (k_alone, diverse) = (asked("\"sensitive\""), asked("{ role = \"sensitive\", l = 3 }"));
    vec![
        Side::naive("names removed", certain(&Published::without_names(&k_alone.loaded.table))),
        Side::kohort("`k = 5`", Promise::Nothing("ask for `l`"), certain(&Published::of(&k_alone))),
        Side::kohort("`k = 5`, `l = 3`", Promise::Nobody, certain(&Published::of(&diverse))),
    ]
}

fn skewness() -> Vec<Side> {
    let surer = |published: &Published<'_>| {
        let seen = published.seen_with(&LIST);
        let share = |rows: &[usize]| {
            rows.iter().filter(|&&row| published.cell(row, "illness") == "hiv").count() as f64 / rows.len() as f64
        };
        let of_all = share(&(0..published.n_rows()).collect::<Vec<usize>>());
        Count::of((0..N_PERSONS).map(|person| share(&seen.rows_of(person)) > of_all + T + 1e-9))
    };
    let asked = |illness: &str| town_job("k = 5", illness);
    let (diverse, close) = (asked("{ role = \"sensitive\", l = 2 }"), asked("{ role = \"sensitive\", t = 0.15 }"));
    vec![
        Side::naive("names removed", surer(&Published::without_names(&diverse.loaded.table))),
        Side::kohort("`k = 5`, `l = 2`", Promise::Nothing("ask for `t` or `beta`"), surer(&Published::of(&diverse))),
        Side::kohort("`k = 5`, `t = 0.15`", Promise::Nobody, surer(&Published::of(&close))),
    ]
}
