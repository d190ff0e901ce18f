// Package kittest stands for what a kit needs of the world in tests: a model
// behind its real protocol.
package kittest

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// ModelName and ModelKey are what Model is asked for and with.
const (
	ModelName = "scripted"
	ModelKey  = "k"
)

// Model is a scripted model behind the real protocol: it can do one step in
// its head, more when it is told to go step by step, and it guesses as often
// as it is asked to.
func Model(w http.ResponseWriter, r *http.Request) {
	var ask struct {
		Model    string `json:"model"`
		Messages []struct{ Content string }
	}
	if err := json.NewDecoder(r.Body).Decode(&ask); err != nil || r.URL.Path != "/v1/chat/completions" ||
		r.Header.Get("Authorization") != "Bearer "+ModelKey || ask.Model != ModelName || len(ask.Messages) != 1 {
		http.Error(w, "what is asked is no chat", http.StatusBadRequest)
		return
	}
	text := ask.Messages[0].Content
	answer, steps := solved(text)
	reply := "Answer: " + strconv.Itoa(answer)
	switch {
	case strings.Contains(text, "ten lines"):
		reply = strings.Repeat(reply+"\n", 10)
	case strings.Contains(text, "step by step"):
		reply = "First this, then that.\n**Answer:** " + strconv.Itoa(answer) + "."
		reply = strings.ReplaceAll(reply, "*", "")
	case steps > 1:
		reply = "Answer: " + strconv.Itoa(answer+1)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{"message": map[string]any{"role": "assistant", "content": reply}}}})
}

var sentence = regexp.MustCompile(`has (\d+) |finds (\d+) more|gives away (\d+)|has by (\d+)|each of (\d+) friends brings \w+ (\d+) more`)

// solved does the sum in a question.
func solved(text string) (answer, steps int) {
	for _, m := range sentence.FindAllStringSubmatch(text, -1) {
		n := make([]int, len(m))
		for i, s := range m {
			n[i], _ = strconv.Atoi(s)
		}
		switch {
		case m[1] != "":
			answer, steps = n[1], -1
		case m[2] != "":
			answer += n[2]
		case m[3] != "":
			answer -= n[3]
		case m[4] != "":
			answer *= n[4]
		default:
			answer += n[5] * n[6]
		}
		steps++
	}
	return answer, steps
}
