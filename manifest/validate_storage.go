package manifest

// validateStorage checks that the two fields of an NFS server come together.
func (d *config) validateStorage(c *Cluster) {
	nfs := c.Spec.Storage.NFS
	if (nfs.Server == "") == (nfs.Path == "") || !d.Valid("spec.storage.nfs") {
		return
	}
	if nfs.Server == "" {
		d.Fail("spec.storage.nfs.path", "write server beside it: the address of the NFS server", "is a folder of no server")
		return
	}
	d.Fail("spec.storage.nfs.server", "write path beside it: the exported folder, in which each volume gets a folder", "has no path")
}
