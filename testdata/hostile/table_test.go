package hostile

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

const page = "../../docs/reference/hostile-input.md"

// TestTable compares the page with the rows.
func TestTable(t *testing.T) {
	var b strings.Builder
	b.WriteString(intro)
	cut, group := false, ""
	for _, r := range rows() {
		if r.group != group {
			group = r.group
			fmt.Fprintf(&b, "\n## %s%s\n\n| input | refused as |\n|---|---|\n", strings.ToUpper(group[:1]), group[1:])
		}
		name := r.name
		if strings.HasPrefix(name, "archive cut at") {
			if cut {
				continue
			}
			cut, name = true, "archive cut at each 1 %"
		}
		if r.install {
			name += " (`install`)"
		}
		fmt.Fprintf(&b, "| %s | `%s` |\n", strings.ReplaceAll(name, "|", `\|`), r.code)
	}
	if *update {
		if err := os.WriteFile(page, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != b.String() {
		t.Errorf("%s is not what the rows say: go test ./testdata/hostile -run TestTable -update", page)
	}
	seen := map[string]bool{}
	for _, r := range rows() {
		if seen[r.group+r.name] {
			t.Errorf("%s/%s stands twice", r.group, r.name)
		}
		seen[r.group+r.name] = true
	}
}

const intro = `<!-- Written by go test ./testdata/hostile -run TestTable -update; do not edit. -->

# What kubexm refuses to read

Invalid bundles, each made from a small valid one. For all of them ` + "`bundle verify`, `bundle extract` and `install`" + ` end
with exit code 4 and a code that [the format](bundle-format.md#refusals) or [trust](../trust.md#refusals) explains. No
host is contacted, and nothing is written outside the target folder of ` + "`extract`" + `. No run takes more than 256 MiB of
memory or 10 seconds of a processor. Rows with ` + "`install`" + ` are valid bundles that do not fit a site; other commands know
no site and accept them. The same runs accept these bundles where the site's record, or its hosts, fit.

    make hostile     # every row in all three ways, and 1,000 random changes of a bundle

A random change may be accepted only if it changes no content: the root is the valid one, and everything that is
extracted equals the valid bundle's content. ` + "`make test`" + ` tries most rows in one way, and 100 changes.

` + "`install`" + ` reads the complete bundle before it contacts the first host, so it also finds damage in a file for the last
node.

The file may change between verification and extraction. If another file replaces it, or it is removed, kubexm reads
on from the opened file. If it is overwritten or truncated in place, with a bundle that lists the same entries,
extraction ends with a code. No blob is read to its end, and no file exists, with bytes that the verified root does
not lead to. This is tested in one process, for one file and for volumes, at three points, and while another process
overwrites the file repeatedly.
`
