//! [`ClassLabels`]: what classes show in the quasi columns, and the choice of the classes that a query needs.
//!
//! # Guarantee
//! A class that is not chosen shows the reader no row that satisfies all comparisons. Classes are chosen whole.
//! # Cost
//! A comparison of one column asks each distinct label once. If it looks for values, [`PairFinder`] finds the labels that
//! could stand for them, so only those are asked, and the labels that came since the finder was made. Then the classes
//! that show one of the found labels are looked at, for the comparison that found fewest.

use std::borrow::Cow;

use datafusion::arrow::array::StringArray;
use datafusion::error::Result;
use kohort_labels::meaning::{PairFinder, Side};
use kohort_labels::rewrite::Meanings;
use kohort_model::{NULL, Texts};

use super::Definition;
use super::read::choose::{LabelComparison, Labels};
use crate::names::Names;

/// A finder is made anew once this many labels, and a quarter of those it knows, came since.
const FEW_LABELS: usize = 64;

/// The labels of numbered classes.
#[derive(Default)]
pub(in crate::view) struct ClassLabels {
    /// Positions of the quasi columns in the view.
    quasi: Vec<usize>,
    columns: Vec<LabelColumn>,
    n_classes: usize,
}

/// The labels of one quasi column.
#[derive(Default)]
struct LabelColumn {
    labels: Names,
    /// For each class, a label's id, or [`NULL`].
    of_class: Vec<u32>,
    /// For each label, the classes that show it.
    classes: Vec<Vec<u32>>,
    /// Finds the first `n_findable` labels by a value; `None` if one of them can't be read.
    finder: Option<PairFinder>,
    n_findable: usize,
}

/// The labels or classes that satisfy one comparison.
enum Satisfying {
    /// These labels of a column, ascending, and perhaps a missing label.
    Labels { column: usize, ids: Vec<u32>, null: bool },
    /// The classes marked here.
    Classes(Vec<bool>),
}

impl ClassLabels {
    pub(in crate::view) fn new(quasi: Vec<usize>) -> ClassLabels {
        let columns = quasi.iter().map(|_| LabelColumn::default()).collect();
        ClassLabels { quasi, columns, n_classes: 0 }
    }

    /// Positions of the quasi columns in the view.
    pub(in crate::view) fn quasi(&self) -> &[usize] {
        &self.quasi
    }

    pub(in crate::view) fn n_classes(&self) -> usize {
        self.n_classes
    }

    /// The distinct labels of a quasi column, by the column's place among them.
    pub(in crate::view) fn labels(&self, quasi: usize) -> &Texts {
        self.columns[quasi].labels.texts()
    }

    /// For each class, a label's id in a quasi column, or [`NULL`].
    pub(in crate::view) fn ids(&self, quasi: usize) -> &[u32] {
        &self.columns[quasi].of_class
    }

    /// The label of a class in a quasi column.
    pub(in crate::view) fn label(&self, quasi: usize, class: u32) -> Option<&str> {
        let column = &self.columns[quasi];
        match column.of_class[class as usize] {
            NULL => None,
            id => Some(column.labels.texts().get(id)),
        }
    }

    /// The labels of a class.
    pub(in crate::view) fn of(&self, class: u32) -> Vec<Option<&str>> {
        (0..self.quasi.len()).map(|quasi| self.label(quasi, class)).collect()
    }

    /// The id of a label in a quasi column, a new one if the label is new there.
    pub(in crate::view) fn id(&mut self, quasi: usize, label: &str) -> u32 {
        let column = &mut self.columns[quasi];
        let id = column.labels.number(label);
        column.classes.resize(column.labels.len(), Vec::new());
        id
    }

    /// Adds a class with these labels, by their ids.
    pub(in crate::view) fn push_ids(&mut self, ids: &[u32]) {
        let class = self.n_classes as u32;
        self.n_classes += 1;
        for (column, &id) in self.columns.iter_mut().zip(ids) {
            column.of_class.push(id);
            if id != NULL {
                column.classes[id as usize].push(class);
            }
        }
    }

    /// Adds a class with these labels.
    pub(in crate::view) fn push<T: AsRef<str>>(&mut self, labels: &[Option<T>]) {
        let mut ids = Vec::with_capacity(labels.len());
        for (quasi, label) in labels.iter().enumerate() {
            ids.push(label.as_ref().map_or(NULL, |label| self.id(quasi, label.as_ref())));
        }
        self.push_ids(&ids);
    }

    /// Lets labels be found by values, if many came since this was last done.
    pub(in crate::view) fn settle(&mut self, meanings: &Meanings) {
        for (column, &position) in self.columns.iter_mut().zip(&self.quasi) {
            let n_labels = column.labels.len();
            if n_labels <= column.n_findable + column.n_findable / 4 + FEW_LABELS {
                continue;
            }
            let Some(meaning) = meanings.get(position).and_then(Option::as_ref) else { continue };
            let labels: StringArray = column.labels.texts().iter().map(Some).collect();
            let (kind, asked) = (Side::Protected(meaning.clone()), Side::Raw(meaning.value_type()));
            column.finder = PairFinder::new(labels, kind, asked).ok();
            column.n_findable = n_labels;
        }
    }

    /// The classes whose labels satisfy all comparisons, ascending. A refusal may make a class show another label than it
    /// has: of the classes in `refused`, those are chosen, too, for which `hides` says of each unsatisfied comparison that
    /// one of its columns may be hidden. A comparison that can't be evaluated excludes no class, because evaluating it on
    /// the rows that leave fails again, with its own message.
    pub(in crate::view) fn choose(
        &self,
        definition: &Definition,
        comparisons: &[LabelComparison],
        refused: impl Iterator<Item = u32>,
        hides: impl Fn(u32, u64) -> bool,
    ) -> Result<Vec<u32>> {
        let mut found = Vec::with_capacity(comparisons.len());
        for comparison in comparisons {
            found.extend(self.find(definition, comparison)?.map(|found| (comparison.columns, found)));
        }
        let holds = |class: &u32| found.iter().all(|(_, found)| self.holds(found, *class));
        let fewest = found.iter().filter_map(|(_, found)| self.classes(found)).min_by_key(|(n_classes, _)| *n_classes);
        let mut chosen: Vec<u32> = match fewest {
            Some((_, classes)) => classes.filter(holds).collect(),
            None => (0..self.n_classes as u32).filter(holds).collect(),
        };
        chosen.extend(
            refused.filter(|&class| {
                found.iter().all(|(columns, found)| hides(class, *columns) || self.holds(found, class))
            }),
        );
        chosen.sort_unstable();
        chosen.dedup();
        Ok(chosen)
    }

    fn find(&self, definition: &Definition, comparison: &LabelComparison) -> Result<Option<Satisfying>> {
        let Some(column) = comparison.only_column(definition) else {
            let labels = Labels((0..self.quasi.len()).map(|at| (self.labels(at), Cow::from(self.ids(at)))).collect());
            return Ok(labels.satisfying(definition, comparison)?.map(Satisfying::Classes));
        };
        if let Some(ids) = self.columns[column].find_values(comparison) {
            return Ok(Some(Satisfying::Labels { column, ids, null: false }));
        }
        let found = comparison.of_labels(definition, column, self.labels(column))?;
        Ok(found.map(|mut found| {
            let null = found.pop().unwrap_or(true);
            let ids = (0..).zip(found).filter(|&(_, found)| found).map(|(id, _)| id).collect();
            Satisfying::Labels { column, ids, null }
        }))
    }

    fn holds(&self, found: &Satisfying, class: u32) -> bool {
        match found {
            Satisfying::Classes(classes) => classes[class as usize],
            Satisfying::Labels { column, ids, null } => match self.columns[*column].of_class[class as usize] {
                NULL => *null,
                id => ids.binary_search(&id).is_ok(),
            },
        }
    }

    /// The classes that show one of the found labels, and how many they are; `None` if they are not listed anywhere.
    fn classes<'f>(&'f self, found: &'f Satisfying) -> Option<(usize, impl Iterator<Item = u32> + 'f)> {
        let Satisfying::Labels { column, ids, null: false } = found else { return None };
        let lists = ids.iter().map(|&id| &self.columns[*column].classes[id as usize]);
        Some((lists.clone().map(Vec::len).sum(), lists.flatten().copied()))
    }
}

impl LabelColumn {
    /// The ids of the labels that could stand for one of the values that a question looks for, ascending; `None` if the
    /// finder can't tell.
    fn find_values(&self, comparison: &LabelComparison) -> Option<Vec<u32>> {
        let (question, finder) = (comparison.question()?, self.finder.as_ref()?);
        let mut ids = Vec::new();
        for value in question.condition().values()? {
            finder.find(value.text(), &mut ids).ok()?;
        }
        for id in self.n_findable as u32..self.labels.len() as u32 {
            ids.extend(question.matches(Some(self.labels.texts().get(id))).ok()?.then_some(id));
        }
        ids.sort_unstable();
        ids.dedup();
        Some(ids)
    }
}
