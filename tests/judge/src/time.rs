//! Times of an audit log: RFC 3339 in UTC, as the server writes them.

use serde::{Deserialize, Deserializer};

/// Microseconds since 1970.
pub(crate) type Micros = u64;

/// For serde: absent or unreadable is none, since not every log that is judged has times.
pub(crate) fn lenient<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Micros>, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.as_deref().and_then(parse))
}

/// Reads `2026-05-04T09:12:29.118204Z`; the fraction may be absent.
fn parse(text: &str) -> Option<Micros> {
    let (date, clock) = text.strip_suffix('Z')?.split_once('T')?;
    let mut date = date.splitn(3, '-').map(str::parse::<u64>);
    let (year, month, day) = (date.next()?.ok()?, date.next()?.ok()?, date.next()?.ok()?);
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let mut clock = clock.splitn(3, ':').map(str::parse::<u64>);
    let (hour, minute, second) = (clock.next()?.ok()?, clock.next()?.ok()?, clock.next()?.ok()?);
    let micros: u64 = format!("{fraction:0<6}").get(..6)?.parse().ok()?;
    let seconds = ((days(year, month, day)? * 24 + hour) * 60 + minute) * 60 + second;
    Some(seconds * 1_000_000 + micros)
}

/// Days from 1970-01-01 in the Gregorian calendar. A year begins in March, so that the leap day is its last.
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let (year, month) = if month > 2 { (year, month - 3) } else { (year.checked_sub(1)?, month + 9) };
    let leap_days = year / 4 - year / 100 + year / 400;
    (365 * year + leap_days + (153 * month + 2) / 5 + day - 1).checked_sub(719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_form_of_the_server() {
        assert_eq!(parse("1970-01-01T00:00:00Z"), Some(0));
        // `date -d 2026-05-04T09:12:29Z +%s`
        assert_eq!(parse("2026-05-04T09:12:29.118204Z"), Some(1_777_885_949_118_204));
        assert_eq!(parse("2024-02-29T23:59:59.5Z"), Some(1_709_251_199_500_000));
        assert_eq!(parse("2000-03-01T00:00:00Z"), Some(951_868_800_000_000));
    }

    #[test]
    fn what_is_no_time_is_none() {
        for text in [
            "",
            "2026-05-04",
            "2026-13-04T00:00:00Z",
            "2026-05-04T09:12Z",
            "x-1-1T1:1:1Z",
            "1969-12-31T00:00:00Z",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
