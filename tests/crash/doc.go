// Package crash kills a rig's parts in the middle of a judging: its tests run
// the programs as processes of their own, and end them with SIGKILL.
package crash
