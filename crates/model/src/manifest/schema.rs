//! The JSON Schema of a manifest, for programs that read releases.
//!
//! The schema is a file of the repository, and a test compares it with the types. Deriving it in every build would make all
//! users wait for a library that one command needs.

/// The JSON Schema of `manifest.json`, draft 2020-12. It accepts manifests of earlier versions, too.
pub fn manifest_schema() -> &'static str {
    include_str!("schema.json")
}

#[cfg(test)]
mod tests {
    use schemars::generate::SchemaSettings;
    use serde_json::Value;

    use super::super::Manifest;
    use super::manifest_schema;

    #[test]
    fn the_schema_in_the_tree_is_that_of_the_types() {
        let of_types = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<Manifest>().to_value();
        if std::env::var_os("KOHORT_WRITE_SCHEMA").is_some() {
            let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/manifest/schema.json");
            std::fs::write(file, format!("{of_types:#}\n")).unwrap();
            return;
        }
        let in_tree: Value = serde_json::from_str(manifest_schema()).unwrap();
        assert_eq!(
            in_tree, of_types,
            "the types of the manifest have changed: KOHORT_WRITE_SCHEMA=1 cargo test -p kohort-model --lib schema"
        );
    }
}
