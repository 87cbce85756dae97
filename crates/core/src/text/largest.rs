/// The largest number up to `count` for which `fits` holds, by binary search: where it holds for a number, it holds for all
/// below. 0 is not tried.
#[must_use]
pub fn largest(count: usize, fits: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = (low + high).div_ceil(2);
        if fits(middle) { low = middle } else { high = middle - 1 }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_that_fits_is_found() {
        for count in 0..20 {
            for most in 0..20 {
                assert_eq!(largest(count, |number| number <= most), most.min(count), "{most} of {count}");
            }
        }
    }
}
