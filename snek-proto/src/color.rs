//! Colours of typing indicators (Snek specification, section 8).

use crate::limits::{
    COLOR_HUE_MAX, COLOR_HUE_MIN, COLOR_LIGHTNESS_MAX, COLOR_LIGHTNESS_MIN, COLOR_SATURATION_MAX,
    COLOR_SATURATION_MIN,
};

/// Returns whether a text is exactly `#` and six hex digits.
#[must_use]
pub fn is_html_color(text: &str) -> bool {
    text.strip_prefix('#')
        .is_some_and(|hex| hex.len() == 6 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Turns hue, saturation and lightness, each from 0 to 1, into `#RRGGBB` in upper case. Each
/// channel is rounded to the nearest value. Numbers out of range are clamped.
///
/// ```
/// assert_eq!(snek_proto::color::hsl_to_hex(0.0, 1.0, 0.5), "#FF0000");
/// ```
#[must_use]
pub fn hsl_to_hex(hue: f64, saturation: f64, lightness: f64) -> String {
    let [hue, saturation, lightness] =
        [hue, saturation, lightness].map(|x| if x.is_nan() { 0.0 } else { x.clamp(0.0, 1.0) });
    let spread = saturation * lightness.min(1.0 - lightness);
    // The distance of a channel from the lightness, by its place on the wheel of twelve parts.
    let channel = |offset: f64| {
        let place = (offset + hue * 12.0) % 12.0;
        to_byte(lightness - spread * (place - 3.0).min(9.0 - place).clamp(-1.0, 1.0))
    };
    let [red, green, blue] = [0.0, 8.0, 4.0].map(channel);
    format!("#{red:02X}{green:02X}{blue:02X}")
}

/// Returns a bright colour from the specification's ranges, chosen by 64 random bits.
#[must_use]
pub fn random_color(entropy: u64) -> String {
    // Entropy that differs in few bits should still give colours that look different.
    let mut bits = entropy.wrapping_add(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^= bits >> 31;
    let within = |part: u64, min: f64, max: f64| {
        let share = u32::try_from(part & 0x1F_FFFF).unwrap_or_default();
        min + (max - min) * f64::from(share) / f64::from(0x1F_FFFF_u32)
    };
    hsl_to_hex(
        within(bits, COLOR_HUE_MIN, COLOR_HUE_MAX),
        within(bits >> 21, COLOR_SATURATION_MIN, COLOR_SATURATION_MAX),
        within(bits >> 42, COLOR_LIGHTNESS_MIN, COLOR_LIGHTNESS_MAX),
    )
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the value is rounded and clamped to a byte's range"
)]
fn to_byte(share: f64) -> u8 {
    (share * 255.0).round().clamp(0.0, 255.0) as u8
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_colors_match() {
        for (h, s, l, hex) in [
            (0.0, 1.0, 0.5, "#FF0000"),
            (1.0 / 3.0, 1.0, 0.5, "#00FF00"),
            (2.0 / 3.0, 1.0, 0.5, "#0000FF"),
            (1.0, 1.0, 0.5, "#FF0000"),
            (0.5, 1.0, 0.5, "#00FFFF"),
            (1.0 / 6.0, 1.0, 0.5, "#FFFF00"),
            (0.7, 0.0, 0.5, "#808080"),
            (0.0, 0.7, 0.7, "#E87D7D"),
            (f64::NAN, 9.0, -1.0, "#000000"),
        ] {
            assert_eq!(hsl_to_hex(h, s, l), hex, "{h} {s} {l}");
        }
    }

    #[test]
    fn colors_have_a_strict_form() {
        assert!(is_html_color("#FF6B35") && is_html_color("#ff6b35"));
        for bad in [
            "",
            "#",
            "FF6B35",
            "#FF6B3",
            "#FF6B355",
            "#FF6B35\n",
            "#GG0000",
            "#ééé",
            "red",
        ] {
            assert!(!is_html_color(bad), "{bad:?}");
        }
    }

    #[test]
    fn neighboring_seeds_give_different_colors() {
        let colors: std::collections::HashSet<_> = (0..100).map(random_color).collect();
        assert!(colors.len() > 95);
    }

    /// Hue, saturation and lightness, as exact as two digits for a channel are.
    fn hsl(color: &str) -> [f64; 3] {
        let channel = |at| f64::from(u8::from_str_radix(&color[at..at + 2], 16).unwrap()) / 255.0;
        let (r, g, b) = (channel(1), channel(3), channel(5));
        let (max, min) = (r.max(g).max(b), r.min(g).min(b));
        let lightness = f64::midpoint(max, min);
        let saturation = (max - min) / (1.0 - (2.0 * lightness - 1.0).abs());
        let sixth = match () {
            () if r >= max => (g - b) / (max - min),
            () if g >= max => 2.0 + (b - r) / (max - min),
            () => 4.0 + (r - g) / (max - min),
        };
        [sixth.rem_euclid(6.0) / 6.0, saturation, lightness]
    }

    #[test]
    fn random_colors_fill_their_ranges() {
        let colors: Vec<_> = (0..20_000).map(|n| hsl(&random_color(n))).collect();
        let ranges = [0, 1, 2].map(|at| {
            let values = colors.iter().map(|color| color[at]);
            let (min, max) = values.fold((2.0, -1.0), |(min, max), it| (it.min(min), it.max(max)));
            (
                f64::round(min * 100.0) / 100.0,
                f64::round(max * 100.0) / 100.0,
            )
        });
        let [hue, saturation, lightness] = ranges;
        assert_eq!(hue, (0.0, 1.0));
        assert!((0.68..=0.71).contains(&saturation.0), "{saturation:?}");
        assert!(saturation.1 >= 0.99, "{saturation:?}");
        assert_eq!(lightness, (0.5, 0.7));
        // Everywhere between, too.
        for (at, width) in [(0, 1.0), (1, 0.3), (2, 0.2)] {
            let start = [0.0, 0.7, 0.5][at];
            for part in 0..10 {
                let middle = start + width * (f64::from(part) + 0.5) / 10.0;
                let near = |color: &[f64; 3]| (color[at] - middle).abs() < width / 20.0;
                let share = colors.iter().filter(|color| near(color)).count();
                assert!((1_000..3_000).contains(&share), "{at} {part}: {share}");
            }
        }
    }

    proptest! {
        #[test]
        fn random_colors_are_bright(entropy: u64) {
            let color = random_color(entropy);
            prop_assert!(is_html_color(&color));
            let [_, saturation, lightness] = hsl(&color);
            prop_assert!((0.49..=0.71).contains(&lightness), "{color} {lightness}");
            prop_assert!((0.68..=1.01).contains(&saturation), "{color} {saturation}");
        }
    }
}
