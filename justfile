# What developers run: `just check` before each commit, `just gate` before pushing, `just nightly` before a release. `just` lists the
# recipes; `cargo install just` or `pip install rust-just` installs it. docs/CONTRIBUTING.md says more.

set shell := ["bash", "-euo", "pipefail", "-c"]
set positional-arguments

# As for tests in Cargo.toml. Only what measures undoes it.
export CARGO_PROFILE_RELEASE_LTO := "off"
export PYTHONDONTWRITEBYTECODE := "1"

# Quoted for the shell, as the next one: a folder's name may have blanks.
target := quote(env("CARGO_TARGET_DIR", justfile_directory() / "target"))
rust_version := trim(`sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml`)
host := "x86_64-unknown-linux-gnu"
just := quote(just_executable())
python := if path_exists("target/python/bin/python") == "true" { "target/python/bin/python" } else { "python3" }

_list:
    @just --list --unsorted

# Format, lints, tests and documentation.
check: format clippy test docs

# All that must hold on a clean checkout. Much of it keeps one core busy, so the second half runs beside the first.
gate: format _halves

[parallel]
_halves: _here _elsewhere

# Each half has target folders of its own, in which cargo does not wait for the other one.
_here: clippy features docs messages readme reader (module "-k" "not redis-8 and not valkey-8")
_elsewhere: msrv no-std web (i686 "--lib --test hostile --test small_filters") instructions code-size _fuzz-compiles python

# What takes long: Miri, sanitizers, other machines, all servers, a browser, and the files of a release.
nightly: release (features "--all-targets") targets i686 wasm32 miri threads (fuzz "60") model module report web-demo languages python-dask python-pandas semver aarch64 s390x artifacts artifacts-check

# Fails where the command does, and notes what is not checked without it, and the line that installs it.
[no-exit-message]
_need what install *command:
    @shift 2; "$@" >/dev/null 2>&1 || { mkdir -p target; echo "not checked: {{what}}: {{install}}" | tee -a target/not-checked; false; }

[no-exit-message]
_target name:
    @{{just}} _need {{name}} "rustup target add {{name}}" test -d "$(rustc --print target-libdir --target {{name}} 2>/dev/null)"

# rustfmt of all packages, and that no file of tests is left out: cargo does not look for them (`autotests = false`).
format:
    @for manifest in Cargo.toml benches/code_size/Cargo.toml fuzz/Cargo.toml tests/messages/Cargo.toml tests/no_std/Cargo.toml tests/threads/Cargo.toml web/Cargo.toml python/Cargo.toml; do \
        cargo fmt --all --check --manifest-path $manifest; done
    @for file in {,cli/}tests/{*.rs,*/mod.rs,*/main.rs}; do \
        [ -e "$file" ] || continue; folder=${file%%tests/*}; name=$(sed -E 's:(/mod|/main)?\.rs$::; s:.*/::' <<<"$file"); \
        grep -qE "^(mod $name;|name = \"$name\")$" ${folder}tests/suite.rs ${folder}Cargo.toml \
            || { echo "$file: neither ${folder}tests/suite.rs nor ${folder}Cargo.toml names it"; exit 1; }; done

# Clippy of the workspace with all features, without warnings.
clippy:
    cargo clippy --workspace --all-targets --all-features --locked -- -D warnings

# Clippy of the library without features, and with each alone; with `--all-targets`, of all there is.
features *what="--lib":
    cargo clippy -p koel {{what}} --no-default-features --locked -- -D warnings
    @for feature in $(sed -n '/^\[features\]/,/^\[dep/s/^\([a-z-]*\) = .*/\1/p' Cargo.toml | grep -v default); do \
        echo "with the feature $feature alone:"; \
        cargo clippy -p koel {{what}} --no-default-features --features $feature --locked -- -D warnings; done

# The Rust that Cargo.toml states compiles the workspace with its tests, as README promises. It runs none of them.
msrv:
    @! {{just}} _need "Rust {{rust_version}}" "rustup toolchain install {{rust_version}} --profile minimal" cargo +{{rust_version}} --version \
        || CARGO_TARGET_DIR={{target}}/other cargo +{{rust_version}} check --workspace --all-targets --all-features --locked

# Clippy for ARM, Windows, and with the bytes in the other order; or for other targets, without an operating system.
targets *names="aarch64-unknown-linux-gnu x86_64-pc-windows-gnu powerpc-unknown-linux-gnu":
    #!/usr/bin/env bash
    set -euo pipefail
    export CARGO_TARGET_DIR={{target}}/other
    for name in {{names}}; do
        {{just}} _target $name || continue
        case $name in
            aarch64* | *windows*) packages=(-p koel -p koel-cli) features=(--all-features) ;;
            *) packages=(-p koel --no-default-features) features=(--no-default-features --features kernels,serde) ;;
        esac
        cargo clippy "${packages[@]}" --locked --target "$name" -- -D warnings
        cargo clippy -p koel "${features[@]}" --locked --target "$name" -- -D warnings
    done

# rustdoc, without warnings: with all features, and without any; the methods on the pages of filters; and docs/measure --check.
docs:
    python3 docs/measure --check
    RUSTDOCFLAGS='-D warnings' cargo doc --workspace --all-features --no-deps --locked
    python3 docs/pages.py {{target}}/doc
    @# Without pages, the script names the command that builds them.
    @message=$(python3 docs/pages.py docs 2>&1) && { echo "docs/pages.py passes without pages"; exit 1; } \
        || [ "$message" = "docs has no pages of koel; build them: cargo doc -p koel --all-features --no-deps" ] \
        || { echo "docs/pages.py: $message"; exit 1; }
    RUSTDOCFLAGS='-D warnings' cargo doc -p koel --no-default-features --no-deps --locked

# What the compiler says about programs that must not compile.
messages:
    python3 tests/messages/check.py --locked --target-dir {{target}}/messages

# All tests of the workspace: the README's second command.
test:
    cargo test --workspace

# The two commands of the README's "Set-up", word for word: the demo, and all tests.
readme:
    @commands=$(awk '/^## /{setup = $2 == "Set-up"} /^```$/{code = 0} setup && code; setup && /^```sh$/{code = 1}' README.md); \
    [ $(wc -l <<<"$commands") = 2 ] || { echo "README.md: two commands expected under Set-up"; exit 1; }; \
    while read -r command; do echo "\$ $command"; bash -c "$command" </dev/null; done <<<"$commands"
    @for kernel in bmi2 avx2 avx512dq; do {{just}} _need "the kernel for $kernel" "another processor" grep -w $kernel /proc/cpuinfo || true; done

# The library's tests optimized, its unit tests without features, and the benchmarks, once each.
release:
    cargo test -p koel --lib --no-default-features --locked
    cargo test -p koel -p koel-benches --features koel/default,koel/serde,koel/redisbloom --release --locked
    cargo test -p koel -p koel-benches --features koel/default,koel/serde,koel/redisbloom --release --locked \
        --bench filter --bench copies --bench growth --bench pauses --bench large --bench shared --bench open --bench billion -- --test
    cargo run --release --quiet -p koel-peers --example small --locked -- 10000 1 >/dev/null
    cargo run --release --quiet -p koel-peers --example copies --locked -- 1000 >/dev/null

# A program without std links the library and gets the right answers; and it compiles for small ARM processors.
no-std: (targets "thumbv6m-none-eabi" "thumbv7em-none-eabihf")
    @for options in "" --release "--release --features kernels"; do \
        cargo run --quiet $options --manifest-path tests/no_std/Cargo.toml --target-dir target/no_std; done

# Tests on 32-bit x86. Its start files and C library come with Rust's target.
i686 *tests="--lib --tests":
    @! {{just}} _target i686-unknown-linux-musl || CARGO_TARGET_DIR={{target}}/other \
        cargo test -p koel {{tests}} --all-features --locked --target i686-unknown-linux-musl

# 1 GiB is less than some ask for, which must be refused. All of it from the start, since node:wasi goes on using the old memory
# after it has grown.
[doc("Tests on WebAssembly, under Node.")]
wasm32 *tests="--lib --tests":
    @! {{just}} _target wasm32-wasip1 || ! {{just}} _need "tests on WebAssembly" "apt-get install nodejs" node --version \
        || CARGO_TARGET_DIR={{target}}/other CARGO_TARGET_WASM32_WASIP1_RUNNER="node --no-warnings .ci/wasi.mjs" \
        CARGO_TARGET_WASM32_WASIP1_RUSTFLAGS='-Clink-arg=--initial-memory=1073741824 -Clink-arg=--max-memory=1073741824' \
        cargo test -p koel {{tests}} --all-features --locked --target wasm32-wasip1

# The second reader of snapshots, tests/reader.py, agrees with the library, as `cargo test` has built it.
reader:
    rm -rf target/reader && cargo build --quiet --profile test --workspace --examples --locked
    {{target}}/debug/examples/goldens random target/reader >/dev/null
    @! {{just}} _need "the second reader" "pip install -r tests/reader/requirements.txt" {{python}} -c 'import xxhash' \
        || {{python}} tests/reader_check.py tests/data target/reader

# The calls and programs of docs/FORMAT.md in C, Go, Java, JavaScript and Python; the programs look up the items of golden files.
languages:
    #!/usr/bin/env bash
    set -euo pipefail
    {{just}} _need "docs/FORMAT.md in other languages" "pip install -r tests/reader/requirements.txt" {{python}} -c 'import xxhash' || exit 0
    check() { ! {{just}} _need "docs/FORMAT.md in $1" .ci/install "${@:2}" || {{python}} tests/languages/check.py "$1"; }
    check python true
    check c test -e /usr/include/xxhash.h
    check go env GO111MODULE=off GOPATH="$PWD/target/languages/debian/usr/share/gocode:/usr/share/gocode" go list github.com/zeebo/xxh3
    check java jar tf /usr/share/java/jna.jar
    {{just}} _need "docs/FORMAT.md in javascript" "apt-get install nodejs npm (20.16 or later)" which node npm || exit 0
    {{just}} _npm tests/languages/javascript target/languages/javascript
    check javascript true

# The Python package: its lints, and its tests, types and documentation with the wheel in a fresh environment.
python:
    #!/usr/bin/env bash
    set -euo pipefail
    {{just}} _need "the Python package" "pip install -r python/requirements.txt" {{python}} -c 'import maturin, hypothesis, matplotlib, mypy, pyarrow' \
        || exit 0
    # The wheel for users is one unit, which compiles longer and on one core.
    folder=target/wheel; export CARGO_TARGET_DIR={{target}}/wheel CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16
    export PYO3_PYTHON=$({{python}} -c 'import sys; print(sys.executable)')
    cargo clippy --quiet --manifest-path python/Cargo.toml --all-targets --features extension --locked -- -D warnings
    rm -rf $folder/{dist,venv}
    {{python}} -m maturin build --quiet --release --sdist --manifest-path python/Cargo.toml --interpreter "$PYO3_PYTHON" --out $folder/dist
    {{python}} -m venv --without-pip $folder/venv
    # The tools are those of the other environment; only the wheel is new.
    {{python}} -c 'import sysconfig; print(sysconfig.get_path("purelib"))' >$(echo $folder/venv/lib/python3.*/site-packages)/tools.pth
    {{python}} -m pip --python $folder/venv/bin/python install --quiet --no-deps --ignore-installed $folder/dist/koel_filter-*.whl
    $folder/venv/bin/python -m pytest -q -p no:cacheprovider python/tests
    $folder/venv/bin/python -m mypy --cache-dir $folder/mypy --config-file python/pyproject.toml \
        python/examples python/benches python/tests/test_types.py
    # The module within the package is the package's own. Only koel's own classes inherit from these three, so they are not final.
    $folder/venv/bin/python -m mypy.stubtest --mypy-config-file python/pyproject.toml \
        --allowlist <(printf 'koel.%s\n' koel Filter MutableFilter ElasticFilter) koel

# The example that builds filters with Dask, in its processes: at once, and with a worker that is killed.
python-dask: python
    @! {{just}} _need "the example with Dask" "pip install -r python/requirements-examples.txt" \
        {{python}} -m pip install --quiet --disable-pip-version-check -r python/requirements-examples.txt \
        || target/wheel/venv/bin/python -m pytest -q -p no:cacheprovider python/tests/test_dask.py

# For the figures of python/README.md: the wheel as users get it, and what it is compared with, in target/figures/venv.
python-figures:
    #!/usr/bin/env bash
    set -euo pipefail
    folder=target/figures; unset CARGO_PROFILE_RELEASE_LTO; export CARGO_TARGET_DIR={{target}}/figures
    {{python}} -m venv --clear $folder/venv; rm -rf $folder/dist
    $folder/venv/bin/python -m pip install --quiet --disable-pip-version-check -r python/requirements.txt \
        -r python/requirements-examples.txt -r python/requirements-figures.txt
    $folder/venv/bin/maturin build --quiet --release --manifest-path python/Cargo.toml --interpreter $folder/venv/bin/python --out $folder/dist
    $folder/venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps $folder/dist/koel_filter-*.whl

# Columns with pandas 2, which exports others than pandas 3: in an environment of its own, with the wheel of `python`.
python-pandas: python
    @{{python}} -m venv --without-pip --clear target/wheel/pandas
    @! {{just}} _need "columns with pandas 2" "pip install -r python/requirements-pandas.txt" {{python}} -m pip \
        --python target/wheel/pandas/bin/python install -r python/requirements-pandas.txt target/wheel/dist/koel_filter-*.whl \
        || target/wheel/pandas/bin/python -m pytest -q -p no:cacheprovider python/tests/test_{items,columns,remedies}.py

# Incremental builds take more instructions.
[doc("Instructions of single operations and batches: at most 3 % more than in benches/instructions.tsv.")]
instructions:
    @! {{just}} _need "instruction counts" "apt-get install valgrind; cargo install gungraun-runner" which valgrind gungraun-runner \
        || env -u CARGO_PROFILE_RELEASE_LTO CARGO_INCREMENTAL=0 CARGO_TARGET_DIR={{target}}/instructions python3 benches/instructions.py

# What programs grow by with the library: at most 3 % more than in benches/code_size.tsv.
code-size:
    env -u CARGO_PROFILE_RELEASE_LTO CARGO_INCREMENTAL=0 CARGO_TARGET_DIR={{target}}/code_size python3 benches/code_size.py

# Every fuzz target, or those named, for so many seconds, after minutes of compiling: with AddressSanitizer, from fuzz/corpus.
fuzz seconds="60" *targets="snapshot ops growing foreign serde":
    @! {{just}} _need "the fuzz targets" "rustup toolchain install nightly; cargo install --locked cargo-fuzz" cargo +nightly fuzz --version \
        || { cargo +nightly fuzz build --target-dir target/fuzz; xargs -n 1 -P "$(nproc)" {{just}} _fuzz {{seconds}} <<<"{{targets}}"; }

# The fuzz targets compile. What they do is tested by `cargo test`, which replays the corpus.
_fuzz-compiles:
    cargo check --quiet --manifest-path fuzz/Cargo.toml --locked --target-dir target/fuzz/check

# One target: its output is shown if it fails. An input that crashes is left in fuzz/artifacts.
_fuzz seconds name:
    @[[ {{seconds}} =~ ^[1-9][0-9]*$ && -d fuzz/corpus/{{name}} ]] \
        || { echo "{{seconds}} {{name}} given; give seconds, and targets that have a folder in fuzz/corpus: just fuzz 60 serde"; false; }
    @found=target/fuzz/corpus/{{name}} artifacts=fuzz/artifacts/{{name}}/ log=target/fuzz/{{name}}.log; mkdir -p $found $artifacts; \
    KOEL_FUZZ={{name}} target/fuzz/{{host}}/release/all $found fuzz/corpus/{{name}} -artifact_prefix=$artifacts -max_total_time={{seconds}} \
        -max_len=4096 -entropic_scale_per_exec_time=1 -print_final_stats=1 >$log 2>&1 || { cat $log; \
        echo "{{name}} crashed: run it again by KOEL_FUZZ={{name}} cargo +nightly fuzz run --target-dir target/fuzz all $artifacts..."; false; }; \
    printf '%-12s %s\n' {{name}} "$(grep -a '^#.*DONE' $log)"

# Growing filters on all kernels in lockstep, compared with a multiset: random operations, chosen items, millions of copies. Prints one
# shortened sequence for each kind of failure. Another seed gives other sequences.
model seconds="600" seed="0": (_has-tests "composed::random_sequences" "--release")
    KOEL_SECONDS={{seconds}} KOEL_SEED={{seed}} cargo test -p koel --all-features --release --locked --test suite -- \
        --nocapture composed::random_sequences

# Fails if no test of the library's suite has this name. A filter that matches none passes.
_has-tests name *options:
    @cargo test -p koel --all-features --quiet --locked --test suite {{options}} -- --list {{quote(name)}} | grep -c ': test$' >/dev/null \
        || { echo "{{name}}: no test of tests/suite.rs has this name; correct it in the recipe"; false; }

# The module for Valkey and Redis, on every server that there is; arguments go to pytest.
module *arguments:
    # One after the other: together they would share the library's features. The first has a command that panics.
    cargo build --release --locked -p koel-valkey --features failpoint
    mkdir -p target/valkey && cp {{target}}/release/libkoel_valkey.so target/valkey/failpoint.so
    cargo build --release --locked -p koel-valkey
    cargo build --release --locked -p koel-cli
    @servers=$({{python}} valkey/tests/servers.py); \
    for server in redis-7 redis-8 valkey-8 valkey-9; do \
        {{just}} _need "the module on $server" .ci/install grep "^$server\." <<<"$servers" || true; done; \
    {{just}} _need "the module beside RedisBloom" .ci/install {{python}} valkey/tests/redisbloom.py || true; \
    {{just}} _need "the alerts of the module" .ci/install env PATH="$PATH:target/valkey/debian/usr/bin" \
        which prometheus-redis-exporter promtool || true; \
    [ -z "$servers" ] || ! {{just}} _need "the module" "pip install -r valkey/tests/requirements.txt" {{python}} -c "import pytest, xdist" \
        || {{python}} -m pytest -q -rs -p no:cacheprovider -n 5 --durations 5 valkey/tests "$@"

# The module as it is released, for systems with an older C library: fails unless the file needs at most that version of it. The last
# line names the file.
module-portable glibc="2.17" machine="x86_64":
    #!/usr/bin/env bash
    set -euo pipefail
    # zig is found through the Python that has it.
    export PATH={{quote(justfile_directory() / "target/python/bin")}}:$PATH CARGO_PROFILE_RELEASE_{LTO=fat,CODEGEN_UNITS=1,STRIP=true}
    {{just}} _need "the module for an older C library" "pip install ziglang cargo-zigbuild" cargo-zigbuild --version
    {{just}} _target {{machine}}-unknown-linux-gnu
    cargo zigbuild --release --locked -p koel-valkey --target {{machine}}-unknown-linux-gnu.{{glibc}}
    file={{target}}/{{machine}}-unknown-linux-gnu/release/libkoel_valkey.so
    needed=$(readelf --version-info --wide "$file" | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -1) \
        || { echo "$file names no version of the C library; give 2.5 or a later one, not {{glibc}}"; exit 1; }
    [ "$(printf '%s\n' "$needed" GLIBC_{{glibc}} | sort -V | tail -1)" = GLIBC_{{glibc}} ] \
        || { echo "$file needs $needed; GLIBC_{{glibc}} was asked for"; exit 1; }
    echo "$file needs $needed"

# Miri is told that the processor has AVX2, so that it interprets the kernels, too. It does not know AVX-512.
[doc("Undefined behavior, under Miri.")]
miri: (_has-tests "memory_safety::")
    @! {{just}} _need Miri "rustup toolchain install nightly --component miri,rust-src" cargo +nightly miri --version \
        || for tests in "--lib --" "--test suite -- memory_safety::"; do CARGO_PROFILE_TEST_OPT_LEVEL=0 \
        CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS=-Ctarget-feature=+bmi1,+bmi2,+popcnt,+avx2 \
        MIRIFLAGS="-Zmiri-tree-borrows -Zmiri-strict-provenance -Zmiri-symbolic-alignment-check -Zmiri-provenance-gc=2000 \
            -Zmiri-env-set=PROPTEST_CASES=4 -Zmiri-env-set=PROPTEST_DISABLE_FAILURE_PERSISTENCE=1" \
        cargo +nightly miri test -p koel --all-features --locked --target {{host}} $tests -Zunstable-options --report-time; done

# The standard library is compiled with the sanitizer, too, so that it sees what its locks do.
[doc("Data races in tests/threads, under ThreadSanitizer.")]
threads:
    @! {{just}} _need ThreadSanitizer "rustup toolchain install nightly --component rust-src" \
        test -d "$(rustc +nightly --print sysroot)/lib/rustlib/src/rust/library" \
        || RUSTFLAGS=-Zsanitizer=thread CARGO_PROFILE_TEST_DEBUG=line-tables-only cargo +nightly test --locked \
        -Zbuild-std -Zbuild-std-features=panic-unwind --target {{host}} --config profile.test.package.test.opt-level=0 \
        --config profile.test.package.proc_macro.opt-level=0 --manifest-path tests/threads/Cargo.toml --target-dir target/threads

# Figures in README.md and docs, measured anew on a machine that does nothing else; arguments as for docs/measure.
measure *arguments:
    @python3 docs/measure "$@"

# Reports in Chromium. Pages and pictures are in target/report.
report:
    #!/usr/bin/env bash
    set -euo pipefail
    export CHROMIUM=$(which -a ${CHROMIUM:+"$CHROMIUM"} chromium chromium-browser google-chrome 2>/dev/null | head -1)
    {{just}} _need "the report in a browser" "apt-get install chromium fonts-dejavu-core npm; or CHROMIUM=PATH" which "$CHROMIUM" npm || exit 0
    folder=target/report built={{target}}/debug
    rm -rf $folder && mkdir -p $folder/{browser,tuning}
    # Node looks for packages beside a program, and they must not be installed among the sources.
    cp cli/tests/report/* $folder/browser
    npm ci --prefix $folder/browser --ignore-scripts --no-audit --no-fund --loglevel=error
    # The profile of `cargo test`: its programs check themselves, and most are built already.
    cargo build --quiet --profile test --workspace --bins --examples --locked
    "$built/koel" experiment all --quick --max-slots 10000 --out $folder/results
    for growing in "" --growing; do "$built/koel-peers" $growing --items 10000 --rounds 1 --out $folder/results; done
    "$built/examples/demanding" $folder/results
    # Drawn anew, and not measured; the pictures of koel-peers are those in docs/tuning.
    cp docs/tuning/*.{json,svg} $folder/tuning
    "$built/koel" experiment $(basename -s .json docs/tuning/*.json | grep -vx 'peers\|growth') --out $folder/tuning
    node $folder/browser/check.mjs $folder $folder/{results,tuning}

# Tests and benchmarks are left out on purpose, which cargo mentions for each file.
[doc("What would be published builds by itself, without warnings, and contains nothing else.")]
package:
    @# Cargo takes a member that it has unpacked in an earlier run for today's, since the version is the same.
    @rm -rf "${CARGO_HOME:-$HOME/.cargo}"/registry/{src,cache}/-*/koel*
    mkdir -p target; cargo publish --workspace --dry-run --locked --allow-dirty --target-dir target/package 2>&1 \
        | grep -vE '^warning: (ignoring (test|benchmark|example) `|aborting upload due to dry run$)' | tee target/publish
    ! grep '^warning' target/publish
    ! cargo package -p koel --locked --allow-dirty --list | grep -vE '^(src|tables|docs)/|^[^/]+$'

# The baseline is a commit, the last release, or, before the first release, the commit in .ci/baseline.
[doc("What changed since the baseline breaks nobody's code, unless its version says so, and no file of a release in tests/data.")]
semver baseline="":
    @tag=$(git tag --list 'v*' --sort=-v:refname | head -1); \
    [ -z "$tag" ] || git diff --exit-code --stat --no-renames --diff-filter=DMT "$tag" -- tests/data ':!*.json' ':!*.md' ':!tests/data/digests.tsv' \
        || { echo "files that $tag had in tests/data have changed; restore them: git checkout $tag -- FILE"; false; }
    @tag=$(git tag --list 'v*' --sort=-v:refname | head -1); baseline={{quote(baseline)}}; \
    baseline=${baseline:-${tag:-$(cat .ci/baseline)}}; \
    ! {{just}} _need "public API" "git fetch --unshallow" git cat-file -e "$baseline^{commit}" \
        || ! {{just}} _need "public API" "cargo install --locked cargo-semver-checks" cargo semver-checks --version \
        || cargo semver-checks -p koel --baseline-rev "$baseline"

# The npm package: its WebAssembly module, format and lints, tests in Node, in a bundle and in Deno, and the file to publish.
web:
    #!/usr/bin/env bash
    set -euo pipefail
    {{just}} _target wasm32-unknown-unknown || exit 0
    {{just}} _need "the npm package" "apt-get install nodejs npm (20.16 or later)" which node npm || exit 0
    unset CARGO_PROFILE_RELEASE_LTO
    export CARGO_TARGET_DIR={{target}}/web TOOLS=$PWD/target/web/tools
    cargo clippy --manifest-path web/Cargo.toml --target wasm32-unknown-unknown --locked -- -D warnings
    {{just}} _npm web/tests "$TOOLS"
    {{just}} _web-module
    cd web
    npm test --silent
    npm pack --silent --pack-destination ../target/web

# The npm package's WebAssembly module, web/koel.wasm.
_web-module:
    {{just}} _npm web target/web/build
    unset CARGO_PROFILE_RELEASE_LTO; export CARGO_TARGET_DIR={{target}}/web PATH="$PWD/target/web/build/node_modules/.bin:$PATH"; \
    cd web; npm run --silent build

# Installs the packages of a folder in another one, unless they are there: they must not be installed among the sources.
_npm from to:
    @! cmp -s "$1/package-lock.json" "$2/package-lock.json" || exit 0; rm -rf "$2"; mkdir -p "$2"; cp "$1/package.json" "$2"; \
    cp "$1/package-lock.json" "$2"; npm ci --prefix "$2" --no-audit --no-fund --loglevel=error || { rm -rf "$2"; false; }

# The npm package's demo, in Chromium. Pictures are in target/web/pictures.
web-demo:
    #!/usr/bin/env bash
    set -euo pipefail
    export CHROMIUM=$(which -a ${CHROMIUM:+"$CHROMIUM"} chromium chromium-browser google-chrome 2>/dev/null | head -1)
    {{just}} _need "the demo in a browser" "apt-get install chromium fonts-dejavu-core npm; or CHROMIUM=PATH" which "$CHROMIUM" npm || exit 0
    {{just}} _target wasm32-unknown-unknown || exit 0
    folder=target/web koel={{target}}/debug/koel
    mkdir -p $folder/pictures
    {{just}} _npm cli/tests/report $folder/browser
    {{just}} _web-module
    cargo build --quiet --profile test -p koel-cli --locked
    "$koel" build cli/data/words.txt -o web/demo/words.koel >/dev/null
    "$koel" build cli/data/words.txt -o $folder/growing.koel --grow >/dev/null
    # The integer 92 is these bytes.
    printf '\134\0\0\0\0\0\0\0\n' | "$koel" build - -o $folder/numbers.koel --capacity 10 >/dev/null
    # Node looks for packages beside a program.
    cp web/tests/demo.mjs $folder/browser
    beyond=tests/data/growing/generations_after_large_shards.koel
    WEB=web node $folder/browser/demo.mjs $folder/pictures $folder/growing.koel $folder/numbers.koel $beyond

# Tests on 64-bit ARM, under qemu.
aarch64: (_under_qemu "aarch64" "--all-features")

# Tests on s390x, where bytes are in the other order, under qemu.
s390x: (_under_qemu "s390x" "--no-default-features --features std,kernels,huge-pages,serde")

_under_qemu machine features:
    #!/usr/bin/env bash
    set -euo pipefail
    gcc={{machine}}-linux-gnu-gcc target={{machine}}-unknown-linux-gnu qemu=qemu-{{machine}}-static
    {{just}} _need "tests on {{machine}}" "apt-get install qemu-user-static gcc-{{machine}}-linux-gnu" which $gcc $qemu || exit 0
    {{just}} _target $target || exit 0
    export CARGO_TARGET_{{uppercase(machine)}}_UNKNOWN_LINUX_GNU_{LINKER=$gcc,RUNNER="$qemu -L /usr/{{machine}}-linux-gnu"}
    cargo test -p koel --lib --tests --release --locked --target $target {{features}}

# The files of a release, in target/artifacts, with SHA256SUMS. docs/RELEASING.md says what becomes of them.
artifacts *kinds="command module python crates npm":
    @JUST={{just}} packaging/build {{kinds}}

# Without Rust where users need none. The program for Windows, and the wheels for ARM, musl and free-threaded Python are only inspected;
# the source distribution is not built.
[doc("Installs and uses the files of `artifacts` as their pages say.")]
artifacts-check *kinds="command module python crates npm":
    @JUST={{just}} packaging/check {{kinds}}
