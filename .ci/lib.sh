# shellcheck shell=bash
# What .ci/run stands on: named steps that are timed, and the list of what could not be checked.

# In cargo's target folder, so that files there can be linked.
mkdir -p "$target"
scratch=$(mktemp -d "$target/gate-XXXXXX")
readonly scratch tests_log=$scratch/tests not_checked_list=$scratch/not_checked times=$scratch/times
touch "$tests_log" "$not_checked_list" "$times"
current_step='' background_step='' tool_seconds=0

# step NAME COMMAND...: runs a command under a name. The first step that fails ends the gate.
step() {
    current_step=$1
    shift
    local start=$SECONDS
    printf '\n== %s\n' "$current_step"
    # This is a pipeline: what a step has to say to later ones goes into files, not variables.
    "$@" 2>&1 </dev/null | tee -a "$tests_log"
    took "$current_step" $((SECONDS - start))
    current_step=''
}

took() {
    printf -- '-- %s: %d s\n' "$1" "$2"
    printf '%5d s  %s\n' "$2" "$1" >>"$times"
}

# start NAME COMMAND...: the same beside the steps that follow, up to `collect`, which prints its output.
start() {
    background_step=$1 background_start=$SECONDS
    shift
    printf '\n== %s: in the background\n' "$background_step"
    # In a process group of its own, so that all of it can be ended.
    set -m
    {
        renice -n 10 "$BASHPID" >/dev/null 2>&1 || true
        "$@" >"$scratch/background" 2>&1 </dev/null
        echo "$SECONDS" >"$scratch/background_end"
    } &
    background=$!
    set +m
}

collect() {
    current_step=$background_step background_step=''
    local status=0
    wait "$background" || status=$?
    printf '\n== %s\n' "$current_step"
    tee -a "$tests_log" <"$scratch/background"
    [ "$status" -eq 0 ] || exit "$status"
    took "$current_step (in the background)" $(($(<"$scratch/background_end") - background_start))
    current_step=''
}

# not_checked WHAT WHY: goes into the last line.
not_checked() {
    echo "not checked: $1 ($2)"
    echo "$1 ($2)" >>"$not_checked_list"
}

# The totals of every `cargo test`.
test_totals() {
    awk '/^test result:/ {passed += $4; failed += $6; skipped += $8}
        END {printf "tests: %d passed, %d failed, %d skipped\n", passed, failed, skipped}' "$tests_log"
}

# The last lines, however the gate ends.
finish() {
    local status=$? list
    trap - EXIT
    if [ -n "$background_step" ]; then
        kill -- "-$background" 2>/dev/null || true
    fi
    list=$(paste -sd ';' "$not_checked_list" | sed 's/;/; /g')
    printf '\nSeconds of each step:\n'
    cat "$times"
    test_totals
    if [ "$status" -ne 0 ]; then
        printf 'FAILED after %d s: %s; not checked: %s\n' "$SECONDS" "${current_step:-$0}" \
            "all that comes after it${list:+; $list}"
    else
        printf 'All checks passed (%d s, and %d s of installing tools); not checked: %s\n' \
            $((SECONDS - tool_seconds)) "$tool_seconds" "${list:-nothing}"
    fi
    rm -rf "$scratch"
    exit "$status"
}
