// Answers the questions of check.py with the program of docs/FORMAT.md.
package main

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"

	"koel"
)

func main() {
	var filter *koel.Filter
	lines, out := bufio.NewScanner(os.Stdin), bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for lines.Scan() {
		kind, value, _ := strings.Cut(lines.Text(), " ")
		switch kind {
		case "open":
			data, err := os.ReadFile(value)
			if err == nil {
				filter, err = koel.Open(data)
			}
			if err == nil {
				fmt.Fprintln(out, "opened")
			} else {
				fmt.Fprintln(out, err)
			}
		case "item":
			item, err := hex.DecodeString(value)
			check(err)
			fmt.Fprintln(out, filter.Contains(item))
		case "hash":
			hash, err := strconv.ParseUint(value, 10, 64)
			check(err)
			fmt.Fprintln(out, filter.ContainsHash(hash))
		}
	}
	check(lines.Err())
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
