//! [`AccessControl`]: admits callers, from a CONNECT to the decision.

use rpc_core::Str;

use super::{Admission, ClientLevel, Onboarding, TrustBook, TrustLevel, TrustPolicy};
use crate::auth::{
    Address, AuthError, InviteCodes, Signature, Spent, UsedSignatures, Verified, Verifier, end_of,
};
use crate::frame::{
    AdminAction, AdminRequest, AdminResult, Connect, ErrorFrame, Input, Number, OnboardMethod,
    OnboardRequired, OnboardSubmit, OnboardSuccess, Signed,
};
use crate::hub::Owner;
use crate::limits::MAX_USED_SIGNATURES;

rpc_core::config! {
    /// The access control of a host: signatures, lists, policy, and onboarding of strangers. A
    /// [`HostRuntime`](crate::net::HostRuntime) asks it.
    ///
    /// ```
    /// use connectonion_proto::auth::{InviteCodes, Signer};
    /// use connectonion_proto::net::RuntimeOptions;
    /// use connectonion_proto::trust::{AccessControl, TrustLevel};
    ///
    /// let host = *Signer::from_seed(&[1; 32]).address();
    /// let access = AccessControl::new(host, TrustLevel::Careful)
    ///     .require_signatures()
    ///     .with_invites(InviteCodes::new(["red onion"])?);
    /// let options = RuntimeOptions::with_access(access);
    /// # Ok::<(), connectonion_proto::Refused>(())
    /// ```
    #[derive(Debug)]
    pub struct AccessControl {
        host: Address = host,
        /// Sets the verifier of signatures. Its recipient should be the host.
        verifier: Verifier = Verifier { recipient: Some(host), ..Verifier::default() } => with_verifier(Verifier),
        policy: TrustPolicy = TrustPolicy { level, needs_signatures: false },
        /// Sets the lists.
        book: TrustBook = TrustBook::default() => with_book(TrustBook),
        /// Turns strangers with one of these codes into contacts.
        invites: InviteCodes = InviteCodes::default() => with_invites(InviteCodes),
        payment: Option<(Number, Option<Str>)> = None,
        used: UsedSignatures = UsedSignatures::new(MAX_USED_SIGNATURES),
        /// Whether the signatures of CONNECT and of INPUT count once, as all others do.
        is_strict: bool = false,
        /// What was used since the last look, if it is watched.
        spent: Option<Vec<Spent>> = None,
        /// Whether the lists may have changed since the last check.
        is_changed: bool = false,
    }
    /// Creates the access control of the host with this address, at this level of trust, with empty
    /// lists and without onboarding.
    pub fn new(host: Address, level: TrustLevel);
}

impl AccessControl {
    /// Requires a signature of all callers, at every level, as all known hosts do: use it wherever lists
    /// or sessions must be safe.
    ///
    /// By default it is as in the specification's table: `open` accepts callers without a signature,
    /// `careful` accepts them and recommends one, `strict` requires it. A caller without a signature has
    /// no identity, so it is refused where strangers must go through onboarding, and where anyone is
    /// blocked or whitelisted.
    #[must_use]
    pub const fn require_signatures(mut self) -> Self {
        self.policy.needs_signatures = true;
        self
    }

    pub(crate) const fn level(&self) -> TrustLevel {
        self.policy.level
    }

    /// Turns strangers who pay this amount, to this address if known, into contacts.
    #[must_use]
    pub fn with_payment(mut self, amount: impl Into<Number>, address: Option<Str>) -> Self {
        self.payment = Some((amount.into(), address));
        self
    }

    /// Lets each signature count only once, also that of a CONNECT or an INPUT, and remembers up to this many
    /// while they are valid, each in about 200 bytes: [`MAX_USED_SIGNATURES`] for example. Off by
    /// default: peers of the specification repeat a signature when they connect twice within a second. The
    /// signatures of all other commands always count only once.
    ///
    /// A valid signature is never forgotten for another one: beyond the bound, everything is refused
    /// until some have expired. Callers on the lists have room beyond it, as much again, and so have
    /// administrators. One signer may fill a sixteenth of it (but at least 64), so that no single
    /// signer blocks the others.
    #[must_use]
    pub fn with_used_signatures(mut self, max: usize) -> Self {
        self.used = UsedSignatures::new(max);
        self.is_strict = true;
        self
    }

    /// Remembers signatures that were used before a restart, and collects those that are used from now
    /// on, for
    /// [`RuntimeOptions::on_spent`](crate::net::RuntimeOptions::on_spent).
    #[must_use]
    pub fn with_spent(mut self, spent: impl IntoIterator<Item = Spent>) -> Self {
        for spent in spent {
            self.used.remember(spent.signer, spent.signature, spent.end);
        }
        self.spent = Some(Vec::new());
        self
    }

    /// Returns the signatures that were used since the last call; none without
    /// [`with_spent`](Self::with_spent).
    pub(crate) fn take_spent(&mut self) -> Vec<Spent> {
        self.spent.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Returns whether the signatures of CONNECT and of INPUT count once.
    pub(crate) const fn is_strict(&self) -> bool {
        self.is_strict
    }

    /// Returns the host's address.
    #[must_use]
    pub const fn host(&self) -> &Address {
        &self.host
    }

    /// Returns the verifier of signatures. Verifying is the slowest step, and needs no lock.
    pub(crate) const fn verifier(&self) -> &Verifier {
        &self.verifier
    }

    /// Returns the lists.
    #[must_use]
    pub const fn book(&self) -> &TrustBook {
        &self.book
    }

    /// Returns the lists, for changes.
    pub const fn book_mut(&mut self) -> &mut TrustBook {
        self.is_changed = true;
        &mut self.book
    }

    /// Returns whether the lists may have changed since the last call: save them then.
    pub(crate) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.is_changed)
    }

    /// Returns the owner for a socket without CONNECT: unsigned if unsigned callers are admitted,
    /// else none.
    pub(crate) fn nobody(&self) -> Option<Owner> {
        match self.decide_unsigned() {
            Ok(Admission::Accept { owner, .. }) => Some(owner),
            _ => None,
        }
    }

    /// Returns whether identities matter: callers are blocked or whitelisted, or strangers must go
    /// through onboarding. Unsigned callers could be anyone, and are refused then.
    fn distinguishes_callers(&self) -> bool {
        let lists = [
            &self.book.blocked,
            &self.book.whitelist,
            &self.verifier.blacklist,
        ];
        lists.into_iter().any(|list| !list.is_empty()) || self.has_onboarding()
    }

    /// Verifies a CONNECT and decides about it.
    #[cfg(test)]
    pub(crate) fn admit(&mut self, connect: &Connect, now: f64) -> Result<Admission, AuthError> {
        let verified = self.verifier.verify(&connect.signed, now);
        self.decide(verified, now)
    }

    /// Decides about a CONNECT that was already [verified](Self::verifier).
    pub(crate) fn decide(
        &mut self,
        verified: Result<Verified<'_>, AuthError>,
        now: f64,
    ) -> Result<Admission, AuthError> {
        let verified = match verified {
            Err(AuthError::SignedRequestRequired) => return self.decide_unsigned(),
            verified => verified?,
        };
        verified.check_type("CONNECT")?;
        let identity = verified.address;
        let level = self.standing_of(&identity);
        let is_in = self.policy.decide(level, self.has_onboarding())?;
        let is_invited = !is_in && self.brings_invite(&verified);
        if is_in || is_invited {
            // Before anything changes: a repeated invitation admits no one.
            self.spend_if_strict(&verified, now)?;
        }
        match is_in || is_invited && self.book_mut().promote(&identity).is_ok() {
            true => Ok(Admission::Accept {
                owner: Owner::Key(identity),
                recommend_signature: false,
            }),
            false => self.gate(identity),
        }
    }

    /// Returns whose session a request to delete it means. It was [verified](Self::verifier) and has the
    /// session's id as `delete`.
    pub(crate) fn deletion(
        &mut self,
        verified: Result<Verified<'_>, AuthError>,
        session_id: &str,
        now: f64,
    ) -> Result<Owner, AuthError> {
        let verified = match verified {
            Err(error @ AuthError::SignedRequestRequired) => return self.nobody().ok_or(error),
            verified => verified?,
        };
        if verified.payload.text("delete").as_deref() != Some(session_id) {
            return Err(AuthError::WrongCommand);
        }
        verified.check_type("DELETE")?;
        self.check_unblocked(&verified.address)?;
        self.spend(&verified, now).map_err(AuthError::of_command)?;
        Ok(Owner::Key(verified.address))
    }

    fn decide_unsigned(&self) -> Result<Admission, AuthError> {
        let recommend_signature = self.policy.decide_unsigned(self.has_onboarding())?;
        match self.distinguishes_callers() {
            true => Err(AuthError::SignedRequestRequired),
            false => Ok(Admission::Accept {
                owner: Owner::Unsigned,
                recommend_signature,
            }),
        }
    }

    /// Returns whether strangers can go through onboarding.
    fn check_unblocked(&self, identity: &Address) -> Result<(), AuthError> {
        match self.book.level_of(identity) {
            ClientLevel::Blocked => Err(AuthError::Blocked),
            _ => Ok(()),
        }
    }

    fn has_onboarding(&self) -> bool {
        !self.invites.is_empty() || self.payment.is_some()
    }

    /// Returns the level of a caller. Administrators are admitted at every level, unless blocked.
    fn standing_of(&self, identity: &Address) -> ClientLevel {
        let level = self.book.level_of(identity);
        let is_trusted = *identity == self.host || self.book.is_admin(identity);
        match level {
            ClientLevel::Stranger | ClientLevel::Contact if is_trusted => ClientLevel::Whitelisted,
            level => level,
        }
    }

    /// Returns whether a CONNECT carries a valid invite code, which makes its sender a contact.
    fn brings_invite(&self, verified: &Verified<'_>) -> bool {
        let code = verified.payload.text("invite_code");
        code.is_some_and(|code| self.invites.check(&code))
    }

    fn spend_if_strict(&mut self, verified: &Verified<'_>, now: f64) -> Result<(), AuthError> {
        let spent = self.is_strict.then(|| self.spend(verified, now));
        spent.unwrap_or(Ok(()))
    }

    /// Uses up a signature.
    ///
    /// # Errors
    /// [`AuthError::AlreadyUsed`], [`AuthError::ReplayProtectionUnavailable`].
    pub(crate) fn spend(&mut self, verified: &Verified<'_>, now: f64) -> Result<(), AuthError> {
        let signer = verified.address;
        let is_known = self.standing_of(&signer) != ClientLevel::Stranger;
        let is_admin = signer == self.host || self.book.is_admin(&signer);
        let times = 1 + usize::from(is_known) + usize::from(is_admin);
        self.used.spend(verified, times, now)?;
        if let Some(spent) = &mut self.spent {
            spent.push(Spent {
                end: end_of(verified),
                signer,
                signature: verified.signature,
            });
        }
        Ok(())
    }

    /// Admits a kept CONNECT after onboarding. Its signature counts as used from now on only, so
    /// that strangers cannot fill the memory of used ones.
    ///
    /// # Errors
    /// [`AuthError::AlreadyUsed`], [`AuthError::ReplayProtectionUnavailable`]; only
    /// [with used signatures](Self::with_used_signatures).
    pub(crate) fn complete(&mut self, connect: &Connect, now: f64) -> Result<(), AuthError> {
        match self.verifier.verify(&connect.signed, now) {
            Ok(verified) => self.spend_if_strict(&verified, now),
            // It was valid when it came, and can no longer be repeated.
            Err(_) => Ok(()),
        }
    }

    fn gate(&self, identity: Address) -> Result<Admission, AuthError> {
        let invite = (!self.invites.is_empty()).then_some(OnboardMethod::InviteCode);
        let payment = self.payment.as_ref().map(|_| OnboardMethod::Payment);
        let methods: Vec<_> = invite.into_iter().chain(payment).collect();
        // Words are JSON.
        let required = OnboardRequired::new(identity.to_string(), &methods);
        let mut required = required.map_err(|_| AuthError::OnboardRequired)?;
        if let Some((amount, address)) = &self.payment {
            required.payment_amount = Some(*amount);
            required.payment_address = address.clone();
        }
        Ok(Admission::Gate { identity, required })
    }

    /// Decides about an offer of the stranger with this identity. The offer must be signed by it.
    pub(crate) fn onboard(
        &mut self,
        identity: &Address,
        submit: &OnboardSubmit,
        now: f64,
    ) -> Result<Onboarding, AuthError> {
        let verified = self.verifier.verify_onboarding(&submit.signed, now)?;
        if verified.address != *identity {
            return Err(AuthError::InvalidSignature);
        }
        verified.check_type("ONBOARD_SUBMIT")?;
        self.check_unblocked(identity)?;
        let code = verified.payload.text("invite_code");
        if let Some(code) = code.filter(|code| !code.is_empty()) {
            if !self.invites.check(&code) {
                return Err(AuthError::InvalidInviteCode);
            }
            self.spend(&verified, now).map_err(AuthError::of_command)?;
            return self.welcome(identity, "Invite code verified. You are now a contact.");
        }
        match (verified.payload.number("payment"), &self.payment) {
            (Some(amount), Some((price, _))) if amount >= price.as_f64() => {
                Ok(Onboarding::Payment { amount })
            }
            (Some(_), _) => Err(AuthError::InsufficientPayment),
            (None, _) => Err(AuthError::InviteOrPaymentRequired),
        }
    }

    /// Makes a stranger whose payment was found a contact.
    pub(crate) fn paid(&mut self, identity: &Address) -> Result<Onboarding, AuthError> {
        self.check_unblocked(identity)?;
        self.welcome(identity, "Payment verified. You are now a contact.")
    }

    fn welcome(
        &mut self,
        identity: &Address,
        message: &'static str,
    ) -> Result<Onboarding, AuthError> {
        let level = match self.book.level_of(identity) {
            ClientLevel::Stranger => self.book_mut().promote(identity),
            standing => Ok(standing),
        };
        // The list of contacts is full.
        let level = level.map_err(|_| AuthError::DeniedByRules)?;
        Ok(Onboarding::Welcome(OnboardSuccess::new(
            identity.to_string(),
            Str::from_static(level.name()),
            Str::from_static(message),
        )))
    }

    /// Checks a command on a connection of `owner` that requires signed commands: its signer must
    /// be the owner, and its signature counts once. It was already [verified](Self::verifier).
    ///
    /// # Errors
    /// [`AuthError::NotTheOwner`], [`AuthError::CommandAlreadyUsed`],
    /// [`AuthError::ReplayProtectionUnavailable`]. Nothing has changed then.
    pub(crate) fn command(
        &mut self,
        owner: &Owner,
        verified: &Verified<'_>,
        now: f64,
    ) -> Result<(), AuthError> {
        if *owner != Owner::Key(verified.address) {
            return Err(AuthError::NotTheOwner);
        }
        self.spend(verified, now).map_err(AuthError::of_command)
    }

    /// Checks an administrator's command, which counts once. Allowed are the addresses in the list of
    /// admins; only the host's own key may change that list. `owner` is the owner of the connection: a
    /// command signed by another key is refused. Returns whom it is about, and its signature.
    ///
    /// # Errors
    /// The reply to the caller. Nothing has changed then.
    pub(crate) fn check_admin(
        &mut self,
        owner: Option<&Owner>,
        request: &AdminRequest,
        now: f64,
    ) -> Result<(Address, Signature), Box<ErrorFrame>> {
        let owner = owner.ok_or_else(|| fail(AuthError::CommandWithoutConnection))?;
        let verified = self.verifier.verify(&request.signed, now);
        let verified = verified.map_err(fail)?;
        if *owner != Owner::Key(verified.address) {
            return Err(fail(AuthError::NotTheOwner));
        }
        verified.check_type(request.action.name()).map_err(fail)?;
        let admin = verified.address;
        let is_host = admin == self.host;
        let action = &request.action;
        if let AdminAction::Other(word) = action {
            return Err(fail(format!("Unknown admin action: {word}")));
        }
        let (may, refusal, about) = match is_about_admins(action) {
            true => (is_host, AuthError::SuperAdminOnly, "admin_id"),
            false => {
                let may = is_host || self.book.is_admin(&admin);
                (may, AuthError::AdminOnly, "client_id")
            }
        };
        if !may {
            return Err(fail(refusal));
        }
        let address = request.signed.text(about).filter(|id| !id.is_empty());
        let address = address.ok_or_else(|| fail(format!("{about} required")))?;
        let address = Address::parse(&address).map_err(fail)?;
        let spent = self.spend(&verified, now);
        spent.map_err(|error| fail(error.of_command()))?;
        Ok((address, verified.signature))
    }

    /// Carries out an administrator's command that was [checked](Self::check_admin).
    ///
    /// # Errors
    /// The reply to the caller. Nothing has changed then.
    pub(crate) fn administrate(
        &mut self,
        request: &AdminRequest,
        address: Address,
    ) -> Result<AdminResult, Box<ErrorFrame>> {
        let action = &request.action;
        if is_about_admins(action) {
            let changed = match action {
                AdminAction::Add => self.book_mut().admins.insert(address).map_err(fail)?,
                _ => self.book_mut().admins.remove(&address),
            };
            return Ok(AdminResult::new(name(action), changed));
        }
        let before = self.book.level_of(&address);
        match action {
            AdminAction::Promote => self.book_mut().promote(&address).map(drop).map_err(fail)?,
            AdminAction::Demote => self.book_mut().demote(&address).map(drop).map_err(fail)?,
            AdminAction::Block => self.book_mut().block(&address).map(drop).map_err(fail)?,
            AdminAction::Unblock => drop(self.book_mut().unblock(&address)),
            _ => {}
        }
        let after = self.book.level_of(&address);
        let error = (before == after).then(|| unmoved(action, after)).flatten();
        let level = after.name();
        let message = match action {
            _ if error.is_some() => None,
            AdminAction::Promote => Some(format!("{address} promoted to {level}.")),
            AdminAction::Demote => Some(format!("{address} demoted to {level}.")),
            AdminAction::Block => Some(match request.signed.text("reason") {
                Some(reason) => format!("{address} blocked. Reason: {reason}"),
                None => format!("{address} blocked."),
            }),
            AdminAction::Unblock => Some(format!("{address} unblocked.")),
            _ => None,
        };
        let mut result = AdminResult::new(name(action), error.is_none());
        result.message = message.map(Str::from);
        result.error = error.map(Str::from_static);
        result.level = Some(Str::from_static(level));
        result.client_id = Some(address.to_string().into());
        Ok(result)
    }
}

/// Returns the prompt of an INPUT from a caller who was admitted as this owner: the signed prompt
/// if there is one, else the plain one. `None` if there is none. Returns also what is signed.
///
/// # Errors
/// [`AuthError`] if the INPUT is signed and the signature is invalid, or of another caller.
pub(crate) fn prompt_of<'a>(
    verifier: &Verifier,
    owner: &Owner,
    input: &'a Input,
    now: f64,
) -> Result<(Option<Str>, Option<Verified<'a>>), AuthError> {
    let filled = |prompt: &Str| !prompt.is_empty();
    let prompt = |signed: Option<Str>| {
        let signed = signed.filter(filled);
        signed.or_else(|| input.prompt.clone().filter(filled))
    };
    if input.signed.payload.is_none() || input.signed.signature.is_none() {
        return Ok((prompt(None), None));
    }
    // Of a caller without an identity it proves nothing, and takes longer than all the rest.
    if *owner == Owner::Unsigned {
        return Ok((prompt(input.signed.text("prompt")), None));
    }
    if is_signed_by_another(owner, &input.signed) {
        return Err(AuthError::InvalidSignature);
    }
    let verified = verifier.verify_onboarding(&input.signed, now)?;
    verified.check_type("INPUT")?;
    Ok((prompt(verified.payload.text("prompt")), Some(verified)))
}

/// Returns whether a frame is signed by another key than the owner's.
pub(crate) fn is_signed_by_another(owner: &Owner, signed: &Signed) -> bool {
    let from = signed.from.as_deref().map(Address::parse);
    matches!((owner, from), (Owner::Key(key), Some(Ok(from))) if *key != from)
}

const fn is_about_admins(action: &AdminAction) -> bool {
    matches!(action, AdminAction::Add | AdminAction::Remove)
}

/// Returns why a client's level did not change.
const fn unmoved(action: &AdminAction, level: ClientLevel) -> Option<&'static str> {
    match (action, level) {
        (AdminAction::Promote | AdminAction::Demote, ClientLevel::Blocked) => {
            Some("Blocked: unblock it first")
        }
        (AdminAction::Promote, _) => Some("Already at highest level"),
        (AdminAction::Demote, _) => Some("Already at lowest level"),
        _ => None,
    }
}

/// Returns an error for the client.
#[allow(clippy::needless_pass_by_value, reason = "it is what a closure gets")]
fn fail(error: impl ToString) -> Box<ErrorFrame> {
    Box::new(ErrorFrame::new(error.to_string()))
}

/// Returns the name of a command in its result.
fn name(action: &AdminAction) -> Str {
    match action {
        AdminAction::Add => Str::from_static("add_admin"),
        AdminAction::Remove => Str::from_static("remove_admin"),
        other => {
            let name = other.name().trim_start_matches("ADMIN_");
            name.to_lowercase().into()
        }
    }
}
