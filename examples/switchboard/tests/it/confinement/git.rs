//! What Git runs by itself, and commands may only read.

use switchboard::daemon::command::GitAccess;

use super::*;

#[tokio::test]
async fn commands_read_what_git_runs_and_do_not_write_it() {
    let room = Room::new("git");
    let inside = room.place.1.path().to_owned();
    let make = "git init -q . && echo x > x && git add x && git commit -qm one && git branch other && \
                git worktree add -q tree && git init -q sub && git clone -q --bare . bare && \
                rm -r sub/.git/hooks && mkdir sub/.githooks && ln -s ../.githooks sub/.git/hooks";
    let made = room.tries(Confinement::Open, make).await;
    assert_eq!(made, Tried::Code(0), "is Git there?");
    let tries = |line| room.tries(Confinement::Workspace, line);
    if tries("true").await == Tried::Refused {
        return;
    }
    let kept = [".git/config", "sub/.git/config", "bare/config", "tree/.git"];
    let kept = || kept.map(|name| fs::read_to_string(inside.join(name)).unwrap());
    let before = kept();
    for line in [
        "echo x >> .git/config",
        "git config core.fsmonitor ./x",
        "rm .git/config",
        "mv .git/config x",
        "mv .git away",
        "ln .git/config c && echo x >> c",
        "echo x > .git/hooks/pre-commit",
        "rm -r .git/hooks",
        "mv .git/hooks away",
        "mv sub/.git away",
        "echo x > sub/.git/hooks/pre-commit",
        "echo x > sub/.githooks/pre-commit",
        "echo x > bare/config",
        "echo 'gitdir: ../bare' > tree/.git",
        "rm tree/.git",
        "echo ../../../bare > .git/worktrees/tree/commondir",
        "mv .git/worktrees/tree .git/worktrees/away",
    ] {
        let tried = tries(line).await;
        assert!(
            matches!(tried, Tried::Code(code) if code != 0),
            "{line}: {tried:?}"
        );
        assert_eq!(kept(), before, "{line}");
    }
    for line in [
        "git commit -q --allow-empty -m two",
        "git checkout -q other && git checkout -q -b third && git tag v1",
        "echo y > x && git stash -q && git stash pop -q && git checkout -q x",
        "git -C tree commit -q --allow-empty -m three",
        "git gc -q",
    ] {
        assert_eq!(tries(line).await, Tried::Code(0), "{line}");
    }
    let line = "rm sub/.git/hooks && mkdir sub/.git/hooks && echo x > sub/.git/hooks/pre-commit";
    assert_eq!(tries(line).await, Tried::Code(0));
    let hooks = inside.join("sub/.git/hooks").read_link().unwrap();
    assert_eq!(hooks.to_str(), Some("../.githooks"));
    // What would lead Git to other settings is gone afterwards.
    let line = "mkdir evil && cp -r .git/objects .git/refs evil && echo ../evil > .git/commondir";
    assert_eq!(tries(line).await, Tried::Code(0));
    assert!(!inside.join(".git/commondir").exists());
}

#[tokio::test]
async fn a_command_that_fails_at_gits_settings_names_the_option() {
    let room = Room::new("git-open");
    let line = "git remote add origin x || exit 7";
    let Ok(made) = room
        .run(room.config(), "git init -q new && git init -q .")
        .await
    else {
        return;
    };
    assert_eq!(
        (made.code, made.remark()),
        (Some(0), None),
        "what a command makes is its own"
    );
    let refused = room.run(room.config(), line).await.unwrap();
    assert_eq!(refused.code, Some(7), "{}", refused.text());
    assert!(refused.text().contains("--git open"), "{}", refused.text());
    let open = room.config().with_git(GitAccess::Open);
    let output = room.run(open, line).await.unwrap();
    assert_eq!(
        (output.code, output.remark()),
        (Some(0), None),
        "{}",
        output.text()
    );
}
