#!/usr/bin/env python3
"""Opens an HTML report in a headless Chromium and tests what a reader does with it.

    tests/html/check.py REPORT.html [FOLDER]

Needs Python 3 and `chromium` (Debian: apt-get install chromium), nothing else. Exits with 1 and says why if the page writes
anything to the console, asks for anything, is wider than the window, has text without contrast, cannot be used with the
keyboard or read by a screen reader, or does not do what it should. With FOLDER it leaves pictures there: 390, 1280 and
1920 pixels wide, light and dark.
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
        code = {"Tab": 9, "Enter": 13, "Escape": 27}.get(key, 0)
        text = {"Enter": "\r", "Escape": "", "Tab": ""}.get(key, key)
        down = {"text": text} if text else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **down)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def size(self, width, height, scheme):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def picture(self, path):
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))


SIZES = [(width, scheme) for width in (390, 1280, 1920) for scheme in ("light", "dark")]
HEIGHTS = {390: 1400, 1280: 1100, 1920: 1100}
COUNT = "document.querySelectorAll('.finding:not([hidden])').length"
CHOOSE = """(() => {
  const list = document.forms[0].elements.%s;
  list.selectedIndex = 1;
  list.dispatchEvent(new Event('input', {bubbles: true}));
  return [document.querySelectorAll('.finding:not([hidden])').length, Number(list.selectedOptions[0].text.match(/\\((\\d+)\\)$/)[1])];
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
# The place of the focus: what it is, whether it can be seen, and whether the reader sees that it is there.
FOCUS = """(() => {
  const part = document.activeElement;
  if (!part || part === document.body) { return null; }
  const box = part.getBoundingClientRect();
  const style = getComputedStyle(part);
  window.walked ??= [];
  const known = window.walked.includes(part);
  window.walked.push(part);
  return {
    what: `${part.tagName.toLowerCase()} ${part.textContent.trim().slice(0, 60)}`,
    seen: box.width > 0 && box.height > 0 && box.bottom > 0 && box.top < innerHeight,
    ring: style.outlineStyle !== 'none',
    known,
  };
})()"""
# The texts with a contrast below 4.5 to the nearest background.
CONTRAST = """(() => {
  document.querySelectorAll('details').forEach((part, at) => { part.open = at < 60; });
  const parse = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const luminance = (colour) => {
    const [r, g, b] = parse(colour).map((part) => part / 255)
      .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (part) => {
    for (; part; part = part.parentElement) {
      const colour = getComputedStyle(part).backgroundColor;
      if ((parse(colour)[3] ?? 1) > 0) { return colour; }
    }
    return 'rgb(255, 255, 255)';
  };
  const weak = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let count = 0; walker.nextNode() && count < 20000; count++) {
    const part = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || part.closest('script, [hidden]') || !part.checkVisibility()) { continue; }
    const [a, b] = [luminance(getComputedStyle(part).color), luminance(behind(part))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) { weak.push(`${contrast.toFixed(2)} ${walker.currentNode.data.trim().slice(0, 40)}`); }
  }
  return weak.slice(0, 5);
})()"""
# A number of the matrix, what it counts, and what is shown after it is followed.
CELL = """(() => {
  const cell = document.querySelector('a.cell');
  if (!cell) { return null; }
  cell.focus();
  return [Number(cell.textContent.replace(',', '')), cell.hash];
})()"""
FOLLOWED = """(() => {
  const place = document.getElementById(location.hash.slice(1));
  const top = place.getBoundingClientRect().top;
  return [place.open || place.matches('p'), top >= 0 && top < innerHeight];
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
        expect("j goes to a finding", page.run("document.activeElement.matches('.finding, .finding > summary')"))
        page.key("Enter")
        expect("Enter opens it", page.run("document.activeElement.parentElement.open"))
        names = ["rule", "object"]
        if page.run("document.forms[0].elements.breaks.options.length") > 1:
            names.append("breaks")
        for name in names:
            shown, said = page.run(CHOOSE % name)
            expect(f"the filter by {name} shows the {said} that it says, and not {shown}", shown == said)
            page.run("document.forms[0].reset(); new Promise((done) => setTimeout(done))")
        expect("reset shows all again", page.run(COUNT) == total)
        print(f"{total} findings, filtered in {page.run(FILTER):.0f} ms")
    if page.run("document.querySelectorAll('button.copy').length"):
        said, text = page.run(COPY)
        expect(f"a witness is copied: {said!r}", said in ("Copied.", "The text is selected: copy it."))
        expect("a witness is a JSON object", isinstance(json.loads(text), dict))


def matrix(page, expect):
    """A number of the impact matrix shows the findings that it counts."""
    cell = page.run(CELL)
    if not cell:
        return
    page.key("Enter")
    page.run("new Promise((done) => setTimeout(done, 50))")
    number, _ = cell
    expect(f"the number {number} of the matrix shows {number} findings, not {page.run(COUNT)}", page.run(COUNT) == number)
    expect("it opens the first of them, in view", page.run(FOLLOWED) == [True, True])
    page.run("document.forms[0].reset(); location.hash = ''; new Promise((done) => setTimeout(done, 50))")


def keyboard(page, expect):
    """Tab goes through the page without a trap, and the reader sees where the focus is."""
    page.run("document.activeElement.blur(); scrollTo(0, 0); window.walked = []")
    stops = 0
    while stops < 150:
        page.key("Tab")
        place = page.run(FOCUS)
        if not place or place["known"]:
            break
        stops += 1
        expect(f"the focus can be seen: {place['what']}", place["seen"])
        expect(f"the focus has a ring: {place['what']}", place["ring"])
    expect("Tab reaches something", stops > 0)
    print(f"{stops} stops of the keyboard")


def accessibility(page, expect):
    """What a screen reader is told."""
    nodes = page.call("Accessibility.getFullAXTree")["nodes"]
    nodes = [node for node in nodes if not node.get("ignored")]
    role = lambda node: node["role"]["value"]
    name = lambda node: node.get("name", {}).get("value", "").strip()
    roles = [role(node) for node in nodes]
    for landmark in ["banner", "main", "contentinfo"]:
        expect(f"there is one {landmark}", roles.count(landmark) == 1)
    for node in nodes:
        if role(node) in ("link", "button", "heading", "searchbox", "combobox", "checkbox", "region", "navigation"):
            expect(f"each {role(node)} has a name", name(node))
    headings = [node for node in nodes if role(node) == "heading"]
    levels = [next(part["value"]["value"] for part in node["properties"] if part["name"] == "level") for node in headings]
    expect(f"headings are in order: {levels}", levels[:1] == [1] and all(b <= a + 1 for a, b in zip(levels, levels[1:])))
    headers = sum(role(node) in ("columnheader", "rowheader") for node in nodes)
    print(f"{len(nodes)} nodes for a screen reader, {len(headings)} headings, {headers} headers of tables")
    expect("tables have headers", headers > 0 or "table" not in roles)


def check(page, address, pictures):
    wrong = []

    def expect(what, is_so):
        if not is_so:
            wrong.append(f"not so: {what}")

    for domain in ["Page", "Runtime", "Log", "Network", "Accessibility"]:
        page.call(f"{domain}.enable")
    page.call("Emulation.setFocusEmulationEnabled", enabled=True)
    page.size(1280, 1100, "light")
    page.call("Page.navigate", url=address)
    page.until("Page.loadEventFired")
    expect("the script runs", page.run("document.documentElement.classList.contains('script')"))
    expect("the style counts", page.run("getComputedStyle(document.body).maxWidth") != "none")
    findings(page, expect)
    matrix(page, expect)
    keyboard(page, expect)
    accessibility(page, expect)
    page.call("Page.navigate", url=address)
    page.events = [event for event in page.events if event.get("method") != "Page.loadEventFired"]
    page.until("Page.loadEventFired")
    for width, scheme in SIZES:
        page.size(width, HEIGHTS[width], scheme)
        page.run("scrollTo(0, 0)")
        if pictures:
            pictures.mkdir(parents=True, exist_ok=True)
            page.picture(pictures / f"{width}-{scheme}.png")
    for width, scheme in SIZES:
        page.size(width, HEIGHTS[width], scheme)
        weak = page.run(CONTRAST)
        expect(f"all text has contrast ({width}, {scheme}): {weak}", not weak)
        widths = page.run("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        expect(f"nothing is wider than the page ({width}): {widths}", widths[0] <= widths[1])
    for event in page.events:
        method, params = event.get("method"), event.get("params", {})
        if method in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
            wrong.append(f"on the console: {json.dumps(params)[:500]}")
        if method == "Network.requestWillBeSent" and params["request"]["url"].split("#")[0] != address:
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
