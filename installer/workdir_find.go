package installer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/installer/audit"
	"github.com/mensylisir/kubexm/manifest/refusal"
)

// folderName matches valid names of cluster folders.
var folderName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]*$`)

// Clusters returns the clusters that have a folder below base, sorted.
func Clusters(base string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(base, ".kubexm"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if e.IsDir() {
			out = append(out, e.Name())
		}
	}
	return out, nil
}

// FindWorkdir returns the folder of a cluster below base, whether or not it exists. The name
// "" selects the only cluster that has one.
func FindWorkdir(base, name string) (Workdir, error) {
	if name == "" {
		var err error
		if name, err = onlyCluster(base); err != nil {
			return Workdir{}, err
		}
	}
	if !folderName.MatchString(name) {
		return Workdir{}, &refusal.Error{Err: fmt.Errorf("--cluster %q is not a valid cluster name", name), Kind: refusal.Usage, Advice: "the name is metadata.name of its config"}
	}
	return Workdir{Dir: filepath.Join(base, ".kubexm", name)}, nil
}

func onlyCluster(base string) (string, error) {
	names, err := Clusters(base)
	if err != nil {
		return "", err
	}
	if len(names) == 1 {
		return names[0], nil
	}
	err = errors.New("several clusters have a folder in this workdir: " + strings.Join(names, ", "))
	if len(names) == 0 {
		err = fmt.Errorf("no cluster has a folder below %s", filepath.Join(base, ".kubexm"))
	}
	return "", &refusal.Error{Err: err, Kind: refusal.Usage, Advice: "specify the cluster: --cluster NAME, or -f CONFIG; --workdir is the folder that contains .kubexm"}
}

// OpenAudit opens a cluster's audit log for reading.
func (w Workdir) OpenAudit() (*os.File, error) {
	f, err := os.Open(w.Audit())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &refusal.Error{Err: fmt.Errorf("there is no audit log: %w", err), Kind: refusal.Usage, Advice: "the first command that connects to a host creates it"}
	}
	return f, err
}

// CheckHosts refuses hosts that do not occur in the audit log.
func (w Workdir) CheckHosts(hosts []string) error {
	if len(hosts) == 0 {
		return nil
	}
	log, err := w.OpenAudit()
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // only read: a close error loses no data
	var seen []string
	if err := audit.Show(log, audit.Filter{}, func(x audit.Line, _ []byte) error {
		if x.Host != "" && !slices.Contains(seen, x.Host) { // lines without a host are about the log itself
			seen = append(seen, x.Host)
		}
		return nil
	}); err != nil {
		return err
	}
	slices.Sort(seen)
	for _, h := range hosts {
		if !slices.Contains(seen, h) {
			return &refusal.Error{Err: fmt.Errorf("no such host: %s%s", h, refusal.DidYouMean(h, seen)), Kind: refusal.Usage, Advice: "hosts are " + strings.Join(seen, ", ")}
		}
	}
	return nil
}
