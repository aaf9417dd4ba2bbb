package versions

import (
	"net/url"
	"path"
	"regexp"
	"strings"

	dockerref "github.com/distribution/reference"
)

var placeholder = regexp.MustCompile(`\{[^{}]*\}`)

// braces returns a reason if a template has an unknown placeholder or a single brace, else "".
func braces(s string) string {
	for _, p := range placeholder.FindAllString(s, -1) {
		if p != "{version}" && p != "{arch}" && p != "{machine}" {
			return "contains " + p + "; the placeholders are {version}, {arch} and {machine}"
		}
	}
	if strings.ContainsAny(placeholder.ReplaceAllString(s, ""), "{}") {
		return "contains a brace that is not part of a placeholder"
	}
	return ""
}

// template returns a reason if s is not a template of a URL, else "".
func template(s string) string {
	if why := braces(s); why != "" {
		return why
	}
	u, err := url.Parse(placeholder.ReplaceAllString(s, "1"))
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" || u.User != nil || u.Fragment != "" {
		return "is not a URL, as in https://host/path"
	}
	return ""
}

// memberPath returns a reason if s is not a path in an archive, else "".
func memberPath(s string) string {
	if s == "" || s == "." || path.IsAbs(s) || path.Clean(s) != s || strings.HasPrefix(s, "../") || s == ".." || strings.ContainsAny(s, "\\\x00") {
		return "is not a plain path inside the archive"
	}
	return ""
}

// reference returns a reason if s is not an image reference with registry and tag, else "".
func reference(s string) string {
	filled := placeholder.ReplaceAllString(s, "1")
	named, err := dockerref.ParseNormalizedNamed(filled)
	if err != nil {
		return "is not an image reference"
	}
	if _, ok := named.(dockerref.Digested); ok {
		return "contains a digest; write the digest under images: {reference: digest}"
	}
	if _, ok := named.(dockerref.Tagged); !ok {
		return "has no tag"
	}
	if named.String() != filled {
		return "has no registry or is abbreviated; write " + named.String()
	}
	return ""
}
