//! [`read_release`]: reads a release folder, so that it can be counted again.
//!
//! Quasi cells that were written as bounds become labels again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use kohort_model::spec::{CsvSpec, HierarchySource};
use kohort_model::{
    Column, ColumnManifest, CsvManifest, Hierarchy, LabelsManifest, Manifest, NULL, Progress, Role, Silent, Table,
    TableManifest, ValueType,
};
use kohort_verify::{Listing, Reading};

use super::CountedTable;
use super::columns::FileColumns;
use super::error::{ReadError, ReadErrors};
use super::hierarchies::Hierarchies;
use super::manifest::{newer_version, parse_manifest};
use super::open::{CheckOptions, read_for_check, read_released};
use super::{ListingError, OpenTable, read_listing_file};
use crate::bounds::{bound_names, compose, label, separator};
use crate::digest::sha256_of_file;
use crate::{ErrorClass, InputFormat};

/// The file of a release folder that describes all others.
pub(super) const MANIFEST: &str = "manifest.json";

/// The files of a release folder that explain it. They follow from the manifest and the tables, so the manifest does not name
/// them, and whoever verifies a release makes them again and compares.
pub const DOCUMENTS: [&str; 4] = ["README.txt", "datapackage.json", "report.html", "report.json"];

/// What is wrong with a release folder.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum ReleaseError {
    /// A file of the release can't be read.
    #[error("{}: can't be read: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    /// The folder has no manifest.
    #[error("{} holds no manifest.json", folder.display())]
    NoManifest { folder: PathBuf },
    /// The manifest can't be understood.
    #[error("{}: {message}", path.display())]
    BadManifest { path: PathBuf, message: String },
    /// A newer version wrote the manifest.
    #[error("{}: written by kohort {version}, which is newer than this version, {}", path.display(), env!("CARGO_PKG_VERSION"))]
    Newer { path: PathBuf, version: String },
    /// A file is not the one that the manifest describes.
    #[error("{file}: its digest is not the one in manifest.json")]
    Digest { file: String },
    /// The columns or rows are not those that the manifest describes.
    #[error("{file}: its {what} are not those that manifest.json names")]
    Differs { file: String, what: &'static str },
    /// Columns of bounds that don't form ranges.
    #[error("{file}: the bounds of '{column}' are no ranges, first in row {first_row}")]
    Bounds { file: String, column: String, first_row: u64 },
    /// Cells that the rule of their column can't have made.
    #[error(
        "{file}: column '{column}' has labels that its rule in manifest.json does not make, first in row {first_row}"
    )]
    Labels { file: String, column: String, first_row: u64 },
    /// A file is not the released part of a hierarchy.
    #[error("{file}: not the hierarchy of column '{column}': {why}")]
    Listing { file: String, column: String, why: String },
    /// The folder holds a file that its manifest does not name.
    #[error("{} holds '{file}', which manifest.json does not name", folder.display())]
    Unnamed { folder: PathBuf, file: String },
    /// The folder holds several tables where one is wanted.
    #[error("{} holds {n_tables} tables, but only releases of one table can be read together", folder.display())]
    SeveralTables { folder: PathBuf, n_tables: usize },
    /// A table can't be read.
    #[error(transparent)]
    Table(#[from] ReadErrors),
}

impl ReleaseError {
    /// What to do about the problem.
    pub fn hint(&self) -> Option<String> {
        match self {
            ReleaseError::NoManifest { .. } => {
                Some("name a folder that `kohort anonymize` wrote; for any other table use `kohort check`".to_owned())
            }
            ReleaseError::Newer { version, .. } => Some(format!("use kohort {version}")),
            ReleaseError::SeveralTables { .. } => Some(
                "name the files of its tables one by one, with {person} where a column names the person".to_owned(),
            ),
            ReleaseError::Unnamed { .. } => {
                Some("move it elsewhere: only files that the manifest names were verified".to_owned())
            }
            ReleaseError::Digest { .. }
            | ReleaseError::Differs { .. }
            | ReleaseError::Bounds { .. }
            | ReleaseError::Labels { .. }
            | ReleaseError::Listing { .. }
            | ReleaseError::BadManifest { .. } => {
                Some("the release was changed after it was written: don't trust it, write it again".to_owned())
            }
            ReleaseError::Table(problems) => problems.problems.first().and_then(ReadError::hint),
            ReleaseError::Io { .. } => None,
        }
    }

    /// Who can mend the problem.
    pub fn class(&self) -> ErrorClass {
        match self {
            ReleaseError::Io { .. } => ErrorClass::Io,
            ReleaseError::Table(problems) => problems.class(),
            ReleaseError::NoManifest { .. }
            | ReleaseError::BadManifest { .. }
            | ReleaseError::Newer { .. }
            | ReleaseError::Digest { .. }
            | ReleaseError::Differs { .. }
            | ReleaseError::Unnamed { .. }
            | ReleaseError::SeveralTables { .. }
            | ReleaseError::Labels { .. }
            | ReleaseError::Listing { .. }
            | ReleaseError::Bounds { .. } => ErrorClass::Input,
        }
    }
}

/// Reads a release: its manifest, and its tables with the roles and types that the manifest gives to their columns. Digests,
/// columns and rows are compared with the manifest.
///
/// # Errors
/// If a file is missing, damaged, not the one that the manifest describes, or not named in it.
pub fn read_release(folder: &Path, progress: &dyn Progress) -> Result<(Manifest, Vec<Table>), ReleaseError> {
    read_release_of(&[], folder, progress)
}

/// The digest of the manifest of a release, by which later releases name it.
///
/// # Errors
/// If it can't be read.
pub fn manifest_digest(folder: &Path) -> Result<String, ReleaseError> {
    let path = folder.join(MANIFEST);
    sha256_of_file(&path).map_err(|source| ReleaseError::Io { path, source })
}

/// Reads a release, and gives its columns the hierarchies in these files. Other files in the folder are ignored.
///
/// # Errors
/// As [`read_release`], and if a hierarchy can't be read or no table has its column.
pub fn read_release_with(
    folder: &Path,
    hierarchies: &BTreeMap<String, HierarchySource>,
    progress: &dyn Progress,
) -> Result<(Manifest, Vec<Table>), ReleaseError> {
    let (manifest, mut tables) = read_named(&[], folder, progress)?;
    let mut read = Hierarchies::new(Path::new(""));
    let mut problems = Vec::new();
    for (name, source) in hierarchies {
        let mut columns: Vec<&mut Column> =
            tables.iter_mut().flat_map(|table| &mut table.columns).filter(|column| column.name == *name).collect();
        if columns.is_empty() {
            let names = manifest.tables.iter().flat_map(|table| table.columns.keys().cloned());
            let known = FileColumns::of_schema(names);
            problems.push(ReadError::UnknownColumn { columns: vec![name.clone()], known });
        }
        match read.of_file(source, name) {
            Ok(hierarchy) => columns.iter_mut().for_each(|column| column.hierarchy = Some(Arc::clone(&hierarchy))),
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() {
        Ok((manifest, tables))
    } else {
        Err(ReadErrors { file: folder.to_owned(), problems }.into())
    }
}

/// Reads the release of private tables, which tell how the labels are spelled.
///
/// # Errors
/// As [`read_release`].
pub fn read_release_of(
    originals: &[Table],
    folder: &Path,
    progress: &dyn Progress,
) -> Result<(Manifest, Vec<Table>), ReleaseError> {
    let (manifest, tables) = read_named(originals, folder, progress)?;
    check_contents(folder, &manifest)?;
    Ok((manifest, tables))
}

/// Reads the files that the manifest of a release names. Other files in the folder are ignored.
fn read_named(
    originals: &[Table],
    folder: &Path,
    progress: &dyn Progress,
) -> Result<(Manifest, Vec<Table>), ReleaseError> {
    let manifest = read_manifest(folder)?;
    let path = folder.join(MANIFEST);
    let read = |entry: &TableManifest| {
        let original = originals.iter().find(|original| original.name == entry.name);
        read_entry(folder, &path, entry, original, progress)
    };
    let tables: Result<Vec<Table>, ReleaseError> = manifest.tables.iter().map(read).collect();
    Ok((manifest, tables?))
}

/// The manifest of a release folder. Its files are not compared with it yet.
pub(super) fn read_manifest(folder: &Path) -> Result<Manifest, ReleaseError> {
    let path = folder.join(MANIFEST);
    let json = fs::read_to_string(&path).map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound => ReleaseError::NoManifest { folder: folder.to_owned() },
        _ => ReleaseError::Io { path: path.clone(), source },
    })?;
    if let Some(version) = newer_version(&json) {
        return Err(ReleaseError::Newer { path, version });
    }
    parse_manifest(&json).map_err(|message| ReleaseError::BadManifest { path, message })
}

/// Refuses files of a release folder that its manifest does not name, because nobody has verified them.
fn check_contents(folder: &Path, manifest: &Manifest) -> Result<(), ReleaseError> {
    let problem = |source| ReleaseError::Io { path: folder.to_owned(), source };
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(problem)? {
        names.push(entry.map_err(problem)?.file_name());
    }
    names.sort_unstable();
    let tables = &manifest.tables;
    let columns = tables.iter().flat_map(|table| table.columns.values());
    let listings = columns.filter_map(|column| match &column.labels {
        Some(LabelsManifest::Hierarchy { file, .. }) => file.as_deref(),
        _ => None,
    });
    let known = listings.chain([MANIFEST]).chain(DOCUMENTS);
    let named: Vec<&str> = tables.iter().map(|table| table.file.as_str()).chain(known).collect();
    let is_named = |name: &std::ffi::OsString| name.to_str().is_some_and(|name| named.contains(&name));
    match names.into_iter().find(|name| !is_named(name)) {
        None => Ok(()),
        Some(name) => {
            let file = name.to_string_lossy().into_owned();
            Err(ReleaseError::Unnamed { folder: folder.to_owned(), file })
        }
    }
}

/// The file of a released table, if it is the one that the manifest describes.
pub(super) fn checked_file(folder: &Path, entry: &TableManifest) -> Result<PathBuf, ReleaseError> {
    checked(folder, entry, &entry.file, &entry.sha256)
}

/// A file that belongs to a released table, if it has this digest.
fn checked(folder: &Path, entry: &TableManifest, file: &str, digest: &str) -> Result<PathBuf, ReleaseError> {
    let mut components = Path::new(file).components();
    if !matches!((components.next(), components.next()), (Some(Component::Normal(_)), None)) {
        let message = format!("table '{}': its file must be in the folder itself", entry.name);
        return Err(ReleaseError::BadManifest { path: folder.join(MANIFEST), message });
    }
    let path = folder.join(file);
    let sha256 = sha256_of_file(&path).map_err(|source| ReleaseError::Io { path: path.clone(), source })?;
    if !sha256.eq_ignore_ascii_case(digest) {
        return Err(ReleaseError::Digest { file: file.to_owned() });
    }
    Ok(path)
}

/// The released part of the hierarchy of a column, where the manifest names one. It is not compared with the labels that the
/// cells show.
///
/// # Errors
/// If the file is missing, damaged or not the one that the manifest describes.
pub fn read_listing(folder: &Path, entry: &TableManifest, column: &str) -> Result<Option<Listing>, ReleaseError> {
    let labels = entry.columns.get(column).and_then(|known| known.labels.as_ref());
    let Some(LabelsManifest::Hierarchy { file: Some(file), sha256, .. }) = labels else { return Ok(None) };
    let path = checked(folder, entry, file, sha256.as_deref().unwrap_or_default())?;
    let fault = |why: String| ReleaseError::Listing { file: file.clone(), column: column.to_owned(), why };
    read_listing_file(&path).map(Some).map_err(|problem| match problem {
        ListingError::Table(problems) => problems.into(),
        ListingError::OtherColumns => fault("its columns are not label and value".to_owned()),
        ListingError::Fault(found) => fault(found.to_string()),
    })
}

/// The values that the shown labels of a column stand for, as a tree where they form one.
fn read_labels(
    folder: &Path,
    entry: &TableManifest,
    column: &Column,
    labels: &LabelsManifest,
) -> Result<Option<Hierarchy>, ReleaseError> {
    let listing = read_listing(folder, entry, &column.name)?;
    if let (Some(listing), LabelsManifest::Hierarchy { file: Some(file), .. }) = (&listing, labels) {
        listing.check_shown(&column.texts).map_err(|fault| ReleaseError::Listing {
            file: file.clone(),
            column: column.name.clone(),
            why: fault.to_string(),
        })?;
    }
    Reading::new(column, labels, listing.as_ref()).tree(&column.texts).map_err(|id| {
        let first_row = column.ids.iter().position(|&other| other == id).map_or(0, |row| row as u64 + 1);
        ReleaseError::Labels { file: entry.file.clone(), column: column.name.clone(), first_row }
    })
}

fn read_entry(
    folder: &Path,
    manifest: &Path,
    entry: &TableManifest,
    original: Option<&Table>,
    progress: &dyn Progress,
) -> Result<Table, ReleaseError> {
    let bad_manifest = |message: &str| ReleaseError::BadManifest {
        path: manifest.to_owned(),
        message: format!("table '{}': {message}", entry.name),
    };
    let path = checked_file(folder, entry)?;
    let mut table = read_table(&path, entry, progress)?;
    table.name.clone_from(&entry.name);
    let differs = |what| ReleaseError::Differs { file: entry.file.clone(), what };
    if !names_match(table.columns.iter().map(|column| &column.name), entry) {
        return Err(differs("columns"));
    }
    if table.n_rows as u64 != entry.rows_out {
        return Err(differs("rows"));
    }
    table.columns.iter_mut().try_for_each(|column| describe(column, entry).map_err(bad_manifest))?;
    let mut position = 0;
    while let Some(column) = table.columns.get(position) {
        if let Some(name) = bounded(&table, position, entry).map_err(bad_manifest)? {
            let known = &entry.columns[&column.name];
            let said = known.labels.is_some().then(|| known.notation());
            let original = original.and_then(|original| original.column(&name)).map(|known| &known.notation);
            let separator = separator(column, &table.columns[position + 1], said.as_ref().or(original));
            compose(&mut table, position, &name, |low, high| label(low, high, separator)).map_err(|first_row| {
                ReleaseError::Bounds { file: entry.file.clone(), column: name.clone(), first_row }
            })?;
        }
        position += 1;
    }
    read_hierarchies(&mut table, folder, entry)?;
    Ok(table)
}

/// Gives the tables of a release, which were read back after they were written, the roles, types and hierarchies that a reader
/// of the manifest finds.
///
/// # Errors
/// If the manifest does not describe the tables.
pub(crate) fn as_readers_see(
    read_back: Vec<Table>,
    folder: &Path,
    manifest: &Manifest,
) -> Result<Vec<Table>, ReleaseError> {
    let is_bound = |column: &ColumnManifest| column.role == ColumnManifest::LOWER_BOUND;
    if manifest.tables.iter().flat_map(|entry| entry.columns.values()).any(is_bound) {
        // Readers compose labels from the bounds as the file spells them.
        let entries = manifest.tables.iter();
        return entries.map(|entry| read_entry(folder, &folder.join(MANIFEST), entry, None, &Silent)).collect();
    }
    let mut tables = read_back;
    for (table, entry) in tables.iter_mut().zip(&manifest.tables) {
        let bad_manifest = |message: &str| ReleaseError::BadManifest {
            path: folder.join(MANIFEST),
            message: format!("table '{}': {message}", entry.name),
        };
        table.columns.iter_mut().try_for_each(|column| describe(column, entry).map_err(bad_manifest))?;
        read_hierarchies(table, folder, entry)?;
    }
    Ok(tables)
}

/// Gives a column the role and type that the manifest says.
fn describe(column: &mut Column, entry: &TableManifest) -> Result<(), &'static str> {
    let known = entry.columns.get(&column.name).ok_or("a column is missing")?;
    column.role = match known.role.as_str() {
        ColumnManifest::LOWER_BOUND | ColumnManifest::UPPER_BOUND => Role::Quasi,
        role => role.parse().map_err(|()| "a column has an unknown role")?,
    };
    column.value_type = match known.value_type.as_str() {
        ColumnManifest::OTHER_TYPE => ValueType::Text,
        word => ValueType::from_word(word).ok_or("a column has an unknown type")?,
    };
    column.notation = known.notation();
    match known.compared_as.as_deref() {
        None => {}
        // Each text gets its own place in a flat tree, as in a private column with a hierarchy.
        Some(ColumnManifest::AS_TEXT) => {
            column.hierarchy = Some(Arc::new(Hierarchy::flat("", column.texts.iter())));
        }
        Some(_) => return Err("a column is compared in an unknown way"),
    }
    Ok(())
}

/// Gives quasi columns the hierarchies of their labels, as far as the manifest tells these. Other columns must not show values
/// that the manifest says are coded.
fn read_hierarchies(table: &mut Table, folder: &Path, entry: &TableManifest) -> Result<(), ReleaseError> {
    for column in table.columns.iter().filter(|column| column.role != Role::Quasi && !column.notation.codes.are_none())
    {
        let is_bad: Vec<bool> = (0..column.texts.len() as u32).map(|id| column.value(id).is_none()).collect();
        if let Some(row) = column.ids.iter().position(|&id| id != NULL && is_bad[id as usize]) {
            let (file, column) = (entry.file.clone(), column.name.clone());
            return Err(ReleaseError::Labels { file, column, first_row: row as u64 + 1 });
        }
    }
    for column in table.columns.iter_mut().filter(|column| column.role == Role::Quasi) {
        // If a column was written as bounds, the manifest has no entry for it, only for its bounds, and its labels are
        // ranges.
        let labels = match entry.columns.get(&column.name) {
            Some(known) => known.labels.as_ref(),
            None => Some(&LabelsManifest::Ranges),
        };
        if let Some(labels) = labels {
            column.hierarchy = read_labels(folder, entry, column, labels)?.map(Arc::new);
        }
    }
    Ok(())
}

/// The manifest of a release folder, without its files.
///
/// # Errors
/// If there is none, or it can't be understood.
pub fn read_manifest_of(folder: &Path) -> Result<Manifest, ReleaseError> {
    read_manifest(folder)
}

/// Which columns of a released table are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleasedColumns {
    /// Those of which something is asked: all but plain ones.
    Asked,
    /// All of them.
    All,
}

/// Reads columns of a released table for the first time, and gives them the roles and types that the manifest says. Distinct texts may take up to `most_bytes` of memory.
///
/// # Errors
/// As [`read_release`].
pub fn count_released(
    folder: &Path,
    manifest: &Manifest,
    entry: &TableManifest,
    (columns, most_bytes): (ReleasedColumns, u64),
    progress: &dyn Progress,
) -> Result<CountedTable, ReleaseError> {
    let path = checked_file(folder, entry)?;
    check_contents(folder, manifest)?;
    let differs = |what| ReleaseError::Differs { file: entry.file.clone(), what };
    let mut options = CheckOptions::default();
    if let Some(csv) = &entry.csv {
        options.csv = csv_of(csv);
    }
    let open = OpenTable::open(&path, None, &options.csv, progress);
    let open = open.map_err(|problem| ReadErrors { file: path.clone(), problems: vec![problem] })?;
    if !names_match(open.names().iter(), entry) {
        return Err(differs("columns"));
    }
    drop(open);
    let is_counted = |known: &ColumnManifest| columns == ReleasedColumns::All || known.role != Role::Plain.word();
    let names = entry.columns.iter().filter(|(_, known)| is_counted(known)).map(|(name, _)| name.clone()).collect();
    let mut counted = CountedTable::count(&path, &options, &names, most_bytes, progress)?;
    if counted.n_rows != entry.rows_out {
        return Err(differs("rows"));
    }
    counted.table.name.clone_from(&entry.name);
    let bad_manifest = |message: &str| ReleaseError::BadManifest {
        path: folder.join(MANIFEST),
        message: format!("table '{}': {message}", entry.name),
    };
    counted.table.columns.iter_mut().try_for_each(|column| describe(column, entry).map_err(bad_manifest))?;
    read_hierarchies(&mut counted.table, folder, entry).map_err(|error| match error {
        // The rows of the table are one for each text.
        ReleaseError::Labels { file, column, first_row } => {
            let position = counted.table.position(&column).unwrap_or(0);
            let first_row = counted.first_rows[position].get(first_row as usize - 1).map_or(0, |row| row + 1);
            ReleaseError::Labels { file, column, first_row }
        }
        error => error,
    })?;
    Ok(counted)
}

fn csv_of(csv: &CsvManifest) -> CsvSpec {
    CsvSpec {
        separator: Some(csv.separator),
        encoding: Some(csv.encoding.clone()),
        null: Some(vec![csv.null.clone()]),
        ..CsvSpec::default()
    }
}

/// The name of the quasi column whose bounds begin here, if any do.
fn bounded(table: &Table, position: usize, entry: &TableManifest) -> Result<Option<String>, &'static str> {
    let role = |position: usize| table.columns.get(position).map(|column| entry.columns[&column.name].role.as_str());
    match (role(position), role(position + 1)) {
        (Some(ColumnManifest::LOWER_BOUND), Some(ColumnManifest::UPPER_BOUND)) => {
            let [low, high] = [position, position + 1].map(|position| &table.columns[position].name);
            let name = low.strip_suffix("_lo").filter(|name| bound_names(name)[1] == *high);
            name.map(|name| Some(name.to_owned()))
                .ok_or("two columns of bounds don't have the same name before '_lo' and '_hi'")
        }
        (Some(ColumnManifest::LOWER_BOUND | ColumnManifest::UPPER_BOUND), _) => {
            Err("a column of bounds lacks the other bound beside it")
        }
        _ => Ok(None),
    }
}

/// Reads a table file. Manifests of earlier versions don't name the separator of a CSV file. Then the separator is the first
/// one that gives the columns of the manifest and fits all rows. In a file of one column, the separator only decides which
/// cells are quoted.
fn read_table(path: &Path, entry: &TableManifest, progress: &dyn Progress) -> Result<Table, ReadErrors> {
    let mut options = CheckOptions::default();
    if !matches!(InputFormat::of_path(path), Some(InputFormat::Csv(_))) {
        return read_released(path, &options, progress);
    }
    if let Some(csv) = &entry.csv {
        options.csv = csv_of(csv);
        return read_released(path, &options, progress);
    }
    let usual = [',', ';', '\t', '|'];
    let others = (1..128u8).map(char::from).filter(|other| !usual.contains(other) && !"\"\r\n".contains(*other));
    let mut first_problem = None;
    for separator in usual.into_iter().chain(others) {
        options.csv = CsvSpec { separator: Some(separator), ..CsvSpec::default() };
        let opened = OpenTable::open(path, None, &options.csv, progress);
        let fits = opened.is_ok_and(|open| names_match(open.names().iter(), entry));
        if !fits {
            continue;
        }
        match read_released(path, &options, progress) {
            Ok(table) => return Ok(table),
            Err(problems) => first_problem = first_problem.or(Some(problems)),
        }
    }
    options.csv = CsvSpec::default();
    first_problem.map_or_else(|| read_for_check(path, &options, progress), Err)
}

fn names_match<'a>(names: impl ExactSizeIterator<Item = &'a String>, entry: &TableManifest) -> bool {
    names.len() == entry.columns.len() && names.collect::<BTreeSet<_>>().into_iter().eq(entry.columns.keys())
}
