//! Our Snek client.

use snek_proto::client::ClientConfig;
use snek_proto::frame::{Final, NoKwargs};
use snek_proto::net::{Client, connect_lazy};

use super::Pace;
use crate::net::kind::{self, Kind};
use crate::net::values::{SENT, Said, Sent, TEXT};

async fn ping(client: &Client) {
    client.ping().await.unwrap();
}

async fn echo(client: &Client) {
    let said = (Said { text: TEXT },);
    let answer = client.call("echo", &said, &NoKwargs {}).await.unwrap();
    let said: Said<String> = answer.parse().unwrap();
    assert_eq!(said.text, TEXT);
}

async fn send(client: &Client) {
    let (channel, text, _) = SENT;
    let answer = client.send_message(channel, text, Final::Yes).await;
    let answer = answer.unwrap();
    let sent: Sent = answer.parse().unwrap();
    assert_eq!(sent.channel_uid, channel);
}

pub(super) async fn load(kind: Kind<'_>, address: &str, pace: Pace) {
    let url = format!("ws://{address}/rpc.ws");
    let (client, _events, connection) = connect_lazy(&url, ClientConfig::new("ann", "a")).unwrap();
    tokio::spawn(connection.run());
    client.ready().await.unwrap();
    match kind.work {
        kind::ECHO => pace.measure(|_| echo(&client)).await,
        kind::SEND_MESSAGE => pace.measure(|_| send(&client)).await,
        _ => pace.measure(|_| ping(&client)).await,
    }
}
