# shellcheck shell=bash
# The library on other targets: tests on 32-bit x86 and WebAssembly, and compiling for others. tests/suite.rs says which
# files are not for 32 bits.

# 32-bit x86 with musl, whose start files and C library come with Rust's target: no 32-bit system is needed.
readonly tested_targets=(i686-unknown-linux-musl wasm32-wasip1)
# 64-bit ARM, Windows.
readonly std_targets=(aarch64-unknown-linux-gnu x86_64-pc-windows-gnu)
# Without an operating system, and a 32-bit processor with the bytes in the other order.
readonly alloc_targets=(thumbv6m-none-eabi thumbv7em-none-eabihf powerpc-unknown-linux-gnu)
readonly all_targets=("${tested_targets[@]}" "${std_targets[@]}" "${alloc_targets[@]}")

i686() {
    local name=${tested_targets[0]}
    if [ "$(uname -sm)" != "Linux x86_64" ] || ! has_target "$name"; then
        not_checked "tests on 32-bit x86" "this is not x86-64 Linux, or rustup cannot install $name"
        return
    fi
    export CARGO_TARGET_DIR=$target/32
    cargo test --no-fail-fast -p koel --lib --tests --all-features --locked --target "$name"
}

wasm32() {
    local name=${tested_targets[1]} version
    version=$(node --version 2>/dev/null | sed 's/^v//; s/\..*//')
    if [ "${version:-0}" -lt 20 ]; then
        not_checked "tests on WebAssembly" "Node 20 or later is missing"
        return
    elif ! has_target "$name"; then
        not_checked "tests on WebAssembly" "rustup cannot install $name"
        return
    fi
    export CARGO_TARGET_WASM32_WASIP1_RUNNER="node --no-warnings $PWD/.ci/wasi.mjs"
    # 1 GiB: less than some tests ask for, which must be refused; and all of it from the start, since node:wasi goes on using
    # the old memory after it has grown.
    export CARGO_TARGET_DIR=$target/32
    export CARGO_TARGET_WASM32_WASIP1_RUSTFLAGS='-Clink-arg=--initial-memory=1073741824 -Clink-arg=--max-memory=1073741824'
    cargo test --no-fail-fast -p koel --lib --tests --all-features --locked --target "$name"
}

targets() {
    local name
    for name in "${std_targets[@]}" "${alloc_targets[@]}"; do
        if ! has_target "$name"; then
            not_checked "compiling for $name" "rustup cannot install its standard library"
            continue
        fi
        echo "for $name:"
        case " ${std_targets[*]} " in
            *" $name "*)
                cargo clippy -p koel -p koel-cli --locked --target "$name" -- -D warnings
                cargo clippy -p koel --all-features --locked --target "$name" -- -D warnings
                ;;
            *)
                cargo clippy -p koel --no-default-features --locked --target "$name" -- -D warnings
                cargo clippy -p koel --no-default-features --features kernels,serde --locked --target "$name" -- -D warnings
                ;;
        esac
    done
    not_checked "tests on 64-bit ARM and s390x" ".ci/other-machines runs them"
    not_checked "tests on Windows" "it is only compiled for"
}
