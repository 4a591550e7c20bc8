//! [`parse_manifest`]: reads the JSON of a manifest, and refuses keys that it does not understand.
//!
//! An unknown key is refused, because nobody would compare its claim with the release. A key that occurs twice is refused,
//! because other programs may read the value that was not compared.

use std::collections::BTreeMap;
use std::fmt;

use kohort_model::Manifest;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// Reads a manifest, or says why it can't be read. Messages may name keys, because these are public.
pub(crate) fn parse_manifest(json: &str) -> Result<Manifest, String> {
    let read: Keys = serde_json::from_str(json).map_err(|error| error.to_string())?;
    let manifest: Manifest = serde_json::from_str(json).map_err(|error| error.to_string())?;
    // Writing the manifest again gives exactly the keys that were understood.
    let understood = serde_json::to_value(&manifest).map_err(|error| error.to_string())?;
    match read.unknown(&understood, "") {
        None => Ok(manifest),
        Some(key) => Err(format!("its key '{key}' is not known to this version")),
    }
}

/// The version that wrote a manifest, if it is newer than this one. It can claim what this version does not know how to count.
pub(crate) fn newer_version(json: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Version {
        kohort: String,
    }
    let numbers = |version: &str| -> Option<Vec<u64>> {
        let plain = version.split(['-', '+']).next().unwrap_or_default();
        plain.split('.').map(|number| number.parse().ok()).collect()
    };
    let Version { kohort } = serde_json::from_str(json).ok()?;
    let theirs = numbers(&kohort)?;
    // Only the numbers are repeated, because anything may be in the file.
    let said = theirs.iter().map(u64::to_string).collect::<Vec<_>>().join(".");
    (theirs > numbers(env!("CARGO_PKG_VERSION"))?).then_some(said)
}

/// The keys of a JSON document.
enum Keys {
    Object(BTreeMap<String, Keys>),
    List(Vec<Keys>),
    /// `null`, `false` or an empty value, which says no more than a key that is left out.
    Nothing,
    /// A number, a text or `true`.
    Value,
}

impl Keys {
    /// The path of the first key that the other document lacks.
    fn unknown(&self, understood: &Value, path: &str) -> Option<String> {
        match (self, understood) {
            (Keys::Object(read), Value::Object(known)) => read.iter().find_map(|(key, below)| {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                match known.get(key) {
                    Some(known) => below.unknown(known, &path),
                    None => (!below.says_nothing()).then_some(path),
                }
            }),
            (Keys::List(read), Value::Array(known)) => {
                let mut pairs = read.iter().zip(known).enumerate();
                pairs.find_map(|(position, (below, known))| below.unknown(known, &format!("{path}.{position}")))
            }
            _ => None,
        }
    }

    fn says_nothing(&self) -> bool {
        match self {
            Keys::Object(below) => below.is_empty(),
            Keys::List(below) => below.is_empty(),
            Keys::Nothing => true,
            Keys::Value => false,
        }
    }
}

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(KeysVisitor)
    }
}

struct KeysVisitor;

impl<'de> Visitor<'de> for KeysVisitor {
    type Value = Keys;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Keys, A::Error> {
        let mut keys = BTreeMap::new();
        while let Some((key, below)) = map.next_entry::<String, Keys>()? {
            if keys.contains_key(&key) {
                return Err(A::Error::custom(format_args!("the key '{key}' is given twice")));
            }
            keys.insert(key, below);
        }
        Ok(Keys::Object(keys))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Keys, A::Error> {
        let mut all = Vec::new();
        while let Some(below) = list.next_element()? {
            all.push(below);
        }
        Ok(Keys::List(all))
    }

    fn visit_unit<E>(self) -> Result<Keys, E> {
        Ok(Keys::Nothing)
    }

    fn visit_bool<E>(self, is_so: bool) -> Result<Keys, E> {
        Ok(if is_so { Keys::Value } else { Keys::Nothing })
    }

    fn visit_u64<E>(self, _: u64) -> Result<Keys, E> {
        Ok(Keys::Value)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Keys, E> {
        Ok(Keys::Value)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Keys, E> {
        Ok(Keys::Value)
    }

    fn visit_str<E>(self, _: &str) -> Result<Keys, E> {
        Ok(Keys::Value)
    }
}
