//! Whether a block of an A-view may leave, judged by the promises of `docs/anonymization-views.md`.
//!
//! Cells are texts, crowds are maps of texts, and every rule is one sentence of the promise. A cell that must be hidden
//! is marked as hidden in the block; a private null that is not marked counts as shown.

use std::collections::{BTreeMap, BTreeSet};

use kohort_model::{ALONE, BlockCells, Column, Disclosure, NULL, Requirement, Role, Table};

use super::Harm;
use crate::mutations::Cell;
use crate::mutations::blocks::ShownBlock;
use crate::oracle::{Verdict, covers, judge, persons};

impl ShownBlock {
    /// Whether the block breaks a promise.
    pub fn harm(&self) -> Harm {
        if let Some(why) = self.malformed() {
            return Harm::Harmful(why);
        }
        for row in 0..self.block.rows.len() {
            if let Some(why) = self.harm_of_row(row) {
                return Harm::Harmful(format!("row {row}: {why}"));
            }
        }
        if let Some(why) = self.differing_class() {
            return Harm::Harmful(why);
        }
        let mut is_close = false;
        for (crowd, verdict) in self.crowds() {
            match verdict {
                Verdict::Fails => {
                    return Harm::Harmful(format!("a crowd of rows {crowd:?} does not satisfy the requirements"));
                }
                Verdict::TooClose => is_close = true,
                Verdict::Holds => {}
            }
        }
        if is_close { Harm::DecidedByRounding } else { Harm::Harmless }
    }

    fn malformed(&self) -> Option<String> {
        let ShownBlock { private, consent, block, .. } = self;
        let n_rows = block.rows.len();
        if n_rows == 0 {
            return Some("there is nothing to show".to_owned());
        }
        if block.classes.len() != n_rows || block.columns.len() != private.columns.len() {
            return Some("a row has no class, or the block does not have the view's columns".to_owned());
        }
        if [consent.k.len(), consent.level.len(), consent.refused.len()] != [private.n_rows; 3] {
            return Some("there is not exactly one wish per private row".to_owned());
        }
        if block.rows.iter().any(|&source| source as usize >= private.n_rows) {
            return Some("a row comes from no private row".to_owned());
        }
        if block.rows.iter().collect::<BTreeSet<_>>().len() != n_rows {
            return Some("a row is shown twice".to_owned());
        }
        for (column, cells) in private.columns.iter().zip(&block.columns) {
            let (n_cells, is_label) = match cells {
                BlockCells::Labels { labels, ids } => {
                    if ids.iter().any(|&id| id != NULL && id as usize >= labels.len()) {
                        return Some(format!("{}: a cell has no label", column.name));
                    }
                    (ids.len(), true)
                }
                BlockCells::Own { hidden } => (hidden.len(), false),
            };
            let may_be = match column.role {
                Role::Quasi => is_label,
                Role::Identifier | Role::Plain => !is_label,
                Role::Sensitive => true,
                Role::Key | Role::PersonK | Role::Drop => false,
            };
            if n_cells != n_rows || !may_be {
                return Some(format!("{}: the column has the wrong kind or number of cells", column.name));
            }
        }
        // Nobody can be counted if a private row does not say whose it is.
        let is_unknown = |column: &Column| (0..private.n_rows).any(|row| column.cell(row).is_none());
        let counts = block.classes.iter().any(|&class| class != ALONE);
        (counts && private.person_column().is_some_and(is_unknown))
            .then(|| "a private row does not name its person".to_owned())
    }

    fn source(&self, row: usize) -> usize {
        self.block.rows[row] as usize
    }

    fn k(&self, row: usize) -> u32 {
        self.consent.k[self.source(row)]
    }

    /// What the reader sees, `None` for null.
    fn cell(&self, row: usize, position: usize) -> Cell {
        match &self.block.columns[position] {
            BlockCells::Labels { labels, ids } => (ids[row] != NULL).then(|| labels.get(ids[row]).to_owned()),
            BlockCells::Own { hidden } if hidden[row] => None,
            BlockCells::Own { .. } => self.private.columns[position].cell(self.source(row)).map(str::to_owned),
        }
    }

    /// Whether the cell tells nothing about its person.
    fn is_silent(&self, row: usize, position: usize) -> bool {
        match &self.block.columns[position] {
            BlockCells::Own { hidden } => hidden[row],
            BlockCells::Labels { .. } => {
                // A hierarchy may have a label `*` below its root.
                let says_nothing = |label: String| match &self.private.columns[position].hierarchy {
                    Some(tree) => label == tree.label(tree.root()) || label == "*" && tree.node("*").is_none(),
                    None => label == "*",
                };
                self.cell(row, position).is_none_or(says_nothing)
            }
        }
    }

    fn refuses(&self, row: usize, position: usize) -> bool {
        position > 63 || self.consent.refused[self.source(row)] & (1 << position) != 0
    }

    fn harm_of_row(&self, row: usize) -> Option<String> {
        let class = self.block.classes[row];
        if (self.k(row) < 2) != (class == ALONE) {
            return Some("the person asks for no crowd and is in a class, or asks for one and is in none".to_owned());
        }
        for (position, column) in self.private.columns.iter().enumerate() {
            let is_silent = self.is_silent(row, position);
            if column.role == Role::Identifier && self.k(row) != 0 && !is_silent {
                return Some(format!("the identifier {} is shown", column.name));
            }
            let rows = 0..self.block.rows.len();
            let shares_fate = |other: &usize| match self.disclosure {
                Disclosure::Class => *other == row || class != ALONE && self.block.classes[*other] == class,
                Disclosure::Row => *other == row,
            };
            if !is_silent && rows.filter(shares_fate).any(|other| self.refuses(other, position)) {
                return Some(format!("{} is shown although somebody refuses it", column.name));
            }
            let value = column.cell(self.source(row));
            if let (BlockCells::Labels { .. }, Some(label), false) =
                (&self.block.columns[position], self.cell(row, position), is_silent)
                && !covers(column, Some(&label), value)
            {
                return Some(format!("the label of {} does not cover the private value", column.name));
            }
            let level = usize::from(self.consent.level[self.source(row)]);
            if let (Role::Sensitive, Some(value), false) = (column.role, value, is_silent)
                && level > 0
                && !is_raised(column, value, &self.cell(row, position), level, &self.block.columns[position])
            {
                return Some(format!("{} is not raised as far as the person asks", column.name));
            }
        }
        None
    }

    /// A class whose rows differ in a quasi column.
    fn differing_class(&self) -> Option<String> {
        for (position, column) in self.private.columns.iter().enumerate() {
            if column.role != Role::Quasi {
                continue;
            }
            let mut looks: BTreeMap<u32, BTreeSet<Cell>> = BTreeMap::new();
            for row in (0..self.block.rows.len()).filter(|&row| self.block.classes[row] != ALONE) {
                let cell = self.cell(row, position);
                // If refusals hide single cells, a hidden cell need not equal the others of its class.
                if cell.is_some() || self.disclosure == Disclosure::Class {
                    looks.entry(self.block.classes[row]).or_default().insert(cell);
                }
            }
            if looks.values().any(|looks| looks.len() > 1) {
                return Some(format!("the rows of a class differ in {}", column.name));
            }
        }
        None
    }

    /// Divides rows into the sets that a reader takes for one crowd each.
    fn parted(&self, rows: &[usize]) -> Vec<Vec<usize>> {
        let quasi = self.private.with_role(Role::Quasi);
        let mut crowds: BTreeMap<(u32, Vec<Cell>), Vec<usize>> = BTreeMap::new();
        for &row in rows {
            let look = match self.disclosure {
                Disclosure::Class => (0, quasi.iter().map(|&position| self.cell(row, position)).collect()),
                Disclosure::Row => (self.block.classes[row], Vec::new()),
            };
            crowds.entry(look).or_default().push(row);
        }
        crowds.into_values().collect()
    }

    /// Every crowd that a reader can count, and whether it satisfies the requirements.
    fn crowds(&self) -> Vec<(Vec<usize>, Verdict)> {
        let classes = &self.block.classes;
        let rows: Vec<usize> = (0..classes.len()).filter(|&row| classes[row] != ALONE).collect();
        let sources = |rows: &[usize]| -> Vec<u32> { rows.iter().map(|&row| self.block.rows[row]).collect() };
        let all = sources(&rows);
        let mut verdicts = Vec::new();
        for crowd in self.parted(&rows) {
            let members = sources(&crowd);
            let names = persons(&self.private, &members);
            let is_member = |row: &&usize| persons(&self.private, &[self.block.rows[**row]]).is_subset(&names);
            let wish = rows.iter().filter(is_member).map(|&row| self.k(row) as usize).max().unwrap_or(0);
            let own = if names.len() >= wish { Verdict::Holds } else { Verdict::Fails };
            verdicts.push((crowd.clone(), own));
            for requirement in &self.requirements {
                verdicts.push((crowd.clone(), judge(&self.private, requirement, &members, &all)));
            }
        }
        for requirement in &self.requirements {
            verdicts.extend(self.crowds_as_shown(requirement, &rows));
        }
        verdicts
    }

    /// The crowds of rows whose class shows something of a requirement's sensitive column, and whether each crowd
    /// satisfies the requirement by the values as they are shown.
    fn crowds_as_shown(&self, requirement: &Requirement, rows: &[usize]) -> Vec<(Vec<usize>, Verdict)> {
        let Some(position) = requirement.sensitive_column().and_then(|name| self.private.position(name)) else {
            return Vec::new();
        };
        let classes = &self.block.classes;
        let told: BTreeSet<u32> =
            rows.iter().filter(|&&row| !self.is_silent(row, position)).map(|&row| classes[row]).collect();
        let saying: Vec<usize> = rows.iter().copied().filter(|&row| told.contains(&classes[row])).collect();
        let cells: Vec<Cell> = (0..classes.len()).map(|row| self.cell(row, position)).collect();
        let private = &self.private.columns[position];
        let shown = Column::from_cells(&private.name, Role::Sensitive, cells.iter().map(Option::as_deref));
        let mut columns = vec![shown];
        if let Some(person) = self.private.person_column() {
            let names = (0..classes.len()).map(|row| person.cell(self.source(row)));
            columns.push(Column::from_cells(&person.name, Role::Key, names));
        }
        let person = (columns.len() == 2).then_some(1);
        let shown = Table { name: "shown".to_owned(), columns, n_rows: classes.len(), person };
        let numbers = |rows: &[usize]| -> Vec<u32> { rows.iter().map(|&row| row as u32).collect() };
        let all = numbers(&saying);
        let verdict = |crowd: Vec<usize>| {
            let verdict = judge(&shown, requirement, &numbers(&crowd), &all);
            (crowd, verdict)
        };
        self.parted(&saying).into_iter().map(verdict).collect()
    }
}

/// Whether a label is this many steps above a value.
fn is_raised(column: &Column, value: &str, label: &Cell, level: usize, cells: &BlockCells) -> bool {
    let (Some(tree), BlockCells::Labels { .. }) = (&column.hierarchy, cells) else { return false };
    let leaf = tree.leaf(value).expect("every value is a leaf");
    tree.path(leaf).skip(level).any(|node| Some(tree.label(node)) == label.as_deref())
}
