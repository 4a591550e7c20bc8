//! [`counts`]: what the verifier counted, as JSON for programs.

use kohort_verify::{
    AudienceFindings, Counted, Findings, LearnedFindings, SensitiveFindings, Skipped, TableFindings, TogetherWithin,
};
use serde_json::{Map, Value, json};

use crate::manifest::sensitive_columns;

/// Whether rows of the same person can't be told apart from others. Then sizes are only bounds, and shares are not known.
pub fn hides_persons(findings: &Findings) -> bool {
    findings.skipped.iter().any(|skipped| matches!(skipped, Skipped::OfPersons { .. }))
}

/// Whether the number of persons that look the same is known. If only private rows are released, only the register tells.
pub fn has_sizes(findings: &Findings) -> bool {
    !findings.skipped.contains(&Skipped::Crowd)
}

/// The counts of a table or a release as a JSON object. What the files can't tell is null.
pub fn counts(findings: &Findings) -> Map<String, Value> {
    let counted = match findings.counted {
        Counted::Persons => "persons",
        Counted::Rows => "rows",
    };
    let smallest: Vec<Value> = findings
        .smallest_classes()
        .iter()
        .map(|&(persons, classes)| json!({ "persons": persons, "classes": classes }))
        .collect();
    let sensitive: Map<String, Value> =
        sensitive_columns(findings).into_iter().map(|(name, column)| (name, sensitive_object(column))).collect();
    let object = json!({
        "counted": counted,
        "rows": findings.rows,
        "persons": findings.persons,
        "classes": findings.classes,
        "k": findings.k,
        "unique_persons": findings.unique_persons,
        "smallest_classes": smallest,
        "risk": { "highest": findings.highest_risk, "average": findings.average_risk },
        "sensitive": sensitive,
    });
    let mut object = match object {
        Value::Object(object) => object,
        _ => Map::new(),
    };
    if !findings.audiences.is_empty() {
        let entry = |audience: &AudienceFindings| {
            let sensitive = audience.sensitive.iter().map(|column| (column.column.clone(), sensitive_object(column)));
            let figures = json!({
                "classes": audience.classes,
                "k": audience.k,
                "unique_persons": audience.unique_persons,
                "average_risk": audience.average_risk,
                "sensitive": sensitive.collect::<Map<String, Value>>(),
                "learned": audience.learned.iter().map(learned_entry).collect::<Map<String, Value>>(),
            });
            (audience.audience.clone(), figures)
        };
        let audiences: Map<String, Value> = findings.audiences.iter().map(entry).collect();
        let coalitions: Map<String, Value> = findings.coalitions.iter().map(entry).collect();
        object.insert("audiences".to_owned(), audiences.into());
        object.insert("coalitions".to_owned(), coalitions.into());
        object.insert("collusion_k".to_owned(), findings.collusion_k.into());
    }
    if !has_sizes(findings) {
        for unknown in ["k", "unique_persons", "smallest_classes", "risk"] {
            object.insert(unknown.to_owned(), Value::Null);
        }
    }
    if hides_persons(findings) {
        object.insert("k".to_owned(), Value::Null);
        object.insert("k_at_most".to_owned(), findings.k.into());
        for unknown in ["persons", "unique_persons", "smallest_classes", "risk"] {
            object.insert(unknown.to_owned(), Value::Null);
        }
        let distinct = |(name, column): (String, &SensitiveFindings)| (name, json!({ "l": column.l }));
        let sensitive: Map<String, Value> = sensitive_columns(findings).into_iter().map(distinct).collect();
        object.insert("sensitive".to_owned(), sensitive.into());
    }
    if let Some(joined) = &findings.joined {
        object.insert("sensitive_groups".to_owned(), joined.groups.into());
        object.insert("group_k".to_owned(), joined.group_k.into());
        if let Some(TogetherWithin { k, l }) = &joined.together_within {
            let within = |least: Value, most: Value| json!({ "least": least, "most": most });
            let l: Map<String, Value> = l
                .iter()
                .map(|(column, (least, most))| (column.clone(), within((*least).into(), (*most).into())))
                .collect();
            object.insert("read_together".to_owned(), json!({ "k": within(k.0.into(), k.1.into()), "l": l }));
        }
    }
    if !findings.tables.is_empty() {
        let table = |table: &TableFindings| json!({ "name": table.table, "rows": table.rows, "classes": table.classes, "k": table.k });
        object.insert("tables".to_owned(), findings.tables.iter().map(table).collect());
    }
    object
}

fn learned_entry(learned: &LearnedFindings) -> (String, Value) {
    let LearnedFindings { column, l, t, certain } = learned;
    (column.clone(), json!({ "l": l, "t": t, "certain": certain }))
}

fn sensitive_object(column: &SensitiveFindings) -> Value {
    json!({
        "l": column.l,
        "entropy_l": column.entropy_l,
        "recursive_c": column.recursive_c,
        "t": column.t,
        "t_ordered": column.t_ordered,
        "t_hierarchical": column.t_hierarchical,
        "alpha": column.alpha,
        "beta": column.beta,
        "enhanced_beta": column.enhanced_beta,
    })
}
