//! The loss that is minimized, and weights of columns.

use super::*;
use crate::spec::LossObjective;

fn text(objective: &str, column: &str, more: &str) -> String {
    format!(
        "k = 5\n{objective}\n[tables.a]\nfile = \"a.csv\"\n[tables.a.columns]\nq = {column}\ns = \"sensitive\"\nn = \"identifier\"\n{more}"
    )
}

#[test]
fn objectives_and_weights_are_read() {
    let spec = Spec::parse(&text("objective = \"target:s\"", "{ role = \"quasi\", weight = 2.5 }", "")).unwrap();
    assert_eq!(spec.objective, LossObjective::Target("s".to_owned()));
    assert_eq!(
        spec.weights().map(|(_, column)| (column.name.as_str(), column.weight)).collect::<Vec<_>>(),
        [("q", 2.5)]
    );
    assert!(spec.has_objective());
    assert!(!Spec::parse(&text("objective = \"lm\"", "\"quasi\"", "")).unwrap().has_objective());
}

#[test]
fn an_objective_that_can_not_be_followed_is_refused() {
    let quasi = "\"quasi\"";
    for (objective, wrong) in [
        (
            "objective = \"ranks\"",
            "line 2: objective: must be \"lm\", \"rank\", \"entropy\" or \"target:COLUMN\", not 'ranks'\n",
        ),
        (
            "objective = 3",
            "line 2: objective: must be \"lm\", \"rank\", \"entropy\" or \"target:COLUMN\", found a whole number\n",
        ),
        (
            "objective = \"target:n\"",
            "line 2: objective: column 'n' is identifier, so it can't be a target\n  name a column with role \"sensitive\", \"plain\" or \"quasi\"\n",
        ),
        ("objective = \"target:nobody\"", "line 2: objective: no table gives column 'nobody' a role\n"),
    ] {
        assert_eq!(problems(&text(objective, quasi, "")), wrong);
    }
    let audiences = "[audiences.b]\nquasi = [\"q\"]\n";
    let found = problems(&text("objective = \"rank\"", "{ role = \"quasi\", weight = 2 }", audiences));
    assert_eq!(
        found,
        "line 2: objective: only the usual loss is minimized with audiences\n  take objective and weights out, or release one table by \
         itself\nline 6: tables.a.columns.q.weight: only the usual loss is minimized with audiences\n  take objective and weights out, \
         or release one table by itself\n"
    );
}

#[test]
fn a_weight_is_for_a_quasi_column_and_above_0() {
    assert_eq!(
        problems_of_columns("s = { role = \"sensitive\", weight = 2 }\n"),
        "line 6: tables.a.columns.s.weight: a weight is for a quasi column, whose cells may lose something, but this one is sensitive\n  \
         give the column role \"quasi\", or take the weight out\n"
    );
    assert_eq!(
        problems_of_columns("z = { role = \"quasi\", weight = 0 }\n"),
        "line 6: tables.a.columns.z.weight: must be a number above 0, not 0\n"
    );
}
