package discover

import (
	"regexp"
	"strings"

	"github.com/distribution/reference"
)

// shape is the minimum form of a text to count as an image reference.
type shape int

const (
	loose    shape = iota // any reference: the place is unambiguous
	named                 // with a registry, a tag or a digest
	tagged                // with a tag or a digest
	complete              // with a registry, and a tag or a digest: the place is ambiguous
)

// pictures matches file names of pictures, which are images in another sense.
var pictures = regexp.MustCompile(`(?i)\.(png|svg|jpe?g|gif|ico|webp|iso|qcow2|img|raw|vmdk)$`)

// moving has the common tags without a digit.
var moving = map[string]bool{"latest": true, "main": true, "master": true, "stable": true, "edge": true, "nightly": true, "canary": true, "release": true, "dev": true}

// normal returns the complete form of a reference, or "" if s does not have that shape.
func normal(s string, want shape) string {
	s = strings.TrimSpace(s)
	if s == "" || len(s) > 512 || strings.ContainsAny(s, " \t\n\"'$(){}<>,;|&*?%#!=") || pictures.MatchString(s) {
		return ""
	}
	s = strings.TrimPrefix(s, "docker://")
	ref, err := reference.ParseNormalizedNamed(s)
	if err != nil {
		return ""
	}
	_, digested := ref.(reference.Digested)
	tag := ""
	if t, ok := ref.(reference.Tagged); ok {
		tag = t.Tag()
	}
	bare := tag == "" && !digested
	first, _, deep := strings.Cut(s, "/")
	domain := reference.Domain(ref)
	written := deep && first == domain
	if want == named && bare && !written || want >= tagged && bare {
		return ""
	}
	if want == complete {
		switch {
		case !written:
			return ""
		case domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io"): // labels and taints
			return ""
		case !digested && !strings.ContainsAny(tag, "0123456789") && !moving[tag]: // label:Effect
			return ""
		}
	}
	return reference.TagNameOnly(ref).String()
}

// imageKey reports whether a key names an image, and the shape that its value must have.
func imageKey(key string) (shape, bool) {
	if key == "image" {
		return named, true
	}
	if i := strings.LastIndexByte(key, '/'); i >= 0 { // the name of an annotation or a label
		key = key[i+1:]
	}
	low := strings.ToLower(key)
	for _, end := range []string{"image", "imagename", "imageref", "imagereference", "imageurl", "image_name", "image-name"} {
		if strings.HasSuffix(low, end) {
			return tagged, true
		}
	}
	return tagged, strings.HasPrefix(low, "image.") || strings.HasSuffix(low, ".image")
}

// speaksOfImage reports whether the name of a flag, a variable or a setting is about an
// image.
func speaksOfImage(name string) bool {
	low := strings.ToLower(name)
	return strings.Contains(low, "image") && !strings.Contains(low, "pull") && !strings.Contains(low, "imagegc") && !strings.Contains(low, "image-gc")
}

// Whole returns the complete form of a reference: with its registry, and with the default
// tag if it has none. Text that is not a reference is returned unchanged.
func Whole(ref string) string {
	if w := normal(ref, loose); w != "" {
		return w
	}
	return ref
}
