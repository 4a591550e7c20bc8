//! Compares the licences and sources of everything the project is built from with `deny.toml`.
//!
//! This replaces `cargo deny check licenses sources`, which reads the same file but takes minutes to install. Only the
//! licence that a crate declares is compared; texts of licences are not read.

use serde_json::Value;

/// Crates whose licence or source `deny.toml` does not allow.
///
/// # Errors
/// If the policy can't be read.
pub(crate) fn complaints(metadata: &Value, policy: &str) -> Result<Vec<String>, String> {
    let policy: toml::Table = policy.parse().map_err(|error| format!("deny.toml: {error}"))?;
    let licences = list(&policy, "licenses", "allow")?;
    let registries = list(&policy, "sources", "allow-registry")?;

    let mut complaints = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = format!("{} {}", text(&package["name"]), text(&package["version"]));
        match package["license"].as_str() {
            None => complaints.push(format!("{name} declares no licence")),
            Some(expression) => match is_allowed(expression, &licences) {
                Some(true) => {}
                Some(false) => complaints.push(format!("{name}: licence '{expression}' is not allowed by deny.toml")),
                None => complaints.push(format!("{name}: licence '{expression}' can't be read")),
            },
        }
        if let Some(source) = package["source"].as_str() {
            let registry = source.strip_prefix("registry+").unwrap_or(source);
            if !registries.iter().any(|allowed| allowed == registry) {
                complaints.push(format!("{name}: source '{source}' is not allowed by deny.toml"));
            }
        }
    }
    Ok(complaints)
}

fn list(policy: &toml::Table, section: &str, key: &str) -> Result<Vec<String>, String> {
    policy
        .get(section)
        .and_then(|section| section.get(key))
        .and_then(toml::Value::as_array)
        .map(|entries| entries.iter().filter_map(|entry| entry.as_str().map(str::to_owned)).collect())
        .ok_or_else(|| format!("deny.toml has no list '{key}' in [{section}]"))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

/// Whether the allowed licences satisfy an SPDX expression; `None` if the text is not such an expression.
/// The old spelling `MIT/Apache-2.0` means OR.
fn is_allowed(expression: &str, allowed: &[String]) -> Option<bool> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let mut words = Words { words: spaced.split_whitespace().collect(), next: 0 };
    let met = words.any(allowed)?;
    (words.next == words.words.len()).then_some(met)
}

struct Words<'a> {
    words: Vec<&'a str>,
    next: usize,
}

impl<'a> Words<'a> {
    fn take(&mut self) -> Option<&'a str> {
        let word = self.words.get(self.next).copied();
        self.next += 1;
        word
    }

    fn take_if(&mut self, wanted: &str) -> bool {
        let found = self.words.get(self.next) == Some(&wanted);
        self.next += usize::from(found);
        found
    }

    /// Parses alternatives joined by OR, which binds less tightly than AND.
    fn any(&mut self, allowed: &[String]) -> Option<bool> {
        let mut met = self.all(allowed)?;
        while self.take_if("OR") {
            met |= self.all(allowed)?;
        }
        Some(met)
    }

    fn all(&mut self, allowed: &[String]) -> Option<bool> {
        let mut met = self.one(allowed)?;
        while self.take_if("AND") {
            met &= self.one(allowed)?;
        }
        Some(met)
    }

    fn one(&mut self, allowed: &[String]) -> Option<bool> {
        if self.take_if("(") {
            let met = self.any(allowed)?;
            return self.take_if(")").then_some(met);
        }
        let mut licence = self.take().filter(|word| !["OR", "AND", "WITH", ")"].contains(word))?.to_owned();
        if self.take_if("WITH") {
            licence = format!("{licence} WITH {}", self.take()?);
        }
        Some(allowed.contains(&licence))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const POLICY: &str = r#"
        [licenses]
        allow = ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception"]
        [sources]
        allow-registry = ["https://github.com/rust-lang/crates.io-index"]
    "#;

    fn allows(expression: &str) -> Option<bool> {
        is_allowed(expression, &["MIT".to_owned(), "Apache-2.0 WITH LLVM-exception".to_owned()])
    }

    #[test]
    fn one_allowed_alternative_is_enough() {
        assert_eq!(allows("GPL-3.0-only OR MIT"), Some(true));
        assert_eq!(allows("MIT/GPL-3.0"), Some(true));
        assert_eq!(allows("GPL-3.0-only OR ISC"), Some(false));
    }

    #[test]
    fn every_joint_licence_must_be_allowed() {
        assert_eq!(allows("MIT AND ISC"), Some(false));
        assert_eq!(allows("(ISC OR MIT) AND MIT"), Some(true));
        assert_eq!(allows("MIT OR ISC AND ISC"), Some(true));
    }

    #[test]
    fn an_exception_is_part_of_the_licence() {
        assert_eq!(allows("Apache-2.0 WITH LLVM-exception"), Some(true));
        assert_eq!(allows("Apache-2.0"), Some(false));
    }

    #[test]
    fn a_broken_expression_is_not_an_allowed_one() {
        for broken in ["", "MIT OR", "(MIT", "MIT)", "MIT MIT", "WITH MIT"] {
            assert_eq!(allows(broken), None, "{broken}");
        }
    }

    #[test]
    fn crates_without_licence_or_from_elsewhere_are_named() {
        let registry = "registry+https://github.com/rust-lang/crates.io-index";
        let metadata = json!({ "packages": [
            { "name": "good", "version": "1.0.0", "license": "MIT OR ISC", "source": registry },
            { "name": "bare", "version": "1.0.0", "license": null, "source": registry },
            { "name": "strict", "version": "1.0.0", "license": "GPL-3.0-only", "source": registry },
            { "name": "forked", "version": "1.0.0", "license": "MIT", "source": "git+https://example.org/forked" },
            { "name": "ours", "version": "1.0.0", "license": "Apache-2.0", "source": null },
        ]});
        let found = complaints(&metadata, POLICY).unwrap();
        assert_eq!(found.len(), 3);
        for (complaint, start) in found.iter().zip(["bare", "strict", "forked"]) {
            assert!(complaint.starts_with(start), "{complaint}");
        }
    }

    #[test]
    fn a_policy_without_lists_is_an_error() {
        assert!(complaints(&json!({}), "[licenses]").is_err());
    }
}
