package report

import (
	"crypto/x509"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"

	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/bundle/archive"
	"github.com/mensylisir/kubexm/bundle/delta"
	"github.com/mensylisir/kubexm/bundle/fetch"
	"github.com/mensylisir/kubexm/bundle/sign"
	"github.com/mensylisir/kubexm/bundle/transfer"
	"github.com/mensylisir/kubexm/manifest/refusal"
	"github.com/mensylisir/kubexm/packaging/apt"
)

// CodeConfigMismatch is the code of complete and trusted bundles that were built for another
// config: other versions, hosts of another platform, or a delta without its base.
const CodeConfigMismatch = "bundle-lacks"

// Refused adds the exit code to an error about a bundle, a lock or an artifact, and advice if
// there is any.
func Refused(err error) error {
	if _, known := errors.AsType[*refusal.Error](err); known {
		return err // it already has its advice
	}
	var format *bundle.FormatError
	var damaged *archive.Error
	var wrong *fetch.DigestError
	var size *fetch.SizeError
	var space *bundle.SpaceError
	var exists *bundle.ExistsError
	var name *bundle.NameError
	var path *fs.PathError
	for _, of := range []func(error) error{refusedDelta, untrusted} {
		if known := of(err); known != nil {
			return known
		}
	}
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong), errors.As(err, &size), refusedPackages(err):
		return &refusal.Error{Err: err, Kind: refusal.Content} // it has its own advice
	case errors.As(err, &name):
		return &refusal.Error{Err: err, Kind: refusal.Usage, Advice: "`kubexm bundle ls` lists the contents of the bundle"}
	case errors.As(err, &exists):
		return &refusal.Error{Err: err, Kind: refusal.Usage, Advice: "specify a folder that does not exist"}
	case errors.Is(err, archive.ErrBusy):
		return &refusal.Error{Err: err, Kind: refusal.Failed, Advice: "wait for the other build, or choose another name for the archive"}
	case errors.Is(err, archive.ErrInput):
		errors.As(err, &damaged)
		return &refusal.Error{Err: err, Kind: refusal.Usage, Advice: damaged.Advice}
	case errors.As(err, &damaged) && damaged.Advice != "":
		return &refusal.Error{Err: err, Kind: refusal.Content, Advice: damaged.Advice}
	case errors.As(err, &format), errors.As(err, &damaged):
		advice := "copy the archive to this machine again, or rebuild it"
		if format != nil && format.Advice != "" {
			advice = format.Advice
		}
		return &refusal.Error{Err: err, Kind: refusal.Content, Advice: advice}
	case errors.As(err, &path) && path.Op == "stat" && errors.Is(path, fs.ErrNotExist):
		return noBundle(path)
	case errors.As(err, &space):
		return &refusal.Error{Err: err, Kind: refusal.Failed, Advice: "choose another place for the archive, or for the cache with --cache-dir"}
	}
	return err
}

// refusedPackages reports whether err is about an invalid package repository, or its metadata.
func refusedPackages(err error) bool {
	var repository *apt.Refusal
	var unverified *fetch.UnverifiedError
	var metadata *fetch.MetadataError
	return errors.As(err, &repository) || errors.As(err, &unverified) || errors.As(err, &metadata)
}

// noBundle reports a missing archive, and suggests which one may be meant.
func noBundle(err *fs.PathError) error {
	advice := "specify a bundle: NAME.tar.zst, or NAME.tar.zst.001 for a bundle in volumes"
	if first := err.Path + bundle.FirstVolume; exists(first) {
		advice = "the bundle is in volumes: specify " + first
	}
	return &refusal.Error{Err: &fs.PathError{Op: "open", Path: err.Path, Err: err.Err}, Kind: refusal.Usage, Advice: advice}
}

// refusedDelta adds exit code and advice to an error about a delta and its base; nil for other
// errors.
func refusedDelta(err error) error {
	var lack *bundle.AbsentBlobsError
	var base *delta.BaseError
	var cluster *delta.ClusterError
	switch {
	case errors.As(err, &lack):
		return &refusal.Error{Err: err, Kind: refusal.Content, Code: CodeConfigMismatch,
			Advice: "specify the archive with that root with --base; if the site no longer has it, carry it, or the complete bundle, to the site again"}
	case errors.As(err, &base):
		return &refusal.Error{Err: err, Kind: refusal.Content, Advice: "specify the archive that the site had when its inventory was taken; `kubexm bundle show` prints an archive's root"}
	case errors.As(err, &cluster):
		return &refusal.Error{Err: err, Kind: refusal.Usage, Advice: "take the inventory of that cluster's site: kubexm site inventory -f …"}
	case errors.Is(err, bundle.ErrNotDelta):
		return &refusal.Error{Err: err, Kind: refusal.Usage, Advice: "use it as it is"}
	}
	return nil
}

// untrusted adds exit code and advice to an error of the trust policy; nil for other errors.
func untrusted(err error) error {
	if !errors.Is(err, bundle.ErrUntrusted) {
		return nil
	}
	advice := "ask who built the bundle; do not use it before this is resolved"
	switch {
	case errors.Is(err, bundle.TrustUnsigned):
		advice = "if you know where the bundle comes from, accept it with --allow-unsigned; `kubexm bundle sign` signs it"
	case errors.Is(err, bundle.TrustNobody):
		advice = "specify the signer's public key with --key; if you know where the bundle comes from, accept it with --allow-unsigned"
	case errors.Is(err, bundle.TrustKubexm):
		advice = "use a newer version of kubexm"
	case errors.Is(err, bundle.TrustSerial):
		advice = "use the newest bundle; if the downgrade is intended, accept this one with --allow-downgrade"
	case errors.Is(err, bundle.TrustSerialUnknown):
		advice = "start the API server of a master and run again; --allow-downgrade continues without this check"
	case errors.Is(err, sign.ErrKey), errors.Is(err, sign.ErrIdentity):
		advice = "ask whether this is the key, or the identity, of the bundle's signer; do not use the bundle before this is resolved"
	}
	return &refusal.Error{Err: err, Kind: refusal.Content, Advice: advice}
}

// RemoteRefused adds exit code and advice to an error of a registry.
func RemoteRefused(err error) error {
	var reference *transfer.ReferenceError
	switch {
	case errors.As(err, &reference):
		return &refusal.Error{Err: err, Kind: refusal.Usage}
	case strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"): // net/http has no type for it
		return &refusal.Error{Err: err, Kind: refusal.Failed, Advice: "if the registry is meant to serve HTTP without TLS, add --plain-http"}
	case errors.Is(err, transfer.ErrNoBundle):
		return &refusal.Error{Err: err, Kind: refusal.Failed, Advice: "list the tags of the repository: oras repo tags, crane ls"}
	}
	return Refused(err)
}

// FillRefused adds advice to an error of pushing to a registry.
func FillRefused(err error) error {
	var r *errcode.ErrorResponse
	is := func(statuses ...int) bool { return errors.As(err, &r) && slices.Contains(statuses, r.StatusCode) }
	var unknown x509.UnknownAuthorityError
	switch {
	case errors.As(err, &unknown):
		return &refusal.Error{Err: err, Kind: refusal.Failed, Advice: "specify the CA that signed the registry's certificate with --ca-file"}
	case errors.Is(err, auth.ErrBasicCredentialNotFound), is(http.StatusUnauthorized, http.StatusForbidden):
		return &refusal.Error{Err: err, Kind: refusal.Failed, Advice: "log in as a user who may push, with --username or `docker login`; a project must already exist"}
	case is(http.StatusNotFound):
		return &refusal.Error{Err: err, Kind: refusal.Failed, Advice: "create the project first, or specify an existing one with --to HOST/PROJECT"}
	}
	return RemoteRefused(err)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
