package document

import "regexp"

var (
	userInfo  = regexp.MustCompile(`://[^/@\s]*@`)
	secretish = regexp.MustCompile(`(?is)(password|passphrase|secret|token)([^:=：]{0,20}[:=：]).*`)
)

// Mask stands for a value that is not shown.
const Mask = "***"

// Shown keeps a value in a message short, and what looks like a secret in it out.
func Shown(s string) string {
	s = userInfo.ReplaceAllString(s, "://"+Mask+"@")
	s = secretish.ReplaceAllString(s, "$1$2"+Mask)
	if len(s) > 60 {
		return s[:57] + "..."
	}
	return s
}

// HasUser tells whether an address in s holds a user or a password.
func HasUser(s string) bool { return userInfo.MatchString(s) }
