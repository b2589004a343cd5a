//go:build linux

package debugpage_test

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// browser is a headless chromium with one tab, driven through its debugging pipe:
// messages in JSON that end in a zero byte.
type browser struct {
	t       *testing.T
	to      *os.File
	pipe    *os.File
	from    *bufio.Reader // of pipe
	session string
	calls   int
	// complaints are what the browser's console has said: errors, and what the
	// content security policy has kept out.
	complaints []string
}

// patience is how long the browser may take for an answer, on a busy machine.
const patience = 60 * time.Second

type message struct {
	ID        int                       `json:"id,omitempty"`
	SessionID string                    `json:"sessionId,omitempty"`
	Method    string                    `json:"method,omitempty"`
	Params    json.RawMessage           `json:"params,omitempty"`
	Result    json.RawMessage           `json:"result,omitempty"`
	Error     *struct{ Message string } `json:"error,omitempty"`
}

// params are the parameters of a call.
type params map[string]any

// newBrowser starts a browser that ends with the test. Without one on this machine
// the test is skipped.
func newBrowser(t *testing.T) *browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no chromium here")
	}
	if testing.Short() {
		t.Skip("a browser takes seconds")
	}
	in, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	// Not t.TempDir: who is killed leaves files behind, maybe while they are removed.
	home, err := os.MkdirTemp("", "debugpage")
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
		"--user-data-dir="+home, "--remote-debugging-pipe", "about:blank")
	command.ExtraFiles = []*os.File{in, out}                  // 3 and 4
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // its helpers must end with it
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	_ = in.Close()
	_ = out.Close()
	b := &browser{t: t, to: to, pipe: from, from: bufio.NewReader(from)}
	t.Cleanup(func() {
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
		_ = command.Wait()
		_ = to.Close()
		_ = from.Close()
		_ = os.RemoveAll(home)
	})
	var tab struct{ TargetID string }
	b.call("Target.createTarget", params{"url": "about:blank"}, &tab)
	var attached struct{ SessionID string }
	b.call("Target.attachToTarget", params{"targetId": tab.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log"} {
		b.call(domain+".enable", params{}, nil)
	}
	return b
}

func (b *browser) send(method string, p params) (id int, err error) {
	raw, err := json.Marshal(p)
	if err != nil {
		return 0, err
	}
	b.calls++
	text, err := json.Marshal(message{ID: b.calls, SessionID: b.session, Method: method, Params: raw})
	if err != nil {
		return 0, err
	}
	_, err = b.to.Write(append(text, 0))
	return b.calls, err
}

// receive returns the next message, and notes complaints.
func (b *browser) receive() message {
	b.t.Helper()
	if err := b.pipe.SetReadDeadline(time.Now().Add(patience)); err != nil {
		b.t.Fatal(err)
	}
	text, err := b.from.ReadBytes(0)
	if err != nil {
		b.t.Fatal("the browser does not answer: ", err)
	}
	var m message
	if err := json.Unmarshal(text[:len(text)-1], &m); err != nil {
		b.t.Fatal(err)
	}
	switch m.Method {
	case "Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Audits.issueAdded":
		b.complaints = append(b.complaints, string(m.Params))
	}
	return m
}

// call calls a method, and fails the test if it fails.
func (b *browser) call(method string, p params, result any) {
	b.t.Helper()
	id, err := b.send(method, p)
	if err != nil {
		b.t.Fatal(err)
	}
	for {
		m := b.receive()
		if m.ID != id {
			continue
		}
		if m.Error != nil {
			b.t.Fatal(method, ": ", m.Error.Message)
		}
		if result != nil {
			if err := json.Unmarshal(m.Result, result); err != nil {
				b.t.Fatal(method, ": ", err)
			}
		}
		return
	}
}

// open shows a page, and waits until it has loaded.
func (b *browser) open(url string) {
	b.t.Helper()
	b.call("Page.navigate", params{"url": url}, nil)
	// Navigation and a page's life are told in no order that is promised.
	b.eval(`new Promise(done => {
		const look = () => document.readyState === "complete" && location.href !== "about:blank" ? done() : setTimeout(look, 10);
		look();
	})`, nil)
}

// eval evaluates an expression in the page; a promise is waited for.
func (b *browser) eval(expression string, result any) {
	b.t.Helper()
	var answer struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	b.call("Runtime.evaluate", params{"expression": expression, "awaitPromise": true, "returnByValue": true}, &answer)
	if answer.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s", expression, answer.ExceptionDetails)
	}
	if result != nil {
		if err := json.Unmarshal(answer.Result.Value, result); err != nil {
			b.t.Fatalf("%s: %s: %v", expression, answer.Result.Value, err)
		}
	}
}

// wait waits until an expression is true.
func (b *browser) wait(expression string) {
	b.t.Helper()
	b.eval(fmt.Sprintf(`new Promise((done, fail) => {
		const end = Date.now() + %d;
		const look = () => (%s) ? done() : Date.now() > end ? fail(new Error("never")) : setTimeout(look, 10);
		look();
	})`, patience.Milliseconds(), expression), nil)
}

// key presses a key by its name.
func (b *browser) key(name string) {
	b.t.Helper()
	codes := map[string]int{"Tab": 9, "Enter": 13, "ArrowLeft": 37, "ArrowRight": 39, "Home": 36, "End": 35, "Escape": 27}
	p := params{"key": name, "code": name, "windowsVirtualKeyCode": codes[name], "type": "keyDown"}
	if name == "Enter" {
		p["text"] = "\r"
	}
	b.call("Input.dispatchKeyEvent", p, nil)
	b.call("Input.dispatchKeyEvent", params{"key": name, "code": name, "windowsVirtualKeyCode": codes[name], "type": "keyUp"}, nil)
}

// look makes the screen so wide, in a colour scheme.
func (b *browser) look(width int, scheme string) {
	b.t.Helper()
	b.call("Emulation.setDeviceMetricsOverride", params{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}, nil)
	b.call("Emulation.setEmulatedMedia", params{"features": []params{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// shoot writes a picture of the page's top so high, or of all of it (0), if a
// directory for pictures is given in DEBUGPAGE_PICTURES.
func (b *browser) shoot(name string, height int) {
	b.t.Helper()
	directory := os.Getenv("DEBUGPAGE_PICTURES")
	if directory == "" {
		return
	}
	var size struct{ W, H int }
	b.eval(`({W: innerWidth, H: Math.ceil(document.documentElement.getBoundingClientRect().height)})`, &size)
	if height == 0 {
		height = size.H
	}
	var picture struct{ Data string }
	b.call("Page.captureScreenshot", params{"format": "png", "captureBeyondViewport": true,
		"clip": params{"x": 0, "y": 0, "width": size.W, "height": height, "scale": 1}}, &picture)
	png, err := base64.StdEncoding.DecodeString(picture.Data)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(directory+"/"+name+".png", png, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// quiet fails the test if the browser has complained of anything.
func (b *browser) quiet() {
	b.t.Helper()
	b.eval("0", nil) // what it has to say is said before the answer
	if len(b.complaints) > 0 {
		b.t.Error(strings.Join(b.complaints, "\n"))
	}
}
