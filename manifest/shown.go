package manifest

import "regexp"

var (
	userInfo  = regexp.MustCompile(`://[^/@\s]*@`)
	secretish = regexp.MustCompile(`(?is)(password|passphrase|secret|token)([^:=：]{0,20}[:=：]).*`)
)

// shown keeps a value in a message short, and what looks like a secret in it out.
func shown(s string) string {
	s = userInfo.ReplaceAllString(s, "://"+mask+"@")
	s = secretish.ReplaceAllString(s, "$1$2"+mask)
	if len(s) > 60 {
		return s[:57] + "..."
	}
	return s
}
