// Package helpers was never agreed on.
package helpers
