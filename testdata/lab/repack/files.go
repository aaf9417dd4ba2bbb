package repack

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// initiator names a host to iSCSI's targets.
const initiator = "/etc/iscsi/initiatorname.iscsi"

// tree is which file of an installed Debian belongs to which rpm.
type tree struct {
	root  string
	files map[string][]string // by rpm: files, links and folders ("%dir " before them)
	owner map[string][]string // by path: rpms
	links map[string]string   // links that are to lead somewhere else
	conf  map[string]bool     // files that an administrator changes
	left  map[string]bool     // files of packages of which no rpm is made
}

// merged are the folders that are links into /usr.
var merged = regexp.MustCompile(`^/(bin|sbin|lib|lib32|lib64|libx32)(/|$)`)

// canonical gives a path as the kernel would find it below /usr.
func canonical(p string) string {
	if merged.MatchString(p) {
		return "/usr" + p
	}
	return p
}

// nobodys are files of packages that belong to no rpm: of Debian's tools, or of a
// machine and not of a distribution.
var nobodys = regexp.MustCompile(`^/etc/(init\.d|rc.\.d|apt|dpkg|runit|cron\..*|insserv.*|apparmor\.d|os-release|debian_version|issue|issue\.net)(/|$)|` +
	`^/usr/lib/(os-release|modules|sysctl\.d/.+)$|^/var/lib/(dpkg|apt|ucf)(/|$)|` +
	`^/usr/share/(doc|man|locale|lintian|bug|doc-base|menu|info|base-passwd|debconf|initramfs-tools|apport|reportbug)(/|$)`)

// made are files that are not to be found in packages, and that a host or its
// programs make anew.
var made = regexp.MustCompile(`^/(boot|build|dev|proc|sys|run|tmp|root|home|srv|mnt|media|opt)$|/__pycache__(/|$)|` +
	`^/etc/(alternatives|systemd|network)$|^/etc/(ucf|debconf)\.conf$|^/etc/(passwd|group|shadow|gshadow)-$|^/etc/.*dpkg-(old|new|dist)$|` +
	`^/etc/(fstab|hostname|hosts|resolv\.conf|machine-id|mtab|modules|motd|ld\.so\.cache|\.pwd\.lock|iscsi/initiatorname\.iscsi)$|` +
	`^/etc/ssh/ssh_host_|^/etc/ssl/private/.|^/var/(lib/(pam|systemd)|log|cache|backups|tmp|mail|spool)$`)

// given has files that no package of Debian's lists go to an rpm.
var given = []struct {
	path *regexp.Regexp
	to   string
}{
	{regexp.MustCompile(`^/etc/(ssl/certs/|ca-certificates)`), "ca-certificates"},
	{regexp.MustCompile(`^/etc/chrony/`), "chrony"},
	{regexp.MustCompile(`^/etc/default/(nfs-common|rpcbind)|^/etc/(idmapd|nfs)\.conf`), "nfs-utils"},
	{regexp.MustCompile(`^/etc/ssh/`), "openssh-server"},
	{regexp.MustCompile(`^/etc/(nginx|haproxy|keepalived|iscsi)/`), ""},
	{regexp.MustCompile(`^/etc/`), "setup"},
	{regexp.MustCompile(`^/var/(run|lock)$`), "filesystem"},
}

func readTree(root string, all []debian) (*tree, error) {
	t := &tree{root: root, files: map[string][]string{}, owner: map[string][]string{}, links: map[string]string{}, conf: map[string]bool{}, left: map[string]bool{}}
	for _, d := range all {
		name := rpmName(d.name)
		for _, p := range d.files {
			if name == "" {
				t.left[canonical(path.Clean(p))] = true
				continue
			}
			if err := t.add(name, canonical(path.Clean(p)), d.conffiles[p]); err != nil {
				return nil, err
			}
		}
	}
	for _, p := range []string{"/bin", "/sbin", "/lib", "/lib64"} {
		t.own("filesystem", p, p)
	}
	for _, p := range strings.Fields("/home /srv /mnt /media /opt /usr/local/bin /usr/local/sbin /usr/local/lib /usr/local/share") {
		if err := t.add("filesystem", p, false); err != nil { // made when Debian is set up
			return nil, err
		}
	}
	// A script of its package makes it; it goes with that.
	if _, err := os.Lstat(filepath.Join(root, initiator)); err == nil {
		t.own("iscsi-initiator-utils", initiator, "%ghost "+initiator)
	}
	// Both have a sh of their own.
	t.links["/usr/bin/sh"] = "bash"
	t.own("bash", "/usr/bin/sh", "/usr/bin/sh")
	return t, t.rest()
}

func (t *tree) own(name, p, line string) {
	if !slices.Contains(t.owner[p], name) {
		t.owner[p] = append(t.owner[p], name)
		t.files[name] = append(t.files[name], line)
	}
}

func (t *tree) add(name, p string, conf bool) error {
	if p == "/" || nobodys.MatchString(p) || merged.MatchString(p) {
		return nil
	}
	info, err := os.Lstat(filepath.Join(t.root, p))
	switch {
	case os.IsNotExist(err): // left out when it was installed, as manuals are
		return nil
	case err != nil:
		return err
	case info.IsDir():
		t.own(name, p, "%dir "+p)
	default:
		t.conf[p] = t.conf[p] || conf
		t.own(name, p, p)
	}
	return nil
}

// rest sees to what no package lists: links by way of alternatives, which become
// links to what they lead to, and files that packages made when they were set up.
func (t *tree) rest() error {
	return filepath.WalkDir(t.root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		p := strings.TrimPrefix(name, t.root)
		switch {
		case p == "" || merged.MatchString(p):
			return nil
		case nobodys.MatchString(p) || made.MatchString(p):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir() || t.left[p] || len(t.owner[p]) > 0:
			return nil
		case d.Type() == fs.ModeSymlink:
			if led, err := t.alternative(p); err != nil || led {
				return err
			}
		}
		for _, g := range given {
			if g.path.MatchString(p) {
				if g.to != "" {
					return t.add(g.to, p, strings.HasPrefix(p, "/etc/"))
				}
				return nil
			}
		}
		return nil
	})
}

// bridges are the tools for a bridge's rules, a package of its own in Red Hat 8.
const bridges = "iptables-ebtables"

// alternative reports whether a link leads by way of /etc/alternatives.
func (t *tree) alternative(p string) (bool, error) {
	to, err := os.Readlink(filepath.Join(t.root, p))
	if err != nil || !strings.HasPrefix(to, "/etc/alternatives/") {
		return false, err
	}
	if to, err = os.Readlink(filepath.Join(t.root, to)); err != nil {
		return false, err
	}
	owners := t.owner[canonical(to)]
	if len(owners) == 0 {
		return true, nil
	}
	owner := owners[0]
	if strings.HasPrefix(path.Base(p), "ebtables") {
		owner = bridges
	}
	t.links[p] = to
	t.own(owner, p, p)
	return true, nil
}
