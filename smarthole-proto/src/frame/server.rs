//! [`ServerFrame`]: the answer to a registration, or a message.

use rpc_core::{DecodeError, Limits, json, tagged};

use super::message::Message;
use super::registration::RegistrationResponse;

tagged! {
    /// One frame of the server, as a client reads it. SmartHole specification, *Messages*.
    ///
    /// A client ignores unknown frames.
    ///
    /// ```
    /// use smarthole_proto::frame::ServerFrame;
    /// use smarthole_proto::limits::defaults;
    ///
    /// let text = r#"{"type":"message","payload":{"id":"msg-1","text":"buy milk","timestamp":"t"}}"#;
    /// let ServerFrame::Message(message) = ServerFrame::decode(text, &defaults())? else { panic!() };
    /// assert_eq!(message.text, "buy milk");
    /// # Ok::<(), rpc_core::DecodeError>(())
    /// ```
    #[derive(Clone, PartialEq)]
    pub enum ServerFrame by "type" {
        /// The answer to a registration.
        "registration_response" => RegistrationResponse(RegistrationResponse) in "payload",
        /// A message for the client.
        "message" => Message(Message) in "payload",
    }
}

rpc_core::debug_fields!([] ServerFrame, this => { tag: this.tag() });

impl ServerFrame {
    /// Decodes a frame.
    ///
    /// # Errors
    /// [`DecodeError`] if the text is not an object, has no string `type`, or is of a known type
    /// with an invalid `payload`.
    pub fn decode(text: &str, limits: &Limits) -> Result<Self, DecodeError> {
        json::decode(text, limits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{InputMethod, Metadata};

    fn decode(text: &str) -> Result<ServerFrame, DecodeError> {
        ServerFrame::decode(text, &Limits::default())
    }

    #[test]
    fn variants_of_other_servers_are_accepted() {
        for (text, written) in [
            (
                r#"{"type":"registration_response","payload":{"success":true,"clientId":null}}"#,
                r#"{"type":"registration_response","payload":{"success":true}}"#,
            ),
            (
                r#"{"payload":{"code":"LATER","success":false,"x":1},"type":"registration_response"}"#,
                r#"{"type":"registration_response","payload":{"success":false,"code":"LATER"}}"#,
            ),
            (
                r#"{"payload":{"id":7,"text":"a\nb","timestamp":"t","metadata":null},"type":"message"}"#,
                r#"{"type":"message","payload":{"id":"7","text":"a\nb","timestamp":"t","metadata":{"inputMethod":"text","directRouted":false}}}"#,
            ),
            (
                r#"{"type":"message","payload":{"id":"1","text":"","timestamp":"t","metadata":{"inputMethod":"touch","confidence":null,"routingReason":null,"source":"x"}}}"#,
                r#"{"type":"message","payload":{"id":"1","text":"","timestamp":"t","metadata":{"inputMethod":"touch","directRouted":false}}}"#,
            ),
        ] {
            let frame = decode(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(serde_json::to_string(&frame).unwrap(), written);
        }
    }

    #[test]
    fn a_known_frame_with_a_wrong_body_is_a_loud_error() {
        for (text, path) in [
            (r#"{"type":"message"}"#, &[][..]),
            (r#"{"type":"message","payload":null}"#, &[]),
            (r#"{"type":"message","payload":7}"#, &["payload"]),
            (
                r#"{"type":"message","payload":{"text":"a","timestamp":"t"}}"#,
                &["payload"],
            ),
            (
                r#"{"type":"message","payload":{"id":"1","text":7}}"#,
                &["payload", "text"],
            ),
            (
                r#"{"type":"message","payload":{"metadata":{"confidence":"x"}}}"#,
                &["payload", "metadata", "confidence"],
            ),
            (
                r#"{"type":"registration_response","payload":{}}"#,
                &["payload"],
            ),
            (
                r#"{"type":"registration_response","payload":{"success":"yes"}}"#,
                &["payload", "success"],
            ),
            (r#"{"type":7}"#, &["type"]),
        ] {
            assert_eq!(decode(text).unwrap_err().path(), path, "{text}");
        }
    }

    #[test]
    fn an_invalid_confidence_is_omitted() {
        for confidence in [f64::NAN, f64::INFINITY] {
            let metadata = Metadata {
                input_method: InputMethod::Voice,
                confidence: Some(confidence),
                ..Metadata::default()
            };
            assert_eq!(
                serde_json::to_string(&metadata).unwrap(),
                r#"{"inputMethod":"voice","directRouted":false}"#
            );
        }
    }
}
