package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// Type says what a line tells of.
type Type string

// The types of lines.
const (
	TypeHead  Type = "head"  // the first line: which cluster's log it is, since when
	TypeRun   Type = "run"   // a plan begins to be carried out; what follows is its work
	TypeEnd   Type = "end"   // of a run
	TypeBegin Type = "begin" // a command that may change something is about to be handed over
	TypeDid   Type = "did"   // a command ended, or was given up
	TypeTorn  Type = "torn"  // the lines before, most often one, were cut off while they were written
)

// Line is one line of the log. Fields that do not apply are left out.
type Line struct {
	N    int64     `json:"n"`    // 1 for the first
	Prev string    `json:"prev"` // SHA-256 of the line before, without its end of line; "" for the first
	Time time.Time `json:"time"`
	Type Type      `json:"type"`

	Who    string `json:"who,omitempty"`    // user and machine that kubexm ran as and on
	Kubexm string `json:"kubexm,omitempty"` // its version

	Cluster string `json:"cluster,omitempty"` // of a head
	Message string `json:"message,omitempty"` // of a run, an end

	Host string   `json:"host,omitempty"` // as the config names it
	Step string   `json:"step,omitempty"` // its id in the plan; empty for what is asked before a plan begins
	Verb string   `json:"verb,omitempty"`
	Argv []string `json:"argv,omitempty"` // of a program all, of a script its arguments; redacted
	// Script is the SHA-256 of the script that Argv goes to: a constant of this kubexm.
	Script string `json:"script,omitempty"`
	Sudo   bool   `json:"sudo,omitempty"` // made root's by sudo
	Look   bool   `json:"look,omitempty"` // of a kind that changes nothing

	Exit    *int     `json:"exit,omitempty"` // absent where there is none: then Error says why
	Error   string   `json:"error,omitempty"`
	Seconds float64  `json:"seconds,omitempty"`
	Stdin   *Content `json:"stdin,omitempty"` // of a file that is written, its content

	Began int64    `json:"began,omitempty"` // the number of the line that said so
	Torn  []string `json:"torn,omitempty"`  // the SHA-256 of each line right before that was cut off
}

// Content is what was sent.
type Content struct {
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256,omitempty"`
	// Said tells that SHA256 is the bundle's word: the bytes are hashed on the host
	// before they take their place, by the command that follows (fs.seal).
	Said bool `json:"said,omitempty"`
	// Secret tells that there is a password in it: a hash of it could be guessed at.
	Secret bool `json:"secret,omitempty"`
}

// Head is the state of a log at one time: how many lines it had, and the hash of
// the last. Written down elsewhere it tells when a log was cut off since.
type Head struct {
	Lines  int64  `json:"lines"`
	SHA256 string `json:"sha256"`
}

func hashOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
