//! The errors of NATS as [`StoreError`]s.

use std::error::Error;
use std::io;

use async_nats::client::{RequestError, RequestErrorKind};
use async_nats::jetstream::{self, ErrorCode};
use async_nats::{ConnectError, ConnectErrorKind};

use crate::store::StoreError;

/// Why there is no connection.
pub(super) fn of_connect(error: &ConnectError) -> StoreError {
    let inner = error.source().and_then(|it| it.downcast_ref::<io::Error>());
    let inner = inner.and_then(io::Error::get_ref);
    match error.kind() {
        ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
            StoreError::Denied {
                message: "the credentials are wrong".to_owned(),
            }
        }
        ConnectErrorKind::ServerParse => StoreError::config(error),
        _ => match inner.and_then(|it| it.downcast_ref::<rustls::Error>()) {
            Some(rustls::Error::InvalidCertificate(why)) => StoreError::config(format_args!(
                "the certificate of NATS is not trusted: {why}"
            )),
            Some(error) => StoreError::config(format_args!("there is no TLS with NATS: {error}")),
            None => StoreError::unavailable(error),
        },
    }
}

/// Why a request has no answer.
pub(super) fn of_request(error: &RequestError) -> StoreError {
    match error.kind() {
        RequestErrorKind::MaxPayloadExceeded => StoreError::TooLarge,
        RequestErrorKind::InvalidSubject => StoreError::config(error),
        _ => StoreError::unavailable(error),
    }
}

/// What JetStream answers.
pub(super) fn of_answer(error: &jetstream::Error) -> StoreError {
    let message = error.to_string();
    match error.error_code() {
        ErrorCode::STREAM_WRONG_LAST_SEQUENCE => StoreError::Conflict,
        ErrorCode::STREAM_STORE_FAILED
        | ErrorCode::ACCOUNT_RESOURCES_EXCEEDED
        | ErrorCode::STORAGE_RESOURCES_EXCEEDED
        | ErrorCode::MEMORY_RESOURCES_EXCEEDED
        | ErrorCode::INSUFFICIENT_RESOURCES => StoreError::Full { message },
        ErrorCode::STREAM_MESSAGE_EXCEEDS_MAXIMUM => StoreError::TooLarge,
        ErrorCode::JETSTREAM_NOT_ENABLED | ErrorCode::JETSTREAM_NOT_ENABLED_FOR_ACCOUNT => {
            StoreError::config("JetStream is off: start nats-server with -js")
        }
        ErrorCode::STREAM_REPLICAS_NOT_SUPPORTED | ErrorCode::STREAM_SUBJECT_OVERLAP => {
            StoreError::Config { message }
        }
        // The server is starting, or has no leader.
        _ if error.code() == 503 => StoreError::Unavailable { message },
        _ => StoreError::Failed { message },
    }
}
