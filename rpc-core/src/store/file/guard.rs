//! [`guard`]: the database finds some damage by assertions.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Does something with the database. `None` if that panics: a damaged file is an error, and nothing is printed.
pub(super) fn guard<T>(work: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    if !std::thread::panicking() {
        HOOK.call_once(|| {
            let hook = take_hook();
            set_hook(Box::new(move |panic| {
                if !IS_GUARDED.get() {
                    hook(panic);
                }
            }));
        });
    }
    let before = IS_GUARDED.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    IS_GUARDED.set(before);
    done.ok()
}
