package manifest

import (
	"fmt"
	"strings"
)

// Platform is where an artifact runs: an operating system and an architecture with Go's names
// ("linux", "amd64"). Operating system packages also have the distribution and its release
// ("debian", "12"). The zero value means any platform.
type Platform struct {
	OS           string
	Arch         string
	Distribution string
	Release      string
}

// String returns "linux/amd64", or "linux/amd64/debian-12" with a distribution, and "" for
// any platform.
func (p Platform) String() string {
	if p == (Platform{}) {
		return ""
	}
	s := p.OS + "/" + p.Arch
	if p.Distribution != "" {
		s += "/" + p.Distribution + "-" + p.Release
	}
	return s
}

// Machine returns p without its distribution.
func (p Platform) Machine() Platform { return Platform{OS: p.OS, Arch: p.Arch} }

// System returns distribution and release as one word, "debian-12": the name of its packages
// in a Need.
func (p Platform) System() string { return p.Distribution + "-" + p.Release }

// ParsePlatform is the inverse of String.
func ParsePlatform(s string) (Platform, error) {
	if s == "" {
		return Platform{}, nil
	}
	part := strings.Split(s, "/")
	if len(part) < 2 || len(part) > 3 || part[0] == "" || part[1] == "" {
		return Platform{}, fmt.Errorf("platform %q is not os/arch, as in linux/amd64", s)
	}
	p := Platform{OS: part[0], Arch: part[1]}
	if len(part) == 3 {
		name, release, ok := strings.Cut(part[2], "-")
		if !ok || name == "" || release == "" {
			return Platform{}, fmt.Errorf("platform %q: %q is not distribution-release, as in debian-12", s, part[2])
		}
		p.Distribution, p.Release = name, release
	}
	return p, nil
}

// MarshalText returns the form that ParsePlatform reads.
func (p Platform) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads the form that String returns.
func (p *Platform) UnmarshalText(b []byte) error {
	q, err := ParsePlatform(string(b))
	if err != nil {
		return err
	}
	*p = q
	return nil
}

// MarshalYAML returns the text form: yaml does not call MarshalText for a value inside a
// sequence of structs with omitempty.
func (p Platform) MarshalYAML() (any, error) { return p.String(), nil }

// IsZero reports whether p means any platform; yaml's omitempty calls it.
func (p Platform) IsZero() bool { return p == Platform{} }
