// The program makes the case of a seed: sums in words, of one to four steps,
// and, hidden from the run, their answers.
package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
)

// questions is how many a case has.
const questions = 8

var (
	names  = []string{"Ada", "Bela", "Chen", "Dora", "Emil", "Farah", "Goran", "Hana", "Ines", "Jonas"}
	things = []string{"apples", "stamps", "marbles", "books", "shells", "coins", "cards", "pencils"}
)

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(seedText, dir string) error {
	seed, err := strconv.ParseUint(seedText, 10, 64)
	if err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(seed, 3))
	asked, answers := make([]string, questions), make([]int, questions)
	for i := range questions {
		asked[i], answers[i] = sum(rng, 1+i%4)
	}
	return write(dir, map[string]any{"questions.json": asked, "answers.json": answers})
}

func write(dir string, files map[string]any) error {
	for name, v := range files {
		b, err := json.Marshal(v)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// sum makes one in so many steps, whose answer is never negative.
func sum(rng *rand.Rand, steps int) (text string, answer int) {
	name, thing := names[rng.IntN(len(names))], things[rng.IntN(len(things))]
	answer = 10 + rng.IntN(80)
	text = fmt.Sprintf("%s has %d %s.", name, answer, thing)
	for range steps {
		n := 2 + rng.IntN(9)
		switch op := rng.IntN(4); {
		case op == 0:
			text += fmt.Sprintf(" Then %s finds %d more.", name, n)
			answer += n
		case op == 1 && answer > n:
			text += fmt.Sprintf(" Then %s gives away %d.", name, n)
			answer -= n
		case op == 2 && answer < 2000:
			text += fmt.Sprintf(" Then a prize multiplies what %s has by %d.", name, n)
			answer *= n
		default:
			text += fmt.Sprintf(" Then each of %d friends brings %s %d more.", n, name, n+1)
			answer += n * (n + 1)
		}
	}
	return text + fmt.Sprintf(" How many %s does %s have now?", thing, name), answer
}
