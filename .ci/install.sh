# shellcheck shell=bash
# Installs what a check needs, where it is missing: a function `need_...` succeeds if it is there in the end. Toolchains that
# are installed stay as they are, and so does the choice of the default.

# has_toolchain NAME
has_toolchain() {
    cargo "+$1" --version >/dev/null 2>&1
}

need_toolchain() {
    has_toolchain "$1" || rustup toolchain install "$1" --profile minimal --no-self-update
}

# need_component TOOLCHAIN COMPONENT COMMAND...: the command shows that it is there.
need_component() {
    local toolchain=$1 name=$2
    shift 2
    "$@" >/dev/null 2>&1 || rustup component add --toolchain "$toolchain" "$name"
}

# The standard library of a target, for the default toolchain.
need_target() {
    has_target "$1" || rustup target add "$1"
}

has_target() {
    local libraries
    libraries=$(rustc --print target-libdir --target "$1" 2>/dev/null) && [ -d "$libraries" ]
}

# What Miri interprets, wherever it runs.
readonly miri_target=x86_64-unknown-linux-gnu

# Miri, and the standard library compiled for it.
need_miri() {
    local sources
    sources=$(rustc +nightly --print sysroot)/lib/rustlib/src/rust/library
    need_component nightly miri cargo +nightly miri --version \
        && need_component nightly rust-src test -d "$sources" \
        && cargo +nightly miri setup --target "$miri_target"
}

has_miri() {
    cargo +nightly miri setup --target "$miri_target" >/dev/null 2>&1
}

# need_debian PACKAGE...: where this is root and has apt-get, or can be without a password.
need_debian() {
    local sudo=()
    command -v apt-get >/dev/null || return 1
    if [ "$(id -u)" -ne 0 ]; then
        sudo -n true 2>/dev/null || return 1
        sudo=(sudo -n)
    fi
    "${sudo[@]}" apt-get update -qq || return 1
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "$@" >/dev/null
}

# Prints the browser's path: CHROMIUM, if that is set, or the system's.
find_chromium() {
    local name
    for name in ${CHROMIUM:+"$CHROMIUM"} chromium chromium-browser google-chrome; do
        if command -v "$name"; then return; fi
    done
    return 1
}

need_chromium() {
    find_chromium >/dev/null || need_debian chromium fonts-dejavu-core
}

# need_python FILE...: what these files of requirements list, below target/python; `python` is the interpreter that has it.
need_python() {
    local file environment=$PWD/target/python
    local pip=(-m pip install --quiet --disable-pip-version-check)
    python=$environment/bin/python
    if ! "$python" -m pip --version >/dev/null 2>&1 && ! python3 -m venv "$environment"; then
        # Where Debian's python3-venv is missing. (What it leaves has an interpreter, but not pip.)
        python=python3
        pip+=(--upgrade --target "$environment/packages")
        export PYTHONPATH=$environment/packages
    fi
    for file in "$@"; do
        pip+=(-r "$file")
    done
    "$python" "${pip[@]}"
}
