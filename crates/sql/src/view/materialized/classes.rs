//! [`ClassTable`]: the labels of a materialized view's classes in memory, so that a query finds those that could match.
//!
//! # Cost
//! A question for values finds the labels that could be equal to them by their spans ([`PairFinder`]), then the classes
//! of the column that has fewest of them; other questions ask every distinct label of their column. Labels that came
//! since spans were last sorted are few, and all asked.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use datafusion::arrow::array::StringArray;
use kohort_labels::meaning::{CouldBe, PairFinder, Side};
use kohort_labels::rewrite::Meanings;
use kohort_model::{NULL, Texts};

use super::cells::KeptCells;
use super::memory::Counters;
use crate::view::read::choose::ClassLabels;

/// So many labels may come before spans are sorted anew, and a quarter of those that are.
const FEW_LABELS: usize = 64;

/// The number of a class, whether its rows are shown by themselves, and its labels.
pub(super) type Labelled = (i64, bool, Vec<Option<String>>);

/// The numbers between which the rows of a class lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) first: i64,
    pub(super) last: i64,
    pub(super) n_rows: u64,
}

impl Span {
    pub(super) fn of(row: i64) -> Span {
        Span { first: row, last: row, n_rows: 1 }
    }

    pub(super) fn add(&mut self, row: i64) {
        *self = Span { first: self.first.min(row), last: self.last.max(row), n_rows: self.n_rows + 1 };
    }

    /// That of these rows; `None` where there is none.
    pub(super) fn over(mut rows: impl Iterator<Item = i64>) -> Option<Span> {
        let mut span = Span::of(rows.next()?);
        rows.for_each(|row| span.add(row));
        Some(span)
    }

    /// Whether to read everything between them is less than to look each up.
    fn is_dense(&self) -> bool {
        self.first.abs_diff(self.last) < 2 * self.n_rows
    }
}

/// Classes by their labels, as of a state of the view.
#[derive(Default)]
pub(in crate::view) struct ClassTable {
    /// The state it is of.
    pub(super) counters: Counters,
    /// Positions of the quasi columns in the view.
    quasi: Vec<usize>,
    columns: Vec<LabelColumn>,
    /// Per place the class's number in the store.
    numbers: Vec<i64>,
    /// Per place whether its rows are shown by themselves.
    is_alone: Vec<bool>,
    /// Per place whether somebody in it may refuse something.
    is_restricted: Vec<bool>,
    /// The places of those.
    restricted: Vec<u32>,
    /// Per place where its rows lie, if close to each other and none came or went since.
    spans: Vec<Option<Span>>,
    /// Per place how many rows it shows; `None` where only the store knows.
    n_shown: Vec<Option<u64>>,
    places: HashMap<i64, u32>,
    /// The rows of classes of which it is known where they lie.
    pub(super) kept: Option<Arc<KeptCells>>,
}

/// What classes show in one quasi column.
#[derive(Default)]
struct LabelColumn {
    labels: Texts,
    ids: HashMap<String, u32>,
    /// Per place a label's id, or [`NULL`].
    of_class: Vec<u32>,
    /// Per label the places of its classes.
    classes: Vec<Vec<u32>>,
    /// Finds the first of its labels by a value; `None` where a label can't be read.
    finder: Option<PairFinder>,
    n_findable: usize,
}

impl ClassTable {
    pub(super) fn new(quasi: Vec<usize>) -> ClassTable {
        let columns = quasi.iter().map(|_| LabelColumn::default()).collect();
        ClassTable { quasi, columns, ..ClassTable::default() }
    }

    /// Adds a class, or gives it other labels.
    pub(super) fn put(&mut self, number: i64, is_alone: bool, labels: &[Option<&str>]) {
        let place = *self.places.entry(number).or_insert_with(|| {
            self.numbers.push(number);
            self.is_alone.push(is_alone);
            self.is_restricted.push(false);
            self.spans.push(None);
            self.n_shown.push(None);
            self.columns.iter_mut().for_each(|column| column.of_class.push(NULL));
            self.numbers.len() as u32 - 1
        });
        for (column, label) in self.columns.iter_mut().zip(labels) {
            column.put(place, *label);
        }
    }

    /// Notes that somebody in a class may refuse something.
    pub(super) fn restrict(&mut self, number: i64) {
        let Some(&place) = self.places.get(&number) else { return };
        if !std::mem::replace(&mut self.is_restricted[place as usize], true) {
            self.restricted.push(place);
        }
    }

    /// Notes where the rows of a class lie; `None` where that is not known any more.
    pub(super) fn lie(&mut self, number: i64, span: Option<Span>) {
        let Some(&place) = self.places.get(&number) else { return };
        self.spans[place as usize] = span.filter(Span::is_dense);
    }

    /// Notes how many rows a class shows.
    pub(super) fn count(&mut self, number: i64, n_rows: u64) {
        let Some(&place) = self.places.get(&number) else { return };
        self.n_shown[place as usize] = Some(n_rows);
    }

    /// Notes how many rows a class shows as a crowd. Nobody counts rows that are shown by themselves.
    pub(super) fn count_crowd(&mut self, number: i64, n_members: u64) {
        let Some(&place) = self.places.get(&number) else { return };
        self.n_shown[place as usize] = (!self.is_alone[place as usize]).then_some(n_members);
    }

    /// The numbers of all classes.
    pub(super) fn numbers(&self) -> Vec<i64> {
        self.numbers.clone()
    }

    /// How many rows the class at a place shows. Without rows in memory nobody notes it when one that is shown by itself
    /// goes.
    fn n_shown(&self, place: u32) -> Option<u64> {
        let is_unknown = self.is_alone[place as usize] && self.kept.is_none();
        self.n_shown[place as usize].filter(|_| !is_unknown)
    }

    /// Whether somebody is shown in the class at a place, as far as is known. A class that somebody only waits at is none
    /// to readers: its labels are that person's own.
    fn may_show(&self, place: u32) -> bool {
        self.n_shown(place) != Some(0)
    }

    /// How many classes show somebody, as far as is known.
    pub(super) fn n_classes(&self) -> usize {
        (0..self.numbers.len() as u32).filter(|&place| self.may_show(place)).count()
    }

    /// The labels that everybody finds in a quasi column, and the places of classes of which only their rows tell: somebody
    /// in them may refuse something, or nobody may be there any more.
    pub(super) fn shown_labels(&self, position: usize) -> (BTreeSet<String>, Vec<u32>) {
        let quasi = self.quasi.iter().position(|&quasi| quasi == position).expect("it is a quasi column");
        let column = &self.columns[quasi];
        let mut is_shown = vec![false; column.labels.len()];
        let mut unsure = Vec::new();
        for (place, &id) in (0..).zip(&column.of_class) {
            match self.n_shown(place) {
                Some(0) => {}
                Some(_) if !self.is_restricted[place as usize] => {
                    is_shown.get_mut(id as usize).into_iter().for_each(|is_shown| *is_shown = true);
                }
                Some(_) | None => unsure.push(place),
            }
        }
        let shown = (0..).zip(is_shown).filter(|&(_, is_shown)| is_shown);
        (shown.map(|(id, _)| column.labels.get(id).to_owned()).collect(), unsure)
    }

    /// The numbers of the classes at these places, those of which it is known where their rows lie apart from others.
    pub(super) fn lying(&self, places: &[u32]) -> (Vec<(i64, Span)>, Vec<i64>) {
        let (mut near, mut far) = (Vec::with_capacity(places.len()), Vec::new());
        for &place in places {
            let number = self.numbers[place as usize];
            match self.spans[place as usize] {
                Some(span) => near.push((number, span)),
                None => far.push(number),
            }
        }
        near.sort_unstable_by_key(|(_, span)| span.first);
        (near, far)
    }

    /// Lets labels be found by values, where many came since.
    pub(super) fn settle(&mut self, meanings: &Meanings) {
        for (column, &position) in self.columns.iter_mut().zip(&self.quasi) {
            column.settle(meanings, position);
        }
    }

    /// The places of the classes that these questions choose, and of those in which somebody may refuse what is asked;
    /// `None` where that can't be told, or they are more than so many. Each question is of a quasi column, by its
    /// position in the view.
    pub(super) fn find(&self, asked: &[(usize, &CouldBe)], most: usize) -> Option<Vec<u32>> {
        let mut chosen: Vec<(&LabelColumn, Vec<u32>)> = Vec::with_capacity(asked.len());
        for (position, question) in asked {
            let column = &self.columns[self.quasi.iter().position(|quasi| quasi == position)?];
            chosen.push((column, column.find(question)?));
        }
        let n_classes = |(column, ids): &(&LabelColumn, Vec<u32>)| -> usize {
            ids.iter().map(|&id| column.classes[id as usize].len()).sum()
        };
        let fewest = (0..chosen.len()).min_by_key(|&place| n_classes(&chosen[place]))?;
        let (column, ids) = &chosen[fewest];
        let shows = |place: u32, (column, ids): &(&LabelColumn, Vec<u32>)| {
            ids.binary_search(&column.of_class[place as usize]).is_ok()
        };
        let classes = ids.iter().flat_map(|&id| &column.classes[id as usize]).copied();
        let mut found: Vec<u32> = self.restricted.iter().copied().take(most + 1).collect();
        let classes = classes.filter(|&place| self.may_show(place));
        found.extend(classes.filter(|&place| chosen.iter().all(|asked| shows(place, asked))).take(most + 1));
        found.sort_unstable();
        found.dedup();
        (found.len() <= most).then_some(found)
    }

    /// The places that are marked, and those in which somebody may refuse what is compared.
    pub(super) fn marked(&self, is_wanted: &[bool]) -> Vec<u32> {
        let wanted = (0..).zip(is_wanted.iter().zip(&self.is_restricted));
        let wanted = wanted.filter(|(_, (wanted, restricted))| **wanted || **restricted).map(|(place, _)| place);
        wanted.filter(|&place| self.may_show(place)).collect()
    }

    /// The classes at these places.
    pub(super) fn described(&self, places: &[u32]) -> Vec<Labelled> {
        let label = |column: &LabelColumn, place: usize| match column.of_class[place] {
            NULL => None,
            id => Some(column.labels.get(id).to_owned()),
        };
        let class = |&place: &u32| {
            let place = place as usize;
            let labels = self.columns.iter().map(|column| label(column, place)).collect();
            (self.numbers[place], self.is_alone[place], labels)
        };
        places.iter().map(class).collect()
    }
}

impl LabelColumn {
    fn put(&mut self, place: u32, label: Option<&str>) {
        let id = match label {
            None => NULL,
            Some(label) => match self.ids.get(label) {
                Some(&id) => id,
                None => {
                    let id = self.labels.push(label);
                    self.ids.insert(label.to_owned(), id);
                    self.classes.push(Vec::new());
                    id
                }
            },
        };
        let was = std::mem::replace(&mut self.of_class[place as usize], id);
        if was == id {
            return;
        }
        if was != NULL {
            self.classes[was as usize].retain(|&other| other != place);
        }
        if id != NULL {
            self.classes[id as usize].push(place);
        }
    }

    fn settle(&mut self, meanings: &Meanings, position: usize) {
        let n_labels = self.labels.len();
        if n_labels <= self.n_findable + self.n_findable / 4 + FEW_LABELS {
            return;
        }
        let Some(meaning) = meanings.get(position).and_then(Option::as_ref) else { return };
        let labels: StringArray = self.labels.iter().map(Some).collect();
        let (kind, asked) = (Side::Protected(meaning.clone()), Side::Raw(meaning.value_type()));
        self.finder = PairFinder::new(labels, kind, asked).ok();
        self.n_findable = n_labels;
    }

    /// The ids of the labels that could, ascending; `None` where that can't be told, or a missing label could, too.
    fn find(&self, question: &CouldBe) -> Option<Vec<u32>> {
        if question.matches(None).ok()? {
            return None;
        }
        let n_labels = self.labels.len() as u32;
        let mut ids = match (question.condition().values(), &self.finder) {
            (Some(values), Some(finder)) => {
                let mut ids: Vec<u32> = (self.n_findable as u32..n_labels).collect();
                for value in values {
                    finder.find(value.text(), &mut ids).ok()?;
                }
                ids.sort_unstable();
                ids.dedup();
                ids
            }
            _ => (0..n_labels).collect(),
        };
        let mut is_told = true;
        ids.retain(|&id| {
            let could = question.matches(Some(self.labels.get(id)));
            is_told &= could.is_ok();
            could.unwrap_or(true)
        });
        is_told.then_some(ids)
    }
}

impl ClassLabels for ClassTable {
    fn quasi(&self) -> &[usize] {
        &self.quasi
    }

    fn labels(&self, quasi: usize) -> &Texts {
        &self.columns[quasi].labels
    }

    fn label_ids(&self, quasi: usize) -> &[u32] {
        &self.columns[quasi].of_class
    }
}
