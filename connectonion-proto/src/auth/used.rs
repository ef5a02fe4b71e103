//! [`UsedSignatures`]: a memory that lets each signature count once.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;

use super::{Address, AuthError, Signature, Verified, whole};
use crate::limits::SIGNATURE_WINDOW;

/// The share of the memory that one signer may fill, as a divisor.
const SHARES: usize = 16;
/// The smallest such share.
const MIN_SHARE: usize = 64;

/// A used signature, to be kept until it expires: `Display` writes a line of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spent {
    /// The second since 1970 after which it is not valid.
    pub end: u64,
    pub(crate) signer: Address,
    pub(crate) signature: Signature,
}

impl Spent {
    /// Parses what `Display` has written; `None` for other lines, such as one that was cut short.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        // Earlier versions wrote one more word before them.
        let mut parts = line.rsplit(' ');
        let (signature, signer) = (parts.next()?, parts.next()?);
        Some(Self {
            end: parts.next()?.parse().ok()?,
            signer: Address::parse(signer).ok()?,
            signature: Signature::parse(signature).ok()?,
        })
    }
}

impl fmt::Display for Spent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.end, self.signer, self.signature)
    }
}

/// The used signatures that have not expired, whatever they were used for, so that none counts twice.
///
/// Call it after all other checks: anyone with a key can make any number of signatures, so
/// signatures of refused callers should not be remembered.
///
/// The number is bounded, and a valid signature is never forgotten for another one: beyond the
/// bound, everything is refused until some have expired. One signer may fill a sixteenth of it (but
/// at least 64), so that no single signer blocks the others.
#[derive(Clone)]
pub(crate) struct UsedSignatures {
    used: HashSet<Signature>,
    /// The same, by the second after which they are no longer valid.
    by_end: BTreeMap<u64, Vec<(Address, Signature)>>,
    /// The number of signatures of each signer.
    by_signer: HashMap<Address, usize>,
    max: usize,
}

impl UsedSignatures {
    /// Creates a memory of up to `max` signatures. Each takes about 200 bytes while it is valid.
    pub(crate) fn new(max: usize) -> Self {
        Self {
            used: HashSet::new(),
            by_end: BTreeMap::new(),
            by_signer: HashMap::new(),
            max,
        }
    }

    /// Uses up the signature of a frame. `now` is in seconds since 1970. `times`: how often the bound a
    /// signer may use, so that strangers leave room for others.
    ///
    /// # Errors
    /// [`AuthError::AlreadyUsed`], [`AuthError::ReplayProtectionUnavailable`] if there is no room,
    /// or no more for this signer. Nothing has changed then, except that expired signatures are
    /// forgotten.
    pub(crate) fn spend(
        &mut self,
        verified: &Verified<'_>,
        times: usize,
        now: f64,
    ) -> Result<(), AuthError> {
        self.forget_expired(now);
        let (signer, signature) = (verified.address, verified.signature);
        if self.used.contains(&signature) {
            return Err(AuthError::AlreadyUsed);
        }
        let count = self.by_signer.get(&signer).copied().unwrap_or_default();
        let is_full = self.used.len() >= self.max.saturating_mul(times);
        if is_full || count >= (self.max / SHARES).max(MIN_SHARE) {
            return Err(AuthError::ReplayProtectionUnavailable);
        }
        self.remember(signer, signature, end_of(verified));
        Ok(())
    }

    /// Remembers a signature that was used before, whatever the bounds.
    pub(crate) fn remember(&mut self, signer: Address, signature: Signature, end: u64) {
        if self.used.insert(signature) {
            let ending = self.by_end.entry(end).or_default();
            ending.push((signer, signature));
            *self.by_signer.entry(signer).or_default() += 1;
        }
    }

    fn forget_expired(&mut self, now: f64) {
        let valid = self.by_end.split_off(&whole(now));
        let expired = std::mem::replace(&mut self.by_end, valid);
        for (signer, signature) in expired.values().flatten() {
            self.used.remove(signature);
            if let Some(count) = self.by_signer.get_mut(signer) {
                *count -= 1;
                if *count == 0 {
                    self.by_signer.remove(signer);
                }
            }
        }
    }
}

// Prints the number only.
rpc_core::debug_fields!([] UsedSignatures, this => { used: this.used.len() });

/// Returns the second after which a signature is not valid.
pub(crate) fn end_of(verified: &Verified<'_>) -> u64 {
    whole((verified.timestamp + SIGNATURE_WINDOW.as_secs_f64()).ceil())
}

#[cfg(test)]
mod tests;
