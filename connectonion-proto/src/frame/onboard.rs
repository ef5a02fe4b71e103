//! A server's replies to strangers and administrators: [`OnboardRequired`], [`OnboardSuccess`],
//! [`AdminResult`].

use rpc_core::json::lenient::{array, optional_id, optional_loose};
use rpc_core::{Json, Refused, Str, members};
use serde::{Deserialize, Serialize};

use super::number::Number;
use super::words::OnboardMethod;

members! {
    /// The client is a stranger, and this is how it can become a contact. ConnectOnion specification,
    /// *Trust Gate*.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(tag = "type", rename = "ONBOARD_REQUIRED")]
    pub struct OnboardRequired {
        /// The client's address.
        pub identity: Option<Str>,
        /// The methods: an array of [`OnboardMethod`]s, as it was sent.
        pub methods: Json as "array",
        /// The required payment.
        pub payment_amount: Option<Number>,
        /// The address for payments.
        pub payment_address: Option<Str>,
    }

    /// The stranger is a contact now; CONNECTED follows. ConnectOnion specification, *Trust Gate*.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(tag = "type", rename = "ONBOARD_SUCCESS")]
    pub struct OnboardSuccess {
        /// The client's address.
        pub identity: Option<Str>,
        /// The client's level, usually `contact`.
        pub level: Option<Str>,
        /// For people.
        pub message: Option<Str>,
    }

    /// The result of an [`AdminRequest`](super::AdminRequest). Not in the specification.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(tag = "type", rename = "ADMIN_RESULT")]
    pub struct AdminResult {
        /// The command: `promote`, `add_admin` and so on.
        pub action: Str,
        /// Whether it succeeded.
        pub success: Option<bool>,
        /// For people.
        pub message: Option<Str> as "optional_loose",
        /// The error, for people.
        pub error: Option<Str> as "optional_loose",
        /// The client's level.
        pub level: Option<Str>,
        /// The client.
        pub client_id: Option<Str> as "optional_id",
    }
}

impl OnboardRequired {
    /// Creates a frame that offers a stranger these methods.
    ///
    /// # Errors
    /// None in practice: words are JSON.
    pub fn new(identity: impl Into<Str>, methods: &[OnboardMethod]) -> Result<Self, Refused> {
        Ok(Self {
            identity: Some(identity.into()),
            methods: Json::of(methods)?,
            ..Self::default()
        })
    }
}

impl OnboardSuccess {
    /// Creates a frame for a stranger who has become a contact.
    pub fn new(identity: impl Into<Str>, level: impl Into<Str>, message: impl Into<Str>) -> Self {
        Self {
            identity: Some(identity.into()),
            level: Some(level.into()),
            message: Some(message.into()),
        }
    }
}

impl AdminResult {
    /// Creates a result.
    pub fn new(action: impl Into<Str>, success: bool) -> Self {
        Self {
            action: action.into(),
            success: Some(success),
            ..Self::default()
        }
    }
}
