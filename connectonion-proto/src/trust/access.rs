//! [`AccessControl`]: who comes in, from a CONNECT to the decision.

use std::fmt;

use rpc_core::Str;

use super::{ClientLevel, Decision, TrustBook, TrustPolicy};
use crate::auth::{Address, AuthError, InviteCodes, UsedSignatures, Verified, Verifier};
use crate::frame::{
    AdminAction, AdminRequest, AdminResult, Connect, ErrorFrame, Input, Number, OnboardMethod,
    OnboardRequired, OnboardSubmit, OnboardSuccess,
};
use crate::session::Owner;

/// What is decided about a CONNECT. Exhaustive: there is nothing else.
#[derive(Clone, Debug, PartialEq)]
pub enum Admission {
    /// It may come in.
    Accept {
        /// Who it is.
        owner: Owner,
        /// The host's operator and the caller should hear that a signature would be better.
        recommend_signature: bool,
    },
    /// It has to go through onboarding first.
    Gate {
        /// Who it is.
        identity: Address,
        /// What it is told.
        required: OnboardRequired,
    },
    /// It does not come in, and is told this.
    Refuse(AuthError),
}

/// What is decided about an `ONBOARD_SUBMIT`. Exhaustive: there is nothing else.
#[derive(Clone, Debug, PartialEq)]
pub enum Onboarding {
    /// The caller is a contact now.
    Welcome(OnboardSuccess),
    /// The caller says that it has paid. Find out whether that is so, then
    /// [promote](AccessControl::paid) it or refuse it with [`AuthError::InsufficientPayment`].
    Payment {
        /// How much.
        amount: f64,
    },
    /// Nothing has changed; the caller may try again.
    Refuse(AuthError),
}

/// A host's access: the signature, the lists, the policy, and the ways in for strangers. It reads no
/// clock: `now` is in seconds since 1970.
///
/// ```
/// use connectonion_proto::auth::Signer;
/// use connectonion_proto::frame::{Connect, Signed};
/// use connectonion_proto::trust::{Admission, AccessControl, SignaturePolicy, TrustLevel, TrustPolicy};
///
/// let policy = TrustPolicy::new(TrustLevel::Open).with_signatures(SignaturePolicy::AlwaysSigned);
/// let mut access = AccessControl::new(*Signer::from_seed(&[1; 32]).address(), policy);
/// let unsigned = Connect::new(Signed::none());
/// assert!(matches!(access.admit(&unsigned, 1_702_234_567.0), Admission::Refuse(_)));
/// ```
pub struct AccessControl {
    host: Address,
    verifier: Verifier,
    policy: TrustPolicy,
    book: TrustBook,
    invites: InviteCodes,
    payment: Option<(Number, Option<Str>)>,
    used: Option<UsedSignatures>,
    /// Those of commands. Administrators have a memory of their own, which nobody else can fill.
    used_commands: UsedSignatures,
    used_by_admins: UsedSignatures,
    /// The lists may have changed since somebody asked.
    is_changed: bool,
}

impl AccessControl {
    /// The door of the host with this address. Nobody is in its lists, and there is no way in for
    /// strangers where the policy does not let them in.
    #[must_use]
    pub fn new(host: Address, policy: TrustPolicy) -> Self {
        Self {
            host,
            verifier: Verifier::new().with_recipient(host),
            policy,
            book: TrustBook::default(),
            invites: InviteCodes::default(),
            payment: None,
            used: None,
            used_commands: UsedSignatures::default(),
            used_by_admins: UsedSignatures::default(),
            is_changed: false,
        }
    }

    /// Sets how signatures are verified. Give it the host as its recipient.
    #[must_use]
    pub fn with_verifier(mut self, verifier: Verifier) -> Self {
        self.verifier = verifier;
        self
    }

    /// Sets the lists.
    #[must_use]
    pub fn with_book(mut self, book: TrustBook) -> Self {
        self.book = book;
        self
    }

    /// Makes contacts of those who know one of these codes.
    #[must_use]
    pub fn with_invites(mut self, codes: InviteCodes) -> Self {
        self.invites = codes;
        self
    }

    /// Makes contacts of those who pay so much, to this address if it is known.
    #[must_use]
    pub fn with_payment(mut self, amount: impl Into<Number>, address: Option<Str>) -> Self {
        self.payment = Some((amount.into(), address));
        self
    }

    /// Lets each signature open one connection only. Off by default: peers of the specification
    /// repeat one when they connect twice within a second. The signatures of commands count once in
    /// any case.
    #[must_use]
    pub fn with_used_signatures(mut self, used: UsedSignatures) -> Self {
        self.used = Some(used);
        self
    }

    /// The host.
    #[must_use]
    pub const fn host(&self) -> &Address {
        &self.host
    }

    /// How signatures are verified. That takes longer than all the rest, and needs no lock.
    #[must_use]
    pub const fn verifier(&self) -> &Verifier {
        &self.verifier
    }

    /// The lists.
    #[must_use]
    pub const fn book(&self) -> &TrustBook {
        &self.book
    }

    /// The lists, to change them.
    pub const fn book_mut(&mut self) -> &mut TrustBook {
        self.is_changed = true;
        &mut self.book
    }

    /// Whether the lists may have changed since this was asked last: write them down then.
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.is_changed)
    }

    /// Who a socket is that has not connected, as far as sessions are concerned: nobody, unless
    /// callers without a signature may come in.
    #[must_use]
    pub fn nobody(&self) -> Option<Owner> {
        match self.decide_unsigned() {
            Admission::Accept { owner, .. } => Some(owner),
            _ => None,
        }
    }

    /// Whether it matters who a caller is: somebody is blocked or whitelisted, or strangers have to
    /// go through onboarding. A caller without a signature could be anybody, and is refused then.
    fn tells_callers_apart(&self) -> bool {
        let lists = [
            &self.book.blocked,
            &self.book.whitelist,
            self.verifier.blacklist(),
        ];
        lists.into_iter().any(|list| !list.is_empty())
            || !self.invites.is_empty()
            || self.payment.is_some()
    }

    /// Verifies a CONNECT and decides about it.
    pub fn admit(&mut self, connect: &Connect, now: f64) -> Admission {
        let verified = self.verifier.verify(&connect.signed, now);
        self.decide(verified, now)
    }

    /// Decides about a CONNECT that was [verified](Self::verifier).
    pub fn decide(&mut self, verified: Result<Verified<'_>, AuthError>, now: f64) -> Admission {
        let verified = match verified {
            Ok(verified) => verified,
            Err(AuthError::SignedRequestRequired) => return self.decide_unsigned(),
            Err(error) => return Admission::Refuse(error),
        };
        let identity = verified.address;
        let decision = self.policy().decide(Some(self.standing_of(&identity)));
        let is_invited = matches!(decision, Decision::Gate { .. }) && self.brings_invite(&verified);
        // Before anything changes: who repeats an invitation is not let in again.
        if (is_invited || decision == Decision::Accept)
            && let Err(error) = self.spend(&verified, now)
        {
            return Admission::Refuse(error);
        }
        let decision = match is_invited && self.book_mut().promote(&identity).is_ok() {
            true => Decision::Accept,
            false => decision,
        };
        match decision {
            Decision::Accept => Admission::Accept {
                owner: Owner::Key(identity),
                recommend_signature: false,
            },
            Decision::Gate { methods } => self.gate(identity, &methods),
            Decision::Deny(error) => Admission::Refuse(error),
            Decision::AcceptUnsigned { .. } => self.decide_unsigned(),
        }
    }

    fn decide_unsigned(&self) -> Admission {
        match self.policy().decide(None) {
            _ if self.tells_callers_apart() => Admission::Refuse(AuthError::SignedRequestRequired),
            Decision::AcceptUnsigned {
                recommend_signature,
            } => Admission::Accept {
                owner: Owner::Unsigned,
                recommend_signature,
            },
            Decision::Deny(error) => Admission::Refuse(error),
            _ => Admission::Refuse(AuthError::SignedRequestRequired),
        }
    }

    /// The policy, with the ways in that there are.
    fn policy(&self) -> TrustPolicy {
        let invite = (!self.invites.is_empty()).then_some(OnboardMethod::InviteCode);
        let payment = self.payment.as_ref().map(|_| OnboardMethod::Payment);
        self.policy
            .clone()
            .with_methods(invite.into_iter().chain(payment))
    }

    /// The level of a caller. Who may administrate the host comes in at every level, unless blocked.
    fn standing_of(&self, identity: &Address) -> ClientLevel {
        let level = self.book.level_of(identity);
        let is_trusted = *identity == self.host || self.book.is_admin(identity);
        match level {
            ClientLevel::Stranger | ClientLevel::Contact if is_trusted => ClientLevel::Whitelisted,
            level => level,
        }
    }

    /// Whether a CONNECT brings an invite code along, which makes a contact of its sender.
    fn brings_invite(&self, verified: &Verified<'_>) -> bool {
        let code = verified.payload.text("invite_code");
        code.is_some_and(|code| self.invites.check(&code))
    }

    fn spend(&mut self, verified: &Verified<'_>, now: f64) -> Result<(), AuthError> {
        let used = self.used.as_mut();
        used.map_or(Ok(()), |used| used.spend(verified, now))
    }

    /// Lets in a CONNECT that has waited at the gate. Its signature counts as used now, and not
    /// before, so that strangers cannot fill the memory of those that were.
    ///
    /// # Errors
    /// [`AuthError::AlreadyUsed`], [`AuthError::ReplayProtectionUnavailable`]; only
    /// [with used signatures](Self::with_used_signatures).
    pub fn complete(&mut self, connect: &Connect, now: f64) -> Result<(), AuthError> {
        match self.verifier.verify(&connect.signed, now) {
            Ok(verified) => self.spend(&verified, now),
            // It was good when it came, and nobody can repeat it any more.
            Err(_) => Ok(()),
        }
    }

    fn gate(&self, identity: Address, methods: &[OnboardMethod]) -> Admission {
        // Words are JSON.
        let Ok(mut required) = OnboardRequired::new(identity.to_string(), methods) else {
            return Admission::Refuse(AuthError::OnboardRequired);
        };
        if let Some((amount, address)) = &self.payment {
            required = required.with_payment(*amount, address.clone());
        }
        Admission::Gate { identity, required }
    }

    /// Decides about what the stranger with this identity offers. Nobody else may answer for it.
    pub fn onboard(&mut self, identity: &Address, submit: &OnboardSubmit, now: f64) -> Onboarding {
        let verified = match self.verifier.verify_onboarding(&submit.signed, now) {
            Ok(verified) => verified,
            Err(error) => return Onboarding::Refuse(error),
        };
        if verified.address != *identity {
            return Onboarding::Refuse(AuthError::InvalidSignature);
        }
        if self.book.level_of(identity) == ClientLevel::Blocked {
            return Onboarding::Refuse(AuthError::Blocked);
        }
        let code = verified.payload.text("invite_code");
        if let Some(code) = code.filter(|code| !code.is_empty()) {
            return match self.invites.check(&code) {
                true => self.welcome(identity, "Invite code verified. You are now a contact."),
                false => Onboarding::Refuse(AuthError::InvalidInviteCode),
            };
        }
        match (verified.payload.number("payment"), &self.payment) {
            (Some(amount), Some((price, _))) if amount >= price.as_f64() => {
                Onboarding::Payment { amount }
            }
            (Some(_), _) => Onboarding::Refuse(AuthError::InsufficientPayment),
            (None, _) => Onboarding::Refuse(AuthError::InviteOrPaymentRequired),
        }
    }

    /// A payment was found: the stranger is a contact now.
    pub fn paid(&mut self, identity: &Address) -> Onboarding {
        if self.book.level_of(identity) == ClientLevel::Blocked {
            return Onboarding::Refuse(AuthError::Blocked);
        }
        self.welcome(identity, "Payment verified. You are now a contact.")
    }

    fn welcome(&mut self, identity: &Address, message: &'static str) -> Onboarding {
        let level = match self.book.level_of(identity) {
            ClientLevel::Stranger => self.book_mut().promote(identity),
            standing => Ok(standing),
        };
        match level {
            Ok(level) => Onboarding::Welcome(OnboardSuccess::new(
                identity.to_string(),
                Str::from_static(level.as_str()),
                Str::from_static(message),
            )),
            // The list of contacts is full.
            Err(_) => Onboarding::Refuse(AuthError::DeniedByRules),
        }
    }

    /// Takes a command of a connection that belongs to `owner` and whose commands have to be signed:
    /// its signer has to be the owner, and its signature counts once. It was
    /// [verified](Self::verifier).
    ///
    /// # Errors
    /// [`AuthError::NotTheOwner`], [`AuthError::CommandAlreadyUsed`],
    /// [`AuthError::ReplayProtectionUnavailable`]. Nothing has changed then.
    pub fn command(
        &mut self,
        owner: &Owner,
        verified: &Verified<'_>,
        now: f64,
    ) -> Result<(), AuthError> {
        if *owner != Owner::Key(verified.address) {
            return Err(AuthError::NotTheOwner);
        }
        spend_command(&mut self.used_commands, verified, now)
    }

    /// Decides whether an administrator may have what it wants, and does it. Allowed are those in
    /// the list of admins; who is in it decides the host's own key alone. `owner` is who the
    /// connection belongs to: a command that somebody else has signed is refused, and so is one that
    /// was done before, on whichever connection.
    ///
    /// # Errors
    /// What the caller is told. Nothing has changed then.
    pub fn administrate(
        &mut self,
        owner: Option<&Owner>,
        request: &AdminRequest,
        now: f64,
    ) -> Result<AdminResult, Box<ErrorFrame>> {
        let told = |error: AuthError| Box::new(ErrorFrame::new(error.to_string()));
        let owner = owner.ok_or_else(|| told(AuthError::CommandWithoutConnection))?;
        let verified = self.verifier.verify(&request.signed, now);
        let verified = verified.map_err(told)?;
        if *owner != Owner::Key(verified.address) {
            return Err(told(AuthError::NotTheOwner));
        }
        let command = verified.payload.text("type");
        if command.is_some_and(|command| command != request.action.name()) {
            return Err(told(AuthError::WrongCommand));
        }
        let admin = verified.address;
        let is_host = admin == self.host;
        let action = &request.action;
        if let AdminAction::Other(word) = action {
            let words = format!("Unknown admin action: {word}");
            return Err(Box::new(ErrorFrame::new(words)));
        }
        if matches!(action, AdminAction::Add | AdminAction::Remove) {
            if !is_host {
                return Err(told(AuthError::SuperAdminOnly));
            }
            let address = subject(
                request.signed.text("admin_id").as_deref(),
                "admin_id required",
            )?;
            spend_command(&mut self.used_by_admins, &verified, now).map_err(told)?;
            let changed = match action {
                AdminAction::Add => self.book_mut().admins.insert(address).map_err(full)?,
                _ => self.book_mut().admins.remove(&address),
            };
            return Ok(AdminResult::new(name(action), changed));
        }
        if !is_host && !self.book.is_admin(&admin) {
            return Err(told(AuthError::AdminOnly));
        }
        let address = subject(
            request.signed.text("client_id").as_deref(),
            "client_id required",
        )?;
        spend_command(&mut self.used_by_admins, &verified, now).map_err(told)?;
        let before = self.book.level_of(&address);
        match action {
            AdminAction::Promote => self.book_mut().promote(&address).map(drop).map_err(full)?,
            AdminAction::Demote => self.book_mut().demote(&address).map(drop).map_err(full)?,
            AdminAction::Block => self.book_mut().block(&address).map(drop).map_err(full)?,
            AdminAction::Unblock => drop(self.book_mut().unblock(&address)),
            _ => {}
        }
        let after = self.book.level_of(&address);
        let error = (before == after).then(|| unmoved(action, after)).flatten();
        let level = after.as_str();
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

/// The prompt of an INPUT, of a caller who was let in as this owner: that which is signed, if one
/// is, else the plain one. `None` if there is none.
///
/// # Errors
/// [`AuthError`] if the INPUT is signed and the signature is not good, or somebody else's.
pub fn prompt_of(
    verifier: &Verifier,
    owner: &Owner,
    input: &Input,
    now: f64,
) -> Result<Option<Str>, AuthError> {
    let plain = || Ok(input.prompt.clone().filter(|prompt| !prompt.is_empty()));
    if input.signed.payload.is_none() || input.signed.signature.is_none() {
        return plain();
    }
    let verified = verifier.verify_onboarding(&input.signed, now)?;
    if let Owner::Key(address) = owner
        && *address != verified.address
    {
        return Err(AuthError::InvalidSignature);
    }
    match verified.payload.text("prompt") {
        Some(prompt) if !prompt.is_empty() => Ok(Some(Str::from(&*prompt))),
        _ => plain(),
    }
}

/// Uses up the signature of a command.
fn spend_command(
    used: &mut UsedSignatures,
    verified: &Verified<'_>,
    now: f64,
) -> Result<(), AuthError> {
    used.spend(verified, now).map_err(|error| match error {
        AuthError::AlreadyUsed => AuthError::CommandAlreadyUsed,
        other => other,
    })
}

fn subject(id: Option<&str>, missing: &'static str) -> Result<Address, Box<ErrorFrame>> {
    let id = id.filter(|id| !id.is_empty());
    let told = |words: Str| Box::new(ErrorFrame::new(words));
    let id = id.ok_or_else(|| told(Str::from_static(missing)))?;
    Address::parse(id).map_err(|error| told(error.to_string().into()))
}

/// Why a client stands where it stood.
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

fn full(error: crate::auth::ListFull) -> Box<ErrorFrame> {
    Box::new(ErrorFrame::new(error.to_string()))
}

/// What the answer calls it.
fn name(action: &AdminAction) -> Str {
    Str::from_static(match action {
        AdminAction::Promote => "promote",
        AdminAction::Demote => "demote",
        AdminAction::Block => "block",
        AdminAction::Unblock => "unblock",
        AdminAction::GetLevel => "get_level",
        AdminAction::Add => "add_admin",
        AdminAction::Remove => "remove_admin",
        AdminAction::Other(word) => return word.clone(),
    })
}

/// Prints what kind of door it is, nothing of lists and codes.
impl fmt::Debug for AccessControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessControl")
            .field("host", &self.host)
            .field("policy", &self.policy)
            .field("book", &self.book)
            .field("invites", &self.invites)
            .finish_non_exhaustive()
    }
}
