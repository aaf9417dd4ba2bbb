package kubexm_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// mostLinks is how many links the README may have: more of them are docs/README.md's.
const mostLinks = 6

var markdownLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// linksOf gives the places that a page links to, with their anchors.
func linksOf(t *testing.T, page string) (out []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range markdownLink.FindAllStringSubmatch(string(text), -1) {
		out = append(out, m[1])
	}
	return out
}

// TestDocsAreFound: the index links every page once, and the README links little else
// but the index.
func TestDocsAreFound(t *testing.T) {
	if links := linksOf(t, "README.md"); len(links) > mostLinks || !slices.Contains(links, "docs/README.md") {
		t.Errorf("the README links %q: want docs/README.md, and %d links at most", links, mostLinks)
	}
	pages, err := filepath.Glob("docs/*.md")
	if err != nil || len(pages) < 20 {
		t.Fatalf("%d pages: %v", len(pages), err)
	}
	var want, got []string
	for _, page := range pages {
		if name := filepath.Base(page); name != "README.md" {
			want = append(want, name)
		}
	}
	for _, link := range linksOf(t, "docs/README.md") {
		if path.Dir(link) == "." && path.Ext(link) == ".md" { // an anchor makes a second link of a page a way to its part
			got = append(got, link)
		}
	}
	slices.Sort(got)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("pages of docs, and those that docs/README.md links (-is +linked):\n%s", d)
	}
}

// TestLinksLead: each link of a page leads to a file, and to a heading of that.
func TestLinksLead(t *testing.T) {
	pages := []string{"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "testdata/lab/README.md", "testdata/bench/README.md"}
	for _, pattern := range []string{"docs/*.md", "docs/decisions/*.md"} {
		more, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, more...)
	}
	checked := 0
	for _, page := range pages {
		for _, link := range linksOf(t, page) {
			if strings.Contains(link, "://") {
				continue
			}
			checked++
			to, anchor, _ := strings.Cut(link, "#")
			file := page
			if to != "" {
				file = path.Join(path.Dir(page), to)
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: %s: %v", page, link, err)
			} else if anchor != "" && !slices.Contains(anchorsOf(t, file), anchor) {
				t.Errorf("%s: %s: no such heading", page, link)
			}
		}
	}
	if checked < 50 {
		t.Errorf("only %d links", checked)
	}
}

var (
	heading    = regexp.MustCompile(`(?m)^#+ (.+)$`)
	notOfNames = regexp.MustCompile(`[^\p{L}\p{N}\s_-]`)
)

// anchorsOf gives the headings of a page as links name them.
func anchorsOf(t *testing.T, page string) (out []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range heading.FindAllStringSubmatch(string(text), -1) {
		out = append(out, strings.ReplaceAll(notOfNames.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return out
}
