package runner

const (
	// Prints the kernel's active swaps, a blank line, and the names of systemd's swap units
	// in any state.
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

	// 0 or 1; does what setenforce(8) does, which is not installed everywhere.
	scriptSetSELinux = `[ -e /sys/fs/selinux/enforce ] || exit 44
printf %s "$1" >/sys/fs/selinux/enforce`

	scriptUFW = `command -v ufw >/dev/null 2>&1 || exit 44
exec ufw status`

	// NAME
	scriptSetHostname = `printf '%s\n' "$1" >/proc/sys/kernel/hostname`
)
