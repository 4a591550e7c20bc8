//! Random people, their choices, and random conditions.

use std::fmt;

use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;

/// Zip codes and illnesses with their ancestors, the root last.
pub(crate) const ZIPS: [(&str, [&str; 2]); 5] =
    [("a1", ["a", "*"]), ("a2", ["a", "*"]), ("a3", ["a", "*"]), ("b1", ["b", "*"]), ("b2", ["b", "*"])];
pub(crate) const ILLNESSES: [(&str, [&str; 2]); 4] = [
    ("flu", ["infection", "any"]),
    ("cold", ["infection", "any"]),
    ("ulcer", ["stomach", "any"]),
    ("gastritis", ["stomach", "any"]),
];
/// Positions in a row of the view: name, age, zip, illness, tag.
pub(crate) const AGE: usize = 1;
pub(crate) const ZIP: usize = 2;
pub(crate) const ILLNESS: usize = 3;
pub(crate) const TAG: usize = 4;

#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) age: Option<i64>,
    pub(crate) zip: Option<&'static str>,
    pub(crate) illness: Option<&'static str>,
}

#[derive(Clone, Debug)]
pub(crate) struct Choice {
    pub(crate) k: usize,
    pub(crate) level: usize,
    /// Whether age, zip and illness are shown.
    pub(crate) shows: [bool; 3],
}

#[derive(Clone, Debug)]
pub(crate) struct Person {
    pub(crate) rows: Vec<Row>,
    /// The choices for care and for the study. A person without a choice for care has none at all.
    care: Option<Choice>,
    study: Option<Choice>,
}

impl Person {
    /// The choice for a purpose.
    pub(crate) fn choice(&self, purpose: &str) -> Option<&Choice> {
        let care = self.care.as_ref()?;
        if purpose == "care" { Some(care) } else { self.study.as_ref() }
    }

    /// The largest k that the person asks for, for any purpose; `None` if the person allows nothing.
    fn own_k(&self) -> Option<usize> {
        let care = self.care.as_ref()?;
        Some(self.study.as_ref().map_or(care.k, |study| study.k.max(care.k)))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purposes {
    Together,
    Apart,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Disclosure {
    Class,
    Row,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leftovers {
    Merge,
    Suppress,
}

#[derive(Clone, Debug)]
pub(crate) struct People {
    pub(crate) persons: Vec<Person>,
    pub(crate) disclosure: Disclosure,
    /// The view's own K.
    least_k: Option<usize>,
    pub(crate) leftovers: Leftovers,
    pub(crate) purposes: Purposes,
    /// The least number of illnesses in a class.
    pub(crate) l: Option<usize>,
    /// How far the illnesses of a class may be from those of everybody, in tenths.
    t: Option<u8>,
    algorithm: &'static str,
    /// Whether ages are generalized in steps or as ranges.
    has_steps: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Order {
    AsWritten,
    Reversed,
}

impl Order {
    fn joined(self, mut rows: Vec<String>) -> String {
        if let Order::Reversed = self {
            rows.reverse();
        }
        rows.join(", ")
    }
}

impl People {
    /// The k that a person has in the view for a purpose; `None` if the person is not in the view.
    pub(crate) fn k(&self, person: usize, purpose: &str) -> Option<usize> {
        let person = &self.persons[person];
        let own = match self.purposes {
            Purposes::Together => person.own_k(),
            Purposes::Apart => person.choice(purpose).map(|choice| choice.k),
        };
        own.map(|k| k.max(self.least_k.unwrap_or(0)))
    }

    /// How far the illnesses of a class may be from those of everybody.
    pub(crate) fn t(&self) -> Option<f64> {
        self.t.map(|t| f64::from(t) / 10.0)
    }

    /// Whether, for each purpose, one class of all persons in the view would satisfy the requirements.
    pub(crate) fn can_be_one_class(&self) -> bool {
        let purposes = match self.purposes {
            Purposes::Together => vec!["care"],
            Purposes::Apart => self.purposes(),
        };
        let is_enough = |purpose: &&str| {
            let wishes = (0..self.persons.len()).filter_map(|person| self.k(person, purpose));
            let wishes: Vec<usize> = wishes.filter(|&k| k >= 2).collect();
            wishes.iter().all(|&k| k <= wishes.len())
        };
        // Raising can make fewer illnesses of them.
        self.l.is_none() && purposes.iter().all(is_enough)
    }

    /// Purposes that somebody allows something for.
    pub(crate) fn purposes(&self) -> Vec<&'static str> {
        let has_study = self.persons.iter().any(|person| person.care.is_some() && person.study.is_some());
        if has_study { vec!["care", "study"] } else { vec!["care"] }
    }

    /// The row with this tag, and its person.
    pub(crate) fn tagged(&self, tag: usize) -> (usize, &Row) {
        let rows =
            self.persons.iter().enumerate().flat_map(|(person, of)| of.rows.iter().map(move |row| (person, row)));
        rows.into_iter().nth(tag).expect("tags are numbers of rows")
    }

    pub(crate) fn tables(&self, order: Order) -> String {
        let text = |text: Option<&str>| text.map_or("NULL".to_owned(), |text| format!("'{text}'"));
        let mut people = Vec::new();
        let mut choices = Vec::new();
        for (number, person) in self.persons.iter().enumerate() {
            for row in &person.rows {
                let age = row.age.map_or("NULL".to_owned(), |age| age.to_string());
                let (zip, illness, tag) = (text(row.zip), text(row.illness), people.len());
                people.push(format!("('P{number}', {age}, {zip}, {illness}, {tag})"));
            }
            let of_purposes =
                [("care", person.care.as_ref()), ("study", person.care.as_ref().and(person.study.as_ref()))];
            for (purpose, choice) in of_purposes {
                let Some(Choice { k, level, shows: [age, zip, illness] }) = choice else { continue };
                choices.push(format!("('P{number}', '{purpose}', {k}, {level}, {age}, {zip}, {illness})"));
            }
        }
        let pairs = |dgh: &[(&str, [&str; 2])]| {
            let mut pairs: Vec<String> = dgh
                .iter()
                .flat_map(|(leaf, [node, root])| [format!("('{leaf}', '{node}')"), format!("('{node}', '{root}')")])
                .collect();
            pairs.sort();
            pairs.dedup();
            pairs.join(", ")
        };
        format!(
            "CREATE TABLE people (name TEXT, age INT, zip TEXT, illness TEXT, tag INT) AS VALUES {};
             CREATE TABLE choices (name TEXT, purpose TEXT, k INT, level INT, age_op BOOLEAN, zip_op BOOLEAN, illness_op BOOLEAN)
               AS VALUES {};
             CREATE DGH zip; INSERT INTO DGH zip VALUES {};
             CREATE DGH illness; INSERT INTO DGH illness VALUES {};
             CREATE DGH age FROM STEPS (5, 20);",
            order.joined(people),
            order.joined(choices),
            pairs(&ZIPS),
            pairs(&ILLNESSES),
        )
    }

    pub(crate) fn view(&self) -> String {
        format!(
            "CREATE ANONYMIZATION_VIEW v ON SELECT name, age, zip, illness, tag FROM people WITH ANONYMIZATION_ID name
             ANONYMIZATION_QUASI_ID (age {}, zip DGH_NAME zip) ANONYMIZATION_SENSITIVE_ATTR (illness DGH_NAME illness)
             ANONYMIZATION_OTHER (tag) name REFERENCES choices (k, level) USING {} DISCLOSURE {} LEFTOVERS {} {} {} {} {}",
            if self.has_steps { "DGH_NAME age" } else { "" },
            self.algorithm,
            match self.disclosure {
                Disclosure::Class => "CLASS",
                Disclosure::Row => "ROW",
            },
            match self.leftovers {
                Leftovers::Merge => "MERGE",
                Leftovers::Suppress => "SUPPRESS",
            },
            self.least_k.map(|k| format!("K {k}")).unwrap_or_default(),
            self.l.map(|l| format!("L_DIVERSITY {l}")).unwrap_or_default(),
            self.t.map(|t| format!("T_CLOSENESS 0.{t}")).unwrap_or_default(),
            match self.purposes {
                Purposes::Together => "",
                Purposes::Apart => "PER PURPOSE",
            },
        )
    }
}

fn row() -> impl Strategy<Value = Row> {
    let zip = weighted(0.9, (0..ZIPS.len()).prop_map(|place| ZIPS[place].0));
    let illness = weighted(0.9, (0..ILLNESSES.len()).prop_map(|place| ILLNESSES[place].0));
    (weighted(0.9, 0..40i64), zip, illness).prop_map(|(age, zip, illness)| Row { age, zip, illness })
}

fn choice() -> impl Strategy<Value = Choice> {
    let shown = || prop::bool::weighted(0.85);
    let k = prop_oneof![1 => Just(0usize), 1 => Just(1), 4 => Just(2), 2 => Just(3), 1 => 4..=5usize];
    (k, 0..3usize, [shown(), shown(), shown()]).prop_map(|(k, level, shows)| Choice { k, level, shows })
}

pub(crate) fn any() -> impl Strategy<Value = People> {
    let person = (vec(row(), 1..=2), weighted(0.9, choice()), weighted(0.6, choice()));
    let person = person.prop_map(|(rows, care, study)| Person { rows, care, study });
    // At least one person allows something, so that there is a purpose to ask for.
    let somebody =
        (vec(row(), 1..=2), choice()).prop_map(|(rows, care)| Person { rows, care: Some(care), study: None });
    let algorithm = prop::sample::select(vec!["auto", "datafly", "mondrian", "cluster", "datafly BLOCK 4"]);
    let disclosure = prop_oneof![Just(Disclosure::Class), Just(Disclosure::Row)];
    let leftovers = prop_oneof![3 => Just(Leftovers::Merge), 1 => Just(Leftovers::Suppress)];
    let purposes = prop_oneof![3 => Just(Purposes::Together), 1 => Just(Purposes::Apart)];
    let persons = (somebody, vec(person, 6..14));
    let requirement = (weighted(0.3, 1..=3usize), weighted(0.25, 2..=2usize), weighted(0.25, 5..=8u8));
    (persons, disclosure, requirement, leftovers, purposes, algorithm, prop::bool::ANY).prop_map(
        |((somebody, mut persons), disclosure, (least_k, l, t), leftovers, purposes, algorithm, has_steps)| {
            persons.push(somebody);
            People { persons, disclosure, least_k, leftovers, purposes, l, t, algorithm, has_steps }
        },
    )
}

/// A condition on a row.
#[derive(Clone, Debug)]
pub(crate) enum Condition {
    Age(&'static str, i64),
    AgeBetween(i64, i64),
    Zip(&'static str, &'static str),
    ZipIn(Vec<&'static str>),
    ZipStarts(&'static str),
    Illness(&'static str, &'static str),
    And(Box<Condition>, Box<Condition>),
    Or(Box<Condition>, Box<Condition>),
    Not(Box<Condition>),
}

pub(crate) fn zip() -> impl Strategy<Value = &'static str> {
    (0..ZIPS.len()).prop_map(|place| ZIPS[place].0)
}

pub(crate) fn condition() -> impl Strategy<Value = Condition> {
    let comparison = || prop::sample::select(vec!["=", "<>", "<", "<=", ">", ">="]);
    let equality = || prop::sample::select(vec!["=", "<>"]);
    let illness = (0..ILLNESSES.len()).prop_map(|place| ILLNESSES[place].0);
    let atom = prop_oneof![
        3 => (comparison(), 0..40i64).prop_map(|(comparison, age)| Condition::Age(comparison, age)),
        1 => (0..40i64, 0..15i64).prop_map(|(low, width)| Condition::AgeBetween(low, low + width)),
        2 => (equality(), zip()).prop_map(|(comparison, zip)| Condition::Zip(comparison, zip)),
        1 => vec(zip(), 1..3).prop_map(Condition::ZipIn),
        1 => prop::sample::select(vec!["a", "b", "c"]).prop_map(Condition::ZipStarts),
        2 => (equality(), illness).prop_map(|(comparison, illness)| Condition::Illness(comparison, illness)),
    ];
    atom.prop_recursive(3, 8, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| Condition::And(Box::new(a), Box::new(b))),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| Condition::Or(Box::new(a), Box::new(b))),
            inner.prop_map(|a| Condition::Not(Box::new(a))),
        ]
    })
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Condition::Age(comparison, age) => write!(f, "age {comparison} {age}"),
            Condition::AgeBetween(low, high) => write!(f, "age BETWEEN {low} AND {high}"),
            Condition::Zip(comparison, zip) => write!(f, "zip {comparison} '{zip}'"),
            Condition::ZipIn(zips) => write!(f, "zip IN ('{}')", zips.join("', '")),
            Condition::ZipStarts(start) => write!(f, "zip LIKE '{start}%'"),
            Condition::Illness(comparison, illness) => write!(f, "illness {comparison} '{illness}'"),
            Condition::And(a, b) => write!(f, "({a} AND {b})"),
            Condition::Or(a, b) => write!(f, "({a} OR {b})"),
            Condition::Not(a) => write!(f, "NOT ({a})"),
        }
    }
}
