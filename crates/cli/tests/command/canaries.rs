//! Every cell of a private table is a canary, and no message, JSON object or manifest may show one.
//!
//! Each case breaks the input, or asks for something impossible, in one way. Cells are long and distinct, so finding one in
//! the output can't be chance. Cases that end with a release look at everything except the released tables.

use std::collections::BTreeSet;

use crate::runner::{Folder, Ran};

const HEADER: &str = "id,person,born,place,income,illness,note,wish";
const N_PERSONS: usize = 12;

const SPEC: &str = "\
k = 2
[tables.people]
file = \"people.csv\"
person = \"person\"
[tables.people.columns]
id = \"identifier\"
born = { role = \"quasi\", hierarchy = \"date\" }
place = { role = \"quasi\", type = \"text\", hierarchy = { mask = \"right\" } }
income = \"quasi\"
illness = { role = \"sensitive\", l = 2 }
note = \"plain\"
wish = \"drop\"
";

const REGISTER: &str = "[registers.city]\nfile = \"city.csv\"\nkey = \"person\"\n";

fn cells(person: usize) -> [String; 8] {
    [
        format!("canaryid{person:02}x"),
        format!("canaryperson{person:02}x"),
        format!("1{:03}-0{}-1{}", 861 + 3 * person, 1 + person % 9, person % 9),
        format!("9{:04}{person:02}", 7131 + 17 * person),
        format!("77{:05}", 31_013 + 911 * person),
        format!("canaryillness{:02}x", person % 5),
        format!("canarynote{person:02}x"),
        format!("{}", 990_001 + person),
    ]
}

fn people() -> String {
    let rows = (0..N_PERSONS).map(|person| cells(person).join(","));
    [HEADER.to_owned()].into_iter().chain(rows).map(|row| row + "\n").collect()
}

/// The private files of a case. Every cell of them that is long enough is a canary.
struct Case {
    name: &'static str,
    files: Vec<(&'static str, Vec<u8>)>,
    private: Vec<String>,
    runs: Vec<Vec<&'static str>>,
}

const ANONYMIZE: &[&str] = &["anonymize", "release.toml", "-o", "out"];
const CHECK: &[&str] = &["check", "people.csv", "--quasi", "born,place,income", "--sensitive", "illness", "--k", "5"];

fn case(name: &'static str, spec: &str, table: &str) -> Case {
    Case {
        name,
        files: vec![("release.toml", spec.as_bytes().to_vec()), ("people.csv", table.as_bytes().to_vec())],
        private: vec![table.to_owned()],
        runs: vec![ANONYMIZE.to_vec(), CHECK.to_vec(), vec!["init", "people.csv"]],
    }
}

impl Case {
    fn file(mut self, name: &'static str, bytes: &[u8]) -> Self {
        self.private.push(String::from_utf8_lossy(bytes).into_owned());
        self.files.push((name, bytes.to_vec()));
        self
    }

    fn run(mut self, arguments: &[&'static str]) -> Self {
        self.runs.push(arguments.to_vec());
        self
    }

    fn only(mut self, arguments: &[&'static str]) -> Self {
        self.runs = vec![arguments.to_vec()];
        self
    }

    fn canaries(&self) -> BTreeSet<String> {
        let words: BTreeSet<&str> = HEADER.split(',').collect();
        let cells = self.private.iter().flat_map(|file| file.split([',', '\n', ';', '"', '\r']));
        cells.map(str::trim).filter(|cell| cell.len() >= 6 && !words.contains(cell)).map(str::to_owned).collect()
    }

    /// Runs everything, with words and with JSON, and returns the canaries that are shown.
    fn leaks(&self) -> Vec<String> {
        let canaries = self.canaries();
        assert!(canaries.len() >= N_PERSONS, "{}: nothing to look for", self.name);
        let mut leaks = Vec::new();
        for arguments in &self.runs {
            for json in [None, Some("--json")] {
                let folder = Folder::new();
                for (name, bytes) in &self.files {
                    folder.write(name, bytes);
                }
                let takes_json = matches!(arguments[0], "anonymize" | "check" | "audit" | "verify");
                if json.is_some() && !takes_json {
                    continue;
                }
                let arguments: Vec<&str> = arguments.iter().copied().chain(json).collect();
                let ran = folder.run(&arguments);
                for (place, text) in shown(&folder, &ran) {
                    let mut found = canaries.iter().filter(|canary| text.contains(canary.as_str()));
                    if let Some(canary) = found.next() {
                        leaks.push(format!("{}: {arguments:?}: {place} shows {canary}:\n{text}", self.name));
                    }
                }
            }
        }
        leaks
    }
}

/// The whole output of a run: words, JSON and the manifest.
fn shown(folder: &Folder, ran: &Ran) -> Vec<(&'static str, String)> {
    let mut shown = vec![("stdout", ran.stdout.clone()), ("stderr", ran.stderr.clone())];
    if folder.path("out/manifest.json").exists() {
        shown.push(("manifest.json", folder.read("out/manifest.json")));
    }
    shown
}

fn assert_silent(cases: &[Case]) {
    let leaks: Vec<String> = cases.iter().flat_map(Case::leaks).collect();
    assert!(leaks.is_empty(), "{}", leaks.join("\n"));
}

/// The spec with a line, or a part of one, replaced.
fn spec(line: &str, instead: &str) -> String {
    assert!(SPEC.contains(line), "{line}");
    SPEC.replace(line, instead)
}

/// The table with the cell of one person replaced.
fn table(person: usize, column: usize, instead: &str) -> String {
    let cell = &cells(person)[column];
    let table = people();
    assert!(table.contains(cell.as_str()));
    table.replacen(cell.as_str(), instead, 1)
}

#[test]
fn no_cell_is_shown_when_all_is_well() {
    assert_silent(&[
        case("as it is", SPEC, &people()).run(&["verify", "out", "--against", "release.toml"]).run(&[
            "anonymize",
            "release.toml",
            "-o",
            "out",
            "--dry-run",
        ]),
        case("cells as bounds", SPEC, &people()).only(&["anonymize", "release.toml", "-o", "out", "--cells", "bounds"]),
    ]);
}

#[test]
fn no_cell_is_shown_of_a_file_that_can_not_be_read() {
    let mut latin = people().into_bytes();
    latin.extend(b"canaryid99x,\xff,1990-01-01,9999999,7799999,canaryillness9x,canarynote99x,3\n");
    let mut cases = vec![
        case("ragged", SPEC, &(people() + "canaryid98x,canaryperson98x\n")),
        case("too many cells", SPEC, &(people() + &cells(20).join(",") + ",canarymore,canarymore2\n")),
        case("unclosed quote", SPEC, &table(3, 6, "\"canarynote03")),
        case("text after a quote", SPEC, &table(3, 6, "\"canarynote03\"canarymore")),
        case("not UTF-8", SPEC, &people()).file("people.csv", &latin),
        case("one column", SPEC, &people()).file("people.csv", people().replace(',', "|").as_bytes()),
        case("UTF-16 unsaid", SPEC, &people())
            .file("people.csv", &people().encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>()),
    ];
    for name in ["people.parquet", "people.arrow", "people.csv.gz", "people.csv.zst"] {
        for start in [&b""[..], b"PAR1", b"ARROW1\0\0", b"\x1f\x8b\x08\0\0\0\0\0\0\x03", b"\x28\xb5\x2f\xfd"] {
            let mut bytes = start.to_vec();
            bytes.extend(people().bytes());
            bytes.extend(start);
            cases.push(case("damaged", &SPEC.replace("people.csv", name), &people()).file(name, &bytes));
        }
    }
    assert_silent(&cases);
}

#[test]
fn no_cell_is_shown_of_a_file_without_a_header() {
    let rows = people().split_once('\n').unwrap().1.to_owned();
    let first_row_twice = rows.replacen(&cells(0)[6], &cells(0)[0], 1);
    let texts_only: String =
        (0..N_PERSONS).map(|at| format!("canarya{at:02}x,canaryb{at:02}x,canaryc{at:02}x\n")).collect();
    let flags = ["anonymize", "people.csv", "--k", "2", "--quasi", "born", "-o", "out"];
    assert_silent(&[
        case("a spec with other names", SPEC, &rows).only(ANONYMIZE).run(CHECK).run(&flags),
        case("no flags", SPEC, &rows).only(&["anonymize", "people.csv", "--k", "2", "-o", "out"]),
        case("the first row repeats a cell", SPEC, &first_row_twice).only(ANONYMIZE).run(CHECK),
        case("texts alone", SPEC, &texts_only).only(ANONYMIZE).run(CHECK),
        case("audited", SPEC, &rows).only(&["audit", "people.csv", "people.csv", "--audience", "a=born", "--k", "2"]),
        case("suggested for", SPEC, &rows).only(&["init", "people.csv"]),
        case("as a register", &(SPEC.to_owned() + REGISTER), &people())
            .file("city.csv", rows.as_bytes())
            .only(ANONYMIZE),
        case("a hierarchy from it", SPEC, &rows).only(&[
            "hierarchy",
            "make",
            "people.csv",
            "--column",
            "born",
            "--rule",
            "date",
        ]),
    ]);
}

#[test]
fn no_cell_is_shown_where_values_do_not_fit() {
    let typed = |column: &str, value_type: &str| {
        spec(&format!("{column} = \"quasi\""), &format!("{column} = {{ role = \"quasi\", type = \"{value_type}\" }}"))
    };
    let of_illness = "illness = { role = \"sensitive\", l = 2 }";
    let hierarchy: String = (2..N_PERSONS).map(|person| format!("{};9*;*\n", cells(person)[3])).collect();
    let two_parents = format!("{0};9a;*\n{0};9b;*\n{hierarchy}", cells(0)[3]);
    let by_file = spec("{ mask = \"right\" }", "\"place.csv\"");
    assert_silent(&[
        case("no number", &typed("income", "integer"), &table(4, 4, "canaryincome")),
        case("no decimal", &typed("income", "decimal"), &table(4, 4, "77x3101311")),
        case("no boolean", &typed("income", "boolean"), &people()),
        case("no timestamp", &typed("income", "timestamp"), &people()),
        case("an impossible date", SPEC, &table(4, 2, "1873-02-31")),
        case("another date format", SPEC, &table(4, 2, "31.12.1873")),
        case(
            "steps over text",
            &spec("hierarchy = { mask = \"right\" }", "hierarchy = { steps = [5, 10] }"),
            &people(),
        ),
        case(
            "too many digits for steps",
            &spec("income = \"quasi\"", "income = { role = \"quasi\", hierarchy = { steps = [5] } }"),
            &table(4, 4, "7731013123456789012345678901234567890123456789"),
        ),
        case("masks already", SPEC, &table(4, 3, "971****")),
        case("ranges already", SPEC, &table(4, 4, "\"[7731013,7731014]\"")),
        case("missing from a hierarchy", &by_file, &people()).file("place.csv", hierarchy.as_bytes()),
        case("a bad hierarchy", &by_file, &people()).file("place.csv", two_parents.as_bytes()),
        case("null persons", SPEC, &table(4, 1, "")),
        case(
            "no hierarchy for t",
            &spec(of_illness, "illness = { role = \"sensitive\", t = 0.3, distance = \"hierarchical\" }"),
            &people(),
        ),
        case(
            "no order for t",
            &spec(of_illness, "illness = { role = \"sensitive\", t = 0.3, distance = \"ordered\" }"),
            &people(),
        ),
    ]);
}

#[test]
fn no_cell_is_shown_where_the_requirement_can_not_be_reached() {
    let own_k = spec("wish = \"drop\"", "wish = \"person_k\"");
    let of_illness = "illness = { role = \"sensitive\", l = 2 }";
    let sensitive = |settings: &str| spec(of_illness, &format!("illness = {{ role = \"sensitive\", {settings} }}"));
    let limited = own_k.replace("k = 2\n", "k = 2\nmax_suppressed = 0.2\nleftovers = \"suppress\"\n");
    let without_person = own_k
        .replace("person = \"person\"\n", "")
        .replace("[tables.people.columns]", "[tables.people.columns]\nperson = \"drop\"");
    assert_silent(&[
        case("an own k above all", &own_k, &people()),
        case("an own k above all, each row a person", &without_person, &people()),
        case("one own k above all", &own_k, &people().replace(",99000", ",").replace(",99001", ",")),
        case("own k with a limit", &limited, &people()),
        case("an own k that is no number", &own_k, &table(4, 7, "canarywish")),
        case("an own k below 0", &own_k, &table(4, 7, "-990005")),
        case("an own k beyond 32 bits", &own_k, &table(4, 7, "99000512345678")),
        case("k", &spec("k = 2", "k = 500"), &people()),
        case("l", &sensitive("l = 9"), &people()),
        case("entropy l", &sensitive("entropy_l = 9"), &people()),
        case("t", &sensitive("t = 0.0001"), &people()),
        case("alpha", &sensitive("alpha = 0.01"), &people()),
    ]);
}

#[test]
fn no_cell_is_shown_beside_a_register() {
    let with_register = SPEC.to_owned() + REGISTER;
    let city: String =
        people().lines().map(|line| line.split(',').collect::<Vec<_>>()[1..5].join(",") + "\n").collect();
    let nulls = city.replace(&cells(3)[4], "");
    let refuse = with_register.clone() + "[register]\nmissing = \"refuse\"\n";
    let twice = people() + &people().lines().last().unwrap().replace("canaryid11x", "canaryid91x") + "\n";
    assert_silent(&[
        case("well", &with_register, &people()).file("city.csv", city.as_bytes()),
        case("nulls", &refuse, &people()).file("city.csv", nulls.as_bytes()),
        case("a person twice", &with_register, &twice).file("city.csv", city.as_bytes()),
        case("a register person twice", &with_register, &people())
            .file("city.csv", format!("{city}{}\n", cells(3)[1..5].join(",")).as_bytes()),
        case("other columns", &with_register, &people()).file("city.csv", city.replace("born", "birth").as_bytes()),
        case("other types", &with_register, &people()).file("city.csv", city.replace("77", "canary77").as_bytes()),
        case("another file", &with_register.replace("key =", "sha256 = \"00\"\nkey ="), &people())
            .file("city.csv", city.as_bytes()),
        case("too few", &with_register.replace("k = 2", "k = 500"), &people()).file("city.csv", city.as_bytes()),
    ]);
}

#[test]
fn no_cell_is_shown_of_many_tables() {
    let parents = "k = 2\n[tables.people]\nfile = \"people.csv\"\nperson = \"person\"\n[tables.people.columns]\n\
        id = \"identifier\"\nborn = { role = \"quasi\", hierarchy = \"date\" }\nplace = \"quasi\"\nincome = \"quasi\"\n\
        illness = \"sensitive\"\nnote = \"drop\"\nwish = \"drop\"\n[tables.visits]\nfile = \"visits.csv\"\nkey = \"visit\"\n\
        parent = { table = \"people\", foreign_key = \"person\" }\n[tables.visits.columns]\nward = \"quasi\"\n";
    let visits = |from: usize| -> String {
        let row = |at: usize| format!("canaryvisit{at:02}x,{},canaryward{:02}x\n", cells(at)[1], at % 3);
        "visit,person,ward\n".to_owned() + &(from..N_PERSONS + from).map(row).collect::<String>()
    };
    let twice = visits(0) + &visits(0).lines().last().map(|line| line.to_owned() + "\n").unwrap();
    let with =
        |name, visits: String| case(name, parents, &people()).file("visits.csv", visits.as_bytes()).only(ANONYMIZE);
    assert_silent(&[
        with("well", visits(0)),
        with("visits of nobody", visits(3)),
        with("a visit twice", twice),
        with("visits without a person", visits(0).replace(&cells(4)[1], "")),
        with("another type", visits(0).replace("canaryward", "77")),
    ]);
}

#[test]
fn no_cell_is_shown_when_a_release_is_not_of_its_input() {
    let folder = Folder::with(&[("release.toml", SPEC), ("people.csv", &people())]);
    let ran = folder.run(ANONYMIZE);
    assert_eq!(ran.code, 0, "{ran}");
    let canaries = case("", SPEC, &people()).canaries();
    let mut others = Vec::new();
    for column in [1, 2, 3, 4, 5, 6] {
        let moved: Vec<[String; 8]> = (0..N_PERSONS)
            .map(|person| {
                let mut cells = cells(person);
                cells[column] = self::cells(person + 13)[column].clone();
                cells
            })
            .collect();
        let rows = moved.iter().map(|cells| cells.join(",") + "\n");
        others.push(HEADER.to_owned() + "\n" + &rows.collect::<String>());
    }
    others.push(people().lines().take(9).map(|line| line.to_owned() + "\n").collect());
    for other in others {
        folder.write("people.csv", other.as_bytes());
        let known: BTreeSet<String> = canaries.union(&case("", SPEC, &other).canaries()).cloned().collect();
        for json in [&[][..], &["--json"]] {
            let ran = folder.run(&[&["verify", "out", "--against", "release.toml"], json].concat());
            let text = ran.to_string();
            let leak = known.iter().find(|canary| text.contains(canary.as_str()));
            assert_eq!(leak, None, "{ran}");
        }
    }
}
