package main

import (
	"runtime"

	"github.com/spf13/cobra"
)

func versionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "show this program's version",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.json {
				return a.printJSON(struct {
					Version string `json:"version"`
					Go      string `json:"go"`
				}{version, runtime.Version()})
			}
			t := &table{header: []string{"", ""}, bare: true}
			t.add("thermite", version)
			t.add("go", runtime.Version())
			return a.printTable(t)
		},
	}
}
