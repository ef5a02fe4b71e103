//! [`copy`]: the logs of a store to another one.

use std::fmt;
use std::time::Duration;

use rpc_core::store::{Expect, Log, LogConfig, Store, StoreError};

/// How many records are read at once.
const PAGE: usize = 256;
/// What lives no longer says who is alive: it is of no use elsewhere.
const MOMENT: Duration = Duration::from_secs(600);
/// The room that a log gets which had no bound, in bytes, if there is as much.
const ROOM: u64 = 4 * 1024 * 1024 * 1024;

/// What was copied of a log.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Copied {
    pub(super) log: String,
    pub(super) records: u64,
    /// How many records cannot be read.
    pub(super) damaged: usize,
}

impl fmt::Display for Copied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} records are copied", self.log, self.records)?;
        match self.damaged {
            0 => Ok(()),
            damaged => write!(f, ", {damaged} are lost"),
        }
    }
}

/// Copies all logs to a store that has no records of them, with their ids and in their order.
///
/// # Errors
/// [`StoreError`] of either store; [`StoreError::Config`] if there are records already. Some may be copied.
pub(super) async fn copy(from: &dyn Store, to: &dyn Store) -> Result<Vec<Copied>, StoreError> {
    let logs = from.logs().await?;
    let lasting = |(_, config): &(String, LogConfig)| config.max_age.is_none_or(|it| it > MOMENT);
    let mut opened = Vec::new();
    for (name, config) in logs.into_iter().filter(lasting) {
        let source = from.log(&name, config.clone()).await?;
        let room = config.max_bytes.unwrap_or(ROOM);
        let (target, _) = to.log_with_room(&name, config, room).await?;
        if target.state().await?.records > 0 {
            let message = format!("there are records of {name} already: copy to an empty place");
            return Err(StoreError::Config { message });
        }
        opened.push((name, source, target));
    }
    let mut copied = Vec::new();
    for (name, source, target) in opened {
        copied.push(copy_log(name, &*source, &*target).await?);
    }
    Ok(copied)
}

async fn copy_log(log: String, from: &dyn Log, to: &dyn Log) -> Result<Copied, StoreError> {
    let (mut after, mut records, mut damaged) = (0, 0, Vec::new());
    loop {
        let page = from.read_around(">", after, PAGE, &mut damaged).await?;
        for record in &page {
            let id = Some(&*record.id).filter(|id| !id.is_empty());
            let expect = Expect { id, last: None };
            to.append(&record.subject, record.payload.clone(), expect)
                .await?;
            records += 1;
        }
        match page.last() {
            Some(last) => after = last.sequence,
            None => break,
        }
    }
    let damaged = damaged.len();
    Ok(Copied {
        log,
        records,
        damaged,
    })
}
