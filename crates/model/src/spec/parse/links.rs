//! Reads the parts of a spec that refer to other parts: parents, references, audiences and registers.

use std::collections::BTreeMap;
use std::path::PathBuf;

use toml::de::DeValue;

use super::super::keys::{self, nearest};
use super::super::{Algorithm, AudienceSpec, Keys, RegisterSpec, RegisterUse, SpecErrorKind};
use super::column::ColumnDraft;
use super::section::{Entry, Place, Reader, Section, wrong_kind};
use super::table::TableDraft;
use crate::Role;

/// Checks that every table has a parent or is a person table, and that following the parents leads to a person table.
/// Trees of different person tables have no table in common, because a table has one parent and a child table names no
/// persons.
pub(super) fn check_parents(reader: &mut Reader<'_>, tables: &[TableDraft]) {
    let first_root = tables.iter().position(|table| !table.is_child);
    for (position, table) in tables.iter().enumerate() {
        let has_children = tables.iter().filter_map(|other| other.parent.as_ref()).any(|link| link.table == table.name);
        let not_of_persons = if table.is_child { Some("the table is a child table") } else { None };
        let reason = not_of_persons.or((!has_children).then_some("the table has no child table"));
        if let (Some(place), Some(reason)) = (&table.childless_place, reason) {
            reader.note(place, SpecErrorKind::ChildlessElsewhere { reason });
        }
        if !table.is_child {
            if tables.len() > 1 && !has_children && !shows_something(table, tables) {
                reader.note(&table.place, SpecErrorKind::NothingReleased);
            }
            if let Some(place) = &table.orphans_place {
                reader.note(place, SpecErrorKind::OrphansWithoutParent);
            }
            if let Some(place) = &table.max_rows_left_out_place {
                reader.note(place, SpecErrorKind::RowsLeftOutOfPersons);
            }
            if let Some(first) = first_root.filter(|&first| first != position && !table.names_persons) {
                reader.note(&table.place, SpecErrorKind::SecondPersonTable { first: tables[first].name.clone() });
            }
            continue;
        }
        if table.names_persons {
            reader.note(&table.person_place, SpecErrorKind::PersonInChild);
        }
        let Some(parent) = &table.parent else { continue };
        match tables.iter().find(|other| other.name == parent.table) {
            None => {
                let known = tables.iter().map(|table| table.name.as_str());
                let nearest = nearest(&parent.table, known).map(str::to_owned);
                let fault = SpecErrorKind::UnknownTable { name: parent.table.clone(), nearest };
                reader.note(&table.parent_place, fault);
            }
            Some(_) if leads_back(tables, table) => reader.note(&table.parent_place, SpecErrorKind::ParentCycle),
            Some(found) if found.key.is_none() && found.person.is_none() => {
                let fault = SpecErrorKind::ParentWithoutKey { parent: found.name.clone() };
                reader.note(&table.parent_place, fault);
            }
            Some(_) => {}
        }
    }
}

/// Whether a table without child tables has a column that is released: one that is shown, or a key that references use.
fn shows_something(table: &TableDraft, tables: &[TableDraft]) -> bool {
    let is_shown = |column: &ColumnDraft| match column.role {
        // A missing role is a fault of its own, noted elsewhere.
        None | Some(Role::Quasi | Role::Sensitive | Role::Plain) => true,
        Some(Role::Key) => column.references.is_some(),
        Some(Role::Identifier | Role::PersonK | Role::Drop) => false,
    };
    let references = tables.iter().flat_map(|table| &table.columns).filter_map(|column| column.references.as_ref());
    table.columns.iter().any(is_shown) || references.into_iter().any(|(name, _)| *name == table.name)
}

fn leads_back(tables: &[TableDraft], start: &TableDraft) -> bool {
    let mut table = start;
    for _ in 0..tables.len() {
        let Some(parent) = table.parent.as_ref() else { return false };
        let Some(next) = tables.iter().find(|other| other.name == parent.table) else { return false };
        if next.name == start.name {
            return true;
        }
        table = next;
    }
    false
}

/// Checks that second foreign keys name a table with a key, and that keys are renumbered.
pub(super) fn check_references(reader: &mut Reader<'_>, spec: &Section<'_>, keys: Keys, tables: &[TableDraft]) {
    let columns = tables.iter().flat_map(|table| &table.columns);
    let references: Vec<&(String, Place)> = columns.filter_map(|column| column.references.as_ref()).collect();
    for (name, place) in &references {
        match tables.iter().find(|table| table.name == *name) {
            None => {
                let nearest = nearest(name, tables.iter().map(|table| table.name.as_str())).map(str::to_owned);
                reader.note(place, SpecErrorKind::UnknownTable { name: name.clone(), nearest });
            }
            Some(table) if table.key.is_none() && table.person.is_none() => {
                reader.note(place, SpecErrorKind::ParentWithoutKey { parent: table.name.clone() });
            }
            Some(_) => {}
        }
        for (key, with) in [("audiences", "audiences"), ("registers", "registers")] {
            if spec.has(key) {
                reader.note(place, SpecErrorKind::ReferencesWith { with });
            }
        }
    }
    if keys == Keys::Keep && !references.is_empty() {
        reader.note(&reader.place_of(spec, "keys"), SpecErrorKind::ReferencesKept);
    }
}

/// Checks that the algorithm fits: Miracle and MiracleX are for tables whose rows point to each other, all others for a
/// single table.
pub(super) fn check_algorithm(reader: &mut Reader<'_>, place: &Place, algorithm: Algorithm, tables: &[TableDraft]) {
    let has_references = tables.iter().flat_map(|table| &table.columns).any(|column| column.references.is_some());
    let links_rows = tables.len() > 1 || has_references;
    let needed = match algorithm {
        Algorithm::Auto => return,
        Algorithm::Miracle | Algorithm::MiracleX if tables.len() == 1 && !has_references => "several tables",
        Algorithm::Mondrian | Algorithm::TopDown | Algorithm::Datafly | Algorithm::Cluster | Algorithm::FullDomain
            if links_rows =>
        {
            if tables.len() > 1 {
                "a single table"
            } else {
                "a table without references"
            }
        }
        _ => return,
    };
    reader.note(place, SpecErrorKind::AlgorithmForOther { algorithm: algorithm.word(), needed });
}

/// Reads the audiences. Their columns are quasi. If there is only one table, columns that it does not list are added to
/// it.
pub(super) fn read_audiences(
    reader: &mut Reader<'_>,
    spec: &Section<'_>,
    tables: &mut [TableDraft],
) -> BTreeMap<String, AudienceSpec> {
    let mut audiences = BTreeMap::new();
    let Some(section) = reader.names(spec, "audiences") else { return audiences };
    for &entry in section.entries() {
        let place = reader.place(&section, entry);
        let Some(audience) = reader.table(entry, place.clone()) else { continue };
        reader.check_keys(&audience, keys::AUDIENCE);
        if !audience.has("quasi") {
            let example = "quasi = [\"age\", \"postcode\"]";
            reader.note(&place, SpecErrorKind::Missing { key: "quasi", example });
        }
        let quasi = reader.texts(&audience, "quasi");
        let quasi_place = reader.place_of(&audience, "quasi");
        if quasi.as_ref().is_some_and(Vec::is_empty) {
            reader.note(&quasi_place, SpecErrorKind::AudienceKnowsNothing);
        }
        let quasi = quasi.unwrap_or_default();
        for (index, column) in quasi.iter().enumerate() {
            if quasi[..index].contains(column) {
                reader.note(&quasi_place, SpecErrorKind::Twice { name: column.clone() });
            } else {
                check_audience_column(reader, &quasi_place, column, tables);
            }
        }
        audiences.insert(entry.name.to_owned(), AudienceSpec { quasi, k: reader.count(&audience, "k") });
    }
    if !audiences.is_empty() {
        for column in tables.iter().flat_map(|table| &table.columns) {
            let is_known = audiences.values().any(|audience| audience.quasi.contains(&column.name));
            if column.role == Some(Role::Quasi) && !is_known {
                reader.note(&column.place, SpecErrorKind::QuasiWithoutAudience);
            }
        }
    }
    audiences
}

fn check_audience_column(reader: &mut Reader<'_>, place: &Place, name: &str, tables: &mut [TableDraft]) {
    match tables.iter().find_map(|table| table.column(name)).map(|column| column.role) {
        Some(None | Some(Role::Quasi)) => {}
        Some(Some(role)) => reader.note(place, SpecErrorKind::AudienceNotQuasi { column: name.to_owned(), role }),
        None => match tables {
            [table] => table.columns.push(ColumnDraft::implied(name, Role::Quasi, place.clone())),
            _ => note_unknown_column(reader, place, name, tables),
        },
    }
}

pub(super) fn note_unknown_column(reader: &mut Reader<'_>, place: &Place, name: &str, tables: &[TableDraft]) {
    let known = tables.iter().flat_map(|table| &table.columns).map(|column| column.name.as_str());
    let nearest = nearest(name, known).map(str::to_owned);
    reader.note(place, SpecErrorKind::UnknownColumn { column: name.to_owned(), nearest });
}

pub(super) fn read_registers(
    reader: &mut Reader<'_>,
    spec: &Section<'_>,
    tables: &[TableDraft],
) -> BTreeMap<String, RegisterSpec> {
    let mut registers = BTreeMap::new();
    let Some(section) = reader.names(spec, "registers") else { return registers };
    for &entry in section.entries() {
        if let Some(register) = read_register(reader, &section, entry, tables) {
            registers.insert(entry.name.to_owned(), register);
        }
    }
    let with_key = registers.values().filter(|register| register.key.is_some()).count();
    if with_key > 0 && !tables.is_empty() && tables.iter().all(|table| table.person.is_none()) {
        reader.note(&section.place, SpecErrorKind::RegisterWithoutPerson);
    }
    if with_key > 0 && with_key < registers.len() {
        reader.note(&section.place, SpecErrorKind::RegistersWithAndWithoutKey);
    }
    registers
}

fn read_register<'s>(
    reader: &mut Reader<'_>,
    registers: &Section<'s>,
    entry: Entry<'s>,
    tables: &[TableDraft],
) -> Option<RegisterSpec> {
    let section = reader.table(entry, reader.place(registers, entry))?;
    reader.check_keys(&section, keys::REGISTER_FILE);
    let file = reader.required_text(&section, "file", "file = \"voters.csv\"").unwrap_or_default();
    let key = reader.text(&section, "key");
    let mut columns = BTreeMap::new();
    if let Some(names) = reader.names(&section, "columns") {
        for &entry in names.entries() {
            let place = reader.place(&names, entry);
            if tables.iter().all(|table| table.column(entry.name).is_none()) {
                note_unknown_column(reader, &place, entry.name, tables);
            }
            if let Some(name) = reader.text(&names, entry.name) {
                columns.insert(entry.name.to_owned(), name.to_owned());
            }
        }
    }
    let date = section.entry("date").and_then(|entry| match entry.value.get_ref() {
        DeValue::Datetime(date) if date.time.is_none() => Some(date.to_string()),
        DeValue::String(text) => Some(text.to_string()),
        other => {
            reader.note(&reader.place(&section, entry), wrong_kind("a date such as 2026-01-01", other));
            None
        }
    });
    let sha256 = reader.text(&section, "sha256");
    if let Some(digest) = sha256.filter(|digest| digest.len() != 64 || !digest.bytes().all(|b| b.is_ascii_hexdigit())) {
        let fault = SpecErrorKind::NotAllowed {
            expected: "64 hexadecimal digits",
            found: format!("{} characters", digest.len()),
        };
        reader.note(&reader.place_of(&section, "sha256"), fault);
    }
    Some(RegisterSpec {
        file: PathBuf::from(file),
        key: key.map(str::to_owned),
        columns,
        date,
        sha256: sha256.map(str::to_lowercase),
        previous: read_paths(reader, &section, "previous"),
    })
}

/// One path or a list of them.
pub(super) fn read_paths(reader: &mut Reader<'_>, section: &Section<'_>, key: &'static str) -> Vec<PathBuf> {
    match section.entry(key).map(|entry| entry.value.get_ref()) {
        Some(DeValue::String(path)) => vec![PathBuf::from(path.as_ref())],
        _ => reader.texts(section, key).unwrap_or_default().into_iter().map(PathBuf::from).collect(),
    }
}

pub(super) fn read_register_use(
    reader: &mut Reader<'_>,
    spec: &Section<'_>,
    registers: &BTreeMap<String, RegisterSpec>,
) -> RegisterUse {
    let default = RegisterUse::default();
    let Some(section) = reader.section(spec, "register", keys::REGISTER) else { return default };
    if !spec.has("registers") {
        reader.note(&section.place, SpecErrorKind::WithoutRegisters);
    }
    if section.has("unmatched") && registers.values().any(|register| register.key.is_some()) {
        reader.note(&reader.place_of(&section, "unmatched"), SpecErrorKind::UnmatchedWithKey);
    }
    RegisterUse {
        method: reader.word(&section, "method", keys::REGISTER_METHODS).unwrap_or(default.method),
        missing: reader.word(&section, "missing", keys::REGISTER_MISSING).unwrap_or(default.missing),
        release: reader.word(&section, "release", keys::REGISTER_ROWS).unwrap_or(default.release),
        unmatched: reader.word(&section, "unmatched", keys::UNMATCHED).unwrap_or(default.unmatched),
    }
}
