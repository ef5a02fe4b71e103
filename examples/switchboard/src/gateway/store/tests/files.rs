//! Files: opened again, in use, and those of earlier versions.

use std::fs;
use std::path::Path;

use redb::{Database, TableDefinition};
use rpc_core::store::{Fsync, StoreError as Failure};
use serde_json::json;

use super::*;
use crate::gateway::memory::Mark;
use crate::scratch::Folder;

const DAY: u64 = 86_400;
/// Noon of a day in the middle of its month.
const NOON: u64 = 1_800_014_400;

async fn open(folder: &Path) -> Result<(Arc<GatewayStore>, Option<String>), StoreError> {
    open_folder(folder, Fsync::Never, GatewayStoreConfig::default(), || NOON).await
}

async fn reopened(folder: &Path) -> Arc<GatewayStore> {
    open(folder).await.unwrap().0
}

const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
const SESSIONS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("sessions");
const ACTIVE: TableDefinition<'_, (u64, &str), ()> = TableDefinition::new("active");
const TURNS: TableDefinition<'_, (&str, u64), &[u8]> = TableDefinition::new("turns");
const USAGE: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("usage");
const DAYS: TableDefinition<'_, u64, u64> = TableDefinition::new("days");

/// Writes a file as the gateway wrote it before it stored in logs.
fn write_old(folder: &Folder, format: u64) {
    let database = Database::create(folder.path().join(OLD_FILE_NAME)).unwrap();
    let txn = database.begin_write().unwrap();
    {
        let mut meta = txn.open_table(META).unwrap();
        meta.insert("format", format).unwrap();
        meta.insert("bytes", 321).unwrap();
        let (mut sessions, mut active) = (
            txn.open_table(SESSIONS).unwrap(),
            txn.open_table(ACTIVE).unwrap(),
        );
        for (key, row) in [
            (
                "ann",
                json!({"created": NOON - 9, "active": NOON, "first": 1, "next": 3, "bytes": 99, "tokens": 45}),
            ),
            (
                "bob",
                json!({"created": 7, "active": NOON - DAY, "first": 0, "next": 1, "bytes": 50, "tokens": 7}),
            ),
        ] {
            let text = serde_json::to_vec(&row).unwrap();
            sessions.insert(key, &*text).unwrap();
            active
                .insert((row["active"].as_u64().unwrap(), key), ())
                .unwrap();
        }
        let mut turns = txn.open_table(TURNS).unwrap();
        let stopped = Turn::marked("q2", "a", 2, Mark::Stopped).with_id(Some("x"));
        for (session, number, turn) in [
            ("ann", 1, Turn::new("q1", "a1", 1).unwrap()),
            ("ann", 2, stopped),
            ("bob", 0, Turn::new("hi", "ho", 3).unwrap()),
        ] {
            let text = serde_json::to_vec(&turn).unwrap();
            turns.insert((session, number), &*text).unwrap();
        }
        turns.insert(("bob", 1), &b"secret"[..]).unwrap();
        let mut usage = txn.open_table(USAGE).unwrap();
        for (number, at) in [(5, NOON - DAY), (6, NOON)] {
            let entry = UsageEntry::new(at, "ann", "agent").with_tokens(number, 0);
            usage
                .insert(number, &*serde_json::to_vec(&entry).unwrap())
                .unwrap();
        }
        let mut days = txn.open_table(DAYS).unwrap();
        let today = NOON / DAY;
        for (day, tokens) in [(today - 40, 1000), (today - 1, 7), (today, 45)] {
            days.insert(day, tokens).unwrap();
        }
    }
    txn.commit().unwrap();
}

#[tokio::test]
async fn a_store_that_is_opened_again_has_everything() {
    let folder = Folder::new();
    let below = folder.path().join("a/b");
    let store = reopened(&below).await;
    let reservation = {
        let turn = store.enter("s", NOON).await.unwrap();
        store.reserve(turn.tokens(), 5).await.unwrap()
    };
    reservation.settle(12);
    let results = turn("s", 1).with_usage(used("s", 1, 12).usage.remove(0));
    store.commit(results, None).await.unwrap();
    store.close().await;
    drop(store);
    let store = reopened(&below).await;
    assert_eq!(questions(&store, "s", 9).await, ["q1"]);
    assert_eq!(store.used(Some("s")).await, Ok((12, 12, 12)));
    assert_eq!(store.usage(9).await.unwrap().len(), 1);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&below), 0o700);
        assert_eq!(mode(&below.join(FILE_NAME)), 0o600);
    }
}

#[tokio::test]
async fn a_file_in_use_names_who_has_it_and_passes_a_check() {
    let folder = Folder::new();
    let _first = reopened(folder.path()).await;
    let Err(StoreError::Store(Failure::Config { message })) = open(folder.path()).await else {
        panic!("it is in use");
    };
    assert!(message.contains("gateway.redb is in use by "), "{message}");
    assert_eq!(probe(folder.path()).await, Ok(true));
}

#[cfg(unix)]
#[tokio::test]
async fn a_folder_that_cannot_be_made_is_named() {
    let folder = Folder::new();
    let plain = folder.path().join("plain");
    fs::write(&plain, "").unwrap();
    let below = plain.join("below");
    let opened = unopened(&below, &open(&below).await.unwrap_err()).to_string();
    let end = "plain: Not a directory (os error 20); a folder is needed there: choose another with [gateway] data_dir";
    assert!(opened.ends_with(end), "{opened}");
    let probed = unopened(&below, &probe(&below).await.unwrap_err());
    assert_eq!(probed.to_string(), opened, "the check says the same");
}

#[tokio::test]
async fn the_file_of_an_earlier_version_is_taken_over_once() {
    let folder = Folder::new();
    write_old(&folder, 1);
    assert_eq!(probe(folder.path()).await, Ok(false));
    let (store, taken) = open(folder.path()).await.unwrap();
    let taken = taken.unwrap();
    let expected = "2 sessions with 3 turns and 2 entries of usage are taken over from ";
    assert!(taken.starts_with(expected), "{taken}");
    let end = "exoclaw.redb, which stays as it is; 1 of its rows cannot be read";
    assert!(taken.ends_with(end), "{taken}");
    assert_eq!(questions(&store, "ann", 9).await, ["q1", "q2"]);
    let last = store.recall("ann", None, 1).await.unwrap().remove(0);
    assert_eq!(
        (last.mark, last.id.as_deref()),
        (Some(Mark::Stopped), Some("x"))
    );
    assert_eq!(questions(&store, "bob", 9).await, ["hi"]);
    let ann = Record {
        session: "ann".to_owned(),
        created: NOON - 9,
        active: NOON,
        count: 3,
        kept: 2,
        tokens: 45,
        ..Record::default()
    };
    let known = store.sessions(9).await.unwrap().remove(0);
    let done = known.done.clone();
    assert_eq!(known, Record { done, ..ann });
    assert_eq!(store.used(Some("bob")).await, Ok((7, 45, 52)));
    let usage = store.usage(9).await.unwrap();
    assert_eq!(
        usage.iter().map(UsageEntry::tokens).collect::<Vec<_>>(),
        [6, 5]
    );
    assert_eq!(store.forget("bob", Forget::All).await, Ok(true));
    store.close().await;
    drop(store);
    let store = reopened(folder.path()).await;
    assert_eq!(sessions(&store).await, ["ann"]);
    assert_eq!(store.usage(9).await.unwrap().len(), 2);
}

#[tokio::test]
async fn what_was_taken_over_before_the_process_ended_is_not_taken_over_twice() {
    let folder = Folder::new();
    let store = reopened(folder.path()).await;
    write_old(&folder, 1);
    let old = folder.path().join(OLD_FILE_NAME);
    store
        .usage
        .import(&[UsageEntry::new(NOON - DAY, "ann", "agent").with_tokens(5, 0)])
        .await
        .unwrap();
    commit(&store, [turn("bob", 1)]).await;
    assert!(store.import(&old, NOON).await.unwrap().is_some());
    assert_eq!(store.usage(9).await.unwrap().len(), 2);
    assert_eq!(questions(&store, "bob", 9).await, ["q1"]);
    assert_eq!(questions(&store, "ann", 9).await, ["q1", "q2"]);
    assert_eq!(store.import(&old, NOON).await, Ok(None));
}

#[tokio::test]
async fn refuses_an_earlier_file_that_it_does_not_know_and_leaves_it_as_it_is() {
    let folder = Folder::new();
    write_old(&folder, 7);
    let file = folder.path().join(OLD_FILE_NAME);
    let refused = async |expected: &str| {
        let error = open(folder.path()).await.unwrap_err();
        assert!(matches!(error, StoreError::Import { .. }), "{error}");
        let words = error.to_string();
        assert!(
            words.contains("exoclaw.redb cannot be taken over (") && words.contains(expected),
            "{words}"
        );
    };
    refused("its format is Some(7), known is 1").await;
    let whole = fs::read(&file).unwrap();
    for bytes in [
        whole[..100].to_vec(),
        whole[..4096].to_vec(),
        [&[0xff; 4096][..], &whole[4096..]].concat(),
        b"[gateway]\nport = 7200\n".to_vec(),
    ] {
        fs::write(&file, &bytes).unwrap();
        refused("move it away to start over").await;
        assert!(probe(folder.path()).await.is_err() || folder.path().join(FILE_NAME).exists());
        assert_eq!(fs::read(&file).unwrap(), bytes, "it is left as it is");
    }
    let _lock = rpc_core::file::Lock::take(&file).unwrap();
    refused("in use by ").await;
}
