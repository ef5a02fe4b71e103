//! [`install`] and [`respond`]: what the serving programs count, at `GET /metrics` in the text form
//! that Prometheus reads.

use std::net::SocketAddr;
use std::sync::OnceLock;
use std::time::Duration;

use bytes::Bytes;
use http::header::{FORWARDED, HeaderMap};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode, Uri};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use rpc_core::net::server::{Body, HttpConfig, is_guessable, is_read};
use rpc_core::{Secret, constant_time_eq};

use crate::cli::{Failure, complain, guessable, secret};
use crate::web::{answer, bearer, text};

/// The path of the metrics.
pub const PATH: &str = "/metrics";
/// The environment variable with the token of a scraper on another machine.
pub const TOKEN_VARIABLE: &str = "METRICS_TOKEN";

/// The version of the text form belongs to its type.
const KIND: &str = "text/plain; version=0.0.4; charset=utf-8";
/// The buckets of latencies, in seconds: answers at once, and answers of language models.
const SECONDS: [f64; 14] = [
    0.0001, 0.000_5, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0,
];
/// How often what was measured is sorted into its buckets, if it is not queried.
const UPKEEP: Duration = Duration::from_secs(5);

static METRICS: OnceLock<Metrics> = OnceLock::new();

struct Metrics {
    recorder: PrometheusHandle,
    token: Option<Secret>,
}

/// Counts from now on, for the whole program, and reads the token. Needs a tokio runtime.
///
/// # Errors
/// Another recorder is installed, such as by an earlier call, or the token cannot be used.
pub fn install() -> Result<(), Failure> {
    let buckets = Matcher::Suffix("_duration_seconds".to_owned());
    let builder = PrometheusBuilder::new().set_buckets_for_metric(buckets, &SECONDS);
    let builder = builder.map_err(Failure::new)?;
    let recorder = builder.build_recorder();
    let handle = recorder.handle();
    let token = secret(TOKEN_VARIABLE)?;
    if token.as_ref().is_some_and(is_short) {
        complain(format_args!("warning: {}", guessable(TOKEN_VARIABLE)));
    }
    metrics::set_global_recorder(recorder).map_err(Failure::new)?;
    rpc_core::net::telemetry::describe();
    let _ = METRICS.set(Metrics {
        recorder: handle.clone(),
        token,
    });
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(UPKEEP).await;
            handle.run_upkeep();
        }
    });
    Ok(())
}

fn token() -> Option<&'static Secret> {
    METRICS.get().and_then(|metrics| metrics.token.as_ref())
}

fn is_short(token: &Secret) -> bool {
    is_guessable(token.expose())
}

/// Lets a server refuse requests for the metrics of callers without the token.
///
/// This machine may ask, unless through a proxy; other callers need the token of
/// [`TOKEN_VARIABLE`].
pub fn guard(http: HttpConfig) -> HttpConfig {
    http.with_guessable_secret(|parts, peer| {
        let is_guessable = needs_token(parts, peer) && token().is_some_and(is_short);
        is_guessable.then_some(TOKEN_VARIABLE)
    })
    .with_authorize(|parts, peer| refusal(parts, peer, token()))
}

fn needs_token(parts: &Parts, peer: SocketAddr) -> bool {
    let mut forwarded = [FORWARDED.as_str(), "x-forwarded-for"].into_iter();
    let is_forwarded = forwarded.any(|name| parts.headers.contains_key(name));
    let is_local = peer.ip().to_canonical().is_loopback() && !is_forwarded;
    is_asked(&parts.method, &parts.uri) && !is_local
}

fn refusal(parts: &Parts, peer: SocketAddr, token: Option<&Secret>) -> Option<Response<Body>> {
    if !needs_token(parts, peer) || shows(&parts.headers, token) {
        return None;
    }
    let why = format!("show the token of {TOKEN_VARIABLE} as a bearer token");
    Some(text(StatusCode::UNAUTHORIZED, why).map(Body::from))
}

fn is_asked(method: &Method, uri: &Uri) -> bool {
    uri.path() == PATH && is_read(method)
}

/// Answers a request for the metrics that the [guard](guard) has passed; `None` if it is for something else.
pub fn respond<B>(request: &Request<B>) -> Option<Response<Bytes>> {
    if !is_asked(request.method(), request.uri()) {
        return None;
    }
    let rendered = METRICS.get().map(|metrics| metrics.recorder.render());
    Some(answer(
        StatusCode::OK,
        KIND,
        rendered.unwrap_or_default().into(),
    ))
}

fn shows(headers: &HeaderMap, token: Option<&Secret>) -> bool {
    let is_it =
        |token: &Secret, shown: &str| constant_time_eq(token.expose().as_bytes(), shown.as_bytes());
    token.is_some_and(|token| bearer(headers).any(|shown| is_it(token, shown)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The status of a refusal.
    fn status(peer: &str, headers: &[(&'static str, &str)], token: Option<&str>) -> Option<u16> {
        let mut request = Request::new(());
        *request.uri_mut() = PATH.parse().unwrap();
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        let (parts, token) = (request.into_parts().0, token.map(Secret::from));
        let refusal = refusal(&parts, peer.parse().unwrap(), token.as_ref());
        refusal.map(|response| response.status().as_u16())
    }

    #[test]
    fn this_machine_may_ask_and_others_with_the_token() {
        const HERE: &str = "127.0.0.1:1";
        const THERE: &str = "192.0.2.1:1";
        let right = ("authorization", "Bearer secret");
        assert_eq!(status(HERE, &[], None), None);
        assert_eq!(status("[::ffff:127.0.0.1]:1", &[], None), None);
        for proxy in ["forwarded", "x-forwarded-for"] {
            assert_eq!(status(HERE, &[(proxy, "for=192.0.2.1")], None), Some(401));
        }
        assert_eq!(status(THERE, &[], None), Some(401));
        assert_eq!(status(THERE, &[right], None), Some(401));
        assert_eq!(status(THERE, &[right], Some("secret")), None);
        assert_eq!(status(THERE, &[right], Some("another")), Some(401));
    }

    #[test]
    fn each_metric_says_what_it_is() {
        let recorder = PrometheusBuilder::new().build_recorder();
        metrics::with_local_recorder(&recorder, || {
            rpc_core::net::telemetry::describe();
            metrics::counter!("rpc_sent_bytes_total").increment(1);
            metrics::gauge!("rpc_server_connections").increment(1);
            metrics::histogram!("rpc_server_call_duration_seconds").record(1.0);
        });
        let text = recorder.handle().render();
        for name in [
            "rpc_sent_bytes_total",
            "rpc_server_connections",
            "rpc_server_call_duration_seconds",
        ] {
            for mark in ["HELP", "TYPE"] {
                assert!(text.contains(&format!("# {mark} {name} ")), "{text}");
            }
        }
    }

    #[test]
    fn other_paths_are_not_answered() {
        let mut request = Request::new(());
        *request.uri_mut() = "/".parse().unwrap();
        assert!(respond(&request).is_none());
        let peer = "192.0.2.1:1".parse().unwrap();
        assert!(refusal(&request.into_parts().0, peer, None).is_none());
    }
}
