package main

import (
	"github.com/spf13/cobra"

	"thermite/cmd/thermite/internal/settings"
)

func settingsCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "settings",
		Short: "show each setting and where it came from",
		Long: `Show each setting and where it came from: a flag, else a THERMITE_ variable, else
the settings file. The file is the one --config names, else client.toml in
thermite's folder of $XDG_CONFIG_HOME, else the one that "thermite up" wrote.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := settings.Resolve(a.flags, a.getenv)
			if err != nil {
				return useError{err}
			}
			for _, warning := range s.Warnings {
				a.warn("note: %s", warning)
			}
			if a.json {
				return a.printJSON(struct {
					Settings []settings.Setting `json:"settings"`
				}{s.All})
			}
			t := &table{header: []string{"SETTING", "VALUE", "FROM", "FLAG", "VARIABLE"}}
			for _, set := range s.All {
				t.add(set.Name, orDash(set.Value), set.Source, set.Flag, set.Env)
			}
			return a.printTable(t)
		},
	}
}
