//! Everyday commands in the confinement: what works, what is told where it does not, and what stays closed.

use super::*;

/// A program that may be missing on this machine, and a line that has to end with 0 where it is there.
const WORKS: [(&str, &str); 30] = [
    ("whoami", "test \"$(whoami)\" = \"$(id -un)\""),
    ("ps", "sleep 5 & ps aux | grep '[s]leep 5' && kill $!"),
    ("df", "df . && df -h"),
    (
        "ls",
        "ls /etc /usr ~ /tmp && cat /etc/passwd /etc/os-release",
    ),
    (
        "mktemp",
        "echo x > /tmp/x && test \"$(cat /tmp/x)\" = x && mktemp -d",
    ),
    (
        "touch",
        "touch ~/.profile && mkdir -p ~/.config/x && ls -A ~ | grep .profile",
    ),
    ("bash", "bash -c 'diff <(echo a) <(echo a)'"),
    (
        "tee",
        "echo a | cat /dev/stdin && echo b > /dev/stdout && echo c > /dev/stderr",
    ),
    ("nproc", "nproc && cat /proc/meminfo /proc/self/status"),
    ("xargs", "seq 4 | xargs -P2 -n1 echo"),
    (
        "tar",
        "echo x > x && tar cf x.tar x && tar xf x.tar && gzip -f x.tar",
    ),
    ("sed", "echo a > s && sed -i s/a/b/ s && grep b s"),
    (
        "make",
        "printf 'all:\\n\\techo made\\n' > Makefile && make -j2",
    ),
    (
        "cc",
        "echo 'int main(){return 0;}' > a.c && cc a.c -o a.out && ./a.out",
    ),
    ("perl", "perl -e 'exit(!getpwuid($>))'"),
    ("openssl", "openssl rand -hex 4"),
    (
        "ssh-keygen",
        "ssh-keygen -q -t ed25519 -N '' -f key && ssh-keygen -y -f key",
    ),
    ("curl", "curl -V"),
    (
        "git",
        "git init -q r && cd r && echo a > a && git add a && git commit -qm a && git gc -q && git clone -q . ../r2",
    ),
    (
        "git",
        "cd r && git worktree add -q ../r3 -b x && cd ../r3 && git status -s && git log",
    ),
    (
        "python3",
        "python3 -c 'import os,pwd; pwd.getpwuid(os.getuid())'",
    ),
    (
        "python3",
        "python3 -c 'import multiprocessing as m\nq = m.Queue()\nm.Process(target=q.put, args=(1,)).start()\nq.get()'",
    ),
    (
        "python3",
        "python3 -c 'import tempfile, sqlite3; tempfile.TemporaryFile(); sqlite3.connect(\"a.db\")'",
    ),
    (
        "python3",
        "python3 -m venv --without-pip .venv && .venv/bin/python -c 'import sys; sys.exit(sys.prefix == sys.base_prefix)'",
    ),
    ("pip", "pip list"),
    (
        "node",
        "node -e 'require(\"os\").userInfo(); require(\"child_process\").execSync(\"true\")'",
    ),
    (
        "npm",
        "mkdir -p n && cd n && npm init -y && npm install --offline --no-audit",
    ),
    ("cargo", "cargo --version && rustc --version"),
    ("pyenv", "pyenv versions"),
    ("flock", "flock lock true"),
];

#[tokio::test]
async fn everyday_commands_work() {
    let room = Room::new("everyday");
    let commands = commands(CommandConfig::default());
    if commands.check(&room.place.1).await.is_err() {
        return;
    }
    for (tool, line) in WORKS {
        let line = format!("command -v {tool} >/dev/null || exit 0; {line}");
        let output = commands.run(&room.place.1, &line, None, &mut drop).await;
        let output = output.unwrap();
        assert_eq!(output.code, Some(0), "{line}: {}", output.text());
        assert_eq!(output.lacks, None, "{line}");
    }
}

#[tokio::test]
async fn a_package_of_the_cache_builds_without_a_network() {
    let room = Room::new("package");
    let folder = room.place.1.path();
    let manifest =
        "[package]\nname = \"p\"\nedition = \"2021\"\n[dependencies]\nitoa = \"1\"\n[workspace]\n";
    fs::write(folder.join("Cargo.toml"), manifest).unwrap();
    fs::create_dir(folder.join("src")).unwrap();
    fs::write(folder.join("src/lib.rs"), "pub use itoa::Buffer;\n").unwrap();
    let tried = room
        .tries(Confinement::Workspace, "cargo build --offline")
        .await;
    assert!(
        matches!(tried, Tried::Code(0) | Tried::Refused),
        "{tried:?}"
    );
}

#[tokio::test]
async fn what_is_not_for_everyone_is_not_for_commands() {
    let room = Room::new("closed");
    let lines = [
        "cat /etc/shadow",
        "ls /etc/ssl/private",
        "cat /etc/ssl/private/*",
        "cat /proc/kcore /proc/keys 2>/dev/null | grep -q .",
        "echo 1 > /proc/sys/kernel/panic",
        "touch /dev/shm/../new",
    ];
    for line in lines {
        let tried = room.tries(Confinement::Workspace, line).await;
        assert_ne!(tried, Tried::Code(0), "{line}");
    }
    // Of others, or of the next command.
    fs::write("/dev/shm/daemon-outside", "x").unwrap();
    let tried = room
        .tries(Confinement::Workspace, "ls /dev/shm | grep .")
        .await;
    fs::remove_file("/dev/shm/daemon-outside").unwrap();
    assert_ne!(tried, Tried::Code(0));
}

#[test]
fn a_home_shows_installations_and_caches_without_credentials() {
    let room = Room::new("credentials");
    let home = room.place.0.join("home");
    let (open, closed) = (
        [
            ".cargo/registry/cache/a",
            ".npm/_cacache/a",
            ".cache/pip/a",
            "sdk/bin/a",
            "sdk/lib/a",
            ".manager/shims/a",
            ".manager/versions/a",
            ".local/bin/a",
            ".local/lib/a",
            ".tool/bin/a",
        ],
        [
            ".cargo/credentials.toml",
            ".npmrc",
            ".npm/token",
            ".config/pip/pip.conf",
            ".local/share/keyrings/a",
            ".tool/credentials",
            ".ssh/id",
            "notes",
        ],
    );
    for path in open.iter().chain(&closed) {
        let path = home.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "x").unwrap();
    }
    let mut command = room.serve(&[], &[]);
    let folders = ["sdk/bin", ".manager/shims", ".local/bin", ".tool/bin"].map(|it| home.join(it));
    let path = std::env::var_os("PATH").unwrap();
    let path = folders.into_iter().chain(std::env::split_paths(&path));
    command
        .env("PATH", std::env::join_paths(path).unwrap())
        .env("HOME", &home);
    for variable in ["CARGO_HOME", "npm_config_cache", "PIP_CACHE_DIR"] {
        command.env_remove(variable);
    }
    let server = Running::start(command);
    let line = server.line_with("listening on ");
    if line.contains("no commands") {
        return;
    }
    let url = line.split(' ').find(|word| word.starts_with("http"));
    let line = format!(
        "cd; cat {} && ! cat {} 2>/dev/null && touch .cargo/lock .profile && ! touch .cargo/registry/x && echo well",
        open.join(" "),
        closed.join(" "),
    );
    let call = serde_json::json!({ "command": line });
    let said = does(url.unwrap(), &format!("/call shell-run {call}"));
    assert!(said.contains("well"), "{said}");
    assert!(!said.contains(&"x".repeat(open.len() + 1)), "{said}");
}

#[tokio::test]
async fn a_command_that_fails_for_want_of_a_right_names_the_option() {
    let room = Room::new("rights");
    let secret = room.place.0.join("secret.txt").display().to_string();
    for (line, expected) in [
        (
            format!("cat {secret}"),
            Some(format!("--readable {secret}")),
        ),
        (
            "cat ../secret.txt".to_owned(),
            Some(format!("--readable {secret}")),
        ),
        (
            "touch /usr/new".to_owned(),
            Some("--writable /usr".to_owned()),
        ),
        ("touch ../new".to_owned(), Some("--writable ".to_owned())),
        ("cat missing; cat ./missing".to_owned(), None),
        ("/bin/false".to_owned(), None),
        ("ls / /usr ~ /tmp; false".to_owned(), None),
    ] {
        let Ok(output) = room.run(CommandConfig::default(), &line).await else {
            return;
        };
        let told = output.lacks.unwrap_or_default();
        match expected {
            Some(expected) => assert!(told.contains(&expected), "{line}: {told}"),
            None => assert_eq!(told, "", "{line}"),
        }
    }
}

#[tokio::test]
async fn a_folder_that_is_given_can_be_written() {
    let room = Room::new("given");
    let more = room.place.0.join("more");
    fs::create_dir(&more).unwrap();
    let config = room.config().with_writable(vec![more.clone()]);
    let line = format!(
        "echo x > {0}/x && ! touch {0}/../y && ! cat {0}/../secret.txt",
        more.display()
    );
    if let Ok(output) = room.run(config, &line).await {
        assert_eq!(output.code, Some(0), "{}", output.text());
        assert!(more.join("x").exists() && !room.place.0.join("y").exists());
    }
}

#[tokio::test]
async fn a_home_belongs_to_one_workspace_and_one_session() {
    let room = Room::new("homes");
    fs::create_dir(room.place.1.path().join("a")).unwrap();
    let within = room.place.1.within("a").unwrap();
    for confinement in [Confinement::Open, Confinement::Workspace] {
        let commands = commands(CommandConfig::default().with_confinement(confinement));
        let [one, again, other] = ["one", "one", "other"].map(|it| commands.of_session(Some(it)));
        let unnamed = commands.of_session(None);
        let line = "ls ~/.mine $TMPDIR/mine";
        let set = one
            .run(&room.place.1, "touch ~/.mine $TMPDIR/mine", None, &mut drop)
            .await;
        if set.is_err() {
            continue;
        }
        for (commands, workspace, is_seen) in [
            (again, &room.place.1, true),
            (one, &within, false),
            (other, &room.place.1, false),
            (unnamed, &room.place.1, false),
        ] {
            let output = commands
                .run(workspace, line, None, &mut drop)
                .await
                .unwrap();
            assert_eq!(output.code == Some(0), is_seen, "{}", output.text());
        }
    }
}

#[tokio::test]
async fn a_server_in_the_background_is_ended_and_that_is_told() {
    let room = Room::new("background");
    for confinement in [Confinement::Open, Confinement::Workspace] {
        for (line, is_told) in [("sleep 60 & echo started", true), ("sleep 0 & wait", false)] {
            let config = room.config().with_confinement(confinement);
            if let Ok(output) = room.run(config, line).await {
                assert_eq!(output.left_running, is_told, "{line}");
                assert_eq!(output.text().contains("ended with it"), is_told);
            }
        }
    }
}
