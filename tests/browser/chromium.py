"""Chromium without a window, driven through the pipe of its DevTools protocol. Needs nothing but Python."""
import json
import os
import select
import shutil
import subprocess
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
KEYS = {"Enter": (13, "\r"), "Escape": (27, ""), "ArrowLeft": (37, ""), "ArrowRight": (39, ""), "Delete": (46, "")}


def find_chromium():
    return next(filter(None, map(shutil.which, NAMES)), None)


class Page:
    """One page. `trouble` gathers exceptions, refused content and requests beyond the page itself."""

    def __init__(self, program, profile):
        ours, theirs = os.pipe(), os.pipe()  # commands to it, answers from it
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                   "--disable-background-networking", "--remote-debugging-pipe", f"--user-data-dir={profile}"]
        self.process = subprocess.Popen(
            ["sh", "-c", f'exec "$@" 3<&{ours[0]} 4>&{theirs[1]}', "sh", program, *options, "about:blank"],
            pass_fds=(ours[0], theirs[1]), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(ours[0])
        os.close(theirs[1])
        self.to, self.source = ours[1], theirs[0]
        self.buffer, self.count, self.session = b"", 0, None
        self.trouble, self.loaded, self.url = [], 0, None
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def close(self):
        """Lets it end by itself: killed, its children would keep writing into the profile that the test deletes."""
        try:
            self.send("Browser.close")
            self.process.wait(600)
        finally:
            self.process.kill()
            self.process.wait()

    def message(self, seconds=600):
        end = time.monotonic() + seconds
        while b"\0" not in self.buffer:
            if not select.select([self.source], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError("Chromium does not answer")
            piece = os.read(self.source, 1 << 16)
            if not piece:
                raise EOFError("Chromium ended")
            self.buffer += piece
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def note(self, event):
        method, about = event.get("method"), event.get("params", {})
        if method == "Page.loadEventFired":
            self.loaded += 1
        elif method == "Runtime.exceptionThrown":
            self.trouble.append(about["exceptionDetails"])
        elif method == "Log.entryAdded" and about["entry"]["level"] == "error":
            self.trouble.append(about["entry"])
        elif method == "Page.javascriptDialogOpening":
            self.trouble.append(about)
        elif method == "Network.requestWillBeSent":
            url = about["request"]["url"]
            if url != self.url and not url.startswith("blob:"):
                self.trouble.append(url)

    def send(self, method, **params):
        self.count += 1
        command = {"id": self.count, "method": method, "params": params}
        if self.session and not method.startswith(("Target.", "Browser.")):
            command["sessionId"] = self.session
        os.write(self.to, json.dumps(command).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") == command["id"]:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.note(answer)

    def open(self, path):
        before, self.url = self.loaded, "file://" + path
        self.send("Page.navigate", url=self.url)
        while self.loaded == before:
            self.note(self.message())

    def reload(self):
        before = self.loaded
        self.send("Page.reload")
        while self.loaded == before:
            self.note(self.message())

    def ask(self, script):
        """What a script says. Scripts are for looking; people have keys and a mouse."""
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def text(self, name):
        return self.ask(f"document.getElementById('{name}').textContent")

    def press(self, key, control=False):
        code, text = KEYS.get(key, (ord(key[0].upper()), key))
        event = {"key": key, "windowsVirtualKeyCode": code, "modifiers": 2 if control else 0}
        self.send("Input.dispatchKeyEvent", type="keyDown", text="" if control else text, **event)
        self.send("Input.dispatchKeyEvent", type="keyUp", **event)

    def write(self, text):
        self.send("Input.insertText", text=text)

    def click(self, name):
        x, y = self.ask(f"(() => {{ const e = document.getElementById('{name}'); e.scrollIntoView();"
                        "const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()")
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
