//! Files: opened again, and in use.

use std::fs;
use std::path::Path;

use rpc_core::store::{Fsync, StoreError as Failure};

use super::*;
use crate::gateway::store::scratch::Folder;

/// Noon of a day in the middle of its month.
const NOON: u64 = 1_800_014_400;

async fn open(folder: &Path) -> Result<Arc<GatewayStore>, StoreError> {
    open_folder(folder, Fsync::Never, GatewayStoreConfig::default(), || NOON).await
}

/// Opens a file that may still be in use for a moment.
async fn reopened(folder: &Path) -> Arc<GatewayStore> {
    loop {
        match open(folder).await {
            Err(StoreError::Store(Failure::Config { .. })) => tokio::task::yield_now().await,
            opened => return opened.unwrap(),
        }
    }
}

#[tokio::test]
async fn a_store_that_is_opened_again_has_everything() {
    let folder = Folder::new();
    let below = folder.path().join("a/b");
    let store = reopened(&below).await;
    let reservation = {
        let turn = store.enter("s", NOON).await.unwrap();
        store.reserve(&turn, 5).await.unwrap()
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
    assert_eq!(probe(folder.path()), Ok(true));
}

#[tokio::test]
async fn a_folder_that_cannot_be_made_is_named() {
    let folder = Folder::new();
    let plain = folder.path().join("plain");
    fs::write(&plain, "").unwrap();
    let below = plain.join("below");
    let error = open(&below).await.unwrap_err().to_string();
    assert!(error.contains("plain/below: "), "{error}");
    assert!(
        probe(&below)
            .unwrap_err()
            .to_string()
            .contains("plain/below: ")
    );
}
