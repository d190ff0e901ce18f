package main

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"thermite/pkg/kit"
	"thermite/pkg/wire"
)

// madeKit is a kit that was written.
type madeKit struct {
	Name   string `json:"name"`
	Folder string `json:"folder"`
}

func kitNewCommand(a *app) *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use: "new DIR", Short: "write a small, whole kit to change into yours", Args: exactly("folder"),
		Long: `Write a kit into a folder, which must be empty or absent: small, whole and with
its cheats planted, so that thermite kit check passes it as it is. Change it into
what you want to have solved.`,
		RunE: func(_ *cobra.Command, args []string) error {
			dir, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			if name == "" {
				name = filepath.Base(dir)
			}
			if err := wire.CheckName("kit", name); err != nil {
				return wrongUse("%w; --name gives the kit another name than its folder's", err)
			}
			if err := kit.New(dir, name); err != nil {
				return err
			}
			return a.done(madeKit{name, dir}, "The kit %s is in %s.\nthermite kit check %s judges the candidates that ship with it.", name, shellWord(dir), shellWord(args[0]))
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "the kit's name (default: the folder's)")
	return cmd
}
