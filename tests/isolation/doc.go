// Package isolation runs a whole rig as root, with a user of its own for each
// role, and tries as those users to reach what they must not: each is refused.
package isolation
