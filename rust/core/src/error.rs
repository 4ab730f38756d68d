//! The one error type of the core.

/// What can be wrong with a request, in words that reach the user unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An argument that cannot be used: the text starts with its name, then what it is, the limit, and what to do.
    #[error("{0}")]
    Invalid(String),
    /// The caller asked to stop (Ctrl-C); nothing was produced.
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    /// An [`Error::Invalid`] from anything that reads as a sentence.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid(message.into())
    }

    /// What was counted once does not hold any more.
    pub(crate) fn changed() -> Self {
        Self::invalid("lengths have changed since the planner was made with them; make a new planner")
    }
}

/// `Result` with the core's error.
pub type Result<T> = std::result::Result<T, Error>;
