//! [`Status`]: what a server is and what it has to do.

use std::borrow::Cow;

use rpc_core::Limits;
use rpc_core::decode::{self, DecodeError, Field, Members, Reader, Slot};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::open::{Extra, owned};
use crate::limits::{CAPABILITIES, PROTOCOL_VERSION};
use crate::wire::{again, count, strings, text};

/// What a server is and what it has to do: `status.result`, and the body of `GET /v1/status`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Status<'a> {
    /// Whether the server is well; known servers always are.
    pub ok: bool,
    /// The protocol's version, `1`. It proves nothing: all known servers tell the same.
    pub protocol_version: Cow<'a, str>,
    /// What the server can do: words between commas. See
    /// [`capability_words`](Self::capability_words).
    pub capabilities: Cow<'a, str>,
    /// The model that is used by default.
    pub model: Cow<'a, str>,
    /// The server's own address.
    pub service: Cow<'a, str>,
    /// The models' providers; seen: `anthropic`, `google`, `openai`, `vercel`.
    pub providers: Vec<Cow<'a, str>>,
    /// Providers that a key is known for. Servers from 0.22.
    pub provider_auth: Vec<Cow<'a, str>>,
    /// Tasks that are remembered.
    pub tasks_total: u64,
    /// Tasks that run.
    pub tasks_running: u64,
    /// Tasks that run for nobody. Servers up to 0.21.
    pub tasks_detached: u64,
    /// Chats of all connections that wait.
    pub rpc_queue_length: u64,
    /// Members that this crate does not know. Real clients want texts, numbers, booleans and lists
    /// of texts here.
    pub extra: Extra<'a>,
}

impl<'a> Status<'a> {
    /// A server with this model and address and with nothing to do.
    pub fn new(model: impl Into<Cow<'a, str>>, service: impl Into<Cow<'a, str>>) -> Self {
        Self {
            ok: true,
            protocol_version: Cow::Borrowed(PROTOCOL_VERSION),
            capabilities: Cow::Borrowed(CAPABILITIES),
            model: model.into(),
            service: service.into(),
            providers: Vec::new(),
            provider_auth: Vec::new(),
            tasks_total: 0,
            tasks_running: 0,
            tasks_detached: 0,
            rpc_queue_length: 0,
            extra: Extra::default(),
        }
    }

    /// Adds a provider.
    #[must_use]
    pub fn with_provider(mut self, provider: impl Into<Cow<'a, str>>) -> Self {
        self.providers.push(provider.into());
        self
    }

    /// Sets the numbers of tasks and of chats that wait.
    #[must_use]
    pub const fn with_load(mut self, total: u64, running: u64, queued: u64) -> Self {
        self.tasks_total = total;
        self.tasks_running = running;
        self.rpc_queue_length = queued;
        self
    }

    /// The words of [`capabilities`](Self::capabilities), without the space around them.
    pub fn capability_words(&self) -> impl Iterator<Item = &str> {
        let words = self.capabilities.split(',').map(str::trim);
        words.filter(|word| !word.is_empty())
    }

    /// A copy that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> Status<'static> {
        Status {
            ok: self.ok,
            protocol_version: owned(self.protocol_version),
            capabilities: owned(self.capabilities),
            model: owned(self.model),
            service: owned(self.service),
            providers: self.providers.into_iter().map(owned).collect(),
            provider_auth: self.provider_auth.into_iter().map(owned).collect(),
            tasks_total: self.tasks_total,
            tasks_running: self.tasks_running,
            tasks_detached: self.tasks_detached,
            rpc_queue_length: self.rpc_queue_length,
            extra: self.extra.into_owned(),
        }
    }
}

#[derive(Default)]
struct StatusMembers<'a> {
    ok: Slot<bool>,
    protocol_version: Slot<Cow<'a, str>>,
    capabilities: Slot<Cow<'a, str>>,
    model: Slot<Cow<'a, str>>,
    service: Slot<Cow<'a, str>>,
    providers: Slot<Vec<Cow<'a, str>>>,
    provider_auth: Slot<Vec<Cow<'a, str>>>,
    tasks_total: Slot<u64>,
    tasks_running: Slot<u64>,
    tasks_detached: Slot<u64>,
    rpc_queue_length: Slot<u64>,
    extra: Extra<'a>,
}

impl<'a> Members<'a> for StatusMembers<'a> {
    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        match name {
            "ok" => field.bool("ok", again(&mut self.ok)),
            "protocol_version" => {
                field.read("protocol_version", again(&mut self.protocol_version), text)
            }
            "capabilities" => field.read("capabilities", again(&mut self.capabilities), text),
            "model" => field.read("model", again(&mut self.model), text),
            "service" => field.read("service", again(&mut self.service), text),
            "providers" => field.read("providers", again(&mut self.providers), strings),
            "provider_auth" => field.read("provider_auth", again(&mut self.provider_auth), strings),
            "tasks_total" => field.read("tasks_total", again(&mut self.tasks_total), count),
            "tasks_running" => field.read("tasks_running", again(&mut self.tasks_running), count),
            "tasks_detached" => {
                field.read("tasks_detached", again(&mut self.tasks_detached), count)
            }
            "rpc_queue_length" => {
                field.read("rpc_queue_length", again(&mut self.rpc_queue_length), count)
            }
            _ => self.extra.member(name, field),
        }
    }
}

impl<'a> Status<'a> {
    /// Decodes the body of `GET /v1/status`. What is absent is empty or zero: look at the
    /// [version](Self::protocol_version).
    ///
    /// # Errors
    /// [`DecodeError`] if the text is no object, or `ok` neither true nor false. Decoding it again
    /// fails again.
    pub fn decode(json: &'a str, limits: &Limits) -> Result<Self, DecodeError> {
        decode::object::<StatusMembers<'a>>(json, limits).map(StatusMembers::status)
    }

    /// A status; `None` is null.
    pub(super) fn read(reader: &mut Reader<'a>) -> Result<Option<Self>, DecodeError> {
        Ok(reader.object()?.map(StatusMembers::status))
    }
}

impl<'a> StatusMembers<'a> {
    fn status(self) -> Status<'a> {
        Status {
            ok: self.ok.take().unwrap_or(true),
            protocol_version: self.protocol_version.take().unwrap_or_default(),
            capabilities: self.capabilities.take().unwrap_or_default(),
            model: self.model.take().unwrap_or_default(),
            service: self.service.take().unwrap_or_default(),
            providers: self.providers.take().unwrap_or_default(),
            provider_auth: self.provider_auth.take().unwrap_or_default(),
            tasks_total: self.tasks_total.take().unwrap_or_default(),
            tasks_running: self.tasks_running.take().unwrap_or_default(),
            tasks_detached: self.tasks_detached.take().unwrap_or_default(),
            rpc_queue_length: self.rpc_queue_length.take().unwrap_or_default(),
            extra: self.extra,
        }
    }
}

/// Writes both `provider_auth` and `tasks_detached`, so that clients of all versions are content.
impl Serialize for Status<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut to = serializer.serialize_map(None)?;
        to.serialize_entry("ok", &self.ok)?;
        to.serialize_entry("providers", &self.providers)?;
        to.serialize_entry("provider_auth", &self.provider_auth)?;
        to.serialize_entry("model", &self.model)?;
        to.serialize_entry("protocol_version", &self.protocol_version)?;
        to.serialize_entry("capabilities", &self.capabilities)?;
        to.serialize_entry("service", &self.service)?;
        to.serialize_entry("tasks_total", &self.tasks_total)?;
        to.serialize_entry("tasks_running", &self.tasks_running)?;
        to.serialize_entry("tasks_detached", &self.tasks_detached)?;
        to.serialize_entry("rpc_queue_length", &self.rpc_queue_length)?;
        self.extra.write(&mut to)?;
        to.end()
    }
}
