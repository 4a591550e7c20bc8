//! A whole job in one call: a private file in, a release of its cells as they are out.

use std::collections::BTreeMap;
use std::path::Path;

use kohort_io::{Existing, Format, LoadedTable, Private, WriteError, WriteOptions, WrittenFile, load, stage};
use kohort_model::spec::{Childless, ColumnSpec, CsvSpec, Order, Orphans, TableSpec};
use kohort_model::{
    Achieved, BeforeAfter, Cells, Loss, Manifest, Persons, Release, ReleasedColumn, ReleasedTable, Requirement,
    RequirementManifest, Risk, Role, Silent, Spec, TableManifest, Texts,
};
use kohort_verify::{Verified, verify_release};

/// How a table is read whose first column is quasi and all others plain.
pub(crate) fn table_spec(file: &str, names: &[String], csv: CsvSpec) -> TableSpec {
    let role = |position| if position == 0 { Role::Quasi } else { Role::Plain };
    let columns = names.iter().enumerate().map(|(position, name)| ColumnSpec {
        name: name.clone(),
        role: role(position),
        references: None,
        value_type: None,
        hierarchy: None,
        transform: kohort_model::Transform::default(),
        requirements: Vec::new(),
        sensitive_to: Vec::new(),
        weight: 1.0,
    });
    TableSpec {
        name: "patient".to_owned(),
        file: file.into(),
        csv,
        person: None,
        key: None,
        parent: None,
        orphans: Orphans::Refuse,
        childless: Childless::Refuse,
        max_rows_left_out: None,
        columns: columns.collect(),
    }
}

pub(crate) fn load_file(folder: &Path, file: &str, names: &[String], csv: CsvSpec) -> LoadedTable {
    load(folder, &Spec::new(1), &table_spec(file, names, csv), &Silent).unwrap()
}

/// The rows in this order, with `*` in the first column and all others unchanged.
pub(crate) fn release(loaded: &LoadedTable, rows: Vec<u32>) -> Verified<Release> {
    let n_rows = rows.len();
    let columns = loaded.table.columns.iter().enumerate().map(|(source, column)| ReleasedColumn {
        name: column.name.clone(),
        source,
        cells: match source {
            0 => Cells::Recoded { labels: Texts::from_iter(["*"]), ids: vec![0; n_rows] },
            _ => Cells::Copied,
        },
    });
    let table = ReleasedTable { name: "patient".to_owned(), rows, columns: columns.collect() };
    verify_release(
        Release { tables: vec![table] },
        &loaded.table,
        &[Requirement::K(1)],
        kohort_verify::SuppressionLimit::share(1.0),
    )
    .unwrap()
}

pub(crate) fn write(
    release: &Verified<Release>,
    loaded: &LoadedTable,
    folder: &Path,
    format: Option<Format>,
    existing: Existing,
) -> Result<Manifest, WriteError> {
    let options = WriteOptions { format, existing };
    let staged = stage(release, &private(loaded, 1), folder, options, &Silent)?;
    let manifest = manifest(loaded, &staged.files()[0], staged.findings().k);
    staged.publish(&manifest)?;
    Ok(manifest)
}

/// A table with k as its only requirement.
pub(crate) fn private(loaded: &LoadedTable, k: u32) -> Private {
    Private::one(Spec::new(k), loaded.clone())
}

pub(crate) fn manifest(loaded: &LoadedTable, file: &WrittenFile, k: u64) -> Manifest {
    let n_rows = loaded.table.n_rows as u64;
    let none = BeforeAfter { before: Some(1.0), after: 1.0 };
    Manifest {
        kohort: "0".to_owned(),
        algorithm: "none".to_owned(),
        effort: None,
        objective: None,
        weights: BTreeMap::new(),
        order: Order::Sorted,
        requirement: RequirementManifest {
            k: 1,
            person_k: false,
            collusion_k: None,
            coalitions: BTreeMap::new(),
            steer: None,
            delta_presence: None,
            max_suppressed: 0.0,
            max_rows_left_out: BTreeMap::new(),
            sensitive: BTreeMap::new(),
        },
        achieved: Achieved {
            k,
            audiences: BTreeMap::new(),
            collusion_k: None,
            coalitions: BTreeMap::new(),
            learned: BTreeMap::new(),
            sensitive: BTreeMap::new(),
        },
        persons: Persons { n_in: n_rows, n_out: file.n_rows, suppressed: n_rows - file.n_rows },
        classes: 1,
        loss: Loss::default(),
        risk: Risk { highest: none, average: none },
        tables: vec![TableManifest {
            name: "patient".to_owned(),
            file: file.name.clone(),
            rows_in: n_rows,
            rows_out: file.n_rows,
            rows_suppressed: n_rows - file.n_rows,
            sha256: file.sha256.clone(),
            csv: file.csv.clone(),
            columns: file.columns.clone(),
        }],
        audiences: BTreeMap::new(),
        savings: None,
        registers: Vec::new(),
        register: None,
        previous: None,
        applied: None,
        notes: Vec::new(),
        accepted_risks: Vec::new(),
        verified: true,
        links: Vec::new(),
        references: Vec::new(),
        table_loss: BTreeMap::new(),
    }
}
