//! What became of a job: k asked and reached, what it cost, where the release is.

use kohort_io::TablesManifest;
use kohort_model::{JoinManifest, Manifest, PreviousManifest, RegisterManifest, SavingsManifest, Setting};
use serde_json::{Value, json};

use super::{count_of, number};

/// For people.
pub(crate) fn words(manifest: &TablesManifest, place: Option<&str>) -> String {
    let TablesManifest { manifest, table_loss, .. } = manifest;
    let columns = manifest.loss.columns.keys().map(|column| column.chars().count() + 2);
    let tables = table_loss.keys().map(|table| table.chars().count() + 6);
    let sensitive = manifest.achieved.sensitive.keys().map(|column| column.chars().count());
    let audiences = manifest.audiences.keys().map(|audience| audience.chars().count() + 9);
    let registers = manifest.registers.iter().map(|register| register.name.chars().count() + 9);
    let widest = columns.chain(tables).chain(sensitive).chain(audiences).chain(registers).max().unwrap_or(0).max(16);
    let mut text = String::new();
    let mut line = |name: &str, value: &str| text += &format!("{name:<widest$} {value}\n");
    if manifest.audiences.is_empty() {
        line("k", &format!("{} asked, {} reached", manifest.requirement.k, manifest.achieved.k));
    }
    for (name, audience) in &manifest.audiences {
        let reached = manifest.achieved.audiences.get(name).copied().unwrap_or_default();
        let knows = audience.quasi.join(", ");
        line(&format!("audience {name}"), &format!("k = {} asked, {reached} reached: {knows}", audience.k));
    }
    if let Some(reached) = manifest.achieved.collusion_k {
        let asked = manifest.requirement.collusion_k.map_or_else(|| "nothing".to_owned(), |k| format!("k = {k}"));
        let unit = if manifest.requirement.collusion_k.is_none() { "k = " } else { "" };
        line("all together", &format!("{asked} asked, {unit}{reached} reached"));
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
        for (name, value) in joined(join, manifest.classes) {
            line(name, &value);
        }
    }
    if let Some(previous) = &manifest.previous {
        line("read together", &together(previous));
    }
    for table in manifest.tables.iter().filter(|_| manifest.tables.len() > 1 && manifest.register.is_none()) {
        let rows =
            format!("{} rows in, {} released, {} left out", table.rows_in, table.rows_out, table.rows_suppressed);
        // Where no column is quasi there is nothing to blur.
        let loss = table_loss.get(&table.name).filter(|loss| !loss.columns.is_empty());
        let loss = loss.map_or_else(String::new, |loss| format!(", loss {}", number(loss.lm)));
        line(&format!("table {}", table.name), &format!("{rows}{loss}"));
    }
    line("loss", &format!("{} (0 is nothing lost, 1 is everything)", number(manifest.loss.lm)));
    for (column, loss) in &manifest.loss.columns {
        line(&format!("  {column}"), &number(*loss));
    }
    if let Some(savings) = &manifest.savings {
        line("saved", &saved(savings));
    }
    let risk = &manifest.risk;
    line("highest risk", &format!("{} before, {} after", number(risk.highest.before), number(risk.highest.after)));
    line("average risk", &format!("{} before, {} after", number(risk.average.before), number(risk.average.after)));
    let files: Vec<&str> = manifest.tables.iter().map(|table| table.file.as_str()).collect();
    let release = match (place, files.as_slice()) {
        (None, _) => "nowhere: this was a dry run".to_owned(),
        (Some(place), [""]) => place.to_owned(),
        (Some(place), files) => format!("{place} ({}, manifest.json)", files.join(", ")),
    };
    line("release", &release);
    text
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

/// What became of all registers together.
fn joined(join: &JoinManifest, n_classes: u64) -> Vec<(&'static str, String)> {
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
    if join.found == 0 {
        let warning = "nobody of the private table is in the registers: are they of the same people, and real?";
        lines.push(("warning", warning.to_owned()));
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
        "at most {} of a class are of the private table, {} for the average person",
        percent(presence.highest),
        percent(presence.average)
    );
    lines.push(("presence", shares));
    if presence.certain > 0 {
        let classes = count_of(presence.certain, n_classes);
        let hold = if presence.certain == 1 { "class holds" } else { "classes hold" };
        let warning = format!("{classes} {hold} nobody else: whoever is found there is in the private table");
        lines.push(("warning", warning));
    }
    lines
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

/// What one release for all audiences loses less than one on the union of their columns.
fn saved(savings: &SavingsManifest) -> String {
    let (release, union) = (savings.release.penalty(), savings.union.penalty());
    if savings.shape == "unchanged" {
        return "everything: the table satisfies every audience as it is".to_owned();
    }
    if union <= release {
        return "nothing against one k for all columns together".to_owned();
    }
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let in_butterflies = percent(savings.in_butterflies);
    format!(
        "{} of what one k for all columns together would lose; {in_butterflies} of the rows are in butterflies",
        percent(1.0 - release / union)
    )
}

/// What the verifier counted for a setting, in the setting's terms.
fn reached(manifest: &Manifest, column: &str, key: &str) -> Option<String> {
    let achieved = manifest.achieved.sensitive.get(column)?;
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

/// For programs: the manifest, and where the release is, null after a dry run.
pub(crate) fn json(manifest: &TablesManifest, place: Option<&str>) -> String {
    let mut object = serde_json::to_value(manifest).unwrap_or_default();
    if let Value::Object(fields) = &mut object {
        fields.insert("release".to_owned(), json!(place));
        let unwritten = fields.get_mut("tables").and_then(Value::as_array_mut).filter(|_| place.is_none());
        for table in unwritten.into_iter().flatten().filter_map(Value::as_object_mut) {
            table.remove("file");
            table.remove("sha256");
        }
    }
    format!("{object:#}\n")
}
