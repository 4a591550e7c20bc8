//! [`Directory`]: the classes of a view and who is in them.
//!
//! A directory is made once per version and stays in memory. With it, a query finds the classes that could match without
//! looking at a private row, knows whose rows to fetch, and notices when the fetched rows are not those that were
//! verified.
//!
//! # Paper
//! `[EPS+12]` section 5.2 builds the group of each selected row anew, from a precomputed order of generalization
//! steps. Such groups overlap. Here the class of a row is looked up, so any partitioner can be used, and a leftover row
//! is in the same class for every query.
//! # Cost
//! The texts of all identifiers; 4 bytes per row, per person, and per person and class; a few words per class.

use std::collections::HashMap;
use std::hash::BuildHasher;

use foldhash::quality::RandomState;
use kohort_model::{Cells, Column, NULL, Release, Table};
use rayon::prelude::*;

use crate::names::Names;
use crate::view::ViewError;
use crate::view::class_labels::ClassLabels;

/// The class of a person who is in no class, because no policy names the person.
const DENIED: u32 = u32::MAX;
/// The class of a person with rows in several classes.
const SEVERAL: u32 = u32::MAX - 1;

/// The classes of a view.
pub(crate) struct Directory {
    labels: ClassLabels,
    classes: Vec<ClassEntry>,
    /// Per class its persons.
    members: Lists,
    /// For each class, the numbers of its rows in the result of the query that was verified.
    rows: Lists,
    /// For each class, the policies of its rows; empty without policies.
    policies: Lists,
    /// The identifiers of persons.
    persons: Names,
    class_of_person: Vec<u32>,
    /// For each person, the k that the person asks for.
    k_of_person: Vec<u32>,
    /// For each person, the place of the person's policy; empty without policies. All rows of a person have the same one.
    policy_of_person: Vec<Option<u32>>,
    /// The class of a row whose person is in several classes, by person and the hash of the row's quasi cells.
    class_of_row: HashMap<(u32, u64), u32>,
    content: ContentHash,
}

/// A class.
#[derive(Clone, Copy, Default)]
pub(crate) struct ClassEntry {
    pub n_rows: u32,
    /// Whether its persons ask for no class. It is then only a set of rows with the same quasi cells.
    pub is_alone: bool,
    content: u64,
}

/// The class of each row of a table, from which a directory is made. Classes that show the same labels are one class to a
/// reader.
#[derive(Default)]
pub(in crate::view) struct Assigned {
    pub(in crate::view) labels: ClassLabels,
    /// For each class, whether its persons ask for no class.
    pub(in crate::view) is_alone: Vec<bool>,
    /// For each row, its class, or [`Assigned::NONE`].
    pub(in crate::view) class_of_row: Vec<u32>,
    /// For each row, the place of its policy; empty without policies.
    pub(in crate::view) policy_of_row: Vec<Option<u32>>,
    /// For each row, its person's k; empty if nobody will ask for it.
    pub(in crate::view) k_of_row: Vec<u32>,
    /// Numbers of classes, by whether their persons ask for no class and the ids of their labels.
    pub(in crate::view) numbers: HashMap<(bool, Vec<u32>), u32>,
}

/// Where the rows of a table belong.
pub(in crate::view) struct Located {
    /// For each row, its class, or [`Assigned::NONE`].
    pub(in crate::view) class_of_row: Vec<u32>,
    /// For each row, its person's number in the directory.
    pub(in crate::view) person_of_row: Vec<u32>,
    pub(in crate::view) hashes: RowHashes,
}

impl Assigned {
    /// The class of a row that is in none.
    pub(in crate::view) const NONE: u32 = DENIED;

    /// Notes the classes of a release of these rows.
    pub(in crate::view) fn classes(&mut self, release: &Release, rows: &[u32]) {
        let released = &release.tables[0];
        let recoded = released.columns.iter().filter_map(|column| match &column.cells {
            Cells::Recoded { labels, ids } => Some((labels, ids)),
            Cells::Copied | Cells::Surrogate { .. } => None,
        });
        let mut columns: Vec<(Vec<u32>, &Vec<u32>)> = Vec::new();
        for (quasi, (labels, ids)) in recoded.enumerate() {
            columns.push((labels.iter().map(|label| self.labels.id(quasi, label)).collect(), ids));
        }
        for (place, &source) in released.rows.iter().enumerate() {
            let id = |(of_label, ids): &(Vec<u32>, &Vec<u32>)| match ids[place] {
                NULL => NULL,
                id => of_label[id as usize],
            };
            self.class_of_row[rows[source as usize] as usize] = self.class(false, columns.iter().map(id).collect());
        }
    }

    /// Notes a row that is shown as it is.
    pub(in crate::view) fn alone(&mut self, table: &Table, row: u32) {
        let mut ids = Vec::new();
        for (quasi, position) in self.labels.quasi().to_vec().into_iter().enumerate() {
            let cell = table.columns[position].cell(row as usize);
            ids.push(cell.map_or(NULL, |text| self.labels.id(quasi, text)));
        }
        self.class_of_row[row as usize] = self.class(true, ids);
    }

    fn class(&mut self, is_alone: bool, ids: Vec<u32>) -> u32 {
        let n_classes = self.is_alone.len() as u32;
        *self.numbers.entry((is_alone, ids)).or_insert_with_key(|(_, ids)| {
            self.labels.push_ids(ids);
            self.is_alone.push(is_alone);
            n_classes
        })
    }
}

impl Directory {
    /// A directory that knows who is in which class. The columns `others` are compared, beside the quasi columns, when
    /// rows are fetched again.
    pub(in crate::view) fn new(table: &Table, others: &[usize], assigned: Assigned, seed: Seed) -> Directory {
        let person_column = table.person_column().expect("a view has an identifier");
        let (n_persons, n_classes) = (person_column.texts.len(), assigned.is_alone.len());
        let quasi = assigned.labels.quasi().to_vec();
        let content = ContentHash { hasher: seed.0, quasi, others: others.to_vec() };
        let hashes = content.of_rows(table);
        let in_classes = || {
            let rows = (0u32..).zip(&assigned.class_of_row).zip(&person_column.ids);
            rows.filter(|((_, class), _)| **class != DENIED).map(|((row, class), person)| (row, *class, *person))
        };
        let mut class_of_person = vec![DENIED; n_persons];
        let (mut members, mut rows) = (Vec::with_capacity(table.n_rows), Vec::with_capacity(table.n_rows));
        let mut contents = vec![0u64; n_classes];
        for (row, class, person) in in_classes() {
            let content = &mut contents[class as usize];
            *content = content.wrapping_add(hashes.all[row as usize]);
            members.push((class, person));
            rows.push((class, row));
            let of_person = &mut class_of_person[person as usize];
            *of_person = if *of_person == DENIED || *of_person == class { class } else { SEVERAL };
        }
        let several = in_classes().filter(|(_, _, person)| class_of_person[*person as usize] == SEVERAL);
        let several = several.map(|(row, class, person)| ((person, hashes.quasi[row as usize]), class)).collect();
        let mut k_of_person = vec![0; n_persons];
        for (&person, &k) in person_column.ids.iter().zip(&assigned.k_of_row) {
            k_of_person[person as usize] = k.max(k_of_person[person as usize]);
        }
        let mut policy_of_person = Vec::new();
        if !assigned.policy_of_row.is_empty() {
            policy_of_person.resize(n_persons, None);
            let of_rows = person_column.ids.iter().zip(&assigned.policy_of_row);
            of_rows.for_each(|(&person, &policy)| policy_of_person[person as usize] = policy);
        }
        let mut directory = Directory {
            members: Lists::new(n_classes, members),
            rows: Lists::new(n_classes, rows),
            persons: Names::from(person_column.texts.clone()),
            class_of_person,
            k_of_person,
            policy_of_person,
            class_of_row: several,
            content,
            ..Directory::of_classes(assigned)
        };
        directory.classes.iter_mut().zip(contents).for_each(|(class, content)| class.content = content);
        directory
    }

    /// A directory that knows what classes show, how many rows they have, and under which policies, but nobody in them.
    pub(in crate::view) fn of_classes(assigned: Assigned) -> Directory {
        let Assigned { labels, is_alone, class_of_row, policy_of_row, .. } = assigned;
        let n_classes = is_alone.len();
        let entry = |is_alone| ClassEntry { is_alone, ..ClassEntry::default() };
        let mut classes: Vec<ClassEntry> = is_alone.into_iter().map(entry).collect();
        let in_classes = || class_of_row.iter().enumerate().filter(|(_, class)| **class != DENIED);
        in_classes().for_each(|(_, &class)| classes[class as usize].n_rows += 1);
        let policy = |(row, &class): (usize, &u32)| Some((class, policy_of_row.get(row).copied().flatten()?));
        Directory {
            labels,
            classes,
            members: Lists::new(n_classes, Vec::new()),
            rows: Lists::new(n_classes, Vec::new()),
            policies: Lists::new(n_classes, in_classes().filter_map(policy).collect()),
            persons: Names::default(),
            class_of_person: Vec::new(),
            k_of_person: Vec::new(),
            policy_of_person: Vec::new(),
            class_of_row: HashMap::new(),
            content: ContentHash { hasher: RandomState::default(), quasi: Vec::new(), others: Vec::new() },
        }
    }

    /// How many classes there are, including those of persons who ask for no class.
    pub(crate) fn n_classes(&self) -> usize {
        self.classes.len()
    }

    /// How many rows the view has.
    pub(crate) fn n_rows(&self) -> u64 {
        self.classes.iter().map(|class| u64::from(class.n_rows)).sum()
    }

    pub(crate) fn class(&self, class: u32) -> &ClassEntry {
        &self.classes[class as usize]
    }

    /// What the classes show in the quasi columns.
    pub(in crate::view) fn labels(&self) -> &ClassLabels {
        &self.labels
    }

    /// The persons in these classes, each once.
    pub(crate) fn members(&self, classes: &[u32]) -> Vec<u32> {
        let mut members: Vec<u32> = classes.iter().flat_map(|&class| self.members.of(class)).copied().collect();
        members.sort_unstable();
        members.dedup();
        members
    }

    /// The numbers of the rows of these classes in the result that was verified, ascending.
    pub(in crate::view) fn rows(&self, classes: &[u32]) -> Vec<u32> {
        let mut rows: Vec<u32> = classes.iter().flat_map(|&class| self.rows.of(class)).copied().collect();
        rows.par_sort_unstable();
        rows
    }

    /// For each row of the result that was verified, its class; `None` if it is in none.
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

    pub(crate) fn identifier(&self, person: u32) -> &str {
        self.persons.texts().get(person)
    }

    /// Where each row of a table that was fetched for the view belongs.
    ///
    /// # Errors
    /// [`ViewError::Stale`] if a row is of a person who was not there when the view was verified.
    pub(in crate::view) fn find(&self, table: &Table) -> Result<Located, ViewError> {
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
        Ok(Located { class_of_row, person_of_row, hashes })
    }

    /// For each row, the policy of its person; empty without policies.
    pub(in crate::view) fn policies_of(&self, person_of_row: &[u32]) -> Vec<Option<u32>> {
        match self.policy_of_person.is_empty() {
            true => Vec::new(),
            false => person_of_row.iter().map(|&person| self.policy_of_person[person as usize]).collect(),
        }
    }

    /// Checks that the rows of each chosen class are exactly those that were verified.
    ///
    /// # Errors
    /// [`ViewError::Stale`] if they are not.
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

    /// Whether another directory, made with the same [`Seed`], has the same classes of the same rows.
    pub(in crate::view) fn is_same_as(&self, other: &Directory) -> bool {
        let by_labels: HashMap<LabelsOfClass<'_>, (u32, u64)> = self.described().collect();
        by_labels.len() == other.n_classes()
            && other.described().all(|(labels, content)| by_labels.get(&labels) == Some(&content))
    }

    /// The identifiers of all persons, in the order of their numbers.
    pub(in crate::view) fn identifiers(&self) -> impl Iterator<Item = &str> {
        self.persons.texts().iter()
    }

    /// Every class with every person in it.
    pub(in crate::view) fn memberships(&self) -> impl Iterator<Item = (u32, u32)> {
        (0..self.n_classes() as u32).flat_map(|class| self.members.of(class).iter().map(move |&person| (class, person)))
    }

    /// For each person, the k that the person asks for.
    pub(in crate::view) fn asked_k(&self) -> &[u32] {
        &self.k_of_person
    }

    fn described(&self) -> impl Iterator<Item = (LabelsOfClass<'_>, (u32, u64))> {
        (0..self.n_classes() as u32).map(|class| {
            let ClassEntry { n_rows, is_alone, content } = *self.class(class);
            ((is_alone, self.labels.of(class)), (n_rows, content))
        })
    }

    /// The seed of the hashes of rows.
    pub(in crate::view) fn seed(&self) -> Seed {
        Seed(self.content.hasher.clone())
    }
}

/// Whether the persons of a class ask for no class, and the labels of the class.
type LabelsOfClass<'a> = (bool, Vec<Option<&'a str>>);

/// The seed of the hashes of rows. Two directories can be compared if they were made with the same seed.
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

/// Hashes rows to 64 bits. The seed is random, so nobody can craft rows that collide.
struct ContentHash {
    hasher: RandomState,
    quasi: Vec<usize>,
    others: Vec<usize>,
}

/// The hashes of the rows of a table.
pub(in crate::view) struct RowHashes {
    /// Hashes of the quasi cells.
    quasi: Vec<u64>,
    /// Hashes of identifier, quasi and other cells.
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
