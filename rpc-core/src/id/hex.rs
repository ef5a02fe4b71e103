//! A number as sixteen lower-case hex digits, eight digits per step.

/// Returns a word with this byte in all eight places.
const fn all(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

/// The sixteen digits of `raw`.
pub(super) fn digits(raw: u64) -> [u8; 16] {
    let high = spread(raw >> 32).to_be_bytes();
    let low = spread(raw & 0xffff_ffff).to_be_bytes();
    let mut digits = [0; 16];
    let (left, right) = digits.split_at_mut(8);
    left.copy_from_slice(&high);
    right.copy_from_slice(&low);
    digits
}

pub(super) fn text(digits: &[u8; 16]) -> &str {
    // Digits are ASCII, so the empty text is never taken.
    std::str::from_utf8(digits).unwrap_or_default()
}

/// Reads exactly what [`digits`] gives.
pub(super) fn parse(text: &str) -> Option<u64> {
    let ([high, low], []) = text.as_bytes().as_chunks() else {
        return None;
    };
    let half = |digits: &[u8; 8]| gather(u64::from_be_bytes(*digits));
    let raw = half(high) << 32 | half(low);
    // Whatever else was made a number does not come out the same.
    (digits(raw) == text.as_bytes()).then_some(raw)
}

/// Makes a digit of each half byte of a 32-bit number.
const fn spread(mut word: u64) -> u64 {
    word = (word | word << 16) & 0x0000_ffff_0000_ffff;
    word = (word | word << 8) & 0x00ff_00ff_00ff_00ff;
    word = (word | word << 4) & all(0x0f);
    // Six more lift the values from ten into the next half byte: those are letters.
    let letters = ((word + all(6)) >> 4) & all(1);
    word + all(b'0') + letters * (b'a' - b'0' - 10) as u64
}

/// Undoes [`spread`] if the word holds eight digits; otherwise the result is meaningless.
const fn gather(digits: u64) -> u64 {
    let letters = (digits >> 6) & all(1);
    let mut word = (digits & all(0x0f)) + letters * 9;
    word = (word | word >> 4) & 0x00ff_00ff_00ff_00ff;
    word = (word | word >> 8) & 0x0000_ffff_0000_ffff;
    (word | word >> 16) & 0xffff_ffff
}
