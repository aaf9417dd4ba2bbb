package rpm

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

const repoSpace = "http://linux.duke.edu/metadata/repo"

// sum is a checksum; its kind is a key of hashes.
type sum struct{ Kind, Value string }

// file is one of the files that repomd.xml lists.
type file struct {
	Location string
	Sum      sum
	Open     sum   // of what it holds; the zero value: not told
	Size     int64 // -1: not told
	OpenSize int64 // -1: not told
	Time     int64 // when it was made, in seconds since 1970; 0: not told
}

// readRepomd returns the files of a repository by their kind: "primary", "filelists",
// "modules".
func readRepomd(content []byte) (map[string]file, error) {
	d := xml.NewDecoder(bytes.NewReader(content))
	if err := openRoot(d, "repomd", repoSpace, false); err != nil {
		return nil, err
	}
	out := map[string]file{}
	err := children(d, func(s xml.StartElement) error {
		kind := attribute(s, "type")
		if s.Name.Local != "data" || !slices.Contains([]string{"primary", "filelists", "modules"}, kind) {
			return d.Skip()
		}
		if _, ok := out[kind]; ok {
			return fmt.Errorf("it lists two %s files", kind)
		}
		f, err := readFile(d)
		if err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
		out[kind] = f
		return nil
	})
	if err == nil {
		err = end(d)
	}
	if err != nil {
		return nil, err
	}
	if _, ok := out["primary"]; !ok {
		return nil, errors.New("it lists no primary file")
	}
	return out, nil
}

func readFile(d *xml.Decoder) (file, error) {
	f := file{Size: -1, OpenSize: -1}
	err := children(d, func(s xml.StartElement) error {
		switch s.Name.Local {
		case "checksum":
			return readSum(d, s, &f.Sum)
		case "open-checksum":
			return readSum(d, s, &f.Open)
		case "size":
			return readSize(d, &f.Size)
		case "open-size":
			return readSize(d, &f.OpenSize)
		case "timestamp":
			return readTime(d, &f.Time)
		case "location":
			f.Location = attribute(s, "href")
		}
		return d.Skip()
	})
	if err != nil {
		return f, err
	}
	if f.Sum.Kind == "" {
		return f, errors.New("it has no checksum")
	}
	return f, checkLocation(f.Location)
}

func readSum(d *xml.Decoder, s xml.StartElement, into *sum) error {
	into.Kind = attribute(s, "type")
	if err := text(d, &into.Value); err != nil {
		return err
	}
	return checkSum(into.Kind, into.Value)
}

// readTime parses seconds, which old programs write with a fraction. Invalid values are
// ignored.
func readTime(d *xml.Decoder, into *int64) error {
	var s string
	if err := text(d, &s); err != nil {
		return err
	}
	whole, _, _ := strings.Cut(strings.TrimSpace(s), ".")
	if n, err := strconv.ParseInt(whole, 10, 64); err == nil && n > 0 && n < latest {
		*into = n
	}
	return nil
}

// latest is the last second of the year 9999, the latest time that every date format has.
const latest = 253402300799

func readSize(d *xml.Decoder, into *int64) error {
	var s string
	if err := text(d, &s); err != nil {
		return err
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		return fmt.Errorf("size %q", s)
	}
	*into = n
	return nil
}

// read calls f with the decompressed content of the file. It returns an error if a size
// or checksum is wrong, compressed or decompressed. That error comes before an error of
// f, because it explains it.
func (x file) read(r io.Reader, limit int64, f func(io.Reader) error) error {
	outer := newChecked(r, x.Sum, x.Size, limit)
	inner, done, err := expand(outer)
	if err != nil {
		if _, err := io.Copy(io.Discard, outer); err != nil {
			return err
		}
		return err
	}
	defer done()
	opened := newChecked(inner, x.Open, x.OpenSize, limit)
	wrong := f(opened)
	if wrong == nil {
		_, wrong = io.Copy(io.Discard, opened)
	}
	if _, err := io.Copy(io.Discard, outer); err != nil {
		return err
	}
	return wrong
}
