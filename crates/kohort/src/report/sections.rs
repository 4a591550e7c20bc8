//! [`html`]: the page `report.html` of a report, section by section, in words that an officer understands.

use std::collections::BTreeMap;

use kohort_model::report::{
    Answer, Basis, CountedIn, Question, ReaderKind, ReaderReport, ReleaseKind, ReleaseReport, ShareReport,
};
use kohort_model::{AchievedSensitive, Coalition, Setting};
use kohort_plots::{Bar, Frame, Pair, bars, pairs};

use super::page::{Cell, Page, Tone};
use super::shown;
use super::words::{count, counted, number, percent, quoted, setting};

/// The table of columns has at most so many rows.
const MOST_ROWS: usize = 200;

/// The page of a report.
pub(super) fn html(report: &ReleaseReport) -> String {
    let mut page = Page::new("Anonymization report");
    summary(&mut page, report);
    requirements(&mut page, report);
    threats(&mut page, report);
    risk(&mut page, report);
    shown::class_sizes(&mut page, report);
    shown::loss(&mut page, report);
    shown::suppression(&mut page, report);
    shown::contents(&mut page, report);
    answers(&mut page, report);
    warnings(&mut page, report);
    description(&mut page, report);
    verification(&mut page, report);
    page.heading("Sign-off");
    page.paragraph("To be filled in on paper. The digests above say which files this page is about.");
    page.signatures(&["Purpose and recipient", "Reviewed by", "Date", "Signature"]);
    page.finish(&format!(
        "Made by kohort {} from the released files and their manifest alone. The same figures for programs are in report.json. This page is no legal \
         advice: whether a release is anonymous under the law depends on who gets it and what else they have.",
        report.kohort
    ))
}

fn kind(report: &ReleaseReport) -> &'static str {
    match report.release.kind {
        ReleaseKind::OneTable => "one table",
        ReleaseKind::ManyTables => "several tables that belong together",
        ReleaseKind::Audiences => "one table for several audiences",
        ReleaseKind::Register => "one table beside a public register",
    }
}

fn summary(page: &mut Page, report: &ReleaseReport) {
    let names: Vec<String> = report.tables.iter().map(|table| table.name.clone()).collect();
    page.remark(&format!("Release of {}: {}", kind(report), quoted(&names)));
    page.begin();
    let persons = &report.persons;
    let reached = report.readers.iter().filter_map(|reader| Some((reader, reader.k_asked?)));
    let holds = reached.clone().all(|(reader, asked)| reader.k >= u64::from(asked));
    let mut lines = vec![format!(
        "{} of {} are in the release; {} left out.",
        count(persons.n_out),
        counted(persons.n_in, "person", "persons"),
        if persons.suppressed == 0 { "nobody is".to_owned() } else { format!("{} are", count(persons.suppressed)) }
    )];
    for (reader, asked) in reached {
        lines.push(format!(
            "{}: every released person looks the same as at least {} others; asked were {} (k = {asked}).",
            who(reader),
            count(reader.k.saturating_sub(1)),
            count(u64::from(asked).saturating_sub(1)),
        ));
    }
    let together = report.readers.iter().find(|reader| reader.k_asked.is_none());
    if let Some(together) = together {
        lines.push(format!(
            "{}: nothing was asked for this case. If they put together what they know, they see classes of {}.",
            who(together),
            counted(together.k, "person", "persons")
        ));
    }
    lines.push(match report.verification.verdict.as_str() {
        "verified" => "An independent verifier counted everything that was asked again in the released files.".to_owned(),
        _ => "An independent verifier counted again what the released files show, and found no contradiction. What it could \
              not count without the private table is listed at the end."
            .to_owned(),
    });
    let is_warned = !report.accepted_risks.is_empty();
    let (tone, first) = match (holds, is_warned) {
        (true, false) if together.is_some() => (Tone::Fair, "What was asked is reached, for each audience by itself."),
        (true, false) => (Tone::Good, "What was asked is reached."),
        (true, true) => (Tone::Fair, "What was asked is reached, and the publisher accepted risks: see the warnings."),
        // A release beside a register shows a smaller crowd where registers contradict each other.
        (false, _) => (Tone::Bad, "The manifest claims less than what was asked."),
    };
    page.boxed(tone, first, &lines);
    let asked = || report.readers.iter().filter(|reader| reader.k_asked.is_some());
    let worst = asked().map(|reader| reader.journalist.highest).fold(0.0, f64::max);
    let average = asked().map(|reader| reader.marketer.share).fold(0.0, f64::max);
    page.cards(&[
        (count(report.achieved.k), "persons in the smallest class".to_owned()),
        (percent(worst), "highest risk that a person is found".to_owned()),
        (percent(average), "average risk".to_owned()),
        (count(report.release.classes), "classes of persons who look the same".to_owned()),
        (percent(report.loss.lm), "of the detail is lost".to_owned()),
        (percent(report.suppression.share), "of the persons are left out".to_owned()),
    ]);
}

/// Who reads, at the beginning of a sentence.
pub(super) fn who(reader: &ReaderReport) -> String {
    match (reader.kind, &reader.name) {
        (ReaderKind::Everybody, _) | (_, None) => "Everybody".to_owned(),
        (ReaderKind::Audience, Some(name)) => format!("Audience '{name}'"),
        (ReaderKind::Coalition, Some(name)) if name == Coalition::ALL => "All audiences together".to_owned(),
        (ReaderKind::Coalition, Some(name)) => format!("Coalition '{name}'"),
    }
}

fn requirements(page: &mut Page, report: &ReleaseReport) {
    page.heading("What was asked, and what was reached");
    let mut rows = Vec::new();
    for reader in &report.readers {
        let asked = reader.k_asked.map_or_else(|| "nothing".to_owned(), |k| format!("k = {k}"));
        // With a register, only its owner and the publisher know the crowd of released rows of the private table.
        let is_counted = reader.journalist.basis != Basis::Claimed && reader.counted != CountedIn::Unknown;
        let verdict = match reader.k_asked {
            None => Cell::Tag(Tone::Fair, "not asked".to_owned()),
            Some(k) if reader.k >= u64::from(k) => {
                if is_counted {
                    held()
                } else {
                    claimed()
                }
            }
            Some(_) => Cell::Tag(Tone::Bad, "does not hold".to_owned()),
        };
        rows.push(vec![
            Cell::Text(who(reader)),
            Cell::Text("persons in the smallest class".to_owned()),
            Cell::Text(asked),
            Cell::Text(format!("k = {}", count(reader.k))),
            verdict,
        ]);
    }
    for (column, reached) in &report.achieved.sensitive {
        let asked = report.requirement.sensitive.get(column);
        let settings: Vec<_> = asked.into_iter().flatten().filter(|(key, _)| *key != "distance").collect();
        if settings.is_empty() {
            rows.push(vec![
                Cell::Text(format!("Column '{column}'")),
                Cell::Text("what a class tells about its values".to_owned()),
                Cell::Text("nothing".to_owned()),
                Cell::Text(format!("{} in a class at least", counted(reached.l, "value", "values"))),
                Cell::Tag(Tone::Fair, "not asked".to_owned()),
            ]);
        }
        for (key, value) in settings {
            rows.push(vec![
                Cell::Text(format!("Column '{column}'")),
                Cell::Text(meaning(key).to_owned()),
                Cell::Text(format!("{key} = {}", setting(value))),
                Cell::Text(
                    reached_of(reached, key).map_or_else(|| "holds".to_owned(), |text| format!("{key} = {text}")),
                ),
                if is_counted(report, key, asked) { held() } else { claimed() },
            ]);
        }
    }
    if report.requirement.person_k {
        rows.push(vec![
            Cell::Text("Each person's own k".to_owned()),
            Cell::Text("persons in the class of somebody who asks for more".to_owned()),
            Cell::Text("as each person wishes".to_owned()),
            Cell::Text("holds; the wishes are not released".to_owned()),
            claimed(),
        ]);
    }
    let suppression = &report.suppression;
    rows.push(vec![
        Cell::Text("Persons left out".to_owned()),
        Cell::Text("share of all persons".to_owned()),
        Cell::Text(format!("at most {}", percent(suppression.allowed))),
        Cell::Text(percent(suppression.share)),
        claimed(),
    ]);
    if let (Some((low, high)), Some(register)) = (report.requirement.delta_presence, &report.register) {
        rows.push(vec![
            Cell::Text("Presence".to_owned()),
            Cell::Text("how sure a reader of the register is that somebody is in the table".to_owned()),
            Cell::Text(format!("{} to {}", percent(low), percent(high))),
            Cell::Text(format!("at most {}", percent(register.presence.highest))),
            claimed(),
        ]);
    }
    page.table("Requirements of the release", &["who or what", "meaning", "asked", "reached", "verdict"], &rows);
    page.remark(
        "Holds: everybody who has the released files can count it again. Holds, claimed: the publisher's verifier counted it with the \
         private data, and the files alone do not contradict it.",
    );
    learned(page, report);
    register(page, report);
}

fn held() -> Cell {
    Cell::Tag(Tone::Good, "holds".to_owned())
}

fn claimed() -> Cell {
    Cell::Tag(Tone::Good, "holds, claimed".to_owned())
}

/// Whether the files alone show that a requirement on a sensitive column holds.
fn is_counted(report: &ReleaseReport, key: &str, asked: Option<&BTreeMap<String, Setting>>) -> bool {
    let hides_persons = report.readers.iter().any(|reader| reader.counted == CountedIn::Unknown);
    let by_hierarchy = |distance: &Setting| *distance == Setting::Word("hierarchical".to_owned());
    let needs_hierarchy = key == "t" && asked.and_then(|settings| settings.get("distance")).is_some_and(by_hierarchy);
    !needs_hierarchy && (key == "l" || !hides_persons)
}

/// What audiences learn about columns that they don't know.
fn learned(page: &mut Page, report: &ReleaseReport) {
    let of_audiences = report.achieved.learned.iter().flat_map(|(audience, columns)| {
        columns.iter().map(move |(column, learned)| {
            let l = learned.l.map_or_else(
                || "tells nothing".to_owned(),
                |l| format!("at least {} in a class", counted(l, "label", "labels")),
            );
            vec![
                Cell::Text(format!("Audience '{audience}'")),
                Cell::Text(format!("'{column}'")),
                Cell::Text(l),
                Cell::Number(count(learned.certain)),
            ]
        })
    });
    let rows: Vec<Vec<Cell>> = of_audiences.collect();
    if rows.is_empty() {
        return;
    }
    page.subheading("What audiences learn about columns they do not know");
    let header = ["who", "column", "what its cells tell", "persons whose cell is certain"];
    page.table("Columns that only other audiences know", &header, &rows);
}

/// The registers and what they are used for.
fn register(page: &mut Page, report: &ReleaseReport) {
    let Some(join) = &report.register else { return };
    page.subheading("The register");
    for register in &report.registers {
        let date = register.date.as_ref().map_or_else(String::new, |date| format!(" of {date}"));
        page.paragraph(&format!(
            "Register '{}'{date}: {}, of which {} stand beside persons of the private table in the release.",
            register.name,
            counted(register.rows, "row", "rows"),
            count(register.rows_used)
        ));
    }
    let mut facts = vec![
        (
            "Matched",
            format!("{} of {} private persons, by {}", count(join.found), count(report.persons.n_in), join.joined_by),
        ),
        (
            "Rows released",
            match join.release.as_str() {
                "microdata" => "of the private table only, because presence in it is public".to_owned(),
                _ => "of the private table and of the register; nothing tells which are which".to_owned(),
            },
        ),
        (
            "Presence",
            format!(
                "a reader of the register can be {} sure at most that somebody is in the private table, {} on average",
                percent(join.presence.highest),
                percent(join.presence.average)
            ),
        ),
    ];
    if let Some(k) = join.group_k {
        let groups = counted(join.sensitive_groups, "group", "groups");
        facts.push(("Sensitive values", format!("released in {groups} of at least {} private persons", count(k))));
    }
    if join.contradicting > 0 {
        facts.push((
            "Not used",
            format!("{} about whom registers contradict each other", counted(join.contradicting, "person", "persons")),
        ));
    }
    page.facts(&facts);
    if join.presence.certain > 0 {
        let classes = counted(join.presence.certain, "class holds", "classes hold");
        let first = format!("{classes} only private persons.");
        page.boxed(Tone::Fair, &first, &["A reader is sure that everybody there is in the private table.".to_owned()]);
    }
}

/// What a setting of a sensitive column means.
fn meaning(key: &str) -> &'static str {
    match key {
        "l" => "distinct values in every class, at least",
        "entropy_l" => "values in every class, at least, if rare ones count less",
        "recursive_cl" => "the most frequent value of a class is not too frequent (c, l)",
        "t" => "distance of a class's values from those of the release, at most",
        "alpha" => "share of a class that holds one value, at most",
        "beta" => "gain of a value's share in a class over its share in the release, at most",
        "enhanced_beta" => "the same gain, bounded more tightly for frequent values, at most",
        _ => "a requirement on values",
    }
}

fn reached_of(reached: &AchievedSensitive, key: &str) -> Option<String> {
    match key {
        "l" => Some(count(reached.l)),
        "entropy_l" => Some(number(reached.entropy_l)),
        "t" => Some(number(reached.t_by_distance.unwrap_or(reached.t))),
        "alpha" => Some(number(reached.alpha)),
        "beta" => Some(number(reached.beta)),
        _ => None,
    }
}

fn threats(page: &mut Page, report: &ReleaseReport) {
    page.heading("Against whom this protects, and against whom not");
    let mut rows = Vec::new();
    for table in &report.tables {
        for column in &table.columns {
            let (assumed, done) = match column.role.as_str() {
                "quasi" => {
                    ("others could know it of a person", "made coarser until classes of k persons look the same")
                }
                "sensitive" => {
                    ("nobody should learn it of a person", "released as it is; requirements bound what a class tells")
                }
                "plain" => ("neither identifies nor harms anybody", "released as it is, without any protection"),
                _ => ("joins the tables", "numbered anew unless the spec keeps keys"),
            };
            let name = match report.tables.len() {
                1 => column.name.clone(),
                _ => format!("{}.{}", table.name, column.name),
            };
            rows.push((name, column.role.clone(), assumed, done));
        }
    }
    let n_more = rows.len().saturating_sub(MOST_ROWS);
    let rows: Vec<Vec<Cell>> = rows
        .into_iter()
        .take(MOST_ROWS)
        .map(|(name, role, assumed, done)| {
            vec![Cell::Text(name), Cell::Text(role), Cell::Text(assumed.to_owned()), Cell::Text(done.to_owned())]
        })
        .collect();
    page.paragraph(
        "The publisher decided for each column what others could know. All protection rests on these decisions: please check \
         them first. Identifying columns, such as names, are not in the release at all.",
    );
    page.table("Released columns and what is assumed about them", &["column", "role", "assumed", "done"], &rows);
    if n_more > 0 {
        page.remark(&format!("{} more columns are in report.json.", count(n_more as u64)));
    }
    page.subheading("Protected");
    let crowd = match report.release.kind {
        ReleaseKind::Register => "persons of the private table or the register",
        ReleaseKind::OneTable | ReleaseKind::ManyTables | ReleaseKind::Audiences => "persons",
    };
    let known = match report.release.kind {
        ReleaseKind::Audiences => "no more than the quasi columns of one audience",
        ReleaseKind::OneTable | ReleaseKind::ManyTables | ReleaseKind::Register => "any of the quasi columns",
    };
    let mut protected = vec![format!(
        "Somebody who knows {known} of a person finds no fewer than {} {crowd} who could be the one.",
        count(report.achieved.k)
    )];
    for (column, settings) in report.requirement.sensitive.iter().filter(|(_, settings)| !settings.is_empty()) {
        let asked: Vec<String> = settings
            .iter()
            .filter(|(key, _)| *key != "distance")
            .map(|(key, value)| format!("{key} = {}", setting(value)))
            .collect();
        protected.push(format!("What a class tells about '{column}' is bounded by {}.", asked.join(", ")));
    }
    protected.push("Every released cell is true of its row: values are made coarser, and coded or rounded where the manifest says so, but never \
         invented.".to_owned());
    page.list(protected);
    page.subheading("Not protected");
    let mut open = vec![
        "Somebody who knows a column that is released as it is, for example a sensitive or plain value, can use it to tell \
         persons of a class apart."
            .to_owned(),
        "Somebody who knows how the release was made may reason about why classes are as wide as they are; with requirements on \
         sensitive values this can tell more than the cells say."
            .to_owned(),
        "Whoever has another release of the same persons may compare the two.".to_owned(),
    ];
    if report.register.is_none() {
        open.push(
            "That somebody is in the table at all is not hidden. If membership itself says something, a register is needed."
                .to_owned(),
        );
    }
    if report.release.kind == ReleaseKind::Audiences && report.requirement.coalitions.is_empty() {
        open.push("Audiences that put together what they know: nothing was asked for that case.".to_owned());
    }
    if report.persons.suppressed > 0 {
        open.push(
            "Somebody who is known to be in the table and whom no row fits was left out, and so is unusual.".to_owned(),
        );
    }
    open.push(
        "This is not differential privacy: there is no noise, and no bound against all imaginable knowledge."
            .to_owned(),
    );
    page.list(open);
}

fn risk(page: &mut Page, report: &ReleaseReport) {
    page.heading("Risk of re-identification");
    page.paragraph(
        "The risk of a person is the chance that somebody who knows the quasi columns picks the right one of those who look the \
         same: one over the size of the class. The three attackers differ in what else they know.",
    );
    page.list([
        "Prosecutor: looks for one person and knows that this person is in the table.",
        "Journalist: looks for any person, and does not know who is in the table. Without a register of the population the risk is not known, and at most the prosecutor's.",
        "Marketer: links everybody at once; the figure is the share of persons who are linked rightly on average.",
    ]);
    for reader in &report.readers {
        if report.readers.len() > 1 {
            page.subheading(&who(reader));
        }
        let mut rows = Vec::new();
        let mut row = |name: &str, figures: Option<(f64, f64, Basis)>| {
            let cells = match figures {
                None => ["not known", "not known", "on purpose: nothing released tells who is in the table"]
                    .map(str::to_owned),
                Some((highest, average, basis)) => [percent(highest), percent(average), basis_words(basis).to_owned()],
            };
            let [highest, average, basis] = cells;
            rows.push(vec![
                Cell::Text(name.to_owned()),
                Cell::Number(highest),
                Cell::Number(average),
                Cell::Text(basis),
            ]);
        };
        row("prosecutor", reader.prosecutor.as_ref().map(|found| (found.highest, found.average, found.basis)));
        let journalist = &reader.journalist;
        row("journalist", Some((journalist.highest, journalist.average, journalist.basis)));
        let ShareReport { basis, share } = reader.marketer;
        rows.push(vec![
            Cell::Text("marketer".to_owned()),
            Cell::Number("–".to_owned()),
            Cell::Number(percent(share)),
            Cell::Text(basis_words(basis).to_owned()),
        ]);
        page.table("Chance to find the right person", &["attacker", "highest", "average", "known from"], &rows);
        let counted_for = reader.prosecutor.as_ref().filter(|found| !found.above.is_empty()).unwrap_or(journalist);
        if !counted_for.above.is_empty() {
            let rows: Vec<Vec<Cell>> = counted_for
                .above
                .iter()
                .map(|above| {
                    vec![
                        Cell::Text(format!("above {}", percent(above.risk))),
                        Cell::Number(count(above.persons)),
                        Cell::Number(percent(above.share)),
                    ]
                })
                .collect();
            let whom = match reader.counted {
                CountedIn::PersonsAndRegister => "Persons of the table and the register above a threshold",
                CountedIn::Persons | CountedIn::Unknown => "Persons above a threshold",
            };
            page.table(whom, &["risk", "persons", "share"], &rows);
        }
        let rows: Vec<Vec<Cell>> = reader
            .presets
            .iter()
            .map(|preset| {
                let (name, limit) = match preset.name.as_str() {
                    "ema" => ("European Medicines Agency, Policy 0070", "risk of at most 0.09"),
                    _ => ("US Centers for Medicare & Medicaid Services", "no cell of fewer than 11 persons"),
                };
                let verdict = match preset.met {
                    true => Cell::Tag(Tone::Good, "within".to_owned()),
                    false => Cell::Tag(Tone::Fair, "not within".to_owned()),
                };
                vec![
                    Cell::Text(name.to_owned()),
                    Cell::Text(limit.to_owned()),
                    Cell::Number(preset.k.to_string()),
                    Cell::Number(count(reader.k)),
                    verdict,
                ]
            })
            .collect();
        let header = ["limit of", "in words", "persons needed", "smallest class", "verdict"];
        page.table("Published limits", &header, &rows);
    }
    let measure = |name: &str, risk: kohort_model::BeforeAfter| {
        let shown = |share: f64| (100.0 * share, percent(share));
        risk.before.map(|before| Pair { label: name.to_owned(), first: shown(before), second: shown(risk.after) })
    };
    let both = [measure("highest", report.risk.highest), measure("average", report.risk.average)];
    let both: Vec<Pair> = both.into_iter().flatten().collect();
    if !both.is_empty() {
        let chart = pairs(Frame::Narrow, "Risk before and after", "%", ["private table", "release"], &both);
        let caption = "The private table as if its quasi columns were released as they are; a claim of the publisher, because \
                       readers don't have that table.";
        page.charts(&[(chart, caption.to_owned())]);
    }
}

fn basis_words(basis: Basis) -> &'static str {
    match basis {
        Basis::Counted => "counted in the released files",
        Basis::Claimed => "the publisher's count, with the private data",
        Basis::AtMost => "not known; at most this",
    }
}

fn answers(page: &mut Page, report: &ReleaseReport) {
    page.heading("The three questions of WP216");
    page.paragraph(
        "Opinion 05/2014 of the Article 29 Working Party asks three questions of every anonymization. No technique answers all \
         of them with a plain no; these answers say what bounds each risk in this release.",
    );
    for answer in &report.answers {
        page.subheading(match answer.question {
            Question::SinglingOut => "Singling out: can a person still be singled out?",
            Question::Linkability => "Linkability: can records of the same person be linked?",
            Question::Inference => "Inference: can something be inferred about a person?",
        });
        let (tone, first) = match answer.answer {
            Answer::Bounded => (Tone::Good, "Bounded by what was asked."),
            Answer::InPart => (Tone::Fair, "Bounded in part."),
            Answer::NotBounded => (Tone::Bad, "Nothing that was asked bounds this."),
        };
        page.boxed(tone, first, &answer.because);
    }
}

fn warnings(page: &mut Page, report: &ReleaseReport) {
    page.heading("Warnings and notes");
    for risk in &report.accepted_risks {
        page.boxed(Tone::Bad, "A risk that the publisher accepted", std::slice::from_ref(&risk.message));
    }
    if !report.notes.is_empty() {
        page.list(report.notes.iter().map(|note| &note.message));
    }
    if report.accepted_risks.is_empty() && report.notes.is_empty() {
        page.paragraph("None.");
    }
}

fn description(page: &mut Page, report: &ReleaseReport) {
    page.heading("The release");
    let release = &report.release;
    page.facts(&[
        ("Kind", kind(report).to_owned()),
        ("Written by", format!("kohort {}", release.kohort)),
        ("Algorithm", release.algorithm.clone()),
        (
            "Order of rows",
            match release.order {
                kohort_model::spec::Order::Sorted => "sorted by what they show".to_owned(),
                kohort_model::spec::Order::Input => "as in the private table, which can give people away".to_owned(),
            },
        ),
    ]);
    let row = |table: &kohort_model::report::TableReport| {
        vec![
            Cell::Text(table.name.clone()),
            Cell::Number(count(table.rows_in)),
            Cell::Number(count(table.rows_out)),
            Cell::Number(count(table.rows_suppressed)),
            Cell::Text(table.file.clone()),
            Cell::Code(table.sha256.clone()),
        ]
    };
    let rows: Vec<Vec<Cell>> = report.tables.iter().map(row).collect();
    let header = ["table", "rows in", "rows out", "left out", "file", "SHA-256 of the file"];
    page.table("Released files", &header, &rows);
    for reference in &report.references {
        page.paragraph(&format!(
            "References in '{}.{}': {} kept, {} removed.",
            reference.table,
            reference.column,
            count(reference.kept),
            count(reference.removed)
        ));
    }
    page.subheading("What was asked, as the manifest says");
    let asked = serde_json::to_string_pretty(&report.requirement).unwrap_or_default();
    page.code("the requirement", &asked);
}

fn verification(page: &mut Page, report: &ReleaseReport) {
    page.heading("Verify it yourself");
    page.paragraph(
        "Nobody needs to believe this page. With the folder alone, this command counts every class again, compares each file with its \
         digest, and makes this page again to compare it:",
    );
    page.code("the command for readers", "kohort verify FOLDER");
    page.paragraph("The publisher, who has the private table, also checks that every released row is true:");
    page.code("the command for publishers", "kohort verify FOLDER --against release.toml");
    let verification = &report.verification;
    if !verification.not_counted.is_empty() {
        page.subheading("What the files alone do not show");
        page.list(&verification.not_counted);
    }
    if !verification.not_confirmed.is_empty() {
        page.subheading("Claims of the publisher that the files neither confirm nor refute");
        page.paragraph(&format!("In manifest.json: {}.", verification.not_confirmed.join(", ")));
    }
    if !verification.as_manifest_says.is_empty() {
        page.subheading("Decisions of the publisher that only the spec confirms");
        page.paragraph(&format!("In manifest.json: {}.", verification.as_manifest_says.join(", ")));
    }
}

/// A chart of shares, largest first.
pub(super) fn share_bars(title: &str, shares: &[(String, f64)]) -> String {
    let bar =
        |(label, share): &(String, f64)| Bar { label: label.clone(), value: 100.0 * share, shown: percent(*share) };
    bars(Frame::Narrow, title, "%", &shares.iter().map(bar).collect::<Vec<_>>())
}
