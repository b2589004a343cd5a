package parity

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDocumentsNameTestsThatExist keeps the tables of docs/parity.md true: a test
// that is renamed is renamed there.
func TestDocumentsNameTestsThatExist(t *testing.T) {
	root := filepath.Join("..", "..")
	exist := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Example)\w+)\(`)
	require.NoError(t, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, match := range declared.FindAllSubmatch(text, -1) {
			exist[string(match[1])] = true
		}
		return err
	}))

	documents, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	require.NoError(t, err)
	named := 0
	for _, document := range append(documents, filepath.Join(root, "README.md")) {
		text, err := os.ReadFile(document)
		require.NoError(t, err)
		for _, match := range regexp.MustCompile("`((?:Test|Example)\\w+)`").FindAllSubmatch(text, -1) {
			require.True(t, exist[string(match[1])], "%s names %s, which is no test", filepath.Base(document), match[1])
			named++
		}
	}
	require.Greater(t, named, 100)
}
