//! [`View`]: a materialized view and its base table, to which random changes happen.

use std::collections::{BTreeMap, BTreeSet};

use kohort_core::changing::{
    AtomId, AtomMember, ClassId, ClassIndex, Closing, Departures, Edit, Effect, Epochs, GrowingTree, Ledger, Member,
    MemberKey, MemoryLedger, NewClass, OldAtom, Past, PersonKey, ReferenceColumn, Standard, refresh,
};
use kohort_model::{Hierarchy, Requirement};
use kohort_verify::{
    AtomStep, Refresh, RefreshedAtom, Seen, ShownValues, Step, StepColumn, StepMember, verify_refresh, verify_step,
};

use super::at_once::AtOnce;
use super::attacker::{Attacker, Row, Tuple, stands};
use crate::random::Random;

/// Why reading a ledger in memory can't fail.
const LEDGER: &str = "a ledger in memory fails only where its content is broken";

/// How many values each column of the tuples has.
pub const N_VALUES: u32 = 3;

/// The requirements of a view, and what its persons ask for.
#[derive(Clone, Debug)]
pub struct Setting {
    /// What every class must satisfy, in columns `c0`, `c1`, ...
    pub requirements: Vec<Requirement>,
    /// How many columns a tuple has.
    pub n_columns: usize,
    /// Each person asks for one of these.
    pub own_k: Vec<u32>,
    /// How changes reach the view.
    pub rule: Rule,
    /// Whether persons keep their values.
    pub tuples: Tuples,
}

/// How changes reach the view.
#[derive(Clone, Copy, Debug)]
pub enum Rule {
    /// Changes reach the view in batches, each of which satisfies the requirements by itself.
    Epochs(Departures, Closing),
    /// Changes reach the view one by one, as in `[EPS+12]`. No view of kohort works like this.
    AtOnce,
}

/// What happens to a person's other values when a row is updated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tuples {
    /// The values stay.
    Stay,
    /// The values are drawn anew.
    Change,
}

/// How often each kind of change happened, so that tests can check that it did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Happened {
    /// Rows that joined a class.
    pub admitted: usize,
    /// Rows that left a class.
    pub removed: usize,
    /// Crowds that were withdrawn.
    pub withdrawn: usize,
    /// Crowds that nobody joins any more.
    pub sealed: usize,
    /// Persons who ask for no crowd.
    pub alone: usize,
    /// Classes that a refresh kept.
    pub kept: usize,
    /// Crowds that a refresh made.
    pub parted: usize,
}

/// A view over a base table, and an attacker who keeps every snapshot of it.
pub struct View {
    setting: Setting,
    trees: Vec<GrowingTree>,
    standard: Standard,
    index: ClassIndex,
    ledger: MemoryLedger,
    /// The classes of the view if changes reach it at once.
    at_once: AtOnce,
    base: BTreeMap<PersonKey, Member>,
    gone: BTreeMap<PersonKey, Tuple>,
    next_key: u64,
    random: Random,
    /// The attacker, who keeps every snapshot.
    pub attacker: Attacker,
    /// What happened so far.
    pub happened: Happened,
    /// Steps that the verifier refused. There is none unless something is wrong.
    pub rejected: Vec<String>,
    /// Every step that touched a crowd.
    pub steps: Vec<Step>,
    /// Every refresh.
    pub refreshes: Vec<Refresh>,
}

/// The hierarchies of the two quasi columns.
///
/// # Panics
/// Never, because the hierarchies are constants.
pub fn trees() -> Vec<GrowingTree> {
    let deep = "1;a;l;*\n2;a;l;*\n3;b;l;*\n4;b;l;*\n5;c;r;*\n6;c;r;*\n7;d;r;*\n8;r;*\n";
    let flat = "m;*\nf;*\nx;*\n";
    [deep, flat].map(|paths| GrowingTree::of(&Hierarchy::from_paths(paths).expect("the paths are of trees"))).to_vec()
}

impl View {
    /// A view of this many persons.
    ///
    /// # Panics
    /// If a requirement names a column that tuples don't have.
    pub fn new(setting: &Setting, n_persons: u64, seed: u64) -> View {
        let counts = vec![10; N_VALUES as usize];
        let columns: Vec<ReferenceColumn> = (0..setting.n_columns)
            .map(|column| ReferenceColumn { name: format!("c{column}"), counts: counts.clone() })
            .collect();
        let mut view = View {
            setting: setting.clone(),
            trees: trees(),
            standard: Standard::compile(&setting.requirements, &columns).expect("the columns are there"),
            index: ClassIndex::new(2),
            ledger: MemoryLedger::new(),
            at_once: AtOnce::default(),
            base: BTreeMap::new(),
            gone: BTreeMap::new(),
            next_key: 0,
            random: Random::new(seed),
            attacker: Attacker::default(),
            happened: Happened::default(),
            rejected: Vec::new(),
            steps: Vec::new(),
            refreshes: Vec::new(),
        };
        view.build(n_persons);
        view
    }

    fn build(&mut self, n_persons: u64) {
        let mut members: Vec<Member> = (0..n_persons).map(|person| self.member(PersonKey(person), None)).collect();
        members.retain(|member| member.k >= 2);
        let classes = self.partitioned(members);
        self.base.extend(classes.iter().flatten().map(|member| (member.person, member.clone())));
        match self.setting.rule {
            Rule::Epochs(..) => self.show(classes),
            Rule::AtOnce => self.at_once = AtOnce::new(classes),
        }
        self.look();
    }

    /// Groups neighbours as soon as a group satisfies the requirements, as a partitioner might.
    fn partitioned(&self, mut members: Vec<Member>) -> Vec<Vec<Member>> {
        members.sort_by_key(|member| member.nodes.clone());
        let mut classes: Vec<Vec<Member>> = vec![Vec::new()];
        for member in members {
            let last = classes.last_mut().expect("there is one from the beginning");
            last.push(member);
            let rows: Vec<Row> = last.iter().map(|member| row(member, AtomId(0))).collect();
            if stands(&rows, &self.setting.requirements, N_VALUES) {
                classes.push(Vec::new());
            }
        }
        classes.pop();
        classes
    }

    /// Partitions the base anew and shows what readers may see of it.
    ///
    /// # Panics
    /// If the ledger is broken.
    pub fn refresh(&mut self) {
        if let Rule::AtOnce = self.setting.rule {
            return;
        }
        let members = self.base.values().filter(|member| member.k >= 2).cloned().collect();
        let classes = self.partitioned(members);
        self.show(classes);
        self.look();
    }

    fn show(&mut self, classes: Vec<Vec<Member>>) {
        let nodes = |members: &[Member]| {
            let node = |column: usize| {
                let nodes = members.iter().map(|member| member.nodes[column]);
                nodes.reduce(|a, b| self.trees[column].join(a, b)).expect("classes have members")
            };
            vec![node(0), node(1)]
        };
        let new: Vec<NewClass<Member>> =
            classes.into_iter().map(|members| NewClass { nodes: nodes(&members), members }).collect();
        let old = old_atoms(&self.ledger);
        let refreshed = refresh(&self.standard, &old, &new, |person| self.ledger.past(person)).expect(LEDGER);
        self.happened.kept += refreshed.kept.len();
        let effects = refreshed.effects(&old, &new, self.ledger.unused().expect(LEDGER));
        let before = old_atoms(&self.ledger).iter().map(|old| (old.atom.0, self.step_members(&old.members))).collect();
        // This hides persons who still wait, until they have another row.
        self.ledger.write(&effects);
        self.index.follow(&self.trees, &effects);
        let after = old_atoms(&self.ledger);
        self.happened.parted += after.iter().filter(|atom| !old.contains(atom)).count();
        let after = after.iter().map(|atom| RefreshedAtom {
            class: atom.class.0,
            atom: atom.atom.0,
            labels: self.labels(&self.ledger.classes()[&atom.class]),
            members: self.step_members(&atom.members),
        });
        let refresh = Refresh { before, after: after.collect() };
        self.refreshes.push(refresh.clone());
        if let Err(problems) = verify_refresh(refresh, &self.columns(), &self.setting.requirements) {
            self.rejected.push(problems.to_string());
        }
    }

    fn member(&mut self, person: PersonKey, tuple: Option<Tuple>) -> Member {
        let key = MemberKey(self.next_key);
        self.next_key += 1;
        if self.random.once_in(20) {
            let value = format!("new {}", self.next_key);
            self.trees[0].add_path(&[&value, "d", "r", "*"]).expect("the path ends at the root");
        }
        let mut leaf = |tree: &GrowingTree| loop {
            let node = self.random.below(tree.n_nodes()) as u32;
            if (0..tree.n_nodes() as u32).all(|other| tree.parent(other) != Some(node)) {
                return node;
            }
        };
        let nodes = self.trees.iter().map(&mut leaf).collect();
        let k = *self.random.pick(&self.setting.own_k);
        let n_columns = self.setting.n_columns;
        let tuple =
            tuple.unwrap_or_else(|| (0..n_columns).map(|_| self.random.below(N_VALUES as usize) as u32).collect());
        Member { key, person, k, nodes, tuple }
    }

    /// Some random changes in one batch.
    ///
    /// # Panics
    /// If the ledger is broken.
    pub fn change(&mut self) {
        let mut edits = Vec::new();
        for _ in 0..=self.random.below(5) {
            let person = PersonKey(self.random.below(60) as u64);
            let stays = self.setting.tuples == Tuples::Stay;
            match self.base.get(&person).cloned() {
                None => {
                    let tuple = self.gone.remove(&person).filter(|_| stays);
                    let new = self.member(person, tuple);
                    self.base.insert(person, new.clone());
                    edits.push(Edit::Insert(new));
                }
                Some(old) if self.random.once_in(3) => {
                    let new = self.member(person, Some(old.tuple).filter(|_| stays));
                    self.base.insert(person, new.clone());
                    edits.push(Edit::Update { old: old.key, new });
                }
                Some(old) => {
                    self.base.remove(&person);
                    self.gone.insert(person, old.tuple);
                    edits.push(Edit::Delete(old.key));
                }
            }
        }
        match self.setting.rule {
            Rule::Epochs(departures, closing) => {
                let (trees, index, standard) = (&self.trees, &self.index, &self.standard);
                let epochs = Epochs { trees, index, standard, departures, closing };
                let effects = epochs.apply(&self.ledger, edits).expect(LEDGER);
                self.write(&effects);
            }
            Rule::AtOnce => {
                let stands = |rows: &[Row]| stands(rows, &self.setting.requirements, N_VALUES);
                edits.into_iter().for_each(|edit| self.at_once.apply(&self.trees, &stands, edit));
            }
        }
        self.look();
    }

    fn write(&mut self, effects: &[Effect]) {
        let before = self.ledger.clone();
        self.ledger.write(effects);
        self.index.follow(&self.trees, effects);
        for effect in effects {
            match effect {
                Effect::Admit { .. } => self.happened.admitted += 1,
                Effect::Remove { .. } => self.happened.removed += 1,
                Effect::Withdraw { .. } => self.happened.withdrawn += 1,
                Effect::Seal { .. } => self.happened.sealed += 1,
                Effect::ShowAlone { .. } => self.happened.alone += 1,
                _ => {}
            }
        }
        self.verify(&before);
    }

    /// Checks that every step passes the verifier.
    fn verify(&mut self, before: &MemoryLedger) {
        let touched: BTreeSet<AtomId> =
            before.all_atoms().keys().chain(self.ledger.all_atoms().keys()).copied().collect();
        let touched =
            touched.into_iter().filter(|atom| before.all_atoms().get(atom) != self.ledger.all_atoms().get(atom));
        let atoms = touched.map(|atom| {
            let of = |ledger: &MemoryLedger| ledger.all_atoms().get(&atom).cloned();
            let (was, is) = (of(before), of(&self.ledger));
            let class = was.as_ref().or(is.as_ref()).expect("it is touched").0;
            let labels = |ledger: &MemoryLedger| ledger.classes().get(&class).map(|nodes| self.labels(nodes));
            let members = |atom: Option<(ClassId, Vec<AtomMember>)>| {
                atom.map_or_else(Vec::new, |(_, members)| self.step_members(&members))
            };
            AtomStep {
                class: class.0,
                atom: atom.0,
                labels_before: labels(before),
                labels: labels(&self.ledger).expect("classes stay"),
                before: members(was),
                after: members(is),
            }
        });
        let step = Step { atoms: atoms.collect() };
        self.steps.extend((!step.atoms.is_empty()).then(|| step.clone()));
        if let Err(problems) = verify_step(step, &self.columns(), &self.setting.requirements) {
            self.rejected.push(problems.to_string());
        }
    }

    /// The columns that rows show beside their quasi labels.
    pub fn columns(&self) -> Vec<StepColumn> {
        let reference: BTreeMap<_, _> = (0..N_VALUES).map(|value| (Some(value.to_string()), 10)).collect();
        let column = |column| StepColumn { name: format!("c{column}"), reference: reference.clone() };
        (0..self.setting.n_columns).map(column).collect()
    }

    fn step_members(&self, members: &[AtomMember]) -> Vec<StepMember> {
        members.iter().map(|member| self.step_member(member)).collect()
    }

    fn labels(&self, nodes: &[u32]) -> Vec<String> {
        self.trees.iter().zip(nodes).map(|(tree, &node)| tree.label(node).to_owned()).collect()
    }

    fn step_member(&self, member: &AtomMember) -> StepMember {
        let AtomMember { member, .. } = member;
        let path = |(tree, &node): (&GrowingTree, &u32)| {
            std::iter::successors(Some(node), |&node| tree.parent(node))
                .map(|node| tree.label(node).to_owned())
                .collect()
        };
        let text =
            |tuple: &Tuple| -> ShownValues { tuple.iter().map(|value| Some(value.to_string().into())).collect() };
        StepMember {
            row: member.key.0,
            person: member.person.0,
            k: member.k,
            paths: self.trees.iter().zip(&member.nodes).map(path).collect(),
            values: text(&member.tuple),
            seen: match self.ledger.past(member.person).expect(LEDGER) {
                Past::Nothing => Seen::Never,
                Past::InCrowd | Past::Alone => Seen::Elsewhere,
            },
        }
    }

    /// The attacker takes a snapshot.
    fn look(&mut self) {
        let atoms = self.ledger.all_atoms().iter();
        let of_atom = |(atom, (class, members)): (&AtomId, &(ClassId, Vec<AtomMember>))| {
            members.iter().map(|member| (class.0, row(&member.member, *atom))).collect::<Vec<_>>()
        };
        let rows = match self.setting.rule {
            Rule::Epochs(..) => atoms.flat_map(of_atom).collect(),
            Rule::AtOnce => self.at_once.shown(),
        };
        self.attacker.see(rows.iter().map(|(class, row)| (*class, row)));
    }
}

fn old_atoms(ledger: &MemoryLedger) -> Vec<OldAtom> {
    let atoms = ledger.all_atoms().iter();
    atoms.map(|(&atom, (class, members))| OldAtom { class: *class, atom, members: members.clone() }).collect()
}

fn row(member: &Member, atom: AtomId) -> Row {
    Row { showing: (member.key.0, atom.0), person: member.person.0, k: member.k, tuple: member.tuple.clone() }
}
