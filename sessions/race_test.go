//go:build race

package sessions

// raced says that the race detector is on. It takes memory and time of its own, so that measures of them mean nothing.
const raced = true
