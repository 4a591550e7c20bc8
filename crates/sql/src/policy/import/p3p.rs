//! P3P 1.0 policies: STATEMENTs of purposes, recipients, a retention and data.
//!
//! # Guarantee
//! What the file says is followed or refused, never passed over: an EXTENSION, an element that P3P does not have at its place, a
//! second policy, or two statements of which one allows what the other does not are errors with their line ([`check_known`]).
//! # Deviations
//! A purpose or recipient with `required="opt-in"` allows nothing until a person opts in. If two statements allow data
//! for the same purpose and recipient, the earlier of their last days counts. A reference names exactly one column:
//! `#user.name` does not include `#user.name.given`. Namespaces are ignored, and external entities are refused.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use chrono::NaiveDate;
use roxmltree::{Document, Node};

use super::{ImportError, ImportFault, ImportedRow, last_day_of_all, read_text};

/// The elements that may stand in others. What stands in elements that are not listed here is for human readers.
const KNOWN: [(&str, &[&str]); 9] = [
    ("POLICIES", &["EXPIRY", "DATASCHEMA", "POLICY"]),
    ("POLICY", &["TEST", "EXPIRY", "DATASCHEMA", "ENTITY", "ACCESS", "DISPUTES-GROUP", "STATEMENT"]),
    ("STATEMENT", &["CONSEQUENCE", "NON-IDENTIFIABLE", "PURPOSE", "RECIPIENT", "RETENTION", "DATA-GROUP"]),
    (
        "PURPOSE",
        &[
            "current",
            "admin",
            "develop",
            "tailoring",
            "pseudo-analysis",
            "pseudo-decision",
            "individual-analysis",
            "individual-decision",
            "contact",
            "historical",
            "telemarketing",
            "other-purpose",
        ],
    ),
    ("RECIPIENT", &["ours", "delivery", "same", "other-recipient", "unrelated", "public"]),
    ("RETENTION", &["no-retention", "stated-purpose", "legal-requirement", "business-practices", "indefinitely"]),
    ("DATA-GROUP", &["DATA"]),
    ("DATA", &["CATEGORIES"]),
    (
        "CATEGORIES",
        &[
            "physical",
            "online",
            "uniqueid",
            "purchase",
            "financial",
            "computer",
            "navigation",
            "interactive",
            "demographic",
            "content",
            "state",
            "political",
            "health",
            "preference",
            "location",
            "government",
            "other-category",
        ],
    ),
];

/// Elements that a STATEMENT has at most once.
const ONCE: [&str; 3] = ["PURPOSE", "RECIPIENT", "RETENTION"];

/// The settings that P3P itself does not have.
pub(super) struct PolicyTerms {
    pub(super) k: Option<u32>,
    pub(super) level: u8,
    /// The last day of each retention, by its name in P3P.
    pub(super) retention: BTreeMap<String, NaiveDate>,
    /// The column of each data element, by its name in P3P.
    pub(super) data: BTreeMap<String, String>,
}

pub(super) fn read(path: &Path, terms: &PolicyTerms) -> Result<Vec<ImportedRow>, ImportError> {
    rows(&read_text(path)?, terms).map_err(|fault| fault.of(path))
}

fn rows(text: &str, terms: &PolicyTerms) -> Result<Vec<ImportedRow>, ImportFault> {
    let document = Document::parse(text).map_err(|error| ImportFault::Syntax {
        line: error.pos().row as usize,
        what: "this is not well-formed XML, or it has a document type, which is refused".to_owned(),
    })?;
    check_known(&document)?;
    // One row per purpose and recipient, in the order of their first use.
    let mut rows: Vec<ImportedRow> = Vec::new();
    let mut said: HashMap<(String, String, String), Allowed> = HashMap::new();
    let statements = document.descendants().filter(|node| is_named(node, "STATEMENT"));
    for (index, statement) in statements.enumerate() {
        let is_about_nobody = child(statement, "NON-IDENTIFIABLE").is_some();
        if is_about_nobody && child(statement, "PURPOSE").is_none() {
            continue;
        }
        let line = document.text_pos_at(statement.range().start).row as usize;
        let needed = |element: &'static str| child(statement, element).ok_or(ImportFault::Statement { line, element });
        let purposes = needed("PURPOSE")?;
        let recipients = needed("RECIPIENT")?;
        let last_day = last_day(needed("RETENTION")?, terms)?;
        let k = terms.k.ok_or(ImportFault::NoK { position: index + 1 })?;
        let columns: Vec<String> = statement
            .descendants()
            .filter(|node| is_named(node, "DATA"))
            .filter_map(|node| node.attribute("ref"))
            .map(|reference| column(reference, terms))
            .collect();
        for purpose in purposes.children().filter(Node::is_element) {
            for recipient in recipients.children().filter(Node::is_element) {
                let row = row_of(&mut rows, purpose, recipient, k, terms.level);
                let is_open = [purpose, recipient].iter().all(|node| node.attribute("required") != Some("opt-in"));
                let allowed = if is_open && last_day.is_some() { Allowed::Yes } else { Allowed::No };
                for column in &columns {
                    let names = [purpose, recipient].map(|node| node.tag_name().name().to_owned());
                    let [purpose, recipient] = names;
                    let about = (purpose, recipient, column.clone());
                    if *said.entry(about).or_insert(allowed) != allowed {
                        return Err(ImportFault::Contradiction { line, column: column.clone() });
                    }
                }
                let Some(last_day) = last_day else { continue };
                for column in columns.iter().filter(|_| allowed == Allowed::Yes) {
                    let known = row.columns.entry(column.clone()).or_insert(last_day);
                    *known = last_day.min(*known);
                }
            }
        }
    }
    Ok(rows)
}

/// Whether a statement allows a column for a purpose and a recipient.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Allowed {
    Yes,
    No,
}

/// Refuses whatever P3P does not have at its place, because its meaning is not known.
fn check_known(document: &Document<'_>) -> Result<(), ImportFault> {
    let line = |node: Node<'_, '_>| document.text_pos_at(node.range().start).row as usize;
    let unknown = |node: Node<'_, '_>, what: String| ImportFault::Syntax { line: line(node), what };
    let mut n_policies = 0;
    for node in document.descendants().filter(Node::is_element) {
        let name = node.tag_name().name();
        if name == "EXTENSION" {
            let what = "an EXTENSION may ask for anything, and kohort knows none".to_owned();
            return Err(unknown(node, what));
        }
        if name == "POLICY" {
            n_policies += 1;
            if n_policies > 1 {
                return Err(unknown(node, "the file has several policies, which are for different data".to_owned()));
            }
        }
        if let Some(required) = node.attribute("required")
            && !["always", "opt-in", "opt-out"].contains(&required)
        {
            return Err(unknown(node, format!("required must be always, opt-in or opt-out in {name}")));
        }
        if name == "DATA"
            && node.attribute("ref").is_none()
            && node.parent().is_some_and(|up| is_named(&up, "DATA-GROUP"))
        {
            return Err(unknown(node, "DATA has no ref, so it names no column".to_owned()));
        }
        let Some((_, known)) = KNOWN.iter().find(|(parent, _)| *parent == name) else { continue };
        let parts: Vec<Node<'_, '_>> = node.children().filter(Node::is_element).collect();
        for part in &parts {
            let part_name = part.tag_name().name();
            if !known.contains(&part_name) && part_name != "EXTENSION" {
                return Err(unknown(*part, format!("P3P has no {part_name} in {name}")));
            }
            let n_same = parts.iter().filter(|other| other.tag_name().name() == part_name).count();
            if n_same > 1 && ONCE.contains(&part_name) {
                return Err(unknown(*part, format!("{name} has several {part_name}s")));
            }
        }
        if name == "RETENTION" && parts.len() > 1 {
            return Err(unknown(node, "RETENTION names several retentions".to_owned()));
        }
    }
    Ok(())
}

/// Whether this is an element of this name, in any namespace.
fn is_named(node: &Node<'_, '_>, name: &str) -> bool {
    node.is_element() && node.tag_name().name() == name
}

fn child<'a, 'input>(node: Node<'a, 'input>, name: &str) -> Option<Node<'a, 'input>> {
    node.children().find(|child| is_named(child, name))
}

fn row_of<'r>(
    rows: &'r mut Vec<ImportedRow>,
    purpose: Node<'_, '_>,
    recipient: Node<'_, '_>,
    k: u32,
    level: u8,
) -> &'r mut ImportedRow {
    let purpose = Some(purpose.tag_name().name().to_owned());
    let recipient = Some(recipient.tag_name().name().to_owned());
    let position = rows.iter().position(|row| row.purpose == purpose && row.recipient == recipient);
    let position = position.unwrap_or_else(|| {
        rows.push(ImportedRow { person: None, purpose, recipient, k, level, columns: BTreeMap::new() });
        rows.len() - 1
    });
    &mut rows[position]
}

/// The last day on which the data of a statement may be shown, after the shortest retention that the statement names;
/// `None` if they may not be shown.
fn last_day(retention: Node<'_, '_>, terms: &PolicyTerms) -> Result<Option<NaiveDate>, ImportFault> {
    let mut earliest: Option<NaiveDate> = None;
    for name in retention.children().filter(Node::is_element).map(|node| node.tag_name().name()) {
        let last_day = match (terms.retention.get(name), name) {
            (_, "no-retention") => return Ok(None),
            (Some(last_day), _) => *last_day,
            (None, "indefinitely") => last_day_of_all(),
            (None, name) => return Err(ImportFault::Retention { name: name.to_owned() }),
        };
        earliest = Some(earliest.map_or(last_day, |earliest| earliest.min(last_day)));
    }
    Ok(earliest)
}

/// The column of a reference such as `#user.bdate`, in any data schema.
fn column(reference: &str, terms: &PolicyTerms) -> String {
    let data = reference.rsplit_once('#').map_or(reference, |(_, data)| data);
    terms.data.get(data).cloned().unwrap_or_else(|| data.replace('.', "_"))
}
