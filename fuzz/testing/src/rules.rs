//! [`conforms`]: the rules of [`Machine`] that texts and time alone can break.

use std::time::Instant;

use rpc_core::Machine;
use rpc_core::testing::conformance;

/// Checks a machine in some state with the nasty texts of all protocols and these of its own.
///
/// # Panics
/// If it breaks a rule.
pub fn conforms(mut machine: impl Machine, texts: &[&str], now: Instant) {
    let nasty = conformance::nasty_texts();
    let texts: Vec<&str> = nasty
        .iter()
        .map(|it| &**it)
        .chain(texts.iter().copied())
        .collect();
    while machine.poll_event().is_some() {}
    conformance::early_timeout_is_a_no_op(&mut machine, now);
    conformance::any_text_is_survived(&mut machine, &texts, now);
    conformance::timeouts_make_progress(&mut machine, 10);
    conformance::closed_is_inert(&mut machine, &texts, now);
}
