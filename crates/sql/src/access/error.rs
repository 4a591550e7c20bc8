//! [`AccessError`]: why a user or a grant can't be made, used or taken away. Never shows a password.

use crate::view::told_together;

/// Why a user or a grant can't be made, used or taken away.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AccessError {
    /// A name that is none.
    #[error("a user's name has 1 to {longest} bytes and no control characters")]
    BadName {
        /// Bytes it may have.
        longest: usize,
    },
    /// A password that is none.
    #[error("a password has {shortest} to {longest} characters")]
    BadPassword {
        /// Characters it has at least.
        shortest: usize,
        /// Characters it has at most.
        longest: usize,
    },
    /// A password that was hashed by a client.
    #[error("this is not a password but the hash of one")]
    HashedPassword,
    /// Somebody has this name.
    #[error("there is a user '{name}' already")]
    UserExists {
        /// The name.
        name: String,
    },
    /// Nobody has this name.
    #[error("there is no user '{name}'")]
    UnknownUser {
        /// The name.
        name: String,
    },
    /// Nobody could change anything any more.
    #[error("this is the last owner, without whom nobody could change anything")]
    LastOwner,
    /// Owners see everything.
    #[error("'{name}' is an owner, who may read everything")]
    IsOwner {
        /// The name.
        name: String,
    },
    /// Something to revoke that was not granted.
    #[error("{what} is not granted to '{user}'")]
    NotGranted {
        /// What.
        what: String,
        /// The user.
        user: String,
    },
    /// Views that tell more when they are read together.
    #[error("whoever reads {} {}", listed(.views), told_together(*.n_persons))]
    Together {
        /// The view to be granted or read, and those that are or were granted.
        views: Vec<String>,
        /// Among how many persons somebody hides then.
        n_persons: u64,
    },
    /// A view that can't be looked at beside another.
    #[error(
        "what {view} tells together with {other} can't be known: one of them is unusable or lost, or materialized and changes with its table"
    )]
    Unaudited {
        /// The view.
        view: String,
        /// The other one.
        other: String,
    },
    /// Somebody who may have kept what a view showed that is no more.
    #[error("'{user}' could read '{dropped}', which was dropped: what that tells together with {view} can't be known")]
    Dropped {
        /// The view to be granted.
        view: String,
        /// The one that was.
        dropped: String,
        /// Who held it.
        user: String,
    },
    /// A view with a partition per purpose, and several purposes.
    #[error("{view} has a partition per purpose: whoever reads it can have one purpose and recipient, ever")]
    SeveralPairs {
        /// The view.
        view: String,
    },
    /// A purpose and recipient that were not granted.
    #[error("this purpose and recipient are not granted to you")]
    PairNotGranted {
        /// Those that are.
        granted: Vec<String>,
    },
    /// A view that is not, or no longer, granted.
    #[error("you may not read '{view}'")]
    ViewNotGranted {
        /// The view.
        view: String,
    },
    /// A login whose user was dropped.
    #[error("this login is no more")]
    LoginGone,
    /// A record of ours that can't be read.
    #[error("a record of kind '{kind}' can't be read")]
    BadRecord {
        /// Its kind.
        kind: &'static str,
    },
    /// Records can't be read or written.
    #[error("users and grants can't be read or written: {0}")]
    Records(#[from] std::io::Error),
    /// Something was taken away and counts, but would come back.
    #[error("this is in force, but could not be written, so it would be undone if the server stopped: {why}")]
    Unwritten {
        /// Why it could not be written.
        why: String,
    },
    /// Something that can't be recorded, so that it was not done.
    #[error("the compliance log can't be written, so nothing was changed: {0}")]
    Log(std::io::Error),
    /// Something was taken away and counts, but can't be recorded, so that it was not written either.
    #[error(
        "this is in force, but neither it nor its record could be written, so it would be undone if the server stopped: {0}"
    )]
    Unrecorded(std::io::Error),
    /// There is no randomness.
    #[error("the system gives no random bytes")]
    NoRandomness,
}

impl AccessError {
    pub(super) fn unknown_user(name: &str) -> AccessError {
        AccessError::UnknownUser { name: name.to_owned() }
    }

    /// Whether it was well asked but not allowed.
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
            AccessError::UnknownUser { .. } => Some("SHOW USERS lists them".to_owned()),
            AccessError::NotGranted { .. } => Some("SHOW GRANTS lists what is".to_owned()),
            AccessError::Together { views, .. } => {
                let other = if let [_, other] = views.as_slice() { other } else { "some of them" };
                Some(format!("make one view that shows what is needed of all, or let somebody else read {other}"))
            }
            AccessError::Unaudited { other, .. } => {
                Some(format!("SHOW ANONYMIZATION_VIEWS says which; or let somebody else read {other}"))
            }
            AccessError::Dropped { view, user, .. } => Some(format!(
                "make another user who reads {view}; or, if nothing was kept or it is of other persons, GRANT SELECT ON {view} TO {user} FORCE"
            )),
            AccessError::SeveralPairs { .. } => Some("make a user for each purpose and recipient".to_owned()),
            AccessError::PairNotGranted { granted } if granted.is_empty() => {
                Some("ask the owner to GRANT PURPOSE ... RECIPIENT ... to you".to_owned())
            }
            AccessError::PairNotGranted { granted } => Some(format!("you may use: {}", granted.join("; "))),
            AccessError::Unwritten { .. } => Some(
                "it is written with the next change of users or grants, for example GRANT or CREATE USER".to_owned(),
            ),
            AccessError::Unrecorded(_) => Some(
                "make room for the compliance log; both are written with the next change of users or grants".to_owned(),
            ),
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
