package manifest

import "github.com/mensylisir/kubexm/manifest/document"

type (
	// Severity is error or warning.
	Severity = document.Severity
	// Problem is one finding in a document, with its place.
	Problem = document.Problem
	// Problems are all findings in a document.
	Problems = document.Problems
)

// The severities of a Problem.
const (
	Error   = document.Error
	Warning = document.Warning
)
