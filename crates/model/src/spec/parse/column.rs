//! Reads one column of a spec: its role, its type, the source of its hierarchy, and its requirements.

use std::path::PathBuf;

use toml::de::DeValue;

use super::super::keys;
use super::super::{ColumnSpec, HierarchySource, SpecErrorKind};
use super::section::{Bounds, Entry, Place, Reader, Section, out_of_bounds, understand_word, wrong_kind};
use super::transform::read_transform;
use crate::hierarchy::{DateLevel, Rule};
use crate::{Distance, Requirement, Role, Transform, ValueType};

/// A column as far as it could be read.
pub(super) struct ColumnDraft {
    pub(super) place: Place,
    pub(super) name: String,
    /// `None` if the role is missing or unknown, which has been noted.
    pub(super) role: Option<Role>,
    /// The table that the column references, and the place of this setting.
    pub(super) references: Option<(String, Place)>,
    value_type: Option<ValueType>,
    hierarchy: Option<HierarchySource>,
    pub(super) transform: Transform,
    pub(super) requirements: Vec<Requirement>,
    /// The audiences that must not learn this quasi column, and the place of this setting.
    pub(super) sensitive_to: Vec<String>,
    pub(super) sensitive_to_place: Place,
    pub(super) weight: f64,
    /// The place of the weight, if the spec sets one.
    pub(super) weight_place: Option<Place>,
}

impl ColumnDraft {
    /// A column that the spec does not list, because its role follows from its use.
    pub(super) fn implied(name: &str, role: Role, place: Place) -> Self {
        let name = name.to_owned();
        ColumnDraft { role: Some(role), ..ColumnDraft::nothing_yet(name, place) }
    }

    fn nothing_yet(name: String, place: Place) -> Self {
        ColumnDraft {
            sensitive_to_place: place.clone(),
            place,
            name,
            role: None,
            references: None,
            value_type: None,
            hierarchy: None,
            transform: Transform::default(),
            requirements: Vec::new(),
            sensitive_to: Vec::new(),
            weight: 1.0,
            weight_place: None,
        }
    }

    /// Whether the hierarchical distance is defined.
    pub(super) fn has_hierarchy(&self) -> bool {
        self.hierarchy.is_some()
    }

    pub(super) fn finish(self) -> Option<ColumnSpec> {
        let ColumnDraft { name, role, value_type, hierarchy, transform, requirements, sensitive_to, weight, .. } = self;
        let references = self.references.map(|(table, _)| table);
        let role = role?;
        Some(ColumnSpec {
            name,
            role,
            references,
            value_type,
            hierarchy,
            transform,
            requirements,
            sensitive_to,
            weight,
        })
    }
}

/// `zip = "plain"` or `zip = { role = "quasi", ... }`.
pub(super) fn read_column<'s>(reader: &mut Reader<'_>, columns: &Section<'s>, entry: Entry<'s>) -> ColumnDraft {
    let place = reader.place(columns, entry);
    let mut draft = ColumnDraft::nothing_yet(entry.name.to_owned(), place.clone());
    match entry.value.get_ref() {
        DeValue::String(word) => match understand_word(word, &roles()) {
            Ok(role) => {
                draft.role = Some(role);
                if *word == keys::PSEUDONYM {
                    reader.note(&place, SpecErrorKind::Missing { key: "key_file", example: KEY_FILE });
                }
            }
            Err(fault) => reader.note(&place, fault),
        },
        DeValue::Table(_) => {
            if let Some(section) = reader.table(entry, place) {
                reader.check_keys(&section, keys::COLUMN);
                read_details(reader, &section, &mut draft);
            }
        }
        other => reader.note(&place, wrong_kind("a role in quotes or a table with a role", other)),
    }
    draft
}

const KEY_FILE: &str = "{ role = \"pseudonym\", key_file = \"pseudonyms.key\" }";

/// The words for roles. Pseudonyms are released as plain cells.
fn roles() -> Vec<(&'static str, Role)> {
    let pseudonym = (keys::PSEUDONYM, Role::Plain);
    Role::ALL.iter().map(|&role| (role.word(), role)).chain([pseudonym]).collect()
}

fn read_details(reader: &mut Reader<'_>, section: &Section<'_>, draft: &mut ColumnDraft) {
    if !section.has("role") {
        reader.note(&section.place, SpecErrorKind::Missing { key: "role", example: "role = \"quasi\"" });
    }
    draft.role = reader.word(section, "role", &roles());
    let types: Vec<(&'static str, ValueType)> = ValueType::ALL.iter().map(|&known| (known.word(), known)).collect();
    draft.value_type = reader.word(section, "type", &types);
    draft.hierarchy = read_hierarchy(reader, section);
    draft.transform = read_transform(reader, section, draft.hierarchy.as_ref(), draft.value_type, draft.role);
    draft.transform.pseudonym_key = read_key_file(reader, section, &draft.transform);
    draft.requirements = read_requirements(reader, section, &draft.name, draft.hierarchy.is_some());
    draft.sensitive_to = reader.texts(section, "sensitive_to").unwrap_or_default();
    draft.sensitive_to_place = reader.place_of(section, "sensitive_to");
    draft.weight = reader.number(section, "weight", Bounds::AboveZero).unwrap_or(1.0);
    draft.weight_place = section.has("weight").then(|| reader.place_of(section, "weight"));
    let references = reader.text(section, "references").map(str::to_owned);
    draft.references = references.map(|table| (table, reader.place_of(section, "references")));

    let Some(role) = draft.role else { return };
    if role != Role::Key && section.has("references") {
        reader.note(&reader.place_of(section, "references"), SpecErrorKind::ReferencesOnRole { role });
    }
    if !matches!(role, Role::Quasi | Role::Sensitive) {
        for key in ["type", "hierarchy"] {
            // A plain column is typed if its cells are changed.
            let is_typed = key == "type" && role == Role::Plain && draft.transform.needs_type();
            if section.has(key) && !is_typed {
                reader.note(&reader.place_of(section, key), SpecErrorKind::NotGeneralized { role });
            }
        }
    }
    if let Some(place) = draft.weight_place.as_ref().filter(|_| role != Role::Quasi) {
        reader.note(place, SpecErrorKind::WeightOnRole { role });
    }
    let is_hidden = section.has("sensitive_to");
    if is_hidden && role != Role::Quasi {
        reader.note(&draft.sensitive_to_place, SpecErrorKind::SensitiveToOnRole { role });
    } else if is_hidden {
        check_hidden(reader, section);
        if !["l", "p", "t"].iter().any(|key| section.has(key)) {
            reader.note(&draft.sensitive_to_place, SpecErrorKind::AsksNothing { example: "l = 2" });
        }
    } else if role != Role::Sensitive {
        for key in keys::REQUIREMENTS {
            if section.has(key) {
                reader.note(&reader.place_of(section, key), SpecErrorKind::RequirementOnRole { role });
            }
        }
    }
    if let (Some(HierarchySource::Rule(rule)), Some(value_type)) = (&draft.hierarchy, draft.value_type) {
        let (name, fits) = match rule {
            Rule::Steps(_) => {
                ("steps", matches!(value_type, ValueType::Integer | ValueType::Decimal | ValueType::Float))
            }
            Rule::Dates(_) => ("dates", matches!(value_type, ValueType::Date | ValueType::Timestamp)),
            Rule::Mask(_) => ("mask", true),
            Rule::Flat => ("flat", true),
        };
        if !fits {
            let fault = SpecErrorKind::RuleOnType { rule: name, value_type };
            reader.note(&reader.place_of(section, "hierarchy"), fault);
        }
    }
}

/// The file of the key, which only pseudonyms have, and they need.
fn read_key_file(reader: &mut Reader<'_>, section: &Section<'_>, changes: &Transform) -> Option<PathBuf> {
    let role = section.entry("role").and_then(|entry| entry.value.get_ref().as_str());
    let is_pseudonym = role == Some(keys::PSEUDONYM);
    if is_pseudonym && !changes.is_nothing() {
        reader.note(&section.place, SpecErrorKind::ChangedPseudonym);
    }
    if is_pseudonym && !section.has("key_file") {
        reader.note(&section.place, SpecErrorKind::Missing { key: "key_file", example: KEY_FILE });
    }
    let file = reader.text(section, "key_file")?.to_owned();
    if !is_pseudonym {
        reader.note(&reader.place_of(section, "key_file"), SpecErrorKind::KeyWithoutPseudonym);
        return None;
    }
    if file.is_empty() {
        let place = reader.place_of(section, "key_file");
        reader.note(&place, SpecErrorKind::NotAllowed { expected: "a file", found: "\"\"".to_owned() });
    }
    Some(PathBuf::from(file))
}

/// `"date"`, `"flat"`, a path, or a table with one rule.
fn read_hierarchy(reader: &mut Reader<'_>, section: &Section<'_>) -> Option<HierarchySource> {
    let entry = section.entry("hierarchy")?;
    let place = reader.place(section, entry);
    match entry.value.get_ref() {
        DeValue::String(word) => match &**word {
            "date" => {
                let levels: Vec<DateLevel> = keys::DATE_LEVELS.iter().map(|&(_, level)| level).collect();
                Some(HierarchySource::Rule(Rule::Dates(levels)))
            }
            "flat" => Some(HierarchySource::Rule(Rule::Flat)),
            rule if keys::HIERARCHY.contains(&rule) => {
                reader.note(&place, SpecErrorKind::RuleWithoutSetting { rule: rule.to_owned() });
                None
            }
            "" => {
                reader
                    .note(&place, SpecErrorKind::NotAllowed { expected: "a file or a rule", found: "\"\"".to_owned() });
                None
            }
            path => Some(HierarchySource::Paths(PathBuf::from(path))),
        },
        DeValue::Table(_) => {
            let rules = reader.table(entry, place)?;
            reader.check_keys(&rules, keys::HIERARCHY);
            read_rule(reader, &rules)
        }
        other => {
            reader.note(&place, wrong_kind("a file, \"date\", \"flat\", or a table with a rule", other));
            None
        }
    }
}

fn read_rule(reader: &mut Reader<'_>, rules: &Section<'_>) -> Option<HierarchySource> {
    let found = keys::HIERARCHY.iter().filter(|key| rules.has(key)).count();
    if found != 1 {
        reader.note(&rules.place, SpecErrorKind::NotOneRule { found });
        return None;
    }
    if rules.has("edges") {
        let path = reader.text(rules, "edges")?;
        return Some(HierarchySource::Edges(PathBuf::from(path)));
    }
    let rule = if rules.has("steps") {
        Rule::Steps(reader.numbers(rules, "steps", "a list of numbers")?)
    } else if rules.has("mask") {
        Rule::Mask(reader.word(rules, "mask", keys::MASKS)?)
    } else {
        Rule::Dates(reader.words(rules, "dates", keys::DATE_LEVELS)?)
    };
    if let Err(problem) = rule.check() {
        reader.note(&rules.place, SpecErrorKind::Rule(problem));
        return None;
    }
    Some(HierarchySource::Rule(rule))
}

/// Notes a fault for each requirement that is not defined for a quasi column. Because its cells are generalized, only
/// `l`, and `t` with the equal distance, are defined.
pub(super) fn check_hidden(reader: &mut Reader<'_>, section: &Section<'_>) {
    for key in keys::REQUIREMENTS.iter().filter(|key| !["l", "p", "t", "distance"].contains(key)) {
        if section.has(key) {
            reader.note(&reader.place_of(section, key), SpecErrorKind::NotOfLabels { what: key });
        }
    }
    let is_equal = section.entry("distance").is_none_or(|entry| entry.value.get_ref().as_str() == Some("equal"));
    if !is_equal {
        reader.note(&reader.place_of(section, "distance"), SpecErrorKind::NotOfLabels { what: "this distance" });
    }
}

/// The requirements of a column.
pub(super) fn read_requirements(
    reader: &mut Reader<'_>,
    section: &Section<'_>,
    column: &str,
    has_hierarchy: bool,
) -> Vec<Requirement> {
    let column = || column.to_owned();
    let mut requirements = Vec::new();
    if section.has("l") && section.has("p") {
        reader.note(&reader.place_of(section, "p"), SpecErrorKind::LAndP);
    }
    let p = reader.count(section, "p");
    if let Some(l) = reader.count(section, "l").or(p) {
        requirements.push(Requirement::DistinctL { column: column(), l });
    }
    if let Some(l) = reader.number(section, "entropy_l", Bounds::AtLeastOne) {
        requirements.push(Requirement::EntropyL { column: column(), l });
    }
    if let Some((c, l)) = read_recursive_cl(reader, section) {
        requirements.push(Requirement::RecursiveCL { column: column(), c, l });
    }
    let distance = reader.word(section, "distance", keys::DISTANCES);
    if section.has("distance") && !section.has("t") {
        reader.note(&reader.place_of(section, "distance"), SpecErrorKind::DistanceWithoutT);
    }
    if distance == Some(Distance::Hierarchical) && !has_hierarchy {
        reader.note(&reader.place_of(section, "distance"), SpecErrorKind::DistanceWithoutHierarchy);
    }
    if let Some(t) = reader.number(section, "t", Bounds::ZeroToOne) {
        let distance = distance.unwrap_or(Distance::Equal);
        requirements.push(Requirement::TCloseness { column: column(), t, distance });
    }
    if let Some(alpha) = reader.number(section, "alpha", Bounds::AboveZeroToOne) {
        requirements.push(Requirement::Alpha { column: column(), alpha });
    }
    if let Some(beta) = reader.number(section, "beta", Bounds::AboveZero) {
        requirements.push(Requirement::Beta { column: column(), beta });
    }
    if let Some(beta) = reader.number(section, "enhanced_beta", Bounds::AboveZero) {
        requirements.push(Requirement::EnhancedBeta { column: column(), beta });
    }
    requirements
}

fn read_recursive_cl(reader: &mut Reader<'_>, section: &Section<'_>) -> Option<(f64, u32)> {
    const EXPECTED: &str = "[c, l] with c above 0 and a whole l of at least 1";
    let numbers = reader.numbers(section, "recursive_cl", EXPECTED)?;
    let place = reader.place_of(section, "recursive_cl");
    let &[c, l] = numbers.as_slice() else {
        let found = format!("a list of {}", numbers.len());
        reader.note(&place, SpecErrorKind::NotAllowed { expected: EXPECTED, found });
        return None;
    };
    let c_is_fine = c.is_finite() && c > 0.0;
    let l_is_fine = l >= 1.0 && l.fract() == 0.0 && l <= f64::from(u32::MAX);
    if !c_is_fine || !l_is_fine {
        reader.note(&place, out_of_bounds(EXPECTED, if c_is_fine { l } else { c }));
        return None;
    }
    Some((c, l as u32))
}
