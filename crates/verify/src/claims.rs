//! [`check_claims`]: whether every key of a manifest agrees with what was counted.
//!
//! # Guarantee
//! Every key of a manifest is compared with a count of this crate, or checked to agree with other keys, or listed as
//! unconfirmed, or listed as taken from the manifest. Keys of the last kind decide what is counted, such as the
//! requirement. Only somebody who has the spec can compare them with it.
//!
//! Manifests are destructured without `..`, so a new key does not compile until this module handles it.

mod achieved;

use std::collections::BTreeMap;
use std::fmt::{self, Display};

use kohort_model::spec::RegisterRows;
use kohort_model::{
    BeforeAfter, JoinManifest, Loss, Manifest, Persons, PreviousManifest, ReferenceManifest, RegisterManifest, Risk,
    TableManifest,
};

use crate::{Counted, Findings, LossFindings, Skipped, TogetherWithin};

/// A key of a manifest that differs from what was counted. It contains both figures, because those of a manifest are
/// public.
#[derive(Clone, Debug, PartialEq)]
pub struct WrongClaim {
    /// The path of the key.
    pub key: String,
    /// The figure in the manifest.
    pub claimed: String,
    /// The figure that was counted.
    pub counted: String,
}

impl Display for WrongClaim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WrongClaim { key, claimed, counted } = self;
        write!(f, "manifest.json says {key} = {claimed}, but {counted} was counted")
    }
}

/// The result of checking the claims of a manifest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClaimFindings {
    /// Claims that are wrong.
    pub wrong: Vec<WrongClaim>,
    /// Keys that the given tables neither confirm nor contradict, sorted. A path stands for everything below it, and
    /// `*` for any name.
    pub unconfirmed: Vec<String>,
    /// Keys that decide what was counted, and that only the spec can confirm, sorted.
    pub taken: Vec<String>,
}

/// Facts about the private tables.
#[derive(Clone, Debug)]
pub struct PrivateFacts {
    /// Rows of each private table, in the order of the released ones.
    pub rows: Vec<u64>,
    /// Persons of all private tables together.
    pub persons: u64,
    /// The counts of the private tables, as if their quasi columns were released unchanged.
    pub before: Findings,
    /// Facts about each register, in the order of the spec; empty if there are none.
    pub registers: Vec<RegisterFacts>,
    /// The number of private persons whom a register row matches, and of persons about whom registers contradict each
    /// other.
    pub found_and_contradicting: Option<(u64, u64)>,
    /// Digests of the manifests of earlier releases that the spec names.
    pub previous: Vec<String>,
    /// Keys about the meaning of cells that were not compared with the private tables.
    pub unread: Vec<String>,
}

/// Facts about a register.
#[derive(Clone, Debug)]
pub struct RegisterFacts {
    /// The day that the register describes, if the spec says it.
    pub date: Option<String>,
    /// The rows of the register.
    pub rows: u64,
    /// Rows that lack a quasi value or a key.
    pub incomplete: u64,
}

/// Compares the claims of a manifest with what was counted, and with the private tables if they are given.
pub fn check_claims(manifest: &Manifest, found: &Findings, private: Option<&PrivateFacts>) -> ClaimFindings {
    let mut ledger = Ledger::default();
    let Manifest {
        kohort: _,
        algorithm: _,
        effort,
        objective,
        weights,
        order: _,
        requirement,
        achieved,
        persons,
        classes,
        loss,
        // Compared by `check_risk`.
        risk: _,
        tables,
        audiences,
        savings,
        registers,
        register,
        previous,
        applied,
        notes,
        accepted_risks,
        verified,
        // Links decide which rows belong to one person. The caller compares them with the spec.
        links,
        references,
        table_loss,
    } = manifest;
    // Nothing in a release shows how it was made.
    ledger.open("kohort");
    ledger.open("algorithm");
    ledger.open_if(effort.is_some(), "effort");
    ledger.open_if(objective.is_some(), "objective");
    ledger.open_if(!weights.is_empty(), "weights");
    ledger.open("order");
    ledger.present("savings", savings.is_some(), !audiences.is_empty());
    ledger.open_if(savings.is_some(), "savings");
    // Only the earlier release can confirm what is said of both.
    ledger.open_if(applied.is_some(), "applied");
    // Notes on rows left out of child tables are not counted again, so their absence is not confirmed either.
    ledger.open_if(!notes.is_empty() || !links.is_empty(), "notes");
    ledger.open_if(!accepted_risks.is_empty(), "accepted_risks");
    if !verified {
        ledger.wrong("verified", false, true);
    }
    let is_csv = tables.iter().any(|table| table.file.ends_with(".csv"));
    match private {
        Some(private) => private.unread.iter().for_each(|key| ledger.open(key)),
        None => {
            ledger.take("requirement");
            ledger.take("tables.*.columns");
            ledger.take_if(is_csv, "tables.*.csv");
            ledger.take("tables.*.name");
            if !audiences.is_empty() {
                ledger.take("audiences");
            }
            if found.tables.len() > 1 {
                ledger.take("links");
            }
        }
    }
    if let (Some(k), Some(of_all)) = (requirement.collusion_k, requirement.coalitions.get(kohort_model::Coalition::ALL))
    {
        ledger.number("requirement.collusion_k", f64::from(k), of_all.k.map_or(0.0, f64::from));
    }
    ledger.number("classes", *classes as f64, found.classes as f64);
    let comparable = Comparable::of(manifest, found);
    check_persons(&mut ledger, *persons, found, comparable, private);
    achieved::check(&mut ledger, achieved, manifest, found, comparable);
    check_risk(&mut ledger, manifest, found, comparable, private);
    check_loss(&mut ledger, "loss", loss, found.loss.as_ref());
    for (position, table) in tables.iter().enumerate() {
        let of_persons = register.is_some().then_some(persons.suppressed);
        check_table(&mut ledger, position, table, of_persons, private);
    }
    check_registers(&mut ledger, registers, register.as_ref(), found, private);
    check_previous(&mut ledger, previous.as_ref(), found, private);
    check_tables_together(&mut ledger, references, table_loss, found);
    ledger.finish()
}

/// How far figures that count persons can be compared.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparable {
    /// Exactly: persons were counted, and rows can be traced back to them in one way only.
    Exactly,
    /// Within bounds: it is not known, or not unique, which rows belong to the same person, so only rows bound the
    /// figures.
    Bounded,
    /// Not for classes: they contain register persons, and nothing tells these from private persons.
    BesideRegister,
    /// Exactly for classes: only private rows are released, but the register was given, so the whole crowd was counted.
    Crowd,
}

impl Comparable {
    fn of(manifest: &Manifest, found: &Findings) -> Self {
        let is_each_person = found.rows == manifest.persons.n_out;
        let is_one_of_several_ways = found.skipped.contains(&Skipped::Figures);
        let is_of_private_rows =
            manifest.register.as_ref().is_some_and(|join| join.release == RegisterRows::Microdata.word());
        match (&found.joined, found.counted) {
            (Some(_), _) if is_of_private_rows && !found.skipped.contains(&Skipped::Crowd) => Comparable::Crowd,
            (Some(_), _) => Comparable::BesideRegister,
            (None, _) if is_each_person => Comparable::Exactly,
            (None, Counted::Persons) if !is_one_of_several_ways => Comparable::Exactly,
            (None, _) => Comparable::Bounded,
        }
    }
}

/// Collects the result of each comparison.
#[derive(Default)]
pub(crate) struct Ledger {
    found: ClaimFindings,
}

impl Ledger {
    /// Lists a key as unconfirmed.
    pub(crate) fn open(&mut self, key: impl Into<String>) {
        self.found.unconfirmed.push(key.into());
    }

    /// Lists a key as taken from the manifest.
    fn take(&mut self, key: &str) {
        self.found.taken.push(key.to_owned());
    }

    fn take_if(&mut self, is_there: bool, key: &str) {
        if is_there {
            self.take(key);
        }
    }

    pub(crate) fn open_if(&mut self, is_there: bool, key: &str) {
        if is_there {
            self.open(key);
        }
    }

    /// Lists a key as wrong.
    pub(crate) fn wrong(&mut self, key: impl Into<String>, claimed: impl Display, counted: impl Display) {
        let (claimed, counted) = (format!("{claimed}"), format!("{counted}"));
        self.found.wrong.push(WrongClaim { key: key.into(), claimed, counted });
    }

    /// Compares a figure, with a tolerance because sums may be rounded in another order.
    pub(crate) fn number(&mut self, key: impl Into<String>, claimed: f64, counted: f64) {
        let tolerance = 1e-6 + 1e-9 * counted.abs();
        // If the claim is not a number, both comparisons are false, so the claim is wrong.
        let is_right = claimed == counted || (claimed - counted).abs() <= tolerance;
        if !is_right {
            self.wrong(key, claimed, counted);
        }
    }

    /// Checks that a key is present exactly if it must be.
    pub(crate) fn present(&mut self, key: &str, is_there: bool, must_be: bool) {
        let shown = |is_there: bool| if is_there { "something" } else { "nothing" };
        if is_there != must_be {
            self.wrong(key, shown(is_there), shown(must_be));
        }
    }

    /// Compares a figure that may be absent.
    pub(crate) fn optional(&mut self, key: impl Into<String>, claimed: Option<f64>, counted: Option<f64>) {
        let shown = |figure: Option<f64>| figure.map_or_else(|| "nothing".to_owned(), |figure| figure.to_string());
        match (claimed, counted) {
            (Some(claimed), Some(counted)) => self.number(key, claimed, counted),
            (None, None) => {}
            (claimed, counted) => self.wrong(key, shown(claimed), shown(counted)),
        }
    }

    /// Checks that a number is within the bounds that were counted. `None` counts as more than any number. If the
    /// bounds differ, the number is not confirmed, and `named` is listed as unconfirmed.
    fn within(&mut self, key: &str, named: &str, claimed: Option<u64>, (least, most): (Option<u64>, Option<u64>)) {
        let shown = |number: Option<u64>| number.map_or_else(|| "nothing".to_owned(), |number| number.to_string());
        let as_number = |number: Option<u64>| number.map_or(u128::MAX, u128::from);
        if !(as_number(least)..=as_number(most)).contains(&as_number(claimed)) {
            let counted = if least == most { shown(least) } else { format!("{} to {}", shown(least), shown(most)) };
            self.wrong(key, shown(claimed), counted);
        }
        self.open_if(least != most, named);
    }

    /// Checks that two maps have the same names, and calls `compare` for each name.
    pub(crate) fn names<'m, C, F>(
        &mut self,
        key: &str,
        claimed: &'m BTreeMap<String, C>,
        counted: &'m BTreeMap<String, F>,
        mut compare: impl FnMut(&mut Ledger, String, &'m C, &'m F),
    ) {
        for (name, claim) in claimed {
            match counted.get(name) {
                None => self.wrong(format!("{key}.{name}"), "something", "nothing"),
                Some(count) => compare(self, format!("{key}.{name}"), claim, count),
            }
        }
        for name in counted.keys().filter(|name| !claimed.contains_key(*name)) {
            self.wrong(format!("{key}.{name}"), "nothing", "something");
        }
    }

    fn finish(mut self) -> ClaimFindings {
        for keys in [&mut self.found.unconfirmed, &mut self.found.taken] {
            keys.sort_unstable();
            keys.dedup();
        }
        self.found
    }
}

/// Compares the numbers of persons in the input, in the release, and left out.
fn check_persons(
    ledger: &mut Ledger,
    claimed: Persons,
    found: &Findings,
    comparable: Comparable,
    private: Option<&PrivateFacts>,
) {
    let Persons { n_in, n_out, suppressed } = claimed;
    ledger.number("persons.in", n_in as f64, n_out as f64 + suppressed as f64);
    let is_counted = match comparable {
        Comparable::Exactly => true,
        Comparable::Bounded => found.counted == Counted::Persons,
        // Each row of the sensitive table belongs to a private person.
        Comparable::BesideRegister | Comparable::Crowd => {
            found.joined.as_ref().is_some_and(|joined| joined.group_k.is_some())
        }
    };
    if is_counted || n_out > found.persons {
        ledger.number("persons.out", n_out as f64, found.persons as f64);
    } else if private.is_none() {
        ledger.open("persons.out");
    }
    match private {
        None => {
            ledger.open("persons.in");
            ledger.open("persons.suppressed");
        }
        Some(private) => {
            ledger.number("persons.in", n_in as f64, private.persons as f64);
            let left_out = found.suppressed.map_or(0, |suppressed| suppressed.persons);
            ledger.number("persons.suppressed", suppressed as f64, left_out as f64);
        }
    }
}

/// Compares the risk before and after anonymization.
fn check_risk(
    ledger: &mut Ledger,
    manifest: &Manifest,
    found: &Findings,
    comparable: Comparable,
    private: Option<&PrivateFacts>,
) {
    let Risk { highest, average } = &manifest.risk;
    let before = private.map(|private| &private.before);
    match comparable {
        Comparable::Exactly | Comparable::Crowd => {
            ledger.number("risk.highest.after", highest.after, found.highest_risk);
            ledger.number("risk.average.after", average.after, found.average_risk);
        }
        Comparable::Bounded | Comparable::BesideRegister => {
            ledger.number("risk.highest.after", highest.after, 1.0 / manifest.achieved.k as f64);
            ledger.open("risk.average.after");
        }
    }
    for (key, BeforeAfter { before: claimed, after: _ }, counted) in [
        ("risk.highest.before", highest, before.map(|before| before.highest_risk)),
        ("risk.average.before", average, before.map(|before| before.average_risk)),
    ] {
        // If only common columns steer the partitioning, the risk before is not written, because audiences could learn
        // from it.
        ledger.present(key, claimed.is_some(), manifest.requirement.steer.is_none());
        match (claimed, counted) {
            (None, _) => {}
            (Some(_), None) => ledger.open(key),
            (Some(claimed), Some(counted)) => ledger.number(key, *claimed, counted),
        }
    }
}

/// Compares the measures of loss.
fn check_loss(ledger: &mut Ledger, key: &str, claimed: &Loss, counted: Option<&LossFindings>) {
    let Loss { lm, ncp, dm, average_class, uncertainty_penalty, k_deviation, rank, entropy, columns } = claimed;
    let Some(counted) = counted else {
        ledger.open(key);
        return;
    };
    ledger.number(format!("{key}.lm"), *lm, counted.lm);
    ledger.number(format!("{key}.ncp"), *ncp, counted.ncp);
    ledger.number(format!("{key}.uncertainty_penalty"), *uncertainty_penalty, counted.uncertainty_penalty);
    // A release that was made in cells claims neither of the two.
    let is_claimed = rank.is_some() || entropy.is_some();
    for (name, claimed, counted) in [("rank", *rank, counted.rank), ("entropy", *entropy, counted.entropy)] {
        match (claimed, counted) {
            (None, Some(counted)) if is_claimed => ledger.wrong(format!("{key}.{name}"), "nothing", counted),
            (None, _) => {}
            (Some(_), None) => ledger.open(format!("{key}.{name}")),
            (Some(claimed), Some(counted)) => ledger.number(format!("{key}.{name}"), claimed, counted),
        }
    }
    let of_columns: BTreeMap<String, f64> = counted.columns.iter().cloned().collect();
    ledger.names(&format!("{key}.columns"), columns, &of_columns, |ledger, key, claimed, counted| {
        ledger.number(key, *claimed, *counted);
    });
    let of_persons = counted.persons;
    for (name, claimed, counted) in [
        ("dm", dm, of_persons.map(|persons| persons.dm)),
        ("average_class", average_class, of_persons.map(|persons| persons.average_class)),
        ("k_deviation", k_deviation, of_persons.and_then(|persons| persons.k_deviation)),
    ] {
        match counted {
            None => ledger.open(format!("{key}.{name}")),
            Some(counted) => ledger.number(format!("{key}.{name}"), *claimed, counted),
        }
    }
}

/// Compares the numbers of rows of one table. Everything else was compared when the file was read.
fn check_table(
    ledger: &mut Ledger,
    position: usize,
    table: &TableManifest,
    suppressed_beside_register: Option<u64>,
    private: Option<&PrivateFacts>,
) {
    let TableManifest { name: _, file: _, rows_in, rows_out, rows_suppressed, sha256: _, csv: _, columns: _ } = table;
    let key = |name: &str| format!("tables.{position}.{name}");
    match private {
        None => {
            ledger.open("tables.*.rows_in");
            ledger.open("tables.*.rows_suppressed");
        }
        Some(private) => {
            let counted = private.rows.get(position).or(private.rows.first()).copied().unwrap_or(0);
            ledger.number(key("rows_in"), *rows_in as f64, counted as f64);
        }
    }
    // Beside a register, released rows also belong to register persons. Each private person has one row, so count
    // persons.
    let left_out = suppressed_beside_register.map_or(*rows_in as f64 - *rows_out as f64, |persons| persons as f64);
    ledger.number(key("rows_suppressed"), *rows_suppressed as f64, left_out);
}

/// Compares the facts about registers, and the join with them.
fn check_registers(
    ledger: &mut Ledger,
    registers: &[RegisterManifest],
    register: Option<&JoinManifest>,
    found: &Findings,
    private: Option<&PrivateFacts>,
) {
    for (position, RegisterManifest { name: _, date, sha256: _, rows, rows_incomplete, rows_used: _ }) in
        registers.iter().enumerate()
    {
        let key = |name: &str| format!("registers.{position}.{name}");
        let read = private.and_then(|private| private.registers.get(position));
        let Some(read) = read else {
            ledger.open("registers");
            continue;
        };
        if *date != read.date {
            let shown = |date: &Option<String>| date.clone().unwrap_or_else(|| "nothing".to_owned());
            ledger.wrong(key("date"), shown(date), shown(&read.date));
        }
        ledger.number(key("rows"), *rows as f64, read.rows as f64);
        ledger.number(key("rows_incomplete"), *rows_incomplete as f64, read.incomplete as f64);
        ledger.open("registers.*.rows_used");
    }
    ledger.present("registers", !registers.is_empty(), register.is_some());
    let Some(register) = register else { return };
    let JoinManifest {
        method: _,
        partitioners: _,
        release: _,
        joined_by: _,
        found: n_found,
        unmatched: _,
        contradicting,
        sensitive_groups,
        group_k,
        presence: _,
    } = register;
    ledger.open("register.method");
    ledger.open("register.partitioners");
    ledger.open("register.presence");
    match private.and_then(|private| private.found_and_contradicting) {
        None => {
            ledger.take("register.release");
            ledger.take("register.joined_by");
            ledger.take("register.unmatched");
            ledger.open("register.found");
            ledger.open("register.contradicting");
        }
        Some((counted, contradictions)) => {
            ledger.number("register.found", *n_found as f64, counted as f64);
            ledger.number("register.contradicting", *contradicting as f64, contradictions as f64);
        }
    }
    let joined = found.joined.as_ref();
    let groups = joined.map_or(0, |joined| joined.groups);
    ledger.number("register.sensitive_groups", *sensitive_groups as f64, groups as f64);
    let counted = joined.and_then(|joined| joined.group_k).map(|k| k as f64);
    ledger.optional("register.group_k", group_k.map(|k| k as f64), counted);
}

/// Compares what readers of earlier releases learn.
fn check_previous(
    ledger: &mut Ledger,
    claimed: Option<&PreviousManifest>,
    found: &Findings,
    private: Option<&PrivateFacts>,
) {
    let Some(private) = private else {
        ledger.open_if(claimed.is_some(), "previous");
        return;
    };
    ledger.present("previous", claimed.is_some(), !private.previous.is_empty());
    let Some(PreviousManifest { manifests, k, l }) = claimed else { return };
    let sorted = |digests: &[String]| {
        let mut digests = digests.to_vec();
        digests.sort_unstable();
        digests
    };
    if sorted(manifests) != sorted(&private.previous) {
        ledger.wrong("previous.manifests", "a list of digests", "a list of other digests");
    }
    let within = found.joined.as_ref().and_then(|joined| joined.together_within.as_ref());
    let Some(TogetherWithin { k: k_within, l: l_within }) = within else {
        ledger.open("previous.k");
        ledger.open("previous.l");
        return;
    };
    ledger.within("previous.k", "previous.k", Some(*k), (Some(k_within.0), Some(k_within.1)));
    for (column, bounds) in l_within {
        ledger.within(&format!("previous.l.{column}"), "previous.l.*", l.get(column).copied(), *bounds);
    }
    for column in l.keys().filter(|column| l_within.iter().all(|(known, _)| known != *column)) {
        ledger.wrong(format!("previous.l.{column}"), "something", "nothing");
    }
}

/// Compares the keys that only a release of many tables has.
fn check_tables_together(
    ledger: &mut Ledger,
    references: &[ReferenceManifest],
    table_loss: &BTreeMap<String, Loss>,
    found: &Findings,
) {
    let kept = |table: &str, column: &str| {
        let table = found.tables.iter().find(|found| found.table == table)?;
        Some(table.references.iter().find(|reference| reference.column == column)?.kept as f64)
    };
    for (position, claimed) in references.iter().enumerate() {
        let counted = kept(&claimed.table, &claimed.column);
        ledger.optional(format!("references.{position}.kept"), Some(claimed.kept as f64), counted);
        ledger.open("references.*.removed");
    }
    let n_counted: usize = found.tables.iter().map(|table| table.references.len()).sum();
    ledger.number("references", references.len() as f64, n_counted as f64);
    let counted: BTreeMap<String, &Option<LossFindings>> =
        found.tables.iter().map(|table| (table.table.clone(), &table.loss)).collect();
    ledger.names("table_loss", table_loss, &counted, |ledger, key, claimed, counted| match counted {
        None => ledger.open("table_loss"),
        Some(counted) => check_loss(ledger, &key, claimed, Some(counted)),
    });
}
