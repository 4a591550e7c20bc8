//! The JSON Schema of a spec, for editors. Written by hand for its descriptions, and compared with the parser's keys.

/// The JSON Schema of `release.toml`, draft 2020-12.
pub fn json_schema() -> &'static str {
    include_str!("schema.json")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::super::keys;
    use super::super::{Algorithm, json_schema};
    use crate::{Role, ValueType};

    fn schema() -> Value {
        serde_json::from_str(json_schema()).unwrap()
    }

    #[test]
    fn the_schema_and_the_parser_know_the_same_keys() {
        let schema = schema();
        let sections = [
            ("", keys::TOP),
            ("/properties/mondrian", keys::MONDRIAN),
            ("/properties/datafly", keys::DATAFLY),
            ("/properties/full_domain", keys::FULL_DOMAIN),
            ("/properties/clustering", keys::CLUSTERING),
            ("/properties/register", keys::REGISTER),
            ("/$defs/table", keys::TABLE),
            ("/$defs/table/properties/parent", keys::PARENT),
            ("/$defs/column", keys::COLUMN),
            ("/$defs/hierarchy", keys::HIERARCHY),
            ("/$defs/bound/anyOf/1", keys::QUANTILE),
            ("/$defs/audience", keys::AUDIENCE),
            ("/$defs/coalition", keys::COALITION),
            ("/$defs/requirements", keys::REQUIREMENTS),
            ("/$defs/register_file", keys::REGISTER_FILE),
        ];
        for (pointer, known) in sections {
            let section = schema.pointer(pointer).unwrap();
            let properties = section["properties"].as_object().unwrap();
            let described: BTreeSet<&str> = properties.keys().map(String::as_str).collect();
            assert_eq!(described, known.iter().copied().collect(), "{pointer}");
            assert_eq!(section["additionalProperties"], Value::Bool(false), "{pointer}");
            for (name, property) in properties {
                let is_described = property.get("description").is_some() || property.get("$ref").is_some();
                assert!(is_described, "{pointer}/{name}");
            }
        }
    }

    #[test]
    fn whatever_else_stands_in_collusion_is_a_coalition() {
        let schema = schema();
        let collusion = schema.pointer("/properties/collusion").unwrap();
        let described: BTreeSet<&str> =
            collusion["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(described, keys::COLLUSION.iter().copied().collect());
        assert_eq!(collusion["additionalProperties"]["$ref"], "#/$defs/coalition");
    }

    #[test]
    fn the_schema_and_the_parser_know_the_same_words() {
        fn words<T>(words: &[(&'static str, T)]) -> Vec<&'static str> {
            words.iter().map(|(word, _)| *word).collect()
        }
        let schema = schema();
        let enums = [
            ("/properties/preset", words(keys::PRESETS)),
            ("/properties/algorithm", Algorithm::ALL.iter().map(|algorithm| algorithm.word()).collect()),
            ("/properties/leftovers", words(keys::LEFTOVERS)),
            ("/properties/order", words(keys::ORDERS)),
            ("/properties/keys", words(keys::KEYS)),
            ("/properties/hierarchies", words(keys::HIERARCHIES)),
            ("/properties/steer", words(keys::STEERS)),
            ("/properties/mondrian/properties/cuts", words(keys::CUTS)),
            ("/properties/mondrian/properties/choose", words(keys::CHOOSE)),
            ("/properties/full_domain/properties/objective", words(keys::OBJECTIVES)),
            ("/properties/clustering/properties/pairing", words(keys::PAIRINGS)),
            ("/properties/register/properties/method", words(keys::REGISTER_METHODS)),
            ("/properties/register/properties/missing", words(keys::REGISTER_MISSING)),
            ("/properties/register/properties/release", words(keys::REGISTER_ROWS)),
            ("/properties/register/properties/unmatched", words(keys::UNMATCHED)),
            ("/$defs/table/properties/decimal", words(keys::DECIMALS)),
            ("/$defs/table/properties/orphans", words(keys::ORPHANS)),
            ("/$defs/table/properties/childless", words(keys::CHILDLESS)),
            ("/$defs/role", Role::ALL.iter().map(|role| role.word()).chain([keys::PSEUDONYM]).collect()),
            ("/$defs/column/properties/type", ValueType::ALL.iter().map(|known| known.word()).collect()),
            ("/$defs/column/properties/distance", words(keys::DISTANCES)),
            ("/$defs/column/properties/truncate", words(keys::PERIODS)),
            ("/$defs/hierarchy/properties/mask", words(keys::MASKS)),
            ("/$defs/hierarchy/properties/dates/items", words(keys::DATE_LEVELS)),
        ];
        for (pointer, known) in enums {
            let listed = schema.pointer(pointer).unwrap()["enum"].as_array().unwrap();
            let listed: Vec<&str> = listed.iter().map(|word| word.as_str().unwrap()).collect();
            assert_eq!(listed, known, "{pointer}");
        }
    }
}
