package main

import "github.com/spf13/cobra"

// addPreserveData adds --preserve-data to the commands that delete a cluster.
func (f *siteFlags) addPreserveData(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.preserve, "preserve-data", false, "keep etcd's data and the images for the next install (default spec.etcd.preserveData)")
}
