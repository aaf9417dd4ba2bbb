package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/mensylisir/kubexm/manifest/durable"
)

// stand is a site with a brittle disk, on which everything is that an operation writes.
type stand struct {
	*site
	clusterSite *clusterSite // of an operation that has hosts
	disk        *disk
	dir         string // where the disk is
	exe         string // what is run
}

// operation is something that kubexm does, in one command or in several.
type operation struct {
	name    string
	prepare func(ctx context.Context, s *stand) error // leaves what the commands find, synced
	phases  []phase
}

// phase is one command.
type phase struct {
	name string
	args func(s *stand) []string
	// whole says what is wrong with what an interruption left; nil where nothing counts.
	whole func(s *stand) error
	// again runs the command anew, when the disk is well; nil runs it as it was.
	again func(ctx context.Context, s *stand) error
	// done says what is wrong with what came of it.
	done func(ctx context.Context, s *stand) error
}

// stand makes a site with a disk for d. A disk that cannot be mounted is errSkipped.
func (l *lab) stand(ctx context.Context, name string, d operation, eager bool) (*stand, error) {
	s := &stand{exe: l.binary}
	var err error
	if s.site, err = l.site(ctx, name, l.up); err != nil {
		return nil, err
	}
	s.dir = filepath.Join(s.root, "disk")
	if err := os.Mkdir(s.dir, 0o750); err != nil {
		s.end()
		return nil, err
	}
	if s.disk, err = mountDisk(ctx, l.brittle, s.dir, eager); err != nil {
		s.end()
		return nil, err
	}
	s.out, s.cache = filepath.Join(s.dir, "out"), filepath.Join(s.dir, "cache")
	if err = durable.MkdirAll(s.out, 0o750); err == nil && d.prepare != nil {
		err = d.prepare(ctx, s)
	}
	if err != nil {
		s.end()
		return nil, err
	}
	return s, nil
}

func (s *stand) end() {
	if s.clusterSite != nil {
		s.clusterSite.close()
	}
	if s.disk != nil {
		_ = s.disk.unmount() // the folder below stays then, and is in a folder of the run
	}
	s.close()
}

// program is kubexm with args, at a time that is always the same.
func (s *stand) program(ctx context.Context, args []string) *exec.Cmd {
	c := s.command(ctx, s.exe, args)
	c.Env = append(c.Env, "SOURCE_DATE_EPOCH=1750000000", "KUBEXM_KEY_PASSWORD=a password")
	return c
}

// try runs kubexm to its end. started, if not nil, is told of the process.
func (s *stand) try(ctx context.Context, args []string, started func(*os.Process) error) ended {
	c := s.program(ctx, args)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	err := c.Start()
	if err == nil {
		if started != nil {
			err = started(c.Process)
		}
		err = errors.Join(err, c.Wait())
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return ended{code: -1, stderr: err.Error()}
	}
	return ended{code: c.ProcessState.ExitCode(), stderr: stderr.String()}
}

// finish runs p to its end with nothing in its way, and looks at what came of it.
func (s *stand) finish(ctx context.Context, p phase) error {
	if p.again != nil {
		if err := p.again(ctx, s); err != nil {
			return err
		}
	} else if r := s.try(ctx, p.args(s), nil); r.code != 0 {
		return fmt.Errorf("run again: exit %d: %s", r.code, clip(r.stderr, 1000))
	}
	return p.done(ctx, s)
}

// loseAt runs p and takes the power away before the n-th call that changes the disk.
// It reports whether p still ran.
func (s *stand) loseAt(ctx context.Context, p phase, n int, rng *rand.Rand) (ran bool, err error) {
	if err := s.disk.cutAt(n); err != nil {
		return false, err
	}
	r := s.try(ctx, p.args(s), s.disk.victim)
	state, err := s.disk.state()
	if err != nil {
		return false, err
	}
	if !state.WasCut {
		if r.code != 0 {
			return false, fmt.Errorf("it failed by itself: %s", clip(r.stderr, 1000))
		}
		return false, nil
	}
	return true, s.disk.losePower(rng)
}

// size is how much there is to break in one phase.
type size struct {
	steps  int
	counts map[callKind]int
}

// measures are found out once for each operation.
type measures struct {
	mu  sync.Mutex
	all map[string][]size

	seen  sync.Mutex // what follows is compared while mu is held too
	lock  []byte     // that always comes
	blobs int        // of a layout that is whole
}

// sizesOf runs an operation that nothing disturbs, and counts.
func (l *lab) sizesOf(ctx context.Context, d operation) ([]size, error) {
	l.measured.mu.Lock()
	defer l.measured.mu.Unlock()
	if out, ok := l.measured.all[d.name]; ok {
		return out, nil
	}
	s, err := l.stand(ctx, "measure "+d.name, d, false)
	if err != nil {
		return nil, err
	}
	defer s.end()
	var out []size
	for _, p := range d.phases {
		if err := errors.Join(s.disk.failAt("", 0), s.disk.cutAt(0)); err != nil {
			return nil, err
		}
		if r := s.try(ctx, p.args(s), nil); r.code != 0 {
			return nil, fmt.Errorf("%s with nothing broken: exit %d: %s", p.name, r.code, clip(r.stderr, 1500))
		}
		state, err := s.disk.state()
		if err != nil {
			return nil, err
		}
		out = append(out, size{state.Steps, state.Counts})
		if err := p.done(ctx, s); err != nil {
			return nil, fmt.Errorf("%s with nothing broken: %w", p.name, err)
		}
	}
	if l.measured.all == nil {
		l.measured.all = map[string][]size{}
	}
	l.measured.all[d.name] = out
	return out, nil
}

// spread gives the i-th of n numbers from 1 to all, each in its own part of them.
func spread(i, n, all int, rng *rand.Rand) int {
	return 1 + min(all-1, int((float64(i)+rng.Float64())/float64(n)*float64(all)))
}

// plainName is a file's name as people know it, whatever it is made under.
func plainName(path string) string {
	name := strings.TrimPrefix(filepath.Base(path), ".")
	for _, end := range []string{".new", ".part", ".journal", ".partial"} {
		name = strings.TrimSuffix(name, end)
	}
	return name
}
