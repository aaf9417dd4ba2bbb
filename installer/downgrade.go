package installer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps/kubernetes"
)

// CheckSerial refuses a bundle with a *bundle.TrustError where the record below
// base says that the cluster has had a newer one: an old bundle is as well signed
// as it ever was, and brings back what a newer one mended.
func CheckSerial(base string, l *manifest.Lock, cluster string) error {
	was, err := appliedSerial(Workdir{Dir: filepath.Join(base, ".kubexm", cluster)})
	if err != nil {
		return err
	}
	return notOlder(l, was, "this machine's record of the cluster")
}

// CheckSerial asks the cluster the same, which another machine may have made, and
// keeps the highest of both for the record. allow takes an older bundle all the
// same. A cluster that is not there has had none; of one that does not answer, the
// record on this machine counts alone, and the log says so.
func (s *Session) CheckSerial(ctx context.Context, allow bool) error {
	here, err := appliedSerial(s.Workdir)
	if err != nil {
		return err
	}
	there := int64(0)
	if masters := s.Cluster.HostsWith(manifest.RoleMaster); len(masters) > 0 {
		h := masters[0]
		if there, err = kubernetes.AppliedSerial(ctx, s.Host(h)); err != nil {
			s.Log.WarnContext(ctx, "the cluster does not tell which bundle it had last", "host", h.Name, "err", err)
		}
	}
	s.highest = max(here, there)
	if allow {
		return nil
	}
	return errors.Join(notOlder(s.Bundle.Lock, here, "this machine's record of the cluster"), notOlder(s.Bundle.Lock, there, "the cluster"))
}

func notOlder(l *manifest.Lock, was int64, who string) error {
	if l.Serial >= was {
		return nil
	}
	return &bundle.TrustError{Code: bundle.TrustSerial, Detail: fmt.Sprintf("its serial is %d, and %s has %d", l.Serial, who, was)}
}

// appliedSerial is the highest serial in the record of what was applied; 0 without one.
func appliedSerial(w Workdir) (int64, error) {
	path := w.Applied("applied.json")
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("record of what was applied: %w", err)
	}
	var was map[string]string
	if err := json.Unmarshal(text, &was); err != nil {
		return 0, fmt.Errorf("record of what was applied: %s: %w", path, err)
	}
	return kubernetes.HighestSerial(was), nil
}

// highestSerial is what the record is to say of this run.
func (s *Session) highestSerial() string {
	return strconv.FormatInt(max(s.highest, s.Bundle.Lock.Serial), 10)
}
