// The program puts the items of a case into bins.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"starter/pack"
)

func main() {
	b, err := os.ReadFile(filepath.Join(os.Args[1], "items.json"))
	var items []int
	err = errors.Join(err, json.Unmarshal(b, &items))
	if err == nil {
		b, err = json.Marshal(pack.Pack(items))
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(os.Args[2], "bins.json"), b, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
