//! [`Shape`]: which table hangs off which, checked; [`ReleasedLink`]: the same by name.

use kohort_model::{Schema, Table};

use crate::Violation;
use crate::recoding::KeyColumns;

/// How one released table hangs off another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleasedLink {
    /// The table that hangs off another.
    pub child: String,
    /// Its column that holds the parent's key.
    pub foreign_key: String,
    /// The other table.
    pub parent: String,
    /// The other table's key.
    pub key: String,
}

impl ReleasedLink {
    /// The links of a schema, by the names that its tables' columns have in a release too.
    ///
    /// # Panics
    /// Where the schema is not one of these tables.
    pub fn of(schema: &Schema, tables: &[Table]) -> Vec<ReleasedLink> {
        let link = |(child, table): (usize, &kohort_model::SchemaTable)| {
            let parent = table.parent?;
            let key = schema.tables[parent.table].key.expect("a table that others hang off has a key");
            Some(ReleasedLink {
                child: table.name.clone(),
                foreign_key: tables[child].columns[parent.foreign_key].name.clone(),
                parent: schema.tables[parent.table].name.clone(),
                key: tables[parent.table].columns[key].name.clone(),
            })
        };
        schema.tables.iter().enumerate().filter_map(link).collect()
    }
}

/// Which table hangs off which, and by what.
pub(crate) struct Shape {
    links: Vec<Option<Link>>,
    /// Parents before children.
    pub(crate) top_down: Vec<usize>,
}

/// How one table hangs off another, by positions.
#[derive(Clone, Copy)]
pub(crate) struct Link {
    /// The parent.
    pub(crate) parent: usize,
    /// The parent's key column.
    pub(crate) key: usize,
    /// The child's column that holds it.
    pub(crate) foreign_key: usize,
}

impl Shape {
    /// Of these tables, with one link or none each.
    ///
    /// # Errors
    /// Links that lead nowhere or in a circle.
    pub(crate) fn new(tables: &[Table], links: Vec<Option<Link>>) -> Result<Shape, Vec<Violation>> {
        let leads_somewhere = |child: usize, link: &Link| {
            let has =
                |table: usize, column| tables.get(table).is_some_and(|table: &Table| column < table.columns.len());
            has(link.parent, link.key) && has(child, link.foreign_key)
        };
        let mut reached: Vec<bool> = links.iter().map(Option::is_none).collect();
        let mut top_down: Vec<usize> = (0..links.len()).filter(|&table| reached[table]).collect();
        let mut next = 0;
        while next < top_down.len() {
            for (child, link) in links.iter().enumerate() {
                let hangs_here =
                    link.is_some_and(|link| link.parent == top_down[next] && leads_somewhere(child, &link));
                if hangs_here && !std::mem::replace(&mut reached[child], true) {
                    top_down.push(child);
                }
            }
            next += 1;
        }
        let broken = (0..links.len()).filter(|&table| !reached[table]);
        let broken: Vec<_> = broken.map(|table| Violation::BrokenLink.in_table(&tables[table].name)).collect();
        if broken.is_empty() { Ok(Shape { links, top_down }) } else { Err(broken) }
    }

    /// Of the private tables, as their schema says.
    ///
    /// # Errors
    /// Where the schema is not one of these tables.
    pub(crate) fn of_schema(schema: &Schema, tables: &[Table]) -> Result<Shape, Vec<Violation>> {
        same_count("the schema", schema.tables.len(), tables.len())?;
        let link = |table: &kohort_model::SchemaTable| {
            let parent = table.parent?;
            let key = schema.tables.get(parent.table).and_then(|parent| parent.key).unwrap_or(usize::MAX);
            Some(Link { parent: parent.table, key, foreign_key: parent.foreign_key })
        };
        let shape = Shape::new(tables, schema.tables.iter().map(link).collect())?;
        let mut violations = Vec::new();
        for (noted, table) in schema.tables.iter().zip(tables) {
            if noted.name != table.name {
                let (table, released) = (noted.name.clone(), table.name.clone());
                violations.push(Violation::TableName { table, released });
            }
            if noted.key.is_some_and(|key| key >= table.columns.len()) {
                violations.push(Violation::BrokenLink.in_table(&table.name));
            }
        }
        if violations.is_empty() { Ok(shape) } else { Err(violations) }
    }

    /// Of released tables, by name.
    ///
    /// # Errors
    /// Where a link names what is not there, or a table hangs off two.
    pub(crate) fn of_links(links: &[ReleasedLink], tables: &[Table]) -> Result<Shape, Vec<Violation>> {
        let position = |name: &str| tables.iter().position(|table| table.name == name).unwrap_or(usize::MAX);
        let column = |table: usize, name: &str| tables.get(table).and_then(|table| table.position(name));
        // A table has one key, whoever points to it.
        let agrees = |found: &[Option<Link>], parent, key| {
            found.iter().flatten().all(|link| link.parent != parent || link.key == key)
        };
        let mut found: Vec<Option<Link>> = vec![None; tables.len()];
        let mut violations = Vec::new();
        for link in links {
            let (child, parent) = (position(&link.child), position(&link.parent));
            match (column(child, &link.foreign_key), column(parent, &link.key)) {
                (Some(foreign_key), Some(key)) if found[child].is_none() && agrees(&found, parent, key) => {
                    found[child] = Some(Link { parent, key, foreign_key });
                }
                _ => violations.push(Violation::BrokenLink.in_table(&link.child)),
            }
        }
        if violations.is_empty() { Shape::new(tables, found) } else { Err(violations) }
    }

    /// How many tables there are.
    pub(crate) fn n_tables(&self) -> usize {
        self.links.len()
    }

    /// How a table hangs off another; `None` for a person table.
    pub(crate) fn link(&self, table: usize) -> Option<Link> {
        self.links[table]
    }

    /// Whether each row of a table is a person.
    pub(crate) fn is_of_persons(&self, table: usize) -> bool {
        self.links[table].is_none()
    }

    /// The tables that hang off a table, ascending.
    pub(crate) fn children(&self, table: usize) -> impl DoubleEndedIterator<Item = usize> + '_ {
        (0..self.links.len()).filter(move |&child| self.links[child].is_some_and(|link| link.parent == table))
    }

    /// A table's key, where another table points to it.
    pub(crate) fn key(&self, table: usize) -> Option<usize> {
        self.children(table).next().and_then(|child| self.links[child]).map(|link| link.key)
    }

    /// The person table that a table's rows lead to.
    pub(crate) fn root(&self, mut table: usize) -> usize {
        while let Some(link) = self.links[table] {
            table = link.parent;
        }
        table
    }

    /// What a private table's key columns are to the others. A person's key that no table points to is not released.
    pub(crate) fn keys(&self, schema: &Schema, originals: &[Table], table: usize) -> KeyColumns {
        let own = self.key(table);
        let names_person = schema.tables[table].key.or(originals[table].person);
        KeyColumns {
            own,
            foreign: self.links[table].map(|link| link.foreign_key),
            never: names_person.filter(|_| self.is_of_persons(table) && own.is_none()),
        }
    }
}

/// Lists that should have one entry per table.
pub(crate) fn same_count(what: &'static str, n: usize, expected: usize) -> Result<(), Vec<Violation>> {
    let wrong = || vec![Violation::TableCount { what, n: n as u64, expected: expected as u64 }];
    if n == expected { Ok(()) } else { Err(wrong()) }
}
