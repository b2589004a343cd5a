// Package fields reads the fields of configuration by reflection, so that one that is new
// some day is not forgotten.
package fields

import (
	"reflect"
	"slices"
	"strings"
)

// Set returns the exported fields of a struct that are not zero, by name, but for those
// that are named in except, separated by spaces. nil: there is none.
func Set(v any, except string) map[string]any {
	value := reflect.ValueOf(v)
	if value.Kind() != reflect.Struct {
		return nil
	}
	var set map[string]any
	for i := range value.NumField() {
		f := value.Type().Field(i)
		if !f.IsExported() || value.Field(i).IsZero() || slices.Contains(strings.Fields(except), f.Name) {
			continue
		}
		if set == nil {
			set = map[string]any{}
		}
		set[f.Name] = value.Field(i).Interface()
	}
	return set
}
