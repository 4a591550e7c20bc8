//! [`Shape`]: how tables are linked, by position; [`ReleasedLink`]: one link, by name.

use kohort_model::{Schema, Table};

use crate::Violation;
use crate::single::recoding::KeyColumns;
use crate::structure::other_name;

/// How one released table points to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleasedLink {
    /// What the link means.
    pub kind: LinkKind,
    /// The table that points to another.
    pub child: String,
    /// The column of the child that holds the key of the other table.
    pub foreign_key: String,
    /// The other table.
    pub parent: String,
    /// The key column of the other table.
    pub key: String,
}

/// What a link means for the rows that have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkKind {
    /// The rows belong to the row that they name.
    Parent,
    /// The rows name a row that they do not belong to.
    Reference,
}

impl ReleasedLink {
    /// The links of a schema. Columns have the same names in the private and the released tables.
    ///
    /// # Panics
    /// If the schema does not fit the tables.
    pub fn of(schema: &Schema, tables: &[Table]) -> Vec<ReleasedLink> {
        let link = |kind, child: usize, foreign_key: usize, parent: usize| {
            let key = schema.tables[parent].key.expect("a table that others point to has a key");
            ReleasedLink {
                kind,
                child: schema.tables[child].name.clone(),
                foreign_key: tables[child].columns[foreign_key].name.clone(),
                parent: schema.tables[parent].name.clone(),
                key: tables[parent].columns[key].name.clone(),
            }
        };
        let mut links = Vec::new();
        for (child, table) in schema.tables.iter().enumerate() {
            links.extend(table.parent.map(|to| link(LinkKind::Parent, child, to.foreign_key, to.table)));
            let references = table.references.iter();
            links.extend(references.map(|to| link(LinkKind::Reference, child, to.column, to.table)));
        }
        links
    }
}

/// How tables are linked.
pub(crate) struct Shape {
    links: Vec<Option<Link>>,
    /// The references of each table, in the order of its columns.
    references: Vec<Vec<Reference>>,
    /// All tables, parents before children.
    pub(crate) top_down: Vec<usize>,
}

/// The links of one table.
pub(crate) struct TableShape<'a> {
    /// Whether each row is a person.
    pub(crate) is_of_persons: bool,
    pub(crate) references: &'a [Reference],
}

/// The link from a table to its parent, by positions.
#[derive(Clone, Copy)]
pub(crate) struct Link {
    /// The parent table.
    pub(crate) parent: usize,
    /// The key column of the parent.
    pub(crate) key: usize,
    /// The column of the child that holds the key of the parent.
    pub(crate) foreign_key: usize,
}

/// A second foreign key, by positions.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reference {
    /// The column that holds the reference.
    pub(crate) column: usize,
    /// The table of the referenced rows.
    pub(crate) table: usize,
    /// The key column of that table.
    pub(crate) key: usize,
}

impl Shape {
    /// The shape of tables with at most one link to a parent each, and any number of references.
    ///
    /// # Errors
    /// Links and references to missing tables or columns, and links in a circle.
    pub(crate) fn new(
        tables: &[Table],
        links: Vec<Option<Link>>,
        references: Vec<Vec<Reference>>,
    ) -> Result<Shape, Vec<Violation>> {
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
        for (table, references) in references.iter().enumerate() {
            let has = |table: usize, column| tables.get(table).is_some_and(|table| column < table.columns.len());
            let leads = |reference: &Reference| has(table, reference.column) && has(reference.table, reference.key);
            reached[table] &= references.iter().all(leads);
        }
        let broken = (0..links.len()).filter(|&table| !reached[table]);
        let broken: Vec<_> = broken.map(|table| Violation::BrokenLink.in_table(&tables[table].name)).collect();
        if broken.is_empty() { Ok(Shape { links, references, top_down }) } else { Err(broken) }
    }

    /// The shape of the private tables, given by their schema.
    ///
    /// # Errors
    /// If the schema does not fit the tables.
    pub(crate) fn of_schema(schema: &Schema, tables: &[Table]) -> Result<Shape, Vec<Violation>> {
        same_count("the schema", schema.tables.len(), tables.len())?;
        let link = |table: &kohort_model::SchemaTable| {
            let parent = table.parent?;
            let key = schema.tables.get(parent.table).and_then(|parent| parent.key).unwrap_or(usize::MAX);
            Some(Link { parent: parent.table, key, foreign_key: parent.foreign_key })
        };
        let references = |table: &kohort_model::SchemaTable| {
            let key = |table: usize| schema.tables.get(table).and_then(|table| table.key).unwrap_or(usize::MAX);
            let reference = |to: &kohort_model::SchemaReference| Reference {
                column: to.column,
                table: to.table,
                key: key(to.table),
            };
            table.references.iter().map(reference).collect()
        };
        let links = schema.tables.iter().map(link).collect();
        let shape = Shape::new(tables, links, schema.tables.iter().map(references).collect())?;
        let mut violations = Vec::new();
        for (noted, table) in schema.tables.iter().zip(tables) {
            violations.extend(other_name(&table.name, &noted.name));
            if noted.key.is_some_and(|key| key >= table.columns.len()) {
                violations.push(Violation::BrokenLink.in_table(&table.name));
            }
        }
        if violations.is_empty() { Ok(shape) } else { Err(violations) }
    }

    /// The shape of released tables, given by the names of tables and columns.
    ///
    /// # Errors
    /// If a link names a missing table or column, or a table has two parents.
    pub(crate) fn of_links(links: &[ReleasedLink], tables: &[Table]) -> Result<Shape, Vec<Violation>> {
        let position = |name: &str| tables.iter().position(|table| table.name == name).unwrap_or(usize::MAX);
        let column = |table: usize, name: &str| tables.get(table).and_then(|table| table.position(name));
        // All links to a table must name the same key.
        let mut key_of: Vec<Option<usize>> = vec![None; tables.len()];
        let mut found: Vec<Option<Link>> = vec![None; tables.len()];
        let mut references: Vec<Vec<Reference>> = vec![Vec::new(); tables.len()];
        // Columns that are part of a link; each points to one table only.
        let mut taken: Vec<(usize, usize)> = Vec::new();
        let mut violations = Vec::new();
        for link in links {
            let (child, parent) = (position(&link.child), position(&link.parent));
            let columns = column(child, &link.foreign_key).zip(column(parent, &link.key));
            let columns = columns.filter(|&(foreign_key, key)| {
                let agrees = *key_of[parent].get_or_insert(key) == key;
                let is_free = !taken.contains(&(child, foreign_key));
                taken.push((child, foreign_key));
                agrees && is_free && (link.kind == LinkKind::Reference || found[child].is_none())
            });
            match (columns, link.kind) {
                (None, _) => violations.push(Violation::BrokenLink.in_table(&link.child)),
                (Some((foreign_key, key)), LinkKind::Parent) => found[child] = Some(Link { parent, key, foreign_key }),
                (Some((column, key)), LinkKind::Reference) => {
                    references[child].push(Reference { column, table: parent, key });
                }
            }
        }
        references.iter_mut().for_each(|references| references.sort_unstable_by_key(|reference| reference.column));
        if violations.is_empty() { Shape::new(tables, found, references) } else { Err(violations) }
    }

    /// The links of one table.
    pub(crate) fn of(&self, table: usize) -> TableShape<'_> {
        TableShape { is_of_persons: self.is_of_persons(table), references: self.references(table) }
    }

    /// The references of a table, in the order of its columns.
    pub(crate) fn references(&self, table: usize) -> &[Reference] {
        &self.references[table]
    }

    /// Whether any table has a reference.
    pub(crate) fn has_references(&self) -> bool {
        self.references.iter().any(|references| !references.is_empty())
    }

    /// The number of tables.
    pub(crate) fn n_tables(&self) -> usize {
        self.links.len()
    }

    /// The link to the parent of a table; `None` for a person table.
    pub(crate) fn link(&self, table: usize) -> Option<Link> {
        self.links[table]
    }

    /// Whether each row of a table is a person.
    pub(crate) fn is_of_persons(&self, table: usize) -> bool {
        self.links[table].is_none()
    }

    /// The child tables of a table, ascending.
    pub(crate) fn children(&self, table: usize) -> impl DoubleEndedIterator<Item = usize> + '_ {
        (0..self.links.len()).filter(move |&child| self.links[child].is_some_and(|link| link.parent == table))
    }

    /// The key column of a table, if another table points to it.
    pub(crate) fn key(&self, table: usize) -> Option<usize> {
        let hanging = self.children(table).next().and_then(|child| self.links[child]).map(|link| link.key);
        let mut references = self.references.iter().flatten();
        hanging.or_else(|| references.find(|reference| reference.table == table).map(|reference| reference.key))
    }

    /// The person table to whose persons the rows of a table belong.
    pub(crate) fn root(&self, mut table: usize) -> usize {
        while let Some(link) = self.links[table] {
            table = link.parent;
        }
        table
    }

    /// The key columns of a private table. The key of a person that no table points to must not be released.
    pub(crate) fn keys(&self, schema: &Schema, originals: &[Table], table: usize) -> KeyColumns {
        let own = self.key(table);
        let names_person = schema.tables[table].key.or(originals[table].person);
        KeyColumns {
            own,
            foreign: self.links[table]
                .map(|link| link.foreign_key)
                .into_iter()
                .chain(self.references[table].iter().map(|reference| reference.column))
                .collect(),
            never: names_person.filter(|_| self.is_of_persons(table) && own.is_none()),
        }
    }
}

/// Checks that a list has one entry per table.
pub(crate) fn same_count(what: &'static str, n: usize, expected: usize) -> Result<(), Vec<Violation>> {
    let wrong = || vec![Violation::TableCount { what, n: n as u64, expected: expected as u64 }];
    if n == expected { Ok(()) } else { Err(wrong()) }
}
