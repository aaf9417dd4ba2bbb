package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/mensylisir/kubexm/testdata/lab/components"
)

// Options say what Up brings up.
type Options struct {
	Name  string // of the lab; "" is "default"
	Hosts int    // h1, h2, … ; 0 means 1
	// Roots are the hosts' root file systems: the first of h1, the second of h2, and
	// so on, from the beginning again. None means Debian12.
	Roots []string
	Cache string // "" is the usual one, see components.DefaultCache
	Log   *slog.Logger
}

// Lab is a lab that is up.
type Lab struct {
	Name  string `json:"name"`
	Index int    `json:"index"` // decides its addresses
	Dir   string `json:"dir"`   // all of its files
	Hosts []Host `json:"hosts"`
	// Watcher writes down what reaches the gateway.
	Watcher Process `json:"watcher"`
	// Cgroups are the folders that hold the hosts' control groups.
	Cgroups []string `json:"cgroups"`

	log         *slog.Logger
	egressMeant bool           // by a test, see AllowEgress
	services    []netip.Prefix // see Inside
}

// Host is one host of a lab.
type Host struct {
	Name     string `json:"name"`
	Root     string `json:"root"`   // which of Roots it has
	Rootfs   string `json:"rootfs"` // the folder with what its disk is a copy of
	Address  string `json:"address"`
	Address6 string `json:"address6"`
	MAC      string `json:"mac"`
	// Holder is the process that holds the host's namespaces, seen from outside.
	// Its one child is the host's systemd.
	Holder Process `json:"holder"`
}

// The users of every host.
const (
	RootUser     = "root"       // comes in with Lab.Key
	PasswordUser = "admin"      // comes in with Password, and needs it for sudo
	Password     = "kubexm-lab" //nolint:gosec // of hosts that nobody else can reach
	SudoUser     = "ops"        // comes in with Lab.Key, and needs no password for sudo
	lastHost     = 200

	workdirSuffix   = "work"
	elsewhereSuffix = "else"
)

var nameForm = regexp.MustCompile(`^[a-z][a-z0-9]{0,11}$`)

// Up brings a lab up and returns when every host takes ssh and systemd has
// started all it means to. It is an error if a lab of that name is up; what it
// had begun when it fails is taken down again.
func Up(ctx context.Context, o Options) (*Lab, error) {
	if err := Possible(); err != nil {
		return nil, err
	}
	if o.Name == "" {
		o.Name = "default"
	}
	if !nameForm.MatchString(o.Name) {
		return nil, fmt.Errorf("lab name %q: it must be a letter and up to eleven letters and digits, all lower case", o.Name)
	}
	o.Hosts = max(o.Hosts, 1)
	if o.Hosts > lastHost-10 {
		return nil, fmt.Errorf("%d hosts are more than one lab takes", o.Hosts)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Cache == "" {
		var err error
		if o.Cache, err = components.DefaultCache(); err != nil {
			return nil, err
		}
	}
	begun := time.Now()
	if len(o.Roots) == 0 {
		o.Roots = []string{Debian12}
	}
	rootfs := map[string]string{}
	for _, root := range o.Roots[:min(o.Hosts, len(o.Roots))] {
		var err error
		if rootfs[root], err = Rootfs(ctx, o.Cache, root, o.Log); err != nil {
			return nil, fmt.Errorf("make the hosts' root file system: %w", err)
		}
	}
	l, err := reserve(ctx, o)
	if err != nil {
		return nil, err
	}
	l.addHosts(o.Hosts)
	for i := range l.Hosts {
		h := &l.Hosts[i]
		h.Root = o.Roots[i%len(o.Roots)]
		h.Rootfs = rootfs[h.Root]
	}
	if err := l.bringUp(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("bring up lab %s: %w", o.Name, err), l.Down()) //nolint:contextcheck // taking down goes on after an interrupt
	}
	o.Log.InfoContext(ctx, "lab is up", "lab", l.Name, "hosts", len(l.Hosts), "took", time.Since(begun).Round(10*time.Millisecond))
	return l, nil
}

func (l *Lab) bringUp(ctx context.Context) error {
	steps := []func(context.Context) error{l.makeKeys, l.makeNetwork, l.watch, l.boot, l.wait}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
		if err := l.save(); err != nil { // before the next step, so that Down knows of it
			return err
		}
	}
	return nil
}

// addHosts names the hosts and gives them their addresses.
func (l *Lab) addHosts(n int) {
	for i := 1; i <= n; i++ {
		l.Hosts = append(l.Hosts, Host{
			Name:     fmt.Sprintf("h%d", i),
			Address:  l.address(10 + i),
			Address6: l.address6(10 + i),
			MAC:      l.mac(10 + i),
		})
	}
}

// Open gives the lab of a name that is up. In another process than the one
// that brought it up, that too.
func Open(cache, name string) (*Lab, error) {
	raw, err := os.ReadFile(filepath.Join(labsDir(cache), name, "lab.json"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("no lab %q is up", name)
	}
	if err != nil {
		return nil, err
	}
	l := &Lab{log: slog.New(slog.DiscardHandler)}
	if err := json.Unmarshal(raw, l); err != nil {
		return nil, fmt.Errorf("lab %s: %w", name, err)
	}
	return l, nil
}

// Host gives the host of a name.
func (l *Lab) Host(name string) (*Host, error) {
	for i := range l.Hosts {
		if l.Hosts[i].Name == name {
			return &l.Hosts[i], nil
		}
	}
	return nil, fmt.Errorf("lab %s has no host %q", l.Name, name)
}

// Key is the file of the private key that RootUser and SudoUser come in with.
func (l *Lab) Key() string { return filepath.Join(l.Dir, "ssh", "id") }

// KnownHosts is a known_hosts file with the key of every host.
func (l *Lab) KnownHosts() string { return filepath.Join(l.Dir, "ssh", "known_hosts") }

func (l *Lab) save() error {
	raw, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(l.Dir, "lab.json"), append(raw, '\n'), 0o600)
}
