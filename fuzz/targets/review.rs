#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gantry_fuzz::review::run(data));
