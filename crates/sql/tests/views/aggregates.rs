//! Attackers of views with `ANSWERS AGGREGATES`, who ask many questions and combine all answers.
//!
//! Row `n` of the table holds the number 2^n, so a sum tells exactly which rows it was made of. Rows that no answer tells apart
//! form an atom. Whatever an attacker computes from the answers, by whatever sums and differences, is about unions of
//! atoms, so it is enough that every atom has as many persons as each of them asks for.

use std::collections::{BTreeMap, BTreeSet};

use kohort_sql::{Role, Session};

use crate::session::{engine, engine_in, owner, rows, try_rows};

const K: u64 = 3;

/// As many as a sum of 64 bits holds.
const N_ROWS: u64 = 62;

/// Numbers that look random and are the same in every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    fn one_of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len() as u64) as usize]
    }
}

/// The person of each row, and the k that each person asks for.
struct Town {
    person_of_row: Vec<u64>,
    own_k: BTreeMap<u64, u64>,
    statements: String,
}

/// A random table in which each person has one or two rows, and a view of it.
fn town(seed: u64, most_rows: u64, view: &str) -> Town {
    let mut chance = Chance(seed);
    let (mut person_of_row, mut own_k) = (Vec::new(), BTreeMap::new());
    let (mut people, mut choices) = (Vec::new(), Vec::new());
    let mut person = 0;
    while (person_of_row.len() as u64) < N_ROWS {
        let k = [0, 1, 2, 3, 5][chance.below(5) as usize];
        own_k.insert(person, k);
        let refuses = if chance.below(12) == 0 { 'F' } else { 'T' };
        choices.push(format!("('p{person}', {k}, '{refuses}', 'care', 'nurse')"));
        let (age, zip) = (20 + chance.below(40), 1000 * (1 + chance.below(2)) + chance.below(12));
        let sex = chance.one_of(&["f", "m"]);
        for _ in 0..=chance.below(most_rows) {
            let row = person_of_row.len() as u64;
            if row == N_ROWS {
                break;
            }
            let number = 1u64 << row;
            let fee = if chance.below(25) == 0 { "NULL".to_owned() } else { number.to_string() };
            let (ward, illness) = (chance.one_of(&["north", "south"]), chance.one_of(&["flu", "cold", "ulcer"]));
            people.push(format!("('p{person}', {age}, '{zip}', '{sex}', '{ward}', '{illness}', {number}, {fee})"));
            person_of_row.push(person);
        }
        person += 1;
    }
    let statements = format!(
        "CREATE TABLE people (name TEXT, age INT, zip TEXT, sex TEXT, ward TEXT, illness TEXT, number BIGINT, fee BIGINT);
         INSERT INTO people VALUES {};
         CREATE TABLE choices (name TEXT, k INT, fee_op TEXT, purpose TEXT, recipient TEXT);
         INSERT INTO choices VALUES {};
         CREATE DGH age FROM STEPS (5, 20); CREATE DGH zip FROM MASK RIGHT; CREATE DGH sex FROM FLAT;
         CREATE {view} seen ON SELECT name, age, zip, sex, ward, illness, number, fee FROM people
           WITH ANONYMIZATION_ID name
           ANONYMIZATION_QUASI_ID (age DGH_NAME age, zip DGH_NAME zip, sex DGH_NAME sex)
           ANONYMIZATION_SENSITIVE_ATTR (illness, fee) ANONYMIZATION_OTHER (ward, number)
           name REFERENCES choices (k) K {K} USING mondrian",
        people.join(", "),
        choices.join(", ")
    );
    Town { person_of_row, own_k, statements }
}

/// A condition on labels.
fn condition(chance: &mut Chance, depth: u64) -> String {
    if depth > 0 && chance.below(2) == 0 {
        let (left, right) = (condition(chance, depth - 1), condition(chance, depth - 1));
        let not = chance.one_of(&["", "", "NOT "]);
        return format!("{not}({left} {} {right})", chance.one_of(&["AND", "OR"]));
    }
    let (age, other) = (20 + chance.below(40), 20 + chance.below(40));
    let zip = 1000 * (1 + chance.below(2)) + chance.below(12);
    match chance.below(7) {
        0 => format!("age {} {age}", chance.one_of(&["=", "<>", "<", ">="])),
        1 => format!("age BETWEEN {} AND {}", age.min(other), age.max(other)),
        2 => format!("zip {} '{zip}'", chance.one_of(&["=", "<>", ">"])),
        3 => format!("zip IN ('{zip}', '{}')", zip + 1),
        4 => format!("zip LIKE '{}%'", zip / 10),
        5 => format!("sex = '{}'", chance.one_of(&["f", "m"])),
        _ => format!("age IN ({age}, {other})"),
    }
}

/// A statement that asks many questions, each in a column of its own.
fn many_questions(chance: &mut Chance) -> String {
    let sum = |place| {
        let column = chance.one_of(&["number", "fee"]);
        format!("sum({column}) FILTER (WHERE {}) AS s{place}", condition(chance, 2))
    };
    let sums: Vec<String> = (0..40).map(sum).collect();
    format!("SELECT {} FROM seen WHERE {}", sums.join(", "), condition(chance, 1))
}

/// A question of another form. The last column of its answer is a sum.
fn question(chance: &mut Chance) -> String {
    let (one, two) = (condition(chance, 2), condition(chance, 2));
    let (age, column) = (20 + chance.below(40), chance.one_of(&["number", "fee"]));
    let labels = chance.one_of(&["age", "zip", "sex", "age, zip", "zip, sex", "age, zip, sex"]);
    match chance.below(9) {
        0 => format!("SELECT count({column}), sum({column}) FROM seen WHERE {one}"),
        1 => format!("SELECT count({column}), sum({column}) FROM seen WHERE {one} GROUP BY {labels}"),
        2 => format!("SELECT sum({column}) FILTER (WHERE {one}) FROM seen WHERE {two}"),
        3 => format!(
            "WITH some AS (SELECT zip AS place, {column} AS amount FROM seen WHERE {one})
             SELECT sum(amount) FROM some GROUP BY place HAVING count(*) < 9"
        ),
        4 => format!(
            "SELECT sum(a.{column}) FROM seen AS a WHERE {} EXISTS (SELECT 1 FROM seen AS b WHERE b.zip = a.zip AND b.age = {age})",
            chance.one_of(&["", "NOT"])
        ),
        5 => format!(
            "SELECT guess, sum({column}) FROM (VALUES ({age}), ({})) AS g (guess) JOIN seen ON seen.age = guess
             WHERE {one} GROUP BY guess",
            age + 1
        ),
        6 => format!("SELECT {labels}, sum({column}) FROM seen WHERE {one} GROUP BY ROLLUP ({labels})"),
        7 => format!("SELECT sum({column}) FROM seen WHERE zip IN (SELECT zip FROM seen WHERE {one})"),
        _ => format!("SELECT (SELECT sum({column}) FROM seen WHERE {one})"),
    }
}

/// The sets of rows that the answers to questions are about.
async fn sets_of_rows(session: &mut Session, questions: impl Iterator<Item = String>) -> BTreeSet<u64> {
    let mut sets = BTreeSet::new();
    for question in questions {
        let has_sums_alone = question.starts_with("SELECT sum");
        for row in rows(session, &question).await {
            let sums = if has_sums_alone { &row[..] } else { &row[row.len() - 1..] };
            sets.extend(sums.iter().filter(|sum| *sum != "NULL").map(|sum| sum.parse::<u64>().unwrap()));
        }
    }
    sets
}

/// The atoms with fewer persons than one of them asks for.
fn too_few(town: &Town, sets: &BTreeSet<u64>) -> Vec<BTreeSet<u64>> {
    let mut atoms: BTreeMap<Vec<bool>, BTreeSet<u64>> = BTreeMap::new();
    for (row, person) in town.person_of_row.iter().enumerate() {
        let told: Vec<bool> = sets.iter().map(|set| set >> row & 1 == 1).collect();
        if told.contains(&true) {
            atoms.entry(told).or_default().insert(*person);
        }
    }
    assert!(atoms.len() > 1, "the questions tell no rows apart");
    let asked = |atom: &BTreeSet<u64>| atom.iter().map(|person| town.own_k[person].max(K)).max().unwrap_or(0);
    atoms.into_values().filter(|atom| (atom.len() as u64) < asked(atom)).collect()
}

const READER: &str = "SET kohort.purpose = 'care'; SET kohort.recipient = 'nurse'";

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_questions_and_their_differences_are_about_no_small_group() {
    for seed in 1..=2 {
        let (town, engine) = (town(seed, 2, "ANONYMIZATION_VIEW"), engine());
        rows(&mut owner(&engine), &format!("{} ANSWERS AGGREGATES", town.statements)).await;
        let mut analyst = engine.session(Role::Analyst);
        rows(&mut analyst, READER).await;
        let mut chance = Chance(seed + 100);
        let mut sets = sets_of_rows(&mut analyst, (0..50).map(|_| many_questions(&mut chance))).await;
        sets.extend(sets_of_rows(&mut analyst, (0..60).map(|_| question(&mut chance))).await);
        rows(&mut analyst, "SET kohort.plan = 'anonymize_first'").await;
        sets.extend(sets_of_rows(&mut analyst, (0..10).map(|_| question(&mut chance))).await);
        assert_eq!(too_few(&town, &sets), Vec::<BTreeSet<u64>>::new(), "seed {seed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_before_and_after_changes_of_a_materialized_view_are_about_no_small_group() {
    let (town, folder) = (town(3, 1, "MATERIALIZED ANONYMIZATION_VIEW"), tempfile::tempdir().unwrap());
    let engine = engine_in(folder.path()).await;
    let mut owner = owner(&engine);
    rows(&mut owner, &format!("{} ANSWERS AGGREGATES", town.statements)).await;
    let mut analyst = engine.session(Role::Analyst);
    rows(&mut analyst, READER).await;
    let (mut chance, mut sets) = (Chance(103), BTreeSet::new());
    for round in 0..6 {
        sets.extend(sets_of_rows(&mut analyst, (0..4).map(|_| many_questions(&mut chance))).await);
        sets.extend(sets_of_rows(&mut analyst, (0..12).map(|_| question(&mut chance))).await);
        for _ in 0..4 {
            let (person, age) = (chance.below(N_ROWS), 20 + chance.below(40));
            let change = match chance.below(3) {
                0 => format!("DELETE FROM people WHERE name = 'p{person}'"),
                1 => format!("UPDATE people SET age = {age} WHERE name = 'p{person}'"),
                _ => format!("UPDATE people SET fee = NULL WHERE name = 'p{person}'"),
            };
            rows(&mut owner, &change).await;
        }
        if round % 2 == 1 {
            rows(&mut owner, "REFRESH ANONYMIZATION_VIEW seen PARTIAL").await;
        }
    }
    assert_eq!(too_few(&town, &sets), Vec::<BTreeSet<u64>>::new());
}

#[tokio::test]
async fn the_same_attacker_finds_single_persons_where_rows_are_shown() {
    let (town, engine) = (town(1, 2, "ANONYMIZATION_VIEW"), engine());
    let mut owner = owner(&engine);
    rows(&mut owner, &format!("{}; {READER}", town.statements)).await;
    let questions =
        ["ward", "illness"].map(|column| format!("SELECT sum(number) FROM seen GROUP BY age, zip, {column}"));
    assert!(!too_few(&town, &sets_of_rows(&mut owner, questions.into_iter()).await).is_empty());
}

#[tokio::test]
async fn totals_of_groups_are_those_of_the_rows_in_them() {
    let (town, engine) = (town(4, 2, "ANONYMIZATION_VIEW"), engine());
    let mut owner = owner(&engine);
    rows(&mut owner, &format!("{}; {READER}", town.statements)).await;
    let by_rows: Vec<String> = (["age", "zip", "sex", "age, zip"].iter())
        .map(|by| format!("SELECT {by}, count(*), sum(number), round(avg(number) / sum(number), 9) FROM seen GROUP BY {by} ORDER BY {by}"))
        .collect();
    let mut expected = Vec::new();
    // Nobody is alone with a K of 3, so both kinds of views have the same classes.
    for question in &by_rows {
        expected.push(rows(&mut owner, question).await);
    }
    let replaced = town.statements.split("CREATE ANONYMIZATION_VIEW").nth(1).unwrap();
    rows(&mut owner, &format!("CREATE OR REPLACE ANONYMIZATION_VIEW {replaced} ANSWERS AGGREGATES")).await;
    for (question, expected) in by_rows.iter().zip(expected) {
        assert_eq!(rows(&mut owner, question).await, expected, "{question}");
    }
}

#[tokio::test]
async fn every_other_form_of_question_is_refused_by_name() {
    let (town, engine) = (town(5, 2, "ANONYMIZATION_VIEW"), engine());
    rows(&mut owner(&engine), &format!("{} ANSWERS AGGREGATES", town.statements)).await;
    let mut analyst = engine.session(Role::Analyst);
    rows(&mut analyst, READER).await;
    for question in [
        "SELECT * FROM seen",
        "SELECT zip FROM seen",
        "SELECT zip, number FROM seen WHERE age = 30",
        "SELECT count(*) FROM seen WHERE number = 4",
        "SELECT count(*) FROM seen WHERE illness = 'flu'",
        "SELECT count(*) FROM seen WHERE number IS NULL",
        "SELECT illness, count(*) FROM seen GROUP BY illness",
        "SELECT number, count(*) FROM seen GROUP BY number",
        "SELECT DISTINCT ward FROM seen",
        "SELECT count(DISTINCT illness) FROM seen",
        "SELECT count(DISTINCT number) FROM seen",
        "SELECT sum(DISTINCT number) FROM seen",
        "SELECT count(illness) FROM seen",
        "SELECT count(name) FROM seen",
        "SELECT min(number), max(number) FROM seen",
        "SELECT median(number) FROM seen",
        "SELECT stddev(number) FROM seen",
        "SELECT array_agg(number) FROM seen",
        "SELECT sum(number + 1) FROM seen",
        "SELECT sum(CASE WHEN number > 8 THEN 1 ELSE 0 END) FROM seen",
        "SELECT sum(CASE WHEN age = 30 THEN number ELSE 0 END) FROM seen",
        "SELECT sum(number) FILTER (WHERE ward = 'north') FROM seen",
        "SELECT sum(number) FROM (SELECT number FROM seen LIMIT 5)",
        "SELECT sum(number) FROM (SELECT number FROM seen ORDER BY zip LIMIT 5)",
        "SELECT sum(n) FROM (SELECT number * 2 AS n FROM seen)",
        "SELECT sum(number) OVER (PARTITION BY zip) FROM seen",
        "SELECT count(*) FROM (SELECT zip FROM seen UNION ALL SELECT zip FROM seen)",
        "SELECT count(*) FROM seen AS a JOIN seen AS b ON a.number = b.number",
        "SELECT count(*) FROM seen AS a WHERE EXISTS (SELECT 1 FROM seen AS b WHERE b.number < a.number)",
        "SELECT count(*) FROM (VALUES (4)) AS g (n) WHERE n IN (SELECT number FROM seen)",
        "SELECT (SELECT number FROM seen LIMIT 1)",
        "WITH RECURSIVE some AS (SELECT zip FROM seen UNION SELECT zip FROM some) SELECT count(*) FROM some",
        "EXPLAIN SELECT number FROM seen",
        "EXPLAIN ANALYZE SELECT number FROM seen",
        "PREPARE asked AS SELECT number FROM seen",
    ] {
        let refusal = try_rows(&mut analyst, question).await.err().map(|error| (error.sqlstate(), error.to_string()));
        let (sqlstate, message) = refusal.unwrap_or_else(|| panic!("{question} is answered"));
        assert!(message.contains("ANSWERS AGGREGATES") || sqlstate == "42804", "{question}: {message}");
    }
}
