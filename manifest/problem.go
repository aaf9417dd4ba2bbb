package manifest

import "github.com/mensylisir/kubexm/manifest/document"

// The findings in a document; see package document.
type (
	Severity = document.Severity
	Problem  = document.Problem
	Problems = document.Problems
)

// Whether a Problem stops the work.
const (
	Error   = document.Error
	Warning = document.Warning
)
