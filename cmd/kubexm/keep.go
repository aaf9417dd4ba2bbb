package main

import "github.com/spf13/cobra"

// addKeep gives a removal its choice of what stays.
func (f *siteFlags) addKeep(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.keep, "preserve-data", false, "leave etcd's data and the images, for the next install; the default is spec.etcd.preserveData")
}
