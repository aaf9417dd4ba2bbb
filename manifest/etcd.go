package manifest

// Etcd is the etcd cluster that stores the Kubernetes objects.
type Etcd struct {
	// Type of installation: kubexm runs etcd as a systemd service on the etcd hosts, kubeadm
	// runs it as a static pod on each master, external uses an existing etcd cluster.
	Type string `yaml:"type,omitempty" default:"kubexm" enum:"kubexm|kubeadm|external" effect:"immutable=create,etcd"`
	// Version of etcd, for example v3.5.21 or 3.5.21. Default: the version that kubeadm
	// requires for spec.kubernetes.version.
	Version string `yaml:"version,omitempty" format:"version" effect:"upgrade,etcd" install:"lock"`
	// External is an existing etcd cluster, for type external.
	External ExternalEtcd `yaml:"external,omitempty"`
	// DataDir is etcd's data directory on each member.
	DataDir string `yaml:"dataDir,omitempty" default:"/var/lib/etcd" format:"path" effect:"immutable=create,etcd"`
	// PreserveData keeps etcd's data, the volumes of openebs, and the images on the hosts, when the
	// cluster is deleted. A cluster that is created on these hosts afterwards uses them.
	PreserveData bool `yaml:"preserveData,omitempty" default:"false" effect:"tool"`
	// ExtraArgs are additional flags of etcd: a list of name=value, or a mapping.
	ExtraArgs Args `yaml:"extraArgs,omitempty" effect:"etcd" install:"service"`
	// HeartbeatInterval is the time between two heartbeats of the leader, in milliseconds.
	HeartbeatInterval int `yaml:"heartbeatInterval,omitempty" default:"250" min:"1" max:"60000" effect:"etcd" install:"service"`
	// ElectionTimeout is the time without a heartbeat after which a follower starts an
	// election, in milliseconds. etcd requires at least five times heartbeatInterval, and at
	// most 50000.
	ElectionTimeout int `yaml:"electionTimeout,omitempty" default:"5000" min:"5" max:"50000" effect:"etcd" install:"service"`
	// SnapshotCount is the number of committed transactions after which etcd writes a
	// snapshot to disk.
	SnapshotCount int `yaml:"snapshotCount,omitempty" default:"10000" min:"1" effect:"etcd" install:"service"`
	// AutoCompactionRetention is the age in hours after which etcd compacts the key history;
	// 0 disables automatic compaction.
	AutoCompactionRetention *int `yaml:"autoCompactionRetention,omitempty" default:"8" min:"0" effect:"etcd" install:"service"`
	// Metrics is the level of detail of the exported metrics; extensive adds histograms.
	Metrics string `yaml:"metrics,omitempty" default:"basic" enum:"basic|extensive" effect:"etcd" install:"service"`
	// QuotaBackendBytes is the maximum size of the database in bytes. etcd recommends at most
	// 8 GiB.
	QuotaBackendBytes int64 `yaml:"quotaBackendBytes,omitempty" default:"2147483648" min:"1" effect:"etcd" install:"service"`
	// MaxRequestBytes is the maximum size of a client request in bytes.
	MaxRequestBytes int64 `yaml:"maxRequestBytes,omitempty" default:"1572864" min:"1" effect:"etcd" install:"service"`
	// MaxSnapshots is the maximum number of snapshot files to retain; 0 means unlimited.
	MaxSnapshots *int `yaml:"maxSnapshots,omitempty" default:"5" min:"0" effect:"etcd" install:"service"`
	// MaxWALs is the maximum number of write-ahead log files to retain; 0 means unlimited.
	MaxWALs *int `yaml:"maxWals,omitempty" default:"5" min:"0" effect:"etcd" install:"service"`
	// LogLevel of etcd.
	LogLevel string `yaml:"logLevel,omitempty" default:"info" enum:"debug|info|warn|error|panic|fatal" effect:"etcd" install:"service"`
	// BackupDir is the directory for scheduled backups on each etcd host.
	BackupDir string `yaml:"backupDir,omitempty" format:"path" effect:"timers=backup"`
	// BackupPeriodHours is the time between two backups in hours; 0 disables backups.
	BackupPeriodHours int `yaml:"backupPeriodHours,omitempty" min:"0" max:"8760" effect:"timers=backup"`
	// KeepBackupNumber is the number of backups to retain.
	KeepBackupNumber int `yaml:"keepBackupNumber,omitempty" min:"1" effect:"timers=backup"`
}

// ExternalEtcd is an existing etcd cluster.
type ExternalEtcd struct {
	// Endpoints are the client URLs of the etcd members, for example https://192.168.6.6:2379.
	Endpoints []string `yaml:"endpoints,omitempty" format:"endpoint" effect:"apiserver"`
	// CAFile is the path of etcd's CA certificate on the workdir host (the machine that runs
	// kubexm). Leave it empty without TLS.
	CAFile string `yaml:"caFile,omitempty" effect:"apiserver" install:"all"`
	// CertFile is the path of the client certificate on the workdir host. Leave it empty
	// without TLS.
	CertFile string `yaml:"certFile,omitempty" effect:"apiserver" install:"all"`
	// KeyFile is the path of the client certificate's private key on the workdir host. Leave
	// it empty without TLS.
	KeyFile string `yaml:"keyFile,omitempty" effect:"apiserver" install:"all"`
}
