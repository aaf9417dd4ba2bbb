package manifest

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest/document"
)

// defaultKeys are the default private keys of ssh, which a config in a bundle may refer to.
var defaultKeys = []string{"~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa"}

// ownVariables have the prefix of variables for secrets, but configure kubexm itself.
var ownVariables = []string{"KUBEXM_KEY_PASSWORD", "KUBEXM_CACHE"}

// CheckBundled returns a problem for each reference to the workdir host that a config in a
// bundle must not contain. Otherwise the creator of a bundle could read files and environment
// variables of the workdir host, send them to any address, and choose which SSH host keys are
// trusted. Such a config may refer to variables with the prefix that Public writes, to the
// default keys of ssh, and to files below the working directory. policy means that the command
// line sets the host key policy, which overrides the config.
func (c *Cluster) CheckBundled(policy bool) Problems {
	r := &carried{policy: policy}
	for path, s := range c.Secrets() {
		if shared, ok := c.inherited(path); !ok || !shared.Equal(s) {
			r.secret(path, s)
		}
	}
	r.ssh("spec.ssh", c.Spec.SSH, SSH{})
	for i, h := range c.Spec.Hosts {
		r.ssh(document.Indexed("spec.hosts", i), h.SSH, c.Spec.SSH)
	}
	e := c.Spec.Etcd.External
	r.file("spec.etcd.external.caFile", e.CAFile)
	r.file("spec.etcd.external.certFile", e.CertFile)
	r.file("spec.etcd.external.keyFile", e.KeyFile)
	for host, a := range c.Spec.Registry.Auths {
		r.file(document.Join("spec.registry.auths", host)+".certsPath", a.CertsPath)
	}
	r.found.Sort()
	return r.found
}

// inherited returns the secret of spec.ssh that a host inherits for the field at path.
func (c *Cluster) inherited(path string) (Secret, bool) {
	rest, ok := strings.CutPrefix(path, "spec.hosts[")
	_, field, _ := strings.Cut(rest, "].")
	s := c.Spec.SSH
	of := map[string]Secret{"password": s.Password, "passphrase": s.Passphrase, "sudoPassword": s.SudoPassword}
	if s.JumpHost != nil {
		of["jumpHost.password"], of["jumpHost.passphrase"] = s.JumpHost.Password, s.JumpHost.Passphrase
	}
	return of[field], ok
}

type carried struct {
	policy bool
	found  Problems
}

func (r *carried) refuse(path, advice, format string, args ...any) {
	r.found = append(r.found, Problem{Path: path, Message: fmt.Sprintf(format, args...), Advice: advice})
}

const byFile = "pass the config with -f"

func (r *carried) secret(path string, s Secret) {
	name, isEnv := s.env()
	switch _, isFile := s.file(); {
	case isEnv && strings.HasPrefix(name, secretPrefix) && !slices.Contains(ownVariables, name):
	case isEnv:
		r.refuse(path, byFile+", or rename the variable to "+secretPrefix+"…", "refers to the environment variable %s, which a config in a bundle must not read", name)
	case isFile:
		r.refuse(path, byFile, "refers to a file on this machine, which a config in a bundle must not read")
	default:
		r.refuse(path, byFile, "is a secret, which a config in a bundle must not contain")
	}
}

// ssh checks a login. Fields that are equal in other have been checked already.
func (r *carried) ssh(path string, s, other SSH) {
	r.login(path, s.Login, other.Login)
	if s.JumpHost == nil {
		return
	}
	var o Login
	if other.JumpHost != nil {
		o = other.JumpHost.Login
	}
	r.login(path+".jumpHost", s.JumpHost.Login, o)
}

func (r *carried) login(path string, l, other Login) {
	if key := l.PrivateKeyPath; key != "" && key != other.PrivateKeyPath && !slices.Contains(defaultKeys, key) {
		r.refuse(path+".privateKeyPath", byFile, "refers to a file on this machine; a config in a bundle may only refer to %s", strings.Join(defaultKeys, ", "))
	}
	if p := l.HostKeyPolicy; !r.policy && p != "" && p != "strict" && p != other.HostKeyPolicy {
		r.refuse(path+".hostKeyPolicy", byFile+", or use --host-key-policy", "is %s: a config in a bundle must not set which host keys are trusted", p)
	}
}

// file accepts a path below the working directory in which no element is hidden.
func (r *carried) file(path, name string) {
	hidden := func(part string) bool { return strings.HasPrefix(part, ".") && part != "." }
	if name == "" || filepath.IsLocal(name) && !slices.ContainsFunc(strings.Split(filepath.ToSlash(name), "/"), hidden) && !strings.HasPrefix(name, "~") {
		return
	}
	r.refuse(path, byFile, "refers to a hidden file or to a file outside the working directory, which a config in a bundle must not read")
}
