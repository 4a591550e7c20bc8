//! A random job as the files a user would have: a CSV table, a spec and hierarchies.

use std::collections::BTreeMap;

use kohort_model::spec::{Childless, Choose, Cuts, Keys, Leftovers, Objective, Order, Pairing, ParentSpec};
use kohort_model::{Column, Distance, Hierarchy, Requirement, Role, Spec, Steer, Table};

use super::Job;
use super::audiences::AudiencesJob;
use super::snowflake::TablesJob;

impl Job {
    /// The table as CSV.
    pub fn csv(&self) -> String {
        csv(&self.table)
    }

    /// The hierarchies as files of paths.
    pub fn hierarchy_files(&self) -> BTreeMap<String, String> {
        hierarchy_files(&self.table, "")
    }

    /// The files by name, the spec as `release.toml`.
    pub fn files(&self) -> BTreeMap<String, String> {
        let mut files = self.hierarchy_files();
        files.insert("table.csv".to_owned(), self.csv());
        files.insert("release.toml".to_owned(), self.spec_text());
        files
    }

    /// The spec. A key can occur only once, so if a column has two requirements of one kind, only the first is written.
    pub fn spec_text(&self) -> String {
        let columns =
            self.table.columns.iter().map(|column| column_spec(column, "", &asked_of(column, &self.requirements), ""));
        self.spec_with(&columns.collect::<Vec<_>>(), "", "")
    }

    /// The spec with lines of its own at the top and at the end.
    fn spec_with(&self, columns: &[String], top: &str, end: &str) -> String {
        let spec = &self.spec;
        let leftovers = match spec.leftovers {
            Leftovers::Merge => "merge",
            Leftovers::Suppress => "suppress",
        };
        let order = match spec.order {
            Order::Sorted => "sorted",
            Order::Input => "input",
        };
        let keys = match spec.keys {
            Keys::Surrogate => "surrogate",
            Keys::Keep => "keep",
        };
        let cuts = match spec.mondrian.cuts {
            Cuts::Strict => "strict",
            Cuts::Relaxed => "relaxed",
        };
        let choose = match spec.mondrian.choose {
            Choose::Widest => "widest",
            Choose::RoundRobin => "round-robin",
        };
        let objective = match spec.full_domain.objective {
            Objective::Lm => "lm",
            Objective::Dm => "dm",
        };
        let datafly = spec.datafly.block.map_or(String::new(), |block| format!("[datafly]\nblock = {block}\n"));
        let person =
            self.table.person_column().map_or(String::new(), |column| format!("person = \"{}\"\n", column.name));
        format!(
            "{top}k = {}\nalgorithm = \"{}\"\nobjective = \"{}\"\nmax_suppressed = {:?}\n\
             leftovers = \"{leftovers}\"\norder = \"{order}\"\nkeys = \"{keys}\"\n[mondrian]\ncuts = \"{cuts}\"\nchoose = \"{choose}\"\n\
             {datafly}[full_domain]\nobjective = \"{objective}\"\n\
             [tables.{}]\nfile = \"table.csv\"\n{person}[tables.{}.columns]\n{}\n{end}",
            spec.k,
            spec.algorithm.word(),
            spec.objective.word(),
            spec.max_suppressed,
            self.table.name,
            self.table.name,
            columns.join("\n")
        )
    }
}

/// The requirements on a column, each kind once.
fn asked_of(column: &Column, requirements: &[Requirement]) -> Vec<Requirement> {
    let mut asked: Vec<Requirement> = Vec::new();
    for requirement in requirements.iter().filter(|asked| asked.column() == Some(&column.name)) {
        if asked.iter().all(|other| std::mem::discriminant(other) != std::mem::discriminant(requirement)) {
            asked.push(requirement.clone());
        }
    }
    asked
}

/// The line of a column. The names of hierarchy files start with `files`; `more` are further keys.
fn column_spec(column: &Column, files: &str, asked: &[Requirement], more: &str) -> String {
    let (name, role) = (&column.name, column.role);
    if !matches!(role, Role::Quasi | Role::Sensitive) {
        return format!("{name} = \"{role}\"");
    }
    let file = written_hierarchy(column).map(|_| format!(", hierarchy = \"{}\"", hierarchy_file(column, files)));
    let (value_type, keys) = (column.value_type, requirement_keys(asked));
    format!("{name} = {{ role = \"{role}\", type = \"{value_type}\"{}{keys}{more} }}", file.unwrap_or_default())
}

fn hierarchy_files(table: &Table, files: &str) -> BTreeMap<String, String> {
    let with_hierarchy = table.columns.iter().filter_map(|column| Some((column, written_hierarchy(column)?)));
    with_hierarchy
        .map(|(column, hierarchy)| {
            let path = |leaf: u32| hierarchy.path(leaf).map(|node| hierarchy.label(node)).collect::<Vec<_>>();
            let lines: Vec<String> = hierarchy.leaves().into_iter().map(|leaf| path(leaf).join(";")).collect();
            (hierarchy_file(column, files), lines.join("\n"))
        })
        .collect()
}

fn csv(table: &Table) -> String {
    let names: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
    let mut csv = format!("{}\n", names.join(","));
    for row in 0..table.n_rows {
        let cells: Vec<&str> = table.columns.iter().map(|column| column.cell(row).unwrap_or("")).collect();
        csv += &format!("{}\n", cells.join(","));
    }
    csv
}

impl AudiencesJob {
    /// The files by name, the spec as `release.toml`. If several audiences must not learn a column, only what is
    /// required for the first of them is written.
    pub fn files(&self) -> BTreeMap<String, String> {
        let AudiencesJob { job, audiences } = self;
        let column = |column: &Column| {
            let hidden = audiences.each.iter().find(|audience| !asked_of(column, &audience.requirements).is_empty());
            match (column.role, hidden) {
                (Role::Quasi, Some(audience)) => {
                    let asked = asked_of(column, &audience.requirements);
                    column_spec(column, "", &asked, &format!(", sensitive_to = [\"{}\"]", audience.name))
                }
                _ => column_spec(column, "", &asked_of(column, &job.requirements), ""),
            }
        };
        let mut end = String::new();
        for audience in &audiences.each {
            end += &format!("[audiences.\"{}\"]\nquasi = {:?}\nk = {}\n", audience.name, audience.quasi, audience.k());
        }
        for coalition in &audiences.coalitions {
            end += &match &coalition.name {
                None => "[collusion]\n".to_owned(),
                Some(name) => format!("[collusion.\"{name}\"]\naudiences = {:?}\n", coalition.members),
            };
            end += &coalition.k().map_or_else(String::new, |k| format!("k = {k}\n"));
            let has_own_k = coalition.requirements.iter().any(|asked| asked.own_k_column().is_some());
            end += if has_own_k { "person_k = true\n" } else { "" };
            let sensitive = job.table.columns.iter().filter(|column| column.role == Role::Sensitive);
            for column in sensitive {
                let keys = requirement_keys(&asked_of(column, &coalition.requirements));
                end += &keys
                    .strip_prefix(", ")
                    .map_or_else(String::new, |keys| format!("sensitive.{} = {{ {keys} }}\n", column.name));
            }
        }
        let top = match audiences.steer {
            Steer::All => "",
            Steer::Common => "steer = \"common\"\n",
        };
        let columns: Vec<String> = job.table.columns.iter().map(column).collect();
        let mut files = job.files();
        files.insert("release.toml".to_owned(), job.spec_with(&columns, top, &end));
        files
    }
}

impl TablesJob {
    /// The files by name, the spec as `release.toml`.
    pub fn files(&self) -> BTreeMap<String, String> {
        let Spec { k, algorithm, max_suppressed, order, keys, clustering, .. } = &self.spec;
        let order = if *order == Order::Input { "input" } else { "sorted" };
        let keys = if *keys == Keys::Keep { "keep" } else { "surrogate" };
        let mut spec = format!(
            "k = {k}\nalgorithm = \"{}\"\nmax_suppressed = {max_suppressed:?}\norder = \"{order}\"\nkeys = \"{keys}\"\n",
            algorithm.word()
        );
        spec += "[clustering]\n";
        spec += &clustering.threshold.map_or_else(String::new, |threshold| format!("threshold = {threshold:?}\n"));
        spec += &clustering.cluster_limit.map_or_else(String::new, |limit| format!("cluster_limit = {limit}\n"));
        spec += match clustering.pairing {
            None => "",
            Some(Pairing::Greedy) => "pairing = \"greedy\"\n",
            Some(Pairing::Optimal) => "pairing = \"optimal\"\n",
        };
        let mut files = BTreeMap::new();
        for (table, of_spec) in self.tables.iter().zip(&self.spec.tables) {
            let name = &table.name;
            spec += &format!("[tables.{name}]\nfile = \"{name}.csv\"\n");
            spec += &of_spec.key.as_ref().map_or_else(String::new, |key| format!("key = \"{key}\"\n"));
            spec += &of_spec.person.as_ref().map_or_else(String::new, |person| format!("person = \"{person}\"\n"));
            if let Some(ParentSpec { table, foreign_key }) = &of_spec.parent {
                spec += &format!(
                    "parent = {{ table = \"{table}\", foreign_key = \"{foreign_key}\" }}\norphans = \"drop\"\n"
                );
            }
            spec +=
                &of_spec.max_rows_left_out.map_or_else(String::new, |share| format!("max_rows_left_out = {share:?}\n"));
            spec += if of_spec.childless == Childless::Keep { "childless = \"keep\"\n" } else { "" };
            spec += &format!("[tables.{name}.columns]\n");
            let files_of_table = format!("{name}-");
            for (column, of_spec) in table.columns.iter().zip(&of_spec.columns) {
                spec += &column_spec(column, &files_of_table, &of_spec.requirements, "");
                spec += "\n";
            }
            files.insert(format!("{name}.csv"), csv(table));
            files.extend(hierarchy_files(table, &files_of_table));
        }
        files.insert("release.toml".to_owned(), spec);
        files
    }
}

/// A hierarchy that a file can hold. One that was made for a column of nulls has no rows, so no file can.
fn written_hierarchy(column: &Column) -> Option<&Hierarchy> {
    column.hierarchy.as_deref().filter(|hierarchy| !hierarchy.leaves().is_empty())
}

fn hierarchy_file(column: &Column, files: &str) -> String {
    format!("{files}{}.csv", column.name)
}

/// The requirements on a column as keys of its line in a spec, each after a comma.
pub(super) fn requirement_keys(asked: &[Requirement]) -> String {
    let key = |requirement: &Requirement| match requirement {
        Requirement::K(_) | Requirement::PersonK { .. } => String::new(),
        Requirement::DistinctL { l, .. } => format!(", l = {l}"),
        Requirement::EntropyL { l, .. } => format!(", entropy_l = {l:?}"),
        Requirement::RecursiveCL { c, l, .. } => format!(", recursive_cl = [{c:?}, {l}]"),
        Requirement::TCloseness { t, distance, .. } => {
            let distance = match distance {
                Distance::Equal => "equal",
                Distance::Ordered => "ordered",
                Distance::Hierarchical => "hierarchical",
            };
            format!(", t = {t:?}, distance = \"{distance}\"")
        }
        Requirement::Alpha { alpha, .. } => format!(", alpha = {alpha:?}"),
        Requirement::Beta { beta, .. } => format!(", beta = {beta:?}"),
        Requirement::EnhancedBeta { beta, .. } => format!(", enhanced_beta = {beta:?}"),
    };
    asked.iter().map(key).collect()
}
