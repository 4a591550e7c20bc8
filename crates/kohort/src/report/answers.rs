//! [`answers`]: the three questions that Opinion 05/2014 of the Article 29 Working Party (WP216) asks of every anonymization,
//! answered for one release.
//!
//! No answer says that a risk is gone. It says which requirement bounds the risk, by which figure, and what the requirement does
//! not cover.

use kohort_model::report::{Answer, AnswerReport, CountedIn, Question, ReaderKind, ReaderReport};
use kohort_model::{Manifest, Role, Table};

use super::words::{count, counted, percent, quoted};

pub(super) fn answers(manifest: &Manifest, readers: &[ReaderReport], tables: &[Table]) -> Vec<AnswerReport> {
    vec![singling_out(manifest, readers, tables), linkability(manifest, readers), inference(manifest, tables)]
}

fn singling_out(manifest: &Manifest, readers: &[ReaderReport], tables: &[Table]) -> AnswerReport {
    let mut because = Vec::new();
    for reader in readers.iter().filter(|reader| reader.kind != ReaderKind::Coalition || reader.k_asked.is_some()) {
        let who = match (reader.kind, &reader.name) {
            (ReaderKind::Everybody, _) | (_, None) => {
                "Whoever knows all quasi-identifying columns of a person".to_owned()
            }
            (ReaderKind::Audience, Some(name)) => {
                format!("Audience '{name}', which knows {}", quoted(&reader.knows))
            }
            (ReaderKind::Coalition, Some(name)) if name == "all" => "All audiences together".to_owned(),
            (ReaderKind::Coalition, Some(name)) => format!("Coalition '{name}'"),
        };
        let crowd = match reader.counted {
            CountedIn::PersonsAndRegister => "persons of the private table and the registers",
            CountedIn::Persons | CountedIn::Unknown => "persons",
        };
        because.push(format!("{who} finds at least {} {crowd} who look the same.", count(reader.k)));
    }
    let unasked = readers.iter().any(|reader| {
        reader.kind == ReaderKind::Coalition && reader.name.as_deref() == Some("all") && reader.k_asked.is_none()
    });
    if unasked {
        because.push(format!(
            "Nothing was asked for audiences that put together what they know: all of them together see classes of {}.",
            counted(manifest.achieved.collusion_k.unwrap_or(0), "person", "persons")
        ));
    }
    let copied = copied_columns(tables);
    if !copied.is_empty() {
        because.push(format!(
            "This rests on the choice of columns. It does not hold for somebody who also knows {} of a person, because these \
             cells are released as they are.",
            quoted(&copied)
        ));
    }
    if manifest.register.is_some() {
        because.push(
            "The persons of a class hide among the persons of the registers. Somebody who is known to be in the private \
             table hides only among its persons, whose number per class is not released."
                .to_owned(),
        );
    }
    let answer = if unasked || manifest.register.is_some() { Answer::InPart } else { Answer::Bounded };
    AnswerReport { question: Question::SinglingOut, answer, because }
}

fn linkability(manifest: &Manifest, readers: &[ReaderReport]) -> AnswerReport {
    let highest = readers
        .iter()
        .filter(|reader| reader.kind != ReaderKind::Coalition)
        .map(|reader| reader.journalist.highest)
        .fold(0.0, f64::max);
    let mut because = vec![format!(
        "A record of another source that is matched by the quasi-identifying columns belongs to one of the persons of a class, \
         so a single match is right with a chance of at most {}.",
        percent(highest)
    )];
    match &manifest.previous {
        Some(previous) => because.push(format!(
            "{} taken into account: who reads all of them still has to consider {} for everybody.",
            if previous.manifests.len() == 1 {
                "1 earlier release was".to_owned()
            } else {
                format!("{} earlier releases were", previous.manifests.len())
            },
            counted(previous.k, "person", "persons")
        )),
        None => because.push(
            "Other releases of the same persons are not taken into account. Read together with one, this release may show \
             less than k persons; `kohort audit` measures that."
                .to_owned(),
        ),
    }
    if !manifest.links.is_empty() {
        because.push(
            "The rows of one person in several tables are linked on purpose, by numbered keys. They count as part of what the \
             person looks like, so k holds for all of them together."
                .to_owned(),
        );
    }
    AnswerReport { question: Question::Linkability, answer: Answer::InPart, because }
}

fn inference(manifest: &Manifest, tables: &[Table]) -> AnswerReport {
    let mut because = Vec::new();
    let (mut n_asked, mut n_unasked) = (0, 0);
    for (column, reached) in &manifest.achieved.sensitive {
        let is_asked = manifest.requirement.sensitive.get(column).is_some_and(|settings| !settings.is_empty());
        *(if is_asked { &mut n_asked } else { &mut n_unasked }) += 1;
        let bound = if is_asked { "" } else { " Nothing was asked of it, so this is chance." };
        because.push(format!(
            "'{column}': who finds the class of a person is at most {} sure of the value; the class with the fewest shows {}.{bound}",
            percent(reached.alpha),
            counted(reached.l, "distinct value", "distinct values"),
        ));
    }
    if manifest.achieved.sensitive.is_empty() {
        because.push(
            "No column is declared sensitive, so nothing bounds what the class of a person tells about the person."
                .to_owned(),
        );
    }
    let plain: Vec<String> = tables
        .iter()
        .flat_map(|table| table.columns.iter().filter(|column| column.role == Role::Plain))
        .map(|column| column.name.clone())
        .collect();
    if !plain.is_empty() {
        because.push(format!("Nothing bounds what is inferred from {}, released as plain.", quoted(&plain)));
    }
    for (audience, learned) in &manifest.achieved.learned {
        let certain: u64 = learned.values().map(|learned| learned.certain).sum();
        if certain > 0 {
            because.push(format!(
                "Audience '{audience}' learns {} for sure in columns that only others know.",
                counted(certain, "cell", "cells")
            ));
        }
    }
    because.push(
        "What is true of whole groups, such as 'smokers fall ill more often', can be learned from any useful release and is \
         applied to persons who are not even in it."
            .to_owned(),
    );
    let answer = match (n_asked, n_unasked) {
        (0, _) => Answer::NotBounded,
        (_, 0) if plain.is_empty() => Answer::Bounded,
        _ => Answer::InPart,
    };
    AnswerReport { question: Question::Inference, answer, because }
}

/// Columns that are released as they are, and join nothing.
fn copied_columns(tables: &[Table]) -> Vec<String> {
    let of_table = |table: &Table| -> Vec<String> {
        let is_copied = |role: Role| matches!(role, Role::Sensitive | Role::Plain);
        table.columns.iter().filter(|column| is_copied(column.role)).map(|column| column.name.clone()).collect()
    };
    let mut names: Vec<String> = tables.iter().flat_map(of_table).collect();
    names.sort_unstable();
    names.dedup();
    names
}
