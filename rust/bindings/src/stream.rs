//! Packs of a stream.
#![expect(clippy::needless_pass_by_value, reason = "PyO3 hands extracted arguments over by value")]

use lengthwise_core::pack::{Closed, StreamOptions, StreamPacker as Stream};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::arrays::{Lengths, with_lengths};
use crate::enter::{LengthwiseError, enter};

/// Packs a stream of lengths in bounded memory.
#[pyclass(module = "lengthwise._core")]
pub(crate) struct StreamPacker {
    inner: Stream,
}

type ClosedArrays<'py> = (Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<i64>>);
type State<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<u64>>, u64);

#[pymethods]
impl StreamPacker {
    #[new]
    #[pyo3(signature = (*, capacity, open_packs, max_samples, multiple_of))]
    fn new(capacity: u32, open_packs: u32, max_samples: u32, multiple_of: u32) -> PyResult<Self> {
        let options = StreamOptions { capacity, open_packs, max_samples, multiple_of };
        Ok(Self { inner: Stream::new(options).map_err(|error| LengthwiseError::new_err(error.to_string()))? })
    }

    /// Put `lengths` into packs; all of them, or none where one is too long: (samples, offsets) of the finished packs.
    fn extend<'py>(&mut self, py: Python<'py>, lengths: Lengths<'py>) -> PyResult<ClosedArrays<'py>> {
        let inner = &mut self.inner;
        let closed = with_lengths!(&lengths, slice => enter(py, |interrupt| inner.extend(slice, interrupt)))?;
        Ok(hand_over(py, closed))
    }

    /// Close what is open.
    fn finish<'py>(&mut self, py: Python<'py>) -> ClosedArrays<'py> {
        let mut closed = Closed::default();
        self.inner.finish(&mut closed);
        hand_over(py, closed)
    }

    /// (units taken, offsets, samples) of the open packs, and how many samples came so far.
    fn state<'py>(&self, py: Python<'py>) -> State<'py> {
        let (fills, contents) = self.inner.open();
        let mut open = (vec![0_i64], Vec::new());
        for samples in contents {
            open.1.extend_from_slice(samples);
            open.0.push(open.1.len() as i64);
        }
        (fills.to_vec().into_pyarray(py), open.0.into_pyarray(py), open.1.into_pyarray(py), self.inner.samples())
    }

    /// Go on from a state of the same options.
    fn resume(
        &mut self,
        fills: PyReadonlyArray1<'_, u32>,
        offsets: PyReadonlyArray1<'_, i64>,
        samples: PyReadonlyArray1<'_, u64>,
        next: u64,
    ) -> PyResult<()> {
        let samples = samples.as_slice()?;
        let content = |stops: &[i64]| samples.get(stops[0] as usize..stops[1] as usize).map(<[u64]>::to_vec);
        let contents: Option<Vec<_>> = offsets.as_slice()?.windows(2).map(content).collect();
        let contents = contents.unwrap_or_default();
        self.inner = Stream::resume(self.inner.options(), fills.as_slice()?.to_vec(), contents, next)
            .map_err(|error| LengthwiseError::new_err(error.to_string()))?;
        Ok(())
    }
}

fn hand_over(py: Python<'_>, closed: Closed) -> ClosedArrays<'_> {
    (closed.samples.into_pyarray(py), closed.offsets.into_pyarray(py))
}
