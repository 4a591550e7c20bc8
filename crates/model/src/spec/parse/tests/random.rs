//! Random texts and specs: no text makes the parser panic, and a valid spec is read as it was meant.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::ValueType;
use crate::hierarchy::{DateLevel, MaskSide, Rule};

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC*") {
        let _ = Spec::parse(&text);
    }

    #[test]
    fn no_shuffled_spec_makes_the_parser_panic(
        lines in prop::collection::vec(prop::sample::select(CLINIC.lines().collect::<Vec<_>>()), 0..30),
        cut in 0_usize..400,
    ) {
        let text = lines.join("\n");
        let _ = Spec::parse(&text[..text.floor_char_boundary(cut.min(text.len()))]);
        let _ = Spec::parse(&text);
    }

    #[test]
    fn a_valid_spec_is_read_as_it_was_meant(spec in any_spec()) {
        prop_assert_eq!(Spec::parse(&render(&spec)), Ok(spec));
    }
}

fn any_spec() -> impl Strategy<Value = Spec> {
    let release = (1_u32.., 0.0_f64..=1.0, any::<bool>(), any::<bool>(), 0_u64..1 << 62, 1_u32..=1000);
    let mondrian = (prop::sample::select(keys::CUTS.to_vec()), prop::sample::select(keys::CHOOSE.to_vec()));
    let objective = prop::sample::select(keys::OBJECTIVES.to_vec());
    let minimized = prop::sample::select(vec!["lm", "rank", "entropy", "target:q"]);
    let columns = prop::collection::btree_map("[a-zà-ü \"\\\\.]{1,6}", any_column(), 0..6);
    (release, mondrian, (objective, minimized, 0.1_f64..9.0), columns, any_csv()).prop_map(
        |(release, mondrian, objectives, columns, csv)| {
            let (objective, minimized, weight) = objectives;
            let (k, max_suppressed, suppress, keep, seed, effort) = release;
            let quasi = ColumnSpec {
                name: "q".to_owned(),
                role: Role::Quasi,
                references: None,
                value_type: None,
                hierarchy: None,
                transform: Transform::default(),
                requirements: Vec::new(),
                sensitive_to: Vec::new(),
                weight,
            };
            let columns = columns.into_iter().filter(|(name, _)| name != "q");
            let columns = columns.map(|(name, column)| ColumnSpec {
                requirements: column.requirements.into_iter().map(|requirement| rename(requirement, &name)).collect(),
                sensitive_to: column.sensitive_to,
                name,
                ..column
            });
            let table = TableSpec {
                name: "t".to_owned(),
                file: PathBuf::from("t.csv"),
                csv,
                person: None,
                key: None,
                parent: None,
                orphans: Orphans::Refuse,
                childless: Childless::Refuse,
                max_rows_left_out: None,
                columns: columns.chain([quasi]).collect(),
            };
            Spec {
                max_suppressed,
                leftovers: if suppress && max_suppressed > 0.0 { Leftovers::Suppress } else { Leftovers::Merge },
                keys: if keep { Keys::Keep } else { Keys::Surrogate },
                seed,
                objective: LossObjective::from_word(minimized).unwrap(),
                effort,
                mondrian: MondrianSpec { cuts: mondrian.0.1, choose: mondrian.1.1 },
                full_domain: FullDomainSpec { objective: objective.1 },
                tables: vec![table],
                ..Spec::new(k)
            }
        },
    )
}

fn any_csv() -> impl Strategy<Value = CsvSpec> {
    let separator = prop::option::of(prop::sample::select(vec![',', ';', '\t', '|']));
    let null = prop::option::of(prop::collection::vec("[A-Z\"\\\\é]{0,3}", 0..3));
    (separator, null, prop::option::of(any::<bool>())).prop_map(|(separator, null, header)| CsvSpec {
        separator,
        null,
        header,
        ..CsvSpec::default()
    })
}

fn any_column() -> impl Strategy<Value = ColumnSpec> {
    let column = |role, value_type, hierarchy, requirements| ColumnSpec {
        sensitive_to: Vec::new(),
        weight: 1.0,
        name: String::new(),
        role,
        references: None,
        value_type,
        hierarchy,
        transform: Transform::default(),
        requirements,
    };
    let quasi = prop_oneof![
        Just((None, None)),
        Just((
            Some(ValueType::Date),
            Some(HierarchySource::Rule(Rule::Dates(vec![DateLevel::Month, DateLevel::Year])))
        )),
        Just((None, Some(HierarchySource::Rule(Rule::Mask(MaskSide::Left))))),
        Just((Some(ValueType::Text), Some(HierarchySource::Rule(Rule::Flat)))),
        Just((None, Some(HierarchySource::Paths(PathBuf::from("h/é.csv"))))),
        Just((None, Some(HierarchySource::Edges(PathBuf::from("e.csv"))))),
        (1_u32..100, 2_u32..10).prop_map(|(step, factor)| {
            let steps = vec![f64::from(step), f64::from(step * factor)];
            (Some(ValueType::Integer), Some(HierarchySource::Rule(Rule::Steps(steps))))
        }),
    ];
    let requirements = (prop::option::of(1_u32..), prop::option::of(0.0_f64..=1.0), prop::option::of(0.1_f64..9.0));
    prop_oneof![
        prop::sample::select(vec![Role::Identifier, Role::Plain, Role::Drop]).prop_map(move |role| column(
            role,
            None,
            None,
            Vec::new()
        )),
        quasi.prop_map(move |(value_type, hierarchy)| column(Role::Quasi, value_type, hierarchy, Vec::new())),
        requirements.prop_map(move |(l, t, beta)| {
            let name = String::new;
            let l = l.map(|l| Requirement::DistinctL { column: name(), l });
            let distance = Distance::Ordered;
            let t = t.map(|t| Requirement::TCloseness { column: name(), t, distance });
            let beta = beta.map(|beta| Requirement::EnhancedBeta { column: name(), beta });
            column(Role::Sensitive, None, None, [l, t, beta].into_iter().flatten().collect())
        }),
    ]
}

fn rename(requirement: Requirement, name: &str) -> Requirement {
    let column = name.to_owned();
    match requirement {
        Requirement::DistinctL { l, .. } => Requirement::DistinctL { column, l },
        Requirement::TCloseness { t, distance, .. } => Requirement::TCloseness { column, t, distance },
        Requirement::EnhancedBeta { beta, .. } => Requirement::EnhancedBeta { column, beta },
        other => other,
    }
}

/// The TOML of a spec with one table, as far as [`any_spec`] makes one.
fn render(spec: &Spec) -> String {
    let mut top = toml::Table::new();
    let mut set = |key: &str, value: toml::Value| top.insert(key.to_owned(), value);
    set("k", i64::from(spec.k).into());
    set("max_suppressed", spec.max_suppressed.into());
    set("leftovers", word(keys::LEFTOVERS, spec.leftovers));
    set("keys", word(keys::KEYS, spec.keys));
    set("seed", (spec.seed as i64).into());
    set("effort", i64::from(spec.effort).into());
    set("objective", spec.objective.word().into_owned().into());
    let mondrian =
        [("cuts", word(keys::CUTS, spec.mondrian.cuts)), ("choose", word(keys::CHOOSE, spec.mondrian.choose))];
    set("mondrian", table(mondrian));
    set("full_domain", table([("objective", word(keys::OBJECTIVES, spec.full_domain.objective))]));
    let given = &spec.tables[0];
    let mut rest: BTreeMap<&str, toml::Value> = BTreeMap::from([("file", "t.csv".into())]);
    if let Some(separator) = given.csv.separator {
        rest.insert("separator", separator.to_string().into());
    }
    if let Some(null) = &given.csv.null {
        rest.insert("null", null.clone().into());
    }
    if let Some(header) = given.csv.header {
        rest.insert("header", header.into());
    }
    // Written by hand, because a TOML table sorts its keys and the order of columns counts.
    let mut text = toml::to_string(&top).unwrap();
    text += &format!("\n[tables.t]\n{}\n[tables.t.columns]\n", toml::to_string(&rest).unwrap());
    for column in &given.columns {
        let name = toml::Value::from(column.name.as_str());
        writeln!(text, "{name} = {}", render_column(column)).unwrap();
    }
    text
}

fn render_column(column: &ColumnSpec) -> toml::Value {
    let mut settings = vec![("role", column.role.word().into())];
    if let Some(value_type) = column.value_type {
        settings.push(("type", value_type.word().into()));
    }
    if let Some(hierarchy) = &column.hierarchy {
        let path = |path: &PathBuf| toml::Value::from(path.to_str().unwrap());
        let hierarchy = match hierarchy {
            HierarchySource::Paths(file) => path(file),
            HierarchySource::Edges(file) => table([("edges", path(file))]),
            HierarchySource::Rule(Rule::Flat) => "flat".into(),
            HierarchySource::Rule(Rule::Steps(steps)) => table([("steps", steps.clone().into())]),
            HierarchySource::Rule(Rule::Mask(side)) => table([("mask", word(keys::MASKS, *side))]),
            HierarchySource::Rule(Rule::Dates(levels)) => {
                let levels: Vec<toml::Value> = levels.iter().map(|&level| word(keys::DATE_LEVELS, level)).collect();
                table([("dates", levels.into())])
            }
        };
        settings.push(("hierarchy", hierarchy));
    }
    if column.weight != 1.0 {
        settings.push(("weight", column.weight.into()));
    }
    for requirement in &column.requirements {
        match requirement {
            Requirement::DistinctL { l, .. } => settings.push(("l", i64::from(*l).into())),
            Requirement::TCloseness { t, distance, .. } => {
                settings.push(("t", (*t).into()));
                settings.push(("distance", word(keys::DISTANCES, *distance)));
            }
            Requirement::EnhancedBeta { beta, .. } => settings.push(("enhanced_beta", (*beta).into())),
            other => panic!("not generated: {other:?}"),
        }
    }
    table(settings)
}

fn table<'a>(settings: impl IntoIterator<Item = (&'a str, toml::Value)>) -> toml::Value {
    toml::Value::Table(settings.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

fn word<T: PartialEq + Copy>(words: &[(&'static str, T)], value: T) -> toml::Value {
    words.iter().find(|(_, known)| *known == value).expect("every setting has a word").0.into()
}
