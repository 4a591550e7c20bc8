//! Whether a released cell is true of a private one, by the meaning of its label.

use kohort_model::{Column, Value};

/// Whether a label covers a value; `None` is null.
pub fn covers(column: &Column, label: Option<&str>, value: Option<&str>) -> bool {
    let (label, value) = match (label, value) {
        (None, value) => return value.is_none(),
        (Some(label), None) => {
            let root = column.hierarchy.as_ref().map_or("*", |hierarchy| hierarchy.label(hierarchy.root()));
            return label == root;
        }
        (Some(label), Some(value)) => (label, value),
    };
    if let Some(hierarchy) = &column.hierarchy {
        let leaf = hierarchy.leaf(value).expect("every value is a leaf");
        return hierarchy.path(leaf).any(|node| hierarchy.label(node) == label);
    }
    if label == "*" || label == value {
        return true;
    }
    let parse = |text| Value::parse(text, column.value_type, &column.notation);
    let range = label.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).and_then(|both| both.split_once(','));
    match (range, parse(value)) {
        (Some((low, high)), Some(value)) if column.value_type.is_ordered() => {
            matches!((parse(low), parse(high)), (Some(low), Some(high)) if low <= value && value <= high)
        }
        (_, value) => value.is_some() && parse(label) == value,
    }
}

#[cfg(test)]
mod tests {
    use kohort_model::{Hierarchy, Role, ValueType};

    use super::*;

    #[test]
    fn labels_cover_what_they_say_and_nothing_else() {
        let ages = Column::from_cells("age", Role::Quasi, [Some("20"), None]).typed(ValueType::Integer);
        for (label, value, truth) in [
            (Some("[20,29]"), Some("29"), true),
            (Some("[20,29]"), Some("30"), false),
            (Some("20"), Some("20"), true),
            (Some("20"), Some("21"), false),
            (Some("*"), None, true),
            (Some("[20,29]"), None, false),
            (None, None, true),
            (None, Some("20"), false),
        ] {
            assert_eq!(covers(&ages, label, value), truth, "{label:?} {value:?}");
        }
        let zips = Column::from_cells("zip", Role::Quasi, [Some("88512"), None])
            .with_hierarchy(Hierarchy::from_paths("88512;885**;*****\n89321;893**;*****").unwrap());
        assert!(covers(&zips, Some("885**"), Some("88512")) && covers(&zips, Some("*****"), None));
        assert!(!covers(&zips, Some("893**"), Some("88512")) && !covers(&zips, Some("885**"), None));
    }
}
