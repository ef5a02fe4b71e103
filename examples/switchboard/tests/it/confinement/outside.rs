//! Git's folder outside of the workspace: whose it is, and what of it commands can write.

use std::path::Path;

use switchboard::daemon::Workspace;
use switchboard::daemon::git::{Outside, outside};

use super::*;

/// A repository with a worktree beside it, a submodule and a folder.
fn repository(room: &Room) -> PathBuf {
    let line = "git init -q lib && cd lib && echo l > l && git add . && git commit -qm l && cd .. && \
                git init -q repo && cd repo && mkdir -p apps/x && echo a > apps/x/a && git add . && \
                git commit -qm a && git worktree add -q ../tree -b tree && \
                git -c protocol.file.allow=always submodule --quiet add ../lib mod && git commit -qm m";
    let mut command = Command::new("sh");
    command.args(["-c", line]).current_dir(&room.place.0);
    for role in ["AUTHOR", "COMMITTER"] {
        command
            .env(format!("GIT_{role}_NAME"), "a")
            .env(format!("GIT_{role}_EMAIL"), "a@b");
    }
    assert!(command.status().unwrap().success());
    room.place.0.canonicalize().unwrap()
}

fn found(writable: &[PathBuf], readable: Option<PathBuf>) -> Option<Outside> {
    let writable = writable.to_vec();
    Some(Outside { writable, readable })
}

#[test]
fn a_folder_of_git_is_found_where_it_points_back_to_the_workspace() {
    let room = Room::new("points-back");
    let top = repository(&room);
    let git = top.join("repo/.git");
    let worktree = found(&[git.clone(), git.join("worktrees/tree")], None);
    assert_eq!(outside(&top.join("tree")), worktree);
    assert_eq!(
        outside(&top.join("repo/mod")),
        found(&[git.join("modules/mod")], None)
    );
    let folder = found(&[git], Some(top.join("repo")));
    assert_eq!(outside(&top.join("repo/apps/x")), folder);
    assert_eq!(outside(&top.join("repo")), None);
    // What an archive may hold.
    let planted = top.join("planted");
    fs::create_dir(&planted).unwrap();
    for folder in [
        "repo/.git",
        "repo/.git/worktrees/tree",
        "repo/.git/modules/mod",
        "missing",
    ] {
        let line = format!("gitdir: {}\n", top.join(folder).display());
        fs::write(planted.join(".git"), line).unwrap();
        assert_eq!(outside(&planted), None, "{folder}");
    }
}

#[tokio::test]
async fn commands_commit_in_a_worktree_and_change_nothing_that_git_executes() {
    let room = Room::new("worktree");
    let top = repository(&room);
    let git = top.join("repo/.git");
    for (folder, config) in [
        ("tree", git.clone()),
        ("repo/apps/x", git.clone()),
        ("repo/mod", git.join("modules/mod")),
    ] {
        let workspace = Workspace::open(&top.join(folder)).unwrap();
        let reach = outside(workspace.path()).unwrap();
        let mut given = CommandConfig::default().with_writable(reach.writable);
        given.readable.extend(reach.readable);
        let commands = commands(given);
        let run = |line: &'static str| {
            let (commands, workspace) = (commands.clone(), workspace.clone());
            async move { commands.run(&workspace, line, None, &mut drop).await }
        };
        let line = "test -z \"$(git status --porcelain)\" && echo n > n && git add n && git commit -qm n && git log -1";
        let Ok(output) = run(line).await else { return };
        assert_eq!(output.code, Some(0), "{folder}: {}", output.text());
        let before = fs::read(config.join("config")).unwrap();
        for line in [
            "git config core.fsmonitor ./evil",
            "echo evil >> $(git rev-parse --git-common-dir)/config",
            "echo evil > $(git rev-parse --git-common-dir)/hooks/post-commit",
            "mv $(git rev-parse --git-common-dir)/hooks /tmp",
        ] {
            assert_ne!(run(line).await.unwrap().code, Some(0), "{folder}: {line}");
        }
        assert_eq!(fs::read(config.join("config")).unwrap(), before);
        // Where Git would look for another config.
        let line = "echo /tmp/evil > $(git rev-parse --git-common-dir)/commondir";
        assert_eq!(run(line).await.unwrap().code, Some(0));
        assert!(!Path::new(&config.join("commondir")).exists(), "{folder}");
    }
}
