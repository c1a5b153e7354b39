// Package namespace owns the Linux namespaces that one sandbox's runsc lives in.
//
// A sandbox gets its own user, pid, network, mount, ipc and uts namespace, made the
// same way for root and for an unprivileged caller. Process 1 of the pid namespace is
// this same executable (see InitMain): it starts programs for the supervisor, reaps
// orphans, and ends when the supervisor's end of their socket closes. The kernel then
// kills everything else in the pid namespace and drops the mounts and the network with
// it, so even a supervisor that was killed leaves no process behind.
//
// The package knows nothing about runsc, Pi or OCI, and never touches the host's own
// namespaces, routes or filters.
package namespace
