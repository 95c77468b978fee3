//! A hint to the processor, which changes no result.

/// Bytes that one fetch brings into the cache.
const LINE: usize = 64;

/// Has `value` brought into the nearest cache while the program continues; nothing on processors other than x86-64.
#[inline]
pub fn prefetch<T: ?Sized>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let start = std::ptr::from_ref(value).cast::<i8>();
        for offset in (0..size_of_val(value)).step_by(LINE) {
            #[allow(unsafe_code)]
            // SAFETY: a prefetch reads nothing that a program sees, and faults at no address.
            unsafe {
                _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(offset))
            };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (value, LINE);
}
