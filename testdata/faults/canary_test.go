package main

import (
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// A secret is found in each way that it may be written, and nothing else is.
func TestCanariesAreFound(t *testing.T) {
	const secret = "canary-01+Zq/7w"
	c := canaries{"it": secret}
	for _, before := range []string{"", "u:", "us:", "use:", "user:"} {
		for _, behind := range []string{"", "x", "xy"} {
			for _, e := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding} {
				if text := e.EncodeToString([]byte(before + secret + behind)); len(c.in("a "+text+" b")) != 1 {
					t.Errorf("%q behind %q is not found in %s", secret, before, text)
				}
			}
		}
	}
	for _, text := range []string{secret, "x" + secret, "https://u:" + url.QueryEscape(secret) + "@host/", hex.EncodeToString([]byte(secret))} {
		if len(c.in(text)) != 1 {
			t.Errorf("it is not found in %s", text)
		}
	}
	if found := c.in("canary-02+Zq/7w" + base64.StdEncoding.EncodeToString([]byte("canary-02+Zq/7w"))); len(found) > 0 {
		t.Errorf("another one is taken for it: %v", found)
	}
}

// An archive is looked into, and what is allowed is passed over by its path alone.
func TestCanariesBelow(t *testing.T) {
	dir := t.TempDir()
	c := canaries{"it": "canary-01+Zq/7w"}
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	packed := z.EncodeAll([]byte(strings.Repeat("-", 100)+"canary-01+Zq/7w"+strings.Repeat("-", 100)), nil)
	if err := os.WriteFile(filepath.Join(dir, "a.zst"), packed, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.below(dir); err == nil {
		t.Error("what an archive holds is not looked at")
	}
	if n, err := c.below(dir, "a.zst"); err != nil || n != 0 {
		t.Errorf("%d files: %v", n, err)
	}
	if _, err := c.below(dir, "b/a.zst"); err == nil {
		t.Error("another file of that name is passed over too")
	}
}
