//! Uploads on a disk.

use std::fs;

use connectonion_proto::frame::Attachment;
use connectonion_proto::upload::{UploadLimits, plan, save, with_reminder};

use super::scratch::Scratch;

#[test]
fn files_are_written_where_the_agent_is_told() {
    let scratch = Scratch::new();
    let folder = scratch.path().join(".co/uploads");
    let sent = [
        Attachment::new("doc.txt", "data:text/plain;base64,aGVsbG8gZmlsZQ=="),
        Attachment::new("../../etc/evil name.txt", "YmFyZQ=="),
    ];
    let files = plan(&sent, 7, &UploadLimits::default()).unwrap();
    let paths = save(&folder, &files).unwrap();
    let read = |at: usize| fs::read_to_string(&paths[at]).unwrap();
    assert_eq!((read(0), read(1)), ("hello file".into(), "bare".into()));
    assert!(paths.iter().all(|path| path.parent() == Some(&folder)));
    let prompt = with_reminder("read", paths.iter().map(|path| path.display()));
    for path in &paths {
        assert!(prompt.contains(&format!("\n- {}\n", path.display())));
    }
}

#[test]
fn nothing_is_overwritten_and_nothing_is_half_there() {
    let scratch = Scratch::new();
    let sent = [Attachment::new("a", "YQ=="), Attachment::new("b", "Yg==")];
    let files = plan(&sent, 7, &UploadLimits::default()).unwrap();
    let taken = scratch.file(&files[1].name);
    fs::write(&taken, "mine").unwrap();
    let failed = save(scratch.path(), &files).unwrap_err();
    assert_eq!(failed.kind(), std::io::ErrorKind::AlreadyExists);
    assert_eq!(fs::read_to_string(&taken).unwrap(), "mine");
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 1);
}

#[cfg(unix)]
#[test]
fn a_link_is_not_followed() {
    let scratch = Scratch::new();
    let files = plan(&[Attachment::new("a", "YQ==")], 7, &UploadLimits::default()).unwrap();
    let target = scratch.file("target");
    std::os::unix::fs::symlink(&target, scratch.file(&files[0].name)).unwrap();
    assert!(save(scratch.path(), &files).is_err());
    assert!(!target.exists());
}
