package rpm

import (
	"encoding/xml"
	"fmt"
	"io"
)

// readFilelists tells which package, by its checksum, has which of the files that
// are looked for.
func readFilelists(r io.Reader, looked map[string]bool, found func(pkgid, file string)) error {
	t := newTape(r)
	d := xml.NewDecoder(t)
	if err := openRoot(d, "filelists", filelistsSpace, false); err != nil {
		return err
	}
	n := 0
	err := children(d, func(s xml.StartElement) error {
		t.forget(d.InputOffset())
		n++
		id := attribute(s, "pkgid")
		err := children(d, func(s xml.StartElement) error {
			t.forget(d.InputOffset())
			if s.Name.Local != "file" {
				return d.Skip()
			}
			var file string
			if err := text(d, &file); err != nil {
				return err
			}
			if looked[file] {
				found(id, file)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("package %d: %w", n, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	t.forget(d.InputOffset())
	return end(d)
}
