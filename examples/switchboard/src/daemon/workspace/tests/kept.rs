//! Tests: what a person has, and what Git runs, is not overwritten, and files are found and kept as they are.

use super::*;

#[test]
fn nothing_of_git_is_written() {
    let (place, workspace) = Fixture::new();
    place.put(".git/config", "[core]\n");
    for name in ["HEAD", "refs/x", "bare/HEAD", "bare/refs/x", "tree/HEAD"] {
        place.put(name, "x");
    }
    for name in [
        ".git/config",
        ".git/hooks/pre-commit",
        "new/.git",
        "new/.git/config",
        ".GIT/config",
        "sub/../.git/config",
        "bare/objects/x",
        "tree/commondir",
    ] {
        let why = workspace.write(name, "x");
        assert!(
            matches!(why.map_err(|it| it.code), Err(Code::Git | Code::Sandbox)),
            "{name}"
        );
    }
    let edit = workspace.edit(".git/config", "[core]", "[core]\nfsmonitor = x", false);
    assert_eq!(code(edit), Code::Git);
    assert_eq!(place.text(".git/config"), "[core]\n");
    for name in [".gitignore", "src/git/config", "bare/description"] {
        workspace.write(name, "x").unwrap();
    }
    #[cfg(unix)]
    for (link, to) in [("store", ".git"), ("conf", ".git/config")] {
        std::os::unix::fs::symlink(to, workspace.path().join(link)).unwrap();
    }
    #[cfg(unix)]
    for name in ["store/config", "store/hooks/x", "conf"] {
        assert_eq!(code(workspace.write(name, "x")), Code::Git, "{name}");
    }
    assert!(place.is_untouched());
}

#[cfg(unix)]
#[test]
fn a_new_file_below_a_linked_folder_is_named_as_it_is_written() {
    let (place, workspace) = Fixture::new();
    place.put("real/a.txt", "");
    std::os::unix::fs::symlink("real", workspace.path().join("link")).unwrap();
    for name in ["link/new.txt", "link/deep/new.txt"] {
        let asked = workspace.preview_write(name, "x").unwrap();
        let done = workspace.write(name, "x").unwrap();
        assert_eq!(asked, done);
        assert!(
            done.path.starts_with("real/") && done.file.exists(),
            "{done:?}"
        );
    }
}

#[test]
fn a_whole_file_is_written_over_what_was_read_only() {
    let (place, workspace) = Fixture::new();
    place.put("a.txt", "one\n");
    let write = |text| workspace.write("a.txt", text);
    let why = write("mine\n").unwrap_err();
    assert!(
        why.code == Code::Stale && why.message.contains("read it first"),
        "{why}"
    );
    let read = || read_all(&workspace, "./a.txt").unwrap();
    read();
    assert!(!write("two\n").unwrap().is_over_command);
    write("three\n").unwrap();
    place.put("a.txt", "a person's\n");
    let why = write("mine\n").unwrap_err();
    assert!(why.message.contains("read it again"), "{why}");
    // An edit leaves what it does not name, but the whole is no better known.
    workspace.edit("a.txt", "person", "user", false).unwrap();
    assert_eq!(code(write("mine\n")), Code::Stale);
    read();
    // What a command has written since is its own, but not over what a person has.
    let command = |text| {
        let since = workspace.before_command();
        place.put("a.txt", text);
        workspace.after_command(since);
    };
    command("generated\n");
    assert!(write("four\n").unwrap().is_over_command);
    place.put("a.txt", "a person's\n");
    command("a person's, formatted\n");
    assert_eq!(code(write("mine\n")), Code::Stale);
    assert_eq!(place.text("a.txt"), "a person's, formatted\n");
    place.put("empty", "");
    workspace.write("empty", "x").unwrap();
}

#[test]
fn the_last_change_is_put_back_unless_somebody_has_touched_it() {
    let (place, workspace) = Fixture::new();
    let first = workspace.write("a.txt", "one\n").unwrap();
    let second = workspace.edit("a.txt", "one", "two", false).unwrap();
    assert_eq!(code(workspace.undo(&first)), Code::Stale);
    let undone = workspace.undo(&second).unwrap();
    assert_eq!(
        (undone.diff.added, place.text("a.txt").as_str()),
        (1, "one\n")
    );
    place.put("a.txt", "a person's\n");
    assert_eq!(code(workspace.undo(&first)), Code::Stale);
    place.put("a.txt", "one\n");
    workspace.undo(&first).unwrap();
    assert!(!workspace.path().join("a.txt").exists());
    assert!(workspace.undo(&first).is_err());
}

#[cfg(unix)]
#[test]
fn read_only_files_and_those_with_several_names_are_not_written() {
    use std::os::unix::fs::PermissionsExt as _;
    let (place, workspace) = Fixture::new();
    for name in ["locked", "linked"] {
        place.put(name, "one\n");
        read_all(&workspace, name).unwrap();
    }
    let at = |name: &str| workspace.path().join(name);
    fs::set_permissions(at("locked"), fs::Permissions::from_mode(0o444)).unwrap();
    fs::hard_link(at("linked"), at("other")).unwrap();
    for name in ["locked", "linked", "other"] {
        assert_eq!(code(workspace.write(name, "x")), Code::NotFile, "{name}");
        assert_eq!(
            code(workspace.edit(name, "one", "x", false)),
            Code::NotFile,
            "{name}"
        );
        assert_eq!(place.text(name), "one\n");
    }
}

#[test]
fn a_whole_file_keeps_its_line_ends_and_its_mark() {
    let (place, workspace) = Fixture::new();
    for (old, new, expected) in [
        (
            "\u{feff}one\r\ntwo\r\n",
            "1\n2\n3\n",
            "\u{feff}1\r\n2\r\n3\r\n",
        ),
        ("one\ntwo\n", "1\r\n2\r\n", "1\n2\n"),
        ("one\r\n", "", ""),
        ("one", "1\r\n2", "1\r\n2"),
    ] {
        place.put("a.txt", old);
        read_all(&workspace, "a.txt").unwrap();
        workspace.write("a.txt", new).unwrap();
        assert_eq!(place.text("a.txt"), expected, "{new:?} over {old:?}");
    }
}

#[test]
fn a_text_that_is_not_there_gets_the_nearest_lines() {
    let (place, workspace) = Fixture::new();
    place.put("a.rs", "fn one() {\n    let total = 1;\n}\n");
    let why = workspace.edit("a.rs", "fn one() {\n  let totals = 1;\n", "x", false);
    let why = why.unwrap_err().message;
    assert!(
        why.ends_with("the nearest lines are 1 to 2:\nfn one() {\n    let total = 1;"),
        "{why}"
    );
    let why = workspace.edit("a.rs", "something else entirely", "x", false);
    assert!(why.unwrap_err().message.ends_with("to be replaced"));
}

#[test]
fn files_of_any_size_are_read_by_line_and_searched() {
    let (place, workspace) = Fixture::new();
    let lines: String = (0..400_000).map(|line| format!("line {line}\n")).collect();
    assert!(lines.len() as u64 > MAX_FILE);
    place.put("huge.txt", lines);
    let range = Range {
        first: 399_999,
        count: 5,
    };
    let read = workspace.read("huge.txt", range, &Stop::default()).unwrap();
    assert_eq!(
        (read.text.as_str(), read.total),
        ("line 399998\nline 399999\n", 400_000)
    );
    let all = read_all(&workspace, "huge.txt").unwrap();
    assert!(all.text.len() as u64 <= MAX_FILE && all.lines < all.total);
    let found = workspace
        .search(&Query::new("line 399998"), &Stop::default())
        .unwrap();
    assert_eq!(found.items[0].line, 399_999);
}

#[test]
fn composed_names_and_their_parts_find_each_other() {
    let (place, workspace) = Fixture::new();
    place.put("cafe\u{301}/re\u{301}sume\u{301}.txt", "x");
    let composed = "caf\u{e9}/r\u{e9}sum\u{e9}.txt";
    let read = |name| read_all(&workspace, name);
    assert_eq!(read(composed).unwrap().text, "x");
    workspace.edit(composed, "x", "y", false).unwrap();
    let glob = Some("r\u{e9}*.txt".to_owned());
    let found = workspace
        .files(
            &Query {
                glob,
                ..Query::default()
            },
            &Stop::default(),
        )
        .unwrap();
    assert_eq!(found.items.len(), 1);
    // With two that fit, a name is what it says.
    place.put("e\u{301}.txt", "parts");
    place.put("\u{e9}.txt", "composed");
    assert_eq!(read("\u{e9}.txt").unwrap().text, "composed");
    assert_eq!(read("e\u{301}.txt").unwrap().text, "parts");
}

#[test]
fn a_home_in_a_path_is_no_folder() {
    let (place, workspace) = Fixture::new();
    for name in ["~/a.txt", "~", "$HOME/a.txt", "${HOME}/a.txt", "~root/x"] {
        let why = workspace.write(name, "x").unwrap_err();
        assert!(
            why.code == Code::Call && why.message.contains("stands for nothing"),
            "{why}"
        );
    }
    for name in ["$id.tsx", "a~", "routes/$HOME", "$home/x"] {
        workspace.write(name, "x").unwrap();
    }
    place.put("~/a.txt", "x");
    workspace.write("~/b.txt", "x").unwrap();
}

#[test]
fn a_folder_that_was_made_anew_is_the_workspace() {
    let (place, workspace) = Fixture::new();
    place.put("a.txt", "old");
    let root = workspace.path().to_owned();
    fs::rename(&root, place.0.join("away")).unwrap();
    assert!(workspace.now().is_err());
    fs::create_dir(&root).unwrap();
    place.put("a.txt", "new");
    let read = workspace
        .now()
        .unwrap()
        .read("a.txt", Range::default(), &Stop::default());
    assert_eq!(read.unwrap().text, "new");
}
