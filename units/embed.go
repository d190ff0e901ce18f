// Package units has the systemd units of Thermite's parts, with their users,
// folders and settings: what thermite install and the NixOS modules use.
// Nothing about a unit is said anywhere else.
package units

import "embed"

// Files are systemd/, sysusers.d/, tmpfiles.d/ and etc/. In them @bin@ stands
// for the folder of the programs.
//
//go:embed systemd sysusers.d tmpfiles.d etc
var Files embed.FS

// Bin stands in the files for the folder of the programs.
const Bin = "@bin@"
