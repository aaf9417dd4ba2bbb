package runner

// beside sets t to the temporary file for $1 in the same folder. Its name is hidden, so that
// programs which read the folder ignore it (kubelet its manifests, containerd its
// certs.d). The name is fixed, so that the next run removes the file that a lost
// connection left.
const beside = `set -eu; umask 077
d=${1%/*}; t=$d/.${1##*/}.kubexm-new
`

// settle sets the owner ($4) and the mode ($3) of t and renames it to $1. It syncs the file
// before and the folder after.
const settle = `
if [ -n "$4" ]; then chown -h -- "$4" "$t"; fi
chmod -- "$3" "$t"
sync -- "$t"
mv -fT -- "$t" "$1"
trap - EXIT
sync -- "${d:-/}"
`

// sum sets h to the SHA-256 of the file $t. On some distributions openssl is several times
// faster than sha256sum.
const sum = `
if command -v openssl >/dev/null 2>&1; then h=$(openssl dgst -sha256 -r <"$t"); else h=$(sha256sum <"$t"); fi
h=${h%% *}
`

// identity prints the size of a file, and the device, inode and times by which a later
// change is detected.
const identity = `stat -c '%s:%d:%i:%.9Y:%.9Z' -- `

const (
	scriptRead = `[ -e "$1" ] || exit 44
exec cat -- "$1"`

	scriptDigest = `set -eu
[ -e "$1" ] || exit 44
t=$1
` + sum + `printf '%s\n' "$h"`

	// PATH SIZE MODE OWNER
	scriptWrite = beside + `trap 'rm -f -- "$t"' EXIT
rm -f -- "$t"
set -C; cat >"$t"; set +C
[ "$(stat -c %s -- "$t")" = "$2" ] || exit 45
` + settle

	// DIR MODE OWNER, then NAME SIZE SHA256 of each file, whose contents follow each other on
	// standard input. Prints the identity and the name of each new file, each ended by NUL. With
	// status 46 it prints the names of those with another digest, and no file is new. dd takes
	// exactly as many bytes as it is told to. One process for all files where that is possible:
	// there may be a hundred.
	scriptPut = `set -eu; umask 077
cd -- "$1"; mode=$2 owner=$3; shift 3
want= sizes= field=name
for a; do
	case $field in
	name)
		[ -n "$want" ] || set --
		t=.$a.kubexm-new; set -- "$@" "$t"
		trap 'rm -f -- "$@"' EXIT
		if [ -e "$t" ] || [ -L "$t" ]; then rm -f -- "$t"; fi
		field=size ;;
	size)
		dd of="$t" bs=256K count="$a" iflag=fullblock,count_bytes conv=excl status=none
		sizes="$sizes$a
" field=sum ;;
	sum)
		want="$want$a
" field=name ;;
	esac
done
[ "$(stat -c %s -- "$@")
" = "$sizes" ] || exit 45
if command -v openssl >/dev/null 2>&1; then h=$(openssl dgst -sha256 -r "$@"); else h=$(sha256sum -- "$@"); fi
h=$(printf '%s\n' "$h" | sed 's/^\\//; s/ .*//')
if [ "$h
" != "$want" ]; then
	printf '%s\n' "$h" | while read -r have; do
		n=${1#.}
		[ "$have" = "${want%%
*}" ] || printf '%s\0' "${n%.kubexm-new}"
		want=${want#*
}
		shift
	done
	exit 46
fi
if [ -n "$owner" ]; then chown -h -- "$owner" "$@"; fi
chmod -- "$mode" "$@"
sync -- "$@"
for t; do
	n=${t#.}
	mv -fT -- "$t" "${n%.kubexm-new}"
done
trap - EXIT
sync -- .
first=1
for t; do
	[ -z "$first" ] || set --
	first= n=${t#.}
	set -- "$@" "${n%.kubexm-new}"
done
stat --printf '%s:%d:%i:%.9Y:%.9Z\0%n\0' -- "$@" || :`

	// Each field of a record ends with NUL: numbers, user, group, name, target.
	scriptStat = `set -eu
[ -e "$1" ] || [ -L "$1" ] || exit 44
stat --printf '%f %s %u %g %Y\0%U\0%G\0%n\0' -- "$1"
if [ -L "$1" ]; then readlink -n -- "$1"; fi
printf '\0'`

	// DIR SUFFIX; prints each line of DIR's files that end in SUFFIX, after the file's name and
	// NUL. One grep for all files: a process per file would take longer than the rest. exit 1:
	// a file is empty, or went away meanwhile.
	scriptLines = `set -eu
[ -d "$1" ] || exit 44
cd -- "$1"
set -- *"$2"
[ -e "$1" ] || exit 0
for f; do [ -s "$f" ] || { echo "$f: empty, or gone" >&2; exit 1; }; done
exec grep -aHZ '' -- "$@"`

	scriptList = `set -eu
[ -d "$1" ] || exit 44
cd -- "$1"
for f in * .[!.]* ..?*; do
	[ -e "$f" ] || [ -L "$f" ] || continue
	stat --printf '%f %s %u %g %Y\0%U\0%G\0%n\0' -- "$f"
	if [ -L "$f" ]; then readlink -n -- "$f"; fi
	printf '\0'
done`

	// PATH KNOWN, PATH KNOWN, …; prints records as scriptStat does, in order. The target
	// field contains "=" if KNOWN is the file's identity, or its SHA-256 if the file has
	// the size at the start of KNOWN. The record of a missing file has no numbers.
	scriptCompare = `set -eu
while [ $# -gt 0 ]; do
	t=$1; h=
	if [ -e "$t" ] || [ -L "$t" ]; then
		stat --printf '%f %s %u %g %Y\0%U\0%G\0%n\0' -- "$t"
		if [ -f "$t" ] && [ ! -L "$t" ]; then
			i=$(` + identity + `"$t")
			if [ "$i" = "$2" ]; then
				h='='
			elif [ "${i%%:*}" = "${2%%:*}" ]; then
				` + sum + `
			fi
		fi
	else
		printf '\0\0\0%s\0' "$t"
	fi
	printf '%s\0' "$h"
	shift 2
done`

	// PATH MODE OWNER; prints the created folders.
	scriptMkdir = `set -eu; umask 022
path=$1; mode=$2; owner=$3; d=$1
set --
while [ ! -d "$d" ]; do
	set -- "$d" "$@"
	d=${d%/*}; d=${d:-/}
done
for made; do
	m=; [ "$made" != "$path" ] || m="-m $mode"
	if e=$(mkdir $m -- "$made" 2>&1); then
		printf '%s\0' "$made"
	elif [ ! -d "$made" ]; then # else another one made it just now
		printf '%s\n' "$e" >&2
		exit 1
	fi
done
if [ -n "$owner" ]; then chown -- "$owner" "$path"; fi
chmod -- "$mode" "$path"
if [ $# -gt 0 ]; then sync -- "$d"; fi`

	// PATH MODE OWNER
	scriptAttr = `set -eu
[ -e "$1" ] || exit 44
if [ -n "$3" ]; then chown -- "$3" "$1"; fi
chmod -- "$2" "$1"`

	scriptRmdir = `if [ ! -d "$1" ] || [ -L "$1" ]; then exit 0; fi
rmdir -- "$1" 2>/dev/null && exit 0
[ -z "$(ls -A -- "$1")" ] || exit 47
exec rmdir -- "$1"`

	// PATH TARGET
	scriptLink = beside + `trap 'rm -f -- "$t"' EXIT
rm -f -- "$t"
ln -s -- "$2" "$t"
mv -fT -- "$t" "$1"
trap - EXIT
sync -- "${d:-/}"`

	// PATH FROM
	scriptCopy = beside + `[ -e "$2" ] || [ -L "$2" ] || exit 44
if [ -d "$2" ] && [ ! -L "$2" ]; then echo "is a folder" >&2; exit 1; fi
trap 'rm -f -- "$t"' EXIT
rm -f -- "$t"
cp -aT -- "$2" "$t"
if [ ! -L "$t" ]; then sync -- "$t"; fi
mv -fT -- "$t" "$1"
trap - EXIT
sync -- "${d:-/}"`

	// PATH FROM
	scriptRename = `set -eu
[ -e "$2" ] || [ -L "$2" ] || exit 44
mv -fT -- "$2" "$1"
d=${1%/*}; sync -- "${d:-/}"
d=${2%/*}; sync -- "${d:-/}"`
)
