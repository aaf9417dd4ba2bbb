// Package sign makes and checks signatures: over statements about a bundle or
// anything else, and over files.
//
//	Generate       a pair of keys, in cosign's format
//	LoadSigner     a private key becomes a Signer
//	Signer.Sign    an in-toto statement becomes one line of JSON: a Sigstore bundle
//	Trust          whose signatures count: holders of keys, or one identity
//	Trust.Verify   such a line becomes the statement again, if it counts
//	Verifier       a Trust, as bundle.Policy asks it
//	PolicyOf       whom a config trusts becomes a bundle.Policy
//	Maker          signs an archive: its slot, and a file beside it
//
// A statement is signed in a DSSE envelope, a file by its SHA-256; both lie in
// a Sigstore bundle of version 0.3, which cosign reads too. Nothing here asks
// the network: a keyless signature brings its proofs along, and a trusted root
// that a person carried in says whose they may be.
//
// It is the only package that imports cosign or sigstore-go, and of cosign
// nothing below cmd. Of kubexm it imports bundle.
package sign
