//! Tests of [`queue`].

use super::*;

fn taken(consumer: &mut Consumer<u32>) -> Vec<Queued<u32>> {
    std::iter::from_fn(|| consumer.try_next()).collect()
}

fn config(items: usize, policy: LagPolicy) -> QueueConfig {
    QueueConfig {
        max_items: items,
        policy,
        ..QueueConfig::default()
    }
}

#[test]
fn drop_oldest_keeps_the_newest_and_counts_the_dropped() {
    let (producer, mut consumer) = queue(config(2, LagPolicy::DropOldest));
    for item in 0..5 {
        assert_eq!(producer.push(item, 1), Push::Done);
    }
    let expected = [Queued::Lagged(3), Queued::Item(3), Queued::Item(4)];
    assert_eq!(taken(&mut consumer), expected);
    assert_eq!(consumer.total_lost(), 3);
}

#[test]
fn notices_survive_dropped_items() {
    for policy in [LagPolicy::DropOldest, LagPolicy::Latest] {
        let (producer, mut consumer) = queue(config(1, policy));
        producer.notice(0);
        producer.push(1, 1);
        producer.notice(2);
        producer.push(3, 1);
        let expected = [
            Queued::Lagged(1),
            Queued::Item(0),
            Queued::Item(2),
            Queued::Item(3),
        ];
        assert_eq!(taken(&mut consumer), expected);
    }
}

#[test]
fn latest_keeps_only_the_newest_once_full() {
    let (producer, mut consumer) = queue(config(2, LagPolicy::Latest));
    for item in 0..3 {
        producer.push(item, 1);
    }
    assert_eq!(taken(&mut consumer), [Queued::Lagged(2), Queued::Item(2)]);
}

#[test]
fn close_refuses_items_without_room() {
    let (producer, mut consumer) = queue(config(1, LagPolicy::Close));
    assert_eq!(producer.push(1, 1), Push::Done);
    assert_eq!(producer.push(2, 1), Push::Overflow);
    assert_eq!(taken(&mut consumer), [Queued::Item(1)]);
}

#[test]
fn a_capacity_of_zero_is_treated_as_one() {
    let (producer, mut consumer) = queue(config(0, LagPolicy::Close));
    assert_eq!(producer.push(1, 1), Push::Done);
    assert_eq!(producer.push(2, 1), Push::Overflow);
    assert_eq!(taken(&mut consumer), [Queued::Item(1)]);
}

#[test]
fn bytes_are_bounded_but_one_large_item_passes() {
    let config = QueueConfig {
        max_bytes: 10,
        ..config(10, LagPolicy::DropOldest)
    };
    let (producer, mut consumer) = queue(config);
    producer.push(1, 100);
    producer.push(2, 6);
    producer.push(3, 6);
    assert_eq!(taken(&mut consumer), [Queued::Lagged(2), Queued::Item(3)]);
}

#[tokio::test]
async fn block_waits_for_room_until_the_consumer_takes_an_item() {
    let block = LagPolicy::Block {
        deadline: Duration::from_secs(1),
    };
    let (producer, mut consumer) = queue(config(1, block));
    producer.push(1, 1);
    let room = poll_fn(|cx| producer.poll_room(cx));
    let ((), item) = tokio::join!(room, consumer.next());
    assert_eq!(item, Some(Queued::Item(1)));
}

#[test]
fn a_second_reader_gets_what_comes_after_it_and_delays_nobody() {
    let block = LagPolicy::Block {
        deadline: Duration::from_secs(1),
    };
    let (producer, mut first) = queue(config(2, block));
    producer.push(1, 1);
    let mut second = first.subscribe();
    for item in 2..5 {
        producer.push(item, 1);
    }
    assert_eq!(taken(&mut first), [1, 2, 3, 4].map(Queued::Item));
    let left = [Queued::Lagged(1), Queued::Item(3), Queued::Item(4)];
    assert_eq!(taken(&mut second), left);
    drop(first);
    producer.push(5, 1);
    assert_eq!(taken(&mut second), [Queued::Item(5)]);
    drop(producer);
    assert_eq!(taken(&mut second.subscribe()), []);
}

#[tokio::test]
async fn a_dropped_producer_ends_the_queue_after_its_items() {
    let (producer, mut consumer) = queue(QueueConfig::default());
    producer.push(1, 1);
    drop(producer);
    assert_eq!(consumer.next().await, Some(Queued::Item(1)));
    assert_eq!(consumer.next().await, None);
}

#[test]
fn a_dropped_consumer_does_not_block_the_producer() {
    let block = LagPolicy::Block {
        deadline: Duration::from_secs(1),
    };
    let (producer, consumer) = queue(config(1, block));
    assert!(!producer.is_abandoned());
    drop(consumer);
    assert!(producer.is_abandoned());
    assert_eq!(producer.push(1, 1), Push::Done);
    assert_eq!(producer.push(2, 1), Push::Done);
}
