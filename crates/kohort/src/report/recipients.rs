//! [`readme`], [`data_package`]: `README.txt` and `datapackage.json` of a release folder, for people and programs that receive it.
//!
//! Both follow from the manifest, the columns of the tables and their order. `datapackage.json` is a Frictionless Data Package
//! (version 1): <https://specs.frictionlessdata.io/data-package>. Generalized columns are strings there, because `[20,29]` is
//! no number. Custom keys start with `kohort:`.

use kohort_model::register::{SENSITIVE_GROUP, SENSITIVE_TABLE};
use kohort_model::report::ReleaseReport;
use kohort_model::spec::Order;
use kohort_model::{ColumnManifest, LabelsManifest, LinkMeaning, Manifest, Role, Table, TableManifest, ValueType};
use serde_json::{Map, Value, json};

use super::words::{count, counted, listed};

/// The cells of a release in about ten lines.
pub(super) fn readme(report: &ReleaseReport, manifest: &Manifest, tables: &[Table]) -> String {
    let files: Vec<String> = manifest.tables.iter().map(|table| table.file.clone()).collect();
    let mut lines = vec![
        format!(
            "This folder holds {} that {} made k-anonymous: k = {}. {}.",
            listed(&files),
            format_args!("kohort {}", manifest.kohort),
            manifest.achieved.k,
            format_args!(
                "{} of {} are in it",
                count(report.persons.n_out),
                counted(report.persons.n_in, "person", "persons")
            )
        ),
        "Every cell is true of its row, but cells of the generalized columns may be coarser than what was known:"
            .to_owned(),
    ];
    lines.extend(cells_in_words(manifest, tables));
    if manifest.register.as_ref().is_some_and(|join| join.sensitive_groups > 0) {
        lines.push(format!(
            "- {SENSITIVE_GROUP}: {SENSITIVE_TABLE} lists the values of the persons of each group; nothing tells which row has which."
        ));
    }
    let order = match manifest.order {
        Order::Sorted => "Rows are sorted by what they show",
        Order::Input => "Rows are in the order of the private table",
    };
    lines.push(format!(
        "All other columns are as they were. An empty cell means that there is no value. {order}. Key columns only join the tables."
    ));
    lines.push(
        "manifest.json says exactly how each cell is read (`kohort schema manifest` describes it), datapackage.json describes the \
         columns for programs, and report.html says what was lost and what the risk is."
            .to_owned(),
    );
    lines.push("Count it again yourself: kohort verify FOLDER. Estimate numbers from it: kohort estimate FOLDER \"CONDITION\".".to_owned());
    lines.push(
        "Please do not try to find persons in it, and do not join it with other data about the same persons."
            .to_owned(),
    );
    lines.join("\n") + "\n"
}

/// One line for each form of cells that the release shows.
fn cells_in_words(manifest: &Manifest, tables: &[Table]) -> Vec<String> {
    let mut lines: Vec<(&str, Vec<String>)> = Vec::new();
    let mut add = |form: &'static str, column: &str| match lines.iter_mut().find(|(known, _)| *known == form) {
        Some((_, columns)) if columns.iter().any(|known| known == column) => {}
        Some((_, columns)) => columns.push(column.to_owned()),
        None => lines.push((form, vec![column.to_owned()])),
    };
    for (entry, table) in manifest.tables.iter().zip(tables) {
        for column in table.columns.iter().filter(|column| column.role == Role::Quasi) {
            let Some(known) = entry.columns.get(&column.name) else {
                add("two columns _lo and _hi, the lowest and the highest value it can be", &column.name);
                continue;
            };
            let is_whole = column.value_type == ValueType::Integer;
            add(
                match &known.labels {
                    Some(LabelsManifest::Ranges) => "[20,29] means a value from 20 to 29, * means any",
                    Some(LabelsManifest::Steps { .. }) if is_whole => {
                        "[20,29] means a whole number from 20 to 29, * means any"
                    }
                    Some(LabelsManifest::Steps { .. }) => "[20,30) means at least 20 and less than 30, * means any",
                    Some(LabelsManifest::Mask { .. }) => {
                        "885** means a text of this length that has 885 there, *** means any"
                    }
                    Some(LabelsManifest::Dates { .. }) => {
                        "1984-03, 1984-Q1, 1984 and 1980s mean some day in that time, * means any"
                    }
                    Some(LabelsManifest::Hierarchy { file: Some(_), .. }) => {
                        "a label stands for the values that the file *.hierarchy.csv of the column lists"
                    }
                    Some(LabelsManifest::Hierarchy { file: None, .. }) => {
                        "a label stands for several values; ask the publisher which"
                    }
                    Some(LabelsManifest::Values | LabelsManifest::Flat) => "the value itself, or *, which means any",
                    None => "the value itself, or a label that stands for several values",
                },
                &column.name,
            );
        }
    }
    let forms = lines.into_iter().map(|(form, columns)| format!("- {}: {form}.", listed(&columns)));
    let of_tables = manifest.tables.iter().flat_map(|entry| &entry.columns);
    forms.chain(of_tables.filter_map(|(name, known)| changed_in_words(name, known))).collect()
}

/// How the values of a column were changed before classes were made.
fn changed_in_words(name: &str, known: &ColumnManifest) -> Option<String> {
    let changes = [
        known.top.as_ref().map(|top| format!(">= {top} stands for every value from {top} on")),
        known.bottom.as_ref().map(|bottom| format!("<= {bottom} stands for every value up to {bottom}")),
        known.rounded.as_ref().map(|base| format!("values were rounded to multiples of {base}")),
        known.truncated.as_ref().map(|_| "dates were moved to the first day of their period".to_owned()),
    ];
    let changes: Vec<String> = changes.into_iter().flatten().collect();
    (!changes.is_empty()).then(|| format!("- {name}: {}.", listed(&changes)))
}

/// The tables and their columns as a Frictionless Data Package.
pub(super) fn data_package(manifest: &Manifest, tables: &[Table]) -> Value {
    let resources: Vec<Value> =
        manifest.tables.iter().zip(tables).map(|(entry, table)| resource(manifest, entry, table)).collect();
    json!({
        "profile": "data-package",
        "name": "kohort-release",
        "title": format!("A k-anonymous release (k = {})", manifest.achieved.k),
        "description": "Cells of generalized columns may stand for several values: see README.txt and manifest.json.",
        "resources": resources,
    })
}

fn resource(manifest: &Manifest, entry: &TableManifest, table: &Table) -> Value {
    let mut fields = Vec::new();
    for column in &table.columns {
        match entry.columns.get(&column.name) {
            Some(known) => fields.push(field(&column.name, known)),
            // Bounds are two columns of the file.
            None => {
                let bounds = ["lo", "hi"].map(|end| format!("{}_{end}", column.name));
                fields.extend(bounds.iter().filter_map(|name| Some(field(name, entry.columns.get(name)?))));
            }
        }
    }
    let mut schema = Map::new();
    schema.insert("fields".to_owned(), fields.into());
    if let Some(csv) = &entry.csv {
        schema.insert("missingValues".to_owned(), json!([csv.null]));
    }
    let links = || manifest.links.iter();
    if let Some(link) = links().find(|link| link.parent == entry.name) {
        schema.insert("primaryKey".to_owned(), json!(link.key));
    }
    let own = links().filter(|link| link.table == entry.name);
    let foreign: Vec<Value> = own
        .map(|link| {
            let meaning = match link.kind {
                LinkMeaning::Parent => "the row belongs to that row",
                LinkMeaning::Reference => "the row names that row",
            };
            json!({
                "fields": link.foreign_key,
                "reference": { "resource": resource_name(&link.parent), "fields": link.key },
                "kohort:meaning": meaning,
            })
        })
        .collect();
    if !foreign.is_empty() {
        schema.insert("foreignKeys".to_owned(), foreign.into());
    }
    let mut resource = Map::new();
    let mut set = |key: &str, value: Value| resource.insert(key.to_owned(), value);
    // Files in Arrow or Parquet have their own types, and a tabular resource must be text.
    set("profile", json!(if entry.csv.is_some() { "tabular-data-resource" } else { "data-resource" }));
    set("name", json!(resource_name(&entry.name)));
    set("title", json!(entry.name));
    set("path", json!(entry.file));
    set("hash", json!(format!("sha256:{}", entry.sha256.to_lowercase())));
    if let Some(csv) = &entry.csv {
        set("format", json!("csv"));
        set("encoding", json!(csv.encoding));
        if let Some(compression) = [(".gz", "gz"), (".zst", "zst")].iter().find(|(end, _)| entry.file.ends_with(end)) {
            set("compression", json!(compression.1));
        }
        set(
            "dialect",
            json!({ "delimiter": csv.separator.to_string(), "lineTerminator": "\n", "quoteChar": "\"", "doubleQuote": true, "header": true }),
        );
    }
    set("schema", schema.into());
    resource.into()
}

/// The name of a resource may have small letters, digits, and `-`, `_` and `.` only.
fn resource_name(table: &str) -> String {
    let safe = |letter: char| match letter.to_ascii_lowercase() {
        letter if letter.is_ascii_alphanumeric() || "-_.".contains(letter) => letter,
        _ => '-',
    };
    table.chars().map(safe).collect()
}

fn field(name: &str, known: &ColumnManifest) -> Value {
    let mut field = Map::new();
    let mut set = |key: &str, value: Value| field.insert(key.to_owned(), value);
    set("name", json!(name));
    let is_label = known.role == Role::Quasi.word();
    let value_type = ValueType::from_word(&known.value_type);
    // Coded ends such as `>= 120` are no numbers and no dates.
    let is_coded = known.top.is_some() || known.bottom.is_some();
    let kind = match value_type {
        _ if is_label || is_coded => "string",
        Some(ValueType::Integer) => "integer",
        Some(ValueType::Decimal | ValueType::Float) => "number",
        Some(ValueType::Date) => "date",
        Some(ValueType::Timestamp) => "datetime",
        Some(ValueType::Boolean) => "boolean",
        Some(ValueType::Text) => "string",
        None => "any",
    };
    set("type", json!(kind));
    if let Some(decimal) = known.decimal.filter(|_| kind == "number") {
        set("decimalChar", json!(decimal.to_string()));
    }
    if matches!(kind, "date" | "datetime") {
        // Frictionless reads ISO 8601 with a time zone only by default; `any` accepts what a release may spell.
        set("format", json!(known.date_format.as_deref().unwrap_or(if kind == "date" { "default" } else { "any" })));
    }
    set("kohort:role", json!(known.role));
    if is_label {
        set("kohort:type", json!(known.value_type));
        if let Some(labels) = &known.labels {
            set("kohort:labels", json!(labels));
        }
    }
    field.into()
}
