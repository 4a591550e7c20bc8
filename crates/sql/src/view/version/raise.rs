//! Sensitive values raised in their trees, as far as their persons ask.

use std::collections::HashMap;

use kohort_model::{Column, NULL, Notation, Requirement, Role, Table, ValueType};

use super::build::pair_ids;
use crate::names::Names;
use crate::policy::{PairId, Policies};
use crate::view::Definition;
use crate::view::consent::Wishes;

/// Sensitive columns as the readers of each pair of purpose and recipient see them, with their requirements. A column that
/// is the same for them, or that has no requirement, is left out.
pub(in crate::view) fn raised_columns(
    definition: &Definition,
    policies: Option<&Policies>,
    wishes: &Wishes,
    table: &Table,
    pair: Option<PairId>,
) -> Vec<(Column, Vec<Requirement>)> {
    let mut raised = Vec::new();
    let Some(policies) = policies.filter(|_| definition.clauses.asks_of_values()) else {
        return raised;
    };
    let pairs = pair_ids(policies).filter(|&of| pair.is_none_or(|pair| pair == of));
    for (number, of) in pairs.enumerate() {
        let levels = wishes.levels(policies, of);
        if levels.iter().all(|&level| level == 0) {
            continue;
        }
        for column in table.columns.iter().filter(|column| column.role == Role::Sensitive) {
            let name = raised_name(&column.name, number + 1);
            let requirements = definition.sensitive_requirements(&name);
            raised.push((raise(column, &levels, name), requirements));
        }
    }
    raised
}

/// The name of a sensitive column as the readers of a pair see it.
pub(in crate::view) fn raised_name(column: &str, number: usize) -> String {
    format!("{column} for reader {number}")
}

/// A sensitive column with every cell raised by its row's level.
fn raise(column: &Column, levels: &[u8], name: String) -> Column {
    let mut labels = Names::default();
    let mut known: HashMap<(u32, u8), u32> = HashMap::new();
    let mut id_of = |id: u32, level: u8| {
        let raised = || raised_label(column, id, level).map_or(NULL, |label| labels.number(label));
        *known.entry((id, level)).or_insert_with(raised)
    };
    let ids = column.ids.iter().zip(levels).map(|(&id, &level)| id_of(id, level)).collect();
    let (value_type, notation) = (ValueType::Text, Notation::default());
    Column { name, role: Role::Sensitive, value_type, notation, hierarchy: None, texts: labels.into_texts(), ids }
}

/// What a sensitive cell shows at a level; `None` if the cell is null, or there is no tree in which to raise it.
pub(in crate::view) fn raised_label(column: &Column, id: u32, level: u8) -> Option<&str> {
    if id == NULL {
        return None;
    }
    let text = column.texts.get(id);
    match column.hierarchy.as_deref() {
        _ if level == 0 => Some(text),
        None => None,
        Some(hierarchy) => {
            let leaf = hierarchy.leaf(text)?;
            let node = hierarchy.path(leaf).nth(usize::from(level)).unwrap_or(hierarchy.root());
            Some(hierarchy.label(node))
        }
    }
}
