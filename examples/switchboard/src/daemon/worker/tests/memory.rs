//! What a daemon remembers of its conversations.

use super::*;

/// Returns what is known in this conversation, about this resource.
async fn known(place: &Fixture, session: Option<&str>, resource: Option<&str>) -> String {
    let mut request = ChatRequest::new("what do you know?", "scripted");
    request.session_id = session.map(|id| id.parse().unwrap());
    request.resource_id = resource.map(|id| id.parse().unwrap());
    place.1.instructions(&request).await
}

#[tokio::test]
async fn a_conversation_is_remembered_and_found_by_all_of_its_resource() {
    let mut request = ChatRequest::new("hello\n you", "scripted");
    for (session, resource, knows) in [
        // Without a conversation nothing is kept.
        (None, Some("user_a"), &[][..]),
        (
            Some("sess_a"),
            Some("user_a"),
            &[(Some("sess_b"), Some("user_a")), (None, Some("user_a"))],
        ),
        (Some("sess_c"), None, &[(Some("sess_c"), None)]),
    ] {
        let place = Fixture::new();
        let nothing = known(&place, None, None).await;
        request.session_id = session.map(|id: &str| id.parse().unwrap());
        request.resource_id = resource.map(|id: &str| id.parse().unwrap());
        let (_, reply) = place.ask(&request, &Seen::new()).await;
        reply.unwrap();
        for (session, resource) in knows {
            let told = known(&place, *session, *resource).await;
            let fact = "asked: hello you; done: hello you";
            assert!(told.contains(fact), "{session:?} {resource:?}: {told}");
        }
        for (session, resource) in [
            (None, None),
            (Some("sess_a"), None),
            (Some("sess_a"), Some("proj_other")),
        ] {
            assert_eq!(known(&place, session, resource).await, nothing);
        }
    }
}

#[tokio::test]
async fn a_history_is_not_recalled_twice() {
    let place = Fixture::new();
    let mut request = ChatRequest::new("hello", "scripted");
    request.session_id = "sess_a".parse().ok();
    let (_, reply) = place.ask(&request, &Seen::new()).await;
    let reply = reply.unwrap();
    assert!(place.1.memory.recall(&request).await.is_some());
    request.history = vec![rpc_core::Json::EMPTY_OBJECT];
    assert_eq!(place.1.memory.recall(&request).await, None);
    for number in 0..1_000 {
        request.message = format!("question {number}").into();
        place.1.memory.keep(&request, &reply).await;
    }
    request.history.clear();
    let told = place.1.memory.recall(&request).await.unwrap();
    assert_eq!(told.lines().count(), 1 + 20);
    assert!(told.contains("question 999;") && told.contains("question 980;"));
}

#[tokio::test]
async fn a_session_and_its_changes_outlive_a_restart() {
    let mut place = Fixture::new();
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let worker = |place: &Fixture| place.worker().with_store(Arc::clone(&store));
    place.1 = worker(&place);
    let mut request = ChatRequest::new("hello", "scripted");
    request.session_id = "sess_a".parse().ok();
    place.ask(&request, &Seen::new()).await.1.unwrap();
    request.message =
        "/call file-edit {\"path\":\"a.txt\",\"find\":\"one\",\"replace\":\"1\"}".into();
    place.ask(&request, &Seen::new()).await.1.unwrap();
    place.1 = worker(&place);
    let told = place.1.memory.recall(&request).await.unwrap();
    assert!(told.contains("asked: hello; done: hello"), "{told}");
    for said in [
        "put back a.txt (+1 -1)",
        "nothing to undo: no file was changed",
    ] {
        request.message = UNDO.into();
        assert_eq!(
            place.ask(&request, &Seen::new()).await.1.unwrap().output,
            said
        );
    }
    assert_eq!(
        fs::read_to_string(place.0.join("a.txt")).unwrap(),
        "one\ntwo\n"
    );
}

#[tokio::test]
async fn a_prompt_knows_its_place_and_the_instructions_of_the_project() {
    let place = Fixture::new();
    let put = |name: &str, text: &str| {
        let path = place.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let words = |folder: &str| {
        let here = Workspace::open(&place.0.join("inner")).unwrap();
        let within = here.within(folder).unwrap();
        place::words(&here, &within, &place_tools())
    };
    put("AGENTS.md", "outer rules");
    put("inner/sub/AGENTS.md", "inner rules");
    let told = words("sub");
    let folder = place.0.canonicalize().unwrap().join("inner/sub");
    assert!(
        told.contains(&format!("The workspace: {}", folder.display())),
        "{told}"
    );
    assert!(
        told.contains("The date: 20") && told.contains("Commands: none"),
        "{told}"
    );
    assert!(
        told.ends_with("inner rules") && !told.contains("outer"),
        "{told}"
    );
    put(".git/HEAD", "ref: refs/heads/feature/x\n");
    let told = words("sub");
    assert!(told.contains("\nThe branch: feature/x\n"), "{told}");
    assert!(
        told.find("outer rules") < told.find("inner rules"),
        "{told}"
    );
    // A link in the workspace shows nothing from outside.
    #[cfg(unix)]
    {
        put("secret", "secret");
        fs::remove_file(place.0.join("inner/sub/AGENTS.md")).unwrap();
        std::os::unix::fs::symlink("../../secret", place.0.join("inner/sub/AGENTS.md")).unwrap();
        assert!(!words("sub").contains("secret"));
    }
}

fn place_tools() -> Toolbox {
    let config = CommandConfig::default().with_confinement(Confinement::Off);
    Toolbox::new(Commands::new(config))
}

#[tokio::test]
async fn an_answer_in_a_history_has_what_its_provider_gave_with_it() {
    let memory = Memory::new(Arc::new(MemoryStore::new()));
    let session = |id: &str| id.parse::<SessionId>().unwrap();
    let (one, other) = (session("sess_a"), session("sess_b"));
    let mut answer = ChatMessage::assistant("so ");
    answer
        .extra
        .insert("reasoning_content".to_owned(), "hm".into());
    memory.keep_given(Some(&one), answer.clone());
    memory.keep_given(None, answer.clone());
    let plain = || [ChatMessage::user("so"), ChatMessage::assistant("so")];
    for (of, is_given) in [(Some(&one), true), (Some(&other), false), (None, false)] {
        let mut past = plain();
        memory.give_back(of, &mut past);
        assert_eq!(past[0], plain()[0]);
        assert_eq!(past[1] == answer, is_given, "{of:?}");
    }
    // The oldest goes first.
    let long = "x".repeat(1024 * 1024);
    for number in 0..16 {
        let mut answer = ChatMessage::assistant(format!("{number}"));
        answer.extra.insert("r".to_owned(), long.clone().into());
        memory.keep_given(Some(&one), answer);
    }
    let mut past = plain();
    memory.give_back(Some(&one), &mut past);
    assert_eq!(past, plain());
}
