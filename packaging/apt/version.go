package apt

import (
	"cmp"
	"strings"
)

// Compare compares two versions like dpkg: the epoch, then the upstream version, then
// the Debian revision.
//
// The library github.com/knqyf263/go-deb-version is not used: it stores numbers as int,
// so that two long ones are equal, and rejects versions that dpkg accepts. Here numbers
// may have any length.
func Compare(a, b string) int {
	epochA, upstreamA, revisionA := split(a)
	epochB, upstreamB, revisionB := split(b)
	return cmp.Or(number(epochA, epochB), part(upstreamA, upstreamB), part(revisionA, revisionB))
}

// split splits "1:2.0-3". A missing part is the same as 0.
func split(v string) (epoch, upstream, revision string) {
	epoch, rest, ok := strings.Cut(v, ":")
	if !ok {
		epoch, rest = "", v
	}
	if i := strings.LastIndexByte(rest, '-'); i >= 0 {
		return epoch, rest[:i], rest[i+1:]
	}
	return epoch, rest, ""
}

// part compares alternately non-digits, byte by byte, and numbers.
func part(a, b string) int {
	for a != "" || b != "" {
		for (a != "" && !digit(a[0])) || (b != "" && !digit(b[0])) {
			if d := rank(a) - rank(b); d != 0 {
				return d
			}
			a, b = a[1:], b[1:]
		}
		i, j := digits(a), digits(b)
		if d := number(a[:i], b[:j]); d != 0 {
			return d
		}
		a, b = a[i:], b[j:]
	}
	return 0
}

// rank orders the first byte: "~" before the end, the end and digits before
// letters, letters before everything else.
func rank(s string) int {
	if s == "" || digit(s[0]) {
		return 0
	}
	switch c := s[0]; {
	case c == '~':
		return -1
	case c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z':
		return int(c)
	default:
		return int(c) + 256
	}
}

// number compares two numbers of any length.
func number(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

func digits(s string) int {
	i := 0
	for i < len(s) && digit(s[i]) {
		i++
	}
	return i
}

func digit(c byte) bool { return c >= '0' && c <= '9' }
