//go:build !race

package sessions

const raced = false
