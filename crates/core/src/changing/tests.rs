//! The rules, one by one. Long histories are in `kohort-testkit`.

use std::collections::{BTreeMap, BTreeSet};

use kohort_model::{Hierarchy, Requirement};

use super::*;

const FLU: u32 = 0;
const GOUT: u32 = 1;

struct View {
    trees: Vec<GrowingTree>,
    standard: Standard,
    index: ClassIndex,
    ledger: MemoryLedger,
    departures: Departures,
    closing: Closing,
    next_key: u64,
}

impl View {
    fn new(k: u32, l: u32, departures: Departures) -> View {
        let hierarchy = Hierarchy::from_paths("20;20s;*\n21;20s;*\n30;30s;*\n31;30s;*\n").unwrap();
        let requirements = [Requirement::K(k), Requirement::DistinctL { column: "disease".to_owned(), l }];
        let columns = [ReferenceColumn { name: "disease".to_owned(), counts: Vec::new() }];
        View {
            trees: vec![GrowingTree::of(&hierarchy)],
            standard: Standard::compile(&requirements, &columns).unwrap(),
            index: ClassIndex::new(1),
            ledger: MemoryLedger::new(),
            departures,
            closing: Closing::Earliest,
            next_key: 0,
        }
    }

    fn member(&mut self, person: u64, k: u32, age: &str, disease: u32) -> Member {
        self.next_key += 1;
        let (key, nodes) = (MemberKey(self.next_key), vec![self.trees[0].node(age).unwrap()]);
        Member { key, person: PersonKey(person), k, nodes, tuple: vec![disease] }
    }

    fn apply(&mut self, edits: Vec<Edit>) -> Vec<Effect> {
        let Self { trees, standard, index, ledger, departures, closing, .. } = self;
        let epochs = Epochs { trees, index, standard, departures: *departures, closing: *closing };
        let effects = epochs.apply(ledger, edits).unwrap();
        ledger.write(&effects);
        index.follow(trees, &effects);
        effects
    }

    /// Inserts persons one after the other, each in a batch of its own.
    fn insert(&mut self, rows: &[(u64, &str, u32)]) {
        for &(person, age, disease) in rows {
            let member = self.member(person, 2, age, disease);
            self.apply(vec![Edit::Insert(member)]);
        }
    }

    fn delete(&mut self, person: u64) -> Vec<Effect> {
        let key = self.key_of(person);
        self.apply(vec![Edit::Delete(key)])
    }

    fn key_of(&self, person: u64) -> MemberKey {
        let shown = self.ledger.all_atoms().values().flat_map(|(_, members)| members);
        let found = shown.filter(|member| member.member.person == PersonKey(person) && member.shown == Shown::Stays);
        found.map(|member| member.member.key).next_back().unwrap()
    }

    /// Persons of each atom.
    fn atoms(&self) -> Vec<Vec<u64>> {
        let atoms = self.ledger.all_atoms().values();
        atoms.map(|(_, members)| members.iter().map(|member| member.member.person.0).collect()).collect()
    }

    fn labels(&self) -> Vec<&str> {
        self.ledger
            .all_atoms()
            .values()
            .map(|(class, _)| self.trees[0].label(self.ledger.classes()[class][0]))
            .collect()
    }

    fn place(&self, key: MemberKey) -> Option<Place> {
        self.ledger.place(key).unwrap()
    }
}

#[test]
fn newcomers_appear_when_they_satisfy_the_requirement_by_themselves() {
    let mut view = View::new(3, 2, Departures::Batch);
    view.insert(&[(1, "20", FLU), (2, "20", FLU), (3, "21", FLU)]);
    assert!(view.atoms().is_empty(), "three with one disease are not diverse");
    view.insert(&[(4, "20", GOUT)]);
    assert_eq!((view.atoms(), view.labels()), (vec![vec![1, 2, 3, 4]], vec!["20s"]));
    view.insert(&[(5, "20", FLU), (6, "21", GOUT)]);
    assert_eq!(view.atoms().len(), 1);
    view.insert(&[(7, "20", FLU)]);
    assert_eq!(view.atoms(), [vec![1, 2, 3, 4], vec![5, 6, 7]]);
}

#[test]
fn newcomers_who_do_not_fit_leave_the_class_as_it_is() {
    let mut view = View::new(2, 1, Departures::Batch);
    view.insert(&[(1, "20", FLU), (2, "21", FLU), (3, "30", FLU), (4, "31", GOUT), (5, "20", FLU), (6, "20", FLU)]);
    assert_eq!(view.labels(), ["20s", "30s", "20"], "the last two fit where the first one waited");
}

#[test]
fn who_asks_for_more_does_not_keep_others_waiting() {
    let mut view = View::new(2, 1, Departures::Batch);
    let demanding = view.member(1, 9, "20", FLU);
    let key = demanding.key;
    view.apply(vec![Edit::Insert(demanding)]);
    view.insert(&[(2, "20", FLU), (3, "20", FLU)]);
    assert_eq!(view.atoms(), [[2, 3]]);
    assert!(matches!(view.place(key), Some(Place::Waiting(_))));
}

#[test]
fn a_row_that_comes_and_goes_in_one_batch_never_was() {
    let mut view = View::new(2, 1, Departures::Batch);
    let (first, second) = (view.member(1, 2, "20", FLU), view.member(1, 2, "21", FLU));
    let edits = vec![
        Edit::Insert(first.clone()),
        Edit::Update { old: first.key, new: second.clone() },
        Edit::Delete(second.key),
    ];
    assert!(view.apply(edits).is_empty());
}

#[test]
fn rows_leave_in_a_crowd_and_only_if_a_crowd_stays() {
    let mut view = View::new(2, 2, Departures::Batch);
    let rows = [FLU, FLU, FLU, GOUT, GOUT].into_iter().zip(1..).map(|(disease, person)| (person, disease));
    let edits = rows.map(|(person, disease)| Edit::Insert(view.member(person, 2, "20", disease))).collect();
    view.apply(edits);
    view.delete(1);
    view.delete(2);
    assert_eq!(view.atoms(), [[1, 2, 3, 4, 5]], "two with flu are no crowd");
    view.delete(4);
    assert_eq!(view.atoms(), [[3, 5]]);
    view.delete(3);
    assert_eq!(view.atoms(), [[3, 5]]);
    view.delete(5);
    assert!(view.atoms().is_empty(), "all together may go");
}

#[test]
fn survivors_come_back_when_newcomers_hide_them() {
    let mut view = View::new(2, 2, Departures::Withdraw);
    view.insert(&[(1, "20", FLU), (2, "20", GOUT)]);
    view.delete(2);
    assert!(view.atoms().is_empty());
    assert_eq!(view.ledger.past(PersonKey(1)).unwrap(), Past::Among(BTreeSet::from([vec![FLU], vec![GOUT]])));
    view.insert(&[(3, "20", GOUT)]);
    assert!(view.atoms().is_empty(), "who was shown before is no crowd with one newcomer");
    view.insert(&[(4, "20", FLU)]);
    assert_eq!(view.atoms(), [[1, 3, 4]]);
    let (_, members) = &view.ledger.all_atoms().values().next().unwrap();
    assert_eq!(members[0].standing, Standing::Rider);
}

#[test]
fn a_new_tuple_outside_the_past_stays_hidden_and_an_old_one_waits() {
    let mut view = View::new(2, 2, Departures::Batch);
    view.insert(&[(1, "20", FLU), (2, "20", GOUT)]);
    let (moved, ill) = (view.member(1, 2, "30", FLU), view.member(2, 2, "20", 7));
    let (keys, old) = ([moved.key, ill.key], [view.key_of(1), view.key_of(2)]);
    view.apply(vec![Edit::Update { old: old[0], new: moved }]);
    view.apply(vec![Edit::Update { old: old[1], new: ill }]);
    assert!(matches!(view.place(keys[0]), Some(Place::Waiting(_))));
    assert_eq!(view.place(keys[1]), Some(Place::Hidden));
}

#[test]
fn who_was_in_a_class_is_not_shown_alone_and_the_other_way_round() {
    let mut view = View::new(2, 1, Departures::Batch);
    view.insert(&[(1, "20", FLU), (2, "20", FLU)]);
    let (open, alone) = (view.member(1, 0, "20", FLU), view.member(3, 1, "20", FLU));
    let (open_key, alone_key, old) = (open.key, alone.key, view.key_of(1));
    view.apply(vec![Edit::Update { old, new: open }, Edit::Insert(alone)]);
    assert_eq!((view.place(open_key), view.place(alone_key)), (Some(Place::Hidden), Some(Place::Alone)));
    let shy = view.member(3, 2, "20", FLU);
    let shy_key = shy.key;
    view.apply(vec![Edit::Update { old: alone_key, new: shy }]);
    assert_eq!(view.place(shy_key), Some(Place::Hidden));
}

#[test]
fn by_size_values_do_not_decide_when() {
    let mut view = View::new(2, 2, Departures::Batch);
    view.closing = Closing::BySize(3);
    view.insert(&[(1, "20", FLU), (2, "20", GOUT)]);
    assert!(view.atoms().is_empty(), "two are not three");
    view.insert(&[(3, "20", GOUT), (4, "20", FLU), (5, "20", FLU)]);
    assert_eq!(view.atoms(), [[1, 2, 3]]);
    let last = view.member(6, 2, "20", FLU);
    let effects = view.apply(vec![Edit::Insert(last)]);
    assert!(matches!(&effects[..], [Effect::Wait { .. }, Effect::Seal { members }] if members.len() == 3));
    view.insert(&[(7, "20", GOUT), (8, "20", GOUT)]);
    assert_eq!(view.atoms().len(), 1, "who was hidden does not come out by whoever comes next");
}

/// After each newcomer the atoms: who, and with what.
type Snapshots = Vec<Vec<(Vec<u64>, Vec<u32>)>>;

/// Per way in which six who come one after the other can be ill, what a reader sees.
fn seen_by_values(closing: Closing) -> BTreeMap<Snapshots, Vec<Vec<u32>>> {
    let mut seen: BTreeMap<_, Vec<Vec<u32>>> = BTreeMap::new();
    for bits in 0..64u32 {
        let diseases: Vec<u32> = (0..6).map(|person| bits >> person & 1).collect();
        let mut view = View::new(2, 2, Departures::Batch);
        view.closing = closing;
        let mut snapshots = Vec::new();
        for (person, &disease) in (0..).zip(&diseases) {
            view.insert(&[(person, "20", disease)]);
            let values = |persons: &Vec<u64>| {
                let mut values: Vec<u32> = persons.iter().map(|&person| diseases[person as usize]).collect();
                values.sort_unstable();
                values
            };
            snapshots.push(view.atoms().into_iter().map(|persons| (persons.clone(), values(&persons))).collect());
        }
        seen.entry(snapshots).or_default().push(diseases);
    }
    seen
}

/// Whether somebody who is shown can have one disease only, for a reader who knows the rule and who came when.
fn gives_somebody_away(closing: Closing) -> bool {
    seen_by_values(closing).into_iter().any(|(snapshots, possible)| {
        let shown = snapshots.last().into_iter().flatten().flat_map(|(persons, _)| persons);
        let can_have = |person: usize, disease: u32| possible.iter().any(|diseases| diseases[person] == disease);
        shown.into_iter().any(|&person| !(can_have(person as usize, FLU) && can_have(person as usize, GOUT)))
    })
}

#[test]
fn the_time_of_appearing_tells_values_unless_numbers_alone_decide() {
    assert!(gives_somebody_away(Closing::Earliest));
    for size in 2..=6 {
        assert!(!gives_somebody_away(Closing::BySize(size)), "{size}");
    }
}

#[test]
fn a_refresh_says_who_could_be_made_out() {
    let mut view = View::new(2, 1, Departures::Batch);
    let edits = (1..=4).map(|person| Edit::Insert(view.member(person, 2, "20", FLU))).collect();
    view.apply(edits);
    let old: Vec<Vec<AtomMember>> = view.ledger.all_atoms().values().map(|(_, members)| members.clone()).collect();
    let rows: Vec<Member> = old[0].iter().map(|member| member.member.clone()).collect();
    let compare = |new: &[Vec<Member>]| refresh(&view.standard, &old, new, |person| view.ledger.past(person)).unwrap();
    let halves = compare(&[rows[..2].to_vec(), rows[2..].to_vec()]);
    assert_eq!(halves.combined, Combined { n_exposed: 0, fewest: Some(2) });
    assert_eq!(halves.atoms.len(), 2);
    let uneven = compare(&[rows[..3].to_vec()]);
    assert_eq!(uneven.combined, Combined { n_exposed: 1, fewest: Some(1) });
}

#[test]
fn the_papers_rule_raises_at_once_and_dissolves_what_is_too_small() {
    let mut view = View::new(2, 1, Departures::Batch);
    let edits = [("20", 1), ("21", 2), ("30", 3), ("31", 4)];
    let edits = edits.map(|(age, person)| Edit::Insert(view.member(person, 2, age, FLU)));
    view.apply(edits[..2].to_vec());
    view.apply(edits[2..].to_vec());
    assert_eq!(view.labels(), ["20s", "30s"]);
    view.index = ClassIndex::new(1);
    for (class, members) in view.ledger.all_atoms().values() {
        view.index.put(&view.trees, *class, &view.ledger.classes()[class], members.len() as u64);
    }
    let newcomer = view.member(5, 2, "20", GOUT);
    for edit in [Edit::Insert(newcomer), Edit::Delete(view.key_of(3))] {
        let rule = Paper { trees: &view.trees, standard: &view.standard };
        let effects = rule.apply(&mut view.index, &view.ledger, edit).unwrap();
        view.ledger.write(&effects);
    }
    assert!(view.labels().iter().all(|&label| label == "*"), "who is left of the thirties joined the twenties");
    assert_eq!(view.index.len(), 1);
    assert_eq!(view.atoms().concat(), [1, 2, 5, 4]);
}

#[test]
fn nothing_private_is_printed() {
    let mut view = View::new(2, 1, Departures::Batch);
    let member = view.member(1, 2, "21", 77);
    let effects = view.apply(vec![Edit::Insert(member.clone())]);
    let printed = format!("{effects:?} {member:?} {:?}", Past::Among(BTreeSet::from([vec![77]])));
    assert!(!printed.contains("77"), "{printed}");
}
