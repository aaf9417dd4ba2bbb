package main

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// canaries are secrets that are looked for wherever they must not be, by what they are.
type canaries map[string]string

// forms are how a secret may be written: as it is, in a URL, in hexadecimal, and in
// base64, alone or behind a user's name of any length.
func forms(secret string) []string {
	out := []string{secret, url.QueryEscape(secret), hex.EncodeToString([]byte(secret))}
	for before := range 3 {
		text := base64.RawStdEncoding.EncodeToString([]byte("xxx"[:before] + secret))
		// What stands before and behind has a part in the first and the last digits.
		from, to := (before*8+5)/6, (before+len(secret))*8/6
		out = append(out, text[from:to])
	}
	return out
}

// in names the secrets that a text holds.
func (c canaries) in(text string) (found []string) {
	for what, secret := range c {
		if slices.ContainsFunc(forms(secret), func(f string) bool { return strings.Contains(text, f) }) {
			found = append(found, what)
		}
	}
	slices.Sort(found)
	return found
}

// below looks into every file of a folder, and into every archive's content. Files that
// have to hold a secret are named, by their paths there.
func (c canaries) below(dir string, allowed ...string) (files int, err error) {
	err = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(dir, p)
		if err != nil || slices.Contains(allowed, name) {
			return err
		}
		files++
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		if strings.HasSuffix(p, ".zst") {
			inside, err := decompressed(p)
			if err != nil {
				return err
			}
			text = append(text, inside...)
		}
		if found := c.in(string(text)); len(found) > 0 {
			return fmt.Errorf("SECRETS IN %s: %s", name, strings.Join(found, ", "))
		}
		return nil
	})
	return files, err
}

// decompressed is all that an archive holds.
func decompressed(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		return nil, err
	}
	defer z.Close()
	return io.ReadAll(z)
}
