//! Bounds of estimates hold: whatever is asked of a release, the truth about the private table lies within them.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::fs;
use std::path::Path;

use kohort::{Bounds, Estimate, EstimateOptions, GroupBy, Job, Silent, estimate, estimate_by};
use kohort_testkit::random::Random;
use tempfile::TempDir;

/// A private row. `None` is a cell without a value.
struct Person {
    age: Option<i64>,
    zip: String,
    sex: Option<&'static str>,
    /// Year, month and day.
    born: (i64, i64, i64),
    illness: &'static str,
    cost: Option<i64>,
}

const ILLNESSES: [&str; 4] = ["flu", "gout", "asthma", "measles"];

fn persons(random: &mut Random, n: usize) -> Vec<Person> {
    let person = |random: &mut Random| {
        let outlier = if random.once_in(15) { 60 } else { 0 };
        Person {
            age: (!random.once_in(9)).then(|| 18 + random.below(40) as i64 + outlier),
            zip: format!("{}", 10_000 + 1000 * random.below(3) + random.below(4)),
            sex: *random.pick(&[Some("f"), Some("m"), None]),
            born: (1980 + random.below(12) as i64, 1 + random.below(12) as i64, 1 + random.below(28) as i64),
            illness: ILLNESSES[random.below(ILLNESSES.len())],
            cost: (!random.once_in(7)).then(|| random.below(30) as i64 - 5),
        }
    };
    (0..n).map(|_| person(random)).collect()
}

fn csv(persons: &[Person]) -> String {
    let number = |number: Option<i64>| number.map_or_else(String::new, |number| number.to_string());
    let row = |person: &Person| {
        let Person { age, zip, sex, born: (year, month, day), illness, cost } = person;
        let (age, cost, sex) = (number(*age), number(*cost), sex.unwrap_or_default());
        format!("{age},{zip},{sex},{year}-{month:02}-{day:02},{illness},{cost}\n")
    };
    let rows: String = persons.iter().map(row).collect();
    format!("age,zip,sex,born,illness,cost\n{rows}")
}

fn release(random: &mut Random, folder: &Path, persons: &[Person]) {
    fs::write(folder.join("people.csv"), csv(persons)).unwrap();
    let algorithm = random.pick(&["auto", "mondrian", "datafly", "full-domain", "cluster"]);
    let age = random.pick(&["", ", hierarchy = { steps = [5, 20] }"]);
    let born = random.pick(&["", ", hierarchy = \"date\""]);
    let spec = format!(
        "k = {}\nalgorithm = \"{algorithm}\"\n[tables.people]\nfile = \"people.csv\"\n[tables.people.columns]\n\
         age = {{ role = \"quasi\"{age} }}\nzip = {{ role = \"quasi\", type = \"text\", hierarchy = {{ mask = \"right\" }} }}\n\
         sex = {{ role = \"quasi\", hierarchy = \"flat\" }}\nborn = {{ role = \"quasi\"{born} }}\n\
         illness = \"sensitive\"\ncost = \"sensitive\"\n",
        2 + random.below(4)
    );
    fs::write(folder.join("release.toml"), spec).unwrap();
    let job = Job::read(folder.join("release.toml")).unwrap().accept_risks();
    job.anonymize().unwrap().write(folder.join("out")).unwrap();
}

/// A question, and whether a person matches it.
type Question = (String, Box<dyn Fn(&Person) -> bool>);

fn condition(random: &mut Random) -> Question {
    match random.below(5) {
        0 => {
            let low = 10 + random.below(120) as i64;
            let high = low + random.below(30) as i64;
            let is_met = move |person: &Person| person.age.is_some_and(|age| (low..=high).contains(&age));
            (format!("age between {low} and {high}"), Box::new(is_met))
        }
        1 => {
            let least = 10 + random.below(120) as i64;
            (format!("age >= {least}"), Box::new(move |person| person.age.is_some_and(|age| age >= least)))
        }
        2 => {
            let digits = 1 + random.below(5);
            let code = format!("{}", 10_000 + 1000 * random.below(3) + random.below(5));
            let start = code[..digits].to_owned();
            (format!("zip = '{start:*<5}'"), Box::new(move |person| person.zip.starts_with(&start)))
        }
        3 => {
            let sex = *random.pick(&["f", "m"]);
            (format!("sex = '{sex}'"), Box::new(move |person| person.sex == Some(sex)))
        }
        _ => {
            let (year, month) = (1979 + random.below(14) as i64, 1 + random.below(12) as i64);
            (format!("born < {year}-{month:02}-01"), Box::new(move |person| person.born < (year, month, 1)))
        }
    }
}

fn holds(bounds: Bounds, truth: f64) -> bool {
    bounds.least <= truth + 1e-9 && truth <= bounds.most + 1e-9
}

/// The least cost that at least this share of the costs do not exceed.
fn quantile(sorted: &[i64], share: f64) -> f64 {
    let place = (share * sorted.len() as f64).ceil() as usize;
    sorted[place.max(1) - 1] as f64
}

fn check(found: &Estimate, matching: &[&Person], question: &str) {
    let n = matching.len() as f64;
    assert!(holds(found.bounds, n), "{question}: {n} is not in {:?}", found.bounds);
    assert!(holds(found.bounds, found.count), "{question}: the estimate {} is not in {:?}", found.count, found.bounds);
    for column in &found.sensitive {
        for value in &column.values {
            let cell = |person: &Person| match column.column.as_str() {
                "illness" => Some(person.illness.to_owned()),
                _ => person.cost.map(|cost| cost.to_string()),
            };
            let n = matching.iter().filter(|person| cell(person) == value.value).count() as f64;
            assert!(holds(value.bounds, n), "{question}: {n} with a value is not in {:?}", value.bounds);
        }
    }
    let mut costs: Vec<i64> = matching.iter().filter_map(|person| person.cost).collect();
    costs.sort_unstable();
    let numbers =
        found.sensitive.iter().find(|column| column.column == "cost").and_then(|column| column.numbers.as_ref());
    if let (Some(numbers), false) = (numbers, costs.is_empty()) {
        let mean = costs.iter().sum::<i64>() as f64 / costs.len() as f64;
        assert!(holds(numbers.mean.bounds, mean), "{question}: mean {mean} is not in {:?}", numbers.mean.bounds);
        for (quartile, share) in numbers.quartiles.iter().zip([0.25, 0.5, 0.75]) {
            let truth = quantile(&costs, share);
            assert!(holds(quartile.bounds, truth), "{question}: quartile {truth} is not in {:?}", quartile.bounds);
        }
    }
}

#[test]
fn the_truth_lies_within_the_bounds_of_every_estimate() {
    let (mut n_asked, mut n_tight) = (0, 0);
    for seed in 0..60 {
        let random = &mut Random::new(seed);
        let folder = TempDir::new().unwrap();
        let n_persons = 12 + random.below(60);
        let persons = persons(random, n_persons);
        release(random, folder.path(), &persons);
        for _ in 0..12 {
            let conditions: Vec<Question> = (0..random.below(4)).map(|_| condition(random)).collect();
            let texts: Vec<&str> = conditions.iter().map(|(text, _)| text.as_str()).collect();
            let question = texts.join(" and ");
            let found = estimate(folder.path().join("out"), &question, &EstimateOptions::default(), &Silent);
            let found = found.unwrap_or_else(|error| panic!("{seed}: {question}: {error}"));
            let matching: Vec<&Person> =
                persons.iter().filter(|person| conditions.iter().all(|(_, is_met)| is_met(person))).collect();
            check(&found, &matching, &format!("{seed}: {question}"));
            n_asked += 1;
            n_tight += usize::from(found.bounds.most - found.bounds.least < n_persons as f64 / 2.0);
        }
    }
    // Bounds from 0 to everybody would hold, too.
    assert!(3 * n_tight > n_asked, "{n_tight} of {n_asked}");
}

#[test]
fn groups_part_the_rows_that_match() {
    for seed in 0..20 {
        let random = &mut Random::new(1000 + seed);
        let folder = TempDir::new().unwrap();
        let persons = persons(random, 60);
        release(random, folder.path(), &persons);
        let out = folder.path().join("out");
        for by in ["age:10", "sex", "born:decade", "born:year", "born:month"] {
            let group_by = GroupBy::parse(by).unwrap();
            let (text, is_met) = condition(random);
            let Ok(groups) = estimate_by(&out, &text, &group_by, &EstimateOptions::default(), &Silent) else {
                panic!("{seed}: {by}: {text}");
            };
            let of_group = |name: &str, person: &Person| match by {
                "age:10" => person.age.is_some_and(|age| {
                    let (low, high) = name.split_once(" to below ").unwrap();
                    (low.parse().unwrap()..high.parse().unwrap()).contains(&age)
                }),
                "sex" => person.sex == Some(name),
                "born:decade" => name == format!("{}s", person.born.0 / 10 * 10),
                "born:year" => name == person.born.0.to_string(),
                _ => name == format!("{}-{:02}", person.born.0, person.born.1),
            };
            for (name, found) in &groups {
                let matching: Vec<&Person> =
                    persons.iter().filter(|person| is_met(person) && of_group(name, person)).collect();
                check(found, &matching, &format!("{seed}: {by}: {name}: {text}"));
            }
        }
    }
}
