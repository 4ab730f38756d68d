//! Lengths of lists from the levels of a Parquet page, without its values.
//!
//! Problem: Parquet stores no offsets. A list column stores, for each entry, a *repetition level* (0 starts a row, 1 goes
//! on with it) and a *definition level* (how much of the path to the entry is there: below `element` the list is empty or
//! null). Readers decode all values to rebuild the lists; their sizes need the levels alone, about 2 bits an entry.
//!
//! Method: both levels are runs, either one value many times or bit-packed. Repetition levels are scanned 64 at a time for
//! the zeros, which start rows; runs of definition levels that are present are skipped whole. Cost: O(rows + entries/64)
//! for lists without empties, and no memory but the result.
//!
//! Lists in lists take a look at every entry: see `nested`.
//!
//! Source: <https://parquet.apache.org/docs/file-format/data-pages/encodings/#RLE>

mod nested;
mod runs;

use crate::{Error, Interrupt, Result};
use runs::{Run, Runs, packed};

/// What stands in the result for a row that is null.
pub const NULL: u32 = u32::MAX;

/// Rows between two looks at the interrupt.
const ROWS_PER_LOOK: usize = 1 << 16;

/// The levels of one page.
#[derive(Debug, Clone, Copy)]
pub struct Page<'a> {
    /// Repetition levels, in the hybrid encoding.
    pub repetition: &'a [u8],
    /// Definition levels, in the hybrid encoding.
    pub definition: &'a [u8],
    /// How many entries the page has.
    pub entries: usize,
    /// The greatest repetition level of the column: how many lists its values are in.
    pub max_repetition: u32,
    /// The greatest definition level of the column.
    pub max_definition: u32,
    /// Which of those lists is measured, 1 for the outermost; of one that is in others, a row has the sum.
    pub depth: u32,
    /// The least definition level at which that list has an entry; one less is an empty list, anything below is null.
    pub element: u32,
    /// The same of the outermost list, which is null where the row is.
    pub outermost: u32,
}

impl Page<'_> {
    fn check(&self) -> Result<()> {
        let Self { max_repetition, max_definition, depth, element, outermost, .. } = *self;
        let sound = (1..=max_repetition).contains(&depth)
            && (1..=element).contains(&outermost)
            && (depth > 1 || element == outermost)
            && element <= max_definition
            && max_repetition.max(max_definition) < 256;
        if sound {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "levels contradict each other: depth={depth} of {max_repetition}, element={element} of {max_definition}, \
             outermost={outermost}"
        )))
    }
}

/// Write the lengths of a page's rows to `out[done..]`, [`NULL`] for null rows, and return how many rows are done.
///
/// A page may start within a row: then those entries are added to `out[done - 1]`.
///
/// # Errors
/// The levels contradict each other or hold more rows than `out` has room for; the caller asked to stop.
pub fn fill(out: &mut [u32], done: usize, page: &Page<'_>, interrupt: Interrupt<'_>) -> Result<usize> {
    page.check()?;
    if page.max_repetition > 1 {
        return nested::fill(out, done, page, interrupt);
    }
    let mut rows = Rows { out, done, start: 0, missing: None };
    let mut absent = Absent::new(page);
    let mut next_absent = absent.next()?;
    let mut at = 0_usize;
    let mut next_look = done + ROWS_PER_LOOK;
    let mut runs = Runs { bytes: page.repetition, width: 1 };
    while at < page.entries {
        let run = runs.next()?;
        let count = run.len().min(page.entries - at);
        let mut begin = |position: usize| -> Result<()> {
            rows.begin(position)?;
            if let Some((entry, null)) = next_absent
                && entry <= position
            {
                if entry < position {
                    return Err(Error::invalid("an entry within a list says that the list has none"));
                }
                rows.missing = Some(null);
                next_absent = absent.next()?;
            }
            if rows.done >= next_look {
                next_look = rows.done + ROWS_PER_LOOK;
                interrupt.check()?;
            }
            Ok(())
        };
        match run {
            Run::Repeated { value: 0, .. } => (at..at + count).try_for_each(&mut begin)?,
            Run::Repeated { value: 1, .. } => {}
            Run::Repeated { value, .. } => return Err(Error::invalid(format!("a repetition level is {value}"))),
            Run::Packed { bytes, .. } => {
                for (index, word) in bytes.chunks(8).enumerate() {
                    let first = index * 64;
                    let mut zeros = !little_endian(word);
                    while zeros != 0 {
                        let position = first + zeros.trailing_zeros() as usize;
                        if position >= count {
                            break;
                        }
                        begin(at + position)?;
                        zeros &= zeros - 1;
                    }
                }
            }
        }
        at += count;
    }
    if next_absent.is_some() {
        return Err(Error::invalid("an entry within a list says that the list has none"));
    }
    rows.end(page.entries)?;
    Ok(rows.done)
}

/// The rows that are being written: the last one that began is open until the next begins or the page ends.
struct Rows<'a> {
    out: &'a mut [u32],
    done: usize,
    start: usize,
    /// Whether the open row is null (or empty), where it has no entry.
    missing: Option<bool>,
}

impl Rows<'_> {
    fn begin(&mut self, position: usize) -> Result<()> {
        self.end(position)?;
        let room = self.out.len();
        *self.out.get_mut(self.done).ok_or_else(|| too_many(room))? = 0;
        self.done += 1;
        self.start = position;
        Ok(())
    }

    fn end(&mut self, position: usize) -> Result<()> {
        let entries = position - self.start;
        if entries == 0 {
            return Ok(());
        }
        let open = self.done.checked_sub(1).and_then(|row| self.out.get_mut(row));
        let open = open.ok_or_else(within)?;
        match self.missing.take() {
            Some(null) if entries == 1 => *open = if null { NULL } else { 0 },
            None if *open != NULL => {
                let added = u32::try_from(entries).ok().and_then(|entries| open.checked_add(entries));
                let added = added.filter(|&length| length != NULL);
                *open = added.ok_or_else(too_long)?;
            }
            _ => return Err(Error::invalid("a list that has no entry goes on")),
        }
        Ok(())
    }
}

/// The entries that stand for an empty or a null list, in order.
struct Absent<'a> {
    runs: Runs<'a>,
    run: Run<'a>,
    /// Entries before the run, and entries of the run that have been looked at.
    before: usize,
    seen: usize,
    entries: usize,
    element: u32,
}

impl<'a> Absent<'a> {
    fn new(page: &Page<'a>) -> Self {
        let width = u32::BITS - page.max_definition.leading_zeros();
        Self {
            runs: Runs { bytes: page.definition, width },
            run: Run::Repeated { value: 0, count: 0 },
            before: 0,
            seen: 0,
            entries: page.entries,
            element: page.element,
        }
    }

    /// The next such entry, and whether its list is null.
    fn next(&mut self) -> Result<Option<(usize, bool)>> {
        loop {
            let count = self.run.len().min(self.entries - self.before);
            let found = match self.run {
                Run::Repeated { value, .. } => {
                    (value < self.element && self.seen < count).then_some((self.seen, value))
                }
                Run::Packed { bytes, width, .. } => (self.seen..count)
                    .map(|index| (index, packed(bytes, width, index)))
                    .find(|&(_, level)| level < self.element),
            };
            if let Some((index, level)) = found {
                self.seen = index + 1;
                return Ok(Some((self.before + index, level + 1 < self.element)));
            }
            self.before += count;
            self.seen = 0;
            if self.before >= self.entries {
                return Ok(None);
            }
            self.run = self.runs.next()?;
        }
    }
}

fn within() -> Error {
    Error::invalid("the first page starts within a row")
}

fn too_long() -> Error {
    Error::invalid("a list has more than 2^32 - 2 entries")
}

fn too_many(rows: usize) -> Error {
    Error::invalid(format!("the pages hold more than the {rows} rows of their row group"))
}

/// Up to 8 bytes as a number, ones where there are none (which start no row).
fn little_endian(bytes: &[u8]) -> u64 {
    let mut word = [0xff; 8];
    for (slot, byte) in word.iter_mut().zip(bytes) {
        *slot = *byte;
    }
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Encode levels: packed groups and repeated runs by turns, as `choices` say.
    pub(super) fn encode(levels: &[u32], width: u32, choices: &[bool]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut at = 0;
        let mut turn = choices.iter().cycle();
        while at < levels.len() {
            let same = levels[at..].iter().take_while(|&&level| level == levels[at]).count();
            if *turn.next().unwrap_or(&true) {
                varint(&mut bytes, (same as u64) << 1);
                bytes.push(u8::try_from(levels[at]).unwrap());
                at += same;
            } else {
                let end = (at + 16).min(levels.len());
                // Only the last run may be cut short within a group.
                let end = if end == levels.len() { end } else { at + 16 };
                let groups = (end - at).div_ceil(8);
                varint(&mut bytes, (groups as u64) << 1 | 1);
                let mut packed = vec![0_u8; groups * width as usize];
                for (index, level) in levels[at..end].iter().enumerate() {
                    for bit in 0..width as usize {
                        let position = index * width as usize + bit;
                        packed[position / 8] |= u8::from(level >> bit & 1 == 1) << (position % 8);
                    }
                }
                bytes.extend(packed);
                at = end;
            }
        }
        bytes
    }

    fn varint(bytes: &mut Vec<u8>, mut value: u64) {
        while value >= 0x80 {
            bytes.push(u8::try_from(value & 0x7f).unwrap() | 0x80);
            value >>= 7;
        }
        bytes.push(u8::try_from(value).unwrap());
    }

    proptest! {
        #[test]
        fn pages_give_back_the_lists(
            rows in prop::collection::vec(prop_oneof![Just(None), (0_u32..40).prop_map(Some)], 0..80),
            choices in prop::collection::vec(any::<bool>(), 1..9),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
            outer in 0_u32..3,
        ) {
            let element = outer + 2;
            let (mut repetition, mut definition) = (Vec::new(), Vec::new());
            for row in &rows {
                match row {
                    None => { repetition.push(0); definition.push(element - 2); }
                    Some(0) => { repetition.push(0); definition.push(element - 1); }
                    Some(length) => for entry in 0..*length {
                        repetition.push(u32::from(entry > 0));
                        definition.push(element + entry % 2);
                    },
                }
            }
            let mut edges: Vec<usize> = cuts.iter().map(|cut| cut.index(repetition.len() + 1)).collect();
            edges.extend([0, repetition.len()]);
            edges.sort_unstable();
            let max_definition = element + 1;
            let width = u32::BITS - max_definition.leading_zeros();
            let mut out = vec![7; rows.len()];
            let mut done = 0;
            for edge in edges.windows(2) {
                let (repetition, definition) = (&repetition[edge[0]..edge[1]], &definition[edge[0]..edge[1]]);
                let page = Page {
                    repetition: &encode(repetition, 1, &choices),
                    definition: &encode(definition, width, &choices[choices.len() / 2..]),
                    entries: repetition.len(),
                    max_repetition: 1,
                    max_definition,
                    depth: 1,
                    element,
                    outermost: element,
                };
                done = fill(&mut out, done, &page, Interrupt::NEVER).unwrap();
            }
            prop_assert_eq!(done, rows.len());
            let expected: Vec<u32> = rows.iter().map(|row| row.unwrap_or(NULL)).collect();
            prop_assert_eq!(out, expected);
        }

        #[test]
        fn any_bytes_give_an_answer_or_an_error(
            repetition in prop::collection::vec(any::<u8>(), 0..40),
            definition in prop::collection::vec(any::<u8>(), 0..40),
            entries in 0_usize..2_000,
            max_definition in 0_u32..300,
            element in 0_u32..9,
        ) {
            let page = Page {
                repetition: &repetition, definition: &definition, entries, max_repetition: 1, max_definition, depth: 1,
                element, outermost: element,
            };
            let mut out = vec![0; 64];
            if let Ok(done) = fill(&mut out, 3, &page, Interrupt::NEVER) {
                prop_assert!(done <= out.len());
            }
        }
    }
}
