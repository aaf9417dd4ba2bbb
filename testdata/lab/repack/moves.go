package repack

import (
	"fmt"
	"strings"
)

// moves are the files that Red Hat's family has elsewhere.
var moves = map[string]string{
	"/etc/chrony/chrony.conf":                    "/etc/chrony.conf",
	"/etc/chrony/chrony.keys":                    "/etc/chrony.keys",
	"/usr/lib/systemd/system/chrony.service":     "/usr/lib/systemd/system/chronyd.service",
	"/usr/lib/systemd/system/ssh.service":        "/usr/lib/systemd/system/sshd.service",
	"/usr/lib/systemd/system/ssh.socket":         "/usr/lib/systemd/system/sshd.socket",
	"/usr/lib/systemd/system/open-iscsi.service": "/usr/lib/systemd/system/iscsi.service",
}

func moved(p string) string {
	if to, ok := moves[p]; ok {
		return to
	}
	return p
}

const unitFolder = "/usr/lib/systemd/system/"

// units gives the units of some files that can be enabled on their own.
func units(files []string) []string {
	var out []string
	for _, p := range files {
		unit, ok := strings.CutPrefix(moved(p), unitFolder)
		if !ok || strings.ContainsAny(unit, "/@") {
			continue
		}
		for _, kind := range []string{".service", ".socket", ".timer", ".path"} {
			if strings.HasSuffix(unit, kind) {
				out = append(out, unit)
			}
		}
	}
	return out
}

// unitScripts are what an rpm with units says of them: they are as the release's
// presets want them, and stop when it goes.
func unitScripts(name string, files []string) string {
	list := strings.Join(units(files), " ")
	if list == "" || name == "systemd" || name == "udev" {
		return ""
	}
	const reload = "[ ! -d /run/systemd/system ] || systemctl daemon-reload\n:\n"
	return fmt.Sprintf("%%posttrans -n %[1]s\nsystemctl preset %[2]s >/dev/null 2>&1\n%[3]s"+
		"%%preun -n %[1]s\n[ $1 != 0 ] || systemctl --no-reload disable --now %[2]s >/dev/null 2>&1\n:\n"+
		"%%postun -n %[1]s\n%[3]s", name, list, reload)
}
