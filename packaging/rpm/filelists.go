package rpm

import (
	"encoding/xml"
	"fmt"
	"io"
)

// readFilelists returns, by the package's checksum, which of the wanted files each package
// contains.
func readFilelists(r io.Reader, looked map[string]bool, found func(pkgid, file string)) error {
	all, err := openElements(r, "filelists", filelistsSpace, false)
	if err != nil {
		return err
	}
	words := map[string]string{}
	for n := 1; ; n++ {
		element, err := all.next("filelists")
		if element == nil || err != nil {
			return err
		}
		clear(words) // names and checksums, which are not needed any more
		err = all.read(element, words, func(d tokens, s xml.StartElement) error {
			return children(d, func(f xml.StartElement) error {
				if f.Name.Local != "file" {
					return d.Skip()
				}
				var file string
				if err := text(d, &file); err != nil {
					return err
				}
				if looked[file] {
					found(attribute(s, "pkgid"), file)
				}
				return nil
			})
		})
		if err != nil {
			return fmt.Errorf("package %d: %w", n, err)
		}
	}
}
