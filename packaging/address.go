package packaging

import (
	"net/url"
	"strings"
)

// Address returns the URL of a file in a repository. It does not contain the repository's
// user and password, and the file's path is escaped.
func Address(repository, file string) string {
	return strings.TrimRight(Public(repository), "/") + "/" + (&url.URL{Path: strings.TrimLeft(file, "/")}).EscapedPath()
}

// Public returns a URL without user and password.
func Public(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.User == nil {
		return address
	}
	u.User = nil
	return u.String()
}
