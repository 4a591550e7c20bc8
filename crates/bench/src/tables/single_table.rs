//! Single-table k-anonymity applied to several tables, which hides each row among k rows but not each person among k
//! persons.
//!
//! The universal relation joins all tables and anonymizes the rows; local anonymization treats each table by itself.
//! Join keys are left as they are, or generalized with the quasi columns to the set of keys of each class (tables V and
//! VI). `auto` for one table anonymizes the rows.
//!
//! # Paper
//! `[NCN08]`, sections III-A and III-B
//! # Deviations
//! The paper only argues that these methods fail; here exposed persons are counted. If join keys are left as they are,
//! a person is exposed if fewer than k persons have equal trees of released rows, like Chris with his science courses.
//! If keys are generalized, a person is exposed by a row whose key stands for fewer than k persons. This is counted
//! twice: as shown, and for readers who know that a student has one GPA and so rule out rows with another GPA. The
//! generalized key of a student in a table of students without quasi columns tells nothing about a course, so that
//! table is left out.

use std::collections::{BTreeSet, HashMap};
use std::error::Error;

use kohort_core::anonymize;
use kohort_model::{Cells, Column, Loss, Role, Silent, Spec, Table, ValueType};

use super::students::Students;

/// What happens to the columns that join tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JoinKeys {
    Kept,
    Generalized,
}

/// The loss of a release of rows, and what it gives away.
pub(super) struct Exposure {
    /// The LM over the cells of courses and books.
    pub(super) lm: f64,
    /// The DM, if keys still join, so that there are trees to compare.
    pub(super) dm: Option<f64>,
    /// How many persons are hidden among fewer than k.
    pub(super) n_exposed: usize,
    /// How many are hidden among fewer than k from readers who know that a student has one GPA; `None` if the GPA is
    /// not released beside courses.
    pub(super) n_exposed_by_gpa: Option<usize>,
    /// The share of joining pairs of rows that did not join before.
    pub(super) false_joins: f64,
}

/// Joins all tables, then hides each row among k.
pub(super) fn universal(students: &Students, k: u32, keys: JoinKeys) -> Result<Exposure, Box<dyn Error>> {
    let rows = 0..students.book().ids.len();
    let owner: Vec<u32> = rows.map(|book| students.student_of_book(book)).collect();
    let courses = students.takes_of_book.iter().map(|&takes| students.course().ids[takes as usize]);
    let course = Column { ids: courses.collect(), ..students.course().clone() };
    let anonymized = Rows::anonymize(&owner, vec![course, students.book().clone()], k, keys)?;
    let lm = f64::midpoint(anonymized.loss.columns["course"], anonymized.loss.columns["book"]);
    if keys == JoinKeys::Kept {
        let mut trees = vec![Vec::new(); students.len()];
        owner.iter().zip(&anonymized.class_of_row).for_each(|(&student, &class)| trees[student as usize].push(class));
        return Ok(exposed_by_trees(trees, k, lm));
    }
    let mut candidates = anonymized.candidates(&owner);
    let n_exposed = exposed(&owner, &candidates, k);
    exclude_by_gpa(&mut candidates, &owner, &students.gpa().ids);
    let n_exposed_by_gpa = Some(exposed(&owner, &candidates, k));
    Ok(Exposure { lm, dm: None, n_exposed, n_exposed_by_gpa, false_joins: 0.0 })
}

/// Hides each row among k in each table by itself.
pub(super) fn local(students: &Students, k: u32, keys: JoinKeys) -> Result<Exposure, Box<dyn Error>> {
    let takes = Rows::anonymize(&students.student_of_takes, vec![students.course().clone()], k, keys)?;
    let books = Rows::anonymize(&students.takes_of_book, vec![students.book().clone()], k, keys)?;
    let (n_takes, n_books) = (students.student_of_takes.len() as f64, students.takes_of_book.len() as f64);
    let lm = (takes.loss.columns["course"] * n_takes + books.loss.columns["book"] * n_books) / (n_takes + n_books);
    if keys == JoinKeys::Kept {
        let mut courses: Vec<(u32, Vec<u32>)> = takes.class_of_row.iter().map(|&class| (class, Vec::new())).collect();
        students
            .takes_of_book
            .iter()
            .zip(&books.class_of_row)
            .for_each(|(&row, &book)| courses[row as usize].1.push(book));
        let mut trees = vec![Vec::new(); students.len()];
        for (&student, mut course) in students.student_of_takes.iter().zip(courses) {
            course.1.sort_unstable();
            trees[student as usize].push(course);
        }
        return Ok(exposed_by_trees(trees, k, lm));
    }
    let candidates = takes.candidates(&students.student_of_takes);
    let n_exposed = exposed(&students.student_of_takes, &candidates, k);
    let of_books = books.candidates(&students.takes_of_book);
    let n_joins: usize = candidates.iter().chain(&of_books).map(BTreeSet::len).sum();
    let false_joins = 1.0 - (n_takes + n_books) / n_joins as f64;
    Ok(Exposure { lm, dm: None, n_exposed, n_exposed_by_gpa: None, false_joins })
}

/// Rows of a single table, anonymized.
struct Rows {
    /// Rows that look the same are in one class.
    class_of_row: Vec<u32>,
    loss: Loss,
}

impl Rows {
    fn anonymize(keys: &[u32], mut columns: Vec<Column>, k: u32, join_keys: JoinKeys) -> Result<Rows, Box<dyn Error>> {
        let n_rows = keys.len();
        if join_keys == JoinKeys::Generalized {
            let texts: Vec<String> = keys.iter().map(u32::to_string).collect();
            let cells = texts.iter().map(|text| Some(text.as_str()));
            columns.insert(0, Column::from_cells("key", Role::Quasi, cells).typed(ValueType::Integer));
        }
        let mut text = format!("k = {k}\n[tables.rows]\nfile = \"rows.csv\"\n[tables.rows.columns]\n");
        columns.iter().for_each(|column| text += &format!("{} = \"quasi\"\n", column.name));
        let spec = Spec::parse(&text)?;
        let table = Table { name: "rows".to_owned(), columns, n_rows, person: None };
        let anonymized = anonymize(&table, &spec, &spec.requirements(&spec.tables[0]), &Silent)?;
        let released = &anonymized.release.tables[0];
        let mut shown: Vec<Vec<u32>> = vec![Vec::new(); n_rows];
        for column in &released.columns {
            let Cells::Recoded { ids, .. } = &column.cells else { continue };
            released.rows.iter().zip(ids).for_each(|(&row, &id)| shown[row as usize].push(id));
        }
        let mut classes: HashMap<Vec<u32>, u32> = HashMap::new();
        let mut class_of_row = Vec::with_capacity(n_rows);
        for cells in shown {
            let next = classes.len() as u32;
            class_of_row.push(*classes.entry(cells).or_insert(next));
        }
        Ok(Rows { class_of_row, loss: anonymized.loss })
    }

    /// For each row, the keys that it may have, which are the keys of its class.
    fn candidates(&self, keys: &[u32]) -> Vec<BTreeSet<u32>> {
        let mut of_class: HashMap<u32, BTreeSet<u32>> = HashMap::new();
        for (&class, &key) in self.class_of_row.iter().zip(keys) {
            of_class.entry(class).or_default().insert(key);
        }
        self.class_of_row.iter().map(|class| of_class[class].clone()).collect()
    }
}

/// The persons whom released rows tell apart, if it is known which rows belong together.
fn exposed_by_trees<T: Ord + std::hash::Hash>(mut trees: Vec<Vec<T>>, k: u32, lm: f64) -> Exposure {
    trees.iter_mut().for_each(|tree| tree.sort_unstable());
    let mut sizes: HashMap<&[T], usize> = HashMap::new();
    trees.iter().for_each(|tree| *sizes.entry(tree).or_insert(0) += 1);
    let n_exposed = sizes.values().filter(|&&size| size < k as usize).sum();
    let dm = sizes.values().map(|&size| (size * size) as f64).sum();
    Exposure { lm, dm: Some(dm), n_exposed, n_exposed_by_gpa: None, false_joins: 0.0 }
}

/// How many persons have a row that can only belong to them or to fewer than k - 1 others.
fn exposed(owner: &[u32], candidates: &[BTreeSet<u32>], k: u32) -> usize {
    let rows = owner.iter().zip(candidates).filter(|(_, candidates)| candidates.len() < k as usize);
    rows.map(|(owner, _)| owner).collect::<BTreeSet<_>>().len()
}

/// A row with one candidate reveals that person's GPA, which rules the person out in rows with another GPA. Repeats
/// until nothing more follows.
fn exclude_by_gpa(candidates: &mut [BTreeSet<u32>], owner: &[u32], gpa_of_student: &[u32]) {
    let mut known: HashMap<u32, u32> = HashMap::new();
    loop {
        let n_known = known.len();
        for (candidates, &owner) in candidates.iter_mut().zip(owner) {
            let gpa = gpa_of_student[owner as usize];
            candidates.retain(|student| known.get(student).is_none_or(|&of_student| of_student == gpa));
            if candidates.len() == 1 {
                known.extend(candidates.first().map(|&student| (student, gpa)));
            }
        }
        if known.len() == n_known {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dependency_of_table_v_finds_every_student() {
        // AT2 of the paper: students S1 to S4 are 0 to 3, with their own GPAs.
        let sets: [&[u32]; 11] =
            [&[0], &[0], &[0, 3], &[0, 1, 2, 3], &[1, 2], &[1, 3], &[2], &[2], &[1, 2], &[0, 3], &[1, 3]];
        let owner = [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3];
        let mut candidates: Vec<BTreeSet<u32>> = sets.iter().map(|set| set.iter().copied().collect()).collect();
        assert_eq!(exposed(&owner, &candidates, 2), 2);
        exclude_by_gpa(&mut candidates, &owner, &[372, 234, 312, 400]);
        assert_eq!(exposed(&owner, &candidates, 2), 4);
    }

    #[test]
    fn rows_in_twos_expose_who_takes_them_together() {
        // AT1 of the paper: every row occurs twice, and yet each student can be singled out.
        let (science, history, physics, religion) = (0, 1, 2, 3);
        let trees = vec![
            vec![science, science, history],
            vec![science, physics, religion],
            vec![history, religion, physics],
            vec![history, religion],
        ];
        let exposure = exposed_by_trees(trees, 2, 0.0);
        assert_eq!((exposure.n_exposed, exposure.dm), (4, Some(4.0)));
    }

    #[test]
    fn persons_hidden_among_k_are_not_exposed_by_their_trees() {
        assert_eq!(exposed_by_trees(vec![vec![1, 2], vec![2, 1], vec![3]], 2, 0.0).n_exposed, 1);
    }
}
