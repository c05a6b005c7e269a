# What developers run: `just check` before each commit, `just gate` before pushing, `just nightly` before a release. `just` lists the
# recipes; docs/CONTRIBUTING.md says what they check. `just` comes with `cargo install just`, or `pip install rust-just`.
#
# A recipe that lacks a tool says what it does not check, and the line that installs the tool; these lines are also added to
# target/not-checked.

set shell := ["bash", "-euo", "pipefail", "-c"]
set positional-arguments

# As for tests in Cargo.toml. Only what measures undoes it.
export CARGO_PROFILE_RELEASE_LTO := "off"
export PYTHONDONTWRITEBYTECODE := "1"

target := env("CARGO_TARGET_DIR", justfile_directory() / "target")
rust_version := trim(`sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml`)
host := "x86_64-unknown-linux-gnu"
# The library's features, as options of a workspace.
all_features := "koel/default,koel/serde,koel/redisbloom"

_list:
    @just --list --unsorted

# Format, lints, tests and documentation.
check: format clippy test docs

# All that must hold on a clean checkout. Much of it keeps one core busy, so the second half runs beside the first.
gate: format clippy _halves

[parallel]
_halves: _here _elsewhere

# Each half has target folders of its own, in which cargo does not wait for the other one.
_here: features docs readme reader (module "-k" "not redis-8 and not valkey-8")
_elsewhere: msrv no-std (i686 "--lib --test hostile --test small_filters") (wasm32 "--lib --test hostile") instructions code-size (fuzz "10")

# What takes long: Miri, sanitizers, other machines, all servers, a browser, packages.
nightly: release (features "--lib" "--tests") targets i686 wasm32 miri threads (fuzz "60") module report package semver aarch64 s390x

# Says what is not checked, and the line that installs what is missing.
_missing what install:
    @mkdir -p target && echo "not checked: {{what}}: {{install}}" | tee -a target/not-checked

# rustfmt of all packages, and that no file of tests is left out: cargo does not look for them (`autotests = false`).
format:
    @for manifest in Cargo.toml benches/code_size/Cargo.toml fuzz/Cargo.toml tests/no_std/Cargo.toml tests/threads/Cargo.toml; do \
        cargo fmt --all --check --manifest-path $manifest; done
    @for file in {,cli/}tests/{*.rs,*/mod.rs,*/main.rs}; do \
        [ -e "$file" ] || continue; folder=${file%%tests/*}; name=$(sed -E 's:(/mod|/main)?\.rs$::; s:.*/::' <<<"$file"); \
        grep -qE "^(mod $name;|name = \"$name\")$" ${folder}tests/suite.rs ${folder}Cargo.toml \
            || { echo "$file: neither ${folder}tests/suite.rs nor ${folder}Cargo.toml names it"; exit 1; }; done

# Clippy, without warnings: the workspace with all features.
clippy:
    cargo clippy --workspace --all-targets --all-features --locked -- -D warnings

# The same of the library without features, and with each alone; with `--lib --tests`, also of its tests.
features *what="--lib":
    cargo clippy -p koel --all-targets --no-default-features --locked -- -D warnings
    @for feature in $(sed -n '/^\[features\]/,/^\[dep/s/^\([a-z-]*\) = .*/\1/p' Cargo.toml | grep -v default); do \
        echo "with the feature $feature alone:"; \
        cargo clippy -p koel {{what}} --no-default-features --features $feature --locked -- -D warnings; done

# The Rust that Cargo.toml states compiles what is published; the laboratory is a part of the command.
msrv:
    @if cargo +{{rust_version}} --version; then CARGO_TARGET_DIR={{target}}/other cargo +{{rust_version}} check -p koel -p koel-cli -p koel-valkey --all-features --locked; \
    else {{just_executable()}} _missing "Rust {{rust_version}}" "rustup toolchain install {{rust_version}} --profile minimal"; fi

# It compiles for ARM, Windows, and with the bytes in the other order; or for other targets, without an operating system.
targets *names="aarch64-unknown-linux-gnu x86_64-pc-windows-gnu powerpc-unknown-linux-gnu":
    #!/usr/bin/env bash
    set -euo pipefail
    export CARGO_TARGET_DIR={{target}}/other
    for name in {{names}}; do
        {{just_executable()}} _has "$name" || continue
        echo "for $name:"
        case $name in
            aarch64* | *windows*) packages=(-p koel -p koel-cli) features=(--all-features) ;;
            *) packages=(-p koel --no-default-features) features=(--no-default-features --features kernels,serde) ;;
        esac
        cargo clippy "${packages[@]}" --locked --target "$name" -- -D warnings
        cargo clippy -p koel "${features[@]}" --locked --target "$name" -- -D warnings
    done

[no-exit-message]
_has target:
    @[ -d "$(rustc --print target-libdir --target {{target}} 2>/dev/null)" ] || { {{just_executable()}} _missing "{{target}}" "rustup target add {{target}}"; false; }

# rustdoc, without warnings: with all features, and without any; and that each figure in a page says where it is from.
docs:
    python3 docs/measure --check
    RUSTDOCFLAGS='-D warnings' cargo doc --workspace --all-features --no-deps --locked
    RUSTDOCFLAGS='-D warnings' cargo doc -p koel --no-default-features --no-deps --locked

# All tests of the workspace: the README's second command.
test:
    cargo test --workspace

# The two commands of the README's "Set-up", word for word.
readme:
    @commands=$(awk '/^## /{setup = $2 == "Set-up"} /^```$/{code = 0} setup && code; setup && /^```sh$/{code = 1}' README.md); \
    [ $(wc -l <<<"$commands") = 2 ] || { echo "README.md: two commands expected under Set-up"; exit 1; }; \
    while read -r command; do echo "\$ $command"; bash -c "$command" </dev/null; done <<<"$commands"
    @for kernel in bmi2 avx2 avx512dq; do grep -qw $kernel /proc/cpuinfo || {{just_executable()}} _missing "the kernel for $kernel" "another processor"; done

# The library's tests optimised, its unit tests without features, and the benchmarks, once each.
release:
    cargo test -p koel --lib --no-default-features --locked
    cargo test -p koel -p koel-benches --features {{all_features}} --release --locked
    cargo test -p koel -p koel-benches --features {{all_features}} --release --locked \
        --bench filter --bench growth --bench large --bench shared --bench billion -- --test

# A program without std links the library and gets the right answers; and it compiles for small ARM processors.
no-std: (targets "thumbv6m-none-eabi" "thumbv7em-none-eabihf")
    @for options in "" --release "--release --features kernels"; do \
        cargo run --quiet $options --manifest-path tests/no_std/Cargo.toml --target-dir target/no_std; done

# Tests on 32-bit x86. Its start files and C library come with Rust's target.
i686 *tests="--lib --tests":
    @! {{just_executable()}} _has i686-unknown-linux-musl || CARGO_TARGET_DIR={{target}}/other \
        cargo test -p koel {{tests}} --all-features --locked --target i686-unknown-linux-musl

# 1 GiB is less than some ask for, which must be refused. All of it from the start, since node:wasi goes on using the old memory
# after it has grown.

# Tests on WebAssembly, under Node.
wasm32 *tests="--lib --tests":
    @! {{just_executable()}} _has wasm32-wasip1 || CARGO_TARGET_DIR={{target}}/other \
        CARGO_TARGET_WASM32_WASIP1_RUNNER="node --no-warnings $PWD/.ci/wasi.mjs" \
        CARGO_TARGET_WASM32_WASIP1_RUSTFLAGS='-Clink-arg=--initial-memory=1073741824 -Clink-arg=--max-memory=1073741824' \
        cargo test -p koel {{tests}} --all-features --locked --target wasm32-wasip1

# The second reader of snapshots, tests/reader.py, agrees with the library.
reader:
    rm -rf target/reader
    cargo run --quiet --profile test --features redisbloom --locked --example goldens -- random target/reader >/dev/null
    @python=$({{just_executable()}} _python); if $python -c 'import xxhash'; then $python tests/reader_check.py tests/data target/reader; \
    else {{just_executable()}} _missing "the second reader" "pip install -r tests/reader/requirements.txt"; fi

# The Python that has what the tests need.
_python:
    @[ -x target/python/bin/python ] && echo target/python/bin/python || echo python3

# Instructions of single operations and batches: at most 3 % more than in benches/instructions.tsv.
instructions:
    @if command -v valgrind gungraun-runner; then \
        env -u CARGO_PROFILE_RELEASE_LTO CARGO_TARGET_DIR={{target}}/instructions python3 benches/instructions.py; \
    else {{just_executable()}} _missing "instruction counts" "apt-get install valgrind; cargo install gungraun-runner"; fi

# What programs grow by with the library: at most 3 % more than in benches/code_size.tsv.
code-size:
    env -u CARGO_PROFILE_RELEASE_LTO CARGO_TARGET_DIR={{target}}/code_size python3 benches/code_size.py

# Every fuzz target for so many seconds, with AddressSanitizer.
fuzz seconds="60":
    @if cargo +nightly fuzz --version; then fuzz/run {{seconds}}; \
    else {{just_executable()}} _missing "the fuzz targets" "rustup toolchain install nightly; cargo install --locked cargo-fuzz"; fi

# The module for Valkey and Redis, on every server that there is; arguments go to pytest.
module *arguments:
    # One after the other: together they would share the library's features. The first has a command that panics.
    cargo build --release --locked -p koel-valkey --features failpoint
    mkdir -p target/valkey && cp {{target}}/release/libkoel_valkey.so target/valkey/failpoint.so
    cargo build --release --locked -p koel-valkey
    cargo build --release --locked -p koel-cli
    @python=$({{just_executable()}} _python); servers=$($python valkey/tests/servers.py || true); \
    for server in redis-7 redis-8 valkey-8 valkey-9; do \
        grep -q "^$server\." <<<"$servers" || {{just_executable()}} _missing "the module on $server" .ci/install; done; \
    [ -z "$servers" ] || $python -m pytest -q -rs -p no:cacheprovider -n 3 --durations 5 valkey/tests "$@"

# The module for systems with an older C library, and the versions of it that the file needs, the highest last.
module-portable glibc="2.17":
    @if cargo zigbuild --version; then cargo zigbuild --release --locked -p koel-valkey --target {{host}}.{{glibc}} \
        && objdump -T {{target}}/{{host}}/release/libkoel_valkey.so | grep -o 'GLIBC_[0-9.]*' | sort -Vu; \
    else {{just_executable()}} _missing "the module for an older C library" "pip install ziglang cargo-zigbuild"; fi

# Miri is told that the processor has AVX2, so that it interprets the kernels, too. It does not know AVX-512.

# Undefined behaviour, under Miri.
miri:
    @if cargo +nightly miri --version; then CARGO_PROFILE_TEST_OPT_LEVEL=0 \
        CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS=-Ctarget-feature=+bmi1,+bmi2,+popcnt,+avx2 \
        MIRIFLAGS="-Zmiri-tree-borrows -Zmiri-strict-provenance -Zmiri-symbolic-alignment-check -Zmiri-provenance-gc=2000 \
            -Zmiri-env-set=PROPTEST_CASES=4 -Zmiri-env-set=PROPTEST_DISABLE_FAILURE_PERSISTENCE=1" \
        sh -c 'for tests in "--lib --" "--test suite -- memory_safety::"; do \
            cargo +nightly miri test -p koel --all-features --locked --target {{host}} $tests || exit; done'; \
    else {{just_executable()}} _missing Miri "rustup toolchain install nightly --component miri,rust-src"; fi

# The standard library is compiled with the sanitizer, too, so that it sees what its locks do.

# Data races in tests/threads, under ThreadSanitizer.
threads:
    @if [ -d "$(rustc +nightly --print sysroot)/lib/rustlib/src/rust/library" ]; then \
        RUSTFLAGS=-Zsanitizer=thread CARGO_PROFILE_TEST_DEBUG=line-tables-only cargo +nightly test --locked \
        -Zbuild-std -Zbuild-std-features=panic-unwind --target {{host}} --config profile.test.package.test.opt-level=0 \
        --config profile.test.package.proc_macro.opt-level=0 --manifest-path tests/threads/Cargo.toml --target-dir target/threads; \
    else {{just_executable()}} _missing ThreadSanitizer "rustup toolchain install nightly --component rust-src"; fi

# Figures in README.md and docs, measured anew on a machine that does nothing else; arguments as for docs/measure.
measure *arguments:
    @python3 docs/measure "$@"

# Reports in Chromium.
report:
    .ci/report

# What would be published builds by itself, without warnings, and contains nothing else.
package:
    #!/usr/bin/env bash
    set -euo pipefail
    # Tests and benchmarks are left out on purpose, which cargo mentions for each file.
    cargo publish --workspace --dry-run --locked --allow-dirty --target-dir target/package 2>&1 \
        | grep -vE '^warning: (ignoring (test|benchmark|example) `|aborting upload due to dry run$)' | tee target/publish
    ! grep '^warning' target/publish
    ! cargo package -p koel --locked --allow-dirty --list | grep -vE '^(src|tables|docs)/|^[^/]+$'

# What changed since the last release breaks nobody's code, unless its version says so.
semver:
    #!/usr/bin/env bash
    set -euo pipefail
    tag=$(git tag --list 'v*' --sort=-v:refname | head -1)
    if [ -z "$tag" ]; then echo "not checked: public API: there is no tag v0.1.0 yet to compare with"
    elif cargo semver-checks --version; then cargo semver-checks -p koel --baseline-rev "$tag"
    else {{just_executable()}} _missing "public API" "cargo install --locked cargo-semver-checks"; fi

# Tests on 64-bit ARM, under qemu.
aarch64: (_under_qemu "aarch64" "--all-features")

# Tests on s390x, where bytes are in the other order, under qemu.
s390x: (_under_qemu "s390x" "--no-default-features --features std,kernels,huge-pages,serde")

_under_qemu machine features:
    #!/usr/bin/env bash
    set -euo pipefail
    gcc={{machine}}-linux-gnu-gcc name={{uppercase(machine)}}_UNKNOWN_LINUX_GNU
    if ! command -v $gcc qemu-{{machine}}-static >/dev/null; then
        {{just_executable()}} _missing "tests on {{machine}}" "apt-get install qemu-user-static gcc-{{machine}}-linux-gnu"
    elif {{just_executable()}} _has {{machine}}-unknown-linux-gnu; then
        export CARGO_TARGET_${name}_LINKER=$gcc CARGO_TARGET_${name}_RUNNER="qemu-{{machine}}-static -L /usr/{{machine}}-linux-gnu"
        cargo test -p koel --lib --tests --release --locked --target {{machine}}-unknown-linux-gnu {{features}}
    fi
