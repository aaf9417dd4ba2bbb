package archive

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
)

func xxh(b []byte) string {
	d := xxhash.New()
	_, _ = d.Write(b)
	return hexSum(d)
}

func TestSignaturesInPlace(t *testing.T) {
	s := newSample([]int{100000}, []int{100000})
	path := s.file(t)
	before := read(t, path)
	r := mustOpen(t, path)
	if got, err := r.Signatures(); err != nil || len(got) != 0 {
		t.Fatalf("unsigned: %q, %v", got, err)
	}
	slot := *r.slot()
	full := `{"a":"` + strings.Repeat("x", slotSize-len(`{"a":""}`)-1) + `"}` + "\n"
	for _, lines := range []string{"{\"a\":1}\n", "{\"a\":1}\n{\"b\":[2, 3]}\n", full, "{}\n"} {
		if err := WriteSignatures(path, []byte(lines)); err != nil {
			t.Fatal(err)
		}
		got, err := mustOpen(t, path).Signatures()
		if err != nil || string(got) != lines {
			t.Fatalf("%.50q came back as %.50q, %v", lines, got, err)
		}
		if err := check(t, path); err != nil {
			t.Error(err)
		}
		after := read(t, path)
		if !bytes.Equal(before[:slot.Offset], after[:slot.Offset]) || !bytes.Equal(before[slot.Offset+slot.Length:], after[slot.Offset+slot.Length:]) {
			t.Error("bytes outside the slot changed")
		}
	}
	if err := WriteSignatures(path, nil); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(read(t, path), before) {
		t.Error("taking the signatures away does not give the first file back")
	}
}

func TestSignaturesRefused(t *testing.T) {
	s := newSample(nil, nil)
	path := s.file(t)
	before := read(t, path)
	for _, lines := range []string{
		"{}", "\n", "[]\n", "{}\n\n", "{}\n{\n", "{} {}\n", "null\n", " {}\n", "{}\r\n", "{\"a\":\n1}\n",
		"{\"a\":\"" + strings.Repeat("x", slotSize) + "\"}\n",
	} {
		if err := WriteSignatures(path, []byte(lines)); !errors.Is(err, ErrSlot) {
			t.Errorf("%.30q: %v", lines, err)
		}
	}
	if !bytes.Equal(read(t, path), before) {
		t.Error("a refused signature changed the file")
	}
	// A slot that a killed run left half-written is found, and can be signed again.
	r := mustOpen(t, path)
	at := r.slot().Offset + headLen + int64(len(rawFrameHeader)) + blockHeaderLen
	torn := bytes.Clone(before)
	copy(torn[at:], `{"a":`)
	if err := os.WriteFile(path, torn, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := check(t, path); !errors.Is(err, ErrSlot) {
		t.Errorf("torn slot: %v", err)
	}
	if err := WriteSignatures(path, []byte("{}\n")); err != nil {
		t.Error(err)
	}
	if err := check(t, path); err != nil {
		t.Error(err)
	}
	w, err := Create(path, s.layout(t), WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteSignatures(path, nil); !errors.Is(err, ErrBusy) {
		t.Errorf("signing while it is written: %v", err)
	}
	if err := w.Abort(); err != nil {
		t.Error(err)
	}
}

// TestRestoreSignatures: a slot that a power loss left incomplete is restored from the copy
// beside the archive; a complete slot is not changed.
func TestRestoreSignatures(t *testing.T) {
	s := newSample(nil, nil)
	path := s.file(t)
	const first, second = "{\"a\":1}\n", "{\"a\":1}\n{\"b\":2}\n"
	if err := WriteSignatures(path, []byte(first)); err != nil {
		t.Fatal(err)
	}
	beside := hidden(path, "signatures")
	if _, err := os.Stat(beside); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something is left beside the archive: %v", err)
	}
	r := mustOpen(t, path)
	at := r.slot().Offset + headLen + int64(len(rawFrameHeader)) + blockHeaderLen
	for name, c := range map[string]struct{ tear, want string }{
		"torn":                    {"half", second},
		"not begun, or all there": {first, first},
	} {
		t.Run(name, func(t *testing.T) {
			text := read(t, path)
			copy(text[at:], c.tear)
			if err := errors.Join(os.WriteFile(path, text, 0o600), os.WriteFile(beside, []byte(second), 0o600)); err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second time there is nothing to do
				if err := RestoreSignatures(path); err != nil {
					t.Fatal(err)
				}
				got, err := mustOpen(t, path).Signatures()
				if err != nil || string(got) != c.want {
					t.Errorf("%q, %v", got, err)
				}
			}
			if _, err := os.Stat(beside); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("something is left beside the archive: %v", err)
			}
			if err := WriteSignatures(path, []byte(first)); err != nil {
				t.Fatal(err)
			}
		})
	}
}
