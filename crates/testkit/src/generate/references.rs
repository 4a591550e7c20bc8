//! Random jobs of tables that reference each other by second foreign keys: patients with friends, their visits to
//! doctors, and doctors with mentors.
//!
//! The jobs are small enough to try every map between rows, see [`crate::oracle::swaps`].

use proptest::prelude::*;

use super::snowflake::TablesJob;
use crate::scenario::tables_job;

/// A few patients, visits and doctors, who reference each other at random.
pub fn references_job() -> impl Strategy<Value = TablesJob> {
    let persons = prop::collection::vec((0u8..2, prop::option::weighted(0.5, 0usize..12)), 4..13);
    let visits = prop::collection::vec((0usize..12, 0u8..2, prop::option::weighted(0.8, 0usize..6), 0u8..3), 0..14);
    let doctors = prop::collection::vec((0u8..2, prop::option::weighted(0.5, 0usize..6)), 3..7);
    // References that follow a rule are balanced more often than those drawn at random.
    let by_rule = any::<(bool, bool)>();
    (persons, visits, doctors, 2u32..4, any::<bool>(), (1u32..3, by_rule)).prop_map(
        |(mut persons, mut visits, mut doctors, k, suppress, (l, by_rule))| {
            if by_rule.0 {
                visits.iter_mut().for_each(|(patient, _, doctor, _)| *doctor = Some(*patient));
                doctors.iter_mut().for_each(|(school, _)| *school = 0);
            }
            if by_rule.1 {
                let half = persons.len() / 2;
                for (position, (town, friend)) in persons.iter_mut().enumerate() {
                    (*town, *friend) = (u8::from(position < half), (position < half).then_some(position + half));
                }
            }
            let limit = if suppress { "max_suppressed = 0.4\nleftovers = \"suppress\"" } else { "" };
            let spec = format!(
                "k = {k}\n{limit}\n[tables.patient]\nfile = \"p\"\nperson = \"pid\"\nchildless = \"keep\"\n\
                 columns = {{ town = \"quasi\", friend = {{ role = \"key\", references = \"patient\" }} }}\n\
                 [tables.visit]\nfile = \"v\"\nkey = \"vid\"\nparent = {{ table = \"patient\", foreign_key = \"pid\" }}\n\
                 columns = {{ code = \"quasi\", doctor = {{ role = \"key\", references = \"doctor\" }}, \
                 ill = {{ role = \"sensitive\", l = {l} }} }}\n\
                 [tables.doctor]\nfile = \"d\"\nkey = \"did\"\nperson = true\n\
                 columns = {{ school = \"quasi\", mentor = {{ role = \"key\", references = \"doctor\" }} }}\n"
            );
            let (n_persons, n_doctors) = (persons.len(), doctors.len());
            let name = |kind: &str, of: Option<usize>, n: usize| {
                of.map_or_else(String::new, |of| format!("{kind}{}", of % n))
            };
            let persons = persons.iter().enumerate();
            let visits = visits.iter().enumerate();
            let doctors = doctors.iter().enumerate();
            tables_job(
                &spec,
                &[
                    (
                        "pid,town,friend",
                        persons.map(|(p, (town, to))| format!("p{p},t{town},{}", name("p", *to, n_persons))).collect(),
                    ),
                    (
                        "vid,pid,code,doctor,ill",
                        visits
                            .map(|(v, (p, code, to, ill))| {
                                format!("v{v},p{},c{code},{},i{ill}", p % n_persons, name("d", *to, n_doctors))
                            })
                            .collect(),
                    ),
                    (
                        "did,school,mentor",
                        doctors.map(|(d, (s, to))| format!("d{d},s{s},{}", name("d", *to, n_doctors))).collect(),
                    ),
                ],
            )
        },
    )
}
