package kubexm_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// pageShape is what a page and its translation have in common.
type pageShape struct {
	Headings []string // of each its number signs
	Rows     int      // of tables
	Code     []string // the lines of its code blocks
}

// TestChineseFollows: the README and each how-to page have a page in Chinese, and no
// other page is there. A page has the headings, code blocks and table rows of its
// original, which it names.
func TestChineseFollows(t *testing.T) {
	pairs := map[string]string{"README.md": "README.zh.md"}
	for folder, other := range map[string]string{"docs": "docs/zh", "docs/zh": "docs"} {
		pages, err := filepath.Glob(folder + "/*.md")
		if err != nil || len(pages) < 10 {
			t.Fatalf("%s: %d pages: %v", folder, len(pages), err)
		}
		for _, page := range pages {
			of := other + "/" + filepath.Base(page)
			if _, err := os.Stat(of); err != nil {
				t.Errorf("%s: want %s beside it", page, of)
			} else if folder == "docs" {
				pairs[page] = of
			}
		}
	}
	for english, chinese := range pairs {
		original, translated := readPage(t, english), readPage(t, chinese)
		if d := cmp.Diff(shapeOf(original), shapeOf(translated)); d != "" {
			t.Errorf("%s does not follow %s (-English +Chinese):\n%s", chinese, english, d)
		}
		way, err := filepath.Rel(filepath.Dir(chinese), english)
		if want := "\n\n本文译自 [English](" + way + ")，以英文版为准。\n"; err != nil || !strings.Contains(translated, want) {
			t.Errorf("%s: want the line%s%v", chinese, want, err)
		}
	}
}

func readPage(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// shapeOf gives the shape of a page.
func shapeOf(text string) (s pageShape) {
	var fence, code bool
	after, item := true, 0 // whether a code block may begin, and the width of the list's mark
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n ")
		indent := len(line) - len(strings.TrimLeft(line, " "))
		mark := listItem.FindString(line)
		switch isFence := strings.HasPrefix(line[indent:], "```"); {
		case fence || isFence:
			fence = fence != isFence
			s.Code = append(s.Code, line)
		case line == "":
			after = true
		case (after || code) && indent >= item+4:
			code = true
			s.Code = append(s.Code, line)
		default:
			after, code = false, false
			if mark != "" || indent == 0 {
				item = len(mark)
			}
			if number, _, ok := strings.Cut(line, " "); ok && strings.Trim(number, "#") == "" && number != "" {
				s.Headings = append(s.Headings, number)
			} else if line[indent] == '|' {
				s.Rows++
			}
		}
	}
	return s
}

// TestShapeIsSeen: what of a page is a heading, a row and code.
func TestShapeIsSeen(t *testing.T) {
	got := shapeOf("# One\n\n    code\n\n    # more\ntext\n    goes on\n## Two\n| a |\n|---|\n\n1. item\n\n    of the item\n\n        its code\n\n```\n# fenced\n```\n")
	want := pageShape{Headings: []string{"#", "##"}, Rows: 2, Code: []string{"    code", "    # more", "        its code", "```", "# fenced", "```"}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
