#!/usr/bin/env python3
"""Opens an HTML report in a headless Chromium and tests what a reader does with it.

    tests/html/check.py REPORT.html [FOLDER]

Needs Python 3 and `chromium` (Debian: apt-get install chromium), nothing else. Exits with 1 and says why if the page writes
anything to the console, asks for anything, or does not do what it should. With FOLDER it leaves pictures there: light, dark
and narrow.
"""

import base64
import json
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import urllib.request


class Page:
    """The DevTools protocol, over a minimal WebSocket client, so that no package is needed."""

    def __init__(self, address):
        host, rest = address.removeprefix("ws://").split(":", 1)
        port, path = rest.split("/", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=60)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(
            f"GET /{path} HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        self.buffer = b""
        while b"\r\n\r\n" not in self.buffer:
            self.buffer += self.socket.recv(65536)
        self.buffer = self.buffer.split(b"\r\n\r\n", 1)[1]
        self.number, self.events = 0, []

    def take(self, length):
        while len(self.buffer) < length:
            part = self.socket.recv(1 << 20)
            if not part:
                raise EOFError("the browser is gone")
            self.buffer += part
        taken, self.buffer = self.buffer[:length], self.buffer[length:]
        return taken

    def message(self):
        text = b""
        while True:
            first, second = self.take(2)
            length = second & 127
            if length == 126:
                (length,) = struct.unpack(">H", self.take(2))
            elif length == 127:
                (length,) = struct.unpack(">Q", self.take(8))
            text += self.take(length)
            if first & 128:
                return json.loads(text)

    def call(self, method, **params):
        self.number += 1
        payload = json.dumps({"id": self.number, "method": method, "params": params}).encode()
        mask = os.urandom(4)
        if len(payload) < 126:
            head = bytes([0x81, 128 | len(payload)])
        else:
            head = bytes([0x81, 128 | 127]) + struct.pack(">Q", len(payload))
        self.socket.sendall(head + mask + bytes(byte ^ mask[at % 4] for at, byte in enumerate(payload)))
        while True:
            message = self.message()
            if message.get("id") != self.number:
                self.events.append(message)
            elif "error" in message:
                raise RuntimeError(f"{method}: {message['error']}")
            else:
                return message["result"]

    def until(self, event):
        while not any(known.get("method") == event for known in self.events):
            self.events.append(self.message())

    def run(self, script):
        options = {"awaitPromise": True, "returnByValue": True, "userGesture": True}
        result = self.call("Runtime.evaluate", expression=script, **options)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"]["exception"]["description"])
        return result["result"].get("value")

    def key(self, key):
        code = {"Enter": 13, "Escape": 27}.get(key, 0)
        text = {"Enter": "\r", "Escape": ""}.get(key, key)
        down = {"text": text} if text else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **down)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def picture(self, path):
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))


COUNT = "document.querySelectorAll('details.finding:not([hidden])').length"
CHOOSE = """(() => {
  const list = document.forms[0].elements.%s;
  list.selectedIndex = 1;
  list.dispatchEvent(new Event('input', {bubbles: true}));
  return [document.querySelectorAll('details.finding:not([hidden])').length, Number(list.selectedOptions[0].text.match(/\\((\\d+)\\)$/)[1])];
})()"""
FILTER = """(() => {
  const search = document.forms[0].elements.search;
  const type = (text) => { search.value = text; search.dispatchEvent(new Event('input', {bubbles: true})); };
  const start = performance.now();
  type('a');
  document.body.offsetHeight;
  const took = performance.now() - start;
  type('');
  return took;
})()"""
COPY = """(async () => {
  const button = document.querySelector('button.copy');
  button.closest('details').open = true;
  button.click();
  const said = document.getElementById('copied');
  for (let frame = 0; frame < 300 && !said.textContent; frame++) { await new Promise(requestAnimationFrame); }
  return [said.textContent, document.getElementById(button.dataset.of).textContent];
})()"""


def findings(page, expect):
    """What a reader does with findings."""
    total = page.run(COUNT)
    if total:
        page.key("/")
        expect("/ goes to the filter", page.run("document.activeElement.name") == "search")
        page.call("Input.insertText", text="zzzz-no-such-text")
        expect("the filter hides what does not have the text", page.run(COUNT) == 0)
        page.key("Escape")
        expect("Esc clears the filter", page.run(COUNT) == total)
        page.key("j")
        expect("j goes to a finding", page.run("document.activeElement.matches('details.finding > summary')"))
        page.key("Enter")
        expect("Enter opens it", page.run("document.activeElement.parentElement.open"))
        for name in ["rule", "object"]:
            shown, said = page.run(CHOOSE % name)
            expect(f"the filter by {name} shows the {said} that it says, and not {shown}", shown == said)
            page.run("document.forms[0].reset(); new Promise((done) => setTimeout(done))")
        expect("reset shows all again", page.run(COUNT) == total)
        print(f"{total} findings, filtered in {page.run(FILTER):.0f} ms")
    if page.run("document.querySelectorAll('button.copy').length"):
        said, text = page.run(COPY)
        expect(f"a witness is copied: {said!r}", said in ("Copied.", "The text is selected: copy it."))
        expect("a witness is a JSON object", isinstance(json.loads(text), dict))


def check(page, address, pictures):
    wrong = []

    def expect(what, is_so):
        if not is_so:
            wrong.append(f"not so: {what}")

    for domain in ["Page", "Runtime", "Log", "Network"]:
        page.call(f"{domain}.enable")
    page.call("Emulation.setFocusEmulationEnabled", enabled=True)
    page.call("Page.navigate", url=address)
    page.until("Page.loadEventFired")
    expect("the script runs", page.run("document.documentElement.classList.contains('script')"))
    expect("the style counts", page.run("getComputedStyle(document.body).maxWidth") != "none")
    findings(page, expect)
    for name, width, scheme in [("light", 1200, "light"), ("dark", 1200, "dark"), ("narrow", 400, "dark")]:
        page.call("Emulation.setDeviceMetricsOverride", width=width, height=1400, deviceScaleFactor=1, mobile=False)
        page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        widths = page.run("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        expect(f"nothing is wider than the page ({name}): {widths}", widths[0] <= widths[1])
        if pictures:
            pictures.mkdir(parents=True, exist_ok=True)
            page.run("scrollTo(0, 0)")
            page.picture(pictures / f"{name}.png")
    for event in page.events:
        method, params = event.get("method"), event.get("params", {})
        if method in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
            wrong.append(f"on the console: {json.dumps(params)[:500]}")
        if method == "Network.requestWillBeSent" and params["request"]["url"] != address:
            wrong.append(f"asked for {params['request']['url']}")
    return wrong


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    names = ["chromium", "chromium-browser", "google-chrome"]
    browser = next((path for path in map(shutil.which, names) if path), None)
    if not browser:
        sys.exit("there is no chromium: apt-get install chromium")
    address = pathlib.Path(sys.argv[1]).resolve(strict=True).as_uri()
    pictures = pathlib.Path(sys.argv[2]) if len(sys.argv) == 3 else None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0"]
        command += [f"--user-data-dir={profile}", "about:blank"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            try:
                line = next(line for line in process.stderr if "DevTools listening on" in line)
                port = line.split("ws://", 1)[1].split("/", 1)[0]
                with urllib.request.urlopen(f"http://{port}/json/list", timeout=60) as answer:
                    target = next(known for known in json.load(answer) if known["type"] == "page")
                wrong = check(Page(target["webSocketDebuggerUrl"]), address, pictures)
            finally:
                process.terminate()
    for text in wrong:
        print(text, file=sys.stderr)
    sys.exit(1 if wrong else 0)


main()
