//! What one call, one connection and one frame cost when there are ten times and a hundred times as
//! many: nothing may grow faster than their number.

use super::calls::call_cost;
use super::memory::idle_memory;
use super::streams::{Stream, room_for, stream_cost};
use super::{OURS, least};
use crate::goals::{MEMORY_PER_TENFOLD, TIME_PER_TENFOLD};
use crate::report::Report;

/// How often a time is measured; the least counts.
const TIMES: usize = 3;
const WIDE: &str = "exoclaw: ping, wide limits";
/// How long each stream is, and how many frames there are at most.
const FRAMES: usize = 400;
const ALL_FRAMES: usize = 10_000_000;

pub(crate) fn table(report: &mut Report, quick: bool) {
    calls(report, quick);
    connections(report, quick);
}

fn calls(report: &mut Report, quick: bool) {
    let levels: &[usize] = if quick {
        &[1, 10, 100, 1_000, 10_000]
    } else {
        &[1, 10, 100, 1_000, 10_000, 100_000]
    };
    let mut times = Vec::new();
    let mut memory = Vec::new();
    let mut one = 0.0;
    for &level in levels {
        let calls = if level < 100 { 10_000 } else { 200_000 }.max(2 * level);
        let costs: Vec<_> = (0..TIMES).map(|_| call_cost(WIDE, level, calls)).collect();
        times.push((level, least(costs.iter().map(|cost| cost.cpu))));
        let peak = least(costs.iter().map(|cost| cost.peak));
        if level == 1 {
            one = peak;
        }
        // Of a few it disappears in what both ends take anyway.
        if level >= 10_000 {
            memory.push((level, (peak - one) / level as f64));
        }
    }
    let what = "CPU of both ends per call, calls in flight";
    rows(report, what, &times, "ns", TIME_PER_TENFOLD);
    let what = "most memory of both ends per call, calls in flight";
    rows(report, what, &memory, "B", MEMORY_PER_TENFOLD);
}

fn connections(report: &mut Report, quick: bool) {
    let levels: &[usize] = if quick {
        &[100, 1_000]
    } else {
        &[100, 1_000, 5_000, 10_000, 100_000]
    };
    let mut times = Vec::new();
    let mut idle = Vec::new();
    let mut streaming = Vec::new();
    for &level in levels {
        if let Err(why) = room_for(level) {
            report.missing("growth", &format!("{level} connections"), "", &why);
            break;
        }
        let frames = FRAMES.min(ALL_FRAMES / level);
        let costs = (0..TIMES).map(|_| stream_cost(OURS, level, frames));
        let costs: Vec<Stream> = costs.collect();
        times.push((level, least(costs.iter().map(|cost| cost.cpu))));
        streaming.push((level, least(costs.iter().map(|cost| cost.memory))));
        idle.push((level, idle_memory(OURS, level)));
    }
    let what = "server CPU per streamed frame, connections";
    rows(report, what, &times, "ns", TIME_PER_TENFOLD);
    let what = "memory of an idle connection, connections";
    rows(report, what, &idle, "B", MEMORY_PER_TENFOLD);
    let what = "most memory of a streaming connection, connections";
    rows(report, what, &streaming, "B", MEMORY_PER_TENFOLD);
}

/// A row for each level: what one costs, and by how much more than at the level before, as a factor
/// per tenfold. Then one from the cheapest level to the last, which is judged.
pub(crate) fn rows(
    report: &mut Report,
    what: &str,
    levels: &[(usize, f64)],
    unit: &str,
    most_per_tenfold: f64,
) {
    let mut before = None;
    let mut cheapest: Option<(usize, f64)> = None;
    for &(level, cost) in levels {
        let mut found = format!("{cost:.0} {unit}");
        if let Some(before) = before {
            found += &format!(
                ", {:.2} times per tenfold",
                per_tenfold(before, (level, cost))
            );
        }
        report.figure("growth", &format!("{what}: {level}"), found);
        before = Some((level, cost));
        if cheapest.is_none_or(|(_, least)| cost < least) {
            cheapest = before;
        }
    }
    let (Some(cheapest), Some(last)) = (cheapest, before) else {
        return;
    };
    let factor = if cheapest.0 == last.0 {
        1.0
    } else {
        per_tenfold(cheapest, last)
    };
    let what = format!("{what}: from {} to {}", cheapest.0, last.0);
    let bound = format!("≤ {most_per_tenfold} per tenfold");
    let found = format!("{factor:.2} times per tenfold");
    report.bound("growth", &what, found, bound, factor <= most_per_tenfold);
}

/// By how much one costs more where there are more, for each ten times as many.
fn per_tenfold(less: (usize, f64), more: (usize, f64)) -> f64 {
    let tenfolds = (more.0 as f64 / less.0 as f64).log10();
    (more.1 / less.1).powf(1.0 / tenfolds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_that_grows_with_the_number_is_ten_per_tenfold() {
        assert!((per_tenfold((10, 1.0), (1_000, 100.0)) - 10.0).abs() < 1e-9);
        assert!((per_tenfold((10, 2.0), (1_000, 2.0)) - 1.0).abs() < 1e-9);
    }
}
