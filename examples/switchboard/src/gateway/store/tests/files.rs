//! Files: opened again, locked, damaged, of other versions.

use std::fs;

use redb::{Database, TableDefinition};

use super::*;
use crate::gateway::memory::Mark;
use crate::gateway::store::scratch::Folder;

fn open(folder: &Folder) -> Result<EmbeddedStore, StoreError> {
    EmbeddedStore::open(folder.path(), StoreLimits::default())
}

fn filled(folder: &Folder) -> EmbeddedStore {
    let store = open(folder).unwrap();
    store.commit(&[turn("s", 1)]).unwrap();
    store.commit(&[turn("s", 2), used("s", 2, 9)]).unwrap();
    store
}

fn is_filled(store: &dyn Store) {
    let recalled = store.recall("s", 5).unwrap();
    assert_eq!(recalled.len(), 2);
    assert_eq!(store.totals().unwrap().sessions, [("s".to_owned(), 9)]);
    assert_eq!(store.usage(5).unwrap().len(), 1);
}

#[test]
fn everything_survives_a_restart() {
    let folder = Folder::new();
    drop(filled(&folder));
    is_filled(&open(&folder).unwrap());
}

#[test]
fn marks_survive_a_restart_and_unmarked_turns_are_whole() {
    let folder = Folder::new();
    let stored = r#"{"user":"old","assistant":"whole","at":1}"#;
    let before: Turn = serde_json::from_str(stored).unwrap();
    let why = |why: &str| why.to_owned();
    let marked = [
        Mark::Stopped,
        Mark::BrokenOff(why("a")),
        Mark::Failed(why("b")),
    ];
    let marked = marked.map(|mark| Turn::marked("q", "so far", 2, mark));
    let turns = [&[before][..], &marked].concat();
    let store = open(&folder).unwrap();
    for turn in &turns {
        let commit = Commit::new("s", 2).with_turn(Some(turn.clone()));
        store.commit(&[commit]).unwrap();
    }
    drop(store);
    let recalled = open(&folder).unwrap().recall("s", 9).unwrap();
    assert_eq!(recalled, turns);
    assert_eq!(recalled[0].mark, None);
}

#[test]
fn everything_survives_a_crash() {
    let (folder, copy) = (Folder::new(), Folder::new());
    let store = filled(&folder);
    // The file of a process that is killed here: no one has closed it.
    let (from, to) = (folder.path().join(FILE_NAME), copy.path().join(FILE_NAME));
    fs::copy(from, to).unwrap();
    drop(store);
    is_filled(&open(&copy).unwrap());
}

#[test]
fn a_missing_folder_is_created_for_its_owner_only() {
    let folder = Folder::new();
    let deep = folder.path().join("a/b");
    drop(EmbeddedStore::open(&deep, StoreLimits::default()).unwrap());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(deep.clone()), 0o700);
        assert_eq!(mode(deep.join(FILE_NAME)), 0o600);
    }
}

#[test]
fn a_second_gateway_learns_who_holds_the_file() {
    let folder = Folder::new();
    let first = filled(&folder);
    let error = open(&folder).unwrap_err();
    let file = folder.path().join(FILE_NAME).display().to_string();
    assert!(matches!(error, StoreError::InUse { .. }));
    let (words, number) = (error.to_string(), std::process::id());
    assert!(
        words.starts_with(&format!("{file} is in use by ")),
        "{words}"
    );
    let end = format!("(process {number}): end that gateway, or set another data_dir");
    assert!(words.ends_with(&end), "{words}");
    is_filled(&first);
    drop(first);
    is_filled(&open(&folder).unwrap());
}

#[test]
fn leaves_a_file_that_is_not_a_store_alone() {
    let folder = Folder::new();
    let path = folder.path().join(FILE_NAME);
    for content in [b"hello".to_vec(), vec![0; 100_000], vec![0xff; 5000]] {
        fs::write(&path, &content).unwrap();
        let error = open(&folder).unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}");
        assert!(
            error.to_string().contains("move it away to start over"),
            "{error}"
        );
        assert_eq!(fs::read(&path).unwrap(), content);
    }
}

#[test]
fn reports_a_folder_that_cannot_be_created() {
    let folder = Folder::new();
    fs::write(folder.path().join("file"), "").unwrap();
    let below = folder.path().join("file/below");
    let error = EmbeddedStore::open(&below, StoreLimits::default()).unwrap_err();
    assert!(matches!(error, StoreError::Io { .. }), "{error:?}");
}

#[test]
fn reports_a_file_of_a_newer_gateway() {
    let folder = Folder::new();
    let path = folder.path().join(FILE_NAME);
    let meta: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
    let database = Database::create(&path).unwrap();
    let txn = database.begin_write().unwrap();
    txn.open_table(meta).unwrap().insert("format", 7).unwrap();
    txn.commit().unwrap();
    drop(database);
    let expected = StoreError::Newer {
        file: path.display().to_string(),
        found: 7,
        known: 1,
    };
    assert_eq!(open(&folder).unwrap_err(), expected);
}

#[test]
fn reports_damaged_rows_without_their_text() {
    let folder = Folder::new();
    drop(filled(&folder));
    let turns: TableDefinition<'_, (&str, u64), &[u8]> = TableDefinition::new("turns");
    let database = Database::open(folder.path().join(FILE_NAME)).unwrap();
    let txn = database.begin_write().unwrap();
    txn.open_table(turns)
        .unwrap()
        .insert(("s", 1), &b"secret"[..])
        .unwrap();
    txn.commit().unwrap();
    drop(database);
    let store = open(&folder).unwrap();
    let error = store.recall("s", 5).unwrap_err().to_string();
    assert!(error.contains("a row of turns cannot be read"), "{error}");
    assert!(!error.contains("secret"));
    assert_eq!(store.usage(5).unwrap().len(), 1);
}

/// Not every damage can be met like this: the engine trusts what passes its checks, and may then end
/// the process.
#[test]
fn a_file_that_is_cut_or_overwritten_is_an_error() {
    let folder = Folder::new();
    drop(filled(&folder));
    let file = folder.path().join(FILE_NAME);
    let whole = fs::read(&file).unwrap();
    let cut = |len: usize| whole.get(..len).unwrap().to_vec();
    let overwritten = |with: u8| {
        let mut bytes = whole.clone();
        bytes.get_mut(..4096).unwrap().fill(with);
        bytes
    };
    for bytes in [
        cut(1),
        cut(100),
        cut(4096),
        overwritten(0),
        overwritten(0xff),
        b"[gateway]\nport = 7200\n".to_vec(),
        vec![0x20; 100_000],
    ] {
        fs::write(&file, &bytes).unwrap();
        let error = open(&folder).unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
        assert_eq!(fs::read(&file).unwrap(), bytes, "it is left as it is");
    }
}
