package sitetest

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/mensylisir/kubexm/installer/audit"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps/connector"
)

// Transcript is everything that runs did to a site's hosts: the plans, and each command that
// may change something, with its input. It is a set of lines without anything that differs
// between two installations of the same cluster, and without names or addresses of hosts: two
// equal sites have the same lines.
type Transcript struct {
	site *Site
	mask *mask
	mu   sync.Mutex
	seen map[string]bool
}

// Transcribe starts a transcript of all further runs of the site.
func (s *Site) Transcribe() *Transcript {
	t := &Transcript{site: s, mask: newMask(s.Cluster), seen: map[string]bool{}}
	s.OnCommand = t.heard
	return t
}

// Lines returns the lines, sorted and without duplicates.
func (t *Transcript) Lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(maps.Keys(t.seen))
}

// Plan adds the steps of a pipeline, and the roles of the hosts that they run on.
func (t *Transcript) Plan(p Pipe) {
	g := t.site.Graph(p, nil)
	for _, n := range g.Nodes {
		m := n.Step.Meta()
		of := g.Name + " " + m.Name + " "
		for _, d := range n.Deps {
			t.add(of + "after " + stepOf(d.On.ID))
		}
		for _, need := range m.Needs {
			t.add(of + "needs " + string(need.Kind) + " " + need.Name)
		}
		for _, h := range n.Hosts {
			t.add(of + "on " + strings.Join(t.rolesOf(h), or))
		}
	}
}

// or separates the roles of a host that a step runs on: which of them is the reason is
// unknown.
const or = " or "

// rolesOf returns the roles of a host, each with whether it is the first host of the role.
func (t *Transcript) rolesOf(h manifest.Host) (all []string) {
	if plan.IsLead(h) {
		return []string{"the lead"}
	}
	for _, role := range []string{manifest.RoleMaster, manifest.RoleWorker, manifest.RoleEtcd, manifest.RoleRegistry} {
		for i, other := range t.site.Cluster.HostsWith(role) {
			switch {
			case other.Name != h.Name:
			case i == 0:
				all = append(all, "the first "+role)
			default:
				all = append(all, "a further "+role)
			}
		}
	}
	return all
}

// stepOf returns the step's name in a node's id: module/task/step[host].
func stepOf(id string) string {
	name, _, _ := strings.Cut(path.Base(id), "[")
	return name
}

// heard adds one command. Commands that change nothing are left out: how often a host is
// polled depends on its speed.
func (t *Transcript) heard(_, node string, c connector.Cmd, stdin []byte) {
	if audit.ReadOnlyVerb(c.Verb) {
		return
	}
	argv := c.Argv
	if c.Verb != "" && c.Verb != connector.VerbExec { // the runner's scripts are always the same
		argv = c.Args()
	}
	switch c.Verb { // without sizes and digests: the content is included
	case connector.VerbWrite:
		argv = append([]string{argv[0]}, argv[2:]...)
	case connector.VerbPut: // which files one command transfers is no effect: a line for the bytes of each, and one for its place
		dir, mode, owner := argv[0], argv[1], argv[2]
		for f := range slices.Chunk(argv[3:], 3) {
			size, err := strconv.Atoi(f[1])
			if err != nil || size > len(stdin) {
				size = len(stdin)
			}
			file := path.Join(dir, f[0])
			t.content(t.mask.text(fmt.Sprintf("%s %s %s", stepOf(node), c.Verb, file), c.Secrets), stdin[:size], c.Secrets)
			t.content(t.mask.text(strings.TrimSpace(fmt.Sprintf("%s fs.seal %s %s %s", stepOf(node), file, mode, owner)), c.Secrets), nil, c.Secrets)
			stdin = stdin[size:]
		}
		return
	}
	if c.Verb == connector.VerbRemove { // how many files one command removes is no effect
		for _, file := range argv {
			t.add(t.mask.text(fmt.Sprintf("%s %s %s", stepOf(node), c.Verb, file), c.Secrets))
		}
		return
	}
	of := strings.TrimSpace(fmt.Sprintf("%s %s %s", stepOf(node), c.Verb, strings.Join(argv, " ")))
	t.content(t.mask.text(of, c.Secrets), stdin, c.Secrets)
}

// content adds a command with its input.
func (t *Transcript) content(text string, stdin []byte, secrets []string) {
	t.add(text)
	head, _, _ := strings.Cut(text, "\n")
	switch {
	case strings.Contains(head, ".password "):
		t.add(head + " < <password>")
		return
	case strings.HasPrefix(head, "kubernetes.record-applied "): // only the effects of a config count
		t.add(head + " < <config>")
		return
	}
	for line := range strings.Lines(t.mask.text(string(stdin), secrets)) {
		t.add(head + " < " + strings.TrimRight(line, "\n"))
	}
}

func (t *Transcript) add(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seen[strings.ReplaceAll(line, "\n", "\\n")] = true
}

// Without returns the lines that are in none of others. A step on a host with several roles
// counts as included if it is included for a host with one of them.
func Without(lines []string, others ...[]string) []string {
	known := map[string]bool{}
	for _, other := range others {
		for _, l := range other {
			for _, one := range alternatives(l) {
				known[one] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(lines), func(l string) bool {
		return slices.ContainsFunc(alternatives(l), func(one string) bool { return known[one] })
	})
}

// placement matches the line of a step on a host.
var placement = regexp.MustCompile(`^(\S+ \S+ on )((?:the first|a further) .*)$`)

// alternatives returns a line for each role of the host that a step runs on.
func alternatives(line string) []string {
	m := placement.FindStringSubmatch(line)
	if m == nil {
		return []string{line}
	}
	var all []string
	for role := range strings.SplitSeq(m[2], or) {
		all = append(all, m[1]+role)
	}
	return all
}
