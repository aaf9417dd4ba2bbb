package conntest

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/steps/connector"
)

// installPackages does what apt and dnf do: it reads a repository, and installs
// what is asked for with what that needs, the needed first.
func (s *Sim) installPackages(base, sum, wait string, names []string) (connector.Result, bool) {
	if res, ok := s.waitPackages(wait); !ok {
		return res, true
	}
	for name, p := range s.packages {
		if p.state != packInstalled && p.state != packConfig {
			return exits(76, "%s is %s", name, p.state)
		}
	}
	client := &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) { return s.reach(ctx, address) },
	}}
	defer client.CloseIdleConnections()
	read := func(file string) ([]byte, error) { return s.fetch(client, base, file) }
	repo, exit, err := s.index(read, sum)
	if err != nil {
		return exits(exit, "E: %v", err)
	}
	order, exit, err := s.plan(repo, names)
	if err != nil {
		return exits(exit, "E: %v", err)
	}
	for _, name := range order {
		b, err := read(repo[name].at)
		if err != nil || digest(b) != repo[name].sum {
			return exits(100, "E: Failed to fetch %s: %v", repo[name].at, err)
		}
	}
	log := "Reading package lists...\n"
	for _, name := range order {
		p := repo[name]
		log += fmt.Sprintf("Setting up %s (%s) ...\n", name, p.version)
		if p.state = packInstalled; p.fails {
			p.state = "half-configured"
			s.packages[name] = p
			return exits(100, "%sE: Sub-process /usr/bin/dpkg returned an error code (1)", log)
		}
		s.packages[name] = p
		if p.service {
			s.addService(name)
		}
	}
	return says("%s", log)
}

// serviceFiles are the files of a package with a service.
func serviceFiles(name string) (unit, config string) {
	return "/usr/lib/systemd/system/" + name + ".service", "/etc/" + name + "/" + name + ".default"
}

// addService puts the unit of a package on the host, and starts it as distributions do.
func (s *Sim) addService(name string) {
	unit, config := serviceFiles(name)
	for p, text := range map[string]string{unit: "[Service]\nExecStart=/usr/sbin/" + name + "\n[Install]\nWantedBy=multi-user.target\n", config: "the distribution's\n"} {
		s.addDir(path.Dir(p), 0o755)
		s.files.put(p, &File{Mode: 0o644, Data: []byte(text)})
	}
	if s.masked(name + ".service") {
		return
	}
	s.enable(name + ".service")
	s.start(name + ".service")
}

// dropService is its inverse.
func (s *Sim) dropService(name string) {
	unit, config := serviceFiles(name)
	delete(s.units, name+".service")
	for p := range s.files.at {
		if p == unit || p == config || path.Base(p) == name+".service" && strings.HasSuffix(path.Dir(p), ".wants") {
			s.files.drop(p)
		}
	}
	if len(s.children(path.Dir(config))) == 0 {
		s.files.drop(path.Dir(config))
	}
}

// fetch reads a file of a repository by whatever way its address says.
func (s *Sim) fetch(client *http.Client, base, file string) ([]byte, error) {
	if dir, ok := strings.CutPrefix(base, "file://"); ok {
		f, ok := s.files.at[s.resolve(strings.TrimSuffix(dir, "/")+"/"+file, true)]
		if !ok {
			return nil, fmt.Errorf("no file %s in %s", file, dir)
		}
		return f.Data, nil
	}
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, strings.TrimSuffix(base, "/")+"/./"+file, nil) // as apt asks for what is in a flat repository
	if err != nil {
		return nil, err
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", file, res.Status)
	}
	return io.ReadAll(res.Body)
}

// index reads what a repository has. Its first file has the digest and the name of
// the second one, which lists the packages as apt's Packages does.
func (s *Sim) index(read func(string) ([]byte, error), sum string) (map[string]pack, int, error) {
	first := "Release"
	if s.rpm() {
		first = "repodata/repomd.xml"
	}
	top, err := read(first)
	if err != nil {
		return nil, 100, fmt.Errorf("failed to fetch: %w", err)
	}
	if digest(top) != sum {
		return nil, 79, fmt.Errorf("the repository is not the one of the bundle")
	}
	want, file, _ := strings.Cut(strings.TrimSpace(string(top)), " ")
	text, err := read(file)
	if err != nil || digest(text) != want {
		return nil, 100, fmt.Errorf("hash sum mismatch of %s: %w", file, err)
	}
	all := map[string]pack{}
	for stanza := range strings.SplitSeq(string(text), "\n\n") {
		f := map[string]string{}
		for line := range strings.Lines(stanza) {
			k, v, _ := strings.Cut(strings.TrimSpace(line), ": ")
			f[k] = v
		}
		if f["Package"] != "" {
			all[f["Package"]] = pack{
				version: f["Version"], arch: f["Architecture"], depends: words(f["Depends"]), conflicts: words(f["Conflicts"]),
				provides: words(f["Provides"]), fails: f["Script"] == "fails", service: f["Script"] == "service", at: f["Filename"], sum: f["SHA256"],
			}
		}
	}
	return all, 0, nil
}

func words(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ", ")
}

// plan gives what is to be installed, in order.
func (s *Sim) plan(repo map[string]pack, names []string) (order []string, exit int, err error) {
	var add func(name, by string) error
	add = func(name, by string) error {
		if slices.Contains(order, name) || s.provided(name, nil) {
			return nil
		}
		p, ok := repo[name]
		if !ok {
			for _, other := range slices.Sorted(maps.Keys(repo)) {
				if slices.Contains(repo[other].provides, name) {
					return add(other, by)
				}
			}
			return fmt.Errorf("unable to locate package %s%s", name, by)
		}
		for _, need := range p.depends {
			if err := add(need, ", which "+name+" needs"); err != nil {
				return err
			}
		}
		order = append(order, name)
		return nil
	}
	for _, n := range names {
		if err := add(n, ""); err != nil {
			return nil, 100, err
		}
	}
	for _, name := range order {
		for _, c := range repo[name].conflicts {
			for there, p := range s.packages {
				if p.is(there, c) {
					return nil, 77, fmt.Errorf("to install %s would remove %s", strings.Join(names, " "), there)
				}
			}
		}
	}
	return order, 0, nil
}
