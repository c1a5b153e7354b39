//go:build race

package scaletest

// Raced says that the race detector is on. It takes memory and time of its own, so that measures of them mean nothing.
const Raced = true
