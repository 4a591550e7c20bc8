//! Small releases of every kind. Nobody in them is real.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use kohort::Job;
use kohort_io::{
    CellForm, Compression, DOCUMENTS, Existing, Format, LoadedTables, Private, WriteOptions, load, load_registers,
    load_tables, stage,
};
use kohort_model::{
    Audiences, Cells, Column, JoinedRegister, Release, ReleasedColumn, ReleasedTable, Requirement, Role, Schema,
    Silent, Spec, Table,
};
use kohort_testkit::mutations::judges::{BesideRegister, Judgement, ManyTables, OneTable};
use kohort_testkit::mutations::{Cell, Sheet};
use kohort_verify::{SuppressionLimit, verify_release};
use serde_json::Value;
use tempfile::TempDir;

/// A kind of release.
pub(super) struct Kind {
    pub(super) name: &'static str,
    spec: String,
    files: &'static [(&'static str, &'static str)],
    cells: CellForm,
    format: Option<Format>,
    /// A release that was made before, in the folder `earlier`.
    earlier: Option<String>,
}

const PATIENTS: &str = "\
name,age,zip,ward,disease
Ada,34,88512,north,1
Ben,36,88514,north,2
Cleo,35,88540,south,3
Dan,38,88541,south,1
Eve,61,89321,north,2
Fay,63,89344,south,3
Gus,65,89345,north,1
Hal,68,89346,south,2
";

/// One person asks for a class of three.
const WISHES: &str = "age,wish,disease\n20,2,a\n21,0,b\n40,3,a\n41,2,b\n43,0,c\n";

/// Two rows each for three of six persons.
const VISITS: &str = "\
id,age,disease
1,20,flu
1,20,cold
2,21,flu
3,23,cold
3,23,flu
4,40,flu
5,42,cold
6,45,gout
6,45,flu
";

const PERSONS: &str = "sid,town,job\na,x,clerk\nb,x,nurse\nc,y,clerk\nd,z,nurse\n";
const STAYS: &str = "sid,kind,cost\na,ear,1\na,eye,2\nb,ear,2\nb,eye,1\nc,leg,1\nd,arm,2\nd,leg,3\n";
const KINDS: &str = "ear;head;*\neye;head;*\nleg;limb;*\narm;limb;*\n";
const TOWNS: &str = "x;south;*\ny;north;*\nz;north;*\n";
const ACCOUNTS: &str = "id,town,sum,receiver\nz9,a,1,m4\nz3,a,2,m1\nm4,b,3,\nm1,b,4,\n";
const ACCIDENTS: &str = "\
job,age,car,faulty
clerk,30,van,yes
nurse,30,bus,no
clerk,41,van,no
nurse,41,bus,yes
baker,52,cab,no
baker,54,cab,yes
";
const JOBS: &str = "clerk;office;*\nnurse;care;*\nbaker;trade;*\n";
const CARS: &str = "van;large;*\nbus;large;*\ncab;small;*\n";
const MICRODATA: &str = include_str!("../../../testkit/golden/register/microdata.csv");
const PUBLIC: &str = include_str!("../../../testkit/golden/register/public.csv");

/// A survey of nine persons of a town of twelve.
const SURVEY: &str = "\
id,qi1,qi2,sa
p1,1,2,v1
p2,2,1,v2
p3,3,2,v1
p5,5,2,v2
p7,7,2,v1
p8,8,1,v2
p10,10,1,v1
p11,11,2,v2
p12,12,1,v1
";
const TOWN: &str = "\
id,qi1,qi2
p1,1,2
p2,2,1
p3,3,2
p4,4,1
p5,5,2
p6,6,1
p7,7,2
p8,8,1
p9,9,2
p10,10,1
p11,11,2
p12,12,1
";

/// The survey without the person who is in no register, because nobody would hide that person in two releases.
const REGISTERED: &str = "id,qi1,qi2,sa\nA,1,1,v1\nB,2,2,v2\nC,1,3,v1\nE,3,2,v1\nF,5,2,v2\nG,6,4,v3\n";

fn of_patients(settings: &str, disease: &str) -> String {
    format!(
        "k = 2\n{settings}\n[tables.patients]\nfile = \"patients.csv\"\n[tables.patients.columns]\n\
         name = \"identifier\"\nage = \"quasi\"\n\
         zip = {{ role = \"quasi\", type = \"text\", hierarchy = {{ mask = \"right\" }} }}\n\
         ward = \"plain\"\ndisease = {{ role = \"sensitive\", {disease} }}\n"
    )
}

const STAYS_SPEC: &str = "\
k = 2
hierarchies = \"withhold\"
max_suppressed = 0.25
[tables.person]
file = \"person.csv\"
person = \"sid\"
columns = { sid = \"key\", town = { role = \"quasi\", hierarchy = \"town.dgh.csv\" }, job = \"sensitive\" }
[tables.stay]
file = \"stay.csv\"
parent = { table = \"person\", foreign_key = \"sid\" }
columns = { kind = { role = \"quasi\", hierarchy = \"kind.dgh.csv\" }, cost = \"sensitive\" }
";

const ACCOUNTS_SPEC: &str = "\
k = 2
[tables.account]
file = \"account.csv\"
key = \"id\"
columns = { town = \"quasi\", sum = \"sensitive\", receiver = { role = \"key\", references = \"account\" } }
";

const VISITS_SPEC: &str = "\
k = 2
algorithm = \"mondrian\"
[tables.visits]
file = \"visits.csv\"
person = \"id\"
[tables.visits.columns]
age = \"quasi\"
disease = { role = \"sensitive\", l = 2 }
";

const JOBS_SPEC: &str = "\
k = 2
[tables.accident]
file = \"accident.csv\"
[tables.accident.columns]
job = { role = \"quasi\", hierarchy = \"job.dgh.csv\" }
age = \"plain\"
car = { role = \"quasi\", hierarchy = \"car.dgh.csv\" }
faulty = \"sensitive\"
";

const ACCIDENTS_SPEC: &str = "\
k = 2
hierarchies = \"withhold\"
[tables.accident]
file = \"accident.csv\"
[tables.accident.columns]
job = { role = \"quasi\", hierarchy = \"job.dgh.csv\" }
age = \"quasi\"
car = { role = \"quasi\", hierarchy = \"car.dgh.csv\" }
faulty = \"sensitive\"
[audiences.insurer]
quasi = [\"age\", \"car\"]
[audiences.hr]
quasi = [\"job\", \"age\"]
";

fn of_register(settings: &str, register: &str) -> String {
    format!(
        "k = 3\nalgorithm = \"mondrian\"\n{settings}\n[tables.microdata]\nfile = \"microdata.csv\"\nperson = \"id\"\n\
         [tables.microdata.columns]\nid = \"identifier\"\nqi1 = \"quasi\"\nqi2 = \"quasi\"\n\
         sa = {{ role = \"sensitive\", l = 2 }}\n[registers.public]\nfile = \"public.csv\"\ndate = 2026-01-01\n{register}\n"
    )
}

const OF_PATIENTS: &[(&str, &str)] = &[("patients.csv", PATIENTS)];
const OF_STAYS: &[(&str, &str)] =
    &[("person.csv", PERSONS), ("stay.csv", STAYS), ("kind.dgh.csv", KINDS), ("town.dgh.csv", TOWNS)];
const OF_ACCIDENTS: &[(&str, &str)] = &[("accident.csv", ACCIDENTS), ("job.dgh.csv", JOBS), ("car.dgh.csv", CARS)];
const OF_REGISTER: &[(&str, &str)] = &[("microdata.csv", MICRODATA), ("public.csv", PUBLIC)];

impl Kind {
    pub(super) fn all() -> Vec<Kind> {
        let mut kinds = Vec::new();
        let mut add = |name, spec: String, files| {
            kinds.push(Kind { name, spec, files, cells: CellForm::Labels, format: None, earlier: None });
        };
        for (name, disease) in [
            ("one table, l", "l = 2"),
            ("one table, entropy l", "entropy_l = 1.7"),
            ("one table, recursive (c,l)", "recursive_cl = [2.5, 2]"),
            ("one table, t", "t = 0.4"),
            ("one table, ordered t", "type = \"integer\", t = 0.45, distance = \"ordered\""),
            ("one table, alpha", "alpha = 0.7"),
            ("one table, beta", "beta = 1.5"),
            ("one table, enhanced beta", "enhanced_beta = 1.5"),
        ] {
            add(name, of_patients("", disease), OF_PATIENTS);
        }
        let suppressing = of_patients("max_suppressed = 0.15\nleftovers = \"suppress\"", "l = 2");
        add("one table, limit on persons left out", suppressing, OF_PATIENTS);
        let tree = "hierarchy = \"disease.dgh.csv\", t = 0.45, distance = \"hierarchical\"";
        let files = &[("patients.csv", PATIENTS), ("disease.dgh.csv", "1;viral;*\n2;viral;*\n3;other;*\n")];
        add("one table, hierarchical t", of_patients("", tree), files);
        add("one table, input order", of_patients("order = \"input\"", "l = 2"), OF_PATIENTS);
        add("one table, hierarchy files", JOBS_SPEC.to_owned(), OF_ACCIDENTS);
        let wishes = "k = 2\n[tables.wishes]\nfile = \"wishes.csv\"\n[tables.wishes.columns]\nage = \"quasi\"\n\
                      wish = \"person_k\"\ndisease = \"sensitive\"\n";
        add("one table, own k", wishes.to_owned(), &[("wishes.csv", WISHES)]);
        add("one table, several rows per person", VISITS_SPEC.to_owned(), &[("visits.csv", VISITS)]);
        add("many tables", STAYS_SPEC.to_owned(), OF_STAYS);
        add("many tables, kept keys", format!("keys = \"keep\"\n{STAYS_SPEC}"), OF_STAYS);
        add("many tables, hierarchy files", STAYS_SPEC.replace("hierarchies = \"withhold\"\n", ""), OF_STAYS);
        add("references", ACCOUNTS_SPEC.to_owned(), &[("account.csv", ACCOUNTS)]);
        add("audiences", ACCIDENTS_SPEC.to_owned(), OF_ACCIDENTS);
        add("audiences, collusion", format!("{ACCIDENTS_SPEC}[collusion]\nk = 2\n"), OF_ACCIDENTS);
        let both =
            "[collusion.both]\naudiences = [\"hr\", \"insurer\"]\nk = 2\nsensitive = { faulty = { alpha = 0.8 } }\n";
        add("audiences, coalition", format!("{ACCIDENTS_SPEC}{both}"), OF_ACCIDENTS);
        let hidden = "\", sensitive_to = [\"insurer\"], l = 2 }\nage";
        let hidden = ACCIDENTS_SPEC.replace("\" }\nage", hidden);
        add("audiences, sensitive_to", hidden, OF_ACCIDENTS);
        add("register, key", of_register("", "key = \"id\""), OF_REGISTER);
        add("register, no key", of_register("", ""), OF_REGISTER);
        let microdata = "key = \"id\"\n[register]\nrelease = \"microdata\"";
        add("register, private rows alone", of_register("", microdata), OF_REGISTER);
        let delta = of_register("delta_presence = [0.0, 0.9]", "key = \"id\"");
        add("register, delta_presence", delta, OF_REGISTER);
        for (name, cells, format) in [
            ("one table, bounds", CellForm::Bounds, None),
            ("one table, Parquet", CellForm::Labels, Some(Format::Parquet)),
            ("one table, Arrow", CellForm::Labels, Some(Format::ArrowFile)),
        ] {
            let spec = of_patients("", "l = 2");
            kinds.push(Kind { name, spec, files: OF_PATIENTS, cells, format, earlier: None });
        }
        kinds.push(Kind {
            name: "register, earlier release",
            spec: of_register("previous = \"earlier\"", "key = \"id\""),
            files: &[("microdata.csv", REGISTERED), ("public.csv", PUBLIC)],
            cells: CellForm::Labels,
            format: None,
            earlier: Some(of_register("", "key = \"id\"")),
        });
        kinds
    }

    /// The survey once more, with an earlier release of it. The oracle of changed files does not know earlier releases.
    pub(super) fn beside_an_earlier_one() -> Kind {
        let spec = of_register("previous = \"earlier\"", "key = \"id\"");
        let name = "register, beside an earlier release";
        let files = &[("microdata.csv", SURVEY), ("public.csv", TOWN)];
        let earlier = Some(of_register("", "key = \"id\""));
        Kind { name, spec, files, cells: CellForm::Labels, format: None, earlier }
    }
}

/// A release in a folder, and the files it was made from.
pub(super) struct Released {
    folder: TempDir,
    pub(super) manifest: Value,
    spec: Spec,
    originals: Originals,
    format: Option<Format>,
    sheets: Vec<Sheet>,
    has_earlier: bool,
}

/// A released part of a hierarchy.
pub(super) struct HierarchyFile {
    /// The position of the table, and the column.
    pub(super) table: usize,
    pub(super) column: String,
    pub(super) file: String,
    pub(super) sheet: Sheet,
}

enum Originals {
    One(Table),
    Many(Vec<Table>, Schema),
    BesideRegister(Table, JoinedRegister),
}

impl Released {
    /// A release without its documents. These repeat what the manifest and the tables say, so each change of those would also
    /// be found by them, even where nothing else finds it.
    pub(super) fn make(kind: &Kind) -> Released {
        let released = Released::with_documents(kind);
        for name in DOCUMENTS {
            fs::remove_file(released.folder().join("out").join(name)).unwrap();
        }
        released
    }

    /// A release as it is written.
    pub(super) fn with_documents(kind: &Kind) -> Released {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in kind.files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        fs::write(folder.path().join("release.toml"), &kind.spec).unwrap();
        let parse = |spec: &str| Spec::parse(spec).unwrap_or_else(|problems| panic!("{}: {problems}", kind.name));
        let release = |spec: Spec| {
            let job = Job::new(spec, folder.path()).cells(kind.cells).accept_risks();
            job.anonymize().unwrap_or_else(|error| panic!("{}: {error}", kind.name))
        };
        if let Some(earlier) = &kind.earlier {
            release(parse(earlier)).write(folder.path().join("earlier")).unwrap();
        }
        let spec = parse(&kind.spec);
        let release = release(spec.clone());
        // Sheets are read from CSV files whatever format is verified.
        let csv = WriteOptions { format: Some(Format::Csv(Compression::None)), existing: Existing::Refuse };
        release.write_with(folder.path().join("csv"), csv, &Silent).unwrap();
        let options = WriteOptions { format: kind.format, existing: Existing::Refuse };
        release.write_with(folder.path().join("out"), options, &Silent).unwrap();
        let originals = match spec.tables.as_slice() {
            [table] if !spec.registers.is_empty() => {
                let mut loaded = load(folder.path(), &spec, table, &Silent).unwrap();
                let joined = load_registers(folder.path(), &spec, &mut loaded, &Silent).unwrap().joined;
                Originals::BesideRegister(loaded.table, joined)
            }
            [table] if !spec.links_rows() => Originals::One(load(folder.path(), &spec, table, &Silent).unwrap().table),
            _ => {
                let LoadedTables { tables, schema, .. } = load_tables(folder.path(), &spec, &Silent).unwrap();
                Originals::Many(tables, schema)
            }
        };
        let manifest = fs::read_to_string(folder.path().join("out/manifest.json")).unwrap();
        let manifest: Value = serde_json::from_str(&manifest).unwrap();
        let read = |table: &Value| {
            let file = format!("csv/{}.csv", table["name"].as_str().unwrap());
            Sheet::parse(&fs::read_to_string(folder.path().join(file)).unwrap())
        };
        let sheets = manifest["tables"].as_array().unwrap().iter().map(read).collect();
        let has_earlier = kind.earlier.is_some();
        Released { manifest, folder, spec, originals, format: kind.format, sheets, has_earlier }
    }

    /// Whether there are earlier releases, of which the oracle knows nothing.
    pub(super) fn has_earlier(&self) -> bool {
        self.has_earlier
    }

    /// The released hierarchy files, as they were written.
    pub(super) fn hierarchy_files(&self) -> Vec<HierarchyFile> {
        let mut files = Vec::new();
        for (table, entry) in self.manifest["tables"].as_array().unwrap().iter().enumerate() {
            for (column, known) in entry["columns"].as_object().unwrap() {
                let Some(file) = known["labels"]["file"].as_str() else { continue };
                let sheet = Sheet::parse(&fs::read_to_string(self.folder.path().join("csv").join(file)).unwrap());
                files.push(HierarchyFile { table, column: column.clone(), file: file.to_owned(), sheet });
            }
        }
        files
    }

    /// Whether a shown label is not listed, or a listed label is not shown.
    fn is_listed_otherwise(&self, sheets: &[Sheet]) -> bool {
        self.hierarchy_files().iter().any(|listed| {
            let labels: BTreeSet<Cell> = listed.sheet.column(0).into_iter().collect();
            let shown = sheets[listed.table].position(&listed.column).map(|at| sheets[listed.table].column(at));
            let shown: BTreeSet<Cell> = shown.into_iter().flatten().filter(Option::is_some).collect();
            labels != shown
        })
    }

    /// Writes a sheet to a released file.
    pub(super) fn write(&self, sheet: &Sheet, file: &Path) {
        let Some(format) = self.format else {
            return fs::write(file, sheet.to_csv()).unwrap();
        };
        if sheet.rows.is_empty() {
            return fs::write(file, b"").unwrap();
        }
        // The sheet is written like any release, with all cells unchanged.
        let folder = tempfile::tempdir().unwrap();
        // A spec must protect something, so the sheet gets one more column.
        let mut more = sheet.clone();
        more.columns.push("protected".to_owned());
        more.rows.iter_mut().for_each(|row| row.push(Some("1".to_owned())));
        fs::write(folder.path().join("sheet.csv"), more.to_csv()).unwrap();
        let columns: String = sheet.columns.iter().map(|name| format!("{name} = \"plain\"\n")).collect();
        let columns = columns + "protected = \"quasi\"\n";
        let spec = format!("k = 1\n[tables.sheet]\nfile = \"sheet.csv\"\n[tables.sheet.columns]\n{columns}");
        let spec = Spec::parse(&spec).unwrap_or_else(|problems| panic!("{problems}"));
        let mut loaded = load(folder.path(), &spec, &spec.tables[0], &Silent).unwrap();
        loaded.table.columns.pop();
        let copied =
            |(source, name): (usize, &String)| ReleasedColumn { name: name.clone(), source, cells: Cells::Copied };
        let columns = sheet.columns.iter().enumerate().map(copied).collect();
        let table =
            ReleasedTable { name: "sheet".to_owned(), rows: (0..loaded.table.n_rows as u32).collect(), columns };
        let release = Release { tables: vec![table] };
        let verified = verify_release(release, &loaded.table, &[], SuppressionLimit::NOBODY).unwrap();
        let options = WriteOptions { format: Some(format), existing: Existing::Refuse };
        let out = folder.path().join("out");
        let private = Private::one(Spec::new(1), loaded);
        stage(&verified, &private, &out, options, &Silent).unwrap().publish(&self.manifest).unwrap();
        fs::copy(out.join(format!("sheet.{}", format.extension())), file).unwrap();
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// How many changes of one name are tried: all, except for formats that differ from CSV only in how they are read.
    pub(super) fn most_of_a_name(&self) -> usize {
        if self.format.is_some() { 5 } else { usize::MAX }
    }

    /// The released files.
    pub(super) fn sheets(&self) -> Vec<Sheet> {
        self.sheets.clone()
    }

    /// For each column of a sheet, its role and the private column that it comes from.
    pub(super) fn columns_of(&self, table: usize, sheet: &Sheet) -> (Vec<Role>, Vec<Option<&Column>>) {
        let private = match &self.originals {
            Originals::One(original) | Originals::BesideRegister(original, _) => original,
            Originals::Many(originals, _) => &originals[table],
        };
        let columns: Vec<Option<&Column>> = sheet.columns.iter().map(|name| private.column(name)).collect();
        let role = |(name, column): (&String, &Option<&Column>)| match column {
            Some(column) => column.role,
            // Bounds are numbers, and the numbers of groups are compared like keys.
            None if name.ends_with("_lo") || name.ends_with("_hi") => Role::Plain,
            None => Role::Key,
        };
        (sheet.columns.iter().zip(&columns).map(role).collect(), columns)
    }

    /// The judgement of the oracle on changed files.
    pub(super) fn judge(&self, sheets: &[Sheet]) -> Judgement {
        let max_suppressed = self.spec.max_suppressed;
        if self.is_listed_otherwise(sheets) {
            return Judgement::Untrue("labels and hierarchy files do not agree".to_owned());
        }
        match &self.originals {
            Originals::One(table) => {
                let requirements = self.spec.requirements(&self.spec.tables[0]);
                let audiences: Option<Audiences> = self.spec.audiences_of(&self.spec.tables[0]);
                let audiences = audiences.as_ref();
                match with_ranges(&sheets[0]) {
                    None => Judgement::Untrue("bounds are no ranges".to_owned()),
                    Some(sheet) => {
                        OneTable { table, requirements: &requirements, audiences, max_suppressed }.judge(&sheet)
                    }
                }
            }
            Originals::Many(tables, schema) => {
                let requirements: Vec<Vec<Requirement>> =
                    self.spec.tables.iter().map(|table| self.spec.requirements(table)).collect();
                let keys = self.spec.keys;
                ManyTables { tables, schema, requirements: &requirements, keys, max_suppressed }.judge(sheets)
            }
            Originals::BesideRegister(table, joined) => {
                let requirements = self.spec.requirements(&self.spec.tables[0]);
                let has_key = self.spec.registers.values().any(|register| register.key.is_some());
                let unmatched = (!has_key).then(|| self.spec.unmatched());
                let rows = self.spec.register.release;
                BesideRegister { table, joined, requirements: &requirements, rows, unmatched, max_suppressed }
                    .judge(sheets)
            }
        }
    }
}

/// The sheet with one column of ranges in place of two columns of bounds; `None` if the bounds are no ranges.
fn with_ranges(sheet: &Sheet) -> Option<Sheet> {
    let Some(at) = sheet.columns.iter().position(|name| name.ends_with("_lo")) else { return Some(sheet.clone()) };
    let name = sheet.columns[at].trim_end_matches("_lo").to_owned();
    if sheet.columns.get(at + 1) != Some(&format!("{name}_hi")) {
        return None;
    }
    let mut composed = sheet.clone();
    composed.columns.splice(at..at + 2, [name]);
    for row in &mut composed.rows {
        let range = match (row[at].as_deref(), row[at + 1].as_deref()) {
            (Some(low), Some(high)) => {
                let (from, to): (i64, i64) = (low.parse().ok()?, high.parse().ok()?);
                match from.cmp(&to) {
                    std::cmp::Ordering::Less => format!("[{low},{high}]"),
                    std::cmp::Ordering::Equal if low == high => low.to_owned(),
                    _ => return None,
                }
            }
            _ => return None,
        };
        row.splice(at..at + 2, [Some(range)]);
    }
    Some(composed)
}
