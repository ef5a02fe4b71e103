//! What a Close carries (RFC 6455, sections 5.5.1 and 7.4).

use super::FrameError;
use crate::message::CloseFrame;

/// Reads the payload of a Close.
pub(super) fn parse(payload: &[u8]) -> Result<Option<CloseFrame>, FrameError> {
    if payload.is_empty() {
        return Ok(None);
    }
    let Some((&code, reason)) = payload.split_first_chunk() else {
        return Err(FrameError::Protocol("a Close has half a code"));
    };
    let code = u16::from_be_bytes(code);
    if !may_be_sent(code) {
        return Err(FrameError::Protocol("a Close has a code that is not sent"));
    }
    let reason = std::str::from_utf8(reason)
        .map_err(|_| FrameError::NotUtf8("the reason of a Close is not UTF-8"))?;
    Ok(Some(CloseFrame::new(code, reason)))
}

/// The payload of a Close. A code that must not be sent leaves as a Close without one.
pub(super) fn payload(frame: Option<CloseFrame>) -> Vec<u8> {
    match frame {
        Some(frame) if may_be_sent(frame.code) => {
            let CloseFrame { code, reason } = CloseFrame::new(frame.code, frame.reason);
            [&code.to_be_bytes(), reason.as_bytes()].concat()
        }
        _ => Vec::new(),
    }
}

/// Codes with a meaning on the wire: those of the registry, of libraries and of applications.
const fn may_be_sent(code: u16) -> bool {
    matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_close_is_read_as_it_was_written() {
        for frame in [
            None,
            Some(CloseFrame::new(1000, "")),
            Some(CloseFrame::new(4999, "gone fishing")),
        ] {
            assert_eq!(parse(&payload(frame.clone())), Ok(frame));
        }
    }

    #[test]
    fn half_a_code_is_refused() {
        assert!(matches!(parse(&[3]), Err(FrameError::Protocol(_))));
    }

    #[test]
    fn codes_that_are_not_for_the_wire_are_refused_and_not_written() {
        for code in [0_u16, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65_535] {
            let refused = parse(&code.to_be_bytes());
            assert!(matches!(refused, Err(FrameError::Protocol(_))), "{code}");
            assert!(payload(Some(CloseFrame::new(code, "x"))).is_empty());
        }
    }

    #[test]
    fn a_reason_that_is_not_utf8_is_refused_as_text() {
        let refused = parse(b"\x03\xe8\xff").unwrap_err();
        assert_eq!(refused.close_code(), 1007);
    }
}
