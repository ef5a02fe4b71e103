//! What the clients of the recordings said, said to our host: it answers as the recorded hosts did,
//! except for the deviations, which are listed with their reasons.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use connectonion_proto::auth::{InviteCodes, Signer};
use connectonion_proto::frame::Number;
use connectonion_proto::limits::UploadLimits;
use connectonion_proto::net::{HostRuntime, RuntimeOptions};
use connectonion_proto::server::ServerConfig;
use connectonion_proto::trust::{AccessControl, TrustLevel};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::deviations::{Deviation, Instead, MEMBERS, deviations};
use super::script::{Recorded, Runs, is_end, is_event, is_hosts, key, runs};
use super::{Line, Recording, VERSIONS, recordings};
use crate::scratch::Scratch;
use crate::staff::{Client, SECOND, host_key, now};

/// Members that have to be the same.
const SAME: [&str; 17] = [
    "status",
    "server_newer",
    "result",
    "message",
    "received",
    "name",
    "tool_id",
    "question",
    "options",
    "tool",
    "plan_content",
    "turn",
    "iteration",
    "mode",
    "methods",
    "payment_amount",
    "level",
];

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn signer(name: &str) -> Signer {
    Signer::from_seed(&seed(name))
}

/// The key with this name (`tests/vectors/recorded/README.md`).
fn seed(name: &str) -> [u8; 32] {
    let names = [
        "main",
        "second",
        "stranger",
        "blocked",
        "admin",
        "payer",
        "other",
        "stranger2",
        "stranger3",
        "stranger4",
        "guest",
        "guest2",
    ];
    let place = names.iter().position(|it| *it == name).unwrap();
    [u8::try_from(place).unwrap() + 2; 32]
}

struct Player<'r> {
    recording: &'r Recording,
    table: &'r [Deviation],
    used: &'r mut HashSet<(usize, usize)>,
    runs: Runs,
    permits: Arc<Semaphore>,
    runtimes: HashMap<String, HostRuntime>,
    trust: String,
    scratch: Scratch,
    clients: HashMap<u64, Client>,
    /// Their ids of sessions and events, and ours.
    ids: HashMap<String, Value>,
    emitted: HashSet<String>,
    /// The last CONNECT that was signed here.
    connect: Value,
    /// Connections whose run ours has refused, so that the rest of it does not come.
    refused: HashSet<u64>,
    /// The conversation is another one since a deviation.
    is_apart: bool,
    /// What was not as recorded.
    faults: Vec<String>,
}

impl<'r> Player<'r> {
    fn new(
        recording: &'r Recording,
        table: &'r [Deviation],
        used: &'r mut HashSet<(usize, usize)>,
    ) -> Self {
        let trust = match recording.version {
            "1.2.1" => "open",
            _ => "careful",
        };
        Self {
            recording,
            table,
            used,
            runs: runs(&recording.lines),
            permits: Arc::new(Semaphore::new(0)),
            runtimes: HashMap::new(),
            trust: trust.to_owned(),
            scratch: Scratch::new(),
            clients: HashMap::new(),
            ids: HashMap::new(),
            emitted: HashSet::new(),
            connect: Value::Null,
            refused: HashSet::new(),
            is_apart: false,
            faults: Vec::new(),
        }
    }

    fn runtime(&mut self) -> &HostRuntime {
        let (runs, permits, path) = (&self.runs, &self.permits, self.scratch.path());
        let is_old = self.recording.version == "1.2.1";
        self.runtimes.entry(self.trust.clone()).or_insert_with(|| {
            let level = TrustLevel::parse(&self.trust).unwrap();
            let mut access = AccessControl::new(*host_key().address(), level).require_signatures();
            let (price, payee) = match is_old {
                true => (Number::from(10_u64), None),
                false => (
                    Number::from(10.0),
                    Some(host_key().address().to_string().into()),
                ),
            };
            let book = access.book_mut();
            for name in ["main", "second"] {
                book.contacts.insert(*signer(name).address()).unwrap();
            }
            book.blocked.insert(*signer("blocked").address()).unwrap();
            book.admins.insert(*signer("admin").address()).unwrap();
            let access = access
                .with_invites(InviteCodes::new(["OpenOnion"]).unwrap())
                .with_payment(price, payee);
            let limits = UploadLimits {
                max_files: 3,
                max_file_bytes: 1024 * 1024,
                ..UploadLimits::default()
            };
            let mut options = RuntimeOptions::with_access(access);
            (options.uploads, options.upload_limits) = (path.into(), limits);
            let runtime = HostRuntime::new(
                Recorded::new(Arc::clone(runs), Arc::clone(permits)),
                options,
            );
            let running = runtime.clone();
            tokio::spawn(async move { running.run().await });
            runtime
        })
    }

    fn deviation(&mut self, at: usize, line: &Line) -> Option<Instead> {
        // The header is the first line.
        let number = format!("@{}", at + 2);
        let name = format!("{}/{}", self.recording.version, self.recording.name);
        let is_there = |part: &str| part == number || line.text.contains(part);
        for (entry, deviation) in self.table.iter().enumerate() {
            if deviation.of.iter().any(|of| name.starts_with(of))
                && let Some(place) = deviation.lines.iter().position(|it| is_there(&it.line))
            {
                self.used.insert((entry, place));
                return Some(deviation.lines[place].clone());
            }
        }
        None
    }

    async fn play(mut self) -> Vec<String> {
        let recording = self.recording;
        for (at, line) in recording.lines.iter().enumerate() {
            let place = recording.place(at);
            let deviation = self.deviation(at, line);
            if line.is_from_host() && self.refused.contains(&line.conn) {
                if line.kind() == "OUTPUT" {
                    self.refused.remove(&line.conn);
                }
            } else if line.is_from_host() {
                match &deviation {
                    None => self.recv(&place, line).await,
                    Some(deviation) => self.recv_ours(&place, line, &deviation.ours).await,
                }
                if deviation.as_ref().is_some_and(|it| it.refuses) {
                    self.is_apart = true;
                    self.refused.insert(line.conn);
                    self.runs.lock().unwrap().pop_front();
                }
            }
            if line.is_from_host() {
                continue;
            }
            self.leave_or_send(at, line).await;
            if let Some(deviation) = &deviation {
                self.recv_ours(&place, line, &deviation.ours).await;
            }
            // 1006 is a line that was dropped: ours goes on.
            if line.event == "closed_by_host"
                && line.code != 1006
                && deviation.is_none()
                && let Some(client) = self.clients.get_mut(&line.conn)
            {
                let got = client.try_recv(SECOND).await.unwrap_or_default();
                if got["close"] != line.code {
                    self.faults
                        .push(format!("{place}: {got} is not {}", line.code));
                }
            }
            if matches!(&*line.event, "cut" | "closed_by_client" | "closed_by_host")
                && let Some(mut client) = self.clients.remove(&line.conn)
            {
                while let Some(frame) = client.try_recv(SECOND).await {
                    self.faults
                        .push(format!("{place}: unexpected: {frame:.150}"));
                }
            }
        }
        self.faults
    }

    async fn leave_or_send(&mut self, at: usize, line: &Line) {
        if !line.trust.is_empty() {
            self.trust.clone_from(&line.trust);
        }
        if line.event == "open" {
            let pings = self.recording.name.starts_with("22");
            let config = ServerConfig::default();
            let runtime = self.runtime();
            let client = match pings {
                true => Client::open_with(runtime, config),
                false => Client::open(runtime),
            };
            self.clients.insert(line.conn, client);
        }
        if line.is_from_client() {
            self.send(at, line).await;
        }
    }

    async fn send(&mut self, at: usize, line: &Line) {
        let frame = match line.kind() {
            "CONNECT" => {
                self.let_end(at, line).await;
                self.signed(line)
            }
            _ if !line.by.is_empty() => self.signed(line),
            _ => self.renamed(&line.frame),
        };
        let Some(client) = self.clients.get_mut(&line.conn) else {
            return;
        };
        match (&line.raw, &line.binary) {
            (Some(text), _) => client.send_text(text).await,
            (_, Some(text)) => client.send_bytes(text.as_bytes()).await,
            _ => client.send(&frame).await,
        }
    }

    /// Lets an agent end that ended while its client was away.
    async fn let_end(&mut self, at: usize, line: &Line) {
        let mut later = self.recording.lines[at..].iter();
        let answer = later.find(|it| it.conn == line.conn && it.kind() == "CONNECTED");
        let has_ended = answer.is_some_and(|it| it.frame["status"] == "connected");
        let runtime = self.runtime().clone();
        for _ in 0..100 {
            if !has_ended || runtime.running() == 0 {
                break;
            }
            self.permits.add_permits(1);
            tokio::time::sleep(SECOND).await;
        }
    }

    fn ours(&self, id: &Value) -> Value {
        self.ids.get(text(id)).unwrap_or(id).clone()
    }

    /// The frame with our ids.
    fn renamed(&self, frame: &Value) -> Value {
        if !frame.is_object() {
            return Value::Null;
        }
        let mut frame = frame.clone();
        for name in ["request_id", "session_id", "last_msg_id"] {
            if frame[name].is_string() {
                frame[name] = self.ours(&frame[name]);
            }
        }
        let session = &mut frame["session"];
        if session["session_id"].is_string() {
            session["session_id"] = self.ours(&session["session_id"]);
        }
        if let Some(updated) = self.ids.get(&session["updated"].to_string()) {
            session["updated"] = updated.clone();
        }
        if session.is_null() {
            frame.as_object_mut().unwrap().remove("session");
        }
        frame
    }

    /// The frame, signed by the same one in the same way.
    fn signed(&mut self, line: &Line) -> Value {
        let how = &line.how;
        if how["again"] == true {
            return self.connect.clone();
        }
        let mut frame = self.renamed(&line.frame);
        if let Some(payload) = frame.get("payload").cloned() {
            frame["payload"] = self.payload(&payload, how);
        }
        let signer = signer(&line.by);
        let form = text(&how["form"]);
        if frame["signature"].is_string() && frame["payload"].is_object() {
            let signed = sign(&line.by, &frame["payload"], form);
            frame["signature"] = match text(&how["sig"]) {
                "" => json!(signed),
                "0x" => json!(format!("0x{signed}")),
                "upper" => json!(signed.to_uppercase()),
                "bad" => json!("00".repeat(64)),
                "short" => json!(signed[..126]),
                _ => json!("zz"),
            };
        }
        if frame["from"].is_string() && text(&how["sender"]).is_empty() {
            frame["from"] = json!(signer.address().to_string());
        }
        self.connect = frame.clone();
        frame
    }

    fn payload(&self, recorded: &Value, how: &Value) -> Value {
        let mut payload = recorded.clone();
        let host = host_key().address().to_string();
        if payload["to"].is_string() {
            payload["to"] = match text(&how["to"]) {
                "upper" => json!(format!("0x{}", host[2..].to_uppercase())),
                "wrong" => payload["to"].clone(),
                _ => json!(host),
            };
        }
        let timestamp = match text(&how["ts"]) {
            "" => json!(now()),
            "int" => json!(now().floor()),
            "expired" => json!(now() - 400.0),
            "future" => json!(now() + 400.0),
            _ => payload["timestamp"].clone(),
        };
        if payload.get("timestamp").is_some() {
            payload["timestamp"] = timestamp;
        }
        payload["nonce"] = json!(format!("{:032x}", rand(&self.ids, &self.connect)));
        payload
    }

    async fn recv_ours(&mut self, place: &str, line: &Line, ours: &[String]) {
        self.permit(line);
        self.is_apart |= ours.iter().any(|it| it == "OUTPUT") || line.kind() == "OUTPUT";
        for expected in ours {
            let Some(client) = self.clients.get_mut(&line.conn) else {
                return;
            };
            let (kind, words) = expected.split_once(' ').unwrap_or((expected.as_str(), ""));
            let got = client.try_recv(40 * SECOND).await.unwrap_or_default();
            let message = text(&got["message"]).to_owned();
            if got["type"] != kind || !message.starts_with(words) {
                self.faults
                    .push(format!("{place}: {expected} is not {got:.200}"));
            }
            self.learn(line, &got);
        }
    }

    /// The agent may do what this line is about.
    fn permit(&mut self, line: &Line) {
        let is_new =
            is_event(line) && !is_hosts(&line.frame) && self.emitted.insert(key(&line.frame));
        let is_end = line.is_from_host() && is_end(&line.frame);
        if is_new || (is_end && self.emitted.insert(format!("end {}", self.emitted.len()))) {
            self.permits.add_permits(1);
        }
    }

    fn learn(&mut self, line: &Line, got: &Value) {
        for name in ["session_id", "id"] {
            if line.frame[name].is_string() && got[name].is_string() {
                let id = text(&line.frame[name]).to_owned();
                self.ids.insert(id, got[name].clone());
            }
        }
        let (theirs, ours) = (
            &line.frame["session"]["updated"],
            &got["session"]["updated"],
        );
        if let (Some(_), Some(ours)) = (theirs.as_f64(), ours.as_f64()) {
            // Numbers that are read and written here may lose their last bit; of equal copies the
            // client's counts.
            self.ids.insert(theirs.to_string(), json!(ours + 0.001));
        }
    }

    async fn recv(&mut self, place: &str, line: &Line) {
        let frame = &line.frame;
        if line.kind() == "session_sync" {
            return;
        }
        self.permit(line);
        let Some(client) = self.clients.get_mut(&line.conn) else {
            return;
        };
        let Some(mut got) = client.try_recv(40 * SECOND).await else {
            self.faults
                .push(format!("{place}: silence for {frame:.150}"));
            return;
        };
        self.learn(line, &got);
        if got["status"] == "running" && got["type"] == "CONNECTED" {
            // Whether a conversation comes with it is left to the host.
            for name in ["server_newer", "session", "chat_items"] {
                got.as_object_mut().unwrap().remove(name);
            }
        }
        if got["type"] != frame["type"] {
            self.faults
                .push(format!("{place}: {got:.200} for {frame:.150}"));
            return;
        }
        let mut frame = frame.clone();
        if frame["status"] == "running" && frame["type"] == "CONNECTED" {
            for name in ["server_newer", "session", "chat_items"] {
                frame.as_object_mut().unwrap().remove(name);
            }
        }
        only_the_place(&mut got);
        only_the_place(&mut frame);
        let (ours, theirs) = (members(&got), members(&frame));
        if ours != theirs {
            let both: Vec<_> = ours.symmetric_difference(&theirs).collect();
            self.faults
                .push(format!("{place}: members {both:?} of {got:.150}"));
        }
        for name in SAME {
            let is_apart = self.is_apart && ["turn", "iteration"].contains(&name);
            if got[name] != frame[name] && !is_apart {
                let (ours, theirs) = (&got[name], &frame[name]);
                self.faults
                    .push(format!("{place}: {name} {ours:.150} is not {theirs:.150}"));
            }
        }
        if self.is_apart {
            return;
        }
        let (ours, theirs) = (items(&got), items(&frame));
        let shown = theirs.len().min(ours.len());
        if ours[ours.len() - shown..] != theirs {
            self.faults
                .push(format!("{place}: {ours:?} is not {theirs:?}"));
        }
    }
}

/// A number that was not used before in this recording.
fn rand(ids: &HashMap<String, Value>, last: &Value) -> u128 {
    let last = text(&last["payload"]["nonce"]);
    let last = u128::from_str_radix(last, 16).unwrap_or_default();
    last + 1 + ids.len() as u128
}

/// Signs in one of the forms of `how`.
fn sign(name: &str, payload: &Value, form: &str) -> String {
    use connectonion_proto::auth::{Canonical, Payload};
    use ed25519_dalek::{Signer as _, SigningKey};
    let text = payload.to_string();
    let payload = Payload::parse(&text, &rpc_core::Limits::default()).unwrap();
    let form = match form {
        "b" => Canonical::Utf8,
        "c" => Canonical::TopLevel,
        _ => Canonical::Python,
    };
    let signature = SigningKey::from_bytes(&seed(name)).sign(payload.canonical(form).as_bytes());
    signature
        .to_bytes()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn members(frame: &Value) -> BTreeSet<&str> {
    let names = frame.as_object().unwrap().keys().map(String::as_str);
    let is_one_sided = |name: &str| {
        MEMBERS
            .iter()
            .any(|it| frame["type"] == it.0 && name == it.1)
    };
    names
        .filter(|name| !is_one_sided(name) && !frame[*name].is_null())
        .collect()
}

/// What is wrong with a text that is not JSON is told in other words, and where in the same.
fn only_the_place(frame: &mut Value) {
    let message = text(&frame["message"]).to_owned();
    if let (true, Some(place)) = (
        message.starts_with("Invalid JSON: "),
        message.find(" at line "),
    ) {
        frame["message"] = json!(&message[place..]);
    }
}

/// What the chat items say, without ids and uploads.
fn items(frame: &Value) -> Vec<[Value; 4]> {
    let items = frame["chat_items"].as_array().cloned().unwrap_or_default();
    let items = items.iter().filter(|it| {
        let has_asked = it["content"] == "What would you like me to do?";
        it["type"] != "thinking" && !has_asked
    });
    let bare = items.map(|it| {
        // Uploads have their own names, and hosts differ in where they tell them.
        let content = it["content"].as_str().unwrap_or_default();
        let said = content.split("\n\n<system-reminder>").next();
        [
            it["type"].clone(),
            it["status"].clone(),
            it["result"].clone(),
            match &it["content"] {
                Value::Array(parts) => json!(parts.len()),
                _ => json!(said),
            },
        ]
    });
    bare.collect()
}

#[tokio::test(start_paused = true)]
async fn our_host_answers_like_the_recorded_ones() {
    let table = deviations();
    let (mut used, mut faults) = (HashSet::new(), Vec::new());
    for version in VERSIONS {
        for recording in recordings(version) {
            faults.extend(Player::new(&recording, &table, &mut used).play().await);
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
    let unused = table.iter().enumerate().flat_map(|(entry, it)| {
        let lines = it.lines.iter().enumerate();
        lines.map(move |(place, line)| ((entry, place), line.line.as_str()))
    });
    let unused = unused.filter(|(entry, _)| !used.contains(entry));
    let unused: Vec<_> = unused.map(|(_, line)| line).collect();
    assert!(unused.is_empty(), "{unused:?}");
}
