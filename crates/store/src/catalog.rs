//! [`Catalog`]: the tables by their users' names, and their names in the file.
//!
//! In the file, table 3 is called `t3`, its columns `c0`, `c1`, ..., the column of row numbers `row`, and index 5 `i5`.
//! All SQL of the store uses these names. Users' names are only bound as values.

use std::collections::BTreeMap;

use rusqlite::{Connection, params};

use crate::encoding::StoredType;
use crate::{ColumnDescription, IndexDescription, StoreError, TableDescription, TableKind, Uniqueness};

/// All tables of one state of the store, by name.
#[derive(Default)]
pub(crate) struct Catalog {
    pub(crate) tables: BTreeMap<String, Table>,
}

/// One table.
pub(crate) struct Table {
    pub(crate) id: i64,
    pub(crate) description: TableDescription,
    /// The stored types of the columns.
    pub(crate) types: Vec<StoredType>,
    /// The first column of each index.
    pub(crate) leading: Vec<usize>,
}

impl Catalog {
    /// Reads the catalog of the state that the connection sees.
    pub(crate) fn read(connection: &Connection) -> Result<Self, StoreError> {
        let mut catalog = Self::default();
        let mut statement = connection.prepare_cached("SELECT id, name, kind FROM tables")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let table = read_table(connection, row.get(0)?, row.get(1)?, &row.get::<_, String>(2)?)?;
            catalog.tables.insert(table.description.name.clone(), table);
        }
        Ok(catalog)
    }

    /// A table by its name.
    pub(crate) fn table(&self, name: &str) -> Result<&Table, StoreError> {
        self.tables.get(name).ok_or_else(|| StoreError::UnknownTable { table: name.to_owned() })
    }
}

fn malformed(what: &str) -> StoreError {
    StoreError::corrupt(format!("the catalog has an unknown {what}"))
}

fn read_table(connection: &Connection, id: i64, name: String, kind: &str) -> Result<Table, StoreError> {
    let kind = match kind {
        "base" => TableKind::Base,
        "hidden" => TableKind::Hidden,
        _ => return Err(malformed("kind of table")),
    };
    let mut columns = Vec::new();
    let mut types = Vec::new();
    let mut statement =
        connection.prepare_cached("SELECT name, type, nullable FROM columns WHERE table_id = ? ORDER BY position")?;
    let mut rows = statement.query([id])?;
    while let Some(row) = rows.next()? {
        let stored = StoredType::from_catalog_name(&row.get::<_, String>(1)?).ok_or_else(|| malformed("type"))?;
        columns.push(ColumnDescription { name: row.get(0)?, data_type: stored.data_type(), nullable: row.get(2)? });
        types.push(stored);
    }

    let mut primary_key = Vec::new();
    let mut indexes = Vec::new();
    let mut leading = Vec::new();
    let mut statement =
        connection.prepare_cached("SELECT role, positions FROM indexes WHERE table_id = ? ORDER BY id")?;
    let mut rows = statement.query([id])?;
    while let Some(row) = rows.next()? {
        let positions = row.get::<_, String>(1)?;
        let positions: Option<Vec<usize>> = positions.split(' ').map(|position| position.parse().ok()).collect();
        let positions = positions.ok_or_else(|| malformed("index"))?;
        let named: Option<Vec<String>> =
            positions.iter().map(|position| Some(columns.get(*position)?.name.clone())).collect();
        let named = named.ok_or_else(|| malformed("index"))?;
        leading.push(positions[0]);
        match row.get::<_, String>(0)?.as_str() {
            "primary" => primary_key = named,
            "unique" => indexes.push(IndexDescription { columns: named, uniqueness: Uniqueness::Unique }),
            "plain" => indexes.push(IndexDescription { columns: named, uniqueness: Uniqueness::Plain }),
            _ => return Err(malformed("role of an index")),
        }
    }
    Ok(Table { id, description: TableDescription { name, columns, primary_key, indexes, kind }, types, leading })
}

/// Creates a table with its indexes.
pub(crate) fn create_table(connection: &Connection, description: &TableDescription) -> Result<(), StoreError> {
    description.validate()?;
    let kind = match description.kind {
        TableKind::Base => "base",
        TableKind::Hidden => "hidden",
    };
    connection
        .execute("INSERT INTO tables (name, kind, next_row) VALUES (?, ?, 1)", params![description.name, kind])?;
    let id = connection.last_insert_rowid();
    let mut definitions = vec!["row INTEGER PRIMARY KEY".to_owned()];
    for (position, column) in (0_i64..).zip(&description.columns) {
        let stored = StoredType::of(column)?;
        connection.execute(
            "INSERT INTO columns VALUES (?, ?, ?, ?, ?)",
            params![id, position, column.name, stored.catalog_name(), column.nullable],
        )?;
        let nullable = if column.nullable { "" } else { " NOT NULL" };
        definitions.push(format!("c{position} {}{nullable}", stored.sql_type()));
    }
    connection.execute_batch(&format!("CREATE TABLE t{id} ({}) STRICT", definitions.join(", ")))?;
    if !description.primary_key.is_empty() {
        create_index(connection, id, &description.positions(&description.primary_key)?, "primary")?;
    }
    for index in &description.indexes {
        create_index(connection, id, &description.positions(&index.columns)?, role(index.uniqueness))?;
    }
    Ok(())
}

/// The catalog's word for an index that a user created.
pub(crate) fn role(uniqueness: Uniqueness) -> &'static str {
    match uniqueness {
        Uniqueness::Plain => "plain",
        Uniqueness::Unique => "unique",
    }
}

/// Creates an index over columns of a table.
pub(crate) fn create_index(
    connection: &Connection,
    table_id: i64,
    positions: &[usize],
    role: &str,
) -> Result<(), rusqlite::Error> {
    let texts: Vec<String> = positions.iter().map(usize::to_string).collect();
    connection.execute(
        "INSERT INTO indexes (table_id, role, positions) VALUES (?, ?, ?)",
        params![table_id, role, texts.join(" ")],
    )?;
    let id = connection.last_insert_rowid();
    let columns: Vec<String> = positions.iter().map(|position| format!("c{position}")).collect();
    let unique = if role == "plain" { "" } else { "UNIQUE " };
    connection.execute_batch(&format!("CREATE {unique}INDEX i{id} ON t{table_id} ({})", columns.join(", ")))
}

/// Removes a table with its indexes.
pub(crate) fn drop_table(connection: &Connection, table_id: i64) -> Result<(), StoreError> {
    connection.execute_batch(&format!("DROP TABLE t{table_id}"))?;
    connection.execute("DELETE FROM indexes WHERE table_id = ?", [table_id])?;
    connection.execute("DELETE FROM columns WHERE table_id = ?", [table_id])?;
    connection.execute("DELETE FROM tables WHERE id = ?", [table_id])?;
    Ok(())
}
