# What `.ci/run` and `.ci/nightly` share: the crates, how a step is run, what a machine is given. For `source`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec </dev/null
export CI=true
export CARGO_TERM_COLOR="${CARGO_TERM_COLOR:-never}"
export CARGO_INCREMENTAL=0
# Nobody debugs what is built here, and panics say their line without it.
export CARGO_PROFILE_DEV_DEBUG=false CARGO_PROFILE_TEST_DEBUG=false
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}"
export RUST_BACKTRACE="${RUST_BACKTRACE:-1}"

# Crates that a user can depend on.
readonly CRATES=(switchboard-rpc-core snek-proto exoclaw-proto smarthole-proto connectonion-proto acolyte-proto)
readonly PUBLISHED=("${CRATES[@]}" switchboard-store-suite) # The suite has no features.
# Members of the workspace that nobody can depend on.
readonly UNPUBLISHED=(--exclude examples --exclude switchboard --exclude switchboard-cli --exclude switchboard-faults --exclude switchboard-fuzz-bodies --exclude switchboard-testing --exclude switchboard-types --exclude switchboard-wire)
OLDEST=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
readonly OLDEST

fail() {
    echo "error: $*" >&2
    exit 1
}

# Prints a command and runs it.
run() {
    echo "+ $*"
    "$@"
}

# Whether a line of a command's output starts like this. Without a pipe: grep stops reading early.
lists() {
    local start=$1
    shift
    grep -q "^$start" <<<"$("$@")"
}

# The features of a crate, a line each: without `web`, for pages, and `file`, for the other crates.
features_of() {
    sed -n '/^\[features\]$/,/^\[dep/s/^\([a-z-]*\) = .*/\1/p' "${1#switchboard-}/Cargo.toml" | grep -vxE 'default|file|web'
}

# A compiler of this version.
toolchain() {
    lists "$1-" rustup toolchain list ||
        run rustup toolchain install "$1" --profile minimal --no-self-update ||
        fail "cannot install Rust $1"
}

# The standard library for these targets.
targets() {
    local target
    for target; do
        lists "$target" rustup target list --installed ||
            run rustup target add "$target" || fail "cannot install the target $target"
    done
}

# A program from Debian's packages.
package() {
    local program=$1 as_root=()
    ! command -v "$program" >/dev/null || return 0
    ((EUID == 0)) || as_root=(sudo -n)
    run "${as_root[@]}" apt-get update -qq || fail "cannot install $program"
    run "${as_root[@]}" apt-get install -y -qq --no-install-recommends "$program" || fail "cannot install $program"
}

# A tool of cargo's: its subcommand, and its version where that matters.
tool() {
    local version=${2:-}
    if [[ -n $version ]]; then
        lists "cargo-$1 $version" cargo "$1" --version || run cargo install --locked --debug --force --version "$version" "cargo-$1"
    else
        command -v "cargo-$1" >/dev/null || run cargo install --locked "cargo-$1"
    fi || fail "cannot install cargo-$1"
}

# Checks that a crate compiles with these features alone, without a warning; with `web`, for pages.
compiles_with() {
    local features=$1 crate=$2 out="$CARGO_TARGET_DIR/compiles-with.json" said target=()
    [[ ,$features, != *,web,* ]] || target=(--target wasm32-unknown-unknown)
    said=$(cargo check --locked --quiet --package "$crate" --lib "${target[@]}" --no-default-features \
        --features "$features" --message-format json-render-diagnostics 2>&1 >"$out") && [[ -z $said ]] ||
        fail "$crate does not compile or warns with the features '$features': $said"
    # What cargo says that it has compiled: each crate depends on itself for tests, with other features.
    for said in ${features//,/ }; do
        grep -q "manifest_path\":\"$PWD/${crate#switchboard-}/Cargo.toml\".*\"features\":\[[^]]*\"$said\"" "$out" ||
            fail "$crate was compiled without $said"
    done
    echo "+ $crate with ${features:-no feature}"
}

# Gives what every step needs.
prepare() {
    local component
    command -v rustup >/dev/null || fail "rustup is missing: see https://rustup.rs"
    command -v git >/dev/null || fail "git is missing"
    for component in rustfmt clippy; do
        lists "$component" rustup component list --installed ||
            run rustup component add "$component" || fail "cannot install $component"
    done
    mkdir -p "$CARGO_TARGET_DIR"
    cargo --version
    # Every later command, the one from the README too, sees a lock file that is up to date.
    run cargo fetch --locked
}

# Runs the steps that the arguments name, or all of $1 (the name of an array of "step what it finds"); those of $2
# run by name only.
run_steps() {
    local -n all=$1 more=$2
    shift 2
    local row names=() steps=("$@") step start status
    for row in "${all[@]}" "${more[@]}"; do
        names+=("${row%% *}")
    done
    case "${1:-}" in
    --list)
        for row in "${all[@]}" "${more[@]}"; do
            printf '%-11s %s\n' "${row%% *}" "${row#* }"
        done
        return
        ;;
    -h | --help)
        sed -n '2,/^[^#]/{/^#/s/^# \{0,1\}//p}' "$0"
        return
        ;;
    "") steps=("${names[@]:0:${#all[@]}}") ;;
    esac
    for step in "${steps[@]}"; do
        [[ " ${names[*]} " == *" $step "* ]] || fail "there is no step $step: see $0 --list"
    done
    times=()
    failed=
    SECONDS=0
    trap 'finish $?' EXIT
    prepare
    for step in "${steps[@]}"; do
        start=$SECONDS
        echo
        echo "=== $step"
        # In a shell of its own: a step cannot change the next one, and a failing command ends it. Not in a condition,
        # where bash would ignore `set -e`.
        set +e
        (
            set -e
            "step_$step"
        )
        status=$?
        set -e
        times+=("$(printf '%-11s %5d s' "$step" $((SECONDS - start)))")
        echo "=== $step: $((SECONDS - start)) s"
        ((status == 0)) && continue
        failed+="$step "
        [[ -n ${KEEP_GOING:-} ]] || exit "$status"
    done
    [[ -z $failed ]] || exit 1
}

finish() {
    echo
    ((${#times[@]} == 0)) || printf '%s\n' "${times[@]}"
    if (($1 != 0)); then
        echo "FAILED: ${failed:-start} (exit status $1)"
        exit "$1"
    fi
    if [[ -f $CARGO_TARGET_DIR/test-summary.txt && " ${times[*]} " == *" tests "* ]]; then
        awk '{ passed += $4; failed += $6; ignored += $8 }
             END { printf "%d tests passed, %d failed, %d ignored in %d test programs\n",
                   passed, failed, ignored, NR }' "$CARGO_TARGET_DIR/test-summary.txt"
    fi
    echo "PASSED in $((SECONDS / 60)) min $((SECONDS % 60)) s"
}
