package fetch

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// errStale: a partial file cannot be continued, because the file at the address has changed
// or the server does not support it.
var errStale = errors.New("the partial download cannot be continued")

// exchange is the HTTP client for grab. grab accepts any 2xx response to a range request,
// and requests by HEAD what the meta file knows. exchange checks each response against its
// request before a byte of it is written.
type exchange struct {
	client   doer
	part     *part
	job      *job
	source   string
	transfer Transfer
}

type doer interface {
	Do(*http.Request) (*http.Response, error)
}

// Do answers a HEAD from the meta file and sends other requests.
func (x *exchange) Do(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodHead {
		return &http.Response{
			StatusCode: http.StatusOK, Request: req, Body: http.NoBody,
			Header:        http.Header{"Accept-Ranges": {"bytes"}},
			ContentLength: x.part.total(x.job),
		}, nil
	}
	resp, err := x.client.Do(req)
	if err != nil {
		return nil, err
	}
	if req.Header.Get("Range") != "" {
		err = x.continues(resp)
	} else {
		err = x.begins(resp)
	}
	if err != nil {
		_ = resp.Body.Close()
		return nil, err
	}
	resp.Body = &received{ReadCloser: resp.Body, part: x.part, job: x.job, transfer: x.transfer}
	return resp, nil
}

// begins checks the response to a request for the complete file.
func (x *exchange) begins(resp *http.Response) error {
	if resp.StatusCode != http.StatusOK {
		return statusError(resp)
	}
	if resp.ContentLength >= 0 && x.job.size >= 0 && resp.ContentLength != x.job.size {
		return x.job.sizeError(resp.ContentLength)
	}
	return x.part.begin(partMeta{
		Source:       x.source,
		ETag:         resp.Header.Get("ETag"),
		LastModified: resp.Header.Get("Last-Modified"),
		Size:         resp.ContentLength,
	})
}

// continues checks the response to a request for the rest of the file.
func (x *exchange) continues(resp *http.Response) error {
	switch resp.StatusCode {
	case http.StatusPartialContent:
	case http.StatusOK, http.StatusRequestedRangeNotSatisfiable:
		return errStale
	default:
		return statusError(resp)
	}
	begin, end, total, err := contentRange(resp.Header.Get("Content-Range"))
	if err != nil || begin != x.part.have || (total >= 0 && end != total-1) {
		return errStale
	}
	if want := x.part.total(x.job); want >= 0 && total >= 0 && total != want {
		return errStale
	}
	if total >= 0 && resp.ContentLength >= 0 && begin+resp.ContentLength != total {
		return errStale
	}
	tag, known := resp.Header.Get("ETag"), x.part.meta.ETag
	if x.part.meta.Source == x.source && tag != "" && known != "" && tag != known {
		return errStale
	}
	return nil
}

// contentRange parses "bytes 100-199/200"; total is -1 for "*".
func contentRange(s string) (begin, end, total int64, err error) {
	bad := fmt.Errorf("content range %q is not of the form bytes 0-9/10", s)
	s, isBytes := strings.CutPrefix(s, "bytes ")
	span, size, hasSize := strings.Cut(s, "/")
	first, last, isSpan := strings.Cut(span, "-")
	if !isBytes || !hasSize || !isSpan {
		return 0, 0, 0, bad
	}
	begin, err1 := strconv.ParseInt(first, 10, 64)
	end, err2 := strconv.ParseInt(last, 10, 64)
	total = -1
	var err3 error
	if size != "*" {
		total, err3 = strconv.ParseInt(size, 10, 64)
	}
	if err1 != nil || err2 != nil || err3 != nil || begin < 0 || end < begin || (size != "*" && end >= total) {
		return 0, 0, 0, bad
	}
	return begin, end, total, nil
}
