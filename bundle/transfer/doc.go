// Package transfer pushes complete bundles to registries and pulls them. It also has what
// every exchange with a registry needs: timeouts (Waits), a limit of pages, and a request
// body that is safe to close.
//
// Push sends what Bundle.Contents lists, and Pull passes what it fetches to bundle.Copy.
package transfer
