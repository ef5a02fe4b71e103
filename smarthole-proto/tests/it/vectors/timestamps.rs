//! Vectors of timestamps.

use std::time::{Duration, SystemTime};

use smarthole_proto::timestamp;

use super::run;

#[test]
fn written_times_match_the_vectors() {
    run("timestamps_written", |vector| {
        let nanos = u32::try_from(vector.number("nanos")).unwrap();
        let since = Duration::new(vector.number("seconds"), nanos);
        let written = timestamp::format(SystemTime::UNIX_EPOCH + since);
        assert_eq!(written, vector.str("text"), "{}", vector.name());
    });
}

#[test]
fn parsed_times_match_the_vectors() {
    run("timestamps_read", |vector| {
        let read = timestamp::parse(vector.str("text"));
        let millis = read.map(|time| {
            let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap();
            u64::try_from(since.as_millis()).unwrap()
        });
        assert_eq!(millis, vector.get("millis").as_u64(), "{}", vector.name());
    });
}
