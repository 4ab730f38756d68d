//! Open packs by the room that they have left, with "the smallest room that is at least s".
//!
//! For ordinary capacities a bitmap with 64 children a node (a van Emde Boas tree in spirit: three levels reach 262,144)
//! and one stack of packs for every room; for capacities above a few million, where such tables would cost more than the
//! packing, an ordered map.

use std::collections::BTreeMap;

use super::recipe::Content;

const NONE: u32 = u32::MAX;

/// Capacities up to here get a table.
const TABLE: u32 = 1 << 22;

/// Open packs that are alike: one content, one number of samples, one room.
#[derive(Debug, Clone, Copy)]
pub(super) struct Alike {
    pub(super) content: Content,
    pub(super) packs: u32,
    pub(super) samples: u32,
    /// The next on the same room's stack.
    next: u32,
}

impl Alike {
    pub(super) fn new(content: Content, packs: u32, samples: u32) -> Self {
        Self { content, packs, samples, next: NONE }
    }
}

/// The open packs.
#[derive(Debug)]
pub(super) struct Rooms {
    entries: Vec<Alike>,
    tops: Tops,
}

/// The top of every room's stack.
#[derive(Debug)]
enum Tops {
    Table { tops: Vec<u32>, filled: Bitmap },
    Map(BTreeMap<u32, u32>),
}

impl Rooms {
    pub(super) fn new(capacity: u32) -> Self {
        let tops = if capacity <= TABLE {
            let rooms = capacity as usize + 1;
            Tops::Table { tops: vec![NONE; rooms], filled: Bitmap::new(rooms) }
        } else {
            Tops::Map(BTreeMap::new())
        };
        Self { entries: Vec::new(), tops }
    }

    /// The smallest room of at least `size` that some open pack has.
    #[inline]
    pub(super) fn tightest(&self, size: u32) -> Option<u32> {
        match &self.tops {
            Tops::Table { filled, .. } => filled.at_or_after(size as usize).map(|room| room as u32),
            Tops::Map(tops) => tops.range(size..).next().map(|(&room, _)| room),
        }
    }

    /// Add open packs with `room` left.
    #[inline]
    pub(super) fn push(&mut self, room: u32, alike: Alike) {
        let entry = self.entries.len() as u32;
        let next = match &mut self.tops {
            Tops::Table { tops, filled } => {
                let top = std::mem::replace(&mut tops[room as usize], entry);
                if top == NONE {
                    filled.set(room as usize);
                }
                top
            }
            Tops::Map(tops) => tops.insert(room, entry).unwrap_or(NONE),
        };
        self.entries.push(Alike { next, ..alike });
    }

    /// Take the open packs on top of the stack of `room`.
    #[inline]
    pub(super) fn pop(&mut self, room: u32) -> Option<Alike> {
        let top = match &self.tops {
            Tops::Table { tops, .. } => *tops.get(room as usize)?,
            Tops::Map(tops) => *tops.get(&room)?,
        };
        let alike = *self.entries.get(top as usize)?;
        match &mut self.tops {
            Tops::Table { tops, filled } => {
                tops[room as usize] = alike.next;
                if alike.next == NONE {
                    filled.clear(room as usize);
                }
            }
            Tops::Map(tops) if alike.next == NONE => {
                tops.remove(&room);
            }
            Tops::Map(tops) => {
                tops.insert(room, alike.next);
            }
        }
        Some(alike)
    }

    /// Take everything, the tightest room first.
    pub(super) fn drain(mut self) -> impl Iterator<Item = Alike> {
        let mut room = self.tightest(0);
        std::iter::from_fn(move || {
            let alike = self.pop(room?);
            room = self.tightest(room?);
            alike
        })
    }
}

/// A set of numbers below a fixed limit, 64 to a word; a bit of the level above says that a word is not empty.
#[derive(Debug)]
struct Bitmap {
    levels: Vec<Vec<u64>>,
}

impl Bitmap {
    fn new(limit: usize) -> Self {
        let mut levels = Vec::new();
        let mut words = limit.div_ceil(64).max(1);
        loop {
            levels.push(vec![0; words]);
            if words == 1 {
                return Self { levels };
            }
            words = words.div_ceil(64);
        }
    }

    #[inline]
    fn set(&mut self, mut number: usize) {
        for level in &mut self.levels {
            let word = &mut level[number >> 6];
            let was = *word;
            *word |= 1 << (number & 63);
            if was != 0 {
                return;
            }
            number >>= 6;
        }
    }

    #[inline]
    fn clear(&mut self, mut number: usize) {
        for level in &mut self.levels {
            let word = &mut level[number >> 6];
            *word &= !(1 << (number & 63));
            if *word != 0 {
                return;
            }
            number >>= 6;
        }
    }

    /// The smallest member that is at least `number`.
    #[inline]
    fn at_or_after(&self, mut number: usize) -> Option<usize> {
        for (depth, level) in self.levels.iter().enumerate() {
            let later = *level.get(number >> 6)? >> (number & 63);
            if later != 0 {
                let mut found = number + later.trailing_zeros() as usize;
                for below in self.levels[..depth].iter().rev() {
                    found = (found << 6) + below[found].trailing_zeros() as usize;
                }
                return Some(found);
            }
            number = (number >> 6) + 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bitmap_agrees_with_an_ordered_set(limit in 1_usize..10_000, moves in prop::collection::vec((any::<bool>(), any::<u32>()), 0..300)) {
            let (mut bitmap, mut twin) = (Bitmap::new(limit), BTreeSet::new());
            for (add, number) in moves {
                let number = number as usize % limit;
                if add { bitmap.set(number); twin.insert(number); } else { bitmap.clear(number); twin.remove(&number); }
                for from in [0, number, (number + 1).min(limit - 1), limit / 2] {
                    prop_assert_eq!(bitmap.at_or_after(from), twin.range(from..).next().copied());
                }
            }
        }

        #[test]
        fn table_and_map_agree(moves in prop::collection::vec((0_u32..50, any::<bool>()), 0..200)) {
            let mut table = Rooms::new(50);
            let mut map = Rooms { entries: Vec::new(), tops: Tops::Map(BTreeMap::new()) };
            for (number, (room, add)) in moves.into_iter().enumerate() {
                prop_assert_eq!(table.tightest(room), map.tightest(room));
                if add {
                    table.push(room, Alike::new(Content::EMPTY, number as u32, 0));
                    map.push(room, Alike::new(Content::EMPTY, number as u32, 0));
                } else {
                    prop_assert_eq!(table.pop(room).map(|a| a.packs), map.pop(room).map(|a| a.packs));
                }
            }
            prop_assert_eq!(table.drain().map(|a| a.packs).collect::<Vec<_>>(), map.drain().map(|a| a.packs).collect::<Vec<_>>());
        }
    }
}
