//! What gateway, agent and router count, as a Prometheus parser reads it.

use std::process::Command;

use prometheus_parse::{Scrape, Value};

use crate::programs::{Folder, Running, exchange, host, outcome, switchboard};

/// The metrics of a program at this address, such as `127.0.0.1:80`.
struct Metrics(Scrape);

impl Metrics {
    fn of(host: &str) -> Self {
        let answer = exchange(host, "GET /metrics", "", "");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert!(head.contains("text/plain; version=0.0.4"), "{head}");
        let lines = body.lines().map(|line| Ok(line.to_owned()));
        Self(Scrape::parse(lines).unwrap())
    }

    /// The sum of all samples of this name with these labels.
    fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let samples = self.0.samples.iter().filter(|sample| {
            let has = |(name, value): &(&str, &str)| sample.labels.get(name) == Some(value);
            sample.metric == name && labels.iter().all(has)
        });
        samples
            .map(|sample| match &sample.value {
                Value::Counter(value) | Value::Gauge(value) | Value::Untyped(value) => *value,
                Value::Histogram(buckets) => buckets.last().unwrap().count,
                Value::Summary(_) => panic!("a summary: {sample:?}"),
            })
            .sum()
    }

    /// How many calls of a method ended like this on the server.
    fn calls(&self, system: &str, method: &str, outcome: &str) -> f64 {
        let labels = [
            ("rpc_system", system),
            ("rpc_method", method),
            ("outcome", outcome),
        ];
        self.sum("rpc_server_call_duration_seconds", &labels)
    }
}

/// A folder that the programs are at home in.
struct Home(Folder);

impl Home {
    fn new(name: &str) -> Self {
        Self(Folder::new(&format!("metrics-{name}")))
    }

    fn command(&self, name: &str, args: &[&str]) -> Command {
        let mut command = switchboard(name, args);
        command.current_dir(&self.0.0);
        command.env("HOME", &self.0.0).env("AGENT_HOME", &self.0.0);
        command
    }

    /// A server, and the address where it listens.
    fn serve(&self, name: &str, args: &[&str]) -> (Running, String) {
        let (running, url) = Running::serve(self.command(name, args));
        (running, host(&url).to_owned())
    }

    fn run(&self, name: &str, args: &[&str]) -> Option<i32> {
        outcome(self.command(name, args)).0
    }
}

#[test]
fn the_gateway_counts_its_chats_by_outcome() {
    let home = Home::new("gateway");
    let (_gateway, host) = home.serve("gateway", &["--port", "0"]);
    let url = format!("ws://{host}/ws");
    let chat = |text| home.run("gateway", &["chat", "--url", &url, text]);
    assert_eq!(chat("count to 2"), Some(0));
    assert_eq!(chat("!break"), Some(1));
    let metrics = Metrics::of(&host);
    assert_eq!(metrics.calls("exoclaw", "chat.send", "ok"), 1.0);
    assert_eq!(metrics.calls("exoclaw", "chat.send", "error"), 1.0);
    let system = [("rpc_system", "exoclaw")];
    assert_eq!(metrics.sum("rpc_server_active_calls", &system), 0.0);
    assert!(metrics.sum("rpc_sent_bytes_total", &system) > 100.0);
    assert!(metrics.sum("rpc_received_bytes_total", &system) > 100.0);
}

#[test]
fn the_agent_counts_its_runs() {
    let home = Home::new("agent");
    let (_agent, host) = home.serve("agent", &["host", "--listen", "127.0.0.1:0"]);
    let url = format!("http://{host}");
    let asked = home.run("agent", &["chat", &url, "/call list_files"]);
    assert_eq!(asked, Some(0));
    assert_eq!(Metrics::of(&host).calls("connectonion", "INPUT", "ok"), 1.0);
}

#[test]
fn the_router_counts_its_messages_and_connections() {
    let home = Home::new("router");
    let (_router, host) = home.serve("router", &["--listen", "127.0.0.1:0"]);
    let url = format!("ws://{host}");
    let client = ["client", "--url", &url, "--name", "notes"];
    let client = Running::start(home.command("router", &client));
    client.line_with("registered as notes");
    let plain = "content-type: text/plain\r\n";
    let answer = exchange(&host, "POST /input?wait=1", plain, "notes: buy milk");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let metrics = Metrics::of(&host);
    let system = [("rpc_system", "smarthole")];
    assert_eq!(metrics.calls("smarthole", "message", "ok"), 1.0);
    assert_eq!(metrics.sum("rpc_server_connections", &system), 1.0);
}

#[test]
fn a_proxy_hands_out_no_metrics() {
    let home = Home::new("proxied");
    let (_gateway, host) = home.serve("gateway", &["--port", "0"]);
    let headers = "x-forwarded-for: 192.0.2.1\r\n";
    let answer = exchange(&host, "GET /metrics", headers, "");
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
}
