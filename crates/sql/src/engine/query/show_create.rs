//! `SHOW CREATE`: the statements that would make a view or a DGH as it is.

use std::fmt::Write;

use kohort_model::hierarchy::{MaskSide, Rule};
use kohort_model::spec::{Algorithm, Leftovers};
use kohort_model::{Disclosure, Role};

use crate::SqlError;
use crate::engine::Session;
use crate::engine::session::{Outcome, list, texts};
use crate::hierarchies::Making;
use crate::parser::{Answers, BlockSize, Changes, Clauses, Departures, Purposes};
use crate::view::Definition;

/// The statement that would make the view again.
pub(crate) fn show_create_view(session: &Session, name: &str) -> Result<Outcome, SqlError> {
    let view = session.shared.known_view(name)?;
    list([("view", texts([name])), ("statement", texts([of_view(&view.definition)]))])
}

/// Shows how a DGH is made. One that was read from a file is shown with its pairs.
pub(crate) fn show_create_hierarchy(session: &Session, name: &str) -> Result<Outcome, SqlError> {
    let statement = of_hierarchy(name, session.shared.hierarchies.read().making(name)?);
    list([("dgh", texts([name])), ("statement", texts([statement]))])
}

fn of_hierarchy(name: &str, making: Making) -> String {
    let name = quoted(name);
    match making {
        Making::Rule(rule) => {
            let rule = match rule {
                Rule::Steps(steps) => format!("STEPS ({})", commas(steps.iter().map(f64::to_string))),
                Rule::Mask(MaskSide::Right) => "MASK RIGHT".to_owned(),
                Rule::Mask(MaskSide::Left) => "MASK LEFT".to_owned(),
                Rule::Dates(levels) => {
                    format!("DATES ({})", commas(levels.iter().map(|level| format!("{level:?}").to_lowercase())))
                }
                Rule::Flat => "FLAT".to_owned(),
            };
            format!("CREATE DGH {name} FROM {rule}")
        }
        Making::Pairs(pairs) => {
            let text = |label: &str| format!("'{}'", label.replace('\'', "''"));
            let pair = |(child, parent): &(String, String)| format!("({}, {})", text(child), text(parent));
            let mut statements = format!("CREATE DGH {name}");
            if !pairs.is_empty() {
                let pairs = commas(pairs.iter().map(pair));
                write!(statements, ";\nINSERT INTO DGH {name} VALUES {pairs}").expect("a text takes everything");
            }
            statements
        }
    }
}

fn of_view(definition: &Definition) -> String {
    // All fields are named, so a clause that comes later does not compile.
    let Clauses {
        is_materialized,
        policy,
        algorithm,
        k,
        block,
        t,
        l,
        leftovers,
        disclosure,
        answers,
        purposes,
        changes,
        departures,
    } = &definition.clauses;
    let column = |position: usize| {
        let column = &definition.columns[position];
        let name = quoted(&column.name);
        match &column.hierarchy {
            Some(hierarchy) => format!("{name} DGH_NAME {}", quoted(hierarchy)),
            None => name,
        }
    };
    let columns = |role| commas(definition.with_role(role).into_iter().map(column));
    let materialized = if *is_materialized { "MATERIALIZED " } else { "" };
    let mut lines = vec![
        format!("CREATE {materialized}ANONYMIZATION_VIEW {}", quoted(&definition.name)),
        format!("ON {}", definition.query),
        format!("WITH ANONYMIZATION_ID {}", quoted(&definition.columns[definition.identifier].name)),
        format!("ANONYMIZATION_QUASI_ID ({})", columns(Role::Quasi)),
    ];
    for (role, clause) in [(Role::Sensitive, "ANONYMIZATION_SENSITIVE_ATTR"), (Role::Plain, "ANONYMIZATION_OTHER")] {
        if !definition.with_role(role).is_empty() {
            lines.push(format!("{clause} ({})", columns(role)));
        }
    }
    if let Some(policy) = policy {
        let level = policy.level_column.iter().map(|level| quoted(level));
        let columns = commas([quoted(&policy.k_column)].into_iter().chain(level));
        let table = commas_with(policy.table.to_vec().iter().map(|part| quoted(part)), ".");
        lines.push(format!("{} REFERENCES {table} ({columns})", quoted(&policy.person_column)));
    }
    let mut clause = |is_there: bool, words: String| lines.extend(is_there.then_some(words));
    clause(k.is_some(), format!("K {}", k.unwrap_or_default()));
    clause(*algorithm != Algorithm::Datafly, format!("USING {}", algorithm.word().replace('-', "_")));
    if let BlockSize::Rows(n_rows) = block {
        clause(true, format!("BLOCK {n_rows}"));
    }
    clause(l.is_some(), format!("L_DIVERSITY {}", l.unwrap_or_default()));
    clause(t.is_some(), format!("T_CLOSENESS {}", t.unwrap_or_default()));
    clause(*leftovers == Leftovers::Suppress, "LEFTOVERS SUPPRESS".to_owned());
    clause(*disclosure == Disclosure::Row, "DISCLOSURE ROW".to_owned());
    clause(*answers == Answers::Matching, "ANSWERS MATCHING".to_owned());
    clause(*answers == Answers::Aggregates, "ANSWERS AGGREGATES".to_owned());
    clause(*purposes == Purposes::Apart, "PER PURPOSE".to_owned());
    clause(changes.is_some(), format!("CHANGES {}", if *changes == Some(Changes::Paper) { "PAPER" } else { "EPOCHS" }));
    let departure = if *departures == Some(Departures::Withdraw) { "WITHDRAW" } else { "BATCH" };
    clause(departures.is_some(), format!("DEPARTURES {departure}"));
    lines.join("\n  ")
}

/// A name as it must be written to be read as it is.
fn quoted(name: &str) -> String {
    let is_plain = name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
        && name.chars().all(|part| part.is_ascii_lowercase() || part.is_ascii_digit() || part == '_');
    if is_plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

fn commas(items: impl IntoIterator<Item = String>) -> String {
    commas_with(items, ", ")
}

fn commas_with(items: impl IntoIterator<Item = String>, between: &str) -> String {
    items.into_iter().collect::<Vec<_>>().join(between)
}
