//! Whole epochs from any lengths, layout and settings: refused with an error, or within every limit and accounted for.

#![no_main]

use arbitrary::{Arbitrary, Unstructured};
use lengthwise_core::{
    Batch, Interrupt, LastBatch, Limits, MAX_LENGTH, Order, Overlong, PadTo, Padded, Plan, Planner, Settings,
};
use lengthwise_fuzz::{check_counts, length, limits, samples, settings, used_memory};
use libfuzzer_sys::fuzz_target;

/// Pieces of split samples that a case may make.
const PIECES: u64 = 10_000;

#[derive(Debug)]
struct Case {
    lengths: Vec<u32>,
    layout: Padded,
    settings: Settings,
    epoch: u64,
}

impl<'a> Arbitrary<'a> for Case {
    fn arbitrary(from: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        let multiple_of = if from.arbitrary()? { 1 } else { length(from)? };
        let limits = Limits { multiple_of, ..limits(from)? };
        let bounds = from.int_in_range(0..=12)?;
        let layout = Padded {
            limits,
            boundaries: (0..bounds).map(|_| length(from)).collect::<Result<_, _>>()?,
            pad_to: *from.choose(&[PadTo::Longest, PadTo::Boundary])?,
            order: *from.choose(&[Order::Bucketed, Order::Shuffled, Order::Sorted])?,
            last_batch: *from.choose(&[LastBatch::Keep, LastBatch::Merge, LastBatch::Drop])?,
            longest_first: from.arbitrary()?,
        };
        let (settings, epoch) = (settings(from)?, from.arbitrary()?);
        let lengths = samples(from, length)?;
        Ok(Self { lengths, layout, settings, epoch })
    }
}

impl Case {
    /// The longest sample that is not over-long.
    fn limit(&self) -> u32 {
        self.layout.limits.longest().min(self.layout.boundaries.last().copied().unwrap_or(MAX_LENGTH))
    }

    fn plan(&self, threads: u32) -> Option<Plan<u32>> {
        let settings = Settings { threads, ..self.settings };
        let planner = Planner::new(&self.lengths, self.layout.clone(), settings, Interrupt::NEVER).ok()?;
        planner.plan(&self.lengths, self.epoch, &used_memory(threads, self.lengths.len()), Interrupt::NEVER).ok()
    }

    /// The tokens that entry `position` of the plan stands for.
    fn tokens(&self, plan: &Plan<u32>, position: usize) -> u32 {
        match &plan.segments {
            Some(segments) => segments[position][1] - segments[position][0],
            None => self.lengths[plan.indices[position] as usize],
        }
    }

    fn check_batch(&self, plan: &Plan<u32>, batch: &Batch) {
        let limits = &self.layout.limits;
        let longest = batch.positions().map(|position| self.tokens(plan, position)).max().expect("a batch has samples");
        assert!(longest <= batch.padded_length && batch.padded_length % limits.multiple_of == 0);
        if longest > self.limit() {
            assert_eq!((self.settings.overlong, batch.size), (Overlong::Alone, 1));
            return;
        }
        assert!(batch.tokens() <= limits.max_tokens && batch.size <= limits.max_samples);
        assert!(batch.size < limits.samples_multiple_of || batch.size % limits.samples_multiple_of == 0);
        if self.layout.pad_to == PadTo::Longest {
            assert_eq!(batch.padded_length, limits.padded(longest));
        } else {
            let mut bounds = self.layout.boundaries.iter().map(|&bound| limits.padded(bound));
            assert!(bounds.any(|bound| bound == batch.padded_length));
        }
    }

    /// Every token of every sample is used once, or its absence or repetition is counted.
    fn check_accounts(&self, plan: &Plan<u32>) {
        let mut used = vec![0_u64; plan.indices.len()];
        plan.batches.iter().flat_map(Batch::positions).for_each(|position| used[position] += 1);
        check_counts(&used, plan.accounts.repeated, plan.accounts.dropped);
        let mut tokens = vec![0_u64; self.lengths.len()];
        for (position, &sample) in plan.indices.iter().enumerate() {
            tokens[sample as usize] += u64::from(self.tokens(plan, position));
        }
        let most = if self.settings.overlong == Overlong::Truncate { self.limit() } else { MAX_LENGTH };
        assert!(tokens.iter().zip(&self.lengths).all(|(&tokens, &length)| tokens == u64::from(length.min(most))));
    }
}

fuzz_target!(|case: Case| {
    let limits = case.layout.limits;
    let valid = limits.validate().is_ok() && case.limit() > 0;
    let pieces = |limit: u32| case.lengths.iter().map(|&length| u64::from(length / limit)).sum::<u64>();
    if valid && case.settings.overlong == Overlong::Split && pieces(case.limit()) > PIECES {
        return;
    }
    let Some(plan) = case.plan(1) else { return };
    assert_eq!(plan.batches.len() % (case.settings.world_size * case.settings.accumulate) as usize, 0);
    plan.batches.iter().for_each(|batch| case.check_batch(&plan, batch));
    case.check_accounts(&plan);
    if case.settings.threads > 1 {
        assert_eq!(Some(plan), case.plan(case.settings.threads));
    }
});
