//! Properties of the readers of this crate, for arbitrary bytes. The targets in `fuzz/` call these functions with bytes
//! that a fuzzer makes up, and the tests call them with the files in `fuzz/corpus`.
//!
//! Every function panics if a property does not hold.

use std::path::Path;
use std::sync::LazyLock;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use kohort_model::spec::CsvSpec;
use kohort_model::{Manifest, NULL, Requirement, Role, Silent};
use kohort_verify::{RowsOf, verify_alone};
use tempfile::TempDir;

use crate::digest::sha256_of_file;
use crate::read::{CsvBatches, CsvFile, OpenTable, RawColumn, ReadError};
use crate::read_release;
use crate::write::write_texts;

/// A `~` in the input becomes this text, which no problem may show.
const CANARY: &str = "Canary7c1";

/// The usual size of blocks.
const WHOLE: usize = 1 << 20;

/// A table as read: the names of its columns, and rows of cells, `None` for null.
#[derive(Debug, PartialEq)]
struct Cells {
    names: Vec<String>,
    rows: Vec<Vec<Option<String>>>,
}

/// Reads a CSV file. The first byte chooses a spec, the second the size of blocks, and the rest is the file.
///
/// Blocks of any size must give the same cells, as must the reader of batches. Cells that are written must be read as
/// the same cells. No problem may show a cell.
pub fn csv(data: &[u8]) {
    let [how, block_size, file @ ..] = data else { return };
    let spec = csv_spec(*how);
    let file: Vec<u8> = file
        .iter()
        .flat_map(|byte| if *byte == b'~' { CANARY.as_bytes() } else { std::slice::from_ref(byte) })
        .copied()
        .collect();
    let whole = read(&file, &spec, WHOLE);
    let in_blocks = read(&file, &spec, usize::from(block_size % 64) + 1);
    assert_eq!(messages(&in_blocks), messages(&whole), "blocks of another size give other cells");
    match &whole {
        Ok((cells, columns, separator)) => {
            let batches = read_batches(&file, &spec).expect("the file can be read");
            assert_eq!(&batches, cells, "batches hold other cells");
            let null_words = spec.null.clone().unwrap_or_default();
            let columns: Vec<_> =
                cells.names.iter().zip(columns).map(|(name, raw)| (name.as_str(), &raw.texts, &raw.ids[..])).collect();
            let written = write_texts(&columns, cells.rows.len(), *separator, &null_words);
            let plain = CsvSpec { separator: Some(char::from(*separator)), ..CsvSpec::default() };
            let again = read(&written, &plain, WHOLE).map(|(cells, ..)| cells);
            assert_eq!(again.as_ref().ok(), Some(cells), "what is written is read as something else");
        }
        Err(problems) => {
            for problem in problems {
                let shown = format!("{problem} {problem:?} {:?}", problem.hint());
                assert!(!shown.contains(CANARY), "a cell in a message");
            }
            let has_no_rows = matches!(problems.as_slice(), [ReadError::NoRows]);
            assert_eq!(read_batches(&file, &spec).is_ok(), has_no_rows, "batches of a file that can't be read");
        }
    }
}

fn csv_spec(how: u8) -> CsvSpec {
    let encodings = [None, Some("windows-1252"), Some("utf-16le"), Some("shift_jis")];
    CsvSpec {
        header: (how & 1 != 0).then_some(false),
        separator: (how & 2 != 0).then_some(';'),
        encoding: encodings[usize::from(how >> 2 & 3)].map(str::to_owned),
        null: (how & 64 != 0).then(|| vec!["NA".to_owned(), "-".to_owned()]),
        ..CsvSpec::default()
    }
}

type Read = Result<(Cells, Vec<RawColumn>, u8), Vec<ReadError>>;

fn read(file: &[u8], spec: &CsvSpec, block_size: usize) -> Read {
    let open = CsvFile::open_in_blocks(Box::new(file), spec, block_size).map_err(|problem| vec![problem])?;
    let (names, separator) = (open.names().to_vec(), open.separator());
    let wanted: Vec<usize> = (0..names.len()).collect();
    let columns = OpenTable::Csv(open).read(&wanted)?;
    let cell = |column: &RawColumn, row: usize| match column.ids[row] {
        NULL => None,
        id => Some(column.texts.get(id).to_owned()),
    };
    let n_rows = columns[0].ids.len();
    let rows = (0..n_rows).map(|row| columns.iter().map(|column| cell(column, row)).collect()).collect();
    Ok((Cells { names, rows }, columns, separator))
}

fn messages(read: &Read) -> Result<&Cells, Vec<String>> {
    match read {
        Ok((cells, ..)) => Ok(cells),
        Err(problems) => Err(problems.iter().map(ToString::to_string).collect()),
    }
}

fn read_batches(file: &[u8], spec: &CsvSpec) -> Result<Cells, ReadError> {
    let open = CsvFile::open(Box::new(file), spec)?;
    let mut cells = Cells { names: open.names().to_vec(), rows: Vec::new() };
    for batch in CsvBatches::new(open) {
        let batch = batch?;
        let cell = |column: usize, row: usize| {
            let column = batch.column(column).as_string::<i32>();
            (!column.is_null(row)).then(|| column.value(row).to_owned())
        };
        let row = |row: usize| (0..batch.num_columns()).map(|column| cell(column, row)).collect();
        cells.rows.extend((0..batch.num_rows()).map(row));
    }
    Ok(cells)
}

/// Tables of the releases in the corpus: one with labels, one with bounds in two columns, and one that refers to
/// another table.
const RELEASED: [(&str, &str); 3] = [
    ("patient.csv", "age,zip,disease\n\"[20,29]\",88***,flu\n\"[20,29]\",88***,cold\n*,89***,flu\n"),
    ("bounds.csv", "age_lo,age_hi,disease\n20,29,flu\n20,29,cold\n,,flu\n"),
    ("visit.csv", "patient_id,ward\n1,north\n1,south\n2,\n"),
];

struct Folder {
    folder: TempDir,
    digests: Vec<String>,
}

/// The folder with the tables, into which manifests are written.
static FOLDER: LazyLock<Folder> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("there is a folder for temporary files");
    let digest = |(name, text): &(&str, &str)| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("the folder can be written");
        sha256_of_file(&path).expect("it was written")
    };
    let digests = RELEASED.iter().map(digest).collect();
    Folder { folder, digests }
});

/// Reads a manifest. If it can be read, it must say the same after it is written again. Whatever it says about three small
/// tables, reading the release and counting k in it ends, with tables or with a problem.
pub fn manifest(data: &[u8]) {
    let Ok(mut manifest) = serde_json::from_slice::<Manifest>(data) else { return };
    let written = serde_json::to_string_pretty(&manifest).expect("a manifest is JSON");
    let again: Manifest = serde_json::from_str(&written).expect("a manifest that was written can be read");
    assert_eq!(again, manifest, "a manifest changes when it is written again");

    // A fuzzer can't find digests, so tables of the manifest that are there get the right ones.
    for table in &mut manifest.tables {
        let known = RELEASED.iter().zip(&FOLDER.digests).find(|((name, _), _)| *name == table.file);
        if let Some((_, digest)) = known {
            table.sha256.clone_from(digest);
        }
    }
    let folder = FOLDER.folder.path();
    write_manifest(folder, &manifest);
    match read_release(folder, &Silent) {
        Ok((read, tables)) => {
            assert_eq!(read, manifest);
            assert_eq!(tables.len(), manifest.tables.len());
            for (table, entry) in tables.iter().zip(&manifest.tables) {
                assert_eq!(table.n_rows as u64, entry.rows_out);
                let asked = [Requirement::K(manifest.requirement.k)];
                let _ = verify_alone(table, &table.with_role(Role::Quasi), &asked, RowsOf::PersonsUnnamed);
            }
        }
        Err(problem) => assert!(!problem.to_string().is_empty()),
    }
}

fn write_manifest(folder: &Path, manifest: &Manifest) {
    let json = serde_json::to_vec(manifest).expect("a manifest is JSON");
    std::fs::write(folder.join("manifest.json"), json).expect("the folder can be written");
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// Runs a check on every file of its corpus. The name of the file that fails is the last one that is printed.
    fn replay(target: &str, check: fn(&[u8])) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
        let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        assert!(!files.is_empty());
        for file in files {
            println!("{}", file.display());
            check(&std::fs::read(file).unwrap());
        }
    }

    #[test]
    fn the_corpus_of_csv_files_is_read_as_csv_should_be() {
        replay("csv", super::csv);
    }

    #[test]
    fn the_corpus_of_manifests_is_read_as_manifests_should_be() {
        replay("manifest", super::manifest);
    }
}
