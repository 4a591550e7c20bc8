//! Random texts through CSV, plain and compressed, and through Parquet and Arrow as text.

use std::fmt::Write as _;

use kohort_io::{Compression, Existing, Format, read_release};
use kohort_model::Silent;
use kohort_model::spec::CsvSpec;
use proptest::prelude::*;

use crate::job::{load_file, release, write};

/// Cells with everything that has ever broken a CSV file.
fn any_cell() -> impl Strategy<Value = Option<String>> {
    let special = [
        "",
        "NA",
        "null",
        "\"",
        "\"\"",
        ",",
        ";",
        "\t",
        "|",
        "\n",
        "\r\n",
        "\r",
        " padded ",
        "007",
        "9007199254740993",
        "1.50",
        "1969-12-31",
        "-0",
        "[20,29]",
        "*",
        "\u{feff}x",
        "\u{e4}\u{1f600}",
        "a\0b",
        "'",
        "\\",
    ];
    prop::option::weighted(
        0.8,
        prop_oneof![
            prop::sample::select(special.to_vec()).prop_map(str::to_owned),
            "[a,;\"\n\r\t |\u{e4}]{0,6}",
            any::<i64>().prop_map(|number| number.to_string()),
        ],
    )
}

fn any_format() -> impl Strategy<Value = Format> {
    prop::sample::select(Format::ALL.to_vec())
}

/// Every text in quotes, nulls bare.
fn spell(names: &[String], rows: &[Vec<Option<String>>], separator: char) -> String {
    let quote = |text: &String| format!("\"{}\"", text.replace('"', "\"\""));
    let mut text = names.iter().map(quote).collect::<Vec<_>>().join(&separator.to_string());
    text.push('\n');
    for row in rows {
        let cells: Vec<String> = row.iter().map(|cell| cell.as_ref().map_or(String::new(), quote)).collect();
        writeln!(text, "{}", cells.join(&separator.to_string())).unwrap();
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn texts_and_nulls_survive_every_format(
        rows in prop::collection::vec(prop::collection::vec(any_cell(), 3), 1..20),
        names in prop::collection::btree_set("[a,\"\n \u{e4};]{1,3}", 3),
        separator in prop::sample::select(vec![',', ';', '\t', '|', '^']),
        null_words in prop::option::of(Just(vec![String::new(), "NA".to_owned()])),
        format in any_format(),
    ) {
        // A quasi column is put first, because a cell of a quasi column must not look like a label.
        let rows: Vec<Vec<Option<String>>> = rows
            .into_iter()
            .map(|row| [vec![Some("20".to_owned())], row].concat())
            .collect();
        let names: Vec<String> = std::iter::once("age".to_owned()).chain(names).collect();
        prop_assume!(names[1..].iter().all(|name| name != "age"));
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("in.csv"), spell(&names, &rows, separator)).unwrap();
        let csv = CsvSpec { separator: Some(separator), null: null_words, ..CsvSpec::default() };
        let loaded = load_file(folder.path(), "in.csv", &names, csv);

        let order: Vec<u32> = (0..rows.len() as u32).rev().collect();
        let out = folder.path().join("out");
        write(&release(&loaded, order), &loaded, &out, Some(format), Existing::Refuse).unwrap();
        let (_, tables) = read_release(&out, &Silent).unwrap();
        for (column, name) in names.iter().enumerate() {
            let read = tables[0].column(name).unwrap();
            for (row, cells) in rows.iter().rev().enumerate() {
                let expected = if column == 0 { Some("*") } else { cells[column].as_deref() };
                prop_assert_eq!(read.cell(row), expected);
            }
        }
    }
}

#[test]
fn a_release_of_a_csv_file_is_spelled_like_it() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("in.csv"), "age;note\r\n23;NA\r\n42;\"NA\"\r\n;\"\"\r\n7;a\r\n").unwrap();
    let names = ["age".to_owned(), "note".to_owned()];
    let csv = CsvSpec { null: Some(vec![String::new(), "NA".to_owned()]), ..CsvSpec::default() };
    let loaded = load_file(folder.path(), "in.csv", &names, csv);
    let out = folder.path().join("out");
    write(&release(&loaded, vec![3, 2, 1, 0]), &loaded, &out, None, Existing::Refuse).unwrap();
    assert_eq!(std::fs::read_to_string(out.join("patient.csv")).unwrap(), "age;note\n*;a\n*;\"\"\n*;\"NA\"\n*;\n");
    let out = folder.path().join("zipped");
    let format = Some(Format::Csv(Compression::Gzip));
    write(&release(&loaded, vec![0]), &loaded, &out, format, Existing::Refuse).unwrap();
    assert!(std::fs::read(out.join("patient.csv.gz")).unwrap().starts_with(&[0x1f, 0x8b]));
}
