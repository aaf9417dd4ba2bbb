package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"go/scanner"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/installer/sitetest"
	"github.com/mensylisir/kubexm/testdata/lab/components"
)

// effect is what a scenario tests, computed without a lab.
type effect struct {
	Sum   string            // digest of all parts
	Parts map[string]string // "hosts", "order", "components", "tests", "source": short digests that show what has changed
	lines []string          // of the hosts and the order part
}

// effects returns the effects of all scenarios. tell returns the lines of a config, stamps
// identifies what the lab's components are built from, without and with those of add-ons.
func effects(root string, t *table, tell func(made) ([]string, error), stamps map[bool][]string) (map[string]effect, error) {
	var walk [][]string
	for _, m := range t.Walk {
		lines, err := tell(m)
		if err != nil {
			return nil, fmt.Errorf("the walk, %s: %w", m.Config, err)
		}
		walk = append(walk, lines)
	}
	all := map[string]effect{}
	for _, s := range t.Scenarios {
		lines, err := tell(s.made)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name, err)
		}
		tests, err := contents(root, append([]string{s.Config}, s.Files...))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name, err)
		}
		source, err := contents(root, s.Covers)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name, err)
		}
		all[s.Name] = newEffect(sitetest.Without(lines, walk...), stamps[s.Addons], tests, source)
	}
	return all, nil
}

func newEffect(lines, stamps, tests, source []string) effect {
	e := effect{Parts: map[string]string{}, lines: lines}
	var order, does []string
	for _, line := range lines {
		if ofOrder.MatchString(line) {
			order = append(order, line)
		} else {
			does = append(does, line)
		}
	}
	whole := sha256.New()
	for _, part := range []struct {
		name  string
		lines []string
	}{{"hosts", does}, {"order", order}, {"components", stamps}, {"tests", tests}, {"source", source}} {
		sum := sumOf(strings.Join(part.lines, "\n"))
		e.Parts[part.name] = sum[:12]
		_, _ = io.WriteString(whole, part.name+" "+sum+"\n") // writing to a hash never fails
	}
	e.Sum = hex.EncodeToString(whole.Sum(nil))
	return e
}

// ofOrder is a line of a transcript that tells after which step another one runs.
var ofOrder = regexp.MustCompile(`^[a-z-]+ [a-z0-9.-]+ after [a-z0-9.-]+$`)

// changed returns the parts in which e differs from what was shown.
func (e effect) changed(was shown) (parts []string) {
	says := map[string]string{"hosts": "what it does to hosts", "order": "the order of its steps", "components": "the lab's components", "tests": "its test", "source": "the source that it covers"}
	for _, part := range []string{"hosts", "order", "components", "tests", "source"} {
		if e.Parts[part] != was.Parts[part] {
			parts = append(parts, says[part])
		}
	}
	return parts
}

// stampsOf identifies what the lab's components are built from, without and with those of
// add-ons.
func stampsOf(ctx context.Context, root string) (map[bool][]string, error) {
	rows, err := components.Table("")
	if err != nil {
		return nil, err
	}
	addons, err := components.Addons()
	if err != nil {
		return nil, err
	}
	b := &components.Builder{Root: root}
	all := map[bool][]string{}
	for i, c := range append(rows, addons...) {
		stamp, err := b.Stamp(ctx, c)
		if err != nil {
			return nil, fmt.Errorf("component %s: %w", c.Name, err)
		}
		line := c.Name + " " + c.Version + " " + stamp
		all[true] = append(all[true], line)
		if i < len(rows) {
			all[false] = append(all[false], line)
		}
	}
	return all, nil
}

// contents returns a line with the digest of each file; of a folder, of its Go files except
// tests.
func contents(root string, paths []string) ([]string, error) {
	var all []string
	for _, path := range paths {
		files := []string{filepath.Join(root, path)}
		if st, err := os.Stat(files[0]); err != nil {
			return nil, err
		} else if st.IsDir() {
			if files, err = filepath.Glob(filepath.Join(files[0], "*.go")); err != nil {
				return nil, err
			}
			files = slices.DeleteFunc(files, func(f string) bool { return strings.HasSuffix(f, "_test.go") })
		}
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			name, err := filepath.Rel(root, file)
			if err != nil {
				return nil, err
			}
			if strings.HasSuffix(name, ".go") {
				b = withoutComments(b)
			}
			all = append(all, name+" "+sumOf(string(b)))
		}
	}
	return all, nil
}

// withoutComments returns the tokens of a Go file, one on each line. Comments and layout
// change nothing that a host sees; directives such as //go:build do.
func withoutComments(source []byte) []byte {
	file := token.NewFileSet().AddFile("", -1, len(source))
	var s scanner.Scanner
	s.Init(file, source, func(token.Position, string) {}, scanner.ScanComments) // what the compiler refuses is no concern here
	var out bytes.Buffer
	for {
		_, tok, text := s.Scan()
		switch {
		case tok == token.EOF:
			return out.Bytes()
		case tok == token.COMMENT && !strings.HasPrefix(text, "//go:"), tok == token.SEMICOLON && text == "\n":
		default:
			fmt.Fprintln(&out, tok, text)
		}
	}
}

func sumOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
