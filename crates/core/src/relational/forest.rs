//! [`Forest`]: the persons of one table of persons as trees of rows, in flat lists.
//!
//! Persons whose trees are the same, as unordered trees of quasi codes, are folded to one with a weight. A person's
//! rows of one table stand in canonical order, so the place of a row (its slot) means the same for every person folded
//! into one.
//!
//! # Guarantee
//! nothing depends on the order of the input but which of two rows with the same released content, and the same content
//! below, comes first

use kohort_model::spec::Keys;
use kohort_model::{Column, NULL, Role, Schema, Table};
use rayon::prelude::*;

use super::canonical::{Hanging, Numbers, Words, number};
use super::mixed::Mixed;
use crate::encode::{Encoded, ForeignValues};

/// One table of a forest.
#[derive(Clone, Debug)]
pub(super) struct Kind {
    /// Its position in the schema.
    pub(super) table: usize,
    /// The table it hangs off, by position in the forest; that of the persons is 0 and has none.
    pub(super) parent: Option<usize>,
    /// The tables that hang off it, by position in the forest.
    pub(super) children: Vec<usize>,
    /// How many quasi columns it has.
    pub(super) n_quasi: usize,
}

/// The tables that reach one table of persons, each with its codes, and which row hangs off which.
#[derive(Debug)]
pub(super) struct Grove<'t> {
    /// Parents before children.
    pub(super) kinds: Vec<Kind>,
    /// Per kind its quasi columns.
    pub(super) encoded: Vec<Encoded<'t>>,
    /// Per kind and row the row it hangs off, [`NULL`] where that leads to no person; a person hangs off itself.
    pub(super) parents: Vec<Vec<u32>>,
    /// Per kind and row its person, or [`NULL`].
    pub(super) persons: Vec<Vec<u32>>,
}

/// Persons as trees.
#[derive(Debug)]
pub(super) struct Forest {
    /// The tables, parents before children.
    pub(super) kinds: Vec<Kind>,
    /// Per kind all rows that take part, person by person, each person's in canonical order.
    layers: Vec<ForestLayer>,
    /// Rows of the table of persons, those with equal trees together.
    persons: Vec<u32>,
    /// Where each folded person's members start in `persons`, and the end.
    starts: Vec<u32>,
}

#[derive(Debug)]
struct ForestLayer {
    /// Per person, and the end.
    starts: Vec<u32>,
    rows: Vec<u32>,
    /// The slot of the row it hangs off.
    parent_slots: Vec<u32>,
    /// Equal for rows with equal subtrees.
    numbers: Vec<u32>,
    /// Codes of all rows, `n_quasi` each.
    codes: Vec<u32>,
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
    /// Where a text is not of its column's type or not in its hierarchy.
    pub(super) fn new(tables: &'t [Table], schema: &Schema, root: usize) -> Result<Grove<'t>, ForeignValues> {
        let mut kinds = vec![Kind { table: root, parent: None, children: Vec::new(), n_quasi: 0 }];
        let mut next = 0;
        while next < kinds.len() {
            // By name, so that the order of the spec changes nothing.
            let mut children = schema.children(kinds[next].table);
            children.sort_by_key(|&table| &schema.tables[table].name);
            for table in children {
                let position = kinds.len();
                kinds[next].children.push(position);
                kinds.push(Kind { table, parent: Some(next), children: Vec::new(), n_quasi: 0 });
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
        let quasi: Vec<Words> = self.encoded.iter().zip(&self.parents).map(|(e, parents)| codes(e, parents)).collect();
        let numbers = number(&self.kinds, &self.parents, &quasi);
        let contents = self.contents(tables, schema, keys, &numbers);

        let by_content = |kind: usize| -> &[u32] {
            let numbers: &Numbers = contents.as_ref().map_or(&numbers[kind], |contents| &contents[kind]);
            &numbers.in_order
        };
        let persons: Vec<u32> = by_content(0).to_vec();
        let mut starts = Vec::new();
        let mut previous = None;
        for (place, &person) in persons.iter().enumerate() {
            let number = numbers[0].of_row[person as usize];
            if previous.replace(number) != Some(number) {
                starts.push(place as u32);
            }
        }
        starts.push(persons.len() as u32);

        let mut layers: Vec<ForestLayer> = Vec::with_capacity(self.kinds.len());
        for (kind, of_kind) in self.kinds.iter().enumerate() {
            let layer = match of_kind.parent {
                None => ForestLayer {
                    starts: (0..=persons.len() as u32).collect(),
                    parent_slots: vec![0; persons.len()],
                    numbers: Vec::new(),
                    codes: Vec::new(),
                    rows: persons.clone(),
                },
                Some(parent) => {
                    below(&layers[parent], self.parents[parent].len(), &self.parents[kind], by_content(kind))
                }
            };
            layers.push(layer);
        }
        for ((layer, numbers), words) in layers.iter_mut().zip(&numbers).zip(&quasi) {
            layer.numbers = layer.rows.par_iter().map(|&row| numbers.of_row[row as usize]).collect();
            layer.codes = vec![0; layer.rows.len() * words.width];
            if words.width > 0 {
                layer.codes.par_chunks_mut(words.width).zip(&layer.rows).for_each(|(codes, &row)| {
                    codes.copy_from_slice(&words.cells[row as usize * words.width..][..words.width]);
                });
            }
        }
        Forest { kinds: self.kinds.clone(), layers, persons, starts }
    }

    /// Numbers by quasi cells first, so that alike rows are told apart neither by their place in the file nor where
    /// their references are all that differs. Which of them is left out where they find no partner follows this order, so
    /// it must not follow their values: a reader who knows the rule would know something about the missing row. So alike
    /// rows stand by their own keys, and where a table has none, by a number that nobody can compute who does not have all
    /// private tables (see [`Mixed`]). `None` where nothing is released as it is.
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
                let width = columns.len() + 3;
                let mut cells = vec![0; numbers.of_row.len() * width];
                cells.par_chunks_mut(width).enumerate().for_each(|(row, cells)| {
                    cells[0] = numbers.of_row[row];
                    cells[1] = key.as_ref().map_or(0, |ranks| ranks[row]);
                    cells[3..].iter_mut().zip(columns).for_each(|(cell, ranks)| *cell = ranks[row]);
                    let person = self.persons[position][row];
                    if person != NULL {
                        cells[2] = mixed.number(kind.table, row, (root, person as usize));
                    }
                });
                Words { width, cells }
            })
            .collect();
        Some(number(&self.kinds, &self.parents, &words))
    }
}

/// The key of a table that is no other row's: a key that is the foreign key too is the parent's.
fn own_key(schema: &Schema, table: usize) -> Option<usize> {
    let linked = &schema.tables[table];
    linked.key.filter(|&key| linked.parent.is_none_or(|parent| parent.foreign_key != key))
}

/// Per column that is released as it is, the rank of each row's text; null comes first.
pub(super) fn copied_ranks(table: &Table, keys: Keys) -> Vec<Vec<u32>> {
    let is_copied = |column: &&Column| match column.role {
        Role::Sensitive | Role::Plain => true,
        Role::Key => keys == Keys::Keep,
        Role::Identifier | Role::Quasi | Role::PersonK | Role::Drop => false,
    };
    table.columns.iter().filter(is_copied).map(text_ranks).collect()
}

pub(super) fn text_ranks(column: &Column) -> Vec<u32> {
    let mut by_text: Vec<u32> = (0..column.texts.len() as u32).collect();
    by_text.par_sort_unstable_by_key(|&id| column.texts.get(id));
    let mut ranks = vec![0; by_text.len()];
    for (rank, &id) in (1..).zip(&by_text) {
        ranks[id as usize] = rank;
    }
    column.ids.iter().map(|&id| ranks.get(id as usize).copied().unwrap_or(0)).collect()
}

fn codes(encoded: &Encoded<'_>, parents: &[u32]) -> Words {
    let width = encoded.domains.len();
    let mut cells = vec![0; parents.len() * width];
    if width > 0 {
        cells.par_chunks_mut(width).enumerate().for_each(|(row, cells)| {
            for (column, cell) in cells.iter_mut().enumerate() {
                *cell = encoded.code(column, row as u32);
            }
        });
    }
    Words { width, cells }
}

/// The rows of a child table in the order of the rows they hang off.
fn below(above: &ForestLayer, n_parents: usize, parents: &[u32], in_order: &[u32]) -> ForestLayer {
    let hanging = Hanging::new(n_parents, parents, in_order);
    let mut layer = ForestLayer {
        starts: Vec::with_capacity(above.starts.len()),
        rows: Vec::with_capacity(in_order.len()),
        parent_slots: Vec::with_capacity(in_order.len()),
        numbers: Vec::new(),
        codes: Vec::new(),
    };
    for person in above.starts.windows(2) {
        layer.starts.push(layer.rows.len() as u32);
        for (slot, &parent) in (0..).zip(&above.rows[person[0] as usize..person[1] as usize]) {
            let children = hanging.of(parent);
            layer.rows.extend_from_slice(children);
            layer.parent_slots.extend(std::iter::repeat_n(slot, children.len()));
        }
    }
    layer.starts.push(layer.rows.len() as u32);
    layer
}

impl Forest {
    /// How many folded persons there are.
    pub(super) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// How many persons a folded one stands for.
    pub(super) fn weight(&self, folded: u32) -> u32 {
        self.starts[folded as usize + 1] - self.starts[folded as usize]
    }

    /// The codes of a folded person's own cells.
    pub(super) fn codes(&self, folded: u32) -> &[u32] {
        let n_quasi = self.kinds[0].n_quasi;
        &self.layers[0].codes[self.starts[folded as usize] as usize * n_quasi..][..n_quasi]
    }

    /// The rows of the table of persons a folded person stands for.
    pub(super) fn members(&self, folded: u32) -> &[u32] {
        &self.persons[self.starts[folded as usize] as usize..self.starts[folded as usize + 1] as usize]
    }

    /// Per member of a folded person its rows of one table, by slot.
    pub(super) fn rows_of_members(&self, folded: u32, kind: usize) -> impl Iterator<Item = &[u32]> {
        let layer = &self.layers[kind];
        let persons = self.starts[folded as usize]..self.starts[folded as usize + 1];
        persons.map(move |person| {
            &layer.rows[layer.starts[person as usize] as usize..layer.starts[person as usize + 1] as usize]
        })
    }

    /// Of each different subtree of a table, by its number, a folded person that has it and the slot.
    pub(super) fn examples(&self, kind: usize) -> Vec<(u32, u32)> {
        let layer = &self.layers[kind];
        let n_subtrees = layer.numbers.iter().max().map_or(0, |&number| number as usize + 1);
        let mut examples = vec![(NULL, 0); n_subtrees];
        for folded in 0..self.len() as u32 {
            for (slot, row) in (0..).zip(self.slots(folded, kind)) {
                let example = &mut examples[row.number as usize];
                if example.0 == NULL {
                    *example = (folded, slot);
                }
            }
        }
        examples
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
        let n_quasi = self.kinds[kind].n_quasi;
        let person = self.starts[folded as usize] as usize;
        (layer.starts[person] as usize..layer.starts[person + 1] as usize).map(move |place| Slot {
            parent: layer.parent_slots[place],
            number: layer.numbers[place],
            codes: &layer.codes[place * n_quasi..][..n_quasi],
        })
    }
}
