package sticky

import "slices"

// Route is nginx's sticky route: the request itself says the sid, in variables
// or by a function.
type Route struct {
	// Variables are texts with variables, such as "$cookie_route". The first
	// that is not empty is the sid.
	Variables []string
	// Func returns the sid, for what variables alone cannot say, such as a sid
	// at the end of another cookie's value:
	//
	//	func(v sticky.Values) string {
	//		_, route, _ := strings.Cut(v("$cookie_jsessionid"), ".")
	//		return route
	//	}
	//
	// It is asked when all Variables are empty, outside of the upstream's lock,
	// and must be safe for concurrent use.
	Func func(Values) string
}

func (r Route) bind(*Options) (*Binding, error) {
	if len(r.Variables) == 0 && r.Func == nil {
		return nil, refuse("Variables", r.Variables, "a route needs at least one variable, or a Func")
	}
	r.Variables = slices.Clone(r.Variables)
	return &Binding{route: &r}, nil
}

func (r *Route) sid(v Values) string {
	if sid := v.first(r.Variables); sid != "" || r.Func == nil {
		return sid
	}
	return r.Func(v.of)
}
