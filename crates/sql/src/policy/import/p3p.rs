//! P3P 1.0 policies: STATEMENTs of purposes, recipients, a retention and data.
//!
//! # Deviations
//! A purpose or recipient with `required="opt-in"` allows nothing until a person does. Data that two statements grant to
//! the same purpose and recipient are shown until the earlier of their last days. A reference names one column: that
//! `#user.name` includes `#user.name.given` is not known here. Namespaces are not looked at, and external entities are
//! refused.

use std::collections::BTreeMap;
use std::path::Path;

use chrono::NaiveDate;
use roxmltree::{Document, Node};

use super::{ImportError, ImportedRow, last_day_of_all, read_text};

/// What P3P leaves open.
pub(super) struct PolicyTerms {
    pub(super) k: Option<u32>,
    pub(super) level: u8,
    /// Last days by P3P's names of retentions.
    pub(super) retention: BTreeMap<String, NaiveDate>,
    /// Columns by P3P's names of data.
    pub(super) data: BTreeMap<String, String>,
}

/// How long a statement's data may be shown.
#[derive(Clone, Copy)]
enum Kept {
    Not,
    Until(NaiveDate),
}

pub(super) fn read(path: &Path, terms: &PolicyTerms) -> Result<Vec<ImportedRow>, ImportError> {
    let text = read_text(path)?;
    let document = Document::parse(&text).map_err(|error| ImportError::Syntax {
        path: path.to_owned(),
        line: error.pos().row as usize,
        what: "not well-formed XML, or with a document type, which is refused".to_owned(),
    })?;
    // By purpose and recipient, each in the order they are met.
    let mut rows: Vec<ImportedRow> = Vec::new();
    let statements = document.descendants().filter(|node| is_named(node, "STATEMENT"));
    for (index, statement) in statements.enumerate() {
        let is_about_nobody = child(statement, "NON-IDENTIFIABLE").is_some();
        if is_about_nobody && child(statement, "PURPOSE").is_none() {
            continue;
        }
        let line = document.text_pos_at(statement.range().start).row as usize;
        let needed = |element: &'static str| {
            child(statement, element).ok_or_else(|| ImportError::Statement { path: path.to_owned(), line, element })
        };
        let purposes = needed("PURPOSE")?;
        let recipients = needed("RECIPIENT")?;
        let kept = retention(path, needed("RETENTION")?, terms)?;
        let k = terms.k.ok_or_else(|| ImportError::NoK { path: path.to_owned(), position: index + 1 })?;
        let columns: Vec<String> = statement
            .descendants()
            .filter(|node| is_named(node, "DATA"))
            .filter_map(|node| node.attribute("ref"))
            .map(|reference| column(reference, terms))
            .collect();
        for purpose in purposes.children().filter(Node::is_element) {
            for recipient in recipients.children().filter(Node::is_element) {
                let row = row_of(&mut rows, purpose, recipient, k, terms.level);
                let is_allowed = [purpose, recipient].iter().all(|node| node.attribute("required") != Some("opt-in"));
                let Kept::Until(last_day) = kept else { continue };
                for column in columns.iter().filter(|_| is_allowed) {
                    let known = row.columns.entry(column.clone()).or_insert(last_day);
                    *known = last_day.min(*known);
                }
            }
        }
    }
    Ok(rows)
}

/// Whether this is an element of this name, in whatever namespace.
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

/// The shortest of the retentions a statement names.
fn retention(path: &Path, retention: Node<'_, '_>, terms: &PolicyTerms) -> Result<Kept, ImportError> {
    let mut kept = Kept::Not;
    for (index, node) in retention.children().filter(Node::is_element).enumerate() {
        let name = node.tag_name().name();
        let last_day = match (terms.retention.get(name), name) {
            (_, "no-retention") => return Ok(Kept::Not),
            (Some(last_day), _) => *last_day,
            (None, "indefinitely") => last_day_of_all(),
            (None, name) => {
                return Err(ImportError::Retention { path: path.to_owned(), name: name.to_owned() });
            }
        };
        kept = match kept {
            Kept::Until(known) => Kept::Until(known.min(last_day)),
            Kept::Not if index == 0 => Kept::Until(last_day),
            Kept::Not => Kept::Not,
        };
    }
    Ok(kept)
}

/// `#user.bdate`, or the same in another data schema, as a column.
fn column(reference: &str, terms: &PolicyTerms) -> String {
    let data = reference.rsplit_once('#').map_or(reference, |(_, data)| data);
    terms.data.get(data).cloned().unwrap_or_else(|| data.replace('.', "_"))
}
