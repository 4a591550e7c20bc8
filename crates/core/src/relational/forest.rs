//! [`Forest`]: the persons of one table of persons as trees of rows, in flat lists.
//!
//! Persons whose trees are the same, as unordered trees of quasi codes, are folded to one with a weight. A person's
//! rows of one table are in canonical order, so the place of a row (its slot) means the same for every person folded
//! into one.
//!
//! # Guarantee
//! The order of the input decides only one thing: which of two rows with the same released content, and the same
//! content below, comes first.

use std::sync::Arc;

use kohort_model::spec::Keys;
use kohort_model::{Column, NULL, Role, Schema, Table};
use rayon::prelude::*;

use super::canonical::{Numbers, Words, hanging, number};
use super::mixed::Mixed;
use crate::encode::{Encoded, ForeignValues};
use crate::lists::Lists;
use crate::ranks::text_ranks;
use crate::recode::is_copied;

/// One table of a forest.
#[derive(Clone, Debug)]
pub(super) struct Kind {
    /// The table's position in the schema.
    pub(super) table: usize,
    /// The parent table, by position in the forest. The table of persons is at position 0 and has no parent.
    pub(super) parent: Option<usize>,
    /// The child tables, by position in the forest.
    pub(super) children: Vec<usize>,
    /// The number of quasi columns.
    pub(super) n_quasi: usize,
    /// What a row that is left out costs, in cells that lose everything: its quasi cells, or more if few rows of the table
    /// may be left out.
    pub(super) worth: f64,
}

impl Kind {
    /// What a row that is left out costs beyond its cells.
    pub(super) fn beyond_cells(&self) -> f64 {
        self.worth - self.n_quasi as f64
    }
}

/// The tables that belong to one table of persons, each with its codes, and the parent of each row.
#[derive(Debug)]
pub(super) struct Grove<'t> {
    /// Parents before children.
    pub(super) kinds: Vec<Kind>,
    /// For each kind, its quasi columns.
    pub(super) encoded: Vec<Encoded<'t>>,
    /// For each kind and row, the parent row; [`NULL`] if that does not lead to a person. The parent of a person is the
    /// person.
    pub(super) parents: Vec<Vec<u32>>,
    /// For each kind and row, its person, or [`NULL`].
    pub(super) persons: Vec<Vec<u32>>,
}

/// Persons as trees. A copy shares their rows.
#[derive(Clone, Debug)]
pub(super) struct Forest {
    /// The tables, parents before children.
    pub(super) kinds: Vec<Kind>,
    /// For each kind, all rows that take part, person by person, each person's in canonical order.
    layers: Arc<Vec<ForestLayer>>,
    /// For each folded person, the rows of the table of persons that it stands for.
    persons: Arc<Lists>,
}

#[derive(Debug)]
struct ForestLayer {
    /// The rows of each person, in the order of the forest's persons.
    rows: Lists,
    /// The slot of the parent row.
    parent_slots: Vec<u32>,
    /// Equal for rows with equal subtrees.
    numbers: Vec<u32>,
    /// The codes of all rows.
    codes: Words,
}

/// One row of a person in the forest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot<'f> {
    pub(super) parent: u32,
    pub(super) number: u32,
    pub(super) codes: &'f [u32],
}

impl<'t> Grove<'t> {
    /// The tables below one table of persons.
    ///
    /// # Errors
    /// If a text is not of its column's type or not in its hierarchy.
    pub(super) fn new(tables: &'t [Table], schema: &Schema, root: usize) -> Result<Grove<'t>, ForeignValues> {
        let mut kinds = vec![Kind { table: root, parent: None, children: Vec::new(), n_quasi: 0, worth: 0.0 }];
        let mut next = 0;
        while next < kinds.len() {
            // Sorted by name, so that the order of the spec changes nothing.
            let mut children = schema.children(kinds[next].table);
            children.sort_by_key(|&table| &schema.tables[table].name);
            for table in children {
                let position = kinds.len();
                kinds[next].children.push(position);
                kinds.push(Kind { table, parent: Some(next), children: Vec::new(), n_quasi: 0, worth: 0.0 });
            }
            next += 1;
        }
        let mut encoded = Vec::with_capacity(kinds.len());
        let mut parents: Vec<Vec<u32>> = Vec::with_capacity(kinds.len());
        let mut persons: Vec<Vec<u32>> = Vec::with_capacity(kinds.len());
        for kind in &mut kinds {
            let table = &tables[kind.table];
            let quasi = table.with_role(Role::Quasi);
            kind.n_quasi = quasi.len();
            kind.worth = quasi.len() as f64;
            encoded.push(Encoded::new(table, &quasi)?);
            match kind.parent.zip(schema.parent_rows(tables, kind.table)) {
                None => {
                    parents.push((0..table.n_rows as u32).collect());
                    persons.push((0..table.n_rows as u32).collect());
                }
                Some((parent, rows)) => {
                    let of_parent = &persons[parent];
                    let person = |&row: &u32| of_parent.get(row as usize).copied().unwrap_or(NULL);
                    let of_rows: Vec<u32> = rows.par_iter().map(person).collect();
                    let hangs = |(&row, &person): (&u32, &u32)| if person == NULL { NULL } else { row };
                    parents.push(rows.par_iter().zip(&of_rows).map(hangs).collect());
                    persons.push(of_rows);
                }
            }
        }
        Ok(Grove { kinds, encoded, parents, persons })
    }

    /// Takes persons out, and every row below them.
    pub(super) fn retain(&mut self, stays: &[bool]) {
        for (parents, persons) in self.parents.iter_mut().zip(&mut self.persons) {
            parents.par_iter_mut().zip(persons.par_iter_mut()).for_each(|(parent, person)| {
                if *person != NULL && !stays[*person as usize] {
                    (*parent, *person) = (NULL, NULL);
                }
            });
        }
    }

    /// The trees of all persons that were not taken out.
    pub(super) fn forest(&self, tables: &[Table], schema: &Schema, keys: Keys) -> Forest {
        let codes = |(encoded, parents): (&Encoded<'_>, &Vec<u32>)| {
            Words::new(parents.len(), encoded.domains.len(), |row, cells| {
                cells.iter_mut().enumerate().for_each(|(column, cell)| *cell = encoded.code(column, row as u32));
            })
        };
        let quasi: Vec<Words> = self.encoded.iter().zip(&self.parents).map(codes).collect();
        let numbers = number(&self.kinds, &self.parents, &quasi);
        let contents = self.contents(tables, schema, keys, &numbers);

        let by_content = |kind: usize| -> &[u32] {
            let numbers: &Numbers = contents.as_ref().map_or(&numbers[kind], |contents| &contents[kind]);
            &numbers.in_order
        };
        let persons: Vec<u32> = by_content(0).to_vec();
        let number = |person: u32| numbers[0].of_row[person as usize];
        let alike = persons.chunk_by(|&a, &b| number(a) == number(b)).map(|alike| alike.iter().copied()).collect();

        let mut layers: Vec<ForestLayer> = Vec::with_capacity(self.kinds.len());
        for (kind, of_kind) in self.kinds.iter().enumerate() {
            let layer = match of_kind.parent {
                None => {
                    let rows = Lists::new(persons.clone(), (0..=persons.len() as u32).collect());
                    ForestLayer {
                        rows,
                        parent_slots: vec![0; persons.len()],
                        numbers: Vec::new(),
                        codes: Words::default(),
                    }
                }
                Some(parent) => {
                    below(&layers[parent], self.parents[parent].len(), &self.parents[kind], by_content(kind))
                }
            };
            layers.push(layer);
        }
        for ((layer, numbers), words) in layers.iter_mut().zip(&numbers).zip(&quasi) {
            let rows = layer.rows.items();
            layer.numbers = rows.par_iter().map(|&row| numbers.of_row[row as usize]).collect();
            layer.codes =
                Words::new(rows.len(), words.width, |place, codes| codes.copy_from_slice(words.of_row(rows[place])));
        }
        Forest { kinds: self.kinds.clone(), layers: Arc::new(layers), persons: Arc::new(alike) }
    }

    /// Numbers rows by their quasi cells first. Alike rows that find no partner are left out in this order, so among
    /// them it must follow neither the file nor their values: a reader who knows the rule would learn something about
    /// the missing row. So alike rows are ordered by their own keys, and where a table has none, by a number that only
    /// somebody with all private tables can compute (see [`Mixed`]). `None` if nothing is released as it is.
    fn contents(&self, tables: &[Table], schema: &Schema, keys: Keys, numbers: &[Numbers]) -> Option<Vec<Numbers>> {
        let columns = |kind: &Kind| {
            let table = &tables[kind.table];
            let mut ranks = copied_ranks(table, keys);
            let references = schema.tables[kind.table].references.iter();
            ranks.extend(references.map(|reference| text_ranks(&table.columns[reference.column])));
            ranks
        };
        let columns: Vec<Vec<Vec<u32>>> = self.kinds.iter().map(columns).collect();
        if columns.iter().all(Vec::is_empty) {
            return None;
        }
        let mixed = Mixed::of(tables);
        let root = self.kinds[0].table;
        let words: Vec<Words> = (0..)
            .zip(&self.kinds)
            .zip(numbers.iter().zip(&columns))
            .map(|((position, kind), (numbers, columns)): ((usize, &Kind), _)| {
                let key = own_key(schema, kind.table).map(|key| text_ranks(&tables[kind.table].columns[key]));
                Words::new(numbers.of_row.len(), columns.len() + 3, |row, cells| {
                    cells[0] = numbers.of_row[row];
                    cells[1] = key.as_ref().map_or(0, |ranks| ranks[row]);
                    cells[3..].iter_mut().zip(columns).for_each(|(cell, ranks)| *cell = ranks[row]);
                    let person = self.persons[position][row];
                    if person != NULL {
                        cells[2] = mixed.number(kind.table, row, (root, person as usize));
                    }
                })
            })
            .collect();
        Some(number(&self.kinds, &self.parents, &words))
    }
}

/// The key of a table, unless it is also the foreign key and so the parent's.
fn own_key(schema: &Schema, table: usize) -> Option<usize> {
    let linked = &schema.tables[table];
    linked.key.filter(|&key| linked.parent.is_none_or(|parent| parent.foreign_key != key))
}

/// For each column that is released as it is, the rank of each row's text; null comes first.
pub(super) fn copied_ranks(table: &Table, keys: Keys) -> Vec<Vec<u32>> {
    let is_kept_key = |column: &Column| column.role == Role::Key && keys == Keys::Keep;
    table.columns.iter().filter(|column| is_copied(column) || is_kept_key(column)).map(text_ranks).collect()
}

/// The rows of a child table in the order of their parent rows.
fn below(above: &ForestLayer, n_parents: usize, parents: &[u32], in_order: &[u32]) -> ForestLayer {
    let hanging = hanging(n_parents, parents, in_order);
    let children = |parent: u32| hanging.get(parent as usize).iter().copied();
    let mut parent_slots = Vec::with_capacity(in_order.len());
    for of_person in above.rows.iter() {
        for (slot, &parent) in (0..).zip(of_person) {
            parent_slots.extend(children(parent).map(|_| slot));
        }
    }
    let rows = above.rows.iter().map(|of_person| of_person.iter().flat_map(|&parent| children(parent))).collect();
    ForestLayer { rows, parent_slots, numbers: Vec::new(), codes: Words::default() }
}

impl Forest {
    pub(super) fn len(&self) -> usize {
        self.persons.len()
    }

    /// The same persons, but a row that is left out costs this much, by kind.
    pub(super) fn with_worths(&self, worths: &[f64]) -> Forest {
        let mut forest = self.clone();
        forest.kinds.iter_mut().zip(worths).for_each(|(kind, &worth)| kind.worth = worth);
        forest
    }

    /// The number of rows of one table that all persons have.
    pub(super) fn n_rows_of_all(&self, kind: usize) -> u64 {
        self.layers[kind].rows.items().len() as u64
    }

    /// The number of rows of one table that a folded person has; all of its persons have as many.
    pub(super) fn n_rows(&self, folded: u32, kind: usize) -> u32 {
        self.layers[kind].rows.len_of(self.persons.start(folded as usize))
    }

    /// How many persons a folded one stands for.
    pub(super) fn weight(&self, folded: u32) -> u32 {
        self.persons.len_of(folded as usize)
    }

    /// The codes of a folded person's own cells.
    pub(super) fn codes(&self, folded: u32) -> &[u32] {
        self.layers[0].codes.of_row(self.persons.start(folded as usize) as u32)
    }

    /// The rows of the table of persons a folded person stands for.
    pub(super) fn members(&self, folded: u32) -> &[u32] {
        self.persons.get(folded as usize)
    }

    /// For each member of a folded person, its rows of one table, by slot.
    pub(super) fn rows_of_members(&self, folded: u32, kind: usize) -> impl Iterator<Item = &[u32]> {
        let persons = self.persons.start(folded as usize)..self.persons.start(folded as usize + 1);
        persons.map(move |person| self.layers[kind].rows.get(person))
    }

    /// The number of different subtrees of a table.
    pub(super) fn n_subtrees(&self, kind: usize) -> usize {
        self.layers[kind].numbers.iter().max().map_or(0, |&number| number as usize + 1)
    }

    /// The most pairs of different siblings that two folded persons can have in any table.
    pub(super) fn most_pairs_of_siblings(&self) -> usize {
        let largest_set = |folded: u32, kind: usize| {
            let (mut largest, mut so_far, mut before) = (0, 0, None);
            for slot in self.slots(folded, kind) {
                match before {
                    Some((parent, number)) if parent == slot.parent => so_far += usize::from(number != slot.number),
                    _ => so_far = 1,
                }
                before = Some((slot.parent, slot.number));
                largest = largest.max(so_far);
            }
            largest
        };
        let pairs = |kind: usize| {
            let mut two = [0, 0];
            for size in (0..self.len() as u32).map(|folded| largest_set(folded, kind)) {
                two = [two[0].max(size), two[1].max(size.min(two[0]))];
            }
            two[0] * two[1]
        };
        (1..self.kinds.len()).map(pairs).max().unwrap_or(0)
    }

    /// The rows of one table of a folded person, by slot.
    pub(super) fn slots(&self, folded: u32, kind: usize) -> impl ExactSizeIterator<Item = Slot<'_>> {
        let layer = &self.layers[kind];
        let person = self.persons.start(folded as usize);
        (layer.rows.start(person)..layer.rows.start(person + 1)).map(move |place| Slot {
            parent: layer.parent_slots[place],
            number: layer.numbers[place],
            codes: layer.codes.of_row(place as u32),
        })
    }
}
