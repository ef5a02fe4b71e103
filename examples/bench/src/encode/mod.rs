//! Goal 4: writing frames into a buffer that is used again.

mod ours;
mod sonic;
mod to_writer;

use crate::text;
use crate::work::Work;

pub(crate) fn works() -> Vec<Work> {
    vec![
        Work::new(
            "4",
            "encode Exoclaw text event, 100 B",
            100,
            ours::text_small,
        )
        .beside("to_writer", to_writer::text_small)
        .beside("sonic-rs", sonic::text_small)
        .allocating(0.0),
        Work::new("4", "encode Exoclaw text event, 1 KB", 1_000, ours::text_1k)
            .beside("to_writer", to_writer::text_1k)
            .beside("sonic-rs", sonic::text_1k)
            .allocating(0.0),
        Work::new(
            "4",
            "encode Exoclaw text event with escapes, 1 KB",
            1_000,
            ours::text_code,
        )
        .beside("to_writer", to_writer::text_code)
        .beside("sonic-rs", sonic::text_code)
        .allocating(0.0),
        Work::new(
            "4",
            "encode Exoclaw text event, 200 KB",
            200_000,
            ours::text_200k,
        )
        .beside("to_writer", to_writer::text_200k)
        .beside("sonic-rs", sonic::text_200k)
        .allocating(0.0),
        Work::new(
            "4",
            "encode Exoclaw tool use, raw input of 200 KB",
            200_000,
            ours::tool,
        )
        .beside("to_writer", to_writer::tool)
        .allocating(0.0),
        Work::new(
            "4",
            "encode Snek send_message, 100 B",
            100,
            ours::send_message,
        )
        .beside("to_writer", to_writer::send_message)
        .beside("sonic-rs", sonic::send_message)
        .allocating(0.0),
        Work::new("4", "encode Snek message event, 120 B", 120, ours::message)
            .beside("to_writer", to_writer::message)
            .beside("sonic-rs", sonic::message)
            .allocating(0.0),
        Work::new("4", "encode Exoclaw usage event", 100, ours::usage)
            .beside("to_writer", to_writer::usage)
            .beside("sonic-rs", sonic::usage)
            .allocating(0.0),
    ]
}

/// All write the same bytes.
pub(crate) fn assert_same() {
    for content in [
        text::words(45),
        text::code(970),
        "é\u{1}\u{7f}\\/".to_owned(),
    ] {
        let ours = ours::written(&content);
        assert_eq!(ours, to_writer::written(&content));
        assert_eq!(ours, sonic::written(&content));
        assert_eq!(ours, text::exoclaw_text(&content).into_bytes());
    }
    assert_eq!(ours::measured(), text::USAGE.as_bytes());
    assert_eq!(
        ours::pushed("a \"b\""),
        text::snek_message("a \"b\"").into_bytes()
    );
    assert_eq!(ours::sent(), text::SEND_MESSAGE.as_bytes());
    assert_eq!(to_writer::sent(), text::SEND_MESSAGE.as_bytes());
}
