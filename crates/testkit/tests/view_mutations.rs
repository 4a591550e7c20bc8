//! Changed blocks of A-views, and changed steps and refreshes of materialized ones: every harmful change is rejected,
//! and no harmless one is.
//!
//! The originals were drawn at random or made by the engine, and may be shown. Judges that share nothing with the
//! verifier say which changes are harmful. Run with `--nocapture` to see the counts.

use std::collections::{BTreeMap, BTreeSet};

use kohort_model::{
    ALONE, Block, BlockCells, Column, Consent, Disclosure, Hierarchy, Requirement, Role, Table, ValueType,
};
use kohort_testkit::attacks::snapshots::View;
use kohort_testkit::generate::block::block;
use kohort_testkit::generate::history::setting;
use kohort_testkit::mutations::blocks::{ShownBlock, changed_blocks, labelled};
use kohort_testkit::mutations::judges::Harm;
use kohort_testkit::mutations::steps::{Asked, ShownRefresh, ShownStep, changed_refreshes, changed_steps};
use kohort_testkit::random::Random;
use kohort_verify::{
    AtomStep, Refresh, RefreshedAtom, Seen, Step, StepColumn, StepMember, verify_block, verify_refresh, verify_step,
};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// How many random blocks and random histories the ordinary tests change.
const N_RANDOM: u64 = 24;

/// The number of random blocks and histories: `KOHORT_MUTATIONS`, or the ordinary one.
fn n_random() -> u64 {
    std::env::var("KOHORT_MUTATIONS").map_or(N_RANDOM, |text| text.parse().expect("KOHORT_MUTATIONS is a number"))
}

/// The outcomes of all changes with one name.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    harmful: u64,
    rejected: u64,
    harmless: u64,
    accepted: u64,
    rounded: u64,
}

#[derive(Default)]
struct Report {
    n_valid: u64,
    counts: BTreeMap<String, Counts>,
    failures: BTreeMap<String, Vec<String>>,
}

impl Report {
    /// Counts something that was not changed.
    fn add_valid(&mut self, name: &str, harm: &Harm, problems: Option<&String>) {
        self.n_valid += 1;
        assert!(matches!(harm, Harm::Harmless | Harm::DecidedByRounding), "{name}: {harm:?}");
        assert_eq!(problems, None, "{name} may be shown");
    }

    fn add(&mut self, name: &str, harm: Harm, problems: Option<String>, show: impl FnOnce() -> String) {
        let counts = self.counts.entry(name.to_owned()).or_default();
        let why = match (harm, problems) {
            (Harm::Harmful(_), Some(_)) => {
                counts.harmful += 1;
                counts.rejected += 1;
                return;
            }
            (Harm::Harmless, None) => {
                counts.harmless += 1;
                counts.accepted += 1;
                return;
            }
            (Harm::DecidedByRounding, _) => {
                counts.rounded += 1;
                return;
            }
            (Harm::Harmful(why), None) => {
                counts.harmful += 1;
                format!("harmful and accepted: {why}")
            }
            (Harm::Harmless, Some(problems)) => {
                counts.harmless += 1;
                format!("harmless and rejected: {problems}")
            }
        };
        let failures = self.failures.entry(name.to_owned()).or_default();
        failures.push(if failures.is_empty() { format!("{why}\n{}", show()) } else { why });
    }

    fn print(&self, title: &str) {
        println!("\n{title}, of {} that may be shown\n", self.n_valid);
        println!("| change | harmful | rejected | harmless | accepted | decided by rounding |");
        println!("| --- | ---: | ---: | ---: | ---: | ---: |");
        let mut all = Counts::default();
        for (name, counts) in &self.counts {
            let Counts { harmful, rejected, harmless, accepted, rounded } = counts;
            println!("| {name} | {harmful} | {rejected} | {harmless} | {accepted} | {rounded} |");
            all.harmful += harmful;
            all.rejected += rejected;
            all.harmless += harmless;
            all.accepted += accepted;
            all.rounded += rounded;
        }
        let Counts { harmful, rejected, harmless, accepted, rounded } = all;
        println!("| **all** | {harmful} | {rejected} | {harmless} | {accepted} | {rounded} |");
    }

    fn assert_all_right(&self) {
        let n: usize = self.failures.values().map(Vec::len).sum();
        let some: Vec<String> = self
            .failures
            .iter()
            .map(|(name, failures)| {
                let reasons: BTreeSet<&String> = failures[1..].iter().collect();
                let reasons: Vec<&String> = reasons.into_iter().take(3).collect();
                format!("{name}: {} times, first {}\n others {reasons:#?}", failures.len(), failures[0])
            })
            .collect();
        assert!(n == 0, "{n} changes are judged wrongly:\n{}", some.join("\n"));
        let harmless: u64 = self.counts.values().map(|counts| counts.harmless).sum();
        assert!(harmless > 0, "a judge for whom everything is harmful proves nothing");
    }
}

fn problems_of_block(shown: &ShownBlock) -> Option<String> {
    let ShownBlock { private, consent, disclosure, requirements, block } = shown;
    let verified = verify_block(block.clone(), private.clone(), consent, *disclosure, requirements);
    verified.err().map(|violations| violations.to_string())
}

fn problems_of_step(shown: &ShownStep) -> Option<String> {
    let ShownStep { asked: Asked { columns, requirements }, step } = shown;
    verify_step(step.clone(), columns, requirements).err().map(|problems| problems.to_string())
}

fn problems_of_refresh(shown: &ShownRefresh) -> Option<String> {
    let ShownRefresh { asked: Asked { columns, requirements }, refresh } = shown;
    verify_refresh(refresh.clone(), columns, requirements).err().map(|problems| problems.to_string())
}

/// Ann, Bob and Cid are a class. Dan asks for nothing, and Eve asks that names be hidden.
fn patients() -> ShownBlock {
    let diseases =
        Hierarchy::from_paths("flu;viral;*\nfever;viral;*\nulcer;stomach;*\n").expect("the paths are of a tree");
    let disease = Column::from_cells("disease", Role::Sensitive, ["flu", "ulcer", "fever", "flu", "ulcer"].map(Some));
    let columns = vec![
        Column::from_cells("name", Role::Identifier, ["Ann", "Bob", "Cid", "Dan", "Eve"].map(Some)),
        Column::from_cells("age", Role::Quasi, ["20", "25", "29", "50", "51"].map(Some)).typed(ValueType::Integer),
        disease.with_hierarchy(diseases),
        Column::from_cells("ward", Role::Plain, ["a", "b", "a", "b", "a"].map(Some)),
    ];
    let labels = |cells: [&str; 5]| labelled(&cells.map(|cell| Some(cell.to_owned())));
    ShownBlock {
        private: Table { name: "patients".to_owned(), columns, n_rows: 5, person: Some(0) },
        consent: Consent { k: vec![3, 2, 2, 0, 1], level: vec![1, 0, 0, 0, 0], refused: vec![0; 5] },
        disclosure: Disclosure::Class,
        requirements: vec![Requirement::K(2), Requirement::DistinctL { column: "disease".to_owned(), l: 3 }],
        block: Block {
            rows: vec![0, 1, 2, 3, 4],
            classes: vec![0, 0, 0, ALONE, ALONE],
            columns: vec![
                BlockCells::Own { hidden: vec![true, true, true, false, true] },
                labels(["[20,29]", "[20,29]", "[20,29]", "50", "51"]),
                labels(["viral", "ulcer", "fever", "flu", "ulcer"]),
                BlockCells::Own { hidden: vec![false; 5] },
            ],
        },
    }
}

#[test]
fn every_change_of_a_block_is_judged_as_the_oracle_does() {
    let mut report = Report::default();
    for shown in [patients()].into_iter().chain((0..n_random()).map(block)) {
        report.add_valid(&format!("{shown:?}"), &shown.harm(), problems_of_block(&shown).as_ref());
        for (name, changed) in changed_blocks(&shown) {
            report.add(&name, changed.harm(), problems_of_block(&changed), || format!("{changed:#?}\nof {shown:#?}"));
        }
    }
    report.print("Changes to a block of an A-view");
    report.assert_all_right();
}

fn member(person: u64, age: &str, disease: &str) -> StepMember {
    let paths = vec![[age.to_owned(), format!("{}0s", &age[..1]), "*".to_owned()].into()];
    StepMember { row: 100 + person, person, k: 2, paths, values: vec![Some(disease.into())], seen: Seen::Never }
}

fn asked() -> Asked {
    let reference = ["flu", "gout"].map(|value| (Some(value.to_owned()), 10)).into_iter().collect();
    let columns = vec![StepColumn { name: "disease".to_owned(), reference }];
    let requirements = vec![Requirement::K(2), Requirement::DistinctL { column: "disease".to_owned(), l: 2 }];
    Asked { columns, requirements }
}

fn four() -> Vec<StepMember> {
    vec![member(1, "20", "flu"), member(2, "21", "gout"), member(3, "20", "flu"), member(4, "20", "gout")]
}

/// A crowd comes to a class, another loses two members, and a third one leaves.
fn three_crowds() -> ShownStep {
    let labels = |label: &str| vec![label.to_owned()];
    let atom = |class, atom, label: &str, before: &[StepMember], after: &[StepMember]| AtomStep {
        class,
        atom,
        labels_before: Some(labels(label)),
        labels: labels(label),
        before: before.to_vec(),
        after: after.to_vec(),
    };
    let new = [member(5, "20", "flu"), member(6, "29", "gout")];
    let gone = [member(7, "30", "flu"), member(8, "31", "gout")];
    let atoms = vec![
        atom(1, 1, "20s", &four(), &four()[..2]),
        atom(1, 2, "20s", &[], &new),
        atom(2, 3, "30s", &gone, &[]),
        AtomStep { labels_before: None, ..atom(3, 4, "*", &[], &[member(9, "20", "flu"), member(10, "31", "gout")]) },
    ];
    ShownStep { asked: asked(), step: Step { atoms } }
}

/// One crowd is divided, one stays, one leaves, and one is new.
fn refreshed() -> ShownRefresh {
    let (stays, gone) =
        ([member(5, "20", "flu"), member(6, "29", "gout")], [member(7, "30", "flu"), member(8, "31", "gout")]);
    let atom = |class, atom, label: &str, members: &[StepMember]| RefreshedAtom {
        class,
        atom,
        labels: vec![label.to_owned()],
        members: members.to_vec(),
    };
    let before = BTreeMap::from([(1, four()), (2, stays.to_vec()), (3, gone.to_vec())]);
    let after = vec![
        atom(1, 2, "20s", &stays),
        atom(2, 11, "20s", &four()[..2]),
        atom(2, 12, "20s", &four()[2..]),
        atom(3, 13, "*", &[member(9, "20", "flu"), member(10, "31", "gout")]),
    ];
    ShownRefresh { asked: asked(), refresh: Refresh { before, after } }
}

/// Steps and refreshes of a view that the engine made.
fn history(seed: u64) -> (Vec<ShownStep>, Vec<ShownRefresh>) {
    let mut bytes = [7; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config { failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    let setting = setting().new_tree(&mut runner).expect("settings are drawn without conditions").current();
    let mut random = Random::new(seed);
    let mut view = View::new(&setting, 4 + random.below(6) as u64, seed);
    // A view of a few persons shows a few crowds, all of which can be changed in every way.
    while view.steps.len() < 3 && random.below(60) > 0 {
        view.change();
    }
    view.refresh();
    let asked = Asked { columns: view.columns(), requirements: setting.requirements };
    let steps = view.steps.into_iter().map(|step| ShownStep { asked: asked.clone(), step }).collect();
    let refreshes = view.refreshes.into_iter().map(|refresh| ShownRefresh { asked: asked.clone(), refresh }).collect();
    (steps, refreshes)
}

#[test]
fn every_change_of_a_step_is_judged_as_the_oracle_does() {
    let mut report = Report::default();
    for shown in [three_crowds()].into_iter().chain((0..n_random()).flat_map(|seed| history(seed).0)) {
        report.add_valid("a step", &shown.harm(), problems_of_step(&shown).as_ref());
        for (name, changed) in changed_steps(&shown) {
            report.add(name, changed.harm(), problems_of_step(&changed), || show_step(&changed.step));
        }
    }
    report.print("Changes to a step of a materialized view");
    report.assert_all_right();
}

#[test]
fn every_change_of_a_refresh_is_judged_as_the_oracle_does() {
    let mut report = Report::default();
    for shown in [refreshed()].into_iter().chain((0..n_random()).flat_map(|seed| history(seed).1)) {
        report.add_valid("a refresh", &shown.harm(), problems_of_refresh(&shown).as_ref());
        for (name, changed) in changed_refreshes(&shown) {
            report.add(name, changed.harm(), problems_of_refresh(&changed), || show_refresh(&changed.refresh));
        }
    }
    report.print("Changes to a refresh of a materialized view");
    report.assert_all_right();
}

/// The members of a crowd, for somebody who looks for the reason of a failure. Nobody in it is real.
fn show_members(members: &[StepMember]) -> String {
    let show = |member: &StepMember| {
        let StepMember { row, person, k, paths, values, seen } = member;
        format!("\n    row {row} person {person} k {k} {paths:?} {values:?} {seen:?}")
    };
    members.iter().map(show).collect()
}

fn show_step(step: &Step) -> String {
    let show = |atom: &AtomStep| {
        let AtomStep { class, atom, labels_before, labels, before, after } = atom;
        let (before, after) = (show_members(before), show_members(after));
        format!("atom {atom} of class {class}, {labels_before:?} -> {labels:?}\n  before{before}\n  after{after}\n")
    };
    step.atoms.iter().map(show).collect()
}

fn show_refresh(refresh: &Refresh) -> String {
    let before = refresh.before.iter().map(|(atom, members)| format!("before {atom}{}\n", show_members(members)));
    let after = refresh.after.iter().map(|RefreshedAtom { class, atom, labels, members }| {
        format!("after {atom} of class {class} {labels:?}{}\n", show_members(members))
    });
    before.chain(after).collect()
}
