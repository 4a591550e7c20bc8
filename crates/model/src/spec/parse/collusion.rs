//! Reads what coalitions of audiences, and single audiences, must not learn.

use std::collections::BTreeMap;

use super::super::keys::{self, nearest};
use super::super::{AudienceSpec, CoalitionSpec, OwnKOfCoalition, SpecErrorKind};
use super::column::{check_hidden, read_requirements};
use super::links::note_unknown_column;
use super::section::{Place, Reader, Section};
use super::table::TableDraft;
use crate::{Coalition, Requirement, Role, Steer};

type AudienceSpecs = BTreeMap<String, AudienceSpec>;

/// Checks that `sensitive_to` names only audiences that exist and don't know the column.
pub(super) fn check_sensitive_to(reader: &mut Reader<'_>, audiences: &AudienceSpecs, tables: &[TableDraft]) {
    for column in tables.iter().flat_map(|table| &table.columns) {
        let place = &column.sensitive_to_place;
        if !column.sensitive_to.is_empty() && audiences.is_empty() {
            reader.note(place, SpecErrorKind::WithoutAudiences);
            continue;
        }
        check_names(reader, place, &column.sensitive_to, audiences);
        let knows = |name: &&String| audiences.get(*name).is_some_and(|audience| audience.quasi.contains(&column.name));
        for audience in column.sensitive_to.iter().filter(knows) {
            let fault = SpecErrorKind::KnownAlready { audience: audience.clone(), column: column.name.clone() };
            reader.note(place, fault);
        }
    }
}

/// Checks that every name is that of an audience, and that none is listed twice.
fn check_names(reader: &mut Reader<'_>, place: &Place, names: &[String], audiences: &AudienceSpecs) {
    for (position, name) in names.iter().enumerate() {
        if names[..position].contains(name) {
            reader.note(place, SpecErrorKind::Twice { name: name.clone() });
        } else if !audiences.contains_key(name) {
            let nearest = nearest(name, audiences.keys().map(String::as_str)).map(str::to_owned);
            reader.note(place, SpecErrorKind::UnknownAudience { name: name.clone(), nearest });
        }
    }
}

/// Reads `[collusion]` and `[collusion.NAME]`.
pub(super) fn read_collusion(
    reader: &mut Reader<'_>,
    spec: &Section<'_>,
    audiences: &AudienceSpecs,
    tables: &[TableDraft],
) -> Vec<CoalitionSpec> {
    let Some(section) = reader.names(spec, "collusion") else { return Vec::new() };
    if audiences.is_empty() {
        reader.note(&section.place, SpecErrorKind::WithoutAudiences);
        return Vec::new();
    }
    let mut coalitions = Vec::new();
    let (of_all, named): (Vec<_>, Vec<_>) =
        section.entries().iter().partition(|entry| keys::COLLUSION.contains(&entry.name));
    if !of_all.is_empty() || named.is_empty() {
        coalitions.push(read_coalition(reader, &section, None, audiences, tables));
    }
    let mut named: Vec<_> = named.into_iter().copied().collect();
    named.sort_by_key(|entry| entry.name);
    for entry in named {
        let place = reader.place(&section, entry);
        let Some(section) = reader.table(entry, place.clone()) else { continue };
        reader.check_keys(&section, keys::COALITION);
        if entry.name == Coalition::ALL {
            reader.note(&place, SpecErrorKind::CoalitionNamedAll);
        }
        coalitions.push(read_coalition(reader, &section, Some(entry.name), audiences, tables));
    }
    coalitions
}

fn read_coalition(
    reader: &mut Reader<'_>,
    section: &Section<'_>,
    name: Option<&str>,
    audiences: &AudienceSpecs,
    tables: &[TableDraft],
) -> CoalitionSpec {
    let mut members = Vec::new();
    if name.is_some() {
        let place = reader.place_of(section, "audiences");
        if !section.has("audiences") {
            reader.note(
                &place,
                SpecErrorKind::Missing { key: "audiences", example: "audiences = [\"insurer\", \"hr\"]" },
            );
        }
        if let Some(names) = reader.texts(section, "audiences") {
            check_names(reader, &place, &names, audiences);
            if names.len() < 2 {
                reader.note(&place, SpecErrorKind::CoalitionOfOne);
            }
            members = names;
        }
    }
    if !["k", "person_k", "sensitive"].iter().any(|key| section.has(key)) {
        reader.note(&section.place, SpecErrorKind::AsksNothing { example: "k = 2" });
    }
    let own_k = match reader.flag(section, "person_k") {
        Some(true) => OwnKOfCoalition::Kept,
        Some(false) | None => OwnKOfCoalition::Ignored,
    };
    let has_own_k = tables.iter().flat_map(|table| &table.columns).any(|column| column.role == Some(Role::PersonK));
    if own_k == OwnKOfCoalition::Kept && !has_own_k {
        reader.note(&reader.place_of(section, "person_k"), SpecErrorKind::NoPersonK);
    }
    let is_member = |audience: &str| name.is_none() || members.iter().any(|member| member == audience);
    let knowing: Vec<(&str, &AudienceSpec)> = audiences
        .iter()
        .filter(|(audience, _)| is_member(audience))
        .map(|(name, audience)| (name.as_str(), audience))
        .collect();
    let requirements = read_sensitive(reader, section, &knowing, tables);
    CoalitionSpec {
        name: name.map(str::to_owned),
        k: reader.count(section, "k"),
        own_k,
        requirements,
        audiences: members,
    }
}

/// Reads `sensitive = { disease = { l = 2 } }`: for each column, what the audiences must not learn together.
fn read_sensitive(
    reader: &mut Reader<'_>,
    section: &Section<'_>,
    knowing: &[(&str, &AudienceSpec)],
    tables: &[TableDraft],
) -> Vec<Requirement> {
    let mut requirements = Vec::new();
    let Some(columns) = reader.names(section, "sensitive") else { return requirements };
    for &entry in columns.entries() {
        let place = reader.place(&columns, entry);
        let Some(asked) = reader.table(entry, place.clone()) else { continue };
        reader.check_keys(&asked, keys::REQUIREMENTS);
        let Some(column) = tables.iter().find_map(|table| table.column(entry.name)) else {
            note_unknown_column(reader, &place, entry.name, tables);
            continue;
        };
        let name = || entry.name.to_owned();
        match column.role {
            Some(Role::Quasi) => {
                check_hidden(reader, &asked);
                for (audience, _) in knowing.iter().filter(|(_, audience)| audience.quasi.contains(&column.name)) {
                    let fault = SpecErrorKind::KnownAlready { audience: (*audience).to_owned(), column: name() };
                    reader.note(&place, fault);
                }
            }
            None | Some(Role::Sensitive) => {}
            Some(role) => reader.note(&place, SpecErrorKind::NotSensitive { column: name(), role }),
        }
        let read = read_requirements(reader, &asked, entry.name, column.has_hierarchy());
        if asked.entries().is_empty() {
            reader.note(&place, SpecErrorKind::AsksNothing { example: "l = 2" });
        }
        requirements.extend(read);
    }
    requirements
}

/// Reads which columns may decide how rows are grouped.
pub(super) fn read_steer(reader: &mut Reader<'_>, spec: &Section<'_>, audiences: &AudienceSpecs) -> Steer {
    let steer = reader.word(spec, "steer", keys::STEERS);
    if spec.has("steer") && audiences.is_empty() {
        reader.note(&reader.place_of(spec, "steer"), SpecErrorKind::WithoutAudiences);
    }
    steer.unwrap_or_default()
}
