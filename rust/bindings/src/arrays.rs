//! Arrays at the boundary: lengths come as uint16 or uint32, indices leave as uint32 or uint64.

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use crate::enter::LengthwiseError;

/// Borrowed lengths of either width.
pub(crate) enum Lengths<'py> {
    Narrow(PyReadonlyArray1<'py, u16>),
    Wide(PyReadonlyArray1<'py, u32>),
}

impl<'py> FromPyObject<'_, 'py> for Lengths<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(array) = object.extract::<PyReadonlyArray1<'py, u16>>() {
            return Ok(Self::Narrow(array));
        }
        match object.extract::<PyReadonlyArray1<'py, u32>>() {
            Ok(array) => Ok(Self::Wide(array)),
            Err(_) => Err(LengthwiseError::new_err("lengths must be a contiguous uint16[n] or uint32[n]")),
        }
    }
}

/// Borrowed indices of either width.
pub(crate) enum Indices<'py> {
    Narrow(PyReadonlyArray1<'py, u32>),
    Wide(PyReadonlyArray1<'py, u64>),
}

impl<'py> FromPyObject<'_, 'py> for Indices<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(array) = object.extract::<PyReadonlyArray1<'py, u32>>() {
            return Ok(Self::Narrow(array));
        }
        match object.extract::<PyReadonlyArray1<'py, u64>>() {
            Ok(array) => Ok(Self::Wide(array)),
            Err(_) => Err(LengthwiseError::new_err("indices must be a contiguous uint32[n] or uint64[n]")),
        }
    }
}

/// Run `$body` with `$slice` bound to the borrowed lengths, whatever their width.
macro_rules! with_lengths {
    ($lengths:expr, $slice:ident => $body:expr) => {
        match $lengths {
            $crate::arrays::Lengths::Narrow(array) => {
                let $slice = array.as_slice()?;
                $body
            }
            $crate::arrays::Lengths::Wide(array) => {
                let $slice = array.as_slice()?;
                $body
            }
        }
    };
}
pub(crate) use with_lengths;
