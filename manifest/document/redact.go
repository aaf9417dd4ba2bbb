package document

import "regexp"

var (
	userInfo  = regexp.MustCompile(`://[^/@\s]*@`)
	secretish = regexp.MustCompile(`(?is)(password|passphrase|secret|token)([^:=：]{0,20}[:=：]).*`)
)

// Mask replaces a value that is not shown.
const Mask = "***"

// Redact shortens a value for a message, and masks what looks like a secret in it.
func Redact(s string) string {
	s = userInfo.ReplaceAllString(s, "://"+Mask+"@")
	s = secretish.ReplaceAllString(s, "$1$2"+Mask)
	if len(s) > 60 {
		return s[:57] + "..."
	}
	return s
}

// HasUser reports whether a URL in s contains a user or a password.
func HasUser(s string) bool { return userInfo.MatchString(s) }
