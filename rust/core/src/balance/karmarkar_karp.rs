//! Karmarkar-Karp differencing for k parts, with or without equal counts.
//!
//! A state is a division of some items into k sets. The two states with the largest spread are joined, the heaviest set
//! of one with the lightest of the other, until one state is left. Sets live as linked lists of ranks; a state keeps only
//! its sets that hold something, so that joining single items is O(1) at first and all is O(n log k) on ordinary costs
//! (the dense form is O(n k)). Karmarkar & Karp, The differencing method of set partitioning, 1982; with counts: tuples
//! of k consecutive items, as in Michiels et al., 2003.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::sorted::Sorted;
use crate::{Interrupt, Result};

const NONE: u32 = u32::MAX;

/// One set of a state: its sum and a linked list of ranks.
#[derive(Clone, Copy)]
struct Set {
    sum: u64,
    head: u32,
    tail: u32,
}

const EMPTY: Set = Set { sum: 0, head: NONE, tail: NONE };

fn single(items: &Sorted, rank: usize) -> Set {
    Set { sum: items.costs[rank], head: rank as u32, tail: rank as u32 }
}

/// The sets of a state by descending sum; those that hold nothing may be left out.
type State = Vec<Set>;

/// The part of each rank.
pub(super) fn assign(items: &Sorted, parts: usize, counted: bool, interrupt: Interrupt<'_>) -> Result<Vec<u32>> {
    let n = items.costs.len();
    let mut next = vec![NONE; n];
    let mut waiting = if counted { Waiting::tuples(items, parts) } else { Waiting::singles(items, parts) };
    let mut joined = 0_usize;
    let last = loop {
        let Some(first) = waiting.pop() else { break State::new() };
        let Some(second) = waiting.pop() else { break first };
        waiting.push(join(first, second, parts, &mut next));
        joined += 1;
        if joined.is_multiple_of(256) {
            interrupt.check()?;
        }
    };
    let mut part_of = vec![0_u32; n];
    for (set, part) in last.iter().zip(0_u32..) {
        let mut rank = set.head;
        while rank != NONE {
            part_of[rank as usize] = part;
            rank = next[rank as usize];
        }
    }
    Ok(part_of)
}

/// Join two states: the heaviest set of one with the lightest of the other.
fn join(first: State, second: State, parts: usize, next: &mut [u32]) -> State {
    let (mut a, b) = if first.len() < second.len() { (second, first) } else { (first, second) };
    // The lightest sets of `a` that are left out are empty: the heaviest of `b` take their places.
    let (fresh, rest) = b.split_at((parts - a.len()).min(b.len()));
    if let ([item], []) | ([], [item]) = (fresh, rest) {
        // One item: no need to sort all sets again.
        let set = if rest.is_empty() { *item } else { a.pop().map_or(*item, |lightest| append(lightest, *item, next)) };
        let place = a.partition_point(|other| other.sum >= set.sum);
        a.insert(place, set);
        return a;
    }
    for (set, &other) in a.iter_mut().rev().zip(rest) {
        *set = append(*set, other, next);
    }
    a.extend_from_slice(fresh);
    a.sort_unstable_by(|x, y| y.sum.cmp(&x.sum).then(x.head.cmp(&y.head)));
    a
}

fn append(a: Set, b: Set, next: &mut [u32]) -> Set {
    if a.head == NONE {
        return b;
    }
    if b.head != NONE {
        next[a.tail as usize] = b.head;
        return Set { sum: a.sum + b.sum, head: a.head, tail: b.tail };
    }
    a
}

/// The states that wait to be joined, the largest spread first; ties by the largest set, then by age.
struct Waiting<'a> {
    parts: usize,
    order: BinaryHeap<Entry>,
    age: u32,
    /// Items that are a state each: they come in order of their spread, and need no place in the heap.
    items: &'a Sorted,
    rank: usize,
}

impl<'a> Waiting<'a> {
    /// Without counts: states start as single items.
    fn singles(items: &'a Sorted, parts: usize) -> Self {
        Self { parts, order: BinaryHeap::new(), age: 0, items, rank: 0 }
    }

    /// With counts: states start as k consecutive items each; the last is filled up with empty sets.
    fn tuples(items: &'a Sorted, parts: usize) -> Self {
        let n = items.costs.len();
        let mut waiting = Self { rank: n, ..Self::singles(items, parts) };
        for start in (0..n).step_by(parts) {
            let mut state: State = (start..(start + parts).min(n)).map(|rank| single(items, rank)).collect();
            state.resize(parts, EMPTY);
            waiting.push(state);
        }
        waiting
    }

    fn push(&mut self, state: State) {
        let top = state.first().map_or(0, |set| set.sum);
        let bottom = if state.len() < self.parts { 0 } else { state.last().map_or(0, |set| set.sum) };
        self.order.push(Entry { spread: top - bottom, top, age: Reverse(self.age), state });
        self.age += 1;
    }

    fn pop(&mut self) -> Option<State> {
        // A single item's spread is its cost (and k = 1 has no spread); on a tie the joined state is first.
        let spread = self.order.peek().map(|entry| entry.spread);
        let item = self.items.costs.get(self.rank).map(|&cost| if self.parts == 1 { 0 } else { cost });
        if item.is_some() && item > spread {
            self.rank += 1;
            return Some(vec![single(self.items, self.rank - 1)]);
        }
        self.order.pop().map(|entry| entry.state)
    }
}

/// A state in the heap.
struct Entry {
    spread: u64,
    top: u64,
    age: Reverse<u32>,
    state: State,
}

impl Entry {
    fn key(&self) -> (u64, u64, Reverse<u32>) {
        (self.spread, self.top, self.age)
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}
