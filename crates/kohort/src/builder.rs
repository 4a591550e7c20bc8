//! [`JobBuilder`]: everything that a spec file can say, said by a program.
//!
//! A builder makes the same document that a spec file holds, and the finished document is read like a file. So builders and
//! files can't come to mean different things, and the same checks find every problem.

mod audience;
mod hierarchy;
mod register;
mod requirement;
mod table;

use std::path::{Path, PathBuf};

use kohort_io::InMemory;
use kohort_model::Spec;
use kohort_model::spec::SpecError;
use toml::Value;

pub use audience::{Audience, Coalition};
pub use hierarchy::Hierarchy;
pub use register::Register;
pub use requirement::{BetaLikeness, ColumnRequirement, LDiversity, TCloseness};
pub use table::Table;

use crate::error::{Error, Report};
use crate::{Job, Release};

/// Everything a spec can say, key by key.
///
/// ```no_run
/// use kohort::{Hierarchy, JobBuilder, LDiversity, Table};
///
/// # fn main() -> Result<(), kohort::Error> {
/// let release = JobBuilder::new(5)
///     .table("patient", Table::from_file("patient.csv").person("id").quasi("age", Hierarchy::steps([5, 10])))
///     .table(
///         "visit",
///         Table::from_file("visit.parquet").parent("patient", "id").sensitive("code", [LDiversity::distinct(3)]),
///     )
///     .max_suppressed(0.02)
///     .anonymize()?;
/// release.write("out")?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct JobBuilder {
    document: toml::Table,
    folder: PathBuf,
    beside: Beside,
    accepts_risks: bool,
}

/// The parts of a builder that have no place in the text of a spec.
#[derive(Clone, Debug, Default)]
struct Beside {
    /// Tables and hierarchies in memory, which replace files.
    in_memory: InMemory,
    /// Paths that are not UTF-8, which the text of a spec can't name.
    not_utf8: Vec<PathBuf>,
}

impl Beside {
    /// A path as a spec names it.
    fn name_path(&mut self, path: &Path) -> Value {
        if path.to_str().is_none() {
            self.not_utf8.push(path.to_owned());
        }
        path.to_string_lossy().into_owned().into()
    }
}

impl JobBuilder {
    /// A release in which nobody can be told apart from k-1 others. There is no default k.
    pub fn new(k: u32) -> Self {
        JobBuilder::empty().set("k", i64::from(k))
    }

    /// The k of an agency's guideline: `ema` (12) or `cms` (11).
    pub fn preset(name: &str) -> Self {
        JobBuilder::empty().set("preset", name)
    }

    /// Begins with the text of a spec. Paths in it start from the current folder; see [`JobBuilder::folder`].
    ///
    /// # Errors
    /// [`Error::Input`] with every problem of the spec, each with its line.
    pub fn from_toml(spec: &str) -> Result<Self, Error> {
        let unreadable = |message: String| Error::input(message, "see docs/spec.md for what a spec can say");
        Spec::parse(spec).map_err(|problems| {
            let report = |problem: &SpecError| Report { message: problem.to_string(), hint: problem.hint() };
            Error::Input(problems.0.iter().map(report).collect())
        })?;
        let document = spec.parse().map_err(|error: toml::de::Error| unreadable(error.message().to_owned()))?;
        Ok(JobBuilder { document, ..JobBuilder::empty() })
    }

    fn empty() -> Self {
        JobBuilder {
            document: toml::Table::new(),
            folder: PathBuf::new(),
            beside: Beside::default(),
            accepts_risks: false,
        }
    }

    /// Sets the folder from which relative paths start, if it is not the current folder.
    #[must_use]
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = folder.into();
        self
    }

    /// Sets any key of a spec, as `docs/spec.md` lists them: `set("algorithm", "mondrian")`.
    #[must_use]
    pub fn set(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.document.insert(key.to_owned(), value.into());
        self
    }

    /// Sets a key within a section of a spec: `set_in("clustering", "threshold", 0.3)`.
    #[must_use]
    pub fn set_in(mut self, section: &str, key: &str, value: impl Into<Value>) -> Self {
        self.entry(section, key, value.into());
        self
    }

    /// Adds a table. The first table without a parent is the table of persons.
    #[must_use]
    pub fn table(mut self, name: &str, table: Table) -> Self {
        let settings = table.named(name, &mut self.beside);
        self.entry("tables", name, settings.into());
        self
    }

    /// Sets the largest share of persons that may be left out, 0 to 1. Without it nobody may be left out.
    #[must_use]
    pub fn max_suppressed(self, share: f64) -> Self {
        self.set("max_suppressed", share)
    }

    /// Chooses the algorithm by its name in a spec: `auto`, which is the default, `mondrian`, `miracle`, ...
    #[must_use]
    pub fn algorithm(self, name: &str) -> Self {
        self.set("algorithm", name)
    }

    /// Sets the loss that is minimized, as a spec writes it: `lm`, which is usual, `rank`, `entropy` or `target:COLUMN`.
    #[must_use]
    pub fn objective(self, name: &str) -> Self {
        self.set("objective", name)
    }

    /// Sets how much work `auto` spends on classes of less loss, from 1, which is usual, to 1000.
    #[must_use]
    pub fn effort(self, effort: u32) -> Self {
        self.set("effort", i64::from(effort))
    }

    /// Sets the seed of algorithms that use chance. It never appears in the release.
    #[must_use]
    pub fn seed(self, seed: u32) -> Self {
        self.set("seed", i64::from(seed))
    }

    /// Adds a recipient of the release, who may know some columns.
    #[must_use]
    pub fn audience(mut self, name: &str, audience: Audience) -> Self {
        self.entry("audiences", name, audience.settings.into());
        self
    }

    /// Says what must hold if all audiences put together what they know.
    #[must_use]
    pub fn collusion(mut self, asked: Coalition) -> Self {
        for (key, value) in asked.settings {
            self.entry("collusion", &key, value);
        }
        self
    }

    /// Says what must hold if these audiences put together what they know.
    #[must_use]
    pub fn coalition<'n>(mut self, name: &str, audiences: impl IntoIterator<Item = &'n str>, asked: Coalition) -> Self {
        let mut settings = asked.settings;
        settings.insert("audiences".to_owned(), texts(audiences));
        self.entry("collusion", name, settings.into());
        self
    }

    /// Adds a public register. The persons of the private table hide among those of the register.
    #[must_use]
    pub fn register(mut self, name: &str, register: Register) -> Self {
        let settings = register.named(name, &mut self.beside);
        self.entry("registers", name, settings.into());
        self
    }

    /// Bounds how sure a reader may be that a person of the register is in the private table.
    #[must_use]
    pub fn delta_presence(self, least: f64, most: f64) -> Self {
        self.set("delta_presence", vec![Value::from(least), Value::from(most)])
    }

    /// Names the folder of an earlier release of the same people, whose readers may also read this one.
    #[must_use]
    pub fn previous(mut self, folder: &str) -> Self {
        let earlier = self.document.entry("previous").or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(folders) = earlier {
            folders.push(folder.into());
        }
        self
    }

    /// Allows a release although a blatant risk is found. The manifest then names the risk.
    #[must_use]
    pub fn accept_risks(mut self) -> Self {
        self.accepts_risks = true;
        self
    }

    /// The spec file that says the same. Tables in memory are named in it like files.
    pub fn to_toml(&self) -> String {
        self.document.to_string()
    }

    /// Checks the document and makes a job of it.
    ///
    /// # Errors
    /// [`Error::Input`] with every problem.
    pub fn build(&self) -> Result<Job, Error> {
        let not_utf8 = |path: &PathBuf| {
            Report::new(format!("{}: the path is not UTF-8, so no spec can name it", path.display()))
                .hint("rename the file or its folder, or give the table in memory")
        };
        if !self.beside.not_utf8.is_empty() {
            return Err(Error::Input(self.beside.not_utf8.iter().map(not_utf8).collect()));
        }
        let spec = Spec::parse(&self.to_toml()).map_err(|problems| {
            let report = |problem: &SpecError| {
                // The caller has not written the text, so its lines would tell nothing.
                let place = if problem.key.is_empty() { String::new() } else { format!("{}: ", problem.key) };
                Report { message: format!("{place}{}", problem.fault), hint: problem.hint() }
            };
            Error::Input(problems.0.iter().map(report).collect())
        })?;
        let job = Job::new(spec, self.folder.clone()).with_memory(self.beside.in_memory.clone());
        Ok(if self.accepts_risks { job.accept_risks() } else { job })
    }

    /// Reads, anonymizes and verifies. Nothing is written yet.
    ///
    /// # Errors
    /// Those of [`JobBuilder::build`] and [`Job::anonymize`].
    pub fn anonymize(&self) -> Result<Release, Error> {
        self.build()?.anonymize()
    }

    fn entry(&mut self, section: &str, key: &str, value: Value) {
        let section = self.document.entry(section).or_insert_with(|| Value::Table(toml::Table::new()));
        if let Value::Table(section) = section {
            section.insert(key.to_owned(), value);
        }
    }
}

/// A list of texts.
fn texts<'t>(texts: impl IntoIterator<Item = &'t str>) -> Value {
    Value::Array(texts.into_iter().map(Value::from).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The spec with its columns sorted by name, because their order means nothing.
    fn sorted(mut spec: Spec) -> Spec {
        spec.tables.iter_mut().for_each(|table| table.columns.sort_by(|a, b| a.name.cmp(&b.name)));
        spec
    }

    fn problems(builder: &JobBuilder) -> Vec<String> {
        let error = builder.build().unwrap_err();
        assert!(matches!(error, Error::Input(_)));
        error.reports().into_iter().map(|report| report.message).collect()
    }

    #[test]
    fn a_builder_says_what_a_spec_file_says() {
        let text = "\
k = 5
max_suppressed = 0.1
previous = [\"first\"]
[tables.people]
file = \"people.csv\"
person = \"id\"
separator = \";\"
[tables.people.columns]
name = \"identifier\"
age = { role = \"quasi\", hierarchy = { steps = [5, 10] } }
zip = { role = \"quasi\", type = \"text\", hierarchy = { mask = \"right\" } }
sex = { role = \"quasi\", hierarchy = \"flat\" }
birth = { role = \"quasi\", hierarchy = { dates = [\"month\", \"year\"] } }
job = { role = \"quasi\", hierarchy = \"job.csv\" }
disease = { role = \"sensitive\", l = 3, t = 0.2, distance = \"ordered\" }
ward = \"plain\"
note = \"drop\"
wish = \"person_k\"
[registers.voters]
file = \"voters.parquet\"
key = \"no\"
date = 2026-01-01
columns = { age = \"AGE\" }
[register]
method = \"direct\"
";
        let built = JobBuilder::new(5)
            .max_suppressed(0.1)
            .previous("first")
            .table(
                "people",
                Table::from_file("people.csv")
                    .person("id")
                    .set("separator", ";")
                    .identifier("name")
                    .quasi("age", Hierarchy::steps([5, 10]))
                    .quasi("zip", Hierarchy::mask_right())
                    .set_in("zip", "type", "text")
                    .quasi("sex", Hierarchy::flat())
                    .quasi("birth", Hierarchy::dates(["month", "year"]))
                    .quasi("job", Hierarchy::file("job.csv"))
                    .sensitive("disease", [LDiversity::distinct(3), TCloseness::ordered(0.2)])
                    .plain("ward")
                    .drop("note")
                    .person_k("wish"),
            )
            .register("voters", Register::from_file("voters.parquet").key("no").date("2026-01-01").column("age", "AGE"))
            .set_in("register", "method", "direct");
        let spec = sorted(Spec::parse(text).unwrap());
        assert_eq!(sorted(built.build().unwrap().spec), spec);
        assert_eq!(sorted(JobBuilder::from_toml(text).unwrap().build().unwrap().spec), spec);
        assert_eq!(sorted(Spec::parse(&built.to_toml()).unwrap()), spec);
    }

    #[test]
    fn audiences_and_coalitions_are_those_of_a_spec_file() {
        let text = "\
k = 2
[tables.people]
file = \"people.csv\"
[tables.people.columns]
job = { role = \"quasi\", sensitive_to = [\"insurer\"], l = 2 }
disease = { role = \"sensitive\", entropy_l = 2.0 }
[audiences.insurer]
quasi = [\"age\", \"car\"]
[audiences.hr]
quasi = [\"age\", \"job\"]
k = 3
[collusion]
k = 2
[collusion.both]
audiences = [\"insurer\", \"hr\"]
k = 2
[collusion.both.sensitive]
disease = { l = 2 }
";
        let built = JobBuilder::new(2)
            .table(
                "people",
                Table::from_file("people.csv")
                    .quasi("job", Hierarchy::none())
                    .sensitive_to("job", ["insurer"], [LDiversity::distinct(2)])
                    .sensitive("disease", [LDiversity::entropy(2.0)]),
            )
            .audience("insurer", Audience::knows(["age", "car"]))
            .audience("hr", Audience::knows(["age", "job"]).k(3))
            .collusion(Coalition::default().k(2))
            .coalition(
                "both",
                ["insurer", "hr"],
                Coalition::default().k(2).sensitive("disease", [LDiversity::distinct(2)]),
            );
        assert_eq!(sorted(built.build().unwrap().spec), sorted(Spec::parse(text).unwrap()));
    }

    #[cfg(unix)]
    #[test]
    fn paths_that_are_not_utf_8_are_refused() {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt;
        let path = |name: &[u8]| PathBuf::from(OsStr::from_bytes(name));
        let people = Table::from_file(path(b"people\xff.csv"))
            .quasi("age", Hierarchy::none())
            .quasi("job", Hierarchy::file(path(b"job\xff.csv")));
        let town = Register::from_file(path(b"town\xff.csv")).key("no");
        let found = problems(&JobBuilder::new(2).table("people", people).register("town", town));
        let refused = |name: &str| format!("{name}\u{fffd}.csv: the path is not UTF-8, so no spec can name it");
        assert_eq!(found, ["job", "people", "town"].map(refused));
        // A valid path may contain the replacement character itself.
        assert!(
            JobBuilder::new(2)
                .table("a", Table::from_file("\u{fffd}.csv").quasi("x", Hierarchy::none()))
                .build()
                .is_ok()
        );
    }

    #[test]
    fn everything_that_is_wrong_is_said_at_once_and_without_lines() {
        let found = problems(
            &JobBuilder::new(0)
                .algorithm("magic")
                .table("people", Table::from_file("people.csv").sensitive("x", [LDiversity::distinct(0)])),
        );
        assert_eq!(found.len(), 4, "{found:?}");
        assert!(found.iter().all(|message| !message.contains("line")), "{found:?}");
        assert!(found[0].starts_with("k: must be a whole number"), "{found:?}");
    }
}
