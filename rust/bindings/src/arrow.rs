//! Lists as Arrow hands them from library to library: the lengths in one chunk, or in a stream of them, in one call.
//!
//! Why: a dataset of a million samples has a thousand chunks. Each is 1 us of Python objects, as much as the lengths of
//! 3,000 lists take; from the stream it is 0.2 us.
//!
//! Unsafe, as any reader of this interface: a capsule is believed to hold what its name says, and a chunk the buffers that
//! its type and length say. The caller has Arrow validate the column first, which compares those with the sizes of buffers,
//! and tells the type, which would take longer to hand over than a chunk.
//!
//! Source: <https://arrow.apache.org/docs/format/CDataInterface.html>, <https://arrow.apache.org/docs/format/CStreamInterface.html>
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, c_void};
use std::ptr::{null, null_mut};

use lengthwise_core::offsets::{self, Bits};
use lengthwise_core::{Error, Interrupt, MAX_LENGTH, Result};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// Rows between two looks at the interrupt.
const ROWS_PER_LOOK: usize = 1 << 20;
/// Rows that are measured before nulls among them are looked for, while their lengths are in the cache.
const ROWS_IN_CACHE: usize = 1 << 11;

/// How a type of lists tells their lengths.
#[derive(Clone, Copy)]
pub(crate) enum Lists {
    Offsets32,
    Offsets64,
    Sizes32,
    Sizes64,
    Equal(u32),
}

impl Lists {
    /// The type of this name in the C interface.
    ///
    /// # Errors
    /// It is no type of lists, or of lists that are too long.
    pub(crate) fn of(format: &str) -> Result<Self> {
        match format {
            "+l" => Ok(Self::Offsets32),
            "+L" => Ok(Self::Offsets64),
            "+vl" => Ok(Self::Sizes32),
            "+vL" => Ok(Self::Sizes64),
            _ => {
                let size = format.strip_prefix("+w:").and_then(|size| size.parse().ok());
                let size = size.filter(|&size| size <= MAX_LENGTH);
                size.map(Self::Equal).ok_or_else(|| Error::invalid(format!("{format} is no type of lists")))
            }
        }
    }

    /// The buffers of its arrays.
    const fn buffers(self) -> i64 {
        match self {
            Self::Equal(_) => 1,
            Self::Offsets32 | Self::Offsets64 => 2,
            Self::Sizes32 | Self::Sizes64 => 3,
        }
    }
}

/// What was seen of lists: the rows that are null, and the bits of all lengths, those under nulls among them.
pub(crate) type Seen = (Vec<i64>, Bits);

/// A chunk of a column.
#[repr(C)]
pub(crate) struct Array {
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
    get_schema: Option<unsafe extern "C" fn(*mut Stream, *mut c_void) -> c_int>,
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
released_once!(Array Stream);

// SAFETY: what this interface hands over may be used by any thread, by one at a time.
unsafe impl Send for Array {}
// SAFETY: likewise.
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

    /// Write the length of every list to `out`, zero for nulls.
    ///
    /// # Safety
    /// As [`Array::lengths`], for each chunk.
    ///
    /// # Errors
    /// The column is not of such lists, or has other than `out.len()` rows; a length is negative or too long.
    pub(crate) unsafe fn lengths(mut self, lists: Lists, out: &mut [u32], interrupt: Interrupt<'_>) -> Result<Seen> {
        let (mut nulls, mut bits, mut done, mut next_look) = (Vec::new(), Bits::NONE, 0, ROWS_PER_LOOK);
        while let Some(array) = self.next()? {
            let rows = array.rows()?;
            let room = out.get_mut(done..).and_then(|rest| rest.get_mut(..rows));
            let room = room.ok_or_else(|| Error::invalid(format!("the stream has more rows than the {done} known")))?;
            // SAFETY: the caller's promise.
            bits = bits.and(unsafe { array.fill(lists, room, done, &mut nulls) }?);
            done += rows;
            if done >= next_look {
                next_look = done + ROWS_PER_LOOK;
                interrupt.check()?;
            }
        }
        if done == out.len() {
            return Ok((nulls, bits));
        }
        Err(Error::invalid(format!("the stream has {done} rows, but {} were announced", out.len())))
    }

    /// The next chunk, None after the last.
    fn next(&mut self) -> Result<Option<Array>> {
        let mut array = Array::EMPTY;
        let get_next = self.get_next.ok_or_else(|| Error::invalid("the stream has been read already"))?;
        // SAFETY: the stream is not released, and the array is there to be filled.
        if unsafe { get_next(self, &raw mut array) } != 0 {
            return Err(Error::invalid("the stream ends in an error"));
        }
        Ok(array.release.is_some().then_some(array))
    }
}

impl Array {
    const EMPTY: Self = Self {
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

    /// What pyarrow hands over of an array of its own.
    pub(crate) fn export(array: &Bound<'_, PyAny>) -> PyResult<Self> {
        let mut held = Self::EMPTY;
        array.call_method1(intern!(array.py(), "_export_to_c"), ((&raw mut held).addr(),))?;
        Ok(held)
    }

    /// Write the length of every list to `out`, zero for nulls.
    ///
    /// # Safety
    /// If this is an array of lists with as many buffers as those of `lists` have, it is of that type.
    ///
    /// # Errors
    /// The array is of something else, or has other than `out.len()` rows; a length is negative or too long.
    pub(crate) unsafe fn lengths(self, lists: Lists, out: &mut [u32]) -> Result<Seen> {
        let mut nulls = Vec::new();
        // SAFETY: the caller's promise.
        let bits = unsafe { self.fill(lists, out, 0, &mut nulls) }?;
        Ok((nulls, bits))
    }

    /// As [`Self::lengths`], adding the rows that are null to `nulls`, counted from `first` on.
    unsafe fn fill(&self, lists: Lists, out: &mut [u32], first: usize, nulls: &mut Vec<i64>) -> Result<Bits> {
        if (self.n_buffers, self.n_children) != (lists.buffers(), 1) {
            return Err(Error::invalid("the column is not of such lists"));
        }
        if out.len() != self.rows()? {
            return Err(Error::invalid(format!("out has {} elements for {} lists", out.len(), self.length)));
        }
        let Some((bitmap, start)) = self.validity() else {
            // SAFETY: the caller's promise.
            return unsafe { self.measure(lists, 0, out) };
        };
        nulls.reserve(usize::try_from(self.null_count).unwrap_or_default().min(out.len()));
        let (mut bits, mut done) = (Bits::NONE, 0);
        for block in out.chunks_mut(ROWS_IN_CACHE) {
            // SAFETY: likewise.
            bits = bits.and(unsafe { self.measure(lists, done, block) }?);
            offsets::unset(bitmap, start + done, block.len(), |row| {
                block.get_mut(row).into_iter().for_each(|length| *length = 0);
                nulls.push((first + done + row) as i64);
            })?;
            done += block.len();
        }
        Ok(bits)
    }

    /// Write the lengths of the lists from the one at `from` on, whether they are null or not.
    ///
    /// # Safety
    /// The array is of type `lists`, and has `out.len()` lists from there on.
    unsafe fn measure(&self, lists: Lists, from: usize, out: &mut [u32]) -> Result<Bits> {
        let count = out.len();
        if count == 0 {
            return Ok(Bits::NONE);
        }
        // SAFETY: the caller's promise; there is an offset for the start of each list, those that a slice leaves out too,
        // and the last one's end, or a size for each.
        unsafe {
            match lists {
                Lists::Offsets32 => offsets::lengths(self.numbers::<i32>(1, from, count + 1)?, out),
                Lists::Offsets64 => offsets::lengths(self.numbers::<i64>(1, from, count + 1)?, out),
                Lists::Sizes32 => offsets::narrow(self.numbers::<i32>(2, from, count)?, out),
                Lists::Sizes64 => offsets::narrow(self.numbers::<i64>(2, from, count)?, out),
                Lists::Equal(size) => {
                    out.fill(size);
                    Ok(Bits::of(size))
                }
            }
        }
    }

    fn rows(&self) -> Result<usize> {
        usize::try_from(self.length).map_err(|_| Error::invalid("a chunk has a negative size"))
    }

    /// Numbers in a buffer, from those of the list at `from` on.
    ///
    /// # Safety
    /// The buffer has so many of them, of this type.
    unsafe fn numbers<T>(&self, buffer: usize, from: usize, count: usize) -> Result<&[T]> {
        let offset = usize::try_from(self.offset).map_err(|_| Error::invalid("a chunk starts before its buffers"))?;
        let first = self.buffer(buffer).cast::<T>();
        if first.is_null() || !first.is_aligned() {
            return Err(Error::invalid("offsets or sizes are missing, or lie at an odd address"));
        }
        // SAFETY: the caller's promise; the buffer stays until the array is released.
        Ok(unsafe { std::slice::from_raw_parts(first.add(offset + from), count) })
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
