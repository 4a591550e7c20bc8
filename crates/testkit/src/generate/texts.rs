//! A random job as the files a user would have: a CSV table, a spec and hierarchies.

use std::collections::BTreeMap;

use kohort_model::spec::{Choose, Cuts, Keys, Leftovers, Objective, Order};
use kohort_model::{Column, Hierarchy, Role};

use super::Job;

impl Job {
    /// The table as CSV.
    pub fn csv(&self) -> String {
        let names: Vec<&str> = self.table.columns.iter().map(|column| column.name.as_str()).collect();
        let mut csv = format!("{}\n", names.join(","));
        for row in 0..self.table.n_rows {
            let cells: Vec<&str> = self.table.columns.iter().map(|column| column.cell(row).unwrap_or("")).collect();
            csv += &format!("{}\n", cells.join(","));
        }
        csv
    }

    /// The hierarchies as files of paths.
    pub fn hierarchy_files(&self) -> BTreeMap<String, String> {
        let with_hierarchy = self.table.columns.iter().filter_map(|column| Some((column, written_hierarchy(column)?)));
        with_hierarchy
            .map(|(column, hierarchy)| {
                let path = |leaf: u32| hierarchy.path(leaf).map(|node| hierarchy.label(node)).collect::<Vec<_>>();
                let lines: Vec<String> = hierarchy.leaves().into_iter().map(|leaf| path(leaf).join(";")).collect();
                (hierarchy_file(column), lines.join("\n"))
            })
            .collect()
    }

    /// The spec, of k alone: requirements on sensitive columns are not written.
    pub fn spec_text(&self) -> String {
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
        let columns: Vec<String> = self.table.columns.iter().map(column_spec).collect();
        let person =
            self.table.person_column().map_or(String::new(), |column| format!("person = \"{}\"\n", column.name));
        format!(
            "k = {}\nalgorithm = \"{}\"\nmax_suppressed = {:?}\nleftovers = \"{leftovers}\"\norder = \"{order}\"\n\
             keys = \"{keys}\"\n[mondrian]\ncuts = \"{cuts}\"\nchoose = \"{choose}\"\n\
             {datafly}[full_domain]\nobjective = \"{objective}\"\n\
             [tables.{}]\nfile = \"table.csv\"\n{person}[tables.{}.columns]\n{}\n",
            spec.k,
            spec.algorithm.word(),
            spec.max_suppressed,
            self.table.name,
            self.table.name,
            columns.join("\n")
        )
    }
}

fn column_spec(column: &Column) -> String {
    match (column.role, written_hierarchy(column)) {
        (Role::Quasi, None) => format!("{} = {{ role = \"quasi\", type = \"{}\" }}", column.name, column.value_type),
        (Role::Quasi, Some(_)) => {
            let (name, value_type, file) = (&column.name, column.value_type, hierarchy_file(column));
            format!("{name} = {{ role = \"quasi\", type = \"{value_type}\", hierarchy = \"{file}\" }}")
        }
        (role, _) => format!("{} = \"{role}\"", column.name),
    }
}

/// A hierarchy that a file can hold: one made for a column of nulls alone has no rows.
fn written_hierarchy(column: &Column) -> Option<&Hierarchy> {
    column.hierarchy.as_deref().filter(|hierarchy| !hierarchy.leaves().is_empty())
}

fn hierarchy_file(column: &Column) -> String {
    format!("{}.csv", column.name)
}
