package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// event is a line of `go test -json`; see `go doc test2json`, and `go help
// buildjson` for those of a build.
type event struct {
	Action      string
	Package     string
	Test        string
	Output      string
	ImportPath  string // the package being built
	FailedBuild string
}

// outcome is the result of one run of go test.
type outcome struct {
	failed   []test   // top-level tests, in the order in which they failed
	serious  []string // why nothing is run again: packages that failed without a test, races, panics
	skipped  []skip
	passed   map[test]bool // top-level tests
	packages map[string]*packet
}

// test is a top-level test of a package, or a subtest after a slash.
type test struct{ Package, Name string }

func (t test) String() string { return t.Name + " (" + t.Package + ")" }

// top returns the top-level test of a test.
func (t test) top() test {
	name, _, _ := strings.Cut(t.Name, "/")
	return test{t.Package, name}
}

type skip struct {
	test
	reason string
}

// packet is the state of a package while its tests run.
type packet struct {
	own     strings.Builder             // output outside of tests
	output  map[string]*strings.Builder // output of each test that has not passed
	failed  bool                        // a test failed
	race    bool                        // the race detector reported a race, in any test
	skipped map[string]bool
}

// race and crash are never run again: the second run may hide them.
var (
	race  = regexp.MustCompile(`WARNING: DATA RACE|race detected during execution of test|race detected outside of test`)
	crash = regexp.MustCompile(`(?m)^\s*(panic: |fatal error: |goroutine \d+ (gp=\S+ m=\S+ )?(mp=\S+ )?\[|SIGQUIT: |unexpected fault address )`)
	late  = regexp.MustCompile(`(?m)^\s*panic: test timed out after (\S+)\n\s*running tests:\n((?:\t\t.*\n)+)`)
	frame = regexp.MustCompile(`^(=== (RUN|PAUSE|CONT|NAME) |\s*--- (PASS|SKIP): )`)
)

// listen reads the events of one run, and prints what `go test` would print: the result of
// each package and the output of failed tests; with verbose, everything.
func listen(in io.Reader, out io.Writer, verbose bool) (*outcome, error) {
	o := &outcome{passed: map[test]bool{}, packages: map[string]*packet{}}
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			var e event
			if json.Unmarshal([]byte(line), &e) != nil || e.Action == "" {
				fmt.Fprint(out, line) // from go itself, before any test
			} else {
				if verbose && strings.HasSuffix(e.Action, "output") {
					fmt.Fprint(out, e.Output)
				}
				if text := o.take(e); !verbose {
					fmt.Fprint(out, text)
				}
			}
		}
		if err == io.EOF {
			return o, nil
		}
		if err != nil {
			return o, err
		}
	}
}

// take processes one event, and returns what is to be printed now.
func (o *outcome) take(e event) string {
	if e.Action == "build-output" {
		return e.Output
	}
	if e.Package == "" {
		return ""
	}
	p := o.packages[e.Package]
	if p == nil {
		p = &packet{output: map[string]*strings.Builder{}, skipped: map[string]bool{}}
		o.packages[e.Package] = p
	}
	t := test{e.Package, e.Test}
	switch {
	case e.Action == "output":
		p.race = p.race || race.MatchString(e.Output)
		p.to(e.Test).WriteString(e.Output)
	case e.Test == "" && slices.Contains([]string{"pass", "skip", "fail"}, e.Action):
		return o.ended(e, p)
	case e.Action == "pass":
		// What a process writes when it ends early counts as the output of the test that wrote last, which
		// may have passed.
		if !crash.MatchString(p.to(e.Test).String()) {
			delete(p.output, e.Test)
		}
		if t == t.top() {
			o.passed[t] = true
		}
	case e.Action == "skip":
		o.skipped = append(o.skipped, skip{t, reason(p.to(e.Test).String())})
		delete(p.output, e.Test)
	case e.Action == "fail":
		p.failed = true
		text := p.to(e.Test).String()
		delete(p.output, e.Test)
		if crash.MatchString(text) {
			o.serious = append(o.serious, t.String()+" panicked")
		}
		if t == t.top() {
			o.failed = append(o.failed, t)
		}
		return unframed(text)
	}
	return ""
}

// ended processes the result of a package.
func (o *outcome) ended(e event, p *packet) string {
	text := p.own.String()
	if e.Action != "fail" {
		var kept strings.Builder
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "ok  \t") || strings.HasPrefix(line, "?   \t") || strings.Contains(line, "[no test files]") {
				kept.WriteString(line)
			}
		}
		return kept.String()
	}
	var out strings.Builder
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for name := range p.output {
			if !yield(name) {
				return
			}
		}
	}) {
		// Tests that were running when the package ended.
		unended := p.output[name].String()
		out.WriteString(unframed(unended))
		if running := o.late(e.Package, unended); running {
			p.failed = true
		} else if crash.MatchString(unended) {
			o.serious = append(o.serious, test{e.Package, name}.String()+" panicked")
		}
	}
	out.WriteString(text)
	switch {
	case p.race:
		o.serious = append(o.serious, e.Package+": a data race")
	case o.late(e.Package, text):
	case crash.MatchString(text):
		o.serious = append(o.serious, e.Package+" panicked")
	case e.FailedBuild != "":
		o.serious = append(o.serious, e.Package+" does not build")
	case !p.failed:
		o.serious = append(o.serious, e.Package+" failed, and none of its tests")
	}
	return out.String()
}

// late notes the tests that were running when the time of their package was over, if text says so.
// The test whose output has the message may be another one, which only wrote last.
func (o *outcome) late(pkg, text string) bool {
	found := late.FindStringSubmatch(text)
	if found == nil {
		return false
	}
	for line := range strings.Lines(found[2]) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		o.serious = append(o.serious, test{pkg, name}.String()+" was running when the tests timed out after "+found[1])
	}
	return true
}

// to returns the buffer for the output of a test, or for output outside of tests.
func (p *packet) to(name string) *strings.Builder {
	if name == "" {
		return &p.own
	}
	if p.output[name] == nil {
		p.output[name] = &strings.Builder{}
	}
	return p.output[name]
}

// unframed removes the lines that go test prints only with -v.
func unframed(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if !frame.MatchString(line) {
			out.WriteString(line)
		}
	}
	return out.String()
}

// place matches the position at the start of a test's log line.
var place = regexp.MustCompile(`^\s*[\w.-]+\.go:\d+: `)

// reason returns the last message of a test before it was skipped.
func reason(output string) string {
	said := "no reason given"
	for line := range strings.Lines(output) {
		if place.MatchString(line) {
			said = strings.TrimSpace(place.ReplaceAllString(line, ""))
		}
	}
	return said
}
