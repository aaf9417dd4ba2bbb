// Command bench measures what a bundle costs against what the same machine does
// with plain tools and with peers, and prints each figure beside the one to reach.
//
// It makes a work set of about 32 images and 11 files, serves it on the loopback
// address, and runs whole processes in rounds: a figure is the median of ratios
// of which both sides were taken in the same round. Absolute times say little on
// a machine that others use.
//
//   - floor: what is fetched, downloaded in parallel to disk and not hashed;
//   - floor that hashes: the same, hashed on the way, which no build can leave out;
//   - tar + zstd: what that brings, packed by tar, compressed by zstd -3 -T0;
//   - sha256: the same blobs read from disk and hashed by two workers;
//   - oras: the bundle as a layout on disk, copied to a registry four blobs at once.
//
// A peer that is not on the PATH is left out, and a line says so. Peers run where
// nothing leads out. It is a tool of this repository and may import any package
// of the module.
package main
