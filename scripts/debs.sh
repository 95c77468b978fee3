#!/usr/bin/env bash
# Functions that unpack Debian's packages of another release or processor into a folder, beside this machine's own. They
# need apt, and no root. Sourced by wheel.sh and try-foreign-wheel.sh.

# Prints the mirror of Debian's packages that apt has on this machine.
debian_mirror() {
    local own
    # shellcheck disable=SC1091
    own=$(. /etc/os-release && echo "$VERSION_CODENAME")
    apt-get indextargets --format '$(CODENAME) $(LABEL) $(REPO_URI)' 'Created-By: Packages' |
        awk -v own="$own" '$1 == own && $2 == "Debian" { print $3; exit }'
}

# Runs apt with lists and settings of its own, for one release and one processor. The network's settings are the machine's.
apt_for() { # folder suite architecture command...
    local folder=$1 suite=$2 architecture=$3
    "$4" -qq -o Dir::State="$folder" -o Dir::State::status=/dev/null -o Dir::Cache="$folder/cache" \
        -o Dir::Etc::sourcelist="$folder/sources.list" -o Dir::Etc::sourceparts=/dev/null \
        -o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null -o APT::Default-Release="$suite" \
        -o APT::Architecture="$architecture" -o APT::Architectures="$architecture" -o Acquire::Languages=none \
        -o APT::Sandbox::User= -o Debug::NoLocking=1 "${@:5}"
}

# Downloads packages of a release and a processor and unpacks them into a folder. With `all` their dependencies too, those
# of an empty system; with `alone` none.
unpack_debs() { # folder suite architecture all|alone package...
    local root=$1 suite=$2 architecture=$3 how=$4 state=$1.apt mirror base=${2%-backports}
    shift 4
    mirror=$(debian_mirror)
    [ -n "$mirror" ] || { echo "apt has no source of Debian's packages to take $suite from" >&2; return 1; }
    mkdir -p "$root" "$state/lists/partial" "$state/cache/archives/partial"
    local part
    for part in $(printf '%s\n' "$base" "$suite" | sort -u); do
        echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $part main"
    done >"$state/sources.list"
    apt_for "$state" "$suite" "$architecture" apt-get update || return
    if [ "$how" = all ]; then
        apt_for "$state" "$suite" "$architecture" apt-get -y --no-install-recommends --download-only install "$@" >/dev/null ||
            return
    else
        (cd "$state/cache/archives" && apt_for "$state" "$suite" "$architecture" apt-get download "$@" >/dev/null) || return
    fi
    for part in "$state"/cache/archives/*.deb; do
        dpkg-deb --extract "$part" "$root" || return
    done
    # As in an installed Debian, these folders are one with those below /usr.
    for part in bin sbin lib lib64; do
        if [ ! -L "$root/$part" ]; then
            mkdir -p "$root/usr/$part"
            [ ! -d "$root/$part" ] || cp -a "$root/$part/." "$root/usr/$part/" && rm -rf "${root:?}/$part"
            ln -s "usr/$part" "$root/$part"
        fi
    done
    # A link from the root would lead out of the folder.
    find "$root" -type l -lname '/*' | while IFS= read -r part; do
        ln -sfnr "$root$(readlink "$part")" "$part"
    done
    rm -rf "$state"
}
