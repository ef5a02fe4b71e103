//! The rules of a store, kept by [`FileStore`].

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use rpc_core::store::{FileConfig, FileStore, Store};
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
