//! What a server says at its gate: [`OnboardRequired`], [`OnboardSuccess`], [`AdminResult`].

use rpc_core::json::lenient::array;
use rpc_core::{DecodeError, Json, Limits, Refused, Str};
use serde::{Deserialize, Serialize};

use super::json::{list, opt};
use super::number::Number;
use super::words::OnboardMethod;

/// The client is a stranger, and this is how it can become a contact. ConnectOnion specification,
/// *Trust Gate*.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "ONBOARD_REQUIRED")]
#[non_exhaustive]
pub struct OnboardRequired {
    /// The client's address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<Str>,
    /// The ways in: an array of words, as it was sent.
    #[serde(deserialize_with = "array")]
    pub methods: Json,
    /// What a payment has to be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payment_amount: Option<Number>,
    /// Where a payment goes to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payment_address: Option<Str>,
}

impl OnboardRequired {
    /// A stranger may come in by these ways.
    ///
    /// # Errors
    /// None in practice: words are JSON.
    pub fn new(identity: impl Into<Str>, methods: &[OnboardMethod]) -> Result<Self, Refused> {
        Ok(Self {
            identity: Some(identity.into()),
            methods: Json::of(methods)?,
            payment_amount: None,
            payment_address: None,
        })
    }

    /// Sets [`payment_amount`](Self::payment_amount) and, if it is known,
    /// [`payment_address`](Self::payment_address).
    #[must_use]
    pub fn with_payment(mut self, amount: impl Into<Number>, address: Option<Str>) -> Self {
        self.payment_amount = Some(amount.into());
        self.payment_address = address;
        self
    }

    /// The ways in. At most [`Limits::max_items`].
    ///
    /// # Errors
    /// [`DecodeError`] if one is no string, or there are too many.
    pub fn methods(&self, limits: &Limits) -> Result<Vec<OnboardMethod>, DecodeError> {
        list(Some(&self.methods), limits).map_err(|error| error.under("methods"))
    }
}

/// The stranger is a contact now; CONNECTED follows. ConnectOnion specification, *Trust Gate*.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "ONBOARD_SUCCESS")]
#[non_exhaustive]
pub struct OnboardSuccess {
    /// The client's address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<Str>,
    /// The client's level, `contact` as a rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<Str>,
    /// For people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Str>,
}

impl OnboardSuccess {
    /// A stranger has come in.
    pub fn new(identity: impl Into<Str>, level: impl Into<Str>, message: impl Into<Str>) -> Self {
        Self {
            identity: Some(identity.into()),
            level: Some(level.into()),
            message: Some(message.into()),
        }
    }
}

/// What has become of an [`AdminRequest`](super::AdminRequest). Not in the specification.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "ADMIN_RESULT")]
#[non_exhaustive]
pub struct AdminResult {
    /// What was asked for: `promote`, `add_admin` and so on.
    pub action: Str,
    /// Whether it was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub success: Option<bool>,
    /// For people.
    #[serde(default, with = "opt::loose", skip_serializing_if = "Option::is_none")]
    pub message: Option<Str>,
    /// What was wrong, for people.
    #[serde(default, with = "opt::loose", skip_serializing_if = "Option::is_none")]
    pub error: Option<Str>,
    /// The client's level.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<Str>,
    /// The client.
    #[serde(default, with = "opt::id", skip_serializing_if = "Option::is_none")]
    pub client_id: Option<Str>,
}

impl AdminResult {
    /// What was asked for was done, or not.
    pub fn new(action: impl Into<Str>, success: bool) -> Self {
        Self {
            action: action.into(),
            success: Some(success),
            ..Self::default()
        }
    }
}
