package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func tokenCommand(a *app) *cobra.Command {
	return group("token", "make, list and revoke the tokens of the owner and of readers",
		tokenAddCommand(a), tokenListCommand(a), tokenRevokeCommand(a))
}

func tokenAddCommand(a *app) *cobra.Command {
	role := ""
	cmd := &cobra.Command{
		Use: "add NAME", Short: "make a token, and show it this once", Args: exactly("name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if role != "owner" && role != "reader" {
				return wrongUse("--role is %q: use reader, which only reads, or owner, which may do everything", role)
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			defer c.Close()
			made, err := c.AddToken(cmd.Context(), role, args[0])
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(made)
			}
			a.warn("The token of %s %q, number %s, is shown this once:", made.Role, made.Name, made.ID)
			_, err = fmt.Fprintln(a.out, made.Secret)
			return err
		},
	}
	cmd.Flags().StringVar(&role, "role", "reader", "reader, which only reads, or owner, which may do everything")
	return cmd
}

func tokenListCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "list the tokens, without their secrets", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			defer c.Close()
			list, err := c.Tokens(cmd.Context())
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(list)
			}
			now := a.now()
			t := &table{header: []string{"TOKEN", "ROLE", "NAME", "MADE", "REVOKED", "NOTE"}, wide: []int{2}}
			for _, k := range list.Tokens {
				revoked, note := "-", ""
				if !k.RevokedAt.IsZero() {
					revoked = a.moment(k.RevokedAt.Time(), now)
				}
				if k.Yours {
					note = "the one you use"
				}
				t.add(k.ID, k.Role, k.Name, a.moment(k.CreatedAt.Time(), now), revoked, note)
			}
			return a.printTable(t)
		},
	}
}

func tokenRevokeCommand(a *app) *cobra.Command {
	return a.addYes(&cobra.Command{
		Use: "revoke TOKEN", Short: "end a token, by its number in the list, and what signed in with it", Args: exactly("token"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.confirm(fmt.Sprintf("Token %s will be no good from now on.", args[0])); err != nil {
				return err
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			defer c.Close()
			if err := c.RevokeToken(cmd.Context(), args[0]); err != nil {
				return err
			}
			return a.done(doneTo{ID: args[0], Done: "revoked"}, "Token %s is revoked.", args[0])
		},
	})
}
