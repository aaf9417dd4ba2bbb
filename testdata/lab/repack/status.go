package repack

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// debian is an installed package of Debian's.
type debian struct {
	name, arch, version, summary string
	depends                      []string // clauses, each with its alternatives
	provides                     []string
	conffiles                    map[string]bool
	files                        []string // as dpkg lists them, folders too
}

// readStatus reads what is installed below root.
func readStatus(root string) ([]debian, error) {
	f, err := os.Open(filepath.Join(root, "var/lib/dpkg/status"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []debian
	fields, last := map[string]string{}, ""
	end := func() error {
		if strings.HasSuffix(fields["Status"], " installed") {
			d, err := installed(root, fields)
			if err != nil {
				return err
			}
			all = append(all, d)
		}
		fields, last = map[string]string{}, ""
		return nil
	}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		switch line := lines.Text(); {
		case line == "":
			if err := end(); err != nil {
				return nil, err
			}
		case line[0] == ' ':
			fields[last] += "\n" + strings.TrimSpace(line)
		default:
			key, value, _ := strings.Cut(line, ":")
			fields[key], last = strings.TrimSpace(value), key
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	return all, end()
}

func installed(root string, fields map[string]string) (debian, error) {
	d := debian{name: fields["Package"], arch: fields["Architecture"], version: fields["Version"], conffiles: map[string]bool{}}
	d.summary, _, _ = strings.Cut(fields["Description"], "\n")
	d.depends = append(clauses(fields["Pre-Depends"]), clauses(fields["Depends"])...)
	d.provides = clauses(fields["Provides"])
	for line := range strings.Lines(fields["Conffiles"]) {
		if words := strings.Fields(line); len(words) > 0 {
			d.conffiles[words[0]] = true
		}
	}
	info := filepath.Join(root, "var/lib/dpkg/info")
	list, err := os.ReadFile(filepath.Join(info, d.name+".list"))
	if os.IsNotExist(err) {
		list, err = os.ReadFile(filepath.Join(info, d.name+":"+d.arch+".list"))
	}
	if err != nil {
		return d, fmt.Errorf("files of %s: %w", d.name, err)
	}
	d.files = strings.Split(strings.TrimSpace(string(list)), "\n")
	return d, nil
}

func clauses(text string) []string {
	var out []string
	for c := range strings.SplitSeq(text, ",") {
		if c = strings.TrimSpace(c); c != "" {
			out = append(out, c)
		}
	}
	return out
}
