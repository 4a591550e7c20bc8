//! The people of the attacks: a made-up town whose illnesses depend on age and neighbourhood.

use std::fmt::Write as _;

use crate::random::Random;
use crate::scenario::Scenario;

/// What an attacker knows about everybody: their name and these columns, as a voter list has them.
pub(super) const LIST: [&str; 3] = ["age", "postcode", "sex"];

/// How columns of the town are declared. The line of the illness is not here, because each attack requires something
/// else of it.
pub(super) const COLUMNS: &str = "\
name = \"identifier\"
age = \"quasi\"
postcode = { role = \"quasi\", type = \"text\", hierarchy = { mask = \"right\" } }
sex = { role = \"quasi\", hierarchy = \"flat\" }
";

/// Illnesses that everybody may have; the last one is rare.
const ILLNESSES: [&str; 6] = ["flu", "gout", "cold", "ulcer", "asthma", "hiv"];

/// The table of this many inhabitants, one line each, in the order in which they were admitted.
pub(super) fn town(n_persons: usize, seed: u64) -> String {
    let mut random = Random::new(seed);
    let mut text = "name,age,postcode,sex,illness\n".to_owned();
    for person in 0..n_persons {
        let age = 18 + random.below(70);
        let (district, street) = (random.below(4), random.below(10));
        let sex = random.pick(&["f", "m"]);
        // Seven of ten have what is going around in their district at their age. The rare illness is going around among
        // the young of one district only.
        let local = if district == 0 && age < 35 && random.once_in(3) { 5 } else { (district + age / 20) % 5 };
        let illness = if random.below(10) < 7 { local } else { random.below(5) };
        writeln!(text, "n{person:04},{age},{},{sex},{}", 88_000 + 100 * district + street, ILLNESSES[illness])
            .expect("texts can be written to");
    }
    text
}

/// The spec of a job on one table.
pub(super) fn spec(settings: &str, columns: &str) -> String {
    format!("{settings}\n[tables.t]\nfile = \"t.csv\"\n[tables.t.columns]\n{columns}\n")
}

/// The town of most attacks.
pub(super) const N_PERSONS: usize = 600;

/// A job on this town: settings, and the role of the illness.
pub(super) fn town_job(settings: &str, illness: &str) -> Scenario {
    Scenario::new(&town(N_PERSONS, 22), &spec(settings, &format!("{COLUMNS}illness = {illness}")))
}
