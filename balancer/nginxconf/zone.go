package nginxconf

import (
	"fmt"

	"github.com/trunklb/trunk/internal/conflex"
	"github.com/trunklb/trunk/internal/spell"
)

// A zone is a shared memory zone.
type zone struct {
	name string
	size int64 // 0: no directive has said it yet
	kind zoneKind
	user string // the upstream whose sticky learn has it
	used bool
}

type zoneKind uint8

const (
	zoneHTTP zoneKind = iota
	zoneStream
	zoneSticky
)

// addZone enters a zone, or finds it.
func (p *parser) addZone(d *conflex.Directive, name string, size int64, kind zoneKind) (*zone, *ParseError) {
	z := p.zones[name]
	if z == nil {
		z = &zone{name: name, size: size, kind: kind}
		p.zones[name], p.inOrder = z, append(p.inOrder, z)
		return z, nil
	}
	if z.kind != kind {
		return nil, p.refuse(d, name, fmt.Sprintf(`the shared memory zone "%s" is already declared for a different use`, name),
			"give the two zones two names")
	}
	if z.size == 0 {
		z.size = size
	}
	if size != 0 && size != z.size {
		return nil, p.refuse(d, name, fmt.Sprintf(`the size %d of shared memory zone "%s" conflicts with already declared size %d`,
			size, name, z.size), "")
	}
	return z, nil
}

// checkZones looks for zones that have no size. nginx names no line.
func (p *parser) checkZones() *ParseError {
	for _, z := range p.inOrder {
		if z.size == 0 {
			return &ParseError{Word: z.name, Message: `zero size shared memory zone "` + z.name + `"`,
				Hint: "write the size in one of the zone lines, such as zone " + z.name + " 256k;"}
		}
	}
	return nil
}

// zone reads an upstream's zone. Of two the last counts.
func (p *parser) zone(d *conflex.Directive) *ParseError {
	name, size := d.Words[1], int64(0)
	if name == "" {
		return p.refuse(d, name, `invalid zone name ""`, "")
	}
	if len(d.Words) == 3 {
		var ok bool
		if size, ok = conflex.Size(d.Words[2]); !ok {
			return p.refuse(d, d.Words[2], `invalid zone size "`+d.Words[2]+`"`, "write a number of bytes, with k or m")
		}
		if size < spell.MinZone {
			return p.refuse(d, d.Words[2], `zone "`+name+`" is too small`, "it must have at least 32k")
		}
	}
	kind := zoneHTTP
	if p.section.stream {
		kind = zoneStream
	}
	z, err := p.addZone(d, name, size, kind)
	if err != nil {
		return err
	}
	p.block.zone = z
	p.block.Zone = Zone{Name: z.name, Size: z.size}
	p.ignore(d.Line, d.Words, ClassNginx,
		"in one process the state is always shared; between processes it is not: each balances for itself, as nginx's workers do without a zone")
	return nil
}
