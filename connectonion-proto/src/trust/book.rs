//! [`TrustBook`]: how addresses stand with a host.

use crate::auth::Address;

use crate::auth::{AddressList, ListFull};

/// How an address stands with a host. Exhaustive: these are the levels of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClientLevel {
    /// In no list.
    Stranger,
    /// Went through onboarding, or was made one.
    Contact,
    /// Fully trusted.
    Whitelisted,
    /// Never let in.
    Blocked,
}

impl ClientLevel {
    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stranger => "stranger",
            Self::Contact => "contact",
            Self::Whitelisted => "whitelist",
            Self::Blocked => "blocked",
        }
    }
}

/// The lists of a host. The known hosts keep each in a file, whose name is given here.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct TrustBook {
    /// Who is never let in: `blocklist.txt`.
    pub blocked: AddressList,
    /// Who is fully trusted: `whitelist.txt`.
    pub whitelist: AddressList,
    /// Who went through onboarding: `contacts.txt`.
    pub contacts: AddressList,
    /// Who may change these lists: `admins.txt`.
    pub admins: AddressList,
}

impl TrustBook {
    /// How an address stands. Blocked is blocked, whatever else it is.
    #[must_use]
    pub fn level_of(&self, address: &Address) -> ClientLevel {
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

    /// Whether an address may change the lists. A blocked one may not.
    #[must_use]
    pub fn is_admin(&self, address: &Address) -> bool {
        self.admins.contains(address) && !self.blocked.contains(address)
    }

    /// Moves an address one step up, from stranger to contact to whitelisted, and returns how it
    /// stands now. A blocked one stays blocked.
    ///
    /// # Errors
    /// [`ListFull`]; nothing has changed.
    pub fn promote(&mut self, address: &Address) -> Result<ClientLevel, ListFull> {
        match self.level_of(address) {
            ClientLevel::Stranger => self.contacts.insert(*address)?,
            ClientLevel::Contact => self.whitelist.insert(*address)?,
            ClientLevel::Whitelisted | ClientLevel::Blocked => false,
        };
        Ok(self.level_of(address))
    }

    /// Moves an address one step down, from whitelisted to contact to stranger, and returns how it
    /// stands now. One that is in a list by a pattern stays there; a blocked one stays blocked.
    ///
    /// # Errors
    /// [`ListFull`]; nothing has changed.
    pub fn demote(&mut self, address: &Address) -> Result<ClientLevel, ListFull> {
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

    /// Blocks an address. `false` if it was blocked.
    ///
    /// # Errors
    /// [`ListFull`]; nothing has changed.
    pub fn block(&mut self, address: &Address) -> Result<bool, ListFull> {
        self.blocked.insert(*address)
    }

    /// Unblocks an address, which then stands as before. `false` if it was not in the list, or is
    /// still blocked by a pattern.
    pub fn unblock(&mut self, address: &Address) -> bool {
        self.blocked.remove(address) && !self.blocked.contains(address)
    }
}
