//! What a job used over its life, in one line: a small picture of its CPU time and one of its memory.

use std::time::Duration;

use hearback::core::{Sample, TreeUsage};
use hearback::{Hearback, Job};

use crate::table;

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// How many columns each picture takes at most.
const COLUMNS: usize = 10;
/// A picture of less shows nothing.
const SAMPLES_MIN: usize = 2;

/// What a job has used until now, or in all.
pub(crate) fn total(hearback: &Hearback, job: &Job) -> Option<String> {
    let text = |cpu_ms, memory, when| {
        let cpu = table::duration(Duration::from_millis(cpu_ms));
        format!("{cpu} of CPU, {} {when}", table::bytes(memory))
    };
    match job.view.usage {
        Some(usage) => {
            // The kernel tells the most of one process; samples tell that of all of them, if they met it.
            let seen = hearback.samples(job).iter().map(|sample| sample.used.memory_bytes).max();
            let most = usage.peak_memory_bytes.max(seen.unwrap_or(0));
            Some(text(usage.user_ms + usage.system_ms, most, "at most"))
        }
        None => {
            let now = hearback.samples(job).pop().filter(|_| !job.view.state.has_ended())?;
            Some(text(now.used.cpu_ms, now.used.memory_bytes, "now"))
        }
    }
}

/// The pictures; none of a job of which there are too few samples.
pub(crate) fn pictures(hearback: &Hearback, job: &Job) -> Option<String> {
    let mut samples = hearback.samples(job);
    // The end tells all CPU time, but not how much memory there was then.
    if let (Some(usage), Some(ran_ms), Some(last)) = (job.view.usage, job.view.ran_ms, samples.last())
        && ran_ms > last.at_ms
        && samples.len() >= SAMPLES_MIN
    {
        let used = TreeUsage { cpu_ms: usage.user_ms + usage.system_ms, ..last.used };
        samples.push(Sample { at_ms: ran_ms, used });
    }
    draw(&samples)
}

fn draw(samples: &[Sample]) -> Option<String> {
    if samples.len() < SAMPLES_MIN {
        return None;
    }
    let columns = samples.len().min(COLUMNS);
    let end = samples.last()?.at_ms as f64;
    let edge = |column: usize| end * column as f64 / columns as f64;
    let cpu: Vec<f64> = (0..columns)
        .map(|n| {
            let used = cpu_at(samples, edge(n + 1)) - cpu_at(samples, edge(n));
            100.0 * used / (edge(n + 1) - edge(n))
        })
        .collect();
    let memory: Vec<f64> = (0..columns).map(|n| memory_within(samples, edge(n), edge(n + 1))).collect();
    let most = samples.iter().map(|sample| sample.used.memory_bytes).max()?;
    let busiest = cpu.iter().copied().fold(0.0, f64::max);
    let busiest = if busiest < 0.5 { "less than 1".to_owned() } else { format!("{busiest:.0}") };
    Some(format!("CPU {} to {busiest} %, memory {} to {}", bars(&cpu), bars(&memory), table::bytes(most)))
}

/// How much CPU time had been used by then. Between two samples it grows evenly.
fn cpu_at(samples: &[Sample], at: f64) -> f64 {
    let (mut from, mut used) = (0.0, 0.0);
    for sample in samples {
        // What is used is never given back; a process that ended unseen may have taken its time with it.
        let (to, next) = (sample.at_ms as f64, (sample.used.cpu_ms as f64).max(used));
        if to >= at {
            return used + (next - used) * (at - from) / (to - from);
        }
        (from, used) = (to, next);
    }
    used
}

/// The most memory in a span; in one without a sample, that of the sample before it, or of the first.
fn memory_within(samples: &[Sample], from: f64, to: f64) -> f64 {
    let memory = |sample: &Sample| sample.used.memory_bytes as f64;
    let is_in = |sample: &&Sample| sample.at_ms as f64 > from && sample.at_ms as f64 <= to;
    let most = samples.iter().filter(is_in).map(memory).fold(0.0, f64::max);
    if most > 0.0 {
        return most;
    }
    let before = samples.iter().rfind(|sample| sample.at_ms as f64 <= from).or(samples.first());
    before.map_or(0.0, memory)
}

fn bars(values: &[f64]) -> String {
    let most = values.iter().copied().fold(0.0, f64::max);
    let bar = |value: &f64| {
        let share = if most > 0.0 { value / most } else { 0.0 };
        BARS[((share * BARS.len() as f64).ceil() as usize).clamp(1, BARS.len()) - 1]
    };
    values.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1024 * 1024;

    fn sample(at_ms: u64, cpu_ms: u64, memory: u64) -> Sample {
        Sample { at_ms, used: TreeUsage { cpu_ms, memory_bytes: memory * MIB } }
    }

    #[test]
    fn a_picture_shows_when_there_was_work_and_how_memory_grew() {
        // Idle for four seconds, then two processors for four.
        let samples: Vec<_> = (1..=8)
            .map(|second: u64| sample(second * 1000, second.saturating_sub(4) * 2000, 10 * second))
            .collect();
        assert_eq!(draw(&samples).unwrap(), "CPU ▁▁▁▁████ to 200 %, memory ▁▂▃▄▅▆▇█ to 80.0 MiB");
        // Output, and so samples, came only at the beginning and at the end.
        let sparse = [sample(1000, 1000, 10), sample(2000, 2000, 40), sample(10_000, 2000, 20)];
        assert_eq!(draw(&sparse).unwrap(), "CPU █▁▁ to 60 %, memory ██▄ to 40.0 MiB");
    }

    #[test]
    fn a_picture_is_small_and_of_too_few_samples_there_is_none() {
        let many: Vec<_> = (1..=64).map(|n| sample(n * 60_000, n, 1024 * 1024)).collect();
        let text = draw(&many).unwrap();
        assert!(text.chars().count() + "      used  ".len() <= 80, "{text}");
        assert!(text.contains("to less than 1 %"), "{text}");
        assert_eq!(draw(&[]), None);
        assert_eq!(draw(&[sample(5, 5, 5)]), None);
        assert!(
            draw(&[sample(1, 9, 0), sample(2, 3, 0)]).unwrap().contains("0 bytes"),
            "time is not given back"
        );
    }
}
