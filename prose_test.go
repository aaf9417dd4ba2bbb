package kubexm_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// proseLimits are words in a sentence, of a page.
type proseLimits struct{ median, most int } // most: nine of ten sentences have no more

// maxColumns is how long a line of prose may be.
const maxColumns = 120

// generatedPages follow from code: their words are held where they are written.
var generatedPages = []string{
	"docs/existing-cluster.md", "docs/reference/config.md", "docs/reference/config-not-yet-built.md",
	"docs/reference/steps.md", "docs/reference/preflight.md", "docs/reference/hostile-input.md",
}

// notForReaders are words of papers that no reader has.
var notForReaders = regexp.MustCompile(`(?i)deployment matrix|design document|\bS\d+:`)

// TestProseIsShort holds the README and the hand-written pages to short sentences and
// lines.
func TestProseIsShort(t *testing.T) {
	pages := slices.DeleteFunc(docsPages(t), func(page string) bool { return slices.Contains(generatedPages, page) })
	for _, page := range append(pages, "README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "SECURITY.md", "testdata/lab/README.md", "testdata/bench/README.md") {
		limits := proseLimits{median: 17, most: 30}
		if page == "README.md" {
			limits = proseLimits{median: 15, most: 25}
		}
		text, err := os.ReadFile(filepath.FromSlash(page))
		if err != nil {
			t.Fatal(err)
		}
		if found := notForReaders.FindString(string(text)); found != "" {
			t.Errorf("%s: %q means nothing to a reader", page, found)
		}
		blocks, long := prose(string(text))
		for _, line := range long {
			t.Errorf("%s: over %d columns: %s", page, maxColumns, line)
		}
		lengths := sentences(blocks)
		if len(lengths) == 0 {
			continue // a page of tables
		}
		slices.Sort(lengths)
		got := proseLimits{lengths[len(lengths)/2], lengths[len(lengths)*9/10]}
		t.Logf("%-40s %3d sentences, median %2d, nine of ten at most %2d", page, len(lengths), got.median, got.most)
		if got.median > limits.median || got.most > limits.most {
			t.Errorf("%s: a sentence has %d words (median), and nine of ten have up to %d: want %d and %d at most",
				page, got.median, got.most, limits.median, limits.most)
		}
	}
}

var (
	// An item of a list begins a block of its own, as an empty line does.
	listItem = regexp.MustCompile(`^\s*(?:[-*]|\d+\.) `)
	// Code, links and comments count as what a reader reads of them.
	codeSpan    = regexp.MustCompile("`[^`]*`")
	linkText    = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	htmlComment = regexp.MustCompile(`(?s)<!--.*?-->`)
	fenced      = regexp.MustCompile("(?ms)^```.*?^```$")
	sentenceEnd = regexp.MustCompile(`[.!?]["')*]*(?:\s+|$)`)
)

// prose gives the paragraphs and list items of a page without headings, tables and
// code, and its lines of prose that are too long.
func prose(text string) (blocks, long []string) {
	text = fenced.ReplaceAllString(htmlComment.ReplaceAllString(text, ""), "")
	var block []string
	flush := func() {
		if len(block) > 0 {
			blocks = append(blocks, strings.Join(block, " "))
		}
		block = nil
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n ")
		columns := len([]rune(line))
		switch trimmed := strings.TrimSpace(line); {
		case trimmed == "", strings.HasPrefix(trimmed, "#"), strings.HasPrefix(trimmed, "|"):
			flush()
			continue
		case strings.HasPrefix(line, "    ") && len(block) == 0:
			continue // code
		case listItem.MatchString(line):
			flush()
			line = listItem.ReplaceAllString(line, "")
		}
		if columns > maxColumns {
			long = append(long, line)
		}
		block = append(block, strings.TrimSpace(line))
	}
	flush()
	return blocks, long
}

// sentences gives how many words each sentence of the blocks has.
func sentences(blocks []string) (lengths []int) {
	for _, block := range blocks {
		block = codeSpan.ReplaceAllString(linkText.ReplaceAllString(block, "$1"), "code")
		for _, sentence := range sentenceEnd.Split(block, -1) {
			if n := len(strings.Fields(sentence)); n > 0 {
				lengths = append(lengths, n)
			}
		}
	}
	return lengths
}

// TestProseIsCounted: what a sentence is.
func TestProseIsCounted(t *testing.T) {
	blocks, long := prose("# One heading\n\nTwo words. These are `three and more` of [five](x.md).\n\n    code here. And here.\n\n- an item\n- and\n  another\n\n| a | table. |\n\n" +
		strings.Repeat("x", maxColumns+1) + "\n")
	if got, want := sentences(blocks), []int{2, 5, 2, 2, 1}; !slices.Equal(got, want) || len(long) != 1 {
		t.Errorf("%v words, %d long lines: want %v and 1", got, len(long), want)
	}
}
