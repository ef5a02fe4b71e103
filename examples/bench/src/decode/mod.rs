//! Goals 1, 2 and 3: reading frames.

#[expect(dead_code, reason = "reading them is all that is measured")]
pub(crate) mod derive;
pub(crate) mod jsonrpsee;
mod ours;
pub(crate) mod rmcp;
mod scan;
#[expect(dead_code, reason = "reading them is all that is measured")]
mod sonic;
mod value;

use crate::work::Work;

/// The goal asks for small frames; large ones are compared. A text of more than 23 bytes and a raw
/// value are an allocation each, here as everywhere.
fn hot(works: &mut Vec<Work>) {
    works.push(
        Work::new(
            "1",
            "decode Exoclaw text event, 100 B",
            100,
            ours::text_small,
        )
        .beside("serde derive", derive::text_small)
        .beside("our types, serde_json", ours::serde_text_small)
        .beside("serde_json::Value", value::text_small)
        .beside("jsonrpsee", jsonrpsee::text_small)
        .beside("rmcp", rmcp::text_small)
        .beside("sonic-rs", sonic::text_small)
        .allocating(1.0),
    );
    works.push(
        Work::new("1", "decode Exoclaw text event, 1 KB", 1_000, ours::text_1k)
            .beside("serde derive", derive::text_1k)
            .beside("our types, serde_json", ours::serde_text_1k)
            .beside("serde_json::Value", value::text_1k)
            .beside("jsonrpsee", jsonrpsee::text_1k)
            .beside("rmcp", rmcp::text_1k)
            .beside("sonic-rs", sonic::text_1k)
            .allocating(1.0),
    );
    works.push(
        Work::new(
            "1",
            "decode Snek message event, 120 B",
            100,
            ours::message_small,
        )
        .beside("serde derive", derive::message_small)
        .beside("our types, serde_json", ours::serde_message_small)
        .beside("serde_json::Value", value::message_small)
        .beside("jsonrpsee", jsonrpsee::message_small)
        .beside("rmcp", rmcp::message_small)
        .beside("sonic-rs", sonic::message_small)
        .allocating(0.0),
    );
    works.push(
        Work::new(
            "1",
            "decode Snek message event, 1 KB",
            1_000,
            ours::message_1k,
        )
        .beside("serde derive", derive::message_1k)
        .beside("our types, serde_json", ours::serde_message_1k)
        .beside("serde_json::Value", value::message_1k)
        .beside("jsonrpsee", jsonrpsee::message_1k)
        .beside("rmcp", rmcp::message_1k)
        .beside("sonic-rs", sonic::message_1k)
        .allocating(1.0),
    );
}

fn others(works: &mut Vec<Work>) {
    works.push(
        Work::new("2", "decode Exoclaw usage event", 100, ours::usage)
            .beside("serde derive", derive::usage)
            .beside("our types, serde_json", ours::serde_usage)
            .beside("sonic-rs", sonic::usage)
            .allocating(0.0),
    );
    works.push(
        Work::new("2", "decode Exoclaw chat.send", 100, ours::chat_send)
            .beside("serde derive", derive::chat_send)
            .beside("our types, serde_json", ours::serde_chat_send)
            .beside("sonic-rs", sonic::chat_send)
            .allocating(0.0),
    );
    works.push(
        Work::new("2", "decode Snek send_message", 100, ours::send_message)
            .beside("serde derive", derive::send_message)
            .beside("our types, serde_json", ours::serde_send_message)
            .beside("sonic-rs", sonic::send_message)
            .allocating(1.0),
    );
    works.push(
        Work::new(
            "2",
            "decode Exoclaw text event with escapes, 1 KB",
            1_000,
            ours::text_code,
        )
        .beside("serde derive", derive::text_code)
        .beside("our types, serde_json", ours::serde_text_code)
        .beside("sonic-rs", sonic::text_code),
    );
    works.push(
        Work::new(
            "2",
            "decode Exoclaw text event, 200 KB",
            200_000,
            ours::text_200k,
        )
        .beside("serde derive", derive::text_200k)
        .beside("our types, serde_json", ours::serde_text_200k)
        .beside("jsonrpsee", jsonrpsee::text_200k)
        .beside("rmcp", rmcp::text_200k)
        .beside("sonic-rs", sonic::text_200k)
        .allocating(1.0),
    );
    works.push(
        Work::new(
            "2",
            "decode Snek channels into owned structs, 200 KB",
            200_000,
            ours::channels,
        )
        .beside("serde derive", derive::channels)
        .beside("our types, serde_json", ours::serde_channels)
        .beside("serde_json::Value", value::channels)
        .beside("jsonrpsee", jsonrpsee::channels)
        .beside("rmcp", rmcp::channels)
        .beside("sonic-rs", sonic::channels),
    );
}

fn passed_through(works: &mut Vec<Work>) {
    works.push(
        Work::new(
            "3",
            "Exoclaw result left raw, 200 KB",
            200_000,
            ours::result_raw,
        )
        .beside("serde_json scan", scan::result)
        .allocating(1.0),
    );
    works.push(
        Work::new(
            "3",
            "Exoclaw tool input left raw, 200 KB",
            200_000,
            ours::tool_raw,
        )
        .beside("serde_json scan", scan::tool)
        .allocating(1.0),
    );
    works.push(
        Work::new(
            "3",
            "Snek answer left raw, 200 KB",
            200_000,
            ours::reply_raw,
        )
        .beside("serde_json scan", scan::reply)
        .allocating(1.0),
    );
}

pub(crate) fn works() -> Vec<Work> {
    let mut works = Vec::new();
    hot(&mut works);
    others(&mut works);
    passed_through(&mut works);
    works
}
