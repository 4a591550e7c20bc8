//! Random columns: every value type, every kind of hierarchy, nulls, and values of very different frequency.

use kohort_model::hierarchy::{DateLevel, MaskSide, Rule};
use kohort_model::{Column, Hierarchy, Notation, Role, Texts, ValueType};
use proptest::prelude::*;

/// How the cells of a column are made.
#[derive(Clone, Copy, Debug)]
pub(super) struct ColumnDraft {
    kind: Kind,
    n_values: u16,
    /// 1 makes all values equally frequent; the larger the number, the more frequent the first values.
    skew: i32,
    nulls: Nulls,
    tree: Tree,
    /// The seed of a random tree.
    shape: u64,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Integer,
    /// Integers that a float can't hold exactly.
    LargeInteger,
    Decimal,
    /// Decimals, some of which have two spellings.
    Respelled,
    Float,
    Date,
    Timestamp,
    /// Codes with leading zeros.
    Code,
    Word,
    Boolean,
}

#[derive(Clone, Copy, Debug)]
enum Nulls {
    None,
    Few,
    Many,
}

#[derive(Clone, Copy, Debug)]
enum Tree {
    None,
    Random,
    Flat,
    Mask(MaskSide),
    /// Steps for numbers, levels for dates, no hierarchy for others.
    ByValue,
}

pub(super) fn column_draft(most_values: u16) -> impl Strategy<Value = ColumnDraft> {
    let kind = prop_oneof![
        4 => Just(Kind::Integer),
        1 => Just(Kind::LargeInteger),
        1 => Just(Kind::Decimal),
        1 => Just(Kind::Respelled),
        1 => Just(Kind::Float),
        2 => Just(Kind::Date),
        1 => Just(Kind::Timestamp),
        2 => Just(Kind::Code),
        2 => Just(Kind::Word),
        1 => Just(Kind::Boolean),
    ];
    draft(kind, most_values)
}

pub(super) fn sensitive_draft() -> impl Strategy<Value = ColumnDraft> {
    draft(prop_oneof![Just(Kind::Word), Just(Kind::Integer), Just(Kind::Respelled)], 9).prop_map(|draft| {
        match draft.kind {
            // A hierarchy tells two spellings of a number apart, and an order does not. Another test says which
            // distance two spellings then have.
            Kind::Respelled => ColumnDraft { tree: Tree::None, ..draft },
            _ => draft,
        }
    })
}

fn draft(kind: impl Strategy<Value = Kind>, most_values: u16) -> impl Strategy<Value = ColumnDraft> {
    let nulls = prop_oneof![3 => Just(Nulls::None), 1 => Just(Nulls::Few), 1 => Just(Nulls::Many)];
    let tree = prop_oneof![
        3 => Just(Tree::None),
        3 => Just(Tree::Random),
        1 => Just(Tree::Flat),
        1 => Just(Tree::Mask(MaskSide::Right)),
        1 => Just(Tree::Mask(MaskSide::Left)),
        2 => Just(Tree::ByValue),
    ];
    (kind, 1..=most_values, 1..4i32, nulls, tree, any::<u64>())
        .prop_map(|(kind, n_values, skew, nulls, tree, shape)| ColumnDraft { kind, n_values, skew, nulls, tree, shape })
}

impl ColumnDraft {
    pub(super) fn column(&self, name: &str, role: Role, draws: impl Iterator<Item = u16>) -> Column {
        let cells: Vec<Option<String>> = draws.map(|draw| self.cell(draw)).collect();
        let column = Column::from_cells(name, role, cells.iter().map(Option::as_deref)).typed(self.kind.value_type());
        match self.hierarchy(&column.texts) {
            Some(hierarchy) => column.with_hierarchy(hierarchy),
            None => column,
        }
    }

    /// The cell that a number stands for: its last four bits decide whether it is null, the others choose the value.
    fn cell(&self, draw: u16) -> Option<String> {
        let is_null = match self.nulls {
            Nulls::None => false,
            Nulls::Few => draw & 15 == 15,
            Nulls::Many => draw & 15 >= 9,
        };
        let place = (f64::from(draw >> 4) / 4096.0).powi(self.skew);
        (!is_null).then(|| self.kind.text((place * f64::from(self.n_values)) as u16))
    }

    fn hierarchy(&self, texts: &Texts) -> Option<Hierarchy> {
        let rule = match (self.tree, self.kind) {
            (Tree::None, _) => return None,
            (Tree::Random, _) => return Some(self.random_tree()),
            (Tree::Flat, _) => Rule::Flat,
            (Tree::Mask(side), _) => Rule::Mask(side),
            (Tree::ByValue, Kind::Integer | Kind::LargeInteger) => Rule::Steps(vec![5.0, 10.0, 40.0]),
            (Tree::ByValue, Kind::Decimal | Kind::Respelled | Kind::Float) => Rule::Steps(vec![0.5, 5.0]),
            (Tree::ByValue, Kind::Date) => Rule::Dates(vec![DateLevel::Month, DateLevel::Year, DateLevel::Decade]),
            (Tree::ByValue, Kind::Timestamp) => Rule::Dates(vec![DateLevel::Day, DateLevel::Quarter]),
            (Tree::ByValue, Kind::Code | Kind::Word | Kind::Boolean) => return None,
        };
        Some(rule.make(texts, self.kind.value_type(), &Notation::default()).expect("the rule fits the kind"))
    }

    /// A ragged tree of up to three levels over all values that the column could hold, and some more.
    fn random_tree(&self) -> Hierarchy {
        let mut values: Vec<String> = (0..self.n_values + 2).map(|index| self.kind.text(index)).collect();
        values.sort_unstable();
        values.dedup();
        let root = if self.shape & 1 == 0 { "*" } else { "anything" };
        let mut paths = String::new();
        for (position, value) in values.iter().enumerate() {
            let bits = self.shape.rotate_left(7 * position as u32 + 1);
            let (group, part) = (bits % 3, (bits >> 8) % 3);
            paths += &match (bits >> 16) % 4 {
                0 => format!("{value};{root}\n"),
                1 => format!("{value};group {group};{root}\n"),
                _ => format!("{value};group {group} part {part};group {group};{root}\n"),
            };
        }
        Hierarchy::from_paths(&paths).expect("groups have one root, parts one group and values one path")
    }
}

impl Kind {
    fn value_type(self) -> ValueType {
        match self {
            Kind::Integer | Kind::LargeInteger => ValueType::Integer,
            Kind::Decimal | Kind::Respelled => ValueType::Decimal,
            Kind::Float => ValueType::Float,
            Kind::Date => ValueType::Date,
            Kind::Timestamp => ValueType::Timestamp,
            Kind::Code | Kind::Word => ValueType::Text,
            Kind::Boolean => ValueType::Boolean,
        }
    }

    fn text(self, index: u16) -> String {
        let number = i64::from(index);
        match self {
            Kind::Integer => (number * number / 3 - 7).to_string(),
            Kind::LargeInteger => (9_007_199_254_740_993 + number).to_string(),
            Kind::Decimal => format!("{}.{}5", number / 3 - 2, number % 3),
            Kind::Respelled if index.is_multiple_of(3) => format!("{}.50", number / 3 - 2),
            Kind::Respelled => format!("{}.5", number / 3 - 2),
            Kind::Float => format!("{}e{}", number % 5 + 1, number / 5),
            Kind::Date => date(number),
            Kind::Timestamp => format!("{}T{:02}:30:00", date(number / 3), number % 3 * 7),
            Kind::Code => format!("0{:04}", number * 137 % 10_000),
            Kind::Word => format!("{}{}", ["ash", "birch", "cedar"][index as usize % 3], index / 3),
            Kind::Boolean => index.is_multiple_of(2).to_string(),
        }
    }
}

/// Dates on both sides of 1970.
fn date(number: i64) -> String {
    format!("{:04}-{:02}-{:02}", 1964 + number % 13, 1 + number * 5 % 12, 1 + number * 11 % 28)
}
