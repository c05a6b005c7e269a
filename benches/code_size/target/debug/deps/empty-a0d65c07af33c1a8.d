/work/snap/benches/code_size/target/debug/deps/empty-a0d65c07af33c1a8.d: src/bin/empty.rs

/work/snap/benches/code_size/target/debug/deps/libempty-a0d65c07af33c1a8.rmeta: src/bin/empty.rs

src/bin/empty.rs:
