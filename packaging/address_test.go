package packaging

import (
	"net/url"
	"testing"
)

func TestAddress(t *testing.T) {
	for _, x := range []struct{ repository, file, want string }{
		{"https://a.test/debian", "pool/a/a_1.0+b~1_all.deb", "https://a.test/debian/pool/a/a_1.0+b~1_all.deb"},
		{"https://user:secret@a.test/debian/", "pool/a b%3a?#.deb", "https://a.test/debian/pool/a%20b%253a%3F%23.deb"},
		{"file:/srv/repo", "/pool/ä.deb", "file:/srv/repo/pool/%C3%A4.deb"},
		{"file:///srv/repo/", "a:b.rpm", "file:///srv/repo/a:b.rpm"},
	} {
		have := Address(x.repository, x.file)
		if have != x.want {
			t.Errorf("%s, not %s", have, x.want)
		}
		if _, err := url.Parse(have); err != nil {
			t.Error(err)
		}
	}
}
