//! [`EventDispatcher`]: handlers by event name.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;

type Handler<E, C> = Box<dyn FnMut(E, &mut C) + Send>;
type Observer<E, C> = Box<dyn FnMut(&E, &mut C) + Send>;

/// Hands each event to the handler that was registered for its name.
///
/// Synchronous: a handler runs inside [`dispatch`](Self::dispatch), with a context `C` of the
/// caller's. It should be quick; what takes time belongs in a task of its own. An event without a
/// handler is counted and ignored.
///
/// ```
/// use rpc_core::dispatch::EventDispatcher;
///
/// let mut dispatcher = EventDispatcher::<&str, u32, Vec<u32>>::new();
/// dispatcher.on("add", |event, seen: &mut Vec<u32>| seen.push(event));
/// let mut seen = Vec::new();
/// assert!(dispatcher.dispatch("add", 1, &mut seen));
/// assert!(!dispatcher.dispatch("remove", 2, &mut seen));
/// assert_eq!((seen.as_slice(), dispatcher.unknown()), ([1].as_slice(), 1));
/// ```
pub struct EventDispatcher<K, E, C: ?Sized> {
    handlers: HashMap<K, Handler<E, C>>,
    observer: Option<Observer<E, C>>,
    fallback: Option<Handler<E, C>>,
    unknown: u64,
}

impl<K: Eq + Hash, E, C: ?Sized> EventDispatcher<K, E, C> {
    /// A dispatcher without handlers.
    #[must_use]
    pub fn new() -> Self {
        Self {
            handlers: HashMap::new(),
            observer: None,
            fallback: None,
            unknown: 0,
        }
    }

    /// Registers the handler for a name, in place of an earlier one.
    pub fn on(&mut self, key: K, handler: impl FnMut(E, &mut C) + Send + 'static) -> &mut Self {
        self.handlers.insert(key, Box::new(handler));
        self
    }

    /// Registers what sees every event before its handler does, in place of an earlier one.
    pub fn on_any(&mut self, observer: impl FnMut(&E, &mut C) + Send + 'static) -> &mut Self {
        self.observer = Some(Box::new(observer));
        self
    }

    /// Registers the handler for names that have none, in place of an earlier one.
    pub fn fallback(&mut self, handler: impl FnMut(E, &mut C) + Send + 'static) -> &mut Self {
        self.fallback = Some(Box::new(handler));
        self
    }

    /// Removes the handler for a name. `false` if there was none.
    pub fn off<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.handlers.remove(key).is_some()
    }

    /// Whether there is a handler for a name, the fallback aside.
    #[must_use]
    pub fn handles<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.handlers.contains_key(key)
    }

    /// Runs the handler for the name, or else the fallback. `false` if neither exists; the event
    /// is dropped then.
    pub fn dispatch<Q: Eq + Hash + ?Sized>(&mut self, key: &Q, event: E, cx: &mut C) -> bool
    where
        K: Borrow<Q>,
    {
        if let Some(observer) = &mut self.observer {
            observer(&event, cx);
        }
        let handler = match self.handlers.get_mut(key) {
            Some(handler) => Some(handler),
            None => {
                self.unknown = self.unknown.saturating_add(1);
                self.fallback.as_mut()
            }
        };
        match handler {
            Some(handler) => {
                handler(event, cx);
                true
            }
            None => false,
        }
    }

    /// How many events had a name without a handler, those that the fallback took included.
    #[must_use]
    pub const fn unknown(&self) -> u64 {
        self.unknown
    }
}

impl<K: Eq + Hash, E, C: ?Sized> Default for EventDispatcher<K, E, C> {
    fn default() -> Self {
        Self::new()
    }
}

/// Prints the names and the counter.
impl<K: fmt::Debug, E, C: ?Sized> fmt::Debug for EventDispatcher<K, E, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventDispatcher")
            .field("names", &self.handlers.keys())
            .field("unknown", &self.unknown)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Log = Vec<String>;

    #[test]
    fn an_event_reaches_the_handler_of_its_name_by_any_borrowed_form() {
        let mut dispatcher = EventDispatcher::<String, u8, Log>::new();
        dispatcher.on("a".to_owned(), |event, log: &mut Log| {
            log.push(format!("a{event}"));
        });
        let mut log = Log::new();
        assert!(dispatcher.handles("a") && !dispatcher.handles("b"));
        assert!(dispatcher.dispatch("a", 1, &mut log));
        assert!(dispatcher.off("a") && !dispatcher.off("a"));
        assert!(!dispatcher.dispatch("a", 2, &mut log));
        assert_eq!(log, ["a1"]);
    }

    #[test]
    fn a_later_handler_takes_the_place_of_an_earlier_one() {
        let mut dispatcher = EventDispatcher::<&str, u8, Log>::new();
        dispatcher
            .on("a", |_, log: &mut Log| log.push("old".to_owned()))
            .on("a", |_, log: &mut Log| log.push("new".to_owned()));
        let mut log = Log::new();
        dispatcher.dispatch("a", 1, &mut log);
        assert_eq!(log, ["new"]);
    }

    #[test]
    fn unknown_names_are_counted_and_ignored() {
        let mut dispatcher = EventDispatcher::<&str, u8, Log>::new();
        let mut log = Log::new();
        assert!(!dispatcher.dispatch("x", 1, &mut log));
        dispatcher.fallback(|event, log: &mut Log| log.push(format!("?{event}")));
        assert!(dispatcher.dispatch("x", 2, &mut log));
        assert_eq!(dispatcher.unknown(), 2);
        assert_eq!(log, ["?2"]);
    }

    #[test]
    fn the_observer_sees_every_event_first() {
        let mut dispatcher = EventDispatcher::<&str, u8, Log>::new();
        dispatcher
            .on_any(|event, log: &mut Log| log.push(format!("any{event}")))
            .on("a", |event, log: &mut Log| log.push(format!("a{event}")));
        let mut log = Log::new();
        assert!(dispatcher.dispatch("a", 1, &mut log));
        assert!(!dispatcher.dispatch("b", 2, &mut log));
        assert_eq!(log, ["any1", "a1", "any2"]);
    }
}
