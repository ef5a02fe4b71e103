//! What a server says at its gate: [`OnboardRequired`], [`OnboardSuccess`], [`AdminResult`].

use std::borrow::Cow;

use rpc_core::Limits;
use rpc_core::decode::{DecodeError, FrameCopy, RawJson, SharedJson, SharedStr};
use serde::Serialize;

use super::body::Body;
use super::json::{Json, texts};
use super::keep::Keep;
use super::number::Number;
use super::word::{OnboardMethod, Word};
use crate::codec;

/// The client is a stranger, and this is how it can become a contact. ConnectOnion specification,
/// *Trust Gate*.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename = "ONBOARD_REQUIRED")]
#[non_exhaustive]
pub struct OnboardRequired<S = SharedStr, J = SharedJson> {
    /// The client's address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<S>,
    /// The ways in: an array of words, as it was sent.
    pub methods: J,
    /// What a payment has to be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payment_amount: Option<Number>,
    /// Where a payment goes to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payment_address: Option<S>,
}

impl OnboardRequired {
    /// A stranger may come in by these ways.
    ///
    /// # Errors
    /// None in practice: words are JSON.
    pub fn new(
        identity: impl Into<SharedStr>,
        methods: &[OnboardMethod],
    ) -> Result<Self, rpc_core::Refused> {
        let words = methods.iter().map(|method| Word::<_, &str>::Known(*method));
        let words: Vec<_> = words.collect();
        Ok(Self {
            identity: Some(identity.into()),
            methods: codec::to_json(&words)?,
            payment_amount: None,
            payment_address: None,
        })
    }

    /// Sets [`payment_amount`](Self::payment_amount) and, if it is known,
    /// [`payment_address`](Self::payment_address).
    #[must_use]
    pub fn with_payment(mut self, amount: impl Into<Number>, address: Option<SharedStr>) -> Self {
        self.payment_amount = Some(amount.into());
        self.payment_address = address;
        self
    }
}

impl<S, J: Json> OnboardRequired<S, J> {
    /// The ways in. At most [`Limits::max_items`].
    ///
    /// # Errors
    /// [`DecodeError`] if one is no string, or there are too many.
    pub fn methods(
        &self,
        limits: &Limits,
    ) -> Result<Vec<Word<OnboardMethod, Cow<'_, str>>>, DecodeError> {
        let words = texts(Some(&self.methods), limits).map_err(|error| error.under("methods"))?;
        Ok(words.into_iter().map(Word::parse).collect())
    }
}

impl<'a> OnboardRequired<Cow<'a, str>, RawJson<'a>> {
    pub(super) fn read(body: &Body<'a>) -> Result<Self, DecodeError> {
        let methods = body.array("methods")?;
        Ok(Self {
            identity: body.text_of("identity")?,
            methods: methods.ok_or_else(|| DecodeError::missing("methods"))?,
            payment_amount: body.number("payment_amount")?,
            payment_address: body.text_of("payment_address")?,
        })
    }

    pub(super) fn keep<K: Keep>(&self, how: &K) -> OnboardRequired<K::Text, K::Json> {
        OnboardRequired {
            identity: how.texts(&self.identity),
            methods: how.json(&self.methods),
            payment_amount: self.payment_amount,
            payment_address: how.texts(&self.payment_address),
        }
    }

    /// A copy whose pieces share one copy of the frame.
    #[must_use]
    pub fn to_shared(&self, copy: &FrameCopy<'_>) -> OnboardRequired {
        self.keep(copy)
    }
}

/// The stranger is a contact now; CONNECTED follows. ConnectOnion specification, *Trust Gate*.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename = "ONBOARD_SUCCESS")]
#[non_exhaustive]
pub struct OnboardSuccess<S = SharedStr> {
    /// The client's address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<S>,
    /// The client's level, `contact` as a rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<S>,
    /// For people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<S>,
}

impl OnboardSuccess {
    /// A stranger has come in.
    pub fn new(
        identity: impl Into<SharedStr>,
        level: impl Into<SharedStr>,
        message: impl Into<SharedStr>,
    ) -> Self {
        Self {
            identity: Some(identity.into()),
            level: Some(level.into()),
            message: Some(message.into()),
        }
    }
}

impl<'a> OnboardSuccess<Cow<'a, str>> {
    pub(super) fn read(body: &Body<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            identity: body.text_of("identity")?,
            level: body.text_of("level")?,
            message: body.text_of("message")?,
        })
    }

    pub(super) fn keep<K: Keep>(&self, how: &K) -> OnboardSuccess<K::Text> {
        OnboardSuccess {
            identity: how.texts(&self.identity),
            level: how.texts(&self.level),
            message: how.texts(&self.message),
        }
    }

    /// A copy whose pieces share one copy of the frame.
    #[must_use]
    pub fn to_shared(&self, copy: &FrameCopy<'_>) -> OnboardSuccess {
        self.keep(copy)
    }
}

/// What has become of an [`AdminRequest`](super::AdminRequest). Not in the specification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename = "ADMIN_RESULT")]
#[non_exhaustive]
pub struct AdminResult<S = SharedStr> {
    /// What was asked for: `promote`, `add_admin` and so on.
    pub action: S,
    /// Whether it was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub success: Option<bool>,
    /// For people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<S>,
    /// What was wrong, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<S>,
    /// The client's level.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<S>,
    /// The client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<S>,
}

impl AdminResult {
    /// What was asked for was done, or not.
    pub fn new(action: impl Into<SharedStr>, success: bool) -> Self {
        Self {
            action: action.into(),
            success: Some(success),
            message: None,
            error: None,
            level: None,
            client_id: None,
        }
    }
}

impl<'a> AdminResult<Cow<'a, str>> {
    pub(super) fn read(body: &Body<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            action: body.need("action")?,
            success: body.bool("success")?,
            message: body.loose("message")?,
            error: body.loose("error")?,
            level: body.text_of("level")?,
            client_id: body.id("client_id")?,
        })
    }

    pub(super) fn keep<K: Keep>(&self, how: &K) -> AdminResult<K::Text> {
        AdminResult {
            action: how.text(&self.action),
            success: self.success,
            message: how.texts(&self.message),
            error: how.texts(&self.error),
            level: how.texts(&self.level),
            client_id: how.texts(&self.client_id),
        }
    }

    /// A copy whose pieces share one copy of the frame.
    #[must_use]
    pub fn to_shared(&self, copy: &FrameCopy<'_>) -> AdminResult {
        self.keep(copy)
    }
}
