//! [`Player`], who talks to the agent and complains if it does not go as the script says.

use std::sync::Arc;
use std::time::Duration;

use connectonion_proto::auth::{Address, Signer};
use connectonion_proto::client::{ClientEvent, Resume};
use connectonion_proto::frame::{ApprovalNeeded, AskUser, EventKind};
use connectonion_proto::net::{
    AgentOptions, Client, Events, Question, Run, RunEvent, connect_lazy,
};
use examples::cli::Failure;
use examples::screen::connectonion::Frames;
use examples::screen::{Colour, Screen};
use rpc_core::CloseReason;
use rpc_core::backoff::BackoffPolicy;
use rpc_core::net::{LinkEvent, LinkState};
use rpc_core::reconnect::ReconnectPolicy;

use crate::tour::patience::in_time;

/// How long until a lost line is there again: nobody would wait for the usual second here.
const BACK: Duration = Duration::from_millis(150);

/// Somebody who talks to the agent.
pub(crate) struct Player {
    pub(crate) agent: Client,
    events: Events,
    screen: Arc<Screen>,
    name: &'static str,
    host: Address,
    runs: usize,
    asked: usize,
    lost: usize,
}

impl Player {
    /// Somebody with a key of her own, and a new session.
    pub(crate) fn connect(
        name: &'static str,
        colour: Colour,
        url: &str,
        host: Address,
        screen: &Arc<Screen>,
    ) -> Result<Self, Failure> {
        Self::open(name, colour, url, (host, Resume::default()), screen)
    }

    /// Somebody with a key of her own, who asks for the session of another one.
    pub(crate) fn connect_as(
        other: &Self,
        name: &'static str,
        colour: Colour,
        url: &str,
        screen: &Arc<Screen>,
    ) -> Result<Self, Failure> {
        let mut resume = other.agent.session();
        // The id is what she has found out.
        (resume.session, resume.last_msg_id) = (None, None);
        Self::open(name, colour, url, (other.host, resume), screen)
    }

    fn open(
        name: &'static str,
        colour: Colour,
        url: &str,
        (host, resume): (Address, Resume),
        screen: &Arc<Screen>,
    ) -> Result<Self, Failure> {
        let mut seed = [0; 32];
        for (place, letter) in seed.iter_mut().zip(name.bytes()) {
            *place = letter;
        }
        let soon = ReconnectPolicy::new(BackoffPolicy::new(BACK, 1.0));
        let shown = screen.observer(name, colour, Frames);
        let mut options = AgentOptions::default();
        options.link.reconnect = soon;
        options.link.driver.observer = Some(shown);
        (options.host, options.resume) = (Some(host), resume);
        let key = Signer::from_seed(&seed);
        let (agent, events, connection) = connect_lazy(url, key, options).map_err(Failure::new)?;
        tokio::spawn(connection.run());
        Ok(Self {
            agent,
            events,
            screen: Arc::clone(screen),
            name,
            host,
            runs: 0,
            asked: 0,
            lost: 0,
        })
    }

    /// Waits until the agent wants to know an invite code.
    pub(crate) async fn is_asked_for_a_code(&mut self) -> Result<(), Failure> {
        let is_it = |event: &ClientEvent| matches!(event, ClientEvent::OnboardRequired(_));
        self.hears("the gate", is_it).await
    }

    pub(crate) async fn is_let_in(&mut self) -> Result<(), Failure> {
        let is_it = |event: &ClientEvent| matches!(event, ClientEvent::Connected(_));
        self.hears("to be let in", is_it).await
    }

    async fn hears(&mut self, what: &str, is_it: fn(&ClientEvent) -> bool) -> Result<(), Failure> {
        let heard = async {
            while let Some(event) = self.events.next_link().await {
                if matches!(&event, LinkEvent::Event(event) if is_it(event)) {
                    return Ok(());
                }
            }
            Err(Failure::new(format_args!("expected {what}")))
        };
        in_time(what, heard).await?
    }

    /// Says something.
    pub(crate) async fn says(&mut self, text: &str) -> Run {
        self.runs += 1;
        self.agent.input(text).await
    }

    /// Says something that needs nothing more of her, and returns the answer.
    pub(crate) async fn asks(&mut self, text: &str) -> Result<String, Failure> {
        let run = self.says(text).await;
        self.is_answered(run).await
    }

    /// The next event of a run.
    async fn next(&self, run: &mut Run, what: &str) -> Result<RunEvent, Failure> {
        match in_time(what, run.next()).await? {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => Err(Failure::new(error)),
            None => Err(Failure::new(format_args!("expected {what}"))),
        }
    }

    /// Waits for such a step.
    pub(crate) async fn sees(
        &self,
        run: &mut Run,
        is_it: fn(&EventKind) -> bool,
    ) -> Result<(), Failure> {
        loop {
            if let RunEvent::Step(step) = self.next(run, "a step of the agent").await?
                && is_it(&step.event.kind)
            {
                return Ok(());
            }
        }
    }

    /// Waits for the end of a tool, and returns what it says.
    pub(crate) async fn result(&self, run: &mut Run) -> Result<String, Failure> {
        loop {
            if let RunEvent::Step(step) = self.next(run, "the end of a tool").await?
                && let EventKind::ToolResult(result) = &step.event.kind
            {
                return Ok(result.result.as_deref().unwrap_or_default().to_owned());
            }
        }
    }

    /// Waits for a question.
    pub(crate) async fn is_asked(&mut self, run: &mut Run) -> Result<Question<AskUser>, Failure> {
        loop {
            if let RunEvent::AskUser(ask) = self.next(run, "a question").await? {
                self.asked += 1;
                return Ok(ask);
            }
        }
    }

    /// Waits until a tool wants leave.
    pub(crate) async fn has_to_approve(
        &mut self,
        run: &mut Run,
    ) -> Result<Question<ApprovalNeeded>, Failure> {
        loop {
            if let RunEvent::Approval(ask) = self.next(run, "a tool that waits").await? {
                self.asked += 1;
                return Ok(ask);
            }
        }
    }

    /// Waits for the answer.
    pub(crate) async fn is_answered(&self, mut run: Run) -> Result<String, Failure> {
        let output = in_time("an answer", run.output()).await?;
        Ok(output.map_err(Failure::new)?.result.to_string())
    }

    /// Cuts her line, as a network does.
    pub(crate) fn loses_the_line(&mut self) {
        self.lost += 1;
        self.screen
            .event(self.name, Colour::Bold, "the connection was lost");
        self.agent.cut();
    }

    /// Waits until the agent has closed the line with this code, and does not come back.
    pub(crate) async fn hears_goodbye(&mut self, code: u16) -> Result<(), Failure> {
        let heard = async {
            while let Some(event) = self.events.next_link().await {
                if let LinkEvent::State(LinkState::Lost { cause, .. }) = event
                    && matches!(&cause, CloseReason::Peer(frame) if frame.code == code)
                {
                    self.agent.close();
                    return Ok(());
                }
            }
            Err(Failure::new("expected the agent to say goodbye"))
        };
        in_time("the agent's goodbye", heard).await?
    }

    /// Adds what was done to these counts: runs, questions, lines lost.
    pub(crate) const fn counts(&self, sum: (usize, usize, usize)) -> (usize, usize, usize) {
        let (runs, asked, lost) = sum;
        (runs + self.runs, asked + self.asked, lost + self.lost)
    }
}
