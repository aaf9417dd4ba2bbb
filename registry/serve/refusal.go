package serve

import "net/http"

// The error codes of the OCI distribution specification that are used.
const (
	codeBlobUnknown     = "BLOB_UNKNOWN"
	codeDigestInvalid   = "DIGEST_INVALID"
	codeManifestUnknown = "MANIFEST_UNKNOWN"
	codeNameInvalid     = "NAME_INVALID"
	codeNameUnknown     = "NAME_UNKNOWN"
	codeTooMany         = "TOOMANYREQUESTS"
	codeUnsupported     = "UNSUPPORTED"
	codeUnknown         = "UNKNOWN"
)

// refuse writes an error response of the OCI distribution specification: a status, and JSON with
// a code and a message.
func refuse(w http.ResponseWriter, status int, code, message string) {
	for _, stale := range []string{"Etag", "Docker-Content-Digest", "Accept-Ranges", "Content-Range"} {
		w.Header().Del(stale)
	}
	object(w, status, "application/json", map[string]any{"errors": []map[string]string{{"code": code, "message": message}}})
}
