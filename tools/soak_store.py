"""The S3 server of tools/soak: rclone over a folder."""
import os
import socket
import subprocess
import time

from soak_rows import ROOT, die

RCLONE = os.path.join(ROOT, "build/store/bin/rclone")  # `make store-setup` puts it there
SECRET = "soak-soak-soak"


class Store:
    def __init__(self, folder):
        self.bucket = os.path.join(folder, "store", "soak")
        os.makedirs(self.bucket)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.server = subprocess.Popen(
            [RCLONE, "serve", "s3", "--auth-key", f"soak,{SECRET}", "--addr", f"127.0.0.1:{self.port}",
             "--dir-cache-time", "100ms", os.path.dirname(self.bucket)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                if self.server.poll() is not None:
                    die("rclone does not start")
                time.sleep(0.05)

    def environment(self):
        return {"AWS_ACCESS_KEY_ID": "soak", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "us-east-1",
                "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}", "AWS_EC2_METADATA_DISABLED": "true",
                "AWS_REQUEST_CHECKSUM_CALCULATION": "when_required"}

    @staticmethod
    def settle():
        time.sleep(0.3)  # longer than rclone remembers what a folder holds

    def folder(self, name):
        return os.path.join(self.bucket, name)

    def close(self):
        self.server.kill()
        self.server.wait()
