// Package faults kills and starves the real programs, as processes, and then
// holds what control has against what the rigs' ledgers have.
package faults
