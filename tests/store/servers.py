"""S3 servers on this machine: rclone over files, moto in memory, and a proxy before them that can lie."""
import http.client
import http.server
import pathlib
import re
import socket
import subprocess
import threading
import time

HANG = 1800  # seconds after which something is taken to hang
BIN = pathlib.Path("build/store/bin").resolve()
SECRET = "hush-a-bye-baby-on-the-treetop"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """An S3 server on a port of its own, which can be killed and started again."""

    def __init__(self, folder):
        self.folder, self.process = folder, None
        for attempt in range(5):
            self.port = free_port()
            try:
                return self.start()
            except ChildProcessError:  # another program may have taken the port meanwhile
                if attempt == 4:
                    raise

    def command(self):
        raise NotImplementedError

    def start(self):
        self.process = subprocess.Popen(self.command(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + HANG
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise ChildProcessError(f"the server ended with exit code {self.process.returncode}")
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                time.sleep(0.05)
        raise TimeoutError("the server does not answer")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def settle(self):
        """Waits until every command sees what was written."""

    def environment(self):
        return {"AWS_ACCESS_KEY_ID": "tester", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "us-east-1",
                "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}", "AWS_EC2_METADATA_DISABLED": "true",
                "AWS_REQUEST_CHECKSUM_CALCULATION": "when_required"}


class Rclone(Server):
    def command(self):
        (self.folder / "shop").mkdir(parents=True, exist_ok=True)
        return [BIN / "rclone", "serve", "s3", "--auth-key", f"tester,{SECRET}", "--addr", f"127.0.0.1:{self.port}",
                "--dir-cache-time", "100ms", self.folder]

    def settle(self):
        time.sleep(0.3)  # longer than it remembers what a folder holds

    def put(self, key, data):
        path = self.folder / "shop" / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def objects(self):
        base = self.folder / "shop"
        return {str(path.relative_to(base)): path.read_bytes() for path in base.rglob("*") if path.is_file()}


class Moto(Server):
    def command(self):
        return [BIN / "moto_server", "-p", str(self.port)]

    def start(self):
        super().start()
        self.ask("PUT", "/shop")

    def ask(self, verb, path, body=None):
        asked = http.client.HTTPConnection("127.0.0.1", self.port)
        asked.request(verb, path, body, {"Authorization": "AWS4-HMAC-SHA256 Credential=tester/20250101/us-east-1/s3/x"})
        answer = asked.getresponse()
        data = answer.read()
        assert answer.status < 300, (verb, path, answer.status, data)
        return data

    def put(self, key, data):
        self.ask("PUT", f"/shop/{key}", data)

    def objects(self):
        text = self.ask("GET", "/shop?list-type=2").decode()
        keys = [part.split("</Key>")[0] for part in text.split("<Key>")[1:]]
        return {key: self.ask("GET", f"/shop/{key}") for key in keys}


class Silent:
    """Takes connections and never answers."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port, self.held, self.came = self.listener.getsockname()[1], [], threading.Semaphore(0)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                self.held.append(self.listener.accept()[0])
            except OSError:  # closed
                return
            self.came.release()

    @property
    def asked(self):
        return len(self.held)

    def wait_for_one_more(self):
        while self.came.acquire(blocking=False):
            pass
        return self.came.acquire(timeout=HANG)

    environment = Server.environment

    def close(self):
        self.listener.close()


class Proxy:
    """Hands requests on to a server and its answers back. `change(verb, path, asked, answer)` may change an answer, whose
    headers then fit its body again: what it says is wrong and well-formed."""

    def __init__(self, server, change):
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def hand_on(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                server_side = http.client.HTTPConnection("127.0.0.1", server.port)
                server_side.request(self.command, self.path, body, dict(self.headers))
                reply = server_side.getresponse()
                answer = Answer(reply.status, reply.getheaders(), reply.read())
                proxy.change(self.command, self.path, self.headers, answer)
                self.send_response_only(answer.status)
                for name, value in answer.headers:
                    if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                        self.send_header(name, value)
                length = reply.getheader("Content-Length") if self.command == "HEAD" else len(answer.body)
                self.send_header("Content-Length", str(length or 0))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(answer.body)

            do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = hand_on

            def log_message(self, *_):
                pass

        self.change = change
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def environment(self):
        return {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.http.server_port}"}

    def close(self):
        self.http.shutdown()
        self.http.server_close()


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def stop_the_clock(self):
        """Every object was changed at the same moment."""
        self.headers = [(name, "Tue, 17 Nov 2026 03:00:00 GMT" if name.lower() == "last-modified" else value)
                        for name, value in self.headers]
        self.body = re.sub(rb"<LastModified>[^<]*<", b"<LastModified>2026-11-17T03:00:00.000Z<", self.body)
