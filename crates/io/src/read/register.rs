//! [`load_registers`]: reads public registers, and finds out who is in them and in the private table.
//!
//! # Guarantee
//! Only the key and the quasi columns of a register are read, and only ids and a number for the person are kept of each row.
//! A row counts only if it has all quasi values, in the types of the private columns, and each has a place in the hierarchy
//! of its column. Hierarchies that are made by rule are made again, from the values of table and registers. No person counts
//! twice.
//!
//! | a person of the registers | becomes |
//! | --- | --- |
//! | is in several registers, or several times in one, always with the same values | one person |
//! | the same, with different values | not used, and counted |
//! | is in the private table with the same values | the private row |
//! | is in the private table with other values | the private row, and beside it what the register says |
//! | anybody else | a register row |
//!
//! Values and keys are compared by their meaning, see [`values`] and `persons`. Without a key, a register row and a private
//! row that are equal in all quasi values are taken for the same person, one to one. If there are several registers, the one
//! with most persons of these values counts.
//!
//! # Paper   `[SMP10]` section 3.1

mod united;
mod values;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use kohort_model::register::{SENSITIVE_GROUP, SENSITIVE_TABLE};
use kohort_model::spec::{CsvSpec, HierarchySource, RegisterMissing, RegisterSpec, TableSpec};
use kohort_model::{Column, JoinedRegister, NULL, Notation, Progress, Respelled, Role, Spec, Table, Texts};

use super::columns::FileColumns;
use super::error::{MissingValue, ReadError, ReadErrors, RowNumbers};
use super::hierarchies::Hierarchies;
use super::load::{LoadedTable, looks_like_a_label};
use super::persons::{KnownPersons, NOBODY, NamedPerson};
use super::roles::check_names;
use super::tables::{LoadError, OfTable};
use super::{Keep, Kept, RawColumn, Sources};
use united::{RegisterRows, United};
use values::{ColumnValues, placed_ids};

/// Registers, joined with the private table.
#[derive(Clone, Debug)]
pub struct LoadedRegisters {
    /// The private table's rows and those of the registers.
    pub joined: JoinedRegister,
    /// Each register, by name.
    pub registers: Vec<LoadedRegister>,
    /// How persons of the private table were found in the registers.
    pub by: JoinedBy,
    /// Persons about whom the registers contradict each other, or one register itself.
    pub contradicting: u64,
    /// Registers as they were when earlier releases were made.
    pub earlier: Vec<EarlierRegister>,
}

/// A register as it was when an earlier release was made.
#[derive(Clone, Debug)]
pub struct EarlierRegister {
    /// The digest of the register's file.
    pub sha256: String,
    /// For each person, found by key, the joined row that shows how this register described them; [`NULL`] if it did not.
    /// First come the persons of the join, then people of earlier registers who are in neither table now.
    pub places: Vec<u32>,
}

/// How persons were found in the private table and the registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinedBy {
    /// Persons were found by their key.
    Key,
    /// Persons were found by their quasi values, one to one. Nothing shows whether two are really the same person.
    Values,
}

/// One register as it was read.
#[derive(Clone, Debug)]
pub struct LoadedRegister {
    /// The name of the register in the spec.
    pub name: String,
    /// The day that the register describes, as the spec says.
    pub date: Option<String>,
    /// The digest of the register's file.
    pub sha256: String,
    /// The number of rows.
    pub rows: u64,
    /// Rows that lack a quasi value or a key, and are not used.
    pub incomplete: u64,
    /// The register's persons among the joined rows, except those of the private table and of registers before it.
    pub joined: Range<u32>,
}

/// Reads the registers of a spec and joins them with its table, whose hierarchies then have a place for the values of both.
/// `sources` is a folder, or a folder and tables in memory.
///
/// # Errors
/// Every problem of every register, and rows whose persons can't be told apart.
pub fn load_registers<'s>(
    sources: impl Into<Sources<'s>>,
    spec: &Spec,
    original: &mut LoadedTable,
    progress: &dyn Progress,
) -> Result<LoadedRegisters, LoadError> {
    let (sources, table_spec) = (sources.into(), &spec.tables[0]);
    let by_key = spec.registers.values().any(|register| register.key.is_some());
    let by = if by_key { JoinedBy::Key } else { JoinedBy::Values };
    check_private(&original.table)
        .map_err(|problems| LoadError::Files(vec![ReadErrors { file: sources.place(&table_spec.file), problems }]))?;
    let nobody = Column::from_cells("", Role::Key, []);
    let person_column = original.table.person_column().filter(|_| by_key).unwrap_or(&nobody);
    let persons = KnownPersons::new(person_column).map_err(|rows| {
        let problems = vec![ReadError::PersonTwice { column: person_column.name.clone(), rows }];
        LoadError::Files(vec![ReadErrors { file: sources.place(&table_spec.file), problems }])
    })?;
    let quasi: Vec<&Column> =
        original.table.with_role(Role::Quasi).into_iter().map(|position| &original.table.columns[position]).collect();
    let mut values: Vec<ColumnValues<'_>> = quasi.iter().map(|column| ColumnValues::new(column)).collect();
    let mut respelled = Vec::new();
    let mut united = United::new(quasi.len(), by);
    let (mut registers, mut problems) = (Vec::new(), Vec::new());
    let (mut earlier, mut earlier_rows) = (Vec::new(), Vec::new());
    for (name, register) in &spec.registers {
        for file in &register.previous {
            let source = Source {
                sources,
                file,
                register: &RegisterSpec { sha256: None, ..register.clone() },
                missing: RegisterMissing::Skip,
                quasi: &quasi,
                table_spec,
                persons: &persons,
            };
            match source.read(&values, &OfTable { progress, name }) {
                Err(found) => problems.push(ReadErrors { file: sources.place(source.file), problems: found }),
                Ok(read) => {
                    let sha256 = read.sha256.clone();
                    earlier.push(EarlierRegister { sha256, places: Vec::new() });
                    earlier_rows.push(source.placed(read, &mut values, &mut respelled));
                }
            }
        }
        let source = Source {
            sources,
            file: &register.file,
            register,
            missing: spec.register.missing,
            quasi: &quasi,
            table_spec,
            persons: &persons,
        };
        match source.read(&values, &OfTable { progress, name }) {
            Err(found) => problems.push(ReadErrors { file: sources.place(source.file), problems: found }),
            Ok(read) => {
                registers.push(LoadedRegister {
                    name: name.clone(),
                    date: register.date.clone(),
                    sha256: read.sha256.clone(),
                    rows: read.n_rows,
                    incomplete: read.incomplete,
                    joined: 0..0,
                });
                let rows = source.placed(read, &mut values, &mut respelled);
                united.add(rows, &same_values(&values));
            }
        }
    }
    if !problems.is_empty() {
        return Err(LoadError::Files(problems));
    }
    progress.begin("joining", 0);
    let private_ids: Vec<&[u32]> = quasi.iter().map(|column| column.ids.as_slice()).collect();
    let (joined, contradicting) =
        united.join(&private_ids, original.table.n_rows, &earlier_rows, &same_values(&values));
    for (register, places) in earlier.iter_mut().zip(joined.places) {
        register.places = places;
    }
    for (register, range) in registers.iter_mut().zip(joined.of_registers) {
        register.joined = range;
    }
    let mut hierarchies = Hierarchies::new(sources);
    let mut columns = Vec::with_capacity(quasi.len());
    for (position, ((&private, values), ids)) in quasi.iter().zip(values).zip(joined.columns).enumerate() {
        let of_column = respelled.iter_mut().filter(|respelled: &&mut Respelled| respelled.column == position);
        let (texts, ids) = used(values.into_texts(), ids, of_column);
        let mut column = Column { texts, ids, ..private.without_cells() };
        if let Some(source @ HierarchySource::Rule(_)) = source_of(table_spec, &private.name) {
            match hierarchies.of_column(source, &column) {
                Ok(hierarchy) => column.hierarchy = Some(hierarchy),
                Err(problem) => {
                    problems.push(ReadErrors { file: sources.place(&table_spec.file), problems: vec![problem] });
                }
            }
        }
        columns.push(column);
    }
    if !problems.is_empty() {
        return Err(LoadError::Files(problems));
    }
    for column in &columns {
        let private = original.table.columns.iter_mut().find(|private| private.name == column.name);
        private.expect("it was taken from there").hierarchy = column.hierarchy.as_ref().map(Arc::clone);
    }
    let n_rows = columns.first().map_or(0, |column: &Column| column.ids.len());
    let rows = Table { name: original.table.name.clone(), columns, n_rows, person: None };
    let joined = JoinedRegister {
        rows,
        n_microdata: original.table.n_rows,
        n_register: joined.n_register,
        persons: joined.persons,
        key_prints: joined.key_prints,
        respelled,
    };
    Ok(LoadedRegisters { joined, registers, by, contradicting, earlier })
}

/// Everything that prevents a private table from being joined with a register.
fn check_private(table: &Table) -> Result<(), Vec<ReadError>> {
    let mut problems = Vec::new();
    if let Some(person) = table.person_column() {
        let mut met = vec![false; person.texts.len()];
        let rows = RowNumbers::with_ids(&person.ids, |id| id != NULL && std::mem::replace(&mut met[id as usize], true));
        if rows.total > 0 {
            problems.push(ReadError::PersonTwice { column: person.name.clone(), rows });
        }
    }
    if table.column(SENSITIVE_GROUP).is_some() {
        problems.push(ReadError::ReservedName { what: "column", name: SENSITIVE_GROUP });
    }
    if table.name == SENSITIVE_TABLE {
        problems.push(ReadError::ReservedName { what: "table", name: SENSITIVE_TABLE });
    }
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

/// A register to be read: where it is, and which of its columns are needed.
struct Source<'a> {
    sources: Sources<'a>,
    file: &'a Path,
    register: &'a RegisterSpec,
    missing: RegisterMissing,
    quasi: &'a [&'a Column],
    table_spec: &'a TableSpec,
    persons: &'a KnownPersons<'a>,
}

/// One register, columns in the order of the private quasi columns.
struct ReadRegister {
    columns: Vec<RawColumn>,
    /// How the values of each column are written.
    notations: Vec<Notation>,
    /// The person of each row, if there is a key.
    persons: Option<Vec<NamedPerson>>,
    sha256: String,
    n_rows: u64,
    incomplete: u64,
}

impl Source<'_> {
    fn read(&self, values: &[ColumnValues<'_>], progress: &dyn Progress) -> Result<ReadRegister, Vec<ReadError>> {
        let sha256 = self.sources.sha256(self.file).map_err(|problem| vec![problem])?;
        if let Some(pinned) = self.register.sha256.as_ref().filter(|pinned| **pinned != sha256) {
            let twelve = |digest: &str| digest.chars().take(12).collect();
            return Err(vec![ReadError::OtherDigest { pinned: twelve(pinned), found: twelve(&sha256) }]);
        }
        let csv = CsvSpec::default();
        let (open, _) = self.sources.open(self.file, &csv, progress).map_err(|problem| vec![problem])?;
        let names = open.names().to_vec();
        let bad_names = check_names(&names);
        if !bad_names.is_empty() {
            return Err(bad_names);
        }
        let (positions, key) = self.positions(&names)?;
        let mut wanted: Vec<(usize, Keep<'_>)> = positions.iter().map(|&position| (position, Keep::Texts)).collect();
        wanted.extend(key.map(|key| (key, Keep::Persons(self.persons))));
        wanted.sort_unstable_by_key(|&(position, _)| position);
        let kept = match open.read_kept(&wanted) {
            Ok(kept) => kept,
            // A register without rows describes nobody, which is no problem.
            Err(problems) if matches!(problems.as_slice(), [ReadError::NoRows]) => wanted.iter().map(nothing).collect(),
            Err(problems) => return Err(problems),
        };
        let (mut columns, mut persons): (Vec<Option<RawColumn>>, _) = (positions.iter().map(|_| None).collect(), None);
        for (kept, (position, _)) in kept.into_iter().zip(wanted) {
            match kept {
                Kept::Persons(numbers) => persons = Some(numbers),
                Kept::Texts(raw) => {
                    let column = positions.iter().position(|&wanted| wanted == position);
                    columns[column.expect("only these were asked for")] = Some(raw);
                }
            }
        }
        let columns: Vec<RawColumn> = columns.into_iter().flatten().collect();
        let (mut notations, mut problems) = (Vec::new(), Vec::new());
        for (at, (raw, &position)) in columns.iter().zip(&positions).enumerate() {
            match self.notation(at, &values[at], raw, &names[position]) {
                Ok(notation) => notations.push(notation),
                Err(problem) => problems.push(problem),
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let n_rows = columns.first().map_or(0, |column| column.ids.len());
        let read = ReadRegister { columns, notations, persons, sha256, n_rows: n_rows as u64, incomplete: 0 };
        self.without_incomplete(read, &positions.iter().map(|&position| names[position].as_str()).collect::<Vec<_>>())
    }

    /// The positions of the quasi columns and of the key.
    fn positions(&self, names: &[String]) -> Result<(Vec<usize>, Option<usize>), Vec<ReadError>> {
        let name_of = |column: &&Column| self.register.columns.get(&column.name).unwrap_or(&column.name).clone();
        let wanted: Vec<String> = self.quasi.iter().map(name_of).chain(self.register.key.clone()).collect();
        let position = |wanted: &String| names.iter().position(|name| name == wanted);
        let unknown: Vec<String> = wanted.iter().filter(|name| position(name).is_none()).cloned().collect();
        if !unknown.is_empty() {
            let known = FileColumns::of_file(names, wanted.iter().map(String::as_str));
            return Err(vec![ReadError::UnknownColumn { columns: unknown, known }]);
        }
        if let Some(twice) = wanted.iter().enumerate().find(|(at, name)| wanted[..*at].contains(name)) {
            return Err(vec![ReadError::RegisterColumnTwice { column: twice.1.clone() }]);
        }
        let mut positions: Vec<usize> = wanted.iter().filter_map(position).collect();
        let key = self.register.key.as_ref().and_then(|_| positions.pop());
        Ok((positions, key))
    }

    /// How a column of the register writes its values, or the values that have no place in the private column.
    fn notation(
        &self,
        at: usize,
        values: &ColumnValues<'_>,
        raw: &RawColumn,
        name: &str,
    ) -> Result<Notation, ReadError> {
        let private = self.quasi[at];
        let rows = |misfits: &[bool]| RowNumbers::with_ids(&raw.ids, |id| id != NULL && misfits[id as usize]);
        let column = || name.to_owned();
        let notation = values.notation_of(&raw.texts).map_err(|unread| ReadError::NotOfType {
            column: column(),
            value_type: private.value_type,
            n_values: unread.iter().filter(|&&unread| unread).count(),
            rows: rows(&unread),
        })?;
        let unplaced = values.without_place(&raw.texts, &notation, &*self.places(at));
        if !unplaced.contains(&true) {
            return Ok(notation);
        }
        Err(match &private.hierarchy {
            Some(_) => ReadError::NotInHierarchy { column: column(), values: missing_values(&unplaced, &raw.ids) },
            None => ReadError::LabelClash { column: column(), rows: rows(&unplaced) },
        })
    }

    /// A function that tells whether a text has a place in a private column. Where a rule makes the hierarchy, every text
    /// has one, because the hierarchy is made again.
    fn places(&self, at: usize) -> Box<dyn Fn(&str) -> bool + '_> {
        let private = self.quasi[at];
        match (source_of(self.table_spec, &private.name), &private.hierarchy) {
            (Some(HierarchySource::Rule(_)), _) => Box::new(|_| true),
            (_, Some(hierarchy)) => Box::new(|text| hierarchy.leaf(text).is_some()),
            (_, None) => Box::new(|text| !looks_like_a_label(text)),
        }
    }

    /// The rows, as ids of the joined columns.
    fn placed(
        &self,
        read: ReadRegister,
        values: &mut [ColumnValues<'_>],
        respelled: &mut Vec<Respelled>,
    ) -> RegisterRows {
        let mut columns = Vec::with_capacity(read.columns.len());
        for (at, (raw, notation)) in read.columns.into_iter().zip(&read.notations).enumerate() {
            let placed = values[at].place(at, &raw.texts, notation, &*self.places(at));
            respelled.extend(placed.respelled);
            columns.push(placed_ids(raw.ids, &placed.ids));
        }
        RegisterRows { columns, persons: read.persons }
    }

    /// Removes rows that lack a value, or refuses them, as the spec says.
    fn without_incomplete(&self, mut read: ReadRegister, names: &[&str]) -> Result<ReadRegister, Vec<ReadError>> {
        if self.missing == RegisterMissing::Refuse {
            let lacks = |rows: RowNumbers, name: &str| {
                (rows.total > 0).then(|| ReadError::RegisterLacks { column: name.to_owned(), rows })
            };
            let of_columns = read
                .columns
                .iter()
                .zip(names)
                .filter_map(|(raw, name)| lacks(RowNumbers::with_ids(&raw.ids, |id| id == NULL), name));
            let mut problems: Vec<ReadError> = of_columns.collect();
            if let (Some(persons), Some(key)) = (&read.persons, &self.register.key) {
                let mut rows = RowNumbers::default();
                (1..).zip(persons).filter(|&(_, &person)| person == NOBODY).for_each(|(row, _)| rows.add(row));
                problems.extend(lacks(rows, key));
            }
            return if problems.is_empty() { Ok(read) } else { Err(problems) };
        }
        let is_whole = |row: usize| {
            read.columns.iter().all(|column| column.ids[row] != NULL)
                && read.persons.as_ref().is_none_or(|persons| persons[row] != NOBODY)
        };
        let whole: Vec<bool> = (0..read.n_rows as usize).map(is_whole).collect();
        read.incomplete = whole.iter().filter(|&&whole| !whole).count() as u64;
        if read.incomplete > 0 {
            for column in &mut read.columns {
                united::retain(&mut column.ids, &whole);
            }
            if let Some(persons) = &mut read.persons {
                united::retain(persons, &whole);
            }
        }
        Ok(read)
    }
}

fn nothing(wanted: &(usize, Keep<'_>)) -> Kept {
    match wanted.1 {
        Keep::Texts => Kept::Texts(RawColumn { texts: Texts::new(), ids: Vec::new(), field: None }),
        Keep::Persons(_) => Kept::Persons(Vec::new()),
    }
}

/// Values that are missing from a hierarchy, by their first row.
fn missing_values(is_missing: &[bool], ids: &[u32]) -> Vec<MissingValue> {
    let mut by_id: Vec<Option<MissingValue>> =
        is_missing.iter().map(|&missing| missing.then_some(MissingValue { first_row: 0, n_rows: 0 })).collect();
    if by_id.iter().all(Option::is_none) {
        return Vec::new();
    }
    for (row, &id) in (1..).zip(ids).filter(|&(_, &id)| id != NULL) {
        if let Some(value) = &mut by_id[id as usize] {
            value.first_row = if value.n_rows == 0 { row } else { value.first_row };
            value.n_rows += 1;
        }
    }
    let mut missing: Vec<MissingValue> = by_id.into_iter().flatten().collect();
    missing.sort_unstable_by_key(|value| value.first_row);
    missing
}

fn source_of<'t>(table: &'t TableSpec, name: &str) -> Option<&'t HierarchySource> {
    table.columns.iter().find(|column| column.name == name)?.hierarchy.as_ref()
}

/// For each column and text, the first text of the same value.
fn same_values<'v>(values: &'v [ColumnValues<'_>]) -> Vec<&'v [u32]> {
    values.iter().map(ColumnValues::same).collect()
}

/// The dictionary without texts that occur only in unused rows, and the ids in it.
fn used<'r>(texts: Texts, mut ids: Vec<u32>, respelled: impl Iterator<Item = &'r mut Respelled>) -> (Texts, Vec<u32>) {
    let mut is_used = vec![false; texts.len()];
    ids.iter().filter(|&&id| id != NULL).for_each(|&id| is_used[id as usize] = true);
    if !is_used.contains(&false) {
        return (texts, ids);
    }
    let mut kept = Texts::new();
    let renumbered: Vec<u32> =
        texts.iter().zip(is_used).map(|(text, is_used)| if is_used { kept.push(text) } else { NULL }).collect();
    ids.iter_mut().filter(|id| **id != NULL).for_each(|id| *id = renumbered[*id as usize]);
    for respelled in respelled {
        let pairs = respelled.as_read.iter().zip(&respelled.texts).map(|(text, &id)| (text, renumbered[id as usize]));
        let (as_read, ids): (Vec<&str>, Vec<u32>) = pairs.filter(|&(_, id)| id != NULL).unzip();
        (respelled.as_read, respelled.texts) = (as_read.into_iter().collect(), ids);
    }
    (kept, ids)
}

#[cfg(test)]
mod tests;
