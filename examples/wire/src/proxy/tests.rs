//! Tests of the proxy on real sockets of this machine.

use std::io::Write;
use std::sync::Mutex;

use crate::transcript::{Header, Transcript};
use futures_util::{SinkExt as _, StreamExt as _};
use rpc_core::net::Dialer as _;
use rpc_core::net::server::Listener;
use rpc_core::net::ws::WsConfig;
use rpc_core::{CloseFrame, Outgoing};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_tungstenite::accept_hdr_async;
use tokio_tungstenite::tungstenite::Message as Theirs;
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};
use tokio_tungstenite::tungstenite::protocol::CloseFrame as TheirClose;

use super::*;
use crate::cli::duration;
use switchboard_faults::Plan;

/// Nothing here takes that long, unless it hangs.
const PATIENCE: Duration = Duration::from_secs(30);

/// A file in memory.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Memory {
    fn transcript(&self) -> Transcript {
        let bytes = self.0.lock().unwrap();
        Transcript::parse(std::str::from_utf8(&bytes).unwrap()).unwrap()
    }
}

struct Running {
    address: SocketAddr,
    memory: Memory,
    stop: oneshot::Sender<()>,
    run: JoinHandle<io::Result<Report>>,
}

async fn start(server: &str) -> Running {
    start_with(server, "").await
}

async fn start_with(server: &str, plan: &str) -> Running {
    let listener = Listener::bind("127.0.0.1:0").await.unwrap();
    let (address, memory) = (listener.local_addr().unwrap(), Memory::default());
    let mut proxy = Proxy::new(server).unwrap();
    proxy.recorder = Some(Recorder::new(memory.clone(), &Header::new()));
    let plan = Arc::new(Plan::parse(plan, duration).unwrap());
    proxy.faults = (!plan.is_empty()).then_some(Faults { plan, seed: 7 });
    let (stop, stopped) = oneshot::channel();
    let stopped = async {
        let _ = stopped.await;
    };
    let run = tokio::spawn(proxy.run(listener, stopped, PATIENCE, |_| {}));
    Running {
        address,
        memory,
        stop,
        run,
    }
}

impl Running {
    async fn end(self) -> (Report, Transcript) {
        self.stop.send(()).unwrap();
        let report = timeout(PATIENCE, self.run).await.unwrap().unwrap().unwrap();
        (report, self.memory.transcript())
    }
}

#[expect(clippy::result_large_err, reason = "the library has it so")]
/// A server for one connection: sends each message back, and a Close of its own after "bye".
async fn echo(listener: TcpListener) -> Request {
    let (tcp, _) = listener.accept().await.unwrap();
    let mut request = None;
    let agree = |seen: &Request, mut answer: Response| {
        request = Some(seen.clone());
        if let Some(offer) = seen.headers().get("sec-websocket-protocol") {
            answer
                .headers_mut()
                .insert("sec-websocket-protocol", offer.clone());
        }
        Ok(answer)
    };
    let mut socket = accept_hdr_async(tcp, agree).await.unwrap();
    while let Some(Ok(message)) = socket.next().await {
        match message {
            Theirs::Text(text) if text.as_str() == "bye" => {
                let frame = TheirClose {
                    code: 4001.into(),
                    reason: "enough".into(),
                };
                socket.close(Some(frame)).await.unwrap();
            }
            Theirs::Text(_) | Theirs::Binary(_) => socket.send(message).await.unwrap(),
            _ => {}
        }
    }
    request.unwrap()
}

#[tokio::test]
async fn frames_subprotocols_headers_and_codes_pass_and_are_recorded() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = listener.local_addr().unwrap();
    let serving = tokio::spawn(echo(listener));
    let proxy = start(&format!("ws://{server}")).await;
    let config = WsConfig::default().with_header("X-Mine", "1").unwrap();
    let config = config.with_subprotocol("acolyte.v1").unwrap();
    let dialer = WsDialer::new(&format!("ws://{}/v1/rpc?a=1", proxy.address)).unwrap();
    let mut client = dialer.with_config(config).dial().await.unwrap();
    assert_eq!(client.subprotocol(), Some("acolyte.v1"));
    let large = "é".repeat(100_000);
    for text in ["{}", &large, "bye"] {
        client.send(Outgoing::Text(text.into())).await.unwrap();
    }
    let mut got = Vec::new();
    while let Some(message) = timeout(PATIENCE, client.next()).await.unwrap() {
        got.push(message.unwrap());
    }
    use rpc_core::net::Message;
    let close = CloseFrame::new(4001, "enough");
    let expected = [
        Message::Text("{}".into()),
        Message::Text(large.as_str().into()),
        Message::Close(Some(close)),
    ];
    assert_eq!(got, expected);
    drop(client);
    let request = timeout(PATIENCE, serving).await.unwrap().unwrap();
    assert_eq!(request.uri(), "/v1/rpc?a=1");
    assert_eq!(request.headers()["x-mine"], "1");
    assert_eq!(request.headers()["host"], server.to_string());
    let (report, transcript) = proxy.end().await;
    assert_eq!(
        report,
        Report {
            connections: 1,
            cut: 0
        }
    );
    let of = |from: Side, kind: Kind| {
        let all = transcript.entries.iter();
        let all = all.filter(move |it| it.from == Some(from) && it.kind == kind);
        all.map(|it| (it.data.to_string(), it.code))
            .collect::<Vec<_>>()
    };
    let texts = |list: &[&str]| {
        list.iter()
            .map(|it| ((*it).to_owned(), None))
            .collect::<Vec<_>>()
    };
    assert_eq!(of(Side::Client, Kind::Text), texts(&["{}", &large, "bye"]));
    assert_eq!(of(Side::Server, Kind::Text), texts(&["{}", &large]));
    assert_eq!(
        of(Side::Server, Kind::Close),
        [("enough".to_owned(), Some(4001))]
    );
    assert!(
        of(Side::Client, Kind::Http)[0]
            .0
            .starts_with("GET /v1/rpc?a=1 HTTP/1.1\r\n")
    );
    assert!(
        of(Side::Server, Kind::Http)[0]
            .0
            .starts_with("HTTP/1.1 101 ")
    );
}

/// Sends a request and reads to the end of the connection.
async fn exchange(address: SocketAddr, request: &str) -> String {
    let mut tcp = TcpStream::connect(address).await.unwrap();
    tcp.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let read = tcp.read_to_string(&mut answer);
    timeout(PATIENCE, read).await.unwrap().unwrap();
    answer
}

#[tokio::test]
async fn plain_http_passes_and_its_events_are_recorded() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = listener.local_addr().unwrap();
    let answer = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n\
        f\r\ndata: {\"a\":1}\n\n\r\n9\r\ndata: x\n\n\r\n0\r\n\r\n";
    let serving = tokio::spawn(async move {
        let (mut tcp, _) = listener.accept().await.unwrap();
        let (head, mut body) = read_head(&mut tcp, Vec::new()).await.unwrap().unwrap();
        while body.len() < 4 {
            tcp.read_buf(&mut body).await.unwrap();
        }
        tcp.write_all(answer.as_bytes()).await.unwrap();
        (head.text(), body)
    });
    let proxy = start(&format!("http://{server}/v1/chat/stream")).await;
    let host = proxy.address;
    let request = format!("POST / HTTP/1.1\r\nHost: {host}\r\nContent-Length: 4\r\n\r\nbody");
    assert_eq!(exchange(host, &request).await, answer);
    let (head, body) = timeout(PATIENCE, serving).await.unwrap().unwrap();
    let expected = format!(
        "POST /v1/chat/stream HTTP/1.1\r\nHost: {server}\r\nContent-Length: 4\r\nConnection: close\r\n\r\n"
    );
    assert_eq!((head, &body[..]), (expected, &b"body"[..]));
    let (_, transcript) = proxy.end().await;
    let events: Vec<_> = transcript
        .entries
        .iter()
        .filter(|it| it.kind == Kind::Sse)
        .collect();
    let events: Vec<_> = events.iter().map(|it| &*it.data).collect();
    assert_eq!(events, ["{\"a\":1}", "x"]);
}

#[tokio::test]
async fn web_pages_foreign_names_and_odd_bodies_are_refused() {
    let proxy = start("ws://127.0.0.1:1").await;
    let host = proxy.address;
    for (headers, status) in [
        (format!("Host: {host}\r\nOrigin: http://{host}\r\n"), "403"),
        ("Host: evil.example\r\n".to_owned(), "403"),
        (String::new(), "400"),
        (
            format!("Host: {host}\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n"),
            "400",
        ),
        (format!("Host: {host}\r\n"), "502"),
    ] {
        let answer = exchange(host, &format!("GET /ws HTTP/1.1\r\n{headers}\r\n")).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{headers} {answer}"
        );
    }
    let (report, transcript) = proxy.end().await;
    assert_eq!(report.connections, 5);
    let notes = transcript.entries.iter().filter(|it| it.kind == Kind::Note);
    assert_eq!(notes.count(), 5);
}

/// Opens a connection through a proxy with raw sockets. Returns both ends.
async fn raw(proxy: &Running, listener: &TcpListener) -> (TcpStream, TcpStream) {
    let mut client = TcpStream::connect(proxy.address).await.unwrap();
    let host = proxy.address;
    let head = format!("GET / HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\n\r\n");
    client.write_all(head.as_bytes()).await.unwrap();
    let (mut server, _) = listener.accept().await.unwrap();
    read_head(&mut server, Vec::new()).await.unwrap().unwrap();
    let hints = "HTTP/1.1 103 Early Hints\r\n\r\n";
    let agreed = "HTTP/1.1 101 Switching Protocols\r\n\r\n";
    let answers = format!("{hints}{agreed}");
    server.write_all(answers.as_bytes()).await.unwrap();
    let mut passed = vec![0; answers.len()];
    client.read_exact(&mut passed).await.unwrap();
    assert_eq!(passed, answers.as_bytes());
    (client, server)
}

#[tokio::test]
async fn hints_before_an_answer_hide_no_frames() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = format!("ws://{}", listener.local_addr().unwrap());
    for (plan, expected) in [
        ("", vec![Kind::Text, Kind::Eof]),
        ("s2c text drop", vec![Kind::Text, Kind::Fault, Kind::Eof]),
    ] {
        let proxy = start_with(&server, plan).await;
        let (mut client, mut server) = raw(&proxy, &listener).await;
        server.write_all(&[0x81, 1, b'x']).await.unwrap();
        drop(server);
        let mut got = Vec::new();
        client.read_to_end(&mut got).await.unwrap();
        assert_eq!(got.is_empty(), !plan.is_empty(), "{plan}");
        drop(client);
        let (_, transcript) = proxy.end().await;
        let all = transcript.entries.iter();
        let all = all.filter(|it| it.from == Some(Side::Server) && it.kind != Kind::Http);
        assert_eq!(
            all.map(|it| it.kind).collect::<Vec<_>>(),
            expected,
            "{plan}"
        );
    }
}

/// Sends pongs until nothing takes them any more. The clock is paused then, and stands wherever
/// something could go on.
async fn flood(socket: &mut TcpStream, mask: bool) {
    // With the largest payload of a pong, which is zeros whether it is masked or not.
    let mut pong = if mask {
        vec![0x8a, 0x80 | 125, 0, 0, 0, 0]
    } else {
        vec![0x8a, 125]
    };
    pong.resize(pong.len() + 125, 0);
    let pongs = pong.repeat(64);
    let mut sent = 0;
    tokio::time::pause();
    while let Ok(written) = timeout(Duration::from_secs(1), socket.write_all(&pongs)).await {
        written.unwrap();
        sent += pongs.len();
        assert!(sent < 256 * 1024 * 1024, "nothing slows the sender down");
    }
}

#[tokio::test]
async fn a_slow_reader_slows_the_sender_down() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = start(&format!("ws://{}", listener.local_addr().unwrap())).await;
    let (mut client, server) = raw(&proxy, &listener).await;
    // The server takes nothing: what fits into the buffers of the system and of the proxy is all.
    flood(&mut client, true).await;
    tokio::time::resume();
    drop((client, server));
    let (report, _) = proxy.end().await;
    assert_eq!(report.connections, 1);
}

#[tokio::test]
async fn a_close_on_purpose_does_not_wait_for_a_client_that_reads_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = format!("ws://{}", listener.local_addr().unwrap());
    let proxy = start_with(&server, "c2s text close 1001").await;
    let (mut client, mut server) = raw(&proxy, &listener).await;
    flood(&mut server, false).await;
    client
        .write_all(&[0x81, 0x81, 0, 0, 0, 0, b'x'])
        .await
        .unwrap();
    // The client is there until the proxy has given it up, and it is not cut off by the drain.
    let (report, _) = proxy.end().await;
    assert_eq!((report.connections, report.cut), (1, 0));
    drop((client, server));
}

/// Runs a client that sends these texts to an echo through a proxy with faults. Returns what it gets, and
/// how that ends.
async fn faulty(plan: &str, texts: &[&str]) -> (Vec<String>, String, Transcript) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = listener.local_addr().unwrap();
    let serving = tokio::spawn(echo(listener));
    let proxy = start_with(&format!("ws://{server}"), plan).await;
    let url = format!("ws://{}/ws", proxy.address);
    let mut client = match WsDialer::new(&url).unwrap().dial().await {
        Ok(client) => client,
        Err(error) => {
            serving.abort();
            return (Vec::new(), error.to_string(), proxy.end().await.1);
        }
    };
    for text in texts {
        // A line that was cut on purpose takes no more.
        let _ = client.send(Outgoing::Text((*text).into())).await;
    }
    let (mut got, mut end) = (Vec::new(), "eof".to_owned());
    while let Some(message) = timeout(PATIENCE, client.next()).await.unwrap() {
        match message {
            Ok(rpc_core::net::Message::Text(text)) => got.push(text.as_str().to_owned()),
            Ok(rpc_core::net::Message::Close(frame)) => {
                end = frame.map_or_else(String::new, |frame| frame.code.to_string());
            }
            Ok(_) => {}
            Err(_) => end = "failed".to_owned(),
        }
    }
    drop(client);
    timeout(PATIENCE, serving).await.unwrap().unwrap();
    (got, end, proxy.end().await.1)
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|it| (*it).to_owned()).collect()
}

#[test]
fn a_recording_says_all_rules_wherever_they_came_from() {
    let faults = |plan: &str| Faults {
        plan: Arc::new(Plan::parse(plan, duration).unwrap()),
        seed: 7,
    };
    let note = faults(";# of a file\nc2s a drop 1/3\n\nreset #2 ;").note();
    let expected = "faults with --seed 7: c2s a drop 1/3; reset #2";
    assert_eq!(note.as_deref(), Some(expected));
    assert_eq!(faults("").note(), None);
}

#[tokio::test]
async fn faults_happen_to_frames_and_connections() {
    let a = r#"{"type":"a"}"#;
    let b = r#"{"type":"b","n":1}"#;
    for (plan, texts, expected, end) in [
        ("c2s a drop", &[a, b, "bye"][..], &[b][..], "4001"),
        ("s2c a duplicate", &[a, "bye"], &[a, a], "4001"),
        ("c2s a reorder", &[a, b, "bye"], &[b, a], "4001"),
        ("c2s b truncate 3", &[b, "bye"], &["{\"t"], "4001"),
        ("c2s text close 1011", &["x"], &[], "1011"),
    ] {
        let (got, how, transcript) = faulty(plan, texts).await;
        assert_eq!((&got[..], &*how), (&*owned(expected), end), "{plan}");
        let told = transcript
            .entries
            .iter()
            .filter(|it| it.kind == Kind::Fault);
        assert!(told.count() > 0, "{plan}");
    }
}

#[tokio::test]
async fn a_reset_in_mid_frame_fails_both_ends() {
    let (got, end, _) = faulty("s2c text reset", &["x"]).await;
    assert_eq!(got, [""; 0]);
    assert!(end == "failed" || end == "eof", "{end}");
}

#[tokio::test]
async fn a_refused_upgrade_never_reaches_the_server() {
    let (_, end, transcript) = faulty("refuse 503", &[]).await;
    assert!(end.contains("503"), "{end}");
    let kinds: Vec<_> = transcript.entries.iter().map(|it| it.kind).collect();
    assert_eq!(kinds, [Kind::Http, Kind::Fault]);
}
