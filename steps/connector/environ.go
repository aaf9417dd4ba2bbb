package connector

// SearchPath is where a host's programs are looked for, whatever its login
// shell and its sudoers say: the same command finds the same program on each.
const SearchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Plainly gives argv in an environment that makes programs print what parsers
// expect: messages in the C locale, and path to search (SearchPath when empty).
func Plainly(path string, argv []string) []string {
	if path == "" {
		path = SearchPath
	}
	return append([]string{"/usr/bin/env", "LC_ALL=C", "PATH=" + path}, argv...)
}
