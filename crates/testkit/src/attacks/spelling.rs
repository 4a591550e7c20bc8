//! Attacks on a join by values: table and register spell the same person differently, so that the person counts twice.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use kohort_core::register::anonymize_with_register;
use kohort_io::{load, load_registers};
use kohort_model::spec::{RegisterRows, Unmatched};
use kohort_model::{InRegister, JoinedRegister, Requirement, Silent, Spec, Table};
use kohort_verify::{AskedOfJoin, SuppressionLimit, ToldApart, verify_joined};

use super::published::Published;
use super::{Attack, Count, Promise, Side, System};
use crate::random::Random;

pub(super) const ATTACKS: &[Attack] = &[Attack {
    name: "spelling of register values",
    system: System::Register,
    knows: "the register, which says 12.5 where the private table says 12.50",
    does: "counts the people of the register whom each class fits",
    success: "private persons in a class that fits fewer than 5 people",
    run: spelling,
}];

const SPEC: &str = "\
k = 5
algorithm = \"mondrian\"
[tables.t]
file = \"t.csv\"
[tables.t.columns]
pay = { role = \"quasi\", type = \"decimal\" }
age = \"quasi\"
[registers.r]
file = \"r.csv\"
";

const N_PRIVATE: usize = 80;

/// The private table and its join with the register. Everybody has a different pay, so the pay identifies them.
fn people() -> (Table, JoinedRegister, Spec) {
    let mut random = Random::new(9);
    let (mut private, mut register) = ("pay,age\n".to_owned(), "pay,age\n".to_owned());
    for person in 0..500 {
        let (units, age) = (100 + 7 * person + random.below(7), 18 + random.below(60));
        if person % 6 == 0 && person / 6 < N_PRIVATE {
            writeln!(private, "{units}.50,{age}").expect("texts can be written to");
        }
        writeln!(register, "{units}.5,{age}").expect("texts can be written to");
    }
    let folder = tempfile::tempdir().expect("there is a temporary folder");
    for (name, text) in [("t.csv", private), ("r.csv", register)] {
        std::fs::write(folder.path().join(name), text).expect("it is writable");
    }
    let spec = Spec::parse(SPEC).unwrap_or_else(|problems| panic!("{problems}"));
    let mut table =
        load(folder.path(), &spec, &spec.tables[0], &Silent).unwrap_or_else(|problems| panic!("{problems}"));
    let registers =
        load_registers(folder.path(), &spec, &mut table, &Silent).unwrap_or_else(|problem| panic!("{problem}"));
    (table.table, registers.joined, spec)
}

/// A join that compares spellings, so that a person who is spelled differently counts as somebody else.
fn joined_by_spelling(joined: &JoinedRegister) -> JoinedRegister {
    let mut joined = joined.clone();
    joined.n_register = joined.rows.n_rows - joined.n_microdata;
    joined.persons.fill(InRegister::Absent);
    joined
}

fn spelling() -> Vec<Side> {
    let (table, joined, mut spec) = people();
    let requirements = [Requirement::K(5)];
    // One row per person of the register, found by their pay.
    let pay = joined.rows.column("pay").expect("the register has it");
    let cents =
        |row: usize| (pay.cell(row).and_then(|cell| cell.parse::<f64>().ok()).unwrap_or_default() * 100.0) as i64;
    let mut met = BTreeSet::new();
    let people: Vec<usize> = (0..joined.rows.n_rows).filter(|&row| met.insert(cents(row))).collect();
    let attack = |release: &kohort_model::Release| {
        let published = Published::released(&joined.rows, release);
        let seen = published.seen_with(&["pay", "age"]);
        let mut count = Count::default();
        for look in &seen.looks {
            let n_people = people.iter().filter(|&&person| seen.fits(look, person)).count();
            let private = look.rows.iter().filter(|&&row| (published.sources[row] as usize) < joined.n_microdata);
            private.for_each(|_| count.add(n_people < 5, 0.0));
        }
        count
    };
    let ours = anonymize_with_register(&table, &joined, &[], &spec, &requirements, &Silent).expect("k is reachable");
    let asked = AskedOfJoin {
        requirements: &requirements,
        delta_presence: None,
        rows: RegisterRows::All,
        told_apart: ToldApart::ByValues(Unmatched::Doubt),
        previous: &[],
        limit: SuppressionLimit::NOBODY,
    };
    let ours = verify_joined(ours.anonymized.release, &table, &joined, asked).unwrap_or_else(|found| panic!("{found}"));
    spec.register.unmatched = Unmatched::Count;
    let unjoined = joined_by_spelling(&joined);
    let naive = anonymize_with_register(&table, &unjoined, &[], &spec, &requirements, &Silent).expect("k is reachable");
    vec![
        Side::naive("texts compared", attack(&naive.anonymized.release)),
        Side::kohort("values compared", Promise::Nobody, attack(ours.get())),
    ]
}
