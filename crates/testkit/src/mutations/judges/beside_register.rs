//! [`BesideRegister`]: a release beside a public register.
//!
//! Tries every way to put private persons into classes. The same way must explain both the rows and the sensitive
//! groups, and all other rows of a class must then belong to register persons.

use std::collections::BTreeMap;

use kohort_model::register::SENSITIVE_GROUP;
use kohort_model::spec::{RegisterRows, Unmatched};
use kohort_model::{InRegister, JoinedRegister, Requirement, Role, Table};

use super::{Figures, Judgement, assign};
use crate::mutations::{Cell, Sheet};
use crate::oracle::{Verdict, covers, distance_of, holders_of, judge, persons};

/// A private table, its register, and what is required of its release.
pub struct BesideRegister<'a> {
    /// The private table, each row a person.
    pub table: &'a Table,
    /// The join of the private table with the register.
    pub joined: &'a JoinedRegister,
    /// The requirements: classes must satisfy k, sensitive groups all of them.
    pub requirements: &'a [Requirement],
    /// Which rows are released: only private ones, or also those of register persons.
    pub rows: RegisterRows,
    /// How unmatched private persons count, if there is no key.
    pub unmatched: Option<Unmatched>,
    /// The largest share of persons that may be left out.
    pub max_suppressed: f64,
}

/// Rows with the same cells and the same group.
struct Class {
    cells: Vec<Cell>,
    group: String,
    size: usize,
}

impl BesideRegister<'_> {
    /// Judges released sheets: the rows and the sensitive values.
    pub fn judge(&self, sheets: &[Sheet]) -> Judgement {
        match self.figures(sheets) {
            Ok((figures, true)) => Judgement::True(figures),
            Ok((figures, false)) => Judgement::Unmet(figures),
            Err(reason) => Judgement::Untrue(reason.to_owned()),
        }
    }

    /// The figures, and whether sensitive groups satisfy every requirement.
    fn figures(&self, sheets: &[Sheet]) -> Result<(Figures, bool), &'static str> {
        let quasi: Vec<&str> = self.joined.rows.columns.iter().map(|column| column.name.as_str()).collect();
        let is_copied = |role: Role| matches!(role, Role::Sensitive | Role::Plain);
        let copied = self.table.columns.iter().filter(|column| is_copied(column.role));
        let copied: Vec<&str> = copied.map(|column| column.name.as_str()).collect();
        let group = std::iter::once(SENSITIVE_GROUP);
        if !sheets[0].columns.iter().eq(quasi.iter().copied().chain(group.clone()))
            || !sheets[1].columns.iter().eq(group.chain(copied.iter().copied()))
        {
            return Err("the columns are not the expected ones");
        }
        let (rows, values) = (&sheets[0].rows, &sheets[1].rows);
        if rows.is_empty() || values.is_empty() || values.len() > self.table.n_rows {
            return Err("no rows, or too many");
        }
        let left_out = self.table.n_rows - values.len();
        let is_within = left_out as f64 <= self.max_suppressed * self.table.n_rows as f64 + 1e-9;
        let mut sizes: BTreeMap<(String, Vec<Cell>), usize> = BTreeMap::new();
        for row in rows {
            let (group, cells) = row.split_last().expect("there are columns");
            *sizes.entry((number(group)?, cells.to_vec())).or_default() += 1;
        }
        let classes: Vec<Class> =
            sizes.into_iter().map(|((group, cells), size)| Class { cells, group, size }).collect();
        let mut wanted: BTreeMap<(String, Vec<Cell>), usize> = BTreeMap::new();
        for row in values {
            *wanted.entry((number(&row[0])?, row[1..].to_vec())).or_default() += 1;
        }
        let own: Vec<Vec<Cell>> = (0..self.table.n_rows)
            .map(|row| {
                let cell = |name: &&str| self.table.column(name).expect("it is copied").cell(row).map(str::to_owned);
                copied.iter().map(cell).collect()
            })
            .collect();
        let mut way = Way { of_person: Vec::new(), sizes: vec![0; classes.len()], wanted, left_out };
        let groups = self.place(&classes, &own, &mut way).ok_or("no way to put persons into classes")?;
        let is_met = is_within && self.is_met(&groups);
        let heads = self.heads_of_classes(&classes, &way);
        let k = heads.iter().copied().min().expect("there are rows");
        let mut figures = self.count((classes.len(), k), &groups, left_out);
        // If register rows are released too, these figures depend on who is private, and the release does not say who
        // is.
        if self.rows == RegisterRows::Microdata {
            let risk: f64 = classes.iter().zip(&heads).map(|(class, &heads)| class.size as f64 / heads as f64).sum();
            figures.insert("risk/average/after".to_owned(), Some(risk / (self.table.n_rows - left_out) as f64));
        }
        Ok((figures, is_met))
    }

    /// Puts the next private person and all after them into classes, and returns the groups they are in.
    fn place(&self, classes: &[Class], own: &[Vec<Cell>], way: &mut Way) -> Option<BTreeMap<String, Vec<u32>>> {
        let person = way.of_person.len();
        if person == self.table.n_rows {
            return self.is_explained(classes, way).then(|| {
                let mut groups: BTreeMap<String, Vec<u32>> = BTreeMap::new();
                for (person, class) in (0..).zip(&way.of_person) {
                    if let Some(class) = class {
                        groups.entry(classes[*class].group.clone()).or_default().push(person);
                    }
                }
                groups
            });
        }
        for (position, class) in classes.iter().enumerate() {
            let key = (class.group.clone(), own[person].clone());
            let is_wanted = way.wanted.get(&key).is_some_and(|&n| n > 0);
            if is_wanted && way.sizes[position] < class.size && self.holds(class, person) {
                way.of_person.push(Some(position));
                way.sizes[position] += 1;
                *way.wanted.get_mut(&key).expect("it is wanted") -= 1;
                if let Some(found) = self.place(classes, own, way) {
                    return Some(found);
                }
                *way.wanted.get_mut(&key).expect("it was wanted") += 1;
                way.sizes[position] -= 1;
                way.of_person.pop();
            }
        }
        if way.left_out > 0 {
            way.left_out -= 1;
            way.of_person.push(None);
            if let Some(found) = self.place(classes, own, way) {
                return Some(found);
            }
            way.of_person.pop();
            way.left_out += 1;
        }
        None
    }

    /// Whether a joined row lies in the cells of a class.
    fn holds(&self, class: &Class, row: usize) -> bool {
        let columns = self.joined.rows.columns.iter().zip(&class.cells);
        columns.into_iter().all(|(column, cell)| covers(column, cell.as_deref(), column.cell(row)))
    }

    /// Whether every class has somebody, the remaining rows belong to register persons, and enough persons count.
    fn is_explained(&self, classes: &[Class], way: &Way) -> bool {
        if way.sizes.contains(&0) || way.wanted.values().any(|&n| n > 0) {
            return false;
        }
        let register: Vec<usize> = self.joined.register_rows().map(|row| row as usize).collect();
        let open: Vec<usize> = (0..classes.len())
            .flat_map(|class| std::iter::repeat_n(class, classes[class].size - way.sizes[class]))
            .collect();
        let fits = |row: usize, other: usize| self.holds(&classes[open[row]], register[other]);
        let are_of_register = match self.rows {
            RegisterRows::Microdata => open.is_empty(),
            RegisterRows::All => assign(open.len(), register.len(), fits).is_some(),
        };
        let k = self.requirements.iter().filter_map(Requirement::k).max().unwrap_or(1) as usize;
        are_of_register && self.heads_of_classes(classes, way).into_iter().all(|heads| heads >= k)
    }

    /// How many persons count in each class: those of its rows or, if only private rows are released, everybody who
    /// lies in its cells.
    fn heads_of_classes(&self, classes: &[Class], way: &Way) -> Vec<usize> {
        let of_class = |(position, class): (usize, &Class)| {
            let everybody = 0..self.table.n_rows + self.joined.n_register;
            let counts = |&row: &usize| match self.rows {
                RegisterRows::Microdata => self.holds(class, row),
                RegisterRows::All => way.of_person.get(row) == Some(&Some(position)),
            };
            let (mut matched, mut unmatched, mut others) = (0, 0, 0);
            for row in everybody.filter(counts) {
                match self.joined.persons.get(row) {
                    None => others += 1,
                    Some(InRegister::Absent) => unmatched += 1,
                    Some(InRegister::Same(_)) => matched += 1,
                    Some(InRegister::Differs(said)) => matched += usize::from(self.holds(class, *said as usize)),
                }
            }
            if self.rows == RegisterRows::All {
                others = class.size - way.sizes[position];
            }
            self.heads(matched, unmatched, others)
        };
        classes.iter().enumerate().map(of_class).collect()
    }

    fn heads(&self, matched: usize, unmatched: usize, others: usize) -> usize {
        match self.unmatched {
            None | Some(Unmatched::Count) => matched + unmatched + others,
            Some(Unmatched::Doubt) => matched + unmatched.max(others),
        }
    }

    fn is_met(&self, groups: &BTreeMap<String, Vec<u32>>) -> bool {
        let all: Vec<u32> = groups.values().flatten().copied().collect();
        // Every way that was tried already has enough persons in each class.
        groups.values().all(|group| {
            self.requirements.iter().all(|requirement| match judge(self.table, requirement, group, &all) {
                Verdict::Holds => true,
                Verdict::Fails => false,
                Verdict::TooClose => panic!("{requirement:?} is decided by rounding: ask for another"),
            })
        })
    }

    fn count(&self, (n_classes, k): (usize, usize), groups: &BTreeMap<String, Vec<u32>>, left_out: usize) -> Figures {
        let mut figures = Figures::from([("risk/highest/after".to_owned(), Some(1.0 / k as f64))]);
        let n_in = self.table.n_rows;
        let group_k = groups.values().map(Vec::len).min().unwrap_or(0);
        for (path, n) in [
            ("achieved/k", k),
            ("classes", n_classes),
            ("tables/0/rows_suppressed", left_out),
            ("tables/1/rows_suppressed", left_out),
            ("persons/in", n_in),
            ("persons/out", n_in - left_out),
            ("persons/suppressed", left_out),
            ("register/sensitive_groups", groups.len()),
            ("register/group_k", group_k),
        ] {
            figures.insert(path.to_owned(), Some(n as f64));
        }
        let all: Vec<u32> = groups.values().flatten().copied().collect();
        for column in self.table.columns.iter().filter(|column| column.role == Role::Sensitive) {
            let whole = holders_of(self.table, column, &all);
            let (mut l, mut entropy, mut t, mut alpha, mut beta) = (usize::MAX, f64::MAX, 0.0f64, 0.0f64, f64::MIN);
            for group in groups.values() {
                let counts = holders_of(self.table, column, group);
                let total: usize = counts.values().sum();
                let share = |n: usize| n as f64 / total as f64;
                l = l.min(counts.len());
                entropy = entropy.min(counts.values().map(|&n| -share(n) * share(n).ln()).sum());
                t = t.max(distance_of(self.table, column, kohort_model::Distance::Equal, group, &all));
                let most = counts.values().copied().max().unwrap_or(0);
                alpha = alpha.max(most as f64 / persons(self.table, group).len() as f64);
                for (value, &n) in &counts {
                    let of_all = whole[value] as f64 / all.len() as f64;
                    beta = beta.max((share(n) - of_all) / of_all);
                }
            }
            for (measure, figure) in
                [("l", l as f64), ("entropy_l", entropy.exp()), ("t", t), ("alpha", alpha), ("beta", beta)]
            {
                figures.insert(format!("achieved/sensitive/{}/{measure}", column.name), Some(figure));
            }
        }
        figures
    }
}

/// A partial way to put private persons into classes.
struct Way {
    /// The class of each person; `None` for somebody who is left out.
    of_person: Vec<Option<usize>>,
    /// Private persons of each class.
    sizes: Vec<usize>,
    /// Values of each group that still need a person.
    wanted: BTreeMap<(String, Vec<Cell>), usize>,
    /// Persons who may still be left out.
    left_out: usize,
}

/// The number of a group, in digits.
fn number(cell: &Cell) -> Result<String, &'static str> {
    let is_number =
        |text: &&String| !text.is_empty() && !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
    cell.as_ref().filter(is_number).cloned().ok_or("a group is not a number")
}
