//! Microdata and a large register as files: uniform whole numbers, and a key for everybody.

use std::error::Error;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use kohort_core::register::{AnonymizedWithRegister, anonymize_with_register};
use kohort_io::{LoadedTable, load, load_registers};
use kohort_model::{JoinedRegister, Requirement, Silent, Spec};
use kohort_testkit::random::Random;
use kohort_verify::{AskedOfJoin, SuppressionLimit, ToldApart, verify_joined};
use parquet::arrow::ArrowWriter;

use super::setting::N_LARGE;

const BATCH_ROWS: usize = 1 << 16;

const SPEC: &str = "\
algorithm = \"mondrian\"
[tables.persons]
file = \"persons.parquet\"
person = \"id\"
columns = { id = \"identifier\", x0 = \"quasi\", x1 = \"quasi\", x2 = \"quasi\", x3 = \"quasi\" }
[registers.everybody]
file = \"everybody.parquet\"
key = \"id\"
[register]
method = \"direct\"
";

/// Writes both files. The register starts with everybody of the microdata, and others follow.
pub(super) fn write(folder: &Path, n_microdata: usize, n_register: usize) -> Result<(), Box<dyn Error>> {
    for (file, n_rows) in [("persons.parquet", n_microdata), ("everybody.parquet", n_microdata + n_register)] {
        let mut random = Random::new(11);
        let mut writer: Option<ArrowWriter<File>> = None;
        for start in (0..n_rows).step_by(BATCH_ROWS) {
            let rows = start..(start + BATCH_ROWS).min(n_rows);
            let mut columns: Vec<Vec<i64>> = vec![Vec::with_capacity(BATCH_ROWS); 1 + N_LARGE.len()];
            for row in rows {
                columns[0].push(row as i64);
                for (column, &n_values) in columns[1..].iter_mut().zip(&N_LARGE) {
                    column.push(random.below(n_values) as i64);
                }
            }
            let array = |values: Vec<i64>| Arc::new(Int64Array::from(values)) as ArrayRef;
            let names = std::iter::once("id".to_owned()).chain((0..N_LARGE.len()).map(|column| format!("x{column}")));
            let batch = RecordBatch::try_from_iter(names.zip(columns.into_iter().map(array)))?;
            let writer = match &mut writer {
                Some(writer) => writer,
                None => writer.insert(ArrowWriter::try_new(File::create(folder.join(file))?, batch.schema(), None)?),
            };
            writer.write(&batch)?;
        }
        writer.ok_or("there are no rows to write")?.close()?;
    }
    Ok(())
}

/// Both files after reading and joining.
pub(super) struct Files {
    spec: Spec,
    microdata: LoadedTable,
    joined: JoinedRegister,
}

/// Reads both files.
pub(super) fn read(folder: &Path, k: u32) -> Result<Files, Box<dyn Error>> {
    let spec = Spec::parse(&format!("k = {k}\n{SPEC}"))?;
    let mut microdata = load(folder, &spec, &spec.tables[0], &Silent)?;
    let joined = load_registers(folder, &spec, &mut microdata, &Silent)?.joined;
    Ok(Files { spec, microdata, joined })
}

impl Files {
    pub(super) fn anonymize(&self) -> Result<AnonymizedWithRegister, Box<dyn Error>> {
        let requirements = [Requirement::K(self.spec.k)];
        Ok(anonymize_with_register(&self.microdata.table, &self.joined, &[], &self.spec, &requirements, &Silent)?)
    }

    /// Fails if the release does not pass verification.
    pub(super) fn verify(&self, done: AnonymizedWithRegister) -> Result<(), Box<dyn Error>> {
        let requirements = [Requirement::K(self.spec.k)];
        let rows = self.spec.register.release;
        let asked = AskedOfJoin {
            requirements: &requirements,
            delta_presence: None,
            rows,
            told_apart: ToldApart::ByKey,
            previous: &[],
            limit: SuppressionLimit::NOBODY,
        };
        verify_joined(done.anonymized.release, &self.microdata.table, &self.joined, asked)?;
        Ok(())
    }
}
