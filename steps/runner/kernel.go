package runner

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/mensylisir/kubexm/steps/connector"
)

var (
	sysctlKey  = regexp.MustCompile(`^[a-z0-9_][a-zA-Z0-9_/.-]*$`)
	moduleName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_-]*$`)
)

// sysctlFile gives the file of a key. The first separator of the key is its
// separator, as in sysctl(8): net.ipv4.conf.eth0/1.forwarding.
func sysctlFile(key string) (string, error) {
	if !sysctlKey.MatchString(key) || strings.Contains(key, "..") {
		return "", fmt.Errorf("%q is no sysctl key", key)
	}
	p := key
	if i := strings.IndexAny(key, "./"); i >= 0 && key[i] == '.' {
		p = strings.NewReplacer(".", "/", "/", ".").Replace(key)
	}
	file := "/proc/sys/" + p
	return file, checkPath(file)
}

// Sysctl gives the value of a kernel setting, its fields one space apart. A key
// that this kernel does not have is fs.ErrNotExist.
func (r *Runner) Sysctl(ctx context.Context, key string) (string, error) {
	file, err := sysctlFile(key)
	if err != nil {
		return "", err
	}
	res, err := r.script(ctx, connector.VerbSysctl, scriptSysctl, nil, key, file)
	if exited(err, exitAbsent) {
		return "", absent("read sysctl", key)
	}
	return strings.Join(strings.Fields(string(res.Stdout)), " "), err
}

// SetSysctl sets a kernel setting until the next boot.
func (r *Runner) SetSysctl(ctx context.Context, key, value string) error {
	file, err := sysctlFile(key)
	if err != nil {
		return err
	}
	_, err = r.script(ctx, connector.VerbSysctlW, scriptSetSysctl, nil, key, file, value)
	if exited(err, exitAbsent) {
		return absent("set sysctl", key)
	}
	return err
}

// ModuleState is what a kernel has of a module.
type ModuleState string

// The states of a module.
const (
	ModuleLoaded    ModuleState = "loaded"
	ModuleBuiltin   ModuleState = "builtin"   // part of the kernel: nothing to load
	ModuleAvailable ModuleState = "available" // can be loaded
	ModuleAbsent    ModuleState = "absent"
)

// Ready tells whether the module's code is in the kernel.
func (m ModuleState) Ready() bool { return m == ModuleLoaded || m == ModuleBuiltin }

// Module tells what the kernel has of a module.
func (r *Runner) Module(ctx context.Context, name string) (ModuleState, error) {
	if !moduleName.MatchString(name) {
		return "", fmt.Errorf("%q is no name of a module", name)
	}
	res, err := r.script(ctx, connector.VerbModule, scriptModule, nil, name)
	if err != nil {
		return "", err
	}
	switch s := ModuleState(strings.TrimSpace(string(res.Stdout))); s {
	case ModuleLoaded, ModuleBuiltin, ModuleAvailable, ModuleAbsent:
		return s, nil
	default:
		return "", fmt.Errorf("module %s: state %q is unknown", name, s)
	}
}

// Modprobe loads a module and what it needs.
func (r *Runner) Modprobe(ctx context.Context, name string) error {
	return r.modprobe(ctx, connector.VerbModprobe, name, "modprobe", "--")
}

// ModuleUnload takes a module out of the kernel, unless it is in use.
func (r *Runner) ModuleUnload(ctx context.Context, name string) error {
	return r.modprobe(ctx, connector.VerbRmmod, name, "modprobe", "-r", "--")
}

func (r *Runner) modprobe(ctx context.Context, verb, name string, argv ...string) error {
	if !moduleName.MatchString(name) {
		return fmt.Errorf("%q is no name of a module", name)
	}
	_, err := r.do(ctx, connector.Cmd{Verb: verb, Argv: append(argv, name), Sudo: true})
	return err
}
