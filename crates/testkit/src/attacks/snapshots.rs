//! Attacks on views over data that changes, by somebody who kept every snapshot and knows who came and went when.
//!
//! [`statements`](super::statements) attacks what readers can ask in SQL. This module attacks the rule by which persons
//! enter and leave a materialized view.

mod at_once;
mod attacker;
mod history;

use std::collections::BTreeMap;

use kohort_core::anonymize;
use kohort_core::changing::{
    ClassIndex, Closing, Departures, Edit, Effect, Epochs, Member, MemberKey, MemoryLedger, PersonKey, ReferenceColumn,
    Standard,
};
use kohort_model::{Column, Requirement, Role, Silent, Spec, Table, ValueType};

pub use attacker::{Attacker, Block, Row, Tuple, candidates, stands};
pub use history::{Happened, N_VALUES, Rule, Setting, Tuples, View, trees};

use super::{Attack, Count, Promise, Side, System};
use crate::random::Random;

pub(super) const ATTACKS: &[Attack] = &[
    Attack {
        name: "all snapshots together",
        system: System::Views,
        knows: "every snapshot of a materialized view, who was in which class when, and the rule",
        does: "intersects and subtracts classes of all snapshots, and gives everybody each value that is still possible",
        success: "persons told apart from fewer than k others, or left with fewer than l values",
        run: all_snapshots,
    },
    Attack {
        name: "before and after one insert",
        system: System::Views,
        knows: "who came when",
        does: "subtracts what the view showed before from what it shows after",
        success: "newcomers whose illness is the difference",
        run: before_and_after,
    },
    Attack {
        name: "who came last",
        system: System::Views,
        knows: "who came when, and that a crowd is shown as soon as it has l illnesses",
        does: "assigns the rarest illness of each new crowd to the person who came last",
        success: "crowds for which that is right",
        run: who_came_last,
    },
];

/// The k and l that are required for everybody.
fn k_and_l(setting: &Setting) -> (u32, Vec<(usize, u32)>) {
    let k = setting.requirements.iter().find_map(Requirement::k).unwrap_or(2);
    let l = setting.requirements.iter().filter_map(|requirement| match requirement {
        Requirement::DistinctL { column, l } => Some((usize::from(column == "c1"), *l)),
        Requirement::K(_)
        | Requirement::PersonK { .. }
        | Requirement::EntropyL { .. }
        | Requirement::RecursiveCL { .. }
        | Requirement::TCloseness { .. }
        | Requirement::Alpha { .. }
        | Requirement::Beta { .. }
        | Requirement::EnhancedBeta { .. } => None,
    });
    (k, l.collect())
}

/// The persons whose row or values the attacker finds out.
pub fn breached(setting: &Setting, blocks: &[Block]) -> Vec<u64> {
    let (k, l) = k_and_l(setting);
    let mut breached = Vec::new();
    for block in blocks {
        if !stands(&block.rows, &setting.requirements, N_VALUES) {
            breached.extend(block.persons());
            continue;
        }
        for row in block.rows.iter().filter(|_| setting.tuples == Tuples::Stay) {
            let possible = candidates(blocks, row.person);
            let n_like = block.rows.iter().filter(|other| possible.contains(&other.tuple)).count();
            let n_values = |column: usize| {
                let mut values: Vec<u32> = possible.iter().map(|tuple| tuple[column]).collect();
                values.sort_unstable();
                values.dedup();
                values.len()
            };
            if n_like < k.max(row.k) as usize || l.iter().any(|&(column, l)| n_values(column) < l as usize) {
                breached.push(row.person);
            }
        }
    }
    breached
}

/// A view that asks for two persons and two values.
pub fn diverse(rule: Rule) -> Setting {
    let requirements = vec![Requirement::K(2), Requirement::DistinctL { column: "c0".to_owned(), l: 2 }];
    Setting { requirements, n_columns: 1, own_k: vec![2, 2, 2, 3], rule, tuples: Tuples::Stay }
}

fn all_snapshots() -> Vec<Side> {
    let made_out = |rule: Rule| {
        let setting = diverse(rule);
        let mut count = Count::default();
        for seed in 0..20 {
            let mut view = View::new(&setting, 30, seed);
            (0..10).for_each(|_| view.change());
            let blocks = view.attacker.blocks();
            let breached = breached(&setting, &blocks);
            let shown: std::collections::BTreeSet<u64> = blocks.iter().flat_map(Block::persons).collect();
            shown.iter().for_each(|person| count.add(breached.contains(person), 0.0));
        }
        count
    };
    vec![
        Side::naive("newcomers join a class at once, as in [EPS+12]", made_out(Rule::AtOnce)),
        Side::kohort(
            "materialized view",
            Promise::Nobody,
            made_out(Rule::Epochs(Departures::Batch, Closing::BySize(4))),
        ),
    ]
}

/// People who come to a materialized view one by one, all with the same quasi values.
struct Arrivals {
    standard: Standard,
    index: ClassIndex,
    ledger: MemoryLedger,
    closing: Closing,
    n_arrived: u64,
}

impl Arrivals {
    fn new(closing: Closing) -> Arrivals {
        let requirements = diverse(Rule::AtOnce).requirements;
        let column = ReferenceColumn { name: "c0".to_owned(), counts: vec![10; N_VALUES as usize] };
        let standard = Standard::compile(&requirements, &[column]).expect("its only column is there");
        Arrivals { standard, index: ClassIndex::new(2), ledger: MemoryLedger::new(), closing, n_arrived: 0 }
    }

    /// One more person comes. Returns the values of the crowd that is then shown, in the order in which its members
    /// came, or nothing if no crowd is.
    fn come(&mut self, value: u32) -> Vec<u32> {
        let trees = trees();
        let number = self.n_arrived;
        self.n_arrived += 1;
        let leaf = |tree: &kohort_core::changing::GrowingTree| tree.n_nodes() as u32 - 1;
        let nodes = trees.iter().map(leaf).collect();
        let member = Member { key: MemberKey(number), person: PersonKey(number), k: 2, nodes, tuple: vec![value] };
        let epochs = Epochs {
            trees: &trees,
            index: &self.index,
            standard: &self.standard,
            departures: Departures::Batch,
            closing: self.closing,
        };
        let Ok(effects) = epochs.apply(&self.ledger, vec![Edit::Insert(member)]);
        self.ledger.write(&effects);
        self.index.follow(&trees, &effects);
        let admitted =
            effects.iter().find_map(|effect| if let Effect::Admit { atom, .. } = effect { Some(atom) } else { None });
        let Some(atom) = admitted else { return Vec::new() };
        let (_, members) = &self.ledger.all_atoms()[atom];
        members.iter().map(|member| member.member.tuple[0]).collect()
    }
}

/// How kohort closes crowds where l = 2 is asked: by size, at twice the number that is needed.
const BY_SIZE: Closing = Closing::BySize(4);

fn who_came_last() -> Vec<Side> {
    let told = |closing| {
        let mut random = Random::new(6);
        let mut arrivals = Arrivals::new(closing);
        let mut count = Count::default();
        for _ in 0..2000 {
            let crowd = arrivals.come(random.below(N_VALUES as usize) as u32);
            let mut n_with: BTreeMap<u32, usize> = BTreeMap::new();
            crowd.iter().for_each(|&value| *n_with.entry(value).or_default() += 1);
            let fewest = n_with.values().copied().min();
            // If two illnesses are equally rare, the attacker makes no guess.
            let rarest: Vec<u32> =
                n_with.iter().filter(|(_, n)| Some(**n) == fewest).map(|(&value, _)| value).collect();
            if let ([rarest], Some(last), Some(n)) = (rarest.as_slice(), crowd.last(), fewest) {
                count.add(rarest == last, n as f64 / crowd.len() as f64);
            }
        }
        count
    };
    vec![
        Side::naive("shown as soon as `l` holds", told(Closing::Earliest)),
        Side::kohort("materialized view: shown by number", Promise::Chance, told(BY_SIZE)),
    ]
}

/// How often each illness is shown in a view that is computed anew.
fn computed(values: &[u32]) -> BTreeMap<String, i64> {
    let texts: Vec<String> = values.iter().map(u32::to_string).collect();
    let ages: Vec<String> = (0..values.len()).map(|person| (20 + person % 40).to_string()).collect();
    let ages = Column::from_cells("age", Role::Quasi, ages.iter().map(|age| Some(age.as_str())));
    let illness = Column::from_cells("c0", Role::Sensitive, texts.iter().map(|text| Some(text.as_str())));
    let columns = vec![ages.typed(ValueType::Integer), illness];
    let table = Table { name: "t".to_owned(), columns, n_rows: values.len(), person: None };
    let requirements = diverse(Rule::AtOnce).requirements;
    let done =
        anonymize(&table, &Spec::new(2), &requirements, &Silent).expect("two values are there from the beginning");
    let mut shown = BTreeMap::new();
    for row in &done.release.tables[0].rows {
        *shown.entry(texts[*row as usize].clone()).or_default() += 1;
    }
    shown
}

fn before_and_after() -> Vec<Side> {
    let mut random = Random::new(4);
    let mut values = vec![0, 1, 2, 0, 1, 2];
    let (mut refreshed, mut kept) = (Count::default(), Count::default());
    let mut arrivals = Arrivals::new(BY_SIZE);
    let mut before = computed(&values);
    for _ in 0..60 {
        let value = random.below(N_VALUES as usize) as u32;
        values.push(value);
        let after = computed(&values);
        let more: Vec<&String> =
            after.iter().filter(|(text, n)| before.get(*text) != Some(n)).map(|(text, _)| text).collect();
        refreshed.add(more == [&value.to_string()], 0.0);
        before = after;
        // The rows that were not there before are the crowd.
        let mut crowd = arrivals.come(value);
        crowd.sort_unstable();
        crowd.dedup();
        kept.add(crowd.len() == 1, 0.0);
    }
    vec![
        Side::kohort(
            "computed view, `REFRESH` after each insert",
            Promise::Nothing("a materialized view; `REFRESH` warns"),
            refreshed,
        ),
        Side::kohort("materialized view", Promise::Nobody, kept),
    ]
}
