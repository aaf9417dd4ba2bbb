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

// WordLacks is the code of bundles that are whole and trusted, and made for another
// config: other versions, hosts of another platform, or a delta without its base.
const WordLacks = "bundle-lacks"

// Refused gives an error about a bundle, a lock or an artifact its exit code
// and, where there is something to do, advice.
func Refused(err error) error {
	if _, known := errors.AsType[*refusal.Error](err); known {
		return err // it says itself what to do
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
		return &refusal.Error{Err: err, Kind: refusal.Content} // says itself what to do
	case errors.As(err, &name):
		return &refusal.Error{Err: err, Kind: refusal.Usage, Advice: "`kubexm bundle ls` lists what it holds"}
	case errors.As(err, &exists):
		return &refusal.Error{Err: err, Kind: refusal.Usage, Advice: "name a new folder"}
	case errors.Is(err, archive.ErrBusy):
		return &refusal.Error{Err: err, Kind: refusal.Failed, Advice: "wait for the other build, or choose another name for the archive"}
	case errors.Is(err, archive.ErrInput):
		errors.As(err, &damaged)
		return &refusal.Error{Err: err, Kind: refusal.Usage, Advice: damaged.Advice}
	case errors.As(err, &damaged) && damaged.Advice != "":
		return &refusal.Error{Err: err, Kind: refusal.Content, Advice: damaged.Advice}
	case errors.As(err, &format), errors.As(err, &damaged):
		advice := "carry the archive again, or build it anew"
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

// refusedPackages tells whether err is about a repository of packages, or about its
// metadata, that is not what it has to be.
func refusedPackages(err error) bool {
	var repository *apt.Refusal
	var unvouched *fetch.UnvouchedError
	var metadata *fetch.MetadataError
	return errors.As(err, &repository) || errors.As(err, &unvouched) || errors.As(err, &metadata)
}

// noBundle says that there is no archive of a name, and which one may be meant.
func noBundle(err *fs.PathError) error {
	advice := "name a bundle: NAME.tar.zst, or NAME.tar.zst.001 where it is in volumes"
	if first := err.Path + bundle.FirstVolume; exists(first) {
		advice = "it is in volumes: name " + first
	}
	return &refusal.Error{Err: &fs.PathError{Op: "open", Path: err.Path, Err: err.Err}, Kind: refusal.Usage, Advice: advice}
}

// refusedDelta gives what is wrong with a delta and its base its exit code and
// advice; nil where err is about something else.
func refusedDelta(err error) error {
	var lack *bundle.LackError
	var base *delta.BaseError
	var cluster *delta.ClusterError
	switch {
	case errors.As(err, &lack):
		return &refusal.Error{Err: err, Kind: refusal.Content, Word: WordLacks,
			Advice: "name the archive of that root with --base; where the site has it no more, carry it, or the whole bundle, in again"}
	case errors.As(err, &base):
		return &refusal.Error{Err: err, Kind: refusal.Content, Advice: "name the archive that the site had when its inventory was taken; `kubexm bundle show` prints an archive's root"}
	case errors.As(err, &cluster):
		return &refusal.Error{Err: err, Kind: refusal.Usage, Advice: "take the inventory of that cluster's site: kubexm site inventory -f …"}
	case errors.Is(err, bundle.ErrWhole):
		return &refusal.Error{Err: err, Kind: refusal.Usage, Advice: "use it as it is"}
	}
	return nil
}

// untrusted gives why a policy refuses a bundle its exit code and advice; nil
// where err is about something else.
func untrusted(err error) error {
	if !errors.Is(err, bundle.ErrUntrusted) {
		return nil
	}
	advice := "ask its maker; do not use it before that is clear"
	switch {
	case errors.Is(err, bundle.TrustUnsigned):
		advice = "--allow-unsigned accepts it, if you know where it comes from; `kubexm bundle sign` signs it"
	case errors.Is(err, bundle.TrustNobody):
		advice = "name its maker's public key with --key; --allow-unsigned accepts it, if you know where it comes from"
	case errors.Is(err, bundle.TrustKubexm):
		advice = "use a newer version of kubexm"
	case errors.Is(err, bundle.TrustSerial):
		advice = "use the newest bundle; --allow-downgrade accepts this one, where that is meant"
	case errors.Is(err, bundle.TrustSerialUnknown):
		advice = "bring up the API server of a master and run again; --allow-downgrade goes on without knowing"
	case errors.Is(err, sign.ErrKey), errors.Is(err, sign.ErrIdentity):
		advice = "is that the key, or the identity, of who made the bundle? Ask; do not use it before that is clear"
	}
	return &refusal.Error{Err: err, Kind: refusal.Content, Advice: advice}
}

// RemoteRefused gives what can go wrong with a registry its exit code and advice.
func RemoteRefused(err error) error {
	var reference *transfer.ReferenceError
	switch {
	case errors.As(err, &reference):
		return &refusal.Error{Err: err, Kind: refusal.Usage}
	case strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"): // net/http has no type for it
		return &refusal.Error{Err: err, Kind: refusal.Failed, Advice: "--plain-http speaks HTTP without TLS, where that is meant"}
	case errors.Is(err, transfer.ErrNoBundle):
		return &refusal.Error{Err: err, Kind: refusal.Failed, Advice: "look at the tags there: oras repo tags, crane ls"}
	}
	return Refused(err)
}

// FillRefused gives what a registry refuses its advice.
func FillRefused(err error) error {
	var r *errcode.ErrorResponse
	is := func(statuses ...int) bool { return errors.As(err, &r) && slices.Contains(statuses, r.StatusCode) }
	var unknown x509.UnknownAuthorityError
	switch {
	case errors.As(err, &unknown):
		return &refusal.Error{Err: err, Kind: refusal.Failed, Advice: "--ca-file names the certificate that the registry's is signed with"}
	case errors.Is(err, auth.ErrBasicCredentialNotFound), is(http.StatusUnauthorized, http.StatusForbidden):
		return &refusal.Error{Err: err, Kind: refusal.Failed, Advice: "log in as somebody who may push there, with --username or `docker login`; a project has to exist already"}
	case is(http.StatusNotFound):
		return &refusal.Error{Err: err, Kind: refusal.Failed, Advice: "create the project first, or name one that exists with --to HOST/PROJECT"}
	}
	return RemoteRefused(err)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
