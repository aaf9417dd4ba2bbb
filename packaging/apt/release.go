package apt

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/mail"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Release is the content of a repository's signed Release file.
type Release struct {
	Origin, Label, Suite, Codename, Version string
	Date, ValidUntil                        time.Time // zero if not set
	Architectures, Components               []string
	// NotAutomatic and ButAutomaticUpgrades lower the priority of its packages.
	NotAutomatic, ButAutomaticUpgrades bool
	// SignedBy contains the fingerprints of the keys with a valid signature.
	SignedBy []string

	byHash    bool
	splitAll  bool // packages for all architectures have a separate index
	files     map[string]digest
	sha256set bool
}

// digest is the size and digest of a file in a release.
type digest struct {
	sha256 string
	size   int64
}

// parseRelease reads the text of a Release.
func parseRelease(text []byte) (*Release, error) {
	in := newParagraphs(bytes.NewReader(text), len(text)+1)
	paragraph, _, err := in.next()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("it is empty")
	}
	if err != nil {
		return nil, err
	}
	r := &Release{files: map[string]digest{}}
	seen := map[string]bool{}
	noSplit := false
	err = eachField(paragraph, func(f field) error {
		name := strings.ToLower(string(f.name))
		if seen[name] {
			return fmt.Errorf("it has %s twice", f.name)
		}
		seen[name] = true
		if name == "no-support-for-architecture-all" {
			noSplit = strings.EqualFold(string(f.value), "Packages")
		}
		return r.set(name, string(f.value))
	})
	if err != nil {
		return nil, err
	}
	r.splitAll = !noSplit && slices.Contains(r.Architectures, "all")
	if _, _, err := in.next(); !errors.Is(err, io.EOF) {
		return nil, errors.New("it contains more than one paragraph")
	}
	return r, nil
}

func (r *Release) set(name, value string) (err error) {
	switch name {
	case "origin":
		r.Origin = value
	case "label":
		r.Label = value
	case "suite":
		r.Suite = value
	case "codename":
		r.Codename = value
	case "version":
		r.Version = value
	case "date":
		r.Date, err = date(value)
	case "valid-until":
		r.ValidUntil, err = date(value)
	case "architectures":
		r.Architectures = strings.Fields(value)
	case "components":
		r.Components = strings.Fields(value)
	case "notautomatic":
		r.NotAutomatic = yes(value)
	case "butautomaticupgrades":
		r.ButAutomaticUpgrades = yes(value)
	case "acquire-by-hash":
		r.byHash = yes(value)
	case "sha256":
		r.sha256set = true
		err = r.sums(value)
	}
	return err
}

// sums reads the lines "digest size path".
func (r *Release) sums(value string) error {
	for line := range strings.Lines(value) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		if len(f) != 3 {
			return fmt.Errorf("%.80q is not a digest, size and path", line)
		}
		size, err := strconv.ParseInt(f[1], 10, 64)
		sum, hexErr := hex.DecodeString(f[0])
		if err != nil || size < 0 || hexErr != nil || len(sum) != 32 || !localPath(f[2]) {
			return fmt.Errorf("%.80q is not a digest, size and path", line)
		}
		r.files[f[2]] = digest{sha256: strings.ToLower(f[0]), size: size}
	}
	return nil
}

// date parses an RFC 2822 date, which must be UTC in a Release.
func date(s string) (time.Time, error) {
	t, err := mail.ParseDate(s)
	if err != nil {
		t, err = time.Parse("Mon, _2 Jan 2006 15:04:05 MST", s)
	}
	if err != nil {
		return t, fmt.Errorf("%q is not a valid date", s)
	}
	return t.UTC(), nil
}

func yes(s string) bool {
	return strings.EqualFold(s, "yes") || strings.EqualFold(s, "true") || s == "1"
}

// check refuses a release that is expired or from the future, or not the requested one.
func (r *Release) check(s Source, now time.Time) error {
	refuse := func(reason error, detail, advice string) error {
		return &Refusal{Repository: s.String(), Reason: reason, Detail: detail, Advice: advice}
	}
	if r.Date.After(now.Add(skew)) {
		return refuse(ErrFuture, "its Date is "+r.Date.Format(time.RFC3339), "set this machine's clock")
	}
	if !r.ValidUntil.IsZero() && r.ValidUntil.Before(now) && !s.AnyAge {
		return refuse(ErrStale, r.ValidUntil.Format(time.RFC3339),
			"use an up-to-date mirror, or set check-valid-until=no for an archived release")
	}
	if !r.sha256set {
		return refuse(ErrWeak, "it has no SHA256 digests of its files", "")
	}
	for _, x := range []struct{ name, want, have string }{
		{"Origin", s.Expect.Origin, r.Origin}, {"Suite", s.Expect.Suite, r.Suite}, {"Codename", s.Expect.Codename, r.Codename},
	} {
		if x.want != "" && x.want != x.have {
			return refuse(ErrOtherRelease, fmt.Sprintf("its %s is %q, expected %q", x.name, x.have, x.want), "")
		}
	}
	if !r.named(s) {
		return refuse(ErrOtherRelease, fmt.Sprintf("its suite is %q and its codename %q", r.Suite, r.Codename), "the mirror may be inconsistent; use another one")
	}
	return nil
}

// named reports whether the release matches the suite of its source. "bookworm/updates"
// matches bookworm. A release without suite and codename, and a flat repository, match
// any suite.
func (r *Release) named(s Source) bool {
	if s.flat() || r.Suite == "" && r.Codename == "" {
		return true
	}
	first, _, _ := strings.Cut(s.Suite, "/")
	for _, x := range []string{s.Suite, first} {
		if x == r.Suite || x == r.Codename {
			return true
		}
	}
	return false
}
