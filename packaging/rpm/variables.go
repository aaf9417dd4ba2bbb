package rpm

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Variables are the variables of .repo files, by name without the dollar sign.
type Variables map[string]string

// NewVariables returns the variables for a distribution's release ("9", "22.03") and rpm's
// name of an architecture ("x86_64"), and those of folders such as /etc/dnf/vars and
// /etc/yum/vars, which contain a file for each variable. A missing folder has none.
func NewVariables(release, arch string, dirs ...string) (Variables, error) {
	v := Variables{"releasever": release, "arch": arch, "basearch": arch}
	if strings.HasPrefix(arch, "i") && strings.HasSuffix(arch, "86") {
		v["basearch"] = "i386"
	}
	major, minor, _ := strings.Cut(release, ".")
	v["releasever_major"], v["releasever_minor"] = major, minor
	for _, dir := range dirs {
		files, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, f := range files {
			if f.IsDir() {
				continue
			}
			content, err := os.ReadFile(filepath.Join(dir, f.Name()))
			if err != nil {
				return nil, err
			}
			line, _, _ := strings.Cut(string(content), "\n")
			v[f.Name()] = strings.TrimSpace(line)
		}
	}
	return v, nil
}

// variable is $name or ${name}.
var variable = regexp.MustCompile(`\$(?:\{([A-Za-z0-9_]+)\}|([A-Za-z0-9_]+))`)

// expand replaces variables by their values, and returns the names of undefined ones.
func (v Variables) expand(s string) (out string, missing []string) {
	out = variable.ReplaceAllStringFunc(s, func(m string) string {
		name := strings.Trim(m, "${}")
		value, ok := v[name]
		if !ok {
			missing = append(missing, name)
		}
		return value
	})
	return out, missing
}

// Arch converts a Go architecture to rpm's name; unknown names are returned unchanged.
func Arch(arch string) string {
	if a, ok := arches[arch]; ok {
		return a
	}
	return arch
}

// arches contains rpm's names, from its rpmrc.
var arches = map[string]string{"amd64": "x86_64", "arm64": "aarch64", "386": "i686", "loong64": "loongarch64"}
