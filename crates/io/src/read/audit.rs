//! [`read_for_audit`]: reads releases of the same persons, whoever made them, so that the verifier can compare them.
//!
//! A release is a file, or a folder that kohort wrote. The manifest of the folder, or of the folder that the file is in,
//! says whether rows are sorted. Sorted rows can't be matched by their order.
//!
//! Only the columns that an audience may know are read, and the column that names the person. Bounds (`age_lo`, `age_hi`)
//! become ranges again. The type of a column is inferred from the values and bounds that all files show in it, so that the
//! column is understood in the same way in all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kohort_model::spec::{CsvSpec, HierarchySource, Order};
use kohort_model::{Hierarchy, Manifest, Notation, Progress, Table, Texts, ValueType};

use kohort_verify::AuditedRelease;

use super::OpenTable;
use super::columns::FileColumns;
use super::error::{ReadError, ReadErrors};
use super::hierarchies::Hierarchies;
use super::open::plain_table;
use super::release::{MANIFEST, ReleaseError, checked_file, read_manifest};
use super::roles::check_names;
use super::tables::LoadError;
use super::typing::infer_type;
use crate::bounds::{bound_names, compose, label, separator};

/// What is read from the releases.
#[derive(Clone, Copy, Debug)]
pub struct AuditOptions<'a> {
    /// The columns that an audience may know. Each must be in at least one of the files.
    pub columns: &'a BTreeSet<String>,
    /// The column that names the person, in every file. Without it rows are matched by their order, unless they are sorted.
    pub person: Option<&'a str>,
    /// Files of hierarchies by column.
    pub hierarchies: &'a BTreeMap<String, HierarchySource>,
}

/// Reads releases, each a file or a folder. Each table is named after its path.
///
/// # Errors
/// Every problem of every file and hierarchy, or the first folder that differs from its manifest.
pub fn read_for_audit(
    files: &[PathBuf],
    options: AuditOptions<'_>,
    progress: &dyn Progress,
) -> Result<Vec<AuditedRelease>, LoadError> {
    let mut problems = Vec::new();
    let mut releases: Vec<Release> = Vec::new();
    for file in files {
        match Release::read(&Source::find(file)?, options, progress) {
            Ok(release) => releases.push(release),
            Err(found) => problems.push(ReadErrors { file: file.clone(), problems: found }),
        }
    }
    if problems.is_empty() {
        problems.extend(unknown_columns(files, &releases, options.columns));
    }
    let mut hierarchies: BTreeMap<&str, Arc<Hierarchy>> = BTreeMap::new();
    let mut read = Hierarchies::new(Path::new(""));
    for (column, source) in options.hierarchies {
        match read.of_file(source, column) {
            Ok(hierarchy) => drop(hierarchies.insert(column, hierarchy)),
            Err(problem) => problems.push(ReadErrors { file: files[0].clone(), problems: vec![problem] }),
        }
    }
    if !problems.is_empty() {
        return Err(LoadError::Files(problems));
    }
    let (orders, mut tables): (Vec<Option<Order>>, Vec<Table>) =
        releases.into_iter().map(|release| (release.order, release.table)).unzip();
    for name in options.columns {
        let hierarchy = hierarchies.get(name.as_str());
        let value_type = if hierarchy.is_some() { ValueType::Text } else { type_of(name, &tables) };
        for column in tables.iter_mut().flat_map(|table| &mut table.columns).filter(|column| column.name == *name) {
            column.hierarchy = hierarchy.cloned();
            column.value_type = value_type;
        }
    }
    Ok(tables.into_iter().zip(orders).map(|(table, order)| AuditedRelease { table, order }).collect())
}

/// Where a release is read from.
struct Source {
    /// The path that the caller gave.
    path: PathBuf,
    file: PathBuf,
    /// The order of the release's rows, if a manifest states it.
    order: Option<Order>,
}

impl Source {
    fn find(path: &Path) -> Result<Self, ReleaseError> {
        if path.is_dir() {
            let manifest = read_manifest(path)?;
            let [entry] = manifest.tables.as_slice() else {
                let n_tables = manifest.tables.len();
                return Err(ReleaseError::SeveralTables { folder: path.to_owned(), n_tables });
            };
            let file = checked_file(path, entry)?;
            return Ok(Source { path: path.to_owned(), file, order: Some(manifest.order) });
        }
        // A file that the manifest beside it does not name, or that is beside a manifest.json of another program, is just a
        // file. Unknown keys don't matter here, because a manifest of any version must tell whether rows are sorted.
        let json = path.parent().and_then(|folder| fs::read_to_string(folder.join(MANIFEST)).ok());
        let manifest = json.and_then(|json| serde_json::from_str::<Manifest>(&json).ok());
        let name = path.file_name().and_then(|name| name.to_str());
        let order = manifest.and_then(|found| {
            let is_named = found.tables.iter().any(|table| Some(table.file.as_str()) == name);
            is_named.then_some(found.order)
        });
        Ok(Source { path: path.to_owned(), file: path.to_owned(), order })
    }
}

/// One release, and the names of all columns of its file.
struct Release {
    table: Table,
    order: Option<Order>,
    names: Vec<String>,
}

impl Release {
    fn read(source: &Source, options: AuditOptions<'_>, progress: &dyn Progress) -> Result<Self, Vec<ReadError>> {
        let open =
            OpenTable::open(&source.file, None, &CsvSpec::default(), progress).map_err(|problem| vec![problem])?;
        let names = open.names().to_vec();
        let bad_names = check_names(&names);
        if !bad_names.is_empty() {
            return Err(bad_names);
        }
        let position = |wanted: &str| names.iter().position(|name| name == wanted);
        let mut wanted = BTreeSet::new();
        if let Some(person) = options.person {
            let asked = options.columns.iter().map(String::as_str).chain([person]);
            let known = || FileColumns::of_file(&names, asked);
            let unknown = || ReadError::UnknownColumn { columns: vec![person.to_owned()], known: known() };
            wanted.insert(position(person).ok_or_else(|| vec![unknown()])?);
        }
        let mut bounded = Vec::new();
        for column in options.columns {
            let [low, high] = bound_names(column).map(|bound| position(&bound));
            match (position(column), low, high) {
                (Some(position), ..) => drop(wanted.insert(position)),
                (None, Some(low), Some(high)) if high == low + 1 => {
                    wanted.extend([low, high]);
                    bounded.push(column);
                }
                _ => {}
            }
        }
        let wanted: Vec<usize> = wanted.into_iter().collect();
        // If the file has none of these columns, its first column is read, so that its rows are counted.
        let read = if wanted.is_empty() { vec![0] } else { wanted };
        let columns = open.read(&read)?;
        let read_names = read.iter().map(|&position| names[position].clone()).collect();
        let mut table = plain_table(source.path.display().to_string(), read_names, columns);
        for name in bounded {
            let low = table.position(&bound_names(name)[0]).expect("it was read above");
            let separator = separator(&table.columns[low], &table.columns[low + 1], None);
            compose(&mut table, low, name, |low, high| label(low, high, separator))
                .map_err(|first_row| vec![ReadError::NoBounds { column: name.clone(), first_row }])?;
        }
        table.person = options.person.and_then(|person| table.position(person));
        Ok(Release { table, order: source.order, names })
    }
}

/// Problems for columns that no file has, one for each file.
fn unknown_columns(files: &[PathBuf], releases: &[Release], columns: &BTreeSet<String>) -> Vec<ReadErrors> {
    let is_unknown = |column: &&String| releases.iter().all(|release| release.table.position(column).is_none());
    let unknown: Vec<String> = columns.iter().filter(is_unknown).cloned().collect();
    if unknown.is_empty() {
        return Vec::new();
    }
    let problem = |(file, release): (&PathBuf, &Release)| ReadErrors {
        file: file.clone(),
        problems: vec![ReadError::UnknownColumn {
            columns: unknown.clone(),
            known: FileColumns::of_file(&release.names, columns.iter().map(String::as_str)),
        }],
    };
    files.iter().zip(releases).map(problem).collect()
}

/// The type of all values and bounds that the releases show in a column; text if they are neither numbers nor times.
fn type_of(name: &str, releases: &[Table]) -> ValueType {
    let mut values: BTreeSet<&str> = BTreeSet::new();
    for column in releases.iter().filter_map(|release| release.column(name)) {
        for text in column.texts.iter().filter(|&text| text != "*") {
            let bounds = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
            match bounds.and_then(|bounds| bounds.split_once(',')) {
                Some((low, high)) => values.extend([low, high]),
                None => drop(values.insert(text)),
            }
        }
    }
    let values: Texts = values.into_iter().collect();
    Some(infer_type(&values, &Notation::default())).filter(|found| found.is_ordered()).unwrap_or(ValueType::Text)
}

#[cfg(test)]
mod tests {
    use kohort_model::Silent;

    use super::*;

    fn read(texts: &[&str], columns: &[&str], person: Option<&str>) -> Result<Vec<Table>, Vec<String>> {
        let folder = tempfile::tempdir().unwrap();
        let write = |(n, text): (usize, &&str)| {
            let path = folder.path().join(format!("{n}.csv"));
            fs::write(&path, text).unwrap();
            path
        };
        let files: Vec<PathBuf> = texts.iter().enumerate().map(write).collect();
        let columns = columns.iter().map(|&column| column.to_owned()).collect();
        let hierarchies = BTreeMap::new();
        let options = AuditOptions { columns: &columns, person, hierarchies: &hierarchies };
        match read_for_audit(&files, options, &Silent) {
            Ok(releases) => Ok(releases.into_iter().map(|release| release.table).collect()),
            Err(LoadError::Files(files)) => {
                Err(files.iter().flat_map(|file| &file.problems).map(ToString::to_string).collect())
            }
            Err(other) => Err(vec![other.to_string()]),
        }
    }

    fn cells(table: &Table, column: &str) -> Vec<String> {
        let column = table.column(column).unwrap();
        (0..table.n_rows).map(|row| column.cell(row).unwrap_or("null").to_owned()).collect()
    }

    #[test]
    fn columns_are_typed_by_what_all_releases_show() {
        let texts = ["age,zip,x\n\"[20,29]\",01234,1\n*,,2\n", "age,zip\n25,\"[01000,01999]\"\n\"[30,39]\",1\n"];
        let tables = read(&texts, &["age", "zip"], None).unwrap();
        for table in &tables {
            assert_eq!(table.column("age").unwrap().value_type, ValueType::Integer);
            assert_eq!(table.column("zip").unwrap().value_type, ValueType::Text);
            assert_eq!(table.column("x").map(|column| &column.name), None);
        }
        assert_eq!(cells(&tables[0], "zip"), ["01234", "null"]);
    }

    #[test]
    fn bounds_are_read_as_ranges() {
        let tables = read(&["id,age_lo,age_hi\n1,20,29\n2,,\n3,25,25\n"], &["age"], Some("id")).unwrap();
        assert_eq!(cells(&tables[0], "age"), ["[20,29]", "*", "25"]);
        assert_eq!(tables[0].person, Some(0));
        let half = read(&["id,age_lo,age_hi\n1,20,29\n2,20,\n"], &["age"], None).unwrap_err();
        assert_eq!(half, ["columns 'age_lo' and 'age_hi' don't hold bounds of 'age', first in row 2"]);
    }

    #[test]
    fn a_column_that_no_file_has_is_named_for_each_of_them() {
        let texts = ["a,b\n1,2\n", "a,c\n1,2\n"];
        assert_eq!(read(&texts, &["a", "c"], None).unwrap().len(), 2);
        assert_eq!(read(&texts, &["a", "d"], None).unwrap_err(), ["no such column: 'd'"; 2]);
        assert_eq!(read(&texts, &["a"], Some("b")).unwrap_err(), ["no such column: 'b'"]);
    }
}
