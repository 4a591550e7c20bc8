//! [`stage`]: a release folder that appears whole, verified, or not at all.
//!
//! # Guarantee
//! Under the name of the folder there is never anything but a complete release, whose files were read back and verified
//! after they were written. If anything fails, everything written so far is removed. If the process is killed, a folder
//! `.kohort-partial-...` may stay beside the target; a `manifest.json` inside means that everything else in it was verified.
//!
//! When a release is replaced, the old one is moved into the partial folder before the new one takes its name. If that
//! fails, the old one is moved back.

use std::fs::{self, File};
use std::io;
use std::path::{Component, Path, PathBuf};

use kohort_model::spec::ReleasedHierarchies;
use kohort_model::{Cells, Column, CsvManifest, LabelsManifest, Manifest, Progress, Release, ReleasedTable, Table};
use kohort_verify::{Findings, Reading, Verified};
use serde::Serialize;
use tempfile::TempDir;

use super::error::WriteError;
use super::listing::{listing_name, write_listing};
use super::stream::Target;
use super::table::{read_back, write_table};
use crate::cells::remove_abandoned;
use crate::digest::sha256_of_file;
use crate::read::{Original, as_readers_see, read_listing_file};
use crate::{ColumnManifests, Format, Private, ReleaseError};

/// How a release is written.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteOptions {
    /// The format of the tables; without it, the format of the input.
    pub format: Option<Format>,
    /// What to do with a release that is already there.
    pub existing: Existing,
}

/// What to do with a release that is already there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// Keep the release, and write nothing.
    #[default]
    Refuse,
    /// Delete the release when the new one is complete.
    Replace,
}

/// A file of a release.
#[derive(Clone, Debug, PartialEq)]
pub struct WrittenFile {
    /// The file's name within the folder.
    pub name: String,
    /// The digest of the file.
    pub sha256: String,
    /// The number of rows.
    pub n_rows: u64,
    /// How the file is read, if it is CSV.
    pub csv: Option<CsvManifest>,
    /// How the cells of each column are read.
    pub columns: ColumnManifests,
}

/// Checks, before any work is done, that a release can be written to this folder.
///
/// # Errors
/// If the folder holds something that must not be overwritten, or can't be written at all.
pub fn check_target(folder: &Path, existing: Existing) -> Result<(), WriteError> {
    let (parent, _) = split_target(folder)?;
    if !parent.is_dir() {
        return Err(WriteError::NoParent { path: parent.to_owned() });
    }
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            return Err(WriteError::BadTarget { path: folder.to_owned() });
        }
        Err(error) => return Err(WriteError::io(folder)(error)),
    };
    let is_empty = entries.take(1).count() == 0;
    match existing {
        _ if is_empty => Ok(()),
        Existing::Refuse => Err(WriteError::NotEmpty { path: folder.to_owned() }),
        // Replacing deletes a whole folder, so it must be a release.
        Existing::Replace if folder.join("manifest.json").is_file() => Ok(()),
        Existing::Replace => Err(WriteError::NotARelease { path: folder.to_owned() }),
    }
}

/// Writes the tables of a release into a new folder beside `folder`, and verifies them there. [`Staged::publish`] then adds
/// the manifest, which says what was counted in these files, and gives the new folder its name.
///
/// # Errors
/// If something can't be written or read back, or the rows that are read back are not the verified ones. Then nothing is
/// kept.
pub fn stage(
    release: &Verified<Release>,
    private: &Private,
    folder: &Path,
    options: WriteOptions,
    progress: &dyn Progress,
) -> Result<Staged, WriteError> {
    stage_in_files(&create_file, release, private, folder, options, progress)
}

fn create_file(path: &Path) -> io::Result<Target> {
    File::create_new(path).map(|file| Box::new(file) as Target)
}

/// Does the same as [`stage`], with files that the caller creates.
fn stage_in_files(
    create: &dyn Fn(&Path) -> io::Result<Target>,
    release: &Verified<Release>,
    private: &Private,
    folder: &Path,
    options: WriteOptions,
    progress: &dyn Progress,
) -> Result<Staged, WriteError> {
    let partial = Partial::beside(folder, options)?;
    let (written, files) = private.with_originals(|originals| {
        let complete = &partial.complete;
        write_files(create, &release.get().tables, originals, &private.valued(), complete, options.format, progress)
    })?;
    let findings = private.verify_written(&written, release).map_err(WriteError::Changed)?;
    Ok(partial.staged(files, findings, written))
}

/// A folder beside the target whose files are not verified yet. Dropping it removes everything.
pub(crate) struct Partial {
    partial: TempDir,
    /// Where the files of the release go.
    pub(crate) complete: PathBuf,
    folder: PathBuf,
    existing: Existing,
}

impl Partial {
    pub(crate) fn beside(folder: &Path, options: WriteOptions) -> Result<Partial, WriteError> {
        check_target(folder, options.existing)?;
        let (parent, _) = split_target(folder)?;
        remove_abandoned(parent);
        // Other users can't look into the partial folder before it is verified. The release inside has the usual permissions.
        let partial = private_folder(".kohort-partial-", parent).map_err(WriteError::io(parent))?;
        let complete = partial.path().join("release");
        fs::create_dir(&complete).map_err(WriteError::io(&complete))?;
        Ok(Partial { partial, complete, folder: folder.to_owned(), existing: options.existing })
    }

    /// The folder with files that the verifier has counted.
    /// `read_back` are its tables, if they fit into memory.
    pub(crate) fn staged(self, files: Vec<WrittenFile>, findings: Findings, read_back: Vec<Table>) -> Staged {
        let Partial { partial, complete, folder, existing } = self;
        Staged { partial, complete, folder, existing, files, findings, read_back }
    }
}

/// A release whose files are written and verified, in a folder that does not have its final name yet. Dropping it removes
/// everything.
#[derive(Debug)]
pub struct Staged {
    partial: TempDir,
    complete: PathBuf,
    folder: PathBuf,
    existing: Existing,
    files: Vec<WrittenFile>,
    findings: Findings,
    read_back: Vec<Table>,
}

impl Staged {
    /// The files of the released tables, in their order.
    pub fn files(&self) -> &[WrittenFile] {
        &self.files
    }

    /// What the verifier counted in the files.
    pub fn findings(&self) -> &Findings {
        &self.findings
    }

    /// The tables as a reader of this manifest finds them; empty if they don't fit into memory. They are given away, so that
    /// they need not stay there.
    ///
    /// # Errors
    /// If the manifest does not describe the tables.
    pub fn read_tables(&mut self, manifest: &Manifest) -> Result<Vec<Table>, ReleaseError> {
        as_readers_see(std::mem::take(&mut self.read_back), &self.complete, manifest)
    }

    /// The folder that the files are in until the release has its name. Messages must not name it.
    pub fn place(&self) -> &Path {
        &self.complete
    }

    /// Adds one of [`crate::DOCUMENTS`].
    ///
    /// # Errors
    /// If it can't be written.
    pub fn add_document(&self, name: &str, text: &str) -> Result<(), WriteError> {
        let path = self.complete.join(name);
        fs::write(&path, text).map_err(WriteError::io(&path))?;
        sync(&path)
    }

    /// Adds the manifest, and gives the folder its name.
    ///
    /// # Errors
    /// If that fails. Then nothing is kept.
    pub fn publish(self, manifest: &impl Serialize) -> Result<(), WriteError> {
        let path = self.complete.join("manifest.json");
        let mut json = serde_json::to_string_pretty(manifest)
            .map_err(|error| WriteError::Encode { path: path.clone(), message: error.to_string() })?;
        json.push('\n');
        fs::write(&path, json).map_err(WriteError::io(&path))?;
        sync(&path)?;
        sync(&self.complete)?;
        check_target(&self.folder, self.existing)?;
        put_in_place(self.partial, &self.complete, &self.folder)?;
        let (parent, _) = split_target(&self.folder)?;
        sync(parent)
    }
}

/// Writes all files of a release but its manifest, and reads them back.
fn write_files(
    create: &dyn Fn(&Path) -> io::Result<Target>,
    tables: &[ReleasedTable],
    originals: &[Original<'_>],
    valued: &[&Table],
    complete: &Path,
    format: Option<Format>,
    progress: &dyn Progress,
) -> Result<(Vec<Table>, Vec<WrittenFile>), WriteError> {
    let file = |(table, original): (&ReleasedTable, &Original<'_>)| {
        let format = format.unwrap_or(original.origin.format);
        file_name_of(&table.name, format).map(|name| (name, format))
    };
    let names: Vec<(String, Format)> = tables.iter().zip(originals).map(file).collect::<Result<_, _>>()?;
    progress.begin("writing", 0);
    for ((table, &original), (name, format)) in tables.iter().zip(originals).zip(&names) {
        let path = complete.join(name);
        let target = create(&path).map_err(WriteError::io(&path))?;
        write_table(table, original, *format, target, &path)?;
        sync(&path)?;
    }
    let mut taken: Vec<String> = names.iter().map(|(name, _)| name.clone()).collect();
    let mut listings = Vec::new();
    for (table, original) in tables.iter().zip(originals) {
        listings.push(write_listings(table, *original, complete, &mut taken)?);
    }
    progress.begin("verifying what was written", 0);
    let (mut written, mut files) = (Vec::new(), Vec::new());
    let of_tables = tables.iter().zip(originals).zip(valued).zip(listings).zip(names);
    for ((((table, &original), valued), listings), (name, format)) in of_tables {
        let path = complete.join(&name);
        let read = read_back(&path, format, table, original)?;
        let sha256 = sha256_of_file(&path).map_err(WriteError::io(&path))?;
        let columns = described(table, original, &listings, complete)?;
        check_reading(&read, &columns, valued, complete)?;
        let csv = match format {
            Format::Csv(_) => Some(CsvManifest::new(original.origin.separator.into())),
            Format::Parquet | Format::ArrowFile | Format::ArrowStream => None,
        };
        written.push(read);
        files.push(WrittenFile { name, sha256, n_rows: table.rows.len() as u64, csv, columns });
    }
    Ok((written, files))
}

/// The entries of a manifest for the columns of a released table, with the files of their hierarchies.
pub(crate) fn described(
    table: &ReleasedTable,
    original: Original<'_>,
    listings: &[WrittenListing],
    complete: &Path,
) -> Result<ColumnManifests, WriteError> {
    let mut columns = original.column_manifests(table);
    for listing in listings {
        let path = complete.join(&listing.name);
        let sha256 = sha256_of_file(&path).map_err(WriteError::io(&path))?;
        if let Some(LabelsManifest::Hierarchy { file, sha256: digest, .. }) =
            columns.get_mut(&listing.column).and_then(|column| column.labels.as_mut())
        {
            (*file, *digest) = (Some(listing.name.clone()), Some(sha256));
        }
    }
    Ok(columns)
}

/// The file with the part of a column's hierarchy that readers need.
pub(crate) struct WrittenListing {
    column: String,
    name: String,
}

/// Writes the parts of the hierarchy files that readers need. `taken` has the names of the other files.
pub(crate) fn write_listings(
    table: &ReleasedTable,
    original: Original<'_>,
    folder: &Path,
    taken: &mut Vec<String>,
) -> Result<Vec<WrittenListing>, WriteError> {
    let mut listings = Vec::new();
    if original.origin.hierarchies == ReleasedHierarchies::Withhold {
        return Ok(listings);
    }
    for column in table.columns.iter().filter(|column| matches!(column.cells, Cells::Recoded { .. })) {
        let of_file = matches!(original.origin.readings[column.source].labels, LabelsManifest::Hierarchy { .. });
        let hierarchy = original.table.columns[column.source].hierarchy.as_deref().filter(|_| of_file);
        let Some(hierarchy) = hierarchy else { continue };
        let name = listing_name(&table.name, &column.name, taken);
        let path = folder.join(&name);
        write_listing(&path, hierarchy, &original.shown_texts(table, column)).map_err(WriteError::io(&path))?;
        sync(&path)?;
        taken.push(name.clone());
        listings.push(WrittenListing { column: column.name.clone(), name });
    }
    Ok(listings)
}

/// Checks that a reader who has only the manifest finds every private value below the label that is shown for it.
pub(crate) fn check_reading(
    read: &Table,
    columns: &ColumnManifests,
    private: &Table,
    folder: &Path,
) -> Result<(), WriteError> {
    for column in &read.columns {
        let (Some(known), Some(private)) = (columns.get(&column.name), private.column(&column.name)) else { continue };
        let Some(labels) = &known.labels else { continue };
        let unlisted = || WriteError::Listing { column: column.name.clone() };
        let listing = match labels {
            LabelsManifest::Hierarchy { file: Some(file), .. } => {
                let listing = read_listing_file(&folder.join(file)).map_err(|_| unlisted())?;
                listing.check_shown(&column.texts).map_err(|_| unlisted())?;
                let hierarchy = private.hierarchy.as_deref().ok_or_else(unlisted)?;
                listing.check_hierarchy(hierarchy).map_err(|_| unlisted())?;
                Some(listing)
            }
            _ => None,
        };
        let as_read = Column { notation: known.notation(), ..private.without_cells() };
        let n_values = Reading::new(&as_read, labels, listing.as_ref()).n_misread(private, &column.texts);
        if n_values > 0 {
            return Err(WriteError::Misleading { column: column.name.clone(), n_values });
        }
    }
    Ok(())
}

/// Gives a complete folder its name. A folder that had the name is moved into the partial folder, which is then deleted.
fn put_in_place(partial: TempDir, complete: &Path, folder: &Path) -> Result<(), WriteError> {
    let old = partial.path().join("old");
    let had_old = match fs::rename(folder, &old) {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => return Err(WriteError::io(folder)(error)),
    };
    if let Err(error) = fs::rename(complete, folder) {
        if had_old && fs::rename(&old, folder).is_err() {
            // The old release is inside the partial folder, so keep that.
            let _ = partial.keep();
        }
        return Err(WriteError::io(folder)(error));
    }
    // The release is in place, so a partial folder that can't be deleted does no harm.
    let _ = partial.close();
    Ok(())
}

/// A new folder that only its owner can look into, removed when dropped.
pub(crate) fn private_folder(prefix: &str, parent: &Path) -> io::Result<TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(prefix);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o700));
    }
    builder.tempdir_in(parent)
}

/// The parent folder, and the name within it.
fn split_target(folder: &Path) -> Result<(&Path, &std::ffi::OsStr), WriteError> {
    match (folder.parent(), folder.file_name()) {
        (Some(parent), Some(name)) if parent.as_os_str().is_empty() => Ok((Path::new("."), name)),
        (Some(parent), Some(name)) => Ok((parent, name)),
        _ => Err(WriteError::BadTarget { path: folder.to_owned() }),
    }
}

pub(crate) fn file_name_of(table: &str, format: Format) -> Result<String, WriteError> {
    let mut components = Path::new(table).components();
    let is_plain =
        matches!((components.next(), components.next()), (Some(Component::Normal(name)), None) if name == table);
    if !is_plain || table.contains(['/', '\\', '\0']) || table.starts_with('.') {
        return Err(WriteError::BadTableName { name: table.to_owned() });
    }
    Ok(format!("{table}.{}", format.extension()))
}

/// Waits until a file or folder is on the disk.
pub(crate) fn sync(path: &Path) -> Result<(), WriteError> {
    if cfg!(windows) && path.is_dir() {
        return Ok(());
    }
    File::open(path).and_then(|file| file.sync_all()).map_err(WriteError::io(path))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use kohort_model::{Notation, ReleasedColumn, Requirement, Role, Silent, Spec, Texts};
    use kohort_verify::verify_release;

    use super::*;
    use crate::read::ColumnReading;
    use crate::{CellForm, Compression, LoadedTable, Origin};

    #[cfg(unix)]
    #[test]
    fn nobody_else_may_look_into_a_folder_that_is_not_verified() {
        use std::os::unix::fs::PermissionsExt;
        let parent = tempfile::tempdir().unwrap();
        let partial = Partial::beside(&parent.path().join("out"), WriteOptions::default()).unwrap();
        let mode = fs::metadata(partial.partial.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0);
    }

    fn example() -> (LoadedTable, Verified<Release>) {
        let cells: Vec<String> = (0..10_000).map(|row| row.to_string()).collect();
        let column = Column::from_cells("ward", Role::Plain, cells.iter().map(|cell| Some(cell.as_str())));
        let quasi = Column::from_cells("city", Role::Quasi, cells.iter().map(|_| Some("x")));
        let table = Table { name: "patient".into(), columns: vec![quasi, column], n_rows: 10_000, person: None };
        let origin = Origin {
            format: Format::Csv(Compression::None),
            separator: b',',
            null_words: Vec::new(),
            fields: vec![None, None],
            readings: vec![ColumnReading::of_numbers(), ColumnReading::of_numbers()],
            notation: Notation::default(),
            hierarchies: ReleasedHierarchies::Shown,
            cells: CellForm::Labels,
        };
        let labels = Cells::Recoded { labels: Texts::from_iter(["*"]), ids: vec![0; 10_000] };
        let columns = vec![
            ReleasedColumn { name: "city".into(), source: 0, cells: labels },
            ReleasedColumn { name: "ward".into(), source: 1, cells: Cells::Copied },
        ];
        let released = ReleasedTable { name: "patient".into(), rows: (0..10_000).collect(), columns };
        let release = verify_release(
            Release { tables: vec![released] },
            &table,
            &[Requirement::K(2)],
            kohort_verify::SuppressionLimit::NOBODY,
        )
        .unwrap();
        (LoadedTable { table, origin }, release)
    }

    /// Why a release can't be written to files like these.
    fn refused(
        create: &dyn Fn(&Path) -> io::Result<Target>,
        (original, release): (LoadedTable, Verified<Release>),
        folder: &Path,
        options: WriteOptions,
    ) -> WriteError {
        let private = Private::one(Spec::new(2), original);
        stage_in_files(create, &release, &private, folder, options, &Silent).unwrap_err()
    }

    /// A disk with room for this many bytes.
    struct SmallDisk {
        file: File,
        n_left: usize,
    }

    impl Write for SmallDisk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.n_left == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            let n_written = self.file.write(&bytes[..bytes.len().min(self.n_left)])?;
            self.n_left -= n_written;
            Ok(n_written)
        }

        fn flush(&mut self) -> io::Result<()> {
            self.file.flush()
        }
    }

    #[test]
    fn a_full_disk_leaves_nothing_and_the_old_release_alone() {
        let beside = tempfile::tempdir().unwrap();
        let folder = beside.path().join("out");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("manifest.json"), "old").unwrap();
        for format in Format::ALL {
            for n_left in [0, 10, 4_000] {
                let create =
                    |path: &Path| File::create_new(path).map(|file| Box::new(SmallDisk { file, n_left }) as Target);
                let options = WriteOptions { format: Some(format), existing: Existing::Replace };
                let problem = refused(&create, example(), &folder, options);
                assert_eq!(problem.class(), crate::ErrorClass::Io, "{problem}");
                assert_eq!(fs::read_dir(beside.path()).unwrap().count(), 1);
                assert_eq!(fs::read_to_string(folder.join("manifest.json")).unwrap(), "old");
            }
        }
    }

    #[test]
    fn a_file_that_lies_about_what_was_written_is_refused() {
        let beside = tempfile::tempdir().unwrap();
        // Takes every byte and keeps the first few.
        struct Forgetful(SmallDisk);
        impl Write for Forgetful {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                let _ = self.0.write(bytes);
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let create = |path: &Path| {
            File::create_new(path).map(|file| Box::new(Forgetful(SmallDisk { file, n_left: 500 })) as Target)
        };
        let options = WriteOptions { format: None, existing: Existing::Refuse };
        let folder = beside.path().join("out");
        let problem = refused(&create, example(), &folder, options);
        assert!(matches!(problem, WriteError::ReadBack(_) | WriteError::Changed(_)), "{problem}");
        assert_eq!(fs::read_dir(beside.path()).unwrap().count(), 0);
    }

    #[test]
    fn table_names_stay_within_the_folder() {
        let format = Format::Parquet;
        assert_eq!(file_name_of("patient", format).unwrap(), "patient.parquet");
        for bad in ["", ".", "..", "a/b", "/a", "a\\b", ".hidden", "a/"] {
            assert!(file_name_of(bad, format).is_err(), "{bad}");
        }
    }
}
