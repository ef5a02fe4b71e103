//! Copies of stores.

use bytes::Bytes;
use clap::FromArgMatches as _;
use rpc_core::store::{Expect, LogConfig, MemoryStore, Store, StoreError};

use super::copy::{Copied, copy};
use super::{Command, run};
use crate::scratch::Folder;

/// A store with three records in a log, and one in a log of what lives a moment.
async fn filled() -> MemoryStore {
    let store = MemoryStore::new();
    let log = store.log("talk", LogConfig::new("talk.*")).await.unwrap();
    for (subject, id) in [("talk.a", "1"), ("talk.b", ""), ("talk.a", "3")] {
        let id = Some(id).filter(|id| !id.is_empty());
        let expect = Expect { id, last: None };
        log.append(subject, Bytes::from_static(b"hi"), expect)
            .await
            .unwrap();
    }
    let config = LogConfig {
        max_age: Some(std::time::Duration::from_secs(10)),
        ..LogConfig::new("alive.*")
    };
    let alive = store.log("alive", config).await.unwrap();
    alive
        .append("alive.me", Bytes::new(), Expect::default())
        .await
        .unwrap();
    store
}

#[tokio::test(start_paused = true)]
async fn copies_what_lasts_with_its_ids_and_in_its_order() {
    let (from, to) = (filled().await, MemoryStore::new());
    let copied = copy(&from, &to).await.unwrap();
    let expected = Copied {
        log: "talk".to_owned(),
        records: 3,
        damaged: 0,
    };
    assert_eq!(copied, [expected]);
    let logs: Vec<_> = to
        .logs()
        .await
        .unwrap()
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(logs, ["talk"]);
    let log = to.log("talk", LogConfig::new("talk.*")).await.unwrap();
    let records = log.read(">", 0, 9).await.unwrap();
    let records: Vec<_> = records
        .iter()
        .map(|it| (&*it.subject, &*it.id, &*it.payload))
        .collect();
    assert_eq!(
        records,
        [
            ("talk.a", "1", &b"hi"[..]),
            ("talk.b", "", b"hi"),
            ("talk.a", "3", b"hi")
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn refuses_a_place_that_has_records() {
    let (from, to) = (filled().await, MemoryStore::new());
    copy(&from, &to).await.unwrap();
    let again = copy(&from, &to).await;
    assert!(matches!(again, Err(StoreError::Config { .. })), "{again:?}");
}

#[tokio::test]
async fn a_place_is_not_copied_to_itself_under_any_name() {
    let folder = Folder::new();
    let from = folder.file("a.redb", "");
    let same = folder.join("./a.redb");
    for [from, to] in [[from, same], ["nats".into(), "nats".into()]] {
        let command =
            <Command as clap::Subcommand>::augment_subcommands(clap::Command::new("store"));
        let words = [
            "store".as_ref(),
            "copy".as_ref(),
            from.as_os_str(),
            to.as_os_str(),
        ];
        let matches = command.get_matches_from(words);
        let error = run(Command::from_arg_matches(&matches).unwrap()).await;
        let error = format!("{:?}", error.unwrap_err());
        assert!(error.contains("FROM and TO are one place"), "{error}");
    }
}
