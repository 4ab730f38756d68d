//! Random bits that are the same on every machine, for any number of threads.
//!
//! Problem: a plan must be a pure function of (seed, epoch), and every part of it must be computable alone, in any order.
//! Method: the `SplitMix64` finaliser over a counter, with a second key word mixed in between its two rounds, so that two
//! keys never share a window of one sequence ([`Key::word`]); where many draws follow each other, 16 interleaved
//! xoshiro128++ generators seeded from such words ([`Lanes`]), which compilers vectorise and which need only 32-bit integers.
//! Cost: 0.5 ns a word, 0.2 ns a 32-bit draw.
//! Wrong for: secrets. These are statistical generators.
//! Sources: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014; Blackman, Vigna, "Scrambled
//! linear pseudorandom number generators", ACM TOMS 47 (2021); Lemire, "Fast random integer generation in an interval",
//! ACM TOMACS 29 (2019).

/// What random bits are for. Two purposes never share bits; the numbers are part of the file format of plans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum Stream {
    /// Which bin a sample falls into before bins are shuffled.
    Bins = 1,
    /// The order inside a bin.
    InBin = 2,
    /// The order of batches.
    Batches = 3,
    /// Which samples make up a pack.
    Packs = 4,
    /// The order of steps.
    Steps = 5,
    /// Drawings for reports: a full shuffle to compare a plan with.
    Reference = 6,
}

/// `SplitMix64`'s increment: the golden ratio, odd.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
const ROUND_1: u64 = 0xBF58_476D_1CE4_E5B9;
const ROUND_2: u64 = 0x94D0_49BB_1331_11EB;

/// The `SplitMix64` finaliser: a bijection of 64 bits that mixes them thoroughly.
#[inline]
#[must_use]
pub const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(ROUND_1);
    z = (z ^ (z >> 27)).wrapping_mul(ROUND_2);
    z ^ (z >> 31)
}

/// 128 bits that name one sequence of random words; any word of it can be read alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    first: u64,
    second: u64,
}

impl Key {
    /// The key of one purpose in one epoch of one seed.
    #[must_use]
    pub const fn new(seed: u64, epoch: u64, stream: Stream) -> Self {
        let root = Self { first: mix(seed ^ ROUND_1), second: mix(seed.wrapping_add(GOLDEN)) };
        root.child(epoch).child(stream as u64)
    }

    /// The key of part `index` of what this key names, for instance of one bin. Parts differ for indices below 2^63.
    #[must_use]
    pub const fn child(self, index: u64) -> Self {
        Self { first: self.word(index.wrapping_mul(2)), second: self.word(index.wrapping_mul(2).wrapping_add(1)) }
    }

    /// Word number `position` of the sequence: all 64 bits are uniform.
    #[inline]
    #[must_use]
    pub const fn word(self, position: u64) -> u64 {
        let mut z = self.first.wrapping_add(position.wrapping_mul(GOLDEN));
        z = (z ^ (z >> 30)).wrapping_mul(ROUND_1);
        z = (z ^ (z >> 27) ^ self.second).wrapping_mul(ROUND_2);
        z ^ (z >> 31)
    }
}

/// The words of a key one after another.
#[derive(Debug, Clone)]
pub struct Words {
    key: Key,
    position: u64,
}

impl Words {
    /// All words of `key`, from the first.
    #[must_use]
    pub const fn new(key: Key) -> Self {
        Self { key, position: 0 }
    }

    /// The next 64 uniform bits.
    #[inline]
    pub const fn next_word(&mut self) -> u64 {
        let word = self.key.word(self.position);
        self.position = self.position.wrapping_add(1);
        word
    }

    /// The next uniform integer in `0..bound`, exactly uniform (Lemire's method). `bound` of 0 gives 0.
    #[inline]
    pub const fn below(&mut self, bound: u64) -> u64 {
        let mut product = self.next_word() as u128 * bound as u128;
        if (product as u64) < bound {
            let rejected = bound.wrapping_neg() % bound;
            while (product as u64) < rejected {
                product = self.next_word() as u128 * bound as u128;
            }
        }
        (product >> 64) as u64
    }
}

/// How many generators [`Lanes`] runs side by side: one AVX-512 register, two of AVX2, four of SSE2 or NEON.
pub const LANES: usize = 16;

/// [`LANES`] interleaved xoshiro128++ generators.
#[derive(Debug, Clone)]
pub struct Lanes {
    state: [[u32; LANES]; 4],
}

impl Lanes {
    /// Generators seeded from the first 32 words of `key`.
    #[must_use]
    pub fn new(key: Key) -> Self {
        let words = |half| std::array::from_fn::<u64, LANES, _>(|lane| key.word(2 * lane as u64 + half));
        let (low, high) = (words(0), words(1));
        // All-zero is the one state that a xoshiro generator never leaves: the last bit of each is set.
        let state = [
            low.map(|word| word as u32),
            low.map(|word| (word >> 32) as u32),
            high.map(|word| word as u32),
            high.map(|word| (word >> 32) as u32 | 1),
        ];
        Self { state }
    }

    /// One 32-bit draw from every generator.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "compiled once for each instruction set")]
    pub fn draw(&mut self) -> [u32; LANES] {
        let mut drawn = [0; LANES];
        let [a, b, c, d] = &mut self.state;
        for lane in 0..LANES {
            drawn[lane] = a[lane].wrapping_add(d[lane]).rotate_left(7).wrapping_add(a[lane]);
            let shifted = b[lane] << 9;
            c[lane] ^= a[lane];
            d[lane] ^= b[lane];
            b[lane] ^= c[lane];
            a[lane] ^= d[lane];
            c[lane] ^= shifted;
            d[lane] = d[lane].rotate_left(11);
        }
        drawn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mix_is_splitmix64() {
        // The first outputs of the reference implementation for seed 1234567.
        let outputs: Vec<u64> = (1..=3).map(|i: u64| mix(1_234_567_u64.wrapping_add(i.wrapping_mul(GOLDEN)))).collect();
        assert_eq!(outputs, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn lanes_are_xoshiro128_plus_plus() {
        // The reference implementation's first outputs from state 1, 2, 3, 4.
        let mut lanes = Lanes { state: [[1; LANES], [2; LANES], [3; LANES], [4; LANES]] };
        let outputs: Vec<u32> = (0..3).map(|_| lanes.draw()[5]).collect();
        assert_eq!(outputs, [641, 1_573_767, 3_222_811_527]);
    }

    #[test]
    fn seeds_epochs_and_streams_never_alias() {
        let mut words = std::collections::HashSet::new();
        for seed in 0..20 {
            for epoch in 0..20 {
                for stream in [Stream::Bins, Stream::InBin, Stream::Batches] {
                    assert!(words.insert(Key::new(seed, epoch, stream).word(0)), "{seed} {epoch} {stream:?}");
                }
            }
        }
    }

    #[test]
    fn below_is_uniform_and_in_range() {
        let mut words = Words::new(Key::new(5, 0, Stream::Reference));
        let mut counts = [0_i64; 7];
        for _ in 0..70_000 {
            counts[words.below(7) as usize] += 1;
        }
        let chi2: i64 = counts.iter().map(|&count| (count - 10_000).pow(2)).sum();
        assert!(chi2 < 22 * 10_000, "chi2 {} of 6 degrees", chi2 as f64 / 10_000.0);
        assert_eq!(words.below(1), 0);
        assert!((0..1000).all(|_| words.below((1 << 63) + 1) <= 1 << 63));
    }
}
