//! [`load`]: reads a private table as a spec describes it, or reports everything that is wrong with it.
//!
//! # Guarantee
//! A loaded quasi column is typed, all its values parse, and its hierarchy has a leaf for each of them. Every row belongs to
//! a person. Identifiers and dropped columns are never held in memory, unless they tell rows apart.

use arrow_schema::Field;
use kohort_model::hierarchy::Rule;
use kohort_model::spec::{ColumnSpec, HierarchySource, ReleasedHierarchies, TableSpec};
use kohort_model::{
    Column, Distance, LabelsManifest, NULL, Notation, Progress, Role, Spec, Table, Transform, Value, ValueType,
};

use super::error::{ReadError, ReadErrors, RowNumbers};
use super::hierarchies::Hierarchies;
use super::pseudonym::pseudonymized;
use super::roles::{check_names, key_names, roles_of};
use super::transform::{Holders, HoldersOfRows, changed, changed_field};
use super::typing::{self, Misfit, Why};
use super::{OpenTable, RawColumn, Sources};
use crate::arrow_text::{ArrowOrder, TextForm};
use crate::{CellForm, Format};

/// A private table, and what is needed to write its release in the form of its file.
#[derive(Clone, Debug)]
pub struct LoadedTable {
    /// The table.
    pub table: Table,
    /// The form of the table's file.
    pub origin: Origin,
}

/// A private table and the form of its file, borrowed.
#[derive(Clone, Copy)]
pub(crate) struct Original<'a> {
    pub(crate) table: &'a Table,
    pub(crate) origin: &'a Origin,
}

impl LoadedTable {
    pub(crate) fn original(&self) -> Original<'_> {
        Original { table: &self.table, origin: &self.origin }
    }
}

/// The form of the file of a table, which its releases also have.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The format of the file.
    pub format: Format,
    /// The separator of cells, if the file is CSV.
    pub(crate) separator: u8,
    /// Words for null. Texts that are equal to one of them are quoted when they are written.
    pub(crate) null_words: Vec<String>,
    /// The Arrow field of each column of the table, if the file has one.
    pub(crate) fields: Vec<Option<Field>>,
    /// What the spec says about the cells of each column of the table.
    pub(crate) readings: Vec<ColumnReading>,
    /// How numbers and dates are spelled in columns of text.
    pub(crate) notation: Notation,
    /// Whether readers get the needed parts of hierarchy files.
    pub(crate) hierarchies: ReleasedHierarchies,
    /// The form of quasi cells in releases of the table.
    pub(crate) cells: CellForm,
}

/// What a spec says about the cells of a column, for readers who don't have the spec.
#[derive(Clone, Debug)]
pub(crate) struct ColumnReading {
    /// Whether the cells are compared as values of the type of the column. If not, they are copied and compared as texts.
    pub(crate) is_typed: bool,
    /// The rule that makes the labels of a generalized column. Parts that a manifest takes from the shown labels are not
    /// filled in yet.
    pub(crate) labels: LabelsManifest,
    /// What was done to the cells before classes were made.
    pub(crate) transform: Transform,
}

impl ColumnReading {
    fn new(column: &Column, column_spec: Option<&ColumnSpec>) -> Self {
        let labels = match column_spec.and_then(|spec| spec.hierarchy.as_ref()) {
            None if column.value_type.is_ordered() => LabelsManifest::Ranges,
            None => LabelsManifest::Values,
            Some(HierarchySource::Paths(_) | HierarchySource::Edges(_)) => {
                LabelsManifest::Hierarchy { root: None, file: None, sha256: None }
            }
            Some(HierarchySource::Rule(rule)) => match rule {
                Rule::Steps(steps) => LabelsManifest::Steps { steps: steps.clone() },
                Rule::Mask(side) => LabelsManifest::Mask { side: *side, width: None },
                Rule::Dates(levels) => LabelsManifest::Dates { levels: levels.clone() },
                Rule::Flat => LabelsManifest::Flat,
            },
        };
        let transform = column_spec.map(|spec| spec.transform.clone()).unwrap_or_default();
        ColumnReading { is_typed: needs_type(column.role, column_spec), labels, transform }
    }

    /// For the column with the numbers of groups, which no spec describes.
    pub(crate) fn of_numbers() -> Self {
        ColumnReading { is_typed: true, labels: LabelsManifest::Values, transform: Transform::default() }
    }
}

/// Reads a table of a spec. `sources` is a folder, or a folder and tables in memory.
///
/// # Errors
/// Every problem that can be found in the file, its columns and their hierarchies.
pub fn load<'s>(
    sources: impl Into<Sources<'s>>,
    spec: &Spec,
    table_spec: &TableSpec,
    progress: &dyn Progress,
) -> Result<LoadedTable, ReadErrors> {
    let sources = sources.into();
    let fail = |problems| ReadErrors { file: sources.place(&table_spec.file), problems };
    let (open, described) = Described::open(sources, spec, table_spec, progress)?;
    match open.read(&described.kept) {
        Ok(raw_columns) => described.assemble(sources, spec, table_spec, raw_columns).map_err(fail),
        Err(found) => Err(fail(described.problems.into_iter().chain(found).collect())),
    }
}

/// A table file that is open, and what is known of it before its rows are read.
pub(super) struct Described {
    pub(super) names: Vec<String>,
    roles: Vec<Option<Role>>,
    /// Positions of the columns that are read.
    pub(super) kept: Vec<usize>,
    format: Format,
    separator: u8,
    problems: Vec<ReadError>,
    /// For each column that is read how many rows hold each text, if the rows that are assembled have each text once.
    pub(super) counts: Option<Vec<Vec<u64>>>,
}

impl Described {
    /// Opens the file of a table.
    pub(super) fn open<'p>(
        sources: Sources<'_>,
        spec: &Spec,
        table_spec: &TableSpec,
        progress: &'p dyn Progress,
    ) -> Result<(OpenTable<'p>, Described), ReadErrors> {
        let fail = |problems| ReadErrors { file: sources.place(&table_spec.file), problems };
        let opened = sources.open(&table_spec.file, &table_spec.csv, progress);
        let (open, format) = opened.map_err(|problem| fail(vec![problem]))?;
        let names = open.names().to_vec();
        let bad_names = check_names(&names);
        if !bad_names.is_empty() {
            return Err(fail(bad_names));
        }
        let (roles, problems) = roles_of(&names, spec, table_spec);
        let kept: Vec<usize> = (0..names.len())
            .filter(|&position| roles[position].is_some_and(|role| is_kept(role, &names[position], table_spec)))
            .collect();
        let separator = match &open {
            OpenTable::Csv(file) => file.separator(),
            OpenTable::Arrow(_) | OpenTable::Lazy(_) => b',',
        };
        Ok((open, Described { names, roles, kept, format, separator, problems, counts: None }))
    }

    /// The table of the columns that were read.
    pub(super) fn assemble(
        self,
        sources: Sources<'_>,
        spec: &Spec,
        table_spec: &TableSpec,
        raw_columns: Vec<RawColumn>,
    ) -> Result<LoadedTable, Vec<ReadError>> {
        let Described { names, roles, kept, format, separator, mut problems, counts } = self;
        let mut hierarchies = Hierarchies::new(sources);
        let n_rows = raw_columns.first().map_or(0, |column| column.ids.len());
        let mut columns = Vec::with_capacity(kept.len());
        let mut fields = Vec::with_capacity(kept.len());
        let mut readings = Vec::with_capacity(kept.len());
        let is_changed = table_spec.columns.iter().any(|column| !column.transform.is_nothing());
        let person = kept.iter().position(|&position| table_spec.person.as_ref() == Some(&names[position]));
        let persons: Option<Vec<u32>> = person.filter(|_| is_changed).map(|person| raw_columns[person].ids.clone());
        for (read, (&position, raw)) in kept.iter().zip(raw_columns).enumerate() {
            let rows = match (&counts, &persons) {
                (Some(_), Some(_)) => HoldersOfRows::Unknown,
                (Some(counts), None) => HoldersOfRows::Counted(&counts[read]),
                (None, Some(persons)) => HoldersOfRows::Named(persons),
                (None, None) => HoldersOfRows::Each,
            };
            let holders = Holders { rows, k: spec.largest_k() };
            let name = &names[position];
            let role = roles[position].expect("only columns with a role are kept");
            let column_spec = table_spec.columns.iter().find(|column| &column.name == name);
            let mut field = raw.field.clone();
            let asked = Asked { name, role, column_spec, table: table_spec, sources, holders };
            let column = build_column(&asked, raw, &mut hierarchies, &mut problems);
            if let Some(column_spec) = column_spec {
                field = field.and_then(|field| changed_field(field, &column, &column_spec.transform));
            }
            fields.push(field);
            readings.push(ColumnReading::new(&column, column_spec));
            columns.push(column);
        }
        let is_person = |person: &String| columns.iter().position(|column: &Column| &column.name == person);
        let person = table_spec.person.as_ref().and_then(is_person);
        // If there are several tables, the keys of all of them are checked together later.
        if let Some(person) = person
            && spec.tables.len() < 2
            && columns[person].has_nulls()
        {
            let rows = RowNumbers::with_ids(&columns[person].ids, |id| id == NULL);
            problems.push(ReadError::NullPerson { column: columns[person].name.clone(), rows });
        }
        // Each pseudonym has one row, so each row is a person. The cells don't name persons any more, so they can be released.
        let is_pseudonym = |column: &ColumnSpec| {
            column.transform.pseudonym_key.is_some() && table_spec.person.as_ref() == Some(&column.name)
        };
        let person = person.filter(|_| !table_spec.columns.iter().any(is_pseudonym));
        if !problems.is_empty() {
            return Err(problems);
        }
        let null_words = table_spec.csv.null.clone().unwrap_or_default();
        Ok(LoadedTable {
            table: Table { name: table_spec.name.clone(), columns, n_rows, person },
            origin: Origin {
                format,
                separator,
                null_words,
                fields,
                readings,
                notation: notation_of(table_spec),
                hierarchies: spec.hierarchies,
                cells: CellForm::Labels,
            },
        })
    }
}

fn is_kept(role: Role, name: &str, table: &TableSpec) -> bool {
    match role {
        Role::Quasi | Role::Sensitive | Role::Key | Role::Plain | Role::PersonK => true,
        Role::Identifier | Role::Drop => key_names(table).any(|key| key == name),
    }
}

/// What a spec says about a column.
struct Asked<'a> {
    name: &'a str,
    role: Role,
    column_spec: Option<&'a ColumnSpec>,
    table: &'a TableSpec,
    sources: Sources<'a>,
    holders: Holders<'a>,
}

fn build_column(
    asked: &Asked<'_>,
    raw: RawColumn,
    hierarchies: &mut Hierarchies<'_>,
    problems: &mut Vec<ReadError>,
) -> Column {
    let &Asked { name, role, column_spec, table, sources, holders } = asked;
    let form = raw.field.as_ref().map(|field| TextForm::of(field.data_type()));
    let mut column = Column {
        name: name.to_owned(),
        role,
        value_type: ValueType::Text,
        notation: Notation::default(),
        hierarchy: None,
        texts: raw.texts,
        ids: raw.ids,
    };
    let order = form.as_ref().map_or(ArrowOrder::ByText, TextForm::order);
    if needs_type(role, column_spec) {
        if order == ArrowOrder::Unordered {
            let data_type = raw.field.map_or_else(String::new, |field| field.data_type().to_string());
            problems.push(ReadError::UnsupportedType { column: column.name.clone(), role, data_type });
            return column;
        }
        // Decimals and dates of Arrow have one spelling, so the notation in the spec does not apply to them.
        if order == ArrowOrder::ByText {
            column.notation = notation_of(table);
        }
        let given = column_spec.and_then(|spec| spec.value_type);
        match type_of(&column, role, given, order) {
            Ok((value_type, notation)) => (column.value_type, column.notation) = (value_type, notation),
            Err(misfit) => {
                problems.push(misfit.problem(&column));
                return column;
            }
        }
    }
    let transform = column_spec.map(|spec| &spec.transform).filter(|transform| !transform.is_nothing());
    if let Some(key_file) = transform.and_then(|transform| transform.pseudonym_key.as_deref()) {
        match pseudonymized(&column, &sources.place(key_file)) {
            Ok(changed) => column = changed,
            Err(found) => problems.extend(found),
        }
        return column;
    }
    if let Some(transform) = transform {
        match changed(&column, transform, holders) {
            Ok(changed) => column = changed,
            Err(found) => {
                problems.extend(found);
                return column;
            }
        }
    }
    if role == Role::PersonK {
        problems.extend(check_person_k(&column));
    }
    match column_spec.and_then(|spec| spec.hierarchy.as_ref()) {
        Some(source) => match hierarchies.of_column(source, &column) {
            Ok(hierarchy) => column.hierarchy = Some(hierarchy),
            Err(problem) => problems.push(problem),
        },
        None if role == Role::Quasi => problems.extend(check_labels(&column)),
        None if asks_for(column_spec, Distance::Hierarchical) => {
            problems.push(ReadError::NeedsHierarchy { column: column.name.clone() });
        }
        None => {}
    }
    column
}

/// Whether the order of a column's values matters.
fn needs_type(role: Role, column_spec: Option<&ColumnSpec>) -> bool {
    match role {
        Role::Quasi | Role::PersonK => true,
        Role::Sensitive => column_spec.is_some_and(|spec| {
            !spec.transform.is_nothing()
                || spec.value_type.is_some()
                || matches!(spec.hierarchy, Some(HierarchySource::Rule(_)))
                || asks_for(Some(spec), Distance::Ordered)
        }),
        Role::Plain => column_spec.is_some_and(|spec| spec.transform.needs_type()),
        Role::Identifier | Role::Key | Role::Drop => false,
    }
}

fn asks_for(column_spec: Option<&ColumnSpec>, wanted: Distance) -> bool {
    let requirements = column_spec.map_or(&[][..], |spec| &spec.requirements);
    requirements.iter().any(|requirement| requirement.distance() == Some(wanted))
}

fn notation_of(table: &TableSpec) -> Notation {
    Notation {
        decimal_comma: table.csv.decimal == Some(','),
        date_format: table.csv.date_format.clone(),
        ..Notation::default()
    }
}

fn type_of(
    column: &Column,
    role: Role,
    given: Option<ValueType>,
    order: ArrowOrder,
) -> Result<(ValueType, Notation), Misfit> {
    let arrow_type = match order {
        ArrowOrder::Typed(value_type) => Some(value_type),
        ArrowOrder::ByText | ArrowOrder::Unordered => None,
    };
    match given.or(arrow_type) {
        // The column is checked as a person's own k, which gives a better message than a failed check of its type.
        _ if role == Role::PersonK => Ok((ValueType::Integer, column.notation.clone())),
        Some(value_type) => {
            typing::check(&column.texts, value_type, &column.notation)?;
            Ok((value_type, column.notation.clone()))
        }
        None => typing::infer(&column.texts, &column.notation),
    }
}

impl Misfit {
    fn problem(self, column: &Column) -> ReadError {
        let mut is_misfit = vec![false; column.texts.len()];
        for &id in &self.ids {
            is_misfit[id as usize] = true;
        }
        let rows = RowNumbers::with_ids(&column.ids, |id| id != NULL && is_misfit[id as usize]);
        let (column, n_values) = (column.name.clone(), self.ids.len());
        match self.why {
            Why::NotOfType(value_type) => ReadError::NotOfType { column, value_type, n_values, rows },
            Why::ImpossibleDates => ReadError::ImpossibleDates { column, n_values, rows },
        }
    }
}

fn check_person_k(column: &Column) -> Option<ReadError> {
    let is_bad = |id| {
        id == NULL || !matches!(column.value(id), Some(Value::Integer(k)) if (0..=i64::from(u32::MAX)).contains(&k))
    };
    let bad: Vec<bool> = (0..column.texts.len() as u32).map(is_bad).collect();
    let rows = RowNumbers::with_ids(&column.ids, |id| id == NULL || bad[id as usize]);
    (rows.total > 0).then(|| ReadError::BadPersonK { column: column.name.clone(), rows })
}

/// A column without a hierarchy is released as values, ranges and `*`, so its own values must not look like ranges or `*`.
pub fn check_labels(column: &Column) -> Option<ReadError> {
    let clashes: Vec<bool> = column.texts.iter().map(looks_like_a_label).collect();
    if !clashes.contains(&true) {
        return None;
    }
    let rows = RowNumbers::with_ids(&column.ids, |id| id != NULL && clashes[id as usize]);
    Some(ReadError::LabelClash { column: column.name.clone(), rows })
}

pub(super) fn looks_like_a_label(text: &str) -> bool {
    let bounds = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let is_range = bounds
        .and_then(|bounds| bounds.split_once([',', ';']))
        .is_some_and(|(lo, hi)| !lo.is_empty() && !hi.is_empty());
    is_range || text == "*"
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::Path;

    use kohort_model::hierarchy::Rule;
    use kohort_model::spec::{Childless, CsvSpec, Orphans};
    use kohort_model::{Requirement, Silent};

    use super::*;

    pub(crate) fn table_spec(file: &str, columns: Vec<ColumnSpec>) -> TableSpec {
        TableSpec {
            name: "patient".to_owned(),
            file: file.into(),
            csv: CsvSpec::default(),
            person: None,
            key: None,
            parent: None,
            orphans: Orphans::Refuse,
            childless: Childless::Refuse,
            max_rows_left_out: None,
            columns,
        }
    }

    pub(crate) fn column(name: &str, role: Role) -> ColumnSpec {
        ColumnSpec {
            name: name.to_owned(),
            role,
            references: None,
            value_type: None,
            hierarchy: None,
            transform: Transform::default(),
            requirements: Vec::new(),
            sensitive_to: Vec::new(),
            weight: 1.0,
        }
    }

    /// Loads a CSV text by a spec of its columns.
    fn load_text(text: &str, change: impl FnOnce(&mut TableSpec)) -> Result<LoadedTable, ReadErrors> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("patient.csv"), text).unwrap();
        let mut table = table_spec("patient.csv", Vec::new());
        change(&mut table);
        load(folder.path(), &Spec::new(2), &table, &Silent)
    }

    fn messages(result: Result<LoadedTable, ReadErrors>) -> Vec<String> {
        result.unwrap_err().problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn columns_are_typed_by_their_texts_and_dropped_ones_are_not_there() {
        let text = "name,age,birth,zip,ward\nAnn,23,1984-03-17,01234,a\nBob,,1969-12-31,88512,\"\"\n";
        let loaded = load_text(text, |table| {
            table.columns = vec![
                column("name", Role::Identifier),
                column("age", Role::Quasi),
                column("birth", Role::Quasi),
                column("zip", Role::Quasi),
                column("ward", Role::Plain),
            ];
        })
        .unwrap();
        let types: Vec<(&str, ValueType)> =
            loaded.table.columns.iter().map(|column| (column.name.as_str(), column.value_type)).collect();
        assert_eq!(
            types,
            [
                ("age", ValueType::Integer),
                ("birth", ValueType::Date),
                ("zip", ValueType::Text),
                ("ward", ValueType::Text)
            ]
        );
        assert_eq!(loaded.table.n_rows, 2);
        assert_eq!(loaded.table.columns[0].cell(1), None);
        assert_eq!(loaded.table.columns[3].cell(1), Some(""));
    }

    #[test]
    fn an_identifier_that_names_the_person_is_kept() {
        let loaded = load_text("id,age\n1,20\n1,30\n", |table| {
            table.person = Some("id".to_owned());
            table.columns = vec![column("id", Role::Identifier), column("age", Role::Quasi)];
        })
        .unwrap();
        assert_eq!(loaded.table.person, Some(0));
        assert_eq!(loaded.table.person_column().unwrap().ids, [0, 0]);
    }

    #[test]
    fn all_problems_of_a_table_come_together() {
        let text =
            "id,age,k,birth,zip,note\n1,20,3,1990-02-28,*,x\n,old,-1,1990-02-30,\"[20,29]\",x\n,31,,1990-13-01,1,x\n";
        let found = messages(load_text(text, |table| {
            table.person = Some("id".to_owned());
            let mut age = column("age", Role::Quasi);
            age.value_type = Some(ValueType::Integer);
            table.columns = vec![
                age,
                column("k", Role::PersonK),
                column("birth", Role::Quasi),
                column("zip", Role::Quasi),
                column("wrad", Role::Plain),
            ];
        }));
        assert_eq!(
            found,
            [
                "column has no role: 'note'",
                "no such column: 'wrad'",
                "column 'age': 1 value is no integer, in row 2",
                "person_k column 'k' is not a whole number from 0 to 4294967295 in rows 2 and 3",
                "column 'birth' looks like dates, but 2 values are impossible, in rows 2 and 3",
                "column 'zip' already holds '*' or ranges such as '[20,29]', in rows 1 and 2",
                "person column 'id' is null in rows 2 and 3",
            ]
        );
    }

    #[test]
    fn a_hierarchy_allows_values_that_look_like_labels() {
        let loaded = load_text("age\n\"[20,29]\"\n\"[30,39]\"\n", |table| {
            let mut age = column("age", Role::Quasi);
            age.hierarchy = Some(HierarchySource::Rule(Rule::Flat));
            table.columns = vec![age];
        });
        assert!(loaded.unwrap().table.columns[0].hierarchy.is_some());
    }

    #[test]
    fn hierarchical_distance_needs_a_hierarchy() {
        let found = messages(load_text("disease\nflu\n", |table| {
            let mut disease = column("disease", Role::Sensitive);
            disease.requirements = vec![Requirement::TCloseness {
                column: "disease".to_owned(),
                t: 0.2,
                distance: Distance::Hierarchical,
            }];
            table.columns = vec![disease];
        }));
        assert_eq!(found, ["column 'disease' asks for hierarchical distance but has no hierarchy"]);
    }

    #[test]
    fn sensitive_values_are_typed_only_where_their_order_counts() {
        let load_cost = |distance| {
            load_text("cost\n100\n20\n", |table| {
                let mut cost = column("cost", Role::Sensitive);
                cost.requirements = vec![Requirement::TCloseness { column: "cost".to_owned(), t: 0.2, distance }];
                table.columns = vec![cost];
            })
        };
        assert_eq!(load_cost(Distance::Ordered).unwrap().table.columns[0].value_type, ValueType::Integer);
        assert_eq!(load_cost(Distance::Equal).unwrap().table.columns[0].value_type, ValueType::Text);
    }

    #[test]
    fn a_missing_file_is_an_input_problem() {
        let table = table_spec("nowhere.csv", Vec::new());
        let problems = load(Path::new("/"), &Spec::new(2), &table, &Silent).unwrap_err();
        assert_eq!(problems.class(), crate::ErrorClass::Input);
        assert!(problems.to_string().starts_with("/nowhere.csv: can't be read: "));
    }
}
