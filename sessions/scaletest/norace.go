//go:build !race

package scaletest

// Raced says that the race detector is on.
const Raced = false
