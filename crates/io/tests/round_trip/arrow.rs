//! Random values of every Arrow type through Parquet and Arrow, bit by bit.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{Int32Builder, ListBuilder};
use arrow_array::types::{
    Decimal256Type, DurationSecondType, Float16Type, Int8Type, IntervalMonthDayNanoType, Time64MicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType,
};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, Date64Array, Decimal128Array, DictionaryArray,
    FixedSizeBinaryArray, Float32Array, Float64Array, Int8Array, Int64Array, LargeStringArray, NullArray,
    PrimitiveArray, RecordBatch, StringArray, StringViewArray, StructArray, UInt64Array,
};
use arrow_buffer::i256;
use arrow_ipc::reader::FileReader;
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::{DataType, Field, Schema};
use kohort_io::{Existing, Format, ReadError, load, read_for_check};
use kohort_model::spec::CsvSpec;
use kohort_model::{Role, Silent, Spec, ValueType};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use proptest::prelude::*;

use crate::job::{load_file, release, table_spec, write};

/// Columns of every type, each cell made from its row's seed.
fn columns_of(seeds: &[Option<u64>]) -> Vec<(&'static str, ArrayRef)> {
    let texts = || seeds.iter().map(|seed| seed.map(|seed| format!("{:x}", seed % 50)));
    let bytes: Vec<Option<[u8; 8]>> = seeds.iter().map(|seed| seed.map(u64::to_be_bytes)).collect();
    let as_slices = || bytes.iter().map(|bytes| bytes.as_ref().map(|bytes| &bytes[..]));
    let signed = || seeds.iter().map(|seed| seed.map(|seed| seed as i64));
    let mut list = ListBuilder::new(Int32Builder::new());
    for seed in seeds {
        for item in 0..seed.unwrap_or(0) % 4 {
            list.values().append_option((item != 2).then_some(seed.unwrap_or(0) as i32));
        }
        list.append(seed.is_some());
    }
    let numbers: ArrayRef = Arc::new(signed().collect::<Int64Array>());
    let person = StructArray::from(vec![
        (Arc::new(Field::new("number", DataType::Int64, true)), numbers),
        (Arc::new(Field::new("text", DataType::Utf8, true)), Arc::new(texts().collect::<StringArray>()) as ArrayRef),
    ]);
    let labels: DictionaryArray<Int8Type> =
        seeds.iter().map(|seed| seed.map(|seed| ["a", "", "c"][seed as usize % 3])).collect();
    let berlin = signed().collect::<PrimitiveArray<TimestampMillisecondType>>().with_timezone("Europe/Berlin");
    vec![
        ("int8", Arc::new(signed().map(|seed| seed.map(|seed| seed as i8)).collect::<Int8Array>())),
        ("int64", Arc::new(signed().collect::<Int64Array>())),
        ("uint64", Arc::new(seeds.iter().copied().collect::<UInt64Array>())),
        ("float32", Arc::new(seeds.iter().map(|s| s.map(|s| f32::from_bits(s as u32))).collect::<Float32Array>())),
        ("float64", Arc::new(seeds.iter().map(|s| s.map(f64::from_bits)).collect::<Float64Array>())),
        ("float16", Arc::new(float16(seeds))),
        ("boolean", Arc::new(seeds.iter().map(|s| s.map(|s| s % 2 == 0)).collect::<BooleanArray>())),
        ("decimal", Arc::new(decimals(seeds))),
        ("decimal256", Arc::new(decimals256(seeds))),
        ("date32", Arc::new(signed().map(|seed| seed.map(|seed| seed as i32)).collect::<Date32Array>())),
        ("date64", Arc::new(signed().collect::<Date64Array>())),
        ("nanoseconds", Arc::new(signed().collect::<PrimitiveArray<TimestampNanosecondType>>())),
        ("berlin", Arc::new(berlin)),
        (
            "time",
            Arc::new(
                signed()
                    .map(|s| s.map(|s| s.rem_euclid(86_400_000_000)))
                    .collect::<PrimitiveArray<Time64MicrosecondType>>(),
            ),
        ),
        ("duration", Arc::new(signed().collect::<PrimitiveArray<DurationSecondType>>())),
        ("text", Arc::new(texts().collect::<StringArray>())),
        ("large_text", Arc::new(texts().collect::<LargeStringArray>())),
        ("text_view", Arc::new(texts().collect::<StringViewArray>())),
        ("binary", Arc::new(as_slices().collect::<BinaryArray>())),
        ("fixed_binary", Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(as_slices(), 8).unwrap())),
        ("list", Arc::new(list.finish())),
        ("struct", Arc::new(person)),
        ("labels", Arc::new(labels)),
        ("nothing", Arc::new(NullArray::new(seeds.len()))),
    ]
}

fn float16(seeds: &[Option<u64>]) -> PrimitiveArray<Float16Type> {
    let bits: Vec<u16> = seeds.iter().map(|seed| seed.unwrap_or(0) as u16).collect();
    let data = arrow_data::ArrayData::builder(DataType::Float16)
        .len(bits.len())
        .add_buffer(arrow_buffer::Buffer::from_vec(bits))
        .nulls(Some(seeds.iter().map(Option::is_some).collect::<arrow_buffer::BooleanBuffer>().into()))
        .build()
        .unwrap();
    PrimitiveArray::from(data)
}

fn decimals(seeds: &[Option<u64>]) -> Decimal128Array {
    let cells = seeds.iter().map(|seed| seed.map(|seed| i128::from(seed as i64) * 10_000_000_019));
    cells.collect::<Decimal128Array>().with_precision_and_scale(38, 12).unwrap()
}

fn decimals256(seeds: &[Option<u64>]) -> PrimitiveArray<Decimal256Type> {
    let cells = seeds.iter().map(|seed| seed.map(|seed| i256::from_i128(i128::from(seed as i64))));
    cells.collect::<PrimitiveArray<Decimal256Type>>().with_precision_and_scale(60, 3).unwrap()
}

/// Arrow's intervals are known to its IPC formats only.
fn intervals(seeds: &[Option<u64>]) -> ArrayRef {
    let interval = |seed: u64| IntervalMonthDayNanoType::make_value(seed as i32, -5, seed as i64);
    Arc::new(seeds.iter().map(|seed| seed.map(interval)).collect::<PrimitiveArray<IntervalMonthDayNanoType>>())
}

fn batch_of(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let n_rows = columns[0].1.len();
    let quasi: ArrayRef = Arc::new(Int64Array::from_iter_values((0..n_rows).map(|row| row as i64)));
    let columns: Vec<(&str, ArrayRef)> = [vec![("quasi", quasi)], columns].concat();
    let fields: Vec<Field> =
        columns.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), true)).collect();
    let secret = [("pandas".to_owned(), "names of people".to_owned())].into();
    let schema = Schema::new(fields).with_metadata(secret);
    RecordBatch::try_new(Arc::new(schema), columns.into_iter().map(|(_, array)| array).collect()).unwrap()
}

/// Writes a batch in two halves, so that dictionaries and row groups are met more than once.
fn write_batch(batch: &RecordBatch, path: &Path, format: Format) {
    let file = File::create(path).unwrap();
    let half = batch.num_rows() / 2;
    let halves = [batch.slice(0, half), batch.slice(half, batch.num_rows() - half)];
    match format {
        Format::Parquet => {
            let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
            for half in &halves {
                writer.write(half).unwrap();
                writer.flush().unwrap();
            }
            writer.close().unwrap();
        }
        Format::ArrowFile => {
            let mut writer = FileWriter::try_new(file, &batch.schema()).unwrap();
            halves.iter().for_each(|half| writer.write(half).unwrap());
            writer.finish().unwrap();
        }
        Format::ArrowStream => {
            let mut writer = StreamWriter::try_new(file, &batch.schema()).unwrap();
            halves.iter().for_each(|half| writer.write(half).unwrap());
            writer.finish().unwrap();
        }
        Format::Csv(_) => unreachable!(),
    }
}

fn read_batch(path: &Path, format: Format) -> RecordBatch {
    let file = File::open(path).unwrap();
    match format {
        Format::Parquet => {
            ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap().next().unwrap().unwrap()
        }
        Format::ArrowFile => FileReader::try_new(file, None).unwrap().next().unwrap().unwrap(),
        Format::ArrowStream => arrow_ipc::reader::StreamReader::try_new(file, None).unwrap().next().unwrap().unwrap(),
        Format::Csv(_) => unreachable!(),
    }
}

fn any_seed() -> impl Strategy<Value = Option<u64>> {
    let edges = [0, 1, 1 << 53, (1 << 53) + 1, u64::MAX, i64::MIN as u64, 0x7ff8_0000_0000_0001, 0xfff0_0000_0000_0000];
    prop::option::weighted(0.8, prop_oneof![any::<u64>(), 0u64..100, prop::sample::select(edges.to_vec())])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn values_of_every_type_survive_bit_by_bit(
        seeds in prop::collection::vec(any_seed(), 1..40),
        format in prop::sample::select(vec![Format::Parquet, Format::ArrowFile, Format::ArrowStream]),
    ) {
        let mut columns = columns_of(&seeds);
        if format != Format::Parquet {
            columns.push(("interval", intervals(&seeds)));
        }
        let private = batch_of(columns);
        let folder = tempfile::tempdir().unwrap();
        let file = format!("in.{}", format.extension());
        write_batch(&private, &folder.path().join(&file), format);
        let names: Vec<String> = private.schema().fields().iter().map(|field| field.name().clone()).collect();
        let loaded = load_file(folder.path(), &file, &names, CsvSpec::default());
        let out = folder.path().join("out");
        let rows = (0..seeds.len() as u32).collect();
        write(&release(&loaded, rows), &loaded, &out, None, Existing::Refuse).unwrap();

        let public = read_batch(&out.join(format!("patient.{}", format.extension())), format);
        prop_assert_eq!(public.num_rows(), private.num_rows());
        prop_assert!(!public.schema().metadata().contains_key("pandas"));
        for (position, name) in names.iter().enumerate().skip(1) {
            prop_assert_eq!(public.schema_ref().field(position), private.schema_ref().field(position));
            let (public, private) = (public.column(position), private.column(position));
            // Floats are equal where their bits are, and dictionaries where their values are.
            if let DataType::Dictionary(..) = private.data_type() {
                let cells = |array: &ArrayRef| -> Vec<Option<String>> {
                    let typed = array.as_any().downcast_ref::<DictionaryArray<Int8Type>>().unwrap();
                    let typed = typed.downcast_dict::<StringArray>().unwrap();
                    typed.into_iter().map(|cell| cell.map(str::to_owned)).collect()
                };
                prop_assert_eq!(cells(public), cells(private));
            } else {
                let same_bits = public.to_data() == private.to_data() || is_same_float(public, private);
                prop_assert!(same_bits, "{}", name);
            }
        }
    }
}

/// Compares bits, because no NaN equals another when arrays are compared.
fn is_same_float(a: &ArrayRef, b: &ArrayRef) -> bool {
    let bits = |array: &ArrayRef| match array.data_type() {
        DataType::Float16 | DataType::Float32 | DataType::Float64 => {
            let data = array.to_data();
            let width = data.data_type().primitive_width().unwrap();
            let start = data.offset() * width;
            let bytes = data.buffers()[0].as_slice()[start..start + data.len() * width].to_vec();
            let cells = bytes.chunks(width).map(<[u8]>::to_vec).enumerate();
            Some(cells.map(|(row, cell)| data.is_valid(row).then_some(cell)).collect::<Vec<_>>())
        }
        _ => None,
    };
    bits(a).is_some() && bits(a) == bits(b)
}

#[test]
fn typed_columns_are_typed_and_exotic_ones_are_refused_as_quasi() {
    let folder = tempfile::tempdir().unwrap();
    let batch = batch_of(vec![
        ("float", Arc::new(Float64Array::from(vec![1.0, 2.0]))),
        ("birth", Arc::new(Date32Array::from(vec![-1, 0]))),
        ("zip", Arc::new(StringArray::from(vec!["01234", "88512"]))),
        ("blob", Arc::new(BinaryArray::from(vec![&b"a"[..], b"b"]))),
        ("late", Arc::new(Date32Array::from(vec![2_932_897, 0]))),
    ]);
    write_batch(&batch, &folder.path().join("in.parquet"), Format::Parquet);
    let names: Vec<String> = batch.schema().fields().iter().map(|field| field.name().clone()).collect();
    let mut table = table_spec("in.parquet", &names, CsvSpec::default());
    table.columns.iter_mut().for_each(|column| column.role = Role::Quasi);
    let problems = load(folder.path(), &Spec::new(1), &table, &Silent).unwrap_err();
    let messages: Vec<String> = problems.problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        messages,
        ["column 'blob' of type Binary can't be quasi", "column 'late': 1 value is no date, in row 1"]
    );
    assert!(problems.problems.iter().all(|problem| problem.hint().is_some()));
    table.columns.truncate(4);
    table.columns.extend(["blob", "late"].map(|name| kohort_model::spec::ColumnSpec {
        name: name.to_owned(),
        role: Role::Drop,
        references: None,
        value_type: None,
        hierarchy: None,
        transform: kohort_model::Transform::default(),
        requirements: Vec::new(),
        sensitive_to: Vec::new(),
        weight: 1.0,
    }));
    let loaded = load(folder.path(), &Spec::new(1), &table, &Silent).unwrap();
    let types: Vec<ValueType> = loaded.table.columns.iter().map(|column| column.value_type).collect();
    assert_eq!(types, [ValueType::Integer, ValueType::Float, ValueType::Date, ValueType::Text]);
}

#[test]
fn values_without_a_text_are_not_written_to_csv() {
    let folder = tempfile::tempdir().unwrap();
    let batch = batch_of(vec![("blob", Arc::new(BinaryArray::from(vec![&b"a"[..], b"b"])))]);
    write_batch(&batch, &folder.path().join("in.arrow"), Format::ArrowFile);
    let names = ["quasi".to_owned(), "blob".to_owned()];
    let loaded = load_file(folder.path(), "in.arrow", &names, CsvSpec::default());
    let out = folder.path().join("out");
    let csv = Some(Format::Csv(kohort_io::Compression::None));
    let problem = write(&release(&loaded, vec![0, 1]), &loaded, &out, csv, Existing::Refuse).unwrap_err();
    assert_eq!(problem.to_string(), "column 'blob' of type Binary can't be written to a CSV file");
    assert!(!out.exists());
}

#[test]
fn files_that_are_not_what_their_name_says_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["in.parquet", "in.arrow", "in.arrows"] {
        let path = folder.path().join(name);
        std::fs::write(&path, "age\n23\n").unwrap();
        let problems = read_for_check(&path, &kohort_io::CheckOptions::default(), &Silent).unwrap_err();
        assert!(matches!(problems.problems[..], [ReadError::Damaged { .. }]), "{problems}");
    }
}

#[test]
fn a_dictionary_too_small_for_its_values_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    // Two batches, each with a dictionary of its own that is full.
    let labels = |first: u32| -> ArrayRef {
        let texts: Vec<String> = (first..first + 128).map(|label| label.to_string()).collect();
        Arc::new(texts.iter().map(String::as_str).collect::<DictionaryArray<Int8Type>>())
    };
    let batches = [batch_of(vec![("label", labels(0))]), batch_of(vec![("label", labels(100))])];
    let file = File::create(folder.path().join("in.arrows")).unwrap();
    let mut writer = StreamWriter::try_new(file, &batches[0].schema()).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap();
    let names = ["quasi".to_owned(), "label".to_owned()];
    let loaded = load_file(folder.path(), "in.arrows", &names, CsvSpec::default());
    assert_eq!(loaded.table.columns[1].texts.len(), 228);
    let out = folder.path().join("out");
    let release = release(&loaded, (0..256).collect());
    let problem = write(&release, &loaded, &out, None, Existing::Refuse).unwrap_err();
    assert!(problem.to_string().starts_with("column 'label' has more distinct values than its type"));
    write(&release, &loaded, &out, Some(Format::Csv(kohort_io::Compression::None)), Existing::Refuse).unwrap();
}

#[test]
fn many_labels_survive_pages_and_batches() {
    let folder = tempfile::tempdir().unwrap();
    let n_rows = 150_000u64;
    let seeds: Vec<Option<u64>> = (0..n_rows).map(|row| (row % 7 != 0).then_some(row * 7_919)).collect();
    let texts = seeds.iter().map(|seed| seed.map(|seed| format!("label number {seed}"))).collect::<StringArray>();
    let batch = batch_of(vec![("text", Arc::new(texts)), ("decimal", Arc::new(decimals(&seeds)))]);
    write_batch(&batch, &folder.path().join("in.parquet"), Format::Parquet);
    let names = ["quasi", "text", "decimal"].map(str::to_owned);
    let loaded = load_file(folder.path(), "in.parquet", &names, CsvSpec::default());
    // Every value is its own label, so that the dictionary outgrows the size up to which Parquet keeps one.
    let mut release = release(&loaded, (0..n_rows as u32).collect()).into_inner();
    release.tables[0].columns[0].cells = kohort_model::Cells::Recoded {
        labels: loaded.table.columns[0].texts.clone(),
        ids: loaded.table.columns[0].ids.clone(),
    };
    let release = kohort_verify::verify_release(
        release,
        &loaded.table,
        &[kohort_model::Requirement::K(1)],
        kohort_verify::SuppressionLimit::NOBODY,
    )
    .unwrap();
    for format in Format::ALL {
        let out = folder.path().join(format.extension());
        write(&release, &loaded, &out, Some(format), Existing::Refuse).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_damaged_file_is_refused_or_read_but_never_a_panic(
        format in prop::sample::select(vec![Format::Parquet, Format::ArrowFile, Format::ArrowStream]),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(format!("in.{}", format.extension()));
        write_batch(&batch_of(columns_of(&[Some(1), None, Some(1 << 60)])), &path, format);
        let mut bytes = std::fs::read(&path).unwrap();
        if format == Format::Parquet {
            for (place, byte) in damage {
                let place = place.index(bytes.len());
                bytes[place] = byte;
            }
        } else {
            // Arrow's reader believes the lengths it finds, and may ask for more memory than there is.
            bytes.truncate(cut.index(bytes.len()));
        }
        std::fs::write(&path, bytes).unwrap();
        let _ = read_for_check(&path, &kohort_io::CheckOptions::default(), &Silent);
    }
}

#[test]
fn the_manifest_names_the_true_type_of_every_column() {
    let private = batch_of(columns_of(&[Some(1), None, Some(0x4009_21fb_5444_2d18)]));
    let folder = tempfile::tempdir().unwrap();
    write_batch(&private, &folder.path().join("in.parquet"), Format::Parquet);
    let names: Vec<String> = private.schema().fields().iter().map(|field| field.name().clone()).collect();
    let loaded = load_file(folder.path(), "in.parquet", &names, CsvSpec::default());
    let out = folder.path().join("out");
    let manifest = write(&release(&loaded, vec![0, 1, 2]), &loaded, &out, None, Existing::Refuse).unwrap();
    let types = &manifest.tables[0].columns;
    for (value_type, columns) in [
        ("integer", &["int8", "int64", "uint64"][..]),
        ("float", &["float32", "float64"]),
        ("decimal", &["decimal"]),
        ("boolean", &["boolean"]),
        ("date", &["date32", "date64"]),
        ("timestamp", &["nanoseconds", "berlin"]),
        ("text", &["labels", "nothing"]),
        ("other", &["list", "struct", "binary", "decimal256", "duration"]),
    ] {
        columns.iter().for_each(|name| assert_eq!(types[*name].value_type, value_type, "{name}"));
    }
    assert_eq!(manifest.tables[0].csv, None);
    let (_, tables) = kohort_io::read_release(&out, &Silent).unwrap();
    assert_eq!(tables[0].column("float64").unwrap().value_type, ValueType::Float);
    assert_eq!(tables[0].column("list").unwrap().value_type, ValueType::Text);
}

#[test]
fn a_dictionary_does_not_hold_what_rows_that_were_left_out_say() {
    let wards: DictionaryArray<Int8Type> =
        ["north", "gone-with-the-row", "south", "north"].into_iter().map(Some).collect();
    let private = batch_of(vec![("ward", Arc::new(wards) as ArrayRef)]);
    for format in [Format::ArrowFile, Format::ArrowStream] {
        let folder = tempfile::tempdir().unwrap();
        let file = format!("in.{}", format.extension());
        write_batch(&private, &folder.path().join(&file), format);
        let names = ["quasi".to_owned(), "ward".to_owned()];
        let loaded = load_file(folder.path(), &file, &names, CsvSpec::default());
        let out = folder.path().join("out");
        write(&release(&loaded, vec![3, 0, 2]), &loaded, &out, None, Existing::Refuse).unwrap();
        let bytes = std::fs::read(out.join(format!("patient.{}", format.extension()))).unwrap();
        let holds = |word: &[u8]| bytes.windows(word.len()).any(|window| window == word);
        assert!(!holds(b"gone-with-the-row"), "{format:?}");
        let public = read_batch(&out.join(format!("patient.{}", format.extension())), format);
        let wards = public.column(1).as_any().downcast_ref::<DictionaryArray<Int8Type>>().unwrap();
        let wards: Vec<Option<&str>> = wards.downcast_dict::<StringArray>().unwrap().into_iter().collect();
        assert_eq!(wards, [Some("north"), Some("north"), Some("south")]);
    }
}
