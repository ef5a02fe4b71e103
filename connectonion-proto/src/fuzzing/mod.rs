//! Bodies of the fuzz targets: any bytes go in, and the rules must hold.
#![allow(clippy::panic, reason = "a broken rule has to stop the fuzzer")]

mod canonical;
mod jsonl;
mod merge;

pub use canonical::canonical;
pub use jsonl::jsonl;
pub use merge::merge_texts as merge;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn sessions_are_merged_by_the_rules(
            text in r#"\{("(turn|iteration|updated|x|\\u0074urn)":(1|2|2\.0|-1|1e0|1e999|"2"|null|\[\]|\{"turn":9\}),?){0,4}\}\n?\{("(turn|iteration|updated)":(1|2|2\.0|0|-0\.0|true),?){0,4}\}"#,
        ) {
            merge(text.replace(",}", "}").as_bytes());
        }

        #[test]
        fn files_are_read_by_the_rules(
            first: u8,
            lines in prop::collection::vec(
                r#"\{"session_id":"[ab]","status":"(running|done|x)","created":(1|1\.5|1e400|"1"),?("(session|prompt|result|expires|duration_ms|owner|inputs|more)":("unsigned"|"a"|null|7|-1\.5|\{\}|\{"a":\r1\}|\[\]|\[\{"id":"i","prompt":"p"\}\]),?){0,4}\}[ \r]?"#,
                0..6,
            ),
            end in r#"\n|\{"sess|"#,
        ) {
            let mut data = vec![first];
            data.extend(lines.join("\n").replace(",}", "}").bytes());
            data.extend(end.bytes());
            jsonl(&data);
        }

        #[test]
        fn any_bytes_are_survived(data: Vec<u8>) {
            merge(&data);
            jsonl(&data);
        }
    }
}
