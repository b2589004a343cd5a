package nginxconf

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/trunklb/trunk/internal/conflex"
)

// maxIncludes bounds the files of one text, against files that include each
// other over and over.
const maxIncludes = 10_000

// IncludeFS makes ParseOptions.Include from a file system: os.DirFS("/") with
// prefix "etc/nginx" reads the files of a machine as nginx does. A pattern that
// begins with "/" is looked up from the root of fsys, any other from prefix.
func IncludeFS(fsys fs.FS, prefix string) func(pattern string) ([]IncludeFile, error) {
	return func(pattern string) ([]IncludeFile, error) {
		full := path.Join(prefix, pattern)
		if strings.HasPrefix(pattern, "/") {
			full = path.Clean(pattern[1:])
		}
		names := []string{full}
		if isGlob(pattern) {
			var err error
			if names, err = fs.Glob(fsys, strings.ReplaceAll(full, "[!", "[^")); err != nil {
				return nil, err
			}
		}
		files := make([]IncludeFile, 0, len(names))
		for _, name := range names {
			text, err := fs.ReadFile(fsys, name)
			if err != nil {
				return nil, err
			}
			files = append(files, IncludeFile{Name: name, Text: string(text)})
		}
		return files, nil
	}
}

func isGlob(pattern string) bool { return strings.ContainsAny(pattern, "*?[") }

// include reads the files of an include directive in the place where it is.
func (p *parser) include(d *conflex.Directive) *ParseError {
	at := p.at
	return p.includes(d, func(b *conflex.Block) *ParseError { return p.walk(b, at) })
}

func (p *parser) includes(d *conflex.Directive, read func(*conflex.Block) *ParseError) *ParseError {
	pattern := d.Words[1]
	if p.opts.Include == nil {
		return p.includeMissing(d)
	}
	files, cause := p.opts.Include(pattern)
	if cause != nil {
		err := p.refuse(d, pattern, `open() "`+pattern+`" failed`, "")
		if errors.Is(cause, fs.ErrNotExist) {
			err.Message += " (2: No such file or directory)"
		}
		err.Cause, err.Class = cause, ClassServers
		return err
	}
	if len(files) == 0 {
		p.ignore(d.Line, d.Words, ClassNginx, "no file matches the pattern, so nothing was read")
	}
	for _, f := range files {
		if err := p.includeFile(d, f, read); err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) includeFile(d *conflex.Directive, f IncludeFile, read func(*conflex.Block) *ParseError) *ParseError {
	p.included++
	if p.included > maxIncludes || slices.Contains(p.files, f.Name) {
		return p.refuse(d, f.Name, `open() "`+f.Name+`" failed (24: Too many open files)`,
			"the files include each other without end")
	}
	p.files = append(p.files, f.Name)
	err := read(conflex.Parse(f.Text))
	p.files = p.files[:len(p.files)-1]
	return err
}

// includeMissing is for a text whose included files are not there.
func (p *parser) includeMissing(d *conflex.Directive) *ParseError {
	pattern := d.Words[1]
	if p.block == nil {
		p.ignore(d.Line, d.Words, ClassOutside, "the file was not read; give ParseOptions.Include if it has upstream blocks")
		return nil
	}
	err := p.refuse(d, pattern, `open() "`+pattern+`" failed (2: No such file or directory)`,
		"the servers are in another file: give its text through ParseOptions.Include, or paste it here")
	err.Class = ClassServers
	return err
}

// file is the file that is being read; empty: the text itself.
func (p *parser) file() string {
	if len(p.files) == 0 {
		return ""
	}
	return p.files[len(p.files)-1]
}
