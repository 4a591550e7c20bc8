//! [`AccessError`]: failures about users and grants. No message contains a password.

use crate::view::told_together;

/// Why a user or a grant can't be created, used or removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the variants and fields are")]
pub enum AccessError {
    #[error("a user's name must have 1 to {longest} bytes and no control characters")]
    BadName { longest: usize },
    #[error("a password must have {shortest} to {longest} characters")]
    BadPassword { shortest: usize, longest: usize },
    #[error("the client sent the hash of a password instead of the password")]
    HashedPassword,
    #[error("user '{name}' exists already")]
    UserExists { name: String },
    #[error("there is no user '{name}'")]
    UnknownUser { name: String },
    #[error("this is the last owner: without an owner nobody could change anything")]
    LastOwner,
    #[error("'{name}' is an owner and may already read everything")]
    IsOwner { name: String },
    #[error("{what} is not granted to '{user}'")]
    NotGranted { what: String, user: String },
    #[error("a user who reads {} {}", listed(.views), told_together(*.n_persons))]
    Together {
        /// The view to be granted or read, and those already or once granted.
        views: Vec<String>,
        /// The size of the smallest group of persons that can then be told apart.
        n_persons: u64,
    },
    #[error(
        "{view} and {other} can't be compared: one of them is unusable or lost, or is materialized and changes with its table"
    )]
    Unaudited { view: String, other: String },
    #[error("'{user}' could read '{dropped}', which was dropped, so it can't be compared with {view}")]
    Dropped { view: String, dropped: String, user: String },
    #[error("{view} has a partition per purpose, so each of its readers may only ever have one purpose and recipient")]
    SeveralPairs { view: String },
    #[error("this purpose and recipient are not granted to you")]
    PairNotGranted { granted: Vec<String> },
    #[error("you may not read '{view}'")]
    ViewNotGranted { view: String },
    #[error("this login is no longer valid")]
    LoginGone,
    #[error("a record of kind '{kind}' can't be read")]
    BadRecord { kind: &'static str },
    #[error("users and grants can't be read or written: {0}")]
    Records(#[from] std::io::Error),
    #[error("this is in effect, but could not be written, so a restart of the server would undo it: {why}")]
    Unwritten { why: String },
    #[error("the compliance log can't be written, so nothing was changed: {0}")]
    Log(std::io::Error),
    #[error(
        "this is in effect, but neither the change nor its log entry could be written, so a restart of the server would undo it: {0}"
    )]
    Unrecorded(std::io::Error),
    #[error("the system provides no random bytes")]
    NoRandomness,
}

impl AccessError {
    pub(super) fn unknown_user(name: &str) -> AccessError {
        AccessError::UnknownUser { name: name.to_owned() }
    }

    /// Whether the statement was correct but not allowed.
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            AccessError::Together { .. }
                | AccessError::Unaudited { .. }
                | AccessError::Dropped { .. }
                | AccessError::SeveralPairs { .. }
                | AccessError::PairNotGranted { .. }
                | AccessError::ViewNotGranted { .. }
                | AccessError::LoginGone
                | AccessError::LastOwner
        )
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            AccessError::UserExists { name } => Some(format!("ALTER USER {name} PASSWORD '...' changes a password")),
            AccessError::HashedPassword => Some("write ALTER USER ... PASSWORD '...' instead of \\password".to_owned()),
            AccessError::UnknownUser { .. } => Some("SHOW USERS lists the users".to_owned()),
            AccessError::NotGranted { .. } => Some("SHOW GRANTS lists the grants".to_owned()),
            AccessError::Together { views, .. } => {
                let other = if let [_, other] = views.as_slice() { other } else { "some of them" };
                Some(format!("create one view with everything this user needs, or let another user read {other}"))
            }
            AccessError::Unaudited { other, .. } => {
                Some(format!("SHOW ANONYMIZATION_VIEWS tells which one; or let another user read {other}"))
            }
            AccessError::Dropped { view, user, .. } => Some(format!(
                "let another user read {view}; or, if {user} kept no rows, or the views are about different persons, GRANT SELECT ON {view} TO {user} FORCE"
            )),
            AccessError::SeveralPairs { .. } => Some("create one user for each purpose and recipient".to_owned()),
            AccessError::PairNotGranted { granted } if granted.is_empty() => {
                Some("ask the owner to GRANT PURPOSE ... RECIPIENT ... to you".to_owned())
            }
            AccessError::PairNotGranted { granted } => Some(format!("you may use: {}", granted.join("; "))),
            AccessError::Unwritten { .. } => {
                Some("the next change of users or grants, such as GRANT or CREATE USER, writes it too".to_owned())
            }
            AccessError::Unrecorded(_) => {
                Some("make the compliance log writable; the next change of users or grants then writes both".to_owned())
            }
            AccessError::LastOwner => Some("CREATE USER another OWNER PASSWORD '...' first".to_owned()),
            _ => None,
        }
    }
}

fn listed(names: &[String]) -> String {
    match names {
        [before @ .., last] if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        names => names.concat(),
    }
}
