//! The rules of a store, kept by [`FileStore`].

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::join_all;
use rpc_core::store::{Expect, FileConfig, FileStore, Log, LogConfig, Store, StoreError};
use store_suite::Engine;

/// A folder that is removed with the value.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let name = format!("store-suite-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn file(&self) -> PathBuf {
        self.0.join("store")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

struct OneFile(FileStore);

#[async_trait]
impl Engine for OneFile {
    async fn connect(&self) -> Arc<dyn Store> {
        Arc::new(self.0.clone())
    }
}

#[tokio::test]
async fn the_file_store_conforms_to_all_rules() {
    let folder = Folder::new("rules");
    let store = FileStore::open(&folder.file(), FileConfig::default()).unwrap();
    store_suite::all(&OneFile(store)).await;
}

#[tokio::test]
async fn a_file_in_use_is_refused_under_another_name_too() {
    let folder = Folder::new("names");
    let _store = FileStore::open(&folder.file(), FileConfig::default()).unwrap();
    let other = folder.0.join("other");
    std::fs::hard_link(folder.file(), &other).unwrap();
    let error = FileStore::open(&other, FileConfig::default()).unwrap_err();
    assert!(matches!(error, StoreError::Config { .. }), "{error}");
}

const CHILD: &str = "STORE_SUITE_CHILD";
const TASKS: u64 = 4;

async fn open_log(path: &Path) -> (FileStore, Arc<dyn Log>) {
    let store = FileStore::open(path, FileConfig::default()).unwrap();
    let log = store.log("log", LogConfig::new("s.>")).await.unwrap();
    (store, log)
}

/// Goes on where the one before it was killed.
#[tokio::test]
#[ignore = "the process that another test kills"]
async fn child_of_a_file_store_test() {
    let Some(path) = std::env::var_os(CHILD) else {
        return;
    };
    let (_store, log) = open_log(Path::new(&path)).await;
    let appending = (0..TASKS).map(async |task| {
        let subject = format!("s.{task}");
        let last = log.last(&subject).await.unwrap();
        let mut number = last.map_or(0, |it| it.id[2..].parse().unwrap());
        loop {
            number += 1;
            let id = format!("{task}-{number}");
            let expect = Expect {
                id: Some(&id),
                last: None,
            };
            let payload = id.repeat(20);
            let stored = log.append(&subject, payload.into(), expect).await.unwrap();
            assert!(!stored.is_duplicate);
            println!("stored {id}");
        }
    });
    join_all(appending).await;
}

/// Kills a process that appends, again and again, until it has had `count` answers.
async fn kill_at_random(name: &str, count: usize) {
    let folder = Folder::new(name);
    let path = folder.file();
    let (mut answers, mut random) = (Vec::new(), 0x9e37_79b9_7f4a_7c15_u64);
    while answers.len() < count {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "file::child_of_a_file_store_test"])
            .args(["--ignored", "--nocapture"])
            .env(CHILD, &path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut stored = lines.map_while(Result::ok).filter_map(|line| {
            let (_, rest) = line.split_once("stored ")?;
            Some(rest.to_owned())
        });
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let until = usize::try_from(random % 300).unwrap();
        answers.extend(stored.by_ref().take(until + 1));
        let error = FileStore::open(&path, FileConfig::default()).unwrap_err();
        let holder = format!("(process {})", child.id());
        assert!(error.to_string().contains(&holder), "{error}");
        child.kill().unwrap();
        answers.extend(stored);
        child.wait().unwrap();
    }
    let (store, log) = open_log(&path).await;
    assert_eq!(store.salvaged(), None);
    let records = log.read("s.>", 0, usize::MAX).await.unwrap();
    let numbers = records.iter().map(|it| it.sequence);
    assert!(numbers.eq(1..=records.len() as u64), "numbers are missing");
    let mut ids = BTreeSet::new();
    for record in &records {
        assert_eq!(record.payload, record.id.repeat(20));
        assert!(
            ids.insert(record.id.to_string()),
            "it is doubled: {record:?}"
        );
    }
    let lost: Vec<_> = answers.iter().filter(|id| !ids.contains(*id)).collect();
    assert!(lost.is_empty(), "{lost:?}");
}

#[tokio::test]
async fn a_killed_process_loses_and_doubles_nothing_that_was_stored() {
    kill_at_random("killed", 400).await;
}

#[tokio::test]
#[ignore = "10,000 records: minutes"]
async fn a_killed_process_loses_and_doubles_none_of_10000_of_a_file_store() {
    kill_at_random("killed-often", 10_000).await;
}
