//! [`find`] and [`look_up`]: the endpoint of an agent, and its claimed identity.

use std::borrow::Cow;

use rpc_core::json::find_member;
use rpc_core::net::DialError;
use rpc_core::net::ws::{WsDialer, redact_urls, urls};
use rpc_core::{DecodeError, Json};

use crate::auth::Address;
use crate::limits::WS_PATH;

/// The maximum size of a host's description of itself.
const MAX_DOCUMENT: usize = 1024 * 1024;
/// The maximum number of an agent's endpoints that are tried.
const MAX_ENDPOINTS: usize = 16;

/// An agent that answers at an endpoint.
#[derive(Clone)]
#[non_exhaustive]
pub struct AgentEndpoint {
    /// The URL of its WebSocket, for [`connect`](super::connect).
    pub url: String,
    /// Its claimed address, for [`ClientConfig::host`](crate::client::ClientConfig::host). Only the `https` of
    /// its endpoint proves it.
    pub address: Address,
    /// Its name.
    pub name: Option<String>,
    /// Its whole description, a JSON object: version, tools, accepted inputs.
    pub info: Json,
}

/// Why an agent was not found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FindError {
    /// The endpoint could not be reached. [`DialError::is_retryable`] says whether retrying may
    /// help.
    #[error(transparent)]
    Dial(#[from] DialError),
    /// The endpoint does not have the document. Retrying is safe, but only helps if it is busy.
    #[error("the server answered with the status {0}")]
    Status(u16),
    /// The document is invalid.
    #[error("the answer is unusable: {0}")]
    Document(String),
    /// Another agent answers there.
    #[error("another agent answers there: {found}")]
    Another {
        /// Its address.
        found: Address,
    },
    /// The relay knows no endpoint where the agent answers.
    #[error("the agent answers at no known endpoint")]
    Nowhere,
}

impl From<DecodeError> for FindError {
    fn from(error: DecodeError) -> Self {
        Self::Document(error.to_string())
    }
}

/// Asks the agent at this endpoint (`http(s)://host:port`, or its WebSocket's URL) for its
/// identity: GET `/info`. If `wanted` is set, another agent is an error.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/net/echo.inc"));
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let host = host().await?;
/// # let url = host.url();
/// # tokio::spawn(host.run());
/// # let url = url.replace("ws://", "http://").replace("/ws", "");
/// # let signer = connectonion_proto::auth::Signer::generate()?;
/// use connectonion_proto::client::ClientConfig;
/// use connectonion_proto::net;
///
/// let found = net::find(&url, None).await?; // http://127.0.0.1:8000
/// let options = ClientConfig { host: Some(found.address), ..ClientConfig::default() };
/// let (agent, _, connection) = net::connect(&found.url, signer, options).await?;
/// # tokio::spawn(connection.run());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Every [`FindError`] but [`Nowhere`](FindError::Nowhere). Retrying is safe.
///
/// # Cancel safety
/// Cancel-safe.
pub async fn find(endpoint: &str, wanted: Option<&Address>) -> Result<AgentEndpoint, FindError> {
    find_with(endpoint, wanted, |dialer| dialer).await
}

/// Like [`find`], with what a dialer may have besides its URL: headers, TLS, a resolver.
///
/// # Errors
/// As for [`find`].
///
/// # Cancel safety
/// Cancel-safe.
pub async fn find_with(
    endpoint: &str,
    wanted: Option<&Address>,
    prepare: impl Fn(WsDialer) -> WsDialer,
) -> Result<AgentEndpoint, FindError> {
    let (place, query) = endpoint.split_at(endpoint.find('?').unwrap_or(endpoint.len()));
    let base = place.trim_end_matches('/');
    let base = base.strip_suffix(WS_PATH).unwrap_or(base);
    let info = document(base, &format!("/info{query}"), prepare).await?;
    let text = |name: &str| find_member(info.get(), name)?.as_str().map(Cow::into_owned);
    let address = text("address").and_then(|address| Address::parse(&address).ok());
    let address = address.ok_or_else(|| FindError::Document("no address".to_owned()))?;
    if wanted.is_some_and(|wanted| *wanted != address) {
        return Err(FindError::Another { found: address });
    }
    let name = text("name");
    Ok(AgentEndpoint {
        url: format!("{base}{WS_PATH}{query}"),
        address,
        name,
        info,
    })
}

/// Asks a relay (`https://host`) for the endpoints of the agent with this address, and tries them:
/// this machine first, then private networks, then others. The relay's reply is not trusted, but it
/// decides which endpoints are tried. `prepare` adds what a dialer may have besides its URL; all of it
/// goes to the relay and to every endpoint that it names: no headers with secrets.
///
/// # Errors
/// Every [`FindError`]; [`Nowhere`](FindError::Nowhere) if the agent answers at no endpoint.
/// Retrying is safe.
///
/// # Cancel safety
/// Cancel-safe.
pub async fn look_up(
    address: &Address,
    relay: &str,
    prepare: impl Fn(WsDialer) -> WsDialer,
) -> Result<AgentEndpoint, FindError> {
    let (base, query) = relay.split_at(relay.find('?').unwrap_or(relay.len()));
    let path = format!("/api/agents/{address}{query}");
    let known = document(base.trim_end_matches('/'), &path, &prepare).await?;
    let endpoints = find_member(known.get(), "endpoints").ok_or(FindError::Nowhere)?;
    let endpoints: Vec<Json> = endpoints.parse()?;
    let mut places: Vec<String> = endpoints
        .into_iter()
        .filter_map(|place| place.as_str().map(Cow::into_owned))
        .filter(|place| place.starts_with("http://") || place.starts_with("https://"))
        // One endpoint is one server, which is asked who it is.
        .filter(|place| urls(place).nth(1).is_none())
        .take(MAX_ENDPOINTS)
        .collect();
    places.sort_by_key(|place| distance(place));
    for place in &places {
        if let Ok(found) = find_with(place, Some(address), &prepare).await {
            return Ok(found);
        }
    }
    Err(FindError::Nowhere)
}

/// Fetches a JSON object from below an endpoint, which may have a path itself.
async fn document(
    base: &str,
    path: &str,
    prepare: impl Fn(WsDialer) -> WsDialer,
) -> Result<Json, FindError> {
    let dialer = prepare(WsDialer::new(base)?);
    let first = urls(base).next().unwrap_or(base);
    let place = first.split_once("://").map_or(first, |(_, place)| place);
    let below = place.find('/').and_then(|at| place.get(at..));
    let path = format!("{}{path}", below.unwrap_or_default());
    let (status, body) = dialer.get(&path, MAX_DOCUMENT).await?;
    if status != 200 {
        return Err(FindError::Status(status));
    }
    let text = String::from_utf8(body).map_err(|error| FindError::Document(error.to_string()))?;
    let json = Json::new(&text)?;
    if json.first_byte() != b'{' {
        return Err(FindError::Document("it is not an object".to_owned()));
    }
    Ok(json)
}

/// Returns roughly how far away an endpoint is.
fn distance(place: &str) -> u8 {
    let host = place.split_once("://").map_or("", |(_, rest)| rest);
    let is_one_of = |begins: &[&str]| begins.iter().any(|begin| host.starts_with(begin));
    if is_one_of(&["localhost", "127.", "[::1]"]) {
        0
    } else if is_one_of(&["192.168.", "10.", "172.", "[fd", "[fe80"]) {
        1
    } else {
        2
    }
}

rpc_core::debug_fields!([] AgentEndpoint, this => {
    url: redact_urls(&this.url),
    address: this.address,
    name: this.name,
});

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    const ME: &str = "0x3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c";

    /// Serves every GET with the result of `answer` for its path.
    async fn place(answer: impl Fn(&str) -> String + Send + 'static) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut request = vec![0; 4096];
                let read = stream.read(&mut request).await.unwrap();
                let request = String::from_utf8_lossy(&request[..read]).into_owned();
                let path = request.split(' ').nth(1).unwrap_or_default();
                let body = answer(path);
                let status = if body.is_empty() { "404 No" } else { "200 OK" };
                let answer = format!("HTTP/1.1 {status}\r\n\r\n{body}");
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        base
    }

    fn info(path: &str) -> String {
        match path {
            "/info" => format!(r#"{{"name":"me","address":"{ME}","tools":[]}}"#),
            _ => String::new(),
        }
    }

    #[tokio::test]
    async fn an_agent_is_found_with_its_address() {
        let base = place(info).await;
        let me = Address::parse(ME).unwrap();
        for given in [base.clone(), format!("{base}/"), format!("{base}/ws")] {
            let found = find(&given, Some(&me)).await.unwrap();
            assert_eq!(found.address, me);
            assert_eq!(found.url, format!("{base}/ws"));
            assert_eq!(found.name.as_deref(), Some("me"));
            assert!(found.info.get().contains("tools"));
        }
        let below = place(|path| info(path.strip_prefix("/a/b").unwrap_or("/"))).await;
        for given in ["/a/b", "/a/b/", "/a/b/ws"] {
            let found = find(&format!("{below}{given}"), Some(&me)).await.unwrap();
            assert_eq!(found.url, format!("{below}/a/b/ws"));
        }
        let asks = place(|path| info(path.strip_suffix("?a=b").unwrap_or("/"))).await;
        let found = find(&format!("{asks}/ws?a=b"), None).await.unwrap();
        assert_eq!(found.url, format!("{asks}/ws?a=b"));
        let other = Address::parse(&ME.replace('3', "4")).unwrap();
        let another = find(&base, Some(&other)).await;
        assert!(matches!(another, Err(FindError::Another { found }) if found == me));
    }

    #[tokio::test]
    async fn a_url_without_an_agent_is_an_error() {
        for (body, expected) in [
            ("", "the server answered with the status 404"),
            ("[]", "the answer is unusable: it is not an object"),
            ("{}", "the answer is unusable: no address"),
            (r#"{"address":"0x1"}"#, "the answer is unusable: no address"),
        ] {
            let base = place(move |_| body.to_owned()).await;
            let error = find(&base, None).await.unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
        let nobody = find("http://127.0.0.1:1", None).await;
        assert!(matches!(nobody, Err(FindError::Dial(_))));
        assert!(matches!(
            find("ftp://h", None).await,
            Err(FindError::Dial(_))
        ));
    }

    #[tokio::test]
    async fn a_relay_lists_endpoints_and_the_agent_is_verified_there() {
        let me = Address::parse(ME).unwrap();
        let (mine, others) = (place(info).await, place(|_| "{}".to_owned()).await);
        let known = format!(r#"{{"online":true,"endpoints":["ftp://x","{others}","{mine}"]}}"#);
        let path = format!("/api/agents/{ME}");
        let relay = place(move |asked| {
            let answer = (asked == path).then(|| known.clone());
            answer.unwrap_or_default()
        });
        let found = look_up(&me, &relay.await, |dialer| dialer).await.unwrap();
        assert_eq!(found.url, format!("{mine}/ws"));
        let silent = place(|_| r#"{"online":false}"#.to_owned()).await;
        assert!(matches!(
            look_up(&me, &silent, |dialer| dialer).await,
            Err(FindError::Nowhere)
        ));
    }

    #[test]
    fn near_endpoints_are_tried_first() {
        let mut places = [
            "https://a.example",
            "http://10.0.0.7:1",
            "http://localhost:1",
        ];
        places.sort_by_key(|place| distance(place));
        assert_eq!(
            places,
            [
                "http://localhost:1",
                "http://10.0.0.7:1",
                "https://a.example"
            ]
        );
    }
}
