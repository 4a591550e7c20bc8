//! Changes to the keys of a manifest.

use serde_json::{Map, Value, json};

/// A changed manifest.
#[derive(Clone, Debug)]
pub struct ClaimChange {
    /// The name of the change.
    pub name: &'static str,
    /// The path of the key, with dots.
    pub key: String,
    /// The manifest.
    pub manifest: Value,
}

/// Words that manifests know, by the key they belong to.
const WORDS: &[(&str, &[&str])] = &[
    ("role", &["quasi", "sensitive", "plain", "key", "identifier", "drop", "person_k", "quasi_lo", "quasi_hi"]),
    ("type", &["text", "integer", "decimal", "float", "date", "timestamp", "boolean"]),
    ("order", &["sorted", "input"]),
    ("algorithm", &["mondrian", "datafly"]),
    ("distance", &["equal", "ordered", "hierarchical"]),
    ("release", &["all", "microdata"]),
    ("joined_by", &["key", "values"]),
    ("unmatched", &["count", "doubt"]),
    ("method", &["direct", "refine"]),
    ("kind", &["parent", "reference"]),
    ("steer", &["common"]),
    ("shape", &["unchanged", "union", "butterflies"]),
];

/// Every manifest that differs from this one in one key: it has another value, it is missing, or it is one too many.
pub fn changed_claims(manifest: &Value) -> Vec<ClaimChange> {
    let mut changes = Vec::new();
    let mut paths = Vec::new();
    collect(manifest, &mut Vec::new(), &mut paths);
    for path in paths {
        let mut change_below = |name, below: Option<&str>, edit: &dyn Fn(&mut Value)| {
            let mut copy = manifest.clone();
            edit(at(&mut copy, &path));
            if copy != *manifest {
                let key = path.iter().map(String::as_str).chain(below).collect::<Vec<_>>().join(".");
                changes.push(ClaimChange { name, key, manifest: copy });
            }
        };
        let mut change = |name, edit: &dyn Fn(&mut Value)| change_below(name, None, edit);
        match at(&mut manifest.clone(), &path) {
            Value::Number(_) => {
                change("a number more", &|value| *value = shifted(value, 1.0));
                change("a number less", &|value| *value = shifted(value, -1.0));
                change("a number a little more", &|value| *value = shifted(value, 0.001));
                change("no number", &|value| *value = Value::Null);
                change("a number as a text", &|value| *value = json!(value.to_string()));
            }
            Value::String(_) => {
                change("another text", &|value| *value = json!(format!("{}x", value.as_str().unwrap_or_default())));
                change("an empty text", &|value| *value = json!(""));
                let words = path.last().and_then(|key| WORDS.iter().find(|(name, _)| name == key));
                for word in words.map_or(&[][..], |(_, words)| words) {
                    change("another word", &|value| *value = json!(word));
                }
            }
            Value::Bool(_) => change("the opposite", &|value| *value = json!(!value.as_bool().unwrap_or_default())),
            Value::Null => {}
            Value::Array(list) => {
                if !list.is_empty() {
                    change("an entry less", &|value| drop(value.as_array_mut().map(Vec::pop)));
                    change("an entry twice", &|value| {
                        let list = value.as_array_mut().expect("it is a list");
                        list.push(list[0].clone());
                    });
                }
            }
            Value::Object(map) => {
                for name in map.keys() {
                    change_below("a key less", Some(name), &|value| drop(object(value).remove(name)));
                    change_below("a key renamed", Some(name), &|value| {
                        let below = object(value).remove(name).expect("the key is there");
                        object(value).insert(format!("{name}x"), below);
                    });
                }
                let too_much = |value: &mut Value| drop(object(value).insert("unheard_of".to_owned(), json!(1)));
                change_below("a key too much", Some("unheard_of"), &too_much);
            }
        }
    }
    changes
}

fn object(value: &mut Value) -> &mut Map<String, Value> {
    value.as_object_mut().expect("it is an object")
}

fn shifted(value: &Value, by: f64) -> Value {
    match value.as_u64() {
        Some(whole) if by >= 1.0 => json!(whole + 1),
        Some(whole) if by <= -1.0 => whole.checked_sub(1).map_or(Value::Null, |less| json!(less)),
        _ => json!(value.as_f64().unwrap_or_default() + by),
    }
}

/// The paths of all values, including the whole document.
fn collect(value: &Value, path: &mut Vec<String>, paths: &mut Vec<Vec<String>>) {
    paths.push(path.clone());
    let below: Vec<(String, &Value)> = match value {
        Value::Object(map) => map.iter().map(|(key, below)| (key.clone(), below)).collect(),
        Value::Array(list) => list.iter().enumerate().map(|(place, below)| (place.to_string(), below)).collect(),
        _ => Vec::new(),
    };
    for (key, below) in below {
        path.push(key);
        collect(below, path, paths);
        path.pop();
    }
}

fn at<'v>(value: &'v mut Value, path: &[String]) -> &'v mut Value {
    path.iter().fold(value, |value, key| match value {
        Value::Array(list) => &mut list[key.parse::<usize>().expect("a place in a list")],
        value => &mut value[key.as_str()],
    })
}

/// Whether a key is below one of these patterns, in which `*` stands for any name.
pub fn is_below(key: &str, patterns: &[String]) -> bool {
    let is_under = |pattern: &String| {
        let (mut names, wanted) = (key.split('.'), pattern.split('.'));
        wanted.into_iter().all(|wanted| names.next().is_some_and(|name| wanted == "*" || wanted == name))
    };
    patterns.iter().any(is_under)
}
