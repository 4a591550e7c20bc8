//! Compares the section `achieved` of a manifest with what was counted.

use std::collections::BTreeMap;

use kohort_model::{Achieved, AchievedCoalition, AchievedLearned, AchievedSensitive, Manifest, Setting};

use super::{Comparable, Ledger};
use crate::{AudienceFindings, Counted, Findings, LearnedFindings, SensitiveFindings, Skipped};

/// Compares every key of the section `achieved`.
pub(super) fn check(
    ledger: &mut Ledger,
    claimed: &Achieved,
    manifest: &Manifest,
    found: &Findings,
    comparable: Comparable,
) {
    let Achieved { k, audiences, collusion_k, coalitions, learned, sensitive } = claimed;
    check_k(ledger, *k, found, comparable);
    check_sensitive(ledger, "achieved.sensitive", sensitive, &sensitive_columns(manifest, found), comparable);
    for (column, settings) in &manifest.requirement.sensitive {
        let is_by_distance = settings.get("distance").is_some_and(|word| *word != Setting::Word("equal".to_owned()));
        // The files may not be enough to compute this distance, but the manifest must contain it.
        if let (true, Some(claimed)) = (is_by_distance, sensitive.get(column)) {
            let key = format!("achieved.sensitive.{column}.t_by_distance");
            ledger.present(&key, claimed.t_by_distance.is_some(), true);
        }
    }
    if comparable != Comparable::Exactly {
        for (name, is_claimed) in [
            ("achieved.audiences", !audiences.is_empty()),
            ("achieved.collusion_k", collusion_k.is_some()),
            ("achieved.coalitions", !coalitions.is_empty()),
            ("achieved.learned", !learned.is_empty()),
        ] {
            ledger.open_if(is_claimed, name);
        }
        return;
    }
    let of_audiences: BTreeMap<String, &AudienceFindings> =
        found.audiences.iter().map(|audience| (audience.audience.clone(), audience)).collect();
    ledger.names("achieved.audiences", audiences, &of_audiences, |ledger, key, claimed, counted| {
        ledger.number(key, *claimed as f64, counted.k as f64);
    });
    ledger.optional("achieved.collusion_k", collusion_k.map(|k| k as f64), found.collusion_k.map(|k| k as f64));
    // An audience that knows every column has nothing to learn, so the manifest need not list it.
    let may_learn = learned.keys().filter_map(|name| Some((name.clone(), *of_audiences.get(name)?)));
    let told = found.audiences.iter().filter(|audience| !audience.learned.is_empty());
    let of_learners: BTreeMap<String, &AudienceFindings> =
        may_learn.chain(told.map(|audience| (audience.audience.clone(), audience))).collect();
    ledger.names("achieved.learned", learned, &of_learners, |ledger, key, claimed, counted| {
        check_learned(ledger, &key, claimed, &counted.learned, found);
    });
    for (name, audience) in &manifest.audiences {
        check_untold(ledger, &format!("achieved.learned.{name}"), learned.get(name), &audience.quasi, found);
    }
    let of_coalitions: BTreeMap<String, &AudienceFindings> =
        found.coalitions.iter().map(|coalition| (coalition.audience.clone(), coalition)).collect();
    ledger.names("achieved.coalitions", coalitions, &of_coalitions, |ledger, key, claimed, counted| {
        let AchievedCoalition { k, sensitive, learned } = claimed;
        ledger.number(format!("{key}.k"), *k as f64, counted.k as f64);
        let columns = counted.sensitive.iter().map(|column| (column.column.clone(), column)).collect();
        check_sensitive(ledger, &format!("{key}.sensitive"), sensitive, &columns, comparable);
        check_learned(ledger, &format!("{key}.learned"), learned, &counted.learned, found);
        let asked = manifest.requirement.coalitions.get(key.trim_start_matches("achieved.coalitions."));
        let is_member = |name: &String| asked.is_none_or(|coalition| coalition.audiences.contains(name));
        let members = manifest.audiences.iter().filter(|(name, _)| is_member(name));
        let known: Vec<String> = members.flat_map(|(_, audience)| audience.quasi.iter().cloned()).collect();
        check_untold(ledger, &format!("{key}.learned"), Some(learned), &known, found);
    });
}

/// Compares the size of the smallest class.
fn check_k(ledger: &mut Ledger, claimed: u64, found: &Findings, comparable: Comparable) {
    // A class has at most as many persons as rows, and the smallest class at most as many as the average class.
    let most = match (comparable, found.counted) {
        (Comparable::Exactly | Comparable::Crowd, _) => {
            ledger.number("achieved.k", claimed as f64, found.k as f64);
            return;
        }
        // k is required of the classes of each audience, or without audiences of the classes on all columns.
        (Comparable::Bounded, Counted::Persons) => {
            let classes = found.audiences.iter().map(|audience| audience.classes).max().unwrap_or(found.classes);
            found.rows / classes.max(1)
        }
        (Comparable::BesideRegister, _) if found.skipped.contains(&Skipped::Crowd) => u64::MAX,
        (Comparable::Bounded, Counted::Rows) | (Comparable::BesideRegister, _) => found.k,
    };
    ledger.open("achieved.k");
    if claimed > most {
        ledger.number("achieved.k", claimed as f64, most as f64);
    }
}

/// Every sensitive column that was counted, by its name in a manifest.
fn sensitive_columns<'f>(manifest: &Manifest, found: &'f Findings) -> BTreeMap<String, &'f SensitiveFindings> {
    let of_one = found.sensitive.iter().map(|column| (column.column.clone(), column));
    let is_named_alone = manifest.tables.len() == 1;
    let of_many = found.tables.iter().flat_map(|table| {
        table.sensitive.iter().map(move |column| {
            let name =
                if is_named_alone { column.column.clone() } else { format!("{}.{}", table.table, column.column) };
            (name, column)
        })
    });
    of_one.chain(of_many).collect()
}

fn check_sensitive(
    ledger: &mut Ledger,
    key: &str,
    claimed: &BTreeMap<String, AchievedSensitive>,
    counted: &BTreeMap<String, &SensitiveFindings>,
    comparable: Comparable,
) {
    ledger.names(key, claimed, counted, |ledger, key, claimed, counted| {
        let AchievedSensitive { l, entropy_l, t, t_by_distance, alpha, beta } = claimed;
        // The number of distinct values does not depend on which rows belong to the same person.
        ledger.number(format!("{key}.l"), *l as f64, counted.l as f64);
        let figures = [
            ("entropy_l", *entropy_l, counted.entropy_l),
            ("t", *t, counted.t),
            ("alpha", *alpha, counted.alpha),
            ("beta", *beta, counted.beta),
        ];
        for (name, claimed, counted) in figures {
            match comparable {
                Comparable::Exactly | Comparable::BesideRegister | Comparable::Crowd => {
                    ledger.number(format!("{key}.{name}"), claimed, counted);
                }
                Comparable::Bounded => ledger.open(format!("{}.*.{name}", parent(&key))),
            }
        }
        match (comparable, t_by_distance, counted.t_by_distance()) {
            (Comparable::Bounded, Some(_), _) | (_, Some(_), None) => {
                ledger.open(format!("{}.*.t_by_distance", parent(&key)));
            }
            (Comparable::Bounded, None, _) => {}
            (_, claimed, counted) => ledger.optional(format!("{key}.t_by_distance"), *claimed, counted),
        }
    });
}

/// The path above the name of a column. Names may contain dots, so the path ends at `.sensitive`.
fn parent(key: &str) -> &str {
    match key.find(".sensitive.") {
        Some(at) => &key[..at + ".sensitive".len()],
        None => key,
    }
}

/// Checks that the manifest has an entry for each column that an audience does not know, even if the column was not
/// counted.
fn check_untold(
    ledger: &mut Ledger,
    key: &str,
    claimed: Option<&BTreeMap<String, AchievedLearned>>,
    known: &[String],
    found: &Findings,
) {
    for skipped in &found.skipped {
        if let Skipped::Labels { column } = skipped
            && !known.contains(column)
        {
            let is_there = claimed.is_some_and(|claimed| claimed.contains_key(column));
            ledger.present(&format!("{key}.{column}"), is_there, true);
        }
    }
}

fn check_learned(
    ledger: &mut Ledger,
    key: &str,
    claimed: &BTreeMap<String, AchievedLearned>,
    counted: &[LearnedFindings],
    found: &Findings,
) {
    let counted: BTreeMap<String, &LearnedFindings> =
        counted.iter().map(|column| (column.column.clone(), column)).collect();
    // Without the hierarchy of a column, it is not known which of its labels overlap.
    let is_skipped =
        |column: &str| found.skipped.iter().any(|skipped| *skipped == Skipped::Labels { column: column.to_owned() });
    for (column, AchievedLearned { l, t, certain }) in claimed {
        let key = format!("{key}.{column}");
        match counted.get(column) {
            None if is_skipped(column) => ledger.open(key),
            None => ledger.wrong(key, "something", "nothing"),
            Some(counted) => {
                ledger.optional(format!("{key}.l"), l.map(|l| l as f64), counted.l.map(|l| l as f64));
                ledger.number(format!("{key}.t"), *t, counted.t);
                ledger.number(format!("{key}.certain"), *certain as f64, counted.certain as f64);
            }
        }
    }
    for column in counted.keys().filter(|column| !claimed.contains_key(*column)) {
        ledger.wrong(format!("{key}.{column}"), "nothing", "something");
    }
}
