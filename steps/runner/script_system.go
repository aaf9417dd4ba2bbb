package runner

const (
	// KEY FILE
	scriptSysctl = `[ -e "$2" ] || exit 44
exec cat -- "$2"`

	// KEY FILE VALUE
	scriptSetSysctl = `[ -e "$2" ] || exit 44
printf '%s\n' "$3" >"$2"`

	// NAME; the kernel writes module names with underscores, their files may have dashes.
	scriptModule = `set -eu
n=$(printf %s "$1" | tr - _)
k=/lib/modules/$(uname -r)
if grep -q "^$n " /proc/modules 2>/dev/null; then echo loaded
elif [ -r "$k/modules.builtin" ] && tr - _ <"$k/modules.builtin" | grep -q "/$n\.ko"; then echo builtin
elif [ -d "/sys/module/$n" ]; then echo builtin
elif modprobe -n -q -- "$1" 2>/dev/null; then echo available
else echo absent; fi`

	// NAME
	scriptUser = `getent passwd "$1" || exit 44
id -Gn -- "$1"`

	scriptGroup = `getent group "$1" || exit 44`

	scriptHostname = `exec cat /proc/sys/kernel/hostname`

	scriptBootID = `exec cat /proc/sys/kernel/random/boot_id`

	scriptFind = `command -v -- "$1" || exit 44`

	// UNIT LOG ARGV..., with the job's script on stdin if it has one. Dollar signs in ARGV
	// are already doubled, because systemd expands variables.
	scriptJobStart = `set -eu; umask 077
u=$1; l=$2; shift 2
if [ "$(systemctl show -p LoadState -- "$u")" = LoadState=loaded ]; then exit 48; fi
mkdir -p -- "${l%/*}"
: >"$l" || { mkdir -p -- "${l%/*}" && : >"$l"; } # the end of another job may have removed the folder
s=${l%.log}.sh
cat >"$s"
[ -s "$s" ] || rm -f -- "$s"
exec systemd-run --unit="$u" --remain-after-exit \
	--setenv=LC_ALL=C --setenv=HOME=/root --setenv="PATH=$PATH" -- \
	/bin/sh -c 'exec >>"$$0" 2>&1; exec "$$@"' "$l" "$@"`

	// UNIT LOG OFFSET; prints at most 256 KiB of the log.
	scriptJobPoll = `systemctl show -p LoadState -p ActiveState -p SubState -p Result -p ExecMainCode -p ExecMainStatus -- "$1"
echo
if [ -f "$2" ]; then tail -c "+$(($3 + 1))" -- "$2" | head -c 262144; fi`

	// UNIT LOG
	scriptJobClear = `systemctl stop -- "$1" 2>/dev/null
systemctl reset-failed -- "$1" 2>/dev/null
rm -f -- "$2" "${2%.log}.sh"
d=${2%/*}
rmdir -- "$d" "${d%/*}" 2>/dev/null
exit 0`
)
