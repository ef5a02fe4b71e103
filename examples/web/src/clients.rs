//! The five clients.

use rpc_core::net::entropy;

use super::{Column, Login, Outcome, Typed};

/// Says in a channel what is typed, and shows what is said there.
pub(super) async fn snek(column: &Column, login: Login, mut typed: Typed) -> Outcome {
    use snek_proto::client::{ClientConfig, ClientEvent};
    use snek_proto::frame::Final;
    use snek_proto::net::{connect_with, dialer};

    let mut config = ClientConfig::new(login.user, login.secret);
    column.watch(&mut config.link);
    let dialer = dialer(&login.url, &config)?;
    let (client, mut events, connection) =
        connect_with(dialer, config);
    column.run(connection, client.states());
    loop {
        tokio::select! {
            text = typed.recv() => {
                let Some(text) = text else { return Ok(()) };
                if let Err(error) = client.send_message("general", &text, Final::Yes).await {
                    column.tell("error", error);
                }
            }
            event = events.next() => match event {
                Some(ClientEvent::Message(said)) => {
                    column.tell("answer", format_args!("{}: {}", said.username, said.message));
                }
                Some(_) => {}
                None => return Ok(()),
            }
        }
    }
}

/// Chats with a gateway.
pub(super) async fn exoclaw(column: &Column, login: Login, mut typed: Typed) -> Outcome {
    use exoclaw_proto::client::ClientConfig;
    use exoclaw_proto::net::{connect_with, dialer};

    let mut config = match login.secret.is_empty() {
        true => ClientConfig::default(),
        false => ClientConfig::new(login.secret),
    };
    column.watch(&mut config.link);
    let dialer = dialer(&login.url, &config)?;
    let (client, _events, connection) = connect_with(dialer, config);
    column.run(connection, client.states());
    while let Some(text) = typed.recv().await {
        column.answer(client.chat(text).await.finish().await);
    }
    Ok(())
}

/// Gives an agent tasks, with a key of its own, and allows what it asks for.
pub(super) async fn connectonion(column: &Column, login: Login, mut typed: Typed) -> Outcome {
    use connectonion_proto::auth::Signer;
    use connectonion_proto::client::ClientConfig;
    use connectonion_proto::frame::Scope;
    use connectonion_proto::net::{RunEvent, connect_with, dialer};

    let seed = std::array::from_fn(|_| entropy().to_ne_bytes()[0]);
    let signer = Signer::from_seed(&seed);
    let mut options = ClientConfig::default();
    column.watch(&mut options.link);
    let (client, _events, connection) =
        connect_with(dialer(&login.url, &options)?, signer, options);
    column.run(connection, client.states());
    while let Some(text) = typed.recv().await {
        let mut run = client.chat(text).await;
        while let Some(event) = run.next().await {
            if let Ok(RunEvent::Approval(asked)) = event {
                asked.approve(Scope::Once).await?;
            }
        }
        column.answer(run.finish().await.map(|it| it.result.to_string()));
    }
    Ok(())
}

/// Registers at a router, accepts what it passes on, and says to the last message what is typed.
pub(super) async fn smarthole(column: &Column, login: Login, mut typed: Typed) -> Outcome {
    use smarthole_proto::client::ClientConfig;
    use smarthole_proto::frame::{Notification, Registration};
    use smarthole_proto::net::{Event, InboundMessage, connect_with, dialer};

    let mut config = ClientConfig::new(Registration::new(login.user, "Shows messages in a page."))?;
    column.watch(&mut config.link);
    let dialer = dialer(&login.url, &config)?;
    let (client, mut events, connection) =
        connect_with(dialer, config);
    column.run(connection, client.states());
    let mut last: Option<InboundMessage> = None;
    loop {
        tokio::select! {
            text = typed.recv() => {
                let Some(text) = text else { return Ok(()) };
                match &last {
                    Some(message) => column.answer(message.notify(Notification::new(text)).await.map(|()| "sent")),
                    None => column.tell("error", "no message has come yet"),
                }
            }
            event = events.next() => match event {
                Some(Event::Registered { .. }) => column.tell("answer", "registered"),
                Some(Event::Message(message)) => {
                    column.tell("answer", &message.text);
                    column.answer(message.ack().await.map(|()| "accepted"));
                    last = Some(message);
                }
                Some(_) => {}
                None => return Ok(()),
            }
        }
    }
}

/// Chats with a coding agent.
pub(super) async fn acolyte(column: &Column, login: Login, mut typed: Typed) -> Outcome {
    use acolyte_proto::auth::ApiKey;
    use acolyte_proto::client::{ChatUpdate, ClientConfig};
    use acolyte_proto::event::Event;
    use acolyte_proto::frame::ChatRequest;
    use acolyte_proto::net::{connect_with, dialer};

    let mut config = ClientConfig::default();
    if !login.secret.is_empty() {
        config.api_key = Some(ApiKey::new(login.secret)?);
    }
    column.watch(&mut config.link);
    let dialer = dialer(&login.url, &config)?;
    let (client, _events, connection) = connect_with(dialer, config);
    column.run(connection, client.states());
    client.ready().await?;
    let model = client.status().await?.model;
    while let Some(text) = typed.recv().await {
        let mut chat = client
            .chat(ChatRequest::new(text, model.clone()))
            .await;
        let mut answer = String::new();
        while let Some(update) = chat.next().await {
            if let ChatUpdate::Event(Event::TextDelta(text)) = update {
                answer.push_str(&text);
            }
        }
        column.tell("answer", answer);
    }
    Ok(())
}
