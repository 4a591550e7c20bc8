//! What an attacker sees of persons whose rows are in many tables.
//!
//! A [`View`] is what somebody knows about a person: cells of the person's own row and of rows below it, at any depth;
//! how many such rows there are; that there are no others. The answer to a view is the set of released persons whom it
//! may describe. A release hides everybody among k persons if no view has an answer of 1 to k-1 of them.
//!
//! [`attack`] tries random views, made from released cells and from private ones. On tiny tables [`smallest_answer`]
//! tries all views that differ in their answer.
//!
//! # Paper       `[NCN08]`, definition 5, and the attack on Chris in sections III-A and III-B

use std::collections::{BTreeSet, HashMap};

use kohort_model::{Cells, Column, NULL, Release, Role, Schema, SchemaParent, SchemaReference, SchemaTable, Table};

use super::covers;
use crate::random::Random;

/// A row with all rows below it.
#[derive(Clone, Debug)]
pub struct Tree {
    /// The row's position in its table.
    pub row: usize,
    /// The row's quasi cells, `None` for null.
    pub cells: Vec<Option<String>>,
    /// The rows below it, for each child table in the order of the schema.
    pub children: Vec<Vec<Tree>>,
}

/// What is known about a cell.
#[derive(Clone, Debug)]
pub enum Known {
    /// Nothing is known.
    Nothing,
    /// The released cell is known.
    Shown(Option<String>),
    /// The private cell is known.
    Was(Option<String>),
}

/// What is known about a person, or about one of the person's rows.
#[derive(Clone, Debug)]
pub struct View {
    /// One entry per quasi column.
    pub cells: Vec<Known>,
    /// One entry per child table.
    pub rows: Vec<KnownRows>,
}

/// What is known about the rows of one table below a row.
#[derive(Clone, Debug, Default)]
pub struct KnownRows {
    /// Each of these views fits a row of its own.
    pub some: Option<Vec<View>>,
    /// Each row fits a view of its own, so there are no others.
    pub all: Option<Vec<View>>,
    /// Exactly this many rows fit this view.
    pub exactly: Option<(Box<View>, usize)>,
}

/// Released tables, joined as a reader would.
pub struct Joined {
    schema: Schema,
    /// The persons of each person table.
    persons: Vec<(usize, Vec<Tree>)>,
    /// The quasi columns of each table, with the hierarchies and types of the private ones.
    quasi: Vec<Vec<Column>>,
}

impl Joined {
    /// Joins tables by the texts of their keys. Rows that join with nothing belong to nobody.
    pub fn new(tables: &[Table], schema: &Schema) -> Joined {
        let quasi = |table: &Table| table.with_role(Role::Quasi).iter().map(|&at| table.columns[at].clone()).collect();
        let persons = |&root: &usize| {
            let trees = (0..tables[root].n_rows).map(|row| tree(tables, schema, root, row)).collect();
            (root, trees)
        };
        Joined {
            persons: schema.roots().iter().map(persons).collect(),
            quasi: tables.iter().map(quasi).collect(),
            schema: schema.clone(),
        }
    }

    /// The numbers of the persons of a person table, from 0, whom a view may describe.
    pub fn answer(&self, root: usize, view: &View) -> Vec<usize> {
        let (_, persons) = self.persons.iter().find(|(table, _)| *table == root).expect("it is a person table");
        persons.iter().filter(|person| self.may_be(root, person, view)).map(|person| person.row).collect()
    }

    /// The persons of a person table.
    ///
    /// # Panics
    /// If the table is not a person table.
    pub fn persons(&self, root: usize) -> &[Tree] {
        &self.persons.iter().find(|(table, _)| *table == root).expect("it is a person table").1
    }

    fn may_be(&self, table: usize, tree: &Tree, view: &View) -> bool {
        let cell = |((column, shown), known): ((&Column, &Option<String>), &Known)| match known {
            Known::Nothing => true,
            Known::Shown(label) => shown == label,
            Known::Was(value) => covers(column, shown.as_deref(), value.as_deref()),
        };
        if !self.quasi[table].iter().zip(&tree.cells).zip(&view.cells).all(cell) {
            return false;
        }
        let children = self.schema.children(table);
        children.iter().enumerate().all(|(position, &child)| {
            let rows = &tree.children[position];
            let known = &view.rows[position];
            let fits = |row: &Tree, view: &View| self.may_be(child, row, view);
            known.some.as_ref().is_none_or(|some| each_has_its_own(some, rows, &|view, row| fits(row, view)))
                && known.all.as_ref().is_none_or(|all| each_has_its_own(rows, all, &fits))
                && known
                    .exactly
                    .as_ref()
                    .is_none_or(|(view, n)| rows.iter().filter(|row| fits(row, view)).count() == *n)
        })
    }
}

/// The tree of one row.
fn tree(tables: &[Table], schema: &Schema, table: usize, row: usize) -> Tree {
    let own = &tables[table];
    let cells = own.with_role(Role::Quasi).iter().map(|&at| own.columns[at].cell(row).map(str::to_owned)).collect();
    let below = |&child: &usize| {
        let key = schema.tables[table].key.expect("a table that others hang off has a key");
        let foreign_key = schema.tables[child].parent.expect("it is a child").foreign_key;
        let key = own.columns[key].cell(row);
        let hangs_here = |&row: &usize| key.is_some() && tables[child].columns[foreign_key].cell(row) == key;
        (0..tables[child].n_rows).filter(hangs_here).map(|row| tree(tables, schema, child, row)).collect()
    };
    Tree { row, cells, children: schema.children(table).iter().map(below).collect() }
}

/// Whether each seeker can be given a place of its own that fits, by Kuhn's augmenting paths.
fn each_has_its_own<A, B>(seekers: &[A], places: &[B], fits: &dyn Fn(&A, &B) -> bool) -> bool {
    fn seat<A, B>(
        seeker: usize,
        (seekers, places): (&[A], &[B]),
        fits: &dyn Fn(&A, &B) -> bool,
        tried: &mut [bool],
        holders: &mut [Option<usize>],
    ) -> bool {
        (0..places.len()).any(|place| {
            if !fits(&seekers[seeker], &places[place]) || std::mem::replace(&mut tried[place], true) {
                return false;
            }
            let is_free = holders[place].is_none_or(|other| seat(other, (seekers, places), fits, tried, holders));
            if is_free {
                holders[place] = Some(seeker);
            }
            is_free
        })
    }
    let mut holders = vec![None; places.len()];
    let all = (seekers, places);
    (0..seekers.len()).all(|seeker| seat(seeker, all, fits, &mut vec![false; places.len()], &mut holders))
}

/// Tries random views and returns the first with an answer of 1 to k-1 persons: the person table, the view and the
/// rows.
///
/// A view is made from the released rows of a random person, or from the private ones.
pub fn attack(
    released: &Joined,
    private: &Joined,
    k: usize,
    n_views: usize,
    seed: u64,
) -> Option<(usize, View, Vec<usize>)> {
    let mut random = Random::new(seed);
    for _ in 0..n_views {
        let knows_shown = random.once_in(2);
        let (root, persons) = random.pick(if knows_shown { &released.persons } else { &private.persons });
        let person = random.pick(persons);
        let view = if knows_shown {
            about(person, &mut random, &Known::Shown)
        } else {
            about(person, &mut random, &Known::Was)
        };
        let answer = released.answer(*root, &view);
        if (1..k).contains(&answer.len()) {
            return Some((*root, view, answer));
        }
    }
    None
}

/// A random part of everything there is to know about a row and the rows below it.
fn about(tree: &Tree, random: &mut Random, known: &dyn Fn(Option<String>) -> Known) -> View {
    let cells =
        tree.cells.iter().map(|cell| if random.once_in(4) { Known::Nothing } else { known(cell.clone()) }).collect();
    let of_table = |rows: &Vec<Tree>| {
        let mut of_rows = KnownRows::default();
        if random.once_in(4) {
            return of_rows;
        }
        if !rows.is_empty() && !random.once_in(3) {
            let n = 1 + random.below(rows.len());
            of_rows.some = Some(random.choose(rows, n).iter().map(|row| about(row, random, known)).collect());
        }
        if random.once_in(2) {
            of_rows.all = Some(rows.iter().map(|row| about(row, random, known)).collect());
        }
        if !rows.is_empty() && random.once_in(3) {
            let view = about(random.pick(rows), random, known);
            // The number is random, so it may be wrong for these rows.
            of_rows.exactly = Some((Box::new(view), random.below(rows.len() + 1)));
        }
        of_rows
    };
    View { cells, rows: tree.children.iter().map(of_table).collect() }
}

/// What views may ask about the rows below another row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counting {
    /// Whether a row like this exists.
    Exists,
    /// How many rows like this exist, which may be none.
    Counts,
}

/// The smallest answer that is not empty, over all views of released cells, including conjunctions of any length. Views
/// that the same rows satisfy count as one, so trying all sets of rows tries all views.
///
/// # Panics
/// If a table has more than 64 rows.
pub fn smallest_answer(tables: &[Table], schema: &Schema, counting: Counting) -> u32 {
    let answers = |&root: &usize| {
        let smallest = sets(tables, schema, root, counting).into_iter().map(u64::count_ones).filter(|&n| n > 0).min();
        smallest.expect("a view that knows nothing is about everyone")
    };
    schema.roots().iter().map(answers).min().expect("there is a person table")
}

/// All sets of rows of a table that some view selects, as bits.
fn sets(tables: &[Table], schema: &Schema, table: usize, counting: Counting) -> BTreeSet<u64> {
    let own = &tables[table];
    assert!(own.n_rows <= 64, "rows are bits");
    let select =
        |is_so: &dyn Fn(usize) -> bool| (0..own.n_rows).filter(|&row| is_so(row)).fold(0, |set, row| set | 1u64 << row);
    let mut simple: BTreeSet<u64> = BTreeSet::new();
    for at in own.with_role(Role::Quasi) {
        let column = &own.columns[at];
        for label in column.texts.iter().map(Some).chain([None]) {
            simple.insert(select(&|row| column.cell(row) == label));
        }
    }
    for child in schema.children(table) {
        let foreign_key = schema.tables[child].parent.expect("it is a child").foreign_key;
        let key = &own.columns[schema.tables[table].key.expect("a table that others hang off has a key")];
        let below: Vec<u64> = (0..own.n_rows)
            .map(|row| {
                let of_child = &tables[child];
                let hangs_here = |other: &usize| of_child.columns[foreign_key].cell(*other) == key.cell(row);
                (0..of_child.n_rows).filter(hangs_here).fold(0, |set, other| set | 1u64 << other)
            })
            .collect();
        for set in sets(tables, schema, child, counting) {
            let n_met = |row: usize| (below[row] & set).count_ones();
            match counting {
                Counting::Exists => drop(simple.insert(select(&|row| n_met(row) > 0))),
                Counting::Counts => {
                    for n in (0..own.n_rows).map(n_met).collect::<BTreeSet<u32>>() {
                        simple.insert(select(&|row| n_met(row) == n));
                    }
                }
            }
        }
    }
    let mut all = BTreeSet::from([select(&|_| true)]);
    for set in simple {
        let both: Vec<u64> = all.iter().map(|other| other & set).collect();
        all.extend(both);
    }
    all
}

/// A release as tables of texts, as its files would show them, with the types and hierarchies of the private columns;
/// and the schema of those tables.
pub fn as_read(release: &Release, originals: &[Table], schema: &Schema) -> (Vec<Table>, Schema) {
    let table = |(released, original): (&kohort_model::ReleasedTable, &Table)| {
        let column = |column: &kohort_model::ReleasedColumn| {
            let source = &original.columns[column.source];
            let cell = |row: usize| match &column.cells {
                Cells::Copied => source.cell(released.rows[row] as usize).map(str::to_owned),
                Cells::Surrogate { ids } => (ids[row] != NULL).then(|| ids[row].to_string()),
                Cells::Recoded { labels, ids } => (ids[row] != NULL).then(|| labels.get(ids[row]).to_owned()),
            };
            let cells: Vec<Option<String>> = (0..released.rows.len()).map(cell).collect();
            let read = Column::from_cells(&column.name, source.role, cells.iter().map(Option::as_deref));
            Column { texts: read.texts, ids: read.ids, ..source.clone() }
        };
        let columns = released.columns.iter().map(column).collect();
        Table { name: released.name.clone(), columns, n_rows: released.rows.len(), person: None }
    };
    let tables: Vec<Table> = release.tables.iter().zip(originals).map(table).collect();
    let position =
        |table: usize, source: usize| release.tables[table].columns.iter().position(|column| column.source == source);
    let schema_table = |(at, noted): (usize, &SchemaTable)| SchemaTable {
        name: noted.name.clone(),
        key: noted.key.and_then(|key| position(at, key)),
        parent: noted.parent.map(|parent| SchemaParent {
            table: parent.table,
            foreign_key: position(at, parent.foreign_key).expect("foreign keys are released"),
        }),
        references: noted
            .references
            .iter()
            .map(|reference| SchemaReference {
                table: reference.table,
                column: position(at, reference.column).expect("references are released"),
            })
            .collect(),
        max_rows_left_out: noted.max_rows_left_out,
    };
    let schema = Schema { tables: schema.tables.iter().enumerate().map(schema_table).collect() };
    (tables, schema)
}

/// A tree as text, with its rows in a fixed order.
pub(super) fn written(tree: &Tree) -> String {
    let lists = tree.children.iter().map(|rows| {
        let mut rows: Vec<String> = rows.iter().map(written).collect();
        rows.sort_unstable();
        format!("({})", rows.join(" "))
    });
    format!("{:?}{}", tree.cells, lists.collect::<String>())
}

/// The classes of a release of many tables, found by writing trees out as texts: sets of released rows of a person
/// table.
pub fn classes_of_trees(joined: &Joined, root: usize) -> Vec<Vec<usize>> {
    let mut classes: HashMap<String, Vec<usize>> = HashMap::new();
    for person in joined.persons(root) {
        classes.entry(written(person)).or_default().push(person.row);
    }
    let mut classes: Vec<Vec<usize>> = classes.into_values().collect();
    classes.sort_unstable();
    classes
}
