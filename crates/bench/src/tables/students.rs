//! [`Students`]: the paper's students with their rows joined, for the baselines and attacks.

use std::error::Error;

use kohort_model::{Column, Schema, Spec, Table};
use kohort_testkit::students::{Books, generate};

/// The seed of the experiment's students.
const SEED: u64 = 2008;

/// Positions of the tables.
const STUDENT: usize = 0;
const TAKES: usize = 1;
const BOOKS: usize = 2;

/// Students, the courses they take and the books they buy for them.
pub(super) struct Students {
    pub(super) tables: Vec<Table>,
    pub(super) spec: Spec,
    pub(super) schema: Schema,
    /// The student of each row of `takes`.
    pub(super) student_of_takes: Vec<u32>,
    /// The row of `takes` of each row of `books`.
    pub(super) takes_of_book: Vec<u32>,
}

impl Students {
    /// Makes this many students.
    pub(super) fn generate(n: usize, bought: Books) -> Result<Students, Box<dyn Error>> {
        let (tables, spec) = generate(n, SEED, bought);
        let schema = Schema::of(&spec, &tables)?;
        let student_of_takes = schema.parent_rows(&tables, TAKES).ok_or("the table takes has no parent")?;
        let takes_of_book = schema.parent_rows(&tables, BOOKS).ok_or("the table books has no parent")?;
        Ok(Students { tables, spec, schema, student_of_takes, takes_of_book })
    }

    pub(super) fn len(&self) -> usize {
        self.tables[STUDENT].n_rows
    }

    /// The number of rows of all tables.
    pub(super) fn n_rows(&self) -> usize {
        self.tables.iter().map(|table| table.n_rows).sum()
    }

    /// The course of each row of `takes`.
    pub(super) fn course(&self) -> &Column {
        self.tables[TAKES].column("course").expect("it is one of the columns")
    }

    /// The book of each row of `books`.
    pub(super) fn book(&self) -> &Column {
        self.tables[BOOKS].column("book").expect("it is one of the columns")
    }

    /// The GPA of each student.
    pub(super) fn gpa(&self) -> &Column {
        self.tables[STUDENT].column("gpa").expect("it is one of the columns")
    }

    /// The student of a row of `books`.
    pub(super) fn student_of_book(&self, book: usize) -> u32 {
        self.student_of_takes[self.takes_of_book[book] as usize]
    }
}
