//! From a recipe to packs: the samples of every class are handed out in turn.
//!
//! Packs that are alike stand next to each other in the output, as rows of a table whose columns are the samples of the
//! recipe; each column is one run of its class's samples. So everything is read and written in order, a block of rows at a
//! time. Cost: 1 to 2 ns a sample.

use std::ops::Range;

use super::classes::Grouped;
use super::recipe::Recipe;
use crate::raw::zeros;
use crate::{Interrupt, Result};

/// Rows of the table are written in blocks of about this many samples, which stay in the nearest cache.
const BLOCK: usize = 4096;

/// Packs as arrays: pack `i` holds `indices[offsets[i]..offsets[i + 1]]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rows {
    /// Sample numbers, pack after pack.
    pub indices: Vec<u32>,
    /// Where each pack starts; one more entry than there are packs.
    pub offsets: Vec<i64>,
}

/// Name the samples of `recipe`; `counts` says how many each class has.
pub(crate) fn emit(recipe: &Recipe, counts: &[u32], grouped: &Grouped, interrupt: Interrupt<'_>) -> Result<Rows> {
    let mut supply: Vec<&[u32]> = Vec::with_capacity(counts.len());
    let samples = grouped.samples.as_slice();
    let mut rest = samples;
    for &count in counts {
        let (class, others) = rest.split_at(count as usize);
        supply.push(class);
        rest = others;
    }
    let mut rows = Rows { indices: zeros(samples.len() - rest.len()), offsets: zeros(recipe.len() as usize + 1) };
    let (mut table, mut content) = (rows.indices.as_mut_slice(), Vec::new());
    let (mut offset, mut since_look, mut offsets) = (0_i64, 0, rows.offsets.iter_mut().skip(1));
    for &(pack, packs) in &recipe.packs {
        recipe.read(pack, &mut content);
        let width: usize = content.iter().map(|&(_, times)| times as usize).sum();
        let (alike, others) = table.split_at_mut(width * packs as usize);
        table = others;
        for block in alike.chunks_mut((BLOCK / width).max(1) * width) {
            let mut column = 0;
            for &(class, times) in &content {
                fill(block, width, column, times as usize, &mut supply[class as usize]);
                column += times as usize;
            }
        }
        for stop in offsets.by_ref().take(packs as usize) {
            offset += width as i64;
            *stop = offset;
        }
        since_look += alike.len();
        if since_look > super::classes::CHUNK {
            since_look = 0;
            interrupt.check()?;
        }
    }
    Ok(rows)
}

/// Columns `column..column + times` of every row take the next samples of `supply`.
#[inline]
fn fill(block: &mut [u32], width: usize, column: usize, times: usize, supply: &mut &[u32]) {
    let taken;
    (taken, *supply) = supply.split_at(block.len() / width * times);
    let columns = column..column + times;
    // A number of columns that the compiler knows needs no call for each row.
    match times {
        1 => copy::<1>(block, width, columns, taken),
        2 => copy::<2>(block, width, columns, taken),
        3 => copy::<3>(block, width, columns, taken),
        4 => copy::<4>(block, width, columns, taken),
        _ => {
            for (row, samples) in block.chunks_exact_mut(width).zip(taken.chunks_exact(times)) {
                row[columns.clone()].copy_from_slice(samples);
            }
        }
    }
}

#[inline]
fn copy<const TIMES: usize>(block: &mut [u32], width: usize, columns: Range<usize>, taken: &[u32]) {
    for (row, samples) in block.chunks_exact_mut(width).zip(taken.chunks_exact(TIMES)) {
        row[columns.clone()].copy_from_slice(samples);
    }
}
