//! [`Role`]: who runs statements. What a role may do is decided in [`crate::engine`] and [`crate::parser`].

/// Who runs statements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Whoever holds the private tables.
    Owner,
    /// Whoever reads views, and nothing else.
    #[default]
    Analyst,
}

impl Role {
    /// The word in the log.
    pub fn word(self) -> &'static str {
        match self {
            Role::Owner => "owner",
            Role::Analyst => "analyst",
        }
    }
}
