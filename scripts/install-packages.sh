#!/usr/bin/env bash
# install-packages.sh SECTION...: installs the packages of these sections of packages.txt that are missing.
#
# If none is missing, the script does nothing and needs no network. KUMI_PACKAGES=no skips everything, for systems
# without apt-get.
set -euo pipefail

list="$(dirname "$0")/../packages.txt"
[ "${KUMI_PACKAGES:-yes}" != no ] || exit 0

wanted=()
for section in "$@"; do
    mapfile -t of_section < <(sed -n "s/^$section: *//p" "$list" | tr -s ' ' '\n')
    if [ ${#of_section[@]} -eq 0 ]; then
        echo "install-packages.sh: packages.txt has no section '$section'" >&2
        exit 2
    fi
    wanted+=("${of_section[@]}")
done

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    echo "This system has no apt-get. Install what corresponds to these Debian packages, then say KUMI_PACKAGES=no:" >&2
    echo "    ${wanted[*]}" >&2
    exit 1
fi

installed=" $(dpkg-query -W -f '${db:Status-Status}=${Package} ' "${wanted[@]}" 2>/dev/null || true)"
missing=()
for package in "${wanted[@]}"; do
    [[ "$installed" == *" installed=$package "* ]] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

by_hand="apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
as_root=()
if [ "$(id -u)" -ne 0 ]; then
    by_hand="sudo sh -c '$by_hand'"
    if ! sudo -n true 2>/dev/null; then
        echo "Packages are missing, and installing them needs root. Run this, then try again:" >&2
        echo "    $by_hand" >&2
        exit 1
    fi
    as_root=(sudo -n)
fi

log="$(mktemp)"
trap 'rm -f "$log"' EXIT
apt() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=120 \
        -o Acquire::http::Timeout=30 "$@" >>"$log" 2>&1 </dev/null
}
install() { apt install --no-install-recommends "${missing[@]}"; }

echo "installing: ${missing[*]}"
# The lists of packages may be absent or old. Fetching them takes long, so they are fetched only if installing fails.
if ! install && ! { apt update && install; }; then
    cat "$log" >&2
    echo "Installing packages failed, see above. Run this, then try again:" >&2
    echo "    $by_hand" >&2
    exit 1
fi
