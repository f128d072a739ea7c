# Sourced by scripts that make a Debian of another release from the mirrors that apt uses on this machine, as root.
#
#   debian_sources RELEASE          lines of sources.list for it; fails when apt has no list of Debian's packages
#   debian_bootstrap RELEASE TARGET [OPTIONS of mmdebstrap]
#                                   a minimal one: a directory, or the archive TARGET.tar

debian_sources() {
    local lines
    lines=$(apt-get indextargets --format '$(LABEL) $(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' | sort -u |
        while read -r label uri; do
            case $label in
            Debian) printf 'deb %s %s main\ndeb %s %s-updates main\n' "$uri" "$1" "$uri" "$1" ;;
            Debian-Security) printf 'deb %s %s-security main\n' "$uri" "$1" ;;
            esac
        done)
    [ -n "$lines" ] || {
        echo "apt has no list of Debian's packages; run apt-get update" >&2
        return 1
    }
    printf '%s\n' "$lines"
}

# A mirror of one date has lists that are past theirs. Who lets apt here use them, lets it there.
debian_options() {
    local option value
    for option in Acquire::Check-Valid-Until Acquire::Check-Date; do
        eval "$(apt-config shell value "$option")"
        [ -z "${value:-}" ] || printf '%s\n' "--aptopt=$option \"$value\""
        value=
    done
}

debian_bootstrap() {
    local release=$1 target=$2 options
    shift 2
    mapfile -t options < <(debian_options)
    debian_sources "$release" | mmdebstrap --quiet --variant=minbase "${options[@]}" "$@" "$release" "$target" -
}
