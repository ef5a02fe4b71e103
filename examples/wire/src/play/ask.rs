//! How a connection is opened: what is asked of a server over HTTP, or what a client that asks is answered.

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::conn::{self, Conn, Request};
use super::http::{self, split};
use super::peer::Peer;
use super::player::Player;
use super::script::{Ask, Headers};
use crate::head::Head;
use crate::order::Order;
use crate::pattern::{Pattern, short};
use crate::secrets::within;

/// The time for a request to come on a connection of anybody.
const HEAD_TIME: std::time::Duration = std::time::Duration::from_secs(10);
/// Headers of a recorded answer that do not fit another connection.
const OWN: &str = "connection content-length transfer-encoding keep-alive date";

impl Player<'_> {
    /// Opens a connection: asks the server, or answers the next request of the client.
    ///
    /// # Errors
    /// What is not as it should be.
    pub(crate) async fn ask(&mut self, number: u32, ask: &Ask) -> Result<(), String> {
        self.found.orders.remove(&number);
        let conn = match self.peer {
            Peer::Server(..) => self.call(number, ask).await?,
            Peer::Client(_) => self.answer(number, ask).await?,
        };
        if let Some(conn) = conn {
            if ask.method.is_none() && self.suite.protocol.is_some() {
                self.found.orders.insert(number, Order::opened());
            }
            self.conns.insert(number, conn);
        }
        Ok(())
    }

    /// Asks the server.
    async fn call(&mut self, number: u32, ask: &Ask) -> Result<Option<Conn>, String> {
        let Peer::Server(dial, url) = self.peer else {
            return Ok(None);
        };
        let (path, body) = (
            self.variables.expand(&ask.path)?,
            self.variables.expand(&ask.body)?,
        );
        let headers = ask.headers.iter().map(|(name, value)| {
            let value = self.variables.expand(value)?;
            Ok((name.clone(), value))
        });
        let headers = headers.collect::<Result<Headers, String>>()?;
        let method = ask.method.as_deref();
        if let Some(method) = method {
            self.log(number, true, &format!("{method} {path} {body}"));
        }
        let mut paths = [&*path, split(url).2, &self.suite.path].into_iter();
        let asked = paths.find(|it| !it.is_empty()).unwrap_or_default();
        let asking = async {
            let line = dial.dial().await?;
            http::ask(url, line, method, (asked, headers, &body)).await
        };
        let opened = timeout_at(self.deadline, asking).await;
        let opened = opened.map_err(|_| "no answer comes")?;
        let (head, conn) = opened.map_err(|error| error.to_string())?;
        let status = head.status().unwrap_or_default();
        self.found.head = head;
        match (method, status) {
            (Some(_), _) => self.log(number, false, &format!("({status})")),
            (None, 101) => self.log(number, true, &format!("(open {path})")),
            (None, _) => self.log(number, false, &format!("(open {path}: {status})")),
        }
        is_status(&ask.status, status)?;
        let recorded = ask.answer.as_ref();
        if let Some(recorded) = recorded.filter(|it| it.status() == Some(101)) {
            let [was, is] =
                [recorded, &self.found.head].map(|it| it.header("sec-websocket-protocol"));
            // A selected token is as secret as an offered one.
            let is_same = was == is || was.is_some_and(is_token) && is.is_some();
            if !is_same {
                return Err("the server selects another subprotocol than recorded".to_owned());
            }
        }
        Ok(conn.filter(|_| method.is_some() || ask.status == "101"))
    }

    /// Answers the next request of the client.
    async fn answer(&mut self, number: u32, ask: &Ask) -> Result<Option<Conn>, String> {
        if ask.method.is_some() && ask.answer.is_none() {
            return Err("only servers answer HTTP requests".to_owned());
        }
        let mut request = self.request(number, ask.answer.is_none()).await?;
        let mut config = conn::config();
        if let Some(answer) = &ask.answer {
            if let Err((status, why)) = self.is_recorded(&mut request, ask).await {
                // What differs matters more than whether the client learns of it.
                let _gone = request.end(status, "").await;
                return Err(why);
            }
            if ask.method.is_some() {
                let mut head = answer.clone();
                if head.status().is_none() {
                    head = Head::of("HTTP/1.1 200 OK");
                }
                OWN.split(' ').for_each(|name| head.remove(name));
                head.set("Connection", "close");
                let line = request.answer(&head.text()).await;
                let line = line.map_err(|error| error.to_string())?;
                return Ok(Some(Conn::answering(line, answer.is_stream())));
            }
            if let Some(selected) = answer.header("sec-websocket-protocol") {
                let offers = request.head.header("sec-websocket-protocol");
                let mut offers = offers.unwrap_or_default().split(',').map(str::trim);
                // Another token is as good as the recorded one.
                let is_it = |it: &&str| *it == selected || is_token(it) && is_token(selected);
                let Some(offered) = offers.find(is_it).map(str::to_owned) else {
                    let _gone = request.end("400", "").await;
                    return Err("the client does not offer the recorded subprotocol".to_owned());
                };
                config = config
                    .with_subprotocol(&offered)
                    .map_err(|error| error.to_string())?;
            }
        }
        if ask.status != "101" {
            self.log(number, true, &format!("(refused with {})", ask.status));
            let refused = request.end(&ask.status, "").await;
            return refused.map(|()| None).map_err(|error| error.to_string());
        }
        let ws = request.accept(&config).await?;
        Ok(Some(Conn::websocket(ws)))
    }

    /// Compares a request with the recorded one. Fails with a status, and what differs.
    async fn is_recorded(
        &mut self,
        request: &mut Request,
        ask: &Ask,
    ) -> Result<(), (&'static str, String)> {
        let wrong = |status, what: &str, recorded: &str| {
            Err((status, format!("{what} comes: {recorded} is recorded")))
        };
        let (socket, plain) = ("a request for a WebSocket", "a plain request");
        match (
            request.head.header("upgrade").is_none(),
            ask.method.is_some(),
        ) {
            (true, false) => return wrong("400", plain, socket),
            (false, true) => return wrong("400", socket, plain),
            _ => {}
        }
        // Queries hold tokens and numbers of attempts.
        let without_query = |path: &str| path.split('?').next().unwrap_or_default().to_owned();
        let path = self.variables.live(&ask.path);
        if !path.is_empty() && without_query(&path) != without_query(request.head.target()) {
            let got = format!("a request for {}", within(request.head.target()));
            return wrong("404", &got, &within(&path));
        }
        let Some(method) = &ask.method else {
            return Ok(());
        };
        if method != request.head.method() {
            return wrong("405", request.head.method(), method);
        }
        let body = request.body().await;
        let body = body.map_err(|error| ("400", error.to_string()))?;
        let pattern = Pattern::recorded(&ask.body, &[].into());
        match pattern.matches_all(&body, &self.variables) {
            Ok(bound) => self.variables.bind(bound),
            Err(changes) => {
                let changes = crate::replay::changes(&ask.body, &body, &changes);
                let changes: Vec<_> = changes.iter().map(ToString::to_string).collect();
                let what = format!(
                    "the body of the request differs\n  {}",
                    changes.join("\n  ")
                );
                return Err(("400", what));
            }
        }
        Ok(())
    }

    /// The next request of the client. Those over HTTP before a WebSocket may be answered.
    async fn request(&mut self, number: u32, answers_others: bool) -> Result<Request, String> {
        let none = || "the client does not connect".to_owned();
        // Some programs need a while to start.
        let deadline = match self.found.opened {
            0 => self.deadline.max(self.started + self.settings.start),
            _ => self.deadline,
        };
        loop {
            let client = self.client.as_mut().ok_or_else(none)?;
            let others = self.conns.values_mut().map(Conn::read_ahead);
            let mut others: FuturesUnordered<_> = others.collect();
            let line = tokio::select! {
                biased;
                line = client.connections.recv() => line,
                ended = client.ended.as_mut(), if self.found.ended.is_none() => {
                    let why = ended.words();
                    self.found.ended = Some(ended);
                    return Err(why);
                }
                () = sleep_until(deadline) => return Err(none()),
                Some(never) = others.next() => never,
            };
            drop(others);
            let line = line.ok_or_else(none)?;
            let guards = client.guards.clone();
            let until = match &guards {
                Some(_) => deadline.min(Instant::now() + HEAD_TIME),
                None => deadline,
            };
            let request = match (timeout_at(until, Request::read(line)).await, &guards) {
                (Ok(Ok(request)), _) => request,
                // Anybody may connect, and say nothing.
                (_, Some(_)) => continue,
                (Ok(Err(error)), None) => return Err(error.to_string()),
                (Err(_), None) => return Err("no upgrade comes".to_owned()),
            };
            if let Some(guards) = &guards {
                let local = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
                let parts = request.head.parts();
                let checked = parts.map(|parts| guards.check(&parts, local));
                if !matches!(checked, Some(Ok(()))) {
                    let _gone = request.end("403", "").await;
                    continue;
                }
            }
            let is_get = request.head.method() == "GET" && request.head.header("upgrade").is_none();
            if is_get && answers_others {
                self.get(number, request).await?;
                continue;
            }
            self.found.opened += 1;
            request.head.target().clone_into(&mut self.found.path);
            self.found.head = request.head.clone();
            let path = self.found.path.clone();
            self.log(number, false, &format!("(connects to {path})"));
            return Ok(request);
        }
    }

    /// Answers what a client asks over HTTP before it opens a WebSocket.
    async fn get(&mut self, number: u32, request: Request) -> Result<(), String> {
        let mut gets = self.suite.gets.iter();
        let (status, body) = match gets.find(|(path, _)| path == request.head.target()) {
            Some((_, body)) => {
                let authority = request.head.header("host").unwrap_or_default();
                self.variables.set("authority", authority);
                ("200", self.variables.expand(body)?)
            }
            None => ("404", String::new()),
        };
        self.log(number, false, &format!("GET {}", request.head.target()));
        self.log(number, true, format!("({status}) {body}").trim_end());
        // A client that does not wait for the answer may still open a WebSocket.
        let _gone = timeout_at(self.deadline, request.end(status, &body)).await;
        Ok(())
    }

    pub(super) fn header(&self, name: &str, regex: &str) -> Result<(), String> {
        let value = self.found.head.header(name);
        let value = value.ok_or_else(|| format!("there is no header {name}"))?;
        has(&self.variables.expand(regex)?, value, name)
    }
}

fn is_token(subprotocol: &str) -> bool {
    subprotocol.starts_with("bearer.")
}

/// Compares a status with one such as `404`, `4xx`, or `!101` for any other; an empty one is any.
pub(super) fn is_status(wanted: &str, status: u16) -> Result<(), String> {
    let status = status.to_string();
    let (negated, digits) = match wanted.strip_prefix('!') {
        Some(digits) => (true, digits),
        None => (false, wanted),
    };
    let mut pairs = digits.chars().zip(status.chars());
    let same = digits.len() == status.len() && pairs.all(|(w, s)| w == 'x' || w == s);
    match same == negated && !wanted.is_empty() {
        true => Err(format!("the status is {status}, expected {wanted}")),
        false => Ok(()),
    }
}

/// Finds an expression in a text.
pub(super) fn has(regex: &str, text: &str, what: &str) -> Result<(), String> {
    let regex = regex::Regex::new(regex).map_err(|error| error.to_string())?;
    match regex.is_match(text) {
        true => Ok(()),
        false => Err(format!("{what} is {:?}, expected {regex}", short(text))),
    }
}
