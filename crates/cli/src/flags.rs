//! Turns flags into a spec: `--quasi age,zip --sensitive disease:l=3` becomes TOML and is read like a file, so flags and
//! specs can't come to mean different things.

use std::collections::BTreeMap;

use kohort::model::Spec;
use kohort::model::spec::{HierarchySource, SpecError, SpecErrorKind};
use toml::{Table, Value};

use crate::failure::{Failure, Report, Status};

/// The name of the table while flags are read. The keys of problems begin with it.
const TABLE: &str = "data";

/// A spec of one table, made from flags one after another. Problems are kept until all flags are read.
#[derive(Default)]
pub(crate) struct FlagSpec {
    top: Table,
    table: Table,
    columns: Vec<(String, Table)>,
    problems: Vec<Report>,
}

impl FlagSpec {
    /// Adds a setting at the top of the spec.
    pub(crate) fn set(&mut self, key: &str, value: impl Into<Value>) {
        self.top.insert(key.to_owned(), value.into());
    }

    /// Adds the file and, if there is one, the column that names the person.
    pub(crate) fn data(&mut self, file: &str, person: Option<&str>) {
        self.table.insert("file".to_owned(), file.into());
        if let Some(person) = person {
            self.table.insert("person".to_owned(), person.into());
        }
    }

    /// Adds columns of one role.
    pub(crate) fn columns(&mut self, role: &str, names: &[String]) {
        for name in names {
            self.column(role, name, Table::new());
        }
    }

    fn column(&mut self, role: &str, name: &str, mut settings: Table) {
        if name.is_empty() {
            self.problems.push(Report::new(format!("--{role}: the name of a column is empty")));
            return;
        }
        if let Some((_, earlier)) = self.columns.iter().find(|(known, _)| known == name) {
            let earlier = earlier.get("role").and_then(Value::as_str).unwrap_or_default();
            let message = format!("column '{name}' is both --{earlier} and --{role}");
            self.problems.push(Report::new(message).hint("give every column one role"));
            return;
        }
        settings.insert("role".to_owned(), role.into());
        self.columns.push((name.to_owned(), settings));
    }

    /// `disease:l=3,t=0.2` or `disease,salary:l=2`: a setting belongs to the column before it.
    pub(crate) fn sensitive(&mut self, flags: &[String]) {
        for flag in flags {
            let mut open: Option<(String, Table)> = None;
            for part in flag.split(',') {
                let (column, setting) = match part.split_once(':') {
                    Some((column, setting)) if !column.contains('=') => (Some(column), Some(setting)),
                    _ if part.contains('=') => (None, Some(part)),
                    _ => (Some(part), None),
                };
                if let Some(column) = column
                    && let Some((name, settings)) = open.replace((column.to_owned(), Table::new()))
                {
                    self.column("sensitive", &name, settings);
                }
                let Some(setting) = setting else { continue };
                match (&mut open, setting.split_once('=')) {
                    (Some((_, settings)), Some((key, value))) => {
                        settings.insert(key.to_owned(), setting_value(value));
                    }
                    (None, _) => self.problems.push(
                        Report::new(format!("--sensitive {flag}: a setting before any column"))
                            .hint("name the column first: --sensitive disease:l=3,t=0.2"),
                    ),
                    (Some(_), None) => self.problems.push(
                        Report::new(format!("--sensitive {flag}: '{setting}' is not a setting"))
                            .hint("write settings as key=value: --sensitive disease:l=3,t=0.2"),
                    ),
                }
            }
            if let Some((name, settings)) = open {
                self.column("sensitive", &name, settings);
            }
        }
    }

    /// `zip=zip.csv`, `age=steps:5,10,50`, `birth=date`.
    pub(crate) fn hierarchies(&mut self, flags: &[String]) {
        for flag in flags {
            let Some((name, rule)) = flag.split_once('=') else {
                self.problems.push(
                    Report::new(format!("--hierarchy {flag}: no '=' between column and hierarchy"))
                        .hint("for example --hierarchy zip=zip.csv or --hierarchy age=steps:5,10,50"),
                );
                continue;
            };
            let hierarchy = hierarchy_value(rule);
            match self.columns.iter_mut().find(|(known, _)| known == name) {
                Some((_, settings)) => {
                    if settings.insert("hierarchy".to_owned(), hierarchy).is_some() {
                        self.problems.push(Report::new(format!("column '{name}' has two hierarchies")));
                    }
                }
                None => self.problems.push(
                    Report::new(format!("--hierarchy {flag}: column '{name}' has no role"))
                        .hint(format!("add --quasi {name}")),
                ),
            }
        }
    }

    /// Reads the result as a spec.
    pub(crate) fn finish(mut self) -> Result<Spec, Failure> {
        let columns: Table = self.columns.into_iter().map(|(name, settings)| (name, settings.into())).collect();
        self.table.insert("columns".to_owned(), columns.into());
        let tables = Table::from_iter([(TABLE.to_owned(), Value::from(self.table))]);
        self.top.insert("tables".to_owned(), tables.into());
        let parsed = Spec::parse(&self.top.to_string());
        match parsed {
            Ok(spec) if self.problems.is_empty() => Ok(spec),
            Ok(_) => Err(Failure::new(Status::Input, self.problems)),
            Err(problems) => {
                self.problems.extend(problems.0.iter().map(report));
                Err(Failure::new(Status::Input, self.problems))
            }
        }
    }
}

/// The hierarchies of columns. Each flag is read as in a spec that has the column.
pub(crate) fn hierarchy_sources(flags: &[String]) -> Result<BTreeMap<String, HierarchySource>, Failure> {
    let mut hierarchies = BTreeMap::new();
    for flag in flags {
        let Some((column, _)) = flag.split_once('=') else {
            let message = format!("--hierarchy {flag}: no '=' between column and hierarchy");
            return Err(Failure::input(message, "for example --hierarchy vehicle=vehicle.csv"));
        };
        let mut spec = FlagSpec::default();
        spec.set("k", 1);
        spec.data("-", None);
        spec.columns("quasi", &[column.to_owned()]);
        spec.hierarchies(std::slice::from_ref(flag));
        let source = spec.finish()?.tables.remove(0).columns.remove(0).hierarchy;
        if source.and_then(|source| hierarchies.insert(column.to_owned(), source)).is_some() {
            return Err(Failure::input(format!("column '{column}' has two hierarchies"), "keep one of them"));
        }
    }
    Ok(hierarchies)
}

/// The report of a problem of the spec, in words for somebody who wrote flags.
fn report(problem: &SpecError) -> Report {
    let key = &problem.key;
    let place = match key.strip_prefix(&format!("tables.{TABLE}.columns.")) {
        Some(column) => format!("column {column}: "),
        None if key.is_empty() || key.contains('.') => String::new(),
        None => format!("--{}: ", key.replace('_', "-")),
    };
    let hint = match &problem.fault {
        SpecErrorKind::RuleWithoutSetting { rule } => Some(format!("for example {}", rule_example(rule))),
        _ => problem.hint().map(|hint| hint.replace("max_suppressed = ", "--max-suppressed ")),
    };
    Report { message: format!("{place}{}", problem.fault), hint }
}

/// An example of a rule with its setting, as a flag writes it.
fn rule_example(rule: &str) -> &'static str {
    match rule {
        "steps" => "steps:5,10,50",
        "mask" => "mask:right",
        "dates" => "dates:month,year, or date for every level",
        _ => "edges:edges.csv",
    }
}

/// A number if the text is one, a list of numbers for `3:2`, else a word.
fn setting_value(text: &str) -> Value {
    let number = |text: &str| -> Option<Value> {
        let whole = text.parse::<i64>().ok().map(Value::from);
        whole.or_else(|| text.parse::<f64>().ok().map(Value::from))
    };
    match number(text) {
        Some(number) => number,
        None if text.contains(':') => {
            text.split(':').map(|part| number(part).unwrap_or_else(|| part.into())).collect::<Vec<_>>().into()
        }
        None => text.into(),
    }
}

/// The value of `hierarchy` in a spec: a rule or a file.
pub(crate) fn hierarchy_value(text: &str) -> Value {
    let list = |text: &str| text.split(',').map(|part| setting_value(part.trim())).collect::<Vec<_>>();
    let rule = |key: &str, value: Value| Value::from(Table::from_iter([(key.to_owned(), value)]));
    match text.split_once(':') {
        Some(("steps", steps)) => rule("steps", list(steps).into()),
        Some(("dates", levels)) => rule("dates", list(levels).into()),
        Some(("mask", side)) => rule("mask", side.into()),
        Some(("edges", file)) => rule("edges", file.into()),
        _ => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use kohort::model::hierarchy::{MaskSide, Rule};
    use kohort::model::spec::TableSpec;
    use kohort::model::{Distance, Requirement, Role};

    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    fn table(fill: impl FnOnce(&mut FlagSpec)) -> Result<TableSpec, Vec<String>> {
        let mut flags = FlagSpec::default();
        flags.set("k", 5);
        flags.data("patients.csv", None);
        flags.columns("quasi", &names(&["age"]));
        fill(&mut flags);
        match flags.finish() {
            Ok(mut spec) => Ok(spec.tables.remove(0)),
            Err(failure) => Err(failure.reports.into_iter().map(|report| report.message).collect()),
        }
    }

    #[test]
    fn settings_belong_to_the_column_before_them() {
        let table = table(|flags| {
            flags.sensitive(&names(&["disease:l=3,t=0.2,distance=ordered,salary", "drug:recursive_cl=3:2"]));
        })
        .unwrap();
        let column = |name: &str| table.columns.iter().find(|column| column.name == name).unwrap();
        let disease = || "disease".to_owned();
        assert_eq!(
            column("disease").requirements,
            [
                Requirement::DistinctL { column: disease(), l: 3 },
                Requirement::TCloseness { column: disease(), t: 0.2, distance: Distance::Ordered },
            ]
        );
        assert_eq!(column("salary").role, Role::Sensitive);
        assert_eq!(column("drug").requirements, [Requirement::RecursiveCL { column: "drug".to_owned(), c: 3.0, l: 2 }]);
    }

    #[test]
    fn hierarchies_are_files_or_rules() {
        let of = |text: &str| {
            let flag = format!("age={text}");
            table(|flags| flags.hierarchies(&[flag])).unwrap().columns[0].hierarchy.clone().unwrap()
        };
        assert_eq!(of("age.csv"), HierarchySource::Paths("age.csv".into()));
        assert_eq!(of("edges:age.csv"), HierarchySource::Edges("age.csv".into()));
        assert_eq!(of("steps:5,10,50"), HierarchySource::Rule(Rule::Steps(vec![5.0, 10.0, 50.0])));
        assert_eq!(of("mask:left"), HierarchySource::Rule(Rule::Mask(MaskSide::Left)));
        assert_eq!(of("flat"), HierarchySource::Rule(Rule::Flat));
    }

    #[test]
    fn all_problems_of_flags_come_together() {
        let found = table(|flags| {
            flags.set("k", 0);
            flags.columns("plain", &names(&["age", ""]));
            flags.sensitive(&names(&["l=3", "disease:l=zero,x"]));
            flags.sensitive(&names(&["drug:oops"]));
            flags.hierarchies(&names(&["zip=zip.csv", "zip"]));
        });
        assert_eq!(
            found.unwrap_err(),
            [
                "column 'age' is both --quasi and --plain",
                "--plain: the name of a column is empty",
                "--sensitive l=3: a setting before any column",
                "--sensitive drug:oops: 'oops' is not a setting",
                "--hierarchy zip=zip.csv: column 'zip' has no role",
                "--hierarchy zip: no '=' between column and hierarchy",
                "--k: must be a whole number of at least 1, not 0",
                "column disease.l: must be a whole number of at least 1, found a text",
            ]
        );
    }
}
