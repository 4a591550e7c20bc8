//! [`Role`]: owner or analyst. [`crate::engine`] and [`crate::parser`] decide what a role may do.

/// The role of somebody who runs statements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Owns the private tables, and may do everything.
    Owner,
    /// Reads views, and nothing else.
    #[default]
    Analyst,
}

impl Role {
    /// The role's name in the log.
    pub fn word(self) -> &'static str {
        match self {
            Role::Owner => "owner",
            Role::Analyst => "analyst",
        }
    }
}
