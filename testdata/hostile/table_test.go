package hostile

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

const page = "../../docs/hostile-input.md"

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

Bundles that lie, each made from a small true one. For all of them ` + "`bundle verify`, `bundle extract` and `install`" + ` end with exit code 4
and a code that [the format](bundle-format.md#refusals) or [trust](trust.md#refusals) explains; no host is called, nothing is written outside the folder that extract was
told, and no run takes more than 256 MiB of memory or 10 seconds of a processor. Rows with ` + "`install`" + ` behind them are good bundles that are not
for a site: the others know of no site. The same runs take them where the site's record, or its hosts, are as the bundle wants them.

    make hostile     # every row in all three ways, and 1,000 random changes of a bundle

A random change may be passed by only where it changes nothing that counts: the root is the true one, and everything that is extracted is what
the true bundle gives. ` + "`make test`" + ` tries most rows in one way, and 100 changes.

` + "`install`" + ` reads the whole bundle before it calls the first host, so that damage which lies in a file for the last node is found as well.

The file may change under kubexm between being verified and being unpacked. Where another file takes its name, or the name is gone, what was opened
is read on. Where it is overwritten or cut in place, with a bundle that names the very same members, unpacking ends with a code; no blob is read to its end,
and no file stands, with bytes that the verified root does not lead to. That is tried in one process, of one file and of volumes, at three points, and while somebody overwrites the file again and again.
`
