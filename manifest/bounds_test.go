package manifest

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/manifest/document"
	"github.com/mensylisir/kubexm/testdata/fair"
)

// TestBounds: input that is never written by hand into a config, but possibly by an attacker, is
// refused in bounded time and memory, with a word on why. Package document has the rest.
func TestBounds(t *testing.T) {
	const k = "\n  kubernetes: {version: v1.34.10}\n"
	many := func(n int, f func(i int) string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(f(i))
		}
		return b.String()
	}
	bomb := "\n  addons:\n    - name: a\n      values:\n        a0: &a0 {x: 1, y: 2}\n" + many(30, func(i int) string {
		return fmt.Sprintf("        a%d: &a%d {x: *a%d, y: *a%d}\n", i+1, i+1, i, i)
	}) + k[1:]
	for _, x := range []struct{ name, text, want string }{
		{"alias bomb in values", header + bomb, "nested too deeply or has too many values"},
		{"alias bomb in fields", header + k + "  system:\n    rpms: &a [x, x, x, x, x, x, x, x, x, x]\n    debs: [" + strings.TrimSuffix(many(20000, func(int) string { return "*a," }), ",") + "]\n", "is a list, but must be text"},
		{"deep nesting", header + k + "  addons: [{name: a, values: " + strings.Repeat("{a: ", 5000) + "1" + strings.Repeat("}", 5000) + "}]\n", "nested too deep"},
		{"many unknown fields", header + k + many(10000, func(i int) string { return fmt.Sprintf("  f%dooooooo: 1\n", i) }), "has more problems than these 200"},
		{"many wrong hosts", header + k + "  hosts:\n" + many(3000, func(i int) string { return "    - {nam: x, port: y}\n" }), "has more problems than these 200"},
		{"many ranges", header + k + "  hosts: [{name: node1, address: 192.0.2.1}]\n  roleGroups: {worker: [" + strings.TrimSuffix(many(5000, func(i int) string { return fmt.Sprintf("'n%d[1:10000]',", i) }), ",") + "]}\n", "not in spec.hosts"},
	} {
		t.Run(x.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			clock := fair.Start()
			problems := Check(strings.NewReader(x.text))
			took := clock.Took()
			runtime.ReadMemStats(&after)
			text := problems.Error()
			if problems.Err() == nil || !strings.Contains(text, x.want) {
				t.Errorf("%q is missing in:\n%.2000s", x.want, text)
			}
			if len(problems) > document.MaxProblems+1 || len(text) > 200_000 {
				t.Errorf("%d problems, %d bytes", len(problems), len(text))
			}
			// Far above what any of them takes, far below what an unbounded one would.
			clock.Limit(t, took, 30*time.Second)
			if mb := (after.TotalAlloc - before.TotalAlloc) >> 20; mb > 2000 {
				t.Errorf("allocated %d MB", mb)
			}
		})
	}
}

// TestManyHosts: a large cluster is read in no time.
func TestManyHosts(t *testing.T) {
	var b strings.Builder
	b.WriteString(header + "\n  kubernetes: {version: v1.34.10, nodeCidrMaskSize: 27, maxPods: 30}\n  network: {kubePodsCIDR: 10.0.0.0/12, kubeServiceCIDR: 10.96.0.0/16}\n  roleGroups: {etcd: [node1], master: [node1], worker: ['node[1:2000]']}\n  hosts:\n")
	for i := 1; i <= 2000; i++ {
		fmt.Fprintf(&b, "    - {name: node%d, address: 172.16.%d.%d, password: \"${env:P}\"}\n", i, i/250, i%250+1)
	}
	clock := fair.Start()
	c, problems := Decode(strings.NewReader(b.String()))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Public(); err != nil || len(c.HostsWith(RoleWorker)) != 2000 {
		t.Errorf("%d workers, %v", len(c.HostsWith(RoleWorker)), err)
	}
	clock.Within(t, 30*time.Second)
}

// TestBytesThatMeanNothing: line ends of Windows, a byte order mark, blanks at
// line ends and a missing last line end change nothing.
func TestBytesThatMeanNothing(t *testing.T) {
	text := header + "\n  kubernetes:\n    version: v1.34.10\n  dns:\n    dnsEtcHosts: |\n      192.0.2.1 a.example\n"
	want, err := mustDecode(t, strings.TrimPrefix(text, header)).Public()
	if err != nil {
		t.Fatal(err)
	}
	for name, changed := range map[string]string{
		"CRLF": strings.ReplaceAll(text, "\n", "\r\n"), "BOM": "\ufeff" + text, "blanks": strings.ReplaceAll(text, ":\n", ":  \n"),
		"no last line end": strings.TrimSuffix(text, "\n") + "\n...", "document marks": "---\n" + text,
	} {
		c, problems := Decode(strings.NewReader(changed))
		if err := problems.Err(); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, err := c.Public(); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
	}
}
