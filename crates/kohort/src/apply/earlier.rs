//! [`Earlier`]: a release whose classes are applied to new persons, and the spec that follows from its manifest.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kohort_io::{manifest_digest, read_listing, read_release};
use kohort_model::hierarchy::Rule;
use kohort_model::spec::{ColumnSpec, CsvSpec, HierarchySource, ReleasedHierarchies, TableSpec};
use kohort_model::{
    Bound, Column, ColumnManifest, LabelsManifest, Manifest, Progress, Requirement, Role, Setting, Spec, Table,
    TableManifest, Transform, ValueType,
};

use super::Apply;
use crate::error::{Error, Report};
use crate::manifest::requirements;
use crate::verification::{Verdict, verify_with};

/// A verified release of one table.
pub(super) struct Earlier {
    folder: PathBuf,
    pub(super) manifest: Manifest,
    /// The table as readers see it.
    pub(super) table: Table,
    digest: String,
    requirements: Vec<Requirement>,
}

impl Earlier {
    /// Reads a release, verifies it from its files, and refuses kinds of releases whose classes can't be applied. `given` are the
    /// columns whose hierarchies the publisher gives.
    pub(super) fn read<'a>(
        folder: &Path,
        given: impl Iterator<Item = &'a String>,
        progress: &dyn Progress,
    ) -> Result<Earlier, Error> {
        let earlier = Earlier::read_for_readers(folder, progress)?;
        let withheld = earlier.withheld();
        let given: Vec<&String> = given.collect();
        let mut reports: Vec<Report> = Vec::new();
        for column in &withheld {
            if !given.contains(column) {
                let message = format!(
                    "{}: the hierarchy of '{column}' is withheld, so its labels can't be read",
                    folder.display()
                );
                reports.push(Report::new(message).hint(format!("give its file: {{hierarchy={column}}}")));
            }
        }
        for column in given.into_iter().filter(|column| !withheld.contains(column)) {
            let message = format!("{}: the hierarchy of '{column}' is not withheld", folder.display());
            reports
                .push(Report::new(message).hint("give hierarchies only of columns whose labels can't be read without"));
        }
        if reports.is_empty() { Ok(earlier) } else { Err(Error::Input(reports)) }
    }

    /// Does the same where nobody has a hierarchy that is withheld.
    pub(super) fn read_for_readers(folder: &Path, progress: &dyn Progress) -> Result<Earlier, Error> {
        let at = |error: Error| error.at(folder);
        let verification = verify_with(folder, progress).map_err(at)?;
        if verification.verdict == Verdict::NotMet {
            return Err(Error::NotMet(verification.wrong).at(folder));
        }
        let (manifest, mut tables) = read_release(folder, progress).map_err(|error| at(error.into()))?;
        refuse_other_kinds(folder, &manifest)?;
        let asked = requirements(&manifest.requirement, &manifest.tables);
        let (Some(table), Some(mut asked)) = (tables.pop(), asked) else {
            let message = format!("{}: manifest.json asks for something that no spec can ask for", folder.display());
            return Err(Error::input(message, "name a folder that this version of kohort can verify"));
        };
        let digest = manifest_digest(folder).map_err(|error| at(error.into()))?;
        let requirements = asked.pop().unwrap_or_default();
        Ok(Earlier { folder: folder.to_owned(), manifest, table, digest, requirements })
    }

    pub(super) fn entry(&self) -> &TableManifest {
        &self.manifest.tables[0]
    }

    /// Digest of the manifest.
    pub(super) fn digest(&self) -> &str {
        &self.digest
    }

    /// Digests of the tables.
    pub(super) fn files(&self) -> BTreeMap<String, String> {
        self.manifest.tables.iter().map(|table| (table.file.clone(), table.sha256.clone())).collect()
    }

    /// Columns whose hierarchy is withheld.
    fn withheld(&self) -> Vec<&String> {
        let is_withheld =
            |column: &ColumnManifest| matches!(&column.labels, Some(LabelsManifest::Hierarchy { file: None, .. }));
        self.entry().columns.iter().filter(|(_, column)| is_withheld(column)).map(|(name, _)| name).collect()
    }

    /// The spec of a release of new persons in the same classes.
    pub(super) fn spec(&self, apply: &Apply) -> Spec {
        let mut spec = Spec::new(self.manifest.requirement.k);
        spec.max_suppressed = apply.max_suppressed;
        if !self.withheld().is_empty() {
            spec.hierarchies = ReleasedHierarchies::Withhold;
        }
        let mut columns: Vec<ColumnSpec> =
            self.table.columns.iter().map(|column| self.column_spec(column, apply)).collect();
        let more = apply.roles.iter().filter(|(name, _)| self.table.column(name).is_none());
        columns.extend(more.map(|(name, &role)| plain_spec(name, role)));
        let notations = || self.table.columns.iter().map(|column| &column.notation);
        let csv = CsvSpec {
            decimal: notations().any(|notation| notation.decimal_comma).then_some(','),
            date_format: notations().find_map(|notation| notation.date_format.clone()),
            ..apply.csv.clone()
        };
        spec.tables.push(TableSpec {
            name: self.entry().name.clone(),
            file: apply.table.clone(),
            csv,
            person: apply.person.clone(),
            key: None,
            parent: None,
            orphans: Default::default(),
            childless: Default::default(),
            max_rows_left_out: None,
            columns,
        });
        spec
    }

    fn column_spec(&self, column: &Column, apply: &Apply) -> ColumnSpec {
        let entry = self.entry();
        let known = entry.columns.get(&column.name).or_else(|| entry.columns.get(&format!("{}_lo", column.name)));
        let is_typed = column.role == Role::Quasi
            || known.is_some_and(|known| {
                let is_changed = known.rounded.is_some()
                    || known.truncated.is_some()
                    || known.top.is_some()
                    || known.bottom.is_some();
                is_changed || (column.role == Role::Sensitive && known.compared_as.is_none())
            });
        let is_typed = is_typed && (column.role == Role::Quasi || column.value_type != ValueType::Text);
        let rule = match known.and_then(|known| known.labels.as_ref()) {
            Some(LabelsManifest::Steps { steps }) => Some(HierarchySource::Rule(Rule::Steps(steps.clone()))),
            Some(LabelsManifest::Dates { levels }) => Some(HierarchySource::Rule(Rule::Dates(levels.clone()))),
            Some(LabelsManifest::Flat) => Some(HierarchySource::Rule(Rule::Flat)),
            _ => apply.hierarchies.get(&column.name).cloned(),
        };
        let bound = |text: &Option<String>| text.as_ref().map(|text| Bound::OfEarlier(with_point(text, column)));
        let requirements = self.requirements.iter();
        ColumnSpec {
            value_type: is_typed.then_some(column.value_type),
            hierarchy: rule,
            transform: known.map_or_else(Transform::default, |known| Transform {
                round: known.rounded.clone(),
                truncate: known.truncated,
                top: bound(&known.top),
                bottom: bound(&known.bottom),
                pseudonym_key: None,
            }),
            requirements: requirements
                .filter(|requirement| requirement.column() == Some(column.name.as_str()))
                .cloned()
                .collect(),
            ..plain_spec(&column.name, column.role)
        }
    }

    /// Reports for columns of a new release that its manifest describes otherwise than the earlier one, or whose labels stand for
    /// other values.
    pub(super) fn other_meanings(&self, release: &Path, entry: &TableManifest) -> Result<Vec<Report>, Error> {
        let mut wrong = Vec::new();
        for column in self.table.columns.iter().filter(|column| column.role == Role::Quasi) {
            let read = |folder: &Path, entry: &TableManifest| -> Result<_, Error> {
                read_listing(folder, entry, &column.name).map_err(|error| Error::from(error).at(folder))
            };
            let (then, now) = (read(&self.folder, self.entry())?, read(release, entry)?);
            let is_same_listing = match (&then, &now) {
                (Some(then), Some(now)) => now.iter().all(|(label, values)| then.values(label) == Some(values)),
                (then, now) => then.is_none() && now.is_none(),
            };
            let labels = |entry: &TableManifest| entry.columns.get(&column.name).map(without_shown);
            let is_same_rule = match (labels(self.entry()), labels(entry)) {
                (Some(then), Some(now)) => then == now,
                // Cells that were written as bounds are ranges.
                (None, Some(now)) => now.labels == Some(LabelsManifest::Ranges),
                (_, None) => false,
            };
            if !is_same_rule || !is_same_listing {
                let message = format!(
                    "column '{}': manifest.json reads its labels otherwise than that of the earlier release",
                    column.name
                );
                wrong.push(Report::new(message).hint("the manifest does not belong to this release: don't trust it"));
            }
        }
        Ok(wrong)
    }
}

/// A column without the parts that depend on which labels are shown.
fn without_shown(column: &ColumnManifest) -> ColumnManifest {
    let mut column = column.clone();
    match &mut column.labels {
        Some(LabelsManifest::Hierarchy { root, file, sha256 }) => (*root, *file, *sha256) = (None, None, None),
        Some(LabelsManifest::Mask { width, .. }) => *width = None,
        _ => {}
    }
    column
}

fn plain_spec(name: &str, role: Role) -> ColumnSpec {
    ColumnSpec {
        name: name.to_owned(),
        role,
        references: None,
        value_type: None,
        hierarchy: None,
        weight: 1.0,
        transform: Transform::default(),
        requirements: Vec::new(),
        sensitive_to: Vec::new(),
    }
}

/// A bound as a spec spells it.
fn with_point(text: &str, column: &Column) -> String {
    match column.value_type {
        ValueType::Decimal | ValueType::Float if column.notation.decimal_comma => text.replace(',', "."),
        _ => text.to_owned(),
    }
}

/// Refuses kinds of releases whose classes can't be applied, and names all reasons.
fn refuse_other_kinds(folder: &Path, manifest: &Manifest) -> Result<(), Error> {
    let says_rules = |table: &TableManifest| {
        let is_quasi = |column: &&ColumnManifest| column.role == Role::Quasi.word();
        table.columns.values().filter(is_quasi).all(|column| column.labels.is_some())
    };
    let hierarchical = manifest.requirement.sensitive.values().any(|settings| {
        let distance = Setting::Word("hierarchical".to_owned());
        settings.get("distance") == Some(&distance)
    });
    let has_several_rows = manifest.tables.first().is_some_and(|table| table.rows_out != manifest.persons.n_out);
    let has_pseudonyms =
        manifest.tables.iter().any(|table| table.columns.values().any(|known| known.pseudonym.is_some()));
    let reasons = [
        (manifest.tables.len() != 1, "it is a release of several tables"),
        (!manifest.links.is_empty(), "its rows refer to each other"),
        (!manifest.audiences.is_empty(), "it is a release for several audiences"),
        (manifest.register.is_some(), "it was made with a register"),
        (manifest.requirement.person_k, "each of its persons has an own k, which nobody can read in it"),
        (hierarchical, "it asks for a hierarchical distance, which can't be counted without the hierarchy"),
        (has_several_rows, "its persons have several rows, and nobody can read in it which"),
        (has_pseudonyms, "it has pseudonyms, and their key is needed"),
        (!manifest.tables.iter().all(says_rules), "its manifest does not say how labels are read"),
    ];
    let reports: Vec<Report> = reasons
        .iter()
        .filter(|(is_so, _)| *is_so)
        .map(|(_, why)| {
            Report::new(format!(
                "{}: its classes can't be applied to new persons in this version: {why}",
                folder.display()
            ))
            .hint("release the new persons by themselves with `kohort anonymize`")
        })
        .collect();
    if reports.is_empty() { Ok(()) } else { Err(Error::Input(reports)) }
}
