//! Reading a [`Spec`] from TOML.
//!
//! # Guarantee
//! Every fault of a valid TOML text is reported, each with its line and key, and every spec that is returned is
//! consistent in itself. If the text is not TOML, only that is reported, because its content could only be guessed.
//! # Deviations
//! A column that is not listed, but named by `person`, `key`, `foreign_key` or an audience, is added as a key or as a
//! quasi column.

mod collusion;
mod column;
mod links;
mod objective;
mod section;
mod table;
mod transform;

use std::path::PathBuf;

use toml::de::DeTable;

use self::section::{Bounds, Place, Reader, Section, out_of_bounds};
use self::table::TableDraft;
use super::keys;
use super::{
    Algorithm, ClusteringSpec, DataflySpec, FullDomainSpec, Keys, Leftovers, MondrianSpec, Order, RegisterRows,
    ReleasedHierarchies, Spec, SpecError, SpecErrorKind, SpecErrors,
};
use crate::Role;

impl Spec {
    /// Reads a spec.
    ///
    /// # Errors
    /// Every fault, each with its line and key.
    pub fn parse(text: &str) -> Result<Spec, SpecErrors> {
        let mut reader = Reader::new(text);
        let (document, errors) = DeTable::parse_recoverable(text);
        if !errors.is_empty() {
            return Err(SpecErrors(syntax_problems(&reader, &errors)));
        }
        let spec = read_spec(&mut reader, document.get_ref());
        let problems = reader.into_problems();
        if problems.is_empty() { Ok(spec) } else { Err(SpecErrors(problems)) }
    }
}

/// The first error of each line, because a second one is mostly a consequence of the first.
fn syntax_problems(reader: &Reader<'_>, errors: &[toml::de::Error]) -> Vec<SpecError> {
    let mut problems: Vec<SpecError> = errors
        .iter()
        .map(|error| SpecError {
            line: error.span().map(|span| reader.line(span.start)),
            key: String::new(),
            fault: SpecErrorKind::Syntax { message: error.message().replace('\n', ", ") },
        })
        .collect();
    // The TOML reader gives no line if keys are nested too deeply, so that error comes last.
    problems.sort_by_key(|problem| problem.line.unwrap_or(usize::MAX));
    problems.dedup_by_key(|problem| problem.line);
    problems
}

/// The spec as far as it can be read. The result is meaningless if a fault was noted.
fn read_spec<'s>(reader: &mut Reader<'_>, document: &'s DeTable<'s>) -> Spec {
    let top = reader.whole_spec(document, keys::TOP);
    let k = read_k(reader, &top);
    let algorithms: Vec<(&'static str, Algorithm)> =
        Algorithm::ALL.iter().map(|&algorithm| (algorithm.word(), algorithm)).collect();
    let algorithm = reader.word(&top, "algorithm", &algorithms).unwrap_or(Algorithm::Auto);
    let objective = objective::read_objective(reader, &top);
    let effort = reader.whole(&top, "effort", 1..=1000, "a whole number from 1 to 1000").unwrap_or(1) as u32;
    let max_suppressed = reader.number(&top, "max_suppressed", Bounds::ZeroToOne);
    let leftovers = reader.word(&top, "leftovers", keys::LEFTOVERS).unwrap_or(Leftovers::Merge);
    let nobody_may_be_left_out = max_suppressed == Some(0.0) || !top.has("max_suppressed");
    if leftovers == Leftovers::Suppress && nobody_may_be_left_out {
        reader.note(&reader.place_of(&top, "leftovers"), SpecErrorKind::SuppressWithoutLimit);
    }
    let order = reader.word(&top, "order", keys::ORDERS).unwrap_or(Order::Sorted);
    let seed = reader.whole(&top, "seed", 0..=i128::from(i64::MAX), "a whole number of at least 0").unwrap_or(0);

    let mut tables = read_tables(reader, &top);
    links::check_parents(reader, &tables);
    links::check_algorithm(reader, &reader.place_of(&top, "algorithm"), algorithm, &tables);
    let keys = reader.word(&top, "keys", keys::KEYS).unwrap_or(Keys::Surrogate);
    links::check_references(reader, &top, keys, &tables);
    let hierarchies = reader.word(&top, "hierarchies", keys::HIERARCHIES).unwrap_or(ReleasedHierarchies::Shown);
    let audiences = links::read_audiences(reader, &top, &mut tables);
    collusion::check_sensitive_to(reader, &audiences, &tables);
    let coalitions = collusion::read_collusion(reader, &top, &audiences, &tables);
    let steer = collusion::read_steer(reader, &top, &audiences);
    if leftovers == Leftovers::Suppress && !audiences.is_empty() {
        reader.note(&reader.place_of(&top, "leftovers"), SpecErrorKind::SuppressWithAudiences);
    }
    let registers = links::read_registers(reader, &top, &tables);
    if top.has("registers") && order == Order::Input {
        reader.note(&reader.place_of(&top, "order"), SpecErrorKind::OrderWithRegister);
    }
    transform::check_places(reader, &tables, !registers.is_empty());
    let register = links::read_register_use(reader, &top, &registers);
    let delta_presence = read_delta_presence(reader, &top);
    if delta_presence.is_some() && register.release == RegisterRows::Microdata {
        reader.note(&reader.place_of(&top, "delta_presence"), SpecErrorKind::PresenceIsPublic);
    }
    let previous = read_previous(reader, &top);
    check_quasi(reader, &tables);
    objective::check_objective(reader, &top, &objective, &tables);
    let datafly = read_datafly(reader, &top, &tables);
    Spec {
        k,
        algorithm,
        objective,
        effort,
        max_suppressed: max_suppressed.unwrap_or(0.0),
        leftovers,
        order,
        keys,
        hierarchies,
        seed,
        mondrian: read_mondrian(reader, &top),
        datafly,
        full_domain: read_full_domain(reader, &top),
        clustering: read_clustering(reader, &top),
        tables: tables.into_iter().map(TableDraft::finish).collect(),
        audiences,
        coalitions,
        steer,
        registers,
        register,
        delta_presence,
        previous,
    }
}

fn read_k(reader: &mut Reader<'_>, top: &Section<'_>) -> u32 {
    let k = reader.count(top, "k");
    let preset = reader.word(top, "preset", keys::PRESETS);
    match (top.has("k"), top.has("preset")) {
        (true, true) => reader.note(&reader.place_of(top, "preset"), SpecErrorKind::KAndPreset),
        (false, false) => reader.note(&top.place, SpecErrorKind::NoK),
        (true, false) | (false, true) => {}
    }
    k.or(preset).unwrap_or(1)
}

fn read_tables(reader: &mut Reader<'_>, top: &Section<'_>) -> Vec<TableDraft> {
    let section = reader.names(top, "tables");
    match &section {
        Some(section) if !section.entries().is_empty() => {
            section.entries().iter().filter_map(|&entry| table::read_table(reader, section, entry)).collect()
        }
        Some(section) => {
            reader.note(&section.place, SpecErrorKind::NoTable);
            Vec::new()
        }
        None => {
            if !top.has("tables") {
                reader.note(&top.place, SpecErrorKind::NoTable);
            }
            Vec::new()
        }
    }
}

fn check_quasi(reader: &mut Reader<'_>, tables: &[TableDraft]) {
    let mut columns = tables.iter().flat_map(|table| &table.columns).peekable();
    let could_be_quasi = |role: Option<Role>| role.is_none_or(|role| role == Role::Quasi);
    if columns.peek().is_some() && !columns.any(|column| could_be_quasi(column.role)) {
        reader.note(&Place { line: None, key: String::new() }, SpecErrorKind::NoQuasi);
    }
}

fn read_mondrian(reader: &mut Reader<'_>, top: &Section<'_>) -> MondrianSpec {
    let default = MondrianSpec::default();
    let Some(section) = reader.section(top, "mondrian", keys::MONDRIAN) else { return default };
    MondrianSpec {
        cuts: reader.word(&section, "cuts", keys::CUTS).unwrap_or(default.cuts),
        choose: reader.word(&section, "choose", keys::CHOOSE).unwrap_or(default.choose),
    }
}

fn read_datafly(reader: &mut Reader<'_>, top: &Section<'_>, tables: &[TableDraft]) -> DataflySpec {
    let Some(section) = reader.section(top, "datafly", keys::DATAFLY) else { return DataflySpec::default() };
    if section.has("block") && !tables.is_empty() && tables.iter().all(|table| !table.names_persons) {
        reader.note(&reader.place_of(&section, "block"), SpecErrorKind::BlockWithoutPerson);
    }
    DataflySpec { block: reader.count(&section, "block") }
}

fn read_full_domain(reader: &mut Reader<'_>, top: &Section<'_>) -> FullDomainSpec {
    let default = FullDomainSpec::default();
    let Some(section) = reader.section(top, "full_domain", keys::FULL_DOMAIN) else { return default };
    FullDomainSpec { objective: reader.word(&section, "objective", keys::OBJECTIVES).unwrap_or(default.objective) }
}

fn read_clustering(reader: &mut Reader<'_>, top: &Section<'_>) -> ClusteringSpec {
    let Some(section) = reader.section(top, "clustering", keys::CLUSTERING) else { return ClusteringSpec::default() };
    ClusteringSpec {
        threshold: reader.number(&section, "threshold", Bounds::ZeroToOne),
        cluster_limit: reader.count(&section, "cluster_limit"),
        pairing: reader.word(&section, "pairing", keys::PAIRINGS),
    }
}

fn read_delta_presence(reader: &mut Reader<'_>, top: &Section<'_>) -> Option<(f64, f64)> {
    const EXPECTED: &str = "[least, most] with 0 <= least <= most <= 1";
    let numbers = reader.numbers(top, "delta_presence", EXPECTED)?;
    let place = reader.place_of(top, "delta_presence");
    if !top.has("registers") {
        reader.note(&place, SpecErrorKind::WithoutRegisters);
    }
    match numbers.as_slice() {
        &[least, most] if 0.0 <= least && least <= most && most <= 1.0 => Some((least, most)),
        &[least, most] => {
            let wrong = if (0.0..=1.0).contains(&least) { most } else { least };
            reader.note(&place, out_of_bounds(EXPECTED, wrong));
            None
        }
        other => {
            let found = format!("a list of {}", other.len());
            reader.note(&place, SpecErrorKind::NotAllowed { expected: EXPECTED, found });
            None
        }
    }
}

fn read_previous(reader: &mut Reader<'_>, top: &Section<'_>) -> Vec<PathBuf> {
    let folders = links::read_paths(reader, top, "previous");
    if top.has("previous") && !top.has("registers") {
        reader.note(&reader.place_of(top, "previous"), SpecErrorKind::WithoutRegisters);
    }
    folders
}

#[cfg(test)]
mod tests;
