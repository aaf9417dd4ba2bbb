// Package op builds steps from resources. A Resource describes the desired state of one
// part of a host: a file, a user, a unit, an object of the cluster. It compares itself
// with the host, applies the difference, undoes it, and removes itself. Ensure turns a
// list of resources into a step, and Remove turns the same list into its inverse:
//
//	func demo() []op.Resource {
//		return []op.Resource{
//			op.User{Name: "demo"},
//			op.Blob{Path: "/usr/local/bin/demo", Need: manifest.Need{Kind: manifest.Binary, Name: "demo/demo"}},
//			op.Text("/etc/systemd/system/demo.service", unitFile),
//			op.Unit{Name: "demo.service"},
//		}
//	}
//	func Install() steps.Step { return op.Ensure("demo.install", demo()) }
//	func Remove() steps.Step  { return op.Remove("demo.remove", demo()) }
//
// A step without a resource form, such as kubeadm init or a wait, is a Do, a Check or an
// Again.
//
// Before its first change, a resource records the original state on the host itself: see
// record.go. A removal restores it, also years later and from another workdir host. Undo
// is for a failure within the same run.
//
// A resource that only one domain needs belongs to that domain's package. It uses Recall,
// Remember and Forget, or RecordOnce and Restore. It embeds NoNeeds if it opens no
// artifacts, and implements Around if it depends on the resources before it.
//
// A Resource is not a steps.Step: tasks accept only steps. A domain wraps its resources in
// steps with names that state their purpose.
//
// It may import steps, steps/runner and manifest.
package op
