package conntest

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/steps/connector"
)

// disk is what a host would have after a loss of power. A journal keeps the order
// of what happened to names: when the power goes, the disk is as it was at some
// moment since the last sync. The content of a file that was not synced itself may
// be missing besides.
type disk struct {
	past    []map[string]File // since the last sync, the oldest first; nil: nobody asks
	dirty   map[string]bool
	durable []string // folders of programs that sync what they write
}

// syncs are the verbs that end with a sync of what they did, and with it of all
// that happened before.
var syncs = []string{connector.VerbWrite, connector.VerbPut, connector.VerbMkdir, connector.VerbLink, connector.VerbCopy, connector.VerbRename}

// reads are the verbs that change no file.
var reads = []string{connector.VerbRead, connector.VerbDigest, connector.VerbStat, connector.VerbList, connector.VerbLines, connector.VerbCompare, connector.VerbSysctl,
	connector.VerbModule, connector.VerbUnitShow, connector.VerbUnitJournal, connector.VerbUser, connector.VerbGroup, connector.VerbHostname,
	connector.VerbBootID, connector.VerbFacts, connector.VerbHasProgram, connector.VerbPackages, connector.VerbPackagesFree, connector.VerbJobPoll,
	connector.VerbSwaps, connector.VerbSELinux, connector.VerbUFW}

// KeepDisk makes the host track what its disk would contain after a power failure. Programs
// sync their own writes below the durable folders.
func (s *Sim) KeepDisk(durable ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.disk.durable = durable
	s.synced()
}

func (s *Sim) synced() {
	s.disk.dirty, s.disk.past = map[string]bool{}, []map[string]File{s.state()}
}

// Crash simulates a power failure and boots the host. pick selects one of the n states of
// the disk since the last sync, 0 being the oldest. lost decides for each unsynced file
// whether its content is lost.
func (s *Sim) Crash(pick func(n int) int, lost func() bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.disk.past != nil {
		kept := s.disk.past[pick(len(s.disk.past))]
		s.files = newTree()
		for p, f := range kept {
			s.files.put(p, &f)
		}
		for _, p := range slices.Sorted(maps.Keys(s.disk.dirty)) {
			if f := s.files.at[p]; f != nil && f.Mode.IsRegular() && lost() {
				f.Data = nil
			}
		}
	}
	s.reboot()
	if s.disk.past != nil {
		s.synced()
	}
}

func (s *Sim) state() map[string]File {
	out := make(map[string]File, len(s.files.at))
	for p, f := range s.files.at {
		out[p] = *f
	}
	return out
}

// wrote notes what a command did to the disk.
func (s *Sim) wrote(c connector.Cmd) {
	if s.disk.past == nil || slices.Contains(reads, c.Verb) {
		return
	}
	if c.Verb == connector.VerbExec && c.Argv[0] == "sync" {
		s.synced()
		return
	}
	if slices.Contains(syncs, c.Verb) {
		switch args := c.Args(); c.Verb {
		case connector.VerbMkdir:
		case connector.VerbPut:
			for f := range slices.Chunk(args[3:], 3) {
				delete(s.disk.dirty, s.resolve(path.Join(args[0], f[0]), false))
			}
		default:
			delete(s.disk.dirty, s.resolve(args[0], false))
		}
		s.disk.past = nil
	}
	s.disk.past = append(s.disk.past, s.state())
}

// scribbled notes a file that a program wrote.
func (s *Sim) scribbled(p string) {
	if s.disk.past == nil {
		return
	}
	if !slices.ContainsFunc(s.disk.durable, func(dir string) bool { return strings.HasPrefix(p, dir+"/") }) {
		s.disk.dirty[p] = true
	}
	s.disk.past = append(s.disk.past, s.state())
}

// doSync knows the program that has the disk take all.
func (s *Sim) doSync(c connector.Cmd, _ []byte) (connector.Result, bool) {
	return connector.Result{}, c.Verb == connector.VerbExec && c.Argv[0] == "sync"
}
