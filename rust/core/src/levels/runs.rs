//! The hybrid encoding of levels: runs of one value, and groups of eight that are bit-packed.
//!
//! Source: <https://parquet.apache.org/docs/file-format/data-pages/encodings/#RLE>

use crate::{Error, Result};

/// A run of levels.
#[derive(Clone, Copy)]
pub(super) enum Run<'a> {
    Repeated { value: u32, count: usize },
    Packed { bytes: &'a [u8], width: u32, count: usize },
}

impl Run<'_> {
    pub(super) fn len(&self) -> usize {
        match *self {
            Self::Repeated { count, .. } | Self::Packed { count, .. } => count,
        }
    }
}

/// The runs of the hybrid encoding: a varint whose lowest bit says which kind follows.
pub(super) struct Runs<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) width: u32,
}

impl<'a> Runs<'a> {
    pub(super) fn next(&mut self) -> Result<Run<'a>> {
        let header = self.varint()?;
        let size = usize::try_from(header >> 1).map_err(|_| short())?;
        if header & 1 == 0 {
            let (value, rest) = self.bytes.split_first().ok_or_else(short)?;
            self.bytes = rest;
            return if size == 0 { Err(short()) } else { Ok(Run::Repeated { value: u32::from(*value), count: size }) };
        }
        // Groups of 8 levels; the last run of a page may end before its groups do.
        let wanted = size.checked_mul(self.width as usize).filter(|&wanted| wanted > 0).ok_or_else(short)?;
        let (packed, rest) = self.bytes.split_at(wanted.min(self.bytes.len()));
        if packed.is_empty() {
            return Err(short());
        }
        self.bytes = rest;
        let count = packed.len() * 8 / self.width as usize;
        Ok(Run::Packed { bytes: packed, width: self.width, count })
    }

    fn varint(&mut self) -> Result<u64> {
        let mut value = 0_u64;
        for shift in (0..35).step_by(7) {
            let (byte, rest) = self.bytes.split_first().ok_or_else(short)?;
            self.bytes = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Error::invalid("the length of a run takes more than 5 bytes"))
    }
}

/// The `index`-th level of `width` bits; 0 past the end.
pub(super) fn packed(bytes: &[u8], width: u32, index: usize) -> u32 {
    let bit = index * width as usize;
    let low = u32::from(bytes.get(bit / 8).copied().unwrap_or(0));
    let high = u32::from(bytes.get(bit / 8 + 1).copied().unwrap_or(0));
    ((low | high << 8) >> (bit % 8)) & ((1 << width) - 1)
}

fn short() -> Error {
    Error::invalid("the levels end before the page does")
}
