//! The table of changes to one cell.

use kohort_model::{Column, Hierarchy, Role};

use super::{Cell, Sheet};

/// A way to change a cell.
pub struct CellChange {
    /// The name of the change.
    pub name: &'static str,
    /// The roles of the columns that it changes.
    pub roles: &'static [Role],
    /// The cells that the change puts in place of one cell.
    pub instead: fn(&Place<'_>) -> Vec<Cell>,
}

/// A cell that is to be changed.
pub struct Place<'a> {
    /// The cell.
    pub cell: &'a Cell,
    /// All cells of its column.
    pub column: &'a [Cell],
    /// The private column from which the cell comes, if there is one.
    pub private: Option<&'a Column>,
}

/// Which cells are changed together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// One cell.
    Cell,
    /// The cells of all rows with the same quasi cells.
    Class,
    /// The cells of all rows with the same label.
    Label,
}

impl Extent {
    /// All extents.
    pub const ALL: [Extent; 3] = [Extent::Cell, Extent::Class, Extent::Label];
}

const QUASI: &[Role] = &[Role::Quasi];
const COPIED: &[Role] = &[Role::Sensitive, Role::Plain];
const KEYS: &[Role] = &[Role::Key];
const ANY: &[Role] = &[Role::Quasi, Role::Sensitive, Role::Plain, Role::Key];

/// Every way to change a cell.
pub const CELL_CHANGES: &[CellChange] = &[
    CellChange { name: "its parent's label", roles: QUASI, instead: |place| place.nodes(parent) },
    CellChange { name: "a child's label", roles: QUASI, instead: |place| place.nodes(children) },
    CellChange { name: "a sibling's label", roles: QUASI, instead: |place| place.nodes(siblings) },
    CellChange { name: "the root's label", roles: QUASI, instead: |place| place.nodes(root) },
    CellChange { name: "the star", roles: QUASI, instead: |_| vec![text("*")] },
    CellChange { name: "null", roles: ANY, instead: |_| vec![None] },
    CellChange { name: "an empty text", roles: ANY, instead: |_| vec![text("")] },
    CellChange { name: "another spelling", roles: ANY, instead: respelled },
    CellChange { name: "another row's cell", roles: ANY, instead: |place| place.column.to_vec() },
    CellChange { name: "an unseen cell", roles: ANY, instead: |_| vec![text("999"), text("unseen")] },
    CellChange {
        name: "a lower bound moved out",
        roles: QUASI,
        instead: |place| place.range(|low, high| (low - 1, high)),
    },
    CellChange {
        name: "an upper bound moved out",
        roles: QUASI,
        instead: |place| place.range(|low, high| (low, high + 1)),
    },
    CellChange {
        name: "a lower bound moved in",
        roles: QUASI,
        instead: |place| place.range(|low, high| (low + 1, high)),
    },
    CellChange {
        name: "an upper bound moved in",
        roles: QUASI,
        instead: |place| place.range(|low, high| (low, high - 1)),
    },
    CellChange {
        name: "both bounds moved out",
        roles: QUASI,
        instead: |place| place.range(|low, high| (low - 9, high + 9)),
    },
    CellChange { name: "bounds exchanged", roles: QUASI, instead: |place| place.range(|low, high| (high, low)) },
    CellChange { name: "a value one more", roles: COPIED, instead: |place| place.number(1) },
    CellChange { name: "a key one more", roles: KEYS, instead: |place| place.number(1) },
];

fn text(text: &str) -> Cell {
    Some(text.to_owned())
}

impl Place<'_> {
    /// The labels of the nodes that `lead` finds from the cell's node.
    fn nodes(&self, lead: fn(&Hierarchy, u32) -> Vec<u32>) -> Vec<Cell> {
        let hierarchy = self.private.and_then(|column| column.hierarchy.as_deref());
        let node = hierarchy.zip(self.cell.as_deref()).and_then(|(tree, label)| Some((tree, tree.node(label)?)));
        node.map_or_else(Vec::new, |(tree, node)| {
            lead(tree, node).into_iter().map(|node| text(tree.label(node))).collect()
        })
    }

    /// The cell's range of whole numbers, changed.
    fn range(&self, change: fn(i64, i64) -> (i64, i64)) -> Vec<Cell> {
        let Some(cell) = self.cell.as_deref() else { return Vec::new() };
        let bounds =
            cell.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).and_then(|both| both.split_once(','));
        let (low, high) = bounds.unwrap_or((cell, cell));
        let Some((low, high)) = low.parse().ok().zip(high.parse().ok()) else { return Vec::new() };
        let (low, high) = change(low, high);
        // A range of one value is written as the value.
        vec![Some(if low == high { low.to_string() } else { format!("[{low},{high}]") })]
    }

    /// The cell's whole number and this many more.
    fn number(&self, more: i64) -> Vec<Cell> {
        let number = self.cell.as_deref().and_then(|cell| cell.parse::<i64>().ok());
        number.map(|number| Some((number + more).to_string())).into_iter().collect()
    }
}

fn parent(tree: &Hierarchy, node: u32) -> Vec<u32> {
    tree.parent(node).into_iter().collect()
}

fn children(tree: &Hierarchy, node: u32) -> Vec<u32> {
    (0..tree.n_nodes() as u32).filter(|&other| tree.parent(other) == Some(node)).collect()
}

fn siblings(tree: &Hierarchy, node: u32) -> Vec<u32> {
    let Some(parent) = tree.parent(node) else { return Vec::new() };
    children(tree, parent).into_iter().filter(|&other| other != node).collect()
}

fn root(tree: &Hierarchy, _: u32) -> Vec<u32> {
    vec![tree.root()]
}

/// The same value in other spellings, if it has any.
fn respelled(place: &Place<'_>) -> Vec<Cell> {
    let Some(cell) = place.cell.as_deref() else { return Vec::new() };
    let mut spellings = vec![format!("{cell} ")];
    match cell.strip_prefix('[') {
        Some(rest) => spellings.push(format!("[0{rest}")),
        None if cell.parse::<i64>().is_ok() => spellings.extend([format!("0{cell}"), format!("{cell}.0")]),
        None => spellings.push(cell.to_uppercase()),
    }
    spellings.into_iter().map(Some).collect()
}

/// Every sheet that differs from this one by one change of a cell, with the name of the change. `roles` are those of
/// the sheet's columns, and `private` are the columns from which they come.
pub fn changed_cells(sheet: &Sheet, roles: &[Role], private: &[Option<&Column>]) -> Vec<(String, Sheet)> {
    let quasi: Vec<usize> = (0..roles.len()).filter(|&column| roles[column] == Role::Quasi).collect();
    let look = |row: &[Cell]| -> Vec<Cell> { quasi.iter().map(|&column| row[column].clone()).collect() };
    let mut changed = Vec::new();
    for (position, &role) in roles.iter().enumerate() {
        let column = sheet.column(position);
        for change in CELL_CHANGES.iter().filter(|change| change.roles.contains(&role)) {
            for row in 0..sheet.rows.len() {
                let place = Place { cell: &column[row], column: &column, private: private[position] };
                let mut instead = (change.instead)(&place);
                instead.sort();
                instead.dedup();
                for cell in instead.into_iter().filter(|cell| *cell != column[row]) {
                    for extent in Extent::ALL {
                        let is_changed = |other: usize| match extent {
                            Extent::Cell => other == row,
                            Extent::Class => look(&sheet.rows[other]) == look(&sheet.rows[row]),
                            Extent::Label => column[other] == column[row],
                        };
                        let mut copy = sheet.clone();
                        for other in (0..sheet.rows.len()).filter(|&other| is_changed(other)) {
                            copy.rows[other][position].clone_from(&cell);
                        }
                        changed.push((format!("{role}: {}", change.name), copy));
                    }
                }
            }
        }
    }
    changed
}
