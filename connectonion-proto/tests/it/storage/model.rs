//! A file holds what the storage in memory holds, whatever happens to it.

use super::*;

fn record() -> impl Strategy<Value = Record> {
    let id = prop::sample::select(vec!["a", "b", "c"]);
    let status = prop::sample::select(vec!["running", "done", "failed", "odd"]);
    let session = prop::option::of(0..100_u32);
    let owner = prop::sample::select(vec![None, Some(ALICE), Some(BOB), Some(Owner::Unsigned)]);
    let expires = prop::option::of((-2..4_i8).prop_map(|days| NOW + f64::from(days) * DAY));
    let record = (id, status, session, owner, expires, "[\u{0}-\u{ff}]{0,6}");
    record.prop_map(|(id, status, session, owner, expires, prompt)| {
        let session = session.and_then(|turn| json(&format!("{{\n\"turn\":{turn}}}")));
        let mut record = Record::new(id, rpc_core::Str::from(status).into(), prompt, NOW);
        (record.session, record.owner) = (session, owner);
        lasting(record, expires)
    })
}

fn op() -> impl Strategy<Value = Op> {
    let now = || (0..3_i8).prop_map(|days| NOW + f64::from(days) * DAY);
    prop_oneof![
        8 => record().prop_map(|record| Op::Append(Box::new(record))),
        1 => now().prop_map(Op::Recover),
        1 => now().prop_map(Op::Compact),
        1 => prop::sample::select(vec!["a", "b", "c"]).prop_map(Op::Delete),
        2 => Just(Op::Reopen),
        1 => (1..40_usize).prop_map(Op::Tear),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn file_and_memory_storage_agree(ops in prop::collection::vec(op(), 1..40)) {
        let scratch = Scratch::new();
        let path = scratch.file("results.jsonl");
        let options = JsonlOptions {
        compact_from: Some(1000),
        ..JsonlOptions::default()
    };
        let mut file = JsonlStorage::open(&path, options).unwrap();
        let memory = MemoryStorage::new(100);
        for op in ops {
            match op {
                Op::Append(record) => {
                    file.append(&record).unwrap();
                    memory.append(&record).unwrap();
                }
                Op::Recover(now) => {
                    prop_assert_eq!(file.recover(now).unwrap(), memory.recover(now).unwrap());
                }
                Op::Compact(now) => {
                    file.compact(now).unwrap();
                    memory.compact(now).unwrap();
                }
                Op::Delete(id) => {
                    file.delete(id, ALICE).unwrap();
                    memory.delete(id, ALICE).unwrap();
                    let left = memory.load(id, NOW).unwrap();
                    prop_assert!(left.is_none_or(|it| it.owner.is_some_and(|it| it != ALICE)));
                }
                Op::Reopen => {
                    drop(file);
                    file = JsonlStorage::open(&path, options).unwrap();
                }
                Op::Tear(bytes) => {
                    let line = done("a", r#"{"torn":true}"#).to_line();
                    let mut bytes = line.as_bytes()[..bytes].to_vec();
                    bytes.splice(0..0, fs::read(&path).unwrap());
                    fs::write(&path, bytes).unwrap();
                    drop(file);
                    file = JsonlStorage::open(&path, options).unwrap();
                }
            }
            for id in ["a", "b", "c"] {
                for now in [NOW, NOW + 1.5 * DAY] {
                    let (here, there) = (file.load(id, now), memory.load(id, now));
                    prop_assert_eq!(here.unwrap(), there.unwrap());
                }
            }
        }
    }
}
