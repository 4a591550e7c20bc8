//! The JSON Schema of a report, for programs that read reports.
//!
//! As with the manifest, the schema is a file of the repository, and a test compares it with the types.

/// The JSON Schema of `report.json`, draft 2020-12.
pub fn report_schema() -> &'static str {
    include_str!("schema.json")
}

#[cfg(test)]
mod tests {
    use schemars::generate::SchemaSettings;
    use serde_json::Value;

    use super::super::ReleaseReport;
    use super::report_schema;

    #[test]
    fn the_schema_of_reports_in_the_tree_is_that_of_the_types() {
        let of_types =
            SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<ReleaseReport>().to_value();
        if std::env::var_os("KOHORT_WRITE_SCHEMA").is_some() {
            let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/report/schema.json");
            std::fs::write(file, format!("{of_types:#}\n")).unwrap();
            return;
        }
        let in_tree: Value = serde_json::from_str(report_schema()).unwrap();
        assert_eq!(
            in_tree, of_types,
            "the types of the report have changed: KOHORT_WRITE_SCHEMA=1 cargo test -p kohort-model --lib schema"
        );
    }
}
