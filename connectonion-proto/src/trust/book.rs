//! [`TrustBook`]: the levels of addresses at a host.

use rpc_core::Refused;

use crate::auth::{Address, AddressList};

/// The level of an address at a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientLevel {
    /// In no list.
    Stranger,
    /// Went through onboarding, or was promoted.
    Contact,
    /// Fully trusted.
    Whitelisted,
    /// Never admitted.
    Blocked,
}

impl ClientLevel {
    /// Returns the level's name in frames.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Stranger => "stranger",
            Self::Contact => "contact",
            Self::Whitelisted => "whitelist",
            Self::Blocked => "blocked",
        }
    }
}

/// The lists of a host. The known hosts keep each in a file with the name given here.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct TrustBook {
    /// The addresses that are never admitted: `blocklist.txt`.
    pub blocked: AddressList,
    /// The addresses that are fully trusted: `whitelist.txt`.
    pub whitelist: AddressList,
    /// The addresses that went through onboarding: `contacts.txt`.
    pub contacts: AddressList,
    /// The addresses that may change these lists: `admins.txt`.
    pub admins: AddressList,
}

impl TrustBook {
    /// Returns the level of an address. Blocked takes precedence over all others.
    pub(crate) fn level_of(&self, address: &Address) -> ClientLevel {
        if self.blocked.contains(address) {
            ClientLevel::Blocked
        } else if self.whitelist.contains(address) {
            ClientLevel::Whitelisted
        } else if self.contacts.contains(address) {
            ClientLevel::Contact
        } else {
            ClientLevel::Stranger
        }
    }

    /// Returns whether an address may change the lists. A blocked one may not.
    pub(crate) fn is_admin(&self, address: &Address) -> bool {
        self.admins.contains(address) && !self.blocked.contains(address)
    }

    /// Raises an address by one level, from stranger to contact to whitelisted, and returns its new
    /// level. A blocked one stays blocked.
    ///
    /// # Errors
    /// [`Refused`] if a list is full; nothing has changed.
    pub(crate) fn promote(&mut self, address: &Address) -> Result<ClientLevel, Refused> {
        match self.level_of(address) {
            ClientLevel::Stranger => self.contacts.insert(*address)?,
            ClientLevel::Contact => self.whitelist.insert(*address)?,
            ClientLevel::Whitelisted | ClientLevel::Blocked => false,
        };
        Ok(self.level_of(address))
    }

    /// Lowers an address by one level, from whitelisted to contact to stranger, and returns its new
    /// level. One that a pattern matches stays in that list; a blocked one stays blocked.
    ///
    /// # Errors
    /// [`Refused`] if a list is full; nothing has changed.
    pub(crate) fn demote(&mut self, address: &Address) -> Result<ClientLevel, Refused> {
        match self.level_of(address) {
            ClientLevel::Whitelisted => {
                self.contacts.insert(*address)?;
                self.whitelist.remove(address);
            }
            ClientLevel::Contact => {
                self.contacts.remove(address);
            }
            ClientLevel::Stranger | ClientLevel::Blocked => {}
        }
        Ok(self.level_of(address))
    }

    /// Blocks an address. Returns `false` if it was already blocked.
    ///
    /// # Errors
    /// [`Refused`] if a list is full; nothing has changed.
    pub(crate) fn block(&mut self, address: &Address) -> Result<bool, Refused> {
        self.blocked.insert(*address)
    }

    /// Unblocks an address, which then has its former level. Returns `false` if it was not in the
    /// list, or is still blocked by a pattern.
    pub(crate) fn unblock(&mut self, address: &Address) -> bool {
        self.blocked.remove(address) && !self.blocked.contains(address)
    }
}
