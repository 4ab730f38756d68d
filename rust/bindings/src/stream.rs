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
        let mut open = (Vec::new(), vec![0_i64], Vec::new());
        for (fill, samples) in self.inner.open() {
            open.0.push(fill);
            open.2.extend_from_slice(samples);
            open.1.push(open.2.len() as i64);
        }
        (open.0.into_pyarray(py), open.1.into_pyarray(py), open.2.into_pyarray(py), self.inner.samples())
    }

    /// Go on from a state of the same options.
    fn resume(
        &mut self,
        fills: PyReadonlyArray1<'_, u32>,
        offsets: PyReadonlyArray1<'_, i64>,
        samples: PyReadonlyArray1<'_, u64>,
        next: u64,
    ) -> PyResult<()> {
        let (fills, offsets, samples) = (fills.as_slice()?, offsets.as_slice()?, samples.as_slice()?);
        let content = |stops: &[i64]| samples.get(stops[0] as usize..stops[1] as usize).map(<[u64]>::to_vec);
        let open = fills.iter().zip(offsets.windows(2)).map(|(&fill, stops)| Some((fill, content(stops)?)));
        let open: Option<Vec<_>> = open.collect();
        let open = open.filter(|open| open.len() == fills.len() && open.len() + 1 == offsets.len());
        let open =
            open.ok_or_else(|| LengthwiseError::new_err("state is damaged: its packs and samples do not match"))?;
        self.inner = Stream::resume(self.inner.options(), open, next)
            .map_err(|error| LengthwiseError::new_err(error.to_string()))?;
        Ok(())
    }
}

fn hand_over(py: Python<'_>, closed: Closed) -> ClosedArrays<'_> {
    (closed.samples.into_pyarray(py), closed.offsets.into_pyarray(py))
}
