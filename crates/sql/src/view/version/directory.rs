//! [`Directory`]: the classes of a view and who is in them.
//!
//! It is made once per version and lives in memory. With it, a query finds the classes that could match without
//! looking at a private row, knows whose rows to fetch, and notices when what it fetched is not what was verified.
//!
//! # Paper
//! `[EPS+12]` section 5.2 builds the group of each selected row anew, from a precomputed order of generalization
//! steps. Such groups overlap. Here a row's class is looked up, so that every partitioner serves and leftovers are
//! placed once.
//! # Cost
//! the texts of all identifiers, 4 bytes per row, per person and per person and class it is in, a few words per class

use std::collections::HashMap;
use std::hash::BuildHasher;

use foldhash::quality::RandomState;
use hashbrown::HashTable;
use kohort_model::{Column, NULL, Table, Texts};
use rayon::prelude::*;

use crate::view::ViewError;

/// A person who is in no class: one whom no policy speaks of.
const DENIED: u32 = u32::MAX;
/// A person with rows in several classes.
const SEVERAL: u32 = u32::MAX - 1;

/// The classes of a view. `Debug` shows how many, never whose.
pub struct Directory {
    /// Positions of the quasi columns in the view.
    quasi: Vec<usize>,
    /// Per quasi column the distinct labels.
    labels: Vec<Texts>,
    /// Per quasi column and class a label's id, or [`NULL`].
    label_of_class: Vec<Vec<u32>>,
    classes: Vec<ClassEntry>,
    /// The persons of all classes, class by class.
    members: Lists,
    /// The numbers of their rows in what the query gave when the view was verified, class by class.
    rows: Lists,
    /// The policies of their rows, class by class; empty without policies.
    policies: Lists,
    persons: PersonIndex,
    class_of_person: Vec<u32>,
    /// Per person how many they ask to hide among.
    k_of_person: Vec<u32>,
    /// Per person the place of its policy, where policies are found by the identifier.
    policy_of_person: Option<Vec<Option<u32>>>,
    /// The class of rows whose person has several, by person and what the row holds.
    class_of_row: HashMap<(u32, u64), u32>,
    content: ContentHash,
}

/// What is known of a class.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClassEntry {
    /// Rows.
    pub n_rows: u32,
    /// Whether its persons ask for no class; then it is only a set of rows with the same quasi cells.
    pub is_alone: bool,
    content: u64,
}

impl std::fmt::Debug for Directory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Directory({} classes, {} persons)", self.classes.len(), self.persons.len())
    }
}

/// The class of each row of a table, before it is a directory.
pub(in crate::view) struct Assigned {
    /// Per quasi column the distinct labels.
    pub(in crate::view) labels: Vec<Texts>,
    /// Per quasi column and class a label's id, or [`NULL`].
    pub(in crate::view) label_of_class: Vec<Vec<u32>>,
    /// Per class whether its persons ask for none.
    pub(in crate::view) is_alone: Vec<bool>,
    /// Per row its class, or [`Assigned::NONE`].
    pub(in crate::view) class_of_row: Vec<u32>,
    /// Per row the place of its policy; empty without policies.
    pub(in crate::view) policy_of_row: Vec<Option<u32>>,
    /// What policies are found by.
    pub(in crate::view) policy_key: PolicyKey,
    /// Per row its person's k; empty where nobody is looked for by it.
    pub(in crate::view) k_of_row: Vec<u32>,
}

/// What the policies of rows are found by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::view) enum PolicyKey {
    /// The identifier, so that all rows of a person have the same.
    Identifier,
    /// Another column, or there are none.
    Other,
}

/// Where the rows of a table belong.
pub(in crate::view) struct Found {
    /// Per row its class, or [`Assigned::NONE`].
    pub(in crate::view) class_of_row: Vec<u32>,
    /// Per row its person's number in the directory.
    pub(in crate::view) person_of_row: Vec<u32>,
    /// What the rows hold.
    pub(in crate::view) hashes: RowHashes,
}

impl Assigned {
    /// The class of a row that is in none.
    pub(in crate::view) const NONE: u32 = DENIED;
}

impl Directory {
    /// Notes who is in which class. Other columns than the quasi ones are compared when rows are fetched again.
    pub(in crate::view) fn new(
        table: &Table,
        quasi: Vec<usize>,
        others: &[usize],
        assigned: Assigned,
        seed: Seed,
    ) -> Directory {
        let person_column = table.person_column().expect("a view has an identifier");
        let content = ContentHash { hasher: seed.0, quasi: quasi.clone(), others: others.to_vec() };
        let hashes = content.of_rows(table);
        let Assigned { labels, label_of_class, is_alone, class_of_row, policy_of_row, policy_key, k_of_row } = assigned;
        let mut classes: Vec<ClassEntry> =
            is_alone.into_iter().map(|is_alone| ClassEntry { is_alone, ..ClassEntry::default() }).collect();
        let mut class_of_person = vec![DENIED; person_column.texts.len()];
        let mut several = HashMap::new();
        let mut memberships: Vec<(u32, u32)> = Vec::with_capacity(table.n_rows);
        let mut rows: Vec<(u32, u32)> = Vec::with_capacity(table.n_rows);
        for (row, &class) in class_of_row.iter().enumerate().filter(|&(_, &class)| class != DENIED) {
            let entry = &mut classes[class as usize];
            entry.n_rows += 1;
            entry.content = entry.content.wrapping_add(hashes.all[row]);
            let person = person_column.ids[row];
            memberships.push((class, person));
            rows.push((class, row as u32));
            let of_person = &mut class_of_person[person as usize];
            *of_person = if *of_person == DENIED || *of_person == class { class } else { SEVERAL };
        }
        for (row, &class) in class_of_row.iter().enumerate().filter(|&(_, &class)| class != DENIED) {
            let person = person_column.ids[row];
            if class_of_person[person as usize] == SEVERAL {
                several.insert((person, hashes.quasi[row]), class);
            }
        }
        let mut k_of_person = vec![0; person_column.texts.len()];
        for (&person, k) in person_column.ids.iter().zip(k_of_row) {
            k_of_person[person as usize] = k.max(k_of_person[person as usize]);
        }
        let n_classes = classes.len();
        let policy_of_person = (policy_key == PolicyKey::Identifier).then(|| {
            let mut policy_of_person = vec![None; person_column.texts.len()];
            let of_rows = person_column.ids.iter().zip(&policy_of_row);
            of_rows.for_each(|(&person, &policy)| policy_of_person[person as usize] = policy);
            policy_of_person
        });
        let of_policies = class_of_row.iter().zip(&policy_of_row).filter(|&(&class, _)| class != DENIED);
        let of_policies = of_policies.filter_map(|(&class, policy)| Some((class, (*policy)?))).collect();
        Directory {
            quasi,
            labels,
            label_of_class,
            classes,
            members: Lists::new(n_classes, memberships),
            rows: Lists::new(n_classes, rows),
            policies: Lists::new(n_classes, of_policies),
            persons: PersonIndex::new(person_column.texts.clone()),
            class_of_person,
            k_of_person,
            policy_of_person,
            class_of_row: several,
            content,
        }
    }

    /// Only what classes show, how many rows they have, and under which policies: nobody is found in it.
    pub(in crate::view) fn of_classes(quasi: Vec<usize>, assigned: Assigned) -> Directory {
        let Assigned { labels, label_of_class, is_alone, class_of_row, policy_of_row, .. } = assigned;
        let mut classes: Vec<ClassEntry> =
            is_alone.into_iter().map(|is_alone| ClassEntry { is_alone, ..ClassEntry::default() }).collect();
        class_of_row.iter().for_each(|&class| classes[class as usize].n_rows += 1);
        let of_policies = class_of_row.iter().zip(&policy_of_row);
        let of_policies = of_policies.filter_map(|(&class, policy)| Some((class, (*policy)?))).collect();
        let n_classes = classes.len();
        Directory {
            labels,
            label_of_class,
            classes,
            members: Lists::new(n_classes, Vec::new()),
            rows: Lists::new(n_classes, Vec::new()),
            policies: Lists::new(n_classes, of_policies),
            persons: PersonIndex::new(Texts::new()),
            class_of_person: Vec::new(),
            k_of_person: Vec::new(),
            policy_of_person: None,
            class_of_row: HashMap::new(),
            content: ContentHash { hasher: RandomState::default(), quasi: quasi.clone(), others: Vec::new() },
            quasi,
        }
    }

    /// How many classes there are, those of persons who ask for none included.
    pub fn n_classes(&self) -> usize {
        self.classes.len()
    }

    /// How many rows the view has.
    pub fn n_rows(&self) -> u64 {
        self.classes.iter().map(|class| u64::from(class.n_rows)).sum()
    }

    /// A class.
    pub fn class(&self, class: u32) -> &ClassEntry {
        &self.classes[class as usize]
    }

    /// Positions of the quasi columns in the view.
    pub fn quasi(&self) -> &[usize] {
        &self.quasi
    }

    /// The label of a class in a quasi column, by the column's place among them.
    pub fn label(&self, quasi: usize, class: u32) -> Option<&str> {
        match self.label_of_class[quasi][class as usize] {
            NULL => None,
            id => Some(self.labels[quasi].get(id)),
        }
    }

    /// The distinct labels of a quasi column.
    pub fn labels(&self, quasi: usize) -> &Texts {
        &self.labels[quasi]
    }

    /// Per class a label's id in a quasi column, or [`NULL`].
    pub fn label_ids(&self, quasi: usize) -> &[u32] {
        &self.label_of_class[quasi]
    }

    /// The persons in these classes, each once.
    pub fn members(&self, classes: &[u32]) -> Vec<u32> {
        let mut members: Vec<u32> = classes.iter().flat_map(|&class| self.members.of(class)).copied().collect();
        members.sort_unstable();
        members.dedup();
        members
    }

    /// The numbers that the rows of these classes had when the view was verified, ascending.
    pub(in crate::view) fn rows(&self, classes: &[u32]) -> Vec<u32> {
        let mut rows: Vec<u32> = classes.iter().flat_map(|&class| self.rows.of(class)).copied().collect();
        rows.par_sort_unstable();
        rows
    }

    /// Per row that the query gave when the view was verified its class, `None` where it is in none.
    pub(in crate::view) fn class_of_rows(&self, n_rows: usize) -> Vec<Option<u32>> {
        let mut class_of_row = vec![None; n_rows];
        for class in 0..self.n_classes() as u32 {
            self.rows.of(class).iter().for_each(|&row| class_of_row[row as usize] = Some(class));
        }
        class_of_row
    }

    /// The policies of a class's rows, each once.
    pub(in crate::view) fn policies(&self, class: u32) -> &[u32] {
        self.policies.of(class)
    }

    /// The identifier of a person.
    pub fn identifier(&self, person: u32) -> &str {
        self.persons.texts.get(person)
    }

    /// Where each row of a table that was fetched for the view belongs.
    ///
    /// # Errors
    /// Where somebody is there who was not when the view was verified.
    pub(in crate::view) fn find(&self, table: &Table) -> Result<Found, ViewError> {
        let person_column = table.person_column().expect("a view has an identifier");
        let person_of_id: Option<Vec<u32>> = (0..person_column.texts.len() as u32)
            .into_par_iter()
            .map(|id| self.persons.find(person_column.texts.get(id)))
            .collect();
        let person_of_id = person_of_id.ok_or(ViewError::Stale)?;
        let person_of_row: Vec<u32> = person_column.ids.iter().map(|&id| person_of_id[id as usize]).collect();
        let hashes = self.content.of_rows(table);
        let class_of = |row: usize| {
            let person = person_of_row[row];
            match self.class_of_person[person as usize] {
                SEVERAL => self.class_of_row.get(&(person, hashes.quasi[row])).copied().ok_or(ViewError::Stale),
                class => Ok(class),
            }
        };
        let class_of_row = (0..table.n_rows).map(class_of).collect::<Result<Vec<u32>, ViewError>>()?;
        Ok(Found { class_of_row, person_of_row, hashes })
    }

    /// The policies of persons' rows, where policies are found by the identifier; `None` elsewhere.
    pub(in crate::view) fn policies_of(&self, person_of_row: &[u32]) -> Option<Vec<Option<u32>>> {
        let policy_of_person = self.policy_of_person.as_ref()?;
        Some(person_of_row.iter().map(|&person| policy_of_person[person as usize]).collect())
    }

    /// Per class whether as many of its rows are there as it has.
    pub(in crate::view) fn complete(&self, class_of_row: &[u32]) -> Vec<bool> {
        let mut n_rows = vec![0; self.classes.len()];
        class_of_row.iter().filter(|&&class| class != DENIED).for_each(|&class| n_rows[class as usize] += 1);
        self.classes.iter().zip(n_rows).map(|(class, n_rows)| class.n_rows == n_rows).collect()
    }

    /// Whether these rows of each chosen class are exactly those that were verified.
    ///
    /// # Errors
    /// Where they are not.
    pub(in crate::view) fn check_unchanged(
        &self,
        class_of_row: &[u32],
        hashes: &RowHashes,
        is_chosen: &[bool],
    ) -> Result<(), ViewError> {
        let mut found = vec![(0u32, 0u64); self.classes.len()];
        for (row, &class) in class_of_row.iter().enumerate().filter(|&(_, &class)| class != DENIED) {
            let (n_rows, content) = &mut found[class as usize];
            *n_rows += 1;
            *content = content.wrapping_add(hashes.all[row]);
        }
        let is_changed = |(entry, found): (&ClassEntry, (u32, u64))| found != (entry.n_rows, entry.content);
        let changed =
            self.classes.iter().zip(found).zip(is_chosen).any(|(class, &is_chosen)| is_chosen && is_changed(class));
        if changed { Err(ViewError::Stale) } else { Ok(()) }
    }

    /// Whether another directory has the same classes of the same rows. It was made with this one's [`Seed`].
    pub(in crate::view) fn is_same_as(&self, other: &Directory) -> bool {
        let by_labels: HashMap<LabelsOfClass<'_>, (u32, u64)> = self.described().collect();
        by_labels.len() == other.n_classes()
            && other.described().all(|(labels, content)| by_labels.get(&labels) == Some(&content))
    }

    /// The identifiers of all persons, in the order of their numbers.
    pub(in crate::view) fn identifiers(&self) -> impl Iterator<Item = &str> {
        self.persons.texts.iter()
    }

    /// Every class with every person in it.
    pub(in crate::view) fn memberships(&self) -> impl Iterator<Item = (u32, u32)> {
        (0..self.n_classes() as u32).flat_map(|class| self.members.of(class).iter().map(move |&person| (class, person)))
    }

    /// Per person how many they ask to hide among.
    pub(in crate::view) fn asked_k(&self) -> &[u32] {
        &self.k_of_person
    }

    fn described(&self) -> impl Iterator<Item = (LabelsOfClass<'_>, (u32, u64))> {
        (0..self.n_classes() as u32).map(|class| {
            let ClassEntry { n_rows, is_alone, content } = *self.class(class);
            let labels = (0..self.quasi.len()).map(|quasi| self.label(quasi, class)).collect();
            ((is_alone, labels), (n_rows, content))
        })
    }

    /// What makes contents comparable.
    pub(in crate::view) fn seed(&self) -> Seed {
        Seed(self.content.hasher.clone())
    }
}

/// Whether a class is of persons who ask for none, and what it shows.
type LabelsOfClass<'a> = (bool, Vec<Option<&'a str>>);

/// Two directories made with one seed can be compared.
#[derive(Clone, Default)]
pub(in crate::view) struct Seed(RandomState);

/// A list of numbers per class.
struct Lists {
    numbers: Vec<u32>,
    /// Where the list of each class ends.
    ends: Vec<u32>,
}

impl Lists {
    /// From pairs of a class and a number, in any order; repeated pairs count once.
    fn new(n_classes: usize, mut pairs: Vec<(u32, u32)>) -> Self {
        pairs.par_sort_unstable();
        pairs.dedup();
        let mut ends = vec![0; n_classes];
        pairs.iter().for_each(|&(class, _)| ends[class as usize] += 1);
        let mut end = 0;
        for n_numbers in &mut ends {
            end += *n_numbers;
            *n_numbers = end;
        }
        Lists { numbers: pairs.into_iter().map(|(_, number)| number).collect(), ends }
    }

    fn of(&self, class: u32) -> &[u32] {
        let class = class as usize;
        let start = if class == 0 { 0 } else { self.ends[class - 1] };
        &self.numbers[start as usize..self.ends[class] as usize]
    }
}

/// Persons by identifier.
struct PersonIndex {
    texts: Texts,
    hasher: RandomState,
    slots: HashTable<u32>,
}

impl PersonIndex {
    fn new(texts: Texts) -> Self {
        let hasher = RandomState::default();
        let mut slots = HashTable::with_capacity(texts.len());
        for (person, text) in (0..).zip(texts.iter()) {
            slots.insert_unique(hasher.hash_one(text), person, |&other| hasher.hash_one(texts.get(other)));
        }
        PersonIndex { texts, hasher, slots }
    }

    fn len(&self) -> usize {
        self.texts.len()
    }

    fn find(&self, text: &str) -> Option<u32> {
        self.slots.find(self.hasher.hash_one(text), |&person| self.texts.get(person) == text).copied()
    }
}

/// Says in 64 bits what rows hold. The seed is chance, so that nobody can craft rows that collide.
struct ContentHash {
    hasher: RandomState,
    quasi: Vec<usize>,
    others: Vec<usize>,
}

/// What the rows of a table hold.
pub(in crate::view) struct RowHashes {
    /// Quasi cells.
    quasi: Vec<u64>,
    /// Identifier, quasi and other cells.
    all: Vec<u64>,
}

impl ContentHash {
    fn of_rows(&self, table: &Table) -> RowHashes {
        let mut quasi = vec![0; table.n_rows];
        self.quasi.iter().for_each(|&position| self.mix(&mut quasi, &table.columns[position]));
        let mut all = quasi.clone();
        let identifier = table.person.into_iter();
        identifier.chain(self.others.iter().copied()).for_each(|position| self.mix(&mut all, &table.columns[position]));
        RowHashes { quasi, all }
    }

    fn mix(&self, hashes: &mut [u64], column: &Column) {
        let of_texts: Vec<u64> = column.texts.iter().map(|text| self.hasher.hash_one(text)).collect();
        for (hash, &id) in hashes.iter_mut().zip(&column.ids) {
            let cell = if id == NULL { 0 } else { of_texts[id as usize] };
            *hash = self.hasher.hash_one((*hash, cell));
        }
    }
}
