// Package scale measures how many rigs one control carries, with the real
// programs.
package scale
