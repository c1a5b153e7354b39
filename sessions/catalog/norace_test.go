//go:build !race

package catalog

const raced = false
