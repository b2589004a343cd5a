package balancer

// redacting returns the hook as peer is given it: its events are redacted.
func redacting(hook func(Event), redact func(TextKind, string) string) func(Event) {
	if hook == nil || redact == nil {
		return hook
	}
	return func(e Event) { hook(e.Redacted(redact)) }
}
