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

// syncAfter is how long a line may be in memory alone. A process that is killed
// loses none, for each is handed to the kernel as it comes; a machine that loses
// power loses those of this time.
const syncAfter = time.Second

// Log adds lines to a cluster's log. It is safe for concurrent use. Once it could
// not write a line it takes no more: nothing may be done that it does not hold.
type Log struct {
	who, version string

	scripts sync.Map // text → its SHA-256: a few dozen, each run thousands of times

	syncing sync.Mutex // one at a time, and before mu

	mu      sync.Mutex
	f       file
	head    Head
	failed  error
	timer   *time.Timer  // set while lines are not on disk
	onDisk  int64        // bytes that were here, or that a sync has put there
	pending bytes.Buffer // what came after them
}

// file is what a log needs of one. Tests have disks that fail.
type file interface {
	io.Writer
	Sync() error
	Truncate(size int64) error
	Close() error
}

// DamagedError says that a log ends in what no kubexm wrote.
type DamagedError struct {
	Path string
	Err  error
}

func (e *DamagedError) Error() string { return fmt.Sprintf("audit log %s: %v", e.Path, e.Err) }

// Unwrap gives the cause.
func (e *DamagedError) Unwrap() error { return e.Err }

// Advice says what to do.
func (e *DamagedError) Advice() string {
	return "see what was done to it: kubexm audit verify; then move it aside, and the next run begins a new one"
}

// Open opens the log of a cluster to add to it, and begins one where there is
// none. who is the user and the machine, version kubexm's own. A last line that
// was cut off, by a kill or a loss of power, stays as it is; the next line says
// what it is.
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

// begin finds where the log ends, and writes its first line where it is new.
func (l *Log) begin(f *os.File, path, cluster string) error {
	st, err := f.Stat()
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	if !st.Mode().IsRegular() {
		return fmt.Errorf("audit log: %w", &fs.PathError{Op: "open", Path: path, Err: errors.New("is no file")})
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
	// Whoever made the log may have been killed before its name was on disk.
	if err := durable.SyncDir(filepath.Dir(path)); err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	return nil
}

// close ends what was cut off, and says so in the next line.
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

// Add writes a line, and fills in what every line has.
func (l *Log) Add(x *Line) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed != nil {
		return l.failed
	}
	x.N, x.Prev, x.Time = l.head.Lines+1, l.head.SHA256, time.Now().UTC()
	x.Who, x.Kubexm = l.who, l.version
	b := encode(x)
	if err := l.write(append(b, '\n')); err != nil {
		return err
	}
	l.head = Head{Lines: x.N, SHA256: hashOf(b)}
	if l.timer == nil {
		l.timer = time.AfterFunc(syncAfter, func() { _ = l.Sync() }) // what fails is kept
	}
	return nil
}

// write hands bytes to the kernel, and keeps them until a sync has put them on disk.
func (l *Log) write(b []byte) error {
	if _, err := l.f.Write(b); err != nil {
		l.failed = fmt.Errorf("audit log: %w", err)
		return l.failed
	}
	l.pending.Write(b)
	return nil
}

// scriptHash gives the SHA-256 of a script.
func (l *Log) scriptHash(script string) string {
	if known, ok := l.scripts.Load(script); ok {
		hash, _ := known.(string)
		return hash
	}
	hash := hashOf([]byte(script))
	l.scripts.Store(script, hash)
	return hash
}

// encode gives a line as it stands in the log. Strings that are no UTF-8 get
// replacement characters, as everywhere in JSON.
func encode(x *Line) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(x) // numbers and strings always encode
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// Head tells how long the log is now, and what its last line is.
func (l *Log) Head() Head {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.head
}

// Sync puts all lines on disk. After one that failed the log takes no more lines, and
// the error is for good.
func (l *Log) Sync() error {
	l.syncing.Lock()
	defer l.syncing.Unlock()
	l.mu.Lock()
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	n, failed := l.pending.Len(), l.failed
	l.mu.Unlock()
	if failed != nil || n == 0 {
		return failed
	}
	err := l.f.Sync() // without mu: others write meanwhile
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.pending.Next(n)
		l.onDisk += int64(n)
		return nil
	}
	l.failed = fmt.Errorf("audit log: %w", err)
	l.restore()
	return l.failed
}

// restore writes once more what a failed sync may have lost. The kernel has thrown those
// bytes away, and would keep the lines that came while it tried: a chain with a gap in it.
// Where the disk refuses again the log ends before them.
func (l *Log) restore() {
	if l.f.Truncate(l.onDisk) != nil {
		return // nothing more can be done here; the next run says what it finds
	}
	_, err := l.f.Write(l.pending.Bytes())
	if err == nil {
		err = l.f.Sync()
	}
	if err != nil {
		_ = l.f.Truncate(l.onDisk) // as above
	}
}

// Close puts all lines on disk and ends the log: nothing more can be done to a host.
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
