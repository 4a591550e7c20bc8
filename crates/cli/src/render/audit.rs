//! Renders what several releases show together, for each audience.

use kohort::Audit;
use kohort::verifier::{AuditFindings, AuditedAudience, Hidden, Knows};
use serde_json::{Map, Value, json};

/// An audit to be rendered.
pub(crate) struct Rendered<'a> {
    files: Vec<String>,
    audiences: &'a [Knows],
    person: Option<&'a str>,
    k: Option<u64>,
}

impl<'a> Rendered<'a> {
    pub(crate) fn new(audit: &'a Audit) -> Self {
        Rendered {
            files: audit.releases.iter().map(|file| file.display().to_string()).collect(),
            audiences: &audit.audiences,
            person: audit.person.as_deref(),
            k: audit.k,
        }
    }

    /// The counts in words, for people.
    pub(crate) fn words(&self, found: &AuditFindings) -> String {
        let matched = match self.person {
            _ if self.files.len() == 1 => String::new(),
            None => ", rows matched by their order: row n is taken for the same person in all of them".to_owned(),
            Some(person) => format!(", matched by '{person}': {} are in all of them", found.persons_in_all),
        };
        let releases = if self.files.len() == 1 { "release" } else { "releases" };
        let mut text = format!("{} {releases} of {} persons{matched}\n", self.files.len(), found.persons);
        for (audience, counted) in self.audiences.iter().zip(&found.audiences) {
            let title = format!("audience {}: {}", audience.audience, audience.columns.join(", "));
            text += &self.table(&title, counted);
        }
        if let Some(union) = &found.union {
            text += &self.table("all audiences together", union);
        }
        text
    }

    fn table(&self, title: &str, counted: &AuditedAudience) -> String {
        let width = self.files.iter().map(|file| file.chars().count()).max().unwrap_or(0).max(16);
        let below = self.k.map_or_else(|| "unique persons".to_owned(), |k| format!("persons below {k}"));
        let mut text = format!("\n{title}\n{:<width$} {:>14} {below:>16} {:>10}\n", "", "smallest class", "classes");
        let mut line = |name: &str, hidden: &Hidden| {
            let below = hidden.below_k.unwrap_or(hidden.unique_persons);
            text += &format!("{name:<width$} {:>14} {below:>16} {:>10}\n", hidden.smallest, hidden.classes);
        };
        for (file, alone) in self.files.iter().zip(&counted.alone) {
            if let Some(alone) = alone {
                line(file, alone);
            }
        }
        if self.files.len() > 1 {
            line("read together", &counted.together);
        }
        text
    }

    /// The counts as JSON, for programs.
    pub(crate) fn json(&self, found: &AuditFindings, met: bool) -> String {
        let releases = self.files.iter().zip(&found.rows).map(|(file, rows)| json!({ "file": file, "rows": rows }));
        let audience = |(audience, counted): (&Knows, &AuditedAudience)| {
            let mut object = self.object(counted);
            object.insert("columns".to_owned(), audience.columns.clone().into());
            (audience.audience.clone(), Value::from(object))
        };
        let mut object = json!({
            "persons": found.persons,
            "persons_in_all": found.persons_in_all,
            "person": self.person,
            "releases": releases.collect::<Vec<Value>>(),
            "audiences": self.audiences.iter().zip(&found.audiences).map(audience).collect::<Map<String, Value>>(),
            "union": found.union.as_ref().map(|union| self.object(union)),
        });
        if let (Some(k), Value::Object(fields)) = (self.k, &mut object) {
            fields.insert("k".to_owned(), k.into());
            fields.insert("met".to_owned(), met.into());
        }
        format!("{object:#}\n")
    }

    fn object(&self, counted: &AuditedAudience) -> Map<String, Value> {
        let alone = self.files.iter().zip(&counted.alone).filter_map(|(file, alone)| {
            let mut object = hidden(alone.as_ref()?);
            object.insert("file".to_owned(), file.clone().into());
            Some(Value::from(object))
        });
        Map::from_iter([
            ("alone".to_owned(), alone.collect()),
            ("together".to_owned(), hidden(&counted.together).into()),
        ])
    }
}

fn hidden(hidden: &Hidden) -> Map<String, Value> {
    let sizes = hidden.smallest_classes.iter();
    let sizes: Vec<Value> = sizes.map(|(persons, classes)| json!({ "persons": persons, "classes": classes })).collect();
    let mut object = Map::from_iter([
        ("smallest".to_owned(), hidden.smallest.into()),
        ("classes".to_owned(), hidden.classes.into()),
        ("unique_persons".to_owned(), hidden.unique_persons.into()),
        ("smallest_classes".to_owned(), sizes.into()),
    ]);
    if let Some(below_k) = hidden.below_k {
        object.insert("below_k".to_owned(), below_k.into());
    }
    object
}
