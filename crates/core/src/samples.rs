//! What a job used over its life: a few samples, however long it runs.

/// The most samples of a job. When there are so many, two become one.
pub const SAMPLES_MAX: usize = 64;
/// The pause between the first samples, in milliseconds. It doubles when samples go.
const FIRST_PAUSE_MS: u64 = 1000;
/// The size of one sample, and of all, in bytes.
const SAMPLE_BYTES: usize = 24;
/// The size of the file with all samples.
pub const SAMPLES_BYTES: usize = SAMPLES_MAX * SAMPLE_BYTES;

/// What a target and the processes below it have used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TreeUsage {
    /// CPU time since the start, with that of children that were waited for.
    pub cpu_ms: u64,
    /// Memory that is resident now. What processes share counts for each of them.
    pub memory_bytes: u64,
}

/// What was used at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sample {
    /// How long after the start, without the time in which the machine slept.
    pub at_ms: u64,
    /// What was used.
    pub used: TreeUsage,
}

/// The samples of a job, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Samples {
    list: Vec<Sample>,
    /// How often samples have gone.
    halved: u32,
}

impl Samples {
    /// The samples, oldest first.
    pub fn list(&self) -> &[Sample] {
        &self.list
    }

    /// Whether it is time for the next sample.
    pub fn is_due(&self, at_ms: u64) -> bool {
        let pause = FIRST_PAUSE_MS.checked_shl(self.halved).unwrap_or(u64::MAX);
        at_ms >= self.list.last().map_or(0, |last| last.at_ms).saturating_add(pause)
    }

    /// Adds a sample, which is due.
    pub fn push(&mut self, sample: Sample) {
        if self.list.len() == SAMPLES_MAX {
            // The most memory stays known.
            let one_of_two = |pair: &[Sample]| {
                let memory_bytes = pair.iter().map(|sample| sample.used.memory_bytes).max().unwrap_or(0);
                let last = pair.last().copied().unwrap_or_default();
                Sample { used: TreeUsage { memory_bytes, ..last.used }, ..last }
            };
            self.list = self.list.chunks(2).map(one_of_two).collect();
            self.halved += 1;
        }
        self.list.push(sample);
    }

    /// The file with these samples. It always has the same size, so one write replaces what was there before.
    pub fn to_bytes(&self) -> [u8; SAMPLES_BYTES] {
        let mut bytes = [0; SAMPLES_BYTES];
        for (place, sample) in bytes.chunks_exact_mut(SAMPLE_BYTES).zip(&self.list) {
            let numbers = [sample.at_ms, sample.used.cpu_ms, sample.used.memory_bytes];
            for (place, number) in place.chunks_exact_mut(8).zip(numbers) {
                place.copy_from_slice(&number.to_le_bytes());
            }
        }
        bytes
    }

    /// Reads such a file as far as it makes sense: the job itself may write there, and a reader may meet a writer.
    pub fn from_bytes(bytes: &[u8]) -> Vec<Sample> {
        let number = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
        let mut list: Vec<Sample> = Vec::new();
        for place in bytes.chunks_exact(SAMPLE_BYTES).take(SAMPLES_MAX) {
            let used = TreeUsage { cpu_ms: number(&place[8..16]), memory_bytes: number(&place[16..]) };
            let sample = Sample { at_ms: number(&place[..8]), used };
            // What is left of the file after the last sample is zero.
            if sample.at_ms <= list.last().map_or(0, |last| last.at_ms) {
                break;
            }
            list.push(sample);
        }
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at_ms: u64) -> Sample {
        Sample { at_ms, used: TreeUsage { cpu_ms: at_ms / 2, memory_bytes: 4096 } }
    }

    /// The samples of a job that prints every tenth of a second, and how often they were written.
    fn sampled(millis: u64) -> (Samples, usize) {
        let (mut samples, mut writes) = (Samples::default(), 0);
        for at in (0..millis).step_by(100) {
            if samples.is_due(at) {
                samples.push(sample(at));
                writes += 1;
            }
        }
        (samples, writes)
    }

    #[test]
    fn samples_are_few_however_long_a_job_runs_and_cover_its_whole_life() {
        const DAY: u64 = 24 * 60 * 60 * 1000;
        assert_eq!(sampled(999).0, Samples::default(), "a short job has none");
        assert_eq!(sampled(3_100).0.list().len(), 3);
        let (samples, writes) = sampled(DAY);
        assert!((SAMPLES_MAX / 2..=SAMPLES_MAX).contains(&samples.list().len()), "{}", samples.list().len());
        assert!(writes < 500, "{writes} writes in a day");
        let times: Vec<_> = samples.list().iter().map(|sample| sample.at_ms).collect();
        assert!(
            times.is_sorted() && times[0] < DAY / 20 && times[times.len() - 1] > DAY * 9 / 10,
            "{times:?}"
        );
        let mut peak = Samples::default();
        for second in 1..=500 {
            let memory_bytes = if second == 3 { 9 * 4096 } else { 4096 };
            peak.push(Sample { at_ms: second * 1000, used: TreeUsage { cpu_ms: 0, memory_bytes } });
        }
        let most = peak.list().iter().map(|sample| sample.used.memory_bytes).max();
        assert_eq!(most, Some(9 * 4096), "the most is never forgotten");
        let widest = times.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
        assert!(widest <= DAY / 16, "no part of its life is left out: {times:?}");
    }

    #[test]
    fn a_file_of_samples_is_read_as_it_was_written_and_nonsense_is_left_out() {
        for millis in [0, 5_000, 500_000] {
            let samples = sampled(millis).0;
            assert_eq!(Samples::from_bytes(&samples.to_bytes()), samples.list());
        }
        let full = sampled(64_100).0.to_bytes();
        assert_eq!(Samples::from_bytes(&full).len(), SAMPLES_MAX);
        assert_eq!(Samples::from_bytes(&full[..100]).len(), 4, "a file that was cut");
        assert_eq!(Samples::from_bytes(&[full, full].concat()).len(), SAMPLES_MAX, "one that is too long");
        assert_eq!(Samples::from_bytes(b"not samples at all, but some text of a job").len(), 1);
        let mut twice = full;
        twice.copy_within(..SAMPLE_BYTES, SAMPLE_BYTES);
        assert_eq!(Samples::from_bytes(&twice).len(), 1, "time does not stand still");
    }
}
