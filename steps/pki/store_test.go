package pki

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestACertificateIsThereWholeOrNotAtAll: it comes by a rename, and what a kill
// left of one before is written over.
func TestACertificateIsThereWholeOrNotAtAll(t *testing.T) {
	s := Store{Dir: t.TempDir()}
	for _, suffix := range []string{".crt", ".key"} {
		if err := os.WriteFile(filepath.Join(s.Dir, ".ca"+suffix+".new"), []byte("-----BEGIN CERT"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now()
	made, err := s.Authority("ca", "a test", now)
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.Authority("ca", "a test", now)
	if err != nil || !again.Certificate.Equal(made.Certificate) {
		t.Errorf("%v", err)
	}
	all, err := os.ReadDir(s.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if n := f.Name(); n != "ca.crt" && n != "ca.key" && n != ".lock" {
			t.Errorf("%s is left", n)
		}
	}
}
