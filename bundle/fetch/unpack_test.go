package fetch

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
)

// file is a sink that notes how it ended.
type file struct {
	*sink
	committed, closed bool
}

func (f *file) Commit() error {
	f.committed = true
	return nil
}

func (f *file) Close() error {
	f.closed = true
	return nil
}

// TestUnpackIntoFiles: entries go into the caller's files, those that are asked for, and past
// the cache; an entry may be a link.
func TestUnpackIntoFiles(t *testing.T) {
	content := pack(t, "tar.gz", entry{"bin/", ""}, entry{"bin/a", "first"}, entry{"bin/b", "second"}, entry{"bin/c", "->real"}, entry{"bin/real", "third"})
	a := archiveOf(content, "tar.gz", "bin/a", "bin/b", "bin/c")
	texts := []string{"first", "second", "third"}
	for i, text := range texts {
		a.Members[i].SHA256, a.Members[i].Size = sum([]byte(text)), int64(len(text))
	}
	a.Size = int64(len(content))
	o := options(t, serve(t, served(content, "")))
	c := client(t, o)
	files := map[string]*file{}
	open := func(_ context.Context, sha256 string) (File, error) {
		if sha256 == a.Members[1].SHA256 {
			return nil, nil //nolint:nilnil // it is not needed
		}
		f := &file{sink: newSink()}
		f.b = []byte("of an earlier build")
		files[sha256] = f
		return f, nil
	}
	if err := c.UnpackArtifact(a)(t.Context(), open); err != nil {
		t.Fatal(err)
	}
	for i, text := range texts {
		f := files[a.Members[i].SHA256]
		if i == 1 {
			if f != nil {
				t.Error("what is not needed was written")
			}
			continue
		}
		if f == nil || string(f.b) != text || !f.committed {
			t.Errorf("%s: %+v", text, f)
		}
	}
	if all, err := o.Cache.List(); err != nil || len(all) != 0 {
		t.Errorf("in the cache: %v, %v", all, err)
	}

	a.Members[0].SHA256 = sum([]byte("other"))
	var wrong *DigestError
	if err := c.UnpackArtifact(a)(t.Context(), open); !errors.As(err, &wrong) || wrong.Got != sum([]byte("first")) || wrong.Address == "" {
		t.Errorf("an entry of another digest: %v", err)
	}
	if f := files[a.Members[0].SHA256]; f.committed || !f.closed {
		t.Errorf("a wrong entry is committed: %+v", f)
	}
	a.Members[0].SHA256, a.Members[0].Size = sum([]byte("first")), 3
	if err := c.UnpackArtifact(a)(t.Context(), open); err == nil || !strings.Contains(err.Error(), "more than 3 bytes") {
		t.Errorf("an entry that is longer than its pin: %v", err)
	}
	a.Members[0].Size = 5
	full := func(context.Context, string) (File, error) {
		f := &file{sink: newSink()}
		f.room = 1
		return f, nil
	}
	if err := c.UnpackArtifact(a)(t.Context(), full); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a file that is full: %v", err)
	}
	a.SHA256 = sum([]byte("another archive"))
	if err := c.UnpackArtifact(a)(t.Context(), full); !errors.As(err, &wrong) {
		t.Errorf("an archive of another digest: %v", err)
	}
	a.Members[2].SHA256 = ""
	if c.UnpackArtifact(a) != nil {
		t.Error("an entry that is not pinned is unpacked")
	}
}
