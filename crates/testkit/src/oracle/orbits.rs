//! Which rows of many tables look the same, found by writing trees out as texts.
//!
//! Persons whose trees are the same text are a class. Rows of a class are an orbit if their subtrees, and the subtrees
//! of everything above them, are the same text. Nobody can tell which row of one person corresponds to which row of
//! another.

use std::collections::BTreeMap;

use kohort_model::Schema;

use super::views::{Joined, Tree, written};

/// Persons of a person table whose trees look the same.
#[derive(Clone, Debug, Default)]
pub struct ClassOfTrees {
    /// Released rows of the person table.
    pub persons: Vec<usize>,
    /// Released rows of each table, orbit by orbit.
    pub orbits: Vec<(usize, Vec<usize>)>,
}

/// The classes of a person table.
pub fn classes_with_orbits(joined: &Joined, schema: &Schema, root: usize) -> Vec<ClassOfTrees> {
    let mut classes: BTreeMap<String, (Vec<usize>, Orbits)> = BTreeMap::new();
    for person in joined.persons(root) {
        let text = written(person);
        let (persons, orbits) = classes.entry(text.clone()).or_default();
        persons.push(person.row);
        collect(schema, root, person, &text, orbits);
    }
    let class = |(persons, orbits): (Vec<usize>, Orbits)| ClassOfTrees {
        persons,
        orbits: orbits.into_iter().map(|((table, _), rows)| (table, rows)).collect(),
    };
    classes.into_values().map(class).collect()
}

/// A table and the subtrees from the person down to a row, and the rows that have them.
type Orbits = BTreeMap<(usize, String), Vec<usize>>;

fn collect(schema: &Schema, table: usize, tree: &Tree, above: &str, orbits: &mut Orbits) {
    orbits.entry((table, above.to_owned())).or_default().push(tree.row);
    for (child, rows) in schema.children(table).into_iter().zip(&tree.children) {
        for row in rows {
            collect(schema, child, row, &format!("{above} > {child}: {}", written(row)), orbits);
        }
    }
}
