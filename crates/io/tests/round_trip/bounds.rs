//! Quasi cells written as bounds: typed in Arrow, and labels again when they are read.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Decimal128Array, RecordBatch, TimestampMillisecondArray, UInt8Array};
use arrow_schema::DataType;
use kohort_io::{
    CellForm, ErrorClass, Existing, Format, LoadedTable, ReleaseError, WriteError, WriteOptions, load, read_release,
    read_release_of, stage, write_csv_to,
};
use kohort_model::spec::{ColumnSpec, CsvSpec, HierarchySource};
use kohort_model::{
    Cells, Manifest, Release, ReleasedColumn, ReleasedTable, Requirement, Role, Silent, Spec, Texts, ValueType,
    hierarchy::Rule,
};
use kohort_verify::{RowsOf, SuppressionLimit, Verified, verify_against, verify_alone, verify_release};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::job::{manifest, private, table_spec};

const CSV: &str = "\
age,born,rate,price,maybe,sex,ward
+7,1984-03-17,1e-05,1.50,,f,a
20,1990-01-01,2.5,2.5,1,m,b
29,1990-01-02,-inf,9.75,2,f,a
20,1984-03-17,1e-05,1.50,3,f,b
";

/// For each column of [`CSV`] except the last, the labels of its four rows.
const LABELS: [[&str; 4]; 6] = [
    ["+7", "[20,29]", "[20,29]", "[20,29]"],
    ["1984-03-17", "[1990-01-01,1990-01-02]", "[1990-01-01,1990-01-02]", "*"],
    ["1e-05", "[-inf,2.5]", "[-inf,2.5]", "1e-05"],
    ["1.50", "[2.5,9.75]", "[2.5,9.75]", "1.50"],
    ["*", "[1,3]", "2", "[1,3]"],
    ["*", "*", "f", "f"],
];

fn load_table(folder: &Path, file: &str, names: &[&str], csv: CsvSpec) -> LoadedTable {
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let mut spec = table_spec(file, &names, csv);
    let last = names.len() - 1;
    spec.columns[..last].iter_mut().for_each(|column: &mut ColumnSpec| column.role = Role::Quasi);
    for column in &mut spec.columns {
        match column.name.as_str() {
            "age" => column.value_type = Some(ValueType::Integer),
            "rate" => column.value_type = Some(ValueType::Float),
            "sex" => column.hierarchy = Some(HierarchySource::Rule(Rule::Flat)),
            _ => {}
        }
    }
    load(folder, &Spec::new(1), &spec, &Silent).unwrap()
}

/// A release with these labels and an unchanged last column.
fn labelled(loaded: &LoadedTable, labels: &[[&str; 4]]) -> Verified<Release> {
    let cells = |source: usize| match labels.get(source) {
        Some(labels) => {
            let position = |label: &&str| labels.iter().position(|other| other == label).unwrap() as u32;
            Cells::Recoded { labels: Texts::from_iter(labels), ids: labels.iter().map(position).collect() }
        }
        None => Cells::Copied,
    };
    let columns = loaded.table.columns.iter().enumerate().map(|(source, column)| ReleasedColumn {
        name: column.name.clone(),
        source,
        cells: cells(source),
    });
    let table = ReleasedTable { name: "patient".to_owned(), rows: vec![0, 1, 2, 3], columns: columns.collect() };
    verify_release(Release { tables: vec![table] }, &loaded.table, &[Requirement::K(1)], SuppressionLimit::NOBODY)
        .unwrap()
}

fn write(
    release: &Verified<Release>,
    loaded: &LoadedTable,
    folder: &Path,
    format: Format,
) -> Result<Manifest, WriteError> {
    let options = WriteOptions { format: Some(format), existing: Existing::Refuse };
    let private = private(loaded, 1);
    let staged = stage(release, &private, folder, options, &Silent)?;
    let mut manifest = manifest(loaded, &staged.files()[0], staged.findings().k);
    manifest.tables[0].columns = private.column_manifests(&release.get().tables).remove(0);
    staged.publish(&manifest)?;
    Ok(manifest)
}

fn clinic(folder: &Path) -> LoadedTable {
    std::fs::write(folder.join("in.csv"), CSV).unwrap();
    let names: Vec<&str> = CSV.lines().next().unwrap().split(',').collect();
    load_table(folder, "in.csv", &names, CsvSpec::default()).released_as(CellForm::Bounds).unwrap()
}

fn parquet_types(path: &Path) -> Vec<(String, DataType)> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    reader.schema().fields().iter().map(|field| (field.name().clone(), field.data_type().clone())).collect()
}

#[test]
fn bounds_are_spelled_as_the_labels_they_stand_for() {
    let folder = tempfile::tempdir().unwrap();
    let loaded = clinic(folder.path());
    let mut bytes = Vec::new();
    write_csv_to(&mut bytes, &labelled(&loaded, &LABELS), &private(&loaded, 1)).unwrap();
    assert_eq!(
        String::from_utf8(bytes).unwrap(),
        "\
age_lo,age_hi,born_lo,born_hi,rate_lo,rate_hi,price_lo,price_hi,maybe,sex,ward
+7,+7,1984-03-17,1984-03-17,1e-05,1e-05,1.50,1.50,*,*,a
20,29,1990-01-01,1990-01-02,-inf,2.5,2.5,9.75,\"[1,3]\",*,b
20,29,1990-01-01,1990-01-02,-inf,2.5,2.5,9.75,2,f,a
20,29,,,1e-05,1e-05,1.50,1.50,\"[1,3]\",f,b
"
    );
}

#[test]
fn bounds_are_labels_again_when_they_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let loaded = clinic(folder.path());
    let release = labelled(&loaded, &LABELS);
    for format in Format::ALL {
        let out = folder.path().join(format.extension());
        write(&release, &loaded, &out, format).unwrap();
        let (_, tables) = read_release_of(std::slice::from_ref(&loaded.table), &out, &Silent).unwrap();
        let table = &tables[0];
        let names: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names, ["age", "born", "rate", "price", "maybe", "sex", "ward"]);
        // The types of Parquet and Arrow have one spelling for a value.
        let is_text = matches!(format, Format::Csv(_));
        for (column, labels) in table.columns.iter().zip(LABELS) {
            for (row, label) in labels.into_iter().enumerate() {
                let expected = match label {
                    "+7" if !is_text => "7",
                    "1e-05" if !is_text => "1e-5",
                    label => label,
                };
                assert_eq!(column.cell(row), Some(expected), "{} {}", column.name, format.extension());
            }
            assert_eq!(column.role, Role::Quasi);
        }
        let all: Vec<usize> = (0..6).collect();
        assert_eq!(verify_alone(table, &all, &[], RowsOf::PersonsEach).unwrap().classes, release.findings().classes);
        let none = kohort_verify::Suppressed { rows: 0, persons: 0 };
        verify_against(table, &loaded.table, &[], none, SuppressionLimit::NOBODY).unwrap();
    }
}

#[test]
fn bounds_of_csv_columns_get_a_type_in_parquet() {
    let folder = tempfile::tempdir().unwrap();
    let loaded = clinic(folder.path());
    let out = folder.path().join("out");
    write(&labelled(&loaded, &LABELS), &loaded, &out, Format::Parquet).unwrap();
    let types = parquet_types(&out.join("patient.parquet"));
    let type_of = |name: &str| types.iter().find(|(known, _)| known == name).unwrap().1.clone();
    for (column, data_type) in
        [("age", DataType::Int64), ("born", DataType::Date32), ("rate", DataType::Float64), ("price", DataType::Utf8)]
    {
        assert_eq!(type_of(&format!("{column}_lo")), data_type);
        assert_eq!(type_of(&format!("{column}_hi")), data_type);
    }
    assert!(matches!(type_of("maybe"), DataType::Dictionary(..)));
}

#[test]
fn bounds_of_arrow_columns_keep_their_type() {
    let folder = tempfile::tempdir().unwrap();
    let decimals = Decimal128Array::from(vec![150, 250, 975, 150]).with_precision_and_scale(10, 2).unwrap();
    let times = TimestampMillisecondArray::from(vec![0, 86_400_000, 1, 2]).with_timezone("Europe/Berlin");
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("small", Arc::new(UInt8Array::from(vec![7, 20, 255, 20]))),
        ("price", Arc::new(decimals)),
        ("seen", Arc::new(times)),
        ("ward", Arc::new(UInt8Array::from(vec![1, 2, 3, 4]))),
    ];
    let types: Vec<DataType> = columns[..3].iter().map(|(_, array)| array.data_type().clone()).collect();
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let file = File::create(folder.path().join("in.parquet")).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let names = ["small", "price", "seen", "ward"];
    let loaded = load_table(folder.path(), "in.parquet", &names, CsvSpec::default());
    let loaded = loaded.released_as(CellForm::Bounds).unwrap();
    let all_time = "[1970-01-01T00:00:00Z,1970-01-02T00:00:00Z]";
    let labels = [["[7,20]", "[7,20]", "255", "[7,20]"], ["[1.50,9.75]"; 4], [all_time; 4]];
    let out = folder.path().join("out");
    write(&labelled(&loaded, &labels), &loaded, &out, Format::Parquet).unwrap();
    let written = parquet_types(&out.join("patient.parquet"));
    assert_eq!(
        written[..6].iter().map(|(_, data_type)| data_type).collect::<Vec<_>>(),
        [&types[0], &types[0], &types[1], &types[1], &types[2], &types[2]]
    );
    let (_, tables) = read_release(&out, &Silent).unwrap();
    assert_eq!(tables[0].columns[1].cell(3), Some("[1.50,9.75]"));
    assert_eq!(tables[0].columns[2].cell(3), Some(all_time));
}

#[test]
fn decimal_commas_are_told_from_the_comma_between_bounds() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("in.csv"),
        "price;born;ward\n3;01.05.1990;a\n4,5;02.05.1990;a\n7;03.05.1990;a\n7;03.05.1990;b\n",
    )
    .unwrap();
    let date_format = Some("%d.%m.%Y".to_owned());
    let csv = CsvSpec { decimal: Some(','), date_format, ..CsvSpec::default() };
    let loaded = load_table(folder.path(), "in.csv", &["price", "born", "ward"], csv);
    let loaded = loaded.released_as(CellForm::Bounds).unwrap();
    // No released bound shows a comma, yet the private notation asks for a semicolon.
    let labels = [["[3;7]"; 4], ["[01.05.1990,03.05.1990]"; 4]];
    for format in Format::ALL {
        let out = folder.path().join(format.extension());
        write(&labelled(&loaded, &labels), &loaded, &out, format).unwrap();
        let (_, tables) = read_release_of(std::slice::from_ref(&loaded.table), &out, &Silent).unwrap();
        assert_eq!(tables[0].columns[0].cell(0), Some("[3;7]"));
        let none = kohort_verify::Suppressed { rows: 0, persons: 0 };
        verify_against(&tables[0], &loaded.table, &[Requirement::K(4)], none, SuppressionLimit::NOBODY).unwrap();
        read_release(&out, &Silent).unwrap();
    }
}

#[test]
fn a_bound_never_takes_the_name_of_another_column() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("in.csv"), "age,age_hi\n1,2\n").unwrap();
    let loaded = load_table(folder.path(), "in.csv", &["age", "age_hi"], CsvSpec::default());
    assert!(loaded.clone().released_as(CellForm::Labels).is_ok());
    let problem = loaded.released_as(CellForm::Bounds).unwrap_err();
    assert_eq!(problem.to_string(), "column 'age' can't be written as bounds: there is a column 'age_hi' already");
    assert_eq!(problem.class(), ErrorClass::Input);
}

#[test]
fn bounds_without_a_partner_are_no_release() {
    let folder = tempfile::tempdir().unwrap();
    let loaded = clinic(folder.path());
    let out = folder.path().join("out");
    write(&labelled(&loaded, &LABELS), &loaded, &out, loaded.origin.format).unwrap();
    let json = std::fs::read_to_string(out.join("manifest.json")).unwrap();
    for (role, instead) in [("quasi_hi", "quasi"), ("quasi_lo", "quasi"), ("quasi_lo", "quasi_hi")] {
        std::fs::write(out.join("manifest.json"), json.replacen(role, instead, 1)).unwrap();
        assert!(matches!(read_release(&out, &Silent), Err(ReleaseError::BadManifest { .. })), "{role} {instead}");
    }
}
