//! Attacks on identifiers that were taken for ordinary columns.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use kohort_verify::find_risks;

use super::people::spec;
use super::published::Published;
use super::{Attack, Count, Promise, Side, System};
use crate::random::Random;
use crate::scenario::Scenario;

pub(super) const ATTACKS: &[Attack] = &[Attack {
    name: "national ids among the quasi columns",
    system: System::Tables,
    knows: "the national ids of all patients",
    does: "looks for ids in the released cells",
    success: "patients whose whole id is shown",
    run: national_ids,
}];

const N_PATIENTS: usize = 120;

/// Ten digits and the check digit of a PESEL.
fn national_id(random: &mut Random) -> String {
    let digits = format!("{:010}", 4_405_140_000 + random.below(900_000_000));
    let weights = [1, 3, 7, 9, 1, 3, 7, 9, 1, 3];
    let sum: u32 = digits.bytes().zip(weights).map(|(digit, weight)| u32::from(digit - b'0') * weight).sum();
    format!("{digits}{}", (10 - sum % 10) % 10)
}

/// Patients with six visits each, every fifth patient with more. The spec treats each row as a person.
fn hospital() -> (Vec<String>, Scenario) {
    let mut random = Random::new(12);
    let ids: Vec<String> = (0..N_PATIENTS).map(|_| national_id(&mut random)).collect();
    let mut text = "pid,born,sex,code\n".to_owned();
    for (patient, id) in ids.iter().enumerate() {
        let (born, sex) = (1930 + random.below(75), random.pick(&["f", "m"]));
        for _ in 0..if patient.is_multiple_of(5) { 12 } else { 6 } {
            let code = random.pick(&["E11.9", "I10", "J45.0", "F32.1", "M54.5", "K21.9"]);
            writeln!(text, "{id},{born},{sex},{code}").expect("texts can be written to");
        }
    }
    let columns = "pid = \"quasi\"\nborn = \"quasi\"\nsex = \"quasi\"\ncode = \"sensitive\"";
    (ids, Scenario::new(&text, &spec("k = 5", columns)))
}

fn national_ids() -> Vec<Side> {
    let (ids, job) = hospital();
    let verified = job.verified();
    let published = Published::released(&job.loaded.table, verified.get());
    let shown: BTreeSet<&str> = (0..published.n_rows()).map(|row| published.cell(row, "pid")).collect();
    let naive = Count::of(ids.iter().map(|id| shown.contains(id.as_str())));
    // `anonymize` asks the same about every release, and writes a release with risks only if they are accepted by name.
    let risks = find_risks(&job.loaded.table, &job.requirements(), Some(&verified.get().tables[0]));
    let ours = if risks.is_empty() { naive } else { Count { succeeded: 0, ..naive } };
    vec![
        Side::naive("`pid = \"quasi\"`, rows counted as persons, risks accepted", naive),
        Side::kohort("the same spec is refused", Promise::Nobody, ours),
    ]
}
