//! How a long loop learns that its caller wants it to stop.

use crate::{Error, Result};

/// A question that long loops ask now and then: may the work go on?
///
/// Cheap to copy; asked once per chunk of work (about a millisecond), never per sample.
#[derive(Clone, Copy)]
pub struct Interrupt<'a> {
    go_on: &'a (dyn Fn() -> bool + Sync),
}

impl<'a> Interrupt<'a> {
    /// Ask `go_on`; `false` stops the work.
    pub fn new(go_on: &'a (dyn Fn() -> bool + Sync)) -> Self {
        Self { go_on }
    }

    /// # Errors
    /// [`Error::Interrupted`] when the caller wants the work to stop.
    pub fn check(&self) -> Result<()> {
        if (self.go_on)() { Ok(()) } else { Err(Error::Interrupted) }
    }
}

impl Interrupt<'static> {
    /// Never stops.
    pub const NEVER: Self = Self { go_on: &|| true };
}

impl std::fmt::Debug for Interrupt<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Interrupt")
    }
}
