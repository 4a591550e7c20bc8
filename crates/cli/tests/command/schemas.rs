//! `kohort schema`: specs and manifests of every kind of release must follow it.

use std::path::Path;

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::Value;

use crate::republication;
use crate::runner::{Folder, PATIENTS, SPEC};

/// A schema that the command printed.
struct Schema {
    schemas: Schemas,
    index: SchemaIndex,
}

impl Schema {
    fn print(arguments: &[&str]) -> Schema {
        let ran = Folder::new().run(arguments);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
        let schema: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
        let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
        let place = "https://example.com/schema.json";
        compiler.add_resource(place, schema).unwrap();
        let index = compiler.compile(place, &mut schemas).unwrap();
        Schema { schemas, index }
    }

    fn check(&self, document: &Value) -> Result<(), String> {
        self.schemas.validate(document, self.index).map_err(|error| error.to_string())
    }
}

fn example(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

/// A document without a key of the object at a pointer.
fn without(document: &Value, pointer: &str, key: &str) -> Value {
    let mut changed = document.clone();
    let object = changed.pointer_mut(pointer).unwrap().as_object_mut().unwrap();
    assert!(object.remove(key).is_some(), "{pointer}/{key}");
    changed
}

#[test]
fn manifests_of_every_kind_of_release_follow_the_schema() {
    let schema = Schema::print(&["schema", "manifest"]);
    // A plain column tells everybody apart, which is a blatant risk.
    let many: String = (0..40).map(|n| format!("{},p{n}\n", 20 + n % 4)).collect();
    let many = format!("age,name\n{many}");
    let folder = Folder::with(&[("patients.csv", PATIENTS), ("release.toml", SPEC), ("many.csv", &many)]);
    let spec = |name: &str| example(name).join("release.toml").display().to_string();
    let (accidents, university, register) = (spec("accidents"), spec("university"), spec("register"));
    let jobs: [(&str, &[&str]); 6] = [
        ("one", &["release.toml"]),
        ("bounds", &["release.toml", "--cells", "bounds", "--format", "parquet"]),
        ("audiences", &[&accidents]),
        ("tables", &[&university]),
        ("register", &[&register]),
        ("risks", &["many.csv", "--k", "4", "--quasi", "age", "--plain", "name", "--accept-risks"]),
    ];
    let manifest_of = |release: &str, arguments: &[&str]| -> Value {
        let ran = folder.run(&[&["anonymize"], arguments, &["-o", release]].concat());
        assert_eq!(ran.code, 0, "{release}: {ran}");
        serde_json::from_str(&folder.read(&format!("{release}/manifest.json"))).unwrap()
    };
    let mut manifests: Vec<(&str, Value)> =
        jobs.iter().map(|(release, arguments)| (*release, manifest_of(release, arguments))).collect();

    let again = republication::after_the_first();
    assert_eq!(again.run(republication::SECOND).code, 0);
    manifests.push(("again", serde_json::from_str(&again.read("second/manifest.json")).unwrap()));

    let reports = Schema::print(&["schema", "report"]);
    for (release, _) in jobs {
        let report: Value = serde_json::from_str(&folder.read(&format!("{release}/report.json"))).unwrap();
        reports.check(&report).unwrap_or_else(|error| panic!("{release}: {error}"));
        for (pointer, key) in [("", "readers"), ("", "answers"), ("/readers/0", "journalist"), ("/tables/0", "common")]
        {
            assert!(reports.check(&without(&report, pointer, key)).is_err(), "{release}: {pointer}/{key}");
        }
    }
    for (release, manifest) in &manifests {
        schema.check(manifest).unwrap_or_else(|error| panic!("{release}: {error}"));
        for (pointer, key) in [("", "requirement"), ("", "tables"), ("/achieved", "k"), ("/tables/0", "sha256")] {
            assert!(schema.check(&without(manifest, pointer, key)).is_err(), "{release}: {pointer}/{key}");
        }
    }
    for (release, key) in [
        ("audiences", "savings"),
        ("tables", "links"),
        ("register", "registers"),
        ("again", "previous"),
        ("risks", "accepted_risks"),
    ] {
        let manifest = &manifests.iter().find(|(name, _)| *name == release).unwrap().1;
        let mut changed = without(manifest, "", key);
        changed[key] = Value::from("a text");
        assert!(schema.check(&changed).is_err(), "{release}: {key}");
    }
}

/// TOML as JSON, dates as texts: this is how editors check TOML by a JSON Schema.
fn json(value: toml::Value) -> Value {
    match value {
        toml::Value::Datetime(date) => date.to_string().into(),
        toml::Value::Array(values) => values.into_iter().map(json).collect(),
        toml::Value::Table(entries) => entries.into_iter().map(|(key, value)| (key, json(value))).collect(),
        other => serde_json::to_value(other).unwrap(),
    }
}

#[test]
fn specs_of_the_examples_follow_the_schema() {
    let schema = Schema::print(&["schema"]);
    for name in ["accidents", "clinic", "register", "university"] {
        let text = std::fs::read_to_string(example(name).join("release.toml")).unwrap();
        let mut spec = json(text.parse::<toml::Table>().unwrap().into());
        schema.check(&spec).unwrap_or_else(|error| panic!("{name}: {error}"));
        spec["algorithm"] = Value::from("magic");
        assert!(schema.check(&spec).is_err(), "{name}");
    }
}
