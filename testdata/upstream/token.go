package upstream

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
)

// Login is what the registry requires to issue a token.
type Login struct {
	User, Password string
}

// admitted reports whether r may read path; otherwise it has answered with the token endpoint.
func (s *Server) admitted(m *meter, r *http.Request, path string) bool {
	if s.o.Login == nil {
		return true
	}
	scope := ""
	if i := strings.LastIndex(path, "/manifests/"); i > 0 {
		scope = "repository:" + path[:i] + ":pull"
	} else if i := strings.LastIndex(path, "/blobs/"); i > 0 {
		scope = "repository:" + path[:i] + ":pull"
	}
	given, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if hmac.Equal([]byte(given), []byte(s.o.Login.token(scope))) {
		return true
	}
	challenge := fmt.Sprintf(`Bearer realm="http://%s/token",service="upstream"`, r.Host)
	if scope != "" {
		challenge += fmt.Sprintf(`,scope=%q`, scope)
	}
	m.Header().Set("WWW-Authenticate", challenge)
	m.refuse(http.StatusUnauthorized, "UNAUTHORIZED", path)
	return false
}

// serveToken issues a token for one repository to a client with the password.
func (s *Server) serveToken(m *meter, r *http.Request) {
	user, password, _ := r.BasicAuth()
	l := s.o.Login
	if l == nil || user != l.User || password != l.Password {
		m.refuse(http.StatusUnauthorized, "UNAUTHORIZED", "user or password")
		return
	}
	m.json(map[string]any{"token": l.token(r.URL.Query().Get("scope")), "expires_in": 300})
}

// token is valid for one scope.
func (l *Login) token(scope string) string {
	h := hmac.New(sha256.New, []byte(l.User+"\x00"+l.Password))
	h.Write([]byte(scope))
	return hex.EncodeToString(h.Sum(nil))
}
