//! Random towns whose people come, move and leave, and are surveyed several times.
//!
//! Each survey is released beside the register of its year, to be read together with earlier releases. The town knows
//! who everybody is, so it can say whom a reader finds without asking the join.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use kohort_model::{Column, Requirement, Role};
use proptest::prelude::*;

use super::register::{File, Kind, N_VALUES, words};
use super::requirement::{RequirementDraft, requirement_draft};
use super::texts::requirement_keys;

/// A town, and what is required of the releases of its surveys.
#[derive(Clone)]
pub struct Town {
    columns: Vec<Kind>,
    people: Vec<Vec<Year>>,
    asked: AskedDraft,
}

/// One number per quasi column.
pub type Spot = Vec<u8>;

/// A person in one year.
#[derive(Clone, Debug)]
struct Year {
    /// The person's place in the register; `None` if the person is not in it.
    registered: Option<Spot>,
    /// The person's place in the survey; `None` if the person does not take part.
    surveyed: Option<Spot>,
    sensitive: u8,
    own_k: u8,
}

#[derive(Clone, Debug)]
struct AskedDraft {
    k: u32,
    own_k: bool,
    sensitive: Option<Option<RequirementDraft>>,
    algorithm: &'static str,
    direct: bool,
    microdata: bool,
    max_suppressed: f64,
}

/// How large towns are.
#[derive(Clone, Copy, Debug)]
pub struct TownSize {
    /// The largest number of people in all years together.
    pub people: usize,
}

impl TownSize {
    /// Few enough people to try every possible release.
    pub const TINY: TownSize = TownSize { people: 7 };
    /// A few dozen people.
    pub const SMALL: TownSize = TownSize { people: 30 };
    /// More than a hundred people.
    pub const MEDIUM: TownSize = TownSize { people: 140 };
}

/// How much people move: one person in this many moves each year.
const MOVES: [u32; 4] = [1000, 30, 10, 3];

/// Random towns, surveyed two or three times.
pub fn town(size: TownSize) -> impl Strategy<Value = Town> {
    let columns = prop::collection::vec(prop::sample::select(Kind::ALL.to_vec()), 1..4);
    let moves = prop::sample::select(MOVES.to_vec());
    (columns, 2usize..=size.people, 2usize..=3, moves, 2..=N_VALUES, asked_draft()).prop_flat_map(
        |(columns, n_people, n_years, moves, n_values, asked)| {
            let n_columns = columns.len();
            let spot = move || prop::collection::vec(0..n_values, n_columns);
            let seldom = move || (0..moves).prop_map(|chance| chance == 0);
            let year = move || {
                let moved = (seldom(), spot());
                (moved, seldom(), any::<bool>(), (0u8..25, spot()), 0u8..4, 0u8..5)
            };
            let person = (spot(), prop::bool::weighted(0.95), prop::collection::vec(year(), n_years));
            prop::collection::vec(person, n_people).prop_map(move |people| {
                let years = |(mut spot, mut is_there, years): (Spot, bool, Vec<_>)| {
                    let year = |((is_moved, new), comes_or_leaves, takes_part, (told, other), sensitive, own_k)| {
                        if is_moved {
                            spot = new;
                        }
                        is_there ^= comes_or_leaves;
                        let registered = is_there.then(|| spot.clone());
                        // The survey rarely differs from the register, and rarely asks somebody who is not in it.
                        let takes_part = takes_part && (is_there || told < 5);
                        let surveyed = takes_part.then(|| if told == 24 { other } else { spot.clone() });
                        Year { registered, surveyed, sensitive, own_k }
                    };
                    years.into_iter().map(year).collect()
                };
                let people = people.into_iter().map(years).collect();
                Town { columns: columns.clone(), people, asked: asked.clone() }
            })
        },
    )
}

fn asked_draft() -> impl Strategy<Value = AskedDraft> {
    let algorithm = prop::sample::select(vec!["auto", "mondrian", "top-down", "datafly", "cluster"]);
    let max_suppressed = prop_oneof![2 => Just(0.0), 2 => 0.0f64..0.5];
    let requirement = prop_oneof![3 => (1u32..4).prop_map(RequirementDraft::DistinctL), 1 => requirement_draft()];
    let sensitive = prop::option::weighted(0.8, prop::option::weighted(0.7, requirement));
    (1u32..5, sensitive, algorithm, max_suppressed, prop::bool::weighted(0.2), any::<[bool; 2]>()).prop_map(
        |(k, sensitive, algorithm, max_suppressed, own_k, [direct, microdata])| AskedDraft {
            k,
            own_k,
            sensitive,
            algorithm,
            direct,
            microdata,
            max_suppressed,
        },
    )
}

impl Kind {
    /// Whether a released label stands for a value.
    fn is_held(self, label: &str, value: u8) -> bool {
        let text = self.text(value, File::Private);
        if label == "*" || label == text {
            return true;
        }
        match self {
            Kind::Integer | Kind::Decimal => {
                let number = |text: &str| text.parse::<f64>().expect("bounds are numbers");
                let bounds = label.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')?.split_once(','));
                match bounds {
                    Some((low, high)) => (number(low)..=number(high)).contains(&number(&text)),
                    None => number(label) == number(&text),
                }
            }
            Kind::Date => label == "1990" || text.starts_with(label) || label == format!("1990-Q{}", value / 3 + 1),
            Kind::Code => {
                label.len() == text.len()
                    && label.chars().zip(text.chars()).all(|(shown, own)| shown == '*' || shown == own)
            }
            Kind::Word => label == "any" || label == format!("group {}", value / 3),
        }
    }
}

impl Town {
    /// How many surveys there are.
    pub fn n_years(&self) -> usize {
        self.people[0].len()
    }

    /// How many people there are in all years together.
    pub fn n_people(&self) -> usize {
        self.people.len()
    }

    /// The persons who take part, in the order of the survey's rows.
    pub fn surveyed(&self, year: usize) -> Vec<usize> {
        (0..self.people.len()).filter(|&person| self.people[person][year].surveyed.is_some()).collect()
    }

    /// The persons in the register, in the order of its rows.
    pub fn registered(&self, year: usize) -> Vec<usize> {
        (0..self.people.len()).filter(|&person| self.people[person][year].registered.is_some()).collect()
    }

    /// A person's place in the register.
    pub fn place(&self, person: usize, year: usize) -> Option<&Spot> {
        self.people[person][year].registered.as_ref()
    }

    /// A person's place in the survey.
    pub fn told(&self, person: usize, year: usize) -> Option<&Spot> {
        self.people[person][year].surveyed.as_ref()
    }

    /// A person's answer in the survey.
    pub fn answer(&self, person: usize, year: usize) -> String {
        format!("v{}", self.people[person][year].sensitive)
    }

    /// The k that a person asks for.
    pub fn needed(&self, person: usize, year: usize) -> usize {
        let own_k = if self.asked.own_k { self.people[person][year].own_k.into() } else { 0 };
        (self.asked.k as usize).max(own_k)
    }

    /// Whether each person asks for a k of their own.
    pub fn has_own_k(&self) -> bool {
        self.asked.own_k
    }

    /// Whether released labels, one per column, stand for a place.
    pub fn holds(&self, cells: &[String], place: &[u8]) -> bool {
        self.columns.iter().zip(cells).zip(place).all(|((kind, label), &value)| kind.is_held(label, value))
    }

    /// Labels that stand for every place.
    pub fn everywhere(&self) -> Vec<String> {
        let label = |kind: &Kind| match kind {
            Kind::Integer | Kind::Decimal | Kind::Date => "*",
            Kind::Code => "***",
            Kind::Word => "any",
        };
        self.columns.iter().map(|kind| label(kind).to_owned()).collect()
    }

    /// The files of all years, by name. The spec of the last one is `release.toml`, those of earlier ones are
    /// `release-0.toml` and so on. Each expects the releases before it in `out-0` and so on.
    pub fn files(&self) -> BTreeMap<String, String> {
        let mut files = BTreeMap::from([("words.csv".to_owned(), words())]);
        let earlier: Vec<usize> = (0..self.n_years()).collect();
        for year in 0..self.n_years() {
            let is_last = year + 1 == self.n_years();
            let name = if is_last { "release.toml".to_owned() } else { format!("release-{year}.toml") };
            files.insert(name, self.spec_text(year, &earlier[..year]));
            files.insert(format!("survey-{year}.csv"), self.survey(year));
            files.insert(format!("town-{year}.csv"), self.register(year));
        }
        files
    }

    fn survey(&self, year: usize) -> String {
        let names: String = (0..self.columns.len()).map(|column| format!(",q{column}")).collect();
        let mut text = format!("id{names}");
        text += if self.asked.own_k { ",own_k" } else { "" };
        text += if self.asked.sensitive.is_some() { ",s\n" } else { "\n" };
        for person in self.surveyed(year) {
            let Year { surveyed, own_k, .. } = &self.people[person][year];
            text += &self.row(person, surveyed.as_deref().unwrap_or_default(), File::Private);
            text += &if self.asked.own_k { format!(",{own_k}") } else { String::new() };
            text += &if self.asked.sensitive.is_some() {
                format!(",{}\n", self.answer(person, year))
            } else {
                "\n".to_owned()
            };
        }
        text
    }

    fn register(&self, year: usize) -> String {
        let names: String = (0..self.columns.len()).map(|column| format!(",q{column}")).collect();
        let rows = self.registered(year).into_iter().map(|person| {
            let place = self.place(person, year).map_or(&[][..], Vec::as_slice);
            self.row(person, place, File::Register) + "\n"
        });
        format!("id{names}\n{}", rows.collect::<String>())
    }

    fn row(&self, person: usize, place: &[u8], file: File) -> String {
        let cells: String =
            self.columns.iter().zip(place).map(|(kind, &value)| format!(",{}", kind.text(value, file))).collect();
        format!("p{person}{cells}")
    }

    /// The spec of a year, to be read together with the releases of these earlier years.
    pub fn spec_text(&self, year: usize, earlier: &[usize]) -> String {
        let AskedDraft { k, algorithm, max_suppressed, own_k, sensitive, direct, microdata } = &self.asked;
        let list = |names: Vec<String>| names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
        let releases = list(earlier.iter().map(|year| format!("out-{year}")).collect());
        let mut spec = format!("k = {k}\nalgorithm = \"{algorithm}\"\nmax_suppressed = {max_suppressed:?}\n");
        spec += &if earlier.is_empty() { String::new() } else { format!("previous = [{releases}]\n") };
        spec += &format!(
            "[tables.t]\nfile = \"survey-{year}.csv\"\nperson = \"id\"\n[tables.t.columns]\nid = \"identifier\"\n"
        );
        for (column, kind) in self.columns.iter().enumerate() {
            spec += &format!("q{column} = {{ role = \"quasi\", {} }}\n", kind.spec());
        }
        spec += if *own_k { "own_k = \"person_k\"\n" } else { "" };
        if let Some(draft) = sensitive {
            let column = Column::from_cells("s", Role::Sensitive, []);
            let asked: Vec<Requirement> = draft.iter().map(|draft| draft.on(&column)).collect();
            spec += &format!("s = {{ role = \"sensitive\"{} }}\n", requirement_keys(&asked));
        }
        spec += &format!("[registers.town]\nfile = \"town-{year}.csv\"\nkey = \"id\"\n");
        // Registers with the same content are one file to the publisher.
        let now = self.register(year);
        let mut known = BTreeSet::from([now]);
        let others = earlier.iter().filter(|&&year| known.insert(self.register(year)));
        let others = list(others.map(|year| format!("town-{year}.csv")).collect());
        spec += &if others.is_empty() { String::new() } else { format!("previous = [{others}]\n") };
        let (method, release) =
            (if *direct { "direct" } else { "refine" }, if *microdata { "microdata" } else { "all" });
        spec + &format!("[register]\nmethod = \"{method}\"\nrelease = \"{release}\"\n")
    }
}

/// Shows every file: generated tables hold nobody's data.
impl fmt::Debug for Town {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.files().iter().try_for_each(|(name, text)| writeln!(f, "--- {name}\n{text}"))
    }
}
