//! Renders the result of a job: k asked and reached, the loss, the place of the release.

use std::collections::BTreeMap;

use kohort::model::{
    Achieved, AchievedCoalition, AchievedLearned, AchievedSensitive, Coalition, CoalitionManifest, ColumnManifest,
    JoinManifest, LabelsManifest, Manifest, PreviousManifest, RegisterManifest, SavingsManifest, Setting, Settings,
};
use kohort::{Memory, PlannedCells, TotalChange};
use serde_json::{Value, json};

use super::{count_of, number};

/// At most this many of the rows that were left out are listed.
const MOST_ROWS_NAMED: usize = 50;

/// What a job in cells would take, for people.
pub(crate) fn planned(planned: PlannedCells, memory: Memory) -> String {
    let PlannedCells { n_rows, n_cells, rows_of_largest_cell, n_bytes_on_disk, n_passes } = planned;
    format!(
        "rows             {n_rows}\nmemory           {} MB for the data\ncells            {n_cells}, the largest of about {rows_of_largest_cell} rows\n\
         passes           {n_passes} over all rows\ndisk             at most {} MB\n",
        memory.n_bytes().div_ceil(1 << 20),
        n_bytes_on_disk.div_ceil(1 << 20)
    )
}

/// The same for programs.
pub(crate) fn planned_json(planned: PlannedCells, memory: Memory) -> String {
    let PlannedCells { n_rows, n_cells, rows_of_largest_cell, n_bytes_on_disk, n_passes } = planned;
    let object = json!({
        "rows": n_rows, "cells": n_cells, "rows_of_largest_cell": rows_of_largest_cell, "passes": n_passes,
        "bytes_on_disk": n_bytes_on_disk, "memory": memory.n_bytes(),
    });
    format!("{object:#}\n")
}

/// The result in words, for people.
pub(crate) fn words(manifest: &Manifest, place: Option<&str>) -> String {
    let Manifest { table_loss, references, .. } = manifest;
    let columns = manifest.loss.columns.keys().map(|column| column.chars().count() + 2);
    let tables = table_loss.keys().map(|table| table.chars().count() + 6);
    let sensitive = manifest.achieved.sensitive.keys().map(|column| column.chars().count());
    let audiences = manifest.audiences.keys().map(|audience| audience.chars().count() + 9);
    let coalition = |(name, asked): (&String, &CoalitionManifest)| {
        name.chars().count() + asked.audiences.join(", ").chars().count() + 3
    };
    let named = manifest.requirement.coalitions.iter().filter(|(name, _)| *name != Coalition::ALL);
    let audiences = audiences.chain(named.map(coalition));
    let registers = manifest.registers.iter().map(|register| register.name.chars().count() + 9);
    let of_references = references.iter();
    let of_references = of_references.map(|entry| entry.table.chars().count() + entry.column.chars().count() + 12);
    let widest = columns
        .chain(tables)
        .chain(of_references)
        .chain(sensitive)
        .chain(audiences)
        .chain(registers)
        .max()
        .unwrap_or(0)
        .max(16);
    let mut text = String::new();
    let mut line = |name: &str, value: &str| text += &format!("{name:<widest$} {value}\n");
    if manifest.audiences.is_empty() {
        line("k", &format!("{} asked, {} reached", manifest.requirement.k, manifest.achieved.k));
    }
    for (name, audience) in &manifest.audiences {
        let reached = manifest.achieved.audiences.get(name).copied().unwrap_or_default();
        let knows = audience.quasi.join(", ");
        line(&format!("audience {name}"), &format!("k = {} asked, {reached} reached: {knows}", audience.k));
        if let Some(learned) = manifest.achieved.learned.get(name) {
            for text in learns(learned, &audience.sensitive) {
                line("", &text);
            }
        }
    }
    for (name, reached) in coalitions(&manifest.achieved) {
        let asked = manifest.requirement.coalitions.get(name);
        let k = match asked.and_then(|asked| asked.k) {
            None => format!("nothing asked, k = {} reached", reached.k),
            Some(k) => format!("k = {k} asked, {} reached", reached.k),
        };
        let who = match (name, asked) {
            (Coalition::ALL, _) => "all together".to_owned(),
            (name, Some(asked)) => format!("{name} ({})", asked.audiences.join(", ")),
            (name, None) => name.to_owned(),
        };
        line(&who, &k);
        let nothing = Settings::new();
        let settings = asked.map_or(&nothing, |asked| &asked.sensitive);
        for (column, sensitive) in &reached.sensitive {
            line("", &together_learn(column, sensitive, settings.get(column)));
        }
        for text in learns(&reached.learned, settings) {
            line("", &text);
        }
    }
    for (column, settings) in &manifest.requirement.sensitive {
        for (key, setting) in settings {
            if let Some(reached) = reached(manifest, column, key) {
                line(column, &format!("{key} = {} asked, {reached} reached", setting_text(setting)));
            }
        }
    }
    for (column, achieved) in &manifest.achieved.sensitive {
        if !manifest.requirement.sensitive.contains_key(column) {
            line(column, &format!("nothing asked, l = {} reached", achieved.l));
        }
    }
    line("classes", &manifest.classes.to_string());
    let persons = &manifest.persons;
    line("persons", &format!("{} in, {} released", persons.n_in, persons.n_out));
    line("suppressed", &count_of(persons.suppressed, persons.n_in));
    for register in &manifest.registers {
        line(&format!("register {}", register.name), &used(register));
    }
    if let Some(join) = &manifest.register {
        for (name, value) in joined(join, manifest) {
            line(name, &value);
        }
    }
    if let Some(previous) = &manifest.previous {
        line("read together", &together(previous));
    }
    for table in manifest.tables.iter().filter(|_| manifest.tables.len() > 1 && manifest.register.is_none()) {
        let rows =
            format!("{} rows in, {} released, {} left out", table.rows_in, table.rows_out, table.rows_suppressed);
        // A table without quasi columns loses nothing.
        let loss = table_loss.get(&table.name).filter(|loss| !loss.columns.is_empty());
        let loss = loss.map_or_else(String::new, |loss| format!(", loss {}", number(loss.lm)));
        line(&format!("table {}", table.name), &format!("{rows}{loss}"));
    }
    for reference in references {
        let value = format!("{} kept, {} set to null", reference.kept, reference.removed);
        line(&format!("references {}.{}", reference.table, reference.column), &value);
    }
    line("loss", &format!("{} (0 is nothing lost, 1 is everything)", number(manifest.loss.lm)));
    for (column, loss) in &manifest.loss.columns {
        line(&format!("  {column}"), &number(*loss));
    }
    if let Some(savings) = &manifest.savings {
        line("saved", &saved(savings));
        if let Some(cost) = savings.steer_cost {
            let times = format!("{cost:.2} times the loss of a release for which all columns decide");
            line("steer", &format!("only common columns decide who is grouped: {times} (only you are told)"));
        }
    }
    let risk = &manifest.risk;
    for (name, risk) in [("highest risk", &risk.highest), ("average risk", &risk.average)] {
        let before = risk.before.map_or_else(String::new, |before| format!("{} before, ", number(before)));
        line(name, &format!("{before}{} after", number(risk.after)));
    }
    let listings = manifest.tables.iter().flat_map(|table| table.columns.values()).filter_map(listing_of);
    let files: Vec<&str> = manifest.tables.iter().map(|table| table.file.as_str()).chain(listings).collect();
    let release = match (place, files.as_slice()) {
        (None, _) => "nowhere: this was a dry run".to_owned(),
        (Some(place), [""]) => place.to_owned(),
        (Some(place), files) => format!("{place} ({}, manifest.json)", files.join(", ")),
    };
    line("release", &release);
    text
}

/// The file with the released part of a column's hierarchy.
fn listing_of(column: &ColumnManifest) -> Option<&str> {
    match &column.labels {
        Some(LabelsManifest::Hierarchy { file, .. }) => file.as_deref(),
        _ => None,
    }
}

/// All audiences together first, then coalitions by name.
fn coalitions(achieved: &Achieved) -> impl Iterator<Item = (&str, &AchievedCoalition)> {
    let named = achieved.coalitions.iter().filter(|(name, _)| *name != Coalition::ALL);
    achieved
        .coalitions
        .get_key_value(Coalition::ALL)
        .into_iter()
        .chain(named)
        .map(|(name, reached)| (name.as_str(), reached))
}

/// What a coalition learns about a sensitive column.
fn together_learn(column: &str, reached: &AchievedSensitive, asked: Option<&BTreeMap<String, Setting>>) -> String {
    let figure = |(key, setting): (&String, &Setting)| {
        let reached = reached_of(reached, key)?;
        Some(format!("{key} = {} asked, {reached} reached", setting_text(setting)))
    };
    let figures: Vec<String> = asked.into_iter().flatten().filter_map(figure).collect();
    match figures.as_slice() {
        [] => format!("{column}: nothing asked, l = {} reached", reached.l),
        figures => format!("{column}: {}", figures.join("; ")),
    }
}

/// What audiences learn about quasi columns that they don't know.
fn learns(learned: &BTreeMap<String, AchievedLearned>, asked: &Settings) -> Vec<String> {
    let text = |(column, learned): (&String, &AchievedLearned)| {
        let asked_of = |key: &str| asked.get(column).and_then(|settings| settings.get(key)).map(setting_text);
        let l = learned.l.map_or_else(|| "no cell tells anything".to_owned(), |l| format!("{l} reached"));
        let t = format!("{} reached", number(learned.t));
        let figure =
            |key: &str, reached: String| asked_of(key).map(|asked| format!("{key} = {asked} asked, {reached}"));
        let mut figures: Vec<String> = [figure("l", l), figure("t", t)].into_iter().flatten().collect();
        let certain = match learned.certain {
            0 => "nobody's cell for sure".to_owned(),
            1 => "the cell of 1 person for sure".to_owned(),
            n => format!("the cells of {n} persons for sure"),
        };
        figures.push(format!("learns {certain}"));
        format!("{column}: {}", figures.join("; "))
    };
    learned.iter().map(text).collect()
}

/// How a register was used.
fn used(register: &RegisterManifest) -> String {
    let RegisterManifest { rows, rows_incomplete, rows_used, date, .. } = register;
    let incomplete = match rows_incomplete {
        0 => String::new(),
        incomplete => format!(", {incomplete} incomplete and not used"),
    };
    let date = date.as_ref().map_or_else(String::new, |date| format!(" of {date}"));
    let noun = if *rows == 1 { "row" } else { "rows" };
    format!("{rows} {noun}{date}, {rows_used} used to fill classes{incomplete}")
}

/// What was done with all registers together.
fn joined(join: &JoinManifest, manifest: &Manifest) -> Vec<(&'static str, String)> {
    let Manifest { algorithm, classes: n_classes, .. } = manifest;
    let (n_classes, n_persons) = (*n_classes, manifest.persons.n_in);
    let mut lines = Vec::new();
    if join.joined_by == "values" {
        lines.push((
            "joined",
            "by quasi values, one to one: nothing tells whether they are the same persons".to_owned(),
        ));
    }
    if join.contradicting > 0 {
        let persons = if join.contradicting == 1 { "person" } else { "persons" };
        lines.push(("contradicting", format!("{} {persons} of the registers, not used", join.contradicting)));
    }
    let n_unmatched = n_persons.saturating_sub(join.found);
    lines.push(("in registers", format!("{} of {n_persons} persons", join.found)));
    match join.unmatched.as_deref() {
        Some("count") if n_unmatched > 0 => {
            let others = "counted as persons who are not in the register, as the spec says";
            lines.push(("unmatched", format!("{n_unmatched}, {others}")));
        }
        Some(_) if n_unmatched > 0 => {
            let others = "each may be a person of the register under other values, so they don't add to these";
            lines.push(("unmatched", format!("{n_unmatched}, {others}")));
        }
        _ => {}
    }
    if join.found > 0 && n_unmatched as f64 > 0.01 * n_persons as f64 {
        let share = 100.0 * n_unmatched as f64 / n_persons as f64;
        lines.push((
            "warning",
            format!("no register row matches {share:.1} % of the persons: do the files describe the same people?"),
        ));
    }
    if join.found == 0 {
        let warning =
            "nobody of the private table is in the registers: do these describe the same people, and real ones?";
        lines.push(("warning", warning.to_owned()));
    }
    if let Some(names) = other_partitioners(join, algorithm) {
        lines.push(("partitioner", names));
    }
    if let Some(group_k) = join.group_k {
        lines.push(("sensitive groups", format!("{}, of at least {group_k} persons", join.sensitive_groups)));
    }
    if join.release == "microdata" {
        lines.push(("presence", "public: only rows of the private table are released".to_owned()));
        return lines;
    }
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let presence = &join.presence;
    let shares = format!(
        "a reader who has the register can be {} sure at most, {} on average",
        percent(presence.highest),
        percent(presence.average)
    );
    lines.push(("presence", shares));
    if presence.certain > 0 {
        let classes = count_of(presence.certain, n_classes);
        let hold = if presence.certain == 1 { "class holds" } else { "classes hold" };
        let certain = "so a reader is sure that everybody there is in the private table";
        let warning = format!("{classes} {hold} only private persons, {certain}");
        lines.push(("warning", warning));
    }
    lines
}

/// The partitioners that made the classes, if they are not the algorithm that was asked for.
fn other_partitioners(join: &JoinManifest, algorithm: &str) -> Option<String> {
    match join.partitioners.as_slice() {
        [] => None,
        [only] if only == algorithm => None,
        [only] => Some(format!("{only}, because there are too many rows for {algorithm}")),
        [first, others @ ..] => {
            Some(format!("{first}, and {} where there are too many rows for it", others.join(" and ")))
        }
    }
}

/// What readers of earlier releases learn.
fn together(previous: &PreviousManifest) -> String {
    let releases = match previous.manifests.len() {
        1 => "1 earlier release".to_owned(),
        n => format!("{n} earlier releases"),
    };
    let l = previous.l.iter().map(|(column, l)| format!(", l = {l} of {column}"));
    format!("with {releases}: k = {}{}", previous.k, l.collect::<String>())
}

/// Tells the publisher who was left out because of earlier releases, by row numbers of the private table.
pub(crate) fn left_out(rows: &[u64]) -> Option<String> {
    let named: Vec<String> = rows.iter().take(MOST_ROWS_NAMED).map(u64::to_string).collect();
    let (row, are) = match rows.len() {
        0 => return None,
        1 => ("row", "is"),
        _ => ("rows", "are"),
    };
    let more = match rows.len() - named.len() {
        0 => String::new(),
        n => format!(" and {n} more, all of which --json lists,"),
    };
    Some(format!(
        "{row} {}{more} of the private table {are} left out, because beside the earlier releases no class can take them (only \
         you are told which)",
        named.join(", ")
    ))
}

/// Tells the publisher by how much rows that are left out change totals and means, in whole thousandths: exact changes
/// would be cells of the private table if few rows are left out.
pub(crate) fn changed_totals(changes: &[TotalChange]) -> Option<String> {
    let percent = |change: f64| format!("{:+.1} %", 100.0 * rounded(change));
    let of_column = |change: &TotalChange| {
        format!("{} {} (mean {})", column_name(change), percent(change.total), percent(change.mean))
    };
    let changes: Vec<String> = changes.iter().map(of_column).collect();
    let changes = (!changes.is_empty()).then(|| changes.join(", "))?;
    Some(format!("rows that are left out change totals: {changes} (only you are told)"))
}

fn column_name(change: &TotalChange) -> String {
    format!("{}.{}", change.table, change.column)
}

/// In thousandths, and never a negative zero.
fn rounded(change: f64) -> f64 {
    (change * 1000.0).round() / 1000.0 + 0.0
}

/// How much less one release for all audiences loses than a release on the union of their columns.
fn saved(savings: &SavingsManifest) -> String {
    if savings.shape == "unchanged" {
        return "everything: the table satisfies every audience as it is".to_owned();
    }
    let Some(union) = &savings.union else {
        return "not compared, because that would tell audiences about columns they don't know".to_owned();
    };
    let (release, union) = (savings.release.penalty(), union.penalty());
    if union <= release {
        return "nothing, compared with one k for all columns together".to_owned();
    }
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let in_butterflies = percent(savings.in_butterflies);
    let most = match savings.least_penalty {
        Some(least) => format!(" (no release could save more than {})", percent(1.0 - least / union)),
        None => String::new(),
    };
    format!(
        "{} of what one k for all columns together would lose{most}; {in_butterflies} of the rows are in butterflies",
        percent(1.0 - release / union)
    )
}

/// The count of the verifier for a setting, in the terms of the setting.
fn reached(manifest: &Manifest, column: &str, key: &str) -> Option<String> {
    reached_of(manifest.achieved.sensitive.get(column)?, key)
}

fn reached_of(achieved: &AchievedSensitive, key: &str) -> Option<String> {
    match key {
        "l" => Some(achieved.l.to_string()),
        "entropy_l" => Some(number(achieved.entropy_l)),
        "t" => Some(number(achieved.t_by_distance.unwrap_or(achieved.t))),
        "alpha" => Some(number(achieved.alpha)),
        "beta" => Some(number(achieved.beta)),
        _ => None,
    }
}

fn setting_text(setting: &Setting) -> String {
    match setting {
        Setting::Whole(value) => value.to_string(),
        Setting::Number(value) => number(*value),
        Setting::Word(word) => word.clone(),
        Setting::Numbers(numbers) => numbers.iter().map(|value| number(*value)).collect::<Vec<_>>().join(", "),
    }
}

/// For programs: the manifest, and where the release is, which is null after a dry run. With earlier releases also the rows
/// that were left out because of them; with several tables also by how much totals of sensitive numbers changed.
pub(crate) fn json(manifest: &Manifest, place: Option<&str>, rows_left_out: &[u64], totals: &[TotalChange]) -> String {
    let mut object = serde_json::to_value(manifest).unwrap_or_default();
    if let Value::Object(fields) = &mut object {
        fields.insert("release".to_owned(), json!(place));
        if manifest.previous.is_some() {
            fields.insert("rows_left_out".to_owned(), json!(rows_left_out));
        }
        if !totals.is_empty() {
            let entry = |change: &TotalChange| {
                let (total, mean) = (rounded(change.total), rounded(change.mean));
                (column_name(change), json!({ "total": total, "mean": mean }))
            };
            fields.insert("total_changes".to_owned(), totals.iter().map(entry).collect());
        }
        let unwritten = fields.get_mut("tables").and_then(Value::as_array_mut).filter(|_| place.is_none());
        for table in unwritten.into_iter().flatten().filter_map(Value::as_object_mut) {
            table.remove("file");
            table.remove("sha256");
        }
    }
    format!("{object:#}\n")
}
