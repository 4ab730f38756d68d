//! The one door between Python and the core: the GIL is released, Ctrl-C is heard, errors are mapped. `detach` appears
//! nowhere else.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use lengthwise_core::{Error, Interrupt, Result};
use pyo3::prelude::*;

pyo3::create_exception!(
    lengthwise,
    LengthwiseError,
    pyo3::exceptions::PyValueError,
    "An argument or a file that lengthwise cannot use: the message says which, where, what it is, and what to do."
);

/// How often a running call may look for Ctrl-C: rare enough to cost nothing, often enough to feel immediate.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(50);

/// Run `work` without the GIL. Pending signals are looked at while it runs; what they raise (`KeyboardInterrupt`) wins.
pub(crate) fn enter<T: Send>(py: Python<'_>, work: impl FnOnce(Interrupt<'_>) -> Result<T> + Send) -> PyResult<T> {
    let last_look = Mutex::new(Instant::now());
    let raised: Mutex<Option<PyErr>> = Mutex::new(None);
    let go_on = || {
        // Another thread holds the lock only while it looks itself: then this one need not.
        let Ok(mut last) = last_look.try_lock() else { return true };
        if last.elapsed() < SIGNAL_INTERVAL {
            return true;
        }
        *last = Instant::now();
        #[expect(clippy::redundant_closure_for_method_calls, reason = "the method's lifetime is not general enough")]
        let seen = Python::attach(|py| py.check_signals());
        match seen {
            Ok(()) => true,
            Err(error) => {
                if let Ok(mut slot) = raised.lock() {
                    *slot = Some(error);
                }
                false
            }
        }
    };
    let outcome = py.detach(|| work(Interrupt::new(&go_on)));
    outcome.map_err(|error| match (error, raised.into_inner()) {
        (Error::Interrupted, Ok(Some(raised))) => raised,
        (error, _) => LengthwiseError::new_err(error.to_string()),
    })
}
