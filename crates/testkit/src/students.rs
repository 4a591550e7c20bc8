//! The students of the multirelational paper's experiments, in any number.
//!
//! # Paper
//! `[NCN08]`, section V: 1000 students, each with 1 obligatory course, 2 or 3 technical and 2 or 3 other electives out
//! of 22 courses, each course with 2, 3 or 4 textbooks to choose from.
//! # Deviations
//! The paper leaves the rest open. There are 4 departments. Each has its obligatory course and, for each kind of
//! elective, one of 3 areas that its students take three times as often. For each course a student buys 1 or 2 of its
//! books, so that a student has 16 rows on average, or all books, so that there are 25 rows. A course's hierarchy goes
//! by area, kind (technical, other) and root; a book's by the area and kind of its course. GPA, grades and prices are
//! random.

use std::fmt::Write;

use kohort_model::{Column, Hierarchy, Role, Spec, Table, ValueType};

use crate::random::Random;

/// The spec of the students. It sets neither k nor the algorithm, which differ between experiments.
const SPEC: &str = r#"
k = 2
[tables.student]
file = "student.csv"
person = "sid"
columns = { sid = "key", gpa = "sensitive" }
[tables.takes]
file = "takes.csv"
key = "scid"
parent = { table = "student", foreign_key = "sid" }
[tables.takes.columns]
scid = "key"
sid = "key"
course = { role = "quasi", hierarchy = "course.dgh.csv" }
grade = "sensitive"
[tables.books]
file = "books.csv"
parent = { table = "takes", foreign_key = "scid" }
[tables.books.columns]
scid = "key"
book = { role = "quasi", hierarchy = "book.dgh.csv" }
price = "sensitive"
"#;

const N_DEPARTMENTS: usize = 4;
/// Areas of technical courses, then of others, each with 3 courses.
const AREAS: [(&str, &str); 6] = [
    ("Mathematics", "Technical"),
    ("Physics", "Technical"),
    ("Computing", "Technical"),
    ("History", "Other"),
    ("Language", "Other"),
    ("Economics", "Other"),
];
const COURSES_PER_AREA: usize = 3;
const N_AREAS_OF_KIND: usize = 3;
/// How much more often courses of a department's own area are taken.
const OWN_AREA: usize = 3;

/// One of the 22 courses.
#[derive(Clone)]
struct Course {
    name: String,
    area: usize,
    books: Vec<String>,
}

/// How many of a course's books a student buys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Books {
    /// One or two.
    Some,
    /// All, from two to four.
    All,
}

/// Generates this many students with their courses and books, always the same ones for one seed.
///
/// # Panics
/// Never: the spec is a constant.
pub fn generate(n: usize, seed: u64, bought: Books) -> (Vec<Table>, Spec) {
    let mut random = Random::new(seed);
    let courses = courses();
    let mut student = Rows::default();
    let mut takes = Rows::default();
    let mut books = Rows::default();
    for number in 1..=n {
        let sid = format!("S{number}");
        student.push(&[&sid, &format!("{}.{:02}", 1 + random.below(3), random.below(100))]);
        let department = random.below(N_DEPARTMENTS);
        for course in chosen(&mut random, &courses, department) {
            let scid = format!("SC{}", takes.n_rows() + 1);
            takes.push(&[&scid, &sid, &course.name, &(40 + random.below(61)).to_string()]);
            let n_books = match bought {
                Books::Some => 1 + random.below(2),
                Books::All => course.books.len(),
            };
            for book in random.choose(&course.books, n_books) {
                books.push(&[&scid, &book, &(20 + random.below(80)).to_string()]);
            }
        }
    }
    let tables = vec![
        student.table("student", &[("sid", Role::Key), ("gpa", Role::Sensitive)], Some(0)),
        with_hierarchy(
            takes.table(
                "takes",
                &[("scid", Role::Key), ("sid", Role::Key), ("course", Role::Quasi), ("grade", Role::Sensitive)],
                None,
            ),
            "course",
            &course_paths(&courses),
        ),
        with_hierarchy(
            books.table("books", &[("scid", Role::Key), ("book", Role::Quasi), ("price", Role::Sensitive)], None),
            "book",
            &book_paths(&courses),
        ),
    ];
    (tables, Spec::parse(SPEC).expect("the spec is one"))
}

/// Obligatory courses first, one per department, then the electives area by area.
fn courses() -> Vec<Course> {
    let books = |name: &str, course: usize| {
        (0..2 + course % 3).map(|book| format!("{name} {}", (b'A' + book as u8) as char)).collect()
    };
    let mut courses = Vec::new();
    for department in 0..N_DEPARTMENTS {
        let area = department % N_AREAS_OF_KIND;
        let name = format!("{} 10{}", AREAS[area].0, department + 1);
        courses.push(Course { books: books(&name, courses.len()), name, area });
    }
    for (area, (of_area, _)) in AREAS.iter().enumerate() {
        for number in 0..COURSES_PER_AREA {
            let name = format!("{of_area} 20{}", number + 1);
            courses.push(Course { books: books(&name, courses.len()), name, area });
        }
    }
    courses
}

/// The courses of one student.
fn chosen(random: &mut Random, courses: &[Course], department: usize) -> Vec<Course> {
    let mut chosen = vec![courses[department].clone()];
    for first_area in [0, N_AREAS_OF_KIND] {
        let own_area = first_area + department % N_AREAS_OF_KIND;
        let is_of_kind = |course: &&Course| (first_area..first_area + N_AREAS_OF_KIND).contains(&course.area);
        let mut pool: Vec<&Course> = courses[N_DEPARTMENTS..].iter().filter(is_of_kind).collect();
        for _ in 0..2 + random.below(2) {
            let weight = |course: &Course| if course.area == own_area { OWN_AREA } else { 1 };
            let mut left = random.below(pool.iter().map(|course| weight(course)).sum());
            let at = pool.iter().position(|course| {
                let is_drawn = left < weight(course);
                left = left.saturating_sub(weight(course));
                is_drawn
            });
            chosen.push(pool.remove(at.expect("the draw is below the sum of all weights")).clone());
        }
    }
    chosen
}

fn course_paths(courses: &[Course]) -> String {
    courses.iter().fold(String::new(), |mut paths, course| {
        let (area, kind) = AREAS[course.area];
        writeln!(paths, "{};{area};{kind};*", course.name).expect("a text can be written to");
        paths
    })
}

fn book_paths(courses: &[Course]) -> String {
    let mut paths = String::new();
    for course in courses {
        let (area, kind) = AREAS[course.area];
        for book in &course.books {
            writeln!(paths, "{book};{area} book;{kind} book;*").expect("a text can be written to");
        }
    }
    paths
}

fn with_hierarchy(mut table: Table, column: &str, paths: &str) -> Table {
    let hierarchy = Hierarchy::from_paths(paths).expect("every course and book has one path");
    let position = table.position(column).expect("the column is there");
    table.columns[position] = table.columns[position].clone().with_hierarchy(hierarchy);
    table
}

/// Rows of texts.
#[derive(Default)]
struct Rows(Vec<Vec<String>>);

impl Rows {
    fn push(&mut self, cells: &[&str]) {
        self.0.push(cells.iter().map(|&cell| cell.to_owned()).collect());
    }

    fn n_rows(&self) -> usize {
        self.0.len()
    }

    fn table(&self, name: &str, columns: &[(&str, Role)], person: Option<usize>) -> Table {
        let column = |(position, &(name, role)): (usize, &(&str, Role))| {
            let column = Column::from_cells(name, role, self.0.iter().map(|row| Some(row[position].as_str())));
            let value_type = match (role, name) {
                (Role::Sensitive, "gpa") => ValueType::Decimal,
                (Role::Sensitive, _) => ValueType::Integer,
                _ => ValueType::Text,
            };
            column.typed(value_type)
        };
        let columns = columns.iter().enumerate().map(column).collect();
        Table { name: name.to_owned(), columns, n_rows: self.n_rows(), person }
    }
}

#[cfg(test)]
mod tests {
    use kohort_model::Schema;

    use super::*;

    #[test]
    fn students_take_and_read_what_the_paper_says() {
        let (tables, spec) = generate(1000, 7, Books::Some);
        let schema = Schema::of(&spec, &tables).unwrap();
        assert_eq!(schema.roots(), [0]);
        let [student, takes, books] = &tables[..] else { panic!("three tables") };
        assert_eq!(student.n_rows, 1000);
        let course = takes.column("course").unwrap();
        assert_eq!(course.texts.len(), 22);
        let mut of_student = vec![Vec::new(); 1000];
        let by_row = schema.parent_rows(&tables, 1).unwrap();
        by_row.iter().zip(&course.ids).for_each(|(&student, &course)| of_student[student as usize].push(course));
        assert!(of_student.iter().all(|courses| (5..=7).contains(&courses.len())));
        for courses in &mut of_student {
            courses.sort_unstable();
            assert!(courses.windows(2).all(|pair| pair[0] != pair[1]), "nobody takes a course twice");
        }
        let rows: usize = tables.iter().map(|table| table.n_rows).sum();
        assert!((15_500..16_500).contains(&rows), "{rows}");
        assert!(books.column("book").unwrap().texts.len() <= 22 * 4);
    }

    #[test]
    fn the_same_seed_gives_the_same_students() {
        let cells = |seed| {
            let (tables, _) = generate(20, seed, Books::Some);
            let row = |row| tables[1].columns.iter().map(|column| column.cell(row).unwrap().to_owned()).collect();
            (0..tables[1].n_rows).map(row).collect::<Vec<Vec<String>>>()
        };
        assert_eq!(cells(1), cells(1));
        assert_ne!(cells(1), cells(2));
    }
}
