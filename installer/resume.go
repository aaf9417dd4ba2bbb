package installer

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/mensylisir/kubexm/installer/engine"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/runner"
)

// Head is the first line of a run's journal and describes the run. A later run resumes from
// that journal only if everything but the run's id is the same.
type Head struct {
	Run      string `json:"run"` // random id of this run; the hosts store it until they reboot
	Pipeline string `json:"pipeline"`
	Config   string `json:"config"`         // sha256 of the config without its secrets
	Root     string `json:"root,omitempty"` // of the bundle; empty without one
	Plan     string `json:"plan"`           // sha256 of the steps and their hosts
	Kubexm   string `json:"kubexm"`         // the version that executes them
	DryRun   bool   `json:"dryRun,omitempty"`
	// Skipped are the checks that the user skipped.
	Skipped []string `json:"skipped,omitempty"`
	// Away are the hosts that the user skipped.
	Away []string `json:"away,omitempty"`
	// Flags are the pipeline's flags that the user gave.
	Flags []string `json:"flags,omitempty"`
}

// headLine is the JSON line of a Head.
type headLine struct {
	Head *Head `json:"head"`
}

// Resumption describes what a run resumes from the previous one.
type Resumption struct {
	Journal string // of the previous run; empty if there is none
	Passed  int    // steps on hosts that are not checked again
	// Why is the reason why nothing was resumed, or nothing of some hosts.
	Why string
}

// head describes a run of g.
func (s *Session) head(g *plan.Graph, o RunOptions, run string) (Head, error) {
	config, err := s.Cluster.Public()
	if err != nil {
		return Head{}, err
	}
	h := Head{Run: run, Pipeline: g.Name, Config: hashed(config), Plan: hashed([]byte(g.String())), Kubexm: o.Version, DryRun: o.DryRun, Skipped: o.Skipped, Away: s.Away, Flags: o.Flags}
	if s.Bundle != nil {
		h.Root = s.Bundle.Root.Digest.String()
	}
	return h, nil
}

func hashed(b []byte) string { return fmt.Sprintf("%x", sha256.Sum256(b)) }

// differs returns in what an earlier run differs; "" if in nothing.
func (h Head) differs(before Head) string {
	switch {
	case before.Pipeline != h.Pipeline:
		return "the last run was a " + before.Pipeline
	case before.Config != h.Config:
		return "the config has changed"
	case before.Root != h.Root:
		return "the bundle has changed"
	case !slices.Equal(before.Skipped, h.Skipped):
		return "the last run skipped other checks"
	case !slices.Equal(before.Away, h.Away):
		return "the last run skipped other hosts"
	case !slices.Equal(before.Flags, h.Flags):
		return "the last run had other flags"
	case before.Kubexm != h.Kubexm || before.Plan != h.Plan:
		return "kubexm or its plan has changed"
	}
	return ""
}

// resumption determines which steps need not be checked again: steps that the journal of the
// last run lists as done, on hosts that no other run has changed since and that have not
// rebooted. A step on the lead is trusted only for the master that was the lead then.
func (s *Session) resumption(ctx context.Context, g *plan.Graph, head Head) (map[string]string, Resumption) {
	path, before, done, err := lastRun(filepath.Join(s.Workdir.Dir, "runs"))
	r := Resumption{Journal: path}
	switch {
	case err != nil:
		r.Why = "the journal of the last run cannot be read: " + err.Error()
	case path == "":
		r.Why = "there is no earlier run"
	default:
		r.Why = head.differs(before)
	}
	if r.Why != "" {
		return nil, r
	}
	var mu sync.Mutex
	trusted := map[string]bool{}
	var others []string
	_ = s.eachHost(g, func(h *steps.Host) error {
		last, err := h.ReadFile(ctx, s.lastPath())
		mu.Lock()
		defer mu.Unlock()
		if trusted[h.Name] = err == nil && strings.TrimSpace(string(last)) == before.Run; !trusted[h.Name] {
			others = append(others, h.Name)
		}
		return nil // a host that cannot be queried is checked completely
	})
	passed := map[string]string{}
	for key := range engine.Resumable(g, func(node, host string) bool { return trusted[done[engine.Key(node, host)]] }) {
		passed[key] = done[key]
	}
	if r.Passed = len(passed); len(others) > 0 {
		slices.Sort(others)
		r.Why = "every step is checked on hosts that have rebooted since or that another run has changed: " + strings.Join(others, ", ")
	}
	return passed, r
}

// lastPath is the file in which a host stores the id of the last run. It is in /run, so that a
// reboot deletes it.
func (s *Session) lastPath() string { return "/run/kubexm/" + s.Cluster.Metadata.Name + ".last" }

// mark writes the id of the run to every host of the plan.
func (s *Session) mark(ctx context.Context, g *plan.Graph, run string) error {
	return s.eachHost(g, func(h *steps.Host) error {
		_, err := h.Mkdir(ctx, "/run/kubexm", runner.Attr{Mode: 0o700})
		if err == nil {
			err = h.WriteFile(ctx, s.lastPath(), []byte(run+"\n"), runner.Attr{Mode: 0o600})
		}
		if err != nil {
			return &HostError{Host: h.Name, Address: h.Address, Err: fmt.Errorf("record the run on the host: %w", err)}
		}
		return nil
	})
}

// unmark removes these files when nothing of the cluster is left.
func (s *Session) unmark(ctx context.Context, g *plan.Graph) error {
	return s.eachHost(g, func(h *steps.Host) error {
		if err := h.Remove(ctx, s.lastPath()); err != nil {
			return &HostError{Host: h.Name, Address: h.Address, Err: err}
		}
		if err := h.RemoveDir(ctx, "/run/kubexm"); err != nil && !errors.Is(err, runner.ErrNotEmpty) {
			return &HostError{Host: h.Name, Address: h.Address, Err: err}
		}
		return nil
	})
}

// eachHost calls do for all hosts of a plan, at most s.Parallel at a time.
func (s *Session) eachHost(g *plan.Graph, do func(*steps.Host) error) error {
	var group errgroup.Group
	group.SetLimit(max(s.Parallel, 1))
	for _, h := range g.Hosts() {
		group.Go(func() error { return do(s.Host(h)) })
	}
	return group.Wait()
}

// lastRun reads the newest journal of a run that was not a dry run. It returns the steps that
// the run saw done, by their keys, with their hosts.
func lastRun(dir string) (path string, head Head, done map[string]string, err error) {
	all, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		return "", head, nil, err
	}
	slices.SortFunc(all, func(a, b string) int { return runOrder(b, a) })
	for _, path := range all {
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return path, head, nil, err
		}
		head, done, err := readJournal(text)
		if err != nil || !head.DryRun {
			return path, head, done, err
		}
	}
	return "", head, nil, nil
}

// runOrder compares the names of two journals: those of the same second are numbered.
func runOrder(a, b string) int {
	cut := func(p string) (string, int) {
		name := strings.TrimSuffix(filepath.Base(p), ".jsonl")
		if len(name) <= len(runTime) {
			return name, 1
		}
		n, _ := strconv.Atoi(name[len(runTime)+1:]) // any order will do for other names
		return name[:len(runTime)], n
	}
	nameA, nA := cut(a)
	nameB, nB := cut(b)
	return cmp.Or(cmp.Compare(nameA, nameB), cmp.Compare(nA, nB))
}

// readJournal parses a journal. An incomplete last line is ignored: the process was killed
// while writing it. Any other invalid line is an error.
func readJournal(text []byte) (head Head, done map[string]string, err error) {
	whole := text[:bytes.LastIndexByte(text, '\n')+1]
	lines := bufio.NewScanner(bytes.NewReader(whole))
	lines.Buffer(nil, 16<<20)
	if !lines.Scan() {
		return head, nil, errors.New("it is empty")
	}
	first := headLine{Head: &head}
	if err := json.Unmarshal(lines.Bytes(), &first); err != nil || head.Run == "" {
		return head, nil, errors.New("its first line does not describe a run")
	}
	done = map[string]string{}
	for n := 2; lines.Scan(); n++ {
		var e struct {
			engine.Event
			auditLine
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return head, nil, fmt.Errorf("line %d: %w", n, err)
		}
		if e.Audit != nil {
			continue
		}
		switch e.Outcome {
		case engine.Ran, engine.Skipped, engine.Resumed:
			if key := engine.Key(e.Node, e.At()); e.Outcome != engine.Resumed || done[key] == "" { // resumed steps are listed twice
				done[key] = e.Host
			}
		case engine.RollbackEnded: // unchanged
		default: // started again, failed or rolled back: unknown
			delete(done, engine.Key(e.Node, e.At()))
		}
	}
	return head, done, lines.Err()
}
