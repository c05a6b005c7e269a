#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| koel_fuzz::foreign::check(input));
