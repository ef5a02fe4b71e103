//! Tests of [`ResponseQueue`] with a body that is taken by hand.

use futures_util::FutureExt as _;

use super::*;

fn queue() -> ResponseQueue {
    ResponseQueue::new(&Limits {
        max_message_bytes: 64 * 1024,
        ..Limits::default()
    })
}

fn add(queue: &ResponseQueue, json: &str) -> Result<(), NotAdded> {
    queue.add(|buffer| {
        buffer.push_str(json);
        Ok(())
    })
}

fn done() -> End {
    Ok(Box::new(Reply::new("", "m")))
}

fn body(queue: &ResponseQueue) -> Option<String> {
    let write_end = |end: &End, bytes: &mut String| {
        bytes.push_str(if end.is_ok() { "done" } else { "error" });
    };
    let bytes = queue.next_bytes(write_end).now_or_never()?;
    Some(bytes.map_or("over".to_owned(), |bytes| {
        String::from_utf8(bytes.to_vec()).unwrap()
    }))
}

#[test]
fn a_body_drains_its_queue_and_finishes_after_the_end() {
    let queue = queue();
    assert_eq!(body(&queue), None);
    assert_eq!(add(&queue, "1"), Ok(()));
    assert_eq!(add(&queue, "2"), Ok(()));
    assert_eq!(body(&queue).unwrap(), "data: 1\n\ndata: 2\n\n");
    assert_eq!(add(&queue, "3"), Ok(()));
    queue.end(done());
    queue.end(Err(Box::new(AppError::failed("late"))));
    assert_eq!(add(&queue, "4"), Err(NotAdded::Stopped));
    assert_eq!(body(&queue).unwrap(), "data: 3\n\ndone");
    assert_eq!(body(&queue).unwrap(), "over");
}

#[test]
fn a_full_queue_accepts_only_the_end_until_it_is_drained() {
    for step in ["1", &"1".repeat(MAX_BYTES)] {
        let queue = queue();
        let mut added = 0;
        while add(&queue, step) == Ok(()) {
            added += 1;
        }
        assert_eq!(added, if step.len() == 1 { MAX_STEPS } else { 1 });
        assert_eq!(add(&queue, "1"), Err(NotAdded::Full));
        let mut room = std::pin::pin!(queue.room());
        assert!(room.as_mut().now_or_never().is_none());
        assert!(body(&queue).is_some());
        assert!(room.now_or_never().is_some());
        assert_eq!(add(&queue, step), Ok(()));
        queue.end(done());
        assert!(body(&queue).unwrap().ends_with("done"));
    }
}

#[test]
fn a_step_that_fails_to_encode_leaves_nothing_behind() {
    let queue = queue();
    let refused = queue.add(|buffer| {
        buffer.push_str("half");
        Err(Refused::UnknownId)
    });
    assert_eq!(refused, Err(NotAdded::Refused(Refused::UnknownId)));
    assert_eq!(add(&queue, "1"), Ok(()));
    assert_eq!(body(&queue).unwrap(), "data: 1\n\n");
}

#[test]
fn a_step_that_is_too_large_ends_the_chat_with_an_error() {
    let queue = queue();
    assert_eq!(add(&queue, "1"), Ok(()));
    let large = "1".repeat(63 * 1024);
    assert_eq!(add(&queue, &large), Err(NotAdded::Stopped));
    // What the agent returns then is not told.
    queue.end(done());
    assert_eq!(body(&queue).unwrap(), "data: 1\n\nerror");
}
