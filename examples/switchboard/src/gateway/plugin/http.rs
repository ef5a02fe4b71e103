//! HTTP requests of plugins. These functions replace those of Extism, which follow redirects to
//! hosts that were not granted, and cannot be stopped.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use extism::{CurrentPlugin, EXTISM_ENV_MODULE, Error, Function, PTR, UserData, Val, ValType};
use reqwest::header::{ACCEPT_ENCODING, CONTENT_TYPE, HOST, HeaderMap, HeaderValue};
use reqwest::{Client, Method, Url};
use rpc_core::net::tls::TlsConfig;
use serde::Deserialize;
use tokio::runtime::Handle;

use super::capability::Hosts;
use super::stop::{Control, lock};
use crate::gateway::tool::{PluginError, PostError, short};

/// Most bytes of a response.
const MAX_ANSWER: usize = 8 << 20;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The hosts of one plugin, and the client to contact them.
pub(super) struct Http {
    hosts: Hosts,
    /// `None` without hosts.
    client: Option<Client>,
    runtime: Handle,
}

impl Http {
    /// Creates the client. Must be called on a Tokio runtime, which the requests use.
    ///
    /// # Errors
    /// [`PluginError::Invalid`] if TLS cannot be set up.
    pub(super) fn new(hosts: Hosts) -> Result<Self, PluginError> {
        let invalid = |why: String| PluginError::Invalid(why);
        let client = if hosts.is_empty() {
            None
        } else {
            let tls = TlsConfig::platform().map_err(|error| invalid(error.to_string()))?;
            let client = Client::builder()
                .tls_backend_preconfigured((**tls.as_rustls()).clone())
                .redirect(reqwest::redirect::Policy::none())
                .connect_timeout(CONNECT_TIMEOUT)
                .no_proxy()
                .user_agent(concat!("switchboard/", env!("CARGO_PKG_VERSION")))
                .build();
            Some(client.map_err(|error| invalid(error.to_string()))?)
        };
        let runtime = Handle::try_current().map_err(|error| invalid(error.to_string()))?;
        Ok(Self {
            hosts,
            client,
            runtime,
        })
    }

    /// Makes a request, if the host is granted, until the call is stopped.
    fn ask(&self, asked: &HttpRequest, body: Vec<u8>, control: &Control) -> Result<Answer, Error> {
        let url = Url::parse(&asked.url).map_err(|error| text(format!("bad address: {error}")))?;
        let host = url.host_str().unwrap_or_default();
        let client = match &self.client {
            Some(client) if self.hosts.allow(host) => client,
            _ => return Err(text(format!("HTTP request to {host} is not allowed"))),
        };
        let method = asked.method.as_deref().unwrap_or("GET");
        let method = Method::from_bytes(method.to_ascii_uppercase().as_bytes())?;
        let mut headers = HeaderMap::try_from(&asked.headers)?;
        // It would name another host than the one that was granted.
        headers.remove(HOST);
        plain(&mut headers);
        let mut request = client.request(method, url).headers(headers);
        if !body.is_empty() {
            request = request.body(body);
        }
        self.runtime.block_on(async {
            tokio::select! {
                biased;
                () = control.stopped() => Err(text("the call is stopped")),
                answer = answer(request) => answer,
            }
        })
    }

    /// Posts JSON, if the host is granted.
    pub(super) async fn post(&self, url: &str, body: Vec<u8>) -> Result<Vec<u8>, PostError> {
        let denied = |host: &str| PostError::Denied {
            host: host.to_owned(),
        };
        let url = Url::parse(url).map_err(|_| denied("unknown"))?;
        let host = url.host_str().unwrap_or("unknown");
        let client = match &self.client {
            Some(client) if self.hosts.allow(host) => client,
            _ => return Err(denied(host)),
        };
        let mut headers = HeaderMap::new();
        plain(&mut headers);
        let request = client.post(url).headers(headers);
        let request = request.header(CONTENT_TYPE, "application/json");
        let failed = |error: Error| PostError::Failed(short(&error.to_string()));
        let answer = answer(request.body(body)).await.map_err(failed)?;
        match answer.status {
            200..300 => Ok(answer.body),
            status => Err(PostError::Failed(format!("status {status}"))),
        }
    }
}

/// Asks for an answer that is not compressed, unless a plugin can read another.
fn plain(headers: &mut HeaderMap) {
    let asked = headers.entry(ACCEPT_ENCODING);
    asked.or_insert(HeaderValue::from_static("identity"));
}

async fn answer(request: reqwest::RequestBuilder) -> Result<Answer, Error> {
    // The plugin knows the address, and others should not.
    let plain = |error: reqwest::Error| Error::new(error.without_url());
    let mut response = request.send().await.map_err(plain)?;
    let mut answer = Answer {
        status: response.status().as_u16(),
        ..Answer::default()
    };
    for (name, value) in response.headers() {
        if let Ok(value) = value.to_str() {
            answer.headers.insert(name.to_string(), value.to_owned());
        }
    }
    while let Some(chunk) = response.chunk().await.map_err(plain)? {
        if answer.body.len() + chunk.len() > MAX_ANSWER {
            return Err(text(format!(
                "the answer is larger than {MAX_ANSWER} bytes"
            )));
        }
        answer.body.extend_from_slice(&chunk);
    }
    Ok(answer)
}

/// A request in the plugins' format.
#[derive(Deserialize)]
struct HttpRequest {
    url: String,
    #[serde(default)]
    headers: std::collections::HashMap<String, String>,
    method: Option<String>,
}

#[derive(Default)]
struct Answer {
    status: u16,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

/// The call that runs on the thread of the functions.
#[derive(Default)]
pub(super) struct Current {
    control: Mutex<Option<Arc<Control>>>,
    last: Mutex<Answer>,
}

impl Current {
    /// Sets the running call, or none.
    pub(super) fn set(&self, control: Option<Arc<Control>>) {
        *lock(&self.control) = control;
        *lock(&self.last) = Answer::default();
    }
}

/// Returns the functions for one thread.
pub(super) fn functions(http: &Arc<Http>, current: &Arc<Current>) -> [Function; 3] {
    let (http, request) = (http.clone(), current.clone());
    let (status, headers) = (current.clone(), current.clone());
    let none = || UserData::new(());
    let function = [
        Function::new("http_request", [PTR, PTR], [PTR], none(), {
            move |plugin, inputs, outputs, _| {
                let bytes = ask(&http, &request, plugin, inputs)?;
                give(plugin, outputs, &bytes)
            }
        }),
        Function::new("http_status_code", [], [ValType::I32], none(), {
            move |_, _, outputs, _| set(outputs, Val::I32(lock(&status.last).status.into()))
        }),
        Function::new("http_headers", [], [PTR], none(), {
            move |plugin, _, outputs, _| {
                let text = serde_json::to_vec(&lock(&headers.last).headers)?;
                give(plugin, outputs, &text)
            }
        }),
    ];
    function.map(|function| function.with_namespace(EXTISM_ENV_MODULE))
}

/// Makes the request in the plugin's memory. The host must free the two pieces of memory.
fn ask(
    http: &Http,
    current: &Current,
    plugin: &mut CurrentPlugin,
    inputs: &[Val],
) -> Result<Vec<u8>, Error> {
    let asked = take(plugin, inputs.first())?;
    let body = take(plugin, inputs.get(1))?;
    let asked: HttpRequest = rpc_core::json::from_slice(&asked)?;
    let control = lock(&current.control).clone();
    let control = control.ok_or_else(|| text("no call is running"))?;
    *lock(&current.last) = Answer::default();
    let mut answer = http.ask(&asked, body, &control)?;
    let body = std::mem::take(&mut answer.body);
    *lock(&current.last) = answer;
    Ok(body)
}

/// Takes a piece of the plugin's memory; empty if there is none.
fn take(plugin: &mut CurrentPlugin, value: Option<&Val>) -> Result<Vec<u8>, Error> {
    let Some(handle) = value.and_then(|value| plugin.memory_from_val(value)) else {
        return Ok(Vec::new());
    };
    let bytes = plugin.memory_bytes(handle)?.to_vec();
    plugin.memory_free(handle)?;
    Ok(bytes)
}

/// Puts bytes into the plugin's memory and returns their position.
fn give(plugin: &mut CurrentPlugin, outputs: &mut [Val], bytes: &[u8]) -> Result<(), Error> {
    let handle = plugin.memory_new(bytes)?;
    let place = plugin.memory_to_val(handle);
    set(outputs, place)
}

fn set(outputs: &mut [Val], value: Val) -> Result<(), Error> {
    *outputs
        .first_mut()
        .ok_or_else(|| text("no place for a result"))? = value;
    Ok(())
}

fn text(text: impl Into<String>) -> Error {
    Error::msg(text.into())
}
