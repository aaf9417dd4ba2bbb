package manifest

import (
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // containers often have no time zone files

	"github.com/distribution/reference"

	"github.com/mensylisir/kubexm/manifest/document"
)

var (
	labelPattern     = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	hostnamePattern  = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$`)
	k8sVersion       = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)
	versionPattern   = regexp.MustCompile(`^v?[0-9]+(\.[0-9A-Za-z]+)*([-+][0-9A-Za-z.-]+)?$`)
	wordPattern      = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]*$`)
	packagePattern   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9+._:~=*-]*$`)
	fileNamePattern  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]*$`)
	interfacePattern = regexp.MustCompile(`^[A-Za-z0-9._@-]{1,15}$`)
	portPattern      = regexp.MustCompile(`^([0-9]{1,5})-([0-9]{1,5})$`)
	digestPattern    = prefixDigest
	hostKeyPattern   = regexp.MustCompile(`^(SHA256:[A-Za-z0-9+/]{43}=?|(ssh|ecdsa|sk)-[a-z0-9@.-]+ [A-Za-z0-9+/]+=*( .*)?)$`)
	labelName        = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`)
)

// FormatWords describes the values that a format accepts: "an IP address, as in …".
func FormatWords(name string) string {
	return strings.TrimPrefix(strings.TrimPrefix(formats[name].Words, "write "), "use ")
}

var formats = map[string]document.Format{
	"label":             byPattern(labelPattern, "use lower-case letters, digits and dashes, at most 63"),
	"hostname":          byPattern(hostnamePattern, "use a DNS name in lower case: letters, digits, dashes and dots"),
	"kubernetesVersion": byPattern(k8sVersion, "write a version with a leading v and three numbers, as in v1.33.1"),
	"version":           byPattern(versionPattern, "write numbers with dots, as in 1.7.24"),
	"distribution":      byPattern(wordPattern, "write the ID of its /etc/os-release, as in debian"),
	"release":           byPattern(wordPattern, "write the VERSION_ID of its /etc/os-release, as in 12"),
	"package":           byPattern(packagePattern, "write a package name"),
	"packageRepository": when(isPackageRepository, "write a line of sources.list, the path of a .list, .sources or .repo file, or the path of a folder of such files with a trailing slash"),
	"fileName":          byPattern(fileNamePattern, "use letters, digits, dots, dashes and underscores, without folders"),
	"interface":         byPattern(interfacePattern, "write the name of a network interface, as in eth0"),
	"digest":            byPattern(digestPattern, "write sha256: and 64 characters of lower-case hex"),
	"sha256":            byPattern(hexDigest, "write 64 characters of lower-case hex"),
	"ip":                when(isIP, "write an IP address, as in 10.0.0.1 or fd00::1"),
	"host":              when(isHost, "write an IP address or a DNS name in lower case"),
	"cidr":              shape("write an address range, as in 10.233.64.0/18", cidrAdvice),
	"addressRange":      when(func(s string) bool { _, err := netip.ParsePrefix(s); return err == nil }, "write an address range, as in 10.233.64.0/18"),
	"url":               when(isURL, "write a complete URL without user and password, as in https://example.com/file"),
	"endpoint":          when(isURL, "write a complete URL, as in https://192.0.2.8:2379"),
	"path":              when(func(s string) bool { return path.IsAbs(s) && path.Clean(s) == s }, "write an absolute path without . and .. and without a trailing slash"),
	"image":             shape(imageWords, imageAdvice),
	"registryHost":      when(isHostPort, "write host or host:port, without a scheme"),
	"registry":          when(func(s string) bool { return isHostPort(s) || isURL(s) }, "write host, host:port or a complete URL, without user and password"),
	"addressPrefix":     when(func(s string) bool { return isPrefix(s) }, "write host[:port][/prefix] without a scheme, as in dl.k8s.io"),
	"replacement":       when(isReplacement, "write [http:// or https://]host[:port][/prefix]"),
	"portRange":         shape("write first-last, as in 30000-32767", portRangeAdvice),
	"hostKey":           byPattern(hostKeyPattern, "write the key as in known_hosts, as in ssh-ed25519 AAAA…, or its fingerprint, as in SHA256:…"),
	"timezone":          shape("write a name of the IANA database, as in Europe/Berlin or Asia/Shanghai", timezoneAdvice),
	"nameserver":        when(isNameserver, "write an IP address, with a port if it is not 53: 10.0.0.1, 10.0.0.1:5353, [fd00::1]:53"),
	"zone":              when(isZone, "write a DNS name, with a port if it is not 53: example.com, example.io:1053"),
	"hostsFile":         shape("write lines of an IP address and names, as in /etc/hosts", hostsAdvice),
}

func byPattern(p *regexp.Regexp, words string) document.Format { return when(p.MatchString, words) }

func shape(words string, check func(string) string) document.Format {
	return document.Format{Words: words, Check: check}
}

func when(ok func(string) bool, words string) document.Format {
	return shape(words, func(s string) string {
		if ok(s) {
			return ""
		}
		return words
	})
}

// isPackageRepository reports whether s is a line of apt's sources.list, or the path of a file
// or folder that configures repositories.
func isPackageRepository(s string) bool {
	if rest, ok := strings.CutPrefix(s, "deb "); ok {
		return strings.TrimSpace(rest) != "" && !strings.ContainsAny(s, "\r\n")
	}
	switch path.Ext(s) {
	case ".list", ".sources", ".repo":
		return true
	}
	return strings.HasSuffix(s, "/")
}

func isIP(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.Zone() == ""
}

func isHost(s string) bool {
	// A malformed IPv4 address is not a host name either.
	if strings.Trim(s, "0123456789.") == "" {
		return isIP(s)
	}
	return isIP(s) || (len(s) <= 253 && hostnamePattern.MatchString(s))
}

func cidrAdvice(s string) string {
	p, err := netip.ParsePrefix(s)
	switch {
	case err != nil:
		return "write an address range, as in 10.233.64.0/18"
	case p != p.Masked():
		return "write " + p.Masked().String() + ", which is the range of this address"
	}
	return ""
}

func isURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Hostname() != "" && u.User == nil
}

const imageWords = "write registry, name and tag, as in docker.io/library/nginx:1.29"

// imageAdvice requires a complete reference. The meaning of a short reference is a convention
// of docker, and replacements of another registry would not match it.
func imageAdvice(s string) string {
	n, err := reference.ParseNormalizedNamed(s)
	switch {
	case err != nil || reference.IsNameOnly(n):
		return imageWords
	case n.String() != s:
		return "write " + n.String()
	}
	return ""
}

func isHostPort(s string) bool {
	host, port, found := cutPort(s)
	return isHost(host) && (!found || isPort(port))
}

// cutPort splits host:port and [v6]:port. An IPv6 address without brackets has no port.
func cutPort(s string) (host, port string, found bool) {
	if rest, ok := strings.CutPrefix(s, "["); ok {
		host, after, _ := strings.Cut(rest, "]")
		port, found = strings.CutPrefix(after, ":")
		return host, port, found
	}
	if strings.Count(s, ":") != 1 {
		return s, "", false
	}
	host, port, found = strings.Cut(s, ":")
	return host, port, found
}

func isPort(s string) bool {
	n, err := strconv.Atoi(s)
	return err == nil && n >= 1 && n <= 65535
}

func isPrefix(s string) bool {
	host, rest, _ := strings.Cut(s, "/")
	return isHostPort(host) && !strings.Contains(rest, "//") && !strings.ContainsAny(s, " ?#@")
}

func isReplacement(s string) bool {
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok {
		return isPrefix(s)
	}
	return (scheme == "http" || scheme == "https") && isPrefix(rest)
}

func portRangeAdvice(s string) string {
	m := portPattern.FindStringSubmatch(s)
	if m == nil || !isPort(m[1]) || !isPort(m[2]) {
		return "write first-last, as in 30000-32767"
	}
	first, _ := strconv.Atoi(m[1])
	if last, _ := strconv.Atoi(m[2]); first > last {
		return "write the smaller port first"
	}
	return ""
}

func timezoneAdvice(s string) string {
	if _, err := time.LoadLocation(s); err != nil || s == "Local" {
		return "write a name of the IANA database, as in Europe/Berlin or Asia/Shanghai"
	}
	return ""
}

func isNameserver(s string) bool {
	host, port, found := cutPort(s)
	return isIP(host) && (!found || isPort(port))
}

func isZone(s string) bool {
	name, port, found := cutPort(s)
	name = strings.TrimSuffix(name, ".")
	return (hostnamePattern.MatchString(name) || name == "") && (!found || isPort(port)) && s != ""
}

func hostsAdvice(s string) string {
	for line := range strings.Lines(s) {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if len(words) < 2 || !isIP(words[0]) {
			return fmt.Sprintf("write an IP address, then names, on each line; %q is not such a line", document.Redact(strings.TrimSpace(line)))
		}
	}
	return ""
}
