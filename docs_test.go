package kubexm_test

import (
	"io/fs"
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
	var want, got []string
	for _, page := range docsPages(t) {
		if name := strings.TrimPrefix(page, "docs/"); name != "README.md" {
			want = append(want, name)
		}
	}
	for _, link := range linksOf(t, "docs/README.md") {
		if !strings.HasPrefix(link, "..") && link != "zh/README.md" && path.Ext(link) == ".md" { // an anchor makes a second link of a page a way to its part
			got = append(got, link)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("pages of docs, and those that docs/README.md links (-is +linked):\n%s", d)
	}
}

// docsPages gives the how-to pages and the reference pages of docs.
func docsPages(t *testing.T) (pages []string) {
	t.Helper()
	for _, pattern := range []string{"docs/*.md", "docs/reference/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) < 10 {
			t.Fatalf("%s: %d pages: %v", pattern, len(found), err)
		}
		pages = append(pages, found...)
	}
	return pages
}

// TestLinksLead: each link of a page leads to a file, and to a heading of that.
func TestLinksLead(t *testing.T) {
	pages := append(docsPages(t), "README.md", "README.zh.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "testdata/lab/README.md", "testdata/bench/README.md")
	for _, pattern := range []string{"docs/decisions/*.md", "docs/zh/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) < 10 {
			t.Fatalf("%s: %d pages: %v", pattern, len(found), err)
		}
		pages = append(pages, found...)
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

// errorCode is where Go code defines the code of a refusal.
var errorCode = regexp.MustCompile(`(?m)(?:Code|Word\w+)\s*= "([a-z]+(?:-[a-z]+)+)"`)

// TestErrorsAreExplained: each code of a refusal, and each exit code, has a row in the
// page for troubleshooting, and each code one in a page that defines it.
func TestErrorsAreExplained(t *testing.T) {
	read := func(files ...string) string {
		var all strings.Builder
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(text)
		}
		return all.String()
	}
	rows := func(text string) string {
		return strings.Join(regexp.MustCompile(`(?m)^\|.*$`).FindAllString(text, -1), "\n")
	}
	defined, explained := rows(read("docs/reference/bundle-format.md", "docs/trust.md")), rows(read("docs/troubleshooting.md"))
	codes := errorCode.FindAllStringSubmatch(read("bundle/archive/errors.go", "bundle/claim.go", "bundle/format_error.go", "bundle/sign/errors.go", "installer/report/refused.go"), -1)
	if len(codes) < 45 {
		t.Fatalf("only %d codes", len(codes))
	}
	for _, m := range codes {
		for page, text := range map[string]string{"the pages that define codes": defined, "docs/troubleshooting.md": explained} {
			if !strings.Contains(text, "`"+m[1]+"`") {
				t.Errorf("%s: no row for %s", page, m[1])
			}
		}
	}
	exits := regexp.MustCompile(`(?m)^\| (\d+) \|`).FindAllStringSubmatch(read("docs/reference/exit-codes.md"), -1)
	if len(exits) < 6 {
		t.Fatalf("only %d exit codes", len(exits))
	}
	for _, m := range exits {
		if m[1] != "0" && !strings.Contains(explained, "| "+m[1]+" |") {
			t.Errorf("docs/troubleshooting.md: no row for exit code %s", m[1])
		}
	}
}

// pageInCode is a page as code names it, from the root of the module or by its own way up.
var pageInCode = regexp.MustCompile(`(?:^|[^/\w])(?:\.\./)*(docs/[a-z0-9/-]+\.md)`)

// TestPagesInCodeExist: help, errors, comments and tests name pages that are there.
func TestPagesInCodeExist(t *testing.T) {
	named := 0
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == "build" || len(name) > 1 && strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".go" && name != "Makefile":
			return nil
		}
		text, err := os.ReadFile(name)
		for _, m := range pageInCode.FindAllSubmatch(text, -1) {
			named++
			if _, err := os.Stat(string(m[1])); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		return err
	})
	if err != nil || named < 40 {
		t.Errorf("%d pages: %v", named, err)
	}
}
