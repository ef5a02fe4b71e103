//! The rules of RFC 6455, without a socket.

use bytes::{BufMut as _, Bytes};
use proptest::prelude::*;

use super::header::Header;
use super::{FrameError, FrameReader, FrameWriter, Opcode, mask};
use crate::message::{CloseFrame, Text};
use crate::net::transport::Message;
use crate::net::ws::Role;

const MAX: usize = 1000;

/// A frame as a client sends it.
fn frame(is_final: bool, opcode: Opcode, payload: &[u8]) -> Vec<u8> {
    let key = [0x37, 0xfa, 0x21, 0x3d];
    let mut bytes = Vec::new();
    let header = Header {
        is_final,
        opcode,
        mask: Some(key),
        len: payload.len() as u64,
    };
    header.put(&mut bytes);
    let begin = bytes.len();
    bytes.extend_from_slice(payload);
    mask::apply(key, &mut bytes[begin..]);
    bytes
}

fn server() -> FrameReader {
    FrameReader::new(Role::Server, MAX)
}

/// All messages, up to the first error.
fn read_all(reader: &mut FrameReader) -> Result<Vec<Message>, FrameError> {
    let mut messages = Vec::new();
    while let Some(message) = reader.next_message()? {
        messages.push(message);
    }
    Ok(messages)
}

fn read(frames: &[Vec<u8>]) -> Result<Vec<Message>, FrameError> {
    let mut reader = server();
    reader.push(&frames.concat());
    read_all(&mut reader)
}

fn code(frames: &[Vec<u8>]) -> u16 {
    read(frames).unwrap_err().close_code()
}

fn text(text: &str) -> Message {
    Message::Text(Text::from(text))
}

#[test]
fn many_messages_come_out_of_one_read() {
    let frames: Vec<_> = (0..5)
        .map(|n| frame(true, Opcode::Text, n.to_string().as_bytes()))
        .collect();
    assert_eq!(read(&frames).unwrap(), ["0", "1", "2", "3", "4"].map(text));
}

#[test]
fn a_message_of_the_whole_limit_passes_and_one_byte_more_does_not() {
    let fits = frame(true, Opcode::Binary, &[7; MAX]);
    assert_eq!(
        read(&[fits]).unwrap(),
        [Message::Binary(Bytes::from(vec![7; MAX]))]
    );
    assert_eq!(code(&[frame(true, Opcode::Binary, &[7; MAX + 1])]), 1009);
}

#[test]
fn a_message_over_the_limit_is_refused_from_its_header() {
    let mut reader = server();
    let bytes = frame(true, Opcode::Binary, &[7; MAX + 1]);
    reader.push(&bytes[..8]);
    assert_eq!(reader.next_message(), Err(FrameError::TooLarge));
}

#[test]
fn the_limit_counts_over_fragments() {
    let frames = [
        frame(false, Opcode::Binary, &[7; 600]),
        frame(true, Opcode::Continuation, &[7; 401]),
    ];
    assert_eq!(code(&frames), 1009);
}

#[test]
fn a_control_frame_passes_whatever_the_limit() {
    let mut reader = FrameReader::new(Role::Server, 0);
    reader.push(&frame(true, Opcode::Ping, b"hi"));
    let ping = Message::Ping(Bytes::from_static(b"hi"));
    assert_eq!(read_all(&mut reader), Ok(vec![ping]));
}

#[test]
fn control_frames_pass_between_fragments() {
    let frames = [
        frame(false, Opcode::Text, b"caf\xc3"),
        frame(true, Opcode::Pong, b""),
        frame(false, Opcode::Continuation, b""),
        frame(true, Opcode::Continuation, b"\xa9"),
        frame(true, Opcode::Text, b"next"),
    ];
    assert_eq!(
        read(&frames).unwrap(),
        [Message::Pong(Bytes::new()), text("café"), text("next")]
    );
}

#[test]
fn a_continuation_of_nothing_is_refused() {
    assert_eq!(code(&[frame(true, Opcode::Continuation, b"x")]), 1002);
    let after_the_end = [
        frame(true, Opcode::Text, b"x"),
        frame(false, Opcode::Continuation, b"x"),
    ];
    assert_eq!(code(&after_the_end), 1002);
}

#[test]
fn a_message_inside_a_fragmented_one_is_refused() {
    for opcode in [Opcode::Text, Opcode::Binary] {
        let frames = [frame(false, Opcode::Text, b"x"), frame(true, opcode, b"y")];
        assert_eq!(code(&frames), 1002);
    }
}

#[test]
fn fragments_without_payload_do_not_go_on_for_ever() {
    let mut frames = vec![frame(false, Opcode::Text, b"")];
    frames.resize_with(64, || frame(false, Opcode::Continuation, b""));
    frames.push(frame(true, Opcode::Continuation, b""));
    assert_eq!(read(&frames).unwrap(), [text("")]);
    frames.insert(1, frame(false, Opcode::Continuation, b""));
    assert_eq!(code(&frames), 1002);
}

#[test]
fn text_that_is_not_utf8_is_refused_whole_or_in_fragments() {
    assert_eq!(code(&[frame(true, Opcode::Text, b"\xff")]), 1007);
    let cut_short = [
        frame(false, Opcode::Text, b"caf"),
        frame(true, Opcode::Continuation, b"\xc3"),
    ];
    assert_eq!(code(&cut_short), 1007);
    assert!(read(&[frame(true, Opcode::Binary, b"\xff")]).is_ok());
}

#[test]
fn a_bad_close_is_refused_and_a_good_one_handed_out() {
    assert_eq!(code(&[frame(true, Opcode::Close, b"\x03")]), 1002);
    assert_eq!(code(&[frame(true, Opcode::Close, b"\x03\xee")]), 1002);
    assert_eq!(code(&[frame(true, Opcode::Close, b"\x03\xe8\xff")]), 1007);
    assert_eq!(
        read(&[frame(true, Opcode::Close, b"\x03\xe9bye")]).unwrap(),
        [Message::Close(Some(CloseFrame::new(1001, "bye")))]
    );
    assert_eq!(
        read(&[frame(true, Opcode::Close, b"")]).unwrap(),
        [Message::Close(None)]
    );
}

#[test]
fn a_reader_that_has_read_all_holds_no_memory() {
    let mut reader = server();
    reader.push(&frame(true, Opcode::Text, &[b'x'; 200]));
    reader.push(&frame(true, Opcode::Text, b"x"));
    assert_eq!(read_all(&mut reader).unwrap().len(), 2);
    assert_eq!(reader.buffer.capacity(), 0);
}

#[test]
fn a_small_message_does_not_keep_a_large_buffer() {
    let mut reader = server();
    reader.push(&frame(true, Opcode::Binary, &[7; 900]));
    reader.push(&frame(true, Opcode::Binary, &[8; 50]));
    let buffer = reader.buffer.as_ptr_range();
    for message in read_all(&mut reader).unwrap() {
        let Message::Binary(bytes) = message else {
            panic!("not what was sent");
        };
        assert!(!buffer.contains(&bytes.as_ptr()), "{} bytes", bytes.len());
    }
}

#[test]
fn a_lone_message_is_not_copied() {
    let mut reader = server();
    reader.push(&frame(true, Opcode::Binary, &[7; 900]));
    let buffer = reader.buffer.as_ptr_range();
    let Ok(Some(Message::Binary(bytes))) = reader.next_message() else {
        panic!("not what was sent");
    };
    assert!(buffer.contains(&bytes.as_ptr()));
}

#[test]
fn a_large_frame_gets_room_as_it_comes() {
    let mut reader = FrameReader::new(Role::Client, usize::MAX);
    let mut header = vec![0x82, 127];
    header.extend_from_slice(&(1u64 << 30).to_be_bytes());
    reader.push(&header);
    assert_eq!(reader.next_message(), Ok(None));
    assert_eq!(reader.missing(), 1 << 30);
    let mut came = 0;
    while came < 1 << 20 {
        let room = reader.room().remaining_mut();
        assert!(room <= came.max(16 * 1024) + header.len(), "{room}");
        reader.room().put_bytes(7, room);
        came += room;
        assert_eq!(reader.next_message(), Ok(None));
        assert_eq!(reader.missing(), (1 << 30) - came);
    }
}

#[test]
fn room_ends_with_the_frame() {
    let mut reader = FrameReader::new(Role::Client, usize::MAX);
    reader.push(&[0x82, 126, 0x80, 0, 9]);
    assert_eq!(reader.next_message(), Ok(None));
    while reader.missing() > 0 {
        let room = reader.room().remaining_mut();
        reader.room().put_bytes(9, room);
        if let Some(message) = reader.next_message().unwrap() {
            assert_eq!(message, Message::Binary(Bytes::from(vec![9; 0x8000])));
        }
    }
    assert_eq!(reader.next_message(), Ok(None));
    assert_eq!(reader.buffer.capacity(), 0);
}

#[test]
fn what_a_server_writes_is_not_masked_and_what_a_client_writes_is() {
    let mut writer = FrameWriter::new(Role::Server, 0);
    writer
        .push(Opcode::Text, Bytes::from_static(b"hi"))
        .unwrap();
    assert_eq!(writer.pieces().concat(), b"\x81\x02hi");
    let mut writer = FrameWriter::new(Role::Client, 0);
    writer
        .push(Opcode::Text, Bytes::from_static(b"hi"))
        .unwrap();
    let bytes = writer.pieces().concat();
    assert_eq!(bytes[..2], [0x81, 0x82]);
    assert_eq!([bytes[6] ^ bytes[2], bytes[7] ^ bytes[3]], *b"hi");
}

#[test]
fn a_large_payload_of_a_server_is_written_from_where_it_is() {
    let mut writer = FrameWriter::new(Role::Server, 4096);
    let large = Bytes::from(vec![7; 100_000]);
    writer.push(Opcode::Binary, large.clone()).unwrap();
    let [_, tail] = writer.pieces();
    assert_eq!(tail.as_ptr(), large.as_ptr());
    writer.advance(50_000);
    // What follows it waits behind what is left of it.
    writer.push(Opcode::Ping, Bytes::new()).unwrap();
    let rest = writer.pieces().concat();
    assert_eq!(rest.len(), 10 + 100_000 - 50_000 + 2);
    assert!(rest.ends_with(&[7, 0x89, 0]));
}

#[test]
fn a_writer_that_has_written_all_holds_no_memory() {
    let mut writer = FrameWriter::new(Role::Server, 4096);
    for len in [10, 1000, 100_000] {
        let payload = Bytes::from(vec![7; len]);
        writer.push(Opcode::Binary, payload).unwrap();
    }
    writer.advance(writer.len());
    assert_eq!((writer.len(), writer.buffer.capacity()), (0, 0));
}

#[test]
fn a_writer_that_is_never_empty_does_not_grow() {
    let mut writer = FrameWriter::new(Role::Server, 4096);
    let payload = Bytes::from(vec![7; 1000]);
    writer.push(Opcode::Binary, payload.clone()).unwrap();
    for _ in 0..1000 {
        writer.push(Opcode::Binary, payload.clone()).unwrap();
        writer.advance(1004);
    }
    assert_eq!(writer.len(), 1004);
    assert!(writer.buffer.capacity() < 16 * 1024);
}

/// A message and where it is cut into fragments.
fn message() -> impl Strategy<Value = (Message, Vec<usize>)> {
    let data = prop_oneof![
        ".{0,40}".prop_map(|text| Message::Text(Text::from(text))),
        proptest::collection::vec(any::<u8>(), 0..300)
            .prop_map(|bytes| Message::Binary(bytes.into())),
    ];
    (data, proptest::collection::vec(0usize..300, 0..4))
}

/// The message as frames, with a ping before every continuation.
fn fragments(message: &Message, cuts: &[usize]) -> Vec<u8> {
    let (mut opcode, payload) = match message {
        Message::Text(text) => (Opcode::Text, text.as_str().as_bytes()),
        Message::Binary(bytes) => (Opcode::Binary, &bytes[..]),
        other => panic!("{other:?}"),
    };
    let mut cuts: Vec<_> = cuts.iter().map(|cut| cut % (payload.len() + 1)).collect();
    cuts.sort_unstable();
    let mut frames = Vec::new();
    let mut begin = 0;
    for cut in cuts {
        frames.extend(frame(false, opcode, &payload[begin..cut]));
        frames.extend(frame(true, Opcode::Ping, b"between"));
        (begin, opcode) = (cut, Opcode::Continuation);
    }
    frames.extend(frame(true, opcode, &payload[begin..]));
    frames
}

proptest! {
    #[test]
    fn any_fragments_in_any_chunks_give_the_message_back(
        messages in proptest::collection::vec(message(), 1..6),
        chunks in proptest::collection::vec(1usize..50, 1..10),
    ) {
        let mut bytes = Vec::new();
        for (message, cuts) in &messages {
            bytes.extend(fragments(message, cuts));
        }
        let mut reader = server();
        let mut got = Vec::new();
        let mut rest = &bytes[..];
        for chunk in chunks.iter().cycle() {
            let (chunk, after) = rest.split_at((*chunk).min(rest.len()));
            reader.push(chunk);
            got.extend(read_all(&mut reader).unwrap());
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        got.retain(|message| !matches!(message, Message::Ping(_)));
        let sent: Vec<_> = messages.into_iter().map(|(message, _)| message).collect();
        prop_assert_eq!(got, sent);
        prop_assert_eq!(reader.buffer.capacity(), 0);
    }

    #[test]
    fn what_is_written_in_any_pieces_is_read_again(
        payloads in proptest::collection::vec(0usize..40_000, 1..6),
        pieces in proptest::collection::vec(1usize..30_000, 1..10),
        is_client: bool,
    ) {
        let (from, to) = if is_client {
            (Role::Client, Role::Server)
        } else {
            (Role::Server, Role::Client)
        };
        let mut writer = FrameWriter::new(from, 4096);
        let mut reader = FrameReader::new(to, 40_000);
        let mut sizes = pieces.iter().cycle();
        let mut got = Vec::new();
        let mut step = |writer: &mut FrameWriter| {
            let [head, tail] = writer.pieces();
            let piece = if head.is_empty() { tail } else { head };
            let n = sizes.next().map_or(1, |size| *size).min(piece.len());
            reader.push(&piece[..n]);
            writer.advance(n);
            got.extend(read_all(&mut reader).unwrap());
        };
        for len in &payloads {
            let payload = Bytes::from(vec![b'x'; *len]);
            writer.push(Opcode::Binary, payload).unwrap();
            step(&mut writer);
        }
        while writer.len() > 0 {
            step(&mut writer);
        }
        let lens: Vec<_> = got
            .iter()
            .map(|message| match message {
                Message::Binary(bytes) => bytes.len(),
                other => panic!("{other:?}"),
            })
            .collect();
        prop_assert_eq!(lens, payloads);
    }

    #[test]
    fn any_bytes_are_survived(bytes: Vec<u8>, is_client: bool) {
        let role = if is_client { Role::Client } else { Role::Server };
        let mut reader = FrameReader::new(role, MAX);
        reader.push(&bytes);
        let _ = read_all(&mut reader);
    }
}
