//! Days since 1970-01-01 and their dates in the proleptic Gregorian calendar, for years of any size.
//!
//! Years from 0 to 9999 have four digits, others a sign and at least four, as in ISO 8601.

const DAYS_PER_400_YEARS: i64 = 146_097;

/// Days from 0000-03-01 to 1970-01-01. Years are counted from March here, so that a leap day is the last day of its year.
const DAYS_TO_1970: i64 = 719_468;

/// The date this many days after 1970-01-01.
pub(super) fn date_of_days(days: i64) -> String {
    let shifted = days + DAYS_TO_1970;
    let (cycle, day_of_cycle) = (shifted.div_euclid(DAYS_PER_400_YEARS), shifted.rem_euclid(DAYS_PER_400_YEARS));
    // The last day of 4, 100 and 400 years must not count as the first day of another year.
    let year_of_cycle = (day_of_cycle - day_of_cycle / 1_460 + day_of_cycle / 36_524 - day_of_cycle / 146_096) / 365;
    let day_of_year = day_of_cycle - days_before_year(year_of_cycle);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - days_before_month(month_from_march) + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = 400 * cycle + year_of_cycle + i64::from(month <= 2);
    if (0..=9999).contains(&year) {
        format!("{year:04}-{month:02}-{day:02}")
    } else {
        format!("{year:+05}-{month:02}-{day:02}")
    }
}

/// The days from 1970-01-01 to a date as [`date_of_days`] writes it.
pub(super) fn days_of_date(date: &str) -> Option<i64> {
    let (rest, day) = date.rsplit_once('-')?;
    let (year, month) = rest.rsplit_once('-')?;
    let (year, month, day): (i64, i64, i64) = (year.parse().ok()?, month.parse().ok()?, day.parse().ok()?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let year_from_march = if month <= 2 { year - 1 } else { year };
    let month_from_march = if month > 2 { month - 3 } else { month + 9 };
    let (cycle, year_of_cycle) = (year_from_march.div_euclid(400), year_from_march.rem_euclid(400));
    let day_of_cycle = days_before_year(year_of_cycle) + days_before_month(month_from_march) + day - 1;
    Some(cycle * DAYS_PER_400_YEARS + day_of_cycle - DAYS_TO_1970)
}

fn days_before_year(year_of_cycle: i64) -> i64 {
    365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100
}

/// From March on, months have 31, 30, 31, 30 and 31 days, twice; January and February follow.
fn days_before_month(month_from_march: i64) -> i64 {
    (153 * month_from_march + 2) / 5
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_count_up_day_by_day_over_four_centuries() {
        let (mut year, mut month, mut day) = (1600, 1, 1);
        let first = days_of_date("1600-01-01").unwrap();
        assert_eq!(first, -135_140);
        for days in first..first + DAYS_PER_400_YEARS + 1 {
            let date = format!("{year:04}-{month:02}-{day:02}");
            assert_eq!(date_of_days(days), date);
            assert_eq!(days_of_date(&date), Some(days));
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let length = match month {
                2 => 28 + i32::from(leap),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            day += 1;
            if day > length {
                (day, month) = (1, month + 1);
            }
            if month > 12 {
                (month, year) = (1, year + 1);
            }
        }
    }

    #[test]
    fn years_of_any_size_have_a_date() {
        assert_eq!(date_of_days(2_932_896), "9999-12-31");
        assert_eq!(date_of_days(2_932_897), "+10000-01-01");
        assert_eq!(date_of_days(-719_528), "0000-01-01");
        assert_eq!(date_of_days(-719_529), "-0001-12-31");
        for days in [i64::from(i32::MIN), i64::from(i32::MAX), 106_751_991_167, -106_751_991_168] {
            assert_eq!(days_of_date(&date_of_days(days)), Some(days));
        }
    }
}
