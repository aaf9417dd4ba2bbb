// Package transfer moves whole bundles into registries and out of them, and has what
// every exchange with a registry needs: limits of time (Waits), of pages, and a body that
// is closed once.
//
// What a bundle is, is package bundle's: Push sends what Bundle.Contents lists, Pull hands
// what it fetches to bundle.Copy.
package transfer
