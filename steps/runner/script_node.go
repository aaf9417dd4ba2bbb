package runner

const (
	// What is swapped to, as the kernel tells it; a blank line; the names of the swap
	// units that systemd has, in whatever state.
	scriptSwaps = `cat /proc/swaps || exit
echo
[ -d /run/systemd/system ] || exit 0
{
	systemctl list-units --all --full --plain --no-legend --no-pager --type=swap
	systemctl list-unit-files --full --no-legend --no-pager --type=swap
} | while read -r name rest; do printf '%s\n' "$name"; done`

	// A kernel without SELinux has no such file.
	scriptSELinux = `[ -e /sys/fs/selinux/enforce ] || exit 44
exec cat /sys/fs/selinux/enforce`

	// 0 or 1: what setenforce(8) does, which not every host has.
	scriptSetSELinux = `[ -e /sys/fs/selinux/enforce ] || exit 44
printf %s "$1" >/sys/fs/selinux/enforce`

	scriptUFW = `command -v ufw >/dev/null 2>&1 || exit 44
exec ufw status`

	// NAME
	scriptSetHostname = `printf '%s\n' "$1" >/proc/sys/kernel/hostname`
)
