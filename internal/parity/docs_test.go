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

const root = "../.."

// documents are the texts that name tests and files, by their path.
func documents(t *testing.T) map[string]string {
	texts := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "internal/parity/testdata/*.md"} {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		for _, path := range paths {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			texts[path] = string(text)
		}
	}
	require.Greater(t, len(texts), 8)
	return texts
}

// TestDocumentsNameTestsThatExist keeps the tables of docs/parity.md true: a test
// that is renamed is renamed there.
func TestDocumentsNameTestsThatExist(t *testing.T) {
	exist := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Example|Fuzz)\w+)\(`)
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

	named := 0
	for path, text := range documents(t) {
		for _, match := range regexp.MustCompile("`((?:Test|Example|Fuzz)\\w+)`").FindAllStringSubmatch(text, -1) {
			require.True(t, exist[match[1]], "%s names %s, which is no test", path, match[1])
			named++
		}
	}
	require.Greater(t, named, 100)
}

// TestDocumentsNameFilesThatExist: what a document calls by a path is there, as a file
// or a folder.
func TestDocumentsNameFilesThatExist(t *testing.T) {
	top, err := os.ReadDir(root)
	require.NoError(t, err)
	folders := map[string]bool{}
	for _, entry := range top {
		folders[entry.Name()] = entry.IsDir()
	}
	named := 0
	for path, text := range documents(t) {
		for _, match := range regexp.MustCompile("`((\\w+)/[\\w/.]+)`").FindAllStringSubmatch(text, -1) {
			if folders[match[2]] {
				exists(t, path, filepath.Join(root, match[1]))
				named++
			}
		}
		for _, match := range regexp.MustCompile(`\]\(([\w/.-]+)(#[\w-]+)?\)`).FindAllStringSubmatch(text, -1) {
			exists(t, path, filepath.Join(filepath.Dir(path), match[1]))
			named++
		}
	}
	require.Greater(t, named, 60)
}

func exists(t *testing.T, document, path string) {
	_, err := os.Stat(path)
	require.NoError(t, err, "%s names %s", document, path)
}
