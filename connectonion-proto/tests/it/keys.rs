//! Keys in files.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::thread;

use connectonion_proto::auth::Signer;
use connectonion_proto::limits::KEY_FILE;

use crate::scratch::Scratch;

/// Where the key is in a project.
fn key(project: &Scratch) -> PathBuf {
    project.file(KEY_FILE)
}

#[test]
fn keys_are_stored_in_the_sdks_format() {
    let folder = Scratch::new();
    let signer = Signer::from_seed(&[7; 32]);
    signer.save(key(&folder)).unwrap();
    assert_eq!(fs::read(key(&folder)).unwrap(), [7; 32]);
    let loaded = Signer::load(key(&folder)).unwrap();
    assert_eq!(loaded.address(), signer.address());
    let names = fs::read_dir(key(&folder).parent().unwrap()).unwrap();
    assert_eq!(names.count(), 1, "nothing else is left behind");
}

#[cfg(unix)]
#[test]
fn only_the_owner_may_read_a_key() {
    use std::os::unix::fs::PermissionsExt;

    let folder = Scratch::new();
    Signer::from_seed(&[7; 32]).save(key(&folder)).unwrap();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&key(&folder)), 0o600);
    assert_eq!(mode(key(&folder).parent().unwrap()), 0o700);
}

#[test]
fn a_key_is_never_replaced() {
    let folder = Scratch::new();
    Signer::from_seed(&[7; 32]).save(key(&folder)).unwrap();
    let refused = Signer::from_seed(&[8; 32]).save(key(&folder)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::AlreadyExists);
    let words = format!("{}: a key already exists", key(&folder).display());
    assert_eq!(refused.to_string(), words);
    assert_eq!(fs::read(key(&folder)).unwrap(), [7; 32]);
}

#[test]
fn a_hex_key_is_loaded_too() {
    let folder = Scratch::new();
    let path = folder.file("key");
    for text in ["07".repeat(32), format!("0x{}\n", "07".repeat(32))] {
        fs::write(&path, text).unwrap();
        let loaded = Signer::load(&path).unwrap();
        assert_eq!(loaded.address(), Signer::from_seed(&[7; 32]).address());
    }
}

#[test]
fn a_file_without_a_key_is_an_error_without_its_contents() {
    let folder = Scratch::new();
    let path = folder.file("key");
    for contents in ["", "s3cret", &"07".repeat(33), &"s3cret".repeat(1000)] {
        fs::write(&path, contents).unwrap();
        let refused = Signer::load(&path).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidData);
        assert!(!format!("{refused} {refused:?}").contains("s3cret"));
    }
    let missing = Signer::load(key(&folder)).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
}

#[test]
fn concurrent_callers_get_the_same_new_key() {
    let folder = Scratch::new();
    let path = key(&folder);
    let asking: Vec<_> = (0..8)
        .map(|_| {
            let path = path.clone();
            thread::spawn(move || *Signer::load_or_generate(path).unwrap().address())
        })
        .collect();
    let expected = *Signer::load_or_generate(&path).unwrap().address();
    for asked in asking {
        assert_eq!(asked.join().unwrap(), expected);
    }
}

#[test]
fn two_new_keys_are_not_the_same() {
    let (a, b) = (Signer::generate().unwrap(), Signer::generate().unwrap());
    assert_ne!(a.address(), b.address());
}
