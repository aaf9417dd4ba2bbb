package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// exported is where the provisioner's own pod has the server's folder, as upstream's has.
const exported = "/persistentvolumes"

// onNFS are volumes that are folders of an NFS server's folder.
type onNFS struct {
	server, path string
	mounted      string // where it is mounted here
}

// newNFS reads the environment as upstream's cmd/nfs-subdir-external-provisioner does. Its lock is an
// Endpoints object in its namespace.
func newNFS(ctx context.Context, c *client, environ []string) (*provisioner, error) {
	namespace, err := os.ReadFile(account + "namespace")
	if err != nil {
		return nil, err
	}
	p, err := nfsOf(environ)
	if err != nil {
		return nil, err
	}
	p.api = c
	return p, mayDoAll(ctx, c, string(namespace), append([]right{{"", "endpoints", true, []string{"get", "list", "watch", "create", "update", "patch"}}}, ofController...))
}

func nfsOf(environ []string) (*provisioner, error) {
	e := variables(environ, "NFS_", "PROVISIONER_NAME")
	name, n := e.take("PROVISIONER_NAME"), &onNFS{e.take("NFS_SERVER"), e.take("NFS_PATH"), exported}
	return &provisioner{kind: n, name: name}, e.done()
}

func (n *onNFS) provides(object) bool { return true }

func (n *onNFS) create(_ context.Context, claim, class object, name string) (object, error) {
	for key := range parameters(class) {
		if key != "archiveOnDelete" {
			return nil, fmt.Errorf("unknown parameter %s of the StorageClass", key)
		}
	}
	folder := strings.Join([]string{fmt.Sprint(at(claim, "metadata", "namespace")), fmt.Sprint(at(claim, "metadata", "name")), name}, "-")
	here := filepath.Join(n.mounted, folder)
	if err := errors.Join(os.MkdirAll(here, 0o777), os.Chmod(here, 0o777)); err != nil { //nolint:gosec // as upstream's
		return nil, fmt.Errorf("unable to create directory to provision new pv: %w", err)
	}
	return object{"nfs": object{"server": n.server, "path": path.Join(n.path, folder), "readOnly": false}}, nil
}

// remove keeps what was written, under another name: upstream's deletes it only if the StorageClass has
// archiveOnDelete: "false", which kubexm's has not.
func (n *onNFS) remove(_ context.Context, v object) error {
	folder := path.Base(fmt.Sprint(at(v, "spec", "nfs", "path")))
	return os.Rename(filepath.Join(n.mounted, folder), filepath.Join(n.mounted, "archived-"+folder))
}

func parameters(class object) object {
	p, _ := at(class, "parameters").(object)
	return p
}
