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

// sysctlFile returns the file of a key below /proc/sys. The first dot or slash of a key
// is its separator, as in sysctl(8): net.ipv4.conf.eth0/1.forwarding.
func sysctlFile(key string) (string, error) {
	if !sysctlKey.MatchString(key) || strings.Contains(key, "..") {
		return "", fmt.Errorf("%q is not a valid sysctl key", key)
	}
	p := key
	if i := strings.IndexAny(key, "./"); i >= 0 && key[i] == '.' {
		p = strings.NewReplacer(".", "/", "/", ".").Replace(key)
	}
	file := "/proc/sys/" + p
	return file, checkPath(file)
}

// Sysctl returns the value of a kernel setting, with its fields separated by one space. If
// the kernel does not have the key, the error is fs.ErrNotExist.
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

// ModuleState is the state of a kernel module.
type ModuleState string

// The states of a module.
const (
	ModuleLoaded    ModuleState = "loaded"
	ModuleBuiltin   ModuleState = "builtin"   // compiled into the kernel
	ModuleAvailable ModuleState = "available" // can be loaded
	ModuleAbsent    ModuleState = "absent"
)

// Ready reports whether the module is loaded or built in.
func (m ModuleState) Ready() bool { return m == ModuleLoaded || m == ModuleBuiltin }

// Module returns the state of a kernel module.
func (r *Runner) Module(ctx context.Context, name string) (ModuleState, error) {
	if !moduleName.MatchString(name) {
		return "", fmt.Errorf("%q is not a valid module name", name)
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

// Modprobe loads a module and its dependencies.
func (r *Runner) Modprobe(ctx context.Context, name string) error {
	return r.modprobe(ctx, connector.VerbModprobe, name, "modprobe", "--")
}

// ModuleUnload unloads a module. It fails if the module is in use.
func (r *Runner) ModuleUnload(ctx context.Context, name string) error {
	return r.modprobe(ctx, connector.VerbRmmod, name, "modprobe", "-r", "--")
}

func (r *Runner) modprobe(ctx context.Context, verb, name string, argv ...string) error {
	if !moduleName.MatchString(name) {
		return fmt.Errorf("%q is not a valid module name", name)
	}
	_, err := r.do(ctx, connector.Cmd{Verb: verb, Argv: append(argv, name), Sudo: true})
	return err
}
