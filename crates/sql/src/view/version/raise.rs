//! Sensitive values raised in their trees, as far as persons ask.

use std::collections::HashMap;

use kohort_model::{Column, NULL, Notation, Requirement, Role, Table, Texts, ValueType};

use super::build::pair_ids;
use crate::policy::{PairId, Policies};
use crate::view::Definition;
use crate::view::consent::Wishes;

/// Sensitive columns as readers see them: for each pair of purpose and recipient one, where it differs from the
/// column as it is and something is asked of it.
pub(in crate::view) fn raised_columns(
    definition: &Definition,
    policies: Option<&Policies>,
    wishes: &Wishes,
    table: &Table,
    pair: Option<PairId>,
) -> Vec<(Column, Vec<Requirement>)> {
    let mut raised = Vec::new();
    let Some(policies) = policies.filter(|_| definition.clauses.l.is_some() || definition.clauses.t.is_some()) else {
        return raised;
    };
    let pairs = pair_ids(policies).filter(|&of| pair.is_none_or(|pair| pair == of));
    for (number, of) in pairs.enumerate() {
        let levels = wishes.levels(policies, of);
        if levels.iter().all(|&level| level == 0) {
            continue;
        }
        for column in table.columns.iter().filter(|column| column.role == Role::Sensitive) {
            let name = format!("{} for reader {}", column.name, number + 1);
            let requirements = definition.sensitive_requirements(&name);
            raised.push((raise(column, &levels, name), requirements));
        }
    }
    raised
}

/// A sensitive column with every cell raised by its row's level.
fn raise(column: &Column, levels: &[u8], name: String) -> Column {
    let mut texts = Texts::new();
    let mut known: HashMap<(u32, u8), u32> = HashMap::new();
    let mut by_label: HashMap<String, u32> = HashMap::new();
    let mut id_of = |id: u32, level: u8| {
        *known.entry((id, level)).or_insert_with(|| match raised_label(column, id, level) {
            None => NULL,
            Some(label) => match by_label.get(label) {
                Some(&id) => id,
                None => {
                    let id = texts.push(label);
                    by_label.insert(label.to_owned(), id);
                    id
                }
            },
        })
    };
    let ids = column.ids.iter().zip(levels).map(|(&id, &level)| id_of(id, level)).collect();
    let (value_type, notation) = (ValueType::Text, Notation::default());
    Column { name, role: Role::Sensitive, value_type, notation, hierarchy: None, texts, ids }
}

/// What a sensitive cell shows at a level, `None` where it is hidden: it is null, or there is no tree to raise it in.
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
