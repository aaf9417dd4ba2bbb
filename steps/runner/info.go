package runner

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// infoFields is the number of fields in a record of scriptStat.
const infoFields = 5

// records splits the output of scriptStat, scriptList and scriptCompare.
func records(b []byte) ([][]string, error) {
	if len(b) == 0 {
		return nil, nil
	}
	if b[len(b)-1] != 0 {
		return nil, errors.New("the last record is truncated")
	}
	fields := strings.Split(string(b[:len(b)-1]), "\x00")
	if len(fields)%infoFields != 0 {
		return nil, fmt.Errorf("%d fields do not form complete records", len(fields))
	}
	return slices.Collect(slices.Chunk(fields, infoFields)), nil
}

// parseInfos parses records and sorts them by name.
func parseInfos(b []byte) ([]Info, error) {
	rs, err := records(b)
	if err != nil {
		return nil, err
	}
	var infos []Info
	for _, f := range rs {
		i, err := parseInfo(f)
		if err != nil {
			return nil, err
		}
		infos = append(infos, i)
	}
	slices.SortFunc(infos, func(a, b Info) int { return cmp.Compare(a.Name, b.Name) })
	return infos, nil
}

func parseInfo(f []string) (Info, error) {
	numbers := strings.Fields(f[0])
	if len(numbers) != 5 {
		return Info{}, fmt.Errorf("%q: want mode, size, uid, gid and time", f[0])
	}
	mode, err := strconv.ParseUint(numbers[0], 16, 32)
	if err != nil {
		return Info{}, fmt.Errorf("mode: %w", err)
	}
	var n [4]int64
	for i, s := range numbers[1:] {
		if n[i], err = strconv.ParseInt(s, 10, 64); err != nil {
			return Info{}, err
		}
	}
	return Info{
		Mode: fileMode(uint32(mode)), Size: n[0], UID: int(n[1]), GID: int(n[2]), ModTime: time.Unix(n[3], 0).UTC(),
		Owner: f[1], Group: f[2], Name: f[3], Target: f[4],
	}, nil
}

// fileMode converts st_mode to fs.FileMode.
func fileMode(st uint32) fs.FileMode {
	m := fs.FileMode(st & 0o777)
	switch st & 0o170000 {
	case 0o040000:
		m |= fs.ModeDir
	case 0o120000:
		m |= fs.ModeSymlink
	case 0o060000:
		m |= fs.ModeDevice
	case 0o020000:
		m |= fs.ModeDevice | fs.ModeCharDevice
	case 0o010000:
		m |= fs.ModeNamedPipe
	case 0o140000:
		m |= fs.ModeSocket
	}
	if st&0o4000 != 0 {
		m |= fs.ModeSetuid
	}
	if st&0o2000 != 0 {
		m |= fs.ModeSetgid
	}
	if st&0o1000 != 0 {
		m |= fs.ModeSticky
	}
	return m
}

// checkPath rejects relative and unclean paths, and paths with control characters.
func checkPath(p string) error {
	switch {
	case !path.IsAbs(p):
		return fmt.Errorf("path %q is not absolute", p)
	case path.Clean(p) != p:
		return fmt.Errorf("path %q is not clean: want %q", p, path.Clean(p))
	case strings.ContainsFunc(p, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return fmt.Errorf("path %q holds control characters", p)
	}
	return nil
}
