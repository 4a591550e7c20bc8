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

    /// Shows what is safe of a new partition.
    fn refresh(&mut self, classes: &[Vec<Member>]) {
        let (old, new) = (self.old_atoms(), new_classes(classes));
        let refreshed = refresh(&self.standard, &old, &new, |person| self.ledger.past(person)).unwrap();
        let effects = refreshed.effects(&old, &new, self.ledger.unused().unwrap());
        self.ledger.write(&effects);
        self.index.follow(&self.trees, &effects);
    }

    fn old_atoms(&self) -> Vec<OldAtom> {
        let atoms = self.ledger.all_atoms().iter();
        atoms.map(|(&atom, (class, members))| OldAtom { class: *class, atom, members: members.clone() }).collect()
    }
}

fn new_classes(classes: &[Vec<Member>]) -> Vec<NewClass<Member>> {
    classes.iter().map(|members| NewClass { nodes: vec![0], members: members.clone() }).collect()
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
fn a_person_who_asks_for_more_keeps_nobody_waiting() {
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
    assert!(view.atoms().is_empty(), "all members may leave together");
}

#[test]
fn a_person_who_left_a_crowd_joins_no_other() {
    let mut view = View::new(2, 1, Departures::Withdraw);
    view.insert(&[(1, "20", FLU), (2, "20", GOUT)]);
    let survivor = view.key_of(1);
    view.delete(2);
    assert!(view.atoms().is_empty());
    assert_eq!(view.place(survivor), Some(Place::Hidden));
    view.insert(&[(3, "20", GOUT), (4, "20", FLU)]);
    assert_eq!(view.atoms(), [[3, 4]], "newcomers come without the survivor");
    let (moved, again) = (view.member(3, 2, "30", GOUT), view.member(2, 2, "20", GOUT));
    let (keys, old) = ([moved.key, again.key], view.key_of(3));
    view.apply(vec![Edit::Update { old, new: moved }, Edit::Insert(again)]);
    assert!(
        keys.iter().all(|&key| view.place(key) == Some(Place::Hidden)),
        "hidden with another row, and after coming back"
    );
}

#[test]
fn a_person_shown_in_a_class_is_never_shown_alone_nor_the_reverse() {
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
fn closing_by_size_lets_no_value_decide_when_a_crowd_is_shown() {
    let mut view = View::new(2, 2, Departures::Batch);
    view.closing = Closing::BySize(3);
    view.insert(&[(1, "20", FLU), (2, "20", GOUT)]);
    assert!(view.atoms().is_empty(), "two are not three");
    view.insert(&[(3, "20", GOUT), (4, "20", FLU), (5, "20", FLU)]);
    assert_eq!(view.atoms(), [[1, 2, 3]]);
    let last = view.member(6, 2, "20", FLU);
    let effects = view.apply(vec![Edit::Insert(last)]);
    assert!(matches!(&effects[..], [Effect::Wait { .. }, .., Effect::Seal { members }] if members.len() == 3));
    let moved = view.member(6, 2, "21", FLU);
    let (key, old) = (
        moved.key,
        effects.iter().find_map(|effect| match effect {
            Effect::Wait { member, .. } => Some(member.key),
            _ => None,
        }),
    );
    view.apply(vec![Edit::Update { old: old.unwrap(), new: moved }]);
    assert_eq!(view.place(key), Some(Place::Hidden), "another row of the same person stays hidden, too");
    view.insert(&[(7, "20", GOUT), (8, "20", GOUT)]);
    assert_eq!(view.atoms().len(), 1, "newcomers don't bring out a person who was hidden");
}

/// Something that happens to one of six persons, or to all of them.
#[derive(Clone, Copy, Debug)]
enum Happens {
    Comes,
    Moves,
    Goes,
    /// The view is partly refreshed, with a partition that does not depend on values: pairs of neighbours, from this
    /// person on.
    Parted,
}

/// The atoms after each step: the persons in each, and their values.
type Snapshots = Vec<Vec<(Vec<u64>, Vec<u32>)>>;

/// For everything that a reader can see, the choices of illnesses for six persons that show it.
fn seen_by_values(
    setting: (u32, Departures, Closing),
    script: &[(u64, Happens)],
) -> BTreeMap<Snapshots, Vec<Vec<u32>>> {
    let (l, departures, closing) = setting;
    let mut seen: BTreeMap<_, Vec<Vec<u32>>> = BTreeMap::new();
    for bits in 0..64u32 {
        let diseases: Vec<u32> = (0..6).map(|person| bits >> person & 1).collect();
        let mut view = View::new(2, l, departures);
        view.closing = closing;
        let mut rows: BTreeMap<u64, Member> = BTreeMap::new();
        let mut snapshots = Vec::new();
        for (step, &(person, happens)) in script.iter().enumerate() {
            let age = if step % 2 == 0 { "20" } else { "21" };
            match happens {
                Happens::Comes | Happens::Moves => {
                    let new = view.member(person, 2, age, diseases[person as usize]);
                    let edit = match rows.insert(person, new.clone()) {
                        Some(old) => Edit::Update { old: old.key, new },
                        None => Edit::Insert(new),
                    };
                    view.apply(vec![edit]);
                }
                Happens::Goes => {
                    let Some(old) = rows.remove(&person) else { continue };
                    view.apply(vec![Edit::Delete(old.key)]);
                }
                Happens::Parted => {
                    let (before, from): (Vec<_>, Vec<_>) =
                        rows.values().cloned().partition(|row| row.person.0 < person);
                    let all = [from, before].concat();
                    view.refresh(&all.chunks(2).map(<[Member]>::to_vec).collect::<Vec<_>>());
                }
            }
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

/// Whether there is a person who was shown, and whom a reader finds in too few rows or with too few possible diseases. The
/// reader knows the rule, and who came, moved and left when.
fn gives_somebody_away(setting: (u32, Departures, Closing), script: &[(u64, Happens)]) -> bool {
    let (l, ..) = setting;
    seen_by_values(setting, script).into_iter().any(|(snapshots, possible)| {
        snapshots.iter().flatten().any(|(persons, values)| {
            persons.iter().any(|&person| {
                let could_have: BTreeSet<u32> = possible.iter().map(|diseases| diseases[person as usize]).collect();
                let n_rows = values.iter().filter(|value| could_have.contains(value)).count();
                n_rows < 2 || could_have.len() < l as usize
            })
        })
    })
}

/// Random events in order, which depend only on this number.
fn script(mut number: u64, n_steps: usize, happens: &[Happens]) -> Vec<(u64, Happens)> {
    let mut next = |n: u64| {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (number >> 33) % n
    };
    let mut step = |_| {
        let person = next(6);
        (person, happens[next(happens.len() as u64) as usize])
    };
    (0..n_steps).map(&mut step).collect()
}

#[test]
fn the_time_of_appearing_tells_values_unless_numbers_alone_decide() {
    let all_come: Vec<(u64, Happens)> = (0..6).map(|person| (person, Happens::Comes)).collect();
    assert!(gives_somebody_away((2, Departures::Batch, Closing::Earliest), &all_come));
    for size in 2..=6 {
        assert!(!gives_somebody_away((2, Departures::Batch, Closing::BySize(size)), &all_come), "{size}");
    }
}

#[test]
fn a_reader_who_knows_the_rule_and_all_arrivals_moves_and_departures_identifies_nobody() {
    use Happens::{Comes, Goes, Moves, Parted};
    for number in 0..80 {
        let happens: &[Happens] =
            if number < 40 { &[Comes, Comes, Moves, Goes] } else { &[Comes, Comes, Moves, Goes, Parted, Parted] };
        let script = script(number, 14, happens);
        for departures in [Departures::Batch, Departures::Withdraw] {
            for (l, closing) in [(1, Closing::Earliest), (2, Closing::BySize(2)), (2, Closing::BySize(4))] {
                let setting = (l, departures, closing);
                assert!(!gives_somebody_away(setting, &script), "{setting:?} {script:?}");
            }
        }
    }
}

#[test]
fn a_refresh_says_who_could_be_made_out() {
    let mut view = View::new(2, 1, Departures::Batch);
    let edits = (1..=4).map(|person| Edit::Insert(view.member(person, 2, "20", FLU))).collect();
    view.apply(edits);
    let old = view.old_atoms();
    let rows: Vec<Member> = old[0].members.iter().map(|member| member.member.clone()).collect();
    let compare = |new: &[Vec<Member>]| {
        refresh(&view.standard, &old, &new_classes(new), |person| view.ledger.past(person)).unwrap()
    };
    let halves = compare(&[rows[..2].to_vec(), rows[2..].to_vec()]);
    assert_eq!(halves.combined, Combined { n_exposed: 0, fewest: None });
    assert_eq!(halves.atoms, [vec![vec![rows[0].key, rows[1].key]], vec![vec![rows[2].key, rows[3].key]]]);
    let uneven = compare(&[rows[..3].to_vec()]);
    assert_eq!(uneven.combined, Combined { n_exposed: 1, fewest: Some(1) });
    assert_eq!((uneven.atoms, uneven.kept), (vec![Vec::new()], BTreeSet::from([0])), "the atom stays as it is");
}

#[test]
fn a_refresh_compares_persons_not_rows() {
    let mut view = View::new(2, 1, Departures::Batch);
    let edits = (1..=4).map(|person| Edit::Insert(view.member(person, 2, "20", FLU))).collect();
    view.apply(edits);
    let old = view.old_atoms();
    let rows: Vec<Member> = (1..=4).map(|person| view.member(person, 2, "20", GOUT)).collect();
    let newcomers = [view.member(5, 2, "20", FLU), view.member(6, 2, "20", FLU)];
    let new = [[&rows[..2], &newcomers[..]].concat(), rows[2..].to_vec()];
    let refreshed = refresh(&view.standard, &old, &new_classes(&new), |person| view.ledger.past(person)).unwrap();
    assert_eq!(refreshed.combined, Combined { n_exposed: 4, fewest: Some(2) });
    assert_eq!(refreshed.atoms, [vec![newcomers.each_ref().map(|newcomer| newcomer.key).to_vec()], Vec::new()]);
    assert_eq!(refreshed.hidden, rows.iter().map(|row| row.key).collect::<Vec<_>>());
}

#[test]
fn newcomers_of_a_refresh_wait_or_are_sealed() {
    let mut view = View::new(2, 2, Departures::Batch);
    let alike = vec![view.member(1, 2, "20", FLU), view.member(2, 2, "20", FLU)];
    let single = vec![view.member(3, 2, "30", FLU)];
    let new = [alike.clone(), single.clone()];
    let refreshed = refresh(&view.standard, &[], &new_classes(&new), |person| view.ledger.past(person)).unwrap();
    assert_eq!(refreshed.sealed, alike.iter().map(|member| member.key).collect::<Vec<_>>());
    assert_eq!(refreshed.waiting, [single[0].key]);
    assert_eq!(refreshed.combined, Combined { n_exposed: 3, fewest: Some(1) });
}

#[test]
fn nothing_private_is_printed() {
    let mut view = View::new(2, 1, Departures::Batch);
    let member = view.member(1, 2, "21", 77);
    let effects = view.apply(vec![Edit::Insert(member.clone())]);
    let printed = format!("{effects:?} {member:?}");
    assert!(!printed.contains("77"), "{printed}");
}
