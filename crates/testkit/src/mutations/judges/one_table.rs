//! [`OneTable`]: a release of one table, for everybody or for audiences.

use std::collections::{BTreeMap, BTreeSet};

use kohort_model::{
    Audiences, Cells, Coalition, Distance, NULL, Release, ReleasedColumn, ReleasedTable, Requirement, Role, Table,
    Texts,
};

use super::{Figures, Judgement, assign};
use crate::mutations::{Cell, Sheet};
use crate::oracle::{
    Labels, Verdict, covers, distance_of, holders_of, judge, naive_loss, naive_spread, person, persons,
};

/// How many ways to trace rows back to persons are tried at most.
const MAX_WAYS: usize = 200_000;

/// A private table, and what is required of its release.
pub struct OneTable<'a> {
    /// The private table.
    pub table: &'a Table,
    /// The requirements on classes, if there are no audiences.
    pub requirements: &'a [Requirement],
    /// The requirements, if there are audiences.
    pub audiences: Option<&'a Audiences>,
    /// The largest share of persons that may be left out.
    pub max_suppressed: f64,
}

/// Columns that somebody knows, and what is required of rows that look the same in them.
struct View<'a> {
    /// The path of its figures in a manifest; `None` if there are no audiences.
    path: Option<String>,
    quasi: Vec<&'a str>,
    requirements: &'a [Requirement],
}

impl OneTable<'_> {
    /// Judges a released sheet.
    pub fn judge(&self, sheet: &Sheet) -> Judgement {
        let is_released = |role: Role| matches!(role, Role::Quasi | Role::Sensitive | Role::Plain);
        let person = self.table.person;
        let columns = self.table.columns.iter().enumerate();
        let expected: Vec<&str> = columns
            .filter(|(position, column)| is_released(column.role) && person != Some(*position))
            .map(|(_, column)| column.name.as_str())
            .collect();
        if sheet.columns != expected {
            return Judgement::Untrue("the columns are not the expected ones".to_owned());
        }
        if sheet.rows.is_empty() || sheet.rows.len() > self.table.n_rows {
            return Judgement::Untrue("no rows, or too many".to_owned());
        }
        let mut last = None;
        for rows in self.ways(sheet) {
            let figures = self.figures(sheet, &rows);
            if self.is_met(sheet, &rows) {
                return Judgement::True(figures);
            }
            last = Some(figures);
        }
        last.map_or_else(|| Judgement::Untrue("no way to trace rows back".to_owned()), Judgement::Unmet)
    }

    /// Ways to trace each released row to a private row: one way if each person has one row, all ways otherwise.
    fn ways(&self, sheet: &Sheet) -> Vec<Vec<u32>> {
        let fits = |row: usize, source: usize| {
            sheet.columns.iter().zip(&sheet.rows[row]).all(|(name, cell)| {
                let column = self.table.column(name).expect("columns were compared");
                match column.role {
                    Role::Quasi => covers(column, cell.as_deref(), column.cell(source)),
                    _ => cell.as_deref() == column.cell(source),
                }
            })
        };
        let all: Vec<u32> = (0..self.table.n_rows as u32).collect();
        if persons(self.table, &all).len() == self.table.n_rows {
            let sizes = self.sizes_for_own_k(sheet);
            let fits = |row: usize, source: usize| fits(row, source) && self.own_k(source) <= sizes[row];
            let way = assign(sheet.rows.len(), self.table.n_rows, fits);
            return way.into_iter().map(|way| way.into_iter().map(|source| source as u32).collect()).collect();
        }
        let mut ways = Vec::new();
        self.trace(sheet, &fits, &mut Vec::new(), &mut ways);
        ways
    }

    fn trace(&self, sheet: &Sheet, fits: &impl Fn(usize, usize) -> bool, way: &mut Vec<u32>, ways: &mut Vec<Vec<u32>>) {
        let row = way.len();
        if row == sheet.rows.len() {
            let left: Vec<u32> = (0..self.table.n_rows as u32).filter(|source| !way.contains(source)).collect();
            if persons(self.table, way).is_disjoint(&persons(self.table, &left)) {
                assert!(ways.len() < MAX_WAYS, "a smaller release is needed");
                ways.push(way.clone());
            }
            return;
        }
        // Trace equal released rows in the order of the private table only: other orders give the same figures.
        let same = (0..row).rev().find(|&other| sheet.rows[other] == sheet.rows[row]);
        let first = same.map_or(0, |other| way[other] as usize + 1);
        for source in first..self.table.n_rows {
            if fits(row, source) && !way.contains(&(source as u32)) {
                way.push(source as u32);
                self.trace(sheet, fits, way, ways);
                way.pop();
            }
        }
    }

    fn own_k(&self, source: usize) -> usize {
        let asked = self.views().into_iter().flat_map(|view| view.requirements);
        let column = asked.into_iter().find_map(|requirement| self.table.column(requirement.own_k_column()?));
        column.and_then(|column| column.cell(source)).map_or(0, |text| text.parse().expect("an own k is a number"))
    }

    /// For each released row, the size of the smallest class of rows that look the same, over all views with an own k.
    fn sizes_for_own_k(&self, sheet: &Sheet) -> Vec<usize> {
        let mut sizes = vec![usize::MAX; sheet.rows.len()];
        for view in self.views() {
            if view.requirements.iter().any(|requirement| requirement.own_k_column().is_some()) {
                for class in classes(sheet, &view.quasi) {
                    class.iter().for_each(|&row| sizes[row] = sizes[row].min(class.len()));
                }
            }
        }
        sizes
    }

    /// The view of everybody or, with audiences, those of the audiences, then all of them together, then the other
    /// coalitions.
    fn views(&self) -> Vec<View<'_>> {
        let quasi = || self.table.columns.iter().filter(|column| column.role == Role::Quasi);
        let all: Vec<&str> = quasi().map(|column| column.name.as_str()).collect();
        let Some(audiences) = self.audiences else {
            return vec![View { path: None, quasi: all, requirements: self.requirements }];
        };
        let mut views: Vec<View<'_>> = Vec::new();
        for audience in &audiences.each {
            let quasi = audience.quasi.iter().map(String::as_str).collect();
            let path = Some(format!("achieved/audiences/{}", audience.name));
            views.push(View { path, quasi, requirements: &audience.requirements });
        }
        let of_all = audiences.coalitions.iter().find(|coalition| coalition.name.is_none());
        let of_all = of_all.map_or(&[][..], |coalition| &coalition.requirements);
        let path = |name: &str| Some(format!("achieved/coalitions/{name}"));
        views.push(View { path: path(Coalition::ALL), quasi: all, requirements: of_all });
        for coalition in &audiences.coalitions {
            if let Some(name) = &coalition.name {
                let requirements = &coalition.requirements;
                views.push(View { path: path(name), quasi: audiences.known_to(coalition), requirements });
            }
        }
        views
    }

    /// Whether a release whose rows come from these private rows satisfies every requirement.
    fn is_met(&self, sheet: &Sheet, rows: &[u32]) -> bool {
        let all: Vec<u32> = (0..self.table.n_rows as u32).collect();
        let (n_in, n_out) = (persons(self.table, &all).len(), persons(self.table, rows).len());
        if (n_in - n_out) as f64 > self.max_suppressed * n_in as f64 + 1e-9 {
            return false;
        }
        let release = self.release(sheet, rows);
        for view in self.views() {
            for class in classes(sheet, &view.quasi) {
                let members: Vec<u32> = class.iter().map(|&row| rows[row]).collect();
                for requirement in view.requirements {
                    let hidden = requirement.column().and_then(|name| self.table.column(name));
                    let holds = match hidden.filter(|column| column.role == Role::Quasi) {
                        Some(column) => Labels::new(self.table, &release, &column.name).satisfies(requirement, &class),
                        None => match judge(self.table, requirement, &members, rows) {
                            Verdict::Holds => true,
                            Verdict::Fails => false,
                            Verdict::TooClose => panic!("{requirement:?} is decided by rounding: ask for another"),
                        },
                    };
                    if !holds {
                        return false;
                    }
                }
            }
        }
        true
    }

    /// The figures that a manifest of this release must have.
    fn figures(&self, sheet: &Sheet, rows: &[u32]) -> Figures {
        let all: Vec<u32> = (0..self.table.n_rows as u32).collect();
        let (n_in, n_out) = (persons(self.table, &all).len(), persons(self.table, rows).len());
        let release = self.release(sheet, rows);
        let views = self.views();
        let mut figures = Figures::new();
        let mut set = |path: String, figure: f64| {
            figures.insert(path, Some(figure));
        };
        set("persons/in".to_owned(), n_in as f64);
        set("persons/out".to_owned(), n_out as f64);
        set("persons/suppressed".to_owned(), (n_in - n_out) as f64);
        set("tables/0/rows_in".to_owned(), self.table.n_rows as f64);
        set("tables/0/rows_suppressed".to_owned(), (self.table.n_rows - rows.len()) as f64);
        self.add_loss(&release, &mut set);
        let everybody: Vec<&str> = views.iter().flat_map(|view| view.quasi.iter().copied()).collect();
        set("classes".to_owned(), classes(sheet, &everybody).len() as f64);
        // With audiences, these figures are the worst of all audiences; coalitions do not count.
        let n_worst = self.audiences.map_or(1, |audiences| audiences.each.len());
        let sizes = |view: &View<'_>| -> Vec<usize> { self.class_sizes(sheet, rows, &view.quasi) };
        let k = views[..n_worst].iter().flat_map(sizes).min().expect("there are rows") as f64;
        set("achieved/k".to_owned(), k);
        set("risk/highest/after".to_owned(), 1.0 / k);
        let risk = views[..n_worst].iter().map(|view| self.average_risk(sheet, rows, &view.quasi)).fold(0.0, f64::max);
        set("risk/average/after".to_owned(), risk);
        for view in &views {
            let k = self.class_sizes(sheet, rows, &view.quasi).into_iter().min().expect("there are rows") as f64;
            match &view.path {
                Some(path) if path.starts_with("achieved/coalitions") => set(format!("{path}/k"), k),
                Some(path) => set(path.clone(), k),
                None => {}
            }
            if view.path.as_deref() == Some("achieved/coalitions/all") {
                set("achieved/collusion_k".to_owned(), k);
            }
        }
        self.add_sensitive(sheet, rows, &views[..n_worst], "achieved/sensitive", &mut figures);
        for view in &views {
            let Some(path) = &view.path else { continue };
            if path.starts_with("achieved/coalitions") {
                self.add_sensitive(sheet, rows, std::slice::from_ref(view), &format!("{path}/sensitive"), &mut figures);
                self.add_learned(sheet, &release, view, &format!("{path}/learned"), &mut figures);
            } else {
                let path = path.replace("achieved/audiences", "achieved/learned");
                self.add_learned(sheet, &release, view, &path, &mut figures);
            }
        }
        figures
    }

    fn class_sizes(&self, sheet: &Sheet, rows: &[u32], quasi: &[&str]) -> Vec<usize> {
        let members = |class: Vec<usize>| class.into_iter().map(|row| rows[row]).collect::<Vec<u32>>();
        classes(sheet, quasi).into_iter().map(|class| persons(self.table, &members(class)).len()).collect()
    }

    /// The mean, over persons, of one divided by the size of their smallest class.
    fn average_risk(&self, sheet: &Sheet, rows: &[u32], quasi: &[&str]) -> f64 {
        let mut risks: BTreeMap<String, f64> = BTreeMap::new();
        for class in classes(sheet, quasi) {
            let members: BTreeSet<String> = class.iter().map(|&row| person(self.table, rows[row])).collect();
            for member in &members {
                let risk = risks.entry(member.clone()).or_insert(0.0);
                *risk = risk.max(1.0 / members.len() as f64);
            }
        }
        risks.values().sum::<f64>() / risks.len() as f64
    }

    fn add_loss(&self, release: &Release, set: &mut impl FnMut(String, f64)) {
        // With audiences, classes in all columns must satisfy only the requirements of coalitions.
        let of_coalitions: Option<Vec<Requirement>> = self.audiences.map(|audiences| {
            audiences.coalitions.iter().flat_map(|coalition| coalition.requirements.iter().cloned()).collect()
        });
        let loss = naive_loss(self.table, release, of_coalitions.as_deref().unwrap_or(self.requirements));
        set("loss/lm".to_owned(), loss.lm);
        set("loss/ncp".to_owned(), loss.ncp);
        set("loss/dm".to_owned(), loss.dm);
        set("loss/average_class".to_owned(), loss.average_class);
        set("loss/uncertainty_penalty".to_owned(), loss.uncertainty_penalty);
        set("loss/k_deviation".to_owned(), loss.k_deviation);
        let spread = naive_spread(self.table, release);
        set("loss/rank".to_owned(), spread.rank);
        set("loss/entropy".to_owned(), spread.entropy);
        for (column, lm) in loss.columns {
            set(format!("loss/columns/{column}"), lm);
        }
    }

    /// The worst class of each sensitive column, measure by measure, over all these views.
    fn add_sensitive(&self, sheet: &Sheet, rows: &[u32], views: &[View<'_>], path: &str, figures: &mut Figures) {
        for column in self.table.columns.iter().filter(|column| column.role == Role::Sensitive) {
            let all = holders_of(self.table, column, rows);
            let n_all: usize = all.values().sum();
            let (mut l, mut entropy, mut t, mut alpha, mut beta) = (usize::MAX, f64::MAX, 0.0f64, 0.0f64, f64::MIN);
            let mut by_distance: Option<f64> = None;
            for view in views {
                let asked = view.requirements.iter().filter(|requirement| requirement.column() == Some(&column.name));
                let distance = asked.filter_map(Requirement::distance).find(|asked| *asked != Distance::Equal);
                for class in classes(sheet, &view.quasi) {
                    let members: Vec<u32> = class.iter().map(|&row| rows[row]).collect();
                    let counts = holders_of(self.table, column, &members);
                    let total: usize = counts.values().sum();
                    let share = |n: usize| n as f64 / total as f64;
                    l = l.min(counts.len());
                    entropy = entropy.min(counts.values().map(|&n| -share(n) * share(n).ln()).sum());
                    t = t.max(distance_of(self.table, column, Distance::Equal, &members, rows));
                    let most = counts.values().copied().max().unwrap_or(0);
                    alpha = alpha.max(most as f64 / persons(self.table, &members).len() as f64);
                    for (value, &n) in &counts {
                        let whole = all[value] as f64 / n_all as f64;
                        beta = beta.max((share(n) - whole) / whole);
                    }
                    if let Some(distance) = distance {
                        let here = distance_of(self.table, column, distance, &members, rows);
                        by_distance = Some(by_distance.map_or(here, |worst| worst.max(here)));
                    }
                }
            }
            let path = |name: &str| format!("{path}/{}/{name}", column.name);
            figures.insert(path("l"), Some(l as f64));
            figures.insert(path("entropy_l"), Some(entropy.exp()));
            figures.insert(path("t"), Some(t));
            figures.insert(path("alpha"), Some(alpha));
            figures.insert(path("beta"), Some(beta));
            figures.insert(path("t_by_distance"), by_distance);
        }
    }

    /// What the cells tell a view about columns that it does not know.
    fn add_learned(&self, sheet: &Sheet, release: &Release, view: &View<'_>, path: &str, figures: &mut Figures) {
        let unknown = self.table.columns.iter().filter(|column| column.role == Role::Quasi);
        for column in unknown.filter(|column| !view.quasi.contains(&column.name.as_str())) {
            let labels = Labels::new(self.table, release, &column.name);
            let classes = classes(sheet, &view.quasi);
            let certain: BTreeSet<&str> = classes.iter().flat_map(|class| labels.certain(class)).collect();
            let path = |name: &str| format!("{path}/{}/{name}", column.name);
            let l = classes.iter().filter_map(|class| labels.disjoint(class)).min();
            figures.insert(path("l"), l.map(|l| l as f64));
            let t = classes.iter().map(|class| labels.distance(class)).fold(0.0, f64::max);
            figures.insert(path("t"), Some(t));
            figures.insert(path("certain"), Some(certain.len() as f64));
        }
    }

    fn release(&self, sheet: &Sheet, rows: &[u32]) -> Release {
        let column = |(place, name): (usize, &String)| {
            let source = self.table.columns.iter().position(|column| column.name == *name).expect("it was compared");
            let cells = match self.table.columns[source].role {
                Role::Quasi => recoded(&sheet.column(place)),
                _ => Cells::Copied,
            };
            ReleasedColumn { name: name.clone(), source, cells }
        };
        let columns = sheet.columns.iter().enumerate().map(column).collect();
        Release { tables: vec![ReleasedTable { name: self.table.name.clone(), rows: rows.to_vec(), columns }] }
    }
}

fn recoded(cells: &[Cell]) -> Cells {
    let distinct: BTreeSet<&str> = cells.iter().filter_map(|cell| cell.as_deref()).collect();
    let labels = Texts::from_iter(distinct.iter().copied());
    let id = |cell: &Cell| match cell {
        None => NULL,
        Some(cell) => distinct.iter().position(|label| label == cell).expect("it was collected") as u32,
    };
    Cells::Recoded { labels, ids: cells.iter().map(id).collect() }
}

/// Released rows with the same cells in these columns.
pub(super) fn classes(sheet: &Sheet, quasi: &[&str]) -> Vec<Vec<usize>> {
    let places: Vec<usize> = quasi.iter().filter_map(|name| sheet.position(name)).collect();
    let mut by_cells: BTreeMap<Vec<&Cell>, Vec<usize>> = BTreeMap::new();
    for (row, cells) in sheet.rows.iter().enumerate() {
        by_cells.entry(places.iter().map(|&place| &cells[place]).collect()).or_default().push(row);
    }
    by_cells.into_values().collect()
}
