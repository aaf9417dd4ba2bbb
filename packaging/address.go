package packaging

import (
	"net/url"
	"strings"
)

// Address gives where a file of a repository is: an address that anybody may read,
// without the user and password that the repository's own may have, and with what is
// no part of an address in the file's path escaped.
func Address(repository, file string) string {
	return strings.TrimRight(Public(repository), "/") + "/" + (&url.URL{Path: strings.TrimLeft(file, "/")}).EscapedPath()
}

// Public gives an address without user and password.
func Public(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.User == nil {
		return address
	}
	u.User = nil
	return u.String()
}
