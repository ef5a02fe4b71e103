//! [`Meter`]: the tokens of one run, even if it breaks off.

/// One call of the model.
#[derive(Clone, Copy, Debug, Default)]
struct Call {
    prompt_bytes: u64,
    /// The tokens of the latest report, input and output together.
    reported: Option<u64>,
    /// Bytes streamed since the latest report.
    streamed_bytes: u64,
}

impl Call {
    const fn tokens(self) -> u64 {
        let known = match self.reported {
            Some(tokens) => tokens,
            None => self.prompt_bytes.div_ceil(4),
        };
        known.saturating_add(self.streamed_bytes.div_ceil(4))
    }
}

/// A counter of the tokens of one run: one call of the model, or several with tools between them.
///
/// Tokens that the model reports count as reported. The rest is estimated from its size, so that a
/// run that breaks off because the client left or the model failed counts too: the prompt at a
/// quarter of its bytes if the call had no report, and the bytes streamed since the latest report,
/// if any, at a quarter, both rounded up. The latest report of a call replaces earlier ones,
/// because reports are running totals. Calls are added up.
///
/// ```
/// use exoclaw_proto::budget::Meter;
///
/// let mut meter = Meter::new();
/// meter.call_started(400);
/// meter.reported(110, 1);
/// meter.streamed(30);
/// meter.reported(110, 9); // replaces the first report, and covers what was streamed
/// meter.call_started(500);
/// meter.streamed(10); // and here it broke off: 125 and 3
/// assert_eq!(meter.settle(), 119 + 128);
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "a run that is not settled is not counted"]
pub struct Meter {
    /// The tokens of ended calls that were not taken.
    ended: u64,
    call: Option<Call>,
}

impl Meter {
    /// Creates the meter of a new run.
    pub const fn new() -> Self {
        Self {
            ended: 0,
            call: None,
        }
    }

    /// Records the start of a call with a prompt of this size. Ends the previous call.
    pub fn call_started(&mut self, prompt_bytes: usize) {
        self.end_call();
        self.call = Some(Call {
            prompt_bytes: prompt_bytes as u64,
            ..Call::default()
        });
    }

    /// Records bytes that the model has sent: text, or the arguments of a tool.
    pub fn streamed(&mut self, bytes: usize) {
        let call = self.call.get_or_insert_default();
        call.streamed_bytes = call.streamed_bytes.saturating_add(bytes as u64);
    }

    /// Records the model's report of the tokens that this call has used so far. Replaces earlier
    /// reports of the call.
    pub fn reported(&mut self, input_tokens: u64, output_tokens: u64) {
        let call = self.call.get_or_insert_default();
        call.reported = Some(input_tokens.saturating_add(output_tokens));
        call.streamed_bytes = 0;
    }

    /// Ends the run and returns its tokens.
    #[must_use = "a run that is not recorded is not counted"]
    pub fn settle(mut self) -> u64 {
        self.end_call();
        self.ended
    }

    fn end_call(&mut self) {
        if let Some(call) = self.call.take() {
            self.ended = self.ended.saturating_add(call.tokens());
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_run_without_a_call_uses_nothing() {
        assert_eq!(Meter::new().settle(), 0);
    }

    #[test]
    fn reports_of_several_calls_are_added_up() {
        let mut meter = Meter::new();
        for (input, output) in [(100, 20), (150, 30)] {
            meter.call_started(4_000);
            meter.streamed(999);
            meter.reported(input, output);
        }
        assert_eq!(meter.settle(), 300);
    }

    #[test]
    fn the_latest_report_of_a_call_counts() {
        let mut meter = Meter::new();
        meter.call_started(4_000);
        meter.reported(100, 20);
        meter.reported(100, 5);
        assert_eq!(meter.settle(), 105);
    }

    #[test]
    fn a_call_that_breaks_off_is_estimated_from_its_size() {
        let mut meter = Meter::new();
        meter.call_started(5);
        meter.streamed(3);
        meter.streamed(2);
        assert_eq!(meter.settle(), 2 + 2);
        let mut unanswered = Meter::new();
        unanswered.call_started(8);
        assert_eq!(unanswered.settle(), 2);
    }

    #[test]
    fn what_is_streamed_after_an_early_report_is_estimated() {
        let mut meter = Meter::new();
        meter.call_started(4_000);
        meter.reported(100, 0);
        meter.streamed(401);
        assert_eq!(meter.settle(), 100 + 101);
    }

    #[test]
    fn what_comes_before_a_call_is_a_call_of_its_own() {
        let mut meter = Meter::new();
        meter.streamed(4);
        meter.call_started(4);
        assert_eq!(meter.settle(), 2);
        let mut reported = Meter::new();
        reported.reported(3, 4);
        assert_eq!(reported.settle(), 7);
    }

    #[test]
    fn absurd_reports_do_not_overflow() {
        let mut meter = Meter::new();
        meter.reported(u64::MAX, u64::MAX);
        meter.streamed(usize::MAX);
        meter.streamed(usize::MAX);
        meter.call_started(usize::MAX);
        assert_eq!(meter.settle(), u64::MAX);
    }

    proptest! {
        #[test]
        fn it_agrees_with_counting_each_call_alone(
            calls in prop::collection::vec(
                (0_usize..50, prop::collection::vec(prop_oneof![
                    (0_usize..50).prop_map(Ok),
                    (0_u64..50, 0_u64..50).prop_map(Err),
                ], 0..8)),
                0..6,
            ),
        ) {
            let (mut meter, mut expected) = (Meter::new(), 0);
            for (prompt, steps) in calls {
                meter.call_started(prompt);
                for step in &steps {
                    match *step {
                        Ok(bytes) => meter.streamed(bytes),
                        Err((input, output)) => meter.reported(input, output),
                    }
                }
                let report = steps.iter().rposition(Result::is_err);
                let uncovered: usize =
                    steps[report.map_or(0, |at| at + 1)..].iter().flatten().sum();
                expected += match report.map(|at| steps[at]) {
                    Some(Err((input, output))) => input + output,
                    _ => prompt.div_ceil(4) as u64,
                };
                expected += uncovered.div_ceil(4) as u64;
            }
            prop_assert_eq!(meter.settle(), expected);
        }
    }
}
