package nginxconf

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/trunklb/trunk/internal/conflex"
)

// Bounds on what include directives bring, far above what configurations have.
const (
	maxIncludes     = 10_000   // files of one text
	maxIncludeDepth = 32       // files that are open at a time
	maxIncludeSize  = 16 << 20 // bytes of one file
	maxIncludeTotal = 64 << 20 // bytes of all files of one text, and of one pattern
	maxLinks        = 40       // symbolic links on the way to one file
)

// IncludeFS makes ParseOptions.Include from a file system: os.DirFS("/") with
// prefix "etc/nginx" reads the files of a machine as nginx does. A pattern that
// begins with "/" is looked up from the root of fsys, any other from prefix.
//
// Only regular files are read, up to 16 MiB each, and 10,000 files and 64 MiB by one
// pattern. A symbolic link is followed within fsys, an absolute one from its root; one
// that leads out of it is an error, as far as fsys can say (fs.ReadLinkFS; os.DirFS can).
// Where others may change the files meanwhile, use the FS of an os.Root.
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
		if len(names) > maxIncludes {
			return nil, &fs.PathError{Op: "include", Path: pattern, Err: errTooMany}
		}
		files, total := make([]IncludeFile, 0, len(names)), 0
		for _, name := range names {
			text, err := readFile(fsys, name)
			if err != nil {
				return nil, err
			}
			if total += len(text); total > maxIncludeTotal {
				return nil, &fs.PathError{Op: "include", Path: pattern, Err: errTooLarge}
			}
			files = append(files, IncludeFile{Name: name, Text: text})
		}
		return files, nil
	}
}

// What IncludeFS refuses, in an fs.PathError. None has a word of a file's content.
var (
	errTooMany    = fmt.Errorf("more than %d files", maxIncludes)
	errTooLarge   = errors.New("too large")
	errNotRegular = errors.New("not a regular file")
	errEscapes    = errors.New("a symbolic link leads out of the file system")
	errLinks      = errors.New("too many symbolic links")
)

// readFile reads a regular file. It is looked at before it is opened, since to open a
// FIFO may take for ever.
func readFile(fsys fs.FS, name string) (string, error) {
	refuse := func(err error) (string, error) { return "", &fs.PathError{Op: "include", Path: name, Err: err} }
	real, err := follow(fsys, name)
	if err != nil {
		return refuse(err)
	}
	info, err := fs.Stat(fsys, real)
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return refuse(errNotRegular)
	case info.Size() > maxIncludeSize:
		return refuse(errTooLarge)
	}
	file, err := fsys.Open(real)
	if err != nil {
		return "", err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxIncludeSize+1)) // it may grow
	switch {
	case err != nil:
		return refuse(err)
	case len(text) > maxIncludeSize:
		return refuse(errTooLarge)
	}
	return string(text), nil
}

// follow returns the path without symbolic links, if the file system knows of these.
func follow(fsys fs.FS, name string) (string, error) {
	links, knows := fsys.(fs.ReadLinkFS)
	if !knows {
		return name, nil
	}
	done, seen := ".", 0
	for rest := strings.Split(name, "/"); len(rest) > 0; {
		next := path.Join(done, rest[0])
		rest = rest[1:]
		if next == ".." {
			return "", errEscapes
		}
		info, err := links.Lstat(next)
		if err != nil {
			return "", err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			done = next
			continue
		}
		if seen++; seen > maxLinks {
			return "", errLinks
		}
		target, err := links.ReadLink(next)
		if err != nil {
			return "", err
		}
		if path.IsAbs(target) {
			done, target = ".", strings.TrimLeft(target, "/")
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return done, nil
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
	if p.included > maxIncludes {
		return p.includeFile(d, IncludeFile{Name: pattern}, read)
	}
	files, cause := p.opts.Include(pattern)
	if cause != nil {
		err := p.refuse(d, pattern, `open() "`+pattern+`" failed`, "")
		if errors.Is(cause, fs.ErrNotExist) {
			err.Message += " (2: No such file or directory)"
		} else if refused := (*fs.PathError)(nil); errors.As(cause, &refused) && refused.Op == "include" {
			err.Hint = refused.Path + ": " + refused.Err.Error()
		}
		err.Cause, err.Class = cause, ClassServers
		return err
	}
	if len(files) == 0 {
		p.ignore(d.Line, d.Words, ClassNginx, "no file matches the pattern, so nothing was read")
	}
	p.included += len(files)
	for _, f := range files {
		if err := p.includeFile(d, f, read); err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) includeFile(d *conflex.Directive, f IncludeFile, read func(*conflex.Block) *ParseError) *ParseError {
	p.includedSize += len(f.Text)
	switch {
	case slices.Contains(p.files, f.Name) || p.included > maxIncludes || len(p.files) == maxIncludeDepth:
		return p.refuse(d, f.Name, `open() "`+f.Name+`" failed (24: Too many open files)`,
			fmt.Sprintf("the files include each other without end, or there are more than %d, or more than %d deep", maxIncludes, maxIncludeDepth))
	case p.includedSize > maxIncludeTotal:
		return p.refuse(d, f.Name, `open() "`+f.Name+`" failed (27: File too large)`,
			fmt.Sprintf("the files have more than %d MiB together", maxIncludeTotal>>20))
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
