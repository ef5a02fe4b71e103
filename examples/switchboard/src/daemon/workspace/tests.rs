//! Tests: what is done within the folder, and that nothing leads out of it.

mod kept;

use std::fs;

use super::*;
use crate::scratch::Folder;

/// A folder that is removed with the value, with a secret beside it.
struct Fixture(Folder);

impl Fixture {
    fn new() -> (Self, Workspace) {
        let path = Folder::new();
        fs::create_dir_all(path.join("inside")).unwrap();
        fs::write(path.join("secret.txt"), "secret").unwrap();
        let workspace = Workspace::open(&path.join("inside")).unwrap();
        (Self(path), workspace)
    }

    fn put(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.0.join("inside").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.0.join("inside").join(name)).unwrap()
    }

    fn is_untouched(&self) -> bool {
        let secret = fs::read_to_string(self.0.join("secret.txt"));
        let entries = fs::read_dir(&*self.0).unwrap().count();
        secret.unwrap() == "secret" && entries == 2
    }
}

impl Query {
    /// Creates a search for lines with this text.
    fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }
}

fn read_all(workspace: &Workspace, name: &str) -> Result<Excerpt, ToolError> {
    workspace.read(name, Range::default(), &Stop::default())
}

fn code<T: std::fmt::Debug>(result: Result<T, ToolError>) -> Code {
    result.unwrap_err().code
}

#[test]
fn a_name_that_is_none_brings_up_the_files_with_a_name_like_it() {
    let (place, workspace) = Fixture::new();
    for name in ["src/x.rs", "a/mod.rs", "b/mod.rs"] {
        place.put(name, "");
    }
    let x = "did you mean \"src/x.rs\"?";
    for (name, hint) in [
        ("@src/x.rs", x),
        ("x.rs:10:4", x),
        ("`src/x.rs`", x),
        ("SRC\\X.RS", x),
        ("file:///elsewhere/src/x.rs", x),
        ("/workspace/src/x.rs", x),
        ("b/mods.rs", "did you mean \"b/mod.rs\" or \"a/mod.rs\"?"),
        (
            "../secret.txt",
            "\"../secret.txt\" leads out of the workspace",
        ),
        ("y.py", "there is no file \"y.py\""),
    ] {
        let error = read_all(&workspace, name).unwrap_err();
        let message = workspace.with_similar(name, error).to_string();
        assert!(message.ends_with(hint), "{name}: {message}");
    }
}

#[test]
fn a_file_is_read_whole_or_in_part() {
    let (place, workspace) = Fixture::new();
    place.put("a.txt", "one\ntwo\nthree\nfour");
    let whole = read_all(&workspace, "./a.txt").unwrap();
    assert_eq!(whole.text, "one\ntwo\nthree\nfour");
    assert_eq!((whole.path.as_str(), whole.total), ("a.txt", 4));
    let range = |first, count| Range { first, count };
    let part = workspace
        .read("a.txt", range(2, 2), &Stop::default())
        .unwrap();
    assert_eq!((part.text.as_str(), part.lines), ("two\nthree\n", 2));
    let part = workspace
        .read("a.txt", range(4, 9), &Stop::default())
        .unwrap();
    assert_eq!((part.text.as_str(), part.first), ("four", 4));
    let why = workspace
        .read("a.txt", range(5, 1), &Stop::default())
        .unwrap_err();
    assert!(why.message.contains("4 lines"), "{why}");
    place.put("empty", "");
    let empty = read_all(&workspace, "empty").unwrap();
    assert_eq!((empty.text.as_str(), empty.total), ("", 0));
}

#[test]
fn does_not_read_binary_files() {
    let (place, workspace) = Fixture::new();
    place.put("zeros", "a\0b");
    place.put("latin", b"\xe4");
    place.put("large", vec![b'x'; usize::try_from(MAX_FILE).unwrap() + 1]);
    let read = |name| code(read_all(&workspace, name));
    assert_eq!(read("zeros"), Code::NotText);
    assert_eq!(read("latin"), Code::NotText);
    assert_eq!(read("large"), Code::TooLarge);
    assert_eq!(read("."), Code::NotFile);
    assert_eq!(read("none"), Code::NotFound);
}

#[test]
fn no_name_leads_out() {
    let (place, workspace) = Fixture::new();
    place.put("a.txt", "a");
    let secret = place.0.join("secret.txt").display().to_string();
    for name in [
        "../secret.txt",
        "a/../../secret.txt",
        "..",
        "/etc/passwd",
        &secret,
    ] {
        let (read, query) = (
            Range::default(),
            Query {
                folder: Some(name.to_owned()),
                ..Query::new("x")
            },
        );
        assert_eq!(
            code(workspace.read(name, read, &Stop::default())),
            Code::Sandbox,
            "{name}"
        );
        assert_eq!(code(workspace.write(name, "x")), Code::Sandbox, "{name}");
        assert_eq!(
            code(workspace.edit(name, "s", "x", false)),
            Code::Sandbox,
            "{name}"
        );
        assert_eq!(
            code(workspace.search(&query, &Stop::default())),
            Code::Sandbox,
            "{name}"
        );
        assert_eq!(code(workspace.within(name)), Code::Sandbox, "{name}");
    }
    for name in ["", " ", "a\0"] {
        assert_eq!(code(workspace.write(name, "x")), Code::Call, "{name:?}");
    }
    // What leads up and down again stays within, and so does a whole path.
    let whole = workspace.path().join("a.txt").display().to_string();
    place.put("b/c", "");
    for name in ["./b/.././a.txt", &whole] {
        assert_eq!(read_all(&workspace, name).unwrap().text, "a");
    }
    assert!(place.is_untouched());
}

#[cfg(unix)]
#[test]
fn no_link_leads_out() {
    use std::os::unix::fs::symlink;
    let (place, workspace) = Fixture::new();
    let inside = workspace.path().to_owned();
    symlink(place.0.join("secret.txt"), inside.join("whole")).unwrap();
    symlink("../secret.txt", inside.join("relative")).unwrap();
    symlink("..", inside.join("up")).unwrap();
    symlink("../new.txt", inside.join("dangling")).unwrap();
    symlink("loop", inside.join("loop")).unwrap();
    for name in ["whole", "relative", "up/secret.txt"] {
        assert_eq!(code(read_all(&workspace, name)), Code::Sandbox, "{name}");
        assert_eq!(code(workspace.write(name, "x")), Code::Sandbox, "{name}");
        assert_eq!(
            code(workspace.edit(name, "s", "x", false)),
            Code::Sandbox,
            "{name}"
        );
    }
    for name in ["dangling", "loop", "up/new.txt", "up/new/file.txt"] {
        assert!(workspace.write(name, "x").is_err(), "{name}");
    }
    let all = workspace
        .files(&Query::default(), &Stop::default())
        .unwrap();
    assert_eq!(all.items, [""; 0]);
    assert_eq!(code(workspace.within("up")), Code::Sandbox);
    assert!(place.is_untouched());
}

#[cfg(unix)]
#[test]
fn a_link_inside_the_workspace_is_followed_and_stays_a_link() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let (place, workspace) = Fixture::new();
    place.put("src/a.sh", "echo one");
    let file = workspace.path().join("src/a.sh");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    symlink("src/a.sh", workspace.path().join("run")).unwrap();
    let change = workspace.edit("run", "one", "two", false).unwrap();
    assert_eq!(change.path, "src/a.sh");
    assert_eq!(place.text("src/a.sh"), "echo two");
    assert!(workspace.path().join("run").is_symlink());
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755, "a script stays one");
    // But not with the rights of its owner.
    fs::set_permissions(&file, fs::Permissions::from_mode(0o6755)).unwrap();
    workspace.edit("run", "two", "three", false).unwrap();
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o755);
}

#[cfg(unix)]
#[test]
fn does_not_wait_for_a_pipe() {
    let (place, workspace) = Fixture::new();
    let path = place.0.join("inside/pipe");
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    assert!(made.unwrap().success());
    assert_eq!(code(read_all(&workspace, "pipe")), Code::NotFile);
    let found = workspace
        .search(&Query::new("x"), &Stop::default())
        .unwrap();
    assert_eq!(found.items, []);
}

#[cfg(unix)]
#[test]
fn a_folder_replaced_by_a_link_meanwhile_is_not_followed() {
    use std::os::unix::fs::symlink;
    let (place, workspace) = Fixture::new();
    place.put("folder/secret.txt", "harmless");
    let (folder, away) = (
        workspace.path().join("folder"),
        workspace.path().join("away"),
    );
    let out = place.0.to_path_buf();
    let turning = std::thread::spawn(move || {
        for _ in 0..300 {
            fs::rename(&folder, &away).unwrap();
            symlink(&out, &folder).unwrap();
            fs::remove_file(&folder).unwrap();
            fs::rename(&away, &folder).unwrap();
        }
    });
    while !turning.is_finished() {
        if let Ok(read) = read_all(&workspace, "folder/secret.txt") {
            assert_eq!(read.text, "harmless");
        }
        let _ = workspace.edit("folder/secret.txt", "less", "less", true);
    }
    turning.join().unwrap();
    assert!(place.is_untouched());
}

#[test]
fn an_edit_is_exact_and_reported_as_a_diff() {
    let (place, workspace) = Fixture::new();
    place.put("a.rs", "fn one() {}\r\nfn two() {}\r\nfn two() {}\r\n");
    let change = workspace.edit("a.rs", "one", "first", false).unwrap();
    assert_eq!((change.diff.added, change.diff.removed), (1, 1));
    assert!(!change.is_new());
    assert_eq!(
        place.text("a.rs"),
        "fn first() {}\r\nfn two() {}\r\nfn two() {}\r\n"
    );
    let why = workspace.edit("a.rs", "two", "x", false).unwrap_err();
    assert!(why.message.contains("2 times"), "{why}");
    assert_eq!(
        code(workspace.edit("a.rs", "three", "x", false)),
        Code::Edit
    );
    assert_eq!(code(workspace.edit("a.rs", "", "x", false)), Code::Call);
    assert_eq!(
        code(workspace.edit("b.rs", "x", "y", false)),
        Code::NotFound
    );
    let change = workspace.edit("a.rs", "two", "x", true).unwrap();
    assert_eq!((change.diff.added, change.diff.removed), (2, 2));
    let left: Vec<_> = fs::read_dir(workspace.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "no draft is left behind");
}

#[test]
fn an_edited_file_keeps_its_line_ends() {
    let (place, workspace) = Fixture::new();
    for (old, find, put, new) in [
        (
            "one\r\ntwo\r\nthree\r\n",
            "one\ntwo\n",
            "1\n2\n2.5\n",
            "1\r\n2\r\n2.5\r\nthree\r\n",
        ),
        ("one\r\ntwo", "one\ntwo", "one\n2", "one\r\n2"),
        ("one\r\ntwo\r\n", "two", "2\n3", "one\r\n2\r\n3\r\n"),
        ("one\r\ntwo\nthree", "two\nthree", "2\n3", "one\r\n2\n3"),
        ("\u{feff}one\r\n", "one\n", "1\n", "\u{feff}1\r\n"),
        ("one\ntwo", "one\r\ntwo", "1\r\n2", "1\n2"),
        ("one", "one", "1\r\n2", "1\r\n2"),
    ] {
        place.put("a.txt", old);
        workspace.edit("a.txt", find, put, false).unwrap();
        assert_eq!(place.text("a.txt"), new, "{find:?} in {old:?}");
    }
    place.put("a.txt", "one\r\ntwo\r\n");
    let change = workspace.edit("a.txt", "e\ntwo", "e\n2", false).unwrap();
    assert_eq!((change.diff.added, change.diff.removed), (1, 1));
    let why = workspace.edit("a.txt", "\r\n", "\n", true).unwrap_err();
    assert_eq!(why.code, Code::Edit);
    assert!(why.message.contains("line ends"), "{why}");
    assert_eq!(place.text("a.txt"), "one\r\n2\r\n");
}

#[test]
fn a_file_is_written_with_its_folders() {
    let (place, workspace) = Fixture::new();
    let change = workspace.write("src/deep/a.txt", "one\ntwo\n").unwrap();
    assert!(change.is_new());
    assert_eq!(
        (change.path.as_str(), change.diff.added),
        ("src/deep/a.txt", 2)
    );
    assert_eq!(place.text("src/deep/a.txt"), "one\ntwo\n");
    let change = workspace.write("src/deep/a.txt", "one\n").unwrap();
    assert!(!change.is_new());
    assert_eq!((change.diff.added, change.diff.removed), (0, 1));
    assert_eq!(workspace.write("./new", "").unwrap().path, "new");
    assert!(workspace.write("src", "x").is_err());
    let large = "x".repeat(usize::try_from(MAX_FILE).unwrap() + 1);
    assert_eq!(
        code(workspace.write("src/deep/a.txt", &large)),
        Code::TooLarge
    );
    assert_eq!(place.text("src/deep/a.txt"), "one\n");
}

#[test]
fn a_text_in_too_many_places_is_refused_before_it_is_made() {
    let (place, workspace) = Fixture::new();
    let old = "a".repeat(usize::try_from(MAX_FILE).unwrap());
    place.put("a.txt", &old);
    let long = "x".repeat(1024 * 1024);
    let why = workspace.edit("a.txt", "a", &long, true);
    assert_eq!(code(why), Code::TooLarge);
    assert_eq!(place.text("a.txt"), old);
    assert!(workspace.edit("a.txt", "a", "b", true).is_ok());
}

#[test]
fn two_edits_at_once_are_both_kept() {
    let (place, workspace) = Fixture::new();
    place.put("a.txt", "");
    let all: String = (0..40).map(|number| format!("<{number}>")).collect();
    place.put("a.txt", &all);
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let workspace = &workspace;
            scope.spawn(move || {
                for number in (worker..40).step_by(4) {
                    let find = format!("<{number}>");
                    workspace.edit("a.txt", &find, "x", false).unwrap();
                }
            });
        }
    });
    assert_eq!(place.text("a.txt"), "x".repeat(40));
}

#[test]
fn lines_are_found_in_order_and_within_a_limit() {
    let (place, workspace) = Fixture::new();
    place.put("b.rs", "fn a() {}\nlet a.b = 1;\n");
    place.put("a/z.rs", "fn a() {}\n");
    place.put("a/x.txt", "fn a() {}\n");
    place.put("target/a.rs", "fn a() {}\n");
    place.put(".gitignore", "/target\n");
    place.put(".git/config", "fn a() {}\n");
    place.put("zeros.rs", "fn a\0() {}\n");
    let search = |query: Query| workspace.search(&query, &Stop::default()).unwrap();
    let told = |found: &Found<Match>| -> Vec<String> {
        let items = found.items.iter();
        items.map(|it| format!("{}:{}", it.path, it.line)).collect()
    };
    let found = search(Query::new("fn a("));
    assert_eq!(told(&found), ["a/x.txt:1", "a/z.rs:1", "b.rs:1"]);
    assert!(!found.is_cut);
    let found = search(Query::new("a.b"));
    assert_eq!(told(&found), ["b.rs:2"], "a dot is a dot");
    let regex = |text| Query {
        is_regex: true,
        limit: Some(2),
        ..Query::new(text)
    };
    let found = search(Query {
        glob: Some("*.rs".to_owned()),
        ..regex("a.b?")
    });
    assert_eq!(told(&found), ["a/z.rs:1", "b.rs:1"]);
    assert!(found.is_cut);
    let found = search(Query {
        glob: Some("*.rs".to_owned()),
        folder: Some("a".to_owned()),
        ..Query::new("fn")
    });
    assert_eq!(told(&found), ["a/z.rs:1"]);
    let files = Query {
        glob: Some("a/*".to_owned()),
        ..Query::default()
    };
    let files = workspace.files(&files, &Stop::default()).unwrap();
    assert_eq!(files.items, ["a/x.txt", "a/z.rs"]);
    for bad in ["(", "", r"(\w{500}){500}"] {
        let bad = regex(bad);
        assert_eq!(code(workspace.search(&bad, &Stop::default())), Code::Call);
    }
    let none = search(Query::new("nowhere"));
    let ignored = "(left out: what .gitignore names; \"ignored\": true looks there, too)";
    let left_out = "(left out: files that are not text (1))";
    assert_eq!(none.remarks(), [ignored, left_out]);
    let found = search(Query {
        has_ignored: true,
        ..Query::new("fn a(")
    });
    assert_eq!(told(&found).last().unwrap(), "target/a.rs:1");
    let stop = Stop::default();
    stop.stop();
    assert_eq!(
        code(workspace.search(&Query::new("x"), &stop)),
        Code::Aborted
    );
}

#[cfg(unix)]
#[test]
fn a_list_counts_the_large_files_and_links_that_it_leaves_out() {
    let (place, workspace) = Fixture::new();
    place.put(
        "large.txt",
        vec![b'x'; usize::try_from(MAX_FILE).unwrap() + 1],
    );
    place.put("a\nb.txt", "x");
    place.put("long.txt", "x".repeat(400));
    std::os::unix::fs::symlink("long.txt", workspace.path().join("link")).unwrap();
    let stop = Stop::default();
    let found = workspace.search(&Query::new("x"), &stop).unwrap();
    let texts: Vec<_> = found.items.iter().map(|it| &*it.text).collect();
    assert_eq!(texts, ["x", &format!("{}…", "x".repeat(300))]);
    let left_out = "(left out: files with lines over 2 MiB (1), links (1))";
    assert_eq!(found.remarks(), [left_out]);
    let files = workspace.files(&Query::default(), &stop).unwrap();
    assert_eq!(files.items, [r"a\nb.txt", "large.txt", "long.txt"]);
    for name in ["a\nb.txt", "a\u{1b}[2J", "x/\r/y"] {
        assert_eq!(code(workspace.write(name, "x")), Code::Call, "{name:?}");
        assert_eq!(code(read_all(&workspace, name)), Code::Call, "{name:?}");
    }
}

#[test]
fn a_subfolder_can_be_the_workspace() {
    let (place, workspace) = Fixture::new();
    place.put("a/b.txt", "b");
    place.put("c.txt", "c");
    let whole = workspace.path().join("a").display().to_string();
    for name in ["a", "./a/", &whole] {
        let within = workspace.within(name).unwrap();
        assert_eq!(
            within
                .read("b.txt", Range::default(), &Stop::default())
                .unwrap()
                .text,
            "b"
        );
        assert_eq!(
            code(within.read("../c.txt", Range::default(), &Stop::default())),
            Code::Sandbox
        );
    }
    let same = workspace.within(&workspace.path().display().to_string());
    assert_eq!(same.unwrap().path(), workspace.path());
    assert_eq!(code(workspace.within("none")), Code::NotFound);
    assert_eq!(code(workspace.within("/none/at/all")), Code::Sandbox);
}
