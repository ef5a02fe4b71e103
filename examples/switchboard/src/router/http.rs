//! `POST /input` and what else the router answers over plain HTTP.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use rpc_core::Limits;
use serde::Deserialize;
use serde_json::{Value, json};
use smarthole_proto::hub::{HubError, Input};
use smarthole_proto::net::RouterRuntime;

use crate::router::json;
use crate::web;

const USAGE: &str = "\
This is a SmartHole router. Its clients connect with a WebSocket.
POST /input     a message, as text/plain or as JSON: {\"text\": \"..\", \"inputMethod\": \"voice\", \"confidence\": 0.9}
                with ?wait=1 the answer says what became of it
GET  /clients   who is connected
GET  /history   what came of the last messages
GET  /metrics   what is counted, for Prometheus
GET  /health    200 as long as it runs
";

/// Answers plain requests.
pub(crate) struct Http {
    pub(crate) runtime: RouterRuntime,
    /// How long a request may wait until its message is settled.
    pub(crate) patience: Duration,
}

/// A request that is refused, and why.
#[derive(Debug, PartialEq)]
struct HttpError {
    status: StatusCode,
    message: String,
}

impl HttpError {
    fn new(status: StatusCode, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { status, message }
    }
}

impl From<HubError> for HttpError {
    fn from(error: HubError) -> Self {
        let status = match error {
            HubError::Blank => StatusCode::BAD_REQUEST,
            HubError::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            HubError::NoClients | HubError::Busy | HubError::Closed | HubError::Ended { .. } => {
                StatusCode::SERVICE_UNAVAILABLE
            }
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
                let message = "not found: GET / lists the paths";
                return refused(&HttpError::new(StatusCode::NOT_FOUND, message));
            }
        };
        // What answers GET answers HEAD; the server leaves the body out.
        let is_head = parts.method == Method::HEAD && allowed == Method::GET;
        if parts.method != allowed && !is_head {
            let message = format!("only {allowed} is answered here");
            let problem = HttpError::new(StatusCode::METHOD_NOT_ALLOWED, message);
            let mut response = refused(&problem);
            if let Ok(allowed) = HeaderValue::from_str(allowed.as_str()) {
                response.headers_mut().insert(ALLOW, allowed);
            }
            return response;
        }
        match parts.uri.path() {
            "/clients" => answered(StatusCode::OK, &json::clients(&self.runtime.clients())),
            "/history" => answered(StatusCode::OK, &json::history(&self.runtime.history())),
            "/input" => {
                let taken = self.input(&parts, &body).await;
                taken.unwrap_or_else(|problem| refused(&problem))
            }
            _ => web::upgrade_required(USAGE),
        }
    }

    async fn input(&self, parts: &Parts, body: &[u8]) -> Result<Response<Bytes>, HttpError> {
        let (input, wait) = read(parts, body)?;
        if !wait {
            let id = self.runtime.submit(input)?;
            return Ok(answered(
                StatusCode::ACCEPTED,
                &json!({ "id": id.as_str() }),
            ));
        }
        let asked = tokio::time::timeout(self.patience, self.runtime.ask(input)).await;
        let Ok(settled) = asked else {
            let message = "it is not settled yet, and routing continues";
            return Err(HttpError::new(StatusCode::GATEWAY_TIMEOUT, message));
        };
        Ok(answered(StatusCode::OK, &json::ended(&settled?)))
    }
}

/// The input of a request, and whether to wait for what becomes of it.
fn read(parts: &Parts, body: &[u8]) -> Result<(Input, bool), HttpError> {
    let body = std::str::from_utf8(body)
        .map_err(|_| HttpError::new(StatusCode::BAD_REQUEST, "the body is not UTF-8 text"))?;
    let kind = parts.headers.get(CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    let wait = parts.uri.query().is_some_and(asks_to_wait);
    if kind.eq_ignore_ascii_case("text/plain") {
        return Ok((Input::text(body), wait));
    }
    if !kind.eq_ignore_ascii_case("application/json") {
        return Err(HttpError::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "send text/plain, or JSON with the header 'content-type: application/json'",
        ));
    }
    let parsed: InputBody = rpc_core::json::parse(body, &Limits::default())
        .map_err(|error| HttpError::new(StatusCode::BAD_REQUEST, error.to_string()))?;
    Ok((parsed.input()?, wait || parsed.wait))
}

fn asks_to_wait(query: &str) -> bool {
    let mut pairs = query.split('&');
    pairs.any(|pair| matches!(pair, "wait" | "wait=1" | "wait=true"))
}

/// The JSON of an input. Members that are not known are ignored.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct InputBody {
    text: String,
    #[serde(default)]
    input_method: Option<String>,
    #[serde(default)]
    confidence: Option<f64>,
    #[serde(default)]
    wait: bool,
}

impl InputBody {
    fn input(&self) -> Result<Input, HttpError> {
        let bad = |message: &str| HttpError::new(StatusCode::BAD_REQUEST, message);
        if self
            .confidence
            .is_some_and(|sure| !(0.0..=1.0).contains(&sure))
        {
            return Err(bad("'confidence' is a number from 0 to 1"));
        }
        match self.input_method.as_deref() {
            None | Some("text") => Ok(Input::text(self.text.as_str())),
            Some("voice") => Ok(Input::voice(self.text.as_str(), self.confidence)),
            Some(_) => Err(bad("'inputMethod' is \"text\" or \"voice\"")),
        }
    }
}

fn refused(problem: &HttpError) -> Response<Bytes> {
    answered(problem.status, &json!({ "error": problem.message }))
}

fn answered(status: StatusCode, body: &Value) -> Response<Bytes> {
    web::answer(status, "application/json", format!("{body}\n").into())
}

#[cfg(test)]
mod tests {
    use http::header::UPGRADE;

    use super::*;

    fn post(kind: Option<&str>, query: &str, body: &[u8]) -> Result<(Input, bool), HttpError> {
        let mut request = Request::post(format!("/input{query}"));
        if let Some(kind) = kind {
            request = request.header(CONTENT_TYPE, kind);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        read(&parts, body)
    }

    fn status(kind: Option<&str>, body: &[u8]) -> u16 {
        post(kind, "", body).unwrap_err().status.as_u16()
    }

    const JSON: Option<&str> = Some("application/json; charset=utf-8");

    #[test]
    fn a_plain_text_is_typed() {
        let read = post(Some("Text/Plain;charset=UTF-8"), "", "grüße".as_bytes());
        assert_eq!(read, Ok((Input::text("grüße"), false)));
    }

    #[test]
    fn json_names_the_input_method() {
        for (body, expected) in [
            (r#"{"text":"a"}"#, Input::text("a")),
            (
                r#"{"text":"a","inputMethod":"text","confidence":1}"#,
                Input::text("a"),
            ),
            (
                r#"{"text":"a","inputMethod":"voice","confidence":0.93,"more":[]}"#,
                Input::voice("a", Some(0.93)),
            ),
            (
                r#"{"inputMethod":"voice","text":"a","confidence":null}"#,
                Input::voice("a", None),
            ),
        ] {
            assert_eq!(
                post(JSON, "", body.as_bytes()),
                Ok((expected, false)),
                "{body}"
            );
        }
    }

    #[test]
    fn the_query_or_the_body_requests_waiting() {
        let waits = |query: &str, body: &str| post(JSON, query, body.as_bytes()).unwrap().1;
        for query in ["?wait", "?wait=1", "?a=b&wait=true"] {
            assert!(waits(query, r#"{"text":"a"}"#), "{query}");
        }
        for query in ["", "?wait=0", "?waiting=1"] {
            assert!(!waits(query, r#"{"text":"a"}"#), "{query}");
        }
        assert!(waits("", r#"{"text":"a","wait":true}"#));
    }

    #[test]
    fn a_plain_request_gets_a_description_of_the_server() {
        let response = web::upgrade_required(USAGE);
        assert_eq!(response.status(), 426);
        assert_eq!(response.headers()[UPGRADE], "websocket");
        let end = b"for Prometheus\nGET  /health    200 as long as it runs\n";
        assert!(response.body().ends_with(end));
    }

    #[test]
    fn errors_are_answered_with_a_status() {
        assert_eq!(status(None, b"a"), 415);
        assert_eq!(status(Some("application/x-www-form-urlencoded"), b"a"), 415);
        assert_eq!(status(Some("text/plain"), b"\xff"), 400);
        for body in [
            "",
            "[]",
            r#"["a"]"#,
            "\"a\"",
            "{}",
            r#"{"text":7}"#,
            r#"{"text":"a","inputMethod":"thought"}"#,
            r#"{"text":"a","confidence":1.5}"#,
            r#"{"text":"a","confidence":"high"}"#,
            r#"{"text":"a"} {"#,
        ] {
            assert_eq!(status(JSON, body.as_bytes()), 400, "{body}");
        }
        for (error, status) in [
            (HubError::Blank, 400),
            (HubError::TooLarge { size: 2, max: 1 }, 413),
            (HubError::NoClients, 503),
            (HubError::Busy, 503),
            (HubError::Closed, 503),
        ] {
            assert_eq!(HttpError::from(error).status.as_u16(), status);
        }
    }
}
