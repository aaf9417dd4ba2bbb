// Package apt owns repositories as apt knows them: how they are configured, whose
// signature they bear, what they offer, which of several versions apt would
// take, and how an offline repository of some packages is written.
//
//	sources     sources.list and .sources, from a folder or from a text
//	release     InRelease, or Release and Release.gpg: signature, dates, suite
//	index       Packages, in whatever compression, against the digest in the release
//	policy      of several repositories' versions the one with the highest pin
//	Archive     all of it for one architecture: a packaging.Universe
//	Repository  Packages and Release of some packages, to be carried
//
// A repository without a good signature is never read on. Nothing here knows a
// distribution's hosts, and nothing reaches the network but through a Web.
//
// It may import packaging, versions and manifest.
package apt
