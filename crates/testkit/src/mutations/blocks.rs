//! The table of changes to a block of an A-view.

use kohort_model::{ALONE, Block, BlockCells, Column, Consent, Disclosure, NULL, Requirement, Role, Table, Texts};

use super::cells::changed_cells;
use super::{Cell, Sheet};

/// A block, with everything against which it is verified.
#[derive(Clone, Debug)]
pub struct ShownBlock {
    /// The private rows that the block shows.
    pub private: Table,
    /// What the persons of these rows allow.
    pub consent: Consent,
    /// What a person's refusal hides of others in the class.
    pub disclosure: Disclosure,
    /// The requirements on every class.
    pub requirements: Vec<Requirement>,
    /// The rows as they are shown.
    pub block: Block,
}

/// A way to change a block, or what it is verified with.
pub struct BlockChange {
    /// The name of the change.
    pub name: &'static str,
    /// Makes every changed block that this way gives from one block.
    pub changed: fn(&ShownBlock) -> Vec<ShownBlock>,
}

/// Every way to change a block, except changes of labels, which are the same as those of cells of releases.
pub const BLOCK_CHANGES: &[BlockChange] = &[
    BlockChange { name: "row: of another person", changed: |shown| shown.each_row(other_source) },
    BlockChange { name: "row: two exchanged", changed: |shown| shown.each_pair(|block, a, b| block.rows.swap(a, b)) },
    BlockChange {
        name: "row: missing",
        changed: |shown| shown.each_row(|shown, row| vec![shown.with_rows(&shown.but(&[row]))]),
    },
    BlockChange { name: "row: twice", changed: |shown| shown.each_row(row_twice) },
    BlockChange { name: "rows: none", changed: |shown| vec![shown.with_rows(&[])] },
    BlockChange { name: "rows: another order", changed: another_order },
    BlockChange { name: "class: of another number", changed: |shown| shown.each_row(other_class) },
    BlockChange {
        name: "class: two exchanged",
        changed: |shown| shown.each_pair(|block, a, b| block.classes.swap(a, b)),
    },
    BlockChange {
        name: "class: missing",
        changed: |shown| shown.each_class(|shown, rows| vec![shown.with_rows(&shown.but(rows))]),
    },
    BlockChange {
        name: "class: its rows alone",
        changed: |shown| shown.each_class(|shown, rows| vec![shown.in_class(rows, ALONE)]),
    },
    BlockChange { name: "class: in two", changed: |shown| shown.each_class(in_two) },
    BlockChange { name: "class: two as one", changed: |shown| shown.each_class(as_one) },
    BlockChange { name: "classes: numbered otherwise", changed: numbered_otherwise },
    BlockChange { name: "classes: a number more or less", changed: wrong_number_of_classes },
    BlockChange { name: "cell: hidden or shown", changed: toggled },
    BlockChange {
        name: "cell: without a text",
        changed: |shown| {
            shown.each_label_cell(|ids, _, n| {
                ids.iter_mut().filter(|id| **id != NULL).for_each(|id| *id += n);
            })
        },
    },
    BlockChange {
        name: "cell: of the label after its own",
        changed: |shown| shown.each_label_cell(|ids, row, n| ids[row] = ids[row].saturating_add(1).min(n)),
    },
    BlockChange { name: "column: a cell more or less", changed: wrong_number_of_cells },
    BlockChange { name: "column: the private cells", changed: |shown| shown.each_column(private_cells) },
    BlockChange {
        name: "column: private cells as labels",
        changed: |shown| shown.each_column(labels_of_private_cells),
    },
    BlockChange { name: "column: labels that are there twice", changed: |shown| shown.each_column(labels_twice) },
    BlockChange {
        name: "column: missing",
        changed: |shown| shown.each_column(|shown, position| drop(shown.block.columns.remove(position))),
    },
    BlockChange {
        name: "column: one too much",
        changed: |shown| {
            shown.each_column(|shown, position| {
                let more = shown.block.columns[position].clone();
                shown.block.columns.push(more);
            })
        },
    },
    BlockChange { name: "column: two exchanged", changed: columns_exchanged },
    BlockChange { name: "wish: another k", changed: |shown| shown.each_source(other_k) },
    BlockChange { name: "wish: another level", changed: |shown| shown.each_source(other_level) },
    BlockChange { name: "wish: a column refused or allowed", changed: |shown| shown.each_source(other_refusal) },
    BlockChange { name: "wishes: one more or less", changed: wrong_number_of_wishes },
    BlockChange { name: "wishes: refusals by class or by row", changed: other_disclosure },
    BlockChange { name: "asked: more", changed: |shown| shown.each_requirement(more_is_asked) },
    BlockChange {
        name: "asked: nothing",
        changed: |shown| vec![ShownBlock { requirements: Vec::new(), ..shown.clone() }],
    },
    BlockChange { name: "private cell: another row's", changed: other_private_cell },
];

/// Every block that differs from this one by one change, with the name of the change.
pub fn changed_blocks(shown: &ShownBlock) -> Vec<(String, ShownBlock)> {
    let mut changed = Vec::new();
    for change in BLOCK_CHANGES {
        changed.extend((change.changed)(shown).into_iter().map(|block| (change.name.to_owned(), block)));
    }
    changed.extend(changed_labels(shown));
    changed
}

/// Labels, changed like the cells of a release.
fn changed_labels(shown: &ShownBlock) -> Vec<(String, ShownBlock)> {
    let positions: Vec<usize> = (0..shown.block.columns.len())
        .filter(|&position| matches!(shown.block.columns[position], BlockCells::Labels { .. }))
        .collect();
    let row = |row: usize| positions.iter().map(|&position| shown.label(row, position)).collect();
    let sheet = Sheet {
        columns: positions.iter().map(|&position| shown.private.columns[position].name.clone()).collect(),
        rows: (0..shown.block.rows.len()).map(row).collect(),
    };
    let private: Vec<Option<&Column>> = positions.iter().map(|&at| Some(&shown.private.columns[at])).collect();
    // Labels of sensitive values are nodes of a hierarchy, like those of quasi values.
    let changed = changed_cells(&sheet, &vec![Role::Quasi; positions.len()], &private);
    let with_labels = |sheet: &Sheet| {
        let mut copy = shown.clone();
        for (place, &position) in positions.iter().enumerate() {
            copy.block.columns[position] = labelled(&sheet.column(place));
        }
        copy
    };
    changed.into_iter().map(|(name, sheet)| (name.replace("quasi: ", "label: "), with_labels(&sheet))).collect()
}

/// A column that shows these cells.
pub fn labelled(cells: &[Cell]) -> BlockCells {
    let mut labels = Texts::new();
    let mut known: Vec<&str> = Vec::new();
    let mut ids = Vec::with_capacity(cells.len());
    for cell in cells {
        let Some(cell) = cell.as_deref() else {
            ids.push(NULL);
            continue;
        };
        let id = known.iter().position(|label| *label == cell).unwrap_or_else(|| {
            known.push(cell);
            labels.push(cell);
            known.len() - 1
        });
        ids.push(id as u32);
    }
    BlockCells::Labels { labels, ids }
}

impl ShownBlock {
    fn n_rows(&self) -> usize {
        self.block.rows.len()
    }

    fn label(&self, row: usize, position: usize) -> Cell {
        match &self.block.columns[position] {
            BlockCells::Labels { labels, ids } => (ids[row] != NULL).then(|| labels.get(ids[row]).to_owned()),
            BlockCells::Own { .. } => None,
        }
    }

    fn each_row(&self, change: fn(&ShownBlock, usize) -> Vec<ShownBlock>) -> Vec<ShownBlock> {
        (0..self.n_rows()).flat_map(|row| change(self, row)).collect()
    }

    fn each_source(&self, change: fn(&ShownBlock, usize) -> Vec<ShownBlock>) -> Vec<ShownBlock> {
        (0..self.private.n_rows).flat_map(|source| change(self, source)).collect()
    }

    fn each_requirement(&self, change: fn(&ShownBlock, usize) -> Vec<ShownBlock>) -> Vec<ShownBlock> {
        (0..self.requirements.len()).flat_map(|place| change(self, place)).collect()
    }

    fn each_column(&self, change: fn(&mut ShownBlock, usize)) -> Vec<ShownBlock> {
        (0..self.block.columns.len()).map(|position| self.with(|copy| change(copy, position))).collect()
    }

    fn each_pair(&self, change: fn(&mut Block, usize, usize)) -> Vec<ShownBlock> {
        let pairs = (0..self.n_rows()).flat_map(|a| (0..a).map(move |b| (a, b)));
        pairs.map(|(a, b)| self.with(|copy| change(&mut copy.block, a, b))).collect()
    }

    /// Changes the rows of each class.
    fn each_class(&self, change: fn(&ShownBlock, &[usize]) -> Vec<ShownBlock>) -> Vec<ShownBlock> {
        let mut numbers: Vec<u32> = self.block.classes.iter().copied().filter(|&class| class != ALONE).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let rows =
            |class: u32| -> Vec<usize> { (0..self.n_rows()).filter(|&row| self.block.classes[row] == class).collect() };
        numbers.into_iter().flat_map(|class| change(self, &rows(class))).collect()
    }

    /// Changes each cell that is a label. `change` gets the ids of its column, its row and the number of labels.
    fn each_label_cell(&self, change: fn(&mut [u32], usize, u32)) -> Vec<ShownBlock> {
        let mut changed = Vec::new();
        for position in 0..self.block.columns.len() {
            for row in 0..self.n_rows() {
                let mut copy = self.clone();
                if let BlockCells::Labels { labels, ids } = &mut copy.block.columns[position] {
                    change(ids, row, labels.len() as u32);
                    changed.push(copy);
                }
            }
        }
        changed
    }

    fn with(&self, change: impl FnOnce(&mut ShownBlock)) -> ShownBlock {
        let mut copy = self.clone();
        change(&mut copy);
        copy
    }

    fn but(&self, rows: &[usize]) -> Vec<usize> {
        (0..self.n_rows()).filter(|row| !rows.contains(row)).collect()
    }

    /// The block with these of its rows, in this order.
    fn with_rows(&self, rows: &[usize]) -> ShownBlock {
        self.with(|copy| {
            copy.block.rows = rows.iter().map(|&row| self.block.rows[row]).collect();
            copy.block.classes = rows.iter().map(|&row| self.block.classes[row]).collect();
            for cells in &mut copy.block.columns {
                match cells {
                    BlockCells::Labels { ids, .. } => *ids = rows.iter().map(|&row| ids[row]).collect(),
                    BlockCells::Own { hidden } => *hidden = rows.iter().map(|&row| hidden[row]).collect(),
                }
            }
        })
    }

    fn in_class(&self, rows: &[usize], class: u32) -> ShownBlock {
        self.with(|copy| rows.iter().for_each(|&row| copy.block.classes[row] = class))
    }

    fn unused_class(&self) -> u32 {
        let numbers = self.block.classes.iter().filter(|&&class| class != ALONE);
        numbers.max().map_or(0, |largest| largest + 1)
    }
}

fn other_source(shown: &ShownBlock, row: usize) -> Vec<ShownBlock> {
    (0..=shown.private.n_rows as u32).map(|source| shown.with(|copy| copy.block.rows[row] = source)).collect()
}

fn row_twice(shown: &ShownBlock, row: usize) -> Vec<ShownBlock> {
    let rows: Vec<usize> = (0..shown.n_rows()).chain([row]).collect();
    vec![shown.with_rows(&rows)]
}

fn another_order(shown: &ShownBlock) -> Vec<ShownBlock> {
    let n_rows = shown.n_rows();
    let backwards: Vec<usize> = (0..n_rows).rev().collect();
    let turned = (1..n_rows).map(|by| (0..n_rows).map(|row| (row + by) % n_rows).collect::<Vec<_>>());
    turned.chain([backwards]).map(|rows| shown.with_rows(&rows)).collect()
}

fn other_class(shown: &ShownBlock, row: usize) -> Vec<ShownBlock> {
    let numbers = (0..=shown.unused_class()).chain([ALONE, ALONE - 1]);
    numbers.map(|class| shown.in_class(&[row], class)).collect()
}

fn in_two(shown: &ShownBlock, rows: &[usize]) -> Vec<ShownBlock> {
    (1..rows.len()).map(|at| shown.in_class(&rows[at..], shown.unused_class())).collect()
}

fn as_one(shown: &ShownBlock, rows: &[usize]) -> Vec<ShownBlock> {
    let own = shown.block.classes[rows[0]];
    (0..shown.unused_class()).filter(|&class| class != own).map(|class| shown.in_class(rows, class)).collect()
}

fn numbered_otherwise(shown: &ShownBlock) -> Vec<ShownBlock> {
    let otherwise: [fn(u32) -> u32; 3] = [|class| class + 7, |class| 900 - class, |class| ALONE - 1 - class];
    let changed = |number: &fn(u32) -> u32| {
        shown.with(|copy| {
            let classes = copy.block.classes.iter_mut().filter(|class| **class != ALONE);
            classes.for_each(|class| *class = number(*class));
        })
    };
    otherwise.iter().map(changed).collect()
}

fn wrong_number_of_classes(shown: &ShownBlock) -> Vec<ShownBlock> {
    vec![
        shown.with(|copy| copy.block.classes.truncate(shown.n_rows() - 1)),
        shown.with(|copy| copy.block.classes.push(ALONE)),
        shown.with(|copy| copy.block.classes.push(0)),
    ]
}

/// Toggles one private cell, those of a class, or those of the whole column.
fn toggled(shown: &ShownBlock) -> Vec<ShownBlock> {
    let mut changed = Vec::new();
    for position in 0..shown.block.columns.len() {
        for row in 0..shown.n_rows() {
            let class = shown.block.classes[row];
            let one = vec![row];
            let class = (0..shown.n_rows()).filter(|&other| shown.block.classes[other] == class).collect();
            let all = (0..shown.n_rows()).collect();
            for rows in [one, class, all] as [Vec<usize>; 3] {
                let mut copy = shown.clone();
                if let BlockCells::Own { hidden } = &mut copy.block.columns[position] {
                    let is_hidden = !hidden[row];
                    rows.iter().for_each(|&row| hidden[row] = is_hidden);
                    changed.push(copy);
                }
            }
        }
    }
    changed
}

fn wrong_number_of_cells(shown: &ShownBlock) -> Vec<ShownBlock> {
    let less = shown.each_column(|shown, position| match &mut shown.block.columns[position] {
        BlockCells::Labels { ids, .. } => ids.truncate(ids.len() - 1),
        BlockCells::Own { hidden } => hidden.truncate(hidden.len() - 1),
    });
    let more = shown.each_column(|shown, position| match &mut shown.block.columns[position] {
        BlockCells::Labels { ids, .. } => ids.push(NULL),
        BlockCells::Own { hidden } => hidden.push(true),
    });
    [less, more].concat()
}

fn private_cells(shown: &mut ShownBlock, position: usize) {
    shown.block.columns[position] = BlockCells::Own { hidden: vec![false; shown.block.rows.len()] };
}

fn labels_of_private_cells(shown: &mut ShownBlock, position: usize) {
    let column = &shown.private.columns[position];
    let cells: Vec<Cell> =
        shown.block.rows.iter().map(|&source| column.cell(source as usize).map(str::to_owned)).collect();
    shown.block.columns[position] = labelled(&cells);
}

/// Lists the same labels twice, and lets every other row use the second list.
fn labels_twice(shown: &mut ShownBlock, position: usize) {
    if let BlockCells::Labels { labels, ids } = &mut shown.block.columns[position] {
        let n_labels = labels.len() as u32;
        *labels = labels.iter().chain(labels.iter()).collect();
        ids.iter_mut().step_by(2).filter(|id| **id != NULL).for_each(|id| *id += n_labels);
    }
}

fn columns_exchanged(shown: &ShownBlock) -> Vec<ShownBlock> {
    (1..shown.block.columns.len()).map(|at| shown.with(|copy| copy.block.columns.swap(at - 1, at))).collect()
}

fn other_k(shown: &ShownBlock, source: usize) -> Vec<ShownBlock> {
    let k = shown.consent.k[source];
    let others = [0, 1, 2, k + 1, k.saturating_sub(1), shown.private.n_rows as u32 + 1, u32::MAX];
    others.into_iter().map(|k| shown.with(|copy| copy.consent.k[source] = k)).collect()
}

fn other_level(shown: &ShownBlock, source: usize) -> Vec<ShownBlock> {
    [0, 1, 2, 3, u8::MAX].into_iter().map(|level| shown.with(|copy| copy.consent.level[source] = level)).collect()
}

fn other_refusal(shown: &ShownBlock, source: usize) -> Vec<ShownBlock> {
    let n_columns = shown.private.columns.len();
    (0..=n_columns).map(|position| shown.with(|copy| copy.consent.refused[source] ^= 1 << position)).collect()
}

fn wrong_number_of_wishes(shown: &ShownBlock) -> Vec<ShownBlock> {
    let change: [fn(&mut Consent); 6] = [
        |consent| consent.k.truncate(consent.k.len() - 1),
        |consent| consent.level.truncate(consent.level.len() - 1),
        |consent| consent.refused.truncate(consent.refused.len() - 1),
        |consent| consent.k.push(2),
        |consent| consent.level.push(0),
        |consent| consent.refused.push(0),
    ];
    change.iter().map(|change| shown.with(|copy| change(&mut copy.consent))).collect()
}

fn other_disclosure(shown: &ShownBlock) -> Vec<ShownBlock> {
    let disclosure = match shown.disclosure {
        Disclosure::Class => Disclosure::Row,
        Disclosure::Row => Disclosure::Class,
    };
    vec![ShownBlock { disclosure, ..shown.clone() }]
}

fn more_is_asked(shown: &ShownBlock, place: usize) -> Vec<ShownBlock> {
    let instead = match shown.requirements[place].clone() {
        Requirement::K(k) => vec![Requirement::K(k + 1), Requirement::K(k + 9)],
        Requirement::DistinctL { column, l } => {
            vec![Requirement::DistinctL { column: column.clone(), l: l + 1 }, Requirement::DistinctL { column, l: 9 }]
        }
        Requirement::EntropyL { column, l } => vec![Requirement::EntropyL { column, l: l + 0.83 }],
        Requirement::RecursiveCL { column, c, l } => vec![Requirement::RecursiveCL { column, c: c / 2.1, l }],
        Requirement::TCloseness { column, t, distance } => {
            vec![Requirement::TCloseness { column, t: t / 2.3, distance }]
        }
        Requirement::Alpha { column, alpha } => vec![Requirement::Alpha { column, alpha: alpha / 1.7 }],
        Requirement::Beta { column, beta } => vec![Requirement::Beta { column, beta: beta / 3.1 }],
        Requirement::EnhancedBeta { column, beta } => vec![Requirement::EnhancedBeta { column, beta: beta / 3.1 }],
        Requirement::PersonK { .. } => Vec::new(),
    };
    instead.into_iter().map(|asked| shown.with(|copy| copy.requirements[place] = asked)).collect()
}

/// The block over private rows in which one cell is replaced by another row's cell, or by null.
fn other_private_cell(shown: &ShownBlock) -> Vec<ShownBlock> {
    let mut changed = Vec::new();
    for (position, column) in shown.private.columns.iter().enumerate() {
        for row in 0..shown.private.n_rows {
            let mut ids = column.ids.clone();
            ids.push(NULL);
            ids.sort_unstable();
            ids.dedup();
            for id in ids.into_iter().filter(|&id| id != column.ids[row]) {
                changed.push(shown.with(|copy| copy.private.columns[position].ids[row] = id));
            }
        }
    }
    changed
}
