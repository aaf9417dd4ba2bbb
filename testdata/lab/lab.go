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
	"strconv"
	"strings"
	"sync"
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
	// Addresses are those of h1, h2, …, "172.16.0.2,2001:db8::1" each, all in one /24 and one
	// /64. None means those of the lab's index.
	Addresses []string
	// DiskSize is how large the hosts' disks are, in bytes. 0 is what the roots have:
	// 40 GiB, of which only what is written takes space.
	DiskSize int64
	// Alone waits until no other process has a lab, and has others wait for this one:
	// for tests that compare what is the machine's.
	Alone bool
	Log   *slog.Logger

	held bool // the caller has the machine already, see hold
}

// Lab is a lab that is up.
type Lab struct {
	Name  string `json:"name"`
	Index int    `json:"index"` // decides its addresses, unless it has Net and Net6
	// Net are the first three numbers of its addresses, and Net6 the IPv6 addresses
	// without "::" and the number; "" where the index decides.
	Net   string `json:"net,omitempty"`
	Net6  string `json:"net6,omitempty"`
	Dir   string `json:"dir"` // all of its files
	Hosts []Host `json:"hosts"`
	// Watcher writes down what reaches the gateway.
	Watcher Process `json:"watcher"`
	// Cgroups are the folders that hold the hosts' control groups.
	Cgroups []string `json:"cgroups"`
	// DiskSize is Options.DiskSize.
	DiskSize int64 `json:"diskSize,omitempty"`

	mu          sync.Mutex // of what changes while hosts boot side by side
	masters     masters
	leave       func() // lets other labs have the machine
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
	// Its one child is the host's systemd. Of an emulated machine it is the machine.
	Holder Process `json:"holder"`
}

// The users of every host.
const (
	RootUser     = "root"       // comes in with Lab.Key
	PasswordUser = "admin"      // comes in with Password, and needs it for sudo
	Password     = "kubexm-lab" //nolint:gosec // of hosts that nobody else can reach
	SudoUser     = "ops"        // comes in with Lab.Key, and needs no password for sudo
	lastHost     = 200
	smallestDisk = 1 << 30 // bytes

	workdirSuffix   = "work"
	elsewhereSuffix = "else"
)

var nameForm = regexp.MustCompile(`^[a-z][a-z0-9]{0,11}$`)

// Up brings a lab up and returns when every host takes ssh and systemd has
// started all it means to. It is an error if a lab of that name is up; what it
// had begun when it fails is taken down again.
func Up(ctx context.Context, o Options) (*Lab, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	begun := time.Now()
	rootfs := map[string]string{}
	for _, root := range o.Roots[:min(o.Hosts, len(o.Roots))] {
		var err error
		if rootfs[root], err = Rootfs(ctx, o.Cache, root, o.Log); err != nil {
			return nil, fmt.Errorf("make the hosts' root file system: %w", err)
		}
	}
	return o.bring(ctx, begun, func() (*Lab, error) { return reserve(ctx, o) }, func(l *Lab) error {
		if err := l.addHosts(o.Hosts, o.Addresses); err != nil {
			return err
		}
		for i := range l.Hosts {
			h := &l.Hosts[i]
			h.Root = o.Roots[i%len(o.Roots)]
			h.Rootfs = rootfs[h.Root]
		}
		return l.inTurn(ctx, l.makeKeys, l.makeNetwork, l.watch, l.boot, l.wait)
	})
}

// complete fills in what was left out, and refuses what no lab can be.
func (o *Options) complete() error {
	if err := o.possible(); err != nil {
		return err
	}
	if o.Name == "" {
		o.Name = "default"
	}
	if !nameForm.MatchString(o.Name) {
		return fmt.Errorf("lab name %q: it must be a letter and up to eleven letters and digits, all lower case", o.Name)
	}
	o.Hosts = max(o.Hosts, 1)
	if o.Hosts > lastHost-10 {
		return fmt.Errorf("%d hosts are more than one lab takes", o.Hosts)
	}
	if len(o.Addresses) > 0 && len(o.Addresses) != o.Hosts {
		return fmt.Errorf("%d addresses for %d hosts", len(o.Addresses), o.Hosts)
	}
	if o.DiskSize != 0 && o.DiskSize < smallestDisk {
		return fmt.Errorf("a disk of %d bytes: a root file system needs %d", o.DiskSize, smallestDisk)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if len(o.Roots) == 0 {
		o.Roots = []string{Debian12}
	}
	if o.Cache == "" {
		var err error
		if o.Cache, err = components.DefaultCache(); err != nil {
			return err
		}
	}
	return nil
}

// bring waits for the machine, makes a lab's folder by reserve, and the lab by begin.
func (o *Options) bring(ctx context.Context, begun time.Time, reserve func() (*Lab, error), begin func(*Lab) error) (*Lab, error) {
	free, err := hold(ctx, machineLock, o)
	if err != nil {
		return nil, err
	}
	l, err := reserve()
	if err != nil {
		free()
		return nil, err
	}
	l.leave = free
	if err := begin(l); err != nil {
		return nil, errors.Join(fmt.Errorf("bring up lab %s: %w", o.Name, err), l.Down()) //nolint:contextcheck // taking down goes on after an interrupt
	}
	o.Log.InfoContext(ctx, "lab is up", "lab", l.Name, "hosts", len(l.Hosts), "took", time.Since(begun).Round(10*time.Millisecond))
	return l, nil
}

// inTurn takes the steps that bring a lab up.
func (l *Lab) inTurn(ctx context.Context, steps ...func(context.Context) error) error {
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
func (l *Lab) addHosts(n int, addresses []string) error {
	for i := 1; i <= n; i++ {
		h := Host{Name: fmt.Sprintf("h%d", i), Address: l.address(10 + i), Address6: l.address6(10 + i), MAC: l.mac(10 + i)}
		if len(addresses) > 0 {
			var err error
			if h.Address, h.Address6, err = l.own(addresses[i-1]); err != nil {
				return fmt.Errorf("address of %s: %w", h.Name, err)
			}
		}
		l.Hosts = append(l.Hosts, h)
	}
	return nil
}

// own splits a pair of Options.Addresses. The first one decides the ranges.
func (l *Lab) own(pair string) (address, address6 string, err error) {
	address, address6, _ = strings.Cut(pair, ",")
	net, number, in := cutLast(address, ".")
	net6, _, in6 := cutLast(address6, "::")
	if last, err := strconv.Atoi(number); !in || !in6 || err != nil || last < 1 || last > besideHosts {
		return "", "", fmt.Errorf("%q: it must be an IPv4 address whose last number is 1 to %d, a comma, and an IPv6 address that ends with :: and one number", pair, besideHosts)
	}
	if l.Net == "" {
		l.Net, l.Net6 = net, net6
	}
	if l.Net != net || l.Net6 != net6 {
		return "", "", fmt.Errorf("%s is not in %s.0/24 and %s::/64", pair, l.Net, l.Net6)
	}
	return address, address6, nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	if at := strings.LastIndex(s, sep); at >= 0 {
		return s[:at], s[at+len(sep):], true
	}
	return s, "", false
}

// Open gives the lab of a name that is up. In another process than the one
// that brought it up, that too.
func Open(cache, name string) (*Lab, error) {
	if err := find(cache); err != nil {
		return nil, err
	}
	return open(cache, name)
}

func open(cache, name string) (*Lab, error) {
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
	l.mu.Lock()
	defer l.mu.Unlock()
	raw, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(l.Dir, "lab.json"), append(raw, '\n'), 0o600)
}
