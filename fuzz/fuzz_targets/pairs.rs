//! Whole epochs of samples with two lengths: refused with an error, or within every limit and accounted for.

#![no_main]

use arbitrary::{Arbitrary, Unstructured};
use lengthwise_core::{
    Batch, Interrupt, LastBatch, Overlong, PadTo, PaddedPairs, Padding, PairPlanner, Plan, Settings,
};
use lengthwise_fuzz::{check_counts, length, limits, samples, settings, used_memory};
use libfuzzer_sys::fuzz_target;

#[derive(Debug)]
struct Case {
    lengths: Vec<[u32; 2]>,
    layout: PaddedPairs,
    settings: Settings,
    epoch: u64,
}

fn pair(from: &mut Unstructured<'_>) -> arbitrary::Result<[u32; 2]> {
    Ok([length(from)?, length(from)?])
}

impl<'a> Arbitrary<'a> for Case {
    fn arbitrary(from: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        let limits = limits(from)?;
        let padding = Padding {
            multiple_of: if from.arbitrary()? { [1, 1] } else { pair(from)? },
            weights: if from.arbitrary()? { [1, 1] } else { from.arbitrary()? },
        };
        let cells = from.int_in_range(0..=12)?;
        let layout = PaddedPairs {
            limits,
            padding,
            cells: (0..cells).map(|_| pair(from)).collect::<Result<_, _>>()?,
            pad_to: *from.choose(&[PadTo::Longest, PadTo::Boundary])?,
            last_batch: *from.choose(&[LastBatch::Keep, LastBatch::Merge, LastBatch::Drop])?,
            longest_first: from.arbitrary()?,
        };
        let (settings, epoch) = (settings(from)?, from.arbitrary()?);
        let lengths = samples(from, pair)?;
        Ok(Self { lengths, layout, settings, epoch })
    }
}

impl Case {
    fn plan(&self, threads: u32) -> Option<(Plan<u32>, Vec<[u32; 2]>)> {
        let settings = Settings { threads, ..self.settings };
        let planner = PairPlanner::new(&self.lengths, self.layout.clone(), settings, Interrupt::NEVER).ok()?;
        planner.plan(&self.lengths, self.epoch, &used_memory(threads, self.lengths.len()), Interrupt::NEVER).ok()
    }

    fn check_batch(&self, plan: &Plan<u32>, batch: &Batch, shape: [u32; 2]) {
        let PaddedPairs { limits, padding, cells, .. } = &self.layout;
        let pairs = || plan.indices[batch.positions()].iter().map(|&sample| self.lengths[sample as usize]);
        let longest = pairs().fold([0, 0], |a, b| [a[0].max(b[0]), a[1].max(b[1])]);
        let rounded = |pair: [u32; 2]| [0, 1].map(|side| pair[side].max(1).next_multiple_of(padding.multiple_of[side]));
        let tokens = u128::from(shape[0]) * u128::from(padding.weights[0])
            + u128::from(shape[1]) * u128::from(padding.weights[1]);
        if shape == rounded(longest) && batch.size == 1 && self.settings.overlong == Overlong::Alone {
            return;
        }
        assert!(u128::from(batch.size) * tokens <= u128::from(limits.max_tokens) && batch.size <= limits.max_samples);
        assert!(batch.size < limits.samples_multiple_of || batch.size.is_multiple_of(limits.samples_multiple_of));
        // All of one batch fit some cell together.
        let mut holding = cells.iter().filter(|cell| longest[0] <= cell[0] && longest[1] <= cell[1]);
        match self.layout.pad_to {
            PadTo::Longest => assert!(shape == rounded(longest) && holding.next().is_some()),
            PadTo::Boundary => assert!(holding.any(|&cell| rounded(cell) == shape)),
        }
    }
}

fuzz_target!(|case: Case| {
    let Some((plan, shapes)) = case.plan(1) else { return };
    assert_eq!(plan.batches.len() % (case.settings.world_size * case.settings.accumulate) as usize, 0);
    assert_eq!(plan.batches.len(), shapes.len());
    let mut used = vec![0_u64; case.lengths.len()];
    for (batch, &shape) in plan.batches.iter().zip(&shapes) {
        case.check_batch(&plan, batch, shape);
        plan.indices[batch.positions()].iter().for_each(|&sample| used[sample as usize] += 1);
    }
    check_counts(&used, plan.accounts.repeated, plan.accounts.dropped);
    if case.settings.threads > 1 {
        assert_eq!(Some((plan, shapes)), case.plan(case.settings.threads));
    }
});
