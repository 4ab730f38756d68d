//! Lists as Arrow hands them from library to library: the lengths in a stream of chunks, in one call.
//!
//! Why: a dataset of a million samples has a thousand chunks. Each is 1 us of Python objects, as much as the lengths of
//! 3,000 lists take; from the stream it is 0.25 us.
//!
//! Unsafe, as any reader of this interface: a capsule is believed to hold what its name says, and a chunk the buffers that
//! its type and length say. The caller has Arrow validate the column first, which compares those with the sizes of buffers.
//!
//! Source: <https://arrow.apache.org/docs/format/CStreamInterface.html>
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::{null, null_mut};

use lengthwise_core::offsets::{self, Offset};
use lengthwise_core::{Error, Interrupt, Result};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// Rows between two looks at the interrupt.
const ROWS_PER_LOOK: usize = 1 << 20;

/// The type of a column.
#[repr(C)]
struct Schema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut Schema,
    dictionary: *mut Schema,
    release: Option<unsafe extern "C" fn(*mut Schema)>,
    private_data: *mut c_void,
}

/// A chunk of a column.
#[repr(C)]
struct Array {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *const *const c_void,
    children: *mut *mut Array,
    dictionary: *mut Array,
    release: Option<unsafe extern "C" fn(*mut Array)>,
    private_data: *mut c_void,
}

/// A column, chunk by chunk.
#[repr(C)]
pub(crate) struct Stream {
    get_schema: Option<unsafe extern "C" fn(*mut Stream, *mut Schema) -> c_int>,
    get_next: Option<unsafe extern "C" fn(*mut Stream, *mut Array) -> c_int>,
    get_last_error: Option<unsafe extern "C" fn(*mut Stream) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut Stream)>,
    private_data: *mut c_void,
}

/// What has a `release` belongs to whoever holds it, until that is called: once, and with the whole of it.
macro_rules! released_once {
    ($($name:ident)*) => {$(
        impl Drop for $name {
            fn drop(&mut self) {
                if let Some(release) = self.release {
                    // SAFETY: it is ours, and was not released yet, as that empties `release`.
                    unsafe { release(self) }
                }
            }
        }
    )*};
}
released_once!(Schema Array Stream);

// SAFETY: a stream may be used by any thread, by one at a time.
unsafe impl Send for Stream {}

impl Stream {
    /// Take the stream out of a capsule, which is left empty.
    pub(crate) fn take(capsule: &Bound<'_, PyCapsule>) -> PyResult<Self> {
        let held = capsule.pointer_checked(Some(c"arrow_array_stream"))?.cast::<Self>();
        let empty =
            Self { get_schema: None, get_next: None, get_last_error: None, release: None, private_data: null_mut() };
        // SAFETY: a capsule of this name holds a stream, which belongs to its first consumer.
        Ok(unsafe { held.replace(empty) })
    }

    /// Write the length of every list to `out`, zero for nulls, and return the rows that are null.
    ///
    /// # Errors
    /// The column is not of lists with offsets, or has other than `out.len()` rows; a length is negative or too long.
    pub(crate) fn lengths(mut self, out: &mut [u32], interrupt: Interrupt<'_>) -> Result<Vec<i64>> {
        match self.format()?.as_slice() {
            b"+l" => self.fill::<i32>(out, interrupt),
            b"+L" => self.fill::<i64>(out, interrupt),
            other => Err(Error::invalid(format!("a column of format {} has no offsets", other.escape_ascii()))),
        }
    }

    fn format(&mut self) -> Result<Vec<u8>> {
        let mut schema = Schema {
            format: null(),
            name: null(),
            metadata: null(),
            flags: 0,
            n_children: 0,
            children: null_mut(),
            dictionary: null_mut(),
            release: None,
            private_data: null_mut(),
        };
        let get_schema = self.get_schema.ok_or_else(|| Error::invalid("the stream has been read already"))?;
        // SAFETY: the stream is not released, and the schema is there to be filled.
        if unsafe { get_schema(self, &raw mut schema) } != 0 || schema.format.is_null() {
            return Err(Error::invalid("the stream does not tell its type"));
        }
        // SAFETY: a format is text that ends in a zero, and stays until the schema is released.
        Ok(unsafe { CStr::from_ptr(schema.format) }.to_bytes().to_vec())
    }

    /// The next chunk, None after the last.
    fn next(&mut self) -> Result<Option<Array>> {
        let mut array = Array {
            length: 0,
            null_count: 0,
            offset: 0,
            n_buffers: 0,
            n_children: 0,
            buffers: null(),
            children: null_mut(),
            dictionary: null_mut(),
            release: None,
            private_data: null_mut(),
        };
        let get_next = self.get_next.ok_or_else(|| Error::invalid("the stream has been read already"))?;
        // SAFETY: the stream is not released, and the array is there to be filled.
        if unsafe { get_next(self, &raw mut array) } != 0 {
            return Err(Error::invalid("the stream ends in an error"));
        }
        Ok(array.release.is_some().then_some(array))
    }

    fn fill<O: Offset>(&mut self, out: &mut [u32], interrupt: Interrupt<'_>) -> Result<Vec<i64>> {
        let (mut nulls, mut done, mut next_look) = (Vec::new(), 0, ROWS_PER_LOOK);
        while let Some(array) = self.next()? {
            // SAFETY: the type of the stream has offsets of this width.
            let offsets = unsafe { array.offsets::<O>() }?;
            let rows = offsets.len().saturating_sub(1);
            let room = out.get_mut(done..).and_then(|rest| rest.get_mut(..rows));
            let room = room.ok_or_else(|| Error::invalid(format!("the stream has more rows than the {done} known")))?;
            offsets::lengths(offsets, room)?;
            if let Some((bitmap, start)) = array.validity() {
                for row in offsets::unset(bitmap, start, rows)? {
                    room.get_mut(row as usize).into_iter().for_each(|length| *length = 0);
                    nulls.push(done as i64 + row);
                }
            }
            done += rows;
            if done >= next_look {
                next_look = done + ROWS_PER_LOOK;
                interrupt.check()?;
            }
        }
        if done == out.len() {
            return Ok(nulls);
        }
        Err(Error::invalid(format!("the stream has {done} rows, but {} were announced", out.len())))
    }
}

impl Array {
    /// Offsets of the lists, one more than there are; none of no lists.
    ///
    /// # Safety
    /// The array is of lists whose offsets are `O`.
    unsafe fn offsets<O: Offset>(&self) -> Result<&[O]> {
        let (Ok(length), Ok(offset)) = (usize::try_from(self.length), usize::try_from(self.offset)) else {
            return Err(Error::invalid("a chunk has a negative size"));
        };
        if length == 0 {
            return Ok(&[]);
        }
        let first = self.buffer(1).cast::<O>();
        if first.is_null() || !first.is_aligned() {
            return Err(Error::invalid("offsets are missing or lie at an odd address"));
        }
        // SAFETY: the buffer holds an offset for the start of each list, those before `offset` too, and the last one's end,
        // and stays until the array is released.
        Ok(unsafe { std::slice::from_raw_parts(first.add(offset), length + 1) })
    }

    /// The bitmap of what is not null, and the bit of the first list in it; None where nothing is null.
    fn validity(&self) -> Option<(&[u8], usize)> {
        let bitmap = self.buffer(0).cast::<u8>();
        if bitmap.is_null() || self.null_count == 0 {
            return None;
        }
        let (offset, length) = (self.offset as usize, self.length as usize);
        // SAFETY: the buffer holds a bit for each list, those before `offset` too, and stays until the array is released.
        Some((unsafe { std::slice::from_raw_parts(bitmap, (offset + length).div_ceil(8)) }, offset))
    }

    /// A buffer, null where it is left out.
    fn buffer(&self, index: usize) -> *const c_void {
        if self.buffers.is_null() || index as i64 >= self.n_buffers {
            return null();
        }
        // SAFETY: there are `n_buffers` of them.
        unsafe { *self.buffers.add(index) }
    }
}
