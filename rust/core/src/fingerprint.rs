//! A short name for a set of lengths, to tell whether a plan or a saved state belongs to them.
//!
//! Method: pairs of lengths are folded by 64 x 64 -> 128 bit multiplications into four chains, and those into 128 bits. It
//! depends on the values and their order, not on the integer type that stores them.
//! Cost: 0.3 ns a length. Wrong for: an adversary who wants two sets to have one name; accidents are as rare as 2^-64.

use crate::rng::mix;
use crate::{Interrupt, Length, Result};

const CHAINS: usize = 4;
/// Odd, without short patterns: the first outputs of `mix`.
const KEYS: [u64; CHAINS] = [mix(1) | 1, mix(2) | 1, mix(3) | 1, mix(4) | 1];

#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product >> 64) as u64 ^ product as u64
}

#[inline]
fn wide<L: Length>(length: L) -> u64 {
    u64::from(Into::<u32>::into(length))
}

/// 32 hexadecimal digits.
///
/// # Errors
/// Interrupted.
pub fn fingerprint<L: Length>(lengths: &[L], interrupt: Interrupt<'_>) -> Result<String> {
    let mut chains = KEYS;
    let blocks = lengths.chunks_exact(2 * CHAINS);
    let rest = blocks.remainder();
    for (count, block) in blocks.enumerate() {
        if count % (1 << 17) == 0 {
            interrupt.check()?;
        }
        for (chain, pair) in chains.iter_mut().zip(block.chunks_exact(2)) {
            let word = wide(pair[0]) | wide(pair[1]) << 32;
            // Adding keeps the chain alive where the multiplication would forget it.
            *chain = fold(*chain ^ word, KEYS[0]).wrapping_add(*chain).rotate_left(23);
        }
    }
    for (i, length) in rest.iter().enumerate() {
        chains[i % CHAINS] = mix(chains[i % CHAINS] ^ (wide(*length) + KEYS[1]));
    }
    let size = lengths.len() as u64;
    let name =
        |start: u64| chains.iter().fold(mix(size ^ start), |name, &chain| mix(name.wrapping_add(KEYS[2]) ^ chain));
    Ok(format!("{:016x}{:016x}", name(KEYS[2]), name(KEYS[3])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depends_on_values_and_order_only() {
        let name = |lengths: &[u32]| fingerprint(lengths, Interrupt::NEVER).ok();
        let lengths: Vec<u32> = (1..100).collect();
        let narrow: Vec<u16> = (1..100).collect();
        assert_eq!(name(&lengths), fingerprint(&narrow, Interrupt::NEVER).ok());
        let mut names = std::collections::HashSet::new();
        for i in 0..99 {
            let mut other = lengths.clone();
            other[i] += 1;
            assert!(names.insert(name(&other)));
            other.clone_from(&lengths);
            other.swap(i, (i + 1) % 99);
            assert!(names.insert(name(&other)));
            assert!(names.insert(name(&lengths[..i])));
        }
        assert!(names.insert(name(&lengths)));
    }
}
