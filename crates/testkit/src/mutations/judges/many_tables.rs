//! [`ManyTables`]: a release of several tables that keys connect.

use std::collections::{BTreeMap, BTreeSet};

use kohort_model::spec::Keys;
use kohort_model::{Requirement, Role, Schema, Table};

use super::{Figures, Judgement, assign};
use crate::mutations::{Cell, Sheet};
use crate::oracle::{cell_loss, covers};

/// Private tables, and what is required of their release.
pub struct ManyTables<'a> {
    /// The private tables.
    pub tables: &'a [Table],
    /// How keys connect them.
    pub schema: &'a Schema,
    /// The requirements on each table.
    pub requirements: &'a [Vec<Requirement>],
    /// Whether keys are renumbered.
    pub keys: Keys,
    /// The largest share of persons that may be left out.
    pub max_suppressed: f64,
}

/// The rows of all tables, and how they are connected.
struct Joined {
    /// For each table and row, the row's parent.
    parents: Vec<Vec<Option<usize>>>,
    /// For each table, reference and row, the row that it names.
    targets: Vec<Vec<Vec<Option<usize>>>>,
}

/// For each table, sets of rows that nobody can tell apart.
type Orbits = Vec<Vec<Vec<usize>>>;

impl ManyTables<'_> {
    /// Judges released sheets, which are in the order of the tables.
    pub fn judge(&self, sheets: &[Sheet]) -> Judgement {
        match self.figures(sheets) {
            Ok((figures, true)) => Judgement::True(figures),
            Ok((figures, false)) => Judgement::Unmet(figures),
            Err(reason) => Judgement::Untrue(reason.to_owned()),
        }
    }

    /// The figures, and whether every requirement holds.
    fn figures(&self, sheets: &[Sheet]) -> Result<(Figures, bool), &'static str> {
        for (table, sheet) in sheets.iter().enumerate() {
            if sheet.columns != self.expected(table) {
                return Err("the columns are not the expected ones");
            }
            if self.schema.roots().contains(&table) && sheet.rows.is_empty() {
                return Err("no person is released");
            }
        }
        let released = self.join(sheets)?;
        let private = self.join(&self.private_sheets())?;
        let mut figures = Figures::new();
        let mut is_met = true;
        let (mut n_in, mut n_out) = (0, 0);
        for root in self.schema.roots() {
            let (n_private, n_released) = (self.tables[root].n_rows, sheets[root].rows.len());
            let fits = |row: usize, source: usize| self.fits(root, row, source, sheets, &released, &private);
            if assign(n_released, n_private, fits).is_none() {
                return Err("no way to trace persons back");
            }
            is_met &= (n_private - n_released) as f64 <= self.max_suppressed * n_private as f64 + 1e-9;
            n_in += n_private;
            n_out += n_released;
        }
        let orbits = self.orbits(sheets, &released);
        self.refuse_circles(&released)?;
        is_met &= self.is_met(sheets, &released, &orbits);
        for (key, n) in [("persons/in", n_in), ("persons/out", n_out), ("persons/suppressed", n_in - n_out)] {
            figures.insert(key.to_owned(), Some(n as f64));
        }
        for (table, sheet) in sheets.iter().enumerate() {
            let n_private = self.tables[table].n_rows;
            if sheet.rows.len() > n_private {
                return Err("more rows are released than the private table has");
            }
            figures.insert(format!("tables/{table}/rows_in"), Some(n_private as f64));
            figures.insert(format!("tables/{table}/rows_suppressed"), Some((n_private - sheet.rows.len()) as f64));
        }
        self.add_classes(&orbits, &mut figures);
        self.add_sensitive(sheets, &released, &orbits, &mut figures);
        self.add_loss(sheets, &orbits, &mut figures);
        let mut place = 0;
        for (table, of_table) in released.targets.iter().enumerate() {
            for targets in of_table {
                let kept = targets.iter().filter(|target| target.is_some()).count();
                figures.insert(format!("references/{place}/kept"), Some(kept as f64));
                let column = &self.tables[table].columns[self.schema.tables[table].references[0].column];
                let named = (0..self.tables[table].n_rows).filter(|&row| column.cell(row).is_some()).count();
                // If everybody is released, a reference that is null now was removed on purpose.
                if sheets[table].rows.len() == self.tables[table].n_rows {
                    figures.insert(format!("references/{place}/removed"), Some((named.saturating_sub(kept)) as f64));
                }
                place += 1;
            }
        }
        Ok((figures, is_met))
    }

    fn expected(&self, table: usize) -> Vec<String> {
        let columns = self.tables[table].columns.iter().enumerate();
        let is_released = |(position, role): (usize, Role)| match role {
            Role::Quasi | Role::Sensitive | Role::Plain => true,
            Role::Key => self.schema.joins_by(table, position),
            Role::Identifier | Role::PersonK | Role::Drop => false,
        };
        columns
            .filter(|(position, column)| is_released((*position, column.role)))
            .map(|(_, column)| column.name.clone())
            .collect()
    }

    fn private_sheets(&self) -> Vec<Sheet> {
        let sheet = |table: &Table| Sheet {
            columns: table.columns.iter().map(|column| column.name.clone()).collect(),
            rows: (0..table.n_rows)
                .map(|row| table.columns.iter().map(|column| column.cell(row).map(str::to_owned)).collect())
                .collect(),
        };
        self.tables.iter().map(sheet).collect()
    }

    /// Follows keys. Every key must exist and be unique, every foreign key must name a row, and every reference a row
    /// or nothing.
    fn join(&self, sheets: &[Sheet]) -> Result<Joined, &'static str> {
        let name = |table: usize, column: usize| self.tables[table].columns[column].name.as_str();
        let cells = |table: usize, column: usize| {
            let place = sheets[table].position(name(table, column)).expect("columns were compared");
            sheets[table].column(place)
        };
        let mut joined = Joined { parents: Vec::new(), targets: Vec::new() };
        let key_of = |table: usize| -> Result<BTreeMap<String, usize>, &'static str> {
            let key = self.schema.tables[table].key.or(self.tables[table].person).ok_or("a table has no key")?;
            let mut rows = BTreeMap::new();
            for (row, cell) in cells(table, key).into_iter().enumerate() {
                if rows.insert(cell.ok_or("a key is null")?, row).is_some() {
                    return Err("a key occurs twice");
                }
            }
            Ok(rows)
        };
        for (table, entry) in self.schema.tables.iter().enumerate() {
            let parents = match entry.parent {
                None => vec![None; sheets[table].rows.len()],
                Some(parent) => {
                    let keys = key_of(parent.table)?;
                    let find = |cell: Cell| cell.and_then(|cell| keys.get(&cell).copied());
                    let found: Vec<Option<usize>> = cells(table, parent.foreign_key).into_iter().map(find).collect();
                    if found.contains(&None) {
                        return Err("a row has no parent row");
                    }
                    found
                }
            };
            joined.parents.push(parents);
            let mut of_table = Vec::new();
            for reference in &entry.references {
                let keys = key_of(reference.table)?;
                let mut targets = Vec::new();
                for cell in cells(table, reference.column) {
                    targets.push(match cell {
                        None => None,
                        Some(cell) => Some(*keys.get(&cell).ok_or("a reference names no row")?),
                    });
                }
                of_table.push(targets);
            }
            joined.targets.push(of_table);
        }
        Ok(joined)
    }

    fn children(&self, table: usize, row: usize, joined: &Joined) -> Vec<(usize, Vec<usize>)> {
        let of_table = |child: usize| {
            let parents = &joined.parents[child];
            (child, (0..parents.len()).filter(|&other| parents[other] == Some(row)).collect())
        };
        self.schema.children(table).into_iter().map(of_table).collect()
    }

    /// Whether a released row and all rows below it can come from a private row and some rows below it.
    fn fits(
        &self,
        table: usize,
        row: usize,
        source: usize,
        sheets: &[Sheet],
        released: &Joined,
        private: &Joined,
    ) -> bool {
        let own = sheets[table].columns.iter().zip(&sheets[table].rows[row]).all(|(name, cell)| {
            let column = self.tables[table].column(name).expect("columns were compared");
            match column.role {
                Role::Quasi => covers(column, cell.as_deref(), column.cell(source)),
                Role::Key => match self.keys {
                    // Surrogate keys are compared through the rows that they join.
                    Keys::Surrogate => true,
                    Keys::Keep => cell.as_deref() == column.cell(source),
                },
                _ => cell.as_deref() == column.cell(source),
            }
        });
        let below = self.children(table, row, released).into_iter().zip(self.children(table, source, private));
        own && below.into_iter().all(|((child, rows), (_, sources))| {
            let fits = |a: usize, b: usize| self.fits(child, rows[a], sources[b], sheets, released, private);
            assign(rows.len(), sources.len(), fits).is_some()
        })
    }

    fn quasi(&self, table: usize, row: usize, sheets: &[Sheet]) -> Vec<Cell> {
        let quasi = self.tables[table].columns.iter().filter(|column| column.role == Role::Quasi);
        let cell = |name: &str| sheets[table].rows[row][sheets[table].position(name).expect("it was compared")].clone();
        quasi.map(|column| cell(&column.name)).collect()
    }

    /// What a row and all rows below it look like, with one row marked.
    fn form(&self, table: usize, row: usize, mark: (usize, usize), sheets: &[Sheet], joined: &Joined) -> String {
        let below = self.children(table, row, joined).into_iter().map(|(child, rows)| {
            let mut forms: Vec<String> =
                rows.into_iter().map(|row| self.form(child, row, mark, sheets, joined)).collect();
            forms.sort();
            format!("{child}{forms:?}")
        });
        let below: Vec<String> = below.collect();
        let sign = if (table, row) == mark { "!" } else { "" };
        format!("{sign}{:?}{below:?}", self.quasi(table, row, sheets))
    }

    fn root_of(&self, mut table: usize, mut row: usize, joined: &Joined) -> (usize, usize) {
        while let Some(parent) = joined.parents[table][row] {
            table = self.schema.tables[table].parent.expect("the row has a parent").table;
            row = parent;
        }
        (table, row)
    }

    /// Rows that some symmetry of the whole release exchanges.
    fn orbits(&self, sheets: &[Sheet], joined: &Joined) -> Orbits {
        if self.schema.has_references() {
            return self.orbits_by_trying(sheets, joined);
        }
        let of_table = |table: usize| {
            let mut looks: BTreeMap<String, Vec<usize>> = BTreeMap::new();
            for row in 0..sheets[table].rows.len() {
                let (root, person) = self.root_of(table, row, joined);
                looks.entry(self.form(root, person, (table, row), sheets, joined)).or_default().push(row);
            }
            looks.into_values().collect()
        };
        (0..sheets.len()).map(of_table).collect()
    }

    /// Tries every permutation of the rows of the only table.
    fn orbits_by_trying(&self, sheets: &[Sheet], joined: &Joined) -> Orbits {
        assert_eq!(sheets.len(), 1, "references are tried within one table");
        let n_rows = sheets[0].rows.len();
        let looks: Vec<Vec<Cell>> = (0..n_rows).map(|row| self.quasi(0, row, sheets)).collect();
        let mut orbit_of: Vec<usize> = (0..n_rows).collect();
        let mut try_all = |permutation: &[usize]| {
            let keeps = |row: usize| {
                let is_kept = |targets: &Vec<Option<usize>>| {
                    targets[permutation[row]] == targets[row].map(|target| permutation[target])
                };
                looks[row] == looks[permutation[row]] && joined.targets[0].iter().all(is_kept)
            };
            if (0..n_rows).all(keeps) {
                for (row, &other) in permutation.iter().enumerate() {
                    let (a, b) = (orbit_of[row], orbit_of[other]);
                    orbit_of.iter_mut().filter(|orbit| **orbit == a.max(b)).for_each(|orbit| *orbit = a.min(b));
                }
            }
        };
        permute(&mut (0..n_rows).collect::<Vec<_>>(), 0, &mut try_all);
        let mut orbits: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        orbit_of.into_iter().enumerate().for_each(|(row, orbit)| orbits.entry(orbit).or_default().push(row));
        vec![orbits.into_values().collect()]
    }

    /// Refuses circles of references, because a release with circles makes no claim about who looks the same.
    fn refuse_circles(&self, joined: &Joined) -> Result<(), &'static str> {
        for (table, of_table) in joined.targets.iter().enumerate() {
            for targets in of_table {
                for row in 0..targets.len() {
                    let mut at = Some(row);
                    for _ in 0..=targets.len() {
                        at = at.and_then(|at| targets[at]);
                    }
                    if at.is_some() && self.schema.tables[table].references.iter().any(|entry| entry.table == table) {
                        return Err("references make a circle");
                    }
                }
            }
        }
        Ok(())
    }

    fn is_met(&self, sheets: &[Sheet], joined: &Joined, orbits: &Orbits) -> bool {
        for (table, asked) in self.requirements.iter().enumerate() {
            for requirement in asked {
                let is_of_persons = self.schema.roots().contains(&table);
                for orbit in &orbits[table] {
                    let holds = match requirement {
                        Requirement::K(k) => !is_of_persons || orbit.len() >= *k as usize,
                        Requirement::DistinctL { column, l } => {
                            self.diversity(sheets, joined, table, column, orbit) >= *l as usize
                        }
                        Requirement::PersonK { .. }
                        | Requirement::EntropyL { .. }
                        | Requirement::RecursiveCL { .. }
                        | Requirement::TCloseness { .. }
                        | Requirement::Alpha { .. }
                        | Requirement::Beta { .. }
                        | Requirement::EnhancedBeta { .. } => panic!("{requirement:?} is not tried over many tables"),
                    };
                    if !holds {
                        return false;
                    }
                }
            }
        }
        true
    }

    /// The values of a column in some rows, each with its person.
    fn held(
        &self,
        sheets: &[Sheet],
        joined: &Joined,
        (table, column): (usize, &str),
        rows: &[usize],
    ) -> Vec<(Cell, usize)> {
        let place = sheets[table].position(column).expect("it was compared");
        let held = |&row: &usize| (sheets[table].rows[row][place].clone(), self.root_of(table, row, joined).1);
        rows.iter().map(held).collect()
    }

    /// The largest l for which there are l distinct values, none of which more than 1/l of the persons have.
    fn diversity(&self, sheets: &[Sheet], joined: &Joined, table: usize, column: &str, rows: &[usize]) -> usize {
        let held = self.held(sheets, joined, (table, column), rows);
        let values: BTreeSet<&Cell> = held.iter().map(|(value, _)| value).collect();
        let persons: BTreeSet<usize> = held.iter().map(|&(_, person)| person).collect();
        let most = values.iter().map(|value| holders(&held, value)).max().unwrap_or(1);
        values.len().min(persons.len() / most)
    }

    fn add_classes(&self, orbits: &Orbits, figures: &mut Figures) {
        let sizes: Vec<usize> =
            self.schema.roots().into_iter().flat_map(|root| orbits[root].iter().map(Vec::len)).collect();
        let k = sizes.iter().copied().min().unwrap_or(0) as f64;
        let n_persons: usize = sizes.iter().sum();
        figures.insert("achieved/k".to_owned(), Some(k));
        figures.insert("classes".to_owned(), Some(sizes.len() as f64));
        figures.insert("risk/highest/after".to_owned(), Some(1.0 / k));
        figures.insert("risk/average/after".to_owned(), Some(sizes.len() as f64 / n_persons as f64));
    }

    fn add_sensitive(&self, sheets: &[Sheet], joined: &Joined, orbits: &Orbits, figures: &mut Figures) {
        for (table, private) in self.tables.iter().enumerate() {
            for column in private.columns.iter().filter(|column| column.role == Role::Sensitive) {
                let (mut l, mut entropy, mut t, mut alpha, mut beta) = (usize::MAX, f64::MAX, 0.0f64, 0.0f64, f64::MIN);
                let everything: Vec<usize> = (0..sheets[table].rows.len()).collect();
                let all = shares(&self.held(sheets, joined, (table, &column.name), &everything));
                for orbit in &orbits[table] {
                    let held = self.held(sheets, joined, (table, &column.name), orbit);
                    let here = shares(&held);
                    let persons: BTreeSet<usize> = held.iter().map(|&(_, person)| person).collect();
                    l = l.min(self.diversity(sheets, joined, table, &column.name, orbit));
                    entropy = entropy.min(here.values().map(|share| -share * share.ln()).sum());
                    let most = here.keys().map(|value| holders(&held, value)).max().unwrap_or(0);
                    alpha = alpha.max(most as f64 / persons.len() as f64);
                    let extra = |value: &Cell| here.get(value).copied().unwrap_or(0.0) - all[value];
                    t = t.max(all.keys().map(|value| extra(value).abs()).sum::<f64>() / 2.0);
                    beta = here.keys().map(|value| extra(value) / all[value]).fold(beta, f64::max);
                }
                let name = match self.tables.len() {
                    1 => column.name.clone(),
                    _ => format!("{}.{}", private.name, column.name),
                };
                if orbits[table].is_empty() {
                    figures.insert(format!("achieved/sensitive/{name}"), None);
                    continue;
                }
                let path = |measure: &str| format!("achieved/sensitive/{name}/{measure}");
                figures.insert(path("l"), Some(l as f64));
                figures.insert(path("entropy_l"), Some(entropy.exp()));
                figures.insert(path("t"), Some(t));
                figures.insert(path("alpha"), Some(alpha));
                figures.insert(path("beta"), Some(beta));
            }
        }
    }

    fn add_loss(&self, sheets: &[Sheet], orbits: &Orbits, figures: &mut Figures) {
        let [root] = self.schema.roots()[..] else { panic!("one table of persons is tried") };
        let (n_in, n_out) = (self.tables[root].n_rows as f64, sheets[root].rows.len() as f64);
        let k = self.requirements[root].iter().filter_map(Requirement::k).max().unwrap_or(1);
        let squares = orbits[root].iter().map(|orbit| (orbit.len() * orbit.len()) as f64).sum::<f64>();
        let of_persons = [
            ("dm", squares + (n_in - n_out) * n_in),
            ("average_class", n_out / orbits[root].len() as f64),
            ("k_deviation", squares - n_out * f64::from(k)),
        ];
        let (mut all_lm, mut all_ncp, mut all_cells) = (0.0, 0.0, 0.0);
        for (table, private) in self.tables.iter().enumerate() {
            let left_out = (private.n_rows - sheets[table].rows.len()) as f64;
            let (mut table_lm, mut table_ncp, mut table_cells) = (0.0, 0.0, 0.0);
            for column in private.columns.iter().filter(|column| column.role == Role::Quasi) {
                let cells = sheets[table].column(sheets[table].position(&column.name).expect("it was compared"));
                let losses: Vec<(f64, f64)> = cells.iter().map(|cell| cell_loss(column, cell.as_deref())).collect();
                let lm = losses.iter().map(|(lm, _)| lm).sum::<f64>() + left_out;
                table_ncp += losses.iter().map(|(_, ncp)| ncp).sum::<f64>() + left_out;
                table_lm += lm;
                table_cells += private.n_rows as f64;
                let mean = Some(lm / private.n_rows as f64);
                figures.insert(format!("loss/columns/{}", column.name), mean);
                figures.insert(format!("table_loss/{}/columns/{}", private.name, column.name), mean);
            }
            add_sums(&format!("table_loss/{}", private.name), (table_lm, table_ncp, table_cells), of_persons, figures);
            all_lm += table_lm;
            all_ncp += table_ncp;
            all_cells += table_cells;
        }
        add_sums("loss", (all_lm, all_ncp, all_cells), of_persons, figures);
    }
}

fn add_sums(path: &str, (lm, ncp, n_cells): (f64, f64, f64), of_persons: [(&str, f64); 3], figures: &mut Figures) {
    let n_cells = f64::max(n_cells, 1.0);
    let of_cells = [("lm", lm / n_cells), ("ncp", ncp / n_cells), ("uncertainty_penalty", lm)];
    for (key, figure) in of_cells.into_iter().chain(of_persons) {
        figures.insert(format!("{path}/{key}"), Some(figure));
    }
}

fn holders(held: &[(Cell, usize)], value: &Cell) -> usize {
    held.iter().filter(|(other, _)| other == value).map(|&(_, person)| person).collect::<BTreeSet<_>>().len()
}

fn shares(held: &[(Cell, usize)]) -> BTreeMap<Cell, f64> {
    let mut shares = BTreeMap::new();
    held.iter().for_each(|(value, _)| *shares.entry(value.clone()).or_insert(0.0) += 1.0 / held.len() as f64);
    shares
}

fn permute(rows: &mut Vec<usize>, from: usize, visit: &mut impl FnMut(&[usize])) {
    if from == rows.len() {
        visit(rows);
        return;
    }
    for at in from..rows.len() {
        rows.swap(from, at);
        permute(rows, from + 1, visit);
        rows.swap(from, at);
    }
}
