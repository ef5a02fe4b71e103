//! The loss of a line at every frame, in both directions: [`at_every_frame`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use rpc_core::net::mem::{self, Fate, MemDialer, MemListener, MemTransport, Tap};
use rpc_core::net::{DialError, Dialer};
use rpc_core::testing::Side;

use super::fail;

/// A scenario that is not over after so much virtual time hangs.
const PATIENCE: Duration = Duration::from_secs(4 * 3600);
/// Frames that an end has sent and the other one has not read.
const CAPACITY: usize = 64;

/// How a line is lost at a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum How {
    /// The frame arrives and is the last one; what the other side has sent meanwhile is lost.
    CutBehind,
    /// The frame is lost, and the line with it.
    CutBefore,
    /// The line stays, and from this frame on nothing of this direction arrives.
    OneWay,
    /// The line stays, and from this frame on nothing arrives in either direction.
    BlackHole,
}

const ALL: [How; 4] = [How::CutBehind, How::CutBefore, How::OneWay, How::BlackHole];

/// Where and how a line is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Who sends the frame.
    pub sender: Side,
    /// Which of its frames, from 0, over all lines of the scenario; pings, pongs and Closes count.
    pub frame: usize,
    /// How.
    pub how: How,
}

#[derive(Debug, Default)]
struct Plan {
    loss: Option<Loss>,
    sent: [AtomicUsize; 2],
}

/// Dials lines in memory, of which one is lost.
#[derive(Clone, Debug)]
pub struct LossyDialer {
    inner: MemDialer,
    plan: Arc<Plan>,
}

impl Dialer for LossyDialer {
    type Transport = MemTransport;

    async fn dial(&self) -> Result<MemTransport, DialError> {
        let line = self.inner.dial().await?;
        let is_silent = Arc::new(AtomicBool::new(false));
        let tap = |side| tap(Arc::clone(&self.plan), side, Arc::clone(&is_silent));
        line.tap(tap(Side::Client), tap(Side::Server));
        Ok(line)
    }
}

/// Loses what the plan says of one direction of one line.
fn tap(plan: Arc<Plan>, side: Side, is_silent: Arc<AtomicBool>) -> Tap {
    let mut is_deaf = false;
    Box::new(move |_| {
        let [client, server] = &plan.sent;
        let sent = match side {
            Side::Client => client,
            Side::Server => server,
        };
        let frame = sent.fetch_add(1, Ordering::Relaxed);
        let is_it = |loss: &Loss| loss.sender == side && loss.frame == frame;
        match plan.loss.filter(is_it).map(|loss| loss.how) {
            Some(How::CutBehind) => return Fate::ArrivesLast,
            Some(How::CutBefore) => return Fate::LostWithLine,
            Some(How::OneWay) => is_deaf = true,
            Some(How::BlackHole) => is_silent.store(true, Ordering::Relaxed),
            None => {}
        }
        if is_deaf || is_silent.load(Ordering::Relaxed) {
            Fate::Lost
        } else {
            Fate::Arrives
        }
    })
}

/// The line of a scenario.
#[derive(Debug)]
pub struct Lossy {
    /// For the client.
    pub dialer: LossyDialer,
    /// For the server: it gets every line that the client dials.
    pub listener: MemListener,
    /// What is lost; `None` in the run that finds out how many frames there are, which has to
    /// succeed.
    pub loss: Option<Loss>,
}

/// Runs a scenario once as it is, and then once for each frame that was sent in it, in both
/// directions, and each way to lose the line there. The scenario makes a client and a server, and
/// checks that everything ends as it has to. It needs a paused clock, because what it waits for are
/// timeouts.
///
/// # Panics
/// If the scenario does, or if it hangs.
pub async fn at_every_frame<F>(scenario: impl Fn(Lossy) -> F)
where
    F: Future<Output = ()>,
{
    let [client, server] = run(&scenario, None).await;
    if client.min(server) == 0 {
        fail("a scenario in which nothing is said");
    }
    for (sender, frames) in [(Side::Client, client), (Side::Server, server)] {
        for frame in 0..frames {
            for how in ALL {
                let loss = Loss { sender, frame, how };
                run(&scenario, Some(loss)).await;
            }
        }
    }
}

/// Runs a scenario, and says how many frames the client and the server have sent.
async fn run<F>(scenario: &impl Fn(Lossy) -> F, loss: Option<Loss>) -> [usize; 2]
where
    F: Future<Output = ()>,
{
    let (inner, listener) = mem::listen(CAPACITY);
    let sent = <[AtomicUsize; 2]>::default();
    let plan = Arc::new(Plan { loss, sent });
    let dialer = LossyDialer {
        inner,
        plan: Arc::clone(&plan),
    };
    let blame = Blame(loss);
    let lossy = Lossy {
        dialer,
        listener,
        loss,
    };
    let ended = tokio::time::timeout(PATIENCE, scenario(lossy)).await;
    if ended.is_err() {
        fail("the scenario hangs");
    }
    drop(blame);
    let [client, server] = &plan.sent;
    [client, server].map(|sent| sent.load(Ordering::Relaxed))
}

/// Says which loss it was when a test fails.
struct Blame(Option<Loss>);

impl Drop for Blame {
    #[expect(clippy::print_stderr, reason = "what a failing test has to say")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("lost: {:?}", self.0);
        }
    }
}
