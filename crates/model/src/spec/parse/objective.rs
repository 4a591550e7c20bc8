//! Reads the loss that partitioners minimize, and refuses it where it could not be followed.

use toml::de::DeValue;

use super::super::keys;
use super::super::{LossObjective, SpecErrorKind};
use super::section::{Reader, Section, wrong_kind};
use super::table::TableDraft;
use crate::Role;

const EXPECTED: &str = "\"lm\", \"rank\", \"entropy\" or \"target:COLUMN\"";

pub(super) fn read_objective(reader: &mut Reader<'_>, top: &Section<'_>) -> LossObjective {
    let Some(entry) = top.entry("objective") else { return LossObjective::Lm };
    let fault = match entry.value.get_ref() {
        DeValue::String(word) => match LossObjective::from_word(word) {
            Some(objective) => return objective,
            None => SpecErrorKind::NotAllowed { expected: EXPECTED, found: format!("'{word}'") },
        },
        other => wrong_kind(EXPECTED, other),
    };
    reader.note(&reader.place_of(top, "objective"), fault);
    LossObjective::Lm
}

/// Whether the objective and the weights can be followed: there is one table, and the target is one of its columns.
pub(super) fn check_objective(
    reader: &mut Reader<'_>,
    top: &Section<'_>,
    objective: &LossObjective,
    tables: &[TableDraft],
) {
    let links_rows = tables.len() > 1 || tables.iter().flat_map(|table| &table.columns).any(|c| c.references.is_some());
    let with = [
        (links_rows, "rows that point to each other"),
        (top.has("audiences"), "audiences"),
        (top.has("registers"), "registers"),
    ];
    let place = reader.place_of(top, "objective");
    if let Some(&(_, with)) = with.iter().find(|(is_there, _)| *is_there) {
        let of_columns =
            tables.iter().flat_map(|table| &table.columns).filter_map(|column| column.weight_place.clone());
        let of_spec = (*objective != LossObjective::Lm).then_some(place);
        for place in of_spec.into_iter().chain(of_columns).collect::<Vec<_>>() {
            reader.note(&place, SpecErrorKind::ObjectiveWith { with });
        }
        return;
    }
    let LossObjective::Target(target) = objective else { return };
    let columns = || tables.iter().flat_map(|table| &table.columns);
    match columns().find(|column| column.name == *target) {
        None => {
            let nearest = keys::nearest(target, columns().map(|column| column.name.as_str())).map(str::to_owned);
            reader.note(&place, SpecErrorKind::UnknownColumn { column: target.clone(), nearest });
        }
        Some(column) => {
            if let Some(role) = column.role.filter(|role| !matches!(role, Role::Quasi | Role::Sensitive | Role::Plain))
            {
                reader.note(&place, SpecErrorKind::TargetOnRole { column: target.clone(), role });
            }
        }
    }
}
