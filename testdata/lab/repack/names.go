package repack

import (
	"regexp"
	"slices"
	"strings"
)

// Host is the package that needs all that a host has when it is installed.
const Host = "kubexmlab-host"

// hostNeeds are the packages of a host, as an administrator installs it; what they
// need comes with them. What kubexm brings to a host is not among them.
var hostNeeds = strings.Fields(`
	kubexmlab-release setup filesystem bash coreutils glibc-common shadow-utils login libpam-modules libpam-runtime
	systemd systemd-sysv dbus udev openssh-server openssh-clients sudo rpm dnf
	bsdutils debianutils diffutils findutils grep gzip hostname mawk ncurses-base ncurses-bin sed tar util-linux mount
	iproute iputils iptables nftables ethtool kmod procps-ng ca-certificates curl xz zstd rsync less nc logrotate
	bind-utils openssl libselinux-utils e2fsprogs perl-base`)

// names are what packages are called in Red Hat's family, where that is not as in Debian.
var names = map[string]string{
	"base-files": "filesystem", "bind9-dnsutils": "bind-utils", "conntrack": "conntrack-tools", "createrepo-c": "createrepo_c",
	"iproute2": "iproute", "iputils-ping": "iputils", "libc-bin": "glibc-common", "libc6": "glibc", "netcat-openbsd": "nc",
	"nfs-common": "nfs-utils", "open-iscsi": "iscsi-initiator-utils", "openssh-client": "openssh-clients", "passwd": "shadow-utils",
	"procps": "procps-ng", "selinux-utils": "libselinux-utils", "xz-utils": "xz",
}

// left are Debian's own tools, and what serves only these.
var left = strings.Fields(`adduser apt base-passwd dash debconf debian-archive-keyring dpkg init-system-helpers libapt-pkg6.0
	ebtables libdebconfclient0 sensible-utils ucf libtext-iconv-perl liblocale-gettext-perl libtext-charwidth-perl libtext-wrapi18n-perl`)

// rpmName gives the name of the rpm that is made of a package, "" where none is.
func rpmName(name string) string {
	if slices.Contains(left, name) {
		return ""
	}
	if n, ok := names[name]; ok {
		return n
	}
	return name
}

// evr makes an epoch, a version and a release of a version of Debian's.
func evr(version string) (epoch, v, release string) {
	epoch, v, found := strings.Cut(version, ":")
	if !found {
		epoch, v = "0", version
	}
	release = "1"
	if i := strings.LastIndexByte(v, '-'); i >= 0 {
		v, release = v[:i], v[i+1:]
	}
	return epoch, strings.ReplaceAll(v, "-", "."), release
}

var relation = regexp.MustCompile(`^([a-z0-9][a-z0-9.+-]+)(?::\S+)?(?:\s*\(([<>=]+)\s*(\S+)\))?`)

// requires gives what a clause of Depends becomes, "" where nothing is left of it:
// the first of its alternatives that is installed. Only exact versions are kept.
func requires(clause string, provided map[string]string) string {
	for alternative := range strings.SplitSeq(clause, "|") {
		m := relation.FindStringSubmatch(strings.TrimSpace(alternative))
		if m == nil {
			continue
		}
		owner, ok := provided[m[1]]
		if !ok {
			continue
		}
		name := rpmName(owner)
		if name == "" {
			return ""
		}
		if m[2] == "=" && owner == m[1] {
			epoch, v, release := evr(m[3])
			return name + " = " + epoch + ":" + v + "-" + release
		}
		return name
	}
	return ""
}

// provides gives the names that the rpm goes by beside its own.
func provides(d debian, name string) []string {
	var out []string
	if name != d.name {
		out = append(out, d.name)
	}
	if name == "bash" {
		out = append(out, "/bin/sh", "/bin/bash") // Red Hat's scripts ask for these, from before /bin was a link
	}
	for _, p := range d.provides {
		if word, _, _ := strings.Cut(p, " "); word != name && !slices.Contains(out, word) && !strings.Contains(word, ":") {
			out = append(out, word)
		}
	}
	return out
}
