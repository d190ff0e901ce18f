// Package demo runs the main job as its user does: one command, the real
// programs, to a champion.
package demo
