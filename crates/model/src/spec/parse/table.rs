//! Reads one table of a spec: its file, how it is read, its keys and its columns.

use std::path::PathBuf;

use chrono::format::{Item, StrftimeItems};
use toml::de::DeValue;

use super::super::keys;
use super::super::{Childless, CsvSpec, Orphans, ParentSpec, SpecErrorKind, TableSpec};
use super::column::{ColumnDraft, read_column};
use super::section::{Bounds, Entry, Place, Reader, Section, wrong_kind};
use crate::Role;

/// A table as far as it could be read, with the places that later checks refer to.
pub(super) struct TableDraft {
    pub(super) place: Place,
    pub(super) name: String,
    pub(super) file: PathBuf,
    pub(super) csv: CsvSpec,
    pub(super) person: Option<String>,
    /// Whether `person` is set, readable or not.
    pub(super) names_persons: bool,
    pub(super) person_place: Place,
    pub(super) key: Option<String>,
    pub(super) parent: Option<ParentSpec>,
    /// Whether `parent` is set, readable or not.
    pub(super) is_child: bool,
    pub(super) parent_place: Place,
    pub(super) orphans: Orphans,
    pub(super) orphans_place: Option<Place>,
    pub(super) childless: Childless,
    pub(super) childless_place: Option<Place>,
    pub(super) max_rows_left_out: Option<f64>,
    pub(super) max_rows_left_out_place: Option<Place>,
    pub(super) columns: Vec<ColumnDraft>,
}

impl TableDraft {
    pub(super) fn column(&self, name: &str) -> Option<&ColumnDraft> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// Whether the column with this name is released as pseudonyms.
    fn is_pseudonym(&self, name: &str) -> bool {
        self.column(name).is_some_and(|column| column.transform.pseudonym_key.is_some())
    }

    pub(super) fn finish(self) -> TableSpec {
        TableSpec {
            name: self.name,
            file: self.file,
            csv: self.csv,
            person: self.person,
            key: self.key,
            parent: self.parent,
            orphans: self.orphans,
            childless: self.childless,
            max_rows_left_out: self.max_rows_left_out,
            columns: self.columns.into_iter().filter_map(ColumnDraft::finish).collect(),
        }
    }
}

pub(super) fn read_table<'s>(reader: &mut Reader<'_>, tables: &Section<'s>, entry: Entry<'s>) -> Option<TableDraft> {
    let place = reader.place(tables, entry);
    if !can_name_a_file(entry.name) {
        reader.note(&place, SpecErrorKind::BadTableName);
    }
    let section = reader.table(entry, place.clone())?;
    reader.check_keys(&section, keys::TABLE);
    let file = reader.required_text(&section, "file", "file = \"patient.csv\"").unwrap_or_default();
    let parent = reader.section(&section, "parent", keys::PARENT).and_then(|parent| {
        let table = reader.required_text(&parent, "table", "table = \"patient\"");
        let foreign_key = reader.required_text(&parent, "foreign_key", "foreign_key = \"patient_id\"");
        Some(ParentSpec { table: table?.to_owned(), foreign_key: foreign_key?.to_owned() })
    });
    if !section.has("columns") {
        let example = "columns = { age = \"quasi\", disease = \"sensitive\" }";
        reader.note(&place, SpecErrorKind::Missing { key: "columns", example });
    }
    let columns = match reader.names(&section, "columns") {
        Some(columns) => columns.entries().iter().map(|&entry| read_column(reader, &columns, entry)).collect(),
        None => Vec::new(),
    };
    let key = reader.text(&section, "key").map(str::to_owned);
    let place_if_given = |reader: &Reader<'_>, key| section.has(key).then(|| reader.place_of(&section, key));
    let mut table = TableDraft {
        name: entry.name.to_owned(),
        file: PathBuf::from(file),
        csv: read_csv(reader, &section),
        person: read_person(reader, &section, key.as_deref()),
        names_persons: section.has("person"),
        person_place: reader.place_of(&section, "person"),
        key,
        parent,
        is_child: section.has("parent"),
        parent_place: reader.place_of(&section, "parent"),
        orphans: reader.word(&section, "orphans", keys::ORPHANS).unwrap_or_default(),
        orphans_place: place_if_given(reader, "orphans"),
        childless: reader.word(&section, "childless", keys::CHILDLESS).unwrap_or_default(),
        childless_place: place_if_given(reader, "childless"),
        max_rows_left_out: reader.number(&section, "max_rows_left_out", Bounds::ZeroToOne),
        max_rows_left_out_place: place_if_given(reader, "max_rows_left_out"),
        columns,
        place,
    };
    check_keys_of(reader, &section, &mut table);
    check_person_k(reader, &table);
    Some(table)
}

/// The column that names the person. With `person = true`, each row is a person, and the table's key names it.
fn read_person(reader: &mut Reader<'_>, section: &Section<'_>, key: Option<&str>) -> Option<String> {
    let value = section.entry("person")?.value.get_ref();
    let place = reader.place_of(section, "person");
    match value {
        DeValue::String(column) => Some(column.to_string()),
        DeValue::Boolean(true) => {
            if key.is_none() && !section.has("key") {
                reader.note(&place, SpecErrorKind::PersonsWithoutKey);
            }
            key.map(str::to_owned)
        }
        other => {
            reader.note(&place, wrong_kind("a column's name in quotes, or true", other));
            None
        }
    }
}

/// Whether `<name>.csv` is a valid file name that does not leave the release folder.
fn can_name_a_file(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with('.')
        && !name.chars().any(|c| c.is_control() || matches!(c, '/' | '\\' | ':' | '*' | '?' | '"' | '<' | '>' | '|'))
}

fn read_csv(reader: &mut Reader<'_>, section: &Section<'_>) -> CsvSpec {
    let separator = reader.text(section, "separator").and_then(|text| {
        let mut characters = text.chars();
        match (characters.next(), characters.next()) {
            (Some(c), None) if c.is_ascii() && !c.is_ascii_alphanumeric() && !"\"\r\n.-".contains(c) => Some(c),
            _ => {
                let fault = SpecErrorKind::NotAllowed {
                    expected: "one character, such as \";\" or \"\\t\"",
                    found: format!("{text:?}"),
                };
                reader.note(&reader.place_of(section, "separator"), fault);
                None
            }
        }
    });
    let null = match section.entry("null").map(|entry| entry.value.get_ref()) {
        Some(DeValue::String(text)) => Some(vec![text.to_string()]),
        _ => reader.texts(section, "null"),
    };
    let date_format = reader.text(section, "date_format").and_then(|format| {
        let is_known = !format.is_empty() && StrftimeItems::new(format).all(|item| !matches!(item, Item::Error));
        if !is_known {
            let fault = SpecErrorKind::BadDateFormat { format: format.to_owned() };
            reader.note(&reader.place_of(section, "date_format"), fault);
        }
        is_known.then(|| format.to_owned())
    });
    CsvSpec {
        separator,
        encoding: reader.text(section, "encoding").map(str::to_owned),
        decimal: reader.word(section, "decimal", keys::DECIMALS),
        null,
        header: reader.flag(section, "header"),
        date_format,
    }
}

/// Columns that `person`, `key` and `foreign_key` name are keys, whether they are listed or not. Any other key must
/// reference a table.
fn check_keys_of(reader: &mut Reader<'_>, section: &Section<'_>, table: &mut TableDraft) {
    let foreign_key = table.parent.as_ref().map(|parent| parent.foreign_key.clone());
    let uses = [
        ("person", "person", table.person.clone()),
        ("key", "key", table.key.clone()),
        ("parent", "foreign key", foreign_key),
    ];
    for (key, used_as, column) in &uses {
        let (key, used_as, Some(name)) = (*key, *used_as, column.as_ref()) else { continue };
        match table.column(name).map(|column| (column.role, column.place.clone())) {
            None => {
                let place = reader.place_of(section, key);
                table.columns.push(ColumnDraft::implied(name, Role::Key, place));
            }
            Some((None | Some(Role::Key | Role::Identifier), _)) => {}
            // Pseudonyms stand for persons.
            Some((Some(Role::Plain), _)) if used_as == "person" && table.is_pseudonym(name) => {}
            Some((Some(role), place)) => reader.note(&place, SpecErrorKind::KeyWithRole { used_as, role }),
        }
    }
    let is_used = |name: &str| uses.iter().any(|(_, _, used)| used.as_deref() == Some(name));
    for column in &table.columns {
        match &column.references {
            Some((_, place)) if is_used(&column.name) => reader.note(place, SpecErrorKind::ReferencesTwice),
            None if column.role == Some(Role::Key) && !is_used(&column.name) => {
                reader.note(&column.place, SpecErrorKind::KeyLinksNothing);
            }
            Some(_) | None => {}
        }
    }
}

fn check_person_k(reader: &mut Reader<'_>, table: &TableDraft) {
    let mut own_k = table.columns.iter().filter(|column| column.role == Some(Role::PersonK));
    if let Some(first) = own_k.next() {
        if table.is_child {
            reader.note(&first.place, SpecErrorKind::PersonKOfChild);
        }
        for second in own_k {
            reader.note(&second.place, SpecErrorKind::SecondPersonK { first: first.name.clone() });
        }
    }
}
