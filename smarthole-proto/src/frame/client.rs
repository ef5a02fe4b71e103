//! [`ClientFrame`]: a registration or a response.

use rpc_core::json::{self, DecodeErrorKind};
use rpc_core::{DecodeError, Json, Limits, tagged};

use super::response::Response;

tagged! {
    /// One frame of the client, as a server reads it. SmartHole specification, *Messages*.
    ///
    /// A server ignores unknown frames, and a `message`.
    ///
    /// ```
    /// use smarthole_proto::frame::{Answer, ClientFrame};
    /// use smarthole_proto::limits::defaults;
    ///
    /// let text = r#"{"type":"response","payload":{"messageId":"msg-1","type":"ack","payload":{}}}"#;
    /// let ClientFrame::Response(response) = ClientFrame::decode(text, &defaults())? else { panic!() };
    /// assert_eq!((response.message_id.as_str(), response.answer), ("msg-1", Answer::Ack));
    /// # Ok::<(), rpc_core::DecodeError>(())
    /// ```
    #[derive(Clone, PartialEq)]
    pub enum ClientFrame by "type" {
        /// The client introduces itself. Raw, because an invalid payload is answered with a code:
        /// [`validate::payload`](crate::validate::payload) parses it.
        "registration" => Registration(Json) in "payload",
        /// The client responds to a message.
        "response" => Response(Response) in "payload",
    }
}

rpc_core::debug_fields!([] ClientFrame, this => { tag: this.tag() });

impl ClientFrame {
    /// Decodes a frame. A server ignores text that does not decode.
    ///
    /// # Errors
    /// [`DecodeError`] if the text is not an object, has no string `type`, is a registration
    /// without a `payload`, or a response with an invalid one.
    pub fn decode(text: &str, limits: &Limits) -> Result<Self, DecodeError> {
        json::decode(text, limits).map_err(|error| match (error.kind(), error.path()) {
            // The answer's own payload.
            (DecodeErrorKind::WrongType { .. }, ["payload", "payload"]) => {
                error.with_kind(DecodeErrorKind::NotAnObject)
            }
            _ => error,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Answer, Registration};

    fn decode(text: &str) -> Result<ClientFrame, DecodeError> {
        ClientFrame::decode(text, &Limits::default())
    }

    #[test]
    fn a_registration_omits_absent_members() {
        let mut registration = Registration::new("a", "d");
        assert_eq!(
            serde_json::to_string(&registration.frame()).unwrap(),
            r#"{"type":"registration","payload":{"name":"a","description":"d"}}"#
        );
        registration.version = Some("1".into());
        registration.capabilities = vec!["x".into()];
        assert_eq!(
            serde_json::to_string(&registration.frame()).unwrap(),
            r#"{"type":"registration","payload":{"name":"a","description":"d","version":"1","capabilities":["x"]}}"#
        );
    }

    #[test]
    fn the_payload_may_come_before_its_type() {
        for payload in [
            r#"{"messageId":"m","type":"ack","payload":{}}"#,
            r#"{"payload":{"reason":"no"},"messageId":"m","type":"reject"}"#,
            r#"{"type":"notification","messageId":"m","payload":{"body":"a\nb","x":1}}"#,
        ] {
            let before = format!(r#"{{"payload":{payload},"type":"response"}}"#);
            let behind = format!(r#"{{"type":"response","payload":{payload},"x":[1]}}"#);
            let (before, behind) = (decode(&before).unwrap(), decode(&behind).unwrap());
            assert_eq!(before, behind);
        }
    }

    #[test]
    fn frames_of_original_clients_are_accepted() {
        for (payload, answer) in [
            (r#"{"messageId":"m","type":"ack"}"#, Answer::Ack),
            (
                r#"{"messageId":"m","type":"ack","payload":null}"#,
                Answer::Ack,
            ),
            (
                r#"{"messageId":"m","type":"ack","payload":[]}"#,
                Answer::Ack,
            ),
            (
                r#"{"messageId":"m","type":"ack","payload":{"a":1}}"#,
                Answer::Ack,
            ),
            (r#"{"messageId":"m","type":"ack","payload":7}"#, Answer::Ack),
            (
                r#"{"messageId":"m","type":"reject","payload":{"reason":null}}"#,
                Answer::reject(None),
            ),
        ] {
            let text = format!(r#"{{"type":"response","payload":{payload}}}"#);
            let ClientFrame::Response(response) = decode(&text).unwrap() else {
                panic!("no response");
            };
            assert_eq!(
                (response.message_id.as_str(), response.answer),
                ("m", answer)
            );
        }
    }

    #[test]
    fn a_response_with_a_wrong_body_is_a_loud_error() {
        for (payload, path) in [
            ("null", &[][..]),
            ("7", &["payload"]),
            ("[]", &["payload"]),
            ("{}", &["payload"]),
            (r#"{"messageId":"m"}"#, &["payload"]),
            (r#"{"type":"ack"}"#, &["payload"]),
            (
                r#"{"messageId":["m"],"type":"ack"}"#,
                &["payload", "messageId"],
            ),
            (r#"{"messageId":"m","type":"reject"}"#, &["payload"]),
            (
                r#"{"messageId":"m","type":"reject","payload":null}"#,
                &["payload"],
            ),
            (
                r#"{"messageId":"m","type":"reject","payload":[]}"#,
                &["payload", "payload"],
            ),
            (
                r#"{"messageId":"m","type":"reject","payload":{"reason":7}}"#,
                &["payload", "payload", "reason"],
            ),
            (
                r#"{"messageId":"m","type":"notification","payload":{"title":7}}"#,
                &["payload", "payload", "title"],
            ),
            (
                r#"{"messageId":"m","type":"notification","payload":{"priority":"urgent"}}"#,
                &["payload", "payload", "priority"],
            ),
            (
                r#"{"messageId":"m","type":"notification","payload":{"priority":1}}"#,
                &["payload", "payload", "priority"],
            ),
        ] {
            let text = format!(r#"{{"type":"response","payload":{payload}}}"#);
            let error = decode(&text).unwrap_err();
            assert_eq!(error.path(), path, "{text}");
        }
    }

    #[test]
    fn a_text_without_type_or_payload_is_not_a_frame() {
        for text in [
            "",
            "null",
            "7",
            "[]",
            r#"["registration"]"#,
            "{}",
            r#"{"payload":{}}"#,
            r#"{"type":7,"payload":{}}"#,
            r#"{"type":"registration"}"#,
            r#"{"type":"response"}"#,
            r#"{"type":"ack","type":"ack"}"#,
            r#"{"type":"registration","payload":{}"#,
        ] {
            assert!(decode(text).is_err(), "{text}");
        }
        for payload in ["null", "7", r#""x""#, "[]"] {
            let text = format!(r#"{{"type":"registration","payload":{payload}}}"#);
            assert!(matches!(decode(&text), Ok(ClientFrame::Registration(_))));
        }
    }
}
