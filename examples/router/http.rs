//! `POST /input` and what else the router answers over plain HTTP.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use smarthole_proto::InputMethod;
use smarthole_proto::hub::{HubError, Input};
use smarthole_proto::net::Switch;

use crate::json;

const USAGE: &str = "\
This is a SmartHole router. Its clients connect with a WebSocket.
POST /input     a message, as text/plain or as JSON: {\"text\": \"..\", \"inputMethod\": \"voice\", \"confidence\": 0.9}
                with ?wait=1 the answer says what became of it
GET  /clients   who is connected
GET  /history   what came of the last messages
";

/// Answers plain requests. The switch is there as soon as the server listens.
pub(crate) struct Http {
    pub(crate) switch: Arc<OnceLock<Switch>>,
    /// How long a request may wait until its message is settled.
    pub(crate) patience: Duration,
}

/// A request that is refused, and why.
#[derive(Debug, PartialEq)]
struct Problem {
    status: StatusCode,
    message: String,
}

impl Problem {
    fn new(status: StatusCode, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { status, message }
    }
}

impl From<HubError> for Problem {
    fn from(error: HubError) -> Self {
        let status = match error {
            HubError::Blank => StatusCode::BAD_REQUEST,
            HubError::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            HubError::NoClients | HubError::Busy => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, error.to_string())
    }
}

impl Http {
    pub(crate) async fn answer(&self, request: Request<Bytes>) -> Response<Bytes> {
        let (parts, body) = request.into_parts();
        let allowed = match parts.uri.path() {
            "/input" => Method::POST,
            "/" | "/clients" | "/history" => Method::GET,
            _ => {
                let message = "nothing is here: GET / tells what is";
                return refused(&Problem::new(StatusCode::NOT_FOUND, message));
            }
        };
        // What answers GET answers HEAD; the server leaves the body out.
        let is_head = parts.method == Method::HEAD && allowed == Method::GET;
        if parts.method != allowed && !is_head {
            let message = format!("only {allowed} is answered here");
            let problem = Problem::new(StatusCode::METHOD_NOT_ALLOWED, message);
            let mut response = refused(&problem);
            if let Ok(allowed) = HeaderValue::from_str(allowed.as_str()) {
                response.headers_mut().insert(ALLOW, allowed);
            }
            return response;
        }
        let Some(switch) = self.switch.get() else {
            let message = "the router is starting";
            return refused(&Problem::new(StatusCode::SERVICE_UNAVAILABLE, message));
        };
        match parts.uri.path() {
            "/clients" => answered(StatusCode::OK, &json::clients(&switch.clients())),
            "/history" => answered(StatusCode::OK, &json::history(&switch.history())),
            "/input" => {
                let taken = self.input(switch, &parts, &body).await;
                taken.unwrap_or_else(|problem| refused(&problem))
            }
            _ => respond(StatusCode::OK, "text/plain; charset=utf-8", USAGE.into()),
        }
    }

    async fn input(
        &self,
        switch: &Switch,
        parts: &Parts,
        body: &[u8],
    ) -> Result<Response<Bytes>, Problem> {
        let (input, wait) = read(parts, body)?;
        todo!()
    }
}

/// The input of a request, and whether to wait for what becomes of it.
fn read(parts: &Parts, body: &[u8]) -> Result<(Input, bool), Problem> {
    let body = std::str::from_utf8(body)
        .map_err(|_| Problem::new(StatusCode::BAD_REQUEST, "the body is no text in UTF-8"))?;
    let kind = parts.headers.get(CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    let wait = parts.uri.query().is_some_and(asks_to_wait);
    if kind.eq_ignore_ascii_case("text/plain") {
        return Ok((Input::text(body), wait));
    }
    if !kind.eq_ignore_ascii_case("application/json") {
        return Err(Problem::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "send text/plain, or JSON with the header 'content-type: application/json'",
        ));
    }
    let said: Said = serde_json::from_str(body)
        .map_err(|error| Problem::new(StatusCode::BAD_REQUEST, error.to_string()))?;
    Ok((said.input()?, wait || said.wait))
}

fn asks_to_wait(query: &str) -> bool {
    let mut pairs = query.split('&');
    pairs.any(|pair| matches!(pair, "wait" | "wait=1" | "wait=true"))
}

/// The JSON of an input. Members that are not known are ignored.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Said {
    text: String,
    #[serde(default)]
    input_method: Option<String>,
    #[serde(default)]
    confidence: Option<f64>,
    #[serde(default)]
    wait: bool,
}

impl Said {
    fn input(&self) -> Result<Input, Problem> {
        let bad = |message: &str| Problem::new(StatusCode::BAD_REQUEST, message);
        if self.confidence.is_some_and(|sure| !(0.0..=1.0).contains(&sure)) {
            return Err(bad("'confidence' is a number from 0 to 1"));
        }
        match self.input_method.as_deref() {
            None | Some("text") => Ok(Input::text(self.text.as_str())),
            Some("voice") => Ok(Input::voice(self.text.as_str(), self.confidence)),
            Some(_) => Err(bad("'inputMethod' is \"text\" or \"voice\"")),
        }
    }
}

fn refused(problem: &Problem) -> Response<Bytes> {
    answered(problem.status, &json!({ "error": problem.message }))
}

fn answered(status: StatusCode, body: &Value) -> Response<Bytes> {
    respond(status, "application/json", format!("{body}\n").into())
}

fn respond(status: StatusCode, kind: &'static str, body: Bytes) -> Response<Bytes> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
