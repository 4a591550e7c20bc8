//! [`PolicyError`]: what is wrong with a table of choices or with a purpose. Messages contain names of columns,
//! purposes and recipients, but never a person or a choice.

/// What is wrong with a table of choices, or with the purpose or recipient of a statement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// A column that REFERENCES names does not exist.
    #[error("table '{table}' has no column '{column}'")]
    NoColumn { table: String, column: String },
    /// Several columns have the same name except for case.
    #[error("table '{table}' has several columns '{column}'")]
    SeveralColumns { table: String, column: String },
    #[error("table '{table}', column '{column}': expected {expected}, found the type {found}")]
    WrongType { table: String, column: String, expected: &'static str, found: String },
    #[error("table '{table}', column '{column}': {fault} in {}", place(*.n_rows, *.first_row))]
    Rows { table: String, column: String, fault: PolicyRowError, n_rows: usize, first_row: usize },
    #[error("a purpose is needed")]
    NoPurpose { known: Vec<String> },
    #[error("a recipient is needed")]
    NoRecipient { known: Vec<String> },
    #[error("nobody allows anything for the purpose '{given}'")]
    UnknownPurpose { given: String, known: Vec<String> },
    #[error("nobody allows anything to the recipient '{given}'")]
    UnknownRecipient { given: String, known: Vec<String> },
    #[error("nobody allows anything for the purpose '{purpose}' to the recipient '{recipient}'")]
    UnknownPair { purpose: String, recipient: String },
}

/// A mistake in rows of a table of choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyRowError {
    /// The person, purpose or recipient is NULL.
    #[error("NULL")]
    Null,
    #[error("not a whole number from 0")]
    NoWholeNumber,
    #[error("not a level from 0 to 255")]
    NoLevel,
    #[error("neither true nor false")]
    NoTruth,
    #[error("not a date")]
    NoDate,
    #[error("a second choice of the same person, purpose and recipient")]
    SecondChoice,
}

impl PolicyError {
    /// Whether the statement asked for something that nobody allows. Otherwise the table is faulty.
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

    /// What to do about it, if there is a remedy.
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
                    "write 0 if the person may be named, 1 if they may be shown alone without a name, or else k"
                        .to_owned()
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
            PolicyError::UnknownPurpose { known, .. } => format!("use one of the purposes: {}", list(known)),
            PolicyError::UnknownRecipient { known, .. } => format!("use one of the recipients: {}", list(known)),
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
