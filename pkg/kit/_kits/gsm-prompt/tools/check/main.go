// The program grades replies: each says Answer: and a number once, on its last
// line, and the number is right. A reply that names several numbers as its
// answer is wrong.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

const maxFile = 16 << 20

var answered = regexp.MustCompile(`(?i)answer\s*:`)

func main() {
	b, err := os.ReadFile(filepath.Join(os.Args[1], "answers.json"))
	var want []int
	if err = errors.Join(err, json.Unmarshal(b, &want)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	right, err := grade(want, filepath.Join(os.Args[2], "replies.json"))
	answer := map[string]any{"ok": err == nil, "why": "", "values": map[string]float64{"right": right}}
	if err != nil {
		answer["why"], answer["values"] = err.Error(), map[string]float64{}
	}
	_ = json.NewEncoder(os.Stdout).Encode(answer)
}

// grade gives the part of the questions that is answered right.
func grade(want []int, file string) (float64, error) {
	info, err := os.Lstat(file)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxFile {
		return 0, errors.New("replies.json is missing, no plain file, or too large")
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, errors.New("replies.json can't be read")
	}
	var replies []string
	if err := json.Unmarshal(b, &replies); err != nil || len(replies) != len(want) {
		return 0, errors.New("replies.json does not hold a reply to each question")
	}
	right, several := 0, 0
	for i, reply := range replies {
		n := len(answered.FindAllString(reply, -1))
		if n > 1 {
			several++
			continue
		}
		if got, ok := answerOf(reply); n == 1 && ok && got == want[i] {
			right++
		}
	}
	if several > len(want)/2 {
		return 0, errors.New("most replies name several answers: a guess at everything is none")
	}
	return float64(right) / float64(len(want)), nil
}

// answerOf reads the number on the last line that is not empty.
func answerOf(reply string) (int, bool) {
	lines := strings.Split(strings.TrimSpace(reply), "\n")
	last := strings.TrimSpace(lines[len(lines)-1])
	at := answered.FindStringIndex(last)
	if at == nil {
		return 0, false
	}
	text := strings.NewReplacer("*", "", ",", "", "$", "").Replace(last[at[1]:])
	n, err := strconv.Atoi(strings.TrimRight(strings.TrimSpace(text), "."))
	return n, err == nil
}
