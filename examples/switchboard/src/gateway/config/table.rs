//! [`Table`]: takes typed values out of a TOML table and reports mistakes.

use std::fmt::Display;
use std::ops::{Range, RangeInclusive};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problem::{Notes, quoted};
use super::suggest::nearest;

/// A value and its position.
#[derive(Clone, Debug)]
pub(super) struct Found<T> {
    pub(super) value: T,
    pub(super) at: Range<usize>,
}

/// A table that is being read. Keys that are not read are unknown.
pub(super) struct Table<'t, 'i> {
    /// The prefix of a key in a message, like `agent.`.
    prefix: String,
    entries: &'t DeTable<'i>,
    at: Range<usize>,
    asked: Vec<&'static str>,
}

impl<'t, 'i> Table<'t, 'i> {
    pub(super) fn new(prefix: String, entries: &'t DeTable<'i>, at: Range<usize>) -> Self {
        Self {
            prefix,
            entries,
            at,
            asked: Vec::new(),
        }
    }

    /// Returns the position of the table.
    pub(super) fn at(&self) -> Range<usize> {
        self.at.clone()
    }

    /// Returns the key with its table, for messages.
    pub(super) fn path(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }

    /// Returns the name of the table, for messages.
    pub(super) fn name(&self) -> &str {
        self.prefix.trim_end_matches('.')
    }

    fn value(&mut self, key: &'static str) -> Option<&'t Spanned<DeValue<'i>>> {
        self.asked.push(key);
        self.entries.get(key)
    }

    fn wrong_type(&self, notes: &mut Notes, key: &str, value: &Spanned<DeValue<'_>>, want: &str) {
        let (path, is) = (self.path(key), value.get_ref().type_str());
        notes.error(&value.span(), format!("{path}: must be {want}, is {is}"));
    }

    /// Takes a text.
    pub(super) fn string(&mut self, notes: &mut Notes, key: &'static str) -> Option<Found<String>> {
        let value = self.value(key)?;
        let at = value.span();
        if let DeValue::String(text) = value.get_ref() {
            let value = text.to_string();
            return Some(Found { value, at });
        }
        self.wrong_type(notes, key, value, "a string");
        None
    }

    /// Takes a text that is not blank.
    pub(super) fn text(&mut self, notes: &mut Notes, key: &'static str) -> Option<Found<String>> {
        let found = self.string(notes, key)?;
        if found.value.trim().is_empty() {
            notes.error(&found.at, format!("{}: is empty", self.path(key)));
            return None;
        }
        Some(found)
    }

    /// Takes a required text that is not blank. Reports a wrong one only once.
    pub(super) fn required(
        &mut self,
        notes: &mut Notes,
        key: &'static str,
    ) -> Option<Found<String>> {
        if !self.entries.contains_key(key) {
            self.asked.push(key);
            notes.error(&self.at, format!("{}: is missing", self.path(key)));
            return None;
        }
        self.text(notes, key)
    }

    pub(super) fn bool(&mut self, notes: &mut Notes, key: &'static str) -> Option<bool> {
        let value = self.value(key)?;
        let flag = value.get_ref().as_bool();
        if flag.is_none() {
            self.wrong_type(notes, key, value, "true or false");
        }
        flag
    }

    /// Takes an integer within a range.
    pub(super) fn integer<N>(
        &mut self,
        notes: &mut Notes,
        key: &'static str,
        range: RangeInclusive<N>,
    ) -> Option<N>
    where
        N: TryFrom<i128> + PartialOrd + Display,
    {
        let value = self.value(key)?;
        let DeValue::Integer(digits) = value.get_ref() else {
            self.wrong_type(notes, key, value, "a whole number");
            return None;
        };
        let number = i128::from_str_radix(digits.as_str(), digits.radix()).ok();
        let number = number.and_then(|number| N::try_from(number).ok());
        if let Some(number) = number
            && range.contains(&number)
        {
            return Some(number);
        }
        let (path, is) = (self.path(key), quoted(digits.as_str()));
        let (from, to) = (range.start(), range.end());
        let message = format!("{path}: must be from {from} to {to}, is {is}");
        notes.error(&value.span(), message);
        None
    }

    /// Takes a non-negative number, with or without a fraction.
    pub(super) fn number(&mut self, notes: &mut Notes, key: &'static str) -> Option<Found<f64>> {
        let value = self.value(key)?;
        let at = value.span();
        let number: Option<f64> = match value.get_ref() {
            DeValue::Integer(digits) if digits.radix() == 10 => digits.as_str().parse().ok(),
            DeValue::Float(digits) => digits.as_str().parse().ok(),
            _ => {
                self.wrong_type(notes, key, value, "a number");
                return None;
            }
        };
        if let Some(value) = number
            && value.is_finite()
            && value >= 0.0
        {
            return Some(Found { value, at });
        }
        let message = format!("{}: must be a number from 0 upwards", self.path(key));
        notes.error(&at, message);
        None
    }

    /// Takes a list of texts that are not blank.
    pub(super) fn strings(&mut self, notes: &mut Notes, key: &'static str) -> Vec<Found<String>> {
        let Some(value) = self.value(key) else {
            return Vec::new();
        };
        let DeValue::Array(items) = value.get_ref() else {
            self.wrong_type(notes, key, value, "a list of strings");
            return Vec::new();
        };
        let mut texts = Vec::new();
        for (number, item) in items.iter().enumerate() {
            let at = item.span();
            match item.get_ref() {
                DeValue::String(text) if !text.trim().is_empty() => {
                    let value = text.to_string();
                    texts.push(Found { value, at });
                }
                DeValue::String(_) => {
                    notes.error(&at, format!("{}[{number}]: is empty", self.path(key)));
                }
                _ => self.wrong_type(notes, &format!("{key}[{number}]"), item, "a string"),
            }
        }
        texts
    }

    /// Takes a table in this one.
    pub(super) fn table(&mut self, notes: &mut Notes, key: &'static str) -> Option<Table<'t, 'i>> {
        let value = self.value(key)?;
        let DeValue::Table(entries) = value.get_ref() else {
            self.wrong_type(notes, key, value, "a table");
            return None;
        };
        let prefix = format!("{}.", self.path(key));
        Some(Table::new(prefix, entries, value.span()))
    }

    /// Takes a list of tables in this one.
    pub(super) fn tables(&mut self, notes: &mut Notes, key: &'static str) -> Vec<Table<'t, 'i>> {
        let Some(value) = self.value(key) else {
            return Vec::new();
        };
        let DeValue::Array(items) = value.get_ref() else {
            let want = format!("a list of tables, each under [[{}]]", self.path(key));
            self.wrong_type(notes, key, value, &want);
            return Vec::new();
        };
        let mut tables = Vec::new();
        for (number, item) in items.iter().enumerate() {
            if let DeValue::Table(entries) = item.get_ref() {
                let prefix = format!("{}[{number}].", self.path(key));
                tables.push(Table::new(prefix, entries, item.span()));
            } else {
                self.wrong_type(notes, &format!("{key}[{number}]"), item, "a table");
            }
        }
        tables
    }

    /// Returns the position of a key, known or not.
    pub(super) fn key_at(&self, key: &str) -> Option<Range<usize>> {
        let (key, _) = self.entries.get_key_value(key)?;
        Some(key.span())
    }

    /// Warns about the keys that were not read. `elsewhere` returns the table of a key.
    pub(super) fn finish(self, notes: &mut Notes, elsewhere: impl Fn(&str) -> Option<String>) {
        for key in self.entries.keys() {
            let name: &str = key.get_ref();
            if self.asked.contains(&name) {
                continue;
            }
            let mut message = format!("unknown key {}", quoted(&self.path(name)));
            let near = nearest(name, &self.asked).map(|near| self.path(near));
            if let Some(near) = near.or_else(|| elsewhere(name)) {
                message.push_str(&format!("; did you mean `{near}`?"));
            }
            notes.warn(&key.span(), message);
        }
    }
}
