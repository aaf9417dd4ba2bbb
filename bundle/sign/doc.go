// Package sign creates and verifies signatures of in-toto statements and of files.
//
//	Generate       creates a key pair in cosign's format
//	LoadSigner     decrypts a private key
//	Signer.Sign    signs an in-toto statement: one line of JSON, a Sigstore bundle
//	Trust          is a trusted public key or identity
//	Trust.Verify   verifies such a line and returns its statement
//	Verifier       implements bundle.Verifier for several Trusts
//	PolicyOf       converts the trust settings of a config to a bundle.Policy
//	BundleSigner   signs an archive: its signature slot, and a detached signature
//
// A statement is signed in a DSSE envelope, a file by its SHA-256. Both are stored in a
// Sigstore bundle of version 0.3, which cosign reads too. Verification uses no network: a
// keyless signature includes its proofs, and the user provides a trusted root to check them
// with.
//
// It is the only package that imports cosign or sigstore-go, and of cosign nothing below
// cmd. Of kubexm it imports bundle.
package sign
