//! Today.

use std::time::{SystemTime, UNIX_EPOCH};

/// Today in UTC, as `2027-03-01`.
pub fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    spelled(seconds / 86_400)
}

/// The date so many days after 1970-01-01 (H. Hinnant, "chrono-Compatible Low-Level Date Algorithms").
fn spelled(days: u64) -> String {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + 400 * era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::spelled;

    #[test]
    fn days_are_dates() {
        let dates = [
            (0, "1970-01-01"),
            (59, "1970-03-01"),
            (11_016, "2000-02-29"),
            (11_017, "2000-03-01"),
            (20_779, "2026-11-22"),
        ];
        for (days, date) in dates {
            assert_eq!(spelled(days), date);
        }
    }
}
