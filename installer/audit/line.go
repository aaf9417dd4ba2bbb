package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// Type is the kind of a line.
type Type string

// The kinds of lines.
const (
	TypeHead  Type = "head"  // the first line: the cluster of the log, and when it was started
	TypeRun   Type = "run"   // a plan starts; the lines that follow are its work
	TypeEnd   Type = "end"   // of a run
	TypeBegin Type = "begin" // a command that may change something is about to be sent
	TypeDid   Type = "did"   // a command ended, or was given up
	TypeTorn  Type = "torn"  // the previous lines, usually one, were truncated while being written
)

// Line is one line of the log. Fields that do not apply are omitted.
type Line struct {
	N    int64     `json:"n"`    // 1 for the first
	Prev string    `json:"prev"` // SHA-256 of the previous line, without its line end; "" for the first
	Time time.Time `json:"time"`
	Type Type      `json:"type"`

	Who    string `json:"who,omitempty"`    // user and machine that kubexm ran as and on
	Kubexm string `json:"kubexm,omitempty"` // its version

	Cluster string `json:"cluster,omitempty"` // of a head line
	Message string `json:"message,omitempty"` // of a run or end line

	Host string   `json:"host,omitempty"` // name in the config
	Step string   `json:"step,omitempty"` // id in the plan; empty before a plan starts
	Verb string   `json:"verb,omitempty"`
	Argv []string `json:"argv,omitempty"` // of a program the full command, of a script its arguments; redacted
	// Script is the SHA-256 of the script that Argv is passed to: a constant of this kubexm.
	Script   string `json:"script,omitempty"`
	Sudo     bool   `json:"sudo,omitempty"` // run as root by sudo
	ReadOnly bool   `json:"look,omitempty"` // a command that changes nothing

	Exit    *int     `json:"exit,omitempty"` // absent if there is none; then Error has the reason
	Error   string   `json:"error,omitempty"`
	Seconds float64  `json:"seconds,omitempty"`
	Stdin   *Content `json:"stdin,omitempty"` // of a written file, its content

	Began int64    `json:"began,omitempty"` // number of the begin line of this command
	Torn  []string `json:"torn,omitempty"`  // the SHA-256 of each truncated line directly before
}

// Content describes what was sent.
type Content struct {
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256,omitempty"`
	// FromBundle reports that the bytes are those of files of the bundle: the host compares each
	// file with the digest among the command's arguments before it moves it to its place.
	FromBundle bool `json:"said,omitempty"`
	// Secret reports that the content includes a secret; then no hash is stored, because the
	// secret could be guessed from it.
	Secret bool `json:"secret,omitempty"`
}

// Head is the state of a log at one time: its number of lines, and the hash of the last.
// Recorded elsewhere, it shows later whether the log was cut off.
type Head struct {
	Lines  int64  `json:"lines"`
	SHA256 string `json:"sha256"`
}

func hashOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
