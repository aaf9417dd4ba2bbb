package installer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps/connector/sshtest"
)

// TestSecretFilesAreTheOwnersAlone: a password or a key that others may read is
// none, and no host is called with it.
func TestSecretFilesAreTheOwnersAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for mode, good := range map[fs.FileMode]bool{0o600: true, 0o400: true, 0o640: false, 0o604: false, 0o620: false, 0o601: false} {
		for _, kind := range []string{"password", "key"} {
			path := filepath.Join(dir, fmt.Sprintf("%s-%o", kind, mode))
			if err := os.WriteFile(path, []byte("secret\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
			server := sshtest.Start(t, sshtest.Config{Password: "secret"})
			c := clusterOf(t, host("a", server, ""))
			h := &c.Spec.Hosts[0]
			if kind == "password" {
				h.Password = manifest.NewSecret("file:" + path)
			} else {
				h.PrivateKeyPath = path
			}
			s, err := Open(t.Context(), options(t, c, server))
			if err == nil {
				err = s.Close()
			}
			if kind == "key" && good { // what is in it is none
				if err == nil || strings.Contains(err.Error(), "chmod") {
					t.Errorf("%s %o: %v", kind, mode, err)
				}
				continue
			}
			if good != (err == nil) || !good && !strings.Contains(err.Error(), "chmod 600 it") {
				t.Errorf("%s %o: %v", kind, mode, err)
			}
			if !good && server.Connections() > 0 {
				t.Errorf("%s %o: the host was called", kind, mode)
			}
		}
	}
	if _, err := readSecret(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of no file: %v", err)
	}
}
