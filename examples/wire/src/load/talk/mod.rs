//! [`Scenario`]: what is said to a server, and what of its answers completes a call.

mod acolyte;
mod connectonion;
mod exoclaw;
mod smarthole;
mod snek;

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use acolyte_proto::auth::ApiKey;
use acolyte_proto::client::ClientConfig;
use acolyte_proto::net::SseClient;
use connectonion_proto::auth::{Address, Signer};
use rpc_core::encode::encode;
use rpc_core::net::ws::WsDialer;
use rpc_core::{Limits, Secret, Text};
use serde::Serialize;

use super::schedule::Call;
use crate::Protocol;
use crate::cli::Line;

/// What the calls of a run are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// The cheapest question and its answer: `get_user` (snek), `ping` (exoclaw), `SESSION_STATUS`
    /// (connectonion), `status.get` (acolyte).
    Echo,
    /// A chat. snek: a message that every connection gets; smarthole: a text posted to the router, until
    /// its client gets it; others: a prompt until its whole answer.
    Chat,
    /// A question for a task (acolyte).
    Task,
    /// A connection of its own for each call, until the server takes calls on it: dialled, and logged in,
    /// registered or signed. No more than --connections at a time.
    Connect,
}

impl Kind {
    /// Returns the name, as it is written in commands.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Echo => "echo",
            Self::Chat => "chat",
            Self::Task => "task",
            Self::Connect => "connect",
        }
    }
}

/// Who calls, and with what.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    /// The login name at a Snek server.
    pub username: String,
    /// The password at a Snek server.
    pub password: Secret<String>,
    /// The token of an Exoclaw gateway, or the key of an Acolyte server.
    pub token: Option<Secret<String>>,
    /// The key that signs at ConnectOnion hosts. Without it, each connection has a new one.
    pub key: Option<Signer>,
    /// The address of a ConnectOnion host, for signatures.
    pub host: Option<Address>,
    /// The channel of a Snek server, by uid. Default: the first one.
    pub channel: Option<String>,
    /// The model of an Acolyte server. Default: the server's.
    pub model: Option<String>,
    /// The text of a chat.
    pub prompt: String,
    /// Whether secrets may go to another machine without encryption.
    pub insecure: bool,
}

/// A protocol, the calls to make, and who makes them.
#[derive(Clone, Debug)]
pub struct Scenario {
    protocol: Protocol,
    kind: Kind,
    caller: Arc<Caller>,
    /// The client for calls over HTTP.
    sse: Option<SseClient>,
    /// Differs from run to run, so that nothing of another run passes for an answer.
    run: u64,
}

impl Scenario {
    /// Creates a scenario. Without a kind, it is the one that the protocol has first.
    ///
    /// # Errors
    /// The protocol has no calls of this kind; says which it has.
    pub fn new(protocol: Protocol, kind: Option<Kind>, caller: Caller) -> Result<Self, String> {
        let kinds: &[Kind] = match protocol {
            Protocol::Snek | Protocol::Exoclaw | Protocol::ConnectOnion => {
                &[Kind::Echo, Kind::Chat, Kind::Connect]
            }
            Protocol::SmartHole => &[Kind::Chat, Kind::Connect],
            Protocol::Acolyte => &[Kind::Echo, Kind::Chat, Kind::Task, Kind::Connect],
        };
        let first = kinds.first().copied().unwrap_or(Kind::Chat);
        let kind = kind.unwrap_or(first);
        if !kinds.contains(&kind) {
            let names: Vec<_> = kinds.iter().map(|kind| kind.name()).collect();
            return Err(format!(
                "{} has no scenario '{}'; it has: {}",
                protocol.name(),
                kind.name(),
                names.join(", ")
            ));
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let run = now.map_or(0, |now| now.as_nanos() & u128::from(u64::MAX));
        Ok(Self {
            protocol,
            kind,
            caller: Arc::new(caller),
            sse: None,
            run: u64::try_from(run).unwrap_or_default(),
        })
    }

    /// Makes the calls over HTTP with server-sent events, each over a connection of its own, instead of
    /// WebSockets.
    ///
    /// # Errors
    /// The protocol or the kind has no such calls, or why the URL cannot be used.
    pub fn over_sse(mut self, url: &str, line: &Line) -> Result<Self, String> {
        if self.protocol != Protocol::Acolyte || !matches!(self.kind, Kind::Echo | Kind::Chat) {
            return Err("only acolyte has server-sent events, for 'echo' and 'chat'".to_owned());
        }
        let client = SseClient::new(url, self.acolyte()?).map_err(|error| error.to_string())?;
        self.sse = Some(line.sse(client));
        Ok(self)
    }

    pub(super) const fn sse(&self) -> Option<&SseClient> {
        self.sse.as_ref()
    }

    pub(super) fn model(&self) -> Option<&str> {
        self.caller.model.as_deref()
    }

    pub(super) fn prompt(&self) -> &str {
        &self.caller.prompt
    }

    /// Returns the name for reports: that of the kind, and of the way if there are several.
    #[must_use]
    pub fn name(&self) -> String {
        let way = self.sse.as_ref().map_or("", |_| " over SSE");
        format!("{}{way}", self.kind.name())
    }

    fn acolyte(&self) -> Result<ClientConfig, String> {
        let mut config = ClientConfig {
            insecure_key: self.caller.insecure,
            ..ClientConfig::default()
        };
        if let Some(token) = &self.caller.token {
            let key = ApiKey::new(token.clone()).map_err(|error| error.to_string())?;
            config.api_key = Some(key);
        }
        Ok(config)
    }

    /// Returns the protocol.
    #[must_use]
    pub const fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Returns the kind of the calls.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns what is measured beside the answers, if anything is.
    #[must_use]
    pub const fn mark(&self) -> Option<&'static str> {
        match (self.protocol, self.kind) {
            (Protocol::Snek, Kind::Chat) => Some("each member has it"),
            (Protocol::SmartHole, _) | (_, Kind::Echo | Kind::Task | Kind::Connect) => None,
            (_, Kind::Chat) => Some("first text"),
        }
    }

    /// Returns how many calls may be in flight on a connection unless the user says something else: one
    /// for chats, whose answers come one after the other.
    #[must_use]
    pub const fn in_flight(&self) -> usize {
        match (self.protocol, self.kind) {
            (_, Kind::Connect) => 1,
            (Protocol::Snek | Protocol::SmartHole, _) | (_, Kind::Echo | Kind::Task) => 256,
            (_, Kind::Chat) => 1,
        }
    }

    /// Creates the way to the server: as the protocol's own client has it, with its path and its rules for
    /// what may go unencrypted.
    ///
    /// # Errors
    /// Why the URL cannot be used.
    pub fn dialer(&self, url: &str) -> Result<WsDialer, String> {
        let caller = &self.caller;
        let insecure = caller.insecure;
        let dialer = match self.protocol {
            Protocol::Snek => {
                use snek_proto::client::ClientConfig;
                let config = ClientConfig {
                    insecure_password: insecure,
                    ..ClientConfig::new("", "")
                };
                snek_proto::net::dialer(url, &config).map_err(|error| error.to_string())
            }
            Protocol::Exoclaw => {
                use exoclaw_proto::client::ClientConfig;
                let config = ClientConfig {
                    token: caller.token.clone(),
                    insecure_token: insecure,
                    ..ClientConfig::default()
                };
                exoclaw_proto::net::dialer(url, &config).map_err(|error| error.to_string())
            }
            Protocol::SmartHole => {
                use smarthole_proto::client::ClientConfig;
                let me = smarthole::registration("load");
                let config = ClientConfig::new(me).map_err(|error| error.to_string())?;
                smarthole_proto::net::dialer(url, &config).map_err(|error| error.to_string())
            }
            Protocol::ConnectOnion => {
                let mut options = connectonion_proto::net::AgentOptions::default();
                options.insecure_prompts |= insecure;
                connectonion_proto::net::dialer(url, &options).map_err(|error| error.to_string())
            }
            Protocol::Acolyte => {
                let config = self.acolyte()?;
                acolyte_proto::net::dialer(url, &config).map_err(|error| error.to_string())
            }
        }?;
        Ok(dialer)
    }

    /// Creates what one connection says.
    ///
    /// No two connections at a time have the same number.
    pub(super) fn talk(&self, connection: u64) -> Box<dyn Client> {
        let Self {
            kind, caller, run, ..
        } = self;
        let caller = Arc::clone(caller);
        match self.protocol {
            Protocol::Snek => Box::new(snek::Client::new(caller, *kind, *run, connection)),
            Protocol::Exoclaw => Box::new(exoclaw::Client::new(caller, *kind, *run, connection)),
            Protocol::SmartHole => Box::new(smarthole::Client::new(*run, connection)),
            Protocol::ConnectOnion => {
                Box::new(connectonion::Client::new(caller, *kind, *run, connection))
            }
            Protocol::Acolyte => Box::new(acolyte::Client::new(caller, *kind)),
        }
    }
}

/// What a connection hears, or says by itself.
#[derive(Debug)]
pub(super) enum ClientEvent {
    /// The connection takes calls now.
    Ready,
    /// The server does not want this caller.
    Refused(String),
    /// This has to be said.
    Say(Text),
    /// A call is answered.
    Done(u64),
    /// The first part of an answer.
    First(u64),
    /// A call is answered with an error.
    Failed(u64, String),
    /// What another connection's call, which was due then, has caused here: nanoseconds of the run.
    Seen(u64),
    /// Not a frame of the protocol.
    Unreadable,
}

/// A request of a call.
#[derive(Debug)]
pub(super) enum Request {
    /// On the WebSocket.
    Frame(Text),
    /// A body posted over HTTP to the same host.
    Post {
        /// The path.
        path: &'static str,
        /// The text.
        body: String,
    },
}

/// The client's side of one connection, without IO. A new one for each connection.
pub(super) trait Client: Send {
    /// Begins: says what a client says first.
    fn open(&mut self, heard: &mut Vec<ClientEvent>);

    /// Returns the request of a call. `None` if it cannot be written.
    fn call(&mut self, call: Call) -> Option<Request>;

    /// Takes a text of the server.
    fn hear(&mut self, text: &str, heard: &mut Vec<ClientEvent>);

    /// Drops a call whose caller has given up. Returns whether the connection can be used on.
    fn forget(&mut self, _number: u64) -> bool {
        true
    }
}

fn limits() -> Limits {
    Limits::default()
}

fn say(frame: &impl Serialize, heard: &mut Vec<ClientEvent>) {
    match encode(frame) {
        Ok(text) => heard.push(ClientEvent::Say(text)),
        Err(error) => heard.push(ClientEvent::Refused(error.to_string())),
    }
}

/// The name of an error that a server answers with.
pub(super) fn error_answer(words: &str) -> String {
    format!("error answer: {words}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn call(number: u64) -> Call {
        Call {
            number,
            due: Duration::from_nanos(77),
        }
    }

    fn caller() -> Caller {
        Caller {
            username: "ann".to_owned(),
            prompt: "hello".to_owned(),
            ..Caller::default()
        }
    }

    fn talk(protocol: Protocol, kind: Kind) -> (Scenario, Box<dyn Client>) {
        let scenario = Scenario::new(protocol, Some(kind), caller()).unwrap();
        let talk = scenario.talk(3);
        (scenario, talk)
    }

    fn texts(heard: &[ClientEvent]) -> Vec<&str> {
        let said = heard.iter().filter_map(|it| match it {
            ClientEvent::Say(text) => Some(text.as_str()),
            _ => None,
        });
        said.collect()
    }

    fn frame(talk: &mut dyn Client, number: u64) -> String {
        match talk.call(call(number)) {
            Some(Request::Frame(text)) => text.as_str().to_owned(),
            other => panic!("{other:?}"),
        }
    }

    /// What was received, in short.
    fn hear(talk: &mut dyn Client, text: &str) -> String {
        let mut heard = Vec::new();
        talk.hear(text, &mut heard);
        let words = heard.iter().map(|it| match it {
            ClientEvent::Say(text) => format!("say {}", text.as_str()),
            other => format!("{other:?}"),
        });
        words.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_scenario_that_a_protocol_does_not_have_is_refused_with_those_it_has() {
        let error = Scenario::new(Protocol::Snek, Some(Kind::Task), caller()).unwrap_err();
        assert_eq!(
            error,
            "snek has no scenario 'task'; it has: echo, chat, connect"
        );
        let scenario = Scenario::new(Protocol::SmartHole, None, caller()).unwrap();
        assert_eq!(scenario.kind(), Kind::Chat);
    }

    #[test]
    fn snek_logs_in_and_asks() {
        let (_, mut talk) = talk(Protocol::Snek, Kind::Echo);
        let mut heard = Vec::new();
        talk.open(&mut heard);
        assert_eq!(
            texts(&heard),
            [r#"{"method":"login","args":["ann",""],"kwargs":{},"callId":"login"}"#]
        );
        let answer = r#"{"callId":"login","success":true,"data":{"username":"ann"}}"#;
        assert_eq!(hear(&mut *talk, answer), "Ready");
        assert_eq!(
            frame(&mut *talk, 5),
            r#"{"method":"get_user","args":[null],"kwargs":{},"callId":"5"}"#
        );
        assert_eq!(
            hear(&mut *talk, r#"{"callId":"5","success":true,"data":{}}"#),
            "Done(5)"
        );
        assert_eq!(
            hear(
                &mut *talk,
                r#"{"callId":"6","success":false,"data":{"error":"busy"}}"#
            ),
            r#"Failed(6, "error answer: busy")"#
        );
        assert_eq!(hear(&mut *talk, "nonsense"), "Unreadable");
        assert_eq!(
            hear(&mut *talk, r#"{"event":"join","data":{"channel_uid":"c"}}"#),
            ""
        );
    }

    #[test]
    fn a_snek_message_is_done_once_it_is_answered_and_echoed() {
        let (scenario, mut talk) = talk(Protocol::Snek, Kind::Chat);
        let login = r#"{"callId":"login","success":true,"data":{"username":"ann"}}"#;
        assert_eq!(
            hear(&mut *talk, login),
            r#"say {"method":"get_channels","args":[],"kwargs":{},"callId":"channels"}"#
        );
        let channels =
            r#"{"callId":"channels","success":true,"data":[{"uid":"general","name":"General"}]}"#;
        assert_eq!(hear(&mut *talk, channels), "Ready");
        let text = format!("hello #{:x}.3.5.77", scenario.run);
        assert_eq!(
            frame(&mut *talk, 5),
            format!(
                r#"{{"method":"send_message","args":["general","{text}",true],"kwargs":{{}},"callId":"5"}}"#
            )
        );
        let push = |text: &str| {
            format!(
                r#"{{"event":"message","message":"{text}","username":"ann","user_nick":"Ann","channel_uid":"general","is_final":true}}"#
            )
        };
        assert_eq!(hear(&mut *talk, &push(&text)), "Seen(77)");
        let answer = r#"{"callId":"5","success":true,"data":null}"#;
        assert_eq!(hear(&mut *talk, answer), "Done(5)");
        // That of another connection, of another run, and of somebody.
        let other = format!("hello #{:x}.4.6.99", scenario.run);
        assert_eq!(hear(&mut *talk, &push(&other)), "Seen(99)");
        assert_eq!(hear(&mut *talk, &push("hello #0.3.7.99")), "");
        assert_eq!(hear(&mut *talk, &push("hello")), "");
    }

    #[test]
    fn exoclaw_streams_until_done() {
        let (_, mut talk) = talk(Protocol::Exoclaw, Kind::Chat);
        let mut heard = Vec::new();
        talk.open(&mut heard);
        assert!(heard.is_empty(), "{heard:?}");
        assert_eq!(hear(&mut *talk, r#"{"ok":true,"version":"0.1"}"#), "Ready");
        assert!(frame(&mut *talk, 5).starts_with(
            r#"{"id":"5","method":"chat.send","params":{"channel":"load","account":"load","content":"hello","peer":""#
        ));
        for (text, wanted) in [
            (r#"{"id":"5","event":"text","data":"a"}"#, "First(5)"),
            (r#"{"id":"5","event":"text","data":"b"}"#, ""),
            (
                r#"{"id":"5","event":"usage","data":{"input_tokens":1,"output_tokens":1}}"#,
                "",
            ),
            (r#"{"id":"5","event":"done"}"#, "Done(5)"),
            (
                r#"{"id":"6","error":"no"}"#,
                r#"Failed(6, "error answer: no")"#,
            ),
            (
                r#"{"error":"authentication failed","code":4001}"#,
                r#"Refused("authentication failed")"#,
            ),
        ] {
            assert_eq!(hear(&mut *talk, text), wanted, "{text}");
        }
    }

    #[test]
    fn connectonion_signs_and_answers_pings() {
        let (_, mut talk) = talk(Protocol::ConnectOnion, Kind::Chat);
        let mut heard = Vec::new();
        talk.open(&mut heard);
        let said = texts(&heard);
        assert!(said[0].starts_with(r#"{"type":"CONNECT","#) && said[0].contains("signature"));
        let connected = r#"{"type":"CONNECTED","session_id":"s","status":"new"}"#;
        assert_eq!(hear(&mut *talk, connected), "Ready");
        assert_eq!(frame(&mut *talk, 5), r#"{"type":"INPUT","prompt":"hello"}"#);
        for (text, wanted) in [
            (r#"{"type":"PING"}"#, r#"say {"type":"PONG"}"#),
            (
                r#"{"type":"assistant","id":"e","ts":1,"content":"a"}"#,
                "First(5)",
            ),
            (
                r#"{"type":"OUTPUT","result":"a","session_id":"s"}"#,
                "Done(5)",
            ),
            (r#"{"type":"OUTPUT","result":"a","session_id":"s"}"#, ""),
        ] {
            assert_eq!(hear(&mut *talk, text), wanted, "{text}");
        }
        frame(&mut *talk, 6);
        assert_eq!(
            hear(&mut *talk, r#"{"type":"ERROR","message":"no"}"#),
            r#"Failed(6, "error answer: no")"#
        );
        frame(&mut *talk, 7);
        assert!(!talk.forget(7), "the run goes on at the host");
    }

    #[test]
    fn connectonion_answers_of_a_session_come_in_order() {
        let (_, mut talk) = talk(Protocol::ConnectOnion, Kind::Echo);
        hear(
            &mut *talk,
            r#"{"type":"CONNECTED","session_id":"s","status":"new"}"#,
        );
        assert_eq!(
            frame(&mut *talk, 5),
            r#"{"type":"SESSION_STATUS","session":{"session_id":"s"}}"#
        );
        frame(&mut *talk, 6);
        assert!(talk.forget(5));
        let answer = r#"{"type":"SESSION_STATUS","session_id":"s","status":"idle"}"#;
        assert_eq!(hear(&mut *talk, answer), "Done(5)");
        assert_eq!(hear(&mut *talk, answer), "Done(6)");
    }

    #[test]
    fn acolyte_asks_for_the_model_before_chats() {
        let (_, mut talk) = talk(Protocol::Acolyte, Kind::Chat);
        let mut heard = Vec::new();
        talk.open(&mut heard);
        assert_eq!(texts(&heard), [r#"{"id":"rpc_model","type":"status.get"}"#]);
        let status =
            r#"{"id":"rpc_model","type":"status.result","status":{"ok":true,"model":"m"}}"#;
        assert_eq!(hear(&mut *talk, status), "Ready");
        assert_eq!(
            frame(&mut *talk, 5),
            r#"{"id":"rpc_5","type":"chat.start","payload":{"request":{"message":"hello","history":[],"model":"m"}}}"#
        );
        for (text, wanted) in [
            (
                r#"{"id":"rpc_5","type":"chat.accepted","taskId":"task_a"}"#,
                "",
            ),
            (
                r#"{"id":"rpc_5","type":"chat.event","event":{"type":"text-delta","text":"a"}}"#,
                "First(5)",
            ),
            (
                r#"{"id":"rpc_5","type":"chat.done","reply":{"state":"done","model":"m","output":"a"}}"#,
                "Done(5)",
            ),
            (
                r#"{"id":"rpc_6","type":"error","error":"no"}"#,
                r#"Failed(6, "error answer: no")"#,
            ),
        ] {
            assert_eq!(hear(&mut *talk, text), wanted, "{text}");
        }
    }

    #[test]
    fn a_smarthole_text_is_done_when_its_client_has_it() {
        let (scenario, mut talk) = talk(Protocol::SmartHole, Kind::Chat);
        let mut heard = Vec::new();
        talk.open(&mut heard);
        let name = format!("load-{:x}-3", scenario.run);
        assert!(texts(&heard)[0].contains(&name), "{heard:?}");
        let answer = r#"{"type":"registration_response","payload":{"success":true}}"#;
        assert_eq!(hear(&mut *talk, answer), "Ready");
        let Some(Request::Post { path, body }) = talk.call(call(5)) else {
            panic!("no post");
        };
        assert_eq!((path, body), ("/input", format!("{name}: call 5")));
        let message = r#"{"type":"message","payload":{"id":"m","text":"call 5","timestamp":"t"}}"#;
        assert_eq!(
            hear(&mut *talk, message),
            r#"say {"type":"response","payload":{"messageId":"m","type":"ack","payload":{}}} Done(5)"#
        );
    }
}
