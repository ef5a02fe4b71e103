//! Heads of HTTP messages without their secrets.

/// Headers whose values are secrets.
const SECRET: [&str; 5] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "set-cookie",
    "x-api-key",
];
/// Parts of the names of query parameters whose values are secrets.
const SECRET_QUERY: [&str; 5] = ["token", "key", "secret", "password", "code"];

/// Returns the head of an HTTP message without the values of secret headers, bearer subprotocols and
/// secret parameters of its path.
#[must_use]
pub fn redact(head: &str) -> String {
    let mut lines = head.split("\r\n");
    let first = lines.next().unwrap_or_default();
    let words: Vec<_> = first.split(' ').map(redact_path).collect();
    let mut redacted = words.join(" ");
    for line in lines {
        redacted.push_str("\r\n");
        match line.split_once(':') {
            Some((name, value)) => {
                redacted.push_str(name);
                redacted.push(':');
                redacted.push_str(&header(name, value));
            }
            None => redacted.push_str(line),
        }
    }
    redacted
}

fn header(name: &str, value: &str) -> String {
    let name = name.trim().to_ascii_lowercase();
    if SECRET.contains(&&*name) {
        return " ***".to_owned();
    }
    if name != "sec-websocket-protocol" {
        return value.to_owned();
    }
    let offers = value
        .split(',')
        .map(|offer| match offer.split_once("bearer.") {
            Some((before, _)) => format!("{before}bearer.***"),
            None => offer.to_owned(),
        });
    offers.collect::<Vec<_>>().join(",")
}

/// Returns a path without the values of secret parameters.
#[must_use]
pub fn redact_path(path: &str) -> String {
    let Some((path, query)) = path.split_once('?') else {
        return path.to_owned();
    };
    let pairs = query.split('&').map(|pair| match pair.split_once('=') {
        Some((name, _))
            if SECRET_QUERY
                .iter()
                .any(|it| name.to_ascii_lowercase().contains(it)) =>
        {
            format!("{name}=***")
        }
        _ => pair.to_owned(),
    });
    format!("{path}?{}", pairs.collect::<Vec<_>>().join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_secrets_of_a_head_are_left_out() {
        let head = "GET /ws?token=hunter2&a=1 HTTP/1.1\r\nHost: h\r\nAUTHORIZATION: Bearer hunter2\r\n\
            Sec-WebSocket-Protocol: acolyte.v1, bearer.hunter2\r\ncookie: hunter2\r\n\r\n";
        let expected = "GET /ws?token=***&a=1 HTTP/1.1\r\nHost: h\r\nAUTHORIZATION: ***\r\n\
            Sec-WebSocket-Protocol: acolyte.v1, bearer.***\r\ncookie: ***\r\n\r\n";
        assert_eq!(redact(head), expected);
    }
}
