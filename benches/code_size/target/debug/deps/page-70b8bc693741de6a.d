/work/snap/benches/code_size/target/debug/deps/page-70b8bc693741de6a.d: src/page.rs src/../../../tests/data/packed_f13_any.koel

/work/snap/benches/code_size/target/debug/deps/libpage-70b8bc693741de6a.rmeta: src/page.rs src/../../../tests/data/packed_f13_any.koel

src/page.rs:
src/../../../tests/data/packed_f13_any.koel:
