package versions

import (
	"net/url"
	"path"
	"regexp"
	"strings"

	dockerref "github.com/distribution/reference"
)

var placeholder = regexp.MustCompile(`\{[^{}]*\}`)

// braces says which placeholder of a template is none.
func braces(s string) string {
	for _, p := range placeholder.FindAllString(s, -1) {
		if p != "{version}" && p != "{arch}" && p != "{machine}" {
			return "holds " + p + "; the placeholders are {version}, {arch} and {machine}"
		}
	}
	if strings.ContainsAny(placeholder.ReplaceAllString(s, ""), "{}") {
		return "holds a brace that belongs to no placeholder"
	}
	return ""
}

// template says what keeps s from being an address once it is filled in.
func template(s string) string {
	if why := braces(s); why != "" {
		return why
	}
	u, err := url.Parse(placeholder.ReplaceAllString(s, "1"))
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" || u.User != nil || u.Fragment != "" {
		return "is not an address, as in https://host/path"
	}
	return ""
}

// memberPath says what keeps s from being a path in an archive.
func memberPath(s string) string {
	if s == "" || s == "." || path.IsAbs(s) || path.Clean(s) != s || strings.HasPrefix(s, "../") || s == ".." || strings.ContainsAny(s, "\\\x00") {
		return "is not a plain path inside the archive"
	}
	return ""
}

// reference says what keeps s from being an image with registry and tag.
func reference(s string) string {
	filled := placeholder.ReplaceAllString(s, "1")
	named, err := dockerref.ParseNormalizedNamed(filled)
	if err != nil {
		return "is not an image reference"
	}
	if _, ok := named.(dockerref.Digested); ok {
		return "carries a digest; write it under images: {reference: digest}"
	}
	if _, ok := named.(dockerref.Tagged); !ok {
		return "has no tag"
	}
	if named.String() != filled {
		return "lacks its registry or is shortened; write " + named.String()
	}
	return ""
}
