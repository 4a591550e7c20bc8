//! The rows of large benchmarks: `census_like` of the data folder, repeated with noise if more rows are needed.
//!
//! A repetition moves each age by up to 2 years and each ZIP code by up to 300, with a seeded generator. So repeated
//! rows are seldom equal, and folding hardly shrinks the table.

use std::collections::HashMap;
use std::error::Error;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray};
use kohort_model::{Column, NULL, Role, Table, Texts, ValueType};
use kohort_testkit::random::Random;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::{ArrowWriter, ProjectionMask};

/// The quasi columns, in the order in which rows are sorted. ZIP codes count as numbers.
pub(crate) const QUASI: [&str; 6] = ["sex", "age", "race", "zip", "marital", "edu"];
/// A column that is released as it is.
pub(crate) const SENSITIVE: &str = "famincome";
/// A column with a different value in every row.
pub(crate) const IDENTIFIER: &str = "person_id";

const WORD_COLUMNS: [&str; 5] = ["sex", "race", "marital", "edu", SENSITIVE];
const AGES: (i32, i32) = (15, 85);
const ZIPS: (i32, i32) = (501, 99_950);
const BATCH_ROWS: usize = 1 << 18;

/// Persons, column by column.
pub(crate) struct Census {
    words: Vec<Words>,
    ages: Vec<i32>,
    zips: Vec<i32>,
}

/// A column of few different words.
struct Words {
    texts: Texts,
    ids: Vec<u32>,
}

impl Census {
    /// Reads this many persons.
    pub(crate) fn read(data: &Path, n_rows: usize) -> Result<Census, Box<dyn Error>> {
        let census = Census::read_file(&data.join("census_like/persons.parquet"), n_rows)?;
        Ok(census.rows(0, n_rows, &mut Random::new(1)))
    }

    /// Writes this many persons, of which only some are in memory at a time. They are those that [`Census::read`] reads.
    pub(crate) fn write_many(data: &Path, n_rows: usize, path: &Path) -> Result<(), Box<dyn Error>> {
        let census = Census::read_file(&data.join("census_like/persons.parquet"), n_rows)?;
        let mut random = Random::new(1);
        let mut file = PersonsFile::new(path);
        for first in (0..n_rows).step_by(BATCH_ROWS) {
            let rows = census.rows(first, (first + BATCH_ROWS).min(n_rows), &mut random);
            file.write(&rows.batch(first, 0, rows.ages.len())?)?;
        }
        file.close()
    }

    /// Some of the persons of a table without end: these, then these again and again with noise. Repeated persons must be asked
    /// for in their order.
    fn rows(&self, first: usize, end: usize, random: &mut Random) -> Census {
        let n_real = self.ages.len();
        let moved = |value: i32, row: usize, reach: i32, (least, most): (i32, i32), random: &mut Random| {
            if row < n_real { value } else { (value + noise(random, reach)).clamp(least, most) }
        };
        let (mut ages, mut zips) = (Vec::with_capacity(end - first), Vec::with_capacity(end - first));
        for row in first..end {
            ages.push(moved(self.ages[row % n_real], row, 2, AGES, random));
            zips.push(moved(self.zips[row % n_real], row, 300, ZIPS, random));
        }
        let words = |words: &Words| Words {
            texts: words.texts.clone(),
            ids: (first..end).map(|row| words.ids[row % n_real]).collect(),
        };
        Census { words: self.words.iter().map(words).collect(), ages, zips }
    }

    /// Reads the first persons of the file: at least `n_rows` if the file has as many, and perhaps a few more.
    fn read_file(path: &Path, n_rows: usize) -> Result<Census, Box<dyn Error>> {
        let file = File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let builder = ParquetRecordBatchReaderBuilder::try_new(file)?;
        let wanted = WORD_COLUMNS.into_iter().chain(["age", "zip"]);
        let mask = ProjectionMask::columns(builder.parquet_schema(), wanted);
        let mut census = Census { words: Vec::new(), ages: Vec::new(), zips: Vec::new() };
        let mut dictionaries = vec![HashMap::new(); WORD_COLUMNS.len()];
        census.words.resize_with(WORD_COLUMNS.len(), || Words { texts: Texts::new(), ids: Vec::new() });
        for batch in builder.with_projection(mask).with_batch_size(BATCH_ROWS).build()? {
            if census.ages.len() >= n_rows {
                break;
            }
            let batch = batch?;
            let column = |name: &str| batch.column_by_name(name).ok_or_else(|| format!("no column '{name}'"));
            census.ages.extend_from_slice(column("age")?.as_primitive::<Int32Type>().values());
            for zip in column("zip")?.as_string::<i64>() {
                census.zips.push(zip.ok_or("a ZIP code is missing")?.parse()?);
            }
            for ((name, words), dictionary) in WORD_COLUMNS.iter().zip(&mut census.words).zip(&mut dictionaries) {
                for word in column(name)?.as_string::<i64>() {
                    words.ids.push(match word {
                        None => NULL,
                        Some(word) => match dictionary.get(word) {
                            Some(&id) => id,
                            None => *dictionary.entry(word.to_owned()).or_insert(words.texts.push(word)),
                        },
                    });
                }
            }
        }
        Ok(census)
    }

    /// The quasi columns as a table in memory.
    pub(crate) fn table(&self) -> Table {
        let columns = QUASI.map(|name| match name {
            "age" => numbers(name, &self.ages),
            "zip" => numbers(name, &self.zips),
            _ => {
                let words = self.words_of(name);
                let mut column = Column::from_cells(name, Role::Quasi, []);
                (column.texts, column.ids) = (words.texts.clone(), words.ids.clone());
                column
            }
        });
        Table { name: "persons".to_owned(), columns: columns.into(), n_rows: self.ages.len(), person: None }
    }

    /// Writes an identifier, the quasi columns and the sensitive one.
    pub(crate) fn write_parquet(&self, path: &Path) -> Result<(), Box<dyn Error>> {
        let mut file = PersonsFile::new(path);
        for first in (0..self.ages.len()).step_by(BATCH_ROWS) {
            file.write(&self.batch(first, first, (first + BATCH_ROWS).min(self.ages.len()))?)?;
        }
        file.close()
    }

    /// Some of these persons, whose identifiers begin after `n_before`.
    fn batch(&self, n_before: usize, first: usize, end: usize) -> Result<RecordBatch, Box<dyn Error>> {
        let ids: Int64Array = (n_before as i64 + 1..=(n_before + end - first) as i64).collect();
        let mut columns: Vec<(&str, ArrayRef)> = vec![(IDENTIFIER, Arc::new(ids))];
        for name in QUASI.into_iter().chain([SENSITIVE]) {
            columns.push((
                name,
                match name {
                    "age" => Arc::new(Int32Array::from_iter_values(self.ages[first..end].iter().copied())),
                    "zip" => Arc::new(Int32Array::from_iter_values(self.zips[first..end].iter().copied())),
                    _ => {
                        let Words { texts, ids } = self.words_of(name);
                        let words = ids[first..end].iter().map(|&id| (id != NULL).then(|| texts.get(id)));
                        Arc::new(words.collect::<StringArray>())
                    }
                },
            ));
        }
        Ok(RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, column)| (name, column, true)))?)
    }

    fn words_of(&self, name: &str) -> &Words {
        let position = WORD_COLUMNS.iter().position(|&column| column == name).expect("it is a column of words");
        &self.words[position]
    }
}

/// A Parquet file of persons that is being written.
struct PersonsFile<'p> {
    path: &'p Path,
    writer: Option<ArrowWriter<File>>,
}

impl<'p> PersonsFile<'p> {
    fn new(path: &'p Path) -> Self {
        PersonsFile { path, writer: None }
    }

    fn write(&mut self, batch: &RecordBatch) -> Result<(), Box<dyn Error>> {
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => self.writer.insert(ArrowWriter::try_new(File::create(self.path)?, batch.schema(), None)?),
        };
        Ok(writer.write(batch)?)
    }

    fn close(self) -> Result<(), Box<dyn Error>> {
        self.writer.ok_or("there are no rows to write")?.close()?;
        Ok(())
    }
}

fn numbers(name: &str, values: &[i32]) -> Column {
    let least = values.iter().copied().min().unwrap_or(0);
    let largest = values.iter().copied().max().unwrap_or(0);
    let mut occurs = vec![false; (largest - least + 1) as usize];
    values.iter().for_each(|value| occurs[(value - least) as usize] = true);
    let mut column = Column::from_cells(name, Role::Quasi, []).typed(ValueType::Integer);
    let id_of_value: Vec<u32> = (least..=largest)
        .zip(occurs)
        .map(|(value, occurs)| if occurs { column.texts.push(&value.to_string()) } else { NULL })
        .collect();
    column.ids = values.iter().map(|value| id_of_value[(value - least) as usize]).collect();
    column
}

/// A whole number from `-reach` to `reach`.
fn noise(random: &mut Random, reach: i32) -> i32 {
    (random.number() % (2 * reach as u64 + 1)) as i32 - reach
}
