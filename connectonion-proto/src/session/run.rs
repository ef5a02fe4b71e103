//! [`Run`]: one INPUT in progress, with the inputs and questions during it.

use std::collections::VecDeque;

use rpc_core::Str;

use super::prompt::Prompt;
use crate::frame::ErrorFrame;
use crate::limits::STALE_ANSWER;

/// The number of a run. No two runs of a registry have the same number, so an agent that works on
/// after its run was given up cannot affect the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunId(pub u64);

/// Why an answer belongs to no open question. Nothing changed. Sending the same answer again fails
/// again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AnswerError {
    /// The question was already answered, its run is over, or it never existed.
    #[error("that request is no longer waiting for an answer")]
    Stale,
    /// Several questions of this kind are open, and the answer names none.
    #[error("several questions are open: request_id is required")]
    RequestIdRequired,
}

impl AnswerError {
    /// Returns the `reason` of the ERROR.
    #[must_use]
    pub(crate) const fn reason(&self) -> &'static str {
        match self {
            Self::Stale => "stale",
            Self::RequestIdRequired => "request_id_required",
        }
    }

    /// Returns the ERROR that refuses the answer.
    pub(crate) fn to_frame(&self, request_id: Option<&str>) -> ErrorFrame {
        let mut frame = ErrorFrame::new(self.to_string()).with_code(STALE_ANSWER);
        frame.reason = Some(Str::from_static(self.reason()));
        frame.request_id = request_id.map(Str::from);
        frame
    }
}

/// Why a run refused an input. Nothing changed, and nothing must be acknowledged. Sending it again
/// after the run is safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RunRefused {
    /// The agent reads no more inputs before it finishes.
    #[error("the agent reads no more inputs in this run")]
    TooLate,
    /// Too many or too large inputs are already waiting.
    #[error("too many inputs wait for the agent")]
    Full,
    /// A question with this id is open, or too many are.
    #[error("no room for another question")]
    Question,
}

rpc_core::config! {
    /// The bounds on one run.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct RunLimits {
        /// The largest number of unread inputs. Default 64.
        pub max_inputs: usize = 64,
        /// The largest size of unread inputs in bytes. Default 16 MiB.
        pub max_input_bytes: usize = 16 * 1024 * 1024,
        /// The largest number of open questions. Default 64.
        pub max_requests: usize = 64,
    }
}

/// How a run continues after its agent has returned. Exhaustive: there is no other case.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Finished {
    /// It is over: the OUTPUT is sent once the result is stored.
    Done,
    /// These inputs were acknowledged but not read: the agent must answer them, too.
    More(Vec<Prompt>),
}

/// One INPUT in progress.
///
/// Every acknowledged input is read: an input that comes during the run waits until the agent takes
/// it at its next step, a run with waiting inputs does not finish, and a run whose agent takes no
/// more inputs refuses them *before* they are acknowledged.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    limits: RunLimits,
    inputs: VecDeque<Prompt>,
    input_bytes: usize,
    takes_inputs: bool,
    interrupted: bool,
    /// The open questions and the types of their answers, in the order of asking.
    pub(super) requests: Vec<(Str, &'static str)>,
}

impl Run {
    /// Creates a run that accepts inputs.
    #[must_use]
    pub(crate) const fn new(limits: RunLimits) -> Self {
        Self {
            limits,
            inputs: VecDeque::new(),
            input_bytes: 0,
            takes_inputs: true,
            interrupted: false,
            requests: Vec::new(),
        }
    }

    /// Adds an input of the user. Acknowledge it if it is accepted.
    ///
    /// # Errors
    /// [`RunRefused::TooLate`], [`RunRefused::Full`].
    pub(crate) fn push_input(&mut self, input: Prompt) -> Result<(), RunRefused> {
        if !self.takes_inputs {
            return Err(RunRefused::TooLate);
        }
        let bytes = self.input_bytes + input.size();
        if self.inputs.len() >= self.limits.max_inputs || bytes > self.limits.max_input_bytes {
            return Err(RunRefused::Full);
        }
        self.input_bytes = bytes;
        self.inputs.push_back(input);
        Ok(())
    }

    /// Takes the waiting inputs, oldest first: the agent reads them in its next step.
    pub(crate) fn take_inputs(&mut self) -> Vec<Prompt> {
        self.input_bytes = 0;
        self.inputs.drain(..).collect()
    }

    /// Ends the run, if no input waits.
    pub(crate) fn finish(&mut self) -> Finished {
        if !self.inputs.is_empty() {
            return Finished::More(self.take_inputs());
        }
        self.takes_inputs = false;
        self.requests.clear();
        Finished::Done
    }

    /// Asks the agent to stop after its current step.
    pub(crate) fn interrupt(&mut self) {
        self.interrupted = true;
    }

    /// Returns whether the agent is asked to stop, and clears the request.
    pub(crate) fn take_interrupt(&mut self) -> bool {
        std::mem::take(&mut self.interrupted)
    }

    /// Returns whether the agent is asked to stop.
    #[must_use]
    pub(crate) const fn is_interrupted(&self) -> bool {
        self.interrupted
    }

    /// Returns the waiting inputs, oldest first.
    pub(crate) fn inputs(&self) -> impl ExactSizeIterator<Item = &Prompt> {
        self.inputs.iter()
    }

    /// Opens a question; `id` is that of the event that asks. It stays open until it is answered,
    /// [withdrawn](Self::withdraw), or the run ends: a human may be thinking.
    ///
    /// # Errors
    /// [`RunRefused::Question`].
    pub(crate) fn ask(&mut self, answer: &'static str, id: &str) -> Result<(), RunRefused> {
        let known = self.requests.iter().any(|(open, _)| open == id);
        if known || self.requests.len() >= self.limits.max_requests {
            return Err(RunRefused::Question);
        }
        self.requests.push((id.into(), answer));
        Ok(())
    }

    /// Closes the question that an answer is for, and returns its id. An answer of an old client
    /// names no question: it is for the only one of its kind.
    ///
    /// # Errors
    /// [`AnswerError::Stale`], [`AnswerError::RequestIdRequired`].
    pub(crate) fn answer(
        &mut self,
        answer: &str,
        request_id: Option<&str>,
    ) -> Result<Str, AnswerError> {
        let is_it = |(id, asked): &(Str, &str)| {
            *asked == answer && request_id.is_none_or(|wanted| id == wanted)
        };
        let mut places = (0..).zip(&self.requests).filter(|(_, it)| is_it(it));
        let (place, _) = places.next().ok_or(AnswerError::Stale)?;
        if places.next().is_some() {
            return Err(AnswerError::RequestIdRequired);
        }
        Ok(self.requests.remove(place).0)
    }

    /// Withdraws a question. Returns `false` if it was not open.
    pub(crate) fn withdraw(&mut self, id: &str) -> bool {
        let before = self.requests.len();
        self.requests.retain(|(open, _)| open != id);
        self.requests.len() < before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> Run {
        Run::new(RunLimits::default())
    }

    fn prompts(inputs: &[Prompt]) -> Vec<&str> {
        inputs.iter().map(|input| &*input.text).collect()
    }

    #[test]
    fn inputs_are_read_once_and_in_order() {
        let mut run = run();
        run.push_input(Prompt::new("a")).unwrap();
        run.push_input(Prompt::new("b")).unwrap();
        assert_eq!(prompts(&run.take_inputs()), ["a", "b"]);
        assert!(run.take_inputs().is_empty());
        assert_eq!(run.finish(), Finished::Done);
    }

    #[test]
    fn after_the_end_no_input_is_taken() {
        let mut run = run();
        assert_eq!(run.finish(), Finished::Done);
        let refused = run.push_input(Prompt::new("a"));
        assert_eq!(refused, Err(RunRefused::TooLate));
    }

    #[test]
    fn waiting_inputs_are_bounded() {
        let limits = RunLimits {
            max_inputs: 2,
            max_input_bytes: 20,
            ..RunLimits::default()
        };
        let mut run = Run::new(limits);
        let long = Prompt::new("x".repeat(21));
        assert_eq!(run.push_input(long), Err(RunRefused::Full));
        let mut picture = Prompt::new("x");
        picture.images = vec!["x".repeat(20).into()];
        assert_eq!(run.push_input(picture), Err(RunRefused::Full));
        for _ in 0..2 {
            run.push_input(Prompt::new("x")).unwrap();
        }
        let third = Prompt::new("x");
        assert_eq!(run.push_input(third.clone()), Err(RunRefused::Full));
        assert_eq!(run.take_inputs().len(), 2);
        run.push_input(third).unwrap();
    }

    #[test]
    fn an_answer_is_for_the_question_that_it_names() {
        let mut run = run();
        run.ask("APPROVAL_RESPONSE", "a").unwrap();
        run.ask("APPROVAL_RESPONSE", "b").unwrap();
        assert_eq!(run.answer("APPROVAL_RESPONSE", Some("b")).unwrap(), "b");
        let again = run.answer("APPROVAL_RESPONSE", Some("b"));
        assert_eq!(again, Err(AnswerError::Stale));
        assert_eq!(run.answer("APPROVAL_RESPONSE", None).unwrap(), "a");
    }

    #[test]
    fn an_answer_of_another_kind_is_for_nothing() {
        let mut run = run();
        run.ask("APPROVAL_RESPONSE", "a").unwrap();
        for id in [None, Some("a")] {
            let answer = run.answer("ASK_USER_RESPONSE", id);
            assert_eq!(answer, Err(AnswerError::Stale));
        }
        assert_eq!(run.requests.len(), 1);
    }

    #[test]
    fn an_answer_that_could_be_for_two_questions_is_refused() {
        let mut run = run();
        run.ask("ASK_USER_RESPONSE", "a").unwrap();
        run.ask("ASK_USER_RESPONSE", "b").unwrap();
        let answer = run.answer("ASK_USER_RESPONSE", None);
        assert_eq!(answer, Err(AnswerError::RequestIdRequired));
        assert_eq!(run.requests.len(), 2);
    }

    #[test]
    fn questions_are_over_with_the_run_or_when_withdrawn() {
        let mut run = run();
        run.ask("ASK_USER_RESPONSE", "a").unwrap();
        assert_eq!(run.ask("ASK_USER_RESPONSE", "a"), Err(RunRefused::Question));
        assert!(run.withdraw("a") && !run.withdraw("a"));
        run.ask("PLAN_REVIEW_RESPONSE", "b").unwrap();
        assert_eq!(run.finish(), Finished::Done);
        let answer = run.answer("PLAN_REVIEW_RESPONSE", Some("b"));
        assert_eq!(answer, Err(AnswerError::Stale));
    }

    #[test]
    fn an_interrupt_is_told_once() {
        let mut run = run();
        assert!(!run.take_interrupt());
        run.interrupt();
        run.interrupt();
        assert!(run.take_interrupt() && !run.take_interrupt());
    }

    #[test]
    fn events_ask_for_what_answers_answer() {
        let ask = crate::frame::Answer::PlanReview("fine".into());
        let text = r#"{"type":"plan_review","plan_content":"x","id":"e","ts":1,"session_id":"s"}"#;
        let frame = crate::frame::ServerFrame::decode(text, &rpc_core::Limits::default()).unwrap();
        let crate::frame::ServerFrame::Event(event) = frame else {
            panic!("an event")
        };
        assert_eq!(event.kind.awaits(), Some(ask.tag()));
    }

    #[test]
    fn a_late_answer_is_refused_in_the_known_words() {
        let frame = AnswerError::Stale.to_frame(Some("q1"));
        assert_eq!(
            serde_json::to_string(&frame).unwrap(),
            concat!(
                r#"{"type":"ERROR","message":"that request is no longer waiting for an answer","#,
                r#""code":"STALE_ANSWER","reason":"stale","request_id":"q1"}"#
            )
        );
    }
}
