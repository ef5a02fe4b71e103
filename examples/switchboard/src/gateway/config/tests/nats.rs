//! What `[nats]` says.

use super::*;

const FULL: &str = r#"
[nats]
url = "nats://ann:hunter2@h"
prefix = "p"
replicas = 3
user = "ann"
password_file = "password"
token_file = "/t"
nkey_file = "~/seed"
creds_file = "c.creds"
ca = "ca.pem"
lease = 30
"#;

#[test]
fn every_key_of_nats_is_read_and_a_password_in_the_url_is_never_printed() {
    let config = read(FULL);
    assert!(!format!("{config:?}").contains("hunter2"));
    let expected = NatsSettings {
        url: Some("nats://ann:hunter2@h".into()),
        prefix: Some("p".to_owned()),
        replicas: Some(3),
        user: Some("ann".to_owned()),
        password_file: Some("/etc/gate/password".into()),
        token_file: Some("/t".into()),
        nkey_file: Some("/anna/seed".into()),
        creds_file: Some("/etc/gate/c.creds".into()),
        ca: Some("/etc/gate/ca.pem".into()),
        lease: Some(Duration::from_secs(30)),
    };
    assert_eq!(config.nats, expected);
    assert_eq!(read("[nats]\n").nats, NatsSettings::default());
}

#[test]
fn mistakes_in_nats_are_reported_with_their_places() {
    for (text, expected) in [
        (
            "[nats]\nreplicas = 6",
            "2:12: nats.replicas: must be a whole number from 1 to 5",
        ),
        (
            "[nats]\nlease = 1",
            "2:9: nats.lease: must be from 2s to 300s",
        ),
        ("[nats]\nurl = \"\"", "2:7: nats.url: is empty"),
    ] {
        assert_eq!(error(text), expected);
    }
    for key in ["token", "ca_file"] {
        let error = error(&format!("[nats]\n{key} = \"hunter2\""));
        assert!(
            error.contains("`token_file`") && error.contains("`ca`"),
            "{error}"
        );
        assert!(!error.contains("hunter2"), "{error}");
    }
}
