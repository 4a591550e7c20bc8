//! [`PolicyError`]: what is wrong with a table of choices, or with asking it. Names of columns, purposes and
//! recipients are shown; persons and what they chose never.

/// What is wrong with a table of choices, or with asking it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// A column the view's REFERENCES names.
    #[error("table '{table}' has no column '{column}'")]
    NoColumn {
        /// The table of choices.
        table: String,
        /// The column.
        column: String,
    },
    /// Two columns that differ in case only.
    #[error("table '{table}' has several columns '{column}'")]
    SeveralColumns {
        /// The table of choices.
        table: String,
        /// The column.
        column: String,
    },
    /// A column that can't hold what it should.
    #[error("table '{table}', column '{column}': expected {expected}, and it is of type {found}")]
    WrongType {
        /// The table of choices.
        table: String,
        /// The column.
        column: String,
        /// What it should hold.
        expected: &'static str,
        /// Its type.
        found: String,
    },
    /// Rows that can't be understood.
    #[error("table '{table}', column '{column}': {fault} in {}", place(*.n_rows, *.first_row))]
    Rows {
        /// The table of choices.
        table: String,
        /// The column.
        column: String,
        /// What is wrong in them.
        fault: PolicyRowError,
        /// In how many.
        n_rows: usize,
        /// The first, from 1.
        first_row: usize,
    },
    /// No purpose where there must be one.
    #[error("a purpose is needed")]
    NoPurpose {
        /// Those there are.
        known: Vec<String>,
    },
    /// No recipient where there must be one.
    #[error("a recipient is needed")]
    NoRecipient {
        /// Those there are.
        known: Vec<String>,
    },
    /// A purpose nobody chose for.
    #[error("nobody allows anything for the purpose '{given}'")]
    UnknownPurpose {
        /// The purpose.
        given: String,
        /// Those there are.
        known: Vec<String>,
    },
    /// A recipient nobody chose for.
    #[error("nobody allows anything to the recipient '{given}'")]
    UnknownRecipient {
        /// The recipient.
        given: String,
        /// Those there are.
        known: Vec<String>,
    },
    /// A purpose and a recipient that nobody chose for together.
    #[error("nobody allows anything for the purpose '{purpose}' to the recipient '{recipient}'")]
    UnknownPair {
        /// The purpose.
        purpose: String,
        /// The recipient.
        recipient: String,
    },
}

/// What is wrong in rows of a table of choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyRowError {
    /// A person, purpose or recipient that is NULL.
    #[error("NULL")]
    Null,
    /// A k that is none.
    #[error("no whole number from 0")]
    NoWholeNumber,
    /// A level that is none.
    #[error("no level from 0 to 255")]
    NoLevel,
    /// An opt-in that is neither.
    #[error("neither true nor false")]
    NoTruth,
    /// A last day that is none.
    #[error("no date")]
    NoDate,
    /// A second choice of the same person for the same purpose and recipient.
    #[error("a person who chose before for the same purpose and recipient")]
    SecondChoice,
}

impl PolicyError {
    /// Whether a reader asked for what nobody allows, rather than the table being wrong.
    pub fn is_refusal(&self) -> bool {
        match self {
            PolicyError::NoPurpose { .. }
            | PolicyError::NoRecipient { .. }
            | PolicyError::UnknownPurpose { .. }
            | PolicyError::UnknownRecipient { .. }
            | PolicyError::UnknownPair { .. } => true,
            PolicyError::NoColumn { .. }
            | PolicyError::SeveralColumns { .. }
            | PolicyError::WrongType { .. }
            | PolicyError::Rows { .. } => false,
        }
    }

    /// What to do about it, where there is a remedy.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            PolicyError::NoColumn { .. } => {
                "REFERENCES names the person's column, then in parentheses the table's columns of k and of the level: \
                 name REFERENCES choices (k, sa_level)"
                    .to_owned()
            }
            PolicyError::SeveralColumns { .. } => "rename all but one of them".to_owned(),
            PolicyError::WrongType { expected, .. } => format!("cast the column to {expected}"),
            PolicyError::Rows { fault, .. } => match fault {
                PolicyRowError::Null => {
                    "write * as the person to mean everybody else, and leave out a column of purposes or \
                                   recipients to mean all"
                        .to_owned()
                }
                PolicyRowError::NoWholeNumber => {
                    "write 0 for who may be named, 1 for who may stand alone without a name, else k".to_owned()
                }
                PolicyRowError::NoLevel => "write 0 to show sensitive values as they are".to_owned(),
                PolicyRowError::NoTruth => "write T or F, true or false, yes or no, 1 or 0; NULL refuses".to_owned(),
                PolicyRowError::NoDate => "write dates as 2030-12-31".to_owned(),
                PolicyRowError::SecondChoice => "keep one row per person, purpose and recipient".to_owned(),
            },
            PolicyError::NoPurpose { known } => {
                format!("end the query with PURPOSE and one of: {}", list(known))
            }
            PolicyError::NoRecipient { known } => {
                format!("end the query with RECIPIENT and one of: {}", list(known))
            }
            PolicyError::UnknownPurpose { known, .. } => format!("there are the purposes: {}", list(known)),
            PolicyError::UnknownRecipient { known, .. } => format!("there are the recipients: {}", list(known)),
            PolicyError::UnknownPair { .. } => return None,
        })
    }
}

fn place(n_rows: usize, first_row: usize) -> String {
    if n_rows == 1 { format!("row {first_row}") } else { format!("{n_rows} rows, first in row {first_row}") }
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "(none, the table is empty)".to_owned() } else { names.join(", ") }
}
