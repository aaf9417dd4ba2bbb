package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mensylisir/kubexm/manifest/durable"
)

// syncAfter is how long a line may be in the page cache only. Killing the process loses no
// line, because each is written to the kernel immediately. A power failure can lose the lines
// of this time.
const syncAfter = time.Second

// syncSize is how many bytes may be there before that time: they are kept in memory until they
// are on disk. A writer waits for a disk that is slower by stallSize.
const (
	syncSize  = 1 << 20
	stallSize = 4 << 20
)

// Log appends lines to a cluster's log. It is safe for concurrent use. After a failed write it
// accepts no more lines: nothing may be done that is not logged.
type Log struct {
	who, version string

	scripts sync.Map // text → its SHA-256: a few dozen scripts, each run thousands of times

	syncing sync.Mutex // only one sync at a time; locked before mu

	mu      sync.Mutex
	f       file
	head    Head
	failed  error
	timer   *time.Timer  // set while lines are not on disk
	onDisk  int64        // bytes that existed at opening, or that were synced since
	pending bytes.Buffer // bytes written after them
	started bool         // a sync runs, or is about to
	line    bytes.Buffer // the line that is being added
}

// file is the part of os.File that a log uses. Tests use disks that fail.
type file interface {
	io.Writer
	Sync() error
	Truncate(size int64) error
	Close() error
}

// DamagedError reports that a log does not end with audit log lines.
type DamagedError struct {
	Path string
	Err  error
}

func (e *DamagedError) Error() string { return fmt.Sprintf("audit log %s: %v", e.Path, e.Err) }

// Unwrap returns the cause.
func (e *DamagedError) Unwrap() error { return e.Err }

// Advice returns what the user can do; see steps.Advice.
func (e *DamagedError) Advice() string {
	return "find out what was changed: kubexm audit verify; then move the file away, and the next run starts a new log"
}

// Open opens the log of a cluster for appending, and creates it if necessary. who is the user
// and the machine, version that of kubexm. An incomplete last line, after a kill or a power
// failure, stays as it is; the next line records it as torn.
func Open(path, cluster, who, version string) (*Log, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	l := &Log{who: who, version: version, f: f}
	if err := l.begin(f, path, cluster); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return l, nil
}

// begin finds the end of the log, and writes the first line of a new one.
func (l *Log) begin(f *os.File, path, cluster string) error {
	st, err := f.Stat()
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	if !st.Mode().IsRegular() {
		return fmt.Errorf("audit log: %w", &fs.PathError{Op: "open", Path: path, Err: errors.New("not a regular file")})
	}
	if err := f.Chmod(0o600); err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	l.onDisk = st.Size()
	last, torn, open, err := tail(f, st.Size())
	switch {
	case errors.Is(err, errForeign):
		return &DamagedError{Path: path, Err: err}
	case err != nil:
		return fmt.Errorf("audit log: %w", err)
	}
	l.head = last
	if len(torn) > 0 {
		if err := l.close(torn, open); err != nil {
			return err
		}
	}
	if last.Lines == 0 {
		if err := l.Add(&Line{Type: TypeHead, Cluster: cluster}); err != nil {
			return err
		}
		if err := l.Sync(); err != nil {
			return err
		}
	}
	if l.failed != nil {
		return l.failed
	}
	// The process that created the log may have been killed before the name was on disk.
	if err := durable.SyncDir(filepath.Dir(path)); err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	return nil
}

// close terminates truncated lines, and records them in the next line.
func (l *Log) close(torn [][]byte, open bool) error {
	x := &Line{Type: TypeTorn}
	for _, t := range torn {
		l.head = Head{Lines: l.head.Lines + 1, SHA256: hashOf(t)}
		x.Torn = append(x.Torn, l.head.SHA256)
	}
	if open {
		if err := l.write([]byte("\n")); err != nil {
			return err
		}
	}
	return l.Add(x)
}

// Add appends a line, and fills in the common fields.
func (l *Log) Add(x *Line) error {
	stalled, err := l.add(x)
	if stalled {
		_ = l.sync(stallSize) // an error is stored in failed
	}
	return err
}

// add is Add; it reports whether the disk is far behind.
func (l *Log) add(x *Line) (stalled bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed != nil {
		return false, l.failed
	}
	x.N, x.Prev, x.Time = l.head.Lines+1, l.head.SHA256, time.Now().UTC()
	x.Who, x.Kubexm = l.who, l.version
	b := l.encode(x)
	if err := l.write(b); err != nil {
		return false, err
	}
	l.head = Head{Lines: x.N, SHA256: hashOf(bytes.TrimSuffix(b, []byte("\n")))}
	if l.timer == nil {
		l.timer = time.AfterFunc(syncAfter, func() { _ = l.Sync() }) // a sync error is stored in failed
	}
	n := l.pending.Len()
	if n >= syncSize && !l.started {
		l.started = true
		go func() { _ = l.Sync() }() // as above
	}
	return n >= stallSize, nil
}

// write writes bytes to the kernel, and buffers them until they are synced.
func (l *Log) write(b []byte) error {
	if _, err := l.f.Write(b); err != nil {
		l.failed = fmt.Errorf("audit log: %w", err)
		return l.failed
	}
	l.pending.Write(b)
	return nil
}

// scriptHash returns the SHA-256 of a script.
func (l *Log) scriptHash(script string) string {
	if known, ok := l.scripts.Load(script); ok {
		hash, _ := known.(string)
		return hash
	}
	hash := hashOf([]byte(script))
	l.scripts.Store(script, hash)
	return hash
}

// encode returns a line as stored in the log, until the next call. Invalid UTF-8 is replaced by
// replacement characters, as always in JSON.
func (l *Log) encode(x *Line) []byte {
	l.line.Reset()
	e := json.NewEncoder(&l.line)
	e.SetEscapeHTML(false)
	_ = e.Encode(x) // numbers and strings always encode
	return l.line.Bytes()
}

// Head returns the current number of lines, and the hash of the last.
func (l *Log) Head() Head {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.head
}

// Sync writes all lines to disk. After a failed sync the log accepts no more lines, and the
// error is permanent.
func (l *Log) Sync() error { return l.sync(1) }

// sync is Sync if at least so many bytes are not on disk: others may have synced them meanwhile.
func (l *Log) sync(least int) error {
	l.syncing.Lock()
	defer l.syncing.Unlock()
	l.mu.Lock()
	n, failed := l.pending.Len(), l.failed
	if failed != nil || n < least {
		l.started = false
		l.mu.Unlock()
		return failed
	}
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	l.started = true
	l.mu.Unlock()
	err := l.f.Sync() // without mu, so that others can write
	l.mu.Lock()
	defer l.mu.Unlock()
	l.started = false
	if err == nil {
		l.pending.Next(n)
		l.onDisk += int64(n)
		return nil
	}
	l.failed = fmt.Errorf("audit log: %w", err)
	l.restore()
	return l.failed
}

// restore writes again what a failed sync may have lost. The kernel has dropped those bytes,
// but would keep lines written during the sync: a chain with a gap. If the disk fails again,
// the log is cut before them.
func (l *Log) restore() {
	if l.f.Truncate(l.onDisk) != nil {
		return // nothing more can be done; the next run reports what it finds
	}
	_, err := l.f.Write(l.pending.Bytes())
	if err == nil {
		err = l.f.Sync()
	}
	if err != nil {
		_ = l.f.Truncate(l.onDisk) // as above
	}
}

// Close syncs and closes the log: nothing more can be done on a host.
func (l *Log) Close() error {
	err := l.Sync()
	l.mu.Lock()
	defer l.mu.Unlock()
	if errors.Is(l.failed, os.ErrClosed) {
		return nil
	}
	l.failed = fmt.Errorf("audit log: %w", os.ErrClosed)
	return errors.Join(err, l.f.Close())
}
