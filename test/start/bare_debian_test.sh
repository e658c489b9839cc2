#!/bin/sh
# bare_debian_test: `./start` in a Debian 12 of essential packages alone, in which there is neither make
# nor a compiler: it must end with the report of the main job, over both drivers.
#
# debootstrap makes that system in a temporary directory, and chroot enters it with a copy of this
# repository. Where that cannot be done (not root, no debootstrap, no mirror, no right to mount) the
# test says why, and is skipped.
set -eu
cd "$(dirname "$0")/../.."

skip() {
    echo "skipped: $1"
    exit 0
}
fail() {
    echo "bare_debian_test: $1" >&2
    exit 1
}

[ "$(id -u)" -eq 0 ] || skip "not root"
command -v debootstrap >/dev/null || skip "debootstrap is not installed"
grep -q '^VERSION_ID="12"' /etc/os-release || skip "not on Debian 12, whose mirror is used"
mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | sed '/^#/d' |
    grep -Eo 'https?://[^ ]*/debian/?( |$)' | head -n 1 | tr -d ' ')

top=$(mktemp -d)
clean_up() {
    umount "$top/system/proc" 2>/dev/null || true
    rm -rf --one-file-system "$top"
}
trap clean_up EXIT
trap 'exit 1' INT TERM

debootstrap --variant=minbase bookworm "$top/system" "${mirror:-http://deb.debian.org/debian}" \
    >"$top/log" 2>&1 || skip "debootstrap: $(tail -n 1 "$top/log")"
mount -t proc proc "$top/system/proc" || skip "nothing can be mounted"
mkdir "$top/system/weft"
git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$top/system/weft"

for program in make g++ cmake python3; do
    [ ! -e "$top/system/usr/bin/$program" ] || fail "the bare system has $program"
done
# An empty environment, but for the proxy that debootstrap used too.
enter() {
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin ${http_proxy:+http_proxy="$http_proxy"} \
        ${https_proxy:+https_proxy="$https_proxy"} chroot "$top/system" "$@"
}

enter /weft/start no-such-target 2>"$top/said" && fail "a wrong target is no error"
[ "$(cat "$top/said")" = 'start: unknown argument "no-such-target"; ./start help lists what there is' ] ||
    fail "a wrong target: $(cat "$top/said")"
[ ! -e "$top/system/usr/bin/make" ] || fail "make was installed for a wrong target"

{ enter /weft/start && touch "$top/succeeded"; } 2>&1 | tee "$top/said"
[ -e "$top/succeeded" ] || fail "./start failed"
# A row of figures: a driver that is left out has a row that says so.
for line in '^fiber\.epoll  *[0-9]' '^fiber\.io_uring  *[0-9]' '^task\.epoll  *[0-9]' \
    '^task\.io_uring  *[0-9]' '^PASS$'; do
    grep -q "$line" "$top/said" || fail "no line $line in what ./start printed"
done
echo "bare_debian_test: PASS"
