//! Reads answers in pieces of any size.

use crate::model::answer::AnswerReader;
use crate::model::provider::Provider;
use crate::model::{Assembler, Delta, ModelError};

/// Reads an answer in these chunks.
pub(crate) fn read_chunks<'a>(
    provider: Provider,
    chunks: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<Delta>, Result<(), ModelError>) {
    let offered = ["dice", "time"].map(str::to_owned);
    let mut reader = AnswerReader::new(provider, "").with_tools(&offered);
    let mut deltas = Vec::new();
    let mut outcome = Ok(());
    for chunk in chunks {
        outcome = reader.push(chunk);
        if outcome.is_err() {
            reader.release();
        }
        deltas.extend(std::iter::from_fn(|| reader.pop()));
        if outcome.is_err() {
            return (deltas, outcome);
        }
    }
    if outcome.is_ok() {
        outcome = reader.end();
        reader.release();
    }
    deltas.extend(std::iter::from_fn(|| reader.pop()));
    (deltas, outcome)
}

/// Reads an answer in chunks of this size.
pub(crate) fn read(
    provider: Provider,
    answer: &[u8],
    size: usize,
) -> (Vec<Delta>, Result<(), ModelError>) {
    read_chunks(provider, answer.chunks(size))
}

/// Cuts the answer at these positions.
pub(crate) fn cut<'a>(answer: &'a [u8], places: &[usize]) -> Vec<&'a [u8]> {
    let mut places: Vec<_> = places.iter().map(|at| at % (answer.len() + 1)).collect();
    places.push(answer.len());
    places.sort_unstable();
    let mut from = 0;
    let cut = |to| answer.get(std::mem::replace(&mut from, to)..to);
    places.into_iter().filter_map(cut).collect()
}

pub(crate) fn joined(deltas: &[Delta]) -> Assembler {
    let mut assembler = Assembler::default();
    for delta in deltas {
        assembler.push(delta).unwrap();
    }
    assembler
}
