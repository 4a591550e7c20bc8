//! Random jobs of one table beside public registers, as the files a user would have.
//!
//! People are drawn as plain numbers. The private table and the registers spell the same number differently: `1.5` and
//! `1.50`, a composed and a decomposed letter. The job knows to whom every row belongs, so it can say whom a join must
//! find.

use std::collections::BTreeMap;
use std::fmt;

use kohort_model::Requirement;
use proptest::prelude::*;

use super::requirement::{RequirementDraft, requirement_draft};
use super::texts::requirement_keys;

/// A private table, one or two registers and a spec.
#[derive(Clone)]
pub struct RegisterJob {
    columns: Vec<Kind>,
    private: Vec<PrivatePerson>,
    others: Vec<OtherPerson>,
    asked: AskedDraft,
}

/// The numbers that a person's quasi values are made of, `None` for null.
pub type Place = Vec<Option<u8>>;

/// The persons whom the registers know, by how the files were made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// For each private row, the place of its person in the registers; `None` if the registers don't have the person,
    /// or contradict each other. If persons are found by their values and several private rows have the same values,
    /// the first of these rows count as found.
    pub private: Vec<Option<Place>>,
    /// Register persons who are not in the private table.
    pub others: Vec<Place>,
}

/// How persons are found in the registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundBy {
    /// By a key.
    Key,
    /// By their quasi values.
    Values,
}

/// What a quasi column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Integer,
    Decimal,
    Date,
    Code,
    Word,
}

/// The file that contains a cell.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum File {
    Private,
    Register,
}

#[derive(Clone, Debug)]
struct PrivatePerson {
    place: Vec<u8>,
    has_null: bool,
    said: Said,
    sensitive: u8,
    plain: u8,
    own_k: u8,
}

/// What the first register says about a private person.
#[derive(Clone, Debug)]
enum Said {
    Nothing,
    Same,
    Other(Vec<u8>),
}

#[derive(Clone, Debug)]
struct OtherPerson {
    place: Vec<u8>,
    second: Second,
}

/// What the second register says about a person of the first.
#[derive(Clone, Debug)]
enum Second {
    Nothing,
    Same,
    Other(Vec<u8>),
    /// The person is in the second register only.
    Alone,
}

#[derive(Clone, Debug)]
struct AskedDraft {
    k: u32,
    found_by: FoundBy,
    two_registers: bool,
    n_incomplete: usize,
    own_k: bool,
    plain: bool,
    sensitive: Option<Option<RequirementDraft>>,
    algorithm: &'static str,
    direct: bool,
    microdata: bool,
    count_unmatched: bool,
    max_suppressed: f64,
    delta_presence: Option<(f64, f64)>,
}

/// How large jobs are.
#[derive(Clone, Copy, Debug)]
pub struct RegisterSize {
    /// The largest number of people in the private table.
    pub private: usize,
    /// The largest number of people who are only in the registers.
    pub others: usize,
}

impl RegisterSize {
    /// Few enough people to try every way to leave persons out.
    pub const TINY: RegisterSize = RegisterSize { private: 8, others: 12 };
    /// A few dozen people.
    pub const SMALL: RegisterSize = RegisterSize { private: 40, others: 80 };
    /// A few hundred people.
    pub const MEDIUM: RegisterSize = RegisterSize { private: 120, others: 400 };
}

/// A quasi column has fewer distinct values than this.
pub(super) const N_VALUES: u8 = 8;

/// Random jobs.
pub fn register_job(size: RegisterSize) -> impl Strategy<Value = RegisterJob> {
    let kind = prop::sample::select(Kind::ALL.to_vec());
    let sizes = (1..=size.private, 0..=size.others);
    (prop::collection::vec(kind, 1..4), sizes, asked_draft()).prop_flat_map(
        |(columns, (n_private, n_others), asked)| {
            let n_columns = columns.len();
            let place = move || prop::collection::vec(0..N_VALUES, n_columns);
            let said = prop_oneof![1 => Just(Said::Nothing), 4 => Just(Said::Same), 1 => place().prop_map(Said::Other)];
            let private = (place(), prop::bool::weighted(0.04), said, 0u8..6, 0u8..3, 0u8..6).prop_map(
                |(place, has_null, said, sensitive, plain, own_k)| PrivatePerson {
                    place,
                    has_null,
                    said,
                    sensitive,
                    plain,
                    own_k,
                },
            );
            let second = prop_oneof![
                6 => Just(Second::Nothing),
                2 => Just(Second::Same),
                1 => place().prop_map(Second::Other),
                1 => Just(Second::Alone)
            ];
            let other = (place(), second).prop_map(|(place, second)| OtherPerson { place, second });
            (prop::collection::vec(private, n_private), prop::collection::vec(other, n_others)).prop_map(
                move |(private, others)| RegisterJob {
                    columns: columns.clone(),
                    private,
                    others,
                    asked: asked.clone(),
                },
            )
        },
    )
}

fn asked_draft() -> impl Strategy<Value = AskedDraft> {
    let algorithm = prop::sample::select(vec!["auto", "mondrian", "top-down", "datafly", "cluster"]);
    let found_by = prop::sample::select(vec![FoundBy::Key, FoundBy::Values]);
    let max_suppressed = prop_oneof![3 => Just(0.0), 1 => 0.0f64..0.5];
    let delta_presence = prop_oneof![4 => Just(None), 1 => (0.3f64..1.0).prop_map(|most| Some((0.0, most)))];
    let sensitive = prop::option::weighted(0.8, prop::option::weighted(0.7, requirement_draft()));
    let switches = any::<[bool; 5]>();
    (1u32..8, found_by, 0usize..3, sensitive, algorithm, max_suppressed, delta_presence, switches).prop_map(
        |(k, found_by, n_incomplete, sensitive, algorithm, max_suppressed, delta_presence, switches)| {
            let [two_registers, own_k, plain, direct, others] = switches;
            AskedDraft {
                k,
                found_by,
                two_registers,
                n_incomplete,
                own_k: own_k && plain,
                plain,
                sensitive,
                algorithm,
                direct,
                microdata: others && delta_presence.is_none(),
                count_unmatched: own_k,
                max_suppressed,
                delta_presence,
            }
        },
    )
}

impl Kind {
    pub(super) const ALL: [Kind; 5] = [Kind::Integer, Kind::Decimal, Kind::Date, Kind::Code, Kind::Word];

    pub(super) fn text(self, value: u8, file: File) -> String {
        match (self, file) {
            (Kind::Integer, _) => (u32::from(value) * 3).to_string(),
            (Kind::Decimal, File::Private) => format!("{value}.5"),
            (Kind::Decimal, File::Register) => format!("{value}.50"),
            (Kind::Date, _) => format!("1990-0{}-28", value + 1),
            (Kind::Code, _) => format!("0{}{}", value / 3, value),
            (Kind::Word, File::Private) => format!("caf\u{e9} {value}"),
            (Kind::Word, File::Register) => format!("cafe\u{301} {value}"),
        }
    }

    pub(super) fn spec(self) -> &'static str {
        match self {
            Kind::Integer => "type = \"integer\"",
            Kind::Decimal => "type = \"decimal\"",
            Kind::Date => "type = \"date\", hierarchy = { dates = [\"month\", \"quarter\", \"year\"] }",
            Kind::Code => "type = \"text\", hierarchy = { mask = \"right\" }",
            Kind::Word => "type = \"text\", hierarchy = \"words.csv\"",
        }
    }
}

/// The hierarchy of words.
pub(super) fn words() -> String {
    let word = |value: u8| format!("{};group {};any", Kind::Word.text(value, File::Private), value / 3);
    (0..N_VALUES).map(word).collect::<Vec<_>>().join("\n")
}

impl RegisterJob {
    /// How persons are found in the registers.
    pub fn found_by(&self) -> FoundBy {
        self.asked.found_by
    }

    /// The text of a value as the private table spells it.
    pub fn text(&self, column: usize, value: u8) -> String {
        self.columns[column].text(value, File::Private)
    }

    /// The place of a person in the private table.
    pub fn place(&self, row: usize) -> Place {
        let PrivatePerson { place, has_null, .. } = &self.private[row];
        let is_null = |column: usize| *has_null && column == 0;
        place.iter().enumerate().map(|(column, &value)| (!is_null(column)).then_some(value)).collect()
    }

    /// The rows of both registers: the person of each row, and the person's place.
    fn register_rows(&self) -> [Vec<(String, Place)>; 2] {
        let whole = |place: &[u8]| -> Place { place.iter().copied().map(Some).collect() };
        let mut rows = [Vec::new(), Vec::new()];
        for (row, person) in self.private.iter().enumerate() {
            let said = match &person.said {
                Said::Nothing => continue,
                Said::Same => self.place(row),
                Said::Other(place) => whole(place),
            };
            rows[0].push((format!("p{row}"), said));
        }
        for (number, person) in self.others.iter().enumerate() {
            let name = format!("r{number}");
            let (first, second) = match &person.second {
                Second::Nothing => (Some(&person.place), None),
                Second::Same => (Some(&person.place), Some(&person.place)),
                Second::Other(place) => (Some(&person.place), Some(place)),
                Second::Alone => (None, Some(&person.place)),
            };
            rows[0].extend(first.map(|place| (name.clone(), whole(place))));
            rows[1].extend(second.filter(|_| self.asked.two_registers).map(|place| (name, whole(place))));
        }
        for number in 0..self.asked.n_incomplete {
            rows[0].push((format!("x{number}"), vec![None; self.columns.len()]));
        }
        rows
    }

    /// The persons whom a join must find.
    pub fn known(&self) -> Known {
        let rows = self.register_rows();
        let is_whole = |place: &Place| place.iter().all(Option::is_some);
        let whole = |rows: &[(String, Place)]| -> Vec<(String, Place)> {
            rows.iter().filter(|(_, place)| is_whole(place)).cloned().collect()
        };
        let [first, second] = [whole(&rows[0]), whole(&rows[1])];
        match self.asked.found_by {
            FoundBy::Key => {
                let mut said: BTreeMap<String, Vec<Place>> = BTreeMap::new();
                for (name, place) in first.into_iter().chain(second) {
                    let places = said.entry(name).or_default();
                    if !places.contains(&place) {
                        places.push(place);
                    }
                }
                // If the registers contradict each other about a person, neither is believed.
                said.retain(|_, places| places.len() == 1);
                let private = (0..self.private.len())
                    .map(|row| said.remove(&format!("p{row}")).map(|mut places| places.remove(0)));
                let private = private.collect();
                Known { private, others: said.into_values().flatten().collect() }
            }
            FoundBy::Values => {
                let count = |rows: &[(String, Place)]| {
                    let mut counts: BTreeMap<Place, usize> = BTreeMap::new();
                    rows.iter().for_each(|(_, place)| *counts.entry(place.clone()).or_default() += 1);
                    counts
                };
                let mut left = count(&first);
                for (place, n) in count(&second) {
                    let most = left.entry(place).or_default();
                    *most = n.max(*most);
                }
                let mut private = Vec::new();
                for row in 0..self.private.len() {
                    let place = self.place(row);
                    let found = left.get_mut(&place).filter(|n| **n > 0);
                    private.push(found.map(|n| {
                        *n -= 1;
                        place
                    }));
                }
                let others = left.into_iter().flat_map(|(place, n)| std::iter::repeat_n(place, n));
                Known { private, others: others.collect() }
            }
        }
    }

    /// The files by name, the spec as `release.toml`.
    pub fn files(&self) -> BTreeMap<String, String> {
        let mut files = BTreeMap::new();
        files.insert("release.toml".to_owned(), self.spec_text());
        let names: Vec<String> = (0..self.columns.len()).map(|column| format!("q{column}")).collect();
        let mut table = format!("id,{}", names.join(","));
        table += if self.asked.own_k { ",own_k" } else { "" };
        table += if self.asked.sensitive.is_some() { ",s" } else { "" };
        table += if self.asked.plain { ",plain\n" } else { "\n" };
        for (row, person) in self.private.iter().enumerate() {
            table += &format!("p{row},{}", self.cells(&self.place(row), File::Private));
            table += &if self.asked.own_k { format!(",{}", person.own_k) } else { String::new() };
            table += &self.asked.sensitive.as_ref().map_or_else(String::new, |_| format!(",v{}", person.sensitive));
            table += &if self.asked.plain { format!(",w{}\n", person.plain) } else { "\n".to_owned() };
        }
        files.insert("t.csv".to_owned(), table);
        let [first, second] = self.register_rows().map(|rows| {
            let mut register = format!("id,{}\n", names.join(","));
            rows.iter()
                .for_each(|(name, place)| register += &format!("{name},{}\n", self.cells(place, File::Register)));
            register
        });
        files.insert("first.csv".to_owned(), first);
        files.insert("second.csv".to_owned(), second);
        files.insert("words.csv".to_owned(), words());
        files
    }

    fn cells(&self, place: &Place, file: File) -> String {
        let cell = |(kind, value): (&Kind, &Option<u8>)| value.map_or_else(String::new, |value| kind.text(value, file));
        self.columns.iter().zip(place).map(cell).collect::<Vec<_>>().join(",")
    }

    fn spec_text(&self) -> String {
        let AskedDraft { k, algorithm, max_suppressed, .. } = &self.asked;
        let bounds = self.asked.delta_presence;
        let presence =
            bounds.map_or_else(String::new, |(least, most)| format!("delta_presence = [{least:?}, {most:?}]\n"));
        let mut spec = format!(
            "k = {k}\nalgorithm = \"{algorithm}\"\nmax_suppressed = {max_suppressed:?}\n{presence}[tables.t]\n"
        );
        spec += "file = \"t.csv\"\nperson = \"id\"\n[tables.t.columns]\nid = \"identifier\"\n";
        for (column, kind) in self.columns.iter().enumerate() {
            spec += &format!("q{column} = {{ role = \"quasi\", {} }}\n", kind.spec());
        }
        spec += if self.asked.own_k { "own_k = \"person_k\"\n" } else { "" };
        if let Some(draft) = &self.asked.sensitive {
            let column = kohort_model::Column::from_cells("s", kohort_model::Role::Sensitive, []);
            let asked: Vec<Requirement> = draft.iter().map(|draft| draft.on(&column)).collect();
            spec += &format!("s = {{ role = \"sensitive\"{} }}\n", requirement_keys(&asked));
        }
        spec += if self.asked.plain { "plain = \"plain\"\n" } else { "" };
        let key = if self.asked.found_by == FoundBy::Key { "key = \"id\"\n" } else { "" };
        spec += &format!("[registers.first]\nfile = \"first.csv\"\n{key}");
        if self.asked.two_registers {
            spec += &format!("[registers.second]\nfile = \"second.csv\"\n{key}");
        }
        let method = if self.asked.direct { "direct" } else { "refine" };
        let release = if self.asked.microdata { "microdata" } else { "all" };
        spec += &format!("[register]\nmethod = \"{method}\"\nrelease = \"{release}\"\n");
        if self.asked.found_by == FoundBy::Values {
            spec += &format!("unmatched = \"{}\"\n", if self.asked.count_unmatched { "count" } else { "doubt" });
        }
        spec
    }
}

/// Shows every file: generated tables hold nobody's data.
impl fmt::Debug for RegisterJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.files().iter().try_for_each(|(name, text)| writeln!(f, "--- {name}\n{text}"))
    }
}
