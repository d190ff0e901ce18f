// The program asks the model each question of a case with the candidate's
// prompt, and writes down what it replies. It is the kit's: nothing of a
// candidate runs.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	maxReply  = 1 << 20
	maxTokens = 600
	tries     = 3
)

func main() {
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(promptFile, caseDir, outDir string) error {
	prompt, err := os.ReadFile(promptFile)
	if err != nil {
		return err
	}
	b, err := os.ReadFile(filepath.Join(caseDir, "questions.json"))
	if err != nil {
		return err
	}
	var questions []string
	if err := json.Unmarshal(b, &questions); err != nil {
		return err
	}
	replies := make([]string, len(questions))
	for i, q := range questions {
		if replies[i], err = asked(strings.ReplaceAll(string(prompt), "{{question}}", q)); err != nil {
			return fmt.Errorf("asking question %d: %w", i+1, err)
		}
	}
	if b, err = json.Marshal(replies); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(outDir, "replies.json"), b, 0o644)
}

// asked tries a few times: a model that is busy is not the prompt's fault.
func asked(text string) (reply string, err error) {
	for try := range tries {
		time.Sleep(time.Duration(try) * time.Second)
		var again bool
		if reply, again, err = ask(text); err == nil || !again {
			return reply, err
		}
	}
	return "", err
}

func ask(text string) (reply string, again bool, err error) {
	body, err := json.Marshal(map[string]any{
		"model": os.Getenv("OPENAI_MODEL"), "temperature": 0, "max_tokens": maxTokens,
		"messages": []map[string]string{{"role": "user", "content": text}},
	})
	if err != nil {
		return "", false, err
	}
	req, err := http.NewRequest(http.MethodPost, strings.TrimRight(os.Getenv("OPENAI_BASE_URL"), "/")+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return "", false, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+os.Getenv("OPENAI_API_KEY"))
	client := http.Client{Timeout: time.Minute}
	resp, err := client.Do(req)
	if err != nil {
		return "", true, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxReply))
	if err != nil {
		return "", true, err
	}
	if resp.StatusCode != http.StatusOK {
		return "", resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= 500, fmt.Errorf("the model's server says %s", resp.Status)
	}
	var answer struct {
		Choices []struct {
			Message struct {
				Content string `json:"content"`
			} `json:"message"`
		} `json:"choices"`
	}
	if err := json.Unmarshal(b, &answer); err != nil {
		return "", false, err
	}
	if len(answer.Choices) == 0 {
		return "", false, errors.New("the model's server gives no choice")
	}
	return answer.Choices[0].Message.Content, false, nil
}
